/*
 * Runs of recordings. Where it can, a run is one launch of the recording's graph, and nobody waits: at most AHEAD runs
 * are under way. Else the commands are launched one after the other.
 */
#include "backends/cuda/cu_impl.h"
#include "core/host/host_step.h"
#include "core/runtime/walk.h"

#include <stdio.h>
#include <string.h>

typedef struct run {
    dc_recording *r;
    dc_job *j;
    void *const *slot;
    dc_halt *halt;             /* NULL: it is not ended early */
    const dc_run_watch *watch; /* NULL: nobody hears of it */
    bool wait;                 /* for each command before the next */
    bool begun;                /* the stream has taken a command */
} run;

static cu_address address_of(const run *c, uint32_t step, uint32_t bind)
{
    const dc_bind *x = &dc_walk_binds(c->r->walk, step)[bind];
    return dc_cu_at((const char *)c->slot[x->slot] + dc_walk_offset(c->r->walk, step, bind));
}

/* In the middle: where memory is short, another attempt would be none of the same call. */
static dc_status failed_begun(const run *c, const char *what, cu_result error)
{
    if (error == CU_ERROR_OUT_OF_MEMORY)
        return dc_failf(c->j, DC_ERR_DEVICE, "cuda", "%s: CUDA_ERROR_OUT_OF_MEMORY", what);
    return dc_cu_failed(c->r->cu, c->j, what, error);
}

/* "a run, at kernel 'k'" */
static dc_status failed(const run *c, uint32_t step, cu_result error)
{
    char what[120];
    const dc_cu_step *s = &c->r->step[step];
    snprintf(what, sizeof what,
             s->kind == DC_COMMAND_LAUNCH ? "a run, at kernel '%.70s'" : "a run, at a %.70s",
             s->label);
    return c->begun ? failed_begun(c, what, error) : dc_cu_failed(c->r->cu, c->j, what, error);
}

/* --- one command after the other -------------------------------------------------------------- */

static dc_status end_clock(run *c, uint32_t step)
{
    const dc_cu_api *fn = &c->r->cu->lib.fn;
    float ms = 0;
    DC_TRY(dc_cu_nccl_settle(c->r->cu, c->j));
    cu_result error = fn->EventRecord(c->r->cu->clock[1], c->r->cu->stream);
    if (error == CU_SUCCESS)
        error = fn->EventSynchronize(c->r->cu->clock[1]);
    if (error == CU_SUCCESS)
        error = fn->EventElapsedTime(&ms, c->r->cu->clock[0], c->r->cu->clock[1]);
    if (error != CU_SUCCESS)
        return failed(c, step, error);
    const uint64_t now = dc_clock_ns(), ns = ms > 0 && ms < 1e9f ? (uint64_t)((double)ms * 1e6) : 0;
    dc_run_tell(c->watch, step, false, now - ns, now);
    return DC_OK;
}

/* Before and after a command is given to the stream. */
static dc_status before(run *c, uint32_t step)
{
    dc_cu *cu = c->r->cu;
    if (c->halt != NULL && dc_halt_now(c->halt, step))
        return dc_fail(c->j, DC_ERR_INTERRUPTED, NULL);
    if (c->watch != NULL)
        DC_CU_TRY(cu, c->j, "a clock", EventRecord(cu->clock[0], cu->stream));
    cu->busy = true;
    return DC_OK;
}

static dc_status after(run *c, uint32_t step, cu_result error)
{
    dc_cu *cu = c->r->cu;
    if (error != CU_SUCCESS)
        return failed(c, step, error);
    c->begun = true;
    if (c->watch != NULL)
        return end_clock(c, step);
    if (!c->wait)
        return DC_OK;
    DC_TRY(dc_cu_nccl_settle(cu, c->j));
    DC_CU_CALL(cu, error, StreamSynchronize(cu->stream));
    return error == CU_SUCCESS ? DC_OK : failed(c, step, error);
}

static dc_status run_launch(void *ctx, uint32_t step)
{
    run *c = ctx;
    const dc_cu_step *s = &c->r->step[step];
    const dc_mark mark = dc_arena_mark(&c->j->scratch);
    if (s->grid == 0)
        return DC_OK;
    uint64_t *value = DC_NEW_ARRAY(&c->j->scratch, uint64_t, s->nbind + 2);
    void **argument = DC_NEW_ARRAY(&c->j->scratch, void *, s->nbind + 2);
    for (uint32_t b = 0; b < s->nbind; b++)
        value[2 + b] = address_of(c, step, b);
    for (uint32_t n = 0; n < s->nbind + 2; n++)
        argument[n] = &value[n];
    DC_TRY(before(c, step));
    cu_result error;
    DC_CU_CALL(c->r->cu, error,
               LaunchKernel(s->fn, s->grid, 1, 1, s->threads, 1, 1, s->shared, c->r->cu->stream,
                            argument, NULL));
    dc_arena_rewind(&c->j->scratch, mark);
    return after(c, step, error);
}

