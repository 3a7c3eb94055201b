#include "jit/nest/matrix_tile.h"

#include <string.h>

static const dc_tile_row rows[] = {
#define TILE(id, name, m, n, k, c, ab, dialect) \
    [DC_TILE_##id] = {name, m, n, k, DC_##c, DC_##ab, dialect},
#include "jit/nest/matrix_tiles.def"
};

const dc_tile_row *dc_tile_row_of(uint32_t which)
{
    DC_ASSERT(which < DC_TILE__COUNT, "matrix instruction %u", which);
    return &rows[which];
}

int dc_tile_find(const char *name)
{
    for (int i = 0; i < DC_TILE__COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    return -1;
}
