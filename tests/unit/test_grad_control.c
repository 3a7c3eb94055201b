/*
 * Gradients of loops and branches (core/graph/grad_control.c, grad_loop.c) against central differences under the wide
 * interpreter, as in test_grad.c, first and second order: of functions written by hand, which show one case each.
 */
#include "core/eval/eval.h"
#include "core/graph/chunks.h"
#include "core/graph/custom.h"
#include "core/graph/grad.h"
#include "core/graph/gtext.h"
#include "core/graph/simplify.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/smoothgen.h"

static const double TOLERANCE = 1e-6, STEP = 0x1p-12, ROUNDING = 1e-9;
enum { MAX_PARAMS = 64, MAX_ELEMENTS = 256 };

static dc_job job;
static rng rnd = {1};
static double value[MAX_PARAMS]
                   [MAX_ELEMENTS]; /* of every parameter; others than floats reuse the memory */

static dc_module *parse(const char *s)
{
    dc_module *m = NULL;
    job.err = (dc_err){0};
    if (!CHECK(dc_module_parse(&job, s, &m) == DC_OK)) {
        char text[512];
        dc_err_render(&job.err, 1, text, sizeof text);
        printf("  %s\n%s\n", text, s);
    }
    return m;
}

static bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

static void fill(const dc_func *f, uint32_t p)
{
    const dc_node *n = dc_node_at(f, f->param.at[p]);
    for (int64_t i = 0; i < dc_node_count(n); i++)
        value[p][i] = rng_uniform(&rnd, -1, 1);
}

static void eval(const dc_func *f, void *const *out)
{
    const void *params[MAX_PARAMS];
    for (uint32_t p = 0; p < f->param.n; p++)
        params[p] = value[p];
    CHECK_EQ(dc_eval(&job, f, DC_EVAL_WIDE, params, out), DC_OK);
}

static void returns(dc_func *f, dc_ref r)
{
    f->result.n = 0;
    DC_PUSH(f->result, r);
}

static double difference(const dc_func *f, double *x)
{
    const double at = *x;
    double l[4];
    for (int i = 0; i < 4; i++) {
        *x = at + STEP * (i < 2 ? i - 2 : i - 1);
        eval(f, (void *[]){&l[i]});
    }
    *x = at;
    return (8 * (l[2] - l[1]) - (l[3] - l[0])) / (12 * STEP);
}

static bool agrees(dc_func *f, dc_ref loss, dc_ref gradient, uint32_t p)
{
    static double g[MAX_ELEMENTS];
    bool ok = true;
    memset(g, 0, sizeof g);
    if (gradient != 0) {
        returns(f, gradient);
        eval(f, (void *[]){g});
    }
    returns(f, loss);
    for (int64_t i = 0; i < dc_node_count(dc_node_at(f, f->param.at[p])); i++) {
        const double d = difference(f, &value[p][i]);
        if (fabs(g[i] - d) <= TOLERANCE * (1 + fabs(d)))
            continue;
        printf("    parameter %d element %d: %.12g, by differences %.12g\n", (int)p, (int)i, g[i],
               d);
        ok = false;
    }
    return ok;
}

/* sum(r * w) with random weights. */
static dc_ref weighted(dc_func *f, dc_ref sum, dc_ref r)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_type t = dc_node_type(f, r);
    const dc_ref w = dc_graph_param(f, &t, "weights");
    fill(f, f->param.n - 1);
    const dc_ref s =
        dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, r, w), (1u << n.rank) - 1);
    return sum == 0 ? s : dc_graph_op2(f, DC_OP_ADD, sum, s);
}

static dc_ref loss_of(dc_func *f)
{
    dc_ref loss = 0;
    for (uint32_t i = 0; i < f->result.n; i++)
        if (is_float(f, f->result.at[i]))
            loss = weighted(f, loss, f->result.at[i]);
    return loss;
}

static bool first_order(dc_func *f, dc_ref loss, const dc_ref *wrt, int n, dc_ref *g)
{
    bool ok = CHECK_EQ(dc_grad(&job, f, loss, wrt, n, g), DC_OK);
    returns(f, loss);
    for (int i = 0; i < n && ok; i++)
        if (g[i] != 0)
            DC_PUSH(f->result, g[i]);
    ok = ok && CHECK_EQ(dc_func_check(&job, f), DC_OK);
    for (int i = 0; i < n && ok; i++)
        ok = agrees(f, loss, g[i], (uint32_t)dc_node_at(f, wrt[i])->attr[0]) && ok;
    return ok;
}

