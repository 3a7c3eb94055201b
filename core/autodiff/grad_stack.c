/*
 * Parts of a loop's operands that are computed behind the backward loop, for all iterations at once.
 *
 * A constant (a weight) gets a part from each iteration. Where that is a contraction of two values of the iteration,
 * all parts together are one contraction of the stacked values, over the iterations too: one product of a long inner
 * dimension instead of many small ones that are added up. The same goes for sums, and for whatever is linear on top of
 * these. What else adds to the part is its rest, which the loop adds up in a carry. An x gets a row of its cotangent
 * from each iteration; where that is a contraction with something fixed, one product makes all rows.
 *
 * Stacked values take memory: at most stack_bytes for each operand. Beyond it the loop adds up.
 */
#include "core/autodiff/grad_loop.h"
#include "core/ir/dot.h"

#include <string.h>

enum { PLAIN, LEAF, DEEP }; /* spread: of no stack; one by itself; made of some behind the loop */

/*
 * New stacks for one operand of this type: 256 MiB, or eight times what it takes itself where that is more. Of a loop
 * that is to keep little, 16 MiB or twice that: its chunks are long, and a sum in a carry costs little.
 */
static int64_t stack_bytes(const dc_loopgrad *g, const dc_type *t)
{
    const bool little = (g->l.flags & DC_LOOP_REMAT) != 0;
    const int64_t own = dc_min_i64((int64_t)dc_type_bytes(t), INT64_MAX / 8);
    return dc_max_i64(INT64_C(1) << (little ? 24 : 28), own * (little ? 2 : 8));
}

static bool moves(const dc_node *n)
{
    return n->op == DC_OP_RESHAPE || n->op == DC_OP_PERMUTE;
}

static dc_ref moved(const dc_func *w, dc_ref r)
{
    while (moves(dc_node_at(w, r)))
        r = dc_node_at(w, r)->in[0];
    return r;
}

static dc_type stacked_type(const dc_loopgrad *g, dc_ref r)
{
    const dc_type t = dc_node_type(g->w, r);
    return dc_type_stacked(&t, g->l.n);
}

static bool has_stack(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    if (n->rank == DC_MAX_RANK)
        return false;
    const dc_type t = stacked_type(g, r);
    return dc_dims_fit(t.rank, t.dim, dc_dtype_size((dc_dtype)t.dtype));
}

/* May its values of all iterations be read behind the loop? They differ from one to the next. */
static bool stackable(const dc_loopgrad *g, dc_ref r)
{
    for (; moves(dc_node_at(g->w, r)); r = dc_node_at(g->w, r)->in[0])
        if (!has_stack(g, r))
            return false;
    return has_stack(g, r) && !g->fixed[r];
}

/* ---- what can be had from stacks ------------------------------------------------------------- */

static bool is_summable(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    switch (n->op) {
    case DC_OP_NEG:
    case DC_OP_RESHAPE:
    case DC_OP_PERMUTE:
        return g->summable[n->in[0]];
    case DC_OP_ADD:
        return g->summable[n->in[0]] && g->summable[n->in[1]];
    case DC_OP_SUM:
        return stackable(g, n->in[0]);
    case DC_OP_DOT:
        return stackable(g, n->in[0]) && stackable(g, n->in[1]);
    default:
        return false;
    }
}

static uint8_t spread_of(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    const uint8_t a = n->nin > 0 ? g->spread[n->in[0]] : PLAIN;
    const uint8_t b = n->nin > 1 ? g->spread[n->in[1]] : PLAIN;
    if (!has_stack(g, r))
        return PLAIN;
    if ((n->op == DC_OP_NEG || moves(n)) && a == DEEP)
        return DEEP;
    if (n->op == DC_OP_ADD && a != PLAIN && b != PLAIN && (a == DEEP || b == DEEP))
        return DEEP;
    if (n->op == DC_OP_DOT && g->fixed[n->in[0]] != g->fixed[n->in[1]] &&
        stackable(g, n->in[g->fixed[n->in[0]]]))
        return DEEP;
    return stackable(g, r) ? LEAF : PLAIN;
}

static void add_leaf(const dc_loopgrad *g, bool *leaf, dc_ref r)
{
    leaf[moved(g->w, r)] = true;
}

