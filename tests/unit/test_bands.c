/*
 * Sums over rows beside what goes by those rows (jit/fuse/fuse_row_blocks.c): gradients of norms and of a softmax
 * with those of weight and bias, and relatives that look like them but may not be one kernel. Compiled
 * and interpreted (tests/unit/diff.h), for odd extents, several row and column axes, and all float
 * dtypes; and how many groups they become.
 *
 *   test_bands [seed [rounds]]
 */
#include "jit/fuse/fuse.h"

#include "tests/unit/diff.h"

enum { LEAST_POINTS = 1 << 12, LEAST_BANDS = 8, LEAST_COLUMNS = 32, MOST_ROWS = 512 };

typedef struct shape {
    dc_func *f;
    int64_t bands, height, rows, columns;
    int64_t dim[4]; /* rows in one axis or two, columns likewise */
    int rank, split;
    bool fits; /* large enough for one kernel */
} shape;

static shape shape_new(rng *r, dc_module *m)
{
    static const int64_t bands[] = {1, 2, 7, 8, 9, 16, 31}, heights[] = {1, 2, 3, 4, 7, 16},
                         columns[] = {1, 2, 31, 32, 33, 48, 64, 66, 100, 130, 256};
    shape s = {.f = dc_func_new(m, "bands")};
    s.bands = bands[rng_below(r, DC_COUNTOF(bands))];
    s.height = heights[rng_below(r, DC_COUNTOF(heights))];
    s.columns = columns[rng_below(r, DC_COUNTOF(columns))];
    s.rows = s.bands * s.height;
    const int64_t outer = rng_below(r, 3) == 0 && s.rows % 2 == 0 ? 2 : 1;
    if (outer > 1)
        s.dim[s.rank++] = outer;
    s.dim[s.rank++] = s.rows / outer;
    s.split = s.rank;
    const int64_t inner = rng_below(r, 3) == 0 && s.columns % 2 == 0 ? 2 : 1;
    if (inner > 1)
        s.dim[s.rank++] = inner;
    s.dim[s.rank++] = s.columns / inner;
    s.fits = s.bands >= LEAST_BANDS && s.height > 1 && s.columns >= LEAST_COLUMNS &&
             s.rows * s.columns >= LEAST_POINTS;
    return s;
}

static dc_ref full(const shape *s, dc_dtype t)
{
    const dc_type type = dc_type_make(t, s->rank, s->dim);
    return dc_graph_param(s->f, &type, "x");
}

/* A row of numbers, one for each column, for all rows. */
static dc_ref weight(const shape *s, dc_dtype t)
{
    const dc_type type = dc_type_make(t, s->rank - s->split, s->dim + s->split);
    return dc_graph_unreduce(s->f, dc_graph_param(s->f, &type, "w"), (1u << s->split) - 1, s->rank,
                             s->dim);
}

static dc_ref over_columns(const shape *s, dc_op op, dc_ref x)
{
    const uint32_t axes = ((1u << s->rank) - 1) & ~((1u << s->split) - 1);
    return dc_graph_unreduce(s->f, dc_graph_reduce(s->f, op, x, axes), axes, s->rank, s->dim);
}

static dc_ref two(const shape *s, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, op, a, b);
}

static dc_ref scaled(const shape *s, dc_ref a, double by)
{
    return two(s, DC_OP_MUL, a, dc_graph_like(s->f, a, by));
}

static void give(const shape *s, dc_ref r)
{
    DC_PUSH(s->f->result, r);
}

/* Over the rows of each band; added up, too, or not. */
static void give_sum(rng *r, const shape *s, dc_op op, dc_ref x)
{
    const int64_t dim[] = {s->bands, s->height, s->columns};
    const dc_ref parts = dc_graph_reduce(s->f, op, dc_graph_reshape(s->f, x, 3, dim), 2);
    const bool whole = op == DC_OP_SUM && rng_below(r, 2); /* maxima of maxima are simplified */
    give(s, whole ? dc_graph_reduce(s->f, op, parts, 1) : parts);
}

/* Groups with sums of bands, and how many sums. */
static uint32_t groups_with_sums(const dc_func *f, uint32_t *sums)
{
    dc_job *j = &rt->job;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_groups g;
    uint32_t n = 0;
    *sums = 0;
    CHECK_EQ(dc_fuse(j, &j->scratch, dc_simplify(f), 1, &g), DC_OK);
    for (uint32_t i = 0; i < g.n; i++) {
        n += g.at[i].npartial > 0;
        *sums += g.at[i].npartial;
    }
    dc_arena_rewind(&j->scratch, mark);
    return n;
}

static void attempt(rng *r, const shape *s, const char *what, uint32_t want)
{
    uint32_t sums;
    const uint32_t found = groups_with_sums(s->f, &sums);
    bool ok = CHECK_EQ(found, s->fits && want > 0) && CHECK_EQ(sums, s->fits ? want : 0);
    ok = CHECK(diff_try(s->f, r, false, true)) && ok;
    if (!ok)
        printf("%s: %lld bands of %lld rows, %lld columns\n", what, (long long)s->bands,
               (long long)s->height, (long long)s->columns);
}

