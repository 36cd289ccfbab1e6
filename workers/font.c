#include "workers/font.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <hb-ot.h>
#include <hb-subset.h>
#include <hb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than planning a subset allocates. */
enum { PLAN_BYTES = 4 << 20 };

struct face {
    hb_face_t *face;      /* as opened: for shaping */
    hb_face_t *subsetter; /* preprocessed: for cutting */
    hb_font_t *font;
    struct font_metrics metrics;
    int *advances; /* glyph_count of them, as of the next two */
    uint32_t *code_points;
    struct glyph_reach *reaches;
};

struct font_set {
    size_t count;
    struct face faces[];
};

void font_memory_watch(void)
{
    errno = 0;
}

bool font_memory_has_ended(void)
{
    return errno == ENOMEM;
}

/* ---- files ---- */

static enum status open_error(const char *path, struct error *err)
{
    enum status st = errno == ENOENT ? ST_NOT_FOUND : errno == ENOMEM ? ST_NO_MEMORY : ST_IO;

    return error_set(err, st, "font %s: %s", path, strerrordesc_np(errno));
}

static enum status check_file(const char *path, struct error *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return open_error(path, err);
    if (!S_ISREG(info.st_mode))
        return error_set(err, ST_INVALID, "font %s: not a file", path);
    if (info.st_size > FONT_FILE_BYTES_MAX)
        return error_set(err, ST_TOO_LARGE, "font %s: over %d bytes", path, FONT_FILE_BYTES_MAX);
    return ST_OK;
}

static enum status face_read(struct face *face, const char *path, struct error *err)
{
    hb_blob_t *blob;
    enum status st = check_file(path, err);

    if (st != ST_OK)
        return st;
    errno = 0;
    blob = hb_blob_create_from_file_or_fail(path); /* mapped, not read */
    if (blob == NULL)
        return open_error(path, err);
    if (hb_face_count(blob) == 0) {
        hb_blob_destroy(blob);
        return error_set(err, ST_INVALID, "font %s: not an OpenType font", path);
    }
    face->face = hb_face_create(blob, 0);
    hb_blob_destroy(blob);
    return ST_OK;
}

/* ---- what is known of a face ---- */

/* From units of an em to thousandths of it. */
static int to_scale(int units, int64_t em)
{
    int64_t const scaled = (int64_t)units * FONT_SCALE * 2 + (units < 0 ? -em : em);

    return (int)(scaled / (2 * em));
}

static int metric(const struct face *face, hb_ot_metrics_tag_t tag)
{
    hb_position_t units = 0;

    hb_ot_metrics_get_position_with_fallback(face->font, tag, &units);
    return to_scale(units, FONT_EM);
}

/* PostScript names of fonts hold letters, digits and '-' in practice; anything else is left out, so
 * that the name is a plain PDF name. */
static void read_name(struct face *face)
{
    char name[64] = "";
    unsigned int size = sizeof name;
    size_t len = 0;

    hb_ot_name_get_utf8(face->face, HB_OT_NAME_ID_POSTSCRIPT_NAME, HB_LANGUAGE_INVALID, &size,
                        name);
    for (const char *c = name; *c != '\0'; c++) {
        bool const is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '-';
        if (is_plain)
            face->metrics.postscript_name[len++] = *c;
    }
    if (len == 0)
        memcpy(face->metrics.postscript_name, "Font", sizeof "Font");
}

static unsigned u16_at(const char *data, size_t offset)
{
    const unsigned char *bytes = (const unsigned char *)data + offset;

    return (unsigned)bytes[0] << 8 | bytes[1];
}

static uint32_t u32_at(const char *data, size_t offset)
{
    return (uint32_t)u16_at(data, offset) << 16 | u16_at(data, offset + 2);
}

/* The union of all glyph boxes, from the head table (OpenType: bytes 36 to 43). */
static void read_bbox(struct face *face)
{
    hb_blob_t *head = hb_face_reference_table(face->face, HB_TAG('h', 'e', 'a', 'd'));
    unsigned int len;
    const char *data = hb_blob_get_data(head, &len);

    for (size_t i = 0; i < 4 && len >= 44; i++)
        face->metrics.bbox[i] =
            to_scale((int16_t)u16_at(data, 36 + 2 * i), face->metrics.units_per_em);
    hb_blob_destroy(head);
}

