/*
 * Schedules of contractions by rule (jit/schedule/schedule.h): reductions of a * b where b depends on the last output axis n
 * and a does not. A product is read (read_product), then it is decided how it reads b and a (choose_way: the enums below) and
 * how large its pieces of k and work items are (blocks_of), then moves follow (apply). From the outside in:
 *
 *   work items   blocks of m x n, numbered by one axis (fuse), each computed by one thread: threads
 *                share no accumulators and no packed panels
 *   k.o          where the reduction is long, in pieces; the accumulators of a block wait in a local
 *   n.i.o        panels as wide as a register tile; one of b is packed here, so that all m read it from L2
 *   m.i.o        register tiles; the block of a that they read is packed before n.i.o
 *   k            one vector row of b, one element of each row of a, all products
 *
 * Sizes depend on shapes and the target alone, and so do results.
 */
#include "jit/base/tuning.h"
#include "jit/nest/nest_access.h"
#include "jit/schedule/schedule_impl.h"

#include <string.h>

typedef struct operand {
    bool plain; /* a parameter, or made of one and of less, that nothing else in the kernel reads */
    bool computed; /* it is made of it: by casts, by scales */
    uint32_t buf;
    dc_strides all_n;    /* of all loads */
    dc_strides m, n, k;  /* of that of the parameter */
    int64_t bytes, size; /* in all; of an element */
} operand;

/* How b is read, and so which loops are outside of which. */
typedef enum way {
    DOTS,     /* along k, as a is: jit/schedule/schedule_dots.c */
    STREAMED, /* some rows at a time, along all columns of a work item, to sums that wait in caches */
    IN_PLACE,   /* panels where they lie, each by all rows of a work item */
    BY_ROWS,    /* all panels where they lie, for each row of tiles: m.i.o is outside of n.i.o */
    WHOLE_ROWS, /* the same; an epilogue that reads matrices follows, which goes along memory */
    PANELS,     /* panels that are packed */
    WIDE,       /* the same, all of a work item before, along memory */
} way;

/* How a is read: in place, by broadcast; a block for each piece of k, turned; the same, converted as it lies. */
typedef enum left { READ, PACKED, WIDENED } left;

typedef struct product {
    dc_sketch *s;
    uint32_t m, n, red[DC_SHAPE_AXES], out[DC_SHAPE_AXES]; /* axes; out: outside of m and n */
    uint32_t outer;                                        /* see take_outer; or DC_NO_AXIS */
    int nturned;     /* axes of b between m and n: they go outside of m */
    uint32_t piece;  /* the loop over pieces of red[0] */
    dc_split tm, tn; /* m and n in register tiles */
    uint32_t sum;    /* the buffer */
    int nred, nout;
    bool has_m;
    int64_t M, N, K;
    operand a, b;                      /* left, right */
    int64_t lanes, rows, columns;      /* register tile */
    int64_t block_m, block_n, block_k; /* of a work item */
    bool whole_m, whole_n; /* only divisors cut it: along it lie integers that places are made of */
    bool bounded;          /* how many rows there are, or terms, is known at run time */
    bool apart;            /* the epilogue has loops of its own */
    way way;
    left left;
} product;

static const bool packs[WIDE + 1] = {[PANELS] = true, [WIDE] = true};
static const bool by_rows[WIDE + 1] = {[BY_ROWS] = true, [WHOLE_ROWS] = true};

#define TRY(...)            \
    do {                    \
        if (!(__VA_ARGS__)) \
            return false;   \
    } while (0)

/* One of two ways, where a search says which, else the rule's. */
static bool asked(const product *q, dc_knob knob, bool rule)
{
    return dc_sketch_knob(q->s, knob, rule ? 2 : 1, (const int32_t[]){1, 2, 0}, 2) == 2;
}

/* Looking at it ------------------------------------------------------------------------------- */

