/*
 * Places: the script line that called us, and the layer it was called in.
 *
 * The line is that of the first Lua function on the stack whose chunk is not one of deepc's own
 * (chunk names "=deepc/..."). It is among the first few: as many as calls of the library nest. The rest
 * of the stack is never looked at, however deep a script recurses.
 *
 * The layer is the innermost call of a layer: each is a value to be closed in the first stack slot of the
 * layer's __call, and the last one of a coroutine that is still open is noted under the coroutine. So it is
 * right again after an error was caught.
 *
 * Whatever scripts call is a C function: a binding, a layer's __call, or a function of stdlib/
 * behind an entry (dc_place_enter). Lua keeps the frame of a function that ends in `return f(x)`
 * where f is a C function, so tail calls of the library do not lose the script's line.
 *
 * A coroutine has a stack of its own. What it runs may have no script's function on it
 * (coroutine.wrap(dc.zeros)); the place is then where the coroutine was resumed, as far as the state
 * tells: on the stack of the function being traced, or of the main thread.
 */
#include "dsl/place.h"

#include "dsl/binding.h"
#include "dsl/error.h"
#include "dsl/trace.h"
#include "dsl/uses.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * Of the stack at most: lua_getstack walks to a level, so many would cost the square. C functions in Lua nest
 * 200 deep, with one or two functions of the library between two of them.
 */
enum { LEVELS = 500 };

typedef struct interned {
    dc_names *names;
    const char *text, *out;
} interned;

static dc_status intern_body(dc_job *j, void *arg)
{
    interned *a = arg;
    DC_UNUSED(j);
    a->out = dc_name_intern_text(a->names, a->text);
    return DC_OK;
}

/* Keeps the failure record, if any. NULL without memory. */
static const char *intern(dc_dsl *d, const char *text)
{
    dc_job *j = &d->rt->job;
    const dc_err before = j->err;
    interned a = {d->rt->names, text, NULL};
    dc_protect(j, intern_body, &a);
    j->err = before; /* the words of a record point into the record: same address, still right */
    return a.out;
}

const char *dc_place_intern(dc_dsl *d, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return intern(d, text);
}

const char *dc_place_made(dc_dsl *d, const char *where)
{
    return where != NULL ? dc_place_intern(d, "made at %s", where) : NULL;
}

bool dc_place_is_script(const lua_Debug *ar)
{
    return *ar->what != 'C' && strncmp(ar->source, "=deepc/", 7) != 0;
}

bool dc_place_by_script(lua_State *L)
{
    lua_Debug ar;
    return lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar) && dc_place_is_script(&ar);
}

/* ---- calls of layers ------------------------------------------------------------------------- */

static const char CALLS[] = "calls of layers"; /* its address is a key of the registry */
static const dc_utype CALL = {"deepc.call"};

typedef struct layer_call {
    dc_uhead head;
    const char *path; /* interned when somebody asks for it; NULL until then */
    int depth;        /* so many are open */
} layer_call;

/* Its user values: the call around it, in the same coroutine; the text of its path. */
enum { AROUND = 1, TEXT };

/* Layers in layers. Lua's own limit is near 200 C calls and names no line of the script. */
enum { DEEPEST = 150 };

/* Pushes the table from coroutines to their innermost calls of layers. */
static void push_calls(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, CALLS) != LUA_TTABLE)
        luaL_error(L, "the registry has lost the calls of layers");
}

/* The text of a path on top becomes a call of that layer, which is open from now on. */
static void open_call(lua_State *L, dc_dsl *d)
{
    const int text = lua_gettop(L), call = text + 1, calls = text + 2;
    layer_call *c = dc_udata_new(L, &CALL, sizeof *c, TEXT);
    push_calls(L);
    lua_pushthread(L);
    lua_rawget(L, calls);
    const layer_call *outer = dc_udata_test(L, -1, &CALL);
    c->depth = outer != NULL ? outer->depth + 1 : 1;
    if (c->depth > DEEPEST)
        dc_error_raisef(L, d, DC_ERR_REENTER, NULL,
                        "stack overflow: layers call each other more than %d deep", DEEPEST);
    lua_setiuservalue(L, call, AROUND);
    lua_pushvalue(L, text);
    lua_setiuservalue(L, call, TEXT);
    lua_pushthread(L);
    lua_pushvalue(L, call);
    lua_rawset(L, calls);
    lua_copy(L, call, text);
    lua_settop(L, text);
}

/* __close(call, error) */
static int close_call(lua_State *L)
{
    dc_udata_check(L, 1, &CALL);
    push_calls(L);
    lua_pushthread(L);
    lua_getiuservalue(L, 1, AROUND);
    lua_rawset(L, -3);
    return 0;
}

