#include "domain/layout.h"

#include "domain/utf8.h"
#include "service/batch_json.h"
#include "tests/support/failing_memory.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES_MAX = 64 * 1024 };

/* A layout in JSON with ' for ". */
static json_t *json_from(const char *text)
{
    static char json[JSON_BYTES_MAX];
    json_error_t error = {0};
    json_t *root;

    cr_assert_lt(strlen(text), sizeof json);
    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    root = json_loads(json, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    cr_assert_not_null(root, "%s in %s", error.text, text);
    return root;
}

static enum status read_text(const char *text, struct layout *layout, struct problems *problems,
                             struct error *err)
{
    json_t *root = json_from(text);
    enum status const st = layout_read(&json_value_source, json_value(root), layout, problems, err);

    json_decref(root);
    return st;
}

/* ---- what is accepted ---- */

#define HEAD "{'name': 'test', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': ["
#define QR   "{'type': 'qr', 'x_mm': 5, 'y_mm': 92, 'side_mm': 44}"
#define TEXT "{'type': 'text', 'x_mm': 5, 'y_mm': 5, 'w_mm': 90, 'h_mm': 9, 'size_pt': 10, "

Test(layout_read, reads_the_built_in_layout)
{
    json_t *root =
        json_load_file("service/data/layouts/classic.json", JSON_REJECT_DUPLICATES, NULL);
    struct layout layout = {0};
    struct problems problems = {0};
    struct error err = {0};
    size_t qrs = 0;

    cr_assert_not_null(root);
    cr_assert_eq(layout_read(&json_value_source, json_value(root), &layout, &problems, &err), ST_OK,
                 "%s: %s", problems.listed[0].pointer.data, problems.listed[0].detail.data);
    json_decref(root); /* the layout has copies of its own */
    cr_expect_str_eq(layout.name.data, "classic");
    cr_expect(layout.page_w_um == 105000 && layout.page_h_um == 148000);
    cr_expect_gt(layout.elements_count, 20);
    for (size_t i = 0; i < layout.elements_count; i++)
        qrs += layout.elements[i].kind == LAYOUT_QR;
    cr_expect_eq(qrs, 1);
    layout_clear(&layout);
    cr_expect(layout.elements == NULL && layout.name.data == NULL && layout.arena.chunks == NULL);
}

Test(layout_read, gives_every_member_and_its_default)
{
    static const char JSON[] = HEAD
        "{'type': 'box', 'x_mm': 1, 'y_mm': 2.5006, 'w_mm': 3, 'h_mm': 0.0504, 'fill': '#1b2440',"
        " 'when': 'ticket.gate'},"
        "{'type': 'line', 'x_mm': 0, 'y_mm': 60.6, 'w_mm': 87, 'h_mm': 0, 'stroke_mm': 0.2,"
        " 'dash_mm': 1.2, 'color': '#0000ff'},"
        "{'type': 'text', 'x_mm': 9, 'y_mm': 16, 'w_mm': 87, 'h_mm': 5, 'content':"
        " 'At {event.time}, {label.gate}{ticket.gate}\\n.', 'size_pt': 8.5, 'floor_pt': 6,"
        " 'wrapped_floor_pt': 5, 'lines_max': 3, 'weight': 'bold', 'align': 'end',"
        " 'valign': 'bottom', 'color': '#c9a24b', 'rotate': 270, 'when': 'event.doors'}," TEXT
        "'content': 'x'}, {'type': 'qr', 'x_mm': 5, 'y_mm': 92.2, 'side_mm': 51, 'level': 'H'},"
        "{'type': 'image', 'x_mm': 0, 'y_mm': 0, 'w_mm': 105, 'h_mm': 1, 'file': 'a/B-1_2.c.png',"
        " 'fit': 'cover', 'align': 'start', 'valign': 'bottom', 'rotate': 90},"
        "{'type': 'image', 'x_mm': 0, 'y_mm': 0, 'w_mm': 9, 'h_mm': 9, 'file': 'b.jpeg'},"
        "{'type': 'image', 'x_mm': 0, 'y_mm': 0, 'w_mm': 9, 'h_mm': 9, 'file': 'a/B-1_2.c.png',"
        " 'fit': 'stretch', 'rotate': 0}]}";
    struct layout layout = {0};
    struct problems problems = {0};
    const struct layout_element *e;

    problems_add(&problems, "/earlier", "earlier", "is no fault of this layout");
    cr_assert_eq(read_text(JSON, &layout, &problems, NULL), ST_OK);
    cr_assert_eq(layout.elements_count, 8);
    e = &layout.elements[0];
    cr_expect(e->kind == LAYOUT_BOX && e->color == 0x1B2440);
    cr_expect(e->box.x == 1000 && e->box.y == 2501 && e->box.w == 3000 && e->box.h == 50);
    cr_expect(e->has_when && e->when == FIELD_TICKET_GATE);
    e = &layout.elements[1];
    cr_expect(e->kind == LAYOUT_LINE && e->color == 0x0000FF && !e->has_when);
    cr_expect(e->stroke_um == 200 && e->dash_um == 1200 && e->box.h == 0);
    e = &layout.elements[2];
    cr_expect(e->kind == LAYOUT_TEXT && e->is_bold && e->color == 0xC9A24B);
    cr_expect(e->size_mpt == 8500 && e->floor_mpt == 6000 && e->wrapped_floor_mpt == 5000);
    cr_expect(e->lines_max == 3 && e->align == ALIGN_END && e->valign == VALIGN_BOTTOM);
    cr_expect(e->has_when && e->when == FIELD_EVENT_DOORS && e->quarter_turns == 3);
    cr_assert_eq(e->pieces_count, 6);
    cr_expect(e->pieces[0].field == FIELD_LITERAL);
    cr_expect_str_eq(e->pieces[0].literal.data, "At ");
    cr_expect(e->pieces[1].field == FIELD_EVENT_TIME);
    cr_expect_str_eq(e->pieces[2].literal.data, ", ");
    cr_expect(e->pieces[3].field == FIELD_LABEL && e->pieces[3].label == LABEL_GATE);
    cr_expect(e->pieces[4].field == FIELD_TICKET_GATE);
    cr_expect_str_eq(e->pieces[5].literal.data, "\n.");
    e = &layout.elements[3];
    cr_expect(e->floor_mpt == 10000 && e->wrapped_floor_mpt == 10000 && e->lines_max == 1);
    cr_expect(!e->is_bold && e->align == ALIGN_START && e->valign == VALIGN_TOP && e->color == 0);
    cr_expect_eq(e->quarter_turns, 0);
    e = &layout.elements[4];
    cr_expect(e->kind == LAYOUT_QR && e->qr_level == LAYOUT_QR_H);
    cr_expect(e->box.w == 51000 && e->box.h == 51000);
    e = &layout.elements[5];
    cr_expect(e->kind == LAYOUT_IMAGE && e->image == 0 && e->fit == FIT_COVER);
    cr_expect(e->align == ALIGN_START && e->valign == VALIGN_BOTTOM && e->quarter_turns == 1);
    e = &layout.elements[6];
    cr_expect(e->kind == LAYOUT_IMAGE && e->image == 1 && e->fit == FIT_CONTAIN);
    cr_expect(e->align == ALIGN_CENTER && e->valign == VALIGN_MIDDLE && e->quarter_turns == 0);
    e = &layout.elements[7];
    cr_expect(e->image == 0 && e->fit == FIT_STRETCH);
    cr_assert_eq(layout.images_count, 2);
    cr_expect_str_eq(layout.images[0].file.data, "a/B-1_2.c.png");
    cr_expect_str_eq(layout.images[1].file.data, "b.jpeg");
    cr_expect(layout.n_up.columns == 1 && layout.n_up.rows == 1 && !layout.n_up.has_cut_marks);
    cr_expect(layout.n_up.ticket_w_um == 105000 && layout.n_up.ticket_h_um == 148000);
    cr_expect_eq(layout.module_um_min, LAYOUT_MODULE_UM);
    cr_expect_eq(layout_module_um(&layout), 600);
    layout_clear(&layout);
    problems_clear(&problems);
}

#define SHEET(n_up)                                                                                \
    "{'$schema': 'x', 'name': 'test', 'page_w_mm': 210, 'page_h_mm': 297, 'module_mm_min': 0.4,"   \
    " 'n_up': {" n_up "}, 'elements': [{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 26}]}"

Test(layout_cell, goes_row_by_row_over_the_sheet)
{
    static const struct {
        const char *json;
        size_t cells, cell;
        struct box_um box;
    } ROWS[] = {
        {SHEET("'columns': 1, 'rows': 1, 'ticket_w_mm': 210, 'ticket_h_mm': 297"),
         1,
         0,
         {0, 0, 210000, 297000}},
        {SHEET("'columns': 2, 'rows': 3, 'ticket_w_mm': 90, 'ticket_h_mm': 80"),
         6,
         0,
         {15000, 28500, 90000, 80000}},
        {SHEET("'columns': 2, 'rows': 3, 'ticket_w_mm': 90, 'ticket_h_mm': 80, 'gap_x_mm': 2,"
               " 'gap_y_mm': 3"),
         6,
         3,
         {106000, 108500, 90000, 80000}},
        {SHEET("'columns': 2, 'rows': 3, 'ticket_w_mm': 90, 'ticket_h_mm': 80, 'gap_x_mm': 2,"
               " 'gap_y_mm': 3, 'margin_x_mm': 4, 'margin_y_mm': 4, 'cut_marks': true"),
         6,
         5,
         {96000, 170000, 90000, 80000}},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct layout layout = {0};
        struct problems problems = {0};
        struct box_um box;

        cr_assert_eq(read_text(ROWS[i].json, &layout, &problems, NULL), ST_OK, "%zu: %s", i,
                     problems.listed[0].detail.data);
        box = layout_cell(&layout, ROWS[i].cell);
        cr_expect_eq(layout_cells(&layout), ROWS[i].cells);
        cr_expect(box.x == ROWS[i].box.x && box.y == ROWS[i].box.y, "%zu: %d %d", i, box.x, box.y);
        cr_expect(box.w == ROWS[i].box.w && box.h == ROWS[i].box.h, "%zu", i);
        cr_expect_eq(layout.n_up.has_cut_marks, i == 3);
        cr_expect_eq(layout_module_um(&layout), 400);
        layout_clear(&layout);
    }
}

Test(layout_read, knows_each_field_by_its_name)
{
    static const struct {
        const char *name;
        enum field field;
        bool is_static;
    } ROWS[] = {
        {"event.name", FIELD_EVENT_NAME, true},
        {"event.venue", FIELD_EVENT_VENUE, true},
        {"event.address", FIELD_EVENT_ADDRESS, true},
        {"event.organizer", FIELD_EVENT_ORGANIZER, true},
        {"event.notes", FIELD_EVENT_NOTES, true},
        {"event.date", FIELD_EVENT_DATE, true},
        {"event.time", FIELD_EVENT_TIME, true},
        {"event.zone", FIELD_EVENT_ZONE, true},
        {"event.doors", FIELD_EVENT_DOORS, true},
        {"ticket.id", FIELD_TICKET_ID, false},
        {"ticket.order", FIELD_TICKET_ORDER, false},
        {"ticket.holder", FIELD_TICKET_HOLDER, false},
        {"ticket.type", FIELD_TICKET_TYPE, false},
        {"ticket.section", FIELD_TICKET_SECTION, false},
        {"ticket.row", FIELD_TICKET_ROW, false},
        {"ticket.seat", FIELD_TICKET_SEAT, false},
        {"ticket.gate", FIELD_TICKET_GATE, false},
        {"ticket.price", FIELD_TICKET_PRICE, false},
        {"label.holder", FIELD_LABEL, true},
        {"label.doors", FIELD_LABEL, true},
    };

    cr_expect_eq(sizeof ROWS / sizeof *ROWS, FIELD_COUNT - FIELD_EVENT_NAME + 2);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct layout layout = {0};
        struct problems problems = {0};
        char json[1000];

        snprintf(json, sizeof json, HEAD QR ", " TEXT "'content': '{%s}'}]}", ROWS[i].name);
        cr_assert_eq(read_text(json, &layout, &problems, NULL), ST_OK, "%s", ROWS[i].name);
        cr_assert_eq(layout.elements[1].pieces_count, 1);
        cr_expect_eq(layout.elements[1].pieces[0].field, ROWS[i].field, "%s", ROWS[i].name);
        cr_expect_eq(field_is_static(ROWS[i].field), ROWS[i].is_static, "%s", ROWS[i].name);
        layout_clear(&layout);
    }
}

