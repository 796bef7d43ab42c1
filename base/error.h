/* Errors.  Negative values are errno's and travel up unchanged.  Positive ones are ours: they are
 * answers rather than failures, and the direct caller deals with them. */
#ifndef COLLX_ERROR_H
#define COLLX_ERROR_H

enum {
    COLLX_EUNFIT = 1, /* cannot run here; the reason is in `why` */
    COLLX_EINVALID,   /* the input is wrong; the place and the reason were reported */
    COLLX_EGONE,      /* what was there is not there any more; do without */
};

/* Of two results the one that is an error; the first, if both are. */
static inline int collx_error_first(int error, int next)
{
    return error ? error : next;
}

#endif
