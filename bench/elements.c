#include "bench/elements.h"

#include <complex.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NUMBER(name, ctype)                                                                        \
    static void put_##name(char *at, int value, int rank)                                          \
    {                                                                                              \
        (void)rank;                                                                                \
        *(ctype *)at = (ctype)value;                                                               \
    }                                                                                              \
    static int get_##name(const char *at)                                                          \
    {                                                                                              \
        return (int)*(const ctype *)at;                                                            \
    }
NUMBER(double, double)
NUMBER(float, float)
NUMBER(int16, int16_t)
NUMBER(int8, int8_t)
NUMBER(long_double, long double)

static void put_complex(char *at, int value, int rank)
{
    (void)rank;
    *(double complex *)at = value - value * I;
}

static int get_complex(const char *at)
{
    const double complex *number = (const double complex *)at;

    return creal(*number) == -cimag(*number) ? (int)creal(*number) : INT_MIN;
}

/* MPI_DOUBLE_INT: has a gap behind it. */
struct pair {
    double value;
    int rank;
};

enum { RANKS = 1 << 16 };

static void put_pair(char *at, int value, int rank)
{
    *(struct pair *)at = (struct pair){.value = value, .rank = rank};
}

static int get_pair(const char *at)
{
    const struct pair *pair = (const struct pair *)at;

    return (int)pair->value * RANKS + pair->rank;
}

/* The largest, of the lowest rank that has it. */
static int combined_pair(int (*value)(int rank, int i), int i, int ranks)
{
    int best = 0;

    for (int rank = 1; rank < ranks; rank++)
        best = value(rank, i) > value(best, i) ? rank : best;
    return value(best, i) * RANKS + best;
}

/* Every other double of sixteen. */
enum { PARTS = 8, STEP = 2 };
_Static_assert(PARTS *STEP * sizeof(double) <= ELEMENT_MOST, "it is the longest");
static const double gap = -77;

static void put_strided(char *at, int value, int rank)
{
    double *part = (double *)at;

    (void)rank;
    for (int i = 0; i < PARTS * STEP; i++)
        part[i] = i % STEP ? gap : value;
}

static int get_strided(const char *at)
{
    const double *part = (const double *)at;

    for (int i = 0; i < PARTS * STEP; i++)
        if (part[i] != (i % STEP ? gap : part[0]))
            return INT_MIN;
    return (int)part[0];
}

static void add_doubles(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const double *from = in;
    double *to = inout;

    (void)type;
    for (int i = 0; i < *count; i++)
        to[i] += from[i];
}

/* Of any number of parts. */
static void add_strided(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const double *from = in;
    double *to = inout;
    int size;

    MPI_Type_size(*type, &size);
    for (int i = 0; i < *count * size / (int)sizeof(double) * STEP; i += STEP)
        to[i] += from[i];
}

static MPI_Datatype make_fresh(int count)
{
    MPI_Datatype type;

    MPI_Type_vector(count * PARTS, 1, STEP, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* What MPI knows of them stands there from elements_init() on: in some MPI libraries handles are no
 * constants. */
enum { DOUBLE, FLOAT, INT16, INT8, LONG_DOUBLE, COMPLEX, PAIR, OWN, STRIDED, FRESH, KINDS };
static struct elements kinds[KINDS] = {
    [DOUBLE] = {.name = "numbers", .size = 8, .extent = 8, .put = put_double, .get = get_double},
    [FLOAT] = {.size = 4, .extent = 4, .put = put_float, .get = get_float},
    [INT16] = {.size = 2, .extent = 2, .put = put_int16, .get = get_int16},
    [INT8] = {.size = 1, .extent = 1, .put = put_int8, .get = get_int8, .wraps = true},
    [LONG_DOUBLE] = {.name = "long-double",
                     .size = sizeof(long double),
                     .extent = sizeof(long double),
                     .put = put_long_double,
                     .get = get_long_double},
    [COMPLEX] =
        {.name = "complex", .size = 16, .extent = 16, .put = put_complex, .get = get_complex},
    [PAIR] = {.name = "maxloc",
              .size = 12,
              .extent = sizeof(struct pair),
              .put = put_pair,
              .get = get_pair,
              .combined = combined_pair},
    [OWN] = {.name = "own", .size = 8, .extent = 8, .put = put_double, .get = get_double},
    [STRIDED] = {.name = "strided",
                 .size = PARTS * 8,
                 .extent = PARTS * STEP * 8,
                 .put = put_strided,
                 .get = get_strided},
    [FRESH] = {.name = "fresh",
               .size = PARTS * 8,
               .extent = PARTS * STEP * 8,
               .put = put_strided,
               .get = get_strided,
               .make = make_fresh},
};

void elements_list(char *list, size_t size)
{
    size_t used = 0;

    *list = 0;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].name && used < size)
            used +=
                (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "", kinds[i].name);
}

static struct elements *find(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].name && !strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

bool elements_exist(const char *name)
{
    return find(name);
}

void elements_init(void)
{
    MPI_Datatype vector;

    for (int i = 0; i < KINDS; i++) {
        kinds[i].type = MPI_DOUBLE;
        kinds[i].op = MPI_SUM;
    }
    kinds[FLOAT].type = MPI_FLOAT;
    kinds[INT16].type = MPI_INT16_T;
    kinds[INT8].type = MPI_INT8_T;
    kinds[LONG_DOUBLE].type = MPI_LONG_DOUBLE;
    kinds[COMPLEX].type = MPI_C_DOUBLE_COMPLEX;
    kinds[PAIR].type = MPI_DOUBLE_INT;
    kinds[PAIR].op = MPI_MAXLOC;
    MPI_Op_create(add_doubles, 1, &kinds[OWN].op);
    MPI_Op_create(add_strided, 1, &kinds[STRIDED].op);
    kinds[FRESH].op = kinds[STRIDED].op;
    MPI_Type_vector(PARTS, 1, STEP, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, PARTS * STEP * 8, &kinds[STRIDED].type);
    MPI_Type_commit(&kinds[STRIDED].type);
    MPI_Type_free(&vector);
}

void elements_finish(void)
{
    MPI_Op_free(&kinds[OWN].op);
    MPI_Op_free(&kinds[STRIDED].op);
    MPI_Type_free(&kinds[STRIDED].type);
}

size_t elements_round(const char *name, size_t bytes)
{
    const struct elements *elements = find(name);
    const size_t size = elements == &kinds[DOUBLE] ? 1 : elements->size;

    return (bytes + size - 1) / size * size;
}

const struct elements *elements_find(const char *name, bool reduced, size_t bytes)
{
    const struct elements *elements = find(name);

    if (elements != &kinds[DOUBLE])
        return elements;
    while (!reduced ? elements != &kinds[INT8] : bytes % elements->size)
        elements++;
    return elements;
}
