/*
 * Stages of transforms (jit/rewrite/fft_stages.h). Between stages the real and the imaginary parts lie in planes of
 * their own, which are read and written in whole vectors; where the transform begins and ends they alternate.
 */
#include "jit/rewrite/fft_stages.h"

#include "core/ir/dft.h"
#include "jit/base/fft_rows.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/replace.h"

/* As [before, n, after, 2], the axis being 1. */
static void four_dims(const dc_node *n, int64_t dim[4])
{
    const int axis = (int)n->attr[0];
    dim[0] = dim[2] = 1;
    dim[1] = n->dim[axis];
    dim[3] = 2;
    for (int k = 0; k < n->rank - 1; k++)
        if (k != axis)
            dim[k < axis ? 0 : 2] *= n->dim[k];
}

/* A transform with work for all threads, whose rows stay in a core's cache: one kernel. */
static bool is_whole(const dc_node *n, const int64_t dim[4])
{
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t rows = dc_fft_rows(dim[1], dim[2], t);
    return rows > 0 && dim[1] > 1 && dc_fft_bytes(dim[1], rows, t) <= DC_TUNE_FFT_CACHED &&
           dim[0] * dim[2] >= DC_TUNE_WORK_ITEMS * rows;
}

static dc_ref whole_of(dc_func *to, const dc_node *n, const dc_ref *in, const int64_t dim[4])
{
    const int64_t attr[DC_DFT_ATTRS] = {1, n->attr[1]};
    dc_ref operand[1 + 2 * DC_DFT_STAGES];
    for (int i = 0; i < n->nin; i++)
        operand[i] = in[i];
    operand[0] = dc_graph_reshape(to, in[0], 4, dim);
    const dc_ref r = dc_graph_make(to, DC_OP_DFT, operand, n->nin, attr, DC_DFT_ATTRS, NULL);
    return dc_graph_reshape(to, r, n->rank, n->dim);
}

static dc_ref stages_of(void *ctx, dc_func *to, const dc_node *n, const dc_ref *in)
{
    const bool *rows = ctx;
    const dc_type t = dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
    int64_t dim[4], attr[DC_STAGE_ATTRS];
    four_dims(n, dim);
    if (*rows && is_whole(n, dim))
        return whole_of(to, n, in, dim);
    int radix[DC_DFT_STAGES];
    const int count = dc_dft_radices(dim[1], radix);
    dc_stage s = {.s = 1, .sign = (int)n->attr[1], .m = dim[1]};
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

dc_func *dc_fft_stages(dc_arena *scratch, const dc_func *f, bool rows)
{
    return dc_replace(scratch, f,
                      &(dc_replacing){.op = DC_OP_DFT, .make = stages_of, .ctx = &rows});
}
