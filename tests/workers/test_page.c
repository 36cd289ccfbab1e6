#include "workers/page.h"

#include "tests/support/failing_memory.h"
#include "workers/locale.h"

#include <criterion/criterion.h>
#include <hb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACES = 2, ELEMENTS_MAX = 8, PIECES_MAX = 4, PAGE_UM = 100000 };

#define LITERAL(words)                                                                             \
    {                                                                                              \
        .field = FIELD_LITERAL, .literal = { words, sizeof(words) - 1 }                            \
    }
#define TEXT_OF(words)                                                                             \
    {                                                                                              \
        words, sizeof(words) - 1                                                                   \
    }
#define TOKEN ((struct text)TEXT_OF("AQEAAAdldnQtMDAzCnRrdC0wMDAwMDE"))
#define TEXT_BOX                                                                                   \
    {                                                                                              \
        10000, 10000, 80000, 20000                                                                 \
    }
#define MISSING "\u5C71"

static const char *const PATHS[FACES] = {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
                                         "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf"};

/* ---- fixture: a layout made by hand, a batch of one ticket ---- */

static struct font_set *fonts;
static struct page_writer *writer;
static struct page_images images;
static enum page_direction direction;
static struct page_plan *plan;
static struct glyph_set glyphs[FACES];
static struct problems problems;
static struct bytes statics, slots;
static struct ticket ticket;
static struct batch batch;
static struct label_language labels;
static struct page_job job;
static struct layout_piece pieces[ELEMENTS_MAX][PIECES_MAX];
static struct layout_element elements[ELEMENTS_MAX];
static struct layout layout;

static void setup(void)
{
    struct text_rules rules;
    struct error err = {0};

    cr_assert_eq(locale_rules(&rules, &err), ST_OK, "%s", err.text);
    cr_assert_eq(font_set_open(PATHS, FACES, &fonts, &err), ST_OK, "%s", err.text);
    cr_assert_eq(page_writer_new(fonts, &writer, &err), ST_OK, "%s", err.text);
    for (size_t face = 0; face < FACES; face++)
        cr_assert_eq(glyph_set_init(&glyphs[face], fonts, face, NULL), ST_OK);
    ticket = (struct ticket){.id = TEXT_OF("tkt-1"),
                             .holder = TEXT_OF("Ana"),
                             .type = TEXT_OF("General"),
                             .request_index = 7};
    batch = (struct batch){.event = {.id = TEXT_OF("evt-1"),
                                     .name = TEXT_OF("Fair"),
                                     .venue = TEXT_OF(""),
                                     .timezone = TEXT_OF("Europe/Berlin"),
                                     .starts_at_s = 1826627400}, /* 2027-11-19T12:30:00Z */
                           .locale = TEXT_OF("en-GB"),
                           .tickets = &ticket,
                           .tickets_count = 1};
    labels = (struct label_language){.tag = TEXT_OF("en")};
    labels.words[LABEL_HOLDER] = (struct text)TEXT_OF("Name");
    labels.words[LABEL_GATE] = (struct text)TEXT_OF("Gate");
    labels.words[LABEL_FREE] = (struct text)TEXT_OF("Free");
    job = (struct page_job){
        .batch = &batch, .labels = &labels, .glyphs = glyphs, .problems = &problems};
    layout = (struct layout){
        .name = TEXT_OF("test"),
        .page_w_um = PAGE_UM,
        .page_h_um = PAGE_UM,
        .n_up = {.columns = 1, .rows = 1, .ticket_w_um = PAGE_UM, .ticket_h_um = PAGE_UM},
        .elements = elements};
    images = (struct page_images){0};
    direction = PAGE_LEFT_TO_RIGHT;
}

static void teardown(void)
{
    page_plan_free(&plan);
    cr_expect_null(plan);
    page_writer_free(&writer);
    cr_expect_null(writer);
    for (size_t face = 0; face < FACES; face++)
        glyph_set_clear(&glyphs[face]);
    font_set_free(&fonts);
    problems_clear(&problems);
    bytes_clear(&statics);
    bytes_clear(&slots);
}

static void element_add(struct layout_element element)
{
    cr_assert_lt(layout.elements_count, ELEMENTS_MAX);
    elements[layout.elements_count++] = element;
}

/* A text of up to two pieces, black and regular, as wide as the page. */
static struct layout_element *text_add(struct layout_piece first, struct layout_piece second)
{
    struct layout_piece *own = pieces[layout.elements_count];

    own[0] = first;
    own[1] = second;
    element_add((struct layout_element){
        .kind = LAYOUT_TEXT,
        .box = TEXT_BOX,
        .pieces = own,
        .pieces_count = second.field == FIELD_LITERAL && second.literal.data == NULL ? 1 : 2,
        .size_mpt = 10000,
        .floor_mpt = 6000,
        .wrapped_floor_mpt = 6000,
        .lines_max = 2});
    return &elements[layout.elements_count - 1];
}

static const struct layout_piece NONE = {.field = FIELD_LITERAL};

static struct layout_piece field(enum field field)
{
    return (struct layout_piece){.field = field};
}

static struct layout_piece label(enum label label)
{
    return (struct layout_piece){.field = FIELD_LABEL, .label = label};
}

static void qr_add(void)
{
    element_add((struct layout_element){
        .kind = LAYOUT_QR, .box = {50000, 50000, 44000, 44000}, .qr_level = LAYOUT_QR_M});
}

/* Writes the page; afterwards statics and slots are zero-terminated. */
static void write_page(void)
{
    struct error err = {0};

    page_plan_free(&plan);
    bytes_clear(&statics);
    bytes_clear(&slots);
    cr_assert_eq(page_plan_new(&layout, fonts, images, direction, &plan, &err), ST_OK);
    cr_assert_eq(page_plan_layout(plan), &layout);
    cr_assert_eq(page_write_static(writer, plan, &job, &statics, &err), ST_OK, "%s", err.text);
    cr_assert_eq(page_write_ticket(writer, plan, &job, &ticket, TOKEN, &slots, &err), ST_OK, "%s",
                 err.text);
    cr_assert_eq(bytes_append(&statics, "", 1, NULL), ST_OK);
    cr_assert_eq(bytes_append(&slots, "", 1, NULL), ST_OK);
}

