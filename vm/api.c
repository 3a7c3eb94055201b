/*
 * The part of deepc.h that needs no Lua: contexts. This is where core, jit and the backends meet.
 */
#include "backends/mpi/mpi.h"
#include "backends/registry.h"
#include "core/base/heap.h"
#include "core/runtime/entry.h"
#include "core/runtime/outcome.h"
#include "core/runtime/rt.h"
#include "core/world/threads.h"
#include "formats/trace_events.h"
#include "jit/jit.h"
#include "vm/deepc.h"

#include <stdio.h>
#include <string.h>

_Static_assert(DC_OK == 0 && DC_E_TYPE == 1 && DC_E_VALUE == 2 && DC_E_STATE == 3 &&
                   DC_E_FILE == 4 && DC_E_NOMEM == 5 && DC_E_DEVICE == 6 && DC_E_BUILD == 7 &&
                   DC_E_BUG == 8 && DC_E_STOPPED == 9,
               "statuses are numbered in vm/deepc.h too");

typedef struct opening {
    dc_config cfg; /* as far as the host's header knows it */
    dc_rt *rt;
    dc_heap *heap;   /* of the host; NULL none */
    const char *bad; /* variable of the environment that could not be read */
    bool misfit;     /* cfg is none of this library */
} opening;

static dc_status copy_setting(dc_job *j, const char *variable, const char *value, char *field,
                              size_t size)
{
    if (value == NULL)
        return DC_OK;
    if (strlen(value) >= size)
        return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {variable, "the text is too long"}});
    strcpy(field, value);
    return DC_OK;
}

static dc_status select_channels(dc_rt *rt)
{
    char text[160];
    const char *unknown = dc_log_select(&rt->log, rt->opt.debug);
    if (unknown == NULL)
        return DC_OK;
    snprintf(text, sizeof text, "no channel '%.*s'; there are: %s", (int)strcspn(unknown, ", "),
             unknown, dc_log_channels());
    return dc_fail(&rt->job, DC_ERR_OPTION, &(dc_fact){.word = {"DEEPC_DEBUG", text}});
}

static dc_status readable(dc_job *j, const char *bad)
{
    char text[80];
    if (bad == NULL)
        return DC_OK;
    snprintf(text, sizeof text, "not %s", dc_opts_wants(bad));
    return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {bad, text}});
}

/* Of those that code further on would read as another value. */
static dc_status check_settings(dc_job *j, const dc_opts *opt)
{
    const char *variable = NULL, *wanted = "0, 1 or 2";
    if (opt->check < 0 || opt->check > 2)
        variable = "DEEPC_CHECK", wanted = "0, 1 or 2, nan, or nan and one of them: nan,1";
    if (opt->opt < 0 || opt->opt > 3)
        variable = "DEEPC_OPT", wanted = "0, 1, 2 or 3";
    if (opt->tune_seconds < 1 || opt->tune_seconds > 1000000)
        variable = "DEEPC_TUNE_SECONDS", wanted = "a number of seconds from 1 to 1000000";
    if (opt->cache_size < 1 || opt->cache_size > 1 << 20)
        variable = "DEEPC_CACHE_SIZE", wanted = "a number of MiB from 1";
    if (opt->compile_seconds < 0 || opt->compile_seconds > 1000000)
        variable = "DEEPC_COMPILE_SECONDS",
        wanted = "a number of seconds to 1000000, or 0: no limit";
    if (opt->threads < 0)
        variable = "DEEPC_THREADS", wanted = "a number of threads, or 0: one per core";
    if (!dc_opts_math_known(opt))
        variable = "DEEPC_MATH", wanted = "'strict' or 'tf32', 'ftz', one of them and 'ftz' "
                                          "with a comma, or nothing";
    if (opt->gpu[0] != '\0' && strcmp(opt->gpu, "wgmma") != 0)
        variable = "DEEPC_GPU", wanted = "'wgmma', or nothing";
    if (opt->compare[0] != '\0' && strcmp(opt->compare, "eval") != 0)
        variable = "DEEPC_COMPARE", wanted = "only 'eval' can be compared with";
    if (!dc_opts_compile_known(opt))
        variable = "DEEPC_COMPILE", wanted = "'now', 'cache', 'process', 'off', or nothing";
    if (strcmp(opt->lazy, "auto") != 0 && strcmp(opt->lazy, "compile") != 0 &&
        strcmp(opt->lazy, "eval") != 0 && strcmp(opt->lazy, "steady") != 0 &&
        strcmp(opt->lazy, "sizes") != 0)
        variable = "DEEPC_LAZY", wanted = "'auto', 'steady', 'compile', 'eval' or 'sizes'";
    if (strcmp(opt->progress, "auto") != 0 && strcmp(opt->progress, "bar") != 0 &&
        strcmp(opt->progress, "lines") != 0 && strcmp(opt->progress, "off") != 0)
        variable = "DEEPC_PROGRESS", wanted = "'auto', 'bar', 'lines' or 'off'";
    if (strcmp(opt->show, "auto") != 0 && strcmp(opt->show, "sixel") != 0 &&
        strcmp(opt->show, "blocks") != 0 && strcmp(opt->show, "ascii") != 0)
        variable = "DEEPC_SHOW", wanted = "'auto', 'sixel', 'blocks' or 'ascii'";
    if (strcmp(opt->rank_prefix, "on") != 0 && strcmp(opt->rank_prefix, "off") != 0)
        variable = "DEEPC_RANK_PREFIX", wanted = "'on' or 'off'";
    if (dc_opts_files(opt) && strcmp(opt->allow, "all") != 0)
        variable = "DEEPC_ALLOW", wanted = "'all' or 'compute'";
    if (variable == NULL)
        return DC_OK;
    return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {variable, wanted}});
}

