/*
 * Bodies of loops and branches: how they begin and end, and what they are called with.
 *
 *   control_begin(op, loop)         begins a body; a value to be closed
 *   control_number(body)            the number of the element, i32[]
 *   control_read(tensor, op)        of a cell the value that it has now
 *   control_stand_ins(body, list, cut)   tensors like these, or like their elements along axis 1
 *   control_call(f, ...)            calls it; no coroutine yields across
 *   control_callable(f), control_counts(f), control_where(f)   can it be called; is it told the number; where it is
 *   control_differs(a, b)           "dtype", "shape", "names", or nil: what keeps b from taking the place of a
 *   control_names_differ(a, b)      are the names of dims of these others?
 */
#include "dsl/control/control.h"

#include "dsl/base/args.h"

#include <string.h>

const dc_utype dc_control_type = {.name = "deepc.control"};

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Is its trace still one of those that run? */
static bool is_traced(const dc_control *c)
{
    for (const dc_trace *t = c->d->trace; t != NULL; t = t->outer)
        if (t == c->t && t->serial == c->serial)
            return true;
    return false;
}

static bool is_open(const dc_control *c)
{
    return c->body != NULL && is_traced(c) && c->t->body != NULL;
}

dc_control *dc_control_check(lua_State *L, int idx)
{
    dc_control *c = dc_udata_check(L, idx, &dc_control_type);
    if (!is_open(c))
        luaL_error(L, "the body has ended");
    return c;
}

typedef struct beginning {
    dc_control *c;
    lua_State *L;
    int nline;
    bool loop;
} beginning;

static dc_status begin_control_body(dc_job *j, void *arg)
{
    const beginning *a = arg;
    dc_control *c = a->c;
    DC_UNUSED(j);
    c->body = dc_trace_body_begin(c->t, a->L, c->op, c->place.where, a->loop);
    c->body->nline = a->nline;
    c->mark = c->body->mark;
    return DC_OK;
}

/* control_begin(op, loop) */
static int l_begin(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    beginning a = {.L = L, .loop = lua_toboolean(L, 2)};
    const char *op = dc_place_name(L, d, "%s", luaL_checkstring(L, 1));
    dc_control *c = a.c = dc_udata_new(L, &dc_control_type, sizeof *c, DC_CONTROL__USER);
    c->d = d;
    c->op = op;
    c->place = dc_place_find(L, d);
    c->t = dc_trace_here(L, d);
    if (c->t == NULL)
        return luaL_error(L, "no function is traced");
    c->serial = c->t->serial;
    if (L != c->t->L) { /* the body may outlive a coroutine that dies */
        lua_pushthread(L);
        dc_trace_hold(L, c->t, lua_gettop(L));
        lua_pop(L, 1);
    }
    dc_trace_push_prints(L, c->t);
    a.nline = (int)lua_rawlen(L, -1);
    lua_pop(L, 1);
    dc_run(L, d, begin_control_body, &a);
    return 1;
}

/* __close(body, error): an ended one is left alone. */
static int l_close(lua_State *L)
{
    dc_control *c = dc_udata_check(L, 1, &dc_control_type);
    if (!dc_dsl_gone(c->d) && is_open(c)) {
        dc_trace_body *b = c->t->body;
        while (b != NULL && b != c->body)
            b = b->outer;
        if (b != NULL) {
            dc_trace_body_end(c->t, b);
            dc_control_cut_lines(L, c->t, b->nline + 1);
        }
    }
    c->body = NULL;
    return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

dc_handles dc_control_list(lua_State *L, dc_dsl *d, int idx, const char *name)
{
    idx = lua_absindex(L, idx);
    if (name != NULL)
        lua_getfield(L, idx, name);
    else
        lua_pushvalue(L, idx);
    const int list = lua_gettop(L), n = lua_istable(L, list) ? (int)lua_rawlen(L, list) : 0;
    dc_handles out = {lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *out.at, 0), n};
    for (int i = 0; i < n; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, list, i + 1);
        out.at[i] = dc_handle_check(L, d, lua_gettop(L), "control");
    }
    lua_remove(L, list);
    return out;
}

dc_handles dc_control_fresh(lua_State *L, const dc_control *c, int n)
{
    dc_handles out = {lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *out.at, 0), n};
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        out.at[i] = dc_handle_new_traced(L, c->d);
        out.at[i]->origin = dc_place_made(c->d, c->place.where);
        lua_rawseti(L, -2, i + 1);
    }
    return out;
}

