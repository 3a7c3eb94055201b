/*
 * The interpreter against values written by hand: the one place where every operation is named.
 * Special values follow the semantics of the op table: wrapping integers, division by zero, shifts
 * by the width, saturating casts, NaN, infinities, zeros of both signs, subnormals.
 */
#include "core/autodiff/custom.h"
#include "core/eval/eval.h"
#include "core/ir/conv.h"
#include "core/ir/dft.h"
#include "core/ir/running.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/hostgen.h"

static bool seen[DC_OP__COUNT];
static dc_job job;

/* ---- element-wise: a row per case ---- */

typedef struct ew_case {
    dc_op op;
    dc_dtype t, rt;
    double in[4], want; /* every value of every dtype is a double */
} ew_case;

#define INF    ((double)INFINITY)
#define I_MIN  (-2147483648.0)
#define I_MAX  2147483647.0
#define U_MAX  4294967295.0
#define E_     2.718281828459045
#define PI     3.14159265358979324
#define TINY   ((double)FLT_TRUE_MIN)
#define HUGE_F ((double)FLT_MAX)

/* clang-format off */
static const ew_case ew_cases[] = {
#define F(op, want, ...) {DC_OP_##op, DC_F32, DC_F32, {__VA_ARGS__}, want}
#define I(op, want, ...) {DC_OP_##op, DC_I32, DC_I32, {__VA_ARGS__}, want}
#define U(op, want, ...) {DC_OP_##op, DC_U32, DC_U32, {__VA_ARGS__}, want}
#define B(op, want, ...) {DC_OP_##op, DC_U8, DC_U8, {__VA_ARGS__}, want}
#define L(op, want, ...) {DC_OP_##op, DC_BOOL, DC_BOOL, {__VA_ARGS__}, want}
#define P(op, t, want, ...) {DC_OP_##op, DC_##t, DC_BOOL, {__VA_ARGS__}, want}
#define C(from, to, want, a) {DC_OP_CAST, DC_##from, DC_##to, {a}, want}
#define W(from, to, want, a) {DC_OP_BITCAST, DC_##from, DC_##to, {a}, want}
#define H(want, a) {DC_OP_HALF, DC_U16, DC_F32, {a}, want}
    F(NEG, -2.5, 2.5), F(NEG, -0.0, 0.0), F(NEG, 0.0, -0.0), F(NEG, -INF, INF), F(NEG, NAN, NAN),
    F(NEG, -HUGE_F, HUGE_F),
    I(NEG, -7, 7), I(NEG, I_MIN, I_MIN), U(NEG, U_MAX, 1), U(NEG, 0, 0), B(NEG, 255, 1),
    F(ABS, 2.5, -2.5), F(ABS, 0.0, -0.0), F(ABS, INF, -INF), F(ABS, NAN, NAN), F(ABS, TINY, -TINY),
    I(ABS, 7, -7), I(ABS, I_MIN, I_MIN), U(ABS, U_MAX, U_MAX), B(ABS, 200, 200),
    F(ROUND, 2, 1.5), F(ROUND, 2, 2.5), F(ROUND, -0.0, -0.5), F(ROUND, INF, INF), F(ROUND, NAN, NAN),
    F(EXPM1, 0, 0), F(EXPM1, -0.0, -0.0), F(EXPM1, -1, -INF), F(EXPM1, INF, 89), F(EXPM1, NAN, NAN),
    F(LOG1P, 0, 0), F(LOG1P, -0.0, -0.0), F(LOG1P, -INF, -1), F(LOG1P, NAN, -2), F(LOG1P, INF, INF),
    F(ERF, 0, 0), F(ERF, 1, INF), F(ERF, -1, -7), F(ERF, NAN, NAN), F(SIN, 0, 0), F(SIN, -0.0, -0.0),
    F(SIN, NAN, INF), F(COS, 1, 0), F(COS, NAN, -INF),
    F(TAN, -0.0, -0.0), F(TAN, NAN, INF), F(TAN, 1.5574077246549023, 1),
    F(ASIN, -0.0, -0.0), F(ASIN, PI / 2, 1), F(ASIN, -PI / 2, -1), F(ASIN, NAN, 1.5), F(ASIN, NAN, -INF),
    F(ACOS, 0.0, 1), F(ACOS, PI, -1), F(ACOS, PI / 2, 0), F(ACOS, NAN, -1.5), F(ACOS, NAN, NAN),
    F(ATAN, -0.0, -0.0), F(ATAN, PI / 4, 1), F(ATAN, PI / 2, INF), F(ATAN, -PI / 2, -INF), F(ATAN, NAN, NAN),
    F(ATAN2, 0.0, 0.0, 0.0), F(ATAN2, -0.0, -0.0, 1), F(ATAN2, PI, 0.0, -0.0), F(ATAN2, -PI, -0.0, -1),
    F(ATAN2, PI / 2, 1, 0), F(ATAN2, -PI / 2, -INF, 3), F(ATAN2, PI / 4, INF, INF), F(ATAN2, 3 * PI / 4, INF, -INF),
    F(ATAN2, 0.0, 1, INF), F(ATAN2, -PI, -1, -INF), F(ATAN2, NAN, NAN, 1), F(ATAN2, NAN, 1, NAN),
    F(ATAN2, PI / 4, HUGE_F, HUGE_F), F(ATAN2, PI / 4, TINY, TINY),
    F(SINH, -0.0, -0.0), F(SINH, -INF, -INF), F(SINH, INF, 90), F(SINH, 1.1752011936438014, 1), F(SINH, NAN, NAN),
    F(COSH, 1, -0.0), F(COSH, INF, -INF), F(COSH, INF, -90), F(COSH, 1.5430806348152437, -1), F(COSH, NAN, NAN),
    F(ASINH, -0.0, -0.0), F(ASINH, -INF, -INF), F(ASINH, 0.881373587019543, 1), F(ASINH, 89.41598629223294, HUGE_F),
    F(ACOSH, 0.0, 1), F(ACOSH, INF, INF), F(ACOSH, NAN, 0.5), F(ACOSH, NAN, -INF), F(ACOSH, 1.3169578969248168, 2),
    F(ATANH, -0.0, -0.0), F(ATANH, INF, 1), F(ATANH, -INF, -1), F(ATANH, NAN, 1.5), F(ATANH, 0.5493061443340548, 0.5),
    F(EXP2, 8, 3), F(EXP2, TINY, -149), F(EXP2, 0, -151), F(EXP2, INF, 128), F(EXP2, 0, -INF), F(EXP2, NAN, NAN),
    F(LOG2, 3, 8), F(LOG2, -149, TINY), F(LOG2, -INF, -0.0), F(LOG2, NAN, -1), F(LOG2, INF, INF),
    F(LOG10, 3, 1000), F(LOG10, -INF, 0), F(LOG10, NAN, -1), F(LOG10, INF, INF), F(LOG10, NAN, NAN),
    F(CBRT, -2, -8), F(CBRT, -0.0, -0.0), F(CBRT, -INF, -INF), F(CBRT, NAN, NAN), F(CBRT, 0x1p-49, 0x1p-147),
    F(ERFC, 1, -0.0), F(ERFC, 0, INF), F(ERFC, 2, -INF), F(ERFC, 0.15729920705028513, 1), F(ERFC, NAN, NAN),
    F(ERF_INV, -0.0, -0.0), F(ERF_INV, INF, 1), F(ERF_INV, -INF, -1), F(ERF_INV, NAN, 1.5),
    F(ERF_INV, 0.4769362762044699, 0.5), F(ERF_INV, NAN, NAN),
    F(LGAMMA, 0, 1), F(LGAMMA, 0, 2), F(LGAMMA, INF, 0), F(LGAMMA, INF, -3), F(LGAMMA, INF, -INF), F(LGAMMA, INF, INF),
    F(LGAMMA, 0.5723649429247001, 0.5), F(LGAMMA, 12.801827480081469, 10), F(LGAMMA, NAN, NAN),
    F(DIGAMMA, -0.5772156649015329, 1), F(DIGAMMA, -INF, 0), F(DIGAMMA, INF, -0.0), F(DIGAMMA, NAN, -3),
    F(DIGAMMA, INF, INF), F(DIGAMMA, 0.03648997397857652, -0.5), F(DIGAMMA, NAN, NAN),
    F(SIGMOID, 0.5, 0), F(SIGMOID, 0, -INF), F(SIGMOID, 1, INF), F(SIGMOID, 0.7310585786300049, 1), F(SIGMOID, NAN, NAN),
    F(SILU, -0.0, -0.0), F(SILU, -0.0, -INF), F(SILU, INF, INF), F(SILU, 1.7615941559557649, 2), F(SILU, NAN, NAN),
    F(GELU, -0.0, -0.0), F(GELU, -0.0, -INF), F(GELU, INF, INF), F(GELU, 0.8413447460685429, 1), F(GELU, NAN, NAN),
    F(GELU_TANH, -0.0, -0.0), F(GELU_TANH, -0.0, -INF), F(GELU_TANH, INF, INF),
    F(GELU_TANH, 0.8411919906082768, 1), F(GELU_TANH, NAN, NAN),
    F(POW, 1, NAN, 0), F(POW, 1, 1, NAN), F(POW, NAN, 0, NAN), F(POW, NAN, NAN, 1), F(POW, 1, 1, INF), F(POW, 1, -1, -INF),
    F(POW, INF, 0, -INF), F(POW, 0, -0.5, INF), F(POW, INF, -2, INF), F(POW, 1, INF, 0), F(POW, INF, -INF, 0.5),
    F(POW, -INF, -INF, 3), F(POW, -0.0, -INF, -3), F(POW, -INF, -0.0, -1), F(POW, INF, -0.0, -2), F(POW, -0.0, -0.0, 3),
    F(POW, 0, -0.0, 0.5), F(POW, NAN, -8, 0.5), F(POW, -8, -2, 3), F(POW, 19683, 3, 9), F(POW, 1e7, 10, 7),
    F(POW, TINY, 2, -149), F(POW, TINY, TINY, 1), F(POW, HUGE_F, HUGE_F, 1), F(POW, INF, 2, 128), F(POW, 0, 2, -151),
    F(POW, -HUGE_F, -HUGE_F, 1), F(POW, NAN, -1, TINY), F(POW, -1, -1, 16777215), F(POW, 1, -1, 16777216),
    F(POWER, 81, 3, 4), F(POWER, -INF, -0.0, -3), F(POWER, INF, -0.0, -2), F(POWER, 8, 4, 1.5), F(POWER, 0, -0.0, 2.5),
    F(POWER, INF, -INF, 0.75), F(POWER, NAN, -8, 0.25), F(POWER, 19683, 3, 9), F(POWER, 1, NAN, 0), F(POWER, 0.5, 4, -0.5),
    I(POW, 1, 0, 0), I(POW, -27, -3, 3), I(POW, 10000000, 10, 7), I(POW, -808182895.0, 3, 20), I(POW, I_MIN, -2, 31),
    I(POW, 0, 2, 32), I(POW, 0, 2, -1), I(POW, 1, 1, -7), I(POW, -1, -1, -7), I(POW, 1, -1, -8), I(POW, -1, 0, -1),
    I(POW, 0, 0, 5), I(POW, 1, I_MIN, 0), U(POW, 3486784401.0, 3, 20), U(POW, U_MAX, U_MAX, U_MAX), B(POW, 217, 3, 6),
    F(COPYSIGN, -2, 2, -0.0), F(COPYSIGN, 0.0, -0.0, 1), F(COPYSIGN, -INF, INF, -1), F(COPYSIGN, NAN, NAN, 1),
    F(EXP, 1, 0), F(EXP, E_, 1), F(EXP, 0, -INF), F(EXP, INF, INF), F(EXP, INF, 89), F(EXP, 0, -200),
    F(EXP, NAN, NAN), F(EXP, 1, -0.0),
    F(LOG, 0, 1), F(LOG, 0.6931471805599453, 2), F(LOG, -INF, 0), F(LOG, -INF, -0.0), F(LOG, NAN, -1),
    F(LOG, INF, INF), F(LOG, NAN, NAN), F(LOG, -103.27892990343184, TINY),
    F(SQRT, 3, 9), F(SQRT, 1.4142135623730951, 2), F(SQRT, 0.0, 0.0), F(SQRT, -0.0, -0.0),
    F(SQRT, NAN, -1), F(SQRT, INF, INF), F(SQRT, NAN, NAN),
    F(FLOOR, 2, 2.75), F(FLOOR, -3, -2.25), F(FLOOR, -0.0, -0.0), F(FLOOR, -1, -TINY),
    F(FLOOR, INF, INF), F(FLOOR, NAN, NAN), F(FLOOR, -HUGE_F, -HUGE_F),
    L(NOT, 1, 0), L(NOT, 0, 1), I(NOT, -1, 0), I(NOT, I_MAX, I_MIN), U(NOT, U_MAX, 0), B(NOT, 254, 1),
    F(STOP, -1.5, -1.5), F(STOP, -0.0, -0.0), F(STOP, NAN, NAN), I(STOP, I_MIN, I_MIN), L(STOP, 1, 1),

    C(F32, F32, -0.0, -0.0), C(F32, F32, NAN, NAN),
    C(F32, I32, 2, 2.99), C(F32, I32, -2, -2.99), C(F32, I32, 0, NAN), C(F32, I32, I_MAX, INF),
    C(F32, I32, I_MIN, -INF), C(F32, I32, I_MAX, 2147483648.0), C(F32, I32, I_MIN, -2147483648.0),
    C(F32, I32, 2147483520.0, 2147483520.0), C(F32, I32, I_MIN, -1e30),
    C(F32, U32, 0, -1), C(F32, U32, 0, -0.99), C(F32, U32, U_MAX, 4294967296.0), C(F32, U32, 0, NAN),
    C(F32, U32, 4294967040.0, 4294967040.0), C(F32, U32, U_MAX, INF),
    C(F32, U8, 255, 255.99), C(F32, U8, 255, 256), C(F32, U8, 0, -5), C(F32, U8, 0, NAN),
    C(F32, U8, 255, INF),
    C(F32, BOOL, 1, 0.25), C(F32, BOOL, 0, -0.0), C(F32, BOOL, 1, NAN), C(F32, BOOL, 1, TINY),
    C(I32, F32, 16777216, 16777217), C(I32, F32, 16777220, 16777219), C(I32, F32, -2147483648.0, I_MIN),
    C(I32, F32, 2147483648.0, I_MAX), C(U32, F32, 4294967296.0, U_MAX), C(U8, F32, 255, 255),
    C(BOOL, F32, 1, 1), C(BOOL, I32, 1, 1), C(BOOL, U8, 0, 0),
    C(I32, U8, 255, -1), C(I32, U8, 0, 256), C(I32, U32, U_MAX, -1), C(U32, I32, -1, U_MAX),
    C(U32, I32, I_MIN, 2147483648.0), C(U8, I32, 255, 255), C(I32, BOOL, 1, 256), C(I32, BOOL, 0, 0),
    C(U8, U32, 200, 200),

    F(ADD, 3.75, 1.5, 2.25), F(ADD, 16777216, 16777216, 1), F(ADD, 0.0, -0.0, 0.0), F(ADD, 0.0, 1, -1),
    F(ADD, -0.0, -0.0, -0.0), F(ADD, NAN, INF, -INF), F(ADD, INF, HUGE_F, HUGE_F), F(ADD, NAN, 1, NAN),
    F(ADD, 2 * TINY, TINY, TINY),
    I(ADD, I_MIN, I_MAX, 1), I(ADD, -1, I_MAX, I_MIN), U(ADD, 0, U_MAX, 1), B(ADD, 44, 200, 100),
    F(SUB, -0.75, 1.5, 2.25), F(SUB, 0.0, 1, 1), F(SUB, -0.0, -0.0, 0.0), F(SUB, NAN, INF, INF),
    I(SUB, I_MAX, I_MIN, 1), U(SUB, U_MAX, 0, 1), B(SUB, 255, 0, 1),
    F(MUL, 3.375, 1.5, 2.25), F(MUL, -0.0, 0.0, -3), F(MUL, NAN, 0.0, INF), F(MUL, INF, HUGE_F, 2),
    F(MUL, 0, TINY, 0.5), F(MUL, TINY, TINY, 0.75), F(MUL, -INF, INF, -1),
    I(MUL, 0, 65536, 65536), I(MUL, I_MIN, I_MIN, -1), I(MUL, -6, 2, -3), U(MUL, 1, U_MAX, U_MAX),
    B(MUL, 144, 20, 20),
    F(DIV, 0.75, 1.5, 2), F(DIV, INF, 1, 0.0), F(DIV, -INF, 1, -0.0), F(DIV, NAN, 0.0, 0.0),
    F(DIV, 0.0, 1, INF), F(DIV, NAN, INF, INF), F(DIV, (double)(1.0f / 3.0f), 1, 3),
    I(DIV, -2, -7, 3), I(DIV, -2, 7, -3), I(DIV, -1, 5, 0), I(DIV, I_MIN, I_MIN, -1), I(DIV, -1, 0, 0),
    U(DIV, U_MAX, 5, 0), U(DIV, 1, U_MAX, 2147483648.0), B(DIV, 255, 9, 0), B(DIV, 28, 200, 7),
    F(REM, 1.5, 5.5, 2), F(REM, -1.5, -5.5, 2), F(REM, 1.5, 5.5, -2), F(REM, NAN, 1, 0.0),
    F(REM, 3, 3, INF), F(REM, NAN, INF, 3), F(REM, -0.0, -4, 2),
    I(REM, -1, -7, 3), I(REM, 1, 7, -3), I(REM, 5, 5, 0), I(REM, 0, I_MIN, -1), I(REM, I_MIN, I_MIN, 0),
    U(REM, 3, U_MAX, 4), U(REM, 7, 7, 0), B(REM, 4, 200, 7),
    F(MAX, 2, -3, 2), F(MAX, NAN, NAN, 1), F(MAX, NAN, 1, NAN), F(MAX, 0.0, -0.0, 0.0),
    F(MAX, 0.0, 0.0, -0.0), F(MAX, INF, INF, 1), F(MAX, 1, -INF, 1), F(MAX, NAN, INF, NAN),
    I(MAX, 1, I_MIN, 1), U(MAX, U_MAX, 1, U_MAX), B(MAX, 255, 255, 1), L(MAX, 1, 0, 1),
    F(MIN, -3, -3, 2), F(MIN, NAN, NAN, 1), F(MIN, NAN, 1, NAN), F(MIN, -0.0, -0.0, 0.0),
    F(MIN, -0.0, 0.0, -0.0), F(MIN, -INF, -INF, 1), F(MIN, 1, INF, 1),
    I(MIN, I_MIN, I_MIN, 1), U(MIN, 1, 1, U_MAX), B(MIN, 1, 255, 1), L(MIN, 0, 0, 1),

    I(AND, 8, 12, 10), I(AND, I_MIN, -1, I_MIN), U(AND, 8, 12, 10), B(AND, 16, 240, 31), L(AND, 0, 1, 0),
    L(AND, 1, 1, 1), I(OR, 14, 12, 10), I(OR, -1, I_MIN, I_MAX), B(OR, 255, 240, 31), L(OR, 1, 1, 0),
    U(OR, U_MAX, U_MAX, 1), I(XOR, 6, 12, 10), I(XOR, -1, I_MIN, I_MAX), U(XOR, 0, U_MAX, U_MAX),
    B(XOR, 239, 240, 31), L(XOR, 0, 1, 1), L(XOR, 1, 0, 1),
    I(SHL, 12, 3, 2), I(SHL, I_MIN, 1, 31), I(SHL, 0, 1, 32), I(SHL, 0, 1, -1), I(SHL, -8, -1, 3),
    U(SHL, 2147483648.0, 1, 31), U(SHL, 0, 1, 32), U(SHL, 0, 1, U_MAX), B(SHL, 128, 1, 7),
    B(SHL, 0, 1, 8), B(SHL, 254, 255, 1),
    I(SHR, 3, 12, 2), I(SHR, -1, -1, 31), I(SHR, -1, -5, 32), I(SHR, 0, 5, 32), I(SHR, -1, -5, -1),
    I(SHR, -2, -8, 2), U(SHR, 1, U_MAX, 31), U(SHR, 0, U_MAX, 32), U(SHR, 0, 7, U_MAX),
    B(SHR, 1, 255, 7), B(SHR, 0, 255, 8),

    P(LT, F32, 1, 1, 2), P(LT, F32, 0, 2, 2), P(LT, F32, 0, NAN, 1), P(LT, F32, 0, 1, NAN),
    P(LT, F32, 0, -0.0, 0.0), P(LT, F32, 1, -INF, -HUGE_F), P(LT, I32, 1, -1, 1), P(LT, U32, 0, U_MAX, 1),
    P(LT, U8, 0, 255, 1), P(LT, BOOL, 1, 0, 1), P(LT, I32, 1, I_MIN, I_MAX),
    P(LE, F32, 1, 2, 2), P(LE, F32, 0, NAN, NAN), P(LE, F32, 1, 0.0, -0.0), P(LE, I32, 0, 1, -1),
    P(LE, U32, 1, 1, U_MAX), P(LE, BOOL, 0, 1, 0),
    P(EQ, F32, 1, 0.0, -0.0), P(EQ, F32, 0, NAN, NAN), P(EQ, F32, 1, INF, INF), P(EQ, I32, 1, -1, -1),
    P(EQ, U8, 0, 255, 254), P(EQ, BOOL, 1, 0, 0),
    P(NE, F32, 0, 0.0, -0.0), P(NE, F32, 1, NAN, NAN), P(NE, I32, 1, -1, 1), P(NE, U32, 0, U_MAX, U_MAX),
    P(NE, BOOL, 1, 0, 1),
    F(WHERE, 1.5, 1, 1.5, 2.5), F(WHERE, 2.5, 0, 1.5, 2.5), F(WHERE, -0.0, 1, -0.0, NAN),
    F(WHERE, NAN, 0, 1, NAN), I(WHERE, I_MIN, 1, I_MIN, 3), U(WHERE, U_MAX, 0, 3, U_MAX),
    L(WHERE, 1, 0, 0, 1), B(WHERE, 7, 1, 7, 8),
    /* the first words of the known answers of Random123 for Threefry-2x32, 20 rounds */
    U(THREEFRY, 0x6b200159, 0, 0, 0, 0),
    U(THREEFRY, 0x1cb996fc, U_MAX, U_MAX, U_MAX, U_MAX),
    U(THREEFRY, 0xc4923a9c, 0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3),
    U(DP4A, 0, 0, U_MAX, 0), U(DP4A, 0xfffffc04, U_MAX, U_MAX, 0), U(DP4A, 70, 0x04030201, 0x08070605, 0),
    U(DP4A, 0xfffe0200 + 7, U_MAX, 0x80808080, 7), U(DP4A, 0x1fa03, U_MAX, 0x7f7f7f7f, U_MAX),
    U(DP4A, 0xff80, 0xff, 0xffffff80, 0x17f00),
    W(F32, U32, 0x3f800000, 1), W(F32, I32, I_MIN, -0.0), W(F32, U32, 0x7f800000, INF), W(F32, I32, -0x800000, -INF),
    W(U32, F32, 1.5, 0x3fc00000), W(I32, F32, -0.0, I_MIN), W(U32, F32, TINY, 1), W(I32, F32, NAN, 0x7f800001),
    W(I32, U32, U_MAX, -1), W(U32, I32, -1, U_MAX), W(U8, I8, -1, 255), W(I8, U8, 128, -128),
    H(0, 0), H(-0.0, 0x8000), H(1, 0x3c00), H(-2, 0xc000), H(65504, 0x7bff), H(0x1p-24, 1), H(0x3ffp-24, 0x3ff),
    H(0x1p-14, 0x400), H(INF, 0x7c00), H(-INF, 0xfc00), H(NAN, 0x7e00),
#undef F
#undef I
#undef U
#undef B
#undef L
#undef P
#undef C
#undef W
#undef H
};
/* clang-format on */

