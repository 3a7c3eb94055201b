/*
 * Memory of the device. Values come from a pool of CUDA's, in the order of the stream: memory that is given back is given
 * out again only to work that comes later. The arena is address space of which the begin is mapped.
 *
 * What is copied to the device goes through a ring of pinned chunks, so that nobody waits for the device unless the
 * ring is full; large values beside the runs that do not use their memory (cu_beside.c). What is copied from it is waited
 * for.
 */
#include "backends/cuda/cu_impl.h"

#include <string.h>

enum { GUARANTEED = 64 }; /* bytes, at the least: no allocation is empty */

/* --- opening and closing -------------------------------------------------------------------- */

static cu_mem_properties mapped_memory(const dc_cu *cu)
{
    return (cu_mem_properties){.type = CU_MEMORY_PINNED, .location = {CU_LOCATION_DEVICE, cu->at}};
}

static dc_status open_pool(dc_cu *cu, dc_job *j)
{
    const cu_pool_properties properties = {.type = CU_MEMORY_PINNED,
                                           .location = {CU_LOCATION_DEVICE, cu->at}};
    uint64_t keep = UINT64_MAX; /* nothing goes back to the system while the stream is waited for */
    DC_CU_TRY(cu, j, "a memory pool", MemPoolCreate(&cu->pool, &properties));
    DC_CU_TRY(cu, j, "a memory pool",
              MemPoolSetAttribute(cu->pool, CU_POOL_RELEASE_THRESHOLD, &keep));
    return DC_OK;
}

/* A power of two, as addresses of pages have it. */
static bool is_granularity(size_t n)
{
    enum { MOST = 1 << 30 };
    return n > 0 && n <= MOST && (n & (n - 1)) == 0;
}

dc_status dc_cu_memory_open(dc_cu *cu, dc_job *j)
{
    void *verdict;
    DC_TRY(open_pool(cu, j));
    DC_CU_TRY(cu, j, "pinned memory",
              MemHostAlloc(&verdict, DC_CU_AHEAD * sizeof *cu->verdict, CU_HOST_PORTABLE));
    cu->verdict = verdict;
    cu->ring.stream = cu->stream;
    DC_TRY(dc_cu_ring_open(cu, j, &cu->ring));
    DC_TRY(dc_cu_beside_open(cu, j));
    if (dc_cu_attribute(&cu->lib, cu->at, CU_ATTRIBUTE_VIRTUAL_MEMORY) != 0) {
        const cu_mem_properties properties = mapped_memory(cu);
        DC_CU_TRY(cu, j, "mapped memory",
                  MemGetAllocationGranularity(&cu->granularity, &properties, 0));
        if (!is_granularity(cu->granularity))
            cu->granularity = 0; /* then none is mapped */
    }
    return DC_OK;
}

void dc_cu_memory_close(dc_cu *cu)
{
    const dc_cu_api *fn = &cu->lib.fn;
    dc_cu_beside_close(cu);
    dc_cu_ring_close(cu, &cu->ring);
    if (cu->verdict != NULL)
        fn->MemFreeHost(cu->verdict);
    if (cu->pool != NULL)
        fn->MemPoolDestroy(cu->pool);
}

/* --- the pool ------------------------------------------------------------------------------- */

dc_status dc_cu_take(dc_cu *cu, dc_job *j, size_t bytes, cu_address *out)
{
    const size_t n = bytes > GUARANTEED ? bytes : GUARANTEED;
    DC_ROOM(cu->place); /* before there is something to lose */
    cu_result error;
    DC_CU_CALL(cu, error, MemAllocFromPoolAsync(out, n, cu->pool, cu->stream));
    if (error == CU_ERROR_OUT_OF_MEMORY)
        return dc_fail_memory(j, bytes);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "memory", error);
    cu->busy = true;
    atomic_fetch_add(&cu->objects, 1);
    dc_cu_place_add(cu, *out, n);
    return DC_OK;
}

void dc_cu_give(dc_cu *cu, cu_address at)
{
    if (at == 0)
        return;
    dc_cu_place_drop(cu, at);
    dc_cu_beside_wait(cu);
    cu->lib.fn.MemFreeAsync(at, cu->stream);
    cu->busy = true;
    atomic_fetch_sub(&cu->objects, 1);
}

dc_status dc_cu_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    dc_cu *cu = dc_cu_of(d);
    cu_address at = 0;
    bool pushed;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = dc_cu_take(cu, j, bytes, &at);
    dc_cu_leave(cu, j, pushed);
    *out = (void *)(uintptr_t)at;
    return status;
}

/* --- address space ---------------------------------------------------------------------------- */

static uint32_t find_space(const dc_cu *cu, const void *mem)
{
    uint32_t i = 0;
    while (i < cu->space.n && cu->space.at[i].at != dc_cu_at(mem))
        i++;
    return i;
}

