/* What the files of core/world share, and private to them. */
#ifndef DC_CORE_WORLD_WORLD_IMPL_H
#define DC_CORE_WORLD_WORLD_IMPL_H

#include "core/world/board.h"
#include "core/world/combine.h"
#include "core/world/engine.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DC_TEXT_BYTES = 400 }; /* of a failure, with its end */

/* The members of a group, and which of them are on this host. Kept by the world. */
typedef struct dc_team {
    struct dc_team *next;
    dc_group_axes axes;
    int n, me;   /* members; this one */
    int nlocal;  /* of them on this host, */
    int place;   /* where this one is member local[place] */
    int nhost;   /* hosts with members, 0 where these have not the same number of them each */
    int at_host; /* among those in its place this one is beside[place * nhost + at_host] */
    int *rank;   /* of each member */
    int *local;  /* members on this host */
    int *beside; /* members, for each place one of each host */
} dc_team;

dc_status dc_team_of(dc_job *j, dc_world *w, const dc_exchange *x, const dc_team **out);
void dc_team_free(dc_team *t); /* and those behind it */

/* What an exchange is, for the members to compare. */
typedef struct dc_head {
    uint64_t digest;  /* of all that has to agree */
    int64_t elements; /* of this one, for messages */
    int32_t end, dtype; /* end: the rank has come to its end */
    int32_t kind, how;  /* how: dc_combine, or peer of a broadcast */
    int64_t aside;      /* it is about an exchange, which comes next */
    int64_t number;     /* which one of a function it is, or 0 */
    char label[160];
} dc_head;

/* An exchange that is being performed, by the world's thread or, where all members are on this host, by the caller's. */
typedef struct dc_call {
    dc_world *w;
    const dc_exchange *x;
    const dc_team *team;
    dc_job *job; /* of the caller's thread; NULL on the world's */
    bool beside; /* on the caller's thread, for something that the world does not do; job may be NULL */
    dc_head head;
    int64_t elements; /* of a row: all outer * inner */
    size_t size;      /* bytes of an element */
} dc_call;

/*
 * A row of elements that lies in the arrays of an exchange, one after the other: `part` of `parts` in each. Read or written
 * from the front to the back, in pieces.
 */
typedef struct dc_row {
    const dc_exchange *x; /* NULL: `base` has all of them */
    char *base;
    size_t size;
    bool to;
    int64_t part, parts;
    uint32_t array;
    int64_t before; /* elements in the arrays before this one */
} dc_row;

dc_row dc_row_from(const dc_call *c, int64_t part, int64_t parts);
dc_row dc_row_to(const dc_call *c, int64_t part, int64_t parts);
/* Element `at`, and how many lie behind each other from there on. */
char *dc_row_at(dc_row *r, int64_t at, int64_t *run);
void dc_row_read(dc_row *r, int64_t at, int64_t n, void *out);
void dc_row_write(dc_row *r, int64_t at, int64_t n, const void *in);
void dc_row_copy(dc_row *to, dc_row *from, int64_t n); /* from their beginnings */
/* n elements of memory `from`, in order; that of number `place` is read from the row `own`. Moves from[]. */
void dc_row_combine(dc_combine_fn *fn, dc_row *to, int64_t to_at, dc_row *own, int64_t own_at,
                    int64_t n, const char **from, int nfrom, int place, size_t size);

typedef struct dc_pair dc_pair;

/* The world ends: once for each of those that are told. */
void dc_world_tell_users(dc_world *w);

/* WORLD with the words of the failure, or what ends the job. */
dc_status dc_world_status(dc_world *w, dc_job *j);

/* Of a world that pretends. */
void dc_world_pretend_run(const dc_exchange *x);

struct dc_world {
    int rank, size;
    dc_engine *engine; /* NULL: alone */
    char here[256];    /* the name of this host */
    atomic_bool shut;  /* the engine is gone */
    bool pretends;     /* there are no others, whatever `size` says */
    bool direct;       /* exchanges may go from device to device; */
    bool voted;        /* the next one has been voted on */
    dc_world_user *user;
    dc_board *board;   /* NULL: no other rank is on this host */
    uint64_t limit_ns; /* of waiting without progress; 0: none */
    /* Looks at memory before a thread gives its core away: of callers, of the world's thread. */
    uint32_t spins, thread_spins;

    dc_team *team;      /* all that have been asked for; */
    const dc_team *all; /* that of all ranks */

    pthread_t thread;
    pthread_mutex_t lock; /* of the queue and of what follows */
    pthread_cond_t wake;  /* the thread: there is something to do */
    pthread_cond_t done;  /* callers: a ticket is done, the world is open */
    struct dc_item *first, *last;
    uint64_t given;         /* tickets; */
    _Atomic uint64_t ended; /* those up to here are done; */
    uint64_t failed_from;   /* from here on they have failed; 0: none has */
    bool stop, taken;       /* taken: an exchange is being performed */
    bool joined, clean;     /* the thread has ended, in order */
    int waiting;            /* callers in an exchange; */
    void (*alarm)(void *);  /* else this hears of a failure of others */
    void *alarm_arg;
    enum { DC_WORLD_OPENING, DC_WORLD_OPEN, DC_WORLD_SHUT } state;

