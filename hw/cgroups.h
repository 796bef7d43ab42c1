/* The cgroups that a process is in, and what they say of it.
 *
 * There are two versions of them, and a machine may have both mounted; a controller is in one of
 * them only, and in the other one no cgroup has its files.
 */
#ifndef COLLX_CGROUPS_H
#define COLLX_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

enum collx_cgroup_version { COLLX_CGROUP_V1, COLLX_CGROUP_V2 };

/* A cgroup while it is looked at. */
struct collx_cgroups;

typedef void collx_cgroup_fn(struct collx_cgroups *at, enum collx_cgroup_version version,
                             void *with);

/* Calls `look` with `with` for each cgroup that process `pid` (0: this one) is in where
 * `controller` ("cpu") may be, and for all cgroups above, as far as they can be seen from here; for
 * one that is mounted twice, twice.  `root` stands before every path that is read: "", or a test's
 * folder.  What is absent, unreadable or nonsense is passed over.  Keeps errno. */
void collx_cgroups_walk(const char *root, int pid, const char *controller, collx_cgroup_fn *look,
                        void *with);

/* From its file `name` a line of one number or, unless `second` is NULL, two.  Whether it is one.
 */
bool collx_cgroup_numbers(struct collx_cgroups *at, const char *name, int64_t *first,
                          int64_t *second);

/* The path of its file `name`; NULL where it is too long: then there is no such file. */
const char *collx_cgroup_path(struct collx_cgroups *at, const char *name);

#endif
