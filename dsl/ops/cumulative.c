/*
 * Running reductions along an axis: cumsum, cumprod, cummax, cummin, logcumsumexp.
 *
 *   x:cumsum(2)   x:cumsum "time"   x:cumsum { axis = -1, reverse = true }
 *
 * The axis is in the middle of three, and is cut into blocks of RADIX elements. Element i of all blocks is one slice,
 * combined with what the slice before it has become; the last ones are the totals of the blocks, which are run over in
 * the same way, and each block is combined with the total of those before it (Blelloch 1990 with a larger radix). So an
 * element is combined about twice, however long the axis is, and each slice is stored straight to its place.
 *
 * An axis of a few elements is reduced over a second copy of itself, of which those behind each element are left out:
 * its square is less work than slices are.
 *
 * Equal largest elements share the gradient of cummax equally, as that of max. It is given here, as a running sum that
 * begins anew where the maximum changes.
 */
#include "core/base/extent.h"
#include "core/graph/complex.h"
#include "core/graph/custom.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <math.h>
#include <string.h>

enum { RADIX = 16, SHORT = 8 };

typedef struct running {
    int axis;
    bool reverse;
} running;

/* What runs along the axis: values, and for sums that begin anew the keys of their elements. */
typedef struct item {
    dc_val v, key;
} item;

typedef struct scan scan;
typedef dc_status combine_fn(const scan *s, const item *a, const item *b, dc_val *out);

struct scan {
    dc_job *j;
    dc_func *f;
    dc_op reduction, op; /* its identity; as an element-wise operation */
    combine_fn *combine;
    bool keyed, reverse;
};

/* ---- pieces of the middle axis --------------------------------------------------------------- */

/* n elements from number `first` on, `step` apart. */
static dc_val part(const scan *s, dc_val a, int64_t first, int64_t step, int64_t n)
{
    const int64_t dim[3] = {a.type.dim[0], n, a.type.dim[2]};
    const dc_ref r = dc_graph_slice(s->f, a.ref, (const int64_t[]){0, first, 0},
                                    (const int64_t[]){1, step, 1}, dim);
    return (dc_val){r, dc_type_make((dc_dtype)a.type.dtype, 3, dim)};
}

static item parts(const scan *s, const item *a, int64_t first, int64_t step, int64_t n)
{
    item out = {.v = part(s, a->v, first, step, n)};
    if (s->keyed)
        out.key = part(s, a->key, first, step, n);
    return out;
}

