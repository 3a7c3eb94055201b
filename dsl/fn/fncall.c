/*
 * Calls of typed functions. A call binds sizes, finds the specialisation for them or makes one, asks
 * whether what it captured is still the same, and runs it. A call like the one before (the same types,
 * nothing static changed) finds its specialisation by comparing types.
 *
 * A typed function called while another is traced is checked and becomes part of that one.
 */
#include "core/base/spans.h"
#include "core/runtime/devices.h"
#include "dsl/base/args.h"
#include "dsl/base/late.h"
#include "dsl/base/ranks.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"
#include "dsl/ops/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the specialisation ---------------------------------------------------------------------- */

bool dc_fn_same_key(const dc_fn_key *a, const dc_fn_key *b)
{
    return memcmp(a->bind.size, b->bind.size, sizeof a->bind.size) == 0 &&
           a->bind.rest == b->bind.rest &&
           (a->bind.rest <= 0 || memcmp(a->bind.rest_size, b->bind.rest_size,
                                        sizeof *a->bind.rest_size * (size_t)a->bind.rest) == 0) &&
           a->nshape == b->nshape &&
           memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->nshape) == 0;
}

/* Has none of its cells been moved to another device? */
static bool is_in_place(dc_spec *s)
{
    const uint64_t now = s->d->rt->cells_moved;
    uint64_t moved = 0;
    if (s->in_place == now)
        return true;
    for (uint32_t i = 0; i < s->trace->cell.n; i++)
        moved += s->trace->cell.at[i].cell->moved;
    if (moved != s->moved)
        return false;
    s->in_place = now;
    return true;
}

bool dc_fn_still_holds(dc_spec *s)
{
    if (!is_in_place(s))
        return false;
    for (uint32_t i = 0; i < s->dep.n; i++)
        if (s->dep.at[i].now->number != s->dep.at[i].then.number)
            return false;
    return true;
}

static bool same_type(const dc_type *a, const dc_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dim, b->dim, sizeof *a->dim * a->rank) == 0 &&
           memcmp(a->name, b->name, sizeof *a->name * a->rank) == 0;
}

/* Does it compute where a call with this key does? One without tensors does where the context does, or what it captures is. */
static bool same_device(const dc_spec *s, const dc_rt *rt)
{
    return s->rt == rt || (rt == NULL && (s->key.rt == NULL || s->rt == s->d->rt));
}

/* The same of the arguments of a call whose types are those of the call before. */
static bool lie_as_last(lua_State *L, const dc_fn_leaves *v, const dc_spec *s)
{
    bool tensors = false;
    for (int i = 0; i < v->n; i++) {
        const dc_handle *h = dc_handle_test(L, v->at[i].idx);
        if (h != NULL && dc_handle_rt(h) != s->rt)
            return false;
        tensors = tensors || (h != NULL && !dc_handle_roams(h));
    }
    return tensors || same_device(s, NULL);
}

/* A leaf whose type is that of the same one of the call before. Numbers stand for any scalar. */
static bool take_like_last(lua_State *L, const dc_spec *s, const dc_sig_type *t, int idx,
                           dc_fn_leaves *v)
{
    const dc_type *last = &s->type[v->n];
    const dc_handle *h = dc_handle_test(L, idx);
    const bool number = h == NULL && last->rank == 0 && dc_args_is_scalar(L, idx) &&
                        !dc_dtype_is_complex((dc_dtype)last->dtype);
    if (!number &&
        (h == NULL || h->kind == DC_HANDLE_CLOSED || !same_type(dc_handle_type(h), last)))
        return false;
    *dc_fn_leaves_add(L, v) = (dc_fn_taken){idx, t, NULL};
    return true;
}

/*
 * The same of all leaves of an argument, and of its fields, of which there are no others. No function of the script is
 * called, which might call this one: a table with a metatable is none.
 */
