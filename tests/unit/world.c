#include "tests/unit/world.h"

#include "backends/registry.h"
#include "core/ir/gtext.h"
#include "jit/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/shuffle.h"

/* Checks of tests/t.h count where they stand, so what goes wrong here ends the program. */
static void must(bool ok, const world *w, const char *what)
{
    char why[600] = "";
    if (ok)
        return;
    if (w != NULL)
        dc_err_render(&w->j->err, 0, why, sizeof why);
    printf("failed: %s; %s\n", what, why);
    exit(1);
}

/* ---- the shim -------------------------------------------------------------------------------- */

/* Faults are reported by the position that the recorded list has. */
struct dc_recording {
    dc_recording *inner;
    uint32_t n;
    uint32_t *order; /* NULL: as it was given */
};

static shim *of(const dc_device *d)
{
    return (shim *)(uintptr_t)d;
}

static void shim_free(dc_device *d)
{
    of(d)->inner->ops->free(of(d)->inner);
    free(d);
}

static const dc_target *shim_target(const dc_device *d)
{
    return of(d)->inner->ops->target(of(d)->inner);
}

enum { ROUND = 4096, FRESH = 0x5a };

static dc_status shim_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    shim *s = of(d);
    if (s->spilled == NULL)
        return s->inner->ops->alloc(s->inner, j, bytes, out);
    char *at;
    DC_TRY(s->inner->ops->alloc(s->inner, j, bytes + 2 * ROUND, (void **)&at));
    memset(at, FRESH, bytes + 2 * ROUND);
    memcpy(at, &bytes, sizeof bytes);
    *out = at + ROUND;
    return DC_OK;
}

/* Is what lies round it as it was? */
static bool is_whole(const char *at)
{
    size_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    for (size_t i = sizeof bytes; i < ROUND; i++)
        if (at[i] != FRESH)
            return false;
    for (size_t i = 0; i < ROUND; i++)
        if (at[ROUND + bytes + i] != FRESH)
            return false;
    return true;
}

static void shim_release(dc_device *d, void *mem)
{
    shim *s = of(d);
    if (s->spilled != NULL && mem != NULL) {
        mem = (char *)mem - ROUND;
        *s->spilled += !is_whole(mem);
    }
    s->inner->ops->release(s->inner, mem);
}

static dc_status shim_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    shim *s = of(d);
    s->uploads++;
    if (s->on_upload != NULL)
        s->on_upload(s->ctx, to);
    if (s->fail_upload)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "the cable fell out");
    return s->inner->ops->upload(s->inner, j, to, from, bytes);
}

static dc_status shim_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    of(d)->downloads++;
    return of(d)->inner->ops->download(of(d)->inner, j, to, from, bytes);
}

static dc_status shim_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out)
{
    return of(d)->inner->ops->compile(of(d)->inner, j, src, out);
}

static void shim_settings(dc_device *d, dc_text *out)
{
    of(d)->inner->ops->settings(of(d)->inner, out);
}

static bool shim_maker(dc_device *d, dc_text *out)
{
    return of(d)->inner->ops->toolchain(of(d)->inner, out);
}

static dc_status shim_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                                size_t *bytes)
{
    return of(d)->inner->ops->translate(of(d)->inner, j, src, object, bytes);
}

static dc_status shim_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                           size_t bytes, dc_program **out)
{
    return of(d)->inner->ops->load(of(d)->inner, j, src, object, bytes, out);
}

static void shim_program_free(dc_device *d, dc_program *p)
{
    of(d)->inner->ops->program_free(of(d)->inner, p);
}

static const dc_command *in_another_order(shim *s, dc_arena *a, const dc_command *command,
                                          uint32_t n, uint32_t *order)
{
    if (!s->no_deps)
        return shuffle_items(a, command, n, s->seed, order);
    dc_command *free_items = DC_NEW_ARRAY(a, dc_command, n);
    for (uint32_t i = 0; i < n; i++) {
        free_items[i] = command[i];
        free_items[i].ndep = 0;
    }
    return shuffle_items(a, free_items, n, s->seed, order);
}

static dc_status shim_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                             dc_recording **out)
{
    shim *s = of(d);
    dc_arena a = {0};
    dc_recording *r = calloc(1, sizeof *r);
    r->n = n;
    if (s->seed != 0) {
        r->order = calloc(n + 1, sizeof *r->order);
        command = in_another_order(s, &a, command, n, r->order);
    }
    const dc_status status = s->inner->ops->record(s->inner, j, command, n, &r->inner);
    dc_arena_free(&a);
    if (status != DC_OK) {
        free(r->order);
        free(r);
        return status;
    }
    *out = r;
    return DC_OK;
}