/* It grows to n; its elements are from number `first` on, `step` apart, and `fill` is elsewhere. */
static dc_val spread(const scan *s, dc_val a, int64_t first, int64_t step, int64_t n, uint64_t fill)
{
    const int64_t dim[3] = {a.type.dim[0], n, a.type.dim[2]};
    const dc_ref r = dc_graph_pad(s->f, a.ref, (const int64_t[]){0, first, 0},
                                  (const int64_t[]){1, step, 1}, dim, fill);
    return (dc_val){r, dc_type_make((dc_dtype)a.type.dtype, 3, dim)};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What becomes of the parts of an axis of n elements, each padded with what changes nothing; see build_concat. */
typedef struct whole {
    int64_t n;
    dc_val piece[2 * RADIX];
    int npiece;
} whole;

static void add_piece(const scan *s, whole *w, dc_val v, int64_t first, int64_t step)
{
    const dc_dtype t = (dc_dtype)v.type.dtype;
    const uint64_t fill = dc_dtype_is_float(t) ? dc_bits_of(t, -0.0) : 0; /* x + -0 is x */
    w->piece[w->npiece++] = spread(s, v, first, step, w->n, fill);
}

static dc_status join(const scan *s, whole *w, dc_val *out)
{
    const bool flt = dc_dtype_is_float((dc_dtype)w->piece[0].type.dtype);
    for (int n = w->npiece; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n; i += 2) {
            dc_val *to = &w->piece[i / 2];
            *to = w->piece[i];
            if (i + 1 < n)
                DC_TRY(dc_ops_2(s->j, s->f, flt ? DC_OP_ADD : DC_OP_OR, w->piece[i],
                                w->piece[i + 1], to));
        }
    *out = w->piece[0];
    return DC_OK;
}

static dc_status run(const scan *s, const item *a, dc_val *out);
static combine_fn by_exp;

/* Of each block the total of those before it; the first one has none. */
static item before(const scan *s, const item *total)
{
    const int64_t m = total->v.type.dim[1];
    const uint64_t none = dc_op_identity(s->reduction, (dc_dtype)total->v.type.dtype);
    const item a = parts(s, total, 0, 1, m - 1);
    item out = {.v = spread(s, a.v, 1, 1, m, none)};
    if (s->keyed)
        out.key = spread(s, a.key, 1, 1, m, 0);
    return out;
}

/* m blocks of b elements, then fewer than b. */
static dc_status run_blocks(const scan *s, const item *a, int b, int64_t m, dc_val *out)
{
    item t[RADIX], had, x;
    whole w = {.n = a->v.type.dim[1]};
    t[0] = parts(s, a, 0, b, m);
    for (int i = 1; i < b; i++) {
        t[i] = parts(s, a, i, b, m);
        DC_TRY(s->combine(s, &t[i - 1], &t[i], &t[i].v));
    }
    if (m > 1) {
        DC_TRY(run(s, &t[b - 1], &t[b - 1].v));
        had = before(s, &t[b - 1]);
        for (int i = 0; i < b - 1; i++)
            DC_TRY(s->combine(s, &had, &t[i], &t[i].v));
    }
    for (int i = 0; i < b; i++)
        add_piece(s, &w, t[i].v, i, b);
    had = parts(s, &t[b - 1], m - 1, 1, 1);
    for (int64_t i = m * b; i < w.n; i++, had = x) {
        x = parts(s, a, i, 1, 1);
        DC_TRY(s->combine(s, &had, &x, &x.v));
        add_piece(s, &w, x.v, i, 1);
    }
    return join(s, &w, out);
}

/* [p, n, q] as [p, 1, n, q] and as [p, n, 1, q]. */
static void twice(const scan *s, dc_val a, dc_val *inner, dc_val *outer)
{
    const int64_t *d = a.type.dim;
    const dc_dtype t = (dc_dtype)a.type.dtype;
    const dc_type in = dc_type_make(t, 4, (const int64_t[]){d[0], 1, d[1], d[2]});
    const dc_type out = dc_type_make(t, 4, (const int64_t[]){d[0], d[1], 1, d[2]});
    *inner = (dc_val){dc_graph_reshape(s->f, a.ref, 4, in.dim), in};
    *outer = (dc_val){dc_graph_reshape(s->f, a.ref, 4, out.dim), out};
}

/* Each element is reduced with those before it, of the same key. */
static dc_status run_short(const scan *s, const item *a, dc_val *out)
{
    const int64_t n = a->v.type.dim[1];
    const dc_dtype t = (dc_dtype)a->v.type.dtype;
    const dc_type square = dc_type_make(DC_I32, 3, (const int64_t[]){n, n, 1});
    const dc_type all =
        dc_type_make(t, 4, (const int64_t[]){a->v.type.dim[0], n, n, a->v.type.dim[2]});
    const dc_type one = dc_type_scalar(t);
    dc_val i, k, mask, none, v;
    DC_TRY(dc_build_iota(s->j, s->f, &square, 0, &i));
    DC_TRY(dc_build_iota(s->j, s->f, &square, 1, &k));
    DC_TRY(dc_ops_2(s->j, s->f, DC_OP_LE, k, i, &mask));
    if (s->keyed) {
        twice(s, a->key, &k, &i);
        DC_TRY(dc_ops_2(s->j, s->f, DC_OP_EQ, k, i, &k));
        DC_TRY(dc_ops_2(s->j, s->f, DC_OP_AND, mask, k, &mask));
    }
    twice(s, a->v, &v, &i);
    DC_TRY(dc_build_expand(s->j, s->f, v, &all, &v));
    DC_TRY(dc_build_bits(s->j, s->f, &one, dc_op_identity(s->reduction, t), &none));
    DC_TRY(dc_ops_where(s->j, s->f, mask, v, none, &v));
    return dc_build_reduce(s->j, s->f, s->reduction, v, 1u << 2, false, out);
}

/* Not a product, whose gradient has as many steps as the blocks have, nor what is no reduction. */
static bool is_short(const scan *s, dc_val a)
{
    return a.type.dim[1] <= SHORT && s->combine != by_exp && s->reduction != DC_OP_PROD;
}

static dc_status run(const scan *s, const item *a, dc_val *out)
{
    const int64_t n = a->v.type.dim[1], b = n < RADIX ? n : RADIX;
    *out = a->v;
    if (n == 1)
        return DC_OK;
    return is_short(s, a->v) ? run_short(s, a, out) : run_blocks(s, a, (int)b, n / b, out);
}

static dc_status flip(const scan *s, dc_val *a)
{
    return s->reverse ? dc_build_flip(s->j, s->f, *a, 1u << 1, a) : DC_OK;
}

static dc_status run_along(const scan *s, item a, dc_val *out)
{
    DC_TRY(flip(s, &a.v));
    if (s->keyed)
        DC_TRY(flip(s, &a.key));
    DC_TRY(run(s, &a, out));
    return flip(s, out);
}

/* ---- how two are combined -------------------------------------------------------------------- */

static dc_status by_op(const scan *s, const item *a, const item *b, dc_val *out)
{
    return dc_ops_2(s->j, s->f, s->op, a->v, b->v, out);
}

/* A sum that begins anew with each key. */
static dc_status by_key(const scan *s, const item *a, const item *b, dc_val *out)
{
    dc_val same, zero, had;
    DC_TRY(dc_ops_2(s->j, s->f, DC_OP_EQ, a->key, b->key, &same));
    DC_TRY(dc_ops_number(s->j, s->f, a->v, 0, &zero));
    DC_TRY(dc_ops_where(s->j, s->f, same, a->v, zero, &had));
    return dc_ops_2(s->j, s->f, DC_OP_ADD, had, b->v, out);
}

/*
 * log(exp(a) + exp(b)). The larger one is taken out where it is finite, as a constant for gradients, out of which it
 * cancels. Where nothing is left, since both are -inf, the gradient is 0.
 */
static dc_status by_exp(const scan *s, const item *a, const item *b, dc_val *out)
{
    dc_job *j = s->j;
    dc_func *f = s->f;
    dc_val top, size, inf, zero, one, none, test, sum, e;
    DC_TRY(dc_ops_number(j, f, a->v, INFINITY, &inf));
    DC_TRY(dc_ops_number(j, f, a->v, -INFINITY, &none));
    DC_TRY(dc_ops_number(j, f, a->v, 0, &zero));
    DC_TRY(dc_ops_number(j, f, a->v, 1, &one));
    DC_TRY(dc_ops_2(j, f, DC_OP_MAX, a->v, b->v, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_STOP, top, &top));
    DC_TRY(dc_ops_1(j, f, DC_OP_ABS, top, &size));
    DC_TRY(dc_ops_2(j, f, DC_OP_LT, size, inf, &test));
    DC_TRY(dc_ops_where(j, f, test, top, zero, &top));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, a->v, top, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &sum));
    DC_TRY(dc_ops_2(j, f, DC_OP_SUB, b->v, top, &e));
    DC_TRY(dc_ops_1(j, f, DC_OP_EXP, e, &e));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, sum, e, &sum));
    DC_TRY(dc_ops_2(j, f, DC_OP_EQ, sum, zero, &test));
    DC_TRY(dc_ops_where(j, f, test, one, sum, &sum));
    DC_TRY(dc_ops_1(j, f, DC_OP_LOG, sum, &sum));
    DC_TRY(dc_ops_2(j, f, DC_OP_ADD, sum, top, &sum));
    return dc_ops_where(j, f, test, none, sum, out);
}