static bool all_like_last(lua_State *L, const dc_spec *s, const dc_sig_type *t, int idx,
                          dc_fn_leaves *v)
{
    int n = 0;
    if (t->kind == DC_SHAPE_TENSOR)
        return take_like_last(L, s, t, idx, v);
    if (lua_type(L, idx) != LUA_TTABLE || lua_getmetatable(L, idx))
        return false;
    luaL_checkstack(L, t->nfield + 20, "arguments");
    for (int f = 0; f < t->nfield; f++) {
        lua_pushstring(L, t->field[f].name);
        lua_rawget(L, idx);
        if (!all_like_last(L, s, t->field[f].type, lua_gettop(L), v))
            return false;
    }
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        n++;
    return n == t->nfield;
}

/* Are the arguments like those of the call before? Then they are taken apart. */
static bool like_last(lua_State *L, const dc_fn *fn, dc_fn_leaves *v)
{
    dc_spec *s = fn->last;
    const int top = lua_gettop(L);
    if (!fn->fixed || s == NULL || s->calls == 0)
        return false;
    dc_fn_leaves_begin(v);
    bool like = true;
    for (int i = 0; like && i < fn->sig.nparam; i++)
        like = all_like_last(L, s, fn->sig.param[i].type, i + 2, v);
    if (like && dc_rt_has_others(s->d->rt))
        like = lie_as_last(L, v, s);
    like = like && dc_fn_still_holds(s);
    if (!like)
        lua_settop(L, top);
    return like;
}

/* Of "lr 0.1 -> 0.05": a static number that changes is better an argument. Pushes it, or NULL. */
static const char *static_hint(lua_State *L, const dc_fn *fn, const char *why)
{
    for (int i = 0; i < fn->sig.nparam; i++) {
        const char *name = fn->sig.param[i].name;
        const size_t n = strlen(name);
        if (fn->sig.param[i].type == NULL && strncmp(why, name, n) == 0 && why[n] == ' ' &&
            (isdigit((unsigned char)why[n + 1]) || why[n + 1] == '-'))
            return lua_pushfstring(L,
                                   "%s without a type is compiled for each value; '%s: f32[]' in "
                                   "the signature takes any",
                                   name, name);
    }
    return NULL;
}

static DC_NORETURN void refuse_more(lua_State *L, dc_dsl *d, const dc_fn *fn, const char *why,
                                    int n)
{
    const char *text = lua_pushfstring(
        L, "%d specialisations are compiled, which is its limit; the next one: %s", n, why);
    const char *hint = NULL;
    for (int v = 0; v < fn->sig.nvar && hint == NULL; v++) {
        const size_t length = strlen(fn->sig.var[v]);
        if (strncmp(why, fn->sig.var[v], length) == 0 && why[length] == ' ' &&
            fn->sig.most[v] < 0 && fn->sig.size[v] < 0)
            hint = lua_pushfstring(L,
                                   "declare '%s <= 512': one compilation for every size up to "
                                   "the bound; { limit = n } allows more",
                                   fn->sig.var[v]);
    }
    if (hint == NULL)
        hint = static_hint(L, fn, why);
    dc_error_fact(L, d, DC_ERR_LIMIT, &(dc_fact){.op = fn->name, .word = {text}},
                  &(dc_blame){.hint = hint});
}

/* Of the specialisations in the list the one that differs least from the key; of equal ones the last called. */
static const dc_spec *find_nearest(lua_State *L, const dc_fn *fn, int list, const dc_fn_key *key)
{
    const dc_spec *nearest = fn->last;
    uint64_t least = nearest != NULL ? dc_spec_distance(&fn->sig, nearest, key) : UINT64_MAX;
    const int n = (int)lua_rawlen(L, list);
    for (int i = 1; i <= n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, list, i);
        const dc_spec *s = dc_spec_at(L, -1);
        const uint64_t distance = dc_spec_distance(&fn->sig, s, key);
        if (nearest == NULL || distance < least) {
            nearest = s;
            least = distance;
        }
    }
    return nearest;
}

/* Adds the specialisation on top to the list. */
void dc_fn_add_spec(lua_State *L, int list, const dc_spec *s)
{
    lua_pushvalue(L, -1);
    lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, list, s);
}

