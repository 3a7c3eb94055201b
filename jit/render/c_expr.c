/*
 * Expressions of the C family (jit/render/c_expr.h).
 */
#include "jit/render/c_expr.h"

#include <inttypes.h>

/* Arithmetic --------------------------------------------------------------------------------- */

/* The value with its sign turned. */
static void put_negative(dc_c_text *r, dc_fv v)
{
    const dc_finst *i = dc_ctext_at(r, v);
    if (i->op == DC_K_CONST)
        dc_c_text_float(r, (dc_dtype)i->type, i->imm ^ (uint64_t)1 << (dc_dtype_bits(i->type) - 1));
    else
        dc_c_text_put(r, "-%V", v);
}

static const char *fma_of(const dc_finst *i)
{
    return i->type == DC_F64 ? "fma_f64(" : "fma(";
}

/* A sum whose operand p is the product m. */
static void put_contracted(dc_c_text *r, dc_fv v, dc_fv m)
{
    const dc_finst *i = dc_ctext_at(r, v), *product = dc_ctext_at(r, m);
    const bool first = i->in[0] == m, minus = i->op == DC_K_SUB;
    dc_c_text_put(r, "%s", fma_of(i));
    if (minus && !first)
        put_negative(r, product->in[0]);
    else
        dc_c_text_value(r, product->in[0]);
    dc_c_text_put(r, ", %V, ", product->in[1]);
    if (minus && first)
        put_negative(r, i->in[1]);
    else
        dc_c_text_value(r, i->in[first ? 1 : 0]);
    dc_c_text_put(r, ")");
}

/* The function that rounds by itself, in a strict kernel of a dialect that has them; else NULL. */
static const char *strict_function(const dc_c_text *r, const dc_finst *i, dc_kop op)
{
    const int wide = i->type == DC_F64;
    if (!r->f->strict)
        return NULL;
    return op == DC_K_ADD   ? r->d->add[wide]
           : op == DC_K_SUB ? r->d->sub[wide]
           : op == DC_K_MUL ? r->d->mul[wide]
                            : NULL;
}

static void put_fma(dc_c_text *r, const dc_finst *i)
{
    const char *mul = strict_function(r, i, DC_K_MUL);
    if (!r->f->strict)
        dc_c_text_put(r, "%s%V, %V, %V)", fma_of(i), i->in[0], i->in[1], i->in[2]);
    else if (mul != NULL)
        dc_c_text_put(r, "%s%s%V, %V), %V)", strict_function(r, i, DC_K_ADD), mul, i->in[0],
                      i->in[1], i->in[2]);
    else
        dc_c_text_put(r, "%V * %V + %V", i->in[0], i->in[1], i->in[2]);
}

static void put_float_op(dc_c_text *r, dc_fv v)
{
    const dc_finst *i = dc_ctext_at(r, v);
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    const char *function = strict_function(r, i, (dc_kop)i->op);
    switch ((int)i->op) {
    case DC_K_ADD:
    case DC_K_SUB:
    case DC_K_MUL:
    case DC_K_MUL_ALONE:
    case DC_K_DIV:
        if (r->plan.product[v] != 0)
            put_contracted(r, v, r->plan.product[v]);
        else if (function != NULL)
            dc_c_text_put(r, "%s%V, %V)", function, i->in[0], i->in[1]);
        else
            dc_c_text_put(r, "%V %s %V", i->in[0], c, i->in[1]);
        return;
    case DC_K_FMA:
        put_fma(r, i);
        return;
    case DC_K_NEG:
        put_negative(r, i->in[0]);
        return;
    case DC_K_SQRT:
        dc_c_text_put(r, "%s%V)", i->type == DC_F64 ? "sqrt_f64(" : c, i->in[0]);
        return;
    }
    dc_c_text_no_rendering(r, i);
}

static bool wraps(dc_kop op)
{
    return op == DC_K_ADD || op == DC_K_SUB || op == DC_K_MUL || op == DC_K_SHL;
}

