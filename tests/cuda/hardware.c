/*
 * The kernels of tests/cuda/kernels on whatever driver and NVRTC the loader finds: of small whole numbers each has to
 * give the exact result, which tells the layout of fragments besides. Results of fractions are written to a file, or
 * compared with those in one: the stand-in's on one machine, a GPU's on another. They are the same bits, but for sums of
 * tensor cores, whose order and rounding are their own.
 *
 *   hardware                exact results alone
 *   hardware write FILE     and results of fractions, to the file
 *   hardware compare FILE   and beside those of the file
 */
#include <math.h>

#include "tests/cuda/cuda_driver.h"
#include "tests/cuda/kernel_cases.h"
#include "tests/unit/nvrtc.h"

enum { MOST = 32768 };

typedef struct place {
    nvrtc nvrtc;
    char arch[16];
    int major;
    FILE *write, *compare;
} place;

/* Fractions of 8 bits, which every float format has; whole numbers for the formats of whole numbers. */
static double fraction(format f, unsigned i, unsigned salt)
{
    const unsigned r = (i * 2654435761u + salt * 40503u) >> 13;
    return f == U8 || f == S8 ? number(f, i, salt)
                              : ((double)(r % 255) + 1) / 64 * (r & 256 ? 1 : -1);
}

typedef double numbers_of(format f, unsigned i, unsigned salt);

static size_t bytes_of(const kernel_case *k, int p)
{
    return (size_t)k->p[p].n * size_of[k->p[p].format];
}

/* The parameter `p` of a kernel on the device: the result is 0, others are numbers. */
static CUdeviceptr make(const kernel_case *k, int p, numbers_of *numbers)
{
    CUdeviceptr at = 0;
    const size_t bytes = bytes_of(k, p);
    if (bytes == 0)
        return 0;
    char *data = calloc(bytes, 1);
    for (unsigned i = 0; p > 0 && i < k->p[p].n; i++)
        put(k->p[p].format, data + i * size_of[k->p[p].format],
            numbers(k->p[p].format, i, (unsigned)p));
    CHECK_EQ(cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(at, data, bytes), CUDA_SUCCESS);
    free(data);
    return at;
}

/* The result, to be freed; NULL: the launch failed. */
static char *launch(const kernel_case *k, CUfunction f, numbers_of *numbers)
{
    CUdeviceptr at[MOST_PARAMS];
    void *argument[MOST_PARAMS];
    char *got = calloc(bytes_of(k, 0), 1);
    bool ok = true;
    for (int p = 0; p < MOST_PARAMS; p++) {
        at[p] = make(k, p, numbers);
        argument[p] = &at[p];
    }
    if (k->dynamic > 48 << 10)
        ok = CHECK_EQ(
            cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)k->dynamic),
            CUDA_SUCCESS);
    ok = ok && CHECK_EQ(cuLaunchKernel(f, k->grid, 1, 1, k->threads, 1, 1, k->dynamic, NULL,
                                       argument, NULL),
                        CUDA_SUCCESS);
    ok = ok && CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ok = ok && CHECK_EQ(cuMemcpyDtoH_v2(got, at[0], bytes_of(k, 0)), CUDA_SUCCESS);
    for (int p = 0; p < MOST_PARAMS; p++)
        if (at[p] != 0)
            cuMemFree_v2(at[p]);
    if (ok)
        return got;
    free(got);
    return NULL;
}

/* What tensor cores may be away from: some bits of the sum of magnitudes. */
static bool near(const kernel_case *k, const float *a, const float *b, double *worst)
{
    static double x[MOST], y[MOST], bound[MOST];
    bool ok = true;
    for (unsigned i = 0; i < k->p[1].n; i++)
        x[i] = fabs(fraction(k->p[1].format, i, 1));
    for (unsigned i = 0; i < k->p[2].n; i++)
        y[i] = fabs(fraction(k->p[2].format, i, 2));
    k->want(bound, x, y);
    for (unsigned i = 0; i < k->p[0].n; i++) {
        const double d = fabs((double)a[i] - (double)b[i]) / bound[i];
        *worst = d > *worst ? d : *worst;
        ok = ok && d <= ldexp(1, -19);
    }
    return ok;
}