static operand operand_of(const product *q, const dc_shape *p, dc_vx v)
{
    dc_kernel *k = q->s->k;
    const dc_vx load = dc_operand_main_load(k, v);
    operand f = {.all_n = dc_strides_of(k, v, p->out[p->nout - 1]), .computed = load != v};
    if (load == 0)
        return f;
    f.n = dc_strides_of(k, load, p->out[p->nout - 1]);
    if (p->nout >= 2)
        f.m = dc_strides_of(k, load, p->out[p->nout - 2]);
    if (p->nred > 0)
        f.k = dc_strides_of(k, load, p->red[p->nred - 1]);
    f.buf = k->vx.at[load].buf;
    f.plain = dc_sketch_loads(k, f.buf) == 1;
    f.size = (int64_t)dc_dtype_size((dc_dtype)k->buf.at[f.buf].dtype);
    f.bytes = k->buf.at[f.buf].count * f.size;
    return f;
}

/*
 * The operands of the contraction; of a term that is no product both are the term. False where there is no
 * contraction along n, or no vectors along n can be read or packed.
 */
static bool read_operands(product *q, const dc_shape *p)
{
    dc_operands o;
    if (!dc_contraction_of(q->s->k, p, &o))
        return false;
    q->a = operand_of(q, p, o.left);
    q->b = operand_of(q, p, o.right);
    q->has_m = p->nout >= 2;
    if (!o.product) {
        q->a.plain = q->b.plain = false;
        return q->has_m && q->b.all_n.unit && q->b.all_n.invariant && !q->b.all_n.strided &&
               !q->b.all_n.irregular;
    }
    q->has_m = q->has_m && dc_axis_is_rows(q->s->k, p->out[p->nout - 2]) && dc_strides_all(q->a.m);
    return !q->b.all_n.irregular && dc_strides_all(q->has_m ? q->b.n : q->b.all_n) &&
           (q->b.n.unit || q->b.plain);
}

/*
 * Where b has several axes that did not become one, as in m (n1 n2) with b[n1][k][n2], m is not beside n: the shape with
 * m there. False where it is beside it, or there is none.
 */
static bool turn_shape(const dc_sketch *s, const dc_shape *p, dc_shape *out, int *turned)
{
    int m = p->nout - 2;
    while (m >= 0 && dc_axis_role(s->k, p->out[m]) == DC_ROLE_N)
        m--;
    *turned = p->nout - 2 - m;
    if (m < 0 || *turned <= 0 || dc_axis_role(s->k, p->out[m]) != DC_ROLE_M)
        return false;
    *out = *p;
    memmove(out->out + m, out->out + m + 1, (size_t)*turned * sizeof *out->out);
    out->out[p->nout - 2] = p->out[m];
    return true;
}

static void read_axes(product *q, const dc_shape *p)
{
    q->n = p->out[p->nout - 1];
    q->N = dc_sketch_extent(q->s, q->n);
    q->m = q->has_m ? p->out[p->nout - 2] : DC_NO_AXIS;
    q->M = q->has_m ? dc_sketch_extent(q->s, q->m) : 1;
    q->nout = p->nout - 1 - q->has_m;
    memcpy(q->out, p->out, sizeof q->out);
    q->outer = DC_NO_AXIS;
    q->nred = p->nred;
    memcpy(q->red, p->red, sizeof q->red);
    dc_nest_edit v = {.k = q->s->k, .tmp = &q->s->k->arena};
    q->whole_m = q->has_m && dc_nest_picks_along(&v, q->m);
    q->whole_n = dc_nest_picks_along(&v, q->n);
    q->sum = p->add->put[0].buf;
    q->K = dc_sketch_extent(q->s, p->red[p->nred - 1]);
}

/*
 * Instructions between the sum and what is stored: all but a * b and its addition. Apart, Adam's update
 * took twice as long as in the tile, where divisions and roots of many vectors overlap.
 */
static int epilogue_cost(const dc_kernel *k)
{
    int all = -2;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *n = &k->vx.at[v];
        if (n->kind != DC_VX_OP)
            continue;
        const bool one = n->op == DC_OP_DIV || n->op == DC_OP_SQRT;
        all += !one && (dc_op_row_of(n->op)->flags & DC_OPF_COSTLY) != 0 ? DC_TUNE_EPILOGUE_OPS : 1;
    }
    return all;
}

