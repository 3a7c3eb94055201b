/*
 * A recording: for each launch a kernel object of its own, whose arguments are set again only where
 * a slot has moved since the last run. Commands go to a queue that runs them in order, without
 * waiting; what has to be known here (checks, conditions) is read back, and that waits.
 *
 * Nothing takes a command back that the queue has. So that a run can be ended, it waits whenever about AHEAD_NS of work
 * lie in the queue, and launches of more are divided by work items. What work is comes from the guesses of the
 * compiler, which may be wrong by a factor of a hundred for a device that it knows nothing of; the recording corrects
 * them by how long it waited. Where a kernel is not simt, a launch has a few OpenCL threads that share the work items.
 */
#include "backends/opencl/cl_impl.h"
#include "core/host/host_step.h"
#include "core/runtime/walk.h"

#include <stdio.h>
#include <string.h>

#define AHEAD_NS 4000000.0 /* of work in the queue */

typedef struct step {
    cl_kernel kernel;   /* LAUNCH */
    dc_host_step *host; /* HOST */
    size_t threads;     /* of a group; 0: threads share the work items */
    int64_t positions;  /* work items of a launch */
    int64_t begin, end; /* not simt: the work items that the kernel object has as arguments */
    double cost;        /* nanoseconds, a guess */
    size_t bytes;       /* COPY */
    uint32_t first, nbind;
    char *label;
} step;

struct dc_recording {
    dc_cl *cl;
    dc_walk *walk;
    uint32_t nstep;
    step *step;
    const char *
        *set; /* by bind, of all steps: the address that the kernel object has; NULL: none yet */
    cl_mem scratch;
    double scale; /* true nanoseconds for one that was guessed */
};

/* A run, or a slice of one. */
typedef struct run {
    dc_recording *r;
    dc_job *j;
    void *const *slot;
    cl_queue queue;
    const dc_run_watch *watch; /* NULL: nobody hears of it */
    bool wait;      /* for each command before the next: times are taken, or a deadline counts */
    bool pending;   /* there is something to wait for */
    dc_halt *halt;  /* NULL: it is not ended early */
    double queued;  /* nanoseconds of work that were not waited for, by guess and scale */
    uint64_t since; /* when the first of them was given */
} run;

/* --- making --------------------------------------------------------------------------------- */

static void free_recording(void *what)
{
    dc_recording *r = what;
    for (uint32_t i = 0; i < r->nstep && r->step != NULL; i++) {
        dc_cl_kernel_free(r->cl, r->step[i].kernel);
        dc_xfree(r->step[i].host);
        dc_xfree(r->step[i].label);
    }
    dc_cl_buffer_release(r->cl, r->scratch);
    dc_walk_free(r->walk);
    dc_xfree(r->step);
    dc_xfree(r->set);
    dc_xfree(r);
}

void dc_cl_recording_free(dc_device *d, dc_recording *r)
{
    DC_UNUSED(d);
    if (r != NULL)
        free_recording(r);
}

/* Threads that share the work items of a kernel that is not simt. */
static size_t workers(const dc_cl *cl, int64_t positions)
{
    return (size_t)dc_min_i64(positions, (int64_t)cl->limits.compute_units * 4);
}

static size_t most_scratch(const dc_cl *cl, const dc_command *item, uint32_t n)
{
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = item[i].scratch * workers(cl, item[i].grid);
        if (item[i].kind == DC_COMMAND_LAUNCH && bytes > most)
            most = bytes;
    }
    return most;
}

static dc_status group_too_large(dc_job *j, const dc_command *item, const char *name, size_t most)
{
    return dc_failf(j, DC_ERR_BUILD, "opencl",
                    "kernel '%.60s' needs groups of %u threads, the device runs %zu of it at most",
                    name, item->threads, most);
}

static dc_status size_groups(dc_recording *r, dc_job *j, const dc_command *item, step *s)
{
    dc_cl *cl = r->cl;
    const char *name = item->program->entry[item->entry];
    size_t most = cl->limits.max_group;
    if (!cl->target.simt)
        return DC_OK;
    DC_ASSERT(item->threads > 0, "groups of no threads for '%s'", name);
    cl->lib.fn.GetKernelWorkGroupInfo(s->kernel, cl->at.device, CL_KERNEL_WORK_GROUP_SIZE,
                                      sizeof most, &most, NULL);
    if (item->threads > most)
        return group_too_large(j, item, name, most);
    s->threads = item->threads;
    return DC_OK;
}

