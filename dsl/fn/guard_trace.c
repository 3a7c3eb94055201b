/*
 * Guards: what a trace captured from outside, and whether it is still the same.
 *
 * While a body is traced, a call hook sees every function that is called. A Lua function that was
 * there before the trace (it can be reached from the body) has captured locals from outside: they
 * are noted with their values when it is first called, before it has run. A function made during
 * the trace shares captured locals with such a one or has locals of the trace only.
 *
 * When the trace ends, a noted local that has another value was assigned: an error. The others
 * become guards, and so do the fields of the tables and objects among them (guard_tables.c); a function
 * or a table in them counts as changed when it is another one.
 */
#include "dsl/base/interrupt.h"
#include "dsl/fn/guard_impl.h"
#include "dsl/fn/reach.h"

#include <string.h>

/* ---- noting ---------------------------------------------------------------------------------- */

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
                holder = dc_guard_ref(L, fn + 1, fn);
            const dc_guard local = {.holder = holder,
                                    .key = i,
                                    .id = id,
                                    .name = dc_place_name(L, d, "%s", name),
                                    .was = dc_guard_keep(L, fn + 2, fn + 1),
                                    .named = true};
            DC_PUSH_OR_RAISE(L, d, t->guards->local, local);
        }
        lua_settop(L, fn + 1);
    }
    lua_settop(L, fn);
}

/* fn is on top. */
static bool first_time(lua_State *L, const dc_trace *t, int fn)
{
    dc_trace_push_refs(L, t);
    const bool first = dc_guard_take_once(L, fn + 1, "seen", fn);
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

static const char FORBIDDEN[] = "functions that no traced body may call";
static const char *const KEYS[] = {"next", "pairs", "rawget"}; /* go over keys, or compute them */
static const char PLAIN[] = "functions of Lua that keep nothing from call to call";

/* The function on top is one whose value differs from call to call. */
static void refuse_forbidden(lua_State *L, dc_dsl *d, const dc_trace *t)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, FORBIDDEN);
    lua_pushvalue(L, -2);
    if (lua_istable(L, -2) && lua_rawget(L, -2) == LUA_TSTRING) {
        const char *name = lua_tostring(L, -1);
        if (strcmp(name, "coroutine.yield") != 0)
            dc_error_fact(L, d, DC_ERR_FORBIDDEN, &(dc_fact){.word = {name, t->name}},
                          &(dc_blame){.hint = strcmp(name, "math.random") == 0
                                                  ? "dc.rand draws anew at each call"
                                                  : NULL});
        if (L == t->L || (t->body != NULL && L == t->body->L))
            dc_error_fact(L, d, DC_ERR_YIELD,
                          &(dc_fact){.word = {L == t->L ? t->name : t->body->op}}, NULL);
    }
    lua_pop(L, 2);
}

static bool frame_is_library(lua_State *L, lua_Debug *ar)
{
    lua_getinfo(L, "S", ar);
    return strncmp(ar->source, "=deepc/", 7) == 0;
}