/* The characters of a content stream's glyphs, as far as they are ASCII, a bar after each TJ. */
static const char *text_in(const struct bytes *stream)
{
    static char text[1000];
    const char *c = (const char *)stream->data;
    size_t len = 0;
    size_t face = 0;

    for (; *c != '\0'; c++) {
        if (strncmp(c, "BT/F", 4) == 0)
            face = (size_t)(c[4] - '0');
        if (strncmp(c, "]TJ", 3) == 0)
            text[len++] = '|';
        if (*c != '<' || c[1] == '<' || strncmp(c, "<FEFF", 5) == 0)
            continue;
        for (c++; *c != '>'; c += 4) {
            char const code[] = {c[0], c[1], c[2], c[3], '\0'};
            uint32_t const code_point =
                font_code_point(fonts, face, (uint32_t)strtoul(code, NULL, 16));

            cr_assert_lt(len + 2, sizeof text);
            text[len++] = code_point == 0 ? '#' : code_point < 0x80 ? (char)code_point : '?';
        }
    }
    text[len] = '\0';
    return text;
}

static void expect_statics(const char *text)
{
    cr_expect_str_eq(text_in(&statics), text);
}

static void expect_slots(const char *text)
{
    cr_expect_str_eq(text_in(&slots), text);
}

/* ---- what is static and what is not ---- */

Test(page_plan_new, parts_what_all_tickets_share_from_what_they_do_not, .init = setup,
     .fini = teardown)
{
    text_add(field(FIELD_TICKET_HOLDER), NONE);
    text_add(field(FIELD_EVENT_NAME), NONE);
    qr_add();
    text_add(label(LABEL_HOLDER), NONE);
    text_add((struct layout_piece)LITERAL("No. "), field(FIELD_TICKET_ID));
    text_add((struct layout_piece)LITERAL("Hello"), NONE);
    write_page();
    expect_statics("Fair|Name|Hello|");
    expect_slots("Ana|No. tkt-1|");
}

Test(page_plan_new, counts_a_condition_on_the_ticket_as_its_own, .init = setup, .fini = teardown)
{
    struct layout_element *element = text_add(label(LABEL_GATE), NONE);

    element->has_when = true;
    element->when = FIELD_TICKET_GATE;
    write_page();
    expect_statics("");
    expect_slots("");
    ticket.gate = (struct text)TEXT_OF("3");
    write_page();
    expect_statics("");
    expect_slots("Gate|");
}

/* A box that only some tickets have, and something on it that all have. */
Test(page_plan_new, keeps_what_lies_on_a_slot_above_it, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name;
        enum layout_element_kind below;
        struct box_um box;
        bool is_static;
    } ROWS[] = {
        {"under the text", LAYOUT_BOX, {0, 0, 100000, 100000}, false},
        {"a line across it", LAYOUT_LINE, {0, 0, 100000, 100000}, false},
        {"beside the text", LAYOUT_BOX, {100000, 0, 1000, 1000}, true},
        {"a text", LAYOUT_TEXT, {0, 0, 100000, 100000}, true},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        layout.elements_count = 0;
        element_add((struct layout_element){.kind = ROWS[i].below,
                                            .box = ROWS[i].box,
                                            .size_mpt = 10000,
                                            .floor_mpt = 10000,
                                            .wrapped_floor_mpt = 10000,
                                            .lines_max = 1,
                                            .has_when = true,
                                            .when = FIELD_TICKET_HOLDER});
        text_add(label(LABEL_GATE), NONE);
        write_page();
        cr_expect_str_eq(text_in(ROWS[i].is_static ? &statics : &slots), "Gate|", "%s",
                         ROWS[i].name);
        cr_expect_str_eq(text_in(ROWS[i].is_static ? &slots : &statics), "", "%s", ROWS[i].name);
    }
}

Test(page_write_static, leaves_out_what_hangs_on_an_absent_member_of_the_event, .init = setup,
     .fini = teardown)
{
    struct layout_element *element = text_add((struct layout_piece)LITERAL("Doors"), NONE);

    element->has_when = true;
    element->when = FIELD_EVENT_DOORS;
    element_add((struct layout_element){.kind = LAYOUT_BOX,
                                        .box = TEXT_BOX,
                                        .color = 0xFF0000,
                                        .has_when = true,
                                        .when = FIELD_EVENT_ADDRESS});
    write_page();
    expect_statics("");
    cr_expect_null(strstr((const char *)statics.data, "re"));
    batch.event.has_doors_at = true;
    batch.event.doors_at_s = batch.event.starts_at_s - 1800;
    batch.event.address = (struct text)TEXT_OF("Main Street");
    write_page();
    expect_statics("Doors|");
    cr_expect_not_null(strstr((const char *)statics.data, "1 0 0 rg\n"));
}

Test(page_write_static, leaves_the_graphics_state_as_it_was, .init = setup, .fini = teardown)
{
    text_add(field(FIELD_EVENT_NAME), NONE)->color = 0x1B2440;
    write_page();
    cr_expect_eq(strncmp((const char *)statics.data, "q\n", 2), 0);
    cr_expect_str_eq((const char *)statics.data + statics.len - 3, "Q\n");
}

Test(page_write_ticket, draws_the_symbol_last, .init = setup, .fini = teardown)
{
    const char *plate;

    qr_add();
    text_add(field(FIELD_TICKET_ID), NONE);
    element_add((struct layout_element){.kind = LAYOUT_BOX,
                                        .box = {0, 0, PAGE_UM, PAGE_UM},
                                        .color = 0x00FF00,
                                        .has_when = true,
                                        .when = FIELD_TICKET_ID});
    write_page();
    /* 44 mm at 50 mm from the left and 6 mm from the bottom */
    plate = strstr((const char *)slots.data, "1 g\n141.73 17.01 124.72 124.72 re f\n0 g\nq ");
    cr_assert_not_null(plate, "%s", (const char *)slots.data);
    cr_expect_null(strstr(plate, "BT"));
    cr_expect_str_eq((const char *)slots.data + slots.len - 5, "f Q\n");
}

/* ---- fields ---- */

