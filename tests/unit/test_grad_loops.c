/*
 * Gradients of random functions with loops and branches against those of the same function unrolled, first and second
 * order, under the wide interpreter; the same with DC_LOOP_REMAT and in chunks. And what comes out for an LSTM, and how
 * much memory loops stack. Argument 1 is the seed, CASES how many.
 */
#include "core/autodiff/chunks.h"
#include "core/autodiff/custom.h"
#include "core/ir/simplify.h"

#include "tests/unit/gradcheck.h"
#include "tests/unit/smoothgen.h"

static const double ROUNDING = 1e-9;

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
    test_lstm();
    test_memory();
    test_random(*(const uint64_t *)ctx);
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t seed = rng_seed(argc, argv, 17);
    dc_job_init(&job, NULL, NULL);
    CHECK_EQ(dc_protect(&job, all, &seed), DC_OK);
    dc_job_fini(&job);
    return t_done();
}
