/*
 * The floor program: the least work that still makes a valid PDF of the same tickets. It validates
 * nothing, shapes nothing, embeds nothing and searches no QR mask; it is a yardstick and no
 * product. What it saves on, in the order of what it brings: the mask is fixed, all page content is
 * written as integers into one buffer, libdeflate compresses with one compressor that is kept, what
 * all pages share is one form, and libharu sees only finished objects.
 */
#include "tests/bench/bench_input.h"
#include "tests/bench/bench_run.h"
#include "tests/bench/face.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <hpdf.h>
#include <hpdf_doc.h>
#include <hpdf_pages.h>
#include <libdeflate.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <qrencode.h>
#include <string.h>
#include <unistd.h>

enum {
    QR_MASK = 3, /* any of the eight decodes; see bench.py's check */
    QR_SIDE_MAX = 177,
    PAGES_PER_NODE = 256,
    DEFLATE_LEVEL = 1,
    NUMBER_BYTES = 4, /* "176 " */
    RUN_BYTES_MAX = 3 * NUMBER_BYTES + 5,
    /* Each row of a symbol has at most every other module as the start of a run. */
    QR_CONTENT_BYTES_MAX = QR_SIDE_MAX * (QR_SIDE_MAX / 2 + 1) * RUN_BYTES_MAX,
    SLOT_BYTES_MAX = 2 * FACE_TEXT_BYTES_MAX + 128,
    CONTENT_BYTES_MAX = QR_CONTENT_BYTES_MAX + 2 * FACE_SLOTS * SLOT_BYTES_MAX,
};

typedef QRcode *qr_encode_mask_fn(QRinput *input, int mask);

struct buffer {
    uint8_t *data;
    size_t len, capacity; /* bytes */
};

/* The compressed data of one stream object, in struct floor's packed. */
struct packed_stream {
    struct floor *floor;
    size_t offset, len;
};

struct floor {
    struct bench_key key;
    EVP_MAC_CTX *mac;
    qr_encode_mask_fn *qr_encode_mask; /* exported by libqrencode, declared in no header */
    struct libdeflate_compressor *compressor;
    char numbers[QR_SIDE_MAX][NUMBER_BYTES + 1]; /* "0 ", "1 ", ... */
    uint8_t numbers_len[QR_SIDE_MAX];
    char content[CONTENT_BYTES_MAX]; /* of the page at hand */
    struct buffer packed;            /* all streams, compressed, end to end */
    struct packed_stream *streams;   /* streams_capacity of them */
    size_t streams_count, streams_capacity;
    struct buffer pdf;
    HPDF_Stream writer; /* appends to pdf */
};

/* ---- buffers ---- */

static uint8_t *buffer_reserve(struct buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->len < more) {
        buffer->capacity = 2 * buffer->capacity + more;
        buffer->data = realloc(buffer->data, buffer->capacity);
        bench_require(buffer->data != NULL, "memory");
    }
    return buffer->data + buffer->len;
}

static char *put(char *end, const char *text, size_t len)
{
    memcpy(end, text, len);
    return end + len;
}

static char *put_text(char *end, const char *text)
{
    return put(end, text, strlen(text));
}

static char *put_number(char *end, long long value)
{
    char digits[24];
    size_t first = sizeof digits;

    bench_require(value >= 0, "a number that is not negative");
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return put(end, digits + first, sizeof digits - first);
}

/* ---- tokens ---- */

static void mac_key(struct floor *floor, const char *event_id)
{
    uint8_t event_key[BENCH_KEY_BYTES];
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    bench_event_key(&floor->key, event_id, event_key);
    bench_require(EVP_MAC_init(floor->mac, event_key, sizeof event_key, params) == 1, "HMAC");
}

static size_t token_make(struct floor *floor, const char *event_id,
                         const struct bench_ticket *ticket, char token[BENCH_TOKEN_CHARS_MAX + 1])
{
    uint8_t body[BENCH_BODY_BYTES_MAX + BENCH_KEY_BYTES];
    size_t len = bench_token_body(floor->key.id, event_id, ticket, body), mac_len = 0;

    bool is_ok = EVP_MAC_init(floor->mac, NULL, 0, NULL) == 1 &&
                 EVP_MAC_update(floor->mac, body, len) == 1 &&
                 EVP_MAC_final(floor->mac, body + len, &mac_len, sizeof body - len) == 1;
    bench_require(is_ok, "HMAC");
    return bench_base64url(body, len + BENCH_MAC_BYTES, token);
}

/* ---- page content ---- */

