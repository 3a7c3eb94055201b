/*
 * Memory of devices and pinned memory of the host, in one range of addresses. Each allocation ends
 * where a page does and is filled with 0xff; no address is given out twice, and what was written
 * beside an allocation is found when it ends. The pages of device memory are closed to the host: they
 * open when a kernel or copy comes there, and close behind it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin.h"

enum { PAGE = 4096, ALIGN = 256, SLACK = 0xa5 };
static const size_t ROOM = (size_t)1 << 39;

static memory *mem; /* by address */
static size_t nmem, rmem;
static char *region, *region_next;
static uint64_t serial;
bool device_works;
int device_at_work;

static const char *const kind_name[] = {"device", "pinned", "mapped"};

/* Finding ----------------------------------------------------------------------------------- */

bool in_region(const void *p)
{
    return region != NULL && (uintptr_t)p - (uintptr_t)region < ROOM;
}

static size_t place_of(const void *p) /* the first that begins behind p */
{
    size_t lo = 0, hi = nmem;
    while (lo < hi) {
        const size_t m = (lo + hi) / 2;
        if (mem[m].pages <= (const char *)p)
            lo = m + 1;
        else
            hi = m;
    }
    return lo;
}

memory *memory_find(const void *p)
{
    const size_t i = place_of(p);
    return i > 0 && (const char *)p < mem[i - 1].pages + mem[i - 1].all ? &mem[i - 1] : NULL;
}

bool is_pinned(const void *p)
{
    const memory *m = in_region(p) ? memory_find(p) : NULL;
    return m != NULL && m->kind == PINNED && m->alive;
}

/* Names the allocation before p. */
static const char *beside(const void *p, size_t bytes)
{
    static char why[240];
    const size_t i = in_region(p) ? place_of(p) : 0;
    const memory *m = i > 0 ? &mem[i - 1] : NULL;
    if (m == NULL || (const char *)p < m->at)
        snprintf(why, sizeof why, "%zu bytes at %p are in no allocation", bytes, p);
    else
        snprintf(
            why, sizeof why,
            "%zu bytes at %p are in no allocation: %zu bytes behind allocation %lu of %zu bytes",
            bytes, p, (size_t)((const char *)p - m->at) - m->bytes, (unsigned long)m->serial,
            m->bytes);
    return why;
}

static const char *wrong_one(const memory *m, const void *p, size_t bytes, int on)
{
    static char why[240];
    if (m == NULL || (const char *)p < m->at || (const char *)p > m->at + m->bytes ||
        ((const char *)p == m->at + m->bytes && bytes > 0))
        return beside(p, bytes);
    if (!m->alive)
        snprintf(why, sizeof why,
                 "%zu bytes at %p: %zu bytes into allocation %lu of %zu bytes, which was freed",
                 bytes, p, (size_t)((const char *)p - m->at), (unsigned long)m->serial, m->bytes);
    else if (m->kind != PINNED && m->device != on)
        snprintf(why, sizeof why, "%p is memory of device %d, used on device %d", p, m->device, on);
    else if (!m->access)
        snprintf(why, sizeof why, "%p is mapped, and no access was set", p);
    else
        return NULL;
    return why;
}

const char *memory_wrong(const void *p, size_t bytes, int on)
{
    static char text[240];
    const char *at = p;
    size_t left = bytes;
    for (;;) { /* mapped memory may continue in the next mapping */
        const memory *m = in_region(at) ? memory_find(at) : NULL;
        const char *why = wrong_one(m, at, left, on);
        if (why != NULL)
            return why;
        const size_t here = (size_t)(m->at + m->bytes - at);
        if (left <= here)
            return NULL;
        if (m->kind != MAPPED) {
            snprintf(
                text, sizeof text,
                "%zu bytes at %p leave allocation %lu of %zu bytes: they begin %zu bytes into it",
                left, (const void *)at, (unsigned long)m->serial, m->bytes, (size_t)(at - m->at));
            return text;
        }
        at += here;
        left -= here;
    }
}

static engine_area *around(const void *p)
{
    const memory *m = memory_find(p);
    return m != NULL && wrong_one(m, p, 1, device_at_work) == NULL ? m->area : NULL;
}

static const char *wrong_now(const void *p, size_t bytes)
{
    const char *why = memory_wrong(p, bytes, device_at_work);
    return why != NULL ? why : "an access leaves a mapping";
}

/* Pages that are closed to the host --------------------------------------------------------- */

