#include "workers/text.h"

#include "domain/utf8.h"
#include "workers/itemize.h"

#include <assert.h>
#include <hb.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE_STEP_MPT = 250,
    LEADING_PERCENT = 125,
    LANGUAGE_LETTERS_MAX = 3,
    /* Ink of any script's letters stays within these; what piles of marks draw beyond makes no
     * room for itself. */
    INK_TOP_MAX = 2 * FONT_EM,
    INK_BOTTOM_MIN = -3 * FONT_EM / 2,
    ELLIPSIS = 0x2026,
    REPLACEMENT_CHARACTER = 0xFFFD,
};

struct text_setter {
    const struct font_set *fonts;
    hb_buffer_t *buffer;
    struct itemizer *itemizer;
    struct locale_formatter *locale;
    char language_code[LANGUAGE_LETTERS_MAX + 1]; /* of language; "" at first */
    hb_language_t language;
};

enum status text_setter_new(const struct font_set *fonts, struct text_setter **setter,
                            struct error *err)
{
    struct text_setter *made = calloc(1, sizeof *made);
    enum status st;

    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "a text setter");
    made->fonts = fonts;
    made->buffer = hb_buffer_create();
    st = hb_buffer_allocation_successful(made->buffer)
             ? locale_formatter_new(&made->locale, err)
             : error_set(err, ST_NO_MEMORY, "a text setter");
    if (st == ST_OK)
        st = itemizer_new(fonts, &made->itemizer, err);
    if (st == ST_OK)
        *setter = made;
    else
        text_setter_free(&made);
    return st;
}

void text_setter_free(struct text_setter **setter)
{
    if (*setter == NULL)
        return;
    hb_buffer_destroy((*setter)->buffer);
    itemizer_free(&(*setter)->itemizer);
    locale_formatter_free(&(*setter)->locale);
    free(*setter);
    *setter = NULL;
}

/* ---- shaping ---- */

/* What a line can be made of, no less: characters whose glyphs stand together. */
struct unit {
    uint32_t at, end;      /* bytes of the text; the next unit's at is this one's end */
    uint32_t glyph, count; /* in the text's glyphs */
    uint32_t run;
    bool is_blank; /* a space or line feed and nothing else: not one with a mark on it */
    int32_t width;
};

/* How far the ink of neighbouring glyphs reaches. */
struct ink {
    int32_t top, bottom;
    int32_t before, behind; /* beyond the left and right end of their advances; 0 at least */
};

/* A text shaped run by run, and where it may be broken. */
struct shaped {
    struct text text;
    const struct text_run *runs;
    struct glyph *glyphs; /* by run as the runs are written; within a run left to right */
    size_t glyphs_count, glyphs_max;
    struct unit *units; /* units_count of them, in the order of the text */
    size_t units_count, units_max;
    struct ink ink; /* of each unit alone, as far as any reaches */
};

/*
 * HarfBuzz keeps every language that it was ever asked for in one list, for ever. So it is asked
 * for the language's two or three letters only, which bounds the list whatever clients send, and
 * only when they change. Tags with longer languages are registered for none.
 */
static hb_language_t language_from_tag(struct text_setter *setter, struct text tag)
{
    char code[LANGUAGE_LETTERS_MAX + 1] = "";
    size_t len = 0;

    while (len < tag.len && tag.data[len] != '-')
        len++;
    if (len > LANGUAGE_LETTERS_MAX)
        return HB_LANGUAGE_INVALID;
    memcpy(code, tag.data, len);
    if (memcmp(code, setter->language_code, sizeof code) != 0) {
        memcpy(setter->language_code, code, sizeof code);
        setter->language = hb_language_from_string(code, (int)len);
    }
    return setter->language;
}

/*
 * What is drawn for a character that no face has: U+FFFD, which is made for this, else a question
 * mark. The .notdef glyph is the last resort, since PDF/A does not let it be shown (ISO 19005-1,
 * 6.3.5).
 */
static uint32_t substitute_in(hb_font_t *font)
{
    static const hb_codepoint_t SUBSTITUTES[] = {REPLACEMENT_CHARACTER, '?'};
    hb_codepoint_t glyph = 0;

    for (size_t i = 0; i < sizeof SUBSTITUTES / sizeof *SUBSTITUTES && glyph == 0; i++)
        if (!hb_font_get_nominal_glyph(font, SUBSTITUTES[i], &glyph))
            glyph = 0;
    return glyph;
}

/* Whether bytes of a text are a space or line feed and nothing else that is seen. */
static bool is_blank(struct text text, uint32_t at, uint32_t end)
{
    bool has_blank = false;
    uint32_t c = 0;

    if (end == at + 1)
        return text.data[at] == ' ' || text.data[at] == '\n';
    while (at < end) {
        at += (uint32_t)utf8_decode(text.data + at, end - at, &c);
        if (c == ' ' || c == '\n')
            has_blank = true;
        else if (!itemize_is_ignorable(c))
            return false;
    }
    return has_blank;
}

