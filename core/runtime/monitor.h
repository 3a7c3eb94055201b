/*
 * What a monitor of a context knows (docs/monitoring.md): what the script is at, counters of typed functions and kernels, loops
 * and metrics that the script tells. rt->monitor is NULL until one is opened, which is all that a context without one pays.
 *
 *   the context's thread   counts into `live`; at safe points, where a request waits, publishes a copy (dc_monitor_breathe)
 *   any other thread       asks (dc_monitor_ask), reads the last copy (dc_monitor_read) and what is going on now
 *
 * A safe point is the end of a call or of a lazy expression, a round of dc.progress, a call of dc.metric: there nothing is under
 * way that other threads could see half done. Publishing allocates nothing and cannot fail. Arrays have fixed sizes: what does
 * not fit is counted in the last row, which has no name.
 */
#ifndef DC_CORE_RUNTIME_MONITOR_H
#define DC_CORE_RUNTIME_MONITOR_H

#include "core/runtime/rt.h"

#include <pthread.h>

enum {
    DC_MONITOR_NAME = 64,
    DC_MONITOR_WHERE = 120,
    DC_MONITOR_FUNCTIONS = 64,
    DC_MONITOR_KERNELS = 128,
    DC_MONITOR_METRICS = 32,
    DC_MONITOR_POINTS =
        120, /* of a metric: its values over the whole run, ever fewer of them for a second */
    DC_MONITOR_LOOPS = 8,
    DC_MONITOR_COMPILATIONS = 16
};

typedef enum dc_doing {
    DC_DOING_SCRIPT,      /* Lua, or other than what follows */
    DC_DOING_CALL,        /* of a typed function */
    DC_DOING_COMPILATION, /* which is waited for */
    DC_DOING_EXPRESSION   /* of lazy code, computed */
} dc_doing;

typedef struct dc_monitor_function {
    uint64_t calls, ns;
} dc_monitor_function;

typedef struct dc_monitor_kernel { /* launches of one label from the same lines */
    char name[DC_MONITOR_NAME], where[DC_MONITOR_WHERE];
    uint64_t launches, ns;
    double flops, bytes;
} dc_monitor_kernel;

typedef struct dc_monitor_point {
    float seconds, value; /* since the monitor was opened */
} dc_monitor_point;

typedef struct dc_monitor_metric {
    char name[DC_MONITOR_NAME];
    double value;
    uint64_t told_ns; /* when */
    uint32_t round;   /* of requests for which it was read last */
    uint32_t npoint;  /* point[] */
    float every;      /* seconds between two points, at least */
    dc_monitor_point point[DC_MONITOR_POINTS];
} dc_monitor_metric;

typedef struct dc_monitor_loop { /* of dc.progress */
    char title[DC_MONITOR_NAME];
    int64_t done, total, size;   /* rounds; -1: not known. size: items of a round, or 0 */
    uint64_t begun_ns, first_ns; /* first_ns: when the first round was done */
    uint32_t round;              /* of requests for which its metrics were read last */
} dc_monitor_loop;

typedef struct dc_monitor_compilation {
    char name[DC_MONITOR_NAME];
    bool running;
    uint64_t begun_ns;
} dc_monitor_compilation;

typedef struct dc_monitor_data {
    dc_stats stats;
    uint64_t metadata, held,
        limit; /* bytes: of the heap, 0 not counted; of devices with their pools; 0 no limit */
    uint64_t rounds; /* of all loops of dc.progress */
    bool measured;   /* kernels are being timed */
    int rank, ranks;
    uint32_t nfunction, nkernel, nmetric, nloop, ncompilation;
    dc_monitor_function function[DC_MONITOR_FUNCTIONS];
    dc_monitor_kernel kernel[DC_MONITOR_KERNELS];
    dc_monitor_metric metric[DC_MONITOR_METRICS];
    dc_monitor_loop loop[DC_MONITOR_LOOPS];
    dc_monitor_compilation compilation[DC_MONITOR_COMPILATIONS];
} dc_monitor_data;

