/*
 * Compiled code against the interpreter: every row of the op table by itself, then random graphs, on
 * device cpu with guard zones round every buffer and temporary, and through the interpreter of the
 * nest form. What may differ is bounded by graphgen_bound, with constant 1.
 *
 *   test_diff [seed [graphs]]
 */
#include "backends/registry.h"
#include "core/eval.h"
#include "core/gtext.h"
#include "core/simplify.h"
#include "jit/fuse.h"
#include "jit/jit.h"
#include "jit/layout.h"
#include "jit/lower.h"
#include "jit/ninterp.h"
#include "jit/schedule.h"
#include "tests/t.h"
#include "tests/unit/graphgen.h"

#include <stdlib.h>
#include <string.h>

static dc_rt *rt;
static long compared, by_row;

static void show(void *ctx, const char *text, size_t n)
{
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stderr);
}

static void print_failure(const dc_func *f, const char *how)
{
    char text[700];
    dc_text graph = {0};
    dc_err_render(&rt->job.err, 0, text, sizeof text);
    dc_func_print(f, &graph);
    printf("%s: %s\n%s\n", how, rt->job.err.status != DC_OK ? text : "results differ", graph.s);
    dc_text_free(&graph);
}

typedef struct problem { /* a function, inputs, and what may come out */
    const dc_func *f;
    void **param, **got;
    double **value, **bound;
} problem;

static problem prepare(const dc_func *f, rng *r, bool special)
{
    dc_arena *a = &rt->job.scratch;
    problem p = {.f = f};
    p.param = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    p.got = DC_NEW_ARRAY(a, void *, f->result.n + 1);
    p.value = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    p.bound = DC_NEW_ARRAY(a, double *, f->result.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        p.param[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        graphgen_input(r, &t, special, p.param[i]);
    }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        p.got[i] = dc_arena_alloc(a, dc_type_bytes(&t) + 1);
        p.value[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
        p.bound[i] = DC_NEW_ARRAY(a, double, dc_type_count(&t) + 1);
    }
    CHECK(graphgen_bound(&rt->job, f, (const void *const *)p.param, p.value, p.bound) == DC_OK);
    return p;
}

static bool compare(const problem *p, const char *how)
{
    bool ok = true;
    for (uint32_t i = 0; i < p->f->result.n; i++) {
        const dc_type t = dc_node_type(p->f, p->f->result.at[i]);
        const int64_t n = dc_type_count(&t);
        const int64_t at = graphgen_differs(t.dtype, p->got[i], p->value[i], p->bound[i], n, 1);
        compared += (long)n;
        if (at >= 0) {
            const size_t size = dc_dtype_size(t.dtype);
            const uint64_t bits = dc_bits_load(t.dtype, (char *)p->got[i] + (size_t)at * size);
            printf("result %u element %lld: %.9g, want %.9g within %g\n", i, (long long)at,
                   dc_value_of(t.dtype, bits), p->value[i][at], p->bound[i][at]);
            ok = false;
        }
    }
    if (!ok)
        print_failure(p->f, how);
    return ok;
}

/* On the device, through the public door of jit/. */
static dc_status run_compiled(const problem *p)
{
    dc_job *j = &rt->job;
    const dc_func *f = p->f;
    const dc_exec_desc d = {
        .fn = f, .name = "diff", .nfree = f->param.n, .nresult = f->result.n};
    dc_exec *e;
    dc_inst *inst = NULL;
    dc_arg *arg = DC_NEW_ARRAY(&j->scratch, dc_arg, f->param.n + 1);
    dc_tensor **in = DC_NEW_ARRAY(&j->scratch, dc_tensor *, f->param.n + 1);
    dc_tensor **out = DC_NEW_ARRAY(&j->scratch, dc_tensor *, f->result.n + 1);
    dc_fault fault;
    DC_TRY(dc_exec_build(rt, j, &d, &e));
    dc_status s = dc_inst_new(rt, j, e, NULL, &inst);
    for (uint32_t i = 0; i < f->param.n && s == DC_OK; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        s = dc_tensor_new(rt, j, &t, &in[i]);
        if (s == DC_OK)
            memcpy(dc_tensor_mem(in[i]), p->param[i], dc_type_bytes(&t));
        arg[i] = (dc_arg){.tensor = in[i]};
    }
    if (s == DC_OK)
        s = dc_inst_call(inst, j, arg, out, &fault);
    for (uint32_t i = 0; i < f->result.n && s == DC_OK; i++) {
        memcpy(p->got[i], dc_tensor_mem(out[i]), dc_type_bytes(&out[i]->type));
        dc_tensor_release(out[i]);
    }
    for (uint32_t i = 0; i < f->param.n; i++)
        dc_tensor_release(in[i]);
    if (inst != NULL)
        dc_inst_free(inst);
    dc_exec_release(e);
    return s;
}

/* Without a compiler: fusion, lowering and schedules in the interpreter of the nest form. */
static dc_status run_nests(const problem *p, int level)
{
    static const dc_target target = {.vector_bytes = 64, .vector_registers = 32};
    dc_job *j = &rt->job;
    dc_func *f = dc_layout(&j->scratch, dc_simplify(p->f));
    dc_groups gs;
    DC_TRY(dc_fuse(j, &j->scratch, f, level, &gs));
    void **mem = DC_NEW_ARRAY(&j->scratch, void *, f->node.n);
    bool *done = DC_NEW_ARRAY(&j->scratch, bool, gs.n + 1);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_type t = dc_node_type(f, r);
        mem[r] = dc_arena_alloc(&j->scratch, dc_type_bytes(&t) + 1);
    }
    for (uint32_t i = 0; i < f->param.n; i++)
        mem[f->param.at[i]] = p->param[i];
    for (uint32_t left = gs.n, before = left + 1; left > 0 && left < before;) {
        before = left;
        for (uint32_t g = 0; g < gs.n; g++) {
            const dc_group *x = &gs.at[g];
            bool ready = !done[g];
            for (uint32_t i = 0; i < x->nin; i++) {
                const uint32_t from = gs.group_of[x->in[i]];
                ready &= from == DC_NO_GROUP || done[from];
            }
            if (!ready)
                continue;
            done[g] = true;
            left--;
            if (dc_node_count(dc_node_at(f, x->out[0])) == 0)
                continue;
            void **param = DC_NEW_ARRAY(&j->scratch, void *, x->nout + x->nin);
            for (uint32_t i = 0; i < x->nout; i++)
                param[i] = mem[x->out[i]];
            for (uint32_t i = 0; i < x->nin; i++)
                param[x->nout + i] = mem[x->in[i]];
            dc_kernel *k;
            DC_TRY(dc_lower(j, &gs, g, &k));
            dc_status s = dc_schedule(j, k, &target, level);
            if (s == DC_OK)
                s = dc_nest_check(j, k);
            if (s == DC_OK)
                s = dc_nest_run(j, k, param);
            dc_kernel_free(k);
            DC_TRY(s);
        }
        CHECK(left < before);
    }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        memcpy(p->got[i], mem[f->result.at[i]], dc_type_bytes(&t));
    }
    return DC_OK;
}

