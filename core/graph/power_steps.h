/*
 * x^y as IEEE 754 has it, within 0.8 ulp and exact where the result is a float: the steps, written once. Who includes this
 * says what a step is: of numbers in core/graph/special.c, of values in a kernel in jit/flat/expand_pow.c. Each step is
 * rounded by itself, nothing is contracted, so all devices and the interpreter have the same bits.
 *
 *   POWER_NAME(part)        the name of a function; that of all is `power`
 *   FLT, INT, TEST  types: a float, a signed integer of its width, a condition
 *   CTX, PASS       a first parameter and its argument, with a comma; or nothing
 *   ADD SUB MUL DIV         of floats; NUM(double), a float
 *   LT LE EQ                of floats, a condition; BOTH EITHER DIFFER of conditions
 *   PICK(c, a, b)           a float, a where the condition holds
 *   BITS FROM_BITS          the bits of a float as an integer, and back; TO_FLT(i), the number
 *   IADD ISUB IAND IOR ISHR ISHL, WORD(uint64_t)   of integers; ISHR keeps the sign
 *
 * z = y log2 |x| and 2^z, both in two parts, as fdlibm's e_pow.c (Sun Microsystems, 1993) computes them: numbers of half the
 * digits have exact products.
 */

/* Half the digits of a number: the nearest one, so that what is left is small. */
static inline FLT POWER_NAME(head)(CTX const dc_power_kind *k, FLT a)
{
    const INT sum = IADD(BITS(a), WORD(k->half));
    return FROM_BITS(IAND(sum, WORD(~(2 * k->half - 1))));
}

static inline FLT POWER_NAME(series)(CTX FLT x, const double *coef, int n)
{
    FLT r = NUM(coef[0]);
    for (int i = 1; i < n; i++)
        r = ADD(MUL(r, x), NUM(coef[i]));
    return r;
}

/* log2 of a number > 0, in two parts; the first has half the digits. */
static inline void POWER_NAME(log2)(CTX const dc_power_kind *k, FLT a, FLT *high, FLT *low)
{
    const FLT one = NUM(1);
    const INT by = WORD((uint64_t)k->fraction);
    const TEST tiny = LT(a, NUM(k->least));
    const FLT scale = NUM((double)((uint64_t)1 << k->fraction));
    const INT above = ISUB(BITS(PICK(tiny, MUL(a, scale), a)), WORD(k->least_m));
    const FLT whole = TO_FLT(ISHR(above, by));
    const FLT e = PICK(tiny, SUB(whole, NUM(k->fraction)), whole);
    const INT rest = IAND(above, WORD(((uint64_t)1 << k->fraction) - 1));
    const FLT m = FROM_BITS(IADD(rest, WORD(k->least_m))); /* a = 2^e m */
    /* s = (m - c) / (m + c) = s_high + s_low, with the nearer c of 1 and 1.5 */
    const TEST near = LT(m, NUM(1.2247448));
    const FLT c = PICK(near, one, NUM(1.5));
    const FLT f = SUB(m, c), sum = ADD(m, c), v = DIV(one, sum), s = MUL(f, v);
    const FLT s_high = POWER_NAME(head)(PASS k, s);
    FLT t_high = POWER_NAME(head)(PASS k, sum), t_low = SUB(m, SUB(t_high, c));
    const FLT s_low = MUL(v, SUB(SUB(f, MUL(s_high, t_high)), MUL(s_high, t_low)));
    /* 3 log(m / c) / 2 = s (3 + s^2 + r) */
    const FLT s2 = MUL(s, s), square = MUL(s_high, s_high);
    FLT r = MUL(MUL(s2, s2), POWER_NAME(series)(PASS s2, k->log_coef, k->log_terms));
    r = ADD(r, MUL(s_low, ADD(s_high, s)));
    t_high = POWER_NAME(head)(PASS k, ADD(ADD(NUM(3), square), r));
    t_low = SUB(r, SUB(SUB(t_high, NUM(3)), square));
    const FLT p = MUL(s_high, t_high), more = ADD(MUL(s_low, t_high), MUL(t_low, s));
    const FLT p_high = POWER_NAME(head)(PASS k, ADD(p, more)), p_low = SUB(more, SUB(p_high, p));
    const FLT z = MUL(p_high, NUM(k->log_scale[0])); /* exact */
    const FLT z_low = ADD(MUL(p_high, NUM(k->log_scale[1])), MUL(p_low, NUM(k->log_scale_whole)));
    const FLT of_c = PICK(near, NUM(0), NUM(k->offset[0]));
    const FLT least = ADD(z_low, PICK(near, NUM(0), NUM(k->offset[1])));
    *high = POWER_NAME(head)(PASS k, ADD(ADD(ADD(z, least), of_c), e));
    *low = SUB(least, SUB(SUB(SUB(*high, e), of_c), z));
}

