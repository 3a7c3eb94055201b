/*
 * The C family (jit/render_c.h). Values are v<n> by their id, buffers b<n>; constants, splats and
 * the like are written where they are used. Passes leave ids in order, so equal kernels have equal
 * text.
 *
 * Integers wrap: what is signed is computed unsigned and converted. A bool is a byte in memory, and
 * a byte other than 0 reads as true. Whatever could be undefined in C is written so that it is not.
 */
#include "jit/render_c.h"

#include "jit/cplan.h"
#include "jit/dialect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct render {
    dc_job *j;
    const dc_dialect *d;
    const dc_flat *f;
    dc_text *out;
    dc_cplan plan;
    int depth;
} render;

static const dc_finst *at(const render *r, dc_fv v)
{
    return dc_finst_at(r->f, v);
}

/* Types ------------------------------------------------------------------------------------- */

static const char *type_name(const render *r, int type, bool memory)
{
    if (type == DC_INDEX)
        return r->f->index_bits == 32 ? "u32" : "u64";
    if (type == DC_BOOL && memory)
        return "u8";
    if (dc_ftype_is_short(type))
        return "u16";
    return dc_dtype_name((dc_dtype)type);
}

static const char *signed_index(const render *r)
{
    return r->f->index_bits == 32 ? "i32" : "i64";
}

/* Literals ---------------------------------------------------------------------------------- */

/* Of a size below 10000 and a multiple of 1/64: the decimal digits that it has. */
static void put_decimal(render *r, double size)
{
    const uint32_t whole = (uint32_t)size;
    uint32_t digits = (uint32_t)((size - whole) * 64) * 15625;
    int n = 6;
    for (; n > 1 && digits % 10 == 0; n--)
        digits /= 10;
    dc_text_printf(r->out, "%" PRIu32 ".%0*" PRIu32, whole, n, digits);
}

/* Exactly, and in no locale's way. */
static void put_float(render *r, dc_dtype t, uint64_t bits)
{
    const int width = dc_dtype_bits(t), fraction = dc_dtype_fraction(t);
    const int bias = (1 << (width - 2 - fraction)) - 1;
    const uint64_t magnitude = bits & (UINT64_MAX >> (65 - width));
    const double size = dc_value_of(t, magnitude);
    const int exponent = (int)(magnitude >> fraction);
    if (magnitude >= dc_bits_infinity(t)) {
        dc_text_printf(r->out, "%s_of_bits(0x%0*" PRIx64 "u)", dc_dtype_name(t), width / 4, bits);
        return;
    }
    dc_text_puts(r->out, bits != magnitude ? "(-" : "");
    if (size < 10000 && size * 64 == (uint32_t)(size * 64))
        put_decimal(r, size);
    else
        dc_text_printf(r->out, "0x%d.%0*" PRIx64 "p%+d", exponent > 0, (fraction + 3) / 4,
                       (magnitude & (((uint64_t)1 << fraction) - 1)) << (-fraction & 3),
                       exponent > 0 ? exponent - bias : 1 - bias);
    dc_text_puts(r->out, t == DC_F32 ? "f" : "");
    dc_text_puts(r->out, bits != magnitude ? ")" : "");
}

static void put_index(render *r, uint64_t bits)
{
    if (r->f->index_bits == 32)
        dc_text_printf(r->out, "%" PRIu32 "u", (uint32_t)bits);
    else if (bits <= INT64_MAX)
        dc_text_printf(r->out, "%" PRIu64, bits);
    else if ((int64_t)bits > INT32_MIN)
        dc_text_printf(r->out, "(u64)%" PRId64, (int64_t)bits);
    else
        dc_text_printf(r->out, "0x%" PRIx64, bits);
}

static void put_literal(render *r, int type, uint64_t bits)
{
    switch (type) {
    case DC_INDEX:
        put_index(r, bits);
        return;
    case DC_I32:
        if ((uint32_t)bits == 0x80000000u)
            dc_text_puts(r->out, "(-2147483647 - 1)");
        else
            dc_text_printf(r->out, "%" PRId32, (int32_t)(uint32_t)bits);
        return;
    case DC_U32:
        dc_text_printf(r->out, "%" PRIu32 "u", (uint32_t)bits);
        return;
    case DC_I64:
        if (bits == (uint64_t)1 << 63)
            dc_text_puts(r->out, "((i64)-9223372036854775807 - 1)");
        else
            dc_text_printf(r->out, "(i64)%" PRId64, (int64_t)bits);
        return;
    case DC_U64:
        dc_text_printf(r->out, "(u64)%" PRIu64 "u", bits);
        return;
    }
    if (dc_ftype_is_number(type))
        put_float(r, (dc_dtype)type, bits);
    else
        dc_text_printf(r->out, "%" PRId64, (int64_t)bits);
}

