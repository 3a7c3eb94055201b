/*
 * Search for schedules by timing: for each kernel of an executable, alternatives to what the rules decide are compiled,
 * compared with the rules' result and timed on the device. What is found is stored (jit/cache/tuned_schedules.h); the
 * executable stays as it is, the next one that is made of the same graph goes by it.
 */
#ifndef DC_JIT_TUNE_TUNE_H
#define DC_JIT_TUNE_TUNE_H

#include "jit/exec/executable.h"

typedef struct dc_tune_options {
    double seconds; /* for all kernels together */
    bool again;     /* those that something is known of, too */
} dc_tune_options;

typedef struct dc_tune_row { /* of a kernel; texts are in the report's arena */
    const char *name;
    const char *where[3];       /* script lines, NULL behind the last one */
    uint32_t launches;          /* per call; a prologue's count as none */
    uint64_t rules_ns, best_ns; /* of a launch; 0: not timed */
    uint32_t tried;             /* schedules timed, beside the rules' */
    bool tuned;                 /* `best` is not the rules' schedule */
    bool known;                 /* found before, not searched again */
    const char *why;      /* the search ended early, or did not begin; NULL: it went through */
    const char *schedule; /* moves, a line each, as DEEPC_SCHEDULE takes them */
} dc_tune_row;

typedef struct dc_tune_report {
    dc_arena *mem;
    dc_tune_row *row;
    uint32_t n;
    bool changed;   /* other schedules are known than before */
    double seconds; /* that it took */
} dc_tune_report;

/*
 * Nothing is stored where this fails (INTERRUPTED, NOMEM). e has been waited for; one that the interpreter runs, or
 * whose kernels are scheduled by other means (DEEPC_OPT, DEEPC_SCHEDULE), has no rows.
 */
dc_status dc_exec_tune(dc_exec *e, dc_job *j, const dc_tune_options *o, dc_tune_report *out);

/* What is known of its kernels is forgotten, here and on disk. */
dc_status dc_exec_untune(dc_exec *e, dc_job *j, bool *changed);

/* Do compilations go by other schedules than when it was compiled? */
bool dc_exec_is_stale(const dc_exec *e);

/* Another executable of the same description, by the schedules that are known now. */
dc_status dc_exec_remake(dc_exec *e, dc_job *j, dc_exec **out);

/* Of the schedules that compilations go by (jit/cache/tuned_schedules.h): 0 where they are all the rules'. */
dc_status dc_tune_fingerprint(dc_rt *rt, dc_job *j, uint64_t *out);

#endif
