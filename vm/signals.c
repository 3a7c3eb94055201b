/*
 * SIGINT of the program (vm/signals.h).
 *
 * A handler finds what it is about in variables of the file: a process has one handler.
 */
#define _POSIX_C_SOURCE 200809L
#include "vm/signals.h"

#include "core/runtime/entry.h"
#include "dsl/dsl.h"

#include <signal.h>

static dc_rt *_Atomic target;
static atomic_int presses;
static volatile sig_atomic_t at_prompt;
static struct sigaction before;

static void on_interrupt(int sig)
{
    dc_rt *rt = atomic_load(&target);
    const int n = atomic_fetch_add(&presses, 1);
    if (rt == NULL)
        return;
    dc_entry_ask(rt, n > 0 ? DC_WHY_USER : 0);
    if (!at_prompt)
        signal(sig, SIG_DFL);
}

void dc_signals_catch(dc_rt *rt, bool prompt)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    at_prompt = prompt;
    atomic_store(&presses, 0);
    sigemptyset(&action.sa_mask);
    action.sa_flags = prompt ? 0 : SA_RESTART;
    if (atomic_exchange(&target, rt) == NULL)
        sigaction(SIGINT, &action, &before);
    else
        sigaction(SIGINT, &action, NULL);
}

void dc_signals_leave(void)
{
    if (atomic_exchange(&target, (dc_rt *)NULL) != NULL)
        sigaction(SIGINT, &before, NULL);
}

int dc_signals_pending(void)
{
    return atomic_load(&presses);
}

void dc_signals_forget(lua_State *L)
{
    atomic_store(&presses, 0);
    dc_dsl_resume(L);
}
