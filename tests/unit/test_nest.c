/*
 * Fusion, lowering and schedule moves without a compiler: graphs are fused, lowered and run by the
 * interpreter of the nest form, after every prefix of the moves that the schedule applies, and the
 * results compared with the graph interpreter.
 */
#include "tests/t.h"

#include "core/eval/eval.h"
#include "core/ir/dft.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/moves/move.h"
#include "jit/rewrite/fft_stages.h"
#include "jit/rewrite/rules.h"
#include "jit/schedule/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nest_interp.h"

static dc_opts opts;
static dc_job job;
static const dc_target target = {.name = "test", .vector_bytes = 64, .vector_registers = 32};

static void show(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stderr);
}

static float next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

typedef struct memory { /* one array per ref that needs one */
    void **at;
} memory;

static void **make_memory(const dc_func *f)
{
    void **mem = dc_arena_alloc(&job.scratch, f->node.n * sizeof *mem);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_type t = dc_node_type(f, r);
        mem[r] = dc_arena_alloc(&job.scratch, dc_type_bytes(&t) + 1);
    }
    return mem;
}

/* Runs group g with the first `moves` moves of its schedule; returns how many the schedule has. */
static uint32_t run_group(const dc_groups *gs, uint32_t g, void **mem, uint32_t moves)
{
    dc_kernel *k, *plan;
    const dc_group *group = &gs->at[g];
    CHECK(dc_lower(&job, gs, g, &plan) == DC_OK);
    CHECK(dc_lower(&job, gs, g, &k) == DC_OK);
    CHECK(dc_schedule(&job, plan, &target, 2) == DC_OK);
    const char *why = "";
    for (uint32_t i = 0; i < plan->moves.n && i < moves; i++)
        CHECK(dc_move_apply_text(k, dc_move_text(plan, plan->moves.at[i], &job.scratch), &why));
    CHECK(dc_nest_check(&job, k) == DC_OK);
    void *param[64];
    uint32_t n = 0;
    for (uint32_t i = 0; i < group->nout; i++)
        param[n++] = mem[group->out[i]];
    for (uint32_t i = 0; i < group->nin; i++)
        param[n++] = mem[group->in[i]];
    const dc_status s = dc_nest_run(&job, k, param);
    if (s != DC_OK) {
        dc_text text = {0};
        dc_nest_print(k, &text);
        fprintf(stderr, "%s\n%s\n", job.err.text, text.s);
        dc_text_free(&text);
    }
    CHECK(s == DC_OK);
    const uint32_t count = plan->moves.n;
    dc_kernel_free(k);
    dc_kernel_free(plan);
    return count;
}

/* Runs all groups in an order that respects what they read. */
static void run_groups(const dc_groups *gs, void **mem, uint32_t moves, uint32_t *most)
{
    bool *done = dc_arena_alloc(&job.scratch, gs->n);
    for (uint32_t left = gs->n; left > 0;) {
        const uint32_t before = left;
        for (uint32_t g = 0; g < gs->n; g++) {
            bool ready = !done[g];
            for (uint32_t i = 0; i < gs->at[g].nin; i++) {
                const uint32_t from = gs->group_of[gs->at[g].in[i]];
                ready &= from == DC_NO_GROUP || done[from];
            }
            if (!ready)
                continue;
            done[g] = true;
            left--;
            const uint32_t n = run_group(gs, g, mem, moves);
            if (n > *most)
                *most = n;
        }
        CHECK(left < before); /* else the groups depend on each other in a cycle */
        if (left == before)
            return;
    }
}

