/*
 * Calls of instances, whole or in slices (jobs).
 *
 * A call in order: results that are still held are left to their holders, and the memory of the next ones is
 * taken from the pool; tensors that show the old value of a cell get a copy; the addresses of arguments and
 * results go into the slots; the recording runs. Tensors that callers drop before the next call are
 * written again: in the steady state a call allocates neither memory of the device nor of the host.
 *
 * From its start to its end a call has the cells that it sets for itself (dc_cell.job). A job also
 * holds a handle on each argument and each other cell, and binds them anew before every slice:
 * a call that overwrites such storage meanwhile moves the handle's content away first, as for any
 * other holder.
 */
#include "core/base/spans.h"
#include "jit/exec/derived_values.h"
#include "jit/exec/exec.h"
#include "jit/exec/finite_check.h"
#include "jit/exec/interpret.h"
#include "jit/exec/profile.h"
#include "jit/exec/red_zone.h"
#include "jit/exec/temp_arena.h"

#include <stdio.h>
#include <string.h>

/* ---- before a call --------------------------------------------------------------------------- */

static dc_status refuse_call(const dc_inst *i, dc_job *j)
{
    static const char *const why[] = {[DC_INST_BUSY] = "a call of it is still running",
                                      [DC_INST_PAUSED] = "a job of it has not ended",
                                      [DC_INST_DONE] =
                                          "the results of its last job have not been taken"};
    const dc_exec *e = i->exec;
    if (i->state != DC_INST_FREE)
        return dc_failf(j, DC_ERR_REENTER, e->desc.name, "%s", why[i->state]);
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        DC_TRY(dc_cell_refuse(i->cell[c], j, e->desc.name, e->cell_read[c]));
    return DC_OK;
}

/* Cells that are read or set have a value, laid out as the executable wants it. */
static dc_status settle_cells(const dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    /* The call reads nothing then, so what a parameter begins with may stay uncomputed. */
    if (i->rt->first->check)
        return DC_OK;
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        if (e->cell_read[c])
            DC_TRY(dc_cell_settle(i->cell[c], j));
    for (uint32_t s = 0; s < e->desc.nset; s++) /* which keep their values if the call fails */
        DC_TRY(dc_cell_settle(i->cell[e->desc.set[s]], j));
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        DC_TRY(dc_cell_relayout(i->cell[c], j, dc_exec_layout(e, c)));
    return DC_OK;
}

static dc_status ready(const dc_inst *i, dc_job *j)
{
    DC_TRY(dc_rt_check(i->rt, j, i->exec->desc.name));
    DC_TRY(refuse_call(i, j));
    return settle_cells(i, j);
}

static void lock_cells(dc_inst *i, bool locked)
{
    const dc_exec *e = i->exec;
    if (i->locked != locked)
        for (uint32_t s = 0; s < e->desc.nset; s++)
            i->cell[e->desc.set[s]]->job = locked ? e->desc.name : NULL;
    i->locked = locked;
}

/* It is held by more than the instance, or other tensors show its memory. */
static bool is_held(const dc_tensor *t)
{
    return t->refs > 1 || t->next != NULL || t->prev != NULL;
}

/* What holders see stays as it is, also where the call fails. */
static dc_status take_results(dc_inst *i, dc_job *j)
{
    for (uint32_t r = 0; r < i->exec->desc.nresult; r++) {
        if (i->result[r] != NULL && is_held(i->result[r]))
            dc_inst_leave_result(i, r);
        if (i->result[r] == NULL)
            DC_TRY(dc_inst_new_result(i, j, r));
    }
    return DC_OK;
}

static dc_status evict_holders(dc_inst *i, dc_job *j)
{
    const dc_exec *e = i->exec;
    for (uint32_t s = 0; s < e->desc.nset; s++)
        DC_TRY(dc_storage_evict(i->cell[e->desc.set[s]]->store, j));
    return DC_OK;
}

