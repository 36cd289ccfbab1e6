#include "workers/font.h"

#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <hb-ot.h>
#include <hb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fonts of service/data/fonts.list. */
static const char *const PATHS[] = {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
                                    "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf"};

enum {
    E_CIRCUMFLEX_TILDE = 0x1EC5,     /* ễ, one outline in these faces */
    E_CIRCUMFLEX_DOT_BELOW = 0x1EC7, /* ệ, composed of others */
    SIGNATURE_BYTES = 4,
    UNIT = FONT_EM / FONT_SCALE, /* of the em of PATHS, 1,000 */
};

static struct font_set *fonts;
static char path[] = "/tmp/test_font_XXXXXX";

static void setup(void)
{
    struct error err = {0};

    cr_assert_eq(font_set_open(PATHS, 2, &fonts, &err), ST_OK, "%s", err.text);
}

static void teardown(void)
{
    font_set_free(&fonts);
    cr_expect_null(fonts);
}

static uint32_t glyph_of(size_t face, uint32_t code_point)
{
    hb_codepoint_t glyph = 0;

    cr_assert(hb_font_get_nominal_glyph(font_shaper(fonts, face), code_point, &glyph));
    return glyph;
}

/* ---- opening ---- */

Test(font_set_open, reads_the_default_fonts, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name;
        enum font_weight weight;
        int x_height;
    } ROWS[] = {{"NotoSans-Regular", FONT_REGULAR, 536}, {"NotoSans-Bold", FONT_BOLD, 546}};

    cr_assert_eq(font_set_faces_count(fonts), 2);
    for (size_t face = 0; face < 2; face++) {
        const struct font_metrics *metrics = font_metrics(fonts, face);

        cr_expect_eq(metrics->weight, ROWS[face].weight);
        cr_expect_eq(metrics->x_height, ROWS[face].x_height);
        cr_expect(metrics->ascent == 1069 && metrics->descent == -293);
        cr_expect(metrics->cap_height == 714 && metrics->units_per_em == 1000);
        cr_expect(metrics->italic_angle == 0 && metrics->stem_v > 0);
        cr_expect(metrics->bbox[0] < 0 && metrics->bbox[1] < metrics->descent);
        cr_expect(metrics->bbox[2] > 1000 && metrics->bbox[3] > metrics->cap_height);
        cr_expect(metrics->glyph_count > 3000 && metrics->glyph_count <= FONT_GLYPHS_MAX);
        cr_expect_str_eq(metrics->postscript_name, ROWS[face].name);
    }
    cr_expect_eq(font_metrics(fonts, 1)->stem_v > font_metrics(fonts, 0)->stem_v, true);
}

Test(font_set_face, is_the_first_of_its_weight_else_the_first, .init = setup, .fini = teardown)
{
    struct font_set *bold_only = NULL;

    cr_expect_eq(font_set_face(fonts, FONT_REGULAR), 0);
    cr_expect_eq(font_set_face(fonts, FONT_BOLD), 1);
    cr_assert_eq(font_set_open(PATHS + 1, 1, &bold_only, NULL), ST_OK);
    cr_expect_eq(font_set_face(bold_only, FONT_REGULAR), 0);
    cr_expect_eq(font_set_face(bold_only, FONT_BOLD), 0);
    font_set_free(&bold_only);
}

