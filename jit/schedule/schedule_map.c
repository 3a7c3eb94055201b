/*
 * The rule for kernels without a reduction (jit/schedule/schedule_impl.h): the last axis in vectors, several
 * at a time where there are many, so that one does not wait for the other.
 *
 * An operand that is contiguous along another axis is transposed: blocks of as many rows as there are lanes
 * are read by rows and transposed in registers, which flattening does for an unrolled axis of rows.
 * Where blocks do not fit, the same tiles at least use each line of the cache at once.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_impl.h"

#include <string.h>

enum {
    LINE = 16,   /* elements of a line of a cache */
    WIDEST = 64, /* lanes of an instruction at most */
    PAGE = 4096  /* bytes */
};

static bool is_costly(const dc_kernel *k)
{
    for (uint32_t v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_OP &&
            (dc_op_row_of(k->vx.at[v].op)->flags & DC_OPF_COSTLY) != 0)
            return true;
    return false;
}

/* The last axis is too short for vectors: lanes along the one before, apart in memory. */
static bool schedule_short(dc_sketch *s, const dc_shape *p)
{
    if (p->nout < 2 || dc_sketch_extent(s, p->out[p->nout - 2]) < s->lanes || !is_costly(s->k))
        return dc_sketch_grid(s);
    dc_split m;
    return dc_do_split(s, p->out[p->nout - 2], s->lanes, &m) &&
           dc_do_reorder(s, p->out[p->nout - 1], m.i) && dc_do_vectorize(s, m.i) &&
           dc_sketch_grid(s);
}

/* transposed operands ----------------------------------------------------------------------------- */

/* The number of an axis along which a load is contiguous while it is strided along the last one; -1: there is
 * none. */
static int transposed_axis(dc_kernel *k, const dc_shape *p)
{
    const uint32_t last = p->out[p->nout - 1];
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        bool affine = true;
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM)
            continue;
        const int64_t step = dc_ix_stride(k, n->at, last, &affine);
        for (int i = p->nout - 2; i >= 0 && affine && step != 0 && step != 1; i--)
            if (dc_ix_stride(k, n->at, p->out[i], &affine) == 1 && affine)
                return i;
    }
    return -1;
}

/* Of the result. */
static int64_t elements(const dc_sketch *s, const dc_shape *p)
{
    int64_t all = 1;
    for (int i = 0; i < p->nout; i++)
        all *= dc_sketch_extent(s, p->out[i]);
    return all;
}

/*
 * Blocks of m and n, one inside the other; several along m before the next along n, so that more than
 * a line of each row is read at once. Rows of the result that meet in few places of a cache are as few
 * as one block has, if they do not go past the caches anyway.
 */
static bool schedule_transposed(dc_sketch *s, const dc_shape *p, int at)
{
    const int64_t lanes = s->lanes, columns = dc_sketch_extent(s, p->out[p->nout - 1]);
    dc_split m, n, block;
    if (dc_sketch_extent(s, p->out[at]) % lanes != 0 || columns % lanes != 0)
        return elements(s, p) < DC_TUNE_BLOCK_ELEMENTS ? dc_schedule_vectors(s, p, 1)
                                                       : dc_schedule_transposed_strips(s, p, at);
    const bool spread = columns % DC_TUNE_COPY_SETS != 0 || dc_sketch_bypasses(s);
    int64_t blocks = dc_sketch_blocks(s, spread ? DC_TUNE_TRANSPOSED_BLOCKS : 1);
    while (dc_sketch_extent(s, p->out[at]) % (blocks * lanes) != 0)
        blocks /= 2;
    if (!dc_do_split(s, p->out[at], blocks * lanes, &m) ||
        !dc_do_split(s, p->out[p->nout - 1], lanes, &n))
        return false;
    for (int i = at + 1; i < p->nout - 1; i++)
        if (!dc_do_reorder(s, p->out[i], m.i))
            return false;
    if (!dc_do_reorder(s, n.o, m.i) || !dc_do_vectorize(s, n.i))
        return false;
    if (blocks == 1)
        return dc_do_unroll(s, m.i) && dc_sketch_grid(s);
    return dc_do_split(s, m.i, lanes, &block) && dc_do_unroll(s, block.i) && dc_sketch_grid(s);
}

