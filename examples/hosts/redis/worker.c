/* The thread that uses deepc: loads, calls and unloads functions, one job after the other. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "module.h"

enum { LOAD_MS = 60000 };

static struct worker {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    job *first, **last;
    int64_t length;
    _Atomic size_t held;
    _Atomic bool running;
    dc_rt *ctx;
    worker_settings s;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

void say(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = snprintf(error, TEXT, "ERR ");
    vsnprintf(error + n, TEXT - (size_t)n, format, args);
    va_end(args);
    error[strcspn(error, "\r\n")] = 0;
}

/* ---- jobs and models ---- */

job *job_new(job_kind kind, model *m, size_t n)
{
    job *j = calloc(1, sizeof *j + n * sizeof *j->in);
    if (j == NULL)
        return NULL;
    j->kind = kind;
    j->m = m;
    j->n = n;
    m->holders++;
    return j;
}

void worker_free(job *j)
{
    for (size_t i = 0; i < j->n; i++)
        RedisModule_Free(j->in[i].at);
    for (size_t i = 0; i < j->nout; i++)
        RedisModule_Free(j->out[i].at);
    w.held -= j->held;
    model_leave(j->m);
    free(j);
}

bool worker_hold(job *j, size_t bytes)
{
    const size_t before = atomic_fetch_add(&w.held, bytes);
    j->held += bytes;
    return before <= w.s.inputs && bytes <= w.s.inputs - before;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000 * (int64_t)t.tv_sec + t.tv_nsec / 1000000;
}

model *model_new(const char *path, size_t n)
{
    model *m = calloc(1, sizeof *m);
    if (m == NULL || (m->path = strndup(path, n)) == NULL) {
        free(m);
        return NULL;
    }
    m->holders = 1;
    return m;
}

/* On any thread. A function belongs to the worker, which unloads it. */
void model_leave(model *m)
{
    if (--m->holders > 0)
        return;
    if (m->fn != NULL) {
        job *j = job_new(JOB_UNLOAD, m, 0);
        if (j != NULL && worker_add(j))
            return;
        free(j); /* the worker has stopped, and with its context went the function */
    }
    free(m->path);
    free(m);
}

/* ---- the list ---- */

bool worker_add(job *j)
{
    bool added = false;
    pthread_mutex_lock(&w.lock);
    j->arrived = now_ms();
    if (w.running && (w.length < w.s.queue || j->client == NULL)) {
        *w.last = j;
        w.last = &j->next;
        w.length++;
        added = true;
        pthread_cond_signal(&w.more);
    }
    pthread_mutex_unlock(&w.lock);
    return added;
}

static job *next_job(void)
{
    pthread_mutex_lock(&w.lock);
    while (w.running && w.first == NULL)
        pthread_cond_wait(&w.more, &w.lock);
    job *j = w.first;
    if (j != NULL) {
        w.first = j->next;
        if (w.first == NULL)
            w.last = &w.first;
        w.length--;
    }
    pthread_mutex_unlock(&w.lock);
    return j;
}

/* ---- the work ---- */

static size_t count_arguments(const dc_function *fn, size_t variant)
{
    size_t n = 0;
    while (dc_function_argument(fn, variant, n, NULL, NULL))
        n++;
    return n;
}

static size_t count_results(const dc_function *fn, size_t variant)
{
    size_t n = 0;
    while (dc_function_result(fn, variant, n, NULL))
        n++;
    return n;
}

/* Inputs are told from options by their number (values.c): all variants have as many of them, and of results. */
static bool check_counts(const dc_function *fn, char *error)
{
    const size_t nin = count_arguments(fn, 0), nout = count_results(fn, 0);
    if (nin > MOST_ARRAYS || nout > MOST_ARRAYS)
        return say(error, "the function has more than %d arguments or results", MOST_ARRAYS), false;
    for (size_t v = 1; v < dc_function_variants(fn); v++)
        if (count_arguments(fn, v) != nin || count_results(fn, v) != nout)
            return say(error, "variants 0 and %zu of %.200s differ in more than sizes", v,
                       dc_function_signature(fn)),
                   false;
    return true;
}

static void load(model *m)
{
    const char *name;
    dc_array a;
    size_t bytes = 0;
    dc_deadline(w.ctx, LOAD_MS);
    if (dc_load(w.ctx, m->path, &m->fn) != DC_OK) {
        say(m->error, "%s", dc_errmsg(w.ctx));
        return;
    }
    if (!check_counts(m->fn, m->error)) {
        dc_unload(m->fn);
        m->fn = NULL;
        return;
    }
    for (size_t i = 0; dc_function_cell(m->fn, i, &name, &a); i++)
        bytes += a.bytes;
    m->bytes = bytes;
}

static void work(job *j)
{
    model *m = j->m;
    if (j->kind == JOB_UNLOAD) {
        dc_unload(m->fn);
        m->fn = NULL;
        return;
    }
    if (j->kind == JOB_RUN && w.s.timeout_ms > 0 && now_ms() - j->arrived >= w.s.timeout_ms) {
        say(j->error, "waited longer than %lld ms", (long long)w.s.timeout_ms);
        return;
    }
    if (m->fn == NULL && *m->error == 0)
        load(m);
    dc_deadline(w.ctx, w.s.timeout_ms);
    if (m->fn == NULL) {
        memcpy(j->error, m->error, TEXT);
    } else if (j->kind == JOB_RUN) {
        m->calls++;
        const dc_status status = values_run(w.ctx, j);
        m->failures += status != DC_OK;
        if (status ==
            DC_E_STATE) { /* a state was left half written: the next call has those of the file */
            dc_unload(m->fn);
            m->fn = NULL;
        }
    } else if (j->kind == JOB_INFO) {
        values_info(j);
    }
}

static void *run(void *unused)
{
    (void)unused;
    for (job *j; (j = next_job()) != NULL;) {
        bool unload = j->kind == JOB_UNLOAD;
        if (w.running)
            work(j);
        else
            say(j->error, "the server is going down");
        if (unload) { /* its job was the last one to hold the model */
            free(j->m->path);
            free(j->m);
            free(j);
        } else if (j->client != NULL) {
            RedisModule_UnblockClient(j->client, j);
        } else {
            worker_free(j);
        }
    }
    return NULL;
}

bool worker_start(const worker_settings *s, char *error)
{
    dc_config cfg = DC_CONFIG_INIT;
    w.s = *s;
    w.last = &w.first;
    cfg.threads = s->threads;
    cfg.memory_limit = s->memory;
    cfg.alloc = s->alloc;
    if (dc_open(&cfg, &w.ctx) != DC_OK) {
        say(error, "%s", dc_errmsg(w.ctx));
        dc_close(w.ctx);
        return false;
    }
    w.running = true;
    return pthread_create(&w.thread, NULL, run, NULL) == 0;
}

void worker_stop(void)
{
    pthread_mutex_lock(&w.lock);
    bool was = w.running;
    w.running = false;
    pthread_cond_signal(&w.more);
    pthread_mutex_unlock(&w.lock);
    if (!was)
        return;
    dc_stop(w.ctx); /* what runs ends in a few milliseconds */
    pthread_join(w.thread, NULL);
    dc_close(w.ctx);
}
