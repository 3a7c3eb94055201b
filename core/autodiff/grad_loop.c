/*
 * Gradient rule of loops.
 *
 * Forward, the loop is made once more with more ys: what the backward pass reads of each iteration (grad_cut.c). Its
 * operands are those of the loop in their order, with more at the end of each kind, so that both can become one.
 * If a test may end it, another carry counts the iterations.
 *
 * The backward loop goes through the same rows in the other direction. Its carries are the cotangents of the loop's
 * carries, and sums for constants; its xs are the loop's xs, what was kept, and the cotangents of the ys; its ys are
 * the cotangents of the xs, and what is computed behind it for all iterations at once (grad_stack.c). What it reads
 * of the forward pass besides, it computes again.
 */
#include "core/autodiff/grad_loop.h"

#include "core/base/extent.h"

#include <string.h>

static bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

static dc_ref *new_refs(dc_loopgrad *g, uint32_t n)
{
    return DC_NEW_ARRAY(&g->j->scratch, dc_ref, n);
}

/* ---- one iteration and its gradient ---------------------------------------------------------- */

/* By carry: may it have a cotangent? It has one behind the loop, or what some iteration makes of it has one. */
static bool *carries_with_cotangent(dc_loopgrad *g)
{
    const dc_func *body = g->body;
    const int nresult = (int)body->result.n;
    bool *has = DC_NEW_ARRAY(&g->j->scratch, bool, nresult), more = true;
    dc_ref *wrt = new_refs(g, body->param.n), *y = new_refs(g, (uint32_t)nresult);
    int n = 0;
    for (uint32_t p = 0; p < body->param.n; p++)
        if (g->varies[p])
            wrt[n++] = body->param.at[p];
    const bool *active = dc_grad_active(g->j, body, wrt, n, body->node.n - 1);
    for (int i = 0; i < nresult; i++)
        has[i] = g->g[i] != 0;
    while (more) {
        int ny = 0;
        more = false;
        for (int i = 0; i < nresult; i++)
            if (has[i])
                y[ny++] = body->result.at[i];
        const bool *reached = dc_grad_reached(g->j, body, active, y, ny);
        for (int k = 0; k < g->l.ncarry; k++)
            if (!has[k] && g->varies[dc_loopgrad_carry(g) + k] &&
                reached[body->param.at[dc_loopgrad_carry(g) + k]])
                has[k] = more = true;
    }
    for (int k = 0; k < g->l.ncarry; k++)
        has[k] = has[k] && g->varies[dc_loopgrad_carry(g) + k];
    return has;
}

static dc_ref param_like(dc_func *to, const dc_func *from, dc_ref r, const char *label)
{
    const dc_type t = dc_node_type(from, r);
    return dc_graph_param(to, &t, label);
}

static dc_status pull_iteration(dc_loopgrad *g)
{
    const dc_func *body = g->body;
    const uint32_t nparam = body->param.n, nresult = body->result.n;
    const bool *has = carries_with_cotangent(g);
    dc_ref *y = new_refs(g, nresult), *dy = new_refs(g, nresult), *wrt = new_refs(g, nparam);
    dc_ref *part = new_refs(g, nparam);
    int ny = 0, n = 0;
    g->w = dc_func_new(g->f->module, "iteration");
    g->result = new_refs(g, nresult);
    g->dy = new_refs(g, nresult);
    g->part = new_refs(g, nparam);
    for (uint32_t p = 0; p < nparam; p++)
        param_like(g->w, body, body->param.at[p], body->label.at[p]);
    dc_graph_inline(g->w, body, g->w->param.at, g->result);
    for (uint32_t i = 0; i < nresult; i++) {
        if (!has[i])
            continue;
        y[ny] = g->result[i];
        g->dy[i] = dy[ny++] = param_like(g->w, body, body->result.at[i], NULL);
    }
    for (uint32_t p = 0; p < nparam; p++)
        if (g->varies[p])
            wrt[n++] = g->w->param.at[p];
    DC_TRY(dc_grad_pull(g->j, g->w, y, dy, ny, wrt, n, part));
    for (uint32_t p = 0, at = 0; p < nparam; p++)
        g->part[p] = g->varies[p] ? part[at++] : 0;
    for (int k = 0; k < g->l.ncarry; k++) {
        const int p = dc_loopgrad_carry(g) + k;
        DC_ASSERT(g->part[p] == 0 || g->dy[k] != 0, "carry %d has a part and no cotangent", k);
        if (g->dy[k] != 0 && g->part[p] == 0)
            g->part[p] = dc_graph_like(g->w, g->w->param.at[p], 0);
    }
    return DC_OK;
}

