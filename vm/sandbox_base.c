/*
 * Functions of Lua's libraries that scripts of others get in another form:
 *
 *   load            text alone; chunks have no file's name, nor one of the library's
 *   require         modules of deepc, and what the host's function gives as text
 *   print           to the host's function, or nowhere
 *   setmetatable    without __gc, which would run where nothing can end it
 *   getmetatable    of tables; false for what else has one
 *   collectgarbage  "collect", "count", "step"
 *   string.rep      of nothing, in no time; those of table are in sandbox_table.c
 *   math.randomseed with a seed; without one it would tell the time and an address
 *   coroutine.create
 *                   of a body whose variables are closed when it fails, not when the coroutine is
 */
#include "vm/match.h"
#include "vm/sandbox.h"
#include "vm/sandbox_table.h"

#include <lauxlib.h>

#include <string.h>

static dc_sandbox_state *state_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* ---- loading --------------------------------------------------------------------------------- */

/*
 * "@file" and "=name" become "=name": a chunk that claims to be a file would have its lines read from
 * there. Names of the library's own chunks ("=deepc/...") are not for scripts.
 */
static const char *push_name(lua_State *L, const char *name)
{
    if (*name != '@' && *name != '=')
        return lua_pushstring(L, name);
    name++;
    return strncmp(name, "deepc/", 6) == 0 ? lua_pushliteral(L, "=(load)")
                                           : lua_pushfstring(L, "=%s", name);
}

int dc_sandbox_load_text(lua_State *L, const char *text, size_t n, const char *name)
{
    if (n > DC_SANDBOX_TEXT) {
        lua_pushfstring(L, "a text of %I bytes; at most %d are loaded here", (LUAI_UACINT)n,
                        (int)DC_SANDBOX_TEXT);
        return LUA_ERRSYNTAX;
    }
    name = push_name(L, name);
    const int status = luaL_loadbufferx(L, text, n, name, "t");
    lua_remove(L, -2);
    return status;
}

/* The text that the function at 1 gives piece by piece, on top. */
static void read_pieces(lua_State *L)
{
    luaL_Buffer b;
    size_t total = 0, n = 0;
    luaL_buffinit(L, &b);
    for (;;) {
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "reader function must return a string");
        n = lua_rawlen(L, -1);
        if (lua_isnil(L, -1) || n == 0)
            break;
        total += n;
        if (total > DC_SANDBOX_TEXT)
            luaL_error(L, "a text of more than %d bytes is not loaded here", (int)DC_SANDBOX_TEXT);
        luaL_addvalue(&b);
    }
    lua_pop(L, 1);
    luaL_pushresult(&b);
}

static int l_load(lua_State *L)
{
    size_t n;
    const char *name = luaL_optstring(L, 2, lua_isstring(L, 1) ? NULL : "=(load)");
    const char *mode = luaL_optstring(L, 3, "t");
    const bool env = !lua_isnone(L, 4);
    lua_settop(L, 4);
    if (lua_isstring(L, 1)) {
        lua_pushvalue(L, 1);
    } else {
        luaL_checktype(L, 1, LUA_TFUNCTION);
        read_pieces(L);
    }
    const char *text = lua_tolstring(L, -1, &n);
    int status = LUA_ERRSYNTAX;
    if (strchr(mode, 't') == NULL)
        lua_pushfstring(L, "only text is loaded here (mode is '%s')", mode);
    else
        status = dc_sandbox_load_text(L, text, n, name != NULL ? name : text);
    if (status != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (env) {
        lua_pushvalue(L, 4);
        if (lua_setupvalue(L, -2, 1) == NULL)
            lua_pop(L, 1);
    }
    return 1;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Words with dots between them, so that a host may make a file's name of it. */
static bool is_module_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    for (;;) {
        const size_t n = strspn(name, letters);
        if (n == 0)
            return false;
        if (name[n] == '\0')
            return true;
        if (name[n] != '.')
            return false;
        name += n + 1;
    }
}

/* A module of deepc, which its own loader makes when it is first asked for. */
static int require_ours(lua_State *L, const char *name)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    const int loaded = lua_gettop(L);
    if (lua_getfield(L, loaded, name) != LUA_TNIL)
        return 1;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    if (lua_getfield(L, -1, name) != LUA_TFUNCTION)
        return luaL_error(L, "module '%s' not found", name);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) /* as Lua's own does: a module without a value has run, too */
        lua_pushboolean(L, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, loaded, name);
    return 1;
}

