/* Layouts of datatypes.
 *
 * Those of types that a program goes on using hang on them as attributes.  One that is there for a
 * message alone is told from the call that made it, each time anew (pmpi/decode.h); what cannot be
 * told so MPI is asked, once a type: an element is packed whose bytes say where they lie.  That
 * does for every way of making a type, and takes less than a call of MPI_Pack for each message.
 */
#ifndef COLLX_LAYOUTS_H
#define COLLX_LAYOUTS_H

#include "base/layout.h"
#include "pmpi/pmpi.h"

/* Of a type that may be used for communication and has `size` bytes, of which `count` elements are
 * sent.  It is in *few, or lasts as long as the type.  NULL: MPI has to pack these elements: too
 * few have been sent so far, they are long, or in many pieces, or memory ran out. */
const struct collx_layout *collx_layout_of(MPI_Datatype type, MPI_Count size, int64_t count,
                                           struct collx_layout_few *few);

/* The last that is still open of MPI_COMM_WORLD and the sessions is about to end. */
void collx_layouts_finish(void);

#endif