/* l * step, in the type of the lanes. */
static void put_lanes(render *r, const dc_finst *i)
{
    if (dc_ftype_is_float(i->type) || i->type == DC_BOOL)
        DC_BUG("%s: lanes of %s", r->f->name, dc_dtype_name((dc_dtype)i->type));
    const char *t = type_name(r, i->type, false);
    const bool wide = dc_flat_width(r->f, i->type) == 64;
    if (i->imm == 1) {
        dc_text_printf(r->out, "(%s)l", t);
    } else if (wide) {
        dc_text_printf(r->out, i->type == DC_INDEX ? "((u64)l * " : "(%s)((u64)l * ", t);
        put_index(r, i->imm);
        dc_text_puts(r->out, ")");
    } else {
        dc_text_printf(r->out, "(%s)((u32)l * %" PRIu32 "u)", t, (uint32_t)i->imm);
    }
}

/* Operands ---------------------------------------------------------------------------------- */

/* `begin` and `end` are i64, `group` and `thread` u64. */
static void put_argument(render *r, const dc_finst *i)
{
    static const char *const names[] = {"begin", "end", "group", "thread"};
    const bool thread = i->imm == DC_KARG_GROUP || i->imm == DC_KARG_THREAD;
    const bool same = thread && r->f->index_bits == 64;
    if (thread != r->f->simt)
        DC_BUG("%s: no argument %s here", r->f->name, names[i->imm]);
    if (!same)
        dc_text_printf(r->out, "(%s)", type_name(r, DC_INDEX, false));
    dc_text_puts(r->out, names[i->imm]);
}

/* The value; of a vector the lane l. Binds like a cast or tighter. */
static void put_value(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    switch ((int)i->op) {
    case DC_K_CONST:
        put_literal(r, i->type, i->imm);
        return;
    case DC_K_LANES:
        put_lanes(r, i);
        return;
    case DC_K_ARG:
        put_argument(r, i);
        return;
    case DC_K_SPLAT:
        put_value(r, i->in[0]);
        return;
    }
    dc_text_printf(r->out, "v%" PRIu32 "%s", v, r->plan.array[v] ? "[l]" : "");
}

/* printf with %V: a value (dc_fv); beside it %s, %u (uint32_t), %d, %l (int64_t). */
static void put(render *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    for (const char *p = fmt; *p != '\0'; p++) {
        if (*p != '%' || p[1] == '%') {
            const char one[2] = {*p, '\0'};
            dc_text_puts(r->out, one);
            p += *p == '%';
            continue;
        }
        switch (*++p) {
        case 'V':
            put_value(r, va_arg(ap, dc_fv));
            break;
        case 's':
            dc_text_puts(r->out, va_arg(ap, const char *));
            break;
        case 'u':
            dc_text_printf(r->out, "%" PRIu32, va_arg(ap, uint32_t));
            break;
        case 'd':
            dc_text_printf(r->out, "%d", va_arg(ap, int));
            break;
        case 'l':
            dc_text_printf(r->out, "%" PRId64, va_arg(ap, int64_t));
            break;
        default:
            DC_BUG("format %s", fmt);
        }
    }
    va_end(ap);
}

static void indent(render *r)
{
    for (int n = 0; n < r->depth; n++)
        dc_text_puts(r->out, "    ");
}

/* Arithmetic: right sides without the semicolon ----------------------------------------------- */

static DC_NORETURN void no_rendering(const render *r, const dc_finst *i)
{
    DC_BUG("%s: %s has no rendering for its type in %s", r->f->name,
           dc_kop_row_of((dc_kop)i->op)->name, r->d->name);
}

