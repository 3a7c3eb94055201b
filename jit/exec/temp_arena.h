/*
 * The arena of a context: one piece of memory for the temporaries of whichever instance runs, as
 * large as the largest plan. Where the device has address space to reserve, that happens once and
 * the arena grows where it is; elsewhere it is a storage that a larger one replaces. A call that finds it
 * taken (inside another call, or while a job pauses) gets memory of its own.
 */
#ifndef DC_JIT_EXEC_TEMP_ARENA_H
#define DC_JIT_EXEC_TEMP_ARENA_H

#include "core/runtime/storage.h"

/* An instance more, or less: with the last one the arena goes back to the device. */
void dc_temp_arena_retain(dc_rt *rt);
void dc_temp_arena_release(dc_rt *rt);

/* Grows the arena to so many bytes; no-op where it is in use and cannot grow in place. */
dc_status dc_temp_arena_grow(dc_rt *rt, dc_job *j, size_t bytes);

/* *own receives a store where the arena cannot be had, else NULL. Not for 0 bytes. */
dc_status dc_temp_arena_take(dc_rt *rt, dc_job *j, size_t bytes, void **mem, dc_storage **own);
void dc_temp_arena_give(dc_rt *rt, dc_storage *own);

#endif
