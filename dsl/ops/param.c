/*
 * Cells: dc.param, dc.state, cell:set.
 *
 * A cell is made at once, also while a function is traced. Outside, set writes it; inside, set only
 * leaves a new version in the trace, and the cell changes when a call of the compiled function
 * ends.
 */
#include "core/runtime/devices.h"
#include "core/signature/signature.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/ranks.h"
#include "dsl/base/run.h"
#include "dsl/base/size.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct making {
    dc_dsl *d;
    dc_rt *rt;
    dc_handle *h;
    const dc_type *type;
    const dc_tensor *value; /* NULL: zeros */
    dc_lazy *start;         /* or what is computed when it is needed */
    bool trainable;
    const dc_cell_split *split; /* NULL: it is whole */
    const char *axis; /* the name of a first axis that grows, and its sizes; most 0: it does not */
    int64_t least, most;
} making;

static dc_status make_cell_body(dc_job *j, void *arg)
{
    const making *a = arg;
    dc_cell *c;
    if (a->most > 0) {
        dc_type t = *a->type;
        t.dim[0] = a->least;
        DC_TRY(dc_cell_new_growing(a->rt, j, &t, a->axis, a->least, a->most, &c));
    } else if (a->start != NULL)
        DC_TRY(dc_cell_start(a->start->rt, j, a->type, a->trainable, a->start, &c));
    else
        DC_TRY(dc_cell_new(a->rt, j, a->type, NULL, a->trainable, &c));
    dc_handle_fill_cell(a->h, c);
    DC_TRY(dc_cell_move(c, j, a->rt));
    if (a->split != NULL)
        DC_TRY(dc_cell_set_split(c, j, &a->split->s, &a->split->whole));
    return a->value != NULL ? dc_cell_write(c, j, a->value) : DC_OK;
}

/* Initial values that a file may overwrite before they are read; else NULL. */
static dc_lazy *drawn(lua_State *L, int idx)
{
    const dc_handle *h = dc_handle_test(L, idx);
    return h != NULL && h->kind == DC_HANDLE_LAZY && dc_lazy_is_numbers(h->lazy) ? h->lazy : NULL;
}

/*
 * Leaves a realized tensor for what stands at idx: a tensor, a cell's value, a table, a number that
 * fills the type. NULL for nil.
 */
static const dc_tensor *realized(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op)
{
    switch (lua_type(L, idx)) {
    case LUA_TNIL:
    case LUA_TNONE:
        return NULL;
    case LUA_TNUMBER:
    case LUA_TBOOLEAN: {
        const dc_dtype dtype = (dc_dtype)t->dtype;
        const size_t size = dc_dtype_size(dtype), bytes = dc_type_bytes(t);
        const uint64_t bits = dc_args_element(L, d, idx, op, dtype);
        dc_handle *h = dc_handle_new(L, d);
        char *room = dc_handle_room(L, d, t);
        uint32_t looks = 0;
        for (size_t at = 0; at < bytes; at += size) {
            dc_interrupt_poll_often(L, d, &looks);
            dc_bits_store(dtype, room + at, bits);
        }
        dc_handle_upload(L, d, h, t, room);
        lua_pop(L, 1);
        lua_replace(L, idx);
        return h->tensor;
    }
    case LUA_TTABLE:
        dc_make_from_table(L, d, idx, t, false, op);
        lua_replace(L, idx);
        return dc_handle_test(L, idx)->tensor;
    default:
        break;
    }
    dc_handle *h = dc_handle_check(L, d, idx, op);
    if (h->kind == DC_HANDLE_CELL || h->kind == DC_HANDLE_TRACED) {
        const dc_type own = *dc_handle_type(h);
        const void *from = dc_handle_read(L, d, h, op); /* raises where there is no value */
        dc_handle *copy = dc_handle_new(L, d);
        dc_handle_upload(L, d, copy, &own, from);
        lua_replace(L, idx);
        return copy->tensor;
    }
    if (h->kind == DC_HANDLE_LAZY)
        h->lazy->steady = true;
    return dc_handle_realize(L, d, h);
}

/* ---- types whose first axis grows ------------------------------------------------------------ */

typedef struct growing {
    dc_dsl *d;
    const char *text; /* of the type */
    dc_type *out;     /* with the largest size */
    const char *axis; /* its name, interned */
    int64_t least, most;
    const char *why;
} growing;

