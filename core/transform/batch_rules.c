/*
 * Contractions, gather and scatter over rows. No operand is repeated that need not be: where one operand alone has
 * rows, they are one more free axis of a product, more of the batch or more channels of a convolution, or a part of what
 * gather takes as a whole.
 */
#include "core/base/extent.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "core/transform/batch_impl.h"

/* ---- dot ------------------------------------------------------------------------------------- */

static void shift(int64_t *axis, int n)
{
    for (int i = 0; i < n; i++)
        axis[i]++;
}

dc_status dc_batch_dot(dc_batch *b, dc_ref r, dc_ref *out)
{
    const dc_node *n = dc_node_at(b->from, r);
    const dc_ref in[2] = {b->map[n->in[0]], b->map[n->in[1]]};
    const bool is[2] = {dc_batch_is(b, n, 0), dc_batch_is(b, n, 1)};
    dc_dot d = dc_dot_of(b->from, n);
    int front = d.nbatch + (is[0] ? 0 : d.nfree[0]); /* where the axis is in the result */
    for (int side = 0; side < 2; side++)
        if (is[side]) {
            shift(d.batch[side], d.nbatch);
            shift(d.contract[side], d.ncontract);
        }
    if (is[0] && is[1]) {
        for (int side = 0; side < 2; side++) {
            for (int i = d.nbatch; i > 0; i--)
                d.batch[side][i] = d.batch[side][i - 1];
            d.batch[side][0] = 0;
        }
        d.nbatch++;
        front = 0;
    }
    *out = dc_batch_move(b->f, dc_dot_make(b->f, in[0], in[1], &d), front, 0);
    return DC_OK;
}

/* ---- conv ------------------------------------------------------------------------------------ */

/*
 * r [rows, dims], whose axis `at` of dims falls into `outer` parts: each part gets the rows, so that the axis is
 * [outer, rows, rest] and there is none in front any more.
 */
static dc_ref fold_rows(dc_func *f, dc_ref r, int64_t at, int64_t outer)
{
    const dc_node n = *dc_node_at(f, r);
    const int64_t rows = n.dim[0];
    int64_t split[DC_MAX_RANK], joined[DC_MAX_RANK];
    int k = 0;
    for (int i = 0; i < n.rank; i++) {
        if (i == 1 + at)
            split[k++] = outer;
        split[k++] = i == 1 + at ? dc_extent_div(f->module->extents, n.dim[i], outer) : n.dim[i];
        if (i > 0)
            joined[i - 1] =
                i == 1 + at ? dc_extent_mul(f->module->extents, n.dim[i], rows) : n.dim[i];
    }
    r = dc_batch_move(f, dc_graph_reshape(f, r, k, split), 0, (int)at + 1);
    return dc_graph_reshape(f, r, n.rank - 1, joined);
}

/* And back: axis `at` is [outer, rows, rest]. */
static dc_ref unfold_rows(dc_func *f, dc_ref r, int64_t at, int64_t outer, int64_t rows)
{
    const dc_node n = *dc_node_at(f, r);
    int64_t split[DC_MAX_RANK], apart[DC_MAX_RANK] = {rows};
    int k = 0;
    for (int i = 0; i < n.rank; i++) {
        if (i == at) {
            split[k++] = outer;
            split[k++] = rows;
        }
        const int64_t part =
            i == at ? dc_extent_quotient(f->module->extents, n.dim[i], rows) : n.dim[i];
        split[k++] = i == at ? dc_extent_div(f->module->extents, part, outer) : n.dim[i];
        apart[1 + i] = part;
    }
    r = dc_batch_move(f, dc_graph_reshape(f, r, k, split), (int)at + 1, 0);
    return dc_graph_reshape(f, r, n.rank + 1, apart);
}

