/*
 * Reverse-mode gradient: a function and a scalar node in, nodes for its derivatives out.
 *
 * The walk goes from the loss down. A node's cotangent is d loss / d node, of the node's own type;
 * when the walk reaches a node, all its users have added their part. Active nodes are those that a
 * wrt node reaches through floats; only they get a cotangent. Every gradient named in core/ir/ops.def
 * is one function dc_grad_<grad> that turns the cotangent of a node into parts for its active operands. Messages to
 * other ranks are active by themselves: cotangents are messages back, which those wait for.
 * Parts are ordinary nodes, so gradients of gradients need nothing more.
 * The rules are in core/autodiff/grad_ew.c, core/autodiff/grad_move.c and core/autodiff/grad_control.c; flat operations
 * (floor, comparisons, whatever leaves the floats) have none, and the derivative 0.
 */
#include "core/autodiff/custom.h"
#include "core/autodiff/grad_impl.h"
#include "core/ir/control.h"
#include "core/ir/exchange.h"

void dc_vjp_give(const dc_vjp *v, int i, dc_ref part)
{
    dc_ref *sum = &v->cotangent[v->n.in[i]];
    dc_gradpart *p = DC_NEW(&v->j->scratch, dc_gradpart);
    *sum = *sum == 0 ? part : dc_graph_op2(v->f, DC_OP_ADD, *sum, part);
    *p = (dc_gradpart){part, v->part[v->n.in[i]]};
    v->part[v->n.in[i]] = p;
}

/* ---- given by hand ---- */

void dc_grad_custom(const dc_vjp *v)
{
    dc_ref part[DC_CUSTOM_INPUTS];
    dc_custom_pull(v->j, v->f, v->r, v->g, part);
    for (int i = 0; i < (int)v->n.attr[0]; i++)
        if (part[i] != 0 && dc_vjp_wants(v, 1 + i))
            dc_vjp_give(v, 1 + i, part[i]);
}

void dc_grad_barrier(const dc_vjp *v)
{
    if (dc_vjp_wants(v, 0))
        dc_vjp_give(v, 0, v->g);
}

/* ---- the walk ---- */

/* clang-format off */
#define dc_grad_none NULL
static void (*const rules[DC_OP__COUNT])(const dc_vjp *) = {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = dc_grad_##grad,
#define RED(id, lua, combine, type, names, grad, lo, hi) [DC_OP_##id] = dc_grad_##grad,
#define MOV(id, lua, names, grad)                        [DC_OP_##id] = dc_grad_##grad,
#define CON(id, lua, type, names, grad, lo, hi)          [DC_OP_##id] = dc_grad_##grad,
#define IDX(id, lua, n, combine, type, grad, lo, hi)     [DC_OP_##id] = dc_grad_##grad,
#define HST(id, lua, n, rule, grad, lo, hi)              [DC_OP_##id] = dc_grad_##grad,
#define FFT(id, lua, grad)                               [DC_OP_##id] = dc_grad_##grad,
#define SAME(id, lua, n, grad)                           [DC_OP_##id] = dc_grad_##grad,
#define COM(id, lua, grad, lo, hi)                       [DC_OP_##id] = dc_grad_##grad,
#define MSG(id, lua, n, grad)                            [DC_OP_##id] = dc_grad_##grad,
#include "core/ir/ops.def"
    [DC_OP_LOOP] = dc_grad_loop, [DC_OP_BRANCH] = dc_grad_branch, [DC_OP_PICK] = dc_grad_pick,
};
/* clang-format on */

/* A loop or branch by itself is no float; what its results are made of flows through it. */
static bool flows(const dc_node *n)
{
    return rules[n->op] != NULL && (dc_dtype_is_float((dc_dtype)n->dtype) || dc_is_control(n));
}

bool *dc_grad_active(dc_job *j, const dc_func *f, const dc_ref *wrt, int n, dc_ref last)
{
    bool *active = DC_NEW_ARRAY(&j->scratch, bool, last + 1);
    for (int i = 0; i < n; i++)
        if (wrt[i] <= last)
            active[wrt[i]] = true;
    for (dc_ref r = 1; r <= last; r++) {
        const dc_node *node = dc_node_at(f, r);
        active[r] = active[r] || dc_exchange_answers(f, node);
        for (int i = 0; flows(node) && i < dc_node_inputs(node); i++)
            active[r] = active[r] || active[node->in[i]];
    }
    return active;
}

bool *dc_grad_reached(dc_job *j, const dc_func *f, const bool *active, const dc_ref *y, int n)
{
    bool *reached = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    dc_ref last = 0;
    for (int i = 0; i < n; i++) {
        reached[y[i]] = active[y[i]];
        last = y[i] > last ? y[i] : last;
    }
    for (dc_ref r = last; r > 0; r--) {
        const dc_node *node = dc_node_at(f, r);
        for (int i = node->op == DC_OP_CUSTOM; reached[r] && i < dc_node_inputs(node); i++)
            reached[node->in[i]] = reached[node->in[i]] || active[node->in[i]];
    }
    return reached;
}

/* What the loss is made of, on any path. */
static bool *read_nodes(dc_job *j, const dc_func *f, dc_ref loss)
{
    bool *read = DC_NEW_ARRAY(&j->scratch, bool, loss + 1);
    read[loss] = true;
    for (dc_ref r = loss; r > 0; r--)
        for (int i = 0; read[r] && i < dc_node_inputs(dc_node_at(f, r)); i++)
            read[dc_node_at(f, r)->in[i]] = true;
    return read;
}

