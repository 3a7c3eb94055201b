/* What the files of this folder share. */
#ifndef DC_BACKENDS_CUDA_CU_IMPL_H
#define DC_BACKENDS_CUDA_CU_IMPL_H

#include "backends/cuda/cuda.h"
#include "core/base/vec.h"
#include "core/runtime/walk.h"

#include <pthread.h>
#include <stdatomic.h>

/* The types of CUDA, as wide as its headers have them; handles differ so that they do not mix. */
typedef int cu_result;
typedef int cu_device;
typedef unsigned long long cu_address;
typedef struct cu_context_ *cu_context;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_pool_ *cu_pool;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_node_ *cu_node;
typedef struct cu_graph_exec_ *cu_graph_exec;
typedef struct nvrtc_program_ *nvrtc_program;

typedef struct cu_location {
    int type, id;
} cu_location;

typedef struct cu_mem_properties { /* CUmemAllocationProp */
    int type, handle_types;
    cu_location location;
    void *unused;
    unsigned char flags[8];
} cu_mem_properties;

typedef struct cu_mem_access { /* CUmemAccessDesc */
    cu_location location;
    int flags;
} cu_mem_access;

typedef struct cu_pool_properties { /* CUmemPoolProps */
    int type, handle_types;
    cu_location location;
    void *unused;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
} cu_pool_properties;

typedef struct cu_kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 */
    cu_function fn;
    unsigned grid[3], block[3], shared;
    void **argument, **extra;
    void *kernel, *context;
} cu_kernel_node;

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(cu_mem_properties) == 32 && sizeof(cu_mem_access) == 12 &&
                    sizeof(cu_pool_properties) == 88 && sizeof(cu_kernel_node) == 72),
               "structures of the driver");

enum {
    CU_SUCCESS = 0,
#define CU_ERROR(name, number, lost) CU_ERROR_##name = (number),
#define CU_ATTRIBUTE(name, number)   CU_ATTRIBUTE_##name = (number),
#include "backends/cuda/cu_api.def"
    CU_MEMORY_PINNED = 1, /* of cu_mem_properties and cu_pool_properties: device memory */
    CU_LOCATION_DEVICE = 1,
    CU_ACCESS_READ_WRITE = 3,
    CU_POOL_RELEASE_THRESHOLD = 4,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_NO_TIMES = 2,
    CU_HOST_PORTABLE = 1,
    CU_FUNCTION_DYNAMIC_SHARED = 8, /* bytes that a launch may ask for */
};

typedef struct dc_cu_api {
#define CU_API(name, symbol, parameters) cu_result(*name) parameters;
#include "backends/cuda/cu_api.def"
} dc_cu_api;

typedef struct dc_nvrtc_api {
#define NVRTC_API(name, symbol, parameters) int(*name) parameters;
#include "backends/cuda/cu_api.def"
} dc_nvrtc_api;

typedef struct dc_cu_lib {
    void *handle;
    dc_cu_api fn;
} dc_cu_lib;

/* How the launches of a run are given to the device. */
typedef enum dc_cu_launch {
    DC_CU_GRAPH, /* all of them by one CUDA graph */
    DC_CU_ONE,   /* one after the other */
    DC_CU_WAIT   /* and each is waited for, so that a failure is that of its kernel */
} dc_cu_launch;

enum {
    DC_CU_AHEAD = 8, /* runs that the device has at most before the host waits */
    DC_CU_CHUNKS = 8,
    DC_CU_CHUNK = 1 << 20 /* bytes of pinned memory that copies go through */
};

/* What a CHECK of a run found, in pinned memory: written by backends/cuda/builtin.c's kernel. */
typedef struct dc_cu_verdict {
    uint32_t command; /* one more than the position of the command; 0: none found anything */
    int32_t position;
    uint32_t bits[2];
} dc_cu_verdict;

/* One that was not asked for when its place was needed again. */
typedef struct dc_cu_found {
    uint64_t ticket;
    dc_cu_verdict verdict;
} dc_cu_found;

/* Pinned memory that what is copied to the device waits in, on the way of one stream. */
typedef struct dc_cu_ring {
    cu_stream stream;
    char *chunk; /* CHUNKS of CHUNK bytes */
    cu_event done[DC_CU_CHUNKS];
    bool used[DC_CU_CHUNKS];
    uint32_t at;
    size_t fill;
} dc_cu_ring;