/* After the evictions, which may have moved an argument. */
static dc_status bind_arguments(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    bool numbers = false;
    i->slot[DC_SLOT_BLOCK] = i->block->mem;
    for (uint32_t p = 0; p < e->desc.nfree; p++) {
        if (arg[p].tensor != NULL) {
            DC_TRY(dc_outcome_settle(arg[p].tensor->store, j));
            i->slot[dc_slot_free(p)] = dc_tensor_mem(arg[p].tensor);
            continue;
        }
        DC_ASSERT(e->param[p].rank == 0, "argument %u of '%s' has no tensor", p, e->desc.name);
        dc_bits_store((dc_dtype)e->param[p].dtype, (char *)i->staging + e->block_at[p],
                      arg[p].bits);
        i->slot[dc_slot_free(p)] = (char *)i->block->mem + e->block_at[p];
        numbers = true;
    }
    if (!numbers || (d->ops->takes_block && !e->info.interpreted))
        return DC_OK;
    return d->ops->upload(d, j, i->block->mem, i->staging, e->block_bytes);
}

static dc_status bind_arena(dc_inst *i, dc_job *j)
{
    const size_t own = dc_align_up(i->exec->info.arena_bytes, DC_PLAN_ALIGN);
    const size_t bytes = own + dc_derived_in_arena(i);
    i->slot[DC_SLOT_ARENA] = i->block->mem; /* an address even where nothing is kept */
    i->slot[DC_SLOT_DERIVED] = i->derived != NULL ? i->derived->mem : i->block->mem;
    if (bytes == 0)
        return DC_OK;
    DC_TRY(dc_temp_arena_take(i->rt, j, bytes, &i->slot[DC_SLOT_ARENA], &i->own_arena));
    i->has_arena = true;
    if (bytes > own)
        i->slot[DC_SLOT_DERIVED] = (char *)i->slot[DC_SLOT_ARENA] + own;
    return DC_OK;
}

static dc_status bind(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    DC_TRY(dc_inst_short(i, j, take_results(i, j)));
    DC_TRY(evict_holders(i, j));
    DC_TRY(bind_arguments(i, j, arg));
    DC_TRY(dc_inst_short(i, j, bind_arena(i, j)));
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        i->slot[dc_slot_cell(e, c)] = i->cell[c]->store->mem;
    for (uint32_t r = 0; r < e->desc.nresult; r++)
        i->slot[dc_slot_result(e, r)] = dc_tensor_mem(i->result[r]);
    return DC_OK;
}

static bool is_set(const dc_exec *e, uint32_t cell)
{
    for (uint32_t s = 0; s < e->desc.nset; s++)
        if (e->desc.set[s] == cell)
            return true;
    return false;
}

/* So that they have their values for as long as the job lasts. */
static void hold(dc_inst *i, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    if (i->held == NULL)
        i->held = DC_NEW_ARRAY(&i->mem, dc_tensor *, dc_slot_count(e));
    for (uint32_t p = 0; p < e->desc.nfree; p++)
        if (arg[p].tensor != NULL)
            i->held[dc_slot_free(p)] =
                dc_tensor_retain((dc_tensor *)(uintptr_t)arg[p].tensor); /* only its count */
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        if (!is_set(e, c))
            i->held[dc_slot_cell(e, c)] = dc_cell_show(i->cell[c]);
}

static void bind_held(dc_inst *i)
{
    for (uint32_t s = DC_SLOT_FIRST; s < dc_slot_count(i->exec); s++)
        if (i->held[s] != NULL)
            i->slot[s] = dc_tensor_mem(i->held[s]);
}

/* ---- running --------------------------------------------------------------------------------- */

/* A run stopped at a command, a check; what it read and what stood beside it are from the device. */
static dc_fault fault_of(const dc_exec *e, uint32_t command, int64_t value, uint64_t bits)
{
    const uint32_t check = e->fact[command].check;
    return (dc_fault){(int32_t)check, value, dc_interpret_value(e, check, &bits)};
}

static bool is_over(const dc_inst *i, uint64_t deadline)
{
    return (deadline != 0 && dc_clock_ns() >= deadline) ||
           (i->stop != NULL && atomic_load(i->stop));
}

