#include "vm/top_pen.h"

#include "core/base/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Is the line that is being written to be seen? */
static bool is_shown(const dc_pen *p)
{
    return !p->in_table ||
           (p->table_line >= p->skip && (p->look->rows == 0 || p->table_line < p->skip + p->most));
}

void dc_pen_style(dc_pen *p, dc_style s)
{
    static const char *const on[] = {"",         "\033[1m",    "\033[2m", "\033[32m",
                                     "\033[33m", "\033[1;36m", "\033[7m"};
    if (p->open)
        dc_text_puts(p->t, "\033[0m");
    p->open = s != DC_PLAIN && p->look->colour;
    if (p->open)
        dc_text_puts(p->t, on[s]);
}

/* Bytes of text that so many columns have room for; *used are filled. Control characters are cut off. */
static size_t fitting(const char *text, uint32_t room, uint32_t *used)
{
    size_t n = 0;
    *used = 0;
    for (; text[n] != '\0' && (unsigned char)text[n] >= ' ' && text[n] != 0x7f; n++) {
        const bool first = ((unsigned char)text[n] & 0xc0) != 0x80;
        if (first && *used == room)
            break;
        *used += first;
    }
    return n;
}

void dc_pen_put(dc_pen *p, dc_style s, const char *text)
{
    uint32_t used;
    const size_t n = fitting(text, p->look->columns - p->column, &used);
    p->column += used;
    if (!is_shown(p) || n == 0)
        return;
    dc_pen_style(p, s);
    dc_text_put(p->t, text, n);
}

void dc_pen_putf(dc_pen *p, dc_style s, const char *fmt, ...)
{
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    dc_pen_put(p, s, text);
}

void dc_pen_go_to(dc_pen *p, uint32_t column)
{
    do
        dc_pen_put(p, DC_PLAIN, " ");
    while (p->column < column && p->column < p->look->columns);
}

void dc_pen_end_line(dc_pen *p)
{
    if (is_shown(p)) {
        dc_pen_style(p, DC_PLAIN);
        dc_text_puts(p->t, "\n");
        p->line++;
    }
    p->column = 0;
    p->table_line += p->in_table;
}

/* ---- values ---------------------------------------------------------------------------------- */

void dc_pen_time(dc_pen *p, dc_style s, double seconds)
{
    dc_text t = {0};
    dc_top_print_time(&t, seconds);
    dc_pen_put(p, s, t.s);
    dc_text_free(&t);
}

void dc_pen_span(dc_pen *p, dc_style how, double s)
{
    if (s < 1e-3)
        dc_pen_putf(p, how, "%.0f us", s * 1e6);
    else if (s < 1)
        dc_pen_putf(p, how, "%.1f ms", s * 1e3);
    else if (s < 60)
        dc_pen_putf(p, how, "%.1f s", s);
    else
        dc_pen_time(p, how, s);
}

const char *dc_pen_digits(double v)
{
    return v >= 100 || v == 0 ? "%.0f" : v >= 10 ? "%.1f" : "%.2f";
}

void dc_pen_rate(dc_pen *p, dc_style how, double v)
{
    char text[40];
    dc_number_format(text, sizeof text, dc_pen_digits(v), v);
    dc_pen_put(p, how, text);
}

void dc_pen_bytes(dc_pen *p, dc_style how, double bytes)
{
    char text[DC_NUMBER_TEXT];
    dc_pen_put(p, how, dc_number_bytes(bytes > 0 ? (uint64_t)bytes : 0, text));
}

void dc_pen_metric(dc_pen *p, dc_style how, double v)
{
    dc_pen_putf(p, isfinite(v) ? how : DC_WARN, "%.4g", v);
}
