/*
 * Convolutions as loops: how many there are round a conv node, and where its operands stand in them.
 *
 * Loops run over the result's axes, as they lie in memory; channels in groups are two loops, group
 * and channel of the group, so that no division is left in any map. Inside, terms in row-major order
 * of the kernel's axes (core/ir/conv.h).
 */
#include "core/ir/conv.h"
#include "jit/lower/lower_impl.h"

static int64_t groups_of(const dc_conv *c)
{
    return c->groups * c->batch_groups;
}

void dc_lower_conv_loops(lowering *w, const dc_node *n, nest *loops)
{
    const dc_conv c = dc_conv_of(n);
    const int64_t groups = groups_of(&c), own = n->dim[c.out[1]] / groups;
    dc_kernel *k = w->k;
    int64_t dim[DC_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < n->rank; i++) {
        if (i == c.out[1] && groups > 1)
            dim[rank++] = groups;
        dim[rank++] = i == c.out[1] ? own : n->dim[i];
    }
    dc_lower_axes(w, false, "i", rank, dim, false, loops, w->loop);
    dc_lower_conv_roles(w, n, loops);
    for (int i = 0, at = 0; i < n->rank; i++) {
        w->out_pos[i] = w->loop[at++];
        if (i == c.out[1] && groups > 1)
            w->out_pos[i] = dc_ix_add(k, dc_ix_mul(k, w->out_pos[i], own), w->loop[at++]);
    }
}

int dc_lower_conv_terms(const dc_func *f, const dc_node *n, int64_t *dim)
{
    const dc_conv c = dc_conv_of(n);
    const dc_node *w = dc_node_at(f, n->in[1]);
    int rank = 0;
    for (int i = 0; i < w->rank; i++)
        if (i != c.kernel[0])
            dim[rank++] = w->dim[i];
    return rank;
}

/* Where the window at position `at` has its tap: inside the input, or `inside` fails. */
static dc_ix tap_at(dc_kernel *k, const dc_conv_dim *d, dc_ix at, dc_ix tap, int64_t window,
                    int64_t extent, dc_pred *inside)
{
    if (d->reversed)
        tap = dc_ix_add(k, dc_ix_const(k, window - 1), dc_ix_mul(k, tap, -1));
    dc_ix p = dc_ix_add(k, dc_ix_mul(k, at, d->stride), dc_ix_mul(k, tap, d->dilate));
    p = dc_ix_add(k, p, dc_ix_const(k, -d->lo));
    const dc_ix which = dc_ix_div(k, p, d->dilate_in);
    *inside = dc_pred_and(k, *inside, which, extent);
    if (d->dilate_in > 1)
        *inside = dc_pred_and(k, *inside, dc_ix_mod(k, p, d->dilate_in), 1);
    return which;
}

/* Positions of both operands; where `inside` fails, the first is 0 and must not be read. */
static void operands(lowering *w, const dc_node *n, const dc_ix *term, dc_ix pos[2][DC_MAX_RANK],
                     dc_pred *inside)
{
    const dc_conv c = dc_conv_of(n);
    const dc_node *x = dc_node_at(w->fn, n->in[0]), *kernel = dc_node_at(w->fn, n->in[1]);
    const bool grouped = groups_of(&c) > 1;
    dc_kernel *k = w->k;
    dc_ix at[DC_MAX_RANK]; /* by axis of the result, channels within their group */
    for (int i = 0; i < n->rank; i++)
        at[i] = w->loop[i + (grouped && i >= c.out[1])];
    const dc_ix group = grouped ? w->loop[c.out[1]] : dc_ix_const(k, 0);
    for (int i = 0, next = 0; i < kernel->rank; i++)
        if (i != c.kernel[0])
            pos[1][i] = term[next++];
    pos[1][c.kernel[0]] = w->out_pos[c.out[1]];
    const int64_t batch = c.batch_groups > 1 ? n->dim[c.out[0]] : 0;
    const int64_t channels = c.groups > 1 ? kernel->dim[c.kernel[1]] : 0;
    pos[0][c.in[0]] = dc_ix_add(k, dc_ix_mul(k, group, batch), at[c.out[0]]);
    pos[0][c.in[1]] = dc_ix_add(k, dc_ix_mul(k, group, channels), pos[1][c.kernel[1]]);
    for (int i = 0; i < c.n; i++)
        pos[0][c.in[2 + i]] = tap_at(k, &c.dim[i], at[c.out[2 + i]], pos[1][c.kernel[2 + i]],
                                     kernel->dim[c.kernel[2 + i]], x->dim[c.in[2 + i]], inside);
}

void dc_lower_conv_operands(lowering *w, const dc_node *n, const dc_ix *at,
                            dc_ix pos[2][DC_MAX_RANK])
{
    dc_pred inside = {0};
    operands(w, n, at, pos, &inside);
}

/* Is the value 0 wherever its guard fails? A load is, and so is one with zeros behind a size. */
static bool is_guarded(const dc_kernel *k, dc_vx v)
{
    const dc_vx_node *x = &k->vx.at[v];
    if (x->kind == DC_VX_OP && x->op == DC_OP_WHERE)
        return k->vx.at[x->in[2]].kind == DC_VX_CONST && k->vx.at[x->in[2]].bits == 0 &&
               is_guarded(k, x->in[1]);
    if (x->kind == DC_VX_OP && x->op == DC_OP_CAST)
        return is_guarded(k, x->in[0]);
    return x->kind == DC_VX_LOAD;
}

dc_vx dc_lower_conv_term(lowering *w, const dc_node *n, const dc_ix *at)
{
    dc_kernel *k = w->k;
    const dc_dtype t = dc_lower_computed(n->dtype);
    dc_ix pos[2][DC_MAX_RANK];
    dc_pred inside = {0};
    dc_vx in[2];
    operands(w, n, at, pos, &inside);
    w->guard = inside;
    in[0] = dc_lower_cast(w, dc_lower_node(w, n->in[0], pos[0]), t);
    w->guard = (dc_pred){0};
    if (inside.n > 0 && !is_guarded(k, in[0])) {
        const dc_vx pick[3] = {dc_vx_test(k, inside), in[0], dc_vx_const(k, t, 0)};
        in[0] = dc_vx_op(k, DC_OP_WHERE, t, pick, 3);
    }
    in[1] = dc_lower_cast(w, dc_lower_node(w, n->in[1], pos[1]), t);
    dc_lower_settle_roles(w, in);
    return dc_vx_op(k, DC_OP_MUL, t, in, 2);
}
