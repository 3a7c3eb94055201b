#include "jit/lower/base_offset.h"

#include "jit/nest/nest_disjoint.h"

typedef struct extent {
    int64_t lo, hi; /* elements that are read, both included */
} extent;

/* By buffer. */
static extent *find_extents(dc_job *j, dc_kernel *k)
{
    extent *x = DC_NEW_ARRAY(&j->scratch, extent, k->buf.n);
    dc_nest_edit v = {.k = k, .tmp = &j->scratch};
    const dc_accesses all = dc_nest_accesses(&v, k->root, NULL);
    for (uint32_t b = 0; b < k->buf.n; b++)
        x[b] = (extent){INT64_MAX, -1};
    for (uint32_t i = 0; i < all.n; i++) {
        const dc_access *a = &all.at[i];
        int64_t lo, hi;
        dc_nest_range(&v, a->at, a->pred, dc_access_tests(a), &lo, &hi);
        x[a->buf].lo = dc_min_i64(x[a->buf].lo, lo);
        x[a->buf].hi = dc_max_i64(x[a->buf].hi, hi);
    }
    return x;
}

static void begin_at(dc_kernel *k, uint32_t buf, const extent *x)
{
    dc_buffer *b = &k->buf.at[buf];
    const size_t size = dc_dtype_size((dc_dtype)b->dtype);
    b->count = dc_min_i64(b->count, x->hi + 1) - x->lo;
    if ((size_t)x->lo * size % DC_BUFFER_ALIGN != 0)
        b->align = (uint8_t)size;
    dc_subst s = dc_subst_buf(k, buf, dc_ix_const(k, -x->lo));
    dc_subst_stmt(&s, k->root);
}

const size_t *dc_base_offset_inputs(dc_job *j, dc_kernel *k)
{
    size_t *bytes = DC_NEW_ARRAY(&j->scratch, size_t, k->nparam);
    const extent *x = find_extents(j, k);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer p = k->buf.at[b];
        if (p.scope != DC_SCOPE_PARAM || p.mode == DC_MODE_OUT || x[b].lo <= 0 ||
            x[b].lo >= p.count || x[b].hi < x[b].lo)
            continue;
        begin_at(k, b, &x[b]);
        bytes[p.param] = (size_t)x[b].lo * dc_dtype_size((dc_dtype)p.dtype);
    }
    return bytes;
}