Test(font_metrics, are_thousandths_whatever_the_em_is)
{
    static const char *const DEJAVU[] = {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"};
    struct font_set *set = NULL;
    hb_codepoint_t glyph = 0;

    if (access(DEJAVU[0], R_OK) != 0)
        cr_skip_test("no face with another em is installed");
    cr_assert_eq(font_set_open(DEJAVU, 1, &set, NULL), ST_OK);
    cr_assert_eq(font_metrics(set, 0)->units_per_em, 2048);
    cr_assert(hb_font_get_nominal_glyph(font_shaper(set, 0), 'A', &glyph));
    cr_expect_eq(font_advance(set, 0, glyph), 1401 * (FONT_EM / 2048));
    cr_expect_eq(font_width(set, 0, glyph), 684);
    cr_expect(font_metrics(set, 0)->cap_height > 700 && font_metrics(set, 0)->cap_height < 760);
    font_set_free(&set);
}

Test(font_advance, width_reach_and_code_point_are_those_of_the_glyph, .init = setup,
     .fini = teardown)
{
    uint32_t const a = glyph_of(0, 'A');
    uint32_t const space = glyph_of(0, ' ');
    uint32_t const g = glyph_of(0, 'g');
    uint32_t const accents = glyph_of(0, E_CIRCUMFLEX_TILDE);

    cr_expect_eq(font_advance(fonts, 0, a), 639 * UNIT);
    cr_expect_eq(font_width(fonts, 0, a), 639);
    cr_expect_eq(font_advance(fonts, 0, space), 260 * UNIT);
    cr_expect(font_reach(fonts, 0, a).top == 717 * UNIT && font_reach(fonts, 0, a).bottom == 0);
    cr_expect(font_reach(fonts, 0, space).top == 0 && font_reach(fonts, 0, space).bottom == 0);
    cr_expect_lt(font_reach(fonts, 0, g).bottom, -200 * UNIT);
    cr_expect_gt(font_reach(fonts, 0, accents).top, font_reach(fonts, 0, glyph_of(0, 'e')).top);
    cr_expect_eq(font_code_point(fonts, 0, a), 'A');
    cr_expect_eq(font_code_point(fonts, 0, accents), E_CIRCUMFLEX_TILDE);
    cr_expect_eq(font_code_point(fonts, 0, 0), 0, ".notdef is no character");
    /* U+00A0 has the space's glyph; the lowest of the two is what it reads back as. */
    cr_expect_eq(font_code_point(fonts, 0, glyph_of(0, 0xA0)),
                 glyph_of(0, 0xA0) == space ? ' ' : 0xA0);
}

Test(font_has, what_the_character_map_has, .init = setup, .fini = teardown)
{
    cr_expect(font_has(fonts, 0, 'A') && font_has(fonts, 1, E_CIRCUMFLEX_DOT_BELOW));
    cr_expect_not(font_has(fonts, 0, 0x5C71));
    cr_expect_not(font_has(fonts, 0, 0x1F600));
    cr_expect_not(font_has(fonts, 0, 0xFFFFFFFF));
}

Test(font_advance, of_a_glyph_that_there_is_not_is_our_fault, .init = setup, .signal = SIGABRT)
{
    cr_expect_eq(font_advance(fonts, 0, font_metrics(fonts, 0)->glyph_count), 0);
}

/* ---- files that are no fonts ---- */

static void file_make(void)
{
    int const fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    close(fd);
}

static void file_remove(void)
{
    unlink(path);
}

static void file_write(const unsigned char *data, size_t len)
{
    FILE *file = fopen(path, "wb");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, len, file), len);
    cr_assert_eq(fclose(file), 0);
}

static void expect_refused(const char *name, const char *font, enum status status,
                           const char *reason)
{
    const char *const paths[] = {PATHS[0], font}; /* what was opened before is closed again */
    struct font_set *set = NULL;
    struct error err = {0};

    cr_expect_eq(font_set_open(paths, 2, &set, &err), status, "%s: %s", name, err.text);
    cr_expect_null(set, "%s", name);
    cr_expect_eq(err.status, status, "%s", name);
    cr_expect_not_null(strstr(err.text, font), "%s: %s", name, err.text);
    cr_expect_not_null(strstr(err.text, reason), "%s: %s", name, err.text);
}

static unsigned char *font_bytes(size_t *len)
{
    FILE *file = fopen(PATHS[0], "rb");
    unsigned char *data;

    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    *len = (size_t)ftell(file);
    rewind(file);
    data = malloc(*len);
    cr_assert_not_null(data);
    cr_assert_eq(fread(data, 1, *len, file), *len);
    fclose(file);
    return data;
}

Test(font_set_open, names_the_file_that_is_no_font, .init = file_make, .fini = file_remove)
{
    expect_refused("empty", path, ST_INVALID, "not an OpenType font");
    file_write((const unsigned char *)"<html>no font</html>", 20);
    expect_refused("a page", path, ST_INVALID, "not an OpenType font");
    file_write((const unsigned char *)"\0\1\0\0\0\1", 6);
    expect_refused("six bytes", path, ST_INVALID, "");
    expect_refused("a directory", "/tmp", ST_INVALID, "not a file");
    expect_refused("a device", "/dev/zero", ST_INVALID, "not a file");
    expect_refused("nothing", "/tmp/test_font_none", ST_NOT_FOUND, "No such file");
    expect_refused("below a file", "/dev/null/font.ttf", ST_IO, "Not a directory");
}

