#include "workers/pdf.h"

#include "domain/utf8.h"
#include "workers/reserve.h"

#include <assert.h>
#include <hpdf.h>
#include <hpdf_objects.h>
#include <hpdf_streams.h>
#include <lcms2.h>
#include <lcms2_plugin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KIDS_MAX = 128, /* of a page tree node; PDF 1.4 lets an array hold 8,191 items */
    OBJECTS_PER_FONT = 6,
    OBJECTS_PER_MIRRORED_FONT = 2,
    FIXED_OBJECTS = 4, /* catalog, info, metadata, colour profile */
    POOL_NODE_BYTES = 1 << 16,
    BYTES_PER_OBJECT = 192, /* at most: the frame of an object, its keys and its line in the xref */
    BYTES_PER_KID = 12,
    WIDTH_BYTES = 16, /* at most: a CID, a width and their delimiters */
    CIDS_MAX = 65536,
    LINE_BYTES_MAX = 512,
    DOCUMENT_BYTES_MAX = INT32_MAX,
    PROFILE_CURVE_POINTS = 1024,
    TAG_LETTERS = 6,
    BFCHARS_MAX = 100, /* entries of one block, Adobe Technical Note 5411 */
};

#define PRODUCER "ticketpress"
static const char HEADER[] = "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n"; /* the comment says: binary */

/* ---- the colour profile ---- */

struct pdf_profile {
    struct bytes deflated;
};

/* lcms2 2.14, too, reads through a null pointer where memory ends. */
static void *profile_malloc(cmsContext context, cmsUInt32Number bytes)
{
    (void)context;
    return reserve_malloc(NULL, bytes);
}

static void *profile_realloc(cmsContext context, void *memory, cmsUInt32Number bytes)
{
    (void)context;
    return reserve_realloc(NULL, memory, bytes);
}

static void profile_free(cmsContext context, void *memory)
{
    (void)context;
    reserve_free(NULL, memory);
}

static cmsContext profile_context(void)
{
    cmsPluginMemHandler memory = {
        .base = {.Magic = cmsPluginMagicNumber,
                 .ExpectedVersion = LCMS_VERSION,
                 .Type = cmsPluginMemHandlerSig},
        .MallocPtr = profile_malloc,
        .FreePtr = profile_free,
        .ReallocPtr = profile_realloc,
    };

    (void)reserve_was_touched();
    return reserve_is_low() ? NULL : cmsCreateContext(&memory, NULL);
}

/* The transfer curve of IEC 61966-2-1 as a table, since version 2 profiles know no formulas. */
static cmsToneCurve *srgb_curve(cmsContext context)
{
    static const cmsFloat64Number PARAMETERS[5] = {2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92,
                                                   0.04045};
    cmsUInt16Number table[PROFILE_CURVE_POINTS];
    cmsToneCurve *formula = cmsBuildParametricToneCurve(context, 4, PARAMETERS);
    cmsToneCurve *curve;

    if (formula == NULL)
        return NULL;
    for (int i = 0; i < PROFILE_CURVE_POINTS; i++) {
        int const last = PROFILE_CURVE_POINTS - 1;

        table[i] = cmsEvalToneCurve16(formula, (cmsUInt16Number)((i * 65535 + last / 2) / last));
    }
    curve = cmsBuildTabulatedToneCurve16(context, PROFILE_CURVE_POINTS, table);
    cmsFreeToneCurve(formula);
    return curve;
}

static cmsHPROFILE srgb_profile(cmsContext context)
{
    static const cmsCIExyY D65 = {0.3127, 0.3290, 1.0};
    static const cmsCIExyYTRIPLE PRIMARIES = {
        {0.64, 0.33, 1.0}, {0.30, 0.60, 1.0}, {0.15, 0.06, 1.0}};
    cmsToneCurve *curve = srgb_curve(context);
    cmsToneCurve *const curves[3] = {curve, curve, curve};
    cmsHPROFILE profile =
        curve == NULL ? NULL : cmsCreateRGBProfileTHR(context, &D65, &PRIMARIES, curves);

    cmsFreeToneCurve(curve);
    if (profile != NULL)
        cmsSetProfileVersion(profile, 2.1); /* PDF 1.4 knows no version 4 */
    return profile;
}

/* ICC.1 header: bytes 24 to 35 are the time of creation; the same bytes must come every day. */
static void fix_creation_time(struct bytes *profile)
{
    static const uint8_t NEW_YEAR_2000[12] = {0x07, 0xD0, 0, 1, 0, 1};

    assert(profile->len > 128);
    memcpy(profile->data + 24, NEW_YEAR_2000, sizeof NEW_YEAR_2000);
}

static enum status save_profile(cmsHPROFILE profile, struct bytes *out, struct error *err)
{
    cmsUInt32Number len = 0;
    enum status st = ST_OK;

    if (!cmsSaveProfileToMem(profile, NULL, &len))
        st = error_set(err, ST_LIBRARY, "lcms2 cannot save the colour profile");
    if (st == ST_OK)
        st = bytes_reserve(out, len, err);
    if (st == ST_OK && !cmsSaveProfileToMem(profile, out->data, &len))
        st = error_set(err, ST_LIBRARY, "lcms2 cannot save the colour profile");
    if (st == ST_OK) {
        out->len = len;
        fix_creation_time(out);
    }
    return st;
}

static enum status srgb_bytes(struct bytes *out, struct error *err)
{
    cmsContext context = profile_context();
    cmsHPROFILE profile = context == NULL ? NULL : srgb_profile(context);
    enum status st = profile == NULL ? error_set(err, ST_NO_MEMORY, "the colour profile")
                                     : save_profile(profile, out, err);

