/*
 * A search runs beside the interpreter: behind each node it looks whether the value has infinities or NaN,
 * and whether this node made them. Constants, parameters and what only moves elements make none; an
 * element-wise operation is asked element by element, so that a mask of -inf in one place hides nothing in
 * another. At the end the makers count whose values reach a result as such: what a `where` or a softmax takes
 * out again does no harm.
 */
#include "core/eval/eval_find.h"

#include "core/base/number.h"
#include "core/eval/eval_impl.h"
#include "core/ir/control.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct dc_eval_search {
    bool *bad; /* [n] the value has some that are not finite; of a loop or a branch, an operand */
    dc_eval_culprit *inner;   /* [n] of a loop or a branch: found in its body */
    dc_eval_culprit *culprit; /* [n] of them at most, in the order of the nodes */
    uint32_t nculprit;
};

/* ---- elements -------------------------------------------------------------------------------- */

static int worse(double x)
{
    return isnan(x) ? 2 : isinf(x) ? 1 : 0;
}

static int worst_of(dc_eval_mode mode, dc_dtype t, const void *at, int64_t count)
{
    double x[DC_EVAL_CHUNK];
    int worst = 0;
    for (int64_t i = 0; i < count && worst < 2; i += DC_EVAL_CHUNK) {
        const int64_t n = dc_min_i64(DC_EVAL_CHUNK, count - i);
        dc_eval_get_f(mode, t, at, i, n, x);
        for (int64_t k = 0; k < n; k++)
            worst = worse(x[k]) > worst ? worse(x[k]) : worst;
    }
    return worst;
}

int dc_eval_worst(dc_dtype t, const void *at, int64_t count)
{
    return dc_dtype_is_float(t) ? worst_of(DC_EVAL_ROUND, t, at, count) : 0;
}

static dc_eval_range range_of(const dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const int64_t count = dc_node_count(n);
    dc_eval_range range = {.lo = INFINITY, .hi = -INFINITY};
    double x[DC_EVAL_CHUNK];
    for (int64_t i = 0; i < count; i += DC_EVAL_CHUNK) {
        const int64_t m = dc_min_i64(DC_EVAL_CHUNK, count - i);
        dc_eval_get_f(s->mode, (dc_dtype)n->dtype, s->value[r], i, m, x);
        for (int64_t k = 0; k < m; k++) {
            if (worse(x[k]) > 0) {
                range.bad++;
                continue;
            }
            range.lo = fmin(range.lo, x[k]);
            range.hi = fmax(range.hi, x[k]);
        }
    }
    return range;
}

/* ---- who made it ----------------------------------------------------------------------------- */

static bool only_moves(const dc_node *n)
{
    const dc_op op = (dc_op)n->op;
    return dc_op_is(op, DC_CLASS_SRC) || dc_op_is(op, DC_CLASS_MOV) ||
           dc_op_is(op, DC_CLASS_SAME) || op == DC_OP_PARAM || op == DC_OP_GATHER ||
           op == DC_OP_SCATTER || op == DC_OP_SCATTER_MAX || op == DC_OP_SCATTER_MIN ||
           op == DC_OP_WHERE || op == DC_OP_STOP || op == DC_OP_MAX || op == DC_OP_MIN ||
           op == DC_OP_MAXR || op == DC_OP_MINR || op == DC_OP_PICK;
}

/* Such a value is made of operands that are, at worst, as `before`. */
static bool is_made(int value, int before)
{
    return value > 0 && (before == 0 || (value == 2 && before == 1));
}

static void count_one(dc_eval_culprit *m, int64_t at, double value)
{
    if (m->made++ > 0)
        return;
    m->first = at;
    m->value = value;
}

/* Element by element. */
static void count_ew(const dc_eval_state *s, const dc_node *n, dc_ref r, dc_eval_culprit *m)
{
    double x[DC_EVAL_CHUNK], in[DC_EVAL_CHUNK];
    int before[DC_EVAL_CHUNK];
    const int64_t count = dc_node_count(n);
    for (int64_t i = 0; i < count; i += DC_EVAL_CHUNK) {
        const int64_t some = dc_min_i64(DC_EVAL_CHUNK, count - i);
        memset(before, 0, sizeof before);
        for (int o = 0; o < n->nin; o++) {
            dc_eval_get_f(s->mode, (dc_dtype)dc_node_at(s->f, n->in[o])->dtype, s->value[n->in[o]],
                          i, some, in);
            for (int64_t k = 0; k < some; k++)
                before[k] = worse(in[k]) > before[k] ? worse(in[k]) : before[k];
        }
        dc_eval_get_f(s->mode, (dc_dtype)n->dtype, s->value[r], i, some, x);
        for (int64_t k = 0; k < some; k++)
            if (is_made(worse(x[k]), before[k]))
                count_one(m, i + k, x[k]);
    }
}

