#include "workers/pdf.h"

#include "tests/support/failing_memory.h"
#include "workers/reserve.h"

#include <criterion/criterion.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KIDS_MAX = 128,
    STREAM_BYTES_MAX = 4 << 20,
    TIMEOUT_S = 60,
};
#define FONT "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"

/* ---- Fixture: what a document is written from ---- */

static struct pdf_profile *profile;
static struct deflater *deflater;
static struct font_set *fonts;

static void set_up(void)
{
    const char *const paths[] = {FONT};

    cr_assert_eq(sign_start(NULL), ST_OK);
    cr_assert_eq(pdf_profile_new(&profile, NULL), ST_OK);
    cr_assert_eq(deflater_new(&deflater, NULL), ST_OK);
    cr_assert_eq(font_set_open(paths, 1, &fonts, NULL), ST_OK);
    cr_assert_not_null(font_shaper(fonts, 0));
}

static void tear_down(void)
{
    pdf_profile_free(&profile);
    deflater_free(&deflater);
    font_set_free(&fonts);
    cr_expect_null(profile);
    cr_expect_null(deflater);
    pdf_profile_free(&profile); /* NULL inside is fine */
}

static const struct pdf_data STATIC = {(const uint8_t *)"static", 6};
static const struct pdf_sheet SHEET = {
    .before = &STATIC, .cells_count = 1, .page_w_mpt = 297638, .page_h_mpt = 419528};

static struct text text_of(const char *text)
{
    return (struct text){.data = text, .len = strlen(text)};
}

/* The contents of input_of's tickets, which lie behind its pages. */
static struct pdf_data *tickets_of(struct pdf_page *pages, size_t pages_count)
{
    return (struct pdf_data *)(void *)(pages + pages_count);
}

/* A document of pages of one ticket that all say the same. */
static struct pdf_input input_of(size_t pages_count, struct pdf_page **pages)
{
    struct pdf_data *tickets;

    *pages = calloc(pages_count, sizeof **pages + sizeof *tickets);
    cr_assert_not_null(*pages);
    tickets = tickets_of(*pages, pages_count);
    for (size_t i = 0; i < pages_count; i++) {
        (*pages)[i] = (struct pdf_page){.first = i, .count = 1};
        tickets[i] = (struct pdf_data){(const uint8_t *)"page", 4};
    }
    return (struct pdf_input){.title = text_of("Jazz"),
                              .language = text_of("es-ES"),
                              .set = fonts,
                              .sheets = &SHEET,
                              .sheets_count = 1,
                              .tickets = tickets,
                              .tickets_count = pages_count,
                              .pages = *pages,
                              .pages_count = pages_count};
}

/* A written document, taken apart: its objects and cross references are texts of their own, ended
 * by zeros, so that no function looks for the end of megabytes. */
struct reading {
    struct bytes pdf;
    uint8_t digest[SHA256_BYTES];
    const char *xref;
    const char **objects; /* by number */
    size_t objects_count;
};

/* The number at the start of a line of the cross references. */
static size_t xref_number(const char *line)
{
    enum { XREF_LINE_BYTES = 20 }; /* ISO 32000-1, 7.5.4 */
    char copy[XREF_LINE_BYTES + 1] = "";

    memcpy(copy, line, XREF_LINE_BYTES);
    return strtoul(copy, NULL, 10);
}

static void take_apart(struct reading *reading)
{
    char *text = (char *)reading->pdf.data;
    const char *table = strchr(strchr(reading->xref, '\n') + 1, '\n') + 1;

    reading->objects_count = xref_number(reading->xref + strlen("xref\n0 "));
    reading->objects = calloc(reading->objects_count, sizeof *reading->objects);
    cr_assert_not_null(reading->objects);
    text[reading->xref - text - 1] = '\0';
    for (size_t i = 1; i < reading->objects_count; i++) {
        size_t const offset = xref_number(table + 20 * i);

        cr_assert_eq(memcmp(table + 20 * i + 10, " 00000 n", 8), 0, "object %zu", i);
        cr_assert_eq(text[offset - 1], '\n', "object %zu", i);
        text[offset - 1] = '\0';
        reading->objects[i] = text + offset;
    }
}

