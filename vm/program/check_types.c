/*
 * What the values of a script are: vm/program/check_types.h. Here are the names of the text and the hook; check_describe.c says
 * what values are called.
 */
#include "dsl/base/interrupt.h"
#include "dsl/base/trace.h"
#include "dsl/dsl.h"
#include "vm/program/check_types_impl.h"
#include "vm/program/prompt.h"

#include <lauxlib.h>

#include <ctype.h>
#include <string.h>

enum {
    VISITS = 6,   /* of a line, in a trace or outside of all */
    SIGHTS = 8,   /* different values that are kept of a name on a line */
    NAMES = 40,   /* of two lines that are looked at */
    FRAMES = 100, /* functions of the script that run in each other */
    IDLE = 200,   /* lines in a row that are known, after which lines are no longer looked at */
    MOST_MADE = 20000
};

/* ---- names in the text ------------------------------------------------------------------------ */

static bool begins_word(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c)
{
    return begins_word(c) || isdigit((unsigned char)c);
}

typedef struct scanner {
    dc_check_types *t;
    const char *s;
    size_t n, at;
    uint32_t line;
} scanner;

static char peek(const scanner *s, size_t k)
{
    return s->at + k < s->n ? s->s[s->at + k] : '\0';
}

static void step(scanner *s)
{
    s->line += s->s[s->at] == '\n';
    s->at++;
}

/* Equal signs of a long bracket that begins here; -1: it is none. */
static int bracket_level(const scanner *s)
{
    size_t k = 1;
    while (peek(s, k) == '=')
        k++;
    return peek(s, 0) == '[' && peek(s, k) == '[' ? (int)k - 1 : -1;
}

static void skip_bracket(scanner *s, int level)
{
    for (; s->at < s->n; step(s)) {
        size_t k = 1;
        while ((int)k <= level && peek(s, k) == '=')
            k++;
        if (peek(s, 0) == ']' && (int)k == level + 1 && peek(s, k) == ']') {
            s->at += k + 1;
            return;
        }
    }
}

static void skip_quoted(scanner *s)
{
    const char quote = peek(s, 0);
    for (s->at++; s->at < s->n && peek(s, 0) != quote && peek(s, 0) != '\n'; step(s))
        if (peek(s, 0) == '\\' && s->at + 1 < s->n)
            step(s);
    if (peek(s, 0) == quote)
        s->at++;
}

static void skip_comment(scanner *s)
{
    s->at += 2;
    const int level = bracket_level(s);
    if (level >= 0)
        skip_bracket(s, level);
    else
        while (s->at < s->n && peek(s, 0) != '\n')
            s->at++;
}

static bool is_keyword(const char *s, size_t n)
{
    static const char *const words[] = {"and",   "break", "do",       "else", "elseif", "end",
                                        "false", "for",   "function", "goto", "if",     "in",
                                        "local", "nil",   "not",      "or",   "repeat", "return",
                                        "then",  "true",  "until",    "while"};
    for (size_t i = 0; i < DC_COUNTOF(words); i++)
        if (strlen(words[i]) == n && memcmp(words[i], s, n) == 0)
            return true;
    return false;
}

/* "self.first.weight" is three names: self, self.first, all of it. */
static void add_names(scanner *s)
{
    const size_t from = s->at;
    size_t root = 0;
    for (;;) {
        while (is_word(peek(s, 0)))
            s->at++;
        const size_t n = s->at - from;
        if (root == 0)
            root = n;
        if (root == n && is_keyword(s->s + from, n))
            return;
        DC_PUSH(s->t->name,
                ((dc_check_name){(uint32_t)from, (uint32_t)n, (uint32_t)root, s->line, 0}));
        if (peek(s, 0) != '.' || !begins_word(peek(s, 1)))
            return;
        s->at++;
    }
}

/* A field, a method or a key behind a dot: no variable. */
static void skip_word(scanner *s)
{
    while (is_word(peek(s, 0)))
        s->at++;
}

static void find_names(dc_check_types *t)
{
    scanner s = {.t = t, .s = t->text, .n = t->n, .line = 1};
    while (s.at < s.n) {
        const char c = peek(&s, 0), before = s.at > 0 ? s.s[s.at - 1] : '\0';
        if (c == '-' && peek(&s, 1) == '-')
            skip_comment(&s);
        else if (c == '"' || c == '\'')
            skip_quoted(&s);
        else if (bracket_level(&s) >= 0)
            skip_bracket(&s, bracket_level(&s));
        else if (begins_word(c) && before != '.' && before != ':')
            add_names(&s);
        else if (is_word(c))
            skip_word(&s);
        else
            step(&s);
    }
    t->lines = s.line;
}

/* first[line]: where the names of a line begin. */
static void find_lines(dc_check_types *t)
{
    uint32_t at = 0;
    t->first = dc_xalloc((t->lines + 2) * sizeof *t->first);
    t->visit = dc_xalloc((t->lines + 2) * sizeof *t->visit);
    for (uint32_t line = 0; line < t->lines + 2; line++) {
        while (at < t->name.n && t->name.at[at].line < line)
            at++;
        t->first[line] = at;
    }
}

