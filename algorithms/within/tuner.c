#include "algorithms/within/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"

#include <stdio.h>

enum {
    /* A turn of a way.  The first call of it finds the caches as another way has left them, and
     * does not count.  The next ones may, too: while each is much faster than the best before,
     * more follow.  A Bcast of 16 MiB from buffer to buffer was seen to take 1.6, 1.2, 0.94 and
     * then 0.93 ms after others. */
    CALLS = 3,
    CALLS_MOST = 6,
    GAIN = 8, /* much faster: by one in so many */
    /* Two calls in a row that took half as long again as another way are enough of one: with three
     * ways the trial would cost a program as much as a dozen of its calls. */
    SLOW_CALLS = 2,
    /* Then, in a duel, so many more in a row, without a word between them.  It is timed from when
     * its first call ends, and counts if it takes longer than the other way's by one in so many. */
    ROW_CALLS = 3,
    DRAG = 8,
    /* A row of the other way counts, if of so many parts the program had all but one at most. */
    OWN_MOST = 4,
    /* Turns of each way in a look, and in a duel. */
    LOOK_TURNS = 2,
    DUEL_TURNS = COLLX_TUNER_TURNS,
    /* Calls until it looks again; then four times as many.  Never so often that it shows, even
     * where one way is ten times slower. */
    PATIENCE = 1024,
    PATIENCE_MOST = 65536,
    /* Bytes that calls of a size have passed before it looks first.  The memory that way 0 leads
     * through is cold until they have gone all round it, which would count against it; and
     * communicators that do not live long are spared the trying. */
    WARM = 1 << 18,
};

static unsigned way_of(const struct collx_tuned *tuned)
{
    return tuned->turn % COLLX_TUNER_WAYS;
}

static bool is_duel(const struct collx_tuned *tuned)
{
    return tuned->rival != tuned->way;
}

