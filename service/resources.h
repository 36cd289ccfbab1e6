/*
 * What the running program needs beside itself: its own data (layouts, labels, the list of fonts),
 * found from where the program lies, and what the settings add. Loaded once at the start; a broken
 * file stops the start by its name.
 */
#ifndef TICKETPRESS_SERVICE_RESOURCES_H
#define TICKETPRESS_SERVICE_RESOURCES_H

#include "domain/bytes.h"
#include "domain/labels.h"
#include "domain/layout.h"
#include "domain/status.h"
#include "service/config.h"
#include "workers/font.h"
#include "workers/press.h"

#include <stddef.h>

struct resources {
    struct font_set *fonts;
    struct label_set labels;
    struct layout_list layouts; /* by file name; moved on to the press */
    struct bytes layout_schema; /* JSON, as it is served */
};

/*
 * Load everything.
 *
 * In:      settings   fonts and layouts
 * Out:     resources  zeroed on entry
 * Errors:  ST_INVALID    a file is broken, or two layouts have one name; err names the file, the
 *                        place in it and the rule
 *          ST_NOT_FOUND, ST_TOO_LARGE, ST_IO, ST_NO_MEMORY
 *                        *resources is left zeroed in each of these cases
 */
MUST_USE enum status resources_load(const struct settings *settings, struct resources *resources,
                                    struct error *err);
void resources_clear(struct resources *resources);

/* The fonts alone. Errors as above. */
MUST_USE enum status resources_load_fonts(const struct settings *settings, struct font_set **fonts,
                                          struct error *err);

/* The layouts alone, anew. *layouts is zeroed on entry and left zeroed on error; errors as above.
 */
MUST_USE enum status resources_load_layouts(const struct settings *settings,
                                            struct layout_list *layouts, struct error *err);

#endif
