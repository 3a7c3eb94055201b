/*
 * LLVM IR (jit/render_llvm.h). Most instructions are one line by the table jit/kops.def; constants
 * are written where they are used.
 *
 * Names: %b<n> buffers; %v<n> values by their id (with suffixes for what one value needs on the
 * way); blocks l<n> (loop), t<n> (latch), d<n> (done) by the id of the LOOP or IF. Passes leave ids
 * in order, so equal kernels have equal text.
 *
 * A bool is i1 in registers and a byte in memory; a byte other than 0 reads as true.
 */
#include "jit/render_llvm.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct render {
    dc_job *j;
    const dc_flat *f;
    dc_text *out;
    dc_text declared; /* declarations, each a line, at the end of the module */
    char block[24];   /* the one being written */
    int vector_bytes; /* of the target */
    bool streams;     /* some kernel stores past the caches */
} render;

enum { NAME = 48 };

/* Types ------------------------------------------------------------------------------------- */

typedef struct name {
    char s[NAME];
} name;

static const char *scalar_type(const render *r, int type, bool memory)
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

static name spread(const char *scalar, int lanes)
{
    name t;
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

static name type_of(const render *r, int type, int lanes)
{
    return spread(scalar_type(r, type, false), lanes);
}

static name memory_type(const render *r, int type, int lanes)
{
    return spread(scalar_type(r, type, true), lanes);
}

/* As it is written in the name of an intrinsic: v16f32. */
static name mangled(const char *scalar, int lanes)
{
    name t;
    const char *s = strcmp(scalar, "float") == 0    ? "f32"
                    : strcmp(scalar, "double") == 0 ? "f64"
                    : strcmp(scalar, "ptr") == 0    ? "p0"
                                                    : scalar;
    if (lanes > 1)
        snprintf(t.s, NAME, "v%d%s", lanes, s);
    else
        snprintf(t.s, NAME, "%s", s);
    return t;
}

/* Values ------------------------------------------------------------------------------------ */

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

static void put_pattern(render *r, uint64_t bits)
{
    char text[19] = "0x";
    for (int i = 0; i < 16; i++)
        text[2 + i] = "0123456789ABCDEF"[bits >> (60 - 4 * i) & 15];
    dc_text_put(r->out, text, 18);
}

static void put_scalar_const(render *r, int type, uint64_t bits)
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

static void put_const(render *r, const dc_finst *i)
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
        dc_text_printf(r->out, "%s%s ", n > 0 ? ", " : "", scalar_type(r, i->type, false));
        const uint64_t bits = i->op == DC_K_CONST ? i->imm : i->imm * (uint64_t)n;
        put_scalar_const(r, i->type, dc_flat_canonical(r->f, i->type, bits));
    }
    dc_text_puts(r->out, ">");
}

static const dc_finst *at(const render *r, dc_fv v)
{
    return dc_finst_at(r->f, v);
}

static void put_value(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (i->op == DC_K_CONST || i->op == DC_K_LANES)
        put_const(r, i);
    else if (i->op == DC_K_ARG)
        dc_text_puts(r->out, i->imm == 0 ? "%begin" : "%end");
    else
        dc_text_printf(r->out, "%%v%" PRIu32, v);
}

/*
 * printf of one line with two more: %T a value with its type, %V a value alone (both dc_fv).
 */
