/*
 * Any JSON as a layout: no crash, no leak, each refusal with its reasons, and what is accepted
 * keeps the rules that drawing relies on.
 */
#include "domain/layout.h"

#include "domain/utf8.h"
#include "service/batch_json.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_text(const struct layout_element *element)
{
    require(element->pieces_count >= 1 && element->pieces_count <= LAYOUT_PIECES_MAX);
    require(element->size_mpt <= LAYOUT_SIZE_MPT_MAX && element->floor_mpt <= element->size_mpt);
    require(element->wrapped_floor_mpt <= element->size_mpt);
    require(element->floor_mpt >= LAYOUT_SIZE_MPT_MIN);
    require(element->wrapped_floor_mpt >= LAYOUT_SIZE_MPT_MIN);
    require(element->lines_max >= 1 && element->lines_max <= LAYOUT_LINES_MAX);
    for (size_t i = 0; i < element->pieces_count; i++) {
        const struct layout_piece *piece = &element->pieces[i];

        require(piece->field < FIELD_COUNT && piece->label < LABEL_COUNT);
        require(piece->field != FIELD_LITERAL || utf8_is_valid(piece->literal));
    }
}

static void check_layout(const struct layout *layout)
{
    struct box_um const page = {.w = layout->page_w_um, .h = layout->page_h_um};
    struct box_um const ticket = {.w = layout->n_up.ticket_w_um, .h = layout->n_up.ticket_h_um};
    size_t qrs = 0;

    require(layout->name.len >= 1 && layout->name.len <= LAYOUT_NAME_BYTES_MAX);
    require(layout->elements_count >= 1 && layout->elements_count <= LAYOUT_ELEMENTS_MAX);
    for (size_t i = 0; i < layout->elements_count; i++) {
        const struct layout_element *element = &layout->elements[i];

        require(element->box.w >= 0 && element->box.h >= 0 && box_is_inside(element->box, ticket));
        require(element->color <= 0xFFFFFF);
        if (element->kind == LAYOUT_TEXT)
            check_text(element);
        require(element->quarter_turns < 4);
        require(element->kind != LAYOUT_IMAGE || element->image < layout->images_count);
        qrs += element->kind == LAYOUT_QR;
    }
    require(qrs == 1);
    require(layout->images_count <= LAYOUT_IMAGES_MAX);
    require(layout_module_um(layout) >= layout->module_um_min);
    require(layout_cells(layout) <= LAYOUT_CELLS_MAX);
    for (size_t i = 0; i < layout_cells(layout); i++)
        require(box_is_inside(layout_cell(layout, i), page));
}

static void check_problems(const struct problems *problems)
{
    for (size_t i = 0; i < problems->listed_count; i++) {
        require(utf8_is_valid(problems->listed[i].pointer));
        require(utf8_is_valid(problems->listed[i].detail));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct problems problems;
    json_t *root =
        json_loadb((const char *)data, size,
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    struct layout layout = {0};
    enum status st;

    if (root == NULL)
        return 0;
    st = layout_read(&json_value_source, json_value(root), &layout, &problems, NULL);
    json_decref(root); /* an accepted layout owns its texts */
    if (st == ST_OK)
        check_layout(&layout);
    else
        require(st == ST_INVALID && problems.count > 0 && layout.arena.chunks == NULL);
    check_problems(&problems);
    layout_clear(&layout);
    problems_clear(&problems);
    return 0;
}
