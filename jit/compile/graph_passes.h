/* The rewrites of a graph before it is split into kernels: jit/rewrite/passes.def has them in their order. */
#ifndef DC_JIT_COMPILE_GRAPH_PASSES_H
#define DC_JIT_COMPILE_GRAPH_PASSES_H

#include "jit/compile/pipeline.h"

typedef struct dc_graph_passes {
    const dc_env *env;
    dc_job *j;
} dc_graph_passes;

/* What is rewritten: a whole function; a part of one, once the prologue has been split off; the body of a loop or branch. */
typedef enum dc_rewrite_of { DC_REWRITE_FUNCTION, DC_REWRITE_PART, DC_REWRITE_BODY } dc_rewrite_of;

/* All that apply to *fn, which is in a module that the compilation may add to. */
dc_status dc_graph_passes_run(const dc_graph_passes *g, dc_rewrite_of what, const dc_func **fn);

#endif
