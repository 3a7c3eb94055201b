/*
 * Reductions and what is made of them: sum, mean, argmax, softmax and the like.
 *
 *   x:sum()   x:sum(2)   x:sum(-1)   x:sum "batch"   x:sum { 1, 2 }
 *   x:sum { axis = 2, keep = true }   x:sum { dtype = "i32" }
 *
 * Those of several steps are computed in f32 where the operand is a float of 16 bits.
 * The gradient of a square root of nothing but zeros (std, norm) is zero.
 */
#include "core/base/extent.h"
#include "core/build/complex.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>

typedef struct axes {
    uint32_t mask;
    bool keep;
    double correction; /* of var and std */
    int dtype;         /* what is computed in, and the result; -1: that of the operation */
    bool no_f64;
} axes;

/* An operation in the dtype that was asked for. */
static dc_status in_dtype(dc_job *j, dc_func *f, const axes *x, dc_build_fn *build, dc_val a,
                          dc_val *out)
{
    axes own = *x;
    own.dtype = -1;
    DC_TRY(dc_build_cast(j, f, a, (dc_dtype)x->dtype, &a));
    DC_TRY(build(j, f, &own, &a, out));
    return dc_build_cast(j, f, *out, (dc_dtype)x->dtype, out);
}

/* Bools are counted in i32, as positions are; integers are summed in 64 bits. */
static dc_status build_sum(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    if (x->dtype >= 0) {
        const bool narrow =
            dc_dtype_bits((dc_dtype)x->dtype) == 32 && !dc_dtype_is_smooth((dc_dtype)x->dtype);
        dc_val a;
        if (!narrow)
            return in_dtype(j, f, x, build_sum, in[0], out);
        DC_TRY(dc_build_cast(j, f, in[0], (dc_dtype)x->dtype, &a));
        return dc_build_reduce(j, f, DC_OP_SUM, a, x->mask, x->keep, out);
    }
    if (in[0].type.dtype == DC_BOOL)
        return dc_build_reduce(j, f, DC_OP_SUM, in[0], x->mask, x->keep, out);
    return dc_build_sum(j, f, in[0], x->mask, x->keep, out);
}

static dc_status build_max(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_build_reduce(j, f, DC_OP_MAXR, in[0], x->mask, x->keep, out);
}

static dc_status build_min(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_build_reduce(j, f, DC_OP_MINR, in[0], x->mask, x->keep, out);
}

static dc_status build_prod(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0];
    if (x->dtype >= 0)
        return in_dtype(j, f, x, build_prod, a, out);
    if (a.type.dtype != DC_BOOL)
        DC_TRY(dc_build_wide(j, f, a, &a));
    return dc_build_reduce(j, f, DC_OP_PROD, a, x->mask, x->keep, out);
}

static dc_status build_mean(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0];
    if (x->dtype >= 0)
        return in_dtype(j, f, x, build_mean, a, out);
    if (x->no_f64)
        DC_TRY(dc_ops_float(j, f, a, &a));
    return dc_build_mean(j, f, a, x->mask, x->keep, out);
}

static dc_status build_all(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_build_reduce(j, f, DC_OP_MINR, in[0], x->mask, x->keep, out);
}

static dc_status build_any(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    return dc_build_reduce(j, f, DC_OP_MAXR, in[0], x->mask, x->keep, out);
}

/* ---- positions -------------------------------------------------------------------------------- */

/*
 * Position of the largest or smallest element along one axis, the first of several: the least
 * position at which the element is the extreme, or is NaN.
 */
