/*
 * Messages to other ranks happen in the order of the function, between what the function computes before them and after.
 * A kernel that computes both what a message waits for and something that stands behind it would hold the message up: of a
 * pipeline's stage, the gradient of one part until those of all others are there.
 *
 * So a value that a message waits for shares no kernel with what stands behind the first message that waits for it. What
 * it waits for is what it sends and what is settled before it (DC_OP_ARRIVED). The same holds for what a script has written
 * that ranks do together: kernels differ from rank to rank, the order of exchanges does not.
 */
#include "core/ir/exchange.h"
#include "jit/fuse/fuse_impl.h"

static bool waits(const fusing *w, dc_ref r)
{
    return fuse_at(w, r)->op == DC_OP_ARRIVED || dc_exchange_is_ordered(w->fn, fuse_at(w, r));
}

/* By which of the exchanges, however many values are between: the first that is made of r, the last that r is made of. */
static void find_reach(fusing *w)
{
    w->leads_to = DC_NEW_ARRAY(w->a, dc_ref, w->fn->node.n);
    w->comes_of = DC_NEW_ARRAY(w->a, dc_ref, w->fn->node.n);
    for (dc_ref u = 1; u < w->fn->node.n; u++)
        for (int i = 0; w->live[u] && i < fuse_reads(w, u); i++) {
            const dc_ref r = fuse_at(w, u)->in[i];
            const dc_ref of = waits(w, r) ? r : w->comes_of[r];
            w->comes_of[u] = of > w->comes_of[u] ? of : w->comes_of[u];
        }
    for (dc_ref u = w->fn->node.n; u-- > 1;)
        for (int i = 0; w->live[u] && i < fuse_reads(w, u); i++) {
            const dc_ref to = waits(w, u) ? u : w->leads_to[u];
            dc_ref *first = &w->leads_to[fuse_at(w, u)->in[i]];
            *first = to != 0 && (*first == 0 || to < *first) ? to : *first;
        }
}

void dc_fuse_find_awaited(fusing *w)
{
    for (dc_ref u = w->fn->node.n; u-- > 1;) {
        if (!w->live[u] || !waits(w, u))
            continue;
        if (w->awaited == NULL)
            w->awaited = DC_NEW_ARRAY(w->a, dc_ref, w->fn->node.n);
        for (int i = 0; i < fuse_reads(w, u); i++)
            w->awaited[fuse_at(w, u)->in[i]] = u;
    }
    if (w->awaited != NULL)
        find_reach(w);
}

/* Would r and m in one kernel be needed by an exchange that comes before one they wait for? */
static bool turns_round(const fusing *w, dc_ref r, dc_ref m)
{
    return (w->leads_to[r] != 0 && w->comes_of[m] >= w->leads_to[r]) ||
           (w->leads_to[m] != 0 && w->comes_of[r] >= w->leads_to[m]);
}

bool dc_fuse_delays(const fusing *w, dc_ref r, uint32_t g)
{
    if (w->awaited == NULL)
        return false;
    for (dc_ref m = w->group.at[g].member; m != 0; m = w->node[m].next_member)
        if ((w->awaited[r] != 0 && m > w->awaited[r]) || turns_round(w, r, m))
            return true;
    return false;
}

bool dc_fuse_delays_outputs(const fusing *w, uint32_t g, uint32_t h)
{
    const dc_group *x = &w->group.at[g].g;
    for (uint32_t i = 0; w->awaited != NULL && i < x->nout; i++)
        if (dc_fuse_delays(w, x->out[i], h))
            return true;
    return false;
}
