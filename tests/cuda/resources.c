/*
 * What a kernel takes of a multiprocessor by NVIDIA's compiler, from a CUDA text on standard input:
 *
 *   resources ARCH ENTRY < FILE.cu     registers, bytes of memory of a thread, of shared arrays; version of NVRTC
 *
 * Not linked with the stand-in: the library takes no process that has another libnvrtc.so in it. Exit status 77
 * where it is not installed.
 */
#include "tests/cuda/cubin.h"
#include "tests/unit/nvrtc.h"

static char *read_all(FILE *f)
{
    char *s = NULL;
    size_t n = 0;
    for (size_t got = 1; got > 0; n += got) {
        s = realloc(s, n + (1 << 16) + 1);
        got = fread(s + n, 1, 1 << 16, f);
    }
    s[n] = '\0';
    return s;
}

static bool open_library(nvrtc *n)
{
    const char *given = getenv("DEEPC_NVRTC");
    return (given != NULL && given[0] != '\0' ? nvrtc_open_file(n, given) : nvrtc_open(n)) &&
           dlsym(n->lib, "cuda_standin_compiled") == NULL;
}

int main(int argc, char **argv)
{
    nvrtc n;
    cubin_kernel k;
    size_t bytes;
    if (argc != 3) {
        fprintf(stderr, "usage: resources ARCH ENTRY < FILE.cu\n");
        return 2;
    }
    if (!open_library(&n))
        return 77;
    char *text = read_all(stdin);
    void *image = nvrtc_image(&n, text, argv[1], &bytes);
    const bool ok = image != NULL && cubin_find(image, bytes, argv[2], &k);
    if (ok)
        printf("%d %zu %zu %d.%d\n", k.registers, k.local, k.shared, n.major, n.minor);
    else
        fprintf(stderr, "resources: %s for %s: no such kernel\n", argv[2], argv[1]);
    free(image);
    free(text);
    return ok ? 0 : 1;
}
