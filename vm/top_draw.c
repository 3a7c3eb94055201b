/*
 * A frame is a head, which always stays, and tables, which scroll: ranks, functions, kernels.
 */
#include "vm/top_draw.h"

#include "core/base/number.h"
#include "vm/top_pen.h"
#include "vm/top_rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

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

const char *dc_top_command(const dc_top_snapshot *s)
{
    const char *end = strchr(s->command, ' '), *at = s->command;
    for (const char *c = at; *c != '\0' && c != end; c++)
        if (*c == '/')
            at = c + 1;
    return at;
}

static void print_doing(dc_text *t, const dc_top_snapshot *s)
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

static const char *base_name(const char *where)
{
    const char *slash = strrchr(where, '/');
    return slash != NULL ? slash + 1 : where;
}

/* "all_reduce, /home/me/train.lua:12": what it is, and its line without the folder. */
static void print_wait(dc_text *t, const dc_top_snapshot *s)
{
    char span[40];
    const int n = (int)strcspn(s->wait_in, ",");
    const char *where = s->wait_in[n] != '\0' ? base_name(s->wait_in + n + 1) : "";
    dc_number_format(span, sizeof span, "%.1f s", s->wait);
    if (s->wait_rank >= 0)
        dc_text_printf(t, "waits for rank %.0f", s->wait_rank);
    else
        dc_text_puts(t, "waits for the others");
    dc_text_printf(t, " in %.*s%s%s for %s", n, s->wait_in, *where != '\0' ? ", " : "",
                   where + (*where == ' '), span);
}

