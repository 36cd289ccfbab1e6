/*
 * Verification over the API: one task on the pool's urgent lane for each token, because signatures
 * are computed there and nowhere else.
 */
#ifndef TICKETPRESS_SERVICE_TOKEN_CHECK_H
#define TICKETPRESS_SERVICE_TOKEN_CHECK_H

#include "service/http.h"
#include "workers/pool.h"
#include "workers/sign.h"

/*
 * Judge the token of a request's body, {"token": "..."}, under the keys that a client may use, and
 * answer.
 *
 * In:      exchange  parked; its body is moved away
 *          client    "" where there are no clients
 *          instance  the request's id
 */
void token_check_start(struct pool *pool, struct key_store *keys, struct http_exchange *exchange,
                       const char *client, const char *instance);

#endif
