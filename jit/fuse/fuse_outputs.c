/*
 * Which group a stored node joins as one more output (jit/fuse/fuse.c): that of a user that reads it
 * under a blocked map, or that of a sibling. Never one that waits for another group that
 * reads the node.
 */
#include "jit/fuse/fuse_impl.h"

#include <string.h>

/* Cycles ------------------------------------------------------------------------------------- */

/*
 * May r be computed in group g? Not if g waits for another group that reads r. A group waits for all groups that any of
 * its nodes reads: two groups can wait for each other though no node does.
 *
 * Groups wait for each other in no cycle, so from a group that g waits for nothing leads back to g, and whether r is
 * read there is the same whichever g asks: what was found is kept for all groups that r may join. Nodes older than r
 * have no home yet and cannot read it.
 */
typedef struct finding {
    uint32_t number; /* of the search that found it */
    bool reads;      /* r, itself or by what it waits for */
} finding;

typedef struct fuse_walk {
    const fusing *w;
    dc_ref target;
    uint32_t search, question; /* of a target; of a group that it may join: both are numbered */
    finding *node, *group;     /* no more groups than nodes */
    uint32_t *own;             /* by node: the question of the group itself that saw it */
} walk;

struct fuse_walk *dc_fuse_walk_new(dc_arena *a, uint32_t nodes)
{
    walk *v = DC_NEW(a, walk);
    v->node = DC_NEW_ARRAY(a, finding, nodes);
    v->group = DC_NEW_ARRAY(a, finding, nodes);
    v->own = DC_NEW_ARRAY(a, uint32_t, nodes);
    return v;
}

static bool group_reads(walk *v, uint32_t h);

/* Does what `from` is, computed for a group that was waited for, read the target? */
static bool leads_there(walk *v, dc_ref from)
{
    const fusing *w = v->w;
    finding *x = &v->node[from];
    if (from <= v->target || x->number == v->search)
        return from == v->target || (from > v->target && x->reads);
    x->number = v->search;
    x->reads = false;
    if (w->node[from].home < MANY_HOME)
        return x->reads = group_reads(v, w->node[from].home);
    for (int i = 0; i < fuse_reads(w, from) && !x->reads; i++)
        x->reads = leads_there(v, fuse_at(w, from)->in[i]);
    return x->reads;
}

static bool group_reads(walk *v, uint32_t h)
{
    const fusing *w = v->w;
    finding *x = &v->group[h];
    if (x->number == v->search)
        return x->reads;
    *x = (finding){v->search, false};
    for (dc_ref m = w->group.at[h].member; m != 0 && !x->reads; m = w->node[m].next_member)
        for (int i = 0; i < fuse_reads(w, m) && !x->reads; i++)
            x->reads = leads_there(v, fuse_at(w, m)->in[i]);
    return x->reads;
}

/* The same of what `from` is within group g, whose own reads are none to wait for. */
static bool leads_out(walk *v, dc_ref from, uint32_t g)
{
    const fusing *w = v->w;
    const uint32_t home = w->node[from].home;
    if (from <= v->target || v->own[from] == v->question)
        return false;
    v->own[from] = v->question;
    if (home < MANY_HOME)
        return home != g && group_reads(v, home);
    for (int i = 0; i < fuse_reads(w, from); i++)
        if (leads_out(v, fuse_at(w, from)->in[i], g))
            return true;
    return false;
}

static void begin_search(const fusing *w, dc_ref r)
{
    walk *v = w->walk;
    v->w = w;
    v->target = r;
    v->search++;
}

static bool would_cycle(const fusing *w, uint32_t g)
{
    walk *v = w->walk;
    v->question++;
    for (dc_ref m = w->group.at[g].member; m != 0; m = w->node[m].next_member)
        for (int i = 0; i < fuse_reads(w, m); i++)
            if (leads_out(v, fuse_at(w, m)->in[i], g))
                return true;
    return false;
}

/* Fit ---------------------------------------------------------------------------------------- */

bool dc_fuse_same_shape(const fusing *w, dc_ref a, dc_ref b)
{
    const dc_node *x = fuse_at(w, a), *y = fuse_at(w, b);
    return x->rank == y->rank &&
           (x->rank == 0 || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) == 0);
}

bool dc_fuse_sets_part(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    return n->op == DC_OP_WHERE && fuse_at(w, n->in[0])->op == DC_OP_PAD;
}

/* The expand that repeats user u of a value for each row, in group g; 0 if there is none. */
static dc_ref expand_of(const fusing *w, dc_ref u, uint32_t g)
{
    const fuse_node *x = &w->node[u];
    if (fuse_at(w, u)->op == DC_OP_EXPAND)
        return u;
    for (uint32_t i = 0; i < x->nuser && fuse_at(w, u)->op == DC_OP_RESHAPE; i++) {
        const dc_ref v = w->user[x->first_user + i];
        if (fuse_at(w, v)->op == DC_OP_EXPAND && w->node[v].home == g)
            return v;
    }
    return 0;
}

/* Has r an element for each output, row or point of the group; or is it for each row that user u
 * repeats, so that the group may be split by those? */
static bool fits(const fusing *w, dc_ref u, dc_ref r, uint32_t g, fuse_rows *rows)
{
    const fuse_group *x = &w->group.at[g];
    const int64_t count = dc_node_count(fuse_at(w, r));
    if (fuse_is_reduction(w, r))
        return dc_fuse_refuses_reduce(w, g, r) == NULL;
    if (x->rows > 0)
        return count == x->rows || (count == x->points && !w->node[r].on_product);
    if (dc_fuse_same_shape(w, x->g.out[0], r))
        return true;
    const dc_ref expand = expand_of(w, u, g);
    if (expand != 0 && w->node[r].on_reduction && !w->node[r].on_product &&
        dc_fuse_along_columns(w, expand, rows) && rows->rows == count &&
        dc_fuse_may_be_row_wise(w, g, rows))
        return true;
    rows->rows = 0;
    return false;
}

