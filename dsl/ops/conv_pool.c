/*
 * Convolutions and pools of tensors [batch, channels, dims...]: conv1d, conv2d, conv3d; max_pool1d ...,
 * avg_pool1d ...
 *
 *   dc.conv2d(x, w, { stride = 2, padding = 1 })
 *   dc.max_pool2d(x, 2)
 *
 * An option is a number, for all dims of the window, or a list of one for each.
 */
#include "core/build/build_conv.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- options ---------------------------------------------------------------------------------- */

typedef struct reading {
    lua_State *L;
    dc_dsl *d;
    const char *op;
    int options; /* index of the table, or of nil */
    int n;       /* dims */
} reading;

static const int64_t most = (int64_t)1 << 40;

static int64_t read_number(const reading *r, int idx, const char *what, int64_t least)
{
    const int64_t v = dc_args_count(r->L, r->d, idx, r->op, what);
    if (v < least || v > most)
        dc_error_raisef(r->L, r->d, DC_ERR_ARG, r->op, "%s is %" PRId64 "; %s is the least", what,
                        v, least == 0 ? "0" : "1");
    return v;
}

/* The value on top: a number for all dims, or a list with one for each. */
static void read_list(const reading *r, const char *what, int64_t least, int64_t *out)
{
    lua_State *L = r->L;
    const int idx = lua_gettop(L);
    if (lua_type(L, idx) != LUA_TTABLE) {
        for (int i = 0; i < r->n; i++)
            out[i] = read_number(r, idx, what, least);
        return;
    }
    if ((int64_t)lua_rawlen(L, idx) != r->n)
        dc_error_raisef(L, r->d, DC_ERR_ARG, r->op,
                        "%s is a number or a list of %d, not a list of %d", what, r->n,
                        (int)lua_rawlen(L, idx));
    for (int i = 0; i < r->n; i++) {
        lua_rawgeti(L, idx, i + 1);
        out[i] = read_number(r, lua_gettop(L), what, least);
        lua_pop(L, 1);
    }
}

/* Pushes the option, or nil. */
static bool push_option(const reading *r, const char *name)
{
    if (lua_type(r->L, r->options) != LUA_TTABLE) {
        lua_pushnil(r->L);
        return false;
    }
    lua_pushstring(r->L, name);
    return lua_rawget(r->L, r->options) != LUA_TNIL;
}

static void read_option(const reading *r, const char *name, int64_t least, int64_t dflt,
                        int64_t *out)
{
    for (int i = 0; i < r->n; i++)
        out[i] = dflt;
    if (push_option(r, name))
        read_list(r, name, least, out);
    lua_pop(r->L, 1);
}

/* padding = 1, { 1, 2 }, or { { 0, 1 }, { 0, 1 } } with both sides of each dim. */
static void read_padding(const reading *r, int64_t *lo, int64_t *hi)
{
    lua_State *L = r->L;
    for (int i = 0; i < r->n; i++)
        lo[i] = hi[i] = 0;
    push_option(r, "padding");
    const int idx = lua_gettop(L);
    bool sides = false;
    if (lua_type(L, idx) == LUA_TTABLE) {
        sides = lua_rawgeti(L, idx, 1) == LUA_TTABLE;
        lua_pop(L, 1);
    }
    if (sides && (int64_t)lua_rawlen(L, idx) == r->n) {
        for (int i = 0; i < r->n; i++) {
            int64_t both[2];
            const reading pair = {L, r->d, r->op, r->options, 2};
            lua_rawgeti(L, idx, i + 1);
            read_list(&pair, "padding of a dim", 0, both);
            lua_pop(L, 1);
            lo[i] = both[0];
            hi[i] = both[1];
        }
    } else if (!lua_isnil(L, idx)) {
        read_list(r, "padding", 0, lo);
        memcpy(hi, lo, (size_t)r->n * sizeof *hi);
    }
    lua_pop(L, 1);
}

/* padding = "same": as many positions as x has elements, at stride 1; what is odd goes behind. */
static bool wants_same(const reading *r)
{
    push_option(r, "padding");
    const bool text = lua_type(r->L, -1) == LUA_TSTRING;
    if (text && strcmp(lua_tostring(r->L, -1), "same") != 0)
        dc_error_raisef(r->L, r->d, DC_ERR_ARG, r->op,
                        "padding is a number, a list or \"same\", not %s",
                        dc_handle_describe(r->L, lua_gettop(r->L)));
    lua_pop(r->L, 1);
    return text;
}

/* ---- convolutions ------------------------------------------------------------------------------ */

static dc_status build_conv(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    return dc_build_conv(j, f, in[0], in[1], arg, out);
}

