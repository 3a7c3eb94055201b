/*
 * Kernel IR, flat form: what jit/flat/flatten.c turns a nest into and a renderer turns into text. A pool
 * of instructions (rows of jit/flat/kops.def) and the order they run in, with structured LOOP .. END and
 * IF .. END.
 *
 * What must hold (dc_flat_check):
 *   - a value is read inside the scope that computes it, after that place; no value is carried
 *     round a loop but its counter;
 *   - operands agree in lanes (1: scalar) and in type as their row says;
 *   - addresses are explicit: an index counts elements of a buffer;
 *   - parameters of mode IN are never stored to. Their content counts as that of the start of the
 *     kernel: where one shares memory with an output (an update in place), every element is read
 *     before it is stored. So loads from them may be merged, and moved to earlier places.
 *
 * Two ways to run. A kernel for threads of a CPU runs the work items from the argument `begin` to `end` - 1.
 * One for groups of threads (simt) is what one thread does: the arguments `group` and `thread` are
 * its work item and its number in the group. There
 *   - barriers stand where all threads of the group (or all lanes) come by: in no IF whose condition
 *     depends on `thread`, in no loop whose bounds do;
 *   - a buffer of scope GROUP is one for the group, LOCAL ones belong to the thread (no other scopes
 *     occur but PARAM, and SCRATCH on a CPU);
 *   - `shuffle` reads a value of another lane of the same `target.lanes` threads, all of which come
 *     by; so they do where `ldmatrix` and `mma` stand, of 32 lanes, and `wgmma`, of 128 threads.
 *
 * One body may stand for several kernels (jit/flat/flat_join.h). What differs between them is a table: a row for each, in
 * its cells the numbers. Buffers of a table are touched in its scope ROWS alone, where they are other parameters in each
 * row. All threads of a group are in the same row, and no scope ROWS of a table is inside another one of it.
 *
 * Floats of 16 bits are memory: they are loaded, stored, chosen, moved between lanes and taken as
 * integers of 16 bits; f16 is converted from and to f32, and f32 to bf16, where the target can. A NaN keeps its sign
 * and the first digits of its fraction then.
 *
 * Types are the dtypes and DC_INDEX, the unsigned integer that addresses are computed in. It wraps,
 * so a sum may have negative parts; comparisons, division and remainder are unsigned.
 */
#ifndef DC_JIT_FLAT_FLAT_H
#define DC_JIT_FLAT_FLAT_H

#include "jit/nest/nest.h"

typedef enum dc_kop {
#define KOP(id, ...) DC_K_##id,
#include "jit/flat/kops.def"
    DC_K__COUNT
} dc_kop;

typedef enum dc_kform {
    DC_KFORM_LEAF,
    DC_KFORM_SAME,
    DC_KFORM_TEST,
    DC_KFORM_PICK,
    DC_KFORM_CONV,
    DC_KFORM_LANE,
    DC_KFORM_MEM,
    DC_KFORM_CTRL
} dc_kform;

typedef struct dc_kop_row {
    const char *name;
    uint8_t n, form;
    const char *llvm[3]; /* float, signed, unsigned */
    const char *c;       /* operator or function of the C family, "" where it is written by hand */
} dc_kop_row;

enum dc_karg { DC_KARG_BEGIN, DC_KARG_END, DC_KARG_GROUP, DC_KARG_THREAD };
enum dc_kbarrier { DC_BARRIER_GROUP, DC_BARRIER_LANES, DC_BARRIER_ASYNC };
enum dc_kwgmma { DC_WGMMA_BEGIN = 1, DC_WGMMA_END = 2 };

const dc_kop_row *dc_kop_row_of(dc_kop op);
int dc_kop_column(int type); /* of llvm[]; bool and DC_INDEX are unsigned */

enum { DC_INDEX = DC_DTYPE__COUNT }; /* type of addresses, beside the dtypes */
static inline bool dc_ftype_is_float(int type)
{
    return type != DC_INDEX && dc_dtype_is_float((dc_dtype)type);
}
static inline bool dc_ftype_is_short(int type)
{
    return type != DC_INDEX && dc_dtype_is_short((dc_dtype)type);
}
static inline bool dc_ftype_is_half(int type)
{
    return type != DC_INDEX && dc_dtype_is_half((dc_dtype)type);
}
static inline bool dc_ftype_is_number(int type) /* a float that is computed with */
{
    return dc_ftype_is_float(type) && !dc_ftype_is_short(type);
}
static inline bool dc_ftype_is_signed(int type)
{
    return type != DC_INDEX && dc_dtype_is_signed((dc_dtype)type);
}

typedef uint32_t dc_fv; /* a value: the instruction that computes it; 0 none */

typedef struct dc_finst {
    uint8_t op;     /* dc_kop */
    uint8_t type;   /* dc_dtype or DC_INDEX; of the value stored for stores */
    uint16_t lanes; /* of the value; of the value stored for stores; 0 for IF and END */
    uint16_t level; /* loops that the value depends on, from outside: 0 none */
    uint16_t align; /* MEM: bytes that the first address is a multiple of */
    dc_fv in[3];
    uint32_t buf; /* MEM */
    uint64_t imm; /* see jit/flat/kops.def */
} dc_finst;

