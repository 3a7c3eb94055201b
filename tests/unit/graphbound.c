/*
 * Running error analysis over a graph. Every node has its value, from the wide interpreter, and per
 * element a bound: 0 if any legal evaluation gives exactly this value, infinite if nothing is
 * known.
 *
 *   value  of the node in double, v; of its operands a, b, c
 *   bound  e; of its operands ea, eb, ec
 *   unit   half an ulp of a float in 1..2 (2^-24 of f32); tiny is the smallest subnormal, which
 *          bounds the rounding of results that underflow
 *
 * A node of a short float may be rounded to f32, or to its dtype, or both. The values themselves are
 * rounded as f64 is, so for f64 every rounding counts twice.
 *
 * Error terms of second order in u are covered by SLACK. See Higham, Accuracy and Stability of
 * Numerical Algorithms, 2002, chapter 3, "running error analysis".
 */
#include "core/eval/eval.h"
#include "core/ir/conv.h"
#include "core/ir/running.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/unit/graphgen.h"
#include "tests/unit/near.h"

static const double SLACK = 1.001, U = 0x1p-24, pi = 3.14159265358979324;

static bool is_short(dc_dtype t)
{
    return dc_dtype_is_short(t);
}

static double unit(dc_dtype t)
{
    const double u = ldexp(1, -dc_dtype_fraction(t) - 1);
    return t == DC_F64 ? 2 * u : is_short(t) ? u + 2 * U : u;
}

static double tiny(dc_dtype t)
{
    return t == DC_F64 ? 0x1p-1073 : dc_value_of(t, 1);
}

static double largest(dc_dtype t)
{
    return dc_value_of(t, dc_bits_infinity(t) - 1);
}

/* Of one addition in a sum, which of short floats is one of f32. */
static double sum_unit(dc_dtype t)
{
    return t == DC_F64 ? 0x1p-52 : U;
}

/* What rounding v, known within e, to the dtype of a sum adds at its end. */
static double sum_end(dc_dtype t, double v, double e)
{
    return is_short(t) && isfinite(e) ? unit(t) * (fabs(v) + e) + tiny(t) : 0;
}

/*
 * Of values that are combined one after the other, each result rounded to dtype t: what n roundings add, relative to
 * what they are of. It is more than n u where u is not small: 16 roundings to f8e4m3fn multiply by e.
 */
static double rounded_often(dc_dtype t, double n)
{
    return expm1(n * log1p(unit(t)));
}

typedef struct analysis {
    dc_job *j;
    const dc_func *f;
    double **value, **bound; /* by ref, in scratch; NULL for nodes that are not live */
    bool all_f32;            /* floats count as f32 */
} analysis;

static dc_dtype dtype_of(const analysis *x, dc_ref r)
{
    const dc_dtype t = (dc_dtype)dc_node_at(x->f, r)->dtype;
    return x->all_f32 && dc_dtype_is_float(t) ? DC_F32 : t;
}

/* ---- element-wise ---- */

typedef struct site {
    dc_op op;
    dc_dtype t, rt; /* of the last operand, of the result */
    int n;
    double a[4], e[4]; /* operands: values, bounds */
    double v;
} site;

static bool exact(const site *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i] > 0)
            return false;
    return true;
}

/* trunc(a / b) if it is the same all over the intervals, else false. */
static bool whole_quotient(const site *s, double *q)
{
    const double a = fabs(s->a[0]), b = fabs(s->a[1]), ea = s->e[0], eb = s->e[1];
    if (b <= eb || a < ea)
        return false;
    const double low = floor((a - ea) / (b + eb) * (1 - U)), high = (a + ea) / (b - eb) * (1 + U);
    *q = low;
    return floor(high) == low;
}

/*
 * Of a function that is monotonic between its poles, or has one minimum, in lgamma's case: the larger change towards the
 * ends of the interval, twice that where the slope has a zero or grows. Known inside the domain alone.
 */
static double ends(const site *s)
{
    const double a = s->a[0], e = s->e[0];
    const double low = dc_op_evalf(s->op, a - e, 0, 0), high = dc_op_evalf(s->op, a + e, 0, 0);
    if (e == 0)
        return 0;
    if (s->op == DC_OP_TAN && floor((a - e) / pi - 0.5) != floor((a + e) / pi - 0.5))
        return INFINITY;
    if ((s->op == DC_OP_LGAMMA || s->op == DC_OP_DIGAMMA) && a - e <= 0)
        return INFINITY;
    if (isnan(low) || isnan(high)) /* an end of the domain is inside */
        return INFINITY;
    return 2 * fmax(fabs(high - s->v), fabs(low - s->v));
}

/* Of an angle, off by what its point is, seen from the origin. */
static double angle(const site *s)
{
    const double a = s->a[0], b = s->a[1], ea = s->e[0], eb = s->e[1];
    const double far = hypot(a, b), off = hypot(ea, eb);
    const bool crosses = b - eb <= 0 && fabs(a) <= ea; /* from pi to -pi */
    return crosses || !(off < far / 2) ? INFINITY : 1.6 * off / (far - off);
}