static dc_status run_copy(void *ctx, uint32_t step)
{
    run *c = ctx;
    const size_t bytes = c->r->step[step].bytes;
    const cu_address to = address_of(c, step, 0), from = address_of(c, step, 1);
    if (bytes == 0 || to == from)
        return DC_OK;
    DC_TRY(before(c, step));
    cu_result error;
    DC_CU_CALL(c->r->cu, error, MemcpyDtoDAsync(to, from, bytes, c->r->cu->stream));
    return after(c, step, error);
}

/* Waits for all that was given before. */
static dc_status read_back(run *c, uint32_t step, uint32_t bind, void *out, size_t bytes)
{
    dc_cu *cu = c->r->cu;
    DC_TRY(before(c, step));
    const cu_address at = address_of(c, step, bind);
    DC_TRY(dc_cu_nccl_settle(cu, c->j));
    cu_result error;
    DC_CU_CALL(cu, error, MemcpyDtoHAsync(out, at, bytes, cu->stream));
    if (error == CU_SUCCESS)
        DC_CU_CALL(cu, error, StreamSynchronize(cu->stream));
    return after(c, step, error);
}

/* What ranks exchange goes from device to device, where it can. */
static dc_status run_direct(run *c, uint32_t step, bool *direct)
{
    const dc_host_step *s = c->r->step[step].host;
    *direct = false;
    if (c->j->world == NULL || !dc_world_is_direct(c->j->world) ||
        !dc_op_is(s->call.op, DC_CLASS_COM) || dc_op_is_message(s->call.op))
        return DC_OK;
    DC_TRY(before(c, step));
    DC_TRY(dc_cu_exchange(c->r->cu, c->j, &s->call, address_of(c, step, 0), address_of(c, step, 1),
                          direct));
    return *direct ? after(c, step, CU_SUCCESS) : DC_OK;
}

/* Operands come to the host, the result goes back. */
static dc_status operate(run *c, uint32_t step)
{
    const dc_host_step *s = c->r->step[step].host;
    for (int i = 1; i <= s->call.nin; i++)
        if (s->bytes[i] > 0)
            DC_TRY(read_back(c, step, (uint32_t)i, s->place[i], s->bytes[i]));
    dc_halt_at here = {c->halt, step};
    const dc_look look = dc_halt_look(&here);
    DC_TRY(dc_host_step_run(s, c->j, &look, s->place, s->work, 0, s->rows));
    if (dc_look_ends(&look))
        return dc_fail(c->j, DC_ERR_INTERRUPTED, NULL);
    if (s->bytes[0] == 0)
        return DC_OK;
    DC_TRY(before(c, step));
    DC_TRY(dc_cu_send(c->r->cu, c->j, address_of(c, step, 0), s->place[0], s->bytes[0]));
    return after(c, step, CU_SUCCESS);
}

static dc_status run_host(void *ctx, uint32_t step)
{
    run *c = ctx;
    bool direct;
    DC_TRY(run_direct(c, step, &direct));
    if (direct)
        return DC_OK;
    const dc_status status = operate(c, step);
    if (status != DC_OK && c->j->world != NULL)
        dc_world_set_voted(c->j->world, false);
    return status;
}

static dc_status run_check(void *ctx, uint32_t step, int32_t *out, uint64_t *bits)
{
    run *c = ctx;
    const size_t bytes = c->r->step[step].nbind > 1 ? c->r->step[step].bytes : 0;
    DC_TRY(read_back(c, step, 0, out, sizeof *out));
    return *out >= 0 && bytes > 0 ? read_back(c, step, 1, bits, bytes) : DC_OK;
}

static dc_status run_test(void *ctx, uint32_t step, bool *out)
{
    uint8_t byte = 0;
    DC_TRY(read_back(ctx, step, 0, &byte, sizeof byte));
    *out = byte != 0;
    return DC_OK;
}

static dc_status run_limit(void *ctx, uint32_t step, int32_t *out)
{
    return read_back(ctx, step, 2, out, sizeof *out);
}

