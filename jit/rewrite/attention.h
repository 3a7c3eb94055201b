/*
 * Attention: contractions whose left operand is made, element by element, of other contractions and of the maxima and sums of
 * its rows, as in softmax(q k^T) v and its gradients. Such a chain need not store a matrix of rows by columns: a kernel
 * computes tiles of it and adds up what they contribute (jit/lower/lower_attention.c).
 *
 *   weights[.., x, y] = f(scores[.., x, y], ...)     scores[.., x, y] = sum over c of a[.., x, c] * b[.., y, c]
 *   result[.., x, n]  = sum over y of weights[.., x, y] * values[.., y, n]
 *
 * Of three gradients two sum over queries, one over keys, and all are made of the same tiles. In a kernel whose rows are keys
 * two are results of its rows; the third is one of its terms, to which each block of rows adds in memory: that is `across`. A
 * thread has all rows of a batch then. Where batches are few the third is the sum of some parts, each over the weights as
 * [.., x, parts, y / parts], and a thread has all rows of a part.
 *
 * Where f has the maximum of a row in it, exp(scores - max), the one chain that computes that maximum begins with what it has
 * seen so far and corrects what it has added up whenever a larger score comes: Milakov and Gimelshein, Online normalizer
 * calculation for softmax, 2018; Dao, Fu, Ermon, Rudra and Re, FlashAttention, 2022.
 */
#ifndef DC_JIT_REWRITE_ATTENTION_H
#define DC_JIT_REWRITE_ATTENTION_H

#include "core/ir/graph.h"

enum { DC_ATTENTION_OUT = 2, DC_ATTENTION_INNER = 4 };

typedef struct dc_attention_kernel {
    int n;                            /* contractions that share tiles of the same rows */
    bool across;                      /* one more is over the rows, behind these n, */
    int64_t parts;                    /* in so many parts; 0: it is none */
    dc_ref dot[DC_ATTENTION_OUT + 1]; /* with the weights as their left operand */
    dc_ref
        top[DC_ATTENTION_OUT + 1]; /* what is stored of each: it, or element-wise steps behind it */
    dc_ref inner[DC_ATTENTION_INNER]; /* contractions that are computed in tiles */
    int ninner;
    int x, y, rank;    /* axes of the weights: rows of the results, terms; all others are batches */
    dc_ref max, score; /* of each row, computed here; what it is the maximum of. 0: none */
    dc_ref exp, sum;   /* exp(score - what the maximum gives); its sum over a row, or 0 */
    bool stores_max, stores_sum; /* others read them */
    dc_ref apart;                /* would be across, if it were the sum of so many parts; 0: none */
    int64_t apart_parts;
} dc_attention_kernel;

typedef enum dc_attention_place {
    DC_ATTENTION_NOT,
    DC_ATTENTION_TILE, /* an element for each of a tile: computed in the kernels that read it */
    DC_ATTENTION_ROW,  /* of what a kernel of these computes for a row: computed there */
    DC_ATTENTION_KEPT /* stored by a kernel, or may be: a top, a maximum, a sum; or between a dot and its top */
} dc_attention_place;

typedef struct dc_attention {
    uint32_t n;
    dc_attention_kernel *at;
    uint8_t *place;      /* by ref: dc_attention_place; NULL: there are no kernels */
    uint32_t *kernel_of; /* by ref, of what is KEPT */
} dc_attention;

/* The same function with what makes chains of attention: scales of rows behind contractions, the weights to their left. */
dc_func *dc_attention_rewrite(dc_arena *scratch, const dc_func *f);

/* The same with sums of parts where these make contractions across; NULL: there are none. */
dc_func *dc_attention_split(dc_arena *scratch, const dc_func *f);

/* Which kernels there are in a function that was rewritten. */
dc_attention dc_attention_in(const dc_func *f, dc_arena *a);

/* The weights of contraction i, whether or not they are in parts. */
static inline dc_ref dc_attention_weights(const dc_func *f, const dc_attention_kernel *k, int i)
{
    const dc_ref r = dc_node_at(f, k->dot[i])->in[0];
    return k->parts > 0 && i == k->n + k->across - 1 ? dc_node_at(f, r)->in[0] : r;
}

static inline dc_attention_place dc_attention_place_of(const dc_attention *t, dc_ref r)
{
    return t->place == NULL ? DC_ATTENTION_NOT : (dc_attention_place)t->place[r];
}

#endif
