#define _GNU_SOURCE /* syscall, pthread_getname_np */
#include "core/base/spans.h"

#include "core/base/heap.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PIECE = 8192,    /* spans that get memory together */
    PIECES = 8192,   /* at most: 64 million spans */
    LANES = 512,     /* threads that are told apart; one more shares a lane with others */
    NAMES = 1 << 16, /* names; one more is "..." */
    BUCKETS = 4 * NAMES
};

typedef struct piece {
    atomic_bool written[PIECE];
    dc_span_time at[PIECE];
} piece;

struct dc_spans {
    _Atomic uint64_t recording; /* 0, or the number of the recording */
    atomic_int writers;         /* threads that may be writing */
    uint64_t starts, begun_ns;
    uint64_t most;
    _Atomic uint64_t n, lost;
    _Atomic(piece *) *piece;
    pthread_mutex_t lock; /* of what follows */
    dc_span_name *name;   /* [0] is not used */
    uint32_t nname;
    uint32_t *bucket; /* by hash: a name, or 0 */
    dc_span_lane lane[LANES];
    _Atomic int64_t thread[LANES]; /* of lane[i], found without the lock; -1: a device's */
    _Atomic uint32_t nlane;
};

const char *dc_span_category(dc_span_kind kind)
{
    static const char *const name[] = {
#define S(id, text) text,
        DC_SPAN_KINDS(S)
#undef S
    };
    return name[kind];
}

dc_spans *dc_spans_new(void)
{
    dc_spans *s = dc_xalloc(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void free_names(dc_spans *s)
{
    for (uint32_t i = 1; i < s->nname; i++)
        dc_xfree((void *)(uintptr_t)s->name[i].text); /* one block has all three texts */
    dc_xfree(s->name);
    dc_xfree(s->bucket);
    s->name = NULL;
    s->bucket = NULL;
    s->nname = 0;
}

void dc_spans_drop(dc_spans *s)
{
    for (uint32_t i = 0; s->piece != NULL && i < PIECES; i++)
        dc_xfree(atomic_load(&s->piece[i]));
    dc_xfree((void *)s->piece);
    s->piece = NULL;
    free_names(s);
    atomic_store(&s->nlane, 0);
    atomic_store(&s->n, 0);
    atomic_store(&s->lost, 0);
}

void dc_spans_free(dc_spans *s)
{
    if (s == NULL)
        return;
    dc_spans_stop(s);
    dc_spans_drop(s);
    pthread_mutex_destroy(&s->lock);
    dc_xfree(s);
}

/* ---- recording --------------------------------------------------------------------------------- */

bool dc_spans_start(dc_spans *s, uint64_t most)
{
    if (dc_spans_recording(s) != 0)
        return true;
    dc_spans_drop(s);
    s->most = most < (uint64_t)PIECE * PIECES ? most : (uint64_t)PIECE * PIECES;
    s->piece = dc_try_alloc(PIECES * sizeof *s->piece);
    s->name = dc_try_alloc(NAMES * sizeof *s->name);
    s->bucket = dc_try_alloc(BUCKETS * sizeof *s->bucket);
    if (s->piece == NULL || s->name == NULL || s->bucket == NULL) {
        dc_spans_drop(s);
        return false;
    }
    s->nname = 1;
    s->begun_ns = dc_clock_ns();
    atomic_store(&s->recording, ++s->starts);
    return true;
}

uint64_t dc_spans_recording(const dc_spans *s)
{
    return atomic_load_explicit(&s->recording, memory_order_relaxed);
}

/* Between these two a recording does not end. */
static bool enter(dc_spans *s)
{
    atomic_fetch_add(&s->writers, 1);
    if (atomic_load(&s->recording) != 0)
        return true;
    atomic_fetch_sub(&s->writers, 1);
    return false;
}

static void leave(dc_spans *s)
{
    atomic_fetch_sub(&s->writers, 1);
}

void dc_spans_stop(dc_spans *s)
{
    atomic_store(&s->recording, 0);
    while (atomic_load(&s->writers) != 0)
        usleep(10);
}

static piece *piece_of(dc_spans *s, uint64_t i)
{
    _Atomic(piece *) *at = &s->piece[i / PIECE];
    piece *p = atomic_load(at);
    if (p != NULL)
        return p;
    piece *made = dc_try_alloc(sizeof *made);
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong(at, &p, made))
        return made;
    dc_xfree(made); /* another thread was first */
    return p;
}

/* ---- lanes ------------------------------------------------------------------------------------- */

static uint32_t find_thread(const dc_spans *s, int64_t thread)
{
    const uint32_t n = atomic_load(&s->nlane);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&s->thread[i]) == thread)
            return i + 1;
    return 0;
}

