/* UTF-8, in which what people write comes: policies, and the names of communicators. */
#ifndef COLLX_UTF8_H
#define COLLX_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that begins at `text`, which a 0 ends; 0: these bytes are none.  Not
 * mbrlen(): that depends on the locale. */
static inline size_t collx_utf8_length(const char *text)
{
    static const uint32_t least[] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 : 4;
    uint32_t code = *byte & 0x7fu >> length;

    if (*byte < 0x80)
        return 1;
    if (*byte < 0xc0 || *byte >= 0xf8)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (byte[i] & 0x3f);
    }
    /* Written too long; half of a pair of UTF-16; beyond the last one. */
    bool wrong = code < least[length] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff;
    return wrong ? 0 : length;
}

#endif
