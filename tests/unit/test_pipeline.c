/*
 * The move pipeline (jit/nest/nest_traffic.h): which rows may be stored while the next one is computed, and that all give
 * what the nest means (jit/flat/flatten_pipelined.c). Machine code on one thread runs them in one range of work
 * items, the interpreter of the flat form each by itself.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "jit/moves/move.h"
#include "jit/sim/flat_interp.h"

#include "tests/unit/kernel_run.h"
#include "tests/unit/nest_interp.h"

enum { ROWS = 5, COLUMNS = 12, ALL = ROWS * COLUMNS };

#define HEAD "kernel k(out0: f32[60] out, x0: f32[60]) strict {\n"
#define FILL "      a[n] = mul(x0[12*i + n], 2:f32)\n"

typedef struct example {
    const char *what, *text;
    const char *why; /* it is refused; NULL: it is not */
} example;

/* clang-format off */
static const example examples[] = {
    {"what the row before needs is replaced as it is read", HEAD
     "  local a: f32[12]\n  local s: f32[1]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    s[0] = 0:f32\n"
     "    for k in 12 reduce\n      s[0] add= a[k]\n"
     "    for m in 12\n      out0[12*i + m] = sub(a[m], s[0])\n}\n", NULL},
    {"parts before and behind it", HEAD
     "  local a: f32[12]\n  local b: f32[12]\n  local s: f32[1]\n  local t: f32[1]\n"
     "  for i in 5\n"
     "    t[0] = 0:f32\n"
     "    for k in 12 reduce\n      t[0] add= x0[12*i + k]\n"
     "    for n in 12\n      a[n] = sub(x0[12*i + n], t[0])\n"
     "    s[0] = a[3]\n"
     "    for m in 12\n      out0[12*i + m] = sub(mul(a[m], x0[12*i - m + 11]), s[0])\n}\n", NULL},
    {"two loops each", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 4\n      for o in 3\n        a[3*n + o] = mul(x0[12*i + 3*n + o], 2:f32)\n"
     "    for m in 4\n      for q in 3\n        out0[12*i + 3*m + q] = add(a[3*m + q], 1:f32)\n}\n", NULL},
    {"two loops, the other way round", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 4\n      for o in 3\n        a[n + 4*o] = mul(x0[12*i + 3*n + o], 2:f32)\n"
     "    for m in 4\n      for q in 3\n        out0[12*i + 3*m + q] = add(a[m + 4*q], 1:f32)\n}\n", "what its last part reads would be overwritten before"},
    {"read at another place", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = a[-m + 11]\n}\n", "what its last part reads would be overwritten before"},
    {"more than one place of a part", HEAD
     "  local a: f32[24]\n"
     "  for i in 5\n"
     "    for n in 12\n      a[n] = x0[12*i + n]\n      & a[n + 12] = mul(x0[12*i + n], 2:f32)\n"
     "    for m in 12\n      out0[12*i + m] = sub(a[m + 12], a[m])\n}\n", "what its last part reads would be overwritten before"},
    {"a part before it writes what the row before needs", HEAD
     "  local a: f32[12]\n  local s: f32[1]\n"
     "  for i in 5\n"
     "    s[0] = x0[12*i + 4]\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = sub(a[m], s[0])\n}\n", "what its last part reads would be overwritten before"},
    {"the same place in each turn", HEAD
     "  local a: f32[1]\n"
     "  for i in 5\n"
     "    for n in 12\n      a[0] = x0[12*i + n]\n"
     "    for m in 12\n      out0[12*i + m] = sub(x0[12*i + m], a[0])\n}\n", "what its last part reads would be overwritten before"},
    {"another number of turns", HEAD
     "  local a: f32[6]\n"
     "  for i in 5\n"
     "    for n in 6\n      a[n] = mul(x0[12*i + n], 2:f32)\n"
     "    for m in 12\n      out0[12*i + m] = a[(m%6)]\n}\n", "no other part is a loop of as many iterations"},
    {"a last part that is no loop", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    out0[12*i] = a[3]\n}\n",
     "its last part is no serial loop that stores results alone"},
    {"an index that is loaded",
     HEAD "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = a[int(minimum(maximum(cast.i32(x0[12*i]), 0:i32), 11:i32))]\n}\n",
     "its last part computes indices of what it loads"},
};
/* clang-format on */

/* Then two loops store to the output: one beside the next row, and one for the last. */
static bool is_pipelined(const dc_flat *f)
{
    int stores = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *i = dc_finst_at(f, f->order.at[n]);
        stores += dc_kop_stores((dc_kop)i->op) && f->buf.at[i->buf].scope == DC_SCOPE_PARAM;
    }
    return stores == 2;
}

static dc_kernel *kernel_of(runner *r, const example *e, float *want, float *x)
{
    dc_kernel *k = NULL;
    const char *why = "";
    for (int i = 0; i < ALL; i++)
        x[i] = (float)(i * i % 23 - 9) / 4;
    if (!CHECK(dc_nest_parse(&r->job, e->text, &k) == DC_OK))
        return NULL;
    CHECK(dc_nest_run(&r->job, k, (void *[]){want, x}) == DC_OK);
    CHECK(dc_move_apply_text(k, "grid i", &why));
    CHECK_EQ(dc_move_apply_text(k, "pipeline i", &why), e->why == NULL);
    if (e->why != NULL && !CHECK(strstr(why, e->why) != NULL))
        printf("    %s: %s\n", e->what, why);
    return k;
}

static void test_examples(runner *r)
{
    enum { N = DC_COUNTOF(examples) };
    static float x[N][ALL], want[N][ALL], out[N][ALL];
    int number[N];
    for (int n = 0; n < N; n++) {
        dc_kernel *k = kernel_of(r, &examples[n], want[n], x[n]);
        number[n] = k != NULL ? runner_add(r, k, 0) : -1;
        if (number[n] >= 0) {
            const dc_flat *f = r->flat.at[number[n]];
            CHECK_EQ(is_pipelined(f), examples[n].why == NULL);
            CHECK(dc_flat_run(&r->job, f, (void *[]){out[n], x[n]}, 0, ROWS) == DC_OK);
            CHECK(memcmp(out[n], want[n], sizeof out[n]) == 0);
        }
        dc_kernel_free(k);
    }
    if (!runner_build(r))
        return;
    for (int n = 0; n < N; n++) {
        memset(out[n], 0, sizeof out[n]);
        printf("  %s\n", examples[n].what);
        if (number[n] >= 0)
            runner_run_range(r, number[n], ROWS, (void *[]){out[n], x[n]});
        CHECK(memcmp(out[n], want[n], sizeof out[n]) == 0);
    }
}

int main(void)
{
    runner r;
    setenv("DEEPC_THREADS", "1", 1);
    if (runner_open(&r)) {
        test_examples(&r);
        runner_close(&r);
    }
    return t_done();
}
