#include "formats/json.h"

#include "core/base/digits.h"

#include <stdio.h>
#include <string.h>

void dc_json_init(dc_json *r, char *text, size_t n)
{
    *r = (dc_json){.text = text, .n = n};
}

static bool fail_at(dc_json *r, size_t at, const char *what)
{
    if (r->why[0] == '\0')
        snprintf(r->why, sizeof r->why, "at byte %zu: %s", at, what);
    return false;
}

/* "'{' expected, not ..." what comes. */
static bool expected(dc_json *r, const char *what)
{
    char text[64];
    const unsigned char c = r->at < r->n ? (unsigned char)r->text[r->at] : 0;
    if (r->at >= r->n)
        snprintf(text, sizeof text, "%s expected, not the end", what);
    else if (c < ' ' || c > '~')
        snprintf(text, sizeof text, "%s expected, not byte 0x%02x", what, c);
    else
        snprintf(text, sizeof text, "%s expected, not '%c'", what, c);
    return fail_at(r, r->at, text);
}

static void skip_blanks(dc_json *r)
{
    while (r->at < r->n && memchr(" \t\n\r", r->text[r->at], 4) != NULL)
        r->at++;
}

bool dc_json_accept(dc_json *r, char sign)
{
    skip_blanks(r);
    if (r->at >= r->n || r->text[r->at] != sign)
        return false;
    r->at++;
    return true;
}

bool dc_json_expect(dc_json *r, char sign)
{
    const char what[] = {'\'', sign, '\'', '\0'};
    return dc_json_accept(r, sign) || expected(r, what);
}

bool dc_json_end(dc_json *r)
{
    skip_blanks(r);
    return r->at == r->n || expected(r, "the end");
}

