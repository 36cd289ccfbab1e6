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
 *     START  cold, or warm: a render went before, so that what libraries make once and keep is
 * there
 *
 * k is FIRST and every STEP-th behind it.
 *
 * Exit status 0 when there was no fault.
 */
#include "service/commands.h"
#include "tests/memory/failing_allocator.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SECONDS_MAX = 60, /* of one process */
    PATH_BYTES = 256,
    FAULTS_SHOWN_MAX = 20,
};

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
    long first, step;
    const char *keys, *batch;
    char directory[PATH_BYTES];
    char output[PATH_BYTES + 16], log[PATH_BYTES + 16];
    char *document; /* that of a render without failures */
    size_t document_len;
    long successes, errors, faults;
};

/* ---- in a process of its own ---- */

static enum exit_code render(const struct sweep *sweep)
{
    static const char *const ENVIRONMENT[] = {NULL};
    char words[][64] = {"ticketpress", "render", "--workers=1", "--worker-nice=0",
                        "--signing-keys"};
    char option[] = "-o";
    char paths[3][PATH_BYTES + 16];
    char *arguments[] = {words[0], words[1], words[2], words[3], words[4],
                         paths[0], paths[1], option,   paths[2], NULL};

    (void)snprintf(paths[0], sizeof paths[0], "%s", sweep->keys);
    (void)snprintf(paths[1], sizeof paths[1], "%s", sweep->batch);
    (void)snprintf(paths[2], sizeof paths[2], "%s", sweep->output);
    return commands_run(sizeof arguments / sizeof *arguments - 1, arguments, ENVIRONMENT);
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
    enum exit_code code;
    bool is_reached;

    (void)alarm(SECONDS_MAX);
    speak_to_log(sweep);
    failing_allocator_arm(k, strcmp(sweep->mode, "from") == 0);
    code = render(sweep);
    is_reached = failing_allocator_disarm() >= k;
    if (has_leaks())
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

    ended = try_one(sweep, k);
    fault = find_fault(sweep, ended);
    if (fault != NULL)
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
        .first = strtol(words[3], NULL, 10),
        .step = strtol(words[4], NULL, 10),
        .keys = words[5],
        .batch = words[6],
        .directory = "/tmp/out-of-memory-XXXXXX",
    };
    if (mkdtemp(sweep->directory) == NULL)
        return false;
    (void)snprintf(sweep->output, sizeof sweep->output, "%s/out.pdf", sweep->directory);
    (void)snprintf(sweep->log, sizeof sweep->log, "%s/log", sweep->directory);
    return (strcmp(words[2], "warm") != 0 || warm_up(sweep)) && keep_document(sweep);
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
    printf("%s, %s, from %ld by %ld to %ld: %ld errors, %ld successes, %ld faults\n", sweep.mode,
           argv[2], sweep.first, sweep.step, k, sweep.errors, sweep.successes, sweep.faults);
    free(sweep.document);
    return sweep.faults == 0 && sweep.errors > 0 ? EXIT_OK : EXIT_REFUSED;
}
