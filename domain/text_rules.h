/*
 * What the rules of a batch must know of the world's languages, zones and money, and domain/ may
 * not know itself because it includes no library. workers/locale fills this from ICU; tests fill it
 * with small tables. All functions may be called from any thread at once.
 */
#ifndef TICKETPRESS_DOMAIN_TEXT_RULES_H
#define TICKETPRESS_DOMAIN_TEXT_RULES_H

#include "domain/arena.h"
#include "domain/status.h"

#include <stdbool.h>

struct text_rules {
    /*
     * The NFC form (Unicode Standard Annex 15) of `in`, which is valid UTF-8. *out is in itself
     * where it is in NFC already, else a copy in the arena. Errors: ST_NO_MEMORY.
     */
    enum status (*nfc)(struct text in, struct arena *arena, struct text *out, struct error *err);
    bool (*is_zone)(struct text name);  /* an IANA time zone name, such as Europe/Madrid */
    bool (*is_locale)(struct text tag); /* a well-formed BCP 47 tag, such as es-ES */
    int (*currency_digits)(
        const char code[4]); /* ISO 4217 minor unit, 0..4; -1: no such currency */
};

#endif
