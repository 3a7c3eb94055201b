/*
 * A filling is a task of the context's. It holds the cells while its body may run; afterwards those that have no value hold it,
 * for what is to be said of them.
 */
#include "core/runtime/filling.h"

#include "core/runtime/work.h"

struct dc_filling {
    dc_task task;
    dc_rt *rt;
    dc_filler by;
    uint32_t refs; /* one until it has ended, and one for each cell whose `filling` it is */
    bool ended;
    dc_err err; /* why it has no values */
    uint32_t n;
    dc_cell *cell[];
};

static void release(dc_filling *f)
{
    if (--f->refs == 0)
        dc_xfree(f);
}

void dc_filling_leave(dc_cell *c)
{
    dc_filling *f = c->filling;
    c->filling = NULL;
    if (f != NULL)
        release(f);
}

static dc_status fill(dc_job *j, void *arg)
{
    dc_filling *f = arg;
    return f->by.body(j, f->by.arg);
}

static void settle(void *arg)
{
    dc_filling *f = arg;
    const bool filled = f->task.state == DC_TASK_DONE && f->task.status == DC_OK;
    f->ended = true;
    if (!filled)
        dc_err_copy(&f->err, &f->task.job.err);
    f->by.release(f->by.arg);
    for (uint32_t i = 0; i < f->n; i++) {
        if (filled)
            dc_cell_written(f->cell[i], false); /* which leaves it */
        dc_cell_release(f->cell[i]);
    }
    release(f);
}

dc_status dc_filling_start(dc_rt *rt, dc_job *j, dc_cell *const *cell, uint32_t n,
                           const dc_filler *by)
{
    dc_job_defer(j, by->release, by->arg);
    if (rt->filling == NULL)
        rt->filling = dc_work_new(&rt->log, "deepc values", 1);
    dc_filling *f = dc_xalloc(sizeof *f + n * sizeof(dc_cell *));
    dc_job_keep(j, by->arg);
    f->rt = rt;
    f->by = *by;
    f->n = n;
    f->refs = 1;
    f->task = (dc_task){.body = fill, .settle = settle, .arg = f, .opt = &rt->opt};
    for (uint32_t i = 0; i < n; i++) {
        dc_cell_written(cell[i], true);
        f->cell[i] = dc_cell_retain(cell[i]);
        cell[i]->filling = f;
        f->refs++;
    }
    dc_work_add(rt->filling, &f->task);
    dc_work_queue(rt->filling, &f->task);
    return DC_OK;
}

dc_status dc_filling_await(dc_cell *c, dc_job *j, bool reads)
{
    dc_filling *f = c->filling;
    if (!f->ended) {
        if (!dc_work_await(f->rt->filling, &f->task, true, j->cancel))
            return dc_fail(j, DC_ERR_INTERRUPTED, NULL);
        f->refs++; /* the task is looked at once more when it has been settled */
        dc_work_finish(f->rt->filling, &f->task);
        release(f);
    }
    if (c->filling == NULL || !reads)
        return DC_OK;
    return dc_err_take(j, &c->filling->err);
}

void dc_fillings_settle(dc_rt *rt)
{
    if (rt->filling != NULL)
        dc_work_settle(rt->filling);
}

void dc_fillings_close(dc_rt *rt)
{
    dc_work *w = rt->filling;
    rt->filling = NULL;
    dc_work_free(w);
}