/* runs of short axes --------------------------------------------------------------------------- */

/*
 * Which axes walk through memory together: from one of stride 1 on, each with the stride that those before fill.
 * The inner of them, `most` elements in all at most, are short; -1 where the rest does not go on from there.
 */
static int short_run(dc_kernel *k, const dc_shape *p, dc_ix at, int64_t most, bool *is_short)
{
    int64_t run = 1;
    for (int found = 0;; found++) {
        int next = -1;
        for (int i = 0; i < p->nout - 1; i++) {
            bool affine = true;
            const int64_t step = dc_ix_stride(k, at, p->out[i], &affine);
            if (affine && !is_short[i] && step == run && k->axis.at[p->out[i]].extent > 1)
                next = i;
        }
        if (next < 0)
            return -1;
        if (run * k->axis.at[p->out[next]].extent > most)
            return found > 0 ? next : -1;
        run *= k->axis.at[p->out[next]].extent;
        is_short[next] = true;
    }
}

/* The load whose elements lie in short runs, along none of which its result goes; the axis that follows them. */
static int run_axis(dc_kernel *k, const dc_shape *p, int64_t most, bool *is_short, dc_ix *at)
{
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        bool affine = true;
        memset(is_short, 0, DC_SHAPE_AXES * sizeof *is_short);
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM)
            continue;
        const int64_t step = dc_ix_stride(k, n->at, p->out[p->nout - 1], &affine);
        const int axis = affine && step > most ? short_run(k, p, n->at, most, is_short) : -1;
        *at = n->at;
        if (axis >= 0)
            return axis;
    }
    return -1;
}

/*
 * Of a load none of whose axes lies along memory, with the last one strided: the axis that goes on in the smallest
 * steps, several to a line; -1: there is none.
 */
static int near_axis(dc_kernel *k, const dc_shape *p)
{
    int found = -1;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        bool affine = true;
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM ||
            dc_ix_stride(k, n->at, p->out[p->nout - 1], &affine) <= DC_TUNE_SHORT_RUN || !affine)
            continue;
        int64_t least = LINE;
        for (int i = 0; i < p->nout - 1; i++) {
            const int64_t step = dc_ix_stride(k, n->at, p->out[i], &affine);
            if (!affine || (step != 0 && step < 2))
                return -1;
            if (step > 0 && step < least && k->axis.at[p->out[i]].extent >= LINE / step) {
                least = step;
                found = i;
            }
        }
    }
    return found;
}

/*
 * The short axes go inside, around the lanes, which read as many rows, and the axis that follows them in memory
 * outside of them: so each of these rows is read from one end to the other, once.
 */
static bool schedule_runs(dc_sketch *s, const dc_shape *p, int along, const bool *is_short)
{
    const int last = p->nout - 1;
    dc_split n;
    if (!dc_do_split(s, p->out[last], s->lanes, &n))
        return false;
    for (int i = 0; i <= last; i++) /* the others, n.o last, go outside of the short ones */
        for (int j = i - 1; j >= 0 && (i == last || !is_short[i]); j--)
            if (is_short[j] && !dc_do_reorder(s, i == last ? n.o : p->out[i], p->out[j]))
                return false;
    for (int i = last - 1; i >= along; i--)
        if (!is_short[i] && !dc_do_reorder(s, n.o, p->out[i]))
            return false;
    return dc_do_vectorize(s, n.i) && dc_sketch_grid(s);
}

/* The place of the axis that walks in these steps; -1: there is none. */
static int axis_of_step(dc_kernel *k, const dc_shape *p, dc_ix at, int64_t step)
{
    for (int i = 0; i < p->nout - 1; i++) {
        bool affine = true;
        if (dc_ix_stride(k, at, p->out[i], &affine) == step && affine &&
            k->axis.at[p->out[i]].extent > 1)
            return i;
    }
    return -1;
}

/* Lanes that divide both extents, 4 at least; 0: none do. */
static int64_t block_lanes(const dc_sketch *s, int64_t m, int64_t n)
{
    int64_t lanes = s->lanes;
    while (lanes >= 4 && (m % lanes != 0 || n % lanes != 0))
        lanes /= 2;
    return lanes >= 4 ? lanes : 0;
}

