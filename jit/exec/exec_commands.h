/*
 * Executables out of commands: a list of commands with loops and branches, and the programs
 * they launch, makes an executable of it that instances bind and call like any other.
 *
 * Commands name memory by the slots of jit/exec/exec.h; the i-th free parameter of rank 0 stands in the
 * argument block (dc_exec_block_at). Dependencies are found here. What must hold, or it is a BUG:
 *   - binds lie inside what their slot holds; commands write the arena, results and cells that are
 *     set, nothing else;
 *   - no CHECK can run after a write to a cell;
 *   - every result is written whatever the branches and loops do.
 * The last is not checked.
 */
#ifndef DC_JIT_EXEC_EXEC_COMMANDS_H
#define DC_JIT_EXEC_EXEC_COMMANDS_H

#include "jit/exec/exec.h"

typedef struct dc_use { /* what a kernel does with the memory at a bind */
    size_t bytes;
    bool reads, writes;
} dc_use;

typedef struct dc_command_list {
    const char *name;
    uint32_t nfree, ncell, nresult, nset, ncheck; /* as in dc_exec_desc */
    const uint32_t *set;
    const dc_type *param;  /* nfree + ncell */
    const dc_type *result; /* nresult + nset */
    uint32_t ncommand;
    const dc_command *command;
    const dc_use *const *use;    /* by command; of a LAUNCH one for each bind, others are known */
    const dc_command_fact *fact; /* by command; NULL where there is no CHECK to describe */
    uint32_t nprogram;
    dc_program *const *program; /* the executable's, once it is made */
    size_t arena_bytes;
} dc_command_list;

/* Copies everything but the programs. */
dc_status dc_exec_from_commands(dc_rt *rt, dc_job *j, const dc_command_list *d, dc_exec **out);

#endif