/* The first character from a byte on that is seen or is a blank; U+0000 when there is none. Where
 * HarfBuzz takes out a character that is never seen, what follows may have its place. */
static uint32_t character_seen(struct text text, uint32_t at)
{
    uint32_t c = 0;

    while (at < text.len) {
        at += (uint32_t)utf8_decode(text.data + at, text.len - at, &c);
        if (!itemize_is_ignorable(c))
            return c;
    }
    return 0;
}

static bool is_blank_character(uint32_t c)
{
    return c == 0 || c == ' ' || c == '\n';
}

/*
 * HarfBuzz gives glyph 0 for what a face lacks, after trying other spellings of it. (It does so
 * before a variation selector even where it was told of another glyph.) The substitute moves the
 * pen for a mark, too: two of them, or what stands beside it, would lie over each other.
 */
static void substitute_missing(const struct font_set *fonts, struct glyph *glyph)
{
    glyph->is_missing = true;
    glyph->id = substitute_in(font_shaper(fonts, glyph->face));
    glyph->advance = font_advance(fonts, glyph->face, glyph->id);
    glyph->x_offset = glyph->y_offset = 0;
}

static bool is_right_to_left(const struct text_run *run)
{
    return run->level % 2 == 1;
}

/*
 * Shape one run, with the text around it for context. Glyphs know their own characters, even where
 * a script puts them in another order than it is written in: hence the level of the clusters.
 * Characters that draw nothing leave no glyph.
 */
static void shape_run(struct text_setter *setter, hb_language_t language, struct text text,
                      const struct text_run *run)
{
    hb_buffer_t *buffer = setter->buffer;
    hb_font_t *font = font_shaper(setter->fonts, run->face);
    unsigned flags = HB_BUFFER_FLAG_REMOVE_DEFAULT_IGNORABLES;

    if (run->at == 0)
        flags |= HB_BUFFER_FLAG_BOT; /* a mark that comes first gets a circle */
    if (run->end == text.len)
        flags |= HB_BUFFER_FLAG_EOT;
    hb_buffer_clear_contents(buffer);
    hb_buffer_set_cluster_level(buffer, HB_BUFFER_CLUSTER_LEVEL_CHARACTERS);
    hb_buffer_add_utf8(buffer, text.data, (int)text.len, run->at, (int)(run->end - run->at));
    if (run->script == 0)
        hb_buffer_guess_segment_properties(buffer); /* the script; the rest is known better */
    else
        hb_buffer_set_script(buffer, (hb_script_t)run->script);
    hb_buffer_set_direction(buffer, is_right_to_left(run) ? HB_DIRECTION_RTL : HB_DIRECTION_LTR);
    hb_buffer_set_flags(buffer, (hb_buffer_flags_t)flags);
    hb_buffer_set_language(buffer, language);
    if (font != NULL)
        hb_shape(font, buffer, NULL, 0);
    assert(font != NULL || font_memory_has_ended());
}

/* Make room for more items of an array in an arena. */
static enum status grow(struct arena *arena, void **items, size_t *items_max, size_t used,
                        size_t more, size_t item_bytes, struct error *err)
{
    void *grown;

    if (*items != NULL && used + more <= *items_max)
        return ST_OK;
    assert(*items != NULL || used == 0);
    *items_max = used + more + (used > 0 ? used + more : 0);
    grown = arena_alloc(arena, (*items_max + 1) * item_bytes);
    if (grown == NULL)
        return error_set(err, ST_NO_MEMORY, "shaping a text");
    if (*items != NULL)
        memcpy(grown, *items, used * item_bytes);
    *items = grown;
    return ST_OK;
}

static enum status take_glyphs(struct text_setter *setter, const struct text_run *run,
                               struct arena *arena, struct shaped *shaped, struct error *err)
{
    unsigned int count;
    const hb_glyph_info_t *infos = hb_buffer_get_glyph_infos(setter->buffer, &count);
    const hb_glyph_position_t *positions = hb_buffer_get_glyph_positions(setter->buffer, &count);
    uint32_t const face_glyphs = font_metrics(setter->fonts, run->face)->glyph_count;
    void *glyphs = shaped->glyphs;
    enum status st = ST_OK;

