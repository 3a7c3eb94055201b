/* Spans from several threads while recordings begin and end (core/base/spans.h); what a limit and missing names leave out. */
#include "core/base/job.h"
#include "core/base/spans.h"
#include "core/base/thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"

enum { THREADS = 4, EACH = 20000 };

typedef struct adder {
    dc_log *log;
    int number;
    const atomic_bool *stop;
    uint64_t added;
} adder;

static void *add_spans(void *arg)
{
    adder *a = arg;
    char text[40];
    for (int i = 0; i < EACH || (a->stop != NULL && !atomic_load(a->stop)); i++) {
        const uint64_t begun = dc_span_begin(a->log);
        snprintf(text, sizeof text, "work %d", i % 7);
        const dc_span_name name = {.kind = DC_SPAN_USER, .text = text, .where = "a.lua:1"};
        dc_span_end_of(a->log, begun, &name, a->number * 1000000 + i);
        a->added += begun != 0;
    }
    return NULL;
}

static void run_threads(dc_log *log, adder *a, const atomic_bool *stop, void (*meanwhile)(dc_log *))
{
    pthread_t thread[THREADS];
    atomic_bool ended = false;
    int n = 0;
    for (; n < THREADS; n++) {
        a[n] = (adder){log, n, stop != NULL ? &ended : NULL, 0};
        if (!CHECK(dc_thread_start(&thread[n], "adder", 0, add_spans, &a[n])))
            break;
    }
    if (meanwhile != NULL)
        meanwhile(log);
    atomic_store(&ended, true);
    while (n > 0)
        pthread_join(thread[--n], NULL);
}

/* What began before the recording takes no place, and none is left out because of it. */
static void test_begun_before(void)
{
    dc_spans *s = dc_spans_new();
    const uint64_t before = dc_clock_ns();
    CHECK(dc_spans_start(s, 2));
    const uint32_t name = dc_spans_name(s, &(dc_span_name){.kind = DC_SPAN_USER, .text = "work"});
    for (int i = 0; i < 4; i++)
        dc_spans_add(s, name, 0, before - 1, dc_clock_ns(), i);
    CHECK_EQ(dc_spans_count(s), 0);
    for (int i = 0; i < 3; i++)
        dc_spans_add(s, name, 0, dc_clock_ns(), dc_clock_ns(), i);
    dc_spans_stop(s);
    CHECK_EQ(dc_spans_count(s), 2);
    CHECK_EQ(dc_spans_lost(s), 1);
    dc_spans_free(s);
}

/* All of them are there once, on the lane of their thread, in its order. */
static void test_threads(void)
{
    dc_spans *s = dc_spans_new();
    dc_log log = {.spans = s};
    adder a[THREADS];
    CHECK(dc_spans_start(s, 1 << 20));
    run_threads(&log, a, NULL, NULL);
    dc_spans_stop(s);
    CHECK_EQ(dc_spans_count(s), THREADS * EACH);
    CHECK_EQ(dc_spans_lost(s), 0);
    CHECK_EQ(dc_spans_lanes(s), THREADS);
    int64_t next[THREADS] = {0};
    uint32_t lane[THREADS] = {0};
    bool right = true;
    for (uint64_t i = 0; i < dc_spans_count(s); i++) {
        dc_span_time x;
        if (!CHECK(dc_spans_at(s, i, &x)))
            break;
        const int64_t t = x.number / 1000000;
        char text[40];
        snprintf(text, sizeof text, "work %d", (int)(next[t] % 7));
        right = right && x.number % 1000000 == next[t]++ && x.begun_ns <= x.ended_ns;
        right = right && (lane[t] == 0 || lane[t] == x.lane);
        right = right && strcmp(dc_spans_name_at(s, x.name)->text, text) == 0;
        lane[t] = x.lane;
    }
    CHECK(right);
    CHECK_STR(dc_spans_lane_at(s, lane[0])->name, "adder");
    dc_spans_free(s);
}