static dc_status position(dc_job *j, dc_func *f, dc_op op, const axes *x, dc_val a, dc_val *out)
{
    dc_val top, hit, nan, at, none;
    dc_type t = a.type;
    t.dtype = DC_I32;
    const int axis = __builtin_ctz(x->mask);
    DC_TRY(dc_build_reduce(j, f, op, a, x->mask, true, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, top, &hit));
    if (dc_dtype_is_float((dc_dtype)a.type.dtype)) {
        DC_TRY(dc_ops_2(j, f, DC_OP_NE, a, a, &nan));
        DC_TRY(dc_ops_2(j, f, DC_OP_OR, hit, nan, &hit));
    }
    DC_TRY(dc_build_iota(j, f, &t, axis, &at));
    DC_TRY(dc_ops_number(j, f, at, (double)(dc_extent_bound(t.dim[axis]) - 1), &none));
    DC_TRY(dc_ops_where(j, f, hit, at, none, &at));
    return dc_build_reduce(j, f, DC_OP_MINR, at, x->mask, x->keep, out);
}

static dc_status build_argmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return position(j, f, DC_OP_MAXR, arg, in[0], out);
}

static dc_status build_argmin(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return position(j, f, DC_OP_MINR, arg, in[0], out);
}

/* ---- squares ---------------------------------------------------------------------------------- */

dc_status dc_ops_need_real(dc_job *j, const dc_val *v)
{
    if (!dc_complex_is(v))
        return DC_OK;
    return dc_fail(j, DC_ERR_DTYPE,
                   &(dc_fact){.type = {v->type}, .word = {"a real number"}, .operand = 1});
}

/* max(each * the elements of t - less, 0), of the dtype of `like`. */
static dc_status count_less(dc_job *j, dc_func *f, const dc_type *t, double each, double less,
                            dc_val like, dc_val *out)
{
    dc_val by, zero;
    DC_TRY(dc_build_count(j, f, t, each, out));
    DC_TRY(dc_ops_number(j, f, *out, less, &by));
    DC_TRY(dc_ops_number(j, f, *out, 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, *out, by, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_MAX, *out, zero, out));
    return dc_build_cast(j, f, *out, (dc_dtype)like.type.dtype, out);
}

/* The sum of squares of the distances from the mean, by the count less the correction: of both parts where it is complex. */
static dc_status build_var(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a, mean, off, count;
    double n = 1;
    if (dc_complex_is(&in[0])) {
        const dc_val part[2] = {dc_complex_part(f, in[0], 0), dc_complex_part(f, in[0], 1)};
        DC_TRY(build_var(j, f, arg, &part[0], out));
        DC_TRY(build_var(j, f, arg, &part[1], &off));
        return dc_ops_2(j, f, DC_OP_ADD, *out, off, out);
    }
    dc_type counted = {.dtype = DC_F32}; /* axes whose size is known at run time */
    for (int k = 0; k < in[0].type.rank; k++)
        if ((x->mask >> k & 1) && dc_extent_is(in[0].type.dim[k]))
            counted.dim[counted.rank++] = in[0].type.dim[k];
        else if (x->mask >> k & 1)
            n *= (double)in[0].type.dim[k];
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    DC_TRY(dc_build_mean(j, f, a, x->mask, true, &mean));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, mean, &off));
    off.type = a.type; /* with all names */
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, off, off, &off));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, off, x->mask, x->keep, out));
    DC_TRY(dc_ops_number(j, f, a, n > x->correction ? n - x->correction : 0, &count));
    if (counted.rank > 0)
        DC_TRY(count_less(j, f, &counted, n, x->correction, a, &count));
    return dc_ops_2(j, f, DC_OP_DIV, *out, count, out);
}

/* The root, whose gradient at 0 is 0. */
static dc_status root(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    dc_val zero, one, none;
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, zero, &none));
    DC_TRY(dc_ops_where(j, f, none, one, a, out));
    DC_TRY(dc_ops_1(j, f, DC_OP_SQRT, *out, out));
    return dc_ops_where(j, f, none, zero, *out, out);
}

static dc_status build_std(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_TRY(build_var(j, f, arg, in, out));
    return root(j, f, *out, out);
}

