/* A call site is a module and an offset in it; symbols are a matter of the report.
 *
 * Usually the caller of the MPI function is the program, and a hash table knows the address.  Where
 * the caller lies in a library that only passes MPI calls on (Fortran bindings, a tool), its
 * address says nothing about the program, so the stack is walked to the first frame outside.
 */
#include "trace/callsite.h"

#include "trace/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

enum {
    SITES = 1 << 14, /* slots of the hash table; sites beyond 3/4 of it are told as 0, unknown */
    MODULES = 1024,
    FRAMES = 64, /* how far up a program's frame may be */
};

struct site {
    uintptr_t address; /* 0: free */
    uint32_t module, id;
};

struct module {
    struct collx_object object; /* with a name of its own: it may be unloaded */
    bool passes_on;             /* only passes MPI calls on: not a place in the program */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct site sites[SITES];
static struct module modules[MODULES];
static uint32_t sites_used, modules_used, last_module;

static bool defines(void *handle, const struct collx_object *object, const char *name)
{
    void *symbol = dlsym(handle, name);
    struct collx_object found;

    /* A handle also finds what the module's own dependencies define. */
    return symbol && collx_object_find(symbol, &found) && collx_object_is(&found, object);
}

static bool is_passing_on(const struct collx_object *object)
{
    static const char *const prefixes[] = {"libmpi.",    "libmpi_",      "libmpich",
                                           "libmpifort", "libmpichfort", "libpmpi",
                                           "libcollx",   "libopen-pal",  "libopen-rte"};
    static const char *const names[] = {
#define X(KIND, Name, Iname, word) "MPI_" #Name, "MPI_" #Iname,
        COLLX_COLLECTIVES(X)
#undef X
            "MPI_Init",
        "MPI_Init_thread"};
    const char *slash = strrchr(object->name, '/');
    const char *base = slash ? slash + 1 : object->name;

    if (!*base) /* the program itself, whatever it defines or was linked with */
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(base, prefixes[i], strlen(prefixes[i])))
            return true;

    /* A tool gives itself away by defining functions of MPI. */
    void *handle = dlopen(object->name, RTLD_LAZY | RTLD_NOLOAD);
    bool found = false;
    for (size_t i = 0; handle && !found && i < sizeof names / sizeof *names; i++)
        found = defines(handle, object, names[i]);
    if (handle)
        dlclose(handle);
    return found;
}

struct search {
    const struct collx_object *object;
    struct collx_trace_module *module;
};

static void take_build_id(const char *notes, size_t size, struct collx_trace_module *module)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
        const ElfW(Nhdr) *note = (const void *)(notes + at);
        size_t name = at + sizeof *note;
        size_t desc = name + ((note->n_namesz + 3u) & ~3u);

        at = desc + ((note->n_descsz + 3u) & ~3u);
        if (at > size)
            return;
        if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
            memcmp(notes + name, "GNU", 4) || note->n_descsz > sizeof module->build_id)
            continue;
        memcpy(module->build_id, notes + desc, note->n_descsz);
        module->build_id_size = (uint8_t)note->n_descsz;
        return;
    }
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *search = data;

    (void)size;
    if (info->dlpi_addr != search->object->base || strcmp(info->dlpi_name, search->object->name))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum && !search->module->build_id_size; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            take_build_id((const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                          info->dlpi_phdr[i].p_memsz, search->module);
    return 1;
}

/* The number of a module that has been met before, from 1; else 0. */
static uint32_t module_known(const struct collx_object *found)
{
    /* Most calls come from where the last one came from. */
    for (uint32_t i = 0; i < modules_used; i++) {
        uint32_t at = (last_module + i) % modules_used;

        if (collx_object_is(&modules[at].object, found)) {
            last_module = at;
            return at + 1;
        }
    }
    return 0;
}

/* The same of any module; 0: there are too many, or no memory. */
static uint32_t module_find(const struct collx_object *found, bool passes_on,
                            const struct collx_callsite_ops *ops)
{
    uint32_t known = module_known(found);

    if (known || modules_used == MODULES)
        return known;

    char *name = strdup(found->name);
    if (!name)
        return 0;
    uint32_t at = modules_used++;
    modules[at] = (struct module){*found, passes_on};
    modules[at].object.name = name;
    last_module = at;
    if (passes_on)
        return at + 1;

    char path[PATH_MAX] = "";
    if (!*found->name) {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
    } else if (!realpath(found->name, path)) {
        snprintf(path, sizeof path, "%s", found->name);
    }
    struct collx_trace_module told = {.path = path};
    struct search search = {found, &told};
    dl_iterate_phdr(look_at_object, &search);
    ops->module(at + 1, &told);
    return at + 1;
}

static uint32_t site_find(uintptr_t address, uint32_t module, uintptr_t base,
                          const struct collx_callsite_ops *ops)
{
    uint32_t at = (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 40) % SITES;

    for (; sites[at].address; at = (at + 1) % SITES)
        if (sites[at].address == address && sites[at].module == module)
            return sites[at].id;
    if (sites_used >= SITES / 4 * 3)
        return 0;
    sites[at] = (struct site){address, module, ++sites_used};
    ops->site(sites[at].id, module, address - base);
    return sites[at].id;
}

/* *site is set when the address lies in a module that counts as the program. */
static bool is_program(const void *address, uint32_t *site, const struct collx_callsite_ops *ops)
{
    struct collx_object found;

    /* The call is before the address; a call that never returns may be a module's last byte. */
    if (!collx_object_find((const char *)address - 1, &found))
        return false;
    pthread_mutex_lock(&lock);
    uint32_t module = module_known(&found);
    if (!module && modules_used < MODULES) {
        /* Without our lock: a thread that loads a library holds the loader's, and its constructor
         * may be here, too. */
        pthread_mutex_unlock(&lock);
        bool passes_on = is_passing_on(&found);
        pthread_mutex_lock(&lock);
        module = module_find(&found, passes_on, ops);
    }
    bool program = module && !modules[module - 1].passes_on;
    if (program)
        *site = site_find((uintptr_t)address, module, found.base, ops);
    pthread_mutex_unlock(&lock);
    return program;
}

uint32_t collx_callsite_find(const void *caller, const struct collx_callsite_ops *ops)
{
    uint32_t site = 0;

    if (is_program(caller, &site, ops))
        return site;

    void *frames[FRAMES];
    int depth = unw_backtrace(frames, FRAMES);
    /* From the frame that we were told of: what lies below it is collx and what it went through. */
    int first = 0;
    while (first < depth && frames[first] != caller)
        first++;
    for (int i = first < depth ? first : 0; i < depth; i++)
        if (is_program(frames[i], &site, ops))
            return site;
    return 0;
}

void collx_callsite_reset(void)
{
    /* Also made anew: in the child of a fork another thread may seem to hold it. */
    pthread_mutex_init(&lock, NULL);
    memset(sites, 0, sizeof sites);
    for (uint32_t i = 0; i < modules_used; i++)
        free((char *)modules[i].object.name);
    sites_used = modules_used = last_module = 0;
}
