/*
 * The reference interpreter: the meaning of every operation, slow and plain. Device `eval`, the
 * oracle of all differential tests, and what lazy expressions of little work run on.
 *
 * params and results are dense host arrays by index. Results must not overlap parameters.
 *   DC_EVAL_ROUND   every node rounds once to its dtype; sums and products of a reduction or dot
 *                   are added up in double and rounded once
 *   DC_EVAL_STRICT  reductions round after every addition, left to right
 *   DC_EVAL_WIDE    floats are double from end to end: arrays of float parameters and results hold
 *                   double elements (gradient checks)
 */
#ifndef DC_CORE_EVAL_EVAL_H
#define DC_CORE_EVAL_EVAL_H

#include "core/ir/graph.h"

typedef enum dc_eval_mode { DC_EVAL_ROUND, DC_EVAL_STRICT, DC_EVAL_WIDE } dc_eval_mode;

dc_status dc_eval(dc_job *j, const dc_func *f, dc_eval_mode mode, const void *const *params,
                  void *const *results);

#endif
