/*
 * From what a user writes to nodes: broadcasting, matrix products, means, inferred extents.
 *
 * Arguments are checked here, on the types as the user knows them, before anything is inserted; the
 * nodes that follow are right by construction. Failures name the operation as the user calls it.
 */
#include "core/build/build.h"

#include "core/base/extent.h"
#include "core/build/complex.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static dc_dtype dtype_of(const dc_type *t)
{
    return (dc_dtype)t->dtype;
}

/* The same of complex numbers, whose type is known to be `type`. */
static dc_ref make_complex(dc_job *j, dc_func *f, dc_op op, const dc_val *in, const dc_ref *refs,
                           int n, const int64_t *attr, int nattr, const dc_type *type)
{
    if (dc_op_is(op, DC_CLASS_MOV))
        return dc_complex_move(f, op, refs[0], attr, &in[0].type, type);
    if (dc_op_is(op, DC_CLASS_RED))
        return dc_complex_reduce(j, f, op, refs[0], (uint32_t)attr[0]);
    if (op == DC_OP_DOT)
        return dc_complex_dot(f, refs[0], refs[1], attr, nattr);
    if (op == DC_OP_CONST)
        return dc_complex_const(f, type, (uint64_t)attr[0]);
    DC_ASSERT(dc_op_is(op, DC_CLASS_IDX), "%s", dc_op_row_of(op)->name);
    return dc_graph_make(f, op, refs, n, attr, nattr, NULL);
}

/* One node whose named type follows from the operands' named types. */
static dc_status make_typed(dc_job *j, dc_func *f, dc_op op, const dc_val *in, int n,
                            const int64_t *attr, int nattr, const dc_type *want, dc_val *out)
{
    dc_ref refs[4];
    dc_type types[4], type;
    for (int i = 0; i < n; i++) {
        refs[i] = in[i].ref;
        types[i] = in[i].type;
    }
    DC_TRY(dc_infer(j, op, types, n, attr, nattr, want, &type));
    if (dc_dtype_is_complex(dtype_of(&type)))
        out->ref = make_complex(j, f, op, in, refs, n, attr, nattr, &type);
    else
        DC_TRY(dc_make(j, f, op, refs, n, attr, nattr, want, &out->ref));
    out->type = type;
    return DC_OK;
}

static dc_status check_size(dc_job *j, const char *op, const dc_type *t)
{
    char text[DC_TYPE_TEXT];
    if (dc_dims_fit(t->rank, t->dim, dc_dtype_size(dtype_of(t))))
        return DC_OK;
    dc_type_print(t, text, sizeof text);
    return dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.op = op, .word = {text}});
}

/* ---- broadcasting ---- */

/* What the operands seen so far make of one axis of the result. */
typedef struct joined {
    int64_t dim;
    const char *name;
    int owner; /* operand that gave dim, -1 none yet ... */
    int axis;  /* ... and which of its axes */
} joined;

typedef struct site {
    dc_job *j;
    const char *op;
    const dc_type *const *in; /* the operands' types */
} site;

/* Axis `axis` of operand i has extent dim, named or not. */
static dc_status join_axis(const site *s, joined *a, int i, int axis, int64_t dim, const char *name)
{
    if (a->owner < 0) {
        *a = (joined){dim, name, i, axis};
        return DC_OK;
    }
    dc_fact fact = {.op = s->op,
                    .axis = {a->axis, axis},
                    .num = {a->dim, dim},
                    .type = {*s->in[a->owner], *s->in[i]},
                    .operand = i + 1};
    const bool left_grows = a->dim == 1 && a->name == NULL, right_grows = dim == 1 && name == NULL;
    if (a->dim != dim && !left_grows && !right_grows && a->dim != 1 && dim != 1)
        return dc_fail(s->j, a->axis == axis ? DC_ERR_DIMS : DC_ERR_DIMS_ALIGN, &fact);
    if (a->name != NULL && name != NULL && a->name != name) {
        fact.word[0] = a->name;
        fact.word[1] = name;
        return dc_fail(s->j, DC_ERR_NAMES, &fact);
    }
    if (a->dim != dim && !left_grows && !right_grows) {
        fact.word[0] = dim == 1 ? name : a->name;
        fact.num[0] = dim == 1 ? a->dim : dim;
        fact.axis[0] = dim == 1 ? axis : a->axis;
        fact.operand = (dim == 1 ? i : a->owner) + 1;
        return dc_fail(s->j, DC_ERR_STRETCH, &fact);
    }
    if (a->dim != dim && left_grows) {
        a->dim = dim;
        a->owner = i;
        a->axis = axis;
    }
    if (a->name == NULL)
        a->name = name;
    return DC_OK;
}