/* Upvalues: the state; modules of the host by name, false while one runs. */
static int l_require(lua_State *L)
{
    const dc_sandbox_state *s = state_of(L);
    size_t length, n = 0;
    const char *name = luaL_checklstring(L, 1, &length);
    dc_dsl_poll(L);
    lua_settop(L, 1);
    if (strlen(name) != length || length > 200 || !is_module_name(name))
        return luaL_error(L, "'%s' is no name of a module: words with dots between them are", name);
    if (strcmp(name, "deepc") == 0 || strncmp(name, "deepc.", 6) == 0)
        return require_ours(L, name);
    const int kind = lua_getfield(L, lua_upvalueindex(2), name);
    if (kind == LUA_TBOOLEAN && !lua_toboolean(L, -1))
        return luaL_error(L, "module '%s' requires itself", name);
    if (kind != LUA_TNIL)
        return 1;
    const char *text = s->require != NULL ? s->require(s->require_ctx, name, &n) : NULL;
    if (text == NULL)
        return luaL_error(L, "module '%s' not found", name);
    lua_pushfstring(L, "=%s", name);
    if (dc_sandbox_load_text(L, text, n, lua_tostring(L, -1)) != LUA_OK)
        return luaL_error(L, "module '%s': %s", name, lua_tostring(L, -1));
    lua_pushboolean(L, 0);
    lua_setfield(L, lua_upvalueindex(2), name);
    lua_pushvalue(L, 1);
    const int status = lua_pcall(L, 1, 1, 0);
    if (status == LUA_OK && lua_isnil(L, -1))
        lua_pushboolean(L, 1);
    if (status == LUA_OK)
        lua_pushvalue(L, -1);
    else
        lua_pushnil(L); /* it may be required again */
    lua_setfield(L, lua_upvalueindex(2), name);
    return status == LUA_OK ? 1 : lua_error(L);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int l_print(lua_State *L)
{
    const dc_sandbox_state *s = state_of(L);
    const int n = lua_gettop(L);
    luaL_Buffer b;
    size_t length;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&b, '\t');
        dc_dsl_poll(L); /* a __tostring may be a function in C */
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, '\n');
    luaL_pushresult(&b);
    const char *text = lua_tolstring(L, -1, &length);
    if (s->print != NULL)
        s->print(s->print_ctx, text, length);
    return 0;
}

/* ---- metatables, the collector --------------------------------------------------------------- */

static int l_setmetatable(lua_State *L)
{
    const int kind = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, kind == LUA_TNIL || kind == LUA_TTABLE, 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "cannot change a protected metatable");
    if (kind == LUA_TTABLE) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "no __gc here: finalizers are not for scripts; a variable with "
                                 "<close> is closed where its scope ends");
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

static int l_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!lua_getmetatable(L, 1))
        lua_pushnil(L);
    else if (lua_type(L, 1) != LUA_TTABLE)
        lua_pushboolean(L, 0);
    else
        luaL_getmetafield(L, 1, "__metatable");
    return 1;
}

static int l_collectgarbage(lua_State *L)
{
    const char *what = luaL_optstring(L, 1, "collect");
    if (strcmp(what, "collect") == 0) {
        lua_pushinteger(L, lua_gc(L, LUA_GCCOLLECT));
    } else if (strcmp(what, "count") == 0) {
        const int k = lua_gc(L, LUA_GCCOUNT), b = lua_gc(L, LUA_GCCOUNTB);
        lua_pushnumber(L, (lua_Number)k + (lua_Number)b / 1024);
    } else if (strcmp(what, "step") == 0) {
        lua_pushboolean(L, lua_gc(L, LUA_GCSTEP, 0));
    } else {
        return luaL_error(L, "collectgarbage '%s': scripts have 'collect', 'count' and 'step' here",
                          what);
    }
    return 1;
}

