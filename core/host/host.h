/*
 * Functions that compute operations of classes HST and COM (core/ir/ops.def) in the host's memory: for the interpreter, and for
 * the commands that devices give to the host.
 *
 * Rows are the elements of the batch, which do not depend on each other: any range of them may be computed by any thread,
 * with scratch memory of its own. A function cannot fail: what it cannot compute is NaN.
 *
 * Those of class COM are one row, and may fail: they are given to the world of the job, on its own thread.
 */
#ifndef DC_CORE_HOST_HOST_H
#define DC_CORE_HOST_HOST_H

#include "core/base/look.h"
#include "core/host/lapack.h"
#include "core/ir/host_call.h"

int64_t dc_host_rows(const dc_host_call *c);
/* Bytes that a thread needs beside operands and result; aligned to 64. */
size_t dc_host_scratch(const dc_host_call *c);
/* A guess for all rows on one thread. */
uint64_t dc_host_cost_ns(const dc_host_call *c);
/* The library that it needs, if it needs one; BUILD says what to install. */
dc_status dc_host_open(dc_job *j, const dc_host_call *c, dc_lapack *lib);
/*
 * Rows begin to end - 1. The arrays are whole ones, dense, aligned as their elements are. Where `look` ends (NULL: never)
 * the result is unfinished, and nothing says so but `look`.
 */
dc_status dc_host_run(dc_job *j, const dc_host_call *c, const dc_lapack *lib, const dc_look *look,
                      void *out, const void *const *in, void *scratch, int64_t begin, int64_t end);

#endif
