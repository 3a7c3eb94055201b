/*
 * Kernel IR, nest form: a tree of loops over typed axes round assignments whose operands are read
 * through access maps. Schedule moves (jit/moves/move.h) work on this form and nowhere else; jit/flat/flat.h
 * is what it is flattened to.
 *
 * Index expressions (dc_ix) are sums c + k1*a1 + k2*a2 + ... of atoms: an axis, the floor-division
 * or remainder of another sum by a positive constant, a loaded integer. They are hash-consed and
 * kept canonical (terms in order of atoms, like terms joined, k*(x/k) + x%k joined to x, division
 * and remainder resolved by ranges), so equal maps are usually equal refs.
 *
 * An assignment holds several stores. All values are computed before any is stored; this is what
 * makes updates in place safe (a value read by two outputs is read once). Its predicate is a
 * conjunction of range tests 0 <= ix < n; where it fails the assignment does nothing, its loads
 * included.
 *
 * Accumulators are local buffers; no value is carried round a loop in any other way.
 *
 * Parallel axes. A nest means what it does when every loop runs one iteration after the other. An
 * axis of kind GRID, BLOCK or LANE adds a promise: its iterations may run in any order or at the
 * same time, because none reads or writes what another one writes.
 *   - GRID: work items (thread groups on a GPU, pieces of work for the pool of a CPU). Outermost.
 *     Where one stands at the root, all statements of the root are grid loops, independent of each
 *     other; a launch has the sum of their extents as work items, in order.
 *   - BLOCK: threads of a group. Block loops inside each other number the threads, the innermost
 *     fastest; LANE is the innermost, threads that can read each other's registers. The phases inside
 *     a block loop (see below) are all by as many threads.
 *   - Directly in a loop that holds parallel loops further inside stand loops only, when it is a
 *     BLOCK loop; else (grid, serial, unroll) also assignments, which one thread carries out.
 *     Between two phases (parallel loops that follow one another, or that follow one another in the
 *     next iteration of a serial loop) the threads of the group wait for each other: no nest has
 *     a barrier, flattening puts them where buffers ask for them.
 * On a CPU, block and lane loops are plain loops, and group memory is local memory; so a schedule
 * for a GPU runs everywhere.
 *
 * Roles. An axis may say what it means (dc_role), which schedule rules go by. Lowering knows; of a text that
 * says nothing the access maps tell (jit/nest/nest_roles.h). A loop over a part of an axis keeps its role.
 * k and window are reductions, the others but column are none; one operand of a product moves along each n,
 * and the other one along each m. What a nest computes does not depend on roles.
 *
 * Memory. Scopes say who shares a buffer that is no parameter: LOCAL belongs to one iteration of
 * the parallel loops round all its uses (registers or stack); GROUP to one work item of the grid;
 * THREAD has one row for each thread of the group, [threads][n] in the order that threads are
 * numbered, kept in that thread's registers from phase to phase: threads write their own row and
 * read their own, or that of another lane (a shuffle; all loads of it have the same place in the
 * row for all lanes, or, of two lanes, a place for each of them).
 */
#ifndef DC_JIT_NEST_NEST_H
#define DC_JIT_NEST_NEST_H

#include "core/ir/graph.h"
#include "jit/base/kinds.h"

typedef uint32_t dc_ix;   /* index expression; 0 is none */
typedef uint32_t dc_atom; /* its atoms */
typedef uint32_t dc_vx;   /* value expression; 0 is none */

typedef enum dc_axis_kind {
    DC_AXIS_SERIAL,
    DC_AXIS_GRID,   /* work items of the launch; outermost */
    DC_AXIS_VECTOR, /* lanes of one instruction; innermost */
    DC_AXIS_UNROLL, /* the body repeated */
    DC_AXIS_BLOCK,  /* threads of a group */
    DC_AXIS_LANE    /* threads that exchange registers; inside BLOCK or directly in the group */
} dc_axis_kind;

static inline bool dc_axis_is_thread(uint8_t kind)
{
    return kind == DC_AXIS_BLOCK || kind == DC_AXIS_LANE;
}

/*
 * What a loop means to its kernel. A contraction adds up a product of two operands; left is the one that is
 * invariant along the last axis of the result, so that vectors lie along n. Each operand may be computed of
 * several loads. A term that is no product has roles by its loads: those invariant along n are its left operand.
 */