/* The operand with this name at axis k of the result, from i on; n if none has. */
static int named_at(const site *s, int i, int n, const int *skip, int rank, int k, const char *name)
{
    for (; i < n; i++) {
        const int axis = k - rank + s->in[i]->rank - skip[i];
        if (axis >= 0 && s->in[i]->name[axis] == name)
            return i;
    }
    return n;
}

/*
 * A name at two axes of the result that no operand has at both: [n, 1] and [n] would make [n, n], all pairs
 * of elements, where element by element was meant.
 */
static dc_status check_twice(const site *s, int n, const int *skip, const dc_type *out, int k,
                             int m)
{
    const char *name = out->name[k];
    const int first = named_at(s, 0, n, skip, out->rank, k, name);
    const int second = named_at(s, 0, n, skip, out->rank, m, name);
    for (int i = first; i < n; i = named_at(s, i + 1, n, skip, out->rank, k, name))
        if (named_at(s, i, i + 1, skip, out->rank, m, name) == i)
            return DC_OK;
    char text[DC_TYPE_TEXT];
    dc_type result = *out;
    result.dtype = s->in[first]->dtype;
    dc_type_print(&result, text, sizeof text);
    return dc_fail(s->j, DC_ERR_NAME_TWICE,
                   &(dc_fact){.op = s->op,
                              .axis = {k, m},
                              .type = {*s->in[first], *s->in[second]},
                              .word = {name, text},
                              .operand = second + 1});
}

static dc_status check_names(const site *s, int n, const int *skip, const dc_type *out)
{
    for (int k = 0; k < out->rank; k++)
        for (int m = k + 1; m < out->rank; m++)
            if (out->name[k] != NULL && out->name[k] == out->name[m])
                DC_TRY(check_twice(s, n, skip, out, k, m));
    return DC_OK;
}

/*
 * Dims and names of the result of broadcasting the leading axes of operands, all but the last
 * skip[i] of operand i; they align at their right ends, from where they are compared. Fills out's
 * rank, dims and names.
 */
static dc_status broadcast(const site *s, int n, const int *skip, dc_type *out)
{
    int rank = 0;
    for (int i = 0; i < n; i++)
        rank = s->in[i]->rank - skip[i] > rank ? s->in[i]->rank - skip[i] : rank;
    out->rank = (uint8_t)rank;
    for (int k = rank - 1; k >= 0; k--) {
        joined a = {.owner = -1};
        for (int i = 0; i < n; i++) {
            const int axis = k - rank + s->in[i]->rank - skip[i];
            if (axis >= 0)
                DC_TRY(join_axis(s, &a, i, axis, s->in[i]->dim[axis], s->in[i]->name[axis]));
        }
        out->dim[k] = a.dim;
        out->name[k] = a.name;
    }
    return check_names(s, n, skip, out);
}

/* Puts axes of size 1 in front and stretches to the dims of `to`, which is known to fit. */
static dc_ref stretch(dc_func *f, const dc_val *a, const dc_type *to)
{
    int64_t dim[DC_MAX_RANK];
    const int lead = to->rank - a->type.rank;
    for (int i = 0; i < to->rank; i++)
        dim[i] = i < lead ? 1 : a->type.dim[i - lead];
    if (dc_complex_is(a)) {
        const dc_type up = dc_type_make(dtype_of(&a->type), to->rank, dim);
        const dc_type all = dc_type_make(dtype_of(&a->type), to->rank, to->dim);
        const dc_ref r = dc_complex_move(f, DC_OP_RESHAPE, a->ref, NULL, &a->type, &up);
        return dc_complex_move(f, DC_OP_EXPAND, r, NULL, &up, &all);
    }
    return dc_graph_expand(f, dc_graph_reshape(f, a->ref, to->rank, dim), to->dim);
}

dc_status dc_build_ew(dc_job *j, dc_func *f, dc_op op, const dc_val *in, int n, dc_val *out)
{
    const char *name = dc_op_row_of(op)->name;
    dc_type types[4], common = {0};
    const dc_type *at[4];
    dc_ref refs[4];
    dc_dtype t;
    DC_ASSERT(n == dc_op_row_of(op)->n && n <= 4 && op != DC_OP_CAST && op != DC_OP_BITCAST,
              "%s of %d", name, n);
    for (int i = 0; i < n; i++) {
        types[i] = in[i].type;
        at[i] = &types[i];
    }
    DC_TRY(dc_infer_dtype(j, op, types, n, NULL, &t));
    DC_TRY(broadcast(&(site){j, name, at}, n, (const int[4]){0}, &common));
    for (int i = 0; i < n; i++) {
        common.dtype = in[i].type.dtype;
        DC_TRY(check_size(j, name, &common));
    }
    common.dtype = (uint8_t)t;
    DC_TRY(check_size(j, name, &common));
    for (int i = 0; i < n; i++)
        refs[i] = stretch(f, &in[i], &common);
    if (dc_complex_is(&in[n - 1]))
        out->ref = dc_complex_ew(j, f, op, refs, n);
    else
        out->ref = dc_graph_make(f, op, refs, n, NULL, 0, NULL);
    out->type = common;
    return DC_OK;
}