static dc_status build_norm(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a;
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    if (dc_complex_is(&a)) {
        dc_val re = dc_complex_part(f, a, 0), im = dc_complex_part(f, a, 1);
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, re, re, &re));
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, im, im, &im));
        DC_TRY(dc_ops_2(j, f, DC_OP_ADD, re, im, &a));
    } else
        DC_TRY(dc_ops_2(j, f, DC_OP_MUL, a, a, &a));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, a, x->mask, x->keep, out));
    return root(j, f, *out, out);
}

/* ---- sums of exponentials --------------------------------------------------------------------- */

/* a - max(a), with the maximum as a constant for gradients, which cancels out of them. */
static dc_status shifted(dc_job *j, dc_func *f, const axes *x, dc_val a, dc_val *out)
{
    dc_val top;
    DC_TRY(dc_build_reduce(j, f, DC_OP_MAXR, a, x->mask, true, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, top, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, top, out));
    out->type = a.type; /* with all names */
    return DC_OK;
}

static dc_status build_softmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const axes *x = arg;
    dc_val e, sum, one;
    DC_TRY(shifted(j, f, x, in[0], &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &e));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, e, x->mask, true, &sum));
    DC_TRY(dc_ops_number(j, f, sum, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, one, sum, &sum)); /* one division for them all */
    return dc_ops_2(j, f, DC_OP_MUL, e, sum, out);
}

static dc_status build_log_softmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                   dc_val *out)
{
    const axes *x = arg;
    dc_val a, e, sum;
    DC_TRY(shifted(j, f, x, in[0], &a));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, a, &e));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, e, x->mask, true, &sum));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, sum, &sum));
    return dc_ops_2(j, f, DC_OP_SUB, a, sum, out);
}

/* log(sum(exp(a))); the maximum is taken out where it is finite. Of nothing but -inf: -inf, without a gradient. */
static dc_status build_logsumexp(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0], top, size, inf, finite, zero, one, none, sum;
    DC_TRY(dc_ops_need_real(j, &a));
    if (!dc_dtype_is_float((dc_dtype)a.type.dtype)) /* told of the operand as it is */
        return dc_ops_1(j, f, DC_OP_EXP, a, out);
    DC_TRY(dc_build_reduce(j, f, DC_OP_MAXR, a, x->mask, true, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, top, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, top, &size));
    DC_TRY(dc_ops_number(j, f, a, INFINITY, &inf));
    DC_TRY(dc_ops_number(j, f, a, 0, &zero));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, size, inf, &finite));
    DC_TRY(dc_ops_where(j, f, finite, top, zero, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, top, &sum));
    sum.type = a.type;
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, sum, &sum));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, sum, x->mask, true, &sum));
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, sum, zero, &none));
    DC_TRY(dc_ops_where(j, f, none, one, sum, &sum));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, sum, &sum));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, sum, top, out));
    DC_TRY(dc_ops_number(j, f, a, -INFINITY, &inf));
    DC_TRY(dc_ops_where(j, f, none, inf, *out, out));
    return x->keep ? DC_OK : dc_build_drop(j, f, *out, x->mask, out);
}

/* ---- what is no NaN --------------------------------------------------------------------------- */

/* a with v for NaN; *is: which are numbers, of the dtype of a. Integers have none. */
static dc_status without_nan(dc_job *j, dc_func *f, dc_val a, double v, dc_val *out, dc_val *is)
{
    dc_val stand_in, one, test;
    DC_TRY(dc_ops_number(j, f, a, v, &stand_in));
    DC_TRY(dc_ops_number(j, f, a, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, a, &test));
    DC_TRY(dc_ops_where(j, f, test, a, stand_in, out));
    if (is == NULL)
        return DC_OK;
    DC_TRY(dc_ops_number(j, f, a, 0, &stand_in));
    return dc_ops_where(j, f, test, one, stand_in, is);
}

static dc_status build_nansum(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0];
    if (!dc_dtype_is_float((dc_dtype)a.type.dtype))
        return build_sum(j, f, x, &a, out);
    DC_TRY(without_nan(j, f, a, 0, &a, NULL));
    return dc_build_reduce(j, f, DC_OP_SUM, a, x->mask, x->keep, out);
}

