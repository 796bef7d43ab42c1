/* Bad arguments give the error that the MPI library's own function gives, through the same error
 * handler, and the communicator is as good as before. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

static int in[4], out[4];
static MPI_Datatype uncommitted, derived;
static MPI_Op user;

static const struct cf_library collx = {
    .barrier = MPI_Barrier,
    .bcast = MPI_Bcast,
    .allreduce = MPI_Allreduce,
#if MPI_VERSION >= 4
    .bcast_c = MPI_Bcast_c,
    .allreduce_c = MPI_Allreduce_c,
#endif
};

#define CALL(name, ...)                                                                            \
    static int name(const struct cf_library *f, MPI_Comm comm)                                     \
    {                                                                                              \
        (void)comm;                                                                                \
        return f->__VA_ARGS__;                                                                     \
    }

CALL(barrier_no_comm, barrier(MPI_COMM_NULL))
CALL(bcast_negative_count, bcast(in, -1, MPI_INT, 0, comm))
CALL(bcast_negative_root, bcast(in, 1, MPI_INT, -1, comm))
CALL(bcast_high_root, bcast(in, 1, MPI_INT, cf_size, comm))
CALL(bcast_empty_high_root, bcast(in, 0, MPI_INT, cf_size, comm))
CALL(bcast_intercomm_root, bcast(in, 1, MPI_INT, MPI_ROOT, comm))
CALL(bcast_no_type, bcast(in, 1, MPI_DATATYPE_NULL, 0, comm))
CALL(bcast_uncommitted, bcast(in, 1, uncommitted, 0, comm))
CALL(bcast_no_comm, bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL))
CALL(allreduce_uncommitted, allreduce(in, out, 1, uncommitted, MPI_SUM, comm))
CALL(allreduce_no_op, allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm))
CALL(allreduce_empty_no_op, allreduce(in, out, 0, MPI_INT, MPI_OP_NULL, comm))
CALL(allreduce_sum_derived, allreduce(in, out, 1, derived, MPI_SUM, comm))
CALL(allreduce_empty_sum_derived, allreduce(in, out, 0, derived, MPI_SUM, comm))
CALL(allreduce_sum_byte, allreduce(in, out, 1, MPI_BYTE, MPI_SUM, comm))
CALL(allreduce_sum_packed, allreduce(in, out, 1, MPI_PACKED, MPI_SUM, comm))
CALL(allreduce_sum_pair, allreduce(in, out, 1, MPI_2INT, MPI_SUM, comm))
CALL(allreduce_maxloc_int, allreduce(in, out, 1, MPI_INT, MPI_MAXLOC, comm))
CALL(allreduce_band_double, allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm))
CALL(allreduce_max_complex, allreduce(in, out, 1, MPI_C_FLOAT_COMPLEX, MPI_MAX, comm))
CALL(allreduce_into_in_place, allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm))
CALL(allreduce_replace, allreduce(in, out, 1, MPI_INT, MPI_REPLACE, comm))
CALL(allreduce_same_buffer, allreduce(in, in, 2, MPI_INT, MPI_SUM, comm))
CALL(allreduce_same_buffer_pair, allreduce(in, in, 2, MPI_SHORT_INT, MPI_MINLOC, comm))
CALL(allreduce_same_buffer_derived, allreduce(in, in, 2, derived, user, comm))
CALL(allreduce_empty_same_buffer, allreduce(in, in, 0, MPI_INT, MPI_SUM, comm))
CALL(allreduce_no_op_of_rma, allreduce(in, out, 1, MPI_INT, MPI_NO_OP, comm))
CALL(allreduce_empty_into_in_place, allreduce(in, MPI_IN_PLACE, 0, MPI_INT, MPI_SUM, comm))
CALL(allreduce_no_comm, allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL))
#if MPI_VERSION >= 4
CALL(bcast_c_high_root, bcast_c(in, 1, MPI_INT, cf_size, comm))
CALL(allreduce_c_no_op, allreduce_c(in, out, 1, MPI_INT, MPI_OP_NULL, comm))
#endif
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION < 50000000
/* Where MPICH 5 fails an assertion. */
#define TRIES_NO_TYPE
CALL(allreduce_no_type, allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm))
#if MPI_VERSION >= 4
CALL(allreduce_c_no_type, allreduce_c(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm))
#endif
#endif
#ifdef OPEN_MPI
/* Where MPICH fails an assertion, or crashes. */
CALL(allreduce_negative_count, allreduce(in, out, -1, MPI_INT, MPI_SUM, comm))
CALL(bcast_in_place, bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm))
CALL(bcast_empty_in_place, bcast(MPI_IN_PLACE, 0, MPI_INT, 0, comm))
CALL(bcast_in_place_derived, bcast(MPI_IN_PLACE, 1, derived, 0, comm))
CALL(bcast_empty_no_type, bcast(in, 0, MPI_DATATYPE_NULL, 0, comm))
#else
/* Where Open MPI looks away, and crashes or does what it likes. */
CALL(bcast_null, bcast(NULL, 1, MPI_INT, 0, comm))
CALL(allreduce_one_same_buffer, allreduce(in, in, 1, MPI_INT, MPI_SUM, comm))
CALL(allreduce_from_null, allreduce(NULL, out, 1, MPI_INT, MPI_SUM, comm))
CALL(allreduce_to_null, allreduce(in, NULL, 1, MPI_INT, MPI_SUM, comm))
#endif

