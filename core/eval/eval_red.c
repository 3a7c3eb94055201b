/*
 * Reductions and dot of the interpreter. Operands are first laid out so that what is added up is a
 * row: [kept..., dropped...] for a reduction, [batch, m, k] and [batch, k, n] for dot. Elements are
 * added from left to right in row-major order of the dropped or contracted axes.
 */
#include "core/eval/eval_impl.h"
#include "core/ir/dot.h"

#include <string.h>

/* The operand's array with its axes in the order `axis`, dense; *out may be the operand's own. */
static dc_status reordered(dc_eval_state *s, dc_ref r, const int *axis, void **slot,
                           const void **out)
{
    const dc_node *n = dc_node_at(s->f, r);
    const size_t size = dc_eval_size(s->mode, (dc_dtype)n->dtype);
    dc_eval_move m = {.rank = n->rank};
    int64_t step[DC_MAX_RANK];
    bool same = true;
    dc_eval_steps(n->rank, n->dim, step);
    for (int i = 0; i < n->rank; i++) {
        same = same && axis[i] == i;
        m.dim[i] = n->dim[axis[i]];
        m.from[i] = step[axis[i]];
    }
    *out = s->value[r];
    if (same)
        return DC_OK;
    dc_eval_steps(n->rank, m.dim, m.to);
    DC_TRY(dc_eval_alloc(s, dc_node_count(n), size, slot));
    dc_eval_move_run(&m, size, *slot, s->value[r]);
    *out = *slot;
    return DC_OK;
}

/* ---- reductions ---- */

/* Of a sum of floats of dtype t: short ones are added up as f32. */
static double rounded(dc_eval_mode mode, dc_dtype t, double v)
{
    return mode == DC_EVAL_STRICT && t != DC_F64 ? (double)(float)v : v;
}

/* Elements at..at+len-1 combined to one. */
static double row_f(dc_eval_mode mode, dc_op combine, dc_dtype t, const void *from, int64_t at,
                    int64_t len, double acc)
{
    double x[DC_EVAL_CHUNK];
    for (int64_t i = 0; i < len; i += DC_EVAL_CHUNK) {
        const int64_t n = dc_min_i64(DC_EVAL_CHUNK, len - i);
        dc_job_look();
        dc_eval_get_f(mode, t, from, at + i, n, x);
        if (combine == DC_OP_ADD)
            for (int64_t k = 0; k < n; k++)
                acc = rounded(mode, t, acc + x[k]);
        else
            for (int64_t k = 0; k < n; k++)
                acc = dc_op_evalf(combine, acc, x[k], 0);
    }
    return acc;
}

static uint64_t row_i(dc_op combine, dc_dtype t, dc_dtype rt, const void *from, int64_t at,
                      int64_t len, uint64_t acc)
{
    uint64_t x[DC_EVAL_CHUNK];
    for (int64_t i = 0; i < len; i += DC_EVAL_CHUNK) {
        const int64_t n = dc_min_i64(DC_EVAL_CHUNK, len - i);
        dc_job_look();
        dc_eval_get_i(t, from, at + i, n, x);
        for (int64_t k = 0; k < n; k++)
            acc = dc_op_eval(combine, rt, rt, (const uint64_t[4]){acc, x[k]});
    }
    return acc;
}

dc_status dc_eval_reduce(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r), *in = dc_node_at(s->f, n->in[0]);
    const dc_dtype t = (dc_dtype)in->dtype, rt = (dc_dtype)n->dtype;
    const dc_op combine = (dc_op)dc_op_row_of((dc_op)n->op)->combine;
    const uint64_t identity = dc_op_identity((dc_op)n->op, rt);
    const int64_t count = dc_node_count(n);
    int axis[DC_MAX_RANK], at = 0;
    int64_t len = 1;
    for (int i = 0; i < in->rank; i++)
        if ((n->attr[0] >> i & 1) == 0)
            axis[at++] = i;
    for (int i = 0; i < in->rank; i++)
        if ((n->attr[0] >> i & 1) != 0) {
            axis[at++] = i;
            len *= in->dim[i];
        }
    const void *from;
    DC_TRY(reordered(s, n->in[0], axis, &s->temp[0], &from));
    for (int64_t i = 0; i < count; i++)
        if (dc_dtype_is_float(t)) {
            const double v =
                row_f(s->mode, combine, t, from, i * len, len, dc_value_of(rt, identity));
            dc_eval_put_f(s->mode, rt, s->value[r], i, 1, &v);
        } else {
            const uint64_t v = row_i(combine, t, rt, from, i * len, len, identity);
            dc_eval_put_i(rt, s->value[r], i, 1, &v);
        }
    return DC_OK;
}

/* ---- dot ---- */

enum { PART = 1 << 20 };

/* Axes of one operand in the order batch, middle, last, and the products of their extents. */
typedef struct side {
    dc_ref ref;
    int axis[DC_MAX_RANK];
    int64_t extent[3];
    void *data; /* doubles, or patterns as uint64_t */
} side;

