/*
 * Running reductions in blocks (core/ir/running.h): the axis is cut into blocks of RADIX elements. Element i of all
 * blocks is one slice, combined with what the slice before it has become; the last ones are the totals of the blocks,
 * which are run over in the same way, and each block is combined with the total of those before it (Blelloch 1990 with a
 * larger radix). So an element is combined about twice, however long the axis is, and each slice is stored straight to
 * its place.
 *
 * An axis of a few elements is reduced over a second copy of itself, of which those behind each element are left out:
 * its square is less work than slices are.
 */
#include "core/ir/running.h"

#include "core/base/bits.h"

#include <math.h>

enum { RADIX = 16, SHORT = 8 };

/* What runs along the axis: values, and for those of two parts the other one. */
typedef struct item {
    dc_ref v, key;
} item;

typedef struct scan scan;
typedef item combine_fn(const scan *s, item a, item b);

struct scan {
    dc_func *f;
    dc_op reduction; /* its identity */
    combine_fn *combine;
    double key_fill; /* the key of what is before the first element */
    bool keyed, reverse;
};

static dc_type type_of(const scan *s, dc_ref r)
{
    return dc_node_type(s->f, r);
}

static int64_t length(const scan *s, dc_ref r)
{
    return type_of(s, r).dim[1];
}

/* ---- pieces of the middle axis --------------------------------------------------------------- */

/* n elements from number `first` on, `step` apart. */
static dc_ref part(const scan *s, dc_ref a, int64_t first, int64_t step, int64_t n)
{
    const dc_type t = type_of(s, a);
    return dc_graph_slice(s->f, a, (const int64_t[]){0, first, 0}, (const int64_t[]){1, step, 1},
                          (const int64_t[]){t.dim[0], n, t.dim[2]});
}

static item parts(const scan *s, item a, int64_t first, int64_t step, int64_t n)
{
    return (item){part(s, a.v, first, step, n), s->keyed ? part(s, a.key, first, step, n) : 0};
}

