/*
 * Memory of the device behind addresses of our own.
 *
 * OpenCL has handles where the interface has addresses with arithmetic. So every allocation gets a
 * stretch of a number space that no processor can address: a read by the host through one of these
 * numbers faults at once. A stretch begins at a multiple of 4096, there is room between two, and
 * none is given out twice; the table of those alive is therefore sorted by appending, and an address
 * seen before stands for the same memory as long as that is alive.
 */
#include "backends/opencl/cl_impl.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(sizeof(void *) == 8, "the number space needs addresses of 64 bits");

enum { PAGE = 4096, ALIGN = 64 };
#define FIRST_BASE ((uintptr_t)1 << 60)
#define LAST_BASE  ((uintptr_t)1 << 62)

/* --- buffers ------------------------------------------------------------------------------ */

static dc_status too_large(const dc_cl *cl, dc_job *j, size_t bytes)
{
    return dc_failf(j, DC_ERR_NOMEM_TEXT, "opencl",
                    "%zu bytes at once are asked for, the device gives %zu at most", bytes,
                    cl->limits.max_alloc);
}

dc_status dc_cl_buffer(dc_cl *cl, dc_job *j, size_t bytes, cl_mem *out)
{
    cl_int error = CL_SUCCESS;
    if (bytes > cl->limits.max_alloc || bytes > SIZE_MAX - ALIGN)
        return too_large(cl, j, bytes);
    const size_t size = dc_align_up(bytes > 0 ? bytes : 1, ALIGN);
    const cl_mem mem = cl->lib.fn.CreateBuffer(cl->context, CL_MEM_READ_WRITE, size, NULL, &error);
    if (mem != NULL && error == CL_SUCCESS) {
        atomic_fetch_add(&cl->objects, 1);
        *out = mem;
        return DC_OK;
    }
    if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES ||
        error == CL_OUT_OF_HOST_MEMORY)
        return dc_fail_memory(j, bytes);
    if (error == CL_INVALID_BUFFER_SIZE)
        return too_large(cl, j, bytes);
    return dc_cl_failed(j, "memory", error);
}

void dc_cl_buffer_release(dc_cl *cl, cl_mem mem)
{
    if (mem == NULL)
        return;
    cl->lib.fn.ReleaseMemObject(mem);
    atomic_fetch_sub(&cl->objects, 1);
}

/* --- addresses ---------------------------------------------------------------------------- */

dc_status dc_cl_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    dc_cl *cl = dc_cl_of(d);
    cl_mem mem = NULL;
    if (cl->next_base == 0)
        cl->next_base = FIRST_BASE;
    DC_ROOM(cl->range); /* before there is something to lose */
    DC_TRY(dc_cl_buffer(cl, j, bytes, &mem));
    const uintptr_t base = cl->next_base;
    if (bytes > LAST_BASE - base - 2 * PAGE) {
        dc_cl_buffer_release(cl, mem);
        return dc_failf(j, DC_ERR_NOMEM_TEXT, "opencl", "no addresses are left for %zu bytes",
                        bytes);
    }
    cl->next_base = base + dc_align_up(bytes, PAGE) + PAGE;
    DC_PUSH(cl->range, ((dc_cl_range){base, bytes, mem}));
    *out = (void *)base;
    return DC_OK;
}

