/*
 * Roles of a contraction's loops (jit/nest/nest.h), as its node says them. Dims of the result that both operands of
 * a dot have are batch, those of its left operand m, those of its right one n; of a convolution groups of
 * channels are batch, channels n, images m, positions spatial. What is added up is k, or window.
 *
 * Two things are known only once the operands are lowered, and settled then: an operand that is broadcast
 * along a dim of its own does not move along it; and the innermost loop over the result is to be an n, so
 * that operands change places where it is an m. Where that loop moves both operands or none, or each sum is
 * of one term, there is no contraction that rules could schedule, and no loop has a role.
 */
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "jit/lower/lower_impl.h"
#include "jit/nest/nest_roles.h"

void dc_lower_set_role(dc_kernel *k, const nest *loops, dc_role role)
{
    for (int i = 0; i < loops->n; i++)
        k->axis.at[loops->axis[i]].role = (uint8_t)role;
}

/* Of the result -------------------------------------------------------------------------------- */

/* Of a loop over dims of both roles: each operand moves along it that moves along one of them. */
static dc_role united(dc_role a, dc_role b)
{
    return a == DC_ROLE_NONE || a == b ? b : DC_ROLE_BATCH;
}

/* Loops have the roles of the dims whose positions they make. */
static void set_by_dim(dc_kernel *k, const nest *loops, int rank, const dc_ix *pos,
                       const dc_role *role)
{
    for (int i = 0; i < loops->n; i++) {
        dc_axis *x = &k->axis.at[loops->axis[i]];
        for (int d = 0; d < rank; d++)
            if (dc_ix_uses(k, pos[d], loops->axis[i]))
                x->role = (uint8_t)united((dc_role)x->role, role[d]);
    }
}

void dc_lower_dot_roles(lowering *w, const dc_node *n, const nest *loops)
{
    const dc_dot d = dc_dot_of(w->fn, n);
    dc_role role[DC_MAX_RANK];
    for (int i = 0; i < n->rank; i++)
        role[i] = i < d.nbatch ? DC_ROLE_BATCH : i < d.nbatch + d.nfree[0] ? DC_ROLE_M : DC_ROLE_N;
    set_by_dim(w->k, loops, n->rank, w->out_pos, role);
}

/*
 * Do the windows of neighbouring positions overlap? Where zeros stand between the elements, which of these a position
 * sees depends on a division, and no window slides.
 */
static bool overlaps(const dc_conv_dim *d, int64_t positions, int64_t taps)
{
    if (positions == 1 || taps == 1)
        return false;
    const bool between = d->stride % d->dilate_in != 0 || d->dilate % d->dilate_in != 0;
    return !between && d->stride < d->dilate * taps && d->dilate < d->stride * positions;
}

static int64_t taps_of(const lowering *w, const dc_node *n, const dc_conv *c, int i)
{
    return dc_node_at(w->fn, n->in[1])->dim[c->kernel[2 + i]];
}

void dc_lower_conv_roles(lowering *w, const dc_node *n, const nest *loops)
{
    const dc_conv c = dc_conv_of(n);
    const bool grouped = c.groups * c.batch_groups > 1;
    dc_role role[DC_MAX_RANK + 1];
    int at[DC_CONV_AXES] = {0};
    for (int i = 0; i < c.n + 2; i++)
        at[i] = (int)c.out[i] + (grouped && c.out[i] >= c.out[1]);
    if (grouped)
        role[c.out[1]] = DC_ROLE_BATCH;
    role[at[0]] = DC_ROLE_M;
    role[at[1]] = DC_ROLE_N;
    for (int i = 0; i < c.n; i++)
        role[at[2 + i]] = overlaps(&c.dim[i], n->dim[c.out[2 + i]], taps_of(w, n, &c, i))
                              ? DC_ROLE_SPATIAL
                              : DC_ROLE_M;
    set_by_dim(w->k, loops, n->rank + grouped, w->loop, role);
}

/* Of the terms --------------------------------------------------------------------------------- */

void dc_lower_term_roles(lowering *w, const dc_node *n, const nest *loops, const dc_ix *pos)
{
    for (uint32_t a = 0; a < w->k->axis.n && loops->n == 0; a++) /* each sum is of one term */
        w->k->axis.at[a].role = DC_ROLE_NONE;
    dc_lower_set_role(w->k, loops, DC_ROLE_K);
    if (n->op != DC_OP_CONV)
        return;
    const dc_conv c = dc_conv_of(n);
    for (int i = 0; i < c.n; i++) {
        const int64_t dim = c.kernel[2 + i]; /* the channel of the result is none of the terms */
        const dc_ix tap = pos[dim - (dim > c.kernel[0])];
        if (!overlaps(&c.dim[i], n->dim[c.out[2 + i]], taps_of(w, n, &c, i)))
            continue;
        for (int r = 0; r < loops->n; r++)
            if (dc_ix_uses(w->k, tap, loops->axis[r]))
                w->k->axis.at[loops->axis[r]].role = DC_ROLE_WINDOW;
    }
}

/* Operands ------------------------------------------------------------------------------------- */

/* Is the operand a load that moves along the axis by a constant distance? */
static bool slides(const dc_kernel *k, dc_vx operand, uint32_t axis)
{
    const dc_vx load = dc_operand_load(k, operand);
    bool affine = true;
    return load != 0 && dc_ix_stride(k, k->vx.at[load].at, axis, &affine) != 0 && affine;
}

/* The role of a loop, given the operands: without one that does not move along it. */
static dc_role settled(lowering *w, const dc_vx operand[2], uint32_t axis)
{
    const dc_kernel *k = w->k;
    const dc_role role = (dc_role)k->axis.at[axis].role;
    if (role == DC_ROLE_K || role == DC_ROLE_WINDOW)
        return role == DC_ROLE_WINDOW && slides(k, operand[0], axis) ? role : DC_ROLE_K;
    if (role == DC_ROLE_SPATIAL && slides(k, operand[0], axis))
        return role;
    const bool both = role == DC_ROLE_BATCH;
    const bool left = (both || dc_role_is_rows(role)) &&
                      dc_operand_moves(k, &w->j->scratch, operand[0], axis);
    const bool right =
        (both || role == DC_ROLE_N) && dc_operand_moves(k, &w->j->scratch, operand[1], axis);
    return left && right ? DC_ROLE_BATCH : left ? DC_ROLE_M : right ? DC_ROLE_N : DC_ROLE_NONE;
}

/* The role of a loop where the right operand is the left one. */
static dc_role swapped(dc_role role)
{
    return dc_role_is_rows(role)    ? DC_ROLE_N
           : role == DC_ROLE_N      ? DC_ROLE_M
           : role == DC_ROLE_WINDOW ? DC_ROLE_K
                                    : role;
}

void dc_lower_settle_roles(lowering *w, const dc_vx operand[2])
{
    dc_kernel *k = w->k;
    dc_role last = DC_ROLE_NONE;
    for (uint32_t a = 0; a < k->axis.n; a++) {
        const dc_role role = settled(w, operand, a);
        k->axis.at[a].role = (uint8_t)role;
        last = a == w->last ? role : last;
    }
    for (uint32_t a = 0; a < k->axis.n && last != DC_ROLE_N; a++) {
        const dc_role role = (dc_role)k->axis.at[a].role;
        const bool is_m = dc_role_is_rows(last);
        k->axis.at[a].role = (uint8_t)(is_m ? swapped(role) : DC_ROLE_NONE);
    }
}
