/*
 * The engine that runs CUDA kernels on the host: right kernels give the exact result in every order,
 * checked or not; each bug planted in one of them is found by a checked launch, with its words. The
 * closing table says what the other modes find of the bugs: a failure, or a wrong result.
 */
#include "tests/cuda/harness.h"

/* Kernels ----------------------------------------------------------------------------------- */

static const kernel_case *case_of(const char *name)
{
    for (int i = 0; i < NCASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    CHECK_STR(name, NULL);
    return &cases[0];
}

/* Runs -------------------------------------------------------------------------------------- */

typedef enum found { FINE, WRONG_RESULT, FAILURE } found;

/* One launch; a failure's words go to `why`. */
static found run(const kernel_case *k, const char *text, char *why, size_t room)
{
    CUdeviceptr at[MOST_PARAMS] = {0};
    void *argument[MOST_PARAMS];
    CUmodule m;
    CUfunction f;
    found result = FINE;
    char *image = kernel_image(text);
    if (!CHECK(image != NULL))
        return FAILURE;
    open_device(0);
    CHECK_EQ(cuModuleLoadData(&m, image), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&f, m, k->name), CUDA_SUCCESS);
    if (k->dynamic > 48 << 10)
        CHECK_EQ(
            cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)k->dynamic),
            CUDA_SUCCESS);
    for (int p = 0; p < MOST_PARAMS; p++) {
        const size_t bytes = (size_t)k->p[p].n * size_of[k->p[p].format];
        char *data = calloc(bytes + 1, 1);
        for (unsigned i = 0; p > 0 && i < k->p[p].n; i++)
            put(k->p[p].format, data + i * size_of[k->p[p].format],
                number(k->p[p].format, i, (unsigned)p));
        argument[p] = &at[p];
        if (bytes > 0) {
            CHECK_EQ(cuMemAlloc_v2(&at[p], bytes), CUDA_SUCCESS);
            CHECK_EQ(cuMemcpyHtoD_v2(at[p], data, bytes), CUDA_SUCCESS);
        }
        free(data);
    }
    CHECK_EQ(cuLaunchKernel(f, k->grid, 1, 1, k->threads, 1, 1, k->dynamic, NULL, argument, NULL),
             CUDA_SUCCESS);
    if (cuCtxSynchronize() == CUDA_SUCCESS) {
        const size_t bytes = (size_t)k->p[0].n * size_of[k->p[0].format];
        char *got = malloc(bytes);
        CHECK_EQ(cuMemcpyDtoH_v2(got, at[0], bytes), CUDA_SUCCESS);
        result = right(k, got, k->p[1].format == S8) ? FINE : WRONG_RESULT;
        free(got);
        for (int p = 0; p < MOST_PARAMS; p++)
            CHECK_EQ(cuMemFree_v2(at[p]), CUDA_SUCCESS);
        CHECK_EQ(cuModuleUnload(m), CUDA_SUCCESS);
    } else
        result = FAILURE;
    const char *said = cuda_standin_take_wrong();
    snprintf(why, room, "%s", said != NULL ? said : "");
    CHECK((result == FAILURE) == (said != NULL));
    close_device(0);
    no_misuse(); /* a device that is lost leaks nothing */
    free(image);
    return result;
}

static void mode(bool check, bool random, unsigned seed)
{
    char text[20];
    snprintf(text, sizeof text, "%u", seed);
    cuda_standin_set("CHECK", check ? "1" : "0");
    cuda_standin_set("THREADS", random ? "random" : "ordered");
    cuda_standin_set("SEED", text);
}

static void expect_fine(const kernel_case *k, const char *text)
{
    char why[1200];
    for (unsigned i = 0; i < 5; i++) {
        mode(i >= 3, i % 3 != 0, i);
        if (!CHECK_EQ(run(k, text, why, sizeof why), FINE))
            printf("    %s, mode %u: %s\n", k->name, i, why);
    }
}

static void test_right_ones(void)
{
    for (int i = 0; i < NCASES; i++) {
        char *text = kernel_text(cases[i].name);
        expect_fine(&cases[i], text);
        free(text);
    }
}

static void test_kinds_of_mma(void)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *text = kind_of_text(kernel_text(kinds[i].name), kinds[i].kind);
        expect_fine(&kinds[i], text);
        free(text);
    }
}

/* Bugs -------------------------------------------------------------------------------------- */

typedef struct bug {
    const char *name, *from, *to, *says;
} bug;