/* The last range that begins at or before the address; none: range.n. */
static uint32_t find_range(const dc_cl *cl, uintptr_t address)
{
    uint32_t low = 0, high = cl->range.n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cl->range.at[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : cl->range.n;
}

/* The place behind the last byte belongs to a range, too: things of no bytes may stand there. */
cl_mem dc_cl_mem_at(const dc_cl *cl, const void *address, size_t *offset)
{
    const uintptr_t at = (uintptr_t)address;
    const uint32_t i = find_range(cl, at);
    if (i == cl->range.n || at - cl->range.at[i].base > cl->range.at[i].bytes)
        DC_BUG("%#" PRIxPTR " is no address of this device", at);
    *offset = at - cl->range.at[i].base;
    return cl->range.at[i].mem;
}

void dc_cl_release(dc_device *d, void *mem)
{
    dc_cl *cl = dc_cl_of(d);
    if (mem == NULL)
        return;
    const uint32_t i = find_range(cl, (uintptr_t)mem);
    if (i == cl->range.n || cl->range.at[i].base != (uintptr_t)mem)
        DC_BUG("%#" PRIxPTR " was not allocated here", (uintptr_t)mem);
    dc_cl_buffer_release(cl, cl->range.at[i].mem);
    memmove(cl->range.at + i, cl->range.at + i + 1, (cl->range.n - i - 1) * sizeof *cl->range.at);
    cl->range.n--;
}

void dc_cl_memory_close(dc_cl *cl)
{
    for (uint32_t i = 0; i < cl->range.n; i++)
        dc_cl_buffer_release(cl, cl->range.at[i].mem);
    DC_VEC_FREE(cl->range);
}

/* --- moving ------------------------------------------------------------------------------- */

dc_status dc_cl_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cl *cl = dc_cl_of(d);
    size_t at;
    if (bytes == 0)
        return DC_OK;
    const cl_mem mem = dc_cl_mem_at(cl, to, &at);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = dc_piece_of(bytes - done);
        DC_TRY(done > 0 ? dc_job_ended(j) : DC_OK);
        const cl_int error = cl->lib.fn.EnqueueWriteBuffer(
            cl->queue, mem, 1, at + done, n, (const char *)from + done, 0, NULL, NULL);
        if (error != CL_SUCCESS)
            return dc_cl_failed(j, "upload", error);
    }
    return DC_OK;
}

dc_status dc_cl_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cl *cl = dc_cl_of(d);
    size_t at;
    if (bytes == 0)
        return DC_OK;
    const cl_mem mem = dc_cl_mem_at(cl, from, &at);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = dc_piece_of(bytes - done);
        DC_TRY(done > 0 ? dc_job_ended(j) : DC_OK);
        const cl_int error = cl->lib.fn.EnqueueReadBuffer(cl->queue, mem, 1, at + done, n,
                                                          (char *)to + done, 0, NULL, NULL);
        if (error != CL_SUCCESS)
            return dc_cl_failed(j, "download", error);
    }
    return DC_OK;
}

/* OpenCL refuses to copy within a buffer where the stretches overlap: by way of another one. */
static dc_status copy_overlapping(dc_cl *cl, dc_job *j, cl_queue queue, cl_mem mem, size_t to_at,
                                  size_t from_at, size_t bytes, cl_event *event)
{
    cl_mem between = NULL;
    DC_TRY(dc_cl_buffer(cl, j, bytes, &between));
    const dc_cl_api *fn = &cl->lib.fn;
    cl_int error = fn->EnqueueCopyBuffer(queue, mem, between, from_at, 0, bytes, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        error = fn->EnqueueCopyBuffer(queue, between, mem, 0, to_at, bytes, 0, NULL, event);
    dc_cl_buffer_release(cl, between); /* OpenCL keeps it until both have run */
    return error == CL_SUCCESS ? DC_OK : dc_cl_failed(j, "copy", error);
}

dc_status dc_cl_enqueue_copy(dc_cl *cl, dc_job *j, cl_queue queue, void *to, const void *from,
                             size_t bytes, cl_event *event)
{
    size_t to_at, from_at;
    if (bytes == 0 || to == from)
        return DC_OK;
    const cl_mem dst = dc_cl_mem_at(cl, to, &to_at), src = dc_cl_mem_at(cl, from, &from_at);
    const size_t apart = to_at > from_at ? to_at - from_at : from_at - to_at;
    if (dst == src && apart < bytes)
        return copy_overlapping(cl, j, queue, dst, to_at, from_at, bytes, event);
    const cl_int error =
        cl->lib.fn.EnqueueCopyBuffer(queue, src, dst, from_at, to_at, bytes, 0, NULL, event);
    return error == CL_SUCCESS ? DC_OK : dc_cl_failed(j, "copy", error);
}

dc_status dc_cl_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    dc_cl *cl = dc_cl_of(d);
    return dc_cl_enqueue_copy(cl, j, cl->queue, to, from, bytes, NULL);
}

dc_status dc_cl_finish(dc_device *d, dc_job *j)
{
    dc_cl *cl = dc_cl_of(d);
    const cl_int error = cl->lib.fn.Finish(cl->queue);
    return error == CL_SUCCESS ? DC_OK : dc_cl_failed(j, "what was begun", error);
}
