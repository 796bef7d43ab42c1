/* One rank of a test of algorithms/within/single.h, which is for C alone. */
#ifndef COLLX_TESTS_SINGLE_MAIL_H
#define COLLX_TESTS_SINGLE_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory that both ranks share, zeroed. */
size_t mail_space(void);

/* Rank 1 of two reads `bytes` bytes of rank 0 by mail, after so many letters.  Whether the bytes
 * are right. */
bool mail_passes(int rank, void *memory, uint64_t letters, size_t bytes);

#endif