dc_status dc_build_cast(dc_job *j, dc_func *f, dc_val a, dc_dtype t, dc_val *out)
{
    dc_type want = a.type;
    want.dtype = (uint8_t)t;
    DC_TRY(check_size(j, "cast", &want));
    if (dc_complex_is(&a) && !dc_dtype_is_complex(t))
        return dc_failf(j, DC_ERR_ARG, "cast",
                        "%s holds no complex numbers: :real() is their real part, :imag() the "
                        "imaginary one, :abs() the size",
                        dc_dtype_name(t));
    out->ref = dc_dtype_is_complex(t) ? dc_complex_cast(f, a, t) : dc_graph_cast(f, a.ref, t);
    out->type = want;
    return DC_OK;
}

dc_status dc_build_bitcast(dc_job *j, dc_func *f, dc_val a, dc_dtype t, dc_val *out)
{
    const dc_type want = dc_type_scalar(t);
    dc_dtype made;
    DC_TRY(dc_infer_dtype(j, DC_OP_BITCAST, &a.type, 1, &want, &made));
    out->ref = dc_graph_bitcast(f, a.ref, made);
    out->type = a.type;
    out->type.dtype = (uint8_t)made;
    return DC_OK;
}

dc_status dc_build_expand(dc_job *j, dc_func *f, dc_val a, const dc_type *want, dc_val *out)
{
    dc_type to = *want, common = {0};
    char words[40];
    to.dtype = a.type.dtype;
    if (a.type.rank > want->rank) {
        snprintf(words, sizeof words, "%d are wanted", want->rank);
        return dc_fail(j, DC_ERR_RANK,
                       &(dc_fact){.op = "expand",
                                  .num = {a.type.rank},
                                  .type = {a.type, to},
                                  .word = {words},
                                  .operand = 1});
    }
    const dc_type *const at[2] = {&a.type, &to};
    DC_TRY(check_size(j, "expand", &to));
    DC_TRY(broadcast(&(site){j, "expand", at}, 2, (const int[2]){0}, &common));
    for (int i = 0; i < to.rank; i++)
        if (common.dim[i] != to.dim[i]) /* the operand's dim against a wanted 1 */
            return dc_fail(j, DC_ERR_DIMS,
                           &(dc_fact){.op = "expand",
                                      .axis = {i, i},
                                      .num = {common.dim[i], to.dim[i]},
                                      .type = {a.type, to},
                                      .operand = 1});
    common.dtype = a.type.dtype;
    out->ref = stretch(f, &a, &common);
    out->type = common;
    return DC_OK;
}

/* ---- products ---- */

/* What sums of integers are. */
static dc_dtype wide_of(dc_dtype t)
{
    return dc_dtype_kind(t) == DC_KIND_UINT ? DC_U64 : DC_I64;
}

dc_status dc_build_wide(dc_job *j, dc_func *f, dc_val a, dc_val *out)
{
    const dc_dtype t = dtype_of(&a.type);
    *out = a;
    return dc_dtype_is_smooth(t) ? DC_OK : dc_build_cast(j, f, a, wide_of(t), out);
}

dc_status dc_build_factors(dc_job *j, dc_func *f, dc_val *a, dc_val *b, double terms)
{
    dc_val *const factor[2] = {a, b};
    const dc_dtype t = dtype_of(&a->type), u = dtype_of(&b->type);
    const double most = floor(INT32_MAX / ((t == DC_U8 ? 255. : 128) * (u == DC_U8 ? 255. : 128)));
    if (dc_dtype_is_smooth(t) || dc_dtype_is_smooth(u))
        return DC_OK;
    const bool is_short = dc_dtype_bits(t) <= 8 && dc_dtype_bits(u) <= 8;
    const bool is_unsigned = dc_dtype_kind(t) == DC_KIND_UINT && dc_dtype_kind(u) == DC_KIND_UINT;
    if (is_short && terms > most)
        return dc_failf(j, DC_ERR_ARG, NULL,
                        "products of %s are i32, which holds a sum of %.0f of them, not of %.0f; "
                        ":cast \"i32\" of both gives i64",
                        dc_dtype_name(t), most, terms);
    for (int i = 0; i < 2; i++)
        DC_TRY(dc_build_cast(j, f, *factor[i],
                             is_short      ? DC_I32
                             : is_unsigned ? DC_U64
                                           : DC_I64,
                             factor[i]));
    return DC_OK;
}

