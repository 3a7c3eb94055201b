#include "vm/top_rates.h"

#include <stdlib.h>
#include <string.h>

static double when(const dc_top_snapshot *s)
{
    return s->open - s->age;
}

/* Counters of executables that are gone are gone with them: less than before is nothing. */
static double grown(double now, double before)
{
    return now > before ? now - before : 0;
}

static double per(double n, double d)
{
    return d > 0 ? n / d : 0;
}

static const dc_top_count *find(const dc_top_count *list, uint32_t n, const dc_top_count *of)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].name, of->name) == 0 && strcmp(list[i].where, of->where) == 0)
            return &list[i];
    return NULL;
}

/* Without two answers since it began: what it was on average. */
static dc_top_row row_of(const dc_top_count *now, const dc_top_count *before, double seconds)
{
    static const dc_top_count none;
    dc_top_row r = {.of = now};
    const dc_top_count *b = before != NULL ? before : &none;
    const double times = grown(now->times, b->times), spent = grown(now->seconds, b->seconds);
    if (seconds > 0) {
        r.rate = times / seconds;
        r.share = spent / seconds;
    }
    const bool recent = seconds > 0 && times > 0;
    r.each = recent ? spent / times : per(now->seconds, now->times);
    r.flops = recent ? per(grown(now->flops, b->flops), spent) : per(now->flops, now->seconds);
    r.bytes = recent ? per(grown(now->bytes, b->bytes), spent) : per(now->bytes, now->seconds);
    return r;
}

static int falling(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int by_name(const void *x, const void *y)
{
    const dc_top_row *a = x, *b = y;
    const int order = strcmp(a->of->name, b->of->name);
    return order != 0 ? order : strcmp(a->of->where, b->of->where);
}

/* What did nothing lately comes behind, in the order of all that it did. */
static int by_time(const void *x, const void *y)
{
    const dc_top_row *a = x, *b = y;
    const int order = falling(a->share, b->share);
    const int before = order != 0 ? order : falling(a->of->seconds, b->of->seconds);
    return before != 0 ? before : by_name(x, y);
}

static int by_rate(const void *x, const void *y)
{
    const dc_top_row *a = x, *b = y;
    const int order = falling(a->rate, b->rate);
    return order != 0 ? order : by_time(x, y);
}

static int by_each(const void *x, const void *y)
{
    const dc_top_row *a = x, *b = y;
    const int order = falling(a->each, b->each);
    return order != 0 ? order : by_time(x, y);
}

static double seconds_between(const dc_top_client *c)
{
    if (c->now == NULL || c->last == NULL || c->now->age < 0 || c->last->age < 0)
        return 0;
    return grown(when(c->now), when(c->last));
}

uint32_t dc_top_rows(const dc_top_client *c, bool kernels, dc_top_sort sort,
                     dc_top_row row[DC_MONITOR_KERNELS])
{
    static int (*const order[])(const void *, const void *) = {by_time, by_rate, by_each, by_name};
    const dc_top_snapshot *now = c->now, *last = c->last;
    const double seconds = seconds_between(c);
    const uint32_t n = kernels ? now->nkernel : now->nfunction;
    for (uint32_t i = 0; i < n; i++) {
        const dc_top_count *x = kernels ? &now->kernel[i] : &now->function[i];
        const dc_top_count *b = last == NULL ? NULL
                                : kernels    ? find(last->kernel, last->nkernel, x)
                                             : find(last->function, last->nfunction, x);
        row[i] = row_of(x, b, seconds);
    }
    if (n > 1)
        qsort(row, n, sizeof *row, order[sort]);
    return n;
}

/* The first two answers give no rates: those since the monitor was opened do. */
void dc_top_rates_of(const dc_top_client *c, dc_top_rates *out)
{
    static const dc_top_snapshot none = {.age = 0};
    dc_top_row row[DC_MONITOR_KERNELS];
    const dc_top_snapshot *now = c->now, *last = seconds_between(c) > 0 ? c->last : &none;
    *out = (dc_top_rates){.seconds = seconds_between(c)};
    if (now->age < 0)
        return;
    const double s = when(now) - (last->open - last->age);
    out->rounds = per(grown(now->rounds, last->rounds), s);
    out->calls = per(grown(now->calls, last->calls), s);
    out->launches = per(grown(now->launches, last->launches), s);
    if (out->seconds > 0)
        out->cpu = per(grown(now->cpu, last->cpu), now->open - last->open);
    out->steps = out->rounds;
    if (now->rounds > 0 || dc_top_rows(c, false, DC_TOP_BY_TIME, row) == 0)
        return;
    out->step = row[0].of->name;
    out->steps = out->seconds > 0 ? row[0].rate : per(row[0].of->times, when(now));
}
