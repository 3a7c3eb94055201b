/* core/base/digits.c: what is a number and what is none, up to the last value that fits. */
#include "core/base/digits.h"

#include "tests/t.h"

static dc_digits read_unsigned(const char *text, uint64_t most, uint64_t *out, size_t *used)
{
    const char *at = text;
    const dc_digits d = dc_digits_unsigned(&at, NULL, most, out);
    *used = (size_t)(at - text);
    return d;
}

static void unsigned_is(const char *text, uint64_t most, uint64_t value, size_t length)
{
    uint64_t v = 99;
    size_t used;
    CHECK_EQ(read_unsigned(text, most, &v, &used), DC_DIGITS_OK);
    CHECK(v == value && used == length);
}

static void unsigned_not(const char *text, uint64_t most, dc_digits why)
{
    uint64_t v = 99;
    size_t used;
    CHECK_EQ(read_unsigned(text, most, &v, &used), why);
    CHECK(v == 99 && used == 0);
}

static void test_unsigned(void)
{
    unsigned_is("0", 0, 0, 1);
    unsigned_is("7 x", 9, 7, 1);
    unsigned_is("10", 10, 10, 2);
    unsigned_is("0x10", 10, 0, 1);
    unsigned_is("1e3", 10, 1, 1);
    unsigned_is("4294967295,", UINT32_MAX, UINT32_MAX, 10);
    unsigned_is("18446744073709551615", UINT64_MAX, UINT64_MAX, 20);
    static const char *const none[] = {"", " 1", "\t1", "\n1", "+1", "-1", "a", "-", "x1", "\xb2"};
    for (size_t i = 0; i < DC_COUNTOF(none); i++)
        unsigned_not(none[i], UINT64_MAX, DC_DIGITS_NONE);
    unsigned_not("00", 10, DC_DIGITS_ZEROS);
    unsigned_not("01", 10, DC_DIGITS_ZEROS);
    unsigned_not("1", 0, DC_DIGITS_LARGE);
    unsigned_not("11", 10, DC_DIGITS_LARGE);
    unsigned_not("9", 8, DC_DIGITS_LARGE);
    unsigned_not("4294967296", UINT32_MAX, DC_DIGITS_LARGE);
    unsigned_not("18446744073709551616", UINT64_MAX, DC_DIGITS_LARGE);
    unsigned_not("18446744073709551615", UINT64_MAX - 1, DC_DIGITS_LARGE);
    unsigned_not("99999999999999999999999999999999", UINT64_MAX, DC_DIGITS_LARGE);
}

static dc_digits read_signed(const char *text, int64_t least, int64_t most, int64_t *out)
{
    const char *at = text;
    const dc_digits d = dc_digits_signed(&at, NULL, least, most, out);
    CHECK(d == DC_DIGITS_OK ? *at == '\0' : at == text);
    return d;
}

static void signed_is(const char *text, int64_t least, int64_t most, int64_t value)
{
    int64_t v = 99;
    CHECK_EQ(read_signed(text, least, most, &v), DC_DIGITS_OK);
    CHECK_EQ(v, value);
}

static void signed_not(const char *text, int64_t least, int64_t most, dc_digits why)
{
    int64_t v = 99;
    CHECK_EQ(read_signed(text, least, most, &v), why);
    CHECK_EQ(v, 99);
}

