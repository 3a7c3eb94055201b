/*
 * Gradients of what ranks do together. Each rank differentiates something of its own; what is computed is the gradient of
 * the sum of all that, so that each member gives back to the others what they had from it.
 */
#include "core/autodiff/grad_impl.h"
#include "core/ir/exchange.h"

/* Beside messages exchanges keep their order: none leaves a loop for what it is made of, on this rank alone. */
static dc_ref in_place(const dc_vjp *v, dc_ref a)
{
    return v->f->token != 0 ? dc_graph_behind(v->f, a, v->f->token) : a;
}

static dc_ref sum_of_all(const dc_vjp *v, const dc_exchange_attr *x, dc_ref a)
{
    return dc_graph_all_reduce(v->f, in_place(v, a), DC_COMBINE_SUM, &x->group);
}

static dc_ref reduced_back(const dc_vjp *v, const dc_exchange_attr *x, dc_ref a)
{
    return v->n.op == DC_OP_ALL_REDUCE
               ? sum_of_all(v, x, a)
               : dc_graph_all_gather(v->f, in_place(v, a), (int)x->axis, &x->group);
}

/* Of a maximum or a minimum: the elements that are it share its cotangent. */
static void share(const dc_vjp *v, const dc_exchange_attr *x)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0];
    const bool all = v->n.op == DC_OP_ALL_REDUCE;
    const dc_ref best =
        all ? v->r : dc_graph_all_gather(f, in_place(v, v->r), (int)x->axis, &x->group);
    const dc_ref won = dc_graph_op2(f, DC_OP_EQ, a, best);
    const dc_ref count =
        sum_of_all(v, x, dc_graph_cast(f, won, (dc_dtype)dc_vjp_operand(v, 0).dtype));
    const dc_ref part = dc_graph_op2(f, DC_OP_DIV, reduced_back(v, x, v->g), count);
    dc_vjp_give(v, 0, dc_graph_op3(f, DC_OP_WHERE, won, part, dc_vjp_zero_like(v, a)));
}

static void reduction(const dc_vjp *v)
{
    const dc_exchange_attr x = dc_exchange_read(v->n.attr);
    if (x.other == DC_COMBINE_SUM)
        dc_vjp_give(v, 0, reduced_back(v, &x, v->g));
    else
        share(v, &x);
}

void dc_grad_all_reduce(const dc_vjp *v)
{
    reduction(v);
}

void dc_grad_reduce_scatter(const dc_vjp *v)
{
    reduction(v);
}

void dc_grad_all_gather(const dc_vjp *v)
{
    const dc_exchange_attr x = dc_exchange_read(v->n.attr);
    dc_vjp_give(
        v, 0,
        dc_graph_reduce_scatter(v->f, in_place(v, v->g), (int)x.axis, DC_COMBINE_SUM, &x.group));
}

void dc_grad_all_to_all(const dc_vjp *v)
{
    dc_exchange_attr x = dc_exchange_read(v->n.attr);
    const int64_t axis = x.axis;
    x.axis = x.other;
    x.other = axis;
    dc_vjp_give(v, 0, dc_graph_exchange(v->f, DC_OP_ALL_TO_ALL, in_place(v, v->g), &x));
}

/* The member whose operand it is gets the sum of all cotangents, the others zeros. */
void dc_grad_broadcast(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_exchange_attr x = dc_exchange_read(v->n.attr);
    const dc_node n = dc_vjp_operand(v, 0);
    const int64_t members = dc_group_size(&x.group);
    int64_t row[DC_MAX_RANK + 1] = {1, dc_node_count(&n)}, lo[2] = {x.other, 0}, step[2] = {1, 1};
    const dc_ref one = dc_graph_reshape(f, v->g, 2, row);
    row[0] = members;
    const dc_ref rows = dc_graph_pad(f, one, lo, step, row, 0);
    const dc_ref mine = dc_graph_reduce_scatter(f, in_place(v, rows), 0, DC_COMBINE_SUM, &x.group);
    dc_vjp_give(v, 0, dc_graph_reshape(f, mine, n.rank, n.dim));
}

/* ---- messages ---------------------------------------------------------------------------------- */

/* Messages of the backward pass follow each other as the walk makes them: in the other direction. */
static bool has_place(const dc_vjp *v)
{
    if (v->f->token == 0)
        *v->status =
            dc_failf(v->j, DC_ERR_SHARDING, "grad",
                     "what is sent or received in a loop, a branch or a custom gradient is "
                     "differentiated inside of it alone");
    return v->f->token != 0;
}

void dc_grad_send(const dc_vjp *v)
{
    const dc_exchange_attr x = dc_exchange_read(v->n.attr);
    const dc_type t = dc_node_type(v->f, v->n.in[0]);
    if (!dc_exchange_answers(v->f, &v->n) || !has_place(v))
        return;
    const dc_ref g = dc_graph_recv(v->f, &t, v->f->token, &x);
    v->f->token = dc_graph_arrived(v->f, g, v->f->token);
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, g);
}

void dc_grad_recv(const dc_vjp *v)
{
    const dc_exchange_attr x = dc_exchange_read(v->n.attr);
    if (has_place(v))
        v->f->token = dc_graph_send(v->f, v->g, v->f->token, &x);
}
