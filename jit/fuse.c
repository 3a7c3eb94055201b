/*
 * Fusion (jit/fuse.h): decides which nodes get memory and which kernel stores them.
 *
 * One walk from users to producers. When a node is met, every user of it has a home: the group it
 * is computed in (or several), and whether it stands there at the group's own position ("aligned")
 * or at another one (behind a movement, or under the reduction). Then
 *
 *   - a node that needs memory joins the group of a user where it would be aligned, if the shapes
 *     agree and the group waits for no other that reads the node; else it starts a group;
 *   - a reduction or product is computed inside a group where all its users are aligned, if that
 *     group has none yet; else it gets memory and a group of its own;
 *   - other nodes are computed in place where they are used, unless a guard objects.
 *
 * Guards, each against a measured way to be slow:
 *
 *   - several homes: recomputing is allowed for few cheap operations only (RECOMPUTE_OPS);
 *   - several positions of one group, such as the taps of a stencil: the same;
 *   - under an expand, where a row would be computed again for each row of the result: the same;
 *   - large groups: after GROUP_OPS operations, each counted once per position, another begins; after
 *     fewer where the device takes fewer buffers than a kernel would have;
 *   - operands of dot are read many times: only movement and casts are folded into them, and the
 *     right-hand side, which is read as vectors, is always plain memory.
 *
 * Why not more (row-wise groups with several reductions): see ARCHITECTURE.md, "Limits".
 */
#include "jit/fuse.h"

#include <string.h>

enum { RECOMPUTE_OPS = 8, GROUP_OPS = 256 };

#define NO_HOME   UINT32_MAX
#define MANY_HOME (UINT32_MAX - 1)

typedef struct fuse_node {
    uint32_t home;      /* group, NO_HOME (dead), or MANY_HOME */
    bool aligned;       /* at the group's own position in every use */
    bool memory;        /* stored */
    bool left, right;   /* of class SAME: an operand of dot, as whose its own operand counts */
    uint32_t ops;       /* element-wise operations repeated when it is computed again */
    bool costly;        /* one of them is COSTLY */
    bool on_reduction;  /* a reduction or product stands below, with only aligned steps between */
    uint32_t places;    /* at most so many positions of its group where it is computed */
    dc_ref position;    /* which: those of the group (0), or those that this node asks for */
    dc_ref next_member; /* of its group, 0 none */
    uint32_t first_user, nuser;
} fuse_node;

typedef struct fusing {
    dc_job *j;
    dc_arena *a;
    const dc_func *fn;
    fuse_node *node;
    dc_ref *user; /* users of node r: user[first_user .. first_user + nuser - 1] */
    bool *live, *is_result;
    dc_ref *asked; /* by ref: the node that was last asked for at these positions */
    DC_VEC(dc_group) group;
    DC_VEC(uint32_t) size; /* by group: operations times positions */
    DC_VEC(dc_ref) member; /* by group: first of its nodes, stored or not */
    int level;
    uint32_t most; /* operations of a group */
} fusing;

static const dc_node *at(const fusing *w, dc_ref r)
{
    return dc_node_at(w->fn, r);
}

static dc_op_class class_of(const fusing *w, dc_ref r)
{
    return (dc_op_class)dc_op_row_of(at(w, r)->op)->cls;
}

/* A scatter has a kernel of its own, with nothing behind it. */
static bool is_scatter(const fusing *w, dc_ref r)
{
    return class_of(w, r) == DC_CLASS_IDX && at(w, r)->op != DC_OP_GATHER;
}

static bool is_reduction(const fusing *w, dc_ref r)
{
    const dc_op_class c = class_of(w, r);
    return c == DC_CLASS_RED || c == DC_CLASS_CON || is_scatter(w, r);
}

/* At the position of its result: element-wise operations, and values under another name. */
static bool is_aligned(const fusing *w, dc_ref r)
{
    const dc_op_class c = class_of(w, r);
    return c == DC_CLASS_EW || c == DC_CLASS_SAME;
}

/* Operands that are read. */
static int reads(const fusing *w, dc_ref r)
{
    return class_of(w, r) == DC_CLASS_SAME ? 1 : at(w, r)->nin;
}

