/*
 * Arithmetic in LLVM IR (jit/render/llvm_expr.h). Most instructions are one line by the table jit/flat/kops.def.
 */
#include "jit/render/llvm_expr.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *fast(const dc_llvm_text *r, const dc_finst *i)
{
    const bool contracts =
        i->op == DC_K_ADD || i->op == DC_K_SUB || i->op == DC_K_MUL || i->op == DC_K_NEG;
    return contracts && dc_ftype_is_float(i->type) && !r->f->strict ? " contract" : "";
}

static void put_intrinsic(dc_llvm_text *r, dc_fv v, const char *what)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_llname t = dc_llvm_text_type(r, i->type, i->lanes);
    const dc_llname m = dc_llvm_text_mangled(dc_llvm_text_scalar(r, i->type, false), i->lanes);
    const int n = dc_kop_row_of((dc_kop)i->op)->n;
    dc_text_printf(r->out, "  %%v%" PRIu32 " = call %s @llvm.%s.%s(", v, t.s, what, m.s);
    for (int a = 0; a < n; a++) {
        dc_text_printf(r->out, "%s%s ", a > 0 ? ", " : "", t.s);
        dc_llvm_text_value(r, i->in[a]);
    }
    dc_text_puts(r->out, ")\n");
    if (n == 3)
        dc_llvm_text_declare(r, "%s @llvm.%s.%s(%s, %s, %s)", t.s, what, m.s, t.s, t.s, t.s);
    else
        dc_llvm_text_declare(r, "%s @llvm.%s.%s(%s)", t.s, what, m.s, t.s);
}

static void put_table(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    const char *what = row->llvm[dc_kop_column(dc_lltext_at(r, i->in[0])->type)];
    if (what[0] == '\0')
        DC_BUG("%s has no rendering for its type", row->name);
    if (i->op == DC_K_FMA && r->f->strict) {
        dc_llvm_text_line(r, "%%v%u.m = fmul %T, %V", v, i->in[0], i->in[1]);
        dc_llvm_text_line(r, "%%v%u = fadd %T, %%v%u.m", v, i->in[2], v);
    } else if (what[0] == '@') {
        put_intrinsic(r, v, what + 1);
    } else if (row->n == 1) {
        dc_llvm_text_line(r, "%%v%u = %s%s %T", v, what, fast(r, i), i->in[0]);
    } else {
        dc_llvm_text_line(r, "%%v%u = %s%s %T, %V", v, what, fast(r, i), i->in[0], i->in[1]);
    }
}

static void put_splat(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_llname t = dc_llvm_text_type(r, i->type, i->lanes);
    dc_llvm_text_line(r, "%%v%u.i = insertelement %s poison, %T, i32 0", v, t.s, i->in[0]);
    dc_llvm_text_line(r, "%%v%u = shufflevector %s %%v%u.i, %s poison, <%d x i32> zeroinitializer",
                      v, t.s, v, t.s, (int)i->lanes);
}

static void put_zip(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const int half = i->lanes / 2, first = i->op == DC_K_ZIP_HIGH ? half : 0;
    dc_text_printf(r->out, "  %%v%" PRIu32 " = shufflevector %s ", v,
                   dc_llvm_text_type(r, i->type, i->lanes).s);
    dc_llvm_text_value(r, i->in[0]);
    dc_text_printf(r->out, ", %s ", dc_llvm_text_type(r, i->type, i->lanes).s);
    dc_llvm_text_value(r, i->in[1]);
    dc_text_printf(r->out, ", <%d x i32> <", i->lanes);
    for (int n = 0; n < i->lanes; n++)
        dc_text_printf(r->out, "%si32 %d", n > 0 ? ", " : "",
                       first + n / 2 + (n & 1 ? i->lanes : 0));
    dc_text_puts(r->out, ">\n");
}

static void put_lanes(dc_llvm_text *r, int first, int n, int of)
{
    dc_text_printf(r->out, ", <%d x i32> <", n);
    for (int k = 0; k < n; k++)
        dc_text_printf(r->out, "%si32 %d", k > 0 ? ", " : "", (first + k) % of);
    dc_text_puts(r->out, ">\n");
}