/* Numbers of one dtype and at least one axis; in the dtype that was asked for, or -1. */
static dc_status check_factors(dc_job *j, dc_func *f, dc_val *a, dc_val *b, int dtype)
{
    dc_val *const factor[2] = {a, b};
    const dc_dtype t = dtype_of(&a->type);
    dc_fact fact = {.op = "matmul", .type = {a->type, b->type}, .operand = 2};
    if (a->type.dtype != b->type.dtype)
        return dc_fail(j, DC_ERR_DTYPE_MIX, &fact);
    for (int i = 0; i < 2; i++) {
        fact.operand = i + 1;
        fact.type[0] = factor[i]->type;
        fact.word[0] = t == DC_BOOL ? "a number" : "at least 1 is needed";
        if (t == DC_BOOL)
            return dc_fail(j, DC_ERR_DTYPE, &fact);
        if (factor[i]->type.rank == 0)
            return dc_fail(j, DC_ERR_RANK, &fact);
    }
    const int inner = a->type.rank - 1;
    for (int i = 0; i < 2 && dtype >= 0; i++)
        DC_TRY(dc_build_cast(j, f, *factor[i], (dc_dtype)dtype, factor[i]));
    if (dtype >= 0)
        return DC_OK;
    return dc_build_factors(j, f, a, b, (double)dc_extent_bound(a->type.dim[inner]));
}

static dc_status check_inner(dc_job *j, const dc_type *a, int left, const dc_type *b, int right)
{
    dc_fact fact = {.op = "matmul",
                    .axis = {left, right},
                    .num = {a->dim[left], b->dim[right]},
                    .type = {*a, *b}};
    if (a->dim[left] != b->dim[right])
        return dc_fail(j, DC_ERR_INNER, &fact);
    fact.word[0] = a->name[left];
    fact.word[1] = b->name[right];
    if (fact.word[0] != NULL && fact.word[1] != NULL && fact.word[0] != fact.word[1])
        return dc_fail(j, DC_ERR_NAMES, &fact);
    return DC_OK;
}

/* The batch axes of both, stretched to the dims they have in common; *nb counts them. */
static dc_status join_batches(dc_job *j, dc_func *f, dc_val *a, dc_val *b, int *nb)
{
    dc_val *const factor[2] = {a, b};
    const dc_type *const at[2] = {&a->type, &b->type};
    dc_type batch = {0};
    DC_TRY(broadcast(&(site){j, "matmul", at}, 2, (const int[2]){2, 2}, &batch));
    *nb = batch.rank;
    for (int i = 0; i < 2; i++) {
        dc_type to = batch;
        to.dtype = factor[i]->type.dtype;
        for (int k = 2; k > 0; k--) {
            to.dim[to.rank] = factor[i]->type.dim[factor[i]->type.rank - k];
            to.name[to.rank++] = factor[i]->type.name[factor[i]->type.rank - k];
        }
        DC_TRY(check_size(j, "matmul", &to));
        factor[i]->ref = stretch(f, factor[i], &to);
        factor[i]->type = to;
    }
    return DC_OK;
}

/* Axis 0 moves to before the last one: m, batch..., n becomes batch..., m, n. */
static dc_status rows_behind_batch(dc_job *j, dc_func *f, dc_val *a)
{
    int64_t perm[DC_MAX_RANK];
    const int rank = a->type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i + 1 : i == rank - 2 ? 0 : i;
    return dc_build_permute(j, f, *a, perm, rank, a);
}

static dc_status check_product(dc_job *j, const dc_val *a, const dc_val *b, int nb, int left,
                               int right)
{
    dc_type t = {.dtype = a->type.dtype};
    for (int i = 0; i < a->type.rank; i++)
        if (i != left)
            t.dim[t.rank++] = a->type.dim[i];
    for (int i = nb; i < b->type.rank; i++)
        if (i != right)
            t.dim[t.rank++] = b->type.dim[i];
    return check_size(j, "matmul", &t);
}

dc_status dc_build_matmul(dc_job *j, dc_func *f, dc_val a, dc_val b, dc_val *out)
{
    return dc_build_matmul_in(j, f, a, b, -1, out);
}

