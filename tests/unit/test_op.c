/* core/ir/op.c: rows, patterns and casts, integer and float corner cases, Threefry's known answers. */
#include "core/ir/op.h"

#include "tests/t.h"

static uint64_t bits(dc_dtype t, double v)
{
    return dc_bits_of(t, v);
}

/* A binary operation on values of one dtype, its result as a value. */
static double ew(dc_op op, dc_dtype t, double a, double b)
{
    const dc_dtype rt = dc_op_row_of(op)->flags & DC_OPF_CMP ? DC_BOOL : t;
    const uint64_t in[2] = {bits(t, a), bits(t, b)};
    return dc_value_of(rt, dc_op_eval(op, t, rt, in));
}

static double cast(dc_dtype from, dc_dtype to, double v)
{
    const uint64_t in = bits(from, v);
    return dc_value_of(to, dc_op_eval(DC_OP_CAST, from, to, &in));
}

static bool is_minus_zero(double v)
{
    return v == 0 && signbit(v);
}

static void test_rows(void)
{
    dc_op op;
    for (int i = 0; i < DC_OP__COUNT; i++) {
        const dc_op_row *row = dc_op_row_of((dc_op)i);
        CHECK(dc_op_find(row->name, strlen(row->name), &op) && (int)op == i);
        CHECK(row->n <= 4 && row->lo <= row->hi);
    }
    CHECK(!dc_op_find("ad", 2, &op) && !dc_op_find("addd", 4, &op));
    CHECK_EQ(dc_op_row_of(DC_OP_MAXR)->combine, DC_OP_MAX);
    CHECK(dc_op_is(DC_OP_DOT, DC_CLASS_CON) && dc_op_is(DC_OP_PAD, DC_CLASS_MOV));
    CHECK_EQ(dc_op_row_of(DC_OP_THREEFRY)->n, 4);
    CHECK_EQ(dc_op_row_of(DC_OP_CONST)->n, 0);
    CHECK(dc_op_row_of(DC_OP_ADD)->flags & DC_OPF_COMM);
}

static void test_patterns(void)
{
    unsigned char at[8];
    CHECK_EQ(bits(DC_I32, -1), -1);
    CHECK_EQ(bits(DC_U32, 4294967295.0), 4294967295u);
    CHECK_EQ(bits(DC_F32, -0.0), 0x80000000u);
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int v = -3; v <= 300; v++) {
            const uint64_t b = bits((dc_dtype)t, v);
            dc_bits_store((dc_dtype)t, at, b);
            CHECK(dc_bits_load((dc_dtype)t, at) == b);
        }
    at[0] = 7; /* any byte but 0 is true */
    CHECK_EQ(dc_bits_load(DC_BOOL, at), 1);
}

static void test_casts(void)
{
    CHECK_EQ(cast(DC_F32, DC_U8, 300), 255);
    CHECK_EQ(cast(DC_F32, DC_U8, -1), 0);
    CHECK_EQ(cast(DC_F32, DC_U8, 1.9), 1);
    CHECK_EQ(cast(DC_F32, DC_U8, NAN), 0);
    CHECK_EQ(cast(DC_F32, DC_I32, NAN), 0);
    CHECK_EQ(cast(DC_F32, DC_I32, -1.9), -1);
    CHECK_EQ(cast(DC_F32, DC_I32, 3e9), 2147483647);
    CHECK_EQ(cast(DC_F32, DC_I32, -INFINITY), -2147483648LL);
    CHECK_EQ(cast(DC_F32, DC_U32, 4294967296.0), 4294967295u);
    CHECK_EQ(cast(DC_F32, DC_BOOL, NAN), 1);
    CHECK_EQ(cast(DC_F32, DC_BOOL, -0.0), 0);
    CHECK_EQ(cast(DC_F32, DC_BOOL, 0.25), 1);
    CHECK_EQ(cast(DC_I32, DC_U8, 257), 1); /* between integers the bits are cut */
    CHECK_EQ(cast(DC_I32, DC_U32, -1), 4294967295u);
    CHECK_EQ(cast(DC_U32, DC_I32, 4294967295.0), -1);
    CHECK_EQ(cast(DC_I32, DC_BOOL, 256), 1);
    CHECK_EQ(cast(DC_I32, DC_F32, 16777217), 16777216); /* to even */
    CHECK_EQ(cast(DC_U32, DC_F32, 4294967295.0), 4294967296LL);
    CHECK_EQ(cast(DC_BOOL, DC_F32, 1), 1);
}

