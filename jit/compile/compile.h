/* The interface of compilation: a description becomes an executable, on another thread or on the caller's. */
#ifndef DC_JIT_COMPILE_COMPILE_H
#define DC_JIT_COMPILE_COMPILE_H

#include "jit/compile/kernel_forms.h"
#include "jit/exec/executable.h"

/*
 * Prepares a context for compilations and checks the settings that they read (DEEPC_SKIP,
 * DEEPC_SCHEDULE, DEEPC_DUMP, DEEPC_COMPILE). The first executable does it too.
 */
dc_status dc_jit_open(dc_rt *rt, dc_job *j);

/*
 * Before the process ends without the context being closed: the end destroys what compilers on other
 * threads are using. Waits for those that are running; with DEEPC_DUMP or a channel of compilation on,
 * for all that is queued.
 */
void dc_jit_stop(dc_rt *rt);

/* Delivers log lines and counters of compilations that have ended. */
void dc_jit_settle(dc_rt *rt);

/*
 * start: the compilation begins on another thread (DEEPC_COMPILE=now: it runs here), dc_exec_wait ends it. build:
 * both, here. What the compiler logs is delivered to the context's sink by the next call with the context, in the
 * order of the starts.
 *
 * Releasing an executable that is being compiled does not wait for the end.
 */
dc_status dc_exec_start(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out);
dc_status dc_exec_build(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out);
/* The text of a kernel, as it was compiled. */
dc_status dc_exec_source(dc_exec *e, dc_job *j, uint32_t kernel, dc_form form, dc_text *out);

#endif
