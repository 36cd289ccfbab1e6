/*
 * Who may call, and what. Clients show a key (RFC 6750, bearer); the file has only its SHA-256, so
 * that reading the file gives nobody a key.
 */
#ifndef TICKETPRESS_SERVICE_CLIENTS_H
#define TICKETPRESS_SERVICE_CLIENTS_H

#include "domain/status.h"
#include "workers/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLIENTS_MAX = 1000,
    CLIENT_KEY_BYTES_MIN = 16, /* of a key as it is shown */
    CLIENT_KEY_BYTES_MAX = 512,
};

enum client_scope { SCOPE_RENDER = 1, SCOPE_VERIFY = 2, SCOPE_ADMIN = 4, SCOPE_ALL = 7 };

struct client {
    char name[KEY_CLIENT_BYTES_MAX + 1]; /* as in the key ring */
    uint8_t key_sha256[SHA256_BYTES];
    unsigned scopes; /* of enum client_scope */
};

struct client_list {
    struct client *clients; /* count of them, names and hashes all different */
    size_t count;           /* 1..CLIENTS_MAX */
};

void client_list_clear(struct client_list *list);

/*
 * The client of an Authorization header's value. Every client is compared, each in constant time.
 *
 * In:      authorization  NULL: there was none
 * Returns: NULL when it is nobody's
 */
const struct client *client_from_authorization(const struct client_list *list,
                                               const char *authorization);

#endif
