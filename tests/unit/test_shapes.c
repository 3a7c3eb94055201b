/*
 * Compiled code against the interpreter (tests/unit/diff.h) on shapes that random graphs seldom
 * have: products of odd, prime and unit extents with transposed, padded and strided operands,
 * reductions over any axes of high ranks, axes of a million, values of no elements, all dtypes in
 * one kernel, cells that kernels with reductions write; and graphs that were hard for fusion.
 *
 *   test_shapes [seed [rounds]]
 */
#include "core/ir/conv.h"

#include <string.h>

#include "tests/unit/diff.h"

static const int64_t extents[] = {1, 1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 31, 33, 67};
static const dc_dtype numbers[] = {DC_F32, DC_F32, DC_I32, DC_U8, DC_U32};

static int64_t extent(rng *r, int64_t most)
{
    int64_t n;
    do
        n = extents[rng_below(r, DC_COUNTOF(extents))];
    while (n > most);
    return n;
}

static dc_ref param(dc_func *f, dc_dtype t, int rank, const int64_t *dim)
{
    const dc_type type = dc_type_make(t, rank, dim);
    return dc_graph_param(f, &type, "x");
}

static void give(dc_func *f, dc_ref r)
{
    DC_PUSH(f->result, r);
}

static void attempt(rng *r, const dc_func *f, const char *what)
{
    if (!CHECK(diff_try(f, r, false, true)))
        printf("%s\n", what);
}

/* A parameter or a view of one (permuted, a slice, padded, flipped) of these dims. */
static dc_ref view(rng *r, dc_func *f, dc_dtype t, int rank, const int64_t *dim)
{
    int64_t d[DC_MAX_RANK], a[DC_MAX_RANK], step[DC_MAX_RANK];
    const int kind = rng_below(r, 5);
    for (int i = 0; i < rank; i++) {
        step[i] = 1 + rng_below(r, 2);
        a[i] = kind == 1 ? rng_below(r, 3) : dim[i] > 2 ? rng_below(r, 2) : 0;
        if (kind == 1) /* a slice of something larger */
            d[i] = dim[i] > 0 ? a[i] + (dim[i] - 1) * step[i] + 1 : a[i];
        else /* padded to what is wanted */
            d[i] = dim[i] > 0 ? (dim[i] - a[i] - 1) / step[i] + 1 : 0;
        a[i] = dim[i] > 0 ? a[i] : 0;
    }
    switch (kind) {
    case 0: {
        int64_t perm[DC_MAX_RANK];
        for (int i = 0; i < rank; i++) {
            perm[i] = (i + 1) % rank;
            d[perm[i]] = dim[i];
        }
        return dc_graph_permute(f, param(f, t, rank, d), perm);
    }
    case 1:
        return dc_graph_slice(f, param(f, t, rank, d), a, step, dim);
    case 2:
        return dc_graph_pad(f, param(f, t, rank, d), a, step, dim, dc_bits_of(t, 1));
    case 3:
        return dc_graph_flip(f, param(f, t, rank, dim), (uint32_t)rng_below(r, 1 << rank));
    default:
        return param(f, t, rank, dim);
    }
}

/* Products ------------------------------------------------------------------------------------ */

static void product(rng *r, dc_module *m, int64_t rows, int64_t inner, int64_t columns, int how)
{
    const dc_dtype t = numbers[rng_below(r, DC_COUNTOF(numbers))];
    const bool ta = how & 1, tb = how & 2;
    const int64_t da[2] = {ta ? inner : rows, ta ? rows : inner};
    const int64_t db[2] = {tb ? columns : inner, tb ? inner : columns}, dy[2] = {rows, columns};
    const int64_t ca[1] = {!ta}, cb[1] = {tb};
    dc_func *f = dc_func_new(m, "product");
    const dc_ref a = how & 4 ? view(r, f, t, 2, da) : param(f, t, 2, da);
    const dc_ref b = how & 8 ? view(r, f, t, 2, db) : param(f, t, 2, db);
    const dc_ref y = dc_graph_dot(f, a, b, 0, NULL, NULL, 1, ca, cb);
    const dc_ref old = param(f, t, 2, dy);
    give(f,
         rng_below(r, 2) ? y : dc_graph_op2(f, DC_OP_MAX, dc_graph_op2(f, DC_OP_ADD, old, y), old));
    attempt(r, f, "product");
}