#define CASE(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    int (*call)(const struct cf_library *f, MPI_Comm comm);
} cases[] = {
    CASE(barrier_no_comm),
    CASE(bcast_negative_count),
    CASE(bcast_negative_root),
    CASE(bcast_high_root),
    CASE(bcast_empty_high_root),
    CASE(bcast_intercomm_root),
    CASE(bcast_no_type),
    CASE(bcast_uncommitted),
    CASE(bcast_no_comm),
    CASE(allreduce_uncommitted),
    CASE(allreduce_no_op),
    CASE(allreduce_empty_no_op),
    CASE(allreduce_sum_derived),
    CASE(allreduce_empty_sum_derived),
    CASE(allreduce_sum_byte),
    CASE(allreduce_sum_packed),
    CASE(allreduce_sum_pair),
    CASE(allreduce_maxloc_int),
    CASE(allreduce_band_double),
    CASE(allreduce_max_complex),
    CASE(allreduce_into_in_place),
    CASE(allreduce_replace),
    CASE(allreduce_same_buffer),
    CASE(allreduce_same_buffer_pair),
    CASE(allreduce_same_buffer_derived),
    CASE(allreduce_empty_same_buffer),
    CASE(allreduce_no_op_of_rma),
    CASE(allreduce_empty_into_in_place),
    CASE(allreduce_no_comm),
#if MPI_VERSION >= 4
    CASE(bcast_c_high_root),
    CASE(allreduce_c_no_op),
#endif
#ifdef TRIES_NO_TYPE
    CASE(allreduce_no_type),
#if MPI_VERSION >= 4
    CASE(allreduce_c_no_type),
#endif
#endif
#ifdef OPEN_MPI
    CASE(allreduce_negative_count),
    CASE(bcast_in_place),
    CASE(bcast_empty_in_place),
    CASE(bcast_in_place_derived),
    CASE(bcast_empty_no_type),
#else
    CASE(bcast_null),
    CASE(allreduce_one_same_buffer),
    CASE(allreduce_from_null),
    CASE(allreduce_to_null),
#endif
};

/* What it leaves in the buffer is not looked at. */
static void do_nothing(void *invec, void *inout, int *count, MPI_Datatype *type)
{
    (void)invec, (void)inout, (void)count, (void)type;
}

/* What the error handler was told. */
static int handled, handled_class;
static MPI_Comm handled_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handled++;
    handled_comm = *comm;
    MPI_Error_class(*code, &handled_class);
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

enum { MOST = 2 };

/* Calls of `count` elements, which are like some of the wrong ones. */
static void works(MPI_Comm comm, int count)
{
    int value[MOST] = {cf_rank, cf_rank}, sum[MOST];
    const int all = cf_size * (cf_size - 1) / 2;

    cf_ok(MPI_Barrier(comm));
    if (cf_ok(MPI_Allreduce(value, sum, count, MPI_INT, MPI_SUM, comm)))
        for (int i = 0; i < count; i++)
            if (sum[i] != all)
                cf_fail("MPI_Allreduce gives %d, expected %d", sum[i], all);
    for (int i = 0; i < count; i++)
        value[i] = cf_rank == cf_size - 1 ? 99 : 0;
    if (cf_ok(MPI_Bcast(value, count, MPI_INT, cf_size - 1, comm)))
        for (int i = 0; i < count; i++)
            if (value[i] != 99)
                cf_fail("MPI_Bcast gives %d, expected 99", value[i]);
}

static void returned(MPI_Comm comm)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int expected = class_of(cases[i].call(&cf_library, comm));

        for (int count = 0; count <= MOST; count++) {
            cf_case("%s, between calls of %d elements", cases[i].name, count);
            works(comm, count);
            int got = class_of(cases[i].call(&collx, comm));
            if (got != expected)
                cf_fail("error class %d, the library's own is %d", got, expected);
            works(comm, count);
        }
    }
}

static void own_handler(MPI_Comm comm)
{
    MPI_Errhandler errhandler;
    int times, class;
    MPI_Comm told;

    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(comm, errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
    MPI_Errhandler_free(&errhandler);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cf_case("%s, error handler of the user's own", cases[i].name);
        handled = 0;
        handled_class = MPI_SUCCESS;
        handled_comm = MPI_COMM_NULL;
        cases[i].call(&cf_library, comm);
        times = handled;
        class = handled_class;
        told = handled_comm;
        handled = 0;
        handled_class = MPI_SUCCESS;
        handled_comm = MPI_COMM_NULL;
        cases[i].call(&collx, comm);
        if (handled != times || handled_class != class || handled_comm != told)
            cf_fail("called %d times with class %d for the%s communicator; by the library's own "
                    "function %d times with class %d",
                    handled, handled_class, handled_comm == told ? "" : " wrong", times, class);
        works(comm, 1);
    }
}

void cf_test_errors(void)
{
    MPI_Errhandler world, self;
    MPI_Comm comm;

    /* Errors without a communicator of their own go to one of these two. */
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
    MPI_Type_contiguous(2, MPI_INT, &derived);
    MPI_Type_commit(&derived);
    MPI_Op_create(do_nothing, 1, &user);

    comm = cf_world_dup();
    returned(comm);
    own_handler(comm);
    MPI_Comm_free(&comm);

    MPI_Type_free(&uncommitted);
    MPI_Type_free(&derived);
    MPI_Op_free(&user);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
    MPI_Errhandler_free(&world);
    MPI_Errhandler_free(&self);
}
