/*
 * Simplification: one walk over the live nodes in order, which makes each again in a new function,
 * from operands that are simple already. dc_simplify_emit() is that maker: it folds constants, tries the
 * rules (core/ir/simplify_ew.c for element-wise operations, one small function per movement operation
 * and reduction below), and only then adds a node. What a rule builds goes through dc_simplify_emit() again.
 *
 * The walk leaves behind nodes that lost their last user, so the result is cloned once more.
 */
#include "core/ir/control.h"
#include "core/ir/dot.h"
#include "core/ir/simplify_impl.h"
#include "core/ir/subgraph.h"

#include <math.h>

/* The same operation on another operand with other attributes. */
static dc_ref emit_again(const dc_simplify_site *s, dc_ref a, const int64_t *attr, int nattr)
{
    return dc_simplify_emit(&(dc_simplify_site){.f = s->f,
                                                .op = s->op,
                                                .in = {a},
                                                .nin = 1,
                                                .attr = attr,
                                                .nattr = nattr,
                                                .type = s->type});
}

static dc_ref emit_reshape(const dc_simplify_site *s, dc_ref a)
{
    return dc_simplify_emit(
        &(dc_simplify_site){.f = s->f, .op = DC_OP_RESHAPE, .in = {a}, .nin = 1, .type = s->type});
}

/* Here and below 0 is returned when there is nothing to do. */

/* ---- movement ---- */

static bool same_dims(const dc_simplify_site *s)
{
    const dc_type t = dc_node_type(s->f, s->in[0]);
    return dc_type_same(&t, &s->type);
}

/* A const moved is the const of the new type; only a pad may bring in another value. */
static dc_ref move_const(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    if (n->op != DC_OP_CONST)
        return 0;
    if (s->op == DC_OP_PAD && s->attr[s->nattr - 1] != n->attr[0])
        return 0;
    return dc_simplify_const(s, (uint64_t)n->attr[0]);
}

static dc_ref simplify_reshape(const dc_simplify_site *s)
{
    if (same_dims(s))
        return s->in[0];
    return dc_simplify_operand(s, 0)->op == DC_OP_RESHAPE
               ? emit_again(s, dc_simplify_operand(s, 0)->in[0], NULL, 0)
               : 0;
}

static dc_ref simplify_permute(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    int64_t perm[DC_MAX_RANK], last = -1;
    bool in_order = true; /* do the axes that are not of size 1 stay in order? */
    for (int i = 0; i < s->nattr; i++)
        if (s->type.dim[i] != 1) {
            in_order = in_order && s->attr[i] > last;
            last = s->attr[i];
        }
    if (in_order)
        return emit_reshape(s, s->in[0]);
    if (n->op != DC_OP_PERMUTE)
        return 0;
    for (int i = 0; i < s->nattr; i++)
        perm[i] = n->attr[s->attr[i]];
    return emit_again(s, n->in[0], perm, s->nattr);
}

static dc_ref simplify_expand(const dc_simplify_site *s)
{
    if (same_dims(s))
        return s->in[0];
    return dc_simplify_operand(s, 0)->op == DC_OP_EXPAND
               ? emit_again(s, dc_simplify_operand(s, 0)->in[0], NULL, 0)
               : 0;
}

/* Does the slice take nothing of what pad n puts somewhere? Along one axis both are apart. */
static bool misses(const dc_simplify_site *s, const dc_func *f, const dc_node *n)
{
    const dc_node *in = dc_node_at(f, n->in[0]);
    const int rank = n->rank;
    for (int i = 0; i < rank; i++) {
        const int64_t lo = n->attr[i], hi = lo + (in->dim[i] - 1) * n->attr[rank + i];
        const int64_t first = s->attr[i];
        const int64_t last = first + (s->type.dim[i] - 1) * s->attr[rank + i];
        if (in->dim[i] == 0 || last < lo || hi < first)
            return true;
    }
    return false;
}

/* Of a sum, where one side adds a constant alone: -0 changes nothing, 0 only the sign of a zero. */
static dc_ref slice_of_sum(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    const dc_ref in[2] = {n->in[0], n->in[1]};
    const bool pads =
        dc_node_at(s->f, in[0])->op == DC_OP_PAD && dc_node_at(s->f, in[1])->op == DC_OP_PAD;
    for (int i = 0; i < 2 && pads; i++) {
        const dc_node *p = dc_node_at(s->f, in[i]);
        const uint64_t fill = (uint64_t)p->attr[2 * p->rank];
        if (!misses(s, s->f, p))
            continue;
        const dc_ref rest = emit_again(s, in[1 - i], s->attr, s->nattr);
        return dc_simplify_emit(&(dc_simplify_site){.f = s->f,
                                                    .op = DC_OP_ADD,
                                                    .in = {rest, dc_simplify_const(s, fill)},
                                                    .nin = 2,
                                                    .type = s->type});
    }
    return 0;
}