static void read_metrics(struct face *face)
{
    float const weight = hb_style_get_value(face->font, HB_STYLE_TAG_WEIGHT);
    struct font_metrics *metrics = &face->metrics;

    metrics->ascent = metric(face, HB_OT_METRICS_TAG_HORIZONTAL_ASCENDER);
    metrics->descent = metric(face, HB_OT_METRICS_TAG_HORIZONTAL_DESCENDER);
    metrics->cap_height = metric(face, HB_OT_METRICS_TAG_CAP_HEIGHT);
    metrics->x_height = metric(face, HB_OT_METRICS_TAG_X_HEIGHT);
    metrics->italic_angle = (int)hb_style_get_value(face->font, HB_STYLE_TAG_SLANT_ANGLE);
    metrics->weight = weight >= 600.0F ? FONT_BOLD : FONT_REGULAR;
    metrics->stem_v =
        metrics->weight == FONT_BOLD ? 140 : 80; /* no table holds it; viewers guess so too */
    read_bbox(face);
    read_name(face);
}

static void read_glyph(struct face *face, uint32_t glyph)
{
    hb_glyph_extents_t extents;

    face->advances[glyph] = hb_font_get_glyph_h_advance(face->font, glyph);
    if (hb_font_get_glyph_extents(face->font, glyph, &extents))
        face->reaches[glyph] = (struct glyph_reach){
            .top = extents.y_bearing,
            .bottom = extents.y_bearing + extents.height, /* the height is negative */
        };
}

static enum status read_glyphs(struct face *face, struct error *err)
{
    uint32_t const count = face->metrics.glyph_count;
    hb_set_t *characters = hb_set_create();
    hb_codepoint_t character = HB_SET_VALUE_INVALID;
    bool is_complete;

    face->advances = calloc(count, sizeof *face->advances);
    face->code_points = calloc(count, sizeof *face->code_points);
    face->reaches = calloc(count, sizeof *face->reaches);
    hb_face_collect_unicodes(face->face, characters);
    is_complete = face->advances != NULL && face->code_points != NULL && face->reaches != NULL &&
                  hb_set_allocation_successful(characters);
    for (uint32_t glyph = 0; is_complete && glyph < count; glyph++)
        read_glyph(face, glyph);
    while (is_complete && hb_set_next(characters, &character)) {
        hb_codepoint_t glyph;

        if (hb_font_get_nominal_glyph(face->font, character, &glyph) && glyph < count &&
            face->code_points[glyph] == 0)
            face->code_points[glyph] = character;
    }
    hb_set_destroy(characters);
    return is_complete ? ST_OK : error_set(err, ST_NO_MEMORY, "the glyphs of a font");
}

static bool has_table(const struct face *face, hb_tag_t tag)
{
    hb_blob_t *table = hb_face_reference_table(face->face, tag);
    bool const has = hb_blob_get_length(table) > 0;

    hb_blob_destroy(table);
    return has;
}

/* HarfBuzz reads a file cut short as one whose last glyphs are blank. (OpenType: the table
 * directory has 12 bytes and 16 a table, offset and length at their bytes 8 and 12.) */
static bool is_whole(const struct face *face)
{
    enum { HEAD_BYTES = 12, RECORD_BYTES = 16 };
    hb_blob_t *file = hb_face_reference_blob(face->face);
    unsigned int len;
    const char *data = hb_blob_get_data(file, &len);
    bool is_whole = len >= HEAD_BYTES && len >= HEAD_BYTES + u16_at(data, 4) * RECORD_BYTES;

    for (size_t i = 0; is_whole && i < u16_at(data, 4); i++) {
        size_t const record = HEAD_BYTES + i * RECORD_BYTES;

        is_whole = u32_at(data, record + 8) <= len &&
                   u32_at(data, record + 12) <= len - u32_at(data, record + 8);
    }
    hb_blob_destroy(file);
    return is_whole;
}

/* What a TrueType face cannot do without (OpenType, required tables). */
static enum status check_tables(const struct face *face, const char *path, struct error *err)
{
    static const char TABLES[][5] = {"cmap", "head", "hhea", "hmtx", "loca", "maxp"};

