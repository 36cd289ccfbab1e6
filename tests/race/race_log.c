/*
 * Four threads log to one file at once. Every line must come out whole, each once, and those of one
 * thread in their order.
 */
#include "service/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITERS = 4, LINES = 2000 };

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                             \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static pthread_barrier_t gate;
static int numbers[WRITERS];

static void *writer_run(void *data)
{
    const int *number = data;

    pthread_barrier_wait(&gate);
    for (int i = 0; i < LINES; i++)
        log_write(LOG_INFO, "a", LOG_FIELDS(log_integer("writer", *number), log_integer("n", i)));
    return NULL;
}

static void check_lines(FILE *file)
{
    int next[WRITERS] = {0};
    char line[LOG_LINE_BYTES_MAX];

    rewind(file);
    for (int i = 0; i < WRITERS * LINES; i++) {
        const char *tail;
        char expected[80];
        int number;

        CHECK(fgets(line, sizeof line, file) != NULL);
        CHECK(strncmp(line, "{\"time\":\"", 9) == 0);
        tail = strstr(line, ",\"writer\":");
        CHECK(tail != NULL);
        number = tail[10] - '0';
        CHECK(number >= 0 && number < WRITERS);
        snprintf(expected, sizeof expected, ",\"writer\":%d,\"n\":%d}\n", number, next[number]++);
        CHECK(strcmp(tail, expected) == 0);
    }
    CHECK(fgets(line, sizeof line, file) == NULL);
}

int main(void)
{
    pthread_t writers[WRITERS];
    FILE *file = tmpfile();

    CHECK(file != NULL);
    CHECK(pthread_barrier_init(&gate, NULL, WRITERS) == 0);
    log_start(fileno(file), LOG_INFO);
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&writers[i], NULL, writer_run, &numbers[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++)
        CHECK(pthread_join(writers[i], NULL) == 0);
    log_stop();
    CHECK(log_lines_lost() == 0);
    check_lines(file);
    CHECK(fclose(file) == 0);
    CHECK(pthread_barrier_destroy(&gate) == 0);
    printf("%d lines of %d threads\n", WRITERS * LINES, WRITERS);
    return EXIT_SUCCESS;
}
