/* Counting cases, reporting failures, and comparing notes between ranks without MPI. */
#include "conformance.h"

#include "bench/shared.h"
#include "tests/programs/set_up.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef OPEN_MPI
#define CF_LIBRARY "libmpi.so.40"
#else
#define CF_LIBRARY "libmpich.so.12"
#endif

enum {
    CF_BATCH = 256,      /* hashes that are compared at a time */
    CF_SAMPLE = 16,      /* one call of so many is also compared with the library's own */
    CF_LONG = 4096,      /* bytes of which no message is left out in part */
    CF_MESSAGES = 6,     /* failures that a rank describes, for each area */
    CF_STREAM = 1 << 20, /* streams begin anywhere in the first MiB of random bytes */
    CF_RANDOM = CF_DATA_MAX + CF_STREAM + 8,
};

struct cf_shared {
    struct {
        _Alignas(64) _Atomic uint64_t arrived;
        _Atomic uint64_t board[CF_BOARDS];
        uint64_t cases, failures;
        uint64_t hash[CF_BATCH];
    } rank[CF_RANKS_MAX];
};

struct cf_library cf_library;
int cf_rank, cf_size;
bool cf_quick, cf_in_part, cf_routed;

const int64_t cf_sizes[] = {
    0,       1,       2,       3,       7,       8,       9,       16,      31,      32,
    33,      51,      52,      53,      63,      64,      65,      104,     105,     128,
    129,     256,     312,     313,     511,     512,     513,     1023,    1024,    1025,
    2047,    2048,    2049,    4095,    4096,    4097,    8191,    8192,    8193,    16383,
    16384,   16385,   32767,   32768,   32769,   65535,   65536,   65537,   131071,  131072,
    131073,  262144,  300001,  524289,  1048573, 1048574, 1048575, 1048576, 1048577, 1048578,
    1048579, 2097153, 4194304, 5242880,
};
const size_t cf_sizes_count = sizeof cf_sizes / sizeof cf_sizes[0];

static struct cf_shared *shared;
static unsigned char *random_bytes;

static const char *area_name;
static uint64_t area_cases, area_failures, syncs;
static int area_seconds;
static double area_start;

/* Each thread has a case of its own; the main thread's is what the alarm shows. */
static _Thread_local char label[200];
static char *main_label;

static char batch_label[CF_BATCH][sizeof label];
static size_t batch;

