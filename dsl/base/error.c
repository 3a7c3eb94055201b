/*
 * Failures as scripts meet them: a table with fields (code, op, at, path, dims, hint, expected, got,
 * operands, message, traceback) that reads as its message wherever text is wanted. The message is
 * made in core/base/err_text.c; here is what it needs to know of handles and places.
 */
#include "dsl/base/error.h"

#include "core/base/number.h"
#include "core/base/shown.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const dc_utype dc_error_type = {.name = "deepc.error"};

/* ---- the record's surroundings ---------------------------------------------------------------- */

/* Texts of one operand. */
typedef struct shown {
    char type[DC_TYPE_TEXT], origin[300];
} shown;

static void show_origin(const dc_handle *h, char *out, size_t size)
{
    if (h == NULL)
        snprintf(out, size, "%s", "");
    else if (h->kind != DC_HANDLE_CELL)
        snprintf(out, size, "%s", h->origin != NULL ? h->origin : "");
    else if (h->cell->label != NULL || h->origin != NULL)
        snprintf(out, size, "%s %s", h->cell->trainable ? "parameter" : "state",
                 h->cell->label != NULL ? h->cell->label : h->origin);
    else
        snprintf(out, size, "%s", h->cell->trainable ? "a parameter" : "a state");
}

static void show_type(const dc_operand *in, char *out, size_t size)
{
    const dc_dtype t = (dc_dtype)in->type.dtype;
    if (in->h != NULL)
        dc_type_print(&in->type, out, size);
    else if (t == DC_BOOL)
        snprintf(out, size, "%s", in->bits != 0 ? "true" : "false");
    else
        dc_number_format(out, size, "%.9g", dc_value_of(t, in->bits));
}

static void set_scene(dc_err_scene *s, shown *text, const dc_blame *blame)
{
    *s = (dc_err_scene){
        .where = blame->place->where, .path = blame->place->path, .hint = blame->hint};
    for (; s->n < blame->n && s->n < DC_ERR_OPERANDS; s->n++) {
        const dc_operand *in = &blame->in[s->n];
        shown *x = &text[s->n];
        show_type(in, x->type, sizeof x->type);
        show_origin(in->h, x->origin, sizeof x->origin);
        s->in[s->n] = (dc_err_in){in->role, x->type, x->origin};
    }
}

/* ---- the value ------------------------------------------------------------------------------- */

/* As it stands in the message. */
static void set_text(lua_State *L, const char *field, const char *text)
{
    if (text == NULL || *text == '\0')
        return;
    luaL_Buffer b;
    const size_t n = strlen(text), m = dc_shown_put(NULL, 0, text, n, false);
    dc_shown_put(luaL_buffinitsize(L, &b, m + 1), m + 1, text, n, false);
    luaL_pushresultsize(&b, m);
    lua_setfield(L, -2, field);
}

static void set_type(lua_State *L, const char *field, const dc_type *t)
{
    char text[DC_TYPE_TEXT];
    dc_type_print(t, text, sizeof text);
    set_text(L, field, text);
}

static void set_types(lua_State *L, const dc_err *e, const dc_blame *blame)
{
    set_text(L, "expected", blame->expected);
    set_text(L, "got", blame->got);
    switch ((int)e->id) {
    case DC_ERR_CELL_TYPE:
        set_type(L, "expected", &e->fact.type[0]);
        set_type(L, "got", &e->fact.type[1]);
        break;
    case DC_ERR_DIMS:
    case DC_ERR_INNER:
    case DC_ERR_DTYPE_MIX:
    case DC_ERR_NAMES:
        if (blame->n == 2) { /* the left one sets what the right one should be */
            set_type(L, "expected", &blame->in[0].type);
            set_type(L, "got", &blame->in[1].type);
        }
        break;
    default:
        break;
    }
}

static void set_operands(lua_State *L, const dc_err_scene *s)
{
    lua_createtable(L, s->n, 0);
    for (int i = 0; i < s->n; i++) {
        lua_createtable(L, 0, 3);
        set_text(L, "role", s->in[i].role);
        set_text(L, "type", s->in[i].type);
        set_text(L, "origin", s->in[i].origin);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "operands");
}

