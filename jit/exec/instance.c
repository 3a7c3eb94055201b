/*
 * Instances, making and freeing: an executable bound to cells, result memory and a recording. Their
 * calls are in jit/exec/instance_call.c.
 */
#include "jit/exec/derived_values.h"
#include "jit/exec/temp_arena.h"

#include <string.h>

/* Whatever is not there yet is NULL, so an instance may be freed at every stage of its making. */
static void free_inst(void *what)
{
    dc_inst *i = what;
    const dc_exec *e = i->exec;
    dc_inst_cancel(i);
    dc_inst_free_recordings(i);
    for (uint32_t r = 0; r < e->desc.nresult && i->result != NULL; r++)
        dc_tensor_release(i->result[r]);
    dc_derived_drop(i);
    for (uint32_t p = 0; p < e->desc.nfree && i->seen_tensor != NULL; p++)
        dc_tensor_release(i->seen_tensor[p]);
    for (uint32_t c = 0; c < e->desc.ncell && i->cell != NULL; c++)
        dc_cell_release(i->cell[c]);
    if (i->block != NULL)
        dc_storage_disown(i->block);
    dc_temp_arena_release(i->rt);
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

bool dc_inst_busy(const dc_inst *i)
{
    return i->state != DC_INST_FREE;
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
        const dc_type value = dc_cell_room_type(cell[c]), room = dc_type_parts(&value);
        const dc_type memory = dc_cell_layout_type(dc_exec_layout(e, c), &room);
        if (!dc_type_same(&memory, &e->param[e->desc.nfree + c]))
            DC_BUG("cell %u of '%s' has another type", c, e->desc.name);
        i->cell[c] = dc_cell_retain(cell[c]);
    }
}

/* Arguments, which each call writes, and the constants behind them. */
static dc_status make_block(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const size_t all = e->block_bytes + e->constant_bytes;
    i->staging = dc_arena_alloc(&i->mem, all);
    DC_TRY(dc_storage_new(i->rt, j, all, &i->block));
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
    i->moves = DC_NEW_ARRAY(&i->mem, bool, dc_slot_count(e));
    for (uint32_t s = DC_SLOT_FIRST; s < dc_slot_count(e); s++)
        i->moves[s] = s < dc_slot_cell(e, 0) || s >= dc_slot_result(e, 0);
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
    dc_temp_arena_retain(rt);
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
