/*
 * Movement of whole tensors: reshape, flatten, expand, permute, transpose; and :rename, which moves
 * nothing.
 */
#include "core/base/extent.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int first_operand[1] = {1};

/* ---- to another shape ------------------------------------------------------------------------ */

static dc_status build_reshape(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    return dc_build_reshape(j, f, in[0], arg, out);
}

static dc_status build_expand(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_expand(j, f, in[0], arg, out);
}

static int l_reshape(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "reshape");
    dc_type want;
    const dc_type from = *dc_handle_type(h);
    dc_shape_arg_read(L, d, &from, "reshape", &want);
    dc_apply_to(L, d, "reshape", first_operand, 1, build_reshape, &want);
    return 1;
}

static int l_expand(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "expand");
    dc_type want;
    const dc_type from = *dc_handle_type(h);
    dc_shape_arg_read(L, d, &from, "expand", &want);
    for (int k = 0; k < want.rank; k++)
        if (want.dim[k] < 0)
            dc_error_raisef(L, d, DC_ERR_ARG, "expand", "a size is 0 or more");
    dc_apply_to(L, d, "expand", first_operand, 1, build_expand, &want);
    return 1;
}

/* x:flatten()  x:flatten(from)  x:flatten(from, to) */
static int l_flatten(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "flatten");
    const dc_type own = *dc_handle_type(h), *t = &own;
    lua_settop(L, 3);
    const int from = lua_isnil(L, 2) ? 0 : dc_args_axis(L, d, 2, h, "flatten");
    const int to = lua_isnil(L, 3) ? t->rank - 1 : dc_args_axis(L, d, 3, h, "flatten");
    dc_type want = dc_type_scalar((dc_dtype)t->dtype);
    int64_t product = 1;
    if (to < from && t->rank > 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "flatten", "axis %d is behind axis %d", from + 1, to + 1);
    for (int k = from; k <= to; k++)
        product = dc_extent_mul(d->rt->extents, product, t->dim[k]);
    if (product == DC_EXTENT_NONE)
        dc_error_fact(L, d, DC_ERR_EXTENT,
                      &(dc_fact){.op = "flatten", .axis = {from}, .type = {own}}, NULL);
    for (int k = 0; k < from; k++)
        want.dim[want.rank++] = t->dim[k];
    want.dim[want.rank++] = product;
    for (int k = to + 1; k < t->rank; k++)
        want.dim[want.rank++] = t->dim[k];
    dc_apply_to(L, d, "flatten", first_operand, 1, build_reshape, &want);
    return 1;
}

/* ---- names ------------------------------------------------------------------------------------ */

static dc_status build_rename(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_UNUSED(j);
    DC_UNUSED(f);
    *out = (dc_val){in[0].ref, *(const dc_type *)arg};
    return DC_OK;
}

typedef struct naming {
    dc_names *names;
    const char *text, **out;
} naming;

static dc_status intern_name_body(dc_job *j, void *arg)
{
    const naming *a = arg;
    DC_UNUSED(j);
    *a->out = dc_name_intern_text(a->names, a->text);
    return DC_OK;
}

/* The name on top, or false for none. */
static void read_name(lua_State *L, dc_dsl *d, const char **out)
{
    const int idx = lua_gettop(L);
    *out = NULL;
    if (lua_type(L, idx) == LUA_TBOOLEAN && !lua_toboolean(L, idx))
        return;
    const char *text = lua_type(L, idx) == LUA_TSTRING ? lua_tostring(L, idx) : "";
    const size_t n =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (n == 0 || n != lua_rawlen(L, idx) || (*text >= '0' && *text <= '9'))
        dc_error_raisef(L, d, DC_ERR_ARG, "rename",
                        "a name is letters, digits and _, or false for none; not %s",
                        dc_handle_describe(L, idx));
    naming a = {d->rt->names, text, out};
    dc_run(L, d, intern_name_body, &a);
}

