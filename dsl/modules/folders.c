/*
 * Folders for stdlib/data/folders.lua:
 *
 *   folder_list(op, path)        its entries, sorted: "f" or "d", a name, a zero, of each; a text that is the same for
 *                                two paths of one folder
 *   folder_match(pattern, name)  has the name this form?
 */
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/folder.h"

typedef struct listing {
    const char *path;
    dc_folder_list list;
} listing;

static dc_status list_body(dc_job *j, void *arg)
{
    listing *a = arg;
    return dc_folder_read(j, a->path, &a->list);
}

static int push_list(lua_State *L)
{
    const dc_folder_list *a = lua_touserdata(L, 1);
    lua_pushlstring(L, a->text, a->n);
    lua_pushlstring(L, (const char *)a->id, sizeof a->id);
    return 2;
}

static int l_list(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    listing a = {.path = dc_args_text(L, d, 2, op)};
    dc_error_check_of(L, d, dc_run_once(d, list_body, &a), op);
    lua_pushcfunction(L, push_list);
    lua_pushlightuserdata(L, &a.list);
    const int status = lua_pcall(L, 1, 2, 0); /* whatever becomes of it, the text is freed */
    dc_xfree(a.list.text);
    return status == LUA_OK ? 2 : lua_error(L);
}

static int l_match(lua_State *L)
{
    lua_pushboolean(L, dc_folder_match(luaL_checkstring(L, 1), luaL_checkstring(L, 2)));
    return 1;
}

static const dc_binding bindings[] = {
    {"folder_list", l_list, DC_ANY, DC_IN_LIBRARY},
    {"folder_match", l_match, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_folder_bindings = DC_BINDINGS(bindings);
