/*
 * Specialisations: a typed function for one key. Its body is run once with traced arguments, its
 * results are checked against the signature, and the graph is on its way to an executable, on
 * another thread. After that only captured tensors, cells, guards and the sentences of run-time
 * checks stay. The first call waits for the executable and makes an instance of it.
 *
 * A second trace of the same key must give the same graph over the same tensors and cells; it is
 * compared by fingerprint and never compiled.
 */
#include "core/base/spans.h"
#include "core/ir/control.h"
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

const dc_utype dc_tracing_type = {.name = "deepc.tracing"};

/* Ends a trace when it goes out of scope, by an error too. */
typedef struct trace_scope {
    dc_uhead head;
    dc_dsl *d;
    dc_trace *trace;
    dc_frame frame;
    uint8_t autocast; /* of where it is traced, which the function knows nothing of */
} trace_scope;

static int l_scope_close(lua_State *L)
{
    const trace_scope *g = dc_udata_check(L, 1, &dc_tracing_type);
    if (g->d->trace == g->trace) {
        dc_guard_stop(L, g->d, g->trace);
        g->d->trace = g->trace->outer;
        g->d->autocast = g->autocast;
    }
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, g->trace);
    return 0;
}

/* The trace begins: from here on what L does is recorded. */
static void push_scope(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s, int fn_idx,
                       int body_idx)
{
    dc_trace *t = s->trace;
    body_idx = lua_absindex(L, body_idx);
    lua_newtable(L);
    lua_pushthread(L); /* the trace may outlive a coroutine that dies */
    lua_rawseti(L, -2, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, t);
    trace_scope *g = dc_udata_new(L, &dc_tracing_type, sizeof *g, 0);
    dc_trace_hold(L, t, lua_gettop(L)); /* the frame is in it */
    g->d = d;
    g->trace = t;
    g->autocast = d->autocast;
    d->autocast = DC_BOOL;
    g->frame = (dc_frame){&fn->sig, &s->key.bind, fn->name, L, NULL};
    lua_toclose(L, -1);
    dc_guard_begin(L, d, t, fn_idx, body_idx);
    t->L = L;
    t->finalizing = dc_trace_finalizing(L);
    t->frame = &g->frame;
    t->outer = dc_trace_current(L, d);
    d->trace = t;
}

/* ---- tracing --------------------------------------------------------------------------------- */

typedef struct beginning {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    const char *where;
} beginning;

static dc_status begin_trace_body(dc_job *j, void *arg)
{
    const beginning *a = arg;
    DC_UNUSED(j);
    a->s->trace = dc_trace_new(a->d, a->fn->name, a->where);
    a->s->trace->rt = a->s->key.rt;
    a->s->trace->told = "its arguments are";
    a->s->trace->guards = a->s->guards = dc_guard_new();
    a->d->rt->stats.traces++;
    return DC_OK;
}

typedef struct argument {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    dc_handle *h;
    const dc_sig_type *declared;
    const char *label, *what; /* "batch.x"; "argument 'batch'", NULL: need not be used */
    dc_type type;
} argument;

static dc_status trace_argument_body(dc_job *j, void *arg)
{
    const argument *a = arg;
    dc_trace *t = a->s->trace;
    const dc_val v = {dc_graph_param(t->f, &a->type, a->label), a->type};
    DC_UNUSED(j);
    DC_PUSH(t->arg, v.ref);
    DC_PUSH(a->s->declared, a->declared);
    dc_handle_trace(a->h, t, &v);
    dc_uses_add_argument(&t->uses, a->h, a->what, t->where);
    return DC_OK;
}

static void push_argument(void *ctx, lua_State *L, const dc_sig_type *declared, const char *label)
{
    argument *a = ctx;
    a->h = dc_handle_new_traced(L, a->d);
    a->declared = declared;
    a->label = label;
    a->h->origin = dc_place_intern(a->d, "argument '%s' of %s%s", label, a->fn->name, a->fn->place);
    if (!dc_sig_resolve(&a->s->key.bind, declared, &a->type)) {
        char text[DC_TYPE_TEXT];
        dc_sig_type_print(&a->fn->sig, &a->s->key.bind, declared, text, sizeof text);
        dc_error_raisef(L, a->d, DC_ERR_ARG_KIND, a->fn->name,
                        "argument '%s' of type %s has no size", label, text);
    }
    const int whole = (int)strcspn(label, ".["); /* of a record or a list, "batch.x" */
    a->what = *label != '_' ? dc_place_intern(a->d, "argument '%.*s'", whole, label) : NULL;
    dc_run(L, a->d, trace_argument_body, a);
}