static void set_message(lua_State *L, const dc_err *e, const dc_err_scene *s)
{
    luaL_Buffer b;
    const size_t n = (size_t)dc_err_print(e, s, 1, NULL, 0);
    char *room = luaL_buffinitsize(L, &b, n + 1);
    dc_err_print(e, s, 1, room, n + 1);
    luaL_pushresultsize(&b, n);
    lua_setfield(L, -2, "message");
}

/*
 * A mistake found among arguments is about the tensor that the binding was called with, the first or
 * (2 ^ x) the second value of its stack.
 */
static bool find_operand(lua_State *L, dc_operand *out)
{
    const int first = lua_gettop(L) > 0 ? lua_type(L, 1) : LUA_TNONE;
    const int at = lua_gettop(L) > 1 && (first == LUA_TNUMBER || first == LUA_TBOOLEAN) ? 2 : 1;
    dc_handle *h = first != LUA_TNONE ? dc_handle_test(L, at) : NULL;
    if (h == NULL || h->kind == DC_HANDLE_CLOSED)
        return false;
    *out = (dc_operand){.h = h, .role = "of", .type = *dc_handle_type(h)};
    return true;
}

/* Is every size of "batch=32, t=128" read in the type of an operand anyway? */
static bool all_visible(const char *dims, const dc_err_scene *s)
{
    for (const char *at = dims; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        char dim[80];
        bool seen = false;
        snprintf(dim, sizeof dim, "%.*s", (int)n, at);
        for (int i = 0; i < s->n && !seen; i++)
            seen = s->in[i].type != NULL && strstr(s->in[i].type, dim) != NULL;
        if (!seen)
            return false;
        at += n;
        at += strspn(at, ", ");
    }
    return true;
}

/* "a tensor or a number is needed, not nil" */
static bool tells_nil(const dc_err *e)
{
    static const char end[] = ", not nil";
    const size_t n = sizeof end - 1, have = e->fact.word[0] ? strlen(e->fact.word[0]) : 0;
    return have >= n && strcmp(e->fact.word[0] + have - n, end) == 0;
}

static void set_errno(lua_State *L, int error)
{
    if (error == 0)
        return;
    lua_pushinteger(L, error);
    lua_setfield(L, -2, "errno");
}

static void push_error(lua_State *L, dc_dsl *d, const dc_err *e, const dc_blame *blame)
{
    char hint[480], code[16], dims[300];
    shown text[DC_ERR_OPERANDS];
    dc_err_scene scene;
    set_scene(&scene, text, blame);
    const dc_trace *t = dc_trace_here(L, d);
    if (t != NULL) {
        dc_trace_bound(t, dims, sizeof dims);
        scene.dims = all_visible(dims, &scene) ? NULL : dims;
    }
    if (scene.hint == NULL)
        scene.hint = dc_err_hint(e, hint, sizeof hint);
    if (*scene.hint == '\0' && tells_nil(e)) {
        const char *name =
            dc_nil_variable_push(L, d); /* stays on the stack while the message is made */
        scene.hint = name != NULL ? name : scene.hint;
    }
    lua_createtable(L, 0, 12);
    dc_udata_push_meta(L, &dc_error_type);
    lua_setmetatable(L, -2);
    snprintf(code, sizeof code, "DC%04d", dc_err_row_of(e->id)->code);
    set_text(L, "code", code);
    set_text(L, "op", e->fact.op);
    set_text(L, "at", scene.where);
    set_text(L, "path", scene.path);
    set_text(L, "dims", scene.dims);
    set_text(L, "hint", scene.hint);
    set_errno(L, e->fact.error);
    set_types(L, e, blame);
    set_operands(L, &scene);
    set_message(L, e, &scene);
    dc_error_traceback(L);
    lua_setfield(L, -2, "traceback");
}

