/*
 * The verifier and the interpreter of the nest form on texts: what is legal and what it computes;
 * each rule of the verifier broken; each promise that only running can show broken.
 */
#include "jit/nest/matrix_tile.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/nest_interp.h"
#include "tests/unit/nest_texts.h"

/* ---- the verifier ---------------------------------------------------------------------------- */

#define HEAD "kernel k(o: f32[64] out, x: f32[64], n: i32[64]) {\n"

static const struct {
    const char *text, *says; /* NULL: legal */
} rules[] = {
    {HEAD "  for i in 64 grid\n    o[i] = x[i]\n}", NULL},
    /* shape */
    {HEAD "  for i in 8\n    for j in 8 grid\n      o[8*i + j] = x[0]\n}",
     "grid axis is not outermost: j"},
    {HEAD "  for i in 8 grid\n    for j in 8 grid\n      o[8*i + j] = x[0]\n}",
     "grid axis is not outermost: j"},
    {HEAD "  for i in 8 grid\n    o[i] = x[0]\n  o[9] = x[0]\n}",
     "something beside the loop over grid axis: i"},
    {HEAD "  for j in 8\n    o[j] = x[0]\n  for i in 8 grid\n    o[i + 8] = x[0]\n}",
     "something beside the loop over grid axis: i"},
    {HEAD "  for i in 8 grid\n    o[i] = x[0]\n  for j in 8 grid\n    o[j + 8] = x[0]\n}", NULL},
    {HEAD "  for i in 8\n    for i in 8\n      o[i] = x[0]\n}",
     "loop inside a loop over the same axis: i"},
    {HEAD "  for i in 8 vector\n    for j in 8\n      o[8*i + j] = x[0]\n}",
     "vector axis is not innermost: i"},
    {HEAD "  for i in 8 vector\n    mma_4x4x4(o[0 by 4, 1], x[0 by 4, 1], x[0 by 4, 1])\n}",
     "vector axis is not innermost: i"},
    {HEAD "  for i in 12 vector\n    o[i] = x[0]\n}", "a power of two, at most 64: i"},
    {HEAD "  for b in 4 block\n    for l in 8 lane\n      o[8*b + l] = x[0]\n}", NULL},
    {HEAD "  for l in 8 lane\n    for b in 4 block\n      o[8*b + l] = x[0]\n}",
     "a thread axis inside a lane axis: b"},
    {HEAD "  for l in 8 lane\n    for i in 2\n      for m in 4 lane\n        o[8*m + l] = x[0]\n}",
     "a thread axis inside a lane axis: m"},
    {HEAD "  for b in 4 block\n    o[b] = x[0]\n    for l in 8 lane\n      o[8*b + l] = x[0]\n}",
     "an assignment beside the thread loops of block axis: b"},
    {HEAD "  for b in 4 block\n    for s in 2\n      o[8*b] = x[0]\n      for l in 8 lane\n"
          "        o[8*b + l] = x[0]\n}",
     NULL},
    {HEAD "  for b in 4 block\n    for l in 8 lane\n      o[8*b + l] = x[0]\n    for m in 4 lane\n"
          "      o[8*b + m] = x[0]\n}",
     "phases by different numbers of threads inside block axis: b"},
    {HEAD "  for g in 4 grid\n    for l in 8 lane\n      o[8*g + l] = x[0]\n    for m in 4 lane\n"
          "      o[8*g + m] = x[0]\n}",
     NULL},
    {HEAD "  for b in 512 block\n    for c in 512 block\n      o[0] = x[0] if b in 1 && c in 1\n}",
     "too many threads, or none: b"},
    {HEAD "  for b in 0 block\n    o[b] = x[0]\n}", "too many threads, or none: b"},
    {HEAD
     "  for a in 281474976710656 block\n    for b in 281474976710656 block\n      o[0] = x[0]\n}",
     "too many threads, or none: a"},
    /* accesses */
    {HEAD "  for i in 65\n    o[i] = x[0]\n}", "access outside buffer: o"},
    {HEAD "  for i in 65\n    o[i] = x[0] if i in 64\n}", NULL},
    {HEAD "  for i in 64\n    o[i] = x[i + 1]\n}", "access outside buffer: x"},
    {HEAD "  for i in 64\n    o[i] = x[i - 1]\n}", "access outside buffer: x"},
    {HEAD "  for i in 64\n    o[i] = x[i - 1 if i - 1 in 64]\n}", NULL},
    {HEAD "  for i in 0\n    o[99] = x[99]\n}", NULL},
    {HEAD "  for i in 64\n    o[i] = x[int(n[i])]\n}", "access outside buffer: x"},
    {HEAD "  for i in 64\n    o[i] = x[int(minimum(maximum(n[i], 0:i32), 63:i32))]\n}", NULL},
    {HEAD "  for i in 64\n    o[i] = x[int(minimum(maximum(n[i], 0:i32), 64:i32))]\n}",
     "access outside buffer: x"},
    {HEAD
     "  for i in 64\n    o[i] = x[int(minimum(maximum(n[i + 1], 0:i32), 63:i32)) if i in 63]\n}",
     "access outside buffer: n"},
    {HEAD "  for i in 64\n    o[i] = x[i]\n  o[i] = x[0]\n}", "axis used outside its loop: i"},
    {HEAD "  for i in 64\n    o[i] = x[i]\n  for j in 64\n    o[j] = x[j if i in 3]\n}",
     "axis used outside its loop: i"},
    {HEAD "  for i in 64\n    o[i] = x[i]\n  o[0] = x[0] if ((i)/3) in 3\n}",
     "axis used outside its loop: i"},
    {HEAD "  for i in 64\n    o[i] = x[i]\n  o[0] = cast.f32(i32(i))\n}",
     "axis used outside its loop: i"},
    {HEAD "  x[0] = o[0]\n}", "store to an input: x"},
    /* memory */
    {HEAD "  local a: f32[1]\n  for i in 4\n    o[i] = a[0]\n}",
     "read, but nothing stores to it: a"},
    {HEAD "  local a: f32[1]\n  for i in 64 grid\n    a[0] = x[i]\n    o[i] = a[0]\n}", NULL},
    {HEAD "  local a: f32[1]\n  for i in 8 grid\n    a[0] = x[i]\n    o[i] = a[0]\n"
          "  for j in 8 grid\n    a[0] = x[j]\n    o[j + 8] = a[0]\n}",
     "iterations of a parallel loop share a local: a"},
    {HEAD "  local a: f32[1]\n  for g in 4 grid\n    a[0] = x[g]\n    for b in 4 block\n"
          "      o[4*g + b] = a[0]\n}",
     "iterations of a parallel loop share a local: a"},
    {HEAD "  local a: f32[1]\n  for b in 4 block\n    a[0] = x[b]\n  for b in 4 block\n"
          "    o[b] = a[0]\n}",
     "iterations of a parallel loop share a local: a"},
    {HEAD "  group a: f32[4]\n  for g in 4 grid\n    for b in 4 block\n      a[b] = x[b]\n"
          "    o[g] = a[g]\n}",
     NULL},
    {HEAD "  group a: f32[4]\n  for g in 4 grid\n    a[g] = x[g]\n    o[g] = a[g]\n"
          "  for h in 4 grid\n    o[h + 4] = a[h]\n}",
     "positions of the grid share: a"},
    {HEAD "  thread r: f32[6]\n  for b in 4 block\n    r[b] = x[b]\n}",
     "rows that are not one for each thread: r"},
    {HEAD "  thread r: f32[8]\n  for b in 4 block\n    r[2*b] = x[b]\n    r[2*b + 1] = r[2*b]\n"
          "  for b in 4 block\n    o[b] = r[2*b + ((b)%2)]\n}",
     NULL},
    {HEAD "  thread r: f32[8]\n  for b in 4 block\n    r[b] = x[b]\n}",
     "a thread leaves its row: r"},
    {HEAD "  thread r: f32[8]\n  for b in 4 block\n    for i in 3\n      r[2*b + i] = x[b]\n}",
     "access outside buffer: r"},
    {HEAD
     "  thread r: f32[8]\n  for b in 4 block\n    for i in 3\n      r[((2*b + i)%8)] = x[b]\n}",
     "a thread leaves its row: r"},
    {HEAD "  thread r: f32[4]\n  for b in 4 block\n    r[b] = x[b]\n  for b in 4 block\n"
          "    o[b] = r[((b + 1)%4)]\n}",
     "a thread leaves its row: r"},
    {HEAD "  thread r: f32[4]\n  for l in 4 lane\n    r[l] = x[l]\n  for l in 4 lane\n"
          "    o[l] = r[((l + 1)%4)]\n}",
     NULL},
    {HEAD "  thread r: f32[4]\n  for l in 4 lane\n    r[((l + 1)%4)] = x[l]\n}",
     "a thread leaves its row: r"},
    {HEAD
     "  thread r: f32[16]\n  for b in 2 block\n    for l in 4 lane\n      r[8*b + 2*l] = x[l]\n"
     "      r[8*b + 2*l + 1] = x[l]\n  for b in 2 block\n    for l in 4 lane\n      for j in 2\n"
     "        o[4*b + l] = r[8*b + 2*((l + 1)%4) + j]\n}",
     NULL},
    {HEAD
     "  thread r: f32[16]\n  for b in 2 block\n    for l in 4 lane\n      r[8*b + 2*l] = x[l]\n"
     "      r[8*b + 2*l + 1] = x[l]\n  for b in 2 block\n    for l in 4 lane\n"
     "      o[4*b + l] = r[8*b + 2*((l + 1)%4) + ((l)%2)]\n}",
     "a thread leaves its row: r"},
    {HEAD
     "  thread r: f32[16]\n  for b in 2 block\n    for l in 4 lane\n      r[8*b + 2*l] = x[l]\n"
     "  for b in 2 block\n    for l in 4 lane\n      o[4*b + l] = r[2*l]\n}",
     "a thread leaves its row: r"},
    /* a phase of fewer threads, and one thread between phases */
    {HEAD "  thread r: f32[8]\n  for b in 8 block\n    r[b] = x[b]\n  for c in 4 block\n"
          "    r[c] = x[c]\n  r[0] = x[0]\n}",
     NULL},
    {HEAD "  thread r: f32[8]\n  for b in 8 block\n    r[b] = x[b]\n  r[1] = x[0]\n}",
     "a thread leaves its row: r"},
    {HEAD "  local a: f32[99999999999]\n  a[0] = x[0]\n}", "too large for local memory: a"},
    /* tests that keep nothing out, sizes */
    /* memory traffic */
    {HEAD "  for i in 64 grid pipeline\n    o[i] = x[i]\n}",
     "k:2: its last part is no serial loop that stores results alone: i"},
    {HEAD "  for i in 64 pipeline\n    o[i] = x[i]\n}", "k:2: pipelined, but not the grid: i"},
    {HEAD "  for i in 8 grid prefetch x i 1\n    for j in 8\n      o[8*i + j] = x[8*i + j]\n}",
     "it is not read there in vectors that are contiguous in memory: x"},
    {HEAD
     "  for i in 8 grid prefetch x i 3\n    for j in 8 vector\n      o[8*i + j] = x[8*i + j]\n}",
     "prefetched to no cache: x"},
    {HEAD
     "  for i in 8 grid prefetch o i 1\n    for j in 8 vector\n      o[8*i + j] = x[8*i + j]\n}",
     "it is no input: o"},
    {HEAD "  for i in 65\n    o[i] = 0:f32 if i in 65\n}", "k:3: access outside buffer: o"},
    {HEAD "  for i in 65\n    o[i] = 0:f32 if i in 64\n}", NULL},
    {HEAD "  for i in 65\n    o[0] = x[i if i in 65]\n}", "access outside buffer: x"},
    {HEAD "  mma_4x4x4(o[49 by 4, 1], x[0 by 4, 1], x[0 by 4, 1]) if 0 in 1\n}",
     "access outside buffer: o"},
    {HEAD "  o[0] = cast.f32(f16(3))\n}", "an index as a float of 16 bits: f16"},
    {HEAD "  for i in 281474976710656\n    for j in 257\n      o[0] = 0:f32\n}",
     "k:3: more iterations than can be counted: j"},
    {HEAD "  for i in 128 unroll\n    for j in 256 unroll\n      o[0] = 0:f32\n}",
     "k:3: more than 16384 copies by unrolled loops: j"},
    /* tiles */
    {HEAD "  mma_4x4x4(o[0 by 4, 1], x[0 by 4, 1], x[0 by 4, 1])\n}", NULL},
    {HEAD "  mma_4x4x4(o[15 by -4, -1], x[0 by 0, 0], x[48 by 4, 1])\n}", NULL},
    {HEAD "  mma_4x4x4(o[49 by 4, 1], x[0 by 4, 1], x[0 by 4, 1])\n}", "access outside buffer: o"},
    {HEAD "  mma_4x4x4(o[0 by 4, 1], x[2 by -1, 1], x[0 by 4, 1])\n}", "access outside buffer: x"},
    {HEAD "  mma_8x8x4(o[0 by 8, 1], x[32 by 4, 1], x[33 by 8, 1])\n}", "access outside buffer: x"},
    {HEAD "  mma_4x4x4(x[0 by 4, 1], x[0 by 4, 1], x[0 by 4, 1])\n}", "store to an input: x"},
    {HEAD "  mma_4x4x4(o[0 by 4, 1], x[0 by 4, 1], n[0 by 4, 1])\n}", "a tile of another dtype: n"},
    {HEAD "  mma_4x4x4(o[0 by 4, 1], o[0 by 4, 1], x[0 by 4, 1])\n}",
     "a tile reads what it accumulates to: o"},
    {HEAD "  mma_4x4x4(o[0 by 2, 1], x[0 by 4, 1], x[0 by 4, 1])\n}",
     "elements of a tile overlap: o"},
    {HEAD "  mma_4x4x4(o[0 by 4, 0], x[0 by 4, 1], x[0 by 4, 1])\n}",
     "elements of a tile overlap: o"},
};

