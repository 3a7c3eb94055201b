/*
 * What the rules share: the moves that they apply (schedule_moves.c), and their entry points, for threads of a CPU,
 * and of schedule_simt.c for groups of threads.
 */
#ifndef DC_JIT_SCHEDULE_SCHEDULE_IMPL_H
#define DC_JIT_SCHEDULE_SCHEDULE_IMPL_H

#include "jit/nest/nest_roles.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_knobs.h"

typedef struct dc_sketch { /* a kernel while a rule schedules it */
    dc_kernel *k;
    const dc_target *t;
    int lanes;             /* of the widest numbers computed */
    const char *why;       /* of the move that did not apply */
    const dc_knobs *knobs; /* of a search; NULL: none, the rules decide */
    dc_knob_space *space;  /* what it may ask for; NULL: nobody wants to know */
} dc_sketch;

/*
 * What is asked for, or else the rule's value. The others that make sense end with 0, of which those from 1 to `most`
 * are offered, each once.
 */
int64_t dc_sketch_knob(const dc_sketch *s, dc_knob knob, int64_t rule, const int32_t *others,
                       int64_t most);

/* Moves, schedule_moves.c: false with the reason in `why` --------------------------------------- */

/* An axis in two, outer and inner; of a cut, the first iterations and the others. */
typedef struct dc_split {
    uint32_t o, i;
} dc_split;

/* A reduction over an axis in partial ones: o is reduced for each i, then j over all of them. */
typedef struct dc_partial {
    uint32_t o, i, j;
} dc_partial;

bool dc_do_split(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out);
bool dc_do_split_full(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out);
bool dc_do_cut(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out);
bool dc_do_split_reduce(dc_sketch *s, uint32_t axis, int64_t n, dc_partial *out);
/* o: the ranges; i: the loop that fills one, if there is. */
bool dc_do_ranges(dc_sketch *s, uint32_t axis, int64_t n, dc_split *out);
bool dc_do_part(dc_sketch *s, uint32_t axis, uint32_t with, uint32_t *own);
bool dc_do_part_after(dc_sketch *s, uint32_t axis, uint32_t with, uint32_t *own);
bool dc_do_fuse(dc_sketch *s, uint32_t outer, uint32_t inner, uint32_t *fused);
bool dc_do_reorder(dc_sketch *s, uint32_t inner, uint32_t outer);
bool dc_do_reorder_reduce(dc_sketch *s, uint32_t inner, uint32_t outer);
bool dc_do_vectorize(dc_sketch *s, uint32_t axis);
bool dc_do_unroll(dc_sketch *s, uint32_t axis);
bool dc_do_block(dc_sketch *s, uint32_t axis);
bool dc_do_lane(dc_sketch *s, uint32_t axis);
bool dc_do_grid(dc_sketch *s, uint32_t axis);
/* *made: the axis of the loops that all threads run. */
bool dc_do_replicate(dc_sketch *s, uint32_t axis, int64_t threads, uint32_t *made);
bool dc_do_scope(dc_sketch *s, uint32_t buf, dc_scope scope);
bool dc_do_pad_rows(dc_sketch *s, uint32_t buf, int64_t n);
bool dc_do_swizzle(dc_sketch *s, uint32_t buf, int64_t n);
bool dc_do_swizzle_atoms(dc_sketch *s, uint32_t buf, int64_t n);
bool dc_do_tensorize(dc_sketch *s, uint32_t axis, uint32_t tile); /* dc_tile_id */
bool dc_do_subtotal(dc_sketch *s, uint32_t axis);
bool dc_do_stage(dc_sketch *s, uint32_t buf, int64_t stages);
bool dc_do_nontemporal(dc_sketch *s, uint32_t buf);
bool dc_do_prefetch(dc_sketch *s, uint32_t buf, uint32_t over, uint32_t within, int level);
/* The cache to prefetch into, 1 or 2, 0: none; what is asked for, or the rule's. */
int dc_sketch_level(const dc_sketch *s, int rule);
bool dc_do_pipeline(dc_sketch *s, uint32_t axis);
/* *made: the first axis of the loops that copy. */
bool dc_do_pack(dc_sketch *s, uint32_t buf, uint32_t axis, const uint32_t *dim, int n,
                uint32_t *made);
