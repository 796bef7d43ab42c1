#include "tests/single_mail.h"

#include "algorithms/within/single.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void progress(void *ctx)
{
    (void)ctx;
}

size_t mail_space(void)
{
    return collx_single_space(2);
}

bool mail_passes(int rank, void *memory, uint64_t letters, size_t bytes)
{
    const struct collx_lender_ops ops = {
        .prefix = "MPI_", .stall_advice = "", .progress = progress};
    struct collx_team team = {.rank = rank, .size = 2, .ops = &ops, .name = "a test"};
    unsigned char *data = malloc(bytes);
    struct collx_single single;
    bool good = data != NULL;

    if (!good)
        return false;
    memset(data, rank ? 0 : 77, bytes);
    collx_single_init(&single, &team, memory, "Bcast");
    single.letters = letters;
    if (rank == 1)
        atomic_store(&single.part[1].answer.value, letters);
    /* No such process: whoever reads from it has to write. */
    single.pid = INT_MAX;
    collx_single_open(&single, data, NULL);
    uint64_t address = collx_single_view(&single, 0)->send;
    if (rank == 1)
        collx_single_read(&single, 0, data, address, bytes);
    collx_single_step(&single);
    collx_single_await_all(&single);
    for (size_t i = 0; i < bytes; i++)
        good = good && data[i] == 77;
    free(data);
    return good;
}
