#include "base/layout.h"

#include <stdlib.h>
#include <string.h>

void collx_layout_init(struct collx_layout *layout, struct collx_strip *strip, size_t most)
{
    *layout = (struct collx_layout){.items = 1, .strip = strip, .most = most};
}

struct collx_layout *collx_layout_create(size_t most)
{
    struct collx_layout *layout = malloc(sizeof *layout + most * sizeof layout->strip[0]);

    if (layout)
        collx_layout_init(layout, (struct collx_strip *)(layout + 1), most);
    return layout;
}

struct collx_layout *collx_layout_copy(const struct collx_layout *layout)
{
    struct collx_layout *copy = collx_layout_create(layout->strips);

    if (!copy)
        return NULL;
    struct collx_strip *strip = copy->strip;
    *copy = *layout;
    copy->most = layout->strips;
    copy->strip = memcpy(strip, layout->strip, layout->strips * sizeof *strip);
    return copy;
}

/* A run that begins where the last one of `strip` ends: both are one, and for what there was
 * before it in the strip, false. */
static bool extend(struct collx_strip *strip, ptrdiff_t *at, size_t *bytes)
{
    if (strip->runs == 1) {
        strip->bytes += *bytes;
        return true;
    }
    *at -= (ptrdiff_t)strip->bytes;
    *bytes += strip->bytes;
    if (--strip->runs == 1)
        strip->step = 0;
    return false;
}

bool collx_layout_add(struct collx_layout *layout, ptrdiff_t at, size_t bytes, ptrdiff_t step,
                      size_t runs)
{
    struct collx_strip *last = layout->strip + layout->strips - 1;

    if (!bytes || !runs)
        return true;
    if (step == (ptrdiff_t)bytes) {
        bytes *= runs;
        runs = 1;
    }
    layout->size += bytes * runs;
    if (layout->strips && runs == 1) {
        const ptrdiff_t end =
            last->at + (ptrdiff_t)(last->runs - 1) * last->step + (ptrdiff_t)last->bytes;
        if (at == end) {
            if (extend(last, &at, &bytes))
                return true;
        } else if (bytes == last->bytes &&
                   (last->runs == 1 || at == last->at + (ptrdiff_t)last->runs * last->step)) {
            if (last->runs++ == 1)
                last->step = at - last->at;
            return true;
        }
    }
    if (layout->strips == layout->most)
        return false;
    layout->strip[layout->strips++] = (struct collx_strip){.at = at,
                                                           .step = runs == 1 ? 0 : step,
                                                           .bytes = bytes,
                                                           .runs = runs,
                                                           .before = layout->size - bytes * runs};
    return true;
}

/* Runs of all items, if they are at the same distance throughout: how far; of one run, 0. */
static bool goes_on(const struct collx_layout *layout, ptrdiff_t *step)
{
    const struct collx_strip *strip = layout->strip;

    *step = strip->runs == 1 ? layout->extent : strip->step;
    return layout->strips == 1 && layout->extent == (ptrdiff_t)strip->runs * *step;
}

static bool add_elements(struct collx_layout *layout, const struct collx_layout *element,
                         ptrdiff_t at, size_t count)
{
    const size_t items = count * element->items;
    ptrdiff_t step;
    bool room = true;

    if (goes_on(element, &step))
        return collx_layout_add(layout, at + element->strip[0].at, element->strip[0].bytes, step,
                                items * element->strip[0].runs);
    for (size_t i = 0; i < items && room; i++, at += element->extent)
        for (size_t j = 0; j < element->strips && room; j++) {
            const struct collx_strip *strip = &element->strip[j];
            room = collx_layout_add(layout, at + strip->at, strip->bytes, strip->step, strip->runs);
        }
    return room;
}

bool collx_layout_add_blocks(struct collx_layout *layout, const struct collx_layout *element,
                             ptrdiff_t at, size_t elements, ptrdiff_t step, size_t count)
{
    const size_t items = elements * element->items;
    bool room = true;

    if (!element->size || !items)
        return true;
    /* Each block is a run: this does for all of them at once, since there may be millions. */
    if (element->strips == 1 && element->strip[0].runs == 1 &&
        (items == 1 || element->extent == (ptrdiff_t)element->size))
        return collx_layout_add(layout, at + element->strip[0].at, items * element->size, step,
                                count);
    for (size_t i = 0; i < count && room; i++, at += step)
        room = add_elements(layout, element, at, elements);
    return room;
}