    if (profile != NULL)
        cmsCloseProfile(profile);
    if (context != NULL)
        cmsDeleteContext(context);
    if (st == ST_OK && reserve_was_touched())
        st = error_set(err, ST_NO_MEMORY, "the colour profile");
    return st;
}

enum status pdf_profile_new(struct pdf_profile **profile, struct error *err)
{
    struct pdf_profile *made = calloc(1, sizeof *made);
    struct deflater *deflater = NULL;
    struct bytes plain = {0};
    enum status st = made == NULL ? error_set(err, ST_NO_MEMORY, "the colour profile")
                                  : deflater_new(&deflater, err);

    if (st == ST_OK)
        st = srgb_bytes(&plain, err);
    if (st == ST_OK)
        st = deflate_append(deflater, DEFLATE_SMALL, plain.data, plain.len, &made->deflated, err);
    bytes_clear(&plain);
    deflater_free(&deflater);
    if (st == ST_OK)
        *profile = made;
    else
        pdf_profile_free(&made);
    return st;
}

void pdf_profile_free(struct pdf_profile **profile)
{
    if (*profile == NULL)
        return;
    bytes_clear(&(*profile)->deflated);
    free(*profile);
    *profile = NULL;
}

/* ---- a document under way ---- */

/* What a font needs beside its subset, made before the objects are written. */
struct font_parts {
    char name[TAG_LETTERS + 1 + sizeof((struct font_metrics *)0)->postscript_name];
    struct bytes file, to_unicode, cid_set; /* compressed */
    struct bytes mirrored;                  /* the map of mirrored characters; empty: none */
    size_t mirrored_object;                 /* the font with that map; 0: none */
};

struct composition {
    const struct pdf_input *input;
    const struct pdf_profile *profile;
    struct deflater *deflater;
    struct error *err;
    enum status status; /* the first failure */
    struct font_parts *fonts;
    struct bytes metadata;
    struct bytes *out;
    uint8_t digest[SHA256_BYTES]; /* of everything before the trailer */
    HPDF_Stream writer;           /* to out */

    HPDF_Error_Rec haru_error;
    HPDF_MMgr memory; /* pooled: all of libharu's objects are freed with it */
    HPDF_Xref xref;
    struct object *objects; /* objects_count of them: number 1 first */
    size_t objects_count, objects_max;
    /* object numbers, of the first where there are several */
    size_t catalog, info, metadata_object, profile_object, images, fonts_object, tree, pages;
    size_t sheets[PDF_SHEETS_MAX];
    size_t leaves; /* of the page tree: the nodes that hold pages */
};

/* An indirect object of ours: libharu numbers, frames and lists it, write() says what is in it. */
struct object {
    struct composition *composition;
    void (*write)(struct composition *composition, size_t index, HPDF_Stream stream);
    size_t index;           /* which page, font, ...: for write() */
    struct pdf_data stream; /* compressed or not, as write() says; data NULL: no stream */
};

static void fail(struct composition *composition, enum status status, const char *what)
{
    if (composition->status == ST_OK)
        composition->status = error_set(composition->err, status, "%s", what);
}

/* ---- writing ---- */

static void put_bytes(HPDF_Stream stream, const void *data, size_t len)
{
    HPDF_Stream_Write(stream, data, (HPDF_UINT)len); /* keeps the stream's own count */
}

__attribute__((format(printf, 2, 3))) static void put(HPDF_Stream stream, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof line);
    put_bytes(stream, line, (size_t)len);
}

/* A length in points with up to three decimals, from thousandths. */
static void put_mpt(HPDF_Stream stream, int32_t mpt)
{
    put(stream, "%d.%03d ", mpt / 1000, mpt % 1000);
}

static void put_utf16(HPDF_Stream stream, struct text text)
{
    put(stream, "<FEFF");
    while (text.len > 0) {
        uint32_t code_point = 0;
        size_t const len = utf8_decode(text.data, text.len, &code_point);

        assert(len > 0);
        if (code_point >= 0x10000)
            put(stream, "%04X%04X", 0xD7C0 + (code_point >> 10), 0xDC00 + (code_point & 0x3FF));
        else
            put(stream, "%04X", code_point);
        text.data += len;
        text.len -= len;
    }
    put(stream, ">");
}

/* libharu's callback for its own bytes and ours. */
static HPDF_STATUS append_to_out(HPDF_Stream stream, const HPDF_BYTE *data, HPDF_UINT len)
{
    struct composition *composition = stream->attr;

    if (composition->status == ST_OK)
        composition->status = bytes_append(composition->out, data, len, composition->err);
    return composition->status == ST_OK ? HPDF_OK : HPDF_FILE_IO_ERROR;
}

static HPDF_STATUS write_object(HPDF_Dict dict, HPDF_Stream stream)
{
    struct object *object = dict->attr;

    object->write(object->composition, object->index, stream);
    if (object->stream.data != NULL)
        put(stream, "/Length %zu", object->stream.len);
    return HPDF_OK;
}

/* After the dictionary's end: a stream needs no copy through libharu's own stream nodes, and its
 * length no object of its own. */
static HPDF_STATUS write_object_stream(HPDF_Dict dict)
{
    const struct object *object = dict->attr;
    struct composition *composition = object->composition;
    static const char BEGIN[] = "\nstream\n";
    static const char END[] = "\nendstream";
    HPDF_Stream stream = composition->writer;

    put_bytes(stream, BEGIN, sizeof BEGIN - 1);
    put_bytes(stream, object->stream.data, object->stream.len);
    put_bytes(stream, END, sizeof END - 1);
    return HPDF_OK;
}

