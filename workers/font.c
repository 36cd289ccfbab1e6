#include "workers/font.h"

#include "workers/cff.h"
#include "workers/sfnt.h"
#include "workers/subset.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <hb-ot.h>
#include <hb-subset.h>
#include <hb.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PLAN_BYTES = 4 << 20, /* more than planning a subset allocates */
    MEMBERS_MAX = 1000,
    WARM_UP_CHARACTERS = 16,
    SEMI_BOLD = 600, /* OS/2 usWeightClass: from here on a face counts as bold */
};

/* What shaping takes: made once, at first use, and never changed. */
struct shaper {
    hb_face_t *face;
    hb_font_t *font;
    uint32_t *code_points; /* glyph_count of them, as of the next */
    uint16_t *cids;        /* of CID-keyed faces; else NULL */
};

struct face {
    const uint8_t *file; /* mapped; file_len bytes */
    size_t file_len;
    uint32_t member; /* of the file */
    struct sfnt sfnt;
    struct cff cff;
    struct font_metrics metrics;
    struct shaper *_Atomic shaper; /* NULL until it is first asked for */
};

struct font_set {
    size_t count;
    struct face *faces; /* count of them */
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

/* "FILE#N" names a member of a collection; without "#N" it is the first. */
static enum status split_path(const char *path, char file[PATH_MAX], uint32_t *member,
                              struct error *err)
{
    const char *mark = strrchr(path, '#');
    size_t len = strlen(path);
    uint32_t number = 0;
    bool has_member = mark != NULL && mark[1] != '\0';

    for (const char *c = mark; has_member && *++c != '\0';) {
        has_member = *c >= '0' && *c <= '9' && number < MEMBERS_MAX;
        number = number * 10 + (uint32_t)(*c - '0');
    }
    if (has_member)
        len = (size_t)(mark - path);
    if (len >= PATH_MAX)
        return error_set(err, ST_INVALID, "font %s: the path is too long", path);
    memcpy(file, path, len);
    file[len] = '\0';
    *member = has_member ? number : 0;
    return ST_OK;
}

static enum status check_file(const char *path, int fd, struct face *face, struct error *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return open_error(path, err);
    if (!S_ISREG(info.st_mode))
        return error_set(err, ST_INVALID, "font %s: not a file", path);
    if (info.st_size > FONT_FILE_BYTES_MAX)
        return error_set(err, ST_TOO_LARGE, "font %s: over %d bytes", path, FONT_FILE_BYTES_MAX);
    if (info.st_size == 0)
        return error_set(err, ST_INVALID, "font %s: not an OpenType font", path);
    face->file_len = (size_t)info.st_size;
    return ST_OK;
}

static enum status map_file(const char *path, const char *file, struct face *face,
                            struct error *err)
{
    int const fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    void *mapped;
    enum status st;

    if (fd < 0)
        return open_error(path, err);
    st = check_file(path, fd, face, err);
    if (st == ST_OK) {
        mapped = mmap(NULL, face->file_len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped != MAP_FAILED)
            face->file = mapped;
        else
            st = open_error(path, err);
    }
    (void)close(fd);
    return st;
}

static enum status read_tables(const char *path, struct face *face, struct error *err)
{
    uint32_t const count = sfnt_faces_count(face->file, face->file_len);
    struct error fault = {0};
    enum status st;

    if (count == 0)
        return error_set(err, ST_INVALID, "font %s: not an OpenType font", path);
    if (face->member >= count)
        return error_set(err, ST_INVALID, "font %s: the file has %u faces, from #0 on", path,
                         count);
    st = sfnt_open(face->file, face->file_len, face->member, &face->sfnt, &fault);
    if (st == ST_OK && face->sfnt.cff.len > 0)
        st = cff_open(face->sfnt.cff, &face->cff, &fault);
    return st == ST_OK ? ST_OK : error_set(err, st, "font %s: %s", path, fault.text);
}

/* ---- what is known of a face ---- */

static hb_face_t *hb_face_new(const struct face *face)
{
    hb_blob_t *blob = hb_blob_create((const char *)face->file, (unsigned)face->file_len,
                                     HB_MEMORY_MODE_READONLY, NULL, NULL);
    hb_face_t *made = hb_face_create(blob, face->member);

    hb_blob_destroy(blob);
    return made;
}

static hb_font_t *hb_font_new(hb_face_t *face)
{
    hb_font_t *font = hb_font_create(face);

    hb_font_set_scale(font, FONT_EM, FONT_EM);
    return font;
}

/* From units of an em to thousandths of it. */
static int to_scale(int units, int64_t em)
{
    int64_t const scaled = (int64_t)units * FONT_SCALE * 2 + (units < 0 ? -em : em);

    return (int)(scaled / (2 * em));
}

static int metric(hb_font_t *font, hb_ot_metrics_tag_t tag)
{
    hb_position_t units = 0;

    hb_ot_metrics_get_position_with_fallback(font, tag, &units);
    return to_scale(units, FONT_EM);
}

/* PostScript names of fonts hold letters, digits and '-' in practice; anything else is left out, so
 * that the name is a plain PDF name. */
static void read_name(hb_face_t *face, struct font_metrics *metrics)
{
    char name[64] = "";
    unsigned int size = sizeof name;
    size_t len = 0;

    hb_ot_name_get_utf8(face, HB_OT_NAME_ID_POSTSCRIPT_NAME, HB_LANGUAGE_INVALID, &size, name);
    for (const char *c = name; *c != '\0'; c++) {
        bool const is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= '0' && *c <= '9') || *c == '-';
        if (is_plain)
            metrics->postscript_name[len++] = *c;
    }
    if (len == 0)
        memcpy(metrics->postscript_name, "Font", sizeof "Font");
}

