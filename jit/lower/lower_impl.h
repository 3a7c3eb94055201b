/* What the files of lowering share (jit/lower/lower.c tells how it goes). */
#ifndef DC_JIT_LOWER_LOWER_IMPL_H
#define DC_JIT_LOWER_LOWER_IMPL_H

#include "jit/lower/lower.h"

typedef struct memo_entry {
    dc_ix pos[DC_MAX_RANK];
    const dc_range *guard;
    dc_vx value;
    struct memo_entry *next;
} memo_entry;

/* What is known of a node in one kernel. */
typedef struct lower_fact {
    uint32_t kernel, loop; /* what it was written down for; anything else is stale */
    uint32_t buf;          /* of an input, or local of a reduction or kept value; DC_NO_BUF */
    bool is_local;         /* which of the two */
    bool is_row;           /* a local by row, of attention */
    memo_entry *memo;
} lower_fact;

/* By ref. Numbered by kernel and loop, since to clear it for each kernel takes the square of a function's size. */
struct dc_lower_scratch {
    uint32_t kernel, loop; /* now */
    lower_fact *fact;
};

typedef struct lowering {
    dc_job *j;
    const dc_groups *groups;
    const dc_group *group; /* of these */
    const dc_func *fn;
    dc_kernel *k;
    struct dc_lower_scratch *scratch;
    dc_ix column; /* by rows: where in its row a kept value is wanted; of attention: in a tile */
    dc_ix lane;   /* of attention: which row of its block */
    dc_ix out_pos[DC_MAX_RANK];
    uint32_t last;           /* axis of the loops over outputs, the innermost; DC_NO_AXIS */
    dc_ix loop[DC_MAX_RANK]; /* of a convolution: positions of its loops (jit/lower/lower_conv.c) */
    dc_ref right;            /* an input that a dot's right operand reads as right_buf; 0: none */
    uint32_t right_buf;
    bool updates_only; /* what the group changes a part of is there already */
    bool divides;      /* a store is at a place that has divisions in it */
    dc_pred guard;     /* range tests of the paddings above */
} lowering;

static inline lower_fact *dc_lower_fact(const lowering *w, dc_ref r)
{
    lower_fact *x = &w->scratch->fact[r];
    if (x->kernel != w->scratch->kernel)
        *x = (lower_fact){.kernel = w->scratch->kernel, .loop = w->scratch->loop, .buf = DC_NO_BUF};
    if (x->loop != w->scratch->loop) {
        x->loop = w->scratch->loop;
        x->memo = NULL;
    }
    return x;
}

typedef struct nest { /* loops, the outermost first */
    uint32_t axis[2 * DC_MAX_RANK];
    int n;
} nest;

/* What values of the dtype are computed as. */
static inline dc_dtype dc_lower_computed(dc_dtype t)
{
    return dc_dtype_is_short(t) ? DC_F32 : t;
}

/* Of a reduction to dtype t, in which nothing is beyond what t has. */
static inline uint64_t dc_lower_identity(dc_op reduction, dc_dtype t)
{
    return dc_bits_cast(t, dc_lower_computed(t), dc_op_identity(reduction, t));
}

/* lower_value.c: the value of r at a position: one index for each of its dims. */
dc_vx dc_lower_node(lowering *w, dc_ref r, const dc_ix *pos);
/* A value, computed of a node of dtype t, as it is in memory; the same brought to dtype t. */
dc_vx dc_lower_as_stored(lowering *w, dc_vx v, dc_dtype t);
dc_vx dc_lower_cast(lowering *w, dc_vx v, dc_dtype t);

/* An integer as part of a position: moved into lo..hi, as i32 where that can hold it. */
dc_ix dc_lower_loaded_index(dc_kernel *k, dc_vx v, int64_t lo, int64_t hi);
/* Position in the integers of gather or scatter n, given one in the elements that they pick. */
void dc_lower_index_position(const lowering *w, const dc_node *n, const dc_ix *pos, dc_ix *out);

/* Where an output is stored, of the element with this number. */
dc_ix dc_lower_place(lowering *w, dc_ref out, dc_ix number);

dc_ix dc_lower_linear(dc_kernel *k, const dc_node *n, const dc_ix *pos);
void dc_lower_delinear(dc_kernel *k, dc_ix at, int rank, const int64_t *dim, dc_ix *pos);

/* The place in n, of equally many elements, that corresponds to `at` in the dims given. */
void dc_lower_at(lowering *w, const dc_node *n, int rank, const int64_t *dim, const dc_ix *at,
                 dc_ix *pos);

