/* What the files of the stand-in for libcuda.so.1 share: settings, reports, handles, memory, commands. */
#ifndef DC_TESTS_CUDA_STANDIN_H
#define DC_TESTS_CUDA_STANDIN_H

#include "cuda_driver.h"
#include "engine.h"
#include "standin_api.h"

enum { MOST_DEVICES = 8, STATIC_SHARED = 48 << 10, GRANULE = 2 << 20 };

typedef enum order { LATE, EAGER, RANDOM } order;

typedef struct settings {
    order streams;
    bool threads_random, traffic;
    uint64_t seed;
    int devices, sm[MOST_DEVICES], units;
    size_t memory;
    enum { WRONG_EXIT, WRONG_ABORT, WRONG_REPORT } wrong;
} settings;

extern settings set;

/* Bytes that a block may have, by compute capability; a multiprocessor has 1 KiB more. */
static inline int shared_of_block(int sm)
{
    const int kib = sm == 75               ? 64
                    : sm < 80              ? 96
                    : sm == 80 || sm == 87 ? 163
                    : sm >= 90 && sm < 120 ? 227
                                           : 99;
    return kib << 10;
}

/* Entries ----------------------------------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

typedef struct entry_count {
    const char *name;
    uint64_t n;
    struct entry_count *next;
    bool known;
} entry_count;

int standin_lock(void);
void standin_unlock(const int *locked);
CUresult standin_enter(entry_count *e); /* counts; an injected failure */

/* Begins an entry: takes the lock for its time, counts, fails where a setting says so. */
#define ENTER                                                                    \
    static entry_count count_ = {__func__, 0, NULL, false};                      \
    __attribute__((cleanup(standin_unlock))) const int locked_ = standin_lock(); \
    const CUresult injected_ = standin_enter(&count_);                           \
    (void)locked_;                                                               \
    if (injected_ != CUDA_SUCCESS)                                               \
    return injected_

/* The same of one that needs a context, which it names ctx. */
#define ENTER_CONTEXT                               \
    ENTER;                                          \
    context *const ctx = standin_current(__func__); \
    if (ctx == NULL)                                \
        return CUDA_ERROR_INVALID_CONTEXT;          \
    if (device[ctx->device].dead != CUDA_SUCCESS)   \
    return device[ctx->device].dead

#define TRY(call)                   \
    do {                            \
        const CUresult e_ = (call); \
        if (e_ != CUDA_SUCCESS)     \
            return e_;              \
    } while (0)

/* Misuse of an entry: printed, counted; CUDA_ERROR_INVALID_VALUE. */
CUresult misuse(const char *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));

unsigned coin(unsigned n);              /* 0 .. n-1 */
void run_call(CUhostFn fn, void *data); /* a host function; it may not call the driver */

/* Handles: never freed, so that use after their end is seen ---------------------------------- */

typedef enum handle_kind {
    CONTEXT,
    MODULE,
    FUNCTION,
    STREAM,
    EVENT,
    GRAPH,
    NODE,
    EXEC,
    POOL
} handle_kind;

typedef struct handle {
    handle_kind kind;
    bool alive;
    int device;
    uint64_t serial;
    const void *where; /* who made it */
    struct handle *next, *chain;
} handle;

extern handle *handles; /* newest first */

void *new_handle(handle_kind k, size_t size, int on, const void *where);
bool is_handle(const void *p);
/* Success if p is a live handle of this kind, else misuse and CUDA_ERROR_INVALID_HANDLE. */
CUresult want(const char *entry, const void *p, handle_kind k);
#define WANT(p, k) TRY(want(__func__, p, k))

/* Contexts ---------------------------------------------------------------------------------- */

typedef struct context {
    handle h;
    int device;
} context;

typedef struct device_state {
    context *primary;
    unsigned retained, flags;
    CUresult dead;     /* an error that stays until the context ends */
    size_t used, kept; /* bytes that are given out; that pools keep */
} device_state;

extern device_state device[MOST_DEVICES];

context *standin_current(const char *entry); /* NULL: misuse is reported */

/* Memory ------------------------------------------------------------------------------------ */

