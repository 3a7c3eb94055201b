/*
 * Arithmetic operations of nodes, by their class. Doubles: a product of large dims has no room in 64 bits. Sizes that are
 * known when a function runs count as their bounds.
 */
#include "core/ir/flops.h"

#include "core/base/extent.h"
#include "core/ir/control.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"

#include <math.h>

static double size(const dc_node *n, int64_t axis)
{
    return (double)dc_extent_bound(n->dim[axis]);
}

static double count(const dc_node *n)
{
    double all = 1;
    for (int i = 0; i < n->rank; i++)
        all *= size(n, i);
    return all;
}

double dc_flops_terms(dc_op op, const int64_t *attr, int nattr, const dc_type *left,
                      const dc_type *right)
{
    double terms = 1;
    if (op == DC_OP_DOT) {
        const dc_dot d = dc_dot_read(attr, left->rank, right->rank);
        for (int i = 0; i < d.ncontract; i++)
            terms *= (double)dc_extent_bound(left->dim[d.contract[0][i]]);
        return terms;
    }
    dc_conv c;
    if (!dc_conv_read(attr, nattr, &c))
        return terms;
    const double channels = (double)dc_extent_bound(right->dim[c.kernel[0]]);
    return channels > 0 ? (double)dc_type_count(right) / channels : 0;
}

static double contraction(const dc_func *f, const dc_node *n)
{
    const dc_type left = dc_node_type(f, n->in[0]), right = dc_node_type(f, n->in[1]);
    return 2 * count(n) * dc_flops_terms((dc_op)n->op, n->attr, n->nattr, &left, &right);
}

/* Of one matrix m x n, as LAPACK's working notes count. */
static double factorization(dc_op op, double m, double n)
{
    const double k = m < n ? m : n, l = m < n ? n : m;
    switch ((int)op) {
    case DC_OP_CHOLESKY:
        return n * n * n / 3;
    case DC_OP_LU:
        return 2 * n * n * n / 3;
    case DC_OP_QR: /* with Q */
        return 4 * l * k * k - 4 * k * k * k / 3;
    case DC_OP_EIGH:
        return 9 * n * n * n;
    case DC_OP_SVD:
        return 14 * l * k * k + 8 * k * k * k;
    default:
        return 0;
    }
}

static double of_host(const dc_func *f, const dc_node *n)
{
    const dc_node *x = dc_node_at(f, n->in[0]);
    const double all = count(x), row = x->rank > 0 ? size(x, x->rank - 1) : 1;
    switch ((int)n->op) {
    case DC_OP_SORT:
    case DC_OP_ARGSORT:
    case DC_OP_TOPK:
        return row > 1 ? all * log2(row) : 0;
    case DC_OP_RUN:
        return all;
    case DC_OP_TRSOLVE:
        return count(dc_node_at(f, n->in[1])) * row;
    default:
        break;
    }
    const double rows = x->rank > 1 ? size(x, x->rank - 2) : 1;
    return all > 0 ? all / (rows * row) * factorization((dc_op)n->op, rows, row) : 0;
}

static double transform(const dc_func *f, const dc_node *n)
{
    const dc_node *x = dc_node_at(f, n->in[0]);
    const double length =
        n->op == DC_OP_DFT ? size(x, n->attr[0]) : (double)n->attr[0]; /* a stage: its radix */
    return length > 1 ? 2.5 * count(n) * log2(length) : 0;
}

static double control(const dc_func *f, const dc_node *n)
{
    if (n->op == DC_OP_LOOP) {
        const dc_loop l = dc_loop_of(n);
        const double times = l.n == INT32_MAX ? 1 : (double)l.n; /* as many as it takes: of one */
        return times * dc_flops_func(dc_body_at(f->module, l.body));
    }
    if (n->op != DC_OP_BRANCH)
        return 0;
    const double a = dc_flops_func(dc_body_at(f->module, n->attr[0]));
    const double b = dc_flops_func(dc_body_at(f->module, n->attr[1]));
    return a > b ? a : b;
}

double dc_flops_node(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_EW:
        return n->op == DC_OP_STOP ? 0 : count(n);
    case DC_CLASS_RED:
        return count(dc_node_at(f, n->in[0]));
    case DC_CLASS_CON:
        return contraction(f, n);
    case DC_CLASS_IDX:
        return dc_op_accumulates((dc_op)n->op) ? count(dc_node_at(f, n->in[2])) : 0;
    case DC_CLASS_HST:
        return of_host(f, n);
    case DC_CLASS_FFT:
        return transform(f, n);
    case DC_CLASS_CTL:
        return control(f, n);
    case DC_CLASS_MOV:
    case DC_CLASS_SRC:
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
    case DC_CLASS_COM:
        return 0;
    }
    return 0;
}

double dc_flops_func(const dc_func *f)
{
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    const bool *live = dc_func_live(f, a);
    double all = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        all += live[r] ? dc_flops_node(f, r) : 0;
    dc_scratch_end(&scratch);
    return all;
}
