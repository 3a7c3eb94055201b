/*
 * OpenCL devices, through whatever library is installed: kernels in the dialect "opencl". They are
 * numbered through all platforms in the order that the library gives them.
 */
#ifndef DC_BACKENDS_OPENCL_OPENCL_H
#define DC_BACKENDS_OPENCL_OPENCL_H

#include "core/runtime/device.h"

/* DEVICE when there is no library or no such device, OPTION when DEEPC_TARGET is unknown here. */
dc_status dc_opencl_open(dc_job *j, uint32_t number, dc_device **out);

/* One line about device `number`, or the reason why there is none. Returns whether it is usable. */
bool dc_opencl_describe(const dc_opts *opt, uint32_t number, char *line, size_t size);

uint32_t dc_opencl_count(const dc_opts *opt);

#endif