static struct reading read_back(const struct pdf_input *input)
{
    struct reading reading = {0};
    struct error err = {0};
    const char *start;

    cr_assert_eq(pdf_write(input, profile, deflater, &reading.pdf, reading.digest, &err), ST_OK,
                 "%s", err.text);
    cr_assert_eq(bytes_append(&reading.pdf, "", 1, NULL), ST_OK);
    cr_assert_eq(memcmp(reading.pdf.data, "%PDF-1.4\n", 9), 0);
    start = strstr((const char *)reading.pdf.data + reading.pdf.len - 32, "startxref\n");
    cr_assert_not_null(start);
    reading.xref =
        (const char *)reading.pdf.data + strtoul(start + strlen("startxref\n"), NULL, 10);
    cr_assert_eq(memcmp(reading.xref, "xref\n0 ", 7), 0);
    take_apart(&reading);
    return reading;
}

static void reading_clear(struct reading *reading)
{
    bytes_clear(&reading->pdf);
    free(reading->objects);
}

/* An object's dictionary; a stream's data come behind it. */
static const char *object(const struct reading *reading, size_t number)
{
    char head[32];

    cr_assert(number > 0 && number < reading->objects_count);
    snprintf(head, sizeof head, "%zu 0 obj\n<<\n", number);
    cr_assert_eq(strncmp(reading->objects[number], head, strlen(head)), 0, "object %zu", number);
    return reading->objects[number] + strlen(head);
}

/* What stands behind a key of a dictionary. */
static const char *value(const char *dictionary, const char *key)
{
    const char *found = strstr(dictionary, key);

    cr_assert(found != NULL && found < strstr(dictionary, ">>\n"), "%s", key);
    return found + strlen(key);
}

static size_t number(const char *dictionary, const char *key)
{
    char *end;
    size_t const read = strtoul(value(dictionary, key), &end, 10);

    cr_assert_eq(*end, *end == '/' || *end == '>' ? *end : ' ', "%s", key);
    return read;
}

static bool has(const char *dictionary, const char *words)
{
    return strstr(dictionary, words) != NULL;
}

static const char *catalog(const struct reading *reading)
{
    const char *root = strstr(reading->xref, "/Root ");

    cr_assert_not_null(root);
    return object(reading, number(root, "/Root "));
}

/* A stream's bytes, inflated. Returns their number. */
static size_t inflated(const char *dictionary, char out[STREAM_BYTES_MAX])
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    size_t const deflated_len = number(dictionary, "/Length ");
    const char *data = strstr(dictionary, "stream\n") + strlen("stream\n");
    size_t len = 0;

    cr_assert_not_null(decompressor);
    (void)value(dictionary, "/Filter/FlateDecode");
    cr_assert_eq(strncmp(data + deflated_len, "\nendstream", 10), 0);
    cr_assert_eq(libdeflate_zlib_decompress(decompressor, data, deflated_len, out,
                                            STREAM_BYTES_MAX - 1, &len),
                 LIBDEFLATE_SUCCESS);
    libdeflate_free_decompressor(decompressor);
    out[len] = '\0';
    return len;
}

/* ---- the page tree ---- */

/* A node of the tree or a page. */
struct node {
    size_t object;
    const struct node *parent; /* NULL: the root */
    size_t pages;              /* that were found below, or 1 for a page */
};

static void expect_page(const struct reading *reading, struct node *page, size_t *last_content)
{
    const char *contents = value(object(reading, page->object), "/Contents[");
    size_t const content = strtoul(strstr(contents, "R ") + 2, NULL, 10);

    cr_assert_gt(content, *last_content); /* pages come in the order of the input */
    *last_content = content;
    page->pages = 1;
}

/* Put a node's kids behind `end`. Returns the new end. */
static struct node *add_kids(const struct reading *reading, const struct node *parent,
                             struct node *end)
{
    const char *kid = value(object(reading, parent->object), "/Kids[");
    size_t kids = 0;