typedef struct dc_ftable {
    uint32_t rows, columns;
    uint64_t *cell; /* row by row: patterns as CONST has them */
} dc_ftable;

typedef struct dc_flat {
    dc_arena arena; /* everything below that points */
    char name[64];
    bool strict;       /* nothing may be contracted */
    bool simt;         /* what one thread of a group does */
    int index_bits;    /* width of DC_INDEX */
    int lanes;         /* threads that shuffle; 0 none */
    uint32_t threads;  /* of a group; 1 when not simt */
    int64_t positions; /* work items of a launch, for readers of the text alone */
    size_t scratch;    /* bytes per thread */
    uint32_t nparam;
    DC_VEC(dc_buffer) buf; /* of the nest: parameters and locals */
    DC_VEC(dc_ftable) table;
    DC_VEC(dc_finst) inst; /* [0] placeholder */
    DC_VEC(dc_fv) order;
} dc_flat;

void dc_flat_free(dc_flat *f);
void dc_flat_print(const dc_flat *f, dc_text *out);
/* The text back: the next kernel of it; *text moves behind it, *out is NULL at the end. PARSE. */
dc_status dc_flat_parse(dc_job *j, const char **text, dc_flat **out);
/* Verifier: a BUG record with the reason. */
dc_status dc_flat_check(dc_job *j, const dc_flat *f);

static inline const dc_finst *dc_finst_at(const dc_flat *f, dc_fv v)
{
    DC_ASSERT(v > 0 && v < f->inst.n, "value %u of %u", v, f->inst.n);
    return &f->inst.at[v];
}

static inline bool dc_kop_stores(dc_kop op)
{
    return op == DC_K_STORE || op == DC_K_SCATTER || op == DC_K_STORE_ASYNC || op == DC_K_WGMMA ||
           op == DC_K_WGMMA_WAIT;
}

/* Of async stores alone: no operands, no value. */
static inline bool dc_kop_orders(dc_kop op)
{
    return op == DC_K_COMMIT || op == DC_K_WAIT;
}

static inline bool dc_kop_loads(dc_kop op)
{
    return op == DC_K_LOAD || op == DC_K_GATHER || op == DC_K_LDMATRIX;
}

/*
 * May it be merged with its like, moved, computed in vain? Not so loads, see dc_flat_reads_input,
 * and not shuffles, which all lanes have to come by.
 */
static inline bool dc_kop_pure(dc_kop op)
{
    return dc_kop_row_of(op)->form < DC_KFORM_LANE;
}

/* Do all lanes that exchange registers come by together? */
static inline bool dc_kop_meets(dc_kop op)
{
    return op == DC_K_SHUFFLE || op == DC_K_MMA || op == DC_K_LDMATRIX || op == DC_K_WGMMA ||
           op == DC_K_WGMMA_WAIT;
}

/* Does `end` close it? */
static inline bool dc_kop_opens(dc_kop op)
{
    return op == DC_K_LOOP || op == DC_K_IF || op == DC_K_ROWS;
}

static inline bool dc_kop_zips(dc_kop op)
{
    return op == DC_K_ZIP_LOW || op == DC_K_ZIP_HIGH;
}

/* What a CELL has in imm. */
static inline uint64_t dc_cell_of(uint32_t table, uint32_t column)
{
    return (uint64_t)table << 32 | column;
}

static inline uint32_t dc_cell_table(const dc_finst *i)
{
    return (uint32_t)(i->imm >> 32);
}

static inline uint32_t dc_cell_column(const dc_finst *i)
{
    return (uint32_t)i->imm;
}

/* How many parameters the buffer is. */
static inline uint32_t dc_flat_rows(const dc_flat *f, const dc_buffer *b)
{
    return b->scope != DC_SCOPE_PARAM ? 0 : b->table != 0 ? f->table.at[b->table - 1].rows : 1;
}

/* The buffer's elements in a row. */
static inline int64_t dc_flat_count(const dc_flat *f, const dc_buffer *b, uint32_t row)
{
    const dc_ftable *t = b->table != 0 ? &f->table.at[b->table - 1] : NULL;
    return t == NULL || b->column == 0 ? b->count
                                       : (int64_t)t->cell[row * t->columns + b->column - 1];
}

/* A load whose value does not depend on when it runs. */
bool dc_flat_reads_input(const dc_flat *f, const dc_finst *i);

/* Bytes of group memory; where buffer n of scope GROUP begins in it: a multiple of 16, of atoms of 1024. */
size_t dc_flat_group_bytes(const dc_flat *f);
size_t dc_flat_group_offset(const dc_flat *f, uint32_t n);

/* Bytes of a store to group memory, if it may be an async one; else 0. */
size_t dc_flat_async_bytes(const dc_flat *f, const dc_finst *store);

