/*
 * Every element-wise row on a device against dc_op_eval: special values crossed, random values of the
 * whole range, for each dtype that the row admits, as vectors with a tail and as scalars. Bit for
 * bit, but for exp, sin and their like, whose error in ulp is bounded.
 *
 *   ew_rows_all("cpu");
 */
#ifndef DC_TESTS_EW_ROWS_H
#define DC_TESTS_EW_ROWS_H

#include <inttypes.h>

#include "tests/unit/kernel_run.h"
#include "tests/unit/near.h"

enum { LANES = 16, RANDOM = 5003 };

/* Rows and dtypes --------------------------------------------------------------------------- */

static const char *const type_rule[] = {
#define EW(id, lua, n, flags, type, ...) [DC_OP_##id] = #type,
#include "core/ir/ops.def"
};

static inline bool admits(dc_op op, dc_dtype t)
{
    const char *rule = type_rule[op];
    if (dc_dtype_is_short(t)) /* memory, in kernels */
        return op == DC_OP_CAST || op == DC_OP_BITCAST;
    if (strcmp(rule, "num") == 0 || strcmp(rule, "pattern") == 0)
        return t != DC_BOOL;
    if (strcmp(rule, "flt") == 0)
        return dc_dtype_is_float(t);
    if (strcmp(rule, "bits") == 0)
        return !dc_dtype_is_float(t);
    if (strcmp(rule, "int") == 0)
        return !dc_dtype_is_float(t) && t != DC_BOOL;
    if (strcmp(rule, "u32") == 0)
        return t == DC_U32;
    if (strcmp(rule, "half") == 0)
        return t == DC_U16;
    return true; /* any, sel */
}

/* Operands ---------------------------------------------------------------------------------- */

static uint64_t state = 88172645463325252u;

static inline uint32_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static inline uint64_t random_bits(void)
{
    const uint64_t high = random_word();
    return high << 32 | random_word();
}

static const uint32_t f32_special[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0xbf000000, 0x40000000, 0xc0000000,
    0x40490fdb, 0xc0490fdb, 0x3fc00000, 0xbfc00000, 0x4b000000, 0xcb000000, 0x4b7fffff, 0x4effffff,
    0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x437f0000, 0x437fffff, 0x43800000,
    0x42b17217, 0x42b17218, 0xc2aeac50, 0xc2cff1b5, 0xc2cff1b4, 0x7f7fffff, 0xff7fffff, 0x7f800000,
    0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0x33800000, 0x5f000000, 0xdf000000};
/* Beside those of f32: where f64 ends, and where f32, f16, bf16 and long integers round or end. */
static const uint64_t f64_special[] = {
    0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x3fefffffffffffff,
    0x3ff0000000000001, 0x4330000000000000, 0xc330000000000001, 0x4340000000000000,
    0x43dfffffffffffff, 0x43e0000000000000, 0xc3e0000000000000, 0xc3e0000000000001,
    0x43efffffffffffff, 0x43f0000000000000, 0x41dfffffffc00000, 0x41efffffffe00000,
    0x40862e42fefa39ef, 0x40862e42fefa39f0, 0xc086232bdd7abcd2, 0xc0874910d52d3051,
    0xc0874910d52d3052, 0x7fefffffffffffff, 0xffefffffffffffff, 0x47efffffefffffff,
    0x47effffff0000000, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001,
    0x36b8000000000000, 0x380fffffffffffff, 0x3810000000000000, 0x3ff0000010000000,
    0x3ff0000010000001, 0x3ff0000030000000, 0x40effdffffffffff, 0x40effe0000000000,
    0x3e60000000000000, 0x3e60000000000001, 0x3e78000000000000, 0x3f0ffc0000000000,
    0x3ff0020000000000, 0x3ff0020000000001, 0x3ff0060000000000, 0x3ff0100000000000,
    0x3ff0100000000001, 0x3ff0300000000000, 0x47efefffffffffff, 0x47eff00000000000};
