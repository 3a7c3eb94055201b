/* The commands of an executable with the time that each took, for people. */
#include "core/ir/host_call.h"
#include "jit/exec/exec.h"

#include <string.h>

void dc_exec_forget_times(dc_exec *e)
{
    for (uint32_t i = 0; i < e->ncommand && e->profile.command_ns != NULL; i++)
        e->profile.command_ns[i] = e->profile.command_runs[i] = 0;
    e->profile.calls = e->profile.call_ns = e->profile.prologues = 0;
}

dc_exec_calls dc_exec_calls_of(const dc_exec *e)
{
    return (dc_exec_calls){e->profile.calls, e->profile.call_ns, e->profile.prologues};
}

uint32_t dc_exec_command_count(const dc_exec *e)
{
    return e->info.interpreted || e->command == NULL ? 0 : e->ncommand;
}

static const char *kind_of(const dc_command *x)
{
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        return "launch";
    case DC_COMMAND_COPY:
        return "copy";
    case DC_COMMAND_CHECK:
        return "check";
    case DC_COMMAND_HOST:
        return "host";
    case DC_COMMAND_LOOP:
        return "loop";
    case DC_COMMAND_BRANCH:
        return "branch";
    case DC_COMMAND_BUNDLE:
        return "bundle";
    }
    DC_BUG("a command of kind %d", x->kind);
}

/* How often the loops around command i go round; *inside: is it in one, or in a branch? */
static int64_t times_of(const dc_exec *e, uint32_t i, bool *inside)
{
    int64_t times = 1;
    *inside = false;
    for (uint32_t k = i < e->nprologue ? 0 : e->nprologue; k < i; k++) {
        const dc_command *x = &e->command[k];
        if (x->kind == DC_COMMAND_BUNDLE || x->nbody + x->nelse == 0 || k + x->nbody + x->nelse < i)
            continue;
        *inside = true;
        times *= x->kind == DC_COMMAND_LOOP ? x->grid : 1;
    }
    return times;
}

static const dc_kept *kept_of(const dc_exec *e, const dc_command *x)
{
    for (uint32_t k = 0; x->kind == DC_COMMAND_LAUNCH && k < e->nkernel; k++)
        if (strcmp(e->kept[k].name, x->label) == 0)
            return &e->kept[k];
    return NULL;
}

static void set_exchange(const dc_exec *e, const dc_command *x, dc_exec_command *out)
{
    dc_host_call c;
    if (x->kind != DC_COMMAND_HOST ||
        !dc_host_call_unpack(&e->rt->first->job, x->host, x->nhost, &c) ||
        !dc_op_is(c.op, DC_CLASS_COM) || c.op == DC_OP_ARRIVED)
        return;
    out->exchange = true;
    out->attr = dc_exchange_read(c.attr);
    out->op = c.op;
    out->type = *dc_host_call_moved(&c);
}

void dc_exec_command_of(const dc_exec *e, uint32_t i, dc_exec_command *out)
{
    const dc_command *x = &e->command[i];
    const dc_command_fact *f = &e->fact[i];
    const dc_kept *kept = kept_of(e, x);
    const bool timed = e->profile.command_ns != NULL && x->kind != DC_COMMAND_BUNDLE;
    *out = (dc_exec_command){
        .kind = kind_of(x),
        .label = x->label,
        .where = {f->where[0], f->where[1], f->where[2]},
        .kernel = kept != NULL ? kept - e->kept : -1,
        .grid = x->grid,
        .flops = f->flops,
        .bytes = x->kind == DC_COMMAND_COPY ? 2 * (int64_t)x->bytes : f->bytes,
        .bounded = e->desc.nsize > 0,
        .ns = timed ? e->profile.command_ns[i] : 0,
        .runs = timed ? e->profile.command_runs[i] : 0,
        .prologue = i < e->nprologue,
        .nbody = x->nbody,
        .nelse = x->nelse,
        .nout = x->kind == DC_COMMAND_LAUNCH ? f->nout : x->nbind > 0,
        .nbind = x->nbind,
        .npart = kept != NULL ? kept->npart : 0,
        .ndep = x->ndep,
        .dep = x->dep,
    };
    out->times = times_of(e, i, &out->inside);
    set_exchange(e, x, out);
}

dc_exec_joined dc_exec_joined_of(const dc_exec *e, uint32_t command, uint32_t part)
{
    const dc_kept *x = &kept_of(e, &e->command[command])->part[part];
    return (dc_exec_joined){x->name, x->nout, x->nin};
}

uint32_t dc_exec_temp_count(const dc_exec *e)
{
    return e->info.interpreted ? 0 : e->ntemp;
}

dc_exec_temp dc_exec_temp_of(const dc_exec *e, uint32_t i)
{
    const dc_guarded *t = &e->temp[i];
    return (dc_exec_temp){t->offset, t->bytes, t->first, t->last};
}
