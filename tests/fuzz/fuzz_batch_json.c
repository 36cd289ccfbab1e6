/*
 * Any bytes as a request body: no crash, no leak, and what is accepted keeps the rules that the
 * rest of the program relies on.
 */
#include "domain/id.h"
#include "domain/utf8.h"
#include "service/batch_json.h"
#include "tests/support/table_rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small, so that the limit on memory is met as well. */
enum { FUZZ_PARSE_BYTES_MAX = 256 * 1024, FUZZ_TICKETS_MAX = 20 };

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_ticket(const struct ticket *ticket)
{
    require(id_is_ticket(ticket->id));
    require(ticket->order_id.data == NULL || id_is_ticket(ticket->order_id));
    require(ticket->holder.len > 0 && utf8_is_valid(ticket->holder));
    require(utf8_count(ticket->holder) <= HOLDER_CHARS_MAX);
    require(ticket->type.len > 0 && utf8_count(ticket->type) <= TYPE_CHARS_MAX);
    require(ticket->price_amount >= 0 && ticket->price_amount <= PRICE_AMOUNT_MAX);
    require(!ticket->has_valid_from || !ticket->has_valid_until ||
            ticket->valid_from_min < ticket->valid_until_min);
}

static void check_batch(const struct batch *batch)
{
    require(id_is_event(batch->event.id));
    require(batch->event.name.len > 0 && batch->event.venue.data != NULL);
    require(batch->tickets_count >= 1 && batch->tickets_count <= FUZZ_TICKETS_MAX);
    for (size_t i = 0; i < batch->tickets_count; i++)
        check_ticket(&batch->tickets[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct batch_limits LIMITS = {.tickets_max = FUZZ_TICKETS_MAX};
    static struct problems problems;
    struct bytes body = {0};
    struct bytes report = {0};
    struct batch batch = {0};
    enum status st;

    require(batch_json_start(FUZZ_PARSE_BYTES_MAX, NULL) == ST_OK);
    require(bytes_append(&body, data, size, NULL) == ST_OK);
    st = batch_json_read(&body, &TABLE_RULES, &LIMITS, &batch, &problems, NULL);
    if (st == ST_OK)
        check_batch(&batch);
    else
        require(batch.arena.chunks == NULL);
    require(st != ST_INVALID || problems.count > 0);
    require(problems_json_write(&problems, &report, NULL) == ST_OK);
    require(utf8_is_valid((struct text){.data = (const char *)report.data, .len = report.len}));
    batch_clear(&batch);
    problems_clear(&problems);
    bytes_clear(&report);
    bytes_clear(&body);
    require(batch_json_bytes_in_use() == 0);
    return 0;
}