static bool is_param(const fusing *w, dc_ref r)
{
    return at(w, r)->op == DC_OP_PARAM;
}

static void find_live(fusing *w)
{
    for (uint32_t i = 0; i < w->fn->result.n; i++)
        w->live[w->fn->result.at[i]] = true;
    for (dc_ref r = w->fn->node.n; r-- > 1;)
        for (int i = 0; w->live[r] && i < reads(w, r); i++)
            w->live[at(w, r)->in[i]] = true;
}

/* Users -------------------------------------------------------------------------------------- */

static void list_users(fusing *w)
{
    const uint32_t n = w->fn->node.n;
    uint32_t total = 0;
    for (dc_ref r = 1; r < n; r++)
        for (int i = 0; w->live[r] && i < reads(w, r); i++, total++)
            w->node[at(w, r)->in[i]].nuser++;
    w->user = DC_NEW_ARRAY(w->a, dc_ref, total + 1);
    uint32_t next = 0;
    for (dc_ref r = 1; r < n; r++) {
        w->node[r].first_user = next;
        next += w->node[r].nuser;
        w->node[r].nuser = 0;
    }
    for (dc_ref r = 1; r < n; r++)
        for (int i = 0; w->live[r] && i < reads(w, r); i++) {
            fuse_node *x = &w->node[at(w, r)->in[i]];
            w->user[x->first_user + x->nuser++] = r;
        }
}

/*
 * What computing r again would repeat, down to memory; constants and iota are free. Where memory is
 * likely (needs_memory decides later, from the other end) the count starts again.
 */
static void measure(fusing *w)
{
    for (dc_ref r = 1; r < w->fn->node.n; r++) {
        fuse_node *x = &w->node[r];
        if (!w->live[r] || class_of(w, r) == DC_CLASS_SRC || is_reduction(w, r))
            continue;
        const bool ew = class_of(w, r) == DC_CLASS_EW;
        x->ops = ew;
        x->costly = ew && (dc_op_row_of(at(w, r)->op)->flags & DC_OPF_COSTLY) != 0;
        for (int i = 0; i < reads(w, r); i++) {
            const dc_ref o = at(w, r)->in[i];
            const fuse_node *in = &w->node[o];
            const bool stored =
                w->is_result[o] ||
                (in->nuser > 1 && (in->costly || in->on_reduction || in->ops > RECOMPUTE_OPS));
            x->on_reduction |=
                is_aligned(w, r) && (is_reduction(w, o) || (in->on_reduction && !stored));
            if (stored || (i > 0 && o == at(w, r)->in[i - 1]))
                continue;
            x->ops += in->ops;
            x->costly |= in->costly;
        }
        if (x->ops > GROUP_OPS) /* of expressions that share a lot this counts too many */
            x->ops = GROUP_OPS;
    }
}

/* Homes -------------------------------------------------------------------------------------- */

typedef struct demand { /* what all users together ask of a node */
    uint32_t home, places;
    dc_ref position; /* see fuse_node; the node itself where users ask for different ones */
    bool aligned;
    bool dot_left, dot_right, expanded;
} demand;

static demand demand_of(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    demand d = {.home = NO_HOME, .aligned = true};
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const fuse_node *y = &w->node[u];
        const bool ew = is_aligned(w, u);
        const dc_ref position = ew ? y->position : u;
        d.home = d.home == NO_HOME || d.home == y->home ? y->home : MANY_HOME;
        d.aligned &= y->aligned && ew;
        d.expanded |= at(w, u)->op == DC_OP_EXPAND;
        if (w->asked[position] != r) {
            w->asked[position] = r;
            d.position = d.places == 0 ? position : r;
            d.places += y->places;
        }
        d.dot_left |= y->left;
        d.dot_right |= y->right;
        if (class_of(w, u) == DC_CLASS_CON) {
            d.dot_left |= at(w, u)->in[0] == r;
            d.dot_right |= at(w, u)->in[1] == r;
        }
    }
    return d;
}

static bool same_shape(const fusing *w, dc_ref a, dc_ref b)
{
    const dc_node *x = at(w, a), *y = at(w, b);
    return x->rank == y->rank &&
           (x->rank == 0 || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) == 0);
}