/* Of a positive base alone. */
static double power(const site *s)
{
    const double a = s->a[0], b = s->a[1], ea = s->e[0], eb = s->e[1];
    return a > ea ? s->v * expm1((fabs(b) + eb) * ea / (a - ea) + eb * fabs(log(a))) : INFINITY;
}

/* Largest change of the operation when its operands move within their bounds; all are finite. */
static double moved(const site *s)
{
    const double a = s->a[0], b = s->a[1], ea = s->e[0], eb = s->e[1];
    double q;
    switch ((int)s->op) {
    case DC_OP_NEG:
    case DC_OP_ABS:
    case DC_OP_STOP:
    case DC_OP_CAST:
        return ea;
    case DC_OP_MAX:
    case DC_OP_MIN:
        return fmax(ea, eb);
    case DC_OP_FLOOR:
        return floor(a + ea) - floor(a - ea);
    case DC_OP_ROUND:
        return rint(a + ea) - rint(a - ea);
    case DC_OP_ADD:
    case DC_OP_SUB:
        return ea + eb;
    case DC_OP_MUL:
        return fabs(a) * eb + fabs(b) * ea + ea * eb;
    case DC_OP_DIV:
        return fabs(b) > eb ? (ea + fabs(s->v) * eb) / (fabs(b) - eb) : INFINITY;
    case DC_OP_REM:
        return exact(s) ? 0 : whole_quotient(s, &q) ? ea + q * eb : INFINITY;
    case DC_OP_EXP:
        return s->v * expm1(ea);
    case DC_OP_LOG:
        return a > ea ? ea / (a - ea) : INFINITY;
    case DC_OP_EXPM1:
        return (s->v + 1) * expm1(ea);
    case DC_OP_LOG1P:
        return 1 + a > ea ? ea / (1 + a - ea) : INFINITY;
    case DC_OP_ERF:
        return 1.13 * ea;
    case DC_OP_ERFC:
        return 1.13 * ea;
    case DC_OP_SIGMOID:
        return 0.25 * ea;
    case DC_OP_SILU:
    case DC_OP_GELU:
    case DC_OP_GELU_TANH:
        return 1.13 * ea;
    case DC_OP_SIN:
    case DC_OP_COS:
        return fmin(ea, 2);
    case DC_OP_ATAN:
    case DC_OP_ASINH:
        return ea;
    case DC_OP_COPYSIGN: /* an operand that may be 0 has any sign */
        return fabs(b) > eb || eb == 0 ? ea : INFINITY;
    case DC_OP_COSH:
    case DC_OP_SINH:
        return (cosh(a) + ea) * expm1(ea);
    case DC_OP_EXP2:
        return s->v * (exp2(ea) - 1);
    case DC_OP_LOG2:
    case DC_OP_LOG10:
        return a > ea ? 1.5 * ea / (a - ea) : INFINITY;
    case DC_OP_TAN:
    case DC_OP_ASIN:
    case DC_OP_ACOS:
    case DC_OP_ACOSH:
    case DC_OP_ATANH:
    case DC_OP_CBRT:
    case DC_OP_ERF_INV:
    case DC_OP_LGAMMA:
    case DC_OP_DIGAMMA:
        return ends(s);
    case DC_OP_ATAN2:
        return exact(s) ? 0 : angle(s);
    case DC_OP_POW:
    case DC_OP_POWER:
        return exact(s) ? 0 : power(s);
    case DC_OP_SQRT:
        return a >= ea ? ea / (s->v > 0 ? s->v : 1) : INFINITY;
    default:
        break;
    }
    DC_BUG("no error bound for %s", dc_op_row_of(s->op)->name);
}

/* What one rounding adds, given how far the unrounded result is from v at most. */
static double rounding(const site *s, double so_far)
{
    const double size = fabs(s->v) + so_far, u = unit(s->rt), least = tiny(s->rt);
    switch ((int)s->op) {
    case DC_OP_ADD:
    case DC_OP_SUB:
    case DC_OP_SQRT:
        return u * size + (is_short(s->rt) && !exact(s) ? least : 0);
    case DC_OP_MUL:
    case DC_OP_DIV:
        return u * size + least;
    case DC_OP_EXP:
    case DC_OP_LOG:
    case DC_OP_EXPM1:
    case DC_OP_LOG1P:
    case DC_OP_ERF:
    case DC_OP_SIN:
    case DC_OP_COS:
    case DC_OP_TAN:
    case DC_OP_ASIN:
    case DC_OP_ACOS:
    case DC_OP_ATAN:
    case DC_OP_ATAN2:
    case DC_OP_SINH:
    case DC_OP_COSH:
    case DC_OP_ASINH:
    case DC_OP_ACOSH:
    case DC_OP_ATANH:
    case DC_OP_EXP2:
    case DC_OP_LOG2:
    case DC_OP_LOG10:
    case DC_OP_CBRT:
    case DC_OP_ERFC:
    case DC_OP_ERF_INV:
    case DC_OP_SIGMOID:
    case DC_OP_SILU:
    case DC_OP_GELU:
    case DC_OP_GELU_TANH:
    case DC_OP_POW:
    case DC_OP_POWER:
        return 2 * near_limit(s->op, s->rt == DC_F64) * u * size + least;
    case DC_OP_LGAMMA:
    case DC_OP_DIGAMMA: /* where they are near 0 the interpreter has the error of terms near 1 */
        return 2 * near_limit(s->op, s->rt == DC_F64) * u *
                   fmax(size + (double)near_terms(s->op, s->a[0]), 1) +
               least;
    case DC_OP_REM: /* exact for exact operands */
        return exact(s) ? 0 : u * size + (is_short(s->rt) ? least : 0);
    default:
        return 0;
    }
}

