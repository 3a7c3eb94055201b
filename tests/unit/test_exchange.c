/*
 * What ranks do together, as operations of a graph (core/ir/exchange.h): by the interpreter, on ranks that are threads,
 * beside what it means computed plainly; gradients beside central differences of the sum of what all ranks differentiate.
 */
#include "core/autodiff/grad.h"
#include "core/eval/eval.h"
#include "core/ir/exchange.h"
#include "core/ir/gtext.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/rng.h"
#include "tests/unit/world_ranks.h"

enum { ROWS = 6, COLUMNS = 4, COUNT = ROWS * COLUMNS, MOST = 4 };

typedef struct trial {
    dc_op op;
    dc_exchange_attr x;
    int n;                  /* ranks */
    double in[MOST][COUNT]; /* of each rank, rows of COLUMNS */
    double out[MOST][COUNT * MOST], grad[MOST][COUNT];
    double weight[COUNT * MOST]; /* what the loss multiplies the result with */
    int64_t count;               /* of a result */
    double loss[MOST];
} trial;

/* sum(weight * op(x)), and its gradient. */
static dc_func *loss_of(dc_job *j, dc_module *m, const trial *t, dc_ref *y)
{
    const int64_t dim[2] = {ROWS, COLUMNS};
    const dc_type type = dc_type_make(DC_F64, 2, dim);
    dc_func *f = dc_func_new(m, "loss");
    const dc_ref x = dc_graph_param(f, &type, "x");
    *y = dc_graph_exchange(f, t->op, x, &t->x);
    const dc_type out = dc_node_type(f, *y);
    const dc_ref w = dc_graph_param(f, &out, "w");
    const dc_ref loss = dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, *y, w), 3);
    dc_ref g = 0;
    CHECK_EQ(dc_grad(j, f, loss, &x, 1, &g), DC_OK);
    DC_PUSH(f->result, loss);
    DC_PUSH(f->result, *y);
    DC_PUSH(f->result, g);
    return f;
}

static dc_status rank_body(dc_job *j, rank_of *r)
{
    trial *t = r->all->ctx;
    dc_ref y;
    dc_module *m = dc_module_new();
    const dc_func *f = loss_of(j, m, t, &y);
    const dc_type out = dc_node_type(f, y);
    j->world = r->w;
    const void *param[2] = {t->in[r->rank], t->weight};
    void *result[3] = {&t->loss[r->rank], t->out[r->rank], t->grad[r->rank]};
    t->count = r->rank == 0 ? dc_type_count(&out) : t->count;
    const dc_status status = dc_eval(j, f, DC_EVAL_ROUND, param, result);
    dc_module_free(m);
    return status;
}

static double run(trial *t)
{
    ranks all = {0};
    double sum = 0;
    ranks_run(&all, t->n, NULL, rank_body, t);
    for (int r = 0; r < t->n; r++) {
        CHECK_EQ(all.at[r].status, DC_OK);
        sum += t->loss[r];
    }
    return sum;
}

/* Of rank r, element k of the result, from what all ranks have. */
static double want(const trial *t, int r, int64_t k)
{
    const int axis = (int)t->x.axis, n = t->n;
    const int64_t columns =
        t->count / (t->op == DC_OP_ALL_GATHER && axis == 0       ? ROWS * n
                    : t->op == DC_OP_REDUCE_SCATTER && axis == 0 ? ROWS / n
                    : t->op == DC_OP_ALL_TO_ALL
                        ? (axis == 0 ? ROWS / n : ROWS) * (t->x.other == 0 ? n : 1)
                        : ROWS);
    int64_t i = k / columns, c = k % columns, from = -1;
    if (t->op == DC_OP_BROADCAST)
        return t->in[t->x.other][k];
    if (t->op == DC_OP_ALL_GATHER) {
        from = axis == 0 ? i / ROWS : c / COLUMNS;
        return t->in[from][(i % ROWS) * COLUMNS + c % COLUMNS];
    }
    if (t->op == DC_OP_ALL_TO_ALL) {
        const int64_t rows = axis == 0 ? ROWS / n : ROWS, cols = axis == 1 ? COLUMNS / n : COLUMNS;
        from = t->x.other == 0 ? i / rows : c / cols;
        i = i % rows + (axis == 0 ? r * rows : 0);
        c = c % cols + (axis == 1 ? r * cols : 0);
        return t->in[from][i * COLUMNS + c];
    }
    if (t->op == DC_OP_REDUCE_SCATTER) {
        i += axis == 0 ? r * (ROWS / n) : 0;
        c += axis == 1 ? r * (COLUMNS / n) : 0;
    }
    double best = t->in[0][i * COLUMNS + c];
    for (int s = 1; s < n; s++) {
        const double v = t->in[s][i * COLUMNS + c];
        best = t->x.other == DC_COMBINE_SUM   ? best + v
               : t->x.other == DC_COMBINE_MAX ? fmax(best, v)
                                              : fmin(best, v);
    }
    return best;
}