dc_status dc_cu_reserve(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    dc_cu *cu = dc_cu_of(d);
    dc_cu_space s = {0};
    bool pushed;
    if (cu->granularity == 0)
        return dc_failf(j, DC_ERR_DEVICE, "cuda", "the device maps no memory");
    DC_ROOM(cu->space); /* before there is something to lose */
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    s.room = dc_align_up(bytes, cu->granularity);
    const cu_result error = cu->lib.fn.MemAddressReserve(&s.at, s.room, 0, 0, 0);
    dc_cu_leave(cu, j, pushed);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "address space", error);
    DC_PUSH(cu->space, s);
    *out = (void *)(uintptr_t)s.at;
    return DC_OK;
}

/* Behind what is mapped already. */
static dc_status map_more(dc_cu *cu, dc_job *j, dc_cu_space *s, size_t more)
{
    const dc_cu_api *fn = &cu->lib.fn;
    const cu_mem_properties properties = mapped_memory(cu);
    const cu_mem_access access = {properties.location, CU_ACCESS_READ_WRITE};
    uint64_t memory = 0;
    cu_result error;
    DC_CU_CALL(cu, error, MemCreate(&memory, more, &properties, 0));
    if (error == CU_ERROR_OUT_OF_MEMORY)
        return dc_fail_memory(j, more);
    if (error != CU_SUCCESS)
        return dc_cu_failed(cu, j, "mapped memory", error);
    error = fn->MemMap(s->at + s->mapped, more, 0, memory, 0);
    if (error == CU_SUCCESS) {
        error = fn->MemSetAccess(s->at + s->mapped, more, &access, 1);
        if (error != CU_SUCCESS)
            fn->MemUnmap(s->at + s->mapped, more);
    }
    if (error != CU_SUCCESS) {
        fn->MemRelease(memory);
        return dc_cu_failed(cu, j, "mapped memory", error);
    }
    DC_PUSH(s->memory, memory);
    DC_PUSH(s->bytes, more);
    s->mapped += more;
    return DC_OK;
}

dc_status dc_cu_commit(dc_device *d, dc_job *j, void *mem, size_t bytes)
{
    dc_cu *cu = dc_cu_of(d);
    const uint32_t i = find_space(cu, mem);
    bool pushed;
    if (i == cu->space.n || bytes > cu->space.at[i].room)
        DC_BUG("%zu bytes of address space that is not there", bytes);
    const size_t want = dc_align_up(bytes, cu->granularity);
    if (want <= cu->space.at[i].mapped)
        return DC_OK;
    DC_ROOM(cu->space.at[i].memory); /* before there is something to lose */
    DC_ROOM(cu->space.at[i].bytes);
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = map_more(cu, j, &cu->space.at[i], want - cu->space.at[i].mapped);
    dc_cu_leave(cu, j, pushed);
    return status;
}

static void free_space(dc_cu *cu, uint32_t i)
{
    const dc_cu_api *fn = &cu->lib.fn;
    dc_cu_space *s = &cu->space.at[i];
    size_t at = 0;
    dc_cu_nccl_quit(cu);
    fn->StreamSynchronize(cu->stream); /* unmapping does not wait for what is under way */
    for (uint32_t k = 0; k < s->memory.n; k++) {
        fn->MemUnmap(s->at + at, s->bytes.at[k]);
        fn->MemRelease(s->memory.at[k]);
        at += s->bytes.at[k];
    }
    fn->MemAddressFree(s->at, s->room);
    DC_VEC_FREE(s->memory);
    DC_VEC_FREE(s->bytes);
    memmove(s, s + 1, (cu->space.n - i - 1) * sizeof *s);
    cu->space.n--;
}

/* On a lost device nothing can be given back. */
void dc_cu_release(dc_device *d, void *mem)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (mem == NULL || dc_cu_push(cu, &pushed) != CU_SUCCESS)
        return;
    const uint32_t i = find_space(cu, mem);
    if (i < cu->space.n)
        free_space(cu, i);
    else
        dc_cu_give(cu, dc_cu_at(mem));
    dc_cu_pop(cu, pushed);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* The next chunk of the ring, when what was copied through it before has arrived: until then the full one is current. */
static dc_status next_chunk(dc_cu *cu, dc_job *j, dc_cu_ring *r)
{
    const uint32_t next = (r->at + 1) % DC_CU_CHUNKS;
    DC_CU_TRY(cu, j, "a copy", EventRecord(r->done[r->at], r->stream));
    r->used[r->at] = true;
    if (r->used[next]) {
        DC_TRY(dc_cu_nccl_settle(cu, j));
        DC_CU_TRY(cu, j, "a copy", EventSynchronize(r->done[next]));
    }
    r->at = next;
    r->fill = 0;
    return DC_OK;
}

/* Where n bytes, a chunk at most, have room. */
static dc_status chunk_for(dc_cu *cu, dc_job *j, dc_cu_ring *r, size_t n, char **at)
{
    if (n > DC_CU_CHUNK - r->fill)
        DC_TRY(next_chunk(cu, j, r));
    *at = r->chunk + (size_t)r->at * DC_CU_CHUNK + r->fill;
    return DC_OK;
}

