/*
 * Runs kernels in nest form on the device `cpu`, or another one with the host's memory, between guard
 * zones. Used by the tests of the way from nest to text.
 *
 *   runner r;
 *   if (runner_open(&r)) { n = runner_add(&r, kernel, skip); ...; runner_build(&r);
 *                          runner_run(&r, n, mem); runner_close(&r); }
 */
#ifndef DC_TESTS_KERNEL_RUN_H
#define DC_TESTS_KERNEL_RUN_H

#include "backends/registry.h"
#include "jit/flat/flatten.h"
#include "jit/render/render.h"

#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, n)   ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

#include "tests/t.h"

typedef struct runner {
    dc_opts opt;
    dc_log log;
    dc_job job;
    dc_device *device;
    dc_program *program;
    DC_VEC(dc_flat *) flat;
    DC_VEC(const char *) entry;
    dc_text text;
    bool portable; /* kernels do without what not every target has */
} runner;

static inline void runner_complain(runner *r)
{
    char text[600];
    dc_err_render(&r->job.err, 1, text, sizeof text);
    printf("    %s\n", text);
    r->job.err = (dc_err){0};
}

static inline bool runner_open_on(runner *r, const char *device)
{
    const char *bad;
    *r = (runner){0};
    dc_opts_init(&r->opt, &bad);
    r->opt.check = 1;
#ifdef __SANITIZE_ADDRESS__ /* then the kernels of cpu:cc are sanitized, too */
    if (strcmp(r->opt.cc, "cc") == 0)
        strcpy(r->opt.cc, "cc -fsanitize=address,undefined -fno-sanitize-recover=all");
#endif
    dc_job_init(&r->job, &r->opt, &r->log);
    bool interpret;
    if (CHECK(dc_backend_open(&r->job, device, &r->device, &interpret) == DC_OK))
        return true;
    runner_complain(r);
    dc_job_fini(&r->job);
    return false;
}

static inline bool runner_open(runner *r)
{
    return runner_open_on(r, "cpu");
}

/* Flattens; the kernel's number, or -1. */
static inline int runner_add(runner *r, dc_kernel *k, uint32_t skip)
{
    const dc_target *t = r->portable ? NULL : r->device->ops->target(r->device);
    dc_flat *f = NULL;
    snprintf(k->name, sizeof k->name, "k%u", r->flat.n);
    if (!CHECK(dc_nest_check(&r->job, k) == DC_OK) ||
        !CHECK(dc_flatten_for(&r->job, k, t, skip, &f) == DC_OK)) {
        runner_complain(r);
        return -1;
    }
    DC_PUSH(r->flat, f);
    DC_PUSH(r->entry, f->name);
    return (int)r->flat.n - 1;
}

/* A flat form made elsewhere; the runner owns it from now on. Returns its number. */
static inline int runner_add_flat(runner *r, dc_flat *f)
{
    snprintf(f->name, sizeof f->name, "k%u", r->flat.n);
    DC_PUSH(r->flat, f);
    DC_PUSH(r->entry, f->name);
    return (int)r->flat.n - 1;
}

/* False, and a skip, where there is no compiler. */
static inline bool runner_build(runner *r)
{
    const dc_target *t = r->device->ops->target(r->device);
    if (!CHECK(dc_render(&r->job, (const dc_flat *const *)r->flat.at, r->flat.n, t, &r->text) ==
               DC_OK))
        return false;
    const dc_source src = {r->text.s, t->dialect, r->entry.at, r->entry.n};
    const dc_status s = r->device->ops->compile(r->device, &r->job, &src, &r->program);
    if (s == DC_OK)
        return CHECK(true);
    if (s == DC_E_DEVICE)
        T_SKIP("no compiler, kernels cannot be compiled");
    else
        CHECK(s == DC_OK);
    runner_complain(r);
    return false;
}

enum { GUARD = 64, GUARD_BYTE = 0x5a };

static inline bool runner_guards_whole(const unsigned char *mem, size_t bytes, size_t room)
{
    for (size_t i = 0; i < GUARD; i++)
        if (mem[i] != GUARD_BYTE)
            return false;
    for (size_t i = GUARD + bytes; i < room; i++)
        if (mem[i] != GUARD_BYTE)
            return false;
    return true;
}

/* mem[p]: the content of parameter p on the host, replaced by what it is afterwards. */
static inline void runner_run_range(runner *r, int kernel, int64_t grid, void *const *mem)
{
    const dc_flat *f = r->flat.at[kernel];
    const dc_device_ops *ops = r->device->ops;
    void *slot[33] = {NULL}; /* 0 is the argument block: none */
    size_t bytes[33], room[33];
    dc_bind bind[32];
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        const uint32_t s = b->param + 1;
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        bytes[s] = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        room[s] = dc_align_up(bytes[s], 64) + 2 * GUARD;
        CHECK(ops->alloc(r->device, &r->job, room[s], &slot[s]) == DC_OK);
        memset(slot[s], GUARD_BYTE, room[s]);
        memcpy((char *)slot[s] + GUARD, mem[b->param], bytes[s]);
        ASAN_POISON_MEMORY_REGION(slot[s], GUARD);
        ASAN_POISON_MEMORY_REGION((char *)slot[s] + GUARD + bytes[s], room[s] - GUARD - bytes[s]);
        bind[b->param] = (dc_bind){s, GUARD};
    }
    const dc_command item = {.kind = DC_COMMAND_LAUNCH,
                             .program = r->program,
                             .entry = (uint32_t)kernel,
                             .grid = grid,
                             .nbind = f->nparam,
                             .bind = bind,
                             .scratch = f->scratch,
                             .label = f->name};
    dc_recording *recording = NULL;
    dc_run_info info = {0};
    CHECK(ops->record(r->device, &r->job, &item, 1, &recording) == DC_OK);
    CHECK(ops->run(r->device, &r->job, recording, slot, &info) == DC_OK);
    ops->recording_free(r->device, recording);
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        const uint32_t s = b->param + 1;
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        ASAN_UNPOISON_MEMORY_REGION(slot[s], room[s]);
        CHECK(runner_guards_whole(slot[s], bytes[s], room[s]));
        memcpy(mem[b->param], (char *)slot[s] + GUARD, bytes[s]);
        ops->release(r->device, slot[s]);
    }
}

/* Work items of a kernel: the extent of its grid axis, else 1. */
static inline int64_t grid_of(const dc_kernel *k)
{
    return dc_nest_launch(k).positions;
}

static inline void runner_close(runner *r)
{
    for (uint32_t n = 0; n < r->flat.n; n++)
        dc_flat_free(r->flat.at[n]);
    if (r->program != NULL)
        r->device->ops->program_free(r->device, r->program);
    r->device->ops->free(r->device);
    DC_VEC_FREE(r->flat);
    DC_VEC_FREE(r->entry);
    dc_text_free(&r->text);
    dc_job_fini(&r->job);
}

#endif
