/*
 * Functions of very many parameters: what fusion and lowering take grows as their number does, not as its
 * square. Counted in bytes of the arena, which every group, list and walk comes from.
 */
#include "core/ir/gtext.h"
#include "jit/lower/lower.h"

#include <stdlib.h>

#include "tests/t.h"

static const dc_opts opts = {.math = "fast"};

/* result i: p_i * (1 - x), and the sum of p_i * x: all read x, as the steps of an optimiser read one rate. */
static void print_updates(dc_text *out, uint32_t n)
{
    uint32_t next = n + 2;
    dc_text_puts(out, "func f(%1: f32[8]");
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, ", %%%u: f32[8]", i + 2);
    dc_text_puts(out, ") {\n");
    for (uint32_t i = 0; i < n; i++, next += 4) {
        dc_text_printf(out, "  %%%u = mul %%1, %%%u : f32[8]\n", next, i + 2);
        dc_text_printf(out, "  %%%u = sub %%%u, %%%u : f32[8]\n", next + 1, i + 2, next);
        dc_text_printf(out, "  %%%u = neg %%%u : f32[8]\n", next + 2, next);
        dc_text_printf(out, "  %%%u = sum %%%u {1} : f32[]\n", next + 3, next + 2);
    }
    dc_text_puts(out, "  return ");
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, "%s%%%u, %%%u", i > 0 ? ", " : "", n + 3 + 4 * i, n + 5 + 4 * i);
    dc_text_puts(out, "\n}\n");
}

typedef struct cost {
    size_t bytes;
    uint32_t groups;
} cost;

static cost compile(uint32_t n)
{
    dc_job job;
    dc_module *m = NULL;
    dc_groups g;
    dc_text text = {0};
    dc_job_init(&job, &opts, NULL);
    print_updates(&text, n);
    if (dc_module_parse(&job, text.s, &m) != DC_OK)
        exit(1);
    const size_t before = job.scratch.total;
    CHECK_EQ(dc_fuse(&job, &job.scratch, m->func.at[0], 2, &g), DC_OK);
    for (uint32_t i = 0; i < g.n; i++) {
        dc_kernel *k = NULL;
        CHECK_EQ(dc_lower(&job, &g, i, &k), DC_OK);
        dc_kernel_free(k);
    }
    const cost c = {job.scratch.total - before, g.n};
    dc_text_free(&text);
    dc_module_free(m);
    dc_job_fini(&job);
    return c;
}

int main(void)
{
    const cost one = compile(1000), four = compile(4000);
    printf("1000: %zu bytes, %u groups; 4000: %zu bytes, %u groups\n", one.bytes, one.groups,
           four.bytes, four.groups);
    CHECK(one.groups < 300); /* they share x: as many as fit are one kernel */
    CHECK(four.groups <= 4 * one.groups && 4 * one.groups <= four.groups + 8);
    CHECK(four.bytes < 6 * one.bytes);
    return t_done();
}
