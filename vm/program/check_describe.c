/*
 * What values of a script are called: types of tensors, the signature and the specialisations of a typed function, the
 * class and the fields of a table.
 */
#include "dsl/dsl.h"
#include "vm/program/check.h"
#include "vm/program/check_types_impl.h"
#include "vm/program/prompt.h"

#include <lauxlib.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 400, MOST_FIELDS = 60, MOST_TEXT = 1500, CELL_WORDS = 20 };

/* ---- while the script runs -------------------------------------------------------------------- */

static uint32_t value_of_text(dc_check_types *t, dc_check_kind kind, const char *text)
{
    uint32_t value;
    const char *name = dc_name_intern_text(t->rt->names, text);
    if (dc_ptrmap_find(&t->known, name, &value))
        return value;
    dc_ptrmap_add(&t->known, name, t->value.n);
    DC_PUSH(t->value, ((dc_check_value){kind, name, 0}));
    return t->value.n - 1;
}

static void print_type(const dc_handle *h, char *out, size_t size)
{
    char type[DC_TYPE_TEXT];
    dc_type_print(dc_handle_type(h), type, sizeof type);
    snprintf(out, size, "%s%s", type,
             h->kind != DC_HANDLE_CELL ? ""
             : h->cell->trainable      ? "   a parameter"
                                       : "   a state");
}

uint32_t dc_check_value_of_tensor(dc_check_types *t, const dc_handle *h)
{
    char text[DC_TYPE_TEXT + CELL_WORDS];
    print_type(h, text, sizeof text);
    return value_of_text(t, DC_CHECK_TENSOR, text);
}

/* Described at the end; until then it is kept, so that no other one has its address. */
static uint32_t value_of_object(lua_State *L, dc_check_types *t, int idx, dc_check_kind kind)
{
    uint32_t value;
    const void *at = lua_topointer(L, idx);
    if (dc_ptrmap_find(&t->known, at, &value))
        return value;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, t) != LUA_TTABLE || lua_rawlen(L, -1) >= MOST_KEPT) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushvalue(L, idx);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    dc_ptrmap_add(&t->known, at, t->value.n);
    DC_PUSH(t->value, ((dc_check_value){kind, NULL, (uint32_t)lua_rawlen(L, -1)}));
    lua_pop(L, 1);
    return t->value.n - 1;
}

static uint32_t value_of_number(lua_State *L, dc_check_types *t, int idx)
{
    char text[80];
    if (lua_isinteger(L, idx))
        snprintf(text, sizeof text, "integer %lld", (long long)lua_tointeger(L, idx));
    else
        snprintf(text, sizeof text, "number %.14g", lua_tonumber(L, idx));
    return value_of_text(t, DC_CHECK_PLAIN, text);
}

uint32_t dc_check_value_of(lua_State *L, dc_check_types *t, int idx)
{
    const dc_handle *h = dc_handle_look(L, idx);
    if (h != NULL)
        return h->kind != DC_HANDLE_CLOSED ? dc_check_value_of_tensor(t, h) : 0;
    switch (lua_type(L, idx)) {
    case LUA_TNUMBER:
        return value_of_number(L, t, idx);
    case LUA_TBOOLEAN:
    case LUA_TSTRING:
        return value_of_text(t, DC_CHECK_PLAIN, luaL_typename(L, idx));
    case LUA_TTABLE:
        return value_of_object(L, t, idx, DC_CHECK_TABLE);
    case LUA_TFUNCTION:
        return lua_iscfunction(L, idx) ? 0 : value_of_object(L, t, idx, DC_CHECK_FUNCTION);
    case LUA_TUSERDATA:
        return dc_dsl_is_function(L, idx) ? value_of_object(L, t, idx, DC_CHECK_FUNCTION) : 0;
    default:
        return 0;
    }
}

/* ---- at the end ------------------------------------------------------------------------------- */

static void print_field(dc_text *out, const char *name, const char *text, size_t n)
{
    dc_text_printf(out, ",\"%s\":", name);
    dc_check_print_string(out, text, n);
}