static dc_status parse_growing_body(dc_job *j, void *arg)
{
    growing *a = arg;
    dc_sig sig;
    dc_sig_bind b;
    const size_t room = strlen(a->text) + 8;
    char *text = dc_arena_alloc(&j->scratch, room);
    snprintf(text, room, "(x: %s)", a->text);
    DC_TRY(dc_sig_parse(j, a->d->rt->names, text, &sig));
    const dc_sig_type *t = sig.nparam == 1 ? sig.param[0].type : NULL;
    if (t == NULL || t->kind != DC_SHAPE_TENSOR)
        a->why = "one type is needed";
    else if (t->ndim == 0 || t->dim[0].kind != DC_DIM_VAR || sig.most[t->dim[0].var] <= 0)
        a->why = "only the first axis of a state can be bounded";
    for (int v = 0; v < sig.nvar && a->why == NULL; v++)
        if (v != t->dim[0].var && sig.most[v] >= 0)
            a->why = "only the first axis of a state can be bounded";
    for (int k = 1; a->why == NULL && k < t->ndim; k++)
        if (t->dim[k].kind != DC_DIM_SIZE)
            a->why = "the other sizes of a state are numbers";
    dc_sig_begin(&sig, &b);
    if (a->why == NULL) {
        a->axis = sig.var[t->dim[0].var];
        a->least = sig.least[t->dim[0].var];
        a->most = b.size[t->dim[0].var] = sig.most[t->dim[0].var];
        if (!dc_sig_resolve(&b, t, a->out))
            a->why = "the other sizes of a state are numbers";
        a->out->name[0] = NULL; /* so that values with any name of this axis can be set */
    }
    dc_sig_fini(&sig);
    return DC_OK;
}

