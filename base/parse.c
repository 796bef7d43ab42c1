#include "base/parse.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    int64_t factor;
};

/* Smallest first.  The one that takes no unit is "". */
static const struct unit numbers[] = {{"", 1}, {NULL, 0}};
static const struct unit sizes[] = {{"", 1},
                                    {"B", 1},
                                    {"KiB", 1ll << 10},
                                    {"MiB", 1ll << 20},
                                    {"GiB", 1ll << 30},
                                    {"TiB", 1ll << 40},
                                    {NULL, 0}};
static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {NULL, 0}};

/* The words of a type whose values are counted from 0; the first of several for one value is how it
 * is written. */
static const char *const switches[] = {"off", "on", "no", "yes", "false", "true", "0", "1", NULL};
static const char *const kernels[] = {"auto", "avx512", "avx2", "c", NULL};
static const char *const checks[] = {"barrier", "flush", "full", NULL};
static const char *const tristates[] = {"auto", "on", "off", NULL};
_Static_assert(sizeof kernels / sizeof *kernels == COLLX_KERNELS_VERSIONS + 1, "each has its word");
_Static_assert(sizeof checks / sizeof *checks == COLLX_CHECK_KINDS + 1, "each has its word");
_Static_assert(sizeof tristates / sizeof *tristates == COLLX_TRISTATE_KINDS + 1,
               "each has its word");

static const struct {
    const char *form;
    const struct unit *units;
    const char *const *words;
    int64_t values; /* that have words */
} types[] = {
    [COLLX_PATH] = {.form = "a path"},
    [COLLX_NUMBER] = {"a whole number", .units = numbers},
    [COLLX_SIZE] = {"a size, such as 4096, 64KiB or 1MiB", .units = sizes},
    [COLLX_DURATION] = {"a duration, such as 500ms, 30s or 2min", .units = durations},
    [COLLX_SWITCH] = {"on or off", .words = switches, .values = 2},
    [COLLX_KERNELS] = {"auto, avx512, avx2 or c", .words = kernels,
                       .values = COLLX_KERNELS_VERSIONS},
    [COLLX_CHECK] = {"barrier, flush or full", .words = checks, .values = COLLX_CHECK_KINDS},
    [COLLX_TRISTATE] = {"auto, on or off", .words = tristates, .values = COLLX_TRISTATE_KINDS},
};

const char *collx_type_form(enum collx_type type)
{
    return types[type].form;
}

bool collx_type_has_words(enum collx_type type)
{
    return types[type].words;
}

static bool parse_word(enum collx_type type, const char *text, int64_t *value)
{
    for (unsigned i = 0; types[type].words[i]; i++)
        if (strcmp(text, types[type].words[i]) == 0) {
            *value = i % types[type].values;
            return true;
        }
    return false;
}

/* Not strtol(): that skips blanks and, with some locales, takes grouped digits. */
static bool parse_quantity(const struct unit *units, const char *text, int64_t *value)
{
    bool minus = *text == '-';
    int64_t number = 0;
    const char *digits = text += minus;

    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *text - '0', &number))
            return false;
    if (text == digits)
        return false;
    if (number == 0 && !*text) {
        *value = 0; /* nothing of anything needs no unit */
        return true;
    }
    for (; units->name; units++)
        if (strcmp(text, units->name) == 0) {
            if (__builtin_mul_overflow(number, minus ? -units->factor : units->factor, value))
                return false;
            return true;
        }
    return false;
}

static bool parse(enum collx_type type, const char *text, int64_t *value)
{
    return types[type].words ? parse_word(type, text, value)
                             : parse_quantity(types[type].units, text, value);
}

char *collx_value_format(enum collx_type type, int64_t value, char *text, size_t size)
{
    const struct unit *unit = types[type].units, *best = unit;

    if (types[type].words) {
        snprintf(text, size, "%s", types[type].words[value]);
        return text;
    }
    for (; unit && unit->name; unit++)
        if (value % unit->factor == 0 && *unit->name != 'B')
            best = unit;
    if (value == 0 || !best)
        snprintf(text, size, "%" PRId64, value);
    else
        snprintf(text, size, "%" PRId64 "%s", value / best->factor, best->name);
    return text;
}

int collx_value_parse(enum collx_type type, const char *text, int64_t min, int64_t max,
                      int64_t *value, char *why, size_t size)
{
    char low[COLLX_VALUE_MAX], high[COLLX_VALUE_MAX];

    if (!parse(type, text, value)) {
        snprintf(why, size, "'%.40s' is not right; it has to be %s", text, types[type].form);
        return COLLX_EINVALID;
    }
    if (*value < min || *value > max) {
        collx_value_format(type, min, low, sizeof low);
        collx_value_format(type, max, high, sizeof high);
        if (max == INT64_MAX)
            snprintf(why, size, "'%.40s' is too small; it has to be at least %s", text, low);
        else
            snprintf(why, size, "'%.40s' is too %s; it has to be from %s to %s", text,
                     *value < min ? "small" : "large", low, high);
        return COLLX_EINVALID;
    }
    return 0;
}

