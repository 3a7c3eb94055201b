#include "backends/cpu/cpu_exchange.h"

#include <string.h>

enum {
    NONE = UINT32_MAX,
    BUCKET_BYTES = 4 << 20, /* what several exchanges that begin together have, at most */
    BUCKET_MOST = 64
};

typedef struct one {
    uint32_t bucket;
    dc_transfer at; /* of the run at hand */
} one;

typedef struct bucket {
    uint32_t first, n;              /* its exchanges */
    uint32_t reached, begun, ended; /* of the run at hand: so many of them, */
    uint32_t piece;                 /* as many of them with the ticket */
    dc_exchange x;
    dc_ticket ticket; /* of those begun and not ended */
    dc_exchange_time time;
} bucket;

struct dc_cpu_exchanges {
    uint32_t n, nbucket;
    uint32_t pending;  /* buckets that were reached and have not ended */
    uint64_t begun_ns; /* traced: when the first of the run at hand was begun */
    one *at;
    bucket *bucket;
    uint32_t *number;     /* by command: its exchange, or NONE */
    uint32_t *first_wait; /* by command, and one more: its exchanges to wait for among these */
    uint32_t *wait;
    bool *inside; /* by command: it is in a loop or a branch, or is one */
    dc_transfer room[BUCKET_MOST];
};

/* ---- buckets ----------------------------------------------------------------------------------- */

static bool is_exchange(const dc_command *x, dc_host_call *c)
{
    dc_job *j = dc_job_here();
    if (x->kind != DC_COMMAND_HOST || !dc_host_call_unpack(j, x->host, x->nhost, c))
        return false;
    return dc_op_is(c->op, DC_CLASS_COM) && !dc_op_is_message(c->op) &&
           dc_exchange_scratch(c->op, c->attr, &c->in[0]) == 0;
}

/* It goes on to another rank at once, and exchanges in front of it have begun before. */
static bool is_message(const dc_command *x)
{
    dc_host_call c;
    return x->kind == DC_COMMAND_HOST &&
           dc_host_call_unpack(dc_job_here(), x->host, x->nhost, &c) && dc_op_is_message(c.op);
}

static bool is_alike(const dc_host_call *a, const dc_host_call *b)
{
    const dc_exchange_attr x = dc_exchange_read(a->attr), y = dc_exchange_read(b->attr);
    return x.number == 0 && a->op == b->op && a->in[0].dtype == b->in[0].dtype &&
           x.other == y.other && dc_group_is_same(&x.group, &y.group);
}

/* Does the command wait for an exchange from `first` on? */
static bool waits_for(const dc_cpu_exchanges *e, const dc_command *x, uint32_t first)
{
    for (uint32_t d = 0; d < x->ndep; d++)
        if (e->number[x->dep[d]] != NONE && e->number[x->dep[d]] >= first)
            return true;
    return false;
}

typedef struct making {
    dc_cpu_exchanges *e;
    dc_host_call last;
    size_t bytes;
    bool open; /* the last bucket takes more */
} making;

static void add_exchange(making *m, uint32_t i, const dc_host_call *c)
{
    dc_cpu_exchanges *e = m->e;
    const size_t bytes = dc_type_bytes(&c->in[0]);
    bucket *b = e->nbucket > 0 ? &e->bucket[e->nbucket - 1] : NULL;
    if (b == NULL || !m->open || b->n == BUCKET_MOST || m->bytes + bytes > BUCKET_BYTES ||
        !is_alike(c, &m->last)) {
        b = &e->bucket[e->nbucket++];
        *b = (bucket){.first = e->n};
        m->bytes = 0;
    }
    b->n++;
    m->bytes += bytes;
    m->open = true;
    m->last = *c;
    e->number[i] = e->n;
    e->at[e->n++] = (one){.bucket = (uint32_t)(b - e->bucket)};
}

static uint32_t span_of(const dc_command *x)
{
    return 1 + x->nbody + x->nelse;
}

/* What a bundle waits for each of its commands does. */
static void add_waits(dc_cpu_exchanges *e, const dc_command *x, uint32_t *n)
{
    for (uint32_t d = 0; d < x->ndep; d++)
        if (e->number[x->dep[d]] != NONE)
            e->wait[(*n)++] = e->number[x->dep[d]];
}

