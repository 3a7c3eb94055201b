/* Rewrites of single nodes: jit/rewrite/rules.def has them in their order. */
#ifndef DC_JIT_REWRITE_RULES_H
#define DC_JIT_REWRITE_RULES_H

#include "core/runtime/device.h"
#include "jit/rewrite/attention.h"

/* The node that a rule is asked about, and where what it becomes goes. */
typedef struct dc_rule_at {
    const dc_func *f;
    dc_ref r;                      /* of f */
    dc_func *to;                   /* the new function */
    const dc_ref *in;              /* in it: its operands, */
    const dc_ref *map;             /* and all nodes before it */
    const dc_target *groups;       /* the device, if it runs groups of threads, else NULL */
    const dc_attention *attention; /* of f */
} dc_rule_at;

#define RULE(id, on, help) dc_ref dc_rule_##id(const dc_rule_at *at);
#include "jit/rewrite/rules.def"

/* f with what the rules make of its nodes. groups: as above. */
dc_func *dc_rules_apply(dc_arena *scratch, const dc_func *f, const dc_target *groups);

#endif
