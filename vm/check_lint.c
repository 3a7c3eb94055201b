/*
 * Mistakes that Lua does not show: a tensor as a condition, which is always true (DC0901), a call whose
 * value is dropped, since tensors never change (DC0902), and == with a number, which is never so (DC0903).
 * Results that have no name are found where nothing uses them (dsl/uses.h), not here.
 *
 * The text of a file tells where a name stands as a condition; what the name holds is looked up when
 * that line runs. `if mask then` is right where mask may be nil. So a name is reported only where it
 * cannot be: it is no parameter that may be left out, and everything that the file assigns to it is
 * the result of an operation on tensors.
 */
#include "core/base/file.h"
#include "dsl/handle.h"
#include "dsl/uses.h"
#include "vm/check.h"
#include "vm/lint_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum rule { CONDITION, BOTH, COMPARED, DROPPED, EQUAL } rule;

/* A place to look at when its line runs: words [path, end) are names joined by dots. */
typedef struct suspect {
    rule rule;
    int line;
    int path, end;
    int other, other_end; /* BOTH: the right side; EQUAL: the other one, a name or a literal */
    int method;           /* COMPARED, DROPPED; EQUAL: the sign */
    bool done;
} suspect;

struct dc_lint {
    char *text;
    tokens word;
    DC_VEC(suspect) at; /* by line */
};

/* ---- places ---------------------------------------------------------------------------------- */

/* Behind names joined by dots that begin at i. */
static int path_end(const dc_lint *l, int i)
{
    const token *w = l->word.at;
    i++;
    while (word_is(&w[i], ".") && w[i + 1].kind == NAME)
        i += 2;
    return i;
}

/* Where a path ends before word i begins; -1 if word i - 1 is not the end of one. */
static int path_begin(const dc_lint *l, int i)
{
    const token *w = l->word.at;
    if (i < 1 || w[i - 1].kind != NAME)
        return -1;
    i--;
    while (i >= 2 && word_is(&w[i - 1], ".") && w[i - 2].kind == NAME)
        i -= 2;
    return i >= 1 && (word_is(&w[i - 1], ".") || word_is(&w[i - 1], ":")) ? -1 : i;
}

static const char *const suffixes[] = {".", "[", "(", ":", "{", NULL};
static const char *const tighter[] = {"..", "+",  "-",  "*",  "/", "//", "%", "^",  "<",  ">",
                                      "<=", ">=", "==", "~=", "&", "|",  "~", "<<", ">>", NULL};
static const char *const comparisons[] = {"lt", "le", "gt", "ge", "eq", "ne", NULL};
static const char *const openers[] = {"if", "elseif", "while", "until", "not", NULL};
static const char *const closers[] = {"then", "do", "and", "or", NULL};

static bool goes_on(const token *t)
{
    return t->kind == STRING || word_is_one_of(t, suffixes);
}

/* Behind the parenthesis that word i opens. */
static int behind(const dc_lint *l, int i)
{
    const token *w = l->word.at;
    int depth = 0;
    for (; w[i].kind != END; i++) {
        depth += word_is(&w[i], "(") || word_is(&w[i], "{") || word_is(&w[i], "[");
        depth -= word_is(&w[i], ")") || word_is(&w[i], "}") || word_is(&w[i], "]");
        if (depth == 0)
            return i + 1;
    }
    return i;
}

static void suspect_at(dc_lint *l, suspect s)
{
    s.line = l->word.at[s.path].line;
    DC_PUSH(l->at, s);
}

/* if m then, while m do, not m; the path begins at i, after one of the openers. */
static void see_condition(dc_lint *l, int i)
{
    const token *w = l->word.at;
    const int end = path_end(l, i);
    const bool negated = word_is(&w[i - 1], "not");
    const bool until = word_is(&w[i - 1], "until");
    if (word_is(&w[end], "then") || word_is(&w[end], "do") ||
        (until && !goes_on(&w[end]) && !word_is_one_of(&w[end], tighter)) ||
        (negated && !goes_on(&w[end]) && !word_is_one_of(&w[end], tighter)))
        suspect_at(l, (suspect){.rule = CONDITION, .path = i, .end = end});
}

