/*
 * Flat forms to programs of the device: one for each kernel where the device compiles them one by one, then
 * on several threads; else one of all. A program is in the cache on disk, or is compiled and stored
 * there.
 *
 * A text that is looked for on disk has names of its own for kernels, so that it does not depend on
 * the other kernels of an executable.
 */
#ifndef DC_JIT_COMPILE_PROGRAM_BUILD_H
#define DC_JIT_COMPILE_PROGRAM_BUILD_H

#include "jit/cache/disk_cache.h"
#include "jit/cache/kernel_needs.h"
#include "jit/compile/pipeline.h"
#include "jit/flat/flat.h"

typedef struct dc_program_unit { /* a program, of kernels first .. first + n - 1 */
    uint32_t first, n;
    dc_program *program;
    bool cached; /* it was on disk */
    bool keyed;  /* it is there now, or will be, by `key` */
    dc_cache_key key;
} dc_program_unit;

/*
 * The program of the kernel `text` that an earlier process has stored by that key, and what it needs, both
 * the caller's. False: it is not there, it is of another kernel, or the device refuses it.
 */
bool dc_program_find(const dc_env *env, dc_job *j, dc_cache_key key, dc_cache_key text,
                     dc_program **out, dc_kernel_needs **needs);

/* All that programs depend on but their text and compiler; NULL where nothing is kept. */
const char *dc_program_depends(const dc_env *env, dc_job *j);

/* By kernel, what it needs; unit has room for n. All programs, the caller's from now on, or none. */
dc_status dc_program_build(const dc_env *env, dc_job *j, dc_flat *const *kernel,
                           const dc_kernel_needs *const *needs, uint32_t n, dc_program_unit *unit,
                           uint32_t *nunit);

#endif
