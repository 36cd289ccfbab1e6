/*
 * Faces first asked for by everybody at once. Each round opens the fonts anew; then all threads ask
 * for the same shapers, set a text with them and cut a subset. All must get one shaper a face, and
 * the same glyphs and bytes as everybody else.
 */
#include "workers/font.h"

#include <hb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FONTS "/usr/share/fonts/truetype/noto/NotoSans"

enum { THREADS = 4, ROUNDS = 60, FACES = 4, GLYPHS_MAX = 64 };

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                             \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static const struct {
    const char *path, *text;
} FACE[FACES] = {
    {FONTS "-Regular.ttf", "Nguy\u1EC5n AV"},
    {FONTS "Arabic-Regular.ttf", "\u0645\u062D\u0645\u062F"},
    {FONTS "Devanagari-Regular.ttf", "\u0915\u094D\u0937\u093F"},
    {FONTS "Thai-Regular.ttf", "\u0E19\u0E49\u0E33"},
};

/* What one thread got of one face. */
struct got {
    hb_font_t *font;
    uint32_t glyphs[GLYPHS_MAX];
    unsigned glyphs_count;
    struct bytes file;
};

static struct font_set *fonts;
static struct got results[THREADS][FACES];
static pthread_barrier_t gate;

static void set_text(size_t face, struct got *got)
{
    hb_buffer_t *buffer = hb_buffer_create();
    const hb_glyph_info_t *infos;

    hb_buffer_add_utf8(buffer, FACE[face].text, -1, 0, -1);
    hb_buffer_guess_segment_properties(buffer);
    hb_shape(got->font, buffer, NULL, 0);
    infos = hb_buffer_get_glyph_infos(buffer, &got->glyphs_count);
    CHECK(got->glyphs_count > 0 && got->glyphs_count <= GLYPHS_MAX);
    for (unsigned i = 0; i < got->glyphs_count; i++)
        got->glyphs[i] = infos[i].codepoint;
    hb_buffer_destroy(buffer);
}

static void cut(size_t face, struct got *got)
{
    struct glyph_set glyphs = {0};

    CHECK(glyph_set_init(&glyphs, fonts, face, NULL) == ST_OK);
    for (unsigned i = 0; i < got->glyphs_count; i++) {
        CHECK(got->glyphs[i] != 0);
        CHECK(font_cid(fonts, face, got->glyphs[i]) == got->glyphs[i]);
        glyph_set_add(&glyphs, got->glyphs[i]);
    }
    CHECK(font_subset(fonts, face, &glyphs, &got->file, NULL) == ST_OK);
    glyph_set_clear(&glyphs);
}

static void *thread_run(void *argument)
{
    struct got *got = argument;

    pthread_barrier_wait(&gate);
    for (size_t face = 0; face < FACES; face++) {
        got[face].font = font_shaper(fonts, face);
        CHECK(got[face].font != NULL);
        set_text(face, &got[face]);
        cut(face, &got[face]);
    }
    return NULL;
}

static void check_and_clear(void)
{
    for (size_t face = 0; face < FACES; face++) {
        const struct got *first = &results[0][face];

        for (int thread = 1; thread < THREADS; thread++) {
            const struct got *got = &results[thread][face];

            CHECK(got->font == first->font);
            CHECK(got->glyphs_count == first->glyphs_count);
            CHECK(memcmp(got->glyphs, first->glyphs, sizeof got->glyphs) == 0);
            CHECK(got->file.len == first->file.len);
            CHECK(memcmp(got->file.data, first->file.data, first->file.len) == 0);
        }
        for (int thread = 0; thread < THREADS; thread++)
            bytes_clear(&results[thread][face].file);
    }
    memset(results, 0, sizeof results);
}

int main(void)
{
    const char *paths[FACES];
    pthread_t threads[THREADS];

    for (size_t face = 0; face < FACES; face++)
        paths[face] = FACE[face].path;
    CHECK(pthread_barrier_init(&gate, NULL, THREADS) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(font_set_open(paths, FACES, &fonts, NULL) == ST_OK);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, thread_run, results[i]) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        check_and_clear();
        font_set_free(&fonts);
    }
    printf("%d rounds of %d threads and %d faces\n", ROUNDS, THREADS, FACES);
    CHECK(pthread_barrier_destroy(&gate) == 0);
    return EXIT_SUCCESS;
}
