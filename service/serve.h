/*
 * The serve command: everything is made in order, served until a signal, and taken down in reverse.
 */
#ifndef TICKETPRESS_SERVICE_SERVE_H
#define TICKETPRESS_SERVICE_SERVE_H

#include "service/commands.h"
#include "service/config.h"

#include <stdbool.h>

/* Everything borrowed for the call. */
struct serve_options {
    const struct settings *settings;
    bool is_insecure; /* listens beyond loopback without client keys */
};

/*
 * Serve until SIGTERM or SIGINT. The first asks for a stop that loses nothing: new batches get 503,
 * running jobs end, finished documents can be fetched until all were, or until drain-linger-ms has
 * passed. A second one stops at once. SIGHUP reads the key ring and the layouts anew.
 *
 * After config_json_start and sign_start, on the only thread.
 */
enum exit_code command_serve(const struct serve_options *options);

#endif
