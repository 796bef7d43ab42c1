/* Layouts of datatypes from the calls that made them.
 *
 * The library tells those for a tenth of a microsecond, which is what it takes to make a type: so
 * this does for types that a program makes anew for each message, and for those whose elements are
 * long.
 */
#ifndef COLLX_DECODE_H
#define COLLX_DECODE_H

#include "base/layout.h"
#include "pmpi/pmpi.h"

/* The layout of a type that may be used for communication and has `size` bytes, > 0, added up in
 * *layout, which is empty.  False: it has more strips than there is room for, or was made in a way
 * that is not known here, such as by a large-count constructor.  Or it takes longer than to have
 * MPI pack `count` elements. */
bool collx_layout_decode(MPI_Datatype type, MPI_Count size, int64_t count,
                         struct collx_layout *layout);

#endif