dc_status dc_build_matmul_in(dc_job *j, dc_func *f, dc_val a, dc_val b, int dtype, dc_val *out)
{
    int nb = 0, left = a.type.rank - 1, right = b.type.rank < 2 ? 0 : b.type.rank - 2;
    DC_TRY(check_factors(j, f, &a, &b, dtype));
    DC_TRY(check_inner(j, &a.type, left, &b.type, right));
    if (a.type.rank > 2 && b.type.rank > 2) {
        DC_TRY(join_batches(j, f, &a, &b, &nb));
        left = nb + 1;
        right = nb;
    }
    DC_TRY(check_product(j, &a, &b, nb, left, right));
    dc_dot d = {.nbatch = nb, .ncontract = 1, .contract = {{left}, {right}}};
    for (int i = 0; i < nb; i++)
        d.batch[0][i] = d.batch[1][i] = i;
    DC_TRY(dc_build_dot(j, f, a, b, &d, out));
    return a.type.rank == 2 && b.type.rank > 2 ? rows_behind_batch(j, f, out) : DC_OK;
}

dc_status dc_build_dot(dc_job *j, dc_func *f, dc_val a, dc_val b, const dc_dot *d, dc_val *out)
{
    int64_t attr[DC_DOT_ATTRS];
    return make_typed(j, f, DC_OP_DOT, (const dc_val[]){a, b}, 2, attr, dc_dot_write(d, attr), NULL,
                      out);
}

dc_status dc_build_host(dc_job *j, dc_func *f, dc_op op, const dc_val *in, const int64_t *attr,
                        int nattr, dc_val *out)
{
    return make_typed(j, f, op, in, dc_op_row_of(op)->n, attr, nattr, NULL, out);
}

dc_status dc_build_gather(dc_job *j, dc_func *f, dc_val a, dc_val index, int axis, int nb,
                          dc_val *out)
{
    const int64_t attr[2] = {axis, nb};
    return make_typed(j, f, DC_OP_GATHER, (const dc_val[]){a, index}, 2, attr, 2, NULL, out);
}

dc_status dc_build_scatter(dc_job *j, dc_func *f, dc_op op, dc_val a, dc_val index, dc_val v,
                           int axis, int nb, dc_val *out)
{
    const int64_t attr[2] = {axis, nb};
    const dc_type in[2] = {a.type, index.type};
    dc_type picked;
    if (v.type.dtype != a.type.dtype)
        return dc_fail(j, DC_ERR_DTYPE_MIX, &(dc_fact){.type = {a.type, v.type}, .operand = 3});
    DC_TRY(dc_infer(j, DC_OP_GATHER, in, 2, attr, 2, NULL, &picked));
    DC_TRY(dc_build_expand(j, f, v, &picked, &v));
    return make_typed(j, f, op, (const dc_val[]){a, index, v}, 3, attr, 2, NULL, out);
}

/* ---- reductions ---- */

/* The operation has no meaning where a size of t is known at run time only. */
static dc_status needs_axis(dc_job *j, const char *op, const dc_type *t, int axis)
{
    return dc_fail(j, DC_ERR_EXTENT,
                   &(dc_fact){.op = op, .axis = {axis}, .type = {*t}, .operand = 1});
}

static dc_status needs_size(dc_job *j, const char *op, const dc_type *t)
{
    int axis = 0;
    while (axis + 1 < t->rank && !dc_extent_is(t->dim[axis]))
        axis++;
    return needs_axis(j, op, t, axis);
}

/* a with other dims. */
static dc_ref reshaped(dc_func *f, const dc_val *a, const dc_type *to)
{
    return dc_complex_is(a) ? dc_complex_move(f, DC_OP_RESHAPE, a->ref, NULL, &a->type, to)
                            : dc_graph_reshape(f, a->ref, to->rank, to->dim);
}

dc_status dc_build_reduce(dc_job *j, dc_func *f, dc_op op, dc_val a, uint32_t axes, bool keep,
                          dc_val *out)
{
    const int64_t attr = axes;
    dc_val v;
    DC_TRY(make_typed(j, f, op, &a, 1, &attr, 1, NULL, &v));
    if (keep) {
        dc_type kept = a.type;
        kept.dtype = v.type.dtype;
        for (int i = 0; i < kept.rank; i++)
            if (axes >> i & 1) {
                kept.dim[i] = 1;
                kept.name[i] = NULL;
            }
        v.ref = reshaped(f, &v, &kept);
        v.type = kept;
    }
    *out = v;
    return DC_OK;
}

/* Do 32 bits with a sign hold the sum of so many terms, whatever is added? Sums of bool and of 8 and 16 bits are i32. */
static bool is_short_sum(dc_dtype t, double terms)
{
    const bool is_signed = dc_dtype_is_signed(t);
    const double most =
        ldexp(terms, dc_dtype_bits(t) - is_signed); /* of a term, a negative one for the signed */
    return dc_dtype_bits(t) < 32 && (is_signed ? most <= ldexp(1, 31) : most < ldexp(1, 31));
}