/* Nodes that the sum of root's values over the iterations is made of, and the leaves under them. */
static void mark_sum(const dc_loopgrad *g, dc_ref root, bool *set, bool *leaf)
{
    set[root] = true;
    for (dc_ref r = root; r > 0; r--) {
        const dc_node *n = dc_node_at(g->w, r);
        if (!set[r] || (!g->summable[r] && n->op != DC_OP_ADD))
            continue;
        for (int i = 0; i < n->nin; i++)
            if (n->op == DC_OP_SUM || n->op == DC_OP_DOT)
                add_leaf(g, leaf, n->in[i]);
            else
                set[n->in[i]] = true;
    }
}

/* The same for all its values. */
static void mark_stack(const dc_loopgrad *g, dc_ref root, bool *set, bool *leaf)
{
    set[root] = true;
    for (dc_ref r = root; r > 0; r--) {
        const dc_node *n = dc_node_at(g->w, r);
        if (set[r] && g->spread[r] == LEAF)
            add_leaf(g, leaf, r);
        for (int i = 0; set[r] && g->spread[r] == DEEP && i < n->nin; i++)
            if (n->op != DC_OP_DOT)
                set[n->in[i]] = true;
            else if (!g->fixed[n->in[i]])
                add_leaf(g, leaf, n->in[i]);
    }
}

/* ---- what is ---------------------------------------------------------------------------------- */

static bool is_x(const dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    return n->op == DC_OP_PARAM && n->attr[0] >= dc_loopgrad_x(g) &&
           n->attr[0] < dc_loopgrad_x(g) + g->l.nx;
}

/* Is there memory for the stacks that parameter p needs and that are not stacked for others already? */
static bool affordable(const dc_loopgrad *g, int p, const bool *leaf)
{
    const dc_type own = dc_node_type(g->f, dc_loopgrad_operand(g, p));
    int64_t left = stack_bytes(g, &own);
    for (dc_ref r = 1; r < g->w->node.n && left >= 0; r++)
        if (leaf[r] && !g->leaf[r] && !is_x(g, r)) {
            const dc_type t = stacked_type(g, r);
            left -= dc_min_i64((int64_t)dc_type_bytes(&t), left + 1);
        }
    return left >= 0;
}

static void sink_param(dc_loopgrad *g, int p, bool *set, bool *leaf)
{
    const uint32_t n = g->w->node.n;
    const bool is_const = p < dc_loopgrad_carry(g);
    bool *to = is_const ? g->in_sum : g->in_stack, any = false;
    memset(set, 0, n * sizeof *set);
    memset(leaf, 0, n * sizeof *leaf);
    if (is_const)
        mark_sum(g, g->part[p], set, leaf);
    else if (g->spread[g->part[p]] == DEEP)
        mark_stack(g, g->part[p], set, leaf);
    for (dc_ref r = 1; r < n; r++)
        any = any || leaf[r];
    g->sunk[p] = any && affordable(g, p, leaf);
    for (dc_ref r = 1; g->sunk[p] && r < n; r++) {
        to[r] = to[r] || set[r];
        g->leaf[r] = g->leaf[r] || leaf[r];
    }
}

/* The terms of constants' parts that are not summable. */
static void find_rests(dc_loopgrad *g, uint32_t end)
{
    dc_ref *rest = DC_NEW_ARRAY(&g->j->scratch, dc_ref, end);
    for (dc_ref r = 1; r < end; r++) {
        const dc_node *n = dc_node_at(g->w, r);
        if (!g->in_sum[r] || g->summable[r])
            continue;
        if (n->op != DC_OP_ADD)
            rest[r] = r;
        else if (rest[n->in[0]] == 0 || rest[n->in[1]] == 0)
            rest[r] = rest[n->in[0]] + rest[n->in[1]];
        else
            rest[r] = dc_graph_op2(g->w, DC_OP_ADD, rest[n->in[0]], rest[n->in[1]]);
    }
    for (int p = 1; p < dc_loopgrad_carry(g); p++)
        g->rest[p] = g->sunk[p] ? rest[g->part[p]] : g->part[p];
}

