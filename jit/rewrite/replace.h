/* A function in which other nodes stand for those of one operation: for passes that take operations apart. */
#ifndef DC_JIT_REWRITE_REPLACE_H
#define DC_JIT_REWRITE_REPLACE_H

#include "core/ir/graph.h"

typedef struct dc_replacing {
    dc_op op;
    bool (*is)(void *ctx, const dc_node *n); /* which of its nodes; NULL: all */
    dc_ref (*make)(void *ctx, dc_func *to, const dc_node *n, const dc_ref *in);
    void *ctx;
} dc_replacing;

/* NULL where there are none. */
dc_func *dc_replace(dc_arena *scratch, const dc_func *f, const dc_replacing *r);

#endif
