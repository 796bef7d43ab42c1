/* MPI_Allreduce of numbers that cannot be added up exactly, and of those that are none. */
#include "conformance.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 5000 };

/* One floating-point type: elements are read and written as long double. */
struct real {
    const char *name;
    MPI_Datatype handle;
    size_t size;
    long double epsilon;
};

static long double load(const struct real *real, const void *elements, int i)
{
    long double value;

    if (real->size == sizeof(float))
        return ((const float *)elements)[i];
    if (real->size == sizeof(double))
        return ((const double *)elements)[i];
    memcpy(&value, (const char *)elements + (size_t)i * sizeof value, sizeof value);
    return value;
}

static void store(const struct real *real, void *elements, int i, long double value)
{
    if (real->size == sizeof(float))
        ((float *)elements)[i] = (float)value;
    else if (real->size == sizeof(double))
        ((double *)elements)[i] = (double)value;
    else
        ((long double *)elements)[i] = value;
}

static uint64_t hash(const struct real *real, const void *elements, int count)
{
    uint64_t value = 0;

    for (int i = 0; i < count; i++)
        value = cf_hash(value, (const char *)elements + (size_t)i * real->size,
                        real->size > sizeof(double) ? 10 : real->size);
    return value;
}

static long double ordinary(const struct cf_op *op, uint64_t seed, int rank, int i)
{
    uint32_t bits;
    long double value;

    memcpy(&bits, cf_stream(seed, rank) + i, sizeof bits);
    value = (long double)bits / 4294967296.0L;
    return op->kind == CF_PROD ? 0.5L + value : value - 0.25L;
}

static void rounding(MPI_Comm comm, const struct real *real, const struct cf_op *op, int count,
                     bool in_place, uint64_t seed)
{
    static long double in[COUNT_MAX], out[COUNT_MAX];
    void *send = in_place ? out : in;
    int rc;

    cf_case("MPI_Allreduce, %s, %d x %s, rounded%s", op->name, count, real->name,
            in_place ? ", in place" : "");
    for (int i = 0; i < count; i++)
        store(real, send, i, ordinary(op, seed, cf_rank, i));
    rc = MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, real->handle, op->handle, comm);
    if (!cf_ok(rc)) {
        cf_same(0);
        return;
    }
    cf_same(hash(real, out, count));
    if (!cf_turn(seed))
        return;
    for (int i = 0; i < count; i++) {
        long double expected = op->kind == CF_PROD ? 1 : 0, scale = 0, x, got = load(real, out, i);
        long double stored[1];

        for (int r = 0; r < cf_size; r++) {
            store(real, stored, 0, ordinary(op, seed, r, i));
            x = load(real, stored, 0);
            expected = op->kind == CF_PROD ? expected * x : expected + x;
            scale = op->kind == CF_PROD ? expected : scale + fabsl(x);
        }
        if (!(fabsl(got - expected) <= cf_size * real->epsilon * fabsl(scale))) {
            cf_fail("element %d: %.20Lg, expected %.20Lg", i, got, expected);
            return;
        }
    }
}

static long double special(uint64_t seed, int rank, int i, bool nan_too)
{
    const long double values[] = {0.0L,
                                  -0.0L,
                                  1.5L,
                                  -1.5L,
                                  (long double)INFINITY,
                                  -(long double)INFINITY,
                                  FLT_TRUE_MIN,
                                  -3.0L,
                                  (long double)NAN};

    return values[cf_stream(seed, rank)[i] % (nan_too ? 9 : 8)];
}

/* What all ranks give for one element. */
struct inputs {
    bool nan, plus, minus; /* there is a NaN, an infinity */
    bool normal;           /* … a number next to which a denormal may be lost */
    long double sum, max, min;
};

static struct inputs inputs_of(uint64_t seed, int i, bool nan_too)
{
    struct inputs all = {.max = -(long double)INFINITY, .min = (long double)INFINITY};

    for (int r = 0; r < cf_size; r++) {
        long double x = special(seed, r, i, nan_too);

        all.nan |= isnan(x);
        all.plus |= isinf(x) && x > 0;
        all.minus |= isinf(x) && x < 0;
        all.normal |= fabsl(x) > 1;
        all.sum += x;
        all.max = x > all.max ? x : all.max;
        all.min = x < all.min ? x : all.min;
    }
    return all;
}

static bool is_input(long double got, uint64_t seed, int i, bool nan_too)
{
    for (int r = 0; r < cf_size; r++) {
        long double x = special(seed, r, i, nan_too);

        if (x == got || (isnan(x) && isnan(got)))
            return true;
    }
    return false;
}