static const uint64_t int_special[] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       8,
                                       9,
                                       31,
                                       32,
                                       33,
                                       63,
                                       64,
                                       100,
                                       127,
                                       128,
                                       255,
                                       256,
                                       257,
                                       0x7ffe,
                                       0x7fff,
                                       0x8000,
                                       0xffff,
                                       65519,
                                       65520,
                                       0x1000001,
                                       0x1000003,
                                       0x7ffffffe,
                                       0x7fffffff,
                                       0x80000000,
                                       0x80000001,
                                       0xffffffff,
                                       0x20000000000001,
                                       0x20000000000003,
                                       0x80000080000001,
                                       0x8080000000000001,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xfffffffffffffbff,
                                       0xfffffffffffffc00,
                                       0xffffffffffffffff,
                                       0xfffffffffffffffe,
                                       0xffffffffffffff9c,
                                       0xfffffffffffffff8,
                                       0x12345678};

/* All bits at random as a canonical pattern. */
static inline uint64_t pattern(dc_dtype t, uint64_t word)
{
    return dc_bits_canonical(t, word);
}

static inline int special_count(dc_dtype t)
{
    if (t == DC_BOOL)
        return 2;
    if (t == DC_U8)
        return 256;
    if (dc_dtype_is_float(t))
        return (int)DC_COUNTOF(f32_special) + (t == DC_F64 ? (int)DC_COUNTOF(f64_special) : 0);
    return (int)DC_COUNTOF(int_special);
}

static inline uint64_t special(dc_dtype t, int i)
{
    const int n = (int)DC_COUNTOF(f32_special);
    if (t == DC_BOOL || t == DC_U8)
        return (uint64_t)i;
    if (!dc_dtype_is_float(t))
        return pattern(t, int_special[i]);
    return i < n ? dc_bits_cast(DC_F32, t, f32_special[i]) : f64_special[i - n];
}

/* Random patterns: all bits, and for floats every other time a moderate value. */
static inline uint64_t any_value(dc_dtype t, int i)
{
    const uint64_t word = random_bits();
    if (dc_dtype_is_float(t) && i % 2 == 0)
        return dc_bits_of(t, ldexp((double)(int64_t)word, -32 - (int)(random_word() % 40)));
    if (!dc_dtype_is_float(t) && i % 3 == 0)
        return pattern(t, word % 40 - 20);
    if (!dc_dtype_is_float(t) && i % 3 == 1) /* of all lengths */
        return pattern(t, (uint64_t)((int64_t)word >> random_word() % 64));
    return pattern(t, word);
}

/* One case: a row for a dtype. Operands are patterns; operand 0 of `where` is bool. */
typedef struct oneop {
    dc_op op;
    dc_dtype t, to;
    int nin, count;
    uint64_t *in[4];
    int kernel[3]; /* vectors, scalars, vectors in a strict kernel */
    dc_kernel *nest[3];
} oneop;

static inline dc_dtype operand_type(const oneop *c, int n)
{
    return c->op == DC_OP_WHERE && n == 0 ? DC_BOOL : c->t;
}

static inline void fill(oneop *c)
{
    const int n0 = special_count(operand_type(c, 0)), n1 = c->nin > 1 ? special_count(c->t) : 1;
    const int n2 = c->nin == 3 && n1 < 90 ? n1 : 1; /* of many, `where` crosses two */
    const int specials = c->nin == 4 ? 0 : n0 * n1 * n2;
    c->count = specials + RANDOM;
    for (int n = 0; n < c->nin; n++)
        c->in[n] = malloc((size_t)c->count * sizeof *c->in[n]);
    for (int i = 0; i < c->count; i++) {
        const int part[3] = {i % n0, i / n0 % n1, i / n0 / n1};
        for (int n = 0; n < c->nin; n++)
            c->in[n][i] = i < specials
                              ? special(operand_type(c, n), n == 2 && n2 == 1 ? 7 : part[n])
                              : any_value(operand_type(c, n), i + n);
    }
}

/* Kernels ----------------------------------------------------------------------------------- */

