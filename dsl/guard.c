/*
 * Guards: what a trace captured from outside, and whether it is still the same.
 *
 * While a body is traced, a call hook sees every function that is called. A Lua function that was
 * there before the trace (it can be reached from the body) has captured locals from outside: they
 * are noted with their values when it is first called, before it has run. A function made during
 * the trace shares captured locals with such a one or has locals of the trace only.
 *
 * When the trace ends, a noted local that has another value was assigned: an error. The others
 * become guards, and so do the fields of plain tables among them, globals included; a function or a
 * table in them counts as changed when it is another one.
 *
 * A value is kept by type and bits, or by address while the table of references holds it; so asking
 * costs no allocation.
 */
#include "dsl/args.h"
#include "dsl/fn.h"
#include "dsl/interrupt.h"
#include "dsl/reach.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS = 4096, DEPTH = 4 }; /* at most so many guarded fields, so deep */

typedef struct shot { /* a value at some time */
    int type;
    bool integer;
    union {
        lua_Integer i;
        lua_Number n;
        const void *p;
    } as;
    int ref; /* number in the references, of values that have an address */
} shot;

typedef struct guard {
    int holder;       /* reference: a function or a table */
    int key;          /* number of the captured local, or reference of the key */
    const void *id;   /* of the captured local */
    const char *name; /* "total", "cfg.lr"; interned */
    shot was;
} guard;

typedef struct guarded_table {
    int ref;
    uint32_t count; /* of its fields */
    const char *name;
} guarded_table;

