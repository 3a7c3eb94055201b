/*
 * The devices sim:* (jit/sim/sim.h). Memory is the host's, filled with a pattern that is no number where
 * it is new. A program is the parsed kernels of its text; a launch is one call of the interpreter.
 */
#include "jit/sim/sim.h"

#include "core/host/host_step.h"
#include "core/runtime/walk.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <inttypes.h>
#include <string.h>

enum { ALIGN = 64, FRESH = 0xff };

typedef struct sim {
    dc_device device;
    const dc_target *target;
} sim;

struct dc_program {
    DC_VEC(dc_flat *) flat;
    uint32_t nentry;
    const dc_flat **entry;
};

struct dc_recording {
    dc_command *command; /* binds in the walk, nothing else that points */
    void **address;      /* room for the binds of a launch */
    dc_walk *walk;
    uint32_t n;
    dc_host_step **host; /* by command: of those for the host; else NULL */
};

static void sim_free(dc_device *d)
{
    dc_xfree(d);
}

static const dc_target *sim_target(const dc_device *d)
{
    return ((const sim *)d)->target;
}

/* Memory ------------------------------------------------------------------------------------ */

static dc_status sim_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    DC_UNUSED(d);
    *out = bytes > PTRDIFF_MAX / 2 ? NULL : dc_try_aligned(ALIGN, bytes);
    if (*out == NULL)
        return dc_fail_memory(j, bytes);
    memset(*out, FRESH, bytes);
    return DC_OK;
}

/* Programs ---------------------------------------------------------------------------------- */

static void release_program(void *what)
{
    dc_program *p = what;
    for (uint32_t i = 0; i < p->flat.n; i++)
        dc_flat_free(p->flat.at[i]);
    DC_VEC_FREE(p->flat);
    dc_xfree(p->entry);
    dc_xfree(p);
}

static dc_status read_kernels(dc_program *p, dc_job *j, const char *text)
{
    for (;;) {
        dc_flat *f;
        DC_ROOM(p->flat);
        DC_TRY(dc_flat_parse(j, &text, &f));
        if (f == NULL)
            return DC_OK;
        DC_PUSH(p->flat, f);
        DC_TRY(dc_flat_check(j, f));
    }
}

static dc_status find_entries(dc_program *p, dc_job *j, const dc_source *src)
{
    p->entry = dc_xalloc(src->nentry * sizeof *p->entry);
    p->nentry = src->nentry;
    for (uint32_t e = 0; e < src->nentry; e++) {
        for (uint32_t i = 0; i < p->flat.n && p->entry[e] == NULL; i++)
            if (strcmp(p->flat.at[i]->name, src->entry[e]) == 0)
                p->entry[e] = p->flat.at[i];
        if (p->entry[e] == NULL)
            return dc_failf(j, DC_ERR_BUILD, "sim", "no kernel is called '%s'", src->entry[e]);
    }
    return DC_OK;
}

static dc_status sim_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    DC_UNUSED(d);
    if (strcmp(src->dialect, "flat") != 0)
        return dc_failf(j, DC_ERR_BUILD, "sim", "kernels come in flat form, not as '%s'",
                        src->dialect);
    dc_program *p = dc_xalloc(sizeof *p);
    dc_job_defer(j, release_program, p);
    const dc_status s = read_kernels(p, j, src->text);
    DC_TRY(dc_job_settle(j, p, s == DC_OK ? find_entries(p, j, src) : s));
    *out = p;
    return DC_OK;
}

static void sim_program_free(dc_device *d, dc_program *p)
{
    DC_UNUSED(d);
    if (p != NULL)
        release_program(p);
}

/* Recordings -------------------------------------------------------------------------------- */

static void release_recording(void *what)
{
    dc_recording *r = what;
    for (uint32_t i = 0; i < r->n && r->host != NULL; i++)
        dc_xfree(r->host[i]);
    dc_xfree(r->host);
    dc_xfree(r->command);
    dc_xfree(r->address);
    dc_walk_free(r->walk);
    dc_xfree(r);
}

/* Does the launch give the kernel what its text asks for? */
static dc_status check_launch(const sim *d, dc_job *j, const dc_command *command)
{
    DC_ASSERT(command->entry < command->program->nentry, "launch of kernel %u of %u",
              command->entry, command->program->nentry);
    const dc_flat *f = command->program->entry[command->entry];
    const char *wrong = NULL;
    if (command->nbind != f->nparam)
        wrong = "parameters";
    else if (f->positions != 0 && command->grid != f->positions)
        wrong = "positions";
    else if (f->simt && command->threads != f->threads)
        wrong = "threads";
    else if (command->scratch < f->scratch)
        wrong = "scratch memory";
    else if (f->simt != d->target->simt)
        wrong = "threads or workers";
    if (wrong == NULL)
        return DC_OK;
    return dc_failf(j, DC_ERR_DEVICE, d->target->name, "a launch of %s has other %s than its text",
                    f->name, wrong);
}

static dc_status record_items(dc_recording *r, const sim *d, dc_job *j, const dc_command *command,
                              uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        most = command[i].nbind > most ? command[i].nbind : most;
        if (command[i].kind == DC_COMMAND_LAUNCH)
            DC_TRY(check_launch(d, j, &command[i]));
    }
    r->n = n;
    r->host = dc_xalloc(n * sizeof *r->host);
    for (uint32_t i = 0; i < n; i++)
        if (command[i].kind == DC_COMMAND_HOST)
            DC_TRY(dc_host_step_new(j, command[i].host, command[i].nhost, command[i].label, true,
                                    &r->host[i]));
    r->command = dc_xalloc(n * sizeof *r->command);
    r->address = dc_xalloc(most * sizeof *r->address);
    r->walk = dc_walk_new(command, n);
    for (uint32_t i = 0; i < n; i++) {
        r->command[i] = command[i];
        r->command[i].bind = dc_walk_binds(r->walk, i);
        r->command[i].dep = NULL;
        r->command[i].host = NULL;
    }
    return DC_OK;
}