static uint64_t bits_of(dc_dtype t, double v)
{
    return dc_dtype_is_float(t) ? dc_f32_bits((float)v) : dc_bits_of(t, v);
}

static bool same_bits(dc_dtype t, uint64_t a, uint64_t b)
{
    if (dc_dtype_is_float(t) && isnan(dc_value_of(t, a)))
        return isnan(dc_value_of(t, b));
    return a == b;
}

static dc_dtype operand_dtype(const ew_case *c, int i)
{
    return c->op == DC_OP_WHERE && i == 0 ? DC_BOOL : c->t;
}

static void check_ew(const ew_case *c)
{
    const int n = dc_op_row_of(c->op)->n, count = 3;
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "case");
    uint64_t in[4] = {0}, got[2];
    char mem[4][32], out[32];
    const void *params[4];
    void *results[1] = {out};
    dc_ref refs[4], r;
    for (int i = 0; i < n; i++) {
        const dc_dtype t = operand_dtype(c, i);
        const dc_type type = dc_type_make(t, 1, (const int64_t[]){count});
        in[i] = bits_of(t, c->in[i]);
        for (int k = 0; k < count; k++)
            dc_bits_store(t, mem[i] + (size_t)k * dc_dtype_size(t), in[i]);
        params[i] = mem[i];
        refs[i] = dc_graph_param(f, &type, "x");
    }
    const dc_type want = dc_type_make(c->rt, 1, (const int64_t[]){count});
    r = dc_graph_make(f, c->op, refs, n, NULL, 0,
                      c->op == DC_OP_CAST || c->op == DC_OP_BITCAST ? &want : NULL);
    DC_PUSH(f->result, r);
    CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, params, results), DC_OK);
    got[0] = dc_bits_load(c->rt, out + 2 * dc_dtype_size(c->rt));
    got[1] = dc_op_eval(c->op, c->t, c->rt, in);
    for (int i = 0; i < 2; i++)
        if (!CHECK(same_bits(c->rt, bits_of(c->rt, c->want), got[i])))
            printf("    %s %s(%.9g, %.9g, %.9g) is %.9g, not %.9g\n", dc_dtype_name(c->t),
                   dc_op_row_of(c->op)->name, c->in[0], c->in[1], c->in[2],
                   dc_value_of(c->rt, got[i]), c->want);
    seen[c->op] = true;
    dc_module_free(m);
}

