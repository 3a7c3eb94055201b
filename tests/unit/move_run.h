/*
 * Kernels to move about, and the comparison of a kernel after its moves with the one before: by the
 * verifier and the interpreter of the nest form, bit for bit. Used by the tests of schedule moves.
 */
#ifndef DC_TESTS_MOVE_RUN_H
#define DC_TESTS_MOVE_RUN_H

#include "jit/moves/move.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/nest_interp.h"
#include "tests/unit/rng.h"

enum { MAX_PARAMS = 32 };

static dc_opts opts;
static dc_job job;

/* Running ------------------------------------------------------------------------------------- */

static inline const dc_buffer *param_of(const dc_kernel *k, uint32_t param)
{
    for (uint32_t n = 0; n < k->buf.n; n++)
        if (k->buf.at[n].scope == DC_SCOPE_PARAM && k->buf.at[n].param == param)
            return &k->buf.at[n];
    DC_BUG("no parameter %u", param);
}

static inline size_t bytes_of(const dc_kernel *k, uint32_t param)
{
    const dc_buffer *b = param_of(k, param);
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

/* Fractions, or small integers, whose sums are exact. */
static inline char **make_memory(const dc_kernel *k, uint64_t seed, bool whole)
{
    rng r = {seed};
    char **mem = calloc(MAX_PARAMS, sizeof *mem);
    for (uint32_t p = 0; p < k->nparam; p++) {
        const dc_dtype t = (dc_dtype)param_of(k, p)->dtype;
        mem[p] = calloc(bytes_of(k, p) + 1, 1);
        for (int64_t i = 0; i < param_of(k, p)->count; i++) {
            const int n = whole ? rng_below(&r, 5) - 2 : rng_below(&r, 2001) - 1000;
            dc_bits_store(t, mem[p] + (size_t)i * dc_dtype_size(t),
                          dc_bits_of(t, whole || !dc_dtype_is_float(t) ? n : n / 64.0 + 1e-3 * n));
        }
    }
    return mem;
}

static inline void free_memory(char **mem)
{
    for (int p = 0; p < MAX_PARAMS; p++)
        free(mem[p]);
    free(mem);
}

static inline void complain(void)
{
    char text[600];
    dc_err_render(&job.err, 0, text, sizeof text);
    printf("    %s\n", text);
    job.err = (dc_err){0};
}

static inline void print_kernel(dc_kernel *k)
{
    dc_text t = {0};
    dc_nest_print(k, &t);
    printf("%s", t.s);
    for (uint32_t i = 0; i < k->moves.n; i++)
        printf("    %s\n", dc_move_text(k, k->moves.at[i], &job.scratch));
    dc_text_free(&t);
}

static inline bool runs(dc_kernel *k, char **mem)
{
    const bool ok = dc_nest_check(&job, k) == DC_OK && dc_nest_run(&job, k, (void **)mem) == DC_OK;
    if (!ok) {
        complain();
        print_kernel(k);
    }
    return ok;
}

/* Is the result of k, after its moves, that of plain? */
static inline bool equal_results(dc_kernel *plain, dc_kernel *k, uint64_t seed, bool whole)
{
    char **want = make_memory(plain, seed, whole), **got = make_memory(plain, seed, whole);
    bool same = runs(plain, want) && runs(k, got);
    for (uint32_t p = 0; p < plain->nparam && same; p++)
        if (memcmp(want[p], got[p], bytes_of(plain, p)) != 0) {
            printf("    %s differs\n", param_of(plain, p)->name);
            print_kernel(k);
            same = false;
        }
    free_memory(want);
    free_memory(got);
    return same;
}

static inline dc_kernel *parse(const char *text)
{
    dc_kernel *k = NULL;
    if (!CHECK(dc_nest_parse(&job, text, &k) == DC_OK))
        complain();
    return k;
}

static inline char *text_of(dc_kernel *k)
{
    dc_text t = {0};
    dc_nest_print(k, &t);
    char *s = malloc(t.n + 1);
    memcpy(s, t.s, t.n + 1);
    dc_text_free(&t);
    return s;
}

/* body(arg) in a job; 0 if it went well. */
static inline int run_moves(dc_status (*test)(dc_job *, void *), void *arg)
{
    static dc_log log;
    const char *wrong;
    dc_opts_init(&opts, &wrong);
    dc_job_init(&job, &opts, &log);
    const dc_status s = dc_protect(&job, test, arg);
    if (!CHECK(s == DC_OK))
        complain();
    dc_job_fini(&job);
    return t_done();
}

/* Kernels ------------------------------------------------------------------------------------- */

static const char product[] = "kernel product(out0: f32[480] out, x0: f32[384], x1: f32[320]) {\n"
                              "  local acc: f32[1]\n"
                              "  for m in 24\n"
                              "    for n in 20\n"
                              "      acc[0] = 0:f32\n"
                              "      for k in 16 reduce\n"
                              "        acc[0] add= mul(x0[16*m + k], x1[20*k + n])\n"
                              "      out0[20*m + n] = maximum(acc[0], 0:f32)\n"
                              "}\n";

static const char map[] = "kernel map(out0: f32[1] out, out1: f32[462] out, x0: f32[462]) {\n"
                          "  for i in 22\n"
                          "    for j in 21\n"
                          "      out1[21*i + j] = mul(x0[21*i + j], x0[22*j + i])\n"
                          "  out0[0] = x0[3]\n"
                          "}\n";

/* Rows of two inputs beside each other. */
static const char seam[] =
    "kernel seam(out0: f32[50] out, x0: f32[15], x1: f32[35]) {\n"
    "  for i in 5\n"
    "    for j in 10\n"
    "      out0[10*i + j] = add(where(test(j in 3), x0[3*i + j if j in 3], -0:f32), "
    "where(test(j - 3 in 7), x1[7*i + j - 3 if j - 3 in 7], -0:f32))\n"
    "}\n";

/* Three sums of each column in one loop. */
static const char together[] =
    "kernel together(out0: f32[10] out, out1: f32[10] out, out2: f32[10] out, x0: f32[370]) {\n"
    "  local a: f32[1]\n"
    "  local b: f32[1]\n"
    "  local c: f32[1]\n"
    "  for i in 10\n"
    "    a[0] = 0:f32\n"
    "    b[0] = 0:f32\n"
    "    c[0] = -inf:f32\n"
    "    for k in 37 reduce\n"
    "      a[0] add= x0[10*k + i]\n"
    "      b[0] add= mul(x0[10*k + i], x0[10*k + i])\n"
    "      c[0] maximum= x0[10*k + i]\n"
    "    out0[i] = a[0]\n"
    "    & out1[i] = b[0]\n"
    "    & out2[i] = c[0]\n"
    "}\n";

static const char rows[] = "kernel rows(out0: f32[30] out, x0: f32[1110]) {\n"
                           "  local acc: f32[1]\n"
                           "  for i in 30\n"
                           "    acc[0] = 0:f32\n"
                           "    for k in 37 reduce\n"
                           "      acc[0] add= x0[37*i + k]\n"
                           "    out0[i] = acc[0]\n"
                           "}\n";

/* A window of three over a padded row; twice summed. */
static const char window[] =
    "kernel window(out0: f32[120] out, x0: f32[120], x1: f32[9]) {\n"
    "  local acc: f32[1]\n"
    "  for y in 10\n"
    "    for x in 12\n"
    "      acc[0] = 0:f32\n"
    "      for v in 3 reduce\n"
    "        for u in 3 reduce\n"
    "          acc[0] add= mul(x0[12*y + x + 12*v + u - 13 if y + v - 1 in 10 && x + u - 1 in 12], "
    "x1[3*v + u])\n"
    "      out0[12*y + x] = acc[0]\n"
    "}\n";

/* What the softmax of rows of 20 does, with its parts in locals. */
static const char softmax[] = "kernel softmax(out0: f32[140] out, x0: f32[140]) {\n"
                              "  local top: f32[1]\n"
                              "  local e: f32[20]\n"
                              "  local sum: f32[1]\n"
                              "  for i in 7\n"
                              "    top[0] = -inf:f32\n"
                              "    for k in 20 reduce\n"
                              "      top[0] maximum= x0[20*i + k]\n"
                              "    for n in 20\n"
                              "      e[n] = exp(sub(x0[20*i + n], top[0]))\n"
                              "    sum[0] = 0:f32\n"
                              "    for j in 20 reduce\n"
                              "      sum[0] add= e[j]\n"
                              "    for m in 20\n"
                              "      out0[20*i + m] = div(e[m], sum[0])\n"
                              "}\n";

/* Rows less their sums, less the largest of that: two numbers of a row, and a row that is kept. */
static const char centred[] = "kernel centred(out0: f32[140] out, x0: f32[140]) {\n"
                              "  local sum: f32[1]\n"
                              "  local e: f32[20]\n"
                              "  local top: f32[1]\n"
                              "  for i in 7\n"
                              "    sum[0] = 0:f32\n"
                              "    for k in 20 reduce\n"
                              "      sum[0] add= x0[20*i + k]\n"
                              "    for n in 20\n"
                              "      e[n] = sub(x0[20*i + n], sum[0])\n"
                              "    top[0] = -inf:f32\n"
                              "    for j in 20 reduce\n"
                              "      top[0] maximum= e[j]\n"
                              "    for m in 20\n"
                              "      out0[20*i + m] = sub(e[m], top[0])\n"
                              "}\n";

static const char updates[] =
    "kernel updates(p0: f32[48] inout, p1: f32[15] inout, x0: f32[48]) {\n"
    "  for i in 48\n"
    "    p0[i] = sub(p0[i], mul(0.5:f32, x0[i]))\n"
    "  for j in 15\n"
    "    p1[j] = sub(p1[j], mul(0.25:f32, x0[3*j]))\n"
    "}\n";

/* Updates of rows that integers choose: all of them, filled before, and some, in place. */
static const char scatter[] =
    "kernel scatter(out0: f32[70] out, x0: f32[70], x1: i32[40], x2: f32[280]) {\n"
    "  for n in 7\n"
    "    for a in 10\n"
    "      out0[7*a + n] = x0[7*a + n]\n"
    "    for k in 40\n"
    "      t0 = minimum(maximum(x1[k], 0:i32), 9:i32)\n"
    "      out0[7*int(t0) + n] = add(out0[7*int(t0) + n], x2[7*k + n])\n"
    "}\n";

static const char tested[] =
    "kernel tested(p0: f32[63] inout, x0: i32[40], x1: f32[280]) {\n"
    "  for n in 7\n"
    "    for k in 40\n"
    "      t0 = minimum(maximum(x0[k], -1:i32), 9:i32)\n"
    "      t1 = minimum(maximum(x0[k], 0:i32), 8:i32)\n"
    "      p0[7*int(t1) + n] = add(p0[7*int(t1) + n], x1[7*k + n]) if int(t0) in 9\n"
    "}\n";

/* Stages through a local of both dims; a prefix sum, whose iterations depend on each other. */
static const char stages[] = "kernel stages(out0: f32[48] out, out1: f32[6] out, x0: f32[48]) {\n"
                             "  local t: f32[48]\n"
                             "  local run: f32[1]\n"
                             "  for a in 6\n"
                             "    for b in 8\n"
                             "      t[8*a + b] = mul(x0[8*a + b], 2:f32)\n"
                             "  for c in 6\n"
                             "    for d in 8\n"
                             "      out0[8*c + d] = add(t[8*c + d], t[8*c - d + 7])\n"
                             "  run[0] = 0:f32\n"
                             "  for s in 6\n"
                             "    run[0] = add(run[0], x0[s])\n"
                             "    out1[s] = run[0]\n"
                             "}\n";

/* Rows picked by loaded numbers. */
static const char gather[] =
    "kernel gather(out0: f32[30] out, x0: i32[10], x1: f32[21]) {\n"
    "  for i in 10\n"
    "    for j in 3\n"
    "      out0[3*i + j] = x1[3*int(minimum(maximum(x0[i], 0:i32), 6:i32)) + j]\n"
    "}\n";

/* 32 lanes sum up what they hold by reading each other's rows. */
static const char lanes[] = "kernel lanes(out0: f32[32] out, x0: f32[32]) {\n"
                            "  local a: f32[32]\n"
                            "  local b: f32[32]\n"
                            "  for i in 32\n"
                            "    a[i] = x0[i]\n"
                            "  for j in 32\n"
                            "    b[j] = add(a[j], a[(j + 16) % 32])\n"
                            "  for l in 32\n"
                            "    out0[l] = add(b[l], b[(l + 8) % 32])\n"
                            "}\n";

/* Sums down the columns, carried in a local from row to row. */
static const char carried[] = "kernel carried(out0: f32[12] out, x0: f32[12]) {\n"
                              "  local t: f32[4]\n"
                              "  for i in 3\n"
                              "    for a in 4\n"
                              "      t[a] = 0:f32 if i in 1\n"
                              "      t[a] = add(t[a], x0[4*i + a])\n"
                              "    for c in 4\n"
                              "      out0[4*i + c] = t[c]\n"
                              "}\n";

/* Lanes read the lane before, but for the first. */
static const char shifted[] = "kernel shifted(out0: f32[16] out, x0: f32[16]) {\n"
                              "  local a: f32[16]\n"
                              "  for i in 16\n"
                              "    a[i] = x0[i]\n"
                              "  for j in 16\n"
                              "    out0[j] = a[j - 1 if j - 1 in 15]\n"
                              "}\n";

/* A product whose inner loops are those of a matrix instruction. */
static const char tiled[] =
    "kernel tiled(out0: f32[128] out, x0: f32[64], x1: f32[128]) {\n"
    "  local acc: f32[16]\n"
    "  for m in 2\n"
    "    for n in 4\n"
    "      for a in 4\n"
    "        for b in 4\n"
    "          acc[4*a + b] = 0:f32\n"
    "      for k in 2 reduce\n"
    "        for a in 4\n"
    "          for b in 4\n"
    "            for c in 4 reduce\n"
    "              acc[4*a + b] add= mul(x0[32*m + 8*a + 4*k + c], x1[64*k + 16*c + 4*n + b])\n"
    "      for a in 4\n"
    "        for b in 4\n"
    "          out0[64*m + 16*a + 4*n + b] = acc[4*a + b]\n"
    "}\n";

#endif
