/*
 * Compilation as jobs. An executable is described on the context's thread and compiled as a task
 * (core/runtime/work.h) that owns it meanwhile: until the task is settled, other threads read no more of it
 * than its description. The first call that needs it waits, and receives the failure, if any.
 *
 *   dc_exec_start -> task: dc_pipeline_compile -> settle: counters -> dc_exec_wait: status
 */
#include "jit/compile/compile_job.h"

#include "core/base/spans.h"
#include "core/ir/gtext.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/bug_report.h"
#include "jit/compile/dump.h"
#include "jit/compile/tuned_list.h"
#include "jit/exec/profile.h"
#include "jit/plan/memory_limit.h"
#include "jit/schedule/schedule_file.h"

#include <stdio.h>
#include <string.h>

/* ---- the task -------------------------------------------------------------------------------- */

/* A compiler that failed is no reason to stop: the interpreter still knows the answer. */
static dc_status fall_back(dc_compile_job *b, dc_job *j, dc_status status)
{
    dc_exec *e = b->of.exec;
    char why[600];
    if ((status != DC_E_BUILD && status != DC_E_DEVICE) || dc_job_cancelled(j))
        return status;
    dc_err_render(&j->err, 0, why, sizeof why);
    dc_logf(j->log, DC_CH_NOTE, "jit: %s falls back to the interpreter: %s", e->desc.name, why);
    dc_err_clear(&j->err);
    b->counts.fallbacks++;
    e->info = (dc_exec_info){.interpreted = true};
    return DC_OK;
}

static void tell_compiled(const dc_job *j, uint64_t begun, const dc_exec *e)
{
    char text[96];
    snprintf(text, sizeof text, "compile %s", e->desc.name);
    dc_span_end(j->log, begun, DC_SPAN_COMPILE, text);
}

/* On any thread. What an attempt before it left is taken back first. */
static dc_status compile(dc_job *j, void *arg)
{
    dc_compile_job *b = arg;
    dc_exec *e = b->of.exec;
    dc_exec_drop_kernels(e);
    dc_arena_rewind(&e->mem, b->described);
    e->info = (dc_exec_info){0};
    b->counts = (dc_counts){0};
    DC_TRY(dc_func_check(j, e->desc.fn));
    const uint64_t begun = dc_span_begin(j->log);
    const dc_status status = dc_pipeline_compile(&b->env, j, e, &b->counts);
    tell_compiled(j, begun, e);
    return status == DC_OK ? DC_OK : fall_back(b, j, status);
}

static void settle_compilation(void *arg)
{
    dc_compile_job *b = arg;
    dc_stats *s = &b->of.exec->rt->first->stats;
    b->of.pending = false;
    s->compile_ns += b->of.task.ns;
    s->kernels += b->counts.compiled;
    s->kernels_cached += b->counts.cached;
    s->kernels_shared += b->counts.shared;
    s->fallbacks += b->counts.fallbacks;
    if (b->of.dropped)
        dc_exec_destroy(b->of.exec);
}

const dc_target *dc_exec_target(const dc_exec *e, uint32_t *skip_passes)
{
    if (e->task == NULL || e->info.interpreted)
        return NULL;
    const dc_compile_job *b = (const dc_compile_job *)e->task;
    *skip_passes = b->env.skip.passes;
    return b->env.target;
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

dc_status dc_compile_env(dc_rt *rt, dc_job *j, dc_env *env)
{
    *env = (dc_env){.device = rt->device,
                    .target = rt->device->ops->target(rt->device),
                    .opt = rt->opt,
                    .kernels = rt->jit->kernels,
                    .cache = rt->jit->cache,
                    .schedule = rt->jit->schedule};
    DC_TRY(dc_skip_parse(j, rt->opt.skip, &env->skip));
    if (dc_skips(env->skip, DC_STAGE_cache))
        env->cache = NULL;
    env->tuned = dc_tuned_list(rt, j, env);
    return DC_OK;
}

static dc_status make_build(dc_rt *rt, dc_job *j, dc_exec *e)
{
    dc_compile_job *b = dc_xalloc(sizeof *b);
    e->task = &b->of;
    b->of.exec = e;
    b->of.kernels = rt->jit->kernels;
    DC_TRY(dc_compile_env(rt, j, &b->env));
    b->described = dc_arena_mark(&e->mem);
    b->of.task.body = compile;
    b->of.task.settle = settle_compilation;
    b->of.task.arg = b;
    b->of.task.opt = &b->env.opt;
    return DC_OK;
}

static dc_status start(dc_rt *rt, dc_job *j, dc_exec *e, const dc_exec_desc *d)
{
    const uint64_t begun = dc_clock_ns();
    DC_TRY(dc_exec_describe(e, j, d));
    DC_TRY(read_compare(rt, j, e));
    rt->first->stats.compiles++;
    if (!rt->interpret)
        return make_build(rt, j, e);
    DC_TRY(dc_func_check(j, e->desc.fn));
    DC_TRY(dc_memory_limit_eval(j, &e->desc));
    dc_pipeline_log_graph(j, e->desc.name, e->desc.fn);
    e->info.interpreted = true;
    rt->first->stats.compile_ns += dc_clock_ns() - begun;
    return DC_OK;
}

/* The executable with its task, which has not begun. */
static dc_status make_job(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    DC_TRY(dc_rt_check(rt, j, d->name));
    DC_TRY(dc_compile_open(rt, j));
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
    if (e->task != NULL) {
        e->task->pending = true;
        dc_work_add(rt->work, &e->task->task);
    }
    *out = e;
    return DC_OK;
}

dc_status dc_exec_start(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    dc_exec *e;
    DC_TRY(make_job(rt, j, d, &e));
    *out = e;
    if (e->task == NULL)
        return DC_OK;
    e->task->queued = strcmp(rt->opt.compile, "now") != 0;
    if (e->task->queued)
        dc_work_queue(rt->work, &e->task->task);
    else
        dc_work_finish(rt->work, &e->task->task);
    j->about = NULL; /* nor may a report look at it while it is compiled */
    return DC_OK;
}

dc_status dc_exec_build(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out)
{
    dc_exec *e;
    DC_TRY(make_job(rt, j, d, &e));
    dc_job_defer(j, dc_exec_free, e);
    const bool now = strcmp(rt->opt.compile, "now") == 0;
    if (rt->first->entry != NULL && e->task != NULL &&
        !now) { /* it may be ended, the compiler not */
        e->task->queued = true;
        dc_work_queue(rt->work, &e->task->task);
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
