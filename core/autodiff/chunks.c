#include "core/autodiff/chunks.h"

#include "core/base/extent.h"

#include <string.h>

enum { FEW = 4 }; /* iterations that need no chunks */

typedef struct chunks {
    dc_func *f;
    const dc_loop *l;
    const dc_ref *in;
    const dc_func *body;
    int64_t k, c, rest; /* c chunks of k iterations, then the rest */
    uint32_t flags;     /* of the outer loop, besides its own */
} chunks;

static dc_ref param_like(dc_func *to, const dc_func *from, dc_ref r)
{
    const dc_type t = dc_node_type(from, r);
    return dc_graph_param(to, &t, NULL);
}

static dc_ref i32_const(dc_func *f, int64_t v)
{
    const dc_type t = dc_type_make(DC_I32, 0, NULL);
    return dc_graph_const(f, &t, (double)v);
}

/* A whole number of chunks where that changes their length by no more than half. */
static void choose_length(chunks *x)
{
    const int64_t n = x->l->n;
    int64_t root = 1;
    while (root * root < n)
        root++;
    x->k = root;
    for (int64_t k = root; k <= root + root / 2; k++)
        if (n % k == 0) {
            x->k = k;
            break;
        }
    x->c = n / x->k;
    x->rest = n - x->c * x->k;
}

static bool has_room(const chunks *x)
{
    for (int i = 0; i < x->l->nx; i++)
        if (dc_node_at(x->f, x->in[dc_loop_x(x->l) + i])->rank == DC_MAX_RANK)
            return false;
    for (int i = 0; i < x->l->ny; i++)
        if (dc_node_at(x->body, x->body->result.at[x->l->ncarry + i])->rank > DC_MAX_RANK - 2)
            return false;
    return x->l->nconst < DC_MAX_OPERANDS && dc_loop_operands(x->l) < DC_MAX_OPERANDS;
}

