/*
 * Gradients of loops and branches (core/autodiff/grad_control.c, grad_loop.c) against central differences under the wide
 * interpreter, as in test_grad.c, first and second order: of functions written by hand, which show one case each. Random
 * ones are in test_grad_loops.c.
 */
#include "core/autodiff/custom.h"

#include "tests/unit/gradcheck.h"

static const double TOLERANCE = 1e-6, STEP = 0x1p-12;

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
        memcpy(value[0], &(int32_t){LIMIT}, sizeof(int32_t));
        for (int i = 2 * LIMIT; i < 2 * N && cut; i++)
            value[3][i] = value[4][i] = i % 2 ? INFINITY : NAN; /* x, and what y was before */
        CHECK_EQ(dc_grad(&job, f, loss, wrt, 2, d), DC_OK);
        for (int i = 0; i < 2; i++) {
            returns(f, d[i]);
            eval(f, (void *[]){g[cut][i]});
            for (int k = 0; k < 2 * N; k++)
                CHECK_NEAR(g[cut][i][k], g[0][i][k], 0);
        }
        memcpy(value[0], &(int32_t){0}, sizeof(int32_t));
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
        char text[200];
        dc_err_render(&job.err, 1, text, sizeof text);
        CHECK(strstr(text, "the gradient goes through a loop, which may take") != NULL);
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

static dc_status all(dc_job *j, void *ctx)
{
    (void)j;
    (void)ctx;
    test_scans();
    test_limits();
    test_tests();
    test_branches();
    test_unreached();
    test_short();
    test_unbounded();
    test_unbounded_by_hand();
    return DC_OK;
}

int main(int argc, char **argv)
{
    rnd = (rng){rng_seed(argc, argv, 17)};
    dc_job_init(&job, NULL, NULL);
    CHECK_EQ(dc_protect(&job, all, NULL), DC_OK);
    dc_job_fini(&job);
    return t_done();
}