void dc_loopgrad_sink(dc_loopgrad *g)
{
    dc_arena *a = &g->j->scratch;
    const uint32_t n = g->w->node.n;
    bool *set = DC_NEW_ARRAY(a, bool, n), *leaf = DC_NEW_ARRAY(a, bool, n);
    g->summable = DC_NEW_ARRAY(a, bool, n);
    g->spread = DC_NEW_ARRAY(a, uint8_t, n);
    g->in_sum = DC_NEW_ARRAY(a, bool, n);
    g->in_stack = DC_NEW_ARRAY(a, bool, n);
    g->leaf = DC_NEW_ARRAY(a, bool, 2 * n); /* find_rests adds a node for each sum, at most */
    for (dc_ref r = 1; r < n; r++) {
        g->summable[r] = is_summable(g, r);
        g->spread[r] = spread_of(g, r);
    }
    for (int p = 1; p < dc_loopgrad_x(g) + g->l.nx; p++)
        if (g->part[p] != 0 && (p < dc_loopgrad_carry(g) || p >= dc_loopgrad_x(g)))
            sink_param(g, p, set, leaf);
    find_rests(g, n);
}

/* ---- behind the loop -------------------------------------------------------------------------- */

dc_ref dc_loopgrad_outer(dc_loopgrad *g, dc_ref r)
{
    if (g->outer[r] == 0)
        dc_cone_copy(g->f, g->w, dc_cone(g->j, g->w, &r, 1, NULL), g->outer);
    return g->outer[r];
}

static void make_mask(dc_loopgrad *g)
{
    dc_func *f = g->f;
    const int64_t axis = 0;
    const dc_type rows = dc_type_make(DC_I32, 1, &g->l.n);
    const dc_ref row = dc_graph_make(f, DC_OP_IOTA, NULL, 0, &axis, 1, &rows);
    const dc_ref end = dc_graph_unreduce(f, g->count, 1, 1, &g->l.n);
    g->mask = dc_graph_op2(f, DC_OP_LT, row, end);
    if (g->first != 0) {
        const dc_ref first = dc_graph_unreduce(f, g->first, 1, 1, &g->l.n);
        g->mask = dc_graph_op2(f, DC_OP_AND, g->mask, dc_graph_op2(f, DC_OP_LE, first, row));
    }
}

dc_ref dc_loopgrad_masked(dc_loopgrad *g, dc_ref stack, bool reached)
{
    if (g->count == 0)
        return reached ? dc_graph_like(g->f, stack, 0) : stack;
    if (g->mask == 0)
        make_mask(g);
    const dc_node n = *dc_node_at(g->f, stack);
    const dc_ref zero = dc_graph_like(g->f, stack, 0);
    const dc_ref mask = dc_graph_unreduce(g->f, g->mask, (1u << n.rank) - 2, n.rank, n.dim);
    return reached ? dc_graph_op3(g->f, DC_OP_WHERE, mask, zero, stack)
                   : dc_graph_op3(g->f, DC_OP_WHERE, mask, stack, zero);
}

/* Movement r of w, done to stacked values. */
static dc_ref move_stack(const dc_loopgrad *g, dc_ref r, dc_ref stack)
{
    const dc_node *n = dc_node_at(g->w, r);
    if (n->op == DC_OP_RESHAPE) {
        const dc_type t = stacked_type(g, r);
        return dc_graph_reshape(g->f, stack, t.rank, t.dim);
    }
    int64_t perm[DC_MAX_RANK] = {0};
    for (int i = 0; i < n->rank; i++)
        perm[i + 1] = n->attr[i] + 1;
    return dc_graph_permute(g->f, stack, perm);
}

/* The values of r in all iterations: rows that were not reached are zeros. */
static dc_ref stack_of(dc_loopgrad *g, dc_ref r)
{
    if (moves(dc_node_at(g->w, r)))
        return move_stack(g, r, stack_of(g, dc_node_at(g->w, r)->in[0]));
    DC_ASSERT(g->stack[r] != 0, "node %u is not stacked", r);
    return g->loose[r] ? dc_loopgrad_masked(g, g->stack[r], false) : g->stack[r];
}

static void copy_axes(int64_t *to, const int64_t *from, int n, int64_t more)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i] + more;
}

/* A contraction over the iterations, too. */
static dc_ref dot_sum(dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    const dc_dot d = dc_dot_of(g->w, n);
    dc_dot all = {.nbatch = d.nbatch, .ncontract = d.ncontract + 1};
    for (int side = 0; side < 2; side++) {
        copy_axes(all.batch[side], d.batch[side], d.nbatch, 1);
        copy_axes(all.contract[side] + 1, d.contract[side], d.ncontract, 1);
    }
    const dc_ref left = stack_of(g, n->in[0]);
    return dc_dot_make(g->f, left, stack_of(g, n->in[1]), &all);
}

