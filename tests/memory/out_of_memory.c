/*
 * The render command when memory ends: for every k, a process of its own renders a batch and its
 * k-th allocation fails. Each must end with an error that says so and leave no file behind, or,
 * where a library can do without, with the very document that is made when all goes well. It never
 * crashes, hangs or leaks (the address sanitizer's build looks for leaks).
 *
 * usage: out_of_memory MODE START FIRST STEP KEY_RING BATCH.json
 *
 *     MODE   once: the k-th allocation alone fails
 *            again: the same, and then the same process renders once more, with success
 *            from: the k-th and all behind it fail
 *            harfbuzz: no program of ours runs, only HarfBuzz cuts a subset, and must crash as
 * often as the exception for it says: else the exception has had its time START  cold, or warm: a
 * render went before, so that what libraries make once and keep is there k is FIRST and every
 * STEP-th behind it.
 *
 * Exit status 0 when there was no fault.
 */
#include "service/commands.h"
#include "tests/memory/failing_allocator.h"

#include <fcntl.h>
#include <hb-subset.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS_MAX = 60, /* of one process */
    PATH_BYTES = 256,
    FAULTS_SHOWN_MAX = 20,
    /* Found: 5 crashes and a leak in a render, 8 crashes in mode harfbuzz; in mode from any number.
     */
    SUBSET_FAULTS_MAX = 10,
};
#define FONT "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"

/* How a process says what it found, beside the exit codes of the program. */
enum { ENDED_UNREACHED = 100, ENDED_LEAKING, ENDED_UNFIT, ENDED_BY_SANITIZER };

#pragma weak __lsan_do_recoverable_leak_check
int __lsan_do_recoverable_leak_check(void);
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "exitcode=103";
}
_Static_assert(ENDED_BY_SANITIZER == 103, "as the sanitizer is told");

struct sweep {
    const char *mode;
    bool is_harfbuzz;
    long first, step;
    const char *keys, *batch;
    char directory[PATH_BYTES];
    char output[PATH_BYTES + 16], log[PATH_BYTES + 16];
    bool *failed_in_subset; /* in memory that the processes share */
    char *document;         /* that of a render without failures */
    size_t document_len;
    long successes, errors, faults_in_subset, faults;
};

/* ---- in a process of its own ---- */

static enum exit_code render(const struct sweep *sweep)
{
    static const char *const ENVIRONMENT[] = {NULL};
    /* One face is enough: with another one the same is only done twice. */
    char words[][64] = {"ticketpress", "render", "--workers=1",   "--worker-nice=0",
                        "--fonts",     FONT,     "--signing-keys"};
    char option[] = "-o";
    char paths[3][PATH_BYTES + 16];
    char *arguments[] = {words[0], words[1], words[2], words[3], words[4], words[5],
                         words[6], paths[0], paths[1], option,   paths[2], NULL};

    (void)snprintf(paths[0], sizeof paths[0], "%s", sweep->keys);
    (void)snprintf(paths[1], sizeof paths[1], "%s", sweep->batch);
    (void)snprintf(paths[2], sizeof paths[2], "%s", sweep->output);
    return commands_run(sizeof arguments / sizeof *arguments - 1, arguments, ENVIRONMENT);
}

/* What workers/font.c asks HarfBuzz for, and nothing else. */
static void cut_subset(void)
{
    hb_blob_t *blob = hb_blob_create_from_file(FONT);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_face_t *subsetter = hb_subset_preprocess(face);
    hb_subset_input_t *input = hb_subset_input_create_or_fail();
    hb_subset_plan_t *plan = NULL;
    hb_face_t *cut = NULL;

    if (input != NULL)
        plan = hb_subset_plan_create_or_fail(subsetter, input);
    if (plan != NULL)
        cut = hb_subset_plan_execute_or_fail(plan);
    hb_face_destroy(cut);
    hb_subset_plan_destroy(plan);
    if (input != NULL)
        hb_subset_input_destroy(input);
    if (subsetter != face)
        hb_face_destroy(subsetter);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
}