/* ---- whole functions ---- */

static dc_module *module;
static dc_func *fn;

static void begin(void)
{
    module = dc_module_new();
    fn = dc_func_new(module, "test");
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static dc_ref param(dc_dtype t, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(t, rank, dim);
    return dc_graph_param(fn, &type, "x");
}

/* Evaluates the one result and compares with `want`: exact, or any NaN for NaN. */
static void end(dc_eval_mode mode, dc_ref r, const void *const *params, int64_t n,
                const double *want)
{
    const dc_node *node = dc_node_at(fn, r);
    const dc_dtype t = (dc_dtype)node->dtype;
    double *out = calloc((size_t)n + 1, sizeof *out);
    CHECK_EQ(dc_node_count(node), n);
    seen[node->op] = true;
    DC_PUSH(fn->result, r);
    CHECK_EQ(dc_eval(&job, fn, mode, params, (void *const[]){out}), DC_OK);
    for (int64_t i = 0; i < n; i++) {
        const void *at = (const char *)out + (size_t)i * dc_dtype_size(t);
        const double got = mode == DC_EVAL_WIDE && dc_dtype_is_float(t)
                               ? out[i]
                               : dc_value_of(t, dc_bits_load(t, at));
        if (!CHECK(isnan(want[i]) ? isnan(got)
                                  : got == want[i] && !signbit(got) == !signbit(want[i])))
            printf("    %s: element %d is %.17g, not %.17g\n", dc_op_row_of((dc_op)node->op)->name,
                   (int)i, got, want[i]);
    }
    free(out);
    dc_module_free(module);
}

#define WANT(mode, r, params, ...)                                                          \
    end(mode, r, params, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), \
        (const double[]){__VA_ARGS__})