/* The least number of equal parts of an axis of which each has a short sum; 0 where these are few terms or none. */
static int64_t short_parts(dc_dtype t, int64_t n, double others)
{
    enum { LEAST = 256, MOST = 1024 };
    for (int64_t parts = 2; parts <= MOST && n / parts >= LEAST && dc_dtype_bits(t) < 32; parts++)
        if (n % parts == 0 && is_short_sum(t, (double)(n / parts) * others))
            return parts;
    return 0;
}

/* A sum of more terms than 32 bits hold: of equal parts of an axis, in 32 bits, then of these. */
static dc_status sum_parts(dc_job *j, dc_func *f, dc_val a, uint32_t axes, bool keep, int axis,
                           int64_t parts, dc_val *out)
{
    const uint32_t before = axes & ((1u << axis) - 1), behind = axes >> (axis + 1);
    const uint32_t inner = before | 1u << (axis + 1) | behind << (axis + 2), outer = 1u << axis;
    dc_type t = {.dtype = a.type.dtype, .rank = a.type.rank + 1};
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] = a.type.dim[i <= axis ? i : i - 1];
        t.name[i] = a.type.name[i <= axis ? i : i - 1];
    }
    t.dim[axis] = parts;
    t.name[axis] = NULL;
    t.dim[axis + 1] /= parts;
    dc_val v = {dc_graph_reshape(f, a.ref, t.rank, t.dim), t};
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, v, inner, true, &v));
    DC_TRY(dc_build_cast(j, f, v, wide_of(dtype_of(&a.type)), &v));
    return dc_build_reduce(j, f, DC_OP_SUM, v, keep ? outer : outer | inner, false, out);
}

dc_status dc_build_sum(dc_job *j, dc_func *f, dc_val a, uint32_t axes, bool keep, dc_val *out)
{
    const dc_dtype t = dtype_of(&a.type);
    if (dc_dtype_is_smooth(t))
        return dc_build_reduce(j, f, DC_OP_SUM, a, axes, keep, out);
    double terms = 1;
    int longest = -1;
    bool is_static = true;
    for (int i = 0; i < a.type.rank; i++) {
        is_static &= !dc_extent_is(a.type.dim[i]);
        if ((axes >> i & 1) == 0)
            continue;
        terms *= (double)dc_extent_bound(a.type.dim[i]);
        if (longest < 0 || a.type.dim[i] > a.type.dim[longest])
            longest = i;
    }
    const bool is_short = is_short_sum(t, terms);
    if (!is_short && is_static && terms > 0 && a.type.rank < DC_MAX_RANK) {
        const int64_t n = a.type.dim[longest], parts = short_parts(t, n, terms / (double)n);
        if (parts > 0)
            return sum_parts(j, f, a, axes, keep, longest, parts, out);
    }
    if (!is_short)
        DC_TRY(dc_build_wide(j, f, a, &a));
    DC_TRY(dc_build_reduce(j, f, DC_OP_SUM, a, axes, keep, out));
    return dc_build_cast(j, f, *out, wide_of(t), out);
}

dc_status dc_build_count(dc_job *j, dc_func *f, const dc_type *t, double each, dc_val *out)
{
    dc_val ones;
    DC_TRY(dc_build_const(j, f, t, each, &ones));
    return dc_build_reduce(j, f, DC_OP_SUM, ones, (1u << t->rank) - 1, false, out);
}

dc_status dc_build_mean(dc_job *j, dc_func *f, dc_val a, uint32_t axes, bool keep, dc_val *out)
{
    double count = 1;
    dc_type counted = {.dtype = DC_F32};
    if (axes >> a.type.rank != 0)
        return dc_build_reduce(j, f, DC_OP_SUM, a, axes, keep, out); /* fails: AXIS */
    for (int i = 0; i < a.type.rank; i++)
        if (axes >> i & 1 && dc_extent_is(a.type.dim[i]))
            counted.dim[counted.rank++] = a.type.dim[i];
        else if (axes >> i & 1)
            count *= (double)a.type.dim[i];
    const bool whole = !dc_dtype_is_smooth(dtype_of(&a.type));
    if (whole && dc_dtype_bits(dtype_of(&a.type)) == 64) /* a sum in 64 bits may wrap */
        DC_TRY(dc_build_cast(j, f, a, DC_F64, &a));
    DC_TRY(dc_build_sum(j, f, a, axes, keep, out));
    if (whole)
        DC_TRY(dc_build_cast(j, f, *out, DC_F64, out));
    if (dc_complex_is(&a) && counted.rank == 0) {
        const dc_type one = dc_type_scalar(dtype_of(&a.type));
        dc_val by;
        DC_TRY(dc_build_const(j, f, &one, count, &by));
        return dc_build_ew(j, f, DC_OP_DIV, (const dc_val[]){*out, by}, 2, out);
    }
    if (dc_complex_is(&a))
        return needs_size(j, "mean", &a.type);
    dc_val by = {dc_graph_like(f, out->ref, count), out->type};
    if (counted.rank > 0) {
        DC_TRY(dc_build_count(j, f, &counted, count, &by));
        DC_TRY(dc_build_cast(j, f, by, dtype_of(&out->type), &by));
        DC_TRY(dc_build_expand(j, f, by, &out->type, &by));
    }
    out->ref = dc_graph_op2(f, DC_OP_DIV, out->ref, by.ref);
    return whole ? dc_build_cast(j, f, *out, DC_F32, out) : DC_OK;
}