struct dc_guards {
    DC_VEC(guarded_table) watched; /* to be looked at when the trace ends */
    DC_VEC(guard) local;
    DC_VEC(guard) field;
    DC_VEC(guarded_table) table;
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool has_address(int type)
{
    return type != LUA_TNIL && type != LUA_TBOOLEAN && type != LUA_TNUMBER;
}

static shot look(lua_State *L, int idx)
{
    shot s = {.type = lua_type(L, idx)};
    if (s.type == LUA_TNUMBER) {
        s.integer = lua_isinteger(L, idx);
        if (s.integer)
            s.as.i = lua_tointeger(L, idx);
        else
            s.as.n = lua_tonumber(L, idx);
    } else if (s.type == LUA_TBOOLEAN) {
        s.as.i = lua_toboolean(L, idx);
    } else if (s.type != LUA_TNIL) {
        s.as.p = lua_topointer(L, idx);
    }
    return s;
}

/* Long strings of the same text may have different addresses. */
static bool same_text(lua_State *L, int idx, const shot *s, int refs)
{
    if (s->type != LUA_TSTRING || lua_type(L, idx) != LUA_TSTRING)
        return false;
    idx = lua_absindex(L, idx);
    lua_rawgeti(L, refs, s->ref);
    const bool same = lua_rawequal(L, -1, idx);
    lua_pop(L, 1);
    return same;
}

static bool same(lua_State *L, int idx, const shot *s, int refs)
{
    const shot now = look(L, idx);
    if (now.type != s->type || now.integer != s->integer)
        return false;
    if (now.type == LUA_TNUMBER && !now.integer)
        return memcmp(&now.as.n, &s->as.n, sizeof now.as.n) == 0;
    if (now.type == LUA_TNUMBER || now.type == LUA_TBOOLEAN)
        return now.as.i == s->as.i;
    return now.as.p == s->as.p || same_text(L, idx, s, refs);
}

static int add_ref(lua_State *L, int refs, int idx)
{
    const int n = (int)lua_rawlen(L, refs) + 1;
    lua_pushvalue(L, idx);
    lua_rawseti(L, refs, n);
    return n;
}

static shot keep(lua_State *L, int idx, int refs)
{
    shot s = look(L, idx);
    if (has_address(s.type))
        s.ref = add_ref(L, refs, idx);
    return s;
}

/* ---- noting ---------------------------------------------------------------------------------- */

typedef struct adding {
    dc_guards *g;
    guard guard;
    guarded_table table;
    enum { LOCAL, FIELD, TABLE, WATCHED } what;
} adding;

static dc_status add_body(dc_job *j, void *arg)
{
    const adding *a = arg;
    DC_UNUSED(j);
    switch (a->what) {
    case LOCAL:
        DC_PUSH(a->g->local, a->guard);
        break;
    case FIELD:
        DC_PUSH(a->g->field, a->guard);
        break;
    case TABLE:
        DC_PUSH(a->g->table, a->table);
        break;
    case WATCHED:
        DC_PUSH(a->g->watched, a->table);
        break;
    }
    return DC_OK;
}

static void add(lua_State *L, dc_dsl *d, const adding *a)
{
    dc_error_check(L, d, dc_protect(&d->rt->job, add_body, (void *)a), "fn");
}

static bool noted(const dc_guards *g, const void *id)
{
    for (uint32_t i = 0; i < g->local.n; i++)
        if (g->local.at[i].id == id)
            return true;
    return false;
}

/* The captured locals of the function on top. */
static void note_function(lua_State *L, dc_dsl *d, dc_trace *t)
{
    const int fn = lua_gettop(L);
    const char *name;
    dc_trace_push_refs(L, t);
    int holder = 0;
    for (int i = 1; (name = lua_getupvalue(L, fn, i)) != NULL; i++) {
        const void *id = lua_upvalueid(L, fn, i);
        if (!noted(t->guards, id)) {
            if (holder == 0)
                holder = add_ref(L, fn + 1, fn);
            const adding a = {.g = t->guards,
                              .guard = {.holder = holder,
                                        .key = i,
                                        .id = id,
                                        .name = dc_place_intern(d, "%s", name),
                                        .was = keep(L, fn + 2, fn + 1)}};
            add(L, d, &a);
        }
        lua_settop(L, fn + 1);
    }
    lua_settop(L, fn);
}

/* Puts the value at idx into a set, which is a field of the references; false where it is in it. */
static bool take_once(lua_State *L, int refs, const char *set, int idx)
{
    lua_getfield(L, refs, set);
    lua_pushvalue(L, idx);
    const bool fresh = lua_rawget(L, -2) == LUA_TNIL;
    lua_pop(L, 1);
    if (fresh) {
        lua_pushvalue(L, idx);
        lua_pushboolean(L, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    return fresh;
}

/* fn is on top. */
static bool first_time(lua_State *L, const dc_trace *t, int fn)
{
    dc_trace_push_refs(L, t);
    const bool first = take_once(L, fn + 1, "seen", fn);
    lua_settop(L, fn);
    return first;
}

/* Was the function at fn there before the trace? */
static bool from_outside(lua_State *L, const dc_trace *t, int fn)
{
    dc_trace_push_refs(L, t);
    const int refs = lua_gettop(L);
    if (lua_getfield(L, refs, "reach") == LUA_TNIL) {
        lua_getfield(L, refs, "body");
        dc_reach_push(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, refs, "reach");
    }
    lua_pushvalue(L, fn);
    const bool found = lua_rawget(L, -2) != LUA_TNIL;
    lua_settop(L, fn);
    return found;
}

/* ---- the hook -------------------------------------------------------------------------------- */

static const char FORBIDDEN[] = "deepc.forbidden";

/* The function on top is one whose value differs from call to call. */
static void refuse_forbidden(lua_State *L, dc_dsl *d, const dc_trace *t)
{
    lua_getfield(L, LUA_REGISTRYINDEX, FORBIDDEN);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TSTRING) {
        const char *name = lua_tostring(L, -1);
        if (strcmp(name, "coroutine.yield") != 0)
            dc_error_fact(L, d, DC_ERR_FORBIDDEN, &(dc_fact){.word = {name, t->name}},
                          &(dc_blame){.hint = strcmp(name, "math.random") == 0
                                                  ? "dc.rand draws anew at each call"
                                                  : NULL});
        if (L == t->L)
            dc_error_fact(L, d, DC_ERR_YIELD, &(dc_fact){.word = {t->name}}, NULL);
    }
    lua_pop(L, 2);
}

static bool is_library(lua_State *L, lua_Debug *ar)
{
    lua_getinfo(L, "S", ar);
    return strncmp(ar->source, "=deepc/", 7) == 0;
}

static void see_call(lua_State *L, dc_dsl *d, dc_trace *t, lua_Debug *ar)
{
    luaL_checkstack(L, 12, "a traced call");
    lua_getinfo(L, "f", ar);
    const int fn = lua_gettop(L);
    if (lua_iscfunction(L, fn))
        refuse_forbidden(L, d, t);
    else if (first_time(L, t, fn) && !is_library(L, ar) && from_outside(L, t, fn))
        note_function(L, d, t);
    lua_settop(L, fn - 1);
}

static void on_call(lua_State *L, lua_Debug *ar)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, FORBIDDEN);
    dc_dsl *d = lua_touserdata(L, -1);
    lua_pop(L, 1);
    dc_trace *t = dc_trace_current(L, d);
    if (t == NULL) /* in a coroutine that was made while something was traced */
        return;
    if (t->hook != NULL && t->hook != on_call && (t->hook_mask & (1 << ar->event)) != 0)
        t->hook(L, ar);
    if (dc_trace_here(L, d) != NULL && (ar->event == LUA_HOOKCALL || ar->event == LUA_HOOKTAILCALL))
        see_call(L, d, t, ar);
}