/* Matrices that are read where results are stored, as the epilogue does: for Adam's update three. */
static int epilogue_reads(const product *q)
{
    dc_kernel *k = q->s->k;
    int n = 0;
    for (uint32_t v = 1; v < k->vx.n; v++) {
        const dc_vx_node *x = &k->vx.at[v];
        bool affine = true;
        n += x->kind == DC_VX_LOAD && k->buf.at[x->buf].scope == DC_SCOPE_PARAM &&
             dc_ix_stride(k, x->at, q->n, &affine) == 1 &&
             dc_ix_stride(k, x->at, q->m, &affine) == q->N && affine;
    }
    return n;
}

/*
 * The outer of two loops of a sum: its iterations are pieces, so that the inner one is packed as the only one
 * would be. A gradient of weights adds up examples and tokens, which are strided behind attention.
 */
static void take_outer(product *q)
{
    if (q->nred != 2 || !q->has_m || q->K < DC_TUNE_OUTER_K || q->K > 2 * DC_TUNE_PANEL_K ||
        !q->b.plain)
        return;
    q->outer = q->red[0];
    q->red[0] = q->red[1];
    q->nred = 1;
}

/* Choosing sizes ------------------------------------------------------------------------------- */

/*
 * A tile keeps its sums, a row of b and one element of a in registers. Of those that fit, the one
 * whose tiles take least time together, counted as two multiplications or two loads in a cycle, and
 * no less than four cycles for a row of k: as long as an addition takes. Rows beyond M cost an
 * address and a test in every step where a is read in place. Where b comes from memory, each step waits
 * for it, so that fewer steps are better: three vectors of eight rows instead of two.
 */
static int64_t tile_cost(const product *q, int64_t r, int64_t v)
{
    const int64_t wait = q->way == STREAMED && q->M % 8 == 0 ? 4 : 1;
    const int64_t tiles = (q->M + r - 1) / r * ((q->N + v * q->lanes - 1) / (v * q->lanes));
    const int64_t step = dc_max_i64(dc_max_i64(r * v, r + 2 * v), 10);
    return tiles *
           (8 * (step + wait) + (q->M % r != 0 ? 2 * r : 0) + (q->N % (v * q->lanes) != 0 ? 4 : 0));
}

/* Tiles by their cost, the cheapest first; of equals the first one. */
typedef struct tiles {
    int64_t cost[DC_KNOB_VALUES + 1];
    int32_t tile[DC_KNOB_VALUES + 1]; /* rows and vectors as the knob has them; 0 behind the last */
    int n;
} tiles;

static void add_tile(tiles *t, int64_t cost, int64_t rows, int64_t vectors)
{
    int at = t->n;
    for (; at > 0 && t->cost[at - 1] > cost; at--) {
        t->cost[at] = t->cost[at - 1];
        t->tile[at] = t->tile[at - 1];
    }
    t->cost[at] = cost;
    t->tile[at] = (int32_t)(100 * rows + vectors);
    t->n = t->n < DC_KNOB_VALUES ? t->n + 1 : t->n;
    t->tile[t->n] = 0;
}

static void tile_of(product *q)
{
    const int64_t registers = q->s->t->vector_registers;
    tiles all = {.n = 0};
    while (q->whole_n && q->N % q->lanes != 0)
        q->lanes /= 2;
    const int64_t most = dc_min_i64((q->N + q->lanes - 1) / q->lanes, DC_TUNE_TILE_VECTORS);
    for (int64_t v = 1; v <= most; v++)
        for (int64_t r = 1; r <= q->M && r * v + v + 1 < registers && r <= 16; r++)
            if (!(q->whole_m && q->M % r != 0) && !(q->whole_n && q->N % (v * q->lanes) != 0))
                add_tile(&all, tile_cost(q, r, v), r, v);
    const int64_t tile = dc_sketch_knob(q->s, DC_KNOB_TILE, all.tile[0], all.tile, INT32_MAX);
    q->rows = tile / 100;
    q->columns = tile % 100 * q->lanes;
}