/* With the lock. The last lane is everybody's. */
static dc_span_lane *next_lane(dc_spans *s, int64_t thread)
{
    const uint32_t n = atomic_load(&s->nlane);
    dc_span_lane *l = &s->lane[n < LANES ? n : LANES - 1];
    if (n == LANES)
        return NULL;
    *l = (dc_span_lane){.thread = thread > 0 ? thread : 0};
    atomic_store(&s->thread[n], thread);
    return l;
}

static uint32_t lane_of_thread(dc_spans *s)
{
    const int64_t thread = (int64_t)syscall(SYS_gettid);
    uint32_t lane = find_thread(s, thread);
    if (lane != 0)
        return lane;
    pthread_mutex_lock(&s->lock);
    dc_span_lane *l = next_lane(s, thread);
    if (l != NULL) {
        char name[16] = "";
        pthread_getname_np(pthread_self(), name, sizeof name);
        snprintf(l->name, sizeof l->name, "%s", name);
        atomic_fetch_add(&s->nlane, 1);
    }
    lane = atomic_load(&s->nlane);
    pthread_mutex_unlock(&s->lock);
    return lane;
}

uint32_t dc_spans_lane(dc_spans *s, const char *device)
{
    uint32_t lane = 0;
    if (!enter(s))
        return 0;
    pthread_mutex_lock(&s->lock);
    const uint32_t n = atomic_load(&s->nlane);
    for (uint32_t i = 0; i < n && lane == 0; i++)
        if (s->lane[i].thread == 0 && strcmp(s->lane[i].name, device) == 0)
            lane = i + 1;
    dc_span_lane *l = lane == 0 ? next_lane(s, -1) : NULL;
    if (l != NULL) {
        snprintf(l->name, sizeof l->name, "%s", device);
        lane = atomic_fetch_add(&s->nlane, 1) + 1;
    }
    pthread_mutex_unlock(&s->lock);
    leave(s);
    return lane;
}

/* ---- names ------------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t h, const char *text)
{
    return dc_hash_mix(text != NULL ? dc_hash_bytes(h, text, strlen(text)) : h, 1);
}

static uint64_t hash_of(const dc_span_name *n)
{
    return hash_text(hash_text(hash_text(dc_hash_mix(0, n->kind), n->text), n->where), n->layer);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_name(const dc_span_name *a, const dc_span_name *b)
{
    return a->kind == b->kind && same_text(a->text, b->text) && same_text(a->where, b->where) &&
           same_text(a->layer, b->layer) && a->flops >= b->flops && a->flops <= b->flops;
}

static size_t bytes_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
    const size_t n = bytes_of(text);
    const char *copy = n > 0 ? memcpy(*at, text, n) : NULL;
    *at += n;
    return copy;
}

/* With the lock. */
static uint32_t add_name(dc_spans *s, const dc_span_name *name, uint32_t *bucket)
{
    const char *text = name->text != NULL ? name->text : "";
    if (s->nname == NAMES)
        return 0;
    char *block = dc_try_alloc(bytes_of(text) + bytes_of(name->where) + bytes_of(name->layer));
    if (block == NULL)
        return 0;
    dc_span_name *n = &s->name[s->nname];
    *n = *name;
    n->text = put(&block, text);
    n->where = put(&block, name->where);
    n->layer = put(&block, name->layer);
    return *bucket = s->nname++;
}

