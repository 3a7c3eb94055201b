/*
 * Rows by groups of threads (jit/schedule/schedule_simt_impl.h): softmax, norms, losses and their gradients, long sums.
 *
 * Each row has T threads, a warp or several for a long one, and less for a short one; a group has several rows. Thread t
 * has the columns V * (T * o + t) to V * (T * o + t) + V - 1 for all o, in all parts of the row: what one part keeps for another
 * stays in registers, and so does what is read, since the loops over o are unrolled. Sums are combined by butterflies
 * (`replicate`).
 *
 * Rows that would not fit in registers are copied to shared memory, those inputs that several parts read.
 *
 * A kernel of one row, of which nothing can be said for all threads at once, adds up by one group, in two steps.
 */
#include "jit/base/tuning.h"
#include "jit/nest/nest_access.h"
#include "jit/schedule/schedule_simt_impl.h"

enum { MOST_PARTS = 32, MOST_HELD = 16 };

typedef struct part {             /* loops over columns around one assignment */
    uint32_t axis[DC_SHAPE_AXES]; /* outermost first */
    int n;
    int64_t extent; /* of all of them */
    bool reduces;
    bool loads;         /* elements of its columns */
    const dc_stmt *set; /* before any move */
} part;

typedef struct rows {
    part part[MOST_PARTS];
    int n, sums;
    int64_t rows, columns;         /* columns: the most that a part has */
    int64_t vector, threads, side; /* of a row; rows of a group */
    uint32_t lane[3 * MOST_PARTS]; /* loops over threads */
    int nlane;
    uint32_t held[MOST_HELD]; /* inputs of which several parts read the row */
    int nheld;
    bool shared; /* these are copied to shared memory */
} rows;

/* The position among all columns of the iteration of the loops. */
static dc_ix column_of(dc_kernel *k, const part *x)
{
    dc_ix at = dc_ix_const(k, 0);
    for (int i = 0; i < x->n; i++)
        at = dc_ix_add(k, dc_ix_mul(k, at, k->axis.at[x->axis[i]].extent),
                       dc_ix_axis(k, x->axis[i]));
    return at;
}

static bool stores_to(const dc_stmt *set, uint32_t buf)
{
    for (uint32_t i = 0; i < set->nput; i++)
        if (set->put[i].buf == buf)
            return true;
    return false;
}

/*
 * Does it touch of a row that is kept nothing but its own column, which a thread has in its registers? And are all elements
 * that it stores its own? A scatter's are not.
 */
static bool is_plain(dc_kernel *k, part *x, const dc_stmt *set)
{
    const dc_ix column = column_of(k, x);
    const dc_mark mark = dc_arena_mark(&k->arena);
    bool plain = !set->reduces || set->nput == 1;
    for (uint32_t i = 0; i < set->nput && plain; i++) {
        const dc_put p = set->put[i];
        const bool *below = dc_vx_parts(k, &k->arena, p.value);
        plain = k->buf.at[p.buf].scope == DC_SCOPE_PARAM || k->buf.at[p.buf].count == 1 ||
                p.at == column;
        for (dc_vx v = 1; v <= p.value && plain; v++) {
            const dc_vx_node *n = &k->vx.at[v];
            if (!below[v] || n->kind != DC_VX_LOAD)
                continue;
            const dc_buffer *b = &k->buf.at[n->buf];
            for (int a = 0; a < x->n; a++)
                x->loads |= dc_ix_uses(k, n->at, x->axis[a]);
            plain = (set->reduces || !stores_to(set, n->buf)) &&
                    (b->scope == DC_SCOPE_PARAM || b->count == 1 || n->at == column);
        }
    }
    dc_arena_rewind(&k->arena, mark);
    return plain;
}

static bool read_part(const dc_sketch *s, const dc_stmt *loop, part *x)
{
    const dc_kernel *k = s->k;
    *x = (part){.extent = 1};
    for (; loop != NULL && loop->kind == DC_STMT_LOOP && x->n < DC_SHAPE_AXES; loop = loop->body) {
        if (x->n > 0 &&
            (loop->next != NULL || k->axis.at[loop->axis].reduce != k->axis.at[x->axis[0]].reduce))
            return false;
        x->extent *= dc_sketch_extent(s, loop->axis);
        x->axis[x->n++] = loop->axis;
    }
    if (loop == NULL || loop->kind != DC_STMT_SET || loop->next != NULL || x->extent < 1)
        return false;
    x->reduces = k->axis.at[x->axis[0]].reduce;
    x->set = loop;
    return x->reduces == loop->reduces && is_plain(s->k, x, loop);
}

