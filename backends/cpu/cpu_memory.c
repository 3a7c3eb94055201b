/*
 * Memory of the CPU device: the process's own. Large pieces begin at huge pages and ask for them. Those of some size share
 * huge pages (huge_chunks.h) once there are many; of a host's memory they do not, since chunks are much to ask of it.
 *
 * A reservation is address space that nothing may touch, of which a growing part at the begin is
 * opened. The device knows its reservations, since giving one back needs its size; there are few,
 * one per context as a rule. A host that gives the memory itself has none: addresses are not its to give.
 */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "backends/cpu/cpu_impl.h"

#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = DC_HUGE_PAGE, HUGE_FROM = 4 << 20 };
enum { PIECE_FROM = 1 << 16 }; /* bytes */
enum { MANY = 16 << 20 };      /* bytes of pieces that are asked for before there are chunks */

#ifdef __SANITIZE_ADDRESS__
enum { CHUNKS = 0 }; /* the sanitizer sees what is behind a block of its own, not behind a piece */
#else
enum { CHUNKS = 1 };
#endif

static dc_cpu *cpu_of(dc_device *d)
{
    return (dc_cpu *)d;
}

/* NULL: it is no piece, or there is no chunk to be had. */
static void *take_piece(dc_cpu *cpu, size_t bytes)
{
    if (!CHUNKS || bytes < PIECE_FROM || bytes >= HUGE_FROM || dc_heap_is_given())
        return NULL;
    if (cpu->asked < MANY) {
        cpu->asked += bytes;
        return NULL;
    }
    return dc_chunks_take(&cpu->chunks, bytes);
}

dc_status dc_cpu_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    *out = take_piece(cpu_of(d), bytes);
    if (*out != NULL)
        return DC_OK;
    const size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : ALIGN;
    if (bytes > PTRDIFF_MAX - HUGE_PAGE)
        return dc_fail_memory(j, bytes);
    const size_t size = dc_align_up(bytes > 0 ? bytes : 1, align);
    void *mem = dc_try_aligned(align, size);
    if (mem == NULL)
        return dc_fail_memory(j, bytes);
    if (align == HUGE_PAGE)
        madvise(mem, size, MADV_HUGEPAGE); /* a wish; refusal changes nothing */
    *out = mem;
    return DC_OK;
}

static dc_reservation *find_reservation(dc_cpu *cpu, const void *mem)
{
    for (uint32_t i = 0; i < cpu->reserved.n; i++)
        if (cpu->reserved.at[i].mem == mem)
            return &cpu->reserved.at[i];
    return NULL;
}

/* A mapping begins at a page; what lies before the first huge page of it stays unused. */
dc_status dc_cpu_reserve(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    dc_cpu *cpu = cpu_of(d);
    if (dc_heap_is_given() || bytes > PTRDIFF_MAX - 2 * (size_t)HUGE_PAGE)
        return dc_fail_memory(j, bytes);
    DC_ROOM(cpu->reserved); /* may unwind, so first */
    const size_t size = dc_align_up(bytes > 0 ? bytes : 1, HUGE_PAGE) + HUGE_PAGE;
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return dc_fail_memory(j, bytes);
    const size_t skip = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    dc_reservation r = {.base = base, .mem = (char *)base + skip, .size = size};
    DC_PUSH(cpu->reserved, r);
    *out = r.mem;
    return DC_OK;
}

dc_status dc_cpu_commit(dc_device *d, dc_job *j, void *mem, size_t bytes)
{
    dc_reservation *r = find_reservation(cpu_of(d), mem);
    if (r == NULL)
        DC_BUG("committing memory that was not reserved");
    if (bytes <= r->open)
        return DC_OK;
    const size_t size = dc_align_up(bytes, HUGE_PAGE);
    if (bytes > r->size || size > r->size - HUGE_PAGE)
        DC_BUG("committing %zu bytes of %zu reserved", bytes, r->size - HUGE_PAGE);
    if (mprotect(r->mem, size, PROT_READ | PROT_WRITE) != 0)
        return dc_fail_memory(j, bytes);
    if (bytes >= HUGE_FROM)
        madvise(r->mem, size, MADV_HUGEPAGE);
    r->open = size;
    return DC_OK;
}

void dc_cpu_release(dc_device *d, void *mem)
{
    dc_cpu *cpu = cpu_of(d);
    dc_reservation *r = find_reservation(cpu, mem);
    if (r == NULL) {
        if (!dc_chunks_give(&cpu->chunks, mem))
            dc_free_aligned(mem);
        return;
    }
    munmap(r->base, r->size);
    *r = cpu->reserved.at[--cpu->reserved.n];
}
