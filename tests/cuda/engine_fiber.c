/*
 * The threads of a block as fibers of one thread of the host. A fiber runs until it waits. One that
 * ends gives its stack to the next that has not begun, so a kernel without barriers costs a call for
 * each thread. Who runs next is the first in order, or any by the launch's random numbers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "engine_impl.h"

enum { STACK = 128 << 10 };
#define CANARY UINT64_C(0x5eed5eed5eed5eed)

engine_state eng;

/* Switching --------------------------------------------------------------------------------- */

/* Saves the callee's registers on the stack at hand and its pointer in *save, goes on at `to`. */
void engine_switch(void **save, void *to);
__asm__(".text\n.globl engine_switch\n.hidden engine_switch\n.type engine_switch, @function\n"
        "engine_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n");

unsigned engine_coin(unsigned n)
{
    eng.random ^= eng.random << 13;
    eng.random ^= eng.random >> 7;
    eng.random ^= eng.random << 17;
    return (unsigned)((eng.random >> 20) % n);
}

static void __attribute__((noreturn)) leave(void) /* the block is over, one way or the other */
{
    void *nowhere;
    engine_switch(&nowhere, eng.host);
    __builtin_unreachable();
}

void engine_fail(const void *pc, const char *format, ...)
{
    va_list a;
    const int n = snprintf(eng.why, sizeof eng.why, "block %u, thread %u: ", eng.block.x,
                           eng.rt.now != NULL ? eng.rt.now->number : 0);
    va_start(a, format);
    vsnprintf(eng.why + n, sizeof eng.why - (size_t)n, format, a);
    va_end(a);
    eng.failed = true;
    eng.where = pc;
    leave();
}

/* Where a fiber goes on after a signal: on its own stack, below what the fault left there. */
static char fault_text[400];
static void __attribute__((noreturn)) after_fault(void)
{
    engine_fail(eng.fault_pc, "%s", fault_text);
}

void engine_fault(void *ucontext, const char *what)
{
    ucontext_t *u = ucontext;
    greg_t *reg = u->uc_mcontext.gregs;
    snprintf(fault_text, sizeof fault_text, "%s", what);
    eng.fault_pc = (const char *)reg[REG_RIP] + 1; /* as behind a call */
    reg[REG_RSP] = ((reg[REG_RSP] - 512) & ~(greg_t)15) - 8;
    reg[REG_RIP] = (greg_t)(uintptr_t)after_fault;
}

static void carrier(void);

static void *new_stack(fiber *f)
{
    f->stack = eng.spare[--eng.nspare]; /* there is one for each thread */
    char *bottom = eng.stacks + (size_t)f->stack * STACK;
    /* tops are staggered, so that stacks do not share the sets of a cache */
    uint64_t *top = (uint64_t *)(void *)(bottom + STACK - (size_t)(f->stack % 61) * 320);
    *(uint64_t *)(void *)bottom = CANARY;
    *--top = 0;
    *--top = (uint64_t)(uintptr_t)carrier; /* `ret` goes here with the stack as after a call */
    for (int i = 0; i < 6; i++)
        *--top = 0;
    return top;
}

static void wake(fiber *f)
{
    if (eng.nrun == 2 * ENGINE_MOST_THREADS) {
        memmove(eng.run, eng.run + eng.front, (eng.nrun - eng.front) * sizeof *eng.run);
        eng.nrun -= eng.front;
        eng.front = 0;
    }
    f->state = READY;
    eng.run[eng.nrun++] = (uint16_t)f->view.number;
}

/* Barriers ---------------------------------------------------------------------------------- */

static const char *where_of(const fiber *f)
{
    return f->state == ENDED     ? "ended behind"
           : f->state == AT_WARP ? "waits for lanes at"
                                 : "waits at the barrier of";
}

/* The threads of the block wait for different things. */
static void __attribute__((noreturn)) stuck(void)
{
    char text[400];
    int n = 0;
    for (unsigned i = 0; i < eng.n && n < 300; i++) {
        const fiber *f = &eng.f[i], *before = i > 0 ? &eng.f[i - 1] : NULL;
        if (before != NULL && before->state == f->state && before->line == f->line)
            continue;
        n += snprintf(text + n, sizeof text - (size_t)n, "%sfrom thread %u on %s line %d",
                      n > 0 ? "; " : "", i, where_of(f), f->line);
    }
    engine_fail(NULL, "the threads of the block part: %s", text);
}

static void all_came(void)
{
    for (unsigned i = 0; i < eng.n; i++)
        if (eng.f[i].state != AT_BARRIER || eng.f[i].line != eng.f[0].line)
            stuck();
    eng.epoch++;
    eng.waiting = 0;
    for (unsigned i = 0; i < eng.n; i++) {
        eng.f[i].fences_at_barrier = eng.f[i].fences;
        wake(&eng.f[i]);
    }
}

