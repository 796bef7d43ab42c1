#include "base/log.h"

#include "base/stderr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void collx_warn(const char *format, ...)
{
    int keep = errno;
    char text[2048] = "collx: ";
    va_list args;

    va_start(args, format);
    int length = 7 + vsnprintf(text + 7, sizeof text - 8, format, args);
    va_end(args);
    collx_text_clean(text, '?');
    if (length > (int)sizeof text - 2)
        length = (int)sizeof text - 2;
    text[length++] = '\n';

    collx_stderr_write(text, (size_t)length);
    errno = keep;
}

void collx_text_clean(char *text, char instead)
{
    for (unsigned char before = 0; *text; before = (unsigned char)*text++) {
        unsigned char c = (unsigned char)*text;
        bool second = before == 0xc2 && c >= 0x80 && c < 0xa0;

        if (second)
            text[-1] = instead;
        if (second || c < ' ' || c == 0x7f)
            *text = instead;
    }
}

size_t collx_text_fit(const char *text, size_t size)
{
    size_t length = strnlen(text, size), last = length;

    if (length < size)
        return length;
    while (last > 0 && ((unsigned char)text[--last] & 0xc0) == 0x80)
        continue;
    unsigned char lead = (unsigned char)text[last];
    size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return last + bytes > length ? last : length;
}
