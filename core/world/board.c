/* Memory shared by the ranks of a host (core/world/board.h): where everything lies, and the counters of pairs. */
#include "core/base/heap.h"
#include "core/world/world_impl.h"

#include <string.h>

/*
 * In a segment: head, ranks, pairs, slots. Containers often have 64 MiB for such memory, whose pages are taken when they are
 * touched: all slots together are smaller.
 */
enum { MOST_SLOTS = 32 << 20, LEAST_HALF = 64 << 10, MOST_HALF = 1 << 20 };

typedef struct board_front {
    _Alignas(DC_BOARD_LINE) _Atomic uint32_t failed;
    char failure[DC_BOARD_TEXT];
} board_front;

static size_t half_of(int n)
{
    const size_t fair = (size_t)MOST_SLOTS / 2 / (size_t)n / 4096 * 4096;
    return fair < LEAST_HALF ? LEAST_HALF : fair > MOST_HALF ? MOST_HALF : fair;
}

static size_t ranks_at(void)
{
    return sizeof(board_front);
}

static size_t pairs_at(int n)
{
    return ranks_at() + (size_t)n * sizeof(dc_board_rank);
}

static size_t slots_at(int n)
{
    return dc_align_up(pairs_at(n) + (size_t)n * (size_t)n * sizeof(dc_board_pair), 4096);
}

size_t dc_board_bytes(int n)
{
    return slots_at(n) + (size_t)n * 2 * (half_of(n) + DC_BOARD_HEAD);
}

_Static_assert(sizeof(dc_head) <= DC_BOARD_HEAD, "heads lie in front of halves");

dc_board *dc_board_new(const int *host, int size, int rank)
{
    int n = 0;
    for (int r = 0; r < size; r++)
        n += host[r] == host[rank];
    dc_board *b = dc_try_alloc(sizeof *b + (size_t)n * (4 * sizeof *b->put + 2 * sizeof *b->from) +
                               (size_t)(n + size) * sizeof *b->rank);
    if (b == NULL)
        return NULL;
    b->put = (uint64_t *)(b + 1);
    b->taken = b->put + n;
    b->due[0] = b->taken + n;
    b->due[1] = b->due[0] + n;
    b->from = (const char **)(b->due[1] + n);
    b->rank = (int *)(b->from + 2 * n);
    b->local = b->rank + n;
    for (int r = 0; r < size; r++) {
        b->local[r] = host[r] == host[rank] ? b->n : -1;
        if (r == rank)
            b->me = b->n;
        if (b->local[r] >= 0)
            b->rank[b->n++] = r;
    }
    b->half = half_of(n);
    return b;
}

void dc_board_attach(dc_board *b, void *segment, int pid, uint64_t space)
{
    b->segment = segment;
    dc_board_rank *mine = dc_board_rank_of(b, b->me);
    mine->pid = pid;
    mine->space = space;
    atomic_store(&mine->state, DC_BOARD_HERE);
}

void dc_board_free(dc_board *b)
{
    dc_xfree(b);
}

dc_board_rank *dc_board_rank_of(const dc_board *b, int local)
{
    return (dc_board_rank *)(void *)(b->segment + ranks_at()) + local;
}

_Atomic uint32_t *dc_board_failed(const dc_board *b)
{
    return &((board_front *)(void *)b->segment)->failed;
}

char *dc_board_failure(const dc_board *b)
{
    return ((board_front *)(void *)b->segment)->failure;
}

static dc_board_pair *pair_of(const dc_board *b, int src, int dst)
{
    return (dc_board_pair *)(void *)(b->segment + pairs_at(b->n)) + (size_t)src * (size_t)b->n +
           (size_t)dst;
}

/* The head of a half; its data is behind it. */
static char *half_at(const dc_board *b, int local, int half)
{
    return b->segment + slots_at(b->n) +
           ((size_t)local * 2 + (size_t)half) * (b->half + DC_BOARD_HEAD);
}