/* Memory of the pool, and the run whose end covers all that was given to do with it (cu_beside.c). */
typedef struct dc_cu_place {
    cu_address at;
    size_t bytes;
    uint64_t run; /* the first one is 1 */
} dc_cu_place;

/* Address space whose begin is mapped (cu_memory.c). */
typedef struct dc_cu_space {
    cu_address at;
    size_t room, mapped;
    DC_VEC(uint64_t) memory; /* handles of what is mapped, one behind the other */
    DC_VEC(size_t) bytes;
} dc_cu_space;

typedef struct dc_cu {
    dc_device device; /* first */
    dc_target target;
    dc_cu_lib lib;
    cu_device at;
    cu_context context; /* the primary one, shared with a host */
    cu_stream stream;
    bool own_stream; /* not a host's */
    cu_pool pool;
    dc_cu_launch launch;
    size_t granularity; /* of mapped memory; 0: there is none */
    DC_VEC(dc_cu_space) space;

    _Atomic(const char *) lost; /* name of the error after which nothing works any more */
    atomic_bool busy;           /* something was given to the stream since it was last waited for */

    cu_event done[DC_CU_AHEAD]; /* of the runs behind one another: that of run n at n % AHEAD */
    dc_cu_verdict *verdict;     /* AHEAD of them */
    uint64_t runs;              /* of graphs, so far */
    cu_event clock[2];          /* round a launch whose time is taken; NULL before the first one */
    DC_VEC(dc_cu_found) found;

    dc_cu_ring ring;           /* of `stream` */
    dc_cu_ring beside;         /* of copies that need not wait for all runs */
    cu_event beside_done;      /* the last of those */
    bool copying;              /* `stream` has not been told to wait for them */
    DC_VEC(dc_cu_place) place; /* by ascending addresses */
    uint64_t place_changes;    /* so often one came or went */

    cu_module builtin;
    cu_function copy_kernel, check_kernel;

    atomic_int objects; /* modules, graphs and memory alive: what tests count */

    pthread_mutex_t lock; /* over what follows: several threads compile */
    bool nvrtc_tried;
    void *nvrtc;
    dc_nvrtc_api compiler;
    char nvrtc_path[300], nvrtc_why[300];
    bool ptx; /* the compiler does not know the device's architecture: the driver translates */
    char arch[40];
    bool flush; /* DEEPC_MATH=ftz */

    struct dc_cu_nccl *nccl; /* exchanges of ranks; NULL: it has not been asked for */
} dc_cu;

struct dc_program {
    dc_cu *cu;
    cu_module module;
    uint32_t nentry;
    char **entry;
};

static inline dc_cu *dc_cu_of(dc_device *d)
{
    return (dc_cu *)d;
}

static inline cu_address dc_cu_at(const void *p)
{
    return (cu_address)(uintptr_t)p;
}

/* load.c. On failure nothing stays open and `why` tells. */
bool dc_cu_lib_open(const char *path, dc_cu_lib *lib, char *why, size_t size);
void dc_cu_lib_close(dc_cu_lib *lib);
/* Finds device `number`; *n: how many there are. */
bool dc_cu_find(const dc_cu_lib *lib, uint32_t number, cu_device *out, uint32_t *n, char *why,
                size_t size);
int dc_cu_attribute(const dc_cu_lib *lib, cu_device device, int which);
/* 90 is compute capability 9.0; multiprocessors; shared memory of a group of threads. 0: not known. */
int dc_cu_capability(const dc_cu_lib *lib, cu_device device);
int dc_cu_units(const dc_cu_lib *lib, cu_device device);
size_t dc_cu_shared_bytes(const dc_cu_lib *lib, cu_device device); /* what each has, at the least */
/* "CUDA_ERROR_OUT_OF_MEMORY", or "CUDA error 9999" written to `spare`. */
const char *dc_cu_error(cu_result error, char spare[32]);

/* cuda.c */
/* A DEVICE record, "what: CUDA_ERROR_NAME"; NOMEM where memory is short. Notes that the device is lost. */
dc_status dc_cu_failed(dc_cu *cu, dc_job *j, const char *what, cu_result error);
/* Between the two the context is the thread's current one, whatever state the device is in. */
cu_result dc_cu_push(const dc_cu *cu, bool *pushed);
void dc_cu_pop(const dc_cu *cu, bool pushed);
/* The same for what may fail or unwind. A lost device fails. */
dc_status dc_cu_enter(dc_cu *cu, dc_job *j, bool *pushed);
void dc_cu_leave(dc_cu *cu, dc_job *j, bool pushed);
/* A call failed for want of memory: true, and what the pool keeps for later is the system's. From any thread. */
bool dc_cu_make_room(const dc_cu *cu, cu_result error);
/* Waits for everything that was given to the stream. */
dc_status dc_cu_settle(dc_cu *cu, dc_job *j, const char *what);