#define IN(...) ((const void *const[]){__VA_ARGS__})

static const float six[6] = {1, 2, 3, 4, 5, 6};

static void sources(void)
{
    const dc_type t23 = dc_type_make(DC_F32, 2, DIMS(2, 3)), i3 = dc_type_make(DC_I32, 1, DIMS(3));
    begin();
    WANT(DC_EVAL_ROUND, dc_graph_const(fn, &t23, 0.1), IN(NULL), 0.1f, 0.1f, 0.1f, 0.1f, 0.1f,
         0.1f);
    begin();
    WANT(DC_EVAL_ROUND, dc_graph_const(fn, &i3, -7), IN(NULL), -7, -7, -7);
    begin();
    WANT(DC_EVAL_WIDE, dc_graph_const(fn, &t23, 0.5), IN(NULL), 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
    begin();
    WANT(DC_EVAL_ROUND, param(DC_F32, 2, DIMS(2, 3)), IN(six), 1, 2, 3, 4, 5, 6);
    begin();
    dc_ref r = dc_graph_make(fn, DC_OP_IOTA, NULL, 0, DIMS(0), 1, &t23);
    WANT(DC_EVAL_ROUND, r, IN(NULL), 0, 0, 0, 1, 1, 1);
    begin();
    r = dc_graph_make(fn, DC_OP_IOTA, NULL, 0, DIMS(1), 1, &t23);
    WANT(DC_EVAL_WIDE, r, IN(NULL), 0, 1, 2, 0, 1, 2);
    begin();
    r = dc_graph_make(fn, DC_OP_IOTA, NULL, 0, DIMS(0), 1, &i3);
    WANT(DC_EVAL_ROUND, r, IN(NULL), 0, 1, 2);
}

static void movement(void)
{
    static const uint8_t bytes[6] = {1, 2, 3, 4, 5, 255};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_reshape(fn, x, 3, DIMS(3, 1, 2)), IN(six), 1, 2, 3, 4, 5, 6);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_permute(fn, x, DIMS(1, 0)), IN(six), 1, 4, 2, 5, 3, 6);
    begin();
    x = param(DC_F32, 3, DIMS(1, 2, 3)); /* result axis i is operand axis perm[i]: [3, 1, 2] */
    WANT(DC_EVAL_ROUND, dc_graph_permute(fn, x, DIMS(2, 0, 1)), IN(six), 1, 4, 2, 5, 3, 6);
    begin();
    x = param(DC_U8, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_permute(fn, x, DIMS(1, 0)), IN(bytes), 1, 4, 2, 5, 3, 255);
    begin();
    x = param(DC_F32, 3, DIMS(2, 1, 3));
    WANT(DC_EVAL_ROUND, dc_graph_expand(fn, x, DIMS(2, 2, 3)), IN(six), 1, 2, 3, 1, 2, 3, 4, 5, 6,
         4, 5, 6);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_slice(fn, x, DIMS(1, 0), DIMS(1, 2), DIMS(1, 2)), IN(six), 4, 6);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    dc_ref r = dc_graph_pad(fn, x, DIMS(1, 0), DIMS(1, 2), DIMS(3, 6), dc_f32_bits(9));
    WANT(DC_EVAL_ROUND, r, IN(six), 9, 9, 9, 9, 9, 9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_flip(fn, x, 2), IN(six), 3, 2, 1, 6, 5, 4);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_flip(fn, x, 3), IN(six), 6, 5, 4, 3, 2, 1);
}

