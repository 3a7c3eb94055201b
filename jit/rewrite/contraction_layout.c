#include "jit/rewrite/contraction_layout.h"

#include "core/ir/dot.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/rules.h"
#include "jit/rewrite/split_contraction.h"

#include <string.h>

/* Product of the free dims of a side. */
static int64_t free_count(const dc_node *operand, const dc_dot *d, int side)
{
    int64_t count = 1;
    for (int i = 0; i < d->nfree[side]; i++)
        count *= operand->dim[d->free[side][i]];
    return count;
}

/* -1: there is none. */
static int last_free(const dc_dot *d, int side)
{
    return d->nfree[side] > 0 ? (int)d->free[side][d->nfree[side] - 1] : -1;
}

/* Moves an axis of one side behind all others. */
static dc_ref turned_dot(dc_func *to, const dc_dot *d, const dc_ref *operands, int side, int last)
{
    dc_ref in[2] = {operands[0], operands[1]};
    const int rank = dc_node_at(to, in[side])->rank;
    int64_t perm[DC_MAX_RANK], where[DC_MAX_RANK];
    dc_dot turned = *d;
    int k = 0;
    for (int i = 0; i < rank; i++)
        if (i != last) {
            where[i] = k;
            perm[k++] = i;
        }
    where[last] = k;
    perm[k] = last;
    for (int i = 0; i < d->nbatch; i++)
        turned.batch[side][i] = where[d->batch[side][i]];
    for (int i = 0; i < d->ncontract; i++)
        turned.contract[side][i] = where[d->contract[side][i]];
    in[side] = dc_graph_permute(to, in[side], perm);
    return dc_dot_make(to, in[0], in[1], &turned);
}

/* One side with its axes in the order batch, free; beside axes of extent 1 for those of the other side. */
static dc_ref spread(dc_func *to, const dc_dot *d, const dc_node *n, dc_ref in, int side)
{
    const dc_node *a = dc_node_at(to, in);
    int64_t perm[DC_MAX_RANK], dim[DC_MAX_RANK];
    int k = 0;
    for (int i = 0; i < d->nbatch; i++)
        perm[k++] = d->batch[side][i];
    for (int i = 0; i < d->nfree[side]; i++)
        perm[k++] = d->free[side][i];
    for (int i = 0; i < n->rank; i++)
        dim[i] = 1;
    const int from = side == 0 ? d->nbatch : n->rank - d->nfree[1];
    for (int i = 0; i < k; i++)
        dim[i < d->nbatch ? i : from + i - d->nbatch] = a->dim[perm[i]];
    for (int i = 0; i < d->ncontract; i++)
        perm[k++] = d->contract[side][i];
    return dc_graph_expand(to, dc_graph_reshape(to, dc_graph_permute(to, in, perm), n->rank, dim),
                           n->dim);
}

/* Is a matrix of `sum` rows of m elements better turned before a product adds up along the rows? */
static bool pays_turning(int64_t sum, int64_t m)
{
    return sum * m >= DC_TUNE_LEFT_ELEMENTS &&
           (sum >= DC_TUNE_LEFT_TERMS || m % DC_TUNE_LEFT_SETS == 0);
}

bool dc_layout_folds(const dc_func *f, dc_ref r)
{
    const dc_op op = (dc_op)dc_node_at(f, r)->op;
    return op == DC_OP_CAST || (dc_op_is(op, DC_CLASS_MOV) && op != DC_OP_PAD);
}

bool dc_layout_is_transposed(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_PERMUTE || n->attr[n->rank - 1] == n->rank - 1)
        return false;
    return pays_turning(n->dim[n->rank - 1], dc_node_at(f, n->in[0])->dim[n->rank - 1]);
}