/* Pieces of k of about that length: equal ones, if nearly as long ones are, since a tail is tested for. */
static int64_t piece_of(int64_t k, int64_t length)
{
    if (k <= length) /* of no terms, too */
        return dc_max_i64(k, 1);
    const int64_t least = (k + length - 1) / length;
    for (int64_t n = least; n <= 2 * least; n++)
        if (k % n == 0)
            return k / n;
    return k <= 2 * length ? k : (k + least - 1) / least;
}

/* Of b, as far as the product reads it. */
static int64_t right_bytes(const product *q)
{
    return q->N * q->K * q->b.size;
}

/* Does b leave L2 too little room, and are its rows apart? */
static bool is_large(const product *q)
{
    return right_bytes(q) > (int64_t)q->s->t->l2 * 5 / 8 &&
           q->N * q->b.size >= DC_TUNE_PANEL_STRIDE;
}

/*
 * A matrix of 16-bit floats for one row: beside conversions too few loads are under way where it comes from memory. Its
 * rows are fetched ahead, unless the whole function may well stay in L2.
 */
static bool fetches_ahead(const product *q)
{
    return !q->has_m && q->b.size == 2 && q->b.bytes > (int64_t)q->s->t->l2 / 8;
}

/* Few rows, both operands along the sum, which is long enough for vectors: see jit/schedule/schedule_dots.c. */
static bool is_dots(const product *q)
{
    if (q->nred != 1 || q->outer != DC_NO_AXIS || !q->a.k.unit || !q->b.k.unit || q->b.n.unit ||
        q->M > 2 * DC_TUNE_DOT_ROWS || q->K < q->s->lanes)
        return false;
    return asked(q, DC_KNOB_DOTS, q->M <= dc_min_i64(DC_TUNE_DOT_ROWS, q->K / q->s->lanes));
}

/*
 * Rows of b for all columns, some at a time, to sums that wait in caches: few rows of a do not pay for packing it. Where a
 * may have few rows, since their number is known at run time, that is chosen, too; with many it takes about as long.
 */
static bool is_streamed(const product *q)
{
    const bool maybe = q->bounded && q->M <= DC_TUNE_STREAM_BOUNDED &&
                       q->N * q->b.size % DC_TUNE_STREAM_CLASH != 0;
    const bool rule = (maybe || q->M <= DC_TUNE_STREAM_LEFT) && (is_large(q) || fetches_ahead(q));
    if (q->nred != 1 || q->b.n.strided)
        return false;
    return q->M > 2 * DC_TUNE_STREAM_LEFT ? rule : asked(q, DC_KNOB_STREAM, rule);
}

/* Does a lie across memory? Its rows are as strided as one step of k is from the next. */
static bool can_pack_a(const product *q)
{
    return q->a.plain && q->nred == 1 && q->has_m && q->a.m.unit && q->a.k.strided && q->rows > 1;
}

/* What a search asks for, as far as there is that packing. */
static int64_t packing_of(const product *q, bool can_a, bool can_b, bool a, bool b)
{
    const int32_t others[] = {q->b.n.strided ? 2 : 1, can_b ? 2 : 1, can_a && can_b ? 3 : 1,
                              can_a && !q->b.n.strided ? 4 : 1, 0};
    return dc_sketch_knob(q->s, DC_KNOB_PACK, a ? (b ? 3 : 4) : 1 + b, others, 4);
}

/*
 * Is b packed? Where its vectors lie across memory, or where it leaves L2 too little room, its rows are apart and enough
 * rows of a share a panel. a is packed where it is large.
 */
static bool choose_packing(product *q)
{
    const bool across = q->b.n.strided, can_a = can_pack_a(q);
    const bool can_b = q->b.plain && q->nred == 1 && q->M >= 2;
    const bool a = q->M * q->K >= DC_TUNE_LEFT_ELEMENTS &&
                   (double)q->M * (double)q->N * (double)q->K >= DC_TUNE_LEFT_WORK;
    const bool b = across || is_large(q) || (q->b.computed && q->M >= DC_TUNE_PACK_ROWS);
    if (!can_a && !can_b)
        return false;
    const int64_t packing = packing_of(q, can_a, can_b, a && can_a, b && can_b);
    q->left = packing >= 3 && can_a ? PACKED : READ;
    return packing == 2 || packing == 3 || across;
}