    pthread_mutex_t failing; /* of the text */
    atomic_bool failed;
    bool failed_here; /* of this rank itself */
    bool origin;      /* this rank is to tell those on other hosts */
    atomic_bool told; /* and has */
    char failure[DC_TEXT_BYTES];

    atomic_uint_least64_t sent;
    dc_pair *kept; /* of pairs.c */
    char *scratch; /* of messages.c */
    size_t scratch_bytes;
};

/* ---- failures and waiting (watch.c) ------------------------------------------------------------------ */

/* Has it failed, here or, as far as that is known here, elsewhere? */
bool dc_world_failed(dc_world *w);
/* The first failure stays, that of another rank of this host before. False always. */
bool dc_world_break(dc_world *w, bool here, const char *fmt, ...) DC_PRINTF(3, 4);
/* The same in the words of an engine that failed. */
bool dc_world_engine_failed(dc_call *c, const char *what);
/* The same where this rank has no memory for an exchange. */
bool dc_world_no_memory(dc_call *c);
/* Takes what another host has told, tells other hosts what is to be told. On the world's thread. */
void dc_world_look_out(dc_world *w);

/* One wait: of memory or of messages. */
typedef struct dc_watch {
    uint64_t begun_ns, look_ns, deaths_ns;
    uint64_t seen_ns, waited_ns; /* the last look; time that this process has run since it began */
    uint32_t rounds;
    bool missed; /* a rank was no longer there */
} dc_watch;

/* A moment passes. False: the world has failed, or the job of the call is to end. `rank` is waited for; -1: any of the others. */
bool dc_watch_pause(dc_watch *p, dc_call *c, int rank);

/* Until *word is `least` or more. */
bool dc_watch_word(dc_call *c, const _Atomic uint64_t *word, uint64_t least, int rank);

static inline const char *dc_call_label(const dc_call *c)
{
    return c->head.label;
}

/* Compares the head of another member, which is an error on both where it differs. */
bool dc_call_agrees(dc_call *c, const dc_head *other, int rank);
dc_call dc_call_of(dc_world *w, const dc_exchange *x, const dc_team *team, dc_job *job);
/* One of the world's thread or, with a job, of the caller's. */
bool dc_call_run(dc_call *c);

/* ---- exchanges; false: the world has failed ---------------------------------------------------------- */

bool dc_shared_run(dc_call *c);   /* all members are on this host */
bool dc_messages_run(dc_call *c); /* they are not */
void dc_world_count_sent(dc_world *w, size_t bytes);

/* One SEND or RECV, which may be under way with others (pairs.c). */
dc_pair *dc_pair_new(const dc_call *c); /* NULL: no memory */
void dc_pair_free(dc_pair *p);          /* and those behind it */
/* What can be done without waiting; `moved` where something was. */
bool dc_pair_step(dc_pair *p, bool *moved);
bool dc_pair_done(const dc_pair *p);
/* Must `before`, which was begun before it, be done first? */
bool dc_pair_waits_for(const dc_pair *p, const dc_pair *before);
/* Of a world that has failed: the engine may still know of its memory, which the world keeps. */
void dc_pair_give_up(dc_pair *p);
bool dc_pair_run(dc_call *c);

/* Steps of exchanges among the members on this host, for one chunk (shared.c). */

/* Where part `i` of n elements begins, of so many parts. */
static inline int64_t dc_shared_part(int64_t n, int i, int parts)
{
    return n * i / parts;
}
/*
 * This member's part of n elements is combined. What it was made of is given back by dc_shared_gather_parts, which is told the
 * half that was opened, and completes n elements of which this member has its part in `to`.
 */
bool dc_shared_reduce_part(dc_call *c, dc_combine_fn *fn, dc_row *own, int64_t at, int64_t n,
                           dc_row *to, int64_t to_at);
bool dc_shared_gather_parts(dc_call *c, dc_row *to, int64_t at, int64_t n, int half);
/* Of n elements of each part those for the members in this one's place are combined, to nhost * n elements. */
bool dc_shared_reduce_places(dc_call *c, dc_combine_fn *fn, int64_t at, int64_t n, dc_row *to);
/* n elements of each of the members in this one's place go to all on this host, and are written where they belong. */
bool dc_shared_gather_places(dc_call *c, int64_t at, int64_t n, const char *in);
/* n elements into this rank's slot; for all members on this host; from what another has given. */
bool dc_shared_put(dc_call *c, dc_row *own, int64_t at, int64_t n);
bool dc_shared_hand_on(dc_call *c, dc_row *own, int64_t at, int64_t n);
bool dc_shared_take(dc_call *c, int rank, dc_row *to, int64_t at, int64_t n);
/* Until those on this host have read all. */
bool dc_shared_await_read(dc_call *c);

#endif
