/*
 * BLAKE2b (RFC 7693) with a digest of 16 bytes and no key: for names of entries whose text
 * may come from an attacker. Two texts of one digest cannot be made, as they can for dc_hash_mix: by it, a
 * graph in a file could have got the machine code of another kernel, with other sizes of its buffers.
 */
#ifndef DC_CORE_BASE_BLAKE2_H
#define DC_CORE_BASE_BLAKE2_H

#include "core/base/base.h"

void dc_blake2(const void *bytes, size_t n, uint64_t out[2]);

#endif
