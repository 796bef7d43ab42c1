#include "algorithms/missing.h"

#include "base/process.h"

#include <stdio.h>

void collx_missing_add(struct collx_missing *missing, const struct collx_team *team, int rank)
{
    const pid_t process = rank < team->pids ? team->pid[rank] : 0;
    char *to = missing->ranks + missing->length;
    const size_t room = sizeof missing->ranks - missing->length;

    if (missing->count++ >= COLLX_MISSING_NAMED)
        return;
    missing->length +=
        (size_t)(process ? snprintf(to, room, " %d (process %d%s)", rank, (int)process,
                                    collx_process_has_ended(process) ? ", which has ended" : "")
                         : snprintf(to, room, " %d", rank));
}

const char *collx_missing_text(struct collx_missing *missing)
{
    snprintf(missing->text, sizeof missing->text, "rank%s%s%s", missing->count == 1 ? "" : "s",
             missing->ranks, missing->count > COLLX_MISSING_NAMED ? " and others" : "");
    return missing->text;
}