/* The smallest divisor of the axis that makes whole blocks with a run of short ones; 0: there is none. */
static int64_t block_part(const dc_sketch *s, int64_t extent, int64_t run, int64_t n)
{
    const int64_t lanes = block_lanes(s, extent * run, n);
    for (int64_t part = 1; part < extent && lanes > 0; part++)
        if (extent % part == 0 && part * run % lanes == 0)
            return part;
    return 0;
}

/* Loop number `from` goes inside those up to number `to`, or outside of them. */
static bool move_loop(dc_sketch *s, uint32_t *loop, int from, int to)
{
    while (from != to) {
        const int outer = from < to ? from : from - 1;
        const uint32_t moved = loop[outer];
        if (!dc_do_reorder(s, loop[outer + 1], loop[outer]))
            return false;
        loop[outer] = loop[outer + 1];
        loop[outer + 1] = moved;
        from += from < to ? 1 : -1;
    }
    return true;
}

static int loop_of(const uint32_t *loop, uint32_t axis)
{
    int i = 0;
    while (loop[i] != axis)
        i++;
    return i;
}

/*
 * The short axes and a part of the one that follows them become one, directly outside of the last: a matrix whose rows
 * lie along memory, which can be transposed; the rest of that axis are the work items. False, and nothing done, where
 * blocks do not fit.
 */
static bool join_run(dc_sketch *s, const dc_shape *p, dc_ix at, int along, const bool *is_short)
{
    dc_kernel *k = s->k;
    uint32_t part[DC_SHAPE_AXES], loop[DC_SHAPE_AXES + 1];
    dc_split split;
    int parts = 0;
    int64_t run = 1;
    for (int axis = axis_of_step(k, p, at, run); axis != along;
         axis = axis_of_step(k, p, at, run)) {
        if (axis < 0 || !is_short[axis])
            return false;
        part[parts++] = p->out[axis];
        run *= dc_sketch_extent(s, p->out[axis]);
    }
    const int64_t block = block_part(s, dc_sketch_extent(s, p->out[along]), run,
                                     dc_sketch_extent(s, p->out[p->nout - 1]));
    if (block == 0 || !dc_do_split(s, p->out[along], block, &split))
        return false;
    part[parts++] = split.i;
    for (int i = 0, n = 0; i < p->nout; i++, n++) {
        loop[n] = p->out[i];
        if (i == along) {
            loop[n++] = split.o;
            loop[n] = split.i;
        }
    }
    if (!move_loop(s, loop, loop_of(loop, split.o), 0))
        return false;
    for (int n = 0; n < parts; n++)
        if (!move_loop(s, loop, loop_of(loop, part[n]), p->nout - 1 - n))
            return false;
    for (int n = parts - 2; n >= 0; n--)
        if (!dc_do_fuse(s, part[n + 1], part[n], &part[n]))
            return false;
    return true;
}

/* others -------------------------------------------------------------------------------------- */

/*
 * Random numbers made of a few numbers, as initialisers are: that is done once, and a text of a
 * hundred instructions for each of four vectors takes a compiler longer than the rest takes to run.
 */
static bool is_initialiser(const dc_kernel *k)
{
    bool random = false;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        random = random || (n->kind == DC_VX_OP && n->op == DC_OP_THREEFRY);
        if (n->kind == DC_VX_LOAD && k->buf.at[n->buf].count > 1)
            return false;
    }
    return random;
}

int64_t dc_sketch_vectors(const dc_sketch *s, int64_t all, int64_t extent, int64_t lanes)
{
    int64_t most = s->t->vector_registers >= DC_TUNE_MANY_REGISTERS ? 4 : 2;
    if (all < DC_TUNE_FOUR_VECTORS)
        most = all < DC_TUNE_TWO_VECTORS ? 1 : 2;
    if (is_initialiser(s->k))
        most = 1;
    most =
        dc_sketch_knob(s, DC_KNOB_VECTORS, most, (const int32_t[]){1, 2, 4, 8, 0}, WIDEST / lanes);
    while (most > 1 && (extent % (most * lanes) != 0 || most * lanes > WIDEST))
        most /= 2;
    return most;
}