    if (!has_table(face, HB_TAG('g', 'l', 'y', 'f')))
        return error_set(err, ST_INVALID, "font %s: has no TrueType outlines (table glyf)", path);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++)
        if (!has_table(face, hb_tag_from_string(TABLES[i], 4)))
            return error_set(err, ST_INVALID, "font %s: has no table %s", path, TABLES[i]);
    if (!is_whole(face))
        return error_set(err, ST_INVALID, "font %s: is cut short", path);
    return ST_OK;
}

/*
 * HarfBuzz 6.0 may crash where memory ends while it plans a subset: it frees what it never got. So
 * it is not let in there with less than a plan takes. Other threads may still take that first.
 */
static bool has_room_for_plan(void)
{
    void *volatile room = malloc(PLAN_BYTES);
    bool const has_room = room != NULL;

    free(room);
    return has_room;
}

/* HarfBuzz 6.0 hands the face itself back when it could not, and then without a reference. */
static hb_face_t *preprocess(hb_face_t *face)
{
    hb_face_t *made = hb_subset_preprocess(face);

    return made == face ? hb_face_reference(face) : made;
}

static enum status face_open(struct face *face, const char *path, struct error *err)
{
    enum status st = face_read(face, path, err);

    if (st != ST_OK)
        return st;
    st = check_tables(face, path, err);
    if (st != ST_OK)
        return st;
    face->metrics.units_per_em = hb_face_get_upem(face->face);
    face->metrics.glyph_count = hb_face_get_glyph_count(face->face);
    if (face->metrics.glyph_count == 0 || face->metrics.glyph_count > FONT_GLYPHS_MAX)
        return error_set(err, ST_INVALID, "font %s: %u glyphs; 1 to %d can be used", path,
                         face->metrics.glyph_count, FONT_GLYPHS_MAX);
    face->font = hb_font_create(face->face);
    if (face->font == hb_font_get_empty())
        return error_set(err, ST_NO_MEMORY, "font %s", path);
    hb_font_set_scale(face->font, FONT_EM, FONT_EM);
    read_metrics(face);
    st = read_glyphs(face, err);
    if (st == ST_OK && !has_room_for_plan())
        st = error_set(err, ST_NO_MEMORY, "font %s", path);
    if (st != ST_OK)
        return st;
    face->subsetter = preprocess(face->face);
    hb_face_make_immutable(face->face);
    hb_font_make_immutable(face->font);
    return ST_OK;
}

/*
 * Shape and cut once, for nothing: HarfBuzz makes what it needs of a face's tables at first use,
 * and where that fails for want of memory it takes them for empty from then on. Later jobs must not
 * be set in such a face.
 */
static enum status warm_up(const struct font_set *set, size_t face, struct error *err)
{
    struct glyph_set glyphs = {0};
    struct bytes file = {0};
    hb_buffer_t *buffer = hb_buffer_create();
    enum status st = glyph_set_init(&glyphs, set, face, err);

    hb_buffer_add_utf8(buffer, "Aa", 2, 0, 2);
    hb_buffer_guess_segment_properties(buffer);
    hb_shape(set->faces[face].font, buffer, NULL, 0);
    hb_buffer_destroy(buffer);
    if (st == ST_OK)
        st = font_subset(set, face, &glyphs, &file, err);
    bytes_clear(&file);
    glyph_set_clear(&glyphs);
    return st;
}

static enum status face_make_ready(struct font_set *set, size_t face, const char *path,
                                   struct error *err)
{
    enum status st;

    font_memory_watch();
    st = face_open(&set->faces[face], path, err);
    if (font_memory_has_ended())
        return error_set(err, ST_NO_MEMORY, "font %s", path);
    if (st == ST_OK)
        st = warm_up(set, face, err);
    return font_memory_has_ended() ? error_set(err, ST_NO_MEMORY, "font %s", path) : st;
}

enum status font_set_open(const char *const *paths, size_t count, struct font_set **set,
                          struct error *err)
{
    struct font_set *made;
    enum status st = ST_OK;

    assert(count >= 1 && count <= FONT_FACES_MAX);
    made = calloc(1, sizeof *made + count * sizeof made->faces[0]);
    if (made == NULL)
        return error_set(err, ST_NO_MEMORY, "the font set");
    made->count = count;
    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = face_make_ready(made, i, paths[i], err);
    if (st == ST_OK)
        *set = made;
    else
        font_set_free(&made);
    return st;
}