    if (!hb_buffer_allocation_successful(setter->buffer) || font_memory_has_ended())
        st = error_set(err, ST_NO_MEMORY, "shaping a text");
    if (st == ST_OK)
        st = grow(arena, &glyphs, &shaped->glyphs_max, shaped->glyphs_count, count,
                  sizeof *shaped->glyphs, err);
    if (st != ST_OK)
        return st;
    assert(glyphs != NULL);
    shaped->glyphs = glyphs;
    for (unsigned int i = 0; i < count; i++) {
        struct glyph *glyph = &shaped->glyphs[shaped->glyphs_count + i];

        *glyph = (struct glyph){
            /* the tables of a broken face may lead to a glyph that there is not */
            .id = infos[i].codepoint < face_glyphs ? infos[i].codepoint : 0,
            .advance = positions[i].x_advance,
            .x_offset = positions[i].x_offset,
            .y_offset = positions[i].y_offset,
            .at = infos[i].cluster,
            .face = run->face,
            .is_right_to_left = is_right_to_left(run),
        };
        if (glyph->id == 0 && !is_blank_character(character_seen(shaped->text, glyph->at)))
            substitute_missing(setter->fonts, glyph);
    }
    shaped->glyphs_count += count;
    return ST_OK;
}

/* ---- units ---- */

/* The glyphs of a run in the order of its text, as far as a run has one. */
struct order {
    struct glyph *glyphs;
    size_t count;
    bool is_reversed;
};

static struct glyph *ordered(const struct order *order, size_t i)
{
    return &order->glyphs[order->is_reversed ? order->count - 1 - i : i];
}

/* Whether a line may begin with a byte, if it must. A plain text is not cut into clusters: there
 * a mark is what does not move the pen. */
static bool may_begin(const struct items *items, const struct glyph *glyph, uint32_t at)
{
    return items->is_boundary != NULL ? items->is_boundary[at] != 0 : glyph->advance != 0;
}

/*
 * The least byte of the glyphs from each on, kept in `end` until units are known. Where a script
 * moves a vowel sign before its consonant the glyphs of a unit are not in the order of the text.
 */
static void note_least(const struct order *order, uint32_t end)
{
    uint32_t least = end;

    for (size_t i = order->count; i-- > 0;) {
        struct glyph *glyph = ordered(order, i);

        if (least > glyph->at)
            least = glyph->at;
        glyph->end = least;
    }
}

/* The least byte above a glyph's own that another of its unit has, else the unit's end. */
static uint32_t next_byte(const struct order *order, size_t first, size_t last, uint32_t at,
                          uint32_t end)
{
    for (size_t i = first; i < last; i++) {
        uint32_t const other = ordered(order, i)->at;

        if (other > at && other < end)
            end = other;
    }
    return end;
}

/*
 * What the glyphs of a unit stand for: from their byte to the next that another one has. Apart they
 * are grouped each with its own characters, else with the whole unit's.
 */
static void close_glyphs(const struct order *order, const struct unit *unit, bool is_apart)
{
    size_t const first = unit->glyph, last = first + unit->count;
    bool is_in_order = true;

    for (size_t i = first; i + 1 < last && is_in_order; i++)
        is_in_order = ordered(order, i)->at <= ordered(order, i + 1)->at;
    for (size_t i = last; i-- > first;) {
        struct glyph *glyph = ordered(order, i);

        if (!is_in_order)
            glyph->end = next_byte(order, first, last, glyph->at, unit->end);
        else if (i + 1 == last)
            glyph->end = unit->end;
        else if (glyph->at == ordered(order, i + 1)->at)
            glyph->end = ordered(order, i + 1)->end;
        else
            glyph->end = ordered(order, i + 1)->at;
        glyph->group = is_apart ? glyph->at : unit->at;
        glyph->group_end = is_apart ? glyph->end : unit->end;
    }
}

static enum status divide_run(const struct items *items, size_t run_index, size_t first_glyph,
                              struct arena *arena, struct shaped *shaped, struct error *err)
{
    const struct text_run *run = &items->runs[run_index];
    struct order const order = {
        .glyphs = shaped->glyphs + first_glyph,
        .count = shaped->glyphs_count - first_glyph,
        .is_reversed = is_right_to_left(run),
    };
    void *units = shaped->units;
    uint32_t greatest = 0; /* byte before the unit at hand ends */
    enum status st = grow(arena, &units, &shaped->units_max, shaped->units_count, order.count + 1,
                          sizeof *shaped->units, err);

    if (st != ST_OK)
        return st;
    assert(units != NULL);
    shaped->units = units;
    if (order.count == 0) /* nothing is drawn, but it keeps apart what is on both sides (UAX 9) */
        shaped->units[shaped->units_count++] =
            (struct unit){.at = run->at, .run = (uint32_t)run_index};
    note_least(&order, run->end);
    for (size_t i = 0; i < order.count; i++) {
        const struct glyph *glyph = ordered(&order, i);
        bool const begins =
            i == 0 || (greatest < glyph->end && may_begin(items, glyph, glyph->end));

        if (begins)
            shaped->units[shaped->units_count++] = (struct unit){
                .at = i == 0 ? run->at : glyph->end,
                .glyph = (uint32_t)i,
                .run = (uint32_t)run_index,
            };
        shaped->units[shaped->units_count - 1].count++;
        shaped->units[shaped->units_count - 1].width += glyph->advance;
        if (greatest < glyph->at || i == 0)
            greatest = glyph->at;
    }
    return ST_OK;
}

