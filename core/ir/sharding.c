#include "core/ir/sharding.h"

#include "core/base/extent.h"

#include <inttypes.h>
#include <stdio.h>

int64_t dc_mesh_size(const dc_mesh *m)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < m->naxis; a++)
        n *= m->size[a];
    return n;
}

bool dc_sharding_whole(const dc_sharding *s)
{
    static const dc_sharding whole;
    return dc_sharding_same(s, &whole);
}

int64_t dc_sharding_parts(const dc_sharding *s, const dc_mesh *m, int dim)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < m->naxis; a++)
        n *= s->dim[a] == dim + 1 ? m->size[a] : 1;
    return n;
}

bool dc_sharding_part(const dc_sharding *s, const dc_mesh *m, const dc_type *whole, dc_type *part,
                      int *axis)
{
    *part = *whole;
    for (int k = 0; k < whole->rank; k++) {
        const int64_t n = dc_sharding_parts(s, m, k);
        if (n > 1 && (dc_extent_is(whole->dim[k]) || whole->dim[k] % n != 0)) {
            *axis = k;
            return false;
        }
        if (n > 1)
            part->dim[k] /= n;
    }
    return true;
}

void dc_sharding_why_not(const dc_sharding *s, const dc_mesh *m, const dc_type *whole, int axis,
                         char *out, size_t room)
{
    const int64_t dim = whole->dim[axis], n = dc_sharding_parts(s, m, axis);
    char type[DC_TYPE_TEXT];
    dc_type_print(whole, type, sizeof type);
    if (dc_extent_is(dim))
        snprintf(out, room,
                 "%s: the size of axis %d is known at run time, and %" PRId64
                 " ranks cannot share it",
                 type, axis + 1, n);
    else
        snprintf(out, room,
                 "%s: %" PRId64 " ranks cannot share the %" PRId64 " elements of axis %d equally",
                 type, n, dim, axis + 1);
}
