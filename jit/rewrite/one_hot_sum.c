/*
 * Sums over what an integer of each row chooses (jit/rewrite/one_hot_sum.h), as in a cross entropy: all elements of a row are
 * read to add up one of them and zeros. Here that one is gathered; 0 where the integer is no column, as before.
 */
#include "jit/rewrite/one_hot_sum.h"

#include "jit/rewrite/split_reduction.h"

/* Does the node number the elements of the last of `rank` axes, for all others alike? */
static bool is_column(const dc_func *f, dc_ref r, int rank)
{
    const dc_node *n = dc_node_at(f, r);
    const int64_t columns = n->rank == rank ? n->dim[rank - 1] : 0;
    if (n->op == DC_OP_EXPAND)
        n = dc_node_at(f, n->in[0]);
    if (n->rank != rank || n->dim[rank - 1] != columns || dc_node_count(n) != columns)
        return false;
    while (n->op == DC_OP_RESHAPE)
        n = dc_node_at(f, n->in[0]);
    return n->op == DC_OP_IOTA && n->rank == 1;
}

/* May a gather choose by it? */
static bool is_integer(const dc_func *f, dc_ref r)
{
    const dc_kind kind = dc_dtype_kind((dc_dtype)dc_node_at(f, r)->dtype);
    return kind == DC_KIND_SINT || kind == DC_KIND_UINT;
}

dc_ref dc_one_hot_sum(dc_func *to, const dc_func *f, dc_ref r, const dc_ref *map)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_SUM)
        return 0;
    const dc_node *w = dc_node_at(f, n->in[0]);
    const int last = w->rank - 1;
    if (w->rank == 0 || w->op != DC_OP_WHERE || (n->attr[0] >> last & 1) == 0 ||
        !dc_is_const(f, w->in[2], 0))
        return 0;
    const dc_node *c = dc_node_at(f, w->in[0]);
    if (c->op != DC_OP_EQ)
        return 0;
    const int side = is_column(f, c->in[0], w->rank) ? 0 : 1;
    const dc_ref chosen = dc_graph_repeated(f, c->in[1 - side]);
    if (chosen == 0 || !is_integer(f, chosen) || !is_column(f, c->in[side], w->rank))
        return 0;
    const dc_ref at = map[chosen];
    const dc_ref least = dc_graph_op2(to, DC_OP_LE, dc_graph_like(to, at, 0), at);
    const dc_ref most =
        dc_graph_op2(to, DC_OP_LE, at, dc_graph_like(to, at, (double)(w->dim[last] - 1)));
    const dc_ref value = dc_graph_gather(to, map[w->in[1]], at, last, last);
    const dc_ref one = dc_graph_op3(to, DC_OP_WHERE, dc_graph_op2(to, DC_OP_AND, least, most),
                                    value, dc_graph_like(to, value, 0));
    const dc_ref sum = dc_split_reduce(to, f, r, one, true);
    return sum != 0 ? sum : dc_graph_reduce(to, DC_OP_SUM, one, (uint32_t)n->attr[0]);
}