Test(page_write_ticket, shows_each_field, .init = setup, .fini = teardown)
{
    static const struct {
        enum field field;
        const char *text;
    } ROWS[] = {
        {FIELD_EVENT_NAME, "Fair|"},       {FIELD_EVENT_VENUE, "Hall 2|"},
        {FIELD_EVENT_ADDRESS, "Road 1|"},  {FIELD_EVENT_ORGANIZER, "Viva|"},
        {FIELD_EVENT_NOTES, "Two|lines|"}, {FIELD_EVENT_DATE, "Friday, 19 November 2027|"},
        {FIELD_EVENT_TIME, "13:30|"},      {FIELD_EVENT_ZONE, "CET|"},
        {FIELD_EVENT_DOORS, "12:45|"},     {FIELD_TICKET_ID, "tkt-1|"},
        {FIELD_TICKET_ORDER, "ord-1|"},    {FIELD_TICKET_HOLDER, "Ana|"},
        {FIELD_TICKET_TYPE, "General|"},   {FIELD_TICKET_SECTION, "West|"},
        {FIELD_TICKET_ROW, "A|"},          {FIELD_TICKET_SEAT, "12|"},
        {FIELD_TICKET_GATE, "3|"},         {FIELD_TICKET_PRICE, "?25.00|"},
    };

    batch.event.venue = (struct text)TEXT_OF("Hall 2");
    batch.event.address = (struct text)TEXT_OF("Road 1");
    batch.event.organizer = (struct text)TEXT_OF("Viva");
    batch.event.notes = (struct text)TEXT_OF("Two\nlines");
    batch.event.has_doors_at = true;
    batch.event.doors_at_s = batch.event.starts_at_s - 45 * 60;
    ticket.order_id = (struct text)TEXT_OF("ord-1");
    ticket.section = (struct text)TEXT_OF("West");
    ticket.row = (struct text)TEXT_OF("A");
    ticket.number = (struct text)TEXT_OF("12");
    ticket.gate = (struct text)TEXT_OF("3");
    ticket.price_amount = 2500;
    memcpy(ticket.price_currency, "EUR", 4);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        layout.elements_count = 0;
        text_add(field(ROWS[i].field), NONE);
        write_page();
        cr_expect_str_eq(text_in(field_is_static(ROWS[i].field) ? &statics : &slots), ROWS[i].text,
                         "field %d", ROWS[i].field);
    }
    cr_expect_eq(sizeof ROWS / sizeof *ROWS, FIELD_COUNT - FIELD_EVENT_NAME);
    cr_expect_eq(problems.count, 0);
}

Test(page_write_ticket, leaves_out_labels_of_absent_fields, .init = setup, .fini = teardown)
{
    static const enum field OPTIONAL[] = {
        FIELD_EVENT_VENUE, FIELD_EVENT_ADDRESS, FIELD_EVENT_ORGANIZER, FIELD_EVENT_NOTES,
        FIELD_EVENT_DOORS, FIELD_TICKET_ORDER,  FIELD_TICKET_SECTION,  FIELD_TICKET_ROW,
        FIELD_TICKET_SEAT, FIELD_TICKET_GATE,   FIELD_TICKET_PRICE,
    };

    for (size_t i = 0; i < sizeof OPTIONAL / sizeof *OPTIONAL; i++) {
        layout.elements_count = 0;
        text_add(label(LABEL_GATE), field(OPTIONAL[i]));
        text_add(field(OPTIONAL[i]), NONE);
        write_page();
        expect_statics("");
        expect_slots("");
    }
}

Test(page_write_ticket, keeps_a_content_of_which_a_part_is_there, .init = setup, .fini = teardown)
{
    text_add(field(FIELD_TICKET_HOLDER), field(FIELD_TICKET_GATE));
    write_page();
    expect_slots("Ana|");
}

Test(page_write_ticket, writes_the_price_or_the_word_for_free_or_nothing, .init = setup,
     .fini = teardown)
{
    static const struct {
        const char *currency;
        int64_t amount;
        const char *text;
    } ROWS[] = {{"", 0, ""},
                {"EUR", 0, "Free|"},
                {"EUR", 1, "?0.01|"},
                {"JPY", 1500, "JP?1,500|"},
                {"KWD", 1234, "KWD?1.234|"}};

    text_add(field(FIELD_TICKET_PRICE), NONE);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        snprintf(ticket.price_currency, sizeof ticket.price_currency, "%s", ROWS[i].currency);
        ticket.price_amount = ROWS[i].amount;
        write_page();
        cr_expect_str_eq(text_in(&slots), ROWS[i].text);
    }
}

/* ---- where things stand ---- */

/* The baseline and left end of the only text of a stream. */
static void text_position(const struct bytes *stream, double *x, double *y)
{
    const char *text = strstr((const char *)stream->data, "Tf ");
    char *next = NULL;

    cr_assert_not_null(text);
    *x = strtod(text + 3, &next);
    *y = strtod(next, &next);
    cr_assert_eq(strncmp(next, " Td", 3), 0);
}

Test(page_write_ticket, aligns_in_the_box, .init = setup, .fini = teardown)
{
    /* The box: 28.35 to 255.12 pt from the left, 198.43 to 255.12 from the bottom. */
    static const struct {
        enum layout_align align;
        enum layout_valign valign;
        double x, y;
    } ROWS[] = {
        {ALIGN_START, VALIGN_TOP, 28.35, 255.12 - 10.69},
        {ALIGN_CENTER, VALIGN_MIDDLE, (28.35 + 255.12 - 18.18) / 2, (198.43 + 255.12 - 7.14) / 2},
        {ALIGN_END, VALIGN_BOTTOM, 255.12 - 18.18, 198.43 + 2.93},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct layout_element *element;
        double x = 0, y = 0;

        layout.elements_count = 0;
        element = text_add(field(FIELD_TICKET_HOLDER), NONE);
        element->align = ROWS[i].align;
        element->valign = ROWS[i].valign;
        write_page();
        text_position(&slots, &x, &y);
        cr_expect_float_eq(x, ROWS[i].x, 0.03, "%zu: %f", i, x);
        cr_expect_float_eq(y, ROWS[i].y, 0.03, "%zu: %f", i, y);
    }
}

/* Written in the order of the text, a line says by its first move where it begins to be read. */
Test(page_write_ticket, isolates_a_fields_direction_from_its_neighbours, .init = setup,
     .fini = teardown)
{
    static const struct text ROWS[] = {
        TEXT_OF("ab\u2067"),
        TEXT_OF("ab\u2067\u2066\u2068"),
        TEXT_OF("\u2068ab"),
        TEXT_OF("ab\u2069\u2067"),
        TEXT_OF("ab\u2069\u2069"),
        TEXT_OF("ab\u200F"),
        TEXT_OF("\u2067\u2069ab\u2069"),
    };
    char expected[500];

    text_add(field(FIELD_TICKET_HOLDER), field(FIELD_TICKET_TYPE));
    ticket.type = (struct text)TEXT_OF("(General)");
    ticket.holder = (struct text)TEXT_OF("ab");
    write_page();
    cr_assert_lt(slots.len, sizeof expected);
    memcpy(expected, slots.data, slots.len);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ticket.holder = ROWS[i];
        write_page();
        cr_expect_str_eq((const char *)slots.data, expected, "%zu", i);
    }
}

