/* Hash-consing tables of a kernel, shared by jit/nest/index_expr.c and jit/nest/nest.c. */
#ifndef DC_JIT_NEST_HASH_CONS_H
#define DC_JIT_NEST_HASH_CONS_H

#include "jit/nest/nest.h"

/*
 * Makes room for one more. True when the table was renewed and is empty: the caller inserts all
 * its refs again.
 */
bool dc_hash_cons_reserve(dc_kernel *k, dc_hash_cons *c);
void dc_hash_cons_insert(dc_hash_cons *c, uint64_t hash, uint32_t ref);

/*
 * Both sets. Nodes know the axes below them, since walking down to ask would visit what is shared once for each of the
 * ways that lead to it: 2^n for n sums of a value with itself.
 */
dc_axes dc_axes_join(dc_kernel *k, dc_axes a, dc_axes b);

#endif