/* Of layer norm without its mean, so that interpreters are soon done; *h is what the weight scales. */
static dc_ref norm_gradient(const shape *s, dc_ref x, dc_ref dy, dc_ref w, dc_ref *h)
{
    const dc_ref square = over_columns(s, DC_OP_SUM, two(s, DC_OP_MUL, x, x));
    const dc_ref by =
        dc_graph_op1(s->f, DC_OP_SQRT,
                     dc_graph_op2(s->f, DC_OP_ADD, scaled(s, square, 1.0 / (double)s->columns),
                                  dc_graph_like(s->f, square, 0.5)));
    const dc_ref g = two(s, DC_OP_MUL, dy, w);
    *h = two(s, DC_OP_DIV, x, by);
    const dc_ref along = over_columns(s, DC_OP_SUM, two(s, DC_OP_MUL, g, *h));
    const dc_ref back = two(s, DC_OP_MUL, *h, scaled(s, along, 1.0 / (double)s->columns));
    return two(s, DC_OP_DIV, two(s, DC_OP_SUB, g, back), by);
}

static dc_dtype any_float(rng *r)
{
    static const dc_dtype t[] = {DC_F32, DC_F32, DC_F32, DC_BF16, DC_F16, DC_F64};
    return t[rng_below(r, DC_COUNTOF(t))];
}

static void test_norms(rng *r, dc_module *m)
{
    const shape s = shape_new(r, m);
    const dc_dtype t = any_float(r);
    dc_ref h;
    const dc_ref x = full(&s, t), dy = full(&s, t);
    const dc_ref dx = norm_gradient(&s, x, dy, weight(&s, t), &h);
    uint32_t sums = 1;
    give(&s, dx);
    give_sum(r, &s, DC_OP_SUM, two(&s, DC_OP_MUL, dy, h));
    if (rng_below(r, 2)) {
        give_sum(r, &s, DC_OP_SUM, dy);
        sums++;
    }
    attempt(r, &s, "norm", s.columns > 1 ? sums : 0);
}

/* Sums of what the kernel stores: of a gradient that a bias has, too. Of other kinds than additions. */
static void test_stored(rng *r, dc_module *m)
{
    const shape s = shape_new(r, m);
    const dc_ref x = full(&s, DC_F32);
    const dc_ref e =
        dc_graph_op1(s.f, DC_OP_EXP, two(&s, DC_OP_SUB, x, over_columns(&s, DC_OP_MAXR, x)));
    const dc_ref y = two(&s, DC_OP_DIV, e, over_columns(&s, DC_OP_SUM, e));
    give(&s, y);
    give_sum(r, &s, rng_below(r, 2) ? DC_OP_SUM : DC_OP_MAXR, y);
    attempt(r, &s, "softmax", 1);
}

/* What may not be one kernel: other rows are wanted, or the rows wait for the sums. */
static void test_apart(rng *r, dc_module *m)
{
    shape s = shape_new(r, m);
    dc_ref h;
    dc_ref x = full(&s, DC_F32), dy = full(&s, DC_F32);
    give(&s, norm_gradient(&s, x, dy, weight(&s, DC_F32), &h));
    give_sum(r, &s, DC_OP_SUM, two(&s, DC_OP_MUL, dy, dc_graph_flip(s.f, h, 1)));
    if (s.rows > 1 && s.split == 1)
        attempt(r, &s, "rows in another order", 0);

    s = shape_new(r, m);
    x = full(&s, DC_F32);
    const int64_t dim[] = {s.bands, s.height, s.columns};
    const dc_ref all = dc_graph_reduce(s.f, DC_OP_SUM, dc_graph_reshape(s.f, x, 3, dim), 2);
    const dc_ref one = dc_graph_reduce(s.f, DC_OP_MAXR, all, 3);
    const dc_ref wide =
        dc_graph_reshape(s.f, dc_graph_unreduce(s.f, one, 7, 3, dim), s.rank, s.dim);
    const dc_ref off = two(&s, DC_OP_SUB, x, wide);
    give(&s, two(&s, DC_OP_SUB, off, over_columns(&s, DC_OP_MAXR, off)));
    give(&s, all);
    attempt(r, &s, "rows wait for sums", 0);
}

/* Bands so high that a sum over one would round too often. */
static void test_high(rng *r, dc_module *m)
{
    for (int64_t height = MOST_ROWS; height <= MOST_ROWS + 1; height++) {
        shape s = {.f = dc_func_new(m, "high"), .bands = LEAST_BANDS, .height = height};
        s.columns = LEAST_COLUMNS;
        s.rows = s.bands * s.height;
        s.rank = 2;
        s.split = 1;
        s.dim[0] = s.rows;
        s.dim[1] = s.columns;
        s.fits = height <= MOST_ROWS;
        dc_ref h;
        const dc_ref x = full(&s, DC_F32), dy = full(&s, DC_F32);
        give(&s, norm_gradient(&s, x, dy, weight(&s, DC_F32), &h));
        give_sum(r, &s, DC_OP_SUM, two(&s, DC_OP_MUL, dy, h));
        attempt(r, &s, "high bands", 1);
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    dc_module *high = dc_module_new();
    test_high(&r, high);
    dc_module_free(high);
    for (uint64_t i = 0; i < opt[1]; i++) {
        dc_module *m = dc_module_new();
        test_norms(&r, m);
        test_stored(&r, m);
        test_apart(&r, m);
        dc_module_free(m);
    }
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 4713), 20};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    return diff_main(body, opt);
}