/* With a font of HarfBuzz's that is used for nothing else. */
static void read_metrics(const struct sfnt *sfnt, hb_font_t *font, struct font_metrics *metrics)
{
    metrics->units_per_em = sfnt->units_per_em;
    metrics->glyph_count = sfnt->glyph_count;
    metrics->outlines = sfnt->cff.len > 0 ? FONT_CFF : FONT_GLYF;
    metrics->ascent = metric(font, HB_OT_METRICS_TAG_HORIZONTAL_ASCENDER);
    metrics->descent = metric(font, HB_OT_METRICS_TAG_HORIZONTAL_DESCENDER);
    metrics->cap_height = metric(font, HB_OT_METRICS_TAG_CAP_HEIGHT);
    metrics->x_height = metric(font, HB_OT_METRICS_TAG_X_HEIGHT);
    metrics->italic_angle = (int)hb_style_get_value(font, HB_STYLE_TAG_SLANT_ANGLE);
    metrics->weight = hb_style_get_value(font, HB_STYLE_TAG_WEIGHT) >= (float)SEMI_BOLD
                          ? FONT_BOLD
                          : FONT_REGULAR;
    metrics->stem_v =
        metrics->weight == FONT_BOLD ? 140 : 80; /* no table holds it; viewers guess so too */
    for (size_t i = 0; i < 4; i++) /* the union of all glyph boxes: head, bytes 36 to 43 */
        metrics->bbox[i] = to_scale(sfnt_i16(sfnt->head.data + 36 + 2 * i), sfnt->units_per_em);
    read_name(hb_font_get_face(font), metrics);
}

static enum status face_open(struct face *face, const char *path, struct error *err)
{
    char file[PATH_MAX];
    enum status st = split_path(path, file, &face->member, err);
    hb_face_t *hb_face;
    hb_font_t *hb_font;

    if (st == ST_OK)
        st = map_file(path, file, face, err);
    if (st == ST_OK)
        st = read_tables(path, face, err);
    if (st != ST_OK)
        return st;
    font_memory_watch();
    hb_face = hb_face_new(face);
    hb_font = hb_font_new(hb_face);
    read_metrics(&face->sfnt, hb_font, &face->metrics);
    hb_font_destroy(hb_font);
    hb_face_destroy(hb_face);
    return font_memory_has_ended() ? error_set(err, ST_NO_MEMORY, "font %s", path) : ST_OK;
}

enum status font_set_open(const char *const *paths, size_t count, struct font_set **set,
                          struct error *err)
{
    struct font_set *made = calloc(1, sizeof *made);
    enum status st = ST_OK;

    assert(count >= 1 && count <= FONT_FACES_MAX);
    if (made != NULL)
        made->faces = calloc(count, sizeof *made->faces);
    if (made == NULL || made->faces == NULL)
        st = error_set(err, ST_NO_MEMORY, "the font set");
    else
        made->count = count;
    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = face_open(&made->faces[i], paths[i], err);
    if (st == ST_OK)
        *set = made;
    else
        font_set_free(&made);
    return st;
}

/* ---- shapers ---- */

static void shaper_free(struct shaper **shaper)
{
    if (*shaper == NULL)
        return;
    hb_font_destroy((*shaper)->font);
    hb_face_destroy((*shaper)->face);
    free((*shaper)->code_points);
    free((*shaper)->cids);
    free(*shaper);
    *shaper = NULL;
}

