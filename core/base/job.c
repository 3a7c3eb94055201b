#include "core/base/job.h"

#include "core/base/number.h"
#include "core/base/owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct recovery {
    jmp_buf at;
    dc_job *job;
    struct recovery *outer;
} recovery;

static _Thread_local recovery *innermost;

void dc_job_init(dc_job *j, const dc_opts *opt, dc_log *log)
{
    *j = (dc_job){.opt = opt, .log = log};
}

void dc_job_fini(dc_job *j)
{
    DC_VEC_FREE(j->cleanup);
    dc_arena_free(&j->scratch);
}

static void release_deferred(dc_job *j, uint32_t keep)
{
    while (j->cleanup.n > keep) {
        dc_cleanup c = j->cleanup.at[--j->cleanup.n];
        c.release(c.what);
    }
}

void dc_job_notice_bug(dc_job *j)
{
    if (j->broken == NULL || *j->broken)
        return;
    *j->broken = true;
    if (j->on_bug != NULL)
        j->on_bug(j, j->bug_ctx);
}

dc_status dc_job_refuse_child(dc_job *j)
{
    return dc_fail(j, DC_ERR_REENTER,
                   &(dc_fact){.word = {"this context was opened by another process; open one of "
                                       "its own after fork"}});
}

/* A child of fork has none of the parent's threads. */
static bool is_forked(const dc_job *j)
{
    return j->owner != NULL && dc_owner_forked(j->owner);
}

bool dc_job_enter(dc_job *j, bool *first)
{
    const void *user = atomic_load_explicit(&j->user, memory_order_relaxed);
    *first = false;
    if (user == (const void *)&innermost)
        return true;
    user = NULL;
    *first = atomic_compare_exchange_strong_explicit(&j->user, &user, &innermost,
                                                     memory_order_acquire, memory_order_relaxed);
    return *first || is_forked(j);
}

void dc_job_leave(dc_job *j, bool first)
{
    if (first)
        atomic_store_explicit(&j->user, NULL, memory_order_release);
}

bool dc_job_elsewhere(const dc_job *j)
{
    const void *user = atomic_load_explicit(&j->user, memory_order_relaxed);
    return user != NULL && user != (const void *)&innermost && !is_forked(j);
}

static dc_status protect(dc_job *j, dc_status (*body)(dc_job *, void *), void *arg)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const uint32_t deferred = j->cleanup.n;
    const struct dc_exec *about = j->about;
    const atomic_bool *cancel = j->cancel;
    recovery here; /* setjmp writes the rest of it */
    here.job = j;
    here.outer = innermost;
    volatile dc_status status = DC_OK;

    dc_err_clear(&j->err);
    if (is_forked(j))
        return dc_job_refuse_child(j);
    if (setjmp(here.at) == 0) {
        innermost = &here;
        status = body(j, arg);
    } else {
        status = j->err.status;
    }
    innermost = here.outer;
    if (status == DC_E_BUG)
        dc_job_notice_bug(j);
    j->about = about;
    j->cancel = cancel;
    release_deferred(j, deferred);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

dc_status dc_protect(dc_job *j, dc_status (*body)(dc_job *, void *), void *arg)
{
    bool first;
    if (!dc_job_enter(j, &first))
        return DC_E_STATE;
    const dc_status status = protect(j, body, arg);
    dc_job_leave(j, first);
    return status;
}

dc_job *dc_job_here(void)
{
    return innermost != NULL ? innermost->job : NULL;
}

dc_arena *dc_scratch_begin(dc_scratch *s)
{
    dc_job *j = dc_job_here();
    s->own = (dc_arena){0};
    s->arena = j != NULL ? &j->scratch : &s->own;
    s->mark = dc_arena_mark(s->arena);
    return s->arena;
}

void dc_scratch_end(dc_scratch *s)
{
    dc_arena_rewind(s->arena, s->mark);
}

/* Not DC_PUSH: when that unwinds, `what` has no owner yet. */
static bool grow_cleanup(dc_job *j)
{
    const uint32_t cap = j->cleanup.cap ? j->cleanup.cap * 2 : 8;
    dc_cleanup *at = dc_try_realloc(j->cleanup.at, cap * sizeof *at);
    if (at == NULL)
        return false;
    j->cleanup.at = at;
    j->cleanup.cap = cap;
    return true;
}