/* What lies inside of what was padded is a part of that. */
static dc_ref slice_of_pad(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0), *in = dc_node_at(s->f, n->in[0]);
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int64_t by = n->attr[rank + i], first = s->attr[i] - n->attr[i];
        const int64_t step = s->type.dim[i] > 1 ? s->attr[rank + i] : by;
        if (first < 0 || first % by != 0 || step % by != 0)
            return 0;
        attr[i] = first / by;
        attr[rank + i] = step / by;
        if (attr[i] + (s->type.dim[i] - 1) * attr[rank + i] >= in->dim[i])
            return 0;
    }
    return emit_again(s, n->in[0], attr, 2 * rank);
}

static dc_ref simplify_slice(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK];
    if (same_dims(s))
        return s->in[0];
    if (n->op == DC_OP_ADD)
        return slice_of_sum(s);
    if (n->op == DC_OP_PAD)
        return slice_of_pad(s);
    if (n->op != DC_OP_SLICE)
        return 0;
    for (int i = 0; i < rank; i++) {
        const int64_t start = s->attr[i], step = s->attr[rank + i];
        attr[i] = n->attr[i] + start * n->attr[rank + i];
        if (s->type.dim[i] <= 1)
            attr[rank + i] = 1;
        else if (!dc_mul_ok(step, n->attr[rank + i], &attr[rank + i]))
            return 0;
    }
    return emit_again(s, n->in[0], attr, 2 * rank);
}

static dc_ref simplify_pad(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    const int rank = n->rank;
    int64_t attr[2 * DC_MAX_RANK + 1];
    if (same_dims(s))
        return s->in[0];
    if (n->op != DC_OP_PAD || n->attr[2 * rank] != s->attr[2 * rank])
        return 0;
    for (int i = 0; i < rank; i++) { /* in range, for both lie inside the result */
        const int64_t lo = s->attr[i], step = s->attr[rank + i];
        if (!dc_mul_ok(n->attr[i], step, &attr[i]) || !dc_add_ok(attr[i], lo, &attr[i]) ||
            !dc_mul_ok(n->attr[rank + i], step, &attr[rank + i]))
            return 0;
    }
    attr[2 * rank] = s->attr[2 * rank];
    return emit_again(s, n->in[0], attr, 2 * rank + 1);
}

static dc_ref simplify_flip(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    int64_t mask = s->attr[0];
    for (int i = 0; i < n->rank; i++)
        if (n->dim[i] <= 1)
            mask &= ~((int64_t)1 << i);
    if (mask == 0)
        return s->in[0];
    if (n->op == DC_OP_FLIP) {
        mask ^= n->attr[0];
        return mask == 0 ? n->in[0] : emit_again(s, n->in[0], &mask, 1);
    }
    return mask == s->attr[0] ? 0 : emit_again(s, s->in[0], &mask, 1);
}

static dc_ref simplify_move(const dc_simplify_site *s)
{
    const dc_ref moved = move_const(s);
    if (moved != 0)
        return moved;
    switch ((int)s->op) {
    case DC_OP_RESHAPE:
        return simplify_reshape(s);
    case DC_OP_PERMUTE:
        return simplify_permute(s);
    case DC_OP_EXPAND:
        return simplify_expand(s);
    case DC_OP_SLICE:
        return simplify_slice(s);
    case DC_OP_PAD:
        return simplify_pad(s);
    case DC_OP_FLIP:
        return simplify_flip(s);
    }
    return 0;
}

/* ---- reductions and the rest ---- */

/* Elements that make one of the result. */
static int64_t reduced_count(const dc_simplify_site *s)
{
    int64_t count = 1;
    for (int i = 0; i < dc_simplify_operand(s, 0)->rank; i++)
        if (s->attr[0] >> i & 1)
            count *= dc_simplify_operand(s, 0)->dim[i];
    return count;
}

/*
 * n times a constant, when every partial sum is a float, so that no order of additions rounds:
 * the constant is m * 2^e with m * n at most 2^24 (in f64 2^53). Short floats are added up as f32.
 */