/* Some characters of the face, from all over its map. */
static void add_samples(const struct face *face, const struct shaper *shaper, hb_buffer_t *buffer)
{
    uint32_t const step = face->sfnt.glyph_count / WARM_UP_CHARACTERS + 1;

    for (uint32_t glyph = 0; glyph < face->sfnt.glyph_count; glyph += step)
        if (shaper->code_points[glyph] != 0)
            hb_buffer_add(buffer, shaper->code_points[glyph], glyph);
}

/*
 * Shape and measure once, for nothing: HarfBuzz makes what it needs of a face's tables at first
 * use, and where that fails for want of memory it takes them for empty from then on. Texts must not
 * be set in such a face.
 */
static void warm_up(const struct face *face, const struct shaper *shaper)
{
    hb_buffer_t *buffer = hb_buffer_create();
    hb_glyph_extents_t extents;

    hb_buffer_set_content_type(buffer, HB_BUFFER_CONTENT_TYPE_UNICODE);
    add_samples(face, shaper, buffer);
    hb_buffer_guess_segment_properties(buffer);
    hb_shape(shaper->font, buffer, NULL, 0);
    hb_buffer_destroy(buffer);
    (void)hb_font_get_glyph_extents(shaper->font, 0, &extents);
}

static void shaper_fill(const struct face *face, struct shaper *shaper)
{
    shaper->face = hb_face_new(face);
    shaper->font = hb_font_new(shaper->face);
    sfnt_characters(&face->sfnt, shaper->code_points);
    if (shaper->cids != NULL)
        cff_cids(&face->cff, face->sfnt.glyph_count, shaper->cids);
    warm_up(face, shaper);
    hb_face_make_immutable(shaper->face);
    hb_font_make_immutable(shaper->font);
}

static struct shaper *shaper_new(const struct face *face)
{
    int const watched = errno;
    struct shaper *made = calloc(1, sizeof *made);
    bool has_room = made != NULL;

    if (has_room) {
        made->code_points = calloc(face->sfnt.glyph_count, sizeof *made->code_points);
        if (face->cff.is_cid_keyed)
            made->cids = calloc(face->sfnt.glyph_count, sizeof *made->cids);
        has_room = made->code_points != NULL && (made->cids != NULL || !face->cff.is_cid_keyed);
    }
    font_memory_watch();
    if (has_room)
        shaper_fill(face, made);
    if (has_room && !font_memory_has_ended()) {
        errno = watched;
        return made;
    }
    shaper_free(&made);
    errno = ENOMEM;
    return NULL;
}

/* Two threads may both make one: the first to be done is heard. */
static struct shaper *shaper_of(struct face *face)
{
    struct shaper *present = atomic_load_explicit(&face->shaper, memory_order_acquire);
    struct shaper *made;

    if (present != NULL)
        return present;
    made = shaper_new(face);
    if (made != NULL && !atomic_compare_exchange_strong(&face->shaper, &present, made)) {
        shaper_free(&made);
        return present;
    }
    return made;
}

static void face_close(struct face *face)
{
    struct shaper *shaper = atomic_load(&face->shaper);

    shaper_free(&shaper);
    if (face->file != NULL)
        (void)munmap((void *)(uintptr_t)face->file, face->file_len);
}

void font_set_free(struct font_set **set)
{
    if (*set == NULL)
        return;
    for (size_t i = 0; i < (*set)->count; i++)
        face_close(&(*set)->faces[i]);
    free((*set)->faces);
    free(*set);
    *set = NULL;
}

/* ---- the set's hash ---- */

/* Numbers are big-endian: the hash is the same on every machine. */
struct record {
    uint8_t directory[SHA256_BYTES], head[SHA256_BYTES];
    uint8_t file_len[4], member[4];
};
_Static_assert(sizeof(struct record) == 2 * SHA256_BYTES + 8, "has no gaps");

static void put_u32(uint8_t *at, uint32_t number)
{
    for (int byte = 0; byte < 4; byte++)
        at[byte] = (uint8_t)(number >> (24 - 8 * byte));
}

static enum status make_record(const struct face *face, struct record *record, struct error *err)
{
    const struct sfnt *sfnt = &face->sfnt;
    enum status st = sign_sha256(sfnt->directory.data, sfnt->directory.len, record->directory, err);

    put_u32(record->file_len, (uint32_t)face->file_len);
    put_u32(record->member, face->member);
    return st == ST_OK ? sign_sha256(sfnt->head.data, sfnt->head.len, record->head, err) : st;
}

