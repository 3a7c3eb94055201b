/* Blocks: a tensor in memory of a type with larger dims, whose elements lie at the same positions. */
#ifndef DC_CORE_RUNTIME_BLOCK_H
#define DC_CORE_RUNTIME_BLOCK_H

#include "core/runtime/storage.h"

typedef struct dc_block {
    char *at;
    const dc_type *type; /* of the memory */
} dc_block;

/* t has sizes known at run time. Is what there is the first part of memory of its bounds, without gaps? */
bool dc_block_is_prefix(const dc_type *t);

/* So many bytes of the host's memory a copy of `part` needs. */
size_t dc_block_host_bytes(const dc_rt *rt, const dc_type *part, const dc_type *to,
                           const dc_type *from);
/* Copies the elements of `part`; `host` is memory of so many bytes. */
dc_status dc_block_copy(dc_rt *rt, dc_job *j, char *host, const dc_type *part, dc_block to,
                        dc_block from);

#endif
