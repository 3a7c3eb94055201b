/*
 * SEND and RECV: those that follow each other in the queue are under way together, so that two ranks may both begin to send and
 * then to receive. In one direction between two ranks they keep their order.
 *
 * Each is a state, of which a step does what can be done without waiting: over the board a chunk whenever a half is free or
 * filled, by messages some chunks ahead, in memory of its own.
 */
#include "core/base/heap.h"
#include "core/world/post.h"

enum { BOARD_CHUNK = 256 << 10, AHEAD = 8 };

struct dc_pair {
    dc_pair *next; /* of those that are kept */
    dc_call c;
    dc_row row;
    int rank; /* the other one */
    bool sends, local;
    enum {
        NEW,
        ASKED,
        RUNNING,
        DONE
    } state;                 /* ASKED: what the other one says it is has not come yet */
    int64_t most;            /* elements of a chunk */
    int64_t begun, ended;    /* elements of chunks that are begun, and done */
    uint32_t nbegun, nended; /* these chunks */
    dc_post post[AHEAD];
    dc_message room[AHEAD][2];
    dc_head head; /* of the other one */
    char *buffer; /* of AHEAD chunks */
};

dc_pair *dc_pair_new(const dc_call *c)
{
    dc_pair *p = dc_try_alloc(sizeof *p);
    if (p == NULL)
        return NULL;
    const dc_board *b = c->w->board;
    *p = (dc_pair){.c = *c, .rank = c->team->rank[c->x->peer], .sends = c->x->kind == DC_SEND};
    p->local = b != NULL && b->local[p->rank] >= 0;
    p->row = p->sends ? dc_row_from(&p->c, 0, 1) : dc_row_to(&p->c, 0, 1);
    const int64_t room = p->local ? dc_min_i64(BOARD_CHUNK, (int64_t)b->half) : DC_MESSAGE_BYTES;
    p->most = dc_max_i64(1, room / (int64_t)c->size);
    p->most = dc_min_i64(p->most, dc_max_i64(1, c->elements));
    for (int k = 0; k < AHEAD; k++)
        p->post[k].at = p->room[k];
    p->buffer = p->local ? NULL : dc_try_alloc((size_t)p->most * AHEAD * c->size);
    if (p->local || p->buffer != NULL)
        return p;
    dc_xfree(p);
    return NULL;
}

void dc_pair_free(dc_pair *p)
{
    while (p != NULL) {
        dc_pair *next = p->next;
        dc_xfree(p->buffer);
        dc_xfree(p);
        p = next;
    }
}

bool dc_pair_done(const dc_pair *p)
{
    return p->state == DONE;
}

bool dc_pair_waits_for(const dc_pair *p, const dc_pair *before)
{
    return before->state != DONE && before->rank == p->rank && before->sends == p->sends;
}

/* ---- over the board -------------------------------------------------------------------------------------- */

static bool board_step(dc_pair *p, bool *moved)
{
    dc_board *b = p->c.w->board;
    while (p->state != DONE) {
        const int64_t n = dc_min_i64(p->most, p->c.elements - p->ended);
        if (p->sends ? !dc_board_is_free(b) : !dc_board_has(b, p->rank))
            return true;
        if (p->sends) {
            if (!dc_shared_put(&p->c, &p->row, p->ended, n))
                return false;
            dc_board_give(b, p->rank, dc_board_opened(b));
            dc_world_count_sent(p->c.w, (size_t)n * p->c.size);
        } else if (!dc_shared_take(&p->c, p->rank, &p->row, p->ended, n)) {
            return false;
        }
        *moved = true;
        p->ended += n;
        if (p->ended >= p->c.elements)
            p->state = DONE;
    }
    return true;
}

/* ---- by messages ------------------------------------------------------------------------------------------- */

/* Heads go first; who receives compares it before it asks for more. */
static bool begin_messages(dc_pair *p)
{
    dc_call *c = &p->c;
    if (p->sends) {
        p->state = RUNNING;
        return dc_post_send(c, &p->post[0], p->rank, DC_TAG_HEAD, &c->head, sizeof c->head);
    }
    p->state = ASKED;
    return dc_post_recv(c, &p->post[0], p->rank, DC_TAG_HEAD, &p->head, sizeof p->head);
}

static char *buffer_of(const dc_pair *p, uint32_t chunk)
{
    return p->buffer + (size_t)(chunk % AHEAD) * (size_t)p->most * p->c.size;
}

static bool begin_chunk(dc_pair *p)
{
    dc_post *post = &p->post[p->nbegun % AHEAD];
    char *at = buffer_of(p, p->nbegun++);
    const int64_t n = dc_min_i64(p->most, p->c.elements - p->begun);
    const size_t bytes = (size_t)n * p->c.size;
    if (p->sends)
        dc_row_read(&p->row, p->begun, n, at);
    p->begun += n;
    return p->sends ? dc_post_send(&p->c, post, p->rank, DC_TAG_DATA, at, bytes)
                    : dc_post_recv(&p->c, post, p->rank, DC_TAG_DATA, at, bytes);
}

static void end_chunk(dc_pair *p)
{
    const int64_t n = dc_min_i64(p->most, p->c.elements - p->ended);
    if (!p->sends)
        dc_row_write(&p->row, p->ended, n, buffer_of(p, p->nended));
    p->ended += n;
    p->nended++;
}

static bool message_step(dc_pair *p, bool *moved)
{
    if (p->state == NEW && !begin_messages(p))
        return false;
    for (;;) {
        while (p->state == RUNNING && p->begun < p->c.elements && p->nbegun - p->nended < AHEAD)
            if (!begin_chunk(p))
                return false;
        dc_post *first = &p->post[p->nended % AHEAD];
        if (!dc_post_test(&p->c, first))
            return false;
        if (first->n > 0)
            return true;
        *moved = true;
        if (p->state == ASKED) {
            if (!dc_call_agrees(&p->c, &p->head, p->rank))
                return false;
            p->state = RUNNING;
            continue;
        }
        if (p->nended < p->nbegun)
            end_chunk(p);
        if (p->ended >= p->c.elements) {
            p->state = DONE;
            return true;
        }
    }
}

bool dc_pair_step(dc_pair *p, bool *moved)
{
    if (p->state == DONE)
        return true;
    return p->local ? board_step(p, moved) : message_step(p, moved);
}

void dc_pair_give_up(dc_pair *p)
{
    for (int k = 0; k < AHEAD && !p->local; k++)
        dc_post_drop(&p->c, &p->post[k]);
    p->next = p->c.w->kept;
    p->c.w->kept = p;
}

bool dc_pair_run(dc_call *c)
{
    dc_watch watch = {0};
    dc_pair *p = dc_pair_new(c);
    bool ok = p != NULL || dc_world_no_memory(c);
    while (ok && !dc_pair_done(p)) {
        bool moved = false;
        ok = dc_pair_step(p, &moved) &&
             (moved || dc_pair_done(p) || dc_watch_pause(&watch, c, p->rank));
        if (moved)
            watch = (dc_watch){0};
    }
    if (ok)
        dc_pair_free(p);
    else if (p != NULL)
        dc_pair_give_up(p);
    return ok;
}
