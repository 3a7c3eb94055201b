/*
 * Compilation on other threads: which call waits for what, where failures and log lines arrive, and
 * what happens to compilations that are no longer needed. Nothing here depends on which thread is
 * faster: a gate holds compilations where the test wants them.
 */
#define _DEFAULT_SOURCE /* usleep */
#include "core/ir/control.h"
#include "core/ir/flops.h"
#include "core/ir/gtext.h"
#include "core/transform/bounded.h"

#include "tests/unit/slow.h"

enum { THREADS = 2 }; /* at most, so that this many compilations may have begun at once */

static bool one_thread;

static int threads(void)
{
    return one_thread ? 1 : THREADS;
}

/* ---- the good case --------------------------------------------------------------------------- */

static void test_definition_returns(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    dc_exec *e = slow_start(&w, 3);
    CHECK_EQ(slow_count(w.dev, &w.dev->ended), 0);
    CHECK(slow_wait_begun(w.dev, 1)); /* by itself */
    CHECK_EQ(slow_count(w.dev, &w.dev->here), 0);
    CHECK_EQ(w.rt->stats.kernels, 0);
    slow_shut(w.dev, false);
    slow_call(&w, e, 3, 11); /* waits */
    CHECK_EQ(w.dev->ended, 1);
    CHECK_EQ(w.dev->here, 0);
    CHECK_EQ(w.rt->stats.kernels, 1);
    CHECK_EQ(w.rt->stats.compiles, 1);
    CHECK(w.rt->stats.compile_ns > 0);
    slow_call(&w, e, 3, 11);
    CHECK_EQ(w.dev->begun, 1);
    dc_exec_release(e);
    slow_close(&w);
}

static void compile_now(dc_opts *opt)
{
    strcpy(opt->compile, "now");
}

static void test_now(void)
{
    slow_world w;
    slow_open(&w, compile_now);
    slow_shut(w.dev, true); /* holds up other threads only */
    dc_exec *e = slow_start(&w, 1);
    CHECK_EQ(w.dev->ended, 1);
    CHECK_EQ(w.dev->here, 1);
    slow_call(&w, e, 1, 9);
    dc_exec_release(e);
    slow_close(&w);
}

/* All threads are busy: the call that needs the third function compiles it itself. */
static void test_taking_over(void)
{
    slow_world w;
    dc_exec *e[4];
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    for (int i = 0; i < threads(); i++)
        e[i] = slow_start(&w, i + 1);
    CHECK(slow_wait_begun(w.dev, threads()));
    for (int i = threads(); i < 4; i++)
        e[i] = slow_start(&w, i + 1);
    slow_call(&w, e[3], 4, 12);
    CHECK_EQ(slow_count(w.dev, &w.dev->here), 1);
    CHECK_EQ(slow_count(w.dev, &w.dev->ended), 1);
    slow_shut(w.dev, false);
    for (int i = 0; i < 4; i++)
        slow_call(&w, e[i], i + 1, (uint32_t)i + 9);
    CHECK_EQ(w.dev->begun, 4);
    for (int i = 0; i < 4; i++)
        dc_exec_release(e[i]);
    slow_close(&w);
}

static void test_many(void)
{
    enum { N = 50 };
    slow_world w;
    dc_exec *e[N];
    slow_open(&w, NULL);
    for (int i = 0; i < N; i++)
        e[i] = slow_start(&w, i);
    for (int i = N - 1; i >= 0; i -= 2) /* backwards, so that most are taken over */
        slow_call(&w, e[i], i, (uint32_t)i + 8);
    CHECK(w.rt->stats.kernels >= N / 2);
    for (int i = 0; i < N; i++)
        dc_exec_release(e[i]);
    CHECK_EQ(w.rt->stats.calls, N / 2);
    CHECK_EQ(w.rt->stats.compiles, N);
    slow_close(&w);
}

typedef struct looking {
    const dc_func *f;
    dc_text text;
    double flops;
} looking;

static dc_status look(dc_job *j, void *arg)
{
    looking *a = arg;
    DC_UNUSED(j);
    dc_func_print(a->f, &a->text);
    a->flops = dc_flops_func(a->f);
    CHECK(dc_func_hash(a->f) != 0);
    CHECK(!dc_bounded_any(a->f));
    CHECK_EQ(dc_control_bodies(a->f), 0);
    return DC_OK;
}