/* An end of a range; an empty one is `open`. */
static bool parse_end(enum collx_type type, const char *text, size_t length, int64_t open,
                      int64_t *value)
{
    char copy[COLLX_VALUE_MAX];

    if (length == 0) {
        *value = open;
        return true;
    }
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return parse(type, copy, value);
}

int collx_range_parse(enum collx_type type, const char *text, int64_t min,
                      struct collx_range *range, char *why, size_t size)
{
    char first[COLLX_VALUE_MAX], last[COLLX_VALUE_MAX];
    const char *dots = strstr(text, "..");
    bool good;

    if (dots) {
        good = parse_end(type, text, (size_t)(dots - text), min, &range->first) &&
               parse_end(type, dots + 2, strlen(dots + 2), INT64_MAX, &range->last);
    } else {
        good = parse(type, text, &range->first);
        range->last = range->first;
    }
    if (!good) {
        snprintf(why, size, "'%.40s' is not a range; write %s", text,
                 type == COLLX_SIZE ? "..8KiB, 64KiB..1MiB, 1MiB.. or 4096"
                                    : "..8, 2..64, 17.. or 4");
        return COLLX_EINVALID;
    }
    if (range->first < min || range->last < min) {
        snprintf(why, size, "'%.40s' goes too low; the lowest there can be is %s", text,
                 collx_value_format(type, min, first, sizeof first));
        return COLLX_EINVALID;
    }
    if (range->first > range->last) {
        snprintf(why, size, "the range '%.40s' is empty; the smaller end comes first: %s..%s", text,
                 collx_value_format(type, range->last, last, sizeof last),
                 collx_value_format(type, range->first, first, sizeof first));
        return COLLX_EINVALID;
    }
    return 0;
}

char *collx_range_format(enum collx_type type, const struct collx_range *range, int64_t min,
                         char *text, size_t size)
{
    char first[COLLX_VALUE_MAX] = "", last[COLLX_VALUE_MAX] = "";

    if (range->first > min)
        collx_value_format(type, range->first, first, sizeof first);
    if (range->last < INT64_MAX)
        collx_value_format(type, range->last, last, sizeof last);
    if (range->first <= min && range->last == INT64_MAX)
        snprintf(text, size, "any");
    else if (range->first == range->last)
        collx_value_format(type, range->first, text, size);
    else
        snprintf(text, size, "%s..%s", first, last);
    return text;
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
}

enum { WORD_MAX = 40 };

/* Insertions, deletions, substitutions and swaps of neighbours that make one word of the other,
 * case and kind of dash aside. */
static unsigned distance(const char *a, const char *b)
{
    size_t columns = strlen(b);
    unsigned row[3][WORD_MAX + 1];
    unsigned *before = row[0], *last = row[1], *now = row[2];

    for (unsigned j = 0; j <= columns; j++)
        last[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            bool equal = fold(a[i - 1]) == fold(b[j - 1]);
            unsigned least = last[j - 1] + !equal;

            if (last[j] + 1 < least)
                least = last[j] + 1;
            if (now[j - 1] + 1 < least)
                least = now[j - 1] + 1;
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]) && before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            now[j] = least;
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[columns];
}

static bool is_listed(const char *all, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = all; (at = strstr(at, name)); at++)
        if ((at == all || at[-1] == ' ') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

void collx_nearest_offer(struct collx_nearest *nearest, const char *name)
{
    size_t length = strlen(nearest->word), listed = strlen(nearest->all);

    if (!is_listed(nearest->all, name))
        snprintf(nearest->all + listed, sizeof nearest->all - listed, "%s%s", listed ? ", " : "",
                 name);
    if (length > WORD_MAX || strlen(name) > WORD_MAX)
        return;
    unsigned d = distance(nearest->word, name);
    if (d <= 1 + length / 4 && d < strlen(name) && (!nearest->name || d < nearest->distance)) {
        nearest->name = name;
        nearest->distance = d;
    }
}

char *collx_nearest_hint(const struct collx_nearest *nearest, char *text, size_t size)
{
    if (nearest->name)
        snprintf(text, size, "; did you mean '%s'?", nearest->name);
    else if (strchr(nearest->all, ','))
        snprintf(text, size, "; there are %s", nearest->all);
    else
        snprintf(text, size, "; there is %s", *nearest->all ? nearest->all : "none");
    return text;
}