/* The simulated devices belong to jit/, which the registry of backends does not know. */
static dc_status open_device(dc_job *j, const char *name, dc_device **out, bool *interpret)
{
    if (!dc_sim_is(name))
        return dc_backend_open(j, name, out, interpret);
    *interpret = false;
    return dc_sim_open(j, name, out);
}

/*
 * A further device of the context, dc_rt.open_device. Where nothing is compiled or computed it is the interpreter, as the
 * first one is: only its name has to be one.
 */
static dc_status open_other(dc_rt *rt, dc_job *j)
{
    const char *name = rt->opt.device;
    dc_device *device;
    bool interpret;
    if (!dc_opts_files(&rt->opt) && strncmp(name, "cpu:cc", 6) == 0)
        return dc_failf(j, DC_ERR_DEVICE, NULL,
                        "'cpu:cc', where no processes may be started (DC_ALLOW_COMPUTE)");
    if ((strcmp(rt->opt.compile, "off") == 0 || rt->first->check) &&
        (dc_sim_is(name) || dc_backend_is(name)))
        name = "eval";
    DC_TRY(open_device(j, name, &device, &interpret));
    dc_rt_set_device(rt, device, interpret);
    return dc_jit_open(rt, j);
}

static dc_status refuse_setting(dc_job *j, const char *setting, const char *why)
{
    return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {setting, why}});
}

/* Without files there is no cache, and nothing is written or read because the environment says so. */
static dc_status restrict_files(dc_job *j, const dc_config *cfg, dc_opts *opt)
{
    if (cfg->allow > DC_ALLOW_COMPUTE)
        return refuse_setting(j, "dc_config.allow", "no dc_allow that this version knows");
    if (cfg->allow == DC_ALLOW_COMPUTE)
        strcpy(opt->allow, "compute");
    if (dc_opts_files(opt))
        return DC_OK;
    if (cfg->cache != NULL && strcmp(cfg->cache, "off") != 0)
        return refuse_setting(j, "cache",
                              "a folder, where no files may be opened (DC_ALLOW_COMPUTE)");
    if (strcmp(opt->compile, "cache") == 0)
        return refuse_setting(j, "compile",
                              "'cache', where no files may be opened (DC_ALLOW_COMPUTE)");
    if (strcmp(opt->compile, "process") == 0)
        return refuse_setting(j, "compile",
                              "'process', where no processes may be started (DC_ALLOW_COMPUTE)");
    if (strncmp(opt->device, "cpu:cc", 6) == 0)
        return refuse_setting(j, "device",
                              "'cpu:cc', where no processes may be started (DC_ALLOW_COMPUTE)");
    strcpy(opt->cache, "off");
    strcpy(opt->history, "off");
    opt->dump[0] = opt->schedule[0] = opt->run_log[0] = '\0';
    return DC_OK;
}

static dc_status open_processes(dc_rt *rt, dc_job *j, dc_world **out)
{
    DC_UNUSED(rt);
    return dc_mpi_open(j, out);
}

static dc_status open_threads(dc_rt *rt, dc_job *j, dc_world **out)
{
    return dc_world_open(j, dc_threads_engine(rt->ranks, rt->launched), out);
}

