/*
 * Text of graphs: what is read is legal, prints to a text that reads back the same, is legal when it is simplified,
 * and computes the same before and after.
 */
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"

#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void must_be_legal(dc_job *j, const dc_func *f, const char *what)
{
    char why[500];
    if (dc_func_check(j, f) == DC_OK)
        return;
    dc_err_render(&j->err, 0, why, sizeof why);
    fuzz_finding("%s is illegal: %s", what, why);
}

static void come_back(dc_job *j, const dc_module *m)
{
    dc_module *again;
    dc_text *a = dc_job_text(j), *b = dc_job_text(j);
    dc_module_print(m, a);
    if (dc_module_parse(j, a->s, &again) != DC_OK)
        fuzz_finding("does not read back:\n%s", a->s);
    dc_module_defer(j, again);
    dc_module_print(again, b);
    if (strcmp(a->s, b->s) != 0)
        fuzz_finding("reads back as another text:\n%s\n%s", a->s, b->s);
    dc_job_keep(j, again);
    dc_module_free(again);
    dc_job_text_end(j, b);
    dc_job_text_end(j, a);
}

static void compare(const dc_func *s, uint32_t number, const dc_type *t, const char *x,
                    const char *y)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const size_t n = (size_t)dc_type_count(t), size = dc_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        const uint64_t a = dc_bits_load(dtype, x + i * size), b = dc_bits_load(dtype, y + i * size);
        if (a == b || (dc_dtype_is_float(dtype) && isnan(dc_value_of(dtype, a)) &&
                       isnan(dc_value_of(dtype, b))))
            continue;
        dc_text text = {0};
        dc_func_print(s, &text);
        fuzz_finding("simplified, element %zu of result %u is %g, not %g\n%s", i, number,
                     dc_value_of(dtype, b), dc_value_of(dtype, a), text.s);
    }
}

static void run_both(dc_job *j, const dc_func *f, const dc_func *s)
{
    enum { MOST = 64 };
    const void *in[MOST];
    void *x[MOST], *y[MOST];
    uint64_t state = f->node.n;
    if (f->param.n > MOST || f->result.n > MOST)
        return;
    for (uint32_t i = 0; i < f->param.n; i++) {
        const dc_type t = dc_node_type(f, f->param.at[i]);
        in[i] = fuzz_value(&j->scratch, &t, &state);
    }
    for (uint32_t i = 0; i < f->result.n; i++) {
        const dc_type t = dc_node_type(f, f->result.at[i]);
        x[i] = dc_arena_alloc(&j->scratch, dc_type_bytes(&t));
        y[i] = dc_arena_alloc(&j->scratch, dc_type_bytes(&t));
    }
    if (dc_eval(j, f, DC_EVAL_STRICT, in, x) == DC_OK &&
        dc_eval(j, s, DC_EVAL_STRICT, in, y) == DC_OK)
        for (uint32_t i = 0; i < f->result.n; i++) {
            const dc_type t = dc_node_type(f, f->result.at[i]);
            compare(s, i, &t, x[i], y[i]);
        }
}

static dc_status body(dc_job *j, void *arg)
{
    const fuzz_input *in = arg;
    dc_module *m;
    DC_TRY(dc_module_parse(j, in->text, &m));
    dc_module_defer(j, m);
    for (uint32_t i = 0; i < m->func.n; i++)
        must_be_legal(j, m->func.at[i], "what was read");
    come_back(j, m);
    if (m->func.n > 0) {
        const dc_func *f = m->func.at[0], *s = dc_simplify(m->func.at[0]);
        must_be_legal(j, s, "what was simplified");
        if (fuzz_is_small(f, 20000) && fuzz_is_small(s, 20000))
            run_both(j, f, s);
    }
    dc_job_keep(j, m);
    dc_module_free(m);
    return DC_OK;
}

void fuzz_one(const fuzz_input *in)
{
    fuzz_protect(body, (void *)in);
}
