/* Types and entries of NCCL that the stand-in has (standin_nccl.c). */
#ifndef DC_TESTS_CUDA_CUDA_NCCL_H
#define DC_TESTS_CUDA_CUDA_NCCL_H

#include <stddef.h>

#include "cuda_driver.h"

typedef struct comm comm;

typedef struct nccl_id {
    char name[128];
} nccl_id;

typedef struct nccl_config { /* its begin */
    size_t size;
    unsigned magic, version;
    int blocking;
} nccl_config;

int ncclGetVersion(int *version);
int ncclGetUniqueId(nccl_id *out);
int ncclCommInitRankConfig(comm **out, int n, nccl_id id, int me, const nccl_config *how);
int ncclCommGetAsyncError(comm *c, int *state);
int ncclCommFinalize(comm *c);
int ncclCommDestroy(comm *c);
int ncclCommAbort(comm *c);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int by, comm *c, CUstream s);
int ncclAllGather(const void *from, void *to, size_t n, int type, comm *c, CUstream s);
int ncclReduceScatter(const void *from, void *to, size_t n, int type, int by, comm *c, CUstream s);
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, comm *c, CUstream s);
int ncclSend(const void *from, size_t n, int type, int peer, comm *c, CUstream s);
int ncclRecv(void *to, size_t n, int type, int peer, comm *c, CUstream s);
int ncclGroupStart(void);
int ncclGroupEnd(void);

#endif