static void speak_to_log(const struct sweep *sweep)
{
    int const file = open(sweep->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (file < 0 || dup2(file, STDERR_FILENO) < 0)
        abort();
    (void)close(file);
}

static bool has_leaks(void)
{
    (void)prctl(PR_SET_DUMPABLE, 1); /* the program forbids what the sanitizer looks with */
    return __lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0;
}

static bool has_document(const struct sweep *sweep);

static _Noreturn void run_one(const struct sweep *sweep, long k)
{
    enum exit_code code = EXIT_OK;
    bool is_reached;

    (void)alarm(SECONDS_MAX);
    speak_to_log(sweep);
    failing_allocator_note_subset(sweep->failed_in_subset);
    failing_allocator_arm(k, strcmp(sweep->mode, "from") == 0);
    if (sweep->is_harfbuzz)
        cut_subset();
    else
        code = render(sweep);
    is_reached = failing_allocator_disarm() >= k;
    if (!sweep->is_harfbuzz && has_leaks())
        _exit(ENDED_LEAKING);
    if (strcmp(sweep->mode, "again") == 0 && code != EXIT_OK &&
        (render(sweep) != EXIT_OK || !has_document(sweep) || unlink(sweep->output) != 0))
        _exit(ENDED_UNFIT);
    _exit(is_reached ? (int)code : ENDED_UNREACHED);
}

/* ---- judging ---- */

static char *read_all(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    char *data = NULL;

    *len = 0;
    if (file == NULL)
        return NULL;
    if (fstat(fileno(file), &info) == 0 && (data = calloc(1, (size_t)info.st_size + 1)) != NULL)
        *len = fread(data, 1, (size_t)info.st_size, file);
    (void)fclose(file);
    return data;
}

/* Whether there is an output, and it is the right one. */
static bool has_document(const struct sweep *sweep)
{
    size_t len;
    char *document = read_all(sweep->output, &len);
    bool const is_right = document != NULL && len == sweep->document_len &&
                          memcmp(document, sweep->document, len) == 0;

    free(document);
    return is_right;
}

static bool log_has(const struct sweep *sweep, const char *words)
{
    size_t len;
    char *log = read_all(sweep->log, &len);
    bool const has = log != NULL && strstr(log, words) != NULL;

    free(log);
    return has;
}

static bool is_crash(int ended)
{
    return WIFEXITED(ended) ? WEXITSTATUS(ended) == ENDED_BY_SANITIZER : WTERMSIG(ended) != SIGALRM;
}

static bool is_leak(int ended)
{
    return WIFEXITED(ended) && WEXITSTATUS(ended) == ENDED_LEAKING;
}

/* What is wrong with an end; NULL: nothing. */
static const char *find_fault(const struct sweep *sweep, int ended)
{
    bool const has_output = access(sweep->output, F_OK) == 0;

    if (is_crash(ended))
        return "it crashes";
    if (!WIFEXITED(ended))
        return "it hangs";
    switch (WEXITSTATUS(ended)) {
    case EXIT_OK:
    case ENDED_UNREACHED:
        if (sweep->is_harfbuzz)
            return NULL;
        return has_document(sweep) ? NULL : "it ends well without the right document";
    case EXIT_SYSTEM:
        if (has_output)
            return "it ends with an error and a document";
        return log_has(sweep, "ticketpress: ") ? NULL : "it ends with an error and does not say so";
    case ENDED_LEAKING:
        return "it leaks";
    case ENDED_UNFIT:
        return "it cannot render any more";
    default:
        return "its exit code is another one";
    }
}

/* Remove what is left. False: there is a file that should not be there. */
static bool clean_up(const struct sweep *sweep)
{
    (void)unlink(sweep->output);
    (void)unlink(sweep->log);
    return rmdir(sweep->directory) == 0 && mkdir(sweep->directory, 0700) == 0;
}

static int try_one(const struct sweep *sweep, long k)
{
    int ended = 0;
    pid_t const process = fork();

    if (process < 0)
        abort();
    if (process == 0)
        run_one(sweep, k);
    if (waitpid(process, &ended, 0) != process)
        abort();
    return ended;
}

/* Once more, and this time say who asked for the memory. */
static void show(struct sweep *sweep, long k, const char *fault)
{
    size_t len;
    char *log;

    if (++sweep->faults > FAULTS_SHOWN_MAX)
        return;
    if (k > 0) {
        failing_allocator_trace();
        (void)try_one(sweep, k);
    }
    log = read_all(sweep->log, &len);
    printf("allocation %ld fails: %s\n%s\n", k, fault, log != NULL ? log : "");
    free(log);
}

/* Returns whether there is a k-th allocation. */
static bool try_and_judge(struct sweep *sweep, long k)
{
    const char *fault;
    int ended;

    *sweep->failed_in_subset = false;
    ended = try_one(sweep, k);
    fault = find_fault(sweep, ended);
    if (*sweep->failed_in_subset && (is_crash(ended) || is_leak(ended)))
        sweep->faults_in_subset++;
    else if (fault != NULL)
        show(sweep, k, fault);
    else if (WEXITSTATUS(ended) == EXIT_SYSTEM)
        sweep->errors++;
    else if (WEXITSTATUS(ended) == EXIT_OK)
        sweep->successes++;
    if (!clean_up(sweep))
        show(sweep, k, "it leaves files behind");
    return !WIFEXITED(ended) || WEXITSTATUS(ended) != ENDED_UNREACHED;
}

/* ---- the sweep ---- */

static bool keep_document(struct sweep *sweep)
{
    int const ended = try_one(sweep, 0);

    sweep->document = read_all(sweep->output, &sweep->document_len);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != EXIT_OK || sweep->document == NULL) {
        show(sweep, 0, "even without a failure there is no document");
        return false;
    }
    return clean_up(sweep);
}