static void keep_or_compare(const place *w, const kernel_case *k, const char *got)
{
    static float other[MOST];
    const size_t bytes = bytes_of(k, 0);
    const bool cores =
        strcmp(k->name, "gemm") == 0 || strcmp(k->name, "fragments") == 0 || k->hopper;
    double worst = 0;
    if (w->write != NULL)
        CHECK_EQ(fwrite(got, 1, bytes, w->write), bytes);
    if (w->compare == NULL || !CHECK_EQ(fread(other, 1, bytes, w->compare), bytes))
        return;
    const bool same = memcmp(got, other, bytes) == 0;
    if (!same && cores && k->p[1].format != S8) {
        CHECK(near(k, (const float *)(const void *)got, other, &worst));
        printf("    %s: within %.2g of the sum of magnitudes\n", k->name, worst);
    } else if (!CHECK(same))
        printf("    %s: other bits\n", k->name);
}

/* Instructions of sm_90a are in no other architecture, not in later ones either. */
static void test_kernel(const place *w, const kernel_case *k)
{
    if (k->hopper && w->major != 9) {
        printf("    %s: for sm_90a alone\n", k->name);
        return;
    }
    char *text = kind_of_text(kernel_text(k->name), k->kind);
    char arch[20];
    snprintf(arch, sizeof arch, "%s%s", w->arch, k->hopper ? "a" : "");
    CUmodule m = NULL;
    CUfunction f;
    void *image = nvrtc_compile(&w->nvrtc, text, arch);
    free(text);
    if (!CHECK(image != NULL) || !CHECK_EQ(cuModuleLoadData(&m, image), CUDA_SUCCESS) ||
        !CHECK_EQ(cuModuleGetFunction(&f, m, k->name), CUDA_SUCCESS)) {
        printf("    %s\n", k->name);
        free(image);
        return;
    }
    char *exact = launch(k, f, number);
    if (exact != NULL && !CHECK(right(k, exact, k->p[1].format == S8)))
        printf("    %s, kind %u: wrong\n", k->name, k->kind);
    char *got = exact != NULL ? launch(k, f, fraction) : NULL;
    if (got != NULL)
        keep_or_compare(w, k, got);
    free(exact);
    free(got);
    cuModuleUnload(m);
    free(image);
}

static bool open_gpu(place *w, CUcontext *context)
{
    int major = 0, minor = 0, n = 0;
    char name[80] = "";
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&n) != CUDA_SUCCESS || n == 0) {
        T_SKIP("no CUDA device");
        return false;
    }
    if (!nvrtc_open(&w->nvrtc)) {
        T_SKIP("no NVRTC library");
        return false;
    }
    cuDeviceGetName(name, sizeof name, 0);
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    w->major = major;
    snprintf(w->arch, sizeof w->arch, "sm_%d%d", major, minor);
    printf("    %s, %s, NVRTC %d.%d\n", name, w->arch, w->nvrtc.major, w->nvrtc.minor);
    if (major < 8) {
        T_SKIP("tensor cores of these kernels need sm_80");
        return false;
    }
    return CHECK_EQ(cuDevicePrimaryCtxRetain(context, 0), CUDA_SUCCESS) &&
           CHECK_EQ(cuCtxSetCurrent(*context), CUDA_SUCCESS);
}

int main(int argc, char **argv)
{
    static place w;
    CUcontext context = NULL;
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        CHECK((w.write = fopen(argv[2], "wb")) != NULL);
    else if (argc == 3 && strcmp(argv[1], "compare") == 0)
        CHECK((w.compare = fopen(argv[2], "rb")) != NULL);
    if (!open_gpu(&w, &context))
        return t_done();
    for (int i = 0; i < NCASES; i++)
        test_kernel(&w, &cases[i]);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        test_kernel(&w, &kinds[i]);
    if (w.write != NULL)
        CHECK_EQ(fclose(w.write), 0);
    if (w.compare != NULL)
        fclose(w.compare);
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease_v2(0);
    return t_done();
}