static void put_integer_op(dc_c_text *r, const dc_finst *i)
{
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    const dc_kop op = (dc_kop)i->op;
    const int width = dc_flat_width(r->f, i->type);
    const char *t = dc_c_text_type(r, i->type, false);
    if (op == DC_K_DP4A) {
        dc_c_text_put(r, "dp4a(%V, %V, %V)", i->in[0], i->in[1], i->in[2]);
        return;
    }
    if (c[0] == '\0' || dc_kop_row_of(op)->n != 2)
        dc_c_text_no_rendering(r, i);
    if (i->type == DC_BOOL && op != DC_K_AND && op != DC_K_OR && op != DC_K_XOR)
        dc_c_text_put(r, "((%V %s %V) & 1) != 0", i->in[0], c, i->in[1]);
    else if (wraps(op) && (dc_ftype_is_signed(i->type) || width == 16)) /* not as an int */
        dc_c_text_put(r, width == 64 ? "(%s)((u64)%V %s (u64)%V)" : "(%s)((u32)%V %s (u32)%V)", t,
                      i->in[0], c, i->in[1]);
    else if (width < 32)
        dc_c_text_put(r, "(%s)(%V %s %V)", t, i->in[0], c, i->in[1]);
    else if (i->type == DC_INDEX && wraps(op) && dc_ctext_at(r, i->in[0])->op == DC_K_CONST)
        dc_c_text_put(r, "(%s)%V %s %V", dc_c_text_type(r, DC_INDEX, false), i->in[0], c, i->in[1]);
    else
        dc_c_text_put(r, "%V %s %V", i->in[0], c, i->in[1]);
}

/* Half of the lanes from `first` on, in the loop over all. */
static void put_half_lane(dc_c_text *r, dc_fv v, int first)
{
    const dc_finst *i = dc_ctext_at(r, v);
    if (i->op == DC_K_LANES)
        dc_c_text_put(r, "(%s)((l / 2 + %d) * %l)", dc_c_text_type(r, i->type, false), first,
                      (int64_t)i->imm);
    else if (dc_cplan_inline(i))
        dc_c_text_put(r, "%V", v);
    else
        dc_c_text_put(r, "v%u[l / 2 + %d]", v, first);
}

static void put_zip(dc_c_text *r, const dc_finst *i)
{
    const int first = i->op == DC_K_ZIP_HIGH ? i->lanes / 2 : 0;
    dc_c_text_put(r, "(l & 1) == 0 ? ");
    put_half_lane(r, i->in[0], first);
    dc_c_text_put(r, " : ");
    put_half_lane(r, i->in[1], first);
}

static void put_same(dc_c_text *r, dc_fv v)
{
    const dc_finst *i = dc_ctext_at(r, v);
    if (dc_kop_zips((dc_kop)i->op))
        put_zip(r, i);
    else if (dc_ftype_is_number(i->type))
        put_float_op(r, v);
    else
        put_integer_op(r, i);
}

static void put_convert_half(dc_c_text *r, const dc_finst *i)
{
    const int from = dc_ctext_at(r, i->in[0])->type, to = i->type;
    if (r->d->prelude_half == NULL || from == DC_BF16 || (from != DC_F32 && to != DC_F32))
        dc_c_text_no_rendering(r, i);
    if (to == DC_F32)
        dc_c_text_put(r, "from_f16(%V)", i->in[0]);
    else
        dc_c_text_put(r, "to_%s(%V)", dc_dtype_name((dc_dtype)to), i->in[0]);
}

static void put_convert(dc_c_text *r, const dc_finst *i)
{
    const int from = dc_ctext_at(r, i->in[0])->type, to = i->type;
    const char *t = dc_c_text_type(r, to, false);
    if (from != to && (dc_ftype_is_short(from) || dc_ftype_is_short(to))) {
        put_convert_half(r, i);
        return;
    }
    if (dc_ftype_is_float(from) && to == DC_BOOL)
        dc_c_text_put(r, "%V >= 1.0f", i->in[0]);
    else if (dc_ftype_is_float(from) && !dc_ftype_is_float(to))
        dc_c_text_put(r, "%s_of_%s(%V)", t, dc_c_text_type(r, from, false), i->in[0]);
    else if (to == DC_BOOL && from != DC_BOOL)
        dc_c_text_put(r, "(%V & 1) != 0", i->in[0]);
    else
        dc_c_text_put(r, "(%s)%V", t, i->in[0]);
}

