/*
 * Function files: a typed function as hosts call it without Lua. A safetensors file, whose tensors are the
 * values of its parameters and states and of the tensors it captured, and whose texts are
 *
 *   deepc.function   "1", the version of this format
 *   name             "policy"
 *   signature        "policy(x: f32[batch, 4]) -> f32[batch, 2]"
 *   variant.1 ...    the function for one set of sizes, below
 *
 * The text of a variant: lines "word: text", then the graph (core/ir/gtext.h). Parameters of the graph are the
 * arguments, the captured tensors and the cells, in this order; its results are the results, those that are
 * only printed, the new values of the cells of `set` and two for each check (jit/base/exec_desc.h).
 *
 *   counts: arguments 1 captured 1 cells 2 results 1 printed 0 sets 1 checks 1
 *   argument: x
 *   captured: captured.1          a tensor of the file
 *   cell: net.1.weight            a tensor of the file
 *   set: 0                        a number of a cell, from 0
 *   check: class 0 10 i32[64] cross_entropy labels        or position; axis, how many are allowed, type
 *   check: class 0 1 i32[] cholesky not definite          of matrices: "singular", "no factors"
 *   module:
 *   func policy(%1: f32[1, 4] "x", ...
 *
 * A file is not trusted: what dc_fnfile_parse accepts is a legal graph with as many names as the counts say.
 * Lists grow with the lines of the file, so no count makes it ask for memory that the file has no lines for.
 * Whether the parts fit together is checked when an executable is made of it.
 */
#ifndef DC_FORMATS_FNFILE_H
#define DC_FORMATS_FNFILE_H

#include "core/ir/graph.h"

#define DC_FNFILE_VERSION "1"

/* A run-time test: integers of a tensor are in 0..classes - 1. */
typedef struct dc_fnfile_check {
    bool position; /* of an index; else a class */
    int axis;      /* of what the index is for */
    int64_t classes;
    dc_type type; /* of the tensor */
    const char *op, *role;
} dc_fnfile_check;

/* The role of a test of matrices (SINGULAR and its like), which says what they lack; NULL of other failures. */
const char *dc_fnfile_role(dc_err_id id);
/* The failure that a test of this role tells of. */
dc_err_id dc_fnfile_failure(const dc_fnfile_check *c);

typedef struct dc_fnfile_variant {
    uint32_t narg, ncaptured, ncell, nresult, nprinted, nset, ncheck; /* below 2^24: sums fit */
    const char **arg, **captured, **cell;                             /* names */
    uint32_t *set;
    dc_fnfile_check *check;
    const dc_func *fn;
} dc_fnfile_variant;

void dc_fnfile_print(const dc_fnfile_variant *v, dc_text *out);

/* Everything but the module, which is the caller's, is in the arena. PARSE or FORMAT. */
dc_status dc_fnfile_parse(dc_job *j, dc_arena *a, const char *text, dc_fnfile_variant *out,
                          dc_module **module);

#endif
