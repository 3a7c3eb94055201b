#include "jit/exec/exec_task.h"

#include "core/base/spans.h"
#include "jit/exec/profile.h"

/* Channels of compile stages, which report every function, called or not. */
enum {
    STAGES = 1u << DC_CH_GRAPH | 1u << DC_CH_FUSE | 1u << DC_CH_KERNEL | 1u << DC_CH_FLAT |
             1u << DC_CH_SRC | 1u << DC_CH_PLAN
};

bool dc_exec_task_wants_all(const dc_rt *rt)
{
    return rt->opt.dump[0] != '\0' || (rt->log.on & STAGES) != 0;
}

bool dc_exec_task_end(dc_exec *e)
{
    dc_exec_task *t = e->task;
    if (t == NULL || !t->pending)
        return true;
    t->dropped = true;
    return t->queued && dc_exec_task_wants_all(e->rt) ? false : dc_work_drop(e->rt->work, &t->task);
}

/*
 * The next attempt may succeed: memory came back after the failure was returned, or it was cancelled before it was
 * done, by dc_jit_stop or dc_exec_postpone.
 */
static bool may_succeed_now(const dc_exec_task *t)
{
    if (t->pending || t->task.status == DC_OK)
        return false;
    return atomic_load(&t->task.cancel) || (t->told && t->task.status == DC_E_NOMEM);
}

static dc_status take_failure(dc_job *j, dc_exec_task *t)
{
    t->told = true;
    if (t->task.status == DC_E_BUG)
        j->about = t->exec;
    return dc_err_take(j, &t->task.job.err);
}

void dc_exec_postpone(dc_rt *rt, dc_exec *e)
{
    dc_exec_task *t = e->task;
    if (t == NULL || !t->pending || !t->queued || dc_exec_task_wants_all(rt))
        return;
    if (dc_work_drop(rt->work, &t->task)) { /* as what was cancelled before it began */
        t->pending = false;
        t->task.status = DC_E_STOPPED;
    }
}

static void add_again(dc_rt *rt, dc_exec_task *t)
{
    t->pending = true;
    t->told = false;
    dc_work_add(rt->work, &t->task);
}

/* One that was cancelled while it ran may wait to be settled behind others that still do. */
void dc_exec_resume(dc_rt *rt, dc_exec *e)
{
    dc_exec_task *t = e->task;
    if (t == NULL || !t->queued)
        return;
    if (t->pending && atomic_load(&t->task.cancel) && dc_work_soon(rt->work, &t->task, 0))
        dc_work_finish(rt->work, &t->task);
    if (!may_succeed_now(t))
        return;
    add_again(rt, t);
    dc_work_queue(rt->work, &t->task);
}

bool dc_exec_found(dc_rt *rt, dc_exec *e, uint64_t ns)
{
    enum { PART_NS = 1000000 };
    dc_exec_resume(rt, e);
    bool done = e->task == NULL || !e->task->pending;
    for (uint64_t at = 0; !done && at < ns && !atomic_load(&e->task->compiles); at += PART_NS)
        done = dc_work_soon(rt->work, &e->task->task, PART_NS);
    return done;
}

bool dc_exec_compiling(dc_rt *rt, const dc_exec *e)
{
    return e->task != NULL && e->task->pending && dc_work_under_way(rt->work, &e->task->task);
}

dc_status dc_exec_wait(dc_rt *rt, dc_job *j, dc_exec *e)
{
    dc_exec_task *t = e->task;
    if (t == NULL || (t->profiled && !t->pending))
        return DC_OK;
    DC_TRY(dc_rt_check(rt, j, e->desc.name));
    const uint64_t begun = t->pending ? dc_span_begin(j->log) : 0;
    const bool awaited = !t->pending || dc_work_await(rt->work, &t->task,
                                                      rt->first->entry != NULL, j->cancel);
    if (awaited && t->pending)
        dc_work_finish(rt->work, &t->task);
    dc_span_end(j->log, begun, DC_SPAN_WAIT, "wait for a compilation");
    if (!awaited)
        return dc_fail(j, DC_ERR_INTERRUPTED, &(dc_fact){.op = e->desc.name});
    if (may_succeed_now(t)) {
        add_again(rt, t);
        dc_work_finish(rt->work, &t->task);
    }
    if (t->task.status != DC_OK)
        return take_failure(j, t);
    if (!t->profiled)
        dc_profile_init(e);
    t->profiled = true;
    return DC_OK;
}
