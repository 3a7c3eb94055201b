#include "jit/exec/temp_arena.h"

/* Addresses cost nothing: more than any machine's memory where there is so much of them. */
static const size_t ROOM_MOST = SIZE_MAX >> 24; /* 1 TiB of 64 bits */
enum { COMMIT_STEP = 1 << 16 };

void dc_temp_arena_retain(dc_rt *rt)
{
    rt->arena_users++;
}

void dc_temp_arena_release(dc_rt *rt)
{
    if (--rt->arena_users > 0)
        return;
    if (rt->arena != NULL)
        dc_storage_disown(rt->arena);
    if (rt->arena_at != NULL)
        rt->device->ops->release(rt->device, rt->arena_at);
    rt->first->stats.bytes_live -= rt->arena_bytes;
    rt->first->held -= rt->arena_bytes;
    dc_storage_tell(rt);
    rt->arena = NULL;
    rt->arena_at = NULL;
    rt->arena_room = rt->arena_bytes = 0;
}

static dc_status new_owned(dc_rt *rt, dc_job *j, size_t bytes, dc_storage **out)
{
    DC_TRY(dc_storage_new(rt, j, bytes, out));
    (*out)->owned = true;
    return DC_OK;
}

/* Leaves arena_at NULL where there are no addresses to be had, which is no failure. */
static void reserve_room(dc_rt *rt, dc_job *j, size_t bytes)
{
    dc_device *d = rt->device;
    const dc_err before = j->err;
    if (d->ops->reserve == NULL || d->ops->commit == NULL || rt->arena != NULL)
        return;
    dc_status status = DC_E_NOMEM;
    for (size_t room = ROOM_MOST; room >= bytes && room >= COMMIT_STEP && status != DC_OK;
         room /= 4) {
        status = d->ops->reserve(d, j, room, &rt->arena_at);
        rt->arena_room = room;
    }
    if (status != DC_OK) {
        rt->arena_at = NULL;
        rt->arena_room = 0;
    }
    j->err = before;
}

/* When there is no memory, what is unused is given back first. */
static dc_status commit(dc_rt *rt, dc_job *j, size_t bytes)
{
    dc_device *d = rt->device;
    const dc_err before = j->err;
    bytes = dc_align_up(bytes, COMMIT_STEP);
    bytes = bytes < rt->arena_room ? bytes : rt->arena_room;
    DC_TRY(dc_storage_admit(rt, j, bytes - rt->arena_bytes));
    dc_status status = d->ops->commit(d, j, rt->arena_at, bytes);
    if (status == DC_E_NOMEM) {
        j->err = before;
        dc_storage_give_back(rt);
        status = d->ops->commit(d, j, rt->arena_at, bytes);
    }
    if (status != DC_OK)
        return status;
    rt->first->stats.allocs++;
    rt->first->held += bytes - rt->arena_bytes;
    dc_storage_tell(rt);
    dc_storage_count(rt, bytes - rt->arena_bytes);
    rt->arena_bytes = bytes;
    return DC_OK;
}

static size_t arena_size(const dc_rt *rt)
{
    return rt->arena_at != NULL ? rt->arena_bytes : rt->arena != NULL ? rt->arena->bytes : 0;
}

dc_status dc_temp_arena_grow(dc_rt *rt, dc_job *j, size_t bytes)
{
    dc_storage *larger;
    if (bytes <= arena_size(rt))
        return DC_OK;
    if (rt->arena_at == NULL)
        reserve_room(rt, j, bytes);
    if (rt->arena_at != NULL) /* nothing moves, so it may be in use */
        return bytes <= rt->arena_room ? commit(rt, j, bytes) : DC_OK;
    if (rt->arena_busy)
        return DC_OK;
    DC_TRY(new_owned(rt, j, bytes, &larger));
    if (rt->arena != NULL)
        dc_storage_disown(rt->arena);
    rt->arena = larger;
    return DC_OK;
}

dc_status dc_temp_arena_take(dc_rt *rt, dc_job *j, size_t bytes, void **mem, dc_storage **own)
{
    *own = NULL;
    if (!rt->arena_busy)
        DC_TRY(dc_temp_arena_grow(rt, j, bytes));
    if (rt->arena_busy || arena_size(rt) < bytes) {
        DC_TRY(new_owned(rt, j, bytes, own));
        *mem = (*own)->mem;
        return DC_OK;
    }
    rt->arena_busy = true;
    *mem = rt->arena_at != NULL ? rt->arena_at : rt->arena->mem;
    return DC_OK;
}

void dc_temp_arena_give(dc_rt *rt, dc_storage *own)
{
    if (own != NULL)
        dc_storage_disown(own);
    else
        rt->arena_busy = false;
}
