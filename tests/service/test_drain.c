#include "service/drain.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define SECOND_US INT64_C(1000000)

/* ---- the rate ---- */

struct step {
    double seconds;       /* since the step before */
    uint64_t tickets;     /* finished since then */
    enum drain_load load; /* from now on */
};

static double rate_after(const struct step *steps, size_t count, double alone_per_s)
{
    struct drain_rate rate = {0};
    int64_t now_us = 0;
    uint64_t tickets = 0;

    for (size_t i = 0; i < count; i++) {
        now_us += (int64_t)(steps[i].seconds * (double)SECOND_US);
        tickets += steps[i].tickets;
        drain_rate_note(&rate, now_us, tickets, steps[i].load);
    }
    return drain_rate_per_s(&rate, alone_per_s);
}

Test(drain_rate_per_s, counts_time_with_work_only)
{
    static const struct {
        const char *name;
        struct step steps[6];
        double expected;
    } ROWS[] = {
        {"nothing known", {{1, 0, DRAIN_IDLE}}, 0},
        {"work under way", {{0, 0, DRAIN_BUSY}, {2, 200, DRAIN_BUSY}}, 100},
        {"and nothing done by now", {{0, 0, DRAIN_BUSY}, {2, 0, DRAIN_BUSY}}, 0},
        {"idle afterwards", {{0, 0, DRAIN_BUSY}, {2, 200, DRAIN_IDLE}, {500, 0, DRAIN_BUSY}}, 100},
        {"idle between",
         {{0, 0, DRAIN_BUSY}, {1, 100, DRAIN_IDLE}, {99, 0, DRAIN_BUSY}, {1, 300, DRAIN_IDLE}},
         200},
        {"full load rather than single tickets",
         {{0, 0, DRAIN_BUSY}, {9, 90, DRAIN_FULL}, {5, 5000, DRAIN_IDLE}},
         1000},
        {"full load too short to tell",
         {{0, 0, DRAIN_BUSY}, {9, 900, DRAIN_FULL}, {4.9, 490, DRAIN_IDLE}},
         100},
        {"full load that finished nothing by now",
         {{0, 0, DRAIN_BUSY}, {9, 900, DRAIN_FULL}, {5, 0, DRAIN_FULL}},
         900.0 / 14},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        double const rate = rate_after(ROWS[i].steps, 6, 0);

        cr_expect_float_eq(rate, ROWS[i].expected, 0.01, "%s: %g", ROWS[i].name, rate);
    }
}

/* What is missing of five seconds of full load is spent on printing alone. */
Test(drain_rate_per_s, trusts_the_speed_of_printing_at_first)
{
    static const struct {
        const char *name;
        struct step steps[6];
        double expected;
    } ROWS[] = {
        {"nothing else known", {{1, 0, DRAIN_IDLE}}, 3000},
        {"single tickets say nothing", {{0, 0, DRAIN_BUSY}, {9, 90, DRAIN_BUSY}}, 3000},
        {"a burst that is read before it is printed",
         {{0, 0, DRAIN_FULL}, {1, 0, DRAIN_FULL}},
         2400},
        {"less than five seconds", {{0, 0, DRAIN_FULL}, {4, 400, DRAIN_FULL}}, 680},
        {"just before them", {{0, 0, DRAIN_FULL}, {4.999, 500, DRAIN_FULL}}, 100.6},
        {"five seconds", {{0, 0, DRAIN_FULL}, {5, 500, DRAIN_FULL}}, 100},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        double const rate = rate_after(ROWS[i].steps, 6, 3000);

        cr_expect_float_eq(rate, ROWS[i].expected, 0.01, "%s: %g", ROWS[i].name, rate);
    }
}

/* A machine that has become ten times slower, or faster, is seen to within 20 s of work. */
Test(drain_rate_per_s, follows_a_change)
{
    static const double FACTORS[] = {0.1, 10};

    for (size_t i = 0; i < 2; i++) {
        struct drain_rate rate = {0};
        double tickets = 0;
        double now;

        drain_rate_note(&rate, 0, 0, DRAIN_FULL);
        for (int second = 1; second <= 120; second++) {
            tickets += second <= 100 ? 1000 : 1000 * FACTORS[i];
            drain_rate_note(&rate, second * SECOND_US, (uint64_t)tickets, DRAIN_FULL);
        }
        now = drain_rate_per_s(&rate, 3000);
        cr_expect(now > 1000 * FACTORS[i] / 2 && now < 1000 * FACTORS[i] * 2, "%g: %g", FACTORS[i],
                  now);
    }
}

/* ---- the forecast ---- */

