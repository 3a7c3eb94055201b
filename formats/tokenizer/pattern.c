/*
 * Patterns: where a text is cut. Those of GPT-2 and of cl100k, which most byte-level tokenizers use, are written out here;
 * any other regular expression is libpcre2's, opened when one is met.
 */
#define _GNU_SOURCE /* memmem */
#include "core/base/path.h"
#include "formats/tokenizer/impl.h"

#include <dlfcn.h>
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
    const uint32_t row = dc_unicode_row(r->u, dc_utf8_next(r->s + at, r->n - at, length));
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

/* ---- libpcre2 --------------------------------------------------------------------------------- */

/* What is used of libpcre2-8.so.0, whose numbers and functions are an ABI. */
enum {
    PCRE2_UCP = 0x00020000,
    PCRE2_UTF = 0x00080000,
    PCRE2_MATCH_INVALID_UTF = 0x04000000,
    PCRE2_NO_JIT = 0x00002000,
    PCRE2_JIT_COMPLETE = 1,
    PCRE2_JIT_STACK_LIMIT = -46,
    PCRE2_NOMATCH = -1
};

typedef struct pcre_lib {
    void *handle;
    void *(*compile)(const unsigned char *, size_t, uint32_t, int *, size_t *, void *);
    int (*jit)(void *code, uint32_t options);
    void *(*make)(const void *code, void *general);
    int (*match)(const void *code, const unsigned char *, size_t, size_t, uint32_t, void *data,
                 void *context);
    size_t *(*ends)(void *data);
    int (*message)(int code, unsigned char *, size_t);
    void (*free_code)(void *);
    void (*free_data)(void *);
} pcre_lib;

struct dc_regex {
    const pcre_lib *lib;
    void *code, *data;
    bool compiled; /* to machine code */
};

static bool find(const pcre_lib *c, const char *symbol, void *at)
{
    void *found = dlsym(c->handle, symbol);
    memcpy(at, &found, sizeof found);
    return found != NULL;
}

static dc_status open_library(dc_tokenizer *t, dc_job *j, const char *name)
{
    pcre_lib *c = DC_NEW(&t->keep, pcre_lib);
    c->handle = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (c->handle == NULL)
        return dc_path_fail(
            j, DC_ERR_FILE, name,
            "cuts texts by a regular expression, which needs PCRE2 (libpcre2-8.so.0; Debian: "
            "apt-get install libpcre2-8-0)");
    if (!find(c, "pcre2_compile_8", &c->compile) || !find(c, "pcre2_jit_compile_8", &c->jit) ||
        !find(c, "pcre2_match_data_create_from_pattern_8", &c->make) ||
        !find(c, "pcre2_match_8", &c->match) || !find(c, "pcre2_get_ovector_pointer_8", &c->ends) ||
        !find(c, "pcre2_get_error_message_8", &c->message) ||
        !find(c, "pcre2_code_free_8", &c->free_code) ||
        !find(c, "pcre2_match_data_free_8", &c->free_data))
        return dc_path_fail(j, DC_ERR_FILE, name, "libpcre2-8.so.0 is too old");
    t->regex_library = c;
    return DC_OK;
}