/* One line of text with its position, as a PDF literal string in WinAnsi. */
static char *put_line(char *end, const char *font, int size_pt, int x_pt, int y_pt,
                      const char *text)
{
    const char *text_max = end + FACE_TEXT_BYTES_MAX;

    end = put_text(end, font);
    end = put_number(end, size_pt);
    end = put_text(end, " Tf 1 0 0 1 ");
    end = put_number(end, x_pt);
    *end++ = ' ';
    end = put_number(end, y_pt);
    end = put_text(end, " Tm (");
    while (*text != '\0' && end < text_max) {
        uint8_t byte = bench_winansi_next(&text);
        if (byte == '(' || byte == ')' || byte == '\\')
            *end++ = '\\';
        *end++ = (char)byte;
    }
    return put_text(end, ") Tj\n");
}

static char *put_label(char *end, enum face_slot_name name)
{
    const struct face_slot *slot = &face_slots[name];

    return *slot->label == '\0' ? end
                                : put_line(end, "/R ", FACE_LABEL_SIZE_PT, slot->x_pt,
                                           slot->y_pt + FACE_LABEL_ABOVE_PT, slot->label);
}

static char *put_value(char *end, enum face_slot_name name, const char *text)
{
    const struct face_slot *slot = &face_slots[name];

    return *text == '\0' ? end
                         : put_line(end, slot->is_bold ? "/B " : "/R ", slot->size_pt, slot->x_pt,
                                    slot->y_pt, text);
}

static void price_format(const struct bench_ticket *ticket, char *end)
{
    if (*ticket->currency != '\0') {
        end = put_number(end, ticket->price_amount / 100);
        *end++ = '.';
        end = put_number(end, ticket->price_amount / 10 % 10);
        end = put_number(end, ticket->price_amount % 10);
        *end++ = ' ';
        end = put_text(end, ticket->currency);
    }
    *end = '\0';
}

static void seat_format(const struct bench_ticket *ticket, char text[FACE_TEXT_BYTES_MAX])
{
    const char *parts[] = {ticket->section, " ", ticket->row, " ", ticket->number};
    char *end = text;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t room = (size_t)(text + FACE_TEXT_BYTES_MAX - 1 - end), len = strlen(parts[i]);
        end = put(end, parts[i], len < room ? len : room);
    }
    *end = '\0';
}

static char *put_texts(char *end, const struct bench_ticket *ticket)
{
    char seat[FACE_TEXT_BYTES_MAX], price[FACE_TEXT_BYTES_MAX];

    seat_format(ticket, seat);
    price_format(ticket, price);
    end = put_text(end, "/S Do\nBT\n");
    end = put_value(end, FACE_HOLDER, ticket->holder);
    end = put_value(end, FACE_TYPE, ticket->type);
    end = put_value(end, FACE_PRICE, price);
    end = put_value(end, FACE_SEAT, seat);
    end = put_value(end, FACE_GATE, ticket->gate);
    end = put_value(end, FACE_ORDER, ticket->order_id);
    end = put_value(end, FACE_ID, ticket->id);
    return put_text(end, "ET\n");
}

static char *put_run(const struct floor *floor, char *end, int column, int row, int len)
{
    end = put(end, floor->numbers[column], floor->numbers_len[column]);
    end = put(end, floor->numbers[row], floor->numbers_len[row]);
    end = put(end, floor->numbers[len], floor->numbers_len[len]);
    return put(end, "1 re\n", 5);
}

/* Runs of dark modules as unit-high rectangles, in a space of one unit a module, rows downwards. */
static char *put_modules(const struct floor *floor, char *end, const QRcode *qr)
{
    const unsigned char *modules = qr->data;
    const int side = qr->width;

    for (int row = 0; row < side; row++, modules += side) {
        for (int column = 0; column < side; column++) {
            int start = column;
            while (column < side && (modules[column] & 1))
                column++;
            if (column > start)
                end = put_run(floor, end, start, row, column - start);
        }
    }
    return put_text(end, "f\n");
}

static char *put_qr(const struct floor *floor, char *end, const char *token, size_t token_len)
{
    QRinput *input = QRinput_new2(0, QR_ECLEVEL_M);

    bool is_ok = input != NULL && QRinput_append(input, QR_MODE_8, (int)token_len,
                                                 (const unsigned char *)token) == 0;
    bench_require(is_ok, "QRinput_append");
    QRcode *qr = floor->qr_encode_mask(input, QR_MASK);
    bench_require(qr != NULL && qr->width < QR_SIDE_MAX, "QRcode_encodeMask");
    end += sprintf(end, "%.2f 0 0 -%.2f %d %d cm\n", (double)FACE_MODULE_PT, (double)FACE_MODULE_PT,
                   FACE_QR_X_PT, FACE_QR_TOP_PT);
    end = put_modules(floor, end, qr);
    QRcode_free(qr);
    QRinput_free(input);
    return end;
}

