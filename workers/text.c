#include "workers/text.h"

#include "domain/utf8.h"

#include <assert.h>
#include <hb.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE_STEP_MPT = 250,
    LEADING_PERCENT = 125,
    LANGUAGE_LETTERS_MAX = 3,
};

struct text_setter {
    const struct font_set *fonts;
    hb_buffer_t *buffer;
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
    locale_formatter_free(&(*setter)->locale);
    free(*setter);
    *setter = NULL;
}

/* ---- shaping ---- */

/* A text shaped as one run, and where it may be broken. */
struct shaped {
    struct text text;
    struct glyph *glyphs; /* glyphs_count of them, `at` never falling */
    size_t glyphs_count;
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

/* The byte offset behind the characters that a glyph stands for. */
static size_t end_of(const struct shaped *shaped, size_t glyph)
{
    uint32_t const at = shaped->glyphs[glyph].at;

    while (glyph < shaped->glyphs_count && shaped->glyphs[glyph].at == at)
        glyph++;
    return glyph < shaped->glyphs_count ? shaped->glyphs[glyph].at : shaped->text.len;
}

static enum status shape(struct text_setter *setter, struct text tag, struct text text, size_t face,
                         struct arena *arena, struct shaped *shaped, struct error *err)
{
    hb_buffer_t *buffer = setter->buffer;
    unsigned int count;
    const hb_glyph_info_t *infos;
    const hb_glyph_position_t *positions;

    font_memory_watch();
    hb_buffer_clear_contents(buffer);
    hb_buffer_set_cluster_level(buffer, HB_BUFFER_CLUSTER_LEVEL_MONOTONE_CHARACTERS);
    hb_buffer_add_utf8(buffer, text.data, (int)text.len, 0, (int)text.len);
    hb_buffer_guess_segment_properties(buffer); /* the script; the rest is known better */
    hb_buffer_set_direction(buffer, HB_DIRECTION_LTR);
    hb_buffer_set_flags(buffer, HB_BUFFER_FLAG_BOT); /* a mark that comes first gets a circle */
    hb_buffer_set_language(buffer, language_from_tag(setter, tag));
    hb_shape(font_shaper(setter->fonts, face), buffer, NULL, 0);
    infos = hb_buffer_get_glyph_infos(buffer, &count);
    positions = hb_buffer_get_glyph_positions(buffer, &count);
    shaped->glyphs = arena_alloc(arena, (count + 1) * sizeof *shaped->glyphs);
    if (!hb_buffer_allocation_successful(buffer) || shaped->glyphs == NULL ||
        font_memory_has_ended())
        return error_set(err, ST_NO_MEMORY, "shaping a text");
    for (unsigned int i = 0; i < count; i++)
        shaped->glyphs[i] = (struct glyph){
            .id = infos[i].codepoint,
            .advance = positions[i].x_advance,
            .x_offset = positions[i].x_offset,
            .y_offset = positions[i].y_offset,
            .at = infos[i].cluster,
            .face = (uint16_t)face,
        };
    shaped->glyphs_count = count;
    shaped->text = text;
    for (size_t i = 0; i < count; i++)
        shaped->glyphs[i].end = (uint32_t)end_of(shaped, i);
    return ST_OK;
}

/* Whether a glyph is a space or line feed and nothing else: not one with a mark on it. */
static bool is_blank(const struct shaped *shaped, size_t glyph)
{
    size_t const at = shaped->glyphs[glyph].at;
    char const c = shaped->text.data[at];

    return (c == ' ' || c == '\n') && end_of(shaped, glyph) == at + 1;
}

/* ---- lines ---- */

/* A line while it is being found: glyphs first..end are shown, next begins the line after. */
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
        width += shaped->glyphs[i].advance;
    return width;
}

/* The first glyph at or after a byte offset. */
static size_t glyph_at(const struct shaped *shaped, size_t from, size_t offset)
{
    while (from < shaped->glyphs_count && shaped->glyphs[from].at < offset)
        from++;
    return from;
}

static struct span span_of(const struct shaped *shaped, size_t first, size_t next)
{
    struct span span = {.first = first, .end = next, .next = next};

    while (span.end > first && is_blank(shaped, span.end - 1))
        span.end--;
    span.width = width_of(shaped, first, span.end);
    return span;
}

/* Whether a line must not end before a glyph: it belongs to the glyph before it, as a part of the
 * same character or as a mark on it. */
