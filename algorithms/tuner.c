#include "algorithms/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"

#include <stdio.h>

enum {
    /* Each way has two turns of three calls.  The first of a turn finds the caches as another way
     * has left them, and does not count. */
    TURNS = 2,
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
_Static_assert(TURNS *(CALLS - 1) == COLLX_TUNER_SAMPLES, "the calls that count");

static unsigned way_of(const struct collx_tuner *tuner, unsigned try)
{
    return tuner->first + try / CALLS % (tuner->ways - tuner->first);
}

static unsigned tries_of(const struct collx_tuner *tuner)
{
    return (tuner->ways - tuner->first) * TURNS * CALLS;
}

static struct collx_tuned *class_of(struct collx_tuner *tuner, size_t bytes)
{
    int class = __builtin_clzl(tuner->least) - __builtin_clzl(bytes);

    return &tuner->tuned[class < COLLX_TUNER_CLASSES ? class : COLLX_TUNER_CLASSES - 1];
}

/* Much slower than the best way so far. */
static bool is_slow(const struct collx_tuner *tuner, const struct collx_tuned *tuned, uint64_t ns)
{
    for (unsigned way = tuner->first; way < tuner->ways; way++)
        if (ns / 3 * 2 > tuned->took[way][1])
            return true;
    return false;
}

/* What all ranks told of a try. */
static void account(struct collx_tuner *tuner, struct collx_tuned *tuned, unsigned try)
{
    const unsigned way = way_of(tuner, try);
    uint64_t *took = tuned->took[way];
    uint64_t begin = UINT64_MAX, end = 0;

    for (int rank = 0; rank < tuner->team->size; rank++) {
        uint64_t stamp[2];
        memcpy(stamp, collx_meeting_word(tuner->meeting, rank), sizeof stamp);
        begin = stamp[0] < begin ? stamp[0] : begin;
        end = stamp[1] > end ? stamp[1] : end;
    }
    if (try % CALLS == 0)
        tuned->slow = 0;
    tuned->slow = is_slow(tuner, tuned, end - begin) ? tuned->slow + 1 : 0;
    if (tuned->slow == SLOW_CALLS)
        tuned->out |= (uint8_t)(1 << way);
    if (try % CALLS == 0)
        return;
    /* The largest is still none: it makes room, and the new one goes where it belongs. */
    int at = COLLX_TUNER_SAMPLES - 1;
    for (; at > 0 && took[at - 1] > end - begin; at--)
        took[at] = took[at - 1];
    took[at] = end - begin;
}

/* What would be tried next of ways that are out. */
static void skip(const struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    while (tuned->tries < tries_of(tuner) && tuned->out >> way_of(tuner, tuned->tries) & 1)
        tuned->tries += CALLS - tuned->tries % CALLS;
}

/* What counts of a way: its second best call, since one may be disturbed, and another one lucky; of
 * one that was given up there may be one alone. */
static uint64_t figure(const struct collx_tuned *tuned, unsigned way)
{
    const uint64_t *took = tuned->took[way];

    return took[1] < UINT64_MAX ? took[1] : took[0];
}

/* For whoever wants to know why. */
static void explain(const struct collx_tuner *tuner, const struct collx_tuned *tuned)
{
    char text[256];
    size_t length = 0;

    for (unsigned way = tuner->first; way < tuner->ways && length < sizeof text; way++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.1f us %s",
                                   way > tuner->first ? ", " : "", (double)figure(tuned, way) / 1e3,
                                   tuner->say[way]);
    collx_warn("MPI_%s of %zu KiB and more on %s: %s", tuner->name,
               (tuner->least << (tuned - tuner->tuned)) / 1024, tuner->team->name, text);
}

static void settle(const struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    tuned->settled = true;
    tuned->calls = 0;
    tuned->patience = tuned->patience ? tuned->patience * 4 : PATIENCE;
    if (tuned->patience > PATIENCE_MOST)
        tuned->patience = PATIENCE_MOST;
    tuned->way = (uint8_t)tuner->first;
    for (unsigned way = tuner->first + 1; way < tuner->ways; way++)
        if (figure(tuned, way) < figure(tuned, tuned->way))
            tuned->way = (uint8_t)way;
    if (tuner->team->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 1)
        explain(tuner, tuned);
}

unsigned collx_tuner_begin(struct collx_tuner *tuner, size_t bytes)
{
    struct collx_tuned *tuned = class_of(tuner, bytes);

    tuner->trying = NULL;
    if (__builtin_expect(tuned->passed < WARM && tuner->first == 0, 0)) {
        tuned->passed += bytes;
        return 0;
    }
    if (__builtin_expect(tuned->settled, 1)) {
        if (++tuned->calls < tuned->patience)
            return tuned->way;
        tuned->settled = false;
        tuned->tries = 0;
    }
    if (tuned->tries == 0) {
        memset(tuned->took, 0xff, sizeof tuned->took);
        tuned->slow = tuned->out = 0;
    }
    collx_meet(tuner->team, tuner->meeting, tuned->stamp, sizeof tuned->stamp, tuner->name);
    if (tuned->tries > 0)
        account(tuner, tuned, tuned->tries - 1u);
    skip(tuner, tuned);
    if (tuned->tries == tries_of(tuner)) {
        settle(tuner, tuned);
        return tuned->way;
    }
    tuner->trying = tuned;
    tuned->stamp[0] = collx_clock_ns();
    return way_of(tuner, tuned->tries++);
}

void collx_tuner_end(struct collx_tuner *tuner)
{
    if (tuner->trying)
        tuner->trying->stamp[1] = collx_clock_ns();
}
