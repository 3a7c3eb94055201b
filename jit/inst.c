/*
 * Instances: an executable bound to cells, result memory and a recording, and its calls.
 *
 * A call in order: everybody who holds what is about to be overwritten gets a copy; the addresses
 * of the arguments go into the slots; the recording runs; results are shown. Tensors that callers
 * drop before the next call cost nothing: in the steady state a call allocates neither memory of
 * the device nor of the host.
 *
 * The arena belongs to the context and serves whichever instance runs. A call that finds it in use
 * takes memory of its own for that one time.
 */
#include "jit/exec.h"
#include "jit/guard.h"
#include "jit/oracle.h"
#include "jit/profile.h"

/* ---- making and freeing ---------------------------------------------------------------------- */

static void release_arena(dc_rt *rt)
{
    if (--rt->arena_users > 0 || rt->arena == NULL)
        return;
    dc_store_disown(rt->arena);
    rt->arena = NULL;
}

/* Whatever is not there yet is NULL, so an instance may be freed at every stage of its making. */
static void free_inst(void *what)
{
    dc_inst *i = what;
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    for (uint32_t r = 0; r < i->nrecording; r++)
        if (i->recording[r] != NULL)
            d->ops->recording_free(d, i->recording[r]);
    for (uint32_t r = 0; r < e->desc.nresult && i->handle != NULL; r++)
        dc_tensor_release(i->handle[r]);
    for (uint32_t r = 0; r < e->desc.nresult && i->result != NULL; r++)
        if (i->result[r] != NULL)
            dc_store_disown(i->result[r]);
    for (uint32_t c = 0; c < e->desc.ncell && i->cell != NULL; c++)
        dc_cell_release(i->cell[c]);
    if (i->block != NULL)
        dc_store_disown(i->block);
    release_arena(i->rt);
    dc_arena_free(&i->mem);
    dc_exec_release(i->exec);
    dc_xfree(i);
}

void dc_inst_free(dc_inst *i)
{
    if (i != NULL)
        free_inst(i);
}

static dc_status new_owned(dc_rt *rt, dc_job *j, size_t bytes, dc_store **out)
{
    DC_TRY(dc_store_new(rt, j, bytes, out));
    (*out)->owned = true;
    return DC_OK;
}

/* Makes the context's arena large enough, unless a call is using it. */
static dc_status grow_arena(dc_rt *rt, dc_job *j, size_t bytes)
{
    dc_store *larger;
    if (rt->arena_busy || bytes == 0 || (rt->arena != NULL && rt->arena->bytes >= bytes))
        return DC_OK;
    DC_TRY(new_owned(rt, j, bytes, &larger));
    if (rt->arena != NULL)
        dc_store_disown(rt->arena);
    rt->arena = larger;
    return DC_OK;
}

static void bind_cells(dc_inst *i, dc_cell *const *cell)
{
    const dc_exec *e = i->exec;
    for (uint32_t c = 0; c < e->desc.ncell; c++) {
        for (uint32_t k = 0; k < c; k++)
            if (cell[k] == cell[c])
                DC_BUG("'%s' is given one cell as %u and %u", e->desc.name, k, c);
        if (!dc_type_same(&cell[c]->type, &e->param[e->desc.nfree + c]))
            DC_BUG("cell %u of '%s' has another type", c, e->desc.name);
        i->cell[c] = dc_cell_retain(cell[c]);
    }
}

static dc_status record(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const bool one_by_one = e->guard > 0;
    const uint32_t n = one_by_one ? e->nitem : e->nitem > 0;
    i->recording = DC_NEW_ARRAY(&i->mem, dc_recording *, n);
    i->nrecording = n;
    for (uint32_t r = 0; r < n; r++)
        DC_TRY(d->ops->record(d, j, &e->item[r], one_by_one ? 1 : e->nitem, &i->recording[r]));
    return DC_OK;
}

static dc_status fill_inst(dc_inst *i, dc_job *j, dc_cell *const *cell)
{
    const dc_exec *e = i->exec;
    i->cell = DC_NEW_ARRAY(&i->mem, dc_cell *, e->desc.ncell);
    i->result = DC_NEW_ARRAY(&i->mem, dc_store *, e->desc.nresult);
    i->handle = DC_NEW_ARRAY(&i->mem, dc_tensor *, e->desc.nresult);
    i->slot = DC_NEW_ARRAY(&i->mem, void *, dc_slot_count(e));
    i->staging = dc_arena_alloc(&i->mem, e->block_bytes);
    bind_cells(i, cell);
    for (uint32_t r = 0; r < e->desc.nresult; r++)
        DC_TRY(new_owned(i->rt, j, dc_type_bytes(&e->result[r]), &i->result[r]));
    DC_TRY(new_owned(i->rt, j, e->block_bytes, &i->block));
    if (e->info.interpreted)
        return DC_OK;
    DC_TRY(grow_arena(i->rt, j, e->info.arena_bytes));
    return record(i, j);
}

