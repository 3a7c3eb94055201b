/*
 * Contractions across of few batches (jit/rewrite/attention.h):
 *
 *   dot(w[.., x, y], v[.., y, n])  ->  sum over parts of dot(w[.., x, parts, y / parts], v[.., parts, y / parts, n])
 */
#include "jit/rewrite/attention_impl.h"
#include "jit/rewrite/replace.h"

/* Dims with the axis in so many parts. */
static dc_ref in_parts(dc_func *to, dc_ref r, int64_t axis, int64_t parts)
{
    const dc_node n = *dc_node_at(to, r);
    int64_t dim[DC_MAX_RANK];
    for (int i = 0; i < n.rank; i++)
        dim[i < axis ? i : i + 1] = n.dim[i];
    dim[axis] = parts;
    dim[axis + 1] = n.dim[axis] / parts;
    return dc_graph_reshape(to, r, n.rank + 1, dim);
}

static int64_t moved(int64_t axis, int64_t cut)
{
    return axis > cut ? axis + 1 : axis;
}

static dc_ref sum_of_parts(dc_func *to, const dc_dot *d, const dc_ref *in, int64_t parts)
{
    dc_dot cut = {.nbatch = d->nbatch + 1, .ncontract = 1};
    dc_ref operand[2];
    for (int side = 0; side < 2; side++) {
        const int64_t axis = d->contract[side][0];
        operand[side] = in_parts(to, in[side], axis, parts);
        for (int i = 0; i < d->nbatch; i++)
            cut.batch[side][i] = moved(d->batch[side][i], axis);
        cut.batch[side][d->nbatch] = axis;
        cut.contract[side][0] = axis + 1;
    }
    const dc_ref y = dc_dot_make(to, operand[0], operand[1], &cut);
    return dc_graph_reduce(to, DC_OP_SUM, y, 1u << d->nbatch);
}

/* Sizes that are known when the function runs leave no kernels of attention. */
static bool has_sizes(const dc_func *f, const bool *live)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && dc_node_at(f, r)->op == DC_OP_SET_SIZE)
            return true;
    return false;
}

typedef struct splitting {
    const dc_func *f;
    const int64_t *parts; /* by ref of f; 0: it is left as it is */
} splitting;

static int64_t parts_of(const splitting *x, const dc_node *n)
{
    return x->parts[n - dc_node_at(x->f, 1) + 1];
}

static bool is_split(void *ctx, const dc_node *n)
{
    return parts_of(ctx, n) > 0;
}

static dc_ref split(void *ctx, dc_func *to, const dc_node *n, const dc_ref *in)
{
    const splitting *x = ctx;
    const dc_dot d = dc_dot_of(x->f, n);
    return sum_of_parts(to, &d, in, parts_of(x, n));
}

dc_func *dc_attention_split(dc_arena *scratch, const dc_func *f)
{
    if (has_sizes(f, dc_func_live(f, scratch)))
        return NULL;
    const dc_attention t = dc_attention_in(f, scratch);
    int64_t *parts = DC_NEW_ARRAY(scratch, int64_t, f->node.n);
    for (uint32_t i = 0; i < t.n; i++)
        if (t.at[i].apart != 0)
            parts[t.at[i].apart] = t.at[i].apart_parts;
    splitting x = {f, parts};
    return dc_replace(scratch, f, &(dc_replacing){DC_OP_DOT, is_split, split, &x});
}