/* ---- results --------------------------------------------------------------------------------- */

static void take_results(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_trace *t,
                         const dc_fn_leaves *v)
{
    for (int i = 0; i < v->n; i++) {
        dc_operand in = {.h = dc_handle_test(L, v->at[i].idx)};
        if (in.h == NULL) {
            in.type = dc_type_scalar(v->at[i].declared->dtype);
            in.bits = dc_args_element(L, d, v->at[i].idx, fn->name, v->at[i].declared->dtype);
        }
        const dc_val result = dc_trace_operand(L, t, &in);
        DC_PUSH_OR_RAISE(L, d, t->result, result);
    }
}

/* ---- what was traced ------------------------------------------------------------------------- */

/* Over the closed function: its graph, and which tensors and cells it is about. */
static uint64_t fingerprint_of(const dc_trace *t, const dc_func *f)
{
    uint64_t h = dc_hash_mix(dc_func_hash(f), t->result.n);
    for (uint32_t i = 0; i < t->captured.n; i++)
        h = dc_hash_mix(h, t->captured.at[i].id);
    for (uint32_t i = 0; i < t->cell.n; i++)
        h = dc_hash_mix(h, t->cell.at[i].cell->id * 2 + t->cell.at[i].is_set);
    return dc_hash_mix(h, t->print.n);
}

/* Of each node by itself, in order: where two traces part. */
static uint64_t step_hash(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    uint64_t h = dc_hash_mix(n->op, n->dtype);
    for (int k = 0; k < n->rank; k++)
        h = dc_hash_mix(h, (uint64_t)n->dim[k]);
    for (int i = 0; i < n->nattr; i++)
        h = dc_hash_mix(h, i < dc_node_bodies(n) ? f->module->body.at[n->attr[i]].hash
                                                 : (uint64_t)n->attr[i]);
    return h;
}

static const char *step_where(dc_dsl *d, const dc_func *f, dc_ref r)
{
    const uint32_t origin = dc_node_at(f, r)->origin;
    return origin != 0 ? dc_name_intern_text(d->rt->names, f->origins.at[origin].where) : NULL;
}

/* Those of a body in front of the loop or branch that it is of. */
static void note_steps(dc_dsl *d, dc_spec *s, const dc_func *f)
{
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        for (int i = 0; i < dc_node_bodies(n); i++)
            note_steps(d, s, dc_body_at(f->module, n->attr[i]));
        DC_PUSH(s->step, ((dc_fn_step){step_hash(f, r), step_where(d, f, r)}));
    }
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Of a variable, which is that of a state that grows or of a name of the signature. */
static int64_t meet_size(void *ctx, int64_t var)
{
    dc_trace *t = ctx;
    dc_cell *c = dc_cell_of_size(t->d->rt, var);
    if (c != NULL)
        dc_trace_cell_of(t, c);
    return dc_extent_bound(var);
}

static void meet_dims(dc_trace *t, const int64_t *dim, int rank)
{
    for (int k = 0; k < rank; k++)
        if (dc_extent_is(dim[k]))
            dc_extent_eval(t->d->rt->extents, dim[k], meet_size, t);
}

/* A state of which only the size is used goes with a call, too. */
static void meet_sizes(dc_trace *t)
{
    dc_extent_list sizes = {0};
    if (t->d->rt->growing == NULL)
        return;
    dc_bounded_sizes(t->f, &t->module->arena, &sizes);
    meet_dims(t, sizes.at, (int)sizes.n);
    for (uint32_t i = 0; i < t->check.n; i++) {
        meet_dims(t, &t->check.at[i].classes, 1);
        meet_dims(t, t->check.at[i].type.dim, t->check.at[i].type.rank);
    }
}

typedef struct compiling {
    dc_dsl *d;
    const dc_fn *fn;
    dc_spec *s;
    bool only_check;
} compiling;

