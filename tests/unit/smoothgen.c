#include "tests/unit/smoothgen.h"

#include "core/autodiff/custom.h"

#include <string.h>

typedef struct gen {
    rng *r;
    const smoothgen_opts *o;
    dc_func *f;
    dc_ref flag;         /* bool[], when there is one */
    DC_VEC(dc_ref) pool; /* floats that operations read */
    int depth;
} gen;

static dc_type random_type(rng *r)
{
    static const struct {
        int rank;
        int64_t dim[2];
    } shapes[] = {{0, {0}},    {0, {0}},    {1, {2}},    {1, {3}},
                  {2, {2, 3}}, {2, {3, 2}}, {2, {2, 2}}, {2, {1, 3}}};
    const int i = rng_below(r, DC_COUNTOF(shapes));
    return dc_type_make(DC_F32, shapes[i].rank, shapes[i].dim);
}

static void put(gen *g, dc_ref r)
{
    DC_PUSH_IN(&g->f->module->arena, g->pool, r);
}

static dc_ref any(gen *g)
{
    return g->pool.at[rng_below(g->r, (int)g->pool.n)];
}

static const dc_node *at(const gen *g, dc_ref r)
{
    return dc_node_at(g->f, r);
}

static dc_ref op1(gen *g, dc_op op, dc_ref a)
{
    return dc_graph_op1(g->f, op, a);
}

static dc_ref op2(gen *g, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_op2(g->f, op, a, b);
}

static uint32_t all_axes(const dc_node *n)
{
    return (1u << n->rank) - 1;
}

/* One of this type: one that there is, or a scalar stretched. */
static dc_ref of_type(gen *g, const dc_type *t)
{
    for (int i = 0; i < 20; i++) {
        const dc_ref r = any(g);
        const dc_type is = dc_node_type(g->f, r);
        if (dc_type_same(&is, t))
            return r;
    }
    const dc_ref a = any(g);
    const dc_ref s = dc_graph_reduce(g->f, DC_OP_SUM, a, all_axes(at(g, a)));
    return dc_graph_unreduce(g->f, op1(g, DC_OP_SIN, s), (1u << t->rank) - 1, t->rank, t->dim);
}

static dc_ref like(gen *g, dc_ref r)
{
    const dc_type t = dc_node_type(g->f, r);
    return of_type(g, &t);
}

static dc_ref index_node(gen *g)
{
    for (uint32_t p = 0; p < g->f->param.n; p++)
        if (at(g, g->f->param.at[p])->dtype == DC_I32 && rng_below(g->r, 2))
            return g->f->param.at[p];
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    return dc_graph_const(g->f, &i32, rng_below(g->r, 3));
}

/* ---- operations ---- */

static dc_ref unary(gen *g)
{
    const dc_ref a = any(g);
    switch (rng_below(g->r, 6)) {
    case 0:
        return op1(g, DC_OP_COS, a);
    case 1:
        return op1(g, DC_OP_EXP, op1(g, DC_OP_SIN, a));
    case 2:
        return op1(g, DC_OP_NEG, a);
    case 3:
        return op1(g, DC_OP_SQRT,
                   op2(g, DC_OP_ADD, op2(g, DC_OP_MUL, a, a), dc_graph_like(g->f, a, 1)));
    case 4:
        return op2(g, DC_OP_MUL, a, dc_graph_like(g->f, a, 0.5));
    default:
        return op1(g, DC_OP_SIN, a);
    }
}

static dc_ref binary(gen *g)
{
    static const dc_op ops[] = {DC_OP_ADD, DC_OP_ADD, DC_OP_SUB, DC_OP_MUL, DC_OP_MUL, DC_OP_MAX};
    const dc_ref a = any(g), b = like(g, a);
    if (rng_below(g->r, 6) > 0)
        return op2(g, ops[rng_below(g->r, DC_COUNTOF(ops))], a, b);
    return dc_graph_op3(g->f, DC_OP_WHERE, op2(g, DC_OP_LT, a, b), like(g, a), like(g, a));
}

/* Contracts the last axis of a matrix or vector with one of a matrix. */
static dc_ref dot(gen *g)
{
    for (int i = 0; i < 30; i++) {
        const dc_ref a = any(g), b = any(g);
        const int ra = at(g, a)->rank, rb = at(g, b)->rank;
        if (ra == 0 || rb != 2)
            continue;
        const int64_t x = rng_below(g->r, ra), y = rng_below(g->r, 2);
        if (at(g, a)->dim[x] != at(g, b)->dim[y])
            continue;
        const dc_ref d = rng_below(g->r, 2) ? dc_graph_dot(g->f, a, b, 0, NULL, NULL, 1, &x, &y)
                                            : dc_graph_dot(g->f, b, a, 0, NULL, NULL, 1, &y, &x);
        if (ra == 2 && rng_below(g->r, 4) == 0)
            return dc_graph_dot(g->f, a, b, 1, &x, &y, 0, NULL, NULL);
        return op2(g, DC_OP_MUL, d, dc_graph_like(g->f, d, 0.5));
    }
    return unary(g);
}