dc_status dc_inst_new(dc_rt *rt, dc_job *j, dc_exec *e, dc_cell *const *cell, dc_inst **out)
{
    DC_TRY(dc_rt_check(rt, j, e->desc.name));
    dc_inst *i = dc_xalloc(sizeof *i);
    i->rt = rt;
    i->exec = dc_exec_retain(e);
    rt->arena_users++;
    dc_job_defer(j, free_inst, i);
    const dc_status status = fill_inst(i, j, cell);
    dc_job_keep(j, i);
    if (status != DC_OK) {
        free_inst(i);
        return status;
    }
    *out = i;
    return DC_OK;
}

/* ---- before a call --------------------------------------------------------------------------- */

static dc_status refuse_torn(const dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        if (i->cell[c]->torn && e->cell_read[c])
            return dc_fail(j, DC_ERR_TORN,
                           &(dc_fact){.op = e->desc.name,
                                      .word = {i->cell[c]->label ? i->cell[c]->label : "a cell"}});
    return DC_OK;
}

/* Somebody else than the instance holds or shows result r. */
static bool is_held(const dc_inst *i, uint32_t r)
{
    const dc_tensor *h = i->handle[r];
    return i->result[r]->shown != h || (h != NULL && (h->next != NULL || h->refs > 1));
}

static dc_status evict_holders(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    for (uint32_t r = 0; r < e->desc.nresult; r++) {
        if (is_held(i, r)) {
            dc_tensor_release(i->handle[r]);
            i->handle[r] = NULL;
            DC_TRY(dc_store_evict(i->result[r], j));
        }
        if (i->handle[r] == NULL) /* now, so that nothing can fail after the run */
            i->handle[r] = dc_tensor_show(i->result[r], &e->result[r]);
    }
    for (uint32_t s = 0; s < e->desc.nset; s++)
        DC_TRY(dc_store_evict(i->cell[e->desc.set[s]]->store, j));
    return DC_OK;
}

/* After the evictions, which may have moved an argument. */
static dc_status bind_arguments(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    bool block = false;
    for (uint32_t p = 0; p < e->desc.nfree; p++) {
        char *at = (char *)i->staging + e->block_at[p];
        if (e->param[p].rank > 0) {
            DC_ASSERT(arg[p].tensor != NULL, "argument %u of '%s' has no tensor", p, e->desc.name);
            i->slot[dc_slot_free(p)] = dc_tensor_mem(arg[p].tensor);
            continue;
        }
        block = true;
        if (arg[p].tensor == NULL)
            dc_bits_store((dc_dtype)e->param[p].dtype, at, arg[p].bits);
        else
            DC_TRY(d->ops->download(d, j, at, dc_tensor_mem(arg[p].tensor),
                                    dc_type_bytes(&e->param[p])));
    }
    i->slot[DC_SLOT_BLOCK] = i->block->mem;
    return block ? d->ops->upload(d, j, i->block->mem, i->staging, e->block_bytes) : DC_OK;
}

static dc_status bind_arena(dc_inst *i, dc_job *j)
{
    const size_t bytes = i->exec->info.arena_bytes;
    dc_rt *rt = i->rt;
    i->slot[DC_SLOT_ARENA] = i->block->mem; /* an address even where nothing is kept */
    if (bytes == 0)
        return DC_OK;
    if (rt->arena_busy) {
        DC_TRY(new_owned(rt, j, bytes, &i->own_arena));
        i->slot[DC_SLOT_ARENA] = i->own_arena->mem;
        return DC_OK;
    }
    DC_TRY(grow_arena(rt, j, bytes));
    rt->arena_busy = i->borrowed = true;
    i->slot[DC_SLOT_ARENA] = rt->arena->mem;
    return DC_OK;
}

