/*
 * Schedules of convolutions by rule (jit/schedule/schedule.h): contractions whose left operand is read through a
 * sliding window, with channels of the result last.
 *
 * As of any contraction, tiles of rows x channels are accumulated in registers, vectors along the channels.
 * What differs is the left operand, of which neighbouring rows read the same elements, and its padding:
 * its part is first copied, with zeros as padding, to a local that the inner loops read without tests
 * (window_read). Two forms:
 *
 *   images   rows are pixels, terms are taps and channels. A work item is a block of rows of one image; each
 *            vector of channels runs over all of them, so that its part of the kernel stays in cache.
 *   taps     the gradient of a kernel: rows are taps and channels, terms are the pixels of all images.
 *            One image after the other is added to accumulators that stay in cache.
 */
#include "jit/base/tuning.h"
#include "jit/schedule/schedule_impl.h"

#include <string.h>

typedef struct conv {
    dc_sketch *s;
    const dc_shape *p;
    dc_vx left; /* the load of the operand that does not move along channels */
    uint32_t buf;
    dc_split n, m;          /* channels, and the first of the rows, in tiles */
    int64_t lanes, vectors; /* of a tile, along the channels */
    int rows;               /* out axes that are rows of tiles, whole, but for the first of them */
    int64_t height;         /* iterations of that one in a tile */
} conv;

static int64_t extent(const conv *c, uint32_t axis)
{
    return dc_sketch_extent(c->s, axis);
}

/* ---- what kind of product it is ---- */

static int64_t stride(const conv *c, uint32_t axis, bool *affine)
{
    return dc_ix_stride(c->s->k, c->s->k->vx.at[c->left].at, axis, affine);
}

static int64_t size_of(int64_t v)
{
    return v < 0 ? -v : v;
}

static bool share_dim(const conv *c, uint32_t out, uint32_t red)
{
    return dc_axes_overlap(c->s->k, c->s->k->vx.at[c->left].at, out, red);
}

/* The left operand; false where there is no window, or the operand is computed of more than a load. */
static bool find_left(conv *c)
{
    dc_kernel *k = c->s->k;
    dc_operands o;
    if (c->p->nout < 2 || !dc_roles_has(k, DC_ROLE_WINDOW) || !dc_contraction_of(k, c->p, &o) ||
        !o.product)
        return false;
    c->left = dc_operand_load(k, o.left);
    if (c->left != 0)
        c->buf = k->vx.at[c->left].buf;
    return c->left != 0;
}

/* Do sums run over more of a dim than results do? */
static bool adds_positions(const conv *c)
{
    int64_t out = 1, red = 1;
    for (int o = 0; o < c->p->nout; o++)
        for (int r = 0; r < c->p->nred; r++)
            if (share_dim(c, c->p->out[o], c->p->red[r])) {
                out *= extent(c, c->p->out[o]);
                red *= extent(c, c->p->red[r]);
            }
    return red > out;
}

/* ---- tiles ---- */

static int64_t largest_divisor(int64_t n, int64_t most)
{
    int64_t d = dc_min_i64(n, most);
    while (n % d != 0)
        d--;
    return d;
}

/* A divisor where there is one of a fair size, else as few pieces as there can be. */
static int64_t piece(int64_t n, int64_t most)
{
    const int64_t d = largest_divisor(n, most);
    const int64_t pieces = (n + most - 1) / most;
    return d * 2 >= dc_min_i64(n, most) ? d : (n + pieces - 1) / pieces;
}

