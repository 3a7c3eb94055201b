/*
 * Gradients of random graphs: legal graphs come out, of the right types, and the slope along a
 * random direction agrees with differences. The rules themselves are tested in test_grad.c; here
 * they meet each other, tensors without elements, high ranks and every movement of movement. The
 * seed is printed; argument 1 sets it, argument 2 the number of graphs.
 *
 * The slope is judged only where differences with h and h/2 agree to within AGREE, that is, away
 * from jumps and where rounding is small: their error falls by 16 from one to the other, so the
 * better one is then closer than AGREE.
 */
#include "core/autodiff/grad.h"
#include "core/eval/eval.h"
#include "core/ir/gtext.h"

#include <math.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"

static const double STEP = 0x1p-14, AGREE = 1e-6, TOLERANCE = 4e-6;
enum { MAX_SIZE = 30, MAX_WRT = 16 };

typedef struct trial {
    dc_module *m;
    dc_func *f;
    rng rnd;
    dc_ref loss, wrt[MAX_WRT], grad[MAX_WRT];
    int nwrt, nparam; /* of wrt: the parameters come first */
    double *x[MAX_WRT], *along[MAX_WRT], *moved[MAX_WRT];
    const void **in;
} trial;

static dc_job job;
static long judged, flat, unused;

static void *array(const trial *t, int64_t n, size_t size)
{
    return dc_arena_alloc(&t->m->arena, (size_t)n * size);
}

static bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

/* The sum of all float results, each divided by its number of elements; 0 if there is none. */
static dc_ref loss_of(dc_func *f)
{
    dc_ref loss = 0;
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_ref r = f->result.at[i];
        const dc_node n = *dc_node_at(f, r);
        if (!is_float(f, r))
            continue;
        const dc_ref sum = dc_graph_reduce(f, DC_OP_SUM, r, (1u << n.rank) - 1);
        const double count = (double)dc_max_i64(dc_node_count(&n), 1);
        const dc_ref of = dc_graph_op2(f, DC_OP_DIV, sum, dc_graph_like(f, sum, count));
        const dc_ref mean = dc_graph_cast(f, of, DC_F32);
        loss = loss == 0 ? mean : dc_graph_op2(f, DC_OP_ADD, loss, mean);
    }
    return loss;
}

/* Float parameters, then some other nodes, then the loss twice. */
static void choose_wrt(trial *t)
{
    for (uint32_t i = 0; i < t->f->param.n; i++)
        if (is_float(t->f, t->f->param.at[i]))
            t->wrt[t->nwrt++] = t->f->param.at[i];
    t->nparam = t->nwrt;
    for (int i = 0; i < 3; i++) {
        const dc_ref r = 1 + (dc_ref)rng_below(&t->rnd, (int)t->f->node.n - 1);
        if (is_float(t->f, r))
            t->wrt[t->nwrt++] = r;
    }
    t->wrt[t->nwrt++] = t->loss;
    t->wrt[t->nwrt++] = t->loss;
}

static void fill_inputs(trial *t)
{
    int at = 0;
    t->in = array(t, t->f->param.n, sizeof *t->in);
    for (uint32_t i = 0; i < t->f->param.n; i++) {
        const dc_type type = dc_node_type(t->f, t->f->param.at[i]);
        const int64_t n = dc_type_count(&type);
        if (!dc_dtype_is_float((dc_dtype)type.dtype)) {
            void *mem = array(t, n, dc_dtype_size((dc_dtype)type.dtype));
            graphgen_input(&t->rnd, &type, false, mem);
            t->in[i] = mem;
            continue;
        }
        t->x[at] = array(t, n, sizeof(double));
        t->along[at] = array(t, n, sizeof(double));
        t->moved[at] = array(t, n, sizeof(double));
        for (int64_t k = 0; k < n; k++) {
            t->x[at][k] = (float)rng_uniform(&t->rnd, -4, 4);
            t->along[at][k] = rng_uniform(&t->rnd, -1, 1);
        }
        t->in[i] = t->moved[at++];
    }
}

static void move_to(const trial *t, double by)
{
    for (int i = 0; i < t->nparam; i++)
        for (int64_t k = 0; k < dc_node_count(dc_node_at(t->f, t->wrt[i])); k++)
            t->moved[i][k] = t->x[i][k] + by * t->along[i][k];
}

static void value_at(const trial *t, dc_ref r, double by, double *out)
{
    move_to(t, by);
    t->f->result.n = 0;
    DC_PUSH(t->f->result, r);
    CHECK_EQ(dc_eval(&job, t->f, DC_EVAL_WIDE, t->in, (void *const[]){out}), DC_OK);
}

static double difference(const trial *t, double h)
{
    double l[4];
    for (int i = 0; i < 4; i++)
        value_at(t, t->loss, h * (i < 2 ? i - 2 : i - 1), &l[i]);
    return (8 * (l[2] - l[1]) - (l[3] - l[0])) / (12 * h);
}

