/* Ranks as threads of a test: each opens a world on the engine of core/world/threads.h and runs a body. */
#ifndef DC_TESTS_UNIT_WORLD_RANKS_H
#define DC_TESTS_UNIT_WORLD_RANKS_H

#include "core/world/threads.h"

#include <stdatomic.h>

enum { RANKS_MOST = 8, RANKS_TEXT = 600 };

typedef struct ranks ranks;

typedef struct rank_of {
    ranks *all;
    int rank;
    dc_world *w;
    atomic_bool cancel; /* of its job */
    dc_status status;
    char error[RANKS_TEXT];   /* of the body that failed, */
    char failure[RANKS_TEXT]; /* and what the world said; "" nothing */
    int64_t wrong;            /* counted by the body */
    uint64_t sent;            /* bytes, when the body ended */
} rank_of;

struct ranks {
    int n;
    dc_status (*body)(dc_job *j, rank_of *r);
    void *ctx;
    int64_t seconds;              /* DEEPC_RANK_SECONDS */
    void (*change)(dc_engine *e); /* of each engine, before it is opened; NULL: nothing */
    dc_threads *engine;
    rank_of at[RANKS_MOST];
};

/* host: of each rank the number of its host; NULL: one host. Each rank closes its world when its body has ended. */
void ranks_run(ranks *all, int n, const int *host, dc_status (*body)(dc_job *j, rank_of *r),
               void *ctx);

#endif