/* A contraction with something fixed, for all iterations: they are an axis that the result keeps. */
static dc_ref dot_stack(dc_loopgrad *g, dc_ref r)
{
    const dc_node *n = dc_node_at(g->w, r);
    const dc_dot d = dc_dot_of(g->w, n);
    const int side = g->fixed[n->in[0]]; /* of what is stacked */
    const int at = d.nbatch + (side == 0 ? 0 : d.nfree[0]);
    dc_dot all = {.nbatch = d.nbatch, .ncontract = d.ncontract};
    dc_ref in[2];
    int64_t perm[DC_MAX_RANK] = {at};
    for (int i = 0; i < 2; i++) {
        copy_axes(all.batch[i], d.batch[i], d.nbatch, i == side);
        copy_axes(all.contract[i], d.contract[i], d.ncontract, i == side);
        in[i] = i == side ? stack_of(g, n->in[i]) : dc_loopgrad_outer(g, n->in[i]);
    }
    for (int i = 0; i < n->rank; i++)
        perm[i + 1] = i < at ? i : i + 1;
    return dc_graph_permute(g->f, dc_dot_make(g->f, in[0], in[1], &all), perm);
}

static dc_ref add(dc_loopgrad *g, dc_ref a, dc_ref b)
{
    return a == 0 || b == 0 ? a + b : dc_graph_op2(g->f, DC_OP_ADD, a, b);
}

/* The sum of r's values over the iterations, of its summable terms; sum holds those of its operands. */
static dc_ref sum_of(dc_loopgrad *g, dc_ref r, const dc_ref *sum)
{
    const dc_node *n = dc_node_at(g->w, r);
    if (n->op == DC_OP_ADD)
        return add(g, sum[n->in[0]], sum[n->in[1]]);
    if (!g->summable[r])
        return 0;
    switch (n->op) {
    case DC_OP_NEG:
        return dc_graph_op1(g->f, DC_OP_NEG, sum[n->in[0]]);
    case DC_OP_RESHAPE:
        return dc_graph_reshape(g->f, sum[n->in[0]], n->rank, n->dim);
    case DC_OP_PERMUTE:
        return dc_graph_permute(g->f, sum[n->in[0]], n->attr);
    case DC_OP_SUM:
        return dc_graph_reduce(g->f, DC_OP_SUM, stack_of(g, n->in[0]),
                               (uint32_t)n->attr[0] << 1 | 1);
    default:
        return dot_sum(g, r);
    }
}

static dc_ref rows_of(dc_loopgrad *g, dc_ref r, const dc_ref *rows)
{
    const dc_node *n = dc_node_at(g->w, r);
    if (g->spread[r] != DEEP)
        return stack_of(g, r);
    switch (n->op) {
    case DC_OP_ADD:
        return add(g, rows[n->in[0]], rows[n->in[1]]);
    case DC_OP_NEG:
        return dc_graph_op1(g->f, DC_OP_NEG, rows[n->in[0]]);
    case DC_OP_DOT:
        return dot_stack(g, r);
    default:
        return move_stack(g, r, rows[n->in[0]]);
    }
}

dc_ref *dc_loopgrad_behind(dc_loopgrad *g)
{
    dc_arena *a = &g->j->scratch;
    dc_ref *sum = DC_NEW_ARRAY(a, dc_ref, g->w->node.n);
    dc_ref *rows = DC_NEW_ARRAY(a, dc_ref, g->w->node.n), last = 0;
    dc_ref *out = DC_NEW_ARRAY(a, dc_ref, g->body->param.n);
    for (int p = 1; p < (int)g->body->param.n; p++)
        last = g->sunk[p] && g->part[p] > last ? g->part[p] : last;
    for (dc_ref r = 1; r <= last; r++) {
        if (g->in_sum[r])
            sum[r] = sum_of(g, r, sum);
        if (g->in_stack[r])
            rows[r] = rows_of(g, r, rows);
    }
    for (int p = 1; p < (int)g->body->param.n; p++)
        if (g->sunk[p])
            out[p] = p < dc_loopgrad_carry(g) ? sum[g->part[p]] : rows[g->part[p]];
    return out;
}