/* ---- bounded loops ---------------------------------------------------------------------------- */

/* Calls Lua's function, the first upvalue, with the arguments. */
static int original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int l_rep(lua_State *L)
{
    size_t n, between;
    luaL_checklstring(L, 1, &n);
    luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (n + between > 0)
        return original(L);
    lua_pushliteral(L, ""); /* nothing, however often: Lua 5.4 counts */
    return 1;
}

static int l_randomseed(lua_State *L)
{
    luaL_checknumber(L, 1);
    return original(L);
}

/* ---- looking for interruptions ---------------------------------------------------------------- */

/*
 * A call in C is not ended by a hook, and hooks look only every so many instructions: enough for many calls that take
 * long. So functions whose work grows with what they are given look before they begin. Upvalues: that of the
 * function, as it knows it; the function.
 */
static int l_looking(lua_State *L)
{
    dc_dsl_poll(L);
    return lua_tocfunction(L, lua_upvalueindex(2))(L);
}

/* The function on top becomes one that looks. */
static void make_look(lua_State *L)
{
    const lua_CFunction fn = lua_tocfunction(L, -1);
    if (lua_getupvalue(L, -1, 1) == NULL)
        lua_pushnil(L);
    lua_pushcfunction(L, fn);
    lua_pushcclosure(L, l_looking, 2);
    lua_replace(L, -2);
}

/* Those of a library, where the script has it. */
static void look_first(lua_State *L, int globals, const char *library)
{
    const int table = lua_gettop(L) + 1;
    if (lua_getfield(L, globals, library) == LUA_TTABLE)
        for (lua_pushnil(L); lua_next(L, table) != 0;) {
            if (lua_iscfunction(L, -1)) {
                make_look(L);
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, table); /* a field that is there: next goes on */
            } else {
                lua_pop(L, 1);
            }
        }
    lua_settop(L, table - 1);
}

static void look_first_in_base(lua_State *L, int globals)
{
    static const char *const names[] = {"collectgarbage", "load", "print", "tonumber"};
    for (size_t i = 0; i < DC_COUNTOF(names); i++) {
        lua_getfield(L, globals, names[i]);
        make_look(L);
        lua_setfield(L, globals, names[i]);
    }
}

/* ---- coroutines ------------------------------------------------------------------------------- */

static int l_create(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    dc_dsl_push_body(L, 1);
    lua_replace(L, 1);
    return original(L);
}

/* ---- putting them in ------------------------------------------------------------------------- */

/* Puts fn in the place of a function of Lua's, which it calls. */
static void bound(lua_State *L, int globals, const char *library, const char *name,
                  lua_CFunction fn)
{
    lua_getfield(L, globals, library);
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void dc_sandbox_base(lua_State *L, int globals, int state)
{
    static const luaL_Reg fn[] = {{"load", l_load},
                                  {"print", l_print},
                                  {"setmetatable", l_setmetatable},
                                  {"getmetatable", l_getmetatable},
                                  {"collectgarbage", l_collectgarbage},
                                  {NULL, NULL}};
    lua_pushvalue(L, globals);
    lua_pushvalue(L, state);
    luaL_setfuncs(L, fn, 1);
    lua_pushvalue(L, state);
    lua_newtable(L);
    lua_pushcclosure(L, l_require, 2);
    lua_setfield(L, globals, "require");
    lua_pop(L, 1);
    bound(L, globals, "string", "rep", l_rep);
    bound(L, globals, "math", "randomseed", l_randomseed);
    bound(L, globals, "coroutine", "create", l_create);
    lua_getfield(L, globals, "string");
    dc_match_register(L);
    lua_getfield(L, globals, "table");
    dc_sandbox_table(L, lua_gettop(L));
    lua_pop(L, 2);
    look_first_in_base(L, globals);
    look_first(L, globals, "string");
    look_first(L, globals, "table");
    look_first(L, globals, "utf8");
    look_first(L, globals, "os");
}
