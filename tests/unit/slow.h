/*
 * A context whose device compiles when it is told to: compilations on other threads wait at a gate,
 * and fail as asked. Kernels and memory are those of the device of DEEPC_DEVICE, `cpu` by default.
 */
#ifndef DC_TESTS_SLOW_H
#define DC_TESTS_SLOW_H

#include "backends/registry.h"
#include "core/base/thread.h"
#include "core/ir/gtext.h"
#include "core/runtime/storage.h"
#include "jit/jit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/t.h"

typedef enum slow_failure { SLOW_WELL, SLOW_BUILD, SLOW_NOMEM, SLOW_BUG, SLOW_LARGE } slow_failure;

typedef struct slow {
    dc_device base;
    dc_device_ops ops;
    dc_device *inner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t home;       /* the context's thread */
    bool shut;            /* compilations elsewhere wait */
    bool deaf;            /* and do not look whether they are wanted */
    int begun, ended;     /* compilations, on all threads */
    int here;             /* on the context's */
    int freed;            /* programs */
    slow_failure failure; /* of the next `failing` compilations */
    int failing;
    bool bug_run; /* the next run breaks a promise */
} slow;

typedef struct slow_world {
    dc_opts opt;
    dc_log log;
    dc_text said;     /* what the sink heard */
    bool said_abroad; /* on another thread than the context's */
    dc_rt *rt;
    dc_job *j;
    slow *dev;
} slow_world;

static inline slow *slow_of(const dc_device *d)
{
    return (slow *)(uintptr_t)d;
}

/* ---- the device ---- */

static inline void slow_free(dc_device *d)
{
    slow *s = slow_of(d);
    s->inner->ops->free(s->inner);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static inline const dc_target *slow_target(const dc_device *d)
{
    return slow_of(d)->inner->ops->target(slow_of(d)->inner);
}

static inline dc_status slow_alloc(dc_device *d, dc_job *j, size_t bytes, void **out)
{
    return slow_of(d)->inner->ops->alloc(slow_of(d)->inner, j, bytes, out);
}

static inline void slow_release(dc_device *d, void *mem)
{
    slow_of(d)->inner->ops->release(slow_of(d)->inner, mem);
}

static inline dc_status slow_upload(dc_device *d, dc_job *j, void *to, const void *from, size_t n)
{
    return slow_of(d)->inner->ops->upload(slow_of(d)->inner, j, to, from, n);
}

static inline dc_status slow_download(dc_device *d, dc_job *j, void *to, const void *from, size_t n)
{
    return slow_of(d)->inner->ops->download(slow_of(d)->inner, j, to, from, n);
}

static inline dc_status slow_record(dc_device *d, dc_job *j, const dc_command *command, uint32_t n,
                                    dc_recording **out)
{
    return slow_of(d)->inner->ops->record(slow_of(d)->inner, j, command, n, out);
}

static inline void slow_recording_free(dc_device *d, dc_recording *r)
{
    slow_of(d)->inner->ops->recording_free(slow_of(d)->inner, r);
}

static inline dc_status slow_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                                 dc_run_info *info)
{
    if (slow_of(d)->bug_run)
        DC_BUG("%d is not %d", 3, 4);
    return slow_of(d)->inner->ops->run(slow_of(d)->inner, j, r, slot, info);
}

static inline void slow_program_free(dc_device *d, dc_program *p)
{
    CHECK(pthread_equal(pthread_self(), slow_of(d)->home));
    slow_of(d)->freed++;
    slow_of(d)->inner->ops->program_free(slow_of(d)->inner, p);
}

/* Until the gate is open; a compiler that looks whether it is still wanted gives up. */
static inline bool slow_pass(slow *s, dc_job *j, slow_failure *failure)
{
    const bool home = pthread_equal(pthread_self(), s->home);
    bool wanted = true;
    pthread_mutex_lock(&s->lock);
    s->begun++;
    s->here += home;
    pthread_cond_broadcast(&s->changed);
    while (s->shut && !home && wanted) {
        dc_thread_await(&s->changed, &s->lock, dc_clock_ns() + 2000000);
        wanted = s->deaf || !dc_job_cancelled(j);
    }
    *failure = s->failing > 0 ? s->failure : SLOW_WELL;
    s->failing -= s->failing > 0;
    pthread_mutex_unlock(&s->lock);
    return wanted;
}

