/*
 * f:start: a call in slices, a job; f:ready: would it begin at once? It is begun as any call (dsl/fn/fncall.c) and carried on by job:poll, for about
 * so long each time; job:result gives what the call returns. The instance, and the cells that it sets, are the
 * job's from start to end; what holds meanwhile is told in jit/jit.h.
 *
 * A job that is closed, or collected, before its results are taken is cancelled.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/fn/fn.h"

#include <string.h>

enum { FUNCTION = 1, SPEC, USER = SPEC }; /* user values, which hold what the job points to */

typedef struct dc_fnjob {
    dc_uhead head;
    dc_spec *s;       /* whose `job` it is; NULL: it has ended, or its results are taken */
    const char *name; /* of the function, interned */
    bool done;
    dc_type out[]; /* of results, under the names of the call that started it */
} slices;

void dc_fnjob_end(struct dc_fnjob *p)
{
    if (p == NULL || p->s == NULL)
        return;
    p->s->job = NULL;
    p->s = NULL;
}

static void drop_job(void *node)
{
    slices *p = node;
    if (p->s != NULL)
        dc_inst_cancel(p->s->inst);
    dc_fnjob_end(p);
}

const dc_utype dc_fnjob_type = {.name = "deepc.job", .drop = drop_job};

/* Its specialisation, while the job at 1 holds it; NULL where it has ended. */
static dc_spec *spec_of(lua_State *L, const slices *p)
{
    lua_getiuservalue(L, 1, SPEC);
    dc_spec *s = dc_spec_test(L, -1);
    lua_pop(L, 1);
    return s == p->s ? s : NULL;
}

static int l_close(lua_State *L)
{
    slices *p = dc_udata_test(L, 1, &dc_fnjob_type);
    if (p != NULL)
        drop_job(p);
    return 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

typedef struct starting {
    dc_dsl *d;
    dc_spec *s;
} starting;

static dc_status start_job_body(dc_job *j, void *arg)
{
    const starting *a = arg;
    DC_TRY(dc_spec_ready(a->d, j, a->s));
    DC_TRY(dc_spec_agree_values(j, a->s));
    DC_TRY(dc_spec_agree_sizes(j, a->s));
    DC_TRY(dc_spec_pad(a->s, j));
    return dc_inst_start(a->s->inst, j, a->s->arg);
}

/* The specialisation for the arguments, traced if there was none. */
static dc_spec *begin(lua_State *L, dc_dsl *d, dc_fn *fn, dc_fn_leaves *v, int *spec)
{
    dc_fn_check_count(L, d, fn);
    if (dc_trace_here(L, d) != NULL)
        dc_error_raisef(L, d, DC_ERR_REENTER, fn->name,
                        "a job is started while a typed function is traced, which happens once");
    dc_collector_step(L, d);
    return dc_fn_begin(L, d, fn, v, spec);
}

/* f:ready(...): would a call with these arguments not wait for a compilation? */
int dc_fnjob_ready(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn_leaves v;
    int spec;
    const dc_spec *s = begin(L, d, dc_fn_check(L, 1), &v, &spec);
    if (s->exec != NULL)
        dc_exec_resume(s->rt, s->exec);
    lua_pushboolean(L, s->inst != NULL || s->exec == NULL || !dc_exec_compiling(s->rt, s->exec));
    return 1;
}

int dc_fnjob_start(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn *fn = dc_fn_check(L, 1);
    dc_fn_leaves v;
    int spec;
    dc_spec *s = begin(L, d, fn, &v, &spec);
    if (dc_spec_grows(s, false))
        dc_error_raisef(L, d, DC_ERR_REENTER, fn->name,
                        "a function with a state that grows is called, not started as a job");
    slices *p = dc_udata_new(L, &dc_fnjob_type, sizeof *p + s->nout * sizeof *p->out, USER);
    p->name = fn->name;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, FUNCTION);
    lua_pushvalue(L, spec);
    lua_setiuservalue(L, -2, SPEC);
    memcpy(p->out, s->out, s->nout * sizeof *p->out);
    starting a = {d, s};
    const dc_status status = dc_fn_act(L, d, fn, s, &v, start_job_body, &a);
    dc_error_check(L, d, status);
    dc_fnjob_end(s->job);
    p->s = s;
    s->job = p;
    s->calls++;
    return 1;
}

/* ---- poll ------------------------------------------------------------------------------------ */

static slices *check_job(lua_State *L, dc_dsl *d, const char *op)
{
    slices *p = dc_udata_test(L, 1, &dc_fnjob_type);
    if (p == NULL) {
        const char *text = lua_pushfstring(L, "a job is needed, not %s", dc_handle_describe(L, 1));
        const char *hint = lua_pushfstring(L, "with a colon: job:%s()", op);
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                      &(dc_blame){.hint = hint});
    }
    if (spec_of(L, p) == NULL)
        dc_error_raisef(
            L, d, DC_ERR_REENTER, op,
            "the job of '%s' has ended: its result was taken, it failed, or it was closed",
            p->name);
    return p;
}