static dc_status build_nanprod(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0];
    if (!dc_dtype_is_float((dc_dtype)a.type.dtype))
        return build_prod(j, f, x, &a, out);
    DC_TRY(without_nan(j, f, a, 1, &a, NULL));
    return dc_build_reduce(j, f, DC_OP_PROD, a, x->mask, x->keep, out);
}

/* The sum of numbers by their count: NaN where there are none. */
static dc_status mean_of_numbers(dc_job *j, dc_func *f, dc_val a, dc_val is, uint32_t mask,
                                 bool keep, dc_val *out)
{
    dc_val count;
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, a, mask, keep, out));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, is, mask, keep, &count));
    return dc_ops_2(j, f, DC_OP_DIV, *out, count, out);
}

static dc_status build_nanmean(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                               dc_val *out)
{
    const axes *x = arg;
    dc_val a, is;
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    DC_TRY(without_nan(j, f, a, 0, &a, &is));
    return mean_of_numbers(j, f, a, is, x->mask, x->keep, out);
}

/* As var; NaN where there are no more numbers than the correction. */
static dc_status build_nanvar(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const axes *x = arg;
    dc_val a, is, mean, off, count, by, none, nan;
    DC_TRY(dc_ops_float(j, f, in[0], &a));
    const dc_type t = a.type; /* with all names */
    DC_TRY(without_nan(j, f, a, 0, &a, &is));
    DC_TRY(mean_of_numbers(j, f, a, is, x->mask, true, &mean));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a, mean, &off));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, off, is, &off));
    DC_TRY(dc_ops_2(j, f, DC_OP_MUL, off, off, &off));
    off.type = t;
    is.type = t;
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, off, x->mask, x->keep, out));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, is, x->mask, x->keep, &count));
    DC_TRY(dc_ops_number(j, f, count, x->correction, &by));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, count, by, &count));
    DC_TRY(dc_ops_2(j, f, DC_OP_DIV, *out, count, out));
    DC_TRY(dc_ops_number(j, f, count, 0, &none));
    DC_TRY(dc_ops_number(j, f, count, NAN, &nan));
    DC_TRY(dc_ops_2(j, f, DC_OP_LE, count, none, &none));
    return dc_ops_where(j, f, none, nan, *out, out);
}

static dc_status build_nanstd(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_TRY(build_nanvar(j, f, arg, in, out));
    return root(j, f, *out, out);
}

/* Of what stands in for NaN only where there is nothing else: NaN. */
static dc_status extreme_number(dc_job *j, dc_func *f, dc_op op, double least, const axes *x,
                                dc_val a, dc_val *out)
{
    dc_val numbers = a, any, nan;
    if (!dc_dtype_is_float((dc_dtype)a.type.dtype))
        return dc_build_reduce(j, f, op, a, x->mask, x->keep, out);
    DC_TRY(without_nan(j, f, a, least, &numbers, NULL));
    DC_TRY(dc_build_reduce(j, f, op, numbers, x->mask, x->keep, out));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, a, a, &any));
    any.type = a.type;
    any.type.dtype = DC_BOOL;
    DC_TRY(dc_build_reduce(j, f, DC_OP_MAXR, any, x->mask, x->keep, &any));
    DC_TRY(dc_ops_number(j, f, *out, NAN, &nan));
    return dc_ops_where(j, f, any, *out, nan, out);
}

static dc_status build_nanmax(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return extreme_number(j, f, DC_OP_MAXR, -INFINITY, arg, in[0], out);
}

static dc_status build_nanmin(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return extreme_number(j, f, DC_OP_MINR, INFINITY, arg, in[0], out);
}

