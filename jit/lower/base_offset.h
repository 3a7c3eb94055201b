/*
 * Kernels that differ only in where they begin to read become equal: the constant offset that all reads of an
 * input share becomes part of its address. The steps of an unrolled loop, each with its slice of one value, are
 * then one kernel.
 */
#ifndef DC_JIT_LOWER_BASE_OFFSET_H
#define DC_JIT_LOWER_BASE_OFFSET_H

#include "core/base/job.h"
#include "jit/nest/nest.h"

/*
 * Inputs of a naive kernel, and what it changes a part of, begin at the first element that may be touched and end
 * behind the last one. By parameter: bytes to add to its address, in the job's scratch memory. Of a place that is a multiple of
 * DC_BUFFER_ALIGN the kernel knows as much as before, of others that elements are whole; so there are two kernels
 * at most.
 */
const size_t *dc_base_offset_inputs(dc_job *j, dc_kernel *k);

#endif
