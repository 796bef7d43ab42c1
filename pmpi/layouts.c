#include "pmpi/layouts.h"

#include "pmpi/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* An offset takes two bytes, each of which is packed in a turn of its own. */
enum { LONGEST = 1 << 16 };

/* To ask takes as long as to send some elements; of a type that a program makes anew for each
 * message it is never worth it. */
enum { WORTH = 8 };

/* Guards that there is one key, and that a type gets one layout alone: the second one would free
 * the first, which another thread has in its hands.  deleted() does not take it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int keyval = MPI_KEYVAL_INVALID;

/* What hangs on types that MPI has to pack, so that they are not looked at again. */
static struct collx_layout none;

/* Of what hangs on a type; else that is how many elements have been sent, fewer than WORTH. */
static bool is_layout(const void *value)
{
    return (uintptr_t)value >= WORTH;
}

static int deleted(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)extra;
    if (is_layout(value) && value != &none)
        free(value);
    return MPI_SUCCESS;
}

/* Pack one element of which each byte has one byte of its offset from the lowest. */
static bool pack_offsets(MPI_Datatype type, MPI_Aint lowest, unsigned char *element, size_t span,
                         int shift, unsigned char *packed, int size)
{
    int position = 0;

    for (size_t i = 0; i < span; i++)
        element[i] = (unsigned char)(i >> shift);
    return !pmpi.Pack((void *)((uintptr_t)element - (uintptr_t)lowest), 1, type, packed, size,
                      &position, collx_self()) &&
           position == size;
}

static struct collx_layout *probe(MPI_Datatype type, MPI_Count size)
{
    MPI_Aint lb, extent, lowest, span;
    struct collx_layout *layout = NULL;

    if (size < 1 || size > LONGEST || pmpi.Type_get_extent(type, &lb, &extent) ||
        pmpi.Type_get_true_extent(type, &lowest, &span) || span < 1 || span > LONGEST)
        return NULL;
    unsigned char *element = malloc((size_t)span), *low = malloc((size_t)size),
                  *high = malloc((size_t)size);
    uint16_t *offset = malloc((size_t)size * sizeof *offset);
    if (element && low && high && offset &&
        pack_offsets(type, lowest, element, (size_t)span, 0, low, (int)size) &&
        pack_offsets(type, lowest, element, (size_t)span, 8, high, (int)size)) {
        for (MPI_Count i = 0; i < size; i++)
            offset[i] = (uint16_t)(low[i] | high[i] << 8);
        layout = collx_layout_create(offset, lowest, (size_t)size, extent);
    }
    free(element);
    free(low);
    free(high);
    free(offset);
    return layout;
}

/* What hangs on the type; NULL: nothing. */
static void *find(MPI_Datatype type)
{
    /* Relaxed: a key is a number, and a thread that has MPI find what hangs there synchronises with
     * the one that had MPI hang it there. */
    const int key = atomic_load_explicit(&keyval, memory_order_relaxed);
    void *value;
    int found = 0;

    return key != MPI_KEYVAL_INVALID && !pmpi.Type_get_attr(type, key, &value, &found) && found
               ? value
               : NULL;
}

/* Under the lock, when so many elements had been sent: what hangs there now. */
static void *add(MPI_Datatype type, MPI_Count size, uintptr_t sent, int64_t count)
{
    int key = atomic_load_explicit(&keyval, memory_order_relaxed);
    struct collx_layout *layout = NULL;
    void *value;

    if (key == MPI_KEYVAL_INVALID) {
        if (pmpi.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, deleted, &key, NULL))
            return &none;
        atomic_store_explicit(&keyval, key, memory_order_relaxed);
    }
    if (count < WORTH && sent + (uintptr_t)count < WORTH) {
        value = (void *)(sent + (uintptr_t)count);
    } else {
        layout = probe(type, size);
        value = layout ? layout : &none;
    }
    if (!pmpi.Type_set_attr(type, key, value))
        return value;
    free(layout);
    return &none;
}

const struct collx_layout *collx_layout_of(MPI_Datatype type, MPI_Count size, int64_t count)
{
    void *value = find(type);

    if (__builtin_expect(!is_layout(value), 0) && count > 0) {
        pthread_mutex_lock(&lock);
        value = find(type);
        value = is_layout(value) ? value : add(type, size, (uintptr_t)value, count);
        pthread_mutex_unlock(&lock);
    }
    return is_layout(value) && value != &none ? value : NULL;
}

void collx_layouts_finish(void)
{
    atomic_store_explicit(&keyval, MPI_KEYVAL_INVALID, memory_order_relaxed);
}
