/*
 * Schedule moves that change where elements of a local lie (jit/moves/move_impl.h): pad_rows, swizzle, swizzle_atoms.
 */
#include "jit/moves/move_impl.h"

enum { BANK_BYTES = 4 }; /* of shared memory */

bool dc_move_pad_rows(dc_nest_edit *v, const dc_move *m)
{
    dc_kernel *k = v->k;
    const int64_t n = m->count;
    if (!dc_move_has_buffer(v, m->buf))
        return false;
    dc_buffer *b = &k->buf.at[m->buf];
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)b->dtype);
    const int64_t more = dc_max_i64(BANK_BYTES / size, 1), rows = b->count / n;
    const dc_accesses all = dc_nest_accesses(v, k->root, NULL);
    dc_ix *to = DC_NEW_ARRAY(v->tmp, dc_ix, all.n);
    if (b->scope == DC_SCOPE_PARAM)
        return dc_nest_refuse(v, "%s is a parameter, its rows stay where they are", b->name);
    if (b->scope == DC_SCOPE_THREAD)
        return dc_nest_refuse(v, "%s has a row for each thread already", b->name);
    if (b->count % n != 0)
        return dc_nest_refuse(v, "%s has no rows of %lld: it has %lld elements", b->name,
                              (long long)n, (long long)b->count);
    if (!dc_nest_fits(v, n + more, n))
        return false;
    for (uint32_t i = 0; i < all.n; i++) {
        const dc_access *x = &all.at[i];
        if (x->buf != m->buf)
            continue;
        if (x->tile)
            return dc_nest_refuse(v, "a matrix instruction works on %s", b->name);
        to[i] = dc_ix_add(k, x->at, dc_ix_mul(k, dc_ix_div(k, x->at, n), more));
    }
    dc_nest_place(v, &all, m->buf, to);
    k->buf.at[m->buf].count = rows * (n + more);
    return true;
}

bool dc_move_swizzle(dc_nest_edit *v, const dc_move *m)
{
    if (!dc_move_has_buffer(v, m->buf))
        return false;
    dc_buffer *b = &v->k->buf.at[m->buf];
    if (b->scope == DC_SCOPE_PARAM)
        return dc_nest_refuse(v, "%s is a parameter, its rows stay where they are", b->name);
    if (b->scope == DC_SCOPE_THREAD)
        return dc_nest_refuse(v, "%s has a row for each thread already", b->name);
    if (!dc_nest_may_swizzle((dc_dtype)b->dtype, m->count))
        return dc_nest_refuse(v, "rows of %s are swizzled that are a power of two and 64 bytes",
                              b->name);
    if (b->count % m->count != 0)
        return dc_nest_refuse(v, "%s has no rows of %lld: it has %lld elements", b->name,
                              (long long)m->count, (long long)b->count);
    b->swizzle = (uint32_t)m->count;
    b->atoms = false;
    return true;
}

bool dc_move_swizzle_atoms(dc_nest_edit *v, const dc_move *m)
{
    if (!dc_move_swizzle(v, m))
        return false;
    dc_buffer *b = &v->k->buf.at[m->buf];
    if (!dc_nest_has_atoms((dc_dtype)b->dtype, m->count, b->count))
        return dc_nest_refuse(v, "%s has no 8 rows of 128 bytes", b->name);
    b->atoms = true;
    return true;
}
