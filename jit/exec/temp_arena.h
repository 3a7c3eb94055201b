/*
 * The arena of a context: one piece of memory for the temporaries of whichever instance runs, as
 * large as the largest plan. Where the device has address space to reserve, that happens once and
 * the arena grows where it is; elsewhere it is a store that a larger one replaces. Who finds it
 * taken (a call inside a call, a call while a job pauses) gets memory of its own.
 */
#ifndef DC_JIT_EXEC_TEMP_ARENA_H
#define DC_JIT_EXEC_TEMP_ARENA_H

#include "core/runtime/store.h"

/* An instance more, or less: with the last one the arena goes back to the device. */
void dc_temps_retain(dc_rt *rt);
void dc_temps_release(dc_rt *rt);

/* Room for a plan of so many bytes, as long as that needs nobody else's leave. */
dc_status dc_temps_grow(dc_rt *rt, dc_job *j, size_t bytes);

/* *own receives a store where the arena cannot be had, else NULL. Not for 0 bytes. */
dc_status dc_temps_take(dc_rt *rt, dc_job *j, size_t bytes, void **mem, dc_store **own);
void dc_temps_give(dc_rt *rt, dc_store *own);

#endif
