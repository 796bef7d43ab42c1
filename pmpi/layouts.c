#include "pmpi/layouts.h"

#include "pmpi/decode.h"
#include "pmpi/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* An offset takes two bytes, each of which is packed in a turn of its own. */
enum { LONGEST = 1 << 16 };

/* Strips that room is made for at first, and more than which MPI is the one to pack. */
enum { STRIPS = 512, STRIPS_MOST = 1 << 15 };

/* To hang something on a type, and to take it off when the type is freed, takes about as long as to
 * send some elements.  A program that makes a type anew for each message must not pay that each
 * time, and one that keeps its types soon has paid. */
enum { TURNS = 16 };

/* To ask takes longer still: first, how many elements have been sent since hangs on the type. */
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

/* The runs of an element, from where each of its packed bytes lies: [size], from the lowest. */
static bool add_runs(struct collx_layout *layout, MPI_Aint lowest, MPI_Aint span,
                     const uint16_t *offset, MPI_Count size)
{
    bool room = true;

    for (MPI_Count i = 0, end; i < size && room; i = end) {
        for (end = i + 1; end < size && offset[end] == offset[end - 1] + 1;)
            end++;
        if (offset[end - 1] >= span)
            return false; /* MPI has packed something else */
        room = collx_layout_add(layout, lowest + offset[i], (size_t)(end - i), 0, 1);
    }
    return room;
}

static bool probe(MPI_Datatype type, MPI_Count size, struct collx_layout *layout)
{
    MPI_Aint lb, lowest, span;
    bool done = false;

    if (size > LONGEST || pmpi.Type_get_extent(type, &lb, &layout->extent) ||
        pmpi.Type_get_true_extent(type, &lowest, &span) || span < 1 || span > LONGEST)
        return false;
    unsigned char *element = malloc((size_t)span), *low = calloc(1, (size_t)size),
                  *high = calloc(1, (size_t)size);
    uint16_t *offset = malloc((size_t)size * sizeof *offset);
    if (element && low && high && offset &&
        pack_offsets(type, lowest, element, (size_t)span, 0, low, (int)size) &&
        pack_offsets(type, lowest, element, (size_t)span, 8, high, (int)size)) {
        for (MPI_Count i = 0; i < size; i++)
            offset[i] = (uint16_t)(low[i] | high[i] << 8);
        done = add_runs(layout, lowest, span, offset, size);
    }
    free(element);
    free(low);
    free(high);
    free(offset);
    return done;
}

/* Of a type that is going to be used more often; to be given to free(). */
static struct collx_layout *look(MPI_Datatype type, MPI_Count size, size_t most)
{
    struct collx_layout *room = collx_layout_create(most), *layout = NULL;

    if (!room)
        return NULL;
    bool done = collx_layout_decode(type, size, INT64_MAX, room);
    if (!done) {
        collx_layout_init(room, room->strip, most);
        done = probe(type, size, room);
    }
    if (done)
        layout = collx_layout_copy(room);
    free(room);
    return layout || most == STRIPS_MOST ? layout : look(type, size, 8 * most);
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

/* Under the lock, instead of what hangs there, which is no layout: what hangs there now. */
static void *hang(MPI_Datatype type, MPI_Count size, int64_t count,
                  const struct collx_layout *decoded, void *value)
{
    int key = atomic_load_explicit(&keyval, memory_order_relaxed);
    const uintptr_t sent = (uintptr_t)value + (count < WORTH ? (uintptr_t)count : WORTH);
    struct collx_layout *layout = NULL;

    if (key == MPI_KEYVAL_INVALID) {
        if (pmpi.Type_create_keyval(MPI_TYPE_NULL_COPY_FN, deleted, &key, NULL))
            return &none;
        atomic_store_explicit(&keyval, key, memory_order_relaxed);
    }
    if (!decoded && sent < WORTH) {
        value = (void *)sent;
    } else {
        layout = decoded ? collx_layout_copy(decoded) : look(type, size, STRIPS);
        value = layout ? layout : &none;
    }
    if (!pmpi.Type_set_attr(type, key, value))
        return value;
    free(layout);
    return &none;
}

/* Whether it is time to hang something on a type that nothing hangs on: after so many elements that
 * MPI had to pack, and calls with types that could be decoded. */
static bool is_turn(uint64_t elements)
{
    static _Atomic uint64_t since;
    /* Relaxed, and not one operation: threads that lose each other's count are late by a few. */
    const uint64_t now = atomic_load_explicit(&since, memory_order_relaxed);
    const bool turn = elements >= TURNS || now + elements >= TURNS;

    atomic_store_explicit(&since, turn ? 0 : now + elements, memory_order_relaxed);
    return turn;
}

const struct collx_layout *collx_layout_of(MPI_Datatype type, MPI_Count size, int64_t count,
                                           struct collx_layout_few *few)
{
    const struct collx_layout *decoded = NULL;
    void *value = find(type);

    if (__builtin_expect(!is_layout(value), 0)) {
        if (count < 1 || size < 1)
            return NULL;
        collx_layout_init(&few->layout, few->strip, COLLX_LAYOUT_FEW);
        if (!value && collx_layout_decode(type, size, count, &few->layout))
            decoded = &few->layout;
        if (!value && !is_turn(decoded ? 1 : (uint64_t)count))
            return decoded;
        pthread_mutex_lock(&lock);
        value = find(type);
        if (!is_layout(value))
            value = hang(type, size, count, decoded, value);
        pthread_mutex_unlock(&lock);
    }
    return is_layout(value) && value != &none ? value : decoded;
}

void collx_layouts_finish(void)
{
    atomic_store_explicit(&keyval, MPI_KEYVAL_INVALID, memory_order_relaxed);
}
