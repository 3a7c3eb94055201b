/* dc_push_array and dc_to_array: memory of the device between a host and its lua_State. */
#include "core/runtime/rt.h"
#include "dsl/dsl.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>

/* Its context; NULL: it has none, or there is no room on the stack. */
static dc_rt *context_of(lua_State *L)
{
    return L != NULL && lua_checkstack(L, 8) ? dc_dsl_rt(L) : NULL;
}

static bool type_of(const dc_array *a, dc_type *t)
{
    if (a->rank < 0 || a->rank > DC_MAX_RANK || (unsigned)a->dtype >= DC_DTYPE__COUNT)
        return false;
    if (!dc_dims_known(a->rank, a->dim) || !dc_dims_fit(a->rank, a->dim, dc_dtype_size(a->dtype)))
        return false;
    *t = dc_type_make(a->dtype, a->rank, a->dim);
    return true;
}

DC_API dc_status dc_push_array(lua_State *L, const dc_array *a, void (*release)(void *ctx),
                               void *ctx)
{
    dc_rt *rt = context_of(L);
    dc_type type;
    if (rt == NULL || dc_job_elsewhere(&rt->job))
        return DC_E_STATE;
    dc_err_clear(&rt->job.err);
    if (dc_rt_forked(rt))
        return dc_job_refuse_child(&rt->job);
    if (a == NULL || !type_of(a, &type))
        return dc_failf(&rt->job, DC_ERR_ARG, NULL, "%s",
                        a == NULL ? "an array is needed, not NULL" : "no type of a tensor");
    const size_t bytes = dc_type_bytes(&type);
    if (a->data == NULL || a->bytes < bytes)
        return dc_failf(&rt->job, DC_ERR_ARG, NULL, "%zu bytes are needed, there are %zu", bytes,
                        a->data != NULL ? a->bytes : 0);
    return dc_dsl_push_memory(L, &type, a->data, release, ctx);
}

DC_API dc_status dc_to_array(lua_State *L, int idx, dc_array *out)
{
    dc_rt *rt = context_of(L);
    dc_type type;
    void *mem;
    if (rt == NULL || dc_job_elsewhere(&rt->job))
        return DC_E_STATE;
    if (out == NULL) {
        dc_err_clear(&rt->job.err);
        return dc_failf(&rt->job, DC_ERR_ARG, NULL, "a place for the array is needed, not NULL");
    }
    DC_TRY(dc_dsl_memory(L, idx, &type, &mem));
    *out = (dc_array){.dtype = (dc_dtype)type.dtype,
                      .rank = type.rank,
                      .data = mem,
                      .bytes = dc_type_bytes(&type)};
    for (int i = 0; i < type.rank; i++)
        out->dim[i] = type.dim[i];
    return DC_OK;
}