static double float_bound(const site *s)
{
    bool finite = true;
    if (s->op == DC_OP_COPYSIGN && isnan(s->a[1])) /* the sign of a NaN is any */
        return INFINITY;
    for (int i = 0; i < s->n; i++)
        finite = finite && isfinite(s->a[i]) && isfinite(s->e[i]);
    if (exact(s) && (!finite || !isfinite(s->v)))
        return isfinite(s->v) ? rounding(s, 0) : 0; /* 1 / inf; 1 / 0, log(-1) */
    if (!finite || !isfinite(s->v))
        return INFINITY;
    if (exact(s) && s->v == 0) /* 0 * x, x - x, sqrt(0): not by rounding, or to the smallest */
        return s->op == DC_OP_MUL && s->a[0] != 0 && s->a[1] != 0 ? tiny(s->rt) : rounding(s, 0);
    const double e = moved(s);
    return isnan(e) ? INFINITY : (e + rounding(s, e)) * SLACK; /* exp: 0 * inf */
}

/* A comparison is known if it is exact or the intervals do not touch. */
static double compare_bound(const site *s)
{
    if (exact(s))
        return 0;
    return fabs(s->a[0] - s->a[1]) > (s->e[0] + s->e[1]) * SLACK ? 0 : INFINITY;
}

static double cast_bound(const site *s)
{
    const double a = s->a[0], e = s->e[0];
    if (!dc_dtype_is_float(s->t) && e > 0) /* from integers: known or not */
        return INFINITY;
    if (dc_dtype_is_float(s->rt) && e == 0 && !(fabs(a) <= largest(s->rt)))
        return 0; /* what overflows here is found by `limit` */
    if (dc_dtype_is_float(s->rt) && !(isfinite(a) && isfinite(e)))
        return INFINITY; /* NaN here need not be NaN elsewhere: log(-1e-30) of f16 is log(-0) */
    if (dc_dtype_is_float(s->rt)) {
        const bool fits = e == 0 && dc_value_of(s->rt, dc_bits_of(s->rt, a)) == a;
        const bool wider = dc_dtype_is_float(s->t) && !is_short(s->t) &&
                           dc_dtype_fraction(s->rt) >= dc_dtype_fraction(s->t);
        return fits || wider ? e : (e + unit(s->rt) * (fabs(a) + e) + tiny(s->rt)) * SLACK;
    }
    if (e == 0)
        return e;
    if (!isfinite(a) || !isfinite(e))
        return INFINITY;
    if (s->rt == DC_BOOL)
        return fabs(a) > e ? 0 : INFINITY;
    return dc_bits_of(s->rt, a - e) == dc_bits_of(s->rt, a + e) ? 0 : INFINITY;
}

/* Known where the operand is, which must be a number of its dtype: which NaN it is does not count. */
static double pattern_bound(const site *s)
{
    const double a = s->a[0];
    if (s->e[0] != 0)
        return INFINITY;
    if (!dc_dtype_is_float(s->t))
        return 0;
    return fabs(a) <= largest(s->t) && dc_value_of(s->t, dc_bits_of(s->t, a)) == a ? 0 : INFINITY;
}

/* With an unknown condition the result is one or the other. */
static double where_bound(const site *s)
{
    const double b = s->a[1], c = s->a[2], eb = s->e[1], ec = s->e[2];
    if (s->e[0] == 0)
        return s->a[0] != 0 ? eb : ec;
    if (b == c && eb == 0 && ec == 0)
        return 0;
    if (!dc_dtype_is_float(s->rt) || !isfinite(b) || !isfinite(c))
        return INFINITY;
    return fabs(b - c) + fmax(eb, ec);
}

static double element_bound(const site *s)
{
    if (s->op == DC_OP_WHERE)
        return where_bound(s);
    if (s->op == DC_OP_BITCAST)
        return pattern_bound(s);
    if (s->op == DC_OP_CAST)
        return cast_bound(s);
    if (!dc_dtype_is_float(s->t))
        return exact(s) ? 0 : INFINITY;
    if (s->rt == DC_BOOL)
        return compare_bound(s);
    return float_bound(s);
}

