/* usage: port-threads SPEC
 *
 * One thread opens a port, and another one, which was there before, uses it: as in a program whose
 * communicator one thread has made, and others use.  scripts/guests runs it. */
#include "hw/wires.h"

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
    collx_wires_close(&wires);
    return error ? 1 : 0;
}
