/*
 * Types, values and lines of LLVM IR (jit/render/llvm_text.h).
 */
#include "jit/render/llvm_text.h"

#include "jit/render/render_format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Types -------------------------------------------------------------------------------------- */

const char *dc_llvm_text_scalar(const dc_llvm_text *r, int type, bool memory)
{
    if (type == DC_F32 || type == DC_F64)
        return type == DC_F32 ? "float" : "double";
    switch (type == DC_BOOL && memory ? 8 : dc_flat_width(r->f, type)) {
    case 1:
        return "i1";
    case 8:
        return "i8";
    case 16:
        return "i16";
    case 32:
        return "i32";
    }
    return "i64";
}

dc_llname dc_llvm_text_spread(const char *scalar, int lanes)
{
    dc_llname t;
    char *at = t.s;
    if (lanes > 1) { /* by hand: this is asked for each operand */
        char digits[12], *d = digits + sizeof digits;
        for (int n = lanes; n > 0; n /= 10)
            *--d = (char)('0' + n % 10);
        *at++ = '<';
        while (d < digits + sizeof digits)
            *at++ = *d++;
        memcpy(at, " x ", 3);
        at += 3;
    }
    for (; *scalar != '\0'; scalar++)
        *at++ = *scalar;
    if (lanes > 1)
        *at++ = '>';
    *at = '\0';
    return t;
}

dc_llname dc_llvm_text_type(const dc_llvm_text *r, int type, int lanes)
{
    return dc_llvm_text_spread(dc_llvm_text_scalar(r, type, false), lanes);
}

dc_llname dc_llvm_text_memory_type(const dc_llvm_text *r, int type, int lanes)
{
    return dc_llvm_text_spread(dc_llvm_text_scalar(r, type, true), lanes);
}

dc_llname dc_llvm_text_mangled(const char *scalar, int lanes)
{
    dc_llname t;
    const char *s = strcmp(scalar, "float") == 0    ? "f32"
                    : strcmp(scalar, "double") == 0 ? "f64"
                    : strcmp(scalar, "ptr") == 0    ? "p0"
                                                    : scalar;
    if (lanes > 1)
        snprintf(t.s, DC_LLNAME, "v%d%s", lanes, s);
    else
        snprintf(t.s, DC_LLNAME, "%s", s);
    return t;
}

/* Values ------------------------------------------------------------------------------------- */

/* A float as LLVM wants it: the bits of the double of the same value. */
static uint64_t double_pattern(uint32_t f)
{
    const uint64_t sign = (uint64_t)(f >> 31) << 63;
    if ((f >> 23 & 0xff) == 0xff) /* keeps the payload of a NaN */
        return sign | (uint64_t)0x7ff << 52 | (uint64_t)(f & 0x7fffff) << 29;
    union {
        double d;
        uint64_t u;
    } v = {.d = dc_bits_f32(f)};
    return v.u;
}

static void put_pattern(dc_llvm_text *r, uint64_t bits)
{
    char text[19] = "0x";
    for (int i = 0; i < 16; i++)
        text[2 + i] = "0123456789ABCDEF"[bits >> (60 - 4 * i) & 15];
    dc_text_put(r->out, text, 18);
}

static void put_scalar_const(dc_llvm_text *r, int type, uint64_t bits)
{
    switch (type) {
    case DC_BOOL:
        dc_text_puts(r->out, bits & 1 ? "true" : "false");
        return;
    case DC_U32:
        dc_text_printf(r->out, "%" PRId32, (int32_t)(uint32_t)bits);
        return;
    case DC_F32:
        put_pattern(r, double_pattern((uint32_t)bits));
        return;
    case DC_F64:
        put_pattern(r, bits);
        return;
    }
    dc_text_printf(r->out, "%" PRId64, (int64_t)bits);
}

static void put_const(dc_llvm_text *r, const dc_finst *i)
{
    if (i->lanes == 1) {
        put_scalar_const(r, i->type, i->imm);
        return;
    }
    if (i->op == DC_K_CONST && i->imm == 0) {
        dc_text_puts(r->out, "zeroinitializer");
        return;
    }
    dc_text_puts(r->out, "<");
    for (int n = 0; n < i->lanes; n++) {
        dc_text_printf(r->out, "%s%s ", n > 0 ? ", " : "", dc_llvm_text_scalar(r, i->type, false));
        const uint64_t bits = i->op == DC_K_CONST ? i->imm : i->imm * (uint64_t)n;
        put_scalar_const(r, i->type, dc_flat_canonical(r->f, i->type, bits));
    }
    dc_text_puts(r->out, ">");
}

void dc_llvm_text_value(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    if (i->op == DC_K_CONST || i->op == DC_K_LANES)
        put_const(r, i);
    else if (i->op == DC_K_ARG)
        dc_text_puts(r->out, i->imm == 0 ? "%begin" : "%end");
    else
        dc_text_printf(r->out, "%%v%" PRIu32, v);
}

static bool put_own(void *renderer, char letter, dc_fv v)
{
    dc_llvm_text *r = renderer;
    const dc_finst *i = dc_lltext_at(r, v);
    if (letter == 'T')
        dc_text_printf(r->out, "%s ", dc_llvm_text_type(r, i->type, i->lanes).s);
    else if (letter != 'V')
        return false;
    dc_llvm_text_value(r, v);
    return true;
}

void dc_llvm_text_line(dc_llvm_text *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dc_text_puts(r->out, "  ");
    dc_render_format(r->out, fmt, ap, put_own, r);
    dc_text_puts(r->out, "\n");
    va_end(ap);
}

void dc_llvm_text_declare(dc_llvm_text *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->declared.s == NULL || strstr(r->declared.s, text) == NULL)
        dc_text_printf(&r->declared, "declare %s\n", text);
}
