/*
 * Guard zones between the temporaries of the arena (DEEPC_CHECK=2): machine code is invisible to
 * sanitizers, so a kernel that writes past its output is found here, right after it ran.
 */
#ifndef DC_JIT_EXEC_RED_ZONE_H
#define DC_JIT_EXEC_RED_ZONE_H

#include "jit/exec/exec.h"

enum { DC_RED_ZONE_BYTES = 64 };

/* Fills the zones of the temporaries that command n makes. `arena` is its memory on the device. */
dc_status dc_red_zone_fill(dc_inst *i, dc_job *j, char *arena, uint32_t n);

/* After command n: zones of the temporaries alive, then those of all stores. GUARD names the kernel.
 */
dc_status dc_red_zone_check(dc_inst *i, dc_job *j, char *arena, uint32_t n);

#endif
