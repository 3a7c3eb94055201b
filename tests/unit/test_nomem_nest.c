/*
 * Out of memory (tests/unit/nomem.h tells how) while the text of a nest is read, verified, run and
 * printed, and while a file of schedules is read.
 */
#define _POSIX_C_SOURCE 200809L
#include "jit/schedule/schedule_file.h"

#include <unistd.h>

#include "tests/unit/nest_interp.h"
#include "tests/unit/nomem.h"

static const char text[] =
    "kernel sums(out0: f32[8] out, x0: f32[64], at: i32[8]) {\n"
    "  local acc: f32[1]\n"
    "  group tile: f32[8]\n"
    "  for g in 8 grid\n"
    "    for b in 8 block\n"
    "      tile[b] = x0[8*g + b]\n"
    "    acc[0] = 0:f32\n"
    "    for k in 8 reduce\n"
    "      t0 = mul(tile[k], 0.5:f32)\n"
    "      acc[0] add= add(t0, exp(t0)) if ((k)/2) in 4\n"
    "    out0[g] = add(acc[0], x0[int(minimum(maximum(at[g], 0:i32), 63:i32))])\n"
    "}\n";

static dc_kernel *kernel;
static dc_schedule_file *schedules;
static float out[8], x[64];
static int32_t at[8] = {5, 3, 1, 64, -1, 0, 60, 2};
static char path[] = "/tmp/test_nomem_nest.XXXXXX";

static dc_status do_nest(dc_job *j, void *ctx)
{
    void *const memory[3] = {out, x, at};
    (void)ctx;
    if (kernel == NULL)
        DC_TRY(dc_nest_parse(j, text, &kernel));
    DC_TRY(dc_nest_check(j, kernel));
    return dc_nest_run(j, kernel, memory);
}

static void after_nest(bool done)
{
    dc_text printed = {0};
    if (done) {
        dc_nest_print(kernel, &printed);
        CHECK_STR(printed.s, text);
        same(out, sizeof out);
        dc_text_free(&printed);
    }
    dc_kernel_free(kernel);
    kernel = NULL;
}

static dc_status do_schedules(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_schedule_file_read(j, path, &schedules);
}

static void after_schedules(bool done)
{
    uint32_t n;
    if (done)
        CHECK(dc_schedule_file_find(schedules, "k19", &n) != NULL && n == 2);
    dc_schedule_file_free(schedules);
    schedules = NULL;
}

static void write_schedules(void)
{
    const int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    must(file != NULL, path);
    for (int i = 0; i < 20; i++)
        fprintf(file, "schedule k%d\n  split i 8\n  unroll i.i\n", i);
    must(fclose(file) == 0, path);
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i % 7);
    write_schedules();
    open_world("eval", &(dc_opts){.opt = 2}, "");
    try(&(trial){.name = "a nest", .body = do_nest, .after = after_nest});
    try(&(trial){.name = "schedules", .body = do_schedules, .after = after_schedules});
    close_world();
    unlink(path);
    return t_done();
}