static void *library_function(void *handle, const char *name)
{
    void *function = dlsym(handle, name);

    if (!function) {
        fprintf(stderr, "conformance: %s has no %s\n", CF_LIBRARY, name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return function;
}

static void library_init(void)
{
    void *handle = dlopen(CF_LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (!handle) {
        fprintf(stderr, "conformance: %s is not loaded\n", CF_LIBRARY);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    *(void **)&cf_library.barrier = library_function(handle, "PMPI_Barrier");
    *(void **)&cf_library.bcast = library_function(handle, "PMPI_Bcast");
    *(void **)&cf_library.allreduce = library_function(handle, "PMPI_Allreduce");
    *(void **)&cf_library.reduce_local = library_function(handle, "PMPI_Reduce_local");
#if MPI_VERSION >= 4
    *(void **)&cf_library.bcast_c = library_function(handle, "PMPI_Bcast_c");
    *(void **)&cf_library.allreduce_c = library_function(handle, "PMPI_Allreduce_c");
#endif
}

/* Say which case it was; what has been printed so far would not. */
static void on_signal(int number)
{
    char text[400];
    int length;

    if (number == SIGALRM)
        length = snprintf(text, sizeof text, "# rank %d: %s: not over within %d s: %s\n", cf_rank,
                          area_name, area_seconds, main_label);
    else
        length = snprintf(text, sizeof text, "# rank %d: %s: %s: %s\n", cf_rank, area_name,
                          strsignal(number), label);
    if (write(STDERR_FILENO, text, (size_t)length) < 0 || number == SIGALRM)
        _exit(3);
    signal(number, SIG_DFL);
    raise(number);
}

void *cf_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        fprintf(stderr, "conformance: no %zu bytes of memory\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    madvise(memory, size, MADV_HUGEPAGE); /* as far as there are any */
    return memory;
}

void cf_memory_free(void *memory, size_t size)
{
    munmap(memory, size);
}

void cf_harness_init(void)
{
    struct cf_random random = {1};

    main_label = label;
    library_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &cf_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cf_size);
    if (cf_size > CF_RANKS_MAX) {
        fprintf(stderr, "conformance: at most %d ranks\n", CF_RANKS_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    shared = shared_memory(sizeof *shared, cf_library.bcast, cf_library.allreduce);
    if (!shared) {
        fprintf(stderr, "conformance: all ranks have to be on one node\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    random_bytes = cf_memory(CF_RANDOM);
    for (size_t i = 0; i < CF_DATA_MAX + CF_STREAM; i += 8) {
        uint64_t value = cf_random_next(&random);

        memcpy(random_bytes + i, &value, 8);
    }
    signal(SIGALRM, on_signal);
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGABRT, on_signal);
}

void cf_harness_finish(void)
{
    cf_memory_free(random_bytes, CF_RANDOM);
}

void cf_area_begin(const char *name, int seconds_at_most)
{
    area_name = name;
    area_cases = area_failures = 0;
    area_seconds = seconds_at_most;
    area_start = MPI_Wtime();
    strcpy(main_label, "start");
    alarm((unsigned)seconds_at_most);
}

int cf_area_end(void)
{
    uint64_t cases = 0, failures = 0;

    strcpy(main_label, "end");
    cf_same_flush();
    shared->rank[cf_rank].cases = area_cases;
    shared->rank[cf_rank].failures = area_failures;
    cf_sync();
    for (int i = 0; i < cf_size; i++) {
        cases += shared->rank[i].cases;
        failures += shared->rank[i].failures;
    }
    cf_sync();
    alarm(0);
    if (cf_rank == 0) {
        printf("area %s cases %ju failures %ju seconds %.1f\n", area_name, (uintmax_t)cases,
               (uintmax_t)failures, MPI_Wtime() - area_start);
        fflush(stdout);
    }
    return failures > INT32_MAX ? INT32_MAX : (int)failures;
}

void cf_case(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(label, sizeof label, format, arguments);
    va_end(arguments);
    __atomic_fetch_add(&area_cases, 1, __ATOMIC_RELAXED);
}

void cf_fail(const char *format, ...)
{
    va_list arguments;
    char text[200];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (__atomic_fetch_add(&area_failures, 1, __ATOMIC_RELAXED) < CF_MESSAGES)
        fprintf(stderr, "# rank %d of %d: %s: %s: %s\n", cf_rank, cf_size, area_name, label, text);
}

bool cf_ok(int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (rc == MPI_SUCCESS)
        return true;
    MPI_Error_string(rc, text, &length);
    cf_fail("returned %d: %s", rc, text);
    return false;
}

void cf_sync(void)
{
    syncs++;
    /* Sequentially consistent, so that plain words written before are seen by those who leave. */
    atomic_store(&shared->rank[cf_rank].arrived, syncs);
    for (int i = 0; i < cf_size; i++)
        while (atomic_load(&shared->rank[i].arrived) < syncs)
            sched_yield();
}

void cf_same(uint64_t hash)
{
    shared->rank[cf_rank].hash[batch] = hash;
    strcpy(batch_label[batch], label);
    if (++batch == CF_BATCH)
        cf_same_flush();
}

void cf_same_flush(void)
{
    size_t count = batch;

    batch = 0;
    cf_sync();
    for (size_t i = 0; i < count; i++)
        if (shared->rank[cf_rank].hash[i] != shared->rank[0].hash[i]) {
            strcpy(label, batch_label[i]);
            cf_fail("the result differs from rank 0's");
        }
    cf_sync();
}

bool cf_turn(uint64_t seed)
{
    struct cf_random random = {seed};

    return !cf_routed || cf_random_below(&random, (uint64_t)cf_size) == (uint64_t)cf_rank;
}

void cf_show(int board, uint64_t value)
{
    atomic_store(&shared->rank[cf_rank].board[board], value);
}

uint64_t cf_seen(int board, int rank)
{
    return atomic_load(&shared->rank[rank].board[board]);
}

bool cf_sampled(void)
{
    static uint64_t asked;

    return ++asked % CF_SAMPLE == 0;
}

bool cf_left_out(uint64_t seed)
{
    return cf_size > 4 && (seed + (uint64_t)cf_size) % 5 != 0;
}

bool cf_left_out_in_part(uint64_t seed, int64_t bytes)
{
    struct cf_random random = {seed};

    return cf_in_part && bytes < CF_LONG && (cf_random_next(&random) + (uint64_t)cf_size) % 3 != 0;
}

void cf_warm_up(MPI_Comm comm)
{
    use_until_set_up(comm);
}

MPI_Comm cf_world_dup(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    cf_warm_up(comm);
    return comm;
}

uint64_t cf_random_next(struct cf_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t cf_random_below(struct cf_random *random, uint64_t limit)
{
    return cf_random_next(random) % limit;
}

uint64_t cf_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;

    for (; size >= 8; size -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 0x9fb21c651e98df25;
        hash ^= hash >> 32;
    }
    for (; size > 0; size--, bytes++)
        hash = (hash ^ *bytes) * 0x100000001b3;
    return hash;
}

const unsigned char *cf_stream(uint64_t seed, int rank)
{
    struct cf_random random = {seed * 64 + (uint64_t)rank};

    return random_bytes + cf_random_below(&random, CF_STREAM);
}
