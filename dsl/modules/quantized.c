/*
 * Quantised matrices for stdlib/nn/quantized.lua:
 *
 *   blocks_about(type)             how a packed type is multiplied: bits, block, zero, words, mins, the dtype of its scales,
 *                                  elements and bytes of a packed block, whether it can be made; nil: it is not multiplied
 *   blocks_lay(op, rows, type)     words, scales and mins (or nil) of u8[n, bytes of a row] (formats/blocks.h)
 *   blocks_pack(op, x, type)       u8[n, bytes of a row] of f32[n, k]
 *   f8_pack(op, x, type)           floats of 8 bits, u8[n, k] of f32[n, k], and the scale of each row, f32[n, 1], which
 *                                  makes its largest element the largest number of the type
 */
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/handle.h"
#include "dsl/base/place.h"
#include "dsl/modules/modules.h"
#include "formats/blocks.h"
#include "formats/packing.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void set_number(lua_State *L, const char *name, lua_Integer v)
{
    lua_pushinteger(L, v);
    lua_setfield(L, -2, name);
}

static int l_about(lua_State *L)
{
    const char *type = luaL_checkstring(L, 1);
    const dc_blocks *b = dc_blocks_find(type);
    const dc_packing *p = dc_packing_find(type);
    if (b == NULL)
        return 0;
    lua_createtable(L, 0, 8);
    set_number(L, "bits", b->bits);
    set_number(L, "block", b->block);
    set_number(L, "zero", b->zero);
    set_number(L, "words", dc_blocks_words(b));
    set_number(L, "elements", p->elements);
    set_number(L, "bytes", p->bytes);
    lua_pushboolean(L, b->mins);
    lua_setfield(L, -2, "mins");
    lua_pushboolean(L, p->pack != NULL);
    lua_setfield(L, -2, "made");
    lua_pushstring(L, dc_dtype_name(b->scale));
    lua_setfield(L, -2, "scale");
    return 1;
}

/* A matrix of rows of one dtype; what stdlib gives is one. */
static dc_handle *check_matrix(lua_State *L, dc_dsl *d, const char *op, dc_dtype dtype)
{
    dc_handle *h = dc_handle_check(L, d, 2, op);
    const dc_type *t = dc_handle_type(h);
    if (t->rank != 2 || t->dtype != dtype)
        dc_error_raisef(L, d, DC_ERR_ARG, op, "a matrix of %s is needed, not %s",
                        dc_dtype_name(dtype), dc_handle_describe(L, 2));
    return h;
}

static void push_result(lua_State *L, dc_dsl *d, const dc_type *t, const void *from)
{
    dc_handle *h = dc_handle_new(L, d);
    h->origin = dc_place_made(d, dc_place_find(L, d).where);
    dc_handle_upload(L, d, h, t, from);
}

static int l_lay(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1), *type = luaL_checkstring(L, 3);
    const dc_blocks *b = dc_blocks_find(type);
    const dc_packing *p = dc_packing_find(type);
    dc_handle *h = check_matrix(L, d, op, DC_U8);
    const int64_t n = dc_handle_type(h)->dim[0], bytes = dc_handle_type(h)->dim[1];
    luaL_argcheck(L, b != NULL && bytes % p->bytes == 0, 3, "a type whose blocks make a row");
    const int64_t columns = bytes / p->bytes * p->elements;
    const int64_t strips = (n + DC_BLOCKS_LANES - 1) / DC_BLOCKS_LANES, parts = columns / b->block;
    const dc_type words = {
        .dtype = DC_U32, .rank = 4, .dim = {strips, parts, dc_blocks_words(b), DC_BLOCKS_LANES}};
    const dc_type scales = {
        .dtype = (uint8_t)b->scale, .rank = 3, .dim = {strips, parts, DC_BLOCKS_LANES}};
    lua_settop(L, 3);
    const unsigned char *from = dc_handle_read(L, d, h, op);
    void *to = dc_handle_room(L, d, &words), *to_scales = dc_handle_room(L, d, &scales);
    void *to_mins = b->mins ? dc_handle_room(L, d, &scales) : NULL;
    dc_blocks_lay(b, from, (size_t)n, (size_t)columns, to, to_scales, to_mins);
    push_result(L, d, &words, to);
    push_result(L, d, &scales, to_scales);
    if (!b->mins)
        return 2;
    push_result(L, d, &scales, to_mins);
    return 3;
}