static dc_status run_count(void *ctx, uint32_t step, int32_t element)
{
    run *c = ctx;
    DC_TRY(before(c, step));
    cu_result error;
    DC_CU_CALL(c->r->cu, error,
               MemsetD32Async(address_of(c, step, 1), (unsigned)element, 1, c->r->cu->stream));
    return after(c, step, error);
}

static dc_status make_clock(dc_cu *cu, dc_job *j)
{
    for (int i = 0; i < 2; i++)
        if (cu->clock[i] == NULL)
            DC_CU_TRY(cu, j, "a clock", EventCreate(&cu->clock[i], 0));
    return DC_OK;
}

static dc_status run_steps(run *c, dc_run_info *info)
{
    static const dc_walk_ops ops = {.launch = run_launch,
                                    .copy = run_copy,
                                    .check = run_check,
                                    .test = run_test,
                                    .count = run_count,
                                    .limit = run_limit,
                                    .host = run_host};
    dc_cu *cu = c->r->cu;
    dc_run_info own;
    if (info == NULL)
        return dc_walk_run(c->r->walk, c->j, &ops, c, NULL);
    c->halt = info->halt;
    c->watch = info->watch;
    c->wait = cu->launch == DC_CU_WAIT || info->deadline_ns != 0;
    if (c->watch != NULL)
        DC_TRY(make_clock(cu, c->j));
    if (info->next == 0 && info->block != NULL && info->block_bytes > 0)
        DC_TRY(dc_cu_send(cu, c->j, dc_cu_at(c->slot[0]), info->block, info->block_bytes));
    own = *info;
    own.watch = NULL;
    const dc_status status = dc_walk_run(c->r->walk, c->j, &ops, c, &own);
    info->fault_command = own.fault_command;
    info->fault_value = own.fault_value;
    info->fault_bits = own.fault_bits;
    info->begun |= c->begun;
    info->next = own.next;
    return status;
}

/* --- a graph ------------------------------------------------------------------------------------ */

static bool is_graph(const run *c, const dc_run_info *info)
{
    return info != NULL && c->r->straight && c->r->cu->launch == DC_CU_GRAPH && info->next == 0 &&
           info->watch == NULL && info->deadline_ns == 0;
}

/* What kernels find in the device's memory: words, then the argument block, to which those of its numbers point. */
static void fill_words(const run *c, const dc_run_info *info)
{
    dc_recording *r = c->r;
    const dc_cu *cu = r->cu;
    const size_t block_at = r->sent_bytes - r->block_bytes;
    const uintptr_t block = (uintptr_t)c->slot[0];
    uint64_t *word = (uint64_t *)(void *)r->send;
    if (r->checks > 0)
        word[0] = dc_cu_at(&cu->verdict[cu->runs % DC_CU_AHEAD]);
    for (uint32_t w = r->checks > 0; w < r->nword; w++) {
        const uintptr_t at = (uintptr_t)c->slot[r->word[w].slot] + r->word[w].offset;
        const uintptr_t in = at - block;
        word[w] = in < r->block_bytes ? r->mem + block_at + in : at;
    }
    if (r->block_bytes > 0)
        memcpy(r->send + block_at, info->block, r->block_bytes);
}

static dc_status send_words(const run *c)
{
    dc_recording *r = c->r;
    if (r->sent_bytes == 0 || (r->any_sent && memcmp(r->send, r->sent, r->sent_bytes) == 0))
        return DC_OK;
    DC_TRY(dc_cu_send(r->cu, c->j, r->mem, r->send, r->sent_bytes));
    memcpy(r->sent, r->send, r->sent_bytes);
    r->any_sent = true;
    return DC_OK;
}

static void tell(const dc_cu_verdict *v, dc_run_info *info)
{
    info->fault_command = (int32_t)v->command - 1;
    info->fault_value = v->position;
    info->fault_bits = v->bits[0] | (uint64_t)v->bits[1] << 32;
}

/* The place of the run that comes, when the one that had it is over. */
static dc_status take_place(dc_cu *cu, dc_job *j)
{
    const uint32_t at = (uint32_t)(cu->runs % DC_CU_AHEAD);
    if (cu->runs < DC_CU_AHEAD)
        return DC_OK;
    DC_ROOM(cu->found);
    cu_result error = cu->lib.fn.EventQuery(cu->done[at]);
    if (error == CU_ERROR_NOT_READY)
        DC_TRY(dc_cu_nccl_settle(cu, j));
    if (error == CU_ERROR_NOT_READY)
        error = cu->lib.fn.EventSynchronize(cu->done[at]);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "a run", error);
    if (cu->verdict[at].command != 0)
        DC_PUSH(cu->found, ((dc_cu_found){cu->runs - DC_CU_AHEAD + 1, cu->verdict[at]}));
    return DC_OK;
}

