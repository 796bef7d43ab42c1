/* The output formats.  To add one: a file with one of these, and its name in main.c. */
#ifndef COLLX_REPORT_FORMAT_H
#define COLLX_REPORT_FORMAT_H

#include "report/summary.h"
#include "report/symbols.h"

#include <stdio.h>

struct collx_report_view {
    unsigned by; /* 0: what suits the format */
    size_t top;  /* rows at most; 0: all */
    int width;   /* columns that a line may take */
};

struct collx_format {
    const char *name;
    size_t top; /* what collx_report_view.top is unless somebody says it */
    /* 0 or -ENOMEM; errors of the stream are its own. */
    int (*print)(FILE *out, const struct collx_summary *summary, struct collx_symbols *symbols,
                 const struct collx_report_view *view);
};

extern const struct collx_format collx_format_text, collx_format_csv, collx_format_json;

#endif
