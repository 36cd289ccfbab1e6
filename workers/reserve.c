#include "workers/reserve.h"

#include "domain/must.h"

#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Blocks lie one behind the other and fill the area; free neighbours are one block as soon as
 * somebody looks for room. Few blocks are ever here, so that walking over all of them is fine. */
struct block {
    size_t bytes; /* with this head */
    bool is_used;
    alignas(max_align_t) unsigned char data[];
};

static alignas(max_align_t) unsigned char area[RESERVE_BYTES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards area and is_set_up */
static bool is_set_up;
static atomic_size_t bytes_used;
static _Thread_local bool was_touched;

/* What the heap must give before a low reserve is no reason for anything. */
enum { PROBE_BYTES = RESERVE_BYTES - RESERVE_LOW_BYTES };

static struct block *block_at(size_t offset)
{
    return (struct block *)(void *)(area + offset);
}

static bool is_from_reserve(const void *memory)
{
    uintptr_t const at = (uintptr_t)memory;

    return at >= (uintptr_t)area && at < (uintptr_t)area + sizeof area;
}

static struct block *block_of(void *memory)
{
    return (struct block *)(void *)((unsigned char *)memory - sizeof(struct block));
}

static void merge_locked(size_t offset)
{
    struct block *block = block_at(offset);

    while (offset + block->bytes < sizeof area && !block_at(offset + block->bytes)->is_used)
        block->bytes += block_at(offset + block->bytes)->bytes;
}

static void use_locked(size_t offset, size_t needed)
{
    struct block *block = block_at(offset);

    if (block->bytes - needed > sizeof *block) {
        *block_at(offset + needed) = (struct block){.bytes = block->bytes - needed};
        block->bytes = needed;
    }
    block->is_used = true;
    atomic_fetch_add(&bytes_used, block->bytes);
}

static void *take_locked(size_t needed)
{
    if (!is_set_up)
        *block_at(0) = (struct block){.bytes = sizeof area};
    is_set_up = true;
    for (size_t offset = 0; offset < sizeof area; offset += block_at(offset)->bytes) {
        if (block_at(offset)->is_used)
            continue;
        merge_locked(offset);
        if (block_at(offset)->bytes >= needed) {
            use_locked(offset, needed);
            return block_at(offset)->data;
        }
    }
    return NULL;
}

static void *reserve_take(size_t bytes)
{
    size_t const align = alignof(max_align_t);
    void *memory;

    if (bytes > sizeof area)
        return NULL;
    MUST(pthread_mutex_lock(&mutex));
    memory = take_locked(sizeof(struct block) + (bytes + align - 1) / align * align);
    MUST(pthread_mutex_unlock(&mutex));
    was_touched = true;
    return memory;
}

static void reserve_give_back(void *memory)
{
    struct block *block = block_of(memory);

    MUST(pthread_mutex_lock(&mutex));
    assert(block->is_used);
    block->is_used = false;
    atomic_fetch_sub(&bytes_used, block->bytes);
    MUST(pthread_mutex_unlock(&mutex));
}

void *reserve_malloc(const void *context, size_t bytes)
{
    void *memory = malloc(bytes);

    (void)context;
    if (memory == NULL)
        memory = reserve_take(bytes);
    return memory;
}

/* From the reserve to wherever there is room. */
static void *move_out(void *memory, size_t bytes)
{
    size_t const had = block_of(memory)->bytes - sizeof(struct block);
    void *moved;

    if (bytes <= had)
        return memory;
    moved = reserve_malloc(NULL, bytes);
    if (moved == NULL)
        return NULL;
    memcpy(moved, memory, had);
    reserve_give_back(memory);
    return moved;
}

/* From the heap, which could not make it larger, to the reserve. */
static void *move_in(void *memory, size_t bytes)
{
    size_t const had = malloc_usable_size(memory);
    void *moved = reserve_take(bytes);

    if (moved == NULL)
        return NULL;
    memcpy(moved, memory, had < bytes ? had : bytes);
    free(memory);
    return moved;
}

void *reserve_realloc(const void *context, void *memory, size_t bytes)
{
    void *moved;

    (void)context;
    if (memory == NULL)
        return reserve_malloc(NULL, bytes);
    if (is_from_reserve(memory))
        return move_out(memory, bytes);
    moved = realloc(memory, bytes);
    if (moved == NULL)
        moved = move_in(memory, bytes);
    return moved;
}

void reserve_free(const void *context, void *memory)
{
    (void)context;
    if (memory != NULL && is_from_reserve(memory))
        reserve_give_back(memory);
    else
        free(memory);
}

bool reserve_is_low(void)
{
    void *volatile probe;

    if (reserve_bytes_used() <= RESERVE_BYTES - RESERVE_LOW_BYTES)
        return false;
    probe = malloc(PROBE_BYTES);
    free(probe);
    return probe == NULL;
}

bool reserve_was_touched(void)
{
    bool const was = was_touched;

    was_touched = false;
    return was;
}

size_t reserve_bytes_used(void)
{
    return atomic_load(&bytes_used);
}