static inline dc_status slow_compile(dc_device *d, dc_job *j, const dc_source *src,
                                     dc_program **out)
{
    slow *s = slow_of(d);
    slow_failure failure;
    dc_status status = DC_OK;
    dc_logf(j->log, DC_CH_NOTE, "compiling %s", src->entry[0]);
    if (!slow_pass(s, j, &failure))
        return dc_failf(j, DC_ERR_BUILD, "slow", "given up");
    switch (failure) {
    case SLOW_WELL:
        status = s->inner->ops->compile(s->inner, j, src, out);
        break;
    case SLOW_BUILD:
        status = dc_failf(j, DC_ERR_BUILD, "slow", "the compiler is tired");
        break;
    case SLOW_NOMEM:
        dc_nomem(0);
    case SLOW_BUG:
        DC_BUG("%d is not %d", 1, 2);
    case SLOW_LARGE:
        status = dc_fail(j, DC_ERR_TOO_LARGE, &(dc_fact){.op = "f", .word = {"many bytes"}});
        break;
    }
    pthread_mutex_lock(&s->lock);
    s->ended++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static inline slow *slow_new(dc_device *inner)
{
    slow *s = calloc(1, sizeof *s);
    s->ops = *inner->ops; /* what it has not got, this one has not either */
    s->ops.free = slow_free;
    s->ops.target = slow_target;
    s->ops.alloc = slow_alloc;
    s->ops.release = slow_release;
    s->ops.upload = slow_upload;
    s->ops.download = slow_download;
    s->ops.compile = slow_compile;
    s->ops.one_by_one = false; /* so that compilations can be counted */
    s->ops.toolchain = NULL;
    s->ops.translate = NULL;
    s->ops.load = NULL;
    s->ops.program_free = slow_program_free;
    s->ops.record = slow_record;
    s->ops.recording_free = slow_recording_free;
    s->ops.run = slow_run;
    s->ops.copy = NULL;
    s->ops.reserve = NULL;
    s->ops.commit = NULL;
    s->ops.finish = NULL;
    s->base.ops = &s->ops;
    s->inner = inner;
    s->home = pthread_self();
    pthread_mutex_init(&s->lock, NULL);
    dc_thread_condition(&s->changed);
    return s;
}

/* ---- what tests do with it ---- */

static inline void slow_shut(slow *s, bool shut)
{
    pthread_mutex_lock(&s->lock);
    s->shut = shut;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static inline void slow_deafen(slow *s, bool deaf)
{
    pthread_mutex_lock(&s->lock);
    s->deaf = deaf;
    pthread_mutex_unlock(&s->lock);
}

static inline void slow_fail(slow *s, slow_failure failure, int times)
{
    pthread_mutex_lock(&s->lock);
    s->failure = failure;
    s->failing = times;
    pthread_mutex_unlock(&s->lock);
}

/* Until so many compilations have begun; or a minute has passed. */
static inline bool slow_wait_begun(slow *s, int n)
{
    const uint64_t end = dc_clock_ns() + UINT64_C(60000000000);
    bool early = true;
    pthread_mutex_lock(&s->lock);
    while (s->begun < n && early)
        early = dc_thread_await(&s->changed, &s->lock, end);
    pthread_mutex_unlock(&s->lock);
    return early;
}

static inline int slow_count(slow *s, const int *counter)
{
    pthread_mutex_lock(&s->lock);
    const int n = *counter;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- a context ---- */

static inline void slow_hear(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)channel;
    slow_world *w = ctx;
    w->said_abroad |= !pthread_equal(pthread_self(), w->dev->home);
    dc_text_printf(&w->said, "%.*s", (int)n, text);
}

/* Settings of the environment but those that decide which thread compiles when. change may be NULL. */
static inline void slow_open(slow_world *w, void (*change)(dc_opts *opt))
{
    const char *bad;
    dc_device *d;
    bool interpret;
    *w = (slow_world){0};
    dc_opts_init(&w->opt, &bad);
    w->opt.dump[0] = w->opt.compile[0] = '\0';
    if (change != NULL)
        change(&w->opt);
    w->log = (dc_log){.write = slow_hear, .ctx = w};
    dc_log_select(&w->log, "note");
    w->rt = dc_rt_new(&w->opt, &w->log);
    w->j = &w->rt->job;
    interpret = false;
    if (!CHECK_EQ(dc_sim_is(w->opt.device)
                      ? dc_sim_open(w->j, w->opt.device, &d)
                      : dc_backend_open(w->j, w->opt.device, &d, &interpret),
                  DC_OK))
        exit(1);
    w->dev = slow_new(d);
    dc_rt_set_device(w->rt, &w->dev->base, interpret);
}

static inline void slow_close(slow_world *w)
{
    CHECK(w->rt->execs == NULL && !w->said_abroad);
    CHECK_EQ(w->rt->stats.bytes_live, 0);
    dc_rt_free(w->rt);
    CHECK(!w->said_abroad);
    dc_text_free(&w->said);
}

/* ---- functions: x * n + 1 for f32[n] ---- */

static inline dc_module *slow_function(slow_world *w, int n, uint32_t count)
{
    char text[400];
    dc_module *m = NULL;
    snprintf(text, sizeof text,
             "func f%d(%%1: f32[%u] \"x\") {\n"
             "  %%2 = const {%u} : f32[%u]\n"
             "  %%3 = const {%u} : f32[%u]\n"
             "  %%4 = mul %%1, %%2 : f32[%u]\n"
             "  %%5 = add %%4, %%3 : f32[%u]\n"
             "  return %%5\n}\n",
             n, count, dc_f32_bits((float)n), count, dc_f32_bits(1), count, count, count);
    if (!CHECK_EQ(dc_module_parse(w->j, text, &m), DC_OK))
        exit(1);
    return m;
}

typedef dc_status slow_way(dc_rt *rt, dc_job *j, const dc_exec_desc *d, dc_exec **out);

/* A caller's, inside a recovery point. */
typedef struct slow_asking {
    slow_world *w;
    slow_way *way;
    const dc_exec_desc *d;
    dc_exec *e;
} slow_asking;

static inline dc_status slow_ask(dc_job *j, void *arg)
{
    slow_asking *a = arg;
    return a->way != NULL ? a->way(a->w->rt, j, a->d, &a->e) : dc_exec_wait(a->w->rt, j, a->e);
}

static inline dc_exec *slow_start_sized(slow_world *w, int n, uint32_t count)
{
    dc_module *m = slow_function(w, n, count);
    char name[20];
    snprintf(name, sizeof name, "f%d", n);
    const dc_exec_desc d = {.fn = m->func.at[0], .name = name, .nfree = 1, .nresult = 1};
    slow_asking a = {.w = w, .way = dc_exec_start, .d = &d};
    CHECK_EQ(dc_protect(w->j, slow_ask, &a), DC_OK);
    dc_module_free(m);
    return a.e;
}

/* Distinct kernels for distinct n. */
static inline dc_exec *slow_start(slow_world *w, int n)
{
    return slow_start_sized(w, n, 8 + (uint32_t)n);
}

static inline dc_status slow_wait(slow_world *w, dc_exec *e)
{
    slow_asking a = {.w = w, .e = e};
    return dc_protect(w->j, slow_ask, &a);
}

typedef struct slow_calling {
    slow_world *w;
    dc_exec *e;
    float *x, *y;
    uint32_t count;
    dc_inst *inst; /* these are not owned while the body runs */
    dc_tensor *in, *out;
} slow_calling;

static inline dc_status slow_call_body(dc_job *j, void *arg)
{
    slow_calling *c = arg;
    dc_rt *rt = c->w->rt;
    dc_device *d = rt->device;
    const int64_t dim[] = {(int64_t)c->count};
    const dc_type t = dc_type_make(DC_F32, 1, dim);
    dc_fault fault;
    DC_TRY(dc_inst_new(rt, j, c->e, NULL, &c->inst));
    DC_TRY(dc_tensor_new(rt, j, &t, &c->in));
    DC_TRY(d->ops->upload(d, j, dc_tensor_mem(c->in), c->x, c->count * sizeof *c->x));
    DC_TRY(dc_inst_call(c->inst, j, &(dc_arg){.tensor = c->in}, &c->out, &fault));
    return d->ops->download(d, j, c->y, dc_tensor_mem(c->out), c->count * sizeof *c->y);
}

static inline dc_status slow_try_call(slow_calling *c)
{
    const dc_status status = dc_protect(c->w->j, slow_call_body, c);
    dc_tensor_release(c->out);
    dc_tensor_release(c->in);
    dc_inst_free(c->inst);
    c->inst = NULL;
    c->in = c->out = NULL;
    return status;
}

/* Calls f<n> on 0, 1, 2 ... and checks what it gives. */
static inline void slow_call(slow_world *w, dc_exec *e, int n, uint32_t count)
{
    float x[100], y[100];
    bool right = true;
    for (uint32_t i = 0; i < count; i++)
        x[i] = (float)i;
    slow_calling c = {.w = w, .e = e, .x = x, .y = y, .count = count};
    if (!CHECK_EQ(slow_try_call(&c), DC_OK))
        return;
    for (uint32_t i = 0; i < count; i++)
        right = right && y[i] == x[i] * (float)n + 1;
    CHECK(right);
}

#endif
