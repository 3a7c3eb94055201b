/*
 * Executables as people look at them: kernels with their times, what commands read and write, what was decided.
 * Texts of kernels: jit/compile/kernel_source.c.
 */
#include "core/autodiff/grad.h"
#include "core/ir/control.h"
#include "jit/base/tuning.h"
#include "jit/cache/tuned_schedules.h"
#include "jit/exec/exec_task.h"
#include "jit/exec/profile.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

uint32_t dc_exec_kernel_count(const dc_exec *e)
{
    return e->kept != NULL && !e->info.interpreted ? e->nkernel : 0;
}

static void add_lines(dc_exec_kernel *k, const dc_command_fact *f)
{
    const int room = (int)DC_COUNTOF(k->where);
    for (int i = 0; i < (int)DC_COUNTOF(f->where) && f->where[i] != NULL; i++) {
        int at = 0;
        while (at < room && k->where[at] != NULL && strcmp(k->where[at], f->where[i]) != 0)
            at++;
        if (at < room)
            k->where[at] = f->where[i];
    }
}

/* Is the schedule of a kernel one that was found by timing? The list may be newer than the executable. */
static double gain_of(const dc_exec *e, const dc_kept *k)
{
    const dc_tuned_store *store = e->rt->jit != NULL ? e->rt->jit->tuned : NULL;
    const dc_tuned *known =
        store != NULL ? dc_tuned_find(store->newest, dc_tuned_key(k->nest)) : NULL;
    if (known == NULL || known->kind != DC_TUNED_MOVES || known->nmove != k->nmove ||
        known->best_ns == 0)
        return 0;
    for (uint32_t m = 0; m < k->nmove; m++)
        if (strcmp(known->move[m], k->move[m]) != 0)
            return 0;
    return (double)known->rules_ns / (double)known->best_ns;
}

/*
 * Does the launch have much to do, and fewer work items than there are threads? Other launches of its bundle run beside it;
 * `first`: the first of the bundle, or itself; n of them.
 */
static bool is_idle(const dc_exec *e, uint32_t first, uint32_t n, uint32_t i)
{
    const int64_t flops = e->fact[i].flops;
    int64_t items = 0;
    for (uint32_t k = first; k < first + n; k++)
        items += e->fact[k].flops >= flops / DC_TUNE_IDLE_SHARE ? e->command[k].grid : 0;
    return flops > DC_TUNE_IDLE_WORK && items < (int64_t)e->rt->device->threads;
}

void dc_exec_kernel_of(const dc_exec *e, uint32_t kernel, dc_exec_kernel *out)
{
    uint32_t first = 0, n = 0; /* of a bundle */
    *out = (dc_exec_kernel){.name = e->kept[kernel].name,
                            .bounded = e->desc.nsize > 0,
                            .gain = gain_of(e, &e->kept[kernel])};
    for (uint32_t i = 0; i < e->ncommand; i++) {
        const dc_command *x = &e->command[i];
        if (i >= first + n) {
            first = i + (x->kind == DC_COMMAND_BUNDLE);
            n = x->kind == DC_COMMAND_BUNDLE ? x->nbody : 1;
        }
        if (x->kind != DC_COMMAND_LAUNCH || strcmp(x->label, out->name) != 0)
            continue;
        if (is_idle(e, first, n, i))
            out->idle = x->grid;
        *(i < e->nprologue ? &out->prologue : &out->launches) += 1;
        out->flops += e->fact[i].flops;
        out->bytes += e->fact[i].bytes;
        add_lines(out, &e->fact[i]);
        if (e->profile.command_ns == NULL)
            continue;
        const uint64_t runs = e->profile.command_runs[i];
        out->calls += runs;
        out->ns += e->profile.command_ns[i];
        out->done_flops += (double)e->fact[i].flops * (double)runs;
        out->done_bytes += (double)e->fact[i].bytes * (double)runs;
    }
}

void dc_exec_measure(dc_exec *e)
{
    if (e->rt->first->measure && e->profile.command_ns != NULL)
        return;
    e->rt->first->measure = true;
    dc_profile_late(e);
}

/* ---- what commands read and write ------------------------------------------------------------ */

/* Nothing for the first byte of a value. */
static void print_offset(size_t offset, dc_text *out)
{
    if (offset > 0)
        dc_text_printf(out, "+%zu", offset);
}

static void print_derived(const dc_exec *e, size_t offset, dc_text *out)
{
    for (uint32_t i = 0; i < e->nderived; i++) {
        const dc_derived_value *d = &e->derived[i];
        if (offset < d->offset || offset >= d->offset + d->bytes)
            continue;
        dc_text_printf(out, "derived %u", i + 1);
        print_offset(offset - d->offset, out);
    }
}

static void print_bind(const dc_exec *e, dc_bind b, dc_text *out)
{
    if (b.slot == DC_SLOT_BLOCK)
        dc_text_puts(out, b.offset < e->block_bytes ? "nothing" : "constants");
    else if (b.slot == DC_SLOT_ARENA)
        dc_text_printf(out, "+%zu", b.offset);
    else if (b.slot == DC_SLOT_DERIVED)
        print_derived(e, b.offset, out);
    else {
        const uint32_t param = b.slot - DC_SLOT_FIRST;
        if (b.slot < dc_slot_result(e, 0) && e->desc.fn->label.at[param] != NULL)
            dc_text_puts(out, e->desc.fn->label.at[param]);
        else if (b.slot < dc_slot_result(e, 0)) /* of a lazy expression */
            dc_text_printf(out, "argument %u", param + 1);
        else
            dc_text_printf(out, "result %u", b.slot - dc_slot_result(e, 0) + 1);
        print_offset(b.offset, out);
    }
}

void dc_exec_print_bind(const dc_exec *e, uint32_t command, uint32_t bind, dc_text *out)
{
    print_bind(e, e->command[command].bind[bind], out);
}

dc_exec_derived dc_exec_derived_of(const dc_exec *e, uint32_t i)
{
    const dc_derived_value *x = &e->derived[i];
    return (dc_exec_derived){x->op, x->type, x->where};
}

bool dc_exec_next_loop(const dc_exec *e, dc_exec_loop *l)
{
    const dc_func *fn = e->desc.fn;
    for (l->ref++; l->ref < fn->node.n; l->ref++) {
        const dc_node *n = dc_node_at(fn, l->ref);
        if (n->op != DC_OP_LOOP)
            continue;
        const dc_loop loop = dc_loop_of(n);
        l->n = loop.n;
        l->may_end = dc_loop_may_end(&loop);
        l->kept = dc_grad_kept(fn, l->ref);
        l->where = n->origin != 0 ? fn->origins.at[n->origin].where : NULL;
        return true;
    }
    return false;
}

const dc_exec_choice *dc_exec_choices(const dc_exec *e, uint32_t *n)
{
    *n = e->info.interpreted ? 0 : e->nchoice;
    return e->choice;
}

const char *dc_exec_denied(const dc_exec *e, uint32_t cell, bool *set)
{
    *set = false;
    for (uint32_t s = 0; s < e->desc.nset; s++)
        *set = *set || e->desc.set[s] == cell;
    return e->denied_why != NULL && !e->info.interpreted ? e->denied_why[cell] : NULL;
}

bool dc_exec_in_part(const dc_exec *e, uint32_t cell)
{
    return e->in_part != NULL && !e->info.interpreted && e->in_part[cell];
}
