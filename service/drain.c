#include "service/drain.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define US_PER_S 1e6

/* ---- the rate ---- */

static void sum_add(struct drain_sum *sum, double tickets, double us)
{
    sum->tickets += tickets;
    sum->us += us;
    if (sum->us > DRAIN_MEMORY_US) {
        sum->tickets /= 2;
        sum->us /= 2;
    }
}

void drain_rate_note(struct drain_rate *rate, int64_t now_us, uint64_t tickets,
                     enum drain_load load)
{
    assert(now_us >= rate->noted_us && tickets >= rate->noted_tickets && load < DRAIN_LOADS);
    for (int at_least = DRAIN_BUSY; at_least <= (int)rate->load; at_least++)
        sum_add(&rate->sums[at_least], (double)(tickets - rate->noted_tickets),
                (double)(now_us - rate->noted_us));
    rate->noted_us = now_us;
    rate->noted_tickets = tickets;
    rate->load = load;
}

double drain_rate_per_s(const struct drain_rate *rate, double alone_per_s)
{
    const struct drain_sum *full = &rate->sums[DRAIN_FULL];
    const struct drain_sum *busy = &rate->sums[DRAIN_BUSY];
    double const missing_us = DRAIN_FULL_US_MIN - full->us;

    if (missing_us <= 0 && full->tickets > 0)
        return full->tickets / full->us * US_PER_S;
    if (missing_us > 0 && alone_per_s > 0)
        return (full->tickets * US_PER_S + alone_per_s * missing_us) / DRAIN_FULL_US_MIN;
    return busy->us > 0 ? busy->tickets / busy->us * US_PER_S : 0;
}

/* ---- the forecast ---- */

static int compare_jobs(const void *left, const void *right)
{
    const struct drain_job *a = left;
    const struct drain_job *b = right;

    return (a->tickets_left > b->tickets_left) - (a->tickets_left < b->tickets_left);
}

/* In how many rounds from now a job ends. One of which all pages are finished has its bind left. */
static size_t rounds_of(const struct drain_job *job, size_t slice_tickets)
{
    return job->tickets_left == 0 ? 1 : (job->tickets_left + slice_tickets - 1) / slice_tickets;
}

/* The jobs that end in one and the same round: a stretch of the sorted ones. */
struct round_end {
    size_t first, count; /* jobs */
    double freed;        /* tickets of these */
    double before;       /* tickets done until the round begins, in all jobs */
    double after;        /* and when it ends */
};

/* ended: tickets left of all jobs before `first`. */
static struct round_end round_from(const struct drain_forecast *forecast, size_t first,
                                   double *ended)
{
    size_t const slice = forecast->slice_tickets;
    size_t const rounds = rounds_of(&forecast->jobs[first], slice);
    struct round_end end = {.first = first};

    end.before = *ended + (double)(forecast->jobs_count - first) * (double)((rounds - 1) * slice);
    while (first + end.count < forecast->jobs_count &&
           rounds_of(&forecast->jobs[first + end.count], slice) == rounds) {
        const struct drain_job *job = &forecast->jobs[first + end.count++];

        end.freed += (double)job->tickets;
        *ended += (double)job->tickets_left;
    }
    end.after =
        *ended + (double)(forecast->jobs_count - first - end.count) * (double)(rounds * slice);
    return end;
}

/* How much of the round goes by until `needed` tickets come free: whole jobs end, one by one. */
static double share_of_round(const struct round_end *end, double scale, double needed)
{
    double const jobs = (double)end->count * scale;
    double const per_job = end->freed / (double)end->count;
    double const jobs_needed = ceil(needed / per_job);

    assert(per_job > 0);
    return jobs_needed < jobs ? jobs_needed / jobs : 1;
}

/* Tickets that will be done until `needed` have come free. */
static double work_until(const struct drain_forecast *forecast, double needed)
{
    double const scale =
        forecast->jobs_count > 0 ? (double)forecast->jobs_all / (double)forecast->jobs_count : 1;
    double const ahead = (double)forecast->tickets_ahead;
    double freed = ahead;
    double ended = 0;

    if (needed <= ahead)
        return needed;
    for (size_t first = 0; first < forecast->jobs_count;) {
        struct round_end const end = round_from(forecast, first, &ended);

        if (freed + end.freed * scale >= needed)
            return ahead + scale * (end.before + (end.after - end.before) *
                                                     share_of_round(&end, scale, needed - freed));
        freed += end.freed * scale;
        first += end.count;
    }
    /* A sample may miss what is large and rare. */
    return ahead + scale * ended + (needed - freed);
}

unsigned drain_wait_s(struct drain_forecast *forecast, size_t tickets)
{
    double const per_s =
        forecast->tickets_per_s > 0 ? forecast->tickets_per_s : DRAIN_TICKETS_PER_S_GUESS;
    double seconds;
    unsigned whole;

    assert(forecast->jobs_count <= DRAIN_JOBS_MAX && forecast->slice_tickets >= 1);
    assert(forecast->jobs_all >= forecast->jobs_count);
    qsort(forecast->jobs, forecast->jobs_count, sizeof *forecast->jobs, compare_jobs);
    seconds = work_until(forecast, (double)tickets) / per_s;
    if (seconds >= DRAIN_WAIT_S_MAX)
        return DRAIN_WAIT_S_MAX;
    whole = (unsigned)seconds;
    return (double)whole < seconds || whole == 0 ? whole + 1 : whole;
}