static int l_pack(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1), *type = luaL_checkstring(L, 3);
    const dc_packing *p = dc_packing_find(type);
    dc_handle *h = check_matrix(L, d, op, DC_F32);
    const int64_t n = dc_handle_type(h)->dim[0], columns = dc_handle_type(h)->dim[1];
    luaL_argcheck(L, p != NULL && p->pack != NULL && columns % p->elements == 0, 3,
                  "a type that is made, whose blocks make a row");
    const dc_type t = {
        .dtype = DC_U8, .rank = 2, .dim = {n, (int64_t)dc_packing_bytes(p, (size_t)columns)}};
    lua_settop(L, 3);
    const float *from = dc_handle_read(L, d, h, op);
    void *to = dc_handle_room(L, d, &t);
    if (!p->pack(from, to, (size_t)n * (size_t)columns / p->elements))
        dc_error_raisef(L, d, DC_ERR_ARG, op,
                        "a weight is not finite, or its block needs a scale beyond f16");
    push_result(L, d, &t, to);
    return 1;
}

/* Zeros get the scale 1, and rows so small that theirs would lose digits the least normal number. */
static bool pack_row(const float *x, size_t n, bool e4m3, unsigned char *to, float *scale)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return false;
        largest = fmaxf(largest, fabsf(x[i]));
    }
    *scale = largest == 0 ? 1 : fmaxf(largest / (e4m3 ? 448 : 57344), FLT_MIN);
    for (size_t i = 0; i < n; i++)
        to[i] = e4m3 ? dc_f8_e4m3_of_float(x[i] / *scale) : dc_f8_e5m2_of_float(x[i] / *scale);
    return true;
}

static int l_f8_pack(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const char *op = luaL_checkstring(L, 1), *type = luaL_checkstring(L, 3);
    const bool e4m3 = strcmp(type, "f8_e4m3") == 0;
    luaL_argcheck(L, e4m3 || strcmp(type, "f8_e5m2") == 0, 3, "a float of 8 bits");
    dc_handle *h = check_matrix(L, d, op, DC_F32);
    const int64_t n = dc_handle_type(h)->dim[0], columns = dc_handle_type(h)->dim[1];
    const dc_type codes = {.dtype = DC_U8, .rank = 2, .dim = {n, columns}};
    const dc_type scales = {.dtype = DC_F32, .rank = 2, .dim = {n, 1}};
    lua_settop(L, 3);
    const float *from = dc_handle_read(L, d, h, op);
    unsigned char *to = dc_handle_room(L, d, &codes);
    float *scale = dc_handle_room(L, d, &scales);
    for (int64_t i = 0; i < n; i++)
        if (!pack_row(from + i * columns, (size_t)columns, e4m3, to + i * columns, scale + i))
            dc_error_raisef(L, d, DC_ERR_ARG, op, "a weight is not finite");
    push_result(L, d, &codes, to);
    push_result(L, d, &scales, scale);
    return 2;
}

static const dc_binding bindings[] = {
    {"f8_pack", l_f8_pack, DC_ANY, DC_IN_LIBRARY},
    {"blocks_about", l_about, DC_ANY, DC_IN_LIBRARY},
    {"blocks_lay", l_lay, DC_ANY, DC_IN_LIBRARY},
    {"blocks_pack", l_pack, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_quantized_bindings = DC_BINDINGS(bindings);
