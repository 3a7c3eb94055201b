/*
 * Types of results: for every operation a dtype rule, a shape rule and a names rule, named by the
 * columns of core/ir/ops.def. Rules read operands and attributes and write one part of the result, in
 * that order: dtype, dims (core/ir/infer_shape.c), names (core/ir/infer_names.c). Whatever comes in
 * is checked, for the text parser feeds anything.
 */
#include "core/ir/infer_impl.h"

#include <stdio.h>

typedef dc_status rule(const dc_site *s);

static dc_dtype dtype_of(const dc_type *t)
{
    return (dc_dtype)t->dtype;
}

/* ---- dtypes ---- */

static dc_status need(const dc_site *s, int operand, bool ok, const char *what)
{
    if (ok)
        return DC_OK;
    return dc_fail(s->j, DC_ERR_DTYPE,
                   &(dc_fact){.op = dc_site_name(s),
                              .type = {operand ? s->in[operand - 1] : *s->want},
                              .word = {what},
                              .operand = operand});
}

/* Operands from `first` on agree; theirs is the dtype of the result. */
static dc_status alike(const dc_site *s, int first)
{
    for (int i = first + 1; i < s->nin; i++)
        if (s->in[i].dtype != s->in[first].dtype)
            return dc_fail(s->j, DC_ERR_DTYPE_MIX,
                           &(dc_fact){.op = dc_site_name(s),
                                      .type = {s->in[first], s->in[i]},
                                      .operand = i + 1});
    s->out->dtype = s->in[first].dtype;
    return DC_OK;
}

static dc_status dtype_any(const dc_site *s)
{
    return alike(s, 0);
}

static dc_status dtype_num(const dc_site *s)
{
    for (int i = 0; i < s->nin; i++)
        DC_TRY(need(s, i + 1, s->in[i].dtype != DC_BOOL, "a number"));
    return alike(s, 0);
}

static dc_status dtype_flt(const dc_site *s)
{
    for (int i = 0; i < s->nin; i++)
        DC_TRY(need(s, i + 1, dc_dtype_is_smooth(dtype_of(&s->in[i])), "a float"));
    return alike(s, 0);
}

/* Of real numbers, which are the parts. */
static dc_status dtype_fft(const dc_site *s)
{
    DC_TRY(need(s, 1, s->in[0].dtype == DC_F32 || s->in[0].dtype == DC_F64, "f32 or f64"));
    return alike(s, 0);
}

static dc_status dtype_bits(const dc_site *s)
{
    for (int i = 0; i < s->nin; i++)
        DC_TRY(need(s, i + 1, !dc_dtype_is_smooth(dtype_of(&s->in[i])), "an integer or bool"));
    return alike(s, 0);
}

static dc_status dtype_int(const dc_site *s)
{
    DC_TRY(dtype_bits(s));
    return need(s, 1, s->in[0].dtype != DC_BOOL, "an integer");
}

static dc_status dtype_u32(const dc_site *s)
{
    for (int i = 0; i < s->nin; i++)
        DC_TRY(need(s, i + 1, s->in[i].dtype == DC_U32, "u32"));
    return alike(s, 0);
}

static dc_status dtype_half(const dc_site *s)
{
    DC_TRY(need(s, 1, s->in[0].dtype == DC_U16, "u16"));
    s->out->dtype = DC_F32;
    return DC_OK;
}

/* As wide as what is wanted, which is one number, too. */
static dc_status dtype_pattern(const dc_site *s)
{
    const dc_dtype from = dtype_of(&s->in[0]), to = dtype_of(s->want);
    dc_fact fact = {.op = dc_site_name(s), .type = {s->in[0], dc_type_scalar(to)}, .operand = 1};
    char type[DC_TYPE_TEXT], text[DC_TYPE_TEXT + 80];
    DC_TRY(need(s, 1, from != DC_BOOL, "a number"));
    if (dc_bits_width(from) == dc_bits_width(to) && !dc_dtype_is_complex(to)) {
        s->out->dtype = (uint8_t)to;
        return DC_OK;
    }
    dc_type_print(&s->in[0], type, sizeof type);
    if (dc_dtype_is_complex(to))
        snprintf(text, sizeof text, "an element of %s is two numbers", dc_dtype_name(to));
    else
        snprintf(text, sizeof text, "elements of %s have %d bits, those of %s %d", type,
                 dc_bits_width(from), dc_dtype_name(to), dc_bits_width(to));
    fact.word[0] = text;
    return dc_fail(s->j, DC_ERR_DTYPE_TEXT, &fact);
}

