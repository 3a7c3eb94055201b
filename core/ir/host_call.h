/*
 * Operations of classes HST and COM: a function of core/host computes them on dense arrays in the host's memory, for each batch of
 * leading axes by itself; or ranks exchange them (core/ir/exchange.h), whole. This is what is to be known of one of them,
 * and the same as plain numbers, which commands carry.
 */
#ifndef DC_CORE_IR_HOST_CALL_H
#define DC_CORE_IR_HOST_CALL_H

#include "core/ir/exchange.h"

enum { DC_HOST_OPERANDS = 3, DC_HOST_ATTRS = DC_EXCHANGE_ATTRS };

typedef struct dc_host_call {
    dc_op op;
    int nin, nattr;
    dc_type in[DC_HOST_OPERANDS], out;
    int64_t attr[DC_HOST_ATTRS];
    /* For messages of class COM, not among the numbers: dc_exchange has both. */
    const char *label, *where;
} dc_host_call;

dc_host_call dc_host_call_of(const dc_func *f, dc_ref r);

/* Numbers in the arena, *n of them; and back: false where they are none of such a call. */
const int64_t *dc_host_call_pack(const dc_host_call *c, dc_arena *a, uint32_t *n);
bool dc_host_call_unpack(dc_job *j, const int64_t *at, uint32_t n, dc_host_call *out);

/* What an exchange moves: the operand, of recv the result. */
static inline const dc_type *dc_host_call_moved(const dc_host_call *c)
{
    return c->op == DC_OP_RECV ? &c->out : &c->in[0];
}

/* How many axes at the end an operand of the operation takes as one piece of work; the others are the batch. */
int dc_host_call_axes(dc_op op, const int64_t *attr);

#endif