/* The path of the call on top. */
static const char *path_of(lua_State *L, dc_dsl *d)
{
    layer_call *c = dc_udata_test(L, -1, &CALL);
    if (c == NULL || c->path != NULL)
        return c != NULL ? c->path : NULL;
    lua_getiuservalue(L, -1, TEXT);
    c->path = intern(d, lua_tostring(L, -1));
    lua_pop(L, 1);
    return c->path;
}

static const char *innermost_path(lua_State *L, dc_dsl *d)
{
    if (!lua_checkstack(L, 3))
        return NULL;
    push_calls(L);
    lua_pushthread(L);
    lua_rawget(L, -2);
    const char *path = path_of(L, d);
    lua_pop(L, 2);
    return path;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Fills in what is still missing in p, from the stack of this thread. */
static void search(lua_State *on, dc_dsl *d, dc_place *p)
{
    lua_Debug ar;
    if (p->path == NULL)
        p->path = innermost_path(on, d);
    for (int level = 0; level < LEVELS && lua_getstack(on, level, &ar); level++) {
        if (p->where != NULL)
            return;
        lua_getinfo(on, "Sl", &ar);
        if (dc_place_is_script(&ar) && ar.currentline > 0)
            p->where = dc_place_intern(d, "%s:%d", ar.short_src, ar.currentline);
    }
}

dc_place dc_place_find(lua_State *L, dc_dsl *d)
{
    dc_place p = {0};
    search(L, d, &p);
    const dc_trace *t = p.where == NULL ? dc_trace_current(L, d) : NULL;
    if (t != NULL) {
        if (t->L != L)
            search(t->L, d, &p);
        p.where = p.where != NULL ? p.where : t->where;
    }
    if (p.where == NULL) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
        lua_State *first = lua_tothread(L, -1);
        lua_pop(L, 1);
        if (first != L)
            search(first, d, &p);
    }
    return p;
}

const char *dc_place_of_function(lua_State *L, dc_dsl *d, int idx)
{
    lua_Debug ar;
    lua_pushvalue(L, idx);
    if (lua_type(L, -1) != LUA_TFUNCTION) {
        lua_pop(L, 1);
        return NULL;
    }
    lua_getinfo(L, ">S", &ar);
    return dc_place_is_script(&ar) ? dc_place_intern(d, "%s:%d", ar.short_src, ar.linedefined)
                                   : NULL;
}

/* Is the value on top the one at idx? Pops it. */
static bool is_it(lua_State *L, int idx, const char *name)
{
    const bool same = *name != '(' && strcmp(name, "self") != 0 && lua_rawequal(L, -1, idx);
    lua_pop(L, 1);
    return same;
}

/*
 * The string keys of the table on top under which the value at idx stands; of several the first of the
 * alphabet. Pops the table.
 */
static const char *name_in_table(lua_State *L, int idx)
{
    const int table = lua_gettop(L);
    const char *found = NULL;
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "_";
        if (*key != '_' && lua_rawequal(L, -1, idx) && (found == NULL || strcmp(key, found) < 0))
            found = key;
    }
    lua_settop(L, table - 1);
    return found;
}

/* The local or captured variable of a running function that holds the value at idx, or else the global. */
static const char *name_in_frame(lua_State *L, int idx, lua_Debug *ar)
{
    const char *name;
    for (int i = 1; (name = lua_getlocal(L, ar, i)) != NULL; i++)
        if (is_it(L, idx, name))
            return name;
    lua_getinfo(L, "f", ar);
    const int fn = lua_gettop(L);
    for (int i = 1; (name = lua_getupvalue(L, fn, i)) != NULL; i++)
        if (is_it(L, idx, name))
            break;
    for (int i = 1; name == NULL; i++) {
        const char *up = lua_getupvalue(L, fn, i);
        if (up == NULL)
            break;
        if (strcmp(up, "_ENV") == 0 && lua_type(L, -1) == LUA_TTABLE)
            name = name_in_table(L, idx);
        else
            lua_pop(L, 1);
    }
    lua_settop(L, fn - 1);
    return name;
}

void dc_place_push_name(lua_State *L, int idx)
{
    lua_Debug ar;
    for (int level = 0; level < LEVELS && lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "S", &ar);
        const char *name = dc_place_is_script(&ar) ? name_in_frame(L, idx, &ar) : NULL;
        if (name != NULL) {
            lua_pushstring(L, name);
            return;
        }
    }
    lua_pushnil(L);
}

/* ---- ways in --------------------------------------------------------------------------------- */

/* Of a layer's :forward; the call is at 1. There were `born` handles before. */
static int leave_call(lua_State *L, int status, lua_KContext born)
{
    const int n = lua_gettop(L) - 1;
    dc_dsl *d = dc_dsl_of(L);
    dc_trace *t = n == 0 ? dc_trace_here(L, d) : NULL;
    DC_UNUSED(status);
    if (t != NULL) {
        lua_pushvalue(L, 1);
        t->silent = path_of(L, d);
        lua_pop(L, 1);
    } else if (n > 0 && dc_uses_are_told(L, d)) {
        lua_pushvalue(L, 1);
        const char *path = path_of(L, d);
        lua_pop(L, 1);
        dc_uses_of_call(L, d, n, (uint64_t)born, path);
    }
    return n;
}

