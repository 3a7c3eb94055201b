/*
 * Elements as the bytes of a Lua string: row-major, little-endian, without padding.
 *
 *   dc.frombytes(bytes, "f32[2, 3]")   dc.frombytes(bytes, "u8"): as many as there are
 *   x:bytes()
 *
 * A bool is a byte of 0 or 1.
 */
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/error.h"
#include "dsl/ops/ops.h"

#include <inttypes.h>
#include <string.h>

/* The type that n bytes have: as written, or a dtype alone, which makes one axis. Raises where they do not fit. */
static dc_type type_of(lua_State *L, dc_dsl *d, int idx, size_t n)
{
    char text[DC_TYPE_TEXT];
    dc_type t;
    dc_dtype dtype;
    const char *given = lua_type(L, idx) == LUA_TSTRING ? lua_tostring(L, idx) : "";
    if (dc_dtype_find(given, strlen(given), &dtype)) {
        const int64_t count = (int64_t)(n / dc_dtype_size(dtype));
        t = dc_type_make(dtype, 1, &count);
        if (n % dc_dtype_size(dtype) != 0)
            dc_error_raisef(L, d, DC_ERR_ARG, "frombytes",
                            "%zu bytes are no whole number of %s, which has %zu", n, given,
                            dc_dtype_size(dtype));
        return t;
    }
    dc_args_type(L, d, idx, "frombytes", &t);
    if (dc_type_bytes(&t) == n)
        return t;
    dc_type_print(&t, text, sizeof text);
    dc_error_raisef(L, d, DC_ERR_ARG, "frombytes", "%s has %zu bytes, %zu are given", text,
                    dc_type_bytes(&t), n);
}

static void check_bools(lua_State *L, dc_dsl *d, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] > 1)
            dc_error_raisef(L, d, DC_ERR_LITERAL, "frombytes",
                            "byte %zu is %d, a bool is a byte of 0 or 1", i + 1,
                            (unsigned char)bytes[i]);
}

static int l_frombytes(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    size_t n;
    lua_settop(L, 2);
    if (lua_type(L, 1) != LUA_TSTRING)
        dc_error_raisef(L, d, DC_ERR_ARG, "frombytes", "a string of bytes is needed, not %s",
                        dc_handle_describe(L, 1));
    const char *bytes = lua_tolstring(L, 1, &n);
    const dc_type t = type_of(L, d, 2, n);
    if (t.dtype == DC_BOOL)
        check_bools(L, d, bytes, n);
    const dc_place place = dc_place_find(L, d);
    dc_handle *h = dc_handle_new(L, d);
    h->origin = dc_place_made(d, place.where);
    dc_handle_upload(L, d, h, &t, bytes);
    return 1;
}

static int l_bytes(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_handle *h = dc_handle_check(L, d, 1, "bytes");
    const dc_type t = *dc_handle_type(h);
    const void *from = dc_handle_read(L, d, h, "bytes");
    lua_pushlstring(L, from, dc_type_bytes(&t));
    return 1;
}

static const dc_binding bindings[] = {
    {"frombytes", l_frombytes, 2, DC_IN_MODULE},
    {"bytes", l_bytes, 1, DC_IN_METHODS},
};

const dc_bindings dc_bytes_bindings = DC_BINDINGS(bindings);
