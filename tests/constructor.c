/* A library as a program's plugins are: while it is loaded, and the loader is locked, it runs what
 * the program says, which is to export in_constructor(). */
#include <dlfcn.h>

__attribute__((constructor)) static void run(void)
{
    void (*in_constructor)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "in_constructor");

    if (in_constructor)
        in_constructor();
    __asm__ volatile(""); /* else it might return past us */
}
