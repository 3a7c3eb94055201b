/*
 * Exchanges of members on several hosts, by messages, a chunk at a time. Several chunks are under way, so that what one
 * message waits for, the others' bytes in front of it and a thread that looks late, leaves no gap between messages.
 *
 * Each member sends the others their parts directly, so a part is combined on one rank, in the order of members, and rounded
 * once. That moves as many bytes as a ring: (n - 1) / n of all to combine them, and as many to gather them.
 *
 * Where the hosts have equal numbers of members, those on one host combine what they have first and share the work: each
 * exchanges one part with the members that are in its place on the other hosts. Between the two steps 16-bit floats are f32.
 */
#include "core/base/heap.h"
#include "core/world/post.h"

#include <string.h>

enum {
    HOST_CHUNK = 256 << 10,
    MOST_CHUNK = 4 << 20,
    ALIGN = 64,
    LAG = 4,             /* chunks from one step of a chunk to its next */
    SLOTS = 2 * LAG + 1, /* chunks under way */
};

/* A chunk, in elements: where it begins, how many, and of them those that this member exchanges (all_reduce). */
typedef struct chunk {
    int64_t at, n;
    int64_t begin, own; /* the part of this member's place */
    int half;           /* of the board, where it is */
} chunk;

/* What a chunk needs while it is under way. */
typedef struct slot {
    chunk u;
    dc_post post, gather;
    char *part, *in, *out; /* what is sent, received, combined */
} slot;

typedef struct work {
    dc_call *c;
    bool by_host;                    /* several members on each host share the work */
    int n, me;                       /* members that exchange messages; this one */
    const int *member;               /* of each its number in the team; NULL: the same */
    dc_combine_fn *inside, *between; /* on a host; of what hosts have */
    size_t size;                     /* of an element between hosts */
    int64_t most;                    /* elements of a chunk */
    int lag, late;  /* chunks from the first step of one to its second, its third */
    slot at[SLOTS]; /* chunks by their number */
    const char **from;
    dc_head *heads;
} work;

static int rank_of(const work *k, int i)
{
    const dc_team *t = k->c->team;
    return t->rank[k->member != NULL ? k->member[i] : i];
}

static bool combines(const dc_call *c)
{
    return c->x->kind == DC_ALL_REDUCE || c->x->kind == DC_REDUCE_SCATTER;
}

/*
 * Between two each gives the other all it has, and both combine all of it: as many bytes as two steps would move, and half the
 * messages. Not where 16-bit floats are f32 on their way to be combined.
 */
