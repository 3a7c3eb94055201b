/*
 * The context: everything of one deepc in a process hangs on a dc_rt. No globals; two contexts may
 * live side by side. Used by one thread at a time.
 */
#ifndef DC_CORE_RUNTIME_RT_H
#define DC_CORE_RUNTIME_RT_H

#include "core/base/owner.h"
#include "core/ir/graph.h"
#include "core/runtime/device.h"
#include "core/world/world.h"

typedef struct dc_stats { /* counters since the context was opened; dc.stats() */
    uint64_t traces;      /* bodies of typed functions run */
    uint64_t compiles;    /* executables begun to be built */
    uint64_t kernels;     /* kernels compiled */
    uint64_t kernels_cached; /* kernels found in the cache on disk */
    uint64_t kernels_shared; /* kernels of executables that had been compiled for another one */
    uint64_t launches;    /* bundles are one */
    uint64_t relayouts;   /* times that the memory of a cell was laid out anew (core/runtime/cell_layout.c) */
    uint64_t prologues;   /* times that derived values were computed (jit/exec/derived_values.h) */
    uint64_t calls;       /* calls of compiled functions */
    uint64_t interpreted; /* calls and lazy expressions run by the interpreter */
    uint64_t fallbacks;   /* executables that went to the interpreter because a compiler failed */
    uint64_t denormals;   /* runs of compiled functions that met denormal numbers, on CPUs */
    uint64_t allocs;      /* device allocations (pool hits not counted) */
    uint64_t moved_out;   /* held values of cells copied away before being overwritten */
    uint64_t bytes_live;  /* held by tensors, cells, executables */
    uint64_t bytes_peak;
    uint64_t realized;       /* lazy expressions computed */
    uint64_t lazy_programs;  /* programs made for them: one for each structure */
    uint64_t lazy_general;   /* of these, for any size */
    uint64_t lazy_nodes;     /* of lazy expressions, alive */
    uint64_t compile_ns;  /* building executables, kernels included, on whatever thread */
    double compare_max;   /* DEEPC_COMPARE: largest relative difference of a scalar float result */
} dc_stats;

/*
 * A context has a dc_rt for each of its devices (core/runtime/devices.h). The first one is the context for those who know of
 * one only; it has what they share: job, requests to end, counters, cells' numbers, the sizes of states that grow. Memory,
 * lazy expressions, executables and their threads belong to the dc_rt of their device, and name it.
 */