/* x:rename { batch = "rows", [2] = "t", c = false }   x:rename { "rows", "t" }   x:rename("a", "b") */
static int l_rename(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "rename");
    const dc_type from = *dc_handle_type(h);
    dc_type to = from;
    if (lua_gettop(L) == 3) { /* as { [a] = b } */
        lua_createtable(L, 0, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, 3);
        if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
            dc_error_raisef(L, d, DC_ERR_ARG, "rename", "an axis is a number or a name, not %s",
                            dc_handle_describe(L, 2));
        if (lua_isnil(L, 3))
            read_name(L, d, &to.name[0]); /* raises */
        dc_args_axis_of(L, d, 2, &from, "rename");
        lua_rawset(L, -3);
        lua_replace(L, 2);
    }
    lua_settop(L, 2);
    if (lua_type(L, 2) != LUA_TTABLE)
        dc_error_raisef(L, d, DC_ERR_ARG, "rename",
                        "a table such as { batch = \"rows\" } is needed, not %s",
                        dc_handle_describe(L, 2));
    dc_axis_table_check(L, d, 2, &from, "rename");
    for (int k = 0; k < from.rank; k++) {
        dc_axis_table_push(L, d, 2, &from, k, "rename");
        if (!lua_isnil(L, -1))
            read_name(L, d, &to.name[k]);
        lua_settop(L, 2);
    }
    dc_apply_to(L, d, "rename", first_operand, 1, build_rename, &to);
    return 1;
}

/* ---- order of axes --------------------------------------------------------------------------- */

typedef struct order {
    int64_t perm[DC_MAX_RANK];
    int n;
} order;

static dc_status build_permute(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const order *o = arg;
    return dc_build_permute(j, f, in[0], o->perm, o->n, out);
}

/* x:permute(3, 1, 2) or x:permute { 3, 1, 2 } */
static int l_permute(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "permute");
    order o = {.n = 0};
    if (lua_type(L, 2) == LUA_TTABLE && lua_gettop(L) == 2) {
        const int n = (int)luaL_len(L, 2);
        luaL_checkstack(L, n + 8, "axes");
        for (int i = 1; i <= n; i++)
            lua_geti(L, 2, i);
        lua_remove(L, 2);
    }
    for (int i = 2; i <= lua_gettop(L) && o.n < DC_MAX_RANK; i++)
        o.perm[o.n++] = dc_args_axis(L, d, i, h, "permute");
    dc_apply_to(L, d, "permute", first_operand, 1, build_permute, &o);
    return 1;
}

/* The last two axes change places, or those two. */
static int l_transpose(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "transpose");
    const int rank = dc_handle_type(h)->rank;
    order o = {.n = rank};
    lua_settop(L, 3);
    if (rank < 2 && lua_isnil(L, 2))
        dc_error_raisef(L, d, DC_ERR_ARG, "transpose", "two axes are needed, there %s",
                        rank == 1 ? "is 1" : "are none");
    const int a = lua_isnil(L, 2) ? rank - 2 : dc_args_axis(L, d, 2, h, "transpose");
    const int b = lua_isnil(L, 2) ? rank - 1 : dc_args_axis(L, d, 3, h, "transpose");
    for (int k = 0; k < rank; k++)
        o.perm[k] = k == a ? b : k == b ? a : k;
    dc_apply_to(L, d, "transpose", first_operand, 1, build_permute, &o);
    return 1;
}

static const dc_binding bindings[] = {
    {"reshape", l_reshape, DC_ANY, DC_IN_METHODS}, {"expand", l_expand, DC_ANY, DC_IN_METHODS},
    {"flatten", l_flatten, 3, DC_IN_METHODS},      {"permute", l_permute, DC_ANY, DC_IN_METHODS},
    {"transpose", l_transpose, 3, DC_IN_METHODS},  {"rename", l_rename, 3, DC_IN_METHODS},
};

const dc_bindings dc_movement_bindings = DC_BINDINGS(bindings);
