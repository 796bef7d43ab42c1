/* Finds the same collective in the traces of all ranks of its communicator, by the communicator's
 * number and the call's sequence number, and sees who waited for whom.
 *
 * As the traces are read in order of time, only collectives that are under way are kept.  Where
 * traces are incomplete, some stay for ever: the oldest are forgotten. */
#include "report/collect.h"

#include <errno.h>

#define MEMORY_MAX (256ull << 20) /* for collectives under way */

struct arrival {
    uint32_t file, cell;
    uint64_t begin_ns, end_ns; /* on the common clock */
};

struct meeting {
    struct meeting *chain;         /* next in the bucket */
    struct meeting *older, *newer; /* by when the first rank came */
    uint32_t instance, sequence;
    uint32_t expected, arrived;
    uint8_t kind;
    bool synchronizes; /* nobody leaves before all have come */
    struct arrival arrivals[];
};

struct collx_matcher {
    struct meeting **buckets; /* by hash */
    uint32_t room, count;     /* buckets, a power of two; meetings */
    struct meeting *oldest, *newest;
    uint64_t memory;
    uint64_t impossible;    /* calls in which a rank came when another had left */
    uint64_t impossible_ns; /* how long after that, at most */
};

static size_t size_of(const struct meeting *meeting)
{
    return sizeof *meeting + meeting->expected * sizeof *meeting->arrivals;
}

static struct meeting **bucket_of(struct collx_matcher *matcher, uint32_t instance,
                                  uint32_t sequence)
{
    return &matcher->buckets[collx_index_hash(instance, sequence) & (matcher->room - 1)];
}

static void forget(struct collx_matcher *matcher, struct meeting *meeting)
{
    struct meeting **at = bucket_of(matcher, meeting->instance, meeting->sequence);

    while (*at != meeting)
        at = &(*at)->chain;
    *at = meeting->chain;
    *(meeting == matcher->oldest ? &matcher->oldest : &meeting->older->newer) = meeting->newer;
    *(meeting == matcher->newest ? &matcher->newest : &meeting->newer->older) = meeting->older;
    matcher->memory -= size_of(meeting);
    matcher->count--;
    free(meeting);
}

/* Where ranks are far apart, or clocks are, many collectives are under way. */
static bool grow(struct collx_matcher *matcher)
{
    uint32_t room = matcher->room ? matcher->room * 2 : 1024;
    struct meeting **buckets = calloc(room, sizeof(struct meeting *));

    if (!buckets)
        return false;
    free(matcher->buckets);
    matcher->buckets = buckets;
    matcher->room = room;
    for (struct meeting *meeting = matcher->oldest; meeting; meeting = meeting->newer) {
        struct meeting **bucket = bucket_of(matcher, meeting->instance, meeting->sequence);
        meeting->chain = *bucket;
        *bucket = meeting;
    }
    return true;
}

/* Without data there is nothing to wait for, except in a barrier. */
static bool synchronizes(const struct collx_trace_record *event)
{
    switch (event->event_small.kind) {
    case COLLX_BARRIER:
        return true;
    case COLLX_ALLREDUCE:
    case COLLX_ALLGATHER:
    case COLLX_ALLTOALL:
    case COLLX_REDUCE_SCATTER_BLOCK:
        return event->event.bytes;
    default:
        return false;
    }
}

static struct meeting *find(struct collx_matcher *matcher, uint32_t instance, uint32_t expected,
                            const struct collx_trace_record *event)
{
    if (matcher->count >= matcher->room && !grow(matcher))
        return NULL;
    struct meeting **bucket = bucket_of(matcher, instance, event->event.sequence);
    struct meeting *meeting;

    for (meeting = *bucket; meeting; meeting = meeting->chain)
        if (meeting->instance == instance && meeting->sequence == event->event.sequence)
            return meeting;

    meeting = malloc(sizeof *meeting + expected * sizeof *meeting->arrivals);
    if (!meeting)
        return NULL;
    *meeting = (struct meeting){.chain = *bucket,
                                .older = matcher->newest,
                                .instance = instance,
                                .sequence = event->event.sequence,
                                .expected = expected,
                                .kind = event->event_small.kind,
                                .synchronizes = true};
    *bucket = meeting;
    *(matcher->newest ? &matcher->newest->newer : &matcher->oldest) = meeting;
    matcher->newest = meeting;
    matcher->memory += size_of(meeting);
    matcher->count++;
    while (matcher->memory > MEMORY_MAX && matcher->oldest != meeting)
        forget(matcher, matcher->oldest);
    return meeting;
}

