/*
 * Conversions of 16-bit floats by instructions have the bits of those by integers (jit/flat/expand_half.c): every pattern
 * to f32, and to them every pattern of f32 that differs in its upper 20 bits, with what lies beside ties; NaN too,
 * though the instruction makes one of all of them.
 */
#include "core/base/job.h"
#include "jit/flat/flatten.h"
#include "jit/render/render.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include "tests/cuda/harness.h"

enum { PATTERNS = 65536, PREFIXES = 1 << 20, LOWS = 6, SAMPLES = PREFIXES * LOWS };

/* The kernel for the target; NULL after a failure. */
static dc_flat *flat_for(dc_job *j, const char *nest, const dc_target *t)
{
    dc_kernel *k = NULL;
    dc_flat *f = NULL;
    if (CHECK(dc_nest_parse(j, nest, &k) == DC_OK) && CHECK(dc_schedule(j, k, t, 2) == DC_OK))
        CHECK(dc_flatten_for(j, k, t, 0, &f) == DC_OK);
    if (k != NULL)
        dc_kernel_free(k);
    return f;
}

static bool by_integers(dc_job *j, const char *nest, void *in, void *out)
{
    dc_target t = *dc_sim_target_named("cuda");
    t.half = t.bfloat = false;
    dc_flat *f = flat_for(j, nest, &t);
    const bool ok =
        f != NULL && CHECK(dc_flat_run(j, f, (void *[]){out, in}, 0, f->positions) == DC_OK);
    dc_flat_free(f);
    return ok;
}

static bool launch(const char *text, const dc_flat *f, const void *in, size_t from, void *out,
                   size_t to)
{
    CUdeviceptr at[2], none = 0;
    void *argument[] = {&none, &none, &at[1], &at[0]};
    CUmodule m = NULL;
    CUfunction fn = NULL;
    char *image = kernel_image(text);
    if (!CHECK(image != NULL))
        return false;
    open_device(0);
    const bool ok = CHECK_EQ(cuModuleLoadData(&m, image), CUDA_SUCCESS) &&
                    CHECK_EQ(cuModuleGetFunction(&fn, m, f->name), CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemAlloc_v2(&at[0], from), CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemAlloc_v2(&at[1], to), CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemcpyHtoD_v2(at[0], in, from), CUDA_SUCCESS) &&
                    CHECK_EQ(cuLaunchKernel(fn, (unsigned)f->positions, 1, 1, f->threads, 1, 1, 0,
                                            NULL, argument, NULL),
                             CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemcpyDtoH_v2(out, at[1], to), CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemFree_v2(at[0]), CUDA_SUCCESS) &&
                    CHECK_EQ(cuMemFree_v2(at[1]), CUDA_SUCCESS);
    if (m != NULL)
        cuModuleUnload(m);
    close_device(0);
    free(image);
    no_misuse();
    return ok;
}

/* `instruction` stands in the text. */
static bool by_instruction(dc_job *j, const char *nest, const char *instruction, const void *in,
                           size_t from, void *out, size_t to)
{
    const dc_target *t = dc_sim_target_named("cuda");
    dc_text text = {0};
    dc_flat *f = flat_for(j, nest, t);
    const bool ok =
        f != NULL && CHECK(dc_render(j, (const dc_flat *const[]){f}, 1, t, &text) == DC_OK) &&
        CHECK(strstr(text.s, instruction) != NULL) && launch(text.s, f, in, from, out, to);
    dc_flat_free(f);
    dc_text_free(&text);
    return ok;
}

static void compare(dc_job *j, dc_dtype from, dc_dtype to, const char *instruction, int n, void *in)
{
    const size_t bytes_in = (size_t)n * dc_dtype_size(from), bytes = (size_t)n * dc_dtype_size(to);
    char nest[300], *want = malloc(bytes), *got = malloc(bytes);
    snprintf(nest, sizeof nest,
             "kernel convert(out0: %s[%d] out, x0: %s[%d]) {\n  for i in %d\n"
             "    out0[i] = cast.%s(x0[i])\n}\n",
             dc_dtype_name(to), n, dc_dtype_name(from), n, n, dc_dtype_name(to));
    if (by_integers(j, nest, in, want) &&
        by_instruction(j, nest, instruction, in, bytes_in, got, bytes)) {
        int wrong = 0;
        for (int i = 0; i < n; i++)
            wrong += memcmp(want + (size_t)i * dc_dtype_size(to),
                            got + (size_t)i * dc_dtype_size(to), dc_dtype_size(to)) != 0;
        if (!CHECK_EQ(wrong, 0))
            printf("    %s to %s\n", dc_dtype_name(from), dc_dtype_name(to));
    }
    free(want);
    free(got);
}

/* Ties of f16 have 12 zeros or a 1 and 12 zeros at the end, those of bf16 a 1 and 15 zeros. */
static void fill_samples(uint32_t *p)
{
    static const uint32_t low[LOWS] = {0, 1, 0x7ff, 0x800, 0x801, 0xfff};
    for (uint32_t i = 0; i < PREFIXES; i++)
        for (uint32_t k = 0; k < LOWS; k++)
            p[i * LOWS + k] = i << 12 | low[k];
}

static void test_all(dc_job *j)
{
    uint16_t *all = malloc(PATTERNS * sizeof *all);
    uint32_t *samples = malloc(SAMPLES * sizeof *samples);
    for (uint32_t p = 0; p < PATTERNS; p++)
        all[p] = (uint16_t)p;
    fill_samples(samples);
    compare(j, DC_F16, DC_F32, "= from_f16(", PATTERNS, all);
    compare(j, DC_F32, DC_F16, "= to_f16(", SAMPLES, samples);
    compare(j, DC_F32, DC_BF16, "= to_bf16(", SAMPLES, samples);
    free(all);
    free(samples);
}

int main(void)
{
    static dc_log log;
    dc_opts opt;
    dc_job j;
    const char *bad;
    dc_opts_init(&opt, &bad);
    cuda_standin_set("WRONG", "report");
    dc_job_init(&j, &opt, &log);
    if (have_compiler())
        test_all(&j);
    dc_job_fini(&j);
    return t_done();
}