/* What stays when the graphs go: dependencies, types of results, room for a call. */
static void keep_facts(const dc_fn *fn, dc_spec *s)
{
    const dc_trace *t = s->trace;
    for (uint32_t i = 0; i < t->dep.n; i++)
        DC_PUSH(s->dep, t->dep.at[i]);
    s->nleaf = t->arg.n;
    s->nout = t->result.n;
    s->nresult = t->result.n - t->print.n;
    const uint32_t numbers = s->size.n + s->nplace;
    s->arg = dc_xalloc(sizeof *s->arg * (t->arg.n + numbers + t->captured.n + 1));
    dc_spec_set_places(s);
    for (uint32_t i = 0; i < t->captured.n; i++)
        s->arg[t->arg.n + numbers + i] = (dc_arg){.tensor = t->captured.at[i].tensor};
    s->type = dc_xalloc(sizeof *s->type * (t->arg.n + 1));
    s->out = dc_xalloc(sizeof *s->out * (t->result.n + 1));
    if (s->size.n == 0)
        return;
    s->inside = dc_xalloc(sizeof *s->inside * (t->arg.n + 1));
    s->room = dc_xalloc(sizeof *s->room * (t->arg.n + 1));
    s->result = dc_xalloc(sizeof *s->result * (t->result.n + 1));
    for (uint32_t i = 0; i < t->arg.n; i++) {
        s->inside[i] = dc_node_type(t->f, t->arg.at[i]);
        dc_fn_part(fn, s->declared.at[i], &s->inside[i]);
    }
    for (uint32_t i = 0; i < t->result.n; i++) {
        s->result[i] = t->result.at[i].type;
        dc_fn_part(fn, i < s->nresult ? s->out_declared[i] : NULL, &s->result[i]);
    }
}

/* What the script has not said. */
static dc_status finish_trace(dc_job *j, dc_trace *t)
{
    for (uint32_t i = 0; i < t->print.n; i++)
        DC_PUSH(t->result, t->print.at[i]);
    meet_sizes(t);
    return dc_messages_keep_unused(j, t);
}

static dc_status compile_body(dc_job *j, void *arg)
{
    const compiling *a = arg;
    dc_spec *s = a->s;
    dc_trace *t = s->trace;
    DC_TRY(finish_trace(j, t));
    DC_TRY(dc_trace_place(j, t, !a->only_check));
    s->rt = t->rt;
    for (uint32_t i = 0; i < t->cell.n; i++) {
        s->moved += t->cell.at[i].cell->moved;
        if (t->cell.at[i].cell == a->d->generator)
            s->generator = a->d->generator;
    }
    s->in_place = a->d->rt->cells_moved;
    uint32_t *set = DC_NEW_ARRAY(&j->scratch, uint32_t, t->cell.n + 1);
    dc_exec_desc desc = {.name = a->fn->name,
                         .where = t->where,
                         .nfree = t->arg.n + t->captured.n,
                         .nfixed = t->captured.n,
                         .ncell = t->cell.n,
                         .nresult = t->result.n,
                         .nprint = t->print.n,
                         .ncheck = t->check.n,
                         .set = set};
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set)
            set[desc.nset++] = i;
    desc.fn = dc_trace_close(t);
    s->fingerprint = fingerprint_of(t, desc.fn);
    note_steps(a->d, s, desc.fn);
    s->sized = dc_spec_is_split(a->fn, t) ? UINT32_MAX : dc_fn_sized_axes(desc.fn);
    if (dc_bounded_any(desc.fn)) {
        dc_func *lowered;
        dc_bounded_place *place =
            DC_NEW_ARRAY(&j->scratch, dc_bounded_place, desc.fn->result.n + 1);
        for (uint32_t i = 0; i < desc.nset; i++)
            if (t->cell.at[set[i]].cell->growth != NULL)
                place[desc.nresult + i] =
                    (dc_bounded_place){t->cell.at[set[i]].cell->growth->most, desc.nfree + set[i]};
        desc.grows = dc_spec_grows(s, false);
        DC_TRY(dc_bounded_lower_into(j, desc.fn, t->arg.n, place, &s->size, &lowered));
        desc.fn = lowered;
        desc.nfree += s->size.n;
        desc.nsize = s->size.n;
    }
    if (dc_spec_is_split(a->fn, t) && s->rt != a->d->rt)
        return dc_failf(j, DC_ERR_DEVICES, a->fn->name,
                        "values in parts are on %s, and '%s' computes on %s", a->d->rt->device_name,
                        a->fn->name, s->rt->device_name);
    if (dc_spec_is_split(a->fn, t))
        DC_TRY(dc_spec_partition(j, a->fn, s, &desc));
    else
        dc_spec_note_exchanges(j, s, desc.fn);
    keep_facts(a->fn, s);
    if (!a->only_check)
        DC_TRY(dc_exec_start(s->rt, j, &desc, &s->exec));
    dc_trace_settle(t);
    return DC_OK;
}

