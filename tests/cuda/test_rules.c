/*
 * What kernels scheduled by rule for groups of threads cost (jit/schedule/schedule_simt*.c): the accesses of warps touch no more
 * sectors than they need where rows begin at sectors, few more elsewhere, and meet in no bank of shared memory.
 */
#include "core/base/job.h"
#include "jit/flat/flatten.h"
#include "jit/render/render.h"
#include "jit/render/render_c.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/sim_target.h"

#include "tests/cuda/measure.h"

typedef struct family {
    const char *nest;
    double sectors;         /* at most, as a multiple of the least */
    int shuffles, barriers; /* 1: there are some */
} family;

static const family families[] = {
    {"kernel map(out0: f32[65536] out, x0: f32[65536], x1: f32[256]) {\n  for i in 256\n    for j "
     "in 256\n"
     "      out0[256*i + j] = add(x0[256*i + j], x1[j])\n}\n",
     1, 0, 0},
    {"kernel half(out0: f16[65537] out, x0: f16[65537]) {\n  for i in 65537\n    out0[i] = "
     "x0[i]\n}\n",
     1.01, 0, 0},
    {"kernel odd(out0: f32[32767] out, x0: f32[32767], x1: f32[151]) {\n  for i in 217\n    for j "
     "in 151\n"
     "      out0[151*i + j] = add(x0[151*i + j], x1[j])\n}\n",
     1.3, 0, 0},
    {"kernel turn(out0: f32[32768] out, x0: f32[32768]) {\n  for i in 256\n    for j in 128\n"
     "      out0[128*i + j] = x0[256*j + i]\n}\n",
     1, 0, 1},
    {"kernel bytes(out0: u8[32768] out, x0: u8[32768]) {\n  for i in 256\n    for j in 128\n"
     "      out0[128*i + j] = x0[256*j + i]\n}\n",
     1, 0, 1},
    {"kernel columns(out0: f32[256] out, x0: f32[65536]) {\n  local acc: f32[1]\n  for i in 256\n  "
     "  acc[0] = 0:f32\n"
     "    for k in 256 reduce\n      acc[0] add= x0[256*k + i]\n    out0[i] = acc[0]\n}\n",
     1, 0, 1},
    {"kernel rows(out0: f32[300] out, x0: f32[76800]) {\n  local acc: f32[1]\n  for i in 300\n    "
     "acc[0] = 0:f32\n"
     "    for k in 256 reduce\n      acc[0] add= x0[256*i + k]\n    out0[i] = acc[0]\n}\n",
     1, 1, 1},
    {"kernel softmax(out0: f32[262144] out, x0: f32[262144]) {\n  local top: f32[1]\n  local e: "
     "f32[64]\n"
     "  local sum: f32[1]\n  for i: row in 4096\n    top[0] = -inf:f32\n    for k: column in 64 "
     "reduce\n"
     "      top[0] maximum= x0[64*i + k]\n    for n: column in 64\n      e[n] = exp(sub(x0[64*i + "
     "n], top[0]))\n"
     "    sum[0] = 0:f32\n    for j: column in 64 reduce\n      sum[0] add= e[j]\n    for m: "
     "column in 64\n"
     "      out0[64*i + m] = div(e[m], sum[0])\n}\n",
     1, 1, 0},
    {"kernel large(out0: f16[4194304] out, x0: f16[131072], x1: f16[131072]) {\n  local acc: "
     "f32[1]\n"
     "  for m in 2048\n    for n in 2048\n      acc[0] = 0:f32\n      for k in 64 reduce\n"
     "        acc[0] add= mul(cast.f32(x0[64*m + k]), cast.f32(x1[2048*k + n]))\n"
     "      out0[2048*m + n] = cast.f16(acc[0])\n}\n",
     1, 1, 1},
    {"kernel product(out0: f16[65536] out, x0: f16[65536], x1: f16[65536]) {\n  local acc: f32[1]\n"
     "  for m in 256\n    for n in 256\n      acc[0] = 0:f32\n      for k in 256 reduce\n"
     "        acc[0] add= mul(cast.f32(x0[256*m + k]), cast.f32(x1[256*k + n]))\n"
     "      out0[256*m + n] = cast.f16(acc[0])\n}\n",
     1, 1, 1},
};

/* The text of a kernel; its launch, and the bytes of its parameters. */
static bool make(dc_job *j, const family *x, dc_text *text, dc_flat **flat, size_t *bytes,
                 size_t *dynamic)
{
    const dc_target *t = dc_sim_target_named("cuda");
    dc_kernel *k = NULL;
    const bool made = CHECK(dc_nest_parse(j, x->nest, &k) == DC_OK) &&
                      CHECK(dc_schedule(j, k, t, 2) == DC_OK) &&
                      CHECK(dc_flatten_for(j, k, t, 0, flat) == DC_OK) &&
                      CHECK(dc_render(j, (const dc_flat *const[]){*flat}, 1, t, text) == DC_OK);
    *dynamic = made ? dc_render_dynamic(*flat, t) : 0;
    for (uint32_t b = 0; made && b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM)
            bytes[k->buf.at[b].param] =
                (size_t)k->buf.at[b].count * dc_dtype_size((dc_dtype)k->buf.at[b].dtype);
    if (k != NULL)
        dc_kernel_free(k);
    return made;
}

static void test_family(dc_job *j, const family *x)
{
    dc_text text = {0};
    dc_flat *f = NULL;
    size_t bytes[MEASURE_MOST], dynamic;
    measured m;
    if (make(j, x, &text, &f, bytes, &dynamic) &&
        CHECK(measure(text.s, f->name, (unsigned)f->positions, f->threads, (unsigned)dynamic,
                      f->nparam, bytes, &m))) {
        uint64_t units[2] = {0}, least[2] = {0};
        for (size_t i = 0; i < m.n; i++) {
            units[m.row[i].shared] += m.row[i].units;
            least[m.row[i].shared] += m.row[i].least;
        }
        CHECK_EQ(units[1], least[1]);
        CHECK_EQ(strstr(text.s, "SHARED_DYNAMIC(shared)") != NULL, dynamic > 0);
        CHECK_EQ(dynamic > 0, strcmp(f->name, "large") == 0);
        if (!CHECK((double)units[0] <= x->sectors * (double)least[0]))
            printf("    %s: %g of the sectors\n", f->name, (double)units[0] / (double)least[0]);
        CHECK_EQ(strstr(text.s, " = (f32)__shfl_sync") != NULL, x->shuffles);
        CHECK_EQ(strstr(text.s, "__syncthreads()") != NULL, x->barriers);
    }
    dc_flat_free(f);
    dc_text_free(&text);
}

int main(void)
{
    static dc_log log;
    dc_opts opt;
    dc_job j;
    const char *bad;
    dc_opts_init(&opt, &bad);
    cuda_standin_set("WRONG", "report");
    cuda_standin_set("TRAFFIC", "1");
    dc_job_init(&j, &opt, &log);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        test_family(&j, &families[i]);
    dc_job_fini(&j);
    return t_done();
}
