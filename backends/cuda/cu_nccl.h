/*
 * Exchanges of ranks whose values are on CUDA devices, by NCCL: the library (nccl_load.c), a communicator for each group
 * of ranks (nccl_group.c), exchanges and waiting for them (cu_nccl.c).
 */
#ifndef DC_BACKENDS_CUDA_CU_NCCL_H
#define DC_BACKENDS_CUDA_CU_NCCL_H

#include "backends/cuda/cu_impl.h"
#include "core/host/host_step.h"

typedef int nccl_result;
typedef struct nccl_comm_ *nccl_comm;

typedef struct nccl_id {
    char bytes[128];
} nccl_id;

/* What of ncclConfig_t there was in NCCL 2.17, which `version` says. */
typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster, least_blocks, most_blocks;
    const char *net;
} nccl_config;

enum {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_U8 = 1,
    NCCL_SUM = 0,
    NCCL_PROD = 1,
    NCCL_MAX = 2,
    NCCL_MIN = 3,
    NCCL_OLDEST = 21700
};

typedef struct dc_nccl_api {
#define NCCL_API(name, symbol, parameters) nccl_result(*name) parameters;
#include "backends/cuda/nccl_api.def"
} dc_nccl_api;

/* A group that exchanges values of this device. */
typedef struct dc_nccl_group {
    struct dc_nccl_group *next;
    dc_group_axes axes;
    int n, me;
    nccl_comm comm;  /* NULL: there is none (any more); */
    uint64_t number; /* its number, which the members have in common */
    bool refused;    /* there will be none */
} dc_nccl_group;

enum { DC_NCCL_AHEAD = 64, DC_NCCL_LABEL = 160 };

/* An exchange that was given to the stream. */
typedef struct dc_nccl_begun {
    cu_event done;
    nccl_comm comm;
    dc_exchange x; /* for messages, with this label */
    dc_transfer at;
    char label[DC_NCCL_LABEL];
} dc_nccl_begun;

struct dc_cu_nccl {
    void *handle; /* NULL: there is no library, `why` */
    int version;
    dc_nccl_api fn;
    char why[300];
    const char *failure; /* of a communicator, in words */

    dc_cu *cu;
    dc_world *world; /* whose groups these are; NULL: none yet, or it has come to its end */
    dc_world_user user;
    dc_nccl_group *group;
    dc_nccl_begun begun[DC_NCCL_AHEAD]; /* that of number i at i % AHEAD; */
    _Atomic uint64_t first, end;        /* those from first to end - 1 may be under way */
    pthread_t thread;                   /* which begins them */
    const dc_nccl_begun *broken;        /* NULL, or one that has been ended */
};

/* nccl_load.c */
/* Always one; without a library it says why. */
struct dc_cu_nccl *dc_nccl_open(dc_cu *cu, const char *path);
void dc_nccl_unload(struct dc_cu_nccl *n);
const char *dc_nccl_words(nccl_result error);

/* nccl_group.c */
dc_nccl_group *dc_nccl_group_of(struct dc_cu_nccl *n, const dc_exchange *x);
/* All members come here. Afterwards the group has a communicator or is refused, on all of them. */
dc_status dc_nccl_join(struct dc_cu_nccl *n, dc_job *j, dc_nccl_group *g, const dc_exchange *x);
/* Until what was asked of a communicator has been taken. */
dc_status dc_nccl_await(struct dc_cu_nccl *n, dc_job *j, nccl_comm comm, const dc_exchange *x,
                        nccl_result result);
/* What is under way ends at once. */
void dc_nccl_abort(struct dc_cu_nccl *n);
/* Where all is done and the others may still read. */
void dc_nccl_leave(struct dc_cu_nccl *n);

#endif