/* Zeros round x so that the window has a place at each element. */
static void pad_same(const reading *r, const dc_handle *kernel, dc_conv *c)
{
    const dc_type *w = dc_handle_type(kernel);
    for (int i = 0; i < r->n && w->rank == 2 + r->n; i++) {
        dc_conv_dim *d = &c->dim[i];
        int64_t all;
        if (d->stride != 1)
            dc_error_raisef(r->L, r->d, DC_ERR_ARG, r->op,
                            "padding \"same\" is for stride 1, not %" PRId64, d->stride);
        if (!dc_mul_ok(dc_max_i64(w->dim[2 + i] - 1, 0), d->dilate, &all) || all > most)
            all = most;
        d->lo = all / 2;
        d->hi = all - d->lo;
    }
}

static int conv(lua_State *L, const char *op, int n)
{
    static const char *const known[] = {"stride", "padding", "dilation", "groups", NULL};
    dc_dsl *d = dc_dsl_of(L);
    const int idx[2] = {1, 2};
    lua_settop(L, 3);
    const reading r = {L, d, op, 3, n};
    dc_handle_check(L, d, 1, op);
    const dc_handle *kernel = dc_handle_check(L, d, 2, op);
    dc_conv c = dc_conv_plain(n);
    int64_t stride[DC_CONV_DIMS], dilate[DC_CONV_DIMS], lo[DC_CONV_DIMS], hi[DC_CONV_DIMS];
    dc_args_options(L, d, 3, op, known);
    read_option(&r, "stride", 1, 1, stride);
    read_option(&r, "dilation", 1, 1, dilate);
    const bool same = wants_same(&r);
    if (!same)
        read_padding(&r, lo, hi);
    for (int i = 0; i < n; i++)
        c.dim[i] = (dc_conv_dim){.stride = stride[i],
                                 .lo = same ? 0 : lo[i],
                                 .hi = same ? 0 : hi[i],
                                 .dilate_in = 1,
                                 .dilate = dilate[i]};
    if (same)
        pad_same(&r, kernel, &c);
    if (push_option(&r, "groups"))
        c.groups = read_number(&r, lua_gettop(L), "groups", 1);
    lua_pop(L, 1);
    dc_apply a = {.product = true, .build = build_conv, .arg = &c};
    dc_apply_operands(L, d, &a, op, idx, 2);
    dc_apply_run(L, d, &a);
    return 1;
}

static int l_conv1d(lua_State *L)
{
    return conv(L, "conv1d", 1);
}

static int l_conv2d(lua_State *L)
{
    return conv(L, "conv2d", 2);
}

static int l_conv3d(lua_State *L)
{
    return conv(L, "conv3d", 3);
}

static dc_status build_transpose(dc_job *j, dc_func *f, const void *arg, const dc_val *in,
                                 dc_val *out)
{
    return dc_build_conv_transpose(j, f, in[0], in[1], arg, out);
}

static int conv_transpose(lua_State *L, const char *op, int n)
{
    static const char *const known[] = {"stride",   "padding", "output_padding",
                                        "dilation", "groups",  NULL};
    dc_dsl *d = dc_dsl_of(L);
    const int idx[2] = {1, 2};
    lua_settop(L, 3);
    const reading r = {L, d, op, 3, n};
    dc_conv_back c = {.n = n, .groups = 1};
    dc_handle_check(L, d, 1, op);
    dc_handle_check(L, d, 2, op);
    dc_args_options(L, d, 3, op, known);
    read_option(&r, "stride", 1, 1, c.stride);
    read_option(&r, "dilation", 1, 1, c.dilate);
    read_option(&r, "output_padding", 0, 0, c.more);
    read_padding(&r, c.lo, c.hi);
    for (int i = 0; i < n; i++)
        if (c.more[i] >= dc_max_i64(c.stride[i], c.dilate[i]) && c.more[i] > 0)
            dc_error_raisef(L, d, DC_ERR_ARG, op,
                            "output_padding of %" PRId64 " is not below the stride of %" PRId64
                            " or the dilation of %" PRId64,
                            c.more[i], c.stride[i], c.dilate[i]);
    if (push_option(&r, "groups"))
        c.groups = read_number(&r, lua_gettop(L), "groups", 1);
    lua_pop(L, 1);
    dc_apply a = {.product = true, .build = build_transpose, .arg = &c};
    dc_apply_operands(L, d, &a, op, idx, 2);
    dc_apply_run(L, d, &a);
    return 1;
}

static int l_conv_transpose1d(lua_State *L)
{
    return conv_transpose(L, "conv_transpose1d", 1);
}

static int l_conv_transpose2d(lua_State *L)
{
    return conv_transpose(L, "conv_transpose2d", 2);
}

static int l_conv_transpose3d(lua_State *L)
{
    return conv_transpose(L, "conv_transpose3d", 3);
}

