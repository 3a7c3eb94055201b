#include "core/host/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const usual[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so",
                                    "liblapack.so"};

enum { FUNCTIONS = 10 };

static const char *const names[2][FUNCTIONS] = {
    {"sgetrf_", "spotrf_", "sgelqf_", "sorglq_", "ssyevd_", "sgesdd_", "sgelsy_", "sgemm_",
     "strsm_", "sgeev_"},
    {"dgetrf_", "dpotrf_", "dgelqf_", "dorglq_", "dsyevd_", "dgesdd_", "dgelsy_", "dgemm_",
     "dtrsm_", "dgeev_"}};

/* By its name, or that which it has in the OpenBLAS of NumPy and SciPy. */
static void *find_one(void *handle, const char *name)
{
    char longer[64];
    void *found = dlsym(handle, name);
    snprintf(longer, sizeof longer, "scipy_%s", name);
    return found != NULL ? found : dlsym(handle, longer);
}

/* The name of the first one that is not there, or NULL: a BLAS alone lacks some. */
static const char *find(void *handle, int t, dc_lapack *l)
{
    void *found[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        found[i] = find_one(handle, names[t][i]);
        if (found[i] == NULL)
            return names[t][i];
    }
    memcpy(&l->getrf[t], &found[0], sizeof *found);
    memcpy(&l->potrf[t], &found[1], sizeof *found);
    memcpy(&l->gelqf[t], &found[2], sizeof *found);
    memcpy(&l->orglq[t], &found[3], sizeof *found);
    memcpy(&l->syevd[t], &found[4], sizeof *found);
    memcpy(&l->gesdd[t], &found[5], sizeof *found);
    memcpy(&l->gelsy[t], &found[6], sizeof *found);
    memcpy(&l->gemm[t], &found[7], sizeof *found);
    memcpy(&l->trsm[t], &found[8], sizeof *found);
    memcpy(&l->geev[t], &found[9], sizeof *found);
    return NULL;
}

static void find_threads(void *handle, dc_lapack *l)
{
    void *const get = find_one(handle, "openblas_get_num_threads");
    void *const set = find_one(handle, "openblas_set_num_threads");
    if (get == NULL || set == NULL)
        return;
    memcpy(&l->get_threads, &get, sizeof get);
    memcpy(&l->set_threads, &set, sizeof set);
}

/* Closing gives back a count; what was found stays. */
static dc_status take(dc_job *j, void *handle, const char *name, dc_lapack *l)
{
    const char *missing = find(handle, 0, l);
    if (missing == NULL)
        missing = find(handle, 1, l);
    find_threads(handle, l);
    dlclose(handle);
    if (missing == NULL)
        return DC_OK;
    return dc_failf(j, DC_ERR_BUILD, "linalg", "%s has no %s", name, missing);
}

static void *open_one(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

dc_status dc_lapack_open(dc_job *j, dc_lapack *out)
{
    const char *own = j->opt != NULL ? j->opt->lapack : "";
    void *handle;
    *out = (dc_lapack){0};
    if (own[0] != '\0') {
        handle = open_one(own);
        if (handle != NULL)
            return take(j, handle, own, out);
        return dc_failf(j, DC_ERR_BUILD, "linalg", "%s, which DEEPC_LAPACK names, cannot be opened",
                        own);
    }
    for (size_t i = 0; i < DC_COUNTOF(usual); i++) {
        handle = open_one(usual[i]);
        if (handle != NULL)
            return take(j, handle, usual[i], out);
    }
    return dc_failf(j, DC_ERR_BUILD, "linalg",
                    "no LAPACK is installed (Debian: apt-get install libopenblas0-serial)");
}

/* The number of threads is OpenBLAS's for the whole process, so what it was is kept for the whole process as well. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int single, threads; /* callers in between; the number that the last one restores */

void dc_lapack_enter_single(const dc_lapack *l)
{
    if (l->set_threads == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (single++ == 0) {
        threads = l->get_threads();
        if (threads > 1)
            l->set_threads(1);
    }
    pthread_mutex_unlock(&lock);
}

void dc_lapack_leave_single(const dc_lapack *l)
{
    if (l->set_threads == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--single == 0 && threads > 1)
        l->set_threads(threads);
    pthread_mutex_unlock(&lock);
}