static char **opened; /* pages of what is open and has to be closed */
static size_t nopened, ropened;

void memory_open(memory *m)
{
    if (m->open)
        return;
    mprotect(m->pages, m->all, PROT_READ | PROT_WRITE);
    m->open = true;
    if (m->kind == PINNED)
        return;
    if (nopened == ropened)
        abort(); /* there is room for all, since signal handlers come here */
    opened[nopened++] = m->pages;
}

void memory_open_range(const void *p, size_t bytes)
{
    const char *end = (const char *)p + bytes;
    for (size_t i = place_of(p) - 1; i < nmem && mem[i].pages < end; i++)
        if (mem[i].alive)
            memory_open(&mem[i]);
}

void memory_close_all(void)
{
    while (nopened > 0) {
        memory *m = memory_find(opened[--nopened]);
        if (m != NULL && m->open) {
            mprotect(m->pages, m->all, PROT_NONE);
            m->open = false;
        }
    }
}

static struct sigaction before[3];
static const int caught[3] = {SIGSEGV, SIGBUS, SIGILL};

static void pass_on(int sig, siginfo_t *info, void *machine)
{
    int i = 0;
    while (caught[i] != sig)
        i++;
    if (before[i].sa_flags & SA_SIGINFO)
        before[i].sa_sigaction(sig, info, machine);
    else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
        before[i].sa_handler(sig);
    else
        signal(sig, SIG_DFL); /* it comes again */
}

static void on_fault(int sig, siginfo_t *info, void *machine)
{
    const char *p = info->si_addr;
    memory *m = sig != SIGILL && in_region(p) ? memory_find(p) : NULL;
    if (device_works && m != NULL && memory_wrong(p, 1, device_at_work) == NULL && !m->open) {
        memory_open(m);
        return;
    }
    if (device_works) {
        char text[300];
        const char *why =
            sig == SIGILL ? "an index leaves its array" : memory_wrong(p, 1, device_at_work);
        if (sig != SIGILL && p == NULL)
            why = "a null pointer, or a vector that is not aligned";
        snprintf(text, sizeof text, "fault: %s", why != NULL ? why : "?");
        engine_fault(machine, text);
        return;
    }
    if (in_region(p)) {
        misuse("host", "it touches %p: %s memory of allocation %lu%s", (const void *)p,
               m != NULL ? kind_name[m->kind] : "no", (unsigned long)(m != NULL ? m->serial : 0),
               m != NULL && !m->alive ? ", which was freed" : "");
        if (set.wrong == WRONG_REPORT && m != NULL && m->alive) { /* it may go on */
            memory_open(m);
            return;
        }
    }
    pass_on(sig, info, machine);
}

static char *first_granule(void)
{
    return region + ((uintptr_t)GRANULE - (uintptr_t)region % GRANULE);
}

void memory_init(void)
{
    region = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        fprintf(stderr, "CUDA stand-in: no address space for device memory\n");
        abort();
    }
    region_next = first_granule();
    engine_device =
        (engine_memory){.base = region, .bytes = ROOM, .around = around, .wrong = wrong_now};
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < 3; i++)
        sigaction(caught[i], &a, &before[i]);
}

/* Allocations ------------------------------------------------------------------------------- */

static memory *insert(const memory *x)
{
    const size_t i = place_of(x->pages);
    if (nmem == rmem) {
        rmem = 2 * rmem + 64;
        mem = realloc(mem, rmem * sizeof *mem);
        ropened = 2 * rmem;
        opened = realloc(opened, ropened * sizeof *opened);
    }
    memmove(&mem[i + 1], &mem[i], (nmem++ - i) * sizeof *mem);
    mem[i] = *x;
    mem[i].serial = ++serial;
    mem[i].area = malloc(sizeof *mem[i].area);
    *mem[i].area = (engine_area){.begin = x->at, .bytes = x->bytes};
    return &mem[i];
}

static size_t memory_left(int on)
{
    const size_t taken = device[on].used + device[on].kept;
    return taken < set.memory ? set.memory - taken : 0;
}