/* Returns the object's number. */
static size_t add_object(struct composition *composition,
                         void (*write)(struct composition *, size_t, HPDF_Stream), size_t index,
                         struct pdf_data stream)
{
    HPDF_Dict dict = HPDF_Dict_New(composition->memory);
    struct object *object = &composition->objects[composition->objects_count++];

    assert(composition->objects_count <= composition->objects_max);
    *object = (struct object){composition, write, index, stream};
    if (dict == NULL || HPDF_Xref_Add(composition->xref, dict) != HPDF_OK) {
        fail(composition, ST_NO_MEMORY, "a PDF object");
        return composition->objects_count;
    }
    dict->attr = object;
    dict->write_fn = write_object;
    if (stream.data != NULL)
        dict->after_write_fn = write_object_stream;
    return composition->objects_count;
}

static struct pdf_data data_of(const struct bytes *bytes)
{
    return (struct pdf_data){.data = bytes->data, .len = bytes->len};
}

static const struct pdf_data NO_STREAM = {0};

/* ---- catalog, info, metadata, profile ---- */

static void write_catalog(struct composition *composition, size_t index, HPDF_Stream stream)
{
    const struct text language = composition->input->language;

    (void)index;
    put(stream, "/Type/Catalog/Pages %zu 0 R/Metadata %zu 0 R/Lang<", composition->tree,
        composition->metadata_object);
    for (size_t i = 0; i < language.len; i++)
        put(stream, "%02X", (unsigned char)language.data[i]);
    put(stream,
        ">/OutputIntents[<</Type/OutputIntent/S/GTS_PDFA1/OutputConditionIdentifier(sRGB "
        "IEC61966-2.1)/Info(sRGB IEC61966-2.1)/DestOutputProfile %zu 0 R>>]",
        composition->profile_object);
}

static void write_info(struct composition *composition, size_t index, HPDF_Stream stream)
{
    (void)index;
    put(stream, "/Title");
    put_utf16(stream, composition->input->title);
    put(stream, "/Producer(" PRODUCER ")");
}

static void write_metadata(struct composition *composition, size_t index, HPDF_Stream stream)
{
    (void)composition;
    (void)index;
    put(stream, "/Type/Metadata/Subtype/XML"); /* ISO 19005-1, 6.7.2: no filter */
}

static void write_profile(struct composition *composition, size_t index, HPDF_Stream stream)
{
    (void)composition;
    (void)index;
    put(stream, "/N 3/Filter/FlateDecode");
}

static void write_deflated(struct composition *composition, size_t index, HPDF_Stream stream)
{
    (void)composition;
    (void)index;
    put(stream, "/Filter/FlateDecode");
}

static enum status append_xml(struct bytes *out, struct text text, struct error *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < text.len && st == ST_OK; i++) {
        char const c = text.data[i];
        const char *const entity = c == '&'   ? "&amp;"
                                   : c == '<' ? "&lt;"
                                   : c == '>' ? "&gt;"
                                              : NULL;

        st = entity == NULL ? bytes_append(out, &c, 1, err)
                            : bytes_append(out, entity, strlen(entity), err);
    }
    return st;
}

/* XMP as ISO 19005-1 asks for it: part and conformance, and the same title and producer as Info. */
static enum status make_metadata(struct composition *composition)
{
    static const char BEFORE_TITLE[] =
        "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">"
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
        "<rdf:Description rdf:about=\"\""
        " xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\""
        " xmlns:dc=\"http://purl.org/dc/elements/1.1/\""
        " xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\">"
        "<pdfaid:part>1</pdfaid:part><pdfaid:conformance>B</pdfaid:conformance>"
        "<pdf:Producer>" PRODUCER "</pdf:Producer>"
        "<dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">";
    static const char AFTER_TITLE[] = "</rdf:li></rdf:Alt></dc:title></rdf:Description></rdf:RDF>"
                                      "</x:xmpmeta>\n<?xpacket end=\"r\"?>";
    struct bytes *out = &composition->metadata;
    enum status st = bytes_append(out, BEFORE_TITLE, sizeof BEFORE_TITLE - 1, composition->err);

    if (st == ST_OK)
        st = append_xml(out, composition->input->title, composition->err);
    if (st == ST_OK)
        st = bytes_append(out, AFTER_TITLE, sizeof AFTER_TITLE - 1, composition->err);
    return st;
}

/* ---- fonts ---- */

static const struct font_metrics *metrics_of(const struct composition *composition, size_t font)
{
    return font_metrics(composition->input->set, composition->input->fonts[font].face);
}

/* The tag of a subset (ISO 32000-1, 9.6.4) from its glyphs, so that it is the same every time. */
static void make_name(const struct composition *composition, size_t font, struct font_parts *parts)
{
    const struct glyph_set *glyphs = composition->input->fonts[font].glyphs;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (size_t i = 0; i < glyphs->words_count; i++)
        hash = (hash ^ glyphs->words[i]) * UINT64_C(1099511628211);
    for (int i = 0; i < TAG_LETTERS; i++, hash /= 26)
        parts->name[i] = (char)('A' + hash % 26);
    snprintf(parts->name + TAG_LETTERS, sizeof parts->name - TAG_LETTERS, "+%s",
             metrics_of(composition, font)->postscript_name);
}

static uint32_t cid_of(const struct composition *composition, size_t font, uint32_t glyph)
{
    return font_cid(composition->input->set, composition->input->fonts[font].face, glyph);
}

/* A bit for each glyph that the subset holds, the highest bit of the first byte for CID 0. */
static enum status make_cid_set(struct composition *composition, size_t font,
                                struct font_parts *parts)
{
    const struct glyph_set *glyphs = composition->input->fonts[font].glyphs;
    struct bytes bits = {0};
    enum status st = bytes_reserve(&bits, CIDS_MAX / 8, composition->err);