/* Captured lazy tensors get their values. */
static dc_status realize_captures(dc_dsl *d, dc_job *j, dc_spec *s)
{
    for (uint32_t i = 0; i < s->trace->captured.n; i++) {
        dc_trace_capture *c = &s->trace->captured.at[i];
        if (c->lazy == NULL)
            continue;
        c->lazy->steady = true;
        DC_TRY(dc_lazy_realize(d->rt, j, c->lazy));
        if (c->lazy == NULL) /* by a sink of log lines that called the function */
            continue;
        if (c->lazy->value->store->rt != s->rt) {
            dc_tensor *there;
            DC_TRY(dc_tensor_copy_to(s->rt, j, c->lazy->value, &there));
            c->tensor = there;
        } else
            c->tensor = dc_tensor_retain(c->lazy->value);
        s->arg[s->nleaf + s->size.n + s->nplace + i].tensor = c->tensor;
        dc_lazy_release(c->lazy);
        c->lazy = NULL;
    }
    return DC_OK;
}

typedef struct waiting {
    dc_dsl *d;
    dc_spec *s;
} waiting;

static dc_status wait_exec_body(dc_job *j, void *arg)
{
    const waiting *a = arg;
    return dc_exec_wait(a->s->rt, j, a->s->exec);
}

/* Too little memory, say, is reported by the call of that specialisation: the others can be looked at. */
bool dc_spec_wait(lua_State *L, dc_dsl *d, dc_spec *s)
{
    char why[600];
    waiting a = {d, s};
    dc_job *j = &d->rt->job;
    const dc_status status = dc_run_once(d, wait_exec_body, &a);
    if (status == DC_E_BUG || dc_err_ends(j->err.id))
        dc_error_check(L, d, status);
    s->refused = NULL;
    if (status == DC_OK)
        return true;
    dc_err_render(&j->err, 1, why, sizeof why);
    dc_err_clear(&j->err);
    why[strcspn(why, "\n")] = '\0'; /* tables of what is large are for its calls */
    s->refused = dc_place_name(L, d, "%s", why);
    return false;
}

/* A sink of log lines may call the function while this waits: then the instance is there already.
 */
dc_status dc_spec_ready(dc_dsl *d, dc_job *j, dc_spec *s)
{
    const dc_trace *t = s->trace;
    if (s->generator != NULL && s->generator->rt != s->rt)
        DC_TRY(dc_cell_visit(s->generator, j, s->rt));
    if (s->inst != NULL)
        return DC_OK;
    DC_TRY(dc_exec_wait(s->rt, j, s->exec));
    DC_TRY(realize_captures(d, j, s));
    if (s->inst == NULL)
        DC_TRY(dc_fntune_first(d, j, s));
    if (s->inst != NULL)
        return DC_OK;
    DC_TRY(dc_spec_agree(j, s));
    dc_cell **cell = DC_NEW_ARRAY(&j->scratch, dc_cell *, t->cell.n + 1);
    for (uint32_t i = 0; i < t->cell.n; i++)
        cell[i] = t->cell.at[i].cell;
    DC_TRY(dc_inst_new(s->rt, j, s->exec, cell, &s->inst));
    if (!dc_spec_grows(s, true)) /* whether the sizes change is known when the call returns */
        dc_inst_tell_late(s->inst, s);
    const char *note = s->note;
    s->note = NULL;
    if (note != NULL)
        dc_logf(&d->rt->log, DC_CH_NOTE, "%s, %.0f ms", note,
                (double)(dc_clock_ns() - s->begun_ns) / 1e6);
    return DC_OK;
}

typedef struct keeping {
    dc_spec *s;
    const dc_fn_leaves *v;
} keeping;

static dc_status keep_declared(dc_job *j, void *arg)
{
    const keeping *a = arg;
    DC_UNUSED(j);
    a->s->out_declared = dc_xalloc(sizeof *a->s->out_declared * ((size_t)a->v->n + 1));
    for (int i = 0; i < a->v->n; i++)
        a->s->out_declared[i] = a->v->at[i].declared;
    return DC_OK;
}

