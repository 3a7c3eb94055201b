/* Types, constants and entries of NVRTC that the stand-in has, under NVIDIA's names (13.0). */
#ifndef DC_TESTS_CUDA_CUDA_NVRTC_H
#define DC_TESTS_CUDA_CUDA_NVRTC_H

#include <stddef.h>
#include <stdint.h>

typedef int nvrtcResult;
typedef struct nvrtc_program *nvrtcProgram;

enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6,
    NVRTC_ERROR_INTERNAL_ERROR = 11,
};

/* clang-format off */
nvrtcResult nvrtcVersion(int *major, int *minor);
const char *nvrtcGetErrorString(nvrtcResult e);
nvrtcResult nvrtcGetNumSupportedArchs(int *n);
nvrtcResult nvrtcGetSupportedArchs(int *arch);
nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n,
                               const char *const *headers, const char *const *names);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p);
nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options);
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *text);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *image);
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n);
nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *image);

uint64_t cuda_standin_compiled(void); /* of the stand-in: texts that the compiler was run for */

#endif
