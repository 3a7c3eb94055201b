/*
 * Random legal kernels in flat form, for renderers: every row of jit/flat/kops.def but those of threads,
 * every type, scalars and vectors, loops, tests, locals and scratch memory whose accesses overlap.
 * Strict, so that rounding is determined; made so that no NaN's pattern can be seen.
 *
 *   dc_flat *f = flat_random(&rng, 60, 8, false);   about so many values, vectors of 8
 *
 * Parameters: first outputs, one per dtype, then inputs. All have FLAT_COUNT elements for each
 * of FLAT_POSITIONS work items. simt: for groups of one thread instead of threads of a CPU.
 */
#ifndef DC_TESTS_FLAT_RANDOM_H
#define DC_TESTS_FLAT_RANDOM_H

#include "jit/flat/flat.h"

#include "tests/unit/rng.h"

enum { FLAT_COUNT = 512, FLAT_POSITIONS = 3, FLAT_LOCAL = 64, FLAT_PARAMS = 2 * DC_DTYPE__COUNT };

typedef struct made { /* a value that the open scopes have */
    dc_fv v;
    int type, lanes;
} made;

typedef struct flat_maker {
    rng *r;
    dc_flat *f;
    dc_fbuild *b;
    int lanes, depth;
    DC_VEC(made) have;
    dc_fv position;            /* times FLAT_COUNT */
    int used[DC_DTYPE__COUNT]; /* elements of each output */
    uint32_t local[DC_DTYPE__COUNT];
} flat_maker;

static inline dc_fv note(flat_maker *m, dc_fv v)
{
    const dc_finst *i = dc_fb_at(m->b, v);
    DC_PUSH_IN(&m->f->arena, m->have, ((made){v, i->type, i->lanes}));
    return v;
}

static inline dc_fv index_const(flat_maker *m, int64_t n)
{
    return dc_fb_const(m->b, DC_INDEX, 1, (uint64_t)n);
}

static inline uint64_t some_bits(flat_maker *m, int type)
{
    static const uint32_t special[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 1,          0x7fffffff, 0x4b000001, 0x3fc90fdb};
    const uint64_t word = special[rng_below(m->r, (int)DC_COUNTOF(special))];
    const bool given = rng_below(m->r, 3) != 0;
    if (type == DC_INDEX)
        return rng_next(m->r) % 100;
    if (!dc_ftype_is_float(type))
        return given ? word : rng_next(m->r);
    const uint64_t infinity = dc_bits_infinity((dc_dtype)type);
    const uint64_t bits = given ? dc_bits_cast(DC_F32, (dc_dtype)type, word) : rng_next(m->r);
    const uint64_t fraction = ((uint64_t)1 << dc_dtype_fraction((dc_dtype)type)) - 1;
    return (bits & infinity) == infinity ? bits & ~fraction : bits; /* no NaN */
}

/* One of what is there, else a constant. */
static inline dc_fv some(flat_maker *m, int type, int lanes)
{
    for (int n = 0; n < 12 && m->have.n > 0; n++) {
        const made x = m->have.at[m->have.n - 1 - (uint32_t)rng_below(m->r, (int)m->have.n)];
        if (x.type == type && (x.lanes == lanes || x.lanes == 1))
            return dc_fb_splat(m->b, x.v, lanes);
    }
    return dc_fb_const(m->b, type, lanes, some_bits(m, type));
}

/* An index into a buffer of FLAT_LOCAL elements that leaves room for `reach` of them. */
static inline dc_fv place(flat_maker *m, int reach)
{
    const int room = FLAT_LOCAL - reach + 1;
    if (rng_below(m->r, 2))
        return index_const(m, rng_below(m->r, room));
    const dc_fv x = some(m, DC_INDEX, 1);
    const dc_fv in = dc_fb_op2(m->b, DC_K_REM, x, index_const(m, room > 8 ? room - 8 : 1));
    return room > 8 ? dc_fb_op2(m->b, DC_K_ADD, in, index_const(m, rng_below(m->r, 8))) : in;
}

/* An index for each lane. */
static inline dc_fv places(flat_maker *m)
{
    const dc_fv x = some(m, DC_U32, m->lanes);
    const dc_fv in =
        dc_fb_op2(m->b, DC_K_AND, x, dc_fb_const(m->b, DC_U32, m->lanes, FLAT_LOCAL - 1));
    return rng_below(m->r, 2) ? in : dc_fb_convert(m->b, in, DC_INDEX);
}