static void test_signed(void)
{
    signed_is("0", -1, 1, 0);
    signed_is("-12", -12, 0, -12);
    signed_is("9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX);
    signed_is("-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN);
    signed_is("-9223372036854775807", INT64_MIN, INT64_MAX, -INT64_MAX);
    signed_is("5", 5, 5, 5);
    signed_is("-5", -5, -5, -5);
    signed_not("9223372036854775808", INT64_MIN, INT64_MAX, DC_DIGITS_LARGE);
    signed_not("-9223372036854775809", INT64_MIN, INT64_MAX, DC_DIGITS_LARGE);
    signed_not("-13", -12, 0, DC_DIGITS_LARGE);
    signed_not("1", -12, 0, DC_DIGITS_LARGE);
    signed_not("-1", 0, 5, DC_DIGITS_LARGE);
    signed_not("4", 5, 9, DC_DIGITS_LARGE);
    signed_not("0", -9, -5, DC_DIGITS_LARGE);
    signed_not("-0", -9, 9, DC_DIGITS_ZEROS);
    signed_not("-07", -9, 9, DC_DIGITS_ZEROS);
    signed_not("--7", -9, 9, DC_DIGITS_NONE);
    signed_not("- 7", -9, 9, DC_DIGITS_NONE);
    signed_not("+7", -9, 9, DC_DIGITS_NONE);
    signed_not("-", -9, 9, DC_DIGITS_NONE);
}

/* A text that ends by its length: no byte behind it is looked at, and a sign is no end. */
static void test_bounded(void)
{
    static const char text[] = {'1', '2', '3'}, minus[] = {'-'};
    const char *at = text;
    uint64_t v;
    int64_t s;
    CHECK_EQ(dc_digits_unsigned(&at, text + 2, 1000, &v), DC_DIGITS_OK);
    CHECK(v == 12 && at == text + 2);
    CHECK_EQ(dc_digits_unsigned(&at, text + 2, 1000, &v), DC_DIGITS_NONE);
    at = text;
    CHECK_EQ(dc_digits_signed(&at, text + 3, 0, 1000, &s), DC_DIGITS_OK);
    CHECK(s == 123 && at == text + 3);
    at = minus;
    CHECK_EQ(dc_digits_signed(&at, minus + 1, -9, 9, &s), DC_DIGITS_NONE);
    CHECK_EQ(dc_digits_signed(&at, minus, -9, 9, &s), DC_DIGITS_NONE);
}

static void test_hex(void)
{
    static const char ends[] = {'f', 'f', 'f'};
    const char *at = "000ff,";
    uint64_t v = 0;
    CHECK(dc_digits_hex(&at, NULL, &v) == DC_DIGITS_OK && v == 0xff && *at == ',');
    CHECK(dc_digits_hex(&at, NULL, &v) == DC_DIGITS_NONE && *at == ',');
    at = "0ffffffffffffffff";
    CHECK(dc_digits_hex(&at, NULL, &v) == DC_DIGITS_OK && v == UINT64_MAX && *at == '\0');
    at = "10000000000000000";
    CHECK(dc_digits_hex(&at, NULL, &v) == DC_DIGITS_LARGE && v == UINT64_MAX && *at == '1');
    at = "F";
    CHECK(dc_digits_hex(&at, NULL, &v) == DC_DIGITS_NONE);
    at = ends;
    CHECK(dc_digits_hex(&at, ends + 2, &v) == DC_DIGITS_OK && v == 0xff && at == ends + 2);
}

static void test_words(void)
{
    const char *at = "cells 12 results 3";
    uint64_t v = 0;
    uint32_t n = 0;
    CHECK(dc_digits_whole("0", 9, &v) && v == 0);
    CHECK(dc_digits_whole("12", 12, &v) && v == 12);
    CHECK(!dc_digits_whole("12 ", 12, &v) && !dc_digits_whole("", 12, &v));
    CHECK(!dc_digits_whole("13", 12, &v) && v == 12);
    CHECK(dc_digits_after(&at, "cells", 99, &n) && n == 12);
    CHECK_STR(at, " results 3");
    CHECK(!dc_digits_after(&at, "results", 99, &n) && n == 12);
    at++;
    CHECK(!dc_digits_after(&at, "results", 2, &n) && !dc_digits_after(&at, "result", 9, &n));
    CHECK(dc_digits_after(&at, "results", 3, &n) && n == 3 && *at == '\0');
    at = "cells  1";
    CHECK(!dc_digits_after(&at, "cells", 9, &n));
    CHECK_STR(dc_digits_why(DC_DIGITS_LARGE), "is too large");
    CHECK_STR(dc_digits_why(DC_DIGITS_OK), "");
}

int main(void)
{
    test_unsigned();
    test_signed();
    test_bounded();
    test_hex();
    test_words();
    return t_done();
}
