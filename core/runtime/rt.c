/*
 * The context, and the device over plain host memory that `eval` and tests of core/ use.
 *
 * Order of release: the thread of deadlines, that of values of cells, then for each device lazy programs, compilations, pool
 * and the device itself, the first one last, names, job. Whatever uses the devices' memory must be gone.
 */
#define _DEFAULT_SOURCE /* madvise */
#include "core/runtime/rt.h"

#include "core/base/extent.h"
#include "core/base/heap.h"
#include "core/base/path.h"
#include "core/base/spans.h"
#include "core/runtime/entry.h"
#include "core/runtime/filling.h"
#include "core/runtime/lazy.h"
#include "core/runtime/outcome.h"
#include "core/runtime/storage.h"
#include "core/runtime/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void release_rt(void *rt)
{
    dc_rt_free(rt);
}

static void release_other(void *rt)
{
    dc_rt_free_other(rt);
}

dc_rt *dc_rt_new(const dc_opts *opt, const dc_log *log)
{
    dc_job *j = dc_job_here();
    dc_rt *rt = dc_xalloc(sizeof *rt);
    dc_owner_init(&rt->owner); /* before anything can unwind: dc_rt_free asks it */
    rt->first = rt;
    dc_job_defer(j, release_rt, rt);
    rt->opt = *opt;
    snprintf(rt->device_name, sizeof rt->device_name, "%s", opt->device);
    if (log != NULL)
        rt->log = *log;
    rt->names = dc_names_new();
    rt->pool = dc_pool_new(opt);
    dc_job_init(&rt->job, &rt->opt, &rt->log);
    rt->extents = dc_extents_new();
    rt->job.extents = rt->extents;
    rt->job.owner = &rt->owner;
    rt->job.broken = &rt->broken;
    rt->job.cancel = &rt->interrupt;
    /* A block that stays: a call that needs little does not ask for memory, which scripts may have used up. */
    dc_arena_alloc(&rt->job.scratch, 1);
    rt->idle = dc_arena_mark(&rt->job.scratch);
    dc_job_keep(j, rt);
    return rt;
}

void dc_rt_set_device(dc_rt *rt, dc_device *device, bool interpret)
{
    dc_fillings_close(rt);
    dc_lazy_close(rt);
    dc_pool_drain(rt);
    if (rt->free_jit != NULL)
        rt->free_jit(rt);
    if (rt->device != NULL && rt->device != device)
        rt->device->ops->free(rt->device);
    rt->device = device;
    rt->interpret = interpret;
}

bool dc_rt_is_short(const dc_rt *rt)
{
    const uint64_t limit = (uint64_t)rt->first->opt.memory;
    return limit != 0 && dc_heap_counted(rt->heap) > limit / 2;
}

dc_status dc_rt_check(dc_rt *rt, dc_job *j, const char *op)
{
    for (dc_rt *r = rt->first; r != NULL; r = r->next)
        if (r->work != NULL)
            dc_work_settle(r->work);
    dc_fillings_settle(rt->first);
    if (!rt->first->broken)
        return DC_OK;
    return dc_failf(j, DC_ERR_REENTER, op, "the context is broken and can only be closed");
}

void dc_rt_resume(dc_rt *rt)
{
    const bool insist = atomic_load(&rt->insist);
    dc_entry_take_back(rt, DC_WHY_HOST | DC_WHY_USER);
    if (!insist)
        atomic_store(&rt->interrupt, false);
}

dc_status dc_rt_interrupted(dc_rt *rt, dc_job *j, const char *op)
{
    const int why = atomic_load(&rt->why);
    dc_rt_heard(rt);
    dc_err_clear(&j->err); /* of the place that noticed */
    if (why & DC_WHY_LATE)
        return dc_fail(j, DC_ERR_OVERDUE, &(dc_fact){.op = op, .num = {rt->late_ms}});
    const char *failure = why == 0 && rt->world != NULL ? dc_world_failure(rt->world) : NULL;
    if (failure != NULL) /* of another rank */
        return dc_failf(j, DC_ERR_WORLD, NULL, "%s", failure);
    return dc_fail(j, why & DC_WHY_HOST ? DC_ERR_STOPPED : DC_ERR_INTERRUPTED,
                   &(dc_fact){.op = op});
}

dc_status dc_rt_told(dc_rt *rt, dc_status status)
{
    const dc_err *e = &rt->job.err;
    char op[80] = "";
    if (status == DC_OK || e->id != DC_ERR_INTERRUPTED)
        return status;
    if (e->fact.op != NULL)
        snprintf(op, sizeof op, "%s", e->fact.op);
    return dc_rt_interrupted(rt, &rt->job, e->fact.op != NULL ? op : NULL);
}

static void free_of_device(dc_rt *rt)
{
    dc_lazy_close(rt);
    dc_outcomes_free(rt);
    if (rt->free_jit != NULL)
        rt->free_jit(rt);
    if (rt->pool != NULL)
        dc_pool_free(rt);
    if (rt->device != NULL)
        rt->device->ops->free(rt->device);
}