static bool read_parts(const dc_sketch *s, const dc_shape *p, rows *r)
{
    const dc_stmt *t = s->k->root;
    for (int i = 0; i < p->nout; i++)
        t = t->body;
    *r = (rows){.rows = dc_simt_product(s, p->out, p->nout)};
    for (; t != NULL; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        if (r->n == MOST_PARTS || !read_part(s, t, &r->part[r->n]))
            return false;
        r->sums += r->part[r->n].reduces;
        r->columns = dc_max_i64(r->columns, r->part[r->n++].extent);
    }
    return r->n > 0;
}

/* Rows that are held ------------------------------------------------------------------------- */

/*
 * Where the row begins that the part reads of a buffer, column by column; 0: it reads nothing of it. *plain: nothing else of
 * it, under no tests.
 */
static dc_ix row_read(dc_kernel *k, const part *x, uint32_t buf, bool *plain)
{
    const dc_ix column = column_of(k, x);
    dc_ix begin = 0;
    for (uint32_t p = 0; p < x->set->nput; p++) {
        const dc_vx value = x->set->put[p].value;
        const bool *below = dc_vx_parts(k, &k->arena, value);
        for (dc_vx v = 1; v <= value; v++) {
            const dc_vx_node *n = &k->vx.at[v];
            if (!below[v] || n->kind != DC_VX_LOAD || n->buf != buf)
                continue;
            const dc_ix at = dc_ix_add(k, n->at, dc_ix_mul(k, column, -1));
            for (int i = 0; i < x->n; i++)
                *plain = *plain && !dc_ix_uses(k, at, x->axis[i]);
            *plain = *plain && k->vx.at[v].pred.n == 0 && !dc_ix_loads(k, at) &&
                     (begin == 0 || begin == at);
            begin = at;
        }
    }
    *plain = *plain && x->set->pred.n == 0;
    return begin;
}

/* Do several parts read the same row of an input, and is it another one for each row of the kernel? */
static bool is_held(const dc_sketch *s, const dc_shape *p, const rows *r, uint32_t buf)
{
    int readers = 0;
    dc_ix begin = 0;
    bool plain = s->k->buf.at[buf].mode == DC_MODE_IN, moves = false;
    for (int i = 0; i < r->n && plain; i++) {
        const dc_ix at = row_read(s->k, &r->part[i], buf, &plain);
        if (at == 0)
            continue;
        plain = plain && (readers == 0 || begin == at);
        begin = at;
        readers++;
    }
    for (int i = 0; i < p->nout && readers > 1; i++)
        moves |= dc_ix_uses(s->k, begin, p->out[i]);
    return plain && moves;
}

static void find_held(const dc_sketch *s, const dc_shape *p, rows *r)
{
    for (uint32_t b = 0; b < s->k->buf.n && r->nheld < MOST_HELD; b++)
        if (s->k->buf.at[b].scope == DC_SCOPE_PARAM && is_held(s, p, r, b))
            r->held[r->nheld++] = b;
}

/* Is it a local with an element for each column? */
static bool is_kept(const dc_sketch *s, const rows *r, uint32_t buf)
{
    const dc_buffer *b = &s->k->buf.at[buf];
    return b->scope == DC_SCOPE_LOCAL && b->count > 1 && b->count == r->columns;
}

/* Bytes of a row of it in shared memory. */
static int64_t row_bytes(const dc_sketch *s, const rows *r, uint32_t buf)
{
    return (int64_t)dc_align_up((size_t)r->columns *
                                    dc_dtype_size((dc_dtype)s->k->buf.at[buf].dtype),
                                DC_TUNE_ACCESS_BYTES);
}

/*
 * Of partial results, for each thread. Without shuffles what butterflies exchange is in shared memory, too: two numbers of each
 * type that there is.
 */
