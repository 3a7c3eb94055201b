/*
 * Compilation as jobs. An executable is described on the context's thread and compiled as a task
 * (core/runtime/work.h) that owns it meanwhile: until the task is settled, nobody else looks at more of it
 * than its description. The first who needs it waits, and receives the failure, if any.
 *
 *   dc_exec_start -> task: dc_pipeline_compile -> settle: counters -> dc_exec_wait: status
 */
#include "jit/compile/compile_job.h"

#include "core/graph/gtext.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/bug_report.h"
#include "jit/compile/dump.h"
#include "jit/exec/profile.h"
#include "jit/plan/memory_limit.h"
#include "jit/schedule/schedule_file.h"

#include <string.h>

/* ---- what compilations share ----------------------------------------------------------------- */

/* Channels of compile stages: who listens wants to hear of every function, called or not. */
enum {
    STAGES = 1u << DC_CH_GRAPH | 1u << DC_CH_FUSE | 1u << DC_CH_KERNEL | 1u << DC_CH_FLAT |
             1u << DC_CH_SRC | 1u << DC_CH_PLAN
};

static bool wants_all(const dc_rt *rt)
{
    return rt->opt.dump[0] != '\0' || (rt->log.on & STAGES) != 0;
}

static void free_jit(dc_rt *rt)
{
    if (rt->work != NULL && wants_all(rt))
        dc_work_drain(rt->work);
    dc_work_free(rt->work);
    rt->work = NULL;
    if (rt->jit != NULL) {
        dc_kernels_free(rt->jit->kernels);
        dc_cache_free(rt->jit->cache);
        if (rt->jit->schedule != NULL)
            dc_schedfile_free(rt->jit->schedule);
    }
    dc_xfree(rt->jit);
    rt->jit = NULL;
}

static dc_status check_settings(dc_job *j, const dc_opts *opt)
{
    dc_skip skip;
    if (!dc_opts_compile_known(opt))
        return dc_fail(j, DC_ERR_OPTION,
                       &(dc_fact){.word = {"DEEPC_COMPILE", "'now', 'cache', 'process', 'off', or nothing"}});
    DC_TRY(dc_skip_parse(j, opt->skip, &skip));
    return opt->dump[0] != '\0' ? dc_dump_open(j, opt->dump) : DC_OK;
}

/* Each part is the context's as soon as it is made, so this may fail anywhere and be called again. */
dc_status dc_jit_open(dc_rt *rt, dc_job *j)
{
    if (rt->jit != NULL && rt->jit->kernels != NULL)
        return DC_OK;
    rt->free_jit = free_jit;
    rt->job.on_bug = dc_bug_report;
    rt->job.bug_ctx = rt;
    DC_TRY(check_settings(j, &rt->opt));
    if (rt->work == NULL)
        rt->work = dc_work_new(&rt->log);
    if (rt->jit == NULL)
        rt->jit = dc_xalloc(sizeof *rt->jit);
    if (rt->jit->schedule == NULL && rt->opt.schedule[0] != '\0')
        DC_TRY(dc_schedfile_read(j, rt->opt.schedule, &rt->jit->schedule));
    if (rt->jit->cache == NULL)
        rt->jit->cache = dc_cache_new(&rt->opt);
    rt->jit->kernels = dc_kernels_new(rt->device);
    rt->lazy_exec = dc_jit_lazy();
    return DC_OK;
}

void dc_jit_stop(dc_rt *rt)
{
    if (rt->work != NULL && wants_all(rt))
        dc_work_drain(rt->work);
    if (rt->work != NULL)
        dc_work_stop(rt->work);
    if (rt->jit != NULL)
        dc_cache_flush(rt->jit->cache);
}

void dc_jit_settle(dc_rt *rt)
{
    if (rt->work != NULL)
        dc_work_settle(rt->work);
}

/* ---- the task -------------------------------------------------------------------------------- */