static void line(render *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dc_text_puts(r->out, "  ");
    for (const char *p = fmt; *p != '\0'; p++) {
        if (*p != '%' || p[1] == '%') {
            const size_t n = *p == '%' ? 1 : strcspn(p, "%");
            dc_text_put(r->out, p, n);
            p += *p == '%' ? 1 : n - 1;
            continue;
        }
        switch (*++p) {
        case 'T': {
            const dc_fv v = va_arg(ap, dc_fv);
            dc_text_printf(r->out, "%s ", type_of(r, at(r, v)->type, at(r, v)->lanes).s);
            put_value(r, v);
            break;
        }
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
    dc_text_puts(r->out, "\n");
    va_end(ap);
}

static void declare(render *r, const char *fmt, ...) DC_PRINTF(2, 3);
static void declare(render *r, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->declared.s == NULL || strstr(r->declared.s, text) == NULL)
        dc_text_printf(&r->declared, "declare %s\n", text);
}

/* Arithmetic -------------------------------------------------------------------------------- */

static const char *fast(const render *r, const dc_finst *i)
{
    const bool contracts =
        i->op == DC_K_ADD || i->op == DC_K_SUB || i->op == DC_K_MUL || i->op == DC_K_NEG;
    return contracts && dc_ftype_is_float(i->type) && !r->f->strict ? " contract" : "";
}

static void put_intrinsic(render *r, dc_fv v, const char *what)
{
    const dc_finst *i = at(r, v);
    const name t = type_of(r, i->type, i->lanes);
    const name m = mangled(scalar_type(r, i->type, false), i->lanes);
    const int n = dc_kop_row_of((dc_kop)i->op)->n;
    dc_text_printf(r->out, "  %%v%" PRIu32 " = call %s @llvm.%s.%s(", v, t.s, what, m.s);
    for (int a = 0; a < n; a++) {
        dc_text_printf(r->out, "%s%s ", a > 0 ? ", " : "", t.s);
        put_value(r, i->in[a]);
    }
    dc_text_puts(r->out, ")\n");
    if (n == 3)
        declare(r, "%s @llvm.%s.%s(%s, %s, %s)", t.s, what, m.s, t.s, t.s, t.s);
    else
        declare(r, "%s @llvm.%s.%s(%s)", t.s, what, m.s, t.s);
}

static void put_table(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    const char *what = row->llvm[dc_kop_column(at(r, i->in[0])->type)];
    if (what[0] == '\0')
        DC_BUG("%s has no rendering for its type", row->name);
    if (i->op == DC_K_FMA && r->f->strict) {
        line(r, "%%v%u.m = fmul %T, %V", v, i->in[0], i->in[1]);
        line(r, "%%v%u = fadd %T, %%v%u.m", v, i->in[2], v);
    } else if (what[0] == '@') {
        put_intrinsic(r, v, what + 1);
    } else if (row->n == 1) {
        line(r, "%%v%u = %s%s %T", v, what, fast(r, i), i->in[0]);
    } else {
        line(r, "%%v%u = %s%s %T, %V", v, what, fast(r, i), i->in[0], i->in[1]);
    }
}

static void put_splat(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const name t = type_of(r, i->type, i->lanes);
    line(r, "%%v%u.i = insertelement %s poison, %T, i32 0", v, t.s, i->in[0]);
    line(r, "%%v%u = shufflevector %s %%v%u.i, %s poison, <%d x i32> zeroinitializer", v, t.s, v,
         t.s, (int)i->lanes);
}

static void put_zip(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const int half = i->lanes / 2, first = i->op == DC_K_ZIP_HIGH ? half : 0;
    dc_text_printf(r->out, "  %%v%" PRIu32 " = shufflevector %s ", v,
                   type_of(r, i->type, i->lanes).s);
    put_value(r, i->in[0]);
    dc_text_printf(r->out, ", %s ", type_of(r, i->type, i->lanes).s);
    put_value(r, i->in[1]);
    dc_text_printf(r->out, ", <%d x i32> <", i->lanes);
    for (int n = 0; n < i->lanes; n++)
        dc_text_printf(r->out, "%si32 %d", n > 0 ? ", " : "",
                       first + n / 2 + (n & 1 ? i->lanes : 0));
    dc_text_puts(r->out, ">\n");
}

static void put_any(render *r, dc_fv v)
{
    const dc_fv a = at(r, v)->in[0];
    const int lanes = at(r, a)->lanes;
    line(r, "%%v%u = call i1 @llvm.vector.reduce.or.v%di1(%T)", v, lanes, a);
    declare(r, "i1 @llvm.vector.reduce.or.v%di1(<%d x i1>)", lanes, lanes);
}

/* Float to integer saturates; NaN gives 0: exactly the intrinsic. */
static void put_saturating(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *what = dc_kop_column(i->type) == 1 ? "fptosi" : "fptoui";
    const char *source = scalar_type(r, at(r, i->in[0])->type, false);
    const name t = type_of(r, i->type, i->lanes), from = spread(source, i->lanes);
    const name m = mangled(scalar_type(r, i->type, false), i->lanes),
               mf = mangled(source, i->lanes);
    line(r, "%%v%u = call %s @llvm.%s.sat.%s.%s(%T)", v, t.s, what, m.s, mf.s, i->in[0]);
    declare(r, "%s @llvm.%s.sat.%s.%s(%s)", t.s, what, m.s, mf.s, from.s);
}

/* Between f16, which is an i16 elsewhere, and f32, where the machine can. */
static void put_half(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const int from = at(r, i->in[0])->type;
    const name half = spread("half", i->lanes), word = spread("i16", i->lanes);
    const name number = spread("float", i->lanes);
    if (from == DC_F16 && i->type == DC_F32) {
        line(r, "%%v%u.h = bitcast %T to %s", v, i->in[0], half.s);
        line(r, "%%v%u = fpext %s %%v%u.h to %s", v, half.s, v, number.s);
    } else if (from == DC_F32 && i->type == DC_F16) {
        line(r, "%%v%u.h = fptrunc %T to %s", v, i->in[0], half.s);
        line(r, "%%v%u = bitcast %s %%v%u.h to %s", v, half.s, v, word.s);
    } else {
        DC_BUG("%s: a conversion of 16-bit floats", r->f->name);
    }
}

static void put_convert(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const int from = at(r, i->in[0])->type, to = i->type;
    const bool sign = dc_kop_column(from) == 1;
    const int wf = dc_flat_width(r->f, from), wt = dc_flat_width(r->f, to);
    const char *what;
    if (dc_ftype_is_short(from) || dc_ftype_is_short(to)) {
        put_half(r, v);
        return;
    }
    if (dc_ftype_is_float(from) && !dc_ftype_is_float(to)) {
        put_saturating(r, v);
        return;
    }
    if (dc_ftype_is_float(from))
        what = wf > wt ? "fptrunc" : "fpext";
    else if (dc_ftype_is_float(to))
        what = sign ? "sitofp" : "uitofp";
    else if (wf == wt)
        what = "bitcast";
    else
        what = wf > wt ? "trunc" : sign ? "sext" : "zext";
    line(r, "%%v%u = %s %T to %s", v, what, i->in[0], type_of(r, to, i->lanes).s);
}

/* Memory ------------------------------------------------------------------------------------ */

static void put_address(render *r, dc_fv v, bool inside)
{
    const dc_finst *i = at(r, v);
    line(r, "%%v%u.p = getelementptr%s %s, ptr %%b%u, %T", v, inside ? " inbounds" : "",
         scalar_type(r, i->type, true), i->buf, i->in[0]);
}

/* Bytes of memory to bool and back; other types are the same in both. */
static void put_from_memory(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (i->type == DC_BOOL)
        line(r, "%%v%u = icmp ne %s %%v%u.b, %s", v, memory_type(r, i->type, i->lanes).s, v,
             i->lanes > 1 ? "zeroinitializer" : "0");
}

/* Name of the value to store, as it is in memory. */
static name put_to_memory(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    name s;
    if (i->type == DC_BOOL)
        line(r, "%%v%u.b = zext %T to %s", v, i->in[1], memory_type(r, i->type, i->lanes).s);
    snprintf(s.s, NAME, "%%v%" PRIu32 ".b", v);
    return s;
}

/* Suffix of the name that the raw load goes to. */
static const char *raw(const dc_finst *i)
{
    return i->type == DC_BOOL ? ".b" : "";
}

static name mask_text(int lanes)
{
    return spread("i1", lanes);
}

static void put_mask(render *r, dc_fv mask, int lanes)
{
    dc_text_printf(r->out, "%s ", mask_text(lanes).s);
    if (mask != 0) {
        put_value(r, mask);
        return;
    }
    dc_text_puts(r->out, "<");
    for (int n = 0; n < lanes; n++)
        dc_text_puts(r->out, n > 0 ? ", i1 true" : "i1 true");
    dc_text_puts(r->out, ">");
}

/* masked.load or masked.gather: the address is %v.p, one or one by lane. */
static void put_masked_load(render *r, dc_fv v, const char *what, const char *address)
{
    const dc_finst *i = at(r, v);
    const char *scalar = scalar_type(r, i->type, true);
    const name t = spread(scalar, i->lanes), m = mangled(scalar, i->lanes);
    const bool each = i->op == DC_K_GATHER;
    const name p = spread("ptr", each ? i->lanes : 1), mp = mangled("ptr", each ? i->lanes : 1);
    dc_text_printf(r->out, "  %%v%" PRIu32 "%s = call %s @llvm.masked.%s.%s.%s(%s %s, i32 %d, ", v,
                   raw(i), t.s, what, m.s, mp.s, p.s, address, i->align);
    put_mask(r, i->in[1], i->lanes);
    dc_text_printf(r->out, ", %s zeroinitializer)\n", t.s);
    declare(r, "%s @llvm.masked.%s.%s.%s(%s, i32, %s, %s)", t.s, what, m.s, mp.s, p.s,
            mask_text(i->lanes).s, t.s);
}

static void put_masked_store(render *r, dc_fv v, const char *what, const char *address)
{
    const dc_finst *i = at(r, v);
    const char *scalar = scalar_type(r, i->type, true);
    const name t = spread(scalar, i->lanes), m = mangled(scalar, i->lanes);
    const bool each = i->op == DC_K_SCATTER;
    const name p = spread("ptr", each ? i->lanes : 1), mp = mangled("ptr", each ? i->lanes : 1);
    const name value = put_to_memory(r, v);
    dc_text_printf(r->out, "  call void @llvm.masked.%s.%s.%s(%s ", what, m.s, mp.s, t.s);
    if (i->type == DC_BOOL)
        dc_text_puts(r->out, value.s);
    else
        put_value(r, i->in[1]);
    dc_text_printf(r->out, ", %s %s, i32 %d, ", p.s, address, i->align);
    put_mask(r, i->in[2], i->lanes);
    dc_text_puts(r->out, ")\n");
    declare(r, "void @llvm.masked.%s.%s.%s(%s, %s, i32, %s)", what, m.s, mp.s, t.s, p.s,
            mask_text(i->lanes).s);
}

/* Lanes at a fixed distance: one scalar load each, which was measured no slower than a gather. */
static void put_strided_load(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *scalar = scalar_type(r, i->type, true);
    const name t = spread(scalar, i->lanes);
    char last[NAME] = "poison";
    put_address(r, v, true);
    for (int n = 0; n < i->lanes; n++) {
        line(r, "%%v%u.p%d = getelementptr inbounds %s, ptr %%v%u.p, i64 %l", v, n, scalar, v,
             (int64_t)i->imm * n);
        line(r, "%%v%u.e%d = load %s, ptr %%v%u.p%d, align %d", v, n, scalar, v, n,
             (int)dc_dtype_size((dc_dtype)i->type));
        const bool whole = n == i->lanes - 1;
        char next[NAME];
        if (whole)
            snprintf(next, sizeof next, "%%v%" PRIu32 "%s", v, raw(i));
        else
            snprintf(next, sizeof next, "%%v%" PRIu32 ".i%d", v, n);
        line(r, "%s = insertelement %s %s, %s %%v%u.e%d, i32 %d", next, t.s, last, scalar, v, n, n);
        memcpy(last, next, sizeof last);
    }
    put_from_memory(r, v);
}

static void put_strided_store(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *scalar = scalar_type(r, i->type, true);
    const name t = spread(scalar, i->lanes), value = put_to_memory(r, v);
    put_address(r, v, true);
    for (int n = 0; n < i->lanes; n++) {
        if (i->type == DC_BOOL)
            line(r, "%%v%u.e%d = extractelement %s %s, i32 %d", v, n, t.s, value.s, n);
        else
            line(r, "%%v%u.e%d = extractelement %T, i32 %d", v, n, i->in[1], n);
        line(r, "%%v%u.p%d = getelementptr inbounds %s, ptr %%v%u.p, i64 %l", v, n, scalar, v,
             (int64_t)i->imm * n);
        line(r, "store %s %%v%u.e%d, ptr %%v%u.p%d, align %d", scalar, v, n, v, n,
             (int)dc_dtype_size((dc_dtype)i->type));
    }
}

/*
 * Of one lane: element 0 is read instead, in order not to branch, and not used. Another thread may
 * be writing it; what is undefined then is the value alone.
 */
static void put_load_if(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *type = scalar_type(r, i->type, true), *index = scalar_type(r, DC_INDEX, true);
    line(r, "%%v%u.i = select %T, %T, %s 0", v, i->in[1], i->in[0], index);
    line(r, "%%v%u.p = getelementptr inbounds %s, ptr %%b%u, %s %%v%u.i", v, type, i->buf, index,
         v);
    line(r, "%%v%u.r = load %s, ptr %%v%u.p, align %d", v, type, v, (int)i->align);
    line(r, "%%v%u%s = select %T, %s %%v%u.r, %s zeroinitializer", v, raw(i), i->in[1], type, v,
         type);
    put_from_memory(r, v);
}

static void put_load(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    char address[NAME];
    if (i->lanes > 1 && i->imm != 1) {
        put_strided_load(r, v);
        return;
    }
    if (i->lanes == 1 && i->in[1] != 0) {
        put_load_if(r, v);
        return;
    }
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, i->in[1] == 0);
    if (i->in[1] != 0)
        put_masked_load(r, v, "load", address);
    else
        line(r, "%%v%u%s = load %s, ptr %s, align %d", v, raw(i),
             memory_type(r, i->type, i->lanes).s, address, (int)i->align);
    put_from_memory(r, v);
}

