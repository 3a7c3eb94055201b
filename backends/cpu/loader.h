/*
 * A relocatable ELF64 x86-64 object becomes callable memory.
 *
 * Objects are those of kernels: position independent, self-contained but for the C library
 * functions listed in loader.c. Nothing in an object is trusted: sizes, offsets, indices and
 * relocations are checked, and what does not add up is BUILD with a sentence. What the code does
 * when it is called cannot be checked; objects from a disk need a checksum before they come here.
 *
 * Text ends up read-only and executable, constants read-only; no page is ever writable and
 * executable.
 */
#ifndef DC_BACKENDS_CPU_LOADER_H
#define DC_BACKENDS_CPU_LOADER_H

#include "core/base/heap.h"
#include "core/base/job.h"

typedef struct dc_image {
    void *base; /* one mapping: text, constants, variables */
    size_t bytes;
    dc_heap *heap; /* whose limit the mapping counts towards */
    uint32_t nentry;
    void *entry[]; /* in the order asked for */
} dc_image;

dc_status dc_loader_load(dc_job *j, const void *object, size_t bytes, const char *const *entry,
                         uint32_t nentry, dc_image **out);
void dc_loader_unload(dc_image *image);

#endif
