/*
 * Kernels whose loops end at a number known at run time (jit/fuse/needs.h, jit/nest/nest_limit.h): written graphs, masked
 * as for sizes of that kind, against the interpreter of graphs. What is needed is compared bit by bit; what lies behind
 * the numbers is NaN in the inputs. Memory of kernels begins with a pattern, by which is seen that they leave out what
 * nobody needs.
 *
 *   test_limits [seed [rounds of random moves]]
 */
#include "backends/registry.h"
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "jit/flat/flatten.h"
#include "jit/fuse/fuse.h"
#include "jit/jit.h"
#include "jit/lower/lower.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/sim_target.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/flat_run.h"
#include "tests/unit/schedule_random.h"

enum { MOST = 8, PATTERN = 0x5a };

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* ---- graphs ------------------------------------------------------------------------------------ */

typedef struct sample {
    dc_func *f;
    dc_ref end[2];                /* parameters */
    int size[MOST][DC_MAX_RANK];  /* of parameter i along each axis: 1 + which end; 0: whole */
    int rsize[MOST][DC_MAX_RANK]; /* of result i */
    bool whole;                   /* nothing can be left out */
    bool near;                    /* results are nearly right */
} sample;

static sample sample_new(dc_module *m, const char *name)
{
    const dc_type i32 = dc_type_scalar(DC_I32);
    sample s = {.f = dc_func_new(m, name)};
    for (int i = 0; i < 2; i++)
        s.end[i] = dc_graph_param(s.f, &i32, "e");
    return s;
}

/* A parameter; size: by axis. */
static dc_ref input(sample *s, int rank, const int64_t *dim, const int *size)
{
    const dc_type t = dc_type_make(DC_F32, rank, dim);
    for (int i = 0; i < rank; i++)
        s->size[s->f->param.n][i] = size[i];
    return dc_graph_param(s->f, &t, "x");
}

#define SIZES(...) ((const int[]){__VA_ARGS__})

static dc_ref spread(sample *s, int end, const dc_type *t)
{
    const int64_t ones[DC_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    return dc_graph_expand(s->f, dc_graph_reshape(s->f, s->end[end], t->rank, ones), t->dim);
}

/* x where the position along the axis is before the end, else the value. */
static dc_ref masked(sample *s, dc_ref x, int axis, int end, double other)
{
    const dc_type t = dc_node_type(s->f, x);
    dc_type i32 = t;
    const int64_t attr = axis;
    i32.dtype = DC_I32;
    const dc_ref at = dc_graph_make(s->f, DC_OP_IOTA, NULL, 0, &attr, 1, &i32);
    return dc_graph_op3(s->f, DC_OP_WHERE, dc_graph_op2(s->f, DC_OP_LT, at, spread(s, end, &t)), x,
                        dc_graph_const(s->f, &t, other));
}

static void give(sample *s, dc_ref r, const int *size)
{
    const int rank = dc_node_at(s->f, r)->rank;
    for (int i = 0; i < rank; i++) {
        s->rsize[s->f->result.n][i] = size[i];
        if (size[i] > 0)
            r = dc_graph_set_size(s->f, r, i, s->end[size[i] - 1]);
    }
    DC_PUSH(s->f->result, r);
}

static dc_ref dot(sample *s, dc_ref a, dc_ref b, int nb, const int64_t *lc, const int64_t *rc)
{
    static const int64_t batch[] = {0, 1};
    return dc_graph_dot(s->f, a, b, nb, batch, batch, 1, lc, rc);
}

static sample element_wise(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "ew");
    const dc_ref x = input(&s, 2, DIMS(t, 64), SIZES(1, 0)),
                 y = input(&s, 2, DIMS(t, 64), SIZES(1, 0));
    give(&s, dc_graph_op2(s.f, DC_OP_MUL, dc_graph_op2(s.f, DC_OP_ADD, x, y), x), SIZES(1, 0));
    return s;
}

