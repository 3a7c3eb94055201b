/*
 * Groups that no use connects, but that read the same values in the same loops (jit/fuse/fuse.c): sums of
 * two things over the same rows (the gradients of layer norm's weight and bias), two results of one
 * large operand. One kernel then reads what they share once. Numbers of rank 0 that do not depend
 * on each other (step counts, bias corrections) are one kernel as well. Two groups are merged only if
 * neither waits for the other, directly or by way of others.
 *
 * Then sums over rows become partial sums in the row-wise group of those rows (jit/fuse/fuse_row_blocks.c). They may wait for
 * it directly: a row that they read is computed before they read it.
 */
#include "jit/fuse/fuse_impl.h"

#include <string.h>

/* Readers of one value, up to which they have been looked at. */
typedef struct cursor {
    uint32_t list, next;
} cursor;

typedef struct merging {
    fusing *w;
    uint32_t *level; /* by group: more than that of any group it waits for */
    uint32_t *seen, *done,
        search;  /* by group: the last search that saw it, that was through with it */
    bool circle; /* there is a cycle: levels say nothing */
    /* Groups that read a value, ascending, with and without reductions apart; one list is of numbers. */
    uint32_t nlist;
    uint32_t *first, *reader;
    uint32_t *skip;  /* by reader: itself, or one behind it that may still be there */
    uint32_t *least; /* by reader: the size of the smallest from there to the end of its list */
    DC_VEC(cursor) at;
} merging;

static uint32_t home_of(const fusing *w, dc_ref r)
{
    return w->node[r].stored ? w->node[r].home : NO_HOME;
}

/* What group x waits for: its i-th input, or what has to be there before. */
static uint32_t waited_for(const fusing *w, const dc_group *x, uint32_t i)
{
    return home_of(w, i < x->nin ? x->in[i] : x->after[i - x->nin]);
}

/* ---- levels ---------------------------------------------------------------------------------- */

typedef struct visit {
    uint32_t g, next; /* what it waits for and has not been looked at */
} visit;

/* Edges of barriers are soft and may close a cycle: then levels say nothing. */
static void find_level(merging *m, uint32_t root)
{
    DC_VEC(visit) todo = {0};
    dc_arena *a = &m->w->j->scratch;
    m->seen[root] = m->search;
    DC_PUSH_IN(a, todo, ((visit){root, 0}));
    while (todo.n > 0) {
        visit *v = &todo.at[todo.n - 1];
        const dc_group *x = &m->w->group.at[v->g].g;
        if (v->next == x->nin + x->nafter) {
            const uint32_t level = m->level[v->g] + 1;
            m->done[v->g] = m->search;
            todo.n--;
            if (todo.n > 0 && level > m->level[todo.at[todo.n - 1].g])
                m->level[todo.at[todo.n - 1].g] = level;
            continue;
        }
        const uint32_t h = waited_for(m->w, x, v->next++);
        if (h == NO_HOME || h == v->g)
            continue;
        if (m->seen[h] == m->search) {
            m->circle |= m->done[h] != m->search;
            if (m->level[h] + 1 > m->level[v->g])
                m->level[v->g] = m->level[h] + 1;
            continue;
        }
        m->seen[h] = m->search;
        DC_PUSH_IN(a, todo, ((visit){h, 0}));
    }
}

