/*
 * Movement of whole tensors: reshape, flatten, transpose, permute, expand.
 */
#include "dsl/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int first_operand[1] = {1};

static void run(lua_State *L, dc_dsl *d, const char *op, dc_build_fn *build, const void *arg)
{
    dc_apply a = {.build = build, .arg = arg};
    dc_apply_operands(L, d, &a, op, first_operand, 1);
    dc_apply_run(L, d, &a);
}

/* ---- to another shape ------------------------------------------------------------------------ */

static dc_status build_reshape(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    return dc_b_reshape(j, f, in[0], arg, out);
}

static dc_status build_expand(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_b_expand(j, f, in[0], arg, out);
}

static void add_dim(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *t)
{
    if (t->rank == DC_MAX_RANK)
        dc_error_fact(L, d, DC_ERR_TOO_MANY_AXES,
                      &(dc_fact){.op = op, .num = {DC_MAX_RANK + 1, DC_MAX_RANK}}, NULL);
    t->dim[t->rank++] = dc_args_integer(L, d, idx, op, "a size");
}

/* "[8, batch=64]", { 8, 64 } or 8, 64 from argument 2 on. */
static void read_shape(lua_State *L, dc_dsl *d, const char *op, dc_dtype dtype, dc_type *t)
{
    const int n = lua_gettop(L);
    *t = dc_type_scalar(dtype);
    if (n == 2 && lua_type(L, 2) == LUA_TSTRING) {
        const char *text = lua_tostring(L, 2);
        if (*text == '[') {
            lua_pushfstring(L, "%s%s", dc_dtype_name(dtype), text);
            lua_replace(L, 2);
        }
        dc_args_type(L, d, 2, op, t);
        if (t->dtype != dtype)
            dc_error_raisef(L, d, DC_ERR_ARG, op,
                            "a shape such as \"[64, 784]\" is needed; "
                            ":cast changes the dtype");
        return;
    }
    if (n == 2 && lua_type(L, 2) == LUA_TTABLE) {
        const lua_Integer len = luaL_len(L, 2);
        for (lua_Integer i = 1; i <= len; i++, lua_pop(L, 1)) {
            lua_geti(L, 2, i);
            add_dim(L, d, lua_gettop(L), op, t);
        }
        return;
    }
    for (int i = 2; i <= n; i++)
        add_dim(L, d, i, op, t);
}

static int l_reshape(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "reshape");
    dc_type want;
    read_shape(L, d, "reshape", (dc_dtype)dc_handle_type(h)->dtype, &want);
    run(L, d, "reshape", build_reshape, &want);
    return 1;
}

static int l_expand(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "expand");
    dc_type want;
    read_shape(L, d, "expand", (dc_dtype)dc_handle_type(h)->dtype, &want);
    for (int k = 0; k < want.rank; k++)
        if (want.dim[k] < 0)
            dc_error_raisef(L, d, DC_ERR_ARG, "expand", "a size is 0 or more");
    run(L, d, "expand", build_expand, &want);
    return 1;
}

/* x:flatten()  x:flatten(from)  x:flatten(from, to) */
static int l_flatten(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "flatten");
    const dc_type *t = dc_handle_type(h);
    lua_settop(L, 3);
    const int from = lua_isnil(L, 2) ? 0 : dc_args_axis(L, d, 2, h, "flatten");
    const int to = lua_isnil(L, 3) ? t->rank - 1 : dc_args_axis(L, d, 3, h, "flatten");
    dc_type want = dc_type_scalar((dc_dtype)t->dtype);
    int64_t product = 1;
    if (to < from && t->rank > 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "flatten", "axis %d is behind axis %d", from + 1, to + 1);
    for (int k = from; k <= to; k++)
        product *= t->dim[k];
    for (int k = 0; k < from; k++)
        want.dim[want.rank++] = t->dim[k];
    want.dim[want.rank++] = product;
    for (int k = to + 1; k < t->rank; k++)
        want.dim[want.rank++] = t->dim[k];
    run(L, d, "flatten", build_reshape, &want);
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
    return dc_b_permute(j, f, in[0], o->perm, o->n, out);
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
    run(L, d, "permute", build_permute, &o);
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
    run(L, d, "transpose", build_permute, &o);
    return 1;
}

void dc_move_register(lua_State *L, dc_dsl *d, int methods)
{
    static const luaL_Reg fn[] = {{"reshape", l_reshape},     {"expand", l_expand},
                                  {"flatten", l_flatten},     {"permute", l_permute},
                                  {"transpose", l_transpose}, {NULL, NULL}};
    lua_pushvalue(L, methods);
    dc_lib_add(L, d, fn);
    lua_pop(L, 1);
}
