#include "jit/exec/profile.h"

#include "core/base/number.h"
#include "core/base/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All launches of one kernel from the same lines: one line of the report. */
typedef struct row {
    const dc_command *command;
    const dc_command_fact *fact;
    uint64_t ns, launches; /* launches in all */
    double flops, bytes;   /* in all */
} row;

void dc_profile_init(dc_exec *e)
{
    if (dc_profile_on(e) && e->ncommand > 0 && e->profile.command_ns == NULL) {
        e->profile.command_ns = DC_NEW_ARRAY(&e->mem, uint64_t, 2 * (size_t)e->ncommand);
        e->profile.command_runs = e->profile.command_ns + e->ncommand;
        e->profile.rows = DC_NEW_ARRAY(&e->mem, row, e->ncommand);
    }
}

void dc_profile_late(dc_exec *e)
{
    const size_t counters = 2 * sizeof *e->profile.command_ns * e->ncommand;
    if (e->profile.command_ns != NULL || e->ncommand == 0)
        return;
    char *block = dc_try_alloc(counters + sizeof(row) * e->ncommand);
    if (block == NULL)
        return;
    e->profile.late = block;
    e->profile.command_ns = (uint64_t *)(void *)block;
    e->profile.command_runs = e->profile.command_ns + e->ncommand;
    e->profile.rows = block + counters;
    e->profile.calls = e->profile.call_ns = e->profile.prologues = 0;
}

void dc_profile_drop_late(dc_exec *e)
{
    if (e->profile.late != NULL)
        e->profile.command_ns = NULL;
    dc_xfree(e->profile.late);
    dc_xfree(e->profile.span_name);
    e->profile.late = NULL;
    e->profile.span_name = NULL;
}

static const char *join_words(const char *const *words, uint32_t n, char *out, size_t size)
{
    size_t at = 0;
    for (uint32_t i = 0; i < n && words[i] != NULL && at + 1 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? ", " : "", words[i]);
    return at > 0 ? out : NULL;
}

/* Loops and branches have spans of what is in them, checks none. */
static uint32_t name_command(dc_spans *s, const dc_exec *e, uint32_t i)
{
    const dc_command *c = &e->command[i];
    const dc_command_fact *f = &e->fact[i];
    char where[300], layer[400];
    dc_span_name name = {.text = c->label};
    if (e->desc.nsize == 0) { /* else they are bounds */
        name.flops = (double)f->flops;
        name.bytes = (double)f->bytes;
    }
    switch (c->kind) {
    case DC_COMMAND_LAUNCH:
        name.kind = DC_SPAN_KERNEL;
        break;
    case DC_COMMAND_HOST:
        name.kind = DC_SPAN_HOST;
        break;
    case DC_COMMAND_COPY:
        name.kind = DC_SPAN_COPY;
        name.bytes = (double)c->bytes;
        break;
    case DC_COMMAND_CHECK:
    case DC_COMMAND_LOOP:
    case DC_COMMAND_BRANCH:
    case DC_COMMAND_BUNDLE:
        return 0;
    }
    name.where = join_words(f->where, DC_COUNTOF(f->where), where, sizeof where);
    name.layer = join_words(f->layer, DC_COUNTOF(f->layer), layer, sizeof layer);
    return dc_spans_name(s, &name);
}

/* Names of the spans of all commands while dc.trace records; NULL: it does not, or there is no memory. */
static const uint32_t *span_names(dc_exec *e)
{
    dc_spans *s = e->rt->log.spans;
    dc_profile *p = &e->profile;
    const uint64_t recording = s != NULL ? dc_spans_recording(s) : 0;
    if (recording == 0)
        return NULL;
    if (p->span_name == NULL &&
        (p->span_name = dc_try_alloc(e->ncommand * sizeof *p->span_name)) == NULL)
        return NULL;
    for (uint32_t i = 0; i < e->ncommand && p->recording != recording; i++)
        p->span_name[i] = name_command(s, e, i);
    p->recording = recording;
    return p->span_name;
}

