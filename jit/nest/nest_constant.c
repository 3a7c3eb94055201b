/*
 * Constants of kernels as text and back. The C library's conversions depend on the locale, and text is
 * a key: so digits are put together here. A decimal is m * 10^e with m below 2^53 and e in -22..22: one
 * operation on doubles whose operands are exact.
 */
#include "jit/nest/nest_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_POWER = 22, MAX_DIGITS = 9 };

/* Floats ------------------------------------------------------------------------------------- */

static uint64_t sign_bit(dc_dtype t)
{
    return (uint64_t)1 << (dc_dtype_bits(t) - 1);
}

static bool decimal(dc_dtype t, uint64_t m, int e, bool negative, uint64_t *bits)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (m == 0)
        e = 0;
    if (m >> 53 != 0 || e < -MAX_POWER || e > MAX_POWER)
        return false;
    const double v = e < 0 ? (double)m / power[-e] : (double)m * power[e];
    *bits = dc_bits_of(t, negative ? -v : v);
    return isfinite(dc_value_of(t, *bits));
}

/* m * 10^e of n digits as people write it. */
static void print_decimal(uint64_t m, int e, dc_text *out)
{
    char digit[24];
    const int n = snprintf(digit, sizeof digit, "%" PRIu64, m), point = n + e;
    if (e >= 0 && point <= MAX_DIGITS)
        dc_text_printf(out, "%s%.*s", digit, e, "000000000");
    else if (e < 0 && point > 0)
        dc_text_printf(out, "%.*s.%s", point, digit, digit + point);
    else if (e < 0 && point > -4)
        dc_text_printf(out, "0.%.*s%s", -point, "0000", digit);
    else
        dc_text_printf(out, "%c%s%se%d", digit[0], n > 1 ? "." : "", digit + 1, point - 1);
}

/* Of a positive pattern. */
static void print_hexadecimal(dc_dtype t, uint64_t bits, dc_text *out)
{
    const int fraction = dc_dtype_fraction(t), exponent = (int)(bits >> fraction);
    const int bias = dc_dtype_bias(t);
    char digit[20];
    int n = snprintf(digit, sizeof digit, "%013" PRIx64,
                     bits << (52 - fraction) & (((uint64_t)1 << 52) - 1));
    while (n > 0 && digit[n - 1] == '0')
        n--;
    dc_text_printf(out, "0x%d%s%.*sp%d", exponent > 0, n > 0 ? "." : "", n, digit,
                   exponent > 0 ? exponent - bias : 1 - bias);
}

/* The n significant digits of x, which is not 0: m * 10^e. */
static void digits_of(double x, int n, uint64_t *m, int *e)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", n - 1, x);
    char *s = text;
    *m = 0;
    for (; *s != 'e'; s++)
        if (*s >= '0' && *s <= '9')
            *m = *m * 10 + (uint64_t)(*s - '0');
    int power = 0;
    const bool negative = s[1] == '-';
    for (s += 2; *s != '\0'; s++)
        power = power * 10 + (*s - '0');
    *e = (negative ? -power : power) - (n - 1);
}

static void print_float(dc_dtype t, uint64_t bits, dc_text *out)
{
    const uint64_t infinity = dc_bits_infinity(t), size = bits & ~sign_bit(t);
    if (dc_bits_is_nan(t, bits)) {
        if (bits == dc_bits_nan(t))
            dc_text_puts(out, "nan");
        else
            dc_text_printf(out, "nan(0x%0*" PRIx64 ")", dc_dtype_bits(t) / 4, bits);
        return;
    }
    dc_text_puts(out, bits != size ? "-" : "");
    if (size == infinity || size == 0) {
        dc_text_puts(out, size == 0 ? "0" : "inf");
        return;
    }
    for (int n = 1; n <= MAX_DIGITS; n++) {
        uint64_t m, back;
        int e;
        digits_of(dc_value_of(t, size), n, &m, &e);
        if (decimal(t, m, e, false, &back) && back == size) {
            print_decimal(m, e, out);
            return;
        }
    }
    print_hexadecimal(t, size, out);
}

void dc_const_print(dc_dtype t, uint64_t bits, dc_text *out)
{
    switch (dc_dtype_kind(t)) {
    case DC_KIND_BOOL:
        dc_text_puts(out, bits != 0 ? "true" : "false");
        return;
    case DC_KIND_FLOAT:
        print_float(t, bits, out);
        break;
    case DC_KIND_SINT:
        dc_text_printf(out, "%" PRId64, (int64_t)bits);
        break;
    case DC_KIND_UINT:
        dc_text_printf(out, "%" PRIu64, bits);
        break;
    case DC_KIND_COMPLEX: /* no kernel has one */
        break;
    }
    dc_text_printf(out, ":%s", dc_dtype_name(t));
}

/* Reading ------------------------------------------------------------------------------------ */

