#include "jit/base/gpu_tiles.h"

/*
 * A warp of 64 x 64 sums loads least from shared memory for each matrix instruction; two groups of four warps have the registers
 * for 128 x 256 sums. No rule takes 64 x 32 by threads, whose estimate is that of 32 x 64.
 */
/* clang-format off */
const dc_gpu_tile dc_gpu_tiles[DC_GPU_TILES] = {
    /* m    n     threads            matrices           warpgroups          estimated */
    {128, 256, {0, 0,   0,   0}, {4, 8, 100, 100}, {1, 32, 100, 100}, false},
    {256, 128, {0, 0,   0,   0}, {4, 8, 100, 100}, {1, 16,  95,  95}, false},
    {128, 128, {2, 2, 100, 100}, {4, 8,  95,  75}, {1, 16,  90,  80}, true},
    {128, 128, {0, 0,   0,   0}, {4, 4,  85,  85}, {0,  0,   0,   0}, false},
    { 64, 256, {0, 0,   0,   0}, {0, 0,   0,   0}, {1, 32,  80,  65}, false},
    {128,  64, {2, 2,  90,  90}, {4, 4,  72,  72}, {0,  0,   0,   0}, true},
    { 64, 128, {2, 2,  90,  90}, {4, 4,  72,  72}, {1, 16,  65,  50}, true},
    { 64,  64, {1, 2,  70,  70}, {2, 4,  55,  55}, {1,  8,  45,  30}, true},
    { 32, 128, {1, 2,  65,  65}, {2, 4,  51,  51}, {0,  0,   0,   0}, false},
    {128,  32, {2, 1,  65,  65}, {4, 2,  51,  51}, {0,  0,   0,   0}, false},
    { 32,  64, {1, 1,  50,  50}, {2, 2,  38,  38}, {0,  0,   0,   0}, true},
    { 64,  32, {0, 0,  50,  50}, {2, 2,  38,  38}, {0,  0,   0,   0}, true},
    { 32,  32, {1, 1,  40,  40}, {1, 2,  26,  26}, {0,  0,   0,   0}, true},
    { 16,  64, {0, 0,   0,   0}, {1, 2,  26,  26}, {0,  0,   0,   0}, false},
    { 16,  32, {1, 1,  25,  25}, {1, 1,  17,  17}, {0,  0,   0,   0}, false},
};
/* clang-format on */