/*
 * Only whole vectors at their own alignment: code generation has nothing for the others. What is
 * wider than a register is stored in several.
 */
static bool passes_by(const render *r, const dc_finst *i)
{
    const int bytes = i->lanes * (int)dc_dtype_size((dc_dtype)i->type);
    const int whole = bytes < r->vector_bytes ? bytes : r->vector_bytes;
    return r->f->buf.at[i->buf].stream && i->lanes > 1 && whole >= 16 && i->align >= whole;
}

static void put_store(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    char address[NAME];
    if (i->lanes > 1 && i->imm != 1) {
        put_strided_store(r, v);
        return;
    }
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, i->in[2] == 0);
    if (i->in[2] != 0) {
        put_masked_store(r, v, "store", address);
    } else if (i->type == DC_BOOL) {
        const name value = put_to_memory(r, v);
        line(r, "store %s %s, ptr %s, align %d", memory_type(r, i->type, i->lanes).s, value.s,
             address, (int)i->align);
    } else {
        line(r, "store %T, ptr %s, align %d%s", i->in[1], address, (int)i->align,
             passes_by(r, i) ? ", !nontemporal !0" : "");
    }
}

/* One address by lane. */
static void put_spread(render *r, dc_fv v)
{
    char address[NAME];
    snprintf(address, sizeof address, "%%v%" PRIu32 ".p", v);
    put_address(r, v, false);
    if (at(r, v)->op == DC_K_GATHER) {
        put_masked_load(r, v, "gather", address);
        put_from_memory(r, v);
    } else {
        put_masked_store(r, v, "scatter", address);
    }
}