/* Of all float results by all float parameters; ints are what parameters that are no floats hold. */
static void check_func(dc_func *f, const int *ints, const char *what)
{
    dc_ref wrt[MAX_PARAMS], g[MAX_PARAMS], loss, again = 0;
    int n = 0;
    for (uint32_t p = 0; p < f->param.n; p++) {
        const dc_node *x = dc_node_at(f, f->param.at[p]);
        if (is_float(f, f->param.at[p])) {
            wrt[n++] = f->param.at[p];
            fill(f, p);
            continue;
        }
        for (int64_t i = 0; i < dc_node_count(x); i++, ints++)
            if (x->dtype == DC_BOOL)
                ((uint8_t *)value[p])[i] = (uint8_t)*ints;
            else
                ((int32_t *)value[p])[i] = *ints;
    }
    loss = loss_of(f);
    bool ok = CHECK(first_order(f, loss, wrt, n, g));
    for (int i = 0; i < n; i++)
        if (g[i] != 0)
            again = weighted(f, again, g[i]);
    if (ok && again != 0)
        ok = CHECK(first_order(f, again, wrt, n, g));
    if (!ok)
        printf("  %s\n", what);
}

static void check(const char *s, const int *ints)
{
    dc_module *m = parse(s);
    if (m != NULL)
        check_func(m->func.at[0], ints, s);
    dc_module_free(m);
}

/* A loop of the last body of s: parameters for all its operands, all its results. */
static dc_func *loop_of(dc_module *m, dc_loop l)
{
    l.body = m->body.n - 1;
    const dc_func *body = dc_body_at(m, l.body);
    dc_func *f = dc_func_new(m, "f");
    dc_ref in[MAX_PARAMS];
    int n = 0;
    l.ny = (int)body->result.n - l.ncarry;
    for (int i = 0; i < dc_loop_operands(&l); i++) {
        const int p = 1 + i - dc_loop_const(&l), y = i - dc_loop_y(&l);
        dc_type t = dc_type_make(DC_I32, 0, NULL);
        if (p > 0)
            t = dc_node_type(body, y < 0 ? body->param.at[p] : body->result.at[l.ncarry + y]);
        if (i >= dc_loop_x(&l)) {
            memmove(t.dim + 1, t.dim, (size_t)t.rank * sizeof *t.dim);
            t.dim[0] = l.n;
            t.rank++;
        }
        in[n++] = dc_graph_param(f, &t, NULL);
    }
    const dc_ref loop = dc_graph_loop(f, &l, in);
    for (int i = 0; i < l.ncarry + l.ny; i++)
        DC_PUSH(f->result, dc_graph_pick(f, loop, i));
    return f;
}