void collx_layout_repeat(struct collx_layout *layout, size_t count)
{
    struct collx_strip *strip = layout->strip;
    ptrdiff_t step;

    if (layout->items > 1 || !layout->size || !goes_on(layout, &step)) {
        layout->items *= count;
        return;
    }
    const struct collx_strip one = *strip;
    const ptrdiff_t extent = layout->extent * (ptrdiff_t)count;
    collx_layout_init(layout, strip, layout->most);
    collx_layout_add(layout, one.at, one.bytes, step, one.runs * count);
    layout->extent = extent;
}

bool collx_layout_spans(const struct collx_layout *layout, size_t count, ptrdiff_t *first,
                        size_t *bytes)
{
    enum { PAGE_LEAST = 4096 };
    const struct collx_strip *strip = layout->strip;
    const ptrdiff_t each = (ptrdiff_t)strip->bytes;
    const ptrdiff_t span = (ptrdiff_t)(strip->runs - 1) * strip->step + each;
    const ptrdiff_t items = (ptrdiff_t)(count * layout->items);

    *first = strip->at;
    *bytes = count ? (size_t)((items - 1) * layout->extent + span) : 0;
    return layout->strips == 1 && strip->step >= 0 && strip->step - each < PAGE_LEAST &&
           layout->extent >= span && layout->extent - span < PAGE_LEAST;
}

/* Both ways: packed bytes are next to each other on one side, and this far apart on the other. */
struct side {
    char *gapped, *packed;
    bool packs;
};

/* Runs are short as a rule, and a call of memcpy takes longer than the copy of one. */
static inline __attribute__((always_inline)) void copy(char *to, const char *from, size_t bytes)
{
#define ENDS(length)                                                                               \
    do {                                                                                           \
        char head[length], tail[length];                                                           \
        memcpy(head, from, (length));                                                              \
        memcpy(tail, from + bytes - (length), (length));                                           \
        memcpy(to, head, (length));                                                                \
        memcpy(to + bytes - (length), tail, (length));                                             \
        return;                                                                                    \
    } while (0)
    if (!__builtin_constant_p(bytes)) {
        if (bytes >= 8 && bytes <= 16)
            ENDS(8);
        if (bytes >= 4 && bytes < 8)
            ENDS(4);
    }
#undef ENDS
    memcpy(to, from, bytes);
}

static inline __attribute__((always_inline)) void move(const struct side *side, ptrdiff_t at,
                                                       size_t done, size_t bytes)
{
    if (side->packs)
        copy(side->packed + done, side->gapped + at, bytes);
    else
        copy(side->gapped + at, side->packed + done, bytes);
}

/* So many whole runs.  Of the usual lengths a memcpy is an instruction or two.  What is in *side is
 * taken out of it first: for all that the compiler knows, its bytes are among those that change. */
static void move_runs(const struct side *side, ptrdiff_t at, ptrdiff_t step, size_t each,
                      size_t done, size_t count)
{
    char *gapped = side->gapped + at, *packed = side->packed + done;
    const bool packs = side->packs;

#define RUNS(length)                                                                               \
    do {                                                                                           \
        for (size_t i = 0; i < count && packs; i++)                                                \
            copy(packed + i * (length), gapped + (ptrdiff_t)i * step, (length));                   \
        for (size_t i = 0; i < count && !packs; i++)                                               \
            copy(gapped + (ptrdiff_t)i * step, packed + i * (length), (length));                   \
    } while (0)
#define OF(length)                                                                                 \
    case length:                                                                                   \
        RUNS(length);                                                                              \
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
        RUNS(each);
    }
#undef OF
#undef RUNS
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

/* The strip of an item that has this one of its packed bytes. */
static size_t strip_with(const struct collx_layout *layout, size_t byte)
{
    size_t low = 0, high = layout->strips;

    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (layout->strip[middle].before <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void transfer(const struct collx_layout *layout, const struct side *side, size_t first,
                     size_t bytes)
{
    ptrdiff_t step;

    if (goes_on(layout, &step)) {
        transfer_even(side, layout->strip[0].at, step, layout->strip[0].bytes, first, 0, bytes);
        return;
    }
    ptrdiff_t item = (ptrdiff_t)(first / layout->size) * layout->extent;
    size_t i = strip_with(layout, first % layout->size);
    size_t into = first % layout->size - layout->strip[i].before, some;

    for (size_t done = 0; done < bytes; done += some, into = 0) {
        const struct collx_strip *strip = &layout->strip[i];
        const size_t left = strip->bytes * strip->runs - into;
        some = left < bytes - done ? left : bytes - done;
        if (strip->runs == 1)
            move(side, item + strip->at + (ptrdiff_t)into, done, some);
        else
            transfer_even(side, item + strip->at, strip->step, strip->bytes, into, done, some);
        if (++i == layout->strips) {
            i = 0;
            item += layout->extent;
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
