/*
 * A command of class HOST (core/runtime/device.h) as a device keeps it. Devices whose memory is not the host's copy
 * operands to the places here and the result from there.
 */
#ifndef DC_CORE_HOST_HOST_STEP_H
#define DC_CORE_HOST_HOST_STEP_H

#include "core/host/host.h"

typedef struct dc_host_step {
    dc_host_call call;
    dc_lapack lib;
    int64_t rows;
    size_t scratch;                     /* bytes for a thread */
    size_t bytes[1 + DC_HOST_OPERANDS]; /* of the result, then of operands */
    void *place[1 + DC_HOST_OPERANDS];  /* staged: memory for them */
    char label[96];                     /* "all_reduce, train.lua:12" */
    void *work;                         /* scratch memory for one thread; without `staged` NULL */
} dc_host_step;

/* From the numbers of a command and its label. BUILD where a library is missing, NOMEM. dc_xfree gives it back. */
dc_status dc_host_step_new(dc_job *j, const int64_t *at, uint32_t n, const char *label, bool staged,
                           dc_host_step **out);
/* Rows begin to end - 1, as dc_host_run; place[0] is the result. */
dc_status dc_host_step_run(const dc_host_step *s, dc_job *j, const dc_look *look,
                           void *const *place, void *scratch, int64_t begin, int64_t end);

#endif