/* The value with its sign turned. */
static void put_negative(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (i->op == DC_K_CONST)
        put_float(r, (dc_dtype)i->type, i->imm ^ (uint64_t)1 << (dc_dtype_bits(i->type) - 1));
    else
        put(r, "-%V", v);
}

static const char *fma_of(const dc_finst *i)
{
    return i->type == DC_F64 ? "fma_f64(" : "fma(";
}

/* A sum whose operand p is the product m. */
static void put_contracted(render *r, dc_fv v, dc_fv m)
{
    const dc_finst *i = at(r, v), *product = at(r, m);
    const bool first = i->in[0] == m, minus = i->op == DC_K_SUB;
    put(r, "%s", fma_of(i));
    if (minus && !first)
        put_negative(r, product->in[0]);
    else
        put_value(r, product->in[0]);
    put(r, ", %V, ", product->in[1]);
    if (minus && first)
        put_negative(r, i->in[1]);
    else
        put_value(r, i->in[first ? 1 : 0]);
    put(r, ")");
}

/* The function that rounds by itself, in a strict kernel of a dialect that has them; else NULL. */
static const char *strict_function(const render *r, const dc_finst *i, dc_kop op)
{
    const int wide = i->type == DC_F64;
    if (!r->f->strict)
        return NULL;
    return op == DC_K_ADD   ? r->d->add[wide]
           : op == DC_K_SUB ? r->d->sub[wide]
           : op == DC_K_MUL ? r->d->mul[wide]
                            : NULL;
}

static void put_fma(render *r, const dc_finst *i)
{
    const char *mul = strict_function(r, i, DC_K_MUL);
    if (!r->f->strict)
        put(r, "%s%V, %V, %V)", fma_of(i), i->in[0], i->in[1], i->in[2]);
    else if (mul != NULL)
        put(r, "%s%s%V, %V), %V)", strict_function(r, i, DC_K_ADD), mul, i->in[0], i->in[1],
            i->in[2]);
    else
        put(r, "%V * %V + %V", i->in[0], i->in[1], i->in[2]);
}

static void put_float_op(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    const char *function = strict_function(r, i, (dc_kop)i->op);
    switch ((int)i->op) {
    case DC_K_ADD:
    case DC_K_SUB:
    case DC_K_MUL:
    case DC_K_DIV:
        if (r->plan.product[v] != 0)
            put_contracted(r, v, r->plan.product[v]);
        else if (function != NULL)
            put(r, "%s%V, %V)", function, i->in[0], i->in[1]);
        else
            put(r, "%V %s %V", i->in[0], c, i->in[1]);
        return;
    case DC_K_FMA:
        put_fma(r, i);
        return;
    case DC_K_NEG:
        put_negative(r, i->in[0]);
        return;
    case DC_K_SQRT:
        put(r, "%s%V)", i->type == DC_F64 ? "sqrt_f64(" : c, i->in[0]);
        return;
    }
    no_rendering(r, i);
}

static bool wraps(dc_kop op)
{
    return op == DC_K_ADD || op == DC_K_SUB || op == DC_K_MUL || op == DC_K_SHL;
}

static void put_integer_op(render *r, const dc_finst *i)
{
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    const dc_kop op = (dc_kop)i->op;
    const int width = dc_flat_width(r->f, i->type);
    const char *t = type_name(r, i->type, false);
    if (c[0] == '\0' || dc_kop_row_of(op)->n != 2)
        no_rendering(r, i);
    if (i->type == DC_BOOL && op != DC_K_AND && op != DC_K_OR && op != DC_K_XOR)
        put(r, "((%V %s %V) & 1) != 0", i->in[0], c, i->in[1]);
    else if (wraps(op) && (dc_ftype_is_signed(i->type) || width == 16)) /* not as an int */
        put(r, width == 64 ? "(%s)((u64)%V %s (u64)%V)" : "(%s)((u32)%V %s (u32)%V)", t, i->in[0],
            c, i->in[1]);
    else if (width < 32)
        put(r, "(%s)(%V %s %V)", t, i->in[0], c, i->in[1]);
    else if (i->type == DC_INDEX && wraps(op) && at(r, i->in[0])->op == DC_K_CONST)
        put(r, "(%s)%V %s %V", type_name(r, DC_INDEX, false), i->in[0], c, i->in[1]);
    else
        put(r, "%V %s %V", i->in[0], c, i->in[1]);
}

