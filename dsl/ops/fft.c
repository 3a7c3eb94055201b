/*
 * Discrete Fourier transforms as stdlib/fft.lua calls them:
 *
 *   dft(z, axis, sign)   along axis `axis`, from 1, of a complex tensor; its size has radices
 *   dft_has_radices(n)   has it? Else stdlib/fft.lua takes another way
 *   turns(v, n, dtype)   exp(2 pi i v / n) of an i32 or i64 tensor of 0 to n - 1, as complex dtype
 */
#include "core/base/extent.h"
#include "core/build/complex.h"
#include "core/ir/dft.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <string.h>

typedef struct transform {
    int axis, sign;
} transform;

static dc_status build(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const transform *t = arg;
    *out = in[0];
    if (dc_extent_is(in[0].type.dim[t->axis]))
        return dc_fail(j, DC_ERR_EXTENT,
                       &(dc_fact){.axis = {t->axis}, .type = {in[0].type}, .operand = 1});
    if (in[0].type.dim[t->axis] > 1)
        out->ref = dc_graph_dft(f, in[0].ref, t->axis, t->sign);
    return DC_OK;
}

static int l_dft(lua_State *L)
{
    static const int first[1] = {1};
    const transform t = {(int)luaL_checkinteger(L, 2) - 1, (int)luaL_checkinteger(L, 3)};
    const char *op = luaL_checkstring(L, 4);
    dc_apply_to(L, dc_dsl_of(L), op, first, 1, build, &t);
    return 1;
}

static int l_has_radices(lua_State *L)
{
    int radix[DC_DFT_STAGES];
    const lua_Integer n = luaL_checkinteger(L, 1);
    lua_pushboolean(L, n > 0 && dc_dft_radices(n, radix) > 0);
    return 1;
}

typedef struct turning {
    int64_t n;
    dc_dtype part;
} turning;

static dc_status build_turns(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const turning *t = arg;
    dc_ref part[2];
    dc_val re = in[0], im = in[0];
    dc_graph_turns(f, t->part, in[0].ref, t->n, part);
    re.ref = part[0];
    im.ref = part[1];
    re.type.dtype = im.type.dtype = (uint8_t)t->part;
    return dc_complex_join(j, f, re, im, out);
}

static int l_turns(lua_State *L)
{
    static const int first[1] = {1};
    const bool wide = strcmp(luaL_checkstring(L, 3), "c128") == 0;
    const turning t = {(int64_t)luaL_checkinteger(L, 2), wide ? DC_F64 : DC_F32};
    dc_apply_to(L, dc_dsl_of(L), "fft", first, 1, build_turns, &t);
    return 1;
}

static const dc_binding bindings[] = {
    {"dft", l_dft, DC_ANY, DC_IN_LIBRARY},
    {"turns", l_turns, DC_ANY, DC_IN_LIBRARY},
    {"dft_has_radices", l_has_radices, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_fft_bindings = DC_BINDINGS(bindings);
