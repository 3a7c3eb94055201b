/*
 * A rank of a world that is not there, for `deepc plan`: exchanges end at once, and bring what this rank has itself in the
 * place of what others have.
 */
#include "core/world/engine.h"
#include "core/world/world_impl.h"

#include <string.h>

dc_status dc_world_pretend(dc_job *j, int rank, int size, dc_world **out)
{
    DC_TRY(dc_world_alone(j, out));
    (*out)->rank = rank;
    (*out)->size = size;
    (*out)->pretends = true;
    return DC_OK;
}

/* The parts of an array that a member gives, and those that it gets; 1: it is whole. */
static void parts_of(dc_exchange_kind kind, int64_t n, int64_t *from, int64_t *to)
{
    *from = kind == DC_REDUCE_SCATTER || kind == DC_ALL_TO_ALL ? n : 1;
    *to = kind == DC_ALL_GATHER || kind == DC_ALL_TO_ALL ? n : 1;
}

static void bring(const dc_transfer *t, size_t size, int64_t from, int64_t to)
{
    const size_t bytes = (size_t)t->inner * size;
    if (t->from == NULL && t->to != NULL) /* received: this rank has nothing like it */
        memset(t->to, 0, (size_t)t->outer * bytes);
    for (int64_t o = 0; o < t->outer && t->from != NULL && t->to != NULL; o++)
        for (int64_t p = 0; p < to; p++)
            memmove((char *)t->to + (size_t)(o * to + p) * bytes,
                    (const char *)t->from + (size_t)(o * from + (from == to ? p : 0)) * bytes,
                    bytes);
}

void dc_world_pretend_run(const dc_exchange *x)
{
    int64_t from, to;
    parts_of(x->kind, dc_group_size(&x->axes), &from, &to);
    for (uint32_t i = 0; i < x->n; i++)
        bring(&x->at[i], dc_dtype_size(x->dtype), from, to);
}
