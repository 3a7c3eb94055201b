/*
 * The CUDA dialect of jit/render/render_c.h: kernels written by hand (those of tests/kernel with their
 * schedules for groups among them), random ones in flat form and the kernels of random graphs
 * compile with NVRTC for sm_80 and sm_90. Where there is a driver they
 * run, too, and every bit of their results is that of the interpreter of the flat form (they are
 * strict; those with exp or log as well, which are made of exact steps).
 *
 *   test_nvrtc [seed [graphs]]
 */
#include "core/ir/simplify.h"
#include "jit/flat/flatten.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_file.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include "tests/t.h"
#include "tests/unit/flat_random.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/nvrtc.h"

enum { RANDOM_KERNELS = 8, MOST_KERNELS = 40 };

typedef struct world {
    dc_opts opt;
    dc_job j;
    DC_VEC(dc_flat *) flat;
} world;

static void complain(world *w)
{
    char text[600];
    dc_err_render(&w->j.err, 1, text, sizeof text);
    printf("    %s\n", text);
    w->j.err = (dc_err){0};
}

static void add(world *w, dc_flat *f)
{
    snprintf(f->name, sizeof f->name, "k%u", w->flat.n);
    if (!CHECK(dc_flat_check(&w->j, f) == DC_OK))
        complain(w);
    DC_PUSH(w->flat, f);
}

/* Kernels ----------------------------------------------------------------------------------- */

/* Partial sums by shuffles, theirs by the first thread; then neighbours through shared memory. */
static const char by_hand[] =
    "kernel sums (out0: f32[4] out, x0: f32[1024], part: f32[8] group) strict simt 256 lanes 32 "
    "positions 4 {\n"
    "  %1 = mul index group, 256\n"
    "  %2 = add index %1, thread\n"
    "  %3 = load f32 x0[%2]\n"
    "  %4 = convert u32 thread\n"
    "  %5 = and u32 %4, 31\n"
    "  %6 = xor u32 %5, 16\n"
    "  %7 = shuffle f32 %3, %6\n"
    "  %8 = add f32 %3, %7\n"
    "  %9 = xor u32 %5, 1\n"
    "  %10 = shuffle f32 %8, %9\n"
    "  %11 = add f32 %8, %10\n"
    "  %12 = eq bool %5, 0\n"
    "  %13 = div index thread, 32\n"
    "  if %12\n"
    "    store f32 part[%13], %11\n"
    "  end\n"
    "  barrier group\n"
    "  %14 = eq bool thread, 0\n"
    "  if %14\n"
    "    %15 = load f32x8 part[0]\n"
    "    %16 = mul f32x8 %15, 0.1\n"
    "    %17 = load f32 part[3]\n"
    "    %18 = fma f32 %17, 3, %11\n"
    "    %19 = lt boolx8 %16, 0.5\n"
    "    %20 = any bool %19\n"
    "    %21 = select f32 %20, %18, %17\n"
    "    store f32 out0[group], %21\n"
    "  end\n"
    "}\n"
    "kernel turned (out0: u8[64] out, out1: bool[64] out, out2: i32[64] out, x0: u8[64], g: "
    "i32[64]\n"
    "    group) simt 64 lanes 32 {\n"
    "  %1 = load u8 x0[thread]\n"
    "  %2 = convert u32 thread\n"
    "  %3 = and u32 %2, 31\n"
    "  %4 = sub u32 31, %3\n"
    "  %5 = shuffle u8 %1, %4\n"
    "  store u8 out0[thread], %5\n"
    "  %6 = lt bool %1, %5\n"
    "  %7 = shuffle bool %6, %4\n"
    "  store bool out1[thread], %7\n"
    "  %8 = convert i32 %5\n"
    "  store i32 g[thread], %8\n"
    "  barrier lanes\n"
    "  %9 = xor index thread, 1\n"
    "  %10 = load i32 g[%9]\n"
    "  %11 = shuffle index thread, %4\n"
    "  %12 = convert i32 %11\n"
    "  %13 = mul i32 %10, %12\n"
    "  store i32 out2[thread], %13\n"
    "}\n";

