/*
 * Groups by rows (jit/fuse/fuse_rows.c): softmax, log-softmax, layer norm, their gradients and less regular
 * relatives, compiled, against the interpreter (tests/unit/diff.h) for odd extents, any number of
 * row and column axes, views as operands and all float dtypes; and how many groups they become.
 *
 *   test_rows [seed [rounds]]
 */
#include "jit/fuse/fuse.h"

#include "tests/unit/diff.h"

static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 64, 67, 129};

typedef struct rows {
    dc_func *f;
    int rank, split; /* axes from split on are columns */
    int64_t dim[4];
    uint32_t axes; /* the columns, as a mask */
} rows;

static rows rows_new(rng *r, dc_module *m)
{
    rows s = {.f = dc_func_new(m, "rows"), .rank = 1 + rng_below(r, 4)};
    int64_t n = 1;
    s.split = rng_below(r, s.rank);
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = extents[rng_below(r, DC_COUNTOF(extents))];
        if (n * s.dim[i] > 6000)
            s.dim[i] = 1 + rng_below(r, 2);
        n *= s.dim[i];
        if (i >= s.split)
            s.axes |= 1u << i;
    }
    return s;
}

static dc_ref operand(rng *r, const rows *s, dc_dtype t)
{
    dc_type type = dc_type_make(t, s->rank, s->dim);
    int64_t perm[4], turned[4];
    const int by = rng_below(r, 3) == 0 && s->rank > 1;
    for (int i = 0; i < s->rank; i++) {
        perm[i] = (i + by) % s->rank;
        turned[perm[i]] = s->dim[i];
    }
    if (!by)
        return dc_graph_param(s->f, &type, "x");
    type = dc_type_make(t, s->rank, turned);
    return dc_graph_permute(s->f, dc_graph_param(s->f, &type, "x"), perm);
}

static dc_ref reduced(const rows *s, dc_op op, dc_ref a)
{
    return dc_graph_reduce(s->f, op, a, s->axes);
}

static dc_ref spread(const rows *s, dc_ref row)
{
    return dc_graph_unreduce(s->f, row, s->axes, s->rank, s->dim);
}

static dc_ref sub(const rows *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_SUB, a, b);
}

static dc_ref mul(const rows *s, dc_ref a, dc_ref b)
{
    return dc_graph_op2(s->f, DC_OP_MUL, a, b);
}

static dc_ref scaled(const rows *s, dc_ref a, double by)
{
    return mul(s, a, dc_graph_like(s->f, a, by));
}

static void give(const rows *s, dc_ref r)
{
    DC_PUSH(s->f->result, r);
}

static dc_ref softmax(const rows *s, dc_ref x)
{
    const dc_ref e = dc_graph_op1(s->f, DC_OP_EXP, sub(s, x, spread(s, reduced(s, DC_OP_MAXR, x))));
    return dc_graph_op2(s->f, DC_OP_DIV, e, spread(s, reduced(s, DC_OP_SUM, e)));
}

static dc_ref log_softmax(const rows *s, dc_ref x)
{
    const dc_ref c = sub(s, x, spread(s, reduced(s, DC_OP_MAXR, x)));
    const dc_ref sum = reduced(s, DC_OP_SUM, dc_graph_op1(s->f, DC_OP_EXP, c));
    return sub(s, c, spread(s, dc_graph_op1(s->f, DC_OP_LOG, sum)));
}

/* Centred, over the root of the variance; *deviation is that root. */
static dc_ref normalized(const rows *s, dc_ref x, dc_ref *deviation)
{
    int64_t n = 1;
    for (int i = s->split; i < s->rank; i++)
        n *= s->dim[i];
    const dc_ref mean = scaled(s, reduced(s, DC_OP_SUM, x), 1.0 / (double)n);
    const dc_ref c = sub(s, x, spread(s, mean));
    const dc_ref var = scaled(s, reduced(s, DC_OP_SUM, mul(s, c, c)), 1.0 / (double)n);
    *deviation = dc_graph_op1(s->f, DC_OP_SQRT,
                              dc_graph_op2(s->f, DC_OP_ADD, var, dc_graph_like(s->f, var, 1e-3)));
    return dc_graph_op2(s->f, DC_OP_DIV, c, spread(s, *deviation));
}

static uint32_t groups_of(const dc_func *f, bool *row_wise)
{
    dc_job *j = &rt->job;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_groups g;
    CHECK_EQ(dc_fuse(j, &j->scratch, dc_simplify(f), 1, &g), DC_OK);
    const uint32_t n = g.n;
    *row_wise = n > 0 && g.at[0].row_wise;
    dc_arena_rewind(&j->scratch, mark);
    return n;
}