static void one_loop(const chunks *x, dc_ref *result)
{
    dc_loop l = *x->l;
    l.flags |= DC_LOOP_REMAT;
    const dc_ref loop = dc_graph_loop(x->f, &l, x->in);
    for (int i = 0; i < l.ncarry + l.ny; i++)
        result[i] = dc_graph_pick(x->f, loop, i);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static uint32_t add_body(dc_func *b)
{
    const uint32_t body = dc_body_add(b->module, b);
    dc_func_drop(b);
    return body;
}

/* The body, whose constant 1 is the number of the first element. */
static uint32_t inner_body(const chunks *x)
{
    dc_func *b = dc_func_new(x->f->module, x->body->name);
    const dc_func *body = x->body;
    dc_ref param[DC_MAX_OPERANDS + 1], result[DC_MAX_OPERANDS];
    const dc_ref i = param_like(b, body, body->param.at[0]);
    param[0] = dc_graph_op2(b, DC_OP_ADD, i, param_like(b, body, body->param.at[0]));
    for (uint32_t p = 1; p < body->param.n; p++)
        param[p] = param_like(b, body, body->param.at[p]);
    dc_graph_inline(b, body, param, result);
    for (uint32_t r = 0; r < body->result.n; r++)
        DC_PUSH(b->result, result[r]);
    return add_body(b);
}

/* The inner loop in f over n elements from `first`; in: constants, carries, xs of these elements. */
static dc_ref inner_loop(const chunks *x, dc_func *f, uint32_t body, dc_ref first, int64_t n,
                         const dc_ref *in)
{
    dc_loop l = *x->l;
    dc_ref all[DC_MAX_OPERANDS] = {first};
    l.body = body;
    l.n = n;
    l.flags &= ~(uint32_t)DC_LOOP_REMAT;
    l.nconst++;
    for (int i = 1; i < dc_loop_operands(&l); i++)
        all[i] = in[i - 1];
    return dc_graph_loop(f, &l, all);
}

static void rows_of_chunk(const dc_func *f, dc_ref stack, int64_t n, dc_type *out)
{
    const dc_type t = dc_node_type(f, stack);
    int64_t dim[DC_MAX_RANK];
    memcpy(dim, t.dim, (size_t)t.rank * sizeof *dim);
    dim[0] = n;
    *out = dc_type_make((dc_dtype)t.dtype, t.rank, dim);
}

/* Constants, carries, a chunk of each x: the inner loop over it. */
static uint32_t outer_body(const chunks *x, uint32_t inner)
{
    dc_func *b = dc_func_new(x->f->module, "chunk");
    const int ncarry = x->l->ncarry, before = 1 + x->l->nconst + ncarry;
    dc_ref in[DC_MAX_OPERANDS];
    const dc_ref i = param_like(b, x->body, x->body->param.at[0]);
    for (int p = 1; p < before + x->l->nx; p++) {
        dc_type t = dc_node_type(x->f, x->in[p - 1]);
        if (p >= before)
            rows_of_chunk(x->f, x->in[p - 1], x->k, &t);
        in[p - 1] = dc_graph_param(b, &t, NULL);
    }
    const dc_ref first = dc_graph_op2(b, DC_OP_MUL, i, i32_const(b, x->k));
    const dc_ref loop = inner_loop(x, b, inner, first, x->k, in);
    for (int r = 0; r < ncarry + x->l->ny; r++)
        DC_PUSH(b->result, dc_graph_pick(b, loop, r));
    return add_body(b);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static dc_ref slice_rows(dc_func *f, dc_ref a, int64_t first, int64_t n)
{
    const dc_node s = *dc_node_at(f, a);
    int64_t start[DC_MAX_RANK] = {first}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        step[i] = 1;
        dim[i] = i == 0 ? n : s.dim[i];
    }
    return dc_graph_slice(f, a, start, step, dim);
}

/* [c k, ...] as [c, k, ...], or the other way round. */
static dc_ref split_rows(dc_func *f, dc_ref a, int64_t c, int64_t k)
{
    const dc_node s = *dc_node_at(f, a);
    int64_t dim[DC_MAX_RANK] = {c, k};
    memcpy(dim + 2, s.dim + 1, (size_t)(s.rank - 1) * sizeof *dim);
    return dc_graph_reshape(f, a, s.rank + 1, dim);
}

static dc_ref join_rows(dc_func *f, dc_ref a)
{
    const dc_node s = *dc_node_at(f, a);
    int64_t dim[DC_MAX_RANK] = {s.dim[0] * s.dim[1]};
    memcpy(dim + 1, s.dim + 2, (size_t)(s.rank - 2) * sizeof *dim);
    return dc_graph_reshape(f, a, s.rank - 1, dim);
}

/* As concatenations are written: padded with what changes nothing, and put together. */
static dc_ref concat_rows(dc_func *f, dc_ref a, dc_ref b)
{
    const dc_node s = *dc_node_at(f, a), t = *dc_node_at(f, b);
    const dc_dtype type = (dc_dtype)s.dtype;
    const bool flt = dc_dtype_is_float(type);
    const uint64_t fill = dc_bits_of(type, flt ? -0.0 : 0);
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        step[i] = 1;
        dim[i] = i == 0 ? s.dim[0] + t.dim[0] : s.dim[i];
    }
    a = dc_graph_pad(f, a, lo, step, dim, fill);
    lo[0] = s.dim[0];
    return dc_graph_op2(f, flt ? DC_OP_ADD : DC_OP_OR, a, dc_graph_pad(f, b, lo, step, dim, fill));
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* in: operands of the loop, whose carries are replaced by those behind the chunks; y: rows, 0 none. */
static void outer_loop(const chunks *x, uint32_t inner, dc_ref *in, dc_ref *y)
{
    dc_loop l = {.body = outer_body(x, inner),
                 .n = x->c,
                 .flags = x->l->flags | x->flags,
                 .nconst = x->l->nconst,
                 .ncarry = x->l->ncarry,
                 .nx = x->l->nx,
                 .ny = x->l->ny};
    dc_ref own[DC_MAX_OPERANDS];
    for (int i = 0; i < dc_loop_operands(&l); i++)
        own[i] = i < dc_loop_x(&l) || (l.flags & DC_LOOP_ROWS) != 0
                     ? in[i]
                     : split_rows(x->f, slice_rows(x->f, in[i], 0, x->c * x->k), x->c, x->k);
    const dc_ref loop = dc_graph_loop(x->f, &l, own);
    for (int i = 0; i < l.ncarry; i++)
        in[dc_loop_carry(&l) + i] = dc_graph_pick(x->f, loop, i);
    for (int i = 0; i < l.ny; i++)
        y[i] = dc_graph_pick(x->f, loop, l.ncarry + i);
    for (int i = 0; i < l.ny && (l.flags & DC_LOOP_ROWS) == 0; i++)
        y[i] = join_rows(x->f, y[i]);
}

static void last_loop(const chunks *x, uint32_t inner, dc_ref *in, dc_ref *y)
{
    dc_ref own[DC_MAX_OPERANDS];
    for (int i = 0; i < dc_loop_operands(x->l); i++)
        own[i] = i < dc_loop_x(x->l) ? in[i] : slice_rows(x->f, in[i], x->c * x->k, x->rest);
    const dc_ref first = i32_const(x->f, x->c * x->k);
    const dc_ref loop = inner_loop(x, x->f, inner, first, x->rest, own);
    for (int i = 0; i < x->l->ncarry; i++)
        in[dc_loop_carry(x->l) + i] = dc_graph_pick(x->f, loop, i);
    for (int i = 0; i < x->l->ny; i++)
        y[i] = dc_graph_pick(x->f, loop, x->l->ncarry + i);
}

void dc_chunks_loop(dc_func *f, const dc_loop *l, const dc_ref *in, dc_ref *result)
{
    chunks x = {
        .f = f, .l = l, .in = in, .body = dc_body_at(f->module, l->body), .flags = DC_LOOP_REMAT};
    dc_ref own[DC_MAX_OPERANDS], y[DC_MAX_OPERANDS], last[DC_MAX_OPERANDS];
    if (dc_loop_may_end(l) || dc_extent_is(l->n) || l->n < FEW || !has_room(&x)) {
        one_loop(&x, result);
        return;
    }
    choose_length(&x);
    const uint32_t inner = inner_body(&x);
    const bool reverse = (l->flags & DC_LOOP_REVERSE) != 0;
    memcpy(own, in, (size_t)dc_loop_operands(l) * sizeof *own);
    if (reverse && x.rest > 0)
        last_loop(&x, inner, own, last);
    outer_loop(&x, inner, own, y);
    if (!reverse && x.rest > 0)
        last_loop(&x, inner, own, last);
    for (int i = 0; i < l->ncarry; i++)
        result[i] = own[dc_loop_carry(l) + i];
    for (int i = 0; i < l->ny; i++)
        result[l->ncarry + i] = x.rest > 0 ? concat_rows(f, y[i], last[i]) : y[i];
}

void dc_chunks_split(dc_func *f, const dc_loop *l, const dc_ref *in, int64_t k, dc_ref *result)
{
    const chunks x = {.f = f,
                      .l = l,
                      .in = in,
                      .body = dc_body_at(f->module, l->body),
                      .k = k,
                      .c = l->n / k,
                      .flags = DC_LOOP_ROWS};
    dc_ref own[DC_MAX_OPERANDS];
    memcpy(own, in, (size_t)dc_loop_operands(l) * sizeof *own);
    outer_loop(&x, inner_body(&x), own, result + l->ncarry);
    memcpy(result, own + dc_loop_carry(l), (size_t)l->ncarry * sizeof *result);
}
