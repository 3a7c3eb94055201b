/* What the stages (jit/compile/pipeline.c) hand to the making of commands (jit/compile/pipeline_commands.c). */
#ifndef DC_JIT_COMPILE_PIPELINE_IMPL_H
#define DC_JIT_COMPILE_PIPELINE_IMPL_H

#include "jit/compile/codegen.h"
#include "jit/lower/lift_constants.h"
#include "jit/plan/plan.h"

#define DC_NO_ENTRY UINT32_MAX

struct dc_compiling;

/* A launch: the kernel of a group, or one that is joined of those of several. */
typedef struct dc_made_launch {
    uint32_t entry, n;
    const uint32_t *group;
} dc_made_launch;

/* What becomes of a step of the plan (jit/compile/launches.c). */
typedef struct dc_step_launches {
    uint32_t
        n; /* of a group one; of a bundle that is joined one or several, none of its groups' own */
    const dc_made_launch *at;
    uint32_t first, ncommand; /* its commands, counted from the part's first */
} dc_step_launches;

/* The function, or one of the two that it was split into (jit/rewrite/prologue.h). */
typedef struct dc_part {
    const struct dc_compiling *p;
    const dc_func *fn;
    dc_exec_desc
        desc; /* its parameters and results; of a body, derived values are cells behind the others */
    dc_groups groups;
    dc_kernel **kernel; /* by group, as lowered; NULL once codegen has taken it */
    uint32_t nkernel;
    uint32_t *entry_of; /* by group, DC_NO_ENTRY where nothing is launched */
    const size_t **
        begin; /* by group, of its parameters: bytes from their places; NULL: none (jit/lower/base_offset.h) */
    const dc_lifted *lifted;     /* by group: constants that it is given; NULL: none is */
    dc_command_fact *group_fact; /* by group */
    uint64_t *cost_ns;           /* by group: an estimate, for one thread */
    bool *in_part;               /* by cell: what changes is stored alone */
    dc_plan plan;
    dc_step_launches *launches; /* by step */
    uint32_t ncommand;
    bool is_prologue;
} dc_part;

typedef struct dc_compiling {
    const dc_env *env;
    dc_job *j;
    dc_exec *e;
    dc_counts *counts;
    const dc_func *fn; /* simplified */
    dc_part part[2];   /* the prologue, if there is one, and the body */
    uint32_t npart;
    size_t derived_bytes;
    dc_codegen gen;
    dc_text text; /* of logs */
} dc_compiling;

/* Which launches there are: kernels are flat, entries that are launched by themselves are numbered. */
void dc_pipeline_launches(dc_compiling *p);

/* Steps to what a device records. */
void dc_pipeline_make_items(dc_compiling *p);

/* Facts for reports about the executable (jit/exec/exec_report.c). */
void dc_pipeline_keep(dc_compiling *p);

#endif