static void shim_recording_free(dc_device *d, dc_recording *r)
{
    of(d)->inner->ops->recording_free(of(d)->inner, r->inner);
    free(r->order);
    free(r);
}

static dc_status shim_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                          dc_run_info *info)
{
    shim *s = of(d);
    s->runs++;
    info->begun |= s->on_run != NULL || (s->fail_run && !s->fail_unbegun);
    if (s->on_run != NULL)
        s->on_run(s->ctx, NULL);
    if (s->fail_run)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "the fan stopped");
    const dc_status status = s->inner->ops->run(s->inner, j, r->inner, slot, info);
    if (info->fault_command >= 0 && r->order != NULL)
        info->fault_command = (int32_t)r->order[info->fault_command];
    if (s->spoil != NULL)
        *s->spoil ^= 1;
    s->spoil = NULL;
    return s->fail_late ? dc_failf(j, DC_ERR_DEVICE, NULL, "the plug was pulled") : status;
}

static dc_status shim_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes)
{
    of(d)->copies++;
    return of(d)->inner->ops->copy(of(d)->inner, j, to, from, bytes);
}

static dc_status shim_reserve(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    const shim *s = of(d);
    if (s->no_space || s->inner->ops->reserve == NULL)
        return dc_fail(j, DC_ERR_NOMEM, NULL);
    return s->inner->ops->reserve(s->inner, j, bytes, out);
}

static dc_status shim_commit(dc_device *d, dc_job *j, void *mem, size_t bytes)
{
    return of(d)->inner->ops->commit(of(d)->inner, j, mem, bytes);
}

static dc_status shim_finish(dc_device *d, dc_job *j)
{
    return of(d)->inner->ops->finish(of(d)->inner, j);
}

static void be_like(shim *s, dc_device *inner)
{
    s->inner = inner;
    s->ops.host = inner->ops->host;
    s->ops.one_by_one = inner->ops->one_by_one;
    s->ops.settings = inner->ops->toolchain != NULL ? shim_settings : NULL;
    s->ops.toolchain = inner->ops->toolchain != NULL ? shim_maker : NULL;
    s->ops.translate = inner->ops->toolchain != NULL ? shim_translate : NULL;
    s->ops.load = inner->ops->toolchain != NULL ? shim_load : NULL;
    s->ops.copy = inner->ops->copy != NULL ? shim_copy : NULL;
    s->ops.finish = inner->ops->finish != NULL ? shim_finish : NULL;
}

shim *shim_new(dc_device *inner)
{
    static const dc_device_ops ops = {.name = "shim",
                                      .free = shim_free,
                                      .target = shim_target,
                                      .alloc = shim_alloc,
                                      .release = shim_release,
                                      .upload = shim_upload,
                                      .download = shim_download,
                                      .compile = shim_compile,
                                      .program_free = shim_program_free,
                                      .record = shim_record,
                                      .recording_free = shim_recording_free,
                                      .run = shim_run,
                                      .copy = shim_copy,
                                      .reserve = shim_reserve,
                                      .commit = shim_commit};
    shim *s = calloc(1, sizeof *s);
    s->ops = ops;
    s->base.ops = &s->ops;
    be_like(s, inner);
    return s;
}

/* ---- the context ----------------------------------------------------------------------------- */

static void hear(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    world *w = ctx;
    dc_text_printf(&w->said, "%.*s", (int)n, text);
    if (w->on_line != NULL)
        w->on_line(w->line_ctx);
}

void world_open(world *w, where on, const dc_opts *opt, const char *channels)
{
    static const dc_opts none = {.opt = 2};
    dc_device *d = NULL;
    dc_opts env;
    const char *bad;
    *w = (world){.on = on, .opt = opt != NULL ? *opt : none};
    dc_opts_init(&env, &bad);
    memcpy(w->opt.dump, env.dump,
           sizeof w->opt.dump); /* scripts/kernels wants these kernels, too */
    if (w->opt.machine[0] == '\0')
        memcpy(w->opt.machine, env.machine, sizeof w->opt.machine);
    w->log = (dc_log){.write = hear, .ctx = w};
    dc_log_select(&w->log, channels);
    w->rt = dc_rt_new(&w->opt, &w->log);
    w->j = &w->rt->job;
    bool interpret = false;
    if (on == ON_NOTHING)
        d = dc_host_device_new();
    else
        must(dc_backend_open(w->j, on == ON_CPU ? "cpu" : "eval", &d, &interpret) == DC_OK, w,
             "the device opens");
    must(interpret == (on == ON_EVAL), NULL, "eval is interpreted");
    w->dev = shim_new(d);
    dc_rt_set_device(w->rt, &w->dev->base, on == ON_EVAL);
}