/* Structure --------------------------------------------------------------------------------- */

static void begin_block(render *r, char letter, dc_fv v)
{
    snprintf(r->block, sizeof r->block, "%c%" PRIu32, letter, v);
    dc_text_printf(r->out, "%s:\n", r->block);
}

/* Loops of constant bounds run at least once: flattening leaves out the others. */
static void put_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const name t = type_of(r, DC_INDEX, 1);
    char from[24];
    memcpy(from, r->block, sizeof from);
    if (at(r, i->in[0])->op != DC_K_CONST || at(r, i->in[1])->op != DC_K_CONST) {
        line(r, "%%v%u.any = icmp slt %T, %V", v, i->in[0], i->in[1]);
        line(r, "br i1 %%v%u.any, label %%l%u, label %%d%u", v, v, v);
    } else {
        line(r, "br label %%l%u", v);
    }
    begin_block(r, 'l', v);
    line(r, "%%v%u = phi %s [ %V, %%%s ], [ %%v%u.next, %%t%u ]", v, t.s, i->in[0], from, v, v);
}

static void put_if(render *r, dc_fv v)
{
    line(r, "br %T, label %%l%u, label %%d%u", at(r, v)->in[0], v, v);
    begin_block(r, 'l', v);
}

static void put_end(render *r, dc_fv opened)
{
    const dc_finst *i = at(r, opened);
    if (i->op == DC_K_IF) {
        line(r, "br label %%d%u", opened);
    } else {
        const name t = type_of(r, DC_INDEX, 1);
        line(r, "br label %%t%u", opened);
        begin_block(r, 't', opened);
        line(r, "%%v%u.next = add nuw nsw %s %%v%u, 1", opened, t.s, opened);
        line(r, "%%v%u.more = icmp slt %s %%v%u.next, %V", opened, t.s, opened, i->in[1]);
        line(r, "br i1 %%v%u.more, label %%l%u, label %%d%u", opened, opened, opened);
    }
    begin_block(r, 'd', opened);
}

