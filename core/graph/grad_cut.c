/*
 * What a loop keeps of each iteration for its gradient: a minimum cut.
 *
 * The network has an edge for each value of the forward pass, as wide as the bytes that keeping it takes, from the
 * place where it is computed to the place where it is there. Operands lead to what is made of them by edges without
 * a limit. Water comes from every value that must not be computed again, and leaves at every value that the backward
 * pass reads. The edges of a smallest cut are what is kept: everything behind them follows from them, the constants
 * and the xs without a banned operation. By flow and cut (Ford and Fulkerson) the smallest cut is found with the
 * largest flow, here with shortest augmenting paths (Edmonds and Karp).
 */
#include "core/graph/grad_loop.h"

typedef struct edge { /* edges e and e ^ 1 are the two directions of one */
    uint32_t from, to;
    int64_t room;  /* how much more can flow */
    uint32_t next; /* of the same `from`; 0 none */
} edge;

typedef struct net {
    dc_arena *a;
    uint32_t n;      /* vertices */
    uint32_t *first; /* by vertex; edges 0 and 1 are placeholders */
    DC_VEC(edge) edge;
    uint32_t *by, *queue; /* by vertex: the edge that a search came by */
} net;

enum { SOURCE = 0, SINK = 1 }; /* ref 0 has no vertices of its own */

static uint32_t computed(dc_ref r)
{
    return 2 * r;
}

static uint32_t there(dc_ref r)
{
    return 2 * r + 1;
}

static void add_edge(net *x, uint32_t from, uint32_t to, int64_t room)
{
    DC_PUSH_IN(x->a, x->edge, ((edge){from, to, room, x->first[from]}));
    x->first[from] = x->edge.n - 1;
    DC_PUSH_IN(x->a, x->edge, ((edge){to, from, 0, x->first[to]}));
    x->first[to] = x->edge.n - 1;
}

/* A shortest path with room from the source to the sink, in `by`. */
static bool find_path(net *x)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < x->n; v++)
        x->by[v] = 0;
    x->queue[tail++] = SOURCE;
    while (head < tail && x->by[SINK] == 0)
        for (uint32_t e = x->first[x->queue[head++]]; e != 0; e = x->edge.at[e].next) {
            const edge *d = &x->edge.at[e];
            if (d->room > 0 && d->to != SOURCE && x->by[d->to] == 0) {
                x->by[d->to] = e;
                x->queue[tail++] = d->to;
            }
        }
    return x->by[SINK] != 0;
}

static void fill_path(net *x)
{
    int64_t room = DC_CUT_NEVER;
    for (uint32_t v = SINK; v != SOURCE; v = x->edge.at[x->by[v]].from)
        room = dc_min_i64(room, x->edge.at[x->by[v]].room);
    DC_ASSERT(room < DC_CUT_NEVER, "a value can be neither kept nor computed again");
    for (uint32_t v = SINK; v != SOURCE; v = x->edge.at[x->by[v]].from) {
        x->edge.at[x->by[v]].room -= room;
        x->edge.at[x->by[v] ^ 1].room += room;
    }
}

/* by[v] != 0 or v is the sink: from here there is room to the sink. */
static void find_back(net *x)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < x->n; v++)
        x->by[v] = 0;
    x->queue[tail++] = SINK;
    while (head < tail)
        for (uint32_t e = x->first[x->queue[head++]]; e != 0; e = x->edge.at[e].next) {
            const uint32_t v = x->edge.at[e].to;
            if (x->edge.at[e ^ 1].room > 0 && v != SINK && x->by[v] == 0) {
                x->by[v] = e;
                x->queue[tail++] = v;
            }
        }
}

static void make_net(net *x, const dc_func *w, const bool *part, const bool *wanted,
                     const bool *banned, const int64_t *cost)
{
    x->n = 2 * w->node.n;
    x->first = DC_NEW_ARRAY(x->a, uint32_t, x->n);
    x->by = DC_NEW_ARRAY(x->a, uint32_t, x->n);
    x->queue = DC_NEW_ARRAY(x->a, uint32_t, x->n);
    for (int i = 0; i < 2; i++)
        DC_PUSH_IN(x->a, x->edge, (edge){0});
    for (dc_ref r = 1; r < w->node.n; r++) {
        if (!part[r])
            continue;
        add_edge(x, computed(r), there(r), cost[r]);
        if (wanted[r])
            add_edge(x, there(r), SINK, DC_CUT_NEVER);
        if (banned[r])
            add_edge(x, SOURCE, computed(r), DC_CUT_NEVER);
        for (int i = 0; i < dc_node_at(w, r)->nin && !banned[r]; i++)
            add_edge(x, there(dc_node_at(w, r)->in[i]), computed(r), DC_CUT_NEVER);
    }
}

bool *dc_grad_cut(dc_job *j, const dc_func *w, const bool *wanted, const bool *banned,
                  const int64_t *cost)
{
    net x = {.a = &j->scratch};
    dc_ref *root = DC_NEW_ARRAY(&j->scratch, dc_ref, w->node.n);
    int n = 0;
    for (dc_ref r = 1; r < w->node.n; r++)
        if (wanted[r])
            root[n++] = r;
    const bool *part = dc_cone(j, w, root, n, banned);
    bool *kept = DC_NEW_ARRAY(&j->scratch, bool, w->node.n);
    make_net(&x, w, part, wanted, banned, cost);
    while (find_path(&x))
        fill_path(&x);
    find_back(&x);
    for (dc_ref r = 1; r < w->node.n; r++)
        kept[r] = part[r] && x.by[there(r)] != 0 && x.by[computed(r)] == 0;
    return kept;
}

bool dc_grad_costly(const dc_node *n)
{
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_RED:
    case DC_CLASS_CON:
    case DC_CLASS_IDX:
        return true;
    case DC_CLASS_EW:
        return n->op == DC_OP_THREEFRY;
    case DC_CLASS_SAME:
        return n->op == DC_OP_CUSTOM;
    case DC_CLASS_CTL:
        return n->op == DC_OP_PICK;
    case DC_CLASS_MOV:
    case DC_CLASS_SRC:
    case DC_CLASS_PART:
        return false;
    }
    return false;
}
