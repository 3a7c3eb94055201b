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
#include "core/autodiff/grad_loop.h"

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

/* ---- of a loop -------------------------------------------------------------------------------- */

bool dc_grad_costly(const dc_node *n)
{
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_RED:
    case DC_CLASS_CON:
    case DC_CLASS_IDX:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_FFT:
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

static void find_backward(dc_loopgrad *g)
{
    const dc_func *w = g->w;
    g->back = DC_NEW_ARRAY(&g->j->scratch, bool, w->node.n);
    for (uint32_t i = g->body->param.n; i < w->param.n; i++)
        g->back[w->param.at[i]] = true;
    for (dc_ref r = 1; r < w->node.n; r++)
        for (int i = 0; i < dc_node_at(w, r)->nin; i++)
            g->back[r] = g->back[r] || g->back[dc_node_at(w, r)->in[i]];
}

static bool is_x(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    return n->op == DC_OP_PARAM && n->attr[0] >= dc_loopgrad_x(g) &&
           n->attr[0] < (int64_t)g->body->param.n;
}

dc_ref *dc_loopgrad_roots(dc_loopgrad *g, int *n)
{
    dc_ref *root = DC_NEW_ARRAY(&g->j->scratch, dc_ref, 2 * g->body->param.n + g->w->node.n);
    *n = 0;
    for (int p = 1; p < (int)g->body->param.n; p++) {
        const bool constant = p < dc_loopgrad_carry(g);
        const dc_ref r = constant ? g->rest[p] : g->sunk[p] ? 0 : g->part[p];
        if (r != 0)
            root[(*n)++] = r;
    }
    for (dc_ref r = 1; r < g->w->node.n; r++)
        if (g->leaf[r] && !is_x(g, r) && (g->kept == NULL || !g->kept[r]))
            root[(*n)++] = r;
    return root;
}

int dc_loopgrad_y(const dc_loopgrad *g, dc_ref r)
{
    for (int i = 0; i < g->l.ny; i++)
        if (g->result[g->l.ncarry + i] == r)
            return i;
    return -1;
}

static bool is_carry(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    return n->op == DC_OP_PARAM && n->attr[0] >= dc_loopgrad_carry(g) &&
           n->attr[0] < dc_loopgrad_x(g);
}

/* What keeping r costs: its bytes. What is a y anyway costs nothing. */
static int64_t cost_of(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    const dc_type t = dc_node_type(g->w, r);
    if (dc_is_control(n) || (dc_op_is((dc_op)n->op, DC_CLASS_SRC) && !is_carry(g, r)))
        return DC_CUT_NEVER;
    if (dc_loopgrad_y(g, r) >= 0)
        return 0;
    return dc_min_i64(dc_max_i64(1, (int64_t)dc_type_bytes(&t)), INT64_C(1) << 48);
}

/*
 * Banned is what takes time: contractions, reductions, indexing, what loops and branches inside made, what has a
 * gradient given by hand; of a carry there is only what was kept. With REMAT, carries alone.
 */
void dc_loopgrad_keep(dc_loopgrad *g)
{
    const uint32_t end = g->w->node.n;
    dc_arena *a = &g->j->scratch;
    bool *forward = DC_NEW_ARRAY(a, bool, end), *banned = DC_NEW_ARRAY(a, bool, end);
    int64_t *cost = DC_NEW_ARRAY(a, int64_t, end);
    int n;
    find_backward(g);
    const dc_ref *root = dc_loopgrad_roots(g, &n);
    for (dc_ref r = 1; r < end; r++) {
        const dc_node *node = dc_node_at(g->w, r);
        const bool costly = (g->l.flags & DC_LOOP_REMAT) == 0 && dc_grad_costly(node);
        forward[r] = !g->back[r];
        banned[r] = forward[r] && !g->fixed[r] && (costly || is_carry(g, r));
        cost[r] = cost_of(g, r);
    }
    bool *wanted = dc_cone(g->j, g->w, root, n, forward);
    for (dc_ref r = 1; r < end; r++)
        wanted[r] = wanted[r] && forward[r];
    g->kept = dc_grad_cut(g->j, g->w, wanted, banned, cost);
}
