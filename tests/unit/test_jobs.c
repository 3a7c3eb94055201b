/*
 * Compile jobs in no order: functions that share kernels are started, waited for, called, dropped,
 * compilers fail, memory runs out, gates shut, kernels are trimmed, contexts closed in the middle,
 * while a timer interrupts whatever waits. Results are right, failures are those that were asked for,
 * counters agree, and nothing is left.
 *
 *   test_jobs [seed [contexts]]
 */
#define _XOPEN_SOURCE 700 /* setitimer */
#include <signal.h>
#include <sys/time.h>

#include "tests/unit/rng.h"
#include "tests/unit/slow.h"
#include "tests/unit/trim.h"

enum { MANY = 24, KERNELS = 5, STEPS = 120 };

typedef struct play {
    slow_world w;
    rng dice;
    dc_exec *e[MANY];
    int n[MANY]; /* which function */
    bool shut;
} play;

static void open_gate(play *p)
{
    slow_shut(p->w.dev, false);
    p->shut = false;
}

static void drop(play *p, int i)
{
    dc_exec_release(p->e[i]);
    p->e[i] = NULL;
}

static void start(play *p, int i)
{
    drop(p, i);
    p->n[i] = rng_below(&p->dice, KERNELS);
    p->e[i] = slow_start(&p->w, p->n[i]);
}

/* Lack of memory is heard of once for each time that it ran out. */
static void wait_for(play *p, int i)
{
    open_gate(p); /* a compile thread may be waiting behind it */
    for (int n = 0; n < 5; n++) {
        const dc_status status = slow_wait(&p->w, p->e[i]);
        if (status == DC_OK)
            return;
        CHECK_EQ(status, DC_E_NOMEM);
        CHECK_EQ(p->w.j->err.id, DC_ERR_NOMEM);
    }
    CHECK(false);
}

static void call(play *p, int i)
{
    wait_for(p, i);
    slow_call(&p->w, p->e[i], p->n[i], 8 + (uint32_t)p->n[i]);
}

static void act(play *p)
{
    const int i = rng_below(&p->dice, MANY);
    switch (rng_below(&p->dice, 10)) {
    case 0:
        slow_fail(p->w.dev, SLOW_BUILD, 1);
        break;
    case 1:
        slow_fail(p->w.dev, SLOW_NOMEM, 1);
        break;
    case 2:
        trim_kernels(p->w.rt);
        break;
    case 3:
        p->shut = !p->shut;
        slow_shut(p->w.dev, p->shut);
        break;
    case 4:
        drop(p, i);
        break;
    case 5:
    case 6:
        if (p->e[i] != NULL)
            call(p, i);
        break;
    default:
        start(p, i);
    }
}

/* Nothing runs any more: what was compiled is what is there and what was freed. */
static void check_counters(play *p)
{
    const dc_stats *s = &p->w.rt->stats;
    open_gate(p);
    dc_jit_stop(p->w.rt);
    dc_jit_settle(p->w.rt);
    for (int i = 0; i < MANY; i++)
        drop(p, i);
    trim_kernels(p->w.rt);
    CHECK_EQ(s->kernels, p->w.dev->freed);
    CHECK(s->kernels + s->kernels_shared + s->fallbacks <= s->compiles);
}

static void test_context(uint64_t seed, bool closes)
{
    play p = {.dice = {seed}};
    const long failed = t_failed;
    slow_open(&p.w, NULL);
    for (int n = 0; n < STEPS; n++)
        act(&p);
    if (!closes)
        check_counters(&p);
    for (int i = 0; i < MANY; i++)
        drop(&p, i);
    slow_close(&p.w);
    if (t_failed > failed)
        printf("with seed %llu\n", (unsigned long long)seed);
}

static void nothing(int signal)
{
    DC_UNUSED(signal);
}

/* Calls that a signal interrupts are not begun again by themselves. */
static void interrupt(long microseconds)
{
    const struct sigaction action = {.sa_handler = nothing};
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 1);
    const uint64_t contexts = argc > 2 ? strtoull(argv[2], NULL, 0) : 10;
    interrupt(2000);
    for (uint64_t n = 0; n < contexts; n++)
        test_context(seed + n, n % 3 == 2);
    interrupt(0);
    return t_done();
}
