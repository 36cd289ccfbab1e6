/*
 * The JSON of the program's own files and answers: key rings, event keys for gates, verdicts on
 * tokens, and the configuration file. Files are strict: an unknown, missing or doubled member is
 * refused, and the message names the file and the JSON Pointer, or line and column where the text
 * is no JSON at all. Secrets are wiped wherever they passed.
 *
 * A key ring:
 *
 *     {"keys": [{"id": 1, "client": "*", "secret": "<base64url>",
 *                "sign_from": "2027-01-01T00:00:00Z", "verify_until": "2028-01-01T00:00:00Z"}]}
 *
 * and the keys of one event, for its gates:
 *
 *     {"event_id": "evt-003", "keys": [{"key_id": 1, "key": "<base64url>",
 *                                       "verify_until": "2028-01-01T00:00:00Z"}]}
 *
 * verify_until may be left out: then the key verifies for ever.
 */
#ifndef TICKETPRESS_SERVICE_CONFIG_JSON_H
#define TICKETPRESS_SERVICE_CONFIG_JSON_H

#include "domain/bytes.h"
#include "domain/labels.h"
#include "domain/layout.h"
#include "domain/problems.h"
#include "domain/status.h"
#include "domain/token.h"
#include "service/clients.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CONFIG_FILE_BYTES_MAX = 256 * 1024 };

/*
 * Get the JSON library ready for this module: memory that is wiped when it is freed, and a random
 * hash seed. Both are the process's: call it before any thread, and before batch_json_start, which
 * brings memory functions of its own.
 */
void config_json_start(void);

/* The memory functions that config_json_start installs. batch_json, which counts all of jansson's
 * memory, passes on to them what is not a batch's. */
void *config_json_malloc(size_t bytes);
void config_json_free(void *block);

/*
 * Read a key ring.
 *
 * In:      path  a file, "-" for standard input; a regular file must be closed to others than its
 *                owner and group
 * Out:     ring  zeroed on entry; keeps the rules of key_ring_check; the caller clears it
 * Errors:  ST_INVALID    mode, JSON or a rule
 *          ST_NOT_FOUND, ST_TOO_LARGE (CONFIG_FILE_BYTES_MAX), ST_IO, ST_NO_MEMORY
 */
MUST_USE enum status key_ring_read(const char *path, struct key_ring *ring, struct error *err);

/* Write a key ring as key_ring_read takes it. Errors: ST_IO, ST_NO_MEMORY. */
MUST_USE enum status key_ring_print(FILE *out, const struct key_ring *ring, struct error *err);

/* The keys of one event, by which a gate judges its tokens. */
struct event_keys {
    struct event_key *keys; /* count of them, of one event, key ids all different */
    size_t count;           /* 1..KEYS_MAX */
};

/* Zero the keys and free. */
void event_keys_clear(struct event_keys *keys);

/* As key_ring_read. */
MUST_USE enum status event_keys_read(const char *path, struct event_keys *keys, struct error *err);

/* Write them as event_keys_read takes them. Errors: ST_IO, ST_NO_MEMORY. */
MUST_USE enum status event_keys_print(FILE *out, const struct event_keys *keys, struct error *err);

/*
 * Print what was found of a token, one JSON object on a line: its claims, and whether now_s lies in
 * its window (from the first second of valid_from to the last before valid_until), or the reason
 * why it is refused.
 *
 * In:      claims  read when verdict is TOKEN_OK
 * Errors:  ST_IO, ST_NO_MEMORY
 */
MUST_USE enum status verdict_print(FILE *out, enum token_verdict verdict,
                                   const struct token_claims *claims, int64_t now_s,
                                   struct error *err);

/* One member of the configuration file; integers are given as their decimal text. */
struct config_member {
    const char *name;
    const char *pointer; /* for messages: escaped, on one line */
    const char *const *values;
    size_t values_count;
    bool is_list; /* a JSON array */
};

/*
 * Read a configuration file: one object whose members are strings, integers or arrays of strings.
 * Each is handed to member(), whose error ends the reading and is the result.
 *
 * Errors:  ST_INVALID, ST_NOT_FOUND, ST_TOO_LARGE, ST_IO, ST_NO_MEMORY
 */
MUST_USE enum status config_file_read(const char *path,
                                      enum status (*member)(void *user,
                                                            const struct config_member *member,
                                                            struct error *err),
                                      void *user, struct error *err);

/*
 * Read the list of clients:
 *
 *     {"clients": [{"name": "box-office", "key_sha256": "<64 hexadecimal digits>",
 *                   "scopes": ["render", "verify", "admin"]}]}
 *
 * Names are those of the key ring's "client"; no two clients have one name or one key.
 *
 * Out:     list  zeroed on entry; the caller clears it
 * Errors:  as key_ring_read
 */
MUST_USE enum status client_list_read(const char *path, struct client_list *list,
                                      struct error *err);

/*
 * Read a layout, or the catalogue of labels, by the rules of domain/layout.h and domain/labels.h.
 *
 * Out:     layout, labels  zeroed on entry
 *          content         of an accepted layout: the same bytes for the same JSON, however it is
 *                          spaced and ordered, "$schema" left out; the caller clears it
 *          problems        every broken rule; err has the first, behind the file's name
 * Errors:  ST_INVALID, ST_NOT_FOUND, ST_TOO_LARGE (CONFIG_FILE_BYTES_MAX), ST_IO, ST_NO_MEMORY
 */
MUST_USE enum status layout_file_read(const char *path, struct layout *layout,
                                      struct bytes *content, struct problems *problems,
                                      struct error *err);
MUST_USE enum status label_file_read(const char *path, struct label_set *labels,
                                     struct problems *problems, struct error *err);

/* What err says of a file with this problem. Returns ST_INVALID. */
enum status file_problem_error(const char *path, const struct problem *problem, struct error *err);

#endif