void dc_control_cut_lines(lua_State *L, const dc_trace *t, int from)
{
    lua_newtable(L);
    const int out = lua_gettop(L);
    dc_trace_push_prints(L, t);
    const int n = (int)lua_rawlen(L, -1);
    for (int i = from; i <= n; i++) {
        lua_rawgeti(L, out + 1, i);
        lua_rawseti(L, out, i - from + 1);
    }
    for (int i = n; i >= from; i--) {
        lua_pushnil(L);
        lua_rawseti(L, out + 1, i);
    }
    lua_settop(L, out);
}

void dc_control_add_lines(lua_State *L, const dc_trace *t)
{
    dc_trace_push_prints(L, t);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

uint32_t dc_control_sets(const dc_trace *t, dc_arena *a, uint32_t **cell)
{
    uint32_t n = 0;
    *cell = DC_NEW_ARRAY(a, uint32_t, t->cell.n + 1);
    for (uint32_t i = 0; i < t->cell.n; i++)
        if (t->cell.at[i].is_set && t->cell.at[i].cell != t->d->generator)
            (*cell)[n++] = i;
    return n;
}

dc_status dc_control_ew(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int n, dc_ref *out)
{
    return dc_make(j, f, op, in, n, NULL, 0, NULL, out);
}

/* ---- stand-ins ------------------------------------------------------------------------------- */

typedef struct standing {
    dc_control *c;
    dc_handles in, out;
    bool cut;
} standing;

static dc_type element_of(const dc_type *t)
{
    dc_type e = {.dtype = t->dtype, .rank = (uint8_t)(t->rank - 1)};
    for (int k = 0; k < e.rank; k++) {
        e.dim[k] = t->dim[k + 1];
        e.name[k] = t->name[k + 1];
    }
    return e;
}

static dc_status stand_in_body(dc_job *j, void *arg)
{
    const standing *a = arg;
    dc_trace *t = a->c->t;
    dc_func_from(t->f, a->c->place.where, a->c->place.path);
    for (int i = 0; i < a->in.n; i++) {
        dc_val v;
        DC_TRY(dc_trace_value(j, t, a->in.at[i], &v));
        v.type = a->cut ? element_of(&v.type) : v.type;
        v.ref = dc_graph_stand_in(t->f, &v.type);
        dc_handle_trace(a->out.at[i], t, &v);
    }
    return DC_OK;
}

/* control_stand_ins(body, list, cut): a list; of elements along axis 1 if cut */
static int l_stand_ins(lua_State *L)
{
    standing a = {.c = dc_control_check(L, 1), .cut = lua_toboolean(L, 3)};
    a.in = dc_control_list(L, a.c->d, 2, NULL);
    a.out = dc_control_fresh(L, a.c, a.in.n);
    dc_run(L, a.c->d, stand_in_body, &a);
    return 1;
}

typedef struct reading {
    dc_dsl *d;
    dc_handle *cell, *out;
} reading;

static dc_status read_traced_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    dc_val v;
    DC_TRY(dc_trace_value(j, a->d->trace, a->cell, &v));
    dc_handle_trace(a->out, a->d->trace, &v);
    return DC_OK;
}

static dc_status read_lazy_body(dc_job *j, void *arg)
{
    const reading *a = arg;
    dc_lazy *n;
    DC_TRY(dc_handle_lazy(j, a->cell, &n));
    dc_handle_fill_lazy(a->out, n);
    return DC_OK;
}

/* control_read(tensor, op): of a cell the value that it has now, which stays when the cell is set; others as they are. */
static int l_read(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 2);
    reading a = {.d = d, .cell = dc_handle_check(L, d, 1, op)};
    lua_settop(L, 1);
    if (a.cell->kind != DC_HANDLE_CELL)
        return 1;
    const bool tracing = dc_trace_here(L, d) != NULL;
    const char *origin = a.cell->origin;
    a.out = tracing ? dc_handle_new_traced(L, d) : dc_handle_new(L, d);
    a.out->origin = origin;
    a.cell = dc_handle_check(L, d, 1, "control"); /* a finalizer may have closed it */
    dc_run(L, d, tracing ? read_traced_body : read_lazy_body, &a);
    return 1;
}

/* control_number(body) */
static int l_number(lua_State *L)
{
    const dc_control *c = dc_control_check(L, 1);
    dc_handle *h = dc_handle_new_traced(L, c->d);
    h->origin = dc_place_made(c->d, c->place.where);
    dc_handle_trace(h, c->t, &c->body->i);
    return 1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/*
 * A body is called once where it is traced, and what it stores is stored once: not for each iteration, not by the side
 * that runs. So what it captured is compared: locals, and the fields of plain tables among them; and what the functions
 * captured that it captured.
 */
enum { FIELDS = 1000 }; /* of a table that is compared */

/* A copy of the plain table on top, or of the table of globals, in its place; nil for anything else. */
static void copy_fields(lua_State *L, bool globals)
{
    const int from = lua_gettop(L);
    int n = 0;
    if (!dc_args_is_plain(L, from) && (!globals || lua_type(L, from) != LUA_TTABLE)) {
        lua_pushnil(L);
        lua_replace(L, from);
        return;
    }
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, from) != 0; lua_pop(L, 1)) {
        if (++n > FIELDS) {
            lua_settop(L, from);
            lua_pushnil(L);
            break;
        }
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, from + 1);
    }
    lua_replace(L, from);
}