    for (; *kid != ']'; kid = strstr(kid, "R ") + 2, kids++) {
        *end = (struct node){.object = strtoul(kid, NULL, 10), .parent = parent};
        cr_assert_eq(number(object(reading, end->object), "/Parent "), parent->object);
        end++;
    }
    cr_assert(kids >= 1 && kids <= KIDS_MAX, "%zu kids", kids);
    return end;
}

/* Walk the whole tree, level by level, and check it. Returns the number of pages. */
static size_t count_pages(const struct reading *reading, size_t pages_max)
{
    struct node *nodes = calloc(2 * pages_max + KIDS_MAX, sizeof *nodes);
    struct node *end = nodes + 1;
    size_t last_content = 0;
    size_t pages;

    cr_assert_not_null(nodes);
    nodes[0].object = number(catalog(reading), "/Pages ");
    for (struct node *node = nodes; node < end; node++) {
        if (strncmp(object(reading, node->object), "/Type/Pages/", 12) == 0)
            end = add_kids(reading, node, end);
        else
            expect_page(reading, node, &last_content);
    }
    for (struct node *node = end - 1; node > nodes; node--)
        nodes[node->parent - nodes].pages += node->pages;
    for (const struct node *node = nodes; node < end; node++)
        if (strncmp(object(reading, node->object), "/Type/Pages/", 12) == 0)
            cr_assert_eq(number(object(reading, node->object), "/Count "), node->pages);
    pages = nodes[0].pages;
    free(nodes);
    return pages;
}

Test(pdf_write, keeps_the_page_tree_narrow, .init = set_up, .fini = tear_down, .timeout = TIMEOUT_S)
{
    static const size_t COUNTS[] = {1, 2, 127, 128, 129, 16383, 16384, 16385};

    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        struct pdf_page *pages;
        struct pdf_input const input = input_of(COUNTS[i], &pages);
        struct reading reading = read_back(&input);

        cr_expect_eq(count_pages(&reading, COUNTS[i]), COUNTS[i]);
        reading_clear(&reading);
        free(pages);
    }
}

Test(pdf_write, gives_a_page_its_own_size_where_it_differs, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    static const struct pdf_sheet SHEETS[] = {
        {.before = &STATIC, .cells_count = 1, .page_w_mpt = 297638, .page_h_mpt = 419528},
        {.before = &STATIC, .cells_count = 1, .page_w_mpt = 100000, .page_h_mpt = 50},
    };
    struct pdf_page *pages;
    struct pdf_input input = input_of(3, &pages);
    struct reading reading;
    const char *tree;
    size_t first = 0, second = 0;

    input.sheets = SHEETS;
    input.sheets_count = 2;
    pages[1].sheet = 1;
    reading = read_back(&input);
    tree = object(&reading, number(catalog(&reading), "/Pages "));
    first = strtoul(value(tree, "/Kids["), NULL, 10);
    second = strtoul(strstr(value(tree, "/Kids["), "R ") + 2, NULL, 10);
    cr_expect(has(tree, "/MediaBox[0 0 297.638 419.528 ]"));
    cr_expect_not(has(object(&reading, first), "/MediaBox"));
    cr_expect(has(object(&reading, second), "/MediaBox[0 0 100.000 0.050 ]"));
    reading_clear(&reading);
    free(pages);
}

/* ---- sheets and images ---- */

/* The words of the streams that a page draws, in order. */
static void page_says(const struct reading *reading, size_t page, char says[64])
{
    const char *next = value(object(reading, page), "/Contents[");

    says[0] = '\0';
    while (*next != ']') {
        const char *dictionary = object(reading, strtoul(next, NULL, 10));
        const char *data = strstr(dictionary, "stream\n") + strlen("stream\n");

        strncat(says, data, number(dictionary, "/Length "));
        next = strstr(next, " 0 R") + strlen(" 0 R");
        next += *next == ' ';
    }
}