dc_status dc_batch_conv(dc_batch *b, dc_ref r, dc_ref *out)
{
    dc_func *f = b->f;
    const dc_node *n = dc_node_at(b->from, r);
    const bool image = dc_batch_is(b, n, 0), kernel = dc_batch_is(b, n, 1);
    dc_ref in[2] = {b->map[n->in[0]], b->map[n->in[1]]}, made;
    dc_conv c = dc_conv_of(n);
    const int64_t parts = c.groups * c.batch_groups;
    for (int side = 0; side < 2; side++) { /* rows are folded into these axes */
        const dc_type t = dc_node_type(b->from, n->in[side]);
        for (int k = 0; k < 2; k++)
            if (dc_extent_is(t.dim[side == 0 ? c.in[k] : c.kernel[k]]))
                return dc_fail(b->j, DC_ERR_EXTENT,
                               &(dc_fact){.op = "conv",
                                          .axis = {(int)(side == 0 ? c.in[k] : c.kernel[k])},
                                          .type = {t}});
    }
    int64_t attr[DC_CONV_ATTRS], at = c.out[1], outer = 1; /* where the rows are in the result */
    if (image && kernel && dc_extent_is(b->size))
        return dc_fail(b->j, DC_ERR_EXTENT,
                       &(dc_fact){.op = "conv", .axis = {0}, .type = {dc_node_type(f, in[1])}});
    if (image && kernel) { /* as many times the groups, each of one row */
        in[0] = fold_rows(f, in[0], c.batch_groups > 1 ? c.in[0] : c.in[1], 1);
        in[1] = fold_rows(f, in[1], c.kernel[0], 1);
        *(c.batch_groups > 1 ? &c.batch_groups : &c.groups) *= b->size;
    } else if (image) {
        in[0] = fold_rows(f, in[0], c.in[0], c.batch_groups);
        at = c.out[0];
    } else {
        in[1] = fold_rows(f, in[1], c.kernel[0], parts);
        outer = parts;
    }
    const int nattr = dc_conv_write(&c, attr);
    DC_TRY(dc_make(b->j, f, DC_OP_CONV, in, 2, attr, nattr, NULL, &made));
    *out = unfold_rows(f, made, at, outer, b->size);
    return DC_OK;
}

/* ---- gather, scatter ------------------------------------------------------------------------- */

dc_status dc_batch_gather(dc_batch *b, dc_ref r, dc_ref *out)
{
    dc_func *f = b->f;
    const dc_node *n = dc_node_at(b->from, r);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1];
    const bool x = dc_batch_is(b, n, 0), index = dc_batch_is(b, n, 1);
    const dc_ref in[2] = {b->map[n->in[0]], b->map[n->in[1]]};
    if (x && index)
        *out = dc_graph_gather(f, in[0], in[1], axis + 1, nb + 1);
    else if (x) /* the rows are one of the axes before the one that is picked from */
        *out = dc_batch_move(
            f, dc_graph_gather(f, dc_batch_move(f, in[0], 0, nb), in[1], axis + 1, nb), nb, 0);
    else /* and here the first one of those that say which */
        *out = dc_batch_move(f, dc_graph_gather(f, in[0], dc_batch_move(f, in[1], 0, nb), axis, nb),
                             axis, 0);
    return DC_OK;
}

dc_status dc_batch_scatter(dc_batch *b, dc_ref r, dc_ref *out)
{
    dc_func *f = b->f;
    const dc_node *n = dc_node_at(b->from, r);
    const int axis = (int)n->attr[0], nb = (int)n->attr[1];
    dc_ref x, updates;
    DC_TRY(dc_batch_operand(b, n, 0, &x));
    DC_TRY(dc_batch_operand(b, n, 2, &updates));
    if (dc_batch_is(b, n, 1)) {
        *out = dc_graph_scatter(f, (dc_op)n->op, x, b->map[n->in[1]], updates, axis + 1, nb + 1);
        return DC_OK;
    }
    const dc_ref made =
        dc_graph_scatter(f, (dc_op)n->op, dc_batch_move(f, x, 0, nb), b->map[n->in[1]],
                         dc_batch_move(f, updates, 0, nb), axis + 1, nb);
    *out = dc_batch_move(f, made, nb, 0);
    return DC_OK;
}
