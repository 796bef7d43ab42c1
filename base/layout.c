#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 1024 };

static size_t count_runs(const uint16_t *offset, size_t size)
{
    size_t runs = 1;

    for (size_t i = 1; i < size; i++)
        runs += offset[i] != offset[i - 1] + 1;
    return runs;
}

/* Whether there are so many runs of the same length, at the same distance. */
static bool is_even(const uint16_t *offset, size_t size, size_t runs, ptrdiff_t *step)
{
    const size_t each = size / runs;
    bool even = size % runs == 0;

    *step = runs > 1 && even ? offset[each] - offset[0] : 0;
    for (size_t i = 1; i < runs && even; i++)
        even = offset[i * each] - offset[(i - 1) * each] == *step &&
               offset[i * each] != offset[i * each - 1] + 1;
    return even;
}

struct collx_layout *collx_layout_create(const uint16_t *offset, ptrdiff_t lowest, size_t size,
                                         ptrdiff_t extent)
{
    const size_t runs = count_runs(offset, size);
    ptrdiff_t step;
    const bool even = is_even(offset, size, runs, &step);
    const size_t kept = even ? 1 : runs;
    struct collx_layout *layout =
        kept > RUNS_MOST ? NULL : malloc(sizeof *layout + kept * sizeof layout->run[0]);

    if (!layout)
        return NULL;
    *layout = (struct collx_layout){
        .size = size, .extent = extent, .even = even, .step = step, .runs = runs};
    if (even) {
        layout->run[0] = (struct collx_run){.at = lowest + offset[0], .bytes = size / runs};
        return layout;
    }
    struct collx_run *run = layout->run - 1;
    for (size_t i = 0; i < size; i++) {
        if (!i || offset[i] != offset[i - 1] + 1)
            *++run = (struct collx_run){.at = lowest + offset[i], .before = i};
        run->bytes++;
    }
    return layout;
}

bool collx_layout_spans(const struct collx_layout *layout, size_t count, ptrdiff_t *first,
                        size_t *bytes)
{
    enum { PAGE_LEAST = 4096 };
    const ptrdiff_t each = (ptrdiff_t)layout->run[0].bytes;
    const ptrdiff_t span = (ptrdiff_t)(layout->runs - 1) * layout->step + each;

    *first = layout->run[0].at;
    *bytes = count ? (size_t)((ptrdiff_t)(count - 1) * layout->extent + span) : 0;
    return layout->even && layout->step >= 0 && layout->step - each < PAGE_LEAST &&
           layout->extent >= span && layout->extent - span < PAGE_LEAST;
}

/* Both ways: packed bytes are next to each other on one side, and this far apart on the other. */
struct side {
    char *gapped, *packed;
    bool packs;
};

static inline __attribute__((always_inline)) void move(const struct side *side, ptrdiff_t at,
                                                       size_t done, size_t bytes)
{
    if (side->packs)
        memcpy(side->packed + done, side->gapped + at, bytes);
    else
        memcpy(side->gapped + at, side->packed + done, bytes);
}

/* So many whole runs.  Of the usual lengths a memcpy is an instruction or two. */
static void move_runs(const struct side *side, ptrdiff_t at, ptrdiff_t step, size_t each,
                      size_t done, size_t count)
{
#define OF(length)                                                                                 \
    case length:                                                                                   \
        for (size_t i = 0; i < count; i++)                                                         \
            move(side, at + (ptrdiff_t)i * step, done + i * (length), (length));                   \
        break
    switch (each) {
        OF(1);
        OF(2);
        OF(4);
        OF(8);
        OF(12);
        OF(16);
        OF(24);
        OF(32);
        OF(64);
    default:
        for (size_t i = 0; i < count; i++)
            move(side, at + (ptrdiff_t)i * step, done + i * each, each);
    }
#undef OF
}

/* Of runs of the same length and distance. */
static void transfer_even(const struct side *side, ptrdiff_t at, ptrdiff_t step, size_t each,
                          size_t first, size_t done, size_t bytes)
{
    const size_t into = first % each, end = done + bytes;

    at += (ptrdiff_t)(first / each) * step;
    if (into) {
        const size_t some = each - into < bytes ? each - into : bytes;
        move(side, at + (ptrdiff_t)into, done, some);
        done += some;
        at += step;
    }
    const size_t whole = (end - done) / each;
    move_runs(side, at, step, each, done, whole);
    at += (ptrdiff_t)whole * step;
    done += whole * each;
    if (done < end)
        move(side, at, done, end - done);
}

static void transfer_elements(const struct collx_layout *layout, const struct side *side,
                              size_t first, size_t bytes)
{
    const size_t each = layout->run[0].bytes;
    ptrdiff_t element = (ptrdiff_t)(first / layout->size) * layout->extent;
    size_t into = first % layout->size, some;

    for (size_t done = 0; done < bytes; done += some, into = 0, element += layout->extent) {
        const size_t left = layout->size - into;
        some = left < bytes - done ? left : bytes - done;
        transfer_even(side, element + layout->run[0].at, layout->step, each, into, done, some);
    }
}

/* The run of an element that has this one of its packed bytes. */
static size_t run_with(const struct collx_layout *layout, size_t byte)
{
    size_t low = 0, high = layout->runs;

    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (layout->run[middle].before <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void transfer(const struct collx_layout *layout, const struct side *side, size_t first,
                     size_t bytes)
{
    if (layout->even && layout->runs == 1) {
        transfer_even(side, layout->run[0].at, layout->extent, layout->size, first, 0, bytes);
        return;
    }
    if (layout->even && layout->extent == (ptrdiff_t)layout->runs * layout->step) {
        transfer_even(side, layout->run[0].at, layout->step, layout->run[0].bytes, first, 0, bytes);
        return;
    }
    if (layout->even) {
        transfer_elements(layout, side, first, bytes);
        return;
    }
    ptrdiff_t element = (ptrdiff_t)(first / layout->size) * layout->extent;
    size_t i = run_with(layout, first % layout->size);
    size_t into = first % layout->size - layout->run[i].before, some;

    for (size_t done = 0; done < bytes; done += some, into = 0) {
        const struct collx_run *run = &layout->run[i];
        const size_t left = run->bytes - into;
        some = left < bytes - done ? left : bytes - done;
        move(side, element + run->at + (ptrdiff_t)into, done, some);
        if (++i == layout->runs) {
            i = 0;
            element += layout->extent;
        }
    }
}

void collx_layout_pack(const struct collx_layout *layout, const void *buf, size_t first,
                       size_t bytes, void *packed)
{
    const struct side side = {(char *)(uintptr_t)buf, packed, true};

    transfer(layout, &side, first, bytes);
}

void collx_layout_unpack(const struct collx_layout *layout, const void *packed, void *buf,
                         size_t first, size_t bytes)
{
    const struct side side = {buf, (char *)(uintptr_t)packed, false};

    transfer(layout, &side, first, bytes);
}