static void movement_wide(void)
{
    static const double wide[3] = {0.1, 0.2, 1e-50};
    begin();
    dc_ref x = param(DC_F32, 1, DIMS(3));
    WANT(DC_EVAL_WIDE, dc_graph_flip(fn, x, 1), IN(wide), 1e-50, 0.2, 0.1);
    begin();
    x = param(DC_F32, 1, DIMS(3));
    WANT(DC_EVAL_WIDE, dc_graph_pad(fn, x, DIMS(1), DIMS(1), DIMS(5), dc_f32_bits(-1)), IN(wide),
         -1, 0.1, 0.2, 1e-50, -1);
    begin();
    x = param(DC_F32, 1, DIMS(3));
    WANT(DC_EVAL_WIDE, dc_graph_op1(fn, DC_OP_NEG, x), IN(wide), -0.1, -0.2, -1e-50);
}

static void reductions(void)
{
    static const uint8_t bytes[4] = {255, 255, 1, 2};
    static const uint8_t flags[4] = {1, 0, 1, 1};
    static const int32_t ints[4] = {INT32_MAX, 1, -5, 4};
    static const float nans[4] = {1, NAN, 3, -INFINITY}, zeros[2] = {-0.0f, -0.0f};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 1), IN(six), 5, 7, 9);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 2), IN(six), 6, 15);
    begin();
    x = param(DC_F32, 3, DIMS(1, 2, 3));
    WANT(DC_EVAL_STRICT, dc_graph_reduce(fn, DC_OP_SUM, x, 7), IN(six), 21);
    begin();
    x = param(DC_F32, 1, DIMS(2)); /* what is added up starts from +0 */
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 1), IN(zeros), 0.0);
    begin();
    x = param(DC_U8, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 2), IN(bytes), 510, 3);
    begin();
    x = param(DC_BOOL, 1, DIMS(4));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 1), IN(flags), 3);
    begin();
    x = param(DC_I32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_SUM, x, 2), IN(ints), I_MIN, -1);
    begin();
    x = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_MAXR, x, 2), IN(nans), NAN, 3);
    begin();
    x = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_MINR, x, 2), IN(nans), NAN, -INF);
    begin();
    x = param(DC_I32, 1, DIMS(4));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_MAXR, x, 1), IN(ints), I_MAX);
    begin();
    x = param(DC_U8, 1, DIMS(4));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_MINR, x, 1), IN(bytes), 1);
    begin();
    x = param(DC_BOOL, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_MINR, x, 2), IN(flags), 0, 1);
}

static void products(void)
{
    static const float signs[6] = {1, -2, 3, 4, 0.5f, -0.0f};
    static const uint8_t bytes[4] = {200, 200, 200, 3}, flags[4] = {1, 1, 1, 0};
    static const int32_t ints[3] = {65536, 65536, 3};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_PROD, x, 1), IN(signs), 4, -1, -0.0);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_STRICT, dc_graph_reduce(fn, DC_OP_PROD, x, 2), IN(signs), -6, -0.0);
    begin();
    x = param(DC_U8, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_PROD, x, 2), IN(bytes), 40000, 600);
    begin();
    x = param(DC_BOOL, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_PROD, x, 2), IN(flags), 1, 0);
    begin();
    x = param(DC_I32, 1, DIMS(3));
    WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, DC_OP_PROD, x, 1), IN(ints), 0);
    begin();
    x = param(DC_F32, 2, DIMS(2, 0));
    WANT(DC_EVAL_WIDE, dc_graph_reduce(fn, DC_OP_PROD, x, 2), IN(NULL), 1, 1);
}

/* Integers outside: the nearest for gather, nothing for scatter; the last wins, sums are in order. */
static void on_host(void)
{
    static const float x[6] = {3, -0.0f, 1, 0, (float)NAN, -2};
    static const uint8_t u[3] = {7, 255, 0};
    static const int64_t up[1] = {0}, down[1] = {1}, two_largest[2] = {2, 1};
    begin();
    dc_ref a = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_SORT, &a, 1, up, 1, NULL), IN(x), -0.0, 1, 3, -2, 0,
         NAN);
    begin();
    a = param(DC_F32, 1, DIMS(6));
    WANT(DC_EVAL_STRICT, dc_graph_make(fn, DC_OP_SORT, &a, 1, down, 1, NULL), IN(x), NAN, 3, 1,
         -0.0, 0, -2);
    begin();
    a = param(DC_F32, 1, DIMS(6));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_ARGSORT, &a, 1, up, 1, NULL), IN(x), 5, 1, 3, 2, 0,
         4);
    begin();
    a = param(DC_U8, 1, DIMS(3));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_TOPK, &a, 1, two_largest, 2, NULL), IN(u), 1, 0);
    static const float rows[6] = {1, 2, 3, -4, 5, 0.5f};
    static const int64_t sum[3] = {DC_RUN_SUM, 0, 1}, prod[3] = {DC_RUN_PROD, 1, 0},
                         most[3] = {DC_RUN_MAX, 0, 0}, least[3] = {DC_RUN_MIN, 1, 1};
    begin();
    a = param(DC_F32, 2, DIMS(3, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_RUN, &a, 1, sum, 3, NULL), IN(rows), 1, 2, 4, -2, 9,
         -1.5f);
    begin();
    a = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_RUN, &a, 1, prod, 3, NULL), IN(rows), 6, 6, 3, -10,
         2.5f, 0.5f);
    begin();
    a = param(DC_F32, 1, DIMS(6));
    WANT(DC_EVAL_STRICT, dc_graph_make(fn, DC_OP_RUN, &a, 1, most, 3, NULL), IN(x), 3, 3, 3, 3, NAN,
         NAN);
    begin();
    a = param(DC_U8, 2, DIMS(3, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_RUN, &a, 1, least, 3, NULL), IN(u), 0, 0, 0);
    begin();
    a = param(DC_F32, 1, DIMS(2));
    WANT(DC_EVAL_WIDE, dc_graph_make(fn, DC_OP_SORT, &a, 1, up, 1, NULL), IN(((double[]){2, 1})), 1,
         2);
}

/* 2 x 2, by hand; of an orthonormal factor the signs are those of LAPACK. */
static void factors(void)
{
    static const float pd[4] = {4, 99, 2, 5}, a[4] = {1, 2, 4, 6}, id[4] = {3, 0, 0, 2},
                       b[2] = {8, 6}, down[2] = {0, 4};
    static const int64_t low[3] = {0, 0, 0}, whole[1] = {1};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_CHOLESKY, &x, 1, NULL, 0, NULL), IN(pd), 2, 0, 1,
         2);
    begin();
    x = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_LU, &x, 1, low, 1, NULL), IN(a), 4, 6, 0.25, 0.5, 1,
         0);
    begin();
    x = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_EIGH, &x, 1, NULL, 0, NULL), IN(id), 2, 3, 0, 1, 1,
         0);
    begin();
    x = param(DC_F32, 2, DIMS(2, 2));
    const dc_ref y = param(DC_F32, 2, DIMS(2, 1)), both[2] = {x, y};
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_TRSOLVE, both, 2, low, 3, NULL), IN(pd, b), 2,
         0.4f);
    begin();
    x = param(DC_F32, 2, DIMS(1, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_QR, &x, 1, low, 1, NULL), IN(b), 1, 8);
    begin();
    x = param(DC_F32, 2, DIMS(2, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_QR, &x, 1, whole, 1, NULL), IN(down), 0, -1, -1, 0,
         -4, 0);
    begin();
    x = param(DC_F32, 2, DIMS(1, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_SVD, &x, 1, NULL, 0, NULL), IN(b), 1, 8, 1);
}