static void check_rule(const dc_kernel *k, const char *says)
{
    const dc_status s = dc_nest_check(&nest_job, k);
    const bool right = says == NULL ? s == DC_OK : s == DC_E_BUG && nest_job.err.id == DC_ERR_BUG;
    const char *error = s != DC_OK ? nest_said() : "";
    CHECK(right);
    if (!CHECK(says == NULL ? s == DC_OK : strstr(error, says) != NULL)) {
        dc_text text = {0};
        dc_nest_print((dc_kernel *)k, &text);
        printf("    says '%s', should say '%s'\n%s\n", error, says != NULL ? says : "", text.s);
        dc_text_free(&text);
    }
}

/* Of a text that was given: the sentence has its line. */
static void test_given(void)
{
    static const struct {
        const char *text, *says;
    } given[] = {
        {HEAD "  for i in 4\n    o[i] = 0:f32\n}", NULL},
        {HEAD "  for i in 4\n  o[0] = 0:f32\n}", "line 2: a loop with nothing in it: i"},
        {HEAD "  for i in 1 grid\n  for i in 1 grid\n}", "line 2: a loop with nothing in it: i"},
        {HEAD "  for i in 64\n    for k in 0 reduce\n      o[i] add= x[k]\n}",
         "line 3: a loop of no iterations: k"},
        {HEAD "  for i in 64\n    o[i + 1] = x[i]\n}", "line 3: access outside buffer: o"},
    };
    for (size_t i = 0; i < DC_COUNTOF(given); i++) {
        dc_kernel *k = nest_of(given[i].text);
        const char *says = given[i].says;
        const dc_status s = dc_nest_check_given(&nest_job, k);
        CHECK(says == NULL ? s == DC_OK : s == DC_E_VALUE && strcmp(nest_said(), says) == 0);
        dc_kernel_free(k);
    }
}