static void test_products(rng *r, dc_module *m, int rounds)
{
    for (int how = 0; how < 16; how++) { /* 1 in each place */
        product(r, m, 1, 67, 31, how);
        product(r, m, 31, 1, 67, how);
        product(r, m, 67, 31, 1, how);
        product(r, m, 1, 1, 1, how);
        product(r, m, 67, 67, 67, how);
    }
    for (int i = 0; i < rounds; i++)
        product(r, m, extent(r, 67), extent(r, 67), extent(r, 67), rng_below(r, 16));
}

/* Several batch and contracted axes in any order, extents of zero among them. */
static void contraction(rng *r, dc_module *m)
{
    const dc_dtype t = numbers[rng_below(r, DC_COUNTOF(numbers))];
    const int nb = rng_below(r, 3), nc = rng_below(r, 3);
    const int rank[2] = {nb + nc + rng_below(r, 3), nb + nc + rng_below(r, 3)};
    int64_t dim[2][DC_MAX_RANK], place[2][DC_MAX_RANK], all = 1;
    dc_ref in[2];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < rank[s]; i++)
            place[s][i] = i;
        for (int i = rank[s] - 1; i > 0; i--) {
            const int k = rng_below(r, i + 1);
            const int64_t swap = place[s][i];
            place[s][i] = place[s][k];
            place[s][k] = swap;
        }
        for (int i = 0; i < rank[s]; i++) {
            int64_t n = rng_below(r, 60) == 0 ? 0 : extent(r, 17);
            if (all * n > 30000)
                n = 1;
            if (s == 1 && i < nb + nc)
                n = dim[0][place[0][i]];
            else
                all *= n > 0 ? n : 1;
            dim[s][place[s][i]] = n;
        }
    }
    dc_func *f = dc_func_new(m, "contraction");
    for (int s = 0; s < 2; s++)
        in[s] = rank[s] > 0 ? view(r, f, t, rank[s], dim[s]) : param(f, t, 0, NULL);
    give(f,
         dc_graph_dot(f, in[0], in[1], nb, place[0], place[1], nc, place[0] + nb, place[1] + nb));
    attempt(r, f, "contraction");
}

/* Reductions ---------------------------------------------------------------------------------- */

static void reduction(rng *r, dc_module *m)
{
    static const dc_op ops[] = {DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR};
    const dc_dtype t = numbers[rng_below(r, DC_COUNTOF(numbers))];
    const int rank = 1 + rng_below(r, DC_MAX_RANK);
    int64_t dim[DC_MAX_RANK], kept[DC_MAX_RANK], all = 1;
    const uint32_t axes = (uint32_t)rng_below(r, 1 << rank);
    int n = 0;
    for (int i = 0; i < rank; i++) {
        dim[i] = all > 2000 ? extent(r, 2) : extent(r, 67);
        all *= dim[i];
        if (!(axes >> i & 1))
            kept[n++] = dim[i];
    }
    dc_func *f = dc_func_new(m, "reduction");
    dc_ref x = view(r, f, t, rank, dim);
    if (t == DC_F32 && rng_below(r, 2))
        x = dc_graph_op1(f, DC_OP_EXP, x);
    if (rng_below(r, 2)) { /* times something that is the same along every other axis */
        int64_t thin[DC_MAX_RANK];
        for (int i = 0; i < rank; i++)
            thin[i] = i % 2 ? 1 : dim[i];
        x = dc_graph_op2(f, DC_OP_MUL, x, dc_graph_expand(f, param(f, t, rank, thin), dim));
    }
    const dc_ref y = dc_graph_reduce(f, ops[rng_below(r, DC_COUNTOF(ops))], x, axes);
    const dc_dtype sum = (dc_dtype)dc_node_at(f, y)->dtype;
    const dc_ref old = param(f, sum, n, kept);
    give(f, rng_below(r, 2) ? y : dc_graph_op2(f, DC_OP_SUB, old, y));
    if (rng_below(r, 2)) /* and back to where it came from */
        give(f, dc_graph_op2(f, DC_OP_ADD, dc_graph_cast(f, x, sum),
                             dc_graph_unreduce(f, y, axes, rank, dim)));
    attempt(r, f, "reduction");
}