static bool is_splat_of(const render *r, dc_fv v, uint64_t bits)
{
    return at(r, v)->op == DC_K_CONST && at(r, v)->imm == bits;
}

/*
 * What guards an integer division, 1 where x is 0 and else x, is written as the unsigned maximum of x
 * and 1. A select LLVM (19) takes away where the quotient itself is picked by the same condition, and
 * then one lane that divides by 0 makes it give up the values of all lanes.
 */
static bool put_nonzero(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v), *test = at(r, i->in[0]);
    if (i->type == DC_BOOL || dc_ftype_is_float(i->type) || test->op != DC_K_EQ ||
        test->in[0] != i->in[2] || !is_splat_of(r, test->in[1], 0) || !is_splat_of(r, i->in[1], 1))
        return false;
    const name t = type_of(r, i->type, i->lanes);
    const name m = mangled(scalar_type(r, i->type, false), i->lanes);
    line(r, "%%v%u = call %s @llvm.umax.%s(%T, %T)", v, t.s, m.s, i->in[2], i->in[1]);
    declare(r, "%s @llvm.umax.%s(%s, %s)", t.s, m.s, t.s, t.s);
    return true;
}

static void put_inst(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    switch ((dc_kform)dc_kop_row_of((dc_kop)i->op)->form) {
    case DC_KFORM_LEAF:
        break;
    case DC_KFORM_SAME:
    case DC_KFORM_TEST:
        if (dc_kop_zips((dc_kop)i->op))
            put_zip(r, v);
        else
            put_table(r, v);
        break;
    case DC_KFORM_PICK:
        if (!put_nonzero(r, v))
            line(r, "%%v%u = select %T, %T, %T", v, i->in[0], i->in[1], i->in[2]);
        break;
    case DC_KFORM_CONV:
        if (i->op == DC_K_SPLAT)
            put_splat(r, v);
        else if (i->op == DC_K_ANY)
            put_any(r, v);
        else if (i->op == DC_K_CONVERT)
            put_convert(r, v);
        else
            line(r, "%%v%u = bitcast %T to %s", v, i->in[0], type_of(r, i->type, i->lanes).s);
        break;
    case DC_KFORM_LANE:
        DC_BUG("%s: workers have no lanes to read from", r->f->name);
    case DC_KFORM_MEM:
        if (i->op == DC_K_LOAD)
            put_load(r, v);
        else if (i->op == DC_K_STORE)
            put_store(r, v);
        else
            put_spread(r, v);
        break;
    case DC_KFORM_CTRL:
        DC_BUG("structure is not written here");
    }
}