/* ---- running maxima -------------------------------------------------------------------------- */

/*
 * What element k gets of the cotangent of y: of each y that it is, from its own on, the share. As many share as there
 * are elements up to there that are y.
 */
static dc_status winners_gradient(const scan *s, const dc_custom *c, dc_val x, dc_val *out)
{
    scan sum = {s->j, s->f, DC_OP_SUM, .combine = by_key, .keyed = true, .reverse = s->reverse};
    const dc_val y = {c->y_again, x.type}, dy = {c->dy, x.type};
    dc_val won, count, share, zero;
    DC_TRY(dc_ops_2(s->j, s->f, DC_OP_EQ, x, y, &won));
    DC_TRY(dc_build_cast(s->j, s->f, won, DC_I32, &count));
    DC_TRY(run_along(&sum, (item){count, y}, &count));
    DC_TRY(dc_build_cast(s->j, s->f, count, (dc_dtype)x.type.dtype, &count));
    DC_TRY(dc_ops_2(s->j, s->f, DC_OP_DIV, dy, count, &share));
    sum.reverse = !s->reverse;
    DC_TRY(run_along(&sum, (item){share, y}, &share));
    DC_TRY(dc_ops_number(s->j, s->f, x, 0, &zero));
    return dc_ops_where(s->j, s->f, won, share, zero, out);
}

static dc_status extreme(const scan *s, dc_val a, dc_val *out)
{
    dc_custom c;
    dc_val dx;
    DC_TRY(run_along(s, (item){.v = a}, out));
    if (!dc_dtype_is_float((dc_dtype)a.type.dtype))
        return DC_OK;
    dc_custom_given(s->f, &a.ref, 1, out->ref, &c);
    DC_TRY(winners_gradient(s, &c, a, &dx));
    return dc_custom_end(s->j, &c, &dx.ref, &out->ref);
}