static sample inner_axis(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "inner");
    const dc_ref x = input(&s, 3, DIMS(6, t, 40), SIZES(0, 1, 0));
    give(&s, dc_graph_op2(s.f, DC_OP_MUL, x, x), SIZES(0, 1, 0));
    const dc_ref y = input(&s, 2, DIMS(24, t), SIZES(0, 2));
    give(&s, dc_graph_op2(s.f, DC_OP_ADD, y, y), SIZES(0, 2));
    return s;
}

static sample sum_rows(dc_module *m, int64_t t) /* over the outer axis */
{
    sample s = sample_new(m, "outer");
    const dc_ref x = input(&s, 2, DIMS(t, 70), SIZES(1, 0));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, masked(&s, x, 0, 0, 0), 1), SIZES(0));
    give(&s, dc_graph_reduce(s.f, DC_OP_MAXR, masked(&s, x, 0, 0, -INFINITY), 1), SIZES(0));
    return s;
}

static sample sum_columns(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "columns");
    const dc_ref x = input(&s, 2, DIMS(t, t), SIZES(1, 2));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, masked(&s, x, 1, 1, 0), 2), SIZES(1));
    give(&s, dc_graph_reduce(s.f, DC_OP_MINR, masked(&s, x, 1, 1, INFINITY), 2), SIZES(1));
    return s;
}

static sample sum_all(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "all");
    const dc_ref x = input(&s, 2, DIMS(t, 48), SIZES(1, 0));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, masked(&s, x, 0, 0, 0), 3), SIZES(0));
    return s;
}

/* Masks seen through other dims. */
static sample reshaped(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "reshaped");
    const int64_t parts = t % 4 == 0 ? 4 : 1;
    const dc_ref x = masked(&s, input(&s, 2, DIMS(t, 12), SIZES(1, 0)), 0, 0, 0);
    const dc_ref a = dc_graph_reshape(s.f, x, 3, DIMS(parts, t / parts, 12));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, a, 6), SIZES(0));
    const dc_ref y = masked(&s, input(&s, 3, DIMS(5, t, 8), SIZES(0, 2, 0)), 1, 1, -INFINITY);
    const dc_ref b =
        dc_graph_reshape(s.f, dc_graph_permute(s.f, y, DIMS(1, 2, 0)), 2, DIMS(8 * t, 5));
    give(&s, dc_graph_reduce(s.f, DC_OP_MAXR, b, 1), SIZES(0));
    return s;
}

/* exact: without the exponential, so that results are whole numbers. */
static dc_ref softmax(sample *s, dc_ref x, int axis, int end, bool exact)
{
    const dc_type t = dc_node_type(s->f, x);
    const uint32_t mask = 1u << axis;
    const dc_ref most = dc_graph_reduce(s->f, DC_OP_MAXR, masked(s, x, axis, end, -INFINITY), mask);
    const dc_ref less =
        dc_graph_op2(s->f, DC_OP_SUB, x, dc_graph_unreduce(s->f, most, mask, t.rank, t.dim));
    const dc_ref e = exact ? less : dc_graph_op1(s->f, DC_OP_EXP, less);
    const dc_ref sum = dc_graph_reduce(s->f, DC_OP_SUM, masked(s, e, axis, end, 0), mask);
    return dc_graph_op2(s->f, exact ? DC_OP_ADD : DC_OP_DIV, e,
                        dc_graph_unreduce(s->f, sum, mask, t.rank, t.dim));
}

static sample softmax_rows(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "softmax");
    const dc_ref x = input(&s, 3, DIMS(3, t, t), SIZES(0, 1, 2));
    give(&s, softmax(&s, x, 2, 1, true), SIZES(0, 1, 2));
    return s;
}

static sample softmax_near(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "softmax_near");
    const dc_ref x = input(&s, 2, DIMS(t, t), SIZES(1, 1));
    s.near = true;
    give(&s, softmax(&s, x, 1, 0, false), SIZES(1, 1));
    return s;
}