/* ---- what is refused ---- */

/* A layout of a sound QR symbol, /elements/0, and this element, /elements/1. */
#define WITH(element)         HEAD QR ", " element "]}"
#define WITH_TEXT(member)     WITH(TEXT "'content': '{ticket.id}', " member "}")
#define WITH_BOX(box, member) WITH("{'type': 'box', " box ", 'fill': '#000000'" member "}")
#define BOX                   "'x_mm': 1, 'y_mm': 1, 'w_mm': 1, 'h_mm': 1"
#define WITH_LINE(member)                                                                          \
    WITH("{'type': 'line', 'x_mm': 1, 'y_mm': 9, 'w_mm': 9, 'h_mm': 0, " member "}")
/* Two texts, the second, /elements/2, at this place. */
#define WITH_TWO(x, y)                                                                             \
    WITH(TEXT "'content': 'x'}, {'type': 'text', 'x_mm': " x ", 'y_mm': " y                        \
              ", 'w_mm': 9, 'h_mm': 9, 'size_pt': 9, 'content': 'x'}")
#define ONLY(element)   HEAD element "]}"
#define IMAGE           "{'type': 'image', " BOX
#define WITH_FILE(file) WITH(IMAGE ", 'file': " file "}")
#define N_UP(members)                                                                              \
    "{'name': 'test', 'page_w_mm': 2000, 'page_h_mm': 2000, 'n_up': {" members "}, 'elements': ["  \
    "{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 44}]}"
