/* Prints rounds that are made up as collx-bench prints what it has measured: as CSV, or with an
 * argument as text, with "limits" as those of two ranks.  Of one byte a round has times of both
 * routes, of two bytes none has, and of three a call takes no time.  What limits calls of one byte
 * is to read it, of two the exchange of flags. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

struct machine machine = {.size = 1, .cpus = 1};
struct route routes[ROUTES_MOST] = {{.name = "mpi"}, {.name = "collx"}};
int route_count = 2;
const char bench_plot[] = "";

const char *machine_state_name(enum state state)
{
    return state == STATE_NEAR ? "near" : "another";
}

const char *route_runs(const struct route *route, enum collx_kind kind, size_t bytes)
{
    (void)kind, (void)bytes;
    return route->name;
}

bool route_counts(int route, enum collx_kind kind, size_t bytes)
{
    (void)route, (void)kind, (void)bytes;
    return true;
}

void fail(const char *format, ...)
{
    (void)format;
    exit(1);
}

int main(int argc, char **argv)
{
    struct round both[] = {{.ns = {3000, 2000}, .bare = 100, .read = 500},
                           {.ns = {-1, 2000}, .bare = 100, .read = 500}};
    struct round none[] = {{.ns = {3000, -1}, .bare = 400, .read = 300},
                           {.ns = {-1, 2000}, .bare = 400, .read = 300}};
    struct round nothing[] = {{.ns = {3000, 0}}};
    struct point points[] = {{.kind = COLLX_BCAST, .bytes = 1, .rounds = 2, .round = both},
                             {.kind = COLLX_BCAST, .bytes = 2, .rounds = 2, .round = none},
                             {.kind = COLLX_BCAST, .bytes = 3, .rounds = 1, .round = nothing}};

    if (argc > 1 && !strcmp(argv[1], "limits"))
        machine.size = machine.cpus = 2;
    if (argc > 1)
        print_text(stdout, points, 3);
    else
        print_csv(stdout, points, 3);
    return 0;
}