/* Pushes what calling the method, or tostring (NULL), gives for the value at idx; "" where that fails. */
static const char *push_told(lua_State *L, int idx, const char *method, size_t *n)
{
    if (method == NULL)
        lua_getglobal(L, "tostring");
    else
        lua_getfield(L, idx, method);
    lua_pushvalue(L, idx);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK || lua_type(L, -1) != LUA_TSTRING) {
        lua_pop(L, 1);
        lua_pushliteral(L, "");
    }
    return lua_tolstring(L, -1, n);
}

/* Of f:explain the lines "  1. n=2   1 call": what each specialisation is for. */
static void print_specialisations(lua_State *L, int idx, dc_text *out)
{
    size_t n;
    int found = 0;
    const char *line = push_told(L, idx, "explain", &n);
    for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *digits = line + strspn(line, " "), *at = digits;
        while (isdigit((unsigned char)*at))
            at++;
        if (digits != line + 2 || at == digits || strncmp(at, ". ", 2) != 0)
            continue;
        const size_t length = strcspn(at, "\n");
        const char *end = strstr(at, "   ");
        dc_text_puts(out, found++ == 0 ? ",\"specialisations\":[" : ",");
        dc_check_print_string(out, at + 2,
                              (end != NULL && end < at + length ? (size_t)(end - at) : length) - 2);
    }
    if (found > 0)
        dc_text_puts(out, "]");
    lua_pop(L, 1);
}

static void print_function(lua_State *L, int idx, dc_text *out)
{
    size_t n;
    char text[60];
    lua_Debug ar;
    if (dc_dsl_is_function(L, idx)) {
        const char *signature = push_told(L, idx, NULL, &n);
        dc_text_puts(out, "{\"kind\":\"typed function\"");
        print_field(out, "text", signature, n);
        lua_pop(L, 1);
        print_specialisations(L, idx, out);
    } else {
        lua_pushvalue(L, idx);
        lua_getinfo(L, ">S", &ar);
        snprintf(text, sizeof text, "a function, line %d", ar.linedefined);
        dc_text_puts(out, "{\"kind\":\"function\"");
        print_field(out, "text", text, strlen(text));
    }
    dc_text_puts(out, "}");
}

/* Pushes "deepc.nn", the name of the library's module at idx, or nil; of those that put it together the shortest. */
static void push_module(lua_State *L, int idx)
{
    lua_pushnil(L);
    const int name = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (lua_pushnil(L); lua_next(L, name + 1) != 0; lua_pop(L, 1))
        if (lua_rawequal(L, -1, idx) && lua_type(L, -2) == LUA_TSTRING &&
            strncmp(lua_tostring(L, -2), "deepc", 5) == 0 &&
            (lua_isnil(L, name) || lua_rawlen(L, -2) < lua_rawlen(L, name)))
            lua_copy(L, -2, name);
    lua_settop(L, name);
}

/* What a field is, in a word or two: the value on top, which is popped. */
static void print_short(lua_State *L, dc_text *out)
{
    char text[DC_TYPE_TEXT + CELL_WORDS];
    const dc_handle *h = dc_handle_look(L, -1);
    const char *name = text;
    const int top = lua_gettop(L);
    if (h != NULL && h->kind != DC_HANDLE_CLOSED)
        print_type(h, text, sizeof text);
    else if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
        name = lua_tostring(L, -1);
    else
        name = luaL_typename(L, top);
    dc_check_print_string(out, name, strlen(name));
    lua_settop(L, top - 1);
}

static void print_fields(lua_State *L, int idx, dc_text *out)
{
    int told = 0;
    dc_prompt_push_fields(L, idx);
    const int list = lua_gettop(L);
    const lua_Integer n = (lua_Integer)lua_rawlen(L, list);
    for (lua_Integer i = 1; i <= n && told < MOST_FIELDS; i++) {
        lua_pushvalue(L, idx);
        lua_rawgeti(L, list, i);
        size_t length;
        const char *name = lua_tolstring(L, -1, &length);
        if (dc_prompt_get_field(L)) {
            dc_text_puts(out, told++ == 0 ? ",\"fields\":[[" : ",[");
            dc_check_print_string(out, name, length);
            dc_text_puts(out, ",");
            print_short(L, out);
            dc_text_puts(out, "]");
        } else {
            lua_pop(L, 1);
        }
        lua_settop(L, list);
    }
    if (told > 0)
        dc_text_puts(out, "]");
    lua_settop(L, list - 1);
}