typedef struct dc_rt {
    struct dc_rt *first, *next; /* itself in the first one; the others, linked from that */
    char device_name[256];      /* in the one form that it has: "opencl:0" */
    dc_opts opt;
    struct dc_heap *heap; /* which opt names; closing frees it last. NULL none */
    dc_log log;
    dc_owner owner;   /* the process that opened it */
    dc_job job;       /* of the calling thread */
    dc_mark idle;     /* of its scratch memory between entries: what it keeps */
    dc_names *names;  /* names of dims, labels */
    struct dc_extents *extents; /* sizes that are known at run time */
    int launched;               /* the rank, as the launcher of this process or the host says; 0 without one */
    int launched_size;          /* of how many; 0: the launcher does not say */
    struct dc_threads *ranks;   /* of this process, one of which this is; NULL: the process is a rank */
    dc_world *world;            /* the ranks; NULL before it is asked for, or where there is one */
    struct dc_mesh *mesh;       /* of them, and of the types of scripts; NULL before it is made */
    dc_status (*open_world)(struct dc_rt *rt, dc_job *j, dc_world **out); /* NULL: there are no others */
    /* Opens the device that opt names for a dc_rt that is none of the first; and the one form of a name. NULL: one device */
    dc_status (*open_device)(struct dc_rt *rt, dc_job *j);
    void (*name_device)(const char *name, char *out, size_t size);
    uint64_t cells_moved; /* from device to device, ever */
    const struct dc_mesh *planned; /* of `deepc plan`: the mesh that is asked about; else NULL */
    dc_device *device; /* where tensors live; eval uses host memory of its own device */
    bool interpret;    /* device is `eval` */
    dc_stats stats;
    struct dc_pool *pool;
    uint64_t next_cell; /* ids of cells */
    struct dc_growth *growing; /* of states whose first axis grows, by number */
    struct dc_storage *
        arena; /* temporaries of whichever instance runs; jit/exec/temp_arena.c grows and frees it */
    void *arena_at;         /* or address space, on devices that have it: `arena` is then NULL */
    size_t arena_room, arena_bytes; /* of which so much is reserved, and committed */
    size_t held;            /* memory of the device in all, that of the pool included */
    uint32_t arena_users;   /* instances alive */
    bool arena_busy;        /* a call is using it */
    bool check;             /* `deepc check`: calls of compiled functions give zeros, set nothing */
    bool check_unknown;     /* and have done so: values of the script may not be what they would be */
    bool measure;           /* times of kernels are taken from now on (dc_exec_measure) */
    bool keeps_execs;       /* executables that were called stay until the context closes (dc_exec_keep) */
    uint32_t nkept;         /* that nothing uses any more, */
    uint64_t kept_nodes;    /* and the nodes of their graphs */
    struct dc_inst *derived;   /* instances that keep derived values, the last used first */
    size_t derived_bytes;      /* of all these */
    size_t cell_bytes;         /* of all cells */
    void (*give_back)(struct dc_rt *rt); /* frees unused memory when it is short; NULL: none */
    struct dc_exec *execs;               /* executables alive, linked; for dc_profile_report_all */
    struct dc_work *work;   /* compile threads; NULL before the first compilation */
    struct dc_work *filling; /* a thread that reads values of cells; NULL before the first ones */
    struct dc_jit *jit;     /* what compilations share (jit/compile/compile_job.c); NULL before the first one */
    void (*free_jit)(struct dc_rt *rt); /* ends both */
    bool steady;            /* how lazy tensors are computed depends on structure and sizes alone */
    struct dc_lazies *lazy; /* core/runtime/lazy.h; NULL before the first lazy tensor */
    const struct dc_lazy_exec *lazy_exec; /* how they are compiled; NULL: not at all */
    struct dc_outcome *outcomes, *spare_outcomes; /* of calls, the oldest first; room for more */
    struct dc_function *functions; /* loaded by the host, linked (vm/function.c) */
    uint64_t handed; /* bytes given out to tensors and lazy nodes, ever; drives the collector */
    const char *version;    /* of the program, for reports; NULL unknown */
    void (*on_bug)(void *ctx, const char *file); /* of the host, after a BUG; NULL none */
    void *on_bug_ctx;
    /* Requests to end what runs, set from signal handlers and other threads: see core/runtime/entry.h. */
    atomic_bool interrupt, insist;
    atomic_int why;           /* dc_why: what insists */
    _Atomic uint64_t taken_back; /* so often what insisted was taken back */
    struct dc_entry *entry;   /* of the host, innermost; NULL outside of all */
    struct dc_timer *timer;   /* of deadlines; NULL before the first one */
    int64_t late_ms, call_ms; /* of the deadline that holds; of dc_call and dc_load (dc_deadline) */
    /* What makes Lua look at it; safe in a signal handler. NULL where no state is attached. */
    void (*stop_lua)(void *ctx);
    void *stop_lua_ctx;
    struct dc_folders *folders; /* of the scripts (dc_sandbox), which rt->job has; NULL: any path */
    char *trace_path;   /* what is recorded goes there (formats/trace_events.h); NULL: nothing is */
    bool broken;        /* after BUG (dc_protect sets it): can only be closed */
    char message[1100];  /* what dc_errmsg gave out last */
} dc_rt;

/*
 * `device` becomes the context's (freed with it); interpret says that compiled functions run on the
 * interpreter over that device's memory, which must then be the host's.
 */
dc_rt *dc_rt_new(const dc_opts *opt, const dc_log *log);
void dc_rt_set_device(dc_rt *rt, dc_device *device, bool interpret);
/*
 * All tensors, cells and executables must be gone. In a child of the process that opened it nothing is freed:
 * neither what its threads were doing there is known, nor whether a lock will ever be released.
 */
void dc_rt_free(dc_rt *rt);

/* Of a further device, which has none yet; it is in no list. For core/runtime/devices.c. */
dc_rt *dc_rt_new_other(dc_rt *first, const char *name);
void dc_rt_free_other(dc_rt *rt);

static inline bool dc_rt_forked(const dc_rt *rt)
{
    return dc_owner_forked(&rt->owner);
}

/* Is more than half of the context's memory limit used? What is kept for later then goes. */
bool dc_rt_is_short(const dc_rt *rt);

/*
 * STATE in a broken context; what builds or runs something asks first. Delivers what compile
 * threads have to say.
 */
dc_status dc_rt_check(dc_rt *rt, dc_job *j, const char *op);

/* It has been reported; taken back unless the request insists. */
static inline void dc_rt_heard(dc_rt *rt)
{
    if (!atomic_load(&rt->insist))
        atomic_store(&rt->interrupt, false);
}
/* Takes back what was asked for, but for deadlines. */
void dc_rt_resume(dc_rt *rt);
/* The failure of what was ended, by the source of the request: takes it back unless that insists. */
dc_status dc_rt_interrupted(dc_rt *rt, dc_job *j, const char *op);
/* At the end of an entry: where its failure is that it was interrupted, the record says by what. */
dc_status dc_rt_told(dc_rt *rt, dc_status status);

/* A device over malloc that compiles nothing: for `eval` and for tests of core/. */
dc_device *dc_host_device_new(void);

#endif
