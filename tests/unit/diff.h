/*
 * A function on device cpu, with guard zones round every buffer and temporary, and through the
 * interpreter of the nest form, both against the reference interpreter. What may differ is bounded
 * by graphgen_bound, with constant 1.
 *
 *   static dc_status body(dc_job *j, void *arg) { ... diff_try(f, &rng, special, compiled) ... }
 *   int main(...) { ...; return diff_main(body, arg); }
 */
#ifndef DC_TESTS_DIFF_H
#define DC_TESTS_DIFF_H

#include "backends/registry.h"
#include "core/eval/eval.h"
#include "core/host/host.h"
#include "core/ir/conv.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"
#include "jit/jit.h"
#include "jit/lower/lower.h"
#include "jit/rewrite/conv_layout.h"
#include "jit/rewrite/fft_stages.h"
#include "jit/rewrite/rules.h"
#include "jit/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"
#include "tests/unit/nest_interp.h"

static dc_rt *rt;
static long compared;

static inline void show(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    DC_UNUSED(ctx);
    fwrite(text, 1, n, stderr);
}

static inline void print_failure(const dc_func *f, const char *how)
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

static inline problem prepare(const dc_func *f, rng *r, bool special)
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

static inline bool compare(const problem *p, const char *how)
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
static inline dc_status run_compiled(const problem *p)
{
    dc_job *j = &rt->job;
    const dc_func *f = p->f;
    const dc_exec_desc d = {.fn = f, .name = "diff", .nfree = f->param.n, .nresult = f->result.n};
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
static inline dc_status run_nests(const problem *p, int level)
{
    static const dc_target target = {.vector_bytes = 64, .vector_registers = 32};
    dc_job *j = &rt->job;
    dc_func *f = dc_rules_apply(&j->scratch,
                                       dc_conv_layout(&j->scratch, dc_simplify(p->f), NULL), NULL);
    dc_groups gs;
    dc_func *staged = dc_fft_stages(&j->scratch, f, true);
    f = staged != NULL ? staged : f;
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
            if (x->control != 0) {
                const dc_host_call c = dc_host_call_of(f, x->control);
                const dc_node *n = dc_node_at(f, x->control);
                const void *in[DC_HOST_OPERANDS];
                dc_lapack lib;
                DC_TRY(dc_host_open(j, &c, &lib));
                for (int i = 0; i < c.nin; i++)
                    in[i] = mem[n->in[i]];
                DC_TRY(dc_host_run(j, &c, &lib, NULL, param[0], in,
                                   dc_arena_alloc(&j->scratch, dc_host_scratch(&c)), 0,
                                   dc_host_rows(&c)));
                continue;
            }
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

static inline bool diff_try(const dc_func *f, rng *r, bool special, bool compiled)
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

static inline int diff_main(dc_status (*body)(dc_job *j, void *arg), void *arg)
{
    static dc_opts opts;
    static dc_log log = {.write = show};
    dc_device *dev;
    bool interpret;
    const char *bad;
    dc_opts_init(&opts, &bad);
    opts.check = 2;
    dc_log_select(&log, opts.debug);
    rt = dc_rt_new(&opts, &log);
    if (!CHECK(dc_backend_open(&rt->job, "cpu", &dev, &interpret) == DC_OK))
        return t_done();
    dc_rt_set_device(rt, dev, interpret);
    const dc_status s = dc_protect(&rt->job, body, arg);
    if (s != DC_OK) {
        char text[700];
        dc_err_render(&rt->job.err, 0, text, sizeof text);
        printf("%s\n", text);
    }
    CHECK(s == DC_OK);
    CHECK_EQ((long long)rt->stats.fallbacks, 0);
    printf("%ld elements, %llu kernels\n", compared, (unsigned long long)rt->stats.kernels);
    dc_rt_free(rt);
    return t_done();
}

#endif