static bool is_inside_character(const struct shaped *shaped, size_t glyph)
{
    return glyph > 0 && glyph < shaped->glyphs_count &&
           (shaped->glyphs[glyph].advance == 0 ||
            shaped->glyphs[glyph].at == shaped->glyphs[glyph - 1].at);
}

/* As many whole characters from first on as are no wider than limit, but one at least. */
static struct span span_by_force(const struct shaped *shaped, size_t first, int64_t limit)
{
    size_t next = first;
    int64_t width = 0;

    while (next < shaped->glyphs_count) {
        size_t end = next;

        do
            width += shaped->glyphs[end++].advance;
        while (is_inside_character(shaped, end));
        if (width > limit && next > first)
            break;
        next = end;
    }
    return span_of(shaped, first, next);
}

/* The longest line from glyph first that fits; *break_index walks over the breaks. */
static struct span next_span(const struct breaking *breaking, size_t first, int64_t limit,
                             size_t *break_index, bool *breaks_word)
{
    struct span best = {0};
    bool has_best = false;
    size_t next = first;

    for (; *break_index < breaking->breaks_count; (*break_index)++) {
        const struct locale_break *at = &breaking->breaks[*break_index];
        struct span span;

        next = glyph_at(breaking->shaped, next, at->offset);
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
    while (first < breaking->shaped->glyphs_count && attempt->count < attempt->spans_max) {
        struct span const span =
            next_span(breaking, first, limit, &break_index, &attempt->breaks_words);

        attempt->spans[attempt->count++] = span;
        first = span.next;
    }
    attempt->is_complete = first >= breaking->shaped->glyphs_count;
}

/* ---- fitting ---- */

struct fitting {
    struct text_setter *setter;
    struct text tag;
    const struct text_fit *fit;
    struct arena *arena;
    const struct font_metrics *metrics;
    struct shaped shaped;
};

/* The box's width at a size, FONT_EM to the em. */
static int64_t limit_at(const struct fitting *fitting, int32_t size_mpt)
{
    return (int64_t)fitting->fit->width_mpt * FONT_EM / size_mpt;
}

static int32_t leading_at(int32_t size_mpt)
{
    return (int32_t)((int64_t)size_mpt * LEADING_PERCENT / 100);
}

/* How many lines of a size the box has room for, ascent and descent included; at least one. */
static size_t lines_at(const struct fitting *fitting, int32_t size_mpt)
{
    int64_t const one_line =
        (int64_t)(fitting->metrics->ascent - fitting->metrics->descent) * size_mpt / FONT_SCALE;
    int64_t const slack = fitting->fit->height_mpt - one_line;
    size_t const room = slack < 0 ? 1 : 1 + (size_t)(slack / leading_at(size_mpt));

    return room < fitting->fit->lines_max ? room : fitting->fit->lines_max;
}

/* The size at which the text stands on one line, or 0 if that is below the floor. */
static int32_t size_on_one_line(const struct fitting *fitting, int64_t width)
{
    const struct text_fit *fit = fitting->fit;
    int64_t size;

    if (memchr(fitting->shaped.text.data, '\n', fitting->shaped.text.len) != NULL)
        return 0;
    if (width <= limit_at(fitting, fit->size_mpt))
        return fit->size_mpt;
    assert(width > 0);
    size = (int64_t)fit->width_mpt * FONT_EM / width;
    size -= size % SIZE_STEP_MPT;
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
        if (attempt->is_complete && !attempt->breaks_words)
            return size;
    }
    attempt->spans_max = lines_at(fitting, fit->wrapped_floor_mpt);
    break_lines(breaking, limit_at(fitting, fit->wrapped_floor_mpt), attempt);
    return fit->wrapped_floor_mpt;
}

static struct text_line line_from_span(const struct fitting *fitting, const struct span *span)
{
    const struct shaped *shaped = &fitting->shaped;
    size_t const from =
        span->first < shaped->glyphs_count ? shaped->glyphs[span->first].at : shaped->text.len;
    size_t const to =
        span->end < shaped->glyphs_count ? shaped->glyphs[span->end].at : shaped->text.len;

    return (struct text_line){
        .glyphs = shaped->glyphs + span->first,
        .glyphs_count = span->end - span->first,
        .width = (int32_t)span->width,
        .source = {shaped->text.data + from, to - from},
    };
}

