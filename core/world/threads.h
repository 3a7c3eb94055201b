/*
 * An engine whose ranks are threads of one process: for tests, which need no library of MPI and see all ranks at once. They may
 * pretend to be on several hosts.
 */
#ifndef DC_CORE_WORLD_THREADS_H
#define DC_CORE_WORLD_THREADS_H

#include "core/world/engine.h"

typedef struct dc_threads dc_threads;

/* host: of each rank the number of its host; NULL: all are on one. */
dc_threads *dc_threads_new(int size, const int *host);
/* When all worlds are closed. */
void dc_threads_free(dc_threads *t);

/* For dc_world_open on a thread of its own: the ranks of a host wait for each other there. */
dc_engine *dc_threads_engine(dc_threads *t, int rank);

/* From now on the rank counts as ended, as a process that was killed. */
void dc_threads_kill(dc_threads *t, int rank);

#endif