static int64_t sums_bytes(const dc_sketch *s, const rows *r)
{
    int64_t bytes = 0;
    uint32_t types = 0;
    for (int i = 0; i < r->n; i++) {
        if (!r->part[i].reduces)
            continue;
        const dc_dtype t = (dc_dtype)s->k->buf.at[r->part[i].set->put[0].buf].dtype;
        const bool first = (types >> t & 1) == 0;
        types |= 1u << t;
        bytes += (int64_t)dc_dtype_size(t) * (s->t->lanes == 0 && first ? 3 : 1);
    }
    return bytes;
}

/* Bytes of a row in shared memory, and of partial results of so many threads. */
static int64_t bytes_held(const dc_sketch *s, const rows *r, int64_t threads)
{
    int64_t bytes = sums_bytes(s, r) * threads;
    for (int i = 0; i < r->nheld; i++)
        bytes += row_bytes(s, r, r->held[i]);
    for (uint32_t b = 0; b < s->k->buf.n; b++)
        if (is_kept(s, r, b))
            bytes += row_bytes(s, r, b);
    return bytes;
}

/* Threads and elements ----------------------------------------------------------------------- */

static int64_t rounds(const rows *r, int64_t threads)
{
    return (r->columns + r->vector * threads - 1) / (r->vector * threads);
}

/*
 * Few rows have more threads each, and so have rows that would not fit in registers. Threads of several rows that are
 * not whole warps still read what follows one another.
 */
static void choose_threads(const dc_sketch *s, rows *r)
{
    static const int32_t threads[] = {32, 64, 16, 128, 8, 256, 512, 4, 1024, 2, 0};
    static const int32_t rows_of[] = {1, 2, 4, 8, 16, 32, 0};
    int64_t most = dc_min_i64(s->t->group_threads, DC_TUNE_ROW_THREADS);
    const int64_t all = dc_simt_many(s) * dc_simt_threads(s);
    while (most > DC_TUNE_ROW_LANES && most * (r->sums + 2) * 8 > dc_simt_shared(s))
        most /= 2; /* partial results of all sums, of the longest type */
    r->vector = r->columns;
    for (int i = 0; i < r->n; i++)
        r->vector = dc_min_i64(r->vector, dc_simt_vector(s, r->part[i].extent));
    const int64_t widest = r->vector;
    while (r->vector > 1 && r->rows * (r->columns / r->vector) < all / DC_TUNE_ROW_SHARE)
        r->vector /= 2;
    r->vector = dc_simt_ask_access(s, r->vector, widest);
    r->threads = 1;
    while (r->threads < most && (rounds(r, r->threads) * r->vector > DC_TUNE_ROW_ELEMENTS ||
                                 rounds(r, r->threads) * r->vector * r->nheld > DC_TUNE_ROW_HELD ||
                                 (r->threads < DC_TUNE_ROW_LANES && rounds(r, r->threads) > 1) ||
                                 (rounds(r, r->threads) > 1 && r->rows * r->threads < all)))
        r->threads *= 2;
    r->threads = dc_sketch_knob(s, DC_KNOB_ROW_THREADS, r->threads, threads, most);
    r->side = dc_max_i64(dc_simt_threads(s) / r->threads, 1);
    while (r->side > 1 && (r->rows % r->side != 0 || r->rows / r->side < dc_simt_many(s)) &&
           r->side * r->threads > DC_TUNE_ROW_LANES)
        r->side /= 2;
    r->side = dc_min_i64(r->side, r->rows);
    const int64_t asked =
        dc_sketch_knob(s, DC_KNOB_ROWS, r->side, rows_of, s->t->group_threads / r->threads);
    if (r->rows % asked == 0 && asked * r->threads * (r->sums + 2) * 8 <= dc_simt_shared(s))
        r->side = asked;
}

/*
 * Are rows copied to shared memory? The registers of 1024 threads are the half of the usual. Where shared memory has room for
 * two groups of so many, they are better still than one with its row in registers.
 */
