/*
 * What only means something inside a typed function: dc.dim, dc.print.
 *
 *   dc.dim "d"            the size of a dim of the innermost typed function, an integer
 *   dc.print("x", x)      prints at each call, sizes too; outside typed functions as print does
 *
 * What is printed is one more result of the function for each tensor; the texts between them stay
 * in a table: { { "x", false }, ... } where false stands for the next tensor. Lines of a body are in a table of their
 * own (dsl/control/): of a loop, whose tensors are stacked, behind their number of iterations where that varies; of a
 * side of a branch, behind its condition.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/run.h"
#include "dsl/base/size.h"
#include "dsl/fn/fn.h"
#include "dsl/ops/ops.h"

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
    dc_size_push(L, t->frame->bind->size[var]);
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
    for (int i = 1; i <= n; i++)
        dc_ops_size(L, d, i, DC_I32);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        if (dc_handle_test(L, i) != NULL)
            lua_pushboolean(L, 0);
        else
            luaL_tolstring(L, i, NULL);
        lua_rawseti(L, n + 1, i);
    }
    dc_trace_push_prints(L, t);
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

/* Tensors to be shown, in a list at idx; the next one is number `next`. */
typedef struct shown {
    int list;
    lua_Integer next;
} shown;

static void push_next(lua_State *L, shown *s)
{
    lua_rawgeti(L, s->list, s->next++);
}

static void show_line(lua_State *L, int line, shown *s)
{
    const int n = (int)lua_rawlen(L, line);
    luaL_checkstack(L, n + 4, "dc.print");
    lua_getglobal(L, "print");
    for (int k = 1; k <= n; k++)
        if (lua_rawgeti(L, line, k) == LUA_TBOOLEAN) {
            lua_pop(L, 1);
            push_next(L, s);
        }
    lua_call(L, n, 0);
}

static void show_lines(lua_State *L, int lines, shown *s);

/* Of a group: a field that is a number. */
static lua_Integer number_of(lua_State *L, int group, const char *name)
{
    lua_getfield(L, group, name);
    const lua_Integer n = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return n;
}

static bool is_on(lua_State *L, int group, const char *name)
{
    lua_getfield(L, group, name);
    const bool on = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return on;
}

/* The value of the scalar on top, which is replaced by it. */
static void read_scalar(lua_State *L)
{
    lua_getfield(L, -1, "item");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
}

/* Of each tensor its element i, in a new list. */
static shown cut(lua_State *L, const shown *s, lua_Integer first, lua_Integer n, lua_Integer i)
{
    lua_createtable(L, (int)n, 0);
    const shown out = {lua_gettop(L), 1};
    for (lua_Integer k = 0; k < n; k++) {
        lua_rawgeti(L, s->list, first + k);
        lua_geti(L, -1, i);
        lua_rawseti(L, out.list, k + 1);
        lua_pop(L, 1);
    }
    return out;
}

/* The lines of a loop, for each iteration that there was, in the order in which they ran. */
static void show_loop(lua_State *L, int group, shown *s)
{
    const int top = lua_gettop(L);
    const lua_Integer tensors = number_of(L, group, "tensors");
    lua_Integer n = number_of(L, group, "n");
    if (is_on(L, group, "counted")) {
        push_next(L, s);
        read_scalar(L);
        n = lua_tointeger(L, -1);
        lua_settop(L, top);
    }
    const bool reverse = is_on(L, group, "reverse");
    for (lua_Integer i = 1; i <= n; i++) {
        shown of = cut(L, s, s->next, tensors, reverse ? n + 1 - i : i);
        show_lines(L, group, &of);
        lua_settop(L, top);
    }
    s->next += tensors;
}

/* Those of a side, if it has run. */
static void show_side(lua_State *L, int group, shown *s)
{
    push_next(L, s);
    read_scalar(L);
    const bool ran = lua_toboolean(L, -1) == is_on(L, group, "runs");
    lua_pop(L, 1);
    if (ran)
        show_lines(L, group, s);
    else
        s->next += number_of(L, group, "tensors");
}

/* A line has texts and, for tensors, false; a group has lines, and a field that says of what. */
static void show_lines(lua_State *L, int lines, shown *s)
{
    const lua_Integer n = (lua_Integer)lua_rawlen(L, lines);
    luaL_checkstack(L, 12, "dc.print");
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, lines, i);
        const int line = lua_gettop(L);
        lua_getfield(L, line, "kind");
        const char *kind = lua_tostring(L, -1);
        if (kind == NULL)
            show_line(L, line, s);
        else if (*kind == 'l')
            show_loop(L, line, s);
        else
            show_side(L, line, s);
        lua_settop(L, line - 1);
    }
}

void dc_dim_print_show(lua_State *L, int texts, int first)
{
    texts = lua_absindex(L, texts);
    const int top = lua_gettop(L), n = texts - first; /* the texts were pushed behind them */
    lua_createtable(L, n, 0);
    shown s = {top + 1, 1};
    for (int i = 0; i < n; i++) {
        lua_pushvalue(L, first + i);
        lua_rawseti(L, s.list, i + 1);
    }
    show_lines(L, texts, &s);
    lua_settop(L, top);
}

static const dc_binding bindings[] = {
    {"dim", l_dim, 1, DC_IN_MODULE},
    {"print", l_print, DC_ANY, DC_IN_MODULE},
};

const dc_bindings dc_dim_print_bindings = DC_BINDINGS(bindings);