/* ---- passing ----------------------------------------------------------------------------------------- */

/*
 * Until dst has read what this rank has put, of that number. The root of a BROADCAST would wait for ever for another root: what
 * one has put for this rank that has not read yet is of another exchange.
 */
static bool await_done(dc_call *c, int dst, uint64_t number)
{
    dc_board *b = c->w->board;
    const _Atomic uint64_t *done = &pair_of(b, b->me, dst)->done;
    const dc_board_pair *back = pair_of(b, dst, b->me);
    const uint64_t next = b->taken[dst] + 1;
    dc_watch p = {0};
    if (c->x->kind != DC_BROADCAST)
        return dc_watch_word(c, done, number, b->rank[dst]);
    while (atomic_load_explicit(done, memory_order_acquire) < number) {
        if (atomic_load_explicit(&back->put, memory_order_acquire) >= next &&
            atomic_load_explicit(done, memory_order_acquire) < number) {
            const char *half = half_at(b, dst, back->half[next % sizeof back->half]);
            if (!dc_call_agrees(c, (const dc_head *)(const void *)half, b->rank[dst]))
                return false;
        }
        if (!dc_watch_pause(&p, c, b->rank[dst]))
            return false;
    }
    return true;
}

char *dc_board_open(dc_call *c)
{
    dc_board *b = c->w->board;
    b->next = 1 - b->next;
    for (int dst = 0; dst < b->n; dst++)
        if (b->due[b->next][dst] > 0 && !await_done(c, dst, b->due[b->next][dst]))
            return NULL;
    memset(b->due[b->next], 0, (size_t)b->n * sizeof *b->due[0]);
    char *half = half_at(b, b->me, b->next);
    memcpy(half, &c->head, sizeof c->head);
    return half + DC_BOARD_HEAD;
}

bool dc_board_is_free(const dc_board *b)
{
    const uint64_t *due = b->due[1 - b->next];
    for (int dst = 0; dst < b->n; dst++)
        if (due[dst] > 0 &&
            atomic_load_explicit(&pair_of(b, b->me, dst)->done, memory_order_acquire) < due[dst])
            return false;
    return true;
}

bool dc_board_has(const dc_board *b, int rank)
{
    const int src = b->local[rank];
    return atomic_load_explicit(&pair_of(b, src, b->me)->put, memory_order_acquire) > b->taken[src];
}

char *dc_board_half(const dc_board *b, int half)
{
    return half_at(b, b->me, half) + DC_BOARD_HEAD;
}

void dc_board_give(dc_board *b, int rank, int half)
{
    const int dst = b->local[rank];
    dc_board_pair *p = pair_of(b, b->me, dst);
    const uint64_t number = ++b->put[dst];
    p->half[number % sizeof p->half] = (uint8_t)half;
    b->due[half][dst] = number;
    atomic_store_explicit(&p->put, number, memory_order_release);
}

const char *dc_board_take(dc_call *c, int rank)
{
    dc_board *b = c->w->board;
    const int src = b->local[rank];
    dc_board_pair *p = pair_of(b, src, b->me);
    const uint64_t number = b->taken[src] + 1;
    if (!dc_watch_word(c, &p->put, number, rank))
        return NULL;
    b->taken[src] = number;
    const char *half = half_at(b, src, p->half[number % sizeof p->half]);
    if (!dc_call_agrees(c, (const dc_head *)(const void *)half, rank))
        return NULL;
    return half + DC_BOARD_HEAD;
}

void dc_board_done(dc_board *b, int rank)
{
    const int src = b->local[rank];
    atomic_store_explicit(&pair_of(b, src, b->me)->done, b->taken[src], memory_order_release);
}

bool dc_board_await_read(dc_call *c, int rank)
{
    dc_board *b = c->w->board;
    const int dst = b->local[rank];
    return await_done(c, dst, b->put[dst]);
}