/* Vectors and rows of a tile. */
static void choose_tile(conv *c)
{
    const dc_shape *p = c->p;
    const int64_t channels = extent(c, p->out[p->nout - 1]);
    const int64_t registers = dc_max_i64(c->s->t->vector_registers - DC_TUNE_CONV_REGISTERS, 4);
    c->lanes = dc_sketch_lanes(c->s, channels);
    const int64_t vectors = (channels + c->lanes - 1) / c->lanes;
    c->vectors = vectors % 2 == 0 ? 2 : 1;
    if (vectors % 4 == 0 && extent(c, p->out[p->nout - 2]) * 4 <= registers)
        c->vectors = 4;
    c->vectors = dc_sketch_knob(c->s, DC_KNOB_CONV_VECTORS, c->vectors,
                                (const int32_t[]){1, 2, 3, 4, 0}, dc_min_i64(vectors, 4));
    const int64_t most =
        dc_sketch_knob(c->s, DC_KNOB_CONV_ROWS, registers / c->vectors,
                       (const int32_t[]){4, 6, 7, 8, 12, 14, 3, 2, 0}, registers / c->vectors);
    c->rows = 1;
    c->height = piece(extent(c, p->out[p->nout - 2]), most);
    int64_t rows = c->height;
    while (c->height == extent(c, p->out[p->nout - 1 - c->rows]) && c->rows < p->nout - 2) {
        const int64_t next = largest_divisor(extent(c, p->out[p->nout - 2 - c->rows]), most / rows);
        if (next < 2)
            break;
        c->height = next;
        rows *= next;
        c->rows++;
    }
}

static bool split_tile(conv *c)
{
    dc_sketch *s = c->s;
    const int last = c->p->nout - 1, first = last - c->rows;
    bool done = dc_do_split_full(s, c->p->out[last], c->vectors * c->lanes, &c->n) &&
                dc_do_split(s, c->p->out[first], c->height, &c->m);
    /* vectors of channels go outside the rows of a tile, and outside the tiles of a row */
    for (int i = last - 1; i > first && done; i--)
        done = dc_do_reorder(s, c->n.o, c->p->out[i]);
    return done && dc_do_reorder(s, c->n.o, c->m.i) && dc_do_reorder(s, c->n.o, c->m.o);
}

/* Interchanges loops over terms, outermost first, with the rows of tiles and the out axes from `to` on. */
static bool hoist(const conv *c, const uint32_t *red, int n, int to)
{
    const int last = c->p->nout - 1, first = last - c->rows;
    for (int i = last; i >= to; i--) {
        const uint32_t axis = i == last ? c->n.i : i == first ? c->m.i : c->p->out[i];
        if (!dc_sketch_hoist(c->s, red, n, axis))
            return false;
    }
    return true;
}

static bool finish_tile(const conv *c)
{
    dc_sketch *s = c->s;
    const int last = c->p->nout - 1, first = last - c->rows;
    dc_split v;
    bool done =
        dc_do_split(s, c->n.i, c->lanes, &v) && dc_do_vectorize(s, v.i) && dc_do_unroll(s, v.o);
    for (int i = last - 1; i > first && done; i--)
        done = dc_do_unroll(s, c->p->out[i]);
    return done && dc_do_unroll(s, c->m.i);
}

/* Each iteration of `loop` copies what it reads of the left operand, in vectors along the last dim. */
static bool copy_window(const conv *c, uint32_t loop)
{
    dc_sketch *s = c->s;
    const uint32_t made = s->k->axis.n;
    dc_split v;
    if (!dc_do_window_read(s, c->buf, loop))
        return false;
    const uint32_t last = s->k->axis.n - 1;
    if (last < made) /* one element */
        return true;
    const int64_t count = dc_sketch_extent(s, last);
    int64_t lanes = dc_sketch_lanes(s, count);
    while (count % lanes != 0)
        lanes /= 2;
    return lanes < DC_TUNE_COPY_LANES ||
           (dc_do_split(s, last, lanes, &v) && dc_do_vectorize(s, v.i));
}

/* Fuses the outermost loops to the launch. */
static bool launch(const conv *c)
{
    dc_sketch *s = c->s;
    while (s->k->root->kind == DC_STMT_LOOP && s->k->root->next == NULL) {
        const dc_stmt *inner = s->k->root->body;
        uint32_t one;
        if (inner->kind != DC_STMT_LOOP || inner->next != NULL ||
            s->k->axis.at[inner->axis].reduce || s->k->axis.at[inner->axis].kind != DC_AXIS_SERIAL)
            break;
        if (!dc_do_fuse(s, s->k->root->axis, inner->axis, &one))
            break;
    }
    return dc_sketch_grid_outer(s);
}

