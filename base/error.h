/* Errors.  Negative values are errno's and travel up unchanged.  Positive ones are ours: they are
 * answers rather than failures, and the direct caller deals with them. */
#ifndef COLLX_ERROR_H
#define COLLX_ERROR_H

enum {
    COLLX_EUNFIT = 1, /* cannot run here; the reason is in `why` */
    COLLX_EINVALID,   /* the input is wrong; the place and the reason were reported */
};

#endif