dc_check_types *dc_check_types_new(dc_rt *rt, const char *text, size_t n)
{
    dc_check_types *t = dc_xalloc(sizeof *t);
    t->rt = rt;
    t->text = text;
    t->n = n < INT32_MAX ? n : 0;
    DC_PUSH(t->sight, (dc_check_sight){0}); /* 0 is none */
    DC_PUSH(t->value, (dc_check_value){0});
    find_names(t);
    find_lines(t);
    return t;
}

void dc_check_types_free(dc_check_types *t)
{
    if (t == NULL)
        return;
    DC_VEC_FREE(t->name);
    DC_VEC_FREE(t->sight);
    DC_VEC_FREE(t->value);
    DC_VEC_FREE(t->made);
    DC_VEC_FREE(t->frame);
    dc_ptrmap_free(&t->known);
    dc_xfree(t->first);
    dc_xfree(t->visit);
    dc_xfree(t);
}

/* ---- what is seen ----------------------------------------------------------------------------- */

static void add_sight(dc_check_types *t, uint32_t name, bool after, uint32_t value)
{
    uint32_t *at = &t->name.at[name].sight;
    int n = 0;
    for (; *at != 0; at = &t->sight.at[*at].next) {
        const dc_check_sight *s = &t->sight.at[*at];
        n += s->after == after;
        if (s->after == after && s->value == value)
            return;
    }
    if (n == SIGHTS)
        return;
    *at = t->sight.n; /* before the list may move */
    DC_PUSH(t->sight, ((dc_check_sight){value, 0, after}));
}

/* The names that are looked at: their roots stand on the stack from `base` on, as far as they are found. */
typedef struct look {
    dc_check_types *t;
    int n, base;
    uint32_t name[NAMES];
    bool after[NAMES], found[NAMES];
} look;

static void want_line(look *k, uint32_t line, bool after)
{
    const dc_check_types *t = k->t;
    for (uint32_t i = t->first[line]; i < t->first[line + 1] && k->n < NAMES; i++) {
        k->name[k->n] = i;
        k->found[k->n] = false;
        k->after[k->n++] = after;
    }
}

/* A variable of this name has the value on top, which is popped. */
static void take(lua_State *L, look *k, const char *name)
{
    const size_t n = strlen(name);
    for (int i = 0; i < k->n; i++) {
        const dc_check_name *wanted = &k->t->name.at[k->name[i]];
        if (wanted->root != n || memcmp(k->t->text + wanted->from, name, n) != 0)
            continue;
        lua_copy(L, -1, k->base + i);
        k->found[i] = true;
    }
    lua_pop(L, 1);
}

static void take_upvalues(lua_State *L, look *k, lua_Debug *ar)
{
    const char *name;
    look inner = *k; /* locals come first */
    lua_getinfo(L, "f", ar);
    const int fn = lua_gettop(L);
    for (int i = 0; i < k->n; i++)
        inner.found[i] = false;
    for (int i = 1; (name = lua_getupvalue(L, fn, i)) != NULL; i++) {
        const size_t n = strlen(name);
        for (int w = 0; w < k->n; w++) {
            const dc_check_name *wanted = &k->t->name.at[k->name[w]];
            if (k->found[w])
                continue;
            if (wanted->root == n && memcmp(k->t->text + wanted->from, name, n) == 0) {
                lua_copy(L, -1, k->base + w);
                inner.found[w] = true;
            } else if (strcmp(name, "_ENV") == 0 && !inner.found[w] && lua_istable(L, -1)) {
                lua_pushlstring(L, k->t->text + wanted->from, wanted->root);
                lua_rawget(L, -2);
                lua_replace(L, k->base + w);
            }
        }
        lua_pop(L, 1);
    }
    lua_settop(L, fn - 1);
}

/* The fields behind the root, the value on top: false: there is no such field. */
static bool follow(lua_State *L, const dc_check_types *t, const dc_check_name *name)
{
    for (uint32_t at = name->root; at < name->n;) {
        const uint32_t from = at + 1;
        for (at = from; at < name->n && t->text[name->from + at] != '.';)
            at++;
        lua_pushlstring(L, t->text + name->from + from, at - from);
        if (!dc_prompt_get_field(L))
            return false;
    }
    return true;
}

static void note_values(lua_State *L, look *k)
{
    for (int i = 0; i < k->n; i++) {
        lua_pushvalue(L, k->base + i);
        if (!lua_isnil(L, -1) && follow(L, k->t, &k->t->name.at[k->name[i]])) {
            const uint32_t value = dc_check_value_of(L, k->t, lua_gettop(L));
            if (value != 0)
                add_sight(k->t, k->name[i], k->after[i], value);
        }
        lua_pop(L, 1);
    }
}

