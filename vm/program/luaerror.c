/*
 * Errors that are not deepc's own, as the program and the prompt show them.
 */
#include "vm/program/luaerror.h"

#include "dsl/dsl.h"
#include "vm/program/prompt.h"

#include <lauxlib.h>

#include <string.h>

/* Messages of Lua's own that have a usual reason here, each known by a piece of its text. */
static const char *const hints[][2] = {
    {"number expected, got deepc.tensor",
     "t:item() is the number in a tensor of one element; t:sqrt(), t:exp() ... give tensors"},
    {"'for' limit (number expected, got deepc.size)",
     "the size is known when the function runs; dc.fori and dc.scan are loops up to such a size"},
    {"number expected, got deepc.size",
     "the size is known when the function runs; dc.print shows it, size:cast \"f32\" is a tensor"},
    {"attempt to index a boolean value",
     "true and false have no fields; x:allclose(y) gives one of them, without :item()"},
    {"near '!'", "not equal is ~= in Lua: a ~= b; of tensors a:ne(b)"},
    {"near '@'", "the product of matrices is a:matmul(b)"},
    {"unexpected symbol near '&'", "and is a word in Lua: a and b; of tensors a:logical_and(b)"},
    {"unexpected symbol near '|'", "or is a word in Lua: a or b; of tensors a:logical_or(b)"},
    {"syntax error near '+'", "Lua has no += and ++: x = x + 1"},
    {"syntax error near '-'", "Lua has no -= : x = x - 1"},
    {"syntax error near '*'", "Lua has no *= : x = x * 2"},
    {"syntax error near '/'", "Lua has no /= : x = x / 2"},
    {"attempt to call a table value (for iterator",
     "ipairs goes through a list: for _, p in ipairs(net:parameters()) do"},
};

const char *dc_luaerror_hint(const char *text)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(text, hints[i][0]) != NULL)
            return hints[i][1];
    return NULL;
}

static int push_table(lua_State *L)
{
    dc_prompt_push_table(L, 1);
    return 1;
}

/* The value at 1 becomes its text; an error while that is made leaves it. */
static void show_table(lua_State *L)
{
    lua_pushcfunction(L, push_table);
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        lua_replace(L, 1);
    else
        lua_pop(L, 1);
}

void dc_luaerror_read(lua_State *L, int idx, dc_luaerror *e)
{
    if (lua_type(L, idx) == LUA_TSTRING) {
        e->text = lua_tolstring(L, idx, &e->n);
        return;
    }
    e->text = e->room;
    dc_dsl_error_copy(L, idx, e->room, sizeof e->room);
    e->n = strlen(e->room);
}

int dc_luaerror_handler(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TTABLE && luaL_getmetafield(L, 1, "__tostring") == LUA_TNIL)
        show_table(L);
    const char *text = lua_tostring(L, 1);
    const char *hint = text != NULL ? dc_luaerror_hint(text) : NULL;
    if (hint != NULL) {
        lua_pushfstring(L, "%s\n  hint: %s", text, hint);
        lua_replace(L, 1);
    }
    lua_settop(L, 1);
    return dc_dsl_traceback(L);
}