/* An element of the result is made of many. */
static void count_whole(const dc_eval_state *s, const dc_node *n, dc_ref r, dc_eval_culprit *m)
{
    int before = 0;
    const int64_t count = dc_node_count(n);
    for (int o = 0; o < n->nin; o++) {
        const dc_node *in = dc_node_at(s->f, n->in[o]);
        const int w =
            dc_dtype_is_float((dc_dtype)in->dtype)
                ? worst_of(s->mode, (dc_dtype)in->dtype, s->value[n->in[o]], dc_node_count(in))
                : 0;
        before = w > before ? w : before;
    }
    for (int64_t i = 0; i < count; i++) {
        double x;
        dc_eval_get_f(s->mode, (dc_dtype)n->dtype, s->value[r], i, 1, &x);
        if (is_made(worse(x), before))
            count_one(m, i, x);
    }
}

/* A result of a loop or a branch: who made it was found in its body, or it came in by an operand. */
static void look_at_pick(dc_eval_state *s, const dc_node *n, dc_ref r)
{
    dc_eval_culprit m = s->search->inner[n->in[0]];
    if (m.ref == 0)
        return;
    m.node = r;
    s->search->culprit[s->search->nculprit++] = m;
}

void dc_eval_look(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    dc_eval_culprit m = {.ref = r, .node = r, .i = -1};
    for (int o = 0; o < n->nin && dc_is_control(n); o++)
        s->search->bad[r] = s->search->bad[r] || s->search->bad[n->in[o]];
    if (!dc_dtype_is_float((dc_dtype)n->dtype) ||
        worst_of(s->mode, (dc_dtype)n->dtype, s->value[r], dc_node_count(n)) == 0)
        return;
    s->search->bad[r] = true;
    if (n->op == DC_OP_PICK)
        look_at_pick(s, n, r);
    if (only_moves(n))
        return;
    if (dc_op_is((dc_op)n->op, DC_CLASS_EW))
        count_ew(s, n, r, &m);
    else
        count_whole(s, n, r, &m);
    for (int o = 0; m.made > 0 && o < n->nin && o < DC_EVAL_FIND_IN; o++)
        m.in[o] = range_of(s, n->in[o]);
    if (m.made > 0)
        s->search->culprit[s->search->nculprit++] = m;
}

/* ---- what reaches a result ------------------------------------------------------------------- */

static dc_eval_culprit first_maker(dc_job *j, const dc_func *f, const struct dc_eval_search *s,
                                   uint32_t nresult)
{
    bool *reaches = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    for (uint32_t i = 0; i < nresult; i++)
        reaches[f->result.at[i]] = s->bad[f->result.at[i]];
    for (dc_ref r = f->node.n; r-- > 1;)
        for (int o = 0; reaches[r] && o < dc_node_at(f, r)->nin; o++)
            if (s->bad[dc_node_at(f, r)->in[o]])
                reaches[dc_node_at(f, r)->in[o]] = true;
    for (uint32_t i = 0; i < s->nculprit; i++)
        if (reaches[s->culprit[i].node])
            return s->culprit[i];
    return (dc_eval_culprit){0};
}

static struct dc_eval_search search_of(dc_job *j, const dc_func *f)
{
    return (struct dc_eval_search){.bad = DC_NEW_ARRAY(&j->scratch, bool, f->node.n),
                                   .inner = DC_NEW_ARRAY(&j->scratch, dc_eval_culprit, f->node.n),
                                   .culprit =
                                       DC_NEW_ARRAY(&j->scratch, dc_eval_culprit, f->node.n)};
}

dc_status dc_eval_body(dc_eval_state *s, dc_ref r, const dc_func *body, int64_t i,
                       const void *const *params, void *const *results)
{
    if (s->search == NULL || s->search->inner[r].ref != 0)
        return dc_eval(s->j, body, s->mode, params, results);
    const dc_mark mark = dc_arena_mark(&s->j->scratch);
    struct dc_eval_search inside = search_of(s->j, body);
    DC_TRY(dc_eval_watched(s->j, body, s->mode, params, results, &inside));
    dc_eval_culprit m = first_maker(s->j, body, &inside, body->result.n);
    if (m.ref != 0 && m.body == NULL)
        m.body = body;
    m.i = i >= 0 ? i : m.i;
    s->search->inner[r] = m;
    dc_arena_rewind(&s->j->scratch, mark);
    return DC_OK;
}

