/* A tuner of one rank, and of three ways that take as long as they are told. */
#ifndef COLLX_TESTS_TUNER_VIEW_H
#define COLLX_TESTS_TUNER_VIEW_H

#include <stdint.h>

void tuner_start(void);

/* A call: the way that it goes.  `took`: what each would take, in ns. */
unsigned tuner_call(const uint64_t took[3]);

#endif
