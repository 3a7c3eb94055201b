/* Images of Lua tables: whatever changes in one is seen, and what stays the same is the same. */
#include "dsl/base/luatable.h"

#include <lauxlib.h>
#include <lualib.h>

#include <stdlib.h>

#include "tests/t.h"

/* The code changes the global t, of which `make` makes the first; is it the same table behind it? */
static bool same_after(lua_State *L, const char *make, const char *change)
{
    dc_luatable image = {0};
    lua_settop(L, 0);
    CHECK_EQ(luaL_dostring(L, make), LUA_OK);
    lua_getglobal(L, "t");
    dc_luatable_take(&image, lua_topointer(L, 1));
    CHECK(dc_luatable_same(&image, lua_topointer(L, 1)));
    CHECK_EQ(luaL_dostring(L, change), LUA_OK);
    const bool same = dc_luatable_same(&image, lua_topointer(L, 1));
    DC_VEC_FREE(image.copy);
    return same;
}

static void check_changes(lua_State *L)
{
    static const char make[] =
        "t = { 1, 2.5, 'c', { 4 }, a = 1, b = 0/0, c = false, d = t, e = print }";
    static const char *const change[] = {"t[1] = 2",           "t[2] = 2",
                                         "t[3] = 'd'",         "t[4] = { 4 }",
                                         "t[5] = 1",           "t[4] = nil",
                                         "t.a = 1.0",          "t.a = nil",
                                         "t.b = -t.b",         "t.c = true",
                                         "t.c = nil",          "t.e = pairs",
                                         "t.new = 1",          "setmetatable(t, {})",
                                         "t.a, t.aa = nil, 1", "t[0] = 1",
                                         "t[100] = 1",         "table.remove(t)",
                                         "t.c, t[1] = nil, 0", "for i = 1, 99 do t[i] = i end"};
    static const char *const none[] = {"t[1] = 1",
                                       "t.b = t.b",
                                       "local n = #t",
                                       "t.x = nil",
                                       "for k, v in pairs(t) do t[k] = v end",
                                       "collectgarbage()"};
    for (size_t i = 0; i < DC_COUNTOF(change); i++)
        if (same_after(L, make, change[i]))
            CHECK_STR(change[i], "is seen");
    for (size_t i = 0; i < DC_COUNTOF(none); i++)
        if (!same_after(L, make, none[i]))
            CHECK_STR(none[i], "changes nothing");
}

/* Random tables: an assignment of a value that is another one is always seen. */
static void check_random(lua_State *L)
{
    static const char make[] =
        "math.randomseed(SEED) t = {} for _ = 1, math.random(0, 40) do "
        "t[math.random(2) == 1 and math.random(20) or 'k' .. math.random(20)] = math.random(3) "
        "end for i = 1, #t // 2 do t[#t] = nil end";
    static const char change[] =
        "local k = math.random(2) == 1 and math.random(40) or 'k' .. math.random(40) "
        "local was = t[k] t[k] = math.random(4) > 1 and math.random(3) or nil CHANGED = t[k] ~= "
        "was";
    for (int seed = 1; seed <= 3000; seed++) {
        lua_pushinteger(L, seed);
        lua_setglobal(L, "SEED");
        const bool same = same_after(L, make, change);
        lua_getglobal(L, "CHANGED");
        CHECK(!(same && lua_toboolean(L, -1)));
    }
}

int main(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (dc_luatable_known(L)) {
        check_changes(L);
        check_random(L);
    } else {
        T_SKIP("tables of this Lua are laid out in another way");
    }
    lua_close(L);
    return t_done();
}