/* Slope along the direction, and the sum of the magnitudes of its terms. */
static double slope(const trial *t, double *size)
{
    double sum = 0;
    *size = 0;
    for (int i = 0; i < t->nparam; i++) {
        const int64_t n = dc_node_count(dc_node_at(t->f, t->wrt[i]));
        double *g = array(t, n, sizeof *g);
        if (t->grad[i] == 0)
            continue;
        value_at(t, t->grad[i], 0, g);
        for (int64_t k = 0; k < n; k++) {
            sum += g[k] * t->along[i][k];
            *size += fabs(g[k] * t->along[i][k]);
        }
    }
    return sum;
}

static void check_types(const trial *t, uint64_t seed)
{
    t->f->result.n = 0;
    for (int i = 0; i < t->nwrt; i++) {
        unused += t->grad[i] == 0;
        if (t->grad[i] == 0)
            continue;
        const dc_type want = dc_node_type(t->f, t->wrt[i]), got = dc_node_type(t->f, t->grad[i]);
        CHECK(dc_type_same(&want, &got));
        DC_PUSH(t->f->result, t->grad[i]);
    }
    CHECK_EQ(t->grad[t->nwrt - 1], t->grad[t->nwrt - 2]);
    if (!CHECK_EQ(dc_func_check(&job, t->f), DC_OK))
        printf("    seed %llu\n", (unsigned long long)seed);
}

/*
 * How far rounding may move a difference: the bound of the loss in float, brought to double, over
 * the step. Infinite where a comparison is too close to call.
 */
static double noise(const trial *t)
{
    const void **in = array(t, t->f->param.n, sizeof *in);
    int at = 0;
    double value, bound;
    t->f->result.n = 0;
    DC_PUSH(t->f->result, t->loss);
    for (uint32_t i = 0; i < t->f->param.n; i++) {
        in[i] = t->in[i];
        if (!is_float(t->f, t->f->param.at[i]))
            continue;
        const int64_t n = dc_node_count(dc_node_at(t->f, t->f->param.at[i]));
        const dc_dtype d = (dc_dtype)dc_node_at(t->f, t->f->param.at[i])->dtype;
        char *x = array(t, n, dc_dtype_size(d));
        for (int64_t k = 0; k < n; k++)
            dc_bits_store(d, x + (size_t)k * dc_dtype_size(d), dc_bits_of(d, t->x[at][k]));
        in[i] = x;
        at++;
    }
    CHECK_EQ(
        graphgen_bound_f32(&job, t->f, in, (double *const[]){&value}, (double *const[]){&bound}),
        DC_OK);
    return 4 * 0x1p-29 * bound / STEP;
}

/* Differences see through stop_gradient, and through the pattern of a float as another float. */
static bool stops(const trial *t)
{
    const bool *live = dc_func_live(t->f, &t->m->arena);
    for (dc_ref r = 1; r < t->f->node.n; r++)
        if (live[r] && is_float(t->f, r) &&
            (dc_node_at(t->f, r)->op == DC_OP_STOP || dc_node_at(t->f, r)->op == DC_OP_CUSTOM ||
             dc_node_at(t->f, r)->op == DC_OP_BITCAST))
            return true;
    return false;
}

static void check_slope(const trial *t, uint64_t seed)
{
    double size;
    const double d = difference(t, STEP), closer = difference(t, STEP / 2);
    const double got = slope(t, &size);
    if (!(noise(t) < AGREE) || stops(t) || !(fabs(d - closer) <= AGREE * (1 + fabs(d))) ||
        !(size < 1e6))
        return;
    judged++;
    flat += closer == 0;
    if (!CHECK(fabs(got - closer) <= TOLERANCE * (1 + size))) {
        dc_text text = {0};
        dc_func_print(t->f, &text);
        printf("    seed %llu: slope %.12g, by differences %.12g, of\n%s", (unsigned long long)seed,
               got, closer, text.s);
        dc_text_free(&text);
    }
}

static bool check_seed(uint64_t seed)
{
    trial t = {.m = dc_module_new(), .rnd = {seed ^ 0x9ad}};
    t.f = graphgen_func(t.m, seed, 1 + (int)(seed % MAX_SIZE));
    t.loss = loss_of(t.f);
    if (t.loss != 0) {
        choose_wrt(&t);
        fill_inputs(&t);
        CHECK_EQ(dc_grad(&job, t.f, t.loss, t.wrt, t.nwrt, t.grad), DC_OK);
        check_types(&t, seed);
        check_slope(&t, seed);
    }
    dc_module_free(t.m);
    return t.loss != 0;
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const long n = argc > 2 ? strtol(argv[2], NULL, 0) : 500;
    long graphs = 0;
    dc_job_init(&job, NULL, NULL);
    for (uint64_t i = 0; graphs < n; i++)
        graphs += check_seed(seed + i);
    printf("%ld graphs, %ld slopes judged, %ld of them zero, %ld gradients of nothing\n", graphs,
           judged, flat, unused);
    if (n >= 300) {
        CHECK(judged > graphs / 2);
        CHECK(judged - flat > graphs / 4);
    }
    dc_job_fini(&job);
    return t_done();
}