    if (st != ST_OK)
        return st;
    memset(bits.data, 0, CIDS_MAX / 8);
    for (uint32_t glyph = 0; glyph_set_next(glyphs, &glyph); glyph++) {
        uint32_t const cid = cid_of(composition, font, glyph);

        bits.data[cid / 8] |= (uint8_t)(0x80 >> cid % 8);
        if (bits.len < cid / 8 + 1)
            bits.len = cid / 8 + 1;
    }
    st = deflate_append(composition->deflater, DEFLATE_SMALL, bits.data, bits.len, &parts->cid_set,
                        composition->err);
    bytes_clear(&bits);
    return st;
}

__attribute__((format(printf, 3, 4))) static enum status
append(struct bytes *out, struct error *err, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof line);
    return bytes_append(out, line, (size_t)len, err);
}

static const struct glyph_reading *reading_of(const struct composition *composition, size_t font,
                                              uint32_t glyph)
{
    const struct readings *readings = composition->input->readings;

    return readings == NULL ? NULL
                            : readings_find(readings, composition->input->fonts[font].face, glyph);
}

static bool is_mapped(const struct composition *composition, size_t font, uint32_t glyph)
{
    const struct pdf_font *from = &composition->input->fonts[font];

    return font_code_point(composition->input->set, from->face, glyph) != 0 ||
           reading_of(composition, font, glyph) != NULL;
}

static uint32_t next_mapped(const struct composition *composition, size_t font, uint32_t glyph)
{
    for (; glyph_set_next(composition->input->fonts[font].glyphs, &glyph); glyph++)
        if (is_mapped(composition, font, glyph))
            return glyph;
    return metrics_of(composition, font)->glyph_count;
}

static enum status append_utf16(struct composition *composition, uint32_t code_point,
                                struct bytes *cmap)
{
    if (code_point >= 0x10000)
        return append(cmap, composition->err, "%04X%04X", 0xD7C0 + (code_point >> 10),
                      0xDC00 + (code_point & 0x3FF));
    return append(cmap, composition->err, "%04X", code_point);
}

static enum status append_reading(struct composition *composition,
                                  const struct glyph_reading *reading, struct bytes *cmap)
{
    enum status st = ST_OK;

    for (size_t at = 0; at < reading->len && st == ST_OK;) {
        uint32_t code_point = 0;
        size_t const len = utf8_decode(reading->data + at, reading->len - at, &code_point);

        assert(len > 0);
        st = append_utf16(composition, code_point, cmap);
        at += len;
    }
    return st;
}

static enum status append_bfchar(struct composition *composition, size_t font, uint32_t glyph,
                                 struct bytes *cmap)
{
    const struct pdf_font *from = &composition->input->fonts[font];
    const struct glyph_reading *reading = reading_of(composition, font, glyph);
    enum status st = append(cmap, composition->err, "<%04X><", cid_of(composition, font, glyph));

    if (st == ST_OK && reading != NULL)
        st = append_reading(composition, reading, cmap);
    else if (st == ST_OK)
        st = append_utf16(composition, font_code_point(composition->input->set, from->face, glyph),
                          cmap);
    return st == ST_OK ? append(cmap, composition->err, ">\n") : st;
}

/* Blocks of at most BFCHARS_MAX entries, each headed by its count. */
static enum status append_bfchars(struct composition *composition, size_t font, struct bytes *cmap)
{
    uint32_t const end = metrics_of(composition, font)->glyph_count;
    uint32_t glyph = next_mapped(composition, font, 0);
    enum status st = ST_OK;

    while (glyph < end && st == ST_OK) {
        uint32_t last = glyph;
        int count = 0;

        for (; last < end && count < BFCHARS_MAX; count++)
            last = next_mapped(composition, font, last + 1);
        st = append(cmap, composition->err, "%d beginbfchar\n", count);
        for (; glyph < last && st == ST_OK; glyph = next_mapped(composition, font, glyph + 1))
            st = append_bfchar(composition, font, glyph, cmap);
        if (st == ST_OK)
            st = append(cmap, composition->err, "endbfchar\n");
    }
    return st;
}

/* ISO 32000-1, 9.10.3: from CIDs to characters. */
static enum status make_map(struct composition *composition, size_t font,
                            enum status (*append_entries)(struct composition *, size_t,
                                                          struct bytes *),
                            struct bytes *out)
{
    struct bytes cmap = {0};
    enum status st = append(&cmap, composition->err,
                            "/CIDInit/ProcSet findresource begin\n12 dict begin\nbegincmap\n"
                            "/CIDSystemInfo<</Registry(Adobe)/Ordering(UCS)/Supplement 0>>def\n"
                            "/CMapName/Adobe-Identity-UCS def\n/CMapType 2 def\n"
                            "1 begincodespacerange\n<0000><FFFF>\nendcodespacerange\n");

    if (st == ST_OK)
        st = append_entries(composition, font, &cmap);
    if (st == ST_OK)
        st = append(&cmap, composition->err,
                    "endcmap\nCMapName currentdict/CMap defineresource pop\nend\nend\n");
    if (st == ST_OK)
        st = deflate_append(composition->deflater, DEFLATE_SMALL, cmap.data, cmap.len, out,
                            composition->err);
    bytes_clear(&cmap);
    return st;
}

static bool is_mirrored(const struct pdf_input *input, size_t font,
                        const struct glyph_reading *reading)
{
    return reading->face == (input->fonts[font].face | READINGS_MIRRORED);
}

/* One block: Unicode has not many pairs, and of these a document few. */
static enum status append_mirrored(struct composition *composition, size_t font, struct bytes *cmap)
{
    const struct readings *readings = composition->input->readings;
    size_t first = 0, end;
    enum status st;