static void test_op(dc_op op, int64_t axis, int64_t other, int n, uint64_t seed)
{
    static trial t;
    rng r = {seed};
    t = (trial){.op = op, .n = n, .x = {axis, other, {1, 1, {n}}}};
    for (int s = 0; s < n; s++)
        for (int k = 0; k < COUNT; k++)
            t.in[s][k] = (double)rng_below(&r, 1000) / 100 + s * 1e-3;
    for (int k = 0; k < COUNT * MOST; k++)
        t.weight[k] = (double)(rng_below(&r, 200) - 100) / 10;
    run(&t);
    int64_t wrong = 0;
    for (int s = 0; s < n; s++)
        for (int64_t k = 0; k < t.count; k++)
            wrong += !(fabs(t.out[s][k] - want(&t, s, k)) < 1e-12);
    if (!CHECK_EQ(wrong, 0))
        printf("%s axis %d other %d of %d\n", dc_op_row_of(op)->name, (int)axis, (int)other, n);
    static double grad[MOST][COUNT];
    memcpy(grad, t.grad, sizeof grad);
    for (int trials = 0; trials < 6; trials++) {
        const int s = rng_below(&r, n), k = rng_below(&r, COUNT);
        const double step = 1e-4, before = t.in[s][k];
        t.in[s][k] = before + step;
        const double above = run(&t);
        t.in[s][k] = before - step;
        const double below = run(&t);
        t.in[s][k] = before;
        if (!CHECK(fabs((above - below) / (2 * step) - grad[s][k]) < 1e-6))
            printf("%s axis %d other %d of %d: gradient %g, differences say %g\n",
                   dc_op_row_of(op)->name, (int)axis, (int)other, n, grad[s][k],
                   (above - below) / (2 * step));
    }
}

/* ---- messages ---------------------------------------------------------------------------------- */

/*
 * Along a line: each rank multiplies what comes from the one before it with its x, adds sum(w * that) to its loss and
 * sends it on; and gets x of the one behind it, in the other direction.
 */
static dc_func *line_of(dc_job *j, dc_module *m, const trial *t, int rank)
{
    const int64_t dim[2] = {ROWS, COLUMNS};
    const dc_type type = dc_type_make(DC_F64, 2, dim), f32 = dc_type_scalar(DC_F32);
    const dc_exchange_attr before = {0, rank - 1, t->x.group, 0},
                           behind = {0, rank + 1, t->x.group, 0};
    dc_func *f = dc_func_new(m, "line");
    const dc_ref x = dc_graph_param(f, &type, "x"), w = dc_graph_param(f, &type, "w");
    dc_ref last = dc_graph_const(f, &f32, 0), all = last, h = x, g = 0;
    if (rank > 0) {
        h = dc_graph_recv(f, &type, last, &before);
        last = dc_graph_send(f, x, dc_graph_op1(f, DC_OP_STOP, h), &before);
        all = dc_graph_op2(f, DC_OP_ADD, all, last);
    }
    const dc_ref y = dc_graph_op2(f, DC_OP_MUL, h, x);
    dc_ref loss = dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, y, w), 3);
    if (rank + 1 < t->n) {
        last = dc_graph_send(f, y, last, &behind);
        all = dc_graph_op2(f, DC_OP_ADD, all, last);
        const dc_ref back = dc_graph_recv(f, &type, last, &behind);
        last = dc_graph_arrived(f, back, last);
        loss = dc_graph_op2(f, DC_OP_ADD, loss,
                            dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, back, y), 3));
    }
    loss = dc_graph_op2(f, DC_OP_ADD, loss, dc_graph_cast(f, all, DC_F64));
    f->token = last;
    CHECK_EQ(dc_grad(j, f, loss, &x, 1, &g), DC_OK);
    CHECK(t->n == 1 || f->token != last);
    DC_PUSH(f->result, loss);
    DC_PUSH(f->result, g);
    DC_PUSH(f->result, f->token);
    return f;
}

static dc_status line_body(dc_job *j, rank_of *r)
{
    trial *t = r->all->ctx;
    dc_module *m = dc_module_new();
    const dc_func *f = line_of(j, m, t, r->rank);
    float last;
    j->world = r->w;
    const void *param[2] = {t->in[r->rank], t->weight};
    void *result[3] = {&t->loss[r->rank], t->grad[r->rank], &last};
    DC_TRY(dc_func_check(j, f));
    const dc_status status = dc_eval(j, f, DC_EVAL_ROUND, param, result);
    CHECK(status != DC_OK || last == 0);
    dc_module_free(m);
    return status;
}