static dc_ref movement(gen *g)
{
    const dc_ref a = any(g);
    const dc_node n = *at(g, a);
    const int64_t count = dc_node_count(&n), turned[2] = {1, 0}, one[2] = {1, 1}, zero[2] = {0, 0};
    if (n.rank == 0 || n.rank > 2 || count == 0)
        return unary(g);
    switch (rng_below(g->r, 6)) {
    case 0:
        return n.rank == 2 ? dc_graph_permute(g->f, a, turned) : dc_graph_flip(g->f, a, 1);
    case 1:
        return dc_graph_reshape(g->f, a, 1, &count);
    case 2:
        return dc_graph_reduce(g->f, DC_OP_MAXR, a, 1);
    case 3: {
        const int64_t dim[2] = {1, n.rank == 2 ? n.dim[1] : 1};
        return dc_graph_pad(g->f, dc_graph_slice(g->f, a, zero, one, dim), zero, one, n.dim, 0);
    }
    default:
        return dc_graph_reduce(g->f, DC_OP_SUM, a,
                               1u + (uint32_t)rng_below(g->r, (int)all_axes(&n)));
    }
}

static dc_ref indexing(gen *g)
{
    const dc_ref a = any(g), i = index_node(g);
    if (dc_node_count(at(g, a)) == 0)
        return unary(g);
    if (at(g, a)->rank == 0)
        return op2(g, DC_OP_MUL, a, dc_graph_cast(g->f, i, DC_F32));
    const dc_ref row = dc_graph_gather(g->f, a, i, 0, 0);
    if (rng_below(g->r, 2))
        return row;
    static const dc_op ops[] = {DC_OP_SCATTER, DC_OP_SCATTER_ADD, DC_OP_SCATTER_ADD,
                                DC_OP_SCATTER_MUL};
    const dc_op op = ops[rng_below(g->r, 4)];
    return dc_graph_scatter(g->f, op, a, i, op1(g, DC_OP_COS, row), 0, 0);
}

static dc_ref by_hand(gen *g)
{
    const dc_ref a = any(g), x[2] = {a, like(g, a)};
    dc_job *j = dc_job_here();
    dc_custom c;
    dc_ref out = 0, captured = 0;
    if (rng_below(g->r, 4) == 0)
        return dc_graph_barrier(g->f, a, any(g));
    if (rng_below(g->r, 6) == 0)
        return op1(g, DC_OP_STOP, a);
    dc_custom_begin(g->f, x, 2, &c);
    const dc_ref s = op1(g, DC_OP_SIN, c.stand_in[1]), y = op2(g, DC_OP_MUL, c.stand_in[0], s);
    if (rng_below(g->r, 2)) {
        if (dc_custom_remat(j, &c, y, &out) != DC_OK)
            DC_BUG("remat failed");
        return out;
    }
    if (dc_custom_value(j, &c, y, &captured) != DC_OK)
        DC_BUG("value failed");
    /* not the derivative, so that it matters whether it is followed */
    const dc_ref dx[2] = {op2(g, DC_OP_MUL, c.dy, op1(g, DC_OP_COS, x[1])),
                          op2(g, DC_OP_MUL, c.dy, c.y_again)};
    if (dc_custom_end(j, &c, dx, &out) != DC_OK)
        DC_BUG("end failed");
    return out;
}

/* ---- bodies ---- */

static void control(gen *g);

static void add_operation(gen *g)
{
    const int kind = rng_below(g->r, 14);
    if (kind == 0 && g->depth > 0)
        control(g);
    else if (kind <= 3)
        put(g, unary(g));
    else if (kind <= 7)
        put(g, binary(g));
    else if (kind <= 9)
        put(g, dot(g));
    else if (kind <= 11)
        put(g, movement(g));
    else if (kind == 12)
        put(g, indexing(g));
    else if (g->o->by_hand)
        put(g, by_hand(g));
}

/* Not larger than before from iteration to iteration, mostly. */
static dc_ref tame(gen *g, dc_ref r)
{
    return rng_below(g->r, 3) ? op1(g, DC_OP_SIN, r)
                              : op2(g, DC_OP_MUL, r, dc_graph_like(g->f, r, 0.25));
}

