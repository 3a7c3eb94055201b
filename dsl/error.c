/*
 * Failures as scripts meet them: a table with fields, that reads as text wherever text is wanted.
 *
 *   train.lua:15: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
 *       left   f32[batch=32, 28, 28]   argument 'img' of step, train.lua:12
 *       right  f32[784, 10]            parameter net.2.weight
 *       in     net.2 (nn.Linear 784 -> 10)
 *     hint: 28 * 28 = 784; :flatten(2) first?
 *     [DC0301; deepc explain DC0301]
 */
#include "dsl/impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char ERROR[] = "deepc.error";

enum { LINE = 600 };

/* ---- the parts of the text ------------------------------------------------------------------- */

static void origin_of(const dc_handle *h, char *out, size_t size)
{
    if (h->kind == DC_HANDLE_CELL) {
        const char *what = h->cell->trainable ? "parameter" : "state";
        if (h->cell->label != NULL)
            snprintf(out, size, "%s %s", what, h->cell->label);
        else
            snprintf(out, size, "%s %s", what, h->origin != NULL ? h->origin : "without a name");
    } else {
        snprintf(out, size, "%s", h->origin != NULL ? h->origin : "");
    }
}

static void show_operand(const dc_operand *in, char *out, size_t size)
{
    if (in->h == NULL)
        snprintf(out, size, "%.9g", dc_value_of((dc_dtype)in->type.dtype, in->bits));
    else
        dc_type_print(&in->type, out, size);
}

static void add_operands(luaL_Buffer *b, const dc_blame *blame)
{
    char type[DC_TYPE_TEXT], origin[300], line[LINE];
    int width = 0;
    for (int i = 0; i < blame->n; i++) {
        show_operand(&blame->in[i], type, sizeof type);
        width = (int)strlen(type) > width ? (int)strlen(type) : width;
    }
    for (int i = 0; i < blame->n; i++) {
        const dc_operand *in = &blame->in[i];
        show_operand(in, type, sizeof type);
        origin[0] = '\0';
        if (in->h != NULL)
            origin_of(in->h, origin, sizeof origin);
        const int n =
            snprintf(line, sizeof line, "\n    %-6s %-*s   %s", in->role, width, type, origin);
        size_t end = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
        while (end > 0 && line[end - 1] == ' ')
            end--;
        luaL_addlstring(b, line, end);
    }
}

/* The first axis from which the dims of t multiply to n; 0-based, -1 none. */
static int flat_from(const dc_type *t, int64_t n)
{
    int64_t product = 1;
    for (int k = t->rank - 1; k >= 0; k--)
        if (!dc_mul_ok(product, t->dim[k], &product))
            return -1;
        else if (product == n && k < t->rank - 1)
            return k;
    return -1;
}

/* What to do about operands that do not fit, from their types. */
static bool work_out_hint(const dc_err *e, char *out, size_t size)
{
    const dc_type *a = &e->fact.type[0], *b = &e->fact.type[1];
    if (e->id == DC_ERR_INNER) {
        const int from = flat_from(a, e->fact.num[1]);
        if (from >= 0) {
            int n = 0;
            for (int k = from; k < a->rank && n < (int)size; k++)
                n += snprintf(out + n, size - (size_t)n, "%s%" PRId64, k > from ? " * " : "",
                              a->dim[k]);
            if (n < (int)size)
                snprintf(out + n, size - (size_t)n, " = %" PRId64 "; :flatten(%d) first?",
                         e->fact.num[1], from + 1);
            return true;
        }
        if (b->rank == 2 && b->dim[1] == e->fact.num[0]) {
            snprintf(out, size, "the right one :transpose()d would fit");
            return true;
        }
    }
    const bool mul = e->fact.op != NULL && strcmp(e->fact.op, "mul") == 0;
    if (e->id == DC_ERR_DIMS && mul && a->rank > 0 && b->rank == 2 &&
        a->dim[a->rank - 1] == b->dim[0]) {
        snprintf(out, size, "* is element-wise, the product is x:matmul(w)");
        return true;
    }
    return false;
}

