#include "base/job.h"

#include "base/file.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t mix(uint64_t hash, const char *text)
{
    return text ? collx_hash(hash, text, strlen(text) + 1) : hash; /* "7", "1" is not "71", "" */
}

static pid_t parent_of(pid_t process)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    collx_file_text(path, text, sizeof text);
    /* "pid (name) state parent …"; a name may hold anything. */
    const char *after = strrchr(text, ')');
    int parent = 0;
    return after && sscanf(after, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* MPICH's launcher leaves nothing in the environment that is equal on all nodes, but its helper on
 * each of them was told where the launcher listens. */
static bool mix_hydra(uint64_t *hash)
{
    pid_t process = getppid();

    /* Scripts and tools may stand in between. */
    for (int up = 0; up < 8 && process > 1; up++, process = parent_of(process)) {
        char path[64], command[2048];
        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)process);
        collx_file_text(path, command, sizeof command);
        char *port = strstr(command, "--control-port ");
        if (!port || !strstr(command, "hydra"))
            continue;
        port += strlen("--control-port ");
        port[strcspn(port, " ")] = 0;
        *hash = mix(*hash, port);
        return true;
    }
    return false;
}

/* What a launcher or a batch system has left in the environment.  One of them decides: what the
 * launcher itself was run in is often named on its own node alone, in the ranks that it starts
 * there without a helper.  So what names one run of a launcher comes before what names a batch job,
 * and a launcher before those that it may have been run by. */
static bool mix_environment(uint64_t *hash)
{
    static const char *const variables[][2] = {
        {"PMIX_NAMESPACE"}, /* mpirun of Open MPI; srun, jsrun and others with PMIx */
        {"PALS_APID"},      /* HPE's mpiexec */
        {"FLUX_JOB_ID"},
        {"PMI_JOBID"},                     /* srun with PMI-2: job and step */
        {"SLURM_JOB_ID", "SLURM_STEP_ID"}, /* srun without: several may run in one allocation */
        {"PBS_JOBID"},
        {"LSB_JOBID"},
    };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (!getenv(variables[i][0]))
            continue;
        *hash = mix(*hash, getenv(variables[i][0]));
        if (variables[i][1])
            *hash = mix(*hash, getenv(variables[i][1]));
        return true;
    }
    return false;
}

uint64_t collx_job_launched(void)
{
    uint64_t hash = COLLX_HASH_START;

    /* MPICH's first: a shell that srun began has the name of that run in its environment. */
    return mix_hydra(&hash) || mix_environment(&hash) ? hash : 0;
}