Test(page_write_ticket, orders_fields_as_the_layout_runs, .init = setup, .fini = teardown)
{
    text_add(field(FIELD_TICKET_HOLDER), field(FIELD_TICKET_TYPE));
    write_page();
    cr_expect_not_null(strstr((const char *)slots.data, "Td[<"), "the holder is on the left");
    direction = PAGE_RIGHT_TO_LEFT;
    write_page();
    cr_expect_not_null(strstr((const char *)slots.data, "Td[-"), "the holder is on the right: %s",
                       (const char *)slots.data);
    expect_slots("AnaGeneral|");
}

Test(page_write_ticket, keeps_stacked_accents_inside_a_tight_box, .init = setup, .fini = teardown)
{
    /* 4.81 mm are 13.63 pt, just one line of 10 pt: the middle would push the top out. */
    struct layout_element *element = text_add(field(FIELD_TICKET_HOLDER), NONE);
    double x = 0, y = 0;

    element->box = (struct box_um){10000, 10000, 80000, 4810};
    element->valign = VALIGN_MIDDLE;
    write_page();
    text_position(&slots, &x, &y);
    cr_expect_float_eq(y, 255.12 - 10.69, 0.03, "%f", y);
    cr_expect_null(strstr((const char *)slots.data, " W n"));
}

Test(page_write_ticket, cuts_off_what_would_leave_its_box, .init = setup, .fini = teardown)
{
    static const struct {
        const char *name;
        struct text holder;
        int32_t w_um, h_um;
        bool is_clipped;
    } ROWS[] = {
        {"a name", TEXT_OF("Nguy\u1EC5n Th\u1ECB \u00C1nh"), 80000, 4810, false},
        {"a pile above", TEXT_OF("x\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301"), 80000,
         4810, true},
        {"a pile below", TEXT_OF("x\u0323\u0323\u0323\u0323\u0323\u0323\u0323\u0323\u0323"), 80000,
         4810, true},
        {"a pile below that the middle would push out", TEXT_OF("x\u0323\u0323\u0323"), 80000, 6000,
         false},
        {"the same with room", TEXT_OF("x\u0301\u0301\u0301"), 80000, 40000, false},
        {"a line that shrinks into its box", TEXT_OF("\u1EC6"), 80000, 3000, false},
        {"a line too high for its box", TEXT_OF("\u1EC6"), 80000, 1500, true},
        {"a letter wider than its box", TEXT_OF("\u2E3B"), 4000, 20000, true},
        {"the same with room", TEXT_OF("\u2E3B"), 12000, 20000, false},
    };

    text_add(field(FIELD_TICKET_HOLDER), NONE)->color = 0xFF0000;
    text_add(field(FIELD_TICKET_ID), NONE)->color = 0xFF0000;
    elements[0].valign = VALIGN_MIDDLE;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *text;

        ticket.holder = ROWS[i].holder;
        elements[0].box.w = ROWS[i].w_um;
        elements[0].box.h = ROWS[i].h_um;
        write_page();
        text = (const char *)slots.data;
        cr_expect_eq(strstr(text, " re W n\n") != NULL, ROWS[i].is_clipped, "%s", ROWS[i].name);
        cr_expect_eq(strstr(text, "Q\n") != NULL, ROWS[i].is_clipped, "%s", ROWS[i].name);
        /* The second text is red too, whether or not its colour was lost with the clip. */
        if (ROWS[i].is_clipped)
            cr_expect_not_null(strstr(strstr(text, "Q\n"), "1 0 0 rg\n"), "%s", ROWS[i].name);
    }
}

Test(page_write_static, draws_lines_from_the_upper_left_to_the_lower_right, .init = setup,
     .fini = teardown)
{
    element_add((struct layout_element){
        .kind = LAYOUT_LINE, .box = {25400, 25400, 50800, 0}, .stroke_um = 254, .dash_um = 2540});
    write_page();
    cr_expect_not_null(
        strstr((const char *)statics.data, "0 0 0 RG .72 w [7.2 ] 0 d 72 211.47 m 216 211.47 l S"),
        "%s", (const char *)statics.data);
}

/* ---- turns ---- */

/* The box: 28.35 to 85.04 pt from the left, 141.73 to 255.12 from the bottom. */
#define TALL_BOX                                                                                   \
    {                                                                                              \
        10000, 10000, 20000, 40000                                                                 \
    }

Test(page_write_ticket, turns_a_text_in_a_box_whose_sides_change_places, .init = setup,
     .fini = teardown)
{
    static const struct {
        const char *axes;
        double x, y; /* of the first letter, in these axes */
    } ROWS[] = {
        {"", 28.35, 255.12 - 10.69},
        {"q\n0 -1 1 0 28.35 255.12 cm\n", 0, 56.69 - 10.69},
        {"q\n-1 0 0 -1 85.04 255.12 cm\n", 0, 113.39 - 10.69},
        {"q\n0 1 -1 0 85.04 141.73 cm\n", 0, 56.69 - 10.69},
    };

    text_add(field(FIELD_TICKET_HOLDER), NONE)->box = (struct box_um)TALL_BOX;
    for (uint32_t turns = 0; turns < 4; turns++) {
        double x = 0, y = 0;

        elements[0].quarter_turns = turns;
        write_page();
        text_position(&slots, &x, &y);
        cr_expect_eq(strncmp((const char *)slots.data, ROWS[turns].axes, strlen(ROWS[turns].axes)),
                     0, "%u: %s", turns, (const char *)slots.data);
        cr_expect_eq(strstr((const char *)slots.data, "\nQ\n") != NULL, turns > 0, "%u", turns);
        cr_expect_float_eq(x, ROWS[turns].x, 0.03, "%u: %f", turns, x);
        cr_expect_float_eq(y, ROWS[turns].y, 0.03, "%u: %f", turns, y);
    }
}

Test(page_write_ticket, fits_a_turned_text_into_the_length_of_its_box, .init = setup,
     .fini = teardown)
{
    struct layout_element *element = text_add(field(FIELD_TICKET_HOLDER), NONE);

    ticket.holder = (struct text)TEXT_OF("Wilhelmina Montague");
    element->box = (struct box_um)TALL_BOX;
    element->lines_max = 1;
    write_page();
    cr_expect_not_null(strstr((const char *)slots.data, " 6 Tf"));
    element->quarter_turns = 1;
    write_page();
    cr_expect_not_null(strstr((const char *)slots.data, " 10 Tf"));
    expect_slots("Wilhelmina Montague|");
}

