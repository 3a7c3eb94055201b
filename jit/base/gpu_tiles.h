/*
 * Tiles of the result of a contraction that a group of threads computes: the rules that choose one
 * (jit/schedule/schedule_simt_product.c, schedule_simt_mma.c, schedule_simt_wgmma.c) and the rewrite that estimates what they
 * will choose (jit/rewrite/split_contraction.c) go by one table.
 */
#ifndef DC_JIT_BASE_GPU_TILES_H
#define DC_JIT_BASE_GPU_TILES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How instructions of a kind divide a tile: runs of a thread, or matrices of a warp, down and across, none where no rule
 * takes such a tile; how much of the arithmetic of a multiprocessor it keeps busy, in percent, beside other groups and alone.
 */
typedef struct dc_gpu_tiling {
    int64_t down, across, busy, alone;
} dc_gpu_tiling;

typedef struct dc_gpu_tile {
    int64_t m, n;
    dc_gpu_tiling threads, matrices,
        warpgroups; /* multiply-add; instructions of a warp, of four warps */
    bool estimated; /* the rewrite counts cycles with it */
} dc_gpu_tile;

enum { DC_GPU_TILES = 15 };

/* Of those that take equally long a rule takes the first one. */
extern const dc_gpu_tile dc_gpu_tiles[DC_GPU_TILES];

#endif