static sample product_m(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "product_m");
    const dc_ref a = input(&s, 2, DIMS(t, 64), SIZES(1, 0)),
                 b = input(&s, 2, DIMS(64, 96), SIZES(0, 0));
    give(&s, dot(&s, a, b, 0, DIMS(1), DIMS(0)), SIZES(1, 0));
    return s;
}

static sample product_n(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "product_n");
    const dc_ref a = input(&s, 2, DIMS(48, 64), SIZES(0, 0)),
                 b = input(&s, 2, DIMS(64, t), SIZES(0, 1));
    give(&s, dot(&s, a, b, 0, DIMS(1), DIMS(0)), SIZES(0, 1));
    return s;
}

static sample product_k(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "product_k");
    const dc_ref a = masked(&s, input(&s, 2, DIMS(48, t), SIZES(0, 1)), 1, 0, 0);
    const dc_ref b = masked(&s, input(&s, 2, DIMS(t, 64), SIZES(1, 0)), 0, 0, 0);
    give(&s, dot(&s, a, b, 0, DIMS(1), DIMS(0)), SIZES(0, 0));
    return s;
}

static sample product_all(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "product_all");
    const dc_ref a = masked(&s, input(&s, 2, DIMS(t, t), SIZES(1, 2)), 1, 1, 0);
    const dc_ref b = masked(&s, input(&s, 2, DIMS(t, t), SIZES(2, 1)), 0, 1, 0);
    const dc_ref c = dot(&s, a, b, 0, DIMS(1), DIMS(0));
    give(&s, dc_graph_op2(s.f, DC_OP_ADD, c, dc_graph_like(s.f, c, 1)), SIZES(1, 1));
    return s;
}

/* An operand that is masked where it is stored: who reads it sees no test. */
static sample product_stored(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "product_stored");
    const dc_ref a = masked(&s, input(&s, 2, DIMS(48, t), SIZES(0, 1)), 1, 0, 0);
    const dc_ref b = input(&s, 2, DIMS(t, 32), SIZES(1, 0)),
                 c = input(&s, 2, DIMS(32, 64), SIZES(0, 0));
    const dc_ref bc = masked(&s, dot(&s, b, c, 0, DIMS(1), DIMS(0)), 0, 0, 0);
    give(&s, dot(&s, a, bc, 0, DIMS(1), DIMS(0)), SIZES(0, 0));
    return s;
}

/* Scores, weights and values of attention, without the exponential. */
static sample attention(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "attention");
    const dc_ref q = input(&s, 3, DIMS(2, t, 16), SIZES(0, 1, 0)),
                 k = input(&s, 3, DIMS(2, t, 16), SIZES(0, 1, 0));
    const dc_ref v = input(&s, 3, DIMS(2, t, 16), SIZES(0, 1, 0));
    const dc_ref scores = dot(&s, q, k, 1, DIMS(2), DIMS(2));
    const dc_ref p = softmax(&s, scores, 2, 0, true);
    give(&s, dot(&s, masked(&s, p, 2, 0, 0), masked(&s, v, 1, 0, 0), 1, DIMS(2), DIMS(1)),
         SIZES(0, 1, 0));
    return s;
}

/* One value for several users, who need different parts of it. */
static sample shared(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "shared");
    const dc_ref a = input(&s, 2, DIMS(t, 32), SIZES(1, 0)),
                 b = input(&s, 2, DIMS(32, 24), SIZES(0, 0));
    const dc_ref c = dot(&s, a, b, 0, DIMS(1), DIMS(0));
    give(&s, dc_graph_op2(s.f, DC_OP_MUL, c, c), SIZES(1, 0));
    give(&s, dc_graph_permute(s.f, c, DIMS(1, 0)), SIZES(0, 1));
    give(&s, dc_graph_reduce(s.f, DC_OP_SUM, masked(&s, c, 0, 0, 0), 1), SIZES(0));
    return s;
}

