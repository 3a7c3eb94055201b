/* The commands of an executable with the time that each took, for models of what it takes elsewhere. */
#include "core/graph/host_call.h"
#include "jit/exec/exec.h"

uint32_t dc_exec_step_count(const dc_exec *e)
{
    return e->ncommand - e->nprologue;
}

void dc_exec_forget_times(dc_exec *e)
{
    for (uint32_t i = 0; i < e->ncommand && e->profile.command_ns != NULL; i++)
        e->profile.command_ns[i] = 0;
    e->profile.calls = e->profile.call_ns = e->profile.prologues = 0;
}

/* How often the loops around command i go round. */
static int64_t times_of(const dc_exec *e, uint32_t i, bool *inside)
{
    int64_t times = 1;
    *inside = false;
    for (uint32_t k = e->nprologue; k < i; k++) {
        const dc_command *x = &e->command[k];
        const bool around = k + x->nbody + x->nelse >= i && x->kind != DC_COMMAND_BUNDLE;
        if (x->nbody + x->nelse == 0 || !around)
            continue;
        *inside = true;
        times *= x->kind == DC_COMMAND_LOOP ? x->grid : 1;
    }
    return times;
}

void dc_exec_step_of(const dc_exec *e, uint32_t i, dc_exec_step *out)
{
    const uint32_t at = e->nprologue + i;
    const dc_command *x = &e->command[at];
    const uint64_t *ns = e->profile.command_ns;
    dc_host_call c;
    *out = (dc_exec_step){.label = x->label, .ndep = x->ndep, .dep = x->dep};
    out->times = times_of(e, at, &out->inside);
    if (ns != NULL && e->profile.calls > 0 && x->kind != DC_COMMAND_BUNDLE)
        out->ns = (double)ns[at] / (double)e->profile.calls;
    if (x->kind != DC_COMMAND_HOST ||
        !dc_host_call_unpack(&e->rt->first->job, x->host, x->nhost, &c) ||
        !dc_op_is(c.op, DC_CLASS_COM) || c.op == DC_OP_ARRIVED)
        return;
    out->exchange = true;
    out->attr = dc_exchange_read(c.attr);
    out->op = c.op;
    out->type = *dc_host_call_moved(&c);
}