/* Give the units of a run their ends and places, now that all of them are known. */
static void finish_units(const struct items *items, const struct order *order, size_t first_glyph,
                         uint32_t end, struct shaped *shaped, size_t first_unit)
{
    for (size_t i = first_unit; i < shaped->units_count; i++) {
        struct unit *unit = &shaped->units[i];
        size_t const first = unit->glyph;

        unit->end = i + 1 < shaped->units_count ? unit[1].at : end;
        close_glyphs(order, unit, items->is_boundary == NULL);
        unit->is_blank = is_blank(shaped->text, unit->at, unit->end);
        unit->glyph = (uint32_t)(first_glyph +
                                 (order->is_reversed ? order->count - first - unit->count : first));
    }
}

static int32_t at_most(int32_t value, int32_t limit)
{
    return value < limit ? value : limit;
}

static int32_t at_least(int32_t value, int32_t limit)
{
    return value > limit ? value : limit;
}

/* The glyphs stand one behind the other, from left to right. */
static void measure_ink(const struct font_set *fonts, const struct glyph *glyphs, size_t count,
                        struct ink *ink)
{
    int32_t pen = 0, right = 0;

    for (size_t i = 0; i < count; i++) {
        const struct glyph *glyph = &glyphs[i];
        struct glyph_reach const reach = font_reach(fonts, glyph->face, glyph->id);

        if (reach.left < reach.right) {
            ink->top = at_least(reach.top + glyph->y_offset, ink->top);
            ink->bottom = at_most(reach.bottom + glyph->y_offset, ink->bottom);
            ink->before = at_least(-(pen + glyph->x_offset + reach.left), ink->before);
            right = at_least(pen + glyph->x_offset + reach.right, right);
        }
        pen += glyph->advance;
    }
    ink->behind = at_least(right - pen, ink->behind);
}

/* Any unit may come to stand at the end of a line. */
static void measure_units(const struct font_set *fonts, struct shaped *shaped)
{
    for (size_t i = 0; i < shaped->units_count; i++)
        measure_ink(fonts, shaped->glyphs + shaped->units[i].glyph, shaped->units[i].count,
                    &shaped->ink);
}

static enum status shape(struct text_setter *setter, struct text tag, struct text text,
                         const struct items *items, struct arena *arena, struct shaped *shaped,
                         struct error *err)
{
    hb_language_t const language = language_from_tag(setter, tag);
    enum status st = ST_OK;

    *shaped = (struct shaped){.text = text, .runs = items->runs};
    for (size_t i = 0; i < items->runs_count && st == ST_OK; i++) {
        const struct text_run *run = &items->runs[i];
        size_t const first_glyph = shaped->glyphs_count;
        size_t const first_unit = shaped->units_count;

        font_memory_watch();
        shape_run(setter, language, text, run);
        st = take_glyphs(setter, run, arena, shaped, err);
        if (st == ST_OK)
            st = divide_run(items, i, first_glyph, arena, shaped, err);
        if (st == ST_OK)
            finish_units(items,
                         &(struct order){.glyphs = shaped->glyphs + first_glyph,
                                         .count = shaped->glyphs_count - first_glyph,
                                         .is_reversed = is_right_to_left(run)},
                         first_glyph, run->end, shaped, first_unit);
    }
    if (st == ST_OK)
        measure_units(setter->fonts, shaped);
    return st;
}

/* ---- lines ---- */

/* A line while it is being found: units first..end are shown, next begins the line after. */
struct span {
    size_t first, end, next;
    int64_t width;
};

/* What one attempt to break a text into lines came to. */
struct attempt {
    struct span *spans; /* room for spans_max */
    size_t spans_max;
    size_t count;
    bool is_complete;  /* the whole text is on the lines */
    bool breaks_words; /* a word was broken inside */
};

struct breaking {
    const struct shaped *shaped;
    const struct locale_break *breaks;
    size_t breaks_count;
};

static int64_t width_of(const struct shaped *shaped, size_t first, size_t end)
{
    int64_t width = 0;

    for (size_t i = first; i < end; i++)
        width += shaped->units[i].width;
    return width;
}

/* The first unit at or after a byte offset. */
static size_t unit_at(const struct shaped *shaped, size_t from, size_t offset)
{
    while (from < shaped->units_count && shaped->units[from].at < offset)
        from++;
    return from;
}

static struct span span_of(const struct shaped *shaped, size_t first, size_t next)
{
    struct span span = {.first = first, .end = next, .next = next};

