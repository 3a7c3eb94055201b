#include "dsl/base/shape.h"

#include "dsl/base/error.h"
#include "dsl/base/size.h"

#include <string.h>

static const char KEY[] = "deepc.shape";

bool dc_shape_pop_is(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, KEY);
    const bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

void dc_shape_push(lua_State *L, const dc_type *t, int meta)
{
    const int rank = t->rank;
    int64_t dim[DC_MAX_RANK];
    memcpy(dim, t->dim, sizeof dim); /* a finalizer may end what t is of */
    lua_createtable(L, rank, 0);
    for (int k = 0; k < rank; k++) {
        if (dc_extent_is(dim[k]))
            dc_size_push(L, dim[k]);
        else
            lua_pushinteger(L, (lua_Integer)dim[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_pushvalue(L, meta);
    lua_setmetatable(L, -2);
}

/* What is not there. ipairs asks for one behind the last; a number below 1 is a mistake, also one from the end. */
static int l_index(lua_State *L)
{
    int is_number;
    const lua_Integer i = lua_tointegerx(L, 2, &is_number), n = (lua_Integer)lua_rawlen(L, 1);
    if (!is_number || lua_type(L, 2) != LUA_TNUMBER || i > 0 || n == 0)
        return 0;
    const char *hint = "axes count from 1: x.shape[1] is the first size";
    if (i < 0)
        hint = lua_pushfstring(L, "x:size(%I) counts from the end", (LUAI_UACINT)i);
    dc_error_fact(L, dc_dsl_of(L), DC_ERR_INDEX_TEXT,
                  &(dc_fact){.op = "shape",
                             .word = {lua_pushfstring(L, "index %I outside 1..%I of the shape %s",
                                                      (LUAI_UACINT)i, (LUAI_UACINT)n,
                                                      luaL_tolstring(L, 1, NULL))}},
                  &(dc_blame){.hint = hint});
}

/* Of a table and another one, a shape at least one of them. */
static int l_equal(lua_State *L)
{
    bool same = lua_type(L, 1) == LUA_TTABLE && lua_type(L, 2) == LUA_TTABLE &&
                lua_rawlen(L, 1) == lua_rawlen(L, 2);
    const lua_Integer n = same ? (lua_Integer)lua_rawlen(L, 1) : 0;
    for (lua_Integer i = 1; i <= n && same; i++) {
        lua_rawgeti(L, 1, i);
        lua_rawgeti(L, 2, i);
        same = lua_compare(L, -1, -2, LUA_OPEQ);
        lua_pop(L, 2);
    }
    lua_pushboolean(L, same);
    return 1;
}

/* "[64, 784]" */
static int l_text(lua_State *L)
{
    luaL_Buffer b;
    const lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "[");
    for (lua_Integer i = 1; i <= n; i++) {
        luaL_addstring(&b, i > 1 ? ", " : "");
        lua_rawgeti(L, 1, i);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_addstring(&b, "]");
    luaL_pushresult(&b);
    return 1;
}

static int l_concat(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

/* x:shape() */
static int l_call(lua_State *L)
{
    dc_error_fact(L, dc_dsl_of(L), DC_ERR_FIELD_TEXT,
                  &(dc_fact){.word = {"shape is a field and no method"}},
                  &(dc_blame){.hint = "x.shape, or x:size(axis) of one axis"});
}

void dc_shape_open(lua_State *L, const dc_dsl *d)
{
    static const luaL_Reg meta[] = {{"__index", l_index},   {"__eq", l_equal},
                                    {"__tostring", l_text}, {"__concat", l_concat},
                                    {"__call", l_call},     {NULL, NULL}};
    lua_createtable(L, 0, 8);
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    luaL_setfuncs(L, meta, 1);
    lua_pushliteral(L, "shape");
    lua_setfield(L, -2, "__name");
    dc_udata_hide(L, KEY);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, KEY);
}