/* Which rank this is: of the threads that the host names, else of the processes that a launcher has started. */
static dc_status take_rank(dc_rt *rt, const dc_config *cfg)
{
    char why[80];
    if (cfg->ranks == NULL && cfg->rank != 0)
        return refuse_setting(&rt->job, "dc_config.rank", "none, where dc_config.ranks is NULL");
    if (cfg->ranks == NULL) {
        rt->open_world = open_processes;
        if (dc_mpi_launcher(&rt->opt) != NULL && dc_mpi_place(&rt->launched, &rt->launched_size))
            return DC_OK;
        rt->launched = 0;
        rt->launched_size = 1;
        return DC_OK;
    }
    dc_threads *t = (dc_threads *)cfg->ranks;
    if (cfg->rank < 0 || cfg->rank >= dc_threads_size(t)) {
        snprintf(why, sizeof why, "one of %d, counted from 0", dc_threads_size(t));
        return refuse_setting(&rt->job, "dc_config.rank", why);
    }
    if (!dc_threads_take(t, cfg->rank))
        return refuse_setting(&rt->job, "dc_config.rank", "one that no other context is");
    rt->ranks = t;
    rt->launched = cfg->rank;
    rt->launched_size = dc_threads_size(t);
    rt->open_world = open_threads;
    return DC_OK;
}

/* Everything that may fail once there is a context to hold the sentence. */
static dc_status configure(dc_job *j, void *arg)
{
    opening *o = arg;
    const dc_config *cfg = &o->cfg;
    dc_rt *rt = o->rt;
    dc_device *device;
    bool interpret;
    if (o->misfit)
        return dc_fail(
            j, DC_ERR_OPTION,
            &(dc_fact){.word = {"dc_config.size", "not that of a dc_config of this version or "
                                                  "an earlier one; DC_CONFIG_INIT sets it"}});
    DC_TRY(take_rank(rt, cfg)); /* first: if it cannot be opened, others hear of it */
    DC_TRY(readable(j, o->bad));
    DC_TRY(copy_setting(j, "device", cfg->device, rt->opt.device, sizeof rt->opt.device));
    DC_TRY(copy_setting(j, "debug", cfg->debug, rt->opt.debug, sizeof rt->opt.debug));
    DC_TRY(copy_setting(j, "compile", cfg->compile, rt->opt.compile, sizeof rt->opt.compile));
    DC_TRY(copy_setting(j, "cache", cfg->cache, rt->opt.cache, sizeof rt->opt.cache));
    if (cfg->threads != 0)
        rt->opt.threads = cfg->threads;
    DC_TRY(check_settings(j, &rt->opt));
    DC_TRY(restrict_files(j, cfg, &rt->opt));
    DC_TRY(select_channels(rt));
    dc_backend_name(rt->opt.device, rt->device_name, sizeof rt->device_name);
    if (strcmp(rt->opt.compile, "off") == 0)
        strcpy(rt->opt.device, "eval");
    DC_TRY(open_device(j, rt->opt.device, &device, &interpret));
    dc_rt_set_device(rt, device, interpret);
    rt->open_device = open_other;
    rt->name_device = dc_backend_name;
    if (cfg->stream != NULL && !device->ops->shares)
        return refuse_setting(j, "dc_config.stream", "none, where the device has no streams");
    DC_TRY(dc_jit_open(rt, j));
    if (rt->opt.memory != 0)
        dc_heap_limit(rt->heap, (size_t)rt->opt.memory);
    return DC_OK;
}

