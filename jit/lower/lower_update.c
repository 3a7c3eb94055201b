/*
 * A part of a value set, in the memory of that value: the part alone is stored. The form is the one of a:put,
 * where(mask, v, a), whose mask is a padded block. Where that is no constant, as in a put of rows whose number is known when
 * the function runs, elements of the block that are not set are stored as they are.
 */
#include "jit/lower/lower_impl.h"

/* What says where the part lies: the pad of a mask that holds in a block alone; or NULL. */
static const dc_node *mask_of(const dc_func *fn, dc_ref r)
{
    const dc_node *n = dc_node_at(fn, r);
    return n->op == DC_OP_PAD && n->attr[2 * n->rank] == 0 ? n : NULL;
}

dc_ref dc_lower_put_in(const dc_groups *groups, uint32_t index)
{
    const dc_group *g = &groups->at[index];
    const dc_node *n = dc_node_at(groups->fn, g->out[0]);
    if (g->nout != 1 || g->nreduce > 0 || g->row_wise || n->op != DC_OP_WHERE ||
        mask_of(groups->fn, n->in[0]) == NULL)
        return 0;
    for (uint32_t i = 0; i < g->nin; i++)
        if (g->in[i] == n->in[2])
            return n->in[2];
    return 0;
}

void dc_lower_put(lowering *w, bool flat)
{
    dc_kernel *k = w->k;
    const dc_node *n = dc_node_at(w->fn, w->group->out[0]), *mask = mask_of(w->fn, n->in[0]);
    const dc_node *block = dc_node_at(w->fn, mask->in[0]);
    const int64_t *lo = mask->attr, *step = mask->attr + mask->rank;
    const dc_dtype t = (dc_dtype)n->dtype;
    const bool all = block->op == DC_OP_CONST && block->attr[0] != 0;
    dc_ix pos[DC_MAX_RANK];
    nest loops = {0};
    dc_stmt *store = dc_stmt_set(k, 1);

    dc_lower_axes(w, flat, "i", block->rank, block->dim, false, &loops, pos);
    for (int i = 0; i < block->rank && !all; i++)
        dc_lower_limit_before(w, store, mask->in[0], i, pos[i]);
    for (int i = 0; i < block->rank; i++)
        pos[i] = dc_ix_add(k, dc_ix_mul(k, pos[i], step[i]), dc_ix_const(k, lo[i]));
    const dc_ix at = dc_lower_linear(k, n, pos);
    w->divides |= dc_lower_divides(k, at);
    const dc_vx v = dc_lower_node(w, all ? n->in[1] : w->group->out[0], pos);
    store->put[0] = (dc_put){0, at, dc_lower_as_stored(w, v, t)};
    k->root = dc_lower_wrap(k, &loops, store);
    k->buf.at[0].mode = DC_MODE_INOUT;
    k->bytes = 2 * dc_node_count(block) * (int64_t)dc_dtype_size(t);
}