/* Many rows of few columns, which are added up side by side, with rows left over. */
static void test_narrow(rng *r, dc_module *m)
{
    static const dc_op ops[] = {DC_OP_SUM, DC_OP_MAXR, DC_OP_MINR};
    static const dc_dtype types[] = {DC_F32, DC_F32, DC_I32, DC_U8, DC_F16};
    for (int i = 0; i < 12; i++) {
        const int64_t columns = 1 + rng_below(r, 9), first = 1 + rng_below(r, 3);
        const int64_t dim[3] = {first, (8000 + rng_below(r, 9000)) / columns / first, columns};
        dc_func *f = dc_func_new(m, "narrow");
        dc_ref x = view(r, f, types[rng_below(r, DC_COUNTOF(types))], 3, dim);
        if (dc_node_at(f, x)->dtype == DC_F32 && rng_below(r, 2))
            x = dc_graph_op2(f, DC_OP_MUL, x, param(f, DC_F32, 3, dim));
        give(f, dc_graph_reduce(f, ops[rng_below(r, DC_COUNTOF(ops))], x, rng_below(r, 4) ? 3 : 2));
        attempt(r, f, "narrow");
    }
}

/* Compiled only: the nest interpreter is slow. */
static void test_long(rng *r, dc_module *m)
{
    static const int64_t dim[][2] = {{1, 1000003}, {3, 33333}, {100003, 1},
                                     {333333, 3},  {5021, 20}, {20, 20021}};
    for (size_t i = 0; i < DC_COUNTOF(dim); i++)
        for (uint32_t axes = 0; axes < 4; axes++) {
            const dc_mark mark = dc_arena_mark(&rt->job.scratch);
            dc_func *f = dc_func_new(m, "long");
            const dc_ref x = param(f, DC_F32, 2, dim[i]);
            give(f, dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, x, x), axes));
            const problem p = prepare(f, r, false);
            CHECK(run_compiled(&p) == DC_OK && compare(&p, "long axis"));
            dc_arena_rewind(&rt->job.scratch, mark);
        }
}

static void test_empty(rng *r, dc_module *m)
{
    static const int64_t dim[][3] = {{0, 5, 7}, {5, 0, 7}, {5, 7, 0}, {0, 0, 0}};
    for (size_t i = 0; i < DC_COUNTOF(dim); i++) {
        const int64_t *d = dim[i], two[1] = {2}, one[1] = {1};
        dc_func *f = dc_func_new(m, "empty");
        const dc_ref x = param(f, DC_F32, 3, d);
        for (uint32_t axes = 0; axes < 8; axes++) /* sums over nothing are 0 */
            give(f, dc_graph_reduce(f, DC_OP_SUM, x, axes));
        give(f, dc_graph_reduce(f, DC_OP_MAXR, x, 1u << i % 3));
        const int64_t db[2] = {d[2], 3};
        give(f, dc_graph_dot(f, x, param(f, DC_F32, 2, db), 0, NULL, NULL, 1, two, (int64_t[]){0}));
        const int64_t dc[2] = {4, d[1]};
        give(f, dc_graph_dot(f, param(f, DC_F32, 2, dc), x, 0, NULL, NULL, 1, one, one));
        attempt(r, f, "no elements");
    }
}

/* Element-wise -------------------------------------------------------------------------------- */

/* x as t, compared as u, chosen and cast to every dtype: masks of all widths in one kernel. */
static void test_dtypes(rng *r, dc_module *m)
{
    const int64_t dim[2] = {3, 41};
    for (int t = 0; t < DC_DTYPE__COUNT; t++)
        for (int u = 0; u < DC_DTYPE__COUNT; u++) {
            dc_func *f = dc_func_new(m, "dtypes");
            const dc_ref x = param(f, (dc_dtype)t, 2, dim), y = param(f, (dc_dtype)u, 2, dim);
            const dc_ref mask = dc_graph_op2(f, DC_OP_LT, dc_graph_cast(f, x, (dc_dtype)u), y);
            const dc_ref odd = dc_graph_cast(f, y, DC_BOOL);
            for (int to = 0; to < DC_DTYPE__COUNT; to++) {
                const dc_ref a = dc_graph_cast(f, x, (dc_dtype)to),
                             b = dc_graph_cast(f, y, (dc_dtype)to);
                give(f, dc_graph_op3(f, DC_OP_WHERE, mask, a,
                                     dc_graph_op3(f, DC_OP_WHERE, odd, b, a)));
            }
            attempt(r, f, "dtypes");
        }
}