/* out[i] = op(x0[i], ...) for i < count: grid of blocks, the lanes of a block vector or serial. */
static inline dc_kernel *nest_of(const oneop *c, bool vector, bool strict)
{
    dc_kernel *k = dc_kernel_new("k");
    dc_pred none = {0};
    dc_vx in[4];
    k->strict = strict;
    const uint32_t outer = dc_axis_new(k, "i.o", (c->count + LANES - 1) / LANES, false);
    const uint32_t inner = dc_axis_new(k, "i.i", LANES, false);
    k->axis.at[outer].kind = DC_AXIS_GRID;
    k->axis.at[inner].kind = vector ? DC_AXIS_VECTOR : DC_AXIS_SERIAL;
    const dc_ix i = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, outer), LANES), dc_ix_axis(k, inner));
    const uint32_t out = dc_buffer_new(k, "out0", c->to, c->count, DC_SCOPE_PARAM, DC_MODE_OUT);
    for (int n = 0; n < c->nin; n++) {
        const char name[3] = {'x', (char)('0' + n), '\0'};
        const dc_dtype t = operand_type(c, n);
        in[n] =
            dc_vx_load(k, dc_buffer_new(k, name, t, c->count, DC_SCOPE_PARAM, DC_MODE_IN), i, none);
    }
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] = (dc_put){out, i, dc_vx_op(k, c->op, c->to, in, c->nin)};
    set->pred = dc_pred_and(k, none, i, c->count);
    k->root = dc_stmt_loop(k, outer, dc_stmt_loop(k, inner, set));
    return k;
}

/* Checks ------------------------------------------------------------------------------------ */

static inline long double ulp_at(dc_dtype t, long double exact)
{
    const int digits = dc_dtype_fraction(t) + 1, least = t == DC_F64 ? -1074 : -149;
    int e;
    frexpl(exact, &e);
    return ldexpl(1, e - digits < least ? least : e - digits);
}

/* Error of a result of exp and its like in units of the last place of what is right. */
static inline double ulps(dc_op op, dc_dtype t, uint64_t x, long double exact, uint64_t got)
{
    const double y = dc_value_of(t, got), right = t == DC_F64 ? (double)exact : (float)exact;
    if (isnan(exact) || isinf(right) || isinf(y) || isnan(y))
        return (isnan(exact) && isnan(y)) || y == right ? 0 : INFINITY;
    if (y == 0 && exact == 0 && !signbit(y) != !signbit(exact))
        return INFINITY;
    const long double terms = near_terms(op, dc_value_of(t, x));
    return (double)(fabsl(y - exact) / ulp_at(t, fmaxl(fabsl(exact), terms)));
}

static inline bool equal(dc_dtype t, uint64_t a, uint64_t b)
{
    if (dc_dtype_is_float(t) && isnan(dc_value_of(t, a)) && isnan(dc_value_of(t, b)))
        return true;
    return a == b;
}

/* exact: of NEAR rows, the right values */
static inline void compare(const oneop *c, const long double *exact, const void *result,
                           const char *how, double *worst)
{
    int wrong = 0;
    for (int i = 0; i < c->count; i++) {
        uint64_t in[4] = {0};
        for (int n = 0; n < c->nin; n++)
            in[n] = c->in[n][i];
        const uint64_t got =
            dc_bits_load(c->to, (const char *)result + (size_t)i * dc_dtype_size(c->to));
        if (exact != NULL) {
            const double e = ulps(c->op, c->t, in[0], exact[i], got);
            *worst = e > *worst ? e : *worst;
            if (!(e <= near_limit(c->op, c->t == DC_F64)) && wrong++ < 3)
                printf("    %s(%.17g, %.17g) gives %.17g: %g ulp\n", dc_op_row_of(c->op)->name,
                       dc_value_of(c->t, in[0]), dc_value_of(c->t, in[1]), dc_value_of(c->to, got),
                       e);
            continue;
        }
        const uint64_t want = dc_op_eval(c->op, c->t, c->to, in);
        if ((c->op == DC_OP_BITCAST ? got != want : !equal(c->to, got, want)) && wrong++ < 3)
            printf("    %s(%" PRIx64 ", %" PRIx64 ", %" PRIx64 ") gives %" PRIx64 ", not %" PRIx64
                   "\n",
                   dc_op_row_of(c->op)->name, in[0], in[1], in[2], got, want);
    }
    if (!CHECK_EQ(wrong, 0))
        printf("    %s of %s to %s, %s\n", dc_op_row_of(c->op)->name, dc_dtype_name(c->t),
               dc_dtype_name(c->to), how);
}