static void element_wise(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    site s = {.op = (dc_op)n->op, .rt = dtype_of(x, r), .n = n->nin};
    s.t = dtype_of(x, n->in[n->nin - 1]);
    for (int64_t i = 0; i < dc_node_count(n); i++) {
        for (int k = 0; k < n->nin; k++) {
            s.a[k] = x->value[n->in[k]][i];
            s.e[k] = x->bound[n->in[k]][i];
        }
        s.v = x->value[r][i];
        x->bound[r][i] = element_bound(&s);
    }
}

/* ---- the other classes: the operation itself, run on bounds and magnitudes ---- */

/* Node r's operation over arrays of doubles, as float operands of the same dims. */
static dc_status apply(const analysis *x, dc_op op, dc_ref r, const double *const *in, double *out)
{
    const dc_node *n = dc_node_at(x->f, r);
    int64_t attr[DC_CONV_ATTRS];
    dc_ref operand[4], made;
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "apply");
    const dc_type want = dc_type_make(DC_F32, n->rank, n->dim);
    for (int i = 0; i < n->nin; i++) {
        const dc_node *o = dc_node_at(x->f, n->in[i]);
        const bool integers = i == 1 && dc_op_is(op, DC_CLASS_IDX); /* as they are */
        const dc_type t = dc_type_make(integers ? o->dtype : DC_F32, o->rank, o->dim);
        operand[i] = dc_graph_param(f, &t, "x");
    }
    for (int i = 0; i < n->nattr; i++)
        attr[i] = n->attr[i];
    if (op == DC_OP_PAD)
        attr[2 * n->rank] = 0; /* the fill is exact */
    dc_status status = dc_make(x->j, f, op, operand, n->nin, attr, n->nattr, &want, &made);
    if (status == DC_OK) {
        DC_PUSH(f->result, made);
        status = dc_eval(x->j, f, DC_EVAL_WIDE, (const void *const *)in, (void *const[]){out});
    }
    dc_module_free(m);
    return status;
}

static double *numbers(const analysis *x, int64_t n)
{
    return DC_NEW_ARRAY(&x->j->scratch, double, n);
}

static dc_status sum_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r), *in = dc_node_at(x->f, n->in[0]);
    const int64_t count = dc_node_count(n), terms = count ? dc_node_count(in) / count : 0;
    const double *a = x->value[n->in[0]], *ea = x->bound[n->in[0]];
    const dc_dtype t = dtype_of(x, r);
    double *size = numbers(x, dc_node_count(in)), *total = numbers(x, count), *e = x->bound[r];
    for (int64_t i = 0; i < dc_node_count(in); i++)
        size[i] = fabs(a[i]) + ea[i];
    DC_TRY(apply(x, DC_OP_SUM, r, (const double *const[]){size}, total));
    DC_TRY(apply(x, DC_OP_SUM, r, (const double *const[]){ea}, e));
    for (int64_t i = 0; i < count; i++) {
        if (!dc_dtype_is_float(t) || terms <= 1)
            e[i] = e[i] > 0 && !dc_dtype_is_float(t) ? INFINITY : e[i];
        else
            e[i] = total[i] < (t == DC_F64 ? DBL_MAX : (double)FLT_MAX)
                       ? (e[i] + (double)terms * sum_unit(t) * total[i]) * SLACK
                       : INFINITY;
        if (dc_dtype_is_float(t) && terms > 1)
            e[i] += sum_end(t, x->value[r][i], e[i]);
    }
    return DC_OK;
}

/*
 * The product of (|a| + ea) less that of |a|, and a rounding for each term of what any order can make
 * on its way: the product of those above 1. Below the smallest float nothing is known.
 */
static dc_status product_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r), *in = dc_node_at(x->f, n->in[0]);
    const int64_t count = dc_node_count(n), m = dc_node_count(in), terms = count ? m / count : 0;
    const dc_dtype t = dtype_of(x, r);
    const bool floats = dc_dtype_is_float(t);
    const double *a = x->value[n->in[0]], *ea = x->bound[n->in[0]];
    double *size[4], *got[4], *e = x->bound[r];
    for (int k = 0; k < 4; k++) {
        size[k] = numbers(x, m);
        got[k] = numbers(x, count);
    }
    for (int64_t i = 0; i < m; i++) {
        size[0][i] = fabs(a[i]);
        size[1][i] = fabs(a[i]) + ea[i];
        size[2][i] = fmax(1, size[1][i]);
        size[3][i] = fmin(1, fabs(a[i]) > 0 ? fabs(a[i]) : 1);
    }
    for (int k = 0; k < 4; k++)
        DC_TRY(apply(x, DC_OP_PROD, r, (const double *const[]){size[k]}, got[k]));
    DC_TRY(apply(x, DC_OP_MAXR, r, (const double *const[]){ea}, e));
    for (int64_t i = 0; i < count; i++) {
        const bool tame = isfinite(got[1][i]) && got[2][i] < (double)FLT_MAX &&
                          got[3][i] > 0x1p-120 && e[i] < INFINITY;
        if (!floats || terms <= 1)
            e[i] = e[i] > 0 && !floats ? INFINITY : e[i] > 0 ? e[i] : 0;
        else
            e[i] =
                tame ? (got[1][i] - got[0][i] + (double)terms * 2 * sum_unit(t) * got[1][i]) * SLACK
                     : INFINITY;
        if (floats && terms > 1)
            e[i] += sum_end(t, x->value[r][i], e[i]);
    }
    return DC_OK;
}

