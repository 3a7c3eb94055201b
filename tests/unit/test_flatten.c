/*
 * From nest to machine code: nests built by hand, run on the device `cpu` between guard zones, and
 * compared with the interpreter of the nest form or with C written out. Each with all passes and
 * with each pass skipped. Values are small integers, so that sums are exact in any order.
 */
#include "tests/unit/kernel_run.h"
#include "tests/unit/nest_interp.h"

enum { MAX_PARAMS = 8, SKIPS = 4 }; /* SKIPS: subsets of the two passes */

/* A kernel, its parameters' content before, and how its answer is known. */
typedef struct example {
    const char *name;
    dc_kernel *k;
    void *mem[MAX_PARAMS];                                     /* by parameter */
    void (*expect)(const struct example *e, void *const *mem); /* NULL: the interpreter */
    int number[SKIPS];
} example;

/* Building ---------------------------------------------------------------------------------- */

static const dc_pred always;

static dc_ix axis(dc_kernel *k, uint32_t a)
{
    return dc_ix_axis(k, a);
}

/* a * c + b */
static dc_ix at2(dc_kernel *k, dc_ix a, int64_t c, dc_ix b)
{
    return dc_ix_add(k, dc_ix_mul(k, a, c), b);
}

static uint32_t new_axis(dc_kernel *k, const char *name, int64_t extent, dc_axis_kind kind)
{
    const uint32_t a = dc_axis_new(k, name, extent, false);
    k->axis.at[a].kind = (uint8_t)kind;
    return a;
}

static uint32_t input(dc_kernel *k, const char *name, dc_dtype t, int64_t count)
{
    return dc_buffer_new(k, name, t, count, DC_SCOPE_PARAM, DC_MODE_IN);
}

static uint32_t output(dc_kernel *k, const char *name, dc_dtype t, int64_t count)
{
    return dc_buffer_new(k, name, t, count, DC_SCOPE_PARAM, DC_MODE_OUT);
}

static uint32_t local(dc_kernel *k, const char *name, dc_dtype t, int64_t count)
{
    return dc_buffer_new(k, name, t, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
}

static dc_vx load(dc_kernel *k, uint32_t buf, dc_ix at)
{
    return dc_vx_load(k, buf, at, always);
}

static dc_vx op2(dc_kernel *k, dc_op op, dc_vx a, dc_vx b)
{
    const dc_op_row *row = dc_op_row_of(op);
    const dc_dtype t = (dc_dtype)k->vx.at[b].dtype;
    return dc_vx_op(k, op, row->flags & DC_OPF_CMP ? DC_BOOL : t, (dc_vx[]){a, b}, 2);
}

static dc_vx cast(dc_kernel *k, dc_vx a, dc_dtype t)
{
    return dc_vx_op(k, DC_OP_CAST, t, &a, 1);
}

static dc_vx number(dc_kernel *k, dc_dtype t, double v)
{
    return dc_vx_const(k, t, dc_bits_of(t, v));
}

static dc_stmt *set(dc_kernel *k, uint32_t buf, dc_ix at, dc_vx value)
{
    dc_stmt *s = dc_stmt_set(k, 1);
    s->put[0] = (dc_put){buf, at, value};
    return s;
}

static dc_stmt *loop(dc_kernel *k, uint32_t a, dc_stmt *body)
{
    return dc_stmt_loop(k, a, body);
}

static dc_stmt *then(dc_stmt *first, dc_stmt *second)
{
    first->next = second;
    return first;
}

/* Memory for all parameters, filled with small numbers. */
static void fill(example *e)
{
    for (uint32_t n = 0; n < e->k->buf.n; n++) {
        const dc_buffer *b = &e->k->buf.at[n];
        const dc_dtype t = (dc_dtype)b->dtype;
        if (b->scope != DC_SCOPE_PARAM)
            continue;
        char *mem = calloc((size_t)b->count, dc_dtype_size(t));
        for (int64_t i = 0; i < b->count; i++)
            dc_bits_store(t, mem + (size_t)i * dc_dtype_size(t),
                          dc_bits_of(t, (double)((i * 7 + n * 3) % 23 - (t == DC_U8 ? 0 : 9))));
        e->mem[b->param] = mem;
    }
}

/* Kernels ----------------------------------------------------------------------------------- */

/* out[i] = x[i] * y[0] + i, 100 elements in blocks of 16: a scalar operand and a tail. */
static dc_kernel *map_with_tail(void)
{
    dc_kernel *k = dc_kernel_new("map");
    const uint32_t o = new_axis(k, "i.o", 7, DC_AXIS_GRID),
                   v = new_axis(k, "i.i", 16, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_F32, 100), x = input(k, "x0", DC_F32, 100);
    const uint32_t y = input(k, "x1", DC_F32, 1);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v));
    const dc_vx scaled = op2(k, DC_OP_MUL, load(k, x, i), load(k, y, dc_ix_const(k, 0)));
    const dc_vx pos = cast(k, dc_vx_index(k, i, DC_I32), DC_F32);
    dc_stmt *s = set(k, out, i, op2(k, DC_OP_ADD, scaled, pos));
    s->pred = dc_pred_and(k, always, i, 100);
    k->root = loop(k, o, loop(k, v, s));
    return k;
}