static dc_status set_argument(dc_cl *cl, dc_job *j, const step *s, uint32_t i, size_t bytes,
                              const void *value)
{
    const cl_int error = cl->lib.fn.SetKernelArg(s->kernel, i, bytes, value);
    char what[96];
    if (error == CL_SUCCESS)
        return DC_OK;
    snprintf(what, sizeof what, "parameter %u of kernel '%.50s'", i, s->label);
    return dc_cl_failed(j, what, error);
}

/* The work items of a kernel that is not simt: its last two parameters. */
static dc_status set_positions(dc_cl *cl, dc_job *j, step *s, int64_t begin, int64_t end)
{
    if (s->begin == begin && s->end == end)
        return DC_OK;
    s->begin = s->end = -1;
    DC_TRY(set_argument(cl, j, s, 2 * s->nbind + 1, sizeof begin, &begin));
    DC_TRY(set_argument(cl, j, s, 2 * s->nbind + 2, sizeof end, &end));
    s->begin = begin;
    s->end = end;
    return DC_OK;
}

/* What follows the buffers of a kernel that is not simt. */
static dc_status set_fixed(dc_recording *r, dc_job *j, const dc_command *item, step *s)
{
    const cl_mem *scratch = item->scratch > 0 ? &r->scratch : NULL;
    if (r->cl->target.simt)
        return DC_OK;
    DC_TRY(set_argument(r->cl, j, s, 2 * s->nbind, sizeof(cl_mem), scratch));
    s->begin = s->end = -1;
    return set_positions(r->cl, j, s, 0, item->grid);
}

static dc_status make_launch(dc_recording *r, dc_job *j, const dc_command *item, step *s)
{
    dc_cl *cl = r->cl;
    const dc_program *p = item->program;
    cl_uint n = 0;
    DC_ASSERT(item->entry < p->nentry, "launch of kernel %u of %u", item->entry, p->nentry);
    DC_TRY(dc_cl_kernel_new(cl, j, p->program, p->entry[item->entry], &s->kernel));
    cl->lib.fn.GetKernelInfo(s->kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL);
    if (n != 2 * s->nbind + (cl->target.simt ? 0 : 3))
        DC_BUG("kernel '%s' has %u parameters, and %u buffers are given", s->label, n, s->nbind);
    DC_TRY(size_groups(r, j, item, s));
    return set_fixed(r, j, item, s);
}

static char *copy_label(const dc_command *item)
{
    const char *s = item->label;
    if (s == NULL && item->kind == DC_COMMAND_LAUNCH)
        s = item->program->entry[item->entry];
    if (s == NULL)
        return NULL;
    const size_t n = strlen(s) + 1;
    return memcpy(dc_xalloc(n), s, n);
}

static dc_status record_items(dc_recording *r, dc_job *j, const dc_command *item, uint32_t n)
{
    uint32_t first = 0;
    r->walk = dc_walk_new(item, n);
    r->scale = 1;
    r->step = dc_xalloc(n * sizeof *r->step);
    r->nstep = n;
    r->set = dc_xalloc(dc_walk_bind_count(r->walk) * sizeof *r->set);
    const size_t scratch = r->cl->target.simt ? 0 : most_scratch(r->cl, item, n);
    if (scratch > 0)
        DC_TRY(dc_cl_buffer(r->cl, j, scratch, &r->scratch));
    for (uint32_t i = 0; i < n; i++) {
        step *s = &r->step[i];
        *s = (step){.positions = item[i].grid,
                    .cost = (double)item[i].cost_ns,
                    .bytes = item[i].bytes,
                    .first = first,
                    .nbind = item[i].nbind};
        s->label = copy_label(&item[i]);
        first += s->nbind;
        if (item[i].kind == DC_COMMAND_LAUNCH)
            DC_TRY(make_launch(r, j, &item[i], s));
        if (item[i].kind == DC_COMMAND_HOST)
            DC_TRY(dc_host_step_new(j, item[i].host, item[i].nhost, item[i].label, true, &s->host));
    }
    return DC_OK;
}

