/*
 * JSON for stdlib/json.lua and others:
 *
 *   json_read(op, name, text, null)   JSON as tables, texts, numbers; null is what is given, or nil
 */
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/modules/modules.h"
#include "formats/jsontree.h"

#include <string.h>

typedef struct json {
    dc_uhead head;
    dc_arena memory; /* of the text and the tree */
    const dc_jnode *root;
} json;

typedef struct parsing {
    const char *name, *text;
    size_t n;
    json *out;
} parsing;

static dc_status parse_body(dc_job *j, void *arg)
{
    const parsing *a = arg;
    char *copy = dc_arena_alloc(&a->out->memory, a->n + 1);
    memcpy(copy, a->text, a->n);
    return dc_json_tree(j, a->name, copy, a->n, &a->out->memory, &a->out->root);
}

/* null is at index 4. */
static void push_value(lua_State *L, const dc_jnode *v)
{
    luaL_checkstack(L, 4, "JSON");
    switch (v->kind) {
    case DC_J_NULL:
        lua_pushvalue(L, 4);
        return;
    case DC_J_BOOL:
        lua_pushboolean(L, v->v.num != 0);
        return;
    case DC_J_NUMBER:
        if (v->v.num >= INT32_MIN && v->v.num <= INT32_MAX && v->v.num == (double)(int32_t)v->v.num)
            lua_pushinteger(L, (lua_Integer)v->v.num);
        else
            lua_pushnumber(L, v->v.num);
        return;
    case DC_J_STRING:
        lua_pushlstring(L, v->v.s, v->n);
        return;
    case DC_J_LIST:
    case DC_J_OBJECT:
        break;
    }
    lua_Integer i = 1;
    lua_newtable(L);
    for (const dc_jnode *one = v->child; one != NULL; one = one->next) {
        if (v->kind == DC_J_LIST)
            lua_pushinteger(L, i++);
        else
            lua_pushlstring(L, one->key, one->nkey);
        push_value(L, one);
        lua_rawset(L, -3);
    }
}

static void drop_json(void *node)
{
    json *a = node;
    dc_arena_free(&a->memory);
    a->root = NULL;
}

const dc_utype dc_json_type = {.name = "deepc.json", .drop = drop_json};

static int l_json_read(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1);
    parsing a = {.name = luaL_checkstring(L, 2)};
    a.text = luaL_checklstring(L, 3, &a.n);
    lua_settop(L, 4);
    a.out = dc_udata_new(L, &dc_json_type, sizeof *a.out, 0);
    dc_error_check_of(L, d, dc_run_once(d, parse_body, &a), op);
    push_value(L, a.out->root);
    return 1;
}

static const dc_binding bindings[] = {
    {"json_read", l_json_read, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_json_bindings = DC_BINDINGS(bindings);
