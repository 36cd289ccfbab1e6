/*
 * Switches on the locale of the environment before main(), as any library might, and notes how the
 * program writes 1.5 from then on.
 */
#include "note.h"

#include <locale.h>
#include <stdio.h>

__attribute__((constructor)) static void start(void)
{
    char written[16];

    setlocale(LC_ALL, "");
    snprintf(written, sizeof written, "%.1f", 1.5);
    note(note_open("use_locale.jsonl"), "{\"written\": \"%s\"}\n", written);
}
