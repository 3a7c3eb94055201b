/*
 * Integers as data, which count from 0: elements taken at them, and one-hot rows.
 *
 *   table:take(ids, axis)   x:put(ids, v, axis)   y:one_hot(10)   x:tril(k)   x:triu(k)
 *
 * An integer outside its axis is an error that names its place (data_check.c). Functions of stdlib/indexing.lua are
 * made of `pick` and `place`, where integers outside are as the operations have them (core/ir/ops.def).
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <string.h>

static const int first_two[2] = {1, 2};

/* The tensor of integers at idx; a table of numbers becomes one. */
static dc_type integers(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    if (lua_type(L, idx) == LUA_TTABLE) {
        const dc_type want = dc_type_scalar(DC_I32);
        dc_make_from_table(L, d, idx, &want, true, op);
        lua_replace(L, idx);
        dc_devices_roam(L, d, idx);
    }
    if (dc_handle_test(L, idx) == NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a tensor of positions from 0 is needed, not %s",
                        dc_handle_describe(L, idx));
    dc_handle *h = dc_handle_check(L, d, idx, op);
    const dc_type t = *dc_handle_type(h);
    const dc_kind kind = dc_dtype_kind((dc_dtype)t.dtype);
    const dc_operand in = {.h = h, .role = "index", .type = t};
    if (kind != DC_KIND_SINT && kind != DC_KIND_UINT)
        dc_error_fact(L, d, DC_ERR_DTYPE, &(dc_fact){.op = op, .type = {t}, .word = {"an integer"}},
                      &(dc_blame){.in = &in,
                                  .n = 1,
                                  .hint = kind != DC_KIND_BOOL ? NULL
                                          : strcmp(op, "put") == 0
                                              ? "dc.where(mask, v, x) has v where the mask is true"
                                              : "dc.where(mask, x, 0) keeps the shape"});
    return t;
}

/* ---- take ------------------------------------------------------------------------------------- */

static dc_status build_take(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_gather(j, f, in[0], in[1], *(const int *)arg, 0, out);
}

/* x:take(idx, axis): the axis, 1 if none is given, gives way to those of idx. */
static int l_take(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_type t = *dc_handle_type(dc_handle_check(L, d, 1, "take"));
    lua_settop(L, 3);
    if (lua_isnil(L, 3)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 3);
    }
    const int axis = dc_args_axis_of(L, d, 3, &t, "take");
    const dc_type idx = integers(L, d, 2, "take");
    if (dc_type_count(&idx) > 0)
        dc_data_check_index(L, d, 2,
                            (dc_trace_check){.id = DC_ERR_POSITION,
                                             .op = "take",
                                             .role = "index",
                                             .axis = axis,
                                             .classes = t.dim[axis]});
    dc_apply_to(L, d, "take", first_two, 2, build_take, &axis);
    return 1;
}

/* ---- put -------------------------------------------------------------------------------------- */

static dc_status build_put(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_scatter(j, f, DC_OP_SCATTER, in[0], in[2], in[1], *(const int *)arg, 0,
                            out); /* x, v, idx */
}

/* A number becomes a tensor of the dtype of x, since it stands beside integers, too. */
static void number_like(lua_State *L, dc_dsl *d, int idx, const dc_type *x)
{
    if (!dc_args_is_scalar(L, idx))
        return;
    const dc_type t = dc_type_scalar((dc_dtype)x->dtype);
    dc_make_from_table(L, d, idx, &t, false, "put");
    lua_replace(L, idx);
    dc_devices_roam(L, d, idx);
}

/* x:put(idx, v, axis): v at integers along the axis, 1 if none is given; of equal ones the last. */
int dc_gather_put(lua_State *L, dc_dsl *d)
{
    static const int at[3] = {1, 3, 2};
    const dc_type x = *dc_handle_type(dc_handle_check(L, d, 1, "put"));
    lua_settop(L, 4);
    if (lua_isnil(L, 4)) {
        lua_pushinteger(L, 1);
        lua_replace(L, 4);
    }
    const int axis = dc_args_axis_of(L, d, 4, &x, "put");
    const dc_type idx = integers(L, d, 2, "put");
    number_like(L, d, 3, &x);
    if (dc_type_count(&idx) > 0)
        dc_data_check_index(L, d, 2,
                            (dc_trace_check){.id = DC_ERR_POSITION,
                                             .op = "put",
                                             .role = "index",
                                             .axis = axis,
                                             .classes = x.dim[axis]});
    dc_apply a = {.build = build_put, .arg = &axis};
    dc_apply_operands(L, d, &a, "put", at, 3);
    dc_apply_run(L, d, &a);
    return 1;
}

