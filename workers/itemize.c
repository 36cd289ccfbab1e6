#include "workers/itemize.h"

#include "domain/utf8.h"
#include "workers/reserve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/ubidi.h>
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/utext.h>

enum {
    FACE_NONE = UINT16_MAX,
    BRACKETS_MAX = 64, /* open at once; those beyond take the script before them */
    SPELLING_MAX = 32, /* characters of a cluster that is respelt to find a face */
    SPELLING_UNITS_MAX = 4 * SPELLING_MAX,
    KNOWN_FACES = 1024,
    CLASS_VIRAMA = 9, /* canonical combining class */
};

/* The face of a character that is a cluster of its own. */
struct known_face {
    uint32_t code_point; /* 0: none, which no face is asked for */
    uint16_t first_face, face;
};

struct itemizer {
    const struct font_set *fonts;
    struct known_face known[KNOWN_FACES]; /* by code point */
    UBiDi *bidi;
    UBreakIterator *clusters;
    const UNormalizer2 *nfc, *nfd;
};

static enum status icu_error(UErrorCode code, struct error *err)
{
    enum status const st = code == U_MEMORY_ALLOCATION_ERROR ? ST_NO_MEMORY : ST_LIBRARY;

    return error_set(err, st, "runs of a text: %s", u_errorName(code));
}

/* See workers/reserve.h: ICU must not be called when it might not come back. */
static enum status begin_icu(struct error *err)
{
    (void)reserve_was_touched();
    return reserve_is_low() ? error_set(err, ST_NO_MEMORY, "ICU's memory") : ST_OK;
}

static enum status end_icu(UErrorCode code, struct error *err)
{
    if (reserve_was_touched())
        code = U_MEMORY_ALLOCATION_ERROR;
    return U_FAILURE(code) ? icu_error(code, err) : ST_OK;
}

enum status itemizer_new(const struct font_set *fonts, struct itemizer **itemizer,
                         struct error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    struct itemizer *made;
    enum status st = begin_icu(err);

    if (st != ST_OK)
        return st;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "runs of a text");
    made->fonts = fonts;
    made->bidi = ubidi_open();
    if (made->bidi == NULL)
        code = U_MEMORY_ALLOCATION_ERROR;
    made->clusters = ubrk_open(UBRK_CHARACTER, "", NULL, 0, &code);
    made->nfc = unorm2_getNFCInstance(&code);
    made->nfd = unorm2_getNFDInstance(&code);
    st = end_icu(code, err);
    if (st == ST_OK)
        *itemizer = made;
    else
        itemizer_free(&made);
    return st;
}

void itemizer_free(struct itemizer **itemizer)
{
    if (*itemizer == NULL)
        return;
    ubrk_close((*itemizer)->clusters);
    if ((*itemizer)->bidi != NULL)
        ubidi_close((*itemizer)->bidi);
    free(*itemizer);
    *itemizer = NULL;
}

/* ---- plain texts ---- */

enum { PLAIN_LATIN = 1, PLAIN_GREEK = 2, PLAIN_CYRILLIC = 4, PLAIN_COMMON = 8, NOT_PLAIN = 16 };

static unsigned plain_class(uint32_t c)
{
    static const struct {
        uint32_t last;
        unsigned class;
    } RANGES[] = {
        {0x40, PLAIN_COMMON},    {0x5A, PLAIN_LATIN},     {0x60, PLAIN_COMMON},
        {0x7A, PLAIN_LATIN},     {0xA9, PLAIN_COMMON},    {0xAA, PLAIN_LATIN},
        {0xAC, PLAIN_COMMON},    {0xAD, NOT_PLAIN},       {0xB9, PLAIN_COMMON},
        {0xBA, PLAIN_LATIN},     {0xBF, PLAIN_COMMON},    {0xD6, PLAIN_LATIN},
        {0xD7, PLAIN_COMMON},    {0xF6, PLAIN_LATIN},     {0xF7, PLAIN_COMMON},
        {0x2B8, PLAIN_LATIN},    {0x36F, PLAIN_COMMON},   {0x373, PLAIN_GREEK},
        {0x374, PLAIN_COMMON},   {0x3E1, PLAIN_GREEK},    {0x3EF, NOT_PLAIN},
        {0x3FF, PLAIN_GREEK},    {0x52F, PLAIN_CYRILLIC}, {0x1DFF, NOT_PLAIN},
        {0x1EFF, PLAIN_LATIN},   {0x1FFF, PLAIN_GREEK},   {0x200A, PLAIN_COMMON},
        {0x200F, NOT_PLAIN},     {0x2027, PLAIN_COMMON},  {0x202E, NOT_PLAIN},
        {0x205F, PLAIN_COMMON},  {0x209F, NOT_PLAIN},     {0x20C0, PLAIN_COMMON},
        {UINT32_MAX, NOT_PLAIN},
    };
    size_t i = 0;

    while (c > RANGES[i].last)
        i++;
    return RANGES[i].class;
}

