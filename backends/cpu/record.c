/*
 * A recording: items with everything resolved that does not move, so that a run only adds the bases
 * of the slots to the offsets and calls. Its arrays are allocated once; run() allocates nothing.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "backends/cpu/cpu.h"
#include "backends/cpu/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct step {
    dc_item_kind kind;
    dc_cpu_kernel kernel; /* LAUNCH */
    int64_t grid;
    size_t bytes; /* COPY */
    uint32_t first, nbind;
} step;

struct dc_recording {
    uint32_t nstep, nbind;
    step *step;
    dc_bind *bind;  /* of all steps, one after the other */
    void **address; /* of each bind, in the run at hand */
    void *scratch;  /* the largest that a launch asks for */
};

static void resolve(step *s, const dc_item *item)
{
    *s = (step){.kind = item->kind, .grid = item->grid, .bytes = item->bytes};
    switch (item->kind) {
    case DC_ITEM_LAUNCH: {
        const dc_program *p = item->program;
        DC_ASSERT(item->entry < p->nentry, "launch of kernel %u of %u", item->entry, p->nentry);
        s->kernel = p->entry[item->entry];
        break;
    }
    case DC_ITEM_COPY:
        DC_ASSERT(item->nbind == 2, "a copy with %u binds", item->nbind);
        break;
    case DC_ITEM_CHECK:
        DC_ASSERT(item->nbind == 1, "a check with %u binds", item->nbind);
        break;
    case DC_ITEM_LOOP:
    case DC_ITEM_BRANCH:
        DC_BUG("an item of kind %d", item->kind);
    }
}

static void release_recording(void *what)
{
    dc_recording *r = what;
    dc_xfree(r->step);
    dc_xfree(r->bind);
    dc_xfree(r->address);
    free(r->scratch);
    dc_xfree(r);
}

static dc_status fill(dc_recording *r, dc_job *j, const dc_item *item, uint32_t n)
{
    size_t scratch = 0;
    for (uint32_t i = 0; i < n; i++) {
        r->nbind += item[i].nbind;
        if (item[i].scratch > scratch)
            scratch = item[i].scratch;
    }
    r->nstep = n;
    r->step = dc_xalloc(n * sizeof *r->step);
    r->bind = dc_xalloc(r->nbind * sizeof *r->bind);
    r->address = dc_xalloc(r->nbind * sizeof *r->address);
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        resolve(&r->step[i], &item[i]);
        r->step[i].first = first;
        r->step[i].nbind = item[i].nbind;
        if (item[i].nbind > 0)
            memcpy(r->bind + first, item[i].bind, item[i].nbind * sizeof *r->bind);
        first += item[i].nbind;
    }
    if (scratch == 0)
        return DC_OK;
    DC_TRY(scratch > PTRDIFF_MAX / 2 ? dc_fail(j, DC_ERR_NOMEM, NULL) : DC_OK);
    r->scratch = aligned_alloc(64, dc_align_up(scratch, 64));
    return r->scratch != NULL ? DC_OK : dc_fail(j, DC_ERR_NOMEM, NULL);
}

dc_status dc_cpu_record(dc_device *d, dc_job *j, const dc_item *item, uint32_t n,
                        dc_recording **out)
{
    DC_UNUSED(d);
    dc_recording *r = dc_xalloc(sizeof *r);
    dc_job_defer(j, release_recording, r);
    const dc_status status = fill(r, j, item, n);
    dc_job_keep(j, r);
    if (status != DC_OK) {
        release_recording(r);
        return status;
    }
    *out = r;
    return DC_OK;
}

void dc_cpu_recording_free(dc_device *d, dc_recording *r)
{
    DC_UNUSED(d);
    if (r != NULL)
        release_recording(r);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Runs one step. Returns what a CHECK read, or -1. */
static int32_t run_step(const dc_recording *r, const step *s, void *const *slot)
{
    void **at = r->address + s->first;
    const dc_bind *bind = r->bind + s->first;
    int32_t found = -1;
    for (uint32_t i = 0; i < s->nbind; i++)
        at[i] = (char *)slot[bind[i].slot] + bind[i].offset;
    switch (s->kind) {
    case DC_ITEM_LAUNCH:
        s->kernel(at, slot[0], r->scratch, 0, s->grid);
        break;
    case DC_ITEM_COPY:
        if (at[0] != at[1] && s->bytes > 0)
            memmove(at[0], at[1], s->bytes);
        break;
    case DC_ITEM_CHECK:
        memcpy(&found, at[0], sizeof found);
        break;
    case DC_ITEM_LOOP:
    case DC_ITEM_BRANCH:
        break;
    }
    return found;
}

dc_status dc_cpu_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                     dc_run_info *info)
{
    DC_UNUSED(d);
    uint64_t *spent = info != NULL ? info->nanoseconds : NULL;
    if (info != NULL) {
        info->fault_item = -1;
        info->fault_value = -1;
    }
    for (uint32_t i = 0; i < r->nstep; i++) {
        const uint64_t start = spent != NULL ? now() : 0;
        const int32_t found = run_step(r, &r->step[i], slot);
        if (spent != NULL)
            spent[i] += now() - start;
        if (found < 0)
            continue;
        if (info == NULL)
            return dc_failf(j, DC_ERR_DEVICE, "cpu", "check %" PRIu32 " of a run found %" PRId32, i,
                            found);
        info->fault_item = (int32_t)i;
        info->fault_value = found;
        return DC_OK;
    }
    return DC_OK;
}
