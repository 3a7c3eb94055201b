/* jit/lower/base_offset.c: kernels before and after, how far the addresses of their inputs move, and what stays as it is. */
#include "jit/lower/base_offset.h"

#include <string.h>

#include "tests/unit/nest_texts.h"

typedef struct example {
    const char *what, *before, *after;
    size_t bytes[3];
} example;

#define STORE(map) "  for i in 64\n    out0[i] = x0[" map "]\n}\n"

/* clang-format off */
static const example examples[] = {
    {"from the beginning on nothing changes",
     "kernel k(out0: f32[64] out, x0: f32[100]) {\n" STORE("i"),
     "kernel k(out0: f32[64] out, x0: f32[100]) {\n" STORE("i"), {0}},
    {"an aligned place",
     "kernel k(out0: f32[64] out, x0: f32[200]) {\n" STORE("i + 112"),
     "kernel k(out0: f32[64] out, x0: f32[64]) {\n" STORE("i"), {0, 448}},
    {"any place",
     "kernel k(out0: f32[64] out, x0: f32[200]) {\n" STORE("i + 3"),
     "kernel k(out0: f32[64] out, x0: f32[64] align 4) {\n" STORE("i"), {0, 12}},
    {"backwards",
     "kernel k(out0: f32[64] out, x0: f32[200]) {\n" STORE("-i + 79"),
     "kernel k(out0: f32[64] out, x0: f32[64]) {\n" STORE("-i + 63"), {0, 64}},
    {"in steps",
     "kernel k(out0: f64[64] out, x0: f64[1000]) {\n" STORE("3*i + 9"),
     "kernel k(out0: f64[64] out, x0: f64[190] align 8) {\n" STORE("3*i"), {0, 72}},
    {"of several reads the first",
     "kernel k(out0: f32[64] out, x0: f32[200], x1: f32[99]) {\n"
     "  for i in 64\n    out0[i] = add(add(x0[i + 32], x0[i + 48]), x1[i + 35])\n}\n",
     "kernel k(out0: f32[64] out, x0: f32[80], x1: f32[64] align 4) {\n"
     "  for i in 64\n    out0[i] = add(add(x0[i], x0[i + 16]), x1[i])\n}\n", {0, 128, 140}},
    {"where a test fails nothing is read",
     "kernel k(out0: f32[64] out, x0: f32[200]) {\n"
     "  for i in 64\n    out0[i] = where(test(i - 8 in 40), x0[i + 24 if i - 8 in 40], 0:f32)\n}\n",
     "kernel k(out0: f32[64] out, x0: f32[40]) {\n"
     "  for i in 64\n    out0[i] = where(test(i - 8 in 40), x0[i - 8 if i - 8 in 40], 0:f32)\n}\n", {0, 128}},
    {"integers that choose rows, and are read from some place on",
     "kernel k(out0: f32[64] out, x0: f32[640], x1: i32[80]) {\n"
     "  for i in 64\n    out0[i] = x0[i + 64*int(minimum(maximum(x1[i + 16], 2:i32), 7:i32))]\n}\n",
     "kernel k(out0: f32[64] out, x0: f32[384], x1: i32[64]) {\n"
     "  for i in 64\n    out0[i] = x0[64*int(minimum(maximum(x1[i], 2:i32), 7:i32)) + i - 128]\n}\n", {0, 512, 64}},
    {"what changes in part",
     "kernel k(state: f32[100] inout, x0: f32[64]) {\n"
     "  for i in 64\n    state[i + 16] = add(state[i + 16], x0[i])\n}\n",
     "kernel k(state: f32[64] inout, x0: f32[64]) {\n"
     "  for i in 64\n    state[i] = add(state[i], x0[i])\n}\n", {64}},
};
/* clang-format on */

static void check_one(const example *e)
{
    dc_text text = {0};
    dc_kernel *k = nest_of(e->before);
    if (k == NULL)
        return;
    const size_t *bytes = dc_base_offset_inputs(&nest_job, k);
    for (uint32_t p = 0; p < k->nparam; p++)
        CHECK_EQ(bytes[p], e->bytes[p]);
    if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK))
        printf("    %s\n", nest_said());
    dc_nest_print(k, &text);
    if (!CHECK(strcmp(text.s, e->after) == 0))
        printf("    %s:\n%s\n    instead of\n%s\n", e->what, text.s, e->after);
    dc_text_free(&text);
    dc_kernel_free(k);
}

int main(void)
{
    nest_open();
    for (size_t i = 0; i < DC_COUNTOF(examples); i++)
        check_one(&examples[i]);
    nest_close();
    return t_done();
}
