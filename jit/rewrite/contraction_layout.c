#include "jit/rewrite/contraction_layout.h"

#include "jit/base/tuning.h"
#include "jit/rewrite/split_reduction.h"

#include <string.h>

typedef struct sides {
    int nb, nc;
    const int64_t *batch[2], *contracted[2];
} sides;

static sides sides_of(const dc_node *n)
{
    sides s = {.nb = (int)n->attr[0], .nc = (int)n->attr[1]};
    s.batch[0] = n->attr + 2;
    s.batch[1] = s.batch[0] + s.nb;
    s.contracted[0] = s.batch[1] + s.nb;
    s.contracted[1] = s.contracted[0] + s.nc;
    return s;
}

static bool is_free(const sides *s, int side, int axis)
{
    for (int i = 0; i < s->nb; i++)
        if (s->batch[side][i] == axis)
            return false;
    for (int i = 0; i < s->nc; i++)
        if (s->contracted[side][i] == axis)
            return false;
    return true;
}

/* Product of the free dims of a side; *axes how many there are. */
static int64_t free_count(const dc_node *operand, const sides *s, int side, int *axes)
{
    int64_t count = 1;
    *axes = 0;
    for (int i = 0; i < operand->rank; i++)
        if (is_free(s, side, i)) {
            count *= operand->dim[i];
            ++*axes;
        }
    return count;
}

static int last_free(const sides *s, int rank)
{
    int axis = rank - 1;
    while (axis >= 0 && !is_free(s, 1, axis))
        axis--;
    return axis;
}

/* Moves an axis of one side behind all others. */
static dc_ref turned_dot(dc_func *to, const sides *s, const dc_ref *in, int side, int last)
{
    const int rank = dc_node_at(to, in[side])->rank;
    int64_t perm[DC_MAX_RANK], where[DC_MAX_RANK], batch[DC_MAX_RANK], contracted[DC_MAX_RANK];
    int k = 0;
    for (int i = 0; i < rank; i++)
        if (i != last) {
            where[i] = k;
            perm[k++] = i;
        }
    where[last] = k;
    perm[k] = last;
    for (int i = 0; i < s->nb; i++)
        batch[i] = where[s->batch[side][i]];
    for (int i = 0; i < s->nc; i++)
        contracted[i] = where[s->contracted[side][i]];
    const dc_ref moved = dc_graph_permute(to, in[side], perm);
    return side == 0 ? dc_graph_dot(to, moved, in[1], s->nb, batch, s->batch[1], s->nc, contracted,
                                    s->contracted[1])
                     : dc_graph_dot(to, in[0], moved, s->nb, s->batch[0], batch, s->nc,
                                    s->contracted[0], contracted);
}

