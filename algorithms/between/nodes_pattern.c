/* Leaders that do a pattern, at a crossroads. */
#include "algorithms/between/crossroads.h"
#include "algorithms/between/nodes.h"

#include <stdio.h>
#include <stdlib.h>

struct way {
    struct collx_crossroads crossroads;
    char form[64];
};

static int way_connect(void *with, char *why, size_t size)
{
    struct way *way = with;

    return collx_crossroads_connect(&way->crossroads, why, size);
}

static int way_meet(void *with)
{
    struct way *way = with;

    return collx_crossroads_cross(&way->crossroads);
}

static void way_describe(const void *with, char *line, size_t size)
{
    const struct way *way = with;
    const struct collx_leaders *leaders = &way->crossroads.leaders;
    char text[COLLX_CROSSROADS_TEXT];

    if (leaders->nodes == 1)
        snprintf(line, size, "the ranks check in with rank %d, which releases them",
                 leaders->rank[0]);
    else
        snprintf(line, size, "%s%s; %s",
                 leaders->nodes < leaders->team->size ? "leaders of nodes do " : "", way->form,
                 collx_crossroads_describe(&way->crossroads, text, sizeof text));
}

static void way_destroy(void *with)
{
    struct way *way = with;

    collx_crossroads_finish(&way->crossroads);
    free(way);
}

int collx_nodes_attach_pattern(struct collx_team *team, const struct collx_pattern *pattern,
                               const char *form, int64_t over, void *memory,
                               struct collx_slot *slot)
{
    static const struct collx_nodes_way ops = {
        .connect = way_connect,
        .meet = way_meet,
        .describe = way_describe,
        .destroy = way_destroy,
    };
    struct way *way = calloc(1, sizeof *way);

    if (way) {
        snprintf(way->form, sizeof way->form, "%s", form);
        if (collx_crossroads_init(&way->crossroads, team, pattern, over)) {
            free(way);
            way = NULL;
        }
    }
    return collx_nodes_attach(team, &ops, way, memory, slot);
}
