/* What the files of the search share: memory for a kernel's launches, trials of schedules, the search for one kernel. */
#ifndef DC_JIT_TUNE_TUNE_IMPL_H
#define DC_JIT_TUNE_TUNE_IMPL_H

#include "jit/cache/disk_cache.h"
#include "jit/exec/exec.h"
#include "jit/nest/nest.h"
#include "jit/schedule/schedule_knobs.h"
#include "jit/tune/tune.h"

enum { DC_TUNE_SAMPLES = 15 };

/* Memory, tune_memory.c ------------------------------------------------------------------------ */

typedef struct dc_tune_param {
    dc_dtype dtype;
    int64_t count;
    size_t bytes, at; /* at: in a set */
    bool written;     /* by the kernel, or another parameter in the same memory */
    bool kept;        /* what it holds before a launch matters, and the launch changes it */
    int64_t lo, hi;   /* of integers */
} dc_tune_param;

/*
 * Sets of all parameters of a kernel. One kernel's launches go through the sets in turns: where real launches find their
 * operands in memory and not in a cache, the sets together are larger than the caches.
 */
typedef struct dc_tune_memory {
    dc_rt *rt;
    dc_storage *store;
    dc_tune_param *param;
    uint32_t nparam, nset;
    size_t set_bytes;
    bool kept; /* some parameter is */
    bool cold;
    char *block; /* what is uploaded, and compared, at a time */
} dc_tune_memory;

/*
 * command: a launch of the kernel, whose parameters that share memory do so here; NULL: none do. MEMORY or NOMEM where there
 * is no room.
 */
dc_status dc_tune_memory_make(dc_tune_memory *m, dc_job *j, const dc_kernel *k, const dc_target *t,
                              const dc_command *command);
void dc_tune_memory_free(dc_tune_memory *m);
/* Fills what launches change with what it was, in sets first .. last; `all`: the rest, too. */
dc_status dc_tune_memory_fill(const dc_tune_memory *m, dc_job *j, uint32_t first, uint32_t last,
                              bool all);
/*
 * Is what was written in sets 0 and 1 the same? By bits; where `terms` is not 0, floats may differ as sums of so many
 * terms do that are added in another order.
 */
dc_status dc_tune_memory_same(const dc_tune_memory *m, dc_job *j, int64_t terms, bool *same);

/* Trials, tune_trial.c --------------------------------------------------------------------------- */

typedef struct dc_trial {
    dc_knobs knobs;
    dc_knob_space space;
    const char **move;
    uint32_t nmove;
    dc_cache_key key; /* of its moves */
    bool reassociates;
    dc_launch launch;
    size_t scratch, shared;
    dc_text text; /* for the compiler */
    dc_program *program;
    dc_recording *recording; /* of as many launches as a sample has */
} dc_trial;

/* A kernel that is searched. */
typedef struct dc_tuner {
    dc_rt *rt;
    dc_job *j;
    const dc_target *target;
    uint32_t skip_passes;
    const char *name, *nest;
    int64_t terms; /* of its longest reduction */
    uint64_t cost_ns;
    dc_tune_memory memory;
    uint32_t repeats;         /* launches of a sample */
    dc_arena mem;             /* trials, moves */
    DC_VEC(dc_trial *) trial; /* all, the rules' first */
} dc_tuner;

/* Schedules the kernel with these knobs; *out NULL: there is no such schedule, or there has been one like it. */
dc_status dc_trial_make(dc_tuner *t, const dc_knobs *knobs, dc_trial **out);
/* Compiles n of them, on several threads; those that cannot be compiled have no program. */
dc_status dc_trial_compile(dc_tuner *t, dc_trial *const *trial, uint32_t n);
/* One launch on a set, with the time that it took. */
dc_status dc_trial_launch(dc_tuner *t, const dc_trial *x, uint32_t set, uint64_t *ns);
/* A sample: nanoseconds of a launch, of t->repeats one after the other. */
dc_status dc_trial_sample(dc_tuner *t, dc_trial *x, uint64_t *ns);
/* What the device has of it. */
void dc_trial_drop(dc_tuner *t, dc_trial *x);

/* Search, tune_search.c ---------------------------------------------------------------------------- */

void dc_tuner_free(void *t);

/* Fills in times, tried, why and best; *best: the fastest trial, the first one where it is the rules'. */
dc_status dc_tune_search(dc_tuner *t, uint64_t deadline, dc_tune_row *row, const dc_trial **best);

#endif
