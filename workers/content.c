#include "workers/content.h"

#include "domain/characters.h"
#include "domain/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_CHARS_MAX = 24,
    OPERATOR_CHARS_MAX = 8 * NUMBER_CHARS_MAX, /* any operator here with its operands */
    GLYPH_CHARS_MAX = 16 + 6 * NUMBER_CHARS_MAX,
    GLYPHS_FEW = 128, /* a line of no more needs no memory of its own */
    HAIR = FONT_EM / FONT_SCALE,
    HAIR_MAX = 5 * HAIR,
    BLACK = 0x000000,
    WHITE = 0xFFFFFF,
};

void content_init(struct content *content, struct bytes *out)
{
    *content = (struct content){.out = out, .color = BLACK};
}

void content_init_saved(struct content *content, struct bytes *out)
{
    content_init(content, out);
    content->saved_colors[content->saves++] = BLACK;
}

enum status content_status(const struct content *content, struct error *err)
{
    return content->is_out_of_memory ? error_set(err, ST_NO_MEMORY, "a page's content") : ST_OK;
}

/* ---- numbers and words, after room was made for them ---- */

static bool reserve(struct content *content, size_t chars)
{
    if (bytes_reserve(content->out, chars, NULL) != ST_OK)
        content->is_out_of_memory = true;
    return !content->is_out_of_memory;
}

static void put_char(struct content *content, char c)
{
    content->out->data[content->out->len++] = (uint8_t)c;
}

static void put(struct content *content, const char *word)
{
    size_t const len = strlen(word);

    memcpy(content->out->data + content->out->len, word, len);
    content->out->len += len;
}

static void put_digits(struct content *content, uint64_t value, int digits_min)
{
    char digits[NUMBER_CHARS_MAX];
    int count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || count < digits_min);
    while (count > 0)
        put_char(content, digits[--count]);
}

/* value / 10^decimals, without zeros at the end, and a space. */
static void put_number(struct content *content, int64_t value, int decimals)
{
    uint64_t rest = value < 0 ? (uint64_t)-value : (uint64_t)value;
    uint64_t scale = 1;

    while (decimals > 0 && rest % 10 == 0) {
        rest /= 10;
        decimals--;
    }
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    if (value < 0)
        put_char(content, '-');
    if (rest >= scale || rest == 0)
        put_digits(content, rest / scale, 1);
    if (decimals > 0) {
        put_char(content, '.');
        put_digits(content, rest % scale, decimals);
    }
    put_char(content, ' ');
}

/* A position or length: a hundredth of a point is a quarter of a 1,200 dpi printer's dot. */
static void put_mpt(struct content *content, int32_t mpt)
{
    put_number(content, (mpt + (mpt < 0 ? -5 : 5)) / 10, 2);
}

static void put_hex(struct content *content, uint32_t code)
{
    static const char DIGITS[] = "0123456789ABCDEF";

    for (int shift = 12; shift >= 0; shift -= 4)
        put_char(content, DIGITS[code >> shift & 0xF]);
}

static void put_rgb(struct content *content, uint32_t color)
{
    for (int shift = 16; shift >= 0; shift -= 8)
        put_number(content, ((color >> shift & 0xFF) * 1000 + 127) / 255, 3);
}

/* ---- graphics ---- */

void content_save(struct content *content)
{
    assert(content->saves < CONTENT_SAVES_MAX);
    content->saved_colors[content->saves++] = content->color;
    if (reserve(content, OPERATOR_CHARS_MAX))
        put(content, "q\n");
}

void content_restore(struct content *content)
{
    assert(content->saves > 0);
    content->color = content->saved_colors[--content->saves];
    if (reserve(content, OPERATOR_CHARS_MAX))
        put(content, "Q\n");
}

static void put_box(struct content *content, int32_t x_mpt, int32_t y_mpt, int32_t w_mpt,
                    int32_t h_mpt)
{
    put_mpt(content, x_mpt);
    put_mpt(content, y_mpt);
    put_mpt(content, w_mpt);
    put_mpt(content, h_mpt);
    put(content, "re ");
}

void content_clip_box(struct content *content, int32_t x_mpt, int32_t y_mpt, int32_t w_mpt,
                      int32_t h_mpt)
{
    assert(content->saves > 0);
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    put_box(content, x_mpt, y_mpt, w_mpt, h_mpt);
    put(content, "W n\n");
}

