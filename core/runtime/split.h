/*
 * One job's independent pieces on several threads: as many as there are cores, the caller's among
 * them. Threads are started for the occasion, which takes some 30 microseconds each: for pieces of
 * milliseconds.
 */
#ifndef DC_CORE_RUNTIME_SPLIT_H
#define DC_CORE_RUNTIME_SPLIT_H

#include "core/base/job.h"

/* A piece of 0..n-1. Its job is of the thread it runs on: scratch memory ends with the piece. */
typedef dc_status (*dc_piece)(dc_job *j, void *ctx, uint32_t piece);

/*
 * Runs all pieces and returns when none runs any more. After a failure no others are begun; the one
 * with the smallest number is the job's. Log lines of other threads come when all have ended.
 */
dc_status dc_split(dc_job *j, uint32_t n, dc_piece piece, void *ctx);

#endif
