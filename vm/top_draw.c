/*
 * A frame is a head, which always stays, and tables, which scroll: ranks, functions, kernels.
 *
 * Each line is put together from pieces with a style; what is behind the last column is cut. A letter of UTF-8 counts as one column.
 */
#include "vm/top_draw.h"

#include "core/base/number.h"
#include "vm/top_rates.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum style { PLAIN, BOLD, DIM, GOOD, WARN, TITLE, HEAD } style;

typedef struct pen {
    dc_text *t;
    const dc_top_look *look;
    uint32_t column, line;
    uint32_t skip, most; /* lines of a table: those left out at its beginning; shown at most */
    bool in_table;
    bool open; /* a style is on */
    uint32_t table_line;
} pen;

/* ---- lines ----------------------------------------------------------------------------------- */

/* Is the line that is being written to be seen? */
static bool is_shown(const pen *p)
{
    return !p->in_table ||
           (p->table_line >= p->skip && (p->look->rows == 0 || p->table_line < p->skip + p->most));
}

static void switch_style(pen *p, style s)
{
    static const char *const on[] = {"",         "\033[1m",    "\033[2m", "\033[32m",
                                     "\033[33m", "\033[1;36m", "\033[7m"};
    if (p->open)
        dc_text_puts(p->t, "\033[0m");
    p->open = s != PLAIN && p->look->colour;
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

static void put(pen *p, style s, const char *text)
{
    uint32_t used;
    const size_t n = fitting(text, p->look->columns - p->column, &used);
    p->column += used;
    if (!is_shown(p) || n == 0)
        return;
    switch_style(p, s);
    dc_text_put(p->t, text, n);
}

static void putf(pen *p, style s, const char *fmt, ...) DC_PRINTF(3, 4);
static void putf(pen *p, style s, const char *fmt, ...)
{
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    put(p, s, text);
}

/* Blanks up to that column, which is at least one away. */
static void go_to(pen *p, uint32_t column)
{
    do
        put(p, PLAIN, " ");
    while (p->column < column && p->column < p->look->columns);
}

static void end_line(pen *p)
{
    if (is_shown(p)) {
        switch_style(p, PLAIN);
        dc_text_puts(p->t, "\n");
        p->line++;
    }
    p->column = 0;
    p->table_line += p->in_table;
}

/* ---- values ---------------------------------------------------------------------------------- */

void dc_top_print_time(dc_text *t, double seconds)
{
    const long long s = seconds > 0 && seconds < 1e15 ? (long long)seconds : 0;
    if (s >= 86400)
        dc_text_printf(t, "%lld d %lld h", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        dc_text_printf(t, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        dc_text_printf(t, "%lld:%02lld", s / 60, s % 60);
}

static void put_time(pen *p, style s, double seconds)
{
    dc_text t = {0};
    dc_top_print_time(&t, seconds);
    put(p, s, t.s);
    dc_text_free(&t);
}

/* "12 us", "3.4 ms", "12 s" */
static void put_span(pen *p, style how, double s)
{
    if (s < 1e-3)
        putf(p, how, "%.0f us", s * 1e6);
    else if (s < 1)
        putf(p, how, "%.1f ms", s * 1e3);
    else if (s < 60)
        putf(p, how, "%.1f s", s);
    else
        put_time(p, how, s);
}

static const char *digits_of(double v)
{
    return v >= 100 || v == 0 ? "%.0f" : v >= 10 ? "%.1f" : "%.2f";
}

static void put_rate(pen *p, style how, double v)
{
    char text[40];
    dc_number_format(text, sizeof text, digits_of(v), v);
    put(p, how, text);
}

static void put_bytes(pen *p, style how, double bytes)
{
    char text[DC_NUMBER_TEXT];
    put(p, how, dc_number_bytes(bytes > 0 ? (uint64_t)bytes : 0, text));
}

static void put_metric(pen *p, style how, double v)
{
    putf(p, isfinite(v) ? how : WARN, "%.4g", v);
}

const char *dc_top_command(const dc_top_snapshot *s)
{
    const char *end = strchr(s->command, ' '), *at = s->command;
    for (const char *c = at; *c != '\0' && c != end; c++)
        if (*c == '/')
            at = c + 1;
    return at;
}

void dc_top_print_doing(dc_text *t, const dc_top_snapshot *s)
{
    char span[40];
    const double d = s->doing;
    dc_number_format(span, sizeof span, d < 1 ? "%.1f ms" : "%.1f s", d < 1 ? d * 1e3 : d);
    if (strcmp(s->what, "call") == 0)
        dc_text_printf(t, "in %s", s->name);
    else if (strcmp(s->what, "compilation") == 0)
        dc_text_printf(t, "waits for the compilation of %s", s->name);
    else if (strcmp(s->what, "expression") == 0)
        dc_text_puts(t, "in lazy code");
    else
        dc_text_puts(t, "in the script");
    dc_text_printf(t, " for %s", span);
}

static void print_wait(dc_text *t, const dc_top_snapshot *s)
{
    char span[40];
    dc_number_format(span, sizeof span, "%.1f s", s->wait);
    if (s->wait_rank >= 0)
        dc_text_printf(t, "waits for rank %.0f in %s for %s", s->wait_rank, s->wait_in, span);
    else
        dc_text_printf(t, "waits for the others in %s for %s", s->wait_in, span);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void draw_title(pen *p, const dc_top_snapshot *s)
{
    dc_text t = {0};
    char rank[60] = "";
    if (s->ranks > 1)
        snprintf(rank, sizeof rank, "  rank %.0f of %.0f", s->rank, s->ranks);
    dc_text_printf(&t, "%s  up ", s->device);
    dc_top_print_time(&t, s->open);
    const uint32_t right = (uint32_t)t.n;
    put(p, TITLE, "deepc top");
    putf(p, PLAIN, "  %.0f%s  ", s->pid, rank);
    const uint32_t room =
        p->look->columns > p->column + right + 2 ? p->look->columns - p->column - right - 2 : 0;
    putf(p, BOLD, "%.*s", (int)room, dc_top_command(s));
    if (p->look->columns > right)
        go_to(p, p->look->columns - right);
    put(p, PLAIN, t.s);
    dc_text_free(&t);
    end_line(p);
}

/* Counters that have not come for a while are old: the script is somewhere else than in a call that ends. */
static void draw_doing(pen *p, const dc_top_client *c)
{
    const dc_top_snapshot *s = c->now;
    dc_text t = {0};
    if (c->fd < 0)
        dc_text_printf(&t, "%s", c->why);
    else if (s->wait >= 0)
        print_wait(&t, s);
    else
        dc_top_print_doing(&t, s);
    put(p, c->fd < 0 || s->wait >= 1 || s->doing >= 5 ? WARN : PLAIN, t.s);
    dc_text_free(&t);
    if (p->look->paused)
        put(p, WARN, "  paused");
    else if (c->fd >= 0 && s->age < 0)
        put(p, DIM, "  no counters yet");
    else if (c->fd >= 0 && s->age > 1.5) {
        put(p, WARN, "  counters are ");
        put_span(p, WARN, s->age);
        put(p, WARN, " old");
    }
    end_line(p);
}

static void draw_rates(pen *p, const dc_top_snapshot *s, const dc_top_rates *r)
{
    put_rate(p, BOLD, r->steps);
    if (r->step != NULL)
        putf(p, PLAIN, " %.30s/s", r->step);
    else
        put(p, PLAIN, " steps/s");
    put(p, PLAIN, "  ");
    put_rate(p, PLAIN, r->calls);
    put(p, DIM, " calls/s  ");
    put_rate(p, PLAIN, r->launches);
    put(p, DIM, " launches/s  ");
    if (r->cpu > 0) {
        putf(p, PLAIN, "%.0f%%", r->cpu * 100);
        put(p, DIM, " CPU  ");
    }
    putf(p, PLAIN, "%.0f", s->process_threads);
    putf(p, DIM, " threads, %.0f for kernels", s->kernel_threads);
    end_line(p);
}

static void draw_memory(pen *p, const dc_top_snapshot *s)
{
    put(p, DIM, "memory ");
    put_bytes(p, PLAIN, s->live);
    put(p, DIM, "  peak ");
    put_bytes(p, PLAIN, s->peak);
    if (s->limit > 0) {
        put(p, DIM, "  limit ");
        put_bytes(p, s->live + s->metadata > 0.9 * s->limit ? WARN : PLAIN, s->limit);
    }
    put(p, DIM, "  process ");
    put_bytes(p, PLAIN, s->resident);
    put(p, DIM, "  pool ");
    put_bytes(p, PLAIN, s->held);
    end_line(p);
}

static void draw_bar(pen *p, double part, uint32_t width)
{
    char bar[64] = "";
    const uint32_t full = (uint32_t)(part * width);
    for (uint32_t i = 0; i < width && i < sizeof bar - 1; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[width < sizeof bar - 1 ? width : sizeof bar - 1] = '\0';
    put(p, PLAIN, "  [");
    put(p, GOOD, bar);
    put(p, PLAIN, "]");
}

static void draw_loop(pen *p, const dc_top_loop *x, double age)
{
    putf(p, BOLD, "%.40s", x->title[0] != '\0' ? x->title : "loop");
    if (x->total >= 0)
        putf(p, PLAIN, "  %.0f/%.0f", x->done, x->total);
    else
        putf(p, PLAIN, "  %.0f", x->done);
    if (x->total > 0) {
        putf(p, PLAIN, "  %3.0f%%", floor(x->done * 100 / x->total));
        draw_bar(p, x->done / x->total, p->look->columns >= 100 ? 24 : 12);
    }
    put(p, PLAIN, "  ");
    put_time(p, PLAIN, x->seconds + age);
    const double rate = x->done > 1 && x->since_first > 0 ? (x->done - 1) / x->since_first : 0;
    if (rate > 0 && x->total > x->done) {
        put(p, DIM, "  left ");
        put_time(p, PLAIN, (x->total - x->done) / rate);
    }
    if (rate > 0 && x->size > 0) {
        put(p, PLAIN, "  ");
        put_rate(p, PLAIN, rate * x->size);
        put(p, DIM, " items/s");
    }
    end_line(p);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* The value of the metric at that time: of the last point before it. */
static double value_at(const dc_top_metric *m, double seconds)
{
    uint32_t i = 0;
    while (i + 1 < m->npoint && m->point[i + 1].seconds <= seconds)
        i++;
    return m->point[i].value;
}

static void find_range(const dc_top_metric *m, double *least, double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (uint32_t i = 0; i < m->npoint; i++) {
        const double v = m->point[i].value;
        if (isfinite(v)) {
            *least = fmin(*least, v);
            *most = fmax(*most, v);
        }
    }
}

static const char *mark_of(const pen *p, double part)
{
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const sign[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    const int at = isfinite(part) ? (int)(part * 7.999) : 7;
    return p->look->unicode ? block[at] : sign[at];
}

/* Of least..most; by powers where they differ much, as losses do. */
static double part_of(double v, double least, double most)
{
    enum { MUCH = 10 };
    if (!(most > least))
        return 0;
    if (least > 0 && most > MUCH * least)
        return log(v / least) / log(most / least);
    return (v - least) / (most - least);
}

/* Its whole history in so many columns. What is no number is marked. */
static void draw_curve(pen *p, const dc_top_metric *m, uint32_t width)
{
    double least, most;
    find_range(m, &least, &most);
    if (m->npoint < 2 || !(least <= most))
        return;
    const double first = m->point[0].seconds, span = m->point[m->npoint - 1].seconds - first;
    for (uint32_t i = 0; i < width; i++) {
        const double v = value_at(m, first + span * i / (width - 1));
        if (isfinite(v))
            put(p, GOOD, mark_of(p, part_of(v, least, most)));
        else
            put(p, WARN, "!");
    }
}

static void draw_metric(pen *p, const dc_top_metric *m)
{
    const uint32_t columns = p->look->columns, from = columns > 60 ? 30 : 24;
    putf(p, BOLD, "%.*s", (int)from - 12, m->name);
    go_to(p, from - 10);
    put_metric(p, PLAIN, m->value);
    go_to(p, from);
    if (columns > from + 10)
        draw_curve(p, m, columns - from - 1 < 80 ? columns - from - 1 : 80);
    end_line(p);
}

/* Losses first, and those of training in front of "eval.loss". */
static int place_of(const dc_top_metric *m)
{
    return (strstr(m->name, "loss") == NULL) * 2 + (strchr(m->name, '.') != NULL);
}

static bool comes_first(const dc_top_metric *a, const dc_top_metric *b)
{
    const int by = place_of(a) - place_of(b);
    return by != 0 ? by < 0 : strcmp(a->name, b->name) <= 0;
}

static uint32_t order_metrics(const dc_top_snapshot *s,
                              const dc_top_metric *out[DC_MONITOR_METRICS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nmetric; i++) {
        const dc_top_metric *m = &s->metric[i];
        uint32_t at = n++;
        for (; at > 0; at--) {
            const dc_top_metric *b = out[at - 1];
            if (comes_first(b, m))
                break;
            out[at] = b;
        }
        out[at] = m;
    }
    return n;
}

/* A curve for the first ones, the others in a line. */
static void draw_metrics(pen *p, const dc_top_snapshot *s)
{
    const dc_top_metric *m[DC_MONITOR_METRICS];
    const uint32_t n = order_metrics(s, m), curves = p->look->rows == 0    ? n
                                                     : p->look->rows >= 40 ? 8
                                                                           : 3;
    for (uint32_t i = 0; i < n && i < curves; i++)
        draw_metric(p, m[i]);
    for (uint32_t i = curves; i < n; i++) {
        putf(p, DIM, "%s%s ", i > curves ? "  " : "", m[i]->name);
        put_metric(p, PLAIN, m[i]->value);
    }
    if (n > curves)
        end_line(p);
}

static void draw_compilations(pen *p, const dc_top_snapshot *s)
{
    if (s->ncompilation == 0)
        return;
    put(p, DIM, "compiling");
    for (uint32_t i = 0; i < s->ncompilation; i++) {
        putf(p, PLAIN, "%s %s", i > 0 ? "," : "", s->compilation[i].name);
        if (s->compilation[i].running) {
            put(p, DIM, " for ");
            put_span(p, PLAIN, s->compilation[i].seconds);
        } else
            put(p, DIM, " next");
    }
    end_line(p);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *base_name(const char *where)
{
    const char *slash = strrchr(where, '/');
    return slash != NULL ? slash + 1 : where;
}

static void head_of_table(pen *p, const char *text)
{
    putf(p, HEAD, "%-*s", (int)p->look->columns, text);
    end_line(p);
}

static void draw_functions(pen *p, const dc_top_client *c)
{
    dc_top_row row[DC_MONITOR_KERNELS];
    const uint32_t n = dc_top_rows(c, false, p->look->sort, row);
    if (n == 0)
        return;
    head_of_table(p, "FUNCTION                          CALLS    CALLS/S     MS/CALL   TIME");
    for (uint32_t i = 0; i < n; i++) {
        putf(p, PLAIN, "%-27.27s %11.0f %10.1f %11.3f ", row[i].of->name, row[i].of->times,
             row[i].rate, row[i].each * 1e3);
        putf(p, row[i].share >= 0.2 ? BOLD : PLAIN, "%5.1f%%", row[i].share * 100);
        end_line(p);
    }
}

static void draw_kernels(pen *p, const dc_top_client *c)
{
    dc_top_row row[DC_MONITOR_KERNELS];
    const uint32_t n = dc_top_rows(c, true, p->look->sort, row);
    if (n == 0)
        return;
    head_of_table(
        p, "KERNEL               WHERE         LAUNCHES/S  US/LAUNCH   TIME  GFLOP/S   GB/S");
    for (uint32_t i = 0; i < n; i++) {
        putf(p, PLAIN, "%-20.20s %-14.14s", row[i].of->name, base_name(row[i].of->where));
        putf(p, PLAIN, "%10.1f %10.2f ", row[i].rate, row[i].each * 1e6);
        putf(p, row[i].share >= 0.1 ? BOLD : PLAIN, "%5.1f%%", row[i].share * 100);
        if (row[i].of->flops > 0 || row[i].of->bytes > 0)
            putf(p, PLAIN, " %8.1f %6.1f", row[i].flops / 1e9, row[i].bytes / 1e9);
        end_line(p);
    }
}

static void draw_rank(pen *p, const dc_top_clients *all, uint32_t i)
{
    const dc_top_client *c = &all->at[i];
    const dc_top_snapshot *s = c->now;
    dc_top_rates r;
    dc_text t = {0};
    char live[DC_NUMBER_TEXT] = "";
    if (s == NULL)
        return;
    dc_top_rates_of(c, &r);
    if (c->fd < 0)
        dc_text_puts(&t, c->why);
    else if (s->wait >= 0)
        print_wait(&t, s);
    else
        dc_top_print_doing(&t, s);
    dc_number_bytes((uint64_t)s->live, live);
    putf(p, i == p->look->selected ? BOLD : PLAIN, "%c%4.0f %8.0f  %-10.10s %8.1f %11s  ",
         i == p->look->selected ? '>' : ' ', s->rank, s->pid, s->device, r.steps, live);
    put(p, c->fd < 0 || s->wait >= 1 ? WARN : PLAIN, t.s);
    dc_text_free(&t);
    end_line(p);
}

static void draw_ranks(pen *p, const dc_top_clients *all)
{
    if (all->n < 2)
        return;
    head_of_table(p, " RANK      PID  DEVICE      STEPS/S      MEMORY  IS");
    for (uint32_t i = 0; i < all->n; i++)
        draw_rank(p, all, i);
}

const char *dc_top_sort_name(dc_top_sort s)
{
    static const char *const name[] = {"time", "rate", "each", "name"};
    return name[s];
}

static void draw_keys(pen *p, const dc_top_clients *all)
{
    p->in_table = false;
    put(p, BOLD, "q");
    put(p, DIM, " quit  ");
    put(p, BOLD, "s");
    putf(p, DIM, " sort: %s  ", dc_top_sort_name(p->look->sort));
    put(p, BOLD, "p");
    putf(p, DIM, " %s  ", p->look->paused ? "go on" : "pause");
    put(p, BOLD, "k");
    putf(p, DIM, " kernels %s  ", p->look->kernels ? "off" : "on");
    put(p, BOLD, p->look->unicode ? "↑↓" : "arrows");
    put(p, DIM, " scroll");
    if (all->n > 1) {
        put(p, BOLD, "  Tab");
        put(p, DIM, " next rank");
    }
    switch_style(p, PLAIN);
}

static void draw_tables(pen *p, const dc_top_clients *all, const dc_top_client *c)
{
    draw_ranks(p, all);
    if (c->now->age < 0)
        return;
    draw_functions(p, c);
    draw_kernels(p, c);
}

/* How many lines the tables have: drawn where none is shown. */
static uint32_t count_lines(const pen *p, const dc_top_clients *all, const dc_top_client *c)
{
    pen q = *p;
    q.in_table = true;
    q.skip = UINT32_MAX;
    draw_tables(&q, all, c);
    return q.table_line;
}

void dc_top_draw(dc_text *t, const dc_top_clients *all, dc_top_look *look)
{
    const dc_top_client *c = &all->at[look->selected];
    pen p = {.t = t, .look = look};
    dc_top_rates r;
    dc_top_rates_of(c, &r);
    draw_title(&p, c->now);
    draw_doing(&p, c);
    if (c->now->age >= 0) {
        draw_rates(&p, c->now, &r);
        draw_memory(&p, c->now);
        for (uint32_t i = 0; i < c->now->nloop && i < 3; i++)
            draw_loop(&p, &c->now->loop[i], c->now->age);
        draw_metrics(&p, c->now);
        draw_compilations(&p, c->now);
    }
    const uint32_t lines = count_lines(&p, all, c);
    p.most = look->rows > p.line + 1 ? look->rows - p.line - 1 : 0;
    if (look->scroll > (lines > p.most ? lines - p.most : 0) || look->rows == 0)
        look->scroll = look->rows == 0 || lines <= p.most ? 0 : lines - p.most;
    p.skip = look->scroll;
    p.in_table = true;
    draw_tables(&p, all, c);
    while (p.line + 1 < look->rows) {
        dc_text_puts(t, "\n");
        p.line++;
    }
    if (look->rows > 0)
        draw_keys(&p, all);
}

void dc_top_draw_line(dc_text *t, const dc_top_client *c)
{
    const dc_top_snapshot *s = c->now;
    const dc_top_metric *m[DC_MONITOR_METRICS];
    char text[80], bytes[DC_NUMBER_TEXT];
    dc_top_rates r;
    dc_top_rates_of(c, &r);
    dc_top_print_time(t, s->open);
    if (s->ranks > 1)
        dc_text_printf(t, "  rank %.0f", s->rank);
    dc_text_puts(t, "  ");
    if (s->wait >= 0)
        print_wait(t, s);
    else
        dc_top_print_doing(t, s);
    if (s->age >= 0) {
        dc_number_format(text, sizeof text, digits_of(r.steps), r.steps);
        dc_text_printf(t, "  %s %s/s", text, r.step != NULL ? r.step : "steps");
        const uint32_t n = order_metrics(s, m);
        for (uint32_t i = 0; i < n; i++) {
            dc_number_format(text, sizeof text, "%.4g", m[i]->value);
            dc_text_printf(t, "  %s %s", m[i]->name, text);
        }
        dc_text_printf(t, "  memory %s", dc_number_bytes((uint64_t)s->live, bytes));
    }
    dc_text_printf(t, "  process %s\n", dc_number_bytes((uint64_t)s->resident, bytes));
}
