/*
 * dc.tune(f [, options]): schedules of a typed function's kernels chosen by timing (jit/tune/tune.h), for all its
 * specialisations. What is found is stored, and its executables are made again; a function that computes just now is
 * refused. With DEEPC_OPT=3 the first call of each specialisation does the same.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

#include <math.h>
#include <stdio.h>

typedef struct tuning { /* what is told of one specialisation */
    dc_uhead head;
    dc_dsl *d;
    dc_spec *s;
    dc_tune_options options;
    dc_arena mem; /* of the report */
    dc_tune_report report;
} tuning;

static void drop_tuning(void *node)
{
    dc_arena_free(&((tuning *)node)->mem);
}

const dc_utype dc_fntune_type = {.name = "deepc.tuning", .drop = drop_tuning};

/* ---- bodies ---------------------------------------------------------------------------------- */

static dc_status tune_body(dc_job *j, void *arg)
{
    tuning *t = arg;
    dc_arena_free(&t->mem);
    t->report = (dc_tune_report){.mem = &t->mem};
    return dc_exec_tune(t->s->exec, j, &t->options, &t->report);
}

static dc_status forget_body(dc_job *j, void *arg)
{
    const tuning *t = arg;
    bool changed;
    return dc_exec_untune(t->s->exec, j, &changed);
}

/* Another executable in the place of the old one, whose instance is idle. */
static dc_status remake(dc_job *j, dc_spec *s)
{
    dc_exec *made, *old = s->exec;
    if (!dc_exec_is_stale(old))
        return DC_OK;
    DC_TRY(dc_exec_remake(old, j, &made));
    dc_inst_free(s->inst);
    s->inst = NULL;
    s->exec = made;
    dc_exec_release(old);
    return DC_OK;
}

static dc_status remake_body(dc_job *j, void *arg)
{
    const tuning *t = arg;
    return remake(j, t->s);
}

/* ---- DEEPC_OPT=3 ----------------------------------------------------------------------------- */

static void tell_found(const dc_dsl *d, const dc_spec *s, const dc_tune_report *r)
{
    double rules = 0, best = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        rules += (double)r->row[i].rules_ns * r->row[i].launches;
        best += (double)r->row[i].best_ns * r->row[i].launches;
        found += r->row[i].tuned && !r->row[i].known;
    }
    dc_logf(&d->rt->log, DC_CH_NOTE,
            "tune: %s: %.1f s; %u of %u kernels have other schedules, in all %.2f times as fast",
            dc_exec_desc_of(s->exec)->name, r->seconds, found, r->n, best > 0 ? rules / best : 1.);
}

static bool is_all_known(const dc_tune_report *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (!r->row[i].known)
            return false;
    return true;
}

static void free_report(void *mem)
{
    dc_arena_free(mem);
}

dc_status dc_fntune_first(dc_dsl *d, dc_job *j, dc_spec *s)
{
    const dc_tune_options o = {.seconds = (double)d->rt->opt.tune_seconds};
    if (d->rt->opt.opt < 3)
        return DC_OK;
    dc_arena *mem = DC_NEW_ARRAY(&j->scratch, dc_arena, 1); /* the search rewinds scratch */
    dc_tune_report r = {.mem = mem};
    dc_job_defer(j, free_report, mem);
    const dc_status status = dc_exec_tune(s->exec, j, &o, &r);
    if (status == DC_OK && !is_all_known(&r))
        tell_found(d, s, &r);
    dc_job_keep(j, mem);
    free_report(mem);
    return status == DC_OK ? remake(j, s) : status;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void set_number(lua_State *L, const char *name, double v)
{
    lua_pushnumber(L, v);
    lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void set_flag(lua_State *L, const char *name, bool v)
{
    lua_pushboolean(L, v);
    lua_setfield(L, -2, name);
}

static void push_lines(lua_State *L, const dc_tune_row *row)
{
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < DC_COUNTOF(row->where) && row->where[i] != NULL; i++) {
        luaL_addstring(&b, i > 0 ? " " : "");
        luaL_addstring(&b, row->where[i]);
    }
    luaL_pushresult(&b);
}

static void push_row(lua_State *L, const dc_tune_row *row, int spec)
{
    lua_createtable(L, 0, 12);
    set_text(L, "name", row->name);
    push_lines(L, row);
    lua_setfield(L, -2, "lines");
    dc_binding_set_number(L, "specialisation", (uint64_t)spec);
    dc_binding_set_number(L, "launches", row->launches);
    dc_binding_set_number(L, "tried", row->tried);
    set_number(L, "rules_ms", (double)row->rules_ns / 1e6);
    set_number(L, "best_ms", (double)row->best_ns / 1e6);
    set_number(L, "gain", row->best_ns > 0 ? (double)row->rules_ns / (double)row->best_ns : 1);
    set_flag(L, "tuned", row->tuned);
    set_flag(L, "known", row->known);
    set_text(L, "schedule", row->schedule);
    if (row->why != NULL)
        set_text(L, "why", row->why);
}

/* Adds the rows of a report, which is on top, to the list at idx. */
static void add_rows(lua_State *L, int idx, const tuning *t, int spec)
{
    for (uint32_t i = 0; i < t->report.n; i++) {
        push_row(L, &t->report.row[i], spec);
        lua_rawseti(L, idx, (lua_Integer)lua_rawlen(L, idx) + 1);
    }
}

/* ---- dc.tune --------------------------------------------------------------------------------- */

static bool read_flag(lua_State *L, dc_dsl *d, const char *name)
{
    if (lua_isnoneornil(L, 2))
        return false;
    const int type = lua_getfield(L, 2, name);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, "tune", "%s is true or false, not %s", name,
                        dc_handle_describe(L, -1));
    const bool v = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return v;
}