static void add_axes(side *d, const dc_node *n, int *at, int part, const int64_t *axes, int count)
{
    d->extent[part] = 1;
    for (int i = 0; i < count; i++) {
        d->axis[(*at)++] = (int)axes[i];
        d->extent[part] *= n->dim[axes[i]];
    }
}

/* An operand: its free axes come before the contracting ones in the left, after them in the right. */
static side side_of(const dc_func *f, dc_ref r, const dc_dot *dot, int which)
{
    const dc_node *n = dc_node_at(f, r);
    side d = {.ref = r};
    int at = 0;
    add_axes(&d, n, &at, 0, dot->batch[which], dot->nbatch);
    if (which == 0)
        add_axes(&d, n, &at, 1, dot->free[0], dot->nfree[0]);
    add_axes(&d, n, &at, which == 0 ? 2 : 1, dot->contract[which], dot->ncontract);
    if (which == 1)
        add_axes(&d, n, &at, 2, dot->free[1], dot->nfree[1]);
    return d;
}

/* Lays the operand out and widens its elements to 8 bytes. Memory stays in s->temp. */
static dc_status pack(dc_eval_state *s, side *d, bool floats, void **slot)
{
    const dc_node *n = dc_node_at(s->f, d->ref);
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t count = dc_node_count(n);
    const void *from;
    DC_TRY(reordered(s, d->ref, d->axis, &s->temp[2], &from));
    DC_TRY(dc_eval_alloc(s, count, sizeof(double), slot));
    if (count > 0 && floats)
        dc_eval_get_f(s->mode, t, from, 0, count, *slot);
    else if (count > 0)
        dc_eval_get_i(t, from, 0, count, *slot);
    dc_eval_drop(&s->temp[2]);
    d->data = *slot;
    return DC_OK;
}

/*
 * c[0..n) += a[0..k) * b[k][n]. Four rows at a time save loads and stores of c; each element still
 * receives its terms in the order of k.
 */
static void rows_f(int64_t kn, int64_t n, const double *a, const double *b, double *c)
{
    int64_t k = 0;
    for (; k + 4 <= kn; k += 4) {
        const double *b0 = b + k * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
        const double a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
        for (int64_t i = 0; i < n; i++)
            c[i] = (((c[i] + a0 * b0[i]) + a1 * b1[i]) + a2 * b2[i]) + a3 * b3[i];
    }
    for (; k < kn; k++)
        for (int64_t i = 0; i < n; i++)
            c[i] += a[k] * b[k * n + i];
}

static void rows_strict(int64_t kn, int64_t n, const double *a, const double *b, double *c)
{
    for (int64_t k = 0; k < kn; k++)
        for (int64_t i = 0; i < n; i++) {
            const float product = (float)(a[k] * b[k * n + i]);
            c[i] = (double)(float)(c[i] + (double)product);
        }
}

static void rows_i(int64_t kn, int64_t n, const uint64_t *a, const uint64_t *b, uint64_t *c)
{
    for (int64_t k = 0; k < kn; k++)
        for (int64_t i = 0; i < n; i++)
            c[i] += a[k] * b[k * n + i];
}

void dc_eval_rows(dc_eval_mode mode, dc_dtype t, int64_t kn, int64_t n, const void *a,
                  const void *b, void *c)
{
    if (!dc_dtype_is_float(t))
        rows_i(kn, n, a, b, c);
    else if (mode == DC_EVAL_STRICT && t != DC_F64)
        rows_strict(kn, n, a, b, c);
    else
        rows_f(kn, n, a, b, c);
}

dc_status dc_eval_dot(dc_eval_state *s, dc_ref r)
{
    const dc_node *nd = dc_node_at(s->f, r);
    const dc_dtype rt = (dc_dtype)nd->dtype;
    const dc_dot dot = dc_dot_of(s->f, nd);
    const bool floats = dc_dtype_is_float(rt);
    side a = side_of(s->f, nd->in[0], &dot, 0), b = side_of(s->f, nd->in[1], &dot, 1);
    const int64_t m = a.extent[1], k = a.extent[2], n = b.extent[2];
    if (dc_node_count(nd) == 0)
        return DC_OK;
    DC_TRY(pack(s, &a, floats, &s->temp[0]));
    DC_TRY(pack(s, &b, floats, &s->temp[1]));
    DC_TRY(dc_eval_alloc(s, n, sizeof(double), &s->temp[2]));
    const int64_t part = dc_max_i64(PART / n, 4); /* terms between two looks whether to go on */
    for (int64_t row = 0; row < a.extent[0] * m; row++) {
        const int64_t at_a = row * k, at_b = row / m * k * n;
        memset(s->temp[2], 0, (size_t)n * sizeof(double));
        for (int64_t done = 0; done < k; done += part) {
            dc_job_look();
            dc_eval_rows(s->mode, rt, dc_min_i64(part, k - done), n, (double *)a.data + at_a + done,
                         (double *)b.data + at_b + done * n,
                         s->temp[2]); /* patterns have the size of doubles */
        }
        if (floats)
            dc_eval_put_f(s->mode, rt, s->value[r], row * n, n, s->temp[2]);
        else
            dc_eval_put_i(rt, s->value[r], row * n, n, s->temp[2]);
    }
    return DC_OK;
}
