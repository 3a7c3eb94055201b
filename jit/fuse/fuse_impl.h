/*
 * The model of fusion, and what its files share. jit/fuse/fuse.c has the walk that applies it.
 *
 * Iteration space. A group is one loop nest over `points` iterations in row-major order. In a row-wise
 * group they are `rows` rows of equally many columns, and a reduction over the columns is computed
 * once for each row. Any other reduction, and a contraction, brings axes of its own, which only its
 * operands see.
 *
 * Access map. Which element of a node the iteration p computes or reads. Elements are numbered in
 * row-major order too, so one family of maps covers what element-wise chains, norms and their
 * gradients do:
 *
 *   blocked   p -> p / d, where d is the number of points divided by the number of elements.
 *             d = 1: the identity; d = columns: one element for each row, a broadcast along it.
 *   other     anything else: permuted, sliced, padded, gathered, broadcast along leading axes, or below axes
 *             that a reduction brings. Such a map has the name of the node that begins it; two
 *             uses under the same name read the same element.
 *
 * Element-wise operations pass their map on to their operands. From a blocked map a reshape, a
 * broadcast along trailing axes and a row-wise reduction make a blocked one (dc_fuse_keeps_blocked). A node
 * is computed once an iteration for each different map under which its group reads it.
 *
 * Sharing a group:
 *
 *   - A stored node may be an output of a group that reads it under blocked maps only, if it has an
 *     element for each point or each row. Then it is computed and stored once.
 *   - A reduction may be computed in a group that reads it so, if it is over the columns of a
 *     row-wise group, or the group may still become row-wise with these columns, or all its
 *     reductions are over the same axes.
 *   - Two groups become one if their iteration spaces are equal and they read a large value under
 *     the same map, or one sums up over blocks of the rows of the other (fuse_row_blocks.c).
 *   - Never where one group would wait for another that waits for it.
 *
 * Cost. One unit: an operation on 4 bytes counts as much as a byte read or written. A value with
 * several maps, or in several groups, is recomputed if the operations that this repeats cost less
 * than the bytes that storing it moves (fuse_cost.c); each such choice is recorded for f:explain(), and so is
 * why any other value between two groups is stored. Launches need no unit: sharing a group always
 * saves one, and no other choice adds one that would not be there.
 *
 * Of the ways that are known, this is the (points, columns) pair of TorchInductor with the affine maps
 * of XLA reduced to what row-major order keeps; decisions are made in one walk instead of by priority.
 */
#ifndef DC_JIT_FUSE_FUSE_IMPL_H
#define DC_JIT_FUSE_FUSE_IMPL_H

#include "jit/base/tuning.h"
#include "jit/fuse/fuse.h"

#define NO_HOME   UINT32_MAX
#define MANY_HOME (UINT32_MAX - 1)

/* How users read a node; "as vectors" a contraction reads its right operand, or images of a grouped one. */
enum fuse_operand {
    OPERAND_LEFT = 1,     /* as the left operand of a contraction, element by element */
    OPERAND_VECTORS = 2,  /* as vectors, by a contraction */
    OPERAND_OTHER = 4,    /* otherwise than as the right operand of a dot */
    OPERAND_GATHERED = 8, /* by its access map, into tiles of a convolution of thread groups, */
    OPERAND_COLUMNS = 16, /* which wants its last axis last in memory */
    OPERAND_TILED = 32,   /* by a large dot of thread groups, element after element many times */
    OPERAND_MEMORY = 64   /* as memory, by a loop or a branch */
};

/* What a position of a gather picks: less than a tile of a contraction, more; or it has one position only. */
enum fuse_picks { PICKS_NONE, PICKS_TILES, PICKS_LITTLE };

#define FUSE_BLOCKED ((dc_ref)0) /* no node has this number */

