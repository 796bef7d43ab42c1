#include "hw/cpus.h"

#include "base/hash.h"
#include "hw/cgroups.h"

#include <stdio.h>
#include <sys/stat.h>

struct found {
    struct collx_cpu_limit *limits;
    int count, room;
};

static bool read_quota(struct collx_cgroups *at, enum collx_cgroup_version version, int64_t *quota,
                       int64_t *period)
{
    /* "max 100000" or -1: no limit. */
    bool read = version == COLLX_CGROUP_V2
                    ? collx_cgroup_numbers(at, "cpu.max", quota, period)
                    : collx_cgroup_numbers(at, "cpu.cfs_quota_us", quota, NULL) &&
                          collx_cgroup_numbers(at, "cpu.cfs_period_us", period, NULL);

    return read && *quota > 0 && *quota <= INT64_MAX / 1000 && *period > 0;
}

/* Device and inode, and not the name, say which cgroup it is: containers see it under names of
 * their own. */
static uint64_t group_of(struct collx_cgroups *at)
{
    const char *path = collx_cgroup_path(at, "");
    struct stat is;

    if (!path || stat(path, &is))
        return 0;
    uint64_t hash = collx_hash(COLLX_HASH_START, &is.st_dev, sizeof is.st_dev);
    return collx_hash(hash, &is.st_ino, sizeof is.st_ino);
}

static void look(struct collx_cgroups *at, enum collx_cgroup_version version, void *with)
{
    struct found *found = with;
    int64_t quota, period;

    if (found->count == found->room || !read_quota(at, version, &quota, &period))
        return;
    struct collx_cpu_limit limit = {group_of(at), quota * 1000 / period};
    if (!limit.group)
        return;
    if (limit.millicpus == 0)
        limit.millicpus = 1;
    for (int i = 0; i < found->count; i++)
        if (found->limits[i].group == limit.group)
            return; /* a hierarchy may be mounted twice */
    found->limits[found->count++] = limit;
}

int collx_cpus_limits(const char *root, int pid, struct collx_cpu_limit *limits, int room)
{
    struct found found = {.limits = limits, .room = room};

    collx_cgroups_walk(root, pid, "cpu", look, &found);
    return found.count;
}

char *collx_cpus_format(int64_t millicpus, char *text, size_t size)
{
    int length =
        snprintf(text, size, "%lld.%03d", (long long)(millicpus / 1000), (int)(millicpus % 1000));

    /* Not %g: that writes a comma where people do. */
    while (text[length - 1] == '0')
        text[--length] = '\0';
    if (text[length - 1] == '.')
        text[--length] = '\0';
    return text;
}