bool dc_json_whole(dc_json *r, int64_t *out)
{
    skip_blanks(r);
    const size_t from = r->at;
    const char *at = r->text + from;
    uint64_t v = 0;
    switch (dc_digits_unsigned(&at, r->text + r->n, INT64_MAX, &v)) {
    case DC_DIGITS_OK:
        break;
    case DC_DIGITS_NONE:
        return expected(r, "a whole number");
    case DC_DIGITS_ZEROS:
        return fail_at(r, from, "a number with leading zeros");
    case DC_DIGITS_LARGE:
        return fail_at(r, from, "a number beyond 2^63");
    }
    r->at = (size_t)(at - r->text);
    if (r->at < r->n && memchr(".eE", r->text[r->at], 3) != NULL)
        return fail_at(r, from, "a whole number expected, not a fraction");
    *out = (int64_t)v;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of \uXXXX; -1 where they are none. */
static long read_hex(dc_json *r)
{
    long v = 0;
    if (r->n - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(r->text[r->at++]);
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* Writes a code point as UTF-8, which takes fewer bytes than its escape did. */
static char *put_utf8(char *to, long c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Behind "\u". */
static bool unicode_escape(dc_json *r, char **to)
{
    const size_t from = r->at;
    long c = read_hex(r);
    if (c < 0)
        return fail_at(r, from, "four hexadecimal digits expected");
    if (c == 0)
        return fail_at(r, from, "a zero byte in a string");
    if (c >= 0xd800 && c < 0xe000) {
        const bool pair =
            c < 0xdc00 && r->n - r->at >= 6 && r->text[r->at] == '\\' && r->text[r->at + 1] == 'u';
        r->at += pair ? 2 : 0;
        const long low = pair ? read_hex(r) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return fail_at(r, from, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *to = put_utf8(*to, c);
    return true;
}

static bool escape(dc_json *r, char **to)
{
    static const char sign[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->n)
        return expected(r, "an escape");
    const char c = r->text[r->at];
    const char *found = memchr(sign, c, sizeof sign - 1);
    if (c != 'u' && found == NULL)
        return expected(r, "an escape");
    r->at++;
    if (c == 'u')
        return unicode_escape(r, to);
    *(*to)++ = is[found - sign];
    return true;
}

/* Length of the UTF-8 sequence at s, of at most n bytes; 0 where it is none (overlong, surrogate). */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char first, last, low, high; /* of byte 1; of byte 2 */
        uint8_t length;
    } row[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
               {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
               {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
               {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < DC_COUNTOF(row); i++) {
        if (s[0] < row[i].first || s[0] > row[i].last)
            continue;
        if (n < row[i].length || s[1] < row[i].low || s[1] > row[i].high)
            return 0;
        for (size_t k = 2; k < row[i].length; k++)
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        return row[i].length;
    }
    return 0;
}

static bool take_utf8(dc_json *r, char **to)
{
    const size_t n = utf8_length((const unsigned char *)r->text + r->at, r->n - r->at);
    if (n == 0)
        return fail_at(r, r->at, "a string that is not UTF-8");
    memmove(*to, r->text + r->at, n);
    *to += n;
    r->at += n;
    return true;
}

bool dc_json_string(dc_json *r, char **out)
{
    skip_blanks(r);
    if (r->at >= r->n || r->text[r->at] != '"')
        return expected(r, "a string");
    char *to = r->text + ++r->at;
    *out = to;
    while (r->at < r->n && r->text[r->at] != '"') {
        const unsigned char c = (unsigned char)r->text[r->at];
        if (c < ' ')
            return fail_at(r, r->at, "a control character in a string");
        if (c >= 0x80) {
            if (!take_utf8(r, &to))
                return false;
        } else if (c == '\\') {
            r->at++;
            if (!escape(r, &to))
                return false;
        } else {
            *to++ = (char)c;
            r->at++;
        }
    }
    if (r->at >= r->n)
        return expected(r, "the end of a string");
    r->at++;
    *to = '\0'; /* at most where the closing quote stood */
    return true;
}

bool dc_json_print(dc_text *t, const char *s)
{
    size_t left = strlen(s);
    dc_text_puts(t, "\"");
    for (size_t n; left > 0; s += n, left -= n) {
        const unsigned char c = (unsigned char)*s;
        n = c < 0x80 ? 1 : utf8_length((const unsigned char *)s, left);
        if (n == 0)
            return false;
        if (c < ' ' || c == 0x7f)
            dc_text_printf(t, "\\u%04x", c);
        else
            dc_text_printf(t, "%s%.*s", c == '"' || c == '\\' ? "\\" : "", (int)n, s);
    }
    dc_text_puts(t, "\"");
    return true;
}

/* ---- what is of no interest ------------------------------------------------------------------ */

char dc_json_peek(dc_json *r)
{
    skip_blanks(r);
    return r->at < r->n ? r->text[r->at] : '\0';
}

bool dc_json_try_whole(dc_json *r, int64_t *out)
{
    dc_json copy = *r;
    if (!dc_json_whole(&copy, out))
        return false;
    *r = copy;
    return true;
}

static size_t skip_digits(dc_json *r)
{
    const size_t from = r->at;
    while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9')
        r->at++;
    return r->at - from;
}

static bool skip_sign(dc_json *r, const char *signs)
{
    const bool there = r->at < r->n && strchr(signs, r->text[r->at]) != NULL && r->text[r->at] != 0;
    r->at += there;
    return there;
}

static bool skip_number(dc_json *r)
{
    const size_t from = r->at;
    skip_sign(r, "-");
    bool ok = skip_digits(r) > 0;
    if (ok && skip_sign(r, "."))
        ok = skip_digits(r) > 0;
    if (ok && skip_sign(r, "eE")) {
        skip_sign(r, "+-");
        ok = skip_digits(r) > 0;
    }
    return ok || fail_at(r, from, "a number without digits");
}

static bool skip_word(dc_json *r)
{
    static const char *const word[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        const size_t n = strlen(word[i]);
        if (r->n - r->at >= n && memcmp(r->text + r->at, word[i], n) == 0) {
            r->at += n;
            return true;
        }
    }
    return expected(r, "a value");
}

static bool skip_value(dc_json *r, int depth)
{
    char *text;
    const char begin = dc_json_peek(r), end = begin == '{' ? '}' : ']';
    if (begin == '"')
        return dc_json_string(r, &text);
    if (begin != '{' && begin != '[')
        return begin == '-' || (begin >= '0' && begin <= '9') ? skip_number(r) : skip_word(r);
    if (depth == 32)
        return fail_at(r, r->at, "nested more than 32 deep");
    r->at++;
    if (dc_json_accept(r, end))
        return true;
    do {
        if (begin == '{' && (!dc_json_string(r, &text) || !dc_json_expect(r, ':')))
            return false;
        if (!skip_value(r, depth + 1))
            return false;
    } while (dc_json_accept(r, ','));
    return dc_json_expect(r, end);
}

bool dc_json_skip(dc_json *r)
{
    return skip_value(r, 0);
}
