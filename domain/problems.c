#include "domain/problems.h"

#include "domain/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void problems_clear(struct problems *problems)
{
    arena_clear(&problems->arena);
    *problems = (struct problems){0};
}

/* Both texts or none: an entry is never half there. */
static enum status entry_copy(struct problems *problems, struct text pointer, struct text detail,
                              struct problem *entry)
{
    enum status st =
        arena_text_copy(&problems->arena, pointer.data, pointer.len, &entry->pointer, NULL);

    if (st == ST_OK)
        st = arena_text_copy(&problems->arena, detail.data, detail.len, &entry->detail, NULL);
    return st;
}

static void problems_list(struct problems *problems, struct text pointer, const char *code,
                          struct text detail)
{
    struct problem entry = {.code = code};

    assert(problems->listed_count < PROBLEMS_LISTED_MAX);
    if (entry_copy(problems, pointer, detail, &entry) == ST_OK)
        problems->listed[problems->listed_count++] = entry;
    else
        problems->is_incomplete = true;
}

void problems_add_v(struct problems *problems, const char *pointer, const char *code,
                    const char *format, va_list args)
{
    char detail[PROBLEM_DETAIL_BYTES_MAX + UTF8_SEQUENCE_BYTES_MAX + 1];
    struct text text = {.data = detail};
    int len;

    assert(pointer != NULL && code != NULL && code[0] != '\0');
    problems->count++;
    if (problems->listed_count == PROBLEMS_LISTED_MAX)
        return;
    /* The analyzer of clang 14 loses sight of va_start when it looks in from problems_add.
     * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    len = vsnprintf(detail, sizeof detail, format, args);
    assert(len >= 0);
    text.len = (size_t)len < sizeof detail ? (size_t)len : sizeof detail - 1;
    text.len = utf8_prefix(text, PROBLEM_DETAIL_BYTES_MAX);
    problems_list(problems, (struct text){.data = pointer, .len = strlen(pointer)}, code, text);
}

void problems_add(struct problems *problems, const char *pointer, const char *code,
                  const char *format, ...)
{
    va_list args;

    va_start(args, format);
    problems_add_v(problems, pointer, code, format, args);
    va_end(args);
}

void problems_append_copy(struct problems *dst, const struct problems *src)
{
    for (size_t i = 0; i < src->listed_count && dst->listed_count < PROBLEMS_LISTED_MAX; i++) {
        const struct problem *entry = &src->listed[i];

        problems_list(dst, entry->pointer, entry->code, entry->detail);
    }
    dst->count += src->count;
    dst->is_incomplete = dst->is_incomplete || src->is_incomplete;
}