void content_move(struct content *content, int32_t x_mpt, int32_t y_mpt, uint32_t quarter_turns)
{
    /* ISO 32000-1, 8.3.3: the images of the unit vectors */
    static const char *const AXES[] = {"1 0 0 1 ", "0 -1 1 0 ", "-1 0 0 -1 ", "0 1 -1 0 "};

    assert(content->saves > 0 && quarter_turns < 4);
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    put(content, AXES[quarter_turns]);
    put_mpt(content, x_mpt);
    put_mpt(content, y_mpt);
    put(content, "cm\n");
}

static void set_color(struct content *content, uint32_t color)
{
    if (color == content->color || !reserve(content, OPERATOR_CHARS_MAX))
        return;
    if (color >> 16 == (color & 0xFF) && (color >> 8 & 0xFF) == (color & 0xFF)) {
        put_number(content, ((color & 0xFF) * 1000 + 127) / 255, 3);
        put(content, "g\n");
    } else {
        put_rgb(content, color);
        put(content, "rg\n");
    }
    content->color = color;
}

void content_fill_box(struct content *content, uint32_t color, int32_t x_mpt, int32_t y_mpt,
                      int32_t w_mpt, int32_t h_mpt)
{
    set_color(content, color);
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    put_box(content, x_mpt, y_mpt, w_mpt, h_mpt);
    put(content, "f\n");
}

void content_line(struct content *content, const struct content_line *line)
{
    if (!reserve(content, 2 * OPERATOR_CHARS_MAX))
        return;
    put_rgb(content, line->color);
    put(content, "RG ");
    put_mpt(content, line->stroke_mpt);
    put(content, "w [");
    if (line->dash_mpt > 0)
        put_mpt(content, line->dash_mpt);
    put(content, "] 0 d ");
    put_mpt(content, line->x1_mpt);
    put_mpt(content, line->y1_mpt);
    put(content, "m ");
    put_mpt(content, line->x2_mpt);
    put_mpt(content, line->y2_mpt);
    put(content, "l S\n");
}

void content_image(struct content *content, size_t name, int32_t x_mpt, int32_t y_mpt,
                   int32_t w_mpt, int32_t h_mpt)
{
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    put(content, "q ");
    put_mpt(content, w_mpt);
    put(content, "0 0 ");
    put_mpt(content, h_mpt);
    put_mpt(content, x_mpt);
    put_mpt(content, y_mpt);
    put(content, "cm/I");
    put_digits(content, name, 1);
    put(content, " Do Q\n");
}

/* ---- text ---- */

/* The glyphs of a line in the order in which they are read. */
struct reading_order {
    const struct font_set *fonts;
    const struct text_block *block;
    const struct text_line *line;
    struct placed_glyph {
        const struct glyph *glyph;
        int64_t origin; /* where it is drawn, FONT_EM to the em from the line's left end */
    } * glyphs;         /* line->glyphs_count of them */
};

/* The next character that is to be read; 0 when there is none. Controls of direction are not shown,
 * and readers add their own. */
static uint32_t next_character(struct text *rest)
{
    uint32_t c = 0;

    while (rest->len > 0) {
        size_t const len = utf8_decode(rest->data, rest->len, &c);

        assert(len > 0);
        rest->data += len;
        rest->len -= len;
        if (!character_is_bidi_control(c))
            return c;
    }
    return 0;
}

static bool is_ellipsis(const struct glyph *glyph)
{
    return glyph->group == glyph->group_end;
}

static struct text text_between(const struct text_block *block, uint32_t at, uint32_t end)
{
    return (struct text){block->text.data + at, end - at};
}

/* Whether the map from glyphs gives the characters of some that are grouped, one for each. */
static bool group_reads_back(const struct reading_order *order, size_t first, size_t end)
{
    const struct glyph *head = order->glyphs[first].glyph;
    struct text rest = text_between(order->block, head->group, head->group_end);

    if (rest.len == 1 && end == first + 1)
        return font_code_point(order->fonts, head->face, head->id) == (unsigned char)rest.data[0];
    for (size_t i = first; i < end; i++) {
        const struct glyph *glyph = order->glyphs[i].glyph;
        uint32_t const wanted = is_ellipsis(glyph) ? 0x2026 : next_character(&rest);

        if (wanted == 0 || font_code_point(order->fonts, glyph->face, glyph->id) != wanted)
            return false;
    }
    return next_character(&rest) == 0;
}

static void put_utf16(struct content *content, uint32_t code_point)
{
    if (code_point >= 0x10000) {
        put_hex(content, 0xD7C0 + (code_point >> 10));
        put_hex(content, 0xDC00 + (code_point & 0x3FF));
    } else {
        put_hex(content, code_point);
    }
}

