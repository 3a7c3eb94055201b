/*
 * Flat form to the C family: C11, OpenCL C 1.2, CUDA C++. One renderer, a small table per dialect
 * (what memory is called, how threads are numbered, the functions that differ). The text includes
 * no header of the system and calls nothing that the dialect has not built in.
 *
 * Entries, by dialect:
 *   c11     void k(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)
 *   opencl  __kernel void k(__global uchar *g0, ulong o0, __global uchar *g1, ulong o1, ...):
 *           parameter p of the kernel begins o<p> bytes behind g<p>. A kernel of groups (simt) is
 *           launched with dc_flat.positions groups of dc_flat.threads; in parts with a global offset, a
 *           multiple of the threads. One that is not simt has three more parameters, __global uchar
 *           *scratch (dc_flat.scratch bytes for each thread), long first and long last: G threads share
 *           work items first to last - 1 out, whatever G is.
 *   cuda    extern "C" __global__ void k(unsigned char *base, u64 stop, u64 p0, u64 p1, ...): simt only; see
 *           jit/render/dialect_cuda.c.
 *
 * Vectors are arrays of lanes, run through by loops that a compiler unrolls (jit/render/c_plan.h).
 *
 * What a compiler has to be told, so that the text means what the kernel does:
 *   c11     -fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math
 *   opencl  -cl-std=CL1.2, -cl-fp32-correctly-rounded-divide-sqrt where the device can;
 *           no -cl-denorms-are-zero, no -cl-fast-relaxed-math
 *   cuda    --std=c++17 --fmad=false; the defaults of -ftz, -prec-div, -prec-sqrt
 */
#ifndef DC_JIT_RENDER_RENDER_C_H
#define DC_JIT_RENDER_RENDER_C_H

#include "core/runtime/device.h"
#include "jit/flat/flat.h"

/* Bytes of shared memory that a launch has to bring, as the text declares no array of them: dc_command.shared. */
size_t dc_render_dynamic(const dc_flat *f, const dc_target *target);

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out);

#endif
