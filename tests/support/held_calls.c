#include "tests/support/held_calls.h"

#include "domain/must.h"
#include "workers/pdf.h"
#include "workers/qr.h"

#include <pthread.h>
#include <stdbool.h>

static struct {
    size_t holds_in, fails_in; /* calls until then; 0: never */
    enum status failure;
    bool is_held, is_released;
} calls[HELD_CALLS]; /* guarded by mutex */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void held_calls_hold(enum held_call call, size_t nth)
{
    MUST(pthread_mutex_lock(&mutex));
    calls[call].holds_in = nth;
    calls[call].is_held = calls[call].is_released = false;
    MUST(pthread_mutex_unlock(&mutex));
}

void held_calls_await(enum held_call call)
{
    MUST(pthread_mutex_lock(&mutex));
    while (!calls[call].is_held)
        MUST(pthread_cond_wait(&changed, &mutex));
    MUST(pthread_mutex_unlock(&mutex));
}

void held_calls_release(enum held_call call)
{
    MUST(pthread_mutex_lock(&mutex));
    calls[call].is_released = true;
    MUST(pthread_cond_broadcast(&changed));
    MUST(pthread_mutex_unlock(&mutex));
}

void held_calls_fail(enum held_call call, size_t nth, enum status status)
{
    MUST(pthread_mutex_lock(&mutex));
    calls[call].fails_in = nth;
    calls[call].failure = status;
    MUST(pthread_mutex_unlock(&mutex));
}

/* What is to become of a call: ST_OK when it is to be made. */
static enum status meet(enum held_call call)
{
    enum status st = ST_OK;

    MUST(pthread_mutex_lock(&mutex));
    if (calls[call].fails_in > 0 && --calls[call].fails_in == 0)
        st = calls[call].failure;
    if (calls[call].holds_in > 0 && --calls[call].holds_in == 0) {
        calls[call].is_held = true;
        MUST(pthread_cond_broadcast(&changed));
        while (!calls[call].is_released)
            MUST(pthread_cond_wait(&changed, &mutex));
    }
    MUST(pthread_mutex_unlock(&mutex));
    return st;
}

enum status __real_qr_encode(const void *data, size_t len, enum qr_level level, struct qr *qr,
                             struct error *err);
enum status __wrap_qr_encode(const void *data, size_t len, enum qr_level level, struct qr *qr,
                             struct error *err);
enum status __real_pdf_write(const struct pdf_input *input, const struct pdf_profile *profile,
                             struct deflater *deflater, struct bytes *out,
                             uint8_t digest[SHA256_BYTES], struct error *err);
enum status __wrap_pdf_write(const struct pdf_input *input, const struct pdf_profile *profile,
                             struct deflater *deflater, struct bytes *out,
                             uint8_t digest[SHA256_BYTES], struct error *err);

enum status __wrap_qr_encode(const void *data, size_t len, enum qr_level level, struct qr *qr,
                             struct error *err)
{
    enum status const st = meet(HELD_QR_ENCODE);

    if (st != ST_OK)
        return error_set(err, st, "as the test says");
    return __real_qr_encode(data, len, level, qr, err);
}

enum status __wrap_pdf_write(const struct pdf_input *input, const struct pdf_profile *profile,
                             struct deflater *deflater, struct bytes *out,
                             uint8_t digest[SHA256_BYTES], struct error *err)
{
    enum status const st = meet(HELD_PDF_WRITE);

    if (st != ST_OK)
        return error_set(err, st, "as the test says");
    return __real_pdf_write(input, profile, deflater, out, digest, err);
}