/* The same with operands of other shapes, and values alone. */
static void systems(void)
{
    /* rows of A, [[0, 2], [4, 1]], are exchanged: its factors are those of [[4, 1], [0, 2]] */
    static const float a[4] = {0, 2, 4, 1}, lu[6] = {4, 1, 0, 2, 1, 0}, b[2] = {6, 7},
                       c[4] = {3, 99, 0, 2}, pd[1] = {4}, ones[2] = {1, 1}, tall[2] = {3, 4},
                       low[2] = {0, 2}, rest[2] = {5, 7}, quarter[4] = {0, -1, 1, 0};
    static const int64_t flag[4] = {0, 0, 1, 0}, turned[2] = {1, 1};
    const int64_t least = (int64_t)dc_bits_of(DC_F64, 1e-6);
    dc_ref in[3];
    for (int transposed = 0; transposed < 2; transposed++) { /* A (1, 3), A^T (2.75, 1.5) are b */
        begin();
        in[0] = param(DC_F32, 2, DIMS(2, 2));
        in[1] = param(DC_F32, 2, DIMS(3, 2));
        in[2] = param(DC_F32, 2, DIMS(2, 1));
        const dc_ref x = dc_graph_make(fn, DC_OP_LUSOLVE, in, 3, flag + 2 * transposed, 2, NULL);
        if (transposed)
            WANT(DC_EVAL_ROUND, x, IN(a, lu, b), 2.75f, 1.5f);
        else
            WANT(DC_EVAL_ROUND, x, IN(a, lu, b), 1, 3);
    }
    for (int log = 0; log < 2; log++) {
        begin();
        in[0] = param(DC_F32, 2, DIMS(2, 2));
        in[1] = param(DC_F32, 2, DIMS(3, 2));
        const dc_ref x = dc_graph_make(fn, DC_OP_DET, in, 2, flag + 2 * log, 2, NULL);
        if (log)
            WANT(DC_EVAL_ROUND, x, IN(a, lu), -1, logf(8));
        else
            WANT(DC_EVAL_ROUND, x, IN(a, lu), -8);
    }
    begin(); /* the transpose is [[0, 4], [2, 1]]: its rows are exchanged, its factors 1 and [[2, 1], [0, 4]] */
    in[0] = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_LU, in, 1, turned, 1, NULL), IN(a), 2, 0, 1, 4, 1,
         0);
    begin(); /* A^T (2.75, 1.5) is b */
    in[0] = param(DC_F32, 2, DIMS(2, 2));
    in[1] = dc_graph_make(fn, DC_OP_LU, in, 1, turned, 1, NULL);
    in[2] = param(DC_F32, 2, DIMS(2, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_LUSOLVE, in, 3, turned, 2, NULL), IN(a, b), 2.75f,
         1.5f);
    begin();
    in[0] = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_EIGVALSH, in, 1, NULL, 0, NULL), IN(c), 2, 3);
    begin();
    in[0] = param(DC_F32, 2, DIMS(1, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_SVDVALS, in, 1, NULL, 0, NULL), IN(tall), 5);
    begin();
    in[0] = param(DC_F32, 2, DIMS(1, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_PINV, in, 1, &least, 1, NULL), IN(pd), 0.25f);
    begin(); /* every LAPACK has the bits of this one */
    in[0] = param(DC_F32, 2, DIMS(2, 1));
    in[1] = param(DC_F32, 2, DIMS(2, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_LSTSQ, in, 2, &least, 1, NULL), IN(low, rest),
         3.5f);
    begin();
    in[0] = param(DC_F32, 2, DIMS(1, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_MATRIX_EXP, in, 1, NULL, 0, NULL), IN(ones),
         expf(1));
    begin(); /* a quarter turn */
    in[0] = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_EIGVALS, in, 1, NULL, 0, NULL), IN(quarter), 0, 1,
         0, -1);
    begin();
    in[0] = param(DC_F32, 2, DIMS(1, 1));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_EIG, in, 1, NULL, 0, NULL), IN(pd), 4, 0, 1, 0);
}

static void indexing(void)
{
    static const float rows[6] = {1, 2, 3, 4, 5, 6}, four[4] = {10, 20, 30, 40};
    static const int32_t at[4] = {2, 0, -1, 7};
    static const uint8_t twice[2] = {1, 1};
    static const uint32_t far[1] = {4294967295u};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(3, 2)), i = param(DC_I32, 1, DIMS(4));
    WANT(DC_EVAL_ROUND, dc_graph_gather(fn, x, i, 0, 0), IN(rows, at), 5, 6, 1, 2, 1, 2, 5, 6);
    begin();
    x = param(DC_F32, 2, DIMS(3, 2)), i = param(DC_U32, 1, DIMS(1));
    WANT(DC_EVAL_ROUND, dc_graph_gather(fn, x, i, 1, 0), IN(rows, far), 2, 4, 6);
    begin();
    x = param(DC_F32, 2, DIMS(2, 3)), i = param(DC_U8, 1, DIMS(2));
    WANT(DC_EVAL_STRICT, dc_graph_gather(fn, x, i, 1, 1), IN(rows, twice), 2, 5);
    begin();
    x = param(DC_F32, 2, DIMS(1, 6)), i = param(DC_I32, 2, DIMS(2, 2));
    WANT(DC_EVAL_WIDE, dc_graph_gather(fn, x, i, 1, 0), IN(((double[]){1, 2, 3, 4, 5, 6}), at), 3,
         1, 1, 6);
    begin();
    x = param(DC_F32, 2, DIMS(3, 2)), i = param(DC_U8, 1, DIMS(2));
    dc_ref u = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER, x, i, u, 0, 0), IN(rows, twice, four),
         1, 2, 30, 40, 5, 6);
    begin();
    x = param(DC_F32, 2, DIMS(3, 2)), i = param(DC_U8, 1, DIMS(2));
    u = param(DC_F32, 2, DIMS(2, 2));
    WANT(DC_EVAL_STRICT, dc_graph_scatter(fn, DC_OP_SCATTER_ADD, x, i, u, 0, 0),
         IN(rows, twice, four), 1, 2, 43, 64, 5, 6);
    begin();
    x = param(DC_F32, 1, DIMS(6)), i = param(DC_I32, 1, DIMS(4)), u = param(DC_F32, 1, DIMS(4));
    WANT(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER_ADD, x, i, u, 0, 0), IN(rows, at, four),
         21, 2, 13, 4, 5, 6);
    static const dc_op how[3] = {DC_OP_SCATTER_MUL, DC_OP_SCATTER_MAX, DC_OP_SCATTER_MIN};
    static const double combined[3][6] = {
        {1, 2, 3 * 10 * 30, 4, 5, 6}, {1, 2, 30, 4, 5, 6}, {1, 2, -7, 4, 5, 6}};
    static const int32_t same_place[3] = {2, 3, 2};
    static const float put[3][3] = {{10, 1, 30}, {30, -9, 2}, {4, 9, -7}};
    for (int k = 0; k < 3; k++) {
        begin();
        x = param(DC_F32, 1, DIMS(6)), i = param(DC_I32, 1, DIMS(3)), u = param(DC_F32, 1, DIMS(3));
        end(DC_EVAL_ROUND, dc_graph_scatter(fn, how[k], x, i, u, 0, 0),
            IN(rows, same_place, put[k]), 6, combined[k]);
    }
    begin();
    x = param(DC_I32, 1, DIMS(4)), i = param(DC_U8, 1, DIMS(2)), u = param(DC_I32, 1, DIMS(2));
    WANT(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER_MIN, x, i, u, 0, 0),
         IN(at, twice, ((int32_t[]){-5, 3})), 2, -5, -1, 7);
    begin();
    x = param(DC_I32, 1, DIMS(4)), i = param(DC_U32, 1, DIMS(1)), u = param(DC_I32, 1, DIMS(1));
    WANT(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER_ADD, x, i, u, 0, 0), IN(at, far, at), 2,
         0, -1, 7);
    begin();
    x = param(DC_F32, 2, DIMS(0, 2)), i = param(DC_I32, 1, DIMS(0));
    u = param(DC_F32, 2, DIMS(0, 2));
    end(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER, x, i, u, 0, 0), IN(NULL, NULL, NULL), 0,
        NULL);
    begin();
    x = param(DC_F32, 1, DIMS(6)), i = param(DC_I32, 1, DIMS(0)), u = param(DC_F32, 1, DIMS(0));
    WANT(DC_EVAL_ROUND, dc_graph_scatter(fn, DC_OP_SCATTER, x, i, u, 0, 0), IN(rows, NULL, NULL), 1,
         2, 3, 4, 5, 6);
}

