/* Reductions whose bits tell in which order they were combined, against what combining rank 0, 1,
 * 2, … one after the other gives, from the very first call on a communicator.
 *
 * usage: order [CALLS]; prints a number made of all bits of all results, the same wherever the
 * ranks are.  tests/run_order.py runs it.
 */
#include "tests/programs/check.h"

#include <mpi.h>

#include <stdint.h>
#include <string.h>

/* Of longer vectors each rank checks its share: the digests say that all ranks have the same. */
enum { LONGEST = 140000, SHORT = 1000 };

static int rank, size;
static uint64_t all_bits = 14695981039346656037u;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* What rank `of` contributes as element `i` of call `call`: of either sign, and over so many
 * magnitudes that hardly any two orders of a sum have the same bits. */
static double operand(int of, int i, int call)
{
    uint64_t bits = mix(mix((uint64_t)of * 1000003 + (uint64_t)i) + (uint64_t)call);
    uint64_t magnitude = 1023 + bits % 24;
    double value;

    bits = (bits & 0x800fffffffffffff) | magnitude << 52;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void digest(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        all_bits = (all_bits ^ ((const unsigned char *)data)[i]) * 1099511628211u;
}

/* 2 x 2 matrices of integers modulo 2^32, which do not commute. */
struct matrix {
    uint32_t at[2][2];
};

static struct matrix product(const struct matrix *a, const struct matrix *b)
{
    struct matrix c;

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            c.at[i][j] = a->at[i][0] * b->at[0][j] + a->at[i][1] * b->at[1][j];
    return c;
}

static struct matrix matrix(int of, int i)
{
    uint64_t a = mix((uint64_t)of * 7919 + (uint64_t)i), b = mix(a);

    return (struct matrix){
        {{(uint32_t)a, (uint32_t)(a >> 32)}, {(uint32_t)b, (uint32_t)(b >> 32)}}};
}

static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        struct matrix *right = (struct matrix *)inout + i;
        *right = product((struct matrix *)in + i, right);
    }
}

/* Sums of float with an operation of the program's own: commutative, and not associative. */
static void add_floats(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((float *)inout)[i] = ((float *)in)[i] + ((float *)inout)[i];
}

static void sum_doubles(MPI_Comm comm, const int *of, int count, int call)
{
    static double send[LONGEST], sum[LONGEST];
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < count; i++)
        send[i] = operand(of[me], i, call);
    if (call % 3 == 0)
        memcpy(sum, send, (size_t)count * sizeof *sum);
    MPI_Allreduce(call % 3 ? send : MPI_IN_PLACE, sum, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = count < SHORT ? 0 : me; i < count; i += count < SHORT ? 1 : ranks) {
        double right = operand(of[0], i, call);
        for (int r = 1; r < ranks; r++)
            right += operand(of[r], i, call);
        CHECK(!memcmp(&right, &sum[i], sizeof right));
    }
    digest(sum, (size_t)count * sizeof *sum);
}

static void sum_floats(MPI_Comm comm, const int *of, int count, int call, MPI_Op op)
{
    static float send[LONGEST], sum[LONGEST];
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < count; i++)
        send[i] = (float)operand(of[me], i, call);
    MPI_Allreduce(send, sum, count, MPI_FLOAT, op, comm);
    for (int i = count < SHORT ? 0 : me; i < count; i += count < SHORT ? 1 : ranks) {
        float right = (float)operand(of[0], i, call);
        for (int r = 1; r < ranks; r++)
            right += (float)operand(of[r], i, call);
        CHECK(!memcmp(&right, &sum[i], sizeof right));
    }
    digest(sum, (size_t)count * sizeof *sum);
}

/* On a type with gaps, so that nobody gets by without packing. */
static void multiply_matrices(MPI_Comm comm, const int *of, int count, MPI_Op op)
{
    static struct matrix send[LONGEST], result[LONGEST];
    MPI_Datatype type;
    int me, ranks;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    MPI_Type_vector(2, 2, 2, MPI_UINT32_T, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < count; i++)
        send[i] = matrix(of[me], i);
    MPI_Allreduce(send, result, count, type, op, comm);
    for (int i = count < SHORT ? 0 : me; i < count; i += count < SHORT ? 1 : ranks) {
        struct matrix right = matrix(of[0], i);
        for (int r = 1; r < ranks; r++) {
            struct matrix next = matrix(of[r], i);
            right = product(&right, &next);
        }
        CHECK(!memcmp(&right, &result[i], sizeof right));
    }
    digest(result, (size_t)count * sizeof *result);
    MPI_Type_free(&type);
}

