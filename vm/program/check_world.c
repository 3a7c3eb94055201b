/*
 * What a script that is checked would do to the world: nothing is printed or written, no file is made or removed, no
 * program runs. Files are read.
 */
#define _POSIX_C_SOURCE 200809L
#include "dsl/base/handle.h"
#include "dsl/dsl.h"
#include "vm/program/check.h"

#include <lauxlib.h>

#include <string.h>

/* Arguments of output functions, which print nothing here, count as used. */
static void see_arguments(lua_State *L)
{
    for (int i = lua_gettop(L); i > 0; i--) {
        dc_handle *h = dc_handle_look(L, i);
        if (h != NULL)
            dc_uses_mark(h);
    }
}

static int l_nothing(lua_State *L)
{
    see_arguments(L);
    return 0;
}

static int l_true(lua_State *L)
{
    lua_pushboolean(L, 1);
    return 1;
}

static int l_exit(lua_State *L)
{
    dc_check_stop(L);
}

/* Upvalues: io.stdout, io.stderr, the method that was there. */
static int l_write(lua_State *L)
{
    see_arguments(L);
    if (lua_rawequal(L, 1, lua_upvalueindex(1)) || lua_rawequal(L, 1, lua_upvalueindex(2))) {
        lua_settop(L, 1);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* io.write and io.output; upvalue: io.stdout. */
static int l_stdout(lua_State *L)
{
    see_arguments(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

/* io.open, io.popen; upvalue: io.open. What would be written goes nowhere; of what a
 * missing file and a program would give, nothing is known. */
static int l_open(lua_State *L)
{
    const char *mode = luaL_optstring(L, 2, "r");
    const bool reads = strpbrk(mode, "wa+") == NULL && lua_toboolean(L, lua_upvalueindex(2));
    lua_settop(L, 2);
    if (!reads) {
        lua_pushliteral(L, "/dev/null");
        lua_replace(L, 1);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 2, LUA_MULTRET);
    if (lua_isnil(L, 1) || !lua_toboolean(L, lua_upvalueindex(2)))
        dc_dsl_rt(L)->check_unknown = true;
    return lua_gettop(L);
}

/* os.tmpname, which would make the file. */
static int l_name(lua_State *L)
{
    lua_pushliteral(L, "/dev/null");
    return 1;
}

/* io.tmpfile; upvalue: io.open. */
static int l_file(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushliteral(L, "/dev/null");
    lua_pushliteral(L, "w+b");
    lua_call(L, 2, LUA_MULTRET);
    return lua_gettop(L);
}

static void replace_function(lua_State *L, const char *library, const char *name, lua_CFunction fn)
{
    if (lua_getglobal(L, library) == LUA_TTABLE) {
        lua_pushcfunction(L, fn);
        lua_setfield(L, -2, name);
    }
    lua_pop(L, 1);
}

static void silence_files(lua_State *L)
{
    static const char *const names[] = {"write", "output"};
    lua_getglobal(L, "io");
    const int io = lua_gettop(L);
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        lua_getfield(L, io, "stdout");
        lua_pushcclosure(L, l_stdout, 1);
        lua_setfield(L, io, names[i]);
    }
    lua_getfield(L, io, "open");
    lua_pushcclosure(L, l_file, 1);
    lua_setfield(L, io, "tmpfile");
    for (int reads = 0; reads < 2; reads++) {
        lua_getfield(L, io, "open");
        lua_pushboolean(L, reads);
        lua_pushcclosure(L, l_open, 2);
        lua_setfield(L, io, reads ? "open" : "popen");
    }
    if (luaL_getmetatable(L, LUA_FILEHANDLE) == LUA_TTABLE &&
        lua_getfield(L, -1, "__index") == LUA_TTABLE) {
        const int methods = lua_gettop(L);
        lua_getfield(L, io, "stdout");
        lua_getfield(L, io, "stderr");
        lua_getfield(L, methods, "write");
        lua_pushcclosure(L, l_write, 3);
        lua_setfield(L, methods, "write");
    }
    lua_settop(L, io - 1);
}

void dc_check_silence(lua_State *L)
{
    lua_pushcfunction(L, l_nothing);
    lua_setglobal(L, "print");
    silence_files(L);
    replace_function(L, "io", "read", l_nothing);
    replace_function(L, "os", "exit", l_exit);
    replace_function(L, "os", "execute", l_true);
    replace_function(L, "os", "remove", l_true);
    replace_function(L, "os", "rename", l_true);
    replace_function(L, "os", "tmpname", l_name);
}
