/*
 * Work on other threads: tasks of a context, each a body with a job of its own. A task is queued
 * and run by one of the context's compile threads, or by the thread that needs its result before that.
 *
 *   idle -> queued -> running -> done        idle -> running -> done
 *
 * All functions are for the context's thread. Only the body runs elsewhere; it may touch what its
 * argument gives it and its job, whose log lines are kept until the task is settled.
 */
#ifndef DC_CORE_RUNTIME_WORK_H
#define DC_CORE_RUNTIME_WORK_H

#include "core/base/job.h"

typedef enum dc_task_state {
    DC_TASK_IDLE,
    DC_TASK_QUEUED,
    DC_TASK_RUNNING,
    DC_TASK_DONE
} dc_task_state;

typedef struct dc_task {
    /* Filled in before dc_work_add. */
    dc_status (*body)(dc_job *j, void *arg);
    /* On the context's thread: the task is done. May free it. Its log lines are delivered next. */
    void (*settle)(void *arg);
    void *arg;
    const dc_opts *opt; /* of the job */

    /* When done. */
    dc_job job; /* err is the failure */
    dc_status status;
    uint64_t ns; /* that the body took */

    /* Of work.c. */
    dc_task_state state;
    dc_log log;
    dc_log_buffer said;
    atomic_bool cancel;
    bool listed;
    struct dc_task *next; /* in the order they were added, until settled */
} dc_task;

typedef struct dc_work dc_work;

/* Threads, of that name, are started when tasks are queued: as many as there are cores, at most so many. */
dc_work *dc_work_new(dc_log *log, const char *name, int threads);

/* Queued tasks go back to idle, running ones are told to stop and waited for; all are settled. */
void dc_work_free(dc_work *w);

/* The task gets its place in the order of log lines. One that is done may be added once more. */
void dc_work_add(dc_work *w, dc_task *t);

/* Lets a thread run it. Where no thread can be had, it waits for dc_work_finish. */
void dc_work_queue(dc_work *w, dc_task *t);

/*
 * Waits while a thread runs the task; false as soon as *stop is true. stop may be NULL. patient: also until one does,
 * where there are threads, since what runs here cannot be ended.
 */
bool dc_work_await(dc_work *w, dc_task *t, bool patient, const atomic_bool *stop);

/* Is it done, or will it be within so many nanoseconds? Waits for that; does not run it. */
bool dc_work_soon(dc_work *w, const dc_task *t, uint64_t ns);

/* Is a thread at it, or will one be? */
bool dc_work_under_way(dc_work *w, const dc_task *t);

/* Runs the task here if no thread has begun it, else waits for its end; settles it. */
void dc_work_finish(dc_work *w, dc_task *t);

/*
 * Cancels a task. true: it will not run, and the caller owns it. false: it has been settled, or
 * it is running, has been told to stop and will be settled.
 */
bool dc_work_drop(dc_work *w, dc_task *t);

/* Settles tasks that are done, in order, up to the first that is not. Cheap when there are none. */
void dc_work_settle(dc_work *w);

/*
 * Ends the threads: queued tasks go back to idle, running ones are told to stop and waited for. What
 * is needed later runs where it is needed.
 */
void dc_work_stop(dc_work *w);

/* Runs all that is queued to the end, here and on the threads, and settles it. */
void dc_work_drain(dc_work *w);

#endif
