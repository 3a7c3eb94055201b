/*
 * Element-wise operations of the interpreter, in chunks: operands are brought to doubles or to
 * patterns, one loop per row of the op table (its evalf column) or dc_op_eval runs over the chunk,
 * the result is rounded or cut to its dtype.
 */
#include "core/eval/eval_impl.h"
#include "core/ir/power.h"
#include "core/ir/special.h"

#include <math.h>
#include <string.h>

/* ---- elements ---- */

void dc_eval_get_f(dc_eval_mode mode, dc_dtype t, const void *at, int64_t i, int64_t n, double *out)
{
    if (dc_eval_holds_double(mode, t)) {
        memcpy(out, (const double *)at + i, (size_t)n * sizeof *out);
    } else if (t == DC_F32) {
        const float *from = (const float *)at + i;
        for (int64_t k = 0; k < n; k++)
            out[k] = (double)from[k];
    } else {
        uint64_t bits[DC_EVAL_CHUNK];
        for (int64_t done = 0; done < n; done += DC_EVAL_CHUNK) {
            const int64_t m = dc_min_i64(DC_EVAL_CHUNK, n - done);
            dc_eval_get_i(t, at, i + done, m, bits);
            for (int64_t k = 0; k < m; k++)
                out[done + k] = dc_value_of(t, bits[k]);
        }
    }
}

void dc_eval_put_f(dc_eval_mode mode, dc_dtype t, void *at, int64_t i, int64_t n, const double *in)
{
    if (!dc_dtype_is_float(t)) {
        uint8_t *to = (uint8_t *)at + i;
        DC_ASSERT(t == DC_BOOL, "a float operation gives %s", dc_dtype_name(t));
        for (int64_t k = 0; k < n; k++)
            to[k] = in[k] != 0;
    } else if (dc_eval_holds_double(mode, t)) {
        memcpy((double *)at + i, in, (size_t)n * sizeof *in);
    } else if (t == DC_F32) {
        float *to = (float *)at + i;
        for (int64_t k = 0; k < n; k++)
            to[k] = (float)in[k];
    } else {
        char *to = (char *)at + (size_t)i * dc_dtype_size(t);
        for (int64_t k = 0; k < n; k++)
            dc_bits_store(t, to + (size_t)k * dc_dtype_size(t), dc_bits_of(t, in[k]));
    }
}

void dc_eval_get_i(dc_dtype t, const void *at, int64_t i, int64_t n, uint64_t *out)
{
    dc_bits_load_many(t, (const char *)at + (size_t)i * dc_dtype_size(t), n, out);
}

void dc_eval_put_i(dc_dtype t, void *at, int64_t i, int64_t n, const uint64_t *in)
{
    dc_bits_store_many(t, (char *)at + (size_t)i * dc_dtype_size(t), n, in);
}

/* ---- chunks ---- */

typedef struct chunk {
    const dc_node *n;
    dc_dtype t, rt; /* of the last operand and of the result */
    int64_t at, count;
} chunk;

/* Names that the evalf column uses; what they mean is in core/ir/op.c. */
#define dc_flt_max(a, b) dc_op_evalf(DC_OP_MAX, (a), (b), 0)
#define dc_flt_min(a, b) dc_op_evalf(DC_OP_MIN, (a), (b), 0)
#define NONE             0

/* clang-format off */
static void loop_f(dc_op op, int64_t count, const double *x, const double *y, const double *z,
                   double *out)
{
    switch ((int)op) {
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    case DC_OP_##id:                                                                  \
        for (int64_t i = 0; i < count; i++) {                                         \
            const double a = x[i], b = y[i], c = z[i];                                \
            DC_UNUSED(a), DC_UNUSED(b), DC_UNUSED(c);                                 \
            out[i] = (double)(evalf);                                                 \
        }                                                                             \
        return;
#include "core/ir/ops.def"
    }
    DC_BUG("%d is not element-wise", (int)op);
}
/* clang-format on */

static void chunk_f(dc_eval_state *s, const chunk *c, void *to)
{
    double in[3][DC_EVAL_CHUNK], out[DC_EVAL_CHUNK];
    const int nin = c->n->nin;
    for (int k = 0; k < nin; k++) {
        const dc_dtype t = (dc_dtype)dc_node_at(s->f, c->n->in[k])->dtype;
        dc_eval_get_f(s->mode, t, s->value[c->n->in[k]], c->at, c->count, in[k]);
    }
    const bool single = !dc_eval_holds_double(s->mode, c->rt);
    if (c->n->op == DC_OP_POW && single)
        for (int64_t i = 0; i < c->count; i++)
            out[i] = (double)dc_power_f32((float)in[0][i], (float)in[1][i]);
    else if (c->n->op == DC_OP_POWER)
        dc_short_powers(c->count, in[0], in[1], !single, out);
    else
        loop_f((dc_op)c->n->op, c->count, in[0], in[nin > 1 ? 1 : 0], in[nin > 2 ? 2 : 0], out);
    dc_eval_put_f(s->mode, c->rt, to, c->at, c->count, out);
}

