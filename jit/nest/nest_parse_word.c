/* Tokens of the text of a nest, and the places of failures. */
#include "core/base/digits.h"
#include "jit/nest/nest_parse_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool dc_np_refuse(dc_np *p, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!p->failed)
        dc_fail(p->j, DC_ERR_PARSE, &(dc_fact){.num = {p->line}, .word = {text}});
    p->failed = true;
    return false;
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void dc_np_skip(dc_np *p)
{
    for (;; p->at++) {
        if (*p->at == '#')
            while (p->at[1] != '\0' && p->at[1] != '\n')
                p->at++;
        else if (*p->at == '\n' && p->open > 0)
            p->line++;
        else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r')
            return;
    }
}

dc_np_token dc_np_word(dc_np *p)
{
    dc_np_skip(p);
    dc_np_token w = {p->at, 0};
    if (starts_name(*w.s))
        while (starts_name(w.s[w.n]) || dc_np_digit(w.s[w.n]) || w.s[w.n] == '.')
            w.n++;
    return w;
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
    int n = 0;
    dc_np_skip(p);
    while (n < 16 && p->at[n] > ' ' && p->at[n] < 0x7f)
        n++;
    if (n > 0)
        return dc_np_refuse(p, "%s expected, not '%.*s'", what, n, p->at);
    return dc_np_refuse(p, "%s expected, not %s", what,
                        *p->at == '\n'   ? "the end of the line"
                        : *p->at == '\0' ? "the end of the text"
                                         : "bytes that are no text");
}

bool dc_np_accept_char(dc_np *p, char c)
{
    dc_np_skip(p);
    if (*p->at != c)
        return false;
    p->at++;
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
    p->at += w.n;
    return true;
}

bool dc_np_want_word(dc_np *p, const char *text)
{
    char what[20];
    snprintf(what, sizeof what, "'%s'", text);
    return dc_np_accept_word(p, text) || dc_np_expected(p, what);
}

bool dc_np_want_name(dc_np *p, const char *what, char *out, size_t size)
{
    const dc_np_token w = dc_np_word(p);
    if (w.n == 0)
        return dc_np_expected(p, what);
    if ((size_t)w.n >= size)
        return dc_np_refuse(p, "%s has more than %d letters", what, (int)size - 1);
    memcpy(out, w.s, (size_t)w.n);
    out[w.n] = '\0';
    p->at += w.n;
    return true;
}

bool dc_np_want_integer(dc_np *p, int64_t most, int64_t *out)
{
    dc_np_skip(p);
    uint64_t v = 0;
    const dc_digits d = dc_digits_unsigned(&p->at, NULL, (uint64_t)most, &v);
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
    p->at += w.n;
    return true;
}

bool dc_np_next_line(dc_np *p)
{
    dc_np_skip(p);
    if (*p->at != '\n' && *p->at != '\0')
        return dc_np_expected(p, "the end of the line");
    while (*p->at == '\n') {
        p->line++;
        const char *start = ++p->at;
        while (*p->at == ' ')
            p->at++;
        p->indent = p->at - start;
        if (*p->at == '\t')
            return dc_np_refuse(p, "indented by a tab; spaces only");
        dc_np_skip(p);
    }
    return true;
}
