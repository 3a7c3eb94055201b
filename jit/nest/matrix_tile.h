/* The table of matrix instructions, jit/nest/matrix_tiles.def. */
#ifndef DC_JIT_NEST_MATRIX_TILE_H
#define DC_JIT_NEST_MATRIX_TILE_H

#include "core/ir/op.h"

typedef enum dc_tile_id {
#define TILE(id, ...) DC_TILE_##id,
#include "jit/nest/matrix_tiles.def"
    DC_TILE__COUNT
} dc_tile_id;

typedef struct dc_tile_row {
    const char *name;
    int m, n, k;
    uint8_t c, ab; /* dc_dtype */
    const char *dialect;
} dc_tile_row;

const dc_tile_row *dc_tile_row_of(uint32_t which);
int dc_tile_find(const char *name); /* -1 */

/* Do four warps have one instruction for neighbours of it? */
static inline bool dc_tile_by_warpgroups(uint32_t which)
{
    return which == DC_TILE_WGMMA_F16 || which == DC_TILE_WGMMA_BF16;
}

/* Are operands of f32 rounded to TF32? */
static inline bool dc_tile_rounds(const dc_tile_row *row)
{
    return row->ab == DC_F32 && row->dialect[0] != '\0';
}

#endif
