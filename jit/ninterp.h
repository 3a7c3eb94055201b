/*
 * Interpreter of the nest form: runs a kernel on host memory, slowly, checking every access against
 * its buffer. Schedules are tested with it without any compiler: each prefix of a list of moves must
 * compute the same. Vector lanes and unrolled iterations run one after the other.
 */
#ifndef DC_JIT_NINTERP_H
#define DC_JIT_NINTERP_H

#include "jit/nest.h"

/* mem[i] is the buffer of parameter i. An access outside a buffer is a BUG record that names it. */
dc_status dc_nest_run(dc_job *j, const dc_kernel *k, void *const *mem);

#endif