static dc_status dtype_sel(const dc_site *s)
{
    DC_TRY(need(s, 1, s->in[0].dtype == DC_BOOL, "bool"));
    return alike(s, 1);
}

/* Sums of bool and short integers are i32. */
static dc_status dtype_accum(const dc_site *s)
{
    const dc_dtype t = dtype_of(&s->in[0]);
    s->out->dtype = !dc_dtype_is_smooth(t) && dc_dtype_bits(t) < 32 ? DC_I32 : t;
    return DC_OK;
}

/* Integers that say which elements; the elements before and behind them agree. */
static dc_status dtype_gather(const dc_site *s)
{
    const bool ok = dc_dtype_kind(dtype_of(&s->in[1])) == DC_KIND_SINT ||
                    dc_dtype_kind(dtype_of(&s->in[1])) == DC_KIND_UINT;
    DC_TRY(need(s, 2, ok, "an integer"));
    s->out->dtype = s->in[0].dtype;
    return DC_OK;
}

static dc_status dtype_scatter(const dc_site *s)
{
    DC_TRY(dtype_gather(s));
    if (s->in[2].dtype != s->in[0].dtype)
        return dc_fail(
            s->j, DC_ERR_DTYPE_MIX,
            &(dc_fact){.op = dc_site_name(s), .type = {s->in[0], s->in[2]}, .operand = 3});
    return DC_OK;
}

static dc_status dtype_scatadd(const dc_site *s)
{
    DC_TRY(need(s, 1, s->in[0].dtype != DC_BOOL, "a number"));
    return dtype_scatter(s);
}

static dc_status dtype_want(const dc_site *s)
{
    s->out->dtype = s->want->dtype;
    return DC_OK;
}

static dc_status dtype_first(const dc_site *s)
{
    s->out->dtype = s->in[0].dtype;
    return DC_OK;
}

/* Positions: dtypes that hold them without wrapping early. */
static dc_status dtype_iota(const dc_site *s)
{
    DC_TRY(need(s, 0, dc_dtype_bits(dtype_of(s->want)) >= 32, "a dtype of 32 or 64 bits"));
    return dtype_want(s);
}

/* Whoever makes one knows the bodies, and asks dc_control_infer. */
static dc_status dtype_control(const dc_site *s)
{
    return dc_failf(s->j, DC_ERR_ARG, dc_site_name(s), "control flow belongs to a function");
}

/* ---- the table ---- */

