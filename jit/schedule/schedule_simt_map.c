/*
 * Maps by groups of threads (jit/schedule/schedule_simt_impl.h): each thread computes a vector of neighbouring elements of
 * the result, neighbouring threads what follows. Elements that no vector holds have a group of their own, so
 * accesses need no masks. Transposed operands have rules of their own (schedule_simt_turn.c).
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

bool dc_simt_goes_along(dc_sketch *s, const dc_stmt *first, uint32_t axis)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->body != NULL && !dc_simt_goes_along(s, t->body, axis))
            return false;
        for (uint32_t i = 0; i < t->nput; i++) {
            bool affine = true;
            const dc_strides x = dc_strides_of(s->k, t->put[i].value, axis);
            if (x.strided || x.irregular || dc_ix_stride(s->k, t->put[i].at, axis, &affine) != 1 ||
                !affine)
                return false;
        }
    }
    return true;
}

/* Does every n-th position along the axis have an address that n elements from there on can be accessed at, at once? */
static bool is_aligned(const dc_kernel *k, uint32_t buf, dc_ix at, uint32_t axis, int64_t n)
{
    const dc_ix_node *x = &k->ix.at[at];
    const dc_buffer *b = &k->buf.at[buf];
    if (x->c % n != 0 ||
        (b->align != 0 && b->align % (n * (int64_t)dc_dtype_size((dc_dtype)b->dtype)) != 0))
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *t = &k->atom.at[x->term[i].atom];
        if ((t->kind != DC_ATOM_AXIS || t->axis != axis) && x->term[i].coef % n != 0)
            return false;
    }
    return true;
}

/* Are the accesses that go along the axis? Else lanes would stand n elements apart in each of n accesses. */
static bool all_aligned(dc_sketch *s, const dc_stmt *first, uint32_t axis, int64_t n)
{
    dc_kernel *k = s->k;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *x = &k->vx.at[v];
        bool affine = true;
        if (x->kind == DC_VX_LOAD && dc_ix_stride(k, x->at, axis, &affine) == 1 &&
            !is_aligned(k, x->buf, x->at, axis, n))
            return false;
    }
    for (const dc_stmt *t = first; t != NULL; t = t->next) {
        if (t->body != NULL && !all_aligned(s, t->body, axis, n))
            return false;
        for (uint32_t i = 0; i < t->nput; i++)
            if (!is_aligned(k, t->put[i].buf, t->put[i].at, axis, n))
                return false;
    }
    return true;
}

/* Elements of a thread along an axis: fewer where there are few threads. */
static int64_t vector_of(dc_sketch *s, uint32_t axis, int64_t extent, int64_t all)
{
    int64_t v = dc_simt_goes_along(s, s->k->root, axis) ? dc_simt_vector(s, extent) : 1;
    while (v > 1 && !all_aligned(s, s->k->root, axis, v))
        v /= 2;
    const int64_t most = v;
    while (v > 1 && all / v < dc_simt_many(s) * DC_TUNE_ROW_LANES)
        v /= 2;
    return dc_simt_ask_access(s, v, most);
}

static int64_t threads_of(const dc_sketch *s, int64_t all)
{
    int64_t threads = dc_simt_threads(s);
    if (2 * all <= threads)
        return all;
    while (threads > DC_TUNE_ROW_LANES && all / threads < dc_simt_many(s))
        threads /= 2;
    return threads;
}

/*
 * The outermost loop, over what threads access at once, becomes groups; a search may ask for several accesses of a thread,
 * each of them next to those of its neighbours.
 */
static bool share_out(dc_sketch *s, uint32_t axis, int64_t threads)
{
    static const int32_t others[] = {2, 4, 8, 0};
    const int64_t extent = dc_sketch_extent(s, axis);
    const int64_t n = dc_sketch_knob(s, DC_KNOB_FLIGHT, 1, others, extent / threads);
    dc_split all, each;
    if (n == 1 || n > extent / threads)
        return dc_simt_groups(s, axis, threads);
    return dc_do_split(s, axis, n * threads, &all) && dc_do_split(s, all.i, threads, &each) &&
           dc_do_reorder(s, each.i, each.o) && dc_do_unroll(s, each.o) && dc_do_block(s, each.i) &&
           dc_sketch_grid_all(s);
}

/* One axis in vectors; what is left behind the last of them is done by threads of its own. */
static bool along_axis(dc_sketch *s, uint32_t axis)
{
    const int64_t extent = dc_sketch_extent(s, axis);
    const int64_t v = vector_of(s, axis, extent - extent % DC_TUNE_ACCESS_ELEMENTS, extent);
    const int64_t rest = extent % v;
    dc_split parts = {.o = axis}, vectors;
    if (v == 1)
        return share_out(s, axis, threads_of(s, extent));
    if (rest > 0 && (!dc_do_cut(s, axis, extent - rest, &parts) || !dc_simt_own_group(s, parts.i)))
        return false;
    return dc_do_split(s, parts.o, v, &vectors) && dc_do_vectorize(s, vectors.i) &&
           share_out(s, vectors.o, threads_of(s, extent / v));
}

bool dc_simt_map(dc_sketch *s, dc_shape *p, bool *is)
{
    uint32_t all;
    *is = p->add == NULL && !p->by_rows;
    if (!*is || p->nout == 0)
        return true;
    dc_sketch_merge(s, p);
    bool turned;
    const bool done = dc_simt_turn(s, p, &turned);
    if (turned)
        return done;
    const uint32_t last = p->out[p->nout - 1];
    const int64_t v =
        vector_of(s, last, dc_sketch_extent(s, last), dc_simt_product(s, p->out, p->nout));
    dc_split vectors;
    if (p->nout == 1 || v == 1)
        return dc_simt_fuse(s, p->out, p->nout, &all) && along_axis(s, all);
    if (!dc_do_split(s, last, v, &vectors))
        return false;
    p->out[p->nout - 1] = vectors.o;
    return dc_simt_fuse(s, p->out, p->nout, &all) && dc_do_vectorize(s, vectors.i) &&
           share_out(s, all, threads_of(s, dc_sketch_extent(s, all)));
}
