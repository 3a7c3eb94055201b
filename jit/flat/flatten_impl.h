/*
 * What the files of flattening share: jit/flat/flatten.c, jit/flat/flatten_pipelined.c, jit/flat/flatten_index.c, jit/flat/flatten_value.c,
 * jit/flat/flatten_simt.c.
 */
#ifndef DC_JIT_FLAT_FLATTEN_IMPL_H
#define DC_JIT_FLAT_FLATTEN_IMPL_H

#include "jit/flat/expand.h"
#include "jit/flat/flatten.h"
#include "jit/nest/nest_limit.h"

/* What an axis is at the place being written. */
typedef enum bind_kind { BIND_NONE, BIND_CONST, BIND_VALUE, BIND_LANES } bind_kind;

typedef struct bind {
    bind_kind kind;
    int64_t c;
    dc_fv v;
    int64_t from, to; /* of BIND_VALUE: which iterations; to 0: all */
} bind;

/* A condition: a scalar part and a part by lane; 0 is true. */
typedef struct cond {
    bool never;
    dc_fv all, lane;
} cond;

/* How a buffer of scope THREAD is kept where threads are threads. */
typedef enum row_kind {
    ROW_NONE,    /* the buffer has another scope, or this is a kernel for a CPU */
    ROW_PRIVATE, /* each row in its thread; rows of other lanes are read by shuffles */
    ROW_SHARED   /* in group memory: some read is no shuffle */
} row_kind;

/* Whether an input may lie in the memory of an output. */
typedef enum fl_stored { FL_NOT_KNOWN, FL_NEVER, FL_MAY_BE } fl_stored;

/* Parts of matrices in registers: those at an index, in the scope where they were loaded. */
typedef struct fl_matrix {
    struct fl_matrix *next;
    uint32_t buf;
    dc_fv index, since, v;
    int how; /* imm of ldmatrix */
} fl_matrix;

/* Numbers that two lanes have exchanged, in the scope where they did. */
typedef struct fl_exchanged {
    struct fl_exchanged *next;
    uint32_t buf;
    dc_fv second, since, place[2]; /* is this thread the second one; what each of them wants */
    dc_fv own, got;
} fl_exchanged;
/* Products that four warps have begun (jit/flat/flatten_wgmma.c). */
typedef struct fl_products {
    dc_fv last; /* of the group that is gathered; 0: none */
    bool later; /* the loop round them waits */
    int others; /* tiles so far that became something else */
    int n;      /* what is added to */
    struct {
        uint32_t buf;
        uint64_t at;
        uint16_t lanes;
    } sum[8];
} fl_products;

enum { DC_FLAT_REGISTERS = 16 }; /* a local of no more vectors may be kept in them */

/* Columns of a block of a local that was transposed, its first element, and the scope that this was done in. */
typedef struct fl_block {
    const dc_fv *column; /* NULL: none */
    dc_fv first, since;
    uint32_t buf;
    int lanes;
} fl_block;

typedef struct flattener {
    dc_job *j;
    dc_kernel *k;
    dc_fbuild *b;
    bind *bind;     /* by axis */
    int lanes;      /* of the vector axis that is open, else 1 */
    uint32_t vaxis; /* it, or DC_NO_AXIS */
    dc_fv mask;     /* lanes that are computed for; 0 all */
    int on;         /* the first lanes, that many, are those; 0: others, or it is not known */
    dc_fv guard;    /* scalar condition, not an IF, that loads stand under; 0 none */
    int nested;     /* mask and guard are narrower than those of the assignment */
    dc_fv *value;   /* by vx: computed for this assignment, if epoch says so */
    uint32_t *epoch, now;
    struct fl_under **
        under; /* by vx: computed for this assignment under narrower conditions, if the first says so */
    uint32_t nunder; /* all that were computed so */
    uint32_t rows;   /* the axis of work items, and */
    dc_fv next_row;  /* its next one, or this one where that is the last; 0: no load asks for it */
    /* simt */
    uint32_t threads; /* of a group */
    int warp;         /* threads that shuffle; 0 none */
    uint8_t *row;     /* by buffer: row_kind */
    uint8_t *stored;  /* by buffer: fl_stored */
    dc_ix thread_ix;  /* number of the thread as an index expression, in the open thread loops */
    uint32_t inner
        [2]; /* axes of the innermost open thread loops, the outer one first; DC_NO_AXIS: none */
    uint32_t *slot;        /* by buffer: the axis of its place in a ring of stages, or DC_NO_AXIS */
    const dc_stmt **ring;  /* by buffer: the loop that it has stages of */
    bool async;            /* copies to group memory go on while threads do */
    struct fl_fact *facts; /* limits that hold in the loops round this place, the innermost first */
    struct dc_limits *ended; /* by axis: limits that its loop ends at */
    bool filling;            /* this is one for a later iteration */
    bool divided;            /* not all threads of the group are here */
    bool matrices;           /* there are instructions on matrices that 32 lanes hold */
    bool wgmma;              /* four warps begin products together, and there are such */
    fl_products products;
    fl_block block;          /* that was transposed last */
    fl_matrix *held;         /* matrices that were loaded since memory last changed */
    fl_exchanged *exchanged; /* since the rows last changed */
    dc_fv active;            /* scalar condition: this thread takes part in the phase; 0 true */
} flattener;

typedef struct fl_fact {
    struct fl_fact *outer;
    dc_limit limit; /* ix < the number */
} fl_fact;

/* A value under conditions that are narrower than those of its assignment, which others may be under too. */
typedef struct fl_under {
    struct fl_under *next;
    uint32_t now;
    dc_fv mask, guard, v;
} fl_under;