dc_status dc_cl_record(dc_device *d, dc_job *j, const dc_command *item, uint32_t n,
                       dc_recording **out)
{
    dc_recording *r = dc_xalloc(sizeof *r);
    r->cl = dc_cl_of(d);
    dc_job_defer(j, free_recording, r);
    DC_TRY(dc_job_settle(j, r, record_items(r, j, item, n)));
    *out = r;
    return DC_OK;
}

/* --- running -------------------------------------------------------------------------------- */

static char *address_of(const run *c, uint32_t item, uint32_t i)
{
    const dc_bind *b = &dc_walk_binds(c->r->walk, item)[i];
    return (char *)c->slot[b->slot] + dc_walk_offset(c->r->walk, item, i);
}

/* "a run, at kernel 'k'" */
static dc_status failed(const run *c, uint32_t item, cl_int error)
{
    char what[96];
    const char *label = c->r->step[item].label;
    snprintf(what, sizeof what, "a run, at %s%.60s%s", label != NULL ? "kernel '" : "a copy",
             label != NULL ? label : "", label != NULL ? "'" : "");
    return dc_cl_failed(c->j, what, error);
}

static uint64_t event_ns(const run *c, cl_event event)
{
    const dc_cl_api *fn = &c->r->cl->lib.fn;
    uint64_t start = 0, end = 0;
    fn->GetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    fn->GetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    return end > start ? end - start : 0;
}

/* The queue is empty. A wait for much work tells how good the guesses are; no single one moves the scale far. */
static void judge_guesses(run *c)
{
    const double took = (double)(dc_clock_ns() - c->since);
    if (c->queued > 0 && (c->queued >= AHEAD_NS / 2 || took >= AHEAD_NS)) {
        const double off = took / c->queued;
        const double scale = c->r->scale * (off < 0.5 ? 0.5 : off > 2 ? 2 : off);
        c->r->scale = scale < 1e-3 ? 1e-3 : scale > 1e3 ? 1e3 : scale;
    }
    c->pending = false;
    c->queued = 0;
}

static dc_status drain(run *c, uint32_t item)
{
    const cl_int error = c->r->cl->lib.fn.Finish(c->queue);
    if (error != CL_SUCCESS)
        return failed(c, item, error);
    judge_guesses(c);
    return DC_OK;
}

/* Before a command of so many nanoseconds: is there room in the queue for it, and is the run to go on? */
static dc_status make_room(run *c, uint32_t item, double ns)
{
    if (c->halt == NULL)
        return DC_OK;
    if (c->pending && c->queued + ns > AHEAD_NS)
        DC_TRY(drain(c, item));
    if (c->queued == 0)
        c->since = dc_clock_ns();
    c->queued += ns;
    return dc_halt_now(c->halt, item) ? dc_fail(c->j, DC_ERR_INTERRUPTED, NULL) : DC_OK;
}

/* After a command was given to the queue; takes the event. */
static dc_status given(run *c, uint32_t item, cl_event event)
{
    const dc_cl_api *fn = &c->r->cl->lib.fn;
    cl_int error = CL_SUCCESS;
    c->pending = true;
    if (event != NULL) {
        error = fn->WaitForEvents(1, &event);
        if (c->watch != NULL && error == CL_SUCCESS) {
            const uint64_t ns = event_ns(c, event), now = dc_clock_ns();
            dc_run_tell(c->watch, item, false, now - ns, now);
        }
        fn->ReleaseEvent(event);
    } else if (c->wait) {
        return drain(c, item);
    }
    return error == CL_SUCCESS ? DC_OK : failed(c, item, error);
}

