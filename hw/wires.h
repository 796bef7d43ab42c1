/* Wires: what a parallel port, GPIO lines, the registers of a card or the emulator are.
 *
 * A node drives some wires of a board and reads others.  Wires are counted from 0 as the board has
 * them: one of each for every channel, then, of a board whose channels are chosen, two to configure
 * it and one for its answer.  Which pin is which wire, and which ones are inverted on the way, is
 * said once, by the spec; everything above sees the levels that the board sees.
 *
 * A port belongs to one thread at a time.  Functions return 0 or -errno unless said otherwise.
 */
#ifndef COLLX_WIRES_H
#define COLLX_WIRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COLLX_WIRES_SPEC = 512,    /* room for the text of a spec */
    COLLX_WIRES_MAX = 32,      /* in one direction */
    COLLX_WIRES_CHANNELS = 16, /* of a board */
    COLLX_WIRES_NODES = 60,    /* of a board */
};

/* What the text "DRIVER:DEVICE,channels=4,out=d0/!d1" says. */
struct collx_wire_spec {
    char device[COLLX_WIRES_SPEC];
    unsigned channels; /* whose participants are chosen; 0: one channel, in which all take part */
    unsigned nodes;    /* that are connected; 0: not said */
    unsigned node;     /* for the emulator: which one this is */
    unsigned outs, ins;
    uint16_t out[COLLX_WIRES_MAX], in[COLLX_WIRES_MAX]; /* pins, as the driver counts them */
    uint32_t out_inverted, in_inverted;                 /* between here and the board; by wire */
    uint32_t out_register, in_register;                 /* for mmio: bytes from the start */
};

/* A pin that has a name. */
struct collx_wire_pin {
    const char *name;
    uint16_t pin;
    bool output, inverted; /* by the hardware of the port */
};

struct collx_port; /* of the driver */

enum {
    COLLX_WIRES_SHARED = 1,   /* several processes may have channels of one node: lock each of them;
                                 else a port has one process, and open() sees to that */
    COLLX_WIRES_NUMBERED = 2, /* a wire is the pin of that number: none are to be chosen */
};

/* A driver.  `levels` and `mask` are by wire; inversions are none of its business. */
struct collx_wire_ops {
    const char *name;                   /* "ppdev" */
    const char *help;                   /* what it is for, and what it needs */
    const char *device;                 /* where it usually is; NULL: has to be said */
    const struct collx_wire_pin *pins;  /* ends without a name; NULL: pins are numbers */
    const char *out, *in;               /* the usual pins, as in a spec: the channels', then */
    const char *config_out, *config_in; /* those to choose channels; NULL: have to be said */
    unsigned flags;                     /* COLLX_WIRES_… */

    /* On failure a sentence in `why`: what is wrong, and what to do.  The wires keep the levels
     * they have, where the hardware can. */
    int (*open)(struct collx_port **port, const struct collx_wire_spec *spec, char *why,
                size_t size);
    /* Drive the wires of the mask; the others stay. */
    int (*set)(struct collx_port *port, uint32_t mask, uint32_t levels);
    int (*get)(struct collx_port *port, uint32_t *levels);
    /* Returns when all that was set has reached the board.  NULL: a microsecond is enough. */
    int (*settle)(struct collx_port *port);
    /* Sleep until a wire from the board may have changed since get(), or for so long.  It may
     * return early, and a port may miss edges: for short sleeps.  NULL: there is no such thing. */
    int (*wait_edge)(struct collx_port *port, int timeout_ms);
    /* Of those that are shared: the file, and the first byte of 64 in it, whose locks say which
     * channels of the node are taken. */
    int (*lock)(struct collx_port *port, int *fd, int64_t *start);
    void (*close)(struct collx_port *port); /* NULL is fine; the levels stay */
};

/* The drivers of this folder, NULL after the last. */
extern const struct collx_wire_ops *const collx_wire_drivers[];

/* Open wires, with a driver and what else the spec says. */
struct collx_wires {
    const struct collx_wire_ops *ops;
    struct collx_port *port;
    struct collx_wire_spec spec;
    uint64_t writes, reads; /* port accesses so far */
};

/* Understand a spec.  0, or -EINVAL and what is wrong, and what would be right, in `why`. */
int collx_wires_parse(const char *text, const struct collx_wire_ops **ops,
                      struct collx_wire_spec *spec, char *why, size_t size);

/* Parse and open.  Failures: a sentence in `why`; nothing is to be closed then. */
int collx_wires_open(struct collx_wires *wires, const char *text, char *why, size_t size);
void collx_wires_close(struct collx_wires *wires);

/* As the driver's, with inversions undone, and counted. */
int collx_wires_set(struct collx_wires *wires, uint32_t mask, uint32_t levels);
int collx_wires_get(struct collx_wires *wires, uint32_t *levels);
int collx_wires_settle(struct collx_wires *wires);

/* For drivers whose wires are bits of two registers: the next value of the one that is written, and
 * the wires in the one that is read. */
uint32_t collx_wires_spread(const struct collx_wire_spec *spec, uint32_t value, uint32_t mask,
                            uint32_t levels);
uint32_t collx_wires_gather(const struct collx_wire_spec *spec, uint32_t value);

#endif