/* Half of the lanes from `first` on, in the loop over all. */
static void put_half_lane(render *r, dc_fv v, int first)
{
    const dc_finst *i = at(r, v);
    if (i->op == DC_K_LANES)
        put(r, "(%s)((l / 2 + %d) * %l)", type_name(r, i->type, false), first, (int64_t)i->imm);
    else if (dc_cplan_inline(i))
        put(r, "%V", v);
    else
        put(r, "v%u[l / 2 + %d]", v, first);
}

static void put_zip(render *r, const dc_finst *i)
{
    const int first = i->op == DC_K_ZIP_HIGH ? i->lanes / 2 : 0;
    put(r, "(l & 1) == 0 ? ");
    put_half_lane(r, i->in[0], first);
    put(r, " : ");
    put_half_lane(r, i->in[1], first);
}

static void put_same(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (dc_kop_zips((dc_kop)i->op))
        put_zip(r, i);
    else if (dc_ftype_is_number(i->type))
        put_float_op(r, v);
    else
        put_integer_op(r, i);
}

static void put_convert(render *r, const dc_finst *i)
{
    const int from = at(r, i->in[0])->type, to = i->type;
    const char *t = type_name(r, to, false);
    if (from != to && (dc_ftype_is_short(from) || dc_ftype_is_short(to)))
        no_rendering(r, i);
    if (dc_ftype_is_float(from) && to == DC_BOOL)
        put(r, "%V >= 1.0f", i->in[0]);
    else if (dc_ftype_is_float(from) && !dc_ftype_is_float(to))
        put(r, "%s_of_%s(%V)", t, type_name(r, from, false), i->in[0]);
    else if (to == DC_BOOL && from != DC_BOOL)
        put(r, "(%V & 1) != 0", i->in[0]);
    else
        put(r, "(%s)%V", t, i->in[0]);
}

static void put_bitcast(render *r, const dc_finst *i)
{
    const int from = at(r, i->in[0])->type, to = i->type;
    const char *t = type_name(r, to, false);
    if (from == to)
        put(r, "%V", i->in[0]);
    else if (dc_ftype_is_number(from))
        put(r, "%s%s%sbits_of_%s(%V)", dc_ftype_is_signed(to) ? "(" : "",
            dc_ftype_is_signed(to) ? t : "", dc_ftype_is_signed(to) ? ")" : "",
            type_name(r, from, false), i->in[0]);
    else if (dc_ftype_is_number(to))
        put(r, "%s_of_bits(%s%V)", t,
            !dc_ftype_is_signed(from)         ? ""
            : dc_flat_width(r->f, from) == 64 ? "(u64)"
                                              : "(u32)",
            i->in[0]);
    else
        put(r, "(%s)%V", t, i->in[0]);
}

static void put_shuffle(render *r, const dc_finst *i)
{
    if (r->d->shuffle == NULL || r->f->lanes == 0)
        no_rendering(r, i);
    const char *t = type_name(r, i->type, false);
    const bool narrow = dc_flat_width(r->f, i->type) < 32;
    put(r, "(%s)%s%s%V, %V, %d)", t, r->d->shuffle, narrow ? "(u32)" : "", i->in[0], i->in[1],
        r->f->lanes);
}

/* Memory ------------------------------------------------------------------------------------ */

/* The element; of a vector that of the lane l. */
static void put_element(render *r, const dc_finst *i)
{
    const int64_t step = (int64_t)i->imm;
    const bool spread = i->op == DC_K_GATHER || i->op == DC_K_SCATTER;
    put(r, "b%u[%V", i->buf, i->in[0]);
    if (i->lanes > 1 && !spread && step == 1)
        put(r, " + l");
    else if (i->lanes > 1 && !spread && step != 0)
        put(r, " %s (%s)l * %l", step < 0 ? "-" : "+", type_name(r, DC_INDEX, false),
            step < 0 ? -step : step);
    put(r, "]");
}

static void put_load(render *r, const dc_finst *i)
{
    const dc_fv mask = i->in[1];
    const bool is_bool = i->type == DC_BOOL;
    if (mask != 0)
        put(r, "%V %s ", mask, is_bool ? "&&" : "?");
    put_element(r, i);
    if (is_bool)
        put(r, " != 0");
    else if (mask != 0)
        put(r, dc_ftype_is_number(i->type) ? " : 0.0f" : " : 0");
}

