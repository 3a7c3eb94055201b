/*
 * Groups that no use connects, but that read the same values in the same loops (jit/fuse.c): sums of
 * two things over the same rows (the gradients of layer norm's weight and bias), two results of one
 * large operand. One kernel then reads what they share once. Numbers of rank 0 that do not depend
 * on each other (step counts, bias corrections) are one kernel as well. Two groups are merged only if
 * neither waits for the other, directly or by way of others.
 *
 * Then sums over rows become part of what goes by those rows (jit/fuse_bands.c). These may wait for it
 * directly: what they read of it is there when they want it.
 */
#include "jit/fuse_impl.h"

#include <string.h>

typedef struct merging {
    fusing *w;
    bool *seen; /* by group, of one search */
} merging;

static uint32_t home_of(const fusing *w, dc_ref r)
{
    return w->node[r].memory ? w->node[r].home : NO_HOME;
}

/* Does group g read, directly or not, an output of group `from`? */
static bool waits_for(merging *m, uint32_t g, uint32_t from)
{
    const dc_group *x = &m->w->group.at[g].g;
    if (g == from)
        return true;
    if (m->seen[g])
        return false;
    m->seen[g] = true;
    for (uint32_t i = 0; i < x->nin + x->nafter; i++) {
        const uint32_t h = home_of(m->w, i < x->nin ? x->in[i] : x->after[i - x->nin]);
        if (h != NO_HOME && waits_for(m, h, from))
            return true;
    }
    return false;
}

static bool apart(merging *m, uint32_t g, uint32_t h)
{
    memset(m->seen, 0, m->w->group.n * sizeof *m->seen);
    if (waits_for(m, g, h))
        return false;
    memset(m->seen, 0, m->w->group.n * sizeof *m->seen);
    return !waits_for(m, h, g);
}

/* Does group h wait for g by way of others, or g for h at all? */
static bool comes_between(merging *m, uint32_t g, uint32_t h)
{
    const dc_group *y = &m->w->group.at[h].g;
    memset(m->seen, 0, m->w->group.n * sizeof *m->seen);
    if (waits_for(m, g, h))
        return true;
    memset(m->seen, 0, m->w->group.n * sizeof *m->seen);
    for (uint32_t i = 0; i < y->nin + y->nafter; i++) {
        const uint32_t on = home_of(m->w, i < y->nin ? y->in[i] : y->after[i - y->nin]);
        if (on != NO_HOME && (on != g || i >= y->nin) && waits_for(m, on, g))
            return true;
    }
    return false;
}

static bool has_product(const fusing *w, const fuse_group *x)
{
    return x->g.nreduce > 0 && fuse_class(w, x->g.reduce[0]) != DC_CLASS_RED;
}

static bool same_loops(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    if (x->g.is_join || y->g.is_join || has_product(w, x) || has_product(w, y) || (x->g.nreduce == 0) != (y->g.nreduce == 0) ||
        x->rows != y->rows || x->points != y->points ||
        !dc_fuse_same_shape(w, x->g.out[0], y->g.out[0]))
        return false;
    return x->g.nreduce == 0 || x->rows > 0 || dc_fuse_same_axes(w, x->g.reduce[0], y->g.reduce[0]);
}

/* An input with an element for each iteration of the loops. */
static bool share_much(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    const int64_t much = x->g.nreduce == 0
                             ? x->points
                             : dc_node_count(fuse_at(w, fuse_at(w, x->g.reduce[0])->in[0]));
    for (uint32_t i = 0; i < x->g.nin; i++)
        for (uint32_t k = 0; k < y->g.nin; k++)
            if (x->g.in[i] == y->g.in[k] && dc_node_count(fuse_at(w, x->g.in[i])) >= much)
                return true;
    return false;
}