static bool is_ascii_letter(unsigned char byte)
{
    return (unsigned char)((byte | 0x20) - 'a') < 26;
}

bool itemize_is_plain(struct text text, bool is_right_to_left)
{
    unsigned classes = 0;
    size_t at = 0;

    while (at < text.len) {
        unsigned char const byte = (unsigned char)text.data[at];
        uint32_t c = byte;
        size_t len = 1;

        if (byte < 0x80) {
            classes |= is_ascii_letter(byte) ? PLAIN_LATIN : PLAIN_COMMON;
        } else {
            len = utf8_decode(text.data + at, text.len - at, &c);
            assert(len > 0);
            classes |= plain_class(c);
        }
        if (classes & NOT_PLAIN)
            return false;
        at += len;
    }
    classes &= PLAIN_LATIN | PLAIN_GREEK | PLAIN_CYRILLIC;
    return (classes & (classes - 1)) == 0 && (classes != 0 || !is_right_to_left);
}

/* ---- characters ---- */

struct character {
    uint32_t code_point;
    uint32_t at;
    UScriptCode own, script; /* own: as Unicode has it; script: resolved */
    uint16_t face;
    uint8_t level, base;
    bool begins_cluster;
};

struct itemizing {
    struct itemizer *itemizer;
    struct text text;
    size_t face;
    struct arena *arena;
    struct error *err;
    struct character *characters; /* count of them */
    size_t count;
};

static enum status read_characters(struct itemizing *itemizing)
{
    struct text const text = itemizing->text;
    size_t at = 0;

    itemizing->characters = arena_alloc(itemizing->arena, text.len * sizeof(struct character));
    if (itemizing->characters == NULL)
        return error_set(itemizing->err, ST_NO_MEMORY, "characters of a text");
    while (at < text.len) {
        struct character *character = &itemizing->characters[itemizing->count++];
        size_t len;

        *character = (struct character){.at = (uint32_t)at, .face = FACE_NONE};
        len = utf8_decode(text.data + at, text.len - at, &character->code_point);
        assert(len > 0);
        at += len;
    }
    return ST_OK;
}

/* ---- directions ---- */

static int32_t units_of(const struct character *characters, size_t count, UChar *units)
{
    int32_t used = 0;

    for (size_t i = 0; i < count; i++)
        U16_APPEND_UNSAFE(units, used, (UChar32)characters[i].code_point);
    return used;
}

static void direct_paragraph(struct itemizing *itemizing, struct character *characters,
                             size_t count, UChar *units, UBiDiLevel fallback, UErrorCode *code)
{
    UBiDi *bidi = itemizing->itemizer->bidi;
    int32_t const used = units_of(characters, count, units);
    const UBiDiLevel *levels;
    int32_t unit = 0;

    ubidi_setPara(bidi, units, used, fallback, NULL, code);
    levels = ubidi_getLevels(bidi, code);
    if (U_FAILURE(*code))
        return;
    for (size_t i = 0; i < count; i++) {
        characters[i].level = levels[unit];
        characters[i].base = ubidi_getParaLevel(bidi);
        unit += U16_LENGTH((UChar32)characters[i].code_point);
    }
}

/* Paragraph by paragraph, so that nothing left open in one reaches the next. */
static void direct(struct itemizing *itemizing, bool is_right_to_left, UChar *units,
                   UErrorCode *code)
{
    UBiDiLevel const fallback = is_right_to_left ? UBIDI_DEFAULT_RTL : UBIDI_DEFAULT_LTR;
    size_t first = 0;

    while (first < itemizing->count && U_SUCCESS(*code)) {
        size_t end = first;

        while (end < itemizing->count && itemizing->characters[end].code_point != '\n')
            end++;
        end += end < itemizing->count;
        direct_paragraph(itemizing, itemizing->characters + first, end - first, units, fallback,
                         code);
        first = end;
    }
}