typedef enum dc_role {
    DC_ROLE_NONE, /* maps, copies, other reductions; of a contraction what neither operand moves along */
    DC_ROLE_BATCH, /* contraction: both operands and the result move along it */
    DC_ROLE_M,     /* the left operand and the result */
    DC_ROLE_N,     /* the right operand and the result */
    DC_ROLE_K,     /* is added up */
    DC_ROLE_SPATIAL, /* convolution, which is a contraction: an m whose iterations see the same elements */
    DC_ROLE_WINDOW, /* a k along which they see them: taps; in a gradient of the kernel, positions */
    DC_ROLE_ROW,    /* row space: several steps for each row */
    DC_ROLE_COLUMN, /* within a row; is added up, or stored */
    DC_ROLE_LANE,   /* of rows that go through several locals: where vectors lie */
    DC_ROLE__COUNT
} dc_role;

typedef struct dc_axis {
    const char *name; /* unique in the kernel: "m", "n.o", "k" */
    int64_t extent;
    uint8_t kind; /* dc_axis_kind */
    uint8_t role; /* dc_role */
    bool reduce;  /* its iterations are added up; order matters to rounding */
    bool
        pipeline; /* the last part of an iteration runs in the next one (jit/nest/nest_traffic.h) */
    uint32_t of;  /* the axis that a move made it of; DC_NO_AXIS: none */
} dc_axis;

typedef enum dc_atom_kind { DC_ATOM_AXIS, DC_ATOM_DIV, DC_ATOM_MOD, DC_ATOM_VALUE } dc_atom_kind;

typedef struct dc_atom_node {
    uint8_t kind;
    uint32_t axis;  /* AXIS */
    dc_ix of;       /* DIV, MOD: floor semantics */
    int64_t k;      /* DIV, MOD: > 0 */
    dc_vx value;    /* VALUE: an integer, clamped where it is built */
    int64_t lo, hi; /* range, both included */
} dc_atom_node;

typedef struct dc_term {
    dc_atom atom;
    int64_t coef;
} dc_term;

typedef struct dc_axes { /* a set of axes, as bits; what lies behind the words is not in it */
    uint32_t nword;
    const uint64_t *word;
} dc_axes;

typedef struct dc_ix_node {
    int64_t c;
    uint32_t n;
    const dc_term *term; /* by ascending atom, no zero coefficients */
    int64_t lo, hi;
    dc_axes axes; /* that occur in it, in integers that are loaded too */
} dc_ix_node;

typedef struct dc_range { /* 0 <= ix < n */
    dc_ix ix;
    int64_t n;
} dc_range;

typedef struct dc_pred { /* conjunction; n = 0 is true */
    uint32_t n;
    const dc_range *range;
} dc_pred;

typedef enum dc_vx_kind {
    DC_VX_OP,    /* an element-wise row of core/ir/ops.def on `in` (CAST: to dtype) */
    DC_VX_LOAD,  /* buf[at] where pred holds, else zero without touching memory */
    DC_VX_CONST, /* bits */
    DC_VX_INDEX, /* the value of `at`, as dtype (i32) */
    DC_VX_TEST   /* pred as bool */
} dc_vx_kind;

typedef struct dc_vx_node {
    uint8_t kind, op, dtype, n;
    dc_vx in[4];
    uint32_t buf;
    dc_ix at;
    dc_pred pred;
    uint64_t bits;
    dc_axes axes; /* that occur in it */
} dc_vx_node;

typedef enum dc_scope {
    DC_SCOPE_PARAM,
    DC_SCOPE_LOCAL,
    DC_SCOPE_THREAD,
    DC_SCOPE_GROUP,
    DC_SCOPE_SCRATCH /* flat form only: what is too large for the stack of a CPU */
} dc_scope;

/* IN is never stored to. OUT and INOUT are; INOUT says that the content on entry matters. */
typedef enum dc_mode { DC_MODE_IN, DC_MODE_OUT, DC_MODE_INOUT } dc_mode;

