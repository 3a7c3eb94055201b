/*
 * How `deepc top` writes: lines of so many columns, put together from pieces with a style. What is behind the last column is cut,
 * and of a table the lines above and below the part that is to be seen. A letter of UTF-8 counts as one column.
 */
#ifndef DC_VM_TOP_PEN_H
#define DC_VM_TOP_PEN_H

#include "vm/top_draw.h"

typedef enum dc_style { DC_PLAIN, DC_BOLD, DC_DIM, DC_GOOD, DC_WARN, DC_TITLE, DC_HEAD } dc_style;

typedef struct dc_pen {
    dc_text *t;
    const dc_top_look *look;
    uint32_t column, line;
    uint32_t skip, most; /* lines of a table: those left out at its beginning; shown at most */
    bool in_table;
    bool open; /* a style is on */
    uint32_t table_line;
} dc_pen;

void dc_pen_style(dc_pen *p, dc_style s);
/* Control characters and what is behind them are cut off. */
void dc_pen_put(dc_pen *p, dc_style s, const char *text);
void dc_pen_putf(dc_pen *p, dc_style s, const char *fmt, ...) DC_PRINTF(3, 4);
/* Blanks up to that column, which is at least one away. */
void dc_pen_go_to(dc_pen *p, uint32_t column);
void dc_pen_end_line(dc_pen *p);

void dc_pen_time(dc_pen *p, dc_style how, double seconds); /* "1:02:03" */
void dc_pen_span(dc_pen *p, dc_style how, double seconds); /* "12 us", "3.4 ms", "12.0 s" */
void dc_pen_rate(dc_pen *p, dc_style how, double v);
void dc_pen_bytes(dc_pen *p, dc_style how, double bytes);
void dc_pen_metric(dc_pen *p, dc_style how, double v); /* no number is a warning */
/* The format of a rate. */
const char *dc_pen_digits(double v);

#endif