/* ---- scripts ---- */

static bool is_shared(UScriptCode script)
{
    return script == USCRIPT_COMMON || script == USCRIPT_INHERITED || script == USCRIPT_UNKNOWN;
}

/* UAX 24, 5.1 and 5.2: what scripts share takes that of what stands before it, a closing bracket
 * that of the opening one; what stands before all takes that of what comes. */
static void resolve_scripts(struct itemizing *itemizing, UErrorCode *code)
{
    struct {
        uint32_t closes;
        UScriptCode script;
    } open[BRACKETS_MAX];
    size_t open_count = 0;
    UScriptCode script = USCRIPT_COMMON;

    for (size_t i = 0; i < itemizing->count; i++) {
        struct character *character = &itemizing->characters[i];
        UChar32 const c = (UChar32)character->code_point;
        int const bracket = u_getIntPropertyValue(c, UCHAR_BIDI_PAIRED_BRACKET_TYPE);

        character->own = uscript_getScript(c, code);
        if (!is_shared(character->own))
            script = character->own;
        if (bracket == U_BPT_OPEN && open_count < BRACKETS_MAX) {
            open[open_count].closes = (uint32_t)u_getBidiPairedBracket(c);
            open[open_count++].script = script;
        }
        if (bracket == U_BPT_CLOSE)
            for (size_t j = open_count; j-- > 0;)
                if (open[j].closes == character->code_point) {
                    script = open[j].script;
                    open_count = j;
                }
        character->script = script;
        if (c == '\n')
            open_count = 0;
    }
    for (size_t i = itemizing->count; i-- > 1;)
        if (itemizing->characters[i - 1].script == USCRIPT_COMMON)
            itemizing->characters[i - 1].script = itemizing->characters[i].script;
}

/* ---- clusters ---- */

static void mark_clusters(struct itemizing *itemizing, UErrorCode *code)
{
    UBreakIterator *clusters = itemizing->itemizer->clusters;
    UText utext = UTEXT_INITIALIZER;
    size_t i = 0;

    utext_openUTF8(&utext, itemizing->text.data, (int64_t)itemizing->text.len, code);
    ubrk_setUText(clusters, &utext, code);
    if (U_SUCCESS(*code))
        for (int32_t at = ubrk_first(clusters); at != UBRK_DONE; at = ubrk_next(clusters)) {
            while (i < itemizing->count && itemizing->characters[i].at < (uint32_t)at)
                i++;
            if (i < itemizing->count)
                itemizing->characters[i].begins_cluster = true;
        }
    utext_close(&utext);
}

static size_t cluster_end(const struct itemizing *itemizing, size_t first)
{
    size_t end = first + 1;

    while (end < itemizing->count && !itemizing->characters[end].begins_cluster)
        end++;
    return end;
}

/* ---- faces ---- */

bool itemize_is_ignorable(uint32_t code_point)
{
    return u_hasBinaryProperty((UChar32)code_point, UCHAR_DEFAULT_IGNORABLE_CODE_POINT);
}

static bool draws_nothing(uint32_t c)
{
    return c == '\n' || itemize_is_ignorable(c);
}

static bool has_units(const struct font_set *fonts, size_t face, const UChar *units, int32_t count)
{
    for (int32_t i = 0; i < count;) {
        UChar32 c;

        U16_NEXT(units, i, count, c);
        if (!draws_nothing((uint32_t)c) && !font_has(fonts, face, (uint32_t)c))
            return false;
    }
    return true;
}

/* A grapheme cluster, and other spellings of it once they are needed: HarfBuzz tries these too. */
struct cluster {
    const struct character *characters; /* count of them */
    size_t count;
    bool is_spelt;
    UChar composed[SPELLING_UNITS_MAX], decomposed[SPELLING_UNITS_MAX];
    int32_t composed_count, decomposed_count; /* 0: it is spelt so already, or too long */
};

