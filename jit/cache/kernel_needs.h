/*
 * What a launch of a compiled kernel has to be given: memory for its parameters, work items, threads,
 * scratch. Taken from the flat form, kept with the machine code, on disk too; a recording that comes
 * from disk is checked with it (jit/exec/exec_bounds.h).
 */
#ifndef DC_JIT_CACHE_KERNEL_NEEDS_H
#define DC_JIT_CACHE_KERNEL_NEEDS_H

#include "jit/cache/disk_cache.h"
#include "jit/flat/flat.h"

typedef struct dc_need { /* a parameter */
    uint64_t bytes;      /* from its address on; 0: it is not touched */
    uint64_t align;      /* its address is a multiple of */
    uint64_t written;    /* 1: the kernel stores to it */
} dc_need;

typedef struct dc_kernel_needs {
    uint64_t positions, threads, scratch;
    dc_cache_key text; /* of the kernel, in the context's table (jit/exec/kernel_table.h) */
    uint64_t nparam;
    dc_need param[];
} dc_kernel_needs;

/* From dc_xalloc. */
dc_kernel_needs *dc_kernel_needs_of(const dc_flat *f, dc_cache_key text);

/*
 * Behind the machine code of a program lie the needs of its kernels: several kernels may have one program, those
 * that differ in the number of their work items alone. entry_put: `code`, and behind it what a kernel needs.
 * entry_add: an entry that is there, with another kernel; false: it has that kernel, or is none.
 */
void dc_kernel_entry_put(const void *code, size_t n, const dc_kernel_needs *needs, dc_text *out);
bool dc_kernel_entry_add(const void *entry, size_t n, const dc_kernel_needs *needs, dc_text *out);

/* The bytes of code in an entry of n bytes. False: it is none. */
bool dc_kernel_entry_code(const void *entry, size_t n, size_t *code);

/* What the kernel `text` needs, from dc_xalloc; NULL: the entry does not say. */
dc_kernel_needs *dc_kernel_entry_needs(const void *entry, size_t n, dc_cache_key text);

#endif
