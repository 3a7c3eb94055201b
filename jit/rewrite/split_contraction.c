#include "jit/rewrite/split_contraction.h"

#include "core/ir/dot.h"
#include "jit/base/gpu_tiles.h"
#include "jit/base/tuning.h"

/*
 * What is known before tiles are chosen (jit/schedule/schedule_simt_product.c, schedule_simt_skinny.c): the product as rows
 * m, columns n, terms k, for each of `batch`.
 */
typedef struct product {
    int64_t batch, m, n, k;
    int64_t units;
    size_t size;    /* of an element of an operand, in memory */
    bool matrices;  /* by matrix instructions */
    int64_t depth;  /* terms of a stage in shared memory, */
    int64_t ahead;  /* and so many of them on their way */
    bool along[2];  /* by side: the operand lies along the terms */
    int axis;       /* the contracting axis that is cut, its number among these, */
    int64_t extent; /* and extent */
} product;

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- estimates, in cycles of a multiprocessor ---- */

/* Beside the memory that all of it moves, where `partial` numbers are written and read. */
static int64_t memory_cycles(const product *p, int64_t partial)
{
    const int64_t operands = p->batch * (p->m + p->n) * p->k * (int64_t)p->size;
    return (operands + 8 * partial) / (p->units * DC_TUNE_UNIT_BYTES);
}

static int64_t clip(int64_t side, int64_t extent)
{
    return dc_min_i64(side, up(extent, DC_TUNE_GROUP_DEPTH) * DC_TUNE_GROUP_DEPTH);
}

/*
 * In tiles of at most this size, each `terms` long. What a group waits for its operands is hidden by others, as many as
 * fit on a multiprocessor, and where copies are asynchronous by its own arithmetic.
 */
static int64_t tiled_cycles(const product *p, const dc_gpu_tile *t, int64_t parts, int64_t terms)
{
    const int64_t m = clip(t->m, p->m), n = clip(t->n, p->n);
    const int64_t groups = up(p->batch * parts * up(p->m, m) * up(p->n, n), p->units);
    const int64_t rate =
        p->matrices ? t->matrices.busy * DC_TUNE_MATRIX_RATE : t->threads.busy * DC_TUNE_RATE;
    const int64_t beside = (p->matrices ? 2 : 1) * DC_TUNE_UNIT_RESULTS / (t->m * t->n);
    const int64_t work = m * n * terms * 100 / rate;
    const bool deep = !p->matrices && t->m * t->n <= DC_TUNE_DEEP_TILE;
    const int64_t stages = up(terms, deep ? 2 * p->depth : p->depth);
    const int64_t wait = stages * DC_TUNE_STAGE_CYCLES / p->ahead;
    const int64_t alone = p->ahead > 1 ? dc_max_i64(work, wait) : work + wait;
    return dc_max_i64(groups * work, up(groups, beside) * alone);
}

/* Warps that read one operand, each so many rows or columns of it. */
static int64_t skinny_cycles(const product *p, int64_t parts, int64_t terms)
{
    const int side = p->n >= p->m;
    const int64_t across = p->along[side] ? 1 : DC_TUNE_ACCESS_BYTES; /* results of a warp */
    const int64_t warps = up(p->batch * parts * up(side ? p->n : p->m, across), p->units);
    const int64_t bytes = across * terms * (int64_t)p->size;
    const int64_t wait = up(bytes, DC_TUNE_WARP_BYTES) * DC_TUNE_STAGE_CYCLES;
    return up(warps, DC_TUNE_WARPS_BESIDE) * wait;
}

/* A kernel of so many parts, without what its memory takes. */
static int64_t kernel_cycles(const product *p, int64_t parts, int64_t terms)
{
    int64_t least = INT64_MAX;
    if (dc_min_i64(p->m, p->n) <= DC_TUNE_SKINNY_ROWS && !p->matrices)
        return skinny_cycles(p, parts, terms);
    for (int i = 0; i < DC_GPU_TILES; i++)
        if (dc_gpu_tiles[i].estimated)
            least = dc_min_i64(least, tiled_cycles(p, &dc_gpu_tiles[i], parts, terms));
    return least;
}