CUresult memory_new(size_t bytes, memory_kind kind, int on, const void *where, void **out)
{
    const size_t body = (bytes + ALIGN - 1) / ALIGN * ALIGN, all = (body + PAGE - 1) / PAGE * PAGE;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == OF_DEVICE && bytes > memory_left(on))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes > ROOM / 4 || region_next + all + PAGE > region + ROOM)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory *m = insert(&(memory){.pages = region_next,
                                 .at = region_next + (all - body),
                                 .all = all,
                                 .bytes = bytes,
                                 .kind = kind,
                                 .alive = true,
                                 .access = true,
                                 .device = on,
                                 .where = where});
    region_next += all + PAGE;
    memory_open(m);
    memset(m->pages, SLACK, all);
    memset(m->at, 0xff, bytes);
    if (kind == OF_DEVICE)
        device[on].used += bytes;
    memory_close_all();
    *out = m->at;
    return CUDA_SUCCESS;
}

static const char *written(const char *p, const char *end)
{
    while (p < end && *p == (char)SLACK)
        p++;
    return p < end ? p : NULL;
}

static void check_slack(const char *entry, memory *m)
{
    const char *const end = m->at + m->bytes, *p;
    memory_open(m);
    if ((p = written(end, m->pages + m->all)) != NULL)
        misuse(entry, "something was written %zu bytes behind allocation %lu of %zu bytes",
               (size_t)(p - end), (unsigned long)m->serial, m->bytes);
    if ((p = written(m->pages, m->at)) != NULL)
        misuse(entry, "something was written %zu bytes before allocation %lu of %zu bytes",
               (size_t)(m->at - p), (unsigned long)m->serial, m->bytes);
}

static void forget(memory *m)
{
    engine_forget(m->area);
    free(m->area);
    m->area = NULL;
}

void memory_end(const char *entry, memory *m)
{
    check_slack(entry, m);
    madvise(m->pages, m->all, MADV_DONTNEED);
    mprotect(m->pages, m->all, PROT_NONE);
    forget(m);
    m->open = m->alive = false;
    if (m->kind == OF_DEVICE)
        device[m->device].used -= m->bytes;
    pool_keep(m->pool, m->bytes);
}

/* Virtual memory: ranges of addresses, and memory that is mapped into them. */
typedef struct physical { /* a handle is its number + 1; never freed */
    int fd, device;
    size_t bytes;
    bool held;
    unsigned maps;
} physical;

typedef struct reserved {
    char *at;
    size_t bytes;
    int device;
} reserved;

static physical *phys;
static size_t nphys;
static reserved *res, *freed; /* freed: oldest first */
static size_t nres, nfreed;

static void end_physical(physical *x)
{
    if (x->held || x->maps > 0)
        return;
    close(x->fd);
    device[x->device].used -= x->bytes;
}