    while (span.end > first && shaped->units[span.end - 1].is_blank)
        span.end--;
    span.width = width_of(shaped, first, span.end);
    return span;
}

/* As many whole units from first on as are no wider than limit, but one at least. */
static struct span span_by_force(const struct shaped *shaped, size_t first, int64_t limit)
{
    size_t next = first;
    int64_t width = 0;

    while (next < shaped->units_count) {
        width += shaped->units[next].width;
        if (width > limit && next > first)
            break;
        next++;
    }
    return span_of(shaped, first, next);
}

/* The longest line from unit first that fits; *break_index walks over the breaks. */
static struct span next_span(const struct breaking *breaking, size_t first, int64_t limit,
                             size_t *break_index, bool *breaks_word)
{
    struct span best = {0};
    bool has_best = false;
    size_t next = first;

    for (; *break_index < breaking->breaks_count; (*break_index)++) {
        const struct locale_break *at = &breaking->breaks[*break_index];
        struct span span;

        next = unit_at(breaking->shaped, next, at->offset);
        if (next <= first)
            continue;
        span = span_of(breaking->shaped, first, next);
        if (span.width > limit)
            break;
        best = span;
        has_best = true;
        if (at->is_mandatory) {
            (*break_index)++;
            break;
        }
    }
    if (!has_best) {
        best = span_by_force(breaking->shaped, first, limit);
        *breaks_word = true;
    }
    return best;
}

static void break_lines(const struct breaking *breaking, int64_t limit, struct attempt *attempt)
{
    size_t break_index = 0;
    size_t first = 0;

    attempt->count = 0;
    attempt->breaks_words = false;
    while (first < breaking->shaped->units_count && attempt->count < attempt->spans_max) {
        struct span const span =
            next_span(breaking, first, limit, &break_index, &attempt->breaks_words);

        attempt->spans[attempt->count++] = span;
        first = span.next;
    }
    attempt->is_complete = first >= breaking->shaped->units_count;
}

/* ---- fitting ---- */

struct fitting {
    struct text_setter *setter;
    struct text tag;
    const struct text_fit *fit;
    struct arena *arena;
    const struct font_metrics *metrics;
    struct shaped shaped;
    int32_t ink_top, ink_bottom; /* of the text, within reason */
};

/* What ink may need beside the advances of a line, whichever units stand at its ends. */
static int64_t overhang(const struct fitting *fitting)
{
    return (int64_t)fitting->shaped.ink.before + fitting->shaped.ink.behind;
}

/* The box's width at a size, FONT_EM to the em. */
static int64_t limit_at(const struct fitting *fitting, int32_t size_mpt)
{
    return (int64_t)fitting->fit->width_mpt * FONT_EM / size_mpt - overhang(fitting);
}

static int64_t ink_height(const struct fitting *fitting)
{
    return (int64_t)fitting->ink_top - fitting->ink_bottom;
}

/* Far enough that the ink of no line meets that of the next. */
static int32_t leading_at(const struct fitting *fitting, int32_t size_mpt)
{
    int64_t const usual = (int64_t)size_mpt * LEADING_PERCENT / 100;
    int64_t const least = ink_height(fitting) * size_mpt / FONT_EM;

    return (int32_t)(usual > least ? usual : least);
}

/* Of one line: the face's ascent and descent, and the ink beyond them. */
static int64_t height_at(const struct fitting *fitting, int32_t size_mpt)
{
    int64_t const unit = FONT_EM / FONT_SCALE;
    int64_t top = fitting->metrics->ascent * unit;
    int64_t bottom = fitting->metrics->descent * unit;

    if (top < fitting->ink_top)
        top = fitting->ink_top;
    if (bottom > fitting->ink_bottom)
        bottom = fitting->ink_bottom;
    return (top - bottom) * size_mpt / FONT_EM;
}

/* How many lines of a size the box has room for, at least one. */
static size_t lines_at(const struct fitting *fitting, int32_t size_mpt)
{
    int64_t const slack = fitting->fit->height_mpt - height_at(fitting, size_mpt);
    size_t const room = slack < 0 ? 1 : 1 + (size_t)(slack / leading_at(fitting, size_mpt));

    return room < fitting->fit->lines_max ? room : fitting->fit->lines_max;
}

/* Whether the ink of one line of a size is as high as the box at most. */
static bool ink_fits(const struct fitting *fitting, int32_t size_mpt)
{
    return ink_height(fitting) * size_mpt / FONT_EM <= fitting->fit->height_mpt;
}

