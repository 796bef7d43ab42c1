/* A tuner of one rank, and of ways that take as long as they are told: three of any size, and one
 * from TUNER_LONG on that costs half as much again later. */
#ifndef COLLX_TESTS_TUNER_VIEW_H
#define COLLX_TESTS_TUNER_VIEW_H

#include <stddef.h>
#include <stdint.h>

enum { TUNER_SHORT = 1 << 20, TUNER_LONG = 2 << 20 };

/* `allowed`: bits; 0: all. */
void tuner_start(unsigned allowed);

/* A call: the way that it goes.  `took`: what each would take, and `later`: what the program would
 * take then until its next call, in ns. */
unsigned tuner_call(size_t bytes, const uint64_t took[4], const uint64_t later[4]);

#endif