/* ---- images ---- */

/* Does the left operand stand under tests: is there padding? */
static bool is_tested(const conv *c)
{
    return c->s->k->vx.at[c->left].pred.n > 0;
}

static int64_t part_bytes(const conv *c)
{
    static const int32_t bytes[] = {12 << 10, 48 << 10, 96 << 10, 192 << 10, 6 << 10, 0};
    return dc_sketch_knob(c->s, DC_KNOB_CONV_BYTES, DC_TUNE_CONV_BYTES, bytes, INT32_MAX);
}

/* Rows of an image that a work item computes: as many as the copy has room for. */
static int64_t block_rows(const conv *c, int axis)
{
    bool affine = true;
    const int64_t row = size_of(stride(c, c->p->out[axis], &affine)) * 4;
    const int64_t most = dc_max_i64(part_bytes(c) / dc_max_i64(row, 1), 1);
    return largest_divisor(extent(c, c->p->out[axis]), most);
}

/*
 * Channels of the terms that are added up at a time. Each tile of a block reads the whole part of the kernel that
 * belongs to its vectors; where that is more than fits into L2, it is read in pieces, each for
 * all tiles before the next.
 */
static int64_t piece_of_terms(const conv *c, int64_t block)
{
    const int64_t all = extent(c, c->p->red[c->p->nred - 1]), room = (int64_t)c->s->t->l2 / 4;
    int64_t bytes = c->vectors * c->lanes * 4;
    for (int i = 0; i < c->p->nred; i++)
        bytes *= extent(c, c->p->red[i]);
    if (bytes <= 2 * room || block == 1 || c->p->nred < 2)
        return all;
    const int64_t piece = largest_divisor(all, dc_max_i64(all * room / bytes, DC_TUNE_CONV_PIECE));
    return piece >= DC_TUNE_CONV_PIECE ? piece : all;
}

/* The loop over pieces goes outside of the tiles of a block, whose accumulators wait in a local. */
static bool make_pieces(const conv *c, uint32_t *red, int64_t count, uint32_t rows, uint32_t *outer)
{
    dc_sketch *s = c->s;
    const int first = c->p->nout - 1 - c->rows, k = c->p->nred - 1;
    dc_split pieces;
    if (!dc_do_split(s, red[k], count, &pieces))
        return false;
    *outer = pieces.o;
    for (int i = k - 1; i >= 0; i--)
        if (!dc_do_reorder_reduce(s, *outer, red[i]))
            return false;
    red[k] = pieces.i;
    return hoist(c, outer, 1, first) && dc_sketch_hoist(s, outer, 1, c->m.o) &&
           dc_sketch_hoist(s, outer, 1, rows) && dc_do_subtotal(s, *outer);
}

/* Where images are too few for all threads, or too small, vectors of channels are work items, too. */
static bool share_vectors(const conv *c, uint32_t blocks, int64_t block)
{
    dc_sketch *s = c->s;
    const int outer = c->p->nout - 2 - c->rows; /* that is split in blocks */
    int64_t items = extent(c, c->p->out[outer]) / block;
    for (int i = 0; i < outer; i++)
        items *= extent(c, c->p->out[i]);
    if (items >= DC_TUNE_WORK_ITEMS)
        return true;
    if (!dc_do_reorder(s, c->n.o, blocks))
        return false;
    for (int i = outer - 1; i >= 0; i--)
        if (!dc_do_reorder(s, c->n.o, c->p->out[i]))
            return false;
    return true;
}