static int32_t respell(const UNormalizer2 *form, const UChar *units, int32_t count, UChar *spelling)
{
    UErrorCode code = U_ZERO_ERROR;
    int32_t len = 0;

    if (!unorm2_isNormalized(form, units, count, &code))
        len = unorm2_normalize(form, units, count, spelling, SPELLING_UNITS_MAX, &code);
    return U_SUCCESS(code) ? len : 0;
}

static void spell(const struct itemizer *itemizer, struct cluster *cluster)
{
    UChar units[2 * SPELLING_MAX];
    int32_t count;

    cluster->is_spelt = true;
    cluster->composed_count = cluster->decomposed_count = 0;
    if (cluster->count > SPELLING_MAX)
        return;
    count = units_of(cluster->characters, cluster->count, units);
    cluster->composed_count = respell(itemizer->nfc, units, count, cluster->composed);
    cluster->decomposed_count = respell(itemizer->nfd, units, count, cluster->decomposed);
}

static bool has_cluster(const struct itemizer *itemizer, size_t face, struct cluster *cluster)
{
    size_t missing = 0;

    for (size_t i = 0; i < cluster->count; i++)
        missing += !draws_nothing(cluster->characters[i].code_point) &&
                   !font_has(itemizer->fonts, face, cluster->characters[i].code_point);
    if (missing == 0)
        return true;
    if (!cluster->is_spelt)
        spell(itemizer, cluster);
    return (cluster->decomposed_count > 0 &&
            has_units(itemizer->fonts, face, cluster->decomposed, cluster->decomposed_count)) ||
           (cluster->composed_count > 0 &&
            has_units(itemizer->fonts, face, cluster->composed, cluster->composed_count));
}

/* The faces' order of preference: the first; the others of its weight; the rest. */
static size_t face_in_turn(const struct font_set *fonts, size_t first, size_t turn)
{
    size_t const count = font_set_faces_count(fonts);
    enum font_weight const weight = font_metrics(fonts, first)->weight;
    bool const is_of_weight = turn <= count;

    assert(count > 0);
    if (turn == 0)
        return first;
    turn = (turn - 1) % count;
    return (font_metrics(fonts, turn)->weight == weight) == is_of_weight ? turn : FACE_NONE;
}

static size_t try_faces(const struct itemizer *itemizer, size_t first_face, struct cluster *cluster)
{
    size_t const turns = 1 + 2 * font_set_faces_count(itemizer->fonts);

    for (size_t turn = 0; turn < turns; turn++) {
        size_t const face = face_in_turn(itemizer->fonts, first_face, turn);

        if (face != FACE_NONE && has_cluster(itemizer, face, cluster))
            return face;
    }
    return first_face;
}

/* Behind dozens of faces an ideograph takes microseconds to find, so it is remembered. */
static size_t find_face(struct itemizer *itemizer, size_t first_face, struct cluster *cluster)
{
    uint32_t const c = cluster->characters[0].code_point;
    struct known_face *known = &itemizer->known[c % KNOWN_FACES];

    if (cluster->count > 1)
        return try_faces(itemizer, first_face, cluster);
    if (known->code_point != c || known->first_face != first_face)
        *known = (struct known_face){
            .code_point = c,
            .first_face = (uint16_t)first_face,
            .face = (uint16_t)try_faces(itemizer, first_face, cluster),
        };
    return known->face;
}

static bool is_of_first_scripts(UScriptCode script)
{
    return script == USCRIPT_LATIN || script == USCRIPT_GREEK || script == USCRIPT_CYRILLIC ||
           is_shared(script);
}

static bool is_ideographic(UScriptCode script)
{
    return script == USCRIPT_HAN || script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA ||
           script == USCRIPT_HANGUL || script == USCRIPT_BOPOMOFO;
}

/*
 * Spaces, digits and punctuation inside a text of another script stay in that script's face, which
 * was drawn with them beside its letters; but digits among ideographs are Latin ones.
 */
static bool stays_with_letters(const struct character *character)
{
    UChar32 const c = (UChar32)character->code_point;

    if (!is_shared(character->own) || is_of_first_scripts(character->script))
        return false;
    if (is_ideographic(character->script))
        return u_ispunct(c);
    return u_isUWhiteSpace(c) || u_isdigit(c) || u_ispunct(c);
}

