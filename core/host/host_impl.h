/* What host.c and the files that compute share: a row of its table for each operation. */
#ifndef DC_CORE_HOST_HOST_IMPL_H
#define DC_CORE_HOST_HOST_IMPL_H

#include "core/host/host.h"

typedef struct dc_host_row {
    /* One element of the batch. */
    void (*run)(const dc_host_call *c, const dc_lapack *lib, void *out, const void *const *in,
                void *scratch);
    /* In its place, of elements that may be long: it looks every some thousand numbers whether it ends. */
    void (*run_long)(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                     void *scratch);
    size_t (*scratch)(const dc_host_call *c);
    double (*cost)(const dc_host_call *c); /* nanoseconds of one element of the batch */
    bool needs_lapack;
    /* Where these are there: an element of the batch is so many pieces of work, and run_range does pieces begin to end - 1
     * of all of them, in the place of run. */
    int64_t (*pieces)(const dc_host_call *c);
    void (*run_range)(const dc_host_call *c, const dc_look *look, void *out, const void *in,
                      int64_t begin, int64_t end);
} dc_host_row;

/* core/host/sort.c */
extern const dc_host_row dc_host_sort, dc_host_argsort, dc_host_topk;
/* core/host/running.c */
extern const dc_host_row dc_host_running;
/* core/host/linalg.c */
extern const dc_host_row dc_host_cholesky, dc_host_lu, dc_host_qr, dc_host_eigh, dc_host_eigvalsh,
    dc_host_svd, dc_host_svdvals;
/* core/host/linalg_solve.c */
extern const dc_host_row dc_host_trsolve, dc_host_lusolve, dc_host_det, dc_host_lstsq, dc_host_pinv;
/* core/host/linalg_eig.c */
extern const dc_host_row dc_host_eig, dc_host_eigvals;
/* core/host/linalg_exp.c */
extern const dc_host_row dc_host_matrix_exp;

/* Elements of operand i, or of the result, that belong to one element of the batch. */
int64_t dc_host_operand_count(const dc_host_call *c, int i);
int64_t dc_host_result_count(const dc_host_call *c);

static inline int64_t dc_host_dim(const dc_type *t, int from_the_end)
{
    return t->dim[t->rank - from_the_end];
}

#endif