static dc_status build_count_nonzero(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                     dc_val *out)
{
    const axes *x = arg;
    dc_val a = in[0], zero;
    if (a.type.dtype != DC_BOOL) {
        DC_TRY(dc_ops_number(j, f, a, 0, &zero));
        DC_TRY(dc_ops_2(j, f, DC_OP_NE, a, zero, &a));
    }
    return dc_build_reduce(j, f, DC_OP_SUM, a, x->mask, x->keep, out);
}

/* ---- bindings --------------------------------------------------------------------------------- */

enum { ONE_AXIS = 1, BOOL = 2, SOME = 4, CORRECTION = 8, ONCE = 16, DTYPE = 32 };

static int l_reduce(lua_State *L);

static const struct row {
    dc_binding bound;
    dc_build_fn *build;
    int flags; /* needs exactly one axis; a bool; an element; takes a correction; dc_apply.once; takes a dtype */
} rows[] = {
    {{"sum", l_reduce, 2, DC_IN_BOTH}, build_sum, DTYPE},
    {{"prod", l_reduce, 2, DC_IN_BOTH}, build_prod, DTYPE},
    {{"max", l_reduce, 2, DC_IN_BOTH}, build_max, 0},
    {{"min", l_reduce, 2, DC_IN_BOTH}, build_min, 0},
    {{"mean", l_reduce, 2, DC_IN_BOTH}, build_mean, ONCE | DTYPE},
    {{"all", l_reduce, 2, DC_IN_BOTH}, build_all, BOOL},
    {{"any", l_reduce, 2, DC_IN_BOTH}, build_any, BOOL},
    {{"var", l_reduce, 2, DC_IN_BOTH}, build_var, CORRECTION | ONCE},
    {{"std", l_reduce, 2, DC_IN_BOTH}, build_std, CORRECTION | ONCE},
    {{"norm", l_reduce, 2, DC_IN_BOTH}, build_norm, ONCE},
    {{"logsumexp", l_reduce, 2, DC_IN_BOTH}, build_logsumexp, ONCE},
    {{"nansum", l_reduce, 2, DC_IN_BOTH}, build_nansum, 0},
    {{"nanprod", l_reduce, 2, DC_IN_BOTH}, build_nanprod, 0},
    {{"nanmean", l_reduce, 2, DC_IN_BOTH}, build_nanmean, ONCE},
    {{"nanmax", l_reduce, 2, DC_IN_BOTH}, build_nanmax, 0},
    {{"nanmin", l_reduce, 2, DC_IN_BOTH}, build_nanmin, 0},
    {{"nanvar", l_reduce, 2, DC_IN_BOTH}, build_nanvar, CORRECTION | ONCE},
    {{"nanstd", l_reduce, 2, DC_IN_BOTH}, build_nanstd, CORRECTION | ONCE},
    {{"count_nonzero", l_reduce, 2, DC_IN_BOTH}, build_count_nonzero, 0},
    {{"softmax", l_reduce, 2, DC_IN_BOTH}, build_softmax, ONE_AXIS | ONCE},
    {{"log_softmax", l_reduce, 2, DC_IN_BOTH}, build_log_softmax, ONE_AXIS | ONCE},
    {{"argmax", l_reduce, 2, DC_IN_BOTH}, build_argmax, ONE_AXIS | SOME},
    {{"argmin", l_reduce, 2, DC_IN_BOTH}, build_argmin, ONE_AXIS | SOME},
};

/* { axis = .., keep = .., and an option of the operation } at 2 without that, which goes to x. */
static void take_own(lua_State *L, dc_dsl *d, const char *op, int flags, axes *x)
{
    const char *own = flags & CORRECTION ? "correction" : "dtype";
    if (lua_type(L, 2) != LUA_TTABLE || lua_rawlen(L, 2) > 0)
        return;
    dc_args_options(L, d, 2, op, (const char *const[]){"axis", "keep", own, NULL});
    if (flags & CORRECTION)
        x->correction = dc_args_option(L, d, 2, op, own, 0);
    else
        x->dtype = dc_args_dtype(L, d, 2, op);
    lua_createtable(L, 0, 2);
    lua_getfield(L, 2, "axis");
    lua_setfield(L, -2, "axis");
    lua_getfield(L, 2, "keep");
    lua_setfield(L, -2, "keep");
    lua_replace(L, 2);
    lua_settop(L, 2);
}