/* Fields of an access to a local buffer, but for the value. */
static inline dc_finst access_of(flat_maker *m, int type, int lanes, bool store)
{
    dc_finst i = {.type = (uint8_t)type, .lanes = (uint16_t)lanes, .buf = m->local[type], .imm = 1};
    const int mask = store ? 2 : 1;
    i.op = store ? DC_K_STORE : DC_K_LOAD;
    i.align = (uint16_t)dc_dtype_size((dc_dtype)type);
    if (lanes == 1) {
        i.in[0] = place(m, 1);
        return i;
    }
    switch (rng_below(m->r, 6)) {
    case 0: /* spread */
        i.op = store ? DC_K_SCATTER : DC_K_GATHER;
        i.in[0] = places(m);
        i.in[mask] = rng_below(m->r, 2) ? some(m, DC_BOOL, lanes) : 0;
        break;
    case 1: { /* begins before the buffer, the mask leaves that out */
        const int out = rng_below(m->r, lanes);
        const dc_fv l = dc_fb_lanes(m->b, DC_U32, lanes, 1);
        i.in[0] = index_const(m, -out);
        i.in[mask] = dc_fb_op2(m->b, DC_K_LE, dc_fb_const(m->b, DC_U32, lanes, (uint64_t)out), l);
        break;
    }
    case 2: { /* steps */
        const int step = 1 + rng_below(m->r, 3);
        i.imm = (uint64_t)step;
        i.in[0] = place(m, (lanes - 1) * step + 1);
        break;
    }
    case 3: /* backwards */
        i.imm = (uint64_t)-1;
        i.in[0] = dc_fb_op2(m->b, DC_K_ADD, place(m, lanes), index_const(m, lanes - 1));
        break;
    default:
        i.in[0] = place(m, lanes);
        i.in[mask] = rng_below(m->r, 3) ? 0 : some(m, DC_BOOL, lanes);
        break;
    }
    return i;
}

static inline dc_fv load_input(flat_maker *m, int type, int lanes)
{
    const int64_t at = rng_below(m->r, FLAT_COUNT - lanes);
    const dc_finst i = {.op = DC_K_LOAD,
                        .lanes = (uint16_t)lanes,
                        .align = (uint16_t)dc_dtype_size((dc_dtype)type),
                        .buf = (uint32_t)(DC_DTYPE__COUNT + type),
                        .imm = 1,
                        .in = {dc_fb_op2(m->b, DC_K_ADD, m->position, index_const(m, at))}};
    return dc_fb_mem(m->b, &i);
}

static inline bool is_integer(int type)
{
    return type == DC_INDEX || (type != DC_BOOL && !dc_dtype_is_float((dc_dtype)type));
}

static inline int any_type(flat_maker *m)
{
    return rng_below(m->r, DC_INDEX + 1);
}

/* One that is computed with. */
static inline int any_number(flat_maker *m)
{
    int t = any_type(m);
    while (dc_ftype_is_short(t))
        t = any_type(m);
    return t;
}

static inline dc_fv without_nan(flat_maker *m, dc_fv a, int t, int lanes)
{
    const dc_fv zero = dc_fb_const(m->b, t, lanes, 0);
    return dc_fb_op3(m->b, DC_K_SELECT, dc_fb_op2(m->b, DC_K_EQ, a, a), a, zero);
}

static inline dc_fv arithmetic(flat_maker *m, int t, int lanes)
{
    static const dc_kop flt[] = {DC_K_ADD, DC_K_SUB,  DC_K_MUL, DC_K_DIV,
                                 DC_K_NEG, DC_K_SQRT, DC_K_FMA};
    static const dc_kop uns[] = {DC_K_ADD, DC_K_SUB, DC_K_MUL, DC_K_AND, DC_K_OR,
                                 DC_K_XOR, DC_K_SHL, DC_K_SHR, DC_K_DIV, DC_K_REM};
    const dc_fv a = some(m, t, lanes), c = some(m, t, lanes);
    if (dc_ftype_is_short(t))
        return a;
    if (dc_ftype_is_float(t)) {
        const dc_kop op = flt[rng_below(m->r, (int)DC_COUNTOF(flt))];
        const int n = dc_kop_row_of(op)->n;
        return n == 1   ? dc_fb_op1(m->b, op, a)
               : n == 2 ? dc_fb_op2(m->b, op, a, c)
                        : dc_fb_op3(m->b, op, a, c, some(m, t, lanes));
    }
    if (t == DC_BOOL)
        return dc_fb_op2(m->b, uns[3 + rng_below(m->r, 3)], a, c);
    if (t == DC_U32 && lanes <= 16 && rng_below(m->r, 8) == 0)
        return dc_fb_op3(m->b, DC_K_DP4A, a, c, some(m, t, lanes));
    const dc_kop op = uns[rng_below(m->r, (int)DC_COUNTOF(uns))];
    dc_fv d = c;
    if (op == DC_K_SHL || op == DC_K_SHR)
        d = dc_fb_op2(m->b, DC_K_AND, c,
                      dc_fb_const(m->b, t, lanes, (uint64_t)dc_flat_width(m->f, t) - 1));
    if (op == DC_K_DIV || op == DC_K_REM) { /* from 1 to 127, odd */
        d = dc_fb_op2(m->b, DC_K_AND, c, dc_fb_const(m->b, t, lanes, 127));
        d = dc_fb_op2(m->b, DC_K_OR, d, dc_fb_const(m->b, t, lanes, 1));
    }
    return dc_fb_op2(m->b, op, a, d);
}

