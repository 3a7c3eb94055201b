/*
 * What is left to say of each group once every node has a place (jit/fuse/fuse.c): what it reads, what it
 * has to wait for, and, if it is row-wise, which values have a buffer for the row.
 *
 * Buffered are values that several parts of a row's computation read (each reduction is a part, storing
 * is the last) and that cost more to recompute than to read back. Of a chain of operations that the same
 * parts need, only the last value is buffered.
 */
#include "jit/fuse/fuse_impl.h"

#include <stdlib.h>
#include <string.h>

typedef struct gathering {
    fusing *w;
    uint32_t g;
    DC_VEC(dc_ref) in, after;
} gathering;

static void gather_after(gathering *v, dc_ref r);

/* A constant that is stored as a result is written into what reads it all the same. */
static bool is_elsewhere(const gathering *v, dc_ref r)
{
    const fusing *w = v->w;
    const bool is_written = w->level > 0 && w->is_result[r] && fuse_at(w, r)->op == DC_OP_CONST;
    return w->node[r].stored && w->node[r].home != v->g && !is_written;
}

static void gather(gathering *v, dc_ref r)
{
    fusing *w = v->w;
    if (w->seen[r] == w->search)
        return;
    w->seen[r] = w->search;
    if (fuse_is_param(w, r) || is_elsewhere(v, r)) {
        DC_PUSH_IN(w->a, v->in, r);
        return;
    }
    for (int i = 0; i < fuse_reads(w, r); i++)
        gather(v, fuse_at(w, r)->in[i]);
    if (fuse_at(w, r)->op == DC_OP_BARRIER)
        gather_after(v, fuse_at(w, r)->in[1]);
}

/* What has to be there before r, as far as it has memory. */
static void gather_after(gathering *v, dc_ref r)
{
    fusing *w = v->w;
    if (w->seen_after[r] == w->search || fuse_is_param(w, r))
        return;
    w->seen_after[r] = w->search;
    if (w->node[r].stored && w->node[r].home != v->g) {
        DC_PUSH_IN(w->a, v->after, r);
        return;
    }
    for (int i = 0; i < fuse_reads(w, r); i++)
        gather_after(v, fuse_at(w, r)->in[i]);
}

/* Of a loop or a branch: its operands, each of which is in memory. */
static void gather_operands(gathering *v, dc_ref control)
{
    fusing *w = v->w;
    const dc_node *n = fuse_at(w, control);
    for (int i = 0; i < n->nin; i++)
        if (w->seen[n->in[i]] != w->search) {
            w->seen[n->in[i]] = w->search;
            DC_PUSH_IN(w->a, v->in, n->in[i]);
        }
}

static void gather_end(gathering *v, dc_ref end)
{
    if (end == 0 || v->w->seen[end] == v->w->search)
        return;
    v->w->seen[end] = v->w->search;
    DC_PUSH_IN(v->w->a, v->in, end);
}

static void gather_ends_of(gathering *v, dc_ref r)
{
    for (int axis = 0; axis < fuse_at(v->w, r)->rank; axis++)
        gather_end(v, dc_needs_end(&v->w->needs, r, axis));
}

/* The numbers that what is stored, what is added up and what a scatter changes end at. */
static void gather_ends(gathering *v, const dc_group *x)
{
    const dc_needs *needs = &v->w->needs;
    for (uint32_t i = 0; needs->end != NULL && i < x->nout; i++)
        gather_ends_of(v, x->out[i]);
    for (uint32_t i = 0; needs->end != NULL && i < x->nreduce; i++)
        for (int n = 0; fuse_is_scatter(v->w, x->reduce[i]) && n < 3; n++)
            gather_ends_of(v, fuse_at(v->w, x->reduce[i])->in[n]);
    for (uint32_t i = 0; needs->end != NULL && i < x->nreduce; i++)
        for (int n = 0; dc_needs_term_number(needs, x->reduce[i], n) != 0; n++)
            gather_end(v, dc_needs_term_number(needs, x->reduce[i], n));
}

