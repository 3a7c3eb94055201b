#include "jit/rewrite/running.h"

#include "core/ir/running.h"
#include "jit/rewrite/replace.h"

static bool flat(dc_job *j, const dc_node *n, int64_t dim[3])
{
    const dc_type t = dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
    return dc_node_count(n) > 0 &&
           dc_running_flat(j->extents, &t, n->rank - 1 - (int)n->attr[2], dim);
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
