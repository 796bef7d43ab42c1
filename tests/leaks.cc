#include "tests/leaks.h"

#ifdef __SANITIZE_ADDRESS__
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <initializer_list>
#include <sanitizer/lsan_interface.h>

/* Of <sanitizer/allocator_interface.h>, which GCC's runtime is without. */
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *,
                                                                           size_t),
                                                         void (*freed)(const volatile void *));

/* What has been freed is kept for a while, to catch who still uses it: of all the teams before, and
 * each fork of another one copies the page tables of that.  4 MiB are that of several teams; with
 * the 256 that are usual these tests take three times as long.  The runtime finds it only where it
 * is not hidden. */
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options()
{
    return "quarantine_size_mb=4";
}

namespace
{

/* The sum of the addresses of all blocks freed since leaks_watch(), less those allocated.  The
 * other way round it would be the address of a single block that is lost, which so were not. */
std::atomic<uintptr_t> blocks;

/* glibc keeps a block for what a dlopen() has left to say, until it has been said. */
void clear_dlerror()
{
    dlerror();
    dlerror();
}

} // namespace

/* To load libraries may cost glibc a block that it keeps for as many others. */
void leaks_prepare()
{
    static bool prepared;

    if (prepared)
        return;
    prepared = true;
    void *one = dlopen("libanl.so.1", RTLD_LAZY), *other = dlopen("libutil.so.1", RTLD_LAZY);
    for (void *library : {one, other})
        if (library)
            dlclose(library);
}

void leaks_watch()
{
    clear_dlerror();
    __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void *block, size_t) {
            blocks.fetch_sub(reinterpret_cast<uintptr_t>(block), std::memory_order_relaxed);
        },
        [](const volatile void *block) {
            blocks.fetch_add(reinterpret_cast<uintptr_t>(block), std::memory_order_relaxed);
        });
}

/* To look writes to every block there is, and most are the parent's, pages that would have to be
 * copied: a process that has freed what it has allocated, nothing else, is let go without.  With
 * that these tests take a third of the time. */
bool leaks()
{
    clear_dlerror();
    return blocks.load(std::memory_order_relaxed) != 0 && __lsan_do_recoverable_leak_check() != 0;
}
#else
void leaks_prepare()
{
}

void leaks_watch()
{
}

bool leaks()
{
    return false;
}
#endif
