/*
 * Softmax of rows that no thread group holds (jit/rewrite/online_softmax.h). The sum of exp(x - max(x)) would read them once for
 * the maximum and once more. Here parts of a row, which a group does hold, have a maximum and a sum of their own,
 *
 *   m[c] = max(x[c])   s[c] = sum(exp(x[c] - m[c]))   max(x) = max(m)   sum = sum(s[c] * exp(m[c] - max(m)))
 *
 * so that a row is read once for both; and few rows are many parts. A part of nothing but -inf, as is what fills the last one,
 * adds 0.
 */
#include "jit/rewrite/online_softmax.h"

#include "core/base/bits.h"
#include "jit/base/tuning.h"

#include <math.h>

static bool is_over_last(const dc_func *f, const dc_node *n)
{
    const dc_node *a = dc_node_at(f, n->in[0]);
    return a->rank > 0 && a->rank < DC_MAX_RANK && n->attr[0] == (int64_t)1 << (a->rank - 1);
}

/* Of the memory behind the values, which may be cast. */
static int64_t row_bytes(const dc_func *f, dc_ref x)
{
    const dc_node *n = dc_node_at(f, x);
    const dc_node *a = n->op == DC_OP_CAST ? dc_node_at(f, n->in[0]) : n;
    return n->dim[n->rank - 1] * (int64_t)dc_dtype_size((dc_dtype)a->dtype);
}

/* The maximum that the sum r of exponentials of long rows is about; 0: it is something else. */
static dc_ref max_of(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_SUM || !is_over_last(f, n))
        return 0;
    const dc_node *e = dc_node_at(f, n->in[0]);
    const dc_node *d = e->op == DC_OP_EXP ? dc_node_at(f, e->in[0]) : NULL;
    if (d == NULL || d->op != DC_OP_SUB || dc_dtype_is_short((dc_dtype)d->dtype) ||
        row_bytes(f, d->in[0]) < DC_TUNE_ONLINE_BYTES)
        return 0;
    dc_ref max = dc_graph_repeated(f, d->in[1]);
    while (max != 0 && dc_node_at(f, max)->op == DC_OP_RESHAPE)
        max = dc_node_at(f, max)->in[0];
    if (max == 0)
        return 0;
    const dc_node *m = dc_node_at(f, max);
    return m->op == DC_OP_MAXR && m->in[0] == d->in[0] && m->attr[0] == n->attr[0] ? max : 0;
}

static bool is_wanted(const dc_func *f, dc_ref max)
{
    for (dc_ref r = max + 1; r < f->node.n; r++)
        if (max_of(f, r) == max)
            return true;
    return false;
}

/* Rows in equal parts, of which the last one is filled up. */
static dc_ref in_parts(dc_func *to, dc_ref x)
{
    const dc_node a = *dc_node_at(to, x);
    const int last = a.rank - 1;
    const int64_t parts = (a.dim[last] + DC_TUNE_ONLINE_PART - 1) / DC_TUNE_ONLINE_PART;
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i < a.rank; i++) {
        dim[i] = a.dim[i];
        step[i] = 1;
    }
    dim[last] = (a.dim[last] + parts - 1) / parts * parts;
    if (dim[last] != a.dim[last])
        x = dc_graph_pad(to, x, lo, step, dim, dc_bits_of((dc_dtype)a.dtype, -INFINITY));
    dim[last + 1] = dim[last] / parts;
    dim[last] = parts;
    return dc_graph_reshape(to, x, a.rank + 1, dim);
}

static dc_ref max_in_parts(dc_func *to, dc_ref x)
{
    const int rank = dc_node_at(to, x)->rank;
    const dc_ref m = dc_graph_reduce(to, DC_OP_MAXR, in_parts(to, x), 1u << rank);
    return dc_graph_reduce(to, DC_OP_MAXR, m, 1u << (rank - 1));
}

static dc_ref sum_in_parts(dc_func *to, dc_ref x, dc_ref max)
{
    const dc_ref parts = in_parts(to, x), m = dc_node_at(to, max)->in[0];
    const dc_node a = *dc_node_at(to, parts), b = *dc_node_at(to, m);
    const dc_ref none = dc_graph_op2(to, DC_OP_EQ, m, dc_graph_like(to, m, -INFINITY));
    const dc_ref finite = dc_graph_op3(to, DC_OP_WHERE, none, dc_graph_like(to, m, 0), m);
    const uint32_t columns = 1u << (a.rank - 1), chunks = 1u << (b.rank - 1);
    const dc_ref from = dc_graph_unreduce(to, finite, columns, a.rank, a.dim);
    const dc_ref s = dc_graph_reduce(
        to, DC_OP_SUM, dc_graph_op1(to, DC_OP_EXP, dc_graph_op2(to, DC_OP_SUB, parts, from)),
        columns);
    const dc_ref top = dc_graph_unreduce(to, max, chunks, b.rank, b.dim);
    const dc_ref scale = dc_graph_op1(to, DC_OP_EXP, dc_graph_op2(to, DC_OP_SUB, m, top));
    return dc_graph_reduce(to, DC_OP_SUM, dc_graph_op2(to, DC_OP_MUL, s, scale), chunks);
}

dc_ref dc_online_softmax(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *map)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op == DC_OP_MAXR && is_over_last(f, n) &&
        row_bytes(f, n->in[0]) >= DC_TUNE_ONLINE_BYTES && is_wanted(f, r))
        return max_in_parts(to, map[n->in[0]]);
    const dc_ref max = max_of(f, r);
    return max != 0 ? sum_in_parts(to, map[dc_node_at(f, max)->in[0]], map[max]) : 0;
}
