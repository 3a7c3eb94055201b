/* A launch: its blocks one after the other, each with shared memory that holds no numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine_impl.h"

static void trap(int line)
{
    engine_fail(__builtin_return_address(0), "line %d: __trap", line);
}

static const kernel_runtime functions = {
    .barrier = engine_barrier,
    .warp_barrier = engine_meet,
    .exchange = engine_exchange,
    .ballot = engine_ballot,
    .atomic = engine_atomic,
    .copy_async = engine_copy_async,
    .copy_commit = engine_copy_commit,
    .copy_wait = engine_copy_wait,
    .ldmatrix = engine_ldmatrix,
    .mma = engine_mma,
    .wgmma = engine_wgmma,
    .wgmma_fence = engine_wgmma_fence,
    .wgmma_commit = engine_wgmma_commit,
    .wgmma_wait = engine_wgmma_wait,
    .async_proxy = engine_async_proxy,
    .shared_address = engine_shared_address,
    .access = engine_access,
    .trap = trap,
};

static uint64_t blocks_of(const engine_launch *l)
{
    return (uint64_t)l->grid.x * l->grid.y * l->grid.z;
}

static void prepare(const engine_launch *l)
{
    if (eng.dynamic == NULL)
        eng.dynamic = mmap(NULL, (ENGINE_MOST_DYNAMIC + 4095) / 4096 * 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    eng.rt = functions;
    eng.rt.block = &eng.block;
    eng.rt.threads = &eng.threads;
    eng.rt.grid = &eng.grid;
    eng.rt.dynamic = eng.dynamic;
    eng.l = l;
    eng.threads = l->threads;
    eng.grid = l->grid;
    eng.n = l->threads.x * l->threads.y * l->threads.z;
    eng.random = l->seed != 0 ? l->seed * UINT64_C(0x9e3779b97f4a7c15) | 1 : 0;
    eng.failed = false;
    eng.where = NULL;
    eng.first_of_launch = eng.epoch + 1;
    eng.blocks_run = 0;
    eng.block_epoch = malloc((size_t)blocks_of(l) * sizeof *eng.block_epoch);
    eng.block_number = malloc((size_t)blocks_of(l) * sizeof *eng.block_number);
    if (l->checked)
        engine_check_open();
    if (engine_counts_traffic)
        engine_traffic_open();
    l->bind(&eng.rt);
}

static void run_block(uint64_t number)
{
    const kernel_dim3 g = eng.grid;
    eng.block = (kernel_dim3){(unsigned)(number % g.x), (unsigned)(number / g.x % g.y),
                              (unsigned)(number / g.x / g.y)};
    if (++eng.epoch >= UINT32_MAX - (1 << 20))
        abort(); /* epochs do not come back */
    eng.first_of_block = eng.epoch;
    eng.block_epoch[eng.blocks_run] = eng.epoch;
    eng.block_number[eng.blocks_run++] = (unsigned)number;
    memset(eng.l->shared, 0xff, eng.l->shared_bytes);
    memset(eng.dynamic, 0xff, eng.l->dynamic_bytes);
    engine_wgmma_open_block();
    engine_run_block();
    if (engine_counts_traffic)
        engine_traffic_end_block();
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

const char *engine_run(const engine_launch *l, const void **pc)
{
    const uint64_t blocks = blocks_of(l);
    uint64_t at = 0, step = 1; /* each block once, in an order without meaning */
    prepare(l);
    if (eng.random != 0 && blocks > 1) {
        at = engine_coin((unsigned)blocks);
        do
            step = 1 + engine_coin((unsigned)blocks);
        while (common_divisor(step, blocks) != 1);
    }
    for (uint64_t i = 0; i < blocks && !eng.failed; i++, at = (at + step) % blocks)
        run_block(at);
    free(eng.block_epoch);
    free(eng.block_number);
    eng.rt.now = NULL;
    *pc = eng.where;
    return eng.failed ? eng.why : NULL;
}
