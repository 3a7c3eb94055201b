/*
 * Nest form to flat form. The kernel must be legal (dc_nest_check); the result is (dc_flat_check),
 * after the passes of jit/flat/passes.def. Free it with dc_flat_free. The kernel stays as it is but for
 * index expressions added to its table.
 */
#ifndef DC_JIT_FLAT_FLATTEN_H
#define DC_JIT_FLAT_FLATTEN_H

#include "core/runtime/device.h"
#include "jit/flat/flat.h"

/*
 * For groups of threads where target->simt, else for threads of a CPU. BUILD if a group would need more
 * threads or memory than the target has. skip: passes to leave out, a bit by position in the table.
 */
dc_status dc_flatten_for(dc_job *j, dc_kernel *k, const dc_target *target, uint32_t skip,
                         dc_flat **out);

/* For threads of a CPU. */
dc_status dc_flatten(dc_job *j, dc_kernel *k, dc_flat **out);

#endif
