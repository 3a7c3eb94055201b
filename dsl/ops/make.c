/*
 * New tensors: from Lua numbers and tables, and by rule.
 *
 *   dc.tensor { { 1, 2 }, { 3, 4 } }     f32[2, 2]
 *   dc.tensor({ 7, 2, 1 }, "i32[n=3]")   dtype, shape and names, checked;  "i32": the dtype alone
 *   dc.zeros "f32[2, 3]"   dc.zeros(x)   dc.ones   dc.full("f32[3]", 0.5)
 *   dc.iota("i32[2, 3]", axis)   dc.iota(5)   dc.eye "f32[3, 3]"
 *
 * What is wrong in a table is named by its place: "[2][3]".
 */
#include "core/autodiff/custom.h"
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/luatable.h"
#include "dsl/base/size.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

typedef struct filling {
    dc_dsl *d;
    const char *op;
    dc_type type;
    char *at;                   /* where the next element goes */
    int64_t index[DC_MAX_RANK]; /* where we are in the table, from 1 */
    uint32_t looks;
} filling;

/* "[2][3]"; pushes it. */
static const char *place_in(lua_State *L, const filling *f, int depth)
{
    char text[DC_MAX_RANK * 24] = "";
    for (int k = 0, n = 0; k < depth; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "[%" PRId64 "]", f->index[k]);
    return lua_pushstring(L, text);
}

/* Where to find fault: " at [2][3]", or "" for the table itself. */
static const char *at_place(lua_State *L, const filling *f, int depth)
{
    return depth == 0 ? "" : lua_pushfstring(L, " at %s", place_in(L, f, depth));
}

/* The size that the table at idx gives to an axis. */
static int64_t length_of(lua_State *L, const filling *f, int idx, int depth)
{
    const int64_t n = luaL_len(L, idx);
    if (n < 0)
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op, "a table%s of length %" PRId64,
                        at_place(L, f, depth), n);
    return n;
}

/* A plain table whose length is n has no other keys: none behind a hole, no names. */
static void refuse_keys(lua_State *L, filling *f, int idx, int64_t n, int depth)
{
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1)) {
        dc_interrupt_poll_often(L, f->d, &f->looks);
        const bool inside =
            lua_isinteger(L, -2) && lua_tointeger(L, -2) >= 1 && lua_tointeger(L, -2) <= n;
        if (inside)
            continue;
        char key[80];
        const bool number = lua_type(L, -2) == LUA_TNUMBER;
        lua_pushvalue(L, -2);
        snprintf(key, sizeof key, number ? "%.70s" : "'%.70s'", luaL_tolstring(L, -1, NULL));
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op,
                        "the table%s has %" PRId64 " element%s and the key %s besides",
                        at_place(L, f, depth), n, n == 1 ? "" : "s", key);
    }
}

/* A table without elements has no shape to infer. */
static void refuse_empty(lua_State *L, filling *f, int idx, int depth)
{
    if (dc_args_is_plain(L, idx))
        refuse_keys(L, f, idx, 0, depth);
    const char *text = lua_pushfstring(L, "the table%s is empty", at_place(L, f, depth));
    dc_error_fact(L, f->d, DC_ERR_LITERAL, &(dc_fact){.op = f->op, .word = {text}},
                  &(dc_blame){.hint = "a tensor without elements: dc.zeros \"f32[0]\""});
}

/* The shape of tables in tables, from the first element of each. */
static void infer_shape(lua_State *L, filling *f, int idx)
{
    const int top = lua_gettop(L);
    dc_type *t = &f->type;
    lua_pushvalue(L, idx);
    while (lua_type(L, -1) == LUA_TTABLE) {
        const int depth = t->rank;
        luaL_checkstack(L, 8, "nested tables");
        if (depth == DC_MAX_RANK)
            dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op, "tables are nested more than %d deep%s",
                            DC_MAX_RANK, at_place(L, f, depth));
        t->dim[depth] = length_of(L, f, lua_gettop(L), depth);
        if (t->dim[depth] == 0)
            refuse_empty(L, f, lua_gettop(L), depth);
        f->index[depth] = 1;
        t->rank++;
        lua_geti(L, -1, 1);
    }
    lua_settop(L, top);
    if (!dc_dims_fit(t->rank, t->dim, dc_dtype_size((dc_dtype)t->dtype)))
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op, "the table is too large");
}