static sample two_needs(dc_module *m, int64_t t)
{
    sample s = sample_new(m, "two_needs");
    s.whole = true;
    const dc_ref a = input(&s, 2, DIMS(t, 32), SIZES(0, 0)),
                 b = input(&s, 2, DIMS(32, 24), SIZES(0, 0));
    const dc_ref c = dot(&s, a, b, 0, DIMS(1), DIMS(0));
    give(&s, dc_graph_op2(s.f, DC_OP_MUL, c, c), SIZES(1, 0));
    give(&s, dc_graph_op2(s.f, DC_OP_ADD, c, c), SIZES(2, 0));
    give(&s, dc_graph_flip(s.f, c, 1), SIZES(0, 0));
    return s;
}

typedef sample (*maker)(dc_module *m, int64_t t);

static const maker makers[] = {element_wise,   inner_axis, sum_rows,     sum_columns,
                               sum_all,        reshaped,   softmax_rows, softmax_near,
                               product_m,      product_n,  product_k,    product_all,
                               product_stored, attention,  shared,       two_needs};

/* ---- values ------------------------------------------------------------------------------------ */

static void **memory_of(dc_arena *a, const dc_func *f, const dc_ref *r, uint32_t n)
{
    void **mem = DC_NEW_ARRAY(a, void *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const dc_type t = dc_node_type(f, r[i]);
        mem[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 64);
        mem[i] = (void *)dc_align_up((size_t)mem[i], 64);
        memset(mem[i], PATTERN, dc_type_bytes(&t));
    }
    return mem;
}

/* Is the element before all ends? */
static bool is_inside(const dc_type *t, int64_t at, const int *size, const int32_t *end)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        if (size[i] > 0 && at % t->dim[i] >= end[size[i] - 1])
            return false;
        at /= t->dim[i];
    }
    return true;
}

static void **values(dc_arena *a, const sample *s, rng *r, const int32_t *end)
{
    void **mem = memory_of(a, s->f, s->f->param.at, s->f->param.n);
    for (uint32_t p = 0; p < s->f->param.n; p++) {
        const dc_type t = dc_node_type(s->f, s->f->param.at[p]);
        if (p < 2) {
            memcpy(mem[p], &end[p], sizeof end[p]);
            continue;
        }
        for (int64_t i = 0; i < dc_type_count(&t); i++)
            ((float *)mem[p])[i] =
                is_inside(&t, i, s->size[p], end) ? (float)(rng_below(r, 7) - 3) : NAN;
    }
    return mem;
}

static void fail(const sample *s, const char *how, const int32_t *end)
{
    dc_text text = {0};
    dc_func_print(s->f, &text);
    printf("%s of %s with %d, %d: %s\n%s\n", s->f->name, how, end[0], end[1], flat_said(), text.s);
    dc_text_free(&text);
}

static long compared;

static bool results_right(const sample *s, void *const *got, void *const *want, const int32_t *end)
{
    for (uint32_t n = 0; n < s->f->result.n; n++) {
        const dc_type t = dc_node_type(s->f, s->f->result.at[n]);
        const float *x = got[n], *y = want[n];
        for (int64_t i = 0; i < dc_type_count(&t); i++) {
            if (!is_inside(&t, i, s->rsize[n], end))
                continue;
            compared++;
            if (s->near ? !(fabsf(x[i] - y[i]) <= 1e-5f * fabsf(y[i])) : !(x[i] == y[i])) {
                printf("result %u element %lld: %g, want %g\n", n, (long long)i, (double)x[i],
                       (double)y[i]);
                return false;
            }
        }
    }
    return true;
}

/* ---- kernels one by one, in the interpreter ----------------------------------------------------- */

static bool print_and_parse(dc_kernel *k)
{
    dc_text a = {0}, b = {0};
    dc_kernel *again = NULL;
    dc_nest_print(k, &a);
    bool ok = dc_nest_parse(&flat_job, a.s, &again) == DC_OK;
    if (ok)
        dc_nest_print(again, &b);
    ok = ok && strcmp(a.s, b.s) == 0 && dc_nest_check_given(&flat_job, again) == DC_OK;
    if (!ok)
        printf("%s\n---\n%s\n", a.s, b.n > 0 ? b.s : "");
    if (again != NULL)
        dc_kernel_free(again);
    dc_text_free(&a);
    dc_text_free(&b);
    return ok;
}

