/*
 * The CPU as a device: kernels are LLVM IR text (dialect "llvm"), memory is the process's own, a
 * recording runs on the calling thread.
 *
 * What device.h leaves open, as this device does it:
 *   slot 0 of a run is the argument block, handed to every kernel as `block`;
 *   a CHECK that stops the run is no failure of the device: run() returns DC_OK and info tells;
 *   a program must outlive the recordings that launch it;
 *   run() allocates nothing.
 */
#ifndef DC_BACKENDS_CPU_CPU_H
#define DC_BACKENDS_CPU_CPU_H

#include "core/runtime/device.h"

/*
 * DEVICE when the machine is none that code can be generated for, or lacks the instruction set: `set`
 * is what follows "cpu:" in the name of the device, "" where nothing does. Does not open LLVM.
 */
dc_status dc_cpu_open(dc_job *j, const char *set, dc_device **out);

/* One line for `deepc --devices`; false when the device cannot be used, with the reason. */
bool dc_cpu_describe(const dc_opts *opt, const char *set, char *line, size_t size);

/* `cpu:cc`: the same, but that kernels are C11 text for the system's compiler (cc.h). */
dc_status dc_cpu_open_cc(dc_job *j, const char *set, dc_device **out);
bool dc_cpu_describe_cc(const dc_opts *opt, const char *set, char *line, size_t size);

#endif
