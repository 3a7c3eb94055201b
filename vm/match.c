/*
 * The matcher: a pattern of Lua 5.4 against a subject, by backtracking, each step counted.
 *
 * Its meaning is that of lstrlib.c (Lua 5.4, MIT licence, Copyright (C) 1994-2023 Lua.org, PUC-Rio), whose
 * algorithm it follows; tests/unit/test_match.c compares the two. Any loop here spends steps for what it
 * looks at, patterns included, so the work of a call is in proportion to the steps it was given.
 */
#include "vm/match.h"

#include "dsl/dsl.h"

#include <lauxlib.h>

#include <ctype.h>
#include <string.h>

enum { OPEN = -1, POSITION = -2 };
enum { LOOK = 1 << 16 }; /* steps, some 200 us */
enum { DEEPEST = 200 };  /* as in Lua: of recursion, each a frame in C */

static const char *match(dc_match *m, const char *s, const char *p);

void dc_match_begin(dc_match *m, lua_State *L, const char *s, size_t n, const char *pattern,
                    size_t length)
{
    m->L = L;
    m->begin = s;
    m->end = s + n;
    m->stop = pattern + length;
    m->left = (size_t)DC_MATCH_STEPS + 64 * n;
    m->look = m->left - LOOK;
}

void dc_match_spend(dc_match *m, size_t n)
{
    if (n > m->left)
        luaL_error(m->L, "the pattern takes too long: it tries too many ways of matching");
    m->left -= n;
    if (m->left < m->look) {
        m->look = m->left > LOOK ? m->left - LOOK : 0;
        dc_dsl_poll(m->L);
    }
}

const char *dc_match_at(dc_match *m, const char *s, const char *p)
{
    m->level = 0;
    m->depth = DEEPEST;
    return match(m, s, p);
}

/* ---- one character ---------------------------------------------------------------------------- */

/* Where the item that begins at p ends: "a", "%a", "[^a-z]". */
static const char *item_end(dc_match *m, const char *p)
{
    const char *const from = p;
    const char first = *p++;
    if (first == '%') {
        if (p == m->stop)
            luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (first != '[')
        return p;
    if (p < m->stop && *p == '^')
        p++;
    do { /* a ']' in the first place is a letter */
        if (p == m->stop)
            luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p++ == '%') {
            if (p == m->stop)
                luaL_error(m->L, "malformed pattern (missing ']')");
            p++;
        }
    } while (p == m->stop || *p != ']');
    dc_match_spend(m, (size_t)(p - from));
    return p + 1;
}