static void choose_memory(const dc_sketch *s, rows *r)
{
    const int64_t most = dc_min_i64(s->t->group_threads, DC_TUNE_ROW_THREADS);
    const int64_t bytes = bytes_held(s, r, most), have = (int64_t)s->t->group_bytes;
    const int64_t each = rounds(r, r->threads) * r->vector * r->nheld;
    const int64_t limit = r->threads < most   ? DC_TUNE_ROW_HELD
                          : 2 * bytes <= have ? DC_TUNE_ROW_HELD / 4
                                              : DC_TUNE_ROW_HELD / 2;
    r->shared = each > limit && bytes <= have;
    if (!r->shared)
        return;
    r->threads = 2 * bytes <= have && r->vector > 1 ? most / 2 : most; /* enough reads in flight */
    r->side = 1;
}

/* Before any other move: one more part for each input, the copy. */
static bool copy_rows(dc_sketch *s, rows *r, uint32_t row)
{
    for (uint32_t b = 0; b < s->k->buf.n; b++)
        if (is_kept(s, r, b) && !dc_do_scope(s, b, DC_SCOPE_GROUP))
            return false;
    for (int i = 0; i < r->nheld; i++) {
        uint32_t made;
        const uint32_t copy = s->k->buf.n;
        if (r->n == MOST_PARTS || !dc_do_cache_elements(s, r->held[i], row, NULL, 0, &made) ||
            !dc_do_scope(s, copy, DC_SCOPE_GROUP))
            return false;
        part *x = &r->part[r->n++];
        *x = (part){.extent = r->columns, .loads = true};
        while (made < s->k->axis.n)
            x->axis[x->n++] = made++;
    }
    return true;
}

/* Parts --------------------------------------------------------------------------------------- */

/* Iterations that are unrolled of many: a divisor where there is one. */
static int64_t at_once(const dc_sketch *s, uint32_t axis)
{
    const int64_t n = dc_sketch_extent(s, axis);
    for (int64_t u = DC_TUNE_ROW_UNROLLED; u > DC_TUNE_ROW_UNROLLED / 2; u--)
        if (n % u == 0)
            return u;
    return DC_TUNE_ROW_UNROLLED;
}

/* The loop over what a thread does, unrolled so that it stays in registers; of long rows only what is loaded. */
static bool keep(dc_sketch *s, const rows *r, const part *x, uint32_t axis)
{
    const int64_t n = dc_sketch_extent(s, axis);
    dc_split few;
    if (r->shared && n > DC_TUNE_ROW_UNROLLED)
        return dc_do_split(s, axis, at_once(s, axis), &few) && dc_do_unroll(s, few.i);
    const int64_t most =
        r->threads < DC_TUNE_ROW_THREADS || !x->loads ? DC_TUNE_ROW_ELEMENTS : DC_TUNE_ROW_MOST;
    return n < 2 || n * r->vector > most || dc_do_unroll(s, axis);
}

/* Loop `inner` of a piece of T * V columns: V of them to each of T threads, around the loop `outer` over pieces. */
static bool share_out(dc_sketch *s, rows *r, const part *x, uint32_t outer, uint32_t inner)
{
    dc_split v = {.o = inner};
    if (r->vector > 1 && !dc_do_split(s, inner, r->vector, &v))
        return false;
    if (!dc_do_reorder(s, v.o, outer) || (r->vector > 1 && !dc_do_vectorize(s, v.i)))
        return false;
    r->lane[r->nlane++] = v.o;
    return keep(s, r, x, outer);
}

/* Partial results of V lanes of each thread: the thread's own first. */
static bool add_lanes(dc_sketch *s, rows *r, uint32_t axis, uint32_t *total)
{
    dc_split v;
    dc_partial own;
    *total = axis;
    if (r->vector == 1)
        return true;
    if (!dc_do_split(s, axis, r->vector, &v) || !dc_do_split_reduce(s, v.o, r->threads, &own) ||
        !dc_do_reorder(s, own.i, v.i) || !dc_do_reorder(s, own.i, own.o) || !dc_do_unroll(s, v.i))
        return false;
    r->lane[r->nlane++] = own.i;
    *total = own.j;
    return true;
}

/*
 * The same for partial sums along a long row. What a thread adds up goes to a local first: shared memory is one array, and beside
 * loads of the row from it each of them would be stored.
 */
