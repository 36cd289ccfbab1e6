#include "tests/support/failing_memory.h"

#include <stdatomic.h>

/* How many allocations work until one fails; below 0: all of them. */
static atomic_long left = -1;
static atomic_bool has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void failing_memory_start(size_t call)
{
    atomic_store(&has_failed, false);
    atomic_store(&left, (long)call - 1);
}

bool failing_memory_stop(void)
{
    atomic_store(&left, -1);
    return atomic_load(&has_failed);
}

static bool fails(void)
{
    if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 0)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}