/* ---- one_hot ---------------------------------------------------------------------------------- */

typedef struct hot {
    int64_t n;
    dc_dtype dtype;
} hot;

static dc_status build_one_hot(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const hot *h = arg;
    dc_val a = in[0], at;
    dc_type column, whole;
    if (a.type.rank == DC_MAX_RANK)
        return dc_fail(j, DC_ERR_TOO_MANY_AXES, &(dc_fact){.num = {a.type.rank + 1, DC_MAX_RANK}});
    if (dc_dtype_bits((dc_dtype)a.type.dtype) < 32)
        DC_TRY(dc_build_cast(j, f, a, DC_I32, &a));
    column = a.type;
    column.dim[column.rank] = 1;
    column.name[column.rank++] = NULL;
    a = (dc_val){dc_graph_reshape(f, a.ref, column.rank, column.dim), column};
    whole = column;
    whole.dim[whole.rank - 1] = h->n;
    DC_TRY(dc_build_iota(j, f, &whole, whole.rank - 1, &at));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, at, out));
    return h->dtype == DC_BOOL ? DC_OK : dc_build_cast(j, f, *out, h->dtype, out);
}

/* y:one_hot(n)  y:one_hot(n, "bool"): a new last axis of n, f32 if no dtype is given. */
static int l_one_hot(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    hot h = {.dtype = DC_F32};
    lua_settop(L, 3);
    const dc_type t = integers(L, d, 1, "one_hot");
    h.n = dc_args_count(L, d, 2, "one_hot", "the number of classes");
    if (h.n < 1)
        dc_error_raisef(L, d, DC_ERR_ARG, "one_hot",
                        "the number of classes is at least 1, not %" PRId64, h.n);
    const char *name = lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : "";
    if (!lua_isnil(L, 3) && !dc_dtype_find(name, strlen(name), &h.dtype))
        dc_error_raisef(L, d, DC_ERR_ARG, "one_hot", "a dtype such as \"f32\" is needed, not %s",
                        dc_handle_describe(L, 3));
    if (dc_type_count(&t) > 0)
        dc_data_check_index(L, d, 1,
                            (dc_trace_check){.id = DC_ERR_POSITION,
                                             .op = "one_hot",
                                             .role = "of",
                                             .axis = t.rank,
                                             .classes = h.n});
    dc_apply_to(L, d, "one_hot", first_two, 1, build_one_hot, &h);
    return 1;
}

/* ---- triangles -------------------------------------------------------------------------------- */

typedef struct triangle {
    int64_t k;
    bool upper;
} triangle;

/* column - row <= k, or >= k */
static dc_status build_triangle(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                dc_val *out)
{
    const triangle *t = arg;
    const int rank = in[0].type.rank;
    dc_type at = dc_type_scalar(DC_I32);
    dc_val row, column, k, keep, zero;
    at.rank = 2;
    at.dim[0] = in[0].type.dim[rank - 2];
    at.dim[1] = in[0].type.dim[rank - 1];
    DC_TRY(dc_build_iota(j, f, &at, 0, &row));
    DC_TRY(dc_build_iota(j, f, &at, 1, &column));
    DC_TRY(dc_ops_number(j, f, row, (double)t->k, &k));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, column, row, &column));
    DC_TRY(t->upper ? dc_ops_2(j, f, DC_OP_LE, k, column, &keep)
                    : dc_ops_2(j, f, DC_OP_LE, column, k, &keep));
    DC_TRY(dc_ops_number(j, f, in[0], 0, &zero));
    const dc_val pick[3] = {keep, in[0], zero};
    return dc_build_ew(j, f, DC_OP_WHERE, pick, 3, out);
}