static void expect_map(const example *e, void *const *mem)
{
    const float *x = e->mem[1], *y = e->mem[2];
    for (int i = 0; i < 100; i++)
        ((float *)mem[0])[i] = x[i] * y[0] + (float)i;
}

/* out[j, i] = x[i, j] with lanes along j: scattered stores, then the other way: gathered loads. */
static dc_kernel *transpose(bool scatter)
{
    enum { ROWS = 12, COLS = 24 };
    dc_kernel *k = dc_kernel_new("transpose");
    const uint32_t i = new_axis(k, "i", ROWS, DC_AXIS_GRID),
                   jo = new_axis(k, "j.o", 3, DC_AXIS_SERIAL);
    const uint32_t ji = new_axis(k, "j.i", 8, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_F32, ROWS * COLS);
    const uint32_t x = input(k, "x0", DC_F32, ROWS * COLS);
    const dc_ix j = at2(k, axis(k, jo), 8, axis(k, ji));
    const dc_ix rows = at2(k, axis(k, i), COLS, j), cols = at2(k, j, ROWS, axis(k, i));
    dc_stmt *s =
        scatter ? set(k, out, cols, load(k, x, rows)) : set(k, out, rows, load(k, x, cols));
    k->root = loop(k, i, loop(k, jo, loop(k, ji, s)));
    return k;
}

static dc_kernel *scattered(void)
{
    return transpose(true);
}

static dc_kernel *gathered(void)
{
    return transpose(false);
}

/* The same with a tail: masked scatter and gather; lanes also in a quotient and a remainder. */
static dc_kernel *reshaped(void)
{
    enum { COUNT = 90 };
    dc_kernel *k = dc_kernel_new("reshaped");
    const uint32_t o = new_axis(k, "i.o", 6, DC_AXIS_SERIAL),
                   v = new_axis(k, "i.i", 16, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_I32, COUNT), x = input(k, "x0", DC_I32, COUNT);
    const uint32_t out1 = output(k, "out1", DC_U8, COUNT), x1 = input(k, "x1", DC_U8, COUNT);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v));
    const dc_ix turned =
        at2(k, dc_ix_mod(k, i, 9), 10, dc_ix_div(k, i, 9)); /* [10, 9] to [9, 10] */
    dc_stmt *s = dc_stmt_set(k, 2);
    s->put[0] = (dc_put){out, turned, load(k, x, i)};
    s->put[1] = (dc_put){out1, i, load(k, x1, turned)};
    s->pred = dc_pred_and(k, always, i, COUNT);
    k->root = loop(k, o, loop(k, v, s));
    return k;
}

/* Every second element, masked: a stride other than 1 under a test. */
static dc_kernel *strided_masked(void)
{
    dc_kernel *k = dc_kernel_new("strided");
    const uint32_t o = new_axis(k, "i.o", 3, DC_AXIS_GRID),
                   v = new_axis(k, "i.i", 8, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_U32, 39), x = input(k, "x0", DC_U32, 39);
    const dc_ix i = at2(k, axis(k, o), 8, axis(k, v)), twice = dc_ix_mul(k, i, 2);
    dc_stmt *s = set(k, out, twice, op2(k, DC_OP_XOR, load(k, x, twice), number(k, DC_U32, 5)));
    s->pred = dc_pred_and(k, always, i, 20);
    k->root = loop(k, o, loop(k, v, s));
    return k;
}

/* out[i] = sum over j of x[i, j], a scalar accumulator. */
static dc_kernel *reduction(void)
{
    dc_kernel *k = dc_kernel_new("reduction");
    const uint32_t i = new_axis(k, "i", 5, DC_AXIS_GRID), j = new_axis(k, "j", 37, DC_AXIS_SERIAL);
    const uint32_t out = output(k, "out0", DC_F32, 5), x = input(k, "x0", DC_F32, 5 * 37);
    const uint32_t acc = local(k, "acc", DC_F32, 1);
    const dc_ix zero = dc_ix_const(k, 0), cell = at2(k, axis(k, i), 37, axis(k, j));
    dc_stmt *add = set(k, acc, zero, op2(k, DC_OP_ADD, load(k, acc, zero), load(k, x, cell)));
    k->root = loop(k, i,
                   then(set(k, acc, zero, number(k, DC_F32, 0)),
                        then(loop(k, j, add), set(k, out, axis(k, i), load(k, acc, zero)))));
    return k;
}