static void check_loop(const char *s, dc_loop l, const int *ints)
{
    for (int remat = 0; remat < 2; remat++, l.flags |= DC_LOOP_REMAT) {
        dc_module *m = parse(s);
        if (m != NULL)
            check_func(loop_of(m, l), ints, s);
        dc_module_free(m);
    }
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Two constants, a carry and an x, element by element. */
static const char cell[] = "body 0(%1: i32[], %2: f32[2], %3: f32[2], %4: f32[2], %5: f32[2]) {\n"
                           "  %6 = mul %4, %2 : f32[2]\n"
                           "  %7 = mul %5, %3 : f32[2]\n"
                           "  %8 = add %6, %7 : f32[2]\n"
                           "  %9 = sin %8 : f32[2]\n"
                           "  %10 = exp %5 : f32[2]\n"
                           "  %11 = mul %9, %10 : f32[2]\n"
                           "  return %9, %11\n"
                           "}\n";
/* One constant in a product, in a sum and element by element. */
static const char uses[] = "body 0(%1: i32[], %2: f32[2, 2], %3: f32[2], %4: f32[2]) {\n"
                           "  %5 = dot %3, %2 {0, 1, 0, 0} : f32[2]\n"
                           "  %6 = dot %2, %4 {0, 1, 1, 0} : f32[2]\n"
                           "  %7 = sum %2 {1} : f32[2]\n"
                           "  %8 = add %5, %6 : f32[2]\n"
                           "  %9 = mul %8, %7 : f32[2]\n"
                           "  %10 = mul %2, %2 : f32[2, 2]\n"
                           "  %11 = sum %10 {2} : f32[2]\n"
                           "  %12 = add %9, %11 : f32[2]\n"
                           "  %13 = sin %12 : f32[2]\n"
                           "  return %13, %6\n"
                           "}\n";
/* The carry that an iteration begins with is a y. */
static const char states[] = "body 0(%1: i32[], %2: f32[2, 2], %3: f32[2], %4: f32[2]) {\n"
                             "  %5 = dot %3, %2 {0, 1, 0, 0} : f32[2]\n"
                             "  %6 = add %5, %4 : f32[2]\n"
                             "  %7 = sin %6 : f32[2]\n"
                             "  return %7, %3\n"
                             "}\n";
/* Everything is linear: nothing has to be kept. */
static const char linear[] = "body 0(%1: i32[], %2: f32[2], %3: f32[2]) {\n"
                             "  %4 = sub %3, %2 : f32[2]\n"
                             "  return %4, %2, %3\n"
                             "}\n";
/* A carry that no iteration changes, one that all of them replace, and a y that is an x. */
static const char through[] = "body 0(%1: i32[], %2: f32[], %3: f32[], %4: f32[]) {\n"
                              "  %5 = mul %2, %4 : f32[]\n"
                              "  %6 = sin %5 : f32[]\n"
                              "  return %2, %6, %4\n"
                              "}\n";
/* Carries and xs that are integers: a position, and numbers of rows. */
static const char places[] =
    "body 0(%1: i32[], %2: f32[3, 2], %3: i32[], %4: f32[2], %5: i32[]) {\n"
    "  %6 = const {1} : i32[]\n"
    "  %7 = add %3, %6 : i32[]\n"
    "  %8 = gather %2, %5 {0, 0} : f32[2]\n"
    "  %9 = cast %7 : f32[]\n"
    "  %10 = reshape %9 : f32[1]\n"
    "  %11 = expand %10 : f32[2]\n"
    "  %12 = mul %8, %11 : f32[2]\n"
    "  %13 = mul %12, %4 : f32[2]\n"
    "  %14 = sin %13 : f32[2]\n"
    "  return %7, %14, %7, %13\n"
    "}\n";
/* While the counter is below a constant. */
static const char until[] =
    "body 0(%1: i32[], %2: i32[], %3: f32[], %4: bool[], %5: i32[], %6: f32[], %7: f32[]) {\n"
    "  %8 = const {1} : i32[]\n"
    "  %9 = add %5, %8 : i32[]\n"
    "  %10 = lt %9, %2 : bool[]\n"
    "  %11 = mul %6, %3 : f32[]\n"
    "  %12 = add %11, %7 : f32[]\n"
    "  %13 = cos %12 : f32[]\n"
    "  return %10, %9, %13, %12\n"
    "}\n";
/* A loop over the rows of a row, in a branch of the sum, in a loop. */
static const char nested[] = "body 0(%1: i32[], %2: f32[], %3: f32[], %4: f32[]) {\n"
                             "  %5 = mul %2, %4 : f32[]\n"
                             "  %6 = add %3, %5 : f32[]\n"
                             "  %7 = sin %6 : f32[]\n"
                             "  return %7, %6\n"
                             "}\n"
                             "body 1(%1: f32[], %2: f32[], %3: f32[3]) {\n"
                             "  %4 = loop %1, %2, %3 {0, 3, 0, 1, 1, 1, 1} : bool[0]\n"
                             "  %5 = pick %4 {0} : f32[]\n"
                             "  %6 = pick %4 {1} : f32[3]\n"
                             "  return %5, %6\n"
                             "}\n"
                             "body 2(%1: f32[], %2: f32[], %3: f32[3]) {\n"
                             "  %4 = mul %1, %2 : f32[]\n"
                             "  %5 = mul %3, %3 : f32[3]\n"
                             "  return %4, %5\n"
                             "}\n"
                             "body 3(%1: i32[], %2: f32[], %3: f32[], %4: f32[3]) {\n"
                             "  %5 = const {1} : i32[]\n"
                             "  %6 = lt %1, %5 : bool[]\n"
                             "  %7 = branch %6, %2, %3, %4 {1, 2} : bool[0]\n"
                             "  %8 = pick %7 {0} : f32[]\n"
                             "  %9 = pick %7 {1} : f32[3]\n"
                             "  %10 = sin %8 : f32[]\n"
                             "  return %10, %9\n"
                             "}\n";
static const char sides[] = "body 0(%1: f32[2], %2: f32[2], %3: f32[]) {\n"
                            "  %4 = mul %1, %2 : f32[2]\n"
                            "  return %4, %2\n"
                            "}\n"
                            "body 1(%1: f32[2], %2: f32[2], %3: f32[]) {\n"
                            "  %4 = exp %1 : f32[2]\n"
                            "  %5 = reshape %3 : f32[1]\n"
                            "  %6 = expand %5 : f32[2]\n"
                            "  %7 = mul %4, %6 : f32[2]\n"
                            "  return %7, %4\n"
                            "}\n"
                            "func f(%1: bool[], %2: f32[2], %3: f32[2], %4: f32[]) {\n"
                            "  %5 = branch %1, %2, %3, %4 {0, 1} : bool[0]\n"
                            "  %6 = pick %5 {0} : f32[2]\n"
                            "  %7 = pick %5 {1} : f32[2]\n"
                            "  return %6, %7\n"
                            "}\n";

static void test_scans(void)
{
    const int rows[] = {0, 2, 0, 1, 1};
    for (uint32_t flags = 0; flags <= DC_LOOP_REVERSE; flags++) {
        check_loop(cell, (dc_loop){.n = 3, .flags = flags, .nconst = 2, .ncarry = 1, .nx = 1},
                   NULL);
        check_loop(uses, (dc_loop){.n = 3, .flags = flags, .nconst = 1, .ncarry = 1, .nx = 1},
                   NULL);
        check_loop(linear, (dc_loop){.n = 3, .flags = flags, .nconst = 1, .ncarry = 1}, NULL);
        check_loop(through, (dc_loop){.n = 3, .flags = flags, .ncarry = 2, .nx = 1}, NULL);
        check_loop(places, (dc_loop){.n = 4, .flags = flags, .nconst = 1, .ncarry = 2, .nx = 1},
                   rows);
        check_loop(nested, (dc_loop){.n = 2, .flags = flags, .nconst = 1, .ncarry = 1, .nx = 1},
                   NULL);
    }
    check_loop(cell, (dc_loop){.n = 0, .nconst = 2, .ncarry = 1, .nx = 1}, NULL);
    check_loop(cell, (dc_loop){.n = 1, .nconst = 2, .ncarry = 1, .nx = 1}, NULL);
}

static void test_limits(void)
{
    for (int limit = -1; limit <= 4; limit++)
        for (uint32_t flags = DC_LOOP_LIMIT; flags <= (DC_LOOP_LIMIT | DC_LOOP_REVERSE); flags++) {
            const dc_loop l = {.n = 3, .flags = flags, .nconst = 2, .ncarry = 1, .nx = 1};
            const dc_loop u = {.n = 3, .flags = flags, .nconst = 1, .ncarry = 1, .nx = 1};
            check_loop(cell, l, &limit);
            check_loop(uses, u, &limit);
            check_loop(nested, u, &limit);
            check_loop(states, u, &limit);
        }
}

/* The counter begins at 0; the limit, where there is one, is 3 of 4. */
static void test_tests(void)
{
    for (int most = 1; most <= 6; most++)
        for (uint32_t flags = DC_LOOP_TEST; flags < 8; flags++) {
            const int ints[] = {3, most, most != 6, 0};
            const dc_loop l = {.n = 4, .flags = flags, .nconst = 2, .ncarry = 3, .nx = 1};
            check_loop(until, l, flags & DC_LOOP_LIMIT ? ints : ints + 1);
        }
}

static void test_branches(void)
{
    for (int flag = 0; flag < 2; flag++)
        check(sides, &flag);
}

/* ---- values that nothing may come of ---------------------------------------------------------- */

/* Rows that are not reached are infinite, and so is the weight where none is: the gradients are as without them. */
static void unreached(const char *s)
{
    enum { N = 4, LIMIT = 2 };
    double g[2][2][MAX_ELEMENTS] = {{{0}}};
    for (int cut = 0; cut < 2; cut++) {
        dc_module *m = parse(s);
        const dc_loop l = {.n = N, .flags = DC_LOOP_LIMIT, .nconst = 1, .ncarry = 1, .nx = 1};
        dc_func *f = loop_of(m, l);
        rnd = (rng){5};
        for (uint32_t p = 1; p < f->param.n; p++)
            fill(f, p);
        const dc_ref loss = loss_of(f), wrt[2] = {f->param.at[1], f->param.at[3]};
        dc_ref d[2];
        *(int32_t *)value[0] = LIMIT;
        for (int i = 2 * LIMIT; i < 2 * N && cut; i++)
            value[3][i] = value[4][i] = i % 2 ? INFINITY : NAN; /* x, and what y was before */
        CHECK_EQ(dc_grad(&job, f, loss, wrt, 2, d), DC_OK);
        for (int i = 0; i < 2; i++) {
            returns(f, d[i]);
            eval(f, (void *[]){g[cut][i]});
            for (int k = 0; k < 2 * N; k++)
                CHECK_NEAR(g[cut][i][k], g[0][i][k], 0);
        }
        *(int32_t *)value[0] = 0;
        value[1][0] = INFINITY;
        for (int i = 0; i < 2; i++) {
            double none[MAX_ELEMENTS];
            returns(f, d[i]);
            eval(f, (void *[]){none});
            for (int k = 0; k < (i == 0 ? 4 : 2 * N); k++)
                CHECK_NEAR(none[k], 0, 0);
        }
        dc_module_free(m);
    }
}

static void test_unreached(void)
{
    unreached(uses);
    unreached(states);
}

/* Sums of 16-bit floats over many iterations are of 32 bits. */
static void test_short(void)
{
    dc_module *m = parse("body 0(%1: i32[], %2: bf16[], %3: bf16[]) {\n"
                         "  %4 = mul %2, %3 : bf16[]\n  return %4\n}\n"
                         "func f(%1: bf16[], %2: bf16[1000]) {\n"
                         "  %3 = loop %1, %2 {0, 1000, 0, 1, 0, 1, 1} : bool[0]\n"
                         "  %4 = pick %3 {0} : bf16[1000]\n"
                         "  %5 = sum %4 {1} : bf16[]\n  return %5\n}\n");
    uint16_t x[1000], w = 0x3f80, got = 0;
    dc_func *f = m->func.at[0];
    dc_ref g;
    for (int i = 0; i < 1000; i++)
        x[i] = 0x3f80;
    CHECK_EQ(dc_grad(&job, f, f->result.at[0], &f->param.at[0], 1, &g), DC_OK);
    returns(f, g);
    CHECK_EQ(dc_eval(&job, f, DC_EVAL_ROUND, (const void *[]){&w, x}, (void *[]){&got}), DC_OK);
    CHECK_EQ(got, 0x447a); /* 1000 */
    dc_module_free(m);
}

/* ---- loops without a bound -------------------------------------------------------------------- */

#define WHILE(n)                                                   \
    "body 0(%1: i32[], %2: f32[], %3: bool[], %4: f32[]) {\n"      \
    "  %5 = mul %4, %2 : f32[]\n"                                  \
    "  %6 = lt %5, %2 : bool[]\n"                                  \
    "  return %6, %5\n"                                            \
    "}\n"                                                          \
    "body 1(%1: f32[], %2: bool[], %3: f32[]) {\n"                 \
    "  %4 = loop %1, %2, %3 {0, " n ", 4, 1, 2, 0, 0} : bool[0]\n" \
    "  %5 = pick %4 {1} : f32[]\n"                                 \
    "  return %5\n"                                                \
    "}\n"                                                          \
    "func f(%1: bool[], %2: f32[], %3: f32[]) {\n"                 \
    "  %4 = loop %2, %1, %3 {0, " n ", 4, 1, 2, 0, 0} : bool[0]\n" \
    "  %5 = pick %4 {1} : f32[]\n"                                 \
    "  %6 = branch %1, %2, %1, %5 {1, 1} : bool[0]\n"              \
    "  %7 = pick %6 {0} : f32[]\n"                                 \
    "  %8 = stop_gradient %7 : f32[]\n"                            \
    "  return %5, %7, %8\n"                                        \
    "}\n"

/* Of result i: is it refused, and no node made? */
static void refused(const char *s, int i, bool want)
{
    dc_module *m = parse(s);
    dc_func *f = m->func.at[0];
    const uint32_t n = f->node.n, bodies = m->body.n;
    dc_ref g[2];
    job.err = (dc_err){0};
    const dc_status status = dc_grad(&job, f, f->result.at[i], &f->param.at[1], 2, g);
    CHECK_EQ(status, want ? DC_E_STATE : DC_OK);
    CHECK_EQ(job.err.id, want ? DC_ERR_GRAD_UNBOUNDED : DC_ERR_NONE);
    if (want) {
        CHECK_EQ(f->node.n, n);
        CHECK_EQ(m->body.n, bodies);
    }
    job.err = (dc_err){0};
    dc_module_free(m);
}

static void test_unbounded(void)
{
    for (int i = 0; i < 2; i++) { /* a loop; one in a branch */
        refused(WHILE("2147483647"), i, true);
        refused(WHILE("5"), i, false);
    }
    refused(WHILE("2147483647"), 2, false);
}

/* With a gradient by hand, nothing is asked of the loop. */
static void test_unbounded_by_hand(void)
{
    dc_module *m = parse(WHILE("2147483647"));
    dc_func *f = m->func.at[0];
    dc_custom c;
    dc_ref y, g = 0;
    dc_custom_given(f, &f->param.at[1], 1, f->result.at[0], &c);
    CHECK_EQ(dc_custom_end(&job, &c, &c.dy, &y), DC_OK);
    CHECK_EQ(dc_grad(&job, f, y, &f->param.at[1], 1, &g), DC_OK);
    CHECK(dc_is_const(f, g, 1));
    dc_module_free(m);
}

/* ---- random functions, unrolled --------------------------------------------------------------- */

/* Values of the gradients by all parameters, one after the other; how many. */
static int gradients(dc_func *f, int order, double *out)
{
    dc_ref wrt[MAX_PARAMS], g[MAX_PARAMS], loss = loss_of(f);
    int n = (int)f->param.n, count = 0, own = 0;
    for (int p = 0; p < n; p++)
        if (strcmp(f->label.at[p] == NULL ? "" : f->label.at[p], "weights") != 0)
            wrt[own++] = f->param.at[p];
    for (int k = 0; k < order; k++) {
        if (k > 0) {
            loss = 0;
            for (int i = 0; i < own; i++) /* one that is not there takes its numbers, too */
                loss = weighted(f, loss, g[i] != 0 ? g[i] : dc_graph_like(f, wrt[i], 0));
        }
        if (loss == 0 || !CHECK_EQ(dc_grad(&job, f, loss, wrt, own, g), DC_OK))
            return 0;
    }
    for (int i = 0; i < own; i++) {
        const int64_t size = dc_node_count(dc_node_at(f, wrt[i]));
        memset(out + count, 0, (size_t)size * sizeof *out);
        if (g[i] != 0) {
            returns(f, g[i]);
            CHECK_EQ(dc_func_check(&job, f), DC_OK);
            eval(f, (void *[]){out + count});
        }
        count += (int)size;
    }
    return count;
}

static bool compare(const double *a, const double *b, int n, const char *what)
{
    double size = 1;
    for (int i = 0; i < n; i++)
        size = fmax(size, fabs(b[i]));
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= ROUNDING * size)) {
            printf("    %s, element %d: %.17g, unrolled %.17g\n", what, i, a[i], b[i]);
            return false;
        }
    return true;
}

