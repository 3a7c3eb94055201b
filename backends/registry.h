/*
 * The devices there are, by name. The only place that knows all of them; vm/ asks here, and nothing
 * else includes a backend's header.
 */
#ifndef DC_BACKENDS_REGISTRY_H
#define DC_BACKENDS_REGISTRY_H

#include "core/runtime/device.h"

/*
 * Opens the device called `name` with the settings of the job. *interpret: compiled functions run
 * on the interpreter over this device's memory. DEVICE with the known names for an unknown one.
 */
dc_status dc_backend_open(dc_job *j, const char *name, dc_device **out, bool *interpret);

/* Is it a name of a device, there or not? And the one form of it: "cuda:0" for "cuda". */
bool dc_backend_is(const char *name);
void dc_backend_name(const char *name, char *out, size_t size);

/* Calls see(name, usable, line) for each device; the line says what it is, or why it is absent. */
void dc_backend_list(const dc_opts *opt,
                     void (*see)(void *ctx, const char *name, bool usable, const char *line),
                     void *ctx);

/* The same of one device; false too for a name that no device has. */
bool dc_backend_describe(const dc_opts *opt, const char *name, char *line, size_t size);

#endif