/* Few rows of a make little of a panel: several are packed together, each row of b for all of them. */
static bool is_wide(const product *q)
{
    return !q->b.n.strided && q->left == READ && q->M <= DC_TUNE_WIDE_ROWS &&
           q->K <= DC_TUNE_WIDE_K && q->N % (DC_TUNE_WIDE_PANELS * q->columns) == 0;
}

/* Of what is neither dots nor streamed. */
static way way_of(product *q)
{
    const int64_t l2 = (int64_t)q->s->t->l2;
    const bool stays = q->K <= DC_TUNE_PANEL_K && q->N * q->b.size >= DC_TUNE_PANEL_STRIDE &&
                       right_bytes(q) <= l2 / 2; /* b in L2 as it is, while its rows are apart */
    if (choose_packing(q))
        return is_wide(q) ? WIDE : PANELS;
    if (q->left == PACKED || !q->has_m || !asked(q, DC_KNOB_ORDER, stays))
        return IN_PLACE;
    const bool wait = q->nred == 1 && q->rows * q->N * 4 <= l2 / 8 && epilogue_reads(q) >= 2;
    return wait ? WHOLE_ROWS : BY_ROWS;
}

/* Converting an element of a for each panel of b takes as long as multiplying by it; together they are vectors. */
static bool is_widened(const product *q)
{
    return q->left == READ && !by_rows[q->way] && q->a.plain && q->a.computed && q->a.size == 2 &&
           q->nred == 1 && q->has_m && q->a.k.unit && q->rows > 1 && q->K >= q->lanes &&
           q->N >= DC_TUNE_WIDEN_PANELS * q->columns;
}

static void choose_way(product *q)
{
    q->lanes = q->columns = dc_sketch_lanes(q->s, q->N);
    q->rows = q->M;
    if (q->way == DOTS)
        return;
    q->bounded = dc_stmt_has_limits(q->s->k->root);
    q->way = is_streamed(q) ? STREAMED : IN_PLACE;
    tile_of(q);
    if (q->way != STREAMED)
        q->way = way_of(q);
    if (is_widened(q))
        q->left = WIDENED;
}

/* The length of pieces of k, where it is one loop. */
static int64_t terms_of(const product *q)
{
    const int32_t all = q->K <= INT32_MAX ? (int32_t)q->K : 4096;
    const int32_t others[] = {256, 512, 128, 1024, 2048, 4096, 64, all, 0};
    if (q->nred != 1)
        return q->K;
    int64_t terms = q->left == PACKED ? DC_TUNE_PANEL_K / 4 : DC_TUNE_PANEL_K;
    if (q->way == STREAMED)
        terms = q->M < 3 ? DC_TUNE_STREAM_ROWS * q->M : DC_TUNE_STREAM_K;
    const int64_t rule = piece_of(q->K, terms);
    const int64_t length = dc_sketch_knob(q->s, DC_KNOB_PANEL_K, rule, others, q->K);
    return length == rule ? rule : piece_of(q->K, length);
}

typedef struct side { /* m or n: so many parts, of whole tiles */
    int64_t extent, tile, parts;
} side;

typedef struct items { /* so many outside of m and n; so many are wanted in all */
    side m, n;
    int64_t outside, wanted;
} items;

static int64_t part_of(const side *x)
{
    const int64_t each = (x->extent + x->parts - 1) / x->parts;
    return (each + x->tile - 1) / x->tile * x->tile;
}

/* The same, or less, where only divisors cut the axis: whole tiles still, unless there are none, as of dot products. */
static int64_t block_of(const side *x, bool whole)
{
    int64_t part = whole ? dc_min_i64(part_of(x), x->extent) : part_of(x);
    while (whole && x->extent % part != 0)
        part -= x->extent % x->tile == 0 ? x->tile : 1;
    return part;
}

/* Halves, and halves of these, until they are no longer than that. */
static void bound(side *x, int64_t most)
{
    while (part_of(x) > dc_max_i64(most, x->tile))
        x->parts *= 2;
}

/* The same, while there are fewer work items than wanted, and so much is left. */
static void share(const items *w, side *x, int64_t least)
{
    while (w->outside * w->m.parts * w->n.parts < w->wanted && x->extent / (2 * x->parts) >= least)
        x->parts *= 2;
}

