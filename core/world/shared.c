/*
 * Exchanges of members that are on one host, through the board, a chunk at a time: while others read one half of a slot its
 * rank fills the other.
 *
 * A member reads what it has itself straight from the arrays. Elements are combined in the order of members, each on one
 * rank or, alike, on several: bits do not depend on who is fast.
 */
#include "core/world/world_impl.h"

#include <string.h>

/*
 * Bytes of a chunk that others read whole, and of one of which each reads its part: both halves stay in a core's cache. Of LITTLE
 * bytes or fewer each member combines everything, which saves waiting for each other once more.
 */
enum { CHUNK = 256 << 10, CHUNK_IN_PARTS = 512 << 10, LITTLE = 16 << 10 };

/* Elements of a chunk with `parts` parts. At least one: halves have room for a part of each of a thousand members. */
static int64_t chunk_of(const dc_call *c, int64_t parts, size_t most)
{
    const size_t room = most < c->w->board->half ? most : c->w->board->half;
    return dc_max_i64(1, (int64_t)(room / c->size) / parts);
}

static int rank_of(const dc_call *c, int place)
{
    return c->team->rank[c->team->local[place]];
}

static void give_all(dc_call *c, int half)
{
    const dc_team *t = c->team;
    for (int k = 1; k < t->nlocal; k++)
        dc_board_give(c->w->board, rank_of(c, (t->place + k) % t->nlocal), half);
}

/* The half that was filled just now. */
static void give_opened(dc_call *c)
{
    give_all(c, dc_board_opened(c->w->board));
}

static void done_all(dc_call *c)
{
    const dc_team *t = c->team;
    for (int k = 1; k < t->nlocal; k++)
        dc_board_done(c->w->board, rank_of(c, (t->place + k) % t->nlocal));
}

/* What each of the others has given, by place. */
static bool take_all(dc_call *c, const char **from)
{
    const dc_team *t = c->team;
    for (int k = 1; k < t->nlocal; k++) {
        const int place = (t->place + k) % t->nlocal;
        from[place] = dc_board_take(c, rank_of(c, place));
        if (from[place] == NULL)
            return false;
    }
    return true;
}

static void count_sent(dc_call *c, int64_t elements)
{
    dc_world_count_sent(c->w, c->x->about == NULL ? (size_t)elements * c->size : 0);
}

bool dc_shared_put(dc_call *c, dc_row *own, int64_t at, int64_t n)
{
    char *slot = dc_board_open(c);
    if (slot == NULL)
        return false;
    dc_row_read(own, at, n, slot);
    return true;
}

