/*
 * What brings bytes from one rank to another: backends/mpi, or threads of one process (core/world/threads.h). Everything
 * above is in core/world and the same for all engines.
 *
 * All functions of an engine are called on one thread, the world's: `open` first, `close` last. Messages from one rank to
 * another with one tag arrive in the order in which they were sent. A function that returns false has said why in `why`.
 */
#ifndef DC_CORE_WORLD_ENGINE_H
#define DC_CORE_WORLD_ENGINE_H

#include "core/world/world.h"

typedef struct dc_engine dc_engine;

/* A message under way, for the engine to remember it by. */
typedef struct dc_request {
    uint64_t word[4];
} dc_request;

enum { DC_TAG_HEAD = 1, DC_TAG_DATA, DC_TAG_NOTICE };

typedef struct dc_engine_ops {
    /* Fills in rank, size, host and name. */
    bool (*open)(dc_engine *e);
    /*
     * Memory that the ranks of this host share, zeroed, the same `bytes` for all of them; asked for once, right behind
     * open, where there are several ranks on a host. NULL is a failure.
     */
    void *(*segment)(dc_engine *e, size_t bytes);
    /* Begin; the bytes stay where they are until test says done. A message has the length that its receiver expects. */
    bool (*send)(dc_engine *e, int rank, int tag, const void *bytes, size_t n, dc_request *r);
    bool (*recv)(dc_engine *e, int rank, int tag, void *bytes, size_t n, dc_request *r);
    bool (*test)(dc_engine *e, dc_request *r, bool *done);
    void (*cancel)(dc_engine *e,
                   dc_request *r); /* of one that is not done; nothing is waited for */
    /* Is a message of this tag here, from any rank? It is taken; `n` is room for it. */
    bool (*poll)(dc_engine *e, int tag, void *bytes, size_t n);
    /* Has the process of a rank of this host ended? */
    bool (*gone)(dc_engine *e, int rank, int pid);
    /* clean: all ranks have come here, and none has failed. Frees e, also where open has failed. */
    void (*close)(dc_engine *e, bool clean);
} dc_engine_ops;

struct dc_engine {
    const dc_engine_ops *ops;
    int rank, size;
    const int *host;         /* of each rank the number of its host */
    const char *const *name; /* of each rank the name of its host */
    char why[400];
};

/*
 * The engine is the world's from now on, also where the call fails. Ranks wait in here for those on their host. A failure is
 * WORLD with the engine's words.
 */
dc_status dc_world_open(dc_job *j, dc_engine *e, dc_world **out);

/* One rank, without an engine and a thread. */
dc_status dc_world_alone(dc_job *j, dc_world **out);
/* One rank of a world whose others are not there: what they would give is what this one has. */
dc_status dc_world_pretend(dc_job *j, int rank, int size, dc_world **out);

/* Has the process ended, or is it a zombie? For engines whose ranks are processes. */
bool dc_world_process_gone(int pid);

#endif
