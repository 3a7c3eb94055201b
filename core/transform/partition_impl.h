/*
 * What the files of partitioning share. Private to core/transform/partition*.c.
 *
 *   partition.c          the walk; what users of a value want of it
 *   partition_convert.c  a value in another sharding
 *   partition_rules.c    element-wise operations, reductions, movement
 *   partition_product.c  contractions, convolutions, indexing
 *   partition_control.c  loops and branches
 */
#ifndef DC_CORE_TRANSFORM_PARTITION_IMPL_H
#define DC_CORE_TRANSFORM_PARTITION_IMPL_H

#include "core/ir/control.h"
#include "core/transform/partition.h"

/* A node of the whole function as a rank has it. */
typedef struct dc_version {
    dc_sharding s;
    dc_ref at;
    struct dc_version *next;
} dc_version;

/* An exchange in the function that is made, or in a body. */
typedef struct dc_shard_step {
    dc_ref at; /* 0: in a body */
    dc_partition_step step;
} dc_shard_step;

typedef struct dc_partitioner {
    dc_job *j;
    const dc_partition *p;
    DC_VEC(dc_shard_step) step; /* each once; some are not needed in the end */
    const dc_mesh *mesh;
    const dc_func *from;
    dc_func *to;
    dc_ref *index;         /* by axis of the mesh: the place of the rank */
    bool *live;            /* by node of `from`, as all that follows: */
    dc_version **version;  /* the first one is how it is computed */
    dc_sharding *hint;     /* what its users would split; nothing: no wish */
    bool *forced;          /* a user needs the sum of its terms */
    bool *data;            /* it depends on an argument of the call */
    uint32_t *users;       /* how many there are, results included */
    dc_sharding **many;    /* of a loop or a branch: of each result, and */
    dc_ref **many_at;      /* what it is */
    const bool *from_data; /* by parameter */
    dc_ref user;           /* the node that is made */
    bool written;          /* what it needs was asked for */
} dc_partitioner;

static inline const dc_node *dc_shard_node(const dc_partitioner *p, dc_ref r)
{
    return dc_node_at(p->from, r);
}

/* How it is computed. */
static inline const dc_sharding *dc_shard_of(const dc_partitioner *p, dc_ref r)
{
    return &p->version[r]->s;
}

/* Is it given to others as f32? */
static inline bool dc_shard_wide(const dc_partitioner *p, dc_ref r, const dc_sharding *s)
{
    const dc_dtype t = (dc_dtype)dc_shard_node(p, r)->dtype;
    return p->p->wide && s->partial != 0 && dc_dtype_is_float(t) && dc_dtype_size(t) < 4;
}

/* The type of a part. */
dc_type dc_shard_type(const dc_partitioner *p, dc_ref r, const dc_sharding *s);
/* Do all axes of the node divide so? */
bool dc_shard_fits(const dc_partitioner *p, dc_ref r, const dc_sharding *s);
void dc_shard_add(dc_partitioner *p, dc_ref r, const dc_sharding *s, dc_ref at);

/* r, made in that sharding, or exchanged. */
dc_ref dc_shard_as(dc_partitioner *p, dc_ref r, const dc_sharding *s);
/* Is r exchanged for that, as it is computed? */
bool dc_shard_gives(const dc_partitioner *p, dc_ref r, const dc_sharding *s);
dc_ref dc_shard_whole(dc_partitioner *p, dc_ref r);
/* The sharding of r with its terms summed up: where the hint says so split, else whole. */
dc_sharding dc_shard_summed(const dc_partitioner *p, dc_ref r);
/* Combined over the axes of a mask. */
dc_ref dc_shard_reduce(dc_partitioner *p, dc_ref at, dc_combine by, uint32_t mask);
/* The number of the part of the rank among those of axis `dim`: i32[]; 0 where there is one part. */
dc_ref dc_shard_number(dc_partitioner *p, const dc_sharding *s, int dim);

/* Node r on these operands, of that sharding. */
dc_ref dc_shard_make(dc_partitioner *p, dc_ref r, const dc_ref *in, const dc_sharding *s);
/* Operand shardings of an operation that only moves elements, or works by element, for one of the result. False: none. */
bool dc_shard_back(const dc_partitioner *p, dc_ref r, const dc_sharding *result, dc_sharding *in);

/* The operand of a product by a constant, or of a quotient, that may stay terms; it has no other user. -1: none. */
int dc_shard_scaled(const dc_partitioner *p, const dc_node *n);

/* Those of the steps that are needed are added to the list of another function, a body's `times` as often. */
void dc_shard_keep_steps(const dc_partitioner *p, int64_t times, dc_partitioner *outer,
                         dc_partition *out);

/* Rules: make node r. */
void dc_shard_ew(dc_partitioner *p, dc_ref r);
void dc_shard_reduction(dc_partitioner *p, dc_ref r);
void dc_shard_move(dc_partitioner *p, dc_ref r);
void dc_shard_source(dc_partitioner *p, dc_ref r);
void dc_shard_dot(dc_partitioner *p, dc_ref r);
void dc_shard_conv(dc_partitioner *p, dc_ref r);
void dc_shard_index(dc_partitioner *p, dc_ref r);
void dc_shard_rows(dc_partitioner *p, dc_ref r, int axes); /* the last `axes` have to be whole */
void dc_shard_fallback(dc_partitioner *p, dc_ref r);
dc_status dc_shard_control(dc_partitioner *p, dc_ref r);

/* Is r 0 everywhere? Then it is also terms of itself. */
bool dc_shard_is_zero(const dc_partitioner *p, dc_ref r);

/* What a body, whose parameters lie in a given way, makes of them. */
typedef struct dc_shard_facts {
    dc_sharding *result; /* how its results lie, terms added up */
    dc_sharding
        *asked; /* by parameter: the one sharding that the body exchanges it to, else as it is */
    /*
     * By result: how it lies in terms that nothing in the body needs the sum of; where it is a carry, and something is added
     * to it, how that does. No partial: there is no such way.
     */
    dc_sharding *terms;
} dc_shard_facts;

/* The body of a loop, or a side of a branch. */
dc_status dc_shard_body(dc_partitioner *p, const dc_func *body, const dc_sharding *param,
                        dc_shard_facts *facts);
/* The function whose results lie as it is wanted; NULL: some terms are not to be had so. */
dc_status dc_shard_make_body(dc_partitioner *p, const dc_func *body, const dc_sharding *param,
                             const dc_sharding *wanted, dc_func **out);

#endif