Test(pdf_write, draws_each_ticket_of_a_sheet_behind_what_is_before_its_cell, .init = set_up,
     .fini = tear_down, .timeout = TIMEOUT_S)
{
    static const struct pdf_data BEFORE[] = {
        {(const uint8_t *)"(a", 2}, {(const uint8_t *)")(b", 3}, {(const uint8_t *)")(c", 3}};
    static const struct pdf_data LABEL = {(const uint8_t *)"label", 5};
    static const struct pdf_sheet SHEETS[] = {
        {.before = BEFORE, .cells_count = 3, .after = {(const uint8_t *)")", 1}},
        {.before = &LABEL, .cells_count = 1},
    };
    static const char *const SAYS[] = {"(a1)(b2)(c3)", "(a4)", "label5", "(a6)(b7)"};
    struct pdf_data tickets[7];
    struct pdf_page const pages[] = {{0, 3, 0}, {3, 1, 0}, {4, 1, 1}, {5, 2, 0}};
    struct pdf_page *unused;
    struct pdf_input input = input_of(1, &unused);
    struct reading reading;
    const char *kid;

    for (size_t i = 0; i < 7; i++)
        tickets[i] = (struct pdf_data){(const uint8_t *)"1234567" + i, 1};
    input.sheets = SHEETS;
    input.sheets_count = 2;
    input.tickets = tickets;
    input.tickets_count = 7;
    input.pages = pages;
    input.pages_count = 4;
    reading = read_back(&input);
    kid = value(object(&reading, number(catalog(&reading), "/Pages ")), "/Kids[");
    for (size_t i = 0; i < 4; i++, kid = strstr(kid, "R ") + 2) {
        char says[64];

        page_says(&reading, strtoul(kid, NULL, 10), says);
        cr_expect_str_eq(says, SAYS[i]);
    }
    reading_clear(&reading);
    free(unused);
}

Test(pdf_write, embeds_each_image_once_by_its_name, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    uint8_t grey[] = "grey", color[] = "color";
    struct image const first = {.width = 7,
                                .height = 5,
                                .components = 1,
                                .filter = IMAGE_FLATE,
                                .data = {.data = grey, .len = 4, .capacity = 5}};
    struct image const second = {.width = 32767,
                                 .height = 1,
                                 .components = 3,
                                 .filter = IMAGE_DCT,
                                 .data = {.data = color, .len = 5, .capacity = 6}};
    struct pdf_image const images[] = {{3, &first}, {1023, &second}};
    struct pdf_page *pages;
    struct pdf_input input = input_of(2, &pages);
    struct reading reading;
    const char *tree;

    input.images = images;
    input.images_count = 2;
    reading = read_back(&input);
    tree = object(&reading, number(catalog(&reading), "/Pages "));
    cr_expect(has(tree, "/XObject<</I3 "));
    cr_expect(has(object(&reading, number(tree, "/I3 ")),
                  "/Type/XObject/Subtype/Image/Width 7/Height 5/ColorSpace/DeviceGray"
                  "/BitsPerComponent 8/Interpolate false/Filter/FlateDecode/Length 4"));
    cr_expect(has(object(&reading, number(tree, "/I3 ")), "stream\ngrey\nendstream"));
    cr_expect(has(object(&reading, number(tree, "/I1023 ")),
                  "/Type/XObject/Subtype/Image/Width 32767/Height 1/ColorSpace/DeviceRGB"
                  "/BitsPerComponent 8/Interpolate false/Filter/DCTDecode/Length 5"));
    cr_expect(has(object(&reading, number(tree, "/I1023 ")), "stream\ncolor\nendstream"));
    reading_clear(&reading);
    free(pages);
}

/* ---- title and language ---- */

#define HARD_TITLE "<A> & (B) \\ \xC3\xA9 \xF0\x9D\x84\x9E" /* and U+1D11E */

Test(pdf_write, writes_a_title_that_needs_escapes_twice_alike, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    struct pdf_page *pages;
    struct pdf_input input = input_of(1, &pages);
    struct reading reading;
    const char *info;
    const char *metadata;

    input.title = text_of(HARD_TITLE);
    reading = read_back(&input);
    info = object(&reading, number(strstr(reading.xref, "/Info "), "/Info "));
    cr_expect(has(info, "/Title<FEFF003C0041003E002000260020002800420029"
                        "0020005C002000E90020D834DD1E>/Producer(ticketpress)"));
    metadata = object(&reading, number(catalog(&reading), "/Metadata "));
    cr_expect(has(metadata, "/Type/Metadata/Subtype/XML"));
    cr_expect_not(has(metadata, "/Filter"));
    cr_expect(has(metadata, "<rdf:li xml:lang=\"x-default\">&lt;A&gt; &amp; (B) \\ \xC3\xA9 "
                            "\xF0\x9D\x84\x9E</rdf:li>"));
    cr_expect(has(metadata, "<pdf:Producer>ticketpress</pdf:Producer>"));
    cr_expect(has(catalog(&reading), "/Lang<65732D4553>"));
    reading_clear(&reading);
    free(pages);
}

