/*
 * Operations of complex values as operations of their parts (core/build/complex.h).
 *
 * What treats both parts alike (sums, movement, a choice) works on the whole node, unless it was put together from
 * parts: then each part by itself, so that neither is stored. Numbers of a script are real, and multiply as such.
 */
#include "core/build/complex.h"

#include "core/autodiff/custom.h"

#include <math.h>

typedef struct parts {
    dc_ref re, im;
} parts;

static dc_ref op1(dc_func *f, dc_op op, dc_ref a)
{
    return dc_graph_op1(f, op, a);
}

static dc_ref op2(dc_func *f, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_op2(f, op, a, b);
}

static dc_ref where(dc_func *f, dc_ref test, dc_ref yes, dc_ref no)
{
    return dc_graph_op3(f, DC_OP_WHERE, test, yes, no);
}

static dc_ref number(dc_func *f, dc_ref like, double v)
{
    return dc_graph_like(f, like, v);
}

/* ---- wholes and parts ------------------------------------------------------------------------ */

/* Both at their place along a last axis of 2, where the other one adds -0, which changes nothing. */
static dc_ref whole_of(dc_func *f, dc_ref re, dc_ref im)
{
    const dc_type t = dc_node_type(f, re);
    const uint64_t nothing = dc_bits_of((dc_dtype)t.dtype, -0.0);
    int64_t dim[DC_MAX_RANK], lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    dc_ref at[2] = {re, im};
    for (int k = 0; k <= t.rank; k++) {
        dim[k] = k < t.rank ? t.dim[k] : 1;
        step[k] = 1;
    }
    for (int i = 0; i < 2; i++) {
        dim[t.rank] = 1;
        at[i] = dc_graph_reshape(f, at[i], t.rank + 1, dim);
        dim[t.rank] = 2;
        lo[t.rank] = i;
        at[i] = dc_graph_pad(f, at[i], lo, step, dim, nothing);
    }
    return op2(f, DC_OP_ADD, at[0], at[1]);
}

/* Was it put together from parts? Which is part i. */
static bool is_pair(const dc_func *f, dc_ref r, dc_ref part[2])
{
    const dc_node *n = dc_node_at(f, r);
    const int last = n->rank - 1;
    if (n->op != DC_OP_ADD || last < 0 || n->dim[last] != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const dc_node *p = dc_node_at(f, n->in[i]);
        const dc_node *of = p->op == DC_OP_PAD ? dc_node_at(f, p->in[0]) : NULL;
        if (of == NULL || of->op != DC_OP_RESHAPE || of->dim[last] != 1)
            return false;
        for (int k = 0; k < last; k++)
            if (of->dim[k] != n->dim[k])
                return false;
        part[p->attr[last]] = of->in[0];
    }
    return true;
}

static bool was_joined(const dc_func *f, dc_ref r)
{
    dc_ref part[2];
    return is_pair(f, r, part);
}

/* The constant that r is everywhere, or 0. */
static dc_ref constant(const dc_func *f, dc_ref r)
{
    while (dc_node_at(f, r)->op == DC_OP_RESHAPE || dc_node_at(f, r)->op == DC_OP_EXPAND)
        r = dc_node_at(f, r)->in[0];
    return dc_node_at(f, r)->op == DC_OP_CONST ? r : 0;
}

/* Of a whole; constants, for which no gradient is taken, are found at once. */
static dc_ref part_of(dc_func *f, dc_ref r, int which)
{
    const dc_type t = dc_node_type(f, r);
    const int last = t.rank - 1;
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    dc_ref part[2];
    if (is_pair(f, r, part) && constant(f, part[0]) != 0 && constant(f, part[1]) != 0)
        return part[which];
    for (int k = 0; k <= last; k++) {
        step[k] = 1;
        dim[k] = t.dim[k];
    }
    start[last] = which;
    dim[last] = 1;
    if (dc_node_at(f, r)->op == DC_OP_CONST) {
        const dc_type to = dc_type_make((dc_dtype)t.dtype, last, dim);
        return dc_graph_make(f, DC_OP_CONST, NULL, 0, dc_node_at(f, r)->attr, 1, &to);
    }
    return dc_graph_reshape(f, dc_graph_slice(f, r, start, step, dim), last, dim);
}

