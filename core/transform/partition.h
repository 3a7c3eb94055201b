/*
 * From a function about whole values to the one that a rank runs (as XLA's SPMD partitioner).
 *
 * The shardings of parameters and results are given; those of all other values are chosen here, operation by operation: an
 * operation works on the parts that it finds where it can, and what it cannot do so is exchanged first (core/ir/exchange.h). All ranks get the same function. What depends on the
 * place of a rank, such as the part of a value that all have, reads it: one parameter i32[] for each axis of the mesh.
 *
 * Every element is computed as in the whole function, but sums over what is split are sums of sums. Random numbers are made
 * from positions, so they are those of the whole value.
 */
#ifndef DC_CORE_TRANSFORM_PARTITION_H
#define DC_CORE_TRANSFORM_PARTITION_H

#include "core/ir/sharding.h"

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
