/*
 * Row-wise groups, and which reductions a group takes (jit/fuse/fuse.c).
 *
 * A group begins with outputs of some number of elements. A reduction over the last axes of its
 * operand splits it: the elements of the reduction are the rows, those of the operand the points. If
 * the outputs so far have as many elements as there are rows (layer norm's variance before anything
 * reads it), each of them has a row behind it from now on; if as many as there are points (softmax's
 * quotient), they are stored point by point.
 *
 * Invariant: once rows > 0 they never change, points = rows * columns, and every reduction of the
 * group is over the columns. A group with never_row_wise has at most one product, or reductions of operands
 * of one shape over the same axes.
 */
#include "jit/fuse/fuse_impl.h"
#include "jit/rewrite/split_reduction.h"

#include <string.h>

static bool rows_of(const fusing *w, dc_ref r, fuse_rows *out)
{
    dc_split_rows x;
    if (!dc_split_is_row_wise(w->fn, r, &x))
        return false;
    *out = (fuse_rows){fuse_at(w, r)->in[0], x.split, x.rows, x.columns};
    return true;
}

bool dc_fuse_is_row_wise(const fusing *w, dc_ref r)
{
    const uint32_t g = w->node[r].home;
    return fuse_class(w, r) == DC_CLASS_RED && g < MANY_HOME && w->group.at[g].rows > 0;
}

bool dc_fuse_may_be_row_wise(const fusing *w, uint32_t g, const fuse_rows *rows)
{
    const fuse_group *x = &w->group.at[g];
    const int64_t points = rows->rows * rows->columns;
    if (x->never_row_wise || rows->columns < 2 || rows->rows < 1)
        return false;
    if (x->rows > 0)
        return x->rows == rows->rows && x->points == points;
    return x->points == rows->rows || (x->points == points && (rows->rows >= DC_TUNE_WORK_ITEMS ||
                                                               points <= DC_TUNE_SMALL_SPACE));
}

void dc_fuse_make_row_wise(fusing *w, uint32_t g, const fuse_rows *rows)
{
    fuse_group *x = &w->group.at[g];
    if (x->rows > 0)
        return;
    x->rows = rows->rows;
    x->points = rows->rows * rows->columns;
    x->g.shape = rows->shape;
    x->g.split = rows->split;
}

bool dc_fuse_same_axes(const fusing *w, dc_ref r, dc_ref s)
{
    const dc_node *x = fuse_at(w, r), *y = fuse_at(w, s);
    if (fuse_class(w, r) != DC_CLASS_RED || fuse_class(w, s) != DC_CLASS_RED ||
        x->attr[0] != y->attr[0])
        return false;
    const dc_node *a = fuse_at(w, x->in[0]), *b = fuse_at(w, y->in[0]);
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0);
}

const char *dc_fuse_refuses_reduce(const fusing *w, uint32_t g, dc_ref r)
{
    const fuse_group *x = &w->group.at[g];
    fuse_rows rows;
    if (x->g.nreduce >= DC_TUNE_GROUP_REDUCTIONS)
        return "limit of reductions in a kernel";
    if (rows_of(w, r, &rows) && dc_fuse_may_be_row_wise(w, g, &rows))
        return NULL;
    if (x->rows > 0)
        return fuse_is_product(w, r) ? "a row-wise kernel has no contractions"
                                     : "the row-wise kernel that reads it has other rows";
    if (x->points != dc_node_count(fuse_at(w, r)))
        return "broadcast in the kernel that reads it";
    return x->g.nreduce == 0 || dc_fuse_same_axes(w, r, x->g.reduce[0])
               ? NULL
               : "the kernel that reads it has another reduction";
}

void dc_fuse_add_reduce(fusing *w, uint32_t g, dc_ref r)
{
    fuse_group *x = &w->group.at[g];
    dc_ref *reduce = DC_NEW_ARRAY(w->a, dc_ref, x->g.nreduce + 1);
    fuse_rows rows;
    reduce[0] = r; /* the walk goes down, so it is the smallest */
    if (x->g.nreduce > 0)
        memcpy(reduce + 1, x->g.reduce, x->g.nreduce * sizeof *reduce);
    x->g.reduce = reduce;
    x->g.nreduce++;
    if (rows_of(w, r, &rows) && dc_fuse_may_be_row_wise(w, g, &rows))
        dc_fuse_make_row_wise(w, g, &rows);
    else
        x->never_row_wise = true;
}