static bool schedule_images(conv *c)
{
    dc_sketch *s = c->s;
    const int first = c->p->nout - 1 - c->rows;
    dc_split y = {DC_NO_AXIS, DC_NO_AXIS};
    uint32_t red[DC_SHAPE_AXES], part; /* part: the loop whose iterations copy what they see */
    int64_t block = 1;
    if (!split_tile(c))
        return false;
    if (first >= 1) { /* blocks of the next axis outside */
        block = block_rows(c, first - 1);
        if (!dc_do_split(s, c->p->out[first - 1], block, &y) || !dc_do_reorder(s, c->n.o, y.i) ||
            !share_vectors(c, y.o, block))
            return false;
    }
    part = y.o;
    memcpy(red, c->p->red, sizeof red);
    const int64_t piece = piece_of_terms(c, block);
    if (piece < extent(c, c->p->red[c->p->nred - 1]) && !make_pieces(c, red, piece, y.i, &part))
        return false;
    if (!hoist(c, red, c->p->nred, first))
        return false;
    if (first >= 1 && is_tested(c) && !copy_window(c, part))
        return false;
    return finish_tile(c) && launch(c);
}

/* ---- taps ---- */

/* Rows of an image that both operands of a tile have room for near by. */
static int64_t image_rows(const conv *c, uint32_t y)
{
    bool affine = true;
    const int64_t row = size_of(stride(c, y, &affine)) * 4; /* of the left operand, all channels */
    const int64_t left =
        row / dc_max_i64(extent(c, c->p->out[c->p->nout - 1 - c->rows]), 1) * c->height;
    int64_t right = c->vectors * c->lanes * 4;
    for (int i = c->p->nred - 1; i >= 0 && c->p->red[i] != y; i--)
        right *= extent(c, c->p->red[i]);
    return largest_divisor(extent(c, y), dc_max_i64(part_bytes(c) / (left + right), 1));
}

/* The first of the terms' axes that the window moves along. */
static int row_axis(const conv *c)
{
    int r = 0;
    while (r < c->p->nred && c->s->k->axis.at[c->p->red[r]].role != DC_ROLE_WINDOW)
        r++;
    return r < c->p->nred ? r : 0;
}

static bool schedule_taps(conv *c)
{
    dc_sketch *s = c->s;
    const int last = c->p->nout - 1, first = last - c->rows, row = row_axis(c);
    uint32_t outer[DC_SHAPE_AXES], inner[DC_SHAPE_AXES];
    int nouter = 0, ninner = 0;
    dc_split y;
    const int64_t rows = image_rows(c, c->p->red[row]);
    if (!split_tile(c) || !dc_do_split(s, c->p->red[row], rows, &y))
        return false;
    for (int i = 0; i < row; i++)
        outer[nouter++] = c->p->red[i];
    outer[nouter++] = y.o;
    inner[ninner++] = y.i;
    for (int i = row + 1; i < c->p->nred; i++)
        inner[ninner++] = c->p->red[i];
    /* tiles outermost; of the other rows as many outside as make enough work items */
    int64_t items = (extent(c, c->p->out[last]) / (c->vectors * c->lanes) + 1) *
                    (extent(c, c->p->out[first]) / c->height);
    int outside = 0;
    while (outside < first && items < DC_TUNE_WORK_ITEMS)
        items *= extent(c, c->p->out[outside++]);
    for (int i = first - 1; i >= outside; i--)
        if (!dc_do_reorder(s, c->n.o, c->p->out[i]))
            return false;
    for (int i = first - 1; i >= outside; i--)
        if (!dc_do_reorder(s, c->m.o, c->p->out[i]))
            return false;
    if (!hoist(c, outer, nouter, outside) || !dc_do_subtotal(s, y.o) ||
        !hoist(c, inner, ninner, first))
        return false;
    if (is_tested(c) && !copy_window(c, y.o))
        return false;
    return finish_tile(c) && launch(c);
}

bool dc_schedule_conv(dc_sketch *s, dc_shape *p, bool *is)
{
    conv c = {.s = s, .p = p};
    dc_strides along;
    *is = dc_sketch_along_last(s, p, &along) && along.invariant && find_left(&c);
    if (!*is)
        return true;
    choose_tile(&c);
    return adds_positions(&c) ? schedule_taps(&c) : schedule_images(&c);
}