/* Of one dtype: what a check of integers needs must not wait for a cell that is written. */
static bool are_numbers(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    const dc_node *a = fuse_at(w, x->g.out[0]), *b = fuse_at(w, y->g.out[0]);
    return x->g.nreduce == 0 && a->rank == 0 && b->rank == 0 && a->dtype == b->dtype;
}

static dc_ref *joined(fusing *w, const dc_ref *a, uint32_t na, const dc_ref *b, uint32_t nb)
{
    dc_ref *out = DC_NEW_ARRAY(w->a, dc_ref, na + nb);
    for (uint32_t i = 0, k = 0; i + k < na + nb;) /* both ascend or descend, or order is free */
        if (k == nb || (i < na && a[i] < b[k])) {
            out[i + k] = a[i];
            i++;
        } else {
            out[i + k] = b[k];
            k++;
        }
    return out;
}

/* h becomes part of g and is left empty. */
static void merge(fusing *w, uint32_t g, uint32_t h)
{
    fuse_group *x = &w->group.at[g], *y = &w->group.at[h];
    x->g.out = joined(w, x->g.out, x->g.nout, y->g.out, y->g.nout);
    x->g.nout += y->g.nout;
    x->g.reduce = joined(w, x->g.reduce, x->g.nreduce, y->g.reduce, y->g.nreduce);
    x->g.nreduce += y->g.nreduce;
    x->size += y->size;
    dc_ref last = 0;
    for (dc_ref m = y->member; m != 0; m = w->node[m].next_member) {
        w->node[m].home = g;
        last = m;
    }
    w->node[last].next_member = x->member;
    x->member = y->member;
    y->g.nout = 0;
    y->member = 0;
}

static void remove_empty(fusing *w)
{
    uint32_t *to = DC_NEW_ARRAY(w->a, uint32_t, w->group.n), n = 0;
    for (uint32_t g = 0; g < w->group.n; g++) {
        to[g] = n;
        if (w->group.at[g].g.nout > 0)
            w->group.at[n++] = w->group.at[g];
    }
    w->group.n = n;
    for (dc_ref r = 0; r < w->fn->node.n; r++)
        if (w->node[r].home < MANY_HOME)
            w->node[r].home = to[w->node[r].home];
}

static bool merge_alike(merging *m)
{
    fusing *w = m->w;
    bool any = false;
    for (uint32_t g = 0; g < w->group.n && w->level > 0; g++)
        for (uint32_t h = g + 1; h < w->group.n; h++) {
            const fuse_group *x = &w->group.at[g], *y = &w->group.at[h];
            if (x->g.nout == 0 || y->g.nout == 0 || !same_loops(w, x, y) ||
                x->g.nreduce + y->g.nreduce > DC_FUSE_REDUCTIONS || x->size + y->size > w->most ||
                !(share_much(w, x, y) || are_numbers(w, x, y)) || !apart(m, g, h))
                continue;
            merge(w, g, h);
            any = true;
            dc_fuse_find_inputs(w);
        }
    return any;
}

static bool merge_sums(merging *m)
{
    fusing *w = m->w;
    bool any = false;
    for (uint32_t g = 0; g < w->group.n && w->level > 0; g++)
        for (uint32_t h = 0; h < w->group.n; h++) {
            const fuse_group *x = &w->group.at[g], *y = &w->group.at[h];
            if (x->g.nout == 0 || y->g.nout == 0 || x->size + y->size > w->most ||
                !dc_fuse_may_take_sums(w, g, h) || comes_between(m, g, h))
                continue;
            dc_fuse_note_sums(w, g, h);
            merge(w, g, h);
            dc_fuse_drop_outputs(w, g);
            any = true;
            dc_fuse_find_inputs(w);
        }
    return any;
}

void dc_fuse_merge(fusing *w)
{
    merging m = {.w = w, .seen = DC_NEW_ARRAY(w->a, bool, w->group.n)};
    const bool alike = merge_alike(&m);
    if (merge_sums(&m) || alike) {
        remove_empty(w);
        dc_fuse_find_inputs(w);
    }
}