static void specials(MPI_Comm comm, const struct real *real, const struct cf_op *op, int count,
                     bool nan_too, uint64_t seed)
{
    static long double in[COUNT_MAX], out[COUNT_MAX];

    cf_case("MPI_Allreduce, %s, %d x %s, infinities, zeros%s", op->name, count, real->name,
            nan_too ? " and NaNs" : "");
    for (int i = 0; i < count; i++)
        store(real, in, i, special(seed, cf_rank, i, nan_too));
    if (!cf_ok(MPI_Allreduce(in, out, count, real->handle, op->handle, comm))) {
        cf_same(0);
        return;
    }
    /* MPICH's own MPI_MIN gives one rank a NaN and another a number. */
    cf_same(nan_too && !cf_routed ? 0 : hash(real, out, count));
    if (!cf_turn(seed))
        return;
    for (int i = 0; i < count; i++) {
        struct inputs all = inputs_of(seed, i, nan_too);
        long double got = load(real, out, i);
        bool right;

        /* What MAX and MIN make of a NaN depends on the order: any of the inputs will do. */
        if (op->kind != CF_SUM)
            right = all.nan ? is_input(got, seed, i, nan_too)
                            : got == (op->kind == CF_MAX ? all.max : all.min);
        else if (all.nan || (all.plus && all.minus))
            right = isnan(got);
        else if (all.plus || all.minus)
            right = isinf(got) && (got > 0) == all.plus;
        else
            right = all.normal ? fabsl(got - all.sum) <= 1e-30L : got == all.sum;
        if (!right) {
            cf_fail("element %d: %Lg is wrong", i, got);
            return;
        }
    }
}

static void complex_sums(MPI_Comm comm, int count)
{
    static double in[2 * COUNT_MAX], out[2 * COUNT_MAX];

    cf_case("MPI_Allreduce, MPI_SUM, %d x MPI_C_DOUBLE_COMPLEX, rounded", count);
    for (int i = 0; i < 2 * count; i++)
        in[i] = (double)ordinary(&cf_op[CF_SUM], 77, cf_rank, i);
    if (!cf_ok(MPI_Allreduce(in, out, count, MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm))) {
        cf_same(0);
        return;
    }
    cf_same(cf_hash(0, out, 2 * (size_t)count * sizeof *out));
    for (int i = 0; i < 2 * count; i++) {
        double expected = 0;

        for (int r = 0; r < cf_size; r++)
            expected += (double)ordinary(&cf_op[CF_SUM], 77, r, i);
        if (!(fabs(out[i] - expected) <= cf_size * cf_size * DBL_EPSILON)) {
            cf_fail("part %d: %.17g, expected %.17g", i, out[i], expected);
            return;
        }
    }
}

void cf_test_floats(void)
{
    const struct real reals[] = {
        {"MPI_FLOAT", MPI_FLOAT, sizeof(float), FLT_EPSILON},
        {"MPI_DOUBLE", MPI_DOUBLE, sizeof(double), DBL_EPSILON},
        {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, sizeof(long double), LDBL_EPSILON},
    };
    static const int counts[] = {1, 3, 16, 1000, COUNT_MAX};
    size_t step = cf_quick ? 3 : 1;
    MPI_Comm comm = cf_world_dup();
    uint64_t seed = 70000;
    int rounding_mode = fegetround();

    for (size_t t = 0; t < sizeof reals / sizeof reals[0]; t++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c += step, seed += 8) {
            rounding(comm, &reals[t], &cf_op[CF_SUM], counts[c], false, seed);
            rounding(comm, &reals[t], &cf_op[CF_SUM], counts[c], true, seed + 1);
            rounding(comm, &reals[t], &cf_op[CF_PROD], counts[c], false, seed + 2);
            for (int nan_too = 0; nan_too < 2; nan_too++) {
                specials(comm, &reals[t], &cf_op[CF_SUM], counts[c], nan_too, seed + 3);
                specials(comm, &reals[t], &cf_op[CF_MAX], counts[c], nan_too, seed + 4);
                specials(comm, &reals[t], &cf_op[CF_MIN], counts[c], nan_too, seed + 5);
            }
        }
    complex_sums(comm, 1);
    complex_sums(comm, COUNT_MAX);
    cf_case("the rounding mode is what it was");
    if (fegetround() != rounding_mode)
        cf_fail("it is %d and was %d", fegetround(), rounding_mode);
    MPI_Comm_free(&comm);
}