typedef enum memory_kind { OF_DEVICE, PINNED, MAPPED } memory_kind;

typedef struct memory {
    char *at, *pages;
    size_t bytes, all; /* all: of the pages */
    memory_kind kind;
    bool alive, freed_later, open, access;
    int device;
    uint64_t serial;
    CUmemGenericAllocationHandle mapped;
    struct pool *pool; /* NULL: of none */
    engine_area *area; /* stays where it is */
    const void *where;
} memory;

void memory_init(void);
bool in_region(const void *p);
memory *memory_find(const void *p);                            /* dead ones too; NULL */
const char *memory_wrong(const void *p, size_t bytes, int on); /* NULL: a device may touch it */
void memory_open(memory *m);
void memory_open_range(const void *p, size_t bytes);
void memory_close_all(void);
CUresult memory_new(size_t bytes, memory_kind kind, int on, const void *where, void **out);
/* The allocation that begins at p, for its end. */
CUresult memory_freeable(const char *entry, const void *p, memory_kind kind, memory **out);
void memory_end(const char *entry, memory *m);
void pool_keep(struct pool *p, size_t bytes); /* memory of it has ended; NULL is fine */
void pools_settle(int on);                    /* something has been waited for */
unsigned memory_leaks(int on);
extern bool device_works; /* a kernel or copy runs: memory may be opened */
extern int device_at_work;

/* Modules ----------------------------------------------------------------------------------- */

typedef struct module {
    handle h;
    struct function *first;
    void *lib;
    int fd;
    char *shared;
    size_t shared_bytes;
    const kernel_arch *arch;
    void (*bind)(const kernel_runtime *);
} module;

typedef struct function {
    handle h;
    module *m;
    char name[96];
    void (*entry)(void **);
    const kernel_info *info;
    unsigned most_dynamic;
    struct function *next; /* of its module */
} function;

int module_line(const module *m, const void *pc); /* of the text; 0: unknown */

/* Commands ---------------------------------------------------------------------------------- */

typedef struct event event;
typedef struct graph_run graph_run;
typedef enum command_op {
    LAUNCH,
    COPY,
    FILL,
    RECORD,
    WAIT,
    RUN_GRAPH,
    RELEASE,
    CALL,
    EXCHANGE,
    EMPTY
} command_op;

typedef struct command {
    struct command *next;
    command_op op;
    function *f;
    unsigned grid[3], block[3], dynamic;
    uint64_t *value; /* parameters, each at a multiple of 8 */
    char *to;
    const char *from;
    size_t bytes;
    char *staged; /* COPY from memory that is not pinned: its contents */
    uint64_t sum; /* COPY from pinned memory: of what was there when it was asked for */
    unsigned pattern, width;
    event *e;
    uint64_t generation;
    graph_run *g;
    CUhostFn fn;
    bool (*exchange)(int on, void *data); /* false: not yet */
    void *data;
} command;

typedef struct stream {
    handle h;
    command *first, **last;
    bool blocking;
    struct stream *next; /* of those that are alive */
} stream;

struct event {
    handle h;
    uint64_t asked, done; /* generations */
    double at;
    stream *s;
    bool timing;
};

extern stream *streams;
stream *new_stream(int on, bool blocking, const void *where);
void end_stream(stream *s);
stream *stream_of(CUstream x, int on); /* the default stream for NULL */
CUresult push(stream *s, const command *what);
bool run_first(stream *s); /* one command; false: there is none */
CUresult drain(stream *s);
CUresult drain_device(int on);
bool module_is_queued(const module *m);
CUresult run_command(int on, command *c);
CUresult make_launch(const char *entry, CUfunction f, const unsigned *grid, const unsigned *block,
                     unsigned dynamic, void **argument, command *c);
void free_command(command *c);
void note_source(
    command *c); /* a copy is asked for: sum of its pinned source, poison in its target */
bool is_pinned(const void *p);

/* standin_graph.c */
bool graph_run_step(int on, graph_run *g); /* one node; false: all are done */
bool graph_run_uses(const graph_run *g, const module *m);
void graph_run_free(graph_run *g);

#endif