static void choose_faces(struct itemizing *itemizing)
{
    size_t letters = FACE_NONE; /* the face of the last letter */

    for (size_t first = 0, end; first < itemizing->count; first = end) {
        struct character *character = &itemizing->characters[first];
        struct cluster cluster;
        size_t face;

        end = cluster_end(itemizing, first);
        cluster.characters = character;
        cluster.count = end - first;
        cluster.is_spelt = false;
        if (letters != FACE_NONE && stays_with_letters(character) &&
            has_cluster(itemizing->itemizer, letters, &cluster))
            face = letters;
        else
            face = find_face(itemizing->itemizer, itemizing->face, &cluster);
        if (!is_shared(character->own))
            letters = face;
        for (size_t i = first; i < end; i++)
            itemizing->characters[i].face = (uint16_t)face;
    }
}

size_t itemize_face_of(const struct itemizer *itemizer, size_t face, uint32_t code_point)
{
    size_t const turns = 1 + 2 * font_set_faces_count(itemizer->fonts);

    for (size_t turn = 0; turn < turns; turn++) {
        size_t const tried = face_in_turn(itemizer->fonts, face, turn);

        if (tried != FACE_NONE && font_has(itemizer->fonts, tried, code_point))
            return tried;
    }
    return face;
}

/* ---- runs ---- */

static uint32_t script_tag(UScriptCode script)
{
    const char *name = uscript_getShortName(is_shared(script) ? USCRIPT_COMMON : script);

    return (uint32_t)(unsigned char)name[0] << 24 | (uint32_t)(unsigned char)name[1] << 16 |
           (uint32_t)(unsigned char)name[2] << 8 | (unsigned char)name[3];
}

/* A cluster is never torn by a control of direction inside it: it takes what its first character
 * has. */
static bool continues_run(const struct character *before, const struct character *character)
{
    return !character->begins_cluster ||
           (before->level == character->level && before->base == character->base &&
            before->script == character->script && before->face == character->face);
}

static enum status make_runs(struct itemizing *itemizing, struct items *items)
{
    const struct character *head = NULL;

    items->runs = arena_alloc(itemizing->arena, itemizing->count * sizeof *items->runs);
    items->is_boundary = arena_alloc(itemizing->arena, itemizing->text.len);
    if (items->runs == NULL || items->is_boundary == NULL)
        return error_set(itemizing->err, ST_NO_MEMORY, "runs of a text");
    memset(items->is_boundary, 0, itemizing->text.len);
    items->runs_count = 0;
    for (size_t i = 0; i < itemizing->count; i++) {
        const struct character *character = &itemizing->characters[i];
        bool const is_joined =
            i > 0 && u_getCombiningClass((UChar32)character[-1].code_point) == CLASS_VIRAMA;

        items->is_boundary[character->at] = character->begins_cluster && !is_joined;
        if (head == NULL || !continues_run(head, character)) {
            head = character;
            items->runs[items->runs_count++] = (struct text_run){
                .at = character->at,
                .script = script_tag(character->script),
                .face = character->face,
                .level = character->level,
                .base = character->base,
            };
        }
        items->runs[items->runs_count - 1].end =
            i + 1 < itemizing->count ? character[1].at : (uint32_t)itemizing->text.len;
    }
    return ST_OK;
}

enum status itemize(struct itemizer *itemizer, struct text text, size_t face, bool is_right_to_left,
                    struct arena *arena, struct items *items, struct error *err)
{
    struct itemizing itemizing = {
        .itemizer = itemizer, .text = text, .face = face, .arena = arena, .err = err};
    UErrorCode code = U_ZERO_ERROR;
    UChar *units;
    enum status st = begin_icu(err);

    assert(text.len > 0);
    if (st == ST_OK)
        st = read_characters(&itemizing);
    if (st != ST_OK)
        return st;
    units = arena_alloc(arena, 2 * itemizing.count * sizeof *units);
    if (units == NULL)
        return error_set(err, ST_NO_MEMORY, "runs of a text");
    direct(&itemizing, is_right_to_left, units, &code);
    resolve_scripts(&itemizing, &code);
    mark_clusters(&itemizing, &code);
    if (U_SUCCESS(code))
        choose_faces(&itemizing);
    st = end_icu(code, err);
    return st == ST_OK ? make_runs(&itemizing, items) : st;
}
