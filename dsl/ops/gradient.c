/*
 * Gradients: dc.grad(loss, wrt [, { unused = "zero" }]), of a function being traced and of lazy
 * tensors. wrt is a cell or a tensor, or a list of them; the result has the same form.
 *
 * x:watch() is a start of gradients outside: what is computed from it keeps its recipe, as what reads a
 * parameter does.
 */
#include "core/autodiff/grad.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

typedef struct gradient {
    dc_dsl *d;
    dc_handle *loss;
    dc_handle **wrt, **out;
    int n;
    bool zero, list, tracing;
    const char *optimiser; /* whose step takes them, "optim.Adam"; or NULL */
    const dc_place *place;
} gradient;

/* ---- while tracing --------------------------------------------------------------------------- */

/* Every version of every wrt, in order; first[i] is where those of wrt i begin. */
static dc_status list_versions(dc_job *j, const gradient *a, dc_ref **refs, int *first)
{
    dc_trace *t = a->d->trace;
    int total = 0;
    for (int i = 0; i < a->n; i++)
        total += a->wrt[i]->kind == DC_HANDLE_CELL
                     ? (int)dc_trace_cell_of(t, a->wrt[i]->cell)->read.n
                     : 1;
    *refs = DC_NEW_ARRAY(&j->scratch, dc_ref, total + 1);
    total = 0;
    for (int i = 0; i < a->n; i++) {
        first[i] = total;
        if (a->wrt[i]->kind == DC_HANDLE_CELL) {
            const dc_trace_cell *c = dc_trace_cell_of(t, a->wrt[i]->cell);
            for (uint32_t k = 0; k < c->read.n; k++)
                (*refs)[total++] = c->read.at[k].ref;
        } else {
            dc_val v;
            DC_TRY(dc_trace_value(j, t, a->wrt[i], &v));
            (*refs)[total++] = v.ref;
        }
    }
    first[a->n] = total;
    return DC_OK;
}

/*
 * In the body of a loop a cell has a stand-in for its value, and what was made of it before has the value itself.
 * Version k, whose derivative is *out, is the stand-in: adds that of the value. The loop ends in an error if the body
 * sets the cell.
 */
static void add_outer(dc_trace *t, const dc_cell *c, const dc_ref *part, int k, dc_ref *out)
{
    const dc_trace_cell *entry = dc_trace_cell_of(t, (dc_cell *)(uintptr_t)c);
    const uint32_t number = (uint32_t)(entry - t->cell.at);
    for (dc_trace_body *b = t->body; b != NULL; b = b->outer) {
        dc_trace_saved *saved = number < b->ncell ? &b->cell[number] : NULL;
        if (saved == NULL || saved->stand_in == 0 || saved->stand_in != entry->read.at[k].ref)
            continue;
        k = (int)saved->nread - 1;
        if (part[k] != 0)
            *out = dc_graph_op2(t->f, DC_OP_ADD, *out, part[k]);
        saved->pulled = saved->pulled || part[k] != 0;
    }
}

static dc_status unused(dc_job *j, int i)
{
    return dc_fail(j, DC_ERR_GRAD_UNUSED, &(dc_fact){.op = "grad", .operand = i + 1});
}

/* Messages of the backward pass come after those that the function has made so far. */
static dc_status take_gradient(dc_job *j, dc_trace *t, dc_ref loss, const dc_ref *wrt, int n,
                               dc_ref *out)
{
    dc_cell *token = t->d->token;
    uint32_t at;
    dc_ref before = 0;
    if (token != NULL && dc_ptrmap_find(&t->known, token, &at))
        before = t->cell.at[at].read.at[t->cell.at[at].read.n - 1].ref;
    t->f->token = before;
    const dc_status status = dc_grad(j, t->f, loss, wrt, n, out);
    const dc_ref last = t->f->token;
    t->f->token = 0;
    if (status != DC_OK || last == before)
        return status;
    return dc_param_record(j, t, token, (dc_val){last, dc_type_scalar(DC_F32)});
}

