/*
 * Reductions and what is made of them: sum, max, min, mean, softmax, log_softmax.
 *
 *   x:sum()   x:sum(2)   x:sum(-1)   x:sum "batch"   x:sum { 1, 2 }   x:sum { axis = 2, keep = true
 * }
 */
#include "dsl/impl.h"

typedef struct axes {
    uint32_t mask;
    bool keep;
} axes;

static dc_status build_sum(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_b_reduce(j, f, DC_OP_SUM, in[0], x->mask, x->keep, out);
}

static dc_status build_max(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_b_reduce(j, f, DC_OP_MAXR, in[0], x->mask, x->keep, out);
}

static dc_status build_min(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_b_reduce(j, f, DC_OP_MINR, in[0], x->mask, x->keep, out);
}

static dc_status build_mean(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_b_mean(j, f, in[0], x->mask, x->keep, out);
}

/*
 * Position of the largest element along one axis, the first of several: the least position at
 * which the element is the maximum.
 */
static dc_status build_argmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val top, hit, at, none;
    dc_type t = in[0].type;
    t.dtype = DC_I32;
    const int axis = __builtin_ctz(x->mask);
    DC_TRY(dc_b_reduce(j, f, DC_OP_MAXR, in[0], x->mask, true, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, in[0], top, &hit));
    DC_TRY(dc_b_iota(j, f, &t, axis, &at));
    DC_TRY(dc_ops_number(j, f, at, (double)(t.dim[axis] - 1), &none));
    const dc_val pick[3] = {hit, at, none};
    DC_TRY(dc_b_ew(j, f, DC_OP_WHERE, pick, 3, &at));
    return dc_b_reduce(j, f, DC_OP_MINR, at, x->mask, x->keep, out);
}

/* a - max(a), with the maximum as a constant for gradients, which cancels out of them. */
static dc_status shifted(dc_job *j, dc_func *f, const axes *x, dc_val a, dc_val *out)
{
    dc_val top;
    DC_TRY(dc_b_reduce(j, f, DC_OP_MAXR, a, x->mask, true, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, top, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, top, out));
    out->type = a.type; /* with all names */
    return DC_OK;
}

static dc_status build_softmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const axes *x = arg;
    dc_val e, sum;
    DC_TRY(shifted(j, f, x, in[0], &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &e));
    DC_TRY(dc_b_reduce(j, f, DC_OP_SUM, e, x->mask, true, &sum));
    return dc_ops_2(j, f, DC_OP_DIV, e, sum, out);
}

static dc_status build_log_softmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                   dc_val *out)
{
    const axes *x = arg;
    dc_val a, e, sum;
    DC_TRY(shifted(j, f, x, in[0], &a));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, a, &e));
    DC_TRY(dc_b_reduce(j, f, DC_OP_SUM, e, x->mask, true, &sum));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, sum, &sum));
    return dc_ops_2(j, f, DC_OP_SUB, a, sum, out);
}

static const struct row {
    const char *name;
    dc_build_fn *build;
    bool one_axis; /* needs exactly one */
} rows[] = {
    {"sum", build_sum, false},        {"max", build_max, false},
    {"min", build_min, false},        {"mean", build_mean, false},
    {"softmax", build_softmax, true}, {"log_softmax", build_log_softmax, true},
    {"argmax", build_argmax, true},
};

static int l_reduce(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = &rows[lua_tointeger(L, lua_upvalueindex(2))];
    static const int at[1] = {1};
    const dc_handle *h = dc_handle_check(L, d, 1, r->name);
    axes x;
    lua_settop(L, 2);
    x.mask = dc_args_axes(L, d, 2, h, r->name, &x.keep);
    if (r->one_axis && (x.mask == 0 || (x.mask & (x.mask - 1)) != 0))
        dc_error_raisef(L, d, DC_ERR_ARG, r->name, "one axis is needed, as in x:%s(-1)", r->name);
    if (r->build == build_argmax && dc_handle_type(h)->dim[__builtin_ctz(x.mask)] == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, r->name, "axis %d of %s has no elements",
                        __builtin_ctz(x.mask) + 1, dc_args_describe(L, 1));
    dc_apply a = {.build = r->build, .arg = &x};
    dc_apply_operands(L, d, &a, r->name, at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

void dc_reduce_register(lua_State *L, dc_dsl *d, int methods, int module)
{
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, d);
        lua_pushinteger(L, (lua_Integer)i);
        lua_pushcclosure(L, l_reduce, 2);
        lua_pushvalue(L, -1);
        lua_setfield(L, methods, rows[i].name);
        lua_setfield(L, module, rows[i].name);
    }
}