void dc_fuse_find_inputs_of(fusing *w, uint32_t g)
{
    gathering v = {.w = w, .g = g};
    dc_group *x = &w->group.at[g].g;
    w->search++;
    if (x->control != 0)
        gather_operands(&v, x->control);
    for (uint32_t i = 0; i < x->nout && x->control == 0; i++)
        gather(&v, x->out[i]);
    if (x->control == 0 && !x->is_join)
        gather_ends(&v, x);
    x->in = v.in.at;
    x->nin = v.in.n;
    x->after = v.after.at;
    x->nafter = v.after.n;
}

void dc_fuse_find_inputs(fusing *w)
{
    for (uint32_t g = 0; g < w->group.n; g++)
        dc_fuse_find_inputs_of(w, g);
}

/* Kept values -------------------------------------------------------------------------------- */

typedef struct parts {
    fusing *w;
    uint32_t g;
    uint32_t *mask; /* by ref: bit i: reduction i needs it; the bit after the last: storing */
    uint32_t *cost; /* by ref: operations that reading back would save */
    bool *buffered;
    dc_choice *choice; /* by ref: times is 0 where there is none */
    DC_VEC(dc_ref) met;
} parts;

static parts *new_parts(fusing *w)
{
    dc_arena *a = w->a;
    parts *p = DC_NEW(a, parts);
    p->w = w;
    p->mask = DC_NEW_ARRAY(a, uint32_t, w->fn->node.n);
    p->cost = DC_NEW_ARRAY(a, uint32_t, w->fn->node.n);
    p->buffered = DC_NEW_ARRAY(a, bool, w->fn->node.n);
    p->choice = DC_NEW_ARRAY(a, dc_choice, w->fn->node.n);
    return p;
}

/* Another group begins. */
static void forget_parts(parts *p, uint32_t g)
{
    for (uint32_t i = 0; i < p->met.n; i++) {
        const dc_ref r = p->met.at[i];
        p->mask[r] = p->cost[r] = 0;
        p->buffered[r] = false;
        p->choice[r] = (dc_choice){0};
    }
    p->met.n = 0;
    p->g = g;
}

static int by_ref(const void *x, const void *y)
{
    const dc_ref a = *(const dc_ref *)x, b = *(const dc_ref *)y;
    return (a > b) - (a < b);
}

static bool is_inside(const parts *p, dc_ref r)
{
    const fuse_node *x = &p->w->node[r];
    return !fuse_is_param(p->w, r) && !(x->stored && x->home != p->g);
}

/* r is computed for part `bit`. */
static void need(parts *p, dc_ref r, uint32_t bit)
{
    const dc_op_class c = fuse_class(p->w, r);
    if (!is_inside(p, r) || (p->mask[r] & bit) != 0)
        return;
    if (p->mask[r] == 0)
        DC_PUSH_IN(p->w->a, p->met, r);
    p->mask[r] |= bit;
    for (int i = 0; i < fuse_reads(p->w, r) && c != DC_CLASS_RED; i++)
        need(p, fuse_at(p->w, r)->in[i], bit);
}

/* Is there a use of r, inside the group, that is not just the next step of the same chain? */
static bool ends_chain(const parts *p, dc_ref r)
{
    const fuse_node *x = &p->w->node[r];
    uint32_t uses = 0;
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = p->w->user[x->first_user + i];
        if (p->mask[u] == 0)
            continue;
        if (++uses > 1 || p->mask[u] != p->mask[r] || fuse_class(p->w, u) != DC_CLASS_EW)
            return true;
    }
    return uses == 0;
}