typedef struct fuse_node {
    uint32_t home; /* group, NO_HOME (dead), or MANY_HOME */
    dc_ref map;    /* under which its users read it: FUSE_BLOCKED, or the name of another */
    uint32_t maps; /* how many different ones; map is the node itself where there are several */
    bool stored;
    bool recomputed;    /* this was found cheaper than storing it */
    bool once;          /* computed in one place: see jit/fuse/fuse_once.c */
    uint8_t operand;    /* of class SAME, or folded into one: bits of fuse_operand for its own */
    uint32_t ops;       /* element-wise operations repeated when it is recomputed: dc_fuse_ops */
    bool costly;        /* one of them is COSTLY */
    bool on_reduction;  /* an epilogue: element-wise steps and reshapes of a reduction or product */
    bool on_product;    /* of a product */
    uint8_t picks;      /* fuse_picks: of the gathers that it is made of by element-wise steps */
    dc_ref next_member; /* of its group, 0 none */
    uint32_t first_user, nuser;
} fuse_node;

typedef struct fuse_group {
    dc_group g;
    uint32_t size;       /* operations times positions */
    dc_ref member;       /* first of its nodes, stored or not */
    int64_t points;      /* of the iteration space */
    int64_t rows;        /* row-wise: elements of a reduction over the columns; else 0 */
    bool never_row_wise; /* it has a product, an epilogue of one, or a reduction over other axes */
} fuse_group;

typedef struct fusing {
    dc_job *j;
    dc_arena *a;
    const dc_func *fn;
    fuse_node *node;
    dc_ref *user; /* users of node r: user[first_user .. first_user + nuser - 1] */
    bool *live, *is_result;
    dc_ref *asked;               /* by map: the node that was last asked for under it */
    uint32_t *counted;           /* by ref: the last search that saw it (fuse_cost.c) */
    uint32_t *seen, *seen_after; /* the same (fuse_inputs.c) */
    uint32_t search;             /* the last one there; they are numbered from 1 */
    struct fuse_walk *walk;      /* of fuse_outputs.c */
    DC_VEC(dc_choice) choice;
    DC_VEC(fuse_group) group;
    int level;
    bool groups;     /* the device runs groups of threads */
    bool row_blocks; /* row-wise groups may have partial sums over rows */
    uint32_t most;   /* operations of a group */
    dc_needs needs;
    dc_attention attention;
    uint32_t *attention_home; /* by kernel of it: its group, or NO_HOME */
    dc_ref *awaited; /* by ref: the first message that waits for it, 0 none; NULL: there are no messages */
    dc_ref *leads_to, *comes_of; /* by ref: the first one that is made of it, the last that it is made of; 0 none */
} fusing;

static inline const dc_node *fuse_at(const fusing *w, dc_ref r)
{
    return dc_node_at(w->fn, r);
}

/* A piece is its operand, stored; a join is memory. */
static inline dc_op_class fuse_class(const fusing *w, dc_ref r)
{
    const dc_op op = (dc_op)fuse_at(w, r)->op;
    return op == DC_OP_PIECE  ? DC_CLASS_EW
           : op == DC_OP_JOIN ? DC_CLASS_SRC
                              : (dc_op_class)dc_op_row_of(op)->cls;
}

/* A scatter has a kernel of its own, with nothing behind it. */
static inline bool fuse_is_scatter(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_IDX && fuse_at(w, r)->op != DC_OP_GATHER;
}

/* And so has a stage of a transform, in which elements of its operands are read once. */
static inline bool fuse_is_transform(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_FFT;
}

static inline bool fuse_is_product(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_CON || fuse_is_scatter(w, r) || fuse_is_transform(w, r);
}

static inline bool fuse_is_reduction(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_RED || fuse_is_product(w, r);
}

/* More than is expected to be recomputed wherever it is used. */
static inline bool fuse_is_heavy(const fuse_node *x)
{
    return x->costly || x->ops > DC_TUNE_RECOMPUTE_OPS;
}

static inline bool fuse_is_part(const fusing *w, dc_ref r)
{
    return dc_op_is((dc_op)fuse_at(w, r)->op, DC_CLASS_PART);
}

/* Is it computed by the host? */
static inline bool fuse_is_host(const fusing *w, dc_ref r)
{
    return dc_op_for_host((dc_op)fuse_at(w, r)->op);
}

