/*
 * Notes the thread of each call into a library that computes: parsing, signing, symbols, shaping,
 * compressing, composing.
 */
#include "note.h"

#include <hb.h>
#include <hpdf.h>
#include <hpdf_objects.h>
#include <jansson.h>
#include <libdeflate.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <qrencode.h>

enum { THREAD_NAME_BYTES = 16 };

static int notes_fd;
static json_t *(*next_load_callback)(json_load_callback_t, void *, size_t, json_error_t *);
static json_t *(*next_loadb)(const char *, size_t, size_t, json_error_t *);
static int (*next_mac_update)(EVP_MAC_CTX *, const unsigned char *, size_t);
static QRcode *(*next_encode)(int, const unsigned char *, int, QRecLevel);
static size_t (*next_compress)(struct libdeflate_compressor *, const void *, size_t, void *,
                               size_t);
static void (*next_shape)(hb_font_t *, hb_buffer_t *, const hb_feature_t *, unsigned int);
static HPDF_STATUS (*next_write_xref)(HPDF_Xref, HPDF_Stream, HPDF_Encrypt);

__attribute__((constructor)) static void start(void)
{
    notes_fd = note_open("trace_threads.jsonl");
    next_function("json_load_callback", &next_load_callback);
    next_function("json_loadb", &next_loadb);
    next_function("EVP_MAC_update", &next_mac_update);
    next_function("QRcode_encodeData", &next_encode);
    next_function("libdeflate_zlib_compress", &next_compress);
    next_function("hb_shape", &next_shape);
    next_function("HPDF_Xref_WriteToStream", &next_write_xref);
}

static void note_call(const char *function)
{
    char name[THREAD_NAME_BYTES];

    if (pthread_getname_np(pthread_self(), name, sizeof name) != 0)
        abort();
    note(notes_fd, "{\"call\": \"%s\", \"thread\": \"%s\"}\n", function, name);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): their headers' names differ */
json_t *json_load_callback(json_load_callback_t read, void *user, size_t flags, json_error_t *error)
{
    note_call(__func__);
    return next_load_callback(read, user, flags, error);
}

json_t *json_loadb(const char *text, size_t len, size_t flags, json_error_t *error)
{
    note_call(__func__);
    return next_loadb(text, len, flags, error);
}

int EVP_MAC_update(EVP_MAC_CTX *context, const unsigned char *data, size_t len)
{
    note_call(__func__);
    return next_mac_update(context, data, len);
}

QRcode *QRcode_encodeData(int size, const unsigned char *data, int version, QRecLevel level)
{
    note_call(__func__);
    return next_encode(size, data, version, level);
}

size_t libdeflate_zlib_compress(struct libdeflate_compressor *compressor, const void *in,
                                size_t in_len, void *out, size_t out_len)
{
    note_call(__func__);
    return next_compress(compressor, in, in_len, out, out_len);
}

void hb_shape(hb_font_t *font, hb_buffer_t *buffer, const hb_feature_t *features,
              unsigned int features_count)
{
    note_call(__func__);
    next_shape(font, buffer, features, features_count);
}

HPDF_STATUS HPDF_Xref_WriteToStream(HPDF_Xref xref, HPDF_Stream stream, HPDF_Encrypt encrypt)
{
    note_call(__func__);
    return next_write_xref(xref, stream, encrypt);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
