/*
 * Subgraphs: what nodes are made of, the same nodes on other operands, nodes in the place of others. A subgraph costs
 * its length: tables begin at its oldest node.
 */
#ifndef DC_CORE_IR_SUBGRAPH_H
#define DC_CORE_IR_SUBGRAPH_H

#include "core/ir/graph.h"

/* Operands of a node that its value is made of, or that gradients flow to: the first so many. */
int dc_node_inputs(const dc_node *n);

/* The value of a; no other node is the same; plans compute it after the token where they can. */
dc_ref dc_graph_barrier(dc_func *f, dc_ref a, dc_ref token);
/* Node r of `from` once more, in `to` on other operands; it comes from where r came from. */
dc_ref dc_graph_again(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *in);

/*
 * Puts to[i] in the place of from[i] wherever the roots are made of it, in the list of roots; what does not depend on
 * it is shared.
 */
void dc_graph_replace(dc_job *j, dc_func *f, const dc_ref *from, const dc_ref *to, int n,
                      dc_ref *root, int nroot);

/*
 * Copies what the results of `from` are made of into `to`, without the gradients that were given by hand, in bodies
 * too. map has the parameters, and receives the rest.
 */
void dc_custom_strip(dc_func *to, const dc_func *from, dc_ref *map);

/* ---- for gradients given by hand (core/autodiff/custom.h): a custom node of id binds the holes of that id ---- */

typedef struct dc_subgraph_change { /* to[i] in the place of from[i] */
    const dc_ref *from, *to;
    int n;
    int64_t id; /* of holes that are replaced; 0 none */
} dc_subgraph_change;

dc_ref dc_subgraph_oldest(const dc_func *f, const dc_ref *of, int n);

/*
 * By node, from `first` on: what the roots are made of. Of custom nodes, the gradients only if asked for, and not of those
 * that bind id. In scratch memory.
 */
bool *dc_subgraph_of(dc_job *j, const dc_func *f, const dc_ref *root, int n, bool gradients,
                     int64_t id, dc_ref first);

/* Alike: is it one of `from`, of which `first` is the oldest, or made of one? Not through gradients of nodes that bind id. */
bool *dc_subgraph_depending(dc_job *j, const dc_func *f, const dc_ref *from, int n, int64_t id,
                            dc_ref first);

/* The roots after a change, in place; what does not depend on it is shared. */
void dc_subgraph_replace(dc_job *j, dc_func *f, dc_subgraph_change c, dc_ref *root, int n);

#endif
