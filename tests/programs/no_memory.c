/* On the rank that COLLX_TEST_NO_MEMORY names collx gets no large blocks of memory, and all others
 * do; or where a program counts down, one block not, of any size. To be preloaded. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 64 << 10 };

extern void *__libc_calloc(size_t count, size_t size);

static int is_for_collx(const void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/libcollx-");
}

static int is_on_that_rank(void)
{
    const char *rank = getenv("COLLX_TEST_NO_MEMORY"), *own = getenv("PMIX_RANK");

    own = own ? own : getenv("PMI_RANK");
    return rank && own && !strcmp(rank, own);
}

/* For the program: so many blocks it still gets, and not the next one; < 0: it gets all. */
__attribute__((visibility("default"))) int no_memory_after = -1;

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    if (no_memory_after < 0 && count * size < LARGE)
        return __libc_calloc(count, size);
    if (!is_for_collx(__builtin_return_address(0)))
        return __libc_calloc(count, size);
    if (no_memory_after >= 0 ? no_memory_after-- > 0 : !is_on_that_rank())
        return __libc_calloc(count, size);
    errno = ENOMEM;
    return NULL;
}