/* Static arguments, which begin at idx: what tables among them hold is guarded. */
static void watch_statics(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_trace *t, int idx)
{
    for (int i = 0; i < fn->sig.nparam; i++) {
        if (fn->sig.param[i].type == NULL && lua_type(L, idx + i) == LUA_TTABLE)
            dc_guard_watch(L, d, t, idx + i, fn->sig.param[i].name);
    }
}

/*
 * Ends the scope of a trace, which is at idx, and what is above it. lua_settop of Lua 5.4.3 and 5.4.4 keeps an address
 * of the stack while it closes a value; the stack moves where a finalizer runs meanwhile.
 */
static void pop_scope(lua_State *L, int idx)
{
#if LUA_VERSION_NUM > 504 || LUA_VERSION_RELEASE_NUM >= 50403
    lua_closeslot(L, idx);
#endif
    lua_settop(L, idx - 1);
}

/* Runs the body of the function at fn_idx in the trace of s (on top) and takes its results. */
static void trace_function(lua_State *L, dc_dsl *d, int fn_idx, dc_spec *s)
{
    dc_fn *fn = dc_udata_node(L, fn_idx);
    const int at = lua_gettop(L);
    const uint64_t begun = dc_span_begin(&d->rt->log);
    luaL_checkstack(L, DC_SIG_PARAMS + 24, "a typed function");
    lua_getiuservalue(L, fn_idx, DC_FN_BODY); /* at + 1 */
    const char *where = dc_place_of_function(L, d, at + 1);
    beginning b = {d, fn, s, where};
    dc_collector_make_room(d);
    dc_run(L, d, begin_trace_body, &b);
    push_scope(L, d, fn, s, fn_idx, at + 1); /* at + 2; results from at + 3 on */
    dc_trace_push_refs(L, s->trace);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, at, DC_SPEC_REFS);
    lua_getiuservalue(L, fn_idx, DC_FN_MADE);
    lua_setfield(L, -2, "made");
    lua_pop(L, 1);
    lua_pushvalue(L, at + 1);
    argument a = {.d = d, .fn = fn, .s = s};
    dc_fn_push_arguments(L, d, fn, fn_idx, &s->key, push_argument, &a);
    watch_statics(L, d, fn, s->trace, lua_gettop(L) - fn->sig.nparam + 1);
    lua_call(L, fn->sig.nparam, LUA_MULTRET);
    dc_fn_leaves *v = lua_newuserdatauv(L, sizeof *v, 0);
    lua_insert(L, at + 3);
    const int n = lua_gettop(L) - at - 3;
    dc_sig_bind bind = s->key.bind; /* results may bind more; that is no part of the key */
    dc_fn_take_results(L, d, fn, &bind, at + 4, n, v, s->out_shape, &s->nout_shape);
    take_results(L, d, fn, s->trace, v);
    keeping k = {s, v};
    dc_run(L, d, keep_declared, &k);
    lua_getiuservalue(L, at, DC_SPEC_REFS);
    dc_guard_end(L, d, s->trace, fn->name, lua_gettop(L));
    s->prints = lua_getfield(L, -1, "prints") == LUA_TTABLE && lua_rawlen(L, -1) > 0;
    lua_setiuservalue(L, at, DC_SPEC_PRINTS);
    dc_trace_commit(L, lua_gettop(L));
    pop_scope(L, at + 2);
    lua_settop(L, at);
    if (begun != 0) {
        char text[160];
        snprintf(text, sizeof text, "trace %s", fn->name);
        dc_span_end(&d->rt->log, begun, DC_SPAN_TRACE, text);
    }
}

typedef struct telling {
    dc_dsl *d;
    dc_fn *fn;
    dc_spec *s;
} telling;

static void tell_note(void *arg, const dc_use *use)
{
    const telling *a = arg;
    dc_logf(&a->d->rt->log, DC_CH_NOTE, "%s, %s: nothing uses the value of %s%s", a->fn->name,
            use->where, use->op, use->test ? "; as a condition a tensor is always true" : "");
}

static dc_status tell_body(dc_job *j, void *arg)
{
    telling *a = arg;
    const dc_uses_watch *w = a->d->watch;
    DC_UNUSED(j);
    if (w != NULL)
        dc_uses_end(&a->s->trace->uses, &a->fn->seen, w->tell, w->arg);
    else
        dc_uses_end(&a->s->trace->uses, &a->fn->seen, tell_note, a);
    return DC_OK;
}