/* How many elements each result of a reduction counts at most. */
static double counted(const dc_type *t, uint32_t mask)
{
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= mask >> i & 1 ? (double)dc_extent_bound(t->dim[i]) : 1;
    return n;
}

/* Whether the device that computes it has no f64. */
static bool has_no_f64(const dc_dsl *d, const dc_handle *h)
{
    const dc_rt *rt = dc_handle_rt(h);
    if (rt == NULL && d->trace != NULL)
        rt = d->trace->rt;
    const dc_device *device = (rt != NULL ? rt : d->rt)->device;
    return device->ops->target != NULL && device->ops->target(device)->no_f64;
}

static int l_reduce(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = (const struct row *)dc_binding_of(L); /* its first member */
    const char *name = r->bound.name;
    static const int at[1] = {1};
    const dc_handle *h = dc_handle_check(L, d, 1, name);
    const dc_type t = *dc_handle_type(h);
    axes x = {.dtype = -1, .no_f64 = has_no_f64(d, h)};
    lua_settop(L, 2);
    if (r->flags & (CORRECTION | DTYPE))
        take_own(L, d, name, r->flags, &x);
    x.mask = dc_args_axes(L, d, 2, h, name, &x.keep);
    if ((r->build == build_sum || r->build == build_count_nonzero) && x.dtype < 0 &&
        (t.dtype == DC_BOOL || r->build == build_count_nonzero) && counted(&t, x.mask) > INT32_MAX)
        dc_error_raisef(L, d, DC_ERR_ARG, name,
                        "%s has %.0f elements in a sum; counts are i32, which ends at 2147483647",
                        dc_handle_describe(L, 1), counted(&t, x.mask));
    if ((r->flags & ONE_AXIS) && (x.mask == 0 || (x.mask & (x.mask - 1)) != 0))
        dc_error_raisef(L, d, DC_ERR_ARG, name, "one axis is needed, as in x:%s(-1)", name);
    if ((r->flags & SOME) && t.dim[__builtin_ctz(x.mask)] == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, name, "axis %d of %s has no elements",
                        __builtin_ctz(x.mask) + 1, dc_handle_describe(L, 1));
    if ((r->flags & SOME) && dc_extent_lo(d->rt->extents, t.dim[__builtin_ctz(x.mask)]) < 1)
        dc_error_fact(L, d, DC_ERR_EXTENT,
                      &(dc_fact){.op = name, .axis = {__builtin_ctz(x.mask)}, .type = {t}}, NULL);
    if ((r->flags & SOME) && dc_extent_bound(t.dim[__builtin_ctz(x.mask)]) > INT32_MAX)
        dc_error_raisef(
            L, d, DC_ERR_ARG, name,
            "axis %d of %s has %lld elements; positions are i32, which ends at 2147483647",
            __builtin_ctz(x.mask) + 1, dc_handle_describe(L, 1),
            (long long)t.dim[__builtin_ctz(x.mask)]);
    if ((r->flags & BOOL) && t.dtype != DC_BOOL) {
        const dc_operand in = {.h = dc_handle_test(L, 1), .role = "of", .type = t};
        dc_error_fact(L, d, DC_ERR_DTYPE, &(dc_fact){.op = name, .type = {t}, .word = {"bool"}},
                      &(dc_blame){.in = &in, .n = 1, .hint = "x:ne(0) tells what is not zero"});
    }
    dc_apply a = {.build = r->build, .arg = &x, .once = (r->flags & ONCE) != 0};
    dc_apply_operands(L, d, &a, name, at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

const dc_bindings dc_reduce_bindings = {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]};