void dc_error_raise(lua_State *L, dc_dsl *d, const dc_blame *b)
{
    dc_blame blame = b != NULL ? *b : (dc_blame){0};
    dc_place here;
    dc_operand own;
    dc_err failure; /* finalizers of the script that run from here on fail and succeed */
    if (dc_job_elsewhere(&d->rt->job))
        luaL_error(L, "%s", DC_JOB_ELSEWHERE);
    dc_interrupt_told(L, d);
    dc_err_copy(&failure, &d->rt->job.err);
    const dc_err *e = &failure;
    if (blame.op != NULL)
        failure.fact.op = blame.op;
    luaL_checkstack(L, 20, "an error");
    if (e->id == DC_ERR_BUG || e->status == DC_E_BUG)
        d->rt->broken = true;
    if (e->status == DC_E_NOMEM)
        d->hit_limit = true;
    if (e->where[0] != '\0' || blame.place == NULL) {
        here = e->where[0] != '\0' ? (dc_place){e->where, e->path[0] != '\0' ? e->path : NULL}
                                   : dc_place_find(L, d);
        blame.place = &here;
    }
    if (e->where[0] != '\0')
        blame.n = 0; /* what was called is not what failed */
    else if (blame.n == 0 && find_operand(L, &own)) {
        blame.in = &own;
        blame.n = 1;
    }
    push_error(L, d, e, &blame);
    if (dc_err_ends(e->id))
        dc_interrupt_raised(L, d);
    for (;;)
        lua_error(L);
}

void dc_error_raisef(lua_State *L, dc_dsl *d, dc_err_id id, const char *op, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    dc_error_fact(L, d, id, &(dc_fact){.op = op, .word = {text}}, NULL);
}

void dc_error_fact(lua_State *L, dc_dsl *d, dc_err_id id, const dc_fact *fact, const dc_blame *b)
{
    dc_err_clear(&d->rt->job.err);
    dc_fail(&d->rt->job, id, fact);
    dc_error_raise(L, d, b);
}

void dc_error_sentence(lua_State *L, dc_dsl *d, const char *text)
{
    const dc_place here = dc_place_find(L, d);
    luaL_checkstack(L, 20, "an error");
    lua_createtable(L, 0, 4);
    dc_udata_push_meta(L, &dc_error_type);
    lua_setmetatable(L, -2);
    set_text(L, "at", here.where);
    set_text(L, "path", here.path);
    lua_pushstring(L, text); /* the script's own */
    lua_setfield(L, -2, "message");
    dc_error_traceback(L);
    lua_setfield(L, -2, "traceback");
    for (;;)
        lua_error(L);
}

void dc_error_check(lua_State *L, dc_dsl *d, dc_status status)
{
    if (status != DC_OK)
        dc_error_raise(L, d, NULL);
}

void dc_error_check_of(lua_State *L, dc_dsl *d, dc_status status, const char *op)
{
    if (status != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
}

bool dc_error_is(lua_State *L, int idx)
{
    return dc_udata_has_meta(L, idx, &dc_error_type);
}

/* ---- what an error value does ---------------------------------------------------------------- */

static int l_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushliteral(L, "message");
    if (lua_rawget(L, 1) != LUA_TSTRING) /* the script took it away */
        lua_pushliteral(L, "an error of deepc without a message");
    return 1;
}

static int l_concat_text(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

static int l_len(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    lua_pushinteger(L, luaL_len(L, -1));
    return 1;
}

/* A function of the string library, on the text. */
static int l_string_method(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    lua_replace(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static int l_index(lua_State *L)
{
    if (lua_getglobal(L, "string") != LUA_TTABLE)
        return 0;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TFUNCTION)
        return 0;
    lua_pushcclosure(L, l_string_method, 1);
    return 1;
}

static const dc_binding of_error[] = {
    {"__tostring", l_tostring, DC_ANY, DC_IN_META},
    {"__concat", l_concat_text, DC_ANY, DC_IN_META},
    {"__len", l_len, DC_ANY, DC_IN_META},
    {"__index", l_index, DC_ANY, DC_IN_META},
};

const dc_bindings dc_error_methods = DC_BINDINGS(of_error);

void dc_error_open(lua_State *L)
{
    /* For tools that ask getmetatable(e).__tostring of tables before they print one. */
    dc_udata_push_meta(L, &dc_error_type);
    lua_createtable(L, 0, 2);
    lua_pushstring(L, dc_error_type.name);
    lua_setfield(L, -2, "__name");
    lua_pushcfunction(L, l_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
