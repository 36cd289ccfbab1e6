#include "workers/reserve.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Memory from the reserve: the heap gives nothing this once. */
static void *take(size_t bytes)
{
    void *memory;

    failing_memory_start(1);
    memory = reserve_malloc(NULL, bytes);
    cr_assert(failing_memory_stop());
    return memory;
}

Test(reserve_malloc, prefers_the_heap)
{
    void *memory = reserve_malloc(NULL, 100);

    cr_expect_not_null(memory);
    cr_expect_eq(reserve_bytes_used(), 0);
    reserve_free(NULL, memory);
    reserve_free(NULL, malloc(1));
    reserve_free(NULL, NULL);
}

Test(reserve_malloc, gives_separate_blocks_for_any_type)
{
    enum { BLOCKS = 300 };
    unsigned char *blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take((size_t)i + 1);
        cr_assert_not_null(blocks[i]);
        cr_expect_eq((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        memset(blocks[i], i, (size_t)i + 1);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (int at = 0; at <= i; at++)
            cr_assert_eq(blocks[i][at], (unsigned char)i);
    for (int i = 0; i < BLOCKS; i += 2)
        reserve_free(NULL, blocks[i]);
    for (int i = 1; i < BLOCKS; i += 2)
        reserve_free(NULL, blocks[i]);
    cr_expect_eq(reserve_bytes_used(), 0);
    blocks[0] = take(RESERVE_BYTES - 1024); /* what was freed is one block again */
    cr_expect_not_null(blocks[0]);
    reserve_free(NULL, blocks[0]);
}

Test(reserve_malloc, ends_too)
{
    void *most = take(RESERVE_BYTES - 4096);

    cr_assert_not_null(most);
    cr_expect_null(take(8192));
    cr_expect_null(take(RESERVE_BYTES + 1));
    cr_expect_null(take(SIZE_MAX));
    cr_expect_not_null(take(100));
    reserve_free(NULL, most);
    cr_expect_not_null(take(8192));
}

static bool is_low_without_heap(void)
{
    bool is_low;

    failing_memory_start(1);
    is_low = reserve_is_low();
    (void)failing_memory_stop();
    return is_low;
}

Test(reserve_is_low, says_so_at_its_limit_as_long_as_the_heap_gives_nothing)
{
    void *half = take(RESERVE_BYTES - RESERVE_LOW_BYTES - 1024);
    void *more;

    cr_expect_not(is_low_without_heap());
    more = take(1024);
    cr_expect(is_low_without_heap());
    cr_expect_not(reserve_is_low());
    reserve_free(NULL, more);
    cr_expect_not(is_low_without_heap());
    reserve_free(NULL, half);
}

Test(reserve_was_touched, tells_once)
{
    cr_expect_not(reserve_was_touched());
    reserve_free(NULL, take(1));
    cr_expect(reserve_was_touched());
    cr_expect_not(reserve_was_touched());
    reserve_free(NULL, reserve_malloc(NULL, 1));
    cr_expect_not(reserve_was_touched());
}

Test(reserve_realloc, keeps_the_contents_wherever_they_go)
{
    char *memory = reserve_realloc(NULL, NULL, 6);

    cr_assert_not_null(memory);
    memcpy(memory, "heap", 5);
    failing_memory_start(1);
    memory = reserve_realloc(NULL, memory, 1000000); /* the heap cannot: into the reserve */
    cr_assert(failing_memory_stop());
    cr_assert_str_eq(memory, "heap");
    cr_expect_gt(reserve_bytes_used(), 1000000);
    memory = reserve_realloc(NULL, memory, 100); /* it has room where it is */
    cr_expect_gt(reserve_bytes_used(), 1000000);
    cr_assert_str_eq(memory, "heap");
    failing_memory_start(1);
    memory = reserve_realloc(NULL, memory, 2000000); /* to another place of the reserve */
    cr_assert(failing_memory_stop());
    cr_assert_str_eq(memory, "heap");
    memory = reserve_realloc(NULL, memory, 3000000); /* and back to the heap */
    cr_assert_str_eq(memory, "heap");
    cr_expect_eq(reserve_bytes_used(), 0);
    reserve_free(NULL, memory);
}

Test(reserve_realloc, leaves_what_it_cannot_make_larger)
{
    char *memory = reserve_malloc(NULL, 5);

    memcpy(memory, "heap", 5);
    failing_memory_start(1);
    cr_expect_null(reserve_realloc(NULL, memory, 2 * (size_t)RESERVE_BYTES));
    cr_expect(failing_memory_stop());
    cr_expect_str_eq(memory, "heap");
    reserve_free(NULL, memory);
    memory = take(5);
    memcpy(memory, "area", 5);
    failing_memory_start(1);
    cr_expect_null(reserve_realloc(NULL, memory, 2 * (size_t)RESERVE_BYTES));
    cr_expect(failing_memory_stop());
    cr_expect_str_eq(memory, "area");
    reserve_free(NULL, memory);
}
