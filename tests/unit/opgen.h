/* Functions of one operation, for tests that go through the table (core/ir/ops.def). */
#ifndef DC_TESTS_OPGEN_H
#define DC_TESTS_OPGEN_H

#include "core/ir/graph.h"

/*
 * Operation op on parameters of dtype t and, where it takes nothing else, of these three dims; `to`: the dtype of the
 * result of a cast, of the integers of gather and scatter. NULL: it does not take the dtype. Not of param, of what only
 * passes make, of control flow.
 */
dc_func *opgen_func(dc_job *j, dc_module *m, dc_op op, dc_dtype t, dc_dtype to, const int64_t *dim);

#endif