static void test_ints(void)
{
    const double low = -2147483648.0, high = 2147483647.0;
    CHECK_EQ(ew(DC_OP_ADD, DC_I32, high, 1), low);
    CHECK_EQ(ew(DC_OP_ADD, DC_U8, 255, 1), 0);
    CHECK_EQ(ew(DC_OP_SUB, DC_U32, 0, 1), 4294967295u);
    CHECK_EQ(ew(DC_OP_MUL, DC_I32, 65536, 65536), 0);
    CHECK_EQ(ew(DC_OP_DIV, DC_I32, 7, 0), -1);
    CHECK_EQ(ew(DC_OP_DIV, DC_U8, 7, 0), 255);
    CHECK_EQ(ew(DC_OP_DIV, DC_I32, low, -1), low);
    CHECK_EQ(ew(DC_OP_DIV, DC_I32, -7, 2), -3);
    CHECK_EQ(ew(DC_OP_DIV, DC_I32, 7, -2), -3);
    CHECK_EQ(ew(DC_OP_DIV, DC_U32, 4294967295.0, 2), 2147483647);
    CHECK_EQ(ew(DC_OP_REM, DC_I32, -7, 0), -7);
    CHECK_EQ(ew(DC_OP_REM, DC_I32, -7, 2), -1);
    CHECK_EQ(ew(DC_OP_REM, DC_I32, 7, -2), 1);
    CHECK_EQ(ew(DC_OP_REM, DC_I32, low, -1), 0);
    CHECK_EQ(ew(DC_OP_SHL, DC_I32, 1, 31), low);
    CHECK_EQ(ew(DC_OP_SHL, DC_I32, 1, 32), 0);
    CHECK_EQ(ew(DC_OP_SHL, DC_I32, 1, -1), 0); /* the amount is unsigned */
    CHECK_EQ(ew(DC_OP_SHR, DC_I32, -8, 1), -4);
    CHECK_EQ(ew(DC_OP_SHR, DC_I32, -8, 32), -1);
    CHECK_EQ(ew(DC_OP_SHR, DC_I32, 8, -1), 0);
    CHECK_EQ(ew(DC_OP_SHR, DC_U32, 4294967295.0, 31), 1);
    CHECK_EQ(ew(DC_OP_SHR, DC_U32, 4294967295.0, 32), 0);
    CHECK_EQ(ew(DC_OP_SHL, DC_U8, 255, 4), 240);
    CHECK_EQ(ew(DC_OP_MAX, DC_I32, -1, 1), 1);
    CHECK_EQ(ew(DC_OP_MAX, DC_U32, 4294967295.0, 1), 4294967295u);
    CHECK_EQ(ew(DC_OP_MIN, DC_I32, -1, 1), -1);
    CHECK_EQ(ew(DC_OP_LT, DC_I32, -1, 0), 1);
    CHECK_EQ(ew(DC_OP_LT, DC_U32, 4294967295.0, 0), 0);
    CHECK_EQ(ew(DC_OP_LE, DC_U8, 3, 3), 1);
    CHECK_EQ(ew(DC_OP_ABS, DC_I32, low, 0), low);
    CHECK_EQ(ew(DC_OP_NEG, DC_U8, 1, 0), 255);
    CHECK_EQ(ew(DC_OP_NOT, DC_U8, 1, 0), 254);
    CHECK_EQ(ew(DC_OP_NOT, DC_I32, 0, 0), -1);
    CHECK_EQ(ew(DC_OP_NOT, DC_BOOL, 1, 0), 0);
    CHECK_EQ(ew(DC_OP_NOT, DC_BOOL, 0, 0), 1);
    CHECK_EQ(ew(DC_OP_XOR, DC_BOOL, 1, 1), 0);
    CHECK_EQ(ew(DC_OP_MAX, DC_BOOL, 0, 1), 1);
}

