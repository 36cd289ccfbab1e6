/*
 * How fast the queue drains, and so when there will be room: the arithmetic behind Retry-After. It
 * has no clock and no lock: callers say what time it is.
 *
 * The rate is measured over time with work only, and rather over time with much of it: a single
 * ticket now and then says little about what all threads together can do. A burst that fills an
 * empty queue has the threads read batches first, and little is printed by the time when the first
 * is refused: until there was enough of full load, the rest of it is taken to be spent on printing
 * alone, whose speed is known.
 *
 * Room comes back when jobs end, not when tickets are done. Jobs take turns, a slice of tickets a
 * turn, so a job ends in the round of its last slice, and large jobs that run side by side end late
 * and close together. The forecast follows these rounds.
 */
#ifndef TICKETPRESS_SERVICE_DRAIN_H
#define TICKETPRESS_SERVICE_DRAIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    DRAIN_MEMORY_US = 10000000,       /* of work: what is older counts half, and less and less */
    DRAIN_FULL_US_MIN = 5000000,      /* of full load: then it alone is asked */
    DRAIN_TICKETS_PER_S_GUESS = 3000, /* while nothing is known */
    DRAIN_JOBS_MAX = 256,             /* that a forecast looks at */
    DRAIN_WAIT_S_MAX = 3600,
};

enum drain_load { DRAIN_IDLE, DRAIN_BUSY, DRAIN_FULL, DRAIN_LOADS };

struct drain_rate {
    int64_t noted_us;       /* the time of the last note */
    uint64_t noted_tickets; /* and its count */
    enum drain_load load;   /* since then */
    struct drain_sum {
        double tickets, us;
    } sums[DRAIN_LOADS]; /* of time under at least this load; DRAIN_IDLE is not used */
};

/*
 * Account for the time since the last note. To be called at each change of load, and from time to
 * time.
 *
 * In:  now_us   of a monotonic clock
 *      tickets  finished since the start; never falls
 *      load     from now on
 */
void drain_rate_note(struct drain_rate *rate, int64_t now_us, uint64_t tickets,
                     enum drain_load load);

/*
 * Tickets that are finished in a second of work; 0 while unknown.
 *
 * In:  alone_per_s  what all threads print in a second while they do nothing else; 0: unknown
 */
double drain_rate_per_s(const struct drain_rate *rate, double alone_per_s);

struct drain_job {
    size_t tickets_left;
    size_t tickets; /* that come free at its end; 1.. */
};

struct drain_forecast {
    struct drain_job jobs[DRAIN_JOBS_MAX]; /* jobs_count of them, any order: all, or a sample */
    size_t jobs_count;
    size_t jobs_all;      /* that they stand for */
    size_t tickets_ahead; /* that go before all jobs and come free one by one */
    size_t slice_tickets; /* of one turn; 1.. */
    double tickets_per_s; /* 0: unknown */
};

/* Seconds until `tickets` have come free, rounded up; 1..DRAIN_WAIT_S_MAX. The jobs are sorted. */
unsigned drain_wait_s(struct drain_forecast *forecast, size_t tickets);

#endif
