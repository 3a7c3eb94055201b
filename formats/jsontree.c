/* JSON as a tree: values in one array, strings decoded where they stand. */
#include "formats/jsontree.h"

#include "core/base/path.h"
#include "core/base/real.h"

#include <string.h>

enum { DEPTH = 64 };

typedef struct parser {
    dc_job *job;
    const char *name;
    char *text;
    size_t n, at;
    dc_jnode *node;
    uint32_t used, cap;
} parser;

static dc_status refuse(const parser *p, const char *what)
{
    if (p->at >= p->n)
        return dc_path_fail(p->job, DC_ERR_FORMAT, p->name, "at byte %zu: %s expected, not the end",
                            p->at, what);
    const unsigned char c = (unsigned char)p->text[p->at];
    return c > ' ' && c < 127
               ? dc_path_fail(p->job, DC_ERR_FORMAT, p->name, "at byte %zu: %s expected, not '%c'",
                              p->at, what, c)
               : dc_path_fail(p->job, DC_ERR_FORMAT, p->name,
                              "at byte %zu: %s expected, not byte %d", p->at, what, c);
}

/* Asks the job every 64 KiB. */
static void step(parser *p, size_t n)
{
    if (((p->at ^ (p->at + n)) >> 16) != 0)
        dc_job_look();
    p->at += n;
}

static void skip(parser *p)
{
    while (p->at < p->n && (p->text[p->at] == ' ' || p->text[p->at] == '\n' ||
                            p->text[p->at] == '\r' || p->text[p->at] == '\t'))
        step(p, 1);
}

static bool accept(parser *p, char sign)
{
    skip(p);
    if (p->at >= p->n || p->text[p->at] != sign)
        return false;
    p->at++;
    return true;
}

/* ---- strings ---------------------------------------------------------------------------------- */

/* Four digits behind "\u". */
static bool read_unit(parser *p, uint32_t *out)
{
    *out = 0;
    if (p->n - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char c = p->text[p->at + (size_t)i];
        const int v = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (v < 0)
            return false;
        *out = *out << 4 | (uint32_t)v;
    }
    p->at += 4;
    return true;
}

static bool read_escaped(parser *p, uint32_t *out)
{
    uint32_t low;
    if (!read_unit(p, out) || (*out >= 0xdc00 && *out < 0xe000))
        return false;
    if (*out < 0xd800 || *out >= 0xdc00)
        return true;
    if (p->n - p->at < 2 || p->text[p->at] != '\\' || p->text[p->at + 1] != 'u')
        return false;
    p->at += 2;
    if (!read_unit(p, &low) || low < 0xdc00 || low >= 0xe000)
        return false;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static size_t put_code(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(lead[n] | c);
    return n;
}

/* Bytes of the character at s if it is UTF-8, else 0. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    const size_t want = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (want == 0 || want > n)
        return 0;
    for (size_t i = 1; i < want; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return want;
}

static dc_status read_escape(parser *p, char **to)
{
    static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    uint32_t c;
    if (p->at < p->n && p->text[p->at] == 'u') {
        p->at++;
        if (!read_escaped(p, &c))
            return refuse(p, "a character as \\uXXXX, in pairs where it is a surrogate,");
        *to += put_code(*to, c);
        return DC_OK;
    }
    const char *found =
        p->at < p->n && p->text[p->at] != '\0' ? strchr(from, p->text[p->at]) : NULL;
    if (found == NULL)
        return refuse(p, "one of \"\\/bfnrtu");
    p->at++;
    *(*to)++ = plain[found - from];
    return DC_OK;
}

static dc_status read_string(parser *p, const char **out, uint32_t *n)
{
    if (!accept(p, '"'))
        return refuse(p, "a string");
    char *to = p->text + p->at;
    *out = to;
    while (p->at < p->n && p->text[p->at] != '"') {
        const unsigned char c = (unsigned char)p->text[p->at];
        if (c == '\\') {
            step(p, 1);
            DC_TRY(read_escape(p, &to));
            continue;
        }
        const size_t length =
            c < 0x20   ? 0
            : c < 0x80 ? 1
                       : utf8_length((const unsigned char *)p->text + p->at, p->n - p->at);
        if (length == 0)
            return refuse(p, c < 0x20 ? "a character that is no control character" : "UTF-8");
        if (to != p->text + p->at)
            memmove(to, p->text + p->at, length);
        to += length;
        step(p, length);
    }
    if (p->at >= p->n)
        return refuse(p, "'\"'");
    p->at++;
    *n = (uint32_t)(to - *out);
    *to = '\0'; /* in the place of the quote or before it */
    return DC_OK;
}

/* ---- values ----------------------------------------------------------------------------------- */

static size_t digits(const parser *p, size_t at)
{
    const size_t from = at;
    while (at < p->n && p->text[at] >= '0' && p->text[at] <= '9')
        at++;
    return at - from;
}

