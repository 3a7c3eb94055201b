#define _POSIX_C_SOURCE 200809L
#include "vm/monitor_text.h"

#include "core/base/digits.h"
#include "core/base/number.h"
#include "formats/json.h"
#include "vm/deepc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- the process ----------------------------------------------------------------------------- */

static size_t read_whole(const char *path, char *out, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file >= 0 ? read(file, out, size - 1) : 0;
    if (file >= 0)
        close(file);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

void dc_monitor_command(char *out, size_t size)
{
    size_t n = read_whole("/proc/self/cmdline", out, size);
    while (n > 0 && out[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)out[i] <= ' ')
            out[i] = ' ';
}

/* Field `k` of /proc/self/stat behind the name of the program, which may have anything in it; fields count from 1 there. */
static uint64_t field_of(const char *at, int k)
{
    uint64_t v = 0;
    for (int i = 3; i < k && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL || dc_digits_unsigned(&at, NULL, UINT64_MAX, &v) != DC_DIGITS_OK)
        return 0;
    return v;
}

void dc_monitor_usage_read(dc_monitor_usage *u)
{
    enum { USER = 14, SYSTEM = 15, THREADS = 20, PAGES = 24 };
    char text[1024];
    *u = (dc_monitor_usage){0};
    read_whole("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ')
        return;
    at += 2;
    u->resident = field_of(at, PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    u->threads = field_of(at, THREADS);
    u->cpu_seconds =
        (double)(field_of(at, USER) + field_of(at, SYSTEM)) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What is no UTF-8, because it was cut or never was, has signs for its bytes. */
static void put_string(dc_text *t, const char *name, const char *s)
{
    char plain[512];
    dc_text_printf(t, "\"%s\": ", name);
    const size_t before = t->n;
    if (dc_json_print(t, s))
        return;
    t->n = before;
    t->s[before] = '\0';
    size_t n = 0;
    for (; s[n] != '\0' && n + 1 < sizeof plain; n++)
        plain[n] = (signed char)s[n] < 0 ? '?' : s[n];
    plain[n] = '\0';
    dc_json_print(t, plain);
}

/* JSON has no infinities and no NaN: they are strings. */
static void put_number(dc_text *t, const char *name, double v)
{
    char text[DC_NUMBER_TEXT];
    if (name != NULL)
        dc_text_printf(t, "\"%s\": ", name);
    if (isnan(v))
        dc_text_puts(t, "\"nan\"");
    else if (isinf(v))
        dc_text_puts(t, v > 0 ? "\"inf\"" : "\"-inf\"");
    else {
        dc_number_format(text, sizeof text, "%.9g", v);
        dc_text_puts(t, text);
    }
}

static void put_whole(dc_text *t, const char *name, uint64_t v)
{
    dc_text_printf(t, "\"%s\": %" PRIu64, name, v);
}

static void comma(dc_text *t)
{
    dc_text_puts(t, ", ");
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void print_process(dc_text *t, const dc_monitor *m, const dc_monitor_process *p)
{
    dc_monitor_usage u;
    dc_monitor_usage_read(&u);
    put_string(t, "deepc", DC_VERSION), comma(t);
    put_string(t, "socket", p->file), comma(t);
    put_whole(t, "pid", (uint64_t)p->pid), comma(t);
    put_whole(t, "parent", (uint64_t)p->parent), comma(t);
    put_string(t, "command", p->command), comma(t);
    put_string(t, "host", p->host), comma(t);
    put_string(t, "device", p->device), comma(t);
    put_number(t, "open_seconds", seconds(dc_clock_ns() - m->opened_ns)), comma(t);
    put_number(t, "cpu_seconds", u.cpu_seconds), comma(t);
    dc_text_puts(t, "\"threads\": {");
    put_whole(t, "kernels", (uint64_t)p->threads), comma(t);
    put_whole(t, "process", u.threads);
    dc_text_puts(t, "}, \"resident_bytes\": ");
    dc_text_printf(t, "%" PRIu64, u.resident);
}

/* As of this moment, also where the copy is old. */
static void print_now(dc_text *t, dc_monitor *m, const dc_monitor_data *d)
{
    static const char *const word[] = {"script", "call", "compilation", "expression"};
    dc_monitor_now now;
    dc_world_wait w;
    dc_monitor_read_now(m, &now);
    dc_text_puts(t, "\"doing\": {");
    put_string(t, "what", word[now.what]), comma(t);
    put_string(t, "name", now.name), comma(t);
    put_number(t, "seconds", seconds(now.ns));
    dc_text_puts(t, "}, ");
    put_whole(t, "rank", (uint64_t)d->rank), comma(t);
    put_whole(t, "ranks", (uint64_t)(d->ranks > 0 ? d->ranks : 1));
    if (!dc_monitor_read_wait(m, &w))
        return;
    dc_text_puts(t, ", \"waits\": {");
    if (w.rank >= 0)
        put_whole(t, "rank", (uint64_t)w.rank), comma(t);
    put_string(t, "in", w.label), comma(t);
    put_number(t, "seconds", seconds(w.ns));
    dc_text_puts(t, "}");
}

static void print_counts(dc_text *t, const dc_monitor_data *d)
{
    const dc_stats *s = &d->stats;
    dc_text_puts(t, "\"memory\": {");
    put_whole(t, "live", s->bytes_live), comma(t);
    put_whole(t, "peak", s->bytes_peak), comma(t);
    put_whole(t, "held", d->held), comma(t);
    put_whole(t, "metadata", d->metadata), comma(t);
    put_whole(t, "limit", d->limit);
    dc_text_puts(t, "}, \"counts\": {");
    put_whole(t, "rounds", d->rounds), comma(t);
    put_whole(t, "calls", s->calls), comma(t);
    put_whole(t, "traces", s->traces), comma(t);
    put_whole(t, "compiles", s->compiles), comma(t);
    put_whole(t, "kernels", s->kernels), comma(t);
    put_whole(t, "launches", s->launches), comma(t);
    put_whole(t, "interpreted", s->interpreted), comma(t);
    put_whole(t, "fallbacks", s->fallbacks), comma(t);
    put_whole(t, "realized", s->realized), comma(t);
    put_number(t, "compile_seconds", seconds(s->compile_ns));
    dc_text_puts(t, "}");
}

static void print_loops(dc_text *t, const dc_monitor_data *d, uint64_t then)
{
    dc_text_puts(t, "\"loops\": [");
    for (uint32_t i = 0; i < d->nloop; i++) {
        const dc_monitor_loop *x = &d->loop[i];
        dc_text_puts(t, i > 0 ? ", {" : "{");
        put_string(t, "title", x->title), comma(t);
        put_whole(t, "done", (uint64_t)(x->done > 0 ? x->done : 0)), comma(t);
        if (x->total >= 0)
            put_whole(t, "total", (uint64_t)x->total), comma(t);
        if (x->size > 0)
            put_whole(t, "size", (uint64_t)x->size), comma(t);
        put_number(t, "seconds", seconds(then - x->begun_ns)), comma(t);
        put_number(t, "since_first", x->first_ns > 0 ? seconds(then - x->first_ns) : 0);
        dc_text_puts(t, "}");
    }
    dc_text_puts(t, "]");
}

static void print_metrics(dc_text *t, const dc_monitor_data *d, uint64_t then)
{
    bool first = true;
    dc_text_puts(t, "\"metrics\": [");
    for (uint32_t i = 0; i < d->nmetric; i++) {
        const dc_monitor_metric *x = &d->metric[i];
        if (x->told_ns == 0)
            continue; /* asked for, not told yet */
        dc_text_puts(t, first ? "{" : ", {");
        first = false;
        put_string(t, "name", x->name), comma(t);
        put_number(t, "value", x->value), comma(t);
        put_number(t, "age", seconds(then > x->told_ns ? then - x->told_ns : 0));
        dc_text_puts(t, ", \"history\": [");
        for (uint32_t k = 0; k < x->npoint; k++) {
            dc_text_puts(t, k > 0 ? ", [" : "[");
            put_number(t, NULL, (double)x->point[k].seconds);
            comma(t);
            put_number(t, NULL, (double)x->point[k].value);
            dc_text_puts(t, "]");
        }
        dc_text_puts(t, "]}");
    }
    dc_text_puts(t, "]");
}

static void print_functions(dc_text *t, dc_monitor *m, const dc_monitor_data *d)
{
    dc_text_puts(t, "\"functions\": [");
    for (uint32_t i = 0; i < d->nfunction; i++) {
        char name[DC_MONITOR_NAME];
        dc_monitor_read_name(m, i, name);
        dc_text_puts(t, i > 0 ? ", {" : "{");
        put_string(t, "name", name[0] != '\0' ? name : "(others)"), comma(t);
        put_whole(t, "calls", d->function[i].calls), comma(t);
        put_number(t, "seconds", seconds(d->function[i].ns));
        dc_text_puts(t, "}");
    }
    dc_text_puts(t, "]");
}

static void print_kernels(dc_text *t, const dc_monitor_data *d)
{
    dc_text_printf(t, "\"kernels_timed\": %s, \"kernels\": [", d->measured ? "true" : "false");
    for (uint32_t i = 0; i < d->nkernel; i++) {
        const dc_monitor_kernel *k = &d->kernel[i];
        dc_text_puts(t, i > 0 ? ", {" : "{");
        put_string(t, "name", k->name[0] != '\0' ? k->name : "(others)"), comma(t);
        put_string(t, "where", k->where), comma(t);
        put_whole(t, "launches", k->launches), comma(t);
        put_number(t, "seconds", seconds(k->ns)), comma(t);
        put_number(t, "flops", k->flops), comma(t);
        put_number(t, "bytes", k->bytes);
        dc_text_puts(t, "}");
    }
    dc_text_puts(t, "]");
}

static void print_compilations(dc_text *t, const dc_monitor_data *d, uint64_t then)
{
    dc_text_puts(t, "\"compiling\": [");
    for (uint32_t i = 0; i < d->ncompilation; i++) {
        const dc_monitor_compilation *x = &d->compilation[i];
        dc_text_puts(t, i > 0 ? ", {" : "{");
        put_string(t, "name", x->name), comma(t);
        dc_text_printf(t, "\"running\": %s", x->running ? "true" : "false");
        comma(t);
        put_number(t, "seconds",
                   x->running && then > x->begun_ns ? seconds(then - x->begun_ns) : 0);
        dc_text_puts(t, "}");
    }
    dc_text_puts(t, "]");
}

void dc_monitor_print(dc_text *t, dc_monitor *m, const dc_monitor_process *p,
                      const dc_monitor_data *d, uint64_t age_ns)
{
    dc_text_puts(t, "{");
    print_process(t, m, p), comma(t);
    print_now(t, m, d);
    if (age_ns != UINT64_MAX) { /* else there is no copy yet */
        const uint64_t then = dc_clock_ns() - age_ns;
        comma(t), put_number(t, "age", seconds(age_ns));
        comma(t), print_counts(t, d);
        comma(t), print_loops(t, d, then);
        comma(t), print_metrics(t, d, then);
        comma(t), print_compilations(t, d, then);
        comma(t), print_functions(t, m, d);
        comma(t), print_kernels(t, d);
    }
    dc_text_puts(t, "}\n");
}

void dc_monitor_print_error(dc_text *t, const char *sentence)
{
    dc_text_puts(t, "{");
    put_string(t, "error", sentence);
    dc_text_puts(t, "}\n");
}
