/*
 * What tests of gradients of functions with loops share: values of parameters, the wide interpreter (DC_EVAL_WIDE: floats
 * are doubles from end to end), losses.
 */
#ifndef DC_TESTS_GRADCHECK_H
#define DC_TESTS_GRADCHECK_H

#include "core/autodiff/grad.h"
#include "core/eval/eval.h"
#include "core/ir/control.h"
#include "core/ir/gtext.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { MAX_PARAMS = 64, MAX_ELEMENTS = 256 };

static dc_job job;
static rng rnd = {1};
static double value[MAX_PARAMS]
                   [MAX_ELEMENTS]; /* of every parameter; others than floats reuse the memory */

static inline dc_module *parse(const char *s)
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

static inline bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

static inline void fill(const dc_func *f, uint32_t p)
{
    const dc_node *n = dc_node_at(f, f->param.at[p]);
    for (int64_t i = 0; i < dc_node_count(n); i++)
        value[p][i] = rng_uniform(&rnd, -1, 1);
}

static inline void eval(const dc_func *f, void *const *out)
{
    const void *params[MAX_PARAMS];
    for (uint32_t p = 0; p < f->param.n; p++)
        params[p] = value[p];
    CHECK_EQ(dc_eval(&job, f, DC_EVAL_WIDE, params, out), DC_OK);
}

static inline void returns(dc_func *f, dc_ref r)
{
    f->result.n = 0;
    DC_PUSH(f->result, r);
}

/* sum(r * w) with random weights. */
static inline dc_ref weighted(dc_func *f, dc_ref sum, dc_ref r)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_type t = dc_node_type(f, r);
    const dc_ref w = dc_graph_param(f, &t, "weights");
    fill(f, f->param.n - 1);
    const dc_ref s =
        dc_graph_reduce(f, DC_OP_SUM, dc_graph_op2(f, DC_OP_MUL, r, w), (1u << n.rank) - 1);
    return sum == 0 ? s : dc_graph_op2(f, DC_OP_ADD, sum, s);
}

static inline dc_ref loss_of(dc_func *f)
{
    dc_ref loss = 0;
    for (uint32_t i = 0; i < f->result.n; i++)
        if (is_float(f, f->result.at[i]))
            loss = weighted(f, loss, f->result.at[i]);
    return loss;
}

static inline void print_module(const dc_module *m)
{
    dc_text t = {0};
    dc_module_print(m, &t);
    printf("%s\n", t.s);
    dc_text_free(&t);
}

#endif
