/*
 * Loops and branches in a function that is traced: what stdlib/control.lua is made of.
 *
 * A body is begun (a value to be closed, which takes it back where it fails), called on stand-ins, and made a function
 * of the module. Lua takes carries apart into lists of tensors and puts them together again; here they are lists.
 */
#ifndef DC_DSL_CONTROL_CONTROL_H
#define DC_DSL_CONTROL_CONTROL_H

#include "core/autodiff/custom.h"
#include "core/ir/control.h"
#include "core/ir/outline.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"
#include "dsl/base/trace.h"
#include "dsl/ops/ops.h"

/* A cell that a side of a branch has set. */
typedef struct dc_side_set {
    uint32_t cell; /* in the trace's list */
    dc_val v;
} dc_side_set;

/* What a side of a branch has left; in the arena of the trace. */
typedef struct dc_side {
    dc_val *result;
    dc_side_set *set;
    dc_trace_check *check;
    dc_val *print;
    int nresult;
    uint32_t nset, ncheck, nprint;
    int nline; /* lines of dc.print */
} dc_side;

enum { DC_CONTROL_LINES = 1, DC_CONTROL__USER = DC_CONTROL_LINES }; /* user values */

/* One body. */
typedef struct dc_control {
    dc_uhead head;
    dc_dsl *d;
    dc_trace *t;
    uint64_t serial;     /* of the trace, which may be gone */
    dc_trace_body *body; /* NULL: it has ended */
    const char *op;
    dc_place place;
    dc_ref mark;
    dc_side side;   /* of a branch, once it has ended */
    dc_val test;    /* of a while loop: the condition, on the stand-ins; ref 0: none */
    uint32_t ntest; /* so many of the tests are the condition's */
} dc_control;

extern const dc_utype dc_control_type;
extern const dc_bindings dc_control_bindings, dc_control_methods, dc_loop_bindings,
    dc_branch_bindings, dc_vmap_bindings;

/* The body at idx, which has not ended; raises. */
dc_control *dc_control_check(lua_State *L, int idx);
/* The handles in field `name` of the table at idx (NULL: the table itself), in a new userdata on the stack. */
typedef struct dc_handles {
    dc_handle **at;
    int n;
} dc_handles;
dc_handles dc_control_list(lua_State *L, dc_dsl *d, int idx, const char *name);
/* Pushes a table of n new handles for results of this operation. */
dc_handles dc_control_fresh(lua_State *L, const dc_control *c, int n);
/* Cuts the lines of dc.print from line `from` on out into a table, which is pushed. */
void dc_control_cut_lines(lua_State *L, const dc_trace *t, int from);
/* Adds the table on top to what dc.print shows, and pops it. */
void dc_control_add_lines(lua_State *L, const dc_trace *t);
/* The cells that the body has set: their numbers, in the arena; returns how many. */
uint32_t dc_control_sets(const dc_trace *t, dc_arena *a, uint32_t **cell);
/* One node, for what could fail. */
dc_status dc_control_ew(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int n, dc_ref *out);

#endif
