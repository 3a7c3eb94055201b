/*
 * The board: memory that the ranks of one host share, and how they pass it from one to another.
 *
 * Each rank has a slot of two halves, which it alone writes. `give` counts up put[src][dst], so dst knows that there is
 * something to read, and in which half; dst counts up done[src][dst] when it has read, so src may write that half again. The
 * counters belong to pairs, not to groups: any sequence of groups works, as long as both of a pair begin the exchanges they
 * have in common in one order.
 */
#ifndef DC_CORE_WORLD_BOARD_H
#define DC_CORE_WORLD_BOARD_H

#include "core/base/job.h"

#include <stdatomic.h>

struct dc_call;
struct dc_head;

enum { DC_BOARD_LINE = 64, DC_BOARD_HEAD = 256, DC_BOARD_TEXT = 400 };

typedef enum dc_board_state {
    DC_BOARD_ABSENT,
    DC_BOARD_HERE,
    DC_BOARD_ASKED, /* a signal asks it to end, which it does */
    DC_BOARD_CLOSED
} dc_board_state;

typedef struct dc_board_rank {
    _Alignas(DC_BOARD_LINE) _Atomic uint32_t state; /* dc_board_state */
    atomic_bool knows, said;                        /* of a failure; to whom it concerns */
    int pid;
    uint64_t space; /* in which that is the number of a process */
} dc_board_rank;

typedef struct dc_board_pair { /* what src has put for dst */
    _Alignas(DC_BOARD_LINE) _Atomic uint64_t put;
    uint8_t half[8]; /* of the last ones, by their number */
    _Alignas(DC_BOARD_LINE) _Atomic uint64_t done;
} dc_board_pair;

typedef struct dc_board {
    int n, me;  /* ranks on this host; this one */
    int *rank;  /* of each its rank in the world */
    int *local; /* of each rank of the world which of them it is; -1 none */
    char *segment;
    size_t half; /* bytes of data in a half */
    /* Of this rank alone. */
    int next;              /* half to be written next */
    uint64_t *put, *taken; /* by dst; by src */
    const char **from;     /* room for exchanges: two addresses for each rank */
    uint64_t *due[2];      /* what dst has to be done with before the half is written again */
} dc_board;

/* How large the segment is for n ranks. */
size_t dc_board_bytes(int n);
/* NULL: no memory. `rank` of each rank of the world its host; the segment is zeroed, and stays the caller's. */
dc_board *dc_board_new(const int *host, int size, int rank);
void dc_board_attach(dc_board *b, void *segment, int pid, uint64_t space);
void dc_board_free(dc_board *b);

dc_board_rank *dc_board_rank_of(const dc_board *b, int local);
/* The failure of this host: 0 none, 1 one is being written, 2 its text is there. */
_Atomic uint32_t *dc_board_failed(const dc_board *b);
char *dc_board_failure(const dc_board *b);

/* A half to be written, when all have read what was in it; NULL: the world has failed. Its head is filled in. */
char *dc_board_open(struct dc_call *c);
/* Would that not wait? */
bool dc_board_is_free(const dc_board *b);
/* Which one that was, and where its data is. */
static inline int dc_board_opened(const dc_board *b)
{
    return b->next;
}
char *dc_board_half(const dc_board *b, int half);
/* It is there for this rank to read. */
void dc_board_give(dc_board *b, int rank, int half);
/* What this rank has given next; NULL: the world has failed, also because the heads differ. */
const char *dc_board_take(struct dc_call *c, int rank);
/* Is there something? */
bool dc_board_has(const dc_board *b, int rank);
/* All that was taken has been read. */
void dc_board_done(dc_board *b, int rank);
/* Waits until what was given has been read. */
bool dc_board_await_read(struct dc_call *c, int rank);

#endif