static void test_rules(void)
{
    for (size_t i = 0; i < DC_COUNTOF(rules); i++) {
        dc_kernel *k = nest_of(rules[i].text);
        if (k != NULL)
            check_rule(k, rules[i].says);
        dc_kernel_free(k);
    }
}

/* What no text can say. */
static dc_kernel *plain(void)
{
    return nest_of(HEAD "  local a: f32[1]\n  for i in 64 grid\n    a[0] = 0:f32\n"
                        "    a[0] add= neg(x[i])\n    o[i] = a[0]\n}");
}

static void test_structures(void)
{
    dc_kernel *k = plain();
    check_rule(k, NULL);
    k->buf.at[3].scope = DC_SCOPE_SCRATCH;
    check_rule(k, "memory that only the flat form has: a");
    k->buf.at[3].scope = DC_SCOPE_LOCAL;
    k->buf.at[1].param = 7;
    check_rule(k, "parameters are not numbered in their order");
    k->buf.at[1].param = 1;
    k->buf.at[3].name = "x";
    check_rule(k, "two buffers of one name: x");
    k->buf.at[3].name = "a";
    k->axis.at[0].extent = 65; /* behind the back of index expressions */
    check_rule(k, "the range of an index is wrong: i");
    k->axis.at[0].extent = 64;
    dc_stmt *add = k->root->body->next, *out = add->next;
    const dc_put kept = add->put[0];
    add->put[0].buf = 99;
    check_rule(k, "no such buffer");
    add->put[0].buf = 1;
    check_rule(k, "store to an input: x");
    add->put[0] = kept;
    add->put[0].value = 0;
    check_rule(k, "no such value");
    add->put[0].value = dc_vx_const(k, DC_F32, 0);
    check_rule(k, "a reduction that accumulates nothing");
    add->put[0].value = dc_vx_const(k, DC_I32, 0);
    check_rule(k, "value of another dtype stored to: a");
    add->put[0].value = dc_vx_const(k, DC_F32, UINT64_MAX);
    check_rule(k, "a constant that is no pattern of: f32");
    const dc_vx in[2] = {dc_vx_const(k, DC_F32, 0), dc_vx_const(k, DC_U8, 0)};
    add->put[0].value = dc_vx_op(k, DC_OP_ADD, DC_F32, in, 2);
    check_rule(k, "operands or result of a wrong dtype: add");
    add->put[0].value = dc_vx_op(k, DC_OP_SUM, DC_F32, in, 1);
    check_rule(k, "no operation of kernels");
    add->put[0] = kept;
    out->put[0].at = 0;
    check_rule(k, "no such index expression");
    out->put[0].at = dc_ix_axis(k, dc_axis_new(k, "i", 8, false));
    check_rule(k, "axis used outside its loop: i"); /* that of 8 */
    k->root->body = dc_stmt_loop(k, k->axis.n - 1, k->root->body);
    check_rule(k, "two axes of one name: i");
    k->root->body->axis = 99;
    check_rule(k, "no such axis");
    dc_kernel_free(k);
}

