/*
 * Arguments: types, axes, dtypes and numbers out of Lua values. Every mistake in them is raised
 * here, with the name of the operation as the script wrote it. Axes are 1-based in Lua, may be
 * negative or a name, and leave as 0-based numbers.
 */
#include "dsl/base/args.h"

#include "core/base/expr.h"
#include "core/signature/signature.h"
#include "dsl/base/error.h"
#include "dsl/base/hints.h"
#include "dsl/base/run.h"
#include "dsl/base/shape.h"
#include "dsl/base/size.h"
#include "dsl/base/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dc_args_text(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    size_t n;
    if (lua_type(L, idx) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a string is needed, not %s",
                        dc_handle_describe(L, idx));
    const char *text = lua_tolstring(L, idx, &n);
    if (strlen(text) != n)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a zero byte in the string '%.60s'", text);
    return text;
}

/* ---- lists ----------------------------------------------------------------------------------- */

uint32_t dc_args_list_length(lua_State *L, int idx)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    return (uint32_t)lua_rawlen(L, idx);
}

const char *dc_args_list_text(lua_State *L, dc_dsl *d, int list, uint32_t i, const char *op)
{
    lua_rawgeti(L, list, i + 1);
    const char *text = dc_args_text(L, d, -1, op);
    lua_pop(L, 1);
    return text;
}

dc_handle *dc_args_list_handle(lua_State *L, dc_dsl *d, int list, uint32_t i, const char *op)
{
    lua_rawgeti(L, list, i + 1);
    dc_handle *h = dc_handle_check(L, d, -1, op);
    lua_pop(L, 1);
    return h;
}

/* ---- types ----------------------------------------------------------------------------------- */

typedef struct parsing {
    dc_names *names;
    const char *text;
    dc_type *out;
    const dc_frame *frame; /* the typed function that is traced; NULL: none */
} parsing;

/* While a function is traced the names of its dims stand for their sizes. */
static int64_t size_in_frame(void *ctx, const char *name, size_t n)
{
    const parsing *a = ctx;
    const int v = dc_sig_var(a->frame->sig, dc_name_intern(a->names, name, n));
    return v < 0 ? -1 : a->frame->bind->size[v];
}

static dc_status parse_type_body(dc_job *j, void *arg)
{
    const parsing *a = arg;
    const char *at = a->text;
    DC_TRY(
        dc_type_parse_with(j, a->names, &at, a->frame != NULL ? size_in_frame : NULL, arg, a->out));
    at = dc_expr_skip_blanks(at);
    if (*at == '\0')
        return DC_OK;
    char rest[80];
    snprintf(rest, sizeof rest, "nothing expected behind '%.40s'", at);
    return dc_fail(j, DC_ERR_TYPE_TEXT, &(dc_fact){.word = {a->text, rest}});
}

void dc_args_type(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *out)
{
    if (lua_type(L, idx) != LUA_TSTRING) {
        const char *hint = dc_hint_type(L, op, idx);
        const char *text = lua_pushfstring(L, "a type such as \"f32[64, 784]\" is needed, not %s",
                                           dc_handle_describe(L, idx));
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                      &(dc_blame){.hint = hint});
    }
    const dc_trace *t = dc_trace_here(L, d);
    parsing a = {d->rt->names, dc_args_text(L, d, idx, op), out, t != NULL ? t->frame : NULL};
    if (dc_run_once(d, parse_type_body, &a) == DC_OK)
        return;
    dc_error_raise(L, d, &(dc_blame){.op = op});
}

void dc_args_like(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *out)
{
    if (dc_handle_test(L, idx) != NULL)
        *out = *dc_handle_type(dc_handle_check(L, d, idx, op));
    else
        dc_args_type(L, d, idx, op, out);
    dc_size_check(L, d, op, out);
}

/* ---- axes ------------------------------------------------------------------------------------ */

