/*
 * New tensors: from Lua numbers and tables, and by rule.
 *
 *   dc.tensor { { 1, 2 }, { 3, 4 } }     f32[2, 2]
 *   dc.tensor({ 7, 2, 1 }, "i32[3]")     dtype and shape, checked;  "i32": the dtype alone
 *   dc.zeros "f32[2, 3]"   dc.ones   dc.full("f32[3]", 0.5)   dc.iota("i32[2, 3]", axis)
 */
#include "dsl/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

/* The type that a table of tables of numbers has, from its first elements. */
static void infer_shape(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *t)
{
    const int top = lua_gettop(L);
    lua_pushvalue(L, idx);
    while (lua_type(L, -1) == LUA_TTABLE) {
        if (t->rank == DC_MAX_RANK)
            dc_error_raisef(L, d, DC_ERR_LITERAL, op, "tables nested more than %d deep",
                            DC_MAX_RANK);
        t->dim[t->rank++] = luaL_len(L, -1);
        luaL_checkstack(L, 4, "nested tables");
        lua_geti(L, -1, 1);
    }
    lua_settop(L, top);
    if (!dc_dims_fit(t->rank, t->dim, dc_dtype_size((dc_dtype)t->dtype)))
        dc_error_raisef(L, d, DC_ERR_LITERAL, op, "the table is too large");
}

typedef struct filling {
    dc_dsl *d;
    const char *op;
    const dc_type *type;
    char *at;
    int64_t index[DC_MAX_RANK]; /* where we are, from 1 */
} filling;

/* "[2][3]" */
static const char *where_in(lua_State *L, const filling *f, int depth)
{
    char text[DC_MAX_RANK * 24] = "";
    for (int k = 0, n = 0; k < depth; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "[%" PRId64 "]", f->index[k]);
    return lua_pushstring(L, text);
}

static void fill_level(lua_State *L, filling *f, int depth)
{
    const dc_type *t = f->type;
    const int idx = lua_gettop(L);
    const dc_dtype dtype = (dc_dtype)t->dtype;
    if (depth == t->rank) {
        if (lua_type(L, idx) == LUA_TTABLE || lua_isnil(L, idx))
            dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op, "a number is needed at %s, not %s",
                            where_in(L, f, depth), dc_args_describe(L, idx));
        dc_bits_store(dtype, f->at, dc_args_element(L, f->d, idx, f->op, dtype));
        f->at += dc_dtype_size(dtype);
        return;
    }
    if (lua_type(L, idx) != LUA_TTABLE)
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op, "a table is needed at %s, not %s",
                        depth == 0 ? "the top" : where_in(L, f, depth), dc_args_describe(L, idx));
    const int64_t n = luaL_len(L, idx);
    if (n != t->dim[depth])
        dc_error_raisef(L, f->d, DC_ERR_LITERAL, f->op,
                        "%" PRId64 " elements at %s, %" PRId64 " are needed on axis %d", n,
                        depth == 0 ? "the top" : where_in(L, f, depth), t->dim[depth], depth + 1);
    luaL_checkstack(L, 4, "nested tables");
    for (int64_t i = 1; i <= n; i++) {
        f->index[depth] = i;
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
    if (place.where != NULL)
        h->origin = dc_place_intern(d, "made at %s", place.where);
    return h;
}

void dc_make_from_table(lua_State *L, dc_dsl *d, int idx, const dc_type *want, bool dtype_only,
                        const char *op)
{
    dc_type t = *want;
    idx = lua_absindex(L, idx);
    if (dtype_only)
        infer_shape(L, d, idx, op, &t);
    const size_t bytes = dc_type_bytes(&t);
    dc_handle *h = new_handle(L, d);
    char *room = lua_newuserdatauv(L, bytes ? bytes : 1, 0);
    filling f = {.d = d, .op = op, .type = &t, .at = room};
    lua_pushvalue(L, idx);
    fill_level(L, &f, 0);
    lua_pop(L, 1);
    dc_handle_upload(L, d, h, &t, room, op);
    lua_pop(L, 1);
}

static int l_tensor(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_type t = dc_type_scalar(DC_F32);
    bool dtype_only = true;
    lua_settop(L, 2);
    if (lua_type(L, 2) == LUA_TSTRING) {
        dc_dtype dtype;
        dtype_only = dc_dtype_find(lua_tostring(L, 2), strlen(lua_tostring(L, 2)), &dtype);
        if (dtype_only)
            t = dc_type_scalar(dtype);
    }
    if (!dtype_only || (!lua_isnil(L, 2) && lua_type(L, 2) != LUA_TSTRING)) {
        dtype_only = false;
        dc_args_type(L, d, 2, "tensor", &t);
    }
    const int type = lua_type(L, 1);
    if (type != LUA_TTABLE && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, "tensor", "a table or a number is needed, not %s",
                        dc_args_describe(L, 1));
    dc_make_from_table(L, d, 1, &t, dtype_only, "tensor");
    return 1;
}

/* ---- by rule --------------------------------------------------------------------------------- */

typedef struct rule {
    dc_type type;
    uint64_t bits;
    int axis;
} rule;

static dc_status build_const(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    DC_UNUSED(in);
    return dc_b_const(j, f, &r->type, dc_value_of((dc_dtype)r->type.dtype, r->bits), out);
}

static dc_status build_iota(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const rule *r = arg;
    DC_UNUSED(in);
    return dc_b_iota(j, f, &r->type, r->axis, out);
}

static int constant(lua_State *L, const char *op, double v)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    dc_args_type(L, d, 1, op, &r.type);
    r.bits = dc_bits_of((dc_dtype)r.type.dtype, v);
    dc_apply a = {.op = op, .nout = 1, .build = build_const, .arg = &r};
    dc_apply_run(L, d, &a);
    return 1;
}

static int l_zeros(lua_State *L)
{
    return constant(L, "zeros", 0);
}

static int l_ones(lua_State *L)
{
    return constant(L, "ones", 1);
}

static int l_full(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    lua_settop(L, 2);
    dc_args_type(L, d, 1, "full", &r.type);
    r.bits = dc_args_element(L, d, 2, "full", (dc_dtype)r.type.dtype);
    dc_apply a = {.op = "full", .nout = 1, .build = build_const, .arg = &r};
    dc_apply_run(L, d, &a);
    return 1;
}

/* Positions 0, 1, 2 ... along an axis (the last). */
static int l_iota(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    rule r;
    lua_settop(L, 2);
    dc_args_type(L, d, 1, "iota", &r.type);
    if (r.type.rank == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "iota", "a scalar has no axis to count along");
    r.axis = lua_isnil(L, 2) ? r.type.rank - 1 : dc_args_axis_of(L, d, 2, &r.type, "iota");
    dc_apply a = {.op = "iota", .nout = 1, .build = build_iota, .arg = &r};
    dc_apply_run(L, d, &a);
    return 1;
}

void dc_make_register(lua_State *L, dc_dsl *d, int module)
{
    static const luaL_Reg fn[] = {{"tensor", l_tensor}, {"zeros", l_zeros}, {"ones", l_ones},
                                  {"full", l_full},     {"iota", l_iota},   {NULL, NULL}};
    lua_pushvalue(L, module);
    dc_lib_add(L, d, fn);
    lua_pop(L, 1);
}
