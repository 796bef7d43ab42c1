#include "hw/sisci.h"

#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FUNCTION_PREFIX "_SISCI_PUBLIC_FUNC_MT_SCI"
#define CONSTANT_PREFIX "_SISCI_PUBLIC_CONST_SCI_"

/* What has been loaded. */
struct loaded {
    struct collx_sisci sisci;
    void *library;
    bool guest; /* somebody had it before, in this process */
};

/* The loader is never asked for anything with the lock held: a thread that loads a library holds
 * the loader's, and its constructor may be here, too.  So several threads may be loading at once,
 * and one may be loading while another unloads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded used; /* once it has been started, until the last one who holds it lets go */
static bool started;
static unsigned holders; /* who use it, and who are about to */
/* Who have the library open, or are opening or closing it.  As long as there is one of these,
 * somebody who finds it loaded need not be a guest: only if all do who come meanwhile. */
static unsigned handles;
static bool has_guest;

static const struct {
    unsigned code;
    int error;
    const char *text;
} errors[] = {
    {0x40000909, -ENODEV, "no such adapter"},
    {0x4000090a, -EAGAIN, "the other node does not answer"},
    {0x4000090b, -EINVAL, "out of range"},
    {0x4000090c, -EAGAIN, "no such segment"},
    {0x40000918, -EEXIST, "the number of the segment is taken"},
};
enum { ERRORS = sizeof errors / sizeof *errors };

static unsigned find_error(unsigned error)
{
    unsigned i = 0;

    while (i < ERRORS && errors[i].code != error)
        i++;
    return i;
}

int collx_sisci_errno(unsigned error)
{
    unsigned i = find_error(error);

    return !error ? 0 : i < ERRORS ? errors[i].error : -EIO;
}

char *collx_sisci_text(unsigned error, char *text, size_t size)
{
    unsigned i = find_error(error);

    snprintf(text, size, "%s (0x%08x)", i < ERRORS ? errors[i].text : "an error of SISCI", error);
    return text;
}

/* The first of these that can be loaded, if none is asked for. */
static const char *const usual[] = {"libsisci.so", "/opt/DIS/lib64/libsisci.so", NULL};

static void *open_library(const char *path, bool *guest)
{
    const char *const one[] = {path, NULL};
    void *library = NULL, *before = NULL;

    for (const char *const *name = *path ? one : usual; *name && !library; name++) {
        before = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    }
    *guest = before;
    if (before)
        dlclose(before);
    return library;
}

/* Returns the name of a symbol that is missing, or NULL. */
static const char *find_symbols(void *library, struct collx_sisci *sisci)
{
    const struct {
        const char *name;
        void *place;
    } functions[] = {
#define FUNCTION(result, name, parameters) {FUNCTION_PREFIX #name, &sisci->name},
        COLLX_SISCI_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    const char *flag = CONSTANT_PREFIX "FLAG_NO_STORE_BARRIER";
    const unsigned *value = dlsym(library, flag);

    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol)
            return functions[i].name;
        memcpy(functions[i].place, &symbol, sizeof symbol);
    }
    if (!value)
        return flag;
    sisci->no_store_barrier = *value;
    return NULL;
}

static int load(const char *path, struct loaded *loaded, char *why, size_t size)
{
    loaded->library = open_library(path, &loaded->guest);
    if (!loaded->library) {
        const char *reason = dlerror();
        snprintf(why, size,
                 "cannot load Dolphin's SISCI library: %s; install their software, or set "
                 "COLLX_SISCI_LIBRARY to the path of libsisci.so",
                 reason ? reason : "no reason given");
        return COLLX_EUNFIT;
    }
    const char *missing = find_symbols(loaded->library, &loaded->sisci);
    if (!missing)
        return 0;
    snprintf(why, size,
             "the SISCI library has no %s; set COLLX_SISCI_LIBRARY to the path of one that has",
             missing);
    return COLLX_EUNFIT;
}

static int start(const struct collx_sisci *sisci, char *why, size_t size)
{
    unsigned error = 0;
    char text[80];

    sisci->Initialize(0, &error);
    if (error)
        snprintf(why, size,
                 "the SISCI library does not start: %s; its driver has to be loaded, dis_diag "
                 "shows what is wrong",
                 collx_sisci_text(error, text, sizeof text));
    return error ? COLLX_EUNFIT : 0;
}

static void unload(void *library)
{
    if (library)
        dlclose(library);
    pthread_mutex_lock(&lock);
    handles--;
    pthread_mutex_unlock(&lock);
}

/* With the lock held.  Returns whether it has come to its end: then it has to be unloaded. */
static bool let_go(void)
{
    if (--holders)
        return false;
    started = false;
    /* It would end what others in this process do with it: an MPI library, for instance. */
    if (!has_guest)
        used.sisci.Terminate();
    return true;
}

int collx_sisci_acquire(const char *path, const struct collx_sisci **sisci, char *why, size_t size)
{
    struct loaded own = {.library = NULL};
    int keep = errno, error = 0;
    bool loads = false;

    pthread_mutex_lock(&lock);
    holders++;
    if (!started) {
        loads = true;
        has_guest = handles++ == 0 || has_guest;
        pthread_mutex_unlock(&lock);
        error = load(path, &own, why, size);
        pthread_mutex_lock(&lock);
        has_guest = has_guest && (own.guest || !own.library);
        if (!started && !error && !(error = start(&own.sisci, why, size))) {
            started = true;
            used = own;
            loads = false;
        }
    }
    if (started) {
        error = 0;
        *sisci = &used.sisci;
    } else {
        holders--;
    }
    pthread_mutex_unlock(&lock);
    if (loads)
        unload(own.library);
    errno = keep;
    return error;
}

void collx_sisci_release(void)
{
    int keep = errno;

    pthread_mutex_lock(&lock);
    void *library = used.library;
    bool ends = let_go();
    pthread_mutex_unlock(&lock);
    if (ends)
        unload(library);
    errno = keep;
}