/* Does the function at fn read fields whose names no function says? */
static bool goes_over_keys(lua_State *L, int fn)
{
    bool found = false;
    const bool known = lua_rawgetp(L, LUA_REGISTRYINDEX, FORBIDDEN) == LUA_TTABLE;
    for (size_t i = 0; known && i < DC_COUNTOF(KEYS) && !found; i++) {
        lua_getfield(L, -1, KEYS[i]);
        found = lua_rawequal(L, -1, fn);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return found;
}

static bool called_by_script(lua_State *L)
{
    lua_Debug caller;
    return lua_getstack(L, 1, &caller) && !frame_is_library(L, &caller);
}

/* Is the function on top, in C, one of ours, or one of Lua's that are known to be plain? */
static bool is_plain(lua_State *L, const dc_dsl *d)
{
    const lua_CFunction fn = lua_tocfunction(L, -1);
    bool found = false;
    if (lua_getupvalue(L, -1, 1) != NULL) {
        found = dc_udata_test(L, -1, &dc_dsl_type) == d;
        lua_pop(L, 1);
    }
    if (!found && lua_rawgetp(L, LUA_REGISTRYINDEX, PLAIN) == LUA_TTABLE) {
        lua_pushcfunction(L, fn);
        found = lua_rawget(L, -2) != LUA_TNIL;
        lua_pop(L, 1);
    }
    lua_pop(L, found || lua_type(L, -1) == LUA_TTABLE ? 1 : 0);
    return found;
}

/* Of the pair that the address belongs to, among n places. */
static size_t pair_of(uintptr_t address, size_t n)
{
    return dc_hash_mix(0, address) % (n / 2) * 2;
}

static void see_c_function(lua_State *L, dc_dsl *d, dc_trace *t)
{
    const int fn = lua_gettop(L);
    const lua_CFunction c = lua_tocfunction(L, fn);
    lua_CFunction *known = &d->plain[pair_of((uintptr_t)c, DC_COUNTOF(d->plain))];
    dc_guards *g = t->guards; /* NULL: the trace is being closed */
    if (known[0] == c || known[1] == c)
        return;
    refuse_forbidden(L, d, t);
    if (g != NULL && goes_over_keys(L, fn)) {
        g->iterated = g->iterated || called_by_script(L);
    } else if (is_plain(L, d)) {
        known[1] = known[0];
        known[0] = c;
    } else if (g != NULL) {
        g->foreign = true;
    }
}

static void see_lua_function(lua_State *L, dc_dsl *d, dc_trace *t, lua_Debug *ar)
{
    const int fn = lua_gettop(L);
    const void *address = lua_topointer(L, fn);
    struct dc_seen *seen = &d->seen[pair_of((uintptr_t)address, DC_COUNTOF(d->seen))];
    for (int i = 0; i < 2; i++)
        if (seen[i].fn == address && seen[i].serial == t->serial)
            return;
    if (first_time(L, t, fn) && !frame_is_library(L, ar)) {
        if (t->guards != NULL)
            t->guards->foreign = true;
        if (from_outside(L, t, fn))
            note_function(L, d, t);
    }
    seen[1] = seen[0];
    seen[0] = (struct dc_seen){address, t->serial};
}

static void see_call(lua_State *L, dc_dsl *d, dc_trace *t, lua_Debug *ar)
{
    luaL_checkstack(L, 12, "a traced call");
    lua_getinfo(L, "f", ar);
    const int fn = lua_gettop(L);
    if (lua_iscfunction(L, fn))
        see_c_function(L, d, t);
    else
        see_lua_function(L, d, t, ar);
    lua_settop(L, fn - 1);
}

static void on_call(lua_State *L, lua_Debug *ar)
{
    dc_dsl *d = dc_dsl_in(L);
    dc_trace *t = d != NULL ? dc_trace_current(L, d) : NULL;
    if (t == NULL) /* in a coroutine that was made while something was traced */
        return;
    const dc_trace *first = t; /* of those in each other: under its hook is what was there */
    while (first->hook == on_call && first->outer != NULL)
        first = first->outer;
    if (first->hook != NULL && first->hook != on_call && (first->hook_mask & (1 << ar->event)) != 0)
        first->hook(L, ar);
    if ((ar->event == LUA_HOOKCALL || ar->event == LUA_HOOKTAILCALL) &&
        (t->finalizing || !dc_trace_finalizing(L)))
        see_call(L, d, t, ar);
}

/* The function on top, in Lua. */
static bool is_of_library(lua_State *L)
{
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    return strncmp(ar.source, "=deepc/", 7) == 0;
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
    t->guards->foreign = true;
    if (lua_type(L, body_idx) == LUA_TFUNCTION && !lua_iscfunction(L, body_idx)) {
        lua_pushvalue(L, body_idx);
        t->guards->foreign = !is_of_library(L);
        first_time(L, t, lua_gettop(L));
        note_function(L, d, t);
        lua_pop(L, 1);
    }
    dc_interrupt_sethook(L, d, on_call, LUA_MASKCALL | t->hook_mask, t->hook_count);
}

void dc_guard_stop(lua_State *L, dc_dsl *d, dc_trace *t)
{
    if (d->hook == on_call) { /* an interruption put its hook in place of ours */
        d->hook = t->hook;
        d->hook_mask = t->hook_mask;
        d->hook_count = t->hook_count;
    }
    if (lua_gethook(L) == on_call)
        dc_interrupt_sethook(L, d, t->hook, t->hook_mask, t->hook_count);
}

/* ---- the end of a trace ---------------------------------------------------------------------- */

/* What to write where the local held a parameter or a state; NULL for other values. */
static const char *hint_for_assigned(lua_State *L, const dc_guard *l, int refs)
{
    if (!dc_guard_has_address(l->was.type))
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
        const dc_guard *l = &g->local.at[i];
        dc_guard_push_local(L, l, refs);
        if (!dc_guard_same(L, -1, &l->was, refs)) {
            const char *text = lua_pushfstring(
                L, "captured local '%s' is assigned while '%s' is traced, which happens once",
                l->name, fn);
            dc_error_fact(L, d, DC_ERR_ASSIGNED, &(dc_fact){.word = {text}},
                          &(dc_blame){.hint = hint_for_assigned(L, l, refs)});
        }
        lua_pop(L, 1);
    }
}