/* ---- movement and sources ---- */

/* Replaces the one dim of -1 in *want by what the elements of a leave for it. */
static dc_status fill_dim(dc_job *j, const dc_type *a, dc_type *want)
{
    int open = -1;
    for (int i = 0; i < want->rank; i++) {
        if (want->dim[i] >= 0)
            continue;
        if (want->dim[i] < -1 || open >= 0)
            return dc_failf(j, DC_ERR_ARG, "reshape",
                            open >= 0 ? "only one size may be -1" : "a size is 0 or more, or -1");
        open = i;
    }
    if (open >= 0)
        want->dim[open] = 1;
    DC_TRY(check_size(j, "reshape", want));
    if (open < 0)
        return DC_OK;
    dc_extents *e = j->extents;
    const int64_t rest = dc_extent_product(e, want->rank, want->dim);
    const int64_t n = dc_extent_product(e, a->rank, a->dim);
    if (dc_extent_is(rest) || dc_extent_is(n)) {
        want->dim[open] = dc_extent_quotient(e, n, rest);
        return want->dim[open] >= 0 ? DC_OK : needs_size(j, "reshape", a);
    }
    if (rest == 0)
        return dc_failf(j, DC_ERR_ARG, "reshape", "-1 beside a size of 0 could be any size");
    if (n % rest != 0)
        return dc_failf(j, DC_ERR_ARG, "reshape",
                        "%" PRId64 " elements are no multiple of %" PRId64
                        ", the product of the other sizes",
                        n, rest);
    want->dim[open] = n / rest;
    return DC_OK;
}

dc_status dc_build_reshape(dc_job *j, dc_func *f, dc_val a, const dc_type *want, dc_val *out)
{
    dc_type to = *want, type;
    to.dtype = a.type.dtype;
    DC_TRY(fill_dim(j, &a.type, &to));
    DC_TRY(dc_infer(j, DC_OP_RESHAPE, &a.type, 1, NULL, 0, &to, &type));
    out->ref = reshaped(f, &a, &to);
    out->type = type;
    return DC_OK;
}

dc_val dc_build_as(dc_func *f, dc_val a, const dc_type *to)
{
    return (dc_val){reshaped(f, &a, to), *to};
}

bool dc_build_is_bounded(const dc_type *t, uint32_t axes)
{
    for (int i = 0; i < t->rank; i++)
        if ((axes >> i & 1) != 0 && dc_extent_is(t->dim[i]))
            return true;
    return false;
}

dc_status dc_build_at_bound(dc_job *j, dc_func *f, dc_val a, uint32_t axes, double fill,
                            dc_val *out)
{
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK];
    dc_type want = a.type;
    *out = a;
    if (!dc_build_is_bounded(&a.type, axes))
        return DC_OK;
    for (int i = 0; i < DC_MAX_RANK; i++)
        step[i] = 1;
    for (int i = 0; i < want.rank; i++)
        if (axes >> i & 1)
            want.dim[i] = dc_extent_bound(want.dim[i]);
    return dc_build_pad(j, f, a, lo, step, &want, fill, out);
}

dc_status dc_build_up_to(dc_job *j, dc_func *f, dc_val a, const int64_t *dim, dc_val *out)
{
    int64_t first[DC_MAX_RANK] = {0}, last[DC_MAX_RANK], step[DC_MAX_RANK];
    for (int i = 0; i < a.type.rank; i++) {
        last[i] = dc_extent_sub(j->extents, dim[i], 1);
        step[i] = 1;
    }
    return dc_build_slice(j, f, a, first, last, step, out);
}

dc_status dc_build_permute(dc_job *j, dc_func *f, dc_val a, const int64_t *perm, int n, dc_val *out)
{
    dc_type type;
    char words[40];
    if (n != a.type.rank) {
        snprintf(words, sizeof words, "%d are listed", n);
        return dc_fail(j, DC_ERR_RANK,
                       &(dc_fact){.op = "permute",
                                  .num = {a.type.rank},
                                  .type = {a.type},
                                  .word = {words},
                                  .operand = 1});
    }
    DC_TRY(dc_infer(j, DC_OP_PERMUTE, &a.type, 1, perm, n, NULL, &type));
    out->ref = dc_complex_is(&a) ? dc_complex_move(f, DC_OP_PERMUTE, a.ref, perm, &a.type, &type)
                                 : dc_graph_permute(f, a.ref, perm);
    out->type = type;
    return DC_OK;
}