/* Is it a function of a script, in Lua? */
static bool is_of_script(lua_State *L, int idx)
{
    lua_Debug ar;
    if (lua_type(L, idx) != LUA_TFUNCTION || lua_iscfunction(L, idx))
        return false;
    lua_pushvalue(L, idx);
    lua_getinfo(L, ">S", &ar);
    return dc_place_is_script(&ar);
}

enum { FUNCTIONS = 200 }; /* that are looked into */
enum {
    NOTED = 3,
    FN = 1,
    VALUES,
    COPIES
}; /* in the list: of each function, what it captured, and copies */

/* Adds the function at idx to the list, unless it is there. */
static void add_function(lua_State *L, int list, int idx)
{
    idx = lua_absindex(L, idx);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    lua_pushvalue(L, idx);
    const bool known = lua_rawget(L, list) != LUA_TNIL;
    lua_pop(L, 1);
    if (known || n >= NOTED * FUNCTIONS)
        return;
    lua_pushvalue(L, idx);
    lua_pushboolean(L, 1);
    lua_rawset(L, list); /* by itself, so that it is found */
    lua_pushvalue(L, idx);
    lua_rawseti(L, list, n + FN);
    for (int i = VALUES; i <= COPIES; i++) {
        lua_newtable(L);
        lua_rawseti(L, list, n + i);
    }
}

/* What function number `at` of the list has captured; functions among it are added. */
static void note_captured(lua_State *L, int list, lua_Integer at)
{
    const int top = lua_gettop(L);
    const char *name;
    for (int i = FN; i <= COPIES; i++)
        lua_rawgeti(L, list, at + i);
    for (int i = 1; (name = lua_getupvalue(L, top + FN, i)) != NULL; i++) {
        if (is_of_script(L, -1))
            add_function(L, list, -1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, top + VALUES, i);
        copy_fields(L, strcmp(name, "_ENV") == 0);
        lua_rawseti(L, top + COPIES, i);
    }
    lua_settop(L, top);
}

/* Pushes the list of the function at fn and of those that it can reach by captured locals. */
static void note_functions(lua_State *L, int fn)
{
    lua_newtable(L);
    const int list = lua_gettop(L);
    add_function(L, list, fn);
    for (lua_Integer at = 0; at < (lua_Integer)lua_rawlen(L, list); at += NOTED)
        note_captured(L, list, at);
}

/* The first key whose value differs in two tables is pushed; false: none. Twice, since either may have more. */
static bool find_changed(lua_State *L, int a, int b)
{
    for (lua_pushnil(L); lua_next(L, a) != 0; lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_rawget(L, b);
        const bool same = lua_rawequal(L, -1, -2);
        lua_pop(L, 1);
        if (same)
            continue;
        lua_pop(L, 1);
        return true;
    }
    return false;
}

DC_NORETURN static void refuse_effect(lua_State *L, dc_dsl *d, const char *what, const char *hint)
{
    const dc_trace_body *b = d->trace->body;
    const char *text = lua_pushfstring(
        L, "%s in %s of dc.%s at %s, which %s", what, b->loop ? "the body" : "a side", b->op,
        b->where != NULL ? b->where : "?",
        b->loop ? "is traced once and runs many times" : "is traced, whether or not it runs");
    dc_error_fact(L, d, DC_ERR_ASSIGNED, &(dc_fact){.word = {text}}, &(dc_blame){.hint = hint});
}