/* Specialisations some of whose cells were moved are never called again. The list is on top. */
static void drop_moved(lua_State *L, const dc_dsl *d, dc_fn *fn)
{
    const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
    int kept = 0;
    for (int i = 1; i <= n && d->rt->cells_moved > 0; i++) {
        lua_rawgeti(L, list, i);
        dc_spec *s = dc_spec_at(L, -1);
        if (is_in_place(s)) {
            lua_rawseti(L, list, ++kept);
            continue;
        }
        if (fn->last == s)
            fn->last = NULL;
        lua_pop(L, 1);
        lua_pushnil(L);
        lua_rawsetp(L, list, s);
    }
    for (int i = kept + 1; i <= n && d->rt->cells_moved > 0; i++) {
        lua_pushnil(L);
        lua_rawseti(L, list, i);
    }
}

/*
 * Those of the list for the same sizes that nothing has called since they were traced where the function was defined: what
 * they captured has changed since, as that of a network that goes to evaluation. Their compilation would delay the
 * one that is needed now.
 */
static void postpone_uncalled(lua_State *L, int list, const dc_fn_key *key)
{
    const int n = (int)lua_rawlen(L, list);
    for (int i = 1; i <= n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, list, i);
        dc_spec *s = dc_spec_at(L, -1);
        if (s->calls == 0 && s->inst == NULL && s->exec != NULL && dc_fn_same_key(&s->key, key))
            dc_exec_postpone(s->rt, s->exec);
    }
}

dc_spec *dc_fn_find(lua_State *L, dc_dsl *d, dc_fn *fn, const dc_fn_key *key, bool asked)
{
    char why[300];
    dc_fn_push_specs(L, 1);
    const int list = lua_gettop(L);
    drop_moved(L, d, fn);
    int n = (int)lua_rawlen(L, list), here = 0; /* on this device */
    for (int i = 1; i <= n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, list, i);
        dc_spec *s = dc_spec_at(L, -1);
        here += same_device(s, key->rt);
        if (dc_fn_same_key(&s->key, key) && same_device(s, key->rt) && dc_fn_still_holds(s)) {
            lua_replace(L, list);
            return s;
        }
    }
    if (n > 0)
        dc_spec_difference(L, 1, find_nearest(L, fn, list, key), key, why, sizeof why);
    if (here >= fn->limit && !(fn->bounded && dc_fn_exact(d)))
        refuse_more(L, d, fn, why, here);
    const uint64_t begun = dc_clock_ns();
    if (!asked)
        postpone_uncalled(L, list, key);
    dc_spec *s = dc_spec_make(L, d, 1, key, false);
    s->begun_ns = begun;
    s->why = n > 0 ? dc_place_intern(d, "%s", why) : NULL;
    if (n > 0 && !asked)
        s->note =
            dc_place_intern(d, "%s%s: specialisation %d: %s", fn->name, fn->place, n + 1, why);
    const char *hint = n == 2 && !asked ? static_hint(L, fn, why) : NULL; /* two may be meant */
    if (hint != NULL) {
        dc_logf(&d->rt->log, DC_CH_NOTE, "%s%s: %s", fn->name, fn->place, hint);
        lua_pop(L, 1);
    }
    dc_fn_add_spec(L, list, s);
    lua_replace(L, list);
    return s;
}

/*
 * What it captured, against now. The specialisation is on top. The second call traces again, for what no guard sees;
 * where nothing but the library ran there is no such thing, and all guards are asked instead.
 */