static double read_seconds(lua_State *L, dc_dsl *d)
{
    const double v = dc_args_option(L, d, 2, "tune", "seconds", (double)d->rt->opt.tune_seconds);
    if (!(v > 0) || v > 1e6)
        dc_error_raisef(L, d, DC_ERR_ARG, "tune",
                        "seconds are more than 0 and at most 1000000, not %g", v);
    return v;
}

/* Specialisation i of the list: waited for, idle; NULL: there is nothing to time. */
static dc_spec *idle_spec(lua_State *L, dc_dsl *d, const dc_fn *fn, int list, int i)
{
    lua_rawgeti(L, list, i);
    dc_spec *s = dc_spec_at(L, -1);
    lua_pop(L, 1);
    if (s->exec == NULL || !dc_spec_wait(L, d, s))
        return NULL;
    if (s->inst != NULL && dc_inst_busy(s->inst))
        dc_error_raisef(L, d, DC_ERR_REENTER, "tune", "'%s' computes just now: a job of it is open",
                        fn->name);
    return s;
}

static int l_tune(lua_State *L)
{
    static const char *const known[] = {"seconds", "again", "forget", NULL};
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 2);
    const dc_fn *fn = dc_fn_check(L, 1);
    dc_args_options(L, d, 2, "tune", known);
    const double seconds = read_seconds(L, d);
    const bool again = read_flag(L, d, "again"), forget = read_flag(L, d, "forget");
    if (dc_trace_here(L, d) != NULL)
        dc_error_raisef(L, d, DC_ERR_REENTER, "tune",
                        "schedules are not timed while a typed function is traced");
    dc_fn_push_specs(L, 1); /* 3 */
    const int n = (int)lua_rawlen(L, 3);
    if (n == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "tune",
                        "'%s' has no kernels yet: they are made at its first call", fn->name);
    for (int i = 1; i <= n; i++)
        idle_spec(L, d, fn, 3, i);
    lua_newtable(L); /* 4 */
    const uint64_t begun = dc_clock_ns();
    for (int i = 1; i <= n; i++) {
        tuning *t = dc_udata_new(L, &dc_fntune_type, sizeof *t, 0);
        t->d = d;
        t->s = idle_spec(L, d, fn, 3, i);
        if (t->s == NULL)
            continue;
        const double left = seconds - (double)(dc_clock_ns() - begun) / 1e9;
        t->options = (dc_tune_options){.seconds = fmax(left, 0) / (n - i + 1), .again = again};
        dc_run(L, d, forget ? forget_body : tune_body, t);
        add_rows(L, 4, t, i);
        lua_pop(L, 1);
    }
    for (int i = 1; i <= n; i++) {
        tuning t = {.d = d, .s = idle_spec(L, d, fn, 3, i)};
        if (t.s != NULL)
            dc_run(L, d, remake_body, &t);
    }
    set_number(L, "seconds", (double)(dc_clock_ns() - begun) / 1e9);
    return 1;
}

static const dc_binding bindings[] = {
    {"tune", l_tune, 2, DC_IN_MODULE},
};

const dc_bindings dc_fntune_bindings = DC_BINDINGS(bindings);
