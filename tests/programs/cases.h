/* Programs of several cases, of which a test names one. */
#ifndef COLLX_TESTS_CASES_H
#define COLLX_TESTS_CASES_H

#include "tests/programs/check.h"

#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

/* Runs the one of an array that has this .name: its .run, with the arguments that follow, of which
 * those of a struct test_case have none. */
#define RUN_CASE(cases, wanted, ...)                                                               \
    do {                                                                                           \
        size_t which = 0;                                                                          \
                                                                                                   \
        while (which < sizeof(cases) / sizeof *(cases) && strcmp((cases)[which].name, wanted))     \
            which++;                                                                               \
        CHECK(which < sizeof(cases) / sizeof *(cases));                                            \
        (cases)[which].run(__VA_ARGS__);                                                           \
    } while (0)

#endif