/* A last axis too short for vectors, under something costly, also in place of an old value. */
static void test_short(rng *r, dc_module *m)
{
    for (int64_t last = 1; last < 5; last++)
        for (int64_t n = 15; n < 51; n += 17) {
            const int64_t dim[3] = {2, n, last}, row[3] = {1, 1, last};
            dc_func *f = dc_func_new(m, "short");
            const dc_ref x = view(r, f, DC_F32, 3, dim);
            const dc_ref b = dc_graph_expand(f, param(f, DC_F32, 3, row), dim);
            give(f, dc_graph_op1(f, DC_OP_EXP, dc_graph_op2(f, DC_OP_MUL, x, b)));
            give(f, dc_graph_op2(f, DC_OP_LT, x, b));
            attempt(r, f, "short last axis");
        }
}

/* Cells --------------------------------------------------------------------------------------- */

/* As run_compiled, with all parameters as cells; result i is stored to cell set[i]. */
static dc_status run_cells(const problem *p, const uint32_t *set, uint32_t *donated)
{
    dc_job *j = &rt->job;
    const uint32_t ncell = p->f->param.n, nset = p->f->result.n;
    const dc_exec_desc d = {.fn = p->f, .name = "cells", .ncell = ncell, .nset = nset, .set = set};
    dc_cell **cell = DC_NEW_ARRAY(&j->scratch, dc_cell *, ncell);
    dc_exec_info info;
    dc_fault fault;
    dc_inst *inst;
    dc_exec *e;
    for (uint32_t i = 0; i < ncell; i++) {
        const dc_type t = dc_node_type(p->f, p->f->param.at[i]);
        DC_TRY(dc_cell_new(rt, j, &t, "c", true, &cell[i]));
        memcpy(cell[i]->store->mem, p->param[i], dc_type_bytes(&t));
    }
    DC_TRY(dc_exec_build(rt, j, &d, &e));
    dc_exec_info_of(e, &info);
    *donated = info.donated;
    DC_TRY(dc_inst_new(rt, j, e, cell, &inst));
    DC_TRY(dc_inst_call(inst, j, NULL, NULL, &fault));
    for (uint32_t i = 0; i < nset; i++) {
        const dc_type t = dc_node_type(p->f, p->f->result.at[i]);
        memcpy(p->got[i], cell[set[i]]->store->mem, dc_type_bytes(&t));
    }
    dc_inst_free(inst);
    dc_exec_release(e);
    for (uint32_t i = 0; i < ncell; i++)
        dc_cell_release(cell[i]);
    return DC_OK;
}

static void check_cells(rng *r, dc_func *f, const uint32_t *set, uint32_t donated)
{
    const dc_mark mark = dc_arena_mark(&rt->job.scratch);
    const problem p = prepare(f, r, false);
    uint32_t n = 0;
    CHECK(run_cells(&p, set, &n) == DC_OK && compare(&p, "cells"));
    if (rt->opt.opt > 0)
        CHECK_EQ(n, donated);
    dc_arena_rewind(&rt->job.scratch, mark);
}

