/*
 * Executables in the cache on disk: what the pipeline has made of a graph is found again by the graph,
 * so that a warm start neither fuses nor plans nor schedules, and prints no kernel.
 *
 * A key says all that the stages read: the graph as it was given, without names and lines; the
 * description, the target, the settings; and the build of deepc, since it is the code of the stages
 * that decides. An entry names its kernels by the keys of their own entries (jit/compile/program_build.h); one of them
 * that is missing or damaged makes it a miss, and the pipeline runs.
 *
 * Not used where settings show, check or change the stages: channels of compilation, DEEPC_DUMP,
 * DEEPC_CHECK, DEEPC_SCHEDULE.
 */
#ifndef DC_JIT_COMPILE_EXEC_CACHE_H
#define DC_JIT_COMPILE_EXEC_CACHE_H

#include "jit/cache/disk_cache.h"
#include "jit/compile/pipeline.h"

/* False: executables are not kept. */
bool dc_exec_cache_key(const dc_env *env, dc_job *j, const dc_exec *e, dc_cache_key *key);

/* Fills in the compiled part of e. False: it is not there; e is as before. */
bool dc_exec_cache_find(const dc_env *env, dc_job *j, dc_exec *e, dc_cache_key key, dc_counts *n);

/* Of what the pipeline has filled in. */
void dc_exec_cache_store(const dc_env *env, dc_job *j, const dc_exec *e, dc_cache_key key);

#endif