/* Is r, or what it is made of, only movement and casts over memory? */
static bool plain_read(const fusing *w, dc_ref r)
{
    for (;;) {
        if (class_of(w, r) == DC_CLASS_SRC)
            return true;
        if (at(w, r)->op != DC_OP_CAST && class_of(w, r) != DC_CLASS_MOV &&
            class_of(w, r) != DC_CLASS_SAME)
            return false;
        if (at(w, r)->op == DC_OP_PAD)
            return false;
        r = at(w, r)->in[0];
        if (w->node[r].memory || is_reduction(w, r))
            return true;
    }
}

/* Is there no room in a group for an operation at so many positions? */
static bool is_full(const fusing *w, uint32_t g, uint32_t places)
{
    return g < MANY_HOME && w->size.at[g] + places > w->most;
}

static bool needs_memory(const fusing *w, dc_ref r, const demand *d)
{
    const fuse_node *x = &w->node[r];
    if (w->level == 0 || w->is_result[r] || is_scatter(w, r))
        return true;
    if (class_of(w, r) == DC_CLASS_SAME)
        return false;
    if (class_of(w, r) == DC_CLASS_SRC)
        return d->dot_right;
    if (d->dot_right)
        return true;
    if (d->dot_left && !plain_read(w, r))
        return true;
    const bool much = x->ops > RECOMPUTE_OPS && dc_node_count(at(w, r)) > 1;
    if (d->expanded && (x->costly || much))
        return true;
    if (d->home == MANY_HOME)
        return x->costly || x->on_reduction || x->ops > RECOMPUTE_OPS;
    return (d->places > 1 && (x->costly || much)) || is_full(w, d->home, d->places);
}

/* Cycles ------------------------------------------------------------------------------------- */

typedef struct walk {
    const fusing *w;
    dc_ref target;
    uint32_t g;
    bool *node, *group; /* seen */
} walk;

static bool read_by_group(walk *v, uint32_t h);

/* Nodes older than the target have no home yet and cannot read it. */
static bool read_below(walk *v, dc_ref from)
{
    const fusing *w = v->w;
    const uint32_t home = w->node[from].home;
    if (from < v->target || v->node[from])
        return false;
    v->node[from] = true;
    if (home < MANY_HOME)
        return home != v->g && read_by_group(v, home);
    for (int i = 0; i < reads(w, from); i++)
        if (at(w, from)->in[i] == v->target || read_below(v, at(w, from)->in[i]))
            return true;
    return false;
}

static bool read_by_group(walk *v, uint32_t h)
{
    const fusing *w = v->w;
    if (v->group[h])
        return false;
    v->group[h] = true;
    for (dc_ref m = w->member.at[h]; m != 0; m = w->node[m].next_member)
        for (int i = 0; i < reads(w, m); i++) {
            const dc_ref in = at(w, m)->in[i];
            if ((in == v->target && h != v->g) || read_below(v, in))
                return true;
        }
    return false;
}

/*
 * May r be computed in group g? Not if g waits for another group that reads r. A group waits for
 * all groups that any of its nodes reads: two groups can wait for each other though no node does.
 */
static bool would_cycle(const fusing *w, dc_ref r, uint32_t g)
{
    const dc_mark mark = dc_arena_mark(&w->j->scratch);
    walk v = {.w = w, .target = r, .g = g};
    v.node = DC_NEW_ARRAY(&w->j->scratch, bool, w->fn->node.n);
    v.group = DC_NEW_ARRAY(&w->j->scratch, bool, w->group.n);
    const bool found = read_by_group(&v, g);
    dc_arena_rewind(&w->j->scratch, mark);
    return found;
}

/* Assignment --------------------------------------------------------------------------------- */

static uint32_t new_group(fusing *w, dc_ref r)
{
    dc_group g = {0};
    g.out = DC_NEW_ARRAY(w->a, dc_ref, 1);
    g.out[g.nout++] = r;
    DC_PUSH_IN(w->a, w->group, g);
    DC_PUSH_IN(w->a, w->size, 0);
    DC_PUSH_IN(w->a, w->member, 0);
    return w->group.n - 1;
}

static void add_output(fusing *w, uint32_t g, dc_ref r)
{
    dc_group *x = &w->group.at[g];
    dc_ref *out = DC_NEW_ARRAY(w->a, dc_ref, x->nout + 1);
    memcpy(out, x->out, x->nout * sizeof *out);
    out[x->nout++] = r;
    x->out = out;
}