/* Of a long axis, or of many short ones. */
static int64_t most_vectors(const dc_sketch *s, const dc_shape *p)
{
    return dc_sketch_vectors(s, elements(s, p), WIDEST * (int64_t)s->lanes, s->lanes);
}

/*
 * The next row of what is read in pieces, which the machine does not prefetch by itself where a piece ends. Computing
 * leaves the time for it.
 */
static void prefetch_rows(dc_sketch *s, const dc_shape *p, uint32_t vectors)
{
    dc_kernel *k = s->k;
    int64_t bytes = 0;
    if (p->nout < 2)
        return;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM && k->buf.at[b].mode == DC_MODE_IN)
            bytes += k->buf.at[b].count / dc_sketch_extent(s, p->out[0]) *
                     (int64_t)dc_dtype_size((dc_dtype)k->buf.at[b].dtype);
    const int level = dc_sketch_level(s, bytes <= DC_TUNE_PREFETCH_ROW ? 1 : 2);
    for (uint32_t b = 0; level > 0 && b < k->buf.n; b++)
        dc_do_prefetch(s, b, k->root->axis, vectors, level); /* of those that it applies to */
}

/* Vectors that are all masked: what is computed is the most of it. */
static bool schedule_costly(dc_sketch *s, const dc_shape *p)
{
    const uint32_t n = p->out[p->nout - 1];
    const int64_t extent = dc_sketch_extent(s, n), lanes = dc_sketch_lanes(s, extent);
    const int64_t vectors = dc_sketch_vectors(s, elements(s, p), extent, lanes);
    dc_split v;
    if (!dc_do_split(s, n, lanes * vectors, &v) || !dc_do_vectorize(s, v.i) || !dc_sketch_grid(s))
        return false;
    prefetch_rows(s, p, v.o);
    return true;
}

/* Bytes of the widest number in a list of statements that only copies and chooses; 0: it computes. */
static int copied_bytes(dc_kernel *k, const dc_stmt *first)
{
    size_t bytes = 1;
    for (const dc_stmt *t = first; t != NULL && bytes > 0; t = t->next) {
        const size_t inside = t->body != NULL ? (size_t)copied_bytes(k, t->body) : 1;
        bytes = inside == 0 ? 0 : inside > bytes ? inside : bytes;
        for (uint32_t i = 0; i < t->nput && bytes > 0; i++) {
            const dc_mark mark = dc_arena_mark(&k->arena);
            const bool *part = dc_vx_parts(k, &k->arena, t->put[i].value);
            for (dc_vx v = 1; v <= t->put[i].value && bytes > 0; v++) {
                const dc_vx_node *n = &k->vx.at[v];
                const size_t size = dc_dtype_size((dc_dtype)n->dtype);
                if (part[v])
                    bytes = n->kind == DC_VX_INDEX || (n->kind == DC_VX_OP && n->op != DC_OP_WHERE)
                                ? 0
                            : size > bytes ? size
                                           : bytes;
            }
            dc_arena_rewind(&k->arena, mark);
        }
    }
    return (int)bytes;
}

/*
 * Of a load whose rows go on along another axis than that of the results, with a page between them there: the place of
 * that axis, where it has fewer iterations; -1: there is none.
 */
static int far_rows(const dc_sketch *s, const dc_shape *p)
{
    dc_kernel *k = s->k;
    const int last = p->nout - 1;
    for (dc_vx v = 1; v < k->vx.n && last >= 2; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        const int64_t page = PAGE / (int64_t)dc_dtype_size((dc_dtype)n->dtype);
        bool affine = true;
        if (n->kind != DC_VX_LOAD || k->buf.at[n->buf].scope != DC_SCOPE_PARAM ||
            dc_ix_stride(k, n->at, p->out[last], &affine) != 1 ||
            dc_ix_stride(k, n->at, p->out[last - 1], &affine) < page || !affine)
            continue;
        const int i = axis_of_step(k, p, n->at, dc_sketch_extent(s, p->out[last]));
        if (i >= 0 && i < last - 1 &&
            dc_sketch_extent(s, p->out[i]) < dc_sketch_extent(s, p->out[last - 1]))
            return i;
    }
    return -1;
}