Test(font_set_open, refuses_a_file_cut_short_wherever_it_is, .init = file_make, .fini = file_remove)
{
    size_t len;
    unsigned char *data = font_bytes(&len);

    file_write(data, len - 4);
    expect_refused("by four bytes", path, ST_INVALID, "cut short");
    for (size_t part = 1; part < 20; part++) {
        file_write(data, len * part / 20);
        expect_refused("in the middle", path, ST_INVALID, "font ");
    }
    free(data);
}

/* Rename a table in the font's directory, which stays in order. */
static void table_hide(unsigned char *data, const char *tag)
{
    size_t const tables = (size_t)data[4] << 8 | data[5];

    for (size_t i = 0; i < tables; i++)
        if (memcmp(data + 12 + 16 * i, tag, SIGNATURE_BYTES) == 0)
            data[12 + 16 * i + 3] = '~';
}

Test(font_set_open, names_the_table_that_is_missing, .init = file_make, .fini = file_remove)
{
    static const char *const TABLES[] = {"cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp"};

    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++) {
        size_t len;
        unsigned char *data = font_bytes(&len);

        table_hide(data, TABLES[i]);
        file_write(data, len);
        expect_refused(TABLES[i], path, ST_INVALID, TABLES[i]);
        free(data);
    }
}

Test(font_set_open, takes_a_file_of_the_largest_size_and_not_a_byte_more, .init = file_make,
     .fini = file_remove)
{
    const char *const paths[] = {path};
    struct font_set *set = NULL;
    size_t len;
    unsigned char *data = font_bytes(&len);

    file_write(data, len);
    free(data);
    cr_assert_eq(truncate(path, FONT_FILE_BYTES_MAX), 0);
    cr_expect_eq(font_set_open(paths, 1, &set, NULL), ST_OK);
    font_set_free(&set);
    cr_assert_eq(truncate(path, FONT_FILE_BYTES_MAX + 1), 0);
    expect_refused("a byte more", path, ST_TOO_LARGE, "over 67108864 bytes");
}

Test(font_set_open, leaves_nothing_when_memory_ends)
{
    size_t call = 1;

    for (bool has_failed = true; has_failed; call++) {
        struct font_set *set = NULL;
        struct error err = {0};
        enum status st;

        failing_memory_start(call);
        st = font_set_open(PATHS, 2, &set, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu: %s", call, err.text);
        cr_expect_eq(set == NULL, has_failed);
        font_set_free(&set);
    }
    cr_expect_gt(call, 3);
}

/* ---- sets of glyphs ---- */

Test(glyph_set_add, keeps_each_glyph_apart, .init = setup, .fini = teardown)
{
    uint32_t const last = font_metrics(fonts, 0)->glyph_count - 1;
    uint32_t const ids[] = {0, 1, 63, 64, 65, 127, last};
    struct glyph_set glyphs = {0};
    size_t count = 0;

    cr_expect(glyph_set_is_empty(&glyphs) && !glyph_set_has(&glyphs, 0));
    cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
    cr_expect(glyph_set_is_empty(&glyphs));
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        cr_expect_not(glyph_set_has(&glyphs, ids[i]));
        glyph_set_add(&glyphs, ids[i]);
        cr_expect(glyph_set_has(&glyphs, ids[i]));
    }
    cr_expect_not(glyph_set_is_empty(&glyphs));
    for (uint32_t glyph = 0; glyph <= last + 200; glyph++)
        count += glyph_set_has(&glyphs, glyph);
    cr_expect_eq(count, sizeof ids / sizeof *ids);
    glyph_set_clear(&glyphs);
    cr_expect(glyphs.words == NULL && glyphs.words_count == 0);
}

Test(glyph_set_unite, has_what_either_has, .init = setup, .fini = teardown)
{
    struct glyph_set a = {0}, b = {0};

    cr_assert_eq(glyph_set_init(&a, fonts, 0, NULL), ST_OK);
    cr_assert_eq(glyph_set_init(&b, fonts, 0, NULL), ST_OK);
    glyph_set_add(&a, 5);
    glyph_set_add(&b, 5);
    glyph_set_add(&b, 700);
    glyph_set_unite(&a, &b);
    cr_expect(glyph_set_has(&a, 5) && glyph_set_has(&a, 700) && !glyph_set_has(&a, 6));
    cr_expect(glyph_set_has(&b, 5) && glyph_set_has(&b, 700));
    glyph_set_clear(&a);
    glyph_set_clear(&b);
}