/* The addresses stay reserved. */
static void end_mapping(memory *m)
{
    physical *x = &phys[m->mapped - 1];
    mmap(m->pages, m->all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    forget(m);
    m->alive = m->open = false;
    x->maps--;
    end_physical(x);
}

static unsigned virtual_leaks(int on)
{
    unsigned n = 0;
    for (size_t i = 0; i < nphys; i++)
        if (phys[i].held && phys[i].device == on) {
            if (device[on].dead == CUDA_SUCCESS) {
                misuse("leak", "a handle of %zu bytes of memory", phys[i].bytes);
                n++;
            }
            phys[i].held = false;
            end_physical(&phys[i]);
        }
    for (size_t i = nres; i-- > 0;)
        if (res[i].device == on) {
            if (device[on].dead == CUDA_SUCCESS) {
                misuse("leak", "%zu reserved bytes of addresses", res[i].bytes);
                n++;
            }
            res[i] = res[--nres];
        }
    return n;
}

/* Addresses are used once, until half of them are gone and nothing has any. */
static void start_over(void)
{
    if ((size_t)(region_next - region) < ROOM / 2 || nres > 0)
        return;
    for (size_t i = 0; i < nmem; i++)
        if (mem[i].alive)
            return;
    memory_close_all();
    nmem = nfreed = 0;
    region_next = first_granule();
}

unsigned memory_leaks(int on)
{
    unsigned n = 0;
    for (size_t i = 0; i < nmem; i++) {
        memory *m = &mem[i];
        if (!m->alive || m->device != on)
            continue;
        if (device[on].dead == CUDA_SUCCESS) {
            misuse("leak", "%zu bytes of %s memory, allocation %lu, made at %p", m->bytes,
                   kind_name[m->kind], (unsigned long)m->serial, m->where);
            n++;
        }
        if (m->kind == MAPPED)
            end_mapping(m);
        else
            memory_end("leak", m);
    }
    n += virtual_leaks(on);
    device[on].kept = 0; /* pools end with the context */
    start_over();
    return n;
}

EXPORT size_t cuda_standin_bytes(int d)
{
    return device[d].used;
}

CUresult memory_freeable(const char *entry, const void *p, memory_kind kind, memory **out)
{
    memory *m = *out = in_region(p) ? memory_find(p) : NULL;
    if (m == NULL || m->at != p || m->kind != kind)
        return misuse(entry, "%p is not the begin of %s memory", p, kind_name[kind]);
    if (!m->alive || m->freed_later)
        return misuse(entry, "allocation %lu is freed twice", (unsigned long)m->serial);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *all)
{
    ENTER_CONTEXT;
    *all = set.memory;
    *left = memory_left(ctx->device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    void *at = NULL;
    ENTER_CONTEXT;
    TRY(memory_new(bytes, OF_DEVICE, ctx->device, CALLER, &at));
    *p = (CUdeviceptr)at;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
    memory *m;
    ENTER_CONTEXT;
    if (p == 0)
        return CUDA_SUCCESS;
    TRY(memory_freeable(__func__, (void *)p, OF_DEVICE, &m));
    TRY(drain_device(ctx->device)); /* it waits for all that is under way */
    memory_end(__func__, m);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_new(bytes, PINNED, ctx->device, CALLER, p);
}

EXPORT CUresult cuMemAllocHost_v2(void **p, size_t bytes)
{
    ENTER_CONTEXT;
    return memory_new(bytes, PINNED, ctx->device, CALLER, p);
}

EXPORT CUresult cuMemFreeHost(void *p)
{
    memory *m;
    ENTER_CONTEXT;
    TRY(memory_freeable(__func__, p, PINNED, &m));
    TRY(drain_device(ctx->device));
    memory_end(__func__, m);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *p, void *host, unsigned flags)
{
    ENTER_CONTEXT;
    if (flags != 0 || !is_pinned(host))
        return misuse(__func__, "%p is not pinned", host);
    *p = (CUdeviceptr)host; /* one range of addresses for all */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr p)
{
    ENTER_CONTEXT;
    const memory *m = in_region((void *)p) ? memory_find((void *)p) : NULL;
    if (m == NULL || memory_wrong((void *)p, 1, ctx->device) != NULL)
        return CUDA_ERROR_NOT_FOUND;
    if (begin != NULL)
        *begin = (CUdeviceptr)m->at;
    if (bytes != NULL)
        *bytes = m->bytes;
    return CUDA_SUCCESS;
}

/* Virtual memory ---------------------------------------------------------------------------- */

static CUresult granular(const char *entry, size_t bytes)
{
    return bytes > 0 && bytes % GRANULE == 0
               ? CUDA_SUCCESS
               : misuse(entry, "%zu bytes are no multiple of the granularity", bytes);
}

static CUresult check_prop(const char *entry, const CUmemAllocationProp *prop)
{
    if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id < 0 ||
        prop->location.id >= set.devices)
        return misuse(entry, "memory of type %d at %d:%d", prop->type, prop->location.type,
                      prop->location.id);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                              int option)
{
    ENTER;
    TRY(check_prop(__func__, prop));
    if (option != 0 && option != 1)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULE;
    return CUDA_SUCCESS;
}

/*
 * Fresh ones, so that a stale address is found; where half of the room is gone, those that were freed first: contexts reserve far
 * more than they use.
 */
static char *addresses(size_t bytes)
{
    char *begin = region_next + ((uintptr_t)GRANULE - (uintptr_t)region_next % GRANULE);
    if (bytes <= ROOM / 2 && begin + bytes + GRANULE <= region + ROOM / 2) {
        region_next = begin + bytes + GRANULE;
        return begin;
    }
    for (size_t i = 0; i < nfreed; i++)
        if (freed[i].bytes >= bytes) {
            begin = freed[i].at;
            memmove(freed + i, freed + i + 1, (--nfreed - i) * sizeof *freed);
            return begin;
        }
    return NULL;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t align, CUdeviceptr at,
                                    unsigned long long flags)
{
    ENTER_CONTEXT;
    (void)at; /* a wish */
    TRY(granular(__func__, bytes));
    if (flags != 0 || align > GRANULE || (align & (align - 1)) != 0)
        return misuse(__func__, "flags %llu, alignment %zu", flags, align);
    char *begin = addresses(bytes);
    if (begin == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    res = realloc(res, (nres + 1) * sizeof *res);
    res[nres++] = (reserved){begin, bytes, ctx->device};
    *p = (CUdeviceptr)begin;
    return CUDA_SUCCESS;
}

static bool any_mapped(const char *at, size_t bytes)
{
    for (size_t i = 0; i < nmem; i++)
        if (mem[i].alive && mem[i].at < at + bytes && at < mem[i].at + mem[i].bytes)
            return true;
    return false;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
    ENTER_CONTEXT;
    for (size_t i = 0; i < nres; i++)
        if (res[i].at == (char *)p && res[i].bytes == bytes) {
            if (any_mapped(res[i].at, bytes))
                return misuse(__func__, "%p: memory is mapped there", (void *)p);
            freed = realloc(freed, (nfreed + 1) * sizeof *freed);
            freed[nfreed++] = res[i];
            res[i] = res[--nres];
            return CUDA_SUCCESS;
        }
    return misuse(__func__, "%zu bytes at %p are not reserved", bytes, (void *)p);
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t bytes,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    ENTER_CONTEXT;
    TRY(granular(__func__, bytes));
    TRY(check_prop(__func__, prop));
    const int on = prop->location.id;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > memory_left(on))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const int fd = memfd_create("device memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(all, 0xff, bytes);
    munmap(all, bytes);
    phys = realloc(phys, (nphys + 1) * sizeof *phys);
    phys[nphys++] = (physical){fd, on, bytes, true, 0};
    device[on].used += bytes;
    *h = nphys;
    return CUDA_SUCCESS;
}

static CUresult physical_of(const char *entry, CUmemGenericAllocationHandle h, physical **out)
{
    if (h == 0 || h > nphys || !phys[h - 1].held) {
        misuse(entry, "%llu is no handle of memory", h);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *out = &phys[h - 1];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
    physical *x;
    ENTER_CONTEXT;
    TRY(physical_of(__func__, h, &x));
    x->held = false;
    end_physical(x);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle h,
                         unsigned long long flags)
{
    physical *x;
    ENTER_CONTEXT;
    TRY(granular(__func__, bytes));
    TRY(physical_of(__func__, h, &x));
    char *at = (char *)p;
    size_t i = 0;
    while (i < nres && (at < res[i].at || at + bytes > res[i].at + res[i].bytes))
        i++;
    if (i == nres || (uintptr_t)at % GRANULE != 0)
        return misuse(__func__, "%zu bytes at %p are not reserved", bytes, (void *)at);
    if (flags != 0 || offset != 0 || bytes > x->bytes)
        return misuse(__func__, "%zu bytes from %zu on of memory of %zu", bytes, offset, x->bytes);
    if (any_mapped(at, bytes))
        return misuse(__func__, "%p: memory is mapped there", (void *)at);
    if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, x->fd, 0) == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    x->maps++;
    insert(&(memory){.at = at,
                     .pages = at,
                     .bytes = bytes,
                     .all = bytes,
                     .kind = MAPPED,
                     .alive = true,
                     .device = x->device,
                     .mapped = h,
                     .where = CALLER});
    return CUDA_SUCCESS;
}

/* The mappings of exactly this range: fails if it cuts one. */
static CUresult check_maps(const char *entry, const char *at, size_t bytes)
{
    for (const char *p = at; p < at + bytes;) {
        const memory *m = memory_find(p);
        if (m == NULL || m->kind != MAPPED || m->at != p || p + m->bytes > at + bytes)
            return misuse(entry, "%zu bytes at %p are not whole mappings", bytes, (const void *)at);
        p += m->bytes;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr p, size_t bytes)
{
    ENTER_CONTEXT;
    char *const at = (char *)p;
    TRY(check_maps(__func__, at, bytes));
    TRY(drain_device(ctx->device));
    for (char *q = at; q < at + bytes;) {
        memory *m = memory_find(q);
        q += m->bytes;
        end_mapping(m);
        memmove(m, m + 1, (size_t)(&mem[--nmem] - m) * sizeof *m);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t n)
{
    ENTER_CONTEXT;
    TRY(check_maps(__func__, (char *)p, bytes));
    for (size_t i = 0; i < n; i++)
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return misuse(__func__, "a location of type %d", desc[i].location.type);
    for (char *q = (char *)p; q < (char *)p + bytes;) {
        memory *m = memory_find(q);
        for (size_t i = 0; i < n; i++)
            if (desc[i].location.id == m->device)
                m->access = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        q += m->bytes;
    }
    return CUDA_SUCCESS;
}
