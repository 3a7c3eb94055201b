#include "dsl/base/reading.h"

#include "dsl/base/place.h"

#include <string.h>

dc_reading dc_reading_new(lua_State *L, dc_dsl *d, const char *path)
{
    const size_t n = strlen(path), most = 300;
    dc_collector_step(L, d);
    dc_reading r = {.d = d, .h = dc_handle_new(L, d)};
    r.h->origin = dc_place_intern(d, "read from %s", n > most ? path + n - most : path);
    return r;
}

static dc_status make_room(dc_job *j, void *ctx, const dc_type *type, void **at)
{
    dc_reading *r = ctx;
    DC_TRY(dc_tensor_new(r->d->rt, j, type, &r->t));
    dc_handle_fill(r->h, r->t);
    *at = dc_tensor_mem(r->t);
    r->staged = NULL;
    if (r->d->rt->device->ops->host)
        return DC_OK;
    r->staged = dc_try_realloc(NULL, dc_type_bytes(type) + 1);
    if (r->staged == NULL)
        return dc_fail_memory(j, dc_type_bytes(type));
    dc_job_defer(j, dc_xfree, r->staged);
    *at = r->staged;
    return DC_OK;
}

dc_room dc_reading_room(dc_reading *r)
{
    return (dc_room){make_room, r};
}

dc_status dc_reading_end(dc_reading *r, dc_job *j)
{
    dc_device *dev = r->d->rt->device;
    if (r->staged == NULL)
        return DC_OK;
    return dev->ops->upload(dev, j, dc_tensor_mem(r->t), r->staged, dc_type_bytes(&r->t->type));
}