#define CELL "'ticket_w_mm': 60, 'ticket_h_mm': 60"
#define MODULES(min, side)                                                                         \
    "{'name': 'test', 'page_w_mm': 105, 'page_h_mm': 148, 'module_mm_min': " min ", 'elements': [" \
    "{'type': 'qr', 'x_mm': 5, 'y_mm': 92, 'side_mm': " side "}]}"
#define C10 "aaaaaaaaaa"
#define C64 C10 C10 C10 C10 C10 C10 "aaaa"
#define P8                                                                                         \
    "{ticket.id}{ticket.id}{ticket.id}{ticket.id}{ticket.id}{ticket.id}{ticket.id}{ticket.id}"

static const struct {
    const char *json, *pointer, *code;
} FAULTS[] = {
    {"[]", "", "wrong_type"},
    {"'classic'", "", "wrong_type"},

    /* the name */
    {"{'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name", "missing"},
    {"{'name': 1, 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name",
     "wrong_type"},
    {"{'name': '', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name", "bad_name"},
    {"{'name': 'Classic', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name",
     "bad_name"},
    {"{'name': 'a/b', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name",
     "bad_name"},
    {"{'name': '" C64 "a', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}", "/name",
     "bad_name"},

    /* the page */
    {"{'name': 'a', 'page_h_mm': 148, 'elements': [" QR "]}", "/page_w_mm", "missing"},
    {"{'name': 'a', 'page_w_mm': 105, 'elements': [" QR "]}", "/page_h_mm", "missing"},
    {"{'name': 'a', 'page_w_mm': '105', 'page_h_mm': 148, 'elements': [" QR "]}", "/page_w_mm",
     "wrong_type"},
    {"{'name': 'a', 'page_w_mm': 2000.001, 'page_h_mm': 148, 'elements': [" QR "]}", "/page_w_mm",
     "out_of_range"},
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': 19.999, 'elements': [" QR "]}", "/page_h_mm",
     "out_of_range"},
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': -148, 'elements': [" QR "]}", "/page_h_mm",
     "out_of_range"},
    {"{'name': 'a', 'page_w_mm': 1e300, 'page_h_mm': 148, 'elements': [" QR "]}", "/page_w_mm",
     "out_of_range"},
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': 148, 'n_down': 4, 'elements': [" QR "]}", "",
     "unknown_member"},

    /* the list of elements */
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': 148}", "/elements", "missing"},
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': {}}", "/elements",
     "wrong_type"},
    {"{'name': 'a', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': []}", "/elements",
     "out_of_range"},
    {WITH("7"), "/elements/1", "wrong_type"},
    {WITH("{}"), "/elements/1/type", "missing"},
    {WITH("{'type': 1}"), "/elements/1/type", "wrong_type"},
    {WITH("{'type': 'circle'}"), "/elements/1/type", "unknown_value"},

    /* boxes */
    {WITH_BOX("'y_mm': 1, 'w_mm': 1, 'h_mm': 1", ""), "/elements/1/x_mm", "missing"},
    {WITH_BOX("'x_mm': 1, 'w_mm': 1, 'h_mm': 1", ""), "/elements/1/y_mm", "missing"},
    {WITH_BOX("'x_mm': 1, 'y_mm': 1, 'h_mm': 1", ""), "/elements/1/w_mm", "missing"},
    {WITH_BOX("'x_mm': 1, 'y_mm': 1, 'w_mm': 1", ""), "/elements/1/h_mm", "missing"},
    {WITH_BOX("'x_mm': -0.001, 'y_mm': 1, 'w_mm': 1, 'h_mm': 1", ""), "/elements/1/x_mm",
     "out_of_range"},
    {WITH_BOX("'x_mm': true, 'y_mm': 1, 'w_mm': 1, 'h_mm': 1", ""), "/elements/1/x_mm",
     "wrong_type"},
    {WITH_BOX("'x_mm': 104, 'y_mm': 1, 'w_mm': 1.001, 'h_mm': 1", ""), "/elements/1",
     "outside_page"},
    {WITH_BOX("'x_mm': 1, 'y_mm': 147, 'w_mm': 1, 'h_mm': 1.001", ""), "/elements/1",
     "outside_page"},
    {WITH("{'type': 'box', " BOX "}"), "/elements/1/fill", "missing"},
    {WITH("{'type': 'box', " BOX ", 'fill': 0}"), "/elements/1/fill", "wrong_type"},
    {WITH("{'type': 'box', " BOX ", 'fill': ''}"), "/elements/1/fill", "bad_color"},
    {WITH("{'type': 'box', " BOX ", 'fill': '#12345'}"), "/elements/1/fill", "bad_color"},
    {WITH("{'type': 'box', " BOX ", 'fill': '#1234567'}"), "/elements/1/fill", "bad_color"},
    {WITH("{'type': 'box', " BOX ", 'fill': '0x12345'}"), "/elements/1/fill", "bad_color"},
    {WITH("{'type': 'box', " BOX ", 'fill': '#12345G'}"), "/elements/1/fill", "bad_color"},
    {WITH("{'type': 'box', " BOX ", 'fill': '#ABCDEF'}"), "/elements/1/fill", "bad_color"},
    {WITH_BOX(BOX, ", 'stroke_mm': 1"), "/elements/1", "unknown_member"},
    {WITH_BOX(BOX, ", 'when': 'ticket'"), "/elements/1/when", "unknown_field"},
    {WITH_BOX(BOX, ", 'when': '{ticket.gate}'"), "/elements/1/when", "unknown_field"},
    {WITH_BOX(BOX, ", 'when': 'label.gate'"), "/elements/1/when", "unknown_field"},
    {WITH_BOX(BOX, ", 'when': null"), "/elements/1/when", "wrong_type"},

    /* lines */
    {WITH_LINE("'color': '#000000'"), "/elements/1/stroke_mm", "missing"},
    {WITH_LINE("'stroke_mm': 0.049"), "/elements/1/stroke_mm", "out_of_range"},
    {WITH_LINE("'stroke_mm': 10.001"), "/elements/1/stroke_mm", "out_of_range"},
    {WITH_LINE("'stroke_mm': 1, 'dash_mm': 10.001"), "/elements/1/dash_mm", "out_of_range"},
    {WITH_LINE("'stroke_mm': 1, 'color': 'red'"), "/elements/1/color", "bad_color"},
    {WITH_LINE("'stroke_mm': 1, 'fill': '#000000'"), "/elements/1", "unknown_member"},
    {WITH("{'type': 'line', 'x_mm': 0, 'y_mm': 100, 'w_mm': 99, 'h_mm': 0, 'stroke_mm': 1}"),
     "/elements/1", "on_quiet_zone"},
    {WITH("{'type': 'line', 'x_mm': 0, 'y_mm': 91.501, 'w_mm': 99, 'h_mm': 0, 'stroke_mm': 1}"),
     "/elements/1", "on_quiet_zone"},
    {WITH("{'type': 'line', 'x_mm': 49.499, 'y_mm': 99, 'w_mm': 0, 'h_mm': 9, 'stroke_mm': 1}"),
     "/elements/1", "on_quiet_zone"},
    {WITH("{'type': 'line', 'x_mm': 0.499, 'y_mm': 9, 'w_mm': 0, 'h_mm': 9, 'stroke_mm': 1}"),
     "/elements/1", "outside_page"},
    {WITH("{'type': 'line', 'x_mm': 9, 'y_mm': 0.499, 'w_mm': 9, 'h_mm': 0, 'stroke_mm': 1}"),
     "/elements/1", "outside_page"},
    {WITH("{'type': 'line', 'x_mm': 9, 'y_mm': 9, 'w_mm': 0, 'h_mm': 0, 'stroke_mm': 1}"),
     "/elements/1", "too_small"},

    /* images */
    {WITH(IMAGE "}"), "/elements/1/file", "missing"},
    {WITH_FILE("7"), "/elements/1/file", "wrong_type"},
    {WITH_FILE("''"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'logo'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'logo.gif'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'logo.PNG'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'.logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'/logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'a//logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'../logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'a/../logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'a\\\\logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'a\\u0001/logo.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'" C64 "/" C10 C10 C10 "aa.png'"), "/elements/1/file", "bad_file"},
    {WITH_FILE("'a.png', 'fit': 'fill'"), "/elements/1/fit", "unknown_value"},
    {WITH_FILE("'a.png', 'align': 'left'"), "/elements/1/align", "unknown_value"},
    {WITH_FILE("'a.png', 'rotate': 45"), "/elements/1/rotate", "unknown_value"},
    {WITH_FILE("'a.png', 'rotate': 360"), "/elements/1/rotate", "unknown_value"},
    {WITH_FILE("'a.png', 'rotate': -90"), "/elements/1/rotate", "unknown_value"},
    {WITH_FILE("'a.png', 'rotate': '90'"), "/elements/1/rotate", "wrong_type"},
    {WITH_FILE("'a.png', 'color': '#000000'"), "/elements/1", "unknown_member"},
    {WITH("{'type': 'image', 'x_mm': 1, 'y_mm': 1, 'w_mm': 0.999, 'h_mm': 1, 'file': 'a.png'}"),
     "/elements/1/w_mm", "out_of_range"},
    {WITH("{'type': 'image', 'x_mm': 105, 'y_mm': 1, 'w_mm': 1, 'h_mm': 1, 'file': 'a.png'}"),
     "/elements/1", "outside_page"},

    /* sheets */
    {N_UP("'rows': 1, " CELL), "/n_up/columns", "missing"},
    {N_UP("'columns': 1, " CELL), "/n_up/rows", "missing"},
    {N_UP("'columns': 1, 'rows': 1, 'ticket_h_mm': 60"), "/n_up/ticket_w_mm", "missing"},
    {N_UP("'columns': 1, 'rows': 1, 'ticket_w_mm': 60"), "/n_up/ticket_h_mm", "missing"},
    {N_UP("'columns': 0, 'rows': 1, " CELL), "/n_up/columns", "out_of_range"},
    {N_UP("'columns': 1, 'rows': 65, " CELL), "/n_up/rows", "out_of_range"},
    {N_UP("'columns': 13, 'rows': 5, 'ticket_w_mm': 150, 'ticket_h_mm': 150"), "/n_up",
     "out_of_range"},
    {N_UP("'columns': 1, 'rows': 1.0, " CELL), "/n_up/rows", "wrong_type"},
    {N_UP("'columns': 1, 'rows': 1, 'ticket_w_mm': 19.999, 'ticket_h_mm': 60"), "/n_up/ticket_w_mm",
     "out_of_range"},
    {N_UP("'columns': 1, 'rows': 1, 'gap_x_mm': -1, " CELL), "/n_up/gap_x_mm", "out_of_range"},
    {N_UP("'columns': 1, 'rows': 1, 'margin_y_mm': 2000.1, " CELL), "/n_up/margin_y_mm",
     "out_of_range"},
    {N_UP("'columns': 1, 'rows': 1, 'cut_marks': 1, " CELL), "/n_up/cut_marks", "wrong_type"},
    {N_UP("'columns': 1, 'rows': 1, 'marks': true, " CELL), "/n_up", "unknown_member"},
    {N_UP("'columns': 13, 'rows': 1, 'ticket_w_mm': 154, 'ticket_h_mm': 60"), "/n_up",
     "outside_sheet"},
    {N_UP("'columns': 2, 'rows': 1, 'margin_x_mm': 1880.001, " CELL), "/n_up", "outside_sheet"},
    {N_UP("'columns': 2, 'rows': 1, 'gap_x_mm': 1880.001, " CELL), "/n_up", "outside_sheet"},
    {N_UP("'columns': 1, 'rows': 1, 'margin_x_mm': 3.999, 'cut_marks': true, " CELL),
     "/n_up/cut_marks", "no_margin"},
    {N_UP("'columns': 1, 'rows': 1, 'margin_y_mm': 1936.001, 'cut_marks': true, " CELL),
     "/n_up/cut_marks", "no_margin"},
    {N_UP("'columns': 1, 'rows': 1, 'ticket_w_mm': 43.999, 'ticket_h_mm': 60"), "/elements/0",
     "outside_page"},

    /* the size of a module */
    {MODULES("0.399", "39"), "/module_mm_min", "out_of_range"},
    {MODULES("0.601", "39"), "/module_mm_min", "out_of_range"},
    {MODULES("true", "39"), "/module_mm_min", "wrong_type"},
    {MODULES("0.5", "32.499"), "/elements/0/side_mm", "modules_too_small"},
    {MODULES("0.4", "25.999"), "/elements/0/side_mm", "modules_too_small"},

    /* texts */
    {WITH_TEXT("'rotate': 1"), "/elements/1/rotate", "unknown_value"},
    {WITH_BOX(BOX, ", 'rotate': 90"), "/elements/1", "unknown_member"},
    {WITH(TEXT "'color': '#000000'}"), "/elements/1/content", "missing"},
    {WITH(TEXT "'content': 7}"), "/elements/1/content", "wrong_type"},
    {WITH(TEXT "'content': ''}"), "/elements/1/content", "out_of_range"},
    {WITH(TEXT "'content': '{event.title}'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{}'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': 'a {ticket.id'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{ ticket.id }'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{label.}'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{label.name}'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': '{Ticket.id}'}"), "/elements/1/content", "unknown_field"},
    {WITH(TEXT "'content': 'bell \\u0007'}"), "/elements/1/content", "bad_character"},
    {WITH(TEXT "'content': 'tab \\t'}"), "/elements/1/content", "bad_character"},
    {WITH(TEXT "'content': 'next \\u0085'}"), "/elements/1/content", "bad_character"},
    {WITH(TEXT "'content': 'none \\uffff'}"), "/elements/1/content", "bad_character"},
    {WITH(TEXT "'content': '" P8 P8 P8 P8 ".'}"), "/elements/1/content", "too_long"},
    {WITH("{'type': 'text', " BOX ", 'content': 'x'}"), "/elements/1/size_pt", "missing"},
    {WITH("{'type': 'text', " BOX ", 'content': 'x', 'size_pt': 3.999}"), "/elements/1/size_pt",
     "out_of_range"},
    {WITH("{'type': 'text', " BOX ", 'content': 'x', 'size_pt': 200.001, 'floor_pt': 8}"),
     "/elements/1/size_pt", "out_of_range"},
    {WITH_TEXT("'floor_pt': 10.001"), "/elements/1/floor_pt", "out_of_range"},
    {WITH_TEXT("'floor_pt': 3.9"), "/elements/1/floor_pt", "out_of_range"},
    {WITH_TEXT("'wrapped_floor_pt': 10.1"), "/elements/1/wrapped_floor_pt", "out_of_range"},
    {WITH_TEXT("'lines_max': 0"), "/elements/1/lines_max", "out_of_range"},
    {WITH_TEXT("'lines_max': 41"), "/elements/1/lines_max", "out_of_range"},
    {WITH_TEXT("'lines_max': 2.0"), "/elements/1/lines_max", "wrong_type"},
    {WITH_TEXT("'weight': 'heavy'"), "/elements/1/weight", "unknown_value"},
    {WITH_TEXT("'align': 'left'"), "/elements/1/align", "unknown_value"},
    {WITH_TEXT("'align': ''"), "/elements/1/align", "unknown_value"},
    {WITH_TEXT("'valign': 'center'"), "/elements/1/valign", "unknown_value"},
    {WITH_TEXT("'font': 'Times'"), "/elements/1", "unknown_member"},
    {WITH("{'type': 'text', 'x_mm': 1, 'y_mm': 1, 'w_mm': 9, 'h_mm': 3.5, 'size_pt': 10,"
          " 'content': 'x'}"),
     "/elements/1", "too_small"},
    {WITH("{'type': 'text', 'x_mm': 1, 'y_mm': 1, 'w_mm': 1.4, 'h_mm': 9, 'size_pt': 10,"
          " 'wrapped_floor_pt': 4, 'content': 'x'}"),
     "/elements/1", "too_small"},
    {WITH("{'type': 'text', 'x_mm': 40, 'y_mm': 90, 'w_mm': 50, 'h_mm': 9, 'size_pt': 10,"
          " 'content': 'x'}"),
     "/elements/1", "on_quiet_zone"},

    {WITH_TWO("20", "13.499"), "/elements/2", "texts_overlap"},
    {WITH_TWO("94.499", "5"), "/elements/2", "texts_overlap"},
    {WITH_TWO("5", "5"), "/elements/2", "texts_overlap"},

    /* the symbol */
    {ONLY("{'type': 'box', " BOX ", 'fill': '#000000'}"), "/elements", "one_qr"},
    {WITH(QR), "/elements", "one_qr"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 38.999}"), "/elements/0/side_mm",
     "modules_too_small"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 36.599, 'level': 'L'}"),
     "/elements/0/side_mm", "modules_too_small"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 46.199, 'level': 'Q'}"),
     "/elements/0/side_mm", "modules_too_small"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 50.999, 'level': 'H'}"),
     "/elements/0/side_mm", "modules_too_small"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5}"), "/elements/0/side_mm", "missing"},
    {ONLY("{'type': 'qr', 'y_mm': 5, 'side_mm': 44}"), "/elements/0/x_mm", "missing"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 44, 'level': 'X'}"), "/elements/0/level",
     "unknown_value"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 44, 'when': 'ticket.gate'}"),
     "/elements/0", "unknown_member"},
    {ONLY("{'type': 'qr', 'x_mm': 70, 'y_mm': 5, 'side_mm': 44}"), "/elements/0", "outside_page"},
    {ONLY("{'type': 'qr', 'x_mm': 5, 'y_mm': 5, 'side_mm': 44, 'color': '#ff0000'}"), "/elements/0",
     "unknown_member"},
};