/* Bytes of a number as the grammar has it; 0: there is none. */
static size_t number_length(const parser *p)
{
    size_t at = p->at, k;
    at += at < p->n && p->text[at] == '-';
    if ((k = digits(p, at)) == 0 || (k > 1 && p->text[at] == '0'))
        return 0;
    at += k;
    if (at < p->n && p->text[at] == '.') {
        if ((k = digits(p, at + 1)) == 0)
            return 0;
        at += 1 + k;
    }
    if (at < p->n && (p->text[at] == 'e' || p->text[at] == 'E')) {
        at++;
        at += at < p->n && (p->text[at] == '-' || p->text[at] == '+');
        if ((k = digits(p, at)) == 0)
            return 0;
        at += k;
    }
    return at - p->at;
}

static dc_status read_number(parser *p, dc_jnode *v)
{
    const char *at = p->text + p->at;
    int64_t whole;
    const size_t n = number_length(p);
    if (n == 0)
        return refuse(p, "a value");
    v->kind = DC_J_NUMBER;
    dc_real_read(&at, at + n, &v->v.num, &whole);
    p->at += n;
    return DC_OK;
}

static bool accept_word(parser *p, const char *word)
{
    const size_t n = strlen(word);
    if (p->n - p->at < n || memcmp(p->text + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static dc_status read_value(parser *p, dc_jnode *v, int depth);

static dc_status read_values(parser *p, dc_jnode *v, char end, int depth)
{
    dc_jnode *last = NULL;
    if (depth >= DEPTH)
        return dc_path_fail(p->job, DC_ERR_FORMAT, p->name,
                            "at byte %zu: lists and objects in each other are at most %d deep",
                            p->at, DEPTH);
    if (accept(p, end))
        return DC_OK;
    do {
        DC_ASSERT(p->used < p->cap, "values: more than %u", p->cap);
        dc_jnode *child = &p->node[p->used++];
        if (end == '}') {
            DC_TRY(read_string(p, &child->key, &child->nkey));
            if (!accept(p, ':'))
                return refuse(p, "':'");
        }
        DC_TRY(read_value(p, child, depth + 1));
        if (last != NULL)
            last->next = child;
        else
            v->child = child;
        last = child;
        v->n++;
    } while (accept(p, ','));
    return accept(p, end) ? DC_OK : refuse(p, end == '}' ? "',' or '}'" : "',' or ']'");
}

static dc_status read_value(parser *p, dc_jnode *v, int depth)
{
    if ((p->used & 0xfff) == 0)
        dc_job_look();
    if (accept(p, '{')) {
        v->kind = DC_J_OBJECT;
        return read_values(p, v, '}', depth);
    }
    if (accept(p, '[')) {
        v->kind = DC_J_LIST;
        return read_values(p, v, ']', depth);
    }
    if (p->at < p->n && p->text[p->at] == '"') {
        v->kind = DC_J_STRING;
        return read_string(p, &v->v.s, &v->n);
    }
    if (accept_word(p, "null"))
        return DC_OK;
    v->kind = DC_J_BOOL;
    if (accept_word(p, "false"))
        return DC_OK;
    if (accept_word(p, "true")) {
        v->v.num = 1;
        return DC_OK;
    }
    return read_number(p, v);
}

/* No fewer than there are values: each but the first is behind one of these signs. */
static size_t count(const char *text, size_t n)
{
    size_t k = 1;
    for (size_t i = 0; i < n; i++) {
        if ((i & 0xfffff) == 0)
            dc_job_look();
        k += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return k;
}

dc_status dc_json_tree(dc_job *j, const char *name, char *text, size_t n, dc_arena *a,
                       const dc_jnode **out)
{
    parser p = {.job = j, .name = name, .text = text, .n = n};
    const size_t most = count(text, n);
    if (n > INT32_MAX || most > DC_JSON_NODES)
        return dc_path_fail(j, DC_ERR_FORMAT, name, "more than %d values, or 2 GiB",
                            (int)DC_JSON_NODES);
    p.cap = (uint32_t)most + 1;
    p.node = DC_NEW_ARRAY(a, dc_jnode, p.cap);
    dc_jnode *root = &p.node[p.used++];
    DC_TRY(read_value(&p, root, 0));
    skip(&p);
    if (p.at < p.n)
        return refuse(&p, "the end");
    *out = root;
    return DC_OK;
}

const dc_jnode *dc_json_get(const dc_jnode *object, const char *key)
{
    const size_t n = strlen(key);
    const dc_jnode *found = NULL;
    if (object == NULL || object->kind != DC_J_OBJECT)
        return NULL;
    for (const dc_jnode *v = object->child; v != NULL; v = v->next)
        if (v->nkey == n && memcmp(v->key, key, n) == 0)
            found = v;
    return found != NULL && found->kind != DC_J_NULL ? found : NULL;
}

bool dc_json_is(const dc_jnode *v, const char *text)
{
    return v != NULL && v->kind == DC_J_STRING && v->n == strlen(text) &&
           memcmp(v->v.s, text, v->n) == 0;
}

const char *dc_json_kind(const dc_jnode *v)
{
    static const char *const kinds[] = {"null",     "true or false", "a number",
                                        "a string", "a list",        "an object"};
    return v == NULL ? "nothing" : kinds[v->kind];
}