/* Names of pieces while they are put together, two and two; of the last one, that of the value. */
static dc_llname piece(dc_fv v, int width, int all, int n)
{
    dc_llname s;
    if (width == all)
        snprintf(s.s, sizeof s.s, "%%v%" PRIu32, v);
    else
        snprintf(s.s, sizeof s.s, "%%v%" PRIu32 ".w%d.%d", v, width, n);
    return s;
}

/* Piece n of an operand, `one` lanes, %vN.a<n>, .b<n> or .c<n>; where it has fewer, what follows is no matter. */
static void take_piece(dc_llvm_text *r, dc_fv v, int operand, int one, int n)
{
    const dc_finst *i = dc_lltext_at(r, v);
    dc_text_printf(r->out, "  %%v%" PRIu32 ".%c%d = ", v, "abc"[operand], n);
    if (i->lanes == 1) {
        dc_text_printf(r->out, "insertelement %s poison, ", dc_llvm_text_type(r, i->type, one).s);
        dc_text_printf(r->out, "%s ", dc_llvm_text_scalar(r, i->type, false));
        dc_llvm_text_value(r, i->in[operand]);
        dc_text_puts(r->out, ", i32 0\n");
        return;
    }
    const dc_llname t = dc_llvm_text_type(r, i->type, i->lanes);
    dc_text_printf(r->out, "shufflevector %s ", t.s);
    dc_llvm_text_value(r, i->in[operand]);
    dc_text_printf(r->out, ", %s poison", t.s);
    put_lanes(r, n * one, one, i->lanes);
}

static void join_pieces(dc_llvm_text *r, dc_fv v, int one)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const int all = i->lanes;
    for (int w = one; w < all; w *= 2)
        for (int n = 0; n < all / w / 2; n++) {
            const dc_llname half = dc_llvm_text_type(r, i->type, w);
            dc_text_printf(r->out, "  %s = shufflevector %s %s, %s %s", piece(v, 2 * w, all, n).s,
                           half.s, piece(v, w, all, 2 * n).s, half.s,
                           piece(v, w, all, 2 * n + 1).s);
            put_lanes(r, 0, 2 * w, 2 * w);
        }
    if (all >= one)
        return;
    const dc_llname t = dc_llvm_text_type(r, i->type, one);
    if (all == 1) {
        dc_llvm_text_line(r, "%%v%u = extractelement %s %s, i32 0", v, t.s, piece(v, one, 1, 0).s);
        return;
    }
    dc_text_printf(r->out, "  %%v%" PRIu32 " = shufflevector %s %s, %s poison", v, t.s,
                   piece(v, one, all, 0).s, t.s);
    put_lanes(r, 0, all, one);
}

/* In pieces of what the machine's instruction takes. */
static void put_scale(dc_llvm_text *r, dc_fv v)
{
    const int all = dc_lltext_at(r, v)->lanes, one = 16;
    for (int n = 0; n < all / one; n++) {
        take_piece(r, v, 0, one, n);
        take_piece(r, v, 1, one, n);
        dc_text_printf(r->out, "  %s = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(",
                       piece(v, one, all, n).s);
        dc_llvm_text_line(r,
                          "<16 x float> %%v%u.a%d, <16 x float> %%v%u.b%d, "
                          "<16 x float> zeroinitializer, i16 -1, i32 4)",
                          v, n, v, n);
    }
    dc_llvm_text_declare(r, "<16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, "
                            "<16 x float>, <16 x float>, i16, i32)");
    join_pieces(r, v, one);
}

/* vpdpbusd, in pieces of what its registers hold. */
static void put_dp4a(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const int all = i->lanes, one = all >= 16 ? 16 : all >= 8 ? 8 : 4;
    const dc_llname t = dc_llvm_text_type(r, i->type, one);
    char name[40];
    snprintf(name, sizeof name, "@llvm.x86.avx512.vpdpbusd.%d", 32 * one);
    for (int n = 0; n < dc_max_i64(all / one, 1); n++) {
        for (int a = 0; a < 3; a++)
            take_piece(r, v, a, one, n);
        dc_llvm_text_line(r, "%s = call %s %s(%s %%v%u.c%d, %s %%v%u.a%d, %s %%v%u.b%d)",
                          piece(v, one, all, n).s, t.s, name, t.s, v, n, t.s, v, n, t.s, v, n);
    }
    dc_llvm_text_declare(r, "%s %s(%s, %s, %s)", t.s, name, t.s, t.s, t.s);
    join_pieces(r, v, one);
}