static void print_module(const dc_module *m)
{
    dc_text t = {0};
    dc_module_print(m, &t);
    printf("%s\n", t.s);
    dc_text_free(&t);
}

/* f with its loops in chunks. */
static dc_func *chunked(const dc_func *from)
{
    dc_func *f = dc_func_new(from->module, "chunked");
    dc_ref *map = DC_NEW_ARRAY(&job.scratch, dc_ref, from->node.n), *done[MAX_PARAMS] = {NULL};
    dc_ref in[DC_MAX_OPERANDS], loop[MAX_PARAMS];
    int nloop = 0;
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        const dc_type t = dc_node_type(from, r);
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        if (n->op == DC_OP_PARAM) {
            map[r] = dc_graph_param(f, &t, NULL);
        } else if (n->op == DC_OP_LOOP && nloop < MAX_PARAMS) {
            const dc_loop l = dc_loop_of(n);
            done[nloop] = DC_NEW_ARRAY(&job.scratch, dc_ref, DC_MAX_OPERANDS);
            dc_chunks_loop(f, &l, in, done[nloop]);
            loop[nloop++] = r;
        } else if (n->op == DC_OP_PICK && dc_node_at(from, n->in[0])->op == DC_OP_LOOP) {
            for (int i = 0; i < nloop; i++)
                if (loop[i] == n->in[0])
                    map[r] = done[i][n->attr[0]];
        } else {
            map[r] = dc_graph_again(f, from, r, in);
        }
    }
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(f->result, map[from->result.at[i]]);
    return f;
}