/* Of all ways. */
static unsigned turns(const struct collx_tuned *tuned)
{
    return COLLX_TUNER_WAYS * (is_duel(tuned) ? DUEL_TURNS : LOOK_TURNS);
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

static uint64_t best_turn(const struct collx_tuned *tuned, unsigned way)
{
    uint64_t best = UINT64_MAX;

    for (unsigned turn = 0; turn < COLLX_TUNER_TURNS; turn++)
        if (tuned->took[way][turn] < best)
            best = tuned->took[way][turn];
    return best;
}

/* Of the turns that it had; of one alone, that. */
static uint64_t second_best_turn(const struct collx_tuned *tuned, unsigned way)
{
    uint64_t best = UINT64_MAX, second = UINT64_MAX;

    for (unsigned turn = 0; turn < COLLX_TUNER_TURNS; turn++) {
        const uint64_t took = tuned->took[way][turn];
        if (took < best) {
            second = best;
            best = took;
        } else if (took < second)
            second = took;
    }
    return second < UINT64_MAX ? second : best;
}

/* What counts of a way.  A turn may be disturbed as a whole, so in a look it is the best one: of
 * Bcasts of 16 MiB every third look would miss the way that takes two thirds of the time of any
 * other.  But what a way costs may depend on what was in the caches before, for many calls: one
 * was seen to take 0.44 ms in its first turn and 0.8 ever after the next.  So in a duel it is
 * the second best of three. */
static uint64_t figure(const struct collx_tuned *tuned, unsigned way)
{
    return is_duel(tuned) ? second_best_turn(tuned, way) : best_turn(tuned, way);
}

/* Much slower than another way. */
static bool is_slow(const struct collx_tuned *tuned, unsigned way, uint64_t ns)
{
    for (unsigned other = 0; other < COLLX_TUNER_WAYS; other++)
        if (other != way && ns / 3 * 2 > best_turn(tuned, other))
            return true;
    return false;
}

_Static_assert(sizeof(struct collx_tuner_told) <= COLLX_INLINE, "it is told in one line");

/* What all have told: the whole of the last try, and of a row what was most on any rank. */
struct took {
    uint64_t ns, row_ns, row_between;
};

static struct took last_took(const struct collx_tuner *tuner)
{
    uint64_t begin = UINT64_MAX, end = 0;
    struct took took = {0};

    for (int rank = 0; rank < tuner->team->size; rank++) {
        struct collx_tuner_told told;
        memcpy(&told, collx_meeting_word(tuner->meeting, rank), sizeof told);
        const uint64_t row_ns = told.end - told.begin;
        begin = told.begin < begin ? told.begin : begin;
        end = told.end > end ? told.end : end;
        took.row_ns = row_ns > took.row_ns ? row_ns : took.row_ns;
        took.row_between = told.between > took.row_between ? told.between : took.row_between;
    }
    took.ns = end - begin;
    return took;
}

/* Go on to the next turn of a way that is not out. */
static void next_turn(struct collx_tuned *tuned)
{
    tuned->tries = tuned->slow = tuned->row = 0;
    do
        tuned->turn++;
    while (tuned->turn < turns(tuned) && tuned->out >> way_of(tuned) & 1);
}

static void account_try(struct collx_tuned *tuned, uint64_t ns)
{
    const unsigned way = way_of(tuned);
    uint64_t *took = &tuned->took[way][tuned->turn / COLLX_TUNER_WAYS];
    const bool gains = *took < UINT64_MAX && ns < *took - *took / GAIN;

    tuned->tries++;
    tuned->slow = is_slow(tuned, way, ns) ? tuned->slow + 1 : 0;
    if (tuned->slow == SLOW_CALLS)
        tuned->out |= (uint8_t)(1 << way);
    if (tuned->tries > 1 && ns < *took)
        *took = ns;
    const bool over = tuned->tries >= (gains ? CALLS_MOST : CALLS);
    if (tuned->slow == SLOW_CALLS || (over && !is_duel(tuned)))
        next_turn(tuned);
    else if (over)
        tuned->row = 1;
}

/* What came before this call was a try, or a row. */
static void account(struct collx_tuned *tuned, struct took took)
{
    const unsigned way = way_of(tuned);

    if (!tuned->row) {
        account_try(tuned, took.ns);
        return;
    }
    if (took.row_ns < tuned->row_took[way]) {
        tuned->row_took[way] = took.row_ns;
        tuned->row_between[way] = took.row_between;
    }
    next_turn(tuned);
}

/* Those of a look or a duel, of `ways`. */
static void begin_turns(struct collx_tuned *tuned, unsigned ways)
{
    tuned->looks = true;
    memset(tuned->took, 0xff, sizeof tuned->took);
    memset(tuned->row_took, 0xff, sizeof tuned->row_took);
    tuned->tries = tuned->slow = tuned->row = 0;
    tuned->out = (uint8_t)~ways;
    tuned->turn = (uint8_t)__builtin_ctz(ways);
}

static unsigned long long tenths_of_us(uint64_t ns)
{
    return (ns + 50) / 100;
}

/* Where the program works for longer between the calls than they could hold it up, what a row takes
 * tells how much it had to do, which may be another time as long. */
static bool tells(const struct collx_tuned *tuned, unsigned way)
{
    return tuned->row_between[way] <= tuned->row_took[way] / OWN_MOST * (OWN_MOST - 1);
}

/* For whoever wants to know why. */
static void explain(const struct collx_tuner *tuner, const struct collx_tuned *tuned)
{
    char text[256];
    size_t length = 0;

    for (unsigned way = 0; way < COLLX_TUNER_WAYS && length < sizeof text; way++) {
        const unsigned long long took = tenths_of_us(figure(tuned, way)),
                                 row = tenths_of_us(tuned->row_took[way] / (ROW_CALLS - 1));

        if (best_turn(tuned, way) < UINT64_MAX)
            length +=
                (size_t)snprintf(text + length, sizeof text - length, "%s%llu.%llu us %s",
                                 length ? ", " : "", took / 10, took % 10, tuner->way[way].say);
        if (tuned->row_took[way] < UINT64_MAX && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       " (%llu.%llu in a row%s)", row / 10, row % 10,
                                       tells(tuned, way) ? "" : ", most of it the program's");
    }
    collx_warn("%s%s of %zu KiB and more on %s: %s", tuner->team->ops->prefix, tuner->name,
               (tuner->least << (tuned - tuner->tuned)) / 1024, tuner->team->name, text);
}

/* A program that calls again and again would get on more slowly.  Call by call one that takes all
 * ranks until its end may be the faster one, but then a root cannot go ahead, and where others have
 * read what it sends from its own buffer, its next stores there have to fetch the lines back. */
static bool drags(const struct collx_tuned *tuned, unsigned way)
{
    for (unsigned other = 0; other < COLLX_TUNER_WAYS; other++)
        if (tuned->row_took[way] / (DRAG + 1) * DRAG > tuned->row_took[other] &&
            tells(tuned, other))
            return true;
    return false;
}

/* What a call costs a program that way. */
static uint64_t cost(const struct collx_tuner *tuner, const struct collx_tuned *tuned, unsigned way)
{
    uint64_t cost;

    if (drags(tuned, way) ||
        __builtin_mul_overflow(figure(tuned, way), 100 + tuner->way[way].burden, &cost))
        return UINT64_MAX;
    return cost;
}

/* After the last turn: either a duel begins, or it is settled. */
static void settle(const struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    const unsigned first = (unsigned)__builtin_ctz(tuned->ways);
    unsigned best = tuned->way;

    if (tuner->team->rank == 0 && collx_option_number(COLLX_OPTION_VERBOSE) > 1)
        explain(tuner, tuned);
    for (unsigned way = 0; way < COLLX_TUNER_WAYS; way++)
        if (cost(tuner, tuned, way) < cost(tuner, tuned, best))
            best = way;
    if (!is_duel(tuned)) {
        /* Only a duel has rows, and the program may have changed since this way won one. */
        if (best == tuned->way && !(tuned->out >> first & 1))
            best = first;
        if (best != tuned->way) {
            tuned->rival = (uint8_t)best;
            begin_turns(tuned, 1u << tuned->way | 1u << best);
            return;
        }
    }
    tuned->way = tuned->rival = (uint8_t)best;
    tuned->looks = false;
    tuned->calls = 0;
    tuned->patience = tuned->patience ? tuned->patience * 4 : PATIENCE;
    if (tuned->patience > PATIENCE_MOST)
        tuned->patience = PATIENCE_MOST;
}

/* All ranks hear of what came before this call.  Returns whether it is tried. */
static bool goes_on(struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    collx_meet(tuner->team, tuner->meeting, &tuned->told, sizeof tuned->told, tuner->name);
    if (tuned->looks)
        account(tuned, last_took(tuner));
    else
        begin_turns(tuned, tuned->ways);
    if (tuned->turn >= turns(tuned))
        settle(tuner, tuned);
    return tuned->looks;
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
    if (__builtin_expect(!tuned->looks && ++tuned->calls < tuned->patience, 1))
        return tuned->way;
    if (tuned->row && tuned->row < ROW_CALLS) {
        tuned->row++;
        tuned->told.between += collx_clock_ns() - tuned->told.end;
    } else if (!goes_on(tuner, tuned))
        return tuned->way;
    tuner->trying = tuned;
    if (!tuned->row)
        tuned->told.begin = collx_clock_ns();
    return way_of(tuned);
}

void collx_tuner_end(struct collx_tuner *tuner)
{
    struct collx_tuned *tuned = tuner->trying;

    if (!tuned)
        return;
    tuned->told.end = collx_clock_ns();
    if (tuned->row == 1) {
        tuned->told.begin = tuned->told.end;
        tuned->told.between = 0;
    }
}
