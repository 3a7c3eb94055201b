/*
 * core/runtime/split.c: every piece runs once; the failure with the smallest number is the job's, on whatever
 * thread it was; lines come through; a piece that unwinds leaves no thread behind.
 */
#define _DEFAULT_SOURCE /* usleep */
#include "tests/t.h"

#include "core/runtime/split.h"

#include <unistd.h>

enum { N = 200 };

typedef struct work {
    _Atomic int runs[N];
    uint32_t fail_from; /* these pieces fail; N none */
    bool bug, log;
} work;

static dc_status piece(dc_job *j, void *ctx, uint32_t i)
{
    work *w = ctx;
    char *scratch = dc_arena_alloc(&j->scratch, 1000);
    scratch[0] = 1;
    atomic_fetch_add(&w->runs[i], 1);
    usleep(20);
    if (w->log)
        dc_logf(j->log, DC_CH_NOTE, "piece %u", i);
    if (i < w->fail_from)
        return DC_OK;
    if (w->bug)
        DC_BUG("piece %u", i);
    return dc_failf(j, DC_ERR_DEVICE, "split", "piece %u", i);
}

static dc_status run(dc_job *j, void *arg)
{
    return dc_split(j, N, piece, arg);
}

static void hear(void *ctx, const char *channel, const char *text, size_t n)
{
    DC_UNUSED(channel);
    for (size_t i = 0; i < n; i++)
        *(int *)ctx += text[i] == '\n';
}

int main(void)
{
    static const dc_opts opt;
    int lines = 0;
    dc_log log = {.on = 1u << DC_CH_NOTE, .write = hear, .ctx = &lines};
    dc_job j;
    dc_job_init(&j, &opt, &log);

    work all = {.fail_from = N, .log = true};
    CHECK_EQ(dc_protect(&j, run, &all), DC_OK);
    for (int i = 0; i < N; i++)
        CHECK_EQ(all.runs[i], 1);
    CHECK_EQ(lines, N);

    work some = {.fail_from = 100};
    CHECK_EQ(dc_protect(&j, run, &some), DC_E_DEVICE);
    char text[200];
    dc_err_render(&j.err, 1, text, sizeof text);
    CHECK(strncmp(text, "split: ", 7) == 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(some.runs[i], 1);
    CHECK_EQ(some.runs[N - 1], 0);

    work bug = {.fail_from = 7, .bug = true};
    CHECK_EQ(dc_protect(&j, run, &bug), DC_E_BUG);
    CHECK_EQ(bug.runs[N - 1], 0);

    CHECK_EQ(dc_split(&j, 0, piece, &all), DC_OK);
    dc_job_fini(&j);
    return t_done();
}
