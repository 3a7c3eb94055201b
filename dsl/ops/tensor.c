/*
 * What a tensor is to a script besides operations: fields, size, values out of it, printing,
 * and the sentences for what a tensor does not do.
 */
#include "core/base/number.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/hints.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/shape.h"
#include "dsl/base/size.h"
#include "dsl/base/trace.h"
#include "dsl/ops/ops.h"

#include <stdio.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

/* The methods are the second upvalue. */
static const char *field_hint(lua_State *L, const char *name)
{
    static const char *const fields[] = {"shape", "dtype", "device", NULL};
    const char *known = dc_hint_field(name);
    if (strchr(name, ':') != NULL && strspn(name, "0123456789:-, ") == strlen(name))
        return "a range is x[{ {2, 3} }]: from 1 on, with both ends";
    return known != NULL ? known : dc_hint_spelling(L, lua_upvalueindex(2), fields, name);
}

/* Does the iterator of ipairs ask for the element behind the last? Then there is none. */
static bool ends_ipairs(lua_State *L, const dc_dsl *d, const dc_type *t)
{
    lua_Debug ar;
    if (!lua_isinteger(L, 2) || t->rank == 0 || lua_tointeger(L, 2) != t->dim[0] + 1 ||
        !lua_getstack(L, 1, &ar))
        return false;
    lua_getinfo(L, "f", &ar);
    const bool is = lua_tocfunction(L, -1) == d->ipairs && d->ipairs != NULL;
    lua_pop(L, 1);
    return is;
}

/* Second upvalue: the methods; as "shape" it has the metatable of shapes. */
static int l_index(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    if (lua_type(L, 2) == LUA_TSTRING && lua_istable(L, lua_upvalueindex(2))) {
        lua_pushvalue(L, 2);
        const int type = lua_rawget(L, lua_upvalueindex(2));
        if (type == LUA_TTABLE) {
            dc_shape_push(L, dc_handle_type(dc_handle_check(L, d, 1, "index")), lua_gettop(L));
            return 1;
        }
        if (type != LUA_TNIL)
            return 1;
    }
    dc_handle *h = dc_handle_check(L, d, 1, "index");
    if (lua_type(L, 2) != LUA_TSTRING)
        return ends_ipairs(L, d, dc_handle_type(h)) ? 0 : dc_subscript_get(L, d, h);
    const char *name = lua_tostring(L, 2);
    if (strcmp(name, "dtype") == 0) {
        lua_pushstring(L, dc_dtype_name((dc_dtype)dc_handle_type(h)->dtype));
        return 1;
    }
    if (strcmp(name, "device") == 0) {
        dc_devices_push(L, d, h);
        return 1;
    }
    if (strlen(name) > 1 && name[strlen(name) - 1] == '_')
        dc_error_fact(L, d, DC_ERR_IMMUTABLE, NULL, NULL);
    dc_error_fact(L, d, DC_ERR_FIELD, &(dc_fact){.word = {"a tensor", name}},
                  &(dc_blame){.hint = field_hint(L, name)});
}

static int l_newindex(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_error_fact(L, d, DC_ERR_IMMUTABLE, NULL, NULL);
}

/* pairs(x): there are no keys to go through. */
static int l_pairs(lua_State *L)
{
    dc_error_fact(L, dc_dsl_of(L), DC_ERR_FIELD, &(dc_fact){.word = {"a tensor", "pairs"}},
                  &(dc_blame){.hint = "for i, row in ipairs(x), or pairs(x:totable())"});
}

static int l_size(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_handle *h = dc_handle_check(L, d, 1, "size");
    if (lua_isnoneornil(L, 2))
        dc_error_fact(L, d, DC_ERR_ARG,
                      &(dc_fact){.op = "size", .word = {"an axis is needed, a number or a name"}},
                      &(dc_blame){.hint = "x.shape has all sizes"});
    const dc_type t = *dc_handle_type(h);
    dc_size_push(L, t.dim[dc_args_axis_of(L, d, 2, &t, "size")]);
    return 1;
}