dc_status dc_build_slice(dc_job *j, dc_func *f, dc_val a, const int64_t *first, const int64_t *last,
                         const int64_t *step, dc_val *out)
{
    const int rank = a.type.rank;
    int64_t attr[2 * DC_MAX_RANK];
    dc_type want = a.type, type;
    for (int i = 0; i < rank; i++) {
        const int64_t dim = a.type.dim[i];
        if (step[i] < 1)
            return dc_failf(j, DC_ERR_ARG, "slice", "a step is at least 1");
        attr[i] = first[i];
        attr[rank + i] = step[i];
        if (dc_extent_is(dim) || dc_extent_is(first[i]) || dc_extent_is(last[i])) {
            dc_extents *e = j->extents;
            const int64_t steps = dc_extent_div(e, dc_extent_sub(e, last[i], first[i]), step[i]);
            want.dim[i] = dc_extent_add(e, steps, 1);
            if (want.dim[i] < 0)
                return needs_axis(j, "slice", &a.type, i);
            continue;
        }
        if (first[i] < 0 || first[i] > dim || last[i] >= dim || last[i] < first[i] - 1)
            return dc_fail(j, DC_ERR_SLICE,
                           &(dc_fact){.op = "slice",
                                      .axis = {i},
                                      .num = {first[i] + 1, last[i] + 1},
                                      .type = {a.type},
                                      .operand = 1});
        want.dim[i] = last[i] < first[i] ? 0 : (last[i] - first[i]) / step[i] + 1;
    }
    DC_TRY(dc_infer(j, DC_OP_SLICE, &a.type, 1, attr, 2 * rank, &want, &type));
    out->ref = dc_complex_is(&a) ? dc_complex_move(f, DC_OP_SLICE, a.ref, attr, &a.type, &type)
                                 : dc_graph_slice(f, a.ref, attr, attr + rank, want.dim);
    out->type = type;
    return DC_OK;
}

dc_status dc_build_flip(dc_job *j, dc_func *f, dc_val a, uint32_t axes, dc_val *out)
{
    const int64_t attr = axes;
    return make_typed(j, f, DC_OP_FLIP, &a, 1, &attr, 1, NULL, out);
}

dc_status dc_build_drop(dc_job *j, dc_func *f, dc_val a, uint32_t axes, dc_val *out)
{
    dc_type to = dc_type_scalar(dtype_of(&a.type));
    DC_UNUSED(j);
    for (int i = 0; i < a.type.rank; i++) {
        if (axes >> i & 1)
            continue;
        to.dim[to.rank] = a.type.dim[i];
        to.name[to.rank++] = a.type.name[i];
    }
    out->ref = reshaped(f, &a, &to);
    out->type = to;
    return DC_OK;
}

dc_status dc_build_pad(dc_job *j, dc_func *f, dc_val a, const int64_t *lo, const int64_t *step,
                       const dc_type *want, double fill, dc_val *out)
{
    const int rank = a.type.rank;
    int64_t attr[2 * DC_MAX_RANK + 1];
    for (int i = 0; i < rank; i++) {
        attr[i] = lo[i];
        attr[rank + i] = step[i];
    }
    attr[2 * rank] = (int64_t)dc_bits_of(dtype_of(&a.type), fill);
    return make_typed(j, f, DC_OP_PAD, &a, 1, attr, 2 * rank + 1, want, out);
}

dc_status dc_build_const(dc_job *j, dc_func *f, const dc_type *t, double v, dc_val *out)
{
    return dc_build_bits(j, f, t, dc_bits_of(dtype_of(t), v), out);
}

dc_status dc_build_bits(dc_job *j, dc_func *f, const dc_type *t, uint64_t bits, dc_val *out)
{
    const int64_t attr = (int64_t)bits;
    return make_typed(j, f, DC_OP_CONST, NULL, 0, &attr, 1, t, out);
}

dc_status dc_build_iota(dc_job *j, dc_func *f, const dc_type *t, int axis, dc_val *out)
{
    const int64_t attr = axis;
    dc_type part = *t;
    part.dtype = (uint8_t)dc_dtype_part(dtype_of(t));
    DC_TRY(make_typed(j, f, DC_OP_IOTA, NULL, 0, &attr, 1, &part, out));
    return part.dtype == t->dtype ? DC_OK : dc_build_cast(j, f, *out, dtype_of(t), out);
}