/* A compiler that failed is no reason to stop: the interpreter still knows the answer. */
static dc_status fall_back(dc_build *b, dc_job *j, dc_status status)
{
    dc_exec *e = b->exec;
    char why[600];
    if ((status != DC_E_BUILD && status != DC_E_DEVICE) || dc_job_cancelled(j))
        return status;
    dc_err_render(&j->err, 0, why, sizeof why);
    dc_logf(j->log, DC_CH_NOTE, "jit: %s falls back to the interpreter: %s", e->desc.name, why);
    j->err = (dc_err){0};
    b->counts.fallbacks++;
    e->info = (dc_exec_info){.interpreted = true};
    return DC_OK;
}

/* On any thread. What an attempt before it left is taken back first. */
static dc_status compile(dc_job *j, void *arg)
{
    dc_build *b = arg;
    dc_exec *e = b->exec;
    dc_exec_drop_kernels(e);
    dc_arena_rewind(&e->mem, b->described);
    e->info = (dc_exec_info){0};
    b->counts = (dc_counts){0};
    DC_TRY(dc_func_check(j, e->desc.fn));
    const dc_status status = dc_pipeline_compile(&b->env, j, e, &b->counts);
    return status == DC_OK ? DC_OK : fall_back(b, j, status);
}

static void settle(void *arg)
{
    dc_build *b = arg;
    dc_stats *s = &b->exec->rt->stats;
    b->pending = false;
    s->compile_ns += b->task.ns;
    s->kernels += b->counts.compiled;
    s->kernels_cached += b->counts.cached;
    s->kernels_shared += b->counts.shared;
    s->fallbacks += b->counts.fallbacks;
    if (b->dropped)
        dc_exec_destroy(b->exec);
}

bool dc_build_end(dc_rt *rt, dc_exec *e)
{
    dc_build *b = e->build;
    if (b == NULL || !b->pending)
        return true;
    b->dropped = true;
    return b->queued && wants_all(rt) ? false : dc_work_drop(rt->work, &b->task);
}

const dc_target *dc_exec_target(const dc_exec *e, uint32_t *skip_passes)
{
    if (e->build == NULL || e->info.interpreted)
        return NULL;
    *skip_passes = e->build->env.skip.passes;
    return e->build->env.target;
}

/* ---- starting -------------------------------------------------------------------------------- */

static dc_status read_compare(dc_rt *rt, dc_job *j, dc_exec *e)
{
    if (rt->opt.compare[0] == '\0')
        return DC_OK;
    if (strcmp(rt->opt.compare, "eval") != 0)
        return dc_fail(j, DC_ERR_OPTION,
                       &(dc_fact){.word = {"DEEPC_COMPARE", "only 'eval' can be compared with"}});
    rt->log.on |= 1u << DC_CH_COMPARE;
    e->compare = !rt->interpret;
    return DC_OK;
}

static dc_status make_build(dc_rt *rt, dc_job *j, dc_exec *e)
{
    dc_build *b = e->build = dc_xalloc(sizeof *b);
    b->exec = e;
    b->env = (dc_env){.device = rt->device,
                      .target = rt->device->ops->target(rt->device),
                      .opt = rt->opt,
                      .kernels = rt->jit->kernels,
                      .cache = rt->jit->cache,
                      .schedule = rt->jit->schedule};
    DC_TRY(dc_skip_parse(j, rt->opt.skip, &b->env.skip));
    if (dc_skips(b->env.skip, DC_STAGE_cache))
        b->env.cache = NULL;
    b->described = dc_arena_mark(&e->mem);
    b->task.body = compile;
    b->task.settle = settle;
    b->task.arg = b;
    b->task.opt = &b->env.opt;
    return DC_OK;
}