/* A group of a user in which a stored node r would be one more aligned output. */
static uint32_t group_to_join(const fusing *w, dc_ref r)
{
    const fuse_node *x = &w->node[r];
    if (w->level == 0)
        return NO_HOME;
    for (uint32_t i = 0; i < x->nuser; i++) {
        const dc_ref u = w->user[x->first_user + i];
        const fuse_node *y = &w->node[u];
        if (y->home >= MANY_HOME || !y->aligned || !is_aligned(w, u))
            continue;
        const dc_group *g = &w->group.at[y->home];
        if (!same_shape(w, g->out[0], r) || (is_reduction(w, r) && g->reduce != 0) ||
            is_full(w, y->home, 1))
            continue;
        /* Every use inside that group must be aligned, or the group would read its own output. */
        bool fits = true;
        for (uint32_t k = 0; k < x->nuser; k++) {
            const dc_ref v = w->user[x->first_user + k];
            const bool inside = w->node[v].home == y->home || w->node[v].home == MANY_HOME;
            fits &=
                !inside || (w->node[v].home != MANY_HOME && w->node[v].aligned && is_aligned(w, v));
        }
        if (fits && !would_cycle(w, r, y->home))
            return y->home;
    }
    return NO_HOME;
}

/*
 * Outputs that no output uses, but that read the same operands at the same positions (first
 * moments, second moments): r joins the group of a sibling of the same shape.
 */
static uint32_t sibling_to_join(const fusing *w, dc_ref r)
{
    if (w->level == 0 || !is_aligned(w, r))
        return NO_HOME;
    for (int i = 0; i < reads(w, r); i++) {
        const fuse_node *in = &w->node[at(w, r)->in[i]];
        for (uint32_t k = 0; k < in->nuser; k++) {
            const dc_ref v = w->user[in->first_user + k];
            const fuse_node *y = &w->node[v];
            if (v <= r || y->home >= MANY_HOME || !y->aligned || !is_aligned(w, v))
                continue;
            if (same_shape(w, w->group.at[y->home].out[0], r) && w->node[r].nuser == 0 &&
                !is_full(w, y->home, 1) && !would_cycle(w, r, y->home))
                return y->home;
        }
    }
    return NO_HOME;
}

static void settle(fusing *w, dc_ref r, uint32_t home)
{
    fuse_node *x = &w->node[r];
    x->home = home;
    if (home >= MANY_HOME)
        return;
    w->size.at[home] += x->places;
    x->next_member = w->member.at[home];
    w->member.at[home] = r;
}

static void place(fusing *w, dc_ref r)
{
    fuse_node *x = &w->node[r];
    const demand d = demand_of(w, r);
    const bool reduction = is_reduction(w, r);

    if (is_param(w, r))
        return;
    x->places = 1;
    if (reduction && !needs_memory(w, r, &d) && d.home < MANY_HOME && d.aligned &&
        w->group.at[d.home].reduce == 0 && same_shape(w, r, w->group.at[d.home].out[0])) {
        w->group.at[d.home].reduce = r;
        settle(w, r, d.home);
        x->aligned = false; /* its operand stands under the reduction */
        return;
    }
    if (!reduction && !needs_memory(w, r, &d)) {
        x->left = class_of(w, r) == DC_CLASS_SAME && d.dot_left;
        x->right = class_of(w, r) == DC_CLASS_SAME && d.dot_right;
        x->aligned = d.aligned;
        x->places = d.places;
        x->position = d.position;
        settle(w, r, d.home);
        return;
    }
    x->memory = true;
    uint32_t home = is_scatter(w, r) ? NO_HOME : group_to_join(w, r);
    if (home == NO_HOME)
        home = sibling_to_join(w, r);
    if (home == NO_HOME)
        home = new_group(w, r);
    else
        add_output(w, home, r);
    settle(w, r, home);
    x->aligned = !reduction;
    if (reduction)
        w->group.at[home].reduce = r;
}

/* Inputs ------------------------------------------------------------------------------------- */