static void expect_reduction(const example *e, void *const *mem)
{
    const float *x = e->mem[1];
    for (int i = 0; i < 5; i++) {
        float sum = 0;
        for (int j = 0; j < 37; j++)
            sum += x[i * 37 + j];
        ((float *)mem[0])[i] = sum;
    }
}

/* Partial sums in lanes, added up by lanes of a local read one by one; the maximum beside it. */
static dc_kernel *lane_reduction(void)
{
    dc_kernel *k = dc_kernel_new("lanes");
    const uint32_t j = new_axis(k, "j.o", 4, DC_AXIS_SERIAL),
                   v0 = new_axis(k, "v0", 8, DC_AXIS_VECTOR);
    const uint32_t v1 = new_axis(k, "v1", 8, DC_AXIS_VECTOR),
                   u = new_axis(k, "u", 8, DC_AXIS_UNROLL);
    const uint32_t out = output(k, "out0", DC_F32, 2), x = input(k, "x0", DC_F32, 29);
    const uint32_t part = local(k, "part", DC_F32, 8), acc = local(k, "acc", DC_F32, 1);
    const dc_ix zero = dc_ix_const(k, 0), at = at2(k, axis(k, j), 8, axis(k, v1));
    dc_stmt *init = loop(k, v0, set(k, part, axis(k, v0), number(k, DC_F32, -5)));
    dc_stmt *step =
        set(k, part, axis(k, v1), op2(k, DC_OP_MAX, load(k, part, axis(k, v1)), load(k, x, at)));
    step->pred = dc_pred_and(k, always, at, 29);
    dc_stmt *sum = loop(
        k, u, set(k, acc, zero, op2(k, DC_OP_ADD, load(k, acc, zero), load(k, part, axis(k, u)))));
    k->root = then(init, then(loop(k, j, loop(k, v1, step)),
                              then(set(k, acc, zero, number(k, DC_F32, 0)),
                                   then(sum, set(k, out, zero, load(k, acc, zero))))));
    return k;
}

/* A tile of 4 x 2 vectors of a product of 8 x 19 and 19 x 32, as schedules make it. */
enum { DOT_M = 8, DOT_K = 19, DOT_N = 32 };

static dc_kernel *tiled_dot(void)
{
    dc_kernel *k = dc_kernel_new("dot");
    const uint32_t mo = new_axis(k, "m.o", 2, DC_AXIS_GRID),
                   kk = new_axis(k, "k", DOT_K, DC_AXIS_SERIAL);
    uint32_t mi[3], no[3], nv[3];
    for (int p = 0; p < 3; p++) { /* initialise, accumulate, store */
        static const char *const name[][3] = {
            {"m0", "n0.o", "n0.i"}, {"m1", "n1.o", "n1.i"}, {"m2", "n2.o", "n2.i"}};
        mi[p] = new_axis(k, name[p][0], 4, DC_AXIS_UNROLL);
        no[p] = new_axis(k, name[p][1], 2, DC_AXIS_UNROLL);
        nv[p] = new_axis(k, name[p][2], 16, DC_AXIS_VECTOR);
    }
    const uint32_t out = output(k, "out0", DC_F32, DOT_M * DOT_N);
    const uint32_t a = input(k, "a", DC_F32, DOT_M * DOT_K),
                   b = input(k, "b", DC_F32, DOT_K * DOT_N);
    const uint32_t acc = local(k, "acc", DC_F32, 4 * 2 * 16);
    dc_stmt *part[3];
    for (int p = 0; p < 3; p++) {
        const dc_ix n = at2(k, axis(k, no[p]), 16, axis(k, nv[p]));
        const dc_ix m = at2(k, axis(k, mo), 4, axis(k, mi[p])),
                    here = at2(k, axis(k, mi[p]), 32, n);
        const dc_vx old = load(k, acc, here);
        const dc_vx product = op2(k, DC_OP_MUL, load(k, a, at2(k, m, DOT_K, axis(k, kk))),
                                  load(k, b, at2(k, axis(k, kk), DOT_N, n)));
        dc_stmt *s = p == 0   ? set(k, acc, here, number(k, DC_F32, 0))
                     : p == 1 ? set(k, acc, here, op2(k, DC_OP_ADD, old, product))
                              : set(k, out, at2(k, m, DOT_N, n), old);
        part[p] = loop(k, mi[p], loop(k, no[p], loop(k, nv[p], s)));
    }
    k->root = loop(k, mo, then(part[0], then(loop(k, kk, part[1]), part[2])));
    return k;
}

