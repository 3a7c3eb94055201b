/*
 * An engine whose ranks are threads of one process, which need no library of MPI. In tests they may pretend to be on several
 * hosts, and to be killed.
 */
#ifndef DC_CORE_WORLD_THREADS_H
#define DC_CORE_WORLD_THREADS_H

#include "core/world/engine.h"

typedef struct dc_threads dc_threads;

/* host: of each rank the number of its host, which are called host0 ...; NULL: all are on this one. */
dc_threads *dc_threads_new(int size, const int *host);
/* When all worlds are closed. */
void dc_threads_free(dc_threads *t);
int dc_threads_size(const dc_threads *t);

/* Who is a rank takes it, once: false where it is taken. Any thread. */
bool dc_threads_take(dc_threads *t, int rank);
/* It has ended, also without a world, or as a process that was killed: who waits for it hears of it. Any thread. */
void dc_threads_leave(dc_threads *t, int rank);

/* For dc_world_open, once for each rank. */
dc_engine *dc_threads_engine(dc_threads *t, int rank);

#endif