static void find_waits(dc_cpu_exchanges *e, const dc_command *command, uint32_t n)
{
    uint32_t nwait = 0;
    for (uint32_t i = 0; i < n; i += span_of(&command[i])) {
        const bool bundle = command[i].kind == DC_COMMAND_BUNDLE;
        for (uint32_t k = i; k < i + span_of(&command[i]); k++) {
            e->first_wait[k] = nwait;
            if (k == i || bundle)
                add_waits(e, &command[i], &nwait);
            e->inside[k] = !bundle && span_of(&command[i]) > 1;
        }
    }
    e->first_wait[n] = nwait;
}

static void make(dc_cpu_exchanges *e, const dc_command *command, uint32_t n)
{
    making m = {.e = e};
    for (uint32_t i = 0; i < n; i++)
        e->number[i] = NONE;
    for (uint32_t i = 0; i < n; i += span_of(&command[i])) {
        dc_host_call c;
        const uint32_t first = e->nbucket > 0 ? e->bucket[e->nbucket - 1].first : 0;
        if (m.open && (waits_for(e, &command[i], first) || is_message(&command[i])))
            m.open = false; /* it is needed: what comes later is a bucket of its own */
        if (is_exchange(&command[i], &c))
            add_exchange(&m, i, &c);
    }
    find_waits(e, command, n);
}

static size_t deps_of(const dc_command *command, uint32_t n)
{
    size_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (size_t)command[i].ndep *
               (command[i].kind == DC_COMMAND_BUNDLE ? span_of(&command[i]) : 1);
    return all;
}

dc_cpu_exchanges *dc_cpu_exchanges_new(const dc_command *command, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i += span_of(&command[i])) {
        dc_host_call c;
        count += is_exchange(&command[i], &c);
    }
    if (count == 0)
        return NULL;
    /* one block: nothing to unwind */
    const size_t ones = dc_align_up(sizeof(dc_cpu_exchanges), 16);
    const size_t buckets = ones + dc_align_up(count * sizeof(one), 16);
    const size_t words = buckets + dc_align_up(count * sizeof(bucket), 16);
    const size_t nwait = deps_of(command, n);
    const size_t flags = words + (2 * (size_t)n + 1 + nwait) * sizeof(uint32_t);
    char *block = dc_xalloc(flags + n);
    dc_cpu_exchanges *e = (dc_cpu_exchanges *)(void *)block;
    e->at = (one *)(void *)(block + ones);
    e->bucket = (bucket *)(void *)(block + buckets);
    e->number = (uint32_t *)(void *)(block + words);
    e->first_wait = e->number + n;
    e->wait = e->first_wait + n + 1;
    e->inside = (bool *)(block + flags);
    make(e, command, n);
    return e;
}

void dc_cpu_exchanges_free(dc_cpu_exchanges *e)
{
    dc_xfree(e);
}

/* ---- a run ------------------------------------------------------------------------------------- */

bool dc_cpu_exchange_is(const dc_cpu_exchanges *e, uint32_t command)
{
    return e != NULL && e->number[command] != NONE;
}

static bool is_traced(const dc_job *j)
{
    return dc_log_on(j->log, DC_CH_EXCHANGE);
}

static double ms_between(uint64_t from, uint64_t to)
{
    return (double)(int64_t)(to - from) / 1e6;
}

/* One line: what it is, when it was performed since the first one of the run began, how long it was waited for. */
static void trace(const dc_cpu_exchanges *e, const dc_job *j, const bucket *b, double waited)
{
    int64_t elements = 0;
    for (uint32_t i = b->begun - b->piece; i < b->begun; i++)
        elements += e->at[b->first + i].at.outer * e->at[b->first + i].at.inner;
    const double from = ms_between(e->begun_ns, b->time.begun_ns);
    const double to = ms_between(e->begun_ns, b->time.ended_ns);
    dc_logf(
        j->log, DC_CH_EXCHANGE,
        "%s: %u arrays, %lld bytes: from %.3f to %.3f ms, %.3f ms under way, %.3f ms waited for",
        b->x.label, b->piece, (long long)(elements * (int64_t)dc_dtype_size(b->x.dtype)), from, to,
        to - from, waited);
}