typedef struct number {
    bool negative, whole, hex, too_long;
    uint64_t m;
    int64_t e; /* of 10, or of 2 */
    enum { FINITE, INF, NAN_BITS } kind;
} number;

static int digit_of(char c, bool hex)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (hex && c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Digits with at most one point; false where there are none. */
static bool read_digits(const char **at, number *x)
{
    const int base = x->hex ? 16 : 10;
    bool any = false;
    for (const char *s = *at;; s++) {
        const int d = digit_of(*s, x->hex);
        if (*s == '.' && x->whole) {
            x->whole = false;
        } else if (d >= 0) {
            x->too_long |= x->m > (UINT64_MAX - (uint64_t)d) / (uint64_t)base;
            x->m = x->m * (uint64_t)base + (uint64_t)d;
            x->e -= x->whole ? 0 : x->hex ? 4 : 1;
            any = true;
        } else {
            *at = s;
            return any;
        }
    }
}

static bool read_exponent(const char **at, number *x)
{
    const char *s = *at;
    if (*s != (x->hex ? 'p' : 'e'))
        return true;
    const bool negative = *++s == '-';
    int64_t e = 0;
    if (*s == '-' || *s == '+')
        s++;
    if (digit_of(*s, false) < 0)
        return false;
    for (; digit_of(*s, false) >= 0; s++)
        e = e < 10000 ? e * 10 + digit_of(*s, false) : e;
    x->e += negative ? -e : e;
    x->whole = false;
    *at = s;
    return true;
}

static bool skip_word(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool read_number(const char **at, number *x)
{
    *x = (number){.whole = true};
    x->negative = skip_word(at, "-");
    if (skip_word(at, "inf")) {
        x->kind = INF;
        return true;
    }
    if (skip_word(at, "nan")) {
        x->kind = NAN_BITS; /* m: its bits, 0 as they are by themselves */
        if (!skip_word(at, "(0x"))
            return !x->negative;
        x->hex = true;
        return read_digits(at, x) && x->whole && skip_word(at, ")") && !x->negative;
    }
    x->hex = skip_word(at, "0x");
    return read_digits(at, x) && read_exponent(at, x);
}

static const char *to_float(const number *x, dc_dtype t, uint64_t *bits)
{
    const uint64_t sign = sign_bit(t), infinity = dc_bits_infinity(t);
    switch (x->kind) {
    case INF:
        if (dc_dtype_is_finite(t))
            return "its dtype has no infinity";
        *bits = infinity | (x->negative ? sign : 0);
        return NULL;
    case NAN_BITS:
        *bits = x->hex ? x->m : dc_bits_nan(t);
        return *bits <= sign + (sign - 1) && dc_bits_is_nan(t, *bits) && !x->too_long
                   ? NULL
                   : "not the bits of a NaN";
    case FINITE:
        break;
    }
    if (x->too_long)
        return "too many digits";
    if (x->hex) {
        const bool near = x->e > -2000 && x->e < 2000 && x->m >> 53 == 0;
        const double v = near ? ldexp((double)x->m, (int)x->e) : INFINITY;
        const bool exact = isfinite(v) && ldexp(v, -(int)x->e) == (double)x->m;
        *bits = dc_bits_of(t, x->negative ? -v : v);
        return exact && dc_value_of(t, *bits & ~sign) == v ? NULL
                                                           : "no float of its dtype has this value";
    }
    if (x->e < -1000 || x->e > 1000 || !decimal(t, x->m, (int)x->e, x->negative, bits))
        return "too long for a decimal, write it as a hexadecimal float";
    return NULL;
}

static const char *to_integer(const number *x, dc_dtype t, uint64_t *bits)
{
    const bool sign = dc_dtype_kind(t) == DC_KIND_SINT;
    const uint64_t most = UINT64_MAX >> (64 - dc_dtype_bits(t) + sign);
    if (x->kind != FINITE || !x->whole)
        return "a whole number is needed";
    if (x->too_long || x->m > most + (sign && x->negative) || (!sign && x->negative))
        return "outside the range of its dtype";
    *bits = x->negative ? 0 - x->m : x->m;
    return NULL;
}

bool dc_const_parse(const char **text, dc_dtype *t, uint64_t *bits, const char **why)
{
    const char *at = *text;
    number x;
    size_t n = 0;
    *why = "a number looks like 0.5:f32 or -3:i32";
    if (!read_number(&at, &x) || !skip_word(&at, ":"))
        return false;
    while ((at[n] >= 'a' && at[n] <= 'z') || (at[n] >= '0' && at[n] <= '9'))
        n++;
    if (!dc_dtype_find(at, n, t) || *t == DC_BOOL)
        return false;
    *why = "a constant of a kernel is not complex";
    if (dc_dtype_kind(*t) == DC_KIND_COMPLEX)
        return false;
    *why = dc_dtype_is_float(*t) ? to_float(&x, *t, bits) : to_integer(&x, *t, bits);
    if (*why != NULL)
        return false;
    *text = at + n;
    return true;
}
