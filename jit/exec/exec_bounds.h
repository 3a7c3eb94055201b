/*
 * The verifier of recordings that come from disk: does this one stay inside of its memory? A right checksum is no
 * proof: another program may have written the bytes.
 *
 * Compared with the description of the function (types of parameters and results, which cells are set, how
 * many checks there are) and with what its compiled kernels need (jit/cache/kernel_needs.h):
 *   - each launch is given all that its kernel touches, inside of the memory of a slot, aligned as the
 *     kernel takes for granted, with its work items, threads and scratch;
 *   - arguments, constants and cells that are not set are never written, cells not before the last check,
 *     derived values by the prologue alone;
 *   - a command waits for earlier ones of its list, none of them inside a bundle;
 *   - each check is there once; what it and copies touch is inside, too;
 *   - the arena and the memory for derived values are as large as what lies in them, no larger.
 *
 * What is not proved: that values lie where they are looked for. Machine code is code: a process that may write
 * the folder of the cache may run anything with the rights of the user anyway.
 */
#ifndef DC_JIT_EXEC_EXEC_BOUNDS_H
#define DC_JIT_EXEC_EXEC_BOUNDS_H

#include "jit/cache/kernel_needs.h"
#include "jit/exec/exec.h"

/* Nanoseconds that a command is guessed to cost, at most: so many of them can be added up. */
#define DC_COST_MOST (((uint64_t)1 << 56) - 1)

/* needs: by command, of a LAUNCH. Linear in commands and cells; a is for what it marks. */
bool dc_exec_is_sound(const dc_exec *e, const dc_kernel_needs *const *needs, dc_arena *a);

#endif
