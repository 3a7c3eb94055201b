/*
 * Types of operations that a function of core/host computes: dtype and dims of the result for each word of the column
 * `rule` in core/graph/ops.def. Axes in front of those that an operation works on are a batch, and stay.
 */
#include "core/base/extent.h"
#include "core/graph/host_call.h"
#include "core/graph/infer_impl.h"

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
    const int axes = dc_host_call_axes(s->op);
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

/* ---- the table ----------------------------------------------------------------------------------- */

static rule *rule_of(dc_op op)
{
    static rule *const rules[DC_OP__COUNT] = {
#define HST(id, lua, n, rule, grad, lo, hi) [DC_OP_##id] = rule_##rule,
#include "core/graph/ops.def"
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

/* Axes that keep their sizes keep their names. */
dc_status dc_infer_host_names(const dc_site *s)
{
    for (int k = 0; k < s->out->rank; k++)
        if (k < s->in[0].rank && s->out->dim[k] == s->in[0].dim[k] &&
            (s->op != DC_OP_TOPK || k < s->out->rank - 1))
            s->out->name[k] = s->in[0].name[k];
    return DC_OK;
}
