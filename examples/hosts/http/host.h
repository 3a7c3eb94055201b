/*
 * What the files of this server share: a model (model.c) is called by the thread of a queue (queue.c) with requests that the
 * HTTP side (http_host.c) has made of JSON (tensors.c); all of them count (metrics.c).
 */
#ifndef HTTP_HOST_H
#define HTTP_HOST_H

#include <deepc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_ARRAYS = 16, MOST_BATCH = 256, TEXT = 400 };

/* ---- model.c: an exported function ---- */

typedef struct array_kind {
    const char *name; /* NULL for a result */
    dc_array type;    /* of variant 0 */
    size_t row;       /* bytes of a row, or of the whole array where there are no rows */
} array_kind;

typedef struct model {
    dc_rt *ctx;
    dc_function *fn;
    size_t variants, nin, nout;
    array_kind in[MOST_ARRAYS], out[MOST_ARRAYS];
    /*
     * Does the first axis of all arguments and results count rows, and nothing else differ between variants? Then requests
     * share a call, filled up with rows of zeros. Where not, a request has the sizes of a variant and a call of its own.
     */
    bool rows;
    int64_t most;          /* rows of the largest variant; 1 */
    void *at[MOST_ARRAYS]; /* arguments of a batch, room for `most` rows each */
    _Atomic bool torn;     /* a state was left half written: all calls are refused */
} model;

typedef struct settings {
    const char *file;
    int port, threads;
    int64_t batch, wait_us, queue, connections, body, timeout_ms, memory;
} settings;

bool model_open(model *m, const settings *s, char *error);
void model_close(model *m);

/* ---- a request, from its arrays to its results ---- */

typedef struct request {
    struct request *next;
    int64_t rows;
    size_t variant; /* where the model has no rows */
    void *in[MOST_ARRAYS], *out[MOST_ARRAYS];
    double arrived; /* seconds */
    int code;       /* of HTTP, when it is done */
    char error[TEXT];
    void (*done)(struct request *);
} request;

/* Calls the function with n requests at once; each gets its code, and results or an error. */
void model_run(model *m, request **list, size_t n);
void request_clear(request *r); /* frees its arrays */

/* ---- tensors.c: JSON ---- */

/* Fills in rows or variant, and in. False: error says what is wrong. */
bool tensors_read(const model *m, const char *text, size_t n, request *r, char *error);
/* {"results": [...]}, of malloc; NULL without memory. */
char *tensors_write(const model *m, const request *r, size_t *n);
bool tensors_can(dc_dtype type);

/* ---- metrics.c ---- */

enum { LATENCIES = 12, BATCHES = 9, CODES = 9 };

typedef struct metrics {
    _Atomic uint64_t codes[CODES], latency[LATENCIES + 1], batch[BATCHES + 1];
    _Atomic uint64_t latency_us, batch_rows, bytes_in;
    _Atomic int64_t waiting, open, connections; /* requests in the queue; being answered; */
} metrics;

void metrics_answered(metrics *m, int code, double seconds);
void metrics_batch(metrics *m, int64_t rows);
char *metrics_text(metrics *m, size_t *n);

/* ---- queue.c: the thread that calls ---- */

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    request *first, **last;
    int64_t length, rows;
    bool closing;
    model *m;
    metrics *count;
    const settings *s;
} queue;

bool queue_start(queue *q, model *m, metrics *count, const settings *s);
bool queue_add(queue *q, request *r); /* false: it is full, or closing */
void queue_finish(queue *q);          /* answers what is there, then ends the thread */
void queue_free(queue *q);            /* when no thread adds to it any more */
double now_seconds(void);

#endif