Test(drain_wait_s, is_worked_out_by_rounds)
{
    static const struct {
        const char *name;
        struct drain_forecast forecast;
        size_t tickets;
        unsigned expected;
    } ROWS[] = {
        {"nothing needed", {.slice_tickets = 10, .tickets_per_s = 100}, 0, 1},
        {"nothing under way", {.slice_tickets = 10, .tickets_per_s = 100}, 1000, 10},
        {"rate unknown", {.slice_tickets = 10}, 10 * DRAIN_TICKETS_PER_S_GUESS, 10},
        {"less than a second",
         {.jobs = {{1, 1}},
          .jobs_count = 1,
          .jobs_all = 1,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         1,
         1},
        {"one job comes free at its end only",
         {.jobs = {{1000, 1000}},
          .jobs_count = 1,
          .jobs_all = 1,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         1,
         10},
        {"and is half done",
         {.jobs = {{500, 1000}},
          .jobs_count = 1,
          .jobs_all = 1,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         1000,
         5},
        {"two jobs side by side end together",
         {.jobs = {{1000, 1000}, {1000, 1000}},
          .jobs_count = 2,
          .jobs_all = 2,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         1,
         20},
        {"a short one beside a long one",
         {.jobs = {{2000, 2000}, {400, 400}},
          .jobs_count = 2,
          .jobs_all = 2,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         400,
         8},
        {"and then the long one",
         {.jobs = {{2000, 2000}, {400, 400}},
          .jobs_count = 2,
          .jobs_all = 2,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         401,
         24},
        {"jobs of one slice end one by one",
         {.jobs = {{500, 500}, {500, 500}, {500, 500}, {500, 500}},
          .jobs_count = 4,
          .jobs_all = 4,
          .slice_tickets = 500,
          .tickets_per_s = 100},
         600,
         10},
        {"a job whose pages are all there",
         {.jobs = {{0, 500}, {1000, 1000}},
          .jobs_count = 2,
          .jobs_all = 2,
          .slice_tickets = 100,
          .tickets_per_s = 100},
         500,
         1},
        {"a sample stands for all",
         {.jobs = {{500, 500}, {500, 500}},
          .jobs_count = 2,
          .jobs_all = 20,
          .slice_tickets = 500,
          .tickets_per_s = 100},
         5000,
         50},
        {"what is ahead comes free one by one",
         {.jobs = {{1000, 1000}},
          .jobs_count = 1,
          .jobs_all = 1,
          .tickets_ahead = 500,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         300,
         3},
        {"and goes before the jobs",
         {.jobs = {{1000, 1000}},
          .jobs_count = 1,
          .jobs_all = 1,
          .tickets_ahead = 500,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         501,
         15},
        {"more than there is",
         {.jobs = {{100, 100}},
          .jobs_count = 1,
          .jobs_all = 1,
          .slice_tickets = 10,
          .tickets_per_s = 100},
         300,
         3},
        {"an hour at most",
         {.jobs = {{1000, 1000}},
          .jobs_count = 1,
          .jobs_all = 1,
          .slice_tickets = 10,
          .tickets_per_s = 0.01},
         1,
         DRAIN_WAIT_S_MAX},
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct drain_forecast forecast = ROWS[i].forecast;
        unsigned const seconds = drain_wait_s(&forecast, ROWS[i].tickets);

        cr_expect_eq(seconds, ROWS[i].expected, "%s: %u, not %u", ROWS[i].name, seconds,
                     ROWS[i].expected);
    }
}

/* ---- against a queue that really takes turns ---- */

enum { QUEUE_JOBS_MAX = 600, SLICE = 48, TICKETS_PER_S = 1000 };

struct queue {
    struct drain_job jobs[QUEUE_JOBS_MAX];
    size_t jobs_count;
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (*state >> 8) % below;
}

/* Work the queue off as the pool does, one slice of each job in turn, until `needed` are free. */
static double seconds_until_free(struct queue queue, size_t needed)
{
    double done = 0;
    size_t freed = 0;

    for (size_t turn = 0; freed < needed; turn = (turn + 1) % queue.jobs_count) {
        struct drain_job *job = &queue.jobs[turn];
        size_t const slice = job->tickets_left < SLICE ? job->tickets_left : SLICE;

        done += (double)slice;
        job->tickets_left -= slice;
        if (job->tickets_left == 0) {
            freed += job->tickets;
            job->tickets = 0;
        }
    }
    return done / TICKETS_PER_S;
}

static void fill_queue(struct queue *queue, uint32_t *random, size_t jobs, uint32_t tickets_max,
                       bool is_under_way)
{
    queue->jobs_count = jobs;
    for (size_t i = 0; i < jobs; i++) {
        size_t const tickets = 1 + draw(random, tickets_max);

        queue->jobs[i] = (struct drain_job){
            .tickets_left = is_under_way ? 1 + draw(random, (uint32_t)tickets) : tickets,
            .tickets = tickets,
        };
    }
}

static unsigned forecast_of(const struct queue *queue, size_t needed)
{
    struct drain_forecast forecast = {
        .jobs_all = queue->jobs_count, .slice_tickets = SLICE, .tickets_per_s = TICKETS_PER_S};

    while (forecast.jobs_count < queue->jobs_count && forecast.jobs_count < DRAIN_JOBS_MAX) {
        forecast.jobs[forecast.jobs_count] = queue->jobs[forecast.jobs_count];
        forecast.jobs_count++;
    }
    return drain_wait_s(&forecast, needed);
}

Test(drain_wait_s, is_met_within_a_factor_of_two)
{
    static const struct {
        size_t jobs;
        uint32_t tickets_max;
        size_t needed;
    } ROWS[] = {{1, 20000, 50},   {3, 20000, 500},  {10, 5000, 5000}, {100, 500, 500},
                {100, 500, 50},   {500, 100, 2000}, {600, 50, 5000},  {40, 1000, 10000},
                {600, 400, 2000}, {2, 50000, 1}};
    uint32_t random = 1;

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        for (int round = 0; round < 50; round++) {
            struct queue queue;
            size_t total = 0;

            fill_queue(&queue, &random, ROWS[i].jobs, ROWS[i].tickets_max, round % 2 == 1);
            for (size_t j = 0; j < queue.jobs_count; j++)
                total += queue.jobs[j].tickets;
            size_t const needed = ROWS[i].needed < total ? ROWS[i].needed : total;
            double const real = seconds_until_free(queue, needed);
            double const said = forecast_of(&queue, needed);

            cr_expect(said >= real / 2 && said <= fmax(2 * real, 1) + 1, "row %zu: %g s, not %g", i,
                      said, real);
        }
    }
}