static dc_status bind_buffers(run *c, uint32_t item)
{
    dc_cl *cl = c->r->cl;
    const step *s = &c->r->step[item];
    for (uint32_t i = 0; i < s->nbind; i++) {
        const char **set = &c->r->set[s->first + i], *now = address_of(c, item, i);
        uint64_t offset;
        size_t at;
        if (*set == now)
            continue;
        const cl_mem mem = dc_cl_mem_at(cl, now, &at);
        offset = at;
        *set = NULL;
        DC_TRY(set_argument(cl, c->j, s, 2 * i, sizeof mem, &mem));
        DC_TRY(set_argument(cl, c->j, s, 2 * i + 1, sizeof offset, &offset));
        *set = now;
    }
    return DC_OK;
}

/* Work items [begin, end) of a launch. */
static dc_status enqueue(run *c, uint32_t item, int64_t begin, int64_t end)
{
    dc_cl *cl = c->r->cl;
    step *s = &c->r->step[item];
    const bool groups = s->threads > 0;
    const size_t local = groups ? s->threads : 1;
    const size_t offset = groups ? local * (size_t)begin : 0;
    const size_t global = groups ? local * (size_t)(end - begin) : workers(cl, end - begin);
    cl_event event = NULL;
    if (!groups)
        DC_TRY(set_positions(cl, c->j, s, begin, end));
    const cl_int error =
        cl->lib.fn.EnqueueNDRangeKernel(c->queue, s->kernel, 1, &offset, &global, &local, 0, NULL,
                                        c->watch != NULL ? &event : NULL);
    return error == CL_SUCCESS ? given(c, item, event) : failed(c, item, error);
}

/* Work items that are about AHEAD_NS of work; one for each compute unit at least. */
static int64_t slice_of(const run *c, const step *s)
{
    const double cost = s->cost * c->r->scale;
    if (c->halt == NULL || cost <= AHEAD_NS)
        return s->positions;
    return dc_max_i64((int64_t)((double)s->positions * (AHEAD_NS / cost)),
                      c->r->cl->limits.compute_units);
}

static dc_status run_launch(void *ctx, uint32_t item)
{
    run *c = ctx;
    const step *s = &c->r->step[item];
    if (s->positions == 0)
        return DC_OK;
    DC_TRY(bind_buffers(c, item));
    for (int64_t begin = 0, end; begin < s->positions; begin = end) {
        end = dc_min_i64(begin + slice_of(c, s), s->positions);
        const double part = (double)(end - begin) / (double)s->positions;
        DC_TRY(make_room(c, item, s->cost * c->r->scale * part));
        DC_TRY(enqueue(c, item, begin, end));
    }
    return DC_OK;
}

static dc_status run_copy(void *ctx, uint32_t item)
{
    run *c = ctx;
    char *to = address_of(c, item, 0);
    const char *from = address_of(c, item, 1);
    cl_event event = NULL;
    DC_TRY(make_room(c, item, (double)c->r->step[item].bytes * c->r->scale / 4));
    DC_TRY(dc_cl_enqueue_copy(c->r->cl, c->j, c->queue, to, from, c->r->step[item].bytes,
                              c->watch != NULL ? &event : NULL));
    return given(c, item, event);
}

/* Waits for all that was given before. */
static dc_status read_back(run *c, uint32_t item, uint32_t bind, void *out, size_t bytes)
{
    const dc_cl *cl = c->r->cl;
    cl_event event = NULL;
    size_t at;
    const cl_mem mem = dc_cl_mem_at(cl, address_of(c, item, bind), &at);
    const cl_int error = cl->lib.fn.EnqueueReadBuffer(c->queue, mem, 1, at, bytes, out, 0, NULL,
                                                      c->watch != NULL ? &event : NULL);
    if (error != CL_SUCCESS)
        return failed(c, item, error);
    DC_TRY(given(c, item, event));
    judge_guesses(c);
    return DC_OK;
}