static dc_status bind(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    DC_TRY(evict_holders(i, j));
    DC_TRY(bind_arguments(i, j, arg));
    DC_TRY(bind_arena(i, j));
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        i->slot[dc_slot_cell(e, c)] = i->cell[c]->store->mem;
    for (uint32_t r = 0; r < e->desc.nresult; r++)
        i->slot[dc_slot_result(e, r)] = i->result[r]->mem;
    return DC_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The run stopped at item n, a check that read `position`. */
static dc_status read_fault(dc_inst *i, dc_job *j, uint32_t n, int64_t position, dc_fault *fault)
{
    const dc_item_fact *f = &i->exec->fact[n];
    dc_device *d = i->rt->device;
    int32_t value;
    const char *at = (const char *)i->slot[f->value.slot] + f->value.offset;
    DC_TRY(d->ops->download(d, j, &value, at, sizeof value));
    *fault = (dc_fault){(int32_t)f->check, position, value};
    return DC_OK;
}

/* Items [n, n + count) are recording r. */
static dc_status run_recording(dc_inst *i, dc_job *j, uint32_t r, uint32_t n, dc_fault *fault)
{
    uint64_t *ns = i->exec->profile.item_ns;
    dc_device *d = i->rt->device;
    dc_run_info info = {.fault_item = -1, .nanoseconds = ns != NULL ? ns + n : NULL};
    const dc_status status = d->ops->run(d, j, i->recording[r], i->slot, &info);
    if (info.fault_item >= 0)
        return read_fault(i, j, n + (uint32_t)info.fault_item, info.fault_value, fault);
    return status;
}

static dc_status run_guarded(dc_inst *i, dc_job *j, dc_fault *fault)
{
    char *arena = i->slot[DC_SLOT_ARENA];
    for (uint32_t n = 0; n < i->nrecording && fault->check < 0; n++) {
        DC_TRY(dc_guard_fill(i, j, arena, n));
        DC_TRY(run_recording(i, j, n, n, fault));
        DC_TRY(dc_guard_check(i, j, arena, n));
    }
    return DC_OK;
}

static dc_status run_all(dc_inst *i, dc_job *j, dc_fault *fault)
{
    if (i->exec->guard > 0)
        return run_guarded(i, j, fault);
    return i->nrecording > 0 ? run_recording(i, j, 0, 0, fault) : DC_OK;
}

static void mark_cells(dc_inst *i, bool torn)
{
    const dc_exec *e = i->exec;
    for (uint32_t s = 0; s < e->desc.nset; s++)
        i->cell[e->desc.set[s]]->torn = torn;
}

static dc_status execute(dc_inst *i, dc_job *j, dc_fault *fault)
{
    dc_comparison *beside = NULL;
    if (i->exec->compare)
        DC_TRY(dc_oracle_begin(i, j, &beside));
    const dc_status status = run_all(i, j, fault);
    if (status != DC_OK) {
        mark_cells(i, true);
        return status;
    }
    if (beside != NULL)
        DC_TRY(dc_oracle_compare(i, j, beside, fault));
    if (fault->check >= 0)
        return DC_E_VALUE;
    mark_cells(i, false);
    i->rt->stats.launches += i->exec->info.launches;
    return DC_OK;
}

static dc_status interpret(dc_inst *i, dc_job *j, dc_fault *fault)
{
    void **result;
    i->rt->stats.interpreted++;
    DC_TRY(dc_oracle_run(i, j, &result));
    dc_oracle_fault(i->exec, result, fault);
    if (fault->check >= 0)
        return DC_E_VALUE;
    const dc_status status = dc_oracle_store(i, j, result);
    mark_cells(i, status != DC_OK);
    return status;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static void end_call(void *what)
{
    dc_inst *i = what;
    if (i->borrowed)
        i->rt->arena_busy = i->borrowed = false;
    if (i->own_arena != NULL)
        dc_store_disown(i->own_arena);
    i->own_arena = NULL;
    i->busy = false;
}

static dc_status run_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_fault *fault)
{
    i->calls++;
    i->rt->stats.calls++;
    DC_TRY(bind(i, j, arg));
    DC_TRY(i->exec->info.interpreted ? interpret(i, j, fault) : execute(i, j, fault));
    return dc_store_guards(i->rt, j, i->exec->desc.name);
}

dc_status dc_inst_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_tensor **out, dc_fault *fault)
{
    dc_exec *e = i->exec;
    *fault = (dc_fault){.check = -1};
    DC_TRY(dc_rt_check(i->rt, j, e->desc.name));
    if (i->busy)
        return dc_failf(j, DC_ERR_REENTER, e->desc.name, "a call of it is still running");
    DC_TRY(refuse_torn(i, j));
    const bool timed = dc_log_on(&i->rt->log, DC_CH_TIME);
    const uint64_t start = timed ? dc_clock_ns() : 0;
    const dc_mark mark = dc_arena_mark(&j->scratch);

    i->busy = true;
    dc_job_defer(j, end_call, i);
    const dc_status status = run_call(i, j, arg, fault);
    dc_job_keep(j, i);
    end_call(i);
    dc_arena_rewind(&j->scratch, mark);

    if (timed) {
        e->profile.calls++;
        e->profile.call_ns += dc_clock_ns() - start;
    }
    for (uint32_t r = 0; r < e->desc.nresult && status == DC_OK; r++)
        out[r] = dc_tensor_retain(i->handle[r]);
    return status;
}