    while (!is_mirrored(composition->input, font, &readings->list[first]))
        first++;
    end = first;
    while (end < readings->count && end - first < BFCHARS_MAX &&
           is_mirrored(composition->input, font, &readings->list[end]))
        end++;
    st = append(cmap, composition->err, "%zu beginbfchar\n", end - first);
    for (size_t i = first; i < end && st == ST_OK; i++) {
        const struct glyph_reading *reading = &readings->list[i];

        st = append(cmap, composition->err, "<%04X><", cid_of(composition, font, reading->glyph));
        if (st == ST_OK)
            st = append_reading(composition, reading, cmap);
        if (st == ST_OK)
            st = append(cmap, composition->err, ">\n");
    }
    return st == ST_OK ? append(cmap, composition->err, "endbfchar\n") : st;
}

static bool has_mirrored(const struct pdf_input *input, size_t font)
{
    const struct readings *readings = input->readings;
    bool has = false;

    for (size_t i = 0; readings != NULL && i < readings->count && !has; i++)
        has = is_mirrored(input, font, &readings->list[i]);
    return has;
}

static enum status make_font(struct composition *composition, size_t font)
{
    struct font_parts *parts = &composition->fonts[font];
    const struct pdf_data *file = &composition->input->fonts[font].file;
    enum status st = deflate_append(composition->deflater, DEFLATE_SMALL, file->data, file->len,
                                    &parts->file, composition->err);

    make_name(composition, font, parts);
    if (st == ST_OK)
        st = make_cid_set(composition, font, parts);
    if (st == ST_OK)
        st = make_map(composition, font, append_bfchars, &parts->to_unicode);
    if (st == ST_OK && has_mirrored(composition->input, font))
        st = make_map(composition, font, append_mirrored, &parts->mirrored);
    return st;
}

/* The number of one of a font's objects, in the order in which add_fonts adds them. */
enum { FONT_TYPE0, FONT_CID, FONT_DESCRIPTOR, FONT_FILE, FONT_TO_UNICODE, FONT_CID_SET };

static size_t font_object(const struct composition *composition, size_t font, size_t which)
{
    return composition->fonts_object + font * OBJECTS_PER_FONT + which;
}

static void write_type0(struct composition *composition, size_t font, HPDF_Stream stream)
{
    put(stream,
        "/Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[%zu 0 R]"
        "/ToUnicode %zu 0 R",
        composition->fonts[font].name, font_object(composition, font, FONT_CID),
        font_object(composition, font, FONT_TO_UNICODE));
}

static void write_mirrored(struct composition *composition, size_t font, HPDF_Stream stream)
{
    put(stream,
        "/Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[%zu 0 R]"
        "/ToUnicode %zu 0 R",
        composition->fonts[font].name, font_object(composition, font, FONT_CID),
        composition->fonts[font].mirrored_object + 1);
}

/* Runs of neighbouring CIDs: "first [width width ...]" (ISO 32000-1, 9.7.4.3). */
static void put_widths(struct composition *composition, size_t font, HPDF_Stream stream)
{
    const struct pdf_font *from = &composition->input->fonts[font];
    uint32_t next = 0; /* the CID that goes on with the run; 0: there is no run */

    for (uint32_t glyph = 0; glyph_set_next(from->glyphs, &glyph); glyph++) {
        uint32_t const cid = cid_of(composition, font, glyph);

        if (next != 0 && cid == next)
            put(stream, " ");
        else
            put(stream, "%s%u[", next != 0 ? "]" : "", cid);
        put(stream, "%d", font_width(composition->input->set, from->face, glyph));
        next = cid + 1;
    }
    if (next != 0)
        put(stream, "]");
}

static bool is_compact(const struct composition *composition, size_t font)
{
    return metrics_of(composition, font)->outlines == FONT_CFF;
}

/* ISO 32000-1, 9.7.4.2: compact outlines are found by CID, others by glyph, which is the same. */
static void write_cid_font(struct composition *composition, size_t font, HPDF_Stream stream)
{
    put(stream,
        "/Type/Font/Subtype/%s/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)"
        "/Ordering(Identity)/Supplement 0>>%s/FontDescriptor %zu 0 R/DW 0/W[",
        is_compact(composition, font) ? "CIDFontType0" : "CIDFontType2",
        composition->fonts[font].name, is_compact(composition, font) ? "" : "/CIDToGIDMap/Identity",
        font_object(composition, font, FONT_DESCRIPTOR));
    put_widths(composition, font, stream);
    put(stream, "]");
}

static void write_descriptor(struct composition *composition, size_t font, HPDF_Stream stream)
{
    const struct font_metrics *metrics = metrics_of(composition, font);

    put(stream,
        "/Type/FontDescriptor/FontName/%s/Flags 4/FontBBox[%d %d %d %d]/ItalicAngle %d/Ascent %d"
        "/Descent %d/CapHeight %d/XHeight %d/StemV %d/%s %zu 0 R/CIDSet %zu 0 R",
        composition->fonts[font].name, metrics->bbox[0], metrics->bbox[1], metrics->bbox[2],
        metrics->bbox[3], metrics->italic_angle, metrics->ascent, metrics->descent,
        metrics->cap_height, metrics->x_height, metrics->stem_v,
        is_compact(composition, font) ? "FontFile3" : "FontFile2",
        font_object(composition, font, FONT_FILE), font_object(composition, font, FONT_CID_SET));
}

static void write_font_file(struct composition *composition, size_t font, HPDF_Stream stream)
{
    if (is_compact(composition, font))
        put(stream, "/Subtype/CIDFontType0C/Filter/FlateDecode");
    else
        put(stream, "/Length1 %zu/Filter/FlateDecode", composition->input->fonts[font].file.len);
}

