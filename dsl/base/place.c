/*
 * Places: the script line that called us, and the layer it was called in.
 *
 * The line is that of the first Lua function on the stack whose chunk is not one of deepc's own
 * (chunk names "=deepc/..."). It is among the first few: as many as calls of the library nest. The rest
 * of the stack is never looked at, however deep a script recurses.
 *
 * While a layer is called, the functions below the call stand still: a line that was found there holds until it returns.
 *
 * The layer is the innermost call of a layer: each is a value to be closed in the first stack slot of the
 * layer's __call, and the last one of a coroutine that is still open is noted under the coroutine. So it is
 * right again after an error was caught.
 *
 * Whatever scripts call is a C function: a binding, a layer's __call, or a function of stdlib/
 * behind an entry (stdlib_entry.c). Lua keeps the frame of a function that ends in `return f(x)`
 * where f is a C function, so tail calls of the library do not lose the script's line.
 *
 * A coroutine has a stack of its own. What it runs may have no script's function on it
 * (coroutine.wrap(dc.zeros)); the place is then where the coroutine was resumed, as far as the state
 * tells: on the stack of the function being traced, or of the main thread.
 */
#include "dsl/base/place.h"

#include "dsl/base/run.h"
#include "dsl/base/trace.h"

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

static dc_status intern_text_body(dc_job *j, void *arg)
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
    dc_run_once(d, intern_text_body, &a);
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

const char *dc_place_name(lua_State *L, dc_dsl *d, const char *fmt, ...)
{
    char text[512];
    interned a = {d->rt->names, text, NULL};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    dc_run(L, d, intern_text_body, &a);
    return a.out;
}

const char *dc_place_made(dc_dsl *d, const char *where)
{
    if (where != NULL && (where != d->made_at || d->made == NULL)) { /* it is interned */
        d->made = dc_place_intern(d, "made at %s", where);
        d->made_at = where;
    }
    return where != NULL ? d->made : NULL;
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

const dc_utype dc_layer_call_type = {.name = "deepc.call"};

typedef struct layer_call {
    dc_uhead head;
    const char *path;  /* interned when it is first asked for; NULL until then */
    int depth;         /* so many are open */
    const void *frame; /* the function on the stack that calls it */
    const char
        *where; /* the line of the script from there on; NULL: not looked for, or not found */
} layer_call;

/* Its user values: the call around it, in the same coroutine; the text of its path. */
enum { AROUND = 1, TEXT };

/* Pushes the table from coroutines to their innermost calls of layers. */
static void push_calls(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, CALLS) != LUA_TTABLE)
        luaL_error(L, "the registry has lost the calls of layers");
}

bool dc_place_open_layer(lua_State *L)
{
    const int text = lua_gettop(L), call = text + 1, calls = text + 2;
    layer_call *c = dc_udata_new(L, &dc_layer_call_type, sizeof *c, TEXT);
    lua_Debug ar;
    c->frame = lua_getstack(L, 0, &ar) ? ar.i_ci : NULL;
    push_calls(L);
    lua_pushthread(L);
    lua_rawget(L, calls);
    const layer_call *outer = dc_udata_test(L, -1, &dc_layer_call_type);
    c->depth = outer != NULL ? outer->depth + 1 : 1;
    if (c->depth > DC_PLACE_LAYERS)
        return false;
    lua_setiuservalue(L, call, AROUND);
    lua_pushvalue(L, text);
    lua_setiuservalue(L, call, TEXT);
    lua_pushthread(L);
    lua_pushvalue(L, call);
    lua_rawset(L, calls);
    lua_copy(L, call, text);
    lua_settop(L, text);
    return true;
}

/* __close(call, error) */
static int close_call(lua_State *L)
{
    dc_udata_check(L, 1, &dc_layer_call_type);
    push_calls(L);
    lua_pushthread(L);
    lua_getiuservalue(L, 1, AROUND);
    lua_rawset(L, -3);
    return 0;
}

static const char *path_of(lua_State *L, dc_dsl *d, layer_call *c)
{
    if (c == NULL || c->path != NULL)
        return c != NULL ? c->path : NULL;
    lua_getiuservalue(L, -1, TEXT);
    c->path = intern(d, lua_tostring(L, -1));
    lua_pop(L, 1);
    return c->path;
}

const char *dc_place_layer_path(lua_State *L, dc_dsl *d)
{
    return path_of(L, d, dc_udata_test(L, -1, &dc_layer_call_type));
}

/* Pushes the innermost call of a layer; NULL, and pushes nothing, where the stack has no room. */
static layer_call *push_innermost(lua_State *L)
{
    if (!lua_checkstack(L, 3))
        return NULL;
    push_calls(L);
    lua_pushthread(L);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    layer_call *c = dc_udata_test(L, -1, &dc_layer_call_type);
    if (c == NULL)
        lua_pop(L, 1);
    return c;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The line of the script on the stack of this thread. c: the innermost call of a layer, or NULL. */
static const char *find_line(lua_State *on, dc_dsl *d, layer_call *c)
{
    bool below = false;
    lua_Debug ar;
    for (int level = 0; level < LEVELS && lua_getstack(on, level, &ar); level++) {
        if (c != NULL && ar.i_ci == c->frame) {
            if (c->where != NULL)
                return c->where;
            below = true;
        }
        lua_getinfo(on, "S", &ar);
        if (!dc_place_is_script(&ar))
            continue;
        lua_getinfo(on, "l", &ar); /* which costs more, and is asked of few */
        if (ar.currentline <= 0)
            continue;
        const char *where = dc_place_intern(d, "%s:%d", ar.short_src, ar.currentline);
        if (below)
            c->where = where;
        return where;
    }
    return NULL;
}

/* Fills in what is still missing in p, from the stack of this thread. */
static void search(lua_State *on, dc_dsl *d, dc_place *p)
{
    layer_call *c = push_innermost(on);
    if (p->path == NULL)
        p->path = path_of(on, d, c);
    if (p->where == NULL)
        p->where = find_line(on, d, c);
    if (c != NULL)
        lua_pop(on, 1);
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

static const dc_binding of_call[] = {
    {"__close", close_call, DC_ANY, DC_IN_META},
};

const dc_bindings dc_layer_call_methods = DC_BINDINGS(of_call);

void dc_place_open(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushliteral(L, "k"); /* a coroutine that died in a layer takes its calls along */
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, CALLS);
}
