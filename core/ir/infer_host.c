/*
 * Types of operations that a function of core/host computes: dtype and dims of the result for each word of the column
 * `rule` in core/ir/ops.def. Axes in front of those that an operation works on are a batch, and stay.
 */
#include "core/base/bits.h"
#include "core/base/extent.h"
#include "core/ir/host_call.h"
#include "core/ir/infer_impl.h"
#include "core/ir/running.h"

#include <string.h>

typedef dc_status rule(const dc_site *s);

static dc_status attr_count(const dc_site *s, int n)
{
    if (s->nattr == n)
        return DC_OK;
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%d attributes given, %d needed", s->nattr,
                    n);
}

/* The axes that the operation works on have to be there, and be numbers. */
static dc_status need_axes(const dc_site *s, int operand)
{
    const dc_type *t = &s->in[operand];
    const int axes = dc_host_call_axes(s->op, s->attr);
    if (t->rank < axes)
        return dc_fail(s->j, DC_ERR_RANK,
                       &(dc_fact){.op = dc_site_name(s),
                                  .num = {t->rank},
                                  .type = {*t},
                                  .word = {axes == 1 ? "1 at least" : "2 at least"},
                                  .operand = operand + 1});
    for (int k = t->rank - axes; k < t->rank; k++)
        if (dc_extent_is(t->dim[k]))
            return dc_fail(s->j, DC_ERR_EXTENT,
                           &(dc_fact){.op = dc_site_name(s), .axis = {k}, .type = {*t}});
    return DC_OK;
}

static void same_dims(const dc_site *s)
{
    s->out->rank = s->in[0].rank;
    memcpy(s->out->dim, s->in[0].dim, sizeof s->out->dim);
}

/* ---- order --------------------------------------------------------------------------------------- */

static dc_status rule_sort(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    DC_TRY(need_axes(s, 0));
    if (s->attr[0] < 0 || s->attr[0] > 1)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "descending is 0 or 1");
    same_dims(s);
    return DC_OK;
}

static dc_status rule_argsort(const dc_site *s)
{
    DC_TRY(rule_sort(s));
    if (s->in[0].dim[s->in[0].rank - 1] > INT32_MAX)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "positions of more than 2147483647");
    s->out->dtype = DC_I32;
    return DC_OK;
}

static dc_status rule_topk(const dc_site *s)
{
    DC_TRY(attr_count(s, 2));
    DC_TRY(need_axes(s, 0));
    const int last = s->in[0].rank - 1;
    if (s->attr[0] < 0 || s->attr[0] > s->in[0].dim[last])
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "%lld of %lld elements",
                        (long long)s->attr[0], (long long)s->in[0].dim[last]);
    if (s->attr[1] < 0 || s->attr[1] > 1 || s->in[0].dim[last] > INT32_MAX)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "descending is 0 or 1");
    same_dims(s);
    s->out->dim[last] = s->attr[0];
    s->out->dtype = DC_I32;
    return DC_OK;
}

static dc_status rule_run(const dc_site *s)
{
    DC_TRY(attr_count(s, 3));
    if (s->attr[0] < 0 || s->attr[0] >= DC_RUN__COUNT || s->attr[1] < 0 || s->attr[1] > 1 ||
        s->attr[2] < 0 || s->attr[2] >= s->in[0].rank)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s),
                        "a kind, a direction and an axis are needed");
    DC_TRY(need_axes(s, 0));
    if (s->in[0].dtype == DC_BOOL && s->attr[0] < DC_RUN_MAX)
        return dc_fail(
            s->j, DC_ERR_DTYPE,
            &(dc_fact){
                .op = dc_site_name(s), .type = {s->in[0]}, .word = {"a number"}, .operand = 1});
    same_dims(s);
    return DC_OK;
}

/* ---- linear algebra ------------------------------------------------------------------------------ */

/* Numbers of these libraries are ints. */
static dc_status need_matrix(const dc_site *s, int operand, bool square)
{
    const dc_type *t = &s->in[operand];
    const dc_dtype d = (dc_dtype)t->dtype;
    if (d != DC_F32 && d != DC_F64)
        return dc_fail(s->j, DC_ERR_DTYPE,
                       &(dc_fact){.op = dc_site_name(s),
                                  .type = {*t},
                                  .word = {"f32 or f64"},
                                  .operand = operand + 1});
    DC_TRY(need_axes(s, operand));
    const int64_t m = t->dim[t->rank - 2], n = t->dim[t->rank - 1];
    if (m > INT32_MAX / 8 || n > INT32_MAX / 8)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a matrix of %lld x %lld", (long long)m,
                        (long long)n);
    if (square && m != n)
        return dc_fail(s->j, DC_ERR_NOT_SQUARE,
                       &(dc_fact){.op = dc_site_name(s),
                                  .axis = {t->rank - 2, t->rank - 1},
                                  .num = {m, n},
                                  .type = {*t},
                                  .operand = operand + 1});
    return DC_OK;
}

