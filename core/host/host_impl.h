/* What host.c and the files that compute share: a row of its table for each operation. */
#ifndef DC_CORE_HOST_HOST_IMPL_H
#define DC_CORE_HOST_HOST_IMPL_H

#include "core/host/host.h"

typedef struct dc_host_row {
    /* One element of the batch. */
    void (*run)(const dc_host_call *c, void *out, const void *const *in, void *scratch);
    size_t (*scratch)(const dc_host_call *c);
    double (*cost)(const dc_host_call *c); /* nanoseconds of one element of the batch */
} dc_host_row;

/* core/host/sort.c */
extern const dc_host_row dc_host_sort, dc_host_argsort, dc_host_topk;

/* Elements of operand i, or of the result, that belong to one element of the batch. */
int64_t dc_host_operand_count(const dc_host_call *c, int i);
int64_t dc_host_result_count(const dc_host_call *c);

static inline int64_t dc_host_dim(const dc_type *t, int from_the_end)
{
    return t->dim[t->rank - from_the_end];
}

#endif