/* clang-format off */
static const bug bugs[] = {
    {"product",   "        __syncthreads(); /* first */\n", "", "race: a load of shared memory + |was not written in this block"},
    {"product",   "        __syncthreads(); /* second */\n", "", "race: a store to shared memory + |race: a load of shared memory + "},
    {"product",   "+ col] = sum;", "+ col + 8] = sum;", "bytes behind allocation"},
    {"product",   "+ col] = sum;", "+ col + 100000] = sum;", "bytes behind allocation"},
    {"product",   "+ col] = sum;", "+ (col & ~1u)] = sum;", "has written"},
    {"product",   "sa[row * 8 + k]", "sa[row * 8 + k + 16]", "an index leaves its array"},
    {"total",     "    part[t] = 0;\n", "", "is read and was not written in this block"},
    {"total",     "    __syncthreads();\n    if (t < 8) {\n", "    if (t < 8) {\n        __syncthreads();\n", "the threads of the block part"},
    {"total",     "    __syncthreads(); /* of all */\n", "", "race: a load of shared memory + |was not written in this block"},
    {"total",     "out[blockIdx.x] = sum", "out[0] = sum", "of block 0 has written"},
    {"total",     "i < 1000; i", "i < 1100; i", "bytes behind allocation"},
    {"lanes",     "    __syncwarp(); /* for neighbours */\n", "", "race: a load of shared memory + |was not written in this block"},
    {"lanes",     "y = __shfl_sync(0xffffffffu, y, 0);", "if (t < 16) y = __shfl_sync(0xffffffffu, y, 0);", "the threads of the block part|the lanes of a warp part"},
    {"lanes",     "y = __shfl_sync(0xffffffffu, y, 0);", "y = __shfl_sync(0xfffffffeu, y, 1);", "this lane is not in the mask"},
    {"turn",      "    __syncthreads();\n", "", "race: a load of shared memory + |was not written in this block"},
    {"turn",      "32 * PITCH]", "31 * PITCH]", "leave it|index leaves its array"},
    {"bytes",     "p0[i + 1000] = p0[i];", "p0[i + 1000] = p0[i + 1];", "race"},
    {"bytes",     "if (i < 1000)", "if (i < 2005)", "bytes behind allocation"},
    {"dynamic",   "i < 4096; i += 256)\n        *(float4 *)", "i < 4097; i += 256)\n        *(float4 *)", "bytes behind allocation|dynamic shared memory"},
    {"dynamic",   "    __syncthreads();\n", "", "race: a load of dynamic shared memory + |was not written in this block"},
    {"dynamic",   "*(float4 *)&s[4 * i] = x[i]", "*(float4 *)&s[4 * i + 1] = x[i]", "not aligned"},
    {"gemm",      "cp_async_wait(STAGES - 2)", "cp_async_wait(STAGES - 1)", "while an asynchronous copy goes there"},
    {"gemm",      "        __syncthreads(); /* of the stage */\n", "", "race|asynchronous copy|was not written in this block"},
    {"gemm",      "const int s_ = next % STAGES;", "const int s_ = next % (STAGES - 1);", "race|asynchronous copy"},
    {"gemm",      "((r) >> 1) & 3))) * 8)", "((r) >> 1) & 3))) * 8 + 1)", "is not aligned to 16 bytes"},
    {"gemm",      "cp_async_wait(STAGES - 2);\n        __syncthreads(); /* of the stage */\n        FETCH();", "cp_async_wait(STAGES - 2);\n        FETCH();\n        __syncthreads();", "race|asynchronous copy"},
    {"warpgroups", "        fence_async_proxy();\n", "", "without a fence to the asynchronous proxy"},
    {"warpgroups", "        fence_async_proxy();\n        __syncthreads(); /* of the stage */\n", "        __syncthreads();\n        fence_async_proxy();\n", "without a fence to the asynchronous proxy"},
    {"warpgroups", "        wgmma_fence();\n", "", "no wgmma.fence before"},
    {"warpgroups", "        __syncthreads(); /* of the stage */\n", "", "race|asynchronous copy|was not written in this block|without a fence"},
    {"warpgroups", "        cp_async_wait(STAGES - 3);\n", "        cp_async_wait(STAGES - 2);\n", "asynchronous copy"},
    {"warpgroups", "        cp_async_wait(STAGES - 3);\n        fence_async_proxy();\n        __syncthreads(); /* of the stage */\n        FETCH(step + STAGES - 2);", "        FETCH(step + STAGES - 2);\n        cp_async_wait(STAGES - 2);\n        fence_async_proxy();\n        __syncthreads();", "race|asynchronous copy|while it is under way"},
    {"warpgroups", "        wgmma_wait(1, 64, acc);\n", "        wgmma_wait(2, 64, acc);\n", "race|asynchronous copy|while it is under way"},
    {"warpgroups", "    wgmma_wait(0, 64, acc); /* of all */\n", "", "ends with products of wgmma under way"},
    {"warpgroups", "    wgmma_wait(0, 64, acc); /* of all */\n", "    acc[0] = 1;\n    wgmma_wait(0, 64, acc);\n", "are written while it is under way"},
    {"warpgroups", "        wgmma_commit();\n", "", "ends with products of wgmma|race|asynchronous copy|while it is under way"},
    {"warpgroups", "        MULTIPLY(3);\n", "        if (warp != 5) MULTIPLY(3);\n", "the four warps of a wgmma part"},
    {"warpgroups", "        MULTIPLY(3);\n", "        if (lane != 5) MULTIPLY(3);\n", "the threads of the block part|the lanes of a warp part"},
    {"warpgroups", "tile + 16384 + kk * 32, 16, 1024", "tile + 16384 + kk * 32 + 256, 16, 1024", "begins in no first row of 1024 bytes"},
    {"warpgroups", "tile + 16384 + kk * 32, 16, 1024", "tile + 16384 + kk * 32, 16, 512", "bytes apart"},
    {"warpgroups", "tile + 16384 + kk * 32, 16, 1024", "tile + 16384 + kk * 32, 16, 131072", "leaves shared memory"},
    {"gemm",      "    for (int n = 0; n < 8; n++)\n        for (int h", "    if (STEPS > 3) cp_async16(&sa[0][AT_A(t % 64, t / 64)], a);\n    for (int n = 0; n < 8; n++)\n        for (int h", "race|ends with asynchronous copies under way"},
};
/* clang-format on */
enum { NBUGS = sizeof bugs / sizeof *bugs };

