#include "algorithms/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"

#include <stdio.h>

enum {
    /* A turn of a way.  The first call of it finds the caches as another way has left them, and
     * does not count. */
    CALLS = 3,
    /* Two calls in a row that took half as long again as the best way are enough of one: with three
     * ways the trial would cost a program as much as a dozen of its calls. */
    SLOW_CALLS = 2,
    /* Calls until it looks again; then four times as many.  Never so often that it shows, even
     * where one way is ten times slower. */
    PATIENCE = 1024,
    PATIENCE_MOST = 65536,
    /* Bytes that calls of a size have passed before it looks first.  The memory that way 0 leads
     * through is cold until they have gone all round it, which would count against it; and
     * communicators that do not live long are spared the trying. */
    WARM = 1 << 18,
};

/* Counts ways that there are not, too: skip() leaves them out. */
enum { TRIES = COLLX_TUNER_WAYS * COLLX_TUNER_TURNS * CALLS };

static unsigned way_of(unsigned try)
{
    return try / CALLS % COLLX_TUNER_WAYS;
}

static unsigned turn_of(unsigned try)
{
    return try / CALLS / COLLX_TUNER_WAYS;
}

static struct collx_tuned *class_of(struct collx_tuner *tuner, size_t bytes)
{
    int class = __builtin_clzl(tuner->least) - __builtin_clzl(bytes);

    return &tuner->tuned[class < COLLX_TUNER_CLASSES ? class : COLLX_TUNER_CLASSES - 1];
}

/* The ways of a class: its smallest calls, and those of a way, are powers of two.  At least one. */
static unsigned ways_of(const struct collx_tuner *tuner, size_t bytes)
{
    unsigned ways = 0;

    for (unsigned way = 0; way < COLLX_TUNER_WAYS; way++)
        if (tuner->allowed >> way & 1 && bytes >= tuner->way[way].least)
            ways |= 1u << way;
    return ways ? ways : tuner->allowed;
}

/* What counts of a way: the worse one of its turns, as far as it had them, and the best call of
 * that, since one may be disturbed.  What a way costs may depend on what was in the caches before,
 * for many calls: a Bcast of 16 MiB was seen to take 0.44 ms in its first turn and 0.8 ever after
 * the next. */
static uint64_t figure(const struct collx_tuned *tuned, unsigned way)
{
    const uint64_t *took = tuned->took[way];
    uint64_t worse = took[0];

    for (unsigned turn = 1; turn < COLLX_TUNER_TURNS; turn++)
        if (took[turn] < UINT64_MAX && took[turn] > worse)
            worse = took[turn];
    return worse;
}

/* Much slower than the best way so far. */
static bool is_slow(const struct collx_tuned *tuned, uint64_t ns)
{
    for (unsigned way = 0; way < COLLX_TUNER_WAYS; way++)
        if (ns / 3 * 2 > figure(tuned, way))
            return true;
    return false;
}

/* What all ranks told of a try. */
static void account(struct collx_tuner *tuner, struct collx_tuned *tuned, unsigned try)
{
    const unsigned way = way_of(try);
    uint64_t *took = &tuned->took[way][turn_of(try)];
    uint64_t begin = UINT64_MAX, end = 0;

    for (int rank = 0; rank < tuner->team->size; rank++) {
        uint64_t stamp[2];
        memcpy(stamp, collx_meeting_word(tuner->meeting, rank), sizeof stamp);
        begin = stamp[0] < begin ? stamp[0] : begin;
        end = stamp[1] > end ? stamp[1] : end;
    }
    if (try % CALLS == 0)
        tuned->slow = 0;
    tuned->slow = is_slow(tuned, end - begin) ? tuned->slow + 1 : 0;
    if (tuned->slow == SLOW_CALLS)
        tuned->out |= (uint8_t)(1 << way);
    if (try % CALLS > 0 && end - begin < *took)
        *took = end - begin;
}