static inline void run_case(runner *r, oneop *c, double *worst)
{
    static const char *const how[3] = {"vectors", "scalars", "strict"};
    void *mem[5];
    const size_t size = dc_dtype_size(c->to);
    mem[0] = calloc((size_t)c->count, size);
    for (int n = 0; n < c->nin; n++) {
        const dc_dtype t = operand_type(c, n);
        mem[n + 1] = calloc((size_t)c->count, dc_dtype_size(t));
        for (int i = 0; i < c->count; i++)
            dc_bits_store(t, (char *)mem[n + 1] + (size_t)i * dc_dtype_size(t), c->in[n][i]);
    }
    long double *exact = NULL;
    if (dc_op_row_of(c->op)->flags & DC_OPF_NEAR) {
        exact = malloc((size_t)c->count * sizeof *exact);
        for (int i = 0; i < c->count; i++)
            exact[i] = near_exact(c->op, dc_value_of(c->t, c->in[0][i]),
                                  c->nin > 1 ? dc_value_of(c->t, c->in[1][i]) : 0);
    }
    for (int v = 0; v < 3; v++) {
        if (c->kernel[v] < 0)
            continue;
        runner_run_range(r, c->kernel[v], grid_of(c->nest[v]), mem);
        compare(c, exact, mem[0], how[v], worst);
    }
    free(exact);
    for (int n = 0; n <= c->nin; n++)
        free(mem[n]);
}

static inline void add_case(runner *r, oneop *c, dc_op op, dc_dtype t, dc_dtype to)
{
    *c = (oneop){.op = op, .t = t, .to = to, .nin = dc_op_row_of(op)->n};
    fill(c);
    for (int v = 0; v < 3; v++) {
        c->kernel[v] = -1;
        if (v == 2 && !dc_dtype_is_float(t))
            continue;
        c->nest[v] = nest_of(c, v != 1, v == 2);
        c->kernel[v] = runner_add(r, c->nest[v], 0);
    }
}

static inline void test_rows(runner *r)
{
    static oneop cases[DC_OP__COUNT * DC_DTYPE__COUNT + DC_DTYPE__COUNT * DC_DTYPE__COUNT];
    int n = 0;
    double worst[DC_OP__COUNT] = {0};
    for (int op = 0; op < DC_OP__COUNT; op++)
        for (int t = 0; t < DC_DTYPE__COUNT && dc_op_is((dc_op)op, DC_CLASS_EW); t++) {
            if (!admits((dc_op)op, (dc_dtype)t))
                continue;
            const bool test = dc_op_row_of((dc_op)op)->flags & DC_OPF_CMP;
            const int result = test ? (int)DC_BOOL : op == DC_OP_HALF ? (int)DC_F32 : t;
            for (int to = 0; to < DC_DTYPE__COUNT; to++)
                if (op == DC_OP_CAST      ? to != t
                    : op == DC_OP_BITCAST ? to != t && dc_bits_width((dc_dtype)to) ==
                                                           dc_bits_width((dc_dtype)t)
                                          : to == result)
                    add_case(r, &cases[n++], (dc_op)op, (dc_dtype)t, (dc_dtype)to);
        }
    if (runner_build(r))
        for (int i = 0; i < n; i++)
            run_case(r, &cases[i], &worst[cases[i].op]);
    printf("    worst error in ulp:");
    for (int op = 0; op < DC_OP__COUNT; op++)
        if (dc_op_row_of((dc_op)op)->flags & DC_OPF_NEAR)
            printf(" %s %.4f", dc_op_row_of((dc_op)op)->name, worst[op]);
    printf("\n");
    for (int i = 0; i < n; i++) {
        for (int m = 0; m < cases[i].nin; m++)
            free(cases[i].in[m]);
        for (int v = 0; v < 3; v++)
            dc_kernel_free(cases[i].nest[v]);
    }
}