static bool close_enough(const dc_func *f, dc_ref r, const void *got, const void *want)
{
    const dc_type t = dc_node_type(f, r);
    for (int64_t i = 0; i < dc_type_count(&t); i++) {
        const size_t size = dc_dtype_size(t.dtype);
        const uint64_t a = dc_bits_load(t.dtype, (const char *)got + (size_t)i * size);
        const uint64_t b = dc_bits_load(t.dtype, (const char *)want + (size_t)i * size);
        if (a == b)
            continue;
        if (!dc_dtype_is_float(t.dtype))
            return false;
        const double x = dc_value_of(t.dtype, a), y = dc_value_of(t.dtype, b);
        if (!(fabs(x - y) <= 1e-4 * (1 + fabs(y)))) {
            fprintf(stderr, "element %lld: %g, want %g\n", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

/* The graph through the whole middle, every prefix of the moves, against the interpreter. */
static uint32_t run_all(dc_func *built, int level)
{
    const dc_mark mark = dc_arena_mark(&job.scratch);
    dc_func *f = dc_rules_apply(&job.scratch, built, NULL);
    dc_groups gs;
    CHECK(dc_fuse(&job, &job.scratch, f, level, &gs) == DC_OK);
    void **mem = make_memory(f);
    const void *params[16];
    void *results[16];
    uint32_t seed = 1;
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_ref p = f->param.at[i];
        const dc_type t = dc_node_type(f, p);
        for (int64_t e = 0; e < dc_type_count(&t); e++)
            dc_bits_store(t.dtype, (char *)mem[p] + (size_t)e * dc_dtype_size(t.dtype),
                          dc_bits_of(t.dtype, dc_dtype_is_float(t.dtype)
                                                  ? (double)next_random(&seed)
                                                  : (double)((int)(next_random(&seed) * 8) + 8)));
        params[i] = mem[p];
    }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        results[i] = dc_arena_alloc(&job.scratch, dc_type_bytes(&t) + 1);
    }
    CHECK(dc_eval(&job, f, DC_EVAL_ROUND, params, results) == DC_OK);
    uint32_t most = 0;
    for (uint32_t moves = 0; moves <= most; moves++) {
        run_groups(&gs, mem, moves, &most);
        for (uint32_t i = 0; i < f->result.n; i++)
            CHECK(close_enough(f, f->result.at[i], mem[f->result.at[i]], results[i]));
    }
    dc_arena_rewind(&job.scratch, mark);
    return gs.n;
}

static dc_type f32(int rank, int64_t a, int64_t b, int64_t c)
{
    const int64_t dim[3] = {a, b, c};
    return dc_type_make(DC_F32, rank, dim);
}

static void test_index(void)
{
    dc_kernel *k = dc_kernel_new("t");
    const uint32_t i = dc_axis_new(k, "i", 6272, false), j = dc_axis_new(k, "j", 4, false);
    const dc_ix x = dc_ix_axis(k, i), y = dc_ix_axis(k, j);
    /* taking apart by 8 * 98 * 8 and putting together again */
    const dc_ix d0 = dc_ix_div(k, x, 784), d1 = dc_ix_mod(k, dc_ix_div(k, x, 8), 98);
    const dc_ix d2 = dc_ix_mod(k, x, 8);
    const dc_ix back = dc_ix_add(k, dc_ix_add(k, dc_ix_mul(k, d0, 784), dc_ix_mul(k, d1, 8)), d2);
    CHECK_EQ(back, x);
    const dc_ix s = dc_ix_add(k, dc_ix_mul(k, x, 4), y);
    CHECK_EQ(dc_ix_div(k, s, 4), x);
    CHECK_EQ(dc_ix_mod(k, s, 4), y);
    CHECK_EQ(dc_ix_mod(k, dc_ix_mod(k, x, 12), 4), dc_ix_mod(k, x, 4));
    CHECK_EQ(dc_ix_div(k, dc_ix_div(k, x, 3), 5), dc_ix_div(k, x, 15));
    CHECK_EQ(dc_ix_div(k, dc_ix_add(k, y, dc_ix_const(k, -4)), 4), dc_ix_const(k, -1));
    CHECK_EQ(dc_ix_mod(k, dc_ix_add(k, y, dc_ix_const(k, -4)), 4), y);
    dc_kernel_free(k);
}

/* A product with bias and relu, its gradients' shapes, a softmax: one function. */
static dc_func *dense(dc_module *m, int64_t rows, int64_t in, int64_t out)
{
    dc_func *f = dc_func_new(m, "dense");
    const dc_type tx = f32(2, rows, in, 0), tw = f32(2, in, out, 0), tb = f32(1, out, 0, 0);
    const dc_ref x = dc_graph_param(f, &tx, "x"), w = dc_graph_param(f, &tw, "w");
    const dc_ref b = dc_graph_param(f, &tb, "b");
    const int64_t one[1] = {1}, zero[1] = {0}, row[2] = {1, out}, full[2] = {rows, out};
    const dc_ref y = dc_graph_dot(f, x, w, 0, NULL, NULL, 1, one, zero);
    const dc_ref a =
        dc_graph_op2(f, DC_OP_ADD, y, dc_graph_expand(f, dc_graph_reshape(f, b, 2, row), full));
    const dc_ref h = dc_graph_op2(f, DC_OP_MAX, a, dc_graph_like(f, a, 0));
    const dc_ref top = dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_MAXR, h, 2), 2, 2, full);
    const dc_ref e = dc_graph_op1(f, DC_OP_EXP, dc_graph_op2(f, DC_OP_SUB, h, top));
    const dc_ref sum = dc_graph_unreduce(f, dc_graph_reduce(f, DC_OP_SUM, e, 2), 2, 2, full);
    const dc_ref p = dc_graph_op2(f, DC_OP_DIV, e, sum);
    const dc_ref dw = dc_graph_dot(f, x, p, 0, NULL, NULL, 1, zero, zero);
    const dc_ref dx = dc_graph_dot(f, p, w, 0, NULL, NULL, 1, one, one);
    const dc_ref db = dc_graph_reduce(f, DC_OP_SUM, p, 1);
    const dc_ref neww =
        dc_graph_op2(f, DC_OP_SUB, w, dc_graph_op2(f, DC_OP_MUL, dw, dc_graph_like(f, dw, 0.1)));
    DC_PUSH(f->result, p);
    DC_PUSH(f->result, neww);
    DC_PUSH(f->result, dx);
    DC_PUSH(f->result, db);
    DC_PUSH(f->result, dc_graph_reduce(f, DC_OP_SUM, dx, 3));
    return f;
}