static char *put_shared(char *end, const struct bench_batch *batch)
{
    const int rule[] = {FACE_LEFT_PT, FACE_RULE_Y_PT, FACE_RULE_WIDTH_PT, 1};

    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        end = put_number(end, rule[i]);
        *end++ = ' ';
    }
    end = put_text(end, "re f\nBT\n");
    end = put_value(end, FACE_EVENT, batch->event_name);
    end = put_value(end, FACE_VENUE, batch->venue);
    end = put_value(end, FACE_DATE, batch->date);
    for (enum face_slot_name name = FACE_EVENT_SLOTS; name < FACE_SLOTS; name++)
        end = put_label(end, name);
    return put_text(end, "ET\n");
}

/* ---- objects ---- */

static void libharu_failed(HPDF_STATUS error, HPDF_STATUS detail, void *user)
{
    (void)user;
    fprintf(stderr, "bench: libharu: error 0x%lX, detail %lu\n", error, detail);
    _exit(EXIT_FAILURE);
}

static HPDF_STATUS pdf_append(HPDF_Stream stream, const HPDF_BYTE *data, HPDF_UINT len)
{
    struct floor *floor = stream->attr;

    memcpy(buffer_reserve(&floor->pdf, len), data, len);
    floor->pdf.len += len;
    return HPDF_OK;
}

/* Called by libharu when it has written a stream's dictionary. A dictionary without a stream of
 * libharu's own saves the copy into it and an indirect Length for each page. */
static HPDF_STATUS stream_write(HPDF_Dict dict)
{
    const struct packed_stream *stream = dict->attr;
    struct floor *floor = stream->floor;

    HPDF_Stream_WriteStr(floor->writer, "\nstream\n");
    HPDF_Stream_Write(floor->writer, floor->packed.data + stream->offset, (HPDF_UINT)stream->len);
    return HPDF_Stream_WriteStr(floor->writer, "\nendstream");
}

/* The content so far, up to end, as a stream object. */
static HPDF_Dict stream_new(struct floor *floor, HPDF_Doc document, const char *end)
{
    struct packed_stream *stream = &floor->streams[floor->streams_count++];
    size_t len = (size_t)(end - floor->content);
    size_t bound = libdeflate_zlib_compress_bound(floor->compressor, len);
    uint8_t *packed = buffer_reserve(&floor->packed, bound);

    *stream = (struct packed_stream){.floor = floor, .offset = floor->packed.len};
    stream->len = libdeflate_zlib_compress(floor->compressor, floor->content, len, packed, bound);
    bench_require(stream->len > 0, "compression");
    floor->packed.len += stream->len;
    HPDF_Dict dict = HPDF_Dict_New(document->mmgr);
    HPDF_Xref_Add(document->xref, dict);
    HPDF_Dict_AddNumber(dict, "Length", (HPDF_INT32)stream->len);
    HPDF_Dict_AddName(dict, "Filter", "FlateDecode");
    dict->attr = stream;
    dict->after_write_fn = &stream_write;
    return dict;
}

static HPDF_Dict font_new(HPDF_Doc document, const char *name)
{
    HPDF_Dict font = HPDF_Dict_New(document->mmgr);

    HPDF_Xref_Add(document->xref, font);
    HPDF_Dict_AddName(font, "Type", "Font");
    HPDF_Dict_AddName(font, "Subtype", "Type1");
    HPDF_Dict_AddName(font, "BaseFont", name);
    HPDF_Dict_AddName(font, "Encoding", "WinAnsiEncoding");
    return font;
}

static HPDF_Array media_box_new(HPDF_Doc document)
{
    return HPDF_Box_Array_New(document->mmgr,
                              (HPDF_Box){.right = FACE_WIDTH_PT, .top = FACE_HEIGHT_PT});
}

/* Resources and MediaBox hang on the root of the page tree: all pages inherit them. */
static void shared_add(struct floor *floor, HPDF_Doc document, const struct bench_batch *batch)
{
    HPDF_Dict fonts = HPDF_Dict_New(document->mmgr), forms = HPDF_Dict_New(document->mmgr);
    HPDF_Dict resources = HPDF_Dict_New(document->mmgr);

    HPDF_Dict form = stream_new(floor, document, put_shared(floor->content, batch));
    HPDF_Xref_Add(document->xref, resources);
    HPDF_Dict_Add(resources, "Font", fonts);
    HPDF_Dict_Add(resources, "XObject", forms);
    HPDF_Dict_Add(fonts, "R", font_new(document, "Helvetica"));
    HPDF_Dict_Add(fonts, "B", font_new(document, "Helvetica-Bold"));
    HPDF_Dict_Add(forms, "S", form);
    HPDF_Dict_AddName(form, "Type", "XObject");
    HPDF_Dict_AddName(form, "Subtype", "Form");
    HPDF_Dict_Add(form, "BBox", media_box_new(document));
    HPDF_Dict_Add(form, "Resources", resources);
    HPDF_Dict_Add(document->root_pages, "Resources", resources);
    HPDF_Dict_Add(document->root_pages, "MediaBox", media_box_new(document));
}