static void test_launch(void)
{
    static const struct {
        const char *text;
        int64_t positions;
        uint32_t threads;
    } launches[] = {
        {HEAD "}", 1, 1},
        {HEAD "  for i in 64\n    o[i] = x[i]\n}", 1, 1},
        {HEAD "  for i in 64 grid\n    o[i] = x[i]\n}", 64, 1},
        {HEAD "  for i in 8 grid\n    o[i] = x[i]\n  for j in 4 grid\n    o[8 + j] = x[i*0]\n}", 12,
         1},
        {HEAD "  for i in 2 grid\n    for b in 4 block\n      for l in 8 lane\n"
              "        o[32*i + 8*b + l] = x[0]\n    for c in 2 block\n      o[32*i + c] = x[1]\n}",
         2, 32},
    };
    for (size_t i = 0; i < DC_COUNTOF(launches); i++) {
        dc_kernel *k = nest_of(launches[i].text);
        const dc_launch l = dc_nest_launch(k);
        CHECK_EQ(l.positions, launches[i].positions);
        CHECK_EQ(l.threads, launches[i].threads);
        dc_kernel_free(k);
    }
}

/* ---- what it computes ------------------------------------------------------------------------ */

enum { MAX_PARAMS = 4 };

/* Parameter p starts as p*100, p*100 + 1 ... of its dtype; as_one shares memory of 0 and 1. */
static dc_status run_on(const dc_kernel *k, float **mem, bool as_one, int64_t shift)
{
    void *param[MAX_PARAMS] = {NULL};
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer *x = &k->buf.at[b];
        if (x->scope != DC_SCOPE_PARAM)
            continue;
        const dc_dtype t = (dc_dtype)x->dtype;
        char *at = calloc((size_t)x->count + 64, sizeof(float));
        mem[x->param] = (float *)at;
        for (int64_t i = 0; i < x->count + 60; i++)
            dc_bits_store(t, at + (size_t)i * dc_dtype_size(t),
                          dc_bits_of(t, (double)(x->param * 100 + i)));
        param[x->param] = at;
    }
    if (as_one)
        param[1] = mem[0] + shift;
    return dc_nest_run(&nest_job, k, param);
}