/* A power of two of work items where there is work. */
static items items_of(const product *q)
{
    items w = {{q->M, q->rows, 1}, {q->N, q->columns, 1}, 1, 1};
    for (int i = 0; i < q->nout; i++)
        w.outside *= dc_sketch_extent(q->s, q->out[i]);
    const double work = (double)w.outside * (double)q->M * (double)q->N * (double)q->K;
    const int64_t rule = work >= DC_TUNE_SHARED_WORK   ? DC_TUNE_WORK_ITEMS
                         : work >= DC_TUNE_PAIRED_WORK ? 2
                                                       : 1;
    w.wanted = dc_sketch_knob(q->s, DC_KNOB_ITEMS, rule,
                              (const int32_t[]){4, 8, 16, 32, 64, 2, 1, 0}, INT32_MAX);
    return w;
}

/*
 * Work items. First what is computed or packed together is one; a panel that is packed is one by itself, since along m it
 * would be packed again. Then blocks of a that are copied are to stay in L2; then threads share, along n as long as two
 * panels are left, and sums that wait between pieces of k fill half of L2 at most.
 */
static void blocks_of(product *q)
{
    const int64_t l2 = (int64_t)q->s->t->l2, width = q->columns;
    const int64_t panels = (q->N + width - 1) / width;
    items w = items_of(q);
    q->block_k = terms_of(q);
    const bool waits =
        q->way != STREAMED && (q->block_k < q->K || q->outer != DC_NO_AXIS || q->left == PACKED);
    if (q->way == WHOLE_ROWS)
        w.m.parts = (q->M + q->rows - 1) / q->rows;
    if (q->way == WIDE)
        w.n.parts = panels / DC_TUNE_WIDE_PANELS;
    else if (q->way == PANELS && q->block_k == q->K && w.outside < w.wanted &&
             w.wanted >= DC_TUNE_WORK_ITEMS && panels <= DC_TUNE_MOST_ITEMS)
        w.n.parts = panels;
    if (q->left == PACKED)
        bound(&w.m, DC_TUNE_PANEL_K / 4);
    if (q->left == WIDENED)
        bound(&w.m, l2 / 4 / 4 / q->block_k);
    if (by_rows[q->way])
        share(&w, &w.m, q->rows);
    share(&w, &w.n, (q->way == STREAMED && q->bounded ? DC_TUNE_STREAM_PANELS : 2) * width);
    if (q->way == STREAMED)
        bound(&w.n, fetches_ahead(q) ? DC_TUNE_FETCHED_COLUMNS : DC_TUNE_STREAM_COLUMNS + width);
    if (waits)
        bound(&w.n, (q->left == PACKED ? 16 : 4) * width);
    share(&w, &w.m, q->rows);
    if (waits)
        bound(&w.m, l2 / 2 / 4 / dc_min_i64(part_of(&w.n), q->N));
    q->block_m = block_of(&w.m, q->whole_m);
    q->block_n = dc_min_i64(block_of(&w.n, q->whole_n), q->N);
}

/* Doing it ------------------------------------------------------------------------------------- */

/* Vectors along the axis; the loop over them is unrolled if `repeat`. */
static bool make_lanes(product *q, uint32_t axis, bool repeat)
{
    dc_split v;
    TRY(dc_do_split(q->s, axis, q->lanes, &v));
    TRY(dc_do_vectorize(q->s, v.i));
    return !repeat || dc_do_unroll(q->s, v.o);
}

/*
 * Loops in the order: work items, m, n, reduction; m and n are those of a work item. Threads get runs of work items: where
 * rows may end early those of the same rows are apart, so that each thread has some that are there.
 */
