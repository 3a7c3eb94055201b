/*
 * For stdlib/linalg.lua: an operation that the host computes, by its name in the table of operations, and a test of
 * what came of it.
 */
#include "core/host/host.h"

#include "core/base/bits.h"
#include "dsl/base/args.h"
#include "dsl/base/binding.h"
#include "dsl/base/place.h"
#include "dsl/base/trace.h"
#include "dsl/ops/apply.h"
#include "dsl/ops/ops.h"

#include <string.h>

typedef struct applied {
    dc_op op;
    int nattr;
    int64_t attr[DC_HOST_ATTRS];
} applied;

static dc_status build_host(dc_job *j, dc_func *f, const void *arg, const dc_val *in, dc_val *out)
{
    const applied *x = arg;
    return dc_build_host(j, f, x->op, in, x->attr, x->nattr, out);
}

/* What is missing is told where it is called, or traced; nothing runs in `deepc check`. */
static void need_library(lua_State *L, dc_dsl *d, const char *op, dc_op of)
{
    const dc_host_call c = {.op = of};
    dc_lapack lib;
    if (!d->rt->check && dc_host_open(&d->rt->job, &c, &lib) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
}

/* host_operation(op, name of the caller, x, [y, [z,]] attributes ...) */
static int l_host(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const int at[DC_HOST_OPERANDS] = {3, 4, 5};
    size_t n;
    const char *name = luaL_checklstring(L, 1, &n),
               *caller = dc_place_name(L, d, "%s", luaL_checkstring(L, 2));
    applied x;
    if (!dc_op_find(name, n, &x.op) || !dc_op_is(x.op, DC_CLASS_HST))
        return luaL_error(L, "no operation of the host: %s", name);
    const int nin = dc_op_row_of(x.op)->n;
    dc_apply a = {.build = build_host, .arg = &x, .step = true};
    need_library(L, d, caller, x.op);
    for (x.nattr = 0; x.nattr < DC_HOST_ATTRS && !lua_isnoneornil(L, 3 + nin + x.nattr);
         x.nattr++) {
        const int idx = 3 + nin + x.nattr;
        if (lua_type(L, idx) == LUA_TNUMBER) /* as the bits of an f64 */
            x.attr[x.nattr] = (int64_t)dc_bits_of(DC_F64, luaL_checknumber(L, idx));
        else
            x.attr[x.nattr] = lua_toboolean(L, idx);
    }
    dc_apply_operands(L, d, &a, caller, at, nin);
    dc_apply_run(L, d, &a);
    return 1;
}

/*
 * check_matrices(integers, caller, "singular" | "not definite" | "no factors", matrix, factors): of each matrix 0, or it
 * is an error, which shows the matrix. The factors are what the integers come of: computed once, for both.
 */
static int l_check(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    static const char *const kinds[] = {"singular", "not definite", "no factors", NULL};
    static const dc_err_id id[] = {DC_ERR_SINGULAR, DC_ERR_NOT_DEFINITE, DC_ERR_NO_FACTORS};
    const int kind = luaL_checkoption(L, 3, NULL, kinds);
    const char *caller = dc_place_name(L, d, "%s", luaL_checkstring(L, 2));
    dc_handle *factors = dc_handle_check(L, d, 5, caller);
    if (d->rt->check) /* calls have given zeros, of which there are no inverses */
        return 0;
    if (dc_trace_here(L, d) == NULL)
        dc_handle_realize(L, d, factors);
    dc_data_check_matrices(L, d, 1, 4, id[kind], caller);
    return 0;
}

static const dc_binding rows[] = {
    {"host_operation", l_host, DC_ANY, DC_IN_LIBRARY},
    {"check_matrices", l_check, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_host_bindings = {rows, DC_COUNTOF(rows), sizeof rows[0]};
