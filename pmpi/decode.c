#include "pmpi/decode.h"

#include "pmpi/types.h"

#include <limits.h>
#include <stdlib.h>

/* Types within types within types; nobody does that so often, and each takes stack. */
enum { DEEPEST = 8 };

/* Open MPI makes a copy of each type within a type that it tells of.  In that time it packs so many
 * bytes.  MPICH makes none; and when there are some 770 types, MPI_Pack of MPICH 4.0 takes other
 * bytes of one that is a copy of another, or a row of such, though its collectives do not. */
#ifdef MPICH
enum { SHORT = 0 };
#else
enum { SHORT = 256 };
#endif

/* Arguments for which no memory is allocated. */
enum { FEW_INTEGERS = 40, FEW_ADDRESSES = 20, FEW_TYPES = 16 };

/* The arguments of the call that made a type. */
struct contents {
    int combiner;
    int integers, addresses, types;
    bool large; /* those of a large-count constructor, which are not had as integers */
    int *integer;
    MPI_Aint *address;
    MPI_Datatype *type;
    void *memory;
    int few_integers[FEW_INTEGERS];
    MPI_Aint few_addresses[FEW_ADDRESSES];
    MPI_Datatype few_types[FEW_TYPES];
};

static bool contents_allocate(struct contents *contents, bool may_allocate)
{
    const size_t addresses = (size_t)contents->addresses * sizeof *contents->address;
    const size_t types = (size_t)contents->types * sizeof *contents->type;
    const size_t integers = (size_t)contents->integers * sizeof *contents->integer;

    contents->memory = NULL;
    contents->integer = contents->few_integers;
    contents->address = contents->few_addresses;
    contents->type = contents->few_types;
    if (contents->integers <= FEW_INTEGERS && contents->addresses <= FEW_ADDRESSES &&
        contents->types <= FEW_TYPES)
        return true;
    char *memory = may_allocate ? malloc(addresses + types + integers) : NULL;
    if (!memory)
        return false;
    contents->memory = memory;
    contents->address = (MPI_Aint *)memory;
    contents->type = (MPI_Datatype *)(memory + addresses);
    contents->integer = (int *)(memory + addresses + types);
    return true;
}

/* Whether there is a type within it that is not predefined, to judge by what there would be no
 * point in making of a predefined one. */
static bool has_another(int combiner)
{
    return combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_RESIZED ||
           combiner == MPI_COMBINER_CONTIGUOUS;
}

/* How many arguments. */
static bool contents_count(struct contents *contents, MPI_Datatype type)
{
    MPI_Count integers, addresses, counts, types;

    contents->large = false;
    if (!pmpi.Type_get_envelope_c)
        return !pmpi.Type_get_envelope(type, &contents->integers, &contents->addresses,
                                       &contents->types, &contents->combiner);
    /* The other one, and all that it leads to, must not be asked about some types then. */
    if (pmpi.Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &contents->combiner))
        return false;
    contents->large = counts || integers > INT_MAX || addresses > INT_MAX || types > INT_MAX;
    contents->integers = (int)integers;
    contents->addresses = (int)addresses;
    contents->types = (int)types;
    return true;
}

/* Of a type that no call has made, one that is predefined, there are no arguments. */
static bool contents_init(struct contents *contents, MPI_Datatype type, bool may_allocate,
                          int depth)
{
    if (!contents_count(contents, type) || contents->large ||
        contents->combiner == MPI_COMBINER_NAMED || depth == DEEPEST ||
        (depth == DEEPEST - 1 && has_another(contents->combiner)) ||
        !contents_allocate(contents, may_allocate))
        return false;
    if (!pmpi.Type_get_contents(type, contents->integers, contents->addresses, contents->types,
                                contents->integer, contents->address, contents->type))
        return true;
    free(contents->memory);
    return false;
}

/* Whether a call has made it, so that it is counted who has it. */
static bool is_made(MPI_Datatype type)
{
    struct contents of;

    return !collx_datatype_predefined(type) && contents_count(&of, type) &&
           of.combiner != MPI_COMBINER_NAMED && of.combiner != MPI_COMBINER_F90_INTEGER &&
           of.combiner != MPI_COMBINER_F90_REAL && of.combiner != MPI_COMBINER_F90_COMPLEX;
}

static void contents_finish(struct contents *contents)
{
    for (int i = 0; i < contents->types; i++)
        if (is_made(contents->type[i]))
            pmpi.Type_free(&contents->type[i]);
    free(contents->memory);
}

static bool decode(MPI_Datatype type, struct collx_layout *layout, int depth);

/* Blocks of elements, where the first is in so many bytes and the next ones that far apart. */
static bool add_blocks(struct collx_layout *layout, const struct collx_layout *element, MPI_Aint at,
                       MPI_Aint elements, MPI_Aint step, int count)
{
    return collx_layout_add_blocks(layout, element, at, (size_t)elements, step, (size_t)count);
}

/* A dimension of a subarray. */
struct dimension {
    MPI_Aint pitch; /* bytes from one index to the next */
    int taken;      /* indices */
};

/* Blocks of so many elements: one for each index in each of the dimensions, fastest first. */
static bool add_dimensions(struct collx_layout *layout, const struct collx_layout *element,
                           MPI_Aint at, MPI_Aint elements, const struct dimension *dimension,
                           int count)
{
    bool room = true;

    if (count <= 1)
        return add_blocks(layout, element, at, elements, count ? dimension[0].pitch : 0,
                          count ? dimension[0].taken : 1);
    const struct dimension *slowest = &dimension[count - 1];
    for (int i = 0; i < slowest->taken && room; i++, at += slowest->pitch)
        room = add_dimensions(layout, element, at, elements, dimension, count - 1);
    return room;
}