static double run_line(trial *t)
{
    ranks all = {0};
    double sum = 0;
    ranks_run(&all, t->n, NULL, line_body, t);
    for (int r = 0; r < t->n; r++) {
        CHECK_EQ(all.at[r].status, DC_OK);
        sum += t->loss[r];
    }
    return sum;
}

static void test_messages(int n, uint64_t seed)
{
    static trial t;
    rng r = {seed};
    t = (trial){.n = n, .x = {0, 0, {1, 1, {n}}}};
    for (int s = 0; s < n; s++)
        for (int k = 0; k < COUNT; k++)
            t.in[s][k] = 1 + (double)rng_below(&r, 1000) / 1000;
    for (int k = 0; k < COUNT * MOST; k++)
        t.weight[k] = (double)(rng_below(&r, 200) - 100) / 100;
    run_line(&t);
    static double grad[MOST][COUNT];
    memcpy(grad, t.grad, sizeof grad);
    for (int trials = 0; trials < 8; trials++) {
        const int s = rng_below(&r, n), k = rng_below(&r, COUNT);
        const double step = 1e-4, before = t.in[s][k];
        t.in[s][k] = before + step;
        const double above = run_line(&t);
        t.in[s][k] = before - step;
        const double below = run_line(&t);
        t.in[s][k] = before;
        if (!CHECK(fabs((above - below) / (2 * step) - grad[s][k]) < 1e-6))
            printf("messages among %d, rank %d: gradient %g, differences say %g\n", n, s,
                   grad[s][k], (above - below) / (2 * step));
    }
}

/* What a text may say, and what of it is refused. */
static void test_texts(void)
{
    static const struct {
        const char *line;
        bool good;
    } texts[] = {{"send %1, %1 {0, 1, 1, 1, 2} : f32[]", true},
                 {"recv %1 {0, 1, 1, 1, 2} : i32[4, 5]", true},
                 {"arrived %1, %1 : f32[]", true},
                 {"arrived %1 : f32[]", false},
                 {"send %1, %1 {0, 2, 1, 1, 2} : f32[]", false},
                 {"send %1, %1 {0, -1, 1, 1, 2} : f32[]", false},
                 {"send %1, %1 {0, 1, 1, 1, 2} : f32[2]", false},
                 {"send %1 {0, 1, 1, 1, 2} : f32[]", false},
                 {"send %1, %1 : f32[]", false},
                 {"recv %1 {0, 1, 3, 1, 2} : f32[4]", false},
                 {"recv %1 {0, 1, 1, 1, 2} : f32[0]", false},
                 {"arrived %1, %1 {1} : f32[]", false}};
    for (size_t i = 0; i < DC_COUNTOF(texts); i++) {
        char text[200];
        dc_job j;
        dc_job_init(&j, NULL, NULL);
        dc_module *m = NULL;
        snprintf(text, sizeof text, "func f(%%1: f32[2, 3] \"x\") {\n  %%2 = %s\n  return %%2\n}\n",
                 texts[i].line);
        const dc_status status = dc_module_parse(&j, text, &m);
        if (!CHECK_EQ(status == DC_OK, texts[i].good))
            printf("%s\n", texts[i].line);
        if (status == DC_OK) {
            dc_text out = {0};
            dc_module_print(m, &out);
            CHECK_STR(out.s, text);
            dc_text_free(&out);
            dc_module_free(m);
        }
        dc_job_fini(&j);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 7);
    for (int n = 1; n <= 3; n++) {
        for (int by = DC_COMBINE_SUM; by <= DC_COMBINE_MIN; by++) {
            if (by == DC_COMBINE_PROD)
                continue;
            test_op(DC_OP_ALL_REDUCE, 0, by, n, seed + (uint64_t)by);
            test_op(DC_OP_REDUCE_SCATTER, 0, by, n, seed + (uint64_t)by);
        }
        test_op(DC_OP_ALL_GATHER, 0, 0, n, seed);
        test_op(DC_OP_ALL_GATHER, 1, 0, n, seed);
        test_op(DC_OP_ALL_TO_ALL, 0, 0, n, seed);
        test_op(DC_OP_ALL_TO_ALL, 0, 1, n, seed);
        test_op(DC_OP_BROADCAST, 0, n - 1, n, seed);
    }
    test_op(DC_OP_REDUCE_SCATTER, 1, DC_COMBINE_SUM, 2, seed);
    test_op(DC_OP_ALL_TO_ALL, 1, 0, 2, seed);
    test_op(DC_OP_ALL_TO_ALL, 1, 1, 4, seed);
    for (int n = 1; n <= MOST; n++)
        test_messages(n, seed);
    test_texts();
    return t_done();
}