static void random_case(uint64_t seed, const smoothgen_opts *o, bool in_chunks)
{
    static double got[2][4096];
    for (int order = 0; order <= 2; order++) {
        dc_module *m = dc_module_new();
        rng r = {seed};
        dc_func *f = smoothgen(m, &r, o), *plain = smoothgen_unrolled(f);
        bool ok = true;
        int n = 0;
        if (in_chunks)
            f = chunked(f);
        for (int which = 0; which < 2; which++) {
            dc_func *x = which ? plain : f;
            CHECK_EQ(dc_func_check(&job, x), DC_OK);
            rnd = (rng){seed};
            for (uint32_t p = 0; p < x->param.n; p++)
                fill(x, p);
            if (order == 0) {
                returns(x, loss_of(x));
                eval(x, (void *[]){got[which]});
                n = 1;
            } else {
                n = gradients(x, order, got[which]);
            }
        }
        ok = compare(got[0], got[1], n, order == 0 ? "value" : order == 1 ? "first" : "second");
        if (!CHECK(ok)) {
            printf("seed %llu, flags %u\n", (unsigned long long)seed, o->flags);
            if (getenv("SHOW"))
                print_module(m);
        }
        dc_module_free(m);
        if (!ok)
            return;
    }
}

static void test_random(uint64_t seed)
{
    const char *cases = getenv("CASES");
    const int n = cases != NULL ? atoi(cases) : 200;
    for (int i = 0; i < n; i++)
        random_case(seed + (uint64_t)i,
                    &(smoothgen_opts){.depth = 1 + i % 3,
                                      .n = 3 + i % 7,
                                      .by_hand = i % 2,
                                      .flags = i % 5 == 0 ? DC_LOOP_REMAT : 0},
                    false);
    for (int i = 0; i < n / 4; i++)
        random_case(
            seed + (uint64_t)i,
            &(smoothgen_opts){.depth = 1 + i % 2, .n = 3 + i % 7, .by_hand = i % 2, .most = 12},
            true);
}