/* Bits of a type in arithmetic: 1 of bool, index_bits of DC_INDEX. */
int dc_flat_width(const dc_flat *f, int type);
/* A pattern as CONST holds it: cut to the width, extended by the sign of the type. */
uint64_t dc_flat_canonical(const dc_flat *f, int type, uint64_t bits);

/*
 * Building, front to back. Every instruction lands at the end. A pure one that an open scope
 * already has is not made again; what is constant of index type or bool is folded.
 */
typedef struct dc_fkept { /* a place of a local, and the value that was stored there */
    uint32_t buf, since, stores;
    uint64_t at;
    dc_fv value;
} dc_fkept;

typedef struct
    dc_fheld { /* stores to a local since then, all of so many lanes at multiples of them */
    uint32_t since, stores;
    uint16_t lanes;
} dc_fheld;

typedef struct dc_fbuild {
    dc_flat *f;
    uint32_t head[1024];    /* hash-consing: chains of what open scopes computed */
    DC_VEC(dc_fv) chain;    /* by value: the next in its chain */
    DC_VEC(dc_fv) consed;   /* in the order they were made */
    DC_VEC(uint32_t) scope; /* consed.n when each open scope began */
    DC_VEC(dc_fv) opened;   /* LOOP or IF of each */
    DC_VEC(dc_fv) around;   /* the scope round each */
    uint16_t level;         /* open loops */
    dc_fkept kept[256];     /* what locals hold, by buffer and place; see dc_fb_mem */
    DC_VEC(dc_fheld) held;  /* by buffer: what counts of it */
    dc_fv since;            /* the innermost open scope, 0: none */
    bool half;              /* the target converts between f16 and f32 */
    bool bfloat;            /* it rounds f32 to bf16 */
    bool scales;            /* it has DC_K_SCALE */
    bool ranges;            /* it has DC_K_MIN, DC_K_MAX */
    bool dp4a;              /* it has DC_K_DP4A */
    bool fused;             /* its DC_K_FMA rounds once, where the kernel is not strict */
} dc_fbuild;

dc_fbuild *dc_fb_new(dc_flat *f); /* in its arena */

dc_fv dc_fb_const(dc_fbuild *b, int type, int lanes, uint64_t bits);
dc_fv dc_fb_arg(dc_fbuild *b, int which);   /* dc_karg */
void dc_fb_barrier(dc_fbuild *b, int kind); /* dc_kbarrier */
void dc_fb_commit(dc_fbuild *b);
void dc_fb_wait(dc_fbuild *b, int groups);
dc_fv dc_fb_shuffle(dc_fbuild *b, dc_fv a, dc_fv lane);
dc_fv dc_fb_mma(dc_fbuild *b, dc_fv a, dc_fv c, dc_fv d); /* a * c + d */
dc_fv dc_fb_lanes(dc_fbuild *b, int type, int lanes, int64_t step);
dc_fv dc_fb_splat(dc_fbuild *b, dc_fv a, int lanes); /* as it is if it has them already */
dc_fv dc_fb_op1(dc_fbuild *b, dc_kop op, dc_fv a);
dc_fv dc_fb_op2(dc_fbuild *b, dc_kop op, dc_fv a, dc_fv c);
dc_fv dc_fb_op3(dc_fbuild *b, dc_kop op, dc_fv a, dc_fv c, dc_fv d);
dc_fv dc_fb_convert(dc_fbuild *b, dc_fv a, int type);
dc_fv dc_fb_bitcast(dc_fbuild *b, dc_fv a, int type);
/* mem: op, buf, lanes, align, imm, in[] of a MEM row */
dc_fv dc_fb_mem(dc_fbuild *b, const dc_finst *mem);
dc_fv dc_fb_loop(dc_fbuild *b, dc_fv begin, dc_fv end);
void dc_fb_if(dc_fbuild *b, dc_fv cond);
void dc_fb_rows(dc_fbuild *b, uint32_t table, dc_fv row);
dc_fv dc_fb_cell(dc_fbuild *b, int type, uint32_t table, uint32_t column, dc_fv row);
void dc_fb_end(dc_fbuild *b);

static inline const dc_finst *dc_fb_at(const dc_fbuild *b, dc_fv v)
{
    return dc_finst_at(b->f, v);
}

/* Is it a constant (in all lanes)? */
static inline bool dc_fb_is_const(const dc_fbuild *b, dc_fv v, uint64_t *bits)
{
    const dc_finst *i = dc_finst_at(b->f, v);
    *bits = i->imm;
    return i->op == DC_K_CONST;
}

/* Passes (jit/flat/passes.def), each from a legal form to a legal form of the same meaning. */
#define PASS(id, help) void dc_pass_##id(dc_flat *f);
#include "jit/flat/passes.def"

/* All but those whose bit (by position in the table) is in skip; check: the verifier after each. */
dc_status dc_flat_optimize(dc_job *j, dc_flat *f, uint32_t skip, bool check);

#endif