static void print_table(lua_State *L, int idx, dc_text *out)
{
    size_t n;
    push_module(L, idx);
    const bool module = !lua_isnil(L, -1);
    dc_text_printf(out, "{\"kind\":\"%s\"", module ? "module" : "table");
    if (!module && luaL_getmetafield(L, idx, "__name") == LUA_TSTRING)
        print_field(out, "class", lua_tostring(L, -1), lua_rawlen(L, -1));
    if (!module && luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL)
        push_told(L, idx, NULL, &n);
    else if (!module)
        dc_prompt_push_type(L, idx);
    const char *text = lua_tolstring(L, -1, &n);
    print_field(out, "text", text, n < MOST_TEXT ? n : MOST_TEXT);
    if (!module)
        print_fields(L, idx, out);
    dc_text_puts(out, "}");
}

static void print_value(lua_State *L, const dc_check_types *t, const dc_check_value *v,
                        dc_text *out)
{
    const int top = lua_gettop(L);
    switch (v->kind) {
    case DC_CHECK_TENSOR:
    case DC_CHECK_PLAIN:
        dc_text_printf(out, "{\"kind\":\"%s\"", v->kind == DC_CHECK_TENSOR ? "tensor" : "plain");
        print_field(out, "text", v->text, strlen(v->text));
        dc_text_puts(out, "}");
        break;
    case DC_CHECK_TABLE:
    case DC_CHECK_FUNCTION:
        lua_rawgetp(L, LUA_REGISTRYINDEX, t);
        lua_rawgeti(L, -1, v->kept);
        if (v->kind == DC_CHECK_TABLE)
            print_table(L, lua_gettop(L), out);
        else
            print_function(L, lua_gettop(L), out);
        break;
    }
    lua_settop(L, top);
}

static int by_place(const void *x, const void *y)
{
    const dc_check_made *a = x, *b = y;
    const uintptr_t p[] = {(uintptr_t)a->where, (uintptr_t)a->op, a->value};
    const uintptr_t q[] = {(uintptr_t)b->where, (uintptr_t)b->op, b->value};
    for (size_t i = 0; i < DC_COUNTOF(p); i++)
        if (p[i] != q[i])
            return (p[i] > q[i]) - (p[i] < q[i]);
    return 0;
}

static void print_made(dc_check_types *t, const char *file, dc_text *out)
{
    int told = 0;
    if (t->made.n > 1)
        qsort(t->made.at, t->made.n, sizeof *t->made.at, by_place);
    for (uint32_t i = 0; i < t->made.n; i++) {
        const dc_check_made *m = &t->made.at[i];
        const int line = dc_check_line_of(m->where, file);
        if (line == 0 || (i > 0 && by_place(m, m - 1) == 0))
            continue;
        dc_text_printf(out, "%s[%d,", told++ == 0 ? "" : ",", line);
        dc_check_print_string(out, m->op, strlen(m->op));
        dc_text_printf(out, ",%u]", m->value);
    }
}

static void print_seen(const dc_check_types *t, dc_text *out)
{
    int told = 0;
    for (uint32_t i = 0; i < t->name.n; i++) {
        const dc_check_name *name = &t->name.at[i];
        for (uint32_t s = name->sight; s != 0; s = t->sight.at[s].next) {
            dc_text_printf(out, "%s[%u,", told++ == 0 ? "" : ",", name->line);
            dc_check_print_string(out, t->text + name->from, name->n);
            dc_text_printf(out, ",%d,%u]", t->sight.at[s].after, t->sight.at[s].value);
        }
    }
}

void dc_check_types_print(lua_State *L, dc_check_types *t, const char *file, dc_text *out)
{
    luaL_checkstack(L, 30, "values");
    dc_text_puts(out, "\"values\":[");
    for (uint32_t i = 1; i < t->value.n; i++) {
        dc_text_puts(out, i == 1 ? "" : ",\n");
        print_value(L, t, &t->value.at[i], out);
    }
    dc_text_puts(out, "],\n\"seen\":[");
    print_seen(t, out);
    dc_text_puts(out, "],\n\"made\":[");
    print_made(t, file, out);
    dc_text_puts(out, "]");
}
