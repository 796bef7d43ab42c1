/* How people write values: numbers, sizes, durations, switches and ranges of them.
 *
 * One copy for the environment, for policies and for the command line.  Nothing here depends on
 * the locale or allocates.
 */
#ifndef COLLX_PARSE_H
#define COLLX_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum collx_type {
    COLLX_PATH,     /* any text */
    COLLX_NUMBER,   /* 4, -1 */
    COLLX_SIZE,     /* bytes: 4096, 64KiB, 1MiB */
    COLLX_DURATION, /* milliseconds: 500ms, 30s, 2min, 0 */
    COLLX_SWITCH,   /* 0 or 1: on, off, yes, no, true, false, 1, 0 */
    COLLX_KERNELS,  /* enum collx_kernels: auto, avx512, avx2, c */
    COLLX_CHECK,    /* enum collx_check: barrier, flush, full */
    COLLX_TRISTATE, /* enum collx_tristate: auto, on, off */
};

/* Versions of the reduction kernels, the widest one first. */
enum collx_kernels {
    COLLX_KERNELS_AUTO,
    COLLX_KERNELS_AVX512,
    COLLX_KERNELS_AVX2,
    COLLX_KERNELS_C,
    COLLX_KERNELS_VERSIONS,
};

/* How stores through an adapter of Dolphin's are checked. */
enum collx_check {
    COLLX_CHECK_BARRIER, /* a store barrier, then a check that does without */
    COLLX_CHECK_FLUSH,   /* a flush, then the same */
    COLLX_CHECK_FULL,    /* the check alone, which does all */
    COLLX_CHECK_KINDS,
};

/* What is found out unless somebody knows better. */
enum collx_tristate {
    COLLX_TRISTATE_AUTO,
    COLLX_TRISTATE_ON,
    COLLX_TRISTATE_OFF,
    COLLX_TRISTATE_KINDS,
};

/* Enough for every value and range, and for a message about one. */
enum { COLLX_VALUE_MAX = 64, COLLX_WHY_MAX = 512 };

/* Both ends belong to it. */
struct collx_range {
    int64_t first, last;
};

/* What is right for a type, with examples: "a size, such as 4096, 64KiB or 1MiB". */
const char *collx_type_form(enum collx_type type);

/* Whether the values are words, without a least and a greatest. */
bool collx_type_has_words(enum collx_type type);

/* The value that `text` is, from min to max.  0, or COLLX_EINVALID and in `why` what is wrong and
 * what would be right.  Not for COLLX_PATH. */
int collx_value_parse(enum collx_type type, const char *text, int64_t min, int64_t max,
                      int64_t *value, char *why, size_t size);

/* The shortest text that parses to `value`.  Returns `text`. */
char *collx_value_format(enum collx_type type, int64_t value, char *text, size_t size);

/* "..8KiB", "64KiB..1MiB", "4", "17..", "..": an end that is left out is min, or INT64_MAX.
 * Errors as above. */
int collx_range_parse(enum collx_type type, const char *text, int64_t min,
                      struct collx_range *range, char *why, size_t size);

/* The text of a range whose lowest possible value is min; "any" if it is everything.
 * Returns `text`. */
char *collx_range_format(enum collx_type type, const struct collx_range *range, int64_t min,
                         char *text, size_t size);

/* Finds the name that somebody probably meant, and keeps a list of all names for the case that
 * none is near: set `word`, offer every name once or more; then `name` is the nearest, or NULL if
 * none is near enough to be worth a guess. */
struct collx_nearest {
    const char *word, *name;
    unsigned distance;
    char all[COLLX_WHY_MAX / 2]; /* "barrier, bcast" */
};
void collx_nearest_offer(struct collx_nearest *nearest, const char *name);

/* The end of a message: "; did you mean 'bcast'?" or "; there are barrier, bcast".  Valid as long
 * as `text`, which it returns. */
char *collx_nearest_hint(const struct collx_nearest *nearest, char *text, size_t size);

#endif
