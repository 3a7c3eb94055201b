/* core/base/real.c: every form of a number, and the last bit of random ones beside strtod. */
#include "core/base/real.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/t.h"

static uint64_t state = 20261126;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* The text is one number, the one that strtod gives. */
static bool agrees(const char *text)
{
    const char *at = text;
    double v = 0;
    int64_t whole = 0;
    const dc_real_kind kind = dc_real_read(&at, text + strlen(text), &v, &whole);
    const bool ok = kind != DC_REAL_NONE && *at == '\0' && same_bits(v, strtod(text, NULL)) &&
                    (kind != DC_REAL_WHOLE || (double)whole == v) &&
                    (kind != DC_REAL_UNSIGNED || (double)(uint64_t)whole == v);
    if (!ok)
        printf("'%s' is read as %.17g\n", text, v);
    return ok;
}

static void test_forms(void)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+7",
        "00012",
        "1.",
        ".5",
        "-.5e1",
        "1e5",
        "1E+05",
        "1e-7",
        "123456789012345678",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "0.1",
        "0.30000000000000004",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740992.9999999999999999999",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4e-324",
        "1e-400",
        "1e400",
        "-1e400",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
        "977"
        "587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854"
        "845"
        "817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711"
        "559"
        "699508093042880177904174497791.9999",
        "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "1000000000000000000000000000000000000000e-40",
        "5e-1000000000",
        "0e999999999",
        "6929495644600919.5",
        "3.518437208883201171875e13"};
    for (size_t i = 0; i < DC_COUNTOF(texts); i++)
        CHECK(agrees(texts[i]));
}

static void test_words(void)
{
    double v;
    int64_t whole;
    const char *text = "-INFinity,", *at = text;
    CHECK_EQ(dc_real_read(&at, text + 10, &v, &whole), DC_REAL_FLOAT);
    CHECK(isinf(v) && v < 0 && *at == ',');
    at = text = "inf";
    CHECK_EQ(dc_real_read(&at, text + 3, &v, &whole), DC_REAL_FLOAT);
    CHECK(isinf(v) && v > 0 && *at == '\0');
    at = text = "NaN";
    CHECK_EQ(dc_real_read(&at, text + 3, &v, &whole), DC_REAL_FLOAT);
    CHECK(isnan(v));
    static const char *const none[] = {"", "-", "+", ".", "e5", "x", "-.", "in", "na", " 1"};
    for (size_t i = 0; i < DC_COUNTOF(none); i++) {
        at = none[i];
        CHECK_EQ(dc_real_read(&at, at + strlen(at), &v, &whole), DC_REAL_NONE);
        CHECK(at == none[i]);
    }
}

/* Where a number ends: what is no part of it stays. */
static void test_ends(void)
{
    static const struct {
        const char *text;
        size_t used;
        dc_real_kind kind;
    } rows[] = {{"12,3", 2, DC_REAL_WHOLE},    {"12.5.3", 4, DC_REAL_FLOAT},
                {"1e", 1, DC_REAL_WHOLE},      {"1e+", 1, DC_REAL_WHOLE},
                {"1.e5x", 4, DC_REAL_FLOAT},   {"12345678,", 8, DC_REAL_WHOLE},
                {"1-2", 1, DC_REAL_WHOLE},     {"123456789/", 9, DC_REAL_WHOLE},
                {"1234567:", 7, DC_REAL_WHOLE}};
    double v;
    int64_t whole;
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const char *at = rows[i].text;
        CHECK_EQ(dc_real_read(&at, at + strlen(at), &v, &whole), rows[i].kind);
        CHECK_EQ(at - rows[i].text, rows[i].used);
    }
    const char *at = rows[0].text;
    CHECK_EQ(dc_real_read(&at, at + 1, &v, &whole), DC_REAL_WHOLE); /* not past the end */
    CHECK_EQ(whole, 1);
}

/* Digits alone: in 64 bits, all of them. */
static void test_whole(void)
{
    static const struct {
        const char *text;
        dc_real_kind kind;
        uint64_t bits;
    } rows[] = {{"9223372036854775807", DC_REAL_WHOLE, INT64_MAX},
                {"-9223372036854775807", DC_REAL_WHOLE, (uint64_t)-INT64_MAX},
                {"-9223372036854775808", DC_REAL_WHOLE, (uint64_t)INT64_MIN},
                {"-9223372036854775809", DC_REAL_LONG, 0},
                {"9223372036854775808", DC_REAL_UNSIGNED, (uint64_t)1 << 63},
                {"9999999999999999999", DC_REAL_UNSIGNED, 9999999999999999999u},
                {"18446744073709551609", DC_REAL_UNSIGNED, UINT64_MAX - 6},
                {"18446744073709551615", DC_REAL_UNSIGNED, UINT64_MAX},
                {"0000018446744073709551615", DC_REAL_UNSIGNED, UINT64_MAX},
                {"18446744073709551616", DC_REAL_LONG, 0},
                {"18446744073709551620", DC_REAL_LONG, 0},
                {"99999999999999999999", DC_REAL_LONG, 0},
                {"100000000000000000000", DC_REAL_LONG, 0},
                {"-18446744073709551615", DC_REAL_LONG, 0},
                {"18446744073709551615.", DC_REAL_FLOAT, 0},
                {"18446744073709551615e0", DC_REAL_FLOAT, 0}};
    for (size_t i = 0; i < DC_COUNTOF(rows); i++) {
        const char *at = rows[i].text;
        double v;
        int64_t whole = 0;
        CHECK(agrees(at));
        CHECK_EQ(dc_real_read(&at, at + strlen(at), &v, &whole), rows[i].kind);
        CHECK(rows[i].bits == 0 || (uint64_t)whole == rows[i].bits);
    }
}

static void test_random(void)
{
    char text[80];
    long wrong = 0;
    for (int i = 0; i < 300000; i++) {
        const uint64_t bits = next(), digits = next();
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        switch (i % 4) {
        case 0:
            snprintf(text, sizeof text, "%.*g", (int)(digits % 20), v);
            break;
        case 1: /* of moderate size, as in files */
            snprintf(text, sizeof text, "%.17g", (double)(int64_t)bits / 1e15);
            break;
        case 2:
            snprintf(text, sizeof text, "%" PRIu64 "e%d", digits >> digits % 50,
                     (int)(bits % 90) - 45);
            break;
        default: /* half way between two doubles, or beside it */
            memcpy(&v, &(uint64_t){(uint64_t)(1023 + bits % 40) << 52 | digits >> 12}, sizeof v);
            snprintf(text, sizeof text, "%.*f", 16 + (int)(bits % 20),
                     v + (nextafter(v, 1e9) - v) / 2);
        }
        wrong += !agrees(text);
    }
    CHECK_EQ(wrong, 0);
}

int main(void)
{
    test_forms();
    test_words();
    test_ends();
    test_whole();
    test_random();
    return t_done();
}
