#include "jit/rewrite/running.h"

#include "core/base/extent.h"
#include "core/graph/running.h"

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

static bool is_running(dc_job *j, const dc_node *n)
{
    int64_t dim[3];
    return n->op == DC_OP_RUN && flat(j, n, dim);
}

static bool has_one(dc_job *j, const dc_func *f, const bool *live)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && is_running(j, dc_node_at(f, r)))
            return true;
    return false;
}

static dc_ref in_blocks(dc_job *j, dc_func *to, const dc_node *n, dc_ref x)
{
    int64_t dim[3];
    flat(j, n, dim);
    const dc_ref y = dc_running_blocks(to, (dc_run_kind)n->attr[0], n->attr[1] != 0,
                                       dc_graph_reshape(to, x, 3, dim));
    return dc_graph_reshape(to, y, n->rank, n->dim);
}

dc_func *dc_running_rewrite(dc_job *j, const dc_func *f)
{
    const bool *live = dc_func_live(f, &j->scratch);
    if (!has_one(j, f, live))
        return NULL;
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(&j->scratch, dc_ref, f->node.n), in[DC_MAX_OPERANDS];
    dc_graph_params(to, f, map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        const dc_type t = dc_node_type(f, r);
        if (!live[r] || map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_ref first = to->node.n;
        map[r] = is_running(j, n)
                     ? in_blocks(j, to, n, in[0])
                     : dc_graph_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
        for (dc_ref q = first; q < to->node.n; q++)
            dc_func_copy_origin(to, q, f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}
