/*
 * Loops and branches: nodes whose work is done by functions, the bodies, which belong to the module.
 * A body is closed: what it reads from outside are operands of the node and parameters of the body.
 * Results are read by pick nodes; a loop or branch by itself has the type bool[0].
 *
 * A loop computes its body for the elements 0 to n - 1 of axis 0 of the xs, one after the other:
 *
 *   operands    [limit i32[]] constants... carries... xs... [ys...]
 *   parameters  i i32[], constants..., carries..., xs without axis 0...   of the body
 *   results     carries..., ys without axis 0...                          of the body
 *   results     carries..., ys...                                         of the loop, in this order
 *
 * The carries are the operands first, then what the iteration before has left. i is the number of the element.
 * The types of a carry's operand, parameter and result are equal. Flags:
 *
 *   REVERSE   from the last element to the first
 *   LIMIT     so many elements, at most n, at least none; the number is an operand
 *   TEST      carry 0 is a bool[] that is looked at before each iteration: false ends the loop
 *   REMAT     for gradients alone: of an iteration nothing is kept but the carries it began with
 *   ROWS      an element of an x or a y is some rows of the stack, [n k, ...] instead of [n, k, ...]. The compiler makes
 *             such loops (jit/rewrite/loop_split.c): what differentiates or batches meets none
 *
 * With LIMIT or TEST elements of ys may be left out: the last operands are what stands there, and their number is ys.
 *
 * A branch computes its first body if operand 0, a bool[], is true, else its second one. The other operands are
 * parameters of both. What the body that is not chosen would do does not happen.
 */
#ifndef DC_CORE_IR_CONTROL_H
#define DC_CORE_IR_CONTROL_H

#include "core/ir/graph.h"

enum {
    DC_LOOP_REVERSE = 1,
    DC_LOOP_LIMIT = 2,
    DC_LOOP_TEST = 4,
    DC_LOOP_REMAT = 8,
    DC_LOOP_ROWS = 16,
    DC_LOOP_FLAGS = 31
};
enum { DC_LOOP_ATTRS = 7, DC_BRANCH_ATTRS = 2 };

typedef struct dc_loop {
    uint32_t body;
    int64_t n;
    uint32_t flags;
    int nconst, ncarry, nx, ny;
} dc_loop;

dc_loop dc_loop_read(const int64_t *attr);
void dc_loop_write(const dc_loop *l, int64_t attr[DC_LOOP_ATTRS]);
dc_loop dc_loop_of(const dc_node *n);
/* The type of n elements of an x or a y. */
dc_type dc_loop_stack_type(const dc_loop *l, const dc_type *element);

/* May elements of ys be left out? */
static inline bool dc_loop_may_end(const dc_loop *l)
{
    return (l->flags & (DC_LOOP_LIMIT | DC_LOOP_TEST)) != 0;
}

/* Number of the first operand of each kind, and of all. */
static inline int dc_loop_const(const dc_loop *l)
{
    return (l->flags & DC_LOOP_LIMIT) != 0;
}
static inline int dc_loop_carry(const dc_loop *l)
{
    return dc_loop_const(l) + l->nconst;
}
static inline int dc_loop_x(const dc_loop *l)
{
    return dc_loop_carry(l) + l->ncarry;
}
static inline int dc_loop_y(const dc_loop *l)
{
    return dc_loop_x(l) + l->nx;
}
static inline int dc_loop_operands(const dc_loop *l)
{
    return dc_loop_y(l) + (dc_loop_may_end(l) ? l->ny : 0);
}

/* Is it a loop or a branch? */
static inline bool dc_is_control(const dc_node *n)
{
    return n->op == DC_OP_LOOP || n->op == DC_OP_BRANCH;
}

/* The attributes that number bodies: the first one, or two. 0: none does. */
static inline int dc_node_bodies(const dc_node *n)
{
    return n->op == DC_OP_LOOP ? 1 : n->op == DC_OP_BRANCH ? 2 : 0;
}

/* The operand that a pick of a loop is before the first iteration; 0: there is none. */
dc_ref dc_loop_start(const dc_func *f, dc_ref pick);

int dc_control_results(const dc_func *f, const dc_node *n);
dc_type dc_control_result(const dc_func *f, const dc_node *n, int i);

/* What dc_infer is for other operations. ARG, OPERANDS, CARRY. */
dc_status dc_control_infer(dc_job *j, const dc_func *f, dc_op op, const dc_ref *in, int nin,
                           const int64_t *attr, int nattr, dc_type *out);

/* For passes. A loop of no iteration is its operands: dc_graph_loop may be called for it, too. */
dc_ref dc_graph_loop(dc_func *f, const dc_loop *l, const dc_ref *in);
dc_ref dc_graph_branch(dc_func *f, uint32_t yes, uint32_t no, const dc_ref *in, int nin);
dc_ref dc_graph_pick(dc_func *f, dc_ref r, int i);

/*
 * Makes the live nodes of `from` again in f, on other values of the parameters; result[i] receives what its results
 * are then.
 */
void dc_graph_inline(dc_func *f, const dc_func *from, const dc_ref *param, dc_ref *result);

/*
 * Copies the bodies that a node of `from` names into module `to`, and its attributes with their numbers there. known: by
 * body of `from`, its number in `to` and one more, 0 not known yet; NULL for a node by itself.
 */
void dc_bodies_import(dc_module *to, const dc_module *from, const dc_node *n, int64_t *attr,
                      uint32_t *known);

/* dc_func_clone and dc_body_add with what is known of the bodies of the other module. */
dc_func *dc_func_clone_with(dc_module *to, const dc_func *from, dc_ref *map, uint32_t *known);
uint32_t dc_body_add_with(dc_module *m, const dc_func *f, uint32_t *known);

/*
 * Bodies in f, those in bodies too, each as often as it is named; UINT32_MAX: so many, or more. A text may name a body
 * several times, and that one another, so that what does work for each takes time that doubles with each line.
 */
uint32_t dc_control_bodies(const dc_func *f);

#endif
