/*
 * A context without the compiled kernels that it keeps for functions to come.
 */
#ifndef DC_TESTS_TRIM_H
#define DC_TESTS_TRIM_H

#include "core/runtime/rt.h"
#include "jit/compile/compile_job.h"
#include "jit/exec/kernel_table.h"

static inline void trim_kernels(dc_rt *rt)
{
    if (rt->jit != NULL && rt->jit->kernels != NULL)
        dc_kernels_trim(rt->jit->kernels, 0);
}

#endif
