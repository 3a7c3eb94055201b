/* Meshes of ranks, and how a value lies on the ranks of one. */
#ifndef DC_CORE_IR_SHARDING_H
#define DC_CORE_IR_SHARDING_H

#include "core/ir/exchange.h"

#include <string.h>

/* Ranks as an array; the place of a rank is its position in row-major order. */
typedef struct dc_mesh {
    uint32_t naxis;
    int64_t size[DC_MESH_AXES];
    const char *name[DC_MESH_AXES]; /* interned */
} dc_mesh;

/*
 * By axis of the mesh: 1 + the axis of the value that it splits into equal parts, 0: it splits none. Where several split the
 * same one, the first is the slowest. partial: along these the ranks hold terms of the value, which is their sum.
 */
typedef struct dc_sharding {
    uint8_t dim[DC_MESH_AXES];
    uint8_t partial;
} dc_sharding;

int64_t dc_mesh_size(const dc_mesh *m);
/* Ranks whose places differ along the axes of the mask alone. */
static inline dc_group_axes dc_mesh_group(const dc_mesh *m, uint32_t mask)
{
    dc_group_axes g = {.naxis = m->naxis, .mask = mask};
    memcpy(g.size, m->size, sizeof g.size);
    return g;
}
static inline bool dc_sharding_same(const dc_sharding *a, const dc_sharding *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
/* Is the value whole on every rank? */
bool dc_sharding_whole(const dc_sharding *s);
/* In how many parts axis `dim` is. */
int64_t dc_sharding_parts(const dc_sharding *s, const dc_mesh *m, int dim);
/* The part of a rank; false where an axis does not divide, or has no size before run time: *axis. */
bool dc_sharding_part(const dc_sharding *s, const dc_mesh *m, const dc_type *whole, dc_type *part,
                      int *axis);

/* Why it is false: "f32[12, 8]: 3 ranks cannot share the 8 elements of axis 2 equally". */
void dc_sharding_why_not(const dc_sharding *s, const dc_mesh *m, const dc_type *whole, int axis,
                         char *out, size_t room);

#endif
