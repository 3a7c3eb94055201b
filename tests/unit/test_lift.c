/* jit/lower/lift_constants.c: which constants become memory, of how many kernels, and what stays as it is. */
#include "jit/lower/lift_constants.h"
#include "jit/base/tuning.h"

#include <string.h>

#include "tests/unit/nest_texts.h"

enum { MANY = DC_TUNE_LIFT_KERNELS + 1 };

/* Kernels of one text, with the first `%s` another number in each; taken over by lifted(). */
typedef struct family {
    dc_kernel *k[2 * MANY];
    uint32_t n;
} family;

static void add(family *f, const char *text, const char *number)
{
    char written[800];
    const char *at = strstr(text, "%s");
    snprintf(written, sizeof written, "%.*s%s%s", (int)(at - text), text, number, at + 2);
    f->k[f->n] = nest_of(written);
    f->n += f->k[f->n] != NULL;
}

static family family_of(const char *text, uint32_t n)
{
    family f = {0};
    char number[20];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%u.5", i);
        add(&f, text, number);
    }
    return f;
}

static const char *text_of(dc_kernel *k)
{
    static dc_text text[2];
    static int which;
    dc_text *t = &text[which ^= 1];
    t->n = 0;
    dc_nest_print(k, t);
    return t->s;
}

static void drop(family *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (!CHECK(dc_nest_check(&nest_job, f->k[i]) == DC_OK))
            printf("    %s\n", nest_said());
        dc_kernel_free(f->k[i]);
    }
}

#define HEAD "kernel k(out0: f32[64] out, x0: f32[64]"
#define MAP  HEAD ") {\n  for i in 64\n    out0[i] = add(mul(x0[i], %s:f32), 7:f32)\n}\n"

static void what_differs_is_memory(void)
{
    family f = family_of(MAP, MANY);
    const dc_lifted *l = dc_lift_constants(&nest_job, f.k, f.n, 0);
    for (uint32_t i = 0; i < f.n; i++) {
        CHECK_STR(text_of(f.k[i]), HEAD ", numbers: f32[1]) {\n  for i in 64\n"
                                        "    out0[i] = add(mul(x0[i], numbers[0]), 7:f32)\n}\n");
        CHECK_EQ(l[i].n, 1);
        CHECK(l[i].dtype == DC_F32 && l[i].bits[0] == dc_bits_of(DC_F32, i + 0.5));
    }
    drop(&f);
}

static void unchanged(family f, uint32_t buffers)
{
    char before[800];
    snprintf(before, sizeof before, "%s", text_of(f.k[f.n - 1]));
    const dc_lifted *l = dc_lift_constants(&nest_job, f.k, f.n, buffers);
    for (uint32_t i = 0; i < f.n; i++)
        CHECK_EQ(l[i].n, 0);
    CHECK_STR(text_of(f.k[f.n - 1]), before);
    drop(&f);
}

static void what_stays(void)
{
    unchanged(family_of(MAP, DC_TUNE_LIFT_KERNELS), 0);
    unchanged(family_of(MAP, MANY), 2); /* no room for another parameter */
    family same = family_of(MAP, 2);    /* many kernels, few numbers */
    for (uint32_t i = 0; i < MANY; i++)
        add(&same, MAP, "0.5");
    unchanged(same, 0);
    unchanged(
        family_of(HEAD ") {\n  local acc: f32[1]\n  for i in 64\n    acc[0] = %s:f32\n"
                       "    for k in 64 reduce\n      acc[0] add= x0[k]\n    out0[i] = acc[0]\n}\n",
                  MANY),
        0);
    unchanged(
        family_of(HEAD
                  ", x1: i32[64]) {\n  for i in 64\n"
                  "    out0[i] = mul(x0[int(minimum(maximum(x1[i], 0:i32), 63:i32))], %s:f32)\n}\n",
                  MANY),
        0);
}

/* Others between them, one with the same number twice, and NULL. */
static void among_others(void)
{
    family f = {0};
    char number[20];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(number, sizeof number, "%u", i + 1);
        add(&f, MAP, number); /* of 7 there are two in one kernel */
    }
    add(&f, HEAD ") {\n  for i in 64\n    out0[i] = sub(x0[i], %s:f32)\n}\n", "3");
    f.k[f.n] = NULL;
    const dc_lifted *l = dc_lift_constants(&nest_job, f.k, f.n + 1, 0);
    CHECK_EQ(l[f.n].n, 0);
    CHECK_EQ(l[f.n - 1].n, 0);
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQ(l[i].n, 0); /* one has another form, so there are few */
    drop(&f);
    f = family_of(MAP, MANY);
    add(&f, MAP, "7");
    l = dc_lift_constants(&nest_job, f.k, f.n, 0);
    CHECK_EQ(l[0].n, 1);
    CHECK_EQ(l[MANY].n, 0);
    drop(&f);
}

/* Several at once, and of two dtypes. */
static void several(void)
{
    family f = {0};
    char a[80];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(a, sizeof a, "%u.25:f32), %u.75", i, 100 + i);
        add(&f, HEAD ") {\n  for i in 64\n    out0[i] = add(mul(x0[i], %s:f32)\n}\n", a);
    }
    const dc_lifted *l = dc_lift_constants(&nest_job, f.k, f.n, 0);
    CHECK_STR(text_of(f.k[3]), HEAD ", numbers: f32[2]) {\n  for i in 64\n"
                                    "    out0[i] = add(mul(x0[i], numbers[0]), numbers[1])\n}\n");
    CHECK_EQ(l[3].n, 2);
    CHECK_EQ(l[3].bits[1], dc_bits_of(DC_F32, 103.75));
    drop(&f);
    f.n = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(a, sizeof a, "%u.25:f32), cast.f32(mul(x1[i], %u.75:f64", i, 100 + i);
        add(&f, HEAD ", x1: f64[64]) {\n  for i in 64\n    out0[i] = add(mul(x0[i], %s)))\n}\n", a);
    }
    unchanged(f, 0);
}

int main(void)
{
    nest_open();
    what_differs_is_memory();
    what_stays();
    among_others();
    several();
    nest_close();
    return t_done();
}