/* ---- an LSTM ---------------------------------------------------------------------------------- */

enum { T = 5, B = 3, X = 4, H = 2 };

static dc_ref sigmoid(dc_func *f, dc_ref x)
{
    const dc_ref one = dc_graph_like(f, x, 1);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, dc_graph_op1(f, DC_OP_NEG, x));
    dc_ref y = dc_graph_op2(f, DC_OP_DIV, one, dc_graph_op2(f, DC_OP_ADD, one, e));
    dc_custom c;
    dc_custom_given(f, &x, 1, y, &c);
    const dc_ref rest = dc_graph_op2(f, DC_OP_SUB, one, c.y_again);
    const dc_ref slope = dc_graph_op2(f, DC_OP_MUL, c.y_again, rest);
    const dc_ref dx = dc_graph_op2(f, DC_OP_MUL, c.dy, slope);
    CHECK_EQ(dc_custom_end(&job, &c, &dx, &y), DC_OK);
    return y;
}

static dc_ref gate(dc_func *f, dc_ref z, int64_t k)
{
    const int64_t start[2] = {0, k * H}, step[2] = {1, 1}, dim[2] = {B, H};
    return sigmoid(f, dc_graph_slice(f, z, start, step, dim));
}

static dc_ref param2(dc_func *f, int64_t a, int64_t b)
{
    const dc_type t = dc_type_make(DC_F32, 2, (const int64_t[]){a, b});
    return dc_graph_param(f, &t, NULL);
}

