#include "core/base/digits.h"

#include <string.h>

static bool is_digit(const char *s, const char *end)
{
    return s != end && *s >= '0' && *s <= '9';
}

dc_digits dc_digits_unsigned(const char **at, const char *end, uint64_t most, uint64_t *out)
{
    const char *s = *at;
    uint64_t v = 0;
    if (!is_digit(s, end))
        return DC_DIGITS_NONE;
    if (*s == '0' && is_digit(s + 1, end))
        return DC_DIGITS_ZEROS;
    for (; is_digit(s, end); s++) {
        const uint64_t digit = (uint64_t)(*s - '0');
        if (digit > most || v > (most - digit) / 10)
            return DC_DIGITS_LARGE;
        v = v * 10 + digit;
    }
    *at = s;
    *out = v;
    return DC_DIGITS_OK;
}

dc_digits dc_digits_signed(const char **at, const char *end, int64_t least, int64_t most,
                           int64_t *out)
{
    const char *s = *at;
    const bool negative = s != end && *s == '-';
    const uint64_t bound = negative   ? least < 0 ? 0 - (uint64_t)least : 0
                           : most > 0 ? (uint64_t)most
                                      : 0;
    uint64_t v;
    s += negative;
    if (negative && is_digit(s, end) && *s == '0')
        return DC_DIGITS_ZEROS;
    const dc_digits d = dc_digits_unsigned(&s, end, bound, &v);
    if (d != DC_DIGITS_OK)
        return d;
    const int64_t value = v > INT64_MAX ? INT64_MIN : negative ? -(int64_t)v : (int64_t)v;
    if (value < least || value > most)
        return DC_DIGITS_LARGE;
    *at = s;
    *out = value;
    return DC_DIGITS_OK;
}

static int hex_digit(const char *s, const char *end)
{
    if (is_digit(s, end))
        return *s - '0';
    return s != end && *s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : -1;
}

dc_digits dc_digits_hex(const char **at, const char *end, uint64_t *out)
{
    const char *s = *at;
    uint64_t v = 0;
    for (int digit; (digit = hex_digit(s, end)) >= 0; s++) {
        if (v >> 60 != 0)
            return DC_DIGITS_LARGE;
        v = v << 4 | (uint64_t)digit;
    }
    if (s == *at)
        return DC_DIGITS_NONE;
    *at = s;
    *out = v;
    return DC_DIGITS_OK;
}

bool dc_digits_whole(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t v;
    if (dc_digits_unsigned(&text, NULL, most, &v) != DC_DIGITS_OK || *text != '\0')
        return false;
    *out = v;
    return true;
}

bool dc_digits_after(const char **at, const char *word, uint32_t most, uint32_t *out)
{
    const size_t n = strlen(word);
    uint64_t v;
    if (strncmp(*at, word, n) != 0 || (*at)[n] != ' ')
        return false;
    const char *s = *at + n + 1;
    if (dc_digits_unsigned(&s, NULL, most, &v) != DC_DIGITS_OK)
        return false;
    *at = s;
    *out = (uint32_t)v;
    return true;
}

const char *dc_digits_why(dc_digits d)
{
    switch (d) {
    case DC_DIGITS_OK:
        break;
    case DC_DIGITS_NONE:
        return "has no digits";
    case DC_DIGITS_ZEROS:
        return "has leading zeros";
    case DC_DIGITS_LARGE:
        return "is too large";
    }
    return "";
}