static bool warm_up(const struct sweep *sweep)
{
    return render(sweep) == EXIT_OK && clean_up(sweep);
}

static bool sweep_init(struct sweep *sweep, char **words)
{
    *sweep = (struct sweep){
        .mode = words[1],
        .is_harfbuzz = strcmp(words[1], "harfbuzz") == 0,
        .first = strtol(words[3], NULL, 10),
        .step = strtol(words[4], NULL, 10),
        .keys = words[5],
        .batch = words[6],
        .directory = "/tmp/out-of-memory-XXXXXX",
    };
    sweep->failed_in_subset = mmap(NULL, sizeof *sweep->failed_in_subset, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sweep->failed_in_subset == MAP_FAILED || mkdtemp(sweep->directory) == NULL)
        return false;
    (void)snprintf(sweep->output, sizeof sweep->output, "%s/out.pdf", sweep->directory);
    (void)snprintf(sweep->log, sizeof sweep->log, "%s/log", sweep->directory);
    return sweep->is_harfbuzz ||
           ((strcmp(words[2], "warm") != 0 || warm_up(sweep)) && keep_document(sweep));
}

static bool is_as_expected(const struct sweep *sweep)
{
    if (sweep->is_harfbuzz)
        return sweep->faults_in_subset > 0 && sweep->faults_in_subset <= SUBSET_FAULTS_MAX;
    return sweep->faults == 0 && sweep->errors > 0 &&
           (sweep->faults_in_subset <= SUBSET_FAULTS_MAX || strcmp(sweep->mode, "from") == 0);
}

int main(int argc, char **argv)
{
    struct sweep sweep;
    long k;

    (void)setvbuf(stdout, NULL, _IONBF, 0); /* nothing is in it when a process parts */
    if (argc != 7 || !sweep_init(&sweep, argv))
        return EXIT_USAGE;
    for (k = sweep.first; try_and_judge(&sweep, k);)
        k += sweep.step;
    (void)rmdir(sweep.directory);
    printf("%s, %s, from %ld by %ld to %ld: %ld errors, %ld successes, %ld faults of HarfBuzz's "
           "subsetting, %ld of ours\n",
           sweep.mode, argv[2], sweep.first, sweep.step, k, sweep.errors, sweep.successes,
           sweep.faults_in_subset, sweep.faults);
    free(sweep.document);
    return is_as_expected(&sweep) ? EXIT_OK : EXIT_REFUSED;
}