/* New nodes come from where the node that they differentiate came from. */
static void run_rule(const dc_vjp *v)
{
    dc_func *f = v->f;
    const char *where = f->where, *path = f->path;
    if (v->n.origin != 0) {
        f->where = f->origins.at[v->n.origin].where;
        f->path = f->origins.at[v->n.origin].path;
    }
    rules[v->n.op](v);
    f->where = where;
    f->path = path;
}

static dc_status check_request(dc_job *j, const dc_func *f, dc_ref loss, const dc_ref *wrt, int n)
{
    const dc_type t = dc_node_type(f, loss);
    if (t.rank != 0 || !dc_dtype_is_float((dc_dtype)t.dtype))
        return dc_fail(j, DC_ERR_GRAD_SCALAR, &(dc_fact){.op = "grad", .type = {t}});
    for (int i = 0; i < n; i++) {
        const dc_type w = dc_node_type(f, wrt[i]);
        if (!dc_dtype_is_float((dc_dtype)w.dtype))
            return dc_fail(j, DC_ERR_DTYPE,
                           &(dc_fact){.op = "grad", .type = {w}, .word = {"a float"}});
    }
    return DC_OK;
}

/* What is asked for: of nodes y, whose cotangents are given, down; below a leaf nothing is followed. */
typedef struct request {
    dc_job *j;
    dc_func *f;
    const dc_ref *y, *g;
    int n;
    dc_ref last; /* of y */
    const bool *active, *leaf;
} request;

/* out[r]: the cotangent of node r, 0 for none. */
static dc_status walk(const request *q, dc_ref **out)
{
    dc_job *j = q->j;
    dc_func *f = q->f;
    dc_ref *cotangent = DC_NEW_ARRAY(&j->scratch, dc_ref, q->last + 1);
    const dc_gradpart **part = DC_NEW_ARRAY(&j->scratch, const dc_gradpart *, q->last + 1);
    dc_status status = DC_OK;
    for (int i = 0; i < q->n; i++) {
        dc_ref *sum = &cotangent[q->y[i]];
        *sum = *sum == 0 ? q->g[i] : dc_graph_op2(f, DC_OP_ADD, *sum, q->g[i]);
    }
    for (dc_ref r = q->last; r > 0 && status == DC_OK; r--) {
        const dc_node *node = dc_node_at(f, r);
        if (!dc_is_control(node))
            cotangent[r] = dc_gradsum(&j->scratch, f, part[r], cotangent[r]);
        node = dc_node_at(f, r);
        const dc_vjp v = {j, f, r, cotangent[r], *node, q->active, cotangent, part, &status};
        bool wanted = dc_exchange_answers(f, node);
        for (int i = 0; i < dc_node_inputs(node); i++)
            wanted = wanted || q->active[node->in[i]];
        if (wanted && v.g != 0 && rules[v.n.op] != NULL && !q->leaf[r])
            run_rule(&v);
    }
    *out = cotangent;
    return status;
}

static dc_status grad(dc_job *j, dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *out)
{
    const bool *active = dc_grad_active(j, f, wrt, n, loss), *read = read_nodes(j, f, loss);
    DC_TRY(dc_grad_bounded(j, f, active, dc_grad_reached(j, f, active, &loss, 1)));
    const bool *no_leaf = DC_NEW_ARRAY(&j->scratch, bool, loss + 1);
    const dc_ref one = dc_graph_like(f, loss, 1);
    dc_ref *cotangent;
    DC_TRY(walk(&(request){j, f, &loss, &one, 1, loss, active, no_leaf}, &cotangent));
    for (int i = 0; i < n; i++) {
        out[i] = 0;
        if (wrt[i] > loss || !read[wrt[i]])
            continue;
        out[i] = cotangent[wrt[i]] != 0 ? cotangent[wrt[i]] : dc_graph_like(f, wrt[i], 0);
    }
    return DC_OK;
}

dc_status dc_grad(dc_job *j, dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *out)
{
    DC_TRY(check_request(j, f, loss, wrt, n));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_status status = grad(j, f, loss, wrt, n, out);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

static dc_status pull(request *q, const dc_ref *wrt, int n, dc_ref *out)
{
    dc_ref *cotangent;
    for (int i = 0; i < q->n; i++)
        q->last = q->y[i] > q->last ? q->y[i] : q->last;
    bool *leaf = DC_NEW_ARRAY(&q->j->scratch, bool, q->last + 1);
    q->active = dc_grad_active(q->j, q->f, wrt, n, q->last);
    q->leaf = leaf;
    for (int i = 0; i < n; i++)
        if (wrt[i] <= q->last)
            leaf[wrt[i]] = true;
    DC_TRY(
        dc_grad_bounded(q->j, q->f, q->active, dc_grad_reached(q->j, q->f, q->active, q->y, q->n)));
    DC_TRY(walk(q, &cotangent));
    for (int i = 0; i < n; i++)
        out[i] = wrt[i] <= q->last ? cotangent[wrt[i]] : 0;
    return DC_OK;
}

dc_status dc_grad_pull(dc_job *j, dc_func *f, const dc_ref *y, const dc_ref *cotangent, int ny,
                       const dc_ref *wrt, int n, dc_ref *out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_status status =
        pull(&(request){.j = j, .f = f, .y = y, .g = cotangent, .n = ny}, wrt, n, out);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}
