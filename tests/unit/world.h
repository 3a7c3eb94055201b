/*
 * A context for tests of executables and instances, over a device that stands behind a shim: it
 * forwards everything and can be told to call back, to fail, to write where it should not, or to
 * run commands in another order that their dependencies allow.
 */
#ifndef DC_TESTS_WORLD_H
#define DC_TESTS_WORLD_H

#include "core/base/vec.h"
#include "jit/jit.h"

typedef struct shim {
    dc_device base;
    dc_device_ops ops;
    dc_device *inner;
    void (*on_upload)(void *ctx, void *to); /* called before an upload */
    void (*on_run)(void *ctx, void *to);    /* called before a run */
    void *ctx;
    bool fail_upload, fail_run;
    bool fail_unbegun; /* with fail_run: before anything was begun */
    bool fail_late; /* a run does all it should and then fails */
    bool no_space;  /* there are no addresses to reserve */
    char *spoil;    /* one byte here is overwritten by the next run */
    uint64_t seed;  /* what is recorded from now on runs in another order; 0: in its own */
    bool no_deps;   /* ... and without regard to dependencies */
    uint64_t runs, uploads, downloads, copies; /* calls so far */
    uint32_t *
        spilled; /* not NULL: counts allocations whose surroundings were written to, when they are released */
} shim;

/* Becomes the owner of `inner`. */
shim *shim_new(dc_device *inner);

typedef enum where { ON_EVAL, ON_CPU, ON_NOTHING } where; /* the last compiles nothing */

typedef struct world {
    where on;
    dc_opts opt;
    dc_log log;
    dc_text said;
    void (*on_line)(void *ctx); /* a log hook, called after each line */
    void *line_ctx;
    dc_rt *rt;
    dc_job *j;
    shim *dev;
} world;

/* opt NULL: DEEPC_OPT=2 and nothing else. Exits where there is no such device. */
void world_open(world *w, where on, const dc_opts *opt, const char *channels);
/* Nothing is left of what instances and executables had. */
void world_close(world *w);
/* Another device than the CPU, before anything is made; false, with a record, where it is not there.
 */
bool world_device(world *w, const char *name);

typedef struct signature {
    uint32_t nfree, nresult, nset, ncheck;
    uint32_t set[4];
} signature;

/* Of a module's only function; its other parameters are cells. They exit on failure. */
dc_exec *world_build(world *w, const char *text, const signature *s);
dc_inst *world_bind(world *w, dc_exec *e, dc_cell *const *cell);

/* first, first + 1, ...; n = 0: a scalar. */
dc_tensor *world_tensor(world *w, dc_dtype t, int64_t n, float first);
dc_cell *world_cell(world *w, int64_t n, float first, const char *label);
void world_release(dc_tensor **t, uint32_t n);

float value_at(const dc_tensor *x, int i);
float cell_at(const dc_cell *c, int i);

static inline dc_arg number(float x)
{
    return (dc_arg){.bits = dc_f32_bits(x)};
}

static inline dc_arg given(const dc_tensor *x)
{
    return (dc_arg){.tensor = x};
}

/* The failure in the job's record, which is cleared. */
dc_err_id world_failure(world *w);

/* w = w - lr * g, returns the sum of the old w and the new w: two free, one cell, eight elements */
extern const char world_step[];
extern const signature world_step_signature;

#endif
