/*
 * Running reductions in blocks, for groups of threads: what the host computes one element after the other, with its
 * operands on the way there and back, is on their device a reduction in steps (core/ir/running.h).
 */
#ifndef DC_JIT_REWRITE_RUNNING_H
#define DC_JIT_REWRITE_RUNNING_H

#include "core/ir/graph.h"

/* NULL where there are none. */
dc_func *dc_running_rewrite(dc_job *j, const dc_func *f);

#endif