bool dc_shared_hand_on(dc_call *c, dc_row *own, int64_t at, int64_t n)
{
    if (!dc_shared_put(c, own, at, n))
        return false;
    give_opened(c);
    count_sent(c, n * (c->team->nlocal - 1));
    return true;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Each member combines all. */
static bool reduce_whole(dc_call *c, dc_combine_fn *fn, dc_row *own, dc_row *to, int64_t at,
                         int64_t n)
{
    const dc_team *t = c->team;
    const char **from = c->w->board->from;
    if (!dc_shared_hand_on(c, own, at, n) || !take_all(c, from))
        return false;
    dc_row_combine(fn, to, at, own, at, n, from, t->nlocal, t->place, c->size);
    done_all(c);
    return true;
}

bool dc_shared_reduce_part(dc_call *c, dc_combine_fn *fn, dc_row *own, int64_t at, int64_t n,
                           dc_row *to, int64_t to_at)
{
    const dc_team *t = c->team;
    const int64_t begin = dc_shared_part(n, t->place, t->nlocal),
                  end = dc_shared_part(n, t->place + 1, t->nlocal);
    const char **from = c->w->board->from;
    char *slot = dc_board_open(c);
    if (slot == NULL)
        return false;
    dc_row_read(own, at, begin, slot);
    dc_row_read(own, at + end, n - end, slot + (size_t)end * c->size);
    give_opened(c);
    if (!take_all(c, from))
        return false;
    for (int k = 0; k < t->nlocal; k++)
        from[k] += (size_t)begin * c->size;
    dc_row_combine(fn, to, to_at, own, at + begin, end - begin, from, t->nlocal, t->place, c->size);
    count_sent(c, n - (end - begin));
    return true;
}

bool dc_shared_gather_parts(dc_call *c, dc_row *to, int64_t at, int64_t n, int half)
{
    const dc_team *t = c->team;
    const int64_t begin = dc_shared_part(n, t->place, t->nlocal),
                  end = dc_shared_part(n, t->place + 1, t->nlocal);
    const char **from = c->w->board->from;
    dc_row_read(to, at + begin, end - begin,
                dc_board_half(c->w->board, half) + (size_t)begin * c->size);
    give_all(c, half);
    if (!take_all(c, from))
        return false;
    for (int k = 1; k < t->nlocal; k++) {
        const int place = (t->place + k) % t->nlocal;
        const int64_t b = dc_shared_part(n, place, t->nlocal),
                      e = dc_shared_part(n, place + 1, t->nlocal);
        dc_row_write(to, at + b, e - b, from[place] + (size_t)b * c->size);
    }
    done_all(c);
    count_sent(c, (end - begin) * (t->nlocal - 1));
    return true;
}

static bool all_reduce(dc_call *c)
{
    const dc_team *t = c->team;
    dc_combine_fn *fn = dc_combine_find(c->x->combine, c->x->dtype, c->x->dtype);
    const bool whole = (size_t)c->elements * c->size <= LITTLE;
    const int64_t chunk = chunk_of(c, 1, whole ? CHUNK : CHUNK_IN_PARTS);
    dc_row own = dc_row_from(c, 0, 1), to = dc_row_to(c, 0, 1);
    int64_t at = 0;
    do {
        const int64_t n = dc_min_i64(chunk, c->elements - at),
                      begin = dc_shared_part(n, t->place, t->nlocal);
        if (whole ? !reduce_whole(c, fn, &own, &to, at, n)
                  : !dc_shared_reduce_part(c, fn, &own, at, n, &to, at + begin) ||
                        !dc_shared_gather_parts(c, &to, at, n, dc_board_opened(c->w->board)))
            return false;
        at += n;
    } while (at < c->elements);
    return true;
}

/* For each member its part of the n elements of a chunk, one after the other; the place of this one stays as it was. */
static bool hand_parts_on(dc_call *c, int64_t at, int64_t n)
{
    const dc_team *t = c->team;
    char *slot = dc_board_open(c);
    if (slot == NULL)
        return false;
    for (int k = 1; k < t->nlocal; k++) {
        const int place = (t->place + k) % t->nlocal;
        dc_row part = dc_row_from(c, t->local[place], t->n);
        dc_row_read(&part, at, n, slot + (size_t)(place * n) * c->size);
    }
    give_opened(c);
    count_sent(c, n * (t->nlocal - 1));
    return true;
}

static bool reduce_scatter(dc_call *c)
{
    const dc_team *t = c->team;
    const char **from = c->w->board->from;
    dc_combine_fn *fn = dc_combine_find(c->x->combine, c->x->dtype, c->x->dtype);
    const int64_t chunk = chunk_of(c, t->nlocal, CHUNK_IN_PARTS);
    dc_row own = dc_row_from(c, t->me, t->n), to = dc_row_to(c, 0, 1);
    int64_t at = 0;
    do {
        const int64_t n = dc_min_i64(chunk, c->elements - at);
        if (!hand_parts_on(c, at, n) || !take_all(c, from))
            return false;
        for (int k = 0; k < t->nlocal; k++)
            from[k] += (size_t)(t->place * n) * c->size;
        dc_row_combine(fn, &to, at, &own, at, n, from, t->nlocal, t->place, c->size);
        done_all(c);
        at += n;
    } while (at < c->elements);
    return true;
}

/* ---- copies -------------------------------------------------------------------------------------------- */

static bool all_gather(dc_call *c)
{
    const dc_team *t = c->team;
    dc_board *b = c->w->board;
    const char **from = b->from;
    const int64_t chunk = chunk_of(c, 1, CHUNK);
    dc_row own = dc_row_from(c, 0, 1), own_to = dc_row_to(c, t->me, t->n);
    int64_t at = 0;
    do {
        const int64_t n = dc_min_i64(chunk, c->elements - at);
        if (!dc_shared_hand_on(c, &own, at, n))
            return false;
        dc_row_write(&own_to, at, n, dc_board_half(b, dc_board_opened(b)));
        if (!take_all(c, from))
            return false;
        for (int k = 1; k < t->nlocal; k++) {
            const int place = (t->place + k) % t->nlocal;
            dc_row to = dc_row_to(c, t->local[place], t->n);
            dc_row_write(&to, at, n, from[place]);
        }
        done_all(c);
        at += n;
    } while (at < c->elements);
    return true;
}

static bool all_to_all(dc_call *c)
{
    const dc_team *t = c->team;
    const char **from = c->w->board->from;
    const int64_t chunk = chunk_of(c, t->nlocal, CHUNK_IN_PARTS);
    dc_row own = dc_row_from(c, t->me, t->n), own_to = dc_row_to(c, t->me, t->n);
    int64_t at = 0;
    do {
        const int64_t n = dc_min_i64(chunk, c->elements - at);
        if (!hand_parts_on(c, at, n) || !take_all(c, from))
            return false;
        for (int k = 1; k < t->nlocal; k++) {
            const int place = (t->place + k) % t->nlocal;
            dc_row to = dc_row_to(c, t->local[place], t->n);
            dc_row_write(&to, at, n, from[place] + (size_t)(t->place * n) * c->size);
        }
        done_all(c);
        at += n;
    } while (at < c->elements);
    dc_row_copy(&own_to, &own, c->elements);
    return true;
}

bool dc_shared_take(dc_call *c, int rank, dc_row *to, int64_t at, int64_t n)
{
    const char *from = dc_board_take(c, rank);
    if (from == NULL)
        return false;
    dc_row_write(to, at, n, from);
    dc_board_done(c->w->board, rank);
    return true;
}

/* It is over when all have read: so each member learns of one that disagrees. */
static bool broadcast(dc_call *c)
{
    const dc_team *t = c->team;
    dc_row own = dc_row_from(c, 0, 1), to = dc_row_to(c, 0, 1);
    const int64_t chunk = chunk_of(c, 1, CHUNK);
    int64_t at = 0;
    do {
        const int64_t n = dc_min_i64(chunk, c->elements - at);
        if (t->me != c->x->peer) {
            if (!dc_shared_take(c, t->rank[c->x->peer], &to, at, n))
                return false;
        } else {
            if (!dc_shared_hand_on(c, &own, at, n))
                return false;
        }
        at += n;
    } while (at < c->elements);
    if (t->me != c->x->peer)
        return true;
    dc_row_copy(&to, &own, c->elements);
    return dc_shared_await_read(c);
}

/* ---- steps of exchanges between hosts ------------------------------------------------------------------ */

/* The member of a host that is in a place. */
static int beside(const dc_team *t, int place, int host)
{
    return t->beside[place * t->nhost + host];
}

bool dc_shared_reduce_places(dc_call *c, dc_combine_fn *fn, int64_t at, int64_t n, dc_row *to)
{
    const dc_team *t = c->team;
    const char **from = c->w->board->from;
    char *slot = dc_board_open(c);
    if (slot == NULL)
        return false;
    for (int k = 1; k < t->nlocal; k++)
        for (int h = 0; h < t->nhost; h++) {
            const int member = beside(t, (t->place + k) % t->nlocal, h);
            dc_row part = dc_row_from(c, member, t->n);
            dc_row_read(&part, at, n, slot + (size_t)(member * n) * c->size);
        }
    give_opened(c);
    if (!take_all(c, from))
        return false;
    const char **slots = from + t->nlocal; /* from[] moves */
    memcpy(slots, from, (size_t)t->nlocal * sizeof *from);
    for (int h = 0; h < t->nhost; h++) {
        const int member = beside(t, t->place, h);
        dc_row own = dc_row_from(c, member, t->n);
        for (int k = 0; k < t->nlocal; k++)
            if (k != t->place)
                from[k] = slots[k] + (size_t)(member * n) * c->size;
        dc_row_combine(fn, to, h * n, &own, at, n, from, t->nlocal, t->place, c->size);
    }
    done_all(c);
    count_sent(c, n * t->nhost * (t->nlocal - 1));
    return true;
}

bool dc_shared_gather_places(dc_call *c, int64_t at, int64_t n, const char *in)
{
    const dc_team *t = c->team;
    const char **from = c->w->board->from;
    char *slot = dc_board_open(c);
    if (slot == NULL)
        return false;
    memcpy(slot, in, (size_t)(n * t->nhost) * c->size);
    give_opened(c);
    if (!take_all(c, from))
        return false;
    from[t->place] = in;
    for (int k = 0; k < t->nlocal; k++)
        for (int h = 0; h < t->nhost; h++) {
            dc_row to = dc_row_to(c, beside(t, k, h), t->n);
            dc_row_write(&to, at, n, from[k] + (size_t)(h * n) * c->size);
        }
    done_all(c);
    count_sent(c, n * t->nhost * (t->nlocal - 1));
    return true;
}

bool dc_shared_await_read(dc_call *c)
{
    const dc_team *t = c->team;
    for (int k = 1; k < t->nlocal; k++)
        if (!dc_board_await_read(c, rank_of(c, (t->place + k) % t->nlocal)))
            return false;
    return true;
}

/* ---- the whole exchange ---------------------------------------------------------------------------------- */

bool dc_shared_run(dc_call *c)
{
    switch (c->x->kind) {
    case DC_ALL_REDUCE:
        return all_reduce(c);
    case DC_REDUCE_SCATTER:
        return reduce_scatter(c);
    case DC_ALL_GATHER:
        return all_gather(c);
    case DC_ALL_TO_ALL:
        return all_to_all(c);
    case DC_BROADCAST:
        return broadcast(c);
    case DC_SEND:
    case DC_RECV:
        return dc_pair_run(c);
    }
    return false;
}
