/*
 * Derived values of instances: results of the prologue (jit/rewrite/prologue.h) that are kept from call to call.
 *
 * They are right as long as every cell that the prologue reads has the version, and every captured tensor
 * is the one, that the prologue has seen. A call compares these, one number each, and runs the prologue
 * again where one differs.
 *
 * They are a cache: memory for them is never asked for at the cost of something else. Where none is left,
 * they live among the temporaries for one call. When memory is short elsewhere, those of idle
 * instances are dropped; and all instances of a context together keep no more than twice what its cells
 * hold and 64 MiB, but for the one that runs: the longest unused go first.
 */
#ifndef DC_JIT_EXEC_DERIVED_VALUES_H
#define DC_JIT_EXEC_DERIVED_VALUES_H

#include "jit/exec/exec.h"
#include "jit/plan/plan.h"

static inline bool dc_derived_any(const dc_inst *i)
{
    return i->exec->nprologue > 0;
}

/* Of a call that begins: gets memory, if there is any. True: the prologue has to run. */
bool dc_derived_begin(dc_inst *i, dc_job *j, const dc_arg *arg);

/* Bytes at the end of the arena that the call needs instead. */
size_t dc_derived_in_arena(const dc_inst *i);

/* The prologue has run; or something failed, and their content is unknown. */
void dc_derived_done(dc_inst *i);
void dc_derived_forget(dc_inst *i);

/* Gives the memory back. */
void dc_derived_drop(dc_inst *i);

#endif
