/*
 * NVIDIA's compiler takes the kernels of tests/cuda/kernels, too: what they write as PTX for it and what the
 * host has in its place are the same functions. Not linked with the stand-in.
 */
#include "tests/t.h"
#include "tests/unit/nvrtc.h"

int main(void)
{
    static const char *const name[] = {"product", "total", "lanes",     "turn", "bytes",
                                       "dynamic", "gemm",  "fragments", "entry"};
    static const char *const arch[] = {"sm_80", "sm_90"};
    static char text[1 << 15];
    nvrtc n;
    if (!nvrtc_open(&n) || dlsym(n.lib, "cuda_standin_compiled") != NULL) {
        T_SKIP("no NVRTC library of NVIDIA's, CUDA texts are not compiled");
        return t_done();
    }
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        for (char kind = '0'; kind <= (strcmp(name[i], "fragments") == 0 ? '3' : '0'); kind++) {
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
            for (size_t k = 0; k < 2; k++) {
                void *image = nvrtc_compile(&n, text, arch[k]);
                if (!CHECK(image != NULL))
                    printf("    %s for %s\n", name[i], arch[k]);
                free(image);
            }
        }
    return t_done();
}