void dc_guard_begin(lua_State *L, dc_dsl *d, dc_trace *t, int fn_idx, int body_idx)
{
    body_idx = lua_absindex(L, body_idx);
    dc_trace_push_refs(L, t);
    lua_newtable(L);
    lua_setfield(L, -2, "seen");
    lua_pushvalue(L, fn_idx); /* the body, and values of static parameters */
    lua_setfield(L, -2, "body");
    lua_pop(L, 1);
    t->hook = dc_interrupt_below(L, d, &t->hook_mask, &t->hook_count);
    if (lua_type(L, body_idx) == LUA_TFUNCTION && !lua_iscfunction(L, body_idx)) {
        lua_pushvalue(L, body_idx);
        first_time(L, t, lua_gettop(L));
        note_function(L, d, t);
        lua_pop(L, 1);
    }
    lua_sethook(L, on_call, LUA_MASKCALL | t->hook_mask, t->hook_count);
    dc_interrupt_rearm(L, d);
}

void dc_guard_stop(lua_State *L, dc_dsl *d, dc_trace *t)
{
    if (d->hook == on_call) { /* an interruption put its hook in place of ours */
        d->hook = t->hook;
        d->hook_mask = t->hook_mask;
        d->hook_count = t->hook_count;
    }
    if (lua_gethook(L) == on_call)
        lua_sethook(L, t->hook, t->hook_mask, t->hook_count);
    dc_interrupt_rearm(L, d);
}

/* ---- the end of a trace ---------------------------------------------------------------------- */

static void push_value(lua_State *L, const guard *g, int refs, bool local)
{
    lua_rawgeti(L, refs, g->holder);
    if (local) {
        if (lua_getupvalue(L, -1, g->key) == NULL)
            lua_pushnil(L);
    } else {
        lua_rawgeti(L, refs, g->key);
        lua_rawget(L, -2);
    }
    lua_remove(L, -2);
}

/* What to write where the local held a parameter or a state; NULL for other values. */
static const char *hint_for_assigned(lua_State *L, const guard *l, int refs)
{
    if (!has_address(l->was.type))
        return NULL;
    lua_rawgeti(L, refs, l->was.ref);
    const dc_handle *h = dc_handle_test(L, -1);
    lua_pop(L, 1);
    if (h == NULL || h->kind != DC_HANDLE_CELL)
        return NULL;
    return lua_pushfstring(L, "%s:set(value) gives the %s another value, at each call", l->name,
                           h->cell->trainable ? "parameter" : "state");
}

static void refuse_assigned(lua_State *L, dc_dsl *d, const dc_guards *g, int refs, const char *fn)
{
    for (uint32_t i = 0; i < g->local.n; i++) {
        const guard *l = &g->local.at[i];
        push_value(L, l, refs, true);
        if (!same(L, -1, &l->was, refs)) {
            const char *text = lua_pushfstring(
                L, "captured local '%s' is assigned while '%s' is traced, which happens once",
                l->name, fn);
            dc_error_fact(L, d, DC_ERR_ASSIGNED, &(dc_fact){.word = {text}},
                          &(dc_blame){.hint = hint_for_assigned(L, l, refs)});
        }
        lua_pop(L, 1);
    }
}

