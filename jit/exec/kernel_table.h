/*
 * The compiled kernels of a context: kernels that are the same text for the same target are
 * compiled once, whichever executables they belong to, one after the other or at the same time. The
 * table knows texts by their digests, as the cache on disk does.
 *
 * A program may hold several kernels; it lives as long as one of them is in the table. Kernels that
 * no executable uses stay for the next one that asks, DC_KERNELS_SPARE of them, the longest unused
 * dropped first; DC_KERNELS_FEW where half of the context's memory limit is used.
 *
 * dc_kernels_claim, _publish, _wait and _abandon are for any thread; the others, and so every call
 * of program_free, for the context's.
 */
#ifndef DC_JIT_EXEC_KERNEL_TABLE_H
#define DC_JIT_EXEC_KERNEL_TABLE_H

#include "core/runtime/device.h"
#include "jit/cache/disk_cache.h"
#include "jit/cache/kernel_needs.h"

enum { DC_KERNELS_SPARE = 256, DC_KERNELS_FEW = 16 };

typedef struct dc_kernels dc_kernels;
typedef struct dc_compiled dc_compiled; /* a kernel of the table; counts its users */

dc_kernels *dc_kernels_new(dc_device *d);
void dc_kernels_free(dc_kernels *t); /* none is in use */

/*
 * The kernel of this text, used once more. *mine: there was none, and the caller has to compile it
 * and to publish or abandon it, before it waits for any other.
 */
dc_compiled *dc_kernels_claim(dc_kernels *t, dc_cache_key text, bool *mine);

/* What a launch of it needs, given by the job that claimed it, before it is published. Takes it over. */
void dc_kernels_describe(dc_compiled *c, dc_kernel_needs *needs);

/*
 * What was claimed is the entries 0.. of a program, in this order. Takes the program over. `disk`: of
 * the program in the cache on disk; NULL: it is not there.
 */
void dc_kernels_publish(dc_kernels *t, dc_compiled *const *c, uint32_t n, dc_program *program,
                        const dc_cache_key *disk);

/* It could not be compiled. Jobs that wait for it claim it anew; the caller uses it no more. */
void dc_kernels_abandon(dc_kernels *t, dc_compiled *c);

/* Until the kernel is published (true) or abandoned (false: it is used no more). */
bool dc_kernels_wait(dc_kernels *t, dc_compiled *c);

dc_program *dc_compiled_program(const dc_compiled *c); /* published */
uint32_t dc_compiled_entry(const dc_compiled *c);
const dc_kernel_needs *dc_compiled_needs(const dc_compiled *c);
dc_cache_key dc_compiled_text(const dc_compiled *c); /* what it was claimed by */
/* Of a published one: its program is on disk, alone in it. */
bool dc_compiled_on_disk(const dc_compiled *c, dc_cache_key *disk);

/* Used once less. Programs are not freed before dc_kernels_trim. */
void dc_kernels_release(dc_kernels *t, dc_compiled *c);

/* Drops unused kernels until `spare` are left, and the programs that nothing of is left of. */
void dc_kernels_trim(dc_kernels *t, uint32_t spare);

#endif
