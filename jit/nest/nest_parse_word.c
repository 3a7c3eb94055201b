/* Tokens of the text of a nest, and the places of failures. */
#include "core/base/digits.h"
#include "jit/nest/nest_parse_impl.h"

#include <stdio.h>
#include <string.h>

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void dc_np_skip(dc_np *p)
{
    for (;; p->scan.at++) {
        if (*p->scan.at == '#')
            while (p->scan.at[1] != '\0' && p->scan.at[1] != '\n')
                p->scan.at++;
        else if (*p->scan.at == '\n' && p->open > 0)
            p->scan.line++;
        else if (*p->scan.at != ' ' && *p->scan.at != '\t' && *p->scan.at != '\r')
            return;
    }
}

size_t dc_np_word_length(const char *s)
{
    size_t n = 0;
    if (starts_name(*s))
        while (starts_name(s[n]) || dc_np_digit(s[n]) || s[n] == '.')
            n++;
    return n;
}

dc_np_token dc_np_word(dc_np *p)
{
    dc_np_skip(p);
    return (dc_np_token){p->scan.at, (int)dc_np_word_length(p->scan.at)};
}

bool dc_np_is(dc_np_token w, const char *text)
{
    return (size_t)w.n == strlen(text) && memcmp(w.s, text, (size_t)w.n) == 0;
}

char dc_np_behind(dc_np_token w)
{
    const char *s = w.s + w.n;
    while (*s == ' ' || *s == '\t')
        s++;
    return *s;
}

bool dc_np_expected(dc_np *p, const char *what)
{
    dc_np_skip(p);
    return dc_scan_expected(&p->scan, what) == DC_OK;
}

bool dc_np_accept_char(dc_np *p, char c)
{
    dc_np_skip(p);
    if (*p->scan.at != c)
        return false;
    p->scan.at++;
    return true;
}

bool dc_np_want_char(dc_np *p, char c)
{
    const char what[] = {'\'', c, '\'', '\0'};
    return dc_np_accept_char(p, c) || dc_np_expected(p, what);
}

bool dc_np_open(dc_np *p, char c)
{
    if (!dc_np_want_char(p, c))
        return false;
    p->open++;
    return true;
}

bool dc_np_close(dc_np *p, char c)
{
    if (!dc_np_want_char(p, c))
        return false;
    p->open--;
    return true;
}

bool dc_np_accept_word(dc_np *p, const char *text)
{
    const dc_np_token w = dc_np_word(p);
    if (!dc_np_is(w, text))
        return false;
    p->scan.at += w.n;
    return true;
}

bool dc_np_want_word(dc_np *p, const char *text)
{
    char what[20];
    snprintf(what, sizeof what, "'%s'", text);
    return dc_np_accept_word(p, text) || dc_np_expected(p, what);
}

bool dc_np_want_label(dc_np *p, const char *what, dc_np_token *out)
{
    *out = dc_np_word(p);
    if (out->n == 0)
        return dc_np_expected(p, what);
    p->scan.at += out->n;
    return true;
}

bool dc_np_want_name(dc_np *p, const char *what, char *out, size_t size)
{
    dc_np_skip(p);
    return dc_scan_name(&p->scan, what, out, size) == DC_OK;
}

bool dc_np_want_integer(dc_np *p, int64_t most, int64_t *out)
{
    dc_np_skip(p);
    uint64_t v = 0;
    const dc_digits d = dc_digits_unsigned(&p->scan.at, NULL, (uint64_t)most, &v);
    *out = (int64_t)v;
    if (d == DC_DIGITS_NONE)
        return dc_np_expected(p, "a number");
    if (d == DC_DIGITS_LARGE)
        return dc_np_refuse(p, "a number beyond %lld", (long long)most);
    return d == DC_DIGITS_OK || dc_np_refuse(p, "a number %s", dc_digits_why(d));
}

bool dc_np_want_dtype(dc_np *p, dc_dtype *out)
{
    const dc_np_token w = dc_np_word(p);
    if (!dc_dtype_find(w.s, (size_t)w.n, out))
        return dc_np_expected(p, "a dtype");
    p->scan.at += w.n;
    return true;
}

bool dc_np_next_line(dc_np *p)
{
    dc_np_skip(p);
    if (*p->scan.at != '\n' && *p->scan.at != '\0')
        return dc_np_expected(p, "the end of the line");
    while (*p->scan.at == '\n') {
        p->scan.line++;
        const char *start = ++p->scan.at;
        while (*p->scan.at == ' ')
            p->scan.at++;
        p->indent = p->scan.at - start;
        if (*p->scan.at == '\t')
            return dc_np_refuse(p, "indented by a tab; spaces only");
        dc_np_skip(p);
    }
    return true;
}