Test(layout_read, names_the_place_and_the_rule_of_each_fault)
{
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        struct layout layout = {0};
        struct problems problems = {0};
        struct error err = {0};

        cr_expect_eq(read_text(FAULTS[i].json, &layout, &problems, &err), ST_INVALID, "%zu: %s", i,
                     FAULTS[i].json);
        cr_expect(layout.elements == NULL && layout.arena.chunks == NULL, "%zu", i);
        cr_expect_eq(err.status, ST_INVALID);
        cr_expect_eq(problems.count, 1, "%zu: %zu in %s", i, problems.count, FAULTS[i].json);
        cr_assert_gt(problems.listed_count, 0, "%zu: %s", i, FAULTS[i].json);
        cr_expect_str_eq(problems.listed[0].pointer.data, FAULTS[i].pointer, "%zu: %s in %s", i,
                         problems.listed[0].pointer.data, FAULTS[i].json);
        cr_expect_str_eq(problems.listed[0].code, FAULTS[i].code, "%zu: %s in %s", i,
                         problems.listed[0].code, FAULTS[i].json);
        cr_expect_gt(problems.listed[0].detail.len, 0);
        problems_clear(&problems);
    }
}

/* The other side of each limit above. */
static const char *const SOUND[] = {
    "{'name': '" C64 "', 'page_w_mm': 105, 'page_h_mm': 148, 'elements': [" QR "]}",
    "{'name': 'a-0', 'page_w_mm': 2000, 'page_h_mm': 2000, 'elements': [" QR "]}",
    ONLY("{'type': 'qr', 'x_mm': 61, 'y_mm': 104, 'side_mm': 44}"), /* in the very corner */
    ONLY("{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 39}"),
    ONLY("{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 36.6, 'level': 'L'}"),
    ONLY("{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 46.2, 'level': 'Q'}"),
    ONLY("{'type': 'qr', 'x_mm': 0, 'y_mm': 0, 'side_mm': 51, 'level': 'H'}"),
    WITH_BOX("'x_mm': 104, 'y_mm': 147, 'w_mm': 1, 'h_mm': 1", ""),
    WITH_BOX("'x_mm': 0, 'y_mm': 0, 'w_mm': 105, 'h_mm': 148", ""), /* under the symbol's plate */
    WITH_FILE("'" C64 "/" C10 C10 C10 "a.png'"),
    WITH_FILE("'a-b_c.d/1.jpg', 'fit': 'contain', 'rotate': 180"),
    WITH("{'type': 'image', 'x_mm': 0, 'y_mm': 0, 'w_mm': 105, 'h_mm': 148, 'file': 'a.png'}"),
    N_UP("'columns': 8, 'rows': 8, 'ticket_w_mm': 250, 'ticket_h_mm': 250"),
    N_UP("'columns': 2, 'rows': 1, 'margin_x_mm': 1880, " CELL),
    N_UP("'columns': 2, 'rows': 1, 'gap_x_mm': 1880, " CELL),
    N_UP("'columns': 1, 'rows': 1, 'margin_x_mm': 4, 'margin_y_mm': 1936, 'cut_marks': true," CELL),
    N_UP("'columns': 1, 'rows': 1, 'ticket_w_mm': 44, 'ticket_h_mm': 44, 'cut_marks': false"),
    MODULES("0.6", "39"),
    MODULES("0.5", "32.5"),
    MODULES("0.4", "26"),
    WITH("{'type': 'box', " BOX ", 'fill': '#09afff'}"),
    WITH_LINE("'stroke_mm': 0.05"),
    WITH_LINE("'stroke_mm': 10, 'dash_mm': 10"),
    WITH("{'type': 'line', 'x_mm': 0, 'y_mm': 91.5, 'w_mm': 99, 'h_mm': 0, 'stroke_mm': 1}"),
    WITH("{'type': 'line', 'x_mm': 49.5, 'y_mm': 99, 'w_mm': 0, 'h_mm': 9, 'stroke_mm': 1}"),
    WITH("{'type': 'line', 'x_mm': 0.5, 'y_mm': 9, 'w_mm': 0, 'h_mm': 9, 'stroke_mm': 1}"),
    WITH("{'type': 'line', 'x_mm': 0, 'y_mm': 0.5, 'w_mm': 105, 'h_mm': 0, 'stroke_mm': 1}"),
    WITH(TEXT "'content': 'a } b\\nc \\u200e'}"),
    WITH(TEXT "'content': '" P8 P8 P8 P8 "'}"),
    WITH_TEXT("'floor_pt': 10, 'wrapped_floor_pt': 10, 'lines_max': 40"),
    WITH_TEXT("'floor_pt': 4, 'wrapped_floor_pt': 4, 'lines_max': 1"),
    WITH("{'type': 'text', 'x_mm': 1, 'y_mm': 1, 'w_mm': 100, 'h_mm': 80, 'size_pt': 200,"
         " 'content': 'x'}"),
    WITH("{'type': 'text', 'x_mm': 1, 'y_mm': 1, 'w_mm': 3.6, 'h_mm': 3.6, 'size_pt': 10,"
         " 'content': 'x'}"),
    WITH_TWO("20", "13.5"),
    WITH_TWO("94.5", "5"),
    WITH("{'type': 'text', 'x_mm': 49, 'y_mm': 92, 'w_mm': 50, 'h_mm': 9, 'size_pt': 10,"
         " 'content': 'x'}"),
};

