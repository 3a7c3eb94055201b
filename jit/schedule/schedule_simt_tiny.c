/*
 * Products of tiny matrices by groups of threads (jit/schedule/schedule_simt_impl.h): thousands of 3 by 3 or 8 by 8, or of
 * short vectors by one small matrix. Memory decides, and one matrix gives too few threads work: a group has so many
 * matrices, or vectors, as give all its threads a run of results each. Their operands are copied to shared memory as they
 * follow one another; a thread adds up its own results.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_simt_impl.h"

enum { OUTER, ROWS, COLUMNS, TERMS, LOOPS };
enum { SECTOR = 8 }; /* elements of 4 bytes: a group begins with one */

typedef struct tiny {
    dc_sketch *s;
    uint32_t out[DC_SHAPE_AXES];
    int nouter, nout;          /* axes of matrices before those of one; of the result */
    int64_t outer, inner, own; /* matrices, results of one, results of a thread */
    int64_t side;              /* matrices of a group */
    uint32_t
        loop[LOOPS]; /* of a matrix in its group, and those inside; DC_NO_AXIS: there is none */
} tiny;

/* Looking at it ------------------------------------------------------------------------------- */

/* The result: matrices of few rows, or rows that are short. */
static bool read_tiny(tiny *x, const dc_shape *p)
{
    dc_sketch *s = x->s;
    dc_operands o;
    if (p->nout < 2 || p->nred != 1)
        return false;
    const uint32_t n = p->out[p->nout - 1], m = p->out[p->nout - 2];
    const int64_t rows = dc_sketch_extent(s, m), columns = dc_sketch_extent(s, n);
    if (columns > DC_TUNE_TINY || dc_sketch_extent(s, p->red[0]) > DC_TUNE_TINY ||
        !dc_simt_is_contraction(s, p, &o))
        return false;
    const bool matrices = p->nout > 2 && rows <= DC_TUNE_TINY;
    x->nout = p->nout;
    x->nouter = matrices ? p->nout - 2 : p->nout - 1;
    for (int i = 0; i < p->nout; i++)
        x->out[i] = p->out[i];
    x->outer = dc_simt_product(s, p->out, x->nouter);
    x->inner = matrices ? rows * columns : columns;
    x->own = dc_simt_vector(s, columns);
    x->loop[ROWS] = matrices ? m : DC_NO_AXIS;
    x->loop[COLUMNS] = n;
    x->loop[TERMS] = p->red[0];
    return true;
}

/* False: there are not even threads for a warp. */
static bool choose_sizes(tiny *x)
{
    const int64_t lanes = DC_TUNE_ROW_LANES;
    while (x->own > 1 && x->outer * x->inner / x->own < dc_simt_many(x->s) * dc_simt_threads(x->s))
        x->own /= 2;
    const int64_t each = x->inner / x->own, most = dc_simt_threads(x->s) / each;
    x->side = dc_min_i64(dc_max_i64(most, 1), x->outer);
    while (x->side > 1 && x->side * each > lanes && x->outer / x->side < dc_simt_many(x->s))
        x->side = (x->side + 1) / 2;
    if (x->side > SECTOR)
        x->side -= x->side % SECTOR;
    return x->side * each >= lanes;
}

/* Doing it ------------------------------------------------------------------------------------- */

/* The threads of a group have elements that follow one another. */
static bool share(tiny *x, uint32_t *axis, int n)
{
    dc_sketch *s = x->s;
    const int64_t threads = x->side * x->inner / x->own;
    uint32_t all;
    dc_split each;
    if (!dc_simt_fuse(s, axis, n, &all))
        return false;
    if (dc_sketch_extent(s, all) <= threads)
        return dc_do_lane(s, all);
    return dc_do_split(s, all, threads, &each) && dc_do_lane(s, each.i);
}