/* Who reads a graph leaves its module alone, which another thread adds functions to (scripts/tsan sees it). */
static void test_read_while_compiled(void)
{
    enum { N = 20 };
    slow_world w;
    dc_exec *e[N];
    slow_open(&w, NULL);
    for (int i = 0; i < N; i++) {
        e[i] = slow_start(&w, i);
        looking a = {.f = dc_exec_desc_of(e[i])->fn};
        CHECK_EQ(dc_protect(w.j, look, &a), DC_OK);
        CHECK(a.flops > 0);
        CHECK(strstr(a.text.s, "return") != NULL);
        dc_text_free(&a.text);
    }
    for (int i = 0; i < N; i++)
        slow_call(&w, e[i], i, (uint32_t)i + 8);
    for (int i = 0; i < N; i++)
        dc_exec_release(e[i]);
    slow_close(&w);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_failure_at_the_call(void)
{
    slow_world w;
    char why[600];
    slow_open(&w, NULL);
    slow_fail(w.dev, SLOW_LARGE, 1);
    dc_exec *e = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    CHECK_EQ(dc_protect(w.j, slow_ask, &(slow_asking){.w = &w, .e = e}), DC_E_VALUE);
    CHECK_EQ(w.j->err.id, DC_ERR_TOO_LARGE);
    dc_err_render(&w.j->err, 1, why, sizeof why);
    CHECK_STR(why, "f: a tensor of many bytes is too large to address");
    CHECK_EQ(slow_wait(&w, e), DC_E_VALUE); /* and again, without another attempt */
    CHECK_EQ(w.dev->begun, 1);
    CHECK(!w.rt->broken);
    dc_exec *other = slow_start(&w, 5); /* others are well */
    slow_call(&w, other, 5, 13);
    dc_exec_release(e);
    dc_exec_release(other);
    slow_close(&w);
}

static void test_compiler_fails(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_fail(w.dev, SLOW_BUILD, 1);
    dc_exec *e = slow_start(&w, 2);
    slow_call(&w, e, 2, 10); /* on the interpreter */
    CHECK_EQ(w.rt->stats.fallbacks, 1);
    CHECK_EQ(w.rt->stats.interpreted, 1);
    CHECK(strstr(w.said.s, "f2 falls back to the interpreter: slow: the compiler is tired") !=
          NULL);
    dc_exec_release(e);
    slow_close(&w);
}

/* Memory may come back: the next call tries again. */
static void test_no_memory(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_fail(w.dev, SLOW_NOMEM, 2);
    dc_exec *e = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    CHECK_EQ(slow_wait(&w, e), DC_E_NOMEM);
    CHECK_EQ(w.j->err.id, DC_ERR_NOMEM);
    CHECK_EQ(slow_wait(&w, e), DC_E_NOMEM);
    CHECK(!w.rt->broken);
    slow_call(&w, e, 2, 10);
    CHECK_EQ(w.dev->begun, 3);
    CHECK_EQ(w.dev->here, 2);
    dc_exec_release(e);
    slow_close(&w);
}

/* ---- log lines ------------------------------------------------------------------------------- */

/* In this order in what was said. */
static bool heard(const slow_world *w, const char *const *names, int n)
{
    const char *at = w->said.s != NULL ? w->said.s : "";
    for (int i = 0; i < n; i++) {
        at = strstr(at, names[i]);
        if (at == NULL)
            return false;
        at++;
    }
    return true;
}

static void test_log(void)
{
    static const char *const in_order[] = {"E_21\n", "E_22\n", "E_23\n"};
    slow_world w;
    dc_exec *e[3];
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    e[0] = slow_start_sized(&w, 1, 21);
    CHECK(slow_wait_begun(w.dev, 1));
    e[1] = slow_start_sized(&w, 2, 22);
    e[2] = slow_start_sized(&w, 3, 23);
    CHECK_EQ(dc_protect(w.j, slow_ask, &(slow_asking){.w = &w, .e = e[2]}), DC_OK);
    CHECK(heard(&w, in_order + 2, 1) && !heard(&w, in_order, 1)); /* before it can be called */
    w.said.n = 0;
    slow_shut(w.dev, false);
    CHECK_EQ(slow_wait(&w, e[1]), DC_OK);
    CHECK_EQ(slow_wait(&w, e[0]), DC_OK);
    CHECK(heard(&w, in_order, 1) && heard(&w, in_order + 1, 1));
    for (int i = 0; i < 3; i++)
        dc_exec_release(e[i]);
    slow_close(&w);
}

/* What ends in another order than it began is heard in the order of its begin. */
static void test_log_in_order(void)
{
    static const char *const in_order[] = {"E_21\n", "E_22\n"};
    slow_world w;
    dc_exec *e[2];
    if (one_thread)
        return;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    for (int i = 0; i < 2; i++)
        e[i] = slow_start_sized(&w, i, 21 + (uint32_t)i);
    CHECK(slow_wait_begun(w.dev, 2));
    CHECK(w.said.n == 0);
    slow_shut(w.dev, false);
    for (int n = 0; n < 2;) { /* both have ended before they are waited for */
        pthread_mutex_lock(&w.dev->lock);
        n = w.dev->ended;
        pthread_mutex_unlock(&w.dev->lock);
    }
    CHECK(w.said.n == 0);
    CHECK_EQ(slow_wait(&w, e[0]), DC_OK);
    CHECK_EQ(slow_wait(&w, e[1]), DC_OK);
    CHECK(heard(&w, in_order, 2));
    for (int i = 0; i < 2; i++)
        dc_exec_release(e[i]);
    slow_close(&w);
}

/* ---- what is not needed ---------------------------------------------------------------------- */

static void test_close_with_queue(void)
{
    enum { N = 20 };
    slow_world w;
    dc_exec *e[N];
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    for (int i = 0; i < N; i++)
        e[i] = slow_start(&w, i);
    CHECK(slow_wait_begun(w.dev, threads()));
    slow_deafen(w.dev, true); /* or it would begin with one that is still wanted */
    for (int i = 0; i < N; i++)
        dc_exec_release(e[i]);
    CHECK(w.rt->execs == NULL);
    CHECK_EQ(slow_count(w.dev, &w.dev->begun), threads());
    slow_deafen(w.dev, false);
    slow_close(&w); /* tells the running ones, and waits for them */
}

static void *open_gate(void *arg)
{
    slow_shut(arg, false);
    return NULL;
}

/* A compiler that cannot be stopped is waited for. */
static void test_close_with_deaf_compiler(void)
{
    slow_world w;
    pthread_t opener;
    slow_open(&w, NULL);
    w.dev->deaf = true;
    slow_shut(w.dev, true);
    dc_exec *e = slow_start(&w, 1);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_exec_release(e);
    CHECK(w.rt->execs == NULL);
    if (CHECK(pthread_create(&opener, NULL, open_gate, w.dev) == 0)) {
        pthread_join(opener, NULL);
        slow_close(&w);
    }
}

static void test_collected_while_compiling(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    dc_exec *e = slow_start(&w, 1);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_exec_release(e); /* does not wait: nothing has opened the gate */
    CHECK(w.rt->execs == NULL);
    dc_exec *next = slow_start(&w, 2);
    slow_shut(w.dev, false);
    slow_call(&w, next, 2, 10); /* and the remains of the first go when they can */
    dc_exec_release(next);
    slow_close(&w);
}

/* Neither one that has begun nor one that is queued holds up what is called; a call of theirs compiles them. */
static void test_postponed(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    dc_exec *begun = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_exec *queued = one_thread ? slow_start(&w, 3) : NULL;
    dc_exec_postpone(w.rt, begun);
    if (queued != NULL) {
        dc_exec_postpone(w.rt, queued);
        CHECK(!dc_exec_compiling(w.rt, queued));
    }
    slow_shut(w.dev, false);
    dc_exec *wanted = slow_start(&w, 4);
    slow_call(&w, wanted, 4, 12);
    if (queued != NULL) {
        CHECK_EQ(w.dev->begun, 2); /* not it */
        dc_exec_resume(w.rt, queued);
        CHECK(dc_exec_compiling(w.rt, queued));
        slow_call(&w, queued, 3, 11);
        dc_exec_release(queued);
    }
    slow_call(&w, begun, 2, 10);
    CHECK_EQ(w.rt->stats.fallbacks + w.rt->stats.interpreted, 0);
    dc_exec_postpone(w.rt, begun); /* it is there: no matter */
    slow_call(&w, begun, 2, 10);
    dc_exec_release(begun);
    dc_exec_release(wanted);
    slow_close(&w);
}

/* One that ended because it was told to, behind one that goes on, is no compiled function: it begins again. */
static void test_resumed_behind_another(void)
{
    slow_world w;
    if (one_thread)
        return;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    dc_exec *first = slow_start(&w, 5), *begun = slow_start(&w, 2);
    CHECK(slow_wait_begun(w.dev, 2));
    dc_exec_postpone(w.rt, begun);
    for (int i = 0; i < 10000 && slow_count(w.dev, &w.dev->begun) < 3; i++) {
        dc_exec_resume(w.rt, begun);
        CHECK(dc_exec_compiling(w.rt, begun)); /* either to its end, or again */
        usleep(1000);
    }
    CHECK_EQ(slow_count(w.dev, &w.dev->begun), 3);
    slow_shut(w.dev, false);
    slow_call(&w, begun, 2, 10);
    slow_call(&w, first, 5, 13);
    CHECK_EQ(slow_count(w.dev, &w.dev->here), 0);
    dc_exec_release(begun);
    dc_exec_release(first);
    slow_close(&w);
}

/* What the threads had not finished is compiled by the call that needs it; no call fails. */
static void test_stopped(void)
{
    slow_world w;
    slow_open(&w, NULL);
    slow_shut(w.dev, true);
    dc_exec *begun = slow_start(&w, 2), *queued = slow_start(&w, 3), *more = slow_start(&w, 4);
    CHECK(slow_wait_begun(w.dev, 1));
    dc_jit_stop(w.rt);
    slow_shut(w.dev, false);
    slow_call(&w, begun, 2, 10);
    slow_call(&w, queued, 3, 11);
    slow_call(&w, begun, 2, 10);
    CHECK_EQ(w.rt->stats.fallbacks + w.rt->stats.interpreted, 0);
    dc_exec *later = slow_start(&w, 6); /* and there are no threads any more */
    slow_call(&w, later, 6, 14);
    CHECK_EQ(w.dev->here, 3);
    dc_exec_release(begun);
    dc_exec_release(queued);
    dc_exec_release(more);
    dc_exec_release(later);
    slow_close(&w);
}

/* With a listener for what compilers say, closing runs what is queued. */
static void test_listener_hears_all(void)
{
    static const char *const all[] = {"E_21\n", "E_22\n", "E_23\n", "E_24\n"};
    slow_world w;
    slow_open(&w, NULL);
    dc_log_select(&w.rt->log, "src");
    w.dev->deaf = true;
    slow_shut(w.dev, true);
    for (int i = 0; i < 4; i++)
        dc_exec_release(slow_start_sized(&w, i, 21 + (uint32_t)i));
    CHECK(w.rt->execs == NULL);
    slow_shut(w.dev, false);
    CHECK_EQ(w.rt->stats.bytes_live, 0);
    dc_rt_free(w.rt);
    CHECK(heard(&w, all, 4));
    CHECK(!w.said_abroad);
    dc_text_free(&w.said);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void test_contexts_in_turn(void)
{
    for (int i = 0; i < 20; i++) {
        slow_world w;
        slow_open(&w, NULL);
        dc_exec *e = slow_start(&w, i), *unused = slow_start(&w, 50 + i);
        if (i % 2 == 0)
            slow_call(&w, e, i, (uint32_t)i + 8);
        dc_exec_release(e);
        dc_exec_release(unused);
        slow_close(&w);
    }
}

/* The interpreter has nothing to compile. */
static void test_eval(void)
{
    slow_world w;
    slow_open(&w, NULL);
    dc_rt_set_device(w.rt, dc_host_device_new(), true);
    dc_exec *e = slow_start(&w, 2);
    slow_call(&w, e, 2, 10);
    CHECK_EQ(w.rt->stats.compiles, 1);
    CHECK_EQ(w.rt->stats.kernels, 0);
    dc_exec_release(e);
    CHECK_EQ(w.rt->stats.bytes_live, 0);
    dc_rt_free(w.rt);
    dc_text_free(&w.said);
}

int main(void)
{
    one_thread = sysconf(_SC_NPROCESSORS_ONLN) == 1;
    test_definition_returns();
    test_now();
    test_taking_over();
    test_many();
    test_read_while_compiled();
    test_failure_at_the_call();
    test_compiler_fails();
    test_no_memory();
    test_log();
    test_log_in_order();
    test_close_with_queue();
    test_close_with_deaf_compiler();
    test_collected_while_compiling();
    test_postponed();
    test_resumed_behind_another();
    test_stopped();
    test_listener_hears_all();
    test_contexts_in_turn();
    test_eval();
    return t_done();
}
