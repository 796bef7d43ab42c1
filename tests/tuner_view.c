#include "tests/tuner_view.h"

#include "base/clock.h"

static uint64_t now = 1;

/* The tuner's own code, by another clock and so by other names. */
static uint64_t told_clock_ns(void)
{
    return now;
}
#define collx_clock_ns told_clock_ns
#define collx_tuner_begin told_tuner_begin
#define collx_tuner_end told_tuner_end
#include "algorithms/within/tuner.c" // NOLINT(bugprone-suspicious-include)

static const struct collx_lender_ops ops = {.prefix = ""};
static struct collx_flag lines[2];
static struct collx_team team;
static struct collx_meeting meeting;
static struct collx_tuner tuner;

void tuner_start(unsigned allowed)
{
    static const struct collx_way ways[] = {
        {.say = "one"},   {.say = "two"},
        {.say = "three"}, {.say = "four", .least = TUNER_LONG, .burden = 50},
        {.say = NULL},
    };

    memset(lines, 0, sizeof lines);
    team = (struct collx_team){.size = 1, .name = "a test", .ops = &ops};
    collx_meeting_init(&meeting, lines);
    collx_tuner_init(&tuner, &team, &meeting, TUNER_SHORT, ways, "Test");
    if (allowed)
        tuner.allowed = allowed;
}

unsigned tuner_call(size_t bytes, const uint64_t took[4], const uint64_t later[4])
{
    unsigned way = told_tuner_begin(&tuner, bytes);

    now += took[way];
    told_tuner_end(&tuner);
    now += later[way];
    return way;
}