/* The same of rows that lie a bank apart. */
static bool share_rows(tiny *x, uint32_t *axis, int n)
{
    dc_sketch *s = x->s;
    const int64_t threads = x->side * x->inner / x->own;
    const int64_t rows = dc_max_i64(threads / dc_sketch_extent(s, axis[n - 1]), 1);
    uint32_t all;
    dc_split each;
    return dc_simt_fuse(s, axis, n - 1, &all) && dc_do_split(s, all, rows, &each) &&
           dc_do_block(s, each.i) && dc_do_lane(s, axis[n - 1]);
}

/* The loops that an operand moves along, the one with the longest stride first; 0: by no constant one. */
static int dims_of(const tiny *x, dc_ix at, uint32_t *dim)
{
    int64_t stride[LOOPS];
    int n = 0;
    for (int i = 0; i < LOOPS; i++) {
        bool affine = true;
        const uint32_t axis = x->loop[i];
        const int64_t step = axis != DC_NO_AXIS ? dc_ix_stride(x->s->k, at, axis, &affine) : 0;
        if (!affine || step < 0)
            return 0;
        if (step == 0)
            continue;
        int to = n++;
        for (; to > 0 && stride[to - 1] < step; to--) {
            stride[to] = stride[to - 1];
            dim[to] = dim[to - 1];
        }
        stride[to] = step;
        dim[to] = axis;
    }
    return n;
}

/* What is refused here is left out: the operand is read where it is. */
static void stage(tiny *x, uint32_t buf, uint32_t group)
{
    dc_sketch *s = x->s;
    const dc_vx_node *load = NULL;
    uint32_t dim[LOOPS], copy[LOOPS], made;
    for (dc_vx v = 1; v < s->k->vx.n; v++)
        if (s->k->vx.at[v].kind == DC_VX_LOAD && s->k->vx.at[v].buf == buf &&
            dc_ix_uses(s->k, s->k->vx.at[v].at, x->loop[TERMS]))
            load = &s->k->vx.at[v];
    const int n = load != NULL ? dims_of(x, load->at, dim) : 0;
    const uint32_t tile = s->k->buf.n;
    if (n < 2 || !dc_do_pack(s, buf, group, dim, n, &made))
        return;
    for (int i = 0; i < n; i++)
        copy[i] = dc_sketch_copy_of(s, made, dim[i], 0);
    const int64_t row = dc_sketch_extent(s, dim[n - 1]);
    const bool across = dim[n - 1] == x->loop[TERMS] && row % 2 == 0; /* it is read across rows */
    if (across && dc_do_pad_rows(s, tile, row))
        share_rows(x, copy, n);
    else
        share(x, copy, n);
}

static bool apply(tiny *x, const dc_shape *p)
{
    dc_sketch *s = x->s;
    uint32_t outer, axis[3];
    dc_split group, run = {.o = x->loop[COLUMNS]};
    int n = 0;
    if (!dc_simt_fuse(s, x->out, x->nouter, &outer) || !dc_do_split(s, outer, x->side, &group) ||
        !dc_do_grid(s, group.o))
        return false;
    x->loop[OUTER] = group.i;
    for (uint32_t b = 0, buffers = s->k->buf.n; b < buffers; b++)
        if (s->k->buf.at[b].mode == DC_MODE_IN)
            stage(x, b, group.o);
    if (x->own > 1 && (!dc_do_split(s, x->loop[COLUMNS], x->own, &run) ||
                       !dc_sketch_hoist(s, p->red, p->nred, run.i) || !dc_do_vectorize(s, run.i)))
        return false;
    axis[n++] = group.i;
    if (x->loop[ROWS] != DC_NO_AXIS)
        axis[n++] = x->loop[ROWS];
    axis[n++] = run.o;
    dc_do_unroll(s, x->loop[TERMS]);
    return share(x, axis, n);
}

bool dc_simt_tiny(dc_sketch *s, dc_shape *p, bool *is)
{
    tiny x = {.s = s};
    *is = read_tiny(&x, p) && choose_sizes(&x);
    return !*is || apply(&x, p);
}
