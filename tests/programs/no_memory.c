/* On the rank that COLLX_TEST_NO_MEMORY names collx gets no large blocks of memory, and all others
 * do, on that of COLLX_TEST_NO_BLOCK none at all; or where a program counts down, one block not, of
 * any size; or the library that it names gets none.  With COLLX_TEST_NO_FALLOCATE a kernel that
 * cannot set memory aside.  To be preloaded. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 64 << 10 };

extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_malloc(size_t size);

static int is_for(const char *library, const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, library);
}

static int is_on_that_rank(const char *variable)
{
    const char *rank = getenv(variable), *own = getenv("PMIX_RANK");

    own = own ? own : getenv("PMI_RANK");
    return rank && own && !strcmp(rank, own);
}

/* For the program: so many blocks it still gets, and not the next one; < 0: it gets all. */
__attribute__((visibility("default"))) int no_memory_after = -1;

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    int missing = is_for("/libcollx-", __builtin_return_address(0));

    if (missing && no_memory_after >= 0)
        missing = no_memory_after-- == 0;
    else if (missing)
        missing = is_on_that_rank("COLLX_TEST_NO_BLOCK") ||
                  (count * size >= LARGE && is_on_that_rank("COLLX_TEST_NO_MEMORY"));
    if (!missing)
        return __libc_calloc(count, size);
    errno = ENOMEM;
    return NULL;
}

/* For the program: part of the path of a library that gets none from now on, or NULL.  "/ld-", the
 * loader, wants some where a thread first uses the thread-local variables of a library. */
__attribute__((visibility("default"))) const char *no_memory_for;

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    if (!no_memory_for || !is_for(no_memory_for, __builtin_return_address(0)))
        return __libc_malloc(size);
    errno = ENOMEM;
    return NULL;
}

__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t length)
{
    typedef int function(int, int, off_t, off_t);
    function *real = (function *)dlsym(RTLD_NEXT, "fallocate64");

    if (!getenv("COLLX_TEST_NO_FALLOCATE"))
        return real(fd, mode, offset, length);
    errno = EOPNOTSUPP;
    return -1;
}