/* max and min move no farther than the operand that moves most; integers are known or not. */
static dc_status extremum_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    double *e = x->bound[r];
    DC_TRY(apply(x, DC_OP_MAXR, r, (const double *const[]){x->bound[n->in[0]]}, e));
    for (int64_t i = 0; i < dc_node_count(n); i++)
        e[i] = e[i] <= 0 ? 0 : isfinite(x->value[r][i]) ? e[i] : INFINITY;
    return DC_OK;
}

/* Splits an operand of dot: magnitude, magnitude with bound, and 1 where nothing is known. */
static void dot_parts(const analysis *x, dc_ref r, double *part[3])
{
    const int64_t n = dc_node_count(dc_node_at(x->f, r));
    for (int k = 0; k < 3; k++)
        part[k] = numbers(x, n);
    for (int64_t i = 0; i < n; i++) {
        const double a = fabs(x->value[r][i]), e = x->bound[r][i];
        const bool known = isfinite(a) && isfinite(e);
        part[0][i] = known ? a : 0;
        part[1][i] = known ? a + e : 0;
        part[2][i] = !known;
    }
}

/* Is there an element of the kernel that would make NaN of zeros round the input? Devices may skip those. */
static bool meets_zeros(const analysis *x, const dc_node *n, const double *unknown)
{
    const int64_t count = dc_node_count(dc_node_at(x->f, n->in[1]));
    for (int64_t i = 0; n->op == DC_OP_CONV && i < count; i++)
        if (unknown[i] > 0)
            return true;
    return false;
}

/* Products that are added up to one element. */
static int64_t terms_of(const analysis *x, const dc_node *n)
{
    int64_t terms = 1;
    if (n->op == DC_OP_CONV) {
        const dc_node *w = dc_node_at(x->f, n->in[1]);
        const int64_t own = dc_conv_of(n).kernel[0];
        for (int i = 0; i < w->rank; i++)
            terms *= i == own ? 1 : w->dim[i];
        return terms;
    }
    for (int64_t i = 0; i < n->attr[1]; i++)
        terms *= dc_node_at(x->f, n->in[0])->dim[n->attr[2 + 2 * n->attr[0] + i]];
    return terms;
}

static dc_status dot_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    const int64_t count = dc_node_count(n);
    const dc_dtype t = dtype_of(x, r);
    const bool floats = dc_dtype_is_float(t);
    double *a[3], *b[3], *sum[4], *one[2], *e = x->bound[r];
    const dc_op op = (dc_op)n->op;
    const int64_t terms = terms_of(x, n);
    dot_parts(x, n->in[0], a);
    dot_parts(x, n->in[1], b);
    for (int k = 0; k < 2; k++) {
        const int64_t m = dc_node_count(dc_node_at(x->f, n->in[k]));
        one[k] = numbers(x, m);
        for (int64_t i = 0; i < m; i++)
            one[k][i] = 1;
    }
    for (int k = 0; k < 4; k++)
        sum[k] = numbers(x, count);
    DC_TRY(apply(x, op, r, (const double *const[]){a[0], b[0]}, sum[0]));
    DC_TRY(apply(x, op, r, (const double *const[]){a[1], b[1]}, sum[1]));
    DC_TRY(apply(x, op, r, (const double *const[]){a[2], one[1]}, sum[2]));
    DC_TRY(apply(x, op, r, (const double *const[]){one[0], b[2]}, sum[3]));
    const bool open = meets_zeros(x, n, b[2]);
    for (int64_t i = 0; i < count; i++) {
        const double drift = fmax(sum[1][i] - sum[0][i], 0) + 1e-15 * sum[1][i];
        const double least = t == DC_F64 ? 0x1p-1073 : 0x1p-149;
        const double rounded = (double)(terms + 1) * (sum_unit(t) * sum[1][i] + least);
        if (open || sum[2][i] + sum[3][i] > 0 ||
            !(sum[1][i] < (t == DC_F64 ? DBL_MAX : (double)FLT_MAX)))
            e[i] = INFINITY;
        else
            e[i] = floats && terms > 0 ? (drift + rounded) * SLACK : 0;
        if (floats && terms > 0 && isfinite(e[i]))
            e[i] += sum_end(t, x->value[r][i], e[i]);
    }
    return DC_OK;
}