static void add_by_hand(world *w)
{
    const char *at = by_hand;
    for (;;) {
        dc_flat *f = NULL;
        if (!CHECK(dc_flat_parse(&w->j, &at, &f) == DC_OK)) {
            complain(w);
            return;
        }
        if (f == NULL)
            return;
        add(w, f);
    }
}

static void add_random(world *w, uint64_t seed)
{
    for (uint64_t n = 0; n < RANDOM_KERNELS; n++) {
        rng r = {seed + n};
        add(w, flat_random(&r, 10 + (int)n * 4, n % 2 ? 4 : 8, true));
    }
}

/* tests/kernel/NAME.nest with all moves of NAME.simt; tests run in the root of the repository. */
static void add_scheduled(world *w, const char *name)
{
    char path[100], text[4000];
    const char *why = NULL;
    dc_schedule_file *schedule = NULL;
    dc_kernel *k = NULL;
    dc_flat *f = NULL;
    uint32_t n = 0;
    snprintf(path, sizeof path, "tests/kernel/%s.nest", name);
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL))
        return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    snprintf(path, sizeof path, "tests/kernel/%s.simt", name);
    bool ok = CHECK(dc_nest_parse(&w->j, text, &k) == DC_OK) &&
              CHECK(dc_schedule_file_read(&w->j, path, &schedule) == DC_OK);
    const char *const *move = ok ? dc_schedule_file_find(schedule, k->name, &n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        ok = CHECK(dc_move_apply_text(k, move[i], &why)) && ok;
    if (ok && CHECK(dc_flatten_for(&w->j, k, dc_sim_target_named("cuda"), 0, &f) == DC_OK))
        add(w, f);
    dc_schedule_file_free(schedule);
    dc_kernel_free(k);
}

/* A kernel of a graph, as lowered or scheduled for groups. */
static void add_group(world *w, const dc_groups *g, uint32_t group, bool scheduled)
{
    const dc_target *t = dc_sim_target_named("cuda");
    dc_kernel *k;
    dc_flat *f = NULL;
    if (!CHECK(dc_lower(&w->j, g, group, &k) == DC_OK))
        return;
    k->strict = true;
    bool ok = !scheduled || CHECK(dc_schedule(&w->j, k, t, 2) == DC_OK);
    ok = ok && CHECK(dc_flatten_for(&w->j, k, t, 0, &f) == DC_OK);
    if (ok)
        add(w, f);
    else
        complain(w);
    dc_kernel_free(k);
}

static void add_graph(world *w, uint64_t seed)
{
    dc_arena mem = {0};
    dc_groups groups;
    dc_module *m = dc_module_new();
    const dc_func *f = dc_simplify(graphgen_func(m, seed, 5 + (int)(seed % 20)));
    if (CHECK(dc_fuse(&w->j, &mem, f, 2, &groups) == DC_OK))
        for (uint32_t g = 0; g < groups.n && w->flat.n < MOST_KERNELS; g++)
            if (dc_node_count(dc_node_at(f, groups.at[g].out[0])) > 0)
                add_group(w, &groups, g, seed % 4 != 0);
    dc_arena_free(&mem);
    dc_module_free(m);
}

/* Runs -------------------------------------------------------------------------------------- */

typedef struct memory {
    uint32_t n;
    void *want[64], *got[64];
    size_t bytes[64];
} memory;

static void fill(memory *m, const dc_flat *f, rng *r)
{
    m->n = f->nparam;
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        const size_t size = dc_dtype_size((dc_dtype)b->dtype);
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        const size_t bytes = m->bytes[b->param] = (size_t)b->count * size;
        char *at = m->want[b->param] = calloc(bytes + 1, 1);
        for (int64_t i = 0; i < b->count; i++) {
            uint64_t word = rng_next(r) >> rng_below(r, 64);
            if (dc_dtype_is_float((dc_dtype)b->dtype))
                word = dc_bits_of((dc_dtype)b->dtype, rng_uniform(r, -9, 9));
            memcpy(at + (size_t)i * size, &word, size);
        }
        m->got[b->param] = memcpy(malloc(bytes + 1), at, bytes);
    }
}