static void settle(struct collx_summary *summary, const struct meeting *meeting)
{
    struct collx_matcher *matcher = summary->collector->matcher;
    const struct arrival *last = meeting->arrivals, *gone = last;

    for (uint32_t i = 1; i < meeting->arrived; i++) {
        if (meeting->arrivals[i].begin_ns > last->begin_ns)
            last = &meeting->arrivals[i];
        if (meeting->arrivals[i].end_ns < gone->end_ns)
            gone = &meeting->arrivals[i];
    }
    if (meeting->synchronizes && last->begin_ns > gone->end_ns) {
        matcher->impossible += meeting->arrived;
        if (last->begin_ns - gone->end_ns > matcher->impossible_ns)
            matcher->impossible_ns = last->begin_ns - gone->end_ns;
        return;
    }
    for (uint32_t i = 0; i < meeting->arrived; i++) {
        const struct arrival *arrival = &meeting->arrivals[i];
        struct collx_cell *cell = &summary->collector->files[arrival->file].cells[arrival->cell];
        struct collx_rank *rank = &summary->ranks[arrival->file];
        /* It cannot have waited after it had left: a Bcast's root need not wait for anybody. */
        uint64_t until = last->begin_ns < arrival->end_ns ? last->begin_ns : arrival->end_ns;
        uint64_t wait = until - arrival->begin_ns, time = arrival->end_ns - arrival->begin_ns;

        cell->matched++;
        cell->matched_ns += time;
        cell->wait_ns += wait;
        cell->turns += 1.0 / meeting->arrived;
        rank->matched++;
        rank->wait_ns += wait;
        summary->matched++;
        summary->matched_ns += time;
        summary->wait_ns += wait;
        if (arrival == last) {
            cell->last++;
            rank->last++;
        }
    }
}

int collx_match(struct collx_summary *summary, uint32_t file, uint32_t cell, uint32_t number,
                const struct collx_trace_record *event)
{
    struct collx_collector *collector = summary->collector;
    const struct collx_instance *instance = &collector->instances[number];
    uint64_t shift = (uint64_t)collector->files[file].shift;

    /* With one rank nobody waits, and without all traces nobody knows. */
    if (instance->size < 2 || (uint32_t)instance->size != instance->files || instance->mixed)
        return 0;
    if (!collector->matcher)
        collector->matcher = calloc(1, sizeof *collector->matcher);
    struct meeting *meeting =
        collector->matcher ? find(collector->matcher, number, (uint32_t)instance->size, event)
                           : NULL;
    if (!meeting)
        return -ENOMEM;
    /* Different collectives under one number: damage, or a program that is wrong. */
    if (meeting->kind != event->event_small.kind)
        return 0;
    meeting->synchronizes &= synchronizes(event);
    meeting->arrivals[meeting->arrived++] =
        (struct arrival){file, cell, event->event.begin_ns + shift, event->event.end_ns + shift};
    if (meeting->arrived == meeting->expected) {
        settle(summary, meeting);
        forget(collector->matcher, meeting);
    }
    return 0;
}

void collx_matcher_report(struct collx_summary *summary)
{
    const struct collx_matcher *matcher = summary->collector->matcher;

    if (matcher && matcher->impossible)
        collx_problem_add(summary,
                          "in %llu calls a rank arrived when another had left already, by up to "
                          "%.6f s: %s, and their waits are not counted",
                          (unsigned long long)matcher->impossible,
                          (double)matcher->impossible_ns / 1e9,
                          summary->nodes > 1
                              ? "the clocks of the nodes are that far apart, or communicators were "
                                "taken for others"
                              : "communicators were taken for others");
}

void collx_matcher_destroy(struct collx_matcher *matcher)
{
    if (!matcher)
        return;
    for (struct meeting *meeting = matcher->oldest, *newer; meeting; meeting = newer) {
        newer = meeting->newer;
        free(meeting);
    }
    free(matcher->buckets);
    free(matcher);
}
