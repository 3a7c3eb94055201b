/*
 * What only means something inside a typed function: dc.dim, dc.print.
 *
 *   dc.dim "d"            the size of a dim of the innermost typed function, an integer
 *   dc.print("x", x)      prints at each call; outside typed functions as print does
 *
 * What is printed is one more result of the function for each tensor; the texts between them stay
 * in a table: { { "x", false }, ... } where false stands for the next tensor.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"

#include <inttypes.h>

/* ---- dc.dim ---------------------------------------------------------------------------------- */

static int l_dim(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_trace *t = dc_trace_here(L, d);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "dim", "the name of a dim is needed, not %s",
                        dc_handle_describe(L, 1));
    const char *name = lua_tostring(L, 1);
    if (t == NULL || t->frame == NULL)
        dc_error_raisef(L, d, DC_ERR_DIM, "dim",
                        "'%.60s' has a size only while a typed function is traced", name);
    const int var = dc_sig_var(t->frame->sig, name);
    if (var < 0)
        dc_error_raisef(L, d, DC_ERR_DIM, "dim", "'%s' has no dim called '%.60s'", t->frame->name,
                        name);
    if (t->frame->bind->size[var] < 0)
        dc_error_raisef(L, d, DC_ERR_DIM, "dim",
                        "the size of '%.60s' is not known before a result of '%s'", name,
                        t->frame->name);
    lua_pushinteger(L, t->frame->bind->size[var]);
    return 1;
}

/* ---- dc.print -------------------------------------------------------------------------------- */

typedef struct printing {
    dc_trace *t;
    dc_handle *h;
} printing;

static dc_status record_print_body(dc_job *j, void *arg)
{
    const printing *a = arg;
    dc_val v;
    DC_TRY(dc_trace_value(j, a->t, a->h, &v));
    DC_PUSH(a->t->print, v);
    return DC_OK;
}

/* The table of texts of a trace, made when first asked for. */
static void push_texts(lua_State *L, const dc_trace *t)
{
    dc_trace_push_refs(L, t);
    if (lua_getfield(L, -1, "prints") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, "prints");
    }
    lua_remove(L, -2);
}

/* Those among the n arguments: all, or none where one raises. */
static void record_tensors(lua_State *L, dc_dsl *d, dc_trace *t, int n)
{
    const uint32_t before = t->print.n;
    d->effect = ++d->born;
    for (int i = 1; i <= n; i++) {
        printing a = {t, dc_handle_test(L, i)};
        if (a.h == NULL)
            continue;
        const dc_status status = dc_run_once(d, record_print_body, &a);
        if (status != DC_OK)
            t->print.n = before;
        dc_error_check(L, d, status);
    }
}

static void record_print(lua_State *L, dc_dsl *d, dc_trace *t)
{
    const int n = lua_gettop(L);
    luaL_checkstack(L, 8, "dc.print");
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        if (dc_handle_test(L, i) != NULL)
            lua_pushboolean(L, 0);
        else
            luaL_tolstring(L, i, NULL);
        lua_rawseti(L, n + 1, i);
    }
    push_texts(L, t);
    record_tensors(L, d, t, n);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static int l_print(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_trace *t = dc_trace_here(L, d);
    if (t != NULL) {
        record_print(L, d, t);
        return 0;
    }
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

void dc_dim_print_show(lua_State *L, int texts, int first)
{
    texts = lua_absindex(L, texts);
    const lua_Integer lines = (lua_Integer)lua_rawlen(L, texts);
    for (lua_Integer i = 1; i <= lines; i++) {
        lua_rawgeti(L, texts, i);
        const int line = lua_gettop(L), n = (int)lua_rawlen(L, line);
        luaL_checkstack(L, n + 4, "dc.print");
        lua_getglobal(L, "print");
        for (int k = 1; k <= n; k++)
            if (lua_rawgeti(L, line, k) == LUA_TBOOLEAN) {
                lua_pop(L, 1);
                lua_pushvalue(L, first++);
            }
        lua_call(L, n, 0);
        lua_settop(L, line - 1);
    }
}

static const dc_binding bindings[] = {
    {"dim", l_dim, 1, DC_IN_MODULE},
    {"print", l_print, DC_ANY, DC_IN_MODULE},
};

const dc_bindings dc_dim_print_bindings = DC_BINDINGS(bindings);