static int triangle_of(lua_State *L, const char *op, bool upper)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_type t = *dc_handle_type(dc_handle_check(L, d, 1, op));
    lua_settop(L, 2);
    if (t.rank < 2)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "two axes are needed, there %s",
                        t.rank == 1 ? "is 1" : "are none");
    const triangle a = {lua_isnil(L, 2) ? 0 : dc_args_count(L, d, 2, op, "a diagonal"), upper};
    dc_apply_to(L, d, op, first_two, 1, build_triangle, &a);
    return 1;
}

static int l_tril(lua_State *L)
{
    return triangle_of(L, "tril", false);
}

static int l_triu(lua_State *L)
{
    return triangle_of(L, "triu", true);
}

/* ---- for stdlib/ ------------------------------------------------------------------------------ */

typedef struct picking {
    dc_op op;
    int axis, nb;
} picking;

static dc_status build_pick(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const picking *p = arg;
    return dc_build_gather(j, f, in[0], in[1], p->axis, p->nb, out);
}

static dc_status build_place(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const picking *p = arg;
    return dc_build_scatter(j, f, p->op, in[0], in[1], in[2], p->axis, p->nb, out);
}

/* index(v, op): v as a tensor of integers, a table of them too. */
static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 2));
    lua_settop(L, 1);
    integers(L, d, 1, op);
    return 1;
}

/* check_index(index, x, axis, op): a test at run time that its integers are inside the axis of x. */
static int l_check_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 4));
    const dc_type index = *dc_handle_type(dc_handle_check(L, d, 1, op));
    const dc_type x = *dc_handle_type(dc_handle_check(L, d, 2, op));
    const int axis = dc_args_axis_of(L, d, 3, &x, op);
    lua_settop(L, 1);
    if (dc_type_count(&index) > 0)
        dc_data_check_index(L, d, 1,
                            (dc_trace_check){.id = DC_ERR_POSITION,
                                             .op = op,
                                             .role = "index",
                                             .axis = axis,
                                             .classes = x.dim[axis]});
    return 0;
}

static int as_integer(lua_State *L, int idx)
{
    return (int)luaL_checkinteger(L, idx);
}

/* pick(op, x, index, axis, n): gather along the axis; n axes in front are common to x and the integers. */
static int l_pick(lua_State *L)
{
    static const int at[2] = {2, 3};
    dc_dsl *d = dc_dsl_of(L);
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    const picking p = {.axis = as_integer(L, 4) - 1, .nb = as_integer(L, 5)};
    dc_apply_to(L, d, op, at, 2, build_pick, &p);
    return 1;
}

/* place(op, how, x, index, v, axis, n): x with v at the integers, put or combined with what is there. */
static int l_place(lua_State *L)
{
    static const char *const names[] = {"set", "add", "mul", "max", "min", NULL};
    static const dc_op ops[] = {DC_OP_SCATTER, DC_OP_SCATTER_ADD, DC_OP_SCATTER_MUL,
                                DC_OP_SCATTER_MAX, DC_OP_SCATTER_MIN};
    static const int at[3] = {3, 4, 5};
    dc_dsl *d = dc_dsl_of(L);
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    const picking p = {.op = ops[luaL_checkoption(L, 2, "set", names)],
                       .axis = as_integer(L, 6) - 1,
                       .nb = as_integer(L, 7)};
    dc_apply_to(L, d, op, at, 3, build_place, &p);
    return 1;
}

static const dc_binding bindings[] = {
    {"index", l_index, DC_ANY, DC_IN_LIBRARY},
    {"check_index", l_check_index, DC_ANY, DC_IN_LIBRARY},
    {"pick", l_pick, DC_ANY, DC_IN_LIBRARY},
    {"place", l_place, DC_ANY, DC_IN_LIBRARY},
    {"take", l_take, 3, DC_IN_BOTH},
    {"one_hot", l_one_hot, 3, DC_IN_BOTH},
    {"tril", l_tril, 2, DC_IN_BOTH},
    {"triu", l_triu, 2, DC_IN_BOTH},
};

const dc_bindings dc_gather_bindings = DC_BINDINGS(bindings);