static void expect_dot(const example *e, void *const *mem)
{
    const float *a = e->mem[1], *b = e->mem[2];
    for (int m = 0; m < DOT_M; m++)
        for (int n = 0; n < DOT_N; n++) {
            float sum = 0;
            for (int i = 0; i < DOT_K; i++)
                sum += a[m * DOT_K + i] * b[i * DOT_N + n];
            ((float *)mem[0])[m * DOT_N + n] = sum;
        }
}

/* out[i] = x[i - 3] inside, zero outside: a test on the lanes of a load; and one that is not. */
static dc_kernel *padded(void)
{
    dc_kernel *k = dc_kernel_new("padded");
    const uint32_t r = new_axis(k, "r", 4, DC_AXIS_GRID), v = new_axis(k, "v", 16, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_F32, 64), x = input(k, "x0", DC_F32, 20);
    const uint32_t y = input(k, "x1", DC_F32, 2), out1 = output(k, "out1", DC_F32, 64);
    const dc_ix row = dc_ix_add(k, axis(k, r), dc_ix_const(k, -1)); /* rows 1 and 2 are inside */
    const dc_ix col = dc_ix_add(k, axis(k, v), dc_ix_const(k, -3)); /* columns 3..12 are */
    const dc_pred rows = dc_pred_and(k, always, row, 2), both = dc_pred_and(k, rows, col, 10);
    const dc_ix here = at2(k, axis(k, r), 16, axis(k, v));
    const dc_vx in_x = dc_vx_load(k, x, at2(k, row, 10, col), both);
    const dc_vx in_y = dc_vx_load(k, y, row, rows); /* the same for all lanes */
    const dc_vx edge = dc_vx_load(k, y, row, both);
    dc_stmt *s = dc_stmt_set(k, 2);
    s->put[0] = (dc_put){out, here,
                         op2(k, DC_OP_ADD, in_x, op2(k, DC_OP_MUL, in_y, number(k, DC_F32, 100)))};
    s->put[1] = (dc_put){out1, here, op2(k, DC_OP_ADD, edge, cast(k, dc_vx_test(k, both), DC_F32))};
    k->root = loop(k, r, loop(k, v, s));
    return k;
}

/* Pixels to floats, a comparison to bool, bool as an operand and in a choice. */
static dc_kernel *mixed_types(void)
{
    dc_kernel *k = dc_kernel_new("mixed");
    const uint32_t o = new_axis(k, "i.o", 3, DC_AXIS_GRID),
                   v = new_axis(k, "i.i", 16, DC_AXIS_VECTOR);
    const uint32_t f = output(k, "out0", DC_F32, 40), less = output(k, "out1", DC_BOOL, 40);
    const uint32_t chosen = output(k, "out2", DC_I32, 40);
    const uint32_t x = input(k, "x0", DC_U8, 40), flag = input(k, "x1", DC_BOOL, 40);
    const uint32_t y = input(k, "x2", DC_I32, 40);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v));
    const dc_vx pixel = load(k, x, i), wide = cast(k, pixel, DC_I32);
    dc_stmt *s = dc_stmt_set(k, 3);
    s->put[0] = (dc_put){f, i, op2(k, DC_OP_DIV, cast(k, pixel, DC_F32), number(k, DC_F32, 4))};
    s->put[1] = (dc_put){less, i, op2(k, DC_OP_LT, wide, load(k, y, i))};
    const dc_vx in[3] = {load(k, flag, i), wide, load(k, y, i)};
    s->put[2] = (dc_put){chosen, i, dc_vx_op(k, DC_OP_WHERE, DC_I32, in, 3)};
    s->pred = dc_pred_and(k, always, i, 40);
    k->root = loop(k, o, loop(k, v, s));
    return k;
}

/* Integer division by whatever stands there, zeros included; scalars. */
static dc_kernel *integer_division(void)
{
    dc_kernel *k = dc_kernel_new("division");
    const uint32_t i = new_axis(k, "i", 50, DC_AXIS_SERIAL);
    const uint32_t q = output(k, "out0", DC_I32, 50), r = output(k, "out1", DC_I32, 50);
    const uint32_t a = input(k, "x0", DC_I32, 50), b = input(k, "x1", DC_I32, 50);
    const dc_vx x = load(k, a, axis(k, i)), y = load(k, b, axis(k, i));
    dc_stmt *s = dc_stmt_set(k, 2);
    s->put[0] = (dc_put){q, axis(k, i), op2(k, DC_OP_DIV, x, y)};
    s->put[1] = (dc_put){r, axis(k, i), op2(k, DC_OP_REM, x, y)};
    k->root = loop(k, i, s);
    return k;
}

/* A loaded position as an index expression, as lowering would make it. */
static dc_ix loaded(dc_kernel *k, dc_vx value, int64_t lo, int64_t hi)
{
    const dc_ix at = dc_ix_value(k, value);
    CHECK(k->ix.at[at].lo == lo && k->ix.at[at].hi == hi);
    return at;
}

