/* Programs of several cases, of which a test names one. */
#ifndef COLLX_TESTS_CASES_H
#define COLLX_TESTS_CASES_H

#include "tests/programs/check.h"

#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

/* The last one has no name. */
static inline void run_case(const struct test_case *cases, const char *name)
{
    while (cases->name && strcmp(cases->name, name) != 0)
        cases++;
    CHECK(cases->name);
    cases->run();
}

#endif