static fiber *pick(void)
{
    if (eng.front == eng.nrun) {
        eng.front = eng.nrun = 0;
        if (eng.live == 0) {
            engine_wgmma_end_block();
            leave();
        }
        if (eng.waiting < eng.n) /* some have ended, or wait for lanes that do not come */
            stuck();
        all_came();
    }
    if (eng.random != 0) {
        const unsigned i = eng.front + engine_coin(eng.nrun - eng.front);
        const uint16_t x = eng.run[i];
        eng.run[i] = eng.run[eng.front];
        eng.run[eng.front] = x;
    }
    return &eng.f[eng.run[eng.front++]];
}

static void go(fiber *f, void **save)
{
    void *to = f->state == NEW ? new_stack(f) : f->sp;
    eng.rt.now = &f->view;
    f->state = RUNS;
    engine_switch(save, to);
}

static void wait_here(void)
{
    fiber *me = engine_me(), *next = pick();
    if (next == me)
        me->state = RUNS;
    else
        go(next, &me->sp);
}

/* Runs threads from begin to end on one stack; leaves when others have to go on. */
static void carrier(void)
{
    fiber *me = engine_me();
    for (;;) {
        const int stack = me->stack;
        eng.l->entry(eng.l->argument);
        if (*(uint64_t *)(void *)(eng.stacks + (size_t)stack * STACK) != CANARY)
            engine_fail(NULL, "the stack of %d bytes was not enough", STACK);
        if (me->ncopy > 0)
            engine_fail(NULL, "ends with asynchronous copies under way");
        engine_wgmma_end_thread();
        me->state = ENDED;
        eng.live--;
        fiber *next = pick();
        if (next->state != NEW) {
            void *nowhere;
            eng.spare[eng.nspare++] = stack;
            go(next, &nowhere);
        }
        next->state = RUNS;
        next->stack = stack;
        eng.rt.now = &next->view;
        me = next;
    }
}

void engine_barrier(int line)
{
    fiber *me = engine_me();
    me->state = AT_BARRIER;
    me->line = line;
    eng.waiting++;
    wait_here();
}

/* Waits for the lanes of the mask. */
void engine_meet(unsigned mask, int line)
{
    fiber *me = engine_me();
    const unsigned first = me->view.number & ~31u, lane = me->view.number & 31;
    if ((mask >> lane & 1) == 0)
        engine_fail(NULL, "line %d: this lane is not in the mask %08x", line, mask);
    me->state = AT_WARP;
    me->line = line;
    me->mask = mask;
    for (unsigned i = 0; i < 32 && first + i < eng.n; i++) {
        const fiber *f = &eng.f[first + i];
        if ((mask >> i & 1) == 0)
            continue;
        if (f->state == ENDED)
            engine_fail(NULL, "line %d: lane %u of the mask %08x has ended", line, i, mask);
        if (f->state != AT_WARP) {
            wait_here();
            return;
        }
        if (f->mask != mask || f->line != line)
            engine_fail(NULL, "the lanes of a warp part: line %d, mask %08x; line %d, mask %08x",
                        line, mask, f->line, f->mask);
    }
    eng.warp_epoch[first / 32] = ++eng.meetings;
    me->state = RUNS;
    for (unsigned i = 0; i < 32 && first + i < eng.n; i++)
        if ((mask >> i & 1) != 0 && i != lane)
            wake(&eng.f[first + i]);
    if (eng.random != 0 &&
        engine_coin(2) == 0) { /* the last to come is not always the first to go */
        wake(me);
        wait_here();
    }
}

/* Blocks ------------------------------------------------------------------------------------ */

void engine_run_block(void)
{
    const engine_launch *l = eng.l;
    if (eng.stacks == NULL)
        eng.stacks = mmap(NULL, (size_t)ENGINE_MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    eng.live = eng.n;
    eng.waiting = eng.front = eng.nrun = 0;
    eng.nspare = 0;
    for (int i = ENGINE_MOST_THREADS; i-- > 0;)
        eng.spare[eng.nspare++] = i;
    for (unsigned i = 0; i < eng.n; i++) {
        fiber *f = &eng.f[i];
        f->view.number = i;
        f->view.thread = (kernel_dim3){i % l->threads.x, i / l->threads.x % l->threads.y,
                                       i / l->threads.x / l->threads.y};
        f->state = NEW;
        f->line = 0;
        f->turn = 0;
        f->group = f->ncopy = 0;
        engine_wgmma_open_thread(f);
        eng.run[eng.nrun++] = (uint16_t)i;
    }
    go(pick(), &eng.host); /* comes back by leave */
}
