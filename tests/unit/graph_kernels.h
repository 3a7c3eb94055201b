/*
 * Kernels of random graphs as machine code against the interpreter of the nest form, bit for bit:
 * as lowered and with schedules for two targets, with each set of passes. The kernels are strict,
 * so that rounding is determined; those with exp or log only have to stay inside their buffers.
 *
 *   graph_kernels("cpu", seed, graphs, 1);    so many graphs share one program
 */
#ifndef DC_TESTS_GRAPH_KERNELS_H
#define DC_TESTS_GRAPH_KERNELS_H

#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/schedule/schedule.h"

#include "tests/unit/graphgen.h"
#include "tests/unit/kernel_run.h"
#include "tests/unit/nest_interp.h"

enum { MAX_PARAMS = 32, MAX_KERNELS = 400, MAX_BATCH = 64, SCHEDULES = 3 };

typedef struct sample {
    dc_kernel *k;
    int number;   /* of the runner */
    bool rounded; /* contains what is only nearly right */
} sample;

static long compared;

static inline bool is_rounded(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (n->kind == DC_VX_OP && (dc_op_row_of(n->op)->flags & DC_OPF_NEAR))
            return true;
    }
    return false;
}

/* Small numbers, some of them fractions, now and then what is special to floats. */
static inline uint64_t any_value(rng *r, dc_dtype t)
{
    static const double special[] = {INFINITY, -INFINITY, NAN, -0.0, 1e-40};
    if (rng_below(r, 30) == 0)
        return dc_bits_of(t, special[rng_below(r, (int)DC_COUNTOF(special))]);
    return dc_bits_of(t, (rng_below(r, 41) - 20) / (double)(1 + rng_below(r, 4)));
}

static const dc_buffer *param_of(const dc_kernel *k, uint32_t param)
{
    for (uint32_t n = 0; n < k->buf.n; n++)
        if (k->buf.at[n].scope == DC_SCOPE_PARAM && k->buf.at[n].param == param)
            return &k->buf.at[n];
    DC_BUG("no parameter %u", param);
}

static inline bool same(dc_dtype t, const char *a, const char *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t x = dc_bits_load(t, a + (size_t)i * dc_dtype_size(t));
        const uint64_t y = dc_bits_load(t, b + (size_t)i * dc_dtype_size(t));
        const bool nan =
            dc_dtype_is_float(t) && isnan(dc_value_of(t, x)) && isnan(dc_value_of(t, y));
        if (x != y && !nan)
            return false;
    }
    return true;
}

static inline void show(const runner *r, const sample *s, uint64_t seed)
{
    dc_text text = {0};
    dc_nest_print(s->k, &text);
    dc_flat_print(r->flat.at[s->number], &text);
    printf("    seed %llu\n%s\n", (unsigned long long)seed, text.s);
    dc_text_free(&text);
}

static inline void run(runner *r, const sample *s, uint64_t seed)
{
    rng random = {seed};
    char *want[MAX_PARAMS], *got[MAX_PARAMS];
    bool right = true;
    for (uint32_t p = 0; p < s->k->nparam; p++) {
        const dc_buffer *b = param_of(s->k, p);
        const dc_dtype t = (dc_dtype)b->dtype;
        const size_t bytes = (size_t)b->count * dc_dtype_size(t);
        want[p] = calloc(bytes + 1, 1);
        for (int64_t i = 0; i < b->count; i++)
            dc_bits_store(t, want[p] + (size_t)i * dc_dtype_size(t), any_value(&random, t));
    }
    nest_need_all(s->k, s->k->naive != NULL ? s->k->naive : s->k->root, (void *const *)want);
    for (uint32_t p = 0; p < s->k->nparam; p++) {
        const dc_buffer *b = param_of(s->k, p);
        const size_t bytes = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        got[p] = memcpy(malloc(bytes + 1), want[p], bytes);
    }
    CHECK(dc_nest_run(&r->job, s->k, (void *const *)want) == DC_OK);
    runner_run_range(r, s->number, grid_of(s->k), (void *const *)got);
    for (uint32_t p = 0; p < s->k->nparam; p++) {
        const dc_buffer *b = param_of(s->k, p);
        right = right && (s->rounded || same((dc_dtype)b->dtype, got[p], want[p], b->count));
        compared += !s->rounded;
        free(want[p]);
        free(got[p]);
    }
    if (!CHECK(right))
        show(r, s, seed);
}

static inline bool add(runner *r, const dc_groups *g, uint32_t group, int schedule, uint32_t skip,
                       sample *out)
{
    static const dc_target narrow = {.name = "narrow", .vector_bytes = 16, .vector_registers = 16};
    dc_kernel *k;
    if (!CHECK(dc_lower(&r->job, g, group, &k) == DC_OK))
        return false;
    bool usable = k->nparam <= MAX_PARAMS;
    for (uint32_t p = 0; p < k->nparam; p++)
        usable = usable && !(param_of(k, p)->mode == DC_MODE_OUT && param_of(k, p)->count == 0);
    if (!usable) { /* nothing to compute: such groups are never launched */
        dc_kernel_free(k);
        return false;
    }
    k->strict = true;
    if (schedule > 0)
        CHECK(dc_schedule(&r->job, k, schedule == 1 ? &narrow : r->device->ops->target(r->device),
                          2) == DC_OK);
    *out = (sample){k, runner_add(r, k, skip), is_rounded(k)};
    return true;
}

typedef struct batch {
    runner r;
    dc_arena mem;
    dc_module *m;
    sample s[MAX_BATCH * MAX_KERNELS];
    uint64_t seed[MAX_BATCH * MAX_KERNELS]; /* of the values of each */
    int n;
} batch;

static inline void add_graph(batch *b, uint64_t seed)
{
    dc_groups groups;
    const int first = b->n;
    const dc_func *f = graphgen_func(b->m, seed, 5 + (int)(seed % 25));
    if (seed % 3 != 0)
        f = dc_simplify(f);
    if (!CHECK(dc_fuse(&b->r.job, &b->mem, f, seed % 2 ? 2 : 0, &groups) == DC_OK))
        return;
    for (uint32_t g = 0; g < groups.n; g++)
        for (int schedule = 0; schedule < SCHEDULES && b->n - first < MAX_KERNELS; schedule++) {
            b->seed[b->n] = seed * MAX_KERNELS + (uint64_t)((b->n - first) / SCHEDULES);
            b->n += add(&b->r, &groups, g, schedule, (uint32_t)(seed / 7 % 4), &b->s[b->n]);
        }
}

static inline void try_batch(const char *device, uint64_t seed, uint64_t graphs)
{
    batch *b = calloc(1, sizeof *b);
    if (runner_open_on(&b->r, device)) {
        b->m = dc_module_new();
        for (uint64_t i = 0; i < graphs; i++)
            add_graph(b, seed + i);
        const bool built = b->n > 0 && runner_build(&b->r);
        for (int i = 0; i < b->n; i++) {
            if (built && b->s[i].number >= 0)
                run(&b->r, &b->s[i], b->seed[i]);
            dc_kernel_free(b->s[i].k);
        }
        runner_close(&b->r);
        dc_arena_free(&b->mem);
        dc_module_free(b->m);
    }
    free(b);
}

static inline void graph_kernels(const char *device, uint64_t seed, uint64_t graphs, uint64_t size)
{
    for (uint64_t i = 0; i < graphs; i += size)
        try_batch(device, seed + i, graphs - i < size ? graphs - i : size);
    printf("    %s: %ld buffers compared\n", device, compared);
}

#endif