/* Functions --------------------------------------------------------------------------------- */

static void put_buffers(render *r)
{
    for (uint32_t n = 0; n < r->f->buf.n; n++) {
        const dc_buffer *b = &r->f->buf.at[n];
        if (b->scope == DC_SCOPE_LOCAL) {
            line(r, "%%b%u = alloca [%l x %s], align 64", n, b->count > 0 ? b->count : 1,
                 scalar_type(r, b->dtype, true));
            continue;
        }
        if (b->scope == DC_SCOPE_SCRATCH) {
            line(r, "%%b%u = getelementptr inbounds i8, ptr %%scratch, i64 %l", n, (int64_t)b->at);
            continue;
        }
        line(r, "%%b%u.p = getelementptr inbounds ptr, ptr %%buf, i64 %u", n, b->param);
        line(r, "%%b%u = load ptr, ptr %%b%u.p, align 8", n, n);
    }
}

static void put_body(render *r)
{
    dc_fv *open = DC_NEW_ARRAY(&r->j->scratch, dc_fv, r->f->order.n);
    uint32_t depth = 0;
    for (uint32_t n = 0; n < r->f->order.n; n++) {
        const dc_fv v = r->f->order.at[n];
        const dc_kop op = (dc_kop)at(r, v)->op;
        if (op == DC_K_END) {
            put_end(r, open[--depth]);
        } else if (op == DC_K_LOOP || op == DC_K_IF) {
            open[depth++] = v;
            if (op == DC_K_LOOP)
                put_loop(r, v);
            else
                put_if(r, v);
        } else {
            put_inst(r, v);
        }
    }
}