static dc_status sim_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                            dc_recording **out)
{
    dc_recording *r = dc_xalloc(sizeof *r);
    dc_job_defer(j, release_recording, r);
    DC_TRY(dc_job_settle(j, r, record_items(r, (const sim *)d, j, command, n)));
    *out = r;
    return DC_OK;
}

static void sim_recording_free(dc_device *d, dc_recording *r)
{
    DC_UNUSED(d);
    if (r != NULL)
        release_recording(r);
}

/* Runs -------------------------------------------------------------------------------------- */

typedef struct run { /* context of the walk */
    dc_job *j;
    const dc_recording *r;
    void *const *slot;
} run;

static void *address_of(const run *x, uint32_t command, uint32_t bind)
{
    const dc_bind *b = &x->r->command[command].bind[bind];
    return (char *)x->slot[b->slot] + dc_walk_offset(x->r->walk, command, bind);
}

static dc_status run_launch(void *ctx, uint32_t command)
{
    const run *x = ctx;
    const dc_command *i = &x->r->command[command];
    for (uint32_t n = 0; n < i->nbind; n++)
        x->r->address[n] = address_of(x, command, n);
    return dc_flat_run(x->j, i->program->entry[i->entry], x->r->address, 0, i->grid);
}

static dc_status run_host(void *ctx, uint32_t command)
{
    const run *x = ctx;
    const dc_host_step *s = x->r->host[command];
    for (uint32_t n = 0; n < x->r->command[command].nbind; n++)
        x->r->address[n] = address_of(x, command, n);
    return dc_host_step_run(s, x->j, NULL, x->r->address, s->work, 0, s->rows);
}

/* Kernels of a bundle may not care about their order: the last one first. */
static dc_status run_bundle(void *ctx, uint32_t first, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        DC_TRY(run_launch(ctx, first + i));
    return DC_OK;
}

static dc_status run_copy(void *ctx, uint32_t command)
{
    const run *x = ctx;
    if (x->r->command[command].bytes > 0)
        memmove(address_of(x, command, 0), address_of(x, command, 1), x->r->command[command].bytes);
    return DC_OK;
}

static dc_status run_check(void *ctx, uint32_t command, int32_t *out, uint64_t *bits)
{
    const run *x = ctx;
    const size_t bytes = x->r->command[command].bytes;
    memcpy(out, address_of(x, command, 0), sizeof *out);
    if (*out >= 0 && bytes > 0)
        memcpy(bits, address_of(x, command, 1), bytes);
    return DC_OK;
}

static dc_status run_test(void *ctx, uint32_t command, bool *out)
{
    *out = *(const unsigned char *)address_of(ctx, command, 0) != 0;
    return DC_OK;
}

static dc_status run_count(void *ctx, uint32_t command, int32_t element)
{
    memcpy(address_of(ctx, command, 1), &element, sizeof element);
    return DC_OK;
}

static dc_status run_limit(void *ctx, uint32_t command, int32_t *out)
{
    memcpy(out, address_of(ctx, command, 2), sizeof *out);
    return DC_OK;
}

static dc_status sim_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                         dc_run_info *info)
{
    static const dc_walk_ops ops = {.launch = run_launch,
                                    .copy = run_copy,
                                    .check = run_check,
                                    .test = run_test,
                                    .count = run_count,
                                    .bundle = run_bundle,
                                    .limit = run_limit,
                                    .host = run_host};
    run x = {j, r, slot};
    DC_UNUSED(d);
    return dc_walk_run(r->walk, j, &ops, &x, info);
}

/* The device -------------------------------------------------------------------------------- */

bool dc_sim_is(const char *name)
{
    return strncmp(name, "sim:", 4) == 0;
}

void dc_sim_list(void (*see)(void *ctx, const char *name, bool usable, const char *line), void *ctx)
{
    see(ctx, "sim:cpu", true, "the interpreter of kernels: workers, vectors of 16 bytes");
    see(ctx, "sim:cuda", true, "the same: groups of 1024 threads at most, 32 lanes");
    see(ctx, "sim:opencl", true, "the same: groups of 256 threads at most");
}

dc_status dc_sim_open(dc_job *j, const char *name, dc_device **out)
{
    static const dc_device_ops ops = {
        .name = "sim",
        .free = sim_free,
        .target = sim_target,
        .alloc = sim_alloc,
        .release = dc_host_release,
        .compile = sim_compile,
        .program_free = sim_program_free,
        .record = sim_record,
        .recording_free = sim_recording_free,
        .run = sim_run,
        DC_HOST_MEMORY_OPS,
    };
    const dc_target *t = dc_sim_is(name) ? dc_sim_target_named(name) : NULL;
    if (t == NULL)
        return dc_failf(j, DC_ERR_DEVICE, NULL,
                        "no device is called '%.40s'; there are sim:cpu, sim:cuda, sim:opencl",
                        name);
    sim *d = dc_xalloc(sizeof *d);
    d->device.ops = &ops;
    d->target = t;
    *out = &d->device;
    return DC_OK;
}
