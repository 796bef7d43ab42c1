#include "base/job.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/launcher.h"
#include "base/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint64_t mix(uint64_t hash, const char *text)
{
    return text ? collx_hash(hash, text, strlen(text) + 1) : hash; /* "7", "1" is not "71", "" */
}

static pid_t parent_of(pid_t process)
{
    char state;
    int parent;

    return collx_process_find(process, &state, &parent) ? parent : 0;
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
        {"I_MPI_HYDRA_UUID"}, /* Intel's, whose helpers are told nothing that can be read */
        {"PMIX_NAMESPACE"},   /* mpirun of Open MPI; srun, jsrun and others with PMIx */
        {"PALS_APID"},        /* HPE's mpiexec */
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

uint64_t collx_job_unique(void)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        number = collx_clock_ns();
    return number | 1;
}

/* A program with sessions alone does not say how many processes it has: it is one where no launcher
 * tells of itself. */
bool collx_job_alone(int world_size)
{
    return world_size == 1 ||
           (!world_size && !collx_job_launched() && collx_launcher_local_ranks() <= 1);
}

bool collx_job_first_here(const char *what, int *claim)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    uint64_t job = collx_job_launched();

    /* What started this rank mostly has started the others here; if not, more of them speak. */
    job = job ? job : (uint64_t)getppid();
    /* Without a path, which begins with a NUL: one process alone can have the name, and nothing
     * stays behind. */
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "collx-%s-%u-%llx", what,
             (unsigned)getuid(), (unsigned long long)job);
    *claim = collx_fd_own(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (*claim < 0 || !bind(*claim, (struct sockaddr *)&name, sizeof name))
        return true;
    const bool first = errno != EADDRINUSE;
    close(*claim);
    *claim = -1;
    return first;
}