/* ---- images ---- */

static struct layout_element *image_add(enum layout_fit fit, enum layout_align align,
                                        enum layout_valign valign)
{
    element_add((struct layout_element){
        .kind = LAYOUT_IMAGE, .box = TALL_BOX, .fit = fit, .align = align, .valign = valign});
    return &elements[layout.elements_count - 1];
}

Test(page_write_static, fits_an_image_into_its_box, .init = setup, .fini = teardown)
{
    static const struct image WIDE = {.width = 60, .height = 20, .components = 3};
    static const struct image TALL = {.width = 10, .height = 40, .components = 3};
    static const struct {
        const char *name;
        const struct image *image;
        enum layout_fit fit;
        enum layout_align align;
        enum layout_valign valign;
        const char *expected;
    } ROWS[] = {
        {"wide, in the middle", &WIDE, FIT_CONTAIN, ALIGN_CENTER, VALIGN_MIDDLE,
         "q 56.69 0 0 18.9 28.35 188.98 cm/I7 Do Q\n"},
        {"wide, above", &WIDE, FIT_CONTAIN, ALIGN_END, VALIGN_TOP,
         "q 56.69 0 0 18.9 28.35 236.22 cm/I7 Do Q\n"},
        {"wide, below", &WIDE, FIT_CONTAIN, ALIGN_START, VALIGN_BOTTOM,
         "q 56.69 0 0 18.9 28.35 141.73 cm/I7 Do Q\n"},
        {"tall, at the start", &TALL, FIT_CONTAIN, ALIGN_START, VALIGN_TOP,
         "q 28.35 0 0 113.39 28.35 141.73 cm/I7 Do Q\n"},
        {"tall, at the end", &TALL, FIT_CONTAIN, ALIGN_END, VALIGN_TOP,
         "q 28.35 0 0 113.39 56.69 141.73 cm/I7 Do Q\n"},
        {"wide, covering from its middle", &WIDE, FIT_COVER, ALIGN_CENTER, VALIGN_TOP,
         "q\n28.35 141.73 56.69 113.39 re W n\nq 340.16 0 0 113.39 -113.39 141.73 cm/I7 Do Q\nQ\n"},
        {"wide, covering from its start", &WIDE, FIT_COVER, ALIGN_START, VALIGN_TOP,
         "q\n28.35 141.73 56.69 113.39 re W n\nq 340.16 0 0 113.39 28.35 141.73 cm/I7 Do Q\nQ\n"},
        {"tall, covering from its top", &TALL, FIT_COVER, ALIGN_START, VALIGN_TOP,
         "q\n28.35 141.73 56.69 113.39 re W n\nq 56.69 0 0 226.77 28.35 28.35 cm/I7 Do Q\nQ\n"},
        {"tall, covering from its foot", &TALL, FIT_COVER, ALIGN_START, VALIGN_BOTTOM,
         "q\n28.35 141.73 56.69 113.39 re W n\nq 56.69 0 0 226.77 28.35 141.73 cm/I7 Do Q\nQ\n"},
        {"wide, stretched", &WIDE, FIT_STRETCH, ALIGN_CENTER, VALIGN_MIDDLE,
         "q 56.69 0 0 113.39 28.35 141.73 cm/I7 Do Q\n"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char expected[200];

        layout.elements_count = 0;
        image_add(ROWS[i].fit, ROWS[i].align, ROWS[i].valign);
        images = (struct page_images){.images = ROWS[i].image, .first_name = 7};
        write_page();
        snprintf(expected, sizeof expected, "q\n%sQ\n", ROWS[i].expected);
        cr_expect_str_eq((const char *)statics.data, expected, "%s", ROWS[i].name);
    }
}

Test(page_image_size, is_that_of_the_picture_and_no_larger_than_a_file_can_say)
{
    static const struct {
        const char *name;
        enum layout_fit fit;
        uint32_t quarter_turns, width, height;
        int64_t w_um, h_um;
        bool expected;
    } ROWS[] = {
        {"covering", FIT_COVER, 0, 100, 200, 20000, 40000, true},
        {"covering, turned", FIT_COVER, 1, 100, 200, 40000, 80000, true},
        {"contained, turned", FIT_CONTAIN, 3, 200, 100, 40000, 20000, true},
        {"stretched", FIT_STRETCH, 2, 1, 30000, 20000, 40000, true},
        {"the longest", FIT_COVER, 0, 10, 5500, 20000, 11000000, true},
        {"longer", FIT_COVER, 0, 10, 5501, 20000, 11002000, false},
        {"wider", FIT_COVER, 0, 2751, 10, 11004000, 40000, false},
        {"beyond 32 bits", FIT_COVER, 0, 1, 32767, 20000, 655340000, false},
        {"the thinnest", FIT_CONTAIN, 0, 2000, 1, 20000, 10, true},
        {"thinner", FIT_CONTAIN, 0, 2001, 1, 20000, 9, false},
        {"narrower", FIT_CONTAIN, 0, 1, 4001, 9, 40000, false},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct image const image = {.width = ROWS[i].width, .height = ROWS[i].height};
        struct layout_element const element = {.kind = LAYOUT_IMAGE,
                                               .box = {.w = 20000, .h = 40000},
                                               .fit = ROWS[i].fit,
                                               .quarter_turns = ROWS[i].quarter_turns};
        int64_t w_um, h_um;

        cr_expect_eq(page_image_size(&element, &image, &w_um, &h_um), ROWS[i].expected, "%s",
                     ROWS[i].name);
        cr_expect(w_um == ROWS[i].w_um && h_um == ROWS[i].h_um, "%s: %lld %lld", ROWS[i].name,
                  (long long)w_um, (long long)h_um);
    }
}

Test(page_write_static, turns_an_image_and_names_it_by_its_place_in_the_list, .init = setup,
     .fini = teardown)
{
    static const struct image IMAGES[] = {{.width = 1, .height = 1}, {.width = 40, .height = 10}};
    struct layout_element *element = image_add(FIT_CONTAIN, ALIGN_END, VALIGN_TOP);

    images = (struct page_images){.images = IMAGES, .first_name = 16};
    element->image = 1;
    element->quarter_turns = 1;
    write_page();
    cr_expect_str_eq(
        (const char *)statics.data,
        "q\nq\n0 -1 1 0 28.35 255.12 cm\nq 113.39 0 0 28.35 0 28.35 cm/I17 Do Q\nQ\nQ\n");
}

Test(page_write_ticket, draws_an_image_that_hangs_on_the_ticket, .init = setup, .fini = teardown)
{
    static const struct image IMAGE = {.width = 1, .height = 2};
    struct layout_element *element = image_add(FIT_STRETCH, ALIGN_CENTER, VALIGN_MIDDLE);

    images = (struct page_images){.images = &IMAGE};
    element->has_when = true;
    element->when = FIELD_TICKET_GATE;
    write_page();
    cr_expect_str_eq((const char *)slots.data, "");
    ticket.gate = (struct text)TEXT_OF("3");
    write_page();
    cr_expect_not_null(strstr((const char *)slots.data, "/I0 Do"));
    cr_expect_str_eq((const char *)statics.data, "q\nQ\n");
}

/* ---- from right to left ---- */

/* In a mirror the box lies 198.43 to 255.12 pt from the left. */
Test(page_write_ticket, mirrors_places_and_sides_but_nothing_that_stands_there, .init = setup,
     .fini = teardown)
{
    static const struct {
        const char *name;
        enum layout_align align;
        uint32_t turns;
        const char *axes;
        double x; /* of the first letter */
    } ROWS[] = {
        {"start is right", ALIGN_START, 0, "", 255.12 - 18.18},
        {"end is left", ALIGN_END, 0, "", 198.43},
        {"the middle stays", ALIGN_CENTER, 0, "", 198.43 + (56.69 - 18.18) / 2},
        {"a quarter becomes three", ALIGN_START, 1, "q\n0 1 -1 0 255.12 141.73 cm\n",
         113.39 - 18.18},
        {"a half stays", ALIGN_START, 2, "q\n-1 0 0 -1 255.12 255.12 cm\n", 56.69 - 18.18},
        {"three become one", ALIGN_END, 3, "q\n0 -1 1 0 198.43 255.12 cm\n", 0},
    };
    struct layout_element *element = text_add(field(FIELD_TICKET_HOLDER), NONE);

    direction = PAGE_RIGHT_TO_LEFT;
    element->box = (struct box_um)TALL_BOX;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        double x = 0, y = 0;

        element->align = ROWS[i].align;
        element->quarter_turns = ROWS[i].turns;
        write_page();
        text_position(&slots, &x, &y);
        cr_expect_eq(strncmp((const char *)slots.data, ROWS[i].axes, strlen(ROWS[i].axes)), 0,
                     "%s: %s", ROWS[i].name, (const char *)slots.data);
        cr_expect_float_eq(x, ROWS[i].x, 0.03, "%s: %f", ROWS[i].name, x);
        expect_slots("Ana|");
    }
}