static void measure_ink(const struct font_set *fonts, struct text_line *line)
{
    for (size_t i = 0; i < line->glyphs_count; i++) {
        const struct glyph *glyph = &line->glyphs[i];
        struct glyph_reach const reach = font_reach(fonts, glyph->face, glyph->id);

        if (line->top < reach.top + glyph->y_offset)
            line->top = reach.top + glyph->y_offset;
        if (line->bottom > reach.bottom + glyph->y_offset)
            line->bottom = reach.bottom + glyph->y_offset;
    }
}

/* Take characters off the line's end until an ellipsis fits behind it. */
static enum status cut_short(const struct fitting *fitting, int64_t limit, struct span span,
                             struct text_line *line, struct error *err)
{
    static const char ELLIPSIS[] = "\xE2\x80\xA6";
    struct shaped mark;
    struct glyph *glyphs;
    enum status st = shape(fitting->setter, fitting->tag, (struct text){ELLIPSIS, 3},
                           fitting->fit->face, fitting->arena, &mark, err);
    int64_t mark_width;

    if (st != ST_OK)
        return st;
    mark_width = width_of(&mark, 0, mark.glyphs_count);
    while (span.end > span.first &&
           (span.width + mark_width > limit || is_blank(&fitting->shaped, span.end - 1) ||
            is_inside_character(&fitting->shaped, span.end)))
        span.width -= fitting->shaped.glyphs[--span.end].advance;
    *line = line_from_span(fitting, &span);
    glyphs = arena_alloc(fitting->arena, (line->glyphs_count + mark.glyphs_count) * sizeof *glyphs);
    if (glyphs == NULL)
        return error_set(err, ST_NO_MEMORY, "a line of text");
    if (line->glyphs_count > 0)
        memcpy(glyphs, line->glyphs, line->glyphs_count * sizeof *glyphs);
    for (size_t i = 0; i < mark.glyphs_count; i++) {
        mark.glyphs[i].at = mark.glyphs[i].end = (uint32_t)line->source.len;
        glyphs[line->glyphs_count + i] = mark.glyphs[i];
    }
    line->glyphs = glyphs;
    line->glyphs_count += mark.glyphs_count;
    line->width += (int32_t)mark_width;
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
        .leading_mpt = leading_at(size_mpt),
        .text = fitting->shaped.text,
    };
    block->lines = arena_alloc(fitting->arena, attempt->count * sizeof *block->lines);
    if (block->lines == NULL)
        return error_set(err, ST_NO_MEMORY, "lines of text");
    for (size_t i = 0; i < attempt->count && st == ST_OK; i++) {
        bool const is_cut = i + 1 == attempt->count && !attempt->is_complete;

        if (is_cut)
            st = cut_short(fitting, limit_at(fitting, size_mpt), attempt->spans[i],
                           &block->lines[i], err);
        else
            block->lines[i] = line_from_span(fitting, &attempt->spans[i]);
        measure_ink(fitting->setter->fonts, &block->lines[i]);
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

static size_t count_missing(const struct shaped *shaped)
{
    size_t count = 0;

    for (size_t i = 0; i < shaped->glyphs_count; i++)
        count += shaped->glyphs[i].id == 0 && !is_blank(shaped, i);
    return count;
}

/* HarfBuzz gives glyph 0 for what the face lacks, after trying other spellings of it. */
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
    for (size_t i = 0; i < shaped->glyphs_count; i++)
        if (shaped->glyphs[i].id == 0 && !is_blank(shaped, i))
            utf8_decode(shaped->text.data + shaped->glyphs[i].at,
                        shaped->text.len - shaped->glyphs[i].at, &missing[block->missing_count++]);
    block->missing = missing;
    return ST_OK;
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
    st = shape(setter, tag, text, fit->face, arena, &fitting.shaped, err);
    if (st != ST_OK)
        return st;
    whole = span_of(&fitting.shaped, 0, fitting.shaped.glyphs_count);
    size = size_on_one_line(&fitting, whole.width);
    if (size > 0)
        st = block_from_attempt(&fitting, size,
                                &(struct attempt){.spans = &whole, .count = 1, .is_complete = true},
                                block, err);
    else
        st = fit_wrapped(&fitting, block, err);
    return st == ST_OK ? find_missing(&fitting, block, err) : st;
}