static dc_status make_context(dc_job *j, void *arg)
{
    opening *o = arg;
    dc_opts opt;
    const dc_log log = {.write = o->cfg.log, .ctx = o->cfg.log_ctx};
    dc_opts_init(&opt, &o->bad);
    if (o->cfg.memory_limit != 0)
        opt.memory = (int64_t)(o->cfg.memory_limit < INT64_MAX ? o->cfg.memory_limit : INT64_MAX);
    if (opt.memory != 0 && o->heap == NULL && (o->heap = dc_heap_new(NULL, NULL)) == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    opt.heap = o->heap;
    opt.stream = o->cfg.stream;
    o->rt = dc_rt_new(&opt, &log);
    o->rt->heap = o->heap;
    o->rt->version = DC_VERSION;
    o->rt->on_bug = o->cfg.on_bug;
    o->rt->on_bug_ctx = o->cfg.bug_ctx;
    return DC_OK;
}

/*
 * The settings of a host that was compiled with another version of the header: what it does not know
 * has its default, what we do not know has to be unused.
 */
static bool read_config(const dc_config *cfg, dc_config *out)
{
    const dc_config dflt = DC_CONFIG_INIT;
    const unsigned char *bytes = (const unsigned char *)cfg;
    *out = dflt;
    if (cfg == NULL)
        return true;
    if (cfg->size < offsetof(dc_config, device))
        return false;
    for (size_t i = sizeof dflt; i < cfg->size; i++)
        if (bytes[i] != 0)
            return false;
    memcpy(out, cfg, cfg->size < sizeof dflt ? cfg->size : sizeof dflt);
    return true;
}

/* The heap is the last of what it gave. */
static void close_context(dc_rt *rt)
{
    if (dc_rt_forked(rt))
        return;
    dc_heap *heap = rt->heap;
    dc_threads *ranks = rt->ranks;
    const int rank = rt->launched;
    dc_trace_end(rt);
    while (rt->functions != NULL)
        dc_unload(rt->functions);
    dc_rt_free(rt);
    if (ranks != NULL)
        dc_threads_leave(ranks, rank);
    dc_heap_free(heap);
}

/* For those who want memory before there is a context; a heap may be given. */
static dc_status run_first(dc_heap *heap, dc_status (*body)(dc_job *j, void *arg), void *arg)
{
    const dc_opts opt = {.heap = heap};
    dc_job j; /* the recovery point until a context has its own */
    dc_job_init(&j, &opt, NULL);
    const dc_status s = dc_protect(&j, body, arg);
    dc_job_fini(&j);
    return s;
}

typedef struct ranks_wanted {
    int size;
    dc_threads *made;
} ranks_wanted;

static dc_status make_ranks(dc_job *j, void *arg)
{
    ranks_wanted *w = arg;
    DC_UNUSED(j);
    w->made = dc_threads_new(w->size, NULL);
    return DC_OK;
}

int dc_api_level(void)
{
    return DC_API_LEVEL;
}

dc_status dc_ranks_new(int size, dc_ranks **out)
{
    ranks_wanted w = {.size = size};
    if (out == NULL)
        return DC_E_VALUE;
    *out = NULL;
    if (size < 1 || size > DC_RANKS_MOST)
        return DC_E_VALUE;
    const dc_status s = run_first(NULL, make_ranks, &w);
    *out = (dc_ranks *)w.made;
    return s;
}

void dc_ranks_free(dc_ranks *ranks)
{
    if (ranks != NULL)
        dc_threads_free((dc_threads *)ranks);
}

dc_status dc_open(const dc_config *cfg, dc_rt **out)
{
    opening o = {.rt = NULL};
    if (out == NULL)
        return DC_E_VALUE;
    *out = NULL;
    o.misfit = !read_config(cfg, &o.cfg);
    if (o.cfg.alloc != NULL && (o.heap = dc_heap_new(o.cfg.alloc, o.cfg.alloc_ctx)) == NULL)
        return DC_E_NOMEM;
    dc_status s = run_first(o.heap, make_context, &o);
    if (s != DC_OK) {
        dc_heap_free(o.heap);
        return s;
    }
    s = dc_protect(&o.rt->job, configure, &o);
    if (s == DC_E_NOMEM) {
        close_context(o.rt);
        return s;
    }
    o.rt->broken = s != DC_OK;
    if (o.rt->broken && o.rt->ranks != NULL)
        dc_threads_leave(o.rt->ranks, o.rt->launched);
    *out = o.rt;
    return s;
}

void dc_close(dc_rt *rt)
{
    if (rt != NULL && rt->stop_lua == NULL && /* else it is the state's */
        !dc_job_elsewhere(&rt->job))
        close_context(rt);
}

void dc_interrupt(dc_rt *rt)
{
    if (rt != NULL)
        dc_entry_ask(rt, 0);
}

void dc_stop(dc_rt *rt)
{
    if (rt != NULL)
        dc_entry_ask(rt, DC_WHY_HOST);
}

void dc_resume(dc_rt *rt)
{
    if (rt != NULL)
        dc_rt_resume(rt);
}

void dc_deadline(dc_rt *rt, int64_t ms)
{
    if (rt != NULL && !dc_job_elsewhere(&rt->job))
        rt->call_ms = ms;
}

static dc_status wait_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    DC_TRY(dc_rt_check(rt, j, NULL));
    for (; rt != NULL; rt = rt->next) {
        dc_device *d = rt->device;
        DC_TRY(dc_outcomes_ask(rt, j, true));
        const dc_outcome *o = dc_outcomes_stopped(rt);
        if (o != NULL)
            return dc_fail(j, DC_ERR_NO_RESULT, &(dc_fact){.word = {o->name}});
        if (d->ops->finish != NULL)
            DC_TRY(d->ops->finish(d, j));
    }
    return DC_OK;
}

dc_status dc_wait(dc_rt *rt)
{
    return rt != NULL ? dc_protect(&rt->job, wait_body, rt) : DC_E_STATE;
}

const char *dc_errmsg(dc_rt *rt)
{
    if (rt == NULL)
        return "out of memory";
    if (dc_job_elsewhere(&rt->job))
        return DC_JOB_ELSEWHERE;
    const dc_err *e = &rt->job.err;
    if (e->status == DC_OK)
        return "no failure";
    dc_err_print(e,
                 &(dc_err_scene){.where = e->where[0] != '\0' ? e->where : NULL,
                                 .path = e->path[0] != '\0' ? e->path : NULL},
                 1, rt->message, sizeof rt->message);
    return rt->message;
}