static void show(dc_kernel *k, const dc_flat *f)
{
    dc_text text = {0};
    dc_nest_print(k, &text);
    dc_flat_print(f, &text);
    printf("%s\n", text.s);
    dc_text_free(&text);
}

typedef struct schedule {
    int level;
    rng *r; /* moves that are drawn; NULL: the rules' */
} schedule;

typedef struct launch {
    const dc_group *g;
    dc_kernel *k;
    dc_flat *flat;
} launch;

static bool is_too_large(void)
{
    return strstr(flat_said(), "a group needs") != NULL;
}

/* By the rules, or by any moves; those may need more than the target has, and then there is no flat form. */
static bool kernel_of(const dc_groups *gs, uint32_t g, const dc_target *t, const schedule *how,
                      launch *out)
{
    dc_job *j = &flat_job;
    if (dc_lower(j, gs, g, &out->k) != DC_OK || dc_nest_check(j, out->k) != DC_OK)
        return false;
    if (how->r != NULL) {
        sr_list *list = DC_NEW(&j->scratch, sr_list);
        sr_make(&(sr_maker){.r = how->r, .k = out->k, .list = list});
    } else if (how->level > 0 && dc_schedule(j, out->k, t, how->level) != DC_OK) {
        return false;
    }
    if (dc_nest_check(j, out->k) != DC_OK || !print_and_parse(out->k))
        return false;
    if (dc_flatten_for(j, out->k, t, 0, &out->flat) != DC_OK)
        return how->r != NULL && is_too_large();
    return dc_flat_check(j, out->flat) == DC_OK;
}

/* The groups in an order in which they can run. */
static uint32_t order_of(const dc_groups *gs, uint32_t *order)
{
    bool *done = DC_NEW_ARRAY(&flat_job.scratch, bool, gs->n + 1);
    uint32_t n = 0;
    for (uint32_t before = UINT32_MAX; n != before;) {
        before = n;
        for (uint32_t g = 0; g < gs->n; g++) {
            bool ready = !done[g];
            for (uint32_t i = 0; i < gs->at[g].nin; i++) {
                const uint32_t from = gs->group_of[gs->at[g].in[i]];
                ready = ready && (from == DC_NO_GROUP || done[from]);
            }
            if (ready) {
                done[g] = true;
                order[n++] = g;
            }
        }
    }
    return n;
}

static void run_launch(const dc_func *f, const launch *x, void **mem, int64_t *left)
{
    void *param[64];
    for (uint32_t i = 0; i < x->g->nout; i++)
        param[i] = mem[x->g->out[i]];
    for (uint32_t i = 0; i < x->g->nin; i++)
        param[x->g->nout + i] = mem[x->g->in[i]];
    for (uint32_t i = 0; i < x->g->nout; i++) {
        const dc_type t = dc_node_type(f, x->g->out[i]);
        memset(param[i], PATTERN, dc_type_bytes(&t));
    }
    CHECK(flat_runs(x->flat, param, x->flat->positions));
    for (uint32_t i = 0; i < x->g->nout; i++) {
        const dc_type t = dc_node_type(f, x->g->out[i]);
        const size_t size = dc_dtype_size((dc_dtype)t.dtype);
        char untouched[16];
        memset(untouched, PATTERN, sizeof untouched);
        for (int64_t n = 0; n < dc_type_count(&t); n++)
            *left += memcmp((char *)param[i] + (size_t)n * size, untouched, size) == 0;
    }
}