const dc_run_watch *dc_profile_watch(dc_exec *e, uint32_t first, dc_run_watch *out)
{
    if (!dc_profile_on(e))
        return NULL;
    dc_profile_late(e);
    if (e->profile.command_ns == NULL)
        return NULL;
    const uint32_t *name = span_names(e);
    *out = (dc_run_watch){.ns = e->profile.command_ns + first,
                          .runs = e->profile.command_runs + first};
    if (name == NULL)
        return out;
    out->to = e->rt->log.spans;
    out->name = name + first;
    out->lane = e->rt->device->ops->host ? 0 : dc_spans_lane(out->to, e->rt->device_name);
    return out;
}

static bool same_row(const row *r, const dc_command *command, const dc_command_fact *f)
{
    return r->command->kind == command->kind && strcmp(r->command->label, command->label) == 0 &&
           memcmp(r->fact->where, f->where, sizeof f->where) == 0;
}

static uint32_t make_rows(const dc_exec *e, row *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->ncommand; i++) {
        uint32_t k = 0;
        if (e->command[i].kind == DC_COMMAND_BUNDLE)
            continue; /* its launches are timed one by one */
        while (k < n && !same_row(&rows[k], &e->command[i], &e->fact[i]))
            k++;
        if (k == n)
            rows[n++] = (row){.command = &e->command[i], .fact = &e->fact[i]};
        const uint64_t times = e->profile.command_runs[i];
        rows[k].ns += e->profile.command_ns[i];
        rows[k].launches += times;
        if (e->desc.nsize > 0)
            continue; /* counts of bounded dims are bounds: no rates */
        rows[k].flops += (double)e->fact[i].flops * (double)times;
        rows[k].bytes += (double)e->fact[i].bytes * (double)times;
    }
    return n;
}

static int by_time(const void *x, const void *y)
{
    const row *a = x, *b = y;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->command < b->command ? -1 : 1;
}

static void print_row(const dc_exec *e, const row *r)
{
    const double ns = (double)r->ns, launches = (double)r->launches;
    char rates[64] = "", where[200] = "";
    if (ns > 0 && (r->flops > 0 || r->bytes > 0) && r->command->kind == DC_COMMAND_LAUNCH)
        dc_number_format(rates, sizeof rates, "%8.2f GFLOP/s %7.2f GB/s", r->flops / ns,
                         r->bytes / ns);
    for (int i = 0; i < 3 && r->fact->where[i] != NULL; i++) {
        const size_t n = strlen(where);
        snprintf(where + n, sizeof where - n, " %s", r->fact->where[i]);
    }
    dc_logf(&e->rt->log, DC_CH_TIME, "  %-24s %8.0f calls %10.3f ms %9.2f us per call %s %s",
            r->command->label, launches, ns / 1e6, launches > 0 ? ns / 1e3 / launches : 0.0, rates,
            where);
}

void dc_profile_report(dc_exec *e)
{
    dc_profile *p = &e->profile;
    if (p->calls == 0)
        return;
    uint64_t inside = 0;
    row *rows = p->rows;
    uint32_t n = p->command_ns != NULL ? make_rows(e, rows) : 0;
    for (uint32_t i = 0; i < n; i++)
        inside += rows[i].ns;
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_time);
    dc_logf(&e->rt->log, DC_CH_TIME,
            "%s: %" PRIu64 " calls, %u launches per call, %.2f us per call in kernels, %.2f us in "
            "all%s",
            e->desc.name, p->calls, e->info.launches, (double)inside / 1e3 / (double)p->calls,
            (double)p->call_ns / 1e3 / (double)p->calls,
            e->info.interpreted ? " (interpreter)" : "");
    for (uint32_t i = 0; i < n; i++)
        print_row(e, &rows[i]);
    dc_exec_forget_times(e);
}

void dc_profile_report_all(dc_rt *rt)
{
    for (;;) { /* what took longest first; a report empties its counters */
        dc_exec *most = NULL;
        for (dc_rt *r = rt->first; r != NULL; r = r->next)
            for (dc_exec *e = r->execs; e != NULL; e = e->next)
                if (e->profile.calls > 0 &&
                    (most == NULL || e->profile.call_ns > most->profile.call_ns))
                    most = e;
        if (most == NULL)
            return;
        dc_profile_report(most);
    }
}