/* The size at which the text stands on one line, or 0 if that is below the floor. */
static int32_t size_on_one_line(const struct fitting *fitting, int64_t width)
{
    const struct text_fit *fit = fitting->fit;
    int64_t size = fit->size_mpt;

    assert(fitting->shaped.text.data != NULL);
    if (memchr(fitting->shaped.text.data, '\n', fitting->shaped.text.len) != NULL)
        return 0;
    if (width <= limit_at(fitting, fit->size_mpt) && ink_fits(fitting, fit->size_mpt))
        return fit->size_mpt;
    if (width > limit_at(fitting, fit->size_mpt)) {
        assert(width > 0);
        size = (int64_t)fit->width_mpt * FONT_EM / (width + overhang(fitting));
        size -= size % SIZE_STEP_MPT;
    }
    while (size >= fit->floor_mpt && !ink_fits(fitting, (int32_t)size))
        size -= SIZE_STEP_MPT;
    return size >= fit->floor_mpt ? (int32_t)size : 0;
}

/* The largest size at which the lines fit without breaking a word, else the least size. */
static int32_t size_wrapped(const struct fitting *fitting, const struct breaking *breaking,
                            struct attempt *attempt)
{
    const struct text_fit *fit = fitting->fit;

    for (int32_t size = fit->size_mpt; size > fit->wrapped_floor_mpt; size -= SIZE_STEP_MPT) {
        attempt->spans_max = lines_at(fitting, size);
        break_lines(breaking, limit_at(fitting, size), attempt);
        if (attempt->is_complete && !attempt->breaks_words && ink_fits(fitting, size))
            return size;
    }
    attempt->spans_max = lines_at(fitting, fit->wrapped_floor_mpt);
    break_lines(breaking, limit_at(fitting, fit->wrapped_floor_mpt), attempt);
    return fit->wrapped_floor_mpt;
}

/* ---- the order on a line ---- */

/* Units of one run on a line: glyphs that are seen side by side, in an order that stays. */
struct stretch {
    const struct glyph *glyphs;
    size_t count;
    uint8_t level;
};

/* UAX 9, rule L2: from the highest level to the lowest odd one, turn round what is at it or above.
 */
static void turn_round(struct stretch *stretches, size_t count)
{
    uint8_t highest = 0;

    for (size_t i = 0; i < count; i++)
        if (highest < stretches[i].level)
            highest = stretches[i].level;
    for (uint8_t level = highest; level > 0; level--)
        for (size_t first = 0; first < count; first++) {
            size_t end = first;

            while (end < count && stretches[end].level >= level)
                end++;
            for (size_t i = first, j = end; i + 1 < j; i++) {
                struct stretch const moved = stretches[--j];

                stretches[j] = stretches[i];
                stretches[i] = moved;
            }
            if (end > first)
                first = end;
        }
}

/* Whether a line is one run from left to right. */
static bool is_plain_span(const struct shaped *shaped, const struct span *span)
{
    return span->end > span->first &&
           shaped->units[span->first].run == shaped->units[span->end - 1].run &&
           shaped->runs[shaped->units[span->first].run].level == 0;
}

static size_t list_stretches(const struct shaped *shaped, const struct span *span,
                             struct stretch *stretches)
{
    size_t count = 0;

    if (is_plain_span(shaped, span)) {
        const struct unit *first = &shaped->units[span->first],
                          *last = &shaped->units[span->end - 1];

        stretches[0] = (struct stretch){
            .glyphs = shaped->glyphs + first->glyph,
            .count = last->glyph + last->count - first->glyph,
        };
        return 1;
    }
    for (size_t i = span->first; i < span->end; i++) {
        const struct unit *unit = &shaped->units[i];
        const struct glyph *glyphs = shaped->glyphs + unit->glyph;

        if (i == span->first || unit[-1].run != unit->run)
            stretches[count++] =
                (struct stretch){.glyphs = glyphs, .level = shaped->runs[unit->run].level};
        if (stretches[count - 1].glyphs > glyphs) /* they grow to the left */
            stretches[count - 1].glyphs = glyphs;
        stretches[count - 1].count += unit->count;
    }
    return count;
}

static enum status place_stretches(const struct fitting *fitting, const struct stretch *stretches,
                                   size_t count, struct text_line *line, struct error *err)
{
    struct ink ink = {0};
    struct glyph *glyphs;
    size_t used = 0;

    line->glyphs_count = 0;
    for (size_t i = 0; i < count; i++)
        line->glyphs_count += stretches[i].count;
    line->glyphs = count > 0 ? stretches[0].glyphs : NULL;
    if (count > 1) {
        glyphs = arena_alloc(fitting->arena, (line->glyphs_count + 1) * sizeof *glyphs);
        if (glyphs == NULL)
            return error_set(err, ST_NO_MEMORY, "a line of text");
        for (size_t i = 0; i < count; i++) {
            memcpy(glyphs + used, stretches[i].glyphs, stretches[i].count * sizeof *glyphs);
            used += stretches[i].count;
        }
        line->glyphs = glyphs;
    }
    if (fitting->shaped.ink.before > 0 || fitting->shaped.ink.behind > 0 ||
        line->glyphs_count < fitting->shaped.glyphs_count)
        measure_ink(fitting->setter->fonts, line->glyphs, line->glyphs_count, &ink);
    else
        ink = fitting->shaped.ink;
    line->top = ink.top;
    line->bottom = ink.bottom;
    line->before = ink.before;
    line->behind = ink.behind;
    return ST_OK;
}