/* Reads rows from one end to the other and stores their parts, on fewer pages, instead of the other way round. */
static bool schedule_far_rows(dc_sketch *s, const dc_shape *p, int along)
{
    for (int i = along + 1; i < p->nout - 1; i++)
        if (!dc_do_reorder(s, p->out[i], p->out[along]))
            return false;
    const dc_shape turned = dc_shape_of(s->k);
    return dc_schedule_vectors(s, &turned, most_vectors(s, &turned));
}

/* The place of the axis along which elements are stored side by side, where integers place those of the last one. */
static int beside_updates(const dc_sketch *s, const dc_shape *p)
{
    const dc_stmt *t = s->k->root;
    while (t->kind == DC_STMT_LOOP)
        t = t->body;
    if (t->nput == 0)
        return -1;
    const dc_ix at = t->put[0].at;
    bool affine = true;
    dc_ix_stride(s->k, at, p->out[p->nout - 1], &affine);
    for (int i = p->nout - 2; i >= 0 && !affine; i--) {
        bool is = true;
        if (dc_ix_stride(s->k, at, p->out[i], &is) == 1 && is)
            return i;
    }
    return -1;
}

/* Updates come one after the other; what is beside them lies in vectors. */
static bool schedule_updates(dc_sketch *s, const dc_shape *p, int beside)
{
    dc_split n;
    if (!dc_do_split(s, p->out[beside], s->lanes, &n))
        return false;
    for (int i = beside + 1; i < p->nout; i++)
        if (!dc_do_reorder(s, p->out[i], n.i))
            return false;
    return dc_do_vectorize(s, n.i) && dc_sketch_grid(s);
}

bool dc_schedule_map(dc_sketch *s, dc_shape *p, bool *is)
{
    *is = p->add == NULL && !p->by_rows;
    if (!*is || p->nout == 0)
        return true;
    dc_sketch_merge(s, p);
    const int beside = beside_updates(s, p);
    if (beside >= 0 && dc_sketch_extent(s, p->out[beside]) >= s->lanes)
        return schedule_updates(s, p, beside);
    const bool costly = is_costly(s->k);
    const int64_t extent = dc_sketch_extent(s, p->out[p->nout - 1]);
    if (extent < 4 && costly)
        return schedule_short(s, p);
    bool is_short[DC_SHAPE_AXES];
    dc_ix at = 0;
    const int along = extent >= s->lanes ? run_axis(s->k, p, DC_TUNE_SHORT_RUN, is_short, &at) : -1;
    if (along >= 0 && join_run(s, p, at, along, is_short)) {
        const dc_shape joined = dc_shape_of(s->k);
        return schedule_transposed(s, &joined, joined.nout - 2);
    }
    if (along >= 0)
        return schedule_runs(s, p, along, is_short);
    const int near = extent >= s->lanes ? near_axis(s->k, p) : -1;
    if (near >= 0) {
        memset(is_short, 0, sizeof is_short);
        return schedule_runs(s, p, near, is_short);
    }
    const int transposed = transposed_axis(s->k, p);
    if (transposed >= 0 && extent >= s->lanes && dc_sketch_extent(s, p->out[transposed]) >= 4)
        return schedule_transposed(s, p, transposed);
    if (costly)
        return schedule_costly(s, p);
    const int bytes = copied_bytes(s->k, s->k->root);
    if (bytes > 0 && !dc_ix_any_value(s->k))
        s->lanes = (int)dc_min_i64(s->t->vector_bytes / bytes, WIDEST);
    if (2 * extent <= s->lanes && p->nout >= 2 && !dc_ix_any_value(s->k) &&
        dc_sketch_block(s, extent) <= DC_TUNE_SHORT_ROW_VECTORS)
        return dc_schedule_short_rows(s, p, most_vectors(s, p));
    const int far = extent >= s->lanes ? far_rows(s, p) : -1;
    if (far >= 0)
        return schedule_far_rows(s, p, far);
    return dc_schedule_vectors(s, p, most_vectors(s, p));
}