static rule *const rules[] = {
/* clang-format off */
#define dtype_CONST dtype_want
#define dtype_PARAM dtype_want
#define dtype_IOTA  dtype_iota
#define dtype_HOLE  dtype_want
#define EW(id, lua, n, flags, type, names, shape, grad, evalf, evali, expand, lo, hi) \
    [DC_OP_##id] = dtype_##type,
#define RED(id, lua, combine, type, names, grad, lo, hi) \
    [DC_OP_##id] = dtype_##type,
#define MOV(id, lua, names, grad)                  [DC_OP_##id] = dtype_any,
#define SRC(id, lua)                               [DC_OP_##id] = dtype_##id,
#define CON(id, lua, type, names, grad, lo, hi)    [DC_OP_##id] = dtype_##type,
#define IDX(id, lua, n, combine, type, grad, lo, hi) [DC_OP_##id] = dtype_##type,
#define HST(id, lua, n, rule, grad, lo, hi)        [DC_OP_##id] = dc_infer_host_dtype,
#define FFT(id, lua, grad)                         [DC_OP_##id] = dtype_fft,
#define SAME(id, lua, n, grad)                     [DC_OP_##id] = dtype_first,
#define PART(id, lua, n)                           [DC_OP_##id] = dtype_any,
#define COM(id, lua, grad, lo, hi)                 [DC_OP_##id] = dc_infer_exchange_dtype,
#define MSG(id, lua, n, grad)                      [DC_OP_##id] = dc_infer_exchange_dtype,
#define CTL(id, lua, n)                            [DC_OP_##id] = dtype_control,
#include "core/ir/ops.def"
    /* clang-format on */
};

/* Does the operation need `want`? */
static bool needs_want(dc_op op)
{
    return op == DC_OP_CAST || op == DC_OP_BITCAST || dc_op_is(op, DC_CLASS_SRC) ||
           op == DC_OP_RESHAPE || op == DC_OP_EXPAND || op == DC_OP_SLICE || op == DC_OP_PAD ||
           op == DC_OP_RECV;
}

/* Does the operation have a meaning for complex numbers? (core/build/complex.h makes others of it.) */
static bool takes_complex(dc_op op)
{
    static const bool takes[DC_OP__COUNT] = {
        [DC_OP_NEG] = true,     [DC_OP_ABS] = true,     [DC_OP_EXP] = true,
        [DC_OP_LOG] = true,     [DC_OP_SQRT] = true,    [DC_OP_SIN] = true,
        [DC_OP_TAN] = true,     [DC_OP_SINH] = true,    [DC_OP_COSH] = true,
        [DC_OP_COS] = true,     [DC_OP_STOP] = true,    [DC_OP_ADD] = true,
        [DC_OP_SUB] = true,     [DC_OP_MUL] = true,     [DC_OP_DIV] = true,
        [DC_OP_EQ] = true,      [DC_OP_NE] = true,      [DC_OP_WHERE] = true,
        [DC_OP_SUM] = true,     [DC_OP_PROD] = true,    [DC_OP_RESHAPE] = true,
        [DC_OP_PERMUTE] = true, [DC_OP_EXPAND] = true,  [DC_OP_SLICE] = true,
        [DC_OP_PAD] = true,     [DC_OP_FLIP] = true,    [DC_OP_DOT] = true,
        [DC_OP_GATHER] = true,  [DC_OP_SCATTER] = true, [DC_OP_SCATTER_ADD] = true};
    return takes[op] || dc_op_is(op, DC_CLASS_SRC);
}

static dc_status refuse_complex(const dc_site *s)
{
    for (int i = 0; i < s->nin; i++)
        DC_TRY(need(s, i + 1, takes_complex(s->op) || !dc_dtype_is_complex(dtype_of(&s->in[i])),
                    "a real number"));
    return DC_OK;
}

static dc_status result_dtype(const dc_site *s)
{
    const dc_op_row *row = dc_op_row_of(s->op);
    if (dc_op_any_number(s->op) ? s->nin < 1 || s->nin > DC_MAX_TYPED : s->nin != row->n)
        return dc_failf(s->j, DC_ERR_ARG, row->name, "%d operands given, %d needed", s->nin,
                        row->n);
    if (needs_want(s->op) && s->want == NULL)
        DC_BUG("%s without its type", row->name);
    DC_TRY(refuse_complex(s));
    DC_TRY(rules[s->op](s));
    if (s->op == DC_OP_ABS)
        s->out->dtype = (uint8_t)dc_dtype_part(dtype_of(s->out));
    if (row->flags & DC_OPF_CMP)
        s->out->dtype = DC_BOOL;
    if (s->op == DC_OP_CAST)
        s->out->dtype = s->want->dtype;
    return DC_OK;
}

dc_status dc_infer_dtype(dc_job *j, dc_op op, const dc_type *in, int nin, const dc_type *want,
                         dc_dtype *out)
{
    dc_type type = {0};
    const dc_site s = {.j = j, .op = op, .in = in, .nin = nin, .want = want, .out = &type};
    DC_TRY(result_dtype(&s));
    *out = dtype_of(&type);
    return DC_OK;
}

dc_status dc_infer(dc_job *j, dc_op op, const dc_type *in, int nin, const int64_t *attr, int nattr,
                   const dc_type *want, dc_type *out)
{
    dc_type type = {0};
    const dc_site s = {j, op, in, nin, attr, nattr, want, &type};
    DC_TRY(result_dtype(&s));
    DC_TRY(dc_infer_shape(&s));
    DC_TRY(dc_infer_names(&s));
    DC_TRY(dc_infer_extents(&s));
    if (!dc_type_has_parts(&type))
        return dc_fail(j, DC_ERR_TOO_MANY_AXES,
                       &(dc_fact){.op = dc_site_name(&s), .num = {type.rank, DC_MAX_RANK - 1}});
    if (!dc_dims_fit(type.rank, type.dim, dc_dtype_size(dtype_of(&type)))) {
        char text[DC_TYPE_TEXT];
        dc_type_print(&type, text, sizeof text);
        return dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.op = dc_site_name(&s), .word = {text}});
    }
    *out = type;
    return DC_OK;
}