static void fill_element(lua_State *L, filling *f, int idx)
{
    const dc_dtype t = (dc_dtype)f->type.dtype;
    const int depth = f->type.rank, type = lua_type(L, idx);
    uint64_t bits;
    if (!dc_args_fits(L, idx, t, &bits)) {
        if (type == LUA_TNUMBER || type == LUA_TBOOLEAN)
            dc_args_refuse_element(L, f->d, idx, f->op, t, place_in(L, f, depth));
        const char *hint = NULL;
        if (dc_handle_test(L, idx) != NULL)
            hint = ":item() gives a tensor's number; dc.stack { a, b } makes one tensor of several";
        else if (type == LUA_TSTRING && lua_isnumber(L, idx))
            hint = "tonumber(text) makes a number of it";
        const char *text = lua_pushfstring(L, "%s is needed%s, not %s",
                                           t == DC_BOOL ? "true or false" : "a number",
                                           at_place(L, f, depth), dc_handle_describe(L, idx));
        dc_error_fact(L, f->d, DC_ERR_LITERAL, &(dc_fact){.op = f->op, .word = {text}},
                      &(dc_blame){.hint = hint});
    }
    dc_bits_store(t, f->at, bits);
    f->at += dc_dtype_size(t);
}

/* The number on top into `at`, where the conversion is exact but for rounding; false: nothing was done. */
static inline bool store_number(lua_State *L, dc_dtype t, char *at)
{
    if (t == DC_F32 || t == DC_F64) {
        const double v = lua_tonumberx(L, -1, NULL);
        const float f = (float)v;
        if (t == DC_F32 && !(fabs(v) < FLT_MAX))
            return false;
        memcpy(at, t == DC_F32 ? (const void *)&f : (const void *)&v, dc_dtype_size(t));
        return true;
    }
    if ((t != DC_I32 && t != DC_I64) || !lua_isinteger(L, -1))
        return false;
    const lua_Integer i = lua_tointegerx(L, -1, NULL);
    const int32_t narrow = (int32_t)i;
    if (t == DC_I32 && i != narrow)
        return false;
    memcpy(at, t == DC_I32 ? (const void *)&narrow : (const void *)&i, dc_dtype_size(t));
    return true;
}

/* The numbers of some slots, as far as they convert; how many. */
static int64_t store_slots(dc_dtype t, const dc_luaslot *slot, int64_t n, char *to)
{
    int64_t i = 0;
    for (; i < n; i++) {
        const bool is_integer = slot[i].tag == DC_LUASLOT_INTEGER;
        double v;
        memcpy(&v, &slot[i].value, sizeof v);
        if (is_integer)
            v = (double)(int64_t)slot[i].value;
        else if (slot[i].tag != DC_LUASLOT_FLOAT)
            break;
        if (t == DC_F32 && !(fabs(v) < FLT_MAX))
            break;
        if (t == DC_F32) {
            const float f = (float)v;
            memcpy(to + (size_t)i * sizeof f, &f, sizeof f);
        } else {
            memcpy(to + (size_t)i * sizeof v, &v, sizeof v);
        }
    }
    return i;
}

/*
 * The n elements of a plain table on the last axis where they lie (dsl/base/luatable.h), floats alone. false: they do not
 * lie so, or one is no number; f is as before.
 */