static void weigh(parts *p, dc_ref r)
{
    const fuse_group *x = &p->w->group.at[p->g];
    const int64_t count = dc_node_count(fuse_at(p->w, r));
    const dc_op_class c = fuse_class(p->w, r);
    if (c == DC_CLASS_RED)
        return;
    uint32_t cost = dc_fuse_ops(p->w, r);
    for (int i = 0; i < fuse_reads(p->w, r); i++) {
        const dc_ref o = fuse_at(p->w, r)->in[i];
        const bool of_row = fuse_at(p->w, r)->op == DC_OP_EXPAND &&
                            dc_node_count(fuse_at(p->w, o)) == x->rows; /* computed once for it */
        if (p->mask[o] != 0 && !p->buffered[o] && !of_row)
            cost += p->cost[o];
    }
    p->cost[r] = cost < DC_TUNE_GROUP_OPS ? cost : DC_TUNE_GROUP_OPS;
    int64_t times = 0;
    for (uint32_t mask = p->mask[r]; mask != 0; mask &= mask - 1)
        times++;
    if (times < 2 || c != DC_CLASS_EW || p->w->node[r].map != FUSE_BLOCKED ||
        p->w->node[r].home != p->g || (count != x->rows && count != x->points) || !ends_chain(p, r))
        return;
    p->choice[r] = dc_fuse_choice_of(p->w, r, DC_CHOICE_ROW, times, cost);
    p->buffered[r] = p->choice[r].stored;
}

static void find_buffered(parts *p, uint32_t g)
{
    fusing *w = p->w;
    uint32_t members = 0;
    for (dc_ref m = w->group.at[g].member; m != 0; m = w->node[m].next_member)
        members++;
    w->group.at[g].g.buffered = DC_NEW_ARRAY(w->a, dc_ref, members);
    dc_choice *choice = DC_NEW_ARRAY(w->a, dc_choice, members);
    uint32_t nchoice = 0;
    dc_group *x = &w->group.at[g].g;
    forget_parts(p, g);
    for (uint32_t i = 0; i < x->nreduce; i++)
        need(p, fuse_at(w, x->reduce[i])->in[0], 1u << i);
    for (uint32_t i = 0; i < x->nout; i++)
        need(p, dc_group_is_partial(x, i) ? fuse_at(w, x->out[i])->in[0] : x->out[i],
             1u << x->nreduce);
    int64_t bytes = 0;
    const int64_t columns = w->group.at[g].points / w->group.at[g].rows;
    if (p->met.n > 1)
        qsort(p->met.at, p->met.n, sizeof *p->met.at, by_ref);
    for (uint32_t i = 0; i < p->met.n; i++) {
        const dc_ref r = p->met.at[i];
        weigh(p, r);
        const bool point = dc_node_count(fuse_at(w, r)) != w->group.at[g].rows;
        const int64_t more = (point ? columns : 1) * 8;
        const char *but = point && columns < DC_TUNE_LONG_ROW ? "short rows are side by side"
                          : bytes + more > DC_TUNE_ROW_BYTES  ? "there is no more room beside a row"
                                                              : NULL;
        p->choice[r].but = p->buffered[r] ? but : NULL;
        p->buffered[r] = p->choice[r].stored = p->buffered[r] && but == NULL;
        if (p->choice[r].times > 1 && !w->node[r].stored)
            choice[nchoice++] = p->choice[r];
        if (!p->buffered[r])
            continue;
        bytes += more;
        x->buffered[x->nbuffered++] = r;
    }
    for (uint32_t i = 0; i < nchoice; i++)
        dc_fuse_record(w, choice[i]);
}

static bool stores_points(const fusing *w, uint32_t g)
{
    const fuse_group *x = &w->group.at[g];
    for (uint32_t i = 0; i < x->g.nout; i++)
        if (dc_node_count(fuse_at(w, x->g.out[i])) != x->rows)
            return true;
    return false;
}

void dc_fuse_close(fusing *w)
{
    dc_fuse_find_inputs(w);
    dc_fuse_merge(w);
    parts *p = new_parts(w);
    for (uint32_t g = 0; g < w->group.n; g++) {
        fuse_group *x = &w->group.at[g];
        x->g.row_wise =
            x->rows > 0 && (x->g.nreduce != 1 || x->g.npartial > 0 || stores_points(w, g));
        if (x->g.row_wise)
            find_buffered(p, g);
    }
    dc_fuse_settle_choices(w);
}