static dc_func *movements(dc_module *m)
{
    dc_func *f = dc_func_new(m, "movements");
    const dc_type t = f32(3, 3, 4, 5);
    const dc_ref x = dc_graph_param(f, &t, "x");
    const int64_t perm[3] = {2, 0, 1}, flat[2] = {5, 12}, lo[2] = {1, 2}, two[2] = {2, 1};
    const int64_t padded[2] = {10, 15}, start[2] = {0, 3}, cut[2] = {5, 11};
    const dc_ref y = dc_graph_reshape(f, dc_graph_permute(f, x, perm), 2, flat);
    const dc_ref p = dc_graph_pad(f, y, lo, two, padded, dc_bits_of(DC_F32, 2));
    const dc_ref s = dc_graph_slice(f, p, start, two, cut);
    const dc_ref fl = dc_graph_flip(f, s, 2);
    DC_PUSH(f->result, p);
    DC_PUSH(f->result, fl);
    DC_PUSH(f->result, dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, fl, s), 1));
    DC_PUSH(f->result, dc_graph_reduce(f, DC_OP_MINR, dc_graph_reshape(f, x, 2, flat), 2));
    return f;
}

static dc_func *batched(dc_module *m)
{
    dc_func *f = dc_func_new(m, "batched");
    const dc_type ta = f32(3, 3, 9, 17), tb = f32(3, 3, 17, 33);
    const dc_ref a = dc_graph_param(f, &ta, "a"), b = dc_graph_param(f, &tb, "b");
    const int64_t zero[1] = {0}, one[1] = {1}, two[1] = {2};
    DC_PUSH(f->result, dc_graph_dot(f, a, b, 1, zero, zero, 1, two, one));
    return f;
}

/* Moves that do not fit are refused with a reason and change nothing. */
/* The transform of each row, as one kernel. */
static dc_func *transforms(dc_module *m, dc_dtype t, int64_t rows, int64_t n, int64_t after)
{
    dc_func *f = dc_func_new(m, "transforms");
    const dc_type tx = dc_type_make(t, 4, (const int64_t[]){rows, n, after, 2});
    const dc_ref x = dc_graph_param(f, &tx, "x");
    DC_PUSH(f->result, dc_graph_dft(f, x, 1, -1));
    dc_func *whole = dc_fft_stages(&job.scratch, f, true);
    CHECK(whole != NULL);
    for (dc_ref r = 1; r < whole->node.n; r++)
        CHECK(dc_node_at(whole, r)->op != DC_OP_STAGE);
    return whole;
}

