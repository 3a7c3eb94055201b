/*
 * The interpreter of the flat form over kernels of random graphs: against the interpreter of the nest
 * form, bit for bit, with each set of passes, and without the barriers that they need.
 *
 *   test_finterp_graphs [seed [graphs]]
 */
#include "core/ir/op.h"
#include "core/ir/simplify.h"
#include "jit/flat/flatten.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/sim_target.h"

#include <stdlib.h>

#include "tests/unit/flat_run.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/nest_interp.h"

enum { MAX_PARAMS = 32, PASSES = 2 };

static long compared;

/* exp and log are expanded to instructions that are only nearly right. */
static bool is_rounded(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (n->kind == DC_VX_OP && (dc_op_row_of(n->op)->flags & DC_OPF_NEAR))
            return true;
    }
    return false;
}

typedef struct params { /* of a kernel, by number */
    const dc_buffer *buf[MAX_PARAMS];
    void *mem[MAX_PARAMS];
} params;

static size_t bytes_of(const dc_buffer *b)
{
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

/* In scratch memory; what fills it depends on the seed alone. */
static params params_of(const dc_kernel *k, uint64_t seed)
{
    params p = {0};
    rng r = {seed};
    for (uint32_t n = 0; n < k->buf.n; n++) {
        const dc_buffer *b = &k->buf.at[n];
        const dc_type t = dc_type_make((dc_dtype)b->dtype, 1, &b->count);
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        p.buf[b->param] = b;
        p.mem[b->param] = dc_arena_alloc(&flat_job.scratch, bytes_of(b));
        graphgen_input(&r, &t, seed % 4 == 3, p.mem[b->param]);
    }
    nest_need_all(k, k->naive != NULL ? k->naive : k->root, p.mem);
    return p;
}

static bool same_memory(const dc_buffer *b, const char *x, const char *y)
{
    const dc_dtype t = (dc_dtype)b->dtype;
    for (int64_t i = 0; i < b->count; i++) {
        const size_t at = (size_t)i * dc_dtype_size(t);
        if (!flat_same(t, dc_bits_load(t, x + at), dc_bits_load(t, y + at)))
            return false;
    }
    return true;
}

static long barriers, missed; /* that were left out; of which that went unnoticed */

/* One at a time. A barrier that orders nothing is not missed; where one is, it is by name. */
static void leave_out_barriers(dc_flat *f, const dc_kernel *k, uint64_t seed)
{
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const size_t rest = (f->order.n - n - 1) * sizeof v;
        if (dc_finst_at(f, v)->op != DC_K_BARRIER)
            continue;
        params p = params_of(k, seed);
        memmove(f->order.at + n, f->order.at + n + 1, rest);
        f->order.n--;
        const bool noticed = !flat_runs(f, p.mem, f->positions);
        barriers++;
        missed += !noticed;
        if (noticed)
            flat_says("with no barrier between");
        memmove(f->order.at + n + 1, f->order.at + n, rest);
        f->order.at[n] = v;
        f->order.n++;
    }
}

static void try_kernel(dc_kernel *k, const dc_target *t, uint64_t seed)
{
    const bool rounded = is_rounded(k);
    params want = params_of(k, seed);
    if (!CHECK(dc_nest_run(&flat_job, k, want.mem) == DC_OK))
        printf("    %s\n", flat_said());
    for (uint32_t skip = 0; skip < 1 << PASSES; skip++) {
        params got = params_of(k, seed);
        dc_flat *f = NULL;
        bool right = CHECK(dc_flatten_for(&flat_job, k, t, skip, &f) == DC_OK) &&
                     CHECK(flat_runs(f, got.mem, f->positions));
        if (!right)
            printf("    %s\n", flat_said());
        for (uint32_t p = 0; p < k->nparam && right && !rounded; p++, compared++)
            right = CHECK(same_memory(got.buf[p], got.mem[p], want.mem[p]));
        if (!right) {
            dc_text text = {0};
            dc_nest_print(k, &text);
            if (f != NULL)
                dc_flat_print(f, &text);
            printf("    seed %llu on %s, skipping %u\n%s\n", (unsigned long long)seed, t->name,
                   skip, text.s);
            dc_text_free(&text);
        }
        if (right && skip == 0)
            leave_out_barriers(f, k, seed);
        dc_flat_free(f);
    }
}

static void try_graph(const dc_func *f, const dc_target *t, uint64_t seed)
{
    dc_groups gs;
    if (!CHECK(dc_fuse(&flat_job, &flat_job.scratch, f, seed % 3 == 0 ? 0 : 2, &gs) == DC_OK))
        return;
    for (uint32_t g = 0; g < gs.n; g++) {
        dc_kernel *k;
        if (dc_node_count(dc_node_at(f, gs.at[g].out[0])) == 0 ||
            !CHECK(dc_lower(&flat_job, &gs, g, &k) == DC_OK))
            continue;
        k->strict = true;
        if (k->nparam <= MAX_PARAMS && CHECK(dc_schedule(&flat_job, k, t, 2) == DC_OK))
            try_kernel(k, t, seed);
        dc_kernel_free(k);
    }
}

static void test_graphs(uint64_t seed, uint64_t graphs)
{
    static const char *const names[] = {"sim:cpu", "sim:cuda", "sim:opencl"};
    for (uint64_t g = 0; g < graphs; g++) {
        const dc_mark mark = dc_arena_mark(&flat_job.scratch);
        dc_module *m = dc_module_new();
        try_graph(dc_simplify(graphgen_func(m, seed + g, 4 + (int)(g % 20))),
                  dc_sim_target_named(names[g % DC_COUNTOF(names)]), seed + g);
        dc_module_free(m);
        dc_arena_rewind(&flat_job.scratch, mark);
    }
    CHECK(compared > (long)graphs * 4);
    printf("%ld buffers compared, %ld barriers left out, %ld of them unnoticed\n", compared,
           barriers, missed);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 20261121);
    flat_open();
    test_graphs(seed, argc > 2 ? strtoull(argv[2], NULL, 0) : 200);
    flat_close();
    return t_done();
}
