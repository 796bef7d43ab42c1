/* Where the leaders of a team's nodes meet: they run a schedule, or send each other messages, by
 * what works for all of them.
 *
 * What that is they find out together: by segments, each leader opens the driver, makes a segment,
 * tells its address, and connects to others; after each step all hear whether it went well
 * everywhere.  If it did not, nobody uses this driver, and all know why.
 */
#ifndef COLLX_CROSSROADS_H
#define COLLX_CROSSROADS_H

#include "algorithms/between/leaders.h"
#include "algorithms/between/msg_runner.h"
#include "algorithms/between/seg_runner.h"
#include "algorithms/between/seg_streams.h"

/* What flags, and data, cross by. */
enum collx_over {
    COLLX_OVER_AUTO,
    COLLX_OVER_SHM,
    COLLX_OVER_SISCI,
    COLLX_OVER_RMA,
    COLLX_OVER_P2P
};
extern const char *const collx_over_words[];

#define COLLX_OVER_PARAM                                                                           \
    {                                                                                              \
        "over",                                                                                    \
            "what crosses between nodes by: segments of this driver, p2p: messages of the MPI "    \
            "library, auto: what is best of those that work",                                      \
            COLLX_OVER_AUTO, COLLX_OVER_AUTO, COLLX_OVER_P2P, collx_over_words                     \
    }

enum { COLLX_CROSSROADS_TEXT = COLLX_LEADERS_TEXT };

struct collx_crossroads {
    struct collx_team *team;
    int64_t over;
    struct collx_leaders leaders;
    int slots; /* of the pattern */
    int most;  /* messages at once; 0: it is for a schedule */
    struct collx_schedule schedule;
    int (*run)(struct collx_crossroads *crossroads);
    struct collx_seg_links links; /* where it is segments, */
    struct collx_seg_runner segments;
    struct collx_seg_streams streams;
    struct collx_msg_runner messages;   /* or messages, of a schedule */
    const char *by;                     /* the word for what it is */
    char passed[COLLX_CROSSROADS_TEXT]; /* why something better is not */
};

/* `over`: an enum collx_over.  The leader of a node is the lowest of its ranks.  Local.  0 or
 * -ENOMEM; then there is nothing to finish. */
int collx_crossroads_init(struct collx_crossroads *crossroads, struct collx_team *team,
                          const struct collx_pattern *pattern, int64_t over);

/* The same for leaders that send each other messages, `most` at once. */
int collx_crossroads_init_messages(struct collx_crossroads *crossroads, struct collx_team *team,
                                   int64_t over, int most);

/* Collective over the team, of which all ranks have done init().  0, or not 0 and why; as
 * collx_algorithm.connect. */
int collx_crossroads_connect(struct collx_crossroads *crossroads, char *why, size_t size);

/* Leaders: back when all of them have called it.  0, or what run() returns. */
static inline int collx_crossroads_cross(struct collx_crossroads *crossroads)
{
    return crossroads->run(crossroads);
}

/* Leaders that send messages: as collx_lender_ops.transfer, but that `rank` is a node, that at most
 * one goes to and comes from each, and that they may be changed.  0, or what run() returns. `what`:
 * the collective's name, for messages. */
int collx_crossroads_transfer(struct collx_crossroads *crossroads, struct collx_message *messages,
                              int count, const char *what);

/* In words, on a leader that is connected.  Returns `text`. */
const char *collx_crossroads_describe(const struct collx_crossroads *crossroads, char *text,
                                      size_t size);

/* Local; also where nothing was connected. */
void collx_crossroads_finish(struct collx_crossroads *crossroads);

#endif
