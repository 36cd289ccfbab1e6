#include "domain/problems.h"

#include "domain/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

static struct problems problems; /* too large for the stack of a small thread, so kept off it */

static void clear_problems(void)
{
    problems_clear(&problems);
}

TestSuite(problems_add, .fini = clear_problems);
TestSuite(problems_append_copy, .fini = clear_problems);

Test(problems_add, keeps_copies_of_pointer_and_detail)
{
    char pointer[] = "/tickets/3/holder";
    char word[] = "blank";

    problems_add(&problems, pointer, "empty", "must not be %s", word);
    memset(pointer, 'x', strlen(pointer));
    memset(word, 'x', strlen(word));
    cr_assert(problems.count == 1 && problems.listed_count == 1 && !problems.is_incomplete);
    cr_expect_str_eq(problems.listed[0].pointer.data, "/tickets/3/holder");
    cr_expect(problems.listed[0].pointer.len == strlen("/tickets/3/holder"));
    cr_expect_str_eq(problems.listed[0].code, "empty");
    cr_expect_str_eq(problems.listed[0].detail.data, "must not be blank");
}

Test(problems_add, takes_the_empty_pointer_of_the_whole_document)
{
    problems_add(&problems, "", "wrong_type", "must be an object");
    cr_expect(problems.listed[0].pointer.data != NULL && problems.listed[0].pointer.len == 0);
}

Test(problems_add, lists_a_hundred_and_counts_the_rest)
{
    for (int i = 0; i < PROBLEMS_LISTED_MAX + 23; i++)
        problems_add(&problems, "/x", "empty", "number %d", i);
    cr_expect(problems.listed_count == PROBLEMS_LISTED_MAX);
    cr_expect(problems.count == PROBLEMS_LISTED_MAX + 23);
    cr_expect_str_eq(problems.listed[0].detail.data, "number 0");
    cr_expect_str_eq(problems.listed[PROBLEMS_LISTED_MAX - 1].detail.data, "number 99");
}

Test(problems_add, cuts_long_details_at_a_character)
{
    char detail[PROBLEM_DETAIL_BYTES_MAX + 2];

    for (size_t extra = 0; extra < 2; extra++) { /* the limit falls before, then inside an é */
        struct text kept;

        memset(detail, 'a', extra);
        for (size_t i = extra; i + 1 < sizeof detail; i += 2)
            memcpy(detail + i, "é", 2);
        detail[sizeof detail - 1] = '\0';
        problems_add(&problems, "", "empty", "%s", detail);
        kept = problems.listed[extra].detail;
        cr_expect(kept.len == PROBLEM_DETAIL_BYTES_MAX - extra, "%zu", kept.len);
        cr_expect(utf8_is_valid(kept), "%s", kept.data);
    }
}

Test(problems_append_copy, copies_up_to_the_limit_and_adds_the_counts)
{
    static struct problems more;

    for (int i = 0; i < 60; i++) {
        problems_add(&problems, "/a", "empty", "a%d", i);
        problems_add(&more, "/b", "missing", "b%d", i);
    }
    problems_append_copy(&problems, &more);
    problems_clear(&more);
    cr_expect(problems.count == 120 && problems.listed_count == PROBLEMS_LISTED_MAX);
    cr_expect_str_eq(problems.listed[60].detail.data, "b0");
    cr_expect_str_eq(problems.listed[60].code, "missing");
    cr_expect_str_eq(problems.listed[99].pointer.data, "/b");
    cr_expect_str_eq(problems.listed[99].detail.data, "b39");
}

Test(problems_append_copy, hands_on_that_entries_were_lost)
{
    static struct problems lossy = {.count = 1, .is_incomplete = true};

    problems_append_copy(&problems, &lossy);
    cr_expect(problems.count == 1 && problems.listed_count == 0 && problems.is_incomplete);
}
