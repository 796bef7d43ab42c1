/* The hardware barrier that this process has, by COLLX_HWBARRIER: opened by the first that wants
 * it, closed by the last, with channels for several at once.
 *
 * Thread-safe.  A forked child has the port as well, but it is not the child's to detach or close.
 * Functions return 0 or -errno unless said otherwise.
 */
#ifndef COLLX_BARRIER_PORT_H
#define COLLX_BARRIER_PORT_H

#include "hw/barrier.h"

/* On failure, also where COLLX_HWBARRIER is not set (-ENOENT), a sentence in `why`; there is
 * nothing to close then. */
int collx_bar_port_open(struct collx_bar_caps *caps, char *why, size_t size);
/* As often as it was opened. */
void collx_bar_port_close(void);

/* The channels that nobody in this process has, nor anybody of those with whom it had them last, by
 * bits.  Another process may. */
uint64_t collx_bar_port_free(void);

/* As in struct collx_bar_ops, while the port is open. */
int collx_bar_port_attach(unsigned channel, uint64_t participants, unsigned self, char *why,
                          size_t size);
int collx_bar_port_enter(unsigned channel);
int collx_bar_port_test(unsigned channel);
int collx_bar_port_settle(void);
int collx_bar_port_missing(unsigned channel, uint64_t *nodes);
void collx_bar_port_detach(unsigned channel);
/* Of all channels. */
void collx_bar_port_counts(struct collx_bar_counts *counts);

#endif
