/* Memory of the device that is a host's as a tensor of Lua, and the memory of a tensor for a host. */
#include "dsl/base/handle.h"
#include "dsl/base/place.h"
#include "dsl/base/run.h"
#include "dsl/dsl.h"

/* Does a host know addresses as the device does? */
static dc_status check_device(const dc_rt *rt, dc_job *j)
{
    const dc_device_ops *ops = rt->device->ops;
    DC_TRY(dc_rt_check(rt->first, j, NULL));
    if (ops->host || ops->shares)
        return DC_OK;
    return dc_failf(j, DC_ERR_ARG, NULL, "addresses of '%s' are its own", rt->opt.device);
}

/* ---- of the host ----------------------------------------------------------------------------- */

typedef struct pushing {
    dc_dsl *d;
    const dc_type *type;
    void *mem;
    void (*release)(void *ctx);
    void *ctx;
    dc_tensor *made;
    dc_status status;
} pushing;

static dc_status make_body(dc_job *j, void *arg)
{
    pushing *a = arg;
    DC_TRY(check_device(a->d->rt, j));
    if ((uintptr_t)a->mem % DC_ALIGN != 0)
        return dc_failf(j, DC_ERR_ARG, NULL, "memory begins at %p, a multiple of %d is needed",
                        a->mem, DC_ALIGN);
    return dc_tensor_foreign(a->d->rt, j, a->type, a->mem, a->release, a->ctx, &a->made);
}

static int push_body(lua_State *L)
{
    pushing *a = lua_touserdata(L, 1);
    dc_handle *h = dc_handle_new(L, a->d);
    h->origin = dc_place_intern(a->d, "memory of the host");
    a->status = dc_run_again(L, a->d, make_body, a, NULL);
    if (a->status == DC_OK)
        dc_handle_fill(h, a->made);
    return 1;
}

dc_status dc_dsl_push_memory(lua_State *L, const dc_type *type, void *mem,
                             void (*release)(void *ctx), void *ctx)
{
    dc_dsl *d = dc_dsl_in(L);
    pushing a = {.d = d, .type = type, .mem = mem, .release = release, .ctx = ctx};
    lua_pushcfunction(L, push_body);
    lua_pushlightuserdata(L, &a);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        a.status = dc_fail(&d->rt->job, DC_ERR_NOMEM, NULL);
    if (a.status != DC_OK)
        lua_pop(L, 1);
    return a.status;
}

/* ---- of a tensor ----------------------------------------------------------------------------- */

typedef struct reading {
    dc_dsl *d;
    dc_handle *h;
    dc_tensor *t;
} reading;

/* Memory of a cell is written where it is: who shows it gets a copy first, as when it is set. */
static dc_status read_body(dc_job *j, void *arg)
{
    reading *a = arg;
    const dc_rt *its = a->h != NULL ? dc_handle_rt(a->h) : NULL;
    DC_TRY(check_device(its != NULL ? its : a->d->rt, j));
    if (a->h == NULL || (a->h->kind != DC_HANDLE_VALUE && a->h->kind != DC_HANDLE_LAZY))
        return dc_failf(j, DC_ERR_ARG, NULL, "a tensor is needed%s",
                        a->h != NULL && a->h->kind == DC_HANDLE_CELL
                            ? "; of a parameter or state, what is made of its value"
                            : "");
    DC_TRY(dc_handle_tensor(j, a->h, &a->t));
    return a->t->store->owned ? dc_storage_evict(a->t->store, j) : DC_OK;
}

dc_status dc_dsl_memory(lua_State *L, int idx, dc_type *type, void **mem)
{
    dc_dsl *d = dc_dsl_in(L);
    reading a = {.d = d, .h = dc_handle_test(L, idx)};
    DC_TRY(dc_run_once(d, read_body, &a));
    *type = a.t->type;
    *mem = dc_tensor_mem(a.t);
    return DC_OK;
}