void font_set_free(struct font_set **set)
{
    if (*set == NULL)
        return;
    for (size_t i = 0; i < (*set)->count; i++) {
        struct face *face = &(*set)->faces[i];

        hb_font_destroy(face->font);
        hb_face_destroy(face->subsetter);
        hb_face_destroy(face->face);
        free(face->advances);
        free(face->code_points);
        free(face->reaches);
    }
    free(*set);
    *set = NULL;
}

size_t font_set_faces_count(const struct font_set *set)
{
    return set->count;
}

size_t font_set_face(const struct font_set *set, enum font_weight weight)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->faces[i].metrics.weight == weight)
            return i;
    return 0;
}

static const struct face *face_at(const struct font_set *set, size_t face)
{
    assert(face < set->count);
    return &set->faces[face];
}

const struct font_metrics *font_metrics(const struct font_set *set, size_t face)
{
    return &face_at(set, face)->metrics;
}

bool font_has(const struct font_set *set, size_t face, uint32_t code_point)
{
    hb_codepoint_t glyph;

    return hb_font_get_nominal_glyph(face_at(set, face)->font, code_point, &glyph);
}

int font_advance(const struct font_set *set, size_t face, uint32_t glyph)
{
    assert(glyph < face_at(set, face)->metrics.glyph_count);
    return face_at(set, face)->advances[glyph];
}

int font_width(const struct font_set *set, size_t face, uint32_t glyph)
{
    return to_scale(font_advance(set, face, glyph), FONT_EM);
}

uint32_t font_code_point(const struct font_set *set, size_t face, uint32_t glyph)
{
    assert(glyph < face_at(set, face)->metrics.glyph_count);
    return face_at(set, face)->code_points[glyph];
}

struct glyph_reach font_reach(const struct font_set *set, size_t face, uint32_t glyph)
{
    assert(glyph < face_at(set, face)->metrics.glyph_count);
    return face_at(set, face)->reaches[glyph];
}

struct hb_font_t *font_shaper(const struct font_set *set, size_t face)
{
    return face_at(set, face)->font;
}

/* ---- sets of glyphs ---- */

enum status glyph_set_init(struct glyph_set *glyphs, const struct font_set *set, size_t face,
                           struct error *err)
{
    size_t const words_count = ((size_t)font_metrics(set, face)->glyph_count + 63) / 64;

    glyphs->words = calloc(words_count, sizeof *glyphs->words);
    if (glyphs->words == NULL)
        return error_set(err, ST_NO_MEMORY, "a set of glyphs");
    glyphs->words_count = words_count;
    return ST_OK;
}

void glyph_set_clear(struct glyph_set *glyphs)
{
    free(glyphs->words);
    *glyphs = (struct glyph_set){0};
}

void glyph_set_add(struct glyph_set *glyphs, uint32_t glyph)
{
    assert(glyph / 64 < glyphs->words_count);
    glyphs->words[glyph / 64] |= UINT64_C(1) << (glyph % 64);
}

bool glyph_set_has(const struct glyph_set *glyphs, uint32_t glyph)
{
    return glyph / 64 < glyphs->words_count && (glyphs->words[glyph / 64] >> (glyph % 64)) & 1;
}

bool glyph_set_is_empty(const struct glyph_set *glyphs)
{
    for (size_t i = 0; i < glyphs->words_count; i++)
        if (glyphs->words[i] != 0)
            return false;
    return true;
}

void glyph_set_unite(struct glyph_set *dst, const struct glyph_set *src)
{
    assert(dst->words_count == src->words_count);
    for (size_t i = 0; i < src->words_count; i++)
        dst->words[i] |= src->words[i];
}

/* ---- subsets ---- */