static void ask_guards(lua_State *L, dc_dsl *d, dc_spec *s)
{
    const int spec = lua_gettop(L);
    dc_udata_table(L, spec, DC_SPEC_REFS);
    const bool second = s->calls == 1, again = second && dc_guard_foreign(s->guards);
    const dc_guard_look look =
        second && !again ? DC_LOOK_ALL : dc_guard_look_of(s->guards, s->calls);
    const bool changed = dc_guard_changed(L, d, s->guards, spec + 1, look) >= 0;
    if (changed)
        dc_guard_count(L, d, s->guards, spec + 1, look);
    lua_settop(L, spec);
    if (!changed && !again)
        return;
    const uint64_t calls = s->calls;
    dc_spec_retrace(L, d, 1, spec);
    dc_guard_tell_quiet(d, s->guards, s->trace->name);
    if (changed && calls > 1 && s->retraces == 64)
        dc_logf(
            &d->rt->log, DC_CH_NOTE,
            "%s was traced again 64 times since a captured value changes at each call; its graph "
            "does not depend on it",
            s->trace->name);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct calling {
    dc_dsl *d;
    dc_spec *s;
    dc_handle **out;
    dc_tensor **made;
    dc_fault fault;
} calling;

static dc_status call_body(dc_job *j, void *arg)
{
    calling *a = arg;
    dc_spec *s = a->s;
    a->fault = (dc_fault){.check = -1};
    DC_TRY(dc_spec_ready(a->d, j, s));
    DC_TRY(dc_spec_agree_values(j, s));
    DC_TRY(dc_spec_agree_sizes(j, s));
    DC_TRY(dc_spec_pad(s, j));
    int64_t *rows;
    dc_trim room;
    DC_TRY(dc_spec_growth(s, j, &rows));
    DC_TRY(dc_spec_reserve(s, j, s->out, &room));
    DC_TRY(dc_inst_call(s->inst, j, s->arg, a->made, &a->fault));
    dc_spec_grew(s, rows);
    DC_TRY(dc_spec_trim(s, j, s->out, &room, a->made));
    for (uint32_t i = 0; i < s->nout; i++) {
        dc_type *made = &a->made[i]->type;
        if (s->out[i].rank < made->rank) { /* the parts of complex numbers */
            made->dtype = s->out[i].dtype;
            made->rank--;
        }
        memcpy(made->name, s->out[i].name, sizeof s->out[i].name);
        dc_handle_fill(a->out[i], a->made[i]);
    }
    return DC_OK;
}

typedef struct showing {
    dc_handle *cell, *out;
} showing;

static dc_status show_cell_body(dc_job *j, void *arg)
{
    const showing *a = arg;
    DC_TRY(dc_cell_check(a->cell->cell, j, NULL, true));
    dc_handle_fill(a->out, dc_cell_show(a->cell->cell));
    return DC_OK;
}

/* A cell among the arguments becomes its value; a lazy tensor gets one. */
static void show_cell(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx)
{
    dc_handle *h = dc_handle_test(L, idx);
    if (h != NULL && h->kind == DC_HANDLE_LAZY)
        dc_handle_realize(L, d, h);
    if (h == NULL || h->kind != DC_HANDLE_CELL)
        return;
    showing a = {h, dc_handle_new(L, d)};
    dc_handle_check(L, d, idx, fn->name); /* a finalizer may have closed it */
    a.out->origin = h->origin;
    dc_run(L, d, show_cell_body, &a);
    lua_replace(L, idx);
}

static DC_NORETURN void refuse_leaked(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_handle *h)
{
    const dc_operand in = {.h = h, .role = "of", .type = *dc_handle_type(h)};
    dc_error_fact(L, d, DC_ERR_LEAKED, &(dc_fact){.op = fn->name, .word = {h->fn}},
                  &(dc_blame){.in = &in, .n = 1});
}

/* Between this and the call nothing may allocate in Lua: a finalizer may call the same function. */
static void set_argument(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_type *declared,
                         int idx, dc_arg *arg)
{
    if (dc_handle_test(L, idx) == NULL) {
        *arg = (dc_arg){.bits = dc_args_element(L, d, idx, fn->name, declared->dtype)};
        return;
    }
    dc_handle *h = dc_handle_check(L, d, idx, fn->name);
    *arg = (dc_arg){.tensor = dc_handle_held(h)};
    if (arg->tensor == NULL)
        refuse_leaked(L, d, fn, h);
}

static void set_arguments(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s,
                          const dc_fn_leaves *v)
{
    for (int i = 0; i < v->n; i++)
        set_argument(L, d, fn, v->at[i].declared, v->at[i].idx, &s->arg[i]);
}

void dc_fn_raise_fault(lua_State *L, dc_dsl *d, const dc_spec *s, const dc_fault *fault)
{
    const dc_trace_check c = dc_spec_check(s, (uint32_t)fault->check);
    dc_data_check_raise(L, d, &c, &(dc_found){fault->value, fault->position, NULL, NULL});
}

void dc_fn_raise_late(lua_State *L, dc_dsl *d, const dc_outcome *o)
{
    const dc_spec *s = o->owner;
    dc_fault fault;
    dc_inst_late_fault(o, &fault);
    const char *hint = lua_pushfstring(
        L, "in a call of '%s' before this line; DEEPC_CHECKS=now stops there", o->name);
    const dc_trace_check c = dc_spec_check(s, (uint32_t)fault.check);
    dc_data_check_raise(L, d, &c, &(dc_found){fault.value, fault.position, NULL, hint});
}

/* The types that results have for this caller, and those of a call like this one. */
static void name_results(const dc_fn *fn, dc_spec *s, const dc_fn_key *key)
{
    for (uint32_t i = 0; i < s->nresult; i++) {
        dc_fn_outside(fn, &key->bind, s->out_declared[i], &s->trace->result.at[i].type, &s->out[i]);
        dc_fn_part(fn, s->out_declared[i], &s->out[i]);
    }
    for (uint32_t i = s->nresult; i < s->nout; i++) /* printed under the names inside */
        s->out[i] = s->trace->result.at[i].type;
}

dc_handle *dc_fn_new_result(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    dc_handle *h = dc_handle_new(L, d);
    h->origin = fn->origin;
    h->compiled = fn->name;
    return h;
}

dc_status dc_fn_act(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s, const dc_fn_leaves *v,
                    dc_run_body *body, void *arg)
{
    for (bool again = false;; again = true) {
        set_arguments(L, d, fn, s, v);
        const dc_status status = dc_run_once(d, body, arg);
        if (status != DC_E_NOMEM || again)
            return status;
        dc_collector_run(L, d); /* a finalizer may call the same function */
    }
}

static int run_spec(lua_State *L, dc_dsl *d, const dc_fn *fn, dc_spec *s, const dc_fn_leaves *v)
{
    calling a = {.d = d, .s = s};
    luaL_checkstack(L, (int)s->nout + 16, "a call");
    if (s->nout > DC_SIG_RESULTS) {
        a.out = lua_newuserdatauv(L, s->nout * sizeof *a.out, 0);
        a.made = lua_newuserdatauv(L, s->nout * sizeof *a.made, 0);
    }
    for (uint32_t i = 0; i < s->trace->cell.n && d->mapping != NULL; i++)
        if (s->trace->cell.at[i].is_set)
            dc_param_refuse_mapped(L, d, fn->name, s->trace->cell.at[i].cell);
    dc_handle *out[DC_SIG_RESULTS];
    dc_tensor *made[DC_SIG_RESULTS];
    dc_late_check(L, d, false);
    a.out = a.out != NULL ? a.out : out;
    a.made = a.made != NULL ? a.made : made;
    const int first = lua_gettop(L) + 1;
    for (uint32_t i = 0; i < s->nout; i++) {
        a.out[i] = dc_fn_new_result(L, d, fn);
    }
    const dc_status status = dc_fn_act(L, d, fn, s, v, call_body, &a);
    if (status != DC_OK && a.fault.check >= 0)
        dc_fn_raise_fault(L, d, s, &a.fault);
    dc_error_check(L, d, status);
    s->calls++;
    return first;
}

int dc_fn_give(lua_State *L, const dc_fn *fn, const dc_spec *s, int spec_idx, int first)
{
    if (s->prints) {
        lua_getiuservalue(L, spec_idx, DC_SPEC_PRINTS);
        dc_dim_print_show(L, lua_gettop(L), first + (int)s->nresult);
        lua_pop(L, 1);
    }
    if (s->nresult == 1 && s->out[0].dtype == DC_BOOL && s->out[0].rank == 0)
        dc_uses_unread(dc_handle_look(L, first), fn->name);
    if (s->nout == s->nresult && fn->flat_results)
        return (int)s->nresult;
    return dc_fn_push_results(L, fn, s->out_shape, first, (int)s->nresult);
}

/* ---- inside another trace -------------------------------------------------------------------- */

const dc_utype dc_frame_type = {.name = "deepc.frame"};

typedef struct inner {
    dc_uhead head;
    dc_trace *trace;
    dc_frame frame;
    dc_sig_bind bind;
} inner;

static int l_frame_close(lua_State *L)
{
    inner *g = dc_udata_check(L, 1, &dc_frame_type);
    if (g->trace != NULL && g->trace->frame == &g->frame)
        g->trace->frame = g->frame.outer;
    g->trace = NULL;
    return 0;
}

/* A recursion that a static parameter ends is fine; Lua's own limit is near 200 C calls. */
static void check_depth(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    enum { DEEPEST = 50 };
    int depth = 0;
    for (const dc_frame *f = d->trace->frame; f != NULL; f = f->outer)
        depth += f->sig == &fn->sig;
    if (depth > DEEPEST)
        dc_error_raisef(L, d, DC_ERR_REENTER, fn->name,
                        "it calls itself more than %d deep while it is traced", DEEPEST);
}

static inner *push_frame(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_bind *b)
{
    check_depth(L, d, fn);
    inner *g = dc_udata_new(L, &dc_frame_type, sizeof *g, 0);
    g->trace = d->trace;
    g->bind = *b;
    g->frame = (dc_frame){&fn->sig, &g->bind, fn->name, L, d->trace->frame};
    dc_trace_hold(L, d->trace, lua_gettop(L));
    lua_pushthread(L);
    dc_trace_hold(L, d->trace, lua_gettop(L));
    lua_pop(L, 1);
    lua_toclose(L, -1);
    d->trace->frame = &g->frame;
    return g;
}

typedef struct resharding {
    dc_trace *trace;
    dc_sharding s;
    dc_val *v;
} resharding;

static dc_status reshard_body(dc_job *j, void *arg)
{
    const resharding *a = arg;
    int64_t attr[DC_MESH_AXES];
    DC_UNUSED(j);
    for (int k = 0; k < DC_MESH_AXES; k++)
        attr[k] = a->s.dim[k];
    a->v->ref = dc_graph_make(a->trace->f, DC_OP_RESHARD, &a->v->ref, 1, attr, DC_MESH_AXES, NULL);
    return DC_OK;
}

/*
 * Pushes the tensor or number at idx as a traced tensor of this type: its names are what changes, and how it lies on the
 * ranks, where the declared type says so.
 */
static void push_renamed(lua_State *L, dc_dsl *d, const dc_fn *fn, int idx, const dc_type *type,
                         const dc_sig_type *declared, const char *origin)
{
    const char *op = fn->name;
    dc_operand in = {.h = dc_handle_test(L, idx), .type = *type};
    if (in.h == NULL)
        in.bits = dc_args_element(L, d, idx, op, (dc_dtype)type->dtype);
    dc_handle *to = dc_handle_new_traced(L, d);
    to->origin = origin != NULL || in.h == NULL ? origin : in.h->origin;
    dc_val v = dc_trace_operand(L, d->trace, &in);
    memcpy(v.type.name, type->name, sizeof v.type.name);
    resharding a = {.trace = d->trace, .v = &v};
    dc_type part;
    if (dc_fn_sharding(fn, declared, type->rank, &a.s)) {
        dc_ranks_check(L, d, op, &v.type, &a.s, &part);
        dc_run(L, d, reshard_body, &a);
    }
    dc_handle_trace(to, d->trace, &v);
}

typedef struct inlining {
    dc_dsl *d;
    const dc_fn *fn;
    const dc_fn_leaves *v;
    const dc_sig_bind *bind;
    int next;
} inlining;

static void push_inner(void *ctx, lua_State *L, const dc_sig_type *declared, const char *label)
{
    inlining *a = ctx;
    dc_type type;
    if (!dc_sig_resolve(a->bind, declared, &type))
        DC_BUG("argument '%s' of '%s' has no size", label, a->fn->name);
    const char *origin =
        dc_place_intern(a->d, "argument '%s' of %s%s", label, a->fn->name, a->fn->place);
    push_renamed(L, a->d, a->fn, a->v->at[a->next++].idx, &type, declared, origin);
}

/* Results under the caller's names, from `first` on. */
static void rename_results(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_bind *b,
                           const dc_fn_leaves *v)
{
    luaL_checkstack(L, v->n + 8, "results");
    for (int i = 0; i < v->n; i++) {
        const dc_handle *h = dc_handle_test(L, v->at[i].idx);
        dc_type out;
        if (h != NULL)
            dc_fn_outside(fn, b, v->at[i].declared, dc_handle_type(h), &out);
        else
            out = dc_type_scalar(v->at[i].declared->dtype);
        push_renamed(L, d, fn, v->at[i].idx, &out, v->at[i].declared, NULL);
    }
}

/* Part of the function being traced: its body, between two checks. */
static int inline_call(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_fn_leaves *v,
                       const dc_fn_key *key)
{
    int64_t shape[DC_FN_SHAPE];
    int nshape;
    inner *g = push_frame(L, d, fn, &key->bind);
    inlining a = {d, fn, v, &key->bind, 0};
    const int base = lua_gettop(L);
    dc_fn_leaves *results = lua_newuserdatauv(L, sizeof *results, 0);
    lua_getiuservalue(L, 1, DC_FN_BODY);
    dc_fn_push_arguments(L, d, fn, 1, key, push_inner, &a);
    lua_call(L, fn->sig.nparam, LUA_MULTRET);
    const int n = lua_gettop(L) - base - 1;
    dc_fn_take_results(L, d, fn, &g->bind, base + 2, n, results, shape, &nshape);
    const int first = lua_gettop(L) + 1;
    rename_results(L, d, fn, &g->bind, results);
    return dc_fn_push_results(L, fn, shape, first, results->n);
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Optional arguments at the end may be left out. */
static void check_count(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    const int given = lua_gettop(L) - 1, most = fn->sig.nparam;
    int least = most;
    while (least > 0 && fn->sig.param[least - 1].optional)
        least--;
    if (given < least || given > most) {
        const bool empty = given > most && lua_isnil(L, -1);
        const dc_blame b = {
            .hint =
                "the last one is nil: a variable that is not set, or a function without a result"};
        dc_error_fact(L, d, DC_ERR_ARG_COUNT, &(dc_fact){.op = fn->name, .num = {given, most}},
                      empty ? &b : NULL);
    }
    lua_settop(L, most + 1);
}

static void check_bound(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_fn_leaves *v,
                        const dc_sig_bind *b)
{
    for (int i = 0; i < v->n; i++) {
        dc_type t;
        if (dc_sig_resolve(b, v->at[i].declared, &t))
            continue;
        char text[DC_TYPE_TEXT];
        dc_sig_type_print(&fn->sig, b, v->at[i].declared, text, sizeof text);
        dc_error_raisef(L, d, DC_ERR_ARG, fn->name, "no argument tells the sizes of '%s': %s",
                        v->at[i].label, text);
    }
}

/* A call like no other before it: binds and finds. Leaves the specialisation on the stack. */
static dc_spec *look_up(lua_State *L, dc_dsl *d, dc_fn *fn, dc_fn_leaves *v, dc_fn_key *key)
{
    check_bound(L, d, fn, v, &key->bind);
    return dc_fn_find(L, d, fn, key, false);
}

static void remember_types(lua_State *L, dc_fn *fn, dc_spec *s, const dc_fn_leaves *v)
{
    for (int i = 0; i < v->n; i++) {
        const dc_handle *h = dc_handle_test(L, v->at[i].idx);
        s->type[i] = h != NULL ? *dc_handle_type(h) : dc_type_scalar(v->at[i].declared->dtype);
    }
    fn->last = s;
}

/* Tensors that were made of tables, or by rule, get to the device of the call; others are there. */
static void bring_leaves(lua_State *L, dc_dsl *d, const dc_spec *s, const dc_fn_leaves *v)
{
    for (int i = 0; i < v->n; i++) {
        dc_handle *h = dc_handle_test(L, v->at[i].idx);
        if (h == NULL || dc_handle_rt(h) == NULL || dc_handle_rt(h) == s->rt)
            continue;
        dc_handle *there = dc_handle_new(L, d);
        there->origin = h->origin;
        dc_handle_copy(L, d, h, s->rt, there);
        lua_replace(L, v->at[i].idx);
    }
}

dc_spec *dc_fn_begin(lua_State *L, dc_dsl *d, dc_fn *fn, dc_fn_leaves *v, int *spec_idx)
{
    dc_fn_key key;
    dc_spec *s;
    if (like_last(L, fn, v)) {
        s = fn->last;
        s->head.dying = false;
        dc_fn_push_specs(L, 1);
        lua_rawgetp(L, -1, s);
    } else {
        dc_fn_take(L, d, fn, 1, v, &key);
        dc_sig_begin(&fn->sig, &key.bind);
        dc_fn_lies(L, d, fn, v, &key);
        dc_fn_bind(L, d, fn, v, &key);
        const dc_sig_bind actual = key.bind;
        dc_fn_bound(L, d, fn, &key, true);
        s = look_up(L, d, fn, v, &key);
        remember_types(L, fn, s, v);
        name_results(fn, s, &key);
        dc_spec_sizes(s, &actual);
    }
    *spec_idx = lua_gettop(L);
    ask_guards(L, d, s);
    dc_spec_refuse_growing(L, d, fn, s);
    for (int i = 0; i < v->n; i++)
        show_cell(L, d, fn, v->at[i].idx);
    if (dc_rt_has_others(d->rt))
        bring_leaves(L, d, s, v);
    return s;
}

/* A function inside another one takes sizes and codes as they are. */
static void check_inner_bounds(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_bind *b)
{
    dc_fn_key key = {.bind = *b};
    dc_fn_bound(L, d, fn, &key, false);
}

void dc_fn_check_count(lua_State *L, dc_dsl *d, const dc_fn *fn)
{
    check_count(L, d, fn);
    luaL_checkstack(L, DC_SIG_RESULTS + 24, "a call");
}

/* A trace has calls with their numbers. */
static void tell_call(const dc_dsl *d, const dc_fn *fn, uint64_t begun)
{
    if (begun == 0)
        return;
    const dc_span_name name = {
        .kind = DC_SPAN_CALL, .text = fn->name, .where = fn->place + strspn(fn->place, ", ")};
    static const dc_span_name memory = {.kind = DC_SPAN_MEMORY, .text = "memory"};
    dc_span_end_of(&d->rt->log, begun, &name, fn->called);
    dc_span_end_of(&d->rt->log, dc_clock_ns(), &memory, (int64_t)d->rt->first->stats.bytes_live);
}

int dc_fn_call(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn *fn = dc_fn_check(L, 1);
    dc_fn_leaves v;
    int spec;
    dc_fn_check_count(L, d, fn);
    if (dc_trace_here(L, d) != NULL) {
        dc_fn_key key;
        dc_fn_take(L, d, fn, 1, &v, &key);
        dc_sig_begin(&fn->sig, &key.bind);
        key.bind.extents = d->rt->extents;
        dc_fn_bind(L, d, fn, &v, &key);
        check_inner_bounds(L, d, fn, &key.bind);
        return inline_call(L, d, fn, &v, &key);
    }
    if (d->autocast != DC_BOOL)
        dc_error_fact(
            L, d, DC_ERR_ARG,
            &(dc_fact){.op = "autocast",
                       .word = {lua_pushfstring(L, "'%s' is compiled as it stands", fn->name)}},
            &(dc_blame){.hint = "dc.autocast inside it, round the network alone"});
    dc_collector_step(L, d);
    const uint64_t begun = dc_span_begin(&d->rt->log);
    dc_spec *s = dc_fn_begin(L, d, fn, &v, &spec);
    const int first = run_spec(L, d, fn, s, &v);
    fn->called++;
    tell_call(d, fn, begun);
    return dc_fn_give(L, fn, s, spec, first);
}

static const dc_binding of_frame[] = {
    {"__close", l_frame_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_frame_methods = DC_BINDINGS(of_frame);