int dc_place_layer(lua_State *L)
{
    const int n = lua_gettop(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstack(L, 8, "arguments of a layer");
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    open_call(L, dc_dsl_of(L));
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_getfield(L, 2, "forward");
    lua_insert(L, 2);
    const lua_KContext born = (lua_KContext)dc_dsl_of(L)->born;
    lua_callk(L, n, LUA_MULTRET, born, leave_call);
    return leave_call(L, LUA_OK, born);
}

/* Of a function of stdlib/, which may be called when the context is closed. There were `born` handles before. */
static int leave(lua_State *L, int status, lua_KContext born)
{
    const int n = lua_gettop(L);
    dc_dsl *d = dc_dsl_of_any(L);
    DC_UNUSED(status);
    if (n > 0 && d->rt != NULL && dc_uses_are_told(L, d))
        dc_uses_of_call(L, d, n, (uint64_t)born, lua_tostring(L, lua_upvalueindex(4)));
    return n;
}

/* Upvalues: the context, the function of stdlib/, how many arguments it takes, its name, arguments before those
 * that the script wrote. Yields pass through. */
static int enter(lua_State *L)
{
    const lua_Integer most = lua_tointeger(L, lua_upvalueindex(3));
    if (lua_gettop(L) > most)
        dc_lib_surplus(L, dc_dsl_of(L), lua_tostring(L, lua_upvalueindex(4)), (int)most,
                       (int)lua_tointeger(L, lua_upvalueindex(5)));
    const int n = lua_gettop(L);
    luaL_checkstack(L, 2, "arguments");
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    const dc_dsl *d = dc_dsl_of_any(L);
    const lua_KContext born = (lua_KContext)d->born;
    lua_callk(L, n, LUA_MULTRET, born, leave);
    return leave(L, LUA_OK, born);
}

/* Called by the library itself where a layer is made or called. */
static bool is_of_layer(const char *name)
{
    return strcmp(name, "forward") == 0 || strcmp(name, "init") == 0 || strcmp(name, "__call") == 0;
}

/* How many arguments the Lua function on top takes. */
static int parameters(lua_State *L)
{
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">u", &ar);
    return ar.isvararg ? DC_ANY : ar.nparams;
}

/* Puts the entry in the place of the function under the key, if it is written in Lua; errors call it op. */
static void enter_field(lua_State *L, dc_dsl *d, int table, const char *key, const char *op)
{
    table = lua_absindex(L, table);
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushstring(L, key);
    if (lua_rawget(L, table) == LUA_TFUNCTION && !lua_iscfunction(L, -1)) {
        lua_pushinteger(L, parameters(L));
        lua_pushstring(L, op);
        lua_pushinteger(L, is_of_layer(key));
        lua_pushcclosure(L, enter, 5);
        lua_pushstring(L, key);
        lua_insert(L, -2);
        lua_rawset(L, table); /* while it is traversed: the field exists */
        return;
    }
    lua_pop(L, 2);
}

/*
 * The functions of a class; what makes or calls a layer is told as the class, `owner`. Or those of a module,
 * told with its prefix.
 */
static void enter_all(lua_State *L, dc_dsl *d, int table, const char *owner, const char *prefix)
{
    table = lua_absindex(L, table);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "_";
        const char *op = key;
        const int value = lua_gettop(L);
        if (*key == '_')
            continue;
        if (owner != NULL && is_of_layer(key))
            op = owner;
        else if (*prefix != '\0')
            op = lua_pushfstring(L, "%s.%s", prefix, key);
        enter_field(L, d, table, key, op);
        lua_settop(L, value);
    }
}

void dc_place_enter(lua_State *L, dc_dsl *d, int table, const char *prefix)
{
    table = lua_absindex(L, table);
    luaL_checkstack(L, 16, "entries");
    const int at = lua_gettop(L) + 1; /* the key; its value is behind it */
    enter_all(L, d, table, NULL, prefix);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_settop(L, at)) {
        const char *key = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "_";
        if (lua_type(L, at + 1) != LUA_TTABLE || *key == '_')
            continue;
        const char *owner = lua_pushfstring(L, "%s.%s", prefix, key);
        enter_all(L, d, at + 1, owner, "");
        if (!lua_getmetatable(L, at + 1))
            continue;
        const int meta = lua_gettop(L);
        if (lua_getfield(L, meta, "__index") == LUA_TTABLE)
            enter_all(L, d, -1, NULL, "");
        enter_field(L, d, meta, "__call", owner);
    }
}

void dc_place_register(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushliteral(L, "k"); /* a coroutine that died in a layer takes its calls along */
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, CALLS);
    dc_udata_register(L, &CALL);
    lua_pushcfunction(L, close_call);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
}