/* Goes on with recording i->at. Then i->next is 0, or it pauses. */
static dc_status run_recording(dc_inst *i, dc_job *j, uint64_t deadline, dc_fault *fault)
{
    const uint32_t first = i->recorded[i->at];
    dc_device *d = i->rt->device;
    dc_run_watch watch;
    dc_run_info *info = &i->run; /* to be looked at when the run unwinds */
    *info = (dc_run_info){.fault_command = -1,
                          .watch = dc_profile_watch(i->exec, first, &watch),
                          .deadline_ns = deadline,
                          .stop = i->stop,
                          .halt = i->endable ? &i->halt : NULL,
                          .block = i->staging,
                          .block_bytes = i->exec->block_bytes,
                          .moves = i->moves,
                          .later = i->later,
                          .begun = i->begun,
                          .next = i->next};
    i->halt.whole = i->exec->untouched > first ? i->exec->untouched - first : 0;
    const dc_run_info before = *info;
    dc_status status = d->ops->run(d, j, i->recording[i->at], i->slot, info);
    if (!info->begun && dc_inst_make_room(i, j, status)) {
        *info = before;
        status = d->ops->run(d, j, i->recording[i->at], i->slot, info);
    }
    info->watch = NULL;
    status = dc_inst_short(i, j, status);
    i->next = info->next;
    i->begun = info->begun;
    i->rt->first->stats.denormals += info->denormals;
    if (status == DC_OK && info->ticket != 0) {
        i->ticket = info->ticket;
        i->ticket_first = first;
    }
    if (status == DC_OK && info->fault_command >= 0)
        *fault = fault_of(i->exec, first + (uint32_t)info->fault_command, info->fault_value,
                          info->fault_bits);
    return status;
}

static dc_status fill_guards(dc_inst *i, dc_job *j)
{
    for (uint32_t n = i->recorded[i->at]; n < i->recorded[i->at + 1]; n++)
        DC_TRY(dc_red_zone_fill(i, j, i->slot[DC_SLOT_ARENA], n));
    return DC_OK;
}

static dc_status check_guards(dc_inst *i, dc_job *j)
{
    for (uint32_t n = i->recorded[i->at]; n < i->recorded[i->at + 1]; n++)
        DC_TRY(dc_red_zone_check(i, j, i->slot[DC_SLOT_ARENA], n));
    return DC_OK;
}

/* One recording after the other: *done, a fault, or the deadline. */
static dc_status run_all(dc_inst *i, dc_job *j, uint64_t deadline, bool *done, dc_fault *fault)
{
    const bool guarded = i->exec->guard > 0;
    const bool later = i->later;
    while (i->at < i->nrecording && fault->check < 0) {
        i->later = later && i->at + 1 == i->nrecording;
        if (guarded && i->next == 0)
            DC_TRY(fill_guards(i, j));
        DC_TRY(run_recording(i, j, deadline, fault));
        if (i->next != 0)
            return DC_OK;
        if (guarded)
            DC_TRY(check_guards(i, j));
        i->at++;
        if (i->at == i->body && dc_derived_any(i))
            dc_derived_done(i);
        if (i->at < i->nrecording && is_over(i, deadline))
            return DC_OK;
    }
    *done = true;
    return DC_OK;
}

static void mark_cells(dc_inst *i, bool torn)
{
    const dc_exec *e = i->exec;
    for (uint32_t s = 0; s < e->desc.nset; s++)
        dc_cell_written(i->cell[e->desc.set[s]], torn);
}

/* The device has not failed in anything that the call began; or it will in all that follows, if it answers later. */
static dc_status finish_device(dc_inst *i, dc_job *j)
{
    dc_device *d = i->rt->device;
    if (d->ops->finish == NULL || d->ops->answer != NULL || i->exec->desc.nset == 0)
        return DC_OK;
    return d->ops->finish(d, j);
}