static void test_cells(rng *r, dc_module *m)
{
    static const int64_t dims[][3] = {{7, 13, 67}, {64, 16, 32}, {1, 5, 1}, {33, 1, 10}};
    const uint32_t set[4] = {0, 1, 2, 3};
    const int64_t zero[1] = {0};
    for (size_t i = 0; i < DC_COUNTOF(dims); i++) {
        const int64_t *d = dims[i], dw[2] = {d[1], d[2]}, dx[2] = {d[0], d[1]},
                      dg[2] = {d[0], d[2]};
        dc_func *f = dc_func_new(m, "update"); /* a product and three cells in one kernel */
        const dc_ref w = param(f, DC_F32, 2, dw), mom = param(f, DC_F32, 2, dw);
        const dc_ref b = param(f, DC_F32, 1, dw + 1), x = param(f, DC_F32, 2, dx);
        const dc_ref g = param(f, DC_F32, 2, dg);
        const dc_ref dot = dc_graph_dot(f, x, g, 0, NULL, NULL, 1, zero, zero);
        const dc_ref next = dc_graph_op2(
            f, DC_OP_ADD, dc_graph_op2(f, DC_OP_MUL, mom, dc_graph_like(f, mom, 0.5)), dot);
        give(f, dc_graph_op2(f, DC_OP_SUB, w, dc_graph_op2(f, DC_OP_MUL, next, w)));
        give(f, next);
        give(f, dc_graph_op2(f, DC_OP_SUB, b, dc_graph_reduce(f, DC_OP_SUM, g, 1)));
        check_cells(r, f, set, 3);

        f = dc_func_new(
            m, "itself"); /* less its own sums: a kernel that needs a row before it writes */
        const dc_ref c = param(f, DC_F32, 2, dg);
        const dc_ref row = dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_SUM, c, 2), 2, 2, dg);
        const dc_ref column = dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_SUM, c, 1), 1, 2, dg);
        give(f, dc_graph_op2(f, DC_OP_SUB, dc_graph_op2(f, DC_OP_SUB, c, row), column));
        check_cells(r, f, set, d[0] * d[2] > 1 ? 0 : 1);

        f = dc_func_new(m, "turned"); /* read elsewhere than written: by a copy */
        const dc_ref v = param(f, DC_F32, 2, dg);
        give(f, dc_graph_op2(f, DC_OP_ADD, v, dc_graph_flip(f, v, 3)));
        check_cells(r, f, set, d[0] * d[2] > 1 ? 0 : 1);
    }
}

/* Fusion -------------------------------------------------------------------------------------- */

/* y joins z's kernel, and r that of v: each would wait for the other's. */
static void two_ways(rng *r, dc_module *m)
{
    const int64_t dp[1] = {3}, dq[2] = {4, 3};
    dc_func *f = dc_func_new(m, "two ways");
    const dc_ref p = param(f, DC_F32, 1, dp), q = param(f, DC_F32, 2, dq);
    const dc_ref y = dc_graph_op1(f, DC_OP_EXP, q);
    const dc_ref s = dc_graph_op2(f, DC_OP_ADD, p, dc_graph_reduce(f, DC_OP_SUM, y, 1));
    const dc_ref v = dc_graph_op1(f, DC_OP_NEG, p);
    const dc_ref z = dc_graph_op2(f, DC_OP_ADD, y, dc_graph_unreduce(f, v, 1, 2, dq));
    give(f, y);
    give(f, s);
    give(f, v);
    give(f, z);
    attempt(r, f, "groups that wait for each other");
}

/* Expressions that are exponentially long when written out. */
static void shared(rng *r, dc_module *m, int levels, int64_t n, bool turned)
{
    dc_func *f = dc_func_new(m, "shared");
    dc_ref v = param(f, DC_F32, 1, &n);
    for (int i = 0; i < levels; i++) {
        const dc_ref half = dc_graph_op2(f, DC_OP_MUL, v, dc_graph_like(f, v, 0.5));
        v = dc_graph_op2(f, DC_OP_ADD, half,
                         dc_graph_op2(f, DC_OP_MIN, half, turned ? dc_graph_flip(f, v, 1) : v));
    }
    give(f, v);
    attempt(r, f, "shared");
}

