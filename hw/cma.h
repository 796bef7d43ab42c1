/* Cross-memory attach: the kernel copies between the memory of this process and that of another,
 * without a stop on the way.
 *
 * It is refused where this process may not debug the other one: in containers without ptrace, where
 * Yama's ptrace_scope is 1 or more, for programs that changed their user.  Some memory can never be
 * reached so (of devices, or mapped without the right to read).  Both show only when it is tried.
 */
#ifndef COLLX_CMA_H
#define COLLX_CMA_H

#include <stddef.h>
#include <stdint.h>

/* `bytes` from `address` of process `pid` to `to`.  0, or -errno, after which any part of `to` may
 * have been written.  Keeps errno. */
int collx_cma_read(int pid, void *to, uint64_t address, size_t bytes);

/* The other way. */
int collx_cma_write(int pid, uint64_t address, const void *from, size_t bytes);

#endif