/* `most`: groups where there are enough rows and no axis is of extent 1. */
static void attempt(rng *r, const rows *s, const char *what, uint32_t most)
{
    int64_t n = 1, columns = 1;
    for (int i = 0; i < s->rank; i++) {
        n *= s->dim[i];
        columns *= i < s->split ? 1 : s->dim[i];
    }
    bool row_wise = false;
    if (columns > 1 && most > 0) {
        if (!CHECK(groups_of(s->f, &row_wise) <= most && row_wise))
            printf("%s, rank %d, split %d: groups\n", what, s->rank, s->split);
    }
    if (!CHECK(diff_try(s->f, r, false, true)))
        printf("%s, %lld of %lld in a row\n", what, (long long)columns, (long long)n);
}

static void test_forward(rng *r, dc_module *m)
{
    static const dc_dtype floats[] = {DC_F32, DC_F32, DC_F64, DC_F16, DC_BF16};
    const dc_dtype t = floats[rng_below(r, DC_COUNTOF(floats))];
    rows s = rows_new(r, m);
    give(&s, softmax(&s, operand(r, &s, t)));
    attempt(r, &s, "softmax", 1);

    s = rows_new(r, m);
    give(&s, log_softmax(&s, operand(r, &s, t)));
    attempt(r, &s, "log-softmax", 1);

    s = rows_new(r, m);
    dc_ref deviation;
    const dc_ref y = normalized(&s, operand(r, &s, DC_F32), &deviation);
    give(&s, dc_graph_op2(s.f, DC_OP_ADD, mul(&s, y, operand(r, &s, DC_F32)), y));
    if (rng_below(r, 2))
        give(&s, deviation); /* a result for each row */
    attempt(r, &s, "layer norm", 1);
}

static void test_backward(rng *r, dc_module *m)
{
    rows s = rows_new(r, m);
    const dc_ref y = softmax(&s, operand(r, &s, DC_F32)), dy = operand(r, &s, DC_F32);
    if (rng_below(r, 2))
        give(&s, y);
    give(&s, mul(&s, y, sub(&s, dy, spread(&s, reduced(&s, DC_OP_SUM, mul(&s, y, dy))))));
    attempt(r, &s, "gradient of softmax", 1);

    s = rows_new(r, m);
    dc_ref deviation;
    const dc_ref h = normalized(&s, operand(r, &s, DC_F32), &deviation);
    const dc_ref g = operand(r, &s, DC_F32);
    const dc_ref a = spread(&s, scaled(&s, reduced(&s, DC_OP_SUM, g), 0.125));
    const dc_ref b = spread(&s, scaled(&s, reduced(&s, DC_OP_SUM, mul(&s, g, h)), 0.125));
    const dc_ref dx = sub(&s, sub(&s, g, a), mul(&s, h, b));
    give(&s, dc_graph_op2(s.f, DC_OP_DIV, dx, spread(&s, deviation)));
    attempt(r, &s, "gradient of layer norm", 1);
}

/* Values for rows that others read, two ways to split, sums of what is itself summed elsewhere. */
static void test_mixed(rng *r, dc_module *m)
{
    rows s = rows_new(r, m);
    const dc_ref x = operand(r, &s, DC_F32), y = softmax(&s, x);
    const dc_ref top = reduced(&s, DC_OP_MAXR, x), mean = scaled(&s, reduced(&s, DC_OP_SUM, y), 2);
    give(&s, dc_graph_op2(s.f, DC_OP_ADD, top, mean));
    give(&s, dc_graph_op1(s.f, DC_OP_EXP, sub(&s, x, spread(&s, top))));
    if (rng_below(r, 2))
        give(&s, dc_graph_reduce(s.f, DC_OP_SUM, y, 1)); /* over the first axis */
    attempt(r, &s, "values for rows", 0);

    s = rows_new(r, m);
    rows other = s; /* the same elements, in other rows */
    other.split = rng_below(r, s.rank);
    other.axes = 0;
    for (int i = other.split; i < s.rank; i++)
        other.axes |= 1u << i;
    const dc_ref z = softmax(&s, operand(r, &s, DC_F32));
    give(&s, softmax(&other, z));
    if (rng_below(r, 2))
        give(&s, z);
    attempt(r, &s, "two ways to split", 0);

    s = rows_new(r, m);
    const dc_ref v = operand(r, &s, DC_F32);
    const dc_ref w = mul(&s, v, spread(&s, reduced(&s, DC_OP_SUM, v)));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, w, (1u << s.rank) - 1)); /* over all */
    give(&s, dc_graph_flip(s.f, w, 1));
    attempt(r, &s, "read elsewhere", 0);
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    for (uint64_t i = 0; i < opt[1]; i++) {
        dc_module *m = dc_module_new();
        test_forward(&r, m);
        test_backward(&r, m);
        test_mixed(&r, m);
        dc_module_free(m);
    }
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 4712), 20};
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    return diff_main(body, opt);
}
