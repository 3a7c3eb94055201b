/*
 * From a function about whole values to the one that a rank runs (as XLA's SPMD partitioner).
 *
 * A sharding says how a value lies on the ranks of a mesh. Parameters and results have one that is given; those of all
 * other values are chosen here, operation by operation: an operation works on the parts that it finds where it can, and
 * what it cannot do so is exchanged first (core/graph/exchange.h). All ranks get the same function. What depends on the
 * place of a rank, such as the part of a value that all have, reads it: one parameter i32[] for each axis of the mesh.
 *
 * Every element is computed as in the whole function, but sums over what is split are sums of sums. Random numbers are made
 * from positions, so they are those of the whole value.
 */
#ifndef DC_CORE_GRAPH_PARTITION_H
#define DC_CORE_GRAPH_PARTITION_H

#include "core/graph/exchange.h"

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

/* An exchange that was put in. */
typedef struct dc_partition_step {
    dc_op op;
    uint32_t mask; /* of axes of the mesh */
    dc_type type;  /* of what is given */
    double bytes;  /* that a rank gives to others, each time */
    int64_t times; /* in a call: as many as loops around it go round, at most */
    bool written;  /* asked for by dc.reshard, or by the sharding of a parameter or result */
    const char *where;
} dc_partition_step;

typedef struct dc_partition {
    const dc_mesh *mesh;
    const dc_sharding *param, *result; /* by index */
    uint32_t before;                   /* the places in the mesh are parameters behind so many */
    bool wide;   /* terms of sums of 16-bit floats are f32, and sums are rounded once */
    bool strict; /* what is not written, but for sums, is an error */
    DC_VEC(dc_partition_step) step; /* out, in the arena of the function */
} dc_partition;

/* ARG where it is strict, with the line; EXCHANGE where the function exchanges by itself. */
dc_status dc_partition_func(dc_job *j, const dc_func *f, dc_partition *p, dc_func **out);

#endif