/* Parts of so many terms of the axis that is cut, the sum over them, and what is left over. */
static int64_t cycles(const product *p, int64_t parts, int64_t terms)
{
    const int64_t inside = p->k / p->extent, left = (p->extent - parts * terms) * inside;
    int64_t all = dc_max_i64(kernel_cycles(p, parts, terms * inside), memory_cycles(p, 0));
    if (parts == 1)
        return all;
    const int64_t partial = (parts + (left > 0)) * p->batch * p->m * p->n;
    all += memory_cycles(p, partial) - memory_cycles(p, 0) + DC_TUNE_LAUNCH_CYCLES;
    return left > 0 ? all + kernel_cycles(p, 1, left) + DC_TUNE_LAUNCH_CYCLES : all;
}

/* Terms of a part: a multiple of what is read at once, if the whole is long enough. */
static int64_t terms_of(const product *p, int64_t parts)
{
    const int64_t terms = p->extent / parts;
    return terms - terms % DC_TUNE_PART_MULTIPLE;
}

/* The number of parts that takes least time; 1 where a single step is not clearly slower. */
static int64_t count_parts(const product *p)
{
    const int64_t whole = cycles(p, 1, p->extent);
    int64_t best = 1, least = whole - whole / DC_TUNE_SPLIT_GAIN;
    for (int64_t parts = 2; parts <= DC_TUNE_PARTS_MOST; parts++) {
        const int64_t terms = terms_of(p, parts);
        if (terms * (p->k / p->extent) < DC_TUNE_PART_TERMS)
            break;
        const int64_t time = cycles(p, parts, terms);
        if (time < least) {
            least = time;
            best = parts;
        }
    }
    return best;
}

/* ---- looking at it ---- */

static bool is_last(const dc_node *a, int64_t axis)
{
    for (int64_t i = axis + 1; i < a->rank; i++)
        if (a->dim[i] != 1)
            return false;
    return true;
}

static int64_t free_count(const dc_node *a, const dc_dot *d, int side)
{
    int64_t count = 1;
    for (int i = 0; i < d->nfree[side]; i++)
        count *= a->dim[d->free[side][i]];
    return count;
}

/* The type in memory of an operand that a cast to more bits brings to the type of the sums. */
static dc_dtype stored_type(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    while (n->op == DC_OP_CAST && dc_dtype_size((dc_dtype)n->dtype) >=
                                      dc_dtype_size((dc_dtype)dc_node_at(f, n->in[0])->dtype))
        n = dc_node_at(f, n->in[0]);
    return (dc_dtype)n->dtype;
}

/* Do rows begin where copies to shared memory can? */
static bool is_aligned(const dc_node *a, size_t size)
{
    int last = a->rank - 1;
    while (last > 0 && a->dim[last] == 1)
        last--;
    return last < 0 || a->dim[last] * (int64_t)size % DC_TUNE_COPY_BYTES == 0;
}

/* Are there matrix instructions for such operands (jit/nest/matrix_tiles.def)? */
static bool has_matrices(dc_dtype t)
{
    return dc_dtype_is_half(t) || t == DC_I8;
}

static product read_product(const dc_func *f, const dc_node *n, const dc_dot *d, const dc_target *t)
{
    const dc_node *a = dc_node_at(f, n->in[0]), *b = dc_node_at(f, n->in[1]);
    const int last = d->ncontract - 1;
    const dc_dtype stored = stored_type(f, n->in[0]);
    const bool copies = t->sm >= 80 && t->lanes == 32;
    product p = {.batch = 1, .k = 1, .size = dc_dtype_size(stored), .extent = 0};
    p.m = free_count(a, d, 0);
    p.n = free_count(b, d, 1);
    for (int i = 0; i < d->nbatch; i++)
        p.batch *= a->dim[d->batch[0][i]];
    for (int i = 0; i <= last; i++) {
        const int64_t extent = a->dim[d->contract[0][i]];
        p.k *= extent;
        if (extent > p.extent) {
            p.axis = i;
            p.extent = extent;
        }
    }
    p.along[0] = last >= 0 && is_last(a, d->contract[0][last]);
    p.along[1] = last >= 0 && is_last(b, d->contract[1][last]);
    p.matrices = copies && has_matrices(stored) && stored == stored_type(f, n->in[1]) &&
                 dc_min_i64(p.m, p.n) >= DC_TUNE_GROUP_ROWS;
    p.depth = p.matrices ? DC_TUNE_MATRIX_DEPTH / (int64_t)p.size : DC_TUNE_GROUP_DEPTH;
    p.ahead = !copies || !is_aligned(a, p.size) || !is_aligned(b, p.size) ? 1
              : p.matrices ? DC_TUNE_MATRIX_STAGES - 1
                           : DC_TUNE_GROUP_STAGES - 1;
    p.units = t->units > 0 ? t->units : DC_TUNE_GROUP_UNITS;
    return p;
}

