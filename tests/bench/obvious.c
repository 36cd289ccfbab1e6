/*
 * The obvious program: the ticket as a competent C programmer would write it in a day from the
 * examples of each library. One thread, HMAC() per ticket, libqrencode's own choice of mask, the
 * page by libharu's drawing calls with one rectangle per dark module, libharu's own compression.
 * With --embedded the text is Noto Sans, embedded through libharu's TrueType and UTF-8 support.
 */
#include "tests/bench/bench_input.h"
#include "tests/bench/bench_run.h"
#include "tests/bench/face.h"

#include <hpdf.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <qrencode.h>
#include <string.h>
#include <unistd.h>

#define FONT_DIRECTORY "/usr/share/fonts/truetype/noto/"

struct drawing {
    HPDF_Doc document;
    HPDF_Font regular, bold;
    bool is_utf8; /* what the fonts take; else WinAnsi */
};

static void libharu_failed(HPDF_STATUS error, HPDF_STATUS detail, void *user)
{
    (void)user;
    fprintf(stderr, "bench: libharu: error 0x%lX, detail %lu\n", error, detail);
    _exit(EXIT_FAILURE);
}

static HPDF_Font font_load(HPDF_Doc document, const char *path)
{
    const char *name = HPDF_LoadTTFontFromFile(document, path, HPDF_TRUE);

    return HPDF_GetFont(document, name, "UTF-8");
}

static void drawing_start(struct drawing *drawing, bool is_embedded)
{
    HPDF_Doc document = HPDF_New(&libharu_failed, NULL);

    bench_require(document != NULL, "memory");
    HPDF_SetCompressionMode(document, HPDF_COMP_ALL);
    *drawing = (struct drawing){.document = document, .is_utf8 = is_embedded};
    if (is_embedded) {
        HPDF_UseUTFEncodings(document);
        drawing->regular = font_load(document, FONT_DIRECTORY "NotoSans-Regular.ttf");
        drawing->bold = font_load(document, FONT_DIRECTORY "NotoSans-Bold.ttf");
    } else {
        drawing->regular = HPDF_GetFont(document, "Helvetica", "WinAnsiEncoding");
        drawing->bold = HPDF_GetFont(document, "Helvetica-Bold", "WinAnsiEncoding");
    }
}

static const char *text_encode(const struct drawing *drawing, const char *text,
                               char encoded[FACE_TEXT_BYTES_MAX])
{
    size_t len = 0;

    if (drawing->is_utf8)
        return text;
    while (*text != '\0' && len + 1 < FACE_TEXT_BYTES_MAX)
        encoded[len++] = (char)bench_winansi_next(&text);
    encoded[len] = '\0';
    return encoded;
}

static void line_draw(HPDF_Page page, HPDF_Font font, float size_pt, float x_pt, float y_pt,
                      const char *text)
{
    HPDF_Page_SetFontAndSize(page, font, size_pt);
    HPDF_Page_BeginText(page);
    HPDF_Page_TextOut(page, x_pt, y_pt, text);
    HPDF_Page_EndText(page);
}

static void slot_draw(const struct drawing *drawing, HPDF_Page page, enum face_slot_name name,
                      const char *text)
{
    const struct face_slot *slot = &face_slots[name];
    HPDF_Font font = slot->is_bold ? drawing->bold : drawing->regular;
    char encoded[FACE_TEXT_BYTES_MAX];
    float x_pt = (float)slot->x_pt, y_pt = (float)slot->y_pt;

    if (*slot->label != '\0')
        line_draw(page, drawing->regular, FACE_LABEL_SIZE_PT, x_pt, y_pt + FACE_LABEL_ABOVE_PT,
                  slot->label);
    line_draw(page, font, (float)slot->size_pt, x_pt, y_pt, text_encode(drawing, text, encoded));
}

/* A rectangle for each run of dark modules in a row, and one fill. */
static void qr_draw(HPDF_Page page, const QRcode *qr)
{
    for (int row = 0; row < qr->width; row++) {
        const unsigned char *modules = qr->data + row * qr->width;
        int run;

        for (int column = 0; column < qr->width; column += run + 1) {
            run = 0;
            while (column + run < qr->width && modules[column + run] & 1)
                run++;
            if (run > 0)
                HPDF_Page_Rectangle(page, FACE_QR_X_PT + (float)column * FACE_MODULE_PT,
                                    FACE_QR_TOP_PT - (float)(row + 1) * FACE_MODULE_PT,
                                    (float)run * FACE_MODULE_PT, FACE_MODULE_PT);
        }
    }
    HPDF_Page_Fill(page);
}