static void try_kernels(const sample *s, const char *target, schedule how, int64_t t, rng *r)
{
    dc_job *j = &flat_job;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_func *f = dc_simplify(s->f);
    const dc_target *on = dc_sim_target_named(target);
    dc_groups gs;
    CHECK(dc_fuse_for(j, &j->scratch, f, how.level, on, &gs) == DC_OK);
    uint32_t *order = DC_NEW_ARRAY(&j->scratch, uint32_t, gs.n + 1);
    launch *all = DC_NEW_ARRAY(&j->scratch, launch, gs.n + 1);
    bool fits = true;
    CHECK_EQ(order_of(&gs, order), gs.n);
    for (uint32_t i = 0; i < gs.n; i++) {
        all[i].g = &gs.at[order[i]];
        if (!CHECK(kernel_of(&gs, order[i], on, &how, &all[i])))
            fail(s, target, (const int32_t[]){0, 0});
    }
    for (uint32_t i = 0; i < gs.n; i++)
        fits = fits && all[i].flat != NULL;
    const int32_t ends[] = {-3, 0, 1, 7, 8, 9, (int32_t)t / 2, (int32_t)t - 1, (int32_t)t};
    for (size_t e = 0; fits && e < DC_COUNTOF(ends); e++) {
        const int32_t end[2] = {ends[e], ends[(size_t)rng_below(r, (int)DC_COUNTOF(ends))]};
        const dc_mark inner = dc_arena_mark(&j->scratch);
        void **mem = DC_NEW_ARRAY(&j->scratch, void *, f->node.n), *got[MOST];
        void **in = values(&j->scratch, s, r, end);
        void **want = memory_of(&j->scratch, s->f, s->f->result.at, s->f->result.n);
        int64_t left = 0;
        CHECK(dc_eval(j, s->f, DC_EVAL_ROUND, (const void *const *)in, want) == DC_OK);
        for (dc_ref n = 1; n < f->node.n; n++)
            mem[n] = memory_of(&j->scratch, f, &n, 1)[0];
        for (uint32_t p = 0; p < f->param.n; p++)
            mem[f->param.at[p]] = in[p];
        for (uint32_t i = 0; i < gs.n; i++)
            run_launch(f, &all[i], mem, &left);
        for (uint32_t i = 0; i < f->result.n; i++)
            got[i] = mem[f->result.at[i]];
        const bool right = results_right(s, got, want, end);
        if (!CHECK(right))
            fail(s, target, end);
        const bool skips =
            end[0] <= 0 && s->rsize[0][0] == 1 && how.level > 0 && how.r == NULL && !s->whole;
        if (skips && !CHECK(left > 0)) {
            fail(s, "nothing was left out", end);
            for (uint32_t i = 0; i < gs.n; i++)
                show(all[i].k, all[i].flat);
        }
        dc_arena_rewind(&j->scratch, inner);
    }
    for (uint32_t i = 0; i < gs.n; i++) {
        dc_flat_free(all[i].flat);
        dc_kernel_free(all[i].k);
    }
    dc_arena_rewind(&j->scratch, mark);
}

static void test_kernels(rng *r)
{
    static const char *const targets[] = {"sim:cpu", "sim:cuda", "sim:opencl"};
    for (size_t i = 0; i < DC_COUNTOF(makers); i++)
        for (size_t t = 0; t < DC_COUNTOF(targets); t++)
            for (int level = 0; level <= 2; level += 2) {
                dc_module *m = dc_module_new();
                const int64_t bound = level == 0 ? 24 : rng_below(r, 3) == 0 ? 67 : 128;
                const sample s = makers[i](m, bound);
                try_kernels(&s, targets[t], (schedule){level, NULL}, bound, r);
                dc_module_free(m);
            }
}

/* What any moves make of limits is right, too. */
static void test_moves(rng *r, int rounds)
{
    static const char *const targets[] = {"sim:cpu", "sim:cuda", "sim:opencl"};
    for (int n = 0; n < rounds; n++)
        for (size_t i = 0; i < DC_COUNTOF(makers); i++) {
            dc_module *m = dc_module_new();
            const int64_t bound = (const int64_t[]){16, 24, 23}[rng_below(r, 3)];
            const sample s = makers[i](m, bound);
            if (!s.near)
                try_kernels(&s, targets[rng_below(r, 3)], (schedule){2, r}, bound, r);
            dc_module_free(m);
        }
}