/* The instruction's rule of signs and numbers; of two operands one of which is NaN the sum. */
static void put_range(dc_llvm_text *r, dc_fv v)
{
    enum { LEAST = 4, MOST = 5 }; /* with the sign of what is picked */
    const dc_finst *i = dc_lltext_at(r, v);
    const int width = dc_flat_width(r->f, i->type), all = i->lanes;
    const int bytes = all * width >= 512   ? 512
                      : all * width >= 256 ? 256
                                           : 128,
              one = bytes / width;
    const dc_llname t = dc_llvm_text_type(r, i->type, one);
    const char *mask = one == 16 ? "i16" : "i8", *mode = bytes == 512 ? ", i32 4" : "";
    char name[48];
    snprintf(name, sizeof name, "@llvm.x86.avx512.mask.range.%s.%d", width == 32 ? "ps" : "pd",
             bytes);
    for (int n = 0; n < dc_max_i64(all / one, 1); n++) {
        take_piece(r, v, 0, one, n);
        take_piece(r, v, 1, one, n);
        dc_llvm_text_line(r,
                          "%%v%u.r%d = call %s %s(%s %%v%u.a%d, %s %%v%u.b%d, i32 %d, %s "
                          "zeroinitializer, %s -1%s)",
                          v, n, t.s, name, t.s, v, n, t.s, v, n, i->op == DC_K_MAX ? MOST : LEAST,
                          t.s, mask, mode);
        dc_llvm_text_line(r, "%%v%u.n%d = fcmp uno %s %%v%u.a%d, %%v%u.b%d", v, n, t.s, v, n, v, n);
        dc_llvm_text_line(r, "%%v%u.s%d = fadd %s %%v%u.a%d, %%v%u.b%d", v, n, t.s, v, n, v, n);
        dc_llvm_text_line(r, "%s = select %s %%v%u.n%d, %s %%v%u.s%d, %s %%v%u.r%d",
                          piece(v, one, all, n).s, dc_llvm_text_spread("i1", one).s, v, n, t.s, v,
                          n, t.s, v, n);
    }
    dc_llvm_text_declare(r, "%s %s(%s, %s, i32, %s, %s%s)", t.s, name, t.s, t.s, t.s, mask,
                         bytes == 512 ? ", i32" : "");
    join_pieces(r, v, one);
}

static void put_any(dc_llvm_text *r, dc_fv v)
{
    const dc_fv a = dc_lltext_at(r, v)->in[0];
    const int lanes = dc_lltext_at(r, a)->lanes;
    dc_llvm_text_line(r, "%%v%u = call i1 @llvm.vector.reduce.or.v%di1(%T)", v, lanes, a);
    dc_llvm_text_declare(r, "i1 @llvm.vector.reduce.or.v%di1(<%d x i1>)", lanes, lanes);
}

/* A vector of one constant, %vN.NAME. */
static void put_bound(dc_llvm_text *r, dc_fv v, const char *name, const char *type,
                      const char *value)
{
    const int lanes = dc_lltext_at(r, v)->lanes;
    const dc_llname t = dc_llvm_text_spread(type, lanes);
    dc_llvm_text_line(r, "%%v%u.%s0 = insertelement %s poison, %s %s, i32 0", v, name, t.s, type,
                      value);
    dc_llvm_text_line(
        r, "%%v%u.%s = shufflevector %s %%v%u.%s0, %s poison, <%d x i32> zeroinitializer", v, name,
        t.s, v, name, t.s, lanes);
}

/* Least and greatest number of so many bits beside the sign, as %vN.lo and %vN.hi of the source's type. */
static void put_limits(dc_llvm_text *r, dc_fv v, const char *source, int bits, bool sign)
{
    const double above = (double)((uint64_t)1 << (bits - 1)) * 2;
    char text[48];
    snprintf(text, sizeof text, "%.1f", sign ? -above : 0.0);
    put_bound(r, v, "lo", source, text);
    snprintf(text, sizeof text, "%.1f", above - 1);
    put_bound(r, v, "hi", source, text);
}