/* Pads at many distances: as many positions as there are ways through the graph. */
/* Images that are small beside the window, and of many channels: taps that meet padding alone, sums in pieces. */
static void image(rng *r, dc_module *m)
{
    static const int64_t channels[] = {1, 3, 8, 17, 64, 128, 144};
    dc_conv c = dc_conv_plain(2);
    const int64_t in = channels[rng_below(r, DC_COUNTOF(channels))];
    const int64_t out = in > 64 ? 1 + rng_below(r, 20) : extent(r, 67);
    const int64_t most = in > 64 ? 4 : 9;
    int64_t x[4] = {1 + rng_below(r, 2), in, 1 + rng_below(r, (int)most),
                    1 + rng_below(r, (int)most)};
    int64_t k[4] = {out, in, 0, 0};
    for (int i = 0; i < 2; i++) {
        dc_conv_dim *d = &c.dim[i];
        *d = (dc_conv_dim){.stride = 1 + rng_below(r, 2),
                           .lo = rng_below(r, 4),
                           .hi = rng_below(r, 4),
                           .dilate_in = 1 + (rng_below(r, 4) == 0),
                           .dilate = 1 + (rng_below(r, 4) == 0),
                           .reversed = rng_below(r, 2)};
        do
            k[2 + i] = 1 + rng_below(r, 5);
        while ((k[2 + i] - 1) * d->dilate + 1 > (x[2 + i] - 1) * d->dilate_in + 1 + d->lo + d->hi);
    }
    dc_func *f = dc_func_new(m, "image");
    const dc_ref a = param(f, DC_F32, 4, x), b = param(f, DC_F32, 4, k);
    const dc_ref y = dc_graph_conv(f, a, b, &c);
    give(f, rng_below(r, 2) ? y : dc_graph_op2(f, DC_OP_MAX, y, dc_graph_like(f, y, 0)));
    attempt(r, f, "image");
}

/* Short axes that lie along memory, or nearly so, to where another one does. */
static void short_axes(rng *r, dc_module *m)
{
    const int64_t part = 1 + rng_below(r, 4), other = 1 + rng_below(r, 3),
                  n = 8 * (1 + rng_below(r, 5));
    int64_t dim[4] = {rng_below(r, 3) == 0 ? extent(r, 67) : n, 4 * (1 + rng_below(r, 6)), part,
                      other};
    int64_t start[4] = {0}, step[4] = {1, 1, 1, 1}, cut[4], perm[4] = {2, 3, 1, 0};
    dc_func *f = dc_func_new(m, "short_axes");
    dc_ref x = param(f, rng_below(r, 4) ? DC_F32 : DC_F16, 4, dim);
    memcpy(cut, dim, sizeof cut);
    for (int i = 2; i < 4; i++)
        if (rng_below(r, 3) == 0) {
            start[i] = rng_below(r, (int)dim[i]);
            cut[i] = 1;
        }
    x = dc_graph_slice(f, x, start, step, cut);
    if (rng_below(r, 3) == 0) {
        perm[0] = 1;
        perm[2] = 2;
    }
    const dc_ref y = dc_graph_permute(f, x, perm);
    give(f, rng_below(r, 2) ? y
                            : dc_graph_op2(f, DC_OP_ADD, y,
                                           param(f, (dc_dtype)dc_node_at(f, y)->dtype, 4,
                                                 dc_node_at(f, y)->dim)));
    attempt(r, f, "short axes");
}

static void many_positions(rng *r, dc_module *m)
{
    const int64_t n = 100, step[1] = {1}, zero[1] = {0}, longer[1] = {164};
    dc_func *f = dc_func_new(m, "positions");
    dc_ref v = param(f, DC_F32, 1, &n);
    for (int i = 0; i < 12; i++) {
        const int64_t lo[1] = {(1 << (i % 6)) + i / 6};
        const dc_ref moved = dc_graph_pad(f, v, lo, step, longer, 0);
        v = dc_graph_op2(f, DC_OP_SUB, v, dc_graph_slice(f, moved, zero, step, &n));
        if (i % 3 == 2)
            v = dc_graph_op2(f, DC_OP_MUL, v, dc_graph_like(f, v, 0.25));
    }
    give(f, v);
    attempt(r, f, "positions");
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    const int rounds = (int)opt[1];
    rng r = {opt[0]};
    DC_UNUSED(j);
    dc_module *m = dc_module_new();
    two_ways(&r, m);
    shared(&r, m, 60, 37, false);
    shared(&r, m, 12, 37, true);
    many_positions(&r, m);
    test_dtypes(&r, m);
    test_short(&r, m);
    test_empty(&r, m);
    test_long(&r, m);
    test_narrow(&r, m);
    test_cells(&r, m);
    test_products(&r, m, rounds);
    dc_module_free(m);
    for (int i = 0; i < 2 * rounds; i++) {
        m = dc_module_new();
        contraction(&r, m);
        reduction(&r, m);
        image(&r, m);
        short_axes(&r, m);
        dc_module_free(m);
    }
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 4711), 20};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    return diff_main(body, opt);
}
