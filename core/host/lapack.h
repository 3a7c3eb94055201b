/*
 * LAPACK and BLAS with the Fortran interface and 32-bit integers, opened at run time: OpenBLAS or the reference libraries.
 * Matrices are column by column there.
 */
#ifndef DC_CORE_HOST_LAPACK_H
#define DC_CORE_HOST_LAPACK_H

#include "core/base/job.h"

#include <stddef.h>

/* The hidden lengths of texts are the last arguments. */
typedef void dc_getrf(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info);
typedef void dc_potrf(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
typedef void dc_gelqf(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                      const int *lwork, int *info);
typedef void dc_orglq(const int *m, const int *n, const int *k, void *a, const int *lda,
                      const void *tau, void *work, const int *lwork, int *info);
typedef void dc_syevd(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
                      void *w, void *work, const int *lwork, int *iwork, const int *liwork,
                      int *info, size_t, size_t);
typedef void dc_geev(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda,
                     void *wr, void *wi, void *vl, const int *ldvl, void *vr, const int *ldvr,
                     void *work, const int *lwork, int *info, size_t, size_t);
typedef void dc_gesdd(const char *jobz, const int *m, const int *n, void *a, const int *lda,
                      void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                      const int *lwork, int *iwork, int *info, size_t);
typedef void dc_gelsy(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b,
                      const int *ldb, int *jpvt, const void *rcond, int *rank, void *work,
                      const int *lwork, int *info);
typedef void dc_gemm(const char *transa, const char *transb, const int *m, const int *n,
                     const int *k, const void *alpha, const void *a, const int *lda, const void *b,
                     const int *ldb, const void *beta, void *c, const int *ldc, size_t, size_t);
typedef void dc_trsm(const char *side, const char *uplo, const char *trans, const char *diag,
                     const int *m, const int *n, const void *alpha, const void *a, const int *lda,
                     void *b, const int *ldb, size_t, size_t, size_t, size_t);

/* [0] of f32, [1] of f64. */
typedef struct dc_lapack {
    dc_getrf *getrf[2];
    dc_potrf *potrf[2];
    dc_gelqf *gelqf[2];
    dc_orglq *orglq[2];
    dc_syevd *syevd[2];
    dc_geev *geev[2];
    dc_gesdd *gesdd[2];
    dc_gelsy *gelsy[2];
    dc_gemm *gemm[2];
    dc_trsm *trsm[2];
    /* Of OpenBLAS: how many threads a call may use. NULL in other libraries. */
    int (*get_threads)(void);
    void (*set_threads)(int);
} dc_lapack;

/*
 * The library of the setting DEEPC_LAPACK, or one of the usual names. It stays in the process, so there is nothing to close,
 * and opening it again takes microseconds. BUILD says what to install.
 */
dc_status dc_lapack_open(dc_job *j, dc_lapack *out);

/*
 * Between these, calls from several threads at once use one thread each: threads of OpenBLAS's own, which all callers share, would
 * take a hundred times as long. May be nested, and called by any thread.
 */
void dc_lapack_enter_single(const dc_lapack *l);
void dc_lapack_leave_single(const dc_lapack *l);

#endif
