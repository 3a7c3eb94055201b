/*
 * Products of warp groups (jit/schedule/schedule_simt_wgmma.c) whose schedules lack a move, or have another number of stages:
 * whatever remains, an instruction of four warps, one of a warp or arithmetic, has the results of the naive kernel.
 * Operands are small whole numbers, so sums are exact in any order.
 */
#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/schedule/schedule.h"
#include "jit/sim/flat_interp.h"
#include "jit/sim/sim_target.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

enum { M = 64, N = 64, K = 200, LAYOUTS = 4, MOST_MOVES = 200 };

static dc_opts opts;
static dc_log quiet;
static dc_job job;
static float x[M * K], y[K * N];

/* layout & 1: the left operand is transposed; & 2: the right one is. */
static void write_kernel(dc_text *to, int layout)
{
    dc_text_printf(to, "kernel product(out0: f32[%d] out, x0: f16[%d], x1: f16[%d]) {\n", M * N,
                   M * K, K * N);
    dc_text_printf(to, "  local acc: f32[1]\n  for m in %d\n    for n in %d\n", M, N);
    dc_text_printf(to, "      acc[0] = 0:f32\n      for k in %d reduce\n", K);
    dc_text_printf(to, "        acc[0] add= mul(cast.f32(x0[%d*m + %d*k]), ", layout & 1 ? 1 : K,
                   layout & 1 ? M : 1);
    dc_text_printf(to, "cast.f32(x1[%d*k + %d*n]))\n", layout & 2 ? 1 : N, layout & 2 ? K : 1);
    dc_text_printf(to, "      out0[%d*m + n] = acc[0]\n}\n", N);
}

static uint16_t half_of(float f)
{
    return (uint16_t)dc_bits_of(DC_F16, (int64_t)f);
}

static void put_operands(uint16_t *a, uint16_t *b, int layout)
{
    for (int k = 0; k < K; k++) {
        for (int m = 0; m < M; m++)
            a[layout & 1 ? k * M + m : m * K + k] = half_of(x[m * K + k]);
        for (int n = 0; n < N; n++)
            b[layout & 2 ? n * K + k : k * N + n] = half_of(y[k * N + n]);
    }
}

static bool is_right(const float *out)
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += x[m * K + k] * y[k * N + n];
            if (!(out[m * N + n] == sum))
                return false;
        }
    return true;
}

static bool uses(const dc_flat *f, dc_kop op)
{
    for (uint32_t i = 0; i < f->order.n; i++)
        if (f->inst.at[f->order.at[i]].op == op)
            return true;
    return false;
}

/* What the kernel gives after the moves but number `without`; how many stages others have: 0 as they say. Of wgmma? */
static bool try_moves(const dc_target *t, const char *text, int layout, char **move, int n,
                      int without, int stages)
{
    static uint16_t a[M * K], b[K * N];
    static float out[M * N];
    void *mem[] = {out, a, b};
    const char *why;
    dc_kernel *k = NULL;
    dc_flat *f = NULL;
    bool is = false;
    CHECK(dc_nest_parse(&job, text, &k) == DC_OK);
    for (int i = 0; i < n; i++) {
        char changed[200];
        const char *count = strrchr(move[i], ' ');
        snprintf(changed, sizeof changed, "%s", move[i]);
        if (stages > 0 && strncmp(move[i], "stage ", 6) == 0)
            snprintf(changed, sizeof changed, "%.*s %d", (int)(count - move[i]), move[i], stages);
        if (i != without)
            dc_move_apply_text(k, changed, &why); /* or it is refused */
    }
    put_operands(a, b, layout);
    memset(out, 0xff, sizeof out);
    const dc_status built = dc_flatten_for(&job, k, t, 0, &f);
    if (built == DC_E_BUG ||
        (built == DC_OK &&
         (!CHECK(dc_flat_check(&job, f) == DC_OK) ||
          !CHECK(dc_flat_run(&job, f, mem, 0, f->positions) == DC_OK) || !CHECK(is_right(out))))) {
        char said[700];
        dc_err_render(&job.err, 0, said, sizeof said);
        CHECK_STR(said, "");
        printf("    layout %d without %s\n", layout, without >= 0 ? move[without] : "none");
    }
    job.err = (dc_err){0}; /* what needs more than the device has is no failure */
    is = built == DC_OK && uses(f, DC_K_WGMMA);
    if (built == DC_OK)
        dc_flat_free(f);
    dc_kernel_free(k);
    return is;
}

static int moves_of(const dc_target *t, const char *text, char **move)
{
    dc_kernel *k = NULL;
    int n = 0;
    if (!CHECK(dc_nest_parse(&job, text, &k) == DC_OK) ||
        !CHECK(dc_schedule(&job, k, t, 2) == DC_OK) || !CHECK(k->moves.n <= MOST_MOVES))
        return 0;
    for (uint32_t i = 0; i < k->moves.n; i++) {
        const char *said = dc_move_text(k, k->moves.at[i], &k->arena);
        move[n] = malloc(strlen(said) + 1);
        strcpy(move[n++], said);
    }
    dc_kernel_free(k);
    return n;
}

static void test_layout(const dc_target *t, int layout, int *all, int *warpgroups)
{
    char *move[MOST_MOVES];
    dc_text text = {0};
    write_kernel(&text, layout);
    const int n = moves_of(t, text.s, move);
    for (int stages = 1; stages <= 5; stages++)
        CHECK(try_moves(t, text.s, layout, move, n, -1, stages));
    for (int i = layout; i < n; i += LAYOUTS) /* each in one of the layouts */
        *warpgroups += try_moves(t, text.s, layout, move, n, i, 0), ++*all;
    for (int i = 0; i < n; i++)
        free(move[i]);
    dc_text_free(&text);
}

static dc_status test(dc_job *j, void *arg)
{
    dc_target t = *dc_sim_target_named("sim:wgmma");
    int all = 0, warpgroups = 0;
    DC_UNUSED(j);
    DC_UNUSED(arg);
    t.units = 1;
    for (int i = 0; i < M * K; i++)
        x[i] = (float)((i * 7 + i / 11 + i / 101) % 5 - 2);
    for (int i = 0; i < K * N; i++)
        y[i] = (float)((i * 3 + i / 13 + i / 97) % 5 - 2);
    for (int layout = 0; layout < LAYOUTS; layout++)
        test_layout(&t, layout, &all, &warpgroups);
    printf("    of %d schedules that lack a move %d have products of warp groups\n", all,
           warpgroups);
    CHECK(warpgroups > 0 && warpgroups < all);
    return DC_OK;
}

int main(void)
{
    const char *bad;
    dc_opts_init(&opts, &bad);
    dc_job_init(&job, &opts, &quiet);
    CHECK(dc_protect(&job, test, NULL) == DC_OK);
    dc_job_fini(&job);
    return t_done();
}