/* ISO 32000-1, 14.9.4: a marked-content sequence with its replacement text. */
static void begin_actual_text(struct content *content, struct text text)
{
    uint32_t c;

    if (!reserve(content, OPERATOR_CHARS_MAX + 8 * (text.len + 1)))
        return;
    put(content, "/Span<</ActualText<FEFF");
    while ((c = next_character(&text)) != 0)
        put_utf16(content, c);
    put(content, ">>>BDC ");
}

/* Where the pen is while glyphs are written. */
struct pen {
    int64_t actual; /* where a viewer has it after the widths and numbers so far, in thousandths */
    int32_t rise;   /* text rise in force, FONT_EM to the em */
    int32_t size_mpt; /* of all glyphs */
    size_t face;      /* in force */
    bool is_in_array; /* inside [ ] */
    bool is_in_code;  /* inside < > */
};

static void end_code(struct content *content, struct pen *pen)
{
    if (pen->is_in_code)
        put_char(content, '>');
    pen->is_in_code = false;
}

static void end_array(struct content *content, struct pen *pen)
{
    end_code(content, pen);
    if (pen->is_in_array)
        put(content, "]TJ ");
    pen->is_in_array = false;
}

static void set_rise(struct content *content, struct pen *pen, int32_t rise)
{
    if (rise == pen->rise)
        return;
    end_array(content, pen);
    put_mpt(content, (int32_t)((int64_t)rise * pen->size_mpt / FONT_EM));
    put(content, "Ts");
    pen->rise = rise;
}

static void put_face(struct content *content, size_t face, int32_t size_mpt)
{
    put(content, "/F");
    put_digits(content, face & ~(size_t)READINGS_MIRRORED, 1);
    put(content, (face & READINGS_MIRRORED) != 0 ? "M " : " ");
    put_mpt(content, size_mpt);
    put(content, "Tf ");
}

static void set_face(struct content *content, struct pen *pen, size_t face)
{
    if (face == pen->face)
        return;
    end_array(content, pen);
    put_face(content, face, pen->size_mpt);
    pen->face = face;
}

static int64_t rounded_quotient(int64_t value, int64_t divisor)
{
    return (value + (value < 0 ? -divisor / 2 : divisor / 2)) / divisor;
}

static void put_glyph(struct content *content, const struct font_set *fonts, struct pen *pen,
                      const struct placed_glyph *placed, bool is_mirrored)
{
    const struct glyph *glyph = placed->glyph;
    int64_t const target = rounded_quotient(placed->origin, FONT_EM / FONT_SCALE);

    set_face(content, pen, is_mirrored ? glyph->face | READINGS_MIRRORED : glyph->face);
    set_rise(content, pen, glyph->y_offset);
    if (!pen->is_in_array)
        put_char(content, '[');
    pen->is_in_array = true;
    if (target != pen->actual) {
        end_code(content, pen);
        put_number(content, pen->actual - target, 0);
        content->out->len--; /* a delimiter follows, the space is not needed */
        pen->actual = target;
    }
    if (!pen->is_in_code)
        put_char(content, '<');
    pen->is_in_code = true;
    put_hex(content, font_cid(fonts, glyph->face, glyph->id));
    pen->actual += font_width(fonts, glyph->face, glyph->id);
}

/* Forms of letters that have a character for compatibility's sake only (Unicode's presentation
 * forms): nobody writes that. */
static bool is_presentation_form(uint32_t c)
{
    return (c >= 0xFB00 && c <= 0xFDFF) || (c >= 0xFE70 && c <= 0xFEFE);
}

/* The characters of a text that are seen, as far as there is room for whole ones. */
static struct text seen_characters(struct text text, char data[READING_BYTES_MAX])
{
    size_t len = 0;
    uint32_t c = 0;

    for (size_t at = 0; at < text.len;) {
        size_t const bytes = utf8_decode(text.data + at, text.len - at, &c);

        assert(bytes > 0);
        if (!character_is_invisible(c) && len + bytes <= READING_BYTES_MAX) {
            memcpy(data + len, text.data + at, bytes);
            len += bytes;
        }
        at += bytes;
    }
    return (struct text){.data = data, .len = len};
}

/* A glyph that stands alone for its characters, and that no character leads to. A joiner that stood
 * behind it there may not stand behind it elsewhere. */