/* The value is that of the first operand; a hole is 0 until something is put there. */
static void same(void)
{
    static const float x[2] = {1.5f, -0.0f}, y[1] = {7};
    static const uint8_t flags[2] = {1, 0};
    begin();
    dc_ref a = param(DC_F32, 1, DIMS(2)), b = param(DC_F32, 1, DIMS(1));
    WANT(DC_EVAL_ROUND, dc_graph_barrier(fn, a, b), IN(x, y), 1.5, -0.0);
    begin();
    a = param(DC_BOOL, 1, DIMS(2));
    WANT(DC_EVAL_STRICT, dc_graph_barrier(fn, a, a), IN(flags), 1, 0);
    begin();
    a = param(DC_F32, 1, DIMS(2)), b = param(DC_I32, 0, NULL);
    WANT(DC_EVAL_ROUND, dc_graph_set_size(fn, a, 0, b), IN(x, &(int32_t){2}), 1.5, -0.0);
    begin();
    a = param(DC_F32, 1, DIMS(2)), b = param(DC_F32, 1, DIMS(1));
    dc_ref in[3] = {a, b, b};
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_CUSTOM, in, 3, DIMS(1, 0, 1), 3, NULL), IN(x, y),
         1.5, -0.0);
    begin();
    a = param(DC_F32, 1, DIMS(2));
    WANT(DC_EVAL_ROUND,
         dc_graph_make(fn, DC_OP_RESHARD, &a, 1, DIMS(1, 0, 0, 0, 0, 0, 0, 0), 8, NULL), IN(x), 1.5,
         -0.0);
    begin();
    const dc_type t = dc_type_make(DC_F32, 1, DIMS(2));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_HOLE, NULL, 0, DIMS(3, 0), 2, &t), IN(NULL), 0, 0);
}

/* Pieces where they say, in steps and in blocks; a join goes on with another. */
static void joins(void)
{
    static const float three[3] = {7, 8, 9}, two[2] = {4, 5}, one[1] = {6};
    begin();
    const dc_ref a = param(DC_F32, 1, DIMS(3)), b = param(DC_F32, 1, DIMS(2));
    const dc_ref c = param(DC_F32, 1, DIMS(1));
    const dc_type whole = dc_type_make(DC_F32, 2, DIMS(2, 3));
    dc_ref in[3] = {dc_graph_const(fn, &whole, 1)};
    in[1] = dc_graph_make(fn, DC_OP_PIECE, &a, 1, DIMS(0, 0, 0, 0, 1, 1, 1, 3), 8, NULL);
    in[2] = dc_graph_make(fn, DC_OP_PIECE, &b, 1, DIMS(0, 1, 1, 0, 1, 2, 1, 2), 8, NULL);
    const dc_ref first = dc_graph_make(fn, DC_OP_JOIN, in, 3, DIMS(0), 1, NULL);
    in[0] = first;
    in[1] = dc_graph_make(fn, DC_OP_PIECE, &c, 1, DIMS(0, 2, 1, 1, 1, 1, 1, 1), 8, NULL);
    const dc_ref r = dc_graph_make(fn, DC_OP_JOIN, in, 2, DIMS(0), 1, NULL);
    WANT(DC_EVAL_ROUND, r, IN(three, two, one), 7, 8, 9, 4, 6, 5);
    begin();
    const dc_ref x = param(DC_F32, 1, DIMS(3));
    WANT(DC_EVAL_ROUND, dc_graph_make(fn, DC_OP_PIECE, &x, 1, DIMS(0, 0, 2, 5, 3), 5, NULL),
         IN(three), 7, 8, 9);
}

/* Of 1, i, 2, 0: the sum, and the other three; a stage of two transforms of length 2, turned by cos and sin. */
static void transforms(void)
{
    static const float four[8] = {1, 0, 0, 1, 2, 0, 0, 0}, c[4] = {1, 1, 1, 0}, s[4] = {0, 0, 0, 1};
    begin();
    dc_ref x = param(DC_F32, 2, DIMS(4, 2));
    WANT(DC_EVAL_ROUND, dc_graph_dft(fn, x, 0, -1), IN(four), 3, 1, 0, 0, 3, -1, -2, 0);
    begin();
    x = param(DC_F32, 4, DIMS(1, 4, 1, 2));
    const dc_ref in[3] = {x, param(DC_F32, 2, DIMS(2, 2)), param(DC_F32, 2, DIMS(2, 2))};
    WANT(DC_EVAL_STRICT, dc_graph_make(fn, DC_OP_STAGE, in, 3, DIMS(2, 2, 1, -1, 0, 1), 6, NULL),
         IN(four, c, s), 3, -1, 0, 1, 0, 0, 1, 0);
}

/* A reduction of nothing is the identity; tensors without elements pass through everything. */
static void nothing(void)
{
    const dc_op ops[3] = {DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR};
    const double identity[3][3] = {{0, 0, 0}, {-INF, I_MIN, 0}, {INF, I_MAX, 255}};
    const dc_dtype dtypes[3] = {DC_F32, DC_I32, DC_U8};
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 3; t++) {
            begin();
            const dc_ref x = param(dtypes[t], 2, DIMS(2, 0));
            const double v = identity[i][t];
            WANT(DC_EVAL_ROUND, dc_graph_reduce(fn, ops[i], x, 2), IN(NULL), v, v);
        }
    begin();
    dc_ref a = param(DC_F32, 2, DIMS(2, 0)), b = param(DC_F32, 2, DIMS(0, 2));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(NULL, NULL),
         0, 0, 0, 0);
    begin();
    a = param(DC_F32, 1, DIMS(0));
    WANT(DC_EVAL_ROUND, dc_graph_pad(fn, a, DIMS(1), DIMS(1), DIMS(2), dc_f32_bits(3)), IN(NULL), 3,
         3);
    begin();
    a = param(DC_F32, 2, DIMS(0, 3));
    dc_ref r =
        dc_graph_flip(fn, dc_graph_permute(fn, dc_graph_op1(fn, DC_OP_NEG, a), DIMS(1, 0)), 2);
    r = dc_graph_slice(
        fn, dc_graph_expand(fn, dc_graph_reshape(fn, r, 3, DIMS(1, 0, 3)), DIMS(2, 0, 3)),
        DIMS(0, 0, 1), DIMS(1, 1, 1), DIMS(2, 0, 2));
    end(DC_EVAL_ROUND, r, IN(NULL), 0, NULL);
    begin();
    a = param(DC_F32, 2, DIMS(2, 0)), b = param(DC_F32, 2, DIMS(0, 2));
    WANT(DC_EVAL_WIDE, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(NULL, NULL),
         0, 0, 0, 0);
    begin();
    a = param(DC_I32, 2, DIMS(1, 0)), b = param(DC_I32, 2, DIMS(0, 1));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(NULL, NULL),
         0);
}