/* ---- doing it ---- */

/* An operand with terms [from, from + count) of the axis alone, in so many parts: the axis is two then. */
static dc_ref part_of(dc_func *f, dc_ref r, int64_t axis, int64_t from, int64_t count,
                      int64_t parts)
{
    const dc_node a = *dc_node_at(f, r);
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK + 1];
    for (int i = 0; i < a.rank; i++) {
        step[i] = 1;
        dim[i] = a.dim[i];
    }
    start[axis] = from;
    dim[axis] = count;
    if (count < a.dim[axis])
        r = dc_graph_slice(f, r, start, step, dim);
    if (parts == 1)
        return r;
    for (int i = a.rank; i > axis; i--)
        dim[i] = dim[i - 1];
    dim[axis] = parts;
    dim[axis + 1] = count / parts;
    return dc_graph_reshape(f, r, a.rank + 1, dim);
}

/* Axes behind `cut` move up by one: that is a batch axis of its own. */
static void move_up(int64_t *axis, int n, int64_t cut)
{
    for (int i = 0; i < n; i++)
        axis[i] += axis[i] >= cut;
}

/* The dot of operands whose contracting axis number `at` is two, the first of which is the parts. */
static dc_ref parts_dot(dc_func *f, dc_ref a, dc_ref b, const dc_dot *whole, int at)
{
    dc_dot d = *whole;
    for (int side = 0; side < 2; side++) {
        const int64_t cut = whole->contract[side][at];
        move_up(d.batch[side], d.nbatch, cut);
        move_up(d.contract[side], d.ncontract, cut);
        d.batch[side][d.nbatch] = cut;
    }
    d.nbatch++;
    return dc_dot_make(f, a, b, &d);
}

static dc_ref in_two_steps(dc_func *f, dc_ref r, const dc_dot *d, const product *p, int64_t parts)
{
    const dc_node n = *dc_node_at(f, r);
    const bool narrow = dc_dtype_is_short((dc_dtype)n.dtype);
    const int64_t used = parts * terms_of(p, parts);
    dc_ref in[2], some[2], rest[2];
    for (int side = 0; side < 2; side++) {
        const int64_t axis = d->contract[side][p->axis];
        in[side] = narrow ? dc_graph_cast(f, n.in[side], DC_F32) : n.in[side];
        some[side] = part_of(f, in[side], axis, 0, used, parts);
        rest[side] = used < p->extent ? part_of(f, in[side], axis, used, p->extent - used, 1) : 0;
    }
    const dc_ref sums = parts_dot(f, some[0], some[1], d, p->axis);
    dc_func_copy_origin(f, sums, f, r);
    const dc_ref last = rest[0] != 0 ? dc_dot_make(f, rest[0], rest[1], d) : 0;
    /* the sum is the later node, so fusion puts what follows into its kernel, and both products may run at once */
    dc_ref y = dc_graph_reduce(f, DC_OP_SUM, sums, 1u << d->nbatch);
    y = dc_graph_cast(f, y, (dc_dtype)dc_node_at(f, sums)->dtype); /* of small integers it is i32 */
    if (last != 0) {
        dc_func_copy_origin(f, last, f, r);
        y = dc_graph_op2(f, DC_OP_ADD, y, last);
    }
    return narrow ? dc_graph_cast(f, y, (dc_dtype)n.dtype) : y;
}

dc_ref dc_split_contraction(dc_func *f, dc_ref r, const dc_target *t)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_dot d = dc_dot_of(f, &n);
    if (d.ncontract == 0 || n.rank == DC_MAX_RANK || dc_node_count(&n) == 0 ||
        dc_node_at(f, n.in[0])->rank == DC_MAX_RANK || dc_node_at(f, n.in[1])->rank == DC_MAX_RANK)
        return 0;
    const product p = read_product(f, &n, &d, t);
    const int64_t parts = count_parts(&p);
    if (parts == 1)
        return 0;
    const dc_ref y = in_two_steps(f, r, &d, &p, parts);
    dc_func_copy_origin(f, y, f, r);
    return y;
}