static bool is_class(int c, int class)
{
    bool is;
    switch (tolower(class)) {
    case 'a':
        is = isalpha(c);
        break;
    case 'c':
        is = iscntrl(c);
        break;
    case 'd':
        is = isdigit(c);
        break;
    case 'g':
        is = isgraph(c);
        break;
    case 'l':
        is = islower(c);
        break;
    case 'p':
        is = ispunct(c);
        break;
    case 's':
        is = isspace(c);
        break;
    case 'u':
        is = isupper(c);
        break;
    case 'w':
        is = isalnum(c);
        break;
    case 'x':
        is = isxdigit(c);
        break;
    case 'z':
        is = c == 0;
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !is : is;
}

/* p is at '[', last at its ']'. */
static bool is_in_set(dc_match *m, int c, const char *p, const char *last)
{
    bool in = true;
    dc_match_spend(m, (size_t)(last - p));
    if (p[1] == '^') {
        in = false;
        p++;
    }
    while (++p < last) {
        if (*p == '%') {
            p++;
            if (is_class(c, (unsigned char)*p))
                return in;
        } else if (p[1] == '-' && p + 2 < last) {
            p += 2;
            if ((unsigned char)p[-2] <= c && c <= (unsigned char)*p)
                return in;
        } else if ((unsigned char)*p == c) {
            return in;
        }
    }
    return !in;
}

/* Is the character at s one of the item from p to end? */
static bool item_matches(dc_match *m, const char *s, const char *p, const char *end)
{
    if (s >= m->end)
        return false;
    const int c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return is_class(c, (unsigned char)p[1]);
    case '[':
        return is_in_set(m, c, p, end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- repetitions ------------------------------------------------------------------------------ */

static const char *most(dc_match *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t n = 0;
    while (item_matches(m, s + n, p, end)) {
        dc_match_spend(m, 1);
        n++;
    }
    for (; n >= 0; n--) {
        const char *to = match(m, s + n, end + 1);
        if (to != NULL)
            return to;
    }
    return NULL;
}

static const char *least(dc_match *m, const char *s, const char *p, const char *end)
{
    for (;;) {
        const char *to = match(m, s, end + 1);
        if (to != NULL)
            return to;
        if (!item_matches(m, s, p, end))
            return NULL;
        s++;
    }
}

/* ---- captures and what begins with % ----------------------------------------------------------- */

static const char *open_capture(dc_match *m, const char *s, const char *p, int length)
{
    const int level = m->level;
    if (level >= DC_MATCH_CAPTURES)
        luaL_error(m->L, "too many captures");
    m->capture[level].at = s;
    m->capture[level].length = length;
    m->level = level + 1;
    const char *to = match(m, s, p);
    if (to == NULL)
        m->level--;
    return to;
}

static const char *close_capture(dc_match *m, const char *s, const char *p)
{
    int i = m->level - 1;
    while (i >= 0 && m->capture[i].length != OPEN)
        i--;
    if (i < 0)
        luaL_error(m->L, "invalid pattern capture");
    m->capture[i].length = s - m->capture[i].at;
    const char *to = match(m, s, p);
    if (to == NULL)
        m->capture[i].length = OPEN;
    return to;
}

/* "%bxy", p behind the b. */
static const char *balance(dc_match *m, const char *s, const char *p)
{
    int open = 1;
    if (p >= m->stop - 1)
        luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->end || *s != *p)
        return NULL;
    while (++s < m->end) {
        dc_match_spend(m, 1);
        if (*s == p[1]) {
            if (--open == 0)
                return s + 1;
        } else if (*s == *p) {
            open++;
        }
    }
    return NULL;
}

/* "%1": what the capture has, once more. */
static const char *again(dc_match *m, const char *s, int digit)
{
    const int i = digit - '1';
    if (i < 0 || i >= m->level || m->capture[i].length == OPEN)
        luaL_error(m->L, "invalid capture index %%%d", i + 1);
    const size_t n = (size_t)m->capture[i].length; /* of a position: more than there is */
    if ((size_t)(m->end - s) < n)
        return NULL;
    dc_match_spend(m, n / 16);
    return memcmp(m->capture[i].at, s, n) == 0 ? s + n : NULL;
}

/* "%f[set]", p behind the f: *p goes behind it. */
static bool frontier(dc_match *m, const char *s, const char **p)
{
    const char *const set = *p;
    if (set >= m->stop || *set != '[')
        luaL_error(m->L, "missing '[' after '%%f' in pattern");
    const char *const end = item_end(m, set);
    const int before = s == m->begin ? '\0' : (unsigned char)s[-1];
    const int here = s < m->end ? (unsigned char)*s : '\0';
    *p = end;
    return !is_in_set(m, before, set, end - 1) && is_in_set(m, here, set, end - 1);
}

/* ---- the pattern ------------------------------------------------------------------------------- */

/* An item and its sign. *next: go on with *s and *p; else the result. */
static const char *item(dc_match *m, const char **s, const char **p, bool *next)
{
    const char *const end = item_end(m, *p);
    const char sign = end < m->stop ? *end : '\0';
    *next = false;
    if (sign == '*')
        return most(m, *s, *p, end);
    if (sign == '-')
        return least(m, *s, *p, end);
    const bool fit = item_matches(m, *s, *p, end);
    if (sign == '+')
        return fit ? most(m, *s + 1, *p, end) : NULL;
    if (sign == '?') {
        const char *to = fit ? match(m, *s + 1, end + 1) : NULL;
        if (to != NULL)
            return to;
    } else if (!fit) {
        return NULL;
    } else {
        ++*s;
    }
    *p = sign == '?' ? end + 1 : end;
    *next = true;
    return NULL;
}

/* "%b", "%f" and "%1", which are no items: is it one? Then *s is where the match goes on, or NULL. */
static bool is_special(dc_match *m, const char **s, const char **p)
{
    if (**p != '%' || *p + 1 >= m->stop)
        return false;
    const char kind = (*p)[1];
    const char *rest = *p + 2;
    if (kind == 'b') {
        *s = balance(m, *s, rest);
        rest += 2;
    } else if (kind == 'f') {
        *s = frontier(m, *s, &rest) ? *s : NULL;
    } else if (isdigit((unsigned char)kind)) {
        *s = again(m, *s, (unsigned char)kind);
    } else {
        return false;
    }
    *p = rest;
    return true;
}

static const char *match(dc_match *m, const char *s, const char *p)
{
    bool next = true;
    const char *to = NULL;
    if (m->depth-- == 0)
        luaL_error(m->L, "pattern too complex");
    while (next && s != NULL) {
        dc_match_spend(m, 1);
        next = false;
        if (p == m->stop)
            to = s;
        else if (*p == '(' && p + 1 < m->stop && p[1] == ')')
            to = open_capture(m, s, p + 2, POSITION);
        else if (*p == '(')
            to = open_capture(m, s, p + 1, OPEN);
        else if (*p == ')')
            to = close_capture(m, s, p + 1);
        else if (*p == '$' && p + 1 == m->stop)
            to = s == m->end ? s : NULL;
        else if (is_special(m, &s, &p))
            next = true;
        else
            to = item(m, &s, &p, &next);
    }
    m->depth++;
    return to;
}

/* ---- what was captured -------------------------------------------------------------------------- */

void dc_match_push_one(dc_match *m, int i, const char *from, const char *to)
{
    if (i >= m->level) {
        if (i > 0)
            luaL_error(m->L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(m->L, from, (size_t)(to - from));
    } else if (m->capture[i].length == POSITION) {
        lua_pushinteger(m->L, m->capture[i].at - m->begin + 1);
    } else if (m->capture[i].length == OPEN) {
        luaL_error(m->L, "unfinished capture");
    } else {
        lua_pushlstring(m->L, m->capture[i].at, (size_t)m->capture[i].length);
    }
}

int dc_match_push(dc_match *m, const char *from, const char *to, bool whole)
{
    const int n = m->level == 0 && whole ? 1 : m->level;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++)
        dc_match_push_one(m, i, from, to);
    return n;
}
