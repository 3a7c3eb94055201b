/*
 * Protected bodies that fail: what they made is taken back, once more after a collection, then a Lua error.
 */
#include "dsl/base/run.h"

#include "dsl/base/error.h"

void dc_run(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg)
{
    dc_error_check(L, d, dc_run_once(d, body, arg));
}

/* What is released meanwhile does not touch the record of the failure. */
static void take_back(dc_job *j, const dc_run_made *made, void *arg)
{
    dc_err failure;
    if (made == NULL)
        return;
    dc_err_copy(&failure, &j->err);
    for (int i = 0; i < made->nout; i++)
        dc_handle_empty(made->out[i]);
    if (made->undo != NULL)
        made->undo(arg);
    dc_err_copy(&j->err, &failure);
}

dc_status dc_run_recover(lua_State *L, dc_dsl *d, dc_run_body *body, void *arg,
                         const dc_run_made *made, dc_status status)
{
    take_back(&d->rt->job, made, arg);
    if (status != DC_E_NOMEM)
        return status;
    dc_collector_run(L, d); /* what the script no longer needs may be enough */
    status = dc_run_once(d, body, arg);
    if (status != DC_OK)
        take_back(&d->rt->job, made, arg);
    return status;
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