Test(page_write_static, mirrors_boxes_lines_and_images_in_place, .init = setup, .fini = teardown)
{
    static const struct image IMAGE = {.width = 10, .height = 40};

    direction = PAGE_RIGHT_TO_LEFT;
    images = (struct page_images){.images = &IMAGE};
    element_add((struct layout_element){.kind = LAYOUT_BOX, .box = TALL_BOX});
    element_add((struct layout_element){
        .kind = LAYOUT_LINE, .box = {25400, 25400, 50800, 25400}, .stroke_um = 254});
    image_add(FIT_CONTAIN, ALIGN_START, VALIGN_TOP);
    write_page();
    cr_expect_str_eq((const char *)statics.data,
                     "q\n198.43 141.73 56.69 113.39 re f\n"
                     "0 0 0 RG .72 w [] 0 d 211.47 211.47 m 67.47 139.47 l S\n"
                     "q 28.35 0 0 113.39 226.77 141.73 cm/I0 Do Q\nQ\n");
}

/* The modules' axes move with the plate, and their order stays. */
Test(page_write_ticket, mirrors_the_place_of_the_symbol_alone, .init = setup, .fini = teardown)
{
    struct bytes upright = {0};
    char *modules, *mirrored;

    qr_add();
    write_page();
    bytes_move(&upright, &slots);
    direction = PAGE_RIGHT_TO_LEFT;
    write_page();
    cr_expect_not_null(strstr((const char *)upright.data, "141.73 17.01 124.72 124.72 re f\n"));
    cr_expect_not_null(strstr((const char *)slots.data, "17.01 17.01 124.72 124.72 re f\n"));
    modules = strstr((char *)upright.data, "cm\n");
    mirrored = strstr((char *)slots.data, "cm\n");
    cr_assert(modules != NULL && mirrored != NULL);
    cr_expect_str_eq(modules, mirrored);
    bytes_clear(&upright);
}

/* ---- sheets ---- */

/* Everything around the tickets of a page on which so many cells are filled; `*` for a static part,
 * 1, 2, ... for the tickets. */
static const char *sheet_written(size_t filled)
{
    static struct bytes sheet;
    struct bytes star = {0};
    char ticket_name = '1';

    cr_assert_eq(bytes_append(&star, "*\n", 2, NULL), ST_OK);
    cr_assert_eq(page_plan_new(&layout, fonts, images, direction, &plan, NULL), ST_OK);
    sheet.len = 0;
    for (size_t cell = 0; cell < filled; cell++, ticket_name++) {
        cr_assert_eq(page_write_before(plan, cell, &star, &sheet, NULL), ST_OK);
        cr_assert_eq(bytes_append(&sheet, &ticket_name, 1, NULL), ST_OK);
        cr_assert_eq(bytes_append(&sheet, "\n", 1, NULL), ST_OK);
    }
    cr_assert_eq(page_write_after(plan, &sheet, NULL), ST_OK);
    cr_assert_eq(bytes_append(&sheet, "", 1, NULL), ST_OK);
    page_plan_free(&plan);
    bytes_clear(&star);
    return (const char *)sheet.data;
}

/* 2 by 2 cells of 30 by 40 mm, on a page of 100 by 100. */
static const struct layout_n_up GRID = {.columns = 2,
                                        .rows = 2,
                                        .ticket_w_um = 30000,
                                        .ticket_h_um = 40000,
                                        .margin_x_um = 10000,
                                        .margin_y_um = 8000};

Test(page_write_before, of_a_whole_page_is_the_static_part, .init = setup, .fini = teardown)
{
    cr_expect_str_eq(sheet_written(1), "*\n1\n");
}