static void find_fixed(dc_loopgrad *g)
{
    const dc_func *w = g->w;
    g->fixed = DC_NEW_ARRAY(&g->j->scratch, bool, 2 * w->node.n); /* as dc_loopgrad.leaf */
    for (dc_ref r = 1; r < w->node.n; r++) {
        const dc_node *n = dc_node_at(w, r);
        g->fixed[r] = n->op != DC_OP_CUSTOM && n->op != DC_OP_HOLE;
        if (n->op == DC_OP_PARAM)
            g->fixed[r] = n->attr[0] >= 1 && n->attr[0] < dc_loopgrad_carry(g);
        for (int i = 0; i < n->nin; i++)
            g->fixed[r] = g->fixed[r] && g->fixed[n->in[i]];
    }
}

/* ---- loops under construction ---------------------------------------------------------------- */

typedef struct loop_build {
    dc_loopgrad *g;
    dc_func *b;
    dc_loop l;
    dc_ref *map; /* from w */
    DC_VEC(dc_ref) in;
} loop_build;

static loop_build begin_loop(dc_loopgrad *g, const char *name, uint32_t flags)
{
    loop_build x = {.g = g, .b = dc_func_new(g->f->module, name)};
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    x.l = (dc_loop){.n = g->l.n, .flags = flags};
    x.map = new_refs(g, g->w->node.n);
    x.map[g->w->param.at[0]] = dc_graph_param(x.b, &i32, NULL);
    return x;
}

static void add_operand(loop_build *x, dc_ref r)
{
    DC_PUSH_IN(&x->g->j->scratch, x->in, r);
}

/* A parameter that is what r is in w, and its operand. */
static void add_input(loop_build *x, dc_ref r, dc_ref operand)
{
    x->map[r] = param_like(x->b, x->g->w, r, NULL);
    add_operand(x, operand);
}

static void add_y(loop_build *x, dc_ref r)
{
    DC_PUSH(x->b->result, r);
    x->l.ny++;
}

static dc_type row_stack(const loop_build *x, int y)
{
    const dc_type t = dc_node_type(x->b, x->b->result.at[x->l.ncarry + y]);
    int64_t dim[DC_MAX_RANK] = {x->l.n};
    memcpy(dim + 1, t.dim, (size_t)t.rank * sizeof *dim);
    return dc_type_make((dc_dtype)t.dtype, t.rank + 1, dim);
}

/* given: what the first ys are where they are left out; the others are zeros. */
static dc_status end_loop(loop_build *x, const dc_ref *given, int ngiven, dc_ref *out)
{
    dc_func *f = x->g->f;
    for (int i = 0; i < x->l.ny; i++) {
        const dc_type t = row_stack(x, i);
        if (!dc_dims_fit(t.rank, t.dim, dc_dtype_size((dc_dtype)t.dtype)))
            return dc_failf(x->g->j, DC_ERR_ARG, "grad",
                            "what %d iterations keep is too large to address", (int)x->l.n);
        if (dc_loop_may_end(&x->l))
            add_operand(x, i < ngiven ? given[i] : dc_graph_const(f, &t, 0));
    }
    if (x->in.n > DC_MAX_OPERANDS)
        return dc_failf(x->g->j, DC_ERR_ARG, "grad",
                        "the gradient of a loop reads %d tensors, %d is the most", (int)x->in.n,
                        DC_MAX_OPERANDS);
    x->l.body = dc_body_add(f->module, x->b);
    dc_func_drop(x->b);
    *out = dc_graph_loop(f, &x->l, x->in.at);
    return DC_OK;
}

/* ---- the loop once more ---------------------------------------------------------------------- */

/* Ranks leave room for the axis of the iterations. */
static dc_ref flat(dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    const int64_t count = dc_extent_product(f->module->extents, n->rank, n->dim);
    return n->rank == DC_MAX_RANK ? dc_graph_reshape(f, r, 1, &count) : r;
}

/* Are there values to keep that no y of the loop stacks? */
static bool more_to_keep(const dc_loopgrad *g)
{
    for (dc_ref r = 1; r < g->w->node.n; r++)
        if (g->kept[r] && dc_loopgrad_y(g, r) < 0)
            return true;
    return false;
}