static parts parts_of(dc_func *f, dc_ref r)
{
    return (parts){part_of(f, r, 0), part_of(f, r, 1)};
}

dc_status dc_complex_join(dc_job *j, dc_func *f, dc_val re, dc_val im, dc_val *out)
{
    dc_type t = re.type;
    t.dtype = t.dtype == DC_F64 ? DC_C128 : DC_C64;
    for (int k = 0; k < t.rank; k++)
        t.name[k] = t.name[k] != NULL ? t.name[k] : im.type.name[k];
    if (!dc_type_has_parts(&t))
        return dc_fail(j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = "complex", .num = {t.rank, DC_MAX_RANK - 1}});
    *out = (dc_val){whole_of(f, re.ref, im.ref), t};
    return DC_OK;
}

dc_val dc_complex_part(dc_func *f, dc_val v, int which)
{
    if (!dc_complex_is(&v))
        return which == 0 ? v : (dc_val){dc_graph_like(f, v.ref, 0), v.type};
    v.ref = part_of(f, v.ref, which);
    v.type.dtype = (uint8_t)dc_dtype_part((dc_dtype)v.type.dtype);
    return v;
}

dc_type dc_complex_type(const dc_func *f, dc_ref r, const dc_type *like)
{
    dc_type t = dc_node_type(f, r);
    if (dc_dtype_is_complex((dc_dtype)like->dtype)) {
        t.dtype = like->dtype;
        t.rank--;
    }
    for (int k = 0; k < t.rank; k++)
        t.name[k] = like->name[k];
    return t;
}

dc_ref dc_complex_const(dc_func *f, const dc_type *t, uint64_t bits)
{
    dc_type whole = dc_type_parts(t), part = *t;
    const int64_t attr[2] = {(int64_t)bits, 0};
    part.dtype = whole.dtype;
    if (bits == 0)
        return dc_graph_make(f, DC_OP_CONST, NULL, 0, attr, 1, &whole);
    return whole_of(f, dc_graph_make(f, DC_OP_CONST, NULL, 0, attr, 1, &part),
                    dc_graph_make(f, DC_OP_CONST, NULL, 0, attr + 1, 1, &part));
}

dc_ref dc_complex_cast(dc_func *f, dc_val a, dc_dtype t)
{
    const dc_ref made = dc_graph_cast(f, a.ref, dc_dtype_part(t));
    return dc_complex_is(&a) ? made : whole_of(f, made, number(f, made, 0));
}

/* ---- movement -------------------------------------------------------------------------------- */