static dc_status execute(dc_inst *i, dc_job *j, uint64_t deadline, bool *done, dc_fault *fault)
{
    dc_comparison *beside = NULL;
    void **before = NULL; /* where numbers are checked */
    if (i->exec->compare)
        DC_TRY(dc_interpret_begin(i, j, &beside));
    if (dc_finite_wanted(i))
        DC_TRY(dc_finite_begin(i, j, &before));
    if (beside != NULL || before != NULL) {
        deadline = 0; /* its memory is that of this slice */
        i->later = false;
        i->stop = NULL;
        i->endable = false;
    }
    i->running = true;
    i->run.begun = false;
    dc_status status = run_all(i, j, deadline, done, fault);
    if (status == DC_OK && *done && fault->check < 0)
        status = finish_device(i, j);
    i->running = false;
    if (status != DC_OK) { /* a device that fails does not say where */
        dc_derived_forget(i);
        if (i->begun && (j->err.id != DC_ERR_INTERRUPTED || i->halt.torn))
            mark_cells(i, true);
        return status;
    }
    if (*done && fault->check < 0)
        mark_cells(i, false);
    if (beside != NULL) {
        lock_cells(i, false); /* the log sink may read them */
        DC_TRY(dc_interpret_compare(i, j, beside, fault));
    }
    if (fault->check >= 0)
        return DC_E_VALUE;
    if (before != NULL)
        DC_TRY(dc_finite_check(i, j, before));
    if (*done)
        i->rt->first->stats.launches += i->exec->info.launches;
    return DC_OK;
}

/* Of a script that is only checked. */
static dc_status give_zeros(dc_inst *i)
{
    const dc_exec *e = i->exec;
    DC_ASSERT(i->rt->device->ops->host, "a device computes nothing");
    for (uint32_t r = 0; r < e->desc.nresult; r++)
        if (dc_type_bytes(&e->result[r]) > 0)
            memset(dc_tensor_mem(i->result[r]), 0, dc_type_bytes(&e->result[r]));
    i->rt->first->check_unknown = true;
    return DC_OK;
}

static dc_status interpret(dc_inst *i, dc_job *j, dc_fault *fault)
{
    void **result;
    if (i->rt->first->check)
        return give_zeros(i);
    i->rt->first->stats.interpreted++;
    const uint64_t begun = dc_span_begin(j->log);
    DC_TRY(dc_interpret_run(i, j, &result));
    dc_span_end(j->log, begun, DC_SPAN_EVAL, i->exec->desc.name);
    dc_interpret_fault(i->exec, result, fault);
    if (fault->check >= 0)
        return DC_E_VALUE;
    if (dc_finite_wanted(i))
        DC_TRY(dc_finite_check_host(i, j, result));
    i->running = i->begun = true;
    const dc_status status = dc_interpret_store(i, j, result);
    i->running = false;
    mark_cells(i, status != DC_OK);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static dc_status begin(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    j->about = i->exec;
    DC_TRY(dc_inst_prepare(i, j));
    i->calls++;
    i->rt->first->stats.calls++;
    i->at = dc_derived_begin(i, j, arg) ? 0 : i->body;
    i->next = 0;
    i->begun = false;
    lock_cells(i, true);
    return bind(i, j, arg);
}

static dc_status advance(dc_inst *i, dc_job *j, uint64_t deadline, bool *done, dc_fault *fault)
{
    j->about = i->exec;
    if (!i->exec->info.interpreted)
        DC_TRY(execute(i, j, deadline, done, fault));
    else {
        DC_TRY(interpret(i, j, fault));
        *done = true;
    }
    return *done ? dc_storage_guards(i->rt, j, i->exec->desc.name) : DC_OK;
}

/* Everything that is not the instance's own goes back. */
static void end_call(dc_inst *i, dc_inst_state state)
{
    if (i->has_arena)
        dc_temp_arena_give(i->rt, i->own_arena);
    i->has_arena = false;
    i->own_arena = NULL;
    i->stop = NULL;
    i->endable = false;
    lock_cells(i, false);
    for (uint32_t s = 0; i->held != NULL && s < dc_slot_count(i->exec); s++) {
        dc_tensor_release(i->held[s]);
        i->held[s] = NULL;
    }
    i->state = state;
}

/* A call that unwinds. */
static void drop_call(void *what)
{
    dc_inst *i = what;
    if (i->running && (i->begun || i->run.begun))
        mark_cells(i, true);
    i->running = false;
    end_call(i, DC_INST_FREE);
}

/* Where a paused run stands, among the commands of the executable. */
static uint32_t stands_at(const dc_inst *i)
{
    return i->nrecording > 0 && i->at < i->nrecording ? i->recorded[i->at] + i->next : 0;
}

/* What ends a launch in the middle: `asked`, or a deadline of the host. */
static void make_endable(dc_inst *i, const atomic_bool *asked)
{
    dc_halt *h = &i->halt;
    h->asked = asked;
    h->insist = &i->rt->first->insist;
    i->endable = true;
    if (atomic_load_explicit(&h->until, memory_order_relaxed) == 0 &&
        !atomic_load_explicit(&h->cut, memory_order_relaxed))
        return; /* as the call before left it, or the first one */
    atomic_store(&h->until, 0);
    atomic_store(&h->cut, false);
    atomic_store(&h->torn, false);
}

/*
 * One that pauses has been interrupted. Where it has written a cell it goes on to its end, unless the request insists:
 * then it has a little time left, and its cells are half written if that is not enough.
 */
static dc_status run_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_fault *fault)
{
    bool done = false;
    uint64_t deadline = 0;
    if (dc_job_cancelled(j))
        return dc_fail(j, DC_ERR_INTERRUPTED, NULL);
    DC_TRY(begin(i, j, arg));
    i->stop = &i->rt->first->interrupt;
    make_endable(i, &i->rt->first->interrupt);
    for (;;) {
        DC_TRY(advance(i, j, deadline, &done, fault));
        if (done)
            return DC_OK;
        if (stands_at(i) <= i->exec->untouched)
            return dc_fail(j, DC_ERR_INTERRUPTED, NULL);
        if (deadline != 0) {
            mark_cells(i, true);
            return dc_fail(j, DC_ERR_INTERRUPTED, NULL);
        }
        i->stop = atomic_load(&i->rt->first->insist) ? NULL : &i->rt->first->insist;
        deadline = i->stop == NULL ? dc_halt_until(&i->halt) : 0;
    }
}