/* lower_reduction.c: axes for the dims given: one flat one, or one each (none for size 1). Fills pos. */
void dc_lower_axes(lowering *w, bool flat, const char *prefix, int rank, const int64_t *dim,
                   bool reduce, nest *loops, dc_ix *pos);
dc_stmt *dc_lower_wrap(dc_kernel *k, const nest *loops, dc_stmt *body);
/* Forgets values: another loop begins. */
void dc_lower_forget(lowering *w);

/* acc = identity; the loops round `add` come next in the list. */
typedef struct accumulation {
    dc_stmt *init, *add;
} accumulation;
accumulation dc_lower_accumulate(lowering *w, dc_ref r, dc_vx term);

/* The dims that a reduction or contraction adds up; their rank. Elements of dims. */
int dc_lower_reduced_dims(const lowering *w, const dc_node *n, int64_t *dim);
int64_t dc_lower_product(int rank, const int64_t *dim);

typedef struct dc_lower_terms { /* loops over terms */
    nest loops;
    dc_ix pos[DC_MAX_RANK];
    dc_stmt *init, *add; /* in front of them; the last assignment in them */
} dc_lower_terms;

/* Number `which` of the group's reductions; NULL where it is part of the loops before. */
dc_stmt *dc_lower_reduction(lowering *w, uint32_t which, bool flat, dc_lower_terms *s);

/* lower_limit.c: what may be left out of s: elements of r, which it computes at pos; of one node more, which it computes
 * too; terms of reduction r at positions in its operands. */
void dc_lower_limit(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *pos);
void dc_lower_limit_also(lowering *w, dc_stmt *s, bool first, dc_ref r, const dc_ix *pos);
void dc_lower_limit_terms(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *const at[2]);
/* Does a limit come again and again along an axis, since that is several dims? */
/* Of what a mask that is false from a number on leaves alone: at a position along this axis of it. */
void dc_lower_limit_before(lowering *w, dc_stmt *s, dc_ref mask, int axis, dc_ix at);
/* Of updates of scatter r, at a position in its integers: those behind a number go nowhere. */
void dc_lower_limit_updates(lowering *w, dc_stmt *s, dc_ref r, const dc_ix *at);
bool dc_lower_limits_wrap(const dc_kernel *k, const dc_stmt *first);

/* lower_fft.c: stage r of a transform, the group's output. */
void dc_lower_stage(lowering *w, dc_ref r);
/* lower_transform.c: transform r of [before, n, after, 2] along axis 1, the group's output. */
void dc_lower_transform(lowering *w, dc_ref r);

/* lower_attention.c: a kernel of attention. */
void dc_lower_attention(lowering *w);

/* lower_conv.c: of convolution n, the loops over its result, with w->out_pos; ... */
void dc_lower_conv_loops(lowering *w, const dc_node *n, nest *loops);
/* ... the extents of those over its terms; the term at a position in them. */
int dc_lower_conv_terms(const dc_func *f, const dc_node *n, int64_t *dim);
dc_vx dc_lower_conv_term(lowering *w, const dc_node *n, const dc_ix *at);
/* ... where both operands stand then, which may be outside of the first one. */
void dc_lower_conv_operands(lowering *w, const dc_node *n, const dc_ix *at,
                            dc_ix pos[2][DC_MAX_RANK]);

/* lower_roles.c: all loops mean this; what those over the result of a contraction mean, and those over its
 * terms, ... */
void dc_lower_set_role(dc_kernel *k, const nest *loops, dc_role role);
void dc_lower_dot_roles(lowering *w, const dc_node *n, const nest *loops);
void dc_lower_conv_roles(lowering *w, const dc_node *n, const nest *loops);
void dc_lower_term_roles(lowering *w, const dc_node *n, const nest *loops, const dc_ix *pos);
/* ... and once its operands are lowered, along which of them these move. */
void dc_lower_settle_roles(lowering *w, const dc_vx operand[2]);

/* Is a division or remainder left in the map? */
bool dc_lower_divides(const dc_kernel *k, dc_ix at);

/* lower_update.c: what the group changes a part of, 0: nothing; the kernel that stores this part alone. */
dc_ref dc_lower_put_in(const dc_groups *groups, uint32_t index);
void dc_lower_put(lowering *w, bool flat);

/* lower_rows.c: a group by rows. */
dc_stmt *dc_lower_rows(lowering *w, bool flat);

#endif
