/*
 * Instances, making and freeing: an executable bound to cells, result memory and a recording. Their
 * calls are in jit/exec/instance_call.c.
 */
#include "jit/exec/hoisted_values.h"
#include "jit/exec/temp_arena.h"

#include <string.h>

static void free_recordings(dc_inst *i)
{
    dc_device *d = i->rt->device;
    for (uint32_t r = 0; r < i->nrecording; r++)
        d->ops->recording_free(d, i->recording[r]);
    i->nrecording = 0;
}

/* Whatever is not there yet is NULL, so an instance may be freed at every stage of its making. */
static void free_inst(void *what)
{
    dc_inst *i = what;
    const dc_exec *e = i->exec;
    dc_inst_cancel(i);
    free_recordings(i);
    for (uint32_t r = 0; r < e->desc.nresult && i->result != NULL; r++)
        dc_tensor_release(i->result[r]);
    dc_derived_drop(i);
    for (uint32_t p = 0; p < e->desc.nfree && i->seen_tensor != NULL; p++)
        dc_tensor_release(i->seen_tensor[p]);
    for (uint32_t c = 0; c < e->desc.ncell && i->cell != NULL; c++)
        dc_cell_release(i->cell[c]);
    if (i->block != NULL)
        dc_store_disown(i->block);
    dc_temps_release(i->rt);
    dc_arena_free(&i->mem);
    dc_exec_release(i->exec);
    dc_xfree(i);
}

void dc_inst_free(dc_inst *i)
{
    if (i != NULL)
        free_inst(i);
}

uint64_t dc_inst_calls(const dc_inst *i)
{
    return i->calls;
}

dc_status dc_inst_new_result(dc_inst *i, dc_job *j, uint32_t r)
{
    return dc_tensor_new(i->rt, j, &i->exec->result[r], &i->result[r]);
}

void dc_inst_leave_result(dc_inst *i, uint32_t r)
{
    dc_tensor_release(i->result[r]);
    i->result[r] = NULL;
}

void dc_inst_detach(dc_inst *i)
{
    for (uint32_t r = 0; r < i->exec->desc.nresult; r++)
        dc_inst_leave_result(i, r);
}

static void bind_cells(dc_inst *i, dc_job *j, dc_cell *const *cell)
{
    const dc_exec *e = i->exec;
    if (dc_cells_twice(j, cell, e->desc.ncell) != NULL)
        DC_BUG("'%s' is given one cell twice", e->desc.name);
    for (uint32_t c = 0; c < e->desc.ncell; c++) {
        const dc_type memory = dc_cell_layout_type(dc_exec_layout(e, c), &cell[c]->type);
        if (!dc_type_same(&memory, &e->param[e->desc.nfree + c]))
            DC_BUG("cell %u of '%s' has another type", c, e->desc.name);
        i->cell[c] = dc_cell_retain(cell[c]);
    }
}

/* Items [first, end) of the executable, which begin no list: alone they wait for nothing. */
static dc_status record_unit(dc_inst *i, dc_job *j, uint32_t first, uint32_t end,
                             dc_recording **out)
{
    dc_device *d = i->rt->device;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_item *item = DC_NEW_ARRAY(&j->scratch, dc_item, end - first);
    for (uint32_t n = first; n < end; n++)
        item[n - first] = i->exec->item[n];
    item[0].ndep = 0;
    const dc_status status = d->ops->record(d, j, item, end - first, out);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* The prologue and the body are a recording each; with guards each item is, its bodies included. */
static dc_status record(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    free_recordings(i); /* of an attempt that failed */
    i->recording = DC_NEW_ARRAY(&i->mem, dc_recording *, e->nitem);
    i->recorded = DC_NEW_ARRAY(&i->mem, uint32_t, e->nitem + 1);
    for (uint32_t n = 0, end; n < e->nitem; n = end) {
        dc_recording **out = &i->recording[i->nrecording];
        end = e->guard > 0       ? n + 1 + e->item[n].nbody + e->item[n].nelse
              : n < e->nprologue ? e->nprologue
                                 : e->nitem;
        DC_TRY(e->guard > 0 ? record_unit(i, j, n, end, out)
                            : d->ops->record(d, j, e->item + n, end - n, out));
        i->recorded[++i->nrecording] = end;
        i->body = end == e->nprologue ? i->nrecording : i->body;
    }
    return DC_OK;
}

/* What needs the executable to be compiled. */
static dc_status prepare(dc_inst *i, dc_job *j)
{
    DC_TRY(dc_exec_wait(i->rt, j, i->exec));
    if (!i->exec->info.interpreted) {
        DC_TRY(dc_temps_grow(i->rt, j, i->exec->info.arena_bytes));
        DC_TRY(record(i, j));
    }
    i->prepared = true;
    return DC_OK;
}

dc_status dc_inst_prepare(dc_inst *i, dc_job *j)
{
    return i->prepared ? DC_OK : prepare(i, j);
}

/* Arguments, which each call writes, and the constants behind them. */
static dc_status make_block(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const size_t all = e->block_bytes + e->constant_bytes;
    i->staging = dc_arena_alloc(&i->mem, all);
    DC_TRY(dc_store_new(i->rt, j, all, &i->block));
    i->block->owned = true;
    if (e->constant_bytes == 0)
        return DC_OK;
    memcpy((char *)i->staging + e->block_bytes, e->constant, e->constant_bytes);
    return d->ops->upload(d, j, i->block->mem, i->staging, all);
}

static dc_status fill_inst(dc_inst *i, dc_job *j, dc_cell *const *cell)
{
    const dc_exec *e = i->exec;
    i->cell = DC_NEW_ARRAY(&i->mem, dc_cell *, e->desc.ncell);
    i->result = DC_NEW_ARRAY(&i->mem, dc_tensor *, e->desc.nresult);
    i->slot = DC_NEW_ARRAY(&i->mem, void *, dc_slot_count(e));
    bind_cells(i, j, cell);
    for (uint32_t r = 0; r < e->desc.nresult; r++)
        DC_TRY(dc_inst_new_result(i, j, r));
    DC_TRY(dc_exec_wait(i->rt, j, i->exec));
    DC_TRY(make_block(i, j));
    return dc_inst_prepare(i, j);
}

dc_status dc_inst_new(dc_rt *rt, dc_job *j, dc_exec *e, dc_cell *const *cell, dc_inst **out)
{
    DC_TRY(dc_rt_check(rt, j, e->desc.name));
    dc_inst *i = dc_xalloc(sizeof *i);
    i->rt = rt;
    i->exec = dc_exec_retain(e);
    dc_temps_retain(rt);
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
