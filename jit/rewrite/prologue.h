/*
 * Call-invariant code motion: what depends on constants, on cells that the function does not set and on
 * captured tensors alone is computed by a function of its own, the prologue. Its results, the derived
 * values, are parameters of what is left, the body. Instances keep them and run the prologue again when
 * something that it reads has changed (jit/exec/derived_values.h).
 *
 * Both have the parameters of the function; the body has one more for each derived value, behind them.
 * The same nodes are computed, so the results are the same up to the contraction of a product and a sum
 * that are now on different sides.
 *
 * A value is derived where that pays: it takes memory, and reading it takes time, too. See is_worth.
 */
#ifndef DC_JIT_REWRITE_PROLOGUE_H
#define DC_JIT_REWRITE_PROLOGUE_H

#include "jit/base/exec_desc.h"

typedef struct dc_split_func {
    dc_func *prologue, *body; /* of the same module */
    uint32_t n;               /* derived values: results of the prologue */
    bool *reads;              /* by parameter: the prologue reads it */
} dc_split_func;

/* Splits f, which has been laid out for groups of threads or others, by what d says of its parameters. False: nothing is worth it. */
bool dc_prologue_split(dc_arena *a, const dc_exec_desc *d, const dc_func *f, bool groups,
                       dc_split_func *out);

#endif