/* Does it belong to a group without a kernel: that of a loop or a branch, or of what the host computes? */
static inline bool fuse_is_control(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_CTL || fuse_is_host(w, r);
}

/* Operands that are read. */
static inline int fuse_reads(const fusing *w, dc_ref r)
{
    return fuse_class(w, r) == DC_CLASS_SAME ? 1 : fuse_at(w, r)->nin;
}

/* Does group g store so many pieces that no more should join it? Each may be stored number by number. */
static inline bool fuse_has_pieces(const fusing *w, const fuse_group *x, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->g.nout; i++)
        n += fuse_at(w, x->g.out[i])->op == DC_OP_PIECE;
    return n >= most;
}

static inline bool fuse_is_param(const fusing *w, dc_ref r)
{
    return fuse_at(w, r)->op == DC_OP_PARAM;
}

/* Does r read its operands under the map of its result? Element-wise operations, other names do. */
static inline bool fuse_keeps_map(const fusing *w, dc_ref r)
{
    const dc_op_class c = fuse_class(w, r);
    return c == DC_CLASS_EW || c == DC_CLASS_SAME;
}

/* Does r, under a blocked map, read its operands under blocked maps? */
bool dc_fuse_keeps_blocked(const fusing *w, dc_ref r);
/* Does user u, under its own map, read its operands under blocked maps? */
static inline bool fuse_reads_blocked(const fusing *w, dc_ref u)
{
    return w->node[u].map == FUSE_BLOCKED && dc_fuse_keeps_blocked(w, u);
}

bool dc_fuse_is_full(const fusing *w, uint32_t g, uint32_t maps);

/* A way to see the elements of `shape`, one piece of memory, as rows and columns. */
typedef struct fuse_rows {
    dc_ref shape;
    int split; /* dims before it: rows; the others: columns */
    int64_t rows, columns;
} fuse_rows;

/* fuse_cost.c: ops, costly, on_reduction and on_product of all nodes, before any has a place. */
void dc_fuse_measure(fusing *w);
uint32_t dc_fuse_ops(const fusing *w, dc_ref r);
/* What is cheaper, with the node's own `ops` or with others. */
dc_choice dc_fuse_choice(const fusing *w, dc_ref r, dc_choice_way way, int64_t times);
dc_choice dc_fuse_choice_of(const fusing *w, dc_ref r, dc_choice_way way, int64_t times,
                            uint32_t ops);
/* In how many kernels is r read, directly or by values that several compute? */
int64_t dc_fuse_count_homes(const fusing *w, dc_ref r);
void dc_fuse_record(fusing *w, dc_choice c);
/* That r is stored, whatever that costs. */
void dc_fuse_record_stored(fusing *w, dc_ref r, const char *why);
#define FUSE_GIVEN "" /* why: a result, say, or what has been recorded; nothing to explain */
/* "read through permute": of a map that is not blocked. */
const char *dc_fuse_map_text(const fusing *w, dc_ref map);
void dc_fuse_settle_choices(fusing *w);

/* fuse_operands.c: how u reads r; is an operand that is read so stored? */
uint8_t dc_fuse_operand_of(const fusing *w, dc_ref u, dc_ref r);
bool dc_fuse_stores_operand(const fusing *w, dc_ref r, uint8_t operand);
/* For thread groups: is it part of how an operand is read, so that what it is made of is the operand? */
bool dc_fuse_folds_operand(const fusing *w, dc_ref r, uint8_t operand);

/* fuse_picked.c: is r gathered by positions, which hinder the tiles of the kernel that computes it, or of one of several? */
bool dc_fuse_hinders_tiles(const fusing *w, dc_ref r, uint32_t home);
/* Would that be so in group g? */
bool dc_fuse_hinders_in(const fusing *w, dc_ref r, uint32_t g);
/* Of r itself; each operation that is made of it takes the most of its operands. */
uint8_t dc_fuse_picks(const fusing *w, dc_ref r);