static dc_vx clamped(dc_kernel *k, dc_vx v, double lo, double hi)
{
    v = op2(k, DC_OP_MAX, v, number(k, DC_I32, lo));
    return op2(k, DC_OP_MIN, v, number(k, DC_I32, hi));
}

/*
 * out[pos[i]] = x[pos[i - 1]] where both positions are inside, 29 of 32 lanes: tests of what is
 * loaded, itself under a test; positions that occur twice.
 */
static dc_kernel *to_position(void)
{
    dc_kernel *k = dc_kernel_new("scatter");
    const uint32_t v = new_axis(k, "v", 16, DC_AXIS_VECTOR);
    const uint32_t o = new_axis(k, "o", 2, DC_AXIS_SERIAL);
    const uint32_t out = output(k, "out0", DC_F32, 12), x = input(k, "x0", DC_F32, 12);
    const uint32_t pos = input(k, "x1", DC_I32, 29);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v)), last = dc_ix_add(k, i, dc_ix_const(k, -1));
    const dc_pred exists = dc_pred_and(k, always, i, 29), before = dc_pred_and(k, always, last, 28);
    const dc_ix to = loaded(k, clamped(k, dc_vx_load(k, pos, i, exists), -9, 13), -9, 13);
    const dc_ix from = loaded(k, clamped(k, dc_vx_load(k, pos, last, before), -9, 13), -9, 13);
    dc_stmt *s = set(k, out, to, dc_vx_load(k, x, from, dc_pred_and(k, before, from, 12)));
    s->pred = dc_pred_and(k, exists, to, 12);
    k->root = loop(k, o, loop(k, v, s));
    return k;
}

/* A position that is loaded for some lanes only, as an index, and for all of them as a value. */
static dc_kernel *narrower(void)
{
    dc_kernel *k = dc_kernel_new("narrower");
    const uint32_t v = new_axis(k, "v", 16, DC_AXIS_VECTOR);
    const uint32_t out0 = output(k, "out0", DC_F32, 14), out1 = output(k, "out1", DC_I32, 14);
    const uint32_t x = input(k, "x0", DC_F32, 12), pos = input(k, "x1", DC_I32, 14);
    const dc_pred exists = dc_pred_and(k, always, axis(k, v), 14);
    const dc_vx at = clamped(k, dc_vx_load(k, pos, axis(k, v), exists), 0, 11);
    const dc_ix later = dc_ix_add(k, axis(k, v), dc_ix_const(k, -5));
    dc_stmt *s = dc_stmt_set(k, 2);
    s->put[0] = (dc_put){out0, axis(k, v),
                         dc_vx_load(k, x, loaded(k, at, 0, 11), dc_pred_and(k, always, later, 8))};
    s->put[1] = (dc_put){out1, axis(k, v), at};
    s->pred = exists;
    k->root = loop(k, v, s);
    return k;
}

/* x[index[i]] by a loaded position, clamped: a gather that is no function of the lane. */
static dc_kernel *by_position(void)
{
    dc_kernel *k = dc_kernel_new("position");
    const uint32_t v = new_axis(k, "v", 16, DC_AXIS_VECTOR), o = new_axis(k, "o", 2, DC_AXIS_GRID);
    const uint32_t out = output(k, "out0", DC_F32, 32), x = input(k, "x0", DC_F32, 12);
    const uint32_t pos = input(k, "x1", DC_I32, 32);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v));
    const dc_vx low = op2(k, DC_OP_MAX, load(k, pos, i), number(k, DC_I32, 0));
    const dc_vx in = op2(k, DC_OP_MIN, low, number(k, DC_I32, 11));
    const dc_ix at = loaded(k, in, 0, 11);
    k->root = loop(k, o, loop(k, v, set(k, out, i, load(k, x, at))));
    return k;
}

/* Scalars under a test that depends on the grid, and a vector axis that cannot be one: a sum. */
static dc_kernel *tests_and_sums(void)
{
    dc_kernel *k = dc_kernel_new("tests");
    const uint32_t i = new_axis(k, "i", 9, DC_AXIS_GRID), v = new_axis(k, "v", 4, DC_AXIS_VECTOR);
    const uint32_t out = output(k, "out0", DC_I32, 9), x = input(k, "x0", DC_I32, 4);
    const uint32_t acc = local(k, "acc", DC_I32, 1);
    const dc_ix zero = dc_ix_const(k, 0), shifted = dc_ix_add(k, axis(k, i), dc_ix_const(k, -4));
    const dc_ix down = dc_ix_add(k, dc_ix_mul(k, axis(k, i), -1), dc_ix_const(k, 2));
    const dc_ix third = dc_ix_div(k, down, 3); /* of numbers below zero */
    dc_stmt *add = set(k, acc, zero, op2(k, DC_OP_ADD, load(k, acc, zero), load(k, x, axis(k, v))));
    dc_stmt *start = set(k, acc, zero, dc_vx_index(k, third, DC_I32));
    dc_stmt *s =
        set(k, out, axis(k, i), op2(k, DC_OP_ADD, load(k, acc, zero), load(k, x, shifted)));
    s->pred = dc_pred_and(k, always, shifted, 4);
    k->root = loop(k, i, then(start, then(loop(k, v, add), s)));
    return k;
}