void dc_top_print_state(dc_text *t, const dc_top_snapshot *s)
{
    if (s->wait >= 0)
        print_wait(t, s);
    else
        print_doing(t, s);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void draw_title(dc_pen *p, const dc_top_snapshot *s)
{
    dc_text t = {0};
    char rank[60] = "";
    if (s->ranks > 1)
        snprintf(rank, sizeof rank, "  rank %.0f of %.0f", s->rank, s->ranks);
    dc_text_printf(&t, "%s  up ", s->device);
    dc_top_print_time(&t, s->open);
    const uint32_t right = (uint32_t)t.n;
    dc_pen_put(p, DC_TITLE, "deepc top");
    dc_pen_putf(p, DC_PLAIN, "  %.0f%s  ", s->pid, rank);
    const uint32_t room =
        p->look->columns > p->column + right + 2 ? p->look->columns - p->column - right - 2 : 0;
    dc_pen_putf(p, DC_BOLD, "%.*s", (int)room, dc_top_command(s));
    if (p->look->columns > right)
        dc_pen_go_to(p, p->look->columns - right);
    dc_pen_put(p, DC_PLAIN, t.s);
    dc_text_free(&t);
    dc_pen_end_line(p);
}

/* It has ended, or does not answer. */
static bool is_away(const dc_top_client *c)
{
    return c->fd < 0 || c->silent;
}

/* Counters that have not come for a while are old: the script is somewhere else than in a call that ends. */
static void draw_doing(dc_pen *p, const dc_top_client *c)
{
    const dc_top_snapshot *s = c->now;
    dc_text t = {0};
    if (is_away(c))
        dc_text_printf(&t, "%s", c->why);
    else
        dc_top_print_state(&t, s);
    dc_pen_put(p, is_away(c) || s->wait >= 1 || s->doing >= 5 ? DC_WARN : DC_PLAIN, t.s);
    dc_text_free(&t);
    if (p->look->paused)
        dc_pen_put(p, DC_WARN, "  paused");
    else if (!is_away(c) && s->age < 0)
        dc_pen_put(p, DC_DIM, "  no counters yet");
    else if (!is_away(c) && s->age > 1.5) {
        dc_pen_put(p, DC_WARN, "  counters are ");
        dc_pen_span(p, DC_WARN, s->age);
        dc_pen_put(p, DC_WARN, " old");
    }
    dc_pen_end_line(p);
}

static void draw_rates(dc_pen *p, const dc_top_snapshot *s, const dc_top_rates *r)
{
    dc_pen_rate(p, DC_BOLD, r->steps);
    if (r->step != NULL)
        dc_pen_putf(p, DC_PLAIN, " %.30s/s", r->step);
    else
        dc_pen_put(p, DC_PLAIN, " steps/s");
    dc_pen_put(p, DC_PLAIN, "  ");
    dc_pen_rate(p, DC_PLAIN, r->calls);
    dc_pen_put(p, DC_DIM, " calls/s  ");
    dc_pen_rate(p, DC_PLAIN, r->launches);
    dc_pen_put(p, DC_DIM, " launches/s  ");
    if (r->cpu > 0) {
        dc_pen_putf(p, DC_PLAIN, "%.0f%%", r->cpu * 100);
        dc_pen_put(p, DC_DIM, " CPU  ");
    }
    dc_pen_putf(p, DC_PLAIN, "%.0f", s->process_threads);
    dc_pen_putf(p, DC_DIM, " threads, %.0f for kernels", s->kernel_threads);
    dc_pen_end_line(p);
}

static void draw_memory(dc_pen *p, const dc_top_snapshot *s)
{
    dc_pen_put(p, DC_DIM, "memory ");
    dc_pen_bytes(p, DC_PLAIN, s->live);
    dc_pen_put(p, DC_DIM, "  peak ");
    dc_pen_bytes(p, DC_PLAIN, s->peak);
    if (s->limit > 0) {
        dc_pen_put(p, DC_DIM, "  limit ");
        dc_pen_bytes(p, s->live + s->metadata > 0.9 * s->limit ? DC_WARN : DC_PLAIN, s->limit);
    }
    dc_pen_put(p, DC_DIM, "  process ");
    dc_pen_bytes(p, DC_PLAIN, s->resident);
    dc_pen_put(p, DC_DIM, "  pool ");
    dc_pen_bytes(p, DC_PLAIN, s->held);
    dc_pen_end_line(p);
}

static void draw_bar(dc_pen *p, double part, uint32_t width)
{
    char bar[64] = "";
    const uint32_t full = (uint32_t)(part * width);
    for (uint32_t i = 0; i < width && i < sizeof bar - 1; i++)
        bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[width < sizeof bar - 1 ? width : sizeof bar - 1] = '\0';
    dc_pen_put(p, DC_PLAIN, "  [");
    dc_pen_put(p, DC_GOOD, bar);
    dc_pen_put(p, DC_PLAIN, "]");
}

static void draw_loop(dc_pen *p, const dc_top_loop *x, double age)
{
    dc_pen_putf(p, DC_BOLD, "%.40s", x->title[0] != '\0' ? x->title : "loop");
    if (x->total >= 0)
        dc_pen_putf(p, DC_PLAIN, "  %.0f/%.0f", x->done, x->total);
    else
        dc_pen_putf(p, DC_PLAIN, "  %.0f", x->done);
    if (x->total > 0) {
        dc_pen_putf(p, DC_PLAIN, "  %3.0f%%", floor(x->done * 100 / x->total));
        draw_bar(p, x->done / x->total, p->look->columns >= 100 ? 24 : 12);
    }
    dc_pen_put(p, DC_PLAIN, "  ");
    dc_pen_time(p, DC_PLAIN, x->seconds + age);
    const double rate = x->done > 1 && x->since_first > 0 ? (x->done - 1) / x->since_first : 0;
    if (rate > 0 && x->total > x->done) {
        dc_pen_put(p, DC_DIM, "  left ");
        dc_pen_time(p, DC_PLAIN, (x->total - x->done) / rate);
    }
    if (rate > 0 && x->size > 0) {
        dc_pen_put(p, DC_PLAIN, "  ");
        dc_pen_rate(p, DC_PLAIN, rate * x->size);
        dc_pen_put(p, DC_DIM, " items/s");
    }
    dc_pen_end_line(p);
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

static const char *mark_of(const dc_pen *p, double part)
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
static void draw_curve(dc_pen *p, const dc_top_metric *m, uint32_t width)
{
    double least, most;
    find_range(m, &least, &most);
    if (m->npoint < 2 || !(least <= most))
        return;
    const double first = m->point[0].seconds, span = m->point[m->npoint - 1].seconds - first;
    for (uint32_t i = 0; i < width; i++) {
        const double v = value_at(m, first + span * i / (width - 1));
        if (isfinite(v))
            dc_pen_put(p, DC_GOOD, mark_of(p, part_of(v, least, most)));
        else
            dc_pen_put(p, DC_WARN, "!");
    }
}

static void draw_metric(dc_pen *p, const dc_top_metric *m)
{
    const uint32_t columns = p->look->columns, from = columns > 60 ? 30 : 24;
    dc_pen_putf(p, DC_BOLD, "%.*s", (int)from - 12, m->name);
    dc_pen_go_to(p, from - 10);
    dc_pen_metric(p, DC_PLAIN, m->value);
    dc_pen_go_to(p, from);
    if (columns > from + 10)
        draw_curve(p, m, columns - from - 1 < 80 ? columns - from - 1 : 80);
    dc_pen_end_line(p);
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
static void draw_metrics(dc_pen *p, const dc_top_snapshot *s)
{
    const dc_top_metric *m[DC_MONITOR_METRICS];
    const uint32_t n = order_metrics(s, m), curves = p->look->rows == 0    ? n
                                                     : p->look->rows >= 40 ? 8
                                                                           : 3;
    for (uint32_t i = 0; i < n && i < curves; i++)
        draw_metric(p, m[i]);
    for (uint32_t i = curves; i < n; i++) {
        dc_pen_putf(p, DC_DIM, "%s%s ", i > curves ? "  " : "", m[i]->name);
        dc_pen_metric(p, DC_PLAIN, m[i]->value);
    }
    if (n > curves)
        dc_pen_end_line(p);
}

static void draw_compilations(dc_pen *p, const dc_top_snapshot *s)
{
    if (s->ncompilation == 0)
        return;
    dc_pen_put(p, DC_DIM, "compiling");
    for (uint32_t i = 0; i < s->ncompilation; i++) {
        dc_pen_putf(p, DC_PLAIN, "%s %s", i > 0 ? "," : "", s->compilation[i].name);
        if (s->compilation[i].running) {
            dc_pen_put(p, DC_DIM, " for ");
            dc_pen_span(p, DC_PLAIN, s->compilation[i].seconds);
        } else
            dc_pen_put(p, DC_DIM, " next");
    }
    dc_pen_end_line(p);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void head_of_table(dc_pen *p, const char *text)
{
    dc_pen_putf(p, DC_HEAD, "%-*s", (int)p->look->columns, text);
    dc_pen_end_line(p);
}

static void draw_functions(dc_pen *p, const dc_top_client *c)
{
    dc_top_row row[DC_MONITOR_KERNELS];
    const uint32_t n = dc_top_rows(c, false, p->look->sort, row);
    if (n == 0)
        return;
    head_of_table(p, "FUNCTION                          CALLS    CALLS/S     MS/CALL   TIME");
    for (uint32_t i = 0; i < n; i++) {
        dc_pen_putf(p, DC_PLAIN, "%-27.27s %11.0f %10.1f %11.3f ", row[i].of->name,
                    row[i].of->times, row[i].rate, row[i].each * 1e3);
        dc_pen_putf(p, row[i].share >= 0.2 ? DC_BOLD : DC_PLAIN, "%5.1f%%", row[i].share * 100);
        dc_pen_end_line(p);
    }
}

static void draw_kernels(dc_pen *p, const dc_top_client *c)
{
    dc_top_row row[DC_MONITOR_KERNELS];
    const uint32_t n = dc_top_rows(c, true, p->look->sort, row);
    if (n == 0)
        return;
    head_of_table(
        p, "KERNEL               WHERE         LAUNCHES/S  US/LAUNCH   TIME  GFLOP/S   GB/S");
    for (uint32_t i = 0; i < n; i++) {
        const int name = (int)strcspn(row[i].of->name, ","); /* its line is in the next column */
        dc_pen_putf(p, DC_PLAIN, "%-20.*s %-14.14s", name < 20 ? name : 20, row[i].of->name,
                    base_name(row[i].of->where));
        dc_pen_putf(p, DC_PLAIN, "%10.1f %10.2f ", row[i].rate, row[i].each * 1e6);
        dc_pen_putf(p, row[i].share >= 0.1 ? DC_BOLD : DC_PLAIN, "%5.1f%%", row[i].share * 100);
        if (row[i].of->flops > 0 || row[i].of->bytes > 0)
            dc_pen_putf(p, DC_PLAIN, " %8.1f %6.1f", row[i].flops / 1e9, row[i].bytes / 1e9);
        dc_pen_end_line(p);
    }
}

static void draw_rank(dc_pen *p, const dc_top_clients *all, uint32_t i)
{
    const dc_top_client *c = &all->at[i];
    const dc_top_snapshot *s = c->now;
    dc_top_rates r;
    dc_text t = {0};
    char live[DC_NUMBER_TEXT] = "";
    if (s == NULL)
        return;
    dc_top_rates_of(c, &r);
    if (is_away(c))
        dc_text_puts(&t, c->why);
    else
        dc_top_print_state(&t, s);
    dc_number_bytes((uint64_t)s->live, live);
    dc_pen_putf(p, i == p->look->selected ? DC_BOLD : DC_PLAIN,
                "%c%4.0f %8.0f  %-10.10s %8.1f %11s  ", i == p->look->selected ? '>' : ' ', s->rank,
                s->pid, s->device, r.steps, live);
    dc_pen_put(p, is_away(c) || s->wait >= 1 ? DC_WARN : DC_PLAIN, t.s);
    dc_text_free(&t);
    dc_pen_end_line(p);
}

static void draw_ranks(dc_pen *p, const dc_top_clients *all)
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

static void draw_keys(dc_pen *p, const dc_top_clients *all)
{
    p->in_table = false;
    dc_pen_put(p, DC_BOLD, "q");
    dc_pen_put(p, DC_DIM, " quit  ");
    dc_pen_put(p, DC_BOLD, "s");
    dc_pen_putf(p, DC_DIM, " sort: %s  ", dc_top_sort_name(p->look->sort));
    dc_pen_put(p, DC_BOLD, "p");
    dc_pen_putf(p, DC_DIM, " %s  ", p->look->paused ? "go on" : "pause");
    dc_pen_put(p, DC_BOLD, "k");
    dc_pen_putf(p, DC_DIM, " kernels %s  ", p->look->kernels ? "off" : "on");
    dc_pen_put(p, DC_BOLD, p->look->unicode ? "↑↓" : "arrows");
    dc_pen_put(p, DC_DIM, " scroll");
    if (all->n > 1) {
        dc_pen_put(p, DC_BOLD, "  Tab");
        dc_pen_put(p, DC_DIM, " next rank");
    }
    dc_pen_style(p, DC_PLAIN);
}

static void draw_tables(dc_pen *p, const dc_top_clients *all, const dc_top_client *c)
{
    draw_ranks(p, all);
    if (c->now->age < 0)
        return;
    draw_functions(p, c);
    draw_kernels(p, c);
}

/* How many lines the tables have: drawn where none is shown. */
static uint32_t count_lines(const dc_pen *p, const dc_top_clients *all, const dc_top_client *c)
{
    dc_pen q = *p;
    q.in_table = true;
    q.skip = UINT32_MAX;
    draw_tables(&q, all, c);
    return q.table_line;
}

void dc_top_draw(dc_text *t, const dc_top_clients *all, dc_top_look *look)
{
    const dc_top_client *c = &all->at[look->selected];
    dc_pen p = {.t = t, .look = look};
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
    if (is_away(c))
        dc_text_puts(t, c->why);
    else
        dc_top_print_state(t, s);
    if (s->age >= 0) {
        dc_number_format(text, sizeof text, dc_pen_digits(r.steps), r.steps);
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
