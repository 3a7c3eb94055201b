/*
 * Types, literals and operands of the C family (jit/render/c_text.h).
 */
#include "jit/render/c_text.h"

#include "jit/render/render_format.h"

#include <inttypes.h>

/* Types -------------------------------------------------------------------------------------- */

const char *dc_c_text_type(const dc_c_text *r, int type, bool memory)
{
    if (type == DC_INDEX)
        return r->f->index_bits == 32 ? "u32" : "u64";
    if (type == DC_BOOL && memory)
        return "u8";
    if (dc_ftype_is_short(type))
        return dc_dtype_bits((dc_dtype)type) == 8 ? "u8" : "u16";
    return dc_dtype_name((dc_dtype)type);
}

/* Literals ----------------------------------------------------------------------------------- */

/* Of a size below 10000 and a multiple of 1/64: the decimal digits that it has. */
static void put_decimal(dc_c_text *r, double size)
{
    const uint32_t whole = (uint32_t)size;
    uint32_t digits = (uint32_t)((size - whole) * 64) * 15625;
    int n = 6;
    for (; n > 1 && digits % 10 == 0; n--)
        digits /= 10;
    dc_text_printf(r->out, "%" PRIu32 ".%0*" PRIu32, whole, n, digits);
}

void dc_c_text_float(dc_c_text *r, dc_dtype t, uint64_t bits)
{
    const int width = dc_dtype_bits(t), fraction = dc_dtype_fraction(t);
    const int bias = dc_dtype_bias(t);
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

static void put_index(dc_c_text *r, uint64_t bits)
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

bool dc_c_text_wide_table(const dc_ftable *t)
{
    for (uint32_t c = 0; c < t->rows * t->columns; c++)
        if (t->cell[c] > UINT32_MAX)
            return true;
    return false;
}

void dc_c_text_literal(dc_c_text *r, int type, uint64_t bits)
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
        dc_c_text_float(r, (dc_dtype)type, bits);
    else
        dc_text_printf(r->out, "%" PRId64, (int64_t)bits);
}

/* l * step, in the type of the lanes. */
static void put_lanes(dc_c_text *r, const dc_finst *i)
{
    if (dc_ftype_is_float(i->type) || i->type == DC_BOOL)
        DC_BUG("%s: lanes of %s", r->f->name, dc_dtype_name((dc_dtype)i->type));
    const char *t = dc_c_text_type(r, i->type, false);
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

/* Operands ----------------------------------------------------------------------------------- */

/* `begin` and `end` are i64, `group` and `thread` u64. */
static void put_argument(dc_c_text *r, const dc_finst *i)
{
    static const char *const names[] = {"begin", "end", "group", "thread"};
    const bool thread = i->imm == DC_KARG_GROUP || i->imm == DC_KARG_THREAD;
    const bool same = thread && r->f->index_bits == 64;
    if (thread != r->f->simt)
        DC_BUG("%s: no argument %s here", r->f->name, names[i->imm]);
    if (!same)
        dc_text_printf(r->out, "(%s)", dc_c_text_type(r, DC_INDEX, false));
    dc_text_puts(r->out, names[i->imm]);
}

void dc_c_text_value(dc_c_text *r, dc_fv v)
{
    const dc_finst *i = dc_ctext_at(r, v);
    switch ((int)i->op) {
    case DC_K_CONST:
        dc_c_text_literal(r, i->type, i->imm);
        return;
    case DC_K_LANES:
        put_lanes(r, i);
        return;
    case DC_K_ARG:
        put_argument(r, i);
        return;
    case DC_K_SPLAT:
        dc_c_text_value(r, i->in[0]);
        return;
    }
    dc_text_printf(r->out, "v%" PRIu32 "%s", v, r->plan.array[v] ? "[l]" : "");
}

static bool put_own(void *renderer, char letter, dc_fv v)
{
    if (letter == 'V')
        dc_c_text_value(renderer, v);
    return letter == 'V';
}

void dc_c_text_put(dc_c_text *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dc_render_format(r->out, fmt, ap, put_own, r);
    va_end(ap);
}

void dc_c_text_no_rendering(const dc_c_text *r, const dc_finst *i)
{
    DC_BUG("%s: %s has no rendering for its type in %s", r->f->name,
           dc_kop_row_of((dc_kop)i->op)->name, r->d->name);
}
