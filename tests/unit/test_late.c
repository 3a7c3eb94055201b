/*
 * jit/flatten_late.c: which rows are stored while the next one is computed, and that all give what
 * the nest means, for whole ranges of positions, pieces of them and single ones.
 */
#include "core/job.h"
#include "jit/finterp.h"
#include "jit/flatten.h"
#include "jit/move.h"
#include "jit/ninterp.h"

#include <string.h>

#include "tests/t.h"

enum { ROWS = 5, COLUMNS = 12, ALL = ROWS * COLUMNS };

#define HEAD "kernel k(out0: f32[60] out stream, x0: f32[60]) strict {\n"
#define FILL "      a[n] = mul(x0[12*i + n], 2:f32)\n"

typedef struct example {
    const char *what, *text;
    bool late;
} example;

/* clang-format off */
static const example examples[] = {
    {"what the row before needs is replaced as it is read", HEAD
     "  local a: f32[12]\n  local s: f32[1]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    s[0] = 0:f32\n"
     "    for k in 12 reduce\n      s[0] add= a[k]\n"
     "    for m in 12\n      out0[12*i + m] = sub(a[m], s[0])\n}\n", true},
    {"parts before and behind it", HEAD
     "  local a: f32[12]\n  local b: f32[12]\n  local s: f32[1]\n  local t: f32[1]\n"
     "  for i in 5\n"
     "    t[0] = 0:f32\n"
     "    for k in 12 reduce\n      t[0] add= x0[12*i + k]\n"
     "    for n in 12\n      a[n] = sub(x0[12*i + n], t[0])\n"
     "    s[0] = a[3]\n"
     "    for m in 12\n      out0[12*i + m] = sub(mul(a[m], x0[12*i - m + 11]), s[0])\n}\n", true},
    {"two loops each", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 4\n      for o in 3\n        a[3*n + o] = mul(x0[12*i + 3*n + o], 2:f32)\n"
     "    for m in 4\n      for q in 3\n        out0[12*i + 3*m + q] = add(a[3*m + q], 1:f32)\n}\n", true},
    {"two loops, the other way round", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 4\n      for o in 3\n        a[n + 4*o] = mul(x0[12*i + 3*n + o], 2:f32)\n"
     "    for m in 4\n      for q in 3\n        out0[12*i + 3*m + q] = add(a[m + 4*q], 1:f32)\n}\n", false},
    {"read at another place", HEAD
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = a[-m + 11]\n}\n", false},
    {"a part before it writes what the row before needs", HEAD
     "  local a: f32[12]\n  local s: f32[1]\n"
     "  for i in 5\n"
     "    s[0] = x0[12*i + 4]\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = sub(a[m], s[0])\n}\n", false},
    {"the same place in each turn", HEAD
     "  local a: f32[1]\n"
     "  for i in 5\n"
     "    for n in 12\n      a[0] = x0[12*i + n]\n"
     "    for m in 12\n      out0[12*i + m] = sub(x0[12*i + m], a[0])\n}\n", false},
    {"another number of turns", HEAD
     "  local a: f32[6]\n"
     "  for i in 5\n"
     "    for n in 6\n      a[n] = mul(x0[12*i + n], 2:f32)\n"
     "    for m in 12\n      out0[12*i + m] = a[(m%6)]\n}\n", false},
    {"stored through the caches",
     "kernel k(out0: f32[60] out, x0: f32[60]) strict {\n"
     "  local a: f32[12]\n"
     "  for i in 5\n"
     "    for n in 12\n" FILL
     "    for m in 12\n      out0[12*i + m] = add(a[m], 1:f32)\n}\n", false},
};
/* clang-format on */

static dc_opts opts;
static dc_log log_;
static dc_job job;

/* Then two loops store to the output: one beside the next row, and one for the last. */
static bool is_late(const dc_flat *f)
{
    int stores = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *i = dc_finst_at(f, f->order.at[n]);
        stores += dc_kop_stores((dc_kop)i->op) && f->buf.at[i->buf].scope == DC_SCOPE_PARAM;
    }
    return stores == 2;
}

static void pieces(const dc_flat *f, const float *x, const float *want, int step)
{
    float out[ALL];
    memset(out, 0, sizeof out);
    for (int at = 0; at < ROWS; at += step) {
        const int end = at + step < ROWS ? at + step : ROWS;
        CHECK(dc_flat_run(&job, f, (void *[]){out, (void *)(uintptr_t)x}, at, end) == DC_OK);
        CHECK(memcmp(out, want, sizeof out[0] * (size_t)(end * COLUMNS)) == 0);
        for (int i = end * COLUMNS; i < ALL; i++)
            CHECK(out[i] == 0);
    }
}

static void run(const example *e)
{
    float x[ALL], want[ALL];
    dc_kernel *k = NULL;
    dc_flat *f = NULL;
    const char *why = "";
    for (int i = 0; i < ALL; i++)
        x[i] = (float)(i * i % 23 - 9) / 4;
    printf("  %s\n", e->what);
    if (!CHECK(dc_nest_parse(&job, e->text, &k) == DC_OK))
        return;
    CHECK(dc_nest_run(&job, k, (void *[]){want, x}) == DC_OK);
    if (CHECK(dc_move_do(k, &why, "grid i")) && CHECK(dc_flatten(&job, k, &f) == DC_OK)) {
        CHECK_EQ(is_late(f), e->late);
        for (int step = 1; step <= ROWS; step++)
            pieces(f, x, want, step);
        dc_flat_free(f);
    }
    dc_kernel_free(k);
}

int main(void)
{
    const char *bad;
    dc_opts_init(&opts, &bad);
    opts.check = 1;
    dc_job_init(&job, &opts, &log_);
    for (size_t i = 0; i < DC_COUNTOF(examples); i++)
        run(&examples[i]);
    dc_job_fini(&job);
    return t_done();
}