/* ---- on a device -------------------------------------------------------------------------------- */

static dc_rt *rt;

static void try_device(const sample *s, int64_t t, rng *r)
{
    dc_job *j = &rt->job;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_func *f = s->f;
    const dc_exec_desc d = {.fn = f, .name = "limits", .nfree = f->param.n, .nresult = f->result.n};
    dc_exec *e;
    dc_inst *inst = NULL;
    if (!CHECK(dc_exec_build(rt, j, &d, &e) == DC_OK &&
               dc_inst_new(rt, j, e, NULL, &inst) == DC_OK))
        return;
    const int32_t ends[] = {-3, 0, 1, 7, 8, 9, (int32_t)t - 1, (int32_t)t};
    for (size_t n = 0; n < DC_COUNTOF(ends); n++) {
        const int32_t end[2] = {ends[n], ends[(size_t)rng_below(r, (int)DC_COUNTOF(ends))]};
        void **mem = values(&j->scratch, s, r, end);
        void **want = memory_of(&j->scratch, f, f->result.at, f->result.n), *got[MOST];
        dc_arg arg[MOST];
        dc_tensor *in[MOST], *out[MOST];
        dc_fault fault;
        CHECK(dc_eval(j, f, DC_EVAL_ROUND, (const void *const *)mem, want) == DC_OK);
        for (uint32_t i = 0; i < f->param.n; i++) {
            const dc_type type = dc_node_type(f, f->param.at[i]);
            CHECK(dc_tensor_new(rt, j, &type, &in[i]) == DC_OK);
            memcpy(dc_tensor_mem(in[i]), mem[i], dc_type_bytes(&type));
            arg[i] = (dc_arg){.tensor = in[i]};
        }
        if (CHECK(dc_inst_call(inst, j, arg, out, &fault) == DC_OK)) {
            for (uint32_t i = 0; i < f->result.n; i++)
                got[i] = dc_tensor_mem(out[i]);
            if (!CHECK(results_right(s, got, want, end)))
                fail(s, "cpu", end);
            for (uint32_t i = 0; i < f->result.n; i++)
                dc_tensor_release(out[i]);
        }
        for (uint32_t i = 0; i < f->param.n; i++)
            dc_tensor_release(in[i]);
    }
    dc_inst_free(inst);
    dc_exec_release(e);
    dc_arena_rewind(&j->scratch, mark);
}

static dc_status on_device(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    for (size_t i = 0; i < DC_COUNTOF(makers); i++) {
        dc_module *m = dc_module_new();
        const int64_t bound = i % 3 == 0 ? 512 : 128;
        const sample s = makers[i](m, bound);
        try_device(&s, bound, arg);
        dc_module_free(m);
    }
    return DC_OK;
}

static void test_device(rng *r)
{
    static dc_log log;
    dc_opts opts;
    const char *bad;
    dc_device *dev;
    bool interpret;
    dc_opts_init(&opts, &bad);
    opts.check = 2;
    rt = dc_rt_new(&opts, &log);
    if (CHECK(dc_backend_open(&rt->job, "cpu", &dev, &interpret) == DC_OK)) {
        dc_rt_set_device(rt, dev, interpret);
        CHECK(dc_protect(&rt->job, on_device, r) == DC_OK);
        CHECK_EQ((long long)rt->stats.fallbacks, 0);
    }
    dc_rt_free(rt);
}

static int rounds = 10;

static dc_status in_interpreter(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    test_kernels(arg);
    test_moves(arg, rounds);
    return DC_OK;
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 20261125)};
    rounds = argc > 2 ? atoi(argv[2]) : rounds;
    flat_open();
    if (!CHECK(dc_protect(&flat_job, in_interpreter, &r) == DC_OK))
        printf("%s\n", flat_said());
    flat_close();
    test_device(&r);
    printf("%ld elements\n", compared);
    return t_done();
}