static dc_status failed_graph(const run *c, cu_result error)
{
    const dc_recording *r = c->r;
    char what[120];
    snprintf(what, sizeof what, "a run of %u commands, '%.70s' first", r->nstep, r->step[0].label);
    return dc_cu_failed(r->cu, c->j, what, error);
}

static dc_status launch_graph(run *c, dc_run_info *info)
{
    dc_recording *r = c->r;
    dc_cu *cu = r->cu;
    const uint32_t at = (uint32_t)(cu->runs % DC_CU_AHEAD);
    info->fault_command = -1;
    info->fault_value = -1;
    info->fault_bits = 0;
    info->ticket = 0;
    info->next = 0;
    if (info->halt != NULL && dc_halt_now(info->halt, 0))
        return dc_fail(c->j, DC_ERR_INTERRUPTED, NULL);
    if (!dc_cu_graph_fits(r, c->slot, info->block_bytes))
        DC_TRY(dc_cu_graph_build(r, c->j, c->slot, info->moves, info->block_bytes));
    DC_TRY(take_place(cu, c->j));
    cu->verdict[at] = (dc_cu_verdict){0};
    fill_words(c, info);
    DC_TRY(send_words(c));
    cu_result error;
    DC_CU_CALL(cu, error, GraphLaunch(r->exec, cu->stream));
    if (error != CU_SUCCESS)
        return failed_graph(c, error);
    info->begun = true;
    cu->busy = true;
    if (cu->lib.fn.EventRecord(cu->done[at], cu->stream) != CU_SUCCESS) /* then it has to be over */
        DC_CU_CALL(cu, error, StreamSynchronize(cu->stream));
    if (error != CU_SUCCESS)
        return failed_begun(c, "a run", error);
    cu->runs++;
    if (r->checks == 0)
        return DC_OK;
    if (info->later) {
        info->ticket = cu->runs;
        return DC_OK;
    }
    DC_TRY(dc_cu_nccl_settle(cu, c->j));
    DC_CU_CALL(cu, error, EventSynchronize(cu->done[at]));
    if (error != CU_SUCCESS)
        return failed_begun(c, "a run", error);
    tell(&cu->verdict[at], info);
    cu->verdict[at].command = 0;
    return DC_OK;
}

dc_status dc_cu_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot, dc_run_info *info)
{
    dc_cu *cu = dc_cu_of(d);
    run c = {.r = r, .j = j, .slot = slot};
    bool pushed;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    dc_status status = dc_cu_beside_join(cu, j);
    dc_cu_place_use_slots(cu, r, slot);
    if (status == DC_OK)
        status = is_graph(&c, info) ? launch_graph(&c, info) : run_steps(&c, info);
    dc_cu_leave(cu, j, pushed);
    return status;
}

/* --- what checks found ---------------------------------------------------------------------------- */

static bool was_kept(dc_cu *cu, uint64_t ticket, dc_run_info *info)
{
    for (uint32_t i = 0; i < cu->found.n; i++)
        if (cu->found.at[i].ticket == ticket) {
            tell(&cu->found.at[i].verdict, info);
            cu->found.at[i] = cu->found.at[--cu->found.n];
            return true;
        }
    return false;
}

static dc_status ask(dc_cu *cu, dc_job *j, uint64_t ticket, bool wait, bool *known,
                     dc_run_info *info)
{
    const uint32_t at = (uint32_t)((ticket - 1) % DC_CU_AHEAD);
    if (wait)
        DC_TRY(dc_cu_nccl_settle(cu, j));
    const cu_result error =
        wait ? cu->lib.fn.EventSynchronize(cu->done[at]) : cu->lib.fn.EventQuery(cu->done[at]);
    *known = error == CU_SUCCESS;
    if (error == CU_ERROR_NOT_READY)
        return DC_OK;
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "a run", error);
    tell(&cu->verdict[at], info);
    cu->verdict[at].command = 0;
    return DC_OK;
}

dc_status dc_cu_answer(dc_device *d, dc_job *j, uint64_t ticket, bool wait, bool *known,
                       dc_run_info *info)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    *known = true;
    info->fault_command = -1;
    if (was_kept(cu, ticket, info) || ticket + DC_CU_AHEAD <= cu->runs)
        return DC_OK;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = ask(cu, j, ticket, wait, known, info);
    dc_cu_leave(cu, j, pushed);
    return status;
}