/* The movement of one part, or of the whole with its last axis. */
static dc_ref move(dc_func *f, dc_op op, dc_ref r, const int64_t *attr, int rank, const dc_type *to,
                   bool whole, uint64_t fill)
{
    int64_t first[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    const dc_type t = whole ? dc_type_parts(to) : *to;
    for (int k = 0; k < DC_MAX_RANK; k++)
        step[k] = 1;
    if (op == DC_OP_SLICE || op == DC_OP_PAD)
        for (int k = 0; k < rank; k++) {
            first[k] = attr[k];
            step[k] = attr[rank + k];
        }
    switch ((int)op) {
    case DC_OP_RESHAPE:
        return dc_graph_reshape(f, r, t.rank, t.dim);
    case DC_OP_EXPAND:
        return dc_graph_expand(f, r, t.dim);
    case DC_OP_SLICE:
        return dc_graph_slice(f, r, first, step, t.dim);
    case DC_OP_PAD:
        return dc_graph_pad(f, r, first, step, t.dim, fill);
    case DC_OP_FLIP:
        return dc_graph_flip(f, r, (uint32_t)attr[0]);
    case DC_OP_PERMUTE:
        for (int k = 0; k < rank; k++)
            first[k] = attr[k];
        first[rank] = rank;
        return dc_graph_permute(f, r, first);
    }
    DC_BUG("%s moves nothing", dc_op_row_of(op)->name);
}

dc_ref dc_complex_move(dc_func *f, dc_op op, dc_ref r, const int64_t *attr, const dc_type *from,
                       const dc_type *to)
{
    const dc_dtype part = dc_dtype_part((dc_dtype)from->dtype);
    const uint64_t fill = op == DC_OP_PAD ? (uint64_t)attr[2 * from->rank] : 0;
    const bool alike = dc_value_of(part, fill) == 0; /* both parts are filled with it */
    if (alike && !was_joined(f, r))
        return move(f, op, r, attr, from->rank, to, true, fill);
    const parts p = parts_of(f, r);
    return whole_of(f, move(f, op, p.re, attr, from->rank, to, false, fill),
                    move(f, op, p.im, attr, from->rank, to, false, alike ? fill : 0));
}

/* ---- sizes and angles ------------------------------------------------------------------------- */

/* |x| and |y| in order, and their quotient, from 0 to 1. */
typedef struct ratio {
    dc_ref ax, ay, most, least, q;
} ratio;

static ratio ratio_of(dc_func *f, dc_ref x, dc_ref y)
{
    ratio r = {.ax = op1(f, DC_OP_ABS, x), .ay = op1(f, DC_OP_ABS, y)};
    const dc_ref one = number(f, x, 1), inf = number(f, x, INFINITY);
    r.most = op2(f, DC_OP_MAX, r.ax, r.ay);
    r.least = op2(f, DC_OP_MIN, r.ax, r.ay);
    const dc_ref by = where(f, op2(f, DC_OP_EQ, r.most, number(f, x, 0)), one, r.most);
    r.q = where(f, op2(f, DC_OP_EQ, r.least, inf), one, op2(f, DC_OP_DIV, r.least, by));
    return r;
}

/* The value y of x[0] and x[1] with these derivatives, each times the cotangent. */
static dc_ref with_slopes(dc_job *j, dc_func *f, const dc_ref x[2], dc_ref y,
                          void (*slope)(dc_func *f, const dc_ref x[2], dc_ref y, dc_ref out[2]))
{
    dc_custom c;
    dc_ref dx[2];
    dc_custom_given(f, x, 2, y, &c);
    slope(f, x, c.y_again, dx);
    for (int i = 0; i < 2; i++)
        dx[i] = op2(f, DC_OP_MUL, c.dy, dx[i]);
    if (dc_custom_end(j, &c, dx, &y) != DC_OK)
        DC_BUG("slopes of other types");
    return y;
}

/* x / |z|, y / |z|; 0 at 0. */
static void size_slope(dc_func *f, const dc_ref x[2], dc_ref y, dc_ref out[2])
{
    const dc_ref by = where(f, op2(f, DC_OP_EQ, y, number(f, y, 0)), number(f, y, 1), y);
    for (int i = 0; i < 2; i++)
        out[i] = op2(f, DC_OP_DIV, x[i], by);
}

/* The larger part times sqrt(1 + q^2), which overflows only where the size does. */
static dc_ref size_of(dc_job *j, dc_func *f, dc_ref re, dc_ref im)
{
    const dc_ref x[2] = {re, im};
    const ratio r = ratio_of(f, re, im);
    const dc_ref one = number(f, re, 1), inf = number(f, re, INFINITY);
    const dc_ref root = op1(f, DC_OP_SQRT, op2(f, DC_OP_ADD, one, op2(f, DC_OP_MUL, r.q, r.q)));
    const dc_ref far = op2(f, DC_OP_OR, op2(f, DC_OP_EQ, r.ax, inf), op2(f, DC_OP_EQ, r.ay, inf));
    const dc_ref size = where(f, far, inf, op2(f, DC_OP_MUL, r.most, root));
    return with_slopes(j, f, x, size, size_slope);
}

/* sum c[i] x^i */
static dc_ref polynomial(dc_func *f, dc_ref x, const double *c, int n)
{
    dc_ref sum = number(f, x, c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        sum = op2(f, DC_OP_ADD, op2(f, DC_OP_MUL, sum, x), number(f, x, c[i]));
    return sum;
}

/* atan of 0 to 1: of t = q, or of (q - 1) / (q + 1) and pi / 4; t + t^3 times a polynomial, or two (Cephes). */
static dc_ref arc(dc_func *f, dc_ref q)
{
    static const double shorter[] = {-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1,
                                     8.05374449538e-2};
    static const double up[] = {-6.485021904942025371773e1, -1.228866684490136173410e2,
                                -7.500855792314704667340e1, -1.615753718733365076637e1,
                                -8.750608600031904122785e-1};
    static const double down[] = {1.945506571482613964425e2, 4.853903996359136964868e2,
                                  4.328810604912902668951e2, 1.650270098316988542046e2,
                                  2.485846490142306297962e1, 1};
    const dc_ref one = number(f, q, 1);
    const dc_ref large = op2(f, DC_OP_LT, number(f, q, 0.41421356237309503), q);
    const dc_ref turned = op2(f, DC_OP_DIV, op2(f, DC_OP_SUB, q, one), op2(f, DC_OP_ADD, q, one));
    const dc_ref t = where(f, large, turned, q), z = op2(f, DC_OP_MUL, t, t);
    dc_ref p = dc_node_at(f, q)->dtype == DC_F32
                   ? polynomial(f, z, shorter, DC_COUNTOF(shorter))
                   : op2(f, DC_OP_DIV, polynomial(f, z, up, DC_COUNTOF(up)),
                         polynomial(f, z, down, DC_COUNTOF(down)));
    p = op2(f, DC_OP_ADD, op2(f, DC_OP_MUL, op2(f, DC_OP_MUL, p, z), t), t);
    return op2(f, DC_OP_ADD, where(f, large, number(f, q, 0.78539816339744831), number(f, q, 0)),
               p);
}

/* Has it the sign of -0 and less? */
static dc_ref has_sign(dc_func *f, dc_ref a)
{
    const dc_ref zero = number(f, a, 0);
    const dc_ref far = op2(f, DC_OP_DIV, number(f, a, 1), a);
    return op2(f, DC_OP_LT, where(f, op2(f, DC_OP_EQ, a, zero), far, a), zero);
}

/* -y / |z|^2, x / |z|^2 */
static void angle_slope(dc_func *f, const dc_ref x[2], dc_ref y, dc_ref out[2])
{
    const ratio r = ratio_of(f, x[0], x[1]);
    const dc_ref one = number(f, y, 1);
    const dc_ref rest = op2(f, DC_OP_ADD, one, op2(f, DC_OP_MUL, r.q, r.q));
    for (int i = 0; i < 2; i++) {
        const dc_ref up = i == 0 ? op1(f, DC_OP_NEG, x[1]) : x[0];
        out[i] = op2(f, DC_OP_DIV, op2(f, DC_OP_DIV, up, r.most), op2(f, DC_OP_MUL, r.most, rest));
    }
}

dc_ref dc_complex_angle(dc_job *j, dc_func *f, dc_ref re, dc_ref im)
{
    const dc_ref x[2] = {re, im};
    const ratio r = ratio_of(f, re, im);
    dc_ref a = arc(f, r.q);
    a = where(f, op2(f, DC_OP_LT, r.ax, r.ay),
              op2(f, DC_OP_SUB, number(f, re, 1.57079632679489662), a), a);
    a = where(f, has_sign(f, re), op2(f, DC_OP_SUB, number(f, re, 3.14159265358979324), a), a);
    a = where(f, has_sign(f, im), op1(f, DC_OP_NEG, a), a);
    const dc_ref nan = op2(f, DC_OP_NE, r.most, r.most); /* r.q says nothing of it */
    return with_slopes(j, f, x, where(f, nan, r.most, a), angle_slope);
}

/* x / |z|^2, y / |z|^2 */
static void log_size_slope(dc_func *f, const dc_ref x[2], dc_ref y, dc_ref out[2])
{
    dc_ref turned[2];
    angle_slope(f, x, y, turned);
    out[0] = turned[1];
    out[1] = op1(f, DC_OP_NEG, turned[0]);
}

/* log |z|; near 1, where the logarithm is small, of |z|^2 - 1. */
static dc_ref log_size(dc_job *j, dc_func *f, dc_ref re, dc_ref im)
{
    const dc_ref x[2] = {re, im};
    const ratio r = ratio_of(f, re, im);
    const dc_ref one = number(f, re, 1), half = number(f, re, 0.5);
    const dc_ref near = op2(f, DC_OP_AND, op2(f, DC_OP_LT, half, r.most),
                            op2(f, DC_OP_LT, r.most, number(f, re, 2)));
    const dc_ref over =
        op2(f, DC_OP_ADD,
            op2(f, DC_OP_MUL, op2(f, DC_OP_SUB, r.most, one), op2(f, DC_OP_ADD, r.most, one)),
            op2(f, DC_OP_MUL, r.least, r.least));
    const dc_ref grown = op1(f, DC_OP_LOG1P, where(f, near, over, op2(f, DC_OP_MUL, r.q, r.q)));
    const dc_ref log = where(f, near, number(f, re, 0), op1(f, DC_OP_LOG, r.most));
    const dc_ref value = op2(f, DC_OP_ADD, log, op2(f, DC_OP_MUL, half, grown));
    return with_slopes(j, f, x, value, log_size_slope);
}

/* ---- functions of one -------------------------------------------------------------------------- */

static parts exponential(dc_func *f, parts a)
{
    const dc_ref e = op1(f, DC_OP_EXP, a.re);
    return (parts){op2(f, DC_OP_MUL, e, op1(f, DC_OP_COS, a.im)),
                   op2(f, DC_OP_MUL, e, op1(f, DC_OP_SIN, a.im))};
}

/* cosh and sinh */
static parts hyperbolic(dc_func *f, dc_ref y)
{
    return (parts){op1(f, DC_OP_COSH, y), op1(f, DC_OP_SINH, y)};
}

static parts sine(dc_func *f, parts a)
{
    const parts h = hyperbolic(f, a.im);
    return (parts){op2(f, DC_OP_MUL, op1(f, DC_OP_SIN, a.re), h.re),
                   op2(f, DC_OP_MUL, op1(f, DC_OP_COS, a.re), h.im)};
}

static parts cosine(dc_func *f, parts a)
{
    const parts h = hyperbolic(f, a.im);
    return (parts){op2(f, DC_OP_MUL, op1(f, DC_OP_COS, a.re), h.re),
                   op1(f, DC_OP_NEG, op2(f, DC_OP_MUL, op1(f, DC_OP_SIN, a.re), h.im))};
}

/* cosh z or sinh z */
static parts hyperbolic_of(dc_func *f, dc_op op, parts a)
{
    const parts h = hyperbolic(f, a.re);
    const dc_ref c = op1(f, DC_OP_COS, a.im), s = op1(f, DC_OP_SIN, a.im);
    return op == DC_OP_COSH ? (parts){op2(f, DC_OP_MUL, h.re, c), op2(f, DC_OP_MUL, h.im, s)}
                            : (parts){op2(f, DC_OP_MUL, h.im, c), op2(f, DC_OP_MUL, h.re, s)};
}

/* The root w in the right half plane: t = sqrt((|x| + |z|) / 2) and y / 2t. Its derivative is 1 / 2w. */
static dc_ref root(dc_job *j, dc_func *f, parts a)
{
    const dc_ref zero = number(f, a.re, 0), one = number(f, a.re, 1), half = number(f, a.re, 0.5);
    const dc_ref size = op2(f, DC_OP_MUL, half, size_of(j, f, a.re, a.im));
    const dc_ref most = op2(f, DC_OP_MUL, half, op1(f, DC_OP_ABS, a.re));
    const dc_ref t = op1(f, DC_OP_SQRT, op2(f, DC_OP_ADD, most, size));
    const dc_ref by = where(f, op2(f, DC_OP_EQ, t, zero), one, t);
    const dc_ref rest = op2(f, DC_OP_DIV, op2(f, DC_OP_MUL, half, a.im), by);
    const dc_ref left = op2(f, DC_OP_LT, a.re, zero);
    const dc_ref turned = where(f, has_sign(f, a.im), op1(f, DC_OP_NEG, t), t);
    dc_ref w =
        whole_of(f, where(f, left, op1(f, DC_OP_ABS, rest), t), where(f, left, turned, rest));
    const dc_ref x[2] = {a.re, a.im};
    dc_custom c;
    dc_custom_given(f, x, 2, w, &c);
    const parts r = parts_of(f, c.y_again), g = parts_of(f, c.dy);
    const dc_ref square =
        op2(f, DC_OP_ADD, op2(f, DC_OP_MUL, r.re, r.re), op2(f, DC_OP_MUL, r.im, r.im));
    const dc_ref twice = op2(f, DC_OP_ADD, square, square);
    const dc_ref up[2] = {
        op2(f, DC_OP_SUB, op2(f, DC_OP_MUL, g.re, r.re), op2(f, DC_OP_MUL, g.im, r.im)),
        op2(f, DC_OP_ADD, op2(f, DC_OP_MUL, g.re, r.im), op2(f, DC_OP_MUL, g.im, r.re))};
    const dc_ref dx[2] = {op2(f, DC_OP_DIV, up[0], twice), op2(f, DC_OP_DIV, up[1], twice)};
    if (dc_custom_end(j, &c, dx, &w) != DC_OK)
        DC_BUG("slopes of other types");
    return w;
}

/* ---- functions of two -------------------------------------------------------------------------- */

static parts product(dc_func *f, parts a, parts b)
{
    return (parts){op2(f, DC_OP_SUB, op2(f, DC_OP_MUL, a.re, b.re), op2(f, DC_OP_MUL, a.im, b.im)),
                   op2(f, DC_OP_ADD, op2(f, DC_OP_MUL, a.re, b.im), op2(f, DC_OP_MUL, a.im, b.re))};
}

/* By the larger part of b, so that no square overflows (Smith 1962). */
static parts quotient(dc_func *f, parts a, parts b)
{
    const dc_ref flat = op2(f, DC_OP_LE, op1(f, DC_OP_ABS, b.im), op1(f, DC_OP_ABS, b.re));
    const dc_ref most = where(f, flat, b.re, b.im), least = where(f, flat, b.im, b.re);
    const dc_ref q = op2(f, DC_OP_DIV, least, most);
    const dc_ref by = op2(f, DC_OP_ADD, most, op2(f, DC_OP_MUL, least, q));
    const dc_ref re = op2(f, DC_OP_ADD, where(f, flat, a.re, a.im),
                          op2(f, DC_OP_MUL, where(f, flat, a.im, a.re), q));
    const dc_ref near = op2(f, DC_OP_SUB, a.im, op2(f, DC_OP_MUL, a.re, q));
    const dc_ref far = op2(f, DC_OP_SUB, op2(f, DC_OP_MUL, a.im, q), a.re);
    return (parts){op2(f, DC_OP_DIV, re, by), op2(f, DC_OP_DIV, where(f, flat, near, far), by)};
}

static parts each(dc_func *f, dc_op op, parts a, parts b)
{
    return (parts){op2(f, op, a.re, b.re), op2(f, op, a.im, b.im)};
}

/* The real number that r is everywhere: its constant; 0: it is none. */
static dc_ref real_number(const dc_func *f, dc_ref r)
{
    dc_ref part[2];
    if (!is_pair(f, r, part) || constant(f, part[1]) == 0 ||
        !dc_is_const(f, constant(f, part[1]), 0))
        return 0;
    return constant(f, part[0]);
}

/* The constant c in the form of r. */
static dc_ref spread(dc_func *f, dc_ref c, dc_ref r)
{
    const dc_type t = dc_node_type(f, r);
    return dc_graph_make(f, DC_OP_CONST, NULL, 0, dc_node_at(f, c)->attr, 1, &t);
}

/* By a real number both parts are alike; 0: it is no case of that. */
static dc_ref by_number(dc_func *f, dc_op op, dc_ref a, dc_ref b)
{
    const dc_ref c = real_number(f, b);
    if (c == 0 || (op != DC_OP_MUL && op != DC_OP_DIV))
        return 0;
    if (!was_joined(f, a))
        return op2(f, op, a, spread(f, c, a));
    const parts p = parts_of(f, a);
    return whole_of(f, op2(f, op, p.re, spread(f, c, p.re)), op2(f, op, p.im, spread(f, c, p.im)));
}

/* A test of each element for both of its parts. */
static dc_ref for_parts(dc_func *f, dc_ref test, dc_ref like)
{
    const dc_node *n = dc_node_at(f, like);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < n->rank; k++)
        dim[k] = n->dim[k];
    dim[n->rank - 1] = 1;
    return dc_graph_expand(f, dc_graph_reshape(f, test, n->rank, dim), n->dim);
}

static bool is_linear(dc_op op)
{
    return op == DC_OP_NEG || op == DC_OP_STOP || op == DC_OP_ADD || op == DC_OP_SUB ||
           op == DC_OP_WHERE;
}

static dc_ref choose(dc_func *f, dc_ref test, dc_ref yes, dc_ref no)
{
    if (!was_joined(f, yes) && !was_joined(f, no))
        return where(f, for_parts(f, test, yes), yes, no);
    const parts a = parts_of(f, yes), b = parts_of(f, no);
    return whole_of(f, where(f, test, a.re, b.re), where(f, test, a.im, b.im));
}

static dc_ref unary(dc_job *j, dc_func *f, dc_op op, dc_ref r)
{
    const parts a = parts_of(f, r);
    parts out = {0};
    switch ((int)op) {
    case DC_OP_ABS:
        return size_of(j, f, a.re, a.im);
    case DC_OP_SQRT:
        return root(j, f, a);
    case DC_OP_NEG:
    case DC_OP_STOP:
        out = (parts){op1(f, op, a.re), op1(f, op, a.im)};
        break;
    case DC_OP_EXP:
        out = exponential(f, a);
        break;
    case DC_OP_LOG:
        out = (parts){log_size(j, f, a.re, a.im), dc_complex_angle(j, f, a.re, a.im)};
        break;
    case DC_OP_SIN:
        out = sine(f, a);
        break;
    case DC_OP_COS:
        out = cosine(f, a);
        break;
    case DC_OP_TAN:
        out = quotient(f, sine(f, a), cosine(f, a));
        break;
    case DC_OP_SINH:
    case DC_OP_COSH:
        out = hyperbolic_of(f, op, a);
        break;
    default:
        DC_BUG("%s of complex numbers", dc_op_row_of(op)->name);
    }
    return whole_of(f, out.re, out.im);
}

static dc_ref binary(dc_func *f, dc_op op, dc_ref left, dc_ref right)
{
    const parts a = parts_of(f, left), b = parts_of(f, right);
    parts out = {0};
    switch ((int)op) {
    case DC_OP_ADD:
    case DC_OP_SUB:
        out = each(f, op, a, b);
        if (real_number(f, right) != 0)
            out.im = a.im;
        else if (real_number(f, left) != 0)
            out.im = op == DC_OP_ADD ? b.im : op1(f, DC_OP_NEG, b.im);
        break;
    case DC_OP_MUL:
        out = product(f, a, b);
        break;
    case DC_OP_DIV:
        out = quotient(f, a, b);
        break;
    case DC_OP_EQ:
        out = each(f, op, a, b);
        return op2(f, DC_OP_AND, out.re, out.im);
    case DC_OP_NE:
        out = each(f, op, a, b);
        return op2(f, DC_OP_OR, out.re, out.im);
    default:
        DC_BUG("%s of complex numbers", dc_op_row_of(op)->name);
    }
    return whole_of(f, out.re, out.im);
}

dc_ref dc_complex_ew(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int n)
{
    bool joined = false;
    if (op == DC_OP_WHERE)
        return choose(f, in[0], in[1], in[2]);
    for (int i = 0; i < n; i++)
        joined = joined || was_joined(f, in[i]);
    if (is_linear(op) && !joined)
        return dc_graph_make(f, op, in, n, NULL, 0, NULL);
    dc_ref scaled = n == 2 ? by_number(f, op, in[0], in[1]) : 0;
    if (scaled == 0 && n == 2 && op == DC_OP_MUL)
        scaled = by_number(f, op, in[1], in[0]);
    if (scaled != 0)
        return scaled;
    return n == 1 ? unary(j, f, op, in[0]) : binary(f, op, in[0], in[1]);
}

/* ---- reductions and contractions ---------------------------------------------------------------- */

/* n elements of an axis from number `from` on. */
static dc_ref cut(dc_func *f, dc_ref r, int axis, int64_t from, int64_t n)
{
    const dc_type t = dc_node_type(f, r);
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int k = 0; k < t.rank; k++) {
        step[k] = 1;
        dim[k] = k == axis ? n : t.dim[k];
    }
    start[axis] = from;
    return dc_graph_slice(f, r, start, step, dim);
}