/* ---- the operations -------------------------------------------------------------------------- */

typedef enum kind { SUM, PROD, MAX, MIN, LOGSUMEXP } kind;

static dc_status run_kind(dc_job *j, dc_func *f, kind k, bool reverse, dc_val a, dc_val *out)
{
    static const dc_op reduction[] = {DC_OP_SUM, DC_OP_PROD, DC_OP_MAXR, DC_OP_MINR};
    const dc_op r = reduction[k == LOGSUMEXP ? MAX : k]; /* -inf changes nothing */
    const bool plain = k != LOGSUMEXP;
    const scan s = {.j = j,
                    .f = f,
                    .reduction = r,
                    .op = plain ? (dc_op)dc_op_row_of(r)->combine : 0,
                    .combine = plain ? by_op : by_exp,
                    .reverse = reverse};
    return k == MAX || k == MIN ? extreme(&s, a, out) : run_along(&s, (item){.v = a}, out);
}

/* The dtype that the reduction gives. */
static dc_status widened(dc_job *j, dc_func *f, kind k, dc_val a, dc_val *out)
{
    dc_dtype t = (dc_dtype)a.type.dtype;
    if (k == SUM || k == PROD)
        DC_TRY(dc_infer_dtype(j, k == SUM ? DC_OP_SUM : DC_OP_PROD, &a.type, 1, NULL, &t));
    *out = a;
    return t == (dc_dtype)a.type.dtype ? DC_OK : dc_build_cast(j, f, a, t, out);
}

static dc_status build(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                       dc_val *out);

/* Along the bound: what changes nothing stands behind the size. */
static dc_status build_bounded(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                               dc_val *out)
{
    const dc_dtype t = (dc_dtype)in[0].type.dtype;
    const dc_op op = k == SUM    ? DC_OP_SUM
                     : k == PROD ? DC_OP_PROD
                     : k == MIN  ? DC_OP_MINR
                                 : DC_OP_MAXR;
    dc_val all;
    DC_TRY(
        dc_build_at_bound(j, f, in[0], 1u << x->axis, dc_value_of(t, dc_op_identity(op, t)), &all));
    DC_TRY(build(j, f, k, x, &all, out));
    DC_TRY(dc_build_up_to(j, f, *out, in[0].type.dim, out));
    memcpy(out->type.name, in[0].type.name, sizeof out->type.name);
    return DC_OK;
}

static dc_status build(dc_job *j, dc_func *f, kind k, const running *x, const dc_val *in,
                       dc_val *out)
{
    const dc_type t = in[0].type;
    int64_t first = 1, after = 1;
    dc_val a;
    if (k == SUM && dc_complex_is(&in[0])) {
        dc_val part[2];
        for (int i = 0; i < 2; i++) {
            const dc_val of = dc_complex_part(f, in[0], i);
            DC_TRY(build(j, f, k, x, &of, &part[i]));
        }
        return dc_complex_join(j, f, part[0], part[1], out);
    }
    if (dc_complex_is(&in[0]))
        return dc_fail(j, DC_ERR_DTYPE,
                       &(dc_fact){.type = {t}, .word = {"a real number"}, .operand = 1});
    if (dc_build_is_bounded(&t, 1u << x->axis))
        return build_bounded(j, f, k, x, in, out);
    if (k == LOGSUMEXP && !dc_dtype_is_float((dc_dtype)t.dtype)) /* told of the operand as it is */
        return dc_ops_1(j, f, DC_OP_EXP, in[0], out);
    DC_TRY(widened(j, f, k, in[0], &a));
    if (dc_type_count(&t) > 0) {
        for (int i = 0; i < t.rank; i++)
            if (i < x->axis)
                first = dc_extent_mul(j->extents, first, t.dim[i]);
            else if (i > x->axis)
                after = dc_extent_mul(j->extents, after, t.dim[i]);
        if (first == DC_EXTENT_NONE || after == DC_EXTENT_NONE)
            return dc_fail(j, DC_ERR_EXTENT, &(dc_fact){.type = {t}, .operand = 1});
        const dc_type flat = dc_type_make((dc_dtype)a.type.dtype, 3,
                                          (const int64_t[]){first, t.dim[x->axis], after});
        a = (dc_val){dc_graph_reshape(f, a.ref, 3, flat.dim), flat};
        DC_TRY(run_kind(j, f, k, x->reverse, a, &a));
        a.ref = dc_graph_reshape(f, a.ref, t.rank, t.dim);
    }
    out->ref = a.ref;
    const uint8_t dtype = a.type.dtype;
    out->type = t;
    out->type.dtype = dtype;
    return DC_OK;
}