/* Runs ------------------------------------------------------------------------------------- */

static void add(runner *r, example *e)
{
    fill(e);
    for (uint32_t skip = 0; skip < SKIPS; skip++)
        e->number[skip] = runner_add(r, e->k, skip);
}

static void *copy_of(const example *e, uint32_t param)
{
    for (uint32_t n = 0; n < e->k->buf.n; n++) {
        const dc_buffer *b = &e->k->buf.at[n];
        const size_t bytes = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        if (b->scope == DC_SCOPE_PARAM && b->param == param)
            return memcpy(malloc(bytes), e->mem[param], bytes);
    }
    return NULL;
}

static void run(runner *r, example *e)
{
    void *want[MAX_PARAMS], *got[MAX_PARAMS];
    for (uint32_t p = 0; p < e->k->nparam; p++)
        want[p] = copy_of(e, p);
    if (e->expect != NULL)
        e->expect(e, want);
    else
        CHECK(dc_nest_run(&r->job, e->k, want) == DC_OK);
    for (int skip = 0; skip < SKIPS; skip++) {
        for (uint32_t p = 0; p < e->k->nparam; p++)
            got[p] = copy_of(e, p);
        if (e->number[skip] >= 0)
            runner_run_range(r, e->number[skip], grid_of(e->k), got);
        for (uint32_t n = 0; n < e->k->buf.n; n++) {
            const dc_buffer *b = &e->k->buf.at[n];
            if (b->scope == DC_SCOPE_PARAM &&
                !CHECK(memcmp(got[b->param], want[b->param],
                              (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype)) == 0))
                printf("    %s, parameter %s, skipping %d\n", e->name, b->name, skip);
        }
        for (uint32_t p = 0; p < e->k->nparam; p++)
            free(got[p]);
    }
    for (uint32_t p = 0; p < e->k->nparam; p++) {
        free(want[p]);
        free(e->mem[p]);
    }
}

static void test_examples(runner *r)
{
    example e[] = {
        {.name = "map_with_tail", .k = map_with_tail(), .expect = expect_map},
        {.name = "scattered", .k = scattered()},
        {.name = "gathered", .k = gathered()},
        {.name = "reshaped", .k = reshaped()},
        {.name = "strided_masked", .k = strided_masked()},
        {.name = "reduction", .k = reduction(), .expect = expect_reduction},
        {.name = "lane_reduction", .k = lane_reduction()},
        {.name = "tiled_dot", .k = tiled_dot(), .expect = expect_dot},
        {.name = "padded", .k = padded()},
        {.name = "mixed_types", .k = mixed_types()},
        {.name = "integer_division", .k = integer_division()},
        {.name = "by_position", .k = by_position()},
        {.name = "to_position", .k = to_position()},
        {.name = "narrower", .k = narrower()},
        {.name = "tests_and_sums", .k = tests_and_sums()},
    };
    for (size_t n = 0; n < DC_COUNTOF(e); n++)
        add(r, &e[n]);
    const bool built = runner_build(r);
    for (size_t n = 0; n < DC_COUNTOF(e); n++) {
        if (built)
            run(r, &e[n]);
        else
            for (uint32_t p = 0; p < e[n].k->nparam; p++)
                free(e[n].mem[p]);
        dc_kernel_free(e[n].k);
    }
}

/*
 * In place: both outputs live in the memory of both inputs, each at the position that it reads. The
 * values are computed before either is stored.
 */