Test(layout_read, accepts_what_is_just_right)
{
    for (size_t i = 0; i < sizeof SOUND / sizeof *SOUND; i++) {
        struct layout layout = {0};
        struct problems problems = {0};

        cr_expect_eq(read_text(SOUND[i], &layout, &problems, NULL), ST_OK, "%s: %s", SOUND[i],
                     problems.listed_count > 0 ? problems.listed[0].detail.data : "");
        layout_clear(&layout);
        problems_clear(&problems);
    }
}

static const struct {
    const char *json;
    const char *pointers[8];
} SEVERAL_FAULTS[] = {
    {"{}", {"/name", "/page_w_mm", "/page_h_mm", "/elements"}},
    {"{'name': 'A', 'page_w_mm': 105, 'page_h_mm': 1, 'elements': [" QR ", {'type': 'box', " BOX
     ", 'fill': 'red', 'when': 'x'}, {'type': 'circle'}, 5]}",
     {"/name", "/page_h_mm", "/elements/1/fill", "/elements/1/when", "/elements/2/type",
      "/elements/3"}},
    /* What is nowhere breaks no rule of places. */
    {WITH("{'type': 'text', 'y_mm': 100, 'w_mm': 99, 'h_mm': 30, 'size_pt': 9, 'content': 'x'}, "
          "{'type': 'line', 'y_mm': 100, 'w_mm': 99, 'h_mm': 0, 'stroke_mm': 9},"
          "{'type': 'text', 'x_mm': 2001, 'y_mm': 100, 'w_mm': 99, 'h_mm': 30, 'size_pt': 9,"
          " 'content': 'x'}"),
     {"/elements/1/x_mm", "/elements/2/x_mm", "/elements/3/x_mm"}},
    {ONLY("{'type': 'qr', 'y_mm': 5, 'side_mm': 1, 'level': 'X'}, " TEXT "'content': 'x'}"),
     {"/elements/0/x_mm", "/elements/0/level"}},
    {WITH("{'type': 'text'}"),
     {"/elements/1/x_mm", "/elements/1/y_mm", "/elements/1/w_mm", "/elements/1/h_mm",
      "/elements/1/content", "/elements/1/size_pt"}},
};

