/* A description to an executable that is not compiled yet: copies, types, the layout of its cells. */
#include "jit/compile/compile_job.h"
#include "jit/rewrite/weight_layout.h"

#include <string.h>

/* Copies everything the caller owns. */
static void copy_desc(dc_exec *e, const dc_exec_desc *d)
{
    e->module = dc_module_new();
    e->desc = *d;
    e->desc.fn = dc_func_clone(e->module, d->fn, NULL);
    e->desc.name = dc_arena_strdup(&e->mem, d->name != NULL ? d->name : "function");
    e->desc.where = d->where != NULL ? dc_arena_strdup(&e->mem, d->where) : NULL;
    uint32_t *set = DC_NEW_ARRAY(&e->mem, uint32_t, d->nset);
    for (uint32_t i = 0; i < d->nset; i++)
        set[i] = d->set[i];
    e->desc.set = set;
    bool *anywhere = DC_NEW_ARRAY(&e->mem, bool, d->nfree);
    for (uint32_t i = 0; i < d->nfree; i++)
        anywhere[i] = d->anywhere != NULL && d->anywhere[i];
    e->desc.anywhere = anywhere;
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
    if (e->rt->interpret || e->desc.once || opt->opt < 2 || dc_opts_math(opt, "strict") ||
        dc_skips(skip, DC_STAGE_layout) || dc_skips(skip, DC_STAGE_relayout))
        return DC_OK;
    const dc_func *f = dc_weight_layout(&e->mem, &j->scratch, &e->desc, &e->layout);
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