static void drop_exec(void *e)
{
    dc_exec_release(e);
}

/* The outcome of the call, where it is not known. */
static dc_outcome *make_outcome(dc_inst *i)
{
    if (i->ticket == 0)
        return NULL;
    return dc_outcome_new(i->rt, i->ticket, i->exec->desc.name, i->late, dc_exec_retain(i->exec),
                          drop_exec);
}

static void give_results(dc_inst *i, dc_tensor **out)
{
    dc_outcome *o = make_outcome(i);
    if (o != NULL)
        o->first = i->ticket_first;
    for (uint32_t r = 0; r < i->exec->desc.nresult; r++) {
        out[r] = dc_tensor_retain(i->result[r]);
        if (o != NULL || out[r]->store->outcome != NULL)
            dc_outcome_attach(o, out[r]->store);
    }
}

void dc_inst_tell_late(dc_inst *i, void *owner)
{
    i->late = owner;
}

void dc_inst_late_fault(const dc_outcome *o, dc_fault *fault)
{
    *fault = fault_of(o->about, o->first + (uint32_t)o->command, o->value, o->bits);
}

dc_status dc_inst_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_tensor **out, dc_fault *fault)
{
    dc_exec *e = i->exec;
    *fault = (dc_fault){.check = -1};
    DC_TRY(ready(i, j));
    i->ticket = 0;
    i->later = i->late != NULL && i->rt->device->answers_later;
    if (i->later)
        dc_outcomes_room(i->rt);
    const bool timed = dc_profile_on(e);
    const uint64_t start = timed ? dc_clock_ns() : 0;
    const dc_mark mark = dc_arena_mark(&j->scratch);

    i->state = DC_INST_BUSY;
    dc_job_defer(j, drop_call, i);
    dc_status status = run_call(i, j, arg, fault);
    if (status != DC_OK && j->err.id == DC_ERR_INTERRUPTED)
        status = dc_rt_interrupted(i->rt, j, e->desc.name);
    dc_job_keep(j, i);
    end_call(i, DC_INST_FREE);
    dc_arena_rewind(&j->scratch, mark);

    if (timed) {
        dc_profile_call(e, dc_clock_ns() - start);
    }
    if (status == DC_OK)
        give_results(i, out);
    return status;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static dc_status start_job(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    DC_TRY(begin(i, j, arg));
    hold(i, arg);
    return DC_OK;
}

dc_status dc_inst_start(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    DC_TRY(ready(i, j));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    i->state = DC_INST_BUSY;
    i->spent_ns = 0;
    dc_job_defer(j, drop_call, i);
    const dc_status status = start_job(i, j, arg);
    dc_job_keep(j, i);
    dc_arena_rewind(&j->scratch, mark);
    if (status == DC_OK)
        i->state = DC_INST_PAUSED;
    else
        end_call(i, DC_INST_FREE);
    return status;
}

static uint64_t deadline_of(uint64_t start, uint64_t budget_ns)
{
    return budget_ns > UINT64_MAX - start ? 0 : start + budget_ns;
}

static void count_time(dc_inst *i, uint64_t start, bool ended)
{
    i->spent_ns += dc_clock_ns() - start;
    if (!ended || !dc_profile_on(i->exec))
        return;
    dc_profile_call(i->exec, i->spent_ns);
}

static void tell_slice(const dc_inst *i, const dc_job *j, uint64_t start)
{
    char text[96];
    snprintf(text, sizeof text, "%s, a slice", i->exec->desc.name);
    dc_span_end(j->log, start, DC_SPAN_CALL, text);
}

dc_status dc_inst_poll(dc_inst *i, dc_job *j, uint64_t budget_ns, bool *done, dc_fault *fault)
{
    const uint64_t start = dc_clock_ns();
    *fault = (dc_fault){.check = -1};
    *done = i->state == DC_INST_DONE;
    if (*done)
        return DC_OK;
    DC_TRY(dc_rt_check(i->rt, j, i->exec->desc.name));
    if (i->state != DC_INST_PAUSED)
        return dc_failf(j, DC_ERR_REENTER, i->exec->desc.name, "%s",
                        i->state == DC_INST_FREE ? "no job of it has been started"
                                                 : "a slice of it is still running");
    const dc_mark mark = dc_arena_mark(&j->scratch);
    j->about = i->exec;
    i->state = DC_INST_BUSY;
    dc_job_defer(j, drop_call, i);
    bind_held(i);
    i->later = false;
    i->ticket = 0;
    i->stop =
        &i->rt->first->insist; /* a job that pauses goes on: only a request that insists ends it */
    make_endable(i, &i->rt->first->insist);
    const dc_status status = advance(i, j, deadline_of(start, budget_ns), done, fault);
    tell_slice(i, j, start);
    i->stop = NULL;
    i->endable = false;
    dc_job_keep(j, i);
    dc_arena_rewind(&j->scratch, mark);
    count_time(i, start, status != DC_OK || *done);
    if (status != DC_OK)
        end_call(i, DC_INST_FREE);
    else if (*done)
        end_call(i, DC_INST_DONE);
    else
        i->state = DC_INST_PAUSED;
    return status;
}

dc_status dc_inst_take(dc_inst *i, dc_job *j, dc_tensor **out)
{
    if (i->state != DC_INST_DONE)
        return dc_failf(j, DC_ERR_REENTER, i->exec->desc.name, "no job of it has ended");
    give_results(i, out);
    i->state = DC_INST_FREE;
    return DC_OK;
}

void dc_inst_cancel(dc_inst *i)
{
    DC_ASSERT(i->state != DC_INST_BUSY, "'%s' is dropped by what it calls", i->exec->desc.name);
    if (i->state == DC_INST_PAUSED && stands_at(i) > i->exec->untouched)
        mark_cells(i, true);
    if (i->state == DC_INST_PAUSED && dc_profile_on(i->exec))
        i->exec->profile.call_ns += i->spent_ns; /* its commands have been counted */
    end_call(i, DC_INST_FREE);
}
