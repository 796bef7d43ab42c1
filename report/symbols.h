/* Names for call sites, by libdw. */
#ifndef COLLX_REPORT_SYMBOLS_H
#define COLLX_REPORT_SYMBOLS_H

#include "report/summary.h"

struct collx_symbol {
    const char *module;   /* path; "" unknown */
    uint64_t offset;      /* of the return address */
    const char *function; /* NULL: not known */
    const char *file;     /* NULL: not known; then line is 0 */
    int line;
};

/* NULL: out of memory.  Reads nothing yet, and never asks a debuginfod server. */
struct collx_symbols *collx_symbols_create(const struct collx_summary *summary);

/* The symbol of a site of the summary; its strings belong to `symbols`.  Where the module is not
 * there any more, or is not the one that ran, function and file are NULL. */
struct collx_symbol collx_symbols_find(struct collx_symbols *symbols, uint32_t site);

/* "function (file.c:12)", "module+0x1234", "unknown". */
void collx_symbol_print(const struct collx_symbol *symbol, char *text, size_t size);

void collx_symbols_destroy(struct collx_symbols *symbols);

#endif