Test(pdf_write, takes_the_longest_title, .init = set_up, .fini = tear_down, .timeout = TIMEOUT_S)
{
    enum { CHARACTERS = 300 };
    char title[4 * CHARACTERS + 1] = "";
    struct pdf_page *pages;
    struct pdf_input input = input_of(1, &pages);
    struct reading reading;
    const char *info;

    for (int i = 0; i < CHARACTERS; i++)
        memcpy(title + 4 * i, "\xF0\x9D\x84\x9E", 5);
    input.title = text_of(title);
    reading = read_back(&input);
    info = object(&reading, number(strstr(reading.xref, "/Info "), "/Info "));
    cr_expect_eq(strspn(value(info, "/Title<"), "0123456789ABCDEF"), 4 + 8 * CHARACTERS);
    reading_clear(&reading);
    free(pages);
}

/* ---- fonts ---- */

/* Glyphs of the face, as wide as can be written (every second one) or a few. */
static struct glyph_set glyphs_every(uint32_t step)
{
    struct glyph_set glyphs = {0};

    cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
    for (uint32_t glyph = 0; glyph < font_metrics(fonts, 0)->glyph_count; glyph += step)
        glyph_set_add(&glyphs, glyph);
    return glyphs;
}

static struct reading read_font(const struct glyph_set *glyphs)
{
    struct pdf_font const font = {.glyphs = glyphs, .file = {(const uint8_t *)"file", 4}};
    struct pdf_page *pages;
    struct pdf_input input = input_of(1, &pages);
    struct reading reading;

    input.fonts = &font;
    input.fonts_count = 1;
    reading = read_back(&input);
    free(pages);
    return reading;
}

static const char *type0_of(const struct reading *reading)
{
    return object(reading, number(object(reading, number(catalog(reading), "/Pages ")), "/F0 "));
}

static const char *cid_font_of(const struct reading *reading)
{
    return object(reading, number(type0_of(reading), "/DescendantFonts["));
}

/* The width of a glyph by the array W (ISO 32000-1, 9.7.4.3); -1: it is not there. */
static int width_in(const char *widths, uint32_t wanted)
{
    while (*widths != ']') {
        char *end;
        unsigned long glyph = strtoul(widths, &end, 10);

        cr_assert_eq(*end, '[');
        for (end++; *end != ']'; glyph++) {
            long const width = strtol(end, &end, 10);

            if (glyph == wanted)
                return (int)width;
        }
        widths = end + 1;
    }
    return -1;
}

static const uint32_t STEPS[] = {2, 3, 100, 5000};

Test(pdf_write, lists_the_width_of_each_glyph_kept, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        struct glyph_set glyphs = glyphs_every(STEPS[i]);
        struct reading reading = read_font(&glyphs);
        const char *widths = value(cid_font_of(&reading), "/W[");

        for (uint32_t glyph = 0; glyph < 300; glyph++)
            cr_expect_eq(width_in(widths, glyph),
                         glyph_set_has(&glyphs, glyph) ? font_width(fonts, 0, glyph) : -1,
                         "glyph %u", glyph);
        glyph_set_clear(&glyphs);
        reading_clear(&reading);
    }
}

Test(pdf_write, marks_each_glyph_kept_in_the_cid_set, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    static char bits[STREAM_BYTES_MAX];

    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        struct glyph_set glyphs = glyphs_every(STEPS[i]);
        struct reading reading = read_font(&glyphs);
        const char *descriptor =
            object(&reading, number(cid_font_of(&reading), "/FontDescriptor "));
        size_t const len = inflated(object(&reading, number(descriptor, "/CIDSet ")), bits);

        for (uint32_t glyph = 0; glyph < font_metrics(fonts, 0)->glyph_count; glyph++) {
            bool const is_marked =
                glyph / 8 < len && ((unsigned char)bits[glyph / 8] & (0x80 >> glyph % 8)) != 0;

            cr_assert_eq(is_marked, glyph_set_has(&glyphs, glyph), "glyph %u", glyph);
        }
        glyph_set_clear(&glyphs);
        reading_clear(&reading);
    }
}

