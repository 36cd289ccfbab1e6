#include "tests/bench/bench_run.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { FILE_BYTES_MAX = 64 * 1024 * 1024 };

char *bench_file_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");

    bench_require(file != NULL, path);
    bench_require(fseek(file, 0, SEEK_END) == 0, path);
    long size = ftell(file);
    bench_require(size >= 0 && size <= FILE_BYTES_MAX, path);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    bench_require(text != NULL, "memory");
    bench_require(fread(text, 1, (size_t)size, file) == (size_t)size, path);
    fclose(file);
    *len = (size_t)size;
    return text;
}

static double clock_ms(void)
{
    struct timespec now;

    bench_require(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock_gettime");
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare_ms(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static bool count_parse(const char *text, size_t max, size_t *count)
{
    char *end = NULL;

    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max)
        return false;
    *count = value;
    return true;
}

static bool arguments_parse(const struct bench_program *program, int argc, char **argv,
                            struct bench_job *job, const char **batch_path, size_t *runs)
{
    const char **places[] = {batch_path, &job->keys_path, &job->out_path};
    size_t places_used = 0;

    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--repeat") == 0 && has_value) {
            if (!count_parse(argv[++i], BENCH_RUNS_MAX, runs))
                return false;
        } else if (strcmp(argv[i], "--workers") == 0 && has_value && program->takes_workers) {
            if (!count_parse(argv[++i], BENCH_WORKERS_MAX, &job->workers))
                return false;
        } else if (strcmp(argv[i], "--embedded") == 0 && program->takes_embedded) {
            job->is_embedded = true;
        } else if (argv[i][0] != '-' && places_used < sizeof places / sizeof *places) {
            *places[places_used++] = argv[i];
        } else {
            return false;
        }
    }
    return places_used == sizeof places / sizeof *places;
}

static void usage_print(const struct bench_program *program)
{
    fprintf(stderr, "usage: %s BATCH.json KEYFILE OUT.pdf [--repeat 1..%d]%s%s\n", program->name,
            BENCH_RUNS_MAX, program->takes_embedded ? " [--embedded]" : "",
            program->takes_workers ? " [--workers N]" : "");
}

static void measure_and_print(const struct bench_program *program, void *context,
                              const struct bench_job *job, size_t runs)
{
    double *ms = calloc(runs, sizeof *ms);

    bench_require(ms != NULL, "memory");
    size_t tickets = program->run(context, job); /* the warm-up */
    for (size_t i = 0; i < runs; i++) {
        double start_ms = clock_ms();
        size_t tickets_again = program->run(context, job);
        ms[i] = clock_ms() - start_ms;
        bench_require(tickets_again == tickets, "the same count of tickets in each run");
    }
    qsort(ms, runs, sizeof *ms, compare_ms);
    double ms_median = (ms[(runs - 1) / 2] + ms[runs / 2]) / 2;
    printf("{\"program\":\"%s\",\"tickets\":%zu,\"ms_median\":%.4f,\"ms_min\":%.4f,\"runs\":%zu}\n",
           program->name, tickets, ms_median, ms[0], runs);
    free(ms);
}

int bench_main(const struct bench_program *program, int argc, char **argv)
{
    struct bench_job job = {.workers = 1};
    const char *batch_path = NULL;
    size_t runs = 5;

    if (!arguments_parse(program, argc, argv, &job, &batch_path, &runs)) {
        usage_print(program);
        return 2;
    }
    job.batch_json = bench_file_read(batch_path, &job.batch_json_len);
    void *context = program->prepare != NULL ? program->prepare(&job) : NULL;
    measure_and_print(program, context, &job, runs);
    if (program->finish != NULL)
        program->finish(context);
    free(job.batch_json);
    return EXIT_SUCCESS;
}
