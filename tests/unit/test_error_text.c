/*
 * dc_error_text: the text of any error value, outside of any lua_pcall, whatever the value and the state of the
 * state: memory that is at its end, a __tostring that raises, yields or never had a string, an interruption.
 */
#include "tests/t.h"

#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <limits.h>
#include <stdlib.h>

static bool none_left; /* no more memory for Lua */

static void *give(void *ctx, void *block, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    if (none_left && (block == NULL || new_size > old_size))
        return NULL;
    return realloc(block, new_size);
}

static int on_panic(lua_State *L)
{
    (void)L;
    printf("lua_atpanic: an error was raised outside of a lua_pcall\n");
    exit(1);
}

static dc_rt *rt;

static lua_State *open_state(void)
{
    dc_config cfg = DC_CONFIG_INIT;
    lua_State *L = lua_newstate(give, NULL);
    lua_atpanic(L, on_panic);
    luaL_openlibs(L);
    cfg.compile = "off";
    cfg.allow = DC_ALLOW_COMPUTE;
    CHECK(dc_open(&cfg, &rt) == DC_OK && dc_attach(L, rt) == DC_OK);
    return L;
}

/* The text of the value on top, and that the stack is as it was; in a buffer of any size. */
static const char *text_of(lua_State *L)
{
    static char text[4000], part[4000];
    const int top = lua_gettop(L);
    const size_t n = dc_error_text(L, -1, text, sizeof text);
    CHECK_EQ(strlen(text), n);
    CHECK_EQ(dc_error_text(L, top, NULL, 0), n);
    CHECK_EQ(dc_error_text(L, top, NULL, 100), n);
    for (size_t room = 1; room < n + 3; room = room * 2 + 1) {
        memset(part, 'x', sizeof part);
        CHECK_EQ(dc_error_text(L, -1, part, room), n);
        CHECK(strncmp(part, text, room - 1) == 0 && strlen(part) == (n < room ? n : room - 1));
        CHECK(part[room] == 'x');
    }
    CHECK_EQ(lua_gettop(L), top);
    return text;
}

/* Of what a chunk returns. */
static const char *text_of_chunk(lua_State *L, const char *chunk)
{
    lua_settop(L, 0);
    CHECK(luaL_dostring(L, chunk) == LUA_OK);
    return text_of(L);
}

static const struct {
    const char *chunk, *text;
} values[] = {
    {"return 'a text'", "a text"},
    {"return 'a\\0b'", "a?b"},
    {"return ''", ""},
    {"return nil", "(error object is a nil value)"},
    {"return true", "true"},
    {"return 7", "7"},
    {"return math.mininteger", "-9223372036854775808"},
    {"return 0.5", "0.5"},
    {"return print", "(error object is a function value)"},
    {"return coroutine.create(print)", "(error object is a thread value)"},
    {"return {}", "(error object is a table value)"},
    {"return { message = 'a field' }", "a field"},
    {"return { message = 7 }", "(error object is a table value)"},
    {"return setmetatable({ message = 'm' }, { __tostring = function() return 'told' end })",
     "told"},
    {"return setmetatable({ message = 'm' }, { __tostring = function() error 'no' end })", "m"},
    {"return setmetatable({}, { __tostring = function() error(setmetatable({}, { __tostring = "
     "error })) "
     "end })",
     "(error object is a table value)"},
    {"return setmetatable({ message = 'm' }, { __tostring = function() return {} end })", "m"},
    {"return setmetatable({ message = 'm' }, { __tostring = function() end })", "m"},
    {"return setmetatable({ message = 'm' }, { __tostring = 'text' })", "m"},
    {"return setmetatable({ message = 'm' }, { __tostring = coroutine.yield })", "m"},
    {"local t = setmetatable({ message = 'm' }, {}) getmetatable(t).__tostring = function(x) "
     "return tostring(x) end return t",
     "m"},
    {"return setmetatable({}, { __index = error, __len = error, __name = 'N' })",
     "(error object is a table value)"},
    {"return io.stdout", NULL},
};

static void test_values(lua_State *L)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *text = text_of_chunk(L, values[i].chunk);
        if (values[i].text != NULL)
            CHECK_STR(text, values[i].text);
        else
            CHECK(*text != '\0' && *text != '(');
    }
    lua_settop(L, 0);
}

