/*
 * Stages of transforms (jit/rewrite/fft_stages.h). Between stages the real and the imaginary parts lie in planes of
 * their own, which are read and written in whole vectors; where the transform begins and ends they alternate.
 */
#include "jit/rewrite/fft_stages.h"

#include "core/graph/dft.h"

static dc_ref stages_of(dc_func *to, const dc_node *n, const dc_ref *in)
{
    const int axis = (int)n->attr[0];
    const dc_type t = dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
    int radix[DC_DFT_STAGES];
    const int count = dc_dft_radices(n->dim[axis], radix);
    int64_t dim[4] = {1, n->dim[axis], 1, 2}, attr[DC_STAGE_ATTRS];
    dc_stage s = {.s = 1, .sign = (int)n->attr[1], .m = n->dim[axis]};
    for (int k = 0; k < n->rank - 1; k++)
        dim[0] *= k < axis ? n->dim[k] : 1;
    for (int k = axis + 1; k < n->rank - 1; k++)
        dim[2] *= n->dim[k];
    dc_ref r = dc_graph_reshape(to, in[0], 4, dim);
    for (int i = 0; i < count; i++) {
        const dc_ref operand[3] = {r, i + 1 < count ? in[1 + 2 * i] : 0,
                                   i + 1 < count ? in[2 + 2 * i] : 0};
        s.radix = radix[i];
        s.m /= radix[i];
        s.from_planes = i > 0;
        s.to_planes = i + 1 < count;
        dc_stage_write(&s, attr);
        r = dc_graph_make(to, DC_OP_STAGE, operand, s.m > 1 ? 3 : 1, attr, DC_STAGE_ATTRS,
                          s.to_planes ? NULL : &t);
        s.s *= radix[i];
    }
    return r;
}

static bool has_transform(const dc_func *f, const bool *live)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && dc_node_at(f, r)->op == DC_OP_DFT)
            return true;
    return false;
}

dc_func *dc_fft_stages(dc_arena *scratch, const dc_func *f)
{
    const bool *live = dc_func_live(f, scratch);
    if (!has_transform(f, live))
        return NULL;
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(scratch, dc_ref, f->node.n), in[DC_MAX_OPERANDS];
    dc_graph_params(to, f, map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        const dc_type t = dc_node_type(f, r);
        if (!live[r] || map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_ref first = to->node.n;
        map[r] = n->op == DC_OP_DFT
                     ? stages_of(to, n, in)
                     : dc_graph_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
        for (dc_ref q = first; q < to->node.n; q++)
            dc_func_copy_origin(to, q, f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}