Test(layout_read, finds_all_faults_at_once)
{
    for (size_t i = 0; i < sizeof SEVERAL_FAULTS / sizeof *SEVERAL_FAULTS; i++) {
        struct layout layout = {0};
        struct problems problems = {0};
        size_t found = 0;

        cr_assert_eq(read_text(SEVERAL_FAULTS[i].json, &layout, &problems, NULL), ST_INVALID);
        for (; SEVERAL_FAULTS[i].pointers[found] != NULL; found++) {
            cr_assert_lt(found, problems.listed_count, "%s", SEVERAL_FAULTS[i].json);
            cr_expect_str_eq(problems.listed[found].pointer.data, SEVERAL_FAULTS[i].pointers[found],
                             "%s", SEVERAL_FAULTS[i].json);
        }
        cr_expect_eq(problems.count, found, "%s", SEVERAL_FAULTS[i].json);
        problems_clear(&problems);
    }
}

Test(layout_read, quotes_the_files_words_in_whole_characters_on_one_line)
{
    /* 39 letters, then one of two bytes: the cut at 40 bytes would go through it. */
    static const char WORD[] = C10 C10 C10 "aaaaaaaaa\u00E9\u00E9";
    static const char *const JSON[] = {
        WITH_TEXT("'align': '%s'"),      WITH_TEXT("'%s': 1"),
        WITH_TEXT("'when': '%s'"),       WITH(TEXT "'content': '{%s}'}"),
        WITH_TEXT("'align': 'a\\nb%s'"),
    };

    for (size_t i = 0; i < sizeof JSON / sizeof *JSON; i++) {
        struct layout layout = {0};
        struct problems problems = {0};
        char json[1000];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(json, sizeof json, JSON[i], WORD);
#pragma GCC diagnostic pop
        cr_assert_eq(read_text(json, &layout, &problems, NULL), ST_INVALID);
        cr_assert_eq(problems.count, 1);
        cr_expect(utf8_is_valid(problems.listed[0].detail), "%zu", i);
        cr_expect_not_null(strstr(problems.listed[0].detail.data, C10), "%zu", i);
        cr_expect_null(strchr(problems.listed[0].detail.data, '\n'), "%zu", i);
        problems_clear(&problems);
    }
}

