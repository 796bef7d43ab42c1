/* For programs that run as more ranks than there are cores: MPICH over UCX polls without ever
 * giving the core to the rank that it waits for, and a message takes a time slice of the scheduler.
 * Found in the program before the library's own, this gives way after polls that found nothing:
 * after many, for who yields to another job's process may wait for it for long. */
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

enum { EMPTY_POLLS = 500 };

unsigned ucp_worker_progress(void *worker) __attribute__((visibility("default")));

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*found)(void *);
    static _Thread_local unsigned empty;
    unsigned (*poll)(void *) = __atomic_load_n(&found, __ATOMIC_RELAXED);
    unsigned events;

    if (!poll) {
        *(void **)&poll = dlsym(RTLD_NEXT, "ucp_worker_progress");
        __atomic_store_n(&found, poll, __ATOMIC_RELAXED);
    }
    events = poll(worker);
    empty = events ? 0 : empty + 1;
    if (empty == EMPTY_POLLS) {
        empty = 0;
        sched_yield();
    }
    return events;
}