static void test_refusals(dc_module *m)
{
    static const char *const refused[] = {
        "split i9 4",        "split i0 0",   "vectorize i0", "vectorize k",      "grid i1",
        "reorder i0 i1",     "reorder k i0", "unroll i1",    "split i0",         "reorder k",
        "split_reduce i0 4", "twist i0",     "reorder k i9", "split_reduce k 1",
    };
    dc_groups gs;
    dc_func *f = dc_func_new(m, "product");
    const dc_type ta = f32(2, 70, 30, 0), tb = f32(2, 30, 70, 0);
    const int64_t zero[1] = {0}, one[1] = {1};
    DC_PUSH(f->result, dc_graph_dot(f, dc_graph_param(f, &ta, "a"), dc_graph_param(f, &tb, "b"), 0,
                                    NULL, NULL, 1, one, zero));
    CHECK(dc_fuse(&job, &job.scratch, f, 2, &gs) == DC_OK);
    dc_kernel *k;
    CHECK(dc_lower(&job, &gs, 0, &k) == DC_OK);
    dc_text before = {0};
    dc_nest_print(k, &before);
    for (size_t i = 0; i < DC_COUNTOF(refused); i++) {
        const char *why = NULL;
        CHECK(!dc_move_apply_text(k, refused[i], &why));
        CHECK(why != NULL && *why != '\0');
    }
    dc_text after = {0};
    dc_nest_print(k, &after);
    CHECK_STR(after.s, before.s);
    dc_text_free(&before);
    dc_text_free(&after);
    dc_kernel_free(k);
}

/* Rules make the same moves whatever the length of names is. */
static void test_long_names(void)
{
    static const char *const name[2][5] = {
        {"m", "n", "k", "x0", "x1"},
        {"an.axis.whose.name.is.so.long.that.no.word.had.it.before",
         "columns.of.the.right.operand.i", "terms.of.the.sum.o.i.o.i.o.i",
         "the.left.operand.of.all", "the.right.operand.of.all"}};
    dc_kernel *k[2];
    for (int i = 0; i < 2; i++) {
        const char *const *a = name[i];
        const char *text = dc_arena_printf(
            &job.scratch,
            "kernel k(out0: f32[48000] out, %s: f32[360000], %s: f32[480000]) {\n"
            "  local acc: f32[1]\n  for %s in 120\n    for %s in 400\n      acc[0] = 0:f32\n"
            "      for %s in 3000 reduce\n        acc[0] add= mul(%s[3000*%s + %s], %s[400*%s + "
            "%s])\n"
            "      out0[400*%s + %s] = acc[0]\n}\n",
            a[3], a[4], a[0], a[1], a[2], a[3], a[0], a[2], a[4], a[2], a[1], a[0], a[1]);
        CHECK(dc_nest_parse(&job, text, &k[i]) == DC_OK);
        CHECK(dc_schedule(&job, k[i], &target, 2) == DC_OK);
        CHECK(dc_nest_check(&job, k[i]) == DC_OK);
    }
    CHECK(k[0]->moves.n > 15);
    CHECK_EQ(k[1]->moves.n, k[0]->moves.n);
    for (uint32_t i = 0; i < k[0]->moves.n && i < k[1]->moves.n; i++)
        CHECK(memcmp(k[0]->moves.at[i], k[1]->moves.at[i], sizeof(dc_move)) == 0);
    dc_kernel_free(k[0]);
    dc_kernel_free(k[1]);
}

