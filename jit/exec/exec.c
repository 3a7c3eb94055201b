/*
 * Executables: references, lists, facts. What the parts mean is in jit/exec/exec.h; how they are made, in
 * jit/compile/exec_describe.c and compile_job.c.
 */
#include "jit/exec/exec.h"

#include "jit/exec/exec_task.h"
#include "jit/exec/profile.h"

dc_exec *dc_exec_new(dc_rt *rt)
{
    dc_exec *e = dc_xalloc(sizeof *e);
    e->refs = 1;
    e->rt = rt;
    e->next = rt->execs;
    if (e->next != NULL)
        e->next->prev = e;
    rt->execs = e;
    return e;
}

static void unlink_exec(dc_exec *e)
{
    if (e->prev != NULL)
        e->prev->next = e->next;
    else
        e->rt->execs = e->next;
    if (e->next != NULL)
        e->next->prev = e->prev;
    e->next = e->prev = NULL;
}

void dc_exec_drop_kernels(dc_exec *e)
{
    for (uint32_t i = 0; i < e->nkernel; i++)
        if (e->kernel[i] != NULL)
            dc_kernels_release(e->task->kernels, e->kernel[i]);
    e->nkernel = 0;
    e->kernel = NULL;
}

void dc_exec_destroy(dc_exec *e)
{
    dc_exec_drop_kernels(e);
    dc_profile_drop_late(e);
    for (uint32_t i = 0; i < e->nprogram; i++)
        e->rt->device->ops->program_free(e->rt->device, e->program[i]);
    dc_module_free(e->work);
    dc_module_free(e->module);
    dc_arena_free(&e->mem);
    dc_xfree(e->task);
    dc_xfree(e);
}

static uint64_t graph_size(const dc_exec *e)
{
    return e->desc.fn != NULL ? e->desc.fn->node.n : 0;
}

/* Nothing uses it any more, but it was called and may be asked for. */
static bool keep(dc_exec *e)
{
    enum { MOST = 1000, MOST_NODES = 200000 };
    dc_rt *first = e->rt->first;
    if (!first->keeps_execs || e->profile.calls == 0)
        return false;
    if (e->stays)
        return true;
    if (first->nkept == MOST || first->kept_nodes + graph_size(e) > MOST_NODES)
        return false;
    first->nkept++;
    first->kept_nodes += graph_size(e);
    e->stays = true;
    return true;
}

static void leave(dc_exec *e)
{
    if (!e->stays)
        return;
    e->rt->first->nkept--;
    e->rt->first->kept_nodes -= graph_size(e);
    e->stays = false;
}

/* Kernels that nothing uses are kept for others as long as there is memory for it. */
static uint32_t spare_kernels(const dc_rt *rt)
{
    return dc_rt_is_short(rt) ? DC_KERNELS_FEW : DC_KERNELS_SPARE;
}

void dc_exec_free(void *what)
{
    dc_exec *e = what;
    dc_rt *rt = e->rt;
    dc_profile_report(e);
    unlink_exec(e);
    leave(e);
    if (rt->first->job.about == e)
        rt->first->job.about = NULL;
    if (dc_exec_task_end(e))
        dc_exec_destroy(e);
    if (rt->jit != NULL)
        dc_kernels_trim(rt->jit->kernels, spare_kernels(rt));
}

dc_exec *dc_exec_retain(dc_exec *e)
{
    e->refs++;
    return e;
}

void dc_exec_release(dc_exec *e)
{
    if (e != NULL && --e->refs == 0 && !keep(e))
        dc_exec_free(e);
}

void dc_exec_keep(dc_rt *rt)
{
    rt->first->keeps_execs = true;
}

void dc_exec_forget(dc_rt *rt)
{
    for (dc_exec *e = rt->execs, *next; e != NULL; e = next) {
        next = e->next;
        if (e->refs == 0)
            dc_exec_free(e);
    }
}

dc_exec *dc_exec_next(dc_rt *rt, const dc_exec *e)
{
    dc_rt *at = e != NULL ? e->rt : rt->first;
    dc_exec *next = e != NULL ? e->next : at->execs;
    for (; next == NULL && at->next != NULL; next = at->execs)
        at = at->next;
    return next;
}

const char *dc_exec_device(const dc_exec *e)
{
    return e->rt->device_name;
}

const dc_exec_desc *dc_exec_desc_of(const dc_exec *e)
{
    return &e->given;
}

const dc_cell_layout *dc_exec_layout(const dc_exec *e, uint32_t cell)
{
    static const dc_cell_layout as_value;
    return e->layout != NULL ? &e->layout[cell] : &as_value;
}

void dc_exec_info_of(const dc_exec *e, dc_exec_info *out)
{
    DC_ASSERT(e->task == NULL || !e->task->pending, "'%s' is not compiled yet", e->desc.name);
    *out = e->info;
}
