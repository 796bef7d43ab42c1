/* What the adapter lends to algorithms: struct collx_lender_ops over PMPI.  `ctx` is the
 * struct collx_comm. */
#ifndef COLLX_LEND_H
#define COLLX_LEND_H

#include "base/algorithm.h"

extern const struct collx_lender_ops collx_lent;

#endif
