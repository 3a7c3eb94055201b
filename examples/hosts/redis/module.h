/*
 * What the files of this module share: commands (commands.c) put jobs on a list, a thread (worker.c), the only one that uses
 * deepc, does them and unblocks the clients; values.c reads and writes what goes in and out.
 */
#ifndef DEEPC_REDIS_MODULE_H
#define DEEPC_REDIS_MODULE_H

#include <deepc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "redis_api.h"

enum { MOST_ARRAYS = 16, MOST_WORDS = MOST_ARRAYS + 3 /* BYTES VARIANT n */, TEXT = 400 };

/* The value of a key: held by the key and by each job with it; the last one to leave it has it unloaded. */
typedef struct model {
    _Atomic int holders;
    char *path;
    char error[TEXT]; /* why it is not loaded; of the worker */
    dc_function *fn;  /* the worker's */
    _Atomic size_t bytes;
    _Atomic uint64_t calls, failures;
} model;

typedef struct blob {
    char *at;
    size_t n;
} blob;

typedef enum job_kind { JOB_LOAD, JOB_RUN, JOB_INFO, JOB_UNLOAD } job_kind;

typedef struct job {
    struct job *next;
    job_kind kind;
    RedisModuleBlockedClient *client; /* NULL: nobody waits */
    model *m;
    size_t n;
    size_t held;      /* of worker_hold */
    int64_t arrived;  /* in the list, milliseconds */
    char error[TEXT]; /* "" where all went well */
    size_t nout;
    blob out[MOST_ARRAYS]; /* results of JOB_RUN, lines of JOB_INFO */
    blob in[];             /* n words of the client */
} job;

/* ---- worker.c ---- */

typedef struct worker_settings {
    size_t memory, inputs; /* bytes of deepc; of inputs that wait */
    int64_t timeout_ms, queue;
    int threads;
    void *(*alloc)(void *, void *, size_t, size_t);
} worker_settings;

bool worker_start(const worker_settings *s, char *error);
void worker_stop(void);  /* ends what runs and closes deepc */
bool worker_add(job *j); /* false: too many jobs wait, or the worker has stopped */
void worker_free(job *j);
/* Counts bytes as the job's inputs until it is freed; false: all that wait have too many. */
bool worker_hold(job *j, size_t bytes);
job *job_new(job_kind kind, model *m, size_t n);

model *model_new(const char *path, size_t n);
void model_leave(model *m);

/* ---- values.c ---- */

/* Does a JOB_RUN; not DC_OK: j->error says why not. */
dc_status values_run(dc_rt *ctx, job *j);
void values_info(job *j);

/* A sentence for a Redis error: its first line, with "ERR " in front. */
void say(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