static gen begin_body(gen *g, const char *name)
{
    return (gen){.r = g->r, .o = g->o, .f = dc_func_new(g->f->module, name), .depth = g->depth - 1};
}

static dc_ref param(gen *b, const dc_type *t)
{
    const dc_ref r = dc_graph_param(b->f, t, NULL);
    if (dc_dtype_is_float((dc_dtype)t->dtype))
        put(b, r);
    return r;
}

static uint32_t end_body(gen *b)
{
    const uint32_t body = dc_body_add(b->f->module, b->f);
    dc_func_drop(b->f);
    return body;
}

/* Rows of one type, made of what there is. */
static dc_ref rows(gen *g, const dc_type *t, int64_t n)
{
    const dc_type s = dc_type_stacked(t, n);
    const dc_ref flat = of_type(g, t);
    const dc_ref all = dc_graph_unreduce(g->f, flat, 1, s.rank, s.dim);
    const int64_t axis = 0;
    dc_type line = s;
    const dc_ref row = dc_graph_make(g->f, DC_OP_IOTA, NULL, 0, &axis, 1, &line);
    return op1(g, DC_OP_SIN, op2(g, DC_OP_ADD, all, row));
}

static void loop(gen *g)
{
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL), yes = dc_type_make(DC_BOOL, 0, NULL);
    const bool counts = rng_below(g->r, 3) == 0;
    dc_loop l = {.n = 1 + rng_below(g->r, g->o->most > 0 ? g->o->most : 4),
                 .flags = (uint32_t)rng_below(g->r, 8) | g->o->flags,
                 .nconst = rng_below(g->r, 4),
                 .nx = rng_below(g->r, 3)};
    dc_ref in[64], carry[8];
    int nin = 0, nfloat = rng_below(g->r, 3), own = 0;
    if (l.flags & DC_LOOP_TEST && rng_below(g->r, 2))
        l.flags &= ~(uint32_t)DC_LOOP_TEST;
    if (rng_below(g->r, 40) == 0)
        l.n = 0;
    gen b = begin_body(g, "body");
    if (l.flags & DC_LOOP_LIMIT)
        in[nin++] = dc_graph_const(g->f, &i32, rng_below(g->r, (int)l.n + 3) - 1);
    param(&b, &i32);
    for (int i = 0; i < l.nconst; i++) {
        const dc_ref r = any(g);
        const dc_type t = dc_node_type(g->f, r);
        in[nin++] = r;
        param(&b, &t);
    }
    if (l.flags & DC_LOOP_TEST) { /* a counter says how long */
        in[nin++] = dc_graph_const(g->f, &yes, rng_below(g->r, 8) > 0);
        carry[own++] = param(&b, &yes);
    }
    if (l.flags & DC_LOOP_TEST || counts) {
        in[nin++] = dc_graph_const(g->f, &i32, 1);
        carry[own++] = param(&b, &i32);
    }
    for (int i = 0; i < nfloat; i++) {
        const dc_ref r = any(g);
        const dc_type t = dc_node_type(g->f, r);
        in[nin++] = r;
        carry[own + i] = param(&b, &t);
    }
    l.ncarry = own + nfloat;
    for (int i = 0; i < l.nx; i++) {
        const dc_type t = random_type(g->r);
        in[nin++] = rows(g, &t, l.n);
        param(&b, &t);
    }
    if (b.pool.n == 0) {
        const dc_type t = random_type(g->r);
        put(&b, dc_graph_const(b.f, &t, 0.5));
    }
    const int nop = rng_below(g->r, g->o->n + 1);
    for (int i = 0; i < nop; i++)
        add_operation(&b);
    if (l.flags & DC_LOOP_TEST) {
        const dc_ref most = dc_graph_const(b.f, &i32, 1 + rng_below(g->r, 4));
        DC_PUSH(b.f->result, op2(&b, DC_OP_LT, carry[1], most));
    }
    if (l.flags & DC_LOOP_TEST || counts)
        DC_PUSH(b.f->result, op2(&b, DC_OP_ADD, carry[own - 1], dc_graph_const(b.f, &i32, 1)));
    for (int i = 0; i < nfloat; i++) {
        const dc_ref next = like(&b, carry[own + i]);
        DC_PUSH(b.f->result, rng_below(g->r, 8) == 0 ? carry[own + i] : tame(&b, next));
    }
    l.ny = rng_below(g->r, 3);
    for (int i = 0; i < l.ny; i++)
        DC_PUSH(b.f->result, any(&b));
    for (int i = 0; i < l.ny && dc_loop_may_end(&l); i++) {
        const dc_type t = dc_node_type(b.f, b.f->result.at[l.ncarry + i]);
        in[nin++] = rows(g, &t, l.n);
    }
    l.body = end_body(&b);
    const dc_ref made = dc_graph_loop(g->f, &l, in);
    for (int i = own; i < l.ncarry + l.ny; i++)
        put(g, dc_graph_pick(g->f, made, i));
}

