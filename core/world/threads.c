/* Messages and shared memory between threads of one process (core/world/threads.h). */
#define _POSIX_C_SOURCE 200809L /* gethostname */
#include "core/world/threads.h"

#include "core/base/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 65 }; /* of a host */

typedef struct message {
    struct message *next;
    int src, dst, tag;
    size_t n;
    char bytes[];
} message;

struct dc_threads {
    int size;
    pthread_mutex_t lock;
    message *first, *last; /* sent and not received yet */
    int *host;             /* of each rank */
    const char **name;
    struct rank {
        char host_name[NAME];
        atomic_bool taken, left;
        void *segment; /* of the host of this number */
    } at[];
};

/* Messages that are expected get theirs in the order in which they were asked for. */
typedef struct expected {
    struct expected *next;
    int src, tag;
    size_t n;
    void *to;
} expected;

typedef struct engine {
    dc_engine base;
    dc_threads *hub;
    expected *first, **end; /* that are not here yet */
} engine;

/* One block: the ranks, names, hosts. */
dc_threads *dc_threads_new(int size, const int *host)
{
    const size_t n = (size_t)size, ranks = sizeof(dc_threads) + n * sizeof(struct rank);
    dc_threads *t = dc_xalloc(ranks + n * (sizeof *t->name + sizeof *t->host));
    t->size = size;
    t->name = (const char **)(void *)((char *)t + ranks);
    t->host = (int *)(void *)(t->name + n);
    pthread_mutex_init(&t->lock, NULL);
    for (int r = 0; r < size; r++) {
        char *name = t->at[r].host_name;
        t->host[r] = host != NULL ? host[r] : 0;
        if (host != NULL)
            snprintf(name, NAME, "host%d", host[r]);
        else if (gethostname(name, NAME - 1) != 0)
            strcpy(name, "localhost");
        t->name[r] = name;
    }
    return t;
}

void dc_threads_free(dc_threads *t)
{
    for (message *m = t->first, *next; m != NULL; m = next) {
        next = m->next;
        dc_xfree(m);
    }
    for (int h = 0; h < t->size; h++)
        dc_free_aligned(t->at[h].segment);
    pthread_mutex_destroy(&t->lock);
    dc_xfree(t);
}

int dc_threads_size(const dc_threads *t)
{
    return t->size;
}

bool dc_threads_take(dc_threads *t, int rank)
{
    return !atomic_exchange(&t->at[rank].taken, true);
}