/* Where something happens: for exp between what underflows and what overflows, for erf where it is not 1 yet. */
static inline double range_of(dc_op op, dc_dtype t)
{
    const bool wide = t == DC_F64;
    switch ((int)op) {
    case DC_OP_EXP:
    case DC_OP_EXP2:
    case DC_OP_SINH:
    case DC_OP_COSH:
        return wide ? 1100 : 160;
    case DC_OP_ERF:
        return 8;
    case DC_OP_SIGMOID:
    case DC_OP_SILU:
        return wide ? 760 : 110;
    case DC_OP_GELU:
    case DC_OP_GELU_TANH:
        return wide ? 40 : 15;
    case DC_OP_ERFC:
        return wide ? 28 : 11;
    case DC_OP_ASIN:
    case DC_OP_ACOS:
    case DC_OP_ATANH:
    case DC_OP_ERF_INV:
        return 1;
    case DC_OP_ATAN:
    case DC_OP_ASINH:
    case DC_OP_ACOSH:
        return 4;
    case DC_OP_LGAMMA:
    case DC_OP_DIGAMMA:
        return 12;
    default:
        return 0;
    }
}

/*
 * Floats of all magnitudes, and every other one in that range; for sin, cos and tan next to a multiple of pi / 2, first the
 * double that comes closest to one.
 */
static inline uint64_t dense_value(const oneop *c, int i)
{
    const double range = range_of(c->op, c->t);
    const int unused = dc_dtype_bits(c->t) - 20; /* of 2^20 samples */
    if (range != 0 && i % 2)
        return dc_bits_of(c->t, ldexp((double)(int64_t)random_bits(), -63) * range);
    if ((c->op == DC_OP_SIN || c->op == DC_OP_COS || c->op == DC_OP_TAN) && i % 2) {
        const uint64_t turns = random_bits() >> (15 + random_word() % 49);
        const double closest = ldexp(6381956970095103, 797);
        return dc_bits_of(c->t, i == 1 ? closest : (double)(turns * (acosl(-1) / 2)));
    }
    return ((uint64_t)i * ((1u << 20) / (unsigned)c->count) << unused) +
           (random_bits() >> (64 - unused));
}

static inline void test_dense(runner *r)
{
    static const struct {
        dc_op op;
        int log2_count; /* of samples: some references are slow */
    } row[] = {{DC_OP_EXP, 20},    {DC_OP_LOG, 20},    {DC_OP_ERF, 20},  {DC_OP_SIN, 17},
               {DC_OP_COS, 17},    {DC_OP_TAN, 15},    {DC_OP_ASIN, 15}, {DC_OP_ACOS, 15},
               {DC_OP_ATAN, 15},   {DC_OP_SINH, 15},   {DC_OP_COSH, 15}, {DC_OP_ASINH, 15},
               {DC_OP_ACOSH, 15},  {DC_OP_ATANH, 15},  {DC_OP_EXP2, 15}, {DC_OP_LOG2, 15},
               {DC_OP_LOG10, 15},  {DC_OP_CBRT, 15},   {DC_OP_ERFC, 15}, {DC_OP_ERF_INV, 14},
               {DC_OP_LGAMMA, 15}, {DC_OP_DIGAMMA, 14},
               {DC_OP_SIGMOID, 15}, {DC_OP_SILU, 15}, {DC_OP_GELU, 15}, {DC_OP_GELU_TANH, 15}};
    enum { OPS = DC_COUNTOF(row) };
    oneop c[2 * OPS];
    double worst[2 * OPS] = {0};
    for (int n = 0; n < 2 * OPS; n++) {
        const dc_dtype t = n < OPS ? DC_F32 : DC_F64;
        c[n] = (oneop){.op = row[n % OPS].op, .t = t, .to = t, .nin = 1};
        c[n].count = 1 << row[n % OPS].log2_count;
        c[n].in[0] = malloc((size_t)c[n].count * sizeof(uint64_t));
        for (int i = 0; i < c[n].count; i++)
            c[n].in[0][i] = dense_value(&c[n], i);
        for (int v = 0; v < 3; v++) {
            c[n].nest[v] = nest_of(&c[n], v != 1, v == 2);
            c[n].kernel[v] = runner_add(r, c[n].nest[v], 0);
        }
    }
    if (runner_build(r))
        for (int n = 0; n < 2 * OPS; n++)
            run_case(r, &c[n], &worst[n]);
    printf("    worst error in ulp on dense samples:");
    for (int n = 0; n < 2 * OPS; n++)
        printf(" %s of %s %.4f", dc_op_row_of(c[n].op)->name, dc_dtype_name(c[n].t), worst[n]);
    printf("\n");
    for (int n = 0; n < 2 * OPS; n++) {
        free(c[n].in[0]);
        for (int v = 0; v < 3; v++)
            dc_kernel_free(c[n].nest[v]);
    }
}