static void test_floats(void)
{
    CHECK(isnan(ew(DC_OP_MAX, DC_F32, NAN, 1)) && isnan(ew(DC_OP_MAX, DC_F32, 1, NAN)));
    CHECK(isnan(ew(DC_OP_MIN, DC_F32, NAN, 1)) && isnan(ew(DC_OP_MIN, DC_F32, 1, NAN)));
    CHECK(!is_minus_zero(ew(DC_OP_MAX, DC_F32, -0.0, 0.0)));
    CHECK(!is_minus_zero(ew(DC_OP_MAX, DC_F32, 0.0, -0.0)));
    CHECK(is_minus_zero(ew(DC_OP_MIN, DC_F32, -0.0, 0.0)));
    CHECK(is_minus_zero(ew(DC_OP_MIN, DC_F32, 0.0, -0.0)));
    CHECK(is_minus_zero(ew(DC_OP_NEG, DC_F32, 0.0, 0)));
    CHECK_EQ(ew(DC_OP_LT, DC_F32, NAN, NAN), 0);
    CHECK_EQ(ew(DC_OP_NE, DC_F32, NAN, NAN), 1);
    CHECK_EQ(ew(DC_OP_EQ, DC_F32, 0.0, -0.0), 1);
    CHECK_EQ(ew(DC_OP_ADD, DC_F32, 16777216, 1), 16777216); /* rounded to f32 */
    CHECK(isinf(ew(DC_OP_MUL, DC_F32, 3e38, 10)));
    CHECK(ew(DC_OP_REM, DC_F32, -7, 2) == -1);
    CHECK(isinf(ew(DC_OP_DIV, DC_F32, 1, 0)));
    CHECK(ew(DC_OP_EXP, DC_F32, 1, 0) == (double)(float)exp(1));
    const uint64_t where[3] = {1, 0x7fa00001, 0}; /* a signalling NaN moves unchanged */
    CHECK_EQ(dc_op_eval(DC_OP_WHERE, DC_F32, DC_F32, where), 0x7fa00001);
    CHECK(dc_op_evalf(DC_OP_WHERE, 0, 1, 2) == 2);
    CHECK(dc_op_evalf(DC_OP_DIV, 1, 3, 0) == 1.0 / 3.0);
}

static void test_identities(void)
{
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int v = 0; v < 2; v++) {
            const dc_dtype d = (dc_dtype)t;
            const dc_op red[2] = {DC_OP_MAXR, DC_OP_MINR};
            for (int k = 0; k < 2; k++) {
                const uint64_t in[2] = {dc_op_identity(red[k], d), bits(d, v)};
                CHECK(dc_op_eval((dc_op)dc_op_row_of(red[k])->combine, d, d, in) == in[1]);
            }
        }
    CHECK_EQ(dc_op_identity(DC_OP_MAXR, DC_I32), INT32_MIN);
    CHECK_EQ(dc_op_identity(DC_OP_MINR, DC_I32), INT32_MAX);
    CHECK_EQ(dc_op_identity(DC_OP_MINR, DC_U8), 255);
    CHECK_EQ(dc_op_identity(DC_OP_MINR, DC_BOOL), 1);
    CHECK_EQ(dc_op_identity(DC_OP_MAXR, DC_F32), 0xff800000u);
    CHECK_EQ(dc_op_identity(DC_OP_SUM, DC_F32), 0);
}

/* The first words of the known answers of Random123. */
static void test_threefry(void)
{
    const uint64_t ones = 0xffffffffu;
    CHECK_EQ(dc_threefry(0, 0, 0, 0), 0x6b200159u);
    CHECK_EQ(dc_threefry(ones, ones, ones, ones), 0x1cb996fcu);
    CHECK_EQ(dc_threefry(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3), 0xc4923a9cu);
    const uint64_t in[4] = {0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3};
    CHECK_EQ(dc_op_eval(DC_OP_THREEFRY, DC_U32, DC_U32, in), 0xc4923a9cu);
}

int main(void)
{
    test_rows();
    test_patterns();
    test_casts();
    test_ints();
    test_floats();
    test_identities();
    test_threefry();
    return t_done();
}