static dc_status end(dc_cpu_exchanges *e, dc_job *j, bucket *b)
{
    const dc_ticket ticket = b->ticket;
    b->ticket = 0;
    b->ended = b->begun;
    if (ticket == 0)
        return DC_OK;
    if (!is_traced(j))
        return dc_world_end(j->world, j, ticket);
    const uint64_t begun = dc_clock_ns();
    const dc_status status = dc_world_end(j->world, j, ticket);
    if (status == DC_OK)
        trace(e, j, b, ms_between(begun, dc_clock_ns()));
    return status;
}

/* Those reached and not begun. */
static dc_status begin(dc_cpu_exchanges *e, dc_job *j, bucket *b)
{
    if (b->begun == b->reached)
        return DC_OK;
    DC_TRY(end(e, j, b)); /* a piece of it that went before */
    for (uint32_t i = b->begun; i < b->reached; i++)
        e->room[i - b->begun] = e->at[b->first + i].at;
    b->x.n = b->piece = b->reached - b->begun;
    b->x.at = e->room;
    if (is_traced(j)) {
        b->x.time = &b->time;
        e->begun_ns = e->begun_ns == 0 ? dc_clock_ns() : e->begun_ns;
    }
    b->begun = b->reached;
    return dc_world_begin(j->world, j, &b->x, &b->ticket);
}

static dc_status settle(dc_cpu_exchanges *e, dc_job *j, bucket *b)
{
    DC_TRY(begin(e, j, b));
    return end(e, j, b);
}

dc_status dc_cpu_exchange_reach(dc_cpu_exchanges *e, dc_job *j, uint32_t command,
                                const dc_host_step *s, void *const *place)
{
    one *x = &e->at[e->number[command]];
    bucket *b = &e->bucket[x->bucket];
    const dc_host_call *c = &s->call;
    if (b->reached == 0)
        e->pending++;
    dc_exchange_describe(c->op, c->attr, &c->in[0], c->label, place[0], place[1], &b->x, &x->at);
    if (j->meeting != NULL) { /* as in dc_exchange_run */
        b->x.label = dc_op_row_of(c->op)->name;
        b->x.where = j->meeting;
        b->x.shape = 0;
    }
    b->reached = e->number[command] - b->first + 1;
    return b->reached == b->n ? begin(e, j, b) : DC_OK;
}

/* All that are reached; of buckets that are not complete what comes later is exchanged by itself. */
static dc_status settle_all(dc_cpu_exchanges *e, dc_job *j)
{
    for (uint32_t i = 0; i < e->nbucket; i++)
        DC_TRY(settle(e, j, &e->bucket[i]));
    return DC_OK;
}

dc_status dc_cpu_exchange_await(dc_cpu_exchanges *e, dc_job *j, uint32_t command)
{
    if (e->pending == 0)
        return DC_OK;
    if (e->inside[command])
        return settle_all(e, j);
    for (uint32_t k = e->first_wait[command]; k < e->first_wait[command + 1]; k++) {
        const uint32_t number = e->wait[k];
        bucket *b = &e->bucket[e->at[number].bucket];
        if (number - b->first >= b->ended)
            DC_TRY(settle(e, j, b));
    }
    return DC_OK;
}

void dc_cpu_exchanges_begin(dc_cpu_exchanges *e)
{
    for (uint32_t i = 0; e != NULL && e->pending > 0 && i < e->nbucket; i++) {
        bucket *b = &e->bucket[i];
        b->reached = b->begun = b->ended = 0;
        b->ticket = 0;
    }
    if (e != NULL)
        e->pending = e->begun_ns = 0;
}

dc_status dc_cpu_exchanges_finish(dc_cpu_exchanges *e, dc_job *j, dc_status status, bool paused)
{
    for (uint32_t i = 0; e != NULL && e->pending > 0 && i < e->nbucket; i++) {
        bucket *b = &e->bucket[i];
        const dc_status last = status == DC_OK && !paused ? settle(e, j, b) : end(e, j, b);
        status = status == DC_OK ? last : status;
    }
    return status;
}
