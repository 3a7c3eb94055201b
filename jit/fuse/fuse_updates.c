/*
 * Updates that are made of what they change, as in c:put(i, c:take(i) * 2): stored before, so that the change is done in
 * place and takes the time of what changes. In the kernel of the change they would be read from memory that it writes.
 */
#include "jit/fuse/fuse_impl.h"

/* What r is a changed value of; 0: it is none. */
static dc_ref changed_by(const fusing *w, dc_ref r)
{
    return fuse_is_scatter(w, r)     ? fuse_at(w, r)->in[0]
           : dc_fuse_sets_part(w, r) ? fuse_at(w, r)->in[2]
                                     : 0;
}

/* The value that changes, one after the other, began with. */
static dc_ref begin_of(const fusing *w, dc_ref r)
{
    r = dc_below_sizes(w->fn, r);
    for (dc_ref of; (of = changed_by(w, r)) != 0;)
        r = dc_below_sizes(w->fn, of);
    return r;
}

/* Does a kernel that computes r read `begin`, or what has been changed of it? */
static bool reads(fusing *w, dc_ref r, dc_ref begin)
{
    if (r == begin)
        return true;
    if (w->seen[r] == w->search || fuse_is_param(w, r))
        return false;
    w->seen[r] = w->search;
    if (fuse_is_reduction(w, r) || fuse_is_control(w, r))
        return changed_by(w, r) != 0 && begin_of(w, r) == begin;
    for (int i = 0; i < fuse_reads(w, r); i++)
        if (reads(w, fuse_at(w, r)->in[i], begin))
            return true;
    return false;
}

static bool is_small_reader(fusing *w, dc_ref r, dc_ref changed)
{
    w->search++;
    return dc_node_count(fuse_at(w, r)) < dc_node_count(fuse_at(w, changed)) &&
           reads(w, r, begin_of(w, changed));
}

bool dc_fuse_stores_update(fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        if (fuse_is_scatter(w, u) && fuse_at(w, u)->in[0] != r && is_small_reader(w, r, u))
            return true;
        for (uint32_t k = 0; fuse_at(w, u)->op == DC_OP_PAD && k < w->node[u].nuser; k++) {
            const dc_ref v = w->user[w->node[u].first_user + k];
            if (dc_fuse_sets_part(w, v) && fuse_at(w, v)->in[1] == u && is_small_reader(w, r, v))
                return true;
        }
    }
    return false;
}