static int named_axis(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op)
{
    const char *name = lua_tostring(L, idx);
    char type[DC_TYPE_TEXT];
    int found = -1;
    dc_type_print(t, type, sizeof type);
    for (int k = 0; k < t->rank; k++) {
        if (t->name[k] == NULL || strcmp(t->name[k], name) != 0)
            continue;
        if (found >= 0)
            dc_error_raisef(L, d, DC_ERR_ARG, op, "axes %d and %d of %s are both '%s'", found + 1,
                            k + 1, type, name);
        found = k;
    }
    if (found < 0)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "no axis of %s is called '%.60s'", type, name);
    return found;
}

int dc_args_axis(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op)
{
    const dc_type t = *dc_handle_type(h);
    return dc_args_axis_of(L, d, idx, &t, op);
}

int dc_args_axis_of(lua_State *L, dc_dsl *d, int idx, const dc_type *t, const char *op)
{
    if (lua_type(L, idx) == LUA_TSTRING)
        return named_axis(L, d, idx, t, op);
    if (lua_type(L, idx) != LUA_TNUMBER)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "an axis is needed, a number or a name, not %s",
                        dc_handle_describe(L, idx));
    const int64_t axis = dc_args_count(L, d, idx, op, "an axis");
    if (axis >= 1 && axis <= t->rank)
        return (int)axis - 1;
    if (axis < 0 && axis >= -t->rank)
        return t->rank + (int)axis;
    if (t->rank == 0)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "axis %" PRId64 " of a scalar, which has no axes",
                        axis);
    dc_error_fact(L, d, DC_ERR_AXIS, &(dc_fact){.op = op, .num = {axis, t->rank}, .type = {*t}},
                  NULL);
}

static void add_axis(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                     uint32_t *mask)
{
    const int axis = dc_args_axis(L, d, idx, h, op);
    if (*mask >> axis & 1)
        dc_error_fact(L, d, DC_ERR_AXIS_TWICE,
                      &(dc_fact){.op = op, .axis = {axis}, .type = {*dc_handle_type(h)}}, NULL);
    *mask |= 1u << axis;
}

static uint32_t listed_axes(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op)
{
    uint32_t mask = 0;
    const lua_Integer n = luaL_len(L, idx);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, idx, i);
        add_axis(L, d, lua_gettop(L), h, op, &mask);
        lua_pop(L, 1);
    }
    return mask;
}

uint32_t dc_args_axes(lua_State *L, dc_dsl *d, int idx, const dc_handle *h, const char *op,
                      bool *keep)
{
    const uint32_t all = (1u << dc_handle_type(h)->rank) - 1;
    uint32_t mask = 0;
    *keep = false;
    if (lua_isnoneornil(L, idx))
        return all;
    if (lua_type(L, idx) != LUA_TTABLE) {
        add_axis(L, d, idx, h, op, &mask);
        return mask;
    }
    if (luaL_len(L, idx) > 0)
        return listed_axes(L, d, idx, h, op);
    dc_args_options(L, d, idx, op, (const char *const[]){"axis", "keep", NULL});
    if (lua_getfield(L, idx, "keep") != LUA_TNIL && lua_type(L, -1) != LUA_TBOOLEAN)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "keep must be true or false, not %s",
                        dc_handle_describe(L, -1));
    *keep = lua_toboolean(L, -1);
    if (lua_getfield(L, idx, "axis") == LUA_TNIL)
        mask = all;
    else if (lua_type(L, -1) == LUA_TTABLE)
        mask = listed_axes(L, d, lua_gettop(L), h, op);
    else
        add_axis(L, d, lua_gettop(L), h, op, &mask);
    lua_pop(L, 2);
    return mask;
}

/* ---- numbers and options --------------------------------------------------------------------- */

bool dc_args_is_scalar(lua_State *L, int idx)
{
    const int type = lua_type(L, idx);
    return type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

static double read_number(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what)
{
    if (lua_type(L, idx) != LUA_TNUMBER)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%s must be a number, not %s", what,
                        dc_handle_describe(L, idx));
    return lua_tonumber(L, idx);
}

