#include "jit/rewrite/running.h"

#include "core/base/extent.h"
#include "core/graph/running.h"
#include "jit/rewrite/replace.h"

/* The batch is one axis; false where a size of it is not known. */
static bool flat(dc_job *j, const dc_node *n, int64_t dim[3])
{
    const int axis = n->rank - 1 - (int)n->attr[2];
    dim[0] = dim[2] = 1;
    dim[1] = n->dim[axis];
    for (int k = 0; k < axis; k++)
        dim[0] = dc_extent_mul(j->extents, dim[0], n->dim[k]);
    for (int k = axis + 1; k < n->rank; k++)
        dim[2] *= n->dim[k];
    return dim[0] != DC_EXTENT_NONE && dc_node_count(n) > 0;
}

static bool is_flat(void *job, const dc_node *n)
{
    int64_t dim[3];
    return flat(job, n, dim);
}

static dc_ref in_blocks(void *job, dc_func *to, const dc_node *n, const dc_ref *in)
{
    int64_t dim[3];
    flat(job, n, dim);
    const dc_ref y = dc_running_blocks(to, (dc_run_kind)n->attr[0], n->attr[1] != 0,
                                       dc_graph_reshape(to, in[0], 3, dim));
    return dc_graph_reshape(to, y, n->rank, n->dim);
}

dc_func *dc_running_rewrite(dc_job *j, const dc_func *f)
{
    return dc_replace(&j->scratch, f,
                      &(dc_replacing){.op = DC_OP_RUN, .is = is_flat, .make = in_blocks, .ctx = j});
}
