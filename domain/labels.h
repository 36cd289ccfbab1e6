/*
 * The few words that a ticket prints by itself (Holder, Seat, ...), by language. The catalogue is a
 * data file; this is its plain form and the rule by which a locale finds its language.
 */
#ifndef TICKETPRESS_DOMAIN_LABELS_H
#define TICKETPRESS_DOMAIN_LABELS_H

#include "domain/arena.h"
#include "domain/batch.h"

#include <stddef.h>

enum label {
    LABEL_HOLDER,
    LABEL_TYPE,
    LABEL_SECTION,
    LABEL_ROW,
    LABEL_SEAT,
    LABEL_GATE,
    LABEL_PRICE,
    LABEL_FREE, /* the price word for an amount of 0 */
    LABEL_ORDER,
    LABEL_TICKET,
    LABEL_DOORS,
    LABEL_COUNT
};

/* The name of a label in layouts and catalogues, such as "holder". */
const char *label_name(enum label label);

struct label_language {
    struct text tag; /* BCP 47 in small letters: a language such as "es", or "zh-hant", "pt-br" */
    struct text words[LABEL_COUNT];
};

struct label_set {
    struct arena arena;
    struct label_language *languages; /* languages_count of them; one is "en" */
    size_t languages_count;
};

void label_set_clear(struct label_set *set);

/*
 * Read a catalogue: an object of languages, each an object with every label and nothing else.
 *
 * Out:     set  zeroed on entry; owns copies of all texts on success
 * Errors:  ST_INVALID    problems say where and why; *set is left zeroed
 *          ST_NO_MEMORY
 */
MUST_USE enum status label_set_read(const struct value_source *source, struct value root,
                                    struct label_set *set, struct problems *problems,
                                    struct error *err);

/*
 * The words for a locale: those of the longest beginning of its tag that the set has (RFC 4647,
 * section 3.4), else English's. Chinese of Taiwan, Hong Kong and Macao is zh-hant. Borrowed from
 * the set.
 */
const struct label_language *label_set_find(const struct label_set *set, struct text locale);

#endif
