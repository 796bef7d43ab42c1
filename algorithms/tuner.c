#include "algorithms/tuner.h"

#include "base/clock.h"

enum {
    TRIES_EACH = 3,
    /* Calls until it looks again: often enough for a job, and too rarely to show in its time, even
     * where one way is ten times slower. */
    LOOK_AGAIN = 4096,
};

static struct collx_tuned *class_of(struct collx_tuner *tuner, size_t bytes)
{
    int class = __builtin_clzl(tuner->least) - __builtin_clzl(bytes);

    return &tuner->tuned[class < COLLX_TUNER_CLASSES ? class : COLLX_TUNER_CLASSES - 1];
}

/* What all ranks told of the last try, which went `way`. */
static void account(struct collx_tuner *tuner, struct collx_tuned *tuned, unsigned way)
{
    uint64_t begin = 0, end = 0;

    for (int rank = 0; rank < tuner->team->size; rank++) {
        uint64_t stamp[2];
        memcpy(stamp, collx_meeting_word(tuner->meeting, rank), sizeof stamp);
        begin = stamp[0] > begin ? stamp[0] : begin;
        end = stamp[1] > end ? stamp[1] : end;
    }
    tuned->best[way] = end - begin < tuned->best[way] ? end - begin : tuned->best[way];
}

static void settle(const struct collx_tuner *tuner, struct collx_tuned *tuned)
{
    tuned->settled = true;
    tuned->calls = 0;
    tuned->way = (uint8_t)tuner->first;
    for (unsigned way = tuner->first + 1; way < tuner->ways; way++)
        if (tuned->best[way] < tuned->best[tuned->way])
            tuned->way = (uint8_t)way;
}

unsigned collx_tuner_begin(struct collx_tuner *tuner, size_t bytes)
{
    struct collx_tuned *tuned = class_of(tuner, bytes);

    tuner->trying = NULL;
    if (__builtin_expect(tuned->settled, 1)) {
        if (++tuned->calls < LOOK_AGAIN)
            return tuned->way;
        tuned->settled = false;
        tuned->tries = 0;
    }
    if (tuned->tries == 0)
        memset(tuned->best, 0xff, sizeof tuned->best);
    collx_meet(tuner->team, tuner->meeting, tuned->stamp, sizeof tuned->stamp, tuner->name);
    if (tuned->tries > 0)
        account(tuner, tuned, tuner->first + (tuned->tries - 1u) / TRIES_EACH);
    if (tuned->tries == (tuner->ways - tuner->first) * TRIES_EACH) {
        settle(tuner, tuned);
        return tuned->way;
    }
    tuner->trying = tuned;
    tuned->stamp[0] = collx_clock_ns();
    return tuner->first + tuned->tries++ / TRIES_EACH;
}

void collx_tuner_end(struct collx_tuner *tuner)
{
    if (tuner->trying)
        tuner->trying->stamp[1] = collx_clock_ns();
}
