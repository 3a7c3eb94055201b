/* Random meshes, and how values of a function lie on them. */
#ifndef DC_TESTS_SHARDGEN_H
#define DC_TESTS_SHARDGEN_H

#include "core/transform/partition.h"

#include "tests/unit/rng.h"

static inline const dc_mesh *shardgen_mesh(rng *r)
{
    static const dc_mesh meshes[] = {
        {1, {2}, {"a"}},         {1, {2}, {"a"}},
        {1, {3}, {"a"}},         {1, {4}, {"a"}},
        {2, {2, 2}, {"a", "b"}}, {2, {2, 3}, {"a", "b"}},
        {2, {1, 2}, {"a", "b"}}, {3, {2, 2, 2}, {"a", "b", "c"}},
    };
    return &meshes[rng_below(r, DC_COUNTOF(meshes))];
}

/* Each axis of the mesh splits an axis that divides, more often than not. */
static inline dc_sharding shardgen_one(rng *r, const dc_mesh *m, const dc_type *t)
{
    dc_sharding s = {0};
    for (uint32_t a = 0; a < m->naxis; a++) {
        dc_sharding more = s;
        dc_type part;
        int axis;
        if (t->rank == 0 || rng_below(r, 4) == 0)
            continue;
        more.dim[a] = (uint8_t)(1 + rng_below(r, t->rank));
        if (dc_sharding_part(&more, m, t, &part, &axis))
            s = more;
    }
    return s;
}

/* Of n nodes, in scratch memory. */
static inline dc_sharding *shardgen_list(rng *r, dc_job *j, const dc_mesh *m, const dc_func *f,
                                         const dc_ref *at, uint32_t n)
{
    dc_sharding *s = DC_NEW_ARRAY(&j->scratch, dc_sharding, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const dc_type t = dc_node_type(f, at[i]);
        s[i] = shardgen_one(r, m, &t);
    }
    return s;
}

#endif
