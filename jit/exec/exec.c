/*
 * Executables: a function description to something immutable that instances run. What the parts
 * mean is in jit/exec/exec.h; how the compiled ones come to be, in jit/compile/compile_job.c.
 */
#include "jit/exec/exec.h"

#include "core/graph/gtext.h"
#include "jit/compile/compile_job.h"
#include "jit/compile/stage_skip.h"
#include "jit/exec/profile.h"
#include "jit/rewrite/weight_layout.h"

#include <string.h>

/* ---- what is known before anything is compiled ----------------------------------------------- */

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
    bool *anywhere = DC_NEW_ARRAY(&e->mem, bool, d->nfree);
    for (uint32_t i = 0; i < d->nfree; i++)
        anywhere[i] = d->anywhere != NULL && d->anywhere[i];
    e->desc.anywhere = anywhere;
}

/* NULL, or what is wrong. */
static const char *wrong_set(const dc_exec_desc *d, uint32_t n, bool *is_set)
{
    const dc_func *fn = d->fn;
    if (d->set[n] >= d->ncell)
        return "a cell is set that it has not got";
    if (is_set[d->set[n]])
        return "a cell is set twice";
    is_set[d->set[n]] = true;
    const dc_type value = dc_node_type(fn, fn->result.at[d->nresult + n]);
    const dc_type cell = dc_node_type(fn, fn->param.at[d->nfree + d->set[n]]);
    return dc_type_same(&value, &cell) ? NULL : "a cell is set to a value of another type";
}

dc_status dc_exec_desc_check(dc_job *j, const dc_exec_desc *d, const char *op)
{
    const dc_func *fn = d->fn;
    const dc_type number = dc_type_scalar(DC_I32), wide = dc_type_scalar(DC_I64);
    const char *wrong = NULL;
    if ((uint64_t)d->nfree + d->ncell != fn->param.n ||
        (uint64_t)d->nresult + d->nset + 2 * (uint64_t)d->ncheck != fn->result.n)
        wrong = "the counts are not those of its function";
    bool *is_set = wrong == NULL ? DC_NEW_ARRAY(&j->scratch, bool, d->ncell) : NULL;
    for (uint32_t n = 0; n < d->nset && wrong == NULL; n++)
        wrong = wrong_set(d, n, is_set);
    for (uint32_t n = d->nresult + d->nset; n < fn->result.n && wrong == NULL; n++) {
        const dc_type t = dc_node_type(fn, fn->result.at[n]);
        const bool value = (n - d->nresult - d->nset) % 2 == 1; /* behind its position */
        if (!dc_type_same(&t, &number) && !(value && dc_type_same(&t, &wide)))
            wrong = "a check is no i32[]";
    }
    return wrong == NULL ? DC_OK : dc_failf(j, DC_ERR_FORMAT_TEXT, op, "%s", wrong);
}

static void check_desc(const dc_exec_desc *d)
{
    const dc_func *fn = d->fn;
    if (fn->param.n != d->nfree + d->ncell || fn->result.n != d->nresult + d->nset + 2 * d->ncheck)
        DC_BUG("'%s' has %u parameters and %u results, %u + %u and %u + %u + 2 * %u described",
               d->name, fn->param.n, fn->result.n, d->nfree, d->ncell, d->nresult, d->nset,
               d->ncheck);
    for (uint32_t i = 0; i < d->nset; i++)
        if (d->set[i] >= d->ncell)
            DC_BUG("'%s' sets cell %u of %u", d->name, d->set[i], d->ncell);
}

static void describe_values(dc_exec *e)
{
    const dc_func *fn = e->desc.fn;
    e->param = DC_NEW_ARRAY(&e->mem, dc_type, fn->param.n);
    e->result = DC_NEW_ARRAY(&e->mem, dc_type, fn->result.n);
    for (uint32_t i = 0; i < fn->param.n; i++)
        e->param[i] = dc_node_type(fn, fn->param.at[i]);
    for (uint32_t i = 0; i < fn->result.n; i++)
        e->result[i] = dc_node_type(fn, fn->result.at[i]);
    dc_exec_lay_block(e);
}

static void find_reads(dc_exec *e, dc_job *j)
{
    const dc_func *fn = e->desc.fn;
    const bool *live = dc_func_live(fn, &j->scratch);
    e->cell_read = DC_NEW_ARRAY(&e->mem, bool, e->desc.ncell);
    for (uint32_t i = 0; i < e->desc.ncell; i++)
        e->cell_read[i] = live[fn->param.at[e->desc.nfree + i]];
}

/* Not for the interpreter, whose kernels read everything equally slowly, nor where sums keep their order. */
static dc_status lay_out_cells(dc_exec *e, dc_job *j)
{
    const dc_opts *opt = &e->rt->opt;
    dc_skip skip;
    DC_TRY(dc_skip_parse(j, opt->skip, &skip));
    if (e->rt->interpret || e->desc.once || opt->opt < 2 || strcmp(opt->math, "strict") == 0 ||
        dc_skips(skip, DC_STAGE_layout) || dc_skips(skip, DC_STAGE_relayout))
        return DC_OK;
    const dc_func *f = dc_relayout(&e->mem, &j->scratch, &e->desc, &e->layout);
    if (f != NULL)
        e->desc.fn = f;
    return DC_OK;
}

dc_status dc_exec_describe(dc_exec *e, dc_job *j, const dc_exec_desc *d)
{
    copy_desc(e, d);
    j->about = e; /* if it breaks a promise, this is what it was */
    check_desc(&e->desc);
    e->given = e->desc;
    DC_TRY(lay_out_cells(e, j));
    describe_values(e);
    find_reads(e, j);
    return DC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

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
            dc_kernels_release(e->build->env.kernels, e->kernel[i]);
    e->nkernel = 0;
    e->kernel = NULL;
}

void dc_exec_destroy(dc_exec *e)
{
    dc_exec_drop_kernels(e);
    for (uint32_t i = 0; i < e->nprogram; i++)
        e->rt->device->ops->program_free(e->rt->device, e->program[i]);
    if (e->module != NULL)
        dc_module_free(e->module);
    dc_arena_free(&e->mem);
    dc_xfree(e->build);
    dc_xfree(e);
}

void dc_exec_free(void *what)
{
    dc_exec *e = what;
    dc_rt *rt = e->rt;
    dc_profile_report(e);
    unlink_exec(e);
    if (rt->job.about == e)
        rt->job.about = NULL;
    if (dc_build_end(rt, e))
        dc_exec_destroy(e);
    if (rt->jit != NULL)
        dc_kernels_trim(rt->jit->kernels, DC_KERNELS_SPARE);
}

dc_exec *dc_exec_retain(dc_exec *e)
{
    e->refs++;
    return e;
}

void dc_exec_release(dc_exec *e)
{
    if (e != NULL && --e->refs == 0)
        dc_exec_free(e);
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
    DC_ASSERT(e->build == NULL || !e->build->pending, "'%s' is not compiled yet", e->desc.name);
    *out = e->info;
}
