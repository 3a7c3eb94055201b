/* pthread_create with signals as core/base/thread.h says: a new thread inherits the mask of the one that starts it. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "core/base/thread.h"

#include "core/base/heap.h"

#include <signal.h>
#include <string.h>

static void block_sent_signals(sigset_t *before)
{
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t sent;
    sigfillset(&sent);
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        sigdelset(&sent, raised[i]);
    pthread_sigmask(SIG_SETMASK, &sent, before);
}

typedef struct beginning {
    void *(*body)(void *);
    void *arg;
    char name[16];
} beginning;

/* A thread that names itself has its name before it does anything. */
static void *begin(void *arg)
{
    beginning b = *(beginning *)arg;
    dc_xfree(arg);
    pthread_setname_np(pthread_self(), b.name);
    return b.body(b.arg);
}

bool dc_thread_start(pthread_t *t, const char *name, size_t stack_bytes, void *(*body)(void *),
                     void *arg)
{
    pthread_attr_t attr;
    sigset_t before;
    beginning *b = dc_try_alloc(sizeof *b);
    if (b == NULL || pthread_attr_init(&attr) != 0) {
        dc_xfree(b);
        return false;
    }
    b->body = body;
    b->arg = arg;
    strncpy(b->name, name, sizeof b->name - 1);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    block_sent_signals(&before);
    const bool started = pthread_create(t, &attr, begin, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!started)
        dc_xfree(b);
    return started;
}