static dc_status traced_gradient_body(dc_job *j, void *arg)
{
    const gradient *a = arg;
    dc_trace *t = a->d->trace;
    dc_val loss;
    dc_ref *refs;
    int *first = DC_NEW_ARRAY(&j->scratch, int, a->n + 1);
    dc_func_from(t->f, a->place->where, a->place->path);
    DC_TRY(dc_trace_value(j, t, a->loss, &loss));
    DC_TRY(list_versions(j, a, &refs, first));
    dc_ref *out = DC_NEW_ARRAY(&j->scratch, dc_ref, first[a->n] + 1);
    DC_TRY(take_gradient(j, t, loss.ref, refs, first[a->n], out));
    for (int i = 0; i < a->n; i++) {
        dc_val v = {0, *dc_handle_type(a->wrt[i])};
        int last = -1; /* version that the loss read */
        for (int k = first[i]; k < first[i + 1]; k++)
            last = out[k] != 0 ? k - first[i] : last;
        if (last >= 0)
            v.ref = out[first[i] + last];
        if (last >= 0 && a->wrt[i]->kind == DC_HANDLE_CELL)
            add_outer(t, a->wrt[i]->cell, out + first[i], last, &v.ref);
        if (last >= 0 && a->wrt[i]->kind == DC_HANDLE_CELL)
            v.type = dc_trace_cell_of(t, a->wrt[i]->cell)->read.at[last].type;
        if (v.ref == 0 && !a->zero)
            return unused(j, i);
        if (v.ref == 0)
            DC_TRY(dc_build_const(j, t->f, &v.type, 0, &v));
        dc_handle_trace(a->out[i], t, &v);
    }
    return DC_OK;
}

/* ---- outside --------------------------------------------------------------------------------- */

static dc_status lazy_gradient_body(dc_job *j, void *arg)
{
    const gradient *a = arg;
    dc_rt *rt = a->loss->lazy->rt;
    dc_lazy_wrt *wrt = DC_NEW_ARRAY(&j->scratch, dc_lazy_wrt, a->n + 1);
    dc_lazy **out = DC_NEW_ARRAY(&j->scratch, dc_lazy *, a->n + 1);
    for (int i = 0; i < a->n; i++) {
        dc_handle *h = a->wrt[i];
        if (h->kind == DC_HANDLE_TRACED)
            return dc_fail(j, DC_ERR_LEAKED, &(dc_fact){.op = "grad", .word = {h->fn}});
        if (dc_handle_rt(h) != NULL && dc_handle_rt(h) != rt)
            return dc_failf(j, DC_ERR_DEVICES, "grad",
                            "the loss is on %s, number %d of what the gradient is for on %s",
                            rt->device_name, i + 1, dc_handle_rt(h)->device_name);
        wrt[i] = (dc_lazy_wrt){.node = h->lazy,
                               .cell = h->kind == DC_HANDLE_CELL ? h->cell : NULL,
                               .type = *dc_handle_type(h)};
    }
    dc_lazy *message;
    DC_TRY(dc_lazy_grad(rt, j, a->loss->lazy, wrt, a->n, a->zero, a->place->where, a->place->path,
                        out, &message));
    for (int i = 0; i < a->n; i++)
        dc_handle_fill_lazy(a->out[i], out[i]);
    if (message != NULL) { /* now, as the others do it now */
        dc_lazy_defer(j, message);
        j->meeting = a->place->where;
        DC_TRY(dc_lazy_realize(rt, j, message));
        j->meeting = NULL;
    }
    for (int i = 0; i < a->n; i++)
        DC_TRY(dc_lazy_limit(rt, j, a->out[i]->lazy));
    return DC_OK;
}

static DC_NORETURN void no_graph(lua_State *L, dc_dsl *d, const dc_handle *loss)
{
    const dc_operand in = {
        .h = (dc_handle *)(uintptr_t)loss, .role = "loss", .type = *dc_handle_type(loss)};
    dc_blame b = {.in = &in, .n = 1};
    dc_fact f = {.op = "grad", .word = {"loss"}};
    if (loss->kind == DC_HANDLE_VALUE && loss->compiled != NULL) {
        f.word[0] = lua_pushfstring(L, "loss is a result of compiled '%s' and", loss->compiled);
        b.hint = "take the gradient inside it";
    } else if (loss->kind == DC_HANDLE_LAZY) {
        f.word[0] = "loss was computed already, reads no parameter and";
        b.hint = "x = x:watch() keeps what is computed from x for gradients";
    }
    dc_error_fact(L, d, DC_ERR_GRAD_COMPILED, &f, &b);
}

