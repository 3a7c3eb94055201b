/* What the compilations of a context share: made once, freed with the context. */
#include "jit/cache/disk_cache.h"
#include "jit/cache/tuned_schedules.h"
#include "jit/compile/bug_report.h"
#include "jit/compile/compile_job.h"
#include "jit/compile/dump.h"
#include "jit/schedule/schedule_file.h"

static void free_jit(dc_rt *rt)
{
    if (rt->work != NULL && dc_exec_task_wants_all(rt))
        dc_work_drain(rt->work);
    dc_exec_forget(rt);
    dc_work_free(rt->work);
    rt->work = NULL;
    if (rt->jit != NULL) {
        dc_kernels_free(rt->jit->kernels);
        dc_cache_free(rt->jit->cache);
        if (rt->jit->schedule != NULL)
            dc_schedule_file_free(rt->jit->schedule);
        dc_tuned_store_free(rt->jit->tuned);
    }
    dc_xfree(rt->jit);
    rt->jit = NULL;
}

static dc_status check_settings(dc_job *j, const dc_opts *opt)
{
    dc_skip skip;
    if (!dc_opts_compile_known(opt))
        return dc_fail(
            j, DC_ERR_OPTION,
            &(dc_fact){.word = {"DEEPC_COMPILE", "'now', 'cache', 'process', 'off', or nothing"}});
    DC_TRY(dc_skip_parse(j, opt->skip, &skip));
    return opt->dump[0] != '\0' ? dc_dump_open(j, opt->dump) : DC_OK;
}

/* Each part is the context's as soon as it is made, so this may fail anywhere and be called again. */
dc_status dc_compile_open(dc_rt *rt, dc_job *j)
{
    if (rt->jit != NULL && rt->jit->kernels != NULL)
        return DC_OK;
    rt->free_jit = free_jit;
    if (rt == rt->first) { /* whose job is that of all devices */
        rt->job.on_bug = dc_bug_report;
        rt->job.bug_ctx = rt;
    }
    DC_TRY(check_settings(j, &rt->opt));
    if (rt->work == NULL)
        rt->work = dc_work_new(&rt->log, "deepc compile", 2);
    if (rt->jit == NULL)
        rt->jit = dc_xalloc(sizeof *rt->jit);
    if (rt->jit->schedule == NULL && rt->opt.schedule[0] != '\0')
        DC_TRY(dc_schedule_file_read(j, rt->opt.schedule, &rt->jit->schedule));
    if (rt->jit->cache == NULL)
        rt->jit->cache = dc_cache_new(&rt->opt);
    rt->jit->kernels = dc_kernels_new(rt->device);
    return DC_OK;
}

static void stop(dc_rt *rt)
{
    if (rt->work != NULL && dc_exec_task_wants_all(rt))
        dc_work_drain(rt->work);
    if (rt->work != NULL)
        dc_work_stop(rt->work);
    if (rt->jit != NULL)
        dc_cache_flush(rt->jit->cache);
}

void dc_jit_stop(dc_rt *rt)
{
    for (rt = rt->first; rt != NULL; rt = rt->next)
        stop(rt);
}

void dc_jit_settle(dc_rt *rt)
{
    for (rt = rt->first; rt != NULL; rt = rt->next)
        if (rt->work != NULL)
            dc_work_settle(rt->work);
}
