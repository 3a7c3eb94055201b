/* Whether long work is to end early: what a thread of it reads between pieces, and kernels in very long loops. */
#ifndef DC_CORE_BASE_LOOK_H
#define DC_CORE_BASE_LOOK_H

#include "core/base/base.h"

#include <stdatomic.h>

/* Work that finds *flag set calls ask(ctx), and ends at once where that is not 0; from then on it never is again. */
typedef struct dc_look {
    const atomic_bool *flag;
    int (*ask)(void *ctx);
    void *ctx;
} dc_look;

/* Of NULL never. */
static inline bool dc_look_ends(const dc_look *l)
{
    return l != NULL && atomic_load_explicit(l->flag, memory_order_relaxed) && l->ask(l->ctx) != 0;
}

/* The address of a kernel's dc_look lies DC_LOOK_BYTES in front of a thread's scratch memory. */
enum { DC_LOOK_BYTES = 64 };

static inline const dc_look **dc_look_of(void *scratch)
{
    return (void *)((char *)scratch - DC_LOOK_BYTES);
}

/*
 * Elements begin to end - 1 of n, some thousand at a time, as long as it does not end. What has seen it end leaves results
 * unfinished: whoever asked for the end reads none.
 */
#define DC_LOOK_PIECE ((int64_t)1 << 17)
#define DC_LOOK_PIECES(look, begin, end, n)                                            \
    for (int64_t begin = 0, end; begin < (n) && !dc_look_ends(look) &&                 \
                                 (end = dc_min_i64(begin + DC_LOOK_PIECE, (n)), true); \
         begin = end)

#endif