typedef struct dc_monitor {
    uint64_t opened_ns;
    _Atomic uint64_t now; /* kind, name and time in one word (monitor.c) */
    atomic_bool wanted;   /* a copy is asked for */
    _Atomic uint32_t
        round;            /* of requests; 0: nobody watches. Metrics of an earlier round are due */
    atomic_bool timed;    /* kernels are to be timed */
    bool times;           /* they are, because of this monitor. The context's thread's own, */
    bool holds;           /* and this: metrics are being told, which belong together */
    dc_monitor_data live; /* the context's thread's own */
    pthread_mutex_t lock; /* of what follows */
    dc_monitor_data shown;
    uint64_t shown_ns, number; /* when, and how many copies there were */
    char name[DC_MONITOR_FUNCTIONS][DC_MONITOR_NAME];
    dc_world *world; /* NULL: alone, as far as is known */
    void *server;    /* of vm/monitor.c, */
    char path[600];  /* and its socket. Neither changes */
} dc_monitor;

/* Nothing can be had: NULL. */
dc_monitor *dc_monitor_new(dc_rt *rt);
/* No other thread looks at it. */
void dc_monitor_free(dc_rt *rt);

/* ---- the context's thread ---------------------------------------------------------------------------- */

/* The row of a name, for functions: the last one where there are too many. */
uint32_t dc_monitor_row(dc_monitor *m, const char *name);
/* What the thread is at from now on; returns what it was at, for dc_monitor_leave. name may be NULL. */
uint64_t dc_monitor_enter(dc_monitor *m, dc_doing what, uint32_t row, uint64_t now_ns);
void dc_monitor_leave(dc_monitor *m, uint64_t before, uint64_t now_ns);
/* An entry unwinds: the script goes on. For dc_job_defer. */
void dc_monitor_drop(void *m);

/* rt->world has been opened. */
void dc_monitor_join(dc_rt *rt);

/* Publishes, with what gather adds. */
void dc_monitor_publish(dc_rt *rt);
/* A safe point. */
static inline void dc_monitor_breathe(dc_rt *rt)
{
    dc_monitor *m = rt->first->monitor;
    if (m != NULL && atomic_load_explicit(&m->wanted, memory_order_relaxed) && !m->holds)
        dc_monitor_publish(rt->first);
}

/* Until it is called with false, or a round is done, there are no safe points: a copy has all metrics of a round. */
void dc_monitor_hold(dc_rt *rt, bool holds);
/* Is the metric to be told, since somebody watches? Names that have no room never are. */
bool dc_monitor_is_due(dc_monitor *m, const char *name);
void dc_monitor_tell(dc_monitor *m, const char *name, double value);

/* A loop of dc.progress begins inside those that are there: its number, or -1. */
int dc_monitor_loop_begin(dc_monitor *m, const char *title, int64_t total, int64_t size);
/* So many rounds are done. true: somebody watches, its metrics are due; they count as told. */
bool dc_monitor_loop_at(dc_monitor *m, int loop, int64_t done);
void dc_monitor_loop_end(dc_monitor *m, int loop); /* with those inside it */

/* ---- any other thread ---------------------------------------------------------------------------------- */

typedef struct dc_monitor_now {
    dc_doing what;
    char name[DC_MONITOR_NAME]; /* of a function; "" */
    uint64_t ns;                /* for how long */
} dc_monitor_now;

/* Somebody wants a copy; with times of kernels. Returns how many there were so far. */
uint64_t dc_monitor_ask(dc_monitor *m, bool timed);
/* Nobody watches any more. */
void dc_monitor_rest(dc_monitor *m);
uint64_t dc_monitor_number(dc_monitor *m);
/* The last copy, and how old it is: UINT64_MAX, there is none. */
void dc_monitor_read(dc_monitor *m, dc_monitor_data *out, uint64_t *age_ns);
void dc_monitor_read_now(dc_monitor *m, dc_monitor_now *out);
/* The name of a row of functions; DC_MONITOR_NAME bytes. */
void dc_monitor_read_name(dc_monitor *m, uint32_t row, char *out);
/* Does the rank wait for another one now? */
bool dc_monitor_read_wait(dc_monitor *m, dc_world_wait *out);

#endif