static void push_message(lua_State *L, const dc_err *e, const dc_blame *blame, const char *hint)
{
    char text[1400];
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    if (blame->place->where != NULL) {
        luaL_addstring(&b, blame->place->where);
        luaL_addstring(&b, ": ");
    }
    dc_err_render(e, 1, text, sizeof text);
    luaL_addstring(&b, text);
    add_operands(&b, blame);
    if (blame->place->path != NULL) {
        luaL_addstring(&b, "\n    in     ");
        luaL_addstring(&b, blame->place->path);
    }
    if (hint != NULL && *hint != '\0') {
        luaL_addstring(&b, "\n  hint: ");
        luaL_addstring(&b, hint);
    }
    snprintf(text, sizeof text, "\n  [DC%04d; deepc explain DC%04d]", dc_err_row_of(e->id)->code,
             dc_err_row_of(e->id)->code);
    luaL_addstring(&b, text);
    luaL_pushresult(&b);
}

/* ---- the value ------------------------------------------------------------------------------- */

static void set_text(lua_State *L, const char *field, const char *text)
{
    if (text == NULL)
        return;
    lua_pushstring(L, text);
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
    case DC_ERR_ARG_TYPE:
    case DC_ERR_RESULT_TYPE:
        set_type(L, "got", &e->fact.type[0]);
        set_type(L, "expected", &e->fact.type[1]);
        break;
    case DC_ERR_CELL_TYPE:
        set_type(L, "expected", &e->fact.type[0]);
        set_type(L, "got", &e->fact.type[1]);
        break;
    default:
        break;
    }
}

static void push_error(lua_State *L, const dc_err *e, const dc_blame *blame)
{
    char hint[400], code[16];
    const char *row_hint = e->hint[0] != '\0' ? e->hint : dc_err_row_of(e->id)->hint;
    const bool worked_out = work_out_hint(e, hint, sizeof hint);
    const char *chosen = blame->hint != NULL ? blame->hint : worked_out ? hint : row_hint;
    lua_createtable(L, 0, 9);
    luaL_setmetatable(L, ERROR);
    snprintf(code, sizeof code, "DC%04d", dc_err_row_of(e->id)->code);
    set_text(L, "code", code);
    set_text(L, "op", e->fact.op);
    set_text(L, "at", blame->place->where);
    set_text(L, "path", blame->place->path);
    set_text(L, "hint", *chosen != '\0' ? chosen : NULL);
    set_types(L, e, blame);
    push_message(L, e, blame, chosen);
    lua_setfield(L, -2, "message");
    luaL_traceback(L, L, NULL, 1);
    lua_setfield(L, -2, "traceback");
}

void dc_error_raise(lua_State *L, dc_dsl *d, const dc_blame *b)
{
    dc_blame blame = b != NULL ? *b : (dc_blame){0};
    dc_place here;
    const dc_err *e = &d->rt->job.err;
    luaL_checkstack(L, 16, "an error");
    if (e->id == DC_ERR_BUG || e->status == DC_E_BUG)
        d->rt->broken = true;
    if (blame.place == NULL) {
        here = dc_place_find(L, d);
        blame.place = &here;
    }
    push_error(L, e, &blame);
    for (;;)
        lua_error(L);
}

void dc_error_raisef(lua_State *L, dc_dsl *d, dc_err_id id, const char *op, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    dc_error_fact(L, d, id, &(dc_fact){.op = op, .word = {text}}, NULL);
}

void dc_error_fact(lua_State *L, dc_dsl *d, dc_err_id id, const dc_fact *fact, const dc_blame *b)
{
    d->rt->job.err = (dc_err){0};
    dc_fail(&d->rt->job, id, fact);
    dc_error_raise(L, d, b);
}

void dc_error_check(lua_State *L, dc_dsl *d, dc_status status, const char *op)
{
    if (status != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
}

/* ---- what an error value does ---------------------------------------------------------------- */

static int l_tostring(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "message");
    return 1;
}

static int l_concat(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
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

void dc_error_register(lua_State *L, dc_dsl *d)
{
    static const luaL_Reg meta[] = {
        {"__tostring", l_tostring}, {"__concat", l_concat}, {"__index", l_index}, {NULL, NULL}};
    DC_UNUSED(d);
    luaL_newmetatable(L, ERROR);
    luaL_setfuncs(L, meta, 0);
    lua_pushstring(L, ERROR);
    lua_setfield(L, -2, "__name");
    lua_pop(L, 1);
}