static int l_len(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const dc_type *t = dc_handle_type(dc_handle_check(L, d, 1, "#"));
    if (t->rank == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, "#", "a scalar has no axis 1");
    dc_size_push(L, t->dim[0]);
    return 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Raises for what no Lua integer holds, rather than wrap or round it. */
static void push_element(lua_State *L, dc_dtype t, const void *at, const char *op)
{
    const uint64_t bits = dc_bits_load(t, at);
    if (dc_dtype_kind(t) == DC_KIND_UINT && bits > INT64_MAX) {
        char text[DC_NUMBER_TEXT];
        dc_error_fact(
            L, dc_dsl_of(L), DC_ERR_NUMBER_FIT,
            &(dc_fact){.op = op, .word = {dc_number_print(t, bits, text), "a Lua integer"}},
            &(dc_blame){.hint = "x:cast \"i64\" keeps the 64 bits, tostring(x) the digits"});
    }
    if (t == DC_BOOL)
        lua_pushboolean(L, bits != 0);
    else if (dc_dtype_is_float(t))
        lua_pushnumber(L, dc_value_of(t, bits));
    else
        lua_pushinteger(L, (lua_Integer)bits);
}

/* The real and the imaginary part at `at`. */
static void push_parts(lua_State *L, dc_dtype t, const char *at, const char *op)
{
    const dc_dtype part = dc_dtype_part(t);
    push_element(L, part, at, op);
    push_element(L, part, at + dc_dtype_size(part), op);
}

static int l_item(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "item");
    const dc_type own = *dc_handle_type(h), *t = &own;
    if (dc_type_count(t) != 1) {
        const dc_operand in = {.h = h, .role = "of", .type = *t};
        char text[DC_TYPE_TEXT], sentence[DC_TYPE_TEXT + 40];
        dc_type_print(t, text, sizeof text);
        snprintf(sentence, sizeof sentence, "%s is not one element", text);
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = "item", .word = {sentence}},
                      &(dc_blame){.in = &in, .n = 1, .hint = ":totable() gives all of them"});
    }
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const void *at = dc_handle_read(L, d, h, "item");
    if (dc_dtype_is_complex(dtype)) {
        push_parts(L, dtype, at, "item");
        return 2;
    }
    push_element(L, dtype, at, "item");
    return 1;
}

typedef struct pushing {
    dc_dsl *d;
    const dc_type *t;
    uint32_t looks;
} pushing;

/* n numbers from `at` into the table on top. */
static const char *push_floats(lua_State *L, pushing *p, const char *at, int64_t n)
{
    const size_t size = dc_dtype_size((dc_dtype)p->t->dtype);
    for (int64_t i = 1; i <= n; i++, at += size) {
        float f;
        double v;
        dc_interrupt_poll_often(L, p->d, &p->looks);
        if (size == sizeof f) {
            memcpy(&f, at, sizeof f);
            v = (double)f;
        } else {
            memcpy(&v, at, sizeof v);
        }
        lua_pushnumber(L, v);
        lua_rawseti(L, -2, i);
    }
    return at;
}

static const char *push_level(lua_State *L, pushing *p, int axis, const char *at)
{
    const dc_type *t = p->t;
    const dc_dtype dtype = (dc_dtype)t->dtype;
    if (axis == t->rank && dc_dtype_is_complex(dtype)) {
        luaL_checkstack(L, 6, "nested tables");
        lua_createtable(L, 2, 0);
        push_parts(L, dtype, at, "totable");
        lua_rawseti(L, -3, 2);
        lua_rawseti(L, -2, 1);
        return at + dc_dtype_size(dtype);
    }
    if (axis == t->rank) {
        push_element(L, dtype, at, "totable");
        return at + dc_dtype_size(dtype);
    }
    const int64_t n = t->dim[axis];
    luaL_checkstack(L, 4, "nested tables");
    lua_createtable(L, (int)(n < INT32_MAX ? n : INT32_MAX), 0);
    if (axis + 1 == t->rank && (dtype == DC_F32 || dtype == DC_F64))
        return push_floats(L, p, at, n);
    for (int64_t i = 1; i <= n; i++) {
        dc_interrupt_poll_often(L, p->d, &p->looks);
        at = push_level(L, p, axis + 1, at);
        lua_rawseti(L, -2, i);
    }
    return at;
}

static int l_totable(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "totable");
    const dc_type t = *dc_handle_type(h);
    pushing p = {.d = d, .t = &t};
    push_level(L, &p, 0, dc_handle_read(L, d, h, "totable"));
    return 1;
}