static dc_ref sum_of_const(const dc_simplify_site *s, int64_t n)
{
    const dc_dtype t = dc_simplify_dtype(s, s->in[0]);
    const uint64_t bits = (uint64_t)dc_simplify_operand(s, 0)->attr[0];
    if (!dc_dtype_is_float(t)) {
        const uint64_t product[2] = {dc_bits_cast(t, (dc_dtype)s->type.dtype, bits), (uint64_t)n};
        return dc_simplify_const(
            s, dc_op_eval(DC_OP_MUL, (dc_dtype)s->type.dtype, (dc_dtype)s->type.dtype, product));
    }
    int e;
    const double v = dc_value_of(t, bits);
    const int digits = t == DC_F64 ? 53 : 24, range = t == DC_F64 ? 1023 : 127;
    double m = isfinite(v) ? ldexp(fabs(frexp(v, &e)), digits) : INFINITY; /* a whole number */
    while (m > 0 && isfinite(m) && fmod(m, 2) == 0)
        m /= 2;
    if (m * (double)n > ldexp(1, digits) || fabs(v) * (double)n > ldexp(1, range))
        return 0;
    return dc_simplify_const(s, dc_bits_of(t, v * (double)n + 0.0)); /* a sum begins with +0 */
}

static dc_ref reduce_const(const dc_simplify_site *s, int64_t n)
{
    if (n == 0)
        return dc_simplify_const(s, dc_op_identity(s->op, (dc_dtype)s->type.dtype));
    if (dc_simplify_operand(s, 0)->op != DC_OP_CONST)
        return 0;
    if (s->op == DC_OP_SUM)
        return sum_of_const(s, n);
    if (s->op == DC_OP_PROD)
        return dc_is_const(s->f, s->in[0], 1)
                   ? dc_simplify_const(s, dc_op_identity(s->op, (dc_dtype)s->type.dtype))
                   : 0;
    return dc_simplify_const(s, (uint64_t)dc_simplify_operand(s, 0)->attr[0]);
}

/* Axes of the inner reduction, then those of the outer one, which counts without them. */
static int64_t join_masks(const dc_node *inner, int rank, int64_t outer)
{
    int64_t mask = inner->attr[0];
    for (int i = 0, kept = 0; i < rank; i++)
        if ((inner->attr[0] >> i & 1) == 0 && (outer >> kept++ & 1) != 0)
            mask |= (int64_t)1 << i;
    return mask;
}

static dc_ref simplify_reduce(const dc_simplify_site *s)
{
    const dc_node *n = dc_simplify_operand(s, 0);
    const int64_t count = reduced_count(s);
    const dc_ref constant = reduce_const(s, count);
    if (constant != 0)
        return constant;
    if (count == 1 && n->dtype == s->type.dtype &&
        (s->op != DC_OP_SUM || dc_simplify_no_minus_zero(s->f, s->in[0], 8))) /* 0 + -0 is 0 */
        return emit_reshape(s, s->in[0]);
    if (n->op == s->op && s->op != DC_OP_SUM && s->op != DC_OP_PROD) {
        const int64_t mask = join_masks(n, dc_node_at(s->f, n->in[0])->rank, s->attr[0]);
        return emit_again(s, n->in[0], &mask, 1);
    }
    return 0;
}

/* A product over no elements is a sum of nothing. */
static dc_ref simplify_dot(const dc_simplify_site *s)
{
    if (s->op == DC_OP_CONV)
        return dc_node_count(dc_simplify_operand(s, 1)) == 0 ? dc_simplify_const(s, 0) : 0;
    const dc_dot d =
        dc_dot_read(s->attr, dc_simplify_operand(s, 0)->rank, dc_simplify_operand(s, 1)->rank);
    for (int i = 0; i < d.ncontract; i++)
        if (dc_simplify_operand(s, 0)->dim[d.contract[0][i]] == 0)
            return dc_simplify_const(s, 0);
    return 0;
}

/* Of equal elements it does not matter which are picked; where nothing is put, nothing changes. */
static dc_ref simplify_index(const dc_simplify_site *s)
{
    if (s->op == DC_OP_GATHER)
        return dc_simplify_operand(s, 0)->op == DC_OP_CONST
                   ? dc_simplify_const(s, (uint64_t)dc_simplify_operand(s, 0)->attr[0])
                   : 0;
    return dc_node_count(dc_simplify_operand(s, 2)) == 0 ? s->in[0] : 0;
}

/* Said once is enough. */
static dc_ref simplify_size(const dc_simplify_site *s)
{
    for (dc_ref r = s->in[0]; dc_node_at(s->f, r)->op == DC_OP_SET_SIZE;
         r = dc_node_at(s->f, r)->in[0])
        if (dc_node_at(s->f, r)->in[1] == s->in[1] && dc_node_at(s->f, r)->attr[0] == s->attr[0])
            return s->in[0];
    return 0;
}

