/*
 * Any text in any box: it stays within the box's width and number of lines, no character is lost
 * or told twice, and the content stream that it becomes is written without a fault. The first bytes
 * choose the box, the rest is the text.
 */
#include "workers/text.h"

#include "domain/utf8.h"
#include "workers/content.h"
#include "workers/itemize.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHOICES = 6, TEXT_BYTES_MAX = 8000 };

static const char *const PATHS[] = {
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansHebrew-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoNaskhArabic-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansThai-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansDevanagari-Regular.ttf",
};
static const char *const TAGS[] = {"vi", "ar", "th", "hi"};

static struct font_set *fonts;
static struct text_setter *setter;

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void start(void)
{
    if (fonts != NULL)
        return;
    require(font_set_open(PATHS, sizeof PATHS / sizeof *PATHS, &fonts, NULL) == ST_OK);
    require(text_setter_new(fonts, &setter, NULL) == ST_OK);
}

/* Not narrower than the first faces' widest character, of 2.84 em. */
static struct text_fit fit_from(const uint8_t choices[CHOICES])
{
    int32_t const size = 4000 + choices[0] * 100;
    int32_t const floor = 4000 + (size - 4000) * choices[1] / 255;
    int32_t const wrapped = 4000 + (size - 4000) * choices[2] / 255;

    return (struct text_fit){.face = choices[5] & 1,
                             .is_right_to_left = (choices[5] & 2) != 0,
                             .width_mpt = 3 * wrapped + choices[3] * 1000,
                             .height_mpt = choices[4] * 400,
                             .size_mpt = size,
                             .floor_mpt = floor,
                             .wrapped_floor_mpt = wrapped,
                             .lines_max = 1U + choices[5] / 16};
}

/* What is left out between lines draws nothing. */
static const char *require_blank(const char *at, const char *end)
{
    while (at < end) {
        uint32_t c = 0;

        at += utf8_decode(at, (size_t)(end - at), &c);
        require(c == ' ' || c == '\n' || itemize_is_ignorable(c));
    }
    return at;
}

/* A cluster is never cut, however wide it is. */
static bool is_one_cluster(const struct text_line *line)
{
    return line->glyphs_count > 0 &&
           line->glyphs[0].group == line->glyphs[line->glyphs_count - 1].group;
}

static void check_block(const struct text_block *block, const struct text_fit *fit,
                        struct text text)
{
    const char *at = text.data;

    require(block->lines_count <= fit->lines_max && block->size_mpt <= fit->size_mpt);
    for (size_t i = 0; i < block->lines_count; i++) {
        const struct text_line *line = &block->lines[i];

        require((int64_t)line->width * block->size_mpt <= (int64_t)fit->width_mpt * FONT_EM ||
                is_one_cluster(line));
        require(line->source.data >= at);
        at = require_blank(at, line->source.data) + line->source.len;
        require(at <= text.data + text.len && utf8_is_valid(line->source));
        require(!line->has_ellipsis || i + 1 == block->lines_count);
    }
    if (block->lines_count == 0 || !block->lines[block->lines_count - 1].has_ellipsis)
        require_blank(at, text.data + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct bytes out = {0};
    struct content content;
    struct text_block block;
    struct text_fit fit;
    struct text text = {0};

    if (size < CHOICES || size > TEXT_BYTES_MAX)
        return 0;
    start();
    fit = fit_from(data);
    require(arena_text_copy(&arena, (const char *)data + CHOICES, size - CHOICES, &text, NULL) ==
            ST_OK);
    if (utf8_is_valid(text)) {
        require(text_set(setter, (struct text){TAGS[data[5] & 3], 2}, text, &fit, &arena, &block,
                         NULL) == ST_OK);
        check_block(&block, &fit, text);
        content_init(&content, &out);
        for (size_t i = 0; i < block.lines_count; i++)
            content_text(&content, fonts, &block, &block.lines[i], 0, 0, 0);
        require(content_status(&content, NULL) == ST_OK);
    }
    bytes_clear(&out);
    arena_clear(&arena);
    return 0;
}