static void put_store(render *r, const dc_finst *i)
{
    if (i->in[2] != 0)
        put(r, "if (%V) ", i->in[2]);
    put_element(r, i);
    put(r, " = %V;\n", i->in[1]);
}

/* Statements -------------------------------------------------------------------------------- */

static void put_expression(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *c = dc_kop_row_of((dc_kop)i->op)->c;
    switch ((dc_kform)dc_kop_row_of((dc_kop)i->op)->form) {
    case DC_KFORM_SAME:
        put_same(r, v);
        return;
    case DC_KFORM_TEST:
        put(r, "%V %s %V", i->in[0], c, i->in[1]);
        return;
    case DC_KFORM_PICK:
        put(r, "%V ? %V : %V", i->in[0], i->in[1], i->in[2]);
        return;
    case DC_KFORM_CONV:
        if (i->op == DC_K_CONVERT)
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

static void put_statement(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    indent(r);
    if (dc_kop_stores((dc_kop)i->op)) {
        put_store(r, i);
        return;
    }
    if (r->plan.array[v])
        put(r, "v%u[l] = ", v);
    else
        put(r, "const %s v%u = ", type_name(r, i->type, false), v);
    put_expression(r, v);
    put(r, ";\n");
}

static void put_any(render *r, dc_fv v)
{
    const dc_fv a = at(r, v)->in[0];
    indent(r);
    put(r, "bool v%u = 0;\n", v);
    indent(r);
    put(r, "for (int l = 0; l < %d; l++)\n", (int)at(r, a)->lanes);
    indent(r);
    put(r, "    v%u |= %V;\n", v, a);
}

static void put_barrier(render *r, const dc_finst *i)
{
    const char *barrier = r->d->barrier[i->imm == DC_BARRIER_LANES];
    if (barrier == NULL || !r->f->simt)
        no_rendering(r, i);
    indent(r);
    put(r, "%s;\n", barrier);
}

static void put_bound(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (i->op == DC_K_CONST)
        put_literal(r, i->type, i->imm);
    else if (i->op == DC_K_ARG && i->imm == DC_KARG_END && r->f->index_bits == 64)
        put(r, "end");
    else
        put(r, "(%s)%V", signed_index(r), v);
}

/* Bounds compare as signed numbers, so that loops over nothing may end anywhere. */
static void put_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *t = type_name(r, DC_INDEX, false);
    const bool fixed = at(r, i->in[0])->op == DC_K_CONST && at(r, i->in[1])->op == DC_K_CONST;
    indent(r);
    put(r, "for (%s v%u = %V; ", t, v, i->in[0]);
    if (fixed) {
        put(r, "v%u < %V; ", v, i->in[1]);
    } else {
        put(r, "(%s)v%u < ", signed_index(r), v);
        put_bound(r, i->in[1]);
        put(r, "; ");
    }
    put(r, "v%u++) {\n", v);
    r->depth++;
}

static void put_alone(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    switch ((int)i->op) {
    case DC_K_LOOP:
        put_loop(r, v);
        return;
    case DC_K_IF:
        indent(r);
        put(r, "if (%V) {\n", i->in[0]);
        r->depth++;
        return;
    case DC_K_END:
        r->depth--;
        indent(r);
        put(r, "}\n");
        return;
    case DC_K_BARRIER:
        put_barrier(r, i);
        return;
    case DC_K_ANY:
        put_any(r, v);
        return;
    }
    put_statement(r, v);
}

/* The steps from n on that share a loop over lanes; the position behind them. */
static uint32_t put_lane_loop(render *r, uint32_t n)
{
    const dc_cstep *step = r->plan.step;
    uint32_t end = n;
    for (; end < r->plan.n && step[end].loop == step[n].loop; end++) {
        const dc_fv v = step[end].v;
        if (!r->plan.array[v])
            continue;
        indent(r);
        put(r, "%s v%u[%d];\n", type_name(r, at(r, v)->type, false), v, (int)at(r, v)->lanes);
    }
    indent(r);
    if (at(r, step[n].v)->op == DC_K_SCATTER)
        put(r, "for (int l = 0; l < %d; l++) {\n", (int)at(r, step[n].v)->lanes);
    else
        put(r, "LANES(%d) {\n", (int)at(r, step[n].v)->lanes);
    r->depth++;
    for (uint32_t k = n; k < end; k++)
        put_statement(r, step[k].v);
    r->depth--;
    indent(r);
    put(r, "}\n");
    return end;
}

/* Functions --------------------------------------------------------------------------------- */

static void put_parameter(render *r, uint32_t number)
{
    for (const char *p = r->d->param; *p != '\0'; p++) {
        if (*p == '#')
            put(r, "%u", number);
        else
            put(r, (const char[]){*p, '\0'});
    }
}

static void put_buffer(render *r, uint32_t n)
{
    const dc_buffer *b = &r->f->buf.at[n];
    const char *t = type_name(r, b->dtype, true), *global = r->d->global;
    const char *only = b->mode == DC_MODE_IN ? "const " : "";
    const int64_t count = b->count > 0 ? b->count : 1;
    switch ((dc_scope)b->scope) {
    case DC_SCOPE_PARAM:
        put(r, "    %s%s%s *const b%u = (%s%s%s *)", global, only, t, n, global, only, t);
        put_parameter(r, b->param);
        put(r, "; /* %s, %l */\n", b->name, b->count);
        return;
    case DC_SCOPE_LOCAL:
        put(r, "    %s b%u[%l] __attribute__((aligned(64))); /* %s */\n", t, n, count, b->name);
        return;
    case DC_SCOPE_GROUP:
        if (r->d->shared == NULL)
            break;
        put(r, "    %s%s b%u[%l]; /* %s */\n", r->d->shared, t, n, count, b->name);
        return;
    case DC_SCOPE_SCRATCH:
        if (!r->d->workers)
            break;
        put(r, "    %s%s *const b%u = (%s%s *)((%su8 *)scratch + %l); /* %s, %l */\n", global, t, n,
            global, t, global, (int64_t)b->at, b->name, b->count);
        return;
    case DC_SCOPE_THREAD:
        break;
    }
    DC_BUG("%s: %s has no memory for buffer %s", r->f->name, r->d->name, b->name);
}

static void put_kernel(render *r)
{
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    if (!(r->f->simt ? r->d->groups : r->d->workers))
        DC_BUG("%s: kernels of %s are of the other kind", r->f->name, r->d->name);
    r->plan = dc_cplan_make(&r->j->scratch, r->f);
    r->depth = 1;
    put(r, "\n");
    r->d->open(r->f, r->out);
    for (uint32_t n = 0; n < r->f->buf.n; n++)
        put_buffer(r, n);
    for (uint32_t n = 0; n < r->plan.n;) {
        if (r->plan.step[n].loop != 0)
            n = put_lane_loop(r, n);
        else
            put_alone(r, r->plan.step[n++].v);
    }
    put(r, "}\n");
    dc_arena_rewind(&r->j->scratch, mark);
}

static bool uses_f64(const dc_flat *const *kernels, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t b = 0; b < kernels[i]->buf.n; b++)
            if (kernels[i]->buf.at[b].dtype == DC_F64)
                return true;
        for (uint32_t v = 1; v < kernels[i]->inst.n; v++)
            if (kernels[i]->inst.at[v].type == DC_F64)
                return true;
    }
    return false;
}

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out)
{
    static const dc_dialect *const dialects[] = {&dc_dialect_c11, &dc_dialect_opencl,
                                                 &dc_dialect_cuda};
    render r = {.j = j, .out = out};
    for (size_t i = 0; i < DC_COUNTOF(dialects); i++)
        if (strcmp(dialects[i]->name, target->dialect) == 0)
            r.d = dialects[i];
    if (r.d == NULL)
        DC_BUG("'%s' is no dialect of C", target->dialect);
    dc_text_puts(out, r.d->prelude);
    dc_text_puts(out, dc_dialect_common);
    if (uses_f64(kernels, n)) {
        dc_text_puts(out, r.d->prelude_f64);
        dc_text_puts(out, dc_dialect_common_f64);
    }
    for (uint32_t i = 0; i < n; i++) {
        r.f = kernels[i];
        put_kernel(&r);
    }
    return DC_OK;
}
