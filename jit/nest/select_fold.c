/*
 * Values that only choose (jit/nest/select_fold.h).
 *
 * A concatenation is a sum of its inputs, or all of their bits, each with a border of -0 as wide as the others. Where tests exclude
 * each other that is a choice, for which numbers of 16 bits need not be made longer.
 */
#include "jit/nest/select_fold.h"

enum { MOST_PIECES = 16 };

static bool never(const dc_kernel *k, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++) {
        const dc_ix_node *x = &k->ix.at[p.range[i].ix];
        if (x->hi < 0 || x->lo >= p.range[i].n)
            return true;
    }
    return false;
}

/* What changes nothing when it is added, or integers' bits to it: -0 of floats. */
static bool adds_nothing(const dc_kernel *k, dc_vx v)
{
    const dc_vx_node *n = &k->vx.at[v];
    const dc_dtype t = (dc_dtype)n->dtype;
    const uint64_t minus = dc_dtype_is_float(t) ? (uint64_t)1 << (dc_dtype_bits(t) - 1) : 0;
    return n->kind == DC_VX_CONST && n->bits == minus;
}

static bool is_op(const dc_kernel *k, dc_vx v, dc_op op)
{
    return k->vx.at[v].kind == DC_VX_OP && k->vx.at[v].op == op;
}

/* What a number of 16 bits, made longer to f32, was before; 0: it is none. */
static dc_vx before_widening(const dc_kernel *k, dc_vx v, dc_dtype t)
{
    const dc_vx_node *n = &k->vx.at[v];
    return is_op(k, v, DC_OP_CAST) && n->dtype == DC_F32 && k->vx.at[n->in[0]].dtype == t ? n->in[0]
                                                                                          : 0;
}

dc_vx dc_select_operand(const dc_kernel *k, const dc_vx_node *n)
{
    if (n->kind != DC_VX_OP)
        return 0;
    if (n->op == DC_OP_WHERE && k->vx.at[n->in[0]].kind == DC_VX_TEST) {
        const dc_pred p = k->vx.at[n->in[0]].pred;
        return p.n == 0 ? n->in[1] : never(k, p) ? n->in[2] : 0;
    }
    if (n->op == DC_OP_ADD || n->op == DC_OP_OR)
        return adds_nothing(k, n->in[0]) ? n->in[1] : adds_nothing(k, n->in[1]) ? n->in[0] : 0;
    if (n->op == DC_OP_CAST && dc_dtype_is_short((dc_dtype)n->dtype))
        return before_widening(k, n->in[0], (dc_dtype)n->dtype);
    return 0;
}

/* Sums --------------------------------------------------------------------------------------- */

typedef struct pieces { /* of where(test, value, where(test, value, ... -0)) */
    int n;
    dc_vx test[MOST_PIECES], value[MOST_PIECES];
} pieces;

static bool read_pieces(const dc_kernel *k, dc_vx v, pieces *p)
{
    for (p->n = 0; is_op(k, v, DC_OP_WHERE) && p->n < MOST_PIECES; p->n++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (k->vx.at[n->in[0]].kind != DC_VX_TEST)
            return false;
        p->test[p->n] = n->in[0];
        p->value[p->n] = n->in[1];
        v = n->in[2];
    }
    return p->n > 0 && adds_nothing(k, v);
}

/* 0 <= x < n and 0 <= x + d < m: does one of them fail everywhere? */
static bool exclude(dc_kernel *k, dc_range r, dc_range s)
{
    int64_t d;
    return dc_ix_is_const(k, dc_ix_add(k, s.ix, dc_ix_mul(k, r.ix, -1)), &d) &&
           (r.n <= -d || s.n <= d);
}

static bool tests_exclude(dc_kernel *k, dc_vx a, dc_vx b)
{
    const dc_pred p = k->vx.at[a].pred, q = k->vx.at[b].pred;
    for (uint32_t i = 0; i < p.n; i++)
        for (uint32_t j = 0; j < q.n; j++)
            if (exclude(k, p.range[i], q.range[j]))
                return true;
    return false;
}

dc_vx dc_select_sum(dc_kernel *k, dc_vx a, dc_vx b)
{
    pieces p, q;
    if (!read_pieces(k, a, &p) || !read_pieces(k, b, &q))
        return 0;
    for (int i = 0; i < p.n; i++)
        for (int j = 0; j < q.n; j++)
            if (!tests_exclude(k, p.test[i], q.test[j]))
                return 0;
    for (int i = p.n - 1; i >= 0; i--) {
        const dc_vx in[3] = {p.test[i], p.value[i], b};
        b = dc_vx_op(k, DC_OP_WHERE, (dc_dtype)k->vx.at[b].dtype, in, 3);
    }
    return b;
}

/* 16 bits ------------------------------------------------------------------------------------ */

/* Visits `left` values at most, since what is shared is visited for each of its users. */
static dc_vx short_of(dc_kernel *k, dc_vx v, dc_dtype t, int *left)
{
    const dc_vx_node n = k->vx.at[v];
    const dc_vx before = before_widening(k, v, t);
    if (before != 0 || n.dtype != DC_F32 || --*left < 0)
        return before;
    if (n.kind == DC_VX_CONST) {
        const uint64_t bits = dc_bits_cast(DC_F32, t, n.bits);
        return dc_bits_cast(t, DC_F32, bits) == n.bits ? dc_vx_const(k, t, bits) : 0;
    }
    if (!is_op(k, v, DC_OP_WHERE))
        return 0;
    dc_vx in[3] = {n.in[0], short_of(k, n.in[1], t, left), 0};
    if (in[1] != 0)
        in[2] = short_of(k, n.in[2], t, left);
    return in[2] != 0 ? dc_vx_op(k, DC_OP_WHERE, t, in, 3) : 0;
}

dc_vx dc_select_short(dc_kernel *k, dc_vx v, dc_dtype t)
{
    int left = 4 * MOST_PIECES;
    return short_of(k, v, t, &left);
}
