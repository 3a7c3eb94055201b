/*
 * Flat form to the C family: C11, OpenCL C 1.2, CUDA C++. One renderer, a small table per dialect
 * (what memory is called, how threads are numbered, the functions that differ). The text includes
 * no header of the system and calls nothing that the dialect has not built in.
 *
 * Entries, by dialect:
 *   c11     void k(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)
 *   opencl  __kernel void k(__global uchar *b0, ulong o0, __global uchar *b1, ulong o1, ...):
 *           parameter p of the kernel begins o<p> bytes behind b<p>. A kernel of groups (simt) is
 *           launched with dc_flat.positions groups of dc_flat.threads. One for workers has two more
 *           parameters, __global uchar *scratch (dc_flat.scratch bytes for each work item) and
 *           long positions; G work items share the positions out, whatever G is.
 *   cuda    extern "C" __global__ void k(unsigned char *b0, unsigned char *b1, ...): simt only.
 *
 * Vectors are arrays of lanes, run through by loops that a compiler unrolls.
 */
#ifndef DC_JIT_RENDER_C_H
#define DC_JIT_RENDER_C_H

#include "core/device.h"
#include "jit/flat.h"

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out);

#endif