int64_t dc_args_integer(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what)
{
    int exact;
    if (lua_type(L, idx) != LUA_TNUMBER)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%s must be an integer, not %s", what,
                        dc_handle_describe(L, idx));
    const lua_Integer n = lua_tointegerx(L, idx, &exact);
    if (!exact)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "%s must be an integer, not %s", what,
                        dc_handle_describe(L, idx));
    return n;
}

int64_t dc_args_count(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what)
{
    return dc_extent_number(dc_args_integer(L, d, idx, op, what));
}

double dc_args_option(lua_State *L, dc_dsl *d, int idx, const char *op, const char *name,
                      double dflt)
{
    if (lua_isnoneornil(L, idx))
        return dflt;
    const bool given = lua_getfield(L, idx, name) != LUA_TNIL;
    const double v = given ? read_number(L, d, lua_gettop(L), op, name) : dflt;
    lua_pop(L, 1);
    return v;
}

int dc_args_dtype(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    dc_dtype t = DC_F32;
    const bool given = lua_getfield(L, idx, "dtype") != LUA_TNIL;
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (given && (name == NULL || !dc_dtype_find(name, strlen(name), &t) || t == DC_BOOL))
        dc_error_raisef(L, d, DC_ERR_ARG, op, "dtype is one of numbers, such as \"i32\", not %s",
                        dc_handle_describe(L, -1));
    lua_pop(L, 1);
    return given ? (int)t : -1;
}

void dc_args_options(lua_State *L, dc_dsl *d, int idx, const char *op, const char *const *known)
{
    if (lua_isnoneornil(L, idx))
        return;
    if (lua_type(L, idx) != LUA_TTABLE) {
        const char *text =
            lua_pushfstring(L, "options are a table, not %s", dc_handle_describe(L, idx));
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                      &(dc_blame){.hint = dc_hint_options(L, op, idx)});
    }
    luaL_checkstack(L, 8, "options");
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1)) {
        int i = 0;
        if (lua_type(L, -2) == LUA_TSTRING)
            while (known[i] != NULL && strcmp(known[i], lua_tostring(L, -2)) != 0)
                i++;
        if (lua_type(L, -2) == LUA_TSTRING && known[i] != NULL)
            continue;
        char list[200] = "";
        for (int k = 0, n = 0; known[k] != NULL && n < (int)sizeof list; k++)
            n += snprintf(list + n, sizeof list - (size_t)n, "%s%s", k ? ", " : "", known[k]);
        const char *key = luaL_tolstring(L, -2, NULL);
        const char *text = lua_pushfstring(L, "unknown option '%s'; known are %s", key, list);
        dc_error_fact(L, d, DC_ERR_ARG, &(dc_fact){.op = op, .word = {text}},
                      &(dc_blame){.hint = dc_hint_option(L, known, key)});
    }
}

static bool integer_fits(dc_dtype t, int64_t v)
{
    const int bits = dc_dtype_bits(t);
    if (dc_dtype_kind(t) == DC_KIND_UINT)
        return v >= 0 && (bits >= 63 || v >> bits == 0);
    return bits >= 64 || (v >= -((int64_t)1 << (bits - 1)) && v < (int64_t)1 << (bits - 1));
}

/* A whole number in the range; not NaN. */
static bool float_fits(dc_dtype t, double v)
{
    const int bits = dc_dtype_bits(t);
    if (v != floor(v))
        return false;
    if (dc_dtype_kind(t) == DC_KIND_UINT)
        return v >= 0 && v < ldexp(1, bits);
    return v >= -ldexp(1, bits - 1) && v < ldexp(1, bits - 1);
}