Test(glyph_set_init, says_when_memory_ends, .init = setup, .fini = teardown)
{
    struct glyph_set glyphs = {0};

    failing_memory_start(1);
    cr_expect_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_null(glyphs.words);
}

/* ---- subsets ---- */

static hb_font_t *font_from_bytes(const struct bytes *file)
{
    hb_blob_t *blob = hb_blob_create_or_fail((const char *)file->data, (unsigned)file->len,
                                             HB_MEMORY_MODE_READONLY, NULL, NULL);
    hb_face_t *face;
    hb_font_t *font;

    cr_assert_not_null(blob);
    cr_assert_eq(hb_face_count(blob), 1);
    face = hb_face_create(blob, 0);
    font = hb_font_create(face);
    hb_font_set_scale(font, FONT_EM, FONT_EM);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
    return font;
}

static bool has_same_ink(hb_font_t *cut, size_t face, uint32_t glyph)
{
    hb_glyph_extents_t a = {0}, b = {0};

    cr_assert(hb_font_get_glyph_extents(cut, glyph, &a));
    cr_assert(hb_font_get_glyph_extents(font_shaper(fonts, face), glyph, &b));
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool has_ink(hb_font_t *cut, uint32_t glyph)
{
    hb_glyph_extents_t extents = {0};

    return hb_font_get_glyph_extents(cut, glyph, &extents) && extents.width != 0 &&
           extents.height != 0;
}

Test(font_subset, opens_again_and_holds_its_glyphs_under_their_own_ids, .init = setup,
     .fini = teardown)
{
    static const uint32_t CODE_POINTS[] = {
        'A', 'g', E_CIRCUMFLEX_TILDE, E_CIRCUMFLEX_DOT_BELOW, 0x141, 0x130, 0x416, 0x1F84};

    for (size_t face = 0; face < 2; face++) {
        struct glyph_set glyphs = {0};
        struct bytes file = {0};
        hb_font_t *cut;
        size_t glyphs_kept = 0, glyphs_inked = 0;

        cr_assert_eq(glyph_set_init(&glyphs, fonts, face, NULL), ST_OK);
        for (size_t i = 0; i < sizeof CODE_POINTS / sizeof *CODE_POINTS; i++)
            glyph_set_add(&glyphs, glyph_of(face, CODE_POINTS[i]));
        cr_assert_eq(font_subset(fonts, face, &glyphs, &file, NULL), ST_OK);
        cr_expect_lt(file.len, 30000);
        cut = font_from_bytes(&file);
        cr_expect_eq(hb_face_get_upem(hb_font_get_face(cut)), 1000);
        for (size_t i = 0; i < sizeof CODE_POINTS / sizeof *CODE_POINTS; i++) {
            uint32_t const glyph = glyph_of(face, CODE_POINTS[i]);

            cr_expect(glyph_set_has(&glyphs, glyph));
            cr_expect(has_ink(cut, glyph), "U+%04X", CODE_POINTS[i]);
            cr_expect(has_same_ink(cut, face, glyph), "U+%04X", CODE_POINTS[i]);
            cr_expect_eq(hb_font_get_glyph_h_advance(cut, glyph), font_advance(fonts, face, glyph),
                         "U+%04X", CODE_POINTS[i]);
        }
        cr_expect(glyph_set_has(&glyphs, 0) && has_ink(cut, 0), "the box for what is missing");
        for (uint32_t glyph = 0; glyph < font_metrics(fonts, face)->glyph_count; glyph++) {
            glyphs_kept += glyph_set_has(&glyphs, glyph);
            glyphs_inked += has_ink(cut, glyph);
            cr_assert(!has_ink(cut, glyph) || glyph_set_has(&glyphs, glyph), "glyph %u", glyph);
        }
        cr_expect_leq(glyphs_inked, glyphs_kept);
        cr_expect_lt(glyphs_kept, 40);
        hb_font_destroy(cut);
        glyph_set_clear(&glyphs);
        bytes_clear(&file);
    }
}

Test(font_subset, takes_the_accents_of_a_letter_along, .init = setup, .fini = teardown)
{
    uint32_t const whole = glyph_of(0, E_CIRCUMFLEX_DOT_BELOW);
    struct glyph_set glyphs = {0};
    struct bytes file = {0};
    hb_font_t *cut;
    size_t kept = 0;

    cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
    glyph_set_add(&glyphs, whole);
    cr_assert_eq(font_subset(fonts, 0, &glyphs, &file, NULL), ST_OK);
    for (uint32_t glyph = 0; glyph < font_metrics(fonts, 0)->glyph_count; glyph++)
        kept += glyph_set_has(&glyphs, glyph);
    cr_expect_gt(kept, 2, "the parts of a composite are counted among the glyphs of the file");
    cut = font_from_bytes(&file);
    cr_expect(has_same_ink(cut, 0, whole));
    hb_font_destroy(cut);
    glyph_set_clear(&glyphs);
    bytes_clear(&file);
}

Test(font_subset, of_nothing_is_the_box_for_what_is_missing, .init = setup, .fini = teardown)
{
    struct glyph_set glyphs = {0};
    struct bytes file = {0};

    cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
    cr_assert_eq(font_subset(fonts, 0, &glyphs, &file, NULL), ST_OK);
    cr_expect(glyph_set_has(&glyphs, 0) && file.len > 0);
    glyph_set_clear(&glyphs);
    bytes_clear(&file);
}

Test(font_subset, is_the_same_file_each_time_and_does_not_change_the_face, .init = setup,
     .fini = teardown)
{
    struct bytes files[2] = {0};

    for (size_t i = 0; i < 2; i++) {
        struct glyph_set glyphs = {0};

        cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
        glyph_set_add(&glyphs, glyph_of(0, 'Q'));
        cr_assert_eq(font_subset(fonts, 0, &glyphs, &files[i], NULL), ST_OK);
        glyph_set_clear(&glyphs);
    }
    cr_assert_eq(files[0].len, files[1].len);
    cr_expect_arr_eq(files[0].data, files[1].data, files[0].len);
    bytes_clear(&files[0]);
    bytes_clear(&files[1]);
}

Test(font_subset, leaves_no_file_when_memory_ends, .init = setup, .fini = teardown)
{
    struct glyph_set glyphs = {0};
    struct bytes file = {0};

    cr_assert_eq(glyph_set_init(&glyphs, fonts, 0, NULL), ST_OK);
    failing_memory_start(1);
    cr_expect_eq(font_subset(fonts, 0, &glyphs, &file, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect(file.data == NULL && file.len == 0);
    glyph_set_clear(&glyphs);
}

/* ---- compact outlines and collections ---- */

#define COLLECTION "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"

/* Named glyphs; CID-keyed, the first face of a collection and one from its middle. */
static const char *const COMPACT[] = {
    "/usr/share/fonts/opentype/ebgaramond/EBGaramond12-Regular.otf", COLLECTION, COLLECTION "#2"};

static void setup_compact(void)
{
    struct error err = {0};

    cr_assert_eq(font_set_open(COMPACT, 3, &fonts, &err), ST_OK, "%s", err.text);
    for (size_t face = 0; face < 3; face++)
        cr_assert_not_null(font_shaper(fonts, face));
}

Test(font_set_open, takes_a_member_of_a_collection_by_its_number, .init = setup_compact,
     .fini = teardown)
{
    cr_expect_eq(font_metrics(fonts, 0)->outlines, FONT_CFF);
    cr_expect_str_eq(font_metrics(fonts, 1)->postscript_name, "NotoSansCJKjp-Regular");
    cr_expect_str_eq(font_metrics(fonts, 2)->postscript_name, "NotoSansCJKsc-Regular");
    cr_expect(font_has(fonts, 2, 0x5C71) && font_has(fonts, 2, 0x20021));
    cr_expect_not(font_has(fonts, 0, 0x5C71));
}

Test(font_set_open, names_the_member_that_there_is_not)
{
    expect_refused("ten", COLLECTION "#10", ST_INVALID, "the file has 10 faces, from #0 on");
    expect_refused("of one face", "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf#1",
                   ST_INVALID, "the file has 1 faces");
    expect_refused("no number", COLLECTION "#a", ST_NOT_FOUND, "No such file");
    expect_refused("nothing", COLLECTION "#", ST_NOT_FOUND, "No such file");
    expect_refused("a large number", COLLECTION "#99999999999999999999", ST_NOT_FOUND, "");
}

Test(font_reach, of_compact_outlines_is_their_inks, .init = setup_compact, .fini = teardown)
{
    for (size_t face = 0; face < 3; face++) {
        struct glyph_reach const g = font_reach(fonts, face, glyph_of(face, 'g'));

        cr_expect(g.top > 400 * UNIT && g.top < 700 * UNIT, "%d", g.top);
        cr_expect(g.bottom < -150 * UNIT && g.bottom > -400 * UNIT, "%d", g.bottom);
        cr_expect_eq(font_reach(fonts, face, glyph_of(face, ' ')).top, 0);
    }
}

Test(font_subset, of_compact_outlines_is_a_table_without_the_rest, .init = setup_compact,
     .fini = teardown)
{
    for (size_t face = 0; face < 3; face++) {
        struct glyph_set glyphs = {0};
        struct bytes file = {0};

        cr_assert_eq(glyph_set_init(&glyphs, fonts, face, NULL), ST_OK);
        glyph_set_add(&glyphs, glyph_of(face, 'Q'));
        glyph_set_add(&glyphs, glyph_of(face, 'g'));
        cr_assert_eq(font_subset(fonts, face, &glyphs, &file, NULL), ST_OK);
        cr_expect(file.data[0] == 1 && file.data[1] == 0, "the version of the table");
        cr_expect_lt(file.len, face == 0 ? 30000 : 4000);
        cr_expect(glyph_set_has(&glyphs, 0) && glyph_set_has(&glyphs, glyph_of(face, 'g')));
        cr_expect_eq(font_cid(fonts, face, glyph_of(face, 'g')), glyph_of(face, 'g'),
                     "in these faces the two are the same");
        glyph_set_clear(&glyphs);
        bytes_clear(&file);
    }
}

Test(font_subset, of_compact_outlines_leaves_no_file_when_memory_ends, .init = setup_compact,
     .fini = teardown)
{
    struct glyph_set glyphs = {0};
    struct bytes file = {0};

    cr_assert_eq(glyph_set_init(&glyphs, fonts, 1, NULL), ST_OK);
    failing_memory_start(1);
    cr_expect_eq(font_subset(fonts, 1, &glyphs, &file, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect(file.data == NULL && file.len == 0);
    glyph_set_clear(&glyphs);
}

/* ---- shapers and the hash ---- */

Test(font_shaper, is_none_when_memory_ends_and_there_the_next_time)
{
    size_t call = 1;

    for (bool has_failed = true; has_failed; call++) {
        struct font_set *set = NULL;
        struct hb_font_t *font;

        cr_assert_eq(font_set_open(PATHS, 1, &set, NULL), ST_OK);
        font_memory_watch();
        failing_memory_start(call);
        font = font_shaper(set, 0);
        has_failed = failing_memory_stop();
        cr_expect_eq(font == NULL, has_failed, "call %zu", call);
        cr_expect_eq(font_memory_has_ended(), has_failed, "call %zu", call);
        font = font_shaper(set, 0);
        cr_expect_not_null(font);
        cr_expect_eq(font_shaper(set, 0), font, "it is made once");
        font_set_free(&set);
    }
    cr_expect_gt(call, 2);
}

static void hash_of(const char *const *paths, size_t count, uint8_t hash[SHA256_BYTES])
{
    struct font_set *set = NULL;

    cr_assert_eq(font_set_open(paths, count, &set, NULL), ST_OK);
    cr_assert_eq(font_set_hash(set, hash, NULL), ST_OK);
    font_set_free(&set);
}

Test(font_set_hash, tells_faces_their_order_and_versions_apart, .init = file_make,
     .fini = file_remove)
{
    static const char *const TURNED[] = {COLLECTION "#2", COLLECTION "#1"};
    const char *const copy[] = {path};
    uint8_t hashes[7][SHA256_BYTES];
    size_t len;
    unsigned char *data = font_bytes(&len);

    cr_assert_eq(sign_start(NULL), ST_OK);
    hash_of(PATHS, 2, hashes[0]);
    hash_of(PATHS, 1, hashes[1]);
    hash_of(PATHS + 1, 1, hashes[2]);
    hash_of(COMPACT + 1, 2, hashes[3]);
    hash_of(TURNED, 2, hashes[4]);
    hash_of(TURNED, 1, hashes[5]);
    file_write(data, len);
    hash_of(copy, 1, hashes[6]);
    cr_expect_arr_eq(hashes[6], hashes[1], SHA256_BYTES, "wherever the file lies");
    data[12 + 16 + 7] ^= 1; /* the checksum of the second table */
    file_write(data, len);
    hash_of(copy, 1, hashes[6]);
    free(data);
    for (size_t a = 0; a < 7; a++)
        for (size_t b = 0; b < a; b++)
            cr_expect_neq(memcmp(hashes[a], hashes[b], SHA256_BYTES), 0, "%zu and %zu", a, b);
}