static bool fill_from_memory(lua_State *L, filling *f, int idx, int64_t n)
{
    enum { BLOCK = 4096 };
    const dc_dtype t = (dc_dtype)f->type.dtype;
    const size_t size = dc_dtype_size(t);
    if (!f->d->sees_tables || (t != DC_F32 && t != DC_F64))
        return false;
    const dc_luaslot *slot = NULL;
    if (!dc_luatable_array(lua_topointer(L, idx), n, &slot))
        return false;
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t count = dc_min_i64(BLOCK, n - at);
        dc_interrupt_poll(L, f->d); /* raises or does nothing: the slots stay where they are */
        if (store_slots(t, slot + at, count, f->at + (size_t)at * size) < count)
            return false;
    }
    f->at += (size_t)n * size;
    return true;
}

/*
 * The n elements of a plain table on the last axis in one traversal, which sees every key as well. false: the keys do
 * not come in order, as where a part of the table is a hash, or there are others than 1..n; f is as before.
 */
static bool fill_in_order(lua_State *L, filling *f, int idx, int64_t n)
{
    const dc_dtype t = (dc_dtype)f->type.dtype;
    const size_t size = dc_dtype_size(t);
    const int axis = f->type.rank - 1, top = lua_gettop(L);
    char *const first = f->at;
    int64_t i = 0;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_settop(L, top + 1)) {
        if (i == n || !lua_isinteger(L, top + 1) || lua_tointegerx(L, top + 1, NULL) != i + 1)
            break;
        f->index[axis] = ++i;
        if (lua_type(L, top + 2) == LUA_TNUMBER && store_number(L, t, f->at))
            f->at += size;
        else
            fill_element(L, f, top + 2);
        dc_interrupt_poll_often(L, f->d, &f->looks);
    }
    if (lua_gettop(L) == top && i == n)
        return true;
    lua_settop(L, top);
    f->at = first;
    return false;
}

static void fill_level(lua_State *L, filling *f, int depth)
{
    const int idx = lua_gettop(L);
    if (depth == f->type.rank) {
        fill_element(L, f, idx);
        return;
    }
    if (lua_type(L, idx) != LUA_TTABLE)
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op,
                        "a table of %" PRId64 " is needed%s, not %s", f->type.dim[depth],
                        at_place(L, f, depth), dc_handle_describe(L, idx));
    luaL_checkstack(L, 8, "nested tables");
    const int64_t n = length_of(L, f, idx, depth);
    const bool plain = dc_args_is_plain(L, idx);
    if (plain && depth + 1 == f->type.rank && n == f->type.dim[depth] &&
        (fill_from_memory(L, f, idx, n) || fill_in_order(L, f, idx, n)))
        return;
    if (plain)
        refuse_keys(L, f, idx, n, depth);
    if (n != f->type.dim[depth])
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op,
                        "%" PRId64 " element%s%s, %" PRId64 " are needed on axis %d", n,
                        n == 1 ? "" : "s", at_place(L, f, depth), f->type.dim[depth], depth + 1);
    for (int64_t i = 1; i <= n; i++) {
        if (!plain || depth + 1 < f->type.rank) /* many without an element, or by a function in C */
            dc_interrupt_look(L, f->d);
        dc_interrupt_poll_often(L, f->d, &f->looks);
        f->index[depth] = i;
        if (plain)
            lua_rawgeti(L, idx, i);
        else
            lua_geti(L, idx, i);
        fill_level(L, f, depth + 1);
        lua_settop(L, idx);
    }
}

/* Pushes an empty handle made here. */
static dc_handle *new_handle(lua_State *L, dc_dsl *d)
{
    const dc_place place = dc_place_find(L, d);
    dc_handle *h = dc_handle_new(L, d);
    h->origin = dc_place_made(d, place.where);
    return h;
}

void dc_make_from_table(lua_State *L, dc_dsl *d, int idx, const dc_type *want, bool dtype_only,
                        const char *op)
{
    filling f = {.d = d, .op = op, .type = *want};
    idx = lua_absindex(L, idx);
    if (dtype_only)
        infer_shape(L, &f, idx);
    dc_handle *h = new_handle(L, d);
    char *room = f.at = dc_handle_room(L, d, &f.type);
    lua_pushvalue(L, idx);
    fill_level(L, &f, 0);
    lua_pop(L, 1);
    dc_handle_upload(L, d, h, &f.type, room);
    lua_pop(L, 1);
}

