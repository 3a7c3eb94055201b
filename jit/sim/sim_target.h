/*
 * Targets that are described without a machine: for the interpreters of kernels (sim:*), for texts
 * that are only compiled (CUDA), for the examples in docs/. dialect is "flat" for the names beginning with
 * "sim:", else the real one.
 */
#ifndef DC_JIT_SIM_SIM_TARGET_H
#define DC_JIT_SIM_SIM_TARGET_H

#include "core/runtime/device.h"

/* "cpu", "c11", "opencl", "cuda", "sim:cpu", "sim:opencl", "sim:cuda"; NULL for others. */
const dc_target *dc_sim_target_named(const char *name);

#endif