static dc_status rule_square(const dc_site *s)
{
    DC_TRY(attr_count(s, 0));
    DC_TRY(need_matrix(s, 0, true));
    same_dims(s);
    return DC_OK;
}

static dc_status rule_eigh(const dc_site *s)
{
    DC_TRY(rule_square(s));
    s->out->dim[s->out->rank - 2]++;
    return DC_OK;
}

/* Complex numbers, as parts along a last axis: a row of values, with vectors in the columns below. */
static dc_status complex_rows(const dc_site *s, bool vectors)
{
    DC_TRY(attr_count(s, 0));
    DC_TRY(need_matrix(s, 0, true));
    const int rank = s->in[0].rank;
    if (rank == DC_MAX_RANK)
        return dc_fail(
            s->j, DC_ERR_TOO_MANY_AXES,
            &(dc_fact){.op = dc_site_name(s), .num = {rank, DC_MAX_RANK - 1}, .type = {s->in[0]}});
    same_dims(s);
    if (vectors)
        s->out->dim[rank - 2]++;
    else
        s->out->rank--;
    s->out->dim[s->out->rank++] = 2;
    return DC_OK;
}

static dc_status rule_eig(const dc_site *s)
{
    return complex_rows(s, true);
}

static dc_status rule_eigvals(const dc_site *s)
{
    return complex_rows(s, false);
}

/* Attributes that are 0 or 1. */
static dc_status flags(const dc_site *s, int n)
{
    DC_TRY(attr_count(s, n));
    for (int i = 0; i < n; i++)
        if (s->attr[i] < 0 || s->attr[i] > 1)
            return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "an attribute is neither 0 nor 1");
    return DC_OK;
}

static dc_status rule_lu(const dc_site *s)
{
    DC_TRY(flags(s, 1));
    DC_TRY(need_matrix(s, 0, true));
    same_dims(s);
    s->out->dim[s->out->rank - 2]++;
    return DC_OK;
}

/* The two axes become one of k vectors of each side and so many more elements. */
static dc_status packed(const dc_site *s, int64_t k, int64_t more)
{
    const int rank = s->in[0].rank;
    same_dims(s);
    s->out->rank--;
    s->out->dim[rank - 2] = k * (s->in[0].dim[rank - 2] + s->in[0].dim[rank - 1]) + more;
    return DC_OK;
}

static int64_t smaller_side(const dc_type *t)
{
    return dc_min_i64(t->dim[t->rank - 2], t->dim[t->rank - 1]);
}

/* Q and R; with the attribute Q is square. */
static dc_status rule_qr(const dc_site *s)
{
    DC_TRY(flags(s, 1));
    DC_TRY(need_matrix(s, 0, false));
    return packed(s, s->attr[0] ? s->in[0].dim[s->in[0].rank - 2] : smaller_side(&s->in[0]), 0);
}

static dc_status rule_svd(const dc_site *s)
{
    DC_TRY(attr_count(s, 0));
    DC_TRY(need_matrix(s, 0, false));
    return packed(s, smaller_side(&s->in[0]), smaller_side(&s->in[0]));
}

/* One value of the dtype for each of the smaller side. */
static dc_status vector_of(const dc_site *s, bool square)
{
    DC_TRY(attr_count(s, 0));
    DC_TRY(need_matrix(s, 0, square));
    const int rank = s->in[0].rank;
    same_dims(s);
    s->out->rank--;
    s->out->dim[rank - 2] = smaller_side(&s->in[0]);
    return DC_OK;
}

static dc_status rule_values(const dc_site *s)
{
    return vector_of(s, true);
}

static dc_status rule_svdvals(const dc_site *s)
{
    return vector_of(s, false);
}

/* The dtype, the rank and the first `same` axes of operand 0. */
static dc_status need_alike(const dc_site *s, int operand, int same)
{
    const dc_type *a = &s->in[0], *b = &s->in[operand];
    if (a->dtype != b->dtype)
        return dc_fail(s->j, DC_ERR_DTYPE_MIX,
                       &(dc_fact){.op = dc_site_name(s), .type = {*a, *b}, .operand = operand + 1});
    if (a->rank != b->rank)
        return dc_fail(s->j, DC_ERR_RANK,
                       &(dc_fact){.op = dc_site_name(s),
                                  .num = {b->rank},
                                  .type = {*b, *a},
                                  .word = {"the other operand has another number"},
                                  .operand = operand + 1});
    for (int k = 0; k < same; k++)
        if (a->dim[k] != b->dim[k])
            return dc_fail(s->j, DC_ERR_DIMS,
                           &(dc_fact){.op = dc_site_name(s),
                                      .axis = {k, k},
                                      .num = {a->dim[k], b->dim[k]},
                                      .type = {*a, *b},
                                      .operand = operand + 1});
    return DC_OK;
}