static bool is_mutual(const work *k)
{
    return k->n == 2 && k->c->x->kind == DC_ALL_REDUCE && k->size == k->c->size;
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* Is a chunk one array, and not a part for each member? */
static bool is_one_part(const dc_call *c)
{
    return c->x->kind == DC_ALL_REDUCE || c->x->kind == DC_BROADCAST;
}

/*
 * How many elements a chunk has of each part: a message each; more where those of a host share the work, since fewer chunks are
 * under way then.
 */
static int64_t chunk_size(const work *k)
{
    const dc_call *c = k->c;
    const bool whole = is_one_part(c);
    const int parts = whole ? 1 : k->n;
    size_t bytes = k->by_host ? HOST_CHUNK : DC_MESSAGE_BYTES;
    if (c->x->kind == DC_ALL_REDUCE && (k->by_host || !is_mutual(k)))
        bytes *= (size_t)k->n;
    if (bytes * (size_t)parts > MOST_CHUNK)
        bytes = MOST_CHUNK / (size_t)parts;
    if (k->by_host) {
        const size_t room = c->w->board->half / (size_t)(whole ? 1 : c->team->n);
        bytes = bytes < room ? bytes : room;
    }
    const int64_t n = dc_max_i64(1, (int64_t)(bytes / c->size));
    return dc_min_i64(n, dc_max_i64(1, c->elements));
}

static char *cut(char **at, size_t bytes)
{
    char *p = *at;
    *at += dc_align_up(bytes, ALIGN);
    return p;
}

/* Everything out of the world's scratch memory, which stays for the next exchange. */
static bool make_room(work *k)
{
    dc_world *w = k->c->w;
    const size_t n = (size_t)k->n, parts = is_one_part(k->c) ? 1 : n;
    const size_t used = (size_t)(k->lag + k->late + 1);
    const size_t bytes = dc_align_up((size_t)k->most * parts * k->size + n * k->size, ALIGN);
    const size_t messages = 2 * n * dc_post_count((size_t)k->most * k->size);
    const size_t posts = 2 * (messages * sizeof(dc_message) + ALIGN);
    const size_t all =
        used * (3 * bytes + posts) + n * sizeof *k->from + n * sizeof *k->heads + 4 * ALIGN;
    if (w->scratch_bytes < all) {
        dc_xfree(w->scratch);
        w->scratch_bytes = all;
        w->scratch = dc_try_alloc(w->scratch_bytes);
        if (w->scratch == NULL) {
            w->scratch_bytes = 0;
            return dc_world_no_memory(k->c);
        }
    }
    char *at = w->scratch + (ALIGN - (uintptr_t)w->scratch % ALIGN) % ALIGN;
    for (size_t i = 0; i < used; i++) {
        slot *s = &k->at[i];
        s->part = cut(&at, bytes);
        s->in = cut(&at, bytes);
        s->out = cut(&at, bytes);
        s->post.at = (dc_message *)(void *)cut(&at, messages * sizeof(dc_message));
        s->gather.at = (dc_message *)(void *)cut(&at, messages * sizeof(dc_message));
    }
    k->from = (const char **)(void *)cut(&at, n * sizeof *k->from);
    k->heads = (dc_head *)(void *)cut(&at, n * sizeof *k->heads);
    return true;
}

/* Members in a place that is the same on all hosts, or all members. */
static bool begin_work(dc_call *c, work *k)
{
    const dc_team *t = c->team;
    const bool places = t->nhost > 0 && c->x->kind != DC_ALL_TO_ALL;
    *k = (work){.c = c, .n = places ? t->nhost : t->n, .me = places ? t->at_host : t->me};
    k->by_host = places && t->nlocal > 1;
    k->member = places ? t->beside + t->place * t->nhost : NULL;
    const dc_dtype type = c->x->dtype, between = k->by_host ? dc_combine_between(type) : type;
    k->size = combines(c) ? dc_dtype_size(between) : c->size;
    if (combines(c)) {
        k->inside = dc_combine_find(c->x->combine, type, between);
        k->between = dc_combine_find(c->x->combine, between, type);
    }
    /* The memory that a host shares has room for two chunks. */
    k->lag = k->by_host ? 1 : is_mutual(k) ? 2 * LAG : LAG;
    k->late = k->by_host || c->x->kind != DC_ALL_REDUCE || is_mutual(k) ? 0 : LAG;
    k->most = chunk_size(k);
    return make_room(k);
}

/* Compares heads with the members from `first` on, before `end`. */
static bool exchange_heads(work *k, int first, int end)
{
    dc_call *c = k->c;
    dc_post *p = &k->at[0].post;
    for (int i = first; i < end; i++)
        if (i != k->me &&
            (!dc_post_recv(c, p, rank_of(k, i), DC_TAG_HEAD, &k->heads[i], sizeof *k->heads) ||
             !dc_post_send(c, p, rank_of(k, i), DC_TAG_HEAD, &c->head, sizeof c->head)))
            return false;
    if (!dc_post_finish(c, p))
        return false;
    for (int i = first; i < end; i++)
        if (i != k->me && !dc_call_agrees(c, &k->heads[i], rank_of(k, i)))
            return false;
    return true;
}

/* ---- parts of a chunk ----------------------------------------------------------------------------------- */

/* Where that of member i begins, in elements: of all_reduce it is cut, of others each has n. */
static int64_t part_at(const work *k, const chunk *u, int i)
{
    return k->c->x->kind == DC_ALL_REDUCE ? dc_shared_part(u->own, i, k->n) : i * u->n;
}

static size_t part_bytes(const work *k, const chunk *u, int i, size_t size)
{
    return (size_t)(part_at(k, u, i + 1) - part_at(k, u, i)) * size;
}

/* Begins with the next member, so that not all send to one. */
static bool send_parts(work *k, const chunk *u, dc_post *p, const char *from, size_t size)
{
    for (int j = 1; j < k->n; j++) {
        const int i = (k->me + j) % k->n;
        if (!dc_post_send(k->c, p, rank_of(k, i), DC_TAG_DATA,
                          from + (size_t)part_at(k, u, i) * size, part_bytes(k, u, i, size)))
            return false;
    }
    return true;
}

/* The same part to all. */
static bool send_own(work *k, dc_post *p, const char *from, size_t bytes)
{
    for (int j = 1; j < k->n; j++)
        if (!dc_post_send(k->c, p, rank_of(k, (k->me + j) % k->n), DC_TAG_DATA, from, bytes))
            return false;
    return true;
}

/* One from each: as large as this member's, behind each other, or each its own, where it belongs. */
static bool recv_own(work *k, const chunk *u, dc_post *p, char *to)
{
    const size_t bytes = part_bytes(k, u, k->me, k->size);
    for (int j = 1; j < k->n; j++) {
        const int i = (k->me + k->n - j) % k->n;
        if (!dc_post_recv(k->c, p, rank_of(k, i), DC_TAG_DATA, to + (size_t)i * bytes, bytes))
            return false;
    }
    return true;
}

static bool recv_parts(work *k, const chunk *u, dc_post *p, char *to)
{
    const size_t size = k->c->size;
    for (int j = 1; j < k->n; j++) {
        const int i = (k->me + k->n - j) % k->n;
        if (!dc_post_recv(k->c, p, rank_of(k, i), DC_TAG_DATA, to + (size_t)part_at(k, u, i) * size,
                          part_bytes(k, u, i, size)))
            return false;
    }
    return true;
}

static dc_row memory(char *base, size_t size)
{
    return (dc_row){.base = base, .size = size};
}

/* What has come for this member's part, with its own. */
static void combine_parts(work *k, const slot *s, dc_row *to, int64_t to_at)
{
    const chunk *u = &s->u;
    const int64_t begin = part_at(k, u, k->me), n = part_at(k, u, k->me + 1) - begin;
    dc_row own = memory(s->part, k->size);
    for (int i = 0; i < k->n; i++)
        k->from[i] = s->in + (size_t)i * (size_t)n * k->size;
    dc_row_combine(k->between, to, to_at, &own, begin, n, k->from, k->n, k->me, k->size);
}

/* ---- kinds: the beginning of a chunk and its end -------------------------------------------------------- */

/* What this member has of a chunk, or of its place's part where those on its host share it. */
static bool begin_part(work *k, slot *s)
{
    dc_call *c = k->c;
    chunk *u = &s->u;
    const dc_team *t = c->team;
    dc_row own = dc_row_from(c, 0, 1), part = memory(s->part, k->size);
    u->begin = 0;
    u->own = u->n;
    if (k->by_host) {
        u->begin = dc_shared_part(u->n, t->place, t->nlocal);
        u->own = dc_shared_part(u->n, t->place + 1, t->nlocal) - u->begin;
        if (!dc_shared_reduce_part(c, k->inside, &own, u->at, u->n, &part, 0))
            return false;
        u->half = dc_board_opened(c->w->board);
    } else {
        dc_row_read(&own, u->at, u->n, s->part);
    }
    return true;
}

static bool begin_all_reduce(work *k, slot *s)
{
    return begin_part(k, s) && recv_own(k, &s->u, &s->post, s->in) &&
           send_parts(k, &s->u, &s->post, s->part, k->size);
}

static bool middle_all_reduce(work *k, slot *s)
{
    dc_call *c = k->c;
    dc_row out = memory(s->out, c->size);
    const int64_t mine = part_at(k, &s->u, k->me);
    if (!dc_post_finish(c, &s->post))
        return false;
    combine_parts(k, s, &out, mine);
    return recv_parts(k, &s->u, &s->gather, s->out) &&
           send_own(k, &s->gather, s->out + (size_t)mine * c->size,
                    part_bytes(k, &s->u, k->me, c->size));
}

static bool end_all_reduce(work *k, slot *s)
{
    dc_call *c = k->c;
    const chunk *u = &s->u;
    dc_row to = dc_row_to(c, 0, 1);
    if (!dc_post_finish(c, &s->gather))
        return false;
    dc_row_write(&to, u->at + u->begin, u->own, s->out);
    return !k->by_host || dc_shared_gather_parts(c, &to, u->at, u->n, u->half);
}

static bool begin_mutual(work *k, slot *s)
{
    if (!begin_part(k, s))
        return false;
    const size_t bytes = (size_t)s->u.own * k->size;
    const int other = rank_of(k, 1 - k->me);
    return dc_post_recv(k->c, &s->post, other, DC_TAG_DATA, s->in, bytes) &&
           dc_post_send(k->c, &s->post, other, DC_TAG_DATA, s->part, bytes);
}

static bool end_mutual(work *k, slot *s)
{
    dc_call *c = k->c;
    const chunk *u = &s->u;
    dc_row to = dc_row_to(c, 0, 1), own = memory(s->part, k->size);
    if (!dc_post_finish(c, &s->post))
        return false;
    k->from[1 - k->me] = s->in;
    dc_row_combine(k->between, &to, u->at + u->begin, &own, 0, u->own, k->from, 2, k->me, k->size);
    return !k->by_host || dc_shared_gather_parts(c, &to, u->at, u->n, u->half);
}

/* The parts of all members that exchange messages, one after the other. */
static void read_parts(work *k, const chunk *u, char *to)
{
    for (int i = 0; i < k->n; i++) {
        dc_row from = dc_row_from(k->c, k->member != NULL ? k->member[i] : i, k->c->team->n);
        dc_row_read(&from, u->at, u->n, to + (size_t)(i * u->n) * k->size);
    }
}

static bool begin_reduce_scatter(work *k, slot *s)
{
    const chunk *u = &s->u;
    dc_row part = memory(s->part, k->size);
    if (!k->by_host)
        read_parts(k, u, s->part);
    else if (!dc_shared_reduce_places(k->c, k->inside, u->at, u->n, &part))
        return false;
    return recv_own(k, u, &s->post, s->in) && send_parts(k, u, &s->post, s->part, k->size);
}

static bool end_reduce_scatter(work *k, slot *s)
{
    const chunk *u = &s->u;
    dc_row to = dc_row_to(k->c, 0, 1);
    if (!dc_post_finish(k->c, &s->post))
        return false;
    combine_parts(k, s, &to, u->at);
    return true;
}

static bool begin_all_gather(work *k, slot *s)
{
    const chunk *u = &s->u;
    dc_row own = dc_row_from(k->c, 0, 1);
    char *mine = s->in + (size_t)(k->me * u->n) * k->size;
    dc_row_read(&own, u->at, u->n, mine);
    return recv_parts(k, u, &s->post, s->in) && send_own(k, &s->post, mine, (size_t)u->n * k->size);
}

static void write_parts(work *k, const chunk *u, const char *from)
{
    for (int i = 0; i < k->n; i++) {
        dc_row to = dc_row_to(k->c, k->member != NULL ? k->member[i] : i, k->c->team->n);
        dc_row_write(&to, u->at, u->n, from + (size_t)(i * u->n) * k->size);
    }
}

static bool end_all_gather(work *k, slot *s)
{
    const chunk *u = &s->u;
    if (!dc_post_finish(k->c, &s->post))
        return false;
    if (k->by_host)
        return dc_shared_gather_places(k->c, u->at, u->n, s->in);
    write_parts(k, u, s->in);
    return true;
}

static bool begin_all_to_all(work *k, slot *s)
{
    const chunk *u = &s->u;
    const size_t bytes = (size_t)u->n * k->size;
    read_parts(k, u, s->part);
    memcpy(s->in + (size_t)k->me * bytes, s->part + (size_t)k->me * bytes, bytes);
    return recv_parts(k, u, &s->post, s->in) && send_parts(k, u, &s->post, s->part, k->size);
}

static bool end_all_to_all(work *k, slot *s)
{
    const chunk *u = &s->u;
    if (!dc_post_finish(k->c, &s->post))
        return false;
    write_parts(k, u, s->in);
    return true;
}

/* ---- from one to others ----------------------------------------------------------------------------------- */

/* Where the root of a broadcast is: its place on its host, and its number among those who exchange messages. */
static void find_root(const dc_call *c, int *place, int *number)
{
    const dc_team *t = c->team;
    *place = t->place;
    *number = c->x->peer;
    for (int i = 0; i < t->nhost * t->nlocal; i++)
        if (t->beside[i] == c->x->peer) {
            *place = i / t->nhost;
            *number = i % t->nhost;
        }
}

static bool begin_broadcast(work *k, slot *s)
{
    const chunk *u = &s->u;
    dc_call *c = k->c;
    const size_t bytes = (size_t)u->n * k->size;
    dc_row own = dc_row_from(c, 0, 1);
    int place, root;
    find_root(c, &place, &root);
    if (place != c->team->place)
        return true;
    if (c->team->me != c->x->peer)
        return dc_post_recv(c, &s->post, rank_of(k, root), DC_TAG_DATA, s->in, bytes);
    dc_row_read(&own, u->at, u->n, s->in);
    return send_own(k, &s->post, s->in, bytes);
}

static bool end_broadcast(work *k, slot *s)
{
    const chunk *u = &s->u;
    dc_call *c = k->c;
    dc_row to = dc_row_to(c, 0, 1), in = memory(s->in, k->size);
    int place, root;
    find_root(c, &place, &root);
    if (place != c->team->place)
        return dc_shared_take(c, c->team->rank[c->team->local[place]], &to, u->at, u->n);
    if (!dc_post_finish(c, &s->post))
        return false;
    dc_row_write(&to, u->at, u->n, s->in);
    return !k->by_host || dc_shared_hand_on(c, &in, 0, u->n);
}

/* ---- the exchange ------------------------------------------------------------------------------------------ */

/* Each hears what it is to the others, before anything else comes from them. */
static bool compare_heads(work *k)
{
    dc_call *c = k->c;
    const int peer = c->x->peer;
    int place, root;
    switch (c->x->kind) {
    case DC_BROADCAST:
        find_root(c, &place, &root);
        if (place != c->team->place)
            return true;
        return c->team->me == peer ? exchange_heads(k, 0, k->n) : exchange_heads(k, root, root + 1);
    case DC_ALL_REDUCE:
    case DC_REDUCE_SCATTER:
    case DC_ALL_GATHER:
    case DC_ALL_TO_ALL:
        return exchange_heads(k, 0, k->n);
    case DC_SEND:
    case DC_RECV:
        break;
    }
    return false;
}

/* The steps of a chunk. */
static const struct kind {
    bool (*begin)(work *k, slot *s);
    bool (*middle)(work *k, slot *s); /* NULL: there is none */
    bool (*end)(work *k, slot *s);
} kinds[] = {
    [DC_ALL_REDUCE] = {begin_all_reduce, middle_all_reduce, end_all_reduce},
    [DC_REDUCE_SCATTER] = {begin_reduce_scatter, NULL, end_reduce_scatter},
    [DC_ALL_GATHER] = {begin_all_gather, NULL, end_all_gather},
    [DC_ALL_TO_ALL] = {begin_all_to_all, NULL, end_all_to_all},
    [DC_BROADCAST] = {begin_broadcast, NULL, end_broadcast},
}, mutual = {begin_mutual, NULL, end_mutual};

/* Each chunk takes its second step when `lag` others have taken their first, and its third `late` later. */
static bool run_chunks(work *k)
{
    const struct kind *kind = is_mutual(k) ? &mutual : &kinds[k->c->x->kind];
    const int64_t all = k->c->elements, n = dc_max_i64(1, (all + k->most - 1) / k->most);
    const int used = k->lag + k->late + 1;
    for (int64_t i = 0; i < n + k->lag + k->late; i++) {
        slot *first = &k->at[i % used], *second = &k->at[(i + used - k->lag) % used],
             *third = &k->at[(i + 1) % used];
        if (i < n) {
            first->u = (chunk){.at = i * k->most, .n = dc_min_i64(k->most, all - i * k->most)};
            if (!kind->begin(k, first))
                return false;
        }
        if (i >= k->lag && i < n + k->lag && kind->middle != NULL && !kind->middle(k, second))
            return false;
        if (i >= k->lag + k->late && !kind->end(k, third))
            return false;
    }
    return true;
}

bool dc_messages_run(dc_call *c)
{
    work k;
    if (c->x->kind == DC_SEND || c->x->kind == DC_RECV)
        return dc_pair_run(c);
    if (!begin_work(c, &k))
        return false;
    const bool ok = compare_heads(&k) && run_chunks(&k);
    for (int i = 0; i < SLOTS; i++) {
        dc_post_drop(c, &k.at[i].post);
        dc_post_drop(c, &k.at[i].gather);
    }
    return ok && (!k.by_host || c->x->kind != DC_BROADCAST || dc_shared_await_read(c));
}
