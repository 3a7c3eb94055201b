/*
 * NVIDIA's compiler takes the kernels of tests/cuda/kernels, too: what they write as PTX for it and what the
 * host has in its place are the same functions. Not linked with the stand-in.
 */
#include "tests/t.h"
#include "tests/unit/nvrtc.h"

/* Products of warp groups that the compiler makes wait are no machine code to us. */
static void test_serialized(const nvrtc *n)
{
    static char text[1 << 15];
    FILE *f = fopen("tests/cuda/kernels/warpgroups.cu", "r");
    if (!CHECK(f != NULL))
        return;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *wait = strstr(text, "wgmma_wait(1, 64, acc);");
    if (CHECK(wait != NULL)) {
        memcpy(wait, "acc[0] += 1;           ", 23);
        void *image = nvrtc_compile(n, text, "sm_90a");
        CHECK(image == NULL);
        free(image);
    }
}

int main(void)
{
    static const char *const name[] = {"product", "total", "lanes",     "turn",  "bytes",
                                       "dynamic", "gemm",  "fragments", "entry", "warpgroups"};
    static const char *const arch[] = {"sm_80", "sm_90", "sm_90a"};
    static char text[1 << 15];
    nvrtc n;
    if (!nvrtc_open(&n) || dlsym(n.lib, "cuda_standin_compiled") != NULL) {
        T_SKIP("no NVRTC library of NVIDIA's, CUDA texts are not compiled");
        return t_done();
    }
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const bool hopper = strcmp(name[i], "warpgroups") == 0;
        const char last = strcmp(name[i], "fragments") == 0 ? '3' : hopper ? '2' : '0';
        for (char kind = '0'; kind <= last; kind++) {
            char path[100];
            snprintf(path, sizeof path, "tests/cuda/kernels/%s.cu", name[i]);
            FILE *f = fopen(path, "r");
            if (!CHECK(f != NULL))
                continue;
            text[fread(text, 1, sizeof text - 1, f)] = '\0';
            fclose(f);
            char *define = strstr(text, "#define KIND 0");
            if (define != NULL)
                define[strlen("#define KIND ")] = kind;
            for (size_t k = hopper ? 2 : 0; k < 3; k++) {
                void *image = nvrtc_compile(&n, text, arch[k]);
                if (!CHECK(image != NULL))
                    printf("    %s for %s\n", name[i], arch[k]);
                free(image);
            }
        }
    }
    test_serialized(&n);
    return t_done();
}