/* Looks at variables of the function of ar: after line `left`, and before line `next`; 0: neither. */
static void look_at(lua_State *L, dc_check_types *t, lua_Debug *ar, uint32_t left, uint32_t next)
{
    look k = {.t = t, .base = lua_gettop(L) + 1};
    const char *name;
    if (left != 0)
        want_line(&k, left, true);
    if (next != 0)
        want_line(&k, next, false);
    if (k.n == 0)
        return;
    luaL_checkstack(L, NAMES + 20, "names");
    lua_settop(L, k.base + k.n - 1);
    for (int i = 1; (name = lua_getlocal(L, ar, i)) != NULL; i++)
        take(L, &k, name);
    take_upvalues(L, &k, ar);
    note_values(L, &k);
    lua_settop(L, k.base - 1);
}

/* ---- the hook --------------------------------------------------------------------------------- */

void dc_check_types_begin(lua_State *L, dc_check_types *t)
{
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    t->source = ar.source;
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, t);
}

/*
 * Events of lines on or off, where L runs: while they are on, each instruction takes twice as long. The hook of a trace
 * passes on what it was told to.
 */
static void set_lines(lua_State *L, dc_dsl *d, bool on)
{
    const lua_Hook hook = lua_gethook(L);
    const int mask = lua_gethookmask(L);
    if (hook == NULL || hook == d->stop_hook || (!on && d->trace != NULL))
        return;
    for (dc_trace *t = d->trace; t != NULL; t = t->outer)
        t->hook_mask |= LUA_MASKLINE;
    dc_interrupt_sethook(L, d, hook, on ? mask | LUA_MASKLINE : mask & ~LUA_MASKLINE, 0);
}

static uint32_t line_within(const dc_check_types *t, int line)
{
    return line > 0 && (uint32_t)line <= t->lines ? (uint32_t)line : 0;
}

/* The line that the function which runs in this frame has left; frames that an error ended are found again. */
static dc_check_frame *frame_of(dc_check_types *t, const lua_Debug *ar)
{
    for (uint32_t i = t->frame.n; i-- > 0;)
        if (t->frame.at[i].at == ar->i_ci)
            return &t->frame.at[i];
    if (t->frame.n == FRAMES)
        t->frame.n = 0;
    DC_PUSH(t->frame, ((dc_check_frame){ar->i_ci, 0, -1}));
    return &t->frame.at[t->frame.n - 1];
}

/* Is the line still looked at? Counts in each trace anew. */
static bool is_due(dc_check_types *t, const dc_dsl *d, uint32_t line, bool count)
{
    dc_check_visit *v = &t->visit[line];
    const uint64_t serial = d->trace != NULL ? d->trace->serial : 0;
    if (v->serial != serial)
        *v = (dc_check_visit){serial, 0};
    if (v->n > VISITS)
        return false;
    v->n += count;
    return true;
}

/* Lines are off and something is called: on again where the script has come to a line that is not known. */
static void look_again(lua_State *L, dc_check_types *t, dc_dsl *d, const lua_Debug *called)
{
    lua_Debug caller;
    if (called->source == t->source && is_due(t, d, line_within(t, called->linedefined), true)) {
        set_lines(L, d, true);
        return;
    }
    if (lua_getstack(L, 1, &caller) == 0 || lua_getinfo(L, "Sl", &caller) == 0 ||
        caller.source != t->source)
        return;
    const uint32_t line = line_within(t, caller.currentline);
    if (line == 0 || !is_due(t, d, line, true))
        return;
    dc_check_frame *f = frame_of(t, &caller);
    f->function = caller.linedefined;
    f->line = line;
    look_at(L, t, &caller, 0, line);
    set_lines(L, d, true);
}

void dc_check_types_hook(lua_State *L, lua_Debug *ar, dc_check_types *t)
{
    const int event = ar->event;
    lua_getinfo(L, "S", ar);
    const bool calls = event == LUA_HOOKCALL || event == LUA_HOOKTAILCALL;
    dc_dsl *d = ar->source == t->source || calls ? dc_dsl_in(L) : NULL;
    if (calls && (lua_gethookmask(L) & LUA_MASKLINE) == 0)
        look_again(L, t, d, ar);
    if (ar->source != t->source)
        return;
    dc_check_frame *f = frame_of(t, ar);
    if (calls || f->function != ar->linedefined) {
        f->function = ar->linedefined;
        f->line = line_within(t, ar->linedefined); /* where its parameters stand */
    }
    if (calls)
        return;
    uint32_t left = f->line, next = 0;
    if (event == LUA_HOOKLINE) {
        next = line_within(t, ar->currentline);
        f->line = next;
    } else {
        *f = t->frame.at[--t->frame.n];
    }
    if (left != 0 && !is_due(t, d, left, false))
        left = 0;
    if (next != 0 && !is_due(t, d, next, true))
        next = 0;
    t->idle = left != 0 || next != 0 ? 0 : t->idle + 1;
    if (left != 0 || next != 0)
        look_at(L, t, ar, left, next);
    else if (t->idle > IDLE)
        set_lines(L, d, false);
}

void dc_check_types_made(dc_check_types *t, const dc_handle *h, const char *op, const char *where)
{
    if (where != NULL && t->made.n < MOST_MADE)
        DC_PUSH(t->made, ((dc_check_made){where, op, dc_check_value_of_tensor(t, h)}));
}