/* The same with the dims in the order of their loops. */
bool dc_do_cache_read(dc_sketch *s, uint32_t buf, uint32_t axis, uint32_t *made);
/* pack in this order of dims, of elements as they are. */
bool dc_do_cache_elements(dc_sketch *s, uint32_t buf, uint32_t axis, const uint32_t *dim, int n,
                          uint32_t *made);
bool dc_do_cache_write(dc_sketch *s, uint32_t buf, uint32_t axis, uint32_t *made);
bool dc_do_window_read(dc_sketch *s, uint32_t buf, uint32_t axis);
/* Number `which` of the axes from `made` on that copy along `axis`; DC_NO_AXIS: there is none. */
uint32_t dc_sketch_copy_of(const dc_sketch *s, uint32_t made, uint32_t axis, int which);
/* The outermost loop becomes the launch, where a loop is outermost. */
bool dc_sketch_grid_outer(dc_sketch *s);
/* The same; where there is much to do and it has few iterations, those of the next loop are work items, too. */
bool dc_sketch_grid(dc_sketch *s);
/* All outermost loops do. */
bool dc_sketch_grid_all(dc_sketch *s);

/* Sketches ------------------------------------------------------------------------------------ */

int64_t dc_sketch_extent(const dc_sketch *s, uint32_t axis);
/* By value: does the kernel compute it? Moves leave others behind. */
bool *dc_sketch_used(const dc_kernel *k, dc_arena *a);
/* Loads from a buffer that the kernel does. */
int dc_sketch_loads(dc_kernel *k, uint32_t buf);
/* Of a vector along so many iterations: the smallest power of two that holds them, if there is. */
int64_t dc_sketch_lanes(const dc_sketch *s, int64_t extent);
/* Interchanges the loops of a reduction, outermost first, each directly inside axis, with it. */
bool dc_sketch_hoist(dc_sketch *s, const uint32_t *red, int nred, uint32_t axis);
/* The loops of a reduction. */
typedef struct dc_chain {
    dc_vx total;                     /* what is set in them */
    uint32_t red[DC_SHAPE_AXES + 1]; /* outermost first */
    int64_t extent[DC_SHAPE_AXES + 1];
    int n;
    int64_t side;   /* terms of the last of them that are added side by side */
    int64_t inside; /* terms in further loops inside them */
} dc_chain;

/*
 * Blocked summation: a long reduction of floats gets partial results, since rounding errors grow with the length
 * of a chain of additions. One of the loops may become two.
 */
void dc_sketch_subtotal(dc_sketch *s, dc_chain *c);

/*
 * A rule for loops of some shape. *is tells whether they have it; else the rule declines and has done nothing, but for one that
 * prepares loops for the rules behind it and leaves their new shape in *p. False: a move did not apply.
 */
typedef bool dc_sketch_rule(dc_sketch *s, dc_shape *p, bool *is);

/* The rules of a kind of kernel. */
#define DC_RULES(kind, ...) static dc_sketch_rule *const kind##_rules[] = {__VA_ARGS__, NULL}

/* Schedules by the first of the rules that does not decline; NULL is behind the last one, which never does. */
bool dc_sketch_try(dc_sketch *s, dc_shape *p, dc_sketch_rule *const *rules);

/* No reduction. */
dc_sketch_rule dc_schedule_map;

/* Loops that all accesses go through as if they were one become one; *p is the new shape. */
void dc_sketch_merge(dc_sketch *s, dc_shape *p);
/* The same of the loops over rows of a product alone, for the rules behind it. */
dc_sketch_rule dc_sketch_merge_rows;
/* Is some of what is added up read along the last axis of the result, and all else invariant along it? *along: how it moves. */
bool dc_sketch_along_last(dc_sketch *s, const dc_shape *p, dc_strides *along);
/* The last axis in so many vectors at a time, cut where tests along it change and where vectors end. */
bool dc_schedule_vectors(dc_sketch *s, const dc_shape *p, int64_t vectors);
/*
 * The last axis and axis number `at`, along which an operand is contiguous, in square blocks of the vector
 * length; after them partial blocks, masked.
 */
