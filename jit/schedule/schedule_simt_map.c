/*
 * Maps by groups of threads (jit/schedule/schedule_simt_impl.h): each thread computes a vector of neighbouring elements of
 * the result, neighbouring threads what follows. Elements that no vector holds have a group of their own, so
 * accesses need no masks.
 *
 * What is read across the result's order, as a transposed operand is, goes through a tile in shared memory: both sides
 * go along memory, and rows of the tile are a bank further apart, so that columns meet in no bank.
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

/* transposed operands ------------------------------------------------------------------------ */

/* Is it a load along axis number `at` in memory, across the last one? */
static bool is_transposed(dc_kernel *k, const dc_shape *p, const dc_vx_node *n, int at)
{
    bool affine = true;
    if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM ||
        k->buf.at[n->buf].mode != DC_MODE_IN)
        return false;
    const int64_t along = dc_ix_stride(k, n->at, p->out[at], &affine);
    const int64_t across = dc_ix_stride(k, n->at, p->out[p->nout - 1], &affine);
    return affine && along == 1 && across > 1;
}

/* The number of the axis along which transposed operands go; -1: there are none, or it is too short for a tile. */
static int transposed_axis(const dc_sketch *s, const dc_shape *p)
{
    for (dc_vx v = 1; v < s->k->vx.n; v++)
        for (int at = p->nout - 2; at >= 0; at--)
            if (is_transposed(s->k, p, &s->k->vx.at[v], at) &&
                dc_sketch_extent(s, p->out[at]) >= DC_TUNE_TILE_LEAST &&
                dc_sketch_extent(s, p->out[p->nout - 1]) >= DC_TUNE_TILE_LEAST)
                return at;
    return -1;
}

/* Rows of a tile by threads: so many of them one below the other to a thread, the columns by neighbours. */
static bool share_tile(dc_sketch *s, uint32_t row, uint32_t column)
{
    dc_split rows;
    return dc_do_split(s, row, DC_TUNE_TILE_ROWS, &rows) && dc_do_reorder(s, column, rows.i) &&
           dc_do_block(s, rows.o) && dc_do_lane(s, column) && dc_do_unroll(s, rows.i);
}

/* A transposed operand comes into a tile of rows along its memory. */
static bool stage(dc_sketch *s, uint32_t buf, uint32_t group, uint32_t m, uint32_t n)
{
    const uint32_t tile = s->k->buf.n, dims[2] = {n, m};
    uint32_t made;
    if (!dc_do_pack(s, buf, group, dims, 2, &made))
        return false;
    return dc_do_pad_rows(s, tile, DC_TUNE_TILE) &&
           share_tile(s, dc_sketch_copy_of(s, made, n, 0), dc_sketch_copy_of(s, made, m, 0));
}

/* Those that go through tiles, as many as fit in shared memory. */
static int transposed_operands(const dc_sketch *s, const dc_shape *p, int at, uint32_t *operand)
{
    const size_t tile = DC_TUNE_TILE * (DC_TUNE_TILE + 4);
    size_t bytes = 0;
    int n = 0;
    for (dc_vx v = 1; v < s->k->vx.n && n < DC_TUNE_TILE_OPERANDS; v++) {
        const dc_vx_node *load = &s->k->vx.at[v];
        bool known = !is_transposed(s->k, p, load, at);
        for (int i = 0; i < n; i++)
            known = known || operand[i] == load->buf;
        if (known ||
            bytes + tile * dc_dtype_size((dc_dtype)load->dtype) > (size_t)dc_simt_shared(s))
            continue;
        bytes += tile * dc_dtype_size((dc_dtype)load->dtype);
        operand[n++] = load->buf;
    }
    return n;
}

/* Square tiles of the axis and the last one. */
static bool schedule_tiles(dc_sketch *s, const dc_shape *p, int at)
{
    uint32_t operand[DC_TUNE_TILE_OPERANDS], out[DC_SHAPE_AXES + 1], group;
    const uint32_t last = p->out[p->nout - 1];
    const int operands = transposed_operands(s, p, at, operand);
    int n = 0;
    dc_split m, c;
    if (!dc_do_split(s, p->out[at], DC_TUNE_TILE, &m) || !dc_do_split(s, last, DC_TUNE_TILE, &c))
        return false;
    for (int i = 0; i < p->nout - 1; i++)
        out[n++] = i == at ? m.o : p->out[i];
    out[n++] = c.o;
    for (int i = at + 1; i < p->nout; i++)
        if (!dc_do_reorder(s, out[i], m.i))
            return false;
    if (!dc_simt_fuse(s, out, n, &group) || !dc_do_grid(s, group))
        return false;
    bool staged = true;
    for (int i = 0; i < operands && staged; i++)
        staged = stage(s, operand[i], group, m.i, c.i);
    return share_tile(s, m.i, c.i) && staged;
}

bool dc_simt_map(dc_sketch *s, const dc_shape *shape)
{
    dc_shape p = *shape;
    uint32_t all;
    if (p.nout == 0)
        return true;
    dc_sketch_merge(s, &p);
    const int transposed = transposed_axis(s, &p);
    if (transposed >= 0)
        return schedule_tiles(s, &p, transposed);
    const uint32_t last = p.out[p.nout - 1];
    const int64_t v =
        vector_of(s, last, dc_sketch_extent(s, last), dc_simt_product(s, p.out, p.nout));
    dc_split vectors;
    if (p.nout == 1 || v == 1)
        return dc_simt_fuse(s, p.out, p.nout, &all) && along_axis(s, all);
    if (!dc_do_split(s, last, v, &vectors))
        return false;
    p.out[p.nout - 1] = vectors.o;
    return dc_simt_fuse(s, p.out, p.nout, &all) && dc_do_vectorize(s, vectors.i) &&
           share_out(s, all, threads_of(s, dc_sketch_extent(s, all)));
}
