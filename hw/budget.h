/* How much memory a process may share, beside all others of its job on its node.
 *
 * COLLX_MEMORY is the bound for a node.  Nothing counts for all of it: each process has an equal
 * share, and a segment is charged to those that map it, each with an equal part.  So all parts
 * together never exceed the bound, whoever shares with whom, and there is no counter that a killed
 * process would leave wrong.
 *
 * A cgroup has a bound of its own, beyond which nothing fails: the kernel kills.  Nor does it tell
 * what is left below it, for what the kernel would give back at once counts, too.  So of that bound
 * only a small part is for us, and the program has the rest.
 */
#ifndef COLLX_BUDGET_H
#define COLLX_BUDGET_H

#include <stddef.h>
#include <stdint.h>

struct collx_budget {
    size_t taken; /* bytes; by several threads at once */
};

/* What each of `members` is charged for a segment of `size` bytes: whole pages of memory, rounded
 * up. */
size_t collx_budget_part(size_t size, int members);

/* `most` bytes for a node, or less where a cgroup that this process is in allows so little memory
 * that these would be more than their part of it.  `root` stands before every path that is read:
 * "", or a test's folder.  Keeps errno. */
int64_t collx_budget_allowed(const char *root, int64_t most);

/* Take `bytes` if no more than `share` are then taken.  0 or -EDQUOT.  Thread-safe. */
int collx_budget_take(struct collx_budget *budget, size_t bytes, size_t share);

/* Give back what was taken.  Thread-safe. */
void collx_budget_give(struct collx_budget *budget, size_t bytes);

/* Bytes that are taken at the moment. */
size_t collx_budget_taken(const struct collx_budget *budget);

#endif
