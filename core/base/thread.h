/*
 * Starting a thread of the library. Signals that are sent to the process are for the threads of the host: they are blocked in
 * ours. Those that an instruction raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) are not: the kernel ends the process
 * at once where such a signal is blocked, and the host's handler, which may mend the fault or write a report, is never asked.
 */
#ifndef DC_CORE_BASE_THREAD_H
#define DC_CORE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stack for compilers, which recurse deeply. */
enum { DC_THREAD_DEEP_STACK = 8 << 20 };

/*
 * name: what top, debuggers and traces call it, 15 bytes at most. stack_bytes 0: the system's usual size. False where there is no
 * thread to be had; *t is then unset.
 */
bool dc_thread_start(pthread_t *t, const char *name, size_t stack_bytes, void *(*body)(void *),
                     void *arg);

/*
 * A condition that is waited for with a limit. Its clock is that of dc_clock_ns: by the usual one a wait of a millisecond
 * lasts an hour where the system's time is set back by one.
 */
void dc_thread_condition(pthread_cond_t *c);
/* Entered and left with the lock. False at the time `until`, of dc_clock_ns; UINT64_MAX: never. */
bool dc_thread_await(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until);

#endif
