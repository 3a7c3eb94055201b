/* Elements of several ranks combined to one: to[i] = from[0][i] (op) from[1][i] (op) ... */
#ifndef DC_CORE_WORLD_COMBINE_H
#define DC_CORE_WORLD_COMBINE_H

#include "core/world/world.h"

/* n >= 1, in order of `from`. `to` may be one of them, and lies apart from the others. */
typedef void dc_combine_fn(void *to, const void *const *from, int n, size_t count);

/*
 * From elements of one dtype to the same, or where that is a float of 16 bits from or to f32, in which they are combined:
 * so what several steps make is rounded once. NULL: complex numbers have no maximum.
 */
dc_combine_fn *dc_combine_find(dc_combine op, dc_dtype from, dc_dtype to);

/* What is passed on between two steps. */
static inline dc_dtype dc_combine_between(dc_dtype t)
{
    return dc_dtype_is_short(t) ? DC_F32 : t;
}

#endif