/* The integers of a gather or scatter as an array of their dtype; false if one is not known. */
static bool known_index(const analysis *x, dc_ref r, void **out)
{
    const dc_node *n = dc_node_at(x->f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    bool known = true;
    *out = dc_arena_alloc(&x->j->scratch, (size_t)dc_node_count(n) * dc_dtype_size(t) + 1);
    for (int64_t i = 0; i < dc_node_count(n); i++) {
        known = known && x->bound[r][i] <= 0;
        dc_bits_store(t, (char *)*out + (size_t)i * dc_dtype_size(t),
                      dc_bits_of(t, x->value[r][i]));
    }
    return known;
}

/* How many elements are scattered to each place. */
static dc_status updates_of(const analysis *x, dc_ref r, const void *index, double *out)
{
    const dc_node *n = dc_node_at(x->f, r);
    const int64_t m = dc_node_count(dc_node_at(x->f, n->in[2]));
    double *ones = numbers(x, m);
    for (int64_t i = 0; i < m; i++)
        ones[i] = 1;
    return apply(x, DC_OP_SCATTER_ADD, r,
                 (const double *const[]){numbers(x, dc_node_count(n)), index, ones}, out);
}

/*
 * As of reductions: the largest bound; of products with their own bounds less those without, and roundings. One that
 * underflows is off by the smallest number, and what comes behind it makes that larger.
 */
static dc_status combined_bound(const analysis *x, dc_ref r, const void *index)
{
    const dc_node *n = dc_node_at(x->f, r);
    const int64_t count = dc_node_count(n);
    const dc_dtype t = dtype_of(x, r);
    double *size[2][4], *got[4], *updates = numbers(x, count), *e = x->bound[r];
    for (int k = 0; k < 4; k++)
        got[k] = numbers(x, count);
    for (int o = 0; o < 2; o++) {
        const dc_ref a = n->in[2 * o];
        const int64_t m = dc_node_count(dc_node_at(x->f, a));
        for (int k = 0; k < 4; k++)
            size[o][k] = numbers(x, m);
        for (int64_t i = 0; i < m; i++) {
            size[o][0][i] = fabs(x->value[a][i]);
            size[o][1][i] = size[o][0][i] + x->bound[a][i];
            size[o][2][i] = fmax(1, size[o][1][i]);
            size[o][3][i] = fmin(1, size[o][0][i] > 0 ? size[o][0][i] : 1);
        }
    }
    DC_TRY(apply(x, DC_OP_SCATTER_MAX, r,
                 (const double *const[]){x->bound[n->in[0]], index, x->bound[n->in[2]]}, e));
    for (int k = 0; k < 4; k++)
        DC_TRY(apply(x, DC_OP_SCATTER_MUL, r,
                     (const double *const[]){size[0][k], index, size[1][k]}, got[k]));
    DC_TRY(updates_of(x, r, index, updates));
    for (int64_t i = 0; i < count; i++) {
        const double more = rounded_often(t, updates[i]);
        const double under = (1 + more) * updates[i] * tiny(t) * got[2][i];
        const bool tame = isfinite(got[1][i]) &&
                          (1 + more) * got[2][i] + under <= fmin(largest(t), (double)FLT_MAX) &&
                          got[3][i] > 0x1p-120 && e[i] < INFINITY;
        if (!dc_dtype_is_float(t) || n->op != DC_OP_SCATTER_MUL)
            e[i] = e[i] <= 0                                          ? 0
                   : dc_dtype_is_float(t) && isfinite(x->value[r][i]) ? e[i]
                                                                      : INFINITY;
        else
            e[i] = tame ? (got[1][i] - got[0][i] + more * got[1][i] + under) * SLACK : INFINITY;
    }
    return DC_OK;
}

/*
 * Bounds go where the elements go; a sum rounds once for each element that comes to a place: where it is not brought
 * to f32, to its dtype, beyond whose largest number it may be on its way, whatever it is at its end.
 */
static dc_status index_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    const int64_t count = dc_node_count(n);
    const dc_dtype t = dtype_of(x, r);
    const bool floats = dc_dtype_is_float(t), sums = n->op == DC_OP_SCATTER_ADD;
    const double *in[3];
    double *size[3], *total = numbers(x, count), *updates = numbers(x, count), *e = x->bound[r];
    void *index;
    if (!known_index(x, n->in[1], &index)) {
        for (int64_t i = 0; i < count; i++)
            e[i] = INFINITY;
        return DC_OK;
    }
    if (dc_op_accumulates((dc_op)n->op) && !sums)
        return combined_bound(x, r, index);
    for (int k = 0; k < n->nin; k++)
        in[k] = k == 1 ? index : x->bound[n->in[k]];
    DC_TRY(apply(x, (dc_op)n->op, r, in, e));
    for (int k = 0; k < n->nin; k += 2) {
        const int64_t m = dc_node_count(dc_node_at(x->f, n->in[k]));
        size[k] = numbers(x, m);
        for (int64_t i = 0; i < m; i++)
            size[k][i] = fabs(x->value[n->in[k]][i]) + x->bound[n->in[k]][i];
        in[k] = size[k];
    }
    DC_TRY(apply(x, (dc_op)n->op, r, in, total));
    if (sums)
        DC_TRY(updates_of(x, r, index, updates));
    for (int64_t i = 0; sums && i < count; i++) {
        if (!floats) {
            e[i] = e[i] > 0 ? INFINITY : 0;
            continue;
        }
        const double more = rounded_often(t, updates[i]);
        const double under = is_short(t) ? (1 + more) * updates[i] * tiny(t) : 0;
        const bool tame = (1 + more) * total[i] + under <= fmin(largest(t), (double)FLT_MAX);
        e[i] = tame ? (e[i] + more * total[i] + under) * SLACK : INFINITY;
    }
    return DC_OK;
}

