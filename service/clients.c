#include "service/clients.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void client_list_clear(struct client_list *list)
{
    free(list->clients);
    *list = (struct client_list){0};
}

/* RFC 6750 section 2.1: the scheme, one space or more, the key. */
static const char *bearer_key(const char *authorization)
{
    static const char SCHEME[] = "Bearer ";
    size_t len;

    if (authorization == NULL || strncasecmp(authorization, SCHEME, sizeof SCHEME - 1) != 0)
        return NULL;
    authorization += sizeof SCHEME - 1;
    authorization += strspn(authorization, " ");
    len = strlen(authorization);
    return len >= CLIENT_KEY_BYTES_MIN && len <= CLIENT_KEY_BYTES_MAX ? authorization : NULL;
}

const struct client *client_from_authorization(const struct client_list *list,
                                               const char *authorization)
{
    const char *key = bearer_key(authorization);
    const struct client *found = NULL;
    uint8_t sha256[SHA256_BYTES];

    if (key == NULL || sign_sha256(key, strlen(key), sha256, NULL) != ST_OK)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        if (sign_equals(sha256, list->clients[i].key_sha256, SHA256_BYTES))
            found = &list->clients[i];
    return found;
}