/* Is the loss itself what the gradient is taken for, at 2? Then that is 1. */
static bool is_its_own(lua_State *L, const dc_handle *loss)
{
    bool found = dc_handle_test(L, 2) == loss;
    for (lua_Integer i = 1; lua_type(L, 2) == LUA_TTABLE && !found; i++) {
        const int type = lua_rawgeti(L, 2, i);
        found = dc_handle_test(L, -1) == loss;
        lua_pop(L, 1);
        if (type == LUA_TNIL)
            break;
    }
    return found;
}

/* Raises where the loss has no graph to follow. */
static void check_loss(lua_State *L, dc_dsl *d, const dc_handle *loss)
{
    const bool tracing = dc_trace_here(L, d) != NULL;
    if (loss->kind == DC_HANDLE_TRACED && tracing && loss->serial == d->trace->serial)
        return;
    if (loss->kind == DC_HANDLE_TRACED) {
        const dc_operand in = {
            .h = (dc_handle *)(uintptr_t)loss, .role = "loss", .type = *dc_handle_type(loss)};
        dc_error_fact(L, d, DC_ERR_LEAKED, &(dc_fact){.op = "grad", .word = {loss->fn}},
                      &(dc_blame){.in = &in, .n = 1});
    }
    const bool leaf = loss->kind == DC_HANDLE_LAZY && loss->lazy->kind == DC_LAZY_LEAF;
    if (tracing || loss->kind != DC_HANDLE_LAZY || (leaf && !is_its_own(L, loss)))
        no_graph(L, d, loss);
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool zeros_wanted(lua_State *L, dc_dsl *d, int idx)
{
    dc_args_options(L, d, idx, "grad", (const char *const[]){"unused", NULL});
    if (lua_isnil(L, idx))
        return false;
    const bool given = lua_getfield(L, idx, "unused") != LUA_TNIL;
    if (given && (lua_type(L, -1) != LUA_TSTRING || strcmp(lua_tostring(L, -1), "zero") != 0))
        dc_error_raisef(L, d, DC_ERR_ARG, "grad", "unused is \"zero\" or nothing, not %s",
                        dc_handle_describe(L, -1));
    lua_pop(L, 1);
    return given;
}

/* A layer is a table and no list. */
static void refuse_class(lua_State *L, dc_dsl *d)
{
    if (!luaL_getmetafield(L, 2, "__name"))
        return;
    const char *text =
        lua_pushfstring(L, "a list of parameters is needed, not %s", dc_handle_describe(L, 2));
    dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = "grad", .word = {text}},
                  &(dc_blame){.hint = "net:parameters() gives those of a layer"});
}

/* The list at 2, or the one thing there; the results go to the table at 5. */
static void read_wrt(lua_State *L, gradient *a)
{
    enum { MOST = 100000 };
    a->list = lua_type(L, 2) == LUA_TTABLE;
    if (a->list)
        refuse_class(L, a->d);
    const lua_Integer n = a->list ? luaL_len(L, 2) : 1;
    if (n < 0 || n > MOST)
        dc_error_raisef(L, a->d, DC_ERR_ARG, "grad", "a list of at most %d is needed, not of %lld",
                        MOST, (long long)n);
    a->n = (int)n;
    a->wrt = lua_newuserdatauv(L, ((size_t)a->n + 1) * 2 * sizeof(dc_handle *), 0);
    a->out = a->wrt + a->n + 1;
    lua_createtable(L, a->n, 0);
    for (int i = 0; i < a->n; i++) {
        if (a->list)
            lua_geti(L, 2, i + 1);
        else
            lua_pushvalue(L, 2);
        a->wrt[i] = dc_handle_check(L, a->d, lua_gettop(L), "grad");
        lua_pop(L, 1);
        a->out[i] = a->tracing ? dc_handle_new_traced(L, a->d) : dc_handle_new(L, a->d);
        lua_rawseti(L, 5, i + 1);
    }
}