void dc_job_defer(dc_job *j, void (*release)(void *), void *what)
{
    if (j == NULL)
        return;
    if (j->cleanup.n == j->cleanup.cap && !grow_cleanup(j)) {
        release(what);
        dc_nomem(0);
    }
    j->cleanup.at[j->cleanup.n++] = (dc_cleanup){release, what};
}

/* Takes the last entry for `what` off the list; its function, NULL where there is none. */
static void (*take_off(dc_job *j, const void *what))(void *)
{
    for (uint32_t i = j != NULL ? j->cleanup.n : 0; i-- > 0;)
        if (j->cleanup.at[i].what == what) {
            void (*release)(void *) = j->cleanup.at[i].release;
            for (; i + 1 < j->cleanup.n; i++)
                j->cleanup.at[i] = j->cleanup.at[i + 1];
            j->cleanup.n--;
            return release;
        }
    return NULL;
}

void dc_job_keep(dc_job *j, void *what)
{
    take_off(j, what);
}

dc_status dc_job_settle(dc_job *j, void *what, dc_status status)
{
    void (*release)(void *) = take_off(j, what);
    if (status != DC_OK && release != NULL)
        release(what);
    return status;
}

static void free_text(void *t)
{
    dc_text_free(t);
}

void dc_job_defer_text(dc_job *j, dc_text *t)
{
    dc_job_defer(j, free_text, t);
}

dc_text *dc_job_text(dc_job *j)
{
    dc_text *t = DC_NEW(&j->scratch, dc_text);
    dc_job_defer_text(j, t);
    return t;
}

void dc_job_text_end(dc_job *j, dc_text *t)
{
    dc_job_keep(j, t);
    dc_text_free(t);
}

DC_NORETURN static void unwind(void)
{
    longjmp(innermost->at, 1);
}

void dc_job_look(void)
{
    if (innermost == NULL || !dc_job_cancelled(innermost->job))
        return;
    dc_err_clear(&innermost->job->err);
    dc_fail(innermost->job, DC_ERR_INTERRUPTED, NULL);
    unwind();
}

dc_status dc_job_ended(dc_job *j)
{
    return j != NULL && dc_job_cancelled(j) ? dc_fail(j, DC_ERR_INTERRUPTED, NULL) : DC_OK;
}

const atomic_bool *dc_job_heed(dc_job *j, const atomic_bool *cancel)
{
    const atomic_bool *before = j->cancel;
    j->cancel = cancel;
    return before;
}

bool dc_job_over_limit(dc_job *j, size_t bytes)
{
    const dc_heap *h = j->opt != NULL ? j->opt->heap : NULL;
    char text[4][DC_NUMBER_TEXT];
    if (h == NULL || h->limit == 0)
        return false;
    const size_t used = dc_heap_used(h), all = dc_heap_counted(h);
    if (all <= h->limit && bytes <= h->limit - all)
        return false;
    dc_failf(
        j, DC_ERR_MEMORY, NULL,
        "%s more than the %s of tensors, parameters and compiled functions and the %s of graphs "
        "and other metadata; the limit is %s",
        dc_number_bytes(bytes, text[0]), dc_number_bytes(all - used, text[1]),
        dc_number_bytes(used, text[2]), dc_number_bytes(h->limit, text[3]));
    return true;
}

void dc_nomem(size_t bytes)
{
    if (innermost == NULL) {
        fputs("deepc: out of memory outside any entry\n", stderr);
        abort();
    }
    dc_job *j = innermost->job;
    dc_err_clear(&j->err); /* an earlier failure was about to be worked round */
    if (!dc_job_over_limit(j, bytes))
        dc_fail(j, DC_ERR_NOMEM, NULL);
    unwind();
}

void dc_bug_at(const char *file, int line, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    dc_number_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    if (innermost == NULL) {
        fprintf(stderr, "deepc: bug at %s:%d: %s\n", file, line, text);
        abort();
    }
    dc_job *j = innermost->job;
    dc_err_clear(&j->err);
    dc_fail(j, DC_ERR_BUG, &(dc_fact){.num = {line}, .word = {file, text}});
    unwind();
}
