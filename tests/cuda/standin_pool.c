/*
 * Memory in the order of a stream, and pools of it. What is freed stays with its pool, for later allocations of that pool
 * alone, until it is trimmed, or until something is waited for and it is more than the pool may keep.
 */
#include "standin.h"

typedef struct pool {
    handle h;
    uint64_t most; /* bytes that it keeps when something is waited for */
    size_t kept;
    struct pool *next;
} pool;

static pool *pools; /* newest first; those that have ended, too */

static pool *pool_of(CUmemoryPool x)
{
    return (pool *)(void *)x;
}

static void shrink(pool *p, size_t most)
{
    if (p->kept <= most)
        return;
    device[p->h.device].kept -= p->kept - most;
    p->kept = most;
}

void pool_keep(pool *p, size_t bytes)
{
    if (p == NULL || !p->h.alive)
        return;
    p->kept += bytes;
    device[p->h.device].kept += bytes;
}

void pools_settle(int on)
{
    for (pool *p = pools; p != NULL; p = p->next)
        if (p->h.alive && p->h.device == on)
            shrink(p, p->most);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    ENTER_CONTEXT;
    if (props->allocType != 1 || props->handleTypes != 0 || props->location.type != 1 ||
        props->location.id < 0 || props->location.id >= set.devices)
        return misuse(__func__, "a pool of type %d on location %d %d", props->allocType,
                      props->location.type, props->location.id);
    pool *p = new_handle(POOL, sizeof *p, props->location.id, CALLER);
    p->next = pools;
    pools = p;
    *out = (CUmemoryPool)p;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool x)
{
    ENTER_CONTEXT;
    WANT(x, POOL);
    shrink(pool_of(x), 0);
    pool_of(x)->h.alive = false;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool x, int which, void *value)
{
    ENTER_CONTEXT;
    WANT(x, POOL);
    if (which < 1 || which > 4 || value == NULL)
        return misuse(__func__, "attribute %d", which);
    if (which == 4)
        pool_of(x)->most = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool x, size_t keep)
{
    ENTER_CONTEXT;
    WANT(x, POOL);
    shrink(pool_of(x), keep);
    return CUDA_SUCCESS;
}

/* Of what the pool keeps, and of the device what is missing. */
static CUresult take(pool *p, size_t bytes, const void *where, void **out)
{
    const size_t kept = bytes < p->kept ? bytes : p->kept;
    shrink(p, p->kept - kept);
    const CUresult e = memory_new(bytes, OF_DEVICE, p->h.device, where, out);
    if (e != CUDA_SUCCESS)
        pool_keep(p, kept);
    else
        memory_find(*out)->pool = p;
    return e;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t bytes, CUmemoryPool x, CUstream s)
{
    void *at = NULL;
    ENTER_CONTEXT;
    WANT(x, POOL);
    WANT(stream_of(s, ctx->device), STREAM);
    TRY(take(pool_of(x), bytes, CALLER, &at));
    *p = (CUdeviceptr)at;
    return CUDA_SUCCESS;
}

/* Of a pool that keeps nothing. */
EXPORT CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream s)
{
    void *at = NULL;
    ENTER_CONTEXT;
    WANT(stream_of(s, ctx->device), STREAM);
    TRY(memory_new(bytes, OF_DEVICE, ctx->device, CALLER, &at));
    *p = (CUdeviceptr)at;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    memory *m;
    ENTER_CONTEXT;
    WANT(stream_of(s, ctx->device), STREAM);
    TRY(memory_freeable(__func__, (void *)p, OF_DEVICE, &m));
    m->freed_later = true;
    return push(stream_of(s, ctx->device), &(command){.op = RELEASE, .to = (char *)p});
}