/* Nothing is there, or no index at all. */
static void test_indices(lua_State *L)
{
    static const int none[] = {0,       1,      2, -1, -2, 1000000, -1000000, LUA_REGISTRYINDEX,
                               INT_MIN, INT_MAX};
    char text[40];
    lua_settop(L, 0);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_EQ(dc_error_text(L, none[i], text, sizeof text), strlen("no error value"));
        CHECK_STR(text, "no error value");
    }
    CHECK(dc_error_text(NULL, -1, text, sizeof text) == strlen(text));
    CHECK_STR(text, "no lua_State");
}

static const char of_deepc[] =
    "local dc = require 'deepc'\n"
    "local _, e = pcall(function() return dc.ones 'f32[2]' + dc.ones 'f32[3]' end)\n";

static void test_errors_of_deepc(lua_State *L)
{
    static const char *const ends[] = {"return e", "e.code = nil return e",
                                       "debug.getmetatable(e).__tostring = error return e"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char chunk[400];
        snprintf(chunk, sizeof chunk, "%s%s", of_deepc, ends[i]);
        CHECK(strstr(text_of_chunk(L, chunk), "[DC0301; deepc explain DC0301]") != NULL);
    }
}

/* Everything again with no memory left: what needs none has its text, a __tostring of the script does not. */
static void test_without_memory(lua_State *L)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        lua_settop(L, 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
        CHECK(luaL_dostring(L, values[i].chunk) == LUA_OK);
        none_left = true;
        const char *text = text_of(L);
        none_left = false;
        CHECK(strlen(text) > 0 || i == 2);
    }
    lua_settop(L, 0);
    CHECK(luaL_dostring(L, of_deepc) == LUA_OK);
    lua_settop(L, 0);
    char chunk[400];
    snprintf(chunk, sizeof chunk, "%sreturn e", of_deepc);
    CHECK(luaL_dostring(L, chunk) == LUA_OK);
    none_left = true;
    CHECK(strstr(text_of(L), "DC0301") != NULL);
    none_left = false;
}

/* One that is pending is not taken away by asking for a text, and no code of the script runs for it. */
static void test_interruption(lua_State *L)
{
    lua_settop(L, 0);
    CHECK(luaL_dostring(
              L, "return setmetatable({ message = 'm' }, { __tostring = function() called = true "
                 "return 'told' end })") == LUA_OK);
    dc_interrupt(rt);
    CHECK_STR(text_of(L), "m");
    CHECK(luaL_dostring(L, "return 1") != LUA_OK);
    CHECK(strstr(text_of(L), "DC0708") != NULL);
    lua_settop(L, 1);
    lua_getglobal(L, "called");
    CHECK(lua_isnil(L, -1));
    lua_settop(L, 1);
    CHECK_STR(text_of(L), "told");
}

/* The value of a coroutine that died is on its own stack. */
static void test_coroutines(lua_State *L)
{
    static const char *const bodies[] = {
        "error('text', 0)", "error(setmetatable({ message = 'text' }, { __tostring = error }))",
        "error { message = 'text' }"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        int n;
        lua_settop(L, 0);
        lua_State *co = lua_newthread(L);
        CHECK(luaL_loadstring(co, bodies[i]) == LUA_OK);
        CHECK(lua_resume(co, L, 0, &n) > LUA_YIELD);
        CHECK_STR(text_of(co), "text");
    }
}

/* Where Lua's stack, or C's, is at its end: in a message handler. */
static int handler(lua_State *L)
{
    char text[200];
    lua_settop(L, 1);
    CHECK(dc_error_text(L, 1, text, sizeof text) > 0);
    return 1;
}

static void test_overflow(lua_State *L)
{
    static const char *const chunks[] = {
        "local function f() return 1 + f() end f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end "
        "return t.x",
        "local s = ('x'):rep(100) local function f() return (s:gsub('x', f)) end f()",
        "local function f() error(setmetatable({ message = 'm' }, { __tostring = f })) end\n"
        "local function g() g() f() end pcall(g) f()"};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        lua_settop(L, 0);
        lua_pushcfunction(L, handler);
        CHECK(luaL_loadstring(L, chunks[i]) == LUA_OK);
        CHECK(lua_pcall(L, 0, 0, 1) != LUA_OK);
        CHECK(*text_of(L) != '\0');
    }
}

int main(void)
{
    lua_State *L = open_state();
    test_values(L);
    test_indices(L);
    test_errors_of_deepc(L);
    test_without_memory(L);
    test_interruption(L);
    test_coroutines(L);
    test_overflow(L);
    lua_close(L);
    L = luaL_newstate(); /* without a context */
    luaL_openlibs(L);
    test_values(L);
    lua_close(L);
    return t_done();
}
