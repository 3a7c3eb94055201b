/*
 * Devices sim:cpu, sim:cuda and sim:opencl: memory of the host, kernels as flat text (parsed at
 * compile) run by the interpreter of the flat form, slowly and with every access checked.
 */
#ifndef DC_JIT_SIM_SIM_H
#define DC_JIT_SIM_SIM_H

#include "core/runtime/device.h"

/* DEVICE if `name` is none of them. */
dc_status dc_sim_open(dc_job *j, const char *name, dc_device **out);

/* Is it a name for dc_sim_open? */
bool dc_sim_is(const char *name);

/* As dc_backend_list does (backends/registry.h). */
void dc_sim_list(void (*see)(void *ctx, const char *name, bool usable, const char *line),
                 void *ctx);

#endif
