/* Ranges of positions, and proofs that positions of different iterations of a loop are different. */
#ifndef DC_JIT_NEST_NEST_DISJOINT_H
#define DC_JIT_NEST_NEST_DISJOINT_H

#include "jit/nest/nest_access.h"

/* Range of a map where p and q hold. A sum that is tested as a whole counts with the range of the test. */
void dc_nest_range(dc_nest_edit *v, dc_ix a, dc_pred p, dc_pred q, int64_t *lo, int64_t *hi);

/*
 * Do two accesses in different iterations of the axis never touch the same element, whatever the iterations
 * of the axes in `moves` are in each of them?
 */
bool dc_access_apart(dc_nest_edit *v, const dc_access *a, const dc_access *b, uint32_t axis,
                     const bool *moves);
/* Are positions in different iterations of the axis different, whatever the iterations of the axes `with` are? */
bool dc_nest_distinct(dc_nest_edit *v, dc_ix at, dc_pred p, uint32_t axis, const bool *with);

#endif