/* The sums must be such that another order shows, or these tests would show nothing. */
static void check_operands(void)
{
    int differ = 0;

    for (int i = 0; i < 1000; i++) {
        double forward = operand(0, i, 0), backward = operand(size - 1, i, 0), even = 0, odd = 0;
        for (int r = 1; r < size; r++) {
            forward += operand(r, i, 0);
            backward += operand(size - 1 - r, i, 0);
        }
        for (int r = 0; r < size; r += 2) {
            even += operand(r, i, 0);
            odd += r + 1 < size ? operand(r + 1, i, 0) : 0;
        }
        even += odd;
        differ +=
            memcmp(&forward, &backward, sizeof forward) && memcmp(&forward, &even, sizeof even);
    }
    CHECK(size < 4 || differ > 100);
}

/* `of`: which rank of the world each rank of the communicator stands for. */
static void all_of_them(MPI_Comm comm, const int *of, MPI_Op matrices, MPI_Op floats)
{
    static const int counts[] = {1, 7, 100, 0, 513, 5000, 70001, LONGEST};

    for (int call = 0; call < (int)(sizeof counts / sizeof *counts); call++) {
        sum_doubles(comm, of, counts[call], call);
        sum_floats(comm, of, counts[call], call, MPI_SUM);
        sum_floats(comm, of, counts[call], call, floats);
        if (counts[call] != LONGEST)
            multiply_matrices(comm, of, counts[call], matrices);
    }
}

/* One element of so many integers, which few algorithms take, or none: the call is right all the
 * same. */
static void large_element(int ints)
{
    enum { MOST = 50000 };
    static int send[MOST], result[MOST];
    MPI_Datatype type;
    MPI_Op op;

    CHECK(ints >= 4 && ints <= MOST);
    MPI_Type_contiguous(ints, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op); /* of the first four: what counts is that it arrives */
    for (int i = 0; i < 4; i++)
        send[i] = i % 3 == 0; /* the unit matrix */
    MPI_Allreduce(send, result, 1, type, op, MPI_COMM_WORLD);
    CHECK(result[0] == 1 && result[1] == 0 && result[2] == 0 && result[3] == 1);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* So many communicators, each used and freed. */
static void come_and_go(int count)
{
    int value, sum;

    for (int i = 0; i < count; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        value = rank + i;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == size * (size - 1) / 2 + size * i);
        MPI_Comm_free(&comm);
    }
}

/* All ranks have the same results. */
static void check_bits(void)
{
    uint64_t *bits = malloc((size_t)size * sizeof *bits);

    CHECK(bits);
    MPI_Gather(&all_bits, 1, MPI_UINT64_T, bits, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size; r++)
        CHECK(bits[r] == all_bits);
    free(bits);
}

int main(int argc, char **argv)
{
    MPI_Comm reversed;
    MPI_Op matrices, floats;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 3 && !strcmp(argv[1], "come-and-go")) {
        come_and_go(atoi(argv[2]));
    } else if (argc == 3 && !strcmp(argv[1], "large-element")) {
        large_element(atoi(argv[2]));
    } else {
        int *of = malloc((size_t)size * sizeof *of);
        CHECK(of);
        check_operands();
        MPI_Op_create(multiply, 0, &matrices);
        MPI_Op_create(add_floats, 1, &floats);
        for (int r = 0; r < size; r++)
            of[r] = r;
        all_of_them(MPI_COMM_WORLD, of, matrices, floats);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
        for (int r = 0; r < size; r++)
            of[r] = size - 1 - r;
        all_of_them(reversed, of, matrices, floats);
        MPI_Comm_free(&reversed);
        MPI_Op_free(&matrices);
        MPI_Op_free(&floats);
        free(of);
    }
    check_bits();
    if (rank == 0)
        printf("bits %016llx\ngood\n", (unsigned long long)all_bits);
    MPI_Finalize();
    return 0;
}