/* A field of the table called `name`: "cfg.lr", "list[3]"; of globals the key alone. */
static const char *field_name(lua_State *L, dc_dsl *d, const char *name, int key)
{
    char text[200];
    if (lua_type(L, key) == LUA_TSTRING && *name == '\0')
        snprintf(text, sizeof text, "%s", lua_tostring(L, key));
    else if (lua_type(L, key) == LUA_TSTRING)
        snprintf(text, sizeof text, "%s.%s", name, lua_tostring(L, key));
    else if (lua_isinteger(L, key))
        snprintf(text, sizeof text, "%s[%" PRId64 "]", name, (int64_t)lua_tointeger(L, key));
    else
        snprintf(text, sizeof text, "%s[a %s]", name, luaL_typename(L, key));
    return dc_place_intern(d, "%s", text);
}

/* Guards the scalars and tensors of the table on top, and of plain tables in it. */
static void guard_table(lua_State *L, dc_dsl *d, dc_guards *g, int refs, const char *name,
                        int depth)
{
    const int table = lua_gettop(L);
    if (depth == 0 || g->field.n >= FIELDS || !take_once(L, refs, "tables", table))
        return;
    luaL_checkstack(L, 12, "captured tables");
    const int ref = add_ref(L, refs, table);
    uint32_t count = 0;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, table + 1)) {
        const adding field = {.g = g,
                              .what = FIELD,
                              .guard = {.holder = ref,
                                        .key = add_ref(L, refs, table + 1),
                                        .name = field_name(L, d, name, table + 1),
                                        .was = keep(L, table + 2, refs)}};
        add(L, d, &field);
        count++;
        if (dc_args_is_plain(L, table + 2))
            guard_table(L, d, g, refs, field_name(L, d, name, table + 1), depth - 1);
    }
    const adding a = {.g = g, .what = TABLE, .table = {ref, count, name}};
    add(L, d, &a);
}

static void guard_tables(lua_State *L, dc_dsl *d, dc_guards *g, int refs)
{
    lua_newtable(L); /* those that were looked at, libraries to begin with */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (lua_pushnil(L); lua_next(L, -2) != 0;) {
        lua_pushboolean(L, 1);
        lua_rawset(L, -5);
    }
    lua_pop(L, 1);
    lua_pushglobaltable(L);
    lua_pushnil(L);
    lua_rawset(L, -3); /* globals are in package.loaded as _G */
    lua_setfield(L, refs, "tables");
    for (uint32_t i = 0; i < g->local.n; i++) {
        const guard l = g->local.at[i];
        push_value(L, &l, refs, true);
        const bool globals = strcmp(l.name, "_ENV") == 0 && lua_type(L, -1) == LUA_TTABLE;
        if (globals || dc_args_is_plain(L, -1))
            guard_table(L, d, g, refs, globals ? "" : l.name, DEPTH);
        lua_pop(L, 1);
    }
    for (uint32_t i = 0; i < g->watched.n; i++) {
        lua_rawgeti(L, refs, g->watched.at[i].ref);
        guard_table(L, d, g, refs, g->watched.at[i].name, DEPTH);
        lua_pop(L, 1);
    }
    lua_pushnil(L);
    lua_setfield(L, refs, "tables");
}

void dc_guard_watch(lua_State *L, dc_dsl *d, dc_trace *t, int idx, const char *name)
{
    const adding a = {
        .g = t->guards, .what = WATCHED, .table = {dc_trace_hold(L, t, idx), 0, name}};
    add(L, d, &a);
}

dc_guards *dc_guard_end(lua_State *L, dc_dsl *d, dc_trace *t, const char *fn, int refs)
{
    static const char *const done[] = {"seen", "reach", "body"};
    dc_guards *g = t->guards;
    refs = lua_absindex(L, refs);
    refuse_assigned(L, d, g, refs, fn);
    for (size_t i = 0; i < DC_COUNTOF(done); i++) {
        lua_pushnil(L);
        lua_setfield(L, refs, done[i]);
    }
    guard_tables(L, d, g, refs);
    t->guards = NULL;
    return g;
}

