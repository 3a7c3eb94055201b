#include "dsl/base/size.h"

#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/trace.h"
#include "dsl/base/udata.h"

const dc_utype dc_size_type = {.name = "deepc.size"};

typedef struct dc_size {
    dc_uhead head;
    int64_t dim;
} dc_size;

void dc_size_push(lua_State *L, int64_t dim)
{
    if (!dc_extent_is(dim)) {
        lua_pushinteger(L, (lua_Integer)dim);
        return;
    }
    dc_size *s = dc_udata_new(L, &dc_size_type, sizeof *s, 0);
    s->dim = dim;
}

bool dc_size_test(lua_State *L, int idx, int64_t *dim)
{
    const dc_size *s = dc_udata_test(L, idx, &dc_size_type);
    if (s != NULL)
        *dim = s->dim;
    return s != NULL;
}

static DC_NORETURN void refuse_outside(lua_State *L, dc_dsl *d, const char *op)
{
    dc_error_raisef(L, d, DC_ERR_DIM, op,
                    "the size of a bounded dim is known only while its function is traced");
}

void dc_size_check(lua_State *L, dc_dsl *d, const char *op, const dc_type *t)
{
    for (int k = 0; k < t->rank; k++)
        if (dc_extent_is(t->dim[k]) && dc_trace_here(L, d) == NULL)
            refuse_outside(L, d, op);
}

int64_t dc_size_read(lua_State *L, dc_dsl *d, int idx, const char *op, const char *what)
{
    int64_t dim;
    if (dc_size_test(L, idx, &dim)) {
        if (dc_trace_here(L, d) == NULL)
            refuse_outside(L, d, op);
        return dim;
    }
    return dc_args_count(L, d, idx, op, what);
}

int64_t dc_size_check_dim(lua_State *L, int idx)
{
    int64_t dim;
    return dc_size_test(L, idx, &dim) ? dim : dc_extent_number(luaL_checkinteger(L, idx));
}

int64_t dc_size_fixed(lua_State *L, dc_dsl *d, const char *op, const dc_type *t, int axis)
{
    if (dc_extent_is(t->dim[axis]))
        dc_error_fact(L, d, DC_ERR_EXTENT, &(dc_fact){.op = op, .axis = {axis}, .type = {*t}},
                      NULL);
    return t->dim[axis];
}
