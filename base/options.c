#include "base/options.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define PREFIX "COLLX_"
#define TESTS "COLLX_TEST_"

static const struct collx_option table[COLLX_OPTIONS] = {
#define ENVIRONMENT false
#define POLICY true
#define OPTION(ID, name, kind, first, least, most, where, text)                                    \
    [COLLX_OPTION_##ID] = {.variable = PREFIX #ID,                                                 \
                           .word = #name,                                                          \
                           .help = text,                                                           \
                           .type = COLLX_##kind,                                                   \
                           .in_policy = where,                                                     \
                           .initial = first,                                                       \
                           .min = least,                                                           \
                           .max = most},
#include "base/options.def"
#undef OPTION
#undef POLICY
#undef ENVIRONMENT
};

/* All state there is.  Numbers are read by threads that communicate while another one applies a
 * policy; each is a word on its own, so relaxed atomics are enough. */
static struct {
    int64_t number;
    char *text;
    enum collx_origin origin;
} values[COLLX_OPTIONS] = {
#define OPTION(ID, name, kind, first, ...) [COLLX_OPTION_##ID] = {.number = first},
#include "base/options.def"
#undef OPTION
};

const struct collx_option *collx_option_describe(enum collx_option_id id)
{
    return &table[id];
}

int64_t collx_option_number(enum collx_option_id id)
{
    return __atomic_load_n(&values[id].number, __ATOMIC_RELAXED);
}

const char *collx_option_text(enum collx_option_id id)
{
    return values[id].text ? values[id].text : "";
}

enum collx_origin collx_option_origin(enum collx_option_id id)
{
    return __atomic_load_n(&values[id].origin, __ATOMIC_RELAXED);
}

static void store(enum collx_option_id id, int64_t number, enum collx_origin origin)
{
    __atomic_store_n(&values[id].number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&values[id].origin, origin, __ATOMIC_RELAXED);
}

static void reset(void)
{
    for (unsigned id = 0; id < COLLX_OPTIONS; id++) {
        store(id, table[id].initial, COLLX_FROM_DEFAULT);
        free(values[id].text);
        values[id].text = NULL;
    }
}

static void say(void (*report)(const char *), const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(void (*report)(const char *), const char *format, ...)
{
    char message[COLLX_WHY_MAX];
    va_list args;

    if (!report)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    report(message);
}

static void unknown_variable(const char *variable, void (*report)(const char *))
{
    struct collx_nearest nearest = {.word = variable + strlen(PREFIX)};

    for (unsigned id = 0; id < COLLX_OPTIONS; id++)
        collx_nearest_offer(&nearest, table[id].variable + strlen(PREFIX));
    if (nearest.name)
        say(report, "%s is not an option; did you mean " PREFIX "%s?", variable, nearest.name);
    else
        say(report, "%s is not an option; `collx info` lists all there are", variable);
}

static void take_variable(const char *variable, const char *value, void (*report)(const char *))
{
    unsigned id = 0;

    while (id < COLLX_OPTIONS && strcmp(variable, table[id].variable) != 0)
        id++;
    if (id == COLLX_OPTIONS) {
        unknown_variable(variable, report);
        return;
    }
    /* As getenv() has it, the first of two counts. */
    if (!*value || values[id].origin == COLLX_FROM_ENVIRONMENT)
        return;

    /* What is read, written or loaded there would be so with these rights. */
    if (table[id].type == COLLX_PATH && getauxval(AT_SECURE)) {
        say(report, "%s counts as not set, for the program has rights that its user has not",
            variable);
        return;
    }

    int64_t number = 0;
    char why[COLLX_WHY_MAX];
    if (table[id].type == COLLX_PATH) {
        /* A copy: programs overwrite their environment, to change what ps shows of them. */
        values[id].text = strdup(value);
        if (!values[id].text) {
            say(report, "%s: out of memory; it counts as not set", variable);
            return;
        }
    } else if (collx_value_parse(table[id].type, value, table[id].min, table[id].max, &number, why,
                                 sizeof why)) {
        say(report, "%s: %s; it counts as not set", variable, why);
        return;
    }
    store(id, number, COLLX_FROM_ENVIRONMENT);
}

void collx_options_load(char *const *environment, void (*report)(const char *message))
{
    int keep = errno;

    reset();
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        char variable[128];

        if (!equals || strncmp(*environment, PREFIX, strlen(PREFIX)) != 0 ||
            strncmp(*environment, TESTS, strlen(TESTS)) == 0)
            continue;
        snprintf(variable, sizeof variable, "%.*s", (int)(equals - *environment), *environment);
        take_variable(variable, equals + 1, report);
    }
    errno = keep;
}

/* The option that a policy calls `word`, and its value; or COLLX_EINVALID. */
static int understand(const char *word, const char *value, unsigned *id, int64_t *number, char *why,
                      size_t size)
{
    struct collx_nearest nearest = {.word = word};
    char hint[COLLX_WHY_MAX / 2];

    for (*id = 0; *id < COLLX_OPTIONS; ++*id) {
        if (table[*id].in_policy)
            collx_nearest_offer(&nearest, table[*id].word);
        if (strcmp(word, table[*id].word) == 0)
            break;
    }
    if (*id == COLLX_OPTIONS) {
        snprintf(why, size, "'%.40s' is not an option%s", word,
                 collx_nearest_hint(&nearest, hint, sizeof hint));
        return COLLX_EINVALID;
    }
    if (!table[*id].in_policy) {
        snprintf(why, size, "'%s' cannot be set in a policy; set %s in the environment", word,
                 table[*id].variable);
        return COLLX_EINVALID;
    }
    return collx_value_parse(table[*id].type, value, table[*id].min, table[*id].max, number, why,
                             size);
}

int collx_option_check(const char *word, const char *value, char *why, size_t size)
{
    unsigned id;
    int64_t number;

    return understand(word, value, &id, &number, why, size);
}

int collx_option_set(const char *word, const char *value, char *why, size_t size)
{
    unsigned id;
    int64_t number;
    int error = understand(word, value, &id, &number, why, size);

    if (!error && collx_option_origin(id) != COLLX_FROM_ENVIRONMENT)
        store(id, number, COLLX_FROM_POLICY);
    return error;
}

void collx_option_unset(enum collx_option_id id)
{
    if (collx_option_origin(id) == COLLX_FROM_POLICY)
        store(id, table[id].initial, COLLX_FROM_DEFAULT);
}