static void token_make(const struct bench_key *key, const uint8_t event_key[BENCH_KEY_BYTES],
                       const char *event_id, const struct bench_ticket *ticket,
                       char token[BENCH_TOKEN_CHARS_MAX + 1])
{
    uint8_t body[BENCH_BODY_BYTES_MAX + BENCH_MAC_BYTES], mac[EVP_MAX_MD_SIZE];
    size_t len = bench_token_body(key->id, event_id, ticket, body);

    bench_require(HMAC(EVP_sha256(), event_key, BENCH_KEY_BYTES, body, len, mac, NULL) != NULL,
                  "HMAC");
    memcpy(body + len, mac, BENCH_MAC_BYTES);
    bench_base64url(body, len + BENCH_MAC_BYTES, token);
}

static void seat_format(const struct bench_ticket *ticket, char text[FACE_TEXT_BYTES_MAX])
{
    snprintf(text, FACE_TEXT_BYTES_MAX, "%s %s %s", ticket->section, ticket->row, ticket->number);
}

static void price_format(const struct bench_ticket *ticket, char text[FACE_TEXT_BYTES_MAX])
{
    text[0] = '\0';
    if (*ticket->currency != '\0')
        snprintf(text, FACE_TEXT_BYTES_MAX, "%.2f %s", (double)ticket->price_amount / 100,
                 ticket->currency);
}

static void ticket_draw(const struct drawing *drawing, HPDF_Page page,
                        const struct bench_batch *batch, const struct bench_ticket *ticket)
{
    char seat[FACE_TEXT_BYTES_MAX], price[FACE_TEXT_BYTES_MAX];

    seat_format(ticket, seat);
    price_format(ticket, price);
    slot_draw(drawing, page, FACE_EVENT, batch->event_name);
    slot_draw(drawing, page, FACE_VENUE, batch->venue);
    slot_draw(drawing, page, FACE_DATE, batch->date);
    HPDF_Page_Rectangle(page, FACE_LEFT_PT, FACE_RULE_Y_PT, FACE_RULE_WIDTH_PT, 1);
    HPDF_Page_Fill(page);
    slot_draw(drawing, page, FACE_HOLDER, ticket->holder);
    slot_draw(drawing, page, FACE_TYPE, ticket->type);
    slot_draw(drawing, page, FACE_PRICE, price);
    slot_draw(drawing, page, FACE_SEAT, seat);
    slot_draw(drawing, page, FACE_GATE, ticket->gate);
    slot_draw(drawing, page, FACE_ORDER, ticket->order_id);
    slot_draw(drawing, page, FACE_ID, ticket->id);
}

static void page_add(const struct drawing *drawing, const struct bench_batch *batch,
                     const struct bench_ticket *ticket, const char *token)
{
    HPDF_Page page = HPDF_AddPage(drawing->document);
    QRcode *qr = QRcode_encodeString8bit(token, 0, QR_ECLEVEL_M);

    bench_require(qr != NULL, "QRcode_encodeString8bit");
    HPDF_Page_SetWidth(page, FACE_WIDTH_PT);
    HPDF_Page_SetHeight(page, FACE_HEIGHT_PT);
    ticket_draw(drawing, page, batch, ticket);
    qr_draw(page, qr);
    QRcode_free(qr);
}

static void *obvious_prepare(const struct bench_job *job)
{
    struct bench_key *key = calloc(1, sizeof *key);

    bench_require(key != NULL, "memory");
    bench_key_read(job->keys_path, key);
    return key;
}

static size_t obvious_run(void *context, const struct bench_job *job)
{
    const struct bench_key *key = context;
    struct bench_batch batch;
    struct drawing drawing;
    uint8_t event_key[BENCH_KEY_BYTES];
    char token[BENCH_TOKEN_CHARS_MAX + 1];

    bench_batch_read(job->batch_json, job->batch_json_len, &batch);
    bench_event_key(key, batch.event_id, event_key);
    drawing_start(&drawing, job->is_embedded);
    for (size_t i = 0; i < batch.tickets_count; i++) {
        token_make(key, event_key, batch.event_id, &batch.tickets[i], token);
        page_add(&drawing, &batch, &batch.tickets[i], token);
    }
    HPDF_SaveToFile(drawing.document, job->out_path);
    HPDF_Free(drawing.document);
    size_t tickets = batch.tickets_count;
    bench_batch_clear(&batch);
    return tickets;
}

int main(int argc, char **argv)
{
    static const struct bench_program program = {
        .name = "obvious",
        .takes_embedded = true,
        .prepare = &obvious_prepare,
        .run = &obvious_run,
        .finish = &free,
    };

    return bench_main(&program, argc, argv);
}
