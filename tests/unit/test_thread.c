/*
 * Threads of the library and signals: what is sent to the process does not come to them; a fault of one of their own
 * instructions comes to the handler that the host installed.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "core/base/thread.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/t.h"

enum { PAGE = 4096 };

static char *page; /* closed until the handler opens it */
static volatile sig_atomic_t faults;
static pthread_t faulted;

static void on_fault(int sig, siginfo_t *info, void *machine)
{
    (void)sig, (void)machine;
    if ((uintptr_t)info->si_addr - (uintptr_t)page >= PAGE)
        _exit(1); /* another fault: the test has no closing line */
    faults++;
    faulted = pthread_self();
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void *touch(void *arg)
{
    volatile char *p = arg;
    p[7] = 42;
    return NULL;
}

static void test_fault(void)
{
    struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    pthread_t t;
    page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(sigaction(SIGSEGV, &mine, &before), 0);
    if (CHECK(dc_thread_start(&t, "test", 0, touch, page))) {
        pthread_join(t, NULL);
        CHECK_EQ(faults, 1);
        CHECK(pthread_equal(faulted, t));
        CHECK_EQ(page[7], 42);
    }
    sigaction(SIGSEGV, &before, NULL);
    munmap(page, PAGE);
}

static void *read_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

static void test_mask(void)
{
    static const int sent[] = {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE, SIGPROF};
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t before, in_thread, after;
    pthread_t t;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    if (!CHECK(dc_thread_start(&t, "test", DC_THREAD_DEEP_STACK, read_mask, &in_thread)))
        return;
    pthread_join(t, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        CHECK(sigismember(&in_thread, sent[i]));
        CHECK_EQ(sigismember(&after, sent[i]), sigismember(&before, sent[i]));
    }
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++)
        CHECK(!sigismember(&in_thread, raised[i]));
}

int main(void)
{
    test_fault();
    test_mask();
    return t_done();
}
