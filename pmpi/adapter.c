/* What the door opens: the adapter of one MPI implementation. */
#include "base/clock.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/options.h"
#include "pmpi/calls.h"
#include "pmpi/comm.h"
#include "pmpi/hold.h"
#include "pmpi/lifetime.h"
#include "pmpi/narrow.h"
#include "pmpi/progress.h"
#include "pmpi/requests.h"
#include "pmpi/setup.h"
#include "pmpi/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef OPEN_MPI
#define FAMILY "openmpi"
#else
#define FAMILY "mpich"
#endif

/* One rank speaks for all: what is in the environment is mostly the same for them. */
static void report(const char *message)
{
    if (collx_launcher_first())
        collx_warn("%s", message);
}

static void begin(void)
{
    collx_world_begun();
    /* Open MPI lets one communicator be made at a time, those of lower numbers first: later this
     * would wait for whatever the program has on its way, which may be waiting for us.  And with
     * MPICH it could not be without touching an error handler (collx_comm_hush). */
    collx_self_init(MPI_COMM_SELF);
    collx_trace_begin(collx_setup_begin());
}

static int init(int *argc, char ***argv)
{
    int error = pmpi.Init(argc, argv);

    if (!error)
        begin();
    return error;
}

static int init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = pmpi.Init_thread(argc, argv, required, provided);

    if (!error)
        begin();
    return error;
}

static int finalize(void)
{
    collx_world_ending();
    int error = pmpi.Finalize();
    collx_ended();
    return error;
}

/* MPI_Session is unknown to an MPI of version 3; the handles pass through as words. */
static int session_init(uintptr_t info, uintptr_t handler, void *session)
{
    int (*real)(uintptr_t, uintptr_t, void *) =
        (int (*)(uintptr_t, uintptr_t, void *))collx_door.real[COLLX_ENTRY_Session_init];
    int error = real(info, handler, session);

    if (!error) {
        collx_session_begun();
        collx_trace_set_start(collx_clock_ns());
    }
    return error;
}

static int session_finalize(void *session)
{
    int (*real)(void *) = (int (*)(void *))collx_door.real[COLLX_ENTRY_Session_finalize];

    collx_session_ending();
    int error = real(session);
    if (error)
        collx_session_begun();
    collx_ended();
    return error;
}

__attribute__((visibility("default"))) collx_adapter_open_fn collx_adapter_open;

int collx_adapter_open(const struct collx_door *door, char *why, size_t size)
{
    extern char **environ;
    int error;

    if (door->version != COLLX_DOOR_VERSION || door->entries != COLLX_ENTRIES) {
        snprintf(why, size,
                 "libcollx.so is of another version than this adapter; "
                 "install both from one release");
        return -EPROTO;
    }
    if (door->family && strcmp(door->family, FAMILY) != 0) {
        snprintf(why, size, "this one is for MPI libraries of another kind, " FAMILY "'s");
        return -EPROTO;
    }
    error = collx_pmpi_init(door, why, size);
    if (error)
        return error;
    /* Also where nothing is wanted of collx: the program has found these functions all the same. */
    collx_narrow_install();

    collx_options_load(environ, report);
    if (!collx_option_number(COLLX_OPTION_ENABLE))
        return 0;

    bool traced = *collx_option_text(COLLX_OPTION_TRACE);
    collx_calls_install(traced);
    if (traced) {
        collx_trace_load();
        collx_traced_install();
        collx_requests_install();
    }
    collx_comm_free_install();
    collx_hold_install();
    door->route[COLLX_ENTRY_Init] = (void *)init;
    door->route[COLLX_ENTRY_Init_thread] = (void *)init_thread;
    door->route[COLLX_ENTRY_Finalize] = (void *)finalize;
    if (door->real[COLLX_ENTRY_Session_init]) {
        door->route[COLLX_ENTRY_Session_init] = (void *)session_init;
        door->route[COLLX_ENTRY_Session_finalize] = (void *)session_finalize;
    }
    return 0;
}
