/*
 * SIGINT of the program (vm/program/signals.h).
 *
 * A handler finds what it is about in variables of the file: a process has one handler.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/program/signals.h"

#include "core/runtime/entry.h"
#include "dsl/dsl.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

/* Of each thread that runs scripts; the process has one handler, which asks all of them. */
typedef struct target {
    dc_rt *_Atomic rt;
    atomic_int presses;
} target;

static target all[DC_SIGNALS_MOST];
static _Thread_local int mine; /* which of them this thread is */
static atomic_int
    handlers; /* that run: a context that they may have found is not closed meanwhile */
static volatile sig_atomic_t at_prompt;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int caught;                                       /* targets that have a context */
static struct sigaction before;

static void on_interrupt(int sig)
{
    bool heard = false;
    atomic_fetch_add(&handlers, 1);
    for (int i = 0; i < DC_SIGNALS_MOST; i++) {
        dc_rt *rt = atomic_load(&all[i].rt);
        const int n = atomic_fetch_add(&all[i].presses, 1);
        if (rt != NULL)
            dc_entry_ask(rt, n > 0 ? DC_WHY_USER : 0);
        heard = heard || rt != NULL;
    }
    atomic_fetch_sub(&handlers, 1);
    if (heard && !at_prompt)
        signal(sig, SIG_DFL);
}

void dc_signals_use(int number)
{
    mine = number;
}

void dc_signals_catch(dc_rt *rt, bool prompt)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    pthread_mutex_lock(&lock);
    at_prompt = prompt;
    atomic_store(&all[mine].presses, 0);
    sigemptyset(&action.sa_mask);
    action.sa_flags = prompt ? 0 : SA_RESTART;
    const bool first = atomic_exchange(&all[mine].rt, rt) == NULL && caught++ == 0;
    sigaction(SIGINT, &action, first ? &before : NULL);
    pthread_mutex_unlock(&lock);
}

void dc_signals_leave(void)
{
    pthread_mutex_lock(&lock);
    if (atomic_exchange(&all[mine].rt, (dc_rt *)NULL) != NULL && --caught == 0)
        sigaction(SIGINT, &before, NULL);
    pthread_mutex_unlock(&lock);
    while (atomic_load(&handlers) > 0)
        sched_yield();
}

int dc_signals_pending(void)
{
    return atomic_load(&all[mine].presses);
}

void dc_signals_forget(lua_State *L)
{
    atomic_store(&all[mine].presses, 0);
    dc_dsl_resume(L);
}