bool dc_schedule_transposed_strips(dc_sketch *s, const dc_shape *p, int at);
/* How many of these blocks are beside each other, at most. */
int64_t dc_sketch_blocks(const dc_sketch *s, int64_t rule);
/* The number of vectors that the fewest rows of the extent fill without a rest. */
int64_t dc_sketch_block(const dc_sketch *s, int64_t extent);
/* Several rows at a time, in so many vectors at least. */
bool dc_schedule_short_rows(dc_sketch *s, const dc_shape *p, int64_t vectors);

/* Vectors of so many lanes to compute at a time along an axis, where the result has `all` elements. */
int64_t dc_sketch_vectors(const dc_sketch *s, int64_t all, int64_t extent, int64_t lanes);

/* Parts under loops over rows: reductions, and stores of whole rows. */
dc_sketch_rule dc_schedule_rows;

/* Rows that go through locals, from one to the next; some by blocks, which lie side by side there. */
dc_sketch_rule dc_schedule_lanes;

/* Blocks of rows as lanes, which go through blocks of terms. */
dc_sketch_rule dc_schedule_attention;

/* A contraction (its roles say so) whose right operand can be read in vectors. */
dc_sketch_rule dc_schedule_product;

/* A contraction of few rows, both operands of which are contiguous along k: loops m, n and k of a work item. */
typedef struct dc_dots {
    uint32_t m, n, k;
    int64_t M, block;  /* rows, columns of a work item */
    bool has_m;        /* one row has no loop over m */
    uint32_t streamed; /* the matrix, where its rows are fetched ahead; 0: not */
    bool apart;        /* the epilogue has loops of its own */
} dc_dots;

bool dc_schedule_dots(dc_sketch *s, const dc_dots *d);

/* A convolution (its roles say so) with a plain left operand. */
dc_sketch_rule dc_schedule_conv;

/* Memory traffic, schedule_memory.c ------------------------------------------------------------- */

/* Will stores to some output pass by the caches? */
bool dc_sketch_bypasses(const dc_sketch *s);

/* Which inputs are read row by row, each a whole row further on: asked before any move. */
typedef struct dc_row_inputs {
    uint32_t rows; /* the axis of rows; DC_NO_AXIS: there are none */
    uint32_t n, buf[16];
    bool chosen; /* integers choose the rows, which lie anywhere */
} dc_row_inputs;

dc_row_inputs dc_sketch_row_inputs(const dc_sketch *s);
/* After all other moves: stores past the caches, what overlaps with them, prefetches of rows. */
void dc_schedule_memory(dc_sketch *s, const dc_row_inputs *inputs);

/* Is it a contraction of two operands, at positions that no integers choose? */
bool dc_simt_is_contraction(const dc_sketch *s, const dc_shape *p, dc_operands *operands);
/* A contraction for groups of threads that is worth tiles (schedule_simt_product.c). */
dc_sketch_rule dc_schedule_simt_product;
/* Is it one of so few columns that it gets neither tiles nor matrix instructions? */
bool dc_simt_has_few(dc_sketch *s, const dc_shape *p);

/* One of few rows or columns, so many at most (schedule_simt_skinny.c). */
bool dc_schedule_simt_skinny(dc_sketch *s, const dc_shape *p, int64_t most, bool *is);

/* Loops that stand alone in each other, as in `now`, in the order `want` (schedule_simt_tile.c). */
bool dc_simt_arrange(dc_sketch *s, uint32_t *now, const uint32_t *want, int n);
/* For groups of threads. */
bool dc_schedule_simt(dc_sketch *s, dc_shape *p);

#endif
