#include "service/job_map.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_COUNT = 16384 };

/* FNV-1a */
static size_t bucket_of(const char *id)
{
    uint32_t hash = UINT32_C(2166136261);

    for (; *id != '\0'; id++)
        hash = (hash ^ (unsigned char)*id) * UINT32_C(16777619);
    return (hash ^ hash >> 16) % BUCKETS_COUNT;
}

enum status job_map_init(struct job_map *map, struct error *err)
{
    *map = (struct job_map){.buckets = calloc(BUCKETS_COUNT, sizeof(struct job_node *))};
    if (map->buckets == NULL)
        return error_set(err, ST_NO_MEMORY, "a map of jobs");
    return ST_OK;
}

void job_map_clear(struct job_map *map)
{
    free(map->buckets);
    *map = (struct job_map){0};
}

struct job_node *job_map_find(const struct job_map *map, const char *id)
{
    struct job_node *node = map->buckets[bucket_of(id)];

    while (node != NULL && strcmp(node->id, id) != 0)
        node = node->next;
    return node;
}

void job_map_add(struct job_map *map, struct job_node *node)
{
    struct job_node **bucket = &map->buckets[bucket_of(node->id)];

    assert(job_map_find(map, node->id) == NULL);
    node->next = *bucket;
    *bucket = node;
    map->count++;
}

void job_map_remove(struct job_map *map, struct job_node *node)
{
    struct job_node **link = &map->buckets[bucket_of(node->id)];

    while (*link != NULL && *link != node)
        link = &(*link)->next;
    assert(*link == node);
    *link = node->next;
    node->next = NULL;
    map->count--;
}

struct job_node *job_map_next(const struct job_map *map, const struct job_node *node)
{
    size_t bucket = 0;

    if (node != NULL && node->next != NULL)
        return node->next;
    if (node != NULL)
        bucket = bucket_of(node->id) + 1;
    while (bucket < BUCKETS_COUNT && map->buckets[bucket] == NULL)
        bucket++;
    return bucket < BUCKETS_COUNT ? map->buckets[bucket] : NULL;
}