/* A product of single terms is no sum: an element-wise operation, with -0 as the sum makes it. */
static dc_ref outer_product(dc_func *to, const dc_dot *d, const dc_node *n, const dc_ref *in)
{
    const dc_dtype t = (dc_dtype)n->dtype;
    const dc_ref a = dc_graph_cast(to, spread(to, d, n, in[0], 0), t);
    const dc_ref b = dc_graph_cast(to, spread(to, d, n, in[1], 1), t);
    const dc_ref y = dc_graph_op2(to, DC_OP_MUL, a, b);
    return dc_graph_op2(to, DC_OP_ADD, y, dc_graph_like(to, y, 0));
}

static bool is_single_term(const dc_node *a, const dc_dot *d)
{
    for (int i = 0; i < d->ncontract; i++)
        if (a->dim[d->contract[0][i]] != 1)
            return false;
    return true;
}

/* A permuted operand is read as it was before, where that leaves the order of the free dims. */
static bool read_through(const dc_func *to, dc_dot *d, dc_ref *in, int side)
{
    const dc_node *p = dc_node_at(to, in[side]);
    int64_t last = -1;
    if (p->op != DC_OP_PERMUTE)
        return false;
    for (int i = 0; i < d->nfree[side]; i++) {
        if (p->attr[d->free[side][i]] < last)
            return false;
        last = p->attr[d->free[side][i]];
    }
    int64_t *const list[3] = {d->batch[side], d->contract[side], d->free[side]};
    const int n[3] = {d->nbatch, d->ncontract, d->nfree[side]};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n[k]; i++)
            list[k][i] = p->attr[list[k][i]];
    in[side] = p->in[0];
    return true;
}

/* Is it one piece of memory, as far as can be seen here? */
static bool is_whole(const dc_func *to, dc_ref r)
{
    const dc_op op = (dc_op)dc_node_at(to, r)->op;
    return op == DC_OP_RESHAPE || !dc_op_is(op, DC_CLASS_MOV);
}

/* Contracting axes i and i + 1 of one side become one. */
static dc_ref with_joined_axes(dc_func *to, dc_dot *d, dc_ref r, int side, int i)
{
    const dc_node *n = dc_node_at(to, r);
    const int64_t at = d->contract[side][i];
    int64_t *const list[3] = {d->batch[side], d->contract[side], d->free[side]};
    const int count[3] = {d->nbatch, d->ncontract, d->nfree[side]};
    int64_t dim[DC_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < n->rank; k++)
        if (k == at + 1)
            dim[rank - 1] *= n->dim[k];
        else
            dim[rank++] = n->dim[k];
    for (int l = 0; l < 3; l++)
        for (int k = 0; k < count[l]; k++)
            list[l][k] -= list[l][k] > at;
    return dc_graph_reshape(to, r, rank, dim);
}

/* Terms along neighbouring axes of both sides are terms along one, which is split and packed as one. */
static bool join_contracted(dc_func *to, dc_dot *d, dc_ref *in)
{
    bool any = false;
    if (!is_whole(to, in[0]) || !is_whole(to, in[1]))
        return false;
    for (int i = 0; i + 1 < d->ncontract;) {
        if (d->contract[0][i + 1] != d->contract[0][i] + 1 ||
            d->contract[1][i + 1] != d->contract[1][i] + 1) {
            i++;
            continue;
        }
        for (int side = 0; side < 2; side++)
            in[side] = with_joined_axes(to, d, in[side], side, i);
        d->ncontract--;
        for (int side = 0; side < 2; side++)
            for (int k = i + 1; k < d->ncontract; k++)
                d->contract[side][k] = d->contract[side][k + 1];
        any = true;
    }
    return any;
}

/* Does memory go along the terms or the results? Groups of threads copy tiles of either. */
static bool is_tiled(const dc_node *operand, const dc_dot *d, int side)
{
    int last = operand->rank - 1;
    while (last > 0 && operand->dim[last] == 1)
        last--;
    return last == last_free(d, side) ||
           (d->ncontract > 0 && last == d->contract[side][d->ncontract - 1]);
}