static dc_status start(dc_rt *rt, dc_job *j, dc_exec *e, const dc_exec_desc *d)
{
    const uint64_t begun = dc_clock_ns();
    DC_TRY(dc_exec_describe(e, j, d));
    DC_TRY(read_compare(rt, j, e));
    rt->stats.compiles++;
    if (!rt->interpret)
        return make_build(rt, j, e);
    DC_TRY(dc_func_check(j, e->desc.fn));
    DC_TRY(dc_limit_eval(j, &e->desc));
    dc_pipeline_log_graph(j, e->desc.name, e->desc.fn);
    e->info.interpreted = true;
    rt->stats.compile_ns += dc_clock_ns() - begun;
    return DC_OK;
}

/* The executable with its task, which has not begun. */
static dc_status make(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    DC_TRY(dc_rt_check(rt, j, d->name));
    DC_TRY(dc_jit_open(rt, j));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_exec *e = dc_exec_new(rt);
    dc_job_defer(j, dc_exec_free, e);
    const dc_status status = start(rt, j, e, d);
    dc_job_keep(j, e);
    dc_arena_rewind(&j->scratch, mark);
    if (status == DC_E_BUG)
        dc_job_notice_bug(j);
    if (status != DC_OK) {
        dc_exec_free(e);
        return status;
    }
    if (e->build != NULL) {
        e->build->pending = true;
        dc_work_add(rt->work, &e->build->task);
    }
    *out = e;
    return DC_OK;
}

dc_status dc_exec_start(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    dc_exec *e;
    DC_TRY(make(rt, j, d, &e));
    *out = e;
    if (e->build == NULL)
        return DC_OK;
    e->build->queued = strcmp(rt->opt.compile, "now") != 0;
    if (e->build->queued)
        dc_work_queue(rt->work, &e->build->task);
    else
        dc_work_finish(rt->work, &e->build->task);
    j->about = NULL; /* nor may a report look at it while it is compiled */
    return DC_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * It may be otherwise the next time: memory came back after the failure was told, or the threads
 * were stopped (dc_jit_stop) before it was done.
 */
static bool is_worth_another(const dc_build *b)
{
    if (b->pending || b->task.status == DC_OK)
        return false;
    return atomic_load(&b->task.cancel) || (b->told && b->task.status == DC_E_NOMEM);
}

static dc_status fail(dc_job *j, dc_build *b)
{
    b->told = true;
    if (b->task.status == DC_E_BUG)
        j->about = b->exec;
    return dc_err_take(j, &b->task.job.err);
}

dc_status dc_exec_wait(dc_rt *rt, dc_job *j, dc_exec *e)
{
    dc_build *b = e->build;
    if (b == NULL || (b->profiled && !b->pending))
        return DC_OK;
    DC_TRY(dc_rt_check(rt, j, e->desc.name));
    if (b->pending && !dc_work_await(rt->work, &b->task, rt->entry != NULL, j->cancel))
        return dc_fail(j, DC_ERR_INTERRUPTED, &(dc_fact){.op = e->desc.name});
    if (b->pending)
        dc_work_finish(rt->work, &b->task);
    if (is_worth_another(b)) {
        b->pending = true;
        b->told = false;
        dc_work_add(rt->work, &b->task);
        dc_work_finish(rt->work, &b->task);
    }
    if (b->task.status != DC_OK)
        return fail(j, b);
    if (!b->profiled)
        dc_profile_init(e);
    b->profiled = true;
    return DC_OK;
}

dc_status dc_exec_build(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    dc_exec *e;
    DC_TRY(make(rt, j, d, &e));
    dc_job_defer(j, dc_exec_free, e);
    const bool now = strcmp(rt->opt.compile, "now") == 0;
    if (rt->entry != NULL && e->build != NULL && !now) { /* it may be ended, the compiler not */
        e->build->queued = true;
        dc_work_queue(rt->work, &e->build->task);
    }
    const dc_status status = dc_exec_wait(rt, j, e);
    dc_job_keep(j, e);
    if (status == DC_E_BUG)
        dc_job_notice_bug(j);
    if (status != DC_OK) {
        dc_exec_free(e);
        return status;
    }
    *out = e;
    return DC_OK;
}