/* Where the source holds both limits: a number is brought between them, and NaN replaced afterwards. */
static void put_clamped_lanes(dc_llvm_text *r, dc_fv v, const char *source, int bits, bool sign)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_fv x = i->in[0];
    const bool narrow = bits < 32, cut = dc_flat_width(r->f, i->type) < (narrow ? 32 : 64);
    const dc_llname t = dc_llvm_text_spread(narrow ? "i32" : "i64", i->lanes),
                    tests = dc_llvm_text_spread("i1", i->lanes),
                    from = dc_llvm_text_spread(source, i->lanes);
    put_limits(r, v, source, bits, sign);
    dc_llvm_text_line(r, "%%v%u.above = fcmp ogt %T, %%v%u.lo", v, x, v);
    dc_llvm_text_line(r, "%%v%u.l = select %s %%v%u.above, %T, %s %%v%u.lo", v, tests.s, v, x,
                      from.s, v);
    dc_llvm_text_line(r, "%%v%u.below = fcmp olt %s %%v%u.l, %%v%u.hi", v, from.s, v, v);
    dc_llvm_text_line(r, "%%v%u.c = select %s %%v%u.below, %s %%v%u.l, %s %%v%u.hi", v, tests.s, v,
                      from.s, v, from.s, v);
    dc_llvm_text_line(r, "%%v%u.n = fptosi %s %%v%u.c to %s", v, from.s, v, t.s);
    dc_llvm_text_line(r, "%%v%u.is = fcmp ord %T, %V", v, x, x);
    dc_llvm_text_line(r, "%%v%u%s = select %s %%v%u.is, %s %%v%u.n, %s zeroinitializer", v,
                      cut ? ".w" : "", tests.s, v, t.s, v, t.s);
    if (cut)
        dc_llvm_text_line(r, "%%v%u = trunc %s %%v%u.w to %s", v, t.s, v,
                          dc_llvm_text_type(r, i->type, i->lanes).s);
}

/*
 * What the intrinsic means, in vectors, which LLVM would take apart for it: what is out of range is converted as 0
 * and replaced afterwards.
 */
static void put_saturating_lanes(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_fv x = i->in[0];
    const bool sign = dc_kop_column(i->type) == 1;
    const int bits = dc_flat_width(r->f, i->type) - sign, wide = bits < 32 ? 32 : 64;
    const char *source = dc_llvm_text_scalar(r, dc_lltext_at(r, x)->type, false);
    const char *number = wide == 32 ? "i32" : "i64";
    const dc_llname t = dc_llvm_text_spread(number, i->lanes),
                    tests = dc_llvm_text_spread("i1", i->lanes),
                    to = dc_llvm_text_type(r, i->type, i->lanes),
                    from = dc_llvm_text_spread(source, i->lanes);
    const double above = (double)((uint64_t)1 << (bits - 1)) * 2;
    char text[48];
    if (bits <= (dc_lltext_at(r, x)->type == DC_F64 ? 53 : 24)) {
        put_clamped_lanes(r, v, source, bits, sign);
        return;
    }
    snprintf(text, sizeof text, "%.1f", sign ? -above : 0.0);
    put_bound(r, v, "lo", source, text);
    snprintf(text, sizeof text, "%.1f", above);
    put_bound(r, v, "hi", source, text);
    snprintf(text, sizeof text, "%" PRId64, sign ? (int64_t)(~(uint64_t)0 << bits) : (int64_t)0);
    put_bound(r, v, "min", number, text);
    snprintf(text, sizeof text, "%" PRIu64, ~(uint64_t)0 >> (64 - bits));
    put_bound(r, v, "max", number, text);
    dc_llvm_text_line(r, "%%v%u.below = fcmp olt %T, %%v%u.lo", v, x, v);
    dc_llvm_text_line(r, "%%v%u.above = fcmp oge %T, %%v%u.hi", v, x, v);
    dc_llvm_text_line(r, "%%v%u.fits0 = fcmp oge %T, %%v%u.lo", v, x, v);
    dc_llvm_text_line(r, "%%v%u.fits1 = fcmp olt %T, %%v%u.hi", v, x, v);
    dc_llvm_text_line(r, "%%v%u.fits = and %s %%v%u.fits0, %%v%u.fits1", v, tests.s, v, v);
    dc_llvm_text_line(r, "%%v%u.x = select %s %%v%u.fits, %T, %s zeroinitializer", v, tests.s, v, x,
                      from.s);
    dc_llvm_text_line(r, "%%v%u.n = %s %s %%v%u.x to %s", v,
                      sign || bits < 32 ? "fptosi" : "fptoui", from.s, v, t.s);
    dc_llvm_text_line(r, "%%v%u.m = select %s %%v%u.below, %s %%v%u.min, %s %%v%u.n", v, tests.s, v,
                      t.s, v, t.s, v);
    const bool cut = bits + sign < wide;
    dc_llvm_text_line(r, "%%v%u%s = select %s %%v%u.above, %s %%v%u.max, %s %%v%u.m", v,
                      cut ? ".w" : "", tests.s, v, t.s, v, t.s, v);
    if (cut)
        dc_llvm_text_line(r, "%%v%u = trunc %s %%v%u.w to %s", v, t.s, v, to.s);
}