static void dots(void)
{
    static const float b6[6] = {1, 0, -1, 2, 0.5f, 3};
    static const int32_t ints[4] = {INT32_MAX, 2, -3, 4}, two[2] = {2, 1};
    static const uint8_t bytes[4] = {16, 1, 2, 3}, more[2] = {16, 5};
    begin();
    dc_ref a = param(DC_F32, 2, DIMS(2, 3)), b = param(DC_F32, 2, DIMS(3, 2));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(six, b6),
         0.5, 13, 2, 28);
    begin();
    a = param(DC_F32, 2, DIMS(2, 3)), b = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_STRICT, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(1)), IN(six, b6),
         -2, 12, -2, 28.5);
    begin(); /* batch over the second axis of a and the first of b */
    a = param(DC_F32, 2, DIMS(3, 2)), b = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 1, DIMS(1), DIMS(0), 1, DIMS(0), DIMS(1)),
         IN(six, b6), -4, 24);
    begin(); /* two contracted axes, paired crosswise */
    a = param(DC_F32, 2, DIMS(3, 2)), b = param(DC_F32, 2, DIMS(2, 3));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 2, DIMS(0, 1), DIMS(1, 0)),
         IN(six, b6), 1 * 1 + 2 * 2 + 3 * 0 + 4 * 0.5 + 5 * -1 + 6 * 3);
    begin(); /* an outer product */
    a = param(DC_F32, 1, DIMS(2)), b = param(DC_F32, 1, DIMS(3));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 0, NULL, NULL), IN(six, b6), 1, 0, -1,
         2, 0, -2);
    begin(); /* scalars */
    a = param(DC_F32, 0, NULL), b = param(DC_F32, 0, NULL);
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 0, NULL, NULL), IN(six + 2, b6 + 3),
         6);
    begin();
    a = param(DC_I32, 2, DIMS(2, 2)), b = param(DC_I32, 1, DIMS(2));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(ints, two),
         0, -2);
    begin();
    a = param(DC_U8, 2, DIMS(2, 2)), b = param(DC_U8, 1, DIMS(2));
    WANT(DC_EVAL_ROUND, dc_graph_dot(fn, a, b, 0, NULL, NULL, 1, DIMS(1), DIMS(0)), IN(bytes, more),
         5, 47);
}

static void convolutions(void)
{
    static const float taps[3] = {2, 0, -1};
    dc_conv c = dc_conv_plain(1);
    begin();
    dc_ref a = param(DC_F32, 3, DIMS(1, 1, 6)), b = param(DC_F32, 3, DIMS(1, 1, 3));
    WANT(DC_EVAL_ROUND, dc_graph_conv(fn, a, b, &c), IN(six, taps), -1, 0, 1, 2);
    c.dim[0].stride = 2;
    c.dim[0].lo = 1;
    begin();
    a = param(DC_F32, 3, DIMS(1, 1, 6)), b = param(DC_F32, 3, DIMS(1, 1, 3));
    WANT(DC_EVAL_ROUND, dc_graph_conv(fn, a, b, &c), IN(six, taps), -2, 0, 2);
}

/* 1 + 2^-24 - 1: lost if rounded on the way, kept in double. */
static void modes(void)
{
    const float e = 0x1p-24f, x[3] = {1, e, -1}, ones[3] = {1, 1, 1};
    const double wide[3] = {1, 0x1p-40, -1}, wones[3] = {1, 1, 1};
    const double kept[3] = {(double)e, 0, 0x1p-40};
    for (int mode = 0; mode < 3; mode++) {
        const void *a = mode == DC_EVAL_WIDE ? (const void *)wide : x;
        const void *b = mode == DC_EVAL_WIDE ? (const void *)wones : ones;
        begin();
        dc_ref p = param(DC_F32, 1, DIMS(3));
        WANT((dc_eval_mode)mode, dc_graph_reduce(fn, DC_OP_SUM, p, 1), IN(a), kept[mode]);
        begin();
        p = param(DC_F32, 1, DIMS(3));
        const dc_ref q = param(DC_F32, 1, DIMS(3));
        WANT((dc_eval_mode)mode, dc_graph_dot(fn, p, q, 0, NULL, NULL, 1, DIMS(0), DIMS(0)),
             IN(a, b), kept[mode]);
    }
}

/* Many rows, chunks and leftovers; shared values; a parameter and one node as results twice. */
static void larger(void)
{
    enum { N = 1301 };
    static float x[N], y[3][N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 17) - 8;
    begin();
    const dc_ref a = param(DC_F32, 1, DIMS(N)), twice = dc_graph_op2(fn, DC_OP_ADD, a, a);
    const dc_ref sum = dc_graph_reduce(fn, DC_OP_SUM, dc_graph_op2(fn, DC_OP_MUL, twice, a), 1);
    const dc_ref out[3] = {twice, a, twice};
    for (int i = 0; i < 3; i++)
        DC_PUSH(fn->result, out[i]);
    DC_PUSH(fn->result, sum);
    float total = 0, want = 0;
    CHECK_EQ(dc_eval(&job, fn, DC_EVAL_ROUND, IN(x), (void *const[]){y[0], y[1], y[2], &total}),
             DC_OK);
    bool ok = true;
    for (int i = 0; i < N; i++) {
        ok = ok && y[0][i] == 2 * x[i] && y[1][i] == x[i] && y[2][i] == 2 * x[i];
        want += 2 * x[i] * x[i];
    }
    CHECK(ok);
    CHECK(total == want); /* small whole numbers: exact in any order */
    dc_module_free(module);
}

/* Memory that cannot be had is a status, and nothing stays behind. */
static void no_memory(void)
{
    const int64_t huge = (int64_t)1 << 60;
    const double one = 1;
    double out;
    begin();
    const dc_ref a = param(DC_F32, 1, DIMS(1));
    const dc_ref r = dc_graph_expand(fn, dc_graph_op1(fn, DC_OP_NEG, a), DIMS(huge));
    DC_PUSH(fn->result, dc_graph_reduce(fn, DC_OP_SUM, r, 1));
    CHECK_EQ(dc_eval(&job, fn, DC_EVAL_WIDE, IN(&one), (void *const[]){&out}), DC_E_NOMEM);
    CHECK_EQ(job.cleanup.n, 0);
    job.err = (dc_err){0};
    dc_module_free(module);
}

int main(void)
{
    dc_job_init(&job, NULL, NULL);
    for (size_t i = 0; i < DC_COUNTOF(ew_cases); i++)
        check_ew(&ew_cases[i]);
    sources();
    movement();
    movement_wide();
    reductions();
    products();
    indexing();
    on_host();
    if (hostgen_missing() == NULL) {
        factors();
        systems();
    }
    same();
    joins();
    transforms();
    nothing();
    dots();
    convolutions();
    modes();
    larger();
    no_memory();
    for (int op = 0; op < DC_OP__COUNT; op++) /* control flow: test_control; ranks: test_exchange */
        if (!CHECK(seen[op] || dc_op_is((dc_op)op, DC_CLASS_CTL) ||
                   dc_op_is((dc_op)op, DC_CLASS_COM) || !hostgen_can((dc_op)op)))
            printf("    no case for %s\n", dc_op_row_of((dc_op)op)->name);
    dc_job_fini(&job);
    if (hostgen_missing() != NULL)
        T_SKIP(hostgen_missing());
    return t_done();
}
