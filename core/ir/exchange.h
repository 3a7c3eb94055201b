/*
 * Operations of class COM: what the members of a group of ranks do together (core/world/world.h), each with an operand
 * of its own; of the first ones all members have operands of the same type. Attributes: axis, other, mask + 256 times a number,
 * how many axes the mesh has, their sizes; n is the number of members.
 *
 *   all_reduce      [0, combine]   sums, maxima or minima (dc_combine) over the members; all get them
 *   reduce_scatter  [axis, combine]  the same, of which each member gets one of n equal parts of the axis
 *   all_gather      [axis, 0]      the operands one behind the other along the axis
 *   all_to_all      [axis, to]     each member gives one of n equal parts of `axis` to each, and puts those it gets one
 *                                  behind the other along `to`
 *   broadcast       [0, member]    the operand of that member
 *
 * What a script writes is numbered (dc_module.written): the exchanges of a function over the same axes count from 1. So none is
 * another one: what is equal on one rank may differ on the next. Members compare the numbers. Such are performed as often as they are written and in that
 * order, on each rank: none leaves a loop or a call, or is left out as unused. Those that partitioning makes, alike on all ranks,
 * have the number 0 and are nodes as any other.
 *
 * Of two members, each of which may compute something else:
 *
 *   send            [0, member]    the operand goes to that member. 0 of f32[]
 *   recv            [0, member]    what comes from it, of the type of the node
 *   arrived         no attributes  0 of f32[], when both operands are there
 *
 * A last operand of send and recv, of any type, is what they come after: a rank performs them in the order in which it has
 * written them. A send is done when the operand has been copied. They have effects: what depends on the result
 * of one has to be a result of the function.
 *
 * Gradients are those of the sum of what all ranks differentiate: who differentiates what depends on a send receives
 * that of its operand, and who differentiates what depends on a recv sends it.
 */
#ifndef DC_CORE_IR_EXCHANGE_H
#define DC_CORE_IR_EXCHANGE_H

#include "core/ir/graph.h"
#include "core/world/world.h"

enum { DC_EXCHANGE_ATTRS = 4 + DC_MESH_AXES };

typedef struct dc_exchange_attr {
    int64_t axis, other;
    dc_group_axes group;
    int64_t number;
} dc_exchange_attr;

dc_exchange_attr dc_exchange_read(const int64_t *attr);
/* Writes the attributes; how many they are. */
int dc_exchange_write(const dc_exchange_attr *x, int64_t attr[DC_EXCHANGE_ATTRS]);

/* Is it one that is performed as it is written, with others and not by messages? */
bool dc_exchange_is_written(const dc_node *n);
/* The number of the next one over these axes in f, messages apart; 0 where they have none. */
int64_t dc_exchange_next(const dc_func *f, dc_op op, uint32_t mask);

/* For passes, and gradients; numbered where those of the module are. */
dc_ref dc_graph_exchange(dc_func *f, dc_op op, dc_ref a, const dc_exchange_attr *x);
dc_ref dc_graph_all_reduce(dc_func *f, dc_ref a, dc_combine by, const dc_group_axes *group);
dc_ref dc_graph_reduce_scatter(dc_func *f, dc_ref a, int axis, dc_combine by,
                               const dc_group_axes *group);
dc_ref dc_graph_all_gather(dc_func *f, dc_ref a, int axis, const dc_group_axes *group);

dc_ref dc_graph_send(dc_func *f, dc_ref a, dc_ref after, const dc_exchange_attr *x);
dc_ref dc_graph_recv(dc_func *f, const dc_type *t, dc_ref after, const dc_exchange_attr *x);

/*
 * The value of a, which is computed behind the messages that `token` stands for, whatever a depends on: the token, which is 0, is
 * taken from it. Bool: the token is not 0, or it is true.
 */
dc_ref dc_graph_behind(dc_func *f, dc_ref a, dc_ref token);

/* What messages come after that come after `after` and, once it is in memory, r. */
dc_ref dc_graph_arrived(dc_func *f, dc_ref r, dc_ref after);

/* A send or a recv, or a loop or a branch with one? */
bool dc_exchange_is_message(const dc_func *f, const dc_node *n);
/* That, or what a script has written that ranks do together: performed in the order in which it is written. */
bool dc_exchange_is_ordered(const dc_func *f, const dc_node *n);

/* Is its gradient a message to another rank, who waits for it: of floats, or a loop or a branch with such? */
bool dc_exchange_answers(const dc_func *f, const dc_node *n);

/* Bytes that each member gives to others, on average: of an operand, of recv a result, of type t. */
double dc_exchange_bytes(dc_op op, const dc_exchange_attr *x, const dc_type *t);

/*
 * The same for core/world: an exchange of one array, *t. `in` is the type of the operand, of recv that of the result. False: the result has to be put in order afterwards, which
 * dc_exchange_run does.
 */
bool dc_exchange_describe(dc_op op, const int64_t *attr, const dc_type *in, const char *label,
                          void *to, const void *from, dc_exchange *x, dc_transfer *t);

/* Where it is, for messages: what is computed may have been compiled for another line than the one that asks for it. */
void dc_exchange_label(const dc_job *j, dc_op op, const char *where, dc_exchange *x);

/*
 * Carries one out, on dense arrays; what messages say of it are `label` and `where`. The world is the job's; without one the
 * group has to be of one member. scratch: dc_exchange_scratch bytes, for all_to_all along two axes.
 */
size_t dc_exchange_scratch(dc_op op, const int64_t *attr, const dc_type *in);
dc_status dc_exchange_run(dc_job *j, dc_op op, const int64_t *attr, const dc_type *in,
                          const char *label, const char *where, void *to, const void *from,
                          void *scratch);

#endif