static bool make_work_items(product *q)
{
    uint32_t outer[DC_SHAPE_AXES + 2];
    dc_split m = {0}, n;
    int count = q->nout;
    memcpy(outer, q->out, sizeof q->out);
    for (int i = q->nout - q->nturned; i < q->nout; i++)
        TRY(dc_do_reorder(q->s, q->out[i], q->m));
    if (q->has_m) {
        TRY(dc_do_split_full(q->s, q->m, q->block_m, &m));
        outer[count++] = m.o;
        q->m = m.i;
    }
    TRY(dc_do_split_full(q->s, q->n, q->block_n, &n));
    outer[count++] = n.o;
    q->n = n.i;
    if (q->has_m)
        TRY(dc_do_reorder(q->s, n.o, q->m));
    if (q->has_m && q->bounded) {
        TRY(dc_do_reorder(q->s, n.o, m.o));
        outer[count - 2] = n.o;
        outer[count - 1] = m.o;
    }
    for (int i = 1; i < count; i++)
        TRY(dc_do_fuse(q->s, outer[0], outer[i], &outer[0]));
    return true;
}

/* Interchanges the loop over `red` with those over n and m, which are outside it. */
static bool hoist(product *q, uint32_t red, uint32_t m, uint32_t n)
{
    TRY(dc_do_reorder(q->s, red, n));
    return !q->has_m || dc_do_reorder(q->s, red, m);
}

/*
 * The reduction in pieces of so many terms; the loop over pieces goes outside of m and n. Initialization and epilogue get
 * loops of their own, in vectors along n.
 */
static bool make_pieces(product *q, int64_t terms, uint32_t m, uint32_t n)
{
    dc_split pieces;
    uint32_t own;
    TRY(dc_do_split_full(q->s, q->red[0], terms, &pieces));
    q->piece = pieces.o;
    q->red[0] = pieces.i;
    TRY(hoist(q, q->piece, m, n));
    if (q->has_m)
        TRY(dc_do_part(q->s, m, q->red[0], &own));
    TRY(dc_do_part(q->s, n, q->red[0], &own));
    return make_lanes(q, own, false);
}

/* Panels and register tiles: tn.o, tm.o, tm.i, tn.i. */
static bool make_tiles(product *q)
{
    if (q->has_m)
        TRY(dc_do_split(q->s, q->m, q->rows, &q->tm));
    TRY(dc_do_split(q->s, q->n, q->columns, &q->tn));
    return !q->has_m || (dc_do_reorder(q->s, q->tn.o, q->tm.i) &&
                         (by_rows[q->way] || dc_do_reorder(q->s, q->tn.o, q->tm.o)));
}

/* Accumulators that wait in a local are kept in registers in each iteration of `loop`: copied in, and out. */
static bool make_sums(product *q, uint32_t loop)
{
    uint32_t made;
    TRY(dc_do_cache_write(q->s, q->sum, loop, &made));
    for (int i = 0; i < 2; i++) {
        TRY(make_lanes(q, dc_sketch_copy_of(q->s, made, q->tn.i, i), true));
        if (q->has_m)
            TRY(dc_do_unroll(q->s, dc_sketch_copy_of(q->s, made, q->tm.i, i)));
    }
    return true;
}

/*
 * A panel of b: [k][n]. Its vectors are read along n, or along k and transposed. Where few rows of a
 * use a panel, those of a work item are packed together, each row of b for all of them.
 */
static bool pack_b(product *q)
{
    const uint32_t dims[3] = {q->tn.o, q->red[0], q->tn.i}, k = q->red[0];
    const bool wide = q->way == WIDE;
    uint32_t made;
    dc_split rows;
    TRY(dc_do_pack(q->s, q->b.buf, wide ? q->s->k->root->axis : q->tn.o, dims + !wide, 2 + wide,
                   &made));
    TRY(make_lanes(q, dc_sketch_copy_of(q->s, made, q->tn.i, 0), true));
    if (wide)
        TRY(dc_do_reorder(q->s, dc_sketch_copy_of(q->s, made, k, 0),
                          dc_sketch_copy_of(q->s, made, q->tn.o, 0)));
    if (q->b.n.unit)
        return true;
    TRY(dc_do_split(q->s, dc_sketch_copy_of(q->s, made, k, 0), q->lanes, &rows));
    return dc_do_unroll(q->s, rows.i);
}

/*
 * A block of a, made before m is split into tiles, in vectors whatever these are: [k][m] where a is contiguous along m,
 * [m][k] as it lies where it is only converted.
 */
