/* LD_PRELOAD brings libcollx.so into every process of a job, so also into those of a container with
 * an older C library than collx was built with, or with musl; and their loader ends a process that
 * lacks a function of ours, or the version of one.  So what other C libraries than this one may not
 * have is asked for by the version that it had from its first day on, and need not be there. */
#ifndef COLLX_ANY_LIBC_H
#define COLLX_ANY_LIBC_H

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>

/* Since glibc 2.34 they are in libc itself and have a new version each, with which programs tell
 * that they look for them there; the older ones are there for programs that were built before. */
#pragma weak dlsym
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dlinfo
#pragma weak dladdr1
#pragma weak pthread_sigmask

#ifdef __GLIBC__
/* The first versions of each machine's glibc: of all it had then, and of what came soon after. */
#if defined __x86_64__ && defined __LP64__
#define FIRST "GLIBC_2.2.5"
#define SECOND "GLIBC_2.3.3"
#elif defined __aarch64__
#define FIRST "GLIBC_2.17"
#define SECOND FIRST
#endif
#endif

#ifdef FIRST
#define FROM(version, name) __asm__(".symver " #name "," #name "@" version)
FROM(FIRST, dlsym);
FROM(FIRST, dlopen);
FROM(FIRST, dlclose);
FROM(FIRST, dlerror);
FROM(FIRST, pthread_sigmask);
FROM(SECOND, dlinfo);
FROM(SECOND, dladdr1);
#undef FROM
#undef FIRST
#undef SECOND
#endif

/* What glibc's own libraries load others by, until 2.34. */
void *__libc_dlopen_mode(const char *name, int mode);
void *__libc_dlsym(void *handle, const char *name);
#pragma weak __libc_dlopen_mode
#pragma weak __libc_dlsym

typedef void *collx_dlsym_fn(void *handle, const char *name);

/* dlsym() also where nothing in the process needs libdl, in which it was: then the loading has to
 * be done by what glibc has for itself.  NULL: there is none. */
static inline collx_dlsym_fn *collx_find_dlsym(void)
{
    enum { FROM_A_PROGRAM = INT_MIN }; /* __RTLD_DLOPEN */

    if (dlsym || !__libc_dlopen_mode || !__libc_dlsym)
        return dlsym;
    void *libdl = __libc_dlopen_mode("libdl.so.2", RTLD_NOW | FROM_A_PROGRAM);
    return libdl ? (collx_dlsym_fn *)__libc_dlsym(libdl, "dlsym") : NULL;
}

#endif
