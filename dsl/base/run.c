/*
 * Recovery points for bindings: what unwinds in C ends here and becomes a Lua error.
 */
#include "dsl/base/run.h"

#include "dsl/base/error.h"

void dc_run(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg)
{
    dc_error_check(L, d, dc_protect(&d->rt->job, body, arg));
}

dc_status dc_run_again(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg)
{
    const dc_status status = dc_protect(&d->rt->job, body, arg);
    if (status != DC_E_NOMEM)
        return status;
    dc_collector_run(L, d); /* what the script no longer needs may be enough */
    return dc_protect(&d->rt->job, body, arg);
}

typedef struct growth {
    void *at;
    uint32_t *cap;
    size_t size;
} growth;

static dc_status grow_body(dc_job *j, void *arg)
{
    growth *a = arg;
    DC_UNUSED(j);
    a->at = dc_vec_grow(a->at, a->cap, a->size);
    return DC_OK;
}

void *dc_run_grow(lua_State *L, dc_dsl *d, void *at, uint32_t *cap, size_t size)
{
    growth a = {at, cap, size};
    dc_run(L, d, grow_body, &a);
    return a.at;
}