enum status font_set_hash(const struct font_set *set, uint8_t hash[SHA256_BYTES], struct error *err)
{
    struct record records[FONT_FACES_MAX];
    enum status st = ST_OK;

    for (size_t i = 0; i < set->count && st == ST_OK; i++)
        st = make_record(&set->faces[i], &records[i], err);
    return st == ST_OK ? sign_sha256(records, set->count * sizeof *records, hash, err) : st;
}

/* ---- asking ---- */

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

static struct face *face_at(const struct font_set *set, size_t face)
{
    assert(face < set->count);
    return &set->faces[face];
}

static const struct shaper *made_shaper(const struct font_set *set, size_t face)
{
    const struct shaper *shaper =
        atomic_load_explicit(&face_at(set, face)->shaper, memory_order_acquire);

    assert(shaper != NULL);
    return shaper;
}

const struct font_metrics *font_metrics(const struct font_set *set, size_t face)
{
    return &face_at(set, face)->metrics;
}

bool font_has(const struct font_set *set, size_t face, uint32_t code_point)
{
    return sfnt_glyph(&face_at(set, face)->sfnt, code_point) != 0;
}

/* From units of the face's em to FONT_EM. */
static int32_t to_em(const struct sfnt *sfnt, int64_t units)
{
    int64_t const em = sfnt->units_per_em;

    return (int32_t)((units * FONT_EM * 2 + (units < 0 ? -em : em)) / (2 * em));
}

int font_advance(const struct font_set *set, size_t face, uint32_t glyph)
{
    const struct sfnt *sfnt = &face_at(set, face)->sfnt;

    return to_em(sfnt, sfnt_advance(sfnt, glyph));
}

int font_width(const struct font_set *set, size_t face, uint32_t glyph)
{
    return to_scale(font_advance(set, face, glyph), FONT_EM);
}

uint32_t font_code_point(const struct font_set *set, size_t face, uint32_t glyph)
{
    assert(glyph < font_metrics(set, face)->glyph_count);
    return made_shaper(set, face)->code_points[glyph];
}

uint32_t font_cid(const struct font_set *set, size_t face, uint32_t glyph)
{
    assert(glyph < font_metrics(set, face)->glyph_count);
    return face_at(set, face)->cff.is_cid_keyed ? made_shaper(set, face)->cids[glyph] : glyph;
}

static struct glyph_reach reach_of_compact(hb_font_t *font, uint32_t glyph)
{
    hb_glyph_extents_t extents;

    if (!hb_font_get_glyph_extents(font, glyph, &extents))
        return (struct glyph_reach){0};
    return (struct glyph_reach){
        .top = extents.y_bearing,
        .bottom = extents.y_bearing + extents.height, /* the height is negative */
        .left = extents.x_bearing,
        .right = extents.x_bearing + extents.width,
    };
}

struct glyph_reach font_reach(const struct font_set *set, size_t face, uint32_t glyph)
{
    const struct sfnt *sfnt = &face_at(set, face)->sfnt;
    struct sfnt_part outline = {0};

    assert(glyph < sfnt->glyph_count);
    if (sfnt->cff.len > 0)
        return reach_of_compact(made_shaper(set, face)->font, glyph);
    if (!sfnt_outline(sfnt, glyph, &outline) || outline.len == 0)
        return (struct glyph_reach){0};
    return (struct glyph_reach){
        /* xMin, yMin, xMax and yMax of the glyph's header (OpenType, glyf) */
        .left = to_em(sfnt, sfnt_i16(outline.data + 2)),
        .bottom = to_em(sfnt, sfnt_i16(outline.data + 4)),
        .right = to_em(sfnt, sfnt_i16(outline.data + 6)),
        .top = to_em(sfnt, sfnt_i16(outline.data + 8)),
    };
}

struct hb_font_t *font_shaper(const struct font_set *set, size_t face)
{
    struct shaper *shaper = shaper_of(face_at(set, face));