typedef struct dc_buffer {
    const char *name; /* unique in the kernel: "x0", "out0", "acc0" */
    uint8_t dtype, scope, mode;
    int64_t count; /* elements */
    uint8_t align; /* PARAM: bytes that its address is a multiple of; 0: DC_BUFFER_ALIGN */
    bool
        uncached; /* PARAM: the caches do not hold it when the kernel begins, nor when what it wrote is read */
    /* Memory traffic, which moves choose; hints: a renderer may ignore them. */
    bool nontemporal; /* OUT: stores pass by the caches */
    uint8_t
        prefetch; /* IN: whole vectors that loops over `within` load fetch what the next iteration of
                        `over` loads in their place into cache 1 or 2; 0: they do not */
    uint32_t over, within;
    uint32_t
        swizzle; /* GROUP: rows of so many elements, pieces of which are rotated by the number of the row, so
                         that threads that access a column of them meet in no bank; positions do not show it; 0: no */
    bool atoms; /* of a swizzle: as wgmma reads rows, jit/moves/moves.def */
    bool
        fixed; /* GROUP: a move asked for it, so that threads bound later leave it in shared memory */
    uint32_t
        stages; /* GROUP: iterations of a loop whose copies to it are under way (jit/nest/nest_stage.h); 0: one */
    uint32_t param; /* PARAM: position in buf[] of the ABI */
    /* PARAM, in the flat form alone (dc_ftable): 1 + the table it belongs to, or 0; then it is param + step * row, and has
     * as many elements as 1 + the column says, or `count` in all rows where that is 0. */
    uint32_t table, step, column;
    size_t at; /* SCRATCH: offset in bytes */
} dc_buffer;

enum { DC_BUFFER_ALIGN = 64 };

/*
 * What an assignment or a tile does may be left out where ix >= buf[0]: elements that nobody needs, terms that add
 * nothing. buf is a parameter of mode IN, of type i32. Whether it is left out changes nothing that is needed, so moves
 * that copy a statement may forget its limits, and what is made for several places at once can be left out only where
 * all of them are. Flattening ends loops by them (jit/nest/nest_limit.h).
 */
typedef struct dc_limit {
    dc_ix ix;
    uint32_t buf;
} dc_limit;

/*
 * A loop may say the same of its iterations (dc_stmt.from, .to), by axes of the loops round it: behind a diagonal, where a mask
 * leaves nothing. A move that makes other loops of it forgets that; where a loop of these axes is not round it any more, they say
 * nothing.
 */
typedef enum dc_stmt_kind { DC_STMT_LOOP, DC_STMT_SET, DC_STMT_TILE } dc_stmt_kind;

typedef struct dc_put {
    uint32_t buf;
    dc_ix at;
    dc_vx value;
} dc_put;

/*
 * A matrix instruction (jit/nest/matrix_tiles.def): c[i, j] += sum over l of a[i, l] * b[l, j], where operand x
 * at [i, j] is x.buf[x.at + i * x.row + j * x.col]. What a target has no instruction for is
 * flattened to multiplications and additions in the order of l.
 */
typedef struct dc_tile_operand {
    uint32_t buf;
    dc_ix at;
    int64_t row, col;
} dc_tile_operand;

typedef struct dc_tile {
    uint32_t which; /* dc_tile_id */
    dc_tile_operand c, a, b;
} dc_tile;

typedef struct dc_stmt {
    uint8_t kind;
    struct dc_stmt *next;
    uint32_t line;        /* of the text that it was read from; 0: none */
    uint32_t axis;        /* LOOP */
    struct dc_stmt *body; /* LOOP */
    uint32_t ranges; /* LOOP: the axis whose iterations the next two are about; of another axis they say nothing */
    dc_ix from, to;  /* those before `from`, and those from `to` on, may be left out; 0: there is no such bound */
    uint32_t nput;        /* SET */
    dc_put *put;
    dc_pred pred;
    bool reduces;  /* SET: put[0] is acc = acc (combine) value, with op DC_VX_OP at its root */
    dc_tile *tile; /* TILE; stands under pred too */
    uint32_t nlimit;
    const dc_limit *limit; /* SET, TILE: each of them is reason enough; never written to, so copies share it */
} dc_stmt;

typedef struct dc_hash_cons { /* open addressing: refs by hash */
    uint32_t *slot;
    uint32_t nslot, used;
} dc_hash_cons;