dc_rt *dc_rt_new_other(dc_rt *first, const char *name)
{
    dc_job *j = dc_job_here();
    dc_rt *rt = dc_xalloc(sizeof *rt);
    rt->first = first;
    dc_job_defer(j, release_other, rt);
    rt->opt = first->opt;
    snprintf(rt->opt.device, sizeof rt->opt.device, "%s", name);
    snprintf(rt->device_name, sizeof rt->device_name, "%s", name);
    rt->opt.stream = NULL; /* of the host, on the first device */
    rt->heap = first->heap;
    rt->log = first->log;
    rt->owner = first->owner;
    rt->names = first->names;
    rt->extents = first->extents;
    rt->launched = first->launched;
    rt->version = first->version;
    rt->pool = dc_pool_new(&rt->opt);
    dc_job_keep(j, rt);
    return rt;
}

void dc_rt_free_other(dc_rt *rt)
{
    free_of_device(rt);
    dc_xfree(rt);
}

void dc_rt_free(dc_rt *rt)
{
    if (rt == NULL || dc_rt_forked(rt))
        return;
    dc_entry_close(rt);
    dc_fillings_close(rt);
    while (rt->next != NULL) {
        dc_rt *other = rt->next;
        rt->next = other->next;
        dc_rt_free_other(other);
    }
    free_of_device(rt);
    dc_extents_free(rt->extents);
    dc_world_close(rt->world);
    dc_xfree(rt->mesh);
    dc_names_free(rt->names);
    dc_folders_free(rt->folders);
    dc_spans_free(rt->log.spans);
    dc_xfree(rt->trace_path);
    dc_job_fini(&rt->job);
    dc_owner_fini(&rt->owner);
    dc_xfree(rt);
}

/* ---- the host device ---- */

enum { ALIGN = 64, LARGE = 1 << 20 };

static void host_free(dc_device *d)
{
    dc_xfree(d);
}

static const dc_target *host_target(const dc_device *d)
{
    static const dc_target target = {
        .name = "host", .dialect = "llvm", .vector_bytes = 16, .vector_registers = 16};
    DC_UNUSED(d);
    return &target;
}

static dc_status host_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    DC_UNUSED(d);
    *out = bytes > SIZE_MAX / 2 ? NULL : dc_try_aligned(ALIGN, bytes);
    return *out == NULL ? dc_fail_memory(j, bytes) : DC_OK;
}

/* Whole pages are given back: where they are read again, the system has zeros for them. */
static void host_clear(dc_device *d, void *mem, size_t bytes)
{
    DC_UNUSED(d);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)mem;
    const uintptr_t first = (from + page - 1) & ~(page - 1), end = (from + bytes) & ~(page - 1);
    if (bytes < LARGE || end <= first || madvise((void *)first, end - first, MADV_DONTNEED) != 0) {
        memset(mem, 0, bytes);
        return;
    }
    memset(mem, 0, first - from);
    memset((void *)end, 0, from + bytes - end);
}

void dc_host_release(dc_device *d, void *mem)
{
    DC_UNUSED(d);
    dc_free_aligned(mem);
}

bool dc_host_move(void *to, const void *from, size_t bytes, int (*ask)(void *ctx), void *ctx)
{
    const bool last_first = (uintptr_t)to > (uintptr_t)from;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = dc_piece_of(bytes - done);
        const size_t at = last_first ? bytes - done - n : done;
        if (done > 0 && ask(ctx) != 0)
            return false;
        memmove((char *)to + at, (const char *)from + at, n);
    }
    return true;
}

static int is_ended(void *j)
{
    return j != NULL && dc_job_cancelled(j);
}

dc_status dc_host_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    DC_UNUSED(d);
    return dc_host_move(to, from, bytes, is_ended, j) ? DC_OK
                                                      : dc_fail(j, DC_ERR_INTERRUPTED, NULL);
}

static dc_status host_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    DC_UNUSED(d);
    DC_UNUSED(src);
    *out = NULL;
    return dc_failf(j, DC_ERR_BUILD, NULL, "device 'host' compiles nothing");
}

static void host_program_free(dc_device *d, dc_program *p)
{
    DC_UNUSED(d);
    DC_UNUSED(p);
}

static dc_status host_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                             dc_recording **out)
{
    DC_UNUSED(d);
    DC_UNUSED(command);
    DC_UNUSED(n);
    *out = NULL;
    return dc_failf(j, DC_ERR_DEVICE, NULL, "device 'host' records nothing");
}

static void host_recording_free(dc_device *d, dc_recording *r)
{
    DC_UNUSED(d);
    DC_UNUSED(r);
}

static dc_status host_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                          dc_run_info *info)
{
    DC_UNUSED(d);
    DC_UNUSED(r);
    DC_UNUSED(slot);
    DC_UNUSED(info);
    return dc_failf(j, DC_ERR_DEVICE, NULL, "device 'host' runs nothing");
}

dc_device *dc_host_device_new(void)
{
    static const dc_device_ops ops = {
        .name = "host",
        .free = host_free,
        .target = host_target,
        .alloc = host_alloc,
        .clear = host_clear,
        .release = dc_host_release,
        .compile = host_compile,
        .program_free = host_program_free,
        .record = host_record,
        .recording_free = host_recording_free,
        .run = host_run,
        DC_HOST_MEMORY_OPS,
    };
    dc_device *d = dc_xalloc(sizeof *d);
    d->ops = &ops;
    return d;
}
