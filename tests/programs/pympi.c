/* A python module with the handful of MPI calls that once.py makes, named as mpi4py names them.
 *
 * It stands for mpi4py where none is packaged (MPICH), and where one has to be relinked.  As with
 * mpi4py, python loads it with RTLD_LOCAL, so that the MPI library is in nobody else's sight.
 * Buffers hold doubles.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <mpi.h>

enum { DOUBLE = sizeof(double) };

static PyObject *outcome(int error)
{
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "MPI error %d", error);
    Py_RETURN_NONE;
}

static PyObject *get_rank(PyObject *self, PyObject *args)
{
    int rank;

    (void)self, (void)args;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return PyLong_FromLong(rank);
}

static PyObject *get_size(PyObject *self, PyObject *args)
{
    int size;

    (void)self, (void)args;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return PyLong_FromLong(size);
}

static PyObject *barrier(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    return outcome(MPI_Barrier(MPI_COMM_WORLD));
}

static PyObject *bcast(PyObject *self, PyObject *args)
{
    Py_buffer data;
    int root;

    (void)self;
    if (!PyArg_ParseTuple(args, "w*i", &data, &root))
        return NULL;
    int error = MPI_Bcast(data.buf, (int)(data.len / DOUBLE), MPI_DOUBLE, root, MPI_COMM_WORLD);
    PyBuffer_Release(&data);
    return outcome(error);
}

static PyObject *ibcast(PyObject *self, PyObject *args)
{
    Py_buffer data;
    int root;
    MPI_Request request;

    (void)self;
    if (!PyArg_ParseTuple(args, "w*i", &data, &root))
        return NULL;
    int error =
        MPI_Ibcast(data.buf, (int)(data.len / DOUBLE), MPI_DOUBLE, root, MPI_COMM_WORLD, &request);
    if (!error)
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    PyBuffer_Release(&data);
    return outcome(error);
}

static PyObject *allreduce(PyObject *self, PyObject *args)
{
    Py_buffer in, out;

    (void)self;
    if (!PyArg_ParseTuple(args, "y*w*", &in, &out))
        return NULL;
    int error =
        MPI_Allreduce(in.buf, out.buf, (int)(in.len / DOUBLE), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    return outcome(error);
}

static PyObject *gather(PyObject *self, PyObject *args)
{
    Py_buffer in, out;
    int root;

    (void)self;
    if (!PyArg_ParseTuple(args, "y*w*i", &in, &out, &root))
        return NULL;
    int count = (int)(in.len / DOUBLE);
    int error =
        MPI_Gather(in.buf, count, MPI_DOUBLE, out.buf, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    return outcome(error);
}

static PyObject *alltoall(PyObject *self, PyObject *args)
{
    Py_buffer in, out;
    int size;

    (void)self;
    if (!PyArg_ParseTuple(args, "y*w*", &in, &out))
        return NULL;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int count = (int)(in.len / DOUBLE) / size;
    int error = MPI_Alltoall(in.buf, count, MPI_DOUBLE, out.buf, count, MPI_DOUBLE, MPI_COMM_WORLD);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    return outcome(error);
}

static PyMethodDef methods[] = {
    {"Get_rank", get_rank, METH_NOARGS, NULL},
    {"Get_size", get_size, METH_NOARGS, NULL},
    {"Barrier", barrier, METH_NOARGS, NULL},
    {"Bcast", bcast, METH_VARARGS, NULL},
    {"Ibcast", ibcast, METH_VARARGS, NULL},
    {"Allreduce", allreduce, METH_VARARGS, NULL},
    {"Gather", gather, METH_VARARGS, NULL},
    {"Alltoall", alltoall, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pympi",
    .m_size = -1,
    .m_methods = methods,
};

static void finalize(void)
{
    MPI_Finalize();
}

PyMODINIT_FUNC PyInit_pympi(void)
{
    int provided;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided)) {
        PyErr_SetString(PyExc_ImportError, "MPI_Init_thread failed");
        return NULL;
    }
    Py_AtExit(finalize);
    return PyModule_Create(&module);
}