static inline dc_fv conversion(flat_maker *m, int t, int lanes)
{
    const int from = any_type(m);
    if (t == DC_BOOL || (t == DC_INDEX && dc_ftype_is_float(from)))
        return some(m, t, lanes);
    const bool as_wide = t != DC_INDEX && from != DC_INDEX && from != DC_BOOL &&
                         dc_dtype_bits((dc_dtype)t) == dc_dtype_bits((dc_dtype)from);
    if (as_wide && rng_below(m->r, 3) != 0) {
        dc_fv a = some(m, from, lanes);
        if (dc_ftype_is_number(from)) /* NaN to 0: its pattern is not determined */
            a = without_nan(m, a, from, lanes);
        return dc_fb_bitcast(m->b, a, t);
    }
    if (dc_ftype_is_short(from) || dc_ftype_is_short(t))
        return some(m, t, lanes);
    return dc_fb_convert(m->b, some(m, from, lanes), t);
}

static inline dc_fv test_of(flat_maker *m, int lanes)
{
    static const dc_kop tests[] = {DC_K_LT, DC_K_LE, DC_K_EQ, DC_K_NE};
    const int t = any_number(m);
    if (lanes == 1 && rng_below(m->r, 4) == 0)
        return dc_fb_op1(m->b, DC_K_ANY, some(m, DC_BOOL, m->lanes));
    return dc_fb_op2(m->b, tests[rng_below(m->r, 4)], some(m, t, lanes), some(m, t, lanes));
}

/* A value of the type; what it holds is not determined. */
static inline dc_fv value_of(flat_maker *m, int t, int lanes)
{
    const int what = rng_below(m->r, 10);
    if (t != DC_INDEX && what < 3) {
        if (rng_below(m->r, 2))
            return load_input(m, t, lanes);
        const dc_finst i = access_of(m, t, lanes, false);
        return dc_fb_mem(m->b, &i);
    }
    if (what == 3)
        return conversion(m, t, lanes);
    if (what == 4)
        return dc_fb_op3(m->b, DC_K_SELECT, some(m, DC_BOOL, lanes), some(m, t, lanes),
                         some(m, t, lanes));
    if (what == 6 && lanes > 1)
        return dc_fb_op2(m->b, rng_below(m->r, 2) ? DC_K_ZIP_LOW : DC_K_ZIP_HIGH, some(m, t, lanes),
                         some(m, t, lanes));
    if (what == 5 && lanes > 1 && is_integer(t))
        return dc_fb_lanes(m->b, t, lanes, rng_below(m->r, 9) - 4);
    if (t == DC_BOOL && what < 8)
        return test_of(m, lanes);
    return arithmetic(m, t, lanes);
}

/* Stores v to an output, if it is of a type that outputs have and there is room. */
static inline void show_value(flat_maker *m, dc_fv v)
{
    const dc_finst *i = dc_fb_at(m->b, v);
    const int t = i->type, lanes = i->lanes;
    if (t == DC_INDEX || m->used[t] + lanes > FLAT_COUNT)
        return;
    const dc_finst store = {
        .op = DC_K_STORE,
        .lanes = (uint16_t)lanes,
        .align = (uint16_t)dc_dtype_size((dc_dtype)t),
        .buf = (uint32_t)t,
        .imm = 1,
        .in = {dc_fb_op2(m->b, DC_K_ADD, m->position, index_const(m, m->used[t])), v}};
    m->used[t] += lanes;
    dc_fb_mem(m->b, &store);
}

/* Of fixed bounds, or as often as a value says. */
static inline dc_fv some_loop(flat_maker *m)
{
    const dc_fv begin = index_const(m, rng_below(m->r, 2));
    const dc_fv often = dc_fb_op2(m->b, DC_K_REM, some(m, DC_INDEX, 1), index_const(m, 4));
    uint64_t bits;
    const bool fixed = rng_below(m->r, 2) || dc_fb_is_const(m->b, often, &bits);
    return dc_fb_loop(m->b, begin, fixed ? index_const(m, 3) : often);
}

