/* What a monitor answers (vm/monitor_text.c), as numbers: what `deepc top` shows. */
#ifndef DC_VM_TOP_SNAPSHOT_H
#define DC_VM_TOP_SNAPSHOT_H

#include "core/runtime/monitor.h"

typedef struct dc_top_count { /* a function or a kernel */
    char name[DC_MONITOR_NAME * 2], where[DC_MONITOR_WHERE * 2];
    double times, seconds, flops, bytes; /* so far */
} dc_top_count;

typedef struct dc_top_metric {
    char name[DC_MONITOR_NAME * 2];
    double value, age;
    uint32_t npoint;
    struct {
        double seconds, value;
    } point[DC_MONITOR_POINTS];
} dc_top_metric;

typedef struct dc_top_loop {
    char title[DC_MONITOR_NAME * 2];
    double done, total, size, seconds, since_first; /* total < 0: not known */
} dc_top_loop;

typedef struct dc_top_compilation {
    char name[DC_MONITOR_NAME * 2];
    bool running;
    double seconds;
} dc_top_compilation;

typedef struct dc_top_snapshot {
    char error[240]; /* instead of all that follows; "" */
    char version[32], socket[DC_MONITOR_NAME], command[512], host[512], device[512];
    char what[24], name[DC_MONITOR_NAME * 2], wait_in[400];
    double pid, parent, rank, ranks;
    double open, age, cpu, doing; /* seconds; age < 0: no counters have come */
    double wait_rank, wait;       /* wait < 0: it waits for none; wait_rank < 0: for any */
    double kernel_threads, process_threads, resident;
    double live, peak, held, metadata, limit;
    double rounds, calls, launches, compiles, interpreted, fallbacks;
    bool timed;
    uint32_t nfunction, nkernel, nmetric, nloop, ncompilation;
    dc_top_count function[DC_MONITOR_FUNCTIONS], kernel[DC_MONITOR_KERNELS];
    dc_top_metric metric[DC_MONITOR_METRICS];
    dc_top_loop loop[DC_MONITOR_LOOPS];
    dc_top_compilation compilation[DC_MONITOR_COMPILATIONS];
} dc_top_snapshot;

/* Reads n bytes of JSON, which are changed. What it does not know is stepped over. false: it is none; `why` says where. */
bool dc_top_read(dc_top_snapshot *out, char *text, size_t n, char why[96]);

#endif
