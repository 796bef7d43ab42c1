/* Inside `collx hw`. */
#ifndef COLLX_HW_H
#define COLLX_HW_H

#include "hw/wires.h"

#include <stdbool.h>

/* What one access costs, in nanoseconds: the median of some. */
struct collx_hw_cost {
    double write, read;
};

/* Measure; writes what is there already.  0 or -errno. */
int collx_hw_measure(struct collx_wires *wires, struct collx_hw_cost *cost);

/* Open what the spec says, or say on stderr why not. */
bool collx_hw_open(struct collx_wires *wires, const char *spec);

int collx_hw_probe_main(int argc, char **argv);
int collx_hw_test_main(int argc, char **argv);

#endif