bool dc_args_fits(lua_State *L, int idx, dc_dtype t, uint64_t *bits)
{
    const int type = lua_type(L, idx);
    if (t == DC_BOOL && type == LUA_TBOOLEAN) {
        *bits = (uint64_t)lua_toboolean(L, idx);
        return true;
    }
    if (type != LUA_TNUMBER || t == DC_BOOL)
        return false;
    if (dc_dtype_is_smooth(t)) {
        const double v = lua_tonumber(L, idx);
        *bits = dc_bits_of(t, v);
        const double there = dc_value_of(t, *bits);
        return isnan(v) || (isinf(v) ? isinf(there) : isfinite(there));
    }
    if (lua_isinteger(L, idx)) { /* 64 bits, exact */
        *bits = (uint64_t)lua_tointeger(L, idx);
        return integer_fits(t, lua_tointeger(L, idx));
    }
    const double v = lua_tonumber(L, idx);
    if (!float_fits(t, v))
        return false;
    *bits = dc_dtype_kind(t) == DC_KIND_UINT ? (uint64_t)v : (uint64_t)(int64_t)v;
    return true;
}

/* What an element is called where it does not fit; pushes it. */
static const char *element_text(lua_State *L, int idx)
{
    if (lua_type(L, idx) != LUA_TNUMBER)
        return dc_handle_describe(L, idx);
    return isnan(lua_tonumber(L, idx)) ? lua_pushliteral(L, "nan") : luaL_tolstring(L, idx, NULL);
}

/* "u8 holds 0 to 255"; pushes it. */
static const char *range_text(lua_State *L, dc_dtype t)
{
    const bool is_signed = dc_dtype_kind(t) == DC_KIND_SINT;
    const int bits = dc_dtype_bits(t) - is_signed;
    const int64_t high = bits < 63 ? ((int64_t)1 << bits) - 1 : INT64_MAX; /* u64 comes not here */
    char text[80];
    snprintf(text, sizeof text, "%s holds %" PRId64 " to %" PRId64, dc_dtype_name(t),
             is_signed ? -high - 1 : 0, high);
    return lua_pushstring(L, text);
}

static const char *element_hint(lua_State *L, int idx, dc_dtype t)
{
    if (t == DC_BOOL)
        return "bool has true and false";
    if (lua_type(L, idx) == LUA_TBOOLEAN)
        return "dc.tensor({ true, false }, \"bool\")";
    if (dc_handle_test(L, idx) != NULL)
        return ":item() gives a tensor's number";
    if (lua_isinteger(L, idx) && strcmp(dc_dtype_name(t), "u64") == 0)
        return "dc.tensor(n, \"i64[]\"):cast \"u64\" keeps the 64 bits";
    if (dc_dtype_kind(t) == DC_KIND_UINT && dc_dtype_bits(t) == 64)
        return NULL;
    if (lua_type(L, idx) != LUA_TNUMBER || dc_dtype_is_smooth(t))
        return NULL;
    const double v = lua_tonumber(L, idx);
    if (isnan(v))
        return NULL;
    if (v != floor(v))
        return ":cast \"f32\" first; / gives f32 by itself";
    return range_text(L, t);
}

void dc_args_refuse_element(lua_State *L, dc_dsl *d, int idx, const char *op, dc_dtype t,
                            const char *where)
{
    const dc_blame b = {.hint = element_hint(L, idx, t)};
    const char *text = element_text(L, idx);
    if (*where != '\0')
        text = lua_pushfstring(L, "%s at %s", text, where);
    dc_error_fact(L, d, DC_ERR_NUMBER_FIT, &(dc_fact){.op = op, .word = {text, dc_dtype_name(t)}},
                  &b);
}

uint64_t dc_args_element(lua_State *L, dc_dsl *d, int idx, const char *op, dc_dtype t)
{
    uint64_t bits;
    if (!dc_args_fits(L, idx, t, &bits))
        dc_args_refuse_element(L, d, idx, op, t, "");
    return bits;
}

bool dc_args_is_plain(lua_State *L, int idx)
{
    if (lua_type(L, idx) != LUA_TTABLE)
        return false;
    return !lua_getmetatable(L, idx) || dc_shape_pop_is(L);
}