/* What would be tried next of ways that are out. */
static void skip(struct collx_tuned *tuned)
{
    while (tuned->tries < TRIES && tuned->out >> way_of(tuned->tries) & 1)
        tuned->tries += CALLS - tuned->tries % CALLS;
}

/* For whoever wants to know why. */
static void explain(const struct collx_tuner *tuner, const struct collx_tuned *tuned)
{
    char text[256];
    size_t length = 0;

    for (unsigned way = 0; way < COLLX_TUNER_WAYS && length < sizeof text; way++)
        if (tuned->ways >> way & 1)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%.1f us %s",
                                       length ? ", " : "", (double)figure(tuned, way) / 1e3,
                                       tuner->way[way].say);
    collx_warn("MPI_%s of %zu KiB and more on %s: %s", tuner->name,
               (tuner->least << (tuned - tuner->tuned)) / 1024, tuner->team->name, text);
}

/* What a call costs a program that way. */
static double cost(const struct collx_tuner *tuner, const struct collx_tuned *tuned, unsigned way)
{
    return (double)figure(tuned, way) * (100 + tuner->way[way].burden);
}

/* After a look.  A turn may be disturbed as a whole: of the first looks at calls of megabytes one
 * in fifty named a way that took a third longer than the best one, and a thousand calls went there.
 * So another way has to win twice in a row before it is taken. */
static void settle(const struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    const bool once_more = tuned->rival == tuned->way;
    unsigned best = tuned->way;

    if (tuner->team->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 1)
        explain(tuner, tuned);
    for (unsigned way = 0; way < COLLX_TUNER_WAYS; way++)
        if (tuned->ways >> way & 1 && cost(tuner, tuned, way) < cost(tuner, tuned, best))
            best = way;
    tuned->calls = tuned->tries = 0;
    if (best != tuned->way && once_more) {
        tuned->rival = (uint8_t)best;
        return;
    }
    if (best == tuned->rival)
        tuned->way = (uint8_t)best;
    tuned->rival = tuned->way;
    tuned->settled = true;
    tuned->patience = tuned->patience ? tuned->patience * 4 : PATIENCE;
    if (tuned->patience > PATIENCE_MOST)
        tuned->patience = PATIENCE_MOST;
}

unsigned collx_tuner_begin(struct collx_tuner *tuner, size_t bytes)
{
    struct collx_tuned *tuned = class_of(tuner, bytes);

    tuner->trying = NULL;
    if (__builtin_expect(!tuned->ways, 0)) {
        tuned->ways = (uint8_t)ways_of(tuner, bytes);
        tuned->way = tuned->rival = (uint8_t)__builtin_ctz(tuned->ways);
    }
    if (!(tuned->ways & (tuned->ways - 1)))
        return tuned->way;
    if (__builtin_expect(tuned->passed < WARM && tuned->ways & 1, 0)) {
        tuned->passed += bytes;
        return 0;
    }
    if (__builtin_expect(tuned->settled, 1)) {
        if (++tuned->calls < tuned->patience)
            return tuned->way;
        tuned->settled = false;
    }
    if (tuned->tries == 0) {
        memset(tuned->took, 0xff, sizeof tuned->took);
        tuned->slow = 0;
        tuned->out = (uint8_t)~tuned->ways;
    }
    collx_meet(tuner->team, tuner->meeting, tuned->stamp, sizeof tuned->stamp, tuner->name);
    if (tuned->tries > 0)
        account(tuner, tuned, tuned->tries - 1u);
    skip(tuned);
    if (tuned->tries == TRIES) {
        settle(tuner, tuned);
        return tuned->way;
    }
    tuner->trying = tuned;
    tuned->stamp[0] = collx_clock_ns();
    return way_of(tuned->tries++);
}

void collx_tuner_end(struct collx_tuner *tuner)
{
    if (tuner->trying)
        tuner->trying->stamp[1] = collx_clock_ns();
}
