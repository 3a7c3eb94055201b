/*
 * The interpreter beside or instead of machine code: runs the function of an instance, as it was
 * given, from the values its parameters have now.
 */
#ifndef DC_JIT_EXEC_INTERPRET_H
#define DC_JIT_EXEC_INTERPRET_H

#include "core/eval/eval.h"
#include "jit/exec/exec.h"

/*
 * Results on the host by index, all of the function's; in the job's scratch memory. Changes nothing
 * that is visible elsewhere. The instance's arguments are bound already.
 */
dc_status dc_interpret_run(dc_inst *i, dc_job *j, void ***out);

/* The same in parts: the values of the parameters, on the host, and how the interpreter rounds. */
dc_status dc_interpret_params(dc_inst *i, dc_job *j, const void ***out);
dc_eval_mode dc_interpret_mode(const dc_job *j);

/* The integer at `at` that the check is about: i32 or i64. */
int64_t dc_interpret_value(const dc_exec *e, uint32_t check, const void *at);

/* The first check that failed; check = -1 if none did. */
void dc_interpret_fault(const dc_exec *e, void *const *result, dc_fault *fault);

/* Stores new values of cells and results where they belong. */
dc_status dc_interpret_store(dc_inst *i, dc_job *j, void *const *result);

/*
 * DEEPC_COMPARE: one line about what the device made of the call, which has just ended, beside what
 * the interpreter did; dc_stats.compare_max follows. All memory is asked for by dc_interpret_begin,
 * before the call changes anything.
 */
typedef struct dc_comparison {
    void **expect; /* results of the interpreter */
    void *got;     /* room for the largest of the device's */
    char line[1000];
    size_t n;
} dc_comparison;

dc_status dc_interpret_begin(dc_inst *i, dc_job *j, dc_comparison **out);
dc_status dc_interpret_compare(dc_inst *i, dc_job *j, dc_comparison *c, const dc_fault *got);

#endif