/* maximum and minimum with a constant have a shorter expansion. */
static inline void test_extreme_const(runner *r)
{
    static const uint32_t constant[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000,
                                        0x7f800000, 0xff800000, 0x7fc00000};
    enum { COUNT = DC_COUNTOF(f32_special), CASES = 4 * DC_COUNTOF(constant) };
    _Static_assert(COUNT % LANES == 0, "whole vectors");
    dc_kernel *nest[CASES];
    int kernel[CASES];
    for (int n = 0; n < CASES; n++) { /* bit 0: which operation, bit 1: which side */
        dc_kernel *k = nest[n] = dc_kernel_new("k");
        const uint32_t o = dc_axis_new(k, "o", COUNT / LANES, false);
        const uint32_t v = dc_axis_new(k, "v", LANES, false);
        const dc_ix i = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, o), LANES), dc_ix_axis(k, v));
        const uint32_t out = dc_buffer_new(k, "out0", DC_F32, COUNT, DC_SCOPE_PARAM, DC_MODE_OUT);
        const uint32_t x = dc_buffer_new(k, "x0", DC_F32, COUNT, DC_SCOPE_PARAM, DC_MODE_IN);
        const dc_vx load = dc_vx_load(k, x, i, (dc_pred){0});
        const dc_vx c = dc_vx_const(k, DC_F32, constant[n / 4]);
        const dc_vx in[2] = {n & 2 ? c : load, n & 2 ? load : c};
        dc_stmt *set = dc_stmt_set(k, 1);
        set->put[0] = (dc_put){out, i, dc_vx_op(k, n & 1 ? DC_OP_MAX : DC_OP_MIN, DC_F32, in, 2)};
        k->axis.at[v].kind = DC_AXIS_VECTOR;
        k->root = dc_stmt_loop(k, o, dc_stmt_loop(k, v, set));
        kernel[n] = runner_add(r, k, 0);
    }
    const bool built = runner_build(r);
    for (int n = 0; n < CASES && built; n++) {
        uint32_t got[COUNT] = {0}, x[COUNT];
        memcpy(x, f32_special, sizeof x);
        runner_run_range(r, kernel[n], 1, (void *[]){got, x});
        for (int i = 0; i < COUNT; i++) {
            const uint64_t in[2] = {n & 2 ? constant[n / 4] : x[i], n & 2 ? x[i] : constant[n / 4]};
            const uint64_t want = dc_op_eval(n & 1 ? DC_OP_MAX : DC_OP_MIN, DC_F32, DC_F32, in);
            CHECK(equal(DC_F32, got[i], want));
        }
    }
    for (int n = 0; n < CASES; n++)
        dc_kernel_free(nest[n]);
}

/*
 * A power of which the base or the exponent is a number leaves out steps, and has the same bits. Of DC_OP_POWER the exponents
 * are, and some of those that are products are tried besides.
 */
