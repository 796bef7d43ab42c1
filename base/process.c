#include "base/process.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* The process's number, in a page that the kernel clears in whatever child is forked. */
struct page {
    _Atomic pid_t own;
};

/* Where there is no such page; stays 0. */
static struct page nowhere;
static struct page *_Atomic page;

/* qemu's emulation of user programs has answered any advice with success, and done nothing. */
static bool takes_advice(void *memory, size_t bytes)
{
    return madvise(memory, bytes, MADV_WIPEONFORK) == 0 && madvise(memory, bytes, -1) != 0;
}

static struct page *page_make(void)
{
    const int keep = errno;
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct page *none = NULL, *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (made != MAP_FAILED && !takes_advice(made, bytes)) {
        munmap(made, bytes);
        made = MAP_FAILED;
    }
    if (made == MAP_FAILED)
        made = &nowhere;
    /* Release, to the acquires here and below: whoever sees where the page is uses it after it was
     * made.  What it holds orders nothing. */
    if (!atomic_compare_exchange_strong_explicit(&page, &none, made, memory_order_release,
                                                 memory_order_acquire)) {
        if (made != &nowhere)
            munmap(made, bytes);
        made = none;
    }
    errno = keep;
    return made;
}

pid_t collx_process_own(void)
{
    struct page *at = atomic_load_explicit(&page, memory_order_acquire);

    if (!at)
        at = page_make();
    pid_t own = atomic_load_explicit(&at->own, memory_order_relaxed);
    if (!own) {
        own = getpid();
        if (at != &nowhere)
            atomic_store_explicit(&at->own, own, memory_order_relaxed);
    }
    return own;
}
