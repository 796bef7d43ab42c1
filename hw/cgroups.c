#include "hw/cgroups.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONS = COLLX_CGROUP_V2 + 1 };

/* On the heap: who calls a collective may have a small stack. */
struct collx_cgroups {
    const char *root, *controller;
    collx_cgroup_fn *look;
    void *with;
    char own[VERSIONS][PATH_MAX]; /* this process's cgroup; "": in none */
    char folder[2 * PATH_MAX];    /* the cgroup that is looked at */
    char path[3 * PATH_MAX];      /* the file that is read */
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
static const char *path_of(struct collx_cgroups *search, const char *folder, const char *name)
{
    int length = snprintf(search->path, sizeof search->path, "%s%s/%s", search->root, folder, name);

    return length < (int)sizeof search->path ? search->path : NULL;
}

const char *collx_cgroup_path(struct collx_cgroups *search, const char *name)
{
    return path_of(search, search->folder, name);
}

static FILE *open_file(struct collx_cgroups *search, const char *folder, const char *name)
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

bool collx_cgroup_numbers(struct collx_cgroups *search, const char *name, int64_t *first,
                          int64_t *second)
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
static void look_up(struct collx_cgroups *search, enum collx_cgroup_version version,
                    const char *mounted, const char *point)
{
    const char *rest = below(mounted, search->own[version]);
    const size_t top = strlen(point), size = sizeof search->folder;
    char *last = search->folder;

    if (!rest || snprintf(search->folder, size, "%s%s", point, rest) >= (int)size)
        return;
    /* Every cgroup on the way up counts.  One that is not there (a container may show less than it
     * tells) has no quota. */
    while (last) {
        search->look(search, version, search->with);
        last = strrchr(search->folder + top, '/');
        if (last)
            *last = '\0';
    }
}

/* "ID:CONTROLLERS:PATH"; no controllers: version 2. */
static void read_own_line(struct collx_cgroups *search, char *line)
{
    strsep(&line, ":");
    const char *controllers = strsep(&line, ":");

    if (!line || (*controllers && !has_word(controllers, search->controller)))
        return;
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) < PATH_MAX)
        memcpy(search->own[*controllers ? COLLX_CGROUP_V1 : COLLX_CGROUP_V2], line,
               strlen(line) + 1);
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
static void read_mount_line(struct collx_cgroups *search, char *line)
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
        look_up(search, COLLX_CGROUP_V2, word[3], word[4]);
    else if (!strcmp(type, "cgroup") && has_word(line, search->controller))
        look_up(search, COLLX_CGROUP_V1, word[3], word[4]);
}

static void for_lines(struct collx_cgroups *search, const char *folder, const char *name,
                      void (*take)(struct collx_cgroups *search, char *line))
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

void collx_cgroups_walk(const char *root, int pid, const char *controller, collx_cgroup_fn *look,
                        void *with)
{
    int keep = errno;
    struct collx_cgroups *search = calloc(1, sizeof *search);
    char whose[32] = "/proc/self";

    if (pid)
        snprintf(whose, sizeof whose, "/proc/%d", pid);
    if (search) {
        search->root = root;
        search->controller = controller;
        search->look = look;
        search->with = with;
        for_lines(search, whose, "cgroup", read_own_line);
        for_lines(search, "/proc/self", "mountinfo", read_mount_line);
    }
    free(search);
    errno = keep;
}