static inline void power_const(runner *r, dc_op op, dc_dtype t)
{
    static const double constant[] = {
        0,    -0.0,   1,        -1,   2,        -2,        0.3,
        -0.3, 1.7,    -1.7,     1.25, -1.2,     10,        33,
        -33,  12.5,   1e-6,     1e-9, 0x1p-130, 0x1p-1070, 0x1.000002p0,
        1e5,  0x1p24, 16777217, 1e30, -1e30,    INFINITY,  -INFINITY,
        NAN,  4,      -4,       63,   -64,      2.75,      -0.25,
        101,  -127,   127,      -128};
    enum { COUNT = 2 * DC_COUNTOF(f32_special), ALL = DC_COUNTOF(constant), MOST = 2 * ALL };
    const int cases = op == DC_OP_POW ? 2 * (ALL - 10) : MOST, step = op == DC_OP_POW ? 1 : 2;
    dc_kernel *nest[MOST] = {NULL};
    int kernel[MOST];
    uint64_t other[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const double special = dc_value_of(DC_F32, f32_special[i / 2]);
        const double near = 1 + ldexp((double)random_word(), -36) * (i % 4 == 1 ? 1 : -1);
        other[i] = dc_bits_of(t, i % 2 == 0 ? special : i % 8 < 4 ? near : near * (i - 40));
    }
    for (int n = 0; n < cases; n += step) { /* bit 0: which operand */
        dc_kernel *k = nest[n] = dc_kernel_new("k");
        const uint32_t o = dc_axis_new(k, "o", COUNT / LANES, false);
        const uint32_t v = dc_axis_new(k, "v", LANES, false);
        const dc_ix i = dc_ix_add(k, dc_ix_mul(k, dc_ix_axis(k, o), LANES), dc_ix_axis(k, v));
        const uint32_t out = dc_buffer_new(k, "out0", t, COUNT, DC_SCOPE_PARAM, DC_MODE_OUT);
        const uint32_t x = dc_buffer_new(k, "x0", t, COUNT, DC_SCOPE_PARAM, DC_MODE_IN);
        const dc_vx load = dc_vx_load(k, x, i, (dc_pred){0});
        const dc_vx c = dc_vx_const(k, t, dc_bits_of(t, constant[n / 2]));
        const dc_vx in[2] = {n & 1 ? c : load, n & 1 ? load : c};
        dc_stmt *set = dc_stmt_set(k, 1);
        set->put[0] = (dc_put){out, i, dc_vx_op(k, op, t, in, 2)};
        k->axis.at[v].kind = DC_AXIS_VECTOR;
        k->root = dc_stmt_loop(k, o, dc_stmt_loop(k, v, set));
        kernel[n] = runner_add(r, k, 0);
    }
    const bool built = runner_build(r);
    for (int n = 0; n < cases && built; n += step) {
        union {
            uint32_t of_f32[COUNT];
            uint64_t of_f64[COUNT];
        } got, x;
        for (int i = 0; i < COUNT; i++)
            if (t == DC_F32)
                x.of_f32[i] = (uint32_t)other[i];
            else
                x.of_f64[i] = other[i];
        runner_run_range(r, kernel[n], 1, (void *[]){&got, &x});
        for (int i = 0; i < COUNT; i++) {
            const uint64_t c = dc_bits_of(t, constant[n / 2]);
            const uint64_t in[2] = {n & 1 ? c : other[i], n & 1 ? other[i] : c};
            const uint64_t y = t == DC_F32 ? got.of_f32[i] : got.of_f64[i];
            if (!CHECK(equal(t, y, dc_op_eval(op, t, t, in))))
                printf("    %g ^ %g\n", dc_value_of(t, in[0]), dc_value_of(t, in[1]));
        }
    }
    for (int n = 0; n < cases; n += step)
        dc_kernel_free(nest[n]);
}

/* Bases of all sizes, whose powers of an exponent are 0, no normal number, near 1, nearly infinite or so, and special ones. */
static inline double power_base(int i, int n)
{
    const double part = ldexp((double)random_word(), -32), sign = i & 1 ? -1 : 1;
    if (i % 8 == 7)
        return dc_value_of(DC_F32, f32_special[random_word() % DC_COUNTOF(f32_special)]);
    const double edge[] = {0, 128, -126, -149}, size = n == 0 ? 1 : n;
    return sign * exp2(i % 8 < 4 ? (edge[i / 8 % 4] + 4 * part - 2) / size : (400 * part - 200) / size);
}