#define DC_CU_TRY(cu, j, what, call)                        \
    do {                                                    \
        const cu_result error_ = (cu)->lib.fn.call;         \
        if (error_ != CU_SUCCESS)                           \
            return dc_cu_failed((cu), (j), (what), error_); \
    } while (0)

/* A call that may find no memory on the device, again when there is room; `error` is what it answers. */
#define DC_CU_CALL(cu, error, call)         \
    do {                                    \
        (error) = (cu)->lib.fn.call;        \
        if (dc_cu_make_room((cu), (error))) \
            (error) = (cu)->lib.fn.call;    \
    } while (0)

#define DC_CU_TRY_ROOM(cu, j, what, call)                   \
    do {                                                    \
        cu_result error_;                                   \
        DC_CU_CALL((cu), error_, call);                     \
        if (error_ != CU_SUCCESS)                           \
            return dc_cu_failed((cu), (j), (what), error_); \
    } while (0)

/* cu_memory.c */
dc_status dc_cu_memory_open(dc_cu *cu, dc_job *j);
void dc_cu_memory_close(dc_cu *cu);
dc_status dc_cu_alloc(dc_device *d, dc_job *j, size_t bytes, void **out);
void dc_cu_release(dc_device *d, void *mem);
dc_status dc_cu_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
dc_status dc_cu_download(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
dc_status dc_cu_copy(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
dc_status dc_cu_reserve(dc_device *d, dc_job *j, size_t bytes, void **out);
dc_status dc_cu_commit(dc_device *d, dc_job *j, void *mem, size_t bytes);
dc_status dc_cu_finish(dc_device *d, dc_job *j);
/* Memory without the context being entered, for those who are inside. */
dc_status dc_cu_take(dc_cu *cu, dc_job *j, size_t bytes, cu_address *out);
void dc_cu_give(dc_cu *cu, cu_address at);
/* Enqueues a copy of bytes of the host, which may be overwritten once it returns. */
dc_status dc_cu_send(dc_cu *cu, dc_job *j, cu_address to, const void *from, size_t bytes);

/* cu_beside.c: a second stream for large copies. */
dc_status dc_cu_ring_open(dc_cu *cu, dc_job *j, dc_cu_ring *ring);
void dc_cu_ring_close(dc_cu *cu, dc_cu_ring *ring);
dc_status dc_cu_beside_open(dc_cu *cu, dc_job *j);
void dc_cu_beside_close(dc_cu *cu);
/* *sent: the copy was given to the second stream; else it is for the first. */
dc_status dc_cu_beside_send(dc_cu *cu, dc_job *j, cu_address to, const void *from, size_t bytes,
                            bool *sent);
/* The first stream waits for the second, before what uses the memory or takes it away. */
dc_status dc_cu_beside_join(dc_cu *cu, dc_job *j);
void dc_cu_beside_wait(dc_cu *cu); /* the same, where nothing can fail */
/* Memory from the pool; there is room for it in `place`. */
void dc_cu_place_add(dc_cu *cu, cu_address at, size_t bytes);
void dc_cu_place_drop(dc_cu *cu, cu_address at);
/* Something that uses the memory round an address is given to the first stream. */
void dc_cu_place_use(dc_cu *cu, cu_address at);
/* The same for all slots of a recording. */
void dc_cu_place_use_slots(dc_cu *cu, dc_recording *r, void *const *slot);
/* Enqueues a copy through the ring (cu_memory.c). */
dc_status dc_cu_ring_send(dc_cu *cu, dc_job *j, dc_cu_ring *ring, cu_address to, const void *from,
                          size_t bytes);

/* program.c */
dc_status dc_cu_compile(dc_device *d, dc_job *j, const dc_source *src, dc_program **out);
dc_status dc_cu_translate(dc_device *d, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes);
dc_status dc_cu_load(dc_device *d, dc_job *j, const dc_source *src, const void *object,
                     size_t bytes, dc_program **out);
void dc_cu_program_free(dc_device *d, dc_program *p);
void dc_cu_settings(dc_device *d, dc_text *out);
bool dc_cu_toolchain(dc_device *d, dc_text *out);
void dc_cu_compiler_close(dc_cu *cu);
/* Which one there is, in words. */
void dc_cu_compiler_describe(const dc_opts *opt, char *out, size_t size);

/* builtin.c: PTX of the kernels that every device has: deepc_copy, deepc_check. */
enum { DC_CU_BUILTIN = 2 };
extern const char *const dc_cu_builtin_ptx[DC_CU_BUILTIN]; /* one behind the other */
enum { DC_CU_COPY_THREADS = 256, DC_CU_CHECK_THREADS = 32 };

/* cu_nccl.c */
struct dc_host_call;
bool dc_cu_nccl_can(dc_device *d, dc_job *j);
void dc_cu_nccl_close(dc_cu *cu);
/*
 * Gives a collective of a world that is direct (dc_world_is_direct) to the stream, if all members of the group do: else it goes
 * through the host on all.
 */
dc_status dc_cu_exchange(dc_cu *cu, dc_job *j, const struct dc_host_call *c, cu_address to,
                         cu_address from, bool *direct);
/* Waits for what other ranks have to do, before the host waits for the stream: they may have failed. */
dc_status dc_cu_nccl_settle(dc_cu *cu, dc_job *j);
void dc_cu_nccl_quit(const dc_cu *cu); /* by those who cannot fail */

/* A command of a recording. */
typedef struct dc_cu_step {
    dc_command_kind kind;
    bool sets;
    cu_function fn; /* LAUNCH */
    unsigned grid, threads, shared;
    size_t bytes;          /* COPY, CHECK */
    uint32_t first, nbind; /* binds among those of all steps, dc_walk_binds */
    uint32_t ndep;
    const uint32_t *dep;
    const char *label;
    struct dc_host_step *host; /* HOST */
    cu_node node; /* while a graph is built */
} dc_cu_step;

/* An address that a graph finds in the device's memory, because it moves from run to run. */
typedef struct dc_cu_word {
    uint32_t slot;
    size_t offset;
} dc_cu_word;

/* The place of a slot's address, as of dc_recording.place_changes. */
typedef struct dc_cu_slot_place {
    void *slot;
    uint32_t place; /* one more than its number; 0: none of the pool */
} dc_cu_slot_place;

/*
 * A recording is one CUDA graph once it has run. Its kernels have the addresses that stay as parameters; those of
 * slots that move are words of `mem`, of which one copy before a launch brings the new content: first the words (the
 * first of all is the place of the verdict, where there are checks), then the argument block. Behind that is the
 * word that stops kernels after a check that found something.
 */
struct dc_recording {
    dc_cu *cu;
    dc_arena own; /* the arrays below */
    dc_walk *walk;
    uint32_t nstep, nslot, nbind;
    dc_cu_step *step;
    bool straight; /* no LOOP, no BRANCH, no BUNDLE, no HOST */
    uint32_t checks;

    dc_cu_slot_place *place; /* by slot: of the last run */
    uint64_t place_changes;

    cu_graph_exec exec; /* NULL: none yet */
    void **at;          /* by slot: what the graph was built with */
    bool *moves;        /* by slot: its binds are words */
    dc_cu_word *word;
    uint32_t nword;
    uint32_t *word_of; /* by bind: one more than the number of its word; 0: none */
    size_t block_bytes;
    cu_address mem;
    size_t sent_bytes; /* of mem, what a run brings */
    char *send, *sent; /* the next content and the last one */
    size_t send_room;  /* bytes of each of the two */
    bool any_sent;
    uint64_t builds;
};

/* cu_graph.c: one for the slots as they are, in place of the one there was. */
dc_status dc_cu_graph_build(dc_recording *r, dc_job *j, void *const *slot, const bool *moves,
                            size_t block_bytes);
void dc_cu_graph_free(dc_recording *r);
bool dc_cu_graph_fits(const dc_recording *r, void *const *slot, size_t block_bytes);

/* cu_record.c */
dc_status dc_cu_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                       dc_recording **out);
void dc_cu_recording_free(dc_device *d, dc_recording *r);

/* cu_run.c */
dc_status dc_cu_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot, dc_run_info *info);
dc_status dc_cu_answer(dc_device *d, dc_job *j, uint64_t ticket, bool wait, bool *known,
                       dc_run_info *info);

#endif