typedef struct dc_kernel {
    dc_arena arena; /* everything below that points */
    dc_hash_cons ixcons, atomcons, vxcons;
    char name[64]; /* "E_64_128", "R_64_10"; unique within a program after naming */
    uint8_t kind;  /* dc_kernel_kind; of a text what its loops tell (dc_kind_of_loops) */
    bool strict;   /* DEEPC_MATH=strict: nothing may be contracted */
    bool tf32;     /* DEEPC_MATH=tf32: matrix instructions may round factors of f32 to TF32 */
    DC_VEC(dc_axis) axis;
    DC_VEC(dc_ix_node) ix; /* [0] placeholder */
    DC_VEC(dc_atom_node) atom;
    DC_VEC(dc_vx_node) vx;
    DC_VEC(dc_buffer) buf;
    uint32_t nparam;
    dc_stmt *root;
    const dc_stmt *naive;                 /* the root before the first move; NULL: no move yet */
    int64_t flops, bytes;                 /* per launch, for reports */
    DC_VEC(const struct dc_move *) moves; /* applied so far (jit/moves/move.h) */
} dc_kernel;

dc_kernel *dc_kernel_new(const char *name);
void dc_kernel_free(dc_kernel *k);

uint32_t dc_axis_new(dc_kernel *k, const char *name, int64_t extent, bool reduce);
int dc_axis_find(const dc_kernel *k, const char *name); /* -1 */

/* Quotient rounded down, of m > 0: what a DIV atom means. */
static inline int64_t dc_floor_div(int64_t a, int64_t m)
{
    const int64_t q = a / m;
    return q * m > a ? q - 1 : q;
}

/* Index expressions */
dc_ix dc_ix_const(dc_kernel *k, int64_t c);
dc_ix dc_ix_axis(dc_kernel *k, uint32_t axis); /* extent 1: the constant 0 */
dc_ix dc_ix_add(dc_kernel *k, dc_ix a, dc_ix b);
dc_ix dc_ix_mul(dc_kernel *k, dc_ix a, int64_t c);
dc_ix dc_ix_div(dc_kernel *k, dc_ix a, int64_t c); /* floor, c > 0 */
dc_ix dc_ix_mod(dc_kernel *k, dc_ix a, int64_t c); /* result in 0..c-1 */
dc_ix dc_ix_value(dc_kernel *k, dc_vx v);          /* an integer or bool, range by dc_vx_range */
bool dc_ix_is_const(const dc_kernel *k, dc_ix a, int64_t *c);
/* Coefficient of an axis; *affine becomes false where the axis occurs inside a DIV, MOD or VALUE. */
int64_t dc_ix_stride(const dc_kernel *k, dc_ix a, uint32_t axis, bool *affine);
bool dc_ix_uses(const dc_kernel *k, dc_ix a, uint32_t axis);
static inline bool dc_axes_has(dc_axes s, uint32_t axis)
{
    return axis / 64 < s.nword && (s.word[axis / 64] >> axis % 64 & 1) != 0;
}
/* Are places made of integers that are loaded? */
bool dc_ix_any_value(const dc_kernel *k);

/* Value expressions, hash-consed */
dc_vx dc_vx_op(dc_kernel *k, dc_op op, dc_dtype t, const dc_vx *in, int n);
dc_vx dc_vx_const(dc_kernel *k, dc_dtype t, uint64_t bits);
dc_vx dc_vx_load(dc_kernel *k, uint32_t buf, dc_ix at, dc_pred pred);
dc_vx dc_vx_index(dc_kernel *k, dc_ix at, dc_dtype t);
dc_vx dc_vx_test(dc_kernel *k, dc_pred pred);
/*
 * Least and largest value of an integer or bool: of the constants in minimum(maximum(v, lo), hi), else
 * of the dtype. False for floats.
 */
bool dc_vx_range(const dc_kernel *k, dc_vx v, int64_t *lo, int64_t *hi);
/*
 * By value: is it v, or an operand below v? For walks: what is shared is met once, however many
 * ways lead to it. In the arena given.
 */
bool *dc_vx_parts(const dc_kernel *k, dc_arena *a, dc_vx v);
/*
 * The same of several values, through tests and integers that are loaded: seen, by value, begins with what is marked
 * there, a value by itself, an index or a predicate by the integers that are loaded for it.
 */
void dc_ix_mark(const dc_kernel *k, dc_ix a, bool *seen);
void dc_pred_mark(const dc_kernel *k, dc_pred p, bool *seen);
void dc_vx_mark_parts(const dc_kernel *k, bool *seen);