static dc_ref product(dc_func *f, dc_ref a, dc_ref b)
{
    const int64_t left = 1, right = 0;
    return dc_graph_dot(f, a, b, 0, NULL, NULL, 1, &left, &right);
}

/* i, w, u, b; h, c; x: h, c, and h once more as a y. */
static uint32_t lstm_cell(dc_module *m)
{
    dc_func *f = dc_func_new(m, "cell");
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    const int64_t all[2] = {B, 4 * H};
    dc_graph_param(f, &i32, NULL);
    const dc_ref w = param2(f, X, 4 * H), u = param2(f, H, 4 * H), b = param2(f, 1, 4 * H);
    const dc_ref h = param2(f, B, H), c = param2(f, B, H), x = param2(f, B, X);
    dc_ref z = dc_graph_op2(f, DC_OP_ADD, product(f, x, w), product(f, h, u));
    z = dc_graph_op2(f, DC_OP_ADD, z, dc_graph_expand(f, b, all));
    const dc_ref kept = dc_graph_op2(f, DC_OP_MUL, gate(f, z, 0), c);
    const dc_ref added = dc_graph_op2(f, DC_OP_MUL, gate(f, z, 1), gate(f, z, 2));
    const dc_ref next = dc_graph_op2(f, DC_OP_ADD, kept, added);
    const dc_ref out = dc_graph_op2(f, DC_OP_MUL, gate(f, z, 3), sigmoid(f, next));
    const dc_ref result[3] = {out, next, out};
    for (int i = 0; i < 3; i++)
        DC_PUSH(f->result, result[i]);
    const uint32_t body = dc_body_add(m, f);
    dc_func_drop(f);
    return body;
}

static int count_of(const dc_func *f, dc_op op)
{
    dc_arena a = {0};
    const bool *live = dc_func_live(f, &a);
    int n = 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        n += live[r] && dc_node_at(f, r)->op == op;
    dc_arena_free(&a);
    return n;
}

/*
 * The gradient by weights, xs and initial carries: the backward loop has the one small product that cannot wait, and
 * carries nothing but the cotangents of the two carries; outside are one product for each weight and one for the xs.
 */
