/* What the drivers of parallel ports have in common: two registers of eight bits. */
#ifndef COLLX_PARPORT_H
#define COLLX_PARPORT_H

#include "hw/wires.h"

/* The data lines, and the status lines; the port inverts BUSY by itself. */
extern const struct collx_wire_pin collx_parport_pins[];

/* Of a driver: the pins, and the usual ones.  ACK is the one that can wake a process. */
#define COLLX_PARPORT_WIRES                                                                        \
    .pins = collx_parport_pins, .out = "d0/d1/d2/d3", .in = "ack/paperout/select/error",           \
    .config_out = "d6/d7", .config_in = "busy"

/* The address of a port that is addressed: "0x378".  Errors as in struct collx_wire_ops. */
int collx_parport_address(const char *text, unsigned *address, char *why, size_t size);

/* Take the port at that address for this process alone, whichever of these drivers it uses.  The
 * descriptor of /dev/port, to close when done with the port, or -errno and a sentence in `why`. */
int collx_parport_take(unsigned address, char *why, size_t size);

#endif
