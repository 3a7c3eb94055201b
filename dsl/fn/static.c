/*
 * dc.static(v): a value that typed functions read while they are traced. Each value is a
 * specialisation of its own; going back to an earlier value finds the earlier one.
 *
 *   k = dc.static(2)      k.value is read inside and assigned outside
 *
 * A static object gives every value that it ever had a number. A specialisation remembers which one
 * it had, so asking whether it still holds is a comparison of two integers. Layers keep their structure and mode in one.
 */
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

#include <string.h>

const dc_utype dc_static_type = {.name = "deepc.static"};
enum { VALUE = 1, NUMBERS = 2 };

typedef struct dc_static {
    dc_uhead head;
    dc_static_value now;
    uint64_t count;   /* numbers given out */
    const char *what; /* for messages; interned */
} dc_static;

/* A string that no script has by accident. */
static void push_float_key(lua_State *L, lua_Number v)
{
    char text[40] = "";
    memcpy(text + 1, &v, sizeof v);
    lua_pushlstring(L, text, 1 + sizeof v);
}

/* What stands for a value as a key: nil and NaN are none, 2.0 would be 2. */
void dc_static_push_key(lua_State *L, int idx)
{
    static const char nil_key, nan_key;
    if (lua_isnil(L, idx))
        lua_pushlightuserdata(L, (void *)&nil_key);
    else if (lua_type(L, idx) == LUA_TNUMBER && lua_tonumber(L, idx) != lua_tonumber(L, idx))
        lua_pushlightuserdata(L, (void *)&nan_key);
    else if (lua_type(L, idx) == LUA_TNUMBER && !lua_isinteger(L, idx))
        push_float_key(L, lua_tonumber(L, idx));
    else
        lua_pushvalue(L, idx);
}

/* Gives the object at idx the value on top, which is popped. */
static void assign(lua_State *L, dc_dsl *d, dc_static *s, int idx)
{
    const int value = lua_gettop(L);
    s->now.text = dc_place_name(L, d, "%.60s", luaL_tolstring(L, value, NULL));
    lua_settop(L, value);
    dc_udata_table(L, idx, NUMBERS);
    dc_static_push_key(L, value);
    if (lua_rawget(L, -2) == LUA_TNUMBER) {
        s->now.number = (uint64_t)lua_tointeger(L, -1);
    } else {
        dc_static_push_key(L, value);
        lua_pushinteger(L, (lua_Integer)s->count + 1);
        lua_rawset(L, value + 1);
        s->now.number = ++s->count;
    }
    lua_settop(L, value);
    lua_setiuservalue(L, idx, VALUE);
}

void dc_static_push(lua_State *L, dc_dsl *d, const char *what)
{
    const int value = lua_gettop(L);
    luaL_checkstack(L, 10, "a static value");
    dc_static *s = dc_udata_new(L, &dc_static_type, sizeof *s, 2);
    s->what = what;
    lua_newtable(L);
    lua_setiuservalue(L, -2, NUMBERS);
    lua_pushvalue(L, value);
    assign(L, d, s, value + 1);
    lua_remove(L, value);
}

static void refuse_tensor(lua_State *L, dc_dsl *d, int idx)
{
    if (dc_handle_test(L, idx) != NULL)
        dc_error_raisef(L, d, DC_ERR_ARG, "static",
                        "a tensor is no static value; captured tensors are inputs by themselves");
}

/* The trace depends on the value of the object at idx. */
static void note(lua_State *L, dc_dsl *d, int idx, const dc_static *s)
{
    dc_trace *t = dc_trace_here(L, d);
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < t->dep.n; i++)
        if (t->dep.at[i].now == &s->now)
            return;
    dc_trace_hold(L, t, idx);
    DC_PUSH_OR_RAISE(L, d, t->dep, ((dc_trace_dep){&s->now, s->now, s->what}));
}

static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_static *s = dc_udata_check(L, 1, &dc_static_type);
    const char *name = luaL_tolstring(L, 2, NULL);
    if (strcmp(name, "value") != 0)
        dc_error_fact(L, d, DC_ERR_FIELD, &(dc_fact){.word = {"a static value", name}},
                      &(dc_blame){.hint = "k.value"});
    note(L, d, 1, s);
    lua_getiuservalue(L, 1, VALUE);
    return 1;
}

static int l_newindex(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_static *s = dc_udata_check(L, 1, &dc_static_type);
    lua_settop(L, 3);
    const char *name = luaL_tolstring(L, 2, NULL);
    if (strcmp(name, "value") != 0)
        dc_error_fact(L, d, DC_ERR_FIELD, &(dc_fact){.word = {"a static value", name}},
                      &(dc_blame){.hint = "k.value"});
    const dc_trace *t = dc_trace_here(L, d);
    if (t != NULL) {
        const char *text = lua_pushfstring(
            L, "a static value is assigned while '%s' is traced, which happens once", t->name);
        dc_error_fact(L, d, DC_ERR_ASSIGNED, &(dc_fact){.word = {text}},
                      &(dc_blame){.hint = "assign it outside, before the call"});
    }
    refuse_tensor(L, d, 3);
    lua_settop(L, 3);
    assign(L, d, s, 1);
    return 0;
}

static int l_tostring(lua_State *L)
{
    dc_udata_check(L, 1, &dc_static_type);
    lua_getiuservalue(L, 1, VALUE);
    lua_pushfstring(L, "static %s", luaL_tolstring(L, -1, NULL));
    return 1;
}

/* dc.static(value) */
static int l_static(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 1);
    refuse_tensor(L, d, 1);
    const char *where = dc_place_find(L, d).where;
    dc_static_push(L, d, dc_place_name(L, d, "static value made at %s", where ? where : "?"));
    return 1;
}

static const dc_binding of_static[] = {
    {"__index", l_index, DC_ANY, DC_IN_META},
    {"__newindex", l_newindex, DC_ANY, DC_IN_META},
    {"__tostring", l_tostring, DC_ANY, DC_IN_META},
};

const dc_bindings dc_static_methods = DC_BINDINGS(of_static);

static const dc_binding bindings[] = {
    {"static", l_static, 1, DC_IN_MODULE},
};

const dc_bindings dc_static_bindings = DC_BINDINGS(bindings);
