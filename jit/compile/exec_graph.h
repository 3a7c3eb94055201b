/*
 * What an executable computes, for people: the graph that was compiled, the bodies of its loops and branches, which
 * nodes each command computes, what each temporary holds.
 *
 * None of it is kept with the executable: the stages of its compilation run again (jit/compile/pipeline_graph.c), from a
 * copy of its description and without a compiler. So it is the same for executables that came from the disk.
 */
#ifndef DC_JIT_COMPILE_EXEC_GRAPH_H
#define DC_JIT_COMPILE_EXEC_GRAPH_H

#include "jit/exec/executable.h"

#define DC_EXEC_NONE UINT32_MAX

typedef enum dc_exec_part_kind {
    DC_PART_PROLOGUE, /* what is computed when what it reads has changed */
    DC_PART_CALL,     /* what each call computes */
    DC_PART_LOOP,     /* the body of a loop */
    DC_PART_THEN,     /* of a branch */
    DC_PART_ELSE
} dc_exec_part_kind;

/* A function: the whole, or one of the two that it was split into, or a body. */
typedef struct dc_exec_part {
    dc_exec_part_kind kind;
    const dc_func *fn;
    const bool *live;       /* by ref: results depend on it */
    const uint32_t *home;   /* by ref: the command that stores it; DC_EXEC_NONE: none does */
    uint32_t nfree, ncell;  /* parameters: as in dc_exec_desc; those behind are derived values */
    uint32_t nresult, nset; /* results: those behind are checks, two for each */
    uint32_t parent;        /* of a body: the part, and the loop or branch in it; DC_EXEC_NONE */
    dc_ref control;
} dc_exec_part;

/* Nodes of a part that a command computes, some of them inside other commands, too. */
typedef struct dc_exec_computed {
    uint32_t part; /* DC_EXEC_NONE: it computes nothing */
    uint32_t n;
    const dc_ref *node;
} dc_exec_computed;

typedef struct dc_exec_held {
    uint32_t part;
    dc_ref ref; /* what it holds, or the loop or branch whose bodies use it; 0: not known */
    size_t offset, bytes;
    uint32_t first, last; /* commands between which it is alive, both included */
} dc_exec_held;

typedef struct dc_exec_graph {
    dc_arena mem;
    dc_module *module;
    bool exact; /* commands and temporaries are known; else the graph alone */
    uint32_t npart, ncommand, ntemp;
    dc_exec_part *part;
    dc_exec_computed *command; /* ncommand, as many as the executable has */
    dc_exec_held *temp;
} dc_exec_graph;

/*
 * Of an executable that has been waited for; `traced`: the graph as it was traced, whose commands are not told, of any
 * executable. *out is empty and stays so where it fails.
 */
dc_status dc_exec_graph_make(dc_exec *e, dc_job *j, bool traced, dc_exec_graph *out);
void dc_exec_graph_free(dc_exec_graph *l);

/* An estimate of a node's arithmetic: operations of one evaluation of all its elements. 0: it moves data. */
double dc_exec_node_work(const dc_func *fn, dc_ref r);

#endif