/* It grows to n; its elements are from number `first` on, `step` apart, and `fill` is elsewhere. */
static dc_ref spread(const scan *s, dc_ref a, int64_t first, int64_t step, int64_t n, uint64_t fill)
{
    const dc_type t = type_of(s, a);
    return dc_graph_pad(s->f, a, (const int64_t[]){0, first, 0}, (const int64_t[]){1, step, 1},
                        (const int64_t[]){t.dim[0], n, t.dim[2]}, fill);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What becomes of the parts of an axis of n elements, each padded with what changes nothing. */
typedef struct whole {
    int64_t n;
    dc_ref piece[2 * RADIX];
    int npiece;
} whole;

static void add_piece(const scan *s, whole *w, dc_ref v, int64_t first, int64_t step)
{
    const dc_dtype t = (dc_dtype)type_of(s, v).dtype;
    const uint64_t fill = dc_dtype_is_float(t) ? dc_bits_of(t, -0.0) : 0; /* x + -0 is x */
    w->piece[w->npiece++] = spread(s, v, first, step, w->n, fill);
}

static dc_ref join(const scan *s, whole *w)
{
    const bool flt = dc_dtype_is_float((dc_dtype)type_of(s, w->piece[0]).dtype);
    for (int n = w->npiece; n > 1; n = (n + 1) / 2)
        for (int i = 0; i < n; i += 2)
            w->piece[i / 2] = i + 1 < n ? dc_graph_op2(s->f, flt ? DC_OP_ADD : DC_OP_OR,
                                                       w->piece[i], w->piece[i + 1])
                                        : w->piece[i];
    return w->piece[0];
}

static item run(const scan *s, item a);

/* Of each block the total of those before it; the first one has none. */
static item before(const scan *s, item total)
{
    const int64_t m = length(s, total.v);
    const dc_dtype t = (dc_dtype)type_of(s, total.v).dtype;
    const item a = parts(s, total, 0, 1, m - 1);
    item out = {.v = spread(s, a.v, 1, 1, m, dc_op_identity(s->reduction, t))};
    if (s->keyed) {
        const dc_dtype key = (dc_dtype)type_of(s, total.key).dtype;
        out.key = spread(s, a.key, 1, 1, m, dc_bits_of(key, s->key_fill));
    }
    return out;
}

/* m blocks of b elements, then fewer than b. */
static item run_blocks(const scan *s, item a, int b, int64_t m)
{
    item t[RADIX], had;
    whole w = {.n = length(s, a.v)}, keys = w;
    t[0] = parts(s, a, 0, b, m);
    for (int i = 1; i < b; i++)
        t[i] = s->combine(s, t[i - 1], parts(s, a, i, b, m));
    if (m > 1) {
        t[b - 1] = run(s, t[b - 1]);
        had = before(s, t[b - 1]);
        for (int i = 0; i < b - 1; i++)
            t[i] = s->combine(s, had, t[i]);
    }
    for (int i = 0; i < b; i++) {
        add_piece(s, &w, t[i].v, i, b);
        if (s->keyed)
            add_piece(s, &keys, t[i].key, i, b);
    }
    had = parts(s, t[b - 1], m - 1, 1, 1);
    for (int64_t i = m * b; i < w.n; i++) {
        had = s->combine(s, had, parts(s, a, i, 1, 1));
        add_piece(s, &w, had.v, i, 1);
        if (s->keyed)
            add_piece(s, &keys, had.key, i, 1);
    }
    return (item){join(s, &w), s->keyed ? join(s, &keys) : 0};
}

/* [p, n, q] as [p, 1, n, q] and as [p, n, 1, q], expanded to [p, n, n, q]. */
static dc_ref twice(const scan *s, dc_ref a, bool inner)
{
    const dc_type t = type_of(s, a);
    const int64_t n = t.dim[1], as[4] = {t.dim[0], inner ? 1 : n, inner ? n : 1, t.dim[2]};
    const int64_t all[4] = {t.dim[0], n, n, t.dim[2]};
    return dc_graph_expand(s->f, dc_graph_reshape(s->f, a, 4, as), all);
}

/* Each element is reduced with those before it. */
static dc_ref run_short(const scan *s, dc_ref a)
{
    const dc_type t = type_of(s, a);
    const int64_t n = t.dim[1];
    dc_type square = dc_type_make(DC_I32, 4, (const int64_t[]){t.dim[0], n, n, t.dim[2]});
    dc_type fill = square;
    fill.dtype = t.dtype;
    const int64_t from[1] = {1}, to[1] = {2},
                  none[1] = {(int64_t)dc_op_identity(s->reduction, (dc_dtype)t.dtype)};
    const dc_ref i = dc_graph_make(s->f, DC_OP_IOTA, NULL, 0, from, 1, &square),
                 k = dc_graph_make(s->f, DC_OP_IOTA, NULL, 0, to, 1, &square),
                 mask = dc_graph_op2(s->f, DC_OP_LE, k, i),
                 rest = dc_graph_make(s->f, DC_OP_CONST, NULL, 0, none, 1, &fill);
    return dc_graph_reduce(s->f, s->reduction,
                           dc_graph_op3(s->f, DC_OP_WHERE, mask, twice(s, a, true), rest), 1u << 2);
}

static combine_fn by_op;

/* Not a product, whose gradient has as many steps as the blocks have, nor what is no reduction. */
static bool is_short(const scan *s, dc_ref a)
{
    return length(s, a) <= SHORT && s->combine == by_op && s->reduction != DC_OP_PROD;
}

static item run(const scan *s, item a)
{
    const int64_t n = length(s, a.v), b = n < RADIX ? n : RADIX;
    if (n == 1)
        return a;
    return is_short(s, a.v) ? (item){run_short(s, a.v), 0} : run_blocks(s, a, (int)b, n / b);
}

static dc_ref flipped(const scan *s, dc_ref a)
{
    return s->reverse && a != 0 ? dc_graph_flip(s->f, a, 1u << 1) : a;
}

static dc_ref run_along(const scan *s, dc_ref v, dc_ref key)
{
    return flipped(s, run(s, (item){flipped(s, v), flipped(s, key)}).v);
}

/* ---- how two are combined -------------------------------------------------------------------- */

static item by_op(const scan *s, item a, item b)
{
    return (item){dc_graph_op2(s->f, (dc_op)dc_op_row_of(s->reduction)->combine, a.v, b.v), 0};
}

/* A sum that begins anew with each key. */
static item by_key(const scan *s, item a, item b)
{
    const dc_ref same = dc_graph_op2(s->f, DC_OP_EQ, a.key, b.key),
                 had = dc_graph_op3(s->f, DC_OP_WHERE, same, a.v, dc_graph_like(s->f, a.v, 0));
    return (item){dc_graph_op2(s->f, DC_OP_ADD, had, b.v), b.key};
}

/* y -> key y + v, one after the other. */
static item by_factor(const scan *s, item a, item b)
{
    return (item){dc_graph_op2(s->f, DC_OP_ADD, dc_graph_op2(s->f, DC_OP_MUL, b.key, a.v), b.v),
                  dc_graph_op2(s->f, DC_OP_MUL, a.key, b.key)};
}

/* (a.v + i a.key) (b.v + i b.key) */
static item by_complex(const scan *s, item a, item b)
{
    dc_func *f = s->f;
    const dc_ref re = dc_graph_op2(f, DC_OP_MUL, a.v, b.v),
                 less = dc_graph_op2(f, DC_OP_MUL, a.key, b.key),
                 im = dc_graph_op2(f, DC_OP_MUL, a.v, b.key),
                 more = dc_graph_op2(f, DC_OP_MUL, a.key, b.v);
    return (item){dc_graph_op2(f, DC_OP_SUB, re, less), dc_graph_op2(f, DC_OP_ADD, im, more)};
}

/*
 * log(exp(a) + exp(b)). The larger one is taken out where it is finite, as a constant for gradients, out of which it
 * cancels. Where nothing is left, since both are -inf, the gradient is 0.
 */
static item by_exp(const scan *s, item a, item b)
{
    dc_func *f = s->f;
    const dc_ref inf = dc_graph_like(f, a.v, INFINITY), none = dc_graph_like(f, a.v, -INFINITY),
                 zero = dc_graph_like(f, a.v, 0), one = dc_graph_like(f, a.v, 1);
    dc_ref top = dc_graph_op1(f, DC_OP_STOP, dc_graph_op2(f, DC_OP_MAX, a.v, b.v));
    const dc_ref finite = dc_graph_op2(f, DC_OP_LT, dc_graph_op1(f, DC_OP_ABS, top), inf);
    top = dc_graph_op3(f, DC_OP_WHERE, finite, top, zero);
    const dc_ref first = dc_graph_op1(f, DC_OP_EXP, dc_graph_op2(f, DC_OP_SUB, a.v, top)),
                 second = dc_graph_op1(f, DC_OP_EXP, dc_graph_op2(f, DC_OP_SUB, b.v, top)),
                 sum = dc_graph_op2(f, DC_OP_ADD, first, second),
                 nothing = dc_graph_op2(f, DC_OP_EQ, sum, zero),
                 log = dc_graph_op1(f, DC_OP_LOG, dc_graph_op3(f, DC_OP_WHERE, nothing, one, sum));
    return (item){dc_graph_op3(f, DC_OP_WHERE, nothing, none, dc_graph_op2(f, DC_OP_ADD, log, top)),
                  0};
}

/* ---- what there is --------------------------------------------------------------------------- */

static scan plain(dc_func *f, dc_run_kind kind, bool reverse)
{
    static const dc_op reduction[] = {DC_OP_SUM, DC_OP_PROD, DC_OP_MAXR, DC_OP_MINR};
    return (scan){.f = f, .reduction = reduction[kind], .combine = by_op, .reverse = reverse};
}

dc_ref dc_running(dc_func *f, dc_run_kind kind, bool reverse, dc_ref x, int axis)
{
    const int64_t attr[3] = {kind, reverse, dc_node_type(f, x).rank - 1 - axis};
    return dc_graph_make(f, DC_OP_RUN, &x, 1, attr, 3, NULL);
}

bool dc_running_flat(dc_extents *e, const dc_type *t, int axis, int64_t dim[3])
{
    dim[0] = dim[2] = 1;
    dim[1] = t->dim[axis];
    for (int k = 0; k < t->rank; k++)
        if (k != axis)
            dim[k < axis ? 0 : 2] = dc_extent_mul(e, dim[k < axis ? 0 : 2], t->dim[k]);
    return dim[0] != DC_EXTENT_NONE && dim[2] != DC_EXTENT_NONE;
}

bool dc_running_is_short(dc_run_kind kind, int64_t n)
{
    return n <= SHORT && kind != DC_RUN_PROD;
}

dc_ref dc_running_blocks(dc_func *f, dc_run_kind kind, bool reverse, dc_ref x)
{
    const scan s = plain(f, kind, reverse);
    return run_along(&s, x, 0);
}

dc_ref dc_running_logsumexp(dc_func *f, bool reverse, dc_ref x)
{
    const scan s = {.f = f, .reduction = DC_OP_MAXR, .combine = by_exp, .reverse = reverse};
    return run_along(&s, x, 0); /* -inf changes nothing */
}

void dc_running_complex(dc_func *f, bool reverse, dc_ref part[2])
{
    const scan s = {
        .f = f, .reduction = DC_OP_PROD, .combine = by_complex, .keyed = true, .reverse = reverse};
    const item y = run(&s, (item){flipped(&s, part[0]), flipped(&s, part[1])});
    part[0] = flipped(&s, y.v);
    part[1] = flipped(&s, y.key);
}

dc_ref dc_running_recurrence(dc_func *f, bool reverse, dc_ref a, dc_ref b)
{
    const scan s = {.f = f,
                    .reduction = DC_OP_SUM,
                    .combine = by_factor,
                    .key_fill = 1,
                    .keyed = true,
                    .reverse = reverse};
    return run_along(&s, b, a);
}

dc_ref dc_running_segments(dc_func *f, bool reverse, dc_ref key, dc_ref v)
{
    const scan s = {
        .f = f, .reduction = DC_OP_SUM, .combine = by_key, .keyed = true, .reverse = reverse};
    return run_along(&s, v, key);
}