static bool share_out_sums(dc_sketch *s, rows *r, uint32_t outer, uint32_t inner)
{
    dc_split v = {.o = inner}, few;
    if (!dc_do_reorder(s, inner, outer) || !dc_do_split(s, outer, at_once(s, outer), &few) ||
        !dc_do_subtotal(s, few.o) || !dc_do_unroll(s, few.i))
        return false;
    if (r->vector > 1 && (!dc_do_split(s, inner, r->vector, &v) || !dc_do_reorder(s, few.o, v.i) ||
                          !dc_do_reorder(s, few.i, v.i) || !dc_do_vectorize(s, v.i)))
        return false;
    r->lane[r->nlane++] = v.o;
    return true;
}

/* *total: the loop over partial results of all threads, of a reduction. */
static bool schedule_part(dc_sketch *s, rows *r, const part *x, uint32_t *total)
{
    uint32_t all;
    dc_split c;
    dc_partial sum;
    if (!dc_simt_fuse(s, x->axis, x->n, &all))
        return false;
    const bool is_long = r->shared && rounds(r, r->threads) > DC_TUNE_ROW_UNROLLED;
    if (!x->reduces)
        return dc_do_split(s, all, r->threads * r->vector, &c) && share_out(s, r, x, c.o, c.i);
    return dc_do_split_reduce(s, all, r->threads * r->vector, &sum) &&
           (is_long ? share_out_sums(s, r, sum.o, sum.i) : share_out(s, r, x, sum.o, sum.i)) &&
           add_lanes(s, r, sum.j, total);
}

/* Kernels ------------------------------------------------------------------------------------ */

static bool bind_lanes(dc_sketch *s, const rows *r)
{
    for (int i = 0; i < r->nlane; i++)
        if (!dc_do_lane(s, r->lane[i]))
            return false;
    return true;
}

/* Partial results of all threads: few threads add them up, the first the rest. */
static bool add_threads(dc_sketch *s, rows *r, uint32_t axis)
{
    dc_partial few;
    if (r->threads <= DC_TUNE_ROW_LANES)
        return true;
    if (!dc_do_split_reduce(s, axis, DC_TUNE_ROW_LANES, &few) || !dc_do_reorder(s, few.i, few.o))
        return false;
    r->lane[r->nlane++] = few.i;
    return true;
}

static bool schedule_one(dc_sketch *s, rows *r)
{
    for (int i = 0; i < r->n; i++) {
        uint32_t total;
        if (!schedule_part(s, r, &r->part[i], &total) ||
            (r->part[i].reduces && !add_threads(s, r, total)))
            return false;
    }
    return bind_lanes(s, r);
}

static bool schedule_many(dc_sketch *s, const dc_shape *p, rows *r)
{
    uint32_t row, own, total;
    dc_split side;
    if (!dc_simt_fuse(s, p->out, p->nout, &row) || (r->shared && !copy_rows(s, r, row)))
        return false;
    for (int i = 0; i < r->n; i++)
        if (!schedule_part(s, r, &r->part[i], &total))
            return false;
    if (!dc_do_replicate(s, row, r->threads, &own))
        return false;
    r->lane[r->nlane++] = own;
    if (!bind_lanes(s, r))
        return false;
    if (r->side == 1)
        return dc_do_grid(s, row);
    return dc_do_split(s, row, r->side, &side) && dc_do_block(s, side.i) && dc_do_grid(s, side.o);
}

/* Do columns lie along memory? A sum over other axes is read across rows. */
static bool along_memory(dc_sketch *s, const dc_shape *p)
{
    const uint32_t last = p->red[p->nred - 1];
    const dc_strides along = dc_strides_of(s->k, dc_shape_term(s->k, p), last);
    return along.unit || dc_strides_none(along);
}

bool dc_simt_rows(dc_sketch *s, dc_shape *p, bool *is)
{
    rows r;
    *is = false;
    if (!read_parts(s, p, &r) || (p->add != NULL && !p->by_rows && !along_memory(s, p)))
        return true;
    find_held(s, p, &r);
    choose_threads(s, &r);
    choose_memory(s, &r);
    *is = r.threads > 1;
    return !*is ? true : p->nout == 0 ? schedule_one(s, &r) : schedule_many(s, p, &r);
}