Test(page_write_before, moves_the_origin_to_each_cell_in_turn, .init = setup, .fini = teardown)
{
    layout.n_up = GRID;
    cr_expect_str_eq(sheet_written(4), "q\n1 0 0 1 28.35 147.4 cm\n*\n1\n"
                                       "Q\nq\n1 0 0 1 113.39 147.4 cm\n*\n2\n"
                                       "Q\nq\n1 0 0 1 28.35 34.02 cm\n*\n3\n"
                                       "Q\nq\n1 0 0 1 113.39 34.02 cm\n*\n4\nQ\n");
    cr_expect_str_eq(sheet_written(1), "q\n1 0 0 1 28.35 147.4 cm\n*\n1\nQ\n");
    direction = PAGE_RIGHT_TO_LEFT; /* cells keep their order */
    cr_expect_str_eq(sheet_written(1), "q\n1 0 0 1 28.35 147.4 cm\n*\n1\nQ\n");
}

Test(page_write_before, moves_a_single_cell_that_is_smaller_than_its_page, .init = setup,
     .fini = teardown)
{
    layout.n_up = (struct layout_n_up){
        .columns = 1, .rows = 1, .ticket_w_um = 90000, .ticket_h_um = 100000, .margin_x_um = 10000};
    cr_expect_str_eq(sheet_written(1), "q\n1 0 0 1 28.35 0 cm\n*\n1\nQ\n");
}

/* The ends of each line that is drawn as cut marks are. Returns their number. */
static size_t marks_in(const char *sheet, double marks[32][4])
{
    static const char PEN[] = "0 0 0 RG .25 w [] 0 d ";
    static const char *const BEHIND[] = {" ", " m ", " ", " l S\n"};
    size_t count = 0;

    for (const char *at = sheet; (at = strstr(at, PEN)) != NULL; count++) {
        at += strlen(PEN);
        cr_assert(count < 32);
        for (size_t i = 0; i < 4; i++) {
            char *end;

            marks[count][i] = strtod(at, &end);
            cr_assert(end > at && strncmp(end, BEHIND[i], strlen(BEHIND[i])) == 0, "%s", at);
            at = end + strlen(BEHIND[i]);
        }
    }
    return count;
}

static bool has_mark(double marks[32][4], size_t count, double x1, double y1, double x2, double y2)
{
    double const wanted[] = {x1, y1, x2, y2};

    for (size_t i = 0; i < count; i++) {
        size_t same = 0;

        for (size_t j = 0; j < 4; j++)
            same += marks[i][j] > wanted[j] - 0.02 && marks[i][j] < wanted[j] + 0.02;
        if (same == 4)
            return true;
    }
    return false;
}

Test(page_write_before, draws_cut_marks_once_beyond_the_outermost_cells, .init = setup,
     .fini = teardown)
{
    double marks[32][4];
    size_t count;

    layout.n_up = GRID;
    layout.n_up.has_cut_marks = true;
    count = marks_in(sheet_written(4), marks);
    cr_expect_eq(count, 2 * 3 + 2 * 3); /* touching cells are parted by one cut */
    /* The upper left corner is at 28.35, 260.79. */
    cr_expect(has_mark(marks, count, 28.35, 260.79 + 2.83, 28.35, 260.79 + 11.34));
    cr_expect(has_mark(marks, count, 28.35 - 2.83, 260.79, 28.35 - 11.34, 260.79));
    /* The lower right one at 198.43, 34.02. */
    cr_expect(has_mark(marks, count, 198.43, 34.02 - 2.83, 198.43, 34.02 - 11.34));
    cr_expect(has_mark(marks, count, 198.43 + 2.83, 34.02, 198.43 + 11.34, 34.02));
    layout.n_up.gap_x_um = 2000;
    cr_expect_eq(marks_in(sheet_written(1), marks), 2 * 4 + 2 * 3);
    layout.n_up.gap_y_um = 2000;
    cr_expect_eq(marks_in(sheet_written(1), marks), 2 * 4 + 2 * 4);
    layout.n_up.has_cut_marks = false;
    cr_expect_eq(marks_in(sheet_written(1), marks), 0);
}