/* Stacks that are there: xs of the loop; kept values among the ys of `from`, which begin at result ncarry. */
static void find_stacks(dc_loopgrad *g, dc_ref from, int ncarry)
{
    for (int k = 0; k < g->l.nx; k++) {
        const dc_ref x = g->w->param.at[dc_loopgrad_x(g) + k];
        g->stack[x] = g->in[dc_loop_x(&g->l) + k];
        g->loose[x] = dc_loop_may_end(&g->l);
    }
    for (dc_ref r = 1; r < g->w->node.n; r++) {
        const int y = g->kept[r] ? dc_loopgrad_y(g, r) : -1;
        if (y < 0)
            continue;
        g->stack[r] = dc_graph_pick(g->f, from, ncarry + y);
        g->loose[r] = dc_loop_may_end(&g->l);
    }
}

static dc_status build_forward(dc_loopgrad *g)
{
    const bool test = (g->l.flags & DC_LOOP_TEST) != 0;
    const int nresult = (int)g->body->result.n, before = dc_loopgrad_x(g);
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    dc_ref *root = new_refs(g, (uint32_t)nresult + g->w->node.n), loop, counter = 0;
    int n = 0;
    if (!more_to_keep(g) && !test) {
        find_stacks(g, g->loop, g->l.ncarry);
        return DC_OK;
    }
    loop_build x = begin_loop(g, "forward", g->l.flags);
    for (int i = 0; i < dc_loop_const(&g->l); i++)
        add_operand(&x, g->in[i]);
    for (int p = 1; p <= (int)g->body->param.n; p++) {
        if (p == before && test) {
            counter = dc_graph_param(x.b, &i32, NULL);
            add_operand(&x, dc_graph_const(g->f, &i32, 0));
        }
        if (p < (int)g->body->param.n)
            add_input(&x, g->w->param.at[p], dc_loopgrad_operand(g, p));
    }
    for (int i = 0; i < nresult; i++)
        root[n++] = g->result[i];
    for (dc_ref r = 1; r < g->w->node.n; r++)
        if (g->kept[r] && dc_loopgrad_y(g, r) < 0)
            root[n++] = r;
    dc_cone_copy(x.b, g->w, dc_cone(g->j, g->w, root, n, NULL), x.map);
    x.l.nconst = g->l.nconst;
    x.l.nx = g->l.nx;
    for (; x.l.ncarry < g->l.ncarry; x.l.ncarry++)
        DC_PUSH(x.b->result, x.map[root[x.l.ncarry]]);
    if (test) {
        DC_PUSH(x.b->result, dc_graph_op2(x.b, DC_OP_ADD, counter, dc_graph_like(x.b, counter, 1)));
        x.l.ncarry++;
    }
    for (int i = g->l.ncarry; i < n; i++)
        add_y(&x, i < nresult ? x.map[root[i]] : flat(x.b, x.map[root[i]]));
    DC_TRY(end_loop(&x, g->in + dc_loop_y(&g->l), g->l.ny, &loop));
    find_stacks(g, loop, x.l.ncarry);
    for (int i = nresult; i < n; i++)
        g->stack[root[i]] = dc_graph_pick(g->f, loop, x.l.ncarry + i - g->l.ncarry);
    if (test)
        g->count = dc_graph_pick(g->f, loop, g->l.ncarry);
    return DC_OK;
}

/* The rows that were reached: the first so many; in a reversed loop that a test ended, the last of those. */
static void find_range(dc_loopgrad *g)
{
    dc_func *f = g->f;
    const bool limit = (g->l.flags & DC_LOOP_LIMIT) != 0;
    if ((g->l.flags & DC_LOOP_TEST) == 0) {
        g->count = limit ? g->in[0] : 0;
        return;
    }
    if ((g->l.flags & DC_LOOP_REVERSE) == 0)
        return;
    const dc_ref n = dc_graph_extent(f, g->l.n);
    dc_ref end = n;
    if (limit)
        end = dc_graph_op2(f, DC_OP_MAX, dc_graph_op2(f, DC_OP_MIN, g->in[0], n),
                           dc_graph_like(f, n, 0));
    g->first = dc_graph_op2(f, DC_OP_SUB, end, g->count);
    g->count = end;
}

/* ---- the loop backwards ---------------------------------------------------------------------- */

typedef struct backward {
    dc_ref loop; /* 0: there is nothing to do */
    int *carry; /* by parameter of the body: the result that is its cotangent or its sum; -1 none */
    int *y;     /* by x: the result that is its cotangent; -1 none */
} backward;