static dc_status run_gradient(lua_State *L, gradient *a)
{
    const dc_run_made made = {.out = a->out, .nout = a->n};
    return a->tracing ? dc_run_once(a->d, traced_gradient_body, a)
                      : dc_run_again(L, a->d, lazy_gradient_body, a, &made);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* How the script calls what number i of wrt is: the cell's path, a variable, its place in the list. */
static const char *wrt_name(lua_State *L, const gradient *a, int i)
{
    const dc_handle *h = a->wrt[i];
    if (h->kind == DC_HANDLE_CELL && h->cell->label != NULL)
        return h->cell->label;
    if (a->list)
        lua_geti(L, 2, i + 1);
    else
        lua_pushvalue(L, 2);
    dc_place_push_name(L, lua_gettop(L));
    if (lua_type(L, -1) == LUA_TSTRING)
        return lua_pushfstring(L, "'%s'", lua_tostring(L, -1));
    if (a->list)
        return lua_pushfstring(L, "number %d of the list", i + 1);
    return h->kind == DC_HANDLE_CELL ? "the cell" : "the tensor";
}

/* A layer that was replaced has taken its path along: stdlib/nn/class.lua. */
static const char *unused_hint(lua_State *L, const gradient *a, const dc_handle *h)
{
    const char *label = h->kind == DC_HANDLE_CELL ? h->cell->label : NULL;
    if (label != NULL && strstr(label, " (replaced)") != NULL)
        return lua_pushfstring(L,
                               "%s was made before another layer took this place; a new one for "
                               "net:parameters() trains those of now",
                               a->optimiser);
    return "opt:step(loss, { unused = \"zero\" }) takes zeros for it";
}

static DC_NORETURN void raise_failure(lua_State *L, dc_dsl *d, const gradient *a)
{
    dc_err *e = &d->rt->job.err;
    const int at = e->fact.operand;
    dc_operand in[2] = {{.h = a->loss, .role = "loss", .type = *dc_handle_type(a->loss)}};
    const char *hint = NULL;
    int n = 1;
    luaL_checkstack(L, 8, "a failure");
    if (at > 0 && at <= a->n && a->wrt[at - 1]->kind != DC_HANDLE_CLOSED) {
        dc_handle *h = a->wrt[at - 1];
        e->fact.word[0] = wrt_name(L, a, at - 1); /* stays on the stack */
        in[n++] = (dc_operand){.h = h, .role = "wrt", .type = *dc_handle_type(h)};
        if (e->id == DC_ERR_GRAD_UNUSED && a->optimiser != NULL) {
            hint = unused_hint(L, a, h);
            e->fact.word[0] =
                lua_pushfstring(L, "%s, which %s trains", e->fact.word[0], a->optimiser);
        }
    }
    dc_handle_raise(L, d, &(dc_blame){.in = in, .n = n, .place = a->place, .hint = hint});
}

/* Of which of its numbers? */
static void refuse_complex(lua_State *L, dc_dsl *d, dc_handle *loss)
{
    const dc_operand in = {.h = loss, .role = "loss", .type = *dc_handle_type(loss)};
    if (dc_dtype_is_complex((dc_dtype)in.type.dtype))
        dc_error_fact(
            L, d, DC_ERR_DTYPE,
            &(dc_fact){.op = "grad", .type = {in.type}, .word = {"a real number"}, .operand = 1},
            &(dc_blame){.in = &in,
                        .n = 1,
                        .hint = "loss:abs(), or loss:real(); the gradient for a complex "
                                "tensor is dL/dre + i dL/dim"});
}

static size_t layer_of(const char *label)
{
    const char *dot = label != NULL ? strrchr(label, '.') : NULL;
    return dot != NULL ? (size_t)(dot - label) : 0;
}

/* A parameter of the list that belongs to the layer of c, which is none of it. */
static const dc_cell *find_sibling(const gradient *a, const dc_cell *c)
{
    const dc_cell *found = NULL;
    const size_t n = layer_of(c->label);
    for (int i = 0; i < a->n; i++) {
        const dc_cell *p = a->wrt[i]->kind == DC_HANDLE_CELL ? a->wrt[i]->cell : NULL;
        if (p == c)
            return NULL;
        if (n > 0 && p != NULL && layer_of(p->label) == n && memcmp(p->label, c->label, n) == 0)
            found = p;
    }
    return found;
}

/* Parameters that the function reads and no optimiser trains, although this one trains others of their layer. */
static void note_left_out(dc_dsl *d, const gradient *a)
{
    const dc_trace *t = d->trace;
    char sentence[600];
    for (uint32_t i = 0; i < t->cell.n && a->place->where != NULL; i++) {
        const dc_cell *c = t->cell.at[i].cell;
        if (!c->trainable || c->frozen || c->optimised)
            continue;
        const dc_cell *with = find_sibling(a, c);
        if (with == NULL)
            continue;
        snprintf(sentence, sizeof sentence, "%s trains %s and not %s, and no other optimiser does",
                 a->optimiser, with->label, c->label);
        dc_uses_note(d, a->place->where, dc_place_intern(d, "%s", c->label), NULL, sentence,
                     "net:parameters() has all, net:freeze() those that are to stay");
    }
}

static int take(lua_State *L, const char *optimiser)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 3);
    gradient a = {.d = d, .loss = dc_handle_check(L, d, 1, "grad"), .optimiser = optimiser};
    refuse_complex(L, d, a.loss);
    check_loss(L, d, a.loss);
    a.tracing = a.loss->kind == DC_HANDLE_TRACED;
    if (!a.tracing)
        dc_collector_step(L, d);
    a.zero = zeros_wanted(L, d, 3);
    read_wrt(L, &a);
    const dc_place place = dc_place_find(L, d);
    a.place = &place;
    for (int i = 0; i < a.n && place.where != NULL; i++)
        a.out[i]->origin = dc_place_intern(d, "gradient taken at %s", place.where);
    a.loss = dc_handle_check(L, d, 1, "grad"); /* a finalizer may have closed it */
    if (run_gradient(L, &a) != DC_OK)
        raise_failure(L, d, &a);
    if (a.tracing && optimiser != NULL)
        note_left_out(d, &a);
    lua_settop(L, 5);
    if (!a.list)
        lua_rawgeti(L, 5, 1);
    return 1;
}