static void add_fonts(struct composition *composition)
{
    composition->fonts_object = composition->objects_count + 1;
    for (size_t font = 0; font < composition->input->fonts_count; font++) {
        const struct font_parts *parts = &composition->fonts[font];

        add_object(composition, write_type0, font, NO_STREAM);
        add_object(composition, write_cid_font, font, NO_STREAM);
        add_object(composition, write_descriptor, font, NO_STREAM);
        add_object(composition, write_font_file, font, data_of(&parts->file));
        add_object(composition, write_deflated, font, data_of(&parts->to_unicode));
        add_object(composition, write_deflated, font, data_of(&parts->cid_set));
    }
    for (size_t font = 0; font < composition->input->fonts_count; font++) {
        struct font_parts *parts = &composition->fonts[font];

        if (parts->mirrored.len == 0)
            continue;
        parts->mirrored_object = add_object(composition, write_mirrored, font, NO_STREAM);
        add_object(composition, write_deflated, font, data_of(&parts->mirrored));
    }
}

/* ---- pages ---- */

/*
 * The page tree: leaves hold KIDS_MAX pages each, the nodes above them KIDS_MAX nodes each, up to
 * one root. Its nodes are numbered level by level from the root down, so that every number is known
 * before anything is written.
 */
static size_t divide_up(size_t count, size_t by)
{
    return (count + by - 1) / by;
}

enum { LEVELS_MAX = 4 };

struct tree {
    size_t levels;
    size_t counts[LEVELS_MAX]; /* nodes of each level; the root's, 1, first */
    size_t starts[LEVELS_MAX]; /* index of each level's first node */
    size_t nodes;
};

static struct tree tree_for(size_t pages_count)
{
    struct tree tree = {0};
    size_t sizes[LEVELS_MAX];
    size_t count = pages_count;

    do {
        assert(tree.levels < LEVELS_MAX);
        count = divide_up(count, KIDS_MAX);
        sizes[tree.levels++] = count;
    } while (count > 1);
    for (size_t level = 0; level < tree.levels; level++) {
        tree.counts[level] = sizes[tree.levels - 1 - level];
        tree.starts[level] = tree.nodes;
        tree.nodes += tree.counts[level];
    }
    return tree;
}

static size_t level_of(const struct tree *tree, size_t node)
{
    size_t level = tree->levels - 1;

    while (tree->starts[level] > node)
        level--;
    return level;
}

/* How many pages stand below one node of a level. */
static size_t pages_below(const struct tree *tree, size_t level, size_t place, size_t pages_count)
{
    size_t span = KIDS_MAX;

    for (size_t l = tree->levels - 1; l > level; l--)
        span *= KIDS_MAX;
    return pages_count - place * span < span ? pages_count - place * span : span;
}

static void put_resources(const struct composition *composition, HPDF_Stream stream)
{
    const struct pdf_input *input = composition->input;

    put(stream, "/Resources<</Font<<");
    for (size_t font = 0; font < input->fonts_count; font++) {
        size_t const mirrored = composition->fonts[font].mirrored_object;

        put(stream, "/F%zu %zu 0 R", input->fonts[font].face,
            font_object(composition, font, FONT_TYPE0));
        if (mirrored != 0)
            put(stream, "/F%zuM %zu 0 R", input->fonts[font].face, mirrored);
    }
    put(stream, ">>");
    if (input->images_count > 0) {
        put(stream, "/XObject<<");
        for (size_t i = 0; i < input->images_count; i++)
            put(stream, "/I%zu %zu 0 R", input->images[i].name, composition->images + i);
        put(stream, ">>");
    }
    put(stream, ">>");
}

static void put_media_box(HPDF_Stream stream, const struct pdf_sheet *sheet)
{
    put(stream, "/MediaBox[0 0 ");
    put_mpt(stream, sheet->page_w_mpt);
    put_mpt(stream, sheet->page_h_mpt);
    put(stream, "]");
}

/* Each page is followed by the contents of its tickets. */
static size_t page_object(const struct composition *composition, size_t page)
{
    return composition->pages + page + composition->input->pages[page].first;
}

static void put_kids(const struct composition *composition, const struct tree *tree, size_t level,
                     size_t place, HPDF_Stream stream)
{
    bool const is_leaf = level + 1 == tree->levels;
    size_t const all = is_leaf ? composition->input->pages_count : tree->counts[level + 1];
    size_t const first = place * KIDS_MAX;
    size_t const end = all - first < KIDS_MAX ? all : first + KIDS_MAX;

    for (size_t kid = first; kid < end; kid++)
        put(stream, "%zu 0 R ",
            is_leaf ? page_object(composition, kid)
                    : composition->tree + tree->starts[level + 1] + kid);
}

static void write_tree_node(struct composition *composition, size_t node, HPDF_Stream stream)
{
    struct tree const tree = tree_for(composition->input->pages_count);
    size_t const level = level_of(&tree, node);
    size_t const place = node - tree.starts[level];

    put(stream, "/Type/Pages/Count %zu",
        pages_below(&tree, level, place, composition->input->pages_count));
    if (level > 0) {
        put(stream, "/Parent %zu 0 R",
            composition->tree + tree.starts[level - 1] + place / KIDS_MAX);
    } else {
        put_resources(composition, stream); /* both are inherited by every page */
        put_media_box(stream, &composition->input->sheets[0]);
    }
    put(stream, "/Kids[");
    put_kids(composition, &tree, level, place, stream);
    put(stream, "]");
}

