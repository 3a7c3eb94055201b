/* A copy of what a monitor knows as JSON: what it answers, and what `deepc top --json` prints (docs/monitoring.md). */
#ifndef DC_VM_MONITOR_TEXT_H
#define DC_VM_MONITOR_TEXT_H

#include "core/runtime/monitor.h"

/* What does not change while it is open. */
typedef struct dc_monitor_process {
    char command[256], device[256], host[256], file[32];
    int pid, parent, threads; /* threads: that run kernels */
} dc_monitor_process;

/* Of now; 0 where the system does not tell. */
typedef struct dc_monitor_usage {
    uint64_t resident, threads; /* bytes; of the process in all */
    double cpu_seconds;
} dc_monitor_usage;

void dc_monitor_usage_read(dc_monitor_usage *u);
/* The command line of the process, blanks between its words. */
void dc_monitor_command(char *out, size_t size);

/* Adds one line. d is a copy of dc_monitor_read, as old as age_ns tells. */
void dc_monitor_print(dc_text *t, dc_monitor *m, const dc_monitor_process *p,
                      const dc_monitor_data *d, uint64_t age_ns);
/* One line with a sentence: { "error": "..." }. */
void dc_monitor_print_error(dc_text *t, const char *sentence);

#endif
