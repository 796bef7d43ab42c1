#include "report/table.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdlib.h>

enum { NARROWEST = 10 }; /* what a column of text is not cut below */

void collx_table_column(struct collx_table *table, const char *title, bool text)
{
    table->column[table->columns].title = title;
    table->column[table->columns].text = text;
    table->columns++;
}

void collx_table_cell(struct collx_table *table, const char *format, ...)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 64;
        void *larger = realloc(table->cells, room * sizeof *table->cells);
        if (!larger) {
            table->failed = true;
            return;
        }
        table->cells = larger;
        table->room = room;
    }
    char *cell = table->cells[table->count++];
    va_list args;
    va_start(args, format);
    vsnprintf(cell, sizeof *table->cells, format, args);
    va_end(args);
    cell[collx_text_fit(cell, sizeof *table->cells - 1)] = 0;
}

/* Characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_cell(FILE *out, const char *cell, int width, bool text, bool last)
{
    int pad = width - width_of(cell);

    if (pad < 0) { /* cut, and say so */
        for (int i = 0; i < width - 1; i++)
            do
                putc(*cell++, out);
            while (((unsigned char)*cell & 0xc0) == 0x80);
        fputs("…", out);
        return;
    }
    if (text)
        fprintf(out, "%s%*s", cell, last ? 0 : pad, "");
    else
        fprintf(out, "%*s%s", pad, "", cell);
}

static int total(const int *widths, int columns, int gap)
{
    int sum = 2 - gap; /* the indent */

    for (int i = 0; i < columns; i++)
        sum += widths[i] + gap;
    return sum;
}

void collx_table_print(const struct collx_table *table, FILE *out, int width)
{
    int widths[COLLX_TABLE_COLUMNS], columns = table->columns, gap = 2;
    size_t rows = table->count / (size_t)columns;

    for (int c = 0; c < columns; c++) {
        widths[c] = width_of(table->column[c].title);
        for (size_t r = 0; r < rows; r++) {
            int cell = width_of(table->cells[r * (size_t)columns + (size_t)c]);
            widths[c] = cell > widths[c] ? cell : widths[c];
        }
    }
    if (total(widths, columns, gap) > width)
        gap = 1;
    /* The widest text gives way first. */
    while (total(widths, columns, gap) > width) {
        int widest = -1;
        for (int c = 0; c < columns; c++)
            if (table->column[c].text && widths[c] > NARROWEST &&
                (widest < 0 || widths[c] >= widths[widest]))
                widest = c;
        if (widest < 0)
            break;
        widths[widest]--;
    }
    for (size_t r = 0; r <= rows; r++) {
        fputs("  ", out);
        for (int c = 0; c < columns; c++) {
            const char *cell =
                r ? table->cells[(r - 1) * (size_t)columns + (size_t)c] : table->column[c].title;
            if (c)
                fprintf(out, "%*s", gap, "");
            print_cell(out, cell, widths[c], table->column[c].text, c == columns - 1);
        }
        putc('\n', out);
    }
}

void collx_table_finish(struct collx_table *table)
{
    free(table->cells);
}