/* Sums of 16-bit floats are of 32 bits, as in a contraction. */
static dc_dtype sum_dtype(const dc_func *f, dc_ref r)
{
    const dc_dtype t = (dc_dtype)dc_node_at(f, r)->dtype;
    return dc_dtype_is_short(t) ? DC_F32 : t;
}

static void add_constants(loop_build *x, const bool *cone, const bool *stop)
{
    dc_loopgrad *g = x->g;
    const dc_func *w = g->w;
    for (int p = 1; p < dc_loopgrad_carry(g); p++)
        if (cone[w->param.at[p]])
            add_input(x, w->param.at[p], dc_loopgrad_operand(g, p));
    for (dc_ref r = 1; r < w->node.n; r++)
        if (cone[r] && stop[r] && !g->kept[r])
            add_input(x, r, dc_loopgrad_outer(g, r));
    x->l.nconst = (int)x->b->param.n - 1;
}

static dc_ref zero_sum(dc_loopgrad *g, int p)
{
    dc_type t = dc_node_type(g->w, g->w->param.at[p]);
    t.dtype = (uint8_t)sum_dtype(g->w, g->w->param.at[p]);
    return dc_graph_const(g->f, &t, 0);
}

/* Cotangents of carries, then sums; sum[p]: the parameter that is what was added up so far. */
static void add_carries(loop_build *x, backward *back, dc_ref *sum)
{
    dc_loopgrad *g = x->g;
    for (int k = 0; k < g->l.ncarry; k++) {
        if (g->dy[k] == 0)
            continue;
        const dc_ref in = dc_loopgrad_operand(g, dc_loopgrad_carry(g) + k);
        add_input(x, g->dy[k], g->g[k] != 0 ? g->g[k] : dc_graph_like(g->f, in, 0));
        back->carry[dc_loopgrad_carry(g) + k] = x->l.ncarry++;
    }
    for (int p = 1; p < dc_loopgrad_carry(g); p++) {
        if (g->rest[p] == 0)
            continue;
        add_operand(x, zero_sum(g, p));
        sum[p] = param_like(x->b, g->f, x->in.at[x->in.n - 1], NULL);
        back->carry[p] = x->l.ncarry++;
    }
}

static const char kept_label[] = "kept"; /* of parameters that are what the forward pass kept */

int64_t dc_grad_kept(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_LOOP)
        return 0;
    const dc_loop l = dc_loop_of(n);
    const dc_func *body = dc_body_at(f->module, l.body);
    int64_t bytes = 0;
    for (int i = dc_loop_x(&l); i < dc_loop_y(&l); i++) {
        const char *label = body->label.at[1 + i - dc_loop_const(&l)];
        const dc_type t = dc_node_type(f, n->in[i]);
        if (label != NULL && strcmp(label, kept_label) == 0)
            bytes += (int64_t)dc_type_bytes(&t);
    }
    return bytes;
}

static void add_xs(loop_build *x, const bool *cone)
{
    dc_loopgrad *g = x->g;
    const dc_func *w = g->w;
    const uint32_t before = x->b->param.n;
    for (int k = 0; k < g->l.nx; k++) {
        const int p = dc_loopgrad_x(g) + k;
        if (cone[w->param.at[p]])
            add_input(x, w->param.at[p], dc_loopgrad_operand(g, p));
    }
    for (dc_ref r = 1; r < w->node.n; r++) {
        if (!g->kept[r] || !cone[r])
            continue;
        const dc_node *n = dc_node_at(w, r);
        dc_type t = dc_node_type(w, r);
        if (n->rank == DC_MAX_RANK)
            t = dc_type_make(
                (dc_dtype)t.dtype, 1,
                (const int64_t[]){dc_extent_product(g->f->module->extents, n->rank, n->dim)});
        add_operand(x, g->stack[r]);
        x->map[r] = dc_graph_reshape(x->b, dc_graph_param(x->b, &t, kept_label), n->rank, n->dim);
    }
    for (int i = g->l.ncarry; i < (int)g->body->result.n; i++)
        if (g->dy[i] != 0 && cone[g->dy[i]])
            add_input(x, g->dy[i], g->g[i]);
    x->l.nx = (int)(x->b->param.n - before);
}

/* r as a y, unless it is one; the number of the result. row[r] is that and 1, 0 for none. */
static int add_row(loop_build *x, dc_ref r, dc_ref *row)
{
    if (row[r] == 0) {
        row[r] = (dc_ref)(1 + x->l.ncarry + x->l.ny);
        add_y(x, x->map[r]);
    }
    return (int)row[r] - 1;
}