/* With the lock. */
static uint32_t find_name(dc_spans *s, const dc_span_name *name)
{
    for (uint64_t h = hash_of(name);; h++) {
        uint32_t *bucket = &s->bucket[h % BUCKETS];
        if (*bucket == 0)
            return add_name(s, name, bucket);
        if (same_name(&s->name[*bucket], name))
            return *bucket;
    }
}

uint32_t dc_spans_name(dc_spans *s, const dc_span_name *name)
{
    if (!enter(s))
        return 0;
    pthread_mutex_lock(&s->lock);
    const uint32_t number = find_name(s, name);
    pthread_mutex_unlock(&s->lock);
    leave(s);
    return number;
}

/* ---- spans ------------------------------------------------------------------------------------- */

void dc_spans_add(dc_spans *s, uint32_t name, uint32_t lane, uint64_t begun_ns, uint64_t ended_ns,
                  int64_t number)
{
    if (!enter(s))
        return;
    if (begun_ns < s->begun_ns) { /* before the recording */
        leave(s);
        return;
    }
    const bool room = name != 0 && atomic_load(&s->n) < s->most;
    const uint64_t i = room ? atomic_fetch_add(&s->n, 1) : s->most;
    piece *p = i < s->most ? piece_of(s, i) : NULL;
    if (p != NULL) {
        p->at[i % PIECE] = (dc_span_time){.begun_ns = begun_ns,
                                          .ended_ns = ended_ns,
                                          .number = number,
                                          .name = name,
                                          .lane = lane != 0 ? lane : lane_of_thread(s)};
        atomic_store(&p->written[i % PIECE], true);
    } else
        atomic_fetch_add(&s->lost, 1);
    leave(s);
}

void dc_span_end_of(const dc_log *log, uint64_t begun, const dc_span_name *name, int64_t number)
{
    if (begun == 0 || !dc_span_wanted(log))
        return;
    const uint64_t ended = dc_clock_ns();
    dc_spans_add(log->spans, dc_spans_name(log->spans, name), 0, begun, ended, number);
}

void dc_span_end(const dc_log *log, uint64_t begun, dc_span_kind kind, const char *text)
{
    dc_span_end_of(log, begun, &(dc_span_name){.kind = kind, .text = text}, 0);
}

/* ---- reading ----------------------------------------------------------------------------------- */

uint64_t dc_spans_count(const dc_spans *s)
{
    const uint64_t n = atomic_load(&s->n);
    return n < s->most ? n : s->most;
}

bool dc_spans_at(const dc_spans *s, uint64_t i, dc_span_time *out)
{
    piece *p = s->piece != NULL ? atomic_load(&s->piece[i / PIECE]) : NULL;
    if (p == NULL || !atomic_load(&p->written[i % PIECE]))
        return false;
    *out = p->at[i % PIECE];
    return true;
}

uint64_t dc_spans_lost(const dc_spans *s)
{
    return atomic_load(&s->lost);
}

uint64_t dc_spans_begun_ns(const dc_spans *s)
{
    return s->begun_ns;
}

const dc_span_name *dc_spans_name_at(const dc_spans *s, uint32_t name)
{
    DC_ASSERT(name > 0 && name < s->nname, "name %u of %u", name, s->nname);
    return &s->name[name];
}

uint32_t dc_spans_lanes(const dc_spans *s)
{
    return atomic_load(&s->nlane);
}

const dc_span_lane *dc_spans_lane_at(const dc_spans *s, uint32_t lane)
{
    DC_ASSERT(lane > 0 && lane <= dc_spans_lanes(s), "lane %u of %u", lane, dc_spans_lanes(s));
    return &s->lane[lane - 1];
}