/* A PDF viewer reads outlines and metrics only; with GSUB gone, no alternates are pulled in. */
static const hb_tag_t DROPPED_TABLES[] = {
    HB_TAG('G', 'S', 'U', 'B'), HB_TAG('G', 'P', 'O', 'S'), HB_TAG('G', 'D', 'E', 'F'),
    HB_TAG('c', 'm', 'a', 'p'), HB_TAG('n', 'a', 'm', 'e'), HB_TAG('O', 'S', '/', '2'),
    HB_TAG('p', 'o', 's', 't'), HB_TAG('D', 'S', 'I', 'G'), HB_TAG('g', 'a', 's', 'p'),
    HB_TAG('k', 'e', 'r', 'n'), HB_TAG('h', 'd', 'm', 'x'), HB_TAG('V', 'D', 'M', 'X'),
    HB_TAG('L', 'T', 'S', 'H'), HB_TAG('S', 'T', 'A', 'T'), HB_TAG('M', 'A', 'T', 'H'),
};

static hb_subset_input_t *input_from_glyphs(const struct glyph_set *glyphs)
{
    hb_subset_input_t *input = hb_subset_input_create_or_fail();
    hb_set_t *wanted;
    hb_set_t *dropped;

    if (input == NULL)
        return NULL;
    hb_subset_input_set_flags(input, HB_SUBSET_FLAGS_NO_HINTING | HB_SUBSET_FLAGS_RETAIN_GIDS |
                                         HB_SUBSET_FLAGS_NOTDEF_OUTLINE);
    dropped = hb_subset_input_set(input, HB_SUBSET_SETS_DROP_TABLE_TAG);
    for (size_t i = 0; i < sizeof DROPPED_TABLES / sizeof *DROPPED_TABLES; i++)
        hb_set_add(dropped, DROPPED_TABLES[i]);
    wanted = hb_subset_input_glyph_set(input);
    hb_set_add(wanted, 0);
    for (size_t word = 0; word < glyphs->words_count; word++)
        for (uint64_t bits = glyphs->words[word]; bits != 0; bits &= bits - 1)
            hb_set_add(wanted, (hb_codepoint_t)(word * 64 + (size_t)__builtin_ctzll(bits)));
    if (!hb_set_allocation_successful(wanted) || !hb_set_allocation_successful(dropped)) {
        hb_subset_input_destroy(input);
        return NULL;
    }
    return input;
}

static void widen_by_plan(struct glyph_set *glyphs, const hb_subset_plan_t *plan)
{
    const hb_map_t *kept = hb_subset_plan_old_to_new_glyph_mapping(plan);

    for (uint32_t glyph = 0; glyph < glyphs->words_count * 64; glyph++)
        if (hb_map_has(kept, glyph))
            glyph_set_add(glyphs, glyph);
}

static enum status bytes_from_face(hb_face_t *face, struct bytes *file, struct error *err)
{
    hb_blob_t *blob = hb_face_reference_blob(face);
    unsigned int len;
    const char *data = hb_blob_get_data(blob, &len);
    enum status st = len > 0 ? bytes_append(file, data, len, err)
                             : error_set(err, ST_NO_MEMORY, "a font subset");

    hb_blob_destroy(blob);
    return st;
}

enum status font_subset(const struct font_set *set, size_t face, struct glyph_set *glyphs,
                        struct bytes *file, struct error *err)
{
    const struct face *from = face_at(set, face);
    hb_subset_input_t *input;
    hb_subset_plan_t *plan = NULL;
    hb_face_t *cut = NULL;
    enum status st;

    assert(file->len == 0);
    font_memory_watch();
    input = has_room_for_plan() ? input_from_glyphs(glyphs) : NULL;
    if (input != NULL)
        plan = hb_subset_plan_create_or_fail(from->subsetter, input);
    if (plan != NULL)
        cut = hb_subset_plan_execute_or_fail(plan);
    if (cut == NULL) {
        st = error_set(err, input == NULL ? ST_NO_MEMORY : ST_LIBRARY, "a subset of font %s",
                       from->metrics.postscript_name);
    } else {
        widen_by_plan(glyphs, plan);
        st = bytes_from_face(cut, file, err);
    }
    hb_face_destroy(cut);
    if (plan != NULL)
        hb_subset_plan_destroy(plan);
    if (input != NULL)
        hb_subset_input_destroy(input);
    if (font_memory_has_ended())
        st = error_set(err, ST_NO_MEMORY, "a subset of font %s", from->metrics.postscript_name);
    if (st != ST_OK)
        bytes_clear(file);
    return st;
}