dc_guards *dc_guard_new(void)
{
    return dc_xalloc(sizeof(dc_guards));
}

void dc_guard_free(dc_guards *g)
{
    if (g == NULL)
        return;
    DC_VEC_FREE(g->watched);
    DC_VEC_FREE(g->local);
    DC_VEC_FREE(g->field);
    DC_VEC_FREE(g->table);
    dc_xfree(g);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static const guard *guard_at(const dc_guards *g, int i)
{
    return (uint32_t)i < g->local.n ? &g->local.at[i] : &g->field.at[(uint32_t)i - g->local.n];
}

/* Something was added to or taken from a table. Fields that were there are compared one by one. */
static bool other_count(lua_State *L, const guarded_table *t, int refs)
{
    uint32_t n = 0;
    lua_rawgeti(L, refs, t->ref);
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
        n++;
    lua_pop(L, 1);
    return n != t->count;
}

int dc_guard_changed(lua_State *L, dc_dsl *d, const dc_guards *g, int refs, bool fields)
{
    int holder = 0;
    const int top = lua_gettop(L);
    DC_UNUSED(d);
    refs = lua_absindex(L, refs);
    for (uint32_t i = 0; i < g->local.n; i++) {
        const guard *l = &g->local.at[i];
        if (l->holder != holder) {
            lua_settop(L, top);
            lua_rawgeti(L, refs, holder = l->holder);
        }
        lua_getupvalue(L, -1, l->key);
        if (!same(L, -1, &l->was, refs)) {
            lua_settop(L, top);
            return (int)i;
        }
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    for (uint32_t i = 0; fields && i < g->field.n; i++) {
        push_value(L, &g->field.at[i], refs, false);
        const bool equal = same(L, -1, &g->field.at[i].was, refs);
        lua_pop(L, 1);
        if (!equal)
            return (int)(g->local.n + i);
    }
    for (uint32_t i = 0; fields && i < g->table.n; i++)
        if (other_count(L, &g->table.at[i], refs))
            return (int)(g->local.n + g->field.n + i);
    return -1;
}

/* ---- what changed ---------------------------------------------------------------------------- */

static const char *describe_number(lua_State *L, const shot *s)
{
    if (s->integer)
        lua_pushinteger(L, s->as.i);
    else
        lua_pushnumber(L, s->as.n);
    return luaL_tolstring(L, -1, NULL);
}

/* "0.1", "'relu'", "f32[2]", "a table"; pushes things. */
static const char *describe(lua_State *L, const shot *s, int refs)
{
    switch (s->type) {
    case LUA_TNIL:
        return "nil";
    case LUA_TBOOLEAN:
        return s->as.i ? "true" : "false";
    case LUA_TNUMBER:
        return describe_number(L, s);
    default:
        break;
    }
    lua_rawgeti(L, refs, s->ref);
    if (s->type == LUA_TSTRING)
        return lua_pushfstring(L, "'%s'", lua_tostring(L, -1));
    if (s->type == LUA_TUSERDATA)
        return dc_args_describe(L, lua_gettop(L));
    return s->type == LUA_TTABLE ? "another table" : "another function";
}

static bool is_tensor(lua_State *L, const shot *s, int refs)
{
    if (s->type != LUA_TUSERDATA)
        return false;
    lua_rawgeti(L, refs, s->ref);
    return dc_handle_test(L, -1) != NULL;
}

static DC_NORETURN void raise_added(lua_State *L, dc_dsl *d, const guarded_table *t, const char *fn)
{
    const char *text = lua_pushfstring(
        L, "a field of captured '%s' was added or removed and changes the graph of '%s'",
        *t->name ? t->name : "_G", fn);
    dc_error_fact(L, d, DC_ERR_CAPTURE, &(dc_fact){.word = {text}}, NULL);
}

/* "lr" of "cfg.lr" */
static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static DC_NORETURN void raise_replaced(lua_State *L, dc_dsl *d, const guard *w, const char *fn)
{
    char type[DC_TYPE_TEXT], hint[DC_TYPE_TEXT + 100];
    const dc_handle *h = dc_handle_test(L, -1);
    const char *text =
        lua_pushfstring(L, "captured tensor '%s' was replaced after '%s' was traced", w->name, fn);
    snprintf(hint, sizeof hint, "pass it as an argument, or keep it in a dc.state");
    if (h->kind != DC_HANDLE_CLOSED) {
        dc_type_print(dc_handle_type(h), type, sizeof type);
        snprintf(hint, sizeof hint, "pass it as an argument, or %s = dc.state(\"%s\")",
                 last_word(w->name), type);
    }
    dc_error_fact(L, d, DC_ERR_REPLACED, &(dc_fact){.word = {text}}, &(dc_blame){.hint = hint});
}

void dc_guard_raise(lua_State *L, dc_dsl *d, const dc_guards *g, int refs, int i, const char *fn)
{
    char hint[200];
    luaL_checkstack(L, 12, "an error");
    refs = lua_absindex(L, refs);
    const uint32_t beyond = g->local.n + g->field.n;
    if ((uint32_t)i >= beyond) {
        const guarded_table t = g->table.at[(uint32_t)i - beyond];
        raise_added(L, d, &t, fn);
    }
    const guard was = *guard_at(g, i),
                *w = &was; /* a finalizer may call fn, which has others then */
    const bool local = (uint32_t)i < g->local.n;
    if (is_tensor(L, &w->was, refs))
        raise_replaced(L, d, w, fn);
    push_value(L, w, refs, local);
    shot now = look(L, -1);
    if (has_address(now.type))
        now.ref = add_ref(L, refs, lua_gettop(L));
    const char *was_text = describe(L, &w->was, refs), *now_text = describe(L, &now, refs);
    const char *text =
        lua_pushfstring(L, "captured %s '%s' changed from %s to %s and changes the graph of '%s'",
                        local                  ? "local"
                        : strchr(w->name, '.') ? "field"
                                               : "global",
                        w->name, was_text, now_text, fn);
    snprintf(hint, sizeof hint, "argument %s: f32[], or dc.static", last_word(w->name));
    const bool number = w->was.type == LUA_TNUMBER && now.type == LUA_TNUMBER;
    dc_error_fact(L, d, DC_ERR_CAPTURE, &(dc_fact){.word = {text}},
                  &(dc_blame){.hint = number ? hint : NULL});
}

/* Globals that are functions and tables, among them all of Lua's library, are not worth a word. */
void dc_guard_list(const dc_guards *g, luaL_Buffer *b)
{
    for (uint32_t i = 0, n = 0; i < g->local.n + g->field.n; i++) {
        const guard *w = guard_at(g, (int)i);
        const bool value = w->was.type != LUA_TFUNCTION && w->was.type != LUA_TTABLE;
        if (i >= g->local.n && !value && strchr(w->name, '.') == NULL &&
            strchr(w->name, '[') == NULL)
            continue;
        luaL_addstring(b, n++ ? ", " : "");
        luaL_addstring(b, strcmp(w->name, "_ENV") == 0 ? "globals" : w->name);
    }
}

/* ---- registration ---------------------------------------------------------------------------- */

/* The functions whose values differ from call to call, as they are when deepc is opened. */
void dc_guard_register(lua_State *L, dc_dsl *d)
{
    static const char *const names[][2] = {
        {"math", "random"}, {"math", "randomseed"}, {"os", "time"},  {"os", "clock"},
        {"os", "date"},     {"io", "read"},         {"io", "lines"}, {"coroutine", "yield"}};
    lua_newtable(L);
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        if (lua_getglobal(L, names[i][0]) == LUA_TTABLE) {
            lua_getfield(L, -1, names[i][1]);
            if (!lua_isnil(L, -1)) {
                lua_pushfstring(L, "%s.%s", names[i][0], names[i][1]);
                lua_rawset(L, -4);
            } else {
                lua_pop(L, 1);
            }
        }
        lua_pop(L, 1);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, FORBIDDEN);
    lua_pushlightuserdata(L, d);
    lua_rawsetp(L, LUA_REGISTRYINDEX, FORBIDDEN);
}