bool world_device(world *w, const char *name)
{
    dc_device *d;
    bool interpret = false;
    const dc_status status = strncmp(name, "sim:", 4) == 0
                                 ? dc_sim_open(w->j, name, &d)
                                 : dc_backend_open(w->j, name, &d, &interpret);
    if (status != DC_OK)
        return false;
    w->dev->inner->ops->free(w->dev->inner);
    be_like(w->dev, d);
    return true;
}

void world_close(world *w)
{
    must(w->rt->arena_users == 0 && !w->rt->arena_busy, NULL, "no call uses the arena");
    must(w->rt->arena == NULL && w->rt->arena_at == NULL, NULL, "the arena went back");
    must(w->rt->execs == NULL, NULL, "no executable is left");
    must(w->rt->stats.bytes_live == 0, NULL, "no memory is left");
    dc_rt_free(w->rt);
    dc_text_free(&w->said);
}

dc_exec *world_build(world *w, const char *text, const signature *s)
{
    dc_module *m = NULL;
    dc_exec *e = NULL;
    must(dc_module_parse(w->j, text, &m) == DC_OK, w, "the text is a module");
    const dc_func *fn = m->func.at[0];
    const dc_exec_desc d = {.fn = fn,
                            .name = fn->name,
                            .nfree = s->nfree,
                            .ncell = fn->param.n - s->nfree,
                            .nresult = s->nresult,
                            .nset = s->nset,
                            .ncheck = s->ncheck,
                            .set = s->set};
    const dc_status status = dc_exec_build(w->rt, w->j, &d, &e);
    dc_module_free(m);
    must(status == DC_OK, w, "it compiles");
    return e;
}

dc_inst *world_bind(world *w, dc_exec *e, dc_cell *const *cell)
{
    dc_inst *i = NULL;
    must(dc_inst_new(w->rt, w->j, e, cell, &i) == DC_OK, w, "an instance");
    return i;
}

/* ---- values ---------------------------------------------------------------------------------- */

dc_tensor *world_tensor(world *w, dc_dtype t, int64_t n, float first)
{
    dc_tensor *x;
    const dc_type type = n == 0 ? dc_type_scalar(t) : dc_type_make(t, 1, (int64_t[]){n});
    must(dc_tensor_new(w->rt, w->j, &type, &x) == DC_OK, w, "a tensor");
    const size_t bytes = dc_type_bytes(&type), size = dc_dtype_size(t);
    char *host = malloc(bytes);
    for (size_t i = 0; i < bytes / size; i++)
        dc_bits_store(t, host + i * size, dc_bits_of(t, (double)first + (double)i));
    shim *d = w->dev; /* what a test wants to happen happens to its own uploads */
    must(d->inner->ops->upload(d->inner, w->j, dc_tensor_mem(x), host, bytes) == DC_OK, w,
         "a tensor is filled");
    free(host);
    return x;
}

dc_cell *world_cell(world *w, int64_t n, float first, const char *label)
{
    dc_cell *c;
    dc_tensor *x = world_tensor(w, DC_F32, n, first);
    must(dc_cell_new(w->rt, w->j, &x->type, label, true, &c) == DC_OK, w, "a cell");
    must(dc_cell_write(c, w->j, x) == DC_OK, w, "a cell is written");
    dc_tensor_release(x);
    return c;
}

void world_release(dc_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dc_tensor_release(t[i]);
        t[i] = NULL;
    }
}

static float load(const dc_storage *s, int i)
{
    float x;
    dc_device *d = s->rt->device;
    const char *at = (const char *)s->mem + (size_t)i * sizeof x;
    must(d->ops->download(d, &s->rt->job, &x, at, sizeof x) == DC_OK, NULL, "a value is read");
    return x;
}

float value_at(const dc_tensor *x, int i)
{
    return load(x->store, i);
}

float cell_at(const dc_cell *c, int i)
{
    return load(c->store, i);
}

dc_err_id world_failure(world *w)
{
    const dc_err_id id = w->j->err.id;
    w->j->err = (dc_err){0};
    return id;
}

const char world_step[] = "func step(%1: f32[8] \"g\", %2: f32[] \"lr\", %3: f32[8] \"w\") {\n"
                          "  %4 = reshape %2 : f32[1]\n"
                          "  %5 = expand %4 : f32[8]\n"
                          "  %6 = mul %5, %1 : f32[8]\n"
                          "  %7 = sub %3, %6 : f32[8]\n"
                          "  %8 = sum %3 {1} : f32[]\n"
                          "  return %8, %7, %7\n}\n";
const signature world_step_signature = {.nfree = 2, .nresult = 2, .nset = 1};