dc_status dc_eval_find(dc_job *j, const dc_func *f, dc_eval_mode mode, const void *const *params,
                       uint32_t nresult, dc_eval_culprit *out, int *worst)
{
    struct dc_eval_search s = search_of(j, f);
    void **result = DC_NEW_ARRAY(&j->scratch, void *, f->result.n);
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_node *n = dc_node_at(f, f->result.at[i]);
        const size_t bytes = (size_t)dc_node_count(n) * dc_dtype_size((dc_dtype)n->dtype);
        result[i] = dc_arena_alloc(&j->scratch, bytes);
    }
    DC_TRY(dc_eval_watched(j, f, mode, params, result, &s));
    *worst = 0;
    for (uint32_t i = 0; i < nresult; i++) {
        const dc_node *n = dc_node_at(f, f->result.at[i]);
        const int w = dc_eval_worst((dc_dtype)n->dtype, result[i], dc_node_count(n));
        *worst = w > *worst ? w : *worst;
    }
    *out = first_maker(j, f, &s, nresult);
    return DC_OK;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static size_t put_range(const dc_func *f, dc_ref r, const dc_eval_range *range, char *out,
                        size_t size)
{
    char type[DC_TYPE_TEXT];
    const dc_node *n = dc_node_at(f, r);
    const dc_type t = dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
    size_t at;
    dc_type_print(&t, type, sizeof type);
    if (range->lo > range->hi)
        at = (size_t)snprintf(out, size, "%s of", type);
    else if (range->lo == range->hi)
        at = (size_t)snprintf(out, size, "%s of %.6g", type, range->lo);
    else
        at = (size_t)snprintf(out, size, "%s of %.6g to %.6g", type, range->lo, range->hi);
    if (range->bad > 0 && at < size)
        at += (size_t)snprintf(out + at, size - at, "%s %" PRId64 " not finite",
                               range->lo > range->hi ? "" : " and", range->bad);
    return at;
}

void dc_eval_maker_print(const dc_func *f, const dc_eval_culprit *m, char *out, size_t size)
{
    const dc_node *n = dc_node_at(f, m->ref);
    const dc_type t = dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
    const char *value = isnan(m->value) ? "NaN" : m->value > 0 ? "inf" : "-inf";
    char place[120];
    size_t at;
    dc_type_position(&t, m->first, place, sizeof place);
    if (n->rank == 0)
        at = (size_t)snprintf(out, size, "the result is %s", value);
    else
        at = (size_t)snprintf(out, size, "%s at %s, %" PRId64 " of %" PRId64 " elements", value,
                              place, m->made, dc_node_count(n));
    for (int o = 0; o < n->nin && o < DC_EVAL_FIND_IN && at < size; o++) {
        at += (size_t)snprintf(out + at, size - at, "%s", o == 0 ? ", of " : " and ");
        if (at < size)
            at += put_range(f, n->in[o], &m->in[o], out + at, size - at);
    }
}

const char *dc_eval_maker_hint(const dc_func *f, const dc_eval_culprit *m)
{
    const dc_node *n = dc_node_at(f, m->ref);
    if (n->dtype == DC_F16 && !isnan(m->value) && n->op != DC_OP_DIV && n->op != DC_OP_LOG)
        return "f16 ends at 65504; bf16 has the range of f32";
    switch ((int)n->op) {
    case DC_OP_LOG:
        return "x:maximum(1e-12) before the logarithm; nn.cross_entropy takes logits";
    case DC_OP_DIV:
        return "a divisor that may be 0, also in the slope of a root: add 1e-8 to it, or choose it "
               "with dc.where";
    case DC_OP_SQRT:
        return "the root of a negative number is NaN, and its slope at 0 infinite: "
               "x:maximum(1e-12)";
    case DC_OP_EXP:
        return "x - x:max(axis, { keep = true }) first, as softmax and logsumexp do";
    default:
        return "values that grow from call to call: a smaller rate, or { clip_norm = 1 } of the "
               "optimiser";
    }
}

dc_status dc_eval_culprit_fail(dc_job *j, const dc_func *f, const dc_eval_culprit *m,
                               const char *call)
{
    char text[400], element[60] = "";
    f = m->body != NULL ? m->body : f;
    if (m->i >= 0)
        snprintf(element, sizeof element, "; element %" PRId64 " of a loop", m->i);
    const dc_node *n = dc_node_at(f, m->ref);
    dc_eval_maker_print(f, m, text, sizeof text);
    dc_failf(j, DC_ERR_NOT_FINITE, dc_op_row_of((dc_op)n->op)->name, "%s%s%s", text, element, call);
    snprintf(j->err.hint, sizeof j->err.hint, "%s", dc_eval_maker_hint(f, m));
    dc_err_at(j, f->origins.at[n->origin].where, f->origins.at[n->origin].path);
    return j->err.status;
}
