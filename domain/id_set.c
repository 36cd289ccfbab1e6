#include "domain/id_set.h"

#include <assert.h>
#include <string.h>

struct id_set_slot {
    struct text id; /* data NULL: free */
    uint64_t hash;
    size_t index;
};

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(struct sip_state *s)
{
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static void sip_absorb(struct sip_state *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* Up to eight bytes as a little-endian number. */
static uint64_t word_of(const char *data, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)(uint8_t)data[i] << (8 * i);
    return word;
}

uint64_t id_set_hash(struct text text, const uint64_t key[2])
{
    struct sip_state s = {
        .v0 = key[0] ^ UINT64_C(0x736f6d6570736575),
        .v1 = key[1] ^ UINT64_C(0x646f72616e646f6d),
        .v2 = key[0] ^ UINT64_C(0x6c7967656e657261),
        .v3 = key[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t at = 0;

    for (; text.len - at >= 8; at += 8)
        sip_absorb(&s, word_of(text.data + at, 8));
    sip_absorb(&s, word_of(text.data + at, text.len - at) | (uint64_t)text.len << 56);
    s.v2 ^= 0xFF;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

enum status id_set_init(struct id_set *set, size_t ids_max, const uint64_t key[2],
                        struct arena *arena, struct error *err)
{
    size_t slots_count = 2;
    struct id_set_slot *slots;

    assert(ids_max <= SIZE_MAX / 16 / sizeof *slots);
    while (slots_count < ids_max * 2)
        slots_count *= 2;
    slots = arena_alloc(arena, slots_count * sizeof *slots);
    if (slots == NULL)
        return error_set(err, ST_NO_MEMORY, "a set of %zu ids", ids_max);
    *set = (struct id_set){
        .slots = slots, .slots_count = slots_count, .ids_max = ids_max, .key = {key[0], key[1]}};
    return ST_OK;
}

/* The slot that holds id, or the free one where it belongs. Half of the slots are free, so there
 * is an end to the search. */
static struct id_set_slot *slot_find(const struct id_set *set, struct text id, uint64_t hash)
{
    size_t at = (size_t)hash & (set->slots_count - 1);

    for (;;) {
        struct id_set_slot *slot = &set->slots[at];

        if (slot->id.data == NULL || (slot->hash == hash && slot->id.len == id.len &&
                                      memcmp(slot->id.data, id.data, id.len) == 0))
            return slot;
        at = (at + 1) & (set->slots_count - 1);
    }
}

bool id_set_add(struct id_set *set, struct text id, size_t index, size_t *first_index)
{
    uint64_t const hash = id_set_hash(id, set->key);
    struct id_set_slot *slot = slot_find(set, id, hash);
    bool const is_new = slot->id.data == NULL;

    if (is_new) {
        assert(id.data != NULL && set->ids_count < set->ids_max);
        *slot = (struct id_set_slot){.id = id, .hash = hash, .index = index};
        set->ids_count++;
    }
    *first_index = slot->index;
    return is_new;
}