static bool try_all(const dc_func *f, rng *r, bool special, bool compiled)
{
    const dc_mark mark = dc_arena_mark(&rt->job.scratch);
    const problem p = prepare(f, r, special);
    bool ok = true;
    for (int level = 0; level <= 2; level += 2) {
        const dc_status s = run_nests(&p, level);
        if (s != DC_OK)
            print_failure(f, "nest");
        ok &= s == DC_OK && compare(&p, level ? "nest, fused and scheduled" : "nest, naive");
    }
    if (compiled) {
        const dc_status s = run_compiled(&p);
        if (s != DC_OK)
            print_failure(f, "cpu");
        ok &= s == DC_OK && compare(&p, "cpu");
    }
    rt->job.err = (dc_err){0};
    dc_arena_rewind(&rt->job.scratch, mark);
    return ok;
}

/* Rows ---------------------------------------------------------------------------------------- */

static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {2, 16, 33}, {13, 1, 64}};

/* Attributes for a unary movement or reduction of a rank-3 operand; fills the type wanted. */
static int attributes(dc_op op, const int64_t *dim, int64_t *attr, dc_type *want)
{
    switch ((int)op) {
    case DC_OP_PERMUTE:
        memcpy(attr, (const int64_t[]){2, 0, 1}, 3 * sizeof *attr);
        return 3;
    case DC_OP_RESHAPE:
        want->rank = 2;
        want->dim[0] = dim[0] * dim[1];
        want->dim[1] = dim[2];
        return 0;
    case DC_OP_SLICE:
        for (int i = 0; i < 3; i++) {
            attr[i] = dim[i] / 3;
            attr[3 + i] = 1 + i % 2;
            want->dim[i] = (dim[i] - attr[i] + attr[3 + i] - 1) / attr[3 + i];
        }
        return 6;
    case DC_OP_PAD:
        for (int i = 0; i < 3; i++) {
            attr[i] = i;
            attr[3 + i] = 1 + i % 2;
            want->dim[i] = attr[i] + (dim[i] - 1) * attr[3 + i] + 1 + 2;
        }
        attr[6] = 1;
        return 7;
    case DC_OP_FLIP:
    case DC_OP_SUM:
    case DC_OP_MAXR:
    case DC_OP_MINR:
        attr[0] = 5;
        return 1;
    default:
        return 0;
    }
}