/* sum + term. Elements that a term adds to zeros, as of a row of a table, are added to the sum, which is changed in place. */
static dc_ref added(dc_func *f, dc_ref sum, dc_ref term)
{
    const dc_node n = *dc_node_at(f, term);
    const dc_node of = *dc_node_at(f, n.nin > 0 ? n.in[0] : term);
    if (n.op == DC_OP_SCATTER_ADD && of.op == DC_OP_CONST && of.attr[0] == 0)
        return dc_graph_make(f, DC_OP_SCATTER_ADD, (dc_ref[]){sum, n.in[1], n.in[2]}, 3, n.attr,
                             n.nattr, NULL);
    if (n.op == DC_OP_ADD && (dc_node_at(f, n.in[0])->op == DC_OP_SCATTER_ADD ||
                              dc_node_at(f, n.in[1])->op == DC_OP_SCATTER_ADD))
        return added(f, added(f, sum, n.in[0]), n.in[1]);
    return dc_graph_op2(f, DC_OP_ADD, sum, term);
}

static void add_results(loop_build *x, backward *back, const dc_ref *sum, dc_ref *row)
{
    dc_loopgrad *g = x->g;
    for (int k = 0; k < g->l.ncarry; k++)
        if (g->dy[k] != 0)
            DC_PUSH(x->b->result, x->map[g->part[dc_loopgrad_carry(g) + k]]);
    for (int p = 1; p < dc_loopgrad_carry(g); p++)
        if (g->rest[p] != 0) {
            const dc_dtype t = sum_dtype(g->w, g->rest[p]);
            const dc_ref term = dc_graph_cast(x->b, x->map[g->rest[p]], t);
            DC_PUSH(x->b->result, added(x->b, sum[p], term));
        }
    for (int k = 0; k < g->l.nx; k++) {
        const dc_ref r = g->part[dc_loopgrad_x(g) + k];
        if (r != 0 && !g->sunk[dc_loopgrad_x(g) + k])
            back->y[k] = add_row(x, r, row);
    }
    for (dc_ref r = 1; r < g->w->node.n; r++)
        if (g->leaf[r] && g->stack[r] == 0)
            add_row(x, r, row);
}

/* As a branch that leaves the carries and gives zeros in rows that the loop did not reach: constant 1 is the first. */
static void skip_rows(loop_build *x)
{
    dc_module *m = x->g->f->module;
    dc_func *yes = x->b, *no = dc_func_new(m, "skip"), *b = dc_func_new(m, "backward");
    dc_ref in[1 + DC_MAX_OPERANDS];
    const int n = (int)yes->param.n, carry = 1 + x->l.nconst;
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    const dc_ref i = dc_graph_param(b, &i32, NULL), first = dc_graph_param(b, &i32, NULL);
    for (int p = 0; p < n; p++) {
        param_like(no, yes, yes->param.at[p], NULL);
        in[1 + p] = p == 0 ? i : param_like(b, yes, yes->param.at[p], NULL);
    }
    for (int k = 0; k < (int)yes->result.n; k++) {
        const dc_type t = dc_node_type(yes, yes->result.at[k]);
        DC_PUSH(no->result, k < x->l.ncarry ? no->param.at[carry + k] : dc_graph_const(no, &t, 0));
    }
    in[0] = dc_graph_op2(b, DC_OP_LE, first, i);
    const uint32_t bodies[2] = {dc_body_add(m, yes), dc_body_add(m, no)};
    const dc_ref branch = dc_graph_branch(b, bodies[0], bodies[1], in, 1 + n);
    for (int k = 0; k < (int)yes->result.n; k++)
        DC_PUSH(b->result, dc_graph_pick(b, branch, k));
    dc_func_drop(yes);
    dc_func_drop(no);
    x->b = b;
    x->l.nconst++;
}

/* Fixed values that take time come from outside: nodes to stop at, with what was kept. */
static bool *stops_of(dc_loopgrad *g)
{
    bool *stop = DC_NEW_ARRAY(&g->j->scratch, bool, g->w->node.n);
    for (dc_ref r = 1; r < g->w->node.n; r++)
        stop[r] = g->kept[r] || (g->fixed[r] && dc_grad_costly(dc_node_at(g->w, r)));
    return stop;
}

