/*
 * After a broken promise in a compilation or a call: a file with what it takes to reproduce it.
 * The format is in jit/compile/bug_report.c; `deepc --replay FILE` (vm/program/replay.c) reads it.
 */
#ifndef DC_JIT_COMPILE_BUG_REPORT_H
#define DC_JIT_COMPILE_BUG_REPORT_H

#include "core/runtime/rt.h"

/*
 * dc_job.on_bug of the context `rt`: writes the file if the job is about an executable, puts its
 * name and the command into the record's hint, and tells the host (dc_rt.on_bug). Never unwinds.
 */
void dc_bug_report(dc_job *j, void *rt);

#endif
