#include "jit/exec/monitored.h"

#include "jit/exec/exec_task.h"
#include "jit/exec/profile.h"

#include <stdio.h>
#include <string.h>

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t row_of(dc_exec *e)
{
    if (e->monitored == 0)
        e->monitored = 1 + dc_monitor_row(e->rt->first->monitor, e->desc.name);
    return e->monitored - 1;
}

uint64_t dc_monitored_begin(dc_exec *e, uint64_t start)
{
    dc_monitor *m = e->rt->first->monitor;
    if (m == NULL)
        return 0;
    if (m->times && (e->task == NULL || e->task->profiled))
        dc_profile_late(e);
    return dc_monitor_enter(m, DC_DOING_CALL, row_of(e), start);
}

void dc_monitored_end(dc_exec *e, uint64_t before, uint64_t start, int calls)
{
    dc_monitor *m = e->rt->first->monitor;
    if (m == NULL || start == 0) /* it was opened in the middle of the call */
        return;
    const uint64_t now = dc_clock_ns();
    dc_monitor_function *f = &m->live.function[row_of(e)];
    f->calls += (uint64_t)calls;
    f->ns += now - start;
    dc_monitor_leave(m, before, now);
    dc_monitor_breathe(e->rt);
}

uint64_t dc_monitored_begin_wait(dc_exec *e, dc_job *j)
{
    dc_monitor *m = e->rt->first->monitor;
    if (m == NULL)
        return 0;
    dc_job_defer(j, dc_monitor_drop, m);
    return dc_monitor_enter(m, DC_DOING_COMPILATION, row_of(e), dc_clock_ns());
}

void dc_monitored_end_wait(dc_exec *e, dc_job *j, uint64_t before)
{
    dc_monitor *m = e->rt->first->monitor;
    if (m == NULL)
        return;
    dc_job_keep(j, m);
    dc_monitor_leave(m, before, dc_clock_ns());
}

/* ---- kernels --------------------------------------------------------------------------------- */

static dc_monitor_kernel *kernel_of(dc_monitor_data *d, const char *name, const char *where)
{
    for (uint32_t i = 0; i < d->nkernel; i++) {
        dc_monitor_kernel *k = &d->kernel[i];
        if (strncmp(k->name, name, sizeof k->name - 1) == 0 &&
            strncmp(k->where, where, sizeof k->where - 1) == 0)
            return k;
    }
    if (d->nkernel == DC_MONITOR_KERNELS)
        return &d->kernel[DC_MONITOR_KERNELS - 1];
    dc_monitor_kernel *k = &d->kernel[d->nkernel++];
    *k = (dc_monitor_kernel){0};
    if (d->nkernel == DC_MONITOR_KERNELS)
        return k; /* the last row stands for all that come: no name */
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->where, sizeof k->where, "%s", where);
    return k;
}

static void add_command(dc_monitor_data *d, const dc_exec *e, uint32_t i)
{
    const dc_command *x = &e->command[i];
    const dc_command_fact *f = &e->fact[i];
    if (x->kind == DC_COMMAND_BUNDLE || x->label == NULL || e->profile.command_ns[i] == 0)
        return; /* launches of a bundle are timed one by one */
    const uint64_t times = e->profile.command_runs[i];
    dc_monitor_kernel *k = kernel_of(d, x->label, f->where[0] != NULL ? f->where[0] : "");
    k->ns += e->profile.command_ns[i];
    k->launches += times;
    if (e->desc.nsize > 0)
        return; /* counts of bounded dims are bounds: no rates */
    k->flops += (double)f->flops * (double)times;
    k->bytes += (double)f->bytes * (double)times;
}

/* Only of those that have been called, which are compiled. */
void dc_monitored_kernels(dc_rt *rt)
{
    dc_monitor *m = rt->first->monitor;
    for (const dc_rt *r = rt->first; r != NULL; r = r->next)
        for (const dc_exec *e = r->execs; e != NULL; e = e->next)
            for (uint32_t i = 0;
                 e->profile.calls > 0 && e->profile.command_ns != NULL && i < e->ncommand; i++)
                add_command(&m->live, e, i);
}
