/* Aligned columns of UTF-8 text, as wide as they need to be and no wider than the terminal. */
#ifndef COLLX_REPORT_TABLE_H
#define COLLX_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { COLLX_TABLE_COLUMNS = 20, COLLX_TABLE_CELL = 160 };

struct collx_table {
    struct {
        const char *title;
        bool text; /* aligned to the left, and may be cut; numbers are neither */
    } column[COLLX_TABLE_COLUMNS];
    int columns;
    char (*cells)[COLLX_TABLE_CELL]; /* row by row */
    size_t count, room;
    bool failed; /* out of memory */
};

void collx_table_column(struct collx_table *table, const char *title, bool text);
/* The next cell, from left to right and top to bottom. */
void collx_table_cell(struct collx_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void collx_table_print(const struct collx_table *table, FILE *out, int width);
void collx_table_finish(struct collx_table *table);

#endif