/* Float to integer saturates; NaN gives 0: exactly the intrinsic. */
static void put_saturating(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    if (i->lanes > 1) {
        put_saturating_lanes(r, v);
        return;
    }
    const char *what = dc_kop_column(i->type) == 1 ? "fptosi" : "fptoui";
    const char *source = dc_llvm_text_scalar(r, dc_lltext_at(r, i->in[0])->type, false);
    const dc_llname t = dc_llvm_text_type(r, i->type, i->lanes),
                    from = dc_llvm_text_spread(source, i->lanes);
    const dc_llname m = dc_llvm_text_mangled(dc_llvm_text_scalar(r, i->type, false), i->lanes),
                    mf = dc_llvm_text_mangled(source, i->lanes);
    dc_llvm_text_line(r, "%%v%u = call %s @llvm.%s.sat.%s.%s(%T)", v, t.s, what, m.s, mf.s,
                      i->in[0]);
    dc_llvm_text_declare(r, "%s @llvm.%s.sat.%s.%s(%s)", t.s, what, m.s, mf.s, from.s);
}

/*
 * A product that is rounded to f16 is written once more, as one that nothing contracts. Else LLVM
 * (19), where the machine has arithmetic of f16, makes a fused multiply-add of it and a sum, as if it
 * had not been rounded.
 */
static void put_rounded(dc_llvm_text *r, dc_fv v)
{
    const dc_fv from = dc_lltext_at(r, v)->in[0];
    const dc_finst *m = dc_lltext_at(r, from);
    const dc_llname half = dc_llvm_text_spread("half", m->lanes);
    if (m->op == DC_K_MUL) {
        dc_llvm_text_line(r, "%%v%u.m = fmul %T, %V", v, m->in[0], m->in[1]);
        dc_llvm_text_line(r, "%%v%u.h = fptrunc %s %%v%u.m to %s", v,
                          dc_llvm_text_type(r, m->type, m->lanes).s, v, half.s);
    } else {
        dc_llvm_text_line(r, "%%v%u.h = fptrunc %T to %s", v, from, half.s);
    }
}

/* Between f16, which is an i16 elsewhere, and f32, where the machine can. */
static void put_half(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const int from = dc_lltext_at(r, i->in[0])->type;
    const dc_llname half = dc_llvm_text_spread("half", i->lanes),
                    word = dc_llvm_text_spread("i16", i->lanes);
    const dc_llname number = dc_llvm_text_spread("float", i->lanes);
    if (from == DC_F16 && i->type == DC_F32) {
        dc_llvm_text_line(r, "%%v%u.h = bitcast %T to %s", v, i->in[0], half.s);
        dc_llvm_text_line(r, "%%v%u = fpext %s %%v%u.h to %s", v, half.s, v, number.s);
    } else if (from == DC_F32 && i->type == DC_F16) {
        put_rounded(r, v);
        dc_llvm_text_line(r, "%%v%u = bitcast %s %%v%u.h to %s", v, half.s, v, word.s);
    } else {
        DC_BUG("%s: a conversion of 16-bit floats", r->f->name);
    }
}

