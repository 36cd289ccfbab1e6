/*
 * The command `layouts check`: each file is loaded as a start would load it, and every fault is
 * told with its place.
 */
#include "domain/problems.h"
#include "service/commands.h"
#include "service/config_json.h"
#include "service/layout_file.h"
#include "workers/sign.h"

#include <stdio.h>

/* What a sound layout gives, on one line. */
static void print_layout(const char *path, const struct layout *layout)
{
    size_t const cells = layout_cells(layout);

    printf("%s: ok: \"%s\", %g x %g mm, %zu %s a page, modules of %g mm%s, %zu %s\n", path,
           layout->name.data, layout->page_w_um / 1000.0, layout->page_h_um / 1000.0, cells,
           cells == 1 ? "ticket" : "tickets", layout_module_um(layout) / 1000.0,
           layout_module_um(layout) < LAYOUT_MODULE_UM ? " (below 0.6)" : "", layout->images_count,
           layout->images_count == 1 ? "image" : "images");
}

void problems_print(const char *path, const struct problems *problems)
{
    for (size_t i = 0; i < problems->listed_count; i++) {
        const struct problem *problem = &problems->listed[i];

        fprintf(stderr, "%s: %s%s%s: %s\n", path,
                problem->pointer.len > 0 ? problem->pointer.data : "",
                problem->pointer.len > 0 ? ": " : "", problem->code, problem->detail.data);
    }
    if (problems->count > problems->listed_count)
        fprintf(stderr, "%s: and %zu more\n", path, problems->count - problems->listed_count);
}

static enum exit_code check_file(const char *path)
{
    struct press_layout layout = {0};
    struct problems problems = {0};
    struct error err = {0};
    enum status const st = layout_file_load(path, &layout, &problems, &err);

    if (st == ST_OK)
        print_layout(path, &layout.layout);
    else if (problems.count == 0)
        fprintf(stderr, "%s\n", err.text); /* it begins with the path */
    problems_print(path, &problems);
    problems_clear(&problems);
    press_layout_clear(&layout);
    return exit_code_of(st, STAGE_WORK);
}

enum exit_code command_layouts_check(char *const *paths, int count)
{
    enum exit_code code = EXIT_OK;
    struct error err = {0};

    config_json_start();
    if (sign_start(&err) != ST_OK)
        return command_fail(&err, STAGE_WORK);
    for (int i = 0; i < count; i++) {
        enum exit_code const one = check_file(paths[i]);

        if (code < one)
            code = one;
    }
    return code;
}
