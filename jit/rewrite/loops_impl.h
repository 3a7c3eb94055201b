/*
 * What the files of the rewrites of loops share. Private to jit/rewrite/loop*.c, branch_rewrite.c.
 *
 *   loops.c           the walk over a function
 *   loop_edit.c       a loop taken apart, and put together again; dead parts
 *   loop_unify.c      equal parts
 *   loop_merge.c      several loops to one
 *   loop_motion.c     constants into the body, invariant values out of it
 *   loop_project.c    contractions for all iterations at once, before and behind the loop
 *   loop_split.c      loops in chunks
 *   loop_panels.c     constant matrices in panels
 *   loop_unroll.c     loops written out
 *   branch_rewrite.c  branches
 */
#ifndef DC_JIT_REWRITE_LOOPS_IMPL_H
#define DC_JIT_REWRITE_LOOPS_IMPL_H

#include "core/ir/control.h"
#include "jit/rewrite/loops.h"

/* An operand with the node of the body that it is the value of, which need not be a parameter while we work on it. */
typedef struct dc_loop_slot {
    dc_ref in, param;
    dc_ref next; /* of a carry: its next value, in the body */
} dc_loop_slot;

typedef struct dc_loop_stack {
    dc_ref value; /* in the body */
    dc_ref kept;  /* operand: what stands there if an element is left out; 0: none is */
    bool asked;   /* by something that is computed behind the loop */
} dc_loop_stack;

/* Where a result of the loop as it was comes from now. */
typedef struct dc_loop_result {
    enum { DC_LOOP_UNUSED, DC_LOOP_CARRIED, DC_LOOP_STACKED, DC_LOOP_VALUE, DC_LOOP_LATE } kind;
    uint32_t at;  /* number of a carry, of a y, of what is computed late */
    dc_ref value; /* a node beside the loop */
} dc_loop_result;

/* A function of all iterations, computed behind the loop: what its parameters are. */
typedef enum dc_loop_source { DC_LOOP_OUTER, DC_LOOP_OUTER_STACK, DC_LOOP_Y } dc_loop_source;
typedef struct dc_loop_arg {
    dc_loop_source from;
    dc_ref in;  /* a constant, an x */
    uint32_t y; /* the number of a y */
} dc_loop_arg;

typedef struct dc_loop_late {
    dc_func *fn; /* of one iteration; one result */
    dc_loop_arg *arg;
    dc_ref kept; /* as of a y */
} dc_loop_late;

typedef struct dc_loopedit {
    dc_job *j;
    dc_func *f;    /* where the operands are */
    dc_func *body; /* whose results do not count */
    int64_t n;
    uint32_t flags;
    dc_ref limit; /* with LIMIT */
    dc_ref i;     /* in the body */
    DC_VEC(dc_loop_slot) constant;
    DC_VEC(dc_loop_slot) carry;
    DC_VEC(dc_loop_slot) x;
    DC_VEC(dc_loop_stack) y;
    DC_VEC(dc_loop_late) late;
    dc_loop_result *result;
    uint32_t nresult;
} dc_loopedit;

/* Flags that say what a loop does. */
enum { DC_LOOP_MEANING = DC_LOOP_REVERSE | DC_LOOP_LIMIT | DC_LOOP_TEST | DC_LOOP_ROWS };

/* Everything is in the job's scratch memory; the body is a function of the module until it is dropped. */
void dc_loop_open(dc_job *j, dc_func *f, const dc_node *n, const dc_func *body, const dc_ref *in,
                  dc_loopedit *out);
/* Adds the constants, carries, xs, ys and results of another loop over the same elements. */
void dc_loop_add(dc_loopedit *w, const dc_node *n, const dc_func *body, const dc_ref *in);
void dc_loop_close(dc_loopedit *w); /* drops the body */

/*
 * The body again, with parameters for what slots stand for. same[r]: parameter r of the body is the parameter same[r];
 * sunk[r]: it is what this node of w->f is. Both by node, NULL for none.
 */
void dc_loop_remake(dc_loopedit *w, const dc_ref *same, const dc_ref *sunk);
/* The same, but the old body stays. */
void dc_loop_remake_beside(dc_loopedit *w, const dc_ref *same, const dc_ref *sunk);

/* What node r of the body becomes in `to`, of these operands; 0: the same again. */
typedef dc_ref dc_loop_again(void *ctx, dc_func *to, dc_ref r, const dc_ref *in);
void dc_loop_remake_nodes(dc_loopedit *w, dc_loop_again *again, void *ctx);

/* By node of the body: are nexts or ys made of it? */
bool *dc_loop_needed(const dc_loopedit *w);
/* Results that no live pick of node r reads are unused; `first`: the number of its first result. */
void dc_loop_mark_unused(dc_loopedit *w, uint32_t first, const bool *used, int n);
bool *dc_loop_used(dc_job *j, const dc_func *f, const bool *live, dc_ref r);
/* New nodes of `to` come from where r came from. */
static inline void dc_loop_from(dc_func *to, const dc_func *from, dc_ref r)
{
    const uint32_t origin = dc_node_at(from, r)->origin;
    if (origin != 0)
        dc_func_from(to, from->origins.at[origin].where, from->origins.at[origin].path);
}
void dc_loop_keep_carries(dc_loopedit *w, const bool *stays);
void dc_loop_drop_dead(dc_loopedit *w);
void dc_loop_unify(dc_loopedit *w);
uint32_t dc_loop_operand_count(const dc_loopedit *w);

/* Makes the loop; out[i] is result i, 0 where it is unused. */
void dc_loop_emit(dc_loopedit *w, dc_ref *out);

/* f with loops merged, as far as they can be, parameters and results in the same order; NULL: none can. */
dc_func *dc_loop_merge(dc_job *j, const dc_func *f);

/* f with loops in chunks; NULL: none has any. */
dc_func *dc_loop_split(dc_job *j, const dc_func *f, const dc_loop_sizes *sizes);

/* Is r made of constants and movement alone? Such nodes cost nothing, wherever they are. */
bool dc_loop_is_trivial(const dc_func *f, dc_ref r);
dc_ref dc_loop_copy_trivial(dc_func *to, const dc_func *from, dc_ref r);

/* Loops that never run, or to the end for certain; results that are known without the loop. */
void dc_loop_settle(dc_loopedit *w);
void dc_loop_sink(dc_loopedit *w);
void dc_loop_hoist(dc_loopedit *w);
void dc_loop_project(dc_loopedit *w, const dc_loop_sizes *sizes);
/* Iterations in a chunk; 1: one by one, nothing is computed before the loop; 0: there need be no chunks. */
int64_t dc_loop_chunk(dc_loopedit *w, const dc_loop_sizes *sizes);
void dc_loop_delay(dc_loopedit *w);
void dc_loop_lay_panels(dc_loopedit *w, const dc_loop_sizes *are);

/* The results without a loop; false: it stays one. */
bool dc_loop_unroll(dc_loopedit *w, dc_ref *out);

/* A branch whose operands are in f; used: which results are read. */
void dc_branch_rewrite(dc_job *j, dc_func *f, const dc_node *n, const dc_func *const *body,
                       const dc_ref *in, const bool *used, dc_ref *out);

/* One value r of an axis of n in front, each the same. */
static inline dc_type dc_loop_stacked(const dc_type *t, int64_t n)
{
    int64_t dim[DC_MAX_RANK] = {n};
    for (int i = 0; i < t->rank; i++)
        dim[1 + i] = t->dim[i];
    return dc_type_make((dc_dtype)t->dtype, t->rank + 1, dim);
}

#endif