typedef struct polling {
    dc_spec *s;
    uint64_t ns;
    bool done;
    dc_fault fault;
} polling;

static dc_status poll_job_body(dc_job *j, void *arg)
{
    polling *a = arg;
    a->fault = (dc_fault){.check = -1};
    return dc_inst_poll(a->s->inst, j, a->ns, &a->done, &a->fault);
}

/* Carries it on; raises where it fails, which ends it. */
static void carry_on(lua_State *L, dc_dsl *d, slices *p, uint64_t ns)
{
    polling a = {.s = p->s, .ns = ns};
    const dc_status status = dc_run_once(d, poll_job_body, &a);
    if (status != DC_OK && d->rt->job.err.id != DC_ERR_REENTER) /* else a slice of it is running */
        dc_fnjob_end(p);
    if (status != DC_OK && a.fault.check >= 0)
        dc_fn_raise_fault(L, d, a.s, &a.fault);
    dc_error_check(L, d, status);
    p->done = a.done;
}

/* job:poll { ms = 2 }; without, one kernel. */
static int l_poll(lua_State *L)
{
    static const char *const known[] = {"ms", NULL};
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 2);
    slices *p = check_job(L, d, "poll");
    dc_args_options(L, d, 2, "poll", known);
    const double ms = dc_args_option(L, d, 2, "poll", "ms", 0);
    if (!(ms >= 0))
        dc_error_raisef(L, d, DC_ERR_ARG, "poll", "ms is a number of milliseconds, 0 or more");
    check_job(L, d, "poll"); /* reading the options may have closed it */
    if (!p->done)
        carry_on(L, d, p, ms < 1e12 ? (uint64_t)(ms * 1e6) : UINT64_MAX);
    lua_pushboolean(L, p->done);
    return 1;
}

/* ---- result ---------------------------------------------------------------------------------- */

typedef struct taking {
    slices *p;
    const dc_spec *s;
    dc_handle **out;
    dc_tensor **made;
} taking;

static dc_status take_results_body(dc_job *j, void *arg)
{
    const taking *a = arg;
    const dc_spec *s = a->s;
    dc_trim room;
    DC_TRY(dc_spec_reserve(s, j, a->p->out, &room));
    DC_TRY(dc_inst_take(s->inst, j, a->made));
    DC_TRY(dc_spec_trim(s, j, a->p->out, &room, a->made));
    for (uint32_t i = 0; i < s->nout; i++) {
        memcpy(a->made[i]->type.name, a->p->out[i].name, sizeof a->p->out[i].name);
        dc_handle_fill(a->out[i], a->made[i]);
    }
    return DC_OK;
}

/* job:result(): runs what is left, and gives what the call returns; the job is over then. */
static int l_result(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 1);
    slices *p = check_job(L, d, "result");
    if (!p->done)
        carry_on(L, d, p, UINT64_MAX);
    const dc_spec *s = p->s;
    lua_getiuservalue(L, 1, FUNCTION);
    lua_getiuservalue(L, 1, SPEC);
    const dc_fn *fn = dc_fn_check(L, 2);
    luaL_checkstack(L, (int)s->nout + DC_SIG_RESULTS + 24, "results");
    taking a = {.p = p, .s = s};
    a.out = lua_newuserdatauv(L, (s->nout + 1) * sizeof *a.out, 0);
    a.made = lua_newuserdatauv(L, (s->nout + 1) * sizeof *a.made, 0);
    const int first = lua_gettop(L) + 1;
    for (uint32_t i = 0; i < s->nout; i++)
        a.out[i] = dc_fn_new_result(L, d, fn);
    check_job(L, d, "result"); /* a finalizer may have closed it */
    const dc_status status = dc_run_once(d, take_results_body, &a);
    dc_fnjob_end(p);
    dc_error_check(L, d, status);
    return dc_fn_give(L, fn, s, 3, first);
}

static int l_tostring(lua_State *L)
{
    const slices *p = dc_udata_test(L, 1, &dc_fnjob_type);
    if (p == NULL) /* its finalizer has run */
        lua_pushliteral(L, "job (gone)");
    else
        lua_pushfstring(L, "job of %s (%s)", p->name,
                        p->s == NULL ? "ended"
                        : p->done    ? "done"
                                     : "not done");
    return 1;
}

static const dc_binding of_job[] = {
    {"poll", l_poll, 2, DC_IN_METHODS},
    {"result", l_result, 1, DC_IN_METHODS},
    {"close", l_close, 1, DC_IN_METHODS},
    {"__close", l_close, DC_ANY, DC_IN_META},
    {"__tostring", l_tostring, DC_ANY, DC_IN_META},
};

const dc_bindings dc_fnjob_methods = DC_BINDINGS(of_job);