static void test_in_place(runner *r)
{
    enum { COUNT = 21 };
    dc_kernel *k = dc_kernel_new("inplace");
    const uint32_t o = new_axis(k, "i.o", 2, DC_AXIS_GRID),
                   v = new_axis(k, "i.i", 16, DC_AXIS_VECTOR);
    const uint32_t out0 = output(k, "out0", DC_F32, COUNT), out1 = output(k, "out1", DC_F32, COUNT);
    const uint32_t x0 = input(k, "x0", DC_F32, COUNT), x1 = input(k, "x1", DC_F32, COUNT);
    const dc_ix i = at2(k, axis(k, o), 16, axis(k, v));
    const dc_vx a = load(k, x0, i), b = load(k, x1, i);
    dc_stmt *s = dc_stmt_set(k, 2);
    s->put[0] = (dc_put){out0, i, op2(k, DC_OP_ADD, a, b)};
    s->put[1] = (dc_put){out1, i, op2(k, DC_OP_SUB, a, b)};
    s->pred = dc_pred_and(k, always, i, COUNT);
    k->root = loop(k, o, loop(k, v, s));
    const int n = runner_add(r, k, 0);
    if (n < 0 || !runner_build(r))
        return;
    float *mem[2];
    for (int p = 0; p < 2; p++) {
        mem[p] = aligned_alloc(64, 128);
        for (int at = 0; at < 32; at++)
            mem[p][at] = (float)(at + 100 * p);
    }
    const dc_bind bind[4] = {{1, 0}, {2, 0}, {1, 0}, {2, 0}};
    const dc_command item = {.kind = DC_COMMAND_LAUNCH,
                             .program = r->program,
                             .entry = (uint32_t)n,
                             .grid = 2,
                             .nbind = 4,
                             .bind = bind,
                             .label = "inplace"};
    dc_recording *recording;
    dc_run_info info = {0};
    const dc_device_ops *ops = r->device->ops;
    CHECK(ops->record(r->device, &r->job, &item, 1, &recording) == DC_OK);
    CHECK(ops->run(r->device, &r->job, recording, (void *[]){NULL, mem[0], mem[1]}, &info) ==
          DC_OK);
    ops->recording_free(r->device, recording);
    for (int at = 0; at < 32; at++) {
        CHECK_EQ(mem[0][at], at < COUNT ? 2 * at + 100 : at);
        CHECK_EQ(mem[1][at], at < COUNT ? -100 : at + 100);
    }
    free(mem[0]);
    free(mem[1]);
    dc_kernel_free(k);
}

/* The form itself ---------------------------------------------------------------------------- */

static const char *const map_text =
    "kernel map (out0: f32[100] out, x0: f32[100], x1: f32[1]) positions 7 {\n"
    "  %1 = load f32 x1[0]\n"
    "  %2 = lanes u32x16 1\n"
    "  %3 = splat f32x16 %1\n"
    "  %4 = loop begin, end\n"
    "    %5 = mul index %4, 16\n"
    "    %6 = convert u32 %4\n"
    "    %7 = mul u32 %6, 16\n"
    "    %8 = splat u32x16 %7\n"
    "    %9 = add u32x16 %8, %2\n"
    "    %10 = lt boolx16 %9, 100\n"
    "    %11 = load f32x16 x0[%5], mask %10, align 64\n"
    "    %12 = mul f32x16 %11, %3\n"
    "    %13 = bitcast i32x16 %9\n"
    "    %14 = convert f32x16 %13\n"
    "    %15 = add f32x16 %12, %14\n"
    "    store f32x16 out0[%5], %15, mask %10, align 64\n"
    "  end\n"
    "}\n";

static void test_text(runner *r)
{
    dc_kernel *k = map_with_tail();
    dc_flat *f, *again;
    dc_text a = {0}, b = {0};
    CHECK(dc_flatten(&r->job, k, &f) == DC_OK);
    CHECK(dc_flatten(&r->job, k, &again) == DC_OK);
    dc_flat_print(f, &a);
    dc_flat_print(again, &b);
    CHECK_STR(a.s, b.s);
    CHECK_STR(a.s, map_text);
    dc_text_free(&a);
    dc_text_free(&b);
    dc_flat_free(f);
    dc_flat_free(again);
    dc_kernel_free(k);
}

/* Rows that integers choose: each load says where the next one lies; after the last there is none. */
static void test_prefetched_rows(runner *r)
{
    static const char text[] =
        "kernel chosen(out0: f32[224] out, x0: f32[160], at: i32[7]) {\n"
        "  for i in 7 grid prefetch x0 i 1\n"
        "    for j in 2\n"
        "      for l in 16 vector\n"
        "        out0[32*i + 16*j + l] = mul(x0[32*int(minimum(maximum(at[i], "
        "0:i32), 4:i32)) + 16*j + l], 2:f32)\n"
        "}\n";
    static int32_t row[] = {3, 1, -7, 4, 4, 99, 0};
    static float x[160], out[224];
    dc_kernel *k = NULL;
    int prefetches = 0;
    for (int i = 0; i < 160; i++)
        x[i] = (float)i;
    if (!CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK))
        return;
    const int n = runner_add(r, k, 0);
    dc_kernel_free(k);
    if (n < 0 || !runner_build(r))
        return;
    const dc_flat *f = r->flat.at[n];
    for (uint32_t i = 0; i < f->order.n; i++)
        prefetches +=
            f->inst.at[f->order.at[i]].op == DC_K_LOAD && f->inst.at[f->order.at[i]].in[2] != 0;
    CHECK_EQ(prefetches, 1);
    runner_run_range(r, n, 7, (void *[]){out, x, row});
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 32; j++) {
            const int from = row[i] < 0 ? 0 : row[i] > 4 ? 4 : row[i];
            CHECK(out[32 * i + j] == (float)(2 * (32 * from + j)));
        }
}

