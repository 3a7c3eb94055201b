/*
 * Copies beside computing: which memory the runs under way may use. Large values go to the device on a
 * stream of their own, which waits for the last run that has their place among its addresses, and for none
 * that comes after that; the stream of runs waits for the copy before anything else is given to it.
 *
 * A place is known by the number of the run that covers all that was done with it: what is given to the
 * stream between two runs is covered by the second one's event. Memory of which that run has not been
 * launched yet is copied to on the stream of runs, as is what did not come from the pool.
 */
#include "backends/cuda/cu_impl.h"

#include <string.h>

enum { LARGE = 64 << 10 }; /* bytes from which on a copy pays for three events */

/* The first place behind an address. */
static uint32_t place_behind(const dc_cu *cu, cu_address at)
{
    uint32_t low = 0, high = cu->place.n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cu->place.at[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* That which an address lies in; NULL: none of the pool. */
static dc_cu_place *place_of(const dc_cu *cu, cu_address at)
{
    const uint32_t n = place_behind(cu, at);
    dc_cu_place *x = n > 0 ? &cu->place.at[n - 1] : NULL;
    return x != NULL && at - x->at < x->bytes ? x : NULL;
}

void dc_cu_place_add(dc_cu *cu, cu_address at, size_t bytes)
{
    const uint32_t n = place_behind(cu, at);
    DC_PUSH(cu->place, ((dc_cu_place){0}));
    memmove(&cu->place.at[n + 1], &cu->place.at[n], (cu->place.n - 1 - n) * sizeof *cu->place.at);
    cu->place.at[n] = (dc_cu_place){at, bytes, cu->runs + 1};
    cu->place_changes++;
}

void dc_cu_place_drop(dc_cu *cu, cu_address at)
{
    const uint32_t n = place_behind(cu, at);
    if (n == 0 || cu->place.at[n - 1].at != at)
        return;
    memmove(&cu->place.at[n - 1], &cu->place.at[n], (cu->place.n - n) * sizeof *cu->place.at);
    cu->place.n--;
    cu->place_changes++;
}

void dc_cu_place_use(dc_cu *cu, cu_address at)
{
    dc_cu_place *x = place_of(cu, at);
    if (x != NULL)
        x->run = cu->runs + 1;
}

/* Every run does this: places are looked for again where a slot's address or the list has changed. */
void dc_cu_place_use_slots(dc_cu *cu, dc_recording *r, void *const *slot)
{
    const bool same_list = r->place_changes == cu->place_changes;
    r->place_changes = cu->place_changes;
    for (uint32_t i = 0; i < r->nslot; i++) {
        dc_cu_slot_place *p = &r->place[i];
        if (!same_list || p->slot != slot[i]) {
            const dc_cu_place *x = place_of(cu, dc_cu_at(slot[i]));
            *p = (dc_cu_slot_place){slot[i], x != NULL ? (uint32_t)(x - cu->place.at) + 1 : 0};
        }
        if (p->place > 0)
            cu->place.at[p->place - 1].run = cu->runs + 1;
    }
}

/* ---- the other stream ------------------------------------------------------------------------ */

dc_status dc_cu_ring_open(dc_cu *cu, dc_job *j, dc_cu_ring *ring)
{
    void *chunk;
    DC_CU_TRY(cu, j, "pinned memory",
              MemHostAlloc(&chunk, (size_t)DC_CU_CHUNKS * DC_CU_CHUNK, CU_HOST_PORTABLE));
    ring->chunk = chunk;
    for (int i = 0; i < DC_CU_CHUNKS; i++)
        DC_CU_TRY(cu, j, "an event", EventCreate(&ring->done[i], CU_EVENT_NO_TIMES));
    return DC_OK;
}

void dc_cu_ring_close(dc_cu *cu, dc_cu_ring *ring)
{
    for (int i = 0; i < DC_CU_CHUNKS; i++)
        if (ring->done[i] != NULL)
            cu->lib.fn.EventDestroy(ring->done[i]);
    if (ring->chunk != NULL)
        cu->lib.fn.MemFreeHost(ring->chunk);
}

dc_status dc_cu_beside_open(dc_cu *cu, dc_job *j)
{
    DC_CU_TRY(cu, j, "a stream", StreamCreate(&cu->beside.stream, CU_STREAM_NON_BLOCKING));
    DC_CU_TRY(cu, j, "an event", EventCreate(&cu->beside_done, CU_EVENT_NO_TIMES));
    return dc_cu_ring_open(cu, j, &cu->beside);
}

void dc_cu_beside_close(dc_cu *cu)
{
    dc_cu_ring_close(cu, &cu->beside);
    if (cu->beside_done != NULL)
        cu->lib.fn.EventDestroy(cu->beside_done);
    if (cu->beside.stream != NULL)
        cu->lib.fn.StreamDestroy(cu->beside.stream);
}

/*
 * May a copy go on the other stream? Then that has been told what to wait for. What a host puts into a stream of its own
 * is in no run, and may use memory that it was shown.
 */
static dc_status may_copy(dc_cu *cu, dc_job *j, cu_address to, size_t bytes, bool *beside)
{
    const dc_cu_place *x = bytes >= LARGE ? place_of(cu, to) : NULL;
    *beside = x != NULL && cu->own_stream && x->run <= cu->runs && bytes <= x->bytes - (to - x->at);
    if (*beside && x->run > 0 && x->run + DC_CU_AHEAD > cu->runs)
        DC_CU_TRY(cu, j, "a copy",
                  StreamWaitEvent(cu->beside.stream, cu->done[(x->run - 1) % DC_CU_AHEAD], 0));
    return DC_OK;
}

dc_status dc_cu_beside_send(dc_cu *cu, dc_job *j, cu_address to, const void *from, size_t bytes,
                            bool *sent)
{
    DC_TRY(may_copy(cu, j, to, bytes, sent));
    if (!*sent)
        return DC_OK;
    cu->copying = true;
    return dc_cu_ring_send(cu, j, &cu->beside, to, from, bytes);
}

static cu_result join(dc_cu *cu)
{
    cu_result error = CU_SUCCESS;
    if (!cu->copying)
        return error;
    error = cu->lib.fn.EventRecord(cu->beside_done, cu->beside.stream);
    if (error == CU_SUCCESS)
        error = cu->lib.fn.StreamWaitEvent(cu->stream, cu->beside_done, 0);
    cu->copying = error != CU_SUCCESS;
    cu->busy = true;
    return error;
}

dc_status dc_cu_beside_join(dc_cu *cu, dc_job *j)
{
    const cu_result error = join(cu);
    return error == CU_SUCCESS ? DC_OK : dc_cu_failed(cu, j, "a copy", error);
}

/* Where the streams cannot be joined any more, the host waits. */
void dc_cu_beside_wait(dc_cu *cu)
{
    if (join(cu) != CU_SUCCESS)
        cu->lib.fn.StreamSynchronize(cu->beside.stream);
}