static parts cut_parts(dc_func *f, parts a, int axis, int64_t from, int64_t n)
{
    return (parts){cut(f, a.re, axis, from, n), cut(f, a.im, axis, from, n)};
}

/* Along one axis, of which 1 is left: halves of it with each other, as often as there are any. */
static parts multiply_along(dc_func *f, parts a, int axis)
{
    int64_t n = dc_node_at(f, a.re)->dim[axis];
    while (n > 1) {
        const int64_t half = n / 2;
        const parts rest = cut_parts(f, a, axis, 2 * half, n % 2);
        a = product(f, cut_parts(f, a, axis, 0, half), cut_parts(f, a, axis, half, half));
        if (n % 2 == 1) { /* goes with the first */
            const parts head = product(f, cut_parts(f, a, axis, 0, 1), rest);
            if (half == 1)
                return head;
            const parts tail = cut_parts(f, a, axis, 1, half - 1);
            const dc_type t = dc_node_type(f, a.re);
            const uint64_t nothing = dc_bits_of((dc_dtype)t.dtype, -0.0);
            int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
            dc_ref *const to[2] = {&a.re, &a.im};
            const dc_ref first[2] = {head.re, head.im}, others[2] = {tail.re, tail.im};
            for (int k = 0; k < t.rank; k++)
                step[k] = 1;
            for (int i = 0; i < 2; i++) {
                lo[axis] = 0;
                const dc_ref x = dc_graph_pad(f, first[i], lo, step, t.dim, nothing);
                lo[axis] = 1;
                *to[i] = op2(f, DC_OP_ADD, x, dc_graph_pad(f, others[i], lo, step, t.dim, nothing));
            }
        }
        n = half;
    }
    return a;
}

