/*
 * Jobs found by their ids: a hash table whose nodes live inside what it finds. It never grows and
 * never allocates after its making: ids that are in it are random, so that they spread evenly
 * whatever strangers ask for, and a chain of a few nodes is quickly walked.
 */
#ifndef TICKETPRESS_SERVICE_JOB_MAP_H
#define TICKETPRESS_SERVICE_JOB_MAP_H

#include "domain/status.h"
#include "service/job_store.h"

#include <stddef.h>

/* The first member of what is found. */
struct job_node {
    char id[JOB_ID_CHARS + 1]; /* does not change while it is in a map */
    struct job_node *next;     /* the map's own */
};

struct job_map {
    struct job_node **buckets;
    size_t count; /* of nodes */
};

/* Errors: ST_NO_MEMORY, *map is left zeroed. */
MUST_USE enum status job_map_init(struct job_map *map, struct error *err);
/* The nodes are not the map's: they are forgotten. */
void job_map_clear(struct job_map *map);

/* NULL: there is none. id is any text. */
struct job_node *job_map_find(const struct job_map *map, const char *id);

/* The id must not be in the map. */
void job_map_add(struct job_map *map, struct job_node *node);

/* The node must be in the map. */
void job_map_remove(struct job_map *map, struct job_node *node);

/* All nodes, in no order: node is NULL at first; NULL: no more. A node may be removed only after
 * the one behind it was asked for. */
struct job_node *job_map_next(const struct job_map *map, const struct job_node *node);

#endif