/* 2^(high + low) */
static inline FLT POWER_NAME(exp2)(CTX const dc_power_kind *k, FLT high, FLT low)
{
    const FLT one = NUM(1), shifter = NUM(1.5 * (double)((uint64_t)1 << k->fraction));
    const FLT all = ADD(high, low);
    const TEST over = LE(NUM(k->high), all), under = LE(all, NUM(k->low));
    const TEST out = EITHER(over, under);
    high = PICK(out, NUM(0), high);
    low = PICK(out, NUM(0), low);
    const FLT sum = ADD(ADD(high, low), shifter), n = SUB(sum, shifter);
    const FLT r = SUB(high, n), r_high = POWER_NAME(head)(PASS k, ADD(r, low)),
              r_low = SUB(low, SUB(r_high, r));
    /* w = ln 2 r in two parts, of which the first is exact */
    const FLT w_high = MUL(r_high, NUM(k->exp_scale[0]));
    const FLT w_low = ADD(MUL(r_low, NUM(k->exp_scale_whole)), MUL(r_high, NUM(k->exp_scale[1])));
    const FLT w = ADD(w_high, w_low), near = ADD(one, w_high);
    const FLT curve = MUL(MUL(w, w), POWER_NAME(series)(PASS w, k->exp_coef, k->exp_terms));
    const FLT left = SUB(w_high, SUB(near, one));
    const FLT p = ADD(near, ADD(left, ADD(w_low, curve)));
    /* times 2^n, which may be no normal number, in two steps */
    const INT bias = WORD(k->bias), by = WORD((uint64_t)k->fraction);
    const INT whole = ISUB(BITS(sum), BITS(shifter)), half = ISHR(whole, WORD(1));
    const FLT first = FROM_BITS(ISHL(IADD(half, bias), by));
    const FLT second = FROM_BITS(ISHL(IADD(ISUB(whole, half), bias), by));
    const FLT result = MUL(MUL(PICK(under, NUM(0), p), first), second);
    return PICK(over, NUM(INFINITY), result);
}

/* Of what is not negative: is it an integer? */
static inline TEST POWER_NAME(is_whole)(CTX const dc_power_kind *k, FLT a)
{
    const FLT big = NUM((double)((uint64_t)1 << k->fraction));
    return EITHER(LE(big, a), EQ(SUB(ADD(a, big), big), a));
}

static inline FLT POWER_NAME(power)(CTX const dc_power_kind *k, FLT x, FLT y)
{
    const FLT zero = NUM(0), one = NUM(1), infinite = NUM(INFINITY), nan = NUM(NAN);
    const INT rest = WORD(~k->sign);
    const FLT a = FROM_BITS(IAND(BITS(x), rest)), size = FROM_BITS(IAND(BITS(y), rest));
    const TEST huge = LT(NUM(k->most), size), falls = LT(y, zero);
    FLT high, low;
    POWER_NAME(log2)(PASS k, a, &high, &low);
    const FLT b = PICK(huge, PICK(falls, NUM(-k->most), NUM(k->most)), y);
    const FLT b_high = POWER_NAME(head)(PASS k, b), b_low = SUB(b, b_high);
    FLT r = POWER_NAME(exp2)(PASS k, MUL(b_high, high), ADD(MUL(b_low, high), MUL(b, low)));
    const TEST none = EQ(a, zero), all = EQ(a, infinite);
    r = PICK(EITHER(none, all), PICK(DIFFER(falls, none), zero, infinite), r);
    /* The sign of a negative base stays where y is odd; where it is no integer there is no result. */
    const TEST whole = POWER_NAME(is_whole)(PASS k, size);
    const TEST even = POWER_NAME(is_whole)(PASS k, MUL(size, NUM(0.5)));
    const FLT odd = FROM_BITS(IOR(BITS(r), IAND(BITS(x), WORD(k->sign))));
    const TEST negative = BOTH(LT(x, zero), LT(a, infinite));
    r = PICK(whole, PICK(even, r, odd), PICK(negative, nan, r));
    r = PICK(BOTH(EQ(x, x), EQ(y, y)), r, nan);
    return PICK(EITHER(EQ(x, one), EQ(y, zero)), one, r);
}