dc_spec *dc_spec_make(lua_State *L, dc_dsl *d, int fn_idx, const dc_fn_key *key, bool only_check)
{
    dc_fn *fn = dc_udata_node(L, fn_idx);
    fn->traced = true;
    dc_spec *s = dc_spec_push(L, d, key);
    trace_function(L, d, fn_idx, s);
    telling t = {d, fn, s};
    dc_run(L, d, tell_body, &t);
    compiling c = {d, fn, s, only_check};
    dc_run(L, d, compile_body, &c);
    dc_guard_tell(d, s->guards, fn->name, fn->place);
    return s;
}

/* ---- the second trace ------------------------------------------------------------------------ */

typedef struct comparing {
    dc_dsl *d;
    dc_spec *again;
    bool steps;
} comparing;

static dc_status compare_traces_body(dc_job *j, void *arg)
{
    const comparing *a = arg;
    dc_trace *t = a->again->trace;
    DC_TRY(finish_trace(j, t));
    const dc_func *f = dc_trace_close(t);
    a->again->fingerprint = fingerprint_of(t, f);
    if (a->steps)
        note_steps(a->d, a->again, f);
    for (uint32_t i = 0; i < t->dep.n; i++)
        DC_PUSH(a->again->dep, t->dep.at[i]);
    return DC_OK;
}

/* The first line of the script that made something else the second time; NULL unknown. */
static const char *parting(const dc_spec *a, const dc_spec *b)
{
    for (uint32_t i = 0; i < a->step.n || i < b->step.n; i++) {
        if (i >= a->step.n)
            return b->step.at[i].where;
        if (i >= b->step.n || a->step.at[i].hash != b->step.at[i].hash)
            return a->step.at[i].where;
    }
    return NULL;
}

static DC_NORETURN void raise_other_graph(lua_State *L, dc_dsl *d, const dc_fn *fn,
                                          const dc_spec *s, const dc_spec *again)
{
    const char *where = parting(s, again);
    const char *text = lua_pushfstring(
        L, "two traces of '%s' differ%s%s, and nothing that it captures was seen to change",
        fn->name, where != NULL ? ", first at " : "", where != NULL ? where : "");
    dc_error_fact(L, d, DC_ERR_RETRACE, &(dc_fact){.word = {text}}, NULL);
}

/* The newer trace saw the values of now: its guards and dependencies replace the older ones. */
static void take_over(lua_State *L, int spec_idx, int again_idx, dc_spec *s, dc_spec *again)
{
    dc_guard_inherit(again->guards, s->guards);
    dc_guard_free(s->guards);
    s->guards = again->guards;
    again->guards = NULL;
    DC_VEC_FREE(s->dep);
    s->dep.at = again->dep.at;
    s->dep.n = again->dep.n;
    s->dep.cap = again->dep.cap;
    again->dep.at = NULL;
    again->dep.n = again->dep.cap = 0;
    lua_getiuservalue(L, again_idx, DC_SPEC_REFS);
    lua_setiuservalue(L, spec_idx, DC_SPEC_REFS);
    DC_VEC_FREE(s->step);
    s->retraces++;
}

void dc_spec_retrace(lua_State *L, dc_dsl *d, int fn_idx, int spec_idx)
{
    const dc_fn *fn = dc_udata_node(L, fn_idx);
    dc_spec *s = dc_udata_node(L, spec_idx);
    spec_idx = lua_absindex(L, spec_idx);
    const int top = lua_gettop(L);
    dc_spec *again = dc_spec_push(L, d, &s->key);
    trace_function(L, d, fn_idx, again);
    comparing c = {d, again, s->step.n > 0};
    dc_run(L, d, compare_traces_body, &c);
    if (again->fingerprint == s->fingerprint) {
        take_over(L, spec_idx, top + 1, s, again);
        dc_spec_drop(again);
        lua_settop(L, top);
        return;
    }
    lua_getiuservalue(L, spec_idx, DC_SPEC_REFS);
    dc_guard_forget(s->guards);
    const int changed = dc_guard_blame(L, d, s->guards, -1);
    if (changed >= 0)
        dc_guard_raise(L, d, s->guards, -1, changed, fn->name);
    raise_other_graph(L, d, fn, s, again);
}

static const dc_binding of_tracing[] = {
    {"__close", l_scope_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_tracing_methods = DC_BINDINGS(of_tracing);