/* Anything but a table, a number, a boolean. */
static void refuse_value(lua_State *L, dc_dsl *d)
{
    const char *hint = NULL;
    if (dc_handle_test(L, 1) != NULL)
        hint = "it is a tensor already; :cast \"f32\" converts, :clone() copies";
    else if (lua_type(L, 1) == LUA_TSTRING)
        hint = "values first, then the type: dc.tensor({ 7, 2 }, \"i32\"); dc.zeros takes a type";
    const char *text =
        lua_pushfstring(L, "a table or a number is needed, not %s", dc_handle_describe(L, 1));
    dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = "tensor", .word = {text}},
                  &(dc_blame){.hint = hint});
}

/* dc.tensor(values, type) */
static int l_tensor(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type t = dc_type_scalar(DC_F32);
    bool dtype_only = true;
    lua_settop(L, 2);
    const int type = lua_type(L, 1);
    if (type != LUA_TTABLE && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
        refuse_value(L, d);
    if (!lua_isnil(L, 2)) {
        const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
        dc_dtype dtype;
        dtype_only = dc_dtype_find(text, strlen(text), &dtype);
        if (dtype_only)
            t = dc_type_scalar(dtype);
        else
            dc_args_type(L, d, 2, "tensor", &t);
    }
    dc_make_from_table(L, d, 1, &t, dtype_only, "tensor");
    return 1;
}

/* ---- by rule --------------------------------------------------------------------------------- */

typedef struct rule {
    dc_type type;
    uint64_t bits;
    int axis;
    dc_build_fn *build;
} rule;

static dc_status build_const(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    DC_UNUSED(in);
    return dc_build_bits(j, f, &r->type, r->bits, out);
}

static dc_status build_iota(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    const dc_dtype want = (dc_dtype)r->type.dtype;
    dc_type wide = r->type;
    DC_UNUSED(in);
    if (want == DC_BOOL || dc_dtype_bits(want) >= 32)
        return dc_build_iota(j, f, &r->type, r->axis, out);
    wide.dtype = DC_I32;
    DC_TRY(dc_build_iota(j, f, &wide, r->axis, out));
    return dc_build_cast(j, f, *out, want, out);
}

/* Is there a position that the dtype does not hold? Floats may round theirs. */
static void check_positions(lua_State *L, dc_dsl *d, const rule *r)
{
    const dc_dtype t = (dc_dtype)r->type.dtype;
    uint64_t bits;
    lua_pushinteger(L, dc_extent_bound(r->type.dim[r->axis]) - 1);
    if (r->type.dim[r->axis] > 0 &&
        (dc_dtype_kind(t) == DC_KIND_UINT || dc_dtype_kind(t) == DC_KIND_SINT) &&
        !dc_args_fits(L, -1, t, &bits))
        dc_args_refuse_element(L, d, lua_gettop(L), "iota", t, "");
    lua_pop(L, 1);
}

/* The row's number is the column's. */
static dc_status build_eye(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    dc_type index = r->type;
    dc_val row, column, same;
    DC_UNUSED(in);
    index.dtype = DC_I32;
    DC_TRY(dc_build_iota(j, f, &index, 0, &row));
    DC_TRY(dc_build_iota(j, f, &index, 1, &column));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, row, column, &same));
    return dc_build_cast(j, f, same, (dc_dtype)r->type.dtype, out);
}

/* Of a rule, in a trace: gradients may be taken for it, and two of equal values are not the same tensor. */
static dc_status build_leaf(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    DC_TRY(r->build(j, f, arg, in, out));
    if (dc_dtype_is_smooth((dc_dtype)out->type.dtype))
        out->ref = dc_custom_leaf(f, out->ref);
    return DC_OK;
}