/* One of the alternatives "a|b" stands in the text. */
static bool says(const char *text, const char *words)
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *save = NULL, *w = strtok_r(copy, "|", &save); w != NULL;
         w = strtok_r(NULL, "|", &save))
        if (strstr(text, w) != NULL)
            return true;
    return false;
}

static void test_bugs(void)
{
    unsigned n_checked = 0, n_ordered = 0, n_random = 0;
    for (int i = 0; i < NBUGS; i++) {
        const kernel_case *k = case_of(bugs[i].name);
        char *text = changed_text(kernel_text(k->name), bugs[i].from, bugs[i].to), why[1200];
        unsigned random = 0;
        mode(false, false, 1);
        const found ordered = run(k, text, why, sizeof why);
        for (unsigned seed = 1; seed <= 3; seed++) {
            mode(false, true, seed);
            random += run(k, text, why, sizeof why) != FINE;
        }
        mode(true, false, 1);
        const found checked = run(k, text, why, sizeof why);
        n_ordered += ordered != FINE;
        n_random += random > 0;
        n_checked += checked == FAILURE;
        if (!CHECK_EQ(checked, FAILURE) || !CHECK(says(why, bugs[i].says)))
            printf("    %s, '%s': %s\n", k->name, bugs[i].to, why);
        CHECK(checked != FAILURE || strstr(why, "thread ") != NULL);
        free(text);
    }
    printf("    of %d bugs: checked %u, three random orders %u, in order %u\n", NBUGS, n_checked,
           n_random, n_ordered);
    CHECK_EQ(n_checked, NBUGS);
}

/* Layouts that are none of what the descriptors say. */
static void test_layouts(void)
{
    static const struct {
        unsigned kind;
        const char *from, *to;
    } wrong[] = {
        {0, "(((c) ^ ((r) & 7)) * 16))\n#define AT_MN", "(c) * 16)\n#define AT_MN"},
        {0, "group * 8192 + kk * 32", "group * 8192 + (kk ^ 1) * 32"},
        {1, "((((c) & 7) ^ ((r) & 7)) * 16))", "((c) & 7) * 16)"},
        {1, "#define LEADING     8192", "#define LEADING     1024"},
        {2, "kk * 2048, LEADING, 1024)\n#else\n#define FILL_A",
         "kk * 2048, LEADING, 2048)\n#else\n#define FILL_A"},
        {2, "wgmma(128, f16, 1, 1,", "wgmma(128, f16, 0, 1,"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kernel_case k = *case_of("warpgroups");
        char *text = kind_of_text(kernel_text(k.name), wrong[i].kind), why[1200];
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
            if (kinds[n].hopper && kinds[n].kind == wrong[i].kind)
                k = kinds[n];
        text = changed_text(text, wrong[i].from, wrong[i].to);
        mode(false, false, 1);
        if (!CHECK(run(&k, text, why, sizeof why) != FINE))
            printf("    kind %u, '%s'\n", k.kind, wrong[i].to);
        free(text);
    }
}

/* A report names the line of the text. */
static void test_line(void)
{
    char *text = changed_text(kernel_text("turn"), "    __syncthreads();\n", ""), why[1200];
    mode(true, false, 1);
    CHECK_EQ(run(case_of("turn"), text, why, sizeof why), FAILURE);
    CHECK(strstr(why, "kernel turn, line 14: ") != NULL);
    free(text);
}

int main(void)
{
    cuda_standin_set("WRONG", "report");
    if (!have_compiler())
        return t_done();
    test_right_ones();
    test_kinds_of_mma();
    test_bugs();
    test_layouts();
    test_line();
    return t_done();
}