static inline void add_values(flat_maker *m, int n)
{
    for (; n > 0; n--) {
        const int t = rng_below(m->r, 5) ? any_type(m) : DC_F32;
        const int lanes = rng_below(m->r, 2) ? 1 : m->lanes;
        const uint32_t kept = m->have.n;
        switch (rng_below(m->r, m->depth < 3 ? 14 : 12)) {
        case 0:
        case 1:
            if (t == DC_INDEX)
                break;
            dc_finst i = access_of(m, t, lanes, true);
            i.in[1] = some(m, t, lanes);
            dc_fb_mem(m->b, &i);
            break;
        case 12:
            note(m, some_loop(m));
            m->depth++;
            add_values(m, n / 3 + 1);
            n -= n / 3;
            m->have.n = kept;
            m->depth--;
            dc_fb_end(m->b);
            break;
        case 13:
            dc_fb_if(m->b, some(m, DC_BOOL, 1));
            m->depth++;
            add_values(m, n / 3 + 1);
            n -= n / 3;
            m->have.n = kept;
            m->depth--;
            dc_fb_end(m->b);
            break;
        default: {
            const dc_fv v = note(m, value_of(m, t, lanes));
            if (rng_below(m->r, 3) == 0)
                show_value(m, v);
            break;
        }
        }
    }
}

static inline void add_buffer(flat_maker *m, const char *prefix, int t, dc_scope scope,
                              dc_mode mode)
{
    dc_buffer b = {.dtype = (uint8_t)t, .scope = (uint8_t)scope, .mode = (uint8_t)mode};
    b.name = dc_arena_printf(&m->f->arena, "%s%d", prefix, t);
    b.count = scope == DC_SCOPE_PARAM ? FLAT_COUNT * FLAT_POSITIONS : FLAT_LOCAL;
    if (scope == DC_SCOPE_PARAM)
        b.param = m->f->nparam++;
    if (scope == DC_SCOPE_SCRATCH) {
        b.at = m->f->scratch;
        m->f->scratch += dc_align_up(FLAT_LOCAL * dc_dtype_size((dc_dtype)t), 64);
    }
    if (scope != DC_SCOPE_PARAM)
        m->local[t] = m->f->buf.n;
    DC_PUSH_IN(&m->f->arena, m->f->buf, b);
}

/* Locals begin as copies of inputs; what they hold at the end is shown. */
static inline void copy_locals(flat_maker *m, bool in)
{
    const dc_fv n = dc_fb_loop(m->b, index_const(m, 0), index_const(m, FLAT_LOCAL / m->lanes));
    const dc_fv at = dc_fb_op2(m->b, DC_K_MUL, n, index_const(m, m->lanes));
    const dc_fv first = index_const(m, in ? 0 : FLAT_COUNT - FLAT_LOCAL);
    const dc_fv there =
        dc_fb_op2(m->b, DC_K_ADD, dc_fb_op2(m->b, DC_K_ADD, m->position, first), at);
    for (int t = 0; t < DC_DTYPE__COUNT; t++) {
        const uint32_t outer = (uint32_t)t + (in ? DC_DTYPE__COUNT : 0);
        dc_finst i = {.op = DC_K_LOAD,
                      .lanes = (uint16_t)m->lanes,
                      .align = (uint16_t)dc_dtype_size((dc_dtype)t),
                      .buf = in ? outer : m->local[t],
                      .imm = 1,
                      .in = {in ? there : at}};
        i.in[1] = dc_fb_mem(m->b, &i);
        i.op = DC_K_STORE;
        i.buf = in ? m->local[t] : outer;
        i.in[0] = in ? at : there;
        dc_fb_mem(m->b, &i);
    }
    dc_fb_end(m->b);
}

static inline dc_flat *flat_random(rng *r, int size, int lanes, bool simt)
{
    flat_maker m = {.r = r, .lanes = lanes, .f = dc_xalloc(sizeof *m.f)};
    m.f->strict = true;
    m.f->simt = simt;
    m.f->index_bits = rng_below(r, 4) ? 64 : 32;
    m.f->threads = 1;
    m.f->positions = FLAT_POSITIONS;
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        add_buffer(&m, "out", t, DC_SCOPE_PARAM, DC_MODE_OUT);
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        add_buffer(&m, "x", t, DC_SCOPE_PARAM, DC_MODE_IN);
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        add_buffer(&m, "l", t, simt || rng_below(r, 3) ? DC_SCOPE_LOCAL : DC_SCOPE_SCRATCH,
                   DC_MODE_OUT);
    m.b = dc_fb_new(m.f);
    const dc_fv p =
        simt ? dc_fb_arg(m.b, DC_KARG_GROUP)
             : dc_fb_loop(m.b, dc_fb_arg(m.b, DC_KARG_BEGIN), dc_fb_arg(m.b, DC_KARG_END));
    m.position = dc_fb_op2(m.b, DC_K_MUL, p, index_const(&m, FLAT_COUNT));
    note(&m, p);
    copy_locals(&m, true);
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        m.used[t] = FLAT_LOCAL;
    add_values(&m, size);
    copy_locals(&m, false);
    if (!simt)
        dc_fb_end(m.b);
    return m.f;
}

#endif
