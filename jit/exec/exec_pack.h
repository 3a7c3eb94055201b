/*
 * The compiled part of an executable as bytes, and back: commands, memory plan, the facts about each
 * kernel that reports show; of the kernels themselves the digests that the context's table and the cache on
 * disk know them by. No pointer, and no line of a script: lines and layers are the
 * numbers of the first origins that have them, in the side tables of the graph that it was made from. So they are right
 * for every graph whose origins have the same words where those of that graph have (dc_exec_put_words).
 */
#ifndef DC_JIT_EXEC_EXEC_PACK_H
#define DC_JIT_EXEC_EXEC_PACK_H

#include "jit/cache/disk_cache.h"
#include "jit/exec/exec.h"

typedef struct dc_packed_kernel {
    dc_cache_key text, disk; /* jit/exec/kernel_table.h */
} dc_packed_kernel;

/* For a key: of each origin of fn and the bodies of its module, the first one with the same line, and with the same layer. */
void dc_exec_put_words(dc_job *j, const dc_func *fn, dc_text *out);

/* False: one of the kernels is not on disk. */
bool dc_exec_pack(const dc_exec *e, dc_text *out);

/*
 * Fills in what was packed, in e->mem; the caller adds programs and e->kernel, for the nkernel
 * kernels of *kernel, in e->mem too. False: the bytes are no packed executable of e's description; e
 * is then as before but for its arena.
 */
bool dc_exec_unpack(dc_exec *e, const void *bytes, size_t n, dc_packed_kernel **kernel);

void dc_exec_unpack_nothing(dc_exec *e); /* takes it back, but for e->kernel */

/* LAUNCH: the kernel that command i runs, by its name; nkernel: none. */
uint32_t dc_exec_packed_kernel(const dc_exec *e, uint32_t command);

#endif
