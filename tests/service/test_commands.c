#include "service/commands.h"

#include <criterion/criterion.h>

static const struct {
    enum status status;
    enum exit_code setup, work;
} ROWS[] = {
    {ST_OK, EXIT_OK, EXIT_OK},
    {ST_INVALID, EXIT_USAGE, EXIT_REFUSED},
    {ST_TOO_LARGE, EXIT_USAGE, EXIT_REFUSED},
    {ST_NOT_FOUND, EXIT_USAGE, EXIT_USAGE},
    {ST_NO_KEY, EXIT_USAGE, EXIT_USAGE},
    {ST_IO, EXIT_USAGE, EXIT_SYSTEM},
    {ST_NO_MEMORY, EXIT_SYSTEM, EXIT_SYSTEM},
};

Test(exit_code_of, tells_refused_input_from_broken_settings)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        cr_expect_eq(exit_code_of(ROWS[i].status, STAGE_SETUP), ROWS[i].setup);
        cr_expect_eq(exit_code_of(ROWS[i].status, STAGE_WORK), ROWS[i].work);
    }
}

Test(exit_code_of, is_never_success_for_a_failure)
{
    for (int i = ST_OK + 1; i < ST_COUNT; i++) {
        cr_expect_neq(exit_code_of((enum status)i, STAGE_SETUP), EXIT_OK);
        cr_expect_neq(exit_code_of((enum status)i, STAGE_WORK), EXIT_OK);
    }
}
