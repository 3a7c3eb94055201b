/*
 * A job: what one piece of work on one thread carries with it. core/ and jit/ receive a job, never
 * the context: settings, the failure record, scratch memory, log lines.
 *
 * Recovery points. A public entry (or the root of a thread) runs its body through dc_protect. Out
 * of memory for metadata and broken invariants unwind to it, in C only, never across a Lua frame:
 * the scratch arena is rewound, things on the cleanup list are released, the status is DC_E_NOMEM
 * or DC_E_BUG; after a BUG the owner of the job finds its flag set. The innermost recovery point of
 * a thread is found through one thread-local pointer, the only variable of ours that is not inside
 * a context: allocation helpers would otherwise have to carry the job through every data structure.
 */
#ifndef DC_CORE_BASE_JOB_H
#define DC_CORE_BASE_JOB_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/base/opt.h"
#include "core/base/vec.h"

#include <stdatomic.h>

typedef struct dc_cleanup {
    void (*release)(void *);
    void *what;
} dc_cleanup;

struct dc_exec;
struct dc_folders;

typedef struct dc_job {
    const dc_opts *opt; /* settings, frozen for the job */
    dc_log *log;        /* channels and where their lines go */
    dc_err err;         /* first failure since the entry was called */
    dc_arena scratch;   /* lives until the entry returns */
    DC_VEC(dc_cleanup) cleanup;
    bool *broken; /* set when an entry ends with BUG (dc_rt.broken); NULL: not read */
    /* Called when it is set, while things of the failed entry still stand; must not unwind. */
    void (*on_bug)(struct dc_job *j, void *ctx);
    void *bug_ctx;
    const struct dc_exec *about;      /* compiled or called just now; NULL none. For on_bug */
    const atomic_bool *cancel;        /* set by another thread; NULL: it cannot be cancelled */
    const struct dc_folders *folders; /* where files may lie (core/base/path.h); NULL: anywhere */
    struct dc_extents *extents; /* sizes known at run time (core/base/extent.h); NULL: none are */
    struct dc_world *world;     /* of ranks (core/world/world.h); NULL: none was opened */
    const char *
        meeting; /* the line of the script that asks for an exchange of ranks at once; NULL: none does */
    const struct dc_owner
        *owner; /* in another process than its own nothing is run; NULL: anywhere */
    _Atomic(const void *) user; /* stands for the thread that uses it; NULL: none does */
} dc_job;

void dc_job_init(dc_job *j, const dc_opts *opt, dc_log *log);
void dc_job_fini(dc_job *j);

/*
 * What dc_protect does when an entry ends with BUG, once for a context: sets the flag, calls on_bug.
 * To be called before what the report is about is freed.
 */
void dc_job_notice_bug(dc_job *j);

/*
 * A job is used by one thread at a time. dc_job_enter: this thread does from now on, until dc_job_leave with *first, which
 * says whether it did not already; false where another one does, and then nothing of the job may be touched, its record
 * included. dc_job_elsewhere: does another thread use it just now?
 */
bool dc_job_enter(dc_job *j, bool *first);
void dc_job_leave(dc_job *j, bool first);
bool dc_job_elsewhere(const dc_job *j);
#define DC_JOB_ELSEWHERE "another thread uses this context; a context is used by one thread at a time"

/*
 * Runs body(arg) with a recovery point. Clears the record first, rewinds scratch afterwards. STATE, and nothing
 * is run, in a child of the process that the job belongs to; and where another thread uses it, without a record.
 */
dc_status dc_protect(dc_job *j, dc_status (*body)(dc_job *, void *), void *arg);

/* What it says then. */
dc_status dc_job_refuse_child(dc_job *j);

/* Between two stages of something long: is it wanted no more? */
static inline bool dc_job_cancelled(const dc_job *j)
{
    return j->cancel != NULL && atomic_load(j->cancel);
}

/*
 * The same inside of one: unwinds to the entry, with INTERRUPTED. For long loops of work that others may end, which own
 * nothing that is not on the cleanup list; to be called for some thousand elements at a time.
 */
void dc_job_look(void);
/* And as a status, for callers that own something not on that list. Of NULL, OK. */
dc_status dc_job_ended(dc_job *j);
/* Bytes that are moved from one question to the next, 4 MiB: milliseconds, also into memory that is new. */
#define DC_PIECE_BYTES ((size_t)1 << 22)
static inline size_t dc_piece_of(size_t left)
{
    return left < DC_PIECE_BYTES ? left : DC_PIECE_BYTES;
}
/*
 * What follows is ended by another flag than before, or by none (NULL), to be put back afterwards: returns the old
 * j->cancel. dc_protect puts it back too.
 */
const atomic_bool *dc_job_heed(dc_job *j, const atomic_bool *cancel);

/*
 * Something to release if the entry unwinds; dc_job_keep takes it off the list again. Where there is
 * no memory for the list it is released at once. A job of NULL does nothing.
 */
void dc_job_defer(dc_job *j, void (*release)(void *), void *what);
void dc_job_keep(dc_job *j, void *what);
/* dc_job_keep, but releases `what` where the status is a failure; gives the status. */
dc_status dc_job_settle(dc_job *j, void *what, dc_status status);
void dc_job_defer_text(dc_job *j, dc_text *t); /* dc_job_defer: j frees it */

/* An empty text that j frees if the entry unwinds, and its end otherwise. */
dc_text *dc_job_text(dc_job *j);
void dc_job_text_end(dc_job *j, dc_text *t);

/*
 * The job of the innermost recovery point, NULL outside of all. For constructors that are given no
 * job and make their object in several steps.
 */
dc_job *dc_job_here(void);

/* Memory for the time of a function that only reads: the scratch of the innermost job, outside of jobs its own. */
typedef struct dc_scratch {
    dc_arena *arena;
    dc_mark mark;
    dc_arena own;
} dc_scratch;

dc_arena *dc_scratch_begin(dc_scratch *s);
void dc_scratch_end(dc_scratch *s);

DC_NORETURN void dc_nomem(size_t bytes); /* so many could not be had; 0: not known */
/* Would so many bytes more be above the limit of the job's heap? Then the failure is MEMORY and says so. */
bool dc_job_over_limit(dc_job *j, size_t bytes);

#endif