static int l_clone(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "clone");
    if (h->kind == DC_HANDLE_TRACED) { /* immutable: its own copy */
        lua_pushvalue(L, 1);
        return 1;
    }
    const dc_type t = *dc_handle_type(h);
    const dc_place place = dc_place_find(L, d);
    if (dc_handle_rt(h) != d->rt && dc_trace_here(L, d) == NULL) {
        dc_handle *there = dc_handle_new(L, d);
        there->origin = dc_place_made(d, place.where);
        dc_handle_copy(L, d, h, dc_handle_rt(h), there);
        return 1;
    }
    const void *from = dc_handle_read(L, d, h, "clone");
    dc_handle *copy = dc_handle_new(L, d);
    copy->origin = dc_place_made(d, place.where);
    dc_handle_upload(L, d, copy, &t, from);
    return 1;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int l_tostring(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_test(L, 1);
    if (h != NULL ? h->kind == DC_HANDLE_CLOSED : dc_handle_was(L, 1)) {
        lua_pushliteral(L, "(closed tensor)");
        return 1;
    }
    return dc_print_value(L, d, dc_handle_check(L, d, 1, "tostring"));
}

static int l_concat_text(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

/* ---- what Lua's comparisons cannot do ---------------------------------------------------------
 */

/* Lua has no > and >=, it swaps the operands: which is the left one cannot be told. */
static void refuse_comparison(lua_State *L, const char *sentence, const char *hint)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_operand in[2];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        dc_handle *h = dc_handle_test(L, i + 1);
        if (h != NULL && h->kind != DC_HANDLE_CLOSED)
            in[n++] = (dc_operand){.h = h, .role = "of", .type = *dc_handle_type(h)};
    }
    dc_error_fact(L, d, DC_ERR_COMPARE, &(dc_fact){.word = {sentence}},
                  &(dc_blame){.in = in, .n = n, .hint = hint});
}

static int l_order(lua_State *L)
{
    refuse_comparison(L, "order comparison of tensors: Lua makes it true or false",
                      "loss:item() for the value, x:lt :le :gt :ge element by element");
    return 0;
}

static int l_equal(lua_State *L)
{
    if (dc_handle_test(L, 1) == NULL || dc_handle_test(L, 2) == NULL) {
        lua_pushboolean(L, 0); /* some other userdata */
        return 1;
    }
    refuse_comparison(L, "== of two tensors", "pred:eq(y), rawequal for identity");
    return 0;
}

/* The iterator that ipairs returns, if the state has it. */
static lua_CFunction find_ipairs(lua_State *L)
{
    const int top = lua_gettop(L);
    lua_CFunction f = NULL;
    lua_pushglobaltable(L);
    lua_pushliteral(L, "ipairs");
    if (lua_rawget(L, -2) == LUA_TFUNCTION && lua_iscfunction(L, -1)) {
        lua_newtable(L);
        if (lua_pcall(L, 1, 1, 0) == LUA_OK)
            f = lua_tocfunction(L, -1);
    }
    lua_settop(L, top);
    return f;
}

static const dc_binding bindings[] = {
    {"size", l_size, 2, DC_IN_METHODS},
    {"item", l_item, 1, DC_IN_METHODS},
    {"totable", l_totable, 1, DC_IN_METHODS},
    {"clone", l_clone, 1, DC_IN_METHODS},
    {"close", dc_handle_leave, 1, DC_IN_METHODS},
    {"__newindex", l_newindex, DC_ANY, DC_IN_META},
    {"__len", l_len, DC_ANY, DC_IN_META},
    {"__tostring", l_tostring, DC_ANY, DC_IN_META},
    {"__concat", l_concat_text, DC_ANY, DC_IN_META},
    {"__lt", l_order, DC_ANY, DC_IN_META},
    {"__le", l_order, DC_ANY, DC_IN_META},
    {"__eq", l_equal, DC_ANY, DC_IN_META},
    {"__pairs", l_pairs, DC_ANY, DC_IN_META},
    {"__close", dc_handle_leave, DC_ANY, DC_IN_META},
};

const dc_bindings dc_tensor_bindings = DC_BINDINGS(bindings);

void dc_tensor_open(lua_State *L, dc_dsl *d, int methods, int meta)
{
    d->ipairs = find_ipairs(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, d);
    lua_pushvalue(L, methods);
    dc_shape_open(L, d);
    lua_setfield(L, -2, "shape");
    lua_pushcclosure(L, l_index, 2);
    lua_setfield(L, meta, "__index");
}
