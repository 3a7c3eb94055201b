/*
 * Discrete Fourier transforms as their stages (core/ir/dft.h), each of which is one kernel; on a device whose work items
 * have caches of their own, those of many rows as one kernel.
 */
#ifndef DC_JIT_REWRITE_FFT_STAGES_H
#define DC_JIT_REWRITE_FFT_STAGES_H

#include "core/ir/graph.h"

/* A new function of the same module; NULL: there is no transform in f. Those of bodies stay. */
dc_func *dc_fft_stages(dc_arena *scratch, const dc_func *f, bool rows);

#endif