void dc_threads_leave(dc_threads *t, int rank)
{
    atomic_store(&t->at[rank].left, true);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static engine *of(dc_engine *e)
{
    return (engine *)e;
}

static bool fail(dc_engine *e, const char *why)
{
    snprintf(e->why, sizeof e->why, "%s", why);
    return false;
}

/* Copied at once: done. */
static bool send_bytes(dc_engine *e, int rank, int tag, const void *bytes, size_t n, dc_request *r)
{
    dc_threads *t = of(e)->hub;
    message *m = dc_try_alloc(sizeof *m + n);
    if (m == NULL)
        return fail(e, "out of memory");
    *m = (message){.src = e->rank, .dst = rank, .tag = tag, .n = n};
    memcpy(m->bytes, bytes, n);
    *r = (dc_request){0};
    pthread_mutex_lock(&t->lock);
    if (t->last != NULL)
        t->last->next = m;
    else
        t->first = m;
    t->last = m;
    pthread_mutex_unlock(&t->lock);
    return true;
}

/* Takes the first message for this rank off the list; src -1: of any. */
static message *take_message(dc_engine *e, int src, int tag)
{
    dc_threads *t = of(e)->hub;
    message *before = NULL;
    pthread_mutex_lock(&t->lock);
    message *m = t->first;
    while (m != NULL && (m->dst != e->rank || m->tag != tag || (src >= 0 && m->src != src))) {
        before = m;
        m = m->next;
    }
    if (m != NULL) {
        *(before != NULL ? &before->next : &t->first) = m->next;
        if (t->last == m)
            t->last = before;
    }
    pthread_mutex_unlock(&t->lock);
    return m;
}

/* A request to receive is its expected message until that is here. All others are zeros. */
static bool recv_bytes(dc_engine *e, int rank, int tag, void *bytes, size_t n, dc_request *r)
{
    expected *x = dc_try_alloc(sizeof *x);
    if (x == NULL)
        return fail(e, "out of memory");
    *x = (expected){.src = rank, .tag = tag, .n = n, .to = bytes};
    *of(e)->end = x;
    of(e)->end = &x->next;
    *r = (dc_request){{(uintptr_t)x}};
    return true;
}

static void forget(engine *e, expected **at)
{
    expected *x = *at;
    *at = x->next;
    if (e->end == &x->next)
        e->end = at;
    dc_xfree(x);
}

/* Messages that are here for those of one source and tag, until the last one has got its own. */
static bool deliver(engine *e, const expected *last, bool *done)
{
    const int src = last->src, tag = last->tag;
    expected **at = &e->first;
    while (*at != NULL) {
        expected *x = *at;
        if (x->src != src || x->tag != tag) {
            at = &x->next;
            continue;
        }
        message *m = take_message(&e->base, src, tag);
        if (m == NULL)
            return true;
        const bool fits = m->n == x->n;
        if (fits)
            memcpy(x->to, m->bytes, m->n);
        dc_xfree(m);
        *done = x == last;
        forget(e, at);
        if (!fits)
            return fail(&e->base, "a message has another length than was expected");
        if (*done)
            return true;
    }
    return true;
}

static expected **find_expected(engine *e, const dc_request *r)
{
    expected **at = &e->first;
    while (*at != NULL && (uintptr_t)*at != r->word[0])
        at = &(*at)->next;
    return at;
}

static bool test_request(dc_engine *base, dc_request *r, bool *done)
{
    engine *e = of(base);
    const expected *x = *find_expected(e, r);
    *done = x == NULL; /* sent, or come when another one was tested */
    return *done || deliver(e, x, done);
}

static void cancel_request(dc_engine *base, dc_request *r)
{
    expected **at = find_expected(of(base), r);
    if (*at != NULL)
        forget(of(base), at);
    *r = (dc_request){0};
}

static bool poll_tag(dc_engine *e, int tag, void *bytes, size_t n)
{
    message *m = take_message(e, -1, tag);
    if (m == NULL)
        return false;
    memcpy(bytes, m->bytes, m->n < n ? m->n : n);
    dc_xfree(m);
    return true;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static bool open_engine(dc_engine *e)
{
    const dc_threads *t = of(e)->hub;
    e->size = t->size;
    e->host = t->host;
    e->name = t->name;
    return true;
}

static void *share_segment(dc_engine *e, size_t bytes)
{
    dc_threads *t = of(e)->hub;
    void **at = &t->at[t->host[e->rank]].segment;
    pthread_mutex_lock(&t->lock);
    if (*at == NULL && (*at = dc_try_aligned(4096, bytes)) != NULL)
        memset(*at, 0, bytes);
    pthread_mutex_unlock(&t->lock);
    if (*at == NULL)
        fail(e, "out of memory");
    return *at;
}

static bool is_gone(dc_engine *e, int rank, int pid)
{
    DC_UNUSED(pid);
    return atomic_load(&of(e)->hub->at[rank].left);
}

static void close_engine(dc_engine *e, bool clean)
{
    DC_UNUSED(clean);
    while (of(e)->first != NULL)
        forget(of(e), &of(e)->first);
    dc_xfree(e);
}

dc_engine *dc_threads_engine(dc_threads *t, int rank)
{
    static const dc_engine_ops ops = {open_engine, share_segment, send_bytes,
                                      recv_bytes,  test_request,  cancel_request,
                                      poll_tag,    is_gone,       close_engine};
    engine *e = dc_xalloc(sizeof *e);
    e->base = (dc_engine){.ops = &ops, .rank = rank};
    e->hub = t;
    e->end = &e->first;
    return &e->base;
}
