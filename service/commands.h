/*
 * The program's commands: what its arguments mean, what each command does, and how it ends.
 */
#ifndef TICKETPRESS_SERVICE_COMMANDS_H
#define TICKETPRESS_SERVICE_COMMANDS_H

#include "domain/problems.h"
#include "domain/status.h"
#include "service/config.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_REFUSED = 1, /* what was to be worked on breaks a rule: a batch, a token */
    EXIT_USAGE = 2,   /* arguments, settings or the files that they name */
    EXIT_SYSTEM = 3,  /* input and output, memory, a library */
};

/* What a command was at when it failed. */
enum command_stage {
    STAGE_SETUP, /* reading settings and the files that they name */
    STAGE_WORK,
    STAGE_COUNT
};

/* The one table from outcome to exit code. */
enum exit_code exit_code_of(enum status status, enum command_stage stage);

/* Say on standard error what failed, and give the exit code for it. */
enum exit_code command_fail(const struct error *err, enum command_stage stage);

/* Everything borrowed for the call. */
struct render_options {
    const char *batch_path;  /* "-": standard input */
    const char *output_path; /* "-": standard output */
    const char *layout_path; /* one that all tickets are printed with; NULL: those they name */
    const char *client;      /* whose keys sign; NULL: the operator's choice of all */
    const struct settings *settings;
};

/* Render a batch into a document (service/render.c). Called after config_json_start and sign_start,
 * on the only thread. */
enum exit_code command_render(const struct render_options *options);

/*
 * Check layout files (service/layout_check.c): a line on standard output for each that is sound,
 * one on standard error for each fault of the others, with file, JSON Pointer, code and sentence.
 *
 * In:      paths  count of them, 1..
 * Returns: EXIT_REFUSED when one has faults, EXIT_USAGE when one is not there, EXIT_SYSTEM when one
 *          cannot be read; the highest of these
 */
enum exit_code command_layouts_check(char *const *paths, int count);

/* One line on standard error for each problem, behind the file that it is about. */
void problems_print(const char *path, const struct problems *problems);

/*
 * Run the program.
 *
 * In:      argc, argv   as main has them; argv is reordered
 *          environment  as environ
 */
enum exit_code commands_run(int argc, char **argv, const char *const *environment);

#endif