/* The character in "<hhhh>" or, as a surrogate pair, "<hhhhhhhh>". */
static uint32_t character_in(const char *text)
{
    char *end;
    unsigned long const read = strtoul(text + 1, &end, 16);

    cr_assert(*text == '<' && *end == '>');
    if (end - text == 5)
        return (uint32_t)read;
    cr_assert_eq(end - text, 9);
    return 0x10000 + (uint32_t)(((read >> 16) - 0xD800) << 10) +
           (uint32_t)((read & 0xFFFF) - 0xDC00);
}

/* Read one block of a CMap, whose count stands before `at`. Returns its end. */
static const char *read_block(const char *at, uint32_t *glyph)
{
    const char *count_at = at;
    unsigned long count;

    while (count_at[-1] != '\n')
        count_at--;
    count = strtoul(count_at, NULL, 10);
    cr_assert(count >= 1 && count <= 100);
    at = strchr(at, '\n') + 1;
    for (; count > 0; count--, ++*glyph) {
        while (font_code_point(fonts, 0, *glyph) == 0)
            ++*glyph;
        cr_assert_eq(strtoul(at + 1, NULL, 16), *glyph);
        cr_assert_eq(character_in(at + 6), font_code_point(fonts, 0, *glyph));
        at = strchr(at, '\n') + 1;
    }
    cr_assert_eq(strncmp(at, "endbfchar\n", 10), 0);
    return at;
}

Test(pdf_write, maps_glyphs_to_characters_in_blocks_of_a_hundred, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    static char cmap[STREAM_BYTES_MAX];
    struct glyph_set glyphs = glyphs_every(1);
    struct reading reading = read_font(&glyphs);
    const char *at = cmap;
    uint32_t glyph = 0;

    (void)inflated(object(&reading, number(type0_of(&reading), "/ToUnicode ")), cmap);
    while ((at = strstr(at, " beginbfchar\n")) != NULL)
        at = read_block(at, &glyph);
    cr_expect_gt(glyph, 1000);
    while (glyph < font_metrics(fonts, 0)->glyph_count)
        cr_expect_eq(font_code_point(fonts, 0, glyph++), 0);
    glyph_set_clear(&glyphs);
    reading_clear(&reading);
}

Test(pdf_write, maps_joined_forms_and_mirrored_brackets, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    enum { LIGATURE = 700, BRACKET = 12 };
    static char cmap[STREAM_BYTES_MAX];
    struct glyph_set glyphs = glyphs_every(1);
    struct pdf_font const font = {.glyphs = &glyphs, .file = {(const uint8_t *)"file", 4}};
    struct readings readings = {0};
    struct pdf_page *pages;
    struct pdf_input input = input_of(1, &pages);
    struct reading reading;
    const char *mirrored;

    cr_assert_eq(readings_add(&readings, 0, LIGATURE, text_of("\u0644\U0001F3AB"), NULL), ST_OK);
    cr_assert_eq(readings_add(&readings, 0 | READINGS_MIRRORED, BRACKET, text_of("("), NULL),
                 ST_OK);
    cr_assert_eq(readings_add(&readings, 1 | READINGS_MIRRORED, BRACKET, text_of("x"), NULL),
                 ST_OK);
    input.fonts = &font;
    input.fonts_count = 1;
    input.readings = &readings;
    reading = read_back(&input);
    (void)inflated(object(&reading, number(type0_of(&reading), "/ToUnicode ")), cmap);
    cr_expect_not_null(strstr(cmap, "<02BC><0644D83CDFAB>\n"));
    cr_expect_null(strstr(cmap, "<000C><0028>\n"));
    mirrored =
        object(&reading, number(object(&reading, number(catalog(&reading), "/Pages ")), "/F0M "));
    cr_expect_eq(number(mirrored, "/DescendantFonts["),
                 number(type0_of(&reading), "/DescendantFonts["));
    (void)inflated(object(&reading, number(mirrored, "/ToUnicode ")), cmap);
    cr_expect_not_null(strstr(cmap, "1 beginbfchar\n<000C><0028>\nendbfchar\n"));
    readings_clear(&readings);
    glyph_set_clear(&glyphs);
    reading_clear(&reading);
    free(pages);
}

