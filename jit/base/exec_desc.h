/* What an executable is made from: a checked function and what its parameters and results are. */
#ifndef DC_JIT_BASE_EXEC_DESC_H
#define DC_JIT_BASE_EXEC_DESC_H

#include "core/ir/graph.h"

/*
 * Results of fn come in this order: nresult tensors, nset new values of cells, then pairs of checks
 * (position i32[] of the first offender or -1; its value i32[] or i64[]), two results per check.
 * Parameters: nfree first (arguments and captured tensors, given at each call), then ncell cells.
 * set[i] is the cell (index among the cells) that result nresult + i is stored to. It is donated
 * the cell's own store where that is safe, else goes through a temporary and a copy; either way
 * cells change only after every check has passed and every kernel that reads the old value has run.
 */
typedef struct dc_exec_desc {
    const dc_func *fn; /* copied; simplified and checked by the builder */
    const char *name;  /* of the typed function, for logs */
    const char *where; /* the line of the script that defines it; NULL: not known */
    uint32_t nfree, ncell, nresult, nset, ncheck;
    const uint32_t *set;
    const bool *
        anywhere; /* by free parameter: its memory begins at any element; NULL: at multiples of 64 bytes */
    uint32_t nfixed; /* the last of the free parameters: tensors that are the same at each call */
    uint32_t nsize;  /* those in front of them: sizes of bounded dims; with any, extents of fn are bounds */
    uint32_t nprint; /* the last of the nresult tensors: dc.print shows them */
    bool grows;      /* a cell's first axis does: all cells are laid out as their values */
    bool once;       /* few calls are expected: nothing is kept from one to the next */
    bool no_reuse;   /* for tests: every temporary has memory of its own */
    bool relayout_small; /* for tests: also cells that are not worth it (jit/rewrite/weight_layout.h) */
} dc_exec_desc;

/* FORMAT where the parts do not fit together: of descriptions that come from files. */
dc_status dc_exec_desc_check(dc_job *j, const dc_exec_desc *d, const char *op);
#endif