    return shaper != NULL ? shaper->font : NULL;
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

bool glyph_set_next(const struct glyph_set *glyphs, uint32_t *glyph)
{
    size_t word = *glyph / 64;
    uint64_t bits =
        word < glyphs->words_count ? glyphs->words[word] & ~UINT64_C(0) << *glyph % 64 : 0;

    while (bits == 0 && ++word < glyphs->words_count)
        bits = glyphs->words[word];
    if (bits != 0)
        *glyph = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(bits);
    return bits != 0;
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

/* ---- subsets with HarfBuzz: compact outlines ---- */

/* Of the face only the table CFF is used; with GSUB gone, no alternates are pulled in. */
static const hb_tag_t DROPPED_TABLES[] = {
    HB_TAG('G', 'S', 'U', 'B'), HB_TAG('G', 'P', 'O', 'S'), HB_TAG('G', 'D', 'E', 'F'),
    HB_TAG('c', 'm', 'a', 'p'), HB_TAG('n', 'a', 'm', 'e'), HB_TAG('O', 'S', '/', '2'),
    HB_TAG('p', 'o', 's', 't'), HB_TAG('D', 'S', 'I', 'G'), HB_TAG('g', 'a', 's', 'p'),
    HB_TAG('k', 'e', 'r', 'n'), HB_TAG('V', 'O', 'R', 'G'), HB_TAG('v', 'h', 'e', 'a'),
    HB_TAG('v', 'm', 't', 'x'), HB_TAG('B', 'A', 'S', 'E'), HB_TAG('M', 'A', 'T', 'H'),
};

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

/* A CID-keyed face is packed, since its glyphs' CIDs go along. */
static hb_subset_input_t *input_from_glyphs(const struct glyph_set *glyphs, bool is_cid_keyed)
{
    hb_subset_input_t *input = hb_subset_input_create_or_fail();
    hb_set_t *wanted;
    hb_set_t *dropped;

    if (input == NULL)
        return NULL;
    hb_subset_input_set_flags(input, HB_SUBSET_FLAGS_NO_HINTING | HB_SUBSET_FLAGS_NOTDEF_OUTLINE |
                                         (is_cid_keyed ? 0U : HB_SUBSET_FLAGS_RETAIN_GIDS));
    dropped = hb_subset_input_set(input, HB_SUBSET_SETS_DROP_TABLE_TAG);
    for (size_t i = 0; i < sizeof DROPPED_TABLES / sizeof *DROPPED_TABLES; i++)
        hb_set_add(dropped, DROPPED_TABLES[i]);
    wanted = hb_subset_input_glyph_set(input);
    hb_set_add(wanted, 0);
    for (uint32_t glyph = 0; glyph_set_next(glyphs, &glyph); glyph++)
        hb_set_add(wanted, glyph);
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

static enum status append_cff(hb_face_t *face, struct bytes *file, struct error *err)
{
    hb_blob_t *table = hb_face_reference_table(face, HB_TAG('C', 'F', 'F', ' '));
    unsigned int len;
    const char *data = hb_blob_get_data(table, &len);
    enum status st = len > 0 ? bytes_append(file, data, len, err)
                             : error_set(err, ST_LIBRARY, "HarfBuzz made no table CFF");

    hb_blob_destroy(table);
    return st;
}

static enum status subset_compact(const struct face *face, const struct shaper *shaper,
                                  struct glyph_set *glyphs, struct bytes *file, struct error *err)
{
    hb_subset_input_t *input;
    hb_subset_plan_t *plan = NULL;
    hb_face_t *cut = NULL;
    enum status st;

    font_memory_watch();
    input = has_room_for_plan() ? input_from_glyphs(glyphs, face->cff.is_cid_keyed) : NULL;
    if (input != NULL)
        plan = hb_subset_plan_create_or_fail(shaper->face, input);
    if (plan != NULL)
        cut = hb_subset_plan_execute_or_fail(plan);
    if (cut == NULL) {
        st = error_set(err, input == NULL ? ST_NO_MEMORY : ST_LIBRARY, "HarfBuzz made no subset");
    } else {
        widen_by_plan(glyphs, plan);
        st = append_cff(cut, file, err);
    }
    hb_face_destroy(cut);
    if (plan != NULL)
        hb_subset_plan_destroy(plan);
    if (input != NULL)
        hb_subset_input_destroy(input);
    if (font_memory_has_ended())
        st = error_set(err, ST_NO_MEMORY, "a font subset");
    if (st != ST_OK)
        bytes_clear(file);
    return st;
}

enum status font_subset(const struct font_set *set, size_t face, struct glyph_set *glyphs,
                        struct bytes *file, struct error *err)
{
    const struct face *from = face_at(set, face);
    struct error fault = {0};
    enum status st;

    assert(file->capacity == 0);
    st = from->sfnt.cff.len == 0
             ? subset_outlines(&from->sfnt, glyphs, file, &fault)
             : subset_compact(from, made_shaper(set, face), glyphs, file, &fault);
    if (st != ST_OK)
        return error_set(err, st, "font %s: %s", from->metrics.postscript_name, fault.text);
    return ST_OK;
}
