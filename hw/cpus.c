#include "hw/cpus.h"

#include "base/hash.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The hierarchies that can have quotas.  A machine may have both; only one of them has the cpu
 * controller then, and in the other one no cgroup has the files that are read here. */
enum hierarchy { V1, V2, HIERARCHIES };

/* On the heap: who calls a collective may have a small stack. */
struct search {
    const char *root;
    char own[HIERARCHIES][PATH_MAX]; /* this process's cgroup; "": in none */
    char folder[2 * PATH_MAX];       /* the cgroup that is looked at */
    char path[3 * PATH_MAX];         /* the file that is read */
    struct collx_cpu_limit *limits;
    int count, room;
};

/* "cpu" is in "cpu,cpuacct", but not in "cpuset,cpuacct". */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    while (list) {
        if (!strncmp(list, word, length) && (list[length] == ',' || !list[length]))
            return true;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return false;
}

/* NULL where it is too long: then there is no such file. */
static const char *path_of(struct search *search, const char *folder, const char *name)
{
    int length = snprintf(search->path, sizeof search->path, "%s%s/%s", search->root, folder, name);

    return length < (int)sizeof search->path ? search->path : NULL;
}

static FILE *open_file(struct search *search, const char *folder, const char *name)
{
    const char *path = path_of(search, folder, name);

    return path ? fopen(path, "re") : NULL;
}

static bool take_number(char **text, int64_t *number)
{
    char *begin = *text;

    errno = 0;
    *number = strtoll(begin, text, 10);
    return !errno && *text != begin;
}

/* A line of one number or, unless `second` is NULL, two. */
static bool read_numbers(struct search *search, const char *name, int64_t *first, int64_t *second)
{
    char line[64] = "", *text = line;
    FILE *file = open_file(search, search->folder, name);

    if (!file)
        return false;
    bool good = fgets(line, sizeof line, file) && take_number(&text, first) &&
                (!second || take_number(&text, second));
    fclose(file);
    return good && (*text == '\n' || !*text);
}

static bool read_quota(struct search *search, enum hierarchy version, int64_t *quota,
                       int64_t *period)
{
    /* "max 100000" or -1: no limit. */
    bool read = version == V2 ? read_numbers(search, "cpu.max", quota, period)
                              : read_numbers(search, "cpu.cfs_quota_us", quota, NULL) &&
                                    read_numbers(search, "cpu.cfs_period_us", period, NULL);

    return read && *quota > 0 && *quota <= INT64_MAX / 1000 && *period > 0;
}

/* Device and inode, and not the name, say which cgroup it is: containers see it under names of
 * their own. */
static uint64_t group_of(struct search *search)
{
    const char *path = path_of(search, search->folder, "");
    struct stat is;

    if (!path || stat(path, &is))
        return 0;
    uint64_t hash = collx_hash(COLLX_HASH_START, &is.st_dev, sizeof is.st_dev);
    return collx_hash(hash, &is.st_ino, sizeof is.st_ino);
}

static void look_at_folder(struct search *search, enum hierarchy version)
{
    int64_t quota, period;

    if (search->count == search->room || !read_quota(search, version, &quota, &period))
        return;
    struct collx_cpu_limit limit = {group_of(search), quota * 1000 / period};
    if (!limit.group)
        return;
    if (limit.millicpus == 0)
        limit.millicpus = 1;
    for (int i = 0; i < search->count; i++)
        if (search->limits[i].group == limit.group)
            return; /* a hierarchy may be mounted twice */
    search->limits[search->count++] = limit;
}

/* What remains of the path of this process's cgroup below the one that is mounted, or NULL if it
 * is not below.  In a cgroup namespace, names begin at the namespace's own root: "/.." is above. */
static const char *below(const char *mounted, const char *path)
{
    const size_t length = strcmp(mounted, "/") ? strlen(mounted) : 0;

    if (!*path || !strncmp(path, "/..", 3))
        return NULL; /* in none, or somewhere else, under names that nobody tells */
    if (!strncmp(mounted, "/..", 3))
        return ""; /* some cgroup above, and how to come down from it nobody tells */
    if (strncmp(path, mounted, length) || (path[length] != '/' && path[length]))
        return NULL; /* put elsewhere by somebody outside of this container */
    return path + length;
}

/* A hierarchy is mounted at `point`, from its cgroup `mounted` on. */
static void look_up(struct search *search, enum hierarchy version, const char *mounted,
                    const char *point)
{
    const char *rest = below(mounted, search->own[version]);
    const size_t top = strlen(point), size = sizeof search->folder;
    char *last = search->folder;

    if (!rest || snprintf(search->folder, size, "%s%s", point, rest) >= (int)size)
        return;
    /* Every cgroup on the way up counts.  One that is not there (a container may show less than it
     * tells) has no quota. */
    while (last) {
        look_at_folder(search, version);
        last = strrchr(search->folder + top, '/');
        if (last)
            *last = '\0';
    }
}

/* "ID:CONTROLLERS:PATH"; no controllers: version 2. */
static void read_own_line(struct search *search, char *line)
{
    strsep(&line, ":");
    const char *controllers = strsep(&line, ":");

    if (!line || (*controllers && !has_word(controllers, "cpu")))
        return;
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) < PATH_MAX)
        memcpy(search->own[*controllers ? V1 : V2], line, strlen(line) + 1);
}

/* mountinfo writes blanks, and what else would be taken for its own, as \040. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* "ID PARENT DEVICE MOUNTED POINT OPTIONS [more …] - TYPE SOURCE OPTIONS" */
static void read_mount_line(struct search *search, char *line)
{
    char *word[6] = {0}, *type, *each;

    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < 6; i++)
        word[i] = strsep(&line, " ");
    while ((each = strsep(&line, " ")) && strcmp(each, "-") != 0)
        ;
    type = strsep(&line, " ");
    strsep(&line, " ");
    if (!line)
        return;
    unescape(word[3]);
    unescape(word[4]);
    if (!strcmp(type, "cgroup2"))
        look_up(search, V2, word[3], word[4]);
    else if (!strcmp(type, "cgroup") && has_word(line, "cpu"))
        look_up(search, V1, word[3], word[4]);
}

static void for_lines(struct search *search, const char *folder, const char *name,
                      void (*take)(struct search *search, char *line))
{
    FILE *file = open_file(search, folder, name);
    char *line = NULL;
    size_t size = 0;

    if (!file)
        return;
    while (getline(&line, &size, file) > 0)
        take(search, line);
    free(line);
    fclose(file);
}

int collx_cpus_limits(const char *root, int pid, struct collx_cpu_limit *limits, int room)
{
    int keep = errno, count = 0;
    struct search *search = calloc(1, sizeof *search);
    char whose[32] = "/proc/self";

    if (pid)
        snprintf(whose, sizeof whose, "/proc/%d", pid);
    if (search) {
        search->root = root;
        search->limits = limits;
        search->room = room;
        for_lines(search, whose, "cgroup", read_own_line);
        for_lines(search, "/proc/self", "mountinfo", read_mount_line);
        count = search->count;
    }
    free(search);
    errno = keep;
    return count;
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
