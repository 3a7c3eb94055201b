/*
 * The world: ranks, the processes or threads that run the same script, and what they do together. An engine brings bytes from one
 * to another (core/world/engine.h); what is built on it here is the same for all: collectives whose sums have one order,
 * limits of time, and the news that a rank has failed.
 *
 * A group is what ranks are when some axes of a mesh vary and the others stay. A mesh is an array of the ranks 0, 1 ... of
 * the world in row-major order. Members of a group are counted from 0 in the order of their ranks.
 *
 * All members of a group begin the same exchanges in the same order. An exchange is under way between dc_world_begin and
 * dc_world_end; meanwhile its memory is neither written by others nor, where it is a result, read. Several may be under
 * way; they are done in the order in which they were begun.
 */
#ifndef DC_CORE_WORLD_WORLD_H
#define DC_CORE_WORLD_WORLD_H

#include "core/base/job.h"
#include "core/base/type.h"

typedef struct dc_world dc_world;

enum { DC_MESH_AXES = 8 };

/* Ranks whose places in the mesh differ along the axes of the mask alone. */
typedef struct dc_group_axes {
    uint32_t naxis, mask;
    int64_t size[DC_MESH_AXES]; /* of the mesh */
} dc_group_axes;

typedef enum dc_exchange_kind {
    DC_ALL_REDUCE,     /* to[i] is what the from[i] of all members are together */
    DC_REDUCE_SCATTER, /* from [outer, n, inner], to [outer, inner]: of that, the part of this member */
    DC_ALL_GATHER,     /* from [outer, inner], to [outer, n, inner]: of each member its part */
    DC_ALL_TO_ALL, /* from, to [outer, n, inner]: part m is what member m has in the part of this one */
    DC_BROADCAST, /* to is the from of `peer`, which is NULL elsewhere */
    DC_SEND,      /* from goes to `peer`, */
    DC_RECV       /* which is received there */
} dc_exchange_kind;

typedef enum dc_combine {
    DC_COMBINE_SUM,
    DC_COMBINE_PROD,
    DC_COMBINE_MAX,
    DC_COMBINE_MIN
} dc_combine;

/* One array of an exchange. Elements are outer * inner of what a member has; from and to may be one place in ALL_REDUCE. */
typedef struct dc_transfer {
    const void *from;
    void *to;
    int64_t outer, inner;
} dc_transfer;

/* When an exchange was performed, on dc_clock_ns. */
typedef struct dc_exchange_time {
    uint64_t begun_ns, ended_ns;
} dc_exchange_time;

/* The arrays of a bucket are one exchange. */
typedef struct dc_exchange {
    dc_exchange_kind kind;
    dc_combine
        combine; /* of ALL_REDUCE and REDUCE_SCATTER; sums of 16-bit floats are made in f32 and rounded once */
    dc_dtype dtype;
    dc_group_axes axes;
    int peer; /* BROADCAST, SEND, RECV: number of a member */
    uint64_t
        shape; /* all say the same: of SEND and RECV the arrays, else which one of a function it is, or 0 */
    bool copied; /* of SEND: its arrays are, and nobody waits for its end */
    /* For messages: "all_reduce, train.lua:12", the same on all members; or "all_reduce" and its line, which may differ. */
    const char *label, *where; /* stay until the end */
    uint32_t n;
    const dc_transfer *at;  /* copied */
    dc_exchange_time *time; /* NULL, or written before it has ended */
    /* What members say to each other before this exchange, which is what they compare. NULL: it is one itself. */
    const struct dc_exchange *about;
} dc_exchange;

/* "all_reduce, train.lua:12": label and where. */
void dc_exchange_name(const dc_exchange *x, char *out, size_t size);

typedef uint64_t dc_ticket; /* 0: nothing is under way */

int dc_world_rank(const dc_world *w);
int dc_world_size(const dc_world *w);
const char *dc_world_host(const dc_world *w, int rank);

int64_t dc_group_size(const dc_group_axes *g);
bool dc_group_is_same(const dc_group_axes *a, const dc_group_axes *b);
/* The number of a rank in its group, and which rank the member of that group is. */
int64_t dc_group_member(const dc_group_axes *g, int rank);
int dc_group_rank(const dc_group_axes *g, int rank, int64_t member);

/*
 * A group of one is a copy, where from and to differ. Of a SEND that is copied the ticket is 0: what fails of it, exchanges
 * after it hear. WORLD: a rank has failed, disagrees or does not answer in time;
 * then every exchange that follows fails as well. end() waits, and looks now and then whether the job is to end.
 */
dc_status dc_world_begin(dc_world *w, dc_job *j, const dc_exchange *x, dc_ticket *out);
dc_status dc_world_end(dc_world *w, dc_job *j, dc_ticket t);
/* Both. */
dc_status dc_world_run(dc_world *w, dc_job *j, const dc_exchange *x);
/* Is it done, or has failed? */
bool dc_world_ended(dc_world *w, dc_ticket t);