/* Each result as a reduction of the elements up to it; maxima move no farther than the operand that moves most. */
static dc_status running_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    const int64_t count = dc_node_count(n),
                  terms = count > 0 ? n->dim[n->rank - 1 - n->attr[2]] : 0;
    const dc_dtype t = dtype_of(x, r);
    const double *a = x->value[n->in[0]], *ea = x->bound[n->in[0]];
    const bool floats = dc_dtype_is_float(t), sum = n->attr[0] == DC_RUN_SUM;
    double *size[4], *got[4], *e = x->bound[r], most = 0;
    for (int k = 0; k < 4; k++) {
        size[k] = numbers(x, count);
        got[k] = numbers(x, count);
    }
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, ea[i]);
        size[0][i] = sum ? ea[i] : fabs(a[i]);
        size[1][i] = fabs(a[i]) + ea[i];
        size[2][i] = fmax(1, size[1][i]);
        size[3][i] = fmin(1, fabs(a[i]) > 0 ? fabs(a[i]) : 1);
    }
    if (n->attr[0] >= DC_RUN_MAX || !floats || most == INFINITY) {
        const bool moves = floats && n->attr[0] >= DC_RUN_MAX;
        for (int64_t i = 0; i < count; i++)
            e[i] = most == 0 && (moves || !floats)     ? 0
                   : moves && isfinite(x->value[r][i]) ? most
                                                       : (double)INFINITY;
        return DC_OK;
    }
    for (int k = 0; k < 4; k++)
        DC_TRY(apply(x, DC_OP_RUN, r, (const double *const[]){size[k]}, got[k]));
    const double more = rounded_often(t, (double)terms);
    for (int64_t i = 0; i < count; i++) {
        const double off = sum ? got[0][i] : got[1][i] - got[0][i];
        const double most_there = sum ? got[1][i] : got[2][i];
        const double under = (1 + more) * (double)terms * tiny(t) * (sum ? 1 : got[2][i]);
        const bool tame = isfinite(got[1][i]) && (sum || got[3][i] > 0x1p-120) &&
                          (1 + more) * most_there + under <= fmin(largest(t), (double)FLT_MAX);
        e[i] = tame ? (off + more * got[1][i] + under) * SLACK : (double)INFINITY;
    }
    return DC_OK;
}

/* Sorted values are off by no more than the one that is off most; positions are anything if any is, and so are factors. */
static void host_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    double most = 0;
    for (int64_t i = 0; i < dc_node_count(dc_node_at(x->f, n->in[0])); i++)
        most = fmax(most, x->bound[n->in[0]][i]);
    for (int64_t i = 0; i < dc_node_count(n); i++)
        x->bound[r][i] =
            n->op == DC_OP_SORT || (most == 0 && n->op < DC_OP_CHOLESKY) ? most : (double)INFINITY;
}

static dc_status node_bound(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_EW:
        element_wise(x, r);
        return DC_OK;
    case DC_CLASS_RED:
        return n->op == DC_OP_SUM    ? sum_bound(x, r)
               : n->op == DC_OP_PROD ? product_bound(x, r)
                                     : extremum_bound(x, r);
    case DC_CLASS_MOV:
        return apply(x, (dc_op)n->op, r, (const double *const[]){x->bound[n->in[0]]}, x->bound[r]);
    case DC_CLASS_CON:
        return dot_bound(x, r);
    case DC_CLASS_IDX:
        return index_bound(x, r);
    case DC_CLASS_HST:
        if (n->op == DC_OP_RUN)
            return running_bound(x, r);
        host_bound(x, r);
        return DC_OK;
    case DC_CLASS_SAME:
    case DC_CLASS_COM:  /* of a group of one */
    case DC_CLASS_PART: /* no graph has a join before it is compiled */
        for (int64_t i = 0; i < dc_node_count(n); i++)
            x->bound[r][i] = x->bound[n->in[0]][i];
        return DC_OK;
    case DC_CLASS_FFT:
    case DC_CLASS_CTL: /* nothing is demanded of what comes out of a body */
        for (int64_t i = 0; i < dc_node_count(n); i++)
            x->bound[r][i] = (double)INFINITY;
        return DC_OK;
    case DC_CLASS_SRC:
        return DC_OK; /* exact: parameters, constants, and positions below 2^24 */
    }
    DC_BUG("class of op %d", (int)n->op);
}

