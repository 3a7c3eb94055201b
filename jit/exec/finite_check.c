#include "jit/exec/finite_check.h"

#include "core/eval/eval_find.h"
#include "jit/exec/interpret.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool dc_finite_wanted(const dc_inst *i)
{
    return i->rt->opt.numbers && !i->unchecked && !i->rt->first->check;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *mem_of(const dc_inst *i, uint32_t r)
{
    const dc_exec *e = i->exec;
    return r < e->desc.nresult ? dc_tensor_mem(i->result[r])
                               : i->cell[e->desc.set[r - e->desc.nresult]]->store->mem;
}

static dc_status download(dc_inst *i, dc_job *j, uint32_t r, void *to)
{
    dc_device *d = i->rt->device;
    const size_t bytes = dc_type_bytes(&i->exec->result[r]);
    return bytes > 0 ? d->ops->download(d, j, to, mem_of(i, r), bytes) : DC_OK;
}

/* The values of the cells that are set, as they are now. */
static dc_status read_cells(dc_inst *i, dc_job *j, void **to)
{
    const dc_exec *e = i->exec;
    for (uint32_t s = 0; s < e->desc.nset; s++) {
        to[s] = dc_arena_alloc(&j->scratch, dc_type_bytes(&e->result[e->desc.nresult + s]));
        DC_TRY(download(i, j, e->desc.nresult + s, to[s]));
    }
    return DC_OK;
}

static dc_status write_cells(dc_inst *i, dc_job *j, void *const *from)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const atomic_bool *cancel = dc_job_heed(j, NULL); /* all or none */
    dc_status status = DC_OK;
    for (uint32_t s = 0; s < e->desc.nset && status == DC_OK; s++) {
        const size_t bytes = dc_type_bytes(&e->result[e->desc.nresult + s]);
        if (bytes > 0)
            status = d->ops->upload(d, j, mem_of(i, e->desc.nresult + s), from[s], bytes);
    }
    dc_job_heed(j, cancel);
    return status;
}

dc_status dc_finite_begin(dc_inst *i, dc_job *j, void ***before)
{
    *before = DC_NEW_ARRAY(&j->scratch, void *, i->exec->desc.nset + 1);
    return read_cells(i, j, *before);
}

/* ---- looking --------------------------------------------------------------------------------- */

static uint32_t looked_at(const dc_exec *e)
{
    return e->desc.nresult + e->desc.nset;
}

/* The first result that is not finite; -1 none. */
static int first_bad(const dc_inst *i, void *const *value)
{
    const dc_exec *e = i->exec;
    for (uint32_t r = 0; r < looked_at(e); r++) {
        const dc_type *t = &e->result[r];
        if (dc_eval_worst((dc_dtype)t->dtype, value[r], dc_type_count(t)) > 0)
            return (int)r;
    }
    return -1;
}

/* ---- the search ------------------------------------------------------------------------------ */

static dc_status fail_unknown(dc_inst *i, dc_job *j, uint32_t r)
{
    const dc_exec *e = i->exec;
    char name[120];
    const char *label =
        r >= e->desc.nresult ? i->cell[e->desc.set[r - e->desc.nresult]]->label : "";
    if (r < e->desc.nresult)
        snprintf(name, sizeof name, "result %u", r + 1);
    else
        snprintf(name, sizeof name, "the new value of %s", label != NULL ? label : "a cell");
    return dc_failf(j, DC_ERR_NOT_FINITE, e->desc.name,
                    "%s is not finite in call %" PRIu64
                    ", and the interpreter, which rounds in other places, gives finite values: an "
                    "operation is at the edge of its range",
                    name, i->calls);
}

/* The cells have their old values. DC_OK: they are of arguments, cells or constants, no operation made them. */
static dc_status search(dc_inst *i, dc_job *j, uint32_t bad)
{
    const dc_exec *e = i->exec;
    char call[200];
    dc_eval_culprit maker;
    const void **param;
    int worst;
    DC_TRY(dc_interpret_params(i, j, &param));
    DC_TRY(dc_eval_find(j, e->desc.fn, dc_interpret_mode(j), param, looked_at(e), &maker, &worst));
    snprintf(call, sizeof call, "; call %" PRIu64 " of '%s'", i->calls, e->desc.name);
    if (maker.ref != 0)
        return dc_eval_culprit_fail(j, e->desc.fn, &maker, call);
    return worst == 0 ? fail_unknown(i, j, bad) : DC_OK;
}

dc_status dc_finite_check(dc_inst *i, dc_job *j, void *const *before)
{
    const dc_exec *e = i->exec;
    void **after = DC_NEW_ARRAY(&j->scratch, void *, looked_at(e) + 1);
    for (uint32_t r = 0; r < e->desc.nresult; r++) {
        after[r] = dc_arena_alloc(&j->scratch, dc_type_bytes(&e->result[r]));
        DC_TRY(download(i, j, r, after[r]));
    }
    DC_TRY(read_cells(i, j, after + e->desc.nresult));
    const int bad = first_bad(i, after);
    if (bad < 0)
        return DC_OK;
    DC_TRY(write_cells(i, j, before));
    DC_TRY(search(i, j, (uint32_t)bad));
    return write_cells(i, j, after + e->desc.nresult);
}

dc_status dc_finite_check_host(dc_inst *i, dc_job *j, void *const *result)
{
    const int bad = first_bad(i, result);
    return bad < 0 ? DC_OK : search(i, j, (uint32_t)bad);
}
