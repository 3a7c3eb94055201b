/*
 * Nest form to flat form. The kernel must be legal (dc_nest_check); the result is (dc_flat_check),
 * after the passes of jit/passes.def. Free it with dc_flat_free.
 */
#ifndef DC_JIT_FLATTEN_H
#define DC_JIT_FLATTEN_H

#include "jit/flat.h"

dc_status dc_flatten(dc_job *j, const dc_kernel *k, dc_flat **out);

/* For tests: without the passes whose bit is in skip. */
dc_status dc_flatten_skipping(dc_job *j, const dc_kernel *k, uint32_t skip, dc_flat **out);

#endif