static void free_all(float **mem)
{
    for (int i = 0; i < MAX_PARAMS; i++)
        free(mem[i]);
}

static void check_run(const char *text, bool as_one, int64_t shift, const char *says)
{
    float *mem[MAX_PARAMS] = {NULL};
    dc_kernel *k = nest_of(text);
    if (k == NULL)
        return;
    if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK))
        printf("    %s\n%s\n", nest_said(), text);
    const dc_status s = run_on(k, mem, as_one, shift);
    const bool right = says == NULL ? s == DC_OK : s == DC_E_BUG && nest_job.err.id == DC_ERR_BUG;
    const char *error = s != DC_OK ? nest_said() : "";
    CHECK(right);
    if (!CHECK(says == NULL ? s == DC_OK : strstr(error, says) != NULL))
        printf("    says '%s', should say '%s'\n%s\n", error, says != NULL ? says : "", text);
    free_all(mem);
    dc_kernel_free(k);
}

/* Sums of rows in four ways: serial, in group memory, by shuffles, by a tile. */
static void test_meaning(void)
{
    static const char *const ways[] = {
        "kernel a(o: f32[4] out, x: f32[32]) {\n  local s: f32[1]\n  for i in 4\n    s[0] = 0:f32\n"
        "    for k in 8 reduce\n      s[0] add= x[8*i + k]\n    o[i] = s[0]\n}",
        "kernel b(o: f32[4] out, x: f32[32]) {\n  group p: f32[8]\n  for i in 4 grid\n"
        "    for b in 8 block\n      p[b] = x[8*i + b]\n"
        "    for c in 4 block\n      p[c] = add(p[c], p[c + 4])\n"
        "    for d in 2 block\n      p[d] = add(p[d], p[d + 2])\n    o[i] = add(p[0], p[1])\n}",
        "kernel c(o: f32[4] out, x: f32[32]) {\n  thread r: f32[8]\n  thread q: f32[8]\n"
        "  for i in 4 grid\n    for l in 8 lane\n      r[l] = x[8*i + l]\n"
        "    for l in 8 lane\n      q[l] = add(r[l], r[((l + 4)%8)])\n"
        "    for l in 8 lane\n      r[l] = add(q[l], q[((l + 2)%8)])\n"
        "    for l in 8 lane\n      q[l] = add(r[l], r[((l + 1)%8)])\n    o[i] = q[0]\n}",
        "kernel d(o: f32[4] out, x: f32[32]) {\n  local c: f32[16]\n  local z: f32[1]\n"
        "  for j in 16 vector\n    c[j] = 0:f32\n  z[0] = 1:f32\n"
        "  for k in 2\n    mma_4x4x4(c[0 by 4, 1], x[4*k by 8, 1], z[0 by 0, 0])\n"
        "  for i in 4\n    o[i] = c[5*i]\n}",
    };
    for (size_t w = 0; w < DC_COUNTOF(ways); w++) {
        float *mem[MAX_PARAMS] = {NULL};
        dc_kernel *k = nest_of(ways[w]);
        if (k == NULL)
            continue;
        if (!CHECK(dc_nest_check(&nest_job, k) == DC_OK) ||
            !CHECK(run_on(k, mem, false, 0) == DC_OK))
            printf("    %s\n%s\n", nest_said(), ways[w]);
        for (int i = 0; i < 4; i++) {
            float sum = 0;
            for (int j = 0; j < 8; j++)
                sum += (float)(100 + 8 * i + j);
            CHECK_NEAR(mem[0][i], sum, 0);
        }
        free_all(mem);
        dc_kernel_free(k);
    }
}