static dc_ref random_flag(gen *g)
{
    const dc_ref a = any(g);
    const dc_ref s = dc_graph_reduce(g->f, DC_OP_SUM, a, all_axes(at(g, a)));
    return op2(g, DC_OP_LT, s, dc_graph_like(g->f, s, rng_uniform(g->r, -1, 1)));
}

static void branch(gen *g)
{
    const int n = 1 + rng_below(g->r, 4), nresult = 1 + rng_below(g->r, 2);
    dc_ref in[8] = {random_flag(g)};
    dc_type t[8], result[2];
    uint32_t body[2];
    for (int i = 0; i < n; i++) {
        in[1 + i] = any(g);
        t[i] = dc_node_type(g->f, in[1 + i]);
    }
    for (int i = 0; i < nresult; i++)
        result[i] = t[rng_below(g->r, n)];
    for (int side = 0; side < 2; side++) {
        gen b = begin_body(g, "side");
        for (int i = 0; i < n; i++)
            param(&b, &t[i]);
        const int nop = rng_below(g->r, g->o->n + 1);
        for (int i = 0; i < nop; i++)
            add_operation(&b);
        for (int i = 0; i < nresult; i++)
            DC_PUSH(b.f->result, of_type(&b, &result[i]));
        body[side] = end_body(&b);
    }
    const dc_ref made = dc_graph_branch(g->f, body[0], body[1], in, 1 + n);
    for (int i = 0; i < nresult; i++)
        put(g, dc_graph_pick(g->f, made, i));
}

static void control(gen *g)
{
    if (rng_below(g->r, 4) == 0)
        branch(g);
    else
        loop(g);
}

dc_func *smoothgen(dc_module *m, rng *r, const smoothgen_opts *o)
{
    gen g = {.r = r, .o = o, .f = dc_func_new(m, "f"), .depth = o->depth};
    const int n = 3 + rng_below(r, 4);
    for (int i = 0; i < n; i++) {
        const dc_type t = random_type(r);
        param(&g, &t);
    }
    const uint32_t before = g.pool.n;
    control(&g);
    if (rng_below(r, 2))
        add_operation(&g);
    for (uint32_t i = before; i < g.pool.n; i++)
        DC_PUSH(g.f->result, g.pool.at[i]);
    if (g.f->result.n == 0)
        DC_PUSH(g.f->result, g.pool.at[0]);
    return g.f;
}

/* ---- unrolled ---- */

static void unroll(dc_func *f, const dc_func *from, const dc_ref *param, dc_ref *result);

static dc_ref choose(dc_func *f, dc_ref flag, dc_ref a, dc_ref b)
{
    const dc_node n = *dc_node_at(f, a);
    const dc_ref all = dc_graph_unreduce(f, flag, (1u << n.rank) - 1, n.rank, n.dim);
    return dc_graph_op3(f, DC_OP_WHERE, all, a, b);
}

static dc_ref row_of(dc_func *f, dc_ref x, int64_t i)
{
    const dc_node n = *dc_node_at(f, x);
    int64_t start[DC_MAX_RANK] = {i}, step[DC_MAX_RANK], dim[DC_MAX_RANK] = {1};
    for (int k = 0; k < n.rank; k++) {
        step[k] = 1;
        dim[k] = k == 0 ? 1 : n.dim[k];
    }
    return dc_graph_reshape(f, dc_graph_slice(f, x, start, step, dim), n.rank - 1, n.dim + 1);
}

/* stack with another row i: the stack has zeros there. */
static dc_ref with_row(dc_func *f, dc_ref stack, dc_ref row, int64_t i)
{
    const dc_node n = *dc_node_at(f, stack);
    int64_t lo[DC_MAX_RANK] = {i}, step[DC_MAX_RANK], dim[DC_MAX_RANK] = {1};
    for (int k = 0; k < n.rank; k++) {
        step[k] = 1;
        dim[k] = k == 0 ? 1 : n.dim[k];
    }
    const dc_ref one = dc_graph_reshape(f, row, n.rank, dim);
    return dc_graph_op2(f, DC_OP_ADD, stack, dc_graph_pad(f, one, lo, step, n.dim, 0));
}