static void note_reading(struct content *content, const struct reading_order *order, size_t first,
                         size_t end)
{
    const struct glyph *glyph = order->glyphs[first].glyph;
    uint32_t const own = font_code_point(order->fonts, glyph->face, glyph->id);
    char data[READING_BYTES_MAX];
    struct text text;

    if (content->readings == NULL || glyph->id == 0 || (own != 0 && !is_presentation_form(own)))
        return;
    for (size_t i = first + 1; i < end; i++)
        if (order->glyphs[i].glyph->at == glyph->at)
            return;
    text = text_between(order->block, glyph->at, glyph->end);
    if (text.len > READING_BYTES_MAX)
        return;
    text = seen_characters(text, data);
    if (readings_add(content->readings, glyph->face, glyph->id, text, NULL) != ST_OK)
        content->is_out_of_memory = true;
}

/* Whether a group is one glyph from right to left that elsewhere is another character: a bracket
 * that is drawn as the one that faces it. */
static bool is_mirrored(const struct reading_order *order, size_t first, size_t end)
{
    const struct glyph *glyph = order->glyphs[first].glyph;
    struct text rest = text_between(order->block, glyph->group, glyph->group_end);
    uint32_t const own = font_code_point(order->fonts, glyph->face, glyph->id);
    uint32_t const c = next_character(&rest);

    return end == first + 1 && glyph->is_right_to_left && !glyph->is_missing && own != 0 &&
           !is_presentation_form(own) && c != 0 && c != own && next_character(&rest) == 0;
}

static void note_mirrored(struct content *content, const struct reading_order *order, size_t first)
{
    const struct glyph *glyph = order->glyphs[first].glyph;
    struct text const text = text_between(order->block, glyph->at, glyph->end);
    char data[READING_BYTES_MAX];

    if (content->readings != NULL &&
        readings_add(content->readings, glyph->face | READINGS_MIRRORED, glyph->id,
                     seen_characters(text, data), NULL) != ST_OK)
        content->is_out_of_memory = true;
}

static size_t group_end(const struct reading_order *order, size_t first)
{
    size_t end = first + 1;

    while (end < order->line->glyphs_count &&
           order->glyphs[end].glyph->group == order->glyphs[first].glyph->group &&
           order->glyphs[end].glyph->group_end == order->glyphs[first].glyph->group_end)
        end++;
    return end;
}

/*
 * Whether the next letter is kerned under a mark, so that it begins before the mark does. Readers
 * that go by where glyphs begin would take the mark for one of the next letter's.
 */
static bool is_overtaken(const struct reading_order *order, size_t first, size_t end)
{
    if (end == order->line->glyphs_count || order->glyphs[first].glyph->is_right_to_left)
        return false;
    for (size_t i = first + 1; i < end; i++)
        if (order->glyphs[i].origin > order->glyphs[end].origin)
            return true;
    return false;
}

/* The groups from first on that read back. */
static size_t end_of_readable(const struct reading_order *order, size_t first)
{
    while (first < order->line->glyphs_count) {
        size_t const end = group_end(order, first);

        if (!group_reads_back(order, first, end) || is_overtaken(order, first, end))
            break;
        first = end;
    }
    return first;
}

static void put_glyphs(struct content *content, const struct reading_order *order, struct pen *pen)
{
    size_t const count = order->line->glyphs_count;

    for (size_t first = 0, end; first < count; first = end) {
        const struct glyph *glyph = order->glyphs[first].glyph;
        bool reads_back, mirrors = false;

        end = end_of_readable(order, first);
        reads_back = end > first;
        if (!reads_back) {
            end = group_end(order, first);
            mirrors = content->readings != NULL && is_mirrored(order, first, end);
            end_array(content, pen);
            begin_actual_text(content, is_ellipsis(glyph) ? (struct text){"\xE2\x80\xA6", 3}
                                                          : text_between(order->block, glyph->group,
                                                                         glyph->group_end));
        }
        if (!reserve(content, OPERATOR_CHARS_MAX + (end - first) * GLYPH_CHARS_MAX))
            return;
        for (size_t i = first; i < end; i++) {
            put_glyph(content, order->fonts, pen, &order->glyphs[i], mirrors);
            if (mirrors)
                note_mirrored(content, order, i);
            else if (!reads_back)
                note_reading(content, order, i, end);
        }
        if (!reads_back) {
            end_array(content, pen);
            put(content, "EMC ");
        }
    }
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    end_array(content, pen);
    if (pen->rise != 0)
        put(content, "0 Ts ");
}

/* Whether what is seen on the right is read before what is on its left. In a group the glyphs keep
 * the order of their run. */
