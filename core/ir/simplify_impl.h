/* What core/ir/simplify.c and core/ir/simplify_ew.c share. */
#ifndef DC_CORE_IR_SIMPLIFY_IMPL_H
#define DC_CORE_IR_SIMPLIFY_IMPL_H

#include "core/ir/simplify.h"

/* A node about to be made. */
typedef struct dc_simplify_site {
    dc_func *f;
    dc_op op;
    dc_ref in[4];
    int nin;
    const int64_t *attr;
    int nattr;
    dc_type type;
} dc_simplify_site;

/* Simplifies the node before it makes it. */
dc_ref dc_simplify_emit(const dc_simplify_site *s);

/* What an element-wise operation becomes; 0 when there is nothing to do. */
dc_ref dc_simplify_ew(const dc_simplify_site *s);

/* Can no element be -0? Looks a few nodes deep; false when it does not know. */
bool dc_simplify_no_minus_zero(const dc_func *f, dc_ref r, int depth);

static inline const dc_node *dc_simplify_operand(const dc_simplify_site *s, int i)
{
    return dc_node_at(s->f, s->in[i]);
}

static inline dc_dtype dc_simplify_dtype(const dc_simplify_site *s, dc_ref r)
{
    return (dc_dtype)dc_node_at(s->f, r)->dtype;
}

static inline dc_ref dc_simplify_const(const dc_simplify_site *s, uint64_t bits)
{
    const int64_t attr = (int64_t)bits;
    return dc_graph_make(s->f, DC_OP_CONST, NULL, 0, &attr, 1, &s->type);
}

#endif
