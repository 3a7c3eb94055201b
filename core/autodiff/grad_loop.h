/*
 * The gradient of a loop: what its files share. Private to core/autodiff/grad_*.c.
 *
 *   grad_loop.c    the rule: the loop once more with what is kept, the loop backwards, parts for the operands
 *   grad_cut.c     what is kept of each iteration
 *   grad_stack.c   what is computed for all iterations at once, behind the backward loop
 *
 * One iteration and its gradient are a function of their own first, w: its parameters are those of the body, then a
 * cotangent of each result that has one. The bodies of both new loops are taken from it. A value of w is
 *
 *   back    if a cotangent is part of it; all others are values of the forward pass
 *   fixed   if it is the same in each iteration: made of constants of the loop
 *   kept    if the forward loop stacks it for the backward loop
 *   a leaf  if its values of all iterations are read behind the backward loop
 */
#ifndef DC_CORE_AUTODIFF_GRAD_LOOP_H
#define DC_CORE_AUTODIFF_GRAD_LOOP_H

#include "core/autodiff/grad_impl.h"
#include "core/ir/control.h"

typedef struct dc_loopgrad {
    dc_job *j;
    dc_func *f; /* of the loop */
    dc_ref loop;
    dc_loop l;
    const dc_ref *in; /* its operands */
    const dc_ref *g;  /* by result of the loop: its cotangent, 0 none */
    const dc_func *body;
    const bool *varies; /* by parameter of the body: does it carry a derivative? */

    dc_func *w;
    dc_ref *result; /* of the body */
    dc_ref *dy;     /* by result of the body: the parameter that is its cotangent, 0 none */
    dc_ref *part;   /* by parameter of the body: its cotangent from one iteration, 0 none */
    dc_ref *rest;   /* the same of constants: what is added up in a carry */
    bool *sunk;     /* by parameter: a constant or an x with a part from behind the loop */

    bool *fixed, *back, *kept, *leaf; /* by node of w */
    dc_ref *stack;                    /* by node of w: its values of all iterations, in f */
    bool *loose;   /* by node of w: rows of the stack that were not reached may hold anything */
    dc_ref *outer; /* by node of w, fixed ones: the value in f */
    dc_ref first, count; /* the rows that were reached, i32[] in f; 0: from row 0, all n */
    dc_ref mask;         /* the same as bool[n]; 0 not made yet */

    bool *summable, *in_sum, *in_stack; /* private to grad_stack.c */
    uint8_t *spread;
} dc_loopgrad;

/* Numbers of the first carry and the first x among the parameters of the body. */
static inline int dc_loopgrad_carry(const dc_loopgrad *g)
{
    return 1 + g->l.nconst;
}
static inline int dc_loopgrad_x(const dc_loopgrad *g)
{
    return 1 + g->l.nconst + g->l.ncarry;
}
/* The operand that is parameter p > 0. */
static inline dc_ref dc_loopgrad_operand(const dc_loopgrad *g, int p)
{
    return g->in[dc_loop_const(&g->l) + p - 1];
}

/* The y that stacks r, or -1. */
int dc_loopgrad_y(const dc_loopgrad *g, dc_ref r);
/*
 * What the backward loop makes in each iteration: cotangents of carries, terms of sums, rows; not what is known to be
 * kept.
 */
dc_ref *dc_loopgrad_roots(dc_loopgrad *g, int *n);

/* Does it take more time than to read it again? Such a value is not computed twice if it can be helped. */
bool dc_grad_costly(const dc_node *n);

/*
 * The values to keep so that all wanted ones can be had without computing a banned one: those that cost least
 * together, by cost[r]; of equal choices the one nearest to what is wanted.
 */
#define DC_CUT_NEVER (INT64_MAX / 4) /* cost of what cannot be kept */
bool *dc_grad_cut(dc_job *j, const dc_func *w, const bool *wanted, const bool *banned,
                  const int64_t *cost);

/* Sets back, kept. */
void dc_loopgrad_keep(dc_loopgrad *g);

/* Sets sunk, rest, leaf. */
void dc_loopgrad_sink(dc_loopgrad *g);
/* By parameter of the body: the part that is computed behind the loop, in f; 0 none. */
dc_ref *dc_loopgrad_behind(dc_loopgrad *g);
/* A fixed value in f. */
dc_ref dc_loopgrad_outer(dc_loopgrad *g, dc_ref r);
/* Of stacked values: zeros in the rows that were reached, or in the others. */
dc_ref dc_loopgrad_masked(dc_loopgrad *g, dc_ref stack, bool reached);

#endif
