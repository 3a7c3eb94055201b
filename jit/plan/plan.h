/*
 * The plan of an executable: groups of a function to an ordered list of steps and a place for every
 * value.
 *
 * What holds of every plan:
 *   - a step that reads a value comes after the step that stores it;
 *   - no step writes a cell before every check has passed and before every other step that reads
 *     the cell's old value;
 *   - a kernel writes a cell that it reads itself only where in_place() said so;
 *   - temporaries that are alive at the same step do not overlap, guards included; a bundle and all
 *     its groups are one step in this, and no group of it depends on another;
 *   - steps may run in every order that their deps allow, and checks run in that of their numbers;
 *   - at the end every result and every cell that was set holds its value, whatever values share
 *     a node or are parameters.
 *
 * Donation is decided here: a cell whose new value is stored by a kernel right into the cell's
 * memory is `donated`; otherwise (`denied`) the value goes elsewhere first and a copy at the very
 * end stores it.
 *
 * Values of no elements have no memory (place NONE) and make no step.
 *
 * A loop is one step, of a group without a kernel (dc_group.control). Its carries are in the memory of its picks, where
 * what they begin with is copied, unless that is computed there: a value that nothing needs afterwards.
 */
#ifndef DC_JIT_PLAN_PLAN_H
#define DC_JIT_PLAN_PLAN_H

#include "jit/base/exec_desc.h"
#include "jit/fuse/fuse.h"

typedef enum dc_place_kind {
    DC_PLACE_NONE,  /* no memory */
    DC_PLACE_BLOCK, /* free parameter of rank 0, in the argument block */
    DC_PLACE_FREE,  /* memory of free parameter `index` */
    DC_PLACE_CELL,  /* memory of cell `index` */
    DC_PLACE_RESULT,
    DC_PLACE_TEMP /* in the arena: dc_plan.temp[index] */
} dc_place_kind;

typedef struct dc_place {
    uint8_t kind; /* dc_place_kind */
    uint32_t index;
    size_t at; /* bytes from its beginning: of a piece of a join */
} dc_place;

/* BUNDLE: the groups that follow are one launch. */
typedef enum dc_step_kind {
    DC_STEP_GROUP,
    DC_STEP_CHECK,
    DC_STEP_COPY,
    DC_STEP_BUNDLE
} dc_step_kind;

typedef struct dc_step {
    uint8_t kind;      /* dc_step_kind */
    uint32_t index;    /* of the group or the check */
    uint32_t nbody;    /* BUNDLE: groups */
    dc_place to, from; /* COPY; a CHECK reads its position at `from`, its value at `to` */
    size_t bytes;      /* COPY */
    uint32_t ndep;     /* steps that it has to wait for: jit/plan/command_deps.h */
    const uint32_t *dep;
} dc_step;

typedef struct dc_temp {
    dc_ref ref;           /* what it holds; a loop or a branch: what its bodies need */
    size_t bytes, offset; /* of the value itself, inside the guards */
    uint32_t first, last; /* steps between which it is alive, both included; of groups in a bundle
                             the bundle */
} dc_temp;

typedef struct dc_plan {
    uint32_t nstep, ntemp;
    dc_step *step;
    dc_temp *temp;
    dc_place *home;     /* by ref: where a parameter or an output of a group is */
    size_t bytes;       /* of the arena */
    size_t lower_bound; /* no plan with this order needs less */
    uint32_t donated, denied;
    const char **denied_why; /* by cell: why it was; NULL where it was not. Static texts */
    uint32_t first_set;      /* the first step that writes a cell; nstep if none does */
    uint32_t *work;          /* by group: of a loop or a branch, the temporary for its bodies */
} dc_plan;

typedef struct dc_plan_in {
    const dc_groups *groups;
    const dc_exec_desc *desc; /* its fn is not looked at, groups->fn is */
    /* May input `in` of the group live in the memory of output `out`? */
    bool (*in_place)(void *ctx, uint32_t group, uint32_t out, uint32_t in);
    /* Bytes that the bodies of a loop or a branch need. NULL: there is neither. */
    size_t (*work)(void *ctx, uint32_t group);
    void *ctx;
    const uint64_t *cost_ns; /* by group: a guess */
    size_t guard;            /* bytes left free before and after each temporary */
    size_t cache;            /* of a core */
    bool no_reuse;           /* every temporary has memory of its own: tests */
    bool bundles;            /* groups that do not depend on each other are one launch */
    bool simt;               /* where a launch is thread groups: but for long reductions */
} dc_plan_in;

enum { DC_PLAN_ALIGN = 64 };

/* Everything in *out is in the arena. Fails only when the memory could not be addressed. */
dc_status dc_plan_make(dc_job *j, dc_arena *a, const dc_plan_in *in, dc_plan *out);

/* What the arena takes of what it could not do without; 1 where nothing is kept. */
static inline double dc_plan_ratio(size_t bytes, size_t lower_bound)
{
    return lower_bound > 0 ? (double)bytes / (double)lower_bound : 1.0;
}

/* Text for the channel `plan`. label(ctx, group) names a group's kernel. */
void dc_plan_print(const dc_plan *p, const dc_groups *g,
                   const char *(*label)(const void *ctx, uint32_t group), const void *ctx,
                   dc_text *out);

#endif
