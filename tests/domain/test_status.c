#include "domain/status.h"

#include "domain/utf8.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

Test(error_set, hands_the_status_back_and_keeps_the_sentence)
{
    struct error err = {0};

    cr_expect(error_set(&err, ST_INVALID, "seat %d of %s", 12, "row A") == ST_INVALID);
    cr_expect(err.status == ST_INVALID);
    cr_expect_str_eq(err.text, "seat 12 of row A");
}

Test(error_set, works_without_an_error_to_fill)
{
    cr_expect(error_set(NULL, ST_BUSY, "the queue is full") == ST_BUSY);
}

Test(error_set, cuts_long_sentences_at_a_character)
{
    char text[ERROR_TEXT_BYTES_MAX * 2];

    for (size_t first = 0; first < 2; first++) {
        struct error err = {0};
        struct text kept;

        memset(text, 'a', first);
        for (size_t i = first; i + 2 < sizeof text; i += 2)
            memcpy(text + i, "é", 3);
        (void)error_set(&err, ST_IO, "%s", text);
        kept = (struct text){.data = err.text, .len = strlen(err.text)};
        cr_expect(kept.len < ERROR_TEXT_BYTES_MAX && kept.len >= ERROR_TEXT_BYTES_MAX - 4);
        cr_expect(utf8_is_valid(kept));
    }
}

Test(error_set, never_notes_success, .signal = SIGABRT)
{
    (void)error_set(NULL, ST_OK, "fine");
}

Test(status_name, is_another_word_for_each)
{
    cr_expect_str_eq(status_name(ST_OK), "ok");
    cr_expect_str_eq(status_name(ST_TIMED_OUT), "timed_out");
    for (enum status a = ST_OK; a < ST_COUNT; a++)
        for (enum status b = ST_OK; b < a; b++)
            cr_expect_str_neq(status_name(a), status_name(b));
}