/*
 * Is the text too long to go on? By copies of unrolled loops, or by values that stand under other conditions for each
 * way that leads to them. What is flattened from then on means nothing, and dc_flatten_for fails.
 */
static inline bool fl_is_full(const flattener *l)
{
    enum { MOST_INSTRUCTIONS = 1 << 18, MOST_UNDER = 1 << 16 };
    return l->b->f->inst.n > MOST_INSTRUCTIONS || l->nunder > MOST_UNDER;
}

static inline const dc_ix_node *fl_ix(const flattener *l, dc_ix a)
{
    return &l->k->ix.at[a];
}

/* flatten_index.c: index expressions, conditions --------------------------------------------- */

/* How an index is wanted: its type, and whether the vector axis counts as lanes or as 0. */
typedef struct fl_want {
    int type;
    bool lanes;
} fl_want;

dc_fv dc_flatten_index(flattener *l, dc_ix a, fl_want w);
dc_fv dc_flatten_const_index(flattener *l, fl_want w, int64_t c);

/* AND of conditions with the lanes of the wider one, 0 being true. */
dc_fv dc_flatten_both(flattener *l, dc_fv a, dc_fv c);

bool dc_flatten_uses_lanes(const flattener *l, dc_ix a);
/* Stride in the vector axis; *affine false where there is none. */
int64_t dc_flatten_lane_stride(const flattener *l, dc_ix a, bool *affine);
dc_fv dc_flatten_scalar_index(flattener *l, dc_ix a);
dc_fv dc_flatten_lane_index(flattener *l, dc_ix a);
/* The condition, in two parts. Index of a load under its own condition, under which what the index itself loads
 * stands, too. */
cond dc_flatten_cond(flattener *l, dc_pred p);
dc_fv dc_flatten_index_under(flattener *l, cond c, dc_ix a, bool lanes);

/* flatten_value.c: values --------------------------------------------------------------------- */

/* Bytes that the address of element `a` is known to be a multiple of, 64 at most. */
uint16_t dc_flatten_align(const flattener *l, dc_ix a, uint32_t buf);
bool dc_flatten_within(const flattener *l, dc_ix a, uint32_t buf);
/* Where element `at` of a buffer is: in its own memory or, of a row that is private, in the row. */
dc_ix dc_flatten_place(flattener *l, uint32_t buf, dc_ix at);
dc_fv dc_flatten_value(flattener *l, dc_vx v);

/* flatten.c: statements ---------------------------------------------------------------------- */

/* Statements without parallel axes inside; block and lane loops as plain loops. */
void dc_flatten_list(flattener *l, const dc_stmt *first);
void dc_flatten_stmt(flattener *l, const dc_stmt *s);

/* flatten_ends.c: so many iterations at both ends of a loop are written once more by themselves, so that those between go
 * without tests. */
typedef struct fl_ends {
    int64_t first, last;
} fl_ends;

fl_ends dc_flatten_own_ends(const flattener *l, const dc_stmt *loop);

/* flatten_limit.c: which iterations of a loop are needed. */
typedef struct fl_live {
    dc_fv begin;    /* those from it on; 0: all */
    dc_fv end;      /* those below it; 0: all */
    dc_limits test; /* and of those all that pass */
    dc_fv whole;    /* in those below it, `known` holds; 0: nowhere */
    dc_limit known;
} fl_live;

/* Is it a test that a limit of the loops round it answers: a position less than the number? */
bool dc_flatten_is_known(const flattener *l, const dc_vx_node *v);
/* In front of the loop. The end of its iterations, `all` being their number. */
fl_live dc_flatten_live(flattener *l, const dc_stmt *loop);
dc_fv dc_flatten_live_end(flattener *l, const fl_live *live, dc_fv all);
/* In the loop, whose axis is bound: what an IF round the body asks; 0: nothing. */
dc_fv dc_flatten_live_test(flattener *l, const fl_live *live);

/* flatten_tile.c: a matrix instruction. */
void dc_flatten_tile(flattener *l, const dc_stmt *s);

/* flatten_exchange.c: is element `at` of rows of n one that two lanes exchange? Its value; 0: it is none. */
bool dc_flatten_is_exchanged(flattener *l, dc_ix at, int64_t n);
dc_fv dc_flatten_exchange(flattener *l, uint32_t buf, dc_ix at);
/* The position without what it has of the axis; false: it is no multiple of it, `step` times. */
bool dc_flatten_without(flattener *l, dc_ix *at, uint32_t axis, int64_t step);

/* flatten_wgmma.c: a loop over tiles as one instruction of four warps; false: it is none. */
bool dc_flatten_wgmma(flattener *l, const dc_stmt *loop);
/* The group ends here; until so many are under way. */
void dc_flatten_wgmma_wait(flattener *l, int groups);
/* Is there nothing but products of warp groups in the loops? */
bool dc_flatten_only_wgmma(const flattener *l, const dc_stmt *first);

/* flatten_pipelined.c: a pipelined grid loop over [begin, end), the first iteration of which is number `first`. */
void dc_flatten_pipelined(flattener *l, const dc_stmt *rows, dc_fv begin, dc_fv end, dc_fv first);

/* flatten_simt.c: what one thread of a group does ------------------------------------------- */

/* Decides how rows are kept and sets scopes of the flat form's buffers. BUILD if the group has not
 * enough memory. */
dc_status dc_flatten_simt_buffers(flattener *l, const dc_target *t);
void dc_flatten_simt(flattener *l);
/* Is a load from a private row one of another lane? Then the lane's number in *lane, its place. */
bool dc_flatten_is_foreign(flattener *l, uint32_t buf, dc_ix at);
bool dc_flatten_has_shuffle(flattener *l, const dc_stmt *s);

#endif