static dc_status build_backward(dc_loopgrad *g, backward *back)
{
    const int nparam = (int)g->body->param.n;
    const bool limit = g->count != 0, skip = g->first != 0;
    const uint32_t flags = (~g->l.flags & DC_LOOP_REVERSE) | (limit ? DC_LOOP_LIMIT : 0) |
                           (g->l.flags & DC_LOOP_REMAT);
    dc_ref *sum = new_refs(g, (uint32_t)nparam), *row = new_refs(g, g->w->node.n);
    const bool *stop = stops_of(g);
    int n;
    const dc_ref *root = dc_loopgrad_roots(g, &n);
    back->carry = DC_NEW_ARRAY(&g->j->scratch, int, nparam);
    back->y = DC_NEW_ARRAY(&g->j->scratch, int, g->l.nx);
    for (int p = 0; p < nparam; p++)
        back->carry[p] = -1;
    for (int k = 0; k < g->l.nx; k++)
        back->y[k] = -1;
    if (n == 0)
        return DC_OK;
    loop_build x = begin_loop(g, "backward", flags);
    if (limit)
        add_operand(&x, g->count);
    if (skip)
        add_operand(&x, g->first);
    bool *cone = dc_cone(g->j, g->w, root, n, stop);
    add_constants(&x, cone, stop);
    add_carries(&x, back, sum);
    add_xs(&x, cone);
    dc_cone_copy(x.b, g->w, cone, x.map);
    add_results(&x, back, sum, row);
    if (skip)
        skip_rows(&x);
    DC_TRY(end_loop(&x, NULL, 0, &back->loop));
    for (dc_ref r = 1; r < g->w->node.n; r++)
        if (g->leaf[r] && row[r] != 0)
            g->stack[r] = dc_graph_pick(g->f, back->loop, (int)row[r] - 1);
    return DC_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void give_parts(const dc_vjp *v, dc_loopgrad *g, const backward *back)
{
    const int skip = dc_loop_const(&g->l);
    const dc_ref *behind = dc_loopgrad_behind(g);
    for (int p = 1; p < (int)g->body->param.n; p++) {
        const int i = skip + p - 1, k = p - dc_loopgrad_x(g);
        const int from = k >= 0 ? back->y[k] : back->carry[p];
        if (!is_float(g->f, g->in[i]) || !dc_vjp_wants(v, i))
            continue;
        if (from >= 0)
            dc_vjp_give(v, i,
                        dc_graph_cast(g->f, dc_graph_pick(g->f, back->loop, from),
                                      (dc_dtype)dc_node_at(g->f, g->in[i])->dtype));
        if (behind[p] != 0)
            dc_vjp_give(v, i, k >= 0 ? dc_loopgrad_masked(g, behind[p], false) : behind[p]);
    }
    for (int y = 0; y < g->l.ny && dc_loop_may_end(&g->l); y++) {
        const int i = dc_loop_y(&g->l) + y;
        const dc_ref dy = g->g[g->l.ncarry + y];
        if (dy != 0 && dc_vjp_wants(v, i))
            dc_vjp_give(v, i, dc_loopgrad_masked(g, dy, true));
    }
}

static dc_status differentiate(const dc_vjp *v, dc_loopgrad *g)
{
    backward back = {0};
    DC_TRY(pull_iteration(g));
    find_fixed(g);
    dc_loopgrad_sink(g);
    dc_loopgrad_keep(g);
    g->stack = new_refs(g, g->w->node.n);
    g->loose = DC_NEW_ARRAY(&g->j->scratch, bool, g->w->node.n);
    g->outer = new_refs(g, g->w->node.n);
    for (int p = 1; p < dc_loopgrad_carry(g); p++)
        g->outer[g->w->param.at[p]] = dc_loopgrad_operand(g, p);
    DC_TRY(build_forward(g));
    find_range(g);
    DC_TRY(build_backward(g, &back));
    give_parts(v, g, &back);
    dc_func_drop(g->w);
    return DC_OK;
}

void dc_grad_loop(const dc_vjp *v)
{
    const dc_loop l = dc_loop_of(&v->n);
    dc_loopgrad g = {.j = v->j, .f = v->f, .loop = v->r, .l = l, .in = v->n.in};
    g.body = dc_body_at(v->f->module, l.body);
    g.g = dc_vjp_results(v, (int)g.body->result.n);
    g.varies = dc_grad_varying(v->j, v->f, &v->n, 0, v->active);
    g.sunk = DC_NEW_ARRAY(&v->j->scratch, bool, g.body->param.n);
    g.rest = DC_NEW_ARRAY(&v->j->scratch, dc_ref, g.body->param.n);
    *v->status = differentiate(v, &g);
}
