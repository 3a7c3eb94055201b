/*
 * Bodies of loops and branches, taken out of the graph that they were recorded in.
 *
 * The body of a loop is recorded on stand-ins: holes for the number of the element, the carries and the elements.
 * What is made of them is the body; anything else that it reads is captured: it stays where it is and becomes an
 * operand of the loop, so what no iteration changes is computed once. A side of a branch has no stand-ins: there what
 * was made since the mark is inside, since it is to be computed by that side alone.
 *
 * Constants are copied into a body, and so are stretched values, which would only be larger outside.
 */
#ifndef DC_CORE_IR_OUTLINE_H
#define DC_CORE_IR_OUTLINE_H

#include "core/ir/graph.h"

/* A leaf that stands for something until dc_graph_replace puts it in, or a body has it as a parameter. */
dc_ref dc_graph_stand_in(dc_func *f, const dc_type *t);
bool dc_is_stand_in(const dc_node *n);

typedef struct dc_outline {
    dc_func *f;
    dc_ref mark; /* the first node that was made since the body began */
    const dc_ref *root, *stand_in;
    int nroot, nstand_in;
    int head; /* captured values become parameters behind so many stand-ins */
    dc_ref captured[DC_MAX_OPERANDS]; /* found */
    int ncaptured;
} dc_outline;

/* Adds the body to the module of f. ARG where it captures too much. */
dc_status dc_outline_loop(dc_job *j, dc_outline *o, uint32_t *body);
/* The same as a function of the module that is no body: for who makes something else of it. */
dc_status dc_outline_function(dc_job *j, dc_outline *o, dc_func **out);
/* The same of two sides, which capture the same values in the end; the roots of side i are root[i * nroot]. */
dc_status dc_outline_branch(dc_job *j, dc_outline *o, uint32_t body[2]);

#endif
