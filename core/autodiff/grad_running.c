/* The gradient of running reductions (core/ir/running.h). */
#include "core/autodiff/grad_impl.h"
#include "core/ir/running.h"

/* Element i becomes what is at i - 1, or at i + 1 in reverse; fill at the end. */
static dc_ref shifted(dc_func *f, dc_ref x, bool reverse, double fill)
{
    const dc_type t = dc_node_type(f, x);
    const int64_t n = t.dim[1], step[3] = {1, 1, 1}, less[3] = {t.dim[0], n - 1, t.dim[2]};
    const dc_ref kept = dc_graph_slice(f, x, (const int64_t[]){0, reverse, 0}, step, less);
    return dc_graph_pad(f, kept, (const int64_t[]){0, !reverse, 0}, step, t.dim,
                        dc_bits_of((dc_dtype)t.dtype, fill));
}

/*
 * dx[i] = y[i - 1] (dy[i] + x[i + 1] (dy[i + 1] + x[i + 2] (...))): nothing is divided, so zeros are like other numbers,
 * in gradients of it, too.
 */
static dc_ref of_product(const dc_vjp *v, bool reverse, dc_ref x, dc_ref y, dc_ref dy)
{
    const dc_ref rest = dc_running_recurrence(v->f, !reverse, shifted(v->f, x, !reverse, 0), dy);
    return dc_graph_op2(v->f, DC_OP_MUL, shifted(v->f, y, reverse, 1), rest);
}

/*
 * What element k gets of the cotangent of y: of each y that it is, from its own on, the share. As many share as there
 * are elements up to there that are y.
 */
static dc_ref of_extreme(const dc_vjp *v, bool reverse, dc_ref x, dc_ref y, dc_ref dy)
{
    dc_func *f = v->f;
    const dc_dtype t = (dc_dtype)dc_node_type(f, x).dtype;
    const dc_ref won = dc_graph_op2(f, DC_OP_EQ, x, y);
    dc_ref count = dc_running_segments(f, reverse, y, dc_graph_cast(f, won, DC_I32));
    count = dc_graph_cast(f, count, t);
    const dc_ref share = dc_running_segments(f, !reverse, y, dc_graph_op2(f, DC_OP_DIV, dy, count));
    return dc_graph_op3(f, DC_OP_WHERE, won, share, dc_graph_like(f, x, 0));
}

void dc_grad_run(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_type t = dc_node_type(f, v->n.in[0]);
    const int axis = t.rank - 1 - (int)v->n.attr[2];
    const bool reverse = v->n.attr[1] != 0;
    int64_t dim[3];
    if (dc_type_count(&t) == 0)
        return;
    if (v->n.attr[0] == DC_RUN_SUM) { /* dy[i] reaches x[0] to x[i] */
        dc_vjp_give(v, 0, dc_running(f, DC_RUN_SUM, !reverse, v->g, axis));
        return;
    }
    if (!dc_running_flat(v->j->extents, &t, axis, dim)) {
        *v->status = dc_fail(v->j, DC_ERR_EXTENT, &(dc_fact){.type = {t}, .operand = 1});
        return;
    }
    const dc_ref x = dc_graph_reshape(f, v->n.in[0], 3, dim), y = dc_graph_reshape(f, v->r, 3, dim),
                 dy = dc_graph_reshape(f, v->g, 3, dim);
    const dc_ref dx = v->n.attr[0] == DC_RUN_PROD ? of_product(v, reverse, x, y, dy)
                                                  : of_extreme(v, reverse, x, y, dy);
    dc_vjp_give(v, 0, dc_graph_reshape(f, dx, t.rank, t.dim));
}
