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

/* How many bytes the character has that `text` begins with; 0: it is none of UTF-8. */
static size_t character(const unsigned char *text)
{
    const unsigned char lead = text[0];
    const size_t bytes = lead < 0x80   ? 1
                         : lead < 0xc2 ? 0
                         : lead < 0xe0 ? 2
                         : lead < 0xf0 ? 3
                         : lead < 0xf5 ? 4
                                       : 0;

    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    /* What would have been shorter, halves of UTF-16, and what is beyond U+10FFFF. */
    if ((lead == 0xe0 && text[1] < 0xa0) || (lead == 0xed && text[1] >= 0xa0) ||
        (lead == 0xf0 && text[1] < 0x90) || (lead == 0xf4 && text[1] >= 0x90))
        return 0;
    return bytes;
}

void collx_text_clean(char *text, char instead)
{
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        const unsigned char *at = (const unsigned char *)text;
        bytes = character(at);
        if (!bytes || *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
            memset(text, instead, bytes ? bytes : 1);
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