/* ---- pools ------------------------------------------------------------------------------------- */

static dc_status build_max(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_TRY(dc_ops_need_real(j, &in[0]));
    return dc_build_max_pool(j, f, in[0], arg, out);
}

static dc_status build_max_at(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_TRY(build_max(j, f, arg, in, out));
    return dc_build_max_positions(j, f, in[0], arg, &out[1]);
}

static dc_status build_mean(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    DC_TRY(dc_ops_need_real(j, &in[0]));
    return dc_build_mean_pool(j, f, in[0], arg, out);
}

static bool read_flag(const reading *r, const char *name, bool dflt)
{
    const bool given = push_option(r, name);
    if (given && lua_type(r->L, -1) != LUA_TBOOLEAN)
        dc_error_raisef(r->L, r->d, DC_ERR_ARG, r->op, "%s must be true or false, not %s", name,
                        dc_handle_describe(r->L, lua_gettop(r->L)));
    const bool value = given ? lua_toboolean(r->L, -1) : dflt;
    lua_pop(r->L, 1);
    return value;
}

static int pool(lua_State *L, const char *op, int n, bool mean)
{
    static const char *const of_max[] = {"stride",    "padding",        "dilation",
                                         "ceil_mode", "return_indices", NULL};
    static const char *const of_mean[] = {"stride",    "padding",          "count_padding",
                                          "ceil_mode", "divisor_override", NULL};
    dc_dsl *d = dc_dsl_of(L);
    const int idx[1] = {1};
    lua_settop(L, 3);
    const reading r = {L, d, op, 3, n};
    dc_pool p = {.n = n};
    dc_handle_check(L, d, 1, op);
    dc_args_options(L, d, 3, op, mean ? of_mean : of_max);
    lua_pushvalue(L, 2);
    read_list(&r, "the window", 1, p.window);
    lua_pop(L, 1);
    read_option(&r, "stride", 1, 1, p.stride);
    if (!push_option(&r, "stride"))
        memcpy(p.stride, p.window, sizeof p.stride);
    lua_pop(L, 1);
    read_option(&r, "dilation", 1, 1, p.dilate);
    read_padding(&r, p.lo, p.hi);
    p.count_padding = read_flag(&r, "count_padding", true);
    p.ceil = read_flag(&r, "ceil_mode", false);
    const bool positions = read_flag(&r, "return_indices", false);
    if (push_option(&r, "divisor_override"))
        p.divisor = read_number(&r, lua_gettop(L), "divisor_override", 1);
    lua_pop(L, 1);
    dc_build_fn *build = mean ? build_mean : positions ? build_max_at : build_max;
    dc_apply a = {.once = true, .build = build, .arg = &p};
    dc_apply_operands(L, d, &a, op, idx, 1);
    a.nout = positions ? 2 : 1;
    dc_apply_run(L, d, &a);
    return a.nout;
}

static int l_max_pool1d(lua_State *L)
{
    return pool(L, "max_pool1d", 1, false);
}

static int l_max_pool2d(lua_State *L)
{
    return pool(L, "max_pool2d", 2, false);
}

static int l_max_pool3d(lua_State *L)
{
    return pool(L, "max_pool3d", 3, false);
}

static int l_avg_pool1d(lua_State *L)
{
    return pool(L, "avg_pool1d", 1, true);
}

static int l_avg_pool2d(lua_State *L)
{
    return pool(L, "avg_pool2d", 2, true);
}

static int l_avg_pool3d(lua_State *L)
{
    return pool(L, "avg_pool3d", 3, true);
}

static const dc_binding bindings[] = {
    {"conv1d", l_conv1d, 3, DC_IN_MODULE},
    {"conv2d", l_conv2d, 3, DC_IN_MODULE},
    {"conv3d", l_conv3d, 3, DC_IN_MODULE},
    {"conv_transpose1d", l_conv_transpose1d, 3, DC_IN_MODULE},
    {"conv_transpose2d", l_conv_transpose2d, 3, DC_IN_MODULE},
    {"conv_transpose3d", l_conv_transpose3d, 3, DC_IN_MODULE},
    {"max_pool1d", l_max_pool1d, 3, DC_IN_MODULE},
    {"max_pool2d", l_max_pool2d, 3, DC_IN_MODULE},
    {"max_pool3d", l_max_pool3d, 3, DC_IN_MODULE},
    {"avg_pool1d", l_avg_pool1d, 3, DC_IN_MODULE},
    {"avg_pool2d", l_avg_pool2d, 3, DC_IN_MODULE},
    {"avg_pool3d", l_avg_pool3d, 3, DC_IN_MODULE},
};

const dc_bindings dc_conv_pool_bindings = DC_BINDINGS(bindings);
