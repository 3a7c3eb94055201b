/*
 * Executables: a function description to something immutable that instances run. What is not
 * compiled (device `eval`, or a compiler that failed) is left to the interpreter.
 */
#include "jit/exec.h"

#include "core/gtext.h"
#include "jit/pipeline.h"
#include "jit/profile.h"

#include <string.h>

enum { BLOCK_STEP = 64 }; /* every value of the argument block is aligned as memory is */

static void free_exec(void *what)
{
    dc_exec *e = what;
    dc_rt *rt = e->rt;
    dc_profile_report(e);
    if (e->prev != NULL)
        e->prev->next = e->next;
    else
        rt->execs = e->next;
    if (e->next != NULL)
        e->next->prev = e->prev;
    if (e->program != NULL)
        rt->device->ops->program_free(rt->device, e->program);
    if (e->module != NULL)
        dc_module_free(e->module);
    dc_arena_free(&e->mem);
    dc_xfree(e);
}

static dc_exec *new_exec(dc_rt *rt)
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

/* Copies everything the caller owns. */
static void copy_desc(dc_exec *e, const dc_exec_desc *d)
{
    e->module = dc_module_new();
    e->desc = *d;
    e->desc.fn = dc_func_clone(e->module, d->fn, NULL);
    e->desc.name = dc_arena_strdup(&e->mem, d->name != NULL ? d->name : "function");
    uint32_t *set = DC_NEW_ARRAY(&e->mem, uint32_t, d->nset);
    for (uint32_t i = 0; i < d->nset; i++)
        set[i] = d->set[i];
    e->desc.set = set;
}

static void describe_values(dc_exec *e)
{
    const dc_func *fn = e->desc.fn;
    e->param = DC_NEW_ARRAY(&e->mem, dc_type, fn->param.n);
    e->result = DC_NEW_ARRAY(&e->mem, dc_type, fn->result.n);
    e->block_at = DC_NEW_ARRAY(&e->mem, size_t, e->desc.nfree);
    for (uint32_t i = 0; i < fn->param.n; i++)
        e->param[i] = dc_node_type(fn, fn->param.at[i]);
    for (uint32_t i = 0; i < fn->result.n; i++)
        e->result[i] = dc_node_type(fn, fn->result.at[i]);
    for (uint32_t i = 0; i < e->desc.nfree; i++)
        if (e->param[i].rank == 0) {
            e->block_at[i] = e->block_bytes;
            e->block_bytes += BLOCK_STEP;
        }
    if (e->block_bytes == 0)
        e->block_bytes = BLOCK_STEP; /* so that the slot always has an address */
}

static void find_reads(dc_exec *e, dc_job *j)
{
    const dc_func *fn = e->desc.fn;
    const bool *live = dc_func_live(fn, &j->scratch);
    e->cell_read = DC_NEW_ARRAY(&e->mem, bool, e->desc.ncell);
    for (uint32_t i = 0; i < e->desc.ncell; i++)
        e->cell_read[i] = live[fn->param.at[e->desc.nfree + i]];
}

static dc_status check_desc(dc_job *j, const dc_exec_desc *d)
{
    const dc_func *fn = d->fn;
    if (fn->param.n != d->nfree + d->ncell || fn->result.n != d->nresult + d->nset + 2 * d->ncheck)
        DC_BUG("'%s' has %u parameters and %u results, %u + %u and %u + %u + 2 * %u described",
               d->name, fn->param.n, fn->result.n, d->nfree, d->ncell, d->nresult, d->nset,
               d->ncheck);
    for (uint32_t i = 0; i < d->nset; i++)
        if (d->set[i] >= d->ncell)
            DC_BUG("'%s' sets cell %u of %u", d->name, d->set[i], d->ncell);
    return dc_func_check(j, fn);
}

static dc_status read_compare(dc_rt *rt, dc_job *j, dc_exec *e)
{
    if (j->opt->compare[0] == '\0')
        return DC_OK;
    if (strcmp(j->opt->compare, "eval") != 0)
        return dc_fail(j, DC_ERR_OPTION,
                       &(dc_fact){.word = {"DEEPC_COMPARE", "only 'eval' can be compared with"}});
    rt->log.on |= 1u << DC_CH_COMPARE;
    e->compare = !rt->interpret;
    return DC_OK;
}

/* A compiler that failed is no reason to stop: the interpreter still knows the answer. */
static dc_status fall_back(dc_rt *rt, dc_job *j, dc_exec *e, dc_status status)
{
    char why[600];
    if (status != DC_E_BUILD && status != DC_E_DEVICE)
        return status;
    dc_err_render(&j->err, 0, why, sizeof why);
    dc_logf(j->log, DC_CH_NOTE, "jit: %s falls back to the interpreter: %s", e->desc.name, why);
    j->err = (dc_err){0};
    rt->stats.fallbacks++;
    e->info = (dc_exec_info){.interpreted = true};
    return DC_OK;
}

static dc_status build(dc_rt *rt, dc_job *j, dc_exec *e, const dc_exec_desc *d)
{
    DC_TRY(check_desc(j, d));
    copy_desc(e, d);
    describe_values(e);
    find_reads(e, j);
    DC_TRY(read_compare(rt, j, e));
    if (rt->interpret) {
        e->info.interpreted = true;
        dc_pipeline_log_graph(j, e->desc.name, e->desc.fn);
        return DC_OK;
    }
    const dc_status status = dc_pipeline_compile(rt, j, e);
    return status == DC_OK ? DC_OK : fall_back(rt, j, e, status);
}

dc_status dc_exec_build(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    DC_TRY(dc_rt_check(rt, j, d->name));
    const uint64_t start = dc_clock_ns();
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_exec *e = new_exec(rt);
    dc_job_defer(j, free_exec, e);
    const dc_status status = build(rt, j, e, d);
    dc_job_keep(j, e);
    dc_arena_rewind(&j->scratch, mark);
    rt->stats.compile_ns += dc_clock_ns() - start;
    if (status != DC_OK) {
        free_exec(e);
        return status;
    }
    rt->stats.compiles++;
    *out = e;
    return DC_OK;
}

dc_exec *dc_exec_retain(dc_exec *e)
{
    e->refs++;
    return e;
}

void dc_exec_release(dc_exec *e)
{
    if (e != NULL && --e->refs == 0)
        free_exec(e);
}

void dc_exec_info_of(const dc_exec *e, dc_exec_info *out)
{
    *out = e->info;
}