/* if x:lt(y) then */
static void see_comparison(dc_lint *l, int i)
{
    const token *w = l->word.at;
    const int end = path_end(l, i);
    if (!word_is(&w[end], ":") || !word_is_one_of(&w[end + 1], comparisons) ||
        !word_is(&w[end + 2], "("))
        return;
    const int next = behind(l, end + 2);
    if (word_is_one_of(&w[next], closers) || (word_is(&w[i - 1], "not") && !goes_on(&w[next])))
        suspect_at(l, (suspect){.rule = COMPARED, .path = i, .end = end, .method = end + 1});
}

/* a and b, both no more than names */
static void see_and(dc_lint *l, int i)
{
    const token *w = l->word.at;
    const int left = path_begin(l, i), right = i + 1;
    if (left < 1 || w[right].kind != NAME || w[left - 1].kind == NAME ||
        word_is_one_of(&w[left - 1], tighter))
        return;
    const int end = path_end(l, right);
    if (!goes_on(&w[end]) && !word_is_one_of(&w[end], tighter))
        suspect_at(l, (suspect){BOTH, 0, left, i, right, end, 0, false});
}

/* Does a statement begin at word i? Only where its line does, behind what ends another. */
static bool begins_statement(const dc_lint *l, int i)
{
    static const char *const before[] = {"then", "do",    "else", "repeat", "end",
                                         "true", "false", "nil",  "...",    ")",
                                         "}",    "]",     ";",    "break",  NULL};
    const token *w = l->word.at;
    if (i == 0)
        return true;
    const token *t = &w[i - 1];
    return t->line < w[i].line &&
           (t->kind == NAME || t->kind == STRING || t->kind == NUMBER || word_is_one_of(t, before));
}

/* x:add(1), alone */
static void see_call(dc_lint *l, int i)
{
    const token *w = l->word.at;
    const int end = path_end(l, i);
    if (!word_is(&w[end], ":") || w[end + 1].kind != NAME || !word_is(&w[end + 2], "(") ||
        !begins_statement(l, i))
        return;
    const int next = behind(l, end + 2);
    if (w[next].line > w[next - 1].line && !goes_on(&w[next]) && !word_is_one_of(&w[next], tighter))
        suspect_at(l, (suspect){.rule = DROPPED, .path = i, .end = end, .method = end + 1});
}

/* One operand of the sign at word i: behind it, or before it; -1 where it is no name and no literal. */
static int operand_behind(const dc_lint *l, int i, int *end)
{
    const token *w = l->word.at;
    const int at = i + 1, literal = word_is(&w[at], "-") ? at + 1 : at;
    *end = w[literal].kind == NUMBER || w[literal].kind == STRING ? literal + 1
           : w[at].kind == NAME                                   ? path_end(l, at)
                                                                  : -1;
    return *end < 0 || goes_on(&w[*end]) || word_is_one_of(&w[*end], tighter) ? -1 : at;
}

static int operand_before(const dc_lint *l, int i)
{
    static const char *const unary[] = {"-", "~", "#", "not", NULL};
    const token *w = l->word.at;
    if (i < 1)
        return -1;
    const bool literal = w[i - 1].kind == NUMBER || w[i - 1].kind == STRING;
    const int at = literal ? i - 1 : path_begin(l, i);
    return at >= 1 && (word_is_one_of(&w[at - 1], unary) || word_is_one_of(&w[at - 1], tighter))
               ? -1
               : at;
}

/* acc == 1, 1 ~= acc, acc == best */
static void see_equality(dc_lint *l, int i)
{
    int end;
    const int left = operand_before(l, i), right = operand_behind(l, i, &end);
    if (left < 0 || right < 0)
        return;
    if (l->word.at[left].kind == NAME)
        suspect_at(l, (suspect){EQUAL, 0, left, i, right, end, i, false});
    if (l->word.at[right].kind == NAME)
        suspect_at(l, (suspect){EQUAL, 0, right, end, left, i, i, false});
}

static void find_suspects(dc_lint *l)
{
    for (int i = 0; l->word.at[i].kind != END; i++) {
        const token *w = &l->word.at[i];
        const bool opened = i > 0 && word_is_one_of(&w[-1], openers);
        if (word_is(w, "and"))
            see_and(l, i);
        if (word_is(w, "==") || word_is(w, "~="))
            see_equality(l, i);
        if (w->kind != NAME)
            continue;
        if (opened)
            see_condition(l, i);
        if (opened || (i > 0 && (word_is(&w[-1], "and") || word_is(&w[-1], "or"))))
            see_comparison(l, i);
        see_call(l, i);
    }
}

