/* usage: port-threads SPEC
 *
 * One thread opens a port, and another one, which was there before, uses it: as in a program whose
 * communicator one thread has made, and others use.  Meanwhile nobody else gets it, by whatever
 * driver that goes by the address.  scripts/guests runs it. */
#include "hw/wires.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct collx_wires wires;
static int error;

static void *use(void *opened)
{
    uint32_t levels = 0;

    pthread_barrier_wait(opened);
    error = collx_wires_set(&wires, 0, 0); /* changes nothing */
    if (!error)
        error = collx_wires_get(&wires, &levels);
    return NULL;
}

/* Whether a port that is open can be had once more, by one of the drivers that lock its address. */
static bool is_free(const char *spec)
{
    static const char *const drivers[] = {"ioport", "devport"};
    const char *address = strchr(spec, ':');
    char again[64], why[512];

    for (int i = 0; i < 2 && strncmp(spec, "ppdev", 5) != 0; i++) {
        struct collx_wires second;
        snprintf(again, sizeof again, "%s%s", drivers[i], address ? address : "");
        int got = collx_wires_open(&second, again, why, sizeof why);
        if (got == -EBUSY)
            continue;
        fprintf(stderr, "%s beside %s: %s\n", again, spec, got ? why : "it can be had");
        if (!got)
            collx_wires_close(&second);
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    pthread_barrier_t opened;
    pthread_t thread;
    char why[512] = "";

    if (argc != 2 || pthread_barrier_init(&opened, NULL, 2) ||
        pthread_create(&thread, NULL, use, &opened)) {
        fprintf(stderr, "usage: port-threads SPEC\n");
        return 2;
    }
    error = collx_wires_open(&wires, argv[1], why, sizeof why);
    if (error) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    pthread_barrier_wait(&opened);
    pthread_join(thread, NULL);
    if (error)
        fprintf(stderr, "%s: the other thread cannot use it: %s\n", argv[1], strerror(-error));
    const bool shared = is_free(argv[1]);
    collx_wires_close(&wires);
    return error || shared ? 1 : 0;
}