static void unroll_loop(dc_func *f, const dc_func *from, const dc_node *n, const dc_ref *in,
                        dc_ref *out)
{
    const dc_loop l = dc_loop_of(n);
    const dc_func *body = dc_body_at(from->module, l.body);
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    dc_ref param[64], result[64], row[64];
    int64_t most = l.n;
    if (l.flags & DC_LOOP_LIMIT)
        most = dc_max_i64(0, dc_min_i64(most, (int32_t)dc_node_at(from, n->in[0])->attr[0]));
    for (int k = 0; k < l.nconst + l.ncarry; k++)
        param[1 + k] = in[dc_loop_const(&l) + k];
    for (int k = 0; k < l.ncarry; k++)
        out[k] = in[dc_loop_carry(&l) + k];
    for (int k = 0; k < l.ny; k++) {
        dc_type t = dc_node_type(body, body->result.at[l.ncarry + k]);
        t = dc_type_stacked(&t, l.n);
        out[l.ncarry + k] = dc_graph_const(f, &t, 0);
        for (int64_t i = most; i < l.n; i++)
            out[l.ncarry + k] =
                with_row(f, out[l.ncarry + k], row_of(f, in[dc_loop_y(&l) + k], i), i);
    }
    dc_ref alive = 0;
    for (int64_t step = 0; step < most; step++) {
        const int64_t i = l.flags & DC_LOOP_REVERSE ? most - 1 - step : step;
        param[0] = dc_graph_const(f, &i32, (double)i);
        for (int k = 0; k < l.ncarry; k++)
            param[1 + l.nconst + k] = out[k];
        for (int k = 0; k < l.nx; k++)
            param[1 + l.nconst + l.ncarry + k] = row_of(f, in[dc_loop_x(&l) + k], i);
        unroll(f, body, param, result);
        if (l.flags & DC_LOOP_TEST)
            alive = alive == 0 ? out[0] : dc_graph_op2(f, DC_OP_AND, alive, out[0]);
        for (int k = 0; k < l.ncarry; k++)
            out[k] = alive == 0 ? result[k] : choose(f, alive, result[k], out[k]);
        for (int k = 0; k < l.ny; k++) {
            row[k] = result[l.ncarry + k];
            if (alive != 0)
                row[k] = choose(f, alive, row[k], row_of(f, in[dc_loop_y(&l) + k], i));
            out[l.ncarry + k] = with_row(f, out[l.ncarry + k], row[k], i);
        }
    }
}

static void unroll(dc_func *f, const dc_func *from, const dc_ref *param, dc_ref *result)
{
    dc_arena *a = &f->module->arena;
    dc_ref *map = DC_NEW_ARRAY(a, dc_ref, from->node.n), in[DC_MAX_OPERANDS], other[64];
    dc_ref **many = DC_NEW_ARRAY(a, dc_ref *, from->node.n);
    for (uint32_t i = 0; i < from->param.n; i++)
        map[from->param.at[i]] = param[i];
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        if (n->op == DC_OP_PARAM)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        if (n->op == DC_OP_PICK) {
            map[r] = many[n->in[0]][n->attr[0]];
        } else if (n->op == DC_OP_LOOP) {
            many[r] = DC_NEW_ARRAY(a, dc_ref, 64);
            unroll_loop(f, from, n, in, many[r]);
        } else if (n->op == DC_OP_BRANCH) {
            const dc_func *yes = dc_body_at(from->module, n->attr[0]);
            many[r] = DC_NEW_ARRAY(a, dc_ref, 64);
            unroll(f, yes, in + 1, many[r]);
            unroll(f, dc_body_at(from->module, n->attr[1]), in + 1, other);
            for (uint32_t i = 0; i < yes->result.n; i++)
                many[r][i] = choose(f, in[0], many[r][i], other[i]);
        } else {
            map[r] = dc_graph_again(f, from, r, in);
        }
    }
    for (uint32_t i = 0; i < from->result.n; i++)
        result[i] = map[from->result.at[i]];
}

dc_func *smoothgen_unrolled(const dc_func *from)
{
    dc_func *f = dc_func_new(from->module, "unrolled");
    dc_ref result[64];
    for (uint32_t i = 0; i < from->param.n; i++) {
        const dc_type t = dc_node_type(from, from->param.at[i]);
        dc_graph_param(f, &t, NULL);
    }
    DC_ASSERT(from->result.n <= DC_COUNTOF(result), "%u results", from->result.n);
    unroll(f, from, f->param.at, result);
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(f->result, result[i]);
    return f;
}
