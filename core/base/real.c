#include "core/base/real.h"

#include "core/base/number.h"

#include <math.h>
#include <string.h>

/* ---- powers of ten ---------------------------------------------------------------------------- */

enum { POWER_MOST = 40, EXACT_MOST = 22, DIGITS_MOST = 19 };

/* The upper 64 bits of 10^e for e from -POWER_MOST on, cut: 10^e = (entry + less than 1) * 2^(exponent_of(e)). */
static const uint64_t power[] = {
    /* clang-format off */
    0x8b61313bbabce2c6, 0xae397d8aa96c1b77, 0xd9c7dced53c72255, 0x881cea14545c7575,
    0xaa242499697392d2, 0xd4ad2dbfc3d07787, 0x84ec3c97da624ab4, 0xa6274bbdd0fadd61,
    0xcfb11ead453994ba, 0x81ceb32c4b43fcf4, 0xa2425ff75e14fc31, 0xcad2f7f5359a3b3e,
    0xfd87b5f28300ca0d, 0x9e74d1b791e07e48, 0xc612062576589dda, 0xf79687aed3eec551,
    0x9abe14cd44753b52, 0xc16d9a0095928a27, 0xf1c90080baf72cb1, 0x971da05074da7bee,
    0xbce5086492111aea, 0xec1e4a7db69561a5, 0x9392ee8e921d5d07, 0xb877aa3236a4b449,
    0xe69594bec44de15b, 0x901d7cf73ab0acd9, 0xb424dc35095cd80f, 0xe12e13424bb40e13,
    0x8cbccc096f5088cb, 0xafebff0bcb24aafe, 0xdbe6fecebdedd5be, 0x89705f4136b4a597,
    0xabcc77118461cefc, 0xd6bf94d5e57a42bc, 0x8637bd05af6c69b5, 0xa7c5ac471b478423,
    0xd1b71758e219652b, 0x83126e978d4fdf3b, 0xa3d70a3d70a3d70a, 0xcccccccccccccccc,
    0x8000000000000000, 0xa000000000000000, 0xc800000000000000, 0xfa00000000000000,
    0x9c40000000000000, 0xc350000000000000, 0xf424000000000000, 0x9896800000000000,
    0xbebc200000000000, 0xee6b280000000000, 0x9502f90000000000, 0xba43b74000000000,
    0xe8d4a51000000000, 0x9184e72a00000000, 0xb5e620f480000000, 0xe35fa931a0000000,
    0x8e1bc9bf04000000, 0xb1a2bc2ec5000000, 0xde0b6b3a76400000, 0x8ac7230489e80000,
    0xad78ebc5ac620000, 0xd8d726b7177a8000, 0x878678326eac9000, 0xa968163f0a57b400,
    0xd3c21bcecceda100, 0x84595161401484a0, 0xa56fa5b99019a5c8, 0xcecb8f27f4200f3a,
    0x813f3978f8940984, 0xa18f07d736b90be5, 0xc9f2c9cd04674ede, 0xfc6f7c4045812296,
    0x9dc5ada82b70b59d, 0xc5371912364ce305, 0xf684df56c3e01bc6, 0x9a130b963a6c115c,
    0xc097ce7bc90715b3, 0xf0bdc21abb48db20, 0x96769950b50d88f4, 0xbc143fa4e250eb31,
    0xeb194f8e1ae525fd,
    /* clang-format on */
};

__extension__ typedef unsigned __int128 wide;

static int exponent_of(int e)
{
    return ((e * 217706) >> 16) - 63; /* log2(10) = 3.3219..., right for all entries */
}