/* An exponent that is an integer of 8 bits, but no constant, is one kernel; a power has the bits that it has of the constant. */
static inline void power_of_i8(runner *r, dc_dtype t)
{
    enum { EACH = 64, COUNT = 256 * EACH };
    static uint32_t got_f32[COUNT], x_f32[COUNT];
    static uint64_t got_f64[COUNT], x_f64[COUNT];
    static int8_t n[256];
    dc_kernel *k = dc_kernel_new("k");
    const uint32_t o = dc_axis_new(k, "o", 256, false), v = dc_axis_new(k, "v", EACH, false);
    const dc_ix row = dc_ix_axis(k, o);
    const dc_ix i = dc_ix_add(k, dc_ix_mul(k, row, EACH), dc_ix_axis(k, v));
    const uint32_t out = dc_buffer_new(k, "out0", t, COUNT, DC_SCOPE_PARAM, DC_MODE_OUT);
    const uint32_t x = dc_buffer_new(k, "x0", t, COUNT, DC_SCOPE_PARAM, DC_MODE_IN);
    const uint32_t y = dc_buffer_new(k, "y0", DC_I8, 256, DC_SCOPE_PARAM, DC_MODE_IN);
    const dc_vx whole = dc_vx_load(k, y, row, (dc_pred){0});
    const dc_vx in[2] = {dc_vx_load(k, x, i, (dc_pred){0}), dc_vx_op(k, DC_OP_CAST, t, &whole, 1)};
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] = (dc_put){out, i, dc_vx_op(k, DC_OP_POWER, t, in, 2)};
    k->axis.at[v].kind = DC_AXIS_VECTOR;
    k->root = dc_stmt_loop(k, o, dc_stmt_loop(k, v, set));
    const int kernel = runner_add(r, k, 0);
    for (int at = 0; at < COUNT; at++) {
        n[at / EACH] = (int8_t)(at / EACH - 128);
        const uint64_t bits = dc_bits_of(t, power_base(at, n[at / EACH]));
        x_f32[at] = (uint32_t)bits;
        x_f64[at] = bits;
    }
    void *buf[] = {t == DC_F32 ? (void *)got_f32 : got_f64, t == DC_F32 ? (void *)x_f32 : x_f64, n};
    if (runner_build(r)) {
        runner_run_range(r, kernel, 1, buf);
        for (int at = 0; at < COUNT; at++) {
            const uint64_t of[2] = {x_f64[at], dc_bits_of(t, n[at / EACH])};
            const uint64_t is = t == DC_F32 ? got_f32[at] : got_f64[at];
            if (!CHECK(equal(t, is, dc_op_eval(DC_OP_POWER, t, t, of))))
                printf("    %a ^ %d\n", dc_value_of(t, of[0]), n[at / EACH]);
        }
    }
    dc_kernel_free(k);
}

static inline void test_short_power_f32(runner *r)
{
    power_const(r, DC_OP_POWER, DC_F32);
}

static inline void test_short_power_f64(runner *r)
{
    power_const(r, DC_OP_POWER, DC_F64);
}

static inline void test_power_of_i8_f32(runner *r)
{
    power_of_i8(r, DC_F32);
}

static inline void test_power_of_i8_f64(runner *r)
{
    power_of_i8(r, DC_F64);
}

static inline void test_power_const_f32(runner *r)
{
    power_const(r, DC_OP_POW, DC_F32);
}

static inline void test_power_const_f64(runner *r)
{
    power_const(r, DC_OP_POW, DC_F64);
}

/* Each test with a runner, and so a program, of its own. */
static inline void with_runner(const char *device, void (*test)(runner *r))
{
    runner r;
    if (!runner_open_on(&r, device))
        return;
    test(&r);
    runner_close(&r);
}

static inline void ew_rows_all(const char *device)
{
    with_runner(device, test_rows);
    with_runner(device, test_dense);
    with_runner(device, test_extreme_const);
    with_runner(device, test_power_const_f32);
    with_runner(device, test_power_const_f64);
    with_runner(device, test_short_power_f32);
    with_runner(device, test_short_power_f64);
    with_runner(device, test_power_of_i8_f32);
    with_runner(device, test_power_of_i8_f64);
}

#endif
