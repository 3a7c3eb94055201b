/* What the stages (jit/compile/pipeline.c) hand to the making of commands (jit/compile/pipeline_commands.c). */
#ifndef DC_JIT_COMPILE_PIPELINE_IMPL_H
#define DC_JIT_COMPILE_PIPELINE_IMPL_H

#include "core/ir/control.h"
#include "core/ir/host_call.h"
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
    uint32_t nunit;           /* of them that are in no body; these are the first ones */
} dc_step_launches;

/* A group without a kernel: a loop or a branch of a part, or what the host computes (jit/compile/pipeline_bodies.c). Its work memory holds what follows. */
typedef struct dc_control {
    bool is_loop, is_host;
    dc_host_call host;       /* what the host computes: a group without bodies */
    dc_loop loop;            /* of a loop */
    struct dc_part *side[2]; /* its bodies; a loop has one */
    dc_ref *pick;            /* by result: 0 where nothing reads it, */
    size_t *spare;           /* and where it lies in the work memory then; of ys one element */
    size_t temps,
        bytes; /* behind the number of the element and spare results: temporaries of the bodies */
} dc_control;

/*
 * The function, or one of the two that it was split into (jit/rewrite/prologue.h); or the body of a loop or branch of
 * another part. Parameters of a loop's body are the number of the element, constants and xs, which are free, and carries,
 * which are its cells; its results are ys and the carries that are set.
 */
typedef struct dc_part {
    const struct dc_compiling *p;
    struct dc_part *parent; /* NULL: it is no body */
    uint32_t group;         /* of the parent */
    uint32_t loops;         /* that it is inside of */
    dc_control **control;   /* by group; NULL: it is a kernel */
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
    DC_VEC(dc_part *)
    part; /* the prologue, if there is one, and the function; then bodies, behind what they belong to */
    uint32_t nwhole; /* of the former */
    size_t derived_bytes;
    dc_codegen gen;
    dc_text text; /* of logs */
} dc_compiling;

/* Parts for the bodies of the loops and branches of x, whose groups are known. */
dc_status dc_pipeline_add_bodies(dc_compiling *p, dc_part *x);
/* A new part, for which nothing is known but its function and description. */
dc_part *dc_pipeline_add_part(dc_compiling *p, const dc_func *fn, const dc_exec_desc *desc);
/* "loop", "branch", or the operation of the host. */
const char *dc_pipeline_control_label(const dc_control *c);
/* Bytes of the work memory of a loop or a branch, once its bodies are planned. */
size_t dc_pipeline_work(dc_part *x, uint32_t group);
/* May output `out` of a loop or branch lie in the memory of operand `in`? */
bool dc_pipeline_control_in_place(const dc_part *x, uint32_t group, uint32_t out, uint32_t in);

/* Where a place is in the memory of an executable: bytes more for each element of the loops around it. */
typedef struct dc_where {
    dc_bind bind;
    size_t step[DC_LOOP_DEPTH];
} dc_where;

dc_where dc_pipeline_where(const dc_part *x, dc_place at);
/* Does it begin at a multiple of 64 bytes, in every iteration? */
bool dc_pipeline_is_aligned(const dc_part *x, dc_place at);
/* Result i of a loop or a branch, from the first element on; the number of the element. */
dc_where dc_pipeline_result(const dc_part *x, uint32_t group, int i);
dc_where dc_pipeline_counter(const dc_part *x, uint32_t group);

/* What has to be copied before the first iteration: how many copies; the first of them at out, unless that is NULL. */
typedef struct dc_start {
    dc_where to, from;
    size_t bytes;
} dc_start;

uint32_t dc_pipeline_starts(const dc_part *x, uint32_t group, dc_start *out);

/*
 * The stages before the compiler once more, for an executable that stands in for another one; look sees what they made
 * (jit/compile/pipeline_graph.c).
 */
dc_status dc_pipeline_again(const dc_env *env, dc_job *j, dc_exec *e,
                            void (*look)(const dc_compiling *p, void *ctx), void *ctx);

/* Which launches there are: kernels are flat, entries that are launched by themselves are numbered. */
void dc_pipeline_launches(dc_compiling *p);

/* Steps to what a device records. */
void dc_pipeline_make_items(dc_compiling *p);

/* Facts for reports about the executable (jit/exec/exec_report.c). */
void dc_pipeline_keep(dc_compiling *p);
/* Labels of what ranks do together get their lines, which messages name: those of this script, whatever is on disk. */
void dc_pipeline_name_exchanges(dc_exec *e, dc_job *j);

#endif