Test(page_write_before, says_when_memory_ends, .init = setup, .fini = teardown)
{
    struct bytes sheet = {0};

    layout.n_up = GRID;
    cr_assert_eq(bytes_append(&statics, "*", 1, NULL), ST_OK);
    cr_assert_eq(page_plan_new(&layout, fonts, images, direction, &plan, NULL), ST_OK);
    failing_memory_start(1);
    cr_expect_eq(page_write_before(plan, 0, &statics, &sheet, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    bytes_clear(&sheet);
    failing_memory_start(1);
    cr_expect_eq(page_write_after(plan, &sheet, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    bytes_clear(&sheet);
}

/* ---- glyphs and problems ---- */

Test(page_write_ticket, notes_the_glyphs_that_it_drew, .init = setup, .fini = teardown)
{
    hb_codepoint_t a = 0, f = 0, q = 0;

    hb_font_get_nominal_glyph(font_shaper(fonts, 0), 'A', &a);
    hb_font_get_nominal_glyph(font_shaper(fonts, 1), 'F', &f);
    hb_font_get_nominal_glyph(font_shaper(fonts, 0), 'q', &q);
    text_add(field(FIELD_TICKET_HOLDER), NONE);
    text_add(field(FIELD_EVENT_NAME), NONE)->is_bold = true;
    write_page();
    cr_expect(glyph_set_has(&glyphs[0], a) && !glyph_set_has(&glyphs[0], q));
    cr_expect(glyph_set_has(&glyphs[1], f));
    cr_expect_not_null(strstr((const char *)statics.data, "BT/F1 "));
    cr_expect_not_null(strstr((const char *)slots.data, "BT/F0 "));
}

Test(page_write_ticket, points_to_the_member_with_the_missing_glyph, .init = setup,
     .fini = teardown)
{
    static const struct {
        enum field field;
        struct text *text;
        const char *pointer;
    } ROWS[] = {
        {FIELD_EVENT_NAME, &batch.event.name, "/event/name"},
        {FIELD_EVENT_VENUE, &batch.event.venue, "/event/venue"},
        {FIELD_EVENT_ADDRESS, &batch.event.address, "/event/address"},
        {FIELD_EVENT_ORGANIZER, &batch.event.organizer, "/event/organizer"},
        {FIELD_EVENT_NOTES, &batch.event.notes, "/event/notes"},
        {FIELD_TICKET_ID, &ticket.id, "/tickets/7/id"},
        {FIELD_TICKET_ORDER, &ticket.order_id, "/tickets/7/order_id"},
        {FIELD_TICKET_HOLDER, &ticket.holder, "/tickets/7/holder"},
        {FIELD_TICKET_TYPE, &ticket.type, "/tickets/7/type"},
        {FIELD_TICKET_SECTION, &ticket.section, "/tickets/7/seat/section"},
        {FIELD_TICKET_ROW, &ticket.row, "/tickets/7/seat/row"},
        {FIELD_TICKET_SEAT, &ticket.number, "/tickets/7/seat/number"},
        {FIELD_TICKET_GATE, &ticket.gate, "/tickets/7/gate"},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text const before = *ROWS[i].text;

        *ROWS[i].text = (struct text)TEXT_OF("a" MISSING "b" MISSING);
        layout.elements_count = 0;
        /* the label is sound, the character stands in the other piece */
        text_add(label(LABEL_HOLDER), field(ROWS[i].field));
        write_page();
        cr_assert_eq(problems.count, 1, "%s: once for each character", ROWS[i].pointer);
        cr_expect_str_eq(problems.listed[0].pointer.data, ROWS[i].pointer);
        cr_expect_str_eq(problems.listed[0].code, "missing_glyph");
        cr_expect_not_null(strstr(problems.listed[0].detail.data, "U+5C71"));
        problems_clear(&problems);
        *ROWS[i].text = before;
    }
}

Test(page_write_static, points_to_locale_and_layout_for_words_that_are_theirs, .init = setup,
     .fini = teardown)
{
    text_add(label(LABEL_HOLDER), NONE);
    text_add((struct layout_piece)LITERAL("a" MISSING), NONE);
    text_add(field(FIELD_EVENT_DATE), NONE);
    labels.words[LABEL_HOLDER] = (struct text)TEXT_OF(MISSING);
    batch.locale = (struct text)TEXT_OF("ja");
    write_page();
    cr_assert_geq(problems.count, 3);
    cr_expect_str_eq(problems.listed[0].pointer.data, "/locale");
    cr_expect_str_eq(problems.listed[1].pointer.data, "/layout");
    cr_expect_str_eq(problems.listed[2].pointer.data, "/locale");
}

Test(page_write_ticket, lists_a_few_of_many_missing_characters, .init = setup, .fini = teardown)
{
    char holder[31] = "";

    for (int i = 0; i < 10; i++)
        snprintf(holder + 3 * i, 4, "\xE5\xB1%c", 0x80 + i); /* U+5C40 and on */
    ticket.holder = (struct text){holder, 30};
    text_add(field(FIELD_TICKET_HOLDER), NONE);
    write_page();
    cr_expect_eq(problems.count, 8);
    cr_expect_not_null(strstr(problems.listed[7].detail.data, "U+5C47"));
}

/* ---- determinism, and the end of memory ---- */

static void everything_add(void)
{
    batch.event.notes = (struct text)TEXT_OF("A long note that takes more than a line of its box, "
                                             "so that lines are broken, \u5C71 and x\u0302.");
    ticket.price_amount = 2500;
    memcpy(ticket.price_currency, "EUR", 4);
    text_add(field(FIELD_EVENT_NOTES), NONE);
    text_add(field(FIELD_EVENT_DATE), field(FIELD_EVENT_ZONE));
    text_add(label(LABEL_HOLDER), field(FIELD_TICKET_HOLDER));
    text_add(field(FIELD_TICKET_PRICE), NONE);
    element_add((struct layout_element){.kind = LAYOUT_BOX, .box = TEXT_BOX, .color = 0xFF0000});
    element_add((struct layout_element){.kind = LAYOUT_LINE, .box = TEXT_BOX, .stroke_um = 100});
    qr_add();
}

Test(page_write_ticket, is_the_same_whatever_the_writer_wrote_before, .init = setup,
     .fini = teardown)
{
    struct bytes first = {0};

    everything_add();
    write_page();
    bytes_move(&first, &slots);
    batch.locale = (struct text)TEXT_OF("el-GR");
    ticket.holder = (struct text)TEXT_OF("\u0391\u03BD\u03B1");
    write_page();
    batch.locale = (struct text)TEXT_OF("en-GB");
    ticket.holder = (struct text)TEXT_OF("Ana");
    write_page();
    cr_assert_eq(first.len, slots.len);
    cr_expect_arr_eq(first.data, slots.data, first.len);
    bytes_clear(&first);
}

Test(page_write_ticket, says_when_memory_ends_and_works_again, .init = setup, .fini = teardown)
{
    bool has_failed = true;
    size_t failures = 0;

    everything_add();
    cr_assert_eq(page_plan_new(&layout, fonts, images, direction, &plan, NULL), ST_OK);
    for (size_t call = 1; has_failed; call++) {
        struct error err = {0};
        enum status st;

        /* A new writer: one that has worked has its memory already. */
        page_writer_free(&writer);
        cr_assert_eq(page_writer_new(fonts, &writer, NULL), ST_OK);
        bytes_clear(&statics);
        bytes_clear(&slots);
        problems_clear(&problems);
        failing_memory_start(call);
        st = page_write_static(writer, plan, &job, &statics, &err);
        if (st == ST_OK)
            st = page_write_ticket(writer, plan, &job, &ticket, TOKEN, &slots, &err);
        has_failed = failing_memory_stop();
        failures += has_failed;
        /* A problem that cannot be kept is counted: that is no failure of the page. */
        if (!problems.is_incomplete)
            cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu: %s", call, err.text);
        cr_expect_eq(err.status, st);
    }
    cr_expect_gt(failures, 5);
}

Test(page_writer_new, leaves_nothing_when_memory_ends, .init = setup, .fini = teardown)
{
    bool has_failed = true;

    for (size_t call = 1; has_failed; call++) {
        struct page_writer *made = NULL;
        enum status st;

        failing_memory_start(call);
        st = page_writer_new(fonts, &made, NULL);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(made == NULL, has_failed);
        page_writer_free(&made);
    }
}

Test(page_plan_new, leaves_nothing_when_memory_ends, .init = setup, .fini = teardown)
{
    failing_memory_start(1);
    cr_expect_eq(page_plan_new(&layout, fonts, images, direction, &plan, NULL), ST_NO_MEMORY);
    cr_expect(failing_memory_stop());
    cr_expect_null(plan);
}

Test(page_write_ticket, passes_on_that_a_symbol_cannot_hold_its_token, .init = setup,
     .fini = teardown)
{
    static char token[3000];

    qr_add();
    memset(token, 'A', sizeof token);
    cr_assert_eq(page_plan_new(&layout, fonts, images, direction, &plan, NULL), ST_OK);
    cr_expect_eq(page_write_ticket(writer, plan, &job, &ticket, (struct text){token, sizeof token},
                                   &slots, NULL),
                 ST_TOO_LARGE);
}
