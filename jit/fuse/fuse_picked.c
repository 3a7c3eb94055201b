/*
 * Values that are gathered by positions, in the kernel of a contraction (jit/fuse/fuse.c). Integers that index a gather are
 * loaded before any test, so an axis along which they lie is cut by its divisors only: a contraction of 23 rows would have tiles
 * of one. Such a value is stored, by a kernel without a contraction: the gather itself, or, where several kernels would
 * compute it, what is made of it there, so that each of them reads one value.
 *
 * In a sum, what one integer picks may be a tile or more, as a page of keys: then their axis is none of those that are cut. What
 * is read behind a product lies along its rows and columns, which are.
 */
#include "jit/fuse/fuse_impl.h"

uint8_t dc_fuse_picks(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    const int64_t picks = n->op == DC_OP_GATHER ? dc_node_count(fuse_at(w, n->in[1])) : 1;
    if (picks < 2)
        return PICKS_NONE;
    return w->groups || dc_node_count(n) < DC_TUNE_PICKED_TILE * picks ? PICKS_LITTLE : PICKS_TILES;
}

/* Operands of a contraction are stored, so a gather in its kernel stands behind it. */
bool dc_fuse_hinders_in(const fusing *w, dc_ref r, uint32_t g)
{
    const fuse_group *x = &w->group.at[g];
    const bool behind = x->g.attention == NULL &&
                        (x->g.nreduce == 0 || fuse_class(w, x->g.reduce[0]) == DC_CLASS_CON);
    return x->never_row_wise && w->node[r].picks >= (behind ? PICKS_TILES : PICKS_LITTLE);
}

/* Does any of the kernels that read r, directly or by values that several compute, do it like that? */
static bool hinders_some(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const uint32_t home = w->node[u].home;
        if (home == NO_HOME || w->counted[u] == w->counted[0])
            continue;
        w->counted[u] = w->counted[0];
        if (home == MANY_HOME ? hinders_some(w, u) : dc_fuse_hinders_in(w, r, home))
            return true;
    }
    return false;
}

bool dc_fuse_hinders_tiles(const fusing *w, dc_ref r, uint32_t home)
{
    if (w->node[r].picks == PICKS_NONE || home == NO_HOME)
        return false;
    if (home < MANY_HOME) /* what is made of it there is no more than itself */
        return fuse_at(w, r)->op == DC_OP_GATHER && dc_fuse_hinders_in(w, r, home);
    w->counted[0]++; /* no node has that place: the number of this search */
    return hinders_some(w, r);
}