static int l_grad(lua_State *L)
{
    return take(L, NULL);
}

/* step_grad(optimiser, loss, params, options): dc.grad for a step of an optimiser of this name */
static int l_step_grad(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *name = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    lua_remove(L, 1);
    return take(L, name);
}

/* ---- starts of gradients --------------------------------------------------------------------- */

typedef struct watching {
    dc_handle *of, *out;
} watching;

static dc_status watch_body(dc_job *j, void *arg)
{
    const watching *a = arg;
    dc_rt *rt = a->of->d->rt;
    dc_lazy *n;
    DC_TRY(dc_handle_lazy(j, a->of, &n));
    dc_lazy_defer(j, n);
    DC_TRY(dc_lazy_realize(rt, j, n));
    dc_handle_fill_lazy(a->out, dc_lazy_watch(rt, n->value));
    return DC_OK;
}

static dc_status build_watch(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(arg);
    return dc_ops_1(j, f, DC_OP_STOP, in[0], out);
}

/* x:watch(): the value of x, with no recipe behind it. Inside a typed function nothing is ever forgotten. */
static int l_watch(lua_State *L)
{
    static const int first[1] = {1};
    dc_dsl *d = dc_dsl_of(L);
    watching a = {.of = dc_handle_check(L, d, 1, "watch")};
    const dc_type t = *dc_handle_type(a.of);
    const dc_operand in = {.h = a.of, .role = "of", .type = t};
    if (!dc_dtype_is_smooth((dc_dtype)t.dtype))
        dc_error_fact(L, d, DC_ERR_DTYPE,
                      &(dc_fact){.op = "watch", .type = {t}, .word = {"a float"}, .operand = 1},
                      &(dc_blame){.in = &in, .n = 1});
    if (dc_trace_here(L, d) != NULL) {
        dc_apply_to(L, d, "watch", first, 1, build_watch, NULL);
        return 1;
    }
    a.out = dc_handle_new(L, d);
    a.out->origin = dc_place_made(d, dc_place_find(L, d).where);
    if (dc_run_again(L, d, watch_body, &a, NULL) != DC_OK)
        dc_handle_raise(L, d, &(dc_blame){.in = &in, .n = 1});
    return 1;
}

static const dc_binding bindings[] = {
    {"grad", l_grad, 3, DC_IN_MODULE},
    {"step_grad", l_step_grad, DC_ANY, DC_IN_LIBRARY},
    {"watch", l_watch, 1, DC_IN_BOTH},
};

const dc_bindings dc_gradient_bindings = DC_BINDINGS(bindings);
