/*
 * Lowering of a stage of a transform (core/ir/dft.h): loops over what its transforms of length r have in common, and
 * one assignment that reads r numbers and stores r.
 */
#include "jit/lower/lower_fft.h"

/* Where part `part` of element i along the axis is, i and what lies after the axis being one sum with `inner`. */
static void place(const lowering *w, const dc_stage *s, bool planes, dc_ix before, int part,
                  dc_ix row, dc_ix inner, dc_ix pos[4])
{
    dc_kernel *k = w->k;
    const dc_ix q = s->after == 1 ? inner : dc_ix_div(k, inner, s->after);
    pos[0] = before;
    pos[planes ? 1 : 3] = dc_ix_const(k, part);
    pos[planes ? 2 : 1] = dc_ix_add(k, dc_ix_mul(k, row, s->s), q);
    pos[planes ? 3 : 2] = dc_ix_mod(k, inner, s->after);
}

/* Where it stores: the last stage of a transform has whatever axes that has. */
static dc_ix linear(dc_kernel *k, const dc_stage *s, const dc_ix pos[4])
{
    const int64_t n = s->radix * s->m * s->s;
    const int64_t planes[4] = {s->before, 2, n, s->after}, pairs[4] = {s->before, n, s->after, 2};
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < 4; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, (s->to_planes ? planes : pairs)[i]), pos[i]);
    return at;
}

static dc_ix row_of(dc_kernel *k, dc_ix p, int64_t by, int64_t more)
{
    return dc_ix_add(k, dc_ix_mul(k, p, by), dc_ix_const(k, more));
}

void dc_lower_stage(lowering *w, dc_ref r)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, r);
    const dc_stage s = dc_stage_of(w->fn, n);
    const int64_t dim[3] = {s.before, s.m, s.s * s.after};
    const dc_line l = {k, (dc_dtype)n->dtype, s.sign};
    const int radix = (int)s.radix;
    dc_number x[DC_DFT_RADIX];
    nest loops = {0};
    dc_ix at[3], pos[4];
    dc_lower_axes(w, false, "i", 3, dim, false, &loops, at);
    for (int j = 0; j < radix; j++) {
        const dc_ix row = row_of(k, at[1], 1, j * s.m);
        place(w, &s, s.from_planes, at[0], 0, row, at[2], pos);
        x[j].re = dc_lower_node(w, n->in[0], pos);
        place(w, &s, s.from_planes, at[0], 1, row, at[2], pos);
        x[j].im = dc_lower_node(w, n->in[0], pos);
    }
    dc_lower_butterfly(&l, radix, x);
    dc_stmt *store = dc_stmt_set(k, 2 * (uint32_t)radix);
    for (int i = 0; i < radix; i++) {
        if (s.m > 1 && i > 0) {
            const dc_ix factor[2] = {dc_ix_const(k, i), at[1]};
            const dc_vx c = dc_lower_node(w, n->in[1], factor);
            const dc_vx d = dc_lower_node(w, n->in[2], factor);
            x[i] = dc_lower_twiddle(&l, x[i], c, d);
        }
        for (int part = 0; part < 2; part++) {
            place(w, &s, s.to_planes, at[0], part, row_of(k, at[1], radix, i), at[2], pos);
            store->put[2 * i + part] =
                (dc_put){0, linear(k, &s, pos), part == 0 ? x[i].re : x[i].im};
        }
    }
    k->root = dc_lower_wrap(k, &loops, store);
    for (uint32_t v = 1; v < k->vx.n; v++)
        k->flops += k->vx.at[v].kind == DC_VX_OP;
    k->flops *= dim[0] * dim[1] * dim[2];
}