static int apply_rule(lua_State *L, dc_dsl *d, const char *op, dc_build_fn *build, rule *r)
{
    dc_apply a = {.op = op, .nout = 1, .build = build, .arg = r};
    r->build = build;
    if (dc_trace_here(L, d) != NULL)
        a.build = build_leaf;
    dc_apply_run(L, d, &a);
    return 1;
}

static int constant(lua_State *L, const char *op, double v)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    dc_args_like(L, d, 1, op, &r.type);
    r.bits = dc_bits_of((dc_dtype)r.type.dtype, v);
    return apply_rule(L, d, op, build_const, &r);
}

static int l_zeros(lua_State *L)
{
    return constant(L, "zeros", 0);
}

static int l_ones(lua_State *L)
{
    return constant(L, "ones", 1);
}

static dc_status build_filled(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    DC_TRY(dc_build_expand(j, f, in[0], &r->type, out));
    out->type = r->type;
    return DC_OK;
}

/* Outside of traces the value is an argument, so that another one is no other program. */
static int l_full(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    lua_settop(L, 2);
    dc_args_like(L, d, 1, "full", &r.type);
    const dc_dtype t = (dc_dtype)r.type.dtype;
    r.bits = dc_args_element(L, d, 2, "full", t);
    if (dc_trace_here(L, d) != NULL || dc_dtype_is_complex(t) || dc_lazy_is_plain(t, r.bits))
        return apply_rule(L, d, "full", build_const, &r);
    dc_apply a = {.op = "full",
                  .in = {{.role = "value", .type = dc_type_scalar(t), .bits = r.bits}},
                  .n = 1,
                  .nout = 1,
                  .build = build_filled,
                  .arg = &r};
    dc_apply_run(L, d, &a);
    return 1;
}

/* Positions 0, 1, 2 ... along an axis (the last); a number n is short for i32[n]. */
static int l_iota(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    lua_settop(L, 2);
    int64_t size;
    if (lua_type(L, 1) == LUA_TNUMBER || dc_size_test(L, 1, &size)) {
        const int64_t n = dc_size_read(L, d, 1, "iota", "the size");
        if (n < 0 || dc_extent_bound(n) > INT32_MAX)
            dc_error_raisef(L, d, DC_ERR_ARG, "iota", "the size is 0 to 2147483647, not %" PRId64,
                            n);
        r.type = dc_type_make(DC_I32, 1, &n);
    } else {
        dc_args_like(L, d, 1, "iota", &r.type);
    }
    if (r.type.rank == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "iota", "a scalar has no axis to count along");
    r.axis = lua_isnil(L, 2) ? r.type.rank - 1 : dc_args_axis_of(L, d, 2, &r.type, "iota");
    if (r.type.dtype == DC_BOOL)
        dc_error_fact(L, d, DC_ERR_DTYPE,
                      &(dc_fact){.op = "iota", .type = {r.type}, .word = {"a number"}}, NULL);
    check_positions(L, d, &r);
    return apply_rule(L, d, "iota", build_iota, &r);
}

static int l_eye(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    dc_args_like(L, d, 1, "eye", &r.type);
    if (r.type.rank != 2)
        dc_error_fact(
            L, d, DC_ERR_RANK,
            &(dc_fact){
                .op = "eye", .type = {r.type}, .num = {r.type.rank}, .word = {"2 are needed"}},
            NULL);
    return apply_rule(L, d, "eye", build_eye, &r);
}

static const dc_binding bindings[] = {
    {"tensor", l_tensor, 2, DC_IN_MODULE}, {"zeros", l_zeros, 1, DC_IN_MODULE},
    {"ones", l_ones, 1, DC_IN_MODULE},     {"full", l_full, 2, DC_IN_MODULE},
    {"iota", l_iota, 2, DC_IN_MODULE},     {"eye", l_eye, 1, DC_IN_MODULE},
};

const dc_bindings dc_make_bindings = DC_BINDINGS(bindings);