static bool pack_a(product *q)
{
    const uint32_t dims[2] = {q->left == WIDENED ? q->m : q->red[0],
                              q->left == WIDENED ? q->red[0] : q->m};
    uint32_t made;
    TRY(dc_do_pack(q->s, q->a.buf, q->piece, dims, 2, &made));
    return make_lanes(q, dc_sketch_copy_of(q->s, made, dims[1], 0), false);
}

/*
 * Rows of b are read in short pieces a row apart, which the machine does not prefetch by itself: while one panel is
 * multiplied, the next one comes into L2. Where b is there already, it costs nothing that could be measured.
 */
static void prefetch_b(product *q, bool pieces)
{
    const bool rule = right_bytes(q) >= DC_TUNE_PREFETCH_RIGHT && !by_rows[q->way];
    const bool panels = q->has_m && !packs[q->way];
    const int level = panels ? dc_sketch_level(q->s, rule ? 2 : 0) : pieces && fetches_ahead(q);
    if (level > 0) /* where it does not apply, it is left out */
        dc_do_prefetch(q->s, q->b.buf, panels ? q->tn.o : q->piece, q->red[0], level);
}

static bool apply(product *q)
{
    const bool pieces =
        q->block_k < q->K || q->way == WHOLE_ROWS || q->outer != DC_NO_AXIS || q->left != READ;
    TRY(make_work_items(q));
    if (q->outer != DC_NO_AXIS)
        TRY(hoist(q, q->outer, q->m, q->n));
    if (pieces)
        TRY(make_pieces(q, q->block_k, q->m, q->n));
    if (q->left != READ)
        TRY(pack_a(q));
    TRY(make_tiles(q));
    uint32_t waiting = q->has_m && !by_rows[q->way] ? q->tm.o : q->tn.o;
    if (q->apart && !pieces) {
        TRY(make_pieces(q, dc_sketch_extent(q->s, q->red[0]), q->tm.i, q->tn.i));
        waiting = q->piece;
    }
    for (int i = 0; i < q->nred; i++)
        TRY(hoist(q, q->red[i], q->tm.i, q->tn.i));
    if (packs[q->way])
        TRY(pack_b(q));
    if (q->apart || pieces)
        TRY(make_sums(q, waiting));
    TRY(make_lanes(q, q->tn.i, true));
    if (q->has_m)
        TRY(dc_do_unroll(q->s, q->tm.i));
    TRY(packs[q->way] && !q->bounded ? dc_sketch_grid(q->s) : dc_sketch_grid_outer(q->s));
    prefetch_b(q, pieces);
    return true;
}

static bool apply_dots(product *q)
{
    TRY(make_work_items(q));
    return dc_schedule_dots(q->s, &(dc_dots){q->m, q->n, q->red[0], q->M, q->block_n, q->has_m,
                                             fetches_ahead(q) ? q->b.buf : 0, q->apart});
}

/* Its operands and loops; false where there is no contraction, or rows of b that no vectors go along. */
static bool read_product(product *q, dc_sketch *s, const dc_shape *p)
{
    dc_shape other;
    *q = (product){.s = s};
    if (p->nout == 0 || dc_sketch_extent(s, p->out[p->nout - 1]) < 2)
        return false;
    if (turn_shape(s, p, &other, &q->nturned) && read_operands(q, &other) && q->has_m)
        p = &other;
    else
        *q = (product){.s = s};
    if (q->nturned == 0 && !read_operands(q, p))
        return false;
    read_axes(q, p);
    take_outer(q);
    q->way = is_dots(q) ? DOTS : IN_PLACE;
    return q->has_m || q->b.n.unit || q->way == DOTS;
}

bool dc_schedule_product(dc_sketch *s, dc_shape *p, bool *is)
{
    product q;
    *is = read_product(&q, s, p);
    if (!*is)
        return true;
    const int epilogue = epilogue_cost(s->k);
    q.apart = epilogue > 0 && asked(&q, DC_KNOB_APART, epilogue > DC_TUNE_EPILOGUE_OPS);
    choose_way(&q);
    blocks_of(&q);
    return q.way == DOTS ? apply_dots(&q) : apply(&q);
}
