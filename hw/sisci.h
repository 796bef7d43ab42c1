/* Dolphin's SISCI library, loaded when it is asked for.  Nothing of theirs is needed to build
 * collx: what is declared here follows from the public description of the API.
 *
 * Handles are opaque pointers.  Most calls end with an error pointer.
 */
#ifndef COLLX_SISCI_H
#define COLLX_SISCI_H

#include <stddef.h>

/* X(return type, name without SCI, parameters).  Sizes are unsigned in API 1; below 4 GiB that is
 * the same in a register. */
#define COLLX_SISCI_FUNCTIONS(X)                                                                   \
    X(void, Initialize, (unsigned flags, unsigned *error))                                         \
    X(void, Terminate, (void))                                                                     \
    X(void, GetLocalNodeId, (unsigned adapter, unsigned *node, unsigned flags, unsigned *error))   \
    X(void, Open, (void **descriptor, unsigned flags, unsigned *error))                            \
    X(void, Close, (void *descriptor, unsigned flags, unsigned *error))                            \
    X(void, CreateSegment,                                                                         \
      (void *descriptor, void **segment, unsigned id, size_t size, void *callback, void *argument, \
       unsigned flags, unsigned *error))                                                           \
    X(void, PrepareSegment, (void *segment, unsigned adapter, unsigned flags, unsigned *error))    \
    X(void *, MapLocalSegment,                                                                     \
      (void *segment, void **map, size_t offset, size_t size, void *hint, unsigned flags,          \
       unsigned *error))                                                                           \
    X(void, SetSegmentAvailable,                                                                   \
      (void *segment, unsigned adapter, unsigned flags, unsigned *error))                          \
    X(void, SetSegmentUnavailable,                                                                 \
      (void *segment, unsigned adapter, unsigned flags, unsigned *error))                          \
    X(void, RemoveSegment, (void *segment, unsigned flags, unsigned *error))                       \
    X(void, ConnectSegment,                                                                        \
      (void *descriptor, void **remote, unsigned node, unsigned id, unsigned adapter,              \
       void *callback, void *argument, unsigned timeout, unsigned flags, unsigned *error))         \
    X(void, DisconnectSegment, (void *remote, unsigned flags, unsigned *error))                    \
    X(void *, MapRemoteSegment,                                                                    \
      (void *remote, void **map, size_t offset, size_t size, void *hint, unsigned flags,           \
       unsigned *error))                                                                           \
    X(void, UnmapSegment, (void *map, unsigned flags, unsigned *error))                            \
    X(void, CreateMapSequence, (void *map, void **sequence, unsigned flags, unsigned *error))      \
    X(void, RemoveSequence, (void *sequence, unsigned flags, unsigned *error))                     \
    X(unsigned, StartSequence, (void *sequence, unsigned flags, unsigned *error))                  \
    X(unsigned, CheckSequence, (void *sequence, unsigned flags, unsigned *error))                  \
    X(void, StoreBarrier, (void *sequence, unsigned flags))                                        \
    X(void, Flush, (void *sequence, unsigned flags))

/* What StartSequence and CheckSequence answer. */
enum { COLLX_SISCI_OK, COLLX_SISCI_RETRIABLE, COLLX_SISCI_NOT_RETRIABLE, COLLX_SISCI_PENDING };

/* The library's functions and constants. */
struct collx_sisci {
#define FUNCTION(result, name, parameters) result(*name) parameters;
    COLLX_SISCI_FUNCTIONS(FUNCTION)
#undef FUNCTION
    unsigned no_store_barrier; /* SCI_FLAG_NO_STORE_BARRIER */
};

/* The library at `path` ("": where it usually is), loaded and initialised once for the process,
 * however often it is acquired; the first path counts until all have released it.  0, or
 * COLLX_EUNFIT and why, and what to do.  Thread-safe, keeps errno. */
int collx_sisci_acquire(const char *path, const struct collx_sisci **sisci, char *why, size_t size);
/* Thread-safe, keeps errno. */
void collx_sisci_release(void);

/* -errno for an error of the library: -EAGAIN for a segment that is not there (yet); or 0. */
int collx_sisci_errno(unsigned error);
/* What it means: "no such adapter (0x40000909)".  Returns `text`. */
char *collx_sisci_text(unsigned error, char *text, size_t size);

#endif
