/*
 * How a text of a request becomes a text of a ticket: separators settled, characters that no page
 * may have refused, NFC. The rules are stated at the top of domain/batch.h.
 */
#ifndef TICKETPRESS_DOMAIN_CLEAN_TEXT_H
#define TICKETPRESS_DOMAIN_CLEAN_TEXT_H

#include "domain/arena.h"
#include "domain/text_rules.h"

#include <stdbool.h>
#include <stdint.h>

enum clean_verdict {
    CLEAN_OK,
    CLEAN_BLANK,         /* shows nothing: white space and invisible characters only */
    CLEAN_BAD_CHARACTER, /* has a character that is refused */
    CLEAN_BAD_UTF8       /* is not valid UTF-8 */
};

enum clean_lines { CLEAN_ONE_LINE, CLEAN_KEEP_LINES };

struct cleaned {
    enum clean_verdict verdict;
    uint32_t bad_code_point; /* the first that is refused, with CLEAN_BAD_CHARACTER */
    struct text text;        /* with CLEAN_OK: not empty, in the arena */
};

/* Whether a character is refused in texts and ids: a control character, a noncharacter, or a
 * bidirectional embedding or override. (Separators of lines are judged before this.) */
bool character_is_refused(uint32_t code_point);

/*
 * Clean one text.
 *
 * In:      raw      any bytes
 * Out:     cleaned  set on ST_OK, whatever its verdict
 * Errors:  ST_NO_MEMORY
 */
MUST_USE enum status text_clean(struct text raw, enum clean_lines lines,
                                const struct text_rules *rules, struct arena *arena,
                                struct cleaned *cleaned, struct error *err);

#endif
