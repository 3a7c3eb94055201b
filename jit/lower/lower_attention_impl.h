/* What the files of attention share: the state of a kernel that is made, and small parts of it (lower_attention.c). */
#ifndef DC_JIT_LOWER_LOWER_ATTENTION_IMPL_H
#define DC_JIT_LOWER_LOWER_ATTENTION_IMPL_H

#include "core/ir/dot.h"
#include "jit/base/tuning.h"
#include "jit/lower/lower_impl.h"

enum {
    WIDTH =
        DC_TUNE_ATTENTION_WIDTH, /* rows of a block, and what is from one term to the next in a tile */
    STRIP = DC_TUNE_ATTENTION_STRIP /* terms, or columns, that are computed at a time, at most */
};

typedef struct axes { /* of a loop over blocks of terms, and over what is in one */
    uint32_t block, term, lane;
} axes;

typedef struct attending {
    lowering *w;
    const dc_attention_kernel *a;
    const dc_node *weights;
    dc_ix batch[DC_MAX_RANK], first_row, first_term;
    int64_t step, height; /* terms of whole blocks, of this one */
    bool covers;          /* the last block of rows reaches behind them */
    dc_ix part;           /* of the rows of a batch, and */
    int64_t part_rows;    /* so many of them */
    int64_t lanes;        /* rows that are computed at a time */
    uint32_t rows[DC_ATTENTION_INNER], tile[DC_ATTENTION_INNER], weight[DC_ATTENTION_OUT + 1],
        total[DC_ATTENTION_OUT], strip;
    uint32_t turned,
        across; /* what rows have for the contraction across: [rows][columns]; its result */
    uint32_t max, next, base, factor, sum;      /* by row; NONE: there are none */
    dc_vx score, element[DC_ATTENTION_OUT + 1]; /* of an element, and its weights, in loops over */
    axes axis;
    uint32_t loops;
    dc_stmt **last;
} attending;

/* Terms, or columns, from `first` on by rows from `row` on, whose sums are in registers. */
typedef struct patch {
    dc_ix first, row;
    int64_t size, rows;
} patch;

static inline dc_dtype kind_of(const attending *x)
{
    return dc_lower_computed((dc_dtype)x->weights->dtype);
}

static inline dc_ix plus(const attending *x, dc_ix a, dc_ix b)
{
    return dc_ix_add(x->w->k, a, b);
}

/* Element of a local [..][WIDTH]. */
static inline dc_ix place(const attending *x, dc_ix row, dc_ix lane)
{
    return plus(x, dc_ix_mul(x->w->k, row, WIDTH), lane);
}

static inline dc_vx load(const attending *x, uint32_t buf, dc_ix at)
{
    return dc_vx_load(x->w->k, buf, at, (dc_pred){0});
}

static inline dc_vx number(const attending *x, double v)
{
    return dc_vx_const(x->w->k, kind_of(x), dc_bits_of(kind_of(x), v));
}

static inline dc_vx op2(const attending *x, dc_op op, dc_vx a, dc_vx b)
{
    const dc_vx in[2] = {a, b};
    const bool test = (dc_op_row_of(op)->flags & DC_OPF_CMP) != 0;
    return dc_vx_op(x->w->k, op, test ? DC_BOOL : kind_of(x), in, 2);
}

static inline dc_vx choose(const attending *x, dc_vx test, dc_vx a, dc_vx b)
{
    const dc_vx in[3] = {test, a, b};
    return dc_vx_op(x->w->k, DC_OP_WHERE, kind_of(x), in, 3);
}

static inline dc_vx exponential(const attending *x, dc_vx a)
{
    return dc_vx_op(x->w->k, DC_OP_EXP, kind_of(x), &a, 1);
}

static inline dc_stmt *set(attending *x, uint32_t buf, dc_ix at, dc_vx v)
{
    dc_stmt *s = dc_stmt_set(x->w->k, 1);
    s->put[0] = (dc_put){buf, at, v};
    return s;
}

/* Results: those of the rows, then the one across, which terms have. */
static inline int results_of(const attending *x)
{
    return x->a->n + x->a->across;
}

/* The number of a row within its part. */
static inline dc_ix row_of_part(const attending *x, dc_ix row)
{
    return plus(x, row, dc_ix_mul(x->w->k, x->part, -x->part_rows));
}

/* What is behind the last row is neither read nor stored. */
static inline dc_pred is_row(const attending *x, dc_ix row)
{
    return x->covers ? dc_pred_and(x->w->k, (dc_pred){0}, row_of_part(x, row), x->part_rows)
                     : (dc_pred){0};
}

/* lower_attention_tiles.c */

void dc_attend_append(attending *x, dc_stmt *s);
dc_ix dc_attend_loop(attending *x, const char *prefix, int64_t extent, dc_role role, bool reduce,
                     nest *loops);

/* The loop over rows, innermost. */
dc_ix dc_attend_lanes(attending *x, nest *loops);
uint32_t dc_attend_local(attending *x, const char *name, int64_t rows);

/* From now on node r is read there. */
void dc_attend_stands_in(attending *x, dc_ref r, uint32_t buf, bool by_row);

/* It is computed anew. */
void dc_attend_leaves(attending *x, dc_ref r);

/* The value of a node that has an element for each of the weights. */
dc_vx dc_attend_element(attending *x, dc_ref r, dc_ix term, dc_ix lane);

/* Of inner contraction i: the operand that rows have, or the one that terms have, at a position along it and along the sum. */
dc_vx dc_attend_operand(attending *x, dc_ref dot, bool of_rows, dc_ix at, dc_ix c);

/* The position along batch k of result i. */
dc_ix dc_attend_batch(const attending *x, const dc_dot *d, int i, int k);
/* What a term has for a column of result i, or a row for one of the result across. */
dc_vx dc_attend_value_of(attending *x, int i, dc_ix at, dc_ix column);
int64_t dc_attend_features_of(const attending *x, dc_ref dot);
int64_t dc_attend_columns_of(const attending *x, int i);

/* One size for all of them where there is one, so that the kernel has it once. */
int64_t dc_attend_strip_of(int64_t all);

/* The loop over the rows of a patch; *here: of them, *there: of all. */
void dc_attend_lanes_of(attending *x, const patch *p, nest *loops, dc_ix *here, dc_ix *there);

/* Calls f for all patches of so many terms, or columns, by so many rows. */
void dc_attend_patches(attending *x, int64_t all, int64_t rows,
                       void (*f)(attending *x, const patch *p, int inner, int out), int inner,
                       int out);

/* A tile of an inner contraction, or what the block adds to a result, patch by patch. */
void dc_attend_contract(attending *x, int inner, int out);

/* lower_attention_across.c */

/* Before the first block of rows. */
void dc_attend_clear_across(attending *x);

/* After the last one: the steps behind it, if there are any. */
void dc_attend_finish_across(attending *x);

/* What a block of rows has for it. Rows behind the last one have zeros. */
void dc_attend_turn_rows(attending *x);
void dc_attend_contract_across(attending *x);

/* lower_attention_online.c */

/* Before the first block of terms, and after the last one. */
void dc_attend_begin_maxima(attending *x);
void dc_attend_end_maxima(attending *x);

/* The scores of the block, their maxima, and what was added up before by them. */
void dc_attend_find_maxima(attending *x);

/* lower_attention_masks.c */

/*
 * What a mask leaves of the loop over blocks: a block whose scores are all -inf changes neither maxima nor sums, and one whose
 * weights are all 0 adds nothing. Where a row has no other scores, its result is the same NaN without it.
 */
void dc_attend_bound_loop(attending *x, dc_stmt *blocks);

#endif
