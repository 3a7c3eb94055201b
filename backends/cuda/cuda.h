/*
 * NVIDIA GPUs through the CUDA driver API and NVRTC, both opened at run time: kernels in the dialect "cuda".
 */
#ifndef DC_BACKENDS_CUDA_CUDA_H
#define DC_BACKENDS_CUDA_CUDA_H

#include "core/runtime/device.h"

/* DEVICE when there is no driver or no such device, OPTION when DEEPC_LAUNCH is unknown. */
dc_status dc_cuda_open(dc_job *j, uint32_t number, dc_device **out);

/* One line about device `number`, or the reason why there is none. Returns whether it is usable. */
bool dc_cuda_describe(const dc_opts *opt, uint32_t number, char *line, size_t size);

uint32_t dc_cuda_count(const dc_opts *opt);

#endif
