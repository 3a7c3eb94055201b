/* What an instance needs before its first call: a compiled executable, recordings, memory for results. */
#include "jit/exec/exec_task.h"
#include "jit/exec/temp_arena.h"

void dc_inst_free_recordings(dc_inst *i)
{
    dc_device *d = i->rt->device;
    for (uint32_t r = 0; r < i->nrecording; r++)
        d->ops->recording_free(d, i->recording[r]);
    i->nrecording = 0;
}

/* Commands [first, end) of the executable, which begin no list: alone they wait for nothing. */
static dc_status record_unit(dc_inst *i, dc_job *j, uint32_t first, uint32_t end,
                             dc_recording **out)
{
    dc_device *d = i->rt->device;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_command *command = DC_NEW_ARRAY(&j->scratch, dc_command, end - first);
    for (uint32_t n = first; n < end; n++)
        command[n - first] = i->exec->command[n];
    command[0].ndep = 0;
    const dc_status status = d->ops->record(d, j, command, end - first, out);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* The prologue and the body are a recording each; with guards each command is, its bodies included. */
static dc_status record(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    dc_inst_free_recordings(i); /* of an attempt that failed */
    i->recording = DC_NEW_ARRAY(&i->mem, dc_recording *, e->ncommand);
    i->recorded = DC_NEW_ARRAY(&i->mem, uint32_t, e->ncommand + 1);
    for (uint32_t n = 0, end; n < e->ncommand; n = end) {
        dc_recording **out = &i->recording[i->nrecording];
        end = e->guard > 0       ? n + 1 + e->command[n].nbody + e->command[n].nelse
              : n < e->nprologue ? e->nprologue
                                 : e->ncommand;
        DC_TRY(e->guard > 0 ? record_unit(i, j, n, end, out)
                            : d->ops->record(d, j, e->command + n, end - n, out));
        i->recorded[++i->nrecording] = end;
        i->body = end == e->nprologue ? i->nrecording : i->body;
    }
    return DC_OK;
}

dc_status dc_inst_short(const dc_inst *i, dc_job *j, dc_status status)
{
    const dc_exec *e = i->exec;
    char text[DC_MEMORY_TEXT];
    if (status != DC_E_NOMEM || j->err.id != DC_ERR_NOMEM || e->needs.nvalue == 0)
        return status;
    dc_memory_needs_print(&e->needs, &e->desc, e->desc.fn, text);
    dc_err_clear(&j->err);
    return dc_fail(j, DC_ERR_NOMEM_TEXT,
                   &(dc_fact){.op = e->desc.name, .word = {text}, .lines = true});
}

bool dc_inst_make_room(const dc_inst *i, dc_job *j, dc_status status)
{
    if (status != DC_E_NOMEM || j->err.id != DC_ERR_NOMEM)
        return false;
    dc_err_clear(&j->err);
    dc_pool_drain(i->rt);
    return true;
}

static dc_status record_with_room(dc_inst *i, dc_job *j)
{
    const dc_status status = record(i, j);
    return dc_inst_make_room(i, j, status) ? record(i, j) : status;
}

/* What needs the executable to be compiled. */
static dc_status prepare(dc_inst *i, dc_job *j)
{
    DC_TRY(dc_exec_wait(i->rt, j, i->exec));
    if (!i->exec->info.interpreted) {
        DC_TRY(dc_inst_short(i, j, dc_temp_arena_grow(i->rt, j, i->exec->info.arena_bytes)));
        DC_TRY(dc_inst_short(i, j, record_with_room(i, j)));
    }
    i->prepared = true;
    return DC_OK;
}

dc_status dc_inst_prepare(dc_inst *i, dc_job *j)
{
    return i->prepared ? DC_OK : prepare(i, j);
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