static dc_status build_sum(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, SUM, arg, in, out);
}

static dc_status build_prod(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, PROD, arg, in, out);
}

static dc_status build_max(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, MAX, arg, in, out);
}

static dc_status build_min(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return build(j, f, MIN, arg, in, out);
}

static dc_status build_logsumexp(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    return build(j, f, LOGSUMEXP, arg, in, out);
}

/* ---- bindings -------------------------------------------------------------------------------- */

static int l_running(lua_State *L);

static int l_interleave(lua_State *L);

static const struct row {
    dc_binding bound;
    dc_build_fn *build;
} rows[] = {
    {{"interleave", l_interleave, DC_ANY, DC_IN_LIBRARY}, NULL},
    {{"cumsum", l_running, 2, DC_IN_BOTH}, build_sum},
    {{"cumprod", l_running, 2, DC_IN_BOTH}, build_prod},
    {{"cummax", l_running, 2, DC_IN_BOTH}, build_max},
    {{"cummin", l_running, 2, DC_IN_BOTH}, build_min},
    {{"logcumsumexp", l_running, 2, DC_IN_BOTH}, build_logsumexp},
};

/* { axis = .., reverse = .. } at 2 gives way to the axis. */
static bool take_reverse(lua_State *L, dc_dsl *d, const char *op)
{
    if (lua_type(L, 2) != LUA_TTABLE || lua_rawlen(L, 2) > 0)
        return false;
    dc_args_options(L, d, 2, op, (const char *const[]){"axis", "reverse", NULL});
    if (lua_getfield(L, 2, "reverse") != LUA_TNIL && lua_type(L, -1) != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "reverse must be true or false, not %s",
                        dc_handle_describe(L, -1));
    const bool reverse = lua_toboolean(L, -1);
    lua_getfield(L, 2, "axis");
    lua_replace(L, 2);
    lua_settop(L, 2);
    return reverse;
}

static int l_running(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const struct row *r = (const struct row *)dc_binding_of(L); /* its first member */
    const char *name = r->bound.name;
    static const int at[1] = {1};
    const dc_handle *h = dc_handle_check(L, d, 1, name);
    running x = {.axis = -1};
    bool keep;
    lua_settop(L, 2);
    x.reverse = take_reverse(L, d, name);
    const uint32_t mask = dc_args_axes(L, d, 2, h, name, &keep);
    if (mask == 0 || (mask & (mask - 1)) != 0)
        dc_error_raisef(L, d, DC_ERR_ARG, name, "one axis is needed, as in x:%s(-1)", name);
    x.axis = __builtin_ctz(mask);
    dc_apply a = {.build = r->build, .arg = &x, .once = true};
    dc_apply_operands(L, d, &a, name, at, 1);
    dc_apply_run(L, d, &a);
    return 1;
}

/* Elements of both in turn, for dc.associative_scan; the first one has as many along the axis, or one more. */
static dc_status build_interleave(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                  dc_val *out)
{
    const int axis = *(const int *)arg;
    const dc_dtype t = (dc_dtype)in[0].type.dtype;
    const bool flt = dc_dtype_is_smooth(t);
    dc_type all = in[0].type;
    dc_val v[2];
    all.dim[axis] = dc_extent_add(j->extents, in[0].type.dim[axis], in[1].type.dim[axis]);
    for (int i = 0; i < 2; i++) {
        int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
        for (int k = 0; k < DC_MAX_RANK; k++)
            step[k] = k == axis ? 2 : 1;
        lo[axis] = i;
        DC_TRY(dc_build_pad(j, f, in[i], lo, step, &all, flt ? -0.0 : 0, &v[i]));
    }
    return dc_ops_2(j, f, flt ? DC_OP_ADD : DC_OP_OR, v[0], v[1], out);
}

/* interleave(a, b, axis) */
static int l_interleave(lua_State *L)
{
    static const int first_two[2] = {1, 2};
    const int axis = (int)luaL_checkinteger(L, 3) - 1;
    lua_settop(L, 2);
    dc_apply_to(L, dc_dsl_of(L), "associative_scan", first_two, 2, build_interleave, &axis);
    return 1;
}

const dc_bindings dc_cumulative_bindings = {&rows[0].bound, DC_COUNTOF(rows), sizeof rows[0]};