/* Of an axis without elements it is 1. */
static dc_ref product_of(dc_func *f, dc_ref r, uint32_t axes)
{
    const dc_type t = dc_node_type(f, r);
    dc_type out = {.dtype = t.dtype};
    bool empty = false;
    parts a = parts_of(f, r);
    for (int k = 0; k < t.rank - 1; k++) {
        if ((axes >> k & 1) == 0)
            out.dim[out.rank++] = t.dim[k];
        else
            empty = empty || t.dim[k] == 0;
    }
    if (empty)
        return whole_of(f, dc_graph_const(f, &out, 1), dc_graph_const(f, &out, 0));
    for (int k = 0; k < t.rank - 1; k++)
        if (axes >> k & 1)
            a = multiply_along(f, a, k);
    return whole_of(f, dc_graph_reshape(f, a.re, out.rank, out.dim),
                    dc_graph_reshape(f, a.im, out.rank, out.dim));
}

dc_ref dc_complex_reduce(dc_job *j, dc_func *f, dc_op op, dc_ref r, uint32_t axes)
{
    DC_UNUSED(j);
    if (op == DC_OP_PROD)
        return product_of(f, r, axes);
    if (!was_joined(f, r))
        return dc_graph_reduce(f, op, r, axes);
    const parts a = parts_of(f, r);
    return whole_of(f, dc_graph_reduce(f, op, a.re, axes), dc_graph_reduce(f, op, a.im, axes));
}

static dc_ref contract(dc_func *f, dc_ref a, dc_ref b, const int64_t *attr, int nattr)
{
    return dc_graph_make(f, DC_OP_DOT, (dc_ref[]){a, b}, 2, attr, nattr, NULL);
}

dc_ref dc_complex_dot(dc_func *f, dc_ref left, dc_ref right, const int64_t *attr, int nattr)
{
    const parts a = parts_of(f, left), b = parts_of(f, right);
    return whole_of(f,
                    op2(f, DC_OP_SUB, contract(f, a.re, b.re, attr, nattr),
                        contract(f, a.im, b.im, attr, nattr)),
                    op2(f, DC_OP_ADD, contract(f, a.re, b.im, attr, nattr),
                        contract(f, a.im, b.re, attr, nattr)));
}