/* \s as Unicode's White_Space, which is what Oniguruma takes it for; PCRE2 has U+180E besides. */
static const char white[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

static dc_text *translate(dc_job *j, dc_span regex)
{
    dc_text *to = dc_job_text(j);
    bool in_class = false;
    for (size_t i = 0; i < regex.n; i++) {
        const char c = regex.at[i], then = i + 1 < regex.n ? regex.at[i + 1] : '\0';
        if (c == '\\' && (then == 's' || (then == 'S' && !in_class))) {
            dc_text_printf(to, in_class ? "%s%s%s" : "[%s%s%s]", then == 'S' ? "^" : "", white, "");
            i++;
        } else if (c == '\\' && i + 1 < regex.n) {
            dc_text_put(to, regex.at + i, 2);
            i++;
        } else {
            in_class = in_class ? c != ']' : c == '[';
            dc_text_put(to, &c, 1);
        }
    }
    return to;
}

dc_status dc_pattern_regex(dc_tokenizer *t, dc_job *j, const char *name, dc_span regex,
                           dc_pattern *out)
{
    int why;
    size_t where;
    if (known(regex, out))
        return DC_OK;
    if (t->regex_library == NULL)
        DC_TRY(open_library(t, j, name));
    const pcre_lib *c = t->regex_library;
    struct dc_regex *r = DC_NEW(&t->keep, struct dc_regex);
    dc_text *text = translate(j, regex);
    *r = (struct dc_regex){.lib = c};
    r->code = c->compile((const unsigned char *)text->s, text->n,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &why, &where, NULL);
    dc_job_text_end(j, text);
    if (r->code == NULL) {
        unsigned char words[128] = "";
        c->message(why, words, sizeof words);
        return dc_path_fail(j, DC_ERR_FORMAT, name, "the regular expression '%.100s': %s", regex.at,
                            (const char *)words);
    }
    out->kind = DC_PATTERN_REGEX;
    out->regex = r;
    dc_pattern *own = DC_NEW(&t->keep, dc_pattern);
    *own = *out;
    own->next = t->patterns;
    t->patterns = own;
    r->compiled = c->jit(r->code, PCRE2_JIT_COMPLETE) == 0;
    r->data = c->make(r->code, NULL);
    return r->data != NULL ? DC_OK : dc_fail(j, DC_ERR_NOMEM, NULL);
}

void dc_pattern_close(dc_pattern *p)
{
    for (; p != NULL; p = p->next) {
        if (p->regex->data != NULL)
            p->regex->lib->free_data(p->regex->data);
        p->regex->lib->free_code(p->regex->code);
    }
}

/*
 * PCRE2's interpreter looks through all of the text before it begins. So where there is no compiled code it gets a part, which
 * grows until a match ends well before its end.
 */
static int match_part(const struct dc_regex *r, const unsigned char *s, size_t n, size_t at)
{
    enum { PART = 1024, MARGIN = 128, GROWTH = 4 };
    for (size_t part = PART;; part *= GROWTH) {
        const size_t end = n - at > part ? at + part : n;
        const int code = r->lib->match(r->code, s, end, at, PCRE2_NO_JIT, r->data, NULL);
        if (end == n || (code < 0 && code != PCRE2_NOMATCH) ||
            (code >= 0 && r->lib->ends(r->data)[1] + MARGIN < end))
            return code;
    }
}

static bool match(const struct dc_regex *r, const char *s, size_t n, size_t at, size_t *from,
                  size_t *to)
{
    while (at <= n) {
        const unsigned char *text = (const unsigned char *)s;
        int code = r->compiled ? r->lib->match(r->code, text, n, at, 0, r->data, NULL)
                               : match_part(r, text, n, at);
        if (r->compiled &&
            code == PCRE2_JIT_STACK_LIMIT) /* of 32 KiB; the interpreter's is the heap */
            code = r->lib->match(r->code, text, n, at, PCRE2_NO_JIT, r->data, NULL);
        if (code < 0 && code != PCRE2_NOMATCH) { /* its bounds of steps and memory */
            dc_failf(dc_job_here(), DC_ERR_FORMAT_TEXT, NULL,
                     "a regular expression of the tokenizer takes too long for this text");
            return false;
        }
        if (code < 0)
            return false;
        const size_t *end = r->lib->ends(r->data);
        if (end[1] > end[0]) {
            *from = end[0];
            *to = end[1];
            return true;
        }
        at = end[1] + 1; /* of nothing: from the next character on */
        while (at < n && ((unsigned char)s[at] & 0xc0) == 0x80)
            at++;
    }
    return false;
}

bool dc_pattern_next(const dc_tokenizer *t, const dc_pattern *p, const char *s, size_t n, size_t at,
                     size_t *from, size_t *to)
{
    const reader r = {t->u, s, n};
    if (p->kind == DC_PATTERN_REGEX)
        return match(p->regex, s, n, at, from, to);
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
