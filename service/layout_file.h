/*
 * A layout from its file: the JSON by its rules, then the images that it names, from its own
 * directory. What is loaded is what a press takes.
 */
#ifndef TICKETPRESS_SERVICE_LAYOUT_FILE_H
#define TICKETPRESS_SERVICE_LAYOUT_FILE_H

#include "domain/problems.h"
#include "domain/status.h"
#include "workers/press.h"

/*
 * Load a layout. After sign_start and config_json_start.
 *
 * In:      path     a file
 * Out:     layout   zeroed on entry; is_built_in is left to the caller
 *          problems every broken rule; when none is broken, with the code bad_image every image
 * that cannot be used, at the first element that names it, and every element in which one would be
 * drawn too large or too thin (page_image_size). Empty when the file itself could not be read or is
 * no JSON. err has the first, behind the file's name Errors:  ST_INVALID    a rule, or an image
 * that is damaged, too large or missing ST_NOT_FOUND, ST_TOO_LARGE (CONFIG_FILE_BYTES_MAX), ST_IO,
 * ST_NO_MEMORY, ST_LIBRARY *layout is left zeroed in each case
 */
MUST_USE enum status layout_file_load(const char *path, struct press_layout *layout,
                                      struct problems *problems, struct error *err);

#endif
