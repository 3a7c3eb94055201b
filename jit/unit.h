/*
 * Flat forms to programs of the device: one for each kernel where the device works one by one, then
 * on several threads; else one of all. A program is in the cache on disk, or is compiled and stored
 * there.
 *
 * A text that is looked for on disk has names of its own for kernels, so that it does not depend on
 * what else is in an executable.
 */
#ifndef DC_JIT_UNIT_H
#define DC_JIT_UNIT_H

#include "jit/flat.h"
#include "jit/pipeline.h"

typedef struct dc_unit { /* a program, of kernels first .. first + n - 1 */
    uint32_t first, n;
    dc_program *program;
    bool cached; /* it was on disk */
} dc_unit;

/* unit has room for n. All programs, the caller's from now on, or none. */
dc_status dc_units_make(const dc_env *env, dc_job *j, dc_flat *const *kernel, uint32_t n,
                        dc_unit *unit, uint32_t *nunit);

#endif
