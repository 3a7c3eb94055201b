/*
 * DEEPC_CHECK=nan: the results of a call are searched for infinities and NaN. Where there are any, the call is
 * run again on the interpreter from the state before it, to find the operation that made them. Then the
 * call fails, and the cells have their old values.
 */
#ifndef DC_JIT_EXEC_FINITE_CHECK_H
#define DC_JIT_EXEC_FINITE_CHECK_H

#include "jit/exec/exec.h"

bool dc_finite_wanted(const dc_inst *i);
/* Before the run: the values of the cells that it sets, in the job's scratch memory, by number of the set. */
dc_status dc_finite_begin(dc_inst *i, dc_job *j, void ***before);
/* After it. NOT_FINITE; cells are restored then. */
dc_status dc_finite_check(dc_inst *i, dc_job *j, void *const *before);
/* The same for results of the interpreter that are not stored yet. */
dc_status dc_finite_check_host(dc_inst *i, dc_job *j, void *const *result);

#endif