/* One side with its axes in the order batch, free; beside axes of extent 1 for those of the other side. */
static dc_ref spread(dc_func *to, const sides *s, const dc_node *n, dc_ref in, int side)
{
    const dc_node *a = dc_node_at(to, in);
    int64_t perm[DC_MAX_RANK], dim[DC_MAX_RANK];
    int k = 0;
    for (int i = 0; i < s->nb; i++)
        perm[k++] = s->batch[side][i];
    for (int i = 0; i < a->rank; i++)
        if (is_free(s, side, i))
            perm[k++] = i;
    for (int i = 0; i < n->rank; i++)
        dim[i] = 1;
    const int own = k - s->nb, from = side == 0 ? s->nb : n->rank - own;
    for (int i = 0; i < k; i++)
        dim[i < s->nb ? i : from + i - s->nb] = a->dim[perm[i]];
    for (int i = 0; i < s->nc; i++)
        perm[k++] = s->contracted[side][i];
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
static dc_ref outer_product(dc_func *to, const sides *s, const dc_node *n, const dc_ref *in)
{
    const dc_dtype t = (dc_dtype)n->dtype;
    const dc_ref a = dc_graph_cast(to, spread(to, s, n, in[0], 0), t);
    const dc_ref b = dc_graph_cast(to, spread(to, s, n, in[1], 1), t);
    const dc_ref y = dc_graph_op2(to, DC_OP_MUL, a, b);
    return dc_graph_op2(to, DC_OP_ADD, y, dc_graph_like(to, y, 0));
}

static bool is_single_term(const dc_node *a, const sides *s)
{
    for (int i = 0; i < s->nc; i++)
        if (a->dim[s->contracted[0][i]] != 1)
            return false;
    return true;
}

/*
 * A permuted operand is read as it was before, where that leaves the order of the free dims. attr:
 * where the axes are kept.
 */
static bool read_through(const dc_func *to, sides *s, dc_ref *in, int side, int64_t *attr)
{
    const dc_node *p = dc_node_at(to, in[side]);
    int64_t last = -1;
    if (p->op != DC_OP_PERMUTE)
        return false;
    for (int i = 0; i < p->rank; i++)
        if (is_free(s, side, i)) {
            if (p->attr[i] < last)
                return false;
            last = p->attr[i];
        }
    for (int i = 0; i < s->nb; i++)
        attr[i] = p->attr[s->batch[side][i]];
    for (int i = 0; i < s->nc; i++)
        attr[s->nb + i] = p->attr[s->contracted[side][i]];
    s->batch[side] = attr;
    s->contracted[side] = attr + s->nb;
    in[side] = p->in[0];
    return true;
}

/* The product with sides turned round where that pays; 0 where they stay. */
static dc_ref laid_out(dc_func *to, const dc_node *n, const dc_ref *operands)
{
    dc_ref in[2] = {operands[0], operands[1]};
    int64_t attr[2][2 * DC_MAX_RANK];
    sides s = sides_of(n);
    int left, right;
    if (is_single_term(dc_node_at(to, in[0]), &s))
        return outer_product(to, &s, n, in);
    const bool left_through = read_through(to, &s, in, 0, attr[0]);
    const bool through = read_through(to, &s, in, 1, attr[1]) || left_through;
    const dc_node *a = dc_node_at(to, in[0]), *b = dc_node_at(to, in[1]);
    const int64_t rows = free_count(a, &s, 0, &left), columns = free_count(b, &s, 1, &right);
    const int last = last_free(&s, b->rank);
    const bool packs = s.nc == 1 && left > 0 && right == 1;
    if (last >= 0 && last != b->rank - 1 && rows >= DC_TUNE_RIGHT_ROWS && !packs)
        return turned_dot(to, &s, in, 1, last);
    if (s.nc == 1 && a->rank > 0 && is_free(&s, 0, a->rank - 1)) {
        const int64_t sum = a->dim[s.contracted[0][0]];
        if (rows * sum * columns >= DC_TUNE_LEFT_WORK && pays_turning(sum, a->dim[a->rank - 1]))
            return turned_dot(to, &s, in, 0, (int)s.contracted[0][0]);
    }
    return !through ? 0
                    : dc_graph_dot(to, in[0], in[1], s.nb, s.batch[0], s.batch[1], s.nc,
                                   s.contracted[0], s.contracted[1]);
}

/* What reduces axes of one element each is movement; a sum begins with 0, so -0 becomes 0. Else 0. */
static dc_ref single_term(dc_func *to, const dc_func *f, dc_ref r, dc_ref in)
{
    const dc_node *n = dc_node_at(f, r), *a = dc_node_at(f, n->in[0]);
    if (dc_op_row_of((dc_op)n->op)->cls != DC_CLASS_RED || dc_node_count(n) != dc_node_count(a) ||
        dc_node_count(n) == 0)
        return 0;
    const dc_ref y =
        dc_graph_reshape(to, dc_graph_cast(to, in, (dc_dtype)n->dtype), n->rank, n->dim);
    return n->op == DC_OP_SUM ? dc_graph_op2(to, DC_OP_ADD, y, dc_graph_like(to, y, 0)) : y;
}

/* Sums of 16-bit floats in memory of f32, which is where a scatter adds. */
static dc_ref wide_scatter(dc_func *to, const dc_node *n, const dc_ref *in)
{
    const dc_ref wide[3] = {dc_graph_cast(to, in[0], DC_F32), in[1],
                            dc_graph_cast(to, in[2], DC_F32)};
    const dc_ref sum = dc_graph_make(to, n->op, wide, 3, n->attr, n->nattr, NULL);
    return dc_graph_cast(to, sum, (dc_dtype)n->dtype);
}

dc_func *dc_contraction_layout(dc_arena *scratch, const dc_func *f)
{
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(scratch, dc_ref, f->node.n);
    const bool *live = dc_func_live(f, scratch);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        map[f->param.at[i]] = dc_graph_param(to, &t, f->label.at[i]);
        dc_func_copy_origin(to, map[f->param.at[i]], f, f->param.at[i]);
    }
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (map[r] != 0 || !live[r])
            continue;
        dc_ref in[8];
        DC_ASSERT(n->nin <= (int)DC_COUNTOF(in), "%d operands", n->nin);
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_type t = dc_node_type(f, r);
        if (n->op == DC_OP_SCATTER_ADD && dc_dtype_is_short((dc_dtype)t.dtype)) {
            map[r] = wide_scatter(to, n, in);
            dc_func_copy_origin(to, map[r], f, r);
            continue;
        }
        if (n->nin == 1 && (map[r] = dc_split_reduce(to, f, r, in[0])) != 0)
            continue;
        map[r] = n->op == DC_OP_DOT ? laid_out(to, n, in)
                 : n->nin == 1      ? single_term(to, f, r, in[0])
                                    : 0;
        if (map[r] == 0)
            map[r] = dc_graph_make(to, n->op, in, n->nin, n->attr, n->nattr, &t);
        dc_func_copy_origin(to, map[r], f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}