static bool decode_subarray(const int *integer, const struct collx_layout *element,
                            struct collx_layout *layout)
{
    const int count = integer[0];
    const int *size = integer + 1, *taken = size + count, *start = taken + count;
    const bool slowest_first = start[count] == MPI_ORDER_C;
    struct dimension dimension[DEEPEST];
    MPI_Aint at = 0, pitch = collx_layout_distance(element, 1), elements = 1;
    int dimensions = 0;
    bool whole = true;

    for (int i = 0; i < count; i++) {
        const int j = slowest_first ? count - 1 - i : i;
        at += start[j] * pitch;
        /* As long as the faster ones are whole, this one adds to what lies together; one index of a
         * dimension is none. */
        if (whole)
            elements *= taken[j];
        else if (dimensions == DEEPEST)
            return false;
        else if (taken[j] > 1)
            dimension[dimensions++] = (struct dimension){pitch, taken[j]};
        whole = whole && taken[j] == size[j];
        pitch *= size[j];
    }
    return add_dimensions(layout, element, at, elements, dimension, dimensions);
}

static bool decode_struct(const struct contents *contents, struct collx_layout *element,
                          struct collx_layout *layout, int depth)
{
    const int *length = contents->integer + 1;
    bool done = true;

    for (int i = 0; i < contents->integer[0] && done; i++) {
        const struct collx_datatype *known = collx_datatype_predefined(contents->type[i]);
        /* So are most, and types that are made anew for each message have to be quick. */
        if (known && known->contiguous) {
            done = collx_layout_add(layout, contents->address[i],
                                    (size_t)length[i] * (size_t)known->size, 0, 1);
            continue;
        }
        collx_layout_init(element, element->strip, element->most);
        done = decode(contents->type[i], element, depth) &&
               add_blocks(layout, element, contents->address[i], length[i], 0, 1);
    }
    return done;
}

/* Blocks each of which has a place of its own, in bytes or elements, and a length of its own or all
 * the same. */
static bool decode_indexed(const struct contents *contents, const struct collx_layout *element,
                           struct collx_layout *layout, bool in_bytes, bool same)
{
    const int count = contents->integer[0], *length = contents->integer + 1;
    const int *place = length + (same ? 1 : count);
    const MPI_Aint extent = collx_layout_distance(element, 1);
    bool room = true;

    for (int i = 0; i < count && room; i++)
        room = add_blocks(layout, element, in_bytes ? contents->address[i] : place[i] * extent,
                          length[same ? 0 : i], 0, 1);
    return room;
}

/* One that is made of blocks of the same type. */
static bool decode_blocks(const struct contents *contents, const struct collx_layout *element,
                          struct collx_layout *layout)
{
    const int *integer = contents->integer;

    switch (contents->combiner) {
    case MPI_COMBINER_VECTOR:
        return add_blocks(layout, element, 0, integer[1],
                          integer[2] * collx_layout_distance(element, 1), integer[0]);
    case MPI_COMBINER_HVECTOR:
        return add_blocks(layout, element, 0, integer[1], contents->address[0], integer[0]);
    case MPI_COMBINER_INDEXED:
        return decode_indexed(contents, element, layout, false, false);
    case MPI_COMBINER_HINDEXED:
        return decode_indexed(contents, element, layout, true, false);
    case MPI_COMBINER_INDEXED_BLOCK:
        return decode_indexed(contents, element, layout, false, true);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return decode_indexed(contents, element, layout, true, true);
    case MPI_COMBINER_SUBARRAY:
        return decode_subarray(integer, element, layout);
    default:
        return false;
    }
}

static bool decode_contents(const struct contents *contents, struct collx_layout *layout, int depth)
{
    struct collx_layout_few few;
    struct collx_layout *element = &few.layout;
    bool done;

    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return decode(contents->type[0], layout, depth);
    case MPI_COMBINER_CONTIGUOUS:
        if (!decode(contents->type[0], layout, depth))
            return false;
        collx_layout_repeat(layout, (size_t)contents->integer[0]);
        return true;
    default:
        break;
    }
    if (layout->most > COLLX_LAYOUT_FEW)
        element = collx_layout_create(layout->most);
    else
        collx_layout_init(element, few.strip, COLLX_LAYOUT_FEW);
    if (!element)
        return false;
    if (contents->combiner == MPI_COMBINER_STRUCT)
        done = decode_struct(contents, element, layout, depth);
    else
        done = contents->types == 1 && decode(contents->type[0], element, depth) &&
               (!element->size || decode_blocks(contents, element, layout));
    if (element != &few.layout)
        free(element);
    return done;
}

static bool decode(MPI_Datatype type, struct collx_layout *layout, int depth)
{
    const struct collx_datatype *known = collx_datatype_predefined(type);
    struct contents contents;
    MPI_Aint lb, extent;

    if (known) {
        layout->extent = known->size;
        return known->contiguous && collx_layout_add(layout, 0, (size_t)known->size, 0, 1);
    }
    if (!contents_init(&contents, type, layout->most > COLLX_LAYOUT_FEW, depth))
        return false;
    const bool done = decode_contents(&contents, layout, depth + 1);
    contents_finish(&contents);
    if (!done || pmpi.Type_get_extent(type, &lb, &extent))
        return false;
    if (layout->items == 1)
        layout->extent = extent;
    return collx_layout_distance(layout, 1) == extent;
}

bool collx_layout_decode(MPI_Datatype type, MPI_Count size, int64_t count,
                         struct collx_layout *layout)
{
    const bool is_short = size <= SHORT && size && count <= SHORT / size;

    return decode(type, layout, is_short ? DEEPEST - 1 : 0) && layout->size &&
           layout->size * layout->items == (size_t)size;
}