static bool same(const dc_flat *f, const memory *m)
{
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        const dc_dtype t = (dc_dtype)b->dtype;
        for (int64_t i = 0; b->scope == DC_SCOPE_PARAM && i < b->count; i++) {
            const size_t at = (size_t)i * dc_dtype_size(t);
            const uint64_t x = dc_bits_load(t, (char *)m->want[b->param] + at);
            const uint64_t y = dc_bits_load(t, (char *)m->got[b->param] + at);
            const bool nan =
                dc_dtype_is_float(t) && isnan(dc_value_of(t, x)) && isnan(dc_value_of(t, y));
            if (x != y && !nan)
                return false;
        }
    }
    return true;
}

/* On the interpreter, which finds what is wrong with the kernel; on the GPU too if there is one. */
static void show(const dc_flat *f)
{
    dc_text text = {0};
    dc_flat_print(f, &text);
    printf("%s", text.s);
    dc_text_free(&text);
}

/* On the interpreter, which finds what is wrong with the kernel; on the GPU too if there is one. */
static void run_one(world *w, const cuda *c, void *module, uint32_t kernel)
{
    const dc_flat *f = w->flat.at[kernel];
    const int64_t groups = f->positions > 0 ? f->positions : 1;
    memory m = {0};
    rng r = {kernel};
    fill(&m, f, &r);
    if (!CHECK(dc_flat_run(&w->j, f, m.want, 0, groups) == DC_OK))
        complain(w);
    if (c != NULL) {
        const bool ran =
            cuda_launch(c, module, f->name, (unsigned)groups, f->threads, (int)m.n, m.got, m.bytes);
        if (!CHECK(ran && same(f, &m)))
            show(f);
    }
    for (uint32_t p = 0; p < m.n; p++) {
        free(m.want[p]);
        free(m.got[p]);
    }
}

static void run_all(world *w, const nvrtc *n, const char *text)
{
    cuda c = {0};
    void *module = NULL;
    if (!cuda_open(&c)) {
        T_SKIP("no CUDA driver with a GPU, kernels are compiled but not run");
        return;
    }
    void *image = nvrtc_compile(n, text, c.arch);
    if (CHECK(image != NULL) && CHECK(c.ModuleLoadData(&module, image) == 0)) {
        for (uint32_t k = 0; k < w->flat.n; k++)
            run_one(w, &c, module, k);
        c.ModuleUnload(module);
    }
    free(image);
    cuda_close(&c);
}

static void test_all(world *w)
{
    static const char *const arch[] = {"sm_80", "sm_90"};
    dc_text text = {0};
    nvrtc n;
    for (uint32_t k = 0; k < w->flat.n; k++)
        run_one(w, NULL, NULL, k);
    CHECK(dc_render(&w->j, (const dc_flat *const *)w->flat.at, w->flat.n,
                    dc_sim_target_named("cuda"), &text) == DC_OK);
    if (nvrtc_open(&n)) {
        printf("    NVRTC %d.%d, %u kernels\n", n.major, n.minor, w->flat.n);
        for (size_t i = 0; i < DC_COUNTOF(arch); i++) {
            void *image = nvrtc_compile(&n, text.s, arch[i]);
            CHECK(image != NULL);
            free(image);
        }
        run_all(w, &n, text.s);
    } else {
        T_SKIP("no NVRTC library, CUDA texts are not compiled");
    }
    dc_text_free(&text);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t graphs = argc > 2 ? strtoull(argv[2], NULL, 0) : 8;
    static const char *const scheduled[] = {"softmax", "layer_norm", "attention", "argmax",
                                            "product", "total",      "updates"};
    static world w;
    const char *bad;
    dc_opts_init(&w.opt, &bad);
    w.opt.check = 1;
    dc_job_init(&w.j, &w.opt, NULL);
    add_by_hand(&w);
    for (size_t i = 0; i < DC_COUNTOF(scheduled); i++)
        add_scheduled(&w, scheduled[i]);
    add_random(&w, seed);
    for (uint64_t i = 0; i < graphs; i++)
        add_graph(&w, seed + i);
    test_all(&w);
    for (uint32_t n = 0; n < w.flat.n; n++)
        dc_flat_free(w.flat.at[n]);
    DC_VEC_FREE(w.flat);
    dc_job_fini(&w.j);
    return t_done();
}