static void write_page(struct composition *composition, size_t index, HPDF_Stream stream)
{
    const struct pdf_page *page = &composition->input->pages[index];
    const struct pdf_sheet *sheet = &composition->input->sheets[page->sheet];
    const struct pdf_sheet *usual = &composition->input->sheets[0];
    size_t const before = composition->sheets[page->sheet];

    put(stream, "/Type/Page/Parent %zu 0 R/Contents[", composition->leaves + index / KIDS_MAX);
    for (size_t cell = 0; cell < page->count; cell++)
        put(stream, "%s%zu 0 R %zu 0 R", cell > 0 ? " " : "", before + cell,
            page_object(composition, index) + 1 + cell);
    if (sheet->after.data != NULL)
        put(stream, " %zu 0 R", before + sheet->cells_count);
    put(stream, "]");
    if (sheet->page_w_mpt != usual->page_w_mpt || sheet->page_h_mpt != usual->page_h_mpt)
        put_media_box(stream, sheet);
}

static void add_pages(struct composition *composition)
{
    struct tree const tree = tree_for(composition->input->pages_count);

    composition->tree = composition->objects_count + 1;
    composition->leaves = composition->tree + tree.starts[tree.levels - 1];
    for (size_t node = 0; node < tree.nodes; node++)
        add_object(composition, write_tree_node, node, NO_STREAM);
    composition->pages = composition->objects_count + 1;
    for (size_t i = 0; i < composition->input->pages_count; i++) {
        const struct pdf_page *page = &composition->input->pages[i];

        assert(page->count >= 1 &&
               page->count <= composition->input->sheets[page->sheet].cells_count);
        add_object(composition, write_page, i, NO_STREAM);
        for (size_t ticket = page->first; ticket < page->first + page->count; ticket++)
            add_object(composition, write_deflated, ticket, composition->input->tickets[ticket]);
    }
}

/* ---- sheets and images ---- */

static void add_sheets(struct composition *composition)
{
    for (size_t i = 0; i < composition->input->sheets_count; i++) {
        const struct pdf_sheet *sheet = &composition->input->sheets[i];

        composition->sheets[i] = composition->objects_count + 1;
        for (size_t cell = 0; cell < sheet->cells_count; cell++)
            add_object(composition, write_deflated, cell, sheet->before[cell]);
        if (sheet->after.data != NULL)
            add_object(composition, write_deflated, i, sheet->after);
    }
}

static void write_image(struct composition *composition, size_t index, HPDF_Stream stream)
{
    static const char *const FILTERS[] = {[IMAGE_FLATE] = "Flate", [IMAGE_DCT] = "DCT"};
    const struct image *image = composition->input->images[index].image;

    put(stream,
        "/Type/XObject/Subtype/Image/Width %u/Height %u/ColorSpace/Device%s/BitsPerComponent 8"
        "/Interpolate false/Filter/%sDecode",
        image->width, image->height, image->components == 1 ? "Gray" : "RGB",
        FILTERS[image->filter]);
}

static void add_images(struct composition *composition)
{
    composition->images = composition->objects_count + 1;
    for (size_t i = 0; i < composition->input->images_count; i++)
        add_object(composition, write_image, i,
                   data_of(&composition->input->images[i].image->data));
}

/* ---- the whole ---- */

/* Called when everything before the trailer is in the buffer. */
static HPDF_STATUS write_trailer(HPDF_Dict trailer, HPDF_Stream stream)
{
    struct composition *composition = trailer->attr;

    if (composition->status == ST_OK)
        composition->status = sign_sha256(composition->out->data, composition->out->len,
                                          composition->digest, composition->err);
    if (composition->status != ST_OK)
        return HPDF_FILE_IO_ERROR;
    put(stream, "/Root %zu 0 R/Info %zu 0 R/ID[", composition->catalog, composition->info);
    for (int copy = 0; copy < 2; copy++) {
        put(stream, "<");
        for (int i = 0; i < SHA256_BYTES / 2; i++)
            put(stream, "%02X", composition->digest[i]);
        put(stream, ">");
    }
    put(stream, "]");
    return HPDF_OK;
}

static void add_objects(struct composition *composition)
{
    composition->catalog = add_object(composition, write_catalog, 0, NO_STREAM);
    composition->info = add_object(composition, write_info, 0, NO_STREAM);
    composition->metadata_object =
        add_object(composition, write_metadata, 0, data_of(&composition->metadata));
    composition->profile_object =
        add_object(composition, write_profile, 0, data_of(&composition->profile->deflated));
    add_sheets(composition);
    add_images(composition);
    add_fonts(composition);
    add_pages(composition);
}

static size_t count_objects(const struct pdf_input *input)
{
    size_t count = FIXED_OBJECTS + input->images_count + input->fonts_count * OBJECTS_PER_FONT +
                   tree_for(input->pages_count).nodes + input->pages_count + input->tickets_count;

    for (size_t font = 0; font < input->fonts_count; font++)
        if (has_mirrored(input, font))
            count += OBJECTS_PER_MIRRORED_FONT;
    for (size_t i = 0; i < input->sheets_count; i++)
        count += input->sheets[i].cells_count + (input->sheets[i].after.data != NULL);
    return count;
}

static size_t sheet_bytes(const struct pdf_sheet *sheet)
{
    size_t bytes = sheet->after.len;

    for (size_t cell = 0; cell < sheet->cells_count; cell++)
        bytes += sheet->before[cell].len;
    return bytes;
}

static size_t glyphs_count(const struct glyph_set *glyphs)
{
    size_t count = 0;

    for (uint32_t glyph = 0; glyph_set_next(glyphs, &glyph); glyph++)
        count++;
    return count;
}