/* fuse_rows.c */
/* Is r a reduction over the columns of its group? */
bool dc_fuse_is_row_wise(const fusing *w, dc_ref r);
/* May group g be row-wise with these rows? Once it is, they never change. */
bool dc_fuse_may_be_row_wise(const fusing *w, uint32_t g, const fuse_rows *rows);
void dc_fuse_make_row_wise(fusing *w, uint32_t g, const fuse_rows *rows);
/* Why reduction or product r, under a blocked map, is not computed in group g; NULL: it may be. */
const char *dc_fuse_refuses_reduce(const fusing *w, uint32_t g, dc_ref r);
void dc_fuse_add_reduce(fusing *w, uint32_t g, dc_ref r);
/* Is it an operand with zeros behind a size, which are made where it is read? */
bool dc_fuse_masks_operand(const fusing *w, dc_ref r, uint8_t operand);

/* The axes along which trailing expand u repeats its operand; false if it is no such expand. */
bool dc_fuse_along_columns(const fusing *w, dc_ref u, fuse_rows *rows);

/*
 * fuse_outputs.c: a group where a stored node is one more output, or NO_HOME. Where rows->rows comes
 * back above 0 the group has to be made row-wise with them.
 */
/* fuse_messages.c: before groups are made. Would a message wait longer if r, or an output of g, were computed in the other group? */
void dc_fuse_find_awaited(fusing *w);
bool dc_fuse_delays(const fusing *w, dc_ref r, uint32_t g);
bool dc_fuse_delays_outputs(const fusing *w, uint32_t g, uint32_t h);

struct fuse_walk *dc_fuse_walk_new(dc_arena *a, uint32_t nodes);
uint32_t dc_fuse_group_to_join(const fusing *w, dc_ref r, fuse_rows *rows);

/* fuse_turned.c: r is read under `map`, which transposes it; does it read along that axis backwards? */
bool dc_fuse_turns_backwards(const fusing *w, dc_ref r, dc_ref map);

/* fuse_updates.c: is r an update of what it is made of, and smaller? */
bool dc_fuse_stores_update(fusing *w, dc_ref r);
/* fuse_once.c: marks what is computed in one place. */
void dc_fuse_find_once(fusing *w);

/* Has r an element of its own at each position? Not a constant, nor what repeats fewer elements. */
bool dc_fuse_is_memory(const fusing *w, dc_ref r);
/* Would so many more results be too many places in memory for one kernel? */
bool dc_fuse_has_streams(const fusing *w, uint32_t g, uint32_t more);
bool dc_fuse_same_shape(const fusing *w, dc_ref a, dc_ref b);
/* Is r a value of which a part is set? By itself it stores the part alone where that is done in place (jit/lower/lower_update.c). */
bool dc_fuse_sets_part(const fusing *w, dc_ref r);
/* Are both reductions of operands of one shape, over the same axes? */
bool dc_fuse_same_axes(const fusing *w, dc_ref r, dc_ref s);

/* fuse_siblings.c: joins groups that share what they read. Inputs are known, before and after. */
void dc_fuse_merge(fusing *w);
void dc_fuse_find_inputs(fusing *w);
void dc_fuse_find_inputs_of(fusing *w, uint32_t g); /* after it has taken in another */

/*
 * fuse_row_blocks.c. May the sums of group h be partial sums over row blocks of the row-wise group g?
 * Whether h waits for g by way of others is for the caller to ask.
 */
bool dc_fuse_may_take_partials(const fusing *w, uint32_t g, uint32_t h);
bool dc_fuse_may_take_any(const fusing *w, uint32_t g); /* those of some group */
/* Before the sums of h become outputs of g. */
void dc_fuse_add_partials(fusing *w, uint32_t g, uint32_t h);
/* Does another group than g read r, directly or by values that several groups compute? */
bool dc_fuse_is_read_outside(const fusing *w, dc_ref r, uint32_t g);
/* Drops outputs that only the group itself reads; returns how many there were. */
uint32_t dc_fuse_drop_outputs(fusing *w, uint32_t g);

/* fuse_inputs.c: the rest of each group, once all nodes have a place. */
void dc_fuse_close(fusing *w);

#endif