static void start_and_stop(dc_log *log)
{
    for (int i = 0; i < 200; i++) {
        dc_span_time x;
        CHECK(dc_spans_start(log->spans, 5000));
        for (int k = 0; k < 100; k++) {
            const uint64_t begun = dc_span_begin(log);
            dc_span_end(log, begun, DC_SPAN_CALL, "here");
        }
        dc_spans_stop(log->spans);
        const uint64_t n = dc_spans_count(log->spans);
        CHECK(n >= 1 && n <= 5000);
        for (uint64_t k = 0; k < n; k++)
            CHECK(!dc_spans_at(log->spans, k, &x) || x.begun_ns >= dc_spans_begun_ns(log->spans));
        CHECK_EQ(dc_span_begin(log), 0);
    }
}

static void test_recordings_end_while_threads_add(void)
{
    static const atomic_bool none;
    dc_spans *s = dc_spans_new();
    dc_log log = {.spans = s};
    adder a[THREADS];
    run_threads(&log, a, &none, start_and_stop);
    dc_spans_free(s);
}

static void test_limit(void)
{
    dc_spans *s = dc_spans_new();
    dc_log log = {.spans = s};
    dc_span_time x;
    CHECK_EQ(dc_spans_recording(s), 0);
    dc_span_end(&log, 1, DC_SPAN_CALL, "nothing is recorded");
    CHECK(dc_spans_start(s, 10));
    CHECK(dc_spans_start(s, 10)); /* goes on */
    for (int i = 0; i < 25; i++)
        dc_span_end(&log, dc_span_begin(&log), DC_SPAN_CALL, "f");
    dc_span_end(&log, 1, DC_SPAN_CALL, "before it began");
    dc_spans_stop(s);
    CHECK_EQ(dc_spans_count(s), 10);
    CHECK_EQ(dc_spans_lost(s), 15);
    CHECK(dc_spans_at(s, 9, &x));
    CHECK_STR(dc_spans_name_at(s, x.name)->text, "f");
    dc_spans_drop(s);
    CHECK_EQ(dc_spans_count(s), 0);
    dc_spans_free(s);
    dc_spans_free(NULL);
}

static void test_names(void)
{
    dc_spans *s = dc_spans_new();
    const dc_span_name a = {.kind = DC_SPAN_KERNEL, .text = "E", .where = "a.lua:1", .flops = 5};
    dc_span_name b = a;
    CHECK_EQ(dc_spans_name(s, &a), 0);
    CHECK(dc_spans_start(s, 10));
    const uint32_t n = dc_spans_name(s, &a);
    CHECK(n != 0);
    CHECK_EQ(dc_spans_name(s, &b), n);
    b.where = "a.lua:2";
    CHECK(dc_spans_name(s, &b) != n);
    b = a;
    b.layer = "net.1";
    CHECK(dc_spans_name(s, &b) != n);
    b = a;
    b.kind = DC_SPAN_HOST;
    CHECK(dc_spans_name(s, &b) != n);
    b = a;
    b.flops = 6;
    CHECK(dc_spans_name(s, &b) != n);
    CHECK_STR(dc_spans_name_at(s, n)->where, "a.lua:1");
    CHECK(dc_spans_name_at(s, n)->layer == NULL);
    const uint32_t device = dc_spans_lane(s, "cuda:0");
    CHECK_EQ(dc_spans_lane(s, "cuda:0"), device);
    CHECK(dc_spans_lane(s, "cuda:1") != device);
    dc_spans_stop(s);
    CHECK_EQ(dc_spans_lane_at(s, device)->thread, 0);
    dc_spans_free(s);
}

static dc_status all_tests(dc_job *j, void *arg)
{
    DC_UNUSED(j);
    DC_UNUSED(arg);
    test_threads();
    test_recordings_end_while_threads_add();
    test_begun_before();
    test_limit();
    test_names();
    return DC_OK;
}

int main(void)
{
    dc_opts opt = {0};
    dc_job j;
    dc_job_init(&j, &opt, NULL);
    CHECK_EQ(dc_protect(&j, all_tests, NULL), DC_OK);
    dc_job_fini(&j);
    return t_done();
}