void dc_guard_watch(lua_State *L, dc_dsl *d, dc_trace *t, int idx, const char *name)
{
    const dc_guard_todo todo = {.ref = dc_trace_hold(L, t, idx), .name = name, .named = true};
    DC_PUSH_OR_RAISE(L, d, t->guards->todo, todo);
}

void dc_guard_end(lua_State *L, dc_dsl *d, dc_trace *t, const char *fn, int refs)
{
    static const char *const done[] = {"seen", "reach", "body"};
    dc_guards *g = t->guards;
    refs = lua_absindex(L, refs);
    refuse_assigned(L, d, g, refs, fn);
    dc_guard_collect_names(L, refs);
    for (size_t i = 0; i < DC_COUNTOF(done); i++) {
        lua_pushnil(L);
        lua_setfield(L, refs, done[i]);
    }
    dc_guard_tables(L, d, g, refs);
    t->guards = NULL;
}

/* ---- registration ---------------------------------------------------------------------------- */

/* The function on top, whatever it captured, is plain, unless it is forbidden. Pops it. */
static void add_plain(lua_State *L, int plain)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, FORBIDDEN);
    lua_pushvalue(L, -2);
    if (lua_rawget(L, -2) == LUA_TNIL && lua_iscfunction(L, -3)) {
        lua_pushcfunction(L, lua_tocfunction(L, -3));
        lua_pushboolean(L, true);
        lua_rawset(L, plain);
    }
    lua_pop(L, 3);
}

/* Functions of Lua whose results are a matter of their arguments, and the iterator of ipairs. */
static void collect_plain(lua_State *L, const dc_dsl *d)
{
    static const char *const libraries[] = {"math", "string", "table"};
    static const char *const names[] = {
        "assert",   "error",    "getmetatable", "ipairs",       "next",    "pairs",
        "pcall",    "rawequal", "rawget",       "rawlen",       "rawset",  "select",
        "tonumber", "type",     "xpcall",       "setmetatable", "tostring"};
    lua_newtable(L);
    const int plain = lua_gettop(L);
    for (size_t i = 0; i < DC_COUNTOF(libraries); i++) {
        if (lua_getglobal(L, libraries[i]) == LUA_TTABLE)
            for (lua_pushnil(L); lua_next(L, plain + 1) != 0;)
                add_plain(L, plain);
        lua_settop(L, plain);
    }
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        lua_getglobal(L, names[i]);
        add_plain(L, plain);
    }
    if (d->ipairs != NULL) {
        lua_pushcfunction(L, d->ipairs);
        add_plain(L, plain);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, PLAIN);
}

/* The functions whose values differ from call to call, and those that go over keys, as they are when deepc
 * is opened. */
void dc_guard_open(lua_State *L, dc_dsl *d)
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
    for (size_t i = 0; i < DC_COUNTOF(KEYS); i++) {
        lua_getglobal(L, KEYS[i]);
        lua_setfield(L, -2, KEYS[i]);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, FORBIDDEN);
    collect_plain(L, d);
    d->sees_tables = dc_luatable_known(L);
    d->trace_hook = on_call;
}