static void put_bitcast(dc_c_text *r, const dc_finst *i)
{
    const int from = dc_ctext_at(r, i->in[0])->type, to = i->type;
    const char *t = dc_c_text_type(r, to, false);
    if (from == to)
        dc_c_text_put(r, "%V", i->in[0]);
    else if (dc_ftype_is_number(from))
        dc_c_text_put(r, "%s%s%sbits_of_%s(%V)", dc_ftype_is_signed(to) ? "(" : "",
                      dc_ftype_is_signed(to) ? t : "", dc_ftype_is_signed(to) ? ")" : "",
                      dc_c_text_type(r, from, false), i->in[0]);
    else if (dc_ftype_is_number(to))
        dc_c_text_put(r, "%s_of_bits(%s%V)", t,
                      !dc_ftype_is_signed(from)         ? ""
                      : dc_flat_width(r->f, from) == 64 ? "(u64)"
                                                        : "(u32)",
                      i->in[0]);
    else
        dc_c_text_put(r, "(%s)%V", t, i->in[0]);
}

static void put_shuffle(dc_c_text *r, const dc_finst *i)
{
    if (r->d->shuffle == NULL || r->f->lanes == 0)
        dc_c_text_no_rendering(r, i);
    const char *t = dc_c_text_type(r, i->type, false);
    const bool narrow = dc_flat_width(r->f, i->type) < 32;
    dc_c_text_put(r, "(%s)%s%s%V, %V, %d)", t, r->d->shuffle, narrow ? "(u32)" : "", i->in[0],
                  i->in[1], r->f->lanes);
}

/* Memory ------------------------------------------------------------------------------------- */

void dc_c_expr_element(dc_c_text *r, const dc_finst *i)
{
    const int64_t step = (int64_t)i->imm;
    const bool spread = i->op == DC_K_GATHER || i->op == DC_K_SCATTER;
    dc_c_text_put(r, "b%u[%V", i->buf, i->in[0]);
    if (i->lanes > 1 && !spread && step == 1)
        dc_c_text_put(r, " + l");
    else if (i->lanes > 1 && !spread && step != 0)
        dc_c_text_put(r, " %s (%s)l * %l", step < 0 ? "-" : "+", dc_c_text_type(r, DC_INDEX, false),
                      step < 0 ? -step : step);
    dc_c_text_put(r, "]");
}

static void put_load(dc_c_text *r, const dc_finst *i)
{
    const dc_fv mask = i->in[1];
    const bool is_bool = i->type == DC_BOOL;
    if (mask != 0)
        dc_c_text_put(r, "%V %s ", mask, is_bool ? "&&" : "?");
    dc_c_expr_element(r, i);
    if (is_bool)
        dc_c_text_put(r, " != 0");
    else if (mask != 0)
        dc_c_text_put(r, dc_ftype_is_number(i->type) ? " : 0.0f" : " : 0");
}

/* Numbers of a table are integers of 32 or 64 bits; what is shorter or has a sign is cut from that. */
static void put_cell(dc_c_text *r, const dc_finst *i)
{
    const uint32_t table = dc_cell_table(i);
    const bool is_float = dc_ftype_is_float(i->type);
    if (is_float)
        dc_c_text_put(r, i->type == DC_F64 ? "f64_of_bits((u64)" : "f32_of_bits((u32)");
    else
        dc_c_text_put(r, "(%s)", dc_c_text_type(r, i->type, false));
    dc_c_text_put(r, "t%u_%s[%V * %u + %u]%s", table, r->f->name, i->in[0],
                  r->f->table.at[table].columns, dc_cell_column(i), is_float ? ")" : "");
}

void dc_c_expr_put(dc_c_text *r, dc_fv v)
{
    const dc_finst *i = dc_ctext_at(r, v);
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    switch ((dc_kform)dc_kop_row_of((dc_kop)i->op)->form) {
    case DC_KFORM_SAME:
        put_same(r, v);
        return;
    case DC_KFORM_TEST:
        dc_c_text_put(r, "%V %s %V", i->in[0], c, i->in[1]);
        return;
    case DC_KFORM_PICK:
        dc_c_text_put(r, "%V ? %V : %V", i->in[0], i->in[1], i->in[2]);
        return;
    case DC_KFORM_CONV:
        if (i->op == DC_K_CELL)
            put_cell(r, i);
        else if (i->op == DC_K_CONVERT)
            put_convert(r, i);
        else
            put_bitcast(r, i);
        return;
    case DC_KFORM_LANE:
        put_shuffle(r, i);
        return;
    case DC_KFORM_MEM:
        put_load(r, i);
        return;
    case DC_KFORM_LEAF:
    case DC_KFORM_CTRL:
        break;
    }
    DC_BUG("%s is no expression", dc_kop_row_of((dc_kop)i->op)->name);
}