typedef struct gathering {
    fusing *w;
    uint32_t g;
    uint32_t *seen, *seen_after; /* by ref: g + 1 when visited for group g */
    DC_VEC(dc_ref) in, after;
} gathering;

static void gather_after(gathering *v, dc_ref r);

static void gather(gathering *v, dc_ref r)
{
    fusing *w = v->w;
    if (v->seen[r] == v->g + 1)
        return;
    v->seen[r] = v->g + 1;
    const bool elsewhere = w->node[r].memory && w->node[r].home != v->g;
    if (is_param(w, r) || elsewhere) {
        DC_PUSH_IN(w->a, v->in, r);
        return;
    }
    for (int i = 0; i < reads(w, r); i++)
        gather(v, at(w, r)->in[i]);
    if (at(w, r)->op == DC_OP_BARRIER)
        gather_after(v, at(w, r)->in[1]);
}

/* What has to be there before r, as far as it has memory. */
static void gather_after(gathering *v, dc_ref r)
{
    fusing *w = v->w;
    if (v->seen_after[r] == v->g + 1 || is_param(w, r))
        return;
    v->seen_after[r] = v->g + 1;
    if (w->node[r].memory && w->node[r].home != v->g) {
        DC_PUSH_IN(w->a, v->after, r);
        return;
    }
    for (int i = 0; i < reads(w, r); i++)
        gather_after(v, at(w, r)->in[i]);
}

static void find_inputs(fusing *w)
{
    uint32_t *seen = DC_NEW_ARRAY(w->a, uint32_t, w->fn->node.n);
    uint32_t *seen_after = DC_NEW_ARRAY(w->a, uint32_t, w->fn->node.n);
    for (uint32_t g = 0; g < w->group.n; g++) {
        gathering v = {.w = w, .g = g, .seen = seen, .seen_after = seen_after};
        for (uint32_t i = 0; i < w->group.at[g].nout; i++)
            gather(&v, w->group.at[g].out[i]);
        w->group.at[g].in = v.in.at;
        w->group.at[g].nin = v.in.n;
        w->group.at[g].after = v.after.at;
        w->group.at[g].nafter = v.after.n;
    }
}

static void fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, uint32_t most,
                 dc_groups *out)
{
    fusing w = {.j = j, .a = a, .fn = fn, .level = level, .most = most};
    w.node = DC_NEW_ARRAY(a, fuse_node, fn->node.n);
    w.live = DC_NEW_ARRAY(a, bool, fn->node.n);
    w.is_result = DC_NEW_ARRAY(a, bool, fn->node.n);
    w.asked = DC_NEW_ARRAY(a, dc_ref, fn->node.n);
    for (uint32_t i = 0; i < fn->result.n; i++)
        w.is_result[fn->result.at[i]] = true;
    for (dc_ref r = 0; r < fn->node.n; r++)
        w.node[r].home = NO_HOME;
    find_live(&w);
    list_users(&w);
    measure(&w);
    for (dc_ref r = fn->node.n; r-- > 1;)
        if (w.live[r])
            place(&w, r);
    find_inputs(&w);

    *out = (dc_groups){.fn = fn, .n = w.group.n, .at = w.group.at};
    out->group_of = DC_NEW_ARRAY(a, uint32_t, fn->node.n);
    for (dc_ref r = 0; r < fn->node.n; r++)
        out->group_of[r] = w.node[r].memory ? w.node[r].home : DC_NO_GROUP;
}

static uint32_t most_buffers(const dc_groups *g)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->at[i].nout + g->at[i].nin > most)
            most = g->at[i].nout + g->at[i].nin;
    return most;
}

/* Fewer operations to a group until no group has too many buffers. */
dc_status dc_fuse_within(dc_job *j, dc_arena *a, const dc_func *fn, int level, uint32_t buffers,
                         dc_groups *out)
{
    uint32_t most = GROUP_OPS;
    fuse(j, a, fn, level, most, out);
    while (buffers > 0 && most_buffers(out) > buffers && most > 1) {
        most /= 2;
        fuse(j, a, fn, level, most, out);
    }
    return DC_OK;
}

dc_status dc_fuse(dc_job *j, dc_arena *a, const dc_func *fn, int level, dc_groups *out)
{
    return dc_fuse_within(j, a, fn, level, 0, out);
}