static void elements_write(char *json, size_t count)
{
    size_t len = (size_t)sprintf(json, HEAD QR);

    for (size_t i = 1; i < count; i++)
        len += (size_t)sprintf(json + len, ", {'type': 'box', " BOX ", 'fill': '#000000'}");
    sprintf(json + len, "]}");
}

Test(layout_read, takes_as_many_elements_as_it_says_and_no_more)
{
    static char json[JSON_BYTES_MAX];
    struct layout layout = {0};
    struct problems problems = {0};

    elements_write(json, LAYOUT_ELEMENTS_MAX);
    cr_expect_eq(read_text(json, &layout, &problems, NULL), ST_OK);
    cr_expect_eq(layout.elements_count, LAYOUT_ELEMENTS_MAX);
    layout_clear(&layout);
    elements_write(json, LAYOUT_ELEMENTS_MAX + 1);
    cr_expect_eq(read_text(json, &layout, &problems, NULL), ST_INVALID);
    cr_expect_str_eq(problems.listed[0].code, "out_of_range");
    problems_clear(&problems);
}

Test(layout_read, takes_a_content_as_long_as_it_says_and_no_longer)
{
    for (int len = 1000; len <= 1001; len++) {
        char json[2000], content[1002];
        struct layout layout = {0};
        struct problems problems = {0};

        memset(content, 'x', (size_t)len);
        content[len] = '\0';
        snprintf(json, sizeof json, HEAD QR ", " TEXT "'content': '%s'}]}", content);
        cr_expect_eq(read_text(json, &layout, &problems, NULL), len == 1000 ? ST_OK : ST_INVALID);
        layout_clear(&layout);
        problems_clear(&problems);
    }
}

Test(layout_read, leaves_nothing_when_memory_ends)
{
    json_t *root = json_load_file("service/data/layouts/classic.json", 0, NULL);
    bool has_failed = true;
    size_t call = 1;

    cr_assert_not_null(root);
    for (; has_failed; call++) {
        struct layout layout = {0};
        struct problems problems = {0};
        struct error err = {0};
        enum status st;

        failing_memory_start(call);
        st = layout_read(&json_value_source, json_value(root), &layout, &problems, &err);
        has_failed = failing_memory_stop();
        cr_expect_eq(st, has_failed ? ST_NO_MEMORY : ST_OK, "call %zu", call);
        cr_expect_eq(problems.count, 0);
        cr_expect_eq(layout.elements == NULL, has_failed);
        layout_clear(&layout);
    }
    cr_expect_gt(call, 3);
    json_decref(root);
}
