#include "workers/document.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

/* ---- Fixture: what a document is made of ---- */

static const uint8_t DIGEST[SHA256_BYTES] = {1, 2, 3};

static struct bytes bytes_made(void)
{
    struct bytes bytes = {0};

    cr_assert_eq(bytes_append(&bytes, "%PDF", 4, NULL), ST_OK);
    return bytes;
}

static struct document_tickets tickets_made(void)
{
    struct document_tickets tickets = {.count = 1};

    tickets.list = arena_alloc(&tickets.arena, sizeof *tickets.list);
    cr_assert_not_null(tickets.list);
    cr_assert_eq(arena_text_copy(&tickets.arena, "t-1", 3, &tickets.list[0].id, NULL), ST_OK);
    return tickets;
}

static const struct document *document_made(void)
{
    struct bytes bytes = bytes_made();
    struct document_tickets tickets = tickets_made();
    const struct document *document = NULL;

    cr_assert_eq(document_new_move(&bytes, &tickets, DIGEST, &document, NULL), ST_OK);
    return document;
}

/* ---- document_new_move ---- */

Test(document_new_move, takes_bytes_and_tickets_without_a_copy)
{
    struct bytes bytes = bytes_made();
    struct document_tickets tickets = tickets_made();
    const uint8_t *data = bytes.data;
    const struct document_ticket *list = tickets.list;
    const struct document *document = NULL;

    cr_assert_eq(document_new_move(&bytes, &tickets, DIGEST, &document, NULL), ST_OK);
    cr_expect_null(bytes.data);
    cr_expect_eq(bytes.capacity, 0);
    cr_expect_null(tickets.list);
    cr_expect_null(tickets.arena.chunks);
    cr_expect_eq(document->bytes.data, data);
    cr_expect_eq(document->bytes.len, 4);
    cr_expect_eq(document->tickets.list, list);
    cr_expect_eq(document->tickets.count, 1);
    cr_expect_arr_eq(document->digest, DIGEST, sizeof DIGEST);
    document_unref(&document);
    cr_expect_null(document);
}

Test(document_new_move, leaves_both_when_memory_ends)
{
    struct bytes bytes = bytes_made();
    struct document_tickets tickets = tickets_made();
    struct bytes const bytes_before = bytes;
    struct document_tickets const tickets_before = tickets;
    const struct document *document = NULL;
    struct error err = {0};

    failing_memory_start(1);
    cr_expect_eq(document_new_move(&bytes, &tickets, DIGEST, &document, &err), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_eq(err.status, ST_NO_MEMORY);
    cr_expect_null(document);
    cr_expect_arr_eq(&bytes, &bytes_before, sizeof bytes);
    cr_expect_arr_eq(&tickets, &tickets_before, sizeof tickets);
    bytes_clear(&bytes);
    arena_clear(&tickets.arena);
}

Test(document_new_move, is_not_for_empty_documents, .signal = SIGABRT)
{
    struct bytes bytes = {0};
    struct document_tickets tickets = tickets_made();
    const struct document *document = NULL;

    cr_expect_neq(document_new_move(&bytes, &tickets, DIGEST, &document, NULL), ST_OK);
}

/* ---- document_ref, document_unref ---- */

Test(document_unref, frees_with_the_last_reference)
{
    const struct document *first = document_made();
    const struct document *second = document_ref(first);

    cr_expect_eq(second, first);
    document_unref(&first);
    cr_expect_null(first);
    cr_expect_eq(memcmp(second->bytes.data, "%PDF", 4), 0); /* the sanitizer sees it freed early */
    cr_expect_str_eq(second->tickets.list[0].id.data, "t-1");
    document_unref(&second);
    cr_expect_null(second);
}

Test(document_unref, takes_null)
{
    const struct document *none = NULL;

    document_unref(&none);
    cr_expect_null(none);
}
