/* pthread_create with signals as core/base/thread.h says: a new thread inherits the mask of the one that starts it. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "core/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static void block_sent_signals(sigset_t *before)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t sent;
    sigfillset(&sent);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        sigdelset(&sent, raised[i]);
    pthread_sigmask(SIG_SETMASK, &sent, before);
}

/*
 * A thread begins with the name of the one that starts it, so that one takes the name for a moment: nothing has to be allocated, and
 * the thread has its name before it does anything.
 */
bool dc_thread_start(pthread_t *t, const char *name, size_t stack_bytes, void *(*body)(void *),
                     void *arg)
{
    pthread_attr_t attr;
    sigset_t before;
    char own[16] = "";
    if (pthread_attr_init(&attr) != 0)
        return false;
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    block_sent_signals(&before);
    const bool named = pthread_getname_np(pthread_self(), own, sizeof own) == 0 &&
                       pthread_setname_np(pthread_self(), name) == 0;
    const bool started = pthread_create(t, &attr, body, arg) == 0;
    if (named)
        pthread_setname_np(pthread_self(), own);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

void dc_thread_condition(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

bool dc_thread_await(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until)
{
    enum { SECOND_NS = 1000000000 };
    const struct timespec at = {.tv_sec = (time_t)(until / SECOND_NS),
                                .tv_nsec = (long)(until % SECOND_NS)};
    if (until == UINT64_MAX)
        return pthread_cond_wait(c, lock) == 0;
    return pthread_cond_timedwait(c, lock, &at) != ETIMEDOUT;
}