static const double exact[EXACT_MOST + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/*
 * The double nearest to w * 10^e; false where it cannot be told from 64 bits of the power. With w normalised, the product
 * lies between hi and hi + 2 in units of 2^64: that decides the rounding unless half a unit of the result is within.
 */
static bool scale(uint64_t w, int e, double *v)
{
    if (w < (uint64_t)1 << 53 && e >= -EXACT_MOST &&
        e <= EXACT_MOST) { /* both are doubles: rounded once */
        *v = e < 0 ? (double)w / exact[-e] : (double)w * exact[e];
        return true;
    }
    if (e < -POWER_MOST || e > POWER_MOST || w == 0)
        return false;
    const int zeros = __builtin_clzll(w);
    const wide product = (wide)(w << zeros) * power[e + POWER_MOST];
    const uint64_t hi = (uint64_t)(product >> 64);
    const int cut = (int)(hi >> 63) + 10; /* bits below the 53 that stay */
    const uint64_t rest = hi & (((uint64_t)1 << cut) - 1), half = (uint64_t)1 << (cut - 1);
    if (rest == half || rest + 1 == half)
        return false;
    const uint64_t kept = (hi >> cut) + (rest > half);
    const int exponent =
        exponent_of(e) - zeros + 64 + cut; /* of the last kept bit: a normal number */
    const union {
        uint64_t u;
        double d;
    } unit = {.u = (uint64_t)(exponent + 1023) << 52};
    *v = (double)kept * unit.d;
    return true;
}

/* ---- digits ----------------------------------------------------------------------------------- */

typedef struct digits {
    uint64_t w; /* of the first DIGITS_MOST significant ones */
    int n;      /* significant digits, cut or not */
    int cut;    /* of them not in w */
    bool any;
} digits;

static inline bool are_eight(uint64_t v)
{
    return ((v & 0xf0f0f0f0f0f0f0f0) == 0x3030303030303030) &&
           (((v + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) == 0x3030303030303030);
}

/* Eight digits at once: pairs, then fours, then eight. Little-endian. */
static inline uint64_t value_of_eight(uint64_t v)
{
    v -= 0x3030303030303030;
    v = v * 10 + (v >> 8);
    return (((v & 0x000000ff000000ff) * 0x000f424000000064) +
            (((v >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
           32;
}

static const char *take_digits(const char *s, const char *end, digits *d)
{
    const char *first = s;
    uint64_t w = d->w, eight;
    int n = d->n;
    unsigned digit;
    while (s < end && w == 0 &&
           (digit = (unsigned char)*s - '0') < 10) { /* zeros in front, and one digit */
        w = digit;
        n += digit > 0;
        s++;
    }
    while (n <= DIGITS_MOST - 8 && end - s >= 8) {
        memcpy(&eight, s, sizeof eight);
        if (!are_eight(eight))
            break;
        w = w * 100000000 + value_of_eight(eight);
        n += 8;
        s += 8;
    }
    for (; n < DIGITS_MOST && s < end && (digit = (unsigned char)*s - '0') < 10; s++, n++)
        w = w * 10 + digit;
    for (; n >= DIGITS_MOST && s < end && (unsigned char)(*s - '0') < 10; s++, n++)
        d->cut++;
    d->w = w;
    d->n = n;
    d->any |= s > first;
    return s;
}

/* The same number by strtod, of its digits without a point: exact, and of no locale. */
static double slowly(const char *s, const char *end, int e)
{
    enum {
        MOST = 800
    }; /* more digits decide nothing but which side of a tie: one stands for them */
    char text[MOST + 32];
    size_t n = 0;
    bool beyond = false;
    int64_t exponent = e;
    for (bool point = false; s < end; s++) {
        if (*s == '.') {
            point = true;
            continue;
        }
        if (*s < '0' || *s > '9')
            break;
        const bool takes = n < MOST && (n > 0 || *s != '0');
        if (takes)
            text[n++] = *s;
        else if (n > 0)
            beyond |= *s != '0';
        exponent -= point && (takes || n == 0);
        exponent += !point && !takes && n > 0;
    }
    if (n == 0)
        return 0;
    if (beyond)
        text[n - 1] =
            (char)(text[n - 1] == '0' || text[n - 1] == '5' ? text[n - 1] + 1 : text[n - 1]);
    exponent = exponent < -99999 ? -99999 : exponent > 99999 ? 99999 : exponent;
    dc_number_format(text + n, sizeof text - n, "e%d", (int)exponent);
    return dc_number_value(text);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static bool is_word(const char *s, const char *end, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(end - s) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((s[i] | 0x20) != word[i])
            return false;
    return true;
}

static dc_real_kind read_word(const char **at, const char *s, const char *end, bool minus,
                              double *v)
{
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (size_t i = 0; i < DC_COUNTOF(words); i++)
        if (is_word(s, end, words[i])) {
            *v = i == 2 ? (double)NAN : (double)INFINITY;
            *v = minus ? -*v : *v;
            *at = s + strlen(words[i]);
            return DC_REAL_FLOAT;
        }
    return DC_REAL_NONE;
}

/* "e-12" behind the digits; without digits it is no part of the number. */
static const char *take_exponent(const char *s, const char *end, int *e)
{
    const char *p = s + 1;
    if (s == end || (*s | 0x20) != 'e')
        return s;
    const bool minus = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end || (unsigned char)(*p - '0') > 9)
        return s;
    int value = 0;
    for (; p < end && (unsigned char)(*p - '0') < 10; p++)
        value = value < 1000000 ? value * 10 + (*p - '0') : value;
    *e = minus ? -value : value;
    return p;
}

/* Digits alone, which end at `end`: the number itself where 64 bits hold it. */
static dc_real_kind read_whole(const digits *d, const char *end, bool minus, int64_t *whole)
{
    uint64_t w = d->w;
    if (d->cut > 1 || (d->cut == 1 && (__builtin_mul_overflow(w, (uint64_t)10, &w) ||
                                       __builtin_add_overflow(w, (uint64_t)(end[-1] - '0'), &w))))
        return DC_REAL_LONG;
    const bool fits = w <= (uint64_t)INT64_MAX + minus;
    *whole = (int64_t)(minus ? 0 - w : w);
    return fits ? DC_REAL_WHOLE : minus ? DC_REAL_LONG : DC_REAL_UNSIGNED;
}

dc_real_kind dc_real_read(const char **at, const char *end, double *v, int64_t *whole)
{
    const char *s = *at;
    digits d = {0};
    int exponent = 0, behind = 0;
    const bool minus = s < end && *s == '-';
    s += s < end && (*s == '-' || *s == '+');
    const char *first = s;
    s = take_digits(s, end, &d);
    const char *digits_end = s;
    if (s < end && *s == '.') {
        const char *fraction = s + 1;
        s = take_digits(fraction, end, &d);
        behind = (int)(s - fraction);
    }
    if (!d.any)
        return read_word(at, first, end, minus, v);
    const char *stop = take_exponent(s, end, &exponent);
    *at = stop;
    dc_real_kind kind = DC_REAL_FLOAT;
    if (stop == digits_end) /* no point, no exponent */
        kind = read_whole(&d, digits_end, minus, whole);
    if (kind == DC_REAL_WHOLE || kind == DC_REAL_UNSIGNED) {
        *v = kind == DC_REAL_WHOLE ? (double)*whole : (double)(uint64_t)*whole;
        if (minus && *whole == 0)
            *v = -0.0;
        return kind;
    }
    if (d.w == 0)
        *v = 0;
    else if (d.cut > 0 || !scale(d.w, exponent - behind, v))
        *v = slowly(first, s, exponent);
    if (minus)
        *v = -*v;
    return kind;
}
