/* The gradient of sorting. */
#include "core/autodiff/grad_impl.h"

/* Sorted rows are a permutation: each element's cotangent goes back to where argsort says it was. */
void dc_grad_sort(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref x = v->n.in[0];
    if (!dc_vjp_wants(v, 0))
        return;
    const dc_ref at = dc_graph_make(f, DC_OP_ARGSORT, &x, 1, v->n.attr, v->n.nattr, NULL);
    const int last = v->n.rank - 1;
    dc_vjp_give(v, 0,
                dc_graph_scatter(f, DC_OP_SCATTER, dc_vjp_zero_like(v, x), at, v->g, last, last));
}
