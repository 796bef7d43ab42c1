#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 1024 };

static unsigned count_runs(const int64_t *offset, size_t size)
{
    unsigned runs = 1;

    for (size_t i = 1; i < size; i++)
        runs += offset[i] != offset[i - 1] + 1;
    return runs;
}

static void find_step(struct collx_layout *layout)
{
    const struct collx_run *run = layout->run;
    const unsigned runs = layout->runs;

    layout->step = runs > 1 ? run[1].at - run[0].at : layout->extent;
    layout->regular = layout->extent == (ptrdiff_t)runs * layout->step;
    for (unsigned i = 1; i < runs && layout->regular; i++)
        layout->regular = run[i].bytes == run[0].bytes && run[i].at - run[i - 1].at == layout->step;
}

struct collx_layout *collx_layout_create(const int64_t *offset, size_t size, ptrdiff_t extent)
{
    const unsigned runs = count_runs(offset, size);
    struct collx_layout *layout =
        runs > RUNS_MOST ? NULL : malloc(sizeof *layout + runs * sizeof layout->run[0]);

    if (!layout)
        return NULL;
    *layout = (struct collx_layout){.size = size, .extent = extent};
    for (size_t i = 0; i < size; i++) {
        if (!i || offset[i] != offset[i - 1] + 1)
            layout->run[layout->runs++] = (struct collx_run){.at = offset[i], .before = i};
        layout->run[layout->runs - 1].bytes++;
    }
    find_step(layout);
    return layout;
}

bool collx_layout_spans(const struct collx_layout *layout, size_t count, ptrdiff_t *first,
                        size_t *bytes)
{
    enum { PAGE_LEAST = 4096 };
    const size_t runs = layout->runs * count;

    *first = layout->run[0].at;
    *bytes = runs ? (runs - 1) * (size_t)layout->step + layout->run[0].bytes : 0;
    return layout->regular && layout->step > 0 && layout->step < PAGE_LEAST;
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

static void transfer_regular(const struct collx_layout *layout, const struct side *side,
                             size_t first, size_t bytes)
{
    const size_t each = layout->run[0].bytes, into = first % each;
    ptrdiff_t at = layout->run[0].at + (ptrdiff_t)(first / each) * layout->step;
    size_t done = 0;

    if (into) {
        done = each - into < bytes ? each - into : bytes;
        move(side, at + (ptrdiff_t)into, 0, done);
        at += layout->step;
    }
    const size_t whole = (bytes - done) / each;
    move_runs(side, at, layout->step, each, done, whole);
    at += (ptrdiff_t)whole * layout->step;
    done += whole * each;
    if (done < bytes)
        move(side, at, done, bytes - done);
}

/* The run of an element that has this one of its packed bytes. */
static unsigned run_with(const struct collx_layout *layout, size_t byte)
{
    unsigned low = 0, high = layout->runs;

    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
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
    if (layout->regular) {
        transfer_regular(layout, side, first, bytes);
        return;
    }
    ptrdiff_t element = (ptrdiff_t)(first / layout->size) * layout->extent;
    unsigned i = run_with(layout, first % layout->size);
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
