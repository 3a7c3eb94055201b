/* What the files of the engine share: its state, fibers, and the failure of a launch. */
#ifndef DC_TESTS_CUDA_ENGINE_IMPL_H
#define DC_TESTS_CUDA_ENGINE_IMPL_H

#include "engine.h"

enum { MOST_COPIES = 128, WARPS = ENGINE_MOST_THREADS / 32 };

typedef enum fiber_state { NEW, READY, RUNS, AT_BARRIER, AT_WARP, ENDED } fiber_state;

/* An asynchronous copy under way. */
typedef struct async_copy {
    char *to;
    const char *from;
    unsigned bytes, take; /* what is not taken becomes 0 */
    int group;
} async_copy;

typedef struct fiber {
    kernel_thread view; /* first: runtime.now points to it */
    void *sp;           /* where it waits */
    int stack;
    fiber_state state;
    int line;            /* where it waits */
    unsigned mask, turn; /* of warps: who is waited for; which of two slots is next */
    uint64_t slot[2];
    int group, ncopy; /* of asynchronous copies: the group that is gathered; under way */
    async_copy *copies;
    struct engine_products *products; /* of wgmma */
    uint32_t fences,
        fences_at_barrier; /* to the asynchronous proxy: all, those before the last barrier */
} fiber;

/* Where the lanes of a warp put what all of them read, in turns. */
typedef struct warp_table {
    uint32_t a[2][32][4], b[2][32][4];
    unsigned char row[2][32][16];
} warp_table;

typedef struct engine_state {
    kernel_runtime rt;
    kernel_dim3 block, threads, grid;
    fiber f[ENGINE_MOST_THREADS];
    warp_table warp[WARPS];
    unsigned n, live, waiting;             /* fibers of the block; not ended; at the barrier */
    uint16_t run[2 * ENGINE_MOST_THREADS]; /* those that may run, from `front` on */
    unsigned front, nrun;
    void *host; /* where the launch waits */
    char *stacks;
    int spare[ENGINE_MOST_THREADS], nspare;
    const engine_launch *l;
    uint64_t random; /* state of its generator; 0: in order */
    /* Time: `epoch` counts blocks and barriers of all launches, `warp_epoch` meetings of warps. */
    uint32_t epoch, first_of_launch, first_of_block, warp_epoch[WARPS], meetings;
    uint32_t *block_epoch; /* by blocks run so far: epoch that each began with */
    unsigned *block_number, blocks_run;
    char *dynamic;
    bool failed, early; /* early: what may be read later is read at once */
    char why[700];
    const void *where, *fault_pc;
} engine_state;

extern engine_state eng;

static inline fiber *engine_me(void)
{
    return (fiber *)(void *)eng.rt.now;
}

unsigned engine_coin(unsigned n); /* 0 .. n-1 */
void engine_fail(const void *pc, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* engine_fiber.c */
void engine_run_block(void);
void engine_barrier(int line);
void engine_meet(unsigned mask, int line);

/* engine_warp.c, engine_copy.c: functions of kernel_runtime */
unsigned long long engine_exchange(unsigned mask, unsigned long long v, int lane, int line);
unsigned engine_ballot(unsigned mask, int yes, int line);
void engine_ldmatrix(unsigned *d, const void *row, int n, int transposed, int line);
void engine_mma(void *d, const unsigned *a, const unsigned *b, const void *c, int kind, int line);
void engine_copy_async(void *to, const void *from, unsigned bytes, unsigned take, int line);
void engine_copy_commit(void);
void engine_copy_wait(int left);

/* engine_wgmma.c: functions of kernel_runtime; what the engine tells it */
void engine_wgmma(float *c, const wgmma_operands *of, int line);
void engine_wgmma_fence(int line);
void engine_wgmma_commit(int line);
void engine_wgmma_wait(int left, int line);
unsigned engine_shared_address(const void *p);
void engine_wgmma_open_block(void);
void engine_wgmma_open_thread(fiber *f);
void engine_wgmma_end_thread(void);
void engine_wgmma_end_block(void);

float engine_of_half(uint16_t x, unsigned kind); /* engine_warp.c */

/* engine_check.c */
void engine_access(const void *p, unsigned long bytes, int store, const void *pc);
void engine_check(const void *p, size_t bytes, bool store, const void *pc); /* uncounted */
void engine_atomic(void *p, unsigned bytes, const void *pc);
void engine_flight(const void *p, unsigned bytes, bool begins);
void engine_check_open(void); /* before each checked launch */
bool engine_is_shared(const void *p);
void engine_async_proxy(void);
/* Does the asynchronous proxy see what was last written to shared memory there? */
bool engine_is_visible(const void *p, size_t bytes, unsigned *writer);

/* engine_traffic.c */
void engine_traffic_open(void);
void engine_traffic_note(const void *p, unsigned bytes, bool store, bool shared, const void *pc);
void engine_traffic_end_block(void);

#endif
