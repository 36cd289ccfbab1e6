/*
 * Whole files in and out: bounded on the way in, and on the way out either all there under its name
 * or not there at all. "-" stands for standard input or output.
 */
#ifndef TICKETPRESS_SERVICE_FILE_H
#define TICKETPRESS_SERVICE_FILE_H

#include "domain/bytes.h"
#include "domain/status.h"

#include <stddef.h>

/*
 * Read a file to its end.
 *
 * In:      path       a file, a pipe, or "-" for standard input
 *          bytes_max  1..SIZE_MAX / 4
 * Out:     bytes      zeroed on entry; the caller clears it
 * Errors:  ST_NOT_FOUND  no such file
 *          ST_TOO_LARGE  more than bytes_max bytes
 *          ST_IO         cannot be read; a directory
 *          ST_NO_MEMORY  *bytes is left zeroed in each case
 */
MUST_USE enum status file_read(const char *path, size_t bytes_max, struct bytes *bytes,
                               struct error *err);

/*
 * The same for a file that another file or a directory names. Nobody waits for what a pipe or a
 * device there may never say.
 *
 * Errors:  ST_IO  what is there is no ordinary file, too
 */
MUST_USE enum status file_read_ordinary(const char *path, size_t bytes_max, struct bytes *bytes,
                                        struct error *err);

/*
 * The same for a file of secrets: the contents are in one place of memory only, to be wiped by
 * file_secret_clear.
 *
 * Errors:  ST_INVALID  a regular file on which others than owner and group have any right
 */
MUST_USE enum status file_read_secret(const char *path, size_t bytes_max, struct bytes *bytes,
                                      struct error *err);

/*
 * Before secrets are written to an open file: if it is a regular one, as behind a shell's `>`, take
 * all rights on it from everybody but its owner.
 *
 * Errors:  ST_IO  it cannot be done
 */
MUST_USE enum status file_make_private(int fd, struct error *err);

/* Zero the contents and free them; the struct is left zeroed. */
void file_secret_clear(struct bytes *bytes);

/*
 * Write a document straight from its memory, without a copy.
 *
 * In:      path   where a regular file is or none, the document takes its place in one step: it is
 *                 written beside, made durable and renamed, with the rights of any new file. A
 *                 device, a pipe, or "-" for standard output, is written to as it is.
 * Errors:  ST_IO         the old file, if there was one, is untouched (unless the very last step
 *                        failed, which makes the new name durable)
 *          ST_NO_MEMORY
 */
MUST_USE enum status file_write(const char *path, const struct bytes *document, struct error *err);

#endif