/* Under which maps group g reads r: none, blocked ones alone, others too. */
typedef enum { READ_NOT, READ_BLOCKED, READ_OTHERWISE } reading;

static reading read_in(const fusing *w, dc_ref r, uint32_t g)
{
    const fuse_node *x = &w->node[r];
    reading all = READ_NOT;
    for (uint32_t k = 0; k < x->nuser; k++) {
        const dc_ref u = w->user[x->first_user + k];
        const fuse_node *y = &w->node[u];
        reading here = READ_NOT;
        if (y->home == MANY_HOME)
            here = read_in(w, u, g);
        else if (y->home == g)
            here = y->map == FUSE_BLOCKED ? READ_BLOCKED : READ_OTHERWISE;
        if (here == READ_OTHERWISE || (here == READ_BLOCKED && !dc_fuse_keeps_blocked(w, u)))
            return READ_OTHERWISE;
        if (here == READ_BLOCKED)
            all = READ_BLOCKED;
    }
    return all;
}

static bool may_join(const fusing *w, dc_ref r, uint32_t g)
{
    if (dc_fuse_hinders_in(w, r, g))
        return false;
    if (fuse_is_part(w, r) && fuse_has_pieces(w, &w->group.at[g], DC_TUNE_GROUP_PIECES))
        return false;
    if (w->group.at[g].g.attention != NULL || dc_fuse_delays(w, r, g))
        return false;
    return !dc_fuse_is_full(w, g, 1) && read_in(w, r, g) != READ_OTHERWISE && !would_cycle(w, g);
}

/* The group of a user of `of`, which is r or a value that is computed in several groups from it. */
static uint32_t users_group(const fusing *w, dc_ref r, dc_ref of, fuse_rows *rows)
{
    const fuse_node *x = &w->node[of];
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const fuse_node *y = &w->node[u];
        uint32_t g = NO_HOME;
        *rows = (fuse_rows){0};
        if (y->home == NO_HOME || !dc_fuse_keeps_blocked(w, u))
            continue;
        if (y->home == MANY_HOME)
            g = users_group(w, r, u, rows);
        else if (y->map == FUSE_BLOCKED && fits(w, u, r, y->home, rows) && may_join(w, r, y->home))
            g = y->home;
        if (g != NO_HOME)
            return g;
    }
    *rows = (fuse_rows){0};
    return NO_HOME;
}

/* A value for each row, when something else in group g is made of an operand of it. */
static bool is_of_row(const fusing *w, dc_ref r, uint32_t g)
{
    return w->group.at[g].rows > 0 && !w->node[r].on_product &&
           w->group.at[g].rows == dc_node_count(fuse_at(w, r));
}

bool dc_fuse_is_memory(const fusing *w, dc_ref r)
{
    const dc_node *n = fuse_at(w, r);
    while (n->op == DC_OP_RESHAPE || n->op == DC_OP_CAST || n->op == DC_OP_EXPAND) {
        const dc_node *of = fuse_at(w, n->in[0]);
        if (dc_node_count(of) < dc_node_count(n))
            return false;
        n = of;
    }
    return n->op != DC_OP_CONST && n->op != DC_OP_IOTA;
}

bool dc_fuse_has_streams(const fusing *w, uint32_t g, uint32_t more)
{
    const fuse_group *x = &w->group.at[g];
    return x->points >= DC_TUNE_STREAM_ELEMENTS && x->g.nout + more > DC_TUNE_GROUP_STREAMS;
}

/*
 * Outputs that read the same operands at the same positions as others: r joins the group of a
 * sibling of the same shape (first moments, second moments), if no output uses it and what they share is read from memory,
 * or of one that is row-wise and has the operand for each row (the logarithm of a sum beside the quotients).
 */
static uint32_t siblings_group(const fusing *w, dc_ref r)
{
    if (!fuse_keeps_map(w, r))
        return NO_HOME;
    for (int i = 0; i < fuse_reads(w, r); i++) {
        const dc_ref o = fuse_at(w, r)->in[i];
        const fuse_node *in = &w->node[o];
        const bool memory = dc_fuse_is_memory(w, o);
        for (uint32_t k = 0; k < in->nuser; k++) {
            const dc_ref v = w->user[in->first_user + k];
            const fuse_node *y = &w->node[v];
            if (v <= r || y->home >= MANY_HOME || !fuse_reads_blocked(w, v) ||
                dc_fuse_sets_part(w, v))
                continue;
            const bool twin = memory && fuse_keeps_map(w, v) &&
                              (w->node[r].nuser == 0 || fuse_is_part(w, r)) &&
                              dc_fuse_same_shape(w, w->group.at[y->home].g.out[0], r) &&
                              !dc_fuse_has_streams(w, y->home, 1);
            if ((twin || is_of_row(w, r, y->home)) && may_join(w, r, y->home))
                return y->home;
        }
    }
    return NO_HOME;
}

uint32_t dc_fuse_group_to_join(const fusing *w, dc_ref r, fuse_rows *rows)
{
    *rows = (fuse_rows){0};
    if (w->level == 0)
        return NO_HOME;
    if (dc_fuse_sets_part(w, r) && fuse_at(w, fuse_at(w, r)->in[2])->op == DC_OP_PARAM)
        return NO_HOME;
    begin_search(w, r);
    const uint32_t g = users_group(w, r, r, rows);
    return g != NO_HOME ? g : siblings_group(w, r);
}
