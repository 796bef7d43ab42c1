/* Messages to the person who runs the program: on stderr, in one write, beginning "collx: ".
 *
 * A message says what happened, why, and what to do.  Whoever calls sees to it that one rank
 * speaks for all; collx_warn_once sees to it that a process says a thing once.
 */
#ifndef COLLX_LOG_H
#define COLLX_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* One message; a newline is added.  Keeps errno. */
void collx_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, but only the first time that `said` is false; thread-safe.  `said` is static. */
#define collx_warn_once(said, ...)                                                                 \
    do {                                                                                           \
        if (!__atomic_exchange_n((said), true, __ATOMIC_RELAXED))                                  \
            collx_warn(__VA_ARGS__);                                                               \
    } while (0)

/* What others have written, files or people or programs, may stand in a message, but not take hold
 * of a terminal, or begin a line: put `instead` for each byte of a control character, those of
 * U+0080 to U+009F among them, and for each that is no UTF-8. */
void collx_text_clean(char *text, char instead);

/* How many bytes of `text` to keep where there is room for `size`: all, or what ends with a whole
 * character of UTF-8. */
size_t collx_text_fit(const char *text, size_t size);

#endif
