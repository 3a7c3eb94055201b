/* Instances: an executable with its cells, result memory and recording, and their calls. */
#ifndef DC_JIT_EXEC_INSTANCE_H
#define DC_JIT_EXEC_INSTANCE_H

#include "core/runtime/outcome.h"
#include "jit/exec/executable.h"

typedef struct dc_inst dc_inst;

/* Takes a reference on the executable and on each of the cells. */
dc_status dc_inst_new(dc_rt *rt, dc_job *j, dc_exec *e, dc_cell *const *cell, dc_inst **out);
void dc_inst_free(dc_inst *i);
uint64_t dc_inst_calls(const dc_inst *i); /* begun so far */
bool dc_inst_busy(const dc_inst *i);      /* a call or job of it has begun and is not over */

/* A value for one of the nfree parameters: a tensor, or (rank 0) a number as a pattern. */
typedef struct dc_arg {
    const dc_tensor *tensor; /* NULL: `bits` */
    uint64_t bits;
} dc_arg;

/* A check that failed: which one, where, what value stood there. */
typedef struct dc_fault {
    int32_t check; /* -1: none */
    int64_t position, value;
} dc_fault;

/*
 * One call. out[0..nresult-1] receive new references; a later call never changes what they hold
 * (it takes other memory where they are held). Types of the arguments are the caller's duty.
 * On a fault the status is DC_E_VALUE, no cell has changed, and *fault tells (the job's record is
 * left empty: only the caller knows what the check is about). A call while one of the same instance
 * runs is REENTER, one that reads a cell half written by a failed device TORN.
 */
dc_status dc_inst_call(dc_inst *i, dc_job *j, const dc_arg *arg, dc_tensor **out, dc_fault *fault);

/*
 * From now on calls may succeed although a check of data stops them, on devices that tell later (dc_device_ops.answer):
 * then there is an outcome (core/runtime/outcome.h), which is the owner's, and of which late_fault tells the fault.
 */
void dc_inst_tell_late(dc_inst *i, void *owner);
void dc_inst_late_fault(const dc_outcome *o, dc_fault *fault);

/*
 * Between calls: the memory of results belongs to the tensors that hold it from now on, and the next call
 * takes other memory. For programs whose results are all kept.
 */
void dc_inst_detach(dc_inst *i);

/*
 * A call in slices, a job: start, poll until done, take. dc_inst_call is the same without pauses.
 *
 * start binds the arguments, whose values are kept for the job. Each poll runs for about budget_ns,
 * at least one kernel (the interpreter: all of it); UINT64_MAX is no limit. A fault or failure ends
 * the job. While it is there: the same instance is REENTER; cells that it sets are JOB for every other
 * read and write; cells that it only reads may be set, the job goes on with their old
 * values; the context's arena is the job's, other calls take memory of their own.
 *
 * cancel ends a job, wherever it is, and forgets results not taken. Before the first write to a cell
 * nothing has changed; after it, the cells that the job sets are torn. (A loop that writes a cell
 * counts as a write as soon as it may have begun.)
 */
dc_status dc_inst_start(dc_inst *i, dc_job *j, const dc_arg *arg);
dc_status dc_inst_poll(dc_inst *i, dc_job *j, uint64_t budget_ns, bool *done, dc_fault *fault);
dc_status dc_inst_take(dc_inst *i, dc_job *j, dc_tensor **out); /* once, after done */
void dc_inst_cancel(dc_inst *i);

#endif