static bool is_read_before(const struct glyph *right, const struct glyph *left)
{
    return right->group < left->group || (right->group == left->group && right->is_right_to_left);
}

/* Sort what is in the order in which it is seen. */
static void sort_glyphs(struct placed_glyph *glyphs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct placed_glyph const moved = glyphs[i];
        size_t to = i;

        for (; to > 0 && is_read_before(moved.glyph, glyphs[to - 1].glyph); to--)
            glyphs[to] = glyphs[to - 1];
        glyphs[to] = moved;
    }
}

/*
 * The alef of some faces' lam-alef does not move the pen and begins a hair to the right of its lam.
 * Readers that go by where glyphs begin would take it for the letter before: a hair to the left it
 * is the one behind.
 */
static void part_ligature(struct placed_glyph *left, const struct placed_glyph *right)
{
    int64_t const distance = left->origin - right->origin;

    if (left->glyph->is_right_to_left && left->glyph->advance == 0 &&
        left->glyph->group > right->glyph->group && distance >= 0 && distance <= HAIR_MAX)
        left->origin = right->origin - HAIR;
}

static void place_glyphs(const struct reading_order *order)
{
    size_t const count = order->line->glyphs_count;
    int64_t pen = 0;

    for (size_t i = 0; i < count; i++) {
        const struct glyph *glyph = &order->line->glyphs[i];

        order->glyphs[i] = (struct placed_glyph){glyph, pen + glyph->x_offset};
        pen += glyph->advance;
        if (i > 0)
            part_ligature(&order->glyphs[i - 1], &order->glyphs[i]);
    }
    sort_glyphs(order->glyphs, count);
}

static void put_line(struct content *content, const struct reading_order *order, uint32_t color,
                     int32_t x_mpt, int32_t y_mpt)
{
    struct pen pen = {.face = order->glyphs[0].glyph->face, .size_mpt = order->block->size_mpt};

    set_color(content, color);
    if (!reserve(content, OPERATOR_CHARS_MAX))
        return;
    put(content, "BT");
    put_face(content, pen.face, pen.size_mpt);
    put_mpt(content, x_mpt);
    put_mpt(content, y_mpt);
    put(content, "Td");
    put_glyphs(content, order, &pen);
    if (reserve(content, OPERATOR_CHARS_MAX))
        put(content, "ET\n");
}

void content_text(struct content *content, const struct font_set *fonts,
                  const struct text_block *block, const struct text_line *line, uint32_t color,
                  int32_t x_mpt, int32_t y_mpt)
{
    struct placed_glyph few[GLYPHS_FEW];
    struct placed_glyph *many = NULL;
    struct reading_order order = {.fonts = fonts, .block = block, .line = line, .glyphs = few};

    if (line->glyphs_count == 0)
        return;
    if (line->glyphs_count > GLYPHS_FEW) {
        many = malloc(line->glyphs_count * sizeof *many);
        order.glyphs = many;
    }
    if (order.glyphs == NULL) {
        content->is_out_of_memory = true;
        return;
    }
    place_glyphs(&order);
    put_line(content, &order, color, x_mpt, y_mpt);
    free(many);
}

/* ---- the QR symbol ---- */

void content_qr(struct content *content, const struct qr *qr, const struct qr_rect *rects,
                size_t count, int32_t x_mpt, int32_t y_mpt, int32_t side_mpt)
{
    /* in hundred-thousandths of a point, so that 177 modules are off by less than a hundredth */
    int64_t const module = (int64_t)side_mpt * 100 / (qr->side + 2 * QR_QUIET_MODULES);

    content_fill_box(content, WHITE, x_mpt, y_mpt, side_mpt, side_mpt);
    set_color(content, BLACK);
    if (!reserve(content, 2 * OPERATOR_CHARS_MAX + count * 4 * NUMBER_CHARS_MAX))
        return;
    put(content, "q ");
    put_number(content, module, 5);
    put(content, "0 0 ");
    put_number(content, -module, 5);
    put_number(content, (int64_t)x_mpt * 100 + QR_QUIET_MODULES * module, 5);
    put_number(content, ((int64_t)y_mpt + side_mpt) * 100 - QR_QUIET_MODULES * module, 5);
    put(content, "cm\n");
    for (size_t i = 0; i < count; i++) {
        put_number(content, rects[i].x, 0);
        put_number(content, rects[i].y, 0);
        put_number(content, rects[i].width, 0);
        put_number(content, rects[i].height, 0);
        put(content, "re\n");
    }
    put(content, "f Q\n");
}