/* A tile adds in the order of l, each product and each sum rounded; steps may go backwards. */
static void test_tile(void)
{
    static const char *const text =
        "kernel t(c: f32[64] inout, a: f32[32], b: f32[32]) {\n"
        "  mma_8x8x4(c[0 by 8, 1], a[28 by -4, 1], b[0 by 1, 4]) if 0 in 1\n}";
    float c[64], a[32], b[32];
    volatile float product, sum; /* rounded to f32 each time */
    void *const mem[3] = {c, a, b};
    for (int i = 0; i < 64; i++)
        c[i] = 0.1f * (float)i;
    for (int i = 0; i < 32; i++) {
        a[i] = 1.0f / (float)(3 + i);
        b[i] = 100.0f / (float)(7 + i * i);
    }
    dc_kernel *k = nest_of(text);
    CHECK(dc_nest_check(&nest_job, k) == DC_OK && dc_nest_run(&nest_job, k, mem) == DC_OK);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            sum = 0.1f * (float)(8 * i + j);
            for (int l = 0; l < 4; l++) {
                product = a[28 - 4 * i + l] * b[l + 4 * j];
                sum = sum + product;
            }
            CHECK_EQ(dc_f32_bits(c[8 * i + j]), dc_f32_bits(sum));
        }
    dc_kernel_free(k);
}

/* Indices from memory, below tests, as values. */
static void test_indices(void)
{
    static const char *const text =
        "kernel g(o: f32[5] out, x: f32[10], n: i32[5]) {\n  for i in 5\n"
        "    o[-i + 4] = where(test(2*i - 3 in 4), x[2*int(n[i]) + 1 if int(n[i]) in 5],\n"
        "      cast.f32(i32(3*((i - 2)/3) + i)))\n}";
    int32_t n[5] = {0, -1, 4, 5, 1};
    float x[10], o[5];
    void *const mem[3] = {o, x, n};
    for (int i = 0; i < 10; i++)
        x[i] = (float)(10 + i);
    dc_kernel *k = nest_of(text);
    CHECK(dc_nest_run(&nest_job, k, mem) == DC_OK);
    CHECK_NEAR(o[0], 4, 0);  /* i = 4: 5 is not in 4; 3 * 0 + 4 */
    CHECK_NEAR(o[1], 0, 0);  /* i = 3: 3 is in 4; n = 5 is not in 5 */
    CHECK_NEAR(o[2], 19, 0); /* i = 2: 1 is in 4; x[9] */
    CHECK_NEAR(o[3], -2, 0); /* i = 1: -1 is not in 4; 3 * -1 + 1 */
    CHECK_NEAR(o[4], -3, 0); /* i = 0: 3 * -1 + 0 */
    dc_kernel_free(k);
}

/* ---- promises that running shows broken ------------------------------------------------------ */

#define PAIR "kernel k(o: f32[64] out, x: f32[64]) {\n"
#define SELF "kernel k(s: f32[64] inout) {\n"