static uint8_t base_of(const struct shaped *shaped, size_t unit)
{
    return unit < shaped->units_count ? shaped->runs[shaped->units[unit].run].base : 0;
}

/*
 * A line as it is seen. Letters keep the forms that they have in the unbroken word, as CSS Text 3,
 * 5.6 asks, so that nothing needs to be shaped anew.
 *
 * In:      mark  an ellipsis to end it with; glyphs NULL: none
 */
static enum status compose_line(const struct fitting *fitting, const struct span *span,
                                struct stretch mark, struct text_line *line, struct error *err)
{
    const struct shaped *shaped = &fitting->shaped;
    size_t const from = span->first < shaped->units_count ? shaped->units[span->first].at
                                                          : (uint32_t)shaped->text.len;
    size_t const to = span->end > span->first ? shaped->units[span->end - 1].end : from;
    size_t const stretches_max = is_plain_span(shaped, span) ? 2 : span->end - span->first + 1;
    struct stretch *stretches = arena_alloc(fitting->arena, stretches_max * sizeof *stretches);
    size_t count;

    if (stretches == NULL)
        return error_set(err, ST_NO_MEMORY, "a line of text");
    *line = (struct text_line){
        .width = (int32_t)span->width,
        .source = {shaped->text.data + from, to - from},
        .is_right_to_left = base_of(shaped, span->first) % 2 == 1,
    };
    count = list_stretches(shaped, span, stretches);
    if (mark.glyphs != NULL)
        stretches[count++] = mark;
    turn_round(stretches, count);
    return place_stretches(fitting, stretches, count, line, err);
}

/* Where it stands it stands for what is not shown. */
static void stand_for_nothing(struct glyph *glyph, uint32_t at)
{
    glyph->at = glyph->end = glyph->group = glyph->group_end = at;
}

/* Take units off the line's end until an ellipsis fits behind it. */
static enum status cut_short(const struct fitting *fitting, int64_t limit, struct span span,
                             struct text_line *line, struct error *err)
{
    static const char TEXT[] = "\xE2\x80\xA6";
    const struct shaped *shaped = &fitting->shaped;
    uint8_t const base = base_of(shaped, span.first);
    struct text_run run = {
        .end = 3,
        .face = (uint16_t)itemize_face_of(fitting->setter->itemizer, fitting->fit->face, ELLIPSIS),
        .level = base,
    };
    struct items const items = {.runs = &run, .runs_count = 1};
    struct shaped mark;
    int64_t width;
    uint32_t at;
    enum status st = shape(fitting->setter, fitting->tag, (struct text){TEXT, 3}, &items,
                           fitting->arena, &mark, err);

    if (st != ST_OK)
        return st;
    width = width_of(&mark, 0, mark.units_count);
    while (span.end > span.first &&
           (span.width + width > limit || shaped->units[span.end - 1].is_blank))
        span.width -= shaped->units[--span.end].width;
    at = span.end > span.first ? shaped->units[span.end - 1].end : shaped->units[span.first].at;
    for (size_t i = 0; i < mark.glyphs_count; i++)
        stand_for_nothing(&mark.glyphs[i], at);
    st = compose_line(fitting, &span,
                      (struct stretch){mark.glyphs, mark.glyphs_count, .level = base}, line, err);
    line->width += (int32_t)width;
    line->has_ellipsis = true;
    return st;
}

static enum status block_from_attempt(const struct fitting *fitting, int32_t size_mpt,
                                      const struct attempt *attempt, struct text_block *block,
                                      struct error *err)
{
    enum status st = ST_OK;

    *block = (struct text_block){
        .face = fitting->fit->face,
        .size_mpt = size_mpt,
        .leading_mpt = leading_at(fitting, size_mpt),
        .text = fitting->shaped.text,
    };
    block->lines = arena_alloc(fitting->arena, (attempt->count + 1) * sizeof *block->lines);
    if (block->lines == NULL)
        return error_set(err, ST_NO_MEMORY, "lines of text");
    for (size_t i = 0; i < attempt->count && st == ST_OK; i++) {
        bool const is_cut = i + 1 == attempt->count && !attempt->is_complete;

        if (is_cut)
            st = cut_short(fitting, limit_at(fitting, size_mpt), attempt->spans[i],
                           &block->lines[i], err);
        else
            st = compose_line(fitting, &attempt->spans[i], (struct stretch){0}, &block->lines[i],
                              err);
    }
    block->lines_count = attempt->count;
    return st;
}