/*
 * An index that becomes a number passes through an empty piece of assembly, of which LLVM knows nothing. Else
 * its loop strength reduction follows sums of such numbers, and takes seconds over the rounds of one threefry.
 */
static void put_convert(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const int from = dc_lltext_at(r, i->in[0])->type, to = i->type;
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
    const dc_llname t = dc_llvm_text_type(r, to, i->lanes);
    const bool hidden = from == DC_INDEX && i->lanes == 1 && wf > wt && !dc_ftype_is_float(to);
    dc_llvm_text_line(r, hidden ? "%%v%u.i = %s %T to %s" : "%%v%u = %s %T to %s", v, what,
                      i->in[0], t.s);
    if (hidden)
        dc_llvm_text_line(r, "%%v%u = call %s asm \"\", \"=r,0\"(%s %%v%u.i)", v, t.s, t.s, v);
}

static bool is_splat_of(const dc_llvm_text *r, dc_fv v, uint64_t bits)
{
    return dc_lltext_at(r, v)->op == DC_K_CONST && dc_lltext_at(r, v)->imm == bits;
}

/*
 * What guards an integer division, 1 where x is 0 and else x, is written as the unsigned maximum of x
 * and 1. A select LLVM (19) takes away where the quotient itself is picked by the same condition, and
 * then one lane that divides by 0 makes it give up the values of all lanes.
 */
static bool put_nonzero(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v), *test = dc_lltext_at(r, i->in[0]);
    if (i->type == DC_BOOL || dc_ftype_is_float(i->type) || test->op != DC_K_EQ ||
        test->in[0] != i->in[2] || !is_splat_of(r, test->in[1], 0) || !is_splat_of(r, i->in[1], 1))
        return false;
    const dc_llname t = dc_llvm_text_type(r, i->type, i->lanes);
    const dc_llname m = dc_llvm_text_mangled(dc_llvm_text_scalar(r, i->type, false), i->lanes);
    dc_llvm_text_line(r, "%%v%u = call %s @llvm.umax.%s(%T, %T)", v, t.s, m.s, i->in[2], i->in[1]);
    dc_llvm_text_declare(r, "%s @llvm.umax.%s(%s, %s)", t.s, m.s, t.s, t.s);
    return true;
}

static void put_conversion(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    if (i->op == DC_K_SPLAT)
        put_splat(r, v);
    else if (i->op == DC_K_ANY)
        put_any(r, v);
    else if (i->op == DC_K_CONVERT)
        put_convert(r, v);
    else
        dc_llvm_text_line(r, "%%v%u = bitcast %T to %s", v, i->in[0],
                          dc_llvm_text_type(r, i->type, i->lanes).s);
}

void dc_llvm_expr_put(dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    switch ((dc_kform)dc_kop_row_of((dc_kop)i->op)->form) {
    case DC_KFORM_SAME:
    case DC_KFORM_TEST:
        if (dc_kop_zips((dc_kop)i->op))
            put_zip(r, v);
        else if (i->op == DC_K_SCALE)
            put_scale(r, v);
        else if (i->op == DC_K_DP4A)
            put_dp4a(r, v);
        else if (i->op == DC_K_MIN || i->op == DC_K_MAX)
            put_range(r, v);
        else
            put_table(r, v);
        return;
    case DC_KFORM_PICK:
        if (!put_nonzero(r, v))
            dc_llvm_text_line(r, "%%v%u = select %T, %T, %T", v, i->in[0], i->in[1], i->in[2]);
        return;
    case DC_KFORM_CONV:
        put_conversion(r, v);
        return;
    case DC_KFORM_LANE:
        DC_BUG("%s: workers have no lanes to read from", r->f->name);
    case DC_KFORM_LEAF:
    case DC_KFORM_MEM:
    case DC_KFORM_CTRL:
        break;
    }
    DC_BUG("%s is no expression", dc_kop_row_of((dc_kop)i->op)->name);
}