static const struct {
    const char *text;
    bool as_one; /* x lies in the memory of o, `shift` elements behind its start */
    int shift;
    const char *says; /* NULL: all is well */
} runs[] = {
    /* grid */
    {PAIR "  for i in 8 grid\n    o[0] = x[i]\n}", false, 0,
     "k:0: o[0] positions 0 and 1 of the grid, axis i both store it"},
    {PAIR "  for i in 8 vector\n    o[0] = x[i]\n}", false, 0, NULL},
    {PAIR "  for i in 8\n    o[0] = x[i]\n}", false, 0, NULL},
    {SELF "  for i in 8 grid\n    s[i] = s[((i + 1)%8)]\n}", false, 0,
     "s[1] positions 0 and 1 of the grid, axis i read it and store it"},
    {SELF "  for i in 8 grid\n    s[i] = s[((i + 7)%8)]\n}", false, 0,
     "s[0] positions 0 and 1 of the grid, axis i store it and read it"},
    {SELF "  for i in 8 grid\n    s[i] = neg(s[i])\n    s[i] add= s[i + 8]\n}", false, 0, NULL},
    {SELF "  for i in 8 grid\n    s[i] = 0:f32\n  for j in 8 grid\n    s[j + 8] = s[7]\n}", false,
     0, "s[7] positions 7 and 8 of the grid, axis j store it and read it"},
    {SELF "  for i in 8 grid\n    s[i] = s[20]\n  for j in 8 grid\n    s[j + 8] = s[20]\n}", false,
     0, NULL},
    {SELF "  for i in 8 grid\n    s[i] = s[20]\n    s[20] = 0:f32 if i - 7 in 1\n}", false, 0,
     "s[20] positions 0 and 7 of the grid, axis i read it and store it"},
    {SELF "  for i in 8 grid\n    s[i] = s[20]\n    s[20] = 0:f32 if i in 1\n}", false, 0,
     "s[20] positions 0 and 1 of the grid, axis i store it and read it"},
    /* threads */
    {PAIR "  group t: f32[8]\n  for b in 8 block\n    t[b] = x[b]\n  for b in 8 block\n"
          "    o[b] = t[((b + 1)%8)]\n}",
     false, 0, NULL},
    {PAIR "  group t: f32[8]\n  for b in 8 block\n    t[b] = x[b]\n    o[b] = t[((b + 7)%8)]\n}",
     false, 0, "t[7] is read before it is stored"},
    {PAIR "  group t: f32[8]\n  for b in 8 block\n    t[b] = x[b]\n    o[b] = t[((b)/2)]\n}", false,
     0, "t[0] iterations 0 and 1 of axis b store it and read it"},
    {PAIR
     "  group t: f32[8]\n  for k in 3\n    for b in 8 block\n      t[b] = x[b + k]\n"
     "    for c in 4 block\n      o[c] = t[2*c]\n    for b in 8 block\n      o[b] = t[-b + 7]\n}",
     false, 0, NULL},
    {PAIR "  group t: f32[8]\n  for k in 3\n    for b in 8 block\n      t[b] = x[b + k]\n"
          "      o[b] = t[b]\n}",
     false, 0, NULL},
    {PAIR "  group t: f32[8]\n  for b in 2 block\n    for k in 2\n      for l in 4 lane\n"
          "        t[4*b + l] = x[l]\n      for l in 4 lane\n        o[4*b + l] = t[4*b + ((l + "
          "1)%4)]\n}",
     false, 0, NULL},
    {PAIR "  group t: f32[8]\n  for b in 2 block\n    for k in 2\n      for l in 4 lane\n"
          "        t[4*k + l] = x[l]\n}",
     false, 0, "t[0] iterations 0 and 1 of axis b both store it"},
    {PAIR "  for g in 2 grid\n    for b in 2 block\n      for l in 4 lane\n"
          "        o[8*g + 4*b + ((l)/2)] = x[0]\n}",
     false, 0, "o[0] iterations 0 and 1 of axis l both store it"},
    {PAIR "  group t: f32[1]\n  for g in 2 grid\n    t[0] = x[g]\n    for b in 8 block\n"
          "      o[8*g + b] = t[0]\n    t[0] = x[g + 1]\n}",
     false, 0, NULL},
    {PAIR "  group t: f32[1]\n  for b in 8 block\n    t[0] = x[b] if b - 3 in 1\n}", false, 0,
     NULL},
    {PAIR "  group t: f32[1]\n  t[0] = x[0]\n  for b in 8 block\n    o[b] = t[0]\n"
          "    t[0] = x[b] if b - 7 in 1\n}",
     false, 0, "t[0] iterations 0 and 7 of axis b read it and store it"},
    {PAIR "  thread r: f32[8]\n  for l in 8 lane\n    r[l] = x[l]\n  for l in 8 lane\n"
          "    r[l] = r[((l + 1)%8)]\n}",
     false, 0, "r[1] iterations 0 and 1 of axis l read it and store it"},
    {PAIR "  group t: f32[2]\n  for g in 2 grid\n    t[g] = x[0]\n    o[g] = t[0]\n}", false, 0,
     "t[0] is read before it is stored"},
    /* what was not stored */
    {PAIR "  local a: f32[2]\n  a[0] = x[0]\n  o[0] = a[1]\n}", false, 0,
     "a[1] is read before this iteration stores it"},
    {PAIR "  local a: f32[1]\n  for i in 8\n    a[0] = x[i] if i in 1\n    o[i] = a[0]\n}", false,
     0, NULL},
    {PAIR "  local a: f32[1]\n  for i in 8 grid\n    a[0] = x[i] if i in 1\n    o[i] = a[0]\n}",
     false, 0, "a[0] is read before this iteration stores it"},
    {PAIR "  local a: f32[1]\n  for i in 8 block\n    a[0] = x[i] if i in 1\n    o[i] = a[0]\n}",
     false, 0, "a[0] is read before this iteration stores it"},
    {PAIR "  for i in 8 grid\n    o[i] = o[i + 8]\n}", false, 0,
     "o[8] is read before it is stored"},
    {PAIR "  for i in 8 grid\n    o[i] = x[i]\n    o[i] add= o[i]\n}", false, 0, NULL},
    /* parameters that share memory */
    {PAIR "  for i in 64 grid\n    o[i] = neg(x[i])\n}", true, 0, NULL},
    {PAIR "  for i in 64\n    o[i] = neg(x[i])\n}", true, 0, NULL},
    {PAIR "  for i in 32 grid\n    o[i] = neg(x[i])\n}", true, 1,
     "o[1] positions 0 and 1 of the grid, axis i read it and store it"},
    {PAIR "  for i in 32\n    o[i] = neg(x[i])\n}", true, 1, NULL},
    {PAIR "  for i in 32\n    o[i + 1] = neg(x[i])\n}", true, 0,
     "x[1] is read after an output was stored to the same memory"},
    {PAIR "  for i in 32 block\n    o[i + 1] = neg(x[i])\n}", true, 0,
     "x[1] iterations 0 and 1 of axis i store it and read it"},
    {PAIR "  for i in 64 grid\n    o[i] = neg(x[i])\n    o[i] add= x[i]\n}", true, 0,
     "x[0] is read after an output was stored to the same memory"},
    {"kernel k(o: f32[8] out, x: u8[32]) {\n  for i in 8\n    o[i] = cast.f32(x[i])\n}", true, 0,
     "x[1] is read after an output was stored to the same memory"},
    {"kernel k(o: f32[8] out, x: u8[32]) {\n  for i in 8\n    o[i] = cast.f32(x[4*i])\n}", true, 0,
     NULL},
    {"kernel k(o: f32[8] out, x: u8[32]) {\n  for i in 8 grid\n    o[i] = cast.f32(x[4*i + 4 if i "
     "in 7])\n}",
     true, 0, "positions 0 and 1 of the grid, axis i read it and store it"},
    /* below tests, ranges are not proved */
    {PAIR "  for i in 64\n    o[i + 1] = x[i] if i - 1 in 63\n}", false, 0, "o[64] of 64"},
    {PAIR "  for i in 64\n    o[i] = x[i - 1 if i in 63]\n}", false, 0, "x[-1] of 64"},
    {PAIR "  for i in 64\n    o[i] = x[i + 1 if i in 63]\n}", false, 0, NULL},
    {PAIR "  for i in 2\n    mma_4x4x4(o[0 by 4, 1], x[0 by 4, 1], x[60 by 4, 1]) if i in 1\n}",
     false, 0, "x[64] of 64"},
    {PAIR "  mma_4x4x4(o[60 by 4, 1], x[0 by 4, 1], x[60 by 4, 1]) if 1 in 1\n}", false, 0, NULL},
};