/* Is the text at idx a type with "<="? Its least and largest size, and the type with the latter. */
static bool read_growing(lua_State *L, dc_dsl *d, int idx, const char *op, bool trainable,
                         growing *a)
{
    if (lua_type(L, idx) != LUA_TSTRING || strstr(lua_tostring(L, idx), "<=") == NULL)
        return false;
    if (trainable)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a parameter has fixed sizes; a state may grow");
    a->d = d;
    a->text = dc_args_text(L, d, idx, op);
    if (dc_run_once(d, parse_growing_body, a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
    if (a->why != NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "'%.80s': %s", a->text, a->why);
    return true;
}

/* The size that a table of rows gives to a type. */
static dc_type grown(lua_State *L, int idx, const dc_type *t)
{
    dc_type out = *t;
    if (lua_type(L, idx) == LUA_TTABLE)
        out.dim[0] = (int64_t)lua_rawlen(L, idx);
    return out;
}

/* ---- types in parts --------------------------------------------------------------------------- */

/* The type at 1 says how the value is split: *t receives the part, and a whole value at 2 becomes that of this rank. */
static void take_part(lua_State *L, dc_dsl *d, const char *op, dc_cell_split *split, dc_type *t)
{
    int64_t start[DC_MAX_RANK];
    dc_ranks_type(L, d, 1, op, &split->whole, &split->s);
    dc_ranks_part(L, d, op, &split->whole, &split->s, t, start);
    if (lua_type(L, 2) == LUA_TTABLE) {
        dc_make_from_table(L, d, 2, &split->whole, false, op);
        lua_replace(L, 2);
    }
    const dc_handle *h = dc_handle_test(L, 2);
    if (h == NULL || !dc_type_same_shape(dc_handle_type(h), &split->whole))
        return;
    dc_exchange_cut(L, d, 2, op, t, start);
    lua_replace(L, 2);
}

/* Of { device = name } at 3; else that of the value at 2, before it becomes another tensor. */
static dc_rt *find_device(lua_State *L, dc_dsl *d, const char *op)
{
    const dc_handle *h = dc_handle_test(L, 2);
    dc_rt *rt = h != NULL && dc_handle_rt(h) != NULL ? dc_handle_rt(h) : d->rt;
    if (lua_isnoneornil(L, 3))
        return rt;
    dc_args_options(L, d, 3, op, (const char *const[]){"device", NULL});
    if (lua_getfield(L, 3, "device") != LUA_TNIL)
        rt = dc_devices_read(L, d, lua_gettop(L), op);
    lua_pop(L, 1);
    return rt;
}

/*
 * dc.param(type, init, { device = }): a tensor, a table or a number; zeros without. A tensor in the place of the type
 * stands for it, and alone for the value, too. The cell lies where its value does, unless the device is named.
 */
static int make_cell(lua_State *L, const char *op, bool trainable)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type t;
    lua_settop(L, 3);
    growing g = {.out = &t};
    const bool grows = read_growing(L, d, 1, op, trainable, &g);
    dc_cell_split split;
    const bool splits = !grows && dc_ranks_splits(L, 1);
    if (splits)
        take_part(L, d, op, &split, &t);
    else if (!grows)
        dc_args_like(L, d, 1, op, &t);
    for (int k = 0; k < t.rank; k++)
        dc_size_fixed(L, d, op, &t, k);
    if (dc_handle_test(L, 1) != NULL && lua_isnil(L, 2)) {
        lua_pushvalue(L, 1);
        lua_replace(L, 2);
    }
    if (trainable && !dc_dtype_is_smooth((dc_dtype)t.dtype))
        dc_error_fact(L, d, DC_ERR_DTYPE, &(dc_fact){.op = op, .type = {t}, .word = {"a float"}},
                      &(dc_blame){.hint = "dc.state is not trained"});
    dc_rt *rt = find_device(L, d, op);
    lua_settop(L, 2);
    const dc_place place = dc_place_find(L, d);
    if (dc_trace_made(L, d, op, &place, &t)) {
        const dc_cell *made = dc_handle_check(L, d, -1, op)->cell;
        if (made->growth != NULL ? made->growth->least != g.least || !grows : grows)
            dc_error_raisef(L, d, DC_ERR_ARG, op,
                            "the state made here has another range of sizes; one state serves all "
                            "specialisations");
        return 1;
    }
    dc_collector_step(L, d);
    dc_type start = t;
    start.dim[0] = grows ? g.least : t.dim[0];
    start = grows ? grown(L, 2, &start) : start;
    const dc_tensor *value = drawn(L, 2) != NULL && !grows ? NULL : realized(L, d, 2, &start, op);
    dc_handle *h = dc_handle_new(L, d);
    h->origin = dc_place_made(d, place.where);
    if (!lua_isnil(L, 2) &&
        (grows || drawn(L, 2) == NULL)) /* a finalizer may have closed or computed it */
        value = dc_handle_realize(L, d, dc_handle_check(L, d, 2, op));
    making a = {d,         rt,
                h,         &t,
                value,     grows ? NULL : drawn(L, 2),
                trainable, splits ? &split : NULL,
                g.axis,    g.least,
                g.most};
    const dc_run_made made = {.out = &a.h, .nout = 1};
    if (dc_run_again(L, d, make_cell_body, &a, &made) != DC_OK) {
        dc_handle *v = dc_handle_test(L, 2);
        const dc_operand in = {.h = v, .role = "value", .type = v != NULL ? *dc_handle_type(v) : t};
        dc_error_raise(L, d, &(dc_blame){.op = op, .in = &in, .n = v != NULL});
    }
    dc_trace_keep(L, d, op, &place);
    return 1;
}

static int l_param(lua_State *L)
{
    return make_cell(L, "param", true);
}

static int l_state(lua_State *L)
{
    return make_cell(L, "state", false);
}

/* ---- setting --------------------------------------------------------------------------------- */

typedef struct setting {
    dc_dsl *d;
    dc_cell *cell;
    dc_handle *value;        /* while tracing */
    const dc_tensor *tensor; /* outside */
    uint64_t bits;           /* while tracing, without value */
    const dc_place *place;
} setting;

static const char *cell_name(const dc_cell *c)
{
    return c->label != NULL ? c->label : "a cell";
}

static dc_status write_cell_body(dc_job *j, void *arg)
{
    const setting *a = arg;
    return dc_cell_write(a->cell, j, a->tensor);
}

dc_status dc_param_record(dc_job *j, dc_trace *t, dc_cell *c, dc_val v)
{
    dc_val leaf;
    DC_TRY(dc_ops_1(j, t->f, DC_OP_STOP, v, &leaf));
    leaf.type = *dc_cell_whole(c);
    memcpy(leaf.type.dim, v.type.dim, sizeof leaf.type.dim);
    dc_trace_cell *entry = dc_trace_cell_of(t, c);
    DC_PUSH(entry->read, leaf);
    entry->set = v;
    entry->is_set = true;
    return DC_OK;
}

/* In a trace: a size that can be none of the cell's. In a loop or a branch it stays as it is. */
static dc_status check_growth(dc_job *j, const dc_trace *t, const dc_cell *c, const dc_type *now,
                              const dc_type *value)
{
    const int64_t n = value->dim[0];
    if (t->body != NULL && n != now->dim[0])
        return dc_fail(j, DC_ERR_CELL_SIZE,
                       &(dc_fact){.op = "set", .type = {*now, *value}, .word = {cell_name(c)}});
    if (!dc_extent_is(n))
        return dc_cell_check_size(c, j, "set", n);
    if (dc_extent_bound(n) < c->growth->least)
        return dc_cell_check_size(c, j, "set", dc_extent_bound(n));
    if (dc_extent_lo(t->d->rt->extents, n) > c->growth->most)
        return dc_cell_check_size(c, j, "set", dc_extent_lo(t->d->rt->extents, n));
    return DC_OK;
}

static dc_status record_set_body(dc_job *j, void *arg)
{
    const setting *a = arg;
    dc_trace *t = a->d->trace;
    dc_val v;
    DC_TRY(dc_trace_cell_lies(j, t, a->cell));
    /* met here, so that cells are numbered in the order of the script */
    const dc_type now = *dc_trace_cell_type(dc_trace_cell_of(t, a->cell)), *want = &now;
    dc_func_from(t->f, a->place->where, a->place->path);
    if (a->value != NULL)
        DC_TRY(dc_trace_value(j, t, a->value, &v));
    else
        DC_TRY(dc_build_bits(j, t->f, want, a->bits, &v));
    if (a->cell->growth != NULL && dc_cell_takes(a->cell, &v.type))
        DC_TRY(check_growth(j, t, a->cell, want, &v.type));
    else if (!dc_type_agrees(want, &v.type))
        return dc_fail(
            j, DC_ERR_CELL_TYPE,
            &(dc_fact){.op = "set", .type = {*want, v.type}, .word = {cell_name(a->cell)}});
    return dc_param_record(j, t, a->cell, v);
}

void dc_param_refuse_mapped(lua_State *L, dc_dsl *d, const char *op, const dc_cell *c)
{
    if (d->mapping == NULL || c == d->generator)
        return;
    const char *text =
        lua_pushfstring(L, "the function of dc.vmap at %s sets %s, and each row would set it",
                        d->mapping, cell_name(c));
    dc_error_fact(L, d, DC_ERR_CONTROL, &(dc_fact){.op = op, .word = {text}},
                  &(dc_blame){.hint = "return the value, and set it outside"});
}

static int l_set(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const bool alone = lua_isnone(L, 2);
    lua_settop(L, 2);
    dc_handle *h = dc_handle_check(L, d, 1, "set");
    if (h->kind != DC_HANDLE_CELL)
        dc_error_fact(L, d, DC_ERR_IMMUTABLE, NULL,
                      &(dc_blame){.hint = alone
                                              ? "with a colon: p:set(value); cells have :set"
                                              : "cells have :set; dc.state(type, init) makes one"});
    if (h->cell == d->generator && dc_trace_here(L, d) != NULL && d->trace->body != NULL)
        dc_error_raisef(
            L, d, DC_ERR_REENTER, "set",
            "the generator advances once in a call; it is not set in a loop or a branch");
    const dc_type own = dc_trace_here(L, d) != NULL ? *dc_cell_whole(h->cell) : h->cell->type;
    const dc_type *t = &own;
    const dc_place place = dc_place_find(L, d);
    setting a = {.d = d, .cell = h->cell, .place = &place};
    d->effect = ++d->born;
    const bool plain = dc_args_is_scalar(L, 2);
    if (lua_isnil(L, 2))
        dc_error_raisef(L, d, DC_ERR_ARG, "set",
                        "a tensor, a table or a number is needed, not nil");
    const bool tracing = dc_trace_here(L, d) != NULL;
    if (!tracing)
        dc_param_refuse_mapped(L, d, "set", h->cell);
    if (tracing && plain)
        a.bits = dc_args_element(L, d, 2, "set", (dc_dtype)t->dtype);
    else if (tracing && dc_handle_test(L, 2) != NULL)
        a.value = dc_handle_check(L, d, 2, "set");
    else {
        const dc_type shape = h->cell->growth != NULL ? grown(L, 2, t) : *t;
        a.tensor = realized(L, d, 2, &shape, "set");
    }
    if (tracing && !plain && a.value == NULL)
        a.value = dc_handle_test(L, 2);
    a.cell = dc_handle_check(L, d, 1, "set")->cell; /* a finalizer may have closed it */
    if (dc_run_once(d, tracing ? record_set_body : write_cell_body, &a) != DC_OK) {
        dc_operand in[2] = {{.h = h, .role = "cell", .type = *t}};
        const dc_handle *v = dc_handle_test(L, 2);
        int n = 1;
        if (v != NULL && v->kind != DC_HANDLE_CLOSED)
            in[n++] = (dc_operand){
                .h = dc_handle_test(L, 2), .role = "value", .type = *dc_handle_type(v)};
        dc_error_raise(L, d, &(dc_blame){.op = "set", .in = in, .n = n, .place = &place});
    }
    return 0;
}

static const dc_binding bindings[] = {
    {"set", l_set, 2, DC_IN_METHODS},
    {"param", l_param, 3, DC_IN_MODULE},
    {"state", l_state, 3, DC_IN_MODULE},
};

const dc_bindings dc_param_bindings = DC_BINDINGS(bindings);