/* On x86 stores past the caches are ordered with no others. */
static void put_fence(render *r, const dc_target *target)
{
    bool streams = false;
    for (uint32_t n = 0; n < r->f->buf.n; n++)
        streams |= r->f->buf.at[n].stream;
    r->streams |= streams;
    if (!streams || strncmp(target->triple, "x86_64", 6) != 0)
        return;
    line(r, "call void @llvm.x86.sse.sfence()");
    declare(r, "void @llvm.x86.sse.sfence()");
}

static void put_kernel(render *r, const dc_target *target)
{
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    dc_text_printf(r->out,
                   "\ndefine void @\"%s\"(ptr %%buf, ptr %%block, ptr %%scratch, i64 %%begin, "
                   "i64 %%end) #0 {\n",
                   r->f->name);
    snprintf(r->block, sizeof r->block, "entry");
    dc_text_puts(r->out, "entry:\n");
    put_buffers(r);
    put_body(r);
    put_fence(r, target);
    dc_text_puts(r->out, "  ret void\n}\n");
    dc_arena_rewind(&r->j->scratch, mark);
}

static void free_text(void *t)
{
    dc_text_free(t);
}

dc_status dc_render_llvm(dc_job *j, const dc_flat *const *kernels, uint32_t n,
                         const dc_target *target, dc_text *out)
{
    render *r = DC_NEW(&j->scratch, render);
    r->j = j;
    r->out = out;
    r->vector_bytes = target->vector_bytes;
    dc_job_defer(j, free_text, &r->declared);
    if (target->triple[0] != '\0')
        dc_text_printf(out, "target triple = \"%s\"\n", target->triple);
    for (uint32_t i = 0; i < n; i++) {
        r->f = kernels[i];
        put_kernel(r, target);
    }
    dc_text_puts(out, "\n");
    if (r->declared.s != NULL)
        dc_text_puts(out, r->declared.s);
    dc_text_printf(
        out, "\nattributes #0 = { nounwind \"no-builtins\" \"prefer-vector-width\"=\"%d\" }\n",
        target->vector_bytes * 8);
    if (r->streams)
        dc_text_puts(out, "!0 = !{i32 1}\n");
    dc_job_keep(j, &r->declared);
    dc_text_free(&r->declared);
    return DC_OK;
}