/* An upper bound of the document's size, so that its buffer never has to move while it fills. */
static size_t bytes_needed(const struct composition *composition)
{
    const struct pdf_input *input = composition->input;
    size_t bytes = sizeof HEADER + LINE_BYTES_MAX * 4 + input->title.len * 8 +
                   composition->metadata.len + composition->profile->deflated.len;

    bytes += composition->objects_max * BYTES_PER_OBJECT;
    bytes += (tree_for(input->pages_count).nodes + 2 * input->pages_count) * BYTES_PER_KID;
    bytes += 2 * input->tickets_count * BYTES_PER_KID; /* what is before each, and it */
    for (size_t i = 0; i < input->sheets_count; i++)
        bytes += sheet_bytes(&input->sheets[i]);
    for (size_t i = 0; i < input->images_count; i++)
        bytes += LINE_BYTES_MAX + input->images[i].image->data.len;
    for (size_t i = 0; i < input->fonts_count; i++) {
        const struct font_parts *parts = &composition->fonts[i];

        bytes += parts->file.len + parts->cid_set.len + parts->to_unicode.len;
        bytes += parts->mirrored.len;
        bytes += (OBJECTS_PER_FONT + OBJECTS_PER_MIRRORED_FONT) * LINE_BYTES_MAX;
        bytes += glyphs_count(input->fonts[i].glyphs) * WIDTH_BYTES;
    }
    for (size_t i = 0; i < input->tickets_count; i++)
        bytes += input->tickets[i].len;
    return bytes;
}

static enum status reserve_out(struct composition *composition)
{
    size_t const bytes = bytes_needed(composition);

    if (bytes > DOCUMENT_BYTES_MAX)
        return error_set(composition->err, ST_TOO_LARGE, "a document of %zu bytes; at most %d",
                         bytes, DOCUMENT_BYTES_MAX);
    composition->out->data = malloc(bytes);
    if (composition->out->data == NULL)
        return error_set(composition->err, ST_NO_MEMORY, "a document of %zu bytes", bytes);
    composition->out->capacity = bytes;
    return ST_OK;
}

static enum status start_haru(struct composition *composition)
{
    HPDF_Error_Init(&composition->haru_error, NULL);
    composition->memory = HPDF_MMgr_New(&composition->haru_error, POOL_NODE_BYTES, NULL, NULL);
    if (composition->memory != NULL)
        composition->xref = HPDF_Xref_New(composition->memory, 0);
    if (composition->xref != NULL)
        composition->writer =
            HPDF_CallbackWriter_New(composition->memory, append_to_out, composition);
    if (composition->xref == NULL || composition->writer == NULL)
        return error_set(composition->err, ST_NO_MEMORY, "a PDF document");
    /* the list of objects grows by copying: once is enough */
    composition->xref->entries->items_per_block = (HPDF_UINT)composition->objects_max + 1;
    composition->xref->trailer->attr = composition;
    composition->xref->trailer->write_fn = write_trailer;
    return ST_OK;
}

static enum status compose(struct composition *composition)
{
    HPDF_STATUS code;

    put_bytes(composition->writer, HEADER, sizeof HEADER - 1);
    add_objects(composition);
    if (composition->status != ST_OK)
        return composition->status;
    assert(composition->objects_count == composition->objects_max);
    code = HPDF_Xref_WriteToStream(composition->xref, composition->writer, NULL);
    if (composition->status == ST_OK && (code != HPDF_OK || composition->haru_error.error_no != 0))
        fail(composition,
             composition->haru_error.error_no == HPDF_FAILD_TO_ALLOC_MEM ? ST_NO_MEMORY
                                                                         : ST_LIBRARY,
             "libharu could not write the document");
    return composition->status;
}

static enum status make_parts(struct composition *composition)
{
    enum status st = make_metadata(composition);

    for (size_t font = 0; font < composition->input->fonts_count && st == ST_OK; font++)
        st = make_font(composition, font);
    return st;
}

static void composition_clear(struct composition *composition)
{
    for (size_t font = 0; font < composition->input->fonts_count && composition->fonts != NULL;
         font++) {
        bytes_clear(&composition->fonts[font].file);
        bytes_clear(&composition->fonts[font].to_unicode);
        bytes_clear(&composition->fonts[font].cid_set);
        bytes_clear(&composition->fonts[font].mirrored);
    }
    free(composition->fonts);
    free(composition->objects);
    bytes_clear(&composition->metadata);
    HPDF_MMgr_Free(composition->memory);
}

enum status pdf_write(const struct pdf_input *input, const struct pdf_profile *profile,
                      struct deflater *deflater, struct bytes *out, uint8_t digest[SHA256_BYTES],
                      struct error *err)
{
    struct composition composition = {
        .input = input,
        .profile = profile,
        .deflater = deflater,
        .err = err,
        .out = out,
        .objects_max = count_objects(input),
    };
    enum status st = ST_OK;

    assert(out->capacity == 0);
    assert(input->pages_count >= 1 && input->pages_count <= PDF_PAGES_MAX);
    assert(input->sheets_count >= 1 && input->sheets_count <= PDF_SHEETS_MAX);
    composition.fonts = calloc(input->fonts_count + 1, sizeof *composition.fonts);
    composition.objects = calloc(composition.objects_max, sizeof *composition.objects);
    if (composition.fonts == NULL || composition.objects == NULL)
        st = error_set(err, ST_NO_MEMORY, "a PDF document");
    if (st == ST_OK)
        st = make_parts(&composition);
    if (st == ST_OK)
        st = reserve_out(&composition);
    if (st == ST_OK)
        st = start_haru(&composition);
    if (st == ST_OK)
        st = compose(&composition);
    composition_clear(&composition);
    memcpy(digest, composition.digest, SHA256_BYTES);
    if (st != ST_OK)
        bytes_clear(out);
    return st;
}