static void check_tiles_race(void)
{
    check_run(SELF "  local a: f32[16]\n  for g in 2 grid\n    for i in 16\n      a[i] = 1:f32\n"
                   "    mma_4x4x4(s[12*g by 4, 1], a[0 by 4, 1], a[0 by 4, 1])\n}",
              false, 0, "s[12] positions 0 and 1 of the grid, axis g store it and read it");
    check_run(SELF "  local a: f32[16]\n  for g in 2 grid\n    for i in 16\n      a[i] = 1:f32\n"
                   "    mma_4x4x4(s[16*g by 4, 1], a[0 by 4, 1], a[0 by 4, 1])\n}",
              false, 0, NULL);
    check_run(SELF "  local a: f32[16]\n  for i in 15\n    a[i] = 1:f32\n"
                   "  mma_4x4x4(s[0 by 4, 1], a[0 by 4, 1], a[0 by 4, 1])\n}",
              false, 0, "a[15] is read before this iteration stores it");
}

static dc_status body(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_rules();
    test_given();
    test_structures();
    test_launch();
    test_meaning();
    test_tile();
    test_indices();
    for (size_t i = 0; i < DC_COUNTOF(runs); i++)
        check_run(runs[i].text, runs[i].as_one, runs[i].shift, runs[i].says);
    check_tiles_race();
    return DC_OK;
}

int main(void)
{
    nest_open();
    if (!CHECK(dc_protect(&nest_job, body, NULL) == DC_OK))
        printf("    %s\n", nest_said());
    nest_close();
    return t_done();
}