static void find_levels(merging *m)
{
    const dc_mark mark = dc_arena_mark(&m->w->j->scratch);
    m->search++;
    m->circle = false;
    memset(m->level, 0, m->w->group.n * sizeof *m->level);
    for (uint32_t g = 0; g < m->w->group.n; g++)
        if (m->seen[g] != m->search)
            find_level(m, g);
    dc_arena_rewind(&m->w->j->scratch, mark);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Does group g read, directly or not, an output of group `from`? */
static bool waits_for(merging *m, uint32_t g, uint32_t from)
{
    const dc_group *x = &m->w->group.at[g].g;
    if (g == from)
        return true;
    if (m->seen[g] == m->search || (m->level[g] <= m->level[from] && !m->circle))
        return false;
    m->seen[g] = m->search;
    for (uint32_t i = 0; i < x->nin + x->nafter; i++) {
        const uint32_t h = waited_for(m->w, x, i);
        if (h != NO_HOME && waits_for(m, h, from))
            return true;
    }
    return false;
}

static bool independent(merging *m, uint32_t g, uint32_t h)
{
    m->search++;
    if (waits_for(m, g, h))
        return false;
    m->search++;
    return !waits_for(m, h, g);
}

/* Does group h wait for g by way of others, or g for h at all? */
static bool comes_between(merging *m, uint32_t g, uint32_t h)
{
    const dc_group *y = &m->w->group.at[h].g;
    m->search++;
    if (waits_for(m, g, h))
        return true;
    m->search++;
    for (uint32_t i = 0; i < y->nin + y->nafter; i++) {
        const uint32_t on = waited_for(m->w, y, i);
        if (on != NO_HOME && (on != g || i >= y->nin) && waits_for(m, on, g))
            return true;
    }
    return false;
}

/* ---- what may be merged ---------------------------------------------------------------------- */

static bool has_product(const fusing *w, const fuse_group *x)
{
    return x->g.nreduce > 0 && fuse_class(w, x->g.reduce[0]) != DC_CLASS_RED;
}

static bool same_loops(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    if (x->g.is_join || y->g.is_join || x->g.control != 0 || y->g.control != 0 ||
        has_product(w, x) || has_product(w, y) || dc_fuse_sets_part(w, x->g.out[0]) ||
        dc_fuse_sets_part(w, y->g.out[0]) || (x->g.nreduce == 0) != (y->g.nreduce == 0) ||
        x->rows != y->rows || x->points != y->points ||
        !dc_fuse_same_shape(w, x->g.out[0], y->g.out[0]))
        return false;
    return x->g.nreduce == 0 || x->rows > 0 || dc_fuse_same_axes(w, x->g.reduce[0], y->g.reduce[0]);
}

/* Elements of an input that has one for each iteration of the loops. */
static int64_t much_of(const fusing *w, const fuse_group *x)
{
    return x->g.nreduce == 0 ? x->points
                             : dc_node_count(fuse_at(w, fuse_at(w, x->g.reduce[0])->in[0]));
}

/*
 * Is an input of so many elements worth a common kernel? On thread groups a kernel that does the work of many has fewer threads,
 * and registers for all of it; of an input that is far larger than the loops, each of them reads another part.
 */
static bool is_much(const fusing *w, dc_ref in, int64_t much)
{
    const int64_t n = dc_node_count(fuse_at(w, in));
    return n >= much && (!w->groups || n / DC_TUNE_SIBLING_SHARE <= much);
}

static bool share_much(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    const int64_t much = much_of(w, x);
    for (uint32_t i = 0; i < x->g.nin; i++)
        for (uint32_t k = 0; k < y->g.nin; k++)
            if (x->g.in[i] == y->g.in[k] && is_much(w, x->g.in[i], much))
                return true;
    return false;
}

/*
 * A transposing copy, cast perhaps. It meets an element that others read at another iteration, so nothing
 * is shared; and where the others overwrite what they read, it would keep them from doing that in place.
 */
static bool is_transposing(const fusing *w, const fuse_group *x)
{
    dc_ref r = x->g.out[0];
    while (fuse_at(w, r)->op == DC_OP_CAST && !w->node[fuse_at(w, r)->in[0]].stored)
        r = fuse_at(w, r)->in[0];
    const dc_node *n = fuse_at(w, r);
    return x->g.nout == 1 && n->op == DC_OP_PERMUTE && n->attr[n->rank - 1] != n->rank - 1;
}

static bool is_number(const fusing *w, const fuse_group *x)
{
    return x->g.nreduce == 0 && fuse_at(w, x->g.out[0])->rank == 0;
}

/* Of one dtype: what a check of integers needs must not wait for a cell that is written. */
static bool are_numbers(const fusing *w, const fuse_group *x, const fuse_group *y)
{
    return is_number(w, x) && is_number(w, y) &&
           fuse_at(w, x->g.out[0])->dtype == fuse_at(w, y->g.out[0])->dtype;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The list of those that read r and are like x. */
static uint32_t list_of(const fuse_group *x, dc_ref r)
{
    return 2 * r + (x->g.nreduce > 0);
}

/* The i-th list that group x is in, i below nin + 1: 0 is of numbers, the last one is never looked at. */
static uint32_t found_in(const merging *m, uint32_t g, uint32_t i)
{
    const fuse_group *x = &m->w->group.at[g];
    return i < x->g.nin ? list_of(x, x->g.in[i]) : is_number(m->w, x) ? 0 : m->nlist - 1;
}

/* From what groups read before anything is merged. */
static void list_readers(merging *m)
{
    const fusing *w = m->w;
    dc_arena *a = w->a;
    const uint32_t n = m->nlist = 2 * w->fn->node.n + 1;
    m->first = DC_NEW_ARRAY(a, uint32_t, n + 1);
    for (uint32_t g = 0; g < w->group.n; g++)
        for (uint32_t i = 0; i <= w->group.at[g].g.nin; i++)
            m->first[found_in(m, g, i) + 1]++;
    for (uint32_t r = 0; r < n; r++)
        m->first[r + 1] += m->first[r];
    uint32_t *next = DC_NEW_ARRAY(a, uint32_t, n);
    memcpy(next, m->first, n * sizeof *next);
    m->reader = DC_NEW_ARRAY(a, uint32_t, m->first[n]);
    m->skip = DC_NEW_ARRAY(a, uint32_t, m->first[n] + 1);
    for (uint32_t g = 0; g < w->group.n; g++)
        for (uint32_t i = 0; i <= w->group.at[g].g.nin; i++)
            m->reader[next[found_in(m, g, i)]++] = g;
    for (uint32_t k = 0; k <= m->first[n]; k++)
        m->skip[k] = k;
    m->least = DC_NEW_ARRAY(a, uint32_t, m->first[n]);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = m->first[r + 1], least = UINT32_MAX; k-- > m->first[r];) {
            const uint32_t size = w->group.at[m->reader[k]].size;
            m->least[k] = least = size < least ? size : least;
        }
}

/* The first reader from k on that has not become part of another group. */
static uint32_t still_there(merging *m, uint32_t k)
{
    const uint32_t end = m->first[m->nlist];
    while (k < end) {
        if (m->skip[k] == k && m->w->group.at[m->reader[k]].g.nout > 0)
            break;
        if (m->skip[k] == k)
            m->skip[k] = k + 1;
        m->skip[k] = m->skip[m->skip[k]];
        k = m->skip[k];
    }
    return k;
}

static void look_at(merging *m, uint32_t list)
{
    for (uint32_t i = 0; i < m->at.n; i++)
        if (m->at.at[i].list == list)
            return;
    DC_PUSH_IN(m->w->a, m->at, ((cursor){list, m->first[list]}));
}

/* Lists in which groups are that group g might take in: of what it reads and is large enough. */
static void look_at_all(merging *m, uint32_t g)
{
    const fuse_group *x = &m->w->group.at[g];
    const int64_t much = much_of(m->w, x);
    for (uint32_t i = 0; i < x->g.nin; i++)
        if (is_much(m->w, x->g.in[i], much))
            look_at(m, list_of(x, x->g.in[i]));
    if (is_number(m->w, x))
        look_at(m, 0);
}

/* From group h on, the next that is in one of these lists, where some are not too large; NO_HOME: none. */
static uint32_t candidate_from(merging *m, uint32_t h, uint32_t room)
{
    uint32_t best = NO_HOME;
    for (uint32_t i = 0; i < m->at.n; i++) {
        cursor *c = &m->at.at[i];
        const uint32_t end = m->first[c->list + 1];
        uint32_t low = c->next, high = end;
        while (low < high) { /* they ascend */
            const uint32_t k = low + (high - low) / 2;
            if (m->reader[k] < h)
                low = k + 1;
            else
                high = k;
        }
        c->next = still_there(m, low);
        if (c->next < end && m->least[c->next] <= room && m->reader[c->next] < best)
            best = m->reader[c->next];
    }
    return best;
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

/* No other group fits in. */
static bool is_full(const fusing *w, const fuse_group *x)
{
    return x->size >= w->most || x->g.nreduce >= DC_TUNE_GROUP_REDUCTIONS;
}

static bool may_merge(merging *m, uint32_t g, uint32_t h)
{
    const fusing *w = m->w;
    const fuse_group *x = &w->group.at[g], *y = &w->group.at[h];
    return x->g.attention == NULL && y->g.attention == NULL && same_loops(w, x, y) &&
           x->g.nreduce + y->g.nreduce <= DC_TUNE_GROUP_REDUCTIONS &&
           !(fuse_has_pieces(w, x, 1) && fuse_has_pieces(w, y, 1)) &&
           is_transposing(w, x) == is_transposing(w, y) && !dc_fuse_has_streams(w, g, y->g.nout) &&
           x->size + y->size <= w->most && (share_much(w, x, y) || are_numbers(w, x, y)) &&
           !dc_fuse_delays_outputs(w, g, h) && !dc_fuse_delays_outputs(w, h, g) &&
           independent(m, g, h);
}

/* What the others read stays as it is: they read outputs of h, by whatever kernel they are stored. */
static void take_in(merging *m, uint32_t g, uint32_t h)
{
    const bool level = m->level[g] == m->level[h];
    merge(m->w, g, h);
    dc_fuse_find_inputs_of(m->w, g);
    dc_fuse_find_inputs_of(m->w, h);
    if (!level)
        find_levels(m);
}

static bool merge_alike(merging *m)
{
    fusing *w = m->w;
    bool any = false;
    for (uint32_t g = 0; g < w->group.n && w->level > 0; g++) {
        const fuse_group *x = &w->group.at[g];
        m->at.n = 0;
        if (x->g.nout > 0)
            look_at_all(m, g);
        for (uint32_t h = g; !is_full(w, x);) {
            h = candidate_from(m, h + 1, w->most - x->size);
            if (h == NO_HOME)
                break;
            if (!may_merge(m, g, h))
                continue;
            take_in(m, g, h);
            look_at_all(m, g);
            any = true;
        }
    }
    return any;
}

static bool may_take_partials(merging *m, uint32_t g, uint32_t h)
{
    const fusing *w = m->w;
    const fuse_group *x = &w->group.at[g], *y = &w->group.at[h];
    return y->g.nout > 0 && x->size + y->size <= w->most && dc_fuse_may_take_partials(w, g, h) &&
           !dc_fuse_delays_outputs(w, g, h) && !dc_fuse_delays_outputs(w, h, g) &&
           !comes_between(m, g, h);
}

/* Lists of the sums of what g reads or stores for each point, from the first one on. */
static void look_at_points(merging *m, uint32_t g)
{
    const fuse_group *x = &m->w->group.at[g];
    for (uint32_t i = 0; i < x->g.nin + x->g.nout; i++) {
        const dc_ref r = i < x->g.nin ? x->g.in[i] : x->g.out[i - x->g.nin];
        if (dc_node_count(fuse_at(m->w, r)) >= x->points)
            look_at(m, 2 * r + 1);
    }
}

/* Takes in what sums group g may; are there any? */
static bool take_partials(merging *m, uint32_t g)
{
    fusing *w = m->w;
    bool any = false;
    m->at.n = 0;
    look_at_points(m, g);
    for (uint32_t h = candidate_from(m, 0, UINT32_MAX); h != NO_HOME;
         h = candidate_from(m, h + 1, UINT32_MAX)) {
        if (!may_take_partials(m, g, h))
            continue;
        dc_fuse_add_partials(w, g, h);
        take_in(m, g, h);
        if (dc_fuse_drop_outputs(w, g) > 0)
            dc_fuse_find_inputs(w);
        look_at_points(m, g);
        any = true;
    }
    return any;
}

static bool take_all_partials(merging *m)
{
    const fusing *w = m->w;
    bool any = false;
    if (!w->row_blocks)
        return false;
    list_readers(m); /* anew: groups read what those that they took in had read */
    for (uint32_t g = 0; g < w->group.n; g++)
        if (w->group.at[g].g.nout > 0 && dc_fuse_may_take_any(w, g))
            any |= take_partials(m, g);
    return any;
}

void dc_fuse_merge(fusing *w)
{
    merging m = {.w = w};
    if (w->level == 0)
        return;
    m.level = DC_NEW_ARRAY(w->a, uint32_t, w->group.n);
    m.seen = DC_NEW_ARRAY(w->a, uint32_t, w->group.n);
    m.done = DC_NEW_ARRAY(w->a, uint32_t, w->group.n);
    find_levels(&m);
    list_readers(&m);
    const bool alike = merge_alike(&m);
    if (take_all_partials(&m) || alike) {
        remove_empty(w);
        dc_fuse_find_inputs(w);
    }
}
