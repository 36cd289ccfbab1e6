#include "workers/content.h"

#include "domain/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    NUMBER_CHARS_MAX = 24,
    OPERATOR_CHARS_MAX = 8 * NUMBER_CHARS_MAX, /* any operator here with its operands */
    GLYPH_CHARS_MAX = 16 + 6 * NUMBER_CHARS_MAX,
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

/* Whether the glyphs' own characters, one after the other, are the line's text. */
static bool reads_back(const struct font_set *fonts, const struct text_line *line)
{
    struct text rest = line->source;

    for (size_t i = 0; i < line->glyphs_count; i++) {
        uint32_t wanted = 0x2026; /* behind the source there can only be the ellipsis */

        if (rest.len > 0) {
            size_t const len = utf8_decode(rest.data, rest.len, &wanted);

            assert(len > 0);
            rest.data += len;
            rest.len -= len;
        } else if (!line->has_ellipsis) {
            return false;
        }
        if (font_code_point(fonts, line->glyphs[i].face, line->glyphs[i].id) != wanted)
            return false;
    }
    return rest.len == 0;
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
static void begin_actual_text(struct content *content, const struct text_line *line)
{
    struct text rest = line->source;

    if (!reserve(content, OPERATOR_CHARS_MAX + 8 * (rest.len + 1)))
        return;
    put(content, "/Span<</ActualText<FEFF");
    while (rest.len > 0) {
        uint32_t code_point = 0;
        size_t const len = utf8_decode(rest.data, rest.len, &code_point);

        assert(len > 0);
        put_utf16(content, code_point);
        rest.data += len;
        rest.len -= len;
    }
    if (line->has_ellipsis)
        put_hex(content, 0x2026);
    put(content, ">>>BDC\n");
}

/* Where the pen is while glyphs are written. */
struct pen {
    int64_t wanted;  /* where shaping puts it, FONT_EM to the em */
    int64_t actual;  /* where a viewer has it after the widths and numbers so far, in thousandths */
    int32_t rise;    /* text rise in force, FONT_EM to the em */
    size_t face;     /* in force */
    bool is_in_code; /* inside < > */
};

static void end_code(struct content *content, struct pen *pen)
{
    if (pen->is_in_code)
        put_char(content, '>');
    pen->is_in_code = false;
}

static void set_rise(struct content *content, struct pen *pen, int32_t rise, int32_t size_mpt)
{
    if (rise == pen->rise)
        return;
    end_code(content, pen);
    put(content, "]TJ ");
    put_mpt(content, (int32_t)((int64_t)rise * size_mpt / FONT_EM));
    put(content, "Ts[");
    pen->rise = rise;
}

static int64_t rounded_quotient(int64_t value, int64_t divisor)
{
    return (value + (value < 0 ? -divisor / 2 : divisor / 2)) / divisor;
}

static void put_glyph(struct content *content, const struct font_set *fonts, struct pen *pen,
                      const struct glyph *glyph)
{
    int64_t const target = rounded_quotient(pen->wanted + glyph->x_offset, FONT_EM / FONT_SCALE);

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
    pen->wanted += glyph->advance;
}

static void set_face(struct content *content, struct pen *pen, size_t face, int32_t size_mpt)
{
    if (face == pen->face)
        return;
    end_code(content, pen);
    put(content, "]TJ/F");
    put_digits(content, face, 1);
    put_char(content, ' ');
    put_mpt(content, size_mpt);
    put(content, "Tf[");
    pen->face = face;
}

static void put_glyphs(struct content *content, const struct font_set *fonts, int32_t size_mpt,
                       const struct text_line *line)
{
    struct pen pen = {.face = line->glyphs[0].face};

    put_char(content, '[');
    for (size_t i = 0; i < line->glyphs_count; i++) {
        const struct glyph *glyph = &line->glyphs[i];

        set_face(content, &pen, glyph->face, size_mpt);
        set_rise(content, &pen, glyph->y_offset, size_mpt);
        put_glyph(content, fonts, &pen, glyph);
    }
    end_code(content, &pen);
    put(content, "]TJ ");
    if (pen.rise != 0)
        put(content, "0 Ts ");
}

void content_text(struct content *content, const struct font_set *fonts,
                  const struct text_block *block, const struct text_line *line, uint32_t color,
                  int32_t x_mpt, int32_t y_mpt)
{
    bool needs_actual_text;

    if (line->glyphs_count == 0)
        return;
    needs_actual_text = !reads_back(fonts, line);
    set_color(content, color);
    if (needs_actual_text)
        begin_actual_text(content, line);
    if (!reserve(content, OPERATOR_CHARS_MAX + line->glyphs_count * GLYPH_CHARS_MAX))
        return;
    put(content, "BT/F");
    put_digits(content, line->glyphs[0].face, 1);
    put_char(content, ' ');
    put_mpt(content, block->size_mpt);
    put(content, "Tf ");
    put_mpt(content, x_mpt);
    put_mpt(content, y_mpt);
    put(content, "Td");
    put_glyphs(content, fonts, block->size_mpt, line);
    put(content, "ET\n");
    if (needs_actual_text)
        put(content, "EMC\n");
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
