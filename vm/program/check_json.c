/*
 * Problems as JSON, with the part of the line that each is about: the name of the operation, or what Lua's message
 * has in quotes, where the line has it once.
 */
#include "core/base/utf8.h"
#include "vm/program/check.h"

#include <ctype.h>
#include <string.h>

/* ---- strings --------------------------------------------------------------------------------- */

void dc_check_print_string(dc_text *out, const char *s, size_t n)
{
    dc_text_puts(out, "\"");
    for (size_t i = 0, k; i < n; i += k) {
        const unsigned char c = (unsigned char)s[i];
        uint32_t code;
        k = dc_utf8_character(s + i, n - i, &code);
        if (k == 0) {
            dc_text_puts(out, "\xef\xbf\xbd");
            k = 1;
        } else if (c < ' ' || c == 0x7f) {
            dc_text_printf(out, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\')
                dc_text_puts(out, "\\");
            dc_text_put(out, s + i, k);
        }
    }
    dc_text_puts(out, "\"");
}

static void print_field(dc_text *out, const char *name, const char *value)
{
    if (value == NULL)
        return;
    dc_text_printf(out, ",\"%s\":", name);
    dc_check_print_string(out, value, strlen(value));
}

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct range {
    size_t from, to; /* bytes of the line; from == to: unknown */
} range;

static const char *find_line(const char *text, size_t n, int line, size_t *length)
{
    const char *end = text + n;
    for (; line > 1 && text != NULL; line--) {
        text = memchr(text, '\n', (size_t)(end - text));
        text += text != NULL;
    }
    if (text == NULL || line < 1)
        return NULL;
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    *length = (size_t)((newline != NULL ? newline : end) - text);
    return text;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool stands_alone(const char *line, size_t n, size_t at, size_t k)
{
    const bool begins = at == 0 || !is_word(line[at]) || !is_word(line[at - 1]);
    const bool ends = at + k == n || !is_word(line[at + k - 1]) || !is_word(line[at + k]);
    return begins && ends;
}

/* The one place of the word, or the last of several. */
static range find_word(const char *line, size_t n, const char *word, bool last)
{
    const size_t k = strlen(word);
    range found = {0, 0};
    int times = 0;
    for (size_t at = 0; k > 0 && at + k <= n; at++)
        if (memcmp(line + at, word, k) == 0 && stands_alone(line, n, at, k)) {
            found = (range){at, at + k};
            times++;
        }
    return times == 1 || last ? found : (range){0, 0};
}

/* How operations are written that are operators. */
static const char *sign_of(const char *op)
{
    static const char *const sign[][2] = {
        {"add", "+"},  {"sub", "-"}, {"mul", "*"},  {"div", "/"},        {"pow", "^"}, {"mod", "%"},
        {"band", "&"}, {"bor", "|"}, {"bxor", "~"}, {"floor_div", "//"}, {"and", "&"}, {"or", "|"}};
    for (size_t i = 0; i < DC_COUNTOF(sign); i++)
        if (strcmp(op, sign[i][0]) == 0)
            return sign[i][1];
    return NULL;
}

static range find_range(const dc_check *c, const dc_check_problem *p, const char *text, size_t n)
{
    size_t length = 0;
    range r = {0, 0};
    const char *line = text != NULL && p->word != NULL && strcmp(p->file, c->file) == 0
                           ? find_line(text, n, p->line, &length)
                           : NULL;
    if (line == NULL)
        return r;
    r = find_word(line, length, p->word, strcmp(p->kind, "syntax") == 0);
    if (r.from == r.to && sign_of(p->word) != NULL)
        r = find_word(line, length, sign_of(p->word), false);
    return r;
}

/* ---- problems -------------------------------------------------------------------------------- */

static void print_related(const dc_check_problem *p, dc_text *out)
{
    for (uint32_t i = 0; i < p->related.n; i++) {
        const dc_check_related *r = &p->related.at[i];
        dc_text_puts(out, i == 0 ? ",\"related\":[{\"message\":" : ",{\"message\":");
        dc_check_print_string(out, r->text, strlen(r->text));
        print_field(out, "file", r->file);
        if (r->file != NULL)
            dc_text_printf(out, ",\"line\":%d", r->line);
        dc_text_puts(out, "}");
    }
    if (p->related.n > 0)
        dc_text_puts(out, "]");
}

static void print_problem(const dc_check *c, const dc_check_problem *p, const char *text, size_t n,
                          dc_text *out)
{
    static const char *const severity[] = {"error", "warning", "note"};
    const range r = find_range(c, p, text, n);
    dc_text_puts(out, "{\"file\":");
    dc_check_print_string(out, p->file, strlen(p->file));
    if (p->line > 0)
        dc_text_printf(out, ",\"line\":%d", p->line);
    if (r.from < r.to)
        dc_text_printf(out, ",\"column\":%zu,\"end_column\":%zu", r.from + 1, r.to + 1);
    print_field(out, "severity", severity[p->severity]);
    if (strncmp(p->kind, "DC", 2) == 0 || strcmp(p->kind, "syntax") == 0)
        print_field(out, "code", p->kind);
    print_field(out, "message", p->sentence);
    print_field(out, "hint", p->hint);
    print_field(out, "layer", p->layer);
    print_related(p, out);
    dc_text_puts(out, "}");
}

void dc_check_print_problems(const dc_check *c, const char *text, size_t n, dc_text *out)
{
    dc_text_puts(out, "[");
    for (uint32_t i = 0; i < c->found.n; i++) {
        dc_text_puts(out, i == 0 ? "" : ",\n ");
        print_problem(c, &c->found.at[i], text, n, out);
    }
    dc_text_puts(out, "]");
}

void dc_check_print_json(const dc_check *c, const char *text, size_t n, dc_text *out)
{
    dc_text_puts(out, "{\"version\":1,\"file\":");
    dc_check_print_string(out, c->file, strlen(c->file));
    dc_text_printf(out, ",\"complete\":%s,\"problems\":", c->ended ? "true" : "false");
    dc_check_print_problems(c, text, n, out);
    dc_text_puts(out, "}\n");
}