/* What fusion must find: counts of groups that data flow allows. */
static void test_counts(dc_module *m)
{
    dc_groups gs;
    const dc_type tx = f32(2, 64, 784, 0), tg = f32(2, 64, 128, 0), tw = f32(2, 784, 128, 0);
    const int64_t zero[1] = {0};
    dc_func *f = dc_func_new(m, "update");
    const dc_ref x = dc_graph_param(f, &tx, "x"), g = dc_graph_param(f, &tg, "g");
    const dc_ref w = dc_graph_param(f, &tw, "w"), mom = dc_graph_param(f, &tw, "m");
    const dc_ref vel = dc_graph_param(f, &tw, "v");
    const dc_ref dw = dc_graph_dot(f, x, g, 0, NULL, NULL, 1, zero, zero);
    const dc_ref newm =
        dc_graph_op2(f, DC_OP_ADD, dc_graph_op2(f, DC_OP_MUL, mom, dc_graph_like(f, mom, 0.9)),
                     dc_graph_op2(f, DC_OP_MUL, dw, dc_graph_like(f, dw, 0.1)));
    const dc_ref newv =
        dc_graph_op2(f, DC_OP_ADD, dc_graph_op2(f, DC_OP_MUL, vel, dc_graph_like(f, mom, 0.99)),
                     dc_graph_op2(f, DC_OP_MUL, dw, dw));
    const dc_ref step = dc_graph_op2(f, DC_OP_DIV, newm, dc_graph_op1(f, DC_OP_SQRT, newv));
    DC_PUSH(f->result, dc_graph_op2(f, DC_OP_SUB, w, step));
    DC_PUSH(f->result, newm);
    DC_PUSH(f->result, newv);
    CHECK(dc_fuse(&job, &job.scratch, f, 2, &gs) == DC_OK);
    CHECK_EQ(gs.n, 1); /* the product and Adam's three results: one kernel */
    dc_kernel *k;
    CHECK(dc_lower(&job, &gs, 0, &k) == DC_OK);
    for (uint32_t o = 0; o < gs.at[0].nout; o++)
        for (uint32_t i = 0; i < gs.at[0].nin; i++) {
            const dc_ref in = gs.at[0].in[i];
            const bool state = in == w || in == mom || in == vel;
            CHECK_EQ(dc_lower_in_place(k, &gs.at[0], o, i), state);
        }
    dc_kernel_free(k);

    /* relu in the epilogue and its mask for the gradient: two outputs of one kernel */
    dc_func *h = dc_func_new(m, "relu");
    const dc_ref a = dc_graph_param(h, &tx, "x"), b = dc_graph_param(h, &tw, "w");
    const int64_t one[1] = {1};
    const dc_ref y = dc_graph_dot(h, a, b, 0, NULL, NULL, 1, one, zero);
    const dc_ref z = dc_graph_op2(h, DC_OP_MAX, y, dc_graph_like(h, y, 0));
    DC_PUSH(h->result, z);
    DC_PUSH(h->result, dc_graph_op2(h, DC_OP_LT, dc_graph_like(h, y, 0), y));
    CHECK(dc_fuse(&job, &job.scratch, h, 2, &gs) == DC_OK);
    CHECK_EQ(gs.n, 1);
}

/* A sum of forty inputs for a device whose kernels take eight buffers. */
static void test_few_buffers(dc_module *m)
{
    dc_groups gs;
    dc_func *f = dc_func_new(m, "forty");
    const dc_type t = f32(1, 5, 0, 0);
    dc_ref sum = dc_graph_param(f, &t, "x");
    for (int i = 1; i < 40; i++)
        sum = dc_graph_op2(f, DC_OP_ADD, sum, dc_graph_param(f, &t, "x"));
    DC_PUSH(f->result, sum);
    CHECK(dc_fuse_for(&job, &job.scratch, f, 2, &(dc_target){0}, &gs) == DC_OK);
    CHECK_EQ(gs.n, 1);
    CHECK(dc_fuse_for(&job, &job.scratch, f, 2, &(dc_target){.buffers = 8}, &gs) == DC_OK);
    CHECK(gs.n > 4);
    for (uint32_t g = 0; g < gs.n; g++)
        CHECK(gs.at[g].nin + gs.at[g].nout <= 8);
}

static dc_status body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_index();
    dc_module *m = dc_module_new();
    CHECK(run_all(dense(m, 16, 20, 12), 0) > 10);
    printf("dense 16x20x12: %u groups\n", run_all(dense(m, 16, 20, 12), 2));
    run_all(dense(m, 1, 37, 40), 2);
    run_all(dense(m, 13, 3, 67), 2);
    run_all(dense(m, 28, 64, 10), 2);
    run_all(movements(m), 2);
    run_all(movements(m), 0);
    run_all(batched(m), 2);
    run_all(transforms(m, DC_F32, 131, 34, 1), 2); /* rows and columns behind whole blocks */
    run_all(transforms(m, DC_F64, 67, 6, 1), 2);
    run_all(transforms(m, DC_F64, 8, 128, 1), 2); /* one row in each work item */
    run_all(transforms(m, DC_F32, 3, 6, 48), 2);  /* along an axis that is not the last one */
    test_refusals(m);
    test_counts(m);
    test_long_names();
    test_few_buffers(m);
    dc_module_free(m);
    return DC_OK;
}

int main(void)
{
    static dc_log log = {.write = show};
    const char *bad;
    dc_opts_init(&opts, &bad);
    dc_log_select(&log, opts.debug);
    dc_job_init(&job, &opts, &log);
    const dc_status s = dc_protect(&job, body, NULL);
    if (s != DC_OK) {
        char text[600];
        dc_err_render(&job.err, 0, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    CHECK(s == DC_OK);
    dc_job_fini(&job);
    return t_done();
}
