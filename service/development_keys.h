/*
 * The key ring of those who have none yet: made once in the data directory, marked by its name, and
 * warned of. Nobody's tickets should be sold under it.
 */
#ifndef TICKETPRESS_SERVICE_DEVELOPMENT_KEYS_H
#define TICKETPRESS_SERVICE_DEVELOPMENT_KEYS_H

#include "domain/status.h"
#include "workers/sign.h"

#define DEVELOPMENT_KEYS_FILE "development-signing-keys.json"

/*
 * Read the development key ring, making directory and file (for its owner alone) where they are
 * missing. Says on standard error that it is used, and where it is.
 *
 * Out:     ring  zeroed on entry; the caller clears it
 * Errors:  ST_IO      directory or file cannot be made
 *          any of key_ring_read
 */
MUST_USE enum status development_keys_read(const char *data, struct key_ring *ring,
                                           struct error *err);

#endif
