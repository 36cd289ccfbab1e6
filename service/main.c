#include "service/commands.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    return (int)commands_run(argc, argv, (const char *const *)environ);
}