/* Of the function at fn, against its values and copies behind it. */
static void check_captured(lua_State *L, dc_dsl *d, int fn)
{
    const int top = lua_gettop(L), values = fn + VALUES - FN, copies = fn + COPIES - FN;
    const bool rows = strcmp(d->trace->body->op, "vmap") == 0; /* what it returns is stacked */
    const bool loop = d->trace->body->loop && !rows;
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, fn, i)) != NULL; i++, lua_settop(L, top)) {
        lua_rawgeti(L, values, i);
        if (!lua_rawequal(L, top + 1, top + 2))
            refuse_effect(L, d, lua_pushfstring(L, "captured local '%s' is assigned", name),
                          loop   ? "return it as a part of the carry"
                          : rows ? "return it from the function"
                                 : "return it from the side");
        if (lua_rawgeti(L, copies, i) != LUA_TTABLE ||
            (!find_changed(L, top + 1, top + 3) && !find_changed(L, top + 3, top + 1)))
            continue;
        const char *key = luaL_tolstring(L, -1, NULL);
        refuse_effect(L, d,
                      strcmp(name, "_ENV") == 0
                          ? lua_pushfstring(L, "the global '%s' is assigned", key)
                          : lua_pushfstring(L, "captured table '%s' is changed at '%s'", name, key),
                      loop   ? "return it: as a part of the carry, or as y, which is stacked"
                      : rows ? "return it from the function"
                             : "return it from the side");
    }
}

static void check_functions(lua_State *L, dc_dsl *d, int list)
{
    const int top = lua_gettop(L);
    luaL_checkstack(L, 16, "a body");
    for (lua_Integer at = 0; at < (lua_Integer)lua_rawlen(L, list); at += NOTED) {
        for (int i = FN; i <= COPIES; i++)
            lua_rawgeti(L, list, at + i);
        check_captured(L, d, top + FN);
        lua_settop(L, top);
    }
}

/* control_call(f, ...): its results */
static int l_call(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int n = lua_gettop(L) - 1;
    const dc_trace *t = dc_trace_here(L, d);
    if (t == NULL || t->body == NULL || lua_type(L, 1) != LUA_TFUNCTION || lua_iscfunction(L, 1)) {
        lua_call(L, n, LUA_MULTRET);
        return lua_gettop(L);
    }
    luaL_checkstack(L, n + 16, "a body");
    note_functions(L, 1);
    lua_insert(L, 1); /* the list, the function, arguments */
    lua_call(L, n, LUA_MULTRET);
    check_functions(L, d, 1);
    return lua_gettop(L) - 1;
}

/* control_callable(f) */
static int l_callable(lua_State *L)
{
    const bool is =
        lua_type(L, 1) == LUA_TFUNCTION || luaL_getmetafield(L, 1, "__call") != LUA_TNIL;
    lua_pushboolean(L, is);
    return 1;
}

/* control_counts(f): is it a function of Lua? To others the number of the element would be one argument too many. */
static int l_counts(lua_State *L)
{
    lua_pushboolean(L, lua_type(L, 1) == LUA_TFUNCTION && !lua_iscfunction(L, 1));
    return 1;
}

/* control_where(f): "train.lua:12", or nil */
static int l_where(lua_State *L)
{
    lua_pushstring(L, dc_place_of_function(L, dc_dsl_of(L), 1));
    return 1;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* control_differs(a, b) */
static int l_differs(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_type a = *dc_handle_type(dc_handle_check(L, d, 1, "control"));
    const dc_type b = *dc_handle_type(dc_handle_check(L, d, 2, "control"));
    if (a.dtype != b.dtype)
        lua_pushliteral(L, "dtype");
    else if (!dc_type_same_shape(&a, &b))
        lua_pushliteral(L, "shape");
    else if (!dc_type_agrees(&a, &b))
        lua_pushliteral(L, "names");
    else
        lua_pushnil(L);
    return 1;
}

/* control_names_differ(a, b) */
static int l_names_differ(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_type a = *dc_handle_type(dc_handle_check(L, d, 1, "control"));
    const dc_type b = *dc_handle_type(dc_handle_check(L, d, 2, "control"));
    lua_pushboolean(L, memcmp(a.name, b.name, sizeof *a.name * a.rank) != 0);
    return 1;
}

static const dc_binding bindings[] = {
    {"control_begin", l_begin, DC_ANY, DC_IN_LIBRARY},
    {"control_number", l_number, DC_ANY, DC_IN_LIBRARY},
    {"control_read", l_read, DC_ANY, DC_IN_LIBRARY},
    {"control_stand_ins", l_stand_ins, DC_ANY, DC_IN_LIBRARY},
    {"control_call", l_call, DC_ANY, DC_IN_LIBRARY},
    {"control_callable", l_callable, DC_ANY, DC_IN_LIBRARY},
    {"control_counts", l_counts, DC_ANY, DC_IN_LIBRARY},
    {"control_where", l_where, DC_ANY, DC_IN_LIBRARY},
    {"control_differs", l_differs, DC_ANY, DC_IN_LIBRARY},
    {"control_names_differ", l_names_differ, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_control_bindings = DC_BINDINGS(bindings);

static const dc_binding of_control[] = {
    {"__close", l_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_control_methods = DC_BINDINGS(of_control);