/* Beyond the largest float an evaluation overflows, where the wide one does not. */
static void limit(const analysis *x, dc_ref r)
{
    const dc_node *n = dc_node_at(x->f, r);
    for (int64_t i = 0; i < dc_node_count(n); i++)
        if (isnan(x->bound[r][i]))
            DC_BUG("a bound of %s is NaN", dc_op_row_of((dc_op)n->op)->name);
    if (!dc_dtype_is_float((dc_dtype)n->dtype))
        return;
    const bool has_infinity = !dc_dtype_is_finite(dtype_of(x, r));
    for (int64_t i = 0; i < dc_node_count(n); i++)
        if ((isfinite(x->value[r][i]) || (isinf(x->value[r][i]) && !has_infinity)) &&
            fabs(x->value[r][i]) + x->bound[r][i] > largest(dtype_of(x, r)))
            x->bound[r][i] = INFINITY;
}

/* ---- values ---- */

/* In the wide mode floats are doubles already; integers become doubles. */
static void to_doubles(dc_dtype t, const void *from, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dc_dtype_is_float(t)
                     ? ((const double *)from)[i]
                     : dc_value_of(
                           t, dc_bits_load(t, (const char *)from + (size_t)i * dc_dtype_size(t)));
}

static const void *wide_param(const analysis *x, uint32_t i, const void *from)
{
    const dc_type t = dc_node_type(x->f, x->f->param.at[i]);
    if (!dc_dtype_is_float((dc_dtype)t.dtype))
        return from;
    const size_t size = dc_dtype_size((dc_dtype)t.dtype);
    double *wide = numbers(x, dc_type_count(&t));
    for (int64_t k = 0; k < dc_type_count(&t); k++)
        wide[k] =
            dc_value_of((dc_dtype)t.dtype,
                        dc_bits_load((dc_dtype)t.dtype, (const char *)from + (size_t)k * size));
    return wide;
}

/* One evaluation with every live node as a result. */
static dc_status all_values(const analysis *x, const bool *live, const void *const *params)
{
    dc_arena *s = &x->j->scratch;
    dc_func all = *x->f;
    const void **wide = DC_NEW_ARRAY(s, const void *, all.param.n);
    void **out = DC_NEW_ARRAY(s, void *, all.node.n);
    all.result.at = DC_NEW_ARRAY(s, dc_ref, all.node.n);
    all.result.n = 0;
    for (uint32_t i = 0; i < all.param.n; i++)
        wide[i] = wide_param(x, i, params[i]);
    for (dc_ref r = 1; r < all.node.n; r++) {
        const int64_t n = dc_node_count(dc_node_at(x->f, r));
        if (!live[r])
            continue;
        x->value[r] = numbers(x, n);
        x->bound[r] = numbers(x, n);
        out[all.result.n] = numbers(x, n);
        all.result.at[all.result.n++] = r;
    }
    DC_TRY(dc_eval(x->j, &all, DC_EVAL_WIDE, wide, out));
    for (uint32_t i = 0; i < all.result.n; i++) {
        const dc_node *n = dc_node_at(x->f, all.result.at[i]);
        to_doubles((dc_dtype)n->dtype, out[i], dc_node_count(n), x->value[all.result.at[i]]);
    }
    return DC_OK;
}

static dc_status analyse(dc_job *j, const dc_func *f, bool all_f32, const void *const *params,
                         double *const *value, double *const *bound)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    analysis x = {.j = j, .f = f, .all_f32 = all_f32};
    x.value = DC_NEW_ARRAY(&j->scratch, double *, f->node.n);
    x.bound = DC_NEW_ARRAY(&j->scratch, double *, f->node.n);
    const bool *live = dc_func_live(f, &j->scratch);
    DC_TRY(all_values(&x, live, params));
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r]) {
            DC_TRY(node_bound(&x, r));
            limit(&x, r);
        }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_ref r = f->result.at[i];
        const size_t bytes = (size_t)dc_node_count(dc_node_at(f, r)) * sizeof(double);
        if (bytes > 0) {
            memcpy(value[i], x.value[r], bytes);
            memcpy(bound[i], x.bound[r], bytes);
        }
    }
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

dc_status graphgen_bound(dc_job *j, const dc_func *f, const void *const *params,
                         double *const *value, double *const *bound)
{
    return analyse(j, f, false, params, value, bound);
}

dc_status graphgen_bound_f32(dc_job *j, const dc_func *f, const void *const *params,
                             double *const *value, double *const *bound)
{
    return analyse(j, f, true, params, value, bound);
}

int64_t graphgen_differs(dc_dtype t, const void *got, const double *value, const double *bound,
                         int64_t n, double c)
{
    for (int64_t i = 0; i < n; i++) {
        const double g =
            dc_value_of(t, dc_bits_load(t, (const char *)got + (size_t)i * dc_dtype_size(t)));
        const bool same = isnan(value[i]) ? isnan(g) : g == value[i];
        if (!same && !isinf(bound[i]) && !(fabs(g - value[i]) <= c * bound[i]))
            return i;
    }
    return -1;
}