/* ---- the same bytes ---- */

Test(pdf_write, gives_the_same_bytes_for_the_same_input_and_names_them_by_their_digest,
     .init = set_up, .fini = tear_down, .timeout = TIMEOUT_S)
{
    struct pdf_page *pages;
    struct pdf_input input = input_of(3, &pages);
    struct reading first = read_back(&input);
    struct reading second = read_back(&input);
    struct reading other;
    char id[80];

    cr_expect_eq(first.pdf.len, second.pdf.len);
    cr_expect_eq(memcmp(first.pdf.data, second.pdf.data, first.pdf.len), 0);
    cr_expect_arr_eq(first.digest, second.digest, SHA256_BYTES);
    snprintf(id, sizeof id, "/ID[<%02X%02X", first.digest[0], first.digest[1]);
    cr_expect_not_null(strstr(first.xref, id));
    tickets_of(pages, 3)[1].data = (const uint8_t *)"pag3";
    other = read_back(&input);
    cr_expect_arr_neq(first.digest, other.digest, SHA256_BYTES);
    reading_clear(&first);
    reading_clear(&second);
    reading_clear(&other);
    free(pages);
}

/* ---- failures ---- */

Test(pdf_write, refuses_a_document_of_2_gib, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    struct pdf_page *pages;
    struct pdf_input const input = input_of(2, &pages);
    struct bytes out = {0};
    uint8_t digest[SHA256_BYTES];
    struct error err = {0};

    tickets_of(pages, 2)[1].len = (size_t)INT32_MAX - 1000; /* never read */
    cr_expect_eq(pdf_write(&input, profile, deflater, &out, digest, &err), ST_TOO_LARGE);
    cr_expect_eq(err.status, ST_TOO_LARGE);
    cr_expect_null(out.data);
    free(pages);
}

Test(pdf_write, leaves_nothing_when_memory_ends, .init = set_up, .fini = tear_down,
     .timeout = TIMEOUT_S)
{
    struct glyph_set glyphs = glyphs_every(100);
    struct pdf_font const font = {.glyphs = &glyphs, .file = {(const uint8_t *)"file", 4}};
    struct pdf_page *pages;
    struct pdf_input input = input_of(3, &pages);
    size_t call = 1;
    bool has_failed = true;

    input.fonts = &font;
    input.fonts_count = 1;
    for (; has_failed; call++) {
        struct bytes out = {0};
        uint8_t digest[SHA256_BYTES];
        struct error err = {0};
        enum status st;

        failing_memory_start(call);
        st = pdf_write(&input, profile, deflater, &out, digest, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK);
        cr_expect_eq(err.status, st);
        cr_expect_eq(out.data == NULL, has_failed);
        bytes_clear(&out);
    }
    cr_expect_gt(call, 7);
    glyph_set_clear(&glyphs);
    free(pages);
}

Test(pdf_profile_new, fails_at_each_end_of_memory_and_lets_the_reserve_go)
{
    bool has_failed = true;
    size_t failures = 0;
    struct pdf_profile *first = NULL;

    cr_assert_eq(pdf_profile_new(&first, NULL), ST_OK);
    for (size_t call = 1; has_failed; call++) {
        struct pdf_profile *made = NULL;
        enum status st;

        failing_memory_start(call);
        st = pdf_profile_new(&made, NULL);
        has_failed = failing_memory_stop();
        cr_assert_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(made == NULL, has_failed);
        failures += has_failed;
        pdf_profile_free(&made);
        cr_expect_null(made);
        cr_expect_eq(reserve_bytes_used(), 0);
    }
    cr_expect_gt(failures, 20);
    pdf_profile_free(&first);
}
