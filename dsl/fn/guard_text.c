/*
 * What is said of guards: what changed, what is captured, what is not compared at each call.
 */
#include "dsl/fn/guard_impl.h"

#include <stdio.h>
#include <string.h>

static const dc_guard *guard_at(const dc_guards *g, int i)
{
    return (uint32_t)i < g->local.n ? &g->local.at[i] : &g->field.at[(uint32_t)i - g->local.n];
}

static const char *describe_number(lua_State *L, const dc_guard_shot *s)
{
    if (s->integer)
        lua_pushinteger(L, s->as.i);
    else
        lua_pushnumber(L, s->as.n);
    return luaL_tolstring(L, -1, NULL);
}

/* "0.1", "'relu'", "f32[2]", "a table"; pushes things. */
static const char *describe_shot(lua_State *L, const dc_guard_shot *s, int refs)
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
        return dc_handle_describe(L, lua_gettop(L));
    return s->type == LUA_TTABLE ? "another table" : "another function";
}

static bool is_tensor(lua_State *L, const dc_guard_shot *s, int refs)
{
    if (s->type != LUA_TUSERDATA)
        return false;
    lua_rawgeti(L, refs, s->ref);
    return dc_handle_test(L, -1) != NULL;
}

static bool same_metatable(lua_State *L, const dc_guard_table *t, int refs)
{
    const void *now = NULL;
    lua_rawgeti(L, refs, t->ref);
    if (lua_getmetatable(L, -1))
        now = lua_topointer(L, -1);
    return now == t->metatable;
}

static DC_NORETURN void raise_added(lua_State *L, dc_dsl *d, const dc_guard_table *t, int refs,
                                    const char *fn)
{
    const char *what = same_metatable(L, t, refs) ? "a field of captured '%s' was added or removed"
                                                  : "the metatable of captured '%s' changed";
    const char *text = lua_pushfstring(L, what, *t->name ? t->name : "_G");
    text = lua_pushfstring(L, "%s and changes the graph of '%s'", text, fn);
    dc_error_fact(L, d, DC_ERR_CAPTURE, &(dc_fact){.word = {text}}, NULL);
}

/* "lr" of "cfg.lr" */
static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

static DC_NORETURN void raise_replaced(lua_State *L, dc_dsl *d, const dc_guard *w, const char *fn)
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
        const dc_guard_table t = g->table.at[(uint32_t)i - beyond];
        raise_added(L, d, &t, refs, fn);
    }
    const dc_guard was = *guard_at(g, i),
                   *w = &was; /* a finalizer may call fn, which has others then */
    const bool local = (uint32_t)i < g->local.n;
    if (is_tensor(L, &w->was, refs))
        raise_replaced(L, d, w, fn);
    if (local)
        dc_guard_push_local(L, w, refs);
    else
        dc_guard_push_field(L, w, refs);
    dc_guard_shot now = dc_guard_look_at(L, -1);
    if (dc_guard_has_address(now.type))
        now.ref = dc_guard_ref(L, refs, lua_gettop(L));
    const char *was_text = describe_shot(L, &w->was, refs),
               *now_text = describe_shot(L, &now, refs);
    const char *text =
        lua_pushfstring(L, "captured %s '%s' changed from %s to %s and changes the graph of '%s'",
                        local                    ? "local"
                        : strpbrk(w->name, ".[") ? "field"
                                                 : "global",
                        w->name, was_text, now_text, fn);
    snprintf(hint, sizeof hint, "argument %s: f32[], or dc.static", last_word(w->name));
    const bool number = w->was.type == LUA_TNUMBER && now.type == LUA_TNUMBER;
    dc_error_fact(L, d, DC_ERR_CAPTURE, &(dc_fact){.word = {text}},
                  &(dc_blame){.hint = number ? hint : NULL});
}

/* What no traced function names is not worth a word, nor globals that are functions and tables. */
void dc_guard_list(const dc_guards *g, luaL_Buffer *b)
{
    for (uint32_t i = 0, n = 0; i < g->local.n + g->field.n; i++) {
        const dc_guard *w = guard_at(g, (int)i);
        const bool value = w->was.type != LUA_TFUNCTION && w->was.type != LUA_TTABLE;
        if (i >= g->local.n && (!w->named || (!value && strpbrk(w->name, ".[") == NULL)))
            continue;
        luaL_addstring(b, n++ ? ", " : "");
        luaL_addstring(b, strcmp(w->name, "_ENV") == 0 ? "globals" : w->name);
    }
}

void dc_guard_tell(dc_dsl *d, const dc_guards *g, const char *fn, const char *place)
{
    char others[60] = "";
    if (g->nbeyond == 0)
        return;
    if (g->nbeyond > 1)
        snprintf(others, sizeof others, " (and %u more table%s)", g->nbeyond - 1,
                 g->nbeyond > 2 ? "s" : "");
    dc_logf(
        &d->rt->log, DC_CH_NOTE,
        "%s%s: captured '%s'%s has %u fields; more than %d in all are compared at every %dth call "
        "only%s",
        fn, place, *g->beyond ? g->beyond : "_G", others, g->beyond_has, DC_GUARD_EACH,
        DC_GUARD_OFTEN, g->field.n < DC_GUARD_FIELDS ? "" : ", and those beyond 4096 never");
}

void dc_guard_tell_quiet(dc_dsl *d, dc_guards *g, const char *fn)
{
    const char *name = NULL;
    bool added = false;
    for (uint32_t i = 0; i < g->harmless.n && !g->iterated; i++) {
        dc_guard_harmless *h = &g->harmless.at[i];
        if (h->times < DC_GUARD_HARMLESS || h->told)
            continue;
        h->told = true;
        added = name == NULL ? h->added : added;
        name = name == NULL ? h->name : name;
    }
    if (name != NULL)
        dc_logf(
            &d->rt->log, DC_CH_NOTE,
            "%s: %s'%s' changes without effect and no function that is traced names it: compared "
            "now and then from here on",
            fn, added ? "what is added to captured " : "captured ", *name ? name : "_G");
}