/* Operands come to the host, the result goes back. */
static dc_status run_host(void *ctx, uint32_t item)
{
    run *c = ctx;
    const dc_cl *cl = c->r->cl;
    const dc_host_step *s = c->r->step[item].host;
    size_t at;
    for (int i = 1; i <= s->call.nin; i++)
        if (s->bytes[i] > 0)
            DC_TRY(read_back(c, item, (uint32_t)i, s->place[i], s->bytes[i]));
    dc_halt_at here = {c->halt, item};
    const dc_look look = dc_halt_look(&here);
    DC_TRY(dc_host_step_run(s, c->j, &look, s->place, s->work, 0, s->rows));
    if (dc_look_ends(&look))
        return dc_fail(c->j, DC_ERR_INTERRUPTED, NULL);
    if (s->bytes[0] == 0)
        return DC_OK;
    const cl_mem mem = dc_cl_mem_at(cl, address_of(c, item, 0), &at);
    const cl_int error = cl->lib.fn.EnqueueWriteBuffer(c->queue, mem, 1, at, s->bytes[0],
                                                       s->place[0], 0, NULL, NULL);
    return error == CL_SUCCESS ? DC_OK : failed(c, item, error);
}

static dc_status run_check(void *ctx, uint32_t item, int32_t *out, uint64_t *bits)
{
    const run *c = ctx;
    const size_t bytes = c->r->step[item].bytes;
    DC_TRY(read_back(ctx, item, 0, out, sizeof *out));
    return *out >= 0 && bytes > 0 ? read_back(ctx, item, 1, bits, bytes) : DC_OK;
}

static dc_status run_test(void *ctx, uint32_t item, bool *out)
{
    uint8_t byte = 0;
    DC_TRY(read_back(ctx, item, 0, &byte, sizeof byte));
    *out = byte != 0;
    return DC_OK;
}

static dc_status run_limit(void *ctx, uint32_t item, int32_t *out)
{
    return read_back(ctx, item, 2, out, sizeof *out);
}

static dc_status run_count(void *ctx, uint32_t item, int32_t element)
{
    run *c = ctx;
    const dc_cl *cl = c->r->cl;
    cl_event event = NULL;
    size_t at;
    const cl_mem mem = dc_cl_mem_at(cl, address_of(c, item, 1), &at);
    const cl_int error =
        cl->lib.fn.EnqueueFillBuffer(c->queue, mem, &element, sizeof element, at, sizeof element, 0,
                                     NULL, c->watch != NULL ? &event : NULL);
    return error == CL_SUCCESS ? given(c, item, event) : failed(c, item, error);
}

static dc_status timed_queue(dc_cl *cl, dc_job *j)
{
    cl_int error = CL_SUCCESS;
    if (cl->timed != NULL)
        return DC_OK;
    cl->timed =
        cl->lib.fn.CreateCommandQueue(cl->context, cl->at.device, CL_QUEUE_PROFILING, &error);
    if (cl->timed == NULL || error != CL_SUCCESS)
        return dc_cl_failed(j, "a queue that takes times", error);
    return DC_OK;
}

/* What was given is over when this returns, whatever became of it. */
static dc_status end_run(run *c, dc_status status)
{
    if (!c->pending)
        return status;
    const cl_int error = c->r->cl->lib.fn.Finish(c->queue);
    if (status == DC_OK && error != CL_SUCCESS)
        return dc_cl_failed(c->j, "the end of a run", error);
    judge_guesses(c);
    return status;
}

dc_status dc_cl_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot, dc_run_info *info)
{
    static const dc_walk_ops ops = {.launch = run_launch,
                                    .copy = run_copy,
                                    .check = run_check,
                                    .test = run_test,
                                    .count = run_count,
                                    .limit = run_limit,
                                    .host = run_host};
    dc_cl *cl = dc_cl_of(d);
    run c = {.r = r, .j = j, .slot = slot, .queue = cl->queue};
    dc_run_info own;
    if (info == NULL)
        return end_run(&c, dc_walk_run(r->walk, j, &ops, &c, NULL));
    c.halt = info->halt;
    c.watch = info->watch;
    c.wait = c.watch != NULL || info->deadline_ns != 0;
    if (c.watch != NULL) {
        DC_TRY(timed_queue(cl, j));
        DC_TRY(dc_cl_finish(d, j)); /* copies that went to the other queue */
        c.queue = cl->timed;
    }
    own = *info;
    own.watch = NULL;
    const dc_status status = end_run(&c, dc_walk_run(r->walk, j, &ops, &c, &own));
    info->fault_command = own.fault_command;
    info->fault_value = own.fault_value;
    info->fault_bits = own.fault_bits;
    info->begun = own.begun;
    info->next = own.next;
    return status;
}