/* A load under a test stays there, though the loop round the test does not change it. */
static void test_guarded_load(runner *r)
{
    dc_kernel *k = dc_kernel_new("guarded");
    const uint32_t i = new_axis(k, "i", 6, DC_AXIS_GRID), j = new_axis(k, "j", 3, DC_AXIS_SERIAL);
    const uint32_t out = output(k, "out0", DC_F32, 18), x = input(k, "x0", DC_F32, 4);
    const uint32_t y = input(k, "x1", DC_F32, 6);
    const dc_vx sum = op2(k, DC_OP_ADD, load(k, x, axis(k, i)), load(k, y, axis(k, i)));
    dc_stmt *s = set(k, out, at2(k, axis(k, i), 3, axis(k, j)), sum);
    s->pred = dc_pred_and(k, always, axis(k, i), 4);
    k->root = loop(k, i, loop(k, j, s));
    dc_flat *f;
    CHECK(dc_flatten(&r->job, k, &f) == DC_OK);
    bool tested = false;
    int loads = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)f->inst.at[f->order.at[n]].op;
        tested = tested || op == DC_K_IF;
        loads += op == DC_K_LOAD;
        CHECK(op != DC_K_LOAD || tested);
    }
    CHECK_EQ(loads, 2);
    dc_flat_free(f);
    dc_kernel_free(k);
}

/* What an output may lie in the memory of is read under the mask of its rows: behind them are others' elements. */
static void test_masked_in_place(runner *r)
{
    static const char text[] = "kernel rows(out0: f32[35] out, x0: f32[35], x1: f32[35]) {\n"
                               "  for i in 4 grid\n"
                               "    for j in 8 vector\n"
                               "      out0[7*i + j] = add(x0[7*i + j], x1[j]) if j in 7\n"
                               "}\n";
    dc_kernel *k = NULL;
    dc_flat *f;
    int masked = 0, whole = 0;
    if (!CHECK(dc_nest_parse(&r->job, text, &k) == DC_OK))
        return;
    CHECK(dc_flatten(&r->job, k, &f) == DC_OK);
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *x = &f->inst.at[f->order.at[n]];
        masked += x->op == DC_K_LOAD && x->in[1] != 0;
        whole += x->op == DC_K_LOAD && x->in[1] == 0;
    }
    CHECK_EQ(masked, 1);
    CHECK_EQ(whole, 1);
    dc_flat_free(f);
    dc_kernel_free(k);
}

/* Under its own test, too: where that fails another work item may be storing the element. */
static void test_tested_in_place(runner *r)
{
    static const char text[] = "kernel once(out0: f32[8] out, x0: f32[8], x1: f32[9]) {\n"
                               "  for r in 2 grid\n"
                               "    for i in 8%s\n"
                               "      out0[i] = add(x0[i if r in 1], x1[i if r in 1]) if r in 1\n"
                               "}\n";
    for (int vector = 0; vector < 2; vector++) {
        char nest[sizeof text + 8];
        dc_kernel *k = NULL;
        dc_flat *f;
        int loads[2] = {0, 0}, masked[2] = {0, 0};
        snprintf(nest, sizeof nest, text, vector ? " vector" : "");
        if (!CHECK(dc_nest_parse(&r->job, nest, &k) == DC_OK))
            return;
        CHECK(dc_flatten(&r->job, k, &f) == DC_OK);
        for (uint32_t n = 0; n < f->order.n; n++) {
            const dc_finst *x = &f->inst.at[f->order.at[n]];
            if (x->op != DC_K_LOAD)
                continue;
            loads[x->buf - 1]++;
            masked[x->buf - 1] += x->in[1] != 0;
        }
        CHECK_EQ(loads[0], 1);
        CHECK_EQ(loads[1], 1);
        CHECK_EQ(masked[0], 1);
        CHECK_EQ(masked[1], 0);
        dc_flat_free(f);
        dc_kernel_free(k);
    }
}

static void with_runner(void (*test)(runner *r))
{
    runner r;
    if (!runner_open(&r))
        return;
    test(&r);
    runner_close(&r);
}

int main(void)
{
    with_runner(test_examples);
    with_runner(test_in_place);
    with_runner(test_text);
    with_runner(test_prefetched_rows);
    with_runner(test_guarded_load);
    with_runner(test_masked_in_place);
    with_runner(test_tested_in_place);
    return t_done();
}