uint32_t dc_buffer_new(dc_kernel *k, const char *name, dc_dtype t, int64_t count, dc_scope s,
                       dc_mode m);

/* Are rows of so many elements a power of two of pieces, at least two? */
static inline bool dc_nest_may_swizzle(dc_dtype t, int64_t n)
{
    return n > 0 && n <= 1 << 16 && (n & (n - 1)) == 0 && n * (int64_t)dc_dtype_size(t) >= 64;
}

/* Do rows of so many elements make atoms: 8 rows of 128 bytes? */
static inline bool dc_nest_has_atoms(dc_dtype t, int64_t n, int64_t count)
{
    return n > 0 && n <= 1 << 16 && (n & (n - 1)) == 0 &&
           n * (int64_t)dc_dtype_size(t) % 128 == 0 && count % (8 * n) == 0;
}

/* a && b; ranges that always hold are dropped. */
dc_pred dc_pred_and(dc_kernel *k, dc_pred a, dc_ix ix, int64_t n);

/*
 * Rewriting: every occurrence of an axis becomes an index expression. One substitution object
 * serves one rewrite of many expressions (it remembers results).
 */
typedef struct dc_subst {
    dc_kernel *k;
    uint32_t axis; /* DC_NO_AXIS: none */
    dc_ix to;
    uint32_t buf; /* DC_NO_BUF: none; else loads and stores of it at i go to i + add */
    dc_ix add;
    uint32_t *ixmap, *vxmap; /* new ref by old; refs made during the rewrite are final */
    uint32_t nix, nvx;
} dc_subst;

#define DC_NO_AXIS UINT32_MAX
#define DC_NO_BUF  UINT32_MAX

dc_subst dc_subst_axis(dc_kernel *k, uint32_t axis, dc_ix to);
dc_subst dc_subst_buf(dc_kernel *k, uint32_t buf, dc_ix add);
dc_ix dc_subst_ix(dc_subst *s, dc_ix a);
dc_vx dc_subst_vx(dc_subst *s, dc_vx v);
dc_pred dc_subst_pred(dc_subst *s, dc_pred p);
void dc_subst_stmt(dc_subst *s, dc_stmt *first); /* a list of statements, in place */

/* Deep copy of a list of statements. */
dc_stmt *dc_stmt_copy(dc_kernel *k, const dc_stmt *first);
dc_stmt *dc_stmt_loop(dc_kernel *k, uint32_t axis, dc_stmt *body);
dc_stmt *dc_stmt_set(dc_kernel *k, uint32_t nput);
/* The bounds of a loop; 0, 0: it has none, or they are of another axis. */
static inline dc_ix dc_stmt_from(const dc_stmt *loop)
{
    return loop->ranges == loop->axis ? loop->from : 0;
}
static inline dc_ix dc_stmt_to(const dc_stmt *loop)
{
    return loop->ranges == loop->axis ? loop->to : 0;
}
/* One limit more, unless it is there or says nothing; those of another statement, under a substitution or as they are. */
void dc_stmt_add_limit(dc_kernel *k, dc_stmt *s, dc_limit limit);
void dc_stmt_limits_of(dc_subst *s, dc_stmt *to, const dc_stmt *from);
bool dc_stmt_has_limits(const dc_stmt *first);

/* How a kernel is launched, by its parallel axes. */
typedef struct dc_launch {
    int64_t positions; /* work items of the grid */
    uint32_t threads;  /* of a group; 1 where no axis is BLOCK or LANE */
} dc_launch;

dc_launch dc_nest_launch(const dc_kernel *k);
/* Threads that a list of statements is divided among: the most that its thread loops make. */
int64_t dc_nest_threads(const dc_kernel *k, const dc_stmt *first);

/* Text of the nest, for people, golden files and keys (no names of the script in it). */
void dc_nest_print(dc_kernel *k, dc_text *out);
/* The text back, PARSE with the line on failure; the kernel is the caller's. */
dc_status dc_nest_parse(dc_job *j, const char *text, dc_kernel **out);
/* Verifier: BUG record with the reason when something in the header comment does not hold. */
dc_status dc_nest_check(dc_job *j, const dc_kernel *k);
/* The same of a text that was written by hand: a PARSE record with the line. */
dc_status dc_nest_check_given(dc_job *j, const dc_kernel *k);

#endif