static void page_add(HPDF_Doc document, HPDF_Pages node, HPDF_Dict content)
{
    HPDF_Dict page = HPDF_Dict_New(document->mmgr);
    HPDF_Array kids = HPDF_Dict_GetItem(node, "Kids", HPDF_OCLASS_ARRAY);

    page->header.obj_class |= HPDF_OSUBCLASS_PAGE; /* or libharu leaves it out of Count */
    HPDF_Xref_Add(document->xref, page);
    HPDF_Dict_AddName(page, "Type", "Page");
    HPDF_Dict_Add(page, "Parent", node);
    HPDF_Dict_Add(page, "Contents", content);
    HPDF_Array_Add(kids, page);
}

static void pages_add(struct floor *floor, HPDF_Doc document, const struct bench_batch *batch)
{
    char token[BENCH_TOKEN_CHARS_MAX + 1];
    HPDF_Pages node = NULL;

    for (size_t i = 0; i < batch->tickets_count; i++) {
        size_t token_len = token_make(floor, batch->event_id, &batch->tickets[i], token);
        char *end = put_texts(floor->content, &batch->tickets[i]);
        end = put_qr(floor, end, token, token_len);
        if (i % PAGES_PER_NODE == 0)
            node = HPDF_Pages_New(document->mmgr, document->root_pages, document->xref);
        page_add(document, node, stream_new(floor, document, end));
    }
}

static void document_write(struct floor *floor, HPDF_Doc document, const char *path)
{
    HPDF_Stream writer = HPDF_CallbackWriter_New(document->mmgr, &pdf_append, floor);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    bench_require(writer != NULL && file >= 0, path);
    floor->writer = writer;
    HPDF_Dict_Add(document->trailer, "Root", document->catalog);
    HPDF_Stream_WriteStr(writer, "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n");
    bench_require(HPDF_Xref_WriteToStream(document->xref, writer, NULL) == HPDF_OK, "libharu");
    HPDF_Stream_Free(writer);
    for (size_t done = 0; done < floor->pdf.len;) {
        ssize_t written = write(file, floor->pdf.data + done, floor->pdf.len - done);
        bench_require(written > 0, path);
        done += (size_t)written;
    }
    bench_require(close(file) == 0, path);
}

/* ---- the program ---- */

static void streams_reserve(struct floor *floor, size_t count)
{
    floor->streams_count = 0;
    if (count > floor->streams_capacity) {
        free(floor->streams);
        floor->streams = calloc(count, sizeof *floor->streams);
        bench_require(floor->streams != NULL, "memory");
        floor->streams_capacity = count;
    }
}

static void *floor_prepare(const struct bench_job *job)
{
    struct floor *floor = calloc(1, sizeof *floor);
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    void *symbol = dlsym(RTLD_DEFAULT, "QRcode_encodeMask");

    bench_require(floor != NULL && mac != NULL, "memory");
    bench_require(symbol != NULL, "finding QRcode_encodeMask in libqrencode");
    memcpy(&floor->qr_encode_mask, &symbol, sizeof symbol);
    bench_key_read(job->keys_path, &floor->key);
    floor->mac = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);
    floor->compressor = libdeflate_alloc_compressor(DEFLATE_LEVEL);
    bench_require(floor->mac != NULL && floor->compressor != NULL, "memory");
    for (int i = 0; i < QR_SIDE_MAX; i++)
        floor->numbers_len[i] = (uint8_t)sprintf(floor->numbers[i], "%d ", i);
    return floor;
}

static size_t floor_run(void *context, const struct bench_job *job)
{
    struct floor *floor = context;
    struct bench_batch batch;

    bench_batch_read(job->batch_json, job->batch_json_len, &batch);
    mac_key(floor, batch.event_id);
    streams_reserve(floor, batch.tickets_count + 1);
    floor->packed.len = floor->pdf.len = 0;
    HPDF_Doc document = HPDF_New(&libharu_failed, NULL);
    bench_require(document != NULL, "memory");
    shared_add(floor, document, &batch);
    pages_add(floor, document, &batch);
    document_write(floor, document, job->out_path);
    HPDF_Free(document);
    size_t tickets = batch.tickets_count;
    bench_batch_clear(&batch);
    return tickets;
}

static void floor_finish(void *context)
{
    struct floor *floor = context;

    EVP_MAC_CTX_free(floor->mac);
    libdeflate_free_compressor(floor->compressor);
    free(floor->packed.data);
    free(floor->streams);
    free(floor->pdf.data);
    free(floor);
}

int main(int argc, char **argv)
{
    static const struct bench_program program = {
        .name = "floor",
        .prepare = &floor_prepare,
        .run = &floor_run,
        .finish = &floor_finish,
    };

    return bench_main(&program, argc, argv);
}
