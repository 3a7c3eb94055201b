/*
 * The monitor of a context: a thread that answers those who watch through a socket (docs/monitoring.md).
 *
 * The thread touches nothing of the context: it asks for copies and reads them (core/runtime/monitor.h). Clients of the same user
 * and of root alone are heard. Each line of a client is a request, answered by one line of JSON:
 *
 *     snapshot            counters as they are now, or, where the script comes to no safe point soon, as they last were
 *     snapshot kernels    the same; kernels are timed as long as somebody asks so
 *
 * A client that writes anything else gets a sentence and is let go, as is one that does not read what it asked for. Limits are
 * those at the beginning of monitor.c.
 */
#ifndef DC_VM_MONITOR_H
#define DC_VM_MONITOR_H

#include "core/runtime/rt.h"

/* ALLOW where no files may be opened; FILE where there is no socket to be had, with why. Is one open, nothing happens. */
dc_status dc_monitor_open(dc_rt *rt, dc_job *j);
/* Ends the thread, removes the socket. Nothing where there is none. */
void dc_monitor_close(dc_rt *rt);

#endif