static void chunk_i(dc_eval_state *s, const chunk *c, void *to)
{
    uint64_t in[4][DC_EVAL_CHUNK], out[DC_EVAL_CHUNK];
    DC_ASSERT(c->n->nin <= 4, "%d operands", c->n->nin);
    for (int k = 0; k < c->n->nin; k++) {
        const dc_dtype t = (dc_dtype)dc_node_at(s->f, c->n->in[k])->dtype;
        dc_eval_get_i(t, s->value[c->n->in[k]], c->at, c->count, in[k]);
    }
    if (c->n->op == DC_OP_CAST)
        for (int64_t i = 0; i < c->count; i++)
            out[i] = dc_bits_cast(c->t, c->rt, in[0][i]);
    else
        dc_op_eval_many((dc_op)c->n->op, c->t, c->rt, c->count,
                        (const uint64_t *const[]){in[0], in[1], in[2], in[3]}, out);
    dc_eval_put_i(c->rt, to, c->at, c->count, out);
}

/* Of integers that a double need not hold: straight to the float. */
static void chunk_cast_long(dc_eval_state *s, const chunk *c, void *to)
{
    uint64_t bits[DC_EVAL_CHUNK];
    dc_eval_get_i(c->t, s->value[c->n->in[0]], c->at, c->count, bits);
    for (int64_t i = 0; i < c->count; i++)
        bits[i] = dc_bits_cast(c->t, c->rt, bits[i]);
    dc_eval_put_i(c->rt, to, c->at, c->count, bits);
}

/* Between floats and integers; a wide float has no pattern, so its value is what is cast. */
static void chunk_cast(dc_eval_state *s, const chunk *c, void *to)
{
    const void *from = s->value[c->n->in[0]];
    double v[DC_EVAL_CHUNK];
    uint64_t bits[DC_EVAL_CHUNK];
    if (!dc_dtype_is_float(c->t) && dc_dtype_bits(c->t) == 64 && s->mode != DC_EVAL_WIDE) {
        chunk_cast_long(s, c, to);
        return;
    }
    if (dc_dtype_is_float(c->rt)) {
        dc_eval_get_f(s->mode, c->t, from, c->at, c->count, v);
        dc_eval_put_f(s->mode, c->rt, to, c->at, c->count, v);
        return;
    }
    dc_eval_get_f(s->mode, c->t, from, c->at, c->count, v);
    for (int64_t i = 0; i < c->count; i++)
        bits[i] = dc_bits_of(c->rt, v[i]);
    dc_eval_put_i(c->rt, to, c->at, c->count, bits);
}

/* A wide float has no pattern of its own: that of the value, rounded. */
static bool is_wide(const dc_eval_state *s, dc_dtype t)
{
    return dc_eval_holds_double(s->mode, t) && t != DC_F64;
}

static void chunk_bitcast(dc_eval_state *s, const chunk *c, void *to)
{
    const void *from = s->value[c->n->in[0]];
    double v[DC_EVAL_CHUNK];
    uint64_t bits[DC_EVAL_CHUNK];
    if (is_wide(s, c->t)) {
        dc_eval_get_f(s->mode, c->t, from, c->at, c->count, v);
        for (int64_t i = 0; i < c->count; i++)
            bits[i] = dc_bits_of(c->t, v[i]);
    } else {
        dc_eval_get_i(c->t, from, c->at, c->count, bits);
    }
    for (int64_t i = 0; i < c->count; i++)
        bits[i] = dc_bits_canonical(c->rt, bits[i]);
    if (is_wide(s, c->rt)) {
        for (int64_t i = 0; i < c->count; i++)
            v[i] = dc_value_of(c->rt, bits[i]);
        dc_eval_put_f(s->mode, c->rt, to, c->at, c->count, v);
    } else {
        dc_eval_put_i(c->rt, to, c->at, c->count, bits);
    }
}

/* Floats of patterns. */
static void chunk_half(dc_eval_state *s, const chunk *c, void *to)
{
    uint64_t bits[DC_EVAL_CHUNK];
    double v[DC_EVAL_CHUNK];
    dc_eval_get_i(c->t, s->value[c->n->in[0]], c->at, c->count, bits);
    for (int64_t i = 0; i < c->count; i++)
        v[i] = dc_value_of(DC_F16, bits[i]);
    dc_eval_put_f(s->mode, c->rt, to, c->at, c->count, v);
}

void dc_eval_ew(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const int64_t count = dc_node_count(n);
    chunk c = {.n = n, .rt = (dc_dtype)n->dtype};
    c.t = (dc_dtype)dc_node_at(s->f, n->in[n->nin - 1])->dtype;
    const bool moves = n->op == DC_OP_WHERE || n->op == DC_OP_STOP; /* patterns as they are */
    const bool floats = dc_dtype_is_float(c.t) && (!moves || is_wide(s, c.t));
    for (; c.at < count; c.at += DC_EVAL_CHUNK) {
        c.count = dc_min_i64(DC_EVAL_CHUNK, count - c.at);
        dc_job_look();
        if (n->op == DC_OP_CAST && (floats || dc_dtype_is_float(c.rt)))
            chunk_cast(s, &c, s->value[r]);
        else if (n->op == DC_OP_BITCAST)
            chunk_bitcast(s, &c, s->value[r]);
        else if (n->op == DC_OP_HALF)
            chunk_half(s, &c, s->value[r]);
        else if (floats)
            chunk_f(s, &c, s->value[r]);
        else
            chunk_i(s, &c, s->value[r]);
    }
}