dc_status dc_cu_ring_send(dc_cu *cu, dc_job *j, dc_cu_ring *r, cu_address to, const void *from,
                          size_t bytes)
{
    char *at;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < DC_CU_CHUNK ? bytes - done : DC_CU_CHUNK;
        DC_TRY(done > 0 ? dc_job_ended(j) : DC_OK);
        DC_TRY(chunk_for(cu, j, r, n, &at));
        memcpy(at, (const char *)from + done, n);
        r->fill = dc_align_up(r->fill + n, 64);
        cu->busy = true;
        DC_CU_TRY(cu, j, "a copy", MemcpyHtoDAsync(to + done, at, n, r->stream));
    }
    return DC_OK;
}

dc_status dc_cu_send(dc_cu *cu, dc_job *j, cu_address to, const void *from, size_t bytes)
{
    DC_TRY(dc_cu_beside_join(cu, j));
    dc_cu_place_use(cu, to);
    return dc_cu_ring_send(cu, j, &cu->ring, to, from, bytes);
}

/* Beside what runs, if it may be. */
static dc_status send_value(dc_cu *cu, dc_job *j, cu_address to, const void *from, size_t bytes)
{
    bool sent;
    DC_TRY(dc_cu_beside_send(cu, j, to, from, bytes, &sent));
    return sent ? DC_OK : dc_cu_send(cu, j, to, from, bytes);
}

dc_status dc_cu_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (bytes == 0)
        return DC_OK;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = send_value(cu, j, dc_cu_at(to), from, bytes);
    dc_cu_leave(cu, j, pushed);
    return status;
}

/* A copy from the device that has arrived; one whose end is not known keeps its part of the chunk. */
static dc_status fetch_piece(dc_cu *cu, dc_job *j, char *at, cu_address from, size_t n)
{
    const size_t fill = cu->ring.fill;
    DC_TRY(dc_cu_nccl_settle(cu, j));
    cu->ring.fill = dc_align_up(fill + n, 64);
    DC_CU_TRY(cu, j, "a copy to the host", MemcpyDtoHAsync(at, from, n, cu->stream));
    DC_CU_TRY(cu, j, "what was begun", StreamSynchronize(cu->stream));
    cu->ring.fill = fill;
    return DC_OK;
}

/* Through a chunk of the ring, too: the driver copies to other memory in small pieces, and waits for each. */
static dc_status fetch(dc_cu *cu, dc_job *j, char *to, cu_address from, size_t bytes)
{
    char *at;
    DC_TRY(dc_cu_beside_join(cu, j));
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < DC_CU_CHUNK ? bytes - done : DC_CU_CHUNK;
        DC_TRY(done > 0 ? dc_job_ended(j) : DC_OK);
        DC_TRY(chunk_for(cu, j, &cu->ring, n, &at));
        DC_TRY(fetch_piece(cu, j, at, from + done, n));
        memcpy(to + done, at, n);
    }
    cu->busy = false;
    return DC_OK;
}

dc_status dc_cu_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (bytes == 0)
        return DC_OK;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = fetch(cu, j, to, dc_cu_at(from), bytes);
    dc_cu_leave(cu, j, pushed);
    return status;
}

/* Places may overlap: by way of other memory. */
static dc_status copy_inside(dc_cu *cu, dc_job *j, cu_address to, cu_address from, size_t bytes)
{
    const cu_address apart = to > from ? to - from : from - to;
    cu_address between = from;
    DC_TRY(dc_cu_beside_join(cu, j));
    dc_cu_place_use(cu, to);
    dc_cu_place_use(cu, from);
    if (apart < bytes) {
        DC_TRY(dc_cu_take(cu, j, bytes, &between));
        const cu_result error = cu->lib.fn.MemcpyDtoDAsync(between, from, bytes, cu->stream);
        if (error != CU_SUCCESS) {
            dc_cu_give(cu, between);
            return dc_cu_failed(cu, j, "a copy", error);
        }
    }
    const cu_result error = cu->lib.fn.MemcpyDtoDAsync(to, between, bytes, cu->stream);
    cu->busy = true;
    if (between != from)
        dc_cu_give(cu, between);
    return error == CU_SUCCESS ? DC_OK : dc_cu_failed(cu, j, "a copy", error);
}

dc_status dc_cu_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    if (bytes == 0 || to == from)
        return DC_OK;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = copy_inside(cu, j, dc_cu_at(to), dc_cu_at(from), bytes);
    dc_cu_leave(cu, j, pushed);
    return status;
}

dc_status dc_cu_finish(dc_device *d, dc_job *j)
{
    dc_cu *cu = dc_cu_of(d);
    bool pushed;
    DC_TRY(dc_cu_enter(cu, j, &pushed));
    const dc_status status = dc_cu_settle(cu, j, "what was begun");
    dc_cu_leave(cu, j, pushed);
    return status;
}