static dc_status like_operand(const dc_site *s, int operand)
{
    s->out->rank = s->in[operand].rank;
    memcpy(s->out->dim, s->in[operand].dim, sizeof s->out->dim);
    return DC_OK;
}

static dc_status rule_trsolve(const dc_site *s)
{
    DC_TRY(flags(s, 3));
    DC_TRY(need_matrix(s, 0, true));
    DC_TRY(need_matrix(s, 1, false));
    DC_TRY(need_alike(s, 1, s->in[0].rank - 1));
    return like_operand(s, 1);
}

/* What rule_lu makes of operand 0. */
static dc_status need_factors(const dc_site *s, int operand)
{
    DC_TRY(need_matrix(s, 0, true));
    DC_TRY(need_matrix(s, operand, false));
    DC_TRY(need_alike(s, operand, s->in[0].rank - 2));
    const dc_type *a = &s->in[0], *lu = &s->in[operand];
    const int rank = a->rank;
    if (lu->dim[rank - 1] != a->dim[rank - 1] || lu->dim[rank - 2] != a->dim[rank - 1] + 1)
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "factors of another matrix");
    return DC_OK;
}

static dc_status rule_lusolve(const dc_site *s)
{
    DC_TRY(flags(s, 2));
    DC_TRY(need_factors(s, 1));
    DC_TRY(need_matrix(s, 2, false));
    DC_TRY(need_alike(s, 2, s->in[0].rank - 1));
    return like_operand(s, 2);
}

static dc_status rule_det(const dc_site *s)
{
    DC_TRY(flags(s, 2));
    DC_TRY(need_factors(s, 1));
    same_dims(s);
    s->out->rank -= s->attr[0] ? 1 : 2;
    s->out->dim[s->in[0].rank - 2] = 2;
    return DC_OK;
}

/* The attribute has the bits of an f64 from 0. */
static dc_status need_tolerance(const dc_site *s)
{
    DC_TRY(attr_count(s, 1));
    if (!(dc_value_of(DC_F64, (uint64_t)s->attr[0]) >= 0))
        return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "a tolerance below 0");
    return DC_OK;
}

static dc_status rule_lstsq(const dc_site *s)
{
    DC_TRY(need_tolerance(s));
    DC_TRY(need_matrix(s, 0, false));
    DC_TRY(need_matrix(s, 1, false));
    DC_TRY(need_alike(s, 1, s->in[0].rank - 1));
    DC_TRY(like_operand(s, 1));
    s->out->dim[s->out->rank - 2] = s->in[0].dim[s->in[0].rank - 1];
    return DC_OK;
}

static dc_status rule_pinv(const dc_site *s)
{
    DC_TRY(need_tolerance(s));
    DC_TRY(need_matrix(s, 0, false));
    const int rank = s->in[0].rank;
    same_dims(s);
    s->out->dim[rank - 2] = s->in[0].dim[rank - 1];
    s->out->dim[rank - 1] = s->in[0].dim[rank - 2];
    return DC_OK;
}

/* ---- the table ----------------------------------------------------------------------------------- */

static rule *rule_of(dc_op op)
{
    static rule *const rules[DC_OP__COUNT] = {
#define HST(id, lua, n, rule, grad, lo, hi) [DC_OP_##id] = rule_##rule,
#include "core/ir/ops.def"
    };
    return rules[op];
}

dc_status dc_infer_host_dtype(const dc_site *s)
{
    s->out->dtype = s->in[0].dtype;
    return DC_OK;
}

/* The dtype may be another than the first operand's. */
dc_status dc_infer_host_shape(const dc_site *s)
{
    return rule_of(s->op)(s);
}

/* Those of the batch stay, and those of an axis whose elements are put in order. */
dc_status dc_infer_host_names(const dc_site *s)
{
    const dc_type *x = &s->in[0];
    const bool all = s->op == DC_OP_SORT || s->op == DC_OP_ARGSORT || s->op == DC_OP_RUN;
    for (int k = 0; k < x->rank - (all ? 0 : dc_host_call_axes(s->op, s->attr)); k++)
        s->out->name[k] = x->name[k];
    return DC_OK;
}