/* One node of the op with operands of dtype t; false where the op does not take the dtype. */
static dc_func *one_node(dc_module *m, dc_op op, dc_dtype t, dc_dtype to, const int64_t *dim)
{
    dc_job *j = &rt->job;
    const dc_op_row *row = dc_op_row_of(op);
    dc_func *f = dc_func_new(m, row->name);
    dc_type type = dc_type_make(t, 3, dim), want = type;
    int64_t attr[16] = {0};
    dc_ref in[4], out;
    int nattr = 0;
    for (int i = 0; i < row->n; i++) {
        dc_type ti = type;
        if (op == DC_OP_WHERE && i == 0)
            ti.dtype = DC_BOOL;
        if (op == DC_OP_EXPAND)
            ti.dim[1] = 1;
        if (op == DC_OP_DOT && i == 1) {
            ti.dim[0] = 6;
            ti.dim[1] = dim[2];
            ti.dim[2] = dim[1];
        }
        in[i] = dc_g_param(f, &ti, "x");
    }
    if (op == DC_OP_DOT) { /* contracts axes 1, 2 with 2, 1 */
        memcpy(attr, (const int64_t[]){0, 2, 1, 2, 2, 1}, 6 * sizeof *attr);
        nattr = 6;
    } else if (op == DC_OP_IOTA) {
        attr[0] = 1;
        nattr = 1;
    } else if (op == DC_OP_CONST) {
        attr[0] = (int64_t)dc_bits_of(t, 3);
        nattr = 1;
    } else {
        nattr = attributes(op, dim, attr, &want);
    }
    if (op == DC_OP_CAST)
        want.dtype = (uint8_t)to;
    const dc_status s = dc_make(j, f, op, in, row->n, attr, nattr, &want, &out);
    j->err = (dc_err){0};
    if (s != DC_OK)
        return NULL;
    DC_PUSH(f->result, out);
    return f;
}

static void test_rows(dc_module *m, rng *r)
{
    for (int op = 0; op < DC_OP__COUNT; op++) {
        long cases = 0;
        if (op == DC_OP_PARAM)
            continue;
        for (int t = 0; t < DC_DTYPE__COUNT; t++)
            for (size_t s = 0; s < DC_COUNTOF(shapes); s++)
                for (int to = 0; to < (op == DC_OP_CAST ? DC_DTYPE__COUNT : 1); to++) {
                    dc_func *f = one_node(m, (dc_op)op, (dc_dtype)t, (dc_dtype)to, shapes[s]);
                    if (f == NULL)
                        continue;
                    cases++;
                    CHECK(try_all(f, r, false, s == 2 || op == DC_OP_DOT));
                }
        if (cases == 0)
            printf("no case for %s\n", dc_op_row_of((dc_op)op)->name);
        CHECK(cases > 0);
        by_row += cases;
    }
}

static dc_status body(dc_job *j, void *arg)
{
    const uint64_t *opt = arg;
    rng r = {opt[0]};
    DC_UNUSED(j);
    dc_module *m = dc_module_new();
    test_rows(m, &r);
    dc_module_free(m);
    for (uint64_t g = 0; g < opt[1]; g++) {
        const uint64_t seed = opt[0] + g;
        m = dc_module_new();
        dc_func *f = graphgen_func(m, seed, 4 + (int)(g % 16));
        if (!CHECK(try_all(f, &r, g % 4 == 3, true)))
            printf("graph seed %llu size %d\n", (unsigned long long)seed, 4 + (int)(g % 16));
        dc_module_free(m);
    }
    return DC_OK;
}

int main(int argc, char **argv)
{
    uint64_t opt[2] = {rng_seed(argc, argv, 20261121), 200};
    dc_opts opts;
    dc_log log = {.write = show};
    dc_device *dev;
    bool interpret;
    const char *bad;
    if (argc > 2)
        opt[1] = strtoull(argv[2], NULL, 0);
    dc_opts_init(&opts, &bad);
    opts.check = 2;
    dc_log_select(&log, opts.debug);
    rt = dc_rt_new(&opts, &log);
    if (!CHECK(dc_backend_open(&rt->job, "cpu", &dev, &interpret) == DC_OK))
        return t_done();
    dc_rt_set_device(rt, dev, interpret);
    const dc_status s = dc_protect(&rt->job, body, opt);
    if (s != DC_OK) {
        char text[700];
        dc_err_render(&rt->job.err, 0, text, sizeof text);
        printf("%s\n", text);
    }
    CHECK(s == DC_OK);
    CHECK_EQ((long long)rt->stats.fallbacks, 0);
    printf("%ld cases by row, %llu graphs, %ld elements, %llu kernels\n", by_row,
           (unsigned long long)opt[1], compared, (unsigned long long)rt->stats.kernels);
    dc_rt_free(rt);
    return t_done();
}