/* ---- what a name holds ----------------------------------------------------------------------- */

/* A name of the running function. */
typedef struct found {
    bool parameter, local; /* of the running function */
    bool upvalue;
} found;

static void push_word(lua_State *L, const token *t)
{
    lua_pushlstring(L, t->at, (size_t)t->n);
}

/* Pushes the value of a name in the frame, or nil. */
static void push_root(lua_State *L, lua_Debug *ar, const token *t, found *f)
{
    const char *name;
    const int base = lua_gettop(L);
    int at = 0;
    for (int i = 1; (name = lua_getlocal(L, ar, i)) != NULL; i++) {
        if ((int)strlen(name) == t->n && memcmp(name, t->at, (size_t)t->n) == 0)
            at = i;
        lua_pop(L, 1);
    }
    lua_getinfo(L, "fu", ar); /* the function */
    f->parameter = at > 0 && at <= ar->nparams;
    f->local = at > 0;
    if (at > 0) {
        lua_getlocal(L, ar, at);
        lua_remove(L, base + 1);
        return;
    }
    for (int i = 1; (name = lua_getupvalue(L, base + 1, i)) != NULL; i++) {
        if ((int)strlen(name) == t->n && memcmp(name, t->at, (size_t)t->n) == 0) {
            lua_remove(L, base + 1);
            f->upvalue = true;
            return;
        }
        lua_pop(L, 1);
    }
    lua_settop(L, base);
    lua_pushglobaltable(L);
    push_word(L, t);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

/* Pushes what a path holds as far as tables go, or nil. */
static void push_value(const dc_lint *l, lua_State *L, lua_Debug *ar, int path, int end, found *f)
{
    push_root(L, ar, &l->word.at[path], f);
    for (int i = path + 2; i < end; i += 2) {
        if (lua_type(L, -1) != LUA_TTABLE) {
            lua_pushnil(L);
            return;
        }
        push_word(L, &l->word.at[i]);
        lua_rawget(L, -2);
        *f = (found){0};
    }
}

/* The handle that a path holds, which is on top then; nothing is pushed where it holds none. */
static dc_handle *push_handle(const dc_lint *l, lua_State *L, lua_Debug *ar, int path, int end,
                              found *f)
{
    const int base = lua_gettop(L);
    push_value(l, L, ar, path, end, f);
    dc_handle *h = dc_handle_look(L, -1);
    if (h != NULL && h->kind != DC_HANDLE_CLOSED) {
        lua_copy(L, -1, base + 1);
        lua_settop(L, base + 1);
        return h;
    }
    lua_settop(L, base);
    return NULL;
}

/* Of the tensor on top: is there a method of this name? */
static bool is_method(lua_State *L, const token *name)
{
    bool there = false;
    const int base = lua_gettop(L);
    luaL_getmetafield(L, base, "__index");
    const int fn = lua_gettop(L);
    for (int i = 1; fn > base && lua_getupvalue(L, fn, i) != NULL; i++) {
        if (lua_type(L, -1) == LUA_TTABLE) {
            push_word(L, name);
            there = there || lua_rawget(L, -2) != LUA_TNIL;
        }
        lua_settop(L, fn);
    }
    lua_settop(L, base);
    return there;
}

/* ---- may it be nil? -------------------------------------------------------------------------- */

/*
 * Is the expression that begins at word i an operation on tensors, whatever happens? A tensor is on
 * top, whose methods are asked.
 */
static bool is_operation(const dc_lint *l, lua_State *L, int i)
{
    static const char *const doubt[] = {"and", "or", "nil", "function", NULL};
    static const char *const arithmetic[] = {"+", "-", "*", "/",  "//", "%", "^",
                                             "&", "|", "~", "<<", ">>", NULL};
    const token *w = l->word.at;
    const int line = w[i].line;
    bool operation = false;
    int depth = 0;
    for (; w[i].kind != END && (w[i].line == line || depth > 0); i++) {
        depth += word_is(&w[i], "(") || word_is(&w[i], "{") || word_is(&w[i], "[");
        depth -= word_is(&w[i], ")") || word_is(&w[i], "}") || word_is(&w[i], "]");
        if (depth < 0 || (depth == 0 && (word_is(&w[i], ",") || word_is(&w[i], ";"))))
            break;
        if (depth == 0 && word_is_one_of(&w[i], doubt))
            return false;
        const bool library =
            word_is(&w[i], "dc") && word_is(&w[i + 1], ".") && w[i + 2].kind == NAME;
        const bool method = word_is(&w[i], ":") && is_method(L, &w[i + 1]);
        operation =
            operation || (depth == 0 && (library || method || word_is_one_of(&w[i], arithmetic)));
    }
    return operation;
}

static bool is_optional(const dc_lint *l, const token *name)
{
    char mark[80];
    snprintf(mark, sizeof mark, "%.*s?", name->n, name->at);
    for (uint32_t i = 0; i < l->word.n; i++) {
        const token *t = &l->word.at[i];
        const size_t n = strlen(mark);
        for (int k = 0; t->kind == STRING && k + (int)n <= t->n; k++)
            if (memcmp(t->at + k, mark, n) == 0)
                return true;
    }
    return false;
}

/* Everything that the file assigns to the name is an operation, and something is. */
static bool is_always_set(const dc_lint *l, lua_State *L, const token *name)
{
    const token *w = l->word.at;
    bool set = false;
    for (int i = 0; w[i].kind != END; i++) {
        if (w[i].kind != NAME || !word_same(&w[i], name))
            continue;
        const bool declared = i > 0 && word_is(&w[i - 1], "local");
        if (!word_is(&w[i + 1], "=")) {
            if (declared || (word_is(&w[i + 1], ",") && i > 0 && w[i - 1].line < w[i].line))
                return false; /* local m; local m, n = ...; m, n = ... */
            continue;
        }
        if ((i > 0 && word_is(&w[i - 1], ",") && w[i - 1].line == w[i].line && i > 1 &&
             w[i - 2].kind == NAME) ||
            !is_operation(l, L, i + 2))
            return false;
        set = true;
    }
    return set;
}

/* The tensor, which is on top, is an argument that has to be there. */
static bool is_needed_argument(const dc_lint *l, const dc_handle *h, const token *name)
{
    char mark[100];
    snprintf(mark, sizeof mark, "argument '%.*s' of ", name->n, name->at);
    return h->kind == DC_HANDLE_TRACED && h->origin != NULL &&
           strncmp(h->origin, mark, strlen(mark)) == 0 && !is_optional(l, name);
}

static bool is_parameter_somewhere(const dc_lint *l, const token *name)
{
    const token *w = l->word.at;
    for (int i = 0; w[i].kind != END; i++) {
        if (!word_is(&w[i], "function"))
            continue;
        while (w[i].kind != END && !word_is(&w[i], "("))
            i++;
        for (; w[i].kind != END && !word_is(&w[i], ")"); i++)
            if (w[i].kind == NAME && word_same(&w[i], name))
                return true;
    }
    return false;
}

/*
 * A field, or a global, may be left unset by whoever else makes the table. What is compared gives
 * bool, and that is rarely there or not.
 */
static bool is_certain(const dc_lint *l, lua_State *L, const dc_handle *h, const found *f, int end)
{
    const token *name = &l->word.at[end - 1];
    if (f->parameter)
        return is_needed_argument(l, h, name);
    if (f->upvalue && is_parameter_somewhere(l, name))
        return false;
    if (!f->local && !f->upvalue && dc_handle_type(h)->dtype != DC_BOOL)
        return false;
    return is_always_set(l, L, name);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* The text of the words [from, end). */
static void print_words(const dc_lint *l, int from, int end, char *out, size_t room)
{
    const token *a = &l->word.at[from], *b = &l->word.at[end - 1];
    snprintf(out, room, "%.*s", (int)(b->at + b->n - a->at), a->at);
}

static dc_err_id id_of(rule r)
{
    switch (r) {
    case CONDITION:
    case BOTH:
    case COMPARED:
        return DC_ERR_ALWAYS_TRUE;
    case DROPPED:
        return DC_ERR_DROPPED;
    case EQUAL:
        return DC_ERR_NEVER_EQUAL;
    }
    return DC_ERR_NONE;
}

static void report(const suspect *s, const dc_lint *l, dc_check *c, const lua_Debug *ar)
{
    char at[LUA_IDSIZE + 20], sentence[200], name[80];
    const token *w = l->word.at;
    snprintf(at, sizeof at, "%s:%d", ar->short_src, s->line);
    print_words(l, s->path, s->end, name, sizeof name);
    const dc_err_id id = id_of(s->rule);
    char code[16];
    snprintf(code, sizeof code, "DC%04d", dc_err_row_of(id)->code);
    if (s->rule == DROPPED)
        snprintf(sentence, sizeof sentence,
                 "the value of %s:%.*s is dropped; tensors do not change", name, w[s->method].n,
                 w[s->method].at);
    else if (s->rule == COMPARED)
        snprintf(sentence, sizeof sentence, "%s:%.*s(...): a tensor is always true", name,
                 w[s->method].n, w[s->method].at);
    else if (s->rule == EQUAL) {
        print_words(l, s->path < s->other ? s->path : s->other,
                    s->path < s->other ? s->other_end : s->end, name, sizeof name);
        snprintf(sentence, sizeof sentence, "%s is always %s: a tensor equals no number", name,
                 word_is(&w[s->method], "==") ? "false" : "true");
    } else
        snprintf(sentence, sizeof sentence, "%s: a tensor is always true", name);
    dc_check_report(c, at, code, sentence, dc_err_row_of(id)->hint);
}

/* Is the other operand a number or a text? */
static bool is_plain(const suspect *s, const dc_lint *l, lua_State *L, lua_Debug *ar)
{
    found f = {0};
    if (l->word.at[s->other].kind != NAME)
        return true;
    push_value(l, L, ar, s->other, s->other_end, &f);
    return lua_type(L, -1) == LUA_TNUMBER || lua_type(L, -1) == LUA_TSTRING;
}

/* Pushes the tensor. */
static bool is_wrong(const suspect *s, const dc_lint *l, lua_State *L, lua_Debug *ar)
{
    static const char *const effects[] = {"set", "close", "item", "totable", NULL};
    found f = {0}, g = {0};
    const dc_handle *h = push_handle(l, L, ar, s->path, s->end, &f);
    if (h == NULL)
        return false;
    const bool is_bool = dc_handle_type(h)->dtype == DC_BOOL;
    switch (s->rule) {
    case CONDITION:
        return is_certain(l, L, h, &f, s->end);
    case BOTH: {
        dc_handle *right = push_handle(l, L, ar, s->other, s->other_end, &g);
        if (right == NULL)
            return false;
        dc_uses_mark(right);
        if (is_bool && dc_handle_type(right)->dtype == DC_BOOL)
            return true;
        lua_pop(L, 1);
        return is_certain(l, L, h, &f, s->end);
    }
    case COMPARED:
        return true;
    case DROPPED:
        return !word_is_one_of(&l->word.at[s->method], effects) &&
               is_method(L, &l->word.at[s->method]);
    case EQUAL:
        return is_plain(s, l, L, ar);
    }
    return false;
}

void dc_lint_line(dc_lint *l, dc_check *c, lua_State *L, lua_Debug *ar)
{
    const int base = lua_gettop(L);
    for (uint32_t i = 0; i < l->at.n; i++) {
        suspect *s = &l->at.at[i];
        if (s->line != ar->currentline || s->done || !lua_checkstack(L, 10))
            continue;
        if (is_wrong(s, l, L, ar)) {
            s->done = true;
            dc_uses_mark(dc_handle_look(L, base + 1)); /* told here, not where it was made */
            report(s, l, c, ar);
        }
        lua_settop(L, base);
    }
}

bool dc_lint_compares(const dc_lint *l, int line)
{
    const token *w = l->word.at;
    for (int i = 1; w[i].kind != END; i++)
        if (w[i].line == line && (word_is(&w[i], "==") || word_is(&w[i], "~=")) &&
            (w[i - 1].kind == NUMBER || w[i + 1].kind == NUMBER || word_is(&w[i + 1], "-")))
            return true;
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

dc_lint *dc_lint_open(const char *path)
{
    char *text = dc_file_read(path, SIZE_MAX);
    if (text == NULL)
        return NULL;
    dc_lint *l = dc_xalloc(sizeof *l);
    l->text = text;
    l->word = dc_lint_words(text);
    find_suspects(l);
    return l;
}

void dc_lint_close(dc_lint *l)
{
    if (l == NULL)
        return;
    DC_VEC_FREE(l->word);
    DC_VEC_FREE(l->at);
    dc_xfree(l->text);
    dc_xfree(l);
}