static dc_ref memory_of(const dc_func *to, dc_ref r)
{
    while (dc_layout_folds(to, r))
        r = dc_node_at(to, r)->in[0];
    return r;
}

/* Does the product's kernel pack its left operand? It packs memory that it reads at one place, as it is. */
static bool packs_left(const dc_func *to, const dc_ref *in)
{
    return is_whole(to, in[0]) && dc_node_at(to, in[0])->op != DC_OP_CAST &&
           memory_of(to, in[0]) != memory_of(to, in[1]);
}

/* The product with sides turned round where that pays; 0 where they stay. */
static dc_ref laid_out(dc_func *to, const dc_func *f, const dc_node *n, const dc_ref *operands,
                       bool groups)
{
    dc_ref in[2] = {operands[0], operands[1]};
    dc_dot d = dc_dot_of(f, n);
    if (is_single_term(dc_node_at(to, in[0]), &d))
        return outer_product(to, &d, n, in);
    const bool left_through = read_through(to, &d, in, 0);
    bool through = read_through(to, &d, in, 1) || left_through;
    through |= join_contracted(to, &d, in);
    const dc_node *a = dc_node_at(to, in[0]), *b = dc_node_at(to, in[1]);
    const int64_t rows = free_count(a, &d, 0), columns = free_count(b, &d, 1);
    const int last = last_free(&d, 1);
    const bool packs = d.ncontract == 1 && d.nfree[0] > 0 && d.nfree[1] == 1;
    if (groups && is_tiled(a, &d, 0) && is_tiled(b, &d, 1))
        return through ? dc_dot_make(to, in[0], in[1], &d) : 0;
    if (last >= 0 && last != b->rank - 1 && rows >= DC_TUNE_RIGHT_ROWS && !packs)
        return turned_dot(to, &d, in, 1, last);
    if (d.ncontract == 1 && a->rank > 0 && last_free(&d, 0) == a->rank - 1) {
        const int64_t sum = a->dim[d.contract[0][0]];
        if ((groups || !packs_left(to, in)) && rows * sum * columns >= DC_TUNE_LEFT_WORK &&
            pays_turning(sum, a->dim[a->rank - 1]))
            return turned_dot(to, &d, in, 0, (int)d.contract[0][0]);
    }
    return through ? dc_dot_make(to, in[0], in[1], &d) : 0;
}

dc_ref dc_rule_contraction(const dc_rule_at *at)
{
    const dc_node *n = dc_node_at(at->f, at->r);
    const dc_type t = dc_node_type(at->f, at->r);
    if (n->op != DC_OP_DOT)
        return 0;
    dc_ref made = laid_out(at->to, at->f, n, at->in, at->groups != NULL);
    if (made == 0)
        made = dc_graph_make(at->to, n->op, at->in, n->nin, n->attr, n->nattr, &t);
    if (at->groups == NULL || dc_node_at(at->to, made)->op != DC_OP_DOT)
        return made;
    dc_func_copy_origin(at->to, made, at->f, at->r); /* which its steps take over */
    const dc_ref sum = dc_split_contraction(at->to, made, at->groups);
    return sum != 0 ? sum : made;
}

/* What reduces axes of one element each is movement; a sum begins with 0, so -0 becomes 0. */
dc_ref dc_rule_single_term(const dc_rule_at *at)
{
    const dc_node *n = dc_node_at(at->f, at->r);
    if (n->nin != 1 || dc_op_row_of((dc_op)n->op)->cls != DC_CLASS_RED || dc_node_count(n) == 0 ||
        dc_node_count(n) != dc_node_count(dc_node_at(at->f, n->in[0])))
        return 0;
    const dc_ref x = dc_graph_cast(at->to, at->in[0], (dc_dtype)n->dtype);
    const dc_ref y = dc_graph_reshape(at->to, x, n->rank, n->dim);
    return n->op == DC_OP_SUM ? dc_graph_op2(at->to, DC_OP_ADD, y, dc_graph_like(at->to, y, 0)) : y;
}
