/*
 * Patterns: where a text is cut. Those of GPT-2 and of cl100k, which most byte-level tokenizers use, are written out here;
 * any other regular expression is libpcre2's (regex.c).
 */
#define _GNU_SOURCE /* memmem */
#include "extras/llm/tokenizer/impl.h"

#include <stdio.h>
#include <string.h>

/* ---- the known ones --------------------------------------------------------------------------- */

enum { LETTER = 1, NUMBER = 2, SPACE = 4, OTHER = 8, END = 16 };

typedef struct reader {
    const dc_unicode *u;
    const char *s;
    size_t n;
} reader;

/* What is at a place, and how long it is. */
static inline int kind_at(const reader *r, size_t at, size_t *length)
{
    if (at >= r->n)
        return END;
    const uint32_t row = dc_unicode_row(r->u, dc_char_at(r->s, r->n, at, length));
    return dc_unicode_letter(row)   ? LETTER
           : dc_unicode_number(row) ? NUMBER
           : row & DC_UC_SPACE      ? SPACE
                                    : OTHER;
}

static size_t run_of(const reader *r, size_t at, int kind)
{
    size_t length;
    while (kind_at(r, at, &length) == kind)
        at += length;
    return at;
}

/* Behind 's, 't, 're, 've, 'm, 'll, 'd at a place; the place itself where none is there. */
static size_t contraction(const reader *r, size_t at, bool fold)
{
    if (at + 1 >= r->n || r->s[at] != '\'')
        return at;
    const char *s = r->s + at + 1;
    const size_t n = r->n - at - 1;
    const char bit = fold ? 0x20 : 0;
    const char a = (char)(*s | bit), b = n > 1 ? (char)(s[1] | bit) : '\0';
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return at + 2;
    if (fold && n > 1 && memcmp(s, "\xc5\xbf", 2) == 0) /* the long s folds to s */
        return at + 3;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return at + 3;
    return at;
}

/* \s+(?!\S)|\s+ */
static size_t blanks(const reader *r, size_t at)
{
    size_t before = at, length = 0, end = at;
    while (kind_at(r, end, &length) == SPACE) {
        before = end;
        end += length;
    }
    return end < r->n && before > at ? before : end;
}

static size_t gpt2(const reader *r, size_t at)
{
    size_t length = 0, end = contraction(r, at, false);
    if (end > at)
        return end;
    const size_t from = at + (r->s[at] == ' ');
    const int kind = kind_at(r, from, &length);
    if (kind != SPACE && kind != END)
        return run_of(r, from + length, kind);
    return blanks(r, at);
}

static bool is_line_end(const reader *r, size_t at)
{
    return at < r->n && (r->s[at] == '\r' || r->s[at] == '\n');
}

/* \s*[\r\n]+ or blanks */
static size_t lines(const reader *r, size_t at)
{
    size_t end = at, length, behind = at;
    while (kind_at(r, end, &length) == SPACE) {
        if (is_line_end(r, end))
            behind = end + 1;
        end += length;
    }
    return behind > at ? behind : blanks(r, at);
}

static size_t cl100k(const reader *r, size_t at, int digits)
{
    size_t length = 0, next = 0, end = contraction(r, at, true);
    if (end > at)
        return end;
    const int kind = kind_at(r, at, &length), then = kind_at(r, at + length, &next);
    if (kind == LETTER)
        return run_of(r, at + length, LETTER);
    if (kind != NUMBER && then == LETTER && !is_line_end(r, at))
        return run_of(r, at + length, LETTER);
    if (kind == NUMBER) {
        for (end = at; digits > 0 && kind_at(r, end, &length) == NUMBER; digits--)
            end += length;
        return end;
    }
    if (kind == OTHER || (r->s[at] == ' ' && then == OTHER)) {
        end = run_of(r, at + length, OTHER);
        while (is_line_end(r, end))
            end++;
        return end;
    }
    return lines(r, at);
}

static bool known(dc_span regex, dc_pattern *out)
{
    static const char contractions[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
                      letters[] = "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|",
                      rest[] = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const struct {
        const char *numbers;
        int digits;
    } of[] = {{"\\p{N}", 1}, {"\\p{N}{1,2}", 2}, {"\\p{N}{1,3}", 3}};
    static const char gpt[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    char text[256];
    if (regex.n == sizeof gpt - 1 && memcmp(regex.at, gpt, regex.n) == 0) {
        out->kind = DC_PATTERN_GPT2;
        return true;
    }
    for (size_t i = 0; i < DC_COUNTOF(of); i++) {
        const int n =
            snprintf(text, sizeof text, "%s%s%s%s", contractions, letters, of[i].numbers, rest);
        if (regex.n == (size_t)n && memcmp(regex.at, text, regex.n) == 0) {
            out->kind = DC_PATTERN_CL100K;
            out->digits = of[i].digits;
            return true;
        }
    }
    return false;
}

dc_status dc_pattern_regex(dc_tokenizer *t, dc_job *j, const char *name, dc_span regex,
                           dc_pattern *out)
{
    if (known(regex, out))
        return DC_OK;
    out->kind = DC_PATTERN_REGEX;
    return dc_regex_new(t, j, name, regex, &out->regex);
}

bool dc_pattern_next(dc_tokenizer *t, const dc_pattern *p, const char *s, size_t n, size_t at,
                     bool behind, size_t *from, size_t *to)
{
    if (p->kind == DC_PATTERN_REGEX)
        return dc_regex_next(t, p->regex, s, n, at, behind, from, to);
    const reader r = {t->u, s, n};
    if (p->kind == DC_PATTERN_LITERAL) {
        const char *found = at < n ? memmem(s + at, n - at, p->literal.at, p->literal.n) : NULL;
        if (found == NULL)
            return false;
        *from = (size_t)(found - s);
        *to = *from + p->literal.n;
        return true;
    }
    if (at >= n)
        return false;
    *from = at;
    *to = p->kind == DC_PATTERN_GPT2 ? gpt2(&r, at) : cl100k(&r, at, p->digits);
    return true;
}