static void test_lstm(void)
{
    dc_module *m = dc_module_new();
    dc_func *f = dc_func_new(m, "lstm");
    const dc_type rows = dc_type_make(DC_F32, 3, (const int64_t[]){T, B, X});
    dc_ref in[6] = {param2(f, X, 4 * H), param2(f, H, 4 * H), param2(f, 1, 4 * H), param2(f, B, H),
                    param2(f, B, H)},
           g[6];
    in[5] = dc_graph_param(f, &rows, NULL);
    const dc_loop l = {.body = lstm_cell(m), .n = T, .nconst = 3, .ncarry = 2, .nx = 1, .ny = 1};
    const dc_ref loop = dc_graph_loop(f, &l, in), y = dc_graph_pick(f, loop, 2);
    const dc_ref loss = dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, y, y), 7);
    CHECK_EQ(dc_grad(&job, f, loss, in, 6, g), DC_OK);
    for (int i = 0; i < 6; i++)
        DC_PUSH(f->result, g[i]);
    dc_func *simple = dc_simplify(f);
    CHECK_EQ(dc_func_check(&job, simple), DC_OK);
    CHECK_EQ(count_of(simple, DC_OP_DOT), 3);
    CHECK_EQ(count_of(simple, DC_OP_LOOP),
             3); /* the loop, the one that keeps more, the backward one */
    for (dc_ref r = 1; r < simple->node.n; r++) {
        const dc_node *n = dc_node_at(simple, r);
        if (n->op != DC_OP_LOOP || (dc_loop_of(n).flags & DC_LOOP_REVERSE) == 0)
            continue;
        const dc_loop back = dc_loop_of(n);
        CHECK_EQ(count_of(dc_body_at(m, back.body), DC_OP_DOT), 1);
        CHECK_EQ(back.ncarry, 2);
        CHECK_EQ(back.ny, 1);
        CHECK_EQ(back.nconst, 1);
        CHECK_EQ(dc_grad_kept(simple, r), 6 * T * B * H * 4); /* five gates, c */
    }
    if (getenv("SHOW")) {
        m->func.at[0] = simple;
        m->func.n = 1;
        print_module(m);
    }
    dc_module_free(m);
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* c = sin(c w + x), large enough that stacks count; bytes of all that loops outside of others stack, in f. */
static int64_t stacked_bytes(int64_t n, uint32_t flags, bool in_chunks)
{
    enum { ROWS = 64, WIDTH = 256 };
    dc_module *m = dc_module_new();
    dc_func *b = dc_func_new(m, "cell"), *f = dc_func_new(m, "f");
    const dc_type i32 = dc_type_make(DC_I32, 0, NULL);
    const dc_type xs = dc_type_make(DC_F32, 3, (const int64_t[]){n, ROWS, WIDTH});
    dc_graph_param(b, &i32, NULL);
    const dc_ref w = param2(b, WIDTH, WIDTH), c = param2(b, ROWS, WIDTH),
                 x = param2(b, ROWS, WIDTH);
    DC_PUSH(b->result, dc_graph_op1(b, DC_OP_SIN, dc_graph_op2(b, DC_OP_ADD, product(b, c, w), x)));
    dc_ref in[3] = {param2(f, WIDTH, WIDTH), param2(f, ROWS, WIDTH)}, last, g[2];
    in[2] = dc_graph_param(f, &xs, NULL);
    const dc_loop l = {
        .body = dc_body_add(m, b), .n = n, .flags = flags, .nconst = 1, .ncarry = 1, .nx = 1};
    if (in_chunks)
        dc_chunks_loop(f, &l, in, &last);
    else
        last = dc_graph_pick(f, dc_graph_loop(f, &l, in), 0);
    CHECK_EQ(dc_grad(&job, f, dc_graph_reduce(f, DC_OP_SUM, last, 3), in, 2, g), DC_OK);
    for (int i = 0; i < 2; i++)
        DC_PUSH(f->result, g[i]);
    const dc_func *simple = dc_simplify(f);
    int64_t bytes = 0;
    for (dc_ref r = 1; r < simple->node.n; r++) {
        const dc_node *p = dc_node_at(simple, r);
        const dc_type t = dc_node_type(simple, r);
        if (p->op == DC_OP_PICK && p->attr[0] >= dc_loop_of(dc_node_at(simple, p->in[0])).ncarry)
            bytes += (int64_t)dc_type_bytes(&t);
    }
    dc_module_free(m);
    return bytes / (ROWS * WIDTH * 4);
}

static void test_memory(void)
{
    CHECK_EQ(stacked_bytes(100, 0, false), 300);             /* c, c w, and the cotangents of c w */
    CHECK_EQ(stacked_bytes(100, DC_LOOP_REMAT, false), 200); /* not c w */
    CHECK_EQ(stacked_bytes(5000, 0, false), 10000);          /* too many: they are added up */
    CHECK_EQ(stacked_bytes(5000, DC_LOOP_REMAT, false), 5000);
    CHECK_EQ(stacked_bytes(5000, 0, true), 50); /* c at the beginning of each 100 */
    CHECK_EQ(stacked_bytes(10007, 0, true), 99 + 3 * 8);
}

static dc_status all(dc_job *j, void *ctx)
{
    (void)j;
    test_scans();
    test_limits();
    test_tests();
    test_branches();
    test_unreached();
    test_short();
    test_unbounded();
    test_unbounded_by_hand();
    test_lstm();
    test_memory();
    test_random(*(const uint64_t *)ctx);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t seed = rng_seed(argc, argv, 17);
    rnd = (rng){seed};
    dc_job_init(&job, NULL, NULL);
    CHECK_EQ(dc_protect(&job, all, &seed), DC_OK);
    dc_job_fini(&job);
    return t_done();
}
