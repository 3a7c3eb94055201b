/*
 * Places: the script line that called us, and the layer it was called in.
 *
 * The line is that of the first Lua function on the stack whose chunk is not one of deepc's own
 * (chunk names "=deepc/..."). The layer is the innermost call of a layer on the stack: a layer's
 * __call is a C function whose first stack slot is the text of its path. So both are right again by
 * themselves after an error was caught.
 *
 * A script function that ends in `return nn.f(x)` is gone from the stack. While its typed function
 * is traced, the place is then where that function begins.
 */
#include "dsl/impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct interned {
    dc_names *names;
    const char *text, *out;
} interned;

static dc_status intern_body(dc_job *j, void *arg)
{
    interned *a = arg;
    DC_UNUSED(j);
    a->out = dc_name_intern(a->names, a->text, strlen(a->text));
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

static bool is_script(const lua_Debug *ar)
{
    return *ar->what != 'C' && strncmp(ar->source, "=deepc/", 7) != 0;
}

/* The path text of a frame of dc_place_layer, or NULL. The function is on top. */
static const char *path_of(lua_State *L, dc_dsl *d, lua_Debug *ar)
{
    const char *path = NULL;
    if (lua_tocfunction(L, -1) == dc_place_layer && lua_getlocal(L, ar, 1) != NULL) {
        if (lua_type(L, -1) == LUA_TSTRING)
            path = intern(d, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    return path;
}

dc_place dc_place_find(lua_State *L, dc_dsl *d)
{
    dc_place p = {0};
    lua_Debug ar;
    bool lost = false; /* the frame above was called by one that is gone */
    for (int level = 0; lua_getstack(L, level, &ar) && (p.where == NULL || p.path == NULL);
         level++) {
        lua_getinfo(L, "Sltf", &ar);
        if (p.path == NULL && *ar.what == 'C')
            p.path = path_of(L, d, &ar);
        lua_pop(L, 1);
        if (p.where == NULL && is_script(&ar) && ar.currentline > 0)
            p.where = dc_place_intern(d, "%s:%d", ar.short_src, ar.currentline);
        else if (p.where == NULL && lost && *ar.what == 'C' && d->trace != NULL)
            p.where = d->trace->where;
        lost = *ar.what != 'C' && ar.istailcall;
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
    return is_script(&ar) ? dc_place_intern(d, "%s:%d", ar.short_src, ar.linedefined) : NULL;
}

/* Is the value on top the one at idx? Pops it. */
static bool is_it(lua_State *L, int idx, const char *name)
{
    const bool same = *name != '(' && strcmp(name, "self") != 0 && lua_rawequal(L, -1, idx);
    lua_pop(L, 1);
    return same;
}

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
    lua_settop(L, fn - 1);
    return name;
}

void dc_place_push_name(lua_State *L, int idx)
{
    lua_Debug ar;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "S", &ar);
        const char *name = is_script(&ar) ? name_in_frame(L, idx, &ar) : NULL;
        if (name != NULL) {
            lua_pushstring(L, name);
            return;
        }
    }
    lua_pushnil(L);
}

int dc_place_layer(lua_State *L)
{
    const int n = lua_gettop(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstack(L, 4, "arguments of a layer");
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    lua_insert(L, 1); /* where path_of finds it */
    lua_getfield(L, 2, "forward");
    lua_insert(L, 2);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L) - 1;
}