static enum status fit_wrapped(const struct fitting *fitting, struct text_block *block,
                               struct error *err)
{
    struct locale_break *breaks;
    struct breaking breaking = {.shaped = &fitting->shaped};
    struct attempt attempt = {
        .spans = arena_alloc(fitting->arena, fitting->fit->lines_max * sizeof *attempt.spans)};
    int32_t size;
    enum status st;

    if (attempt.spans == NULL)
        return error_set(err, ST_NO_MEMORY, "lines of text");
    st = locale_breaks(fitting->setter->locale, fitting->tag, fitting->shaped.text, fitting->arena,
                       &breaks, &breaking.breaks_count, err);
    if (st != ST_OK)
        return st;
    breaking.breaks = breaks;
    size = size_wrapped(fitting, &breaking, &attempt);
    return block_from_attempt(fitting, size, &attempt, block, err);
}

/* ---- what no face has ---- */

static size_t count_missing(const struct shaped *shaped)
{
    size_t count = 0;

    for (size_t i = 0; i < shaped->glyphs_count; i++)
        count += shaped->glyphs[i].is_missing;
    return count;
}

static enum status find_missing(const struct fitting *fitting, struct text_block *block,
                                struct error *err)
{
    const struct shaped *shaped = &fitting->shaped;
    size_t const count = count_missing(shaped);
    uint32_t *missing;

    if (count == 0)
        return ST_OK;
    missing = arena_alloc(fitting->arena, count * sizeof *missing);
    if (missing == NULL)
        return error_set(err, ST_NO_MEMORY, "missing characters");
    for (size_t i = 0; i < shaped->units_count; i++) {
        const struct unit *unit = &shaped->units[i];
        struct order const order = {
            .glyphs = shaped->glyphs + unit->glyph,
            .count = unit->count,
            .is_reversed = is_right_to_left(&shaped->runs[unit->run]),
        };

        for (size_t g = 0; g < order.count; g++) {
            const struct glyph *glyph = ordered(&order, g);

            if (glyph->is_missing)
                missing[block->missing_count++] = character_seen(shaped->text, glyph->at);
        }
    }
    block->missing = missing;
    return ST_OK;
}

/* ---- texts ---- */

/* A plain text is shaped in one piece, and only if the face lacks some of it cut into runs. */
static enum status shape_text(struct fitting *fitting, struct text text, struct error *err)
{
    const struct text_fit *fit = fitting->fit;
    struct text_run run = {.end = (uint32_t)text.len, .face = (uint16_t)fit->face};
    struct items items = {.runs = arena_alloc(fitting->arena, sizeof run), .runs_count = 1};
    enum status st;

    if (items.runs == NULL)
        return error_set(err, ST_NO_MEMORY, "runs of a text");
    items.runs[0] = run;
    if (itemize_is_plain(text, fit->is_right_to_left)) {
        st = shape(fitting->setter, fitting->tag, text, &items, fitting->arena, &fitting->shaped,
                   err);
        if (st != ST_OK || count_missing(&fitting->shaped) == 0)
            return st;
    }
    st = itemize(fitting->setter->itemizer, text, fit->face, fit->is_right_to_left, fitting->arena,
                 &items, err);
    return st == ST_OK ? shape(fitting->setter, fitting->tag, text, &items, fitting->arena,
                               &fitting->shaped, err)
                       : st;
}

enum status text_set(struct text_setter *setter, struct text tag, struct text text,
                     const struct text_fit *fit, struct arena *arena, struct text_block *block,
                     struct error *err)
{
    struct fitting fitting = {
        .setter = setter,
        .tag = tag,
        .fit = fit,
        .arena = arena,
        .metrics = font_metrics(setter->fonts, fit->face),
    };
    struct span whole;
    int32_t size;
    enum status st;

    assert(fit->lines_max >= 1 && fit->wrapped_floor_mpt > 0);
    *block = (struct text_block){.face = fit->face, .size_mpt = fit->size_mpt, .text = text};
    if (text.len == 0)
        return ST_OK;
    st = shape_text(&fitting, text, err);
    if (st != ST_OK)
        return st;
    fitting.ink_top = at_most(fitting.shaped.ink.top, INK_TOP_MAX);
    fitting.ink_bottom = -at_most(-fitting.shaped.ink.bottom, -INK_BOTTOM_MIN);
    whole = span_of(&fitting.shaped, 0, fitting.shaped.units_count);
    size = size_on_one_line(&fitting, whole.width);
    if (size > 0)
        st = block_from_attempt(&fitting, size,
                                &(struct attempt){.spans = &whole, .count = 1, .is_complete = true},
                                block, err);
    else
        st = fit_wrapped(&fitting, block, err);
    return st == ST_OK ? find_missing(&fitting, block, err) : st;
}