/*
 * Do all ranks of the world say the same? WORLD otherwise, on all of them, with the first rank that differs from rank 0 and
 * both texts. `what` names it: "the graph of step".
 */
dc_status dc_world_agree(dc_world *w, dc_job *j, const char *what, uint64_t digest,
                         const char *text);
/* All have come here. */
dc_status dc_world_barrier(dc_world *w, dc_job *j, const char *what);

/*
 * Exchanges from device to device, which the world does not carry (direct.c). It is told when it has been opened whether the
 * device of this rank can, by all ranks. Where all can, members say before each exchange that is fit for it how they would
 * have it: it goes from device to device if all of them say so.
 */
dc_status dc_world_open_direct(dc_world *w, dc_job *j, bool can);
bool dc_world_is_direct(const dc_world *w);
/* Is the exchange fit for it? That depends on what it is alone, so members agree. */
bool dc_exchange_is_fit(const dc_exchange *x);

/* How a member would have an exchange. With what: 0 it has nothing yet, or a number that members have in common. */
typedef struct dc_direct_vote {
    bool can;
    uint64_t with;
} dc_direct_vote;

/*
 * Compares what members say of x and how they would have it: `all->can` where all can, `all->with` where they have the same,
 * else 0. Where the answer is no, x is to be carried out by dc_world_run, behind dc_world_voted.
 */
dc_status dc_world_vote(dc_world *w, dc_job *j, const dc_exchange *x, dc_direct_vote mine,
                        dc_direct_vote *all);
/* The next exchange has been voted on; who asks takes the answer. */
void dc_world_set_voted(dc_world *w, bool voted);
/* Before an exchange that this rank has by way of the host: the others hear of it, where they ask. */
dc_status dc_world_vote_for_host(dc_world *w, dc_job *j, const dc_exchange *x);
/* What members tell each other about x: `bytes` of each, one behind the other; or those of member `from`. */
dc_status dc_world_tell(dc_world *w, dc_job *j, const dc_exchange *x, const void *mine, void *all,
                        size_t bytes);
dc_status dc_world_tell_from(dc_world *w, dc_job *j, const dc_exchange *x, int from, void *text,
                             size_t bytes);
/*
 * Waits for something of x that the world does not do: until state(arg) is not 0. Negative: it has failed, of which the
 * world may know the reason soon; else `why` is. Ends as an exchange does, also by the death of a rank. A job of NULL: it
 * is told by the status alone.
 */
dc_status dc_world_await(dc_world *w, dc_job *j, const dc_exchange *x, int (*state)(void *),
                         void *arg, const char *const *why);
/* What goes on with the ranks of the world beside it is told of its end before it ends, on the thread that ends it. */
typedef struct dc_world_user {
    struct dc_world_user *next;
    void (*leave)(void *);
    void *arg;
} dc_world_user;
void dc_world_add_user(dc_world *w, dc_world_user *u);
void dc_world_remove_user(dc_world *w, dc_world_user *u);
/* No exchange is possible any more. */
bool dc_world_is_broken(dc_world *w);
/* Bytes that this rank has given to others without the world. */
void dc_world_add_sent(dc_world *w, uint64_t bytes);

/*
 * This rank ends with an error: the others are told, and their exchanges fail with WORLD and these words. Does not wait for
 * them longer than a second.
 */
void dc_world_fail(dc_world *w, const char *text);
/* The first half of it, which waits for nobody. False: another failure was there before. */
bool dc_world_say(dc_world *w, const char *text);
/* What another rank has failed of, where it is known; NULL: none has. */
const char *dc_world_failure(dc_world *w);
/*
 * For who reads it: "rank 0 (host): ended because rank 1 (host) failed: train.lua:12: boom". False: nothing has failed, as far
 * as that is known. Any thread, until dc_world_close. `asked`: a signal asks this rank to end, which it does next; those of
 * this host that are gone, and were not asked, are the reason then.
 */
bool dc_world_sentence(dc_world *w, bool asked, char *out, size_t size);
/*
 * Is called once, on a thread of the world, when a failure of another rank is known and this one is not in an exchange, which
 * would fail of it. NULL: no longer.
 */
void dc_world_alarm(dc_world *w, void (*alarm)(void *), void *arg);

/* Bytes that this rank has given to others, since the world was opened. */
uint64_t dc_world_sent(const dc_world *w);

/*
 * The end, together with the others, for whom it waits as long as they live; after a failure without them. No exchange is
 * possible from then on. False: a rank has failed, also because it waits for one that has come here.
 */
bool dc_world_finish(dc_world *w);
/* The same, and frees it. NULL is fine. */
void dc_world_close(dc_world *w);

#endif