static dc_ref simplify_site(const dc_simplify_site *s)
{
    if (dc_type_count(&s->type) == 0 && s->op != DC_OP_CONST)
        return dc_simplify_const(s, 0); /* no element is ever read */
    switch ((dc_op_class)dc_op_row_of(s->op)->cls) {
    case DC_CLASS_EW:
        return dc_simplify_ew(s);
    case DC_CLASS_RED:
        return simplify_reduce(s);
    case DC_CLASS_MOV:
        return simplify_move(s);
    case DC_CLASS_CON:
        return simplify_dot(s);
    case DC_CLASS_IDX:
        return simplify_index(s);
    case DC_CLASS_SAME: /* walk_node makes the others */
        return s->op == DC_OP_SET_SIZE ? simplify_size(s) : 0;
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_FFT:
    case DC_CLASS_PART:
    case DC_CLASS_CTL:
        return 0;
    case DC_CLASS_SRC:
        return s->op == DC_OP_IOTA && s->type.dim[s->attr[0]] == 1 ? dc_simplify_const(s, 0) : 0;
    }
    return 0;
}

dc_ref dc_simplify_emit(const dc_simplify_site *s)
{
    const dc_ref r = simplify_site(s);
    return r != 0 ? r : dc_graph_make(s->f, s->op, s->in, s->nin, s->attr, s->nattr, &s->type);
}

static uint32_t simplified_body(dc_module *m, uint32_t body)
{
    if (m->body.at[body].simplified != 0)
        return m->body.at[body].simplified - 1;
    dc_func *f = dc_simplify(dc_body_at(m, body));
    const uint32_t made = dc_body_add(m, f);
    dc_func_drop(f);
    m->body.at[body].simplified = made + 1;
    return made;
}

/* A loop or branch with simplified bodies; a pick of one; a transform. */
static dc_ref walk_many(dc_func *to, const dc_node *n, const dc_ref *map)
{
    dc_ref in[DC_MAX_OPERANDS];
    int64_t attr[DC_LOOP_ATTRS];
    for (int i = 0; i < n->nin; i++)
        in[i] = map[n->in[i]];
    for (int i = 0; i < n->nattr; i++)
        attr[i] = n->attr[i];
    for (int i = 0; i < dc_node_bodies(n); i++)
        attr[i] = simplified_body(to->module, (uint32_t)attr[i]);
    return dc_graph_make(to, (dc_op)n->op, in, n->nin, attr, n->nattr, NULL);
}

/* Makes node r of `from` again; map holds its operands. */
static dc_ref walk_node(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *map)
{
    const dc_node *n = dc_node_at(from, r);
    if (n->op == DC_OP_CUSTOM || n->op == DC_OP_RESHARD) /* values are not in parts here */
        return map[n->in[0]];
    if (n->op == DC_OP_BARRIER)
        return dc_graph_barrier(to, map[n->in[0]], map[n->in[1]]);
    if (dc_op_is((dc_op)n->op, DC_CLASS_CTL) || dc_op_is((dc_op)n->op, DC_CLASS_FFT))
        return walk_many(to, n, map);
    dc_simplify_site s = {.f = to,
                          .op = (dc_op)n->op,
                          .nin = n->nin,
                          .attr = n->attr,
                          .nattr = n->nattr,
                          .type = dc_node_type(from, r)};
    for (int i = 0; i < n->nin; i++)
        s.in[i] = map[n->in[i]];
    return dc_simplify_emit(&s);
}

static bool is_shared(const dc_func *f, dc_ref r)
{
    const int op = dc_node_at(f, r)->op;
    return op == DC_OP_CONST || op == DC_OP_PARAM;
}

dc_func *dc_simplify(const dc_func *f)
{
    dc_arena *a = &f->module->arena;
    const bool *live = dc_func_live(f, a);
    dc_ref *map = DC_NEW_ARRAY(a, dc_ref, f->node.n);
    dc_func *work = dc_func_new(f->module, f->name);
    dc_graph_params(work, f, map);
    for (dc_ref r = 1; r < f->node.n; r++) {
        if (!live[r] || map[r] != 0)
            continue;
        map[r] = walk_node(work, f, r, map);
        if (!is_shared(work, map[r])) /* they would collect the lines of all that vanished */
            dc_func_copy_origin(work, map[r], f, r);
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(work->result, map[f->result.at[i]]);
    dc_func *out = dc_func_clone(f->module, work, NULL);
    dc_func_drop(work);
    return out;
}
