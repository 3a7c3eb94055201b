/*
 * Sizes that are known when a function runs: a variable with a least and a largest size, and what is
 * computed of such: 2*n + 1, n*m, (n + 1)//2.
 *
 * In a dim (int64_t) such a size is a code, far above every size that can be addressed: it names an
 * expression of the context's table and holds the bound, the largest value it can have. Equal
 * expressions have equal codes, so what compares dims compares these. What computes with dims goes
 * through dc_extent_add and its like; arithmetic on a code itself makes no code of the table, which
 * dc_extent_known tells and dc_infer refuses.
 *
 * Expressions are sums of products, canonical: c + k1*p1 + k2*p2 ..., products of at most
 * DC_EXTENT_FACTORS factors, each a variable or a floored quotient by a constant.
 *
 * Graphs with codes exist while a function is traced and differentiated. dc_bounded_lower
 * (core/transform/bounded.h) makes graphs of them that have numbers alone, for whatever comes behind.
 */
#ifndef DC_CORE_BASE_EXTENT_H
#define DC_CORE_BASE_EXTENT_H

#include "core/base/base.h"

enum {
    DC_EXTENT_SHIFT = 40, /* bits of the bound in a code; the number of the expression above */
    DC_EXTENT_BIT = 62,
    DC_EXTENT_FACTORS = 3, /* of a product */
    DC_EXTENT_TERMS = 8,   /* of a sum */
    DC_EXTENT_MOST = 1 << 16,
    DC_EXTENT_TEXT = 160 /* room that most printed expressions fit in; the printer cuts */
};
/* What no expression of these forms, or of this many, is. Never a size. */
#define DC_EXTENT_NONE INT64_MIN

typedef struct dc_extents dc_extents;

dc_extents *dc_extents_new(void);
void dc_extents_free(dc_extents *e);

static inline bool dc_extent_is(int64_t dim)
{
    return dim >> (DC_EXTENT_BIT - 4) == 1 << 4; /* INT64_MAX, say, is none */
}

/* A number that others gave, as a size: what lies among the codes is too large, as INT64_MAX is. */
static inline int64_t dc_extent_number(int64_t n)
{
    return dc_extent_is(n) ? INT64_MAX : n;
}

/* The largest value; a size is its own. */
static inline int64_t dc_extent_bound(int64_t dim)
{
    return dc_extent_is(dim) ? dim & (((int64_t)1 << DC_EXTENT_SHIFT) - 1) : dim;
}

/* The variable of this name (interned) with values from lo to hi; NONE where 0 <= lo <= hi is not so. */
int64_t dc_extent_var(dc_extents *e, const char *name, int64_t lo, int64_t hi);

/*
 * Of sizes and codes; numbers give a number. NONE where it is none of the table's forms, or too
 * large; e may be NULL where all are numbers. Results may be negative for some values of the variables
 * (n - 3): dc_extent_lo tells. A code for a value that is always below 0 does not exist: NONE.
 */
int64_t dc_extent_add(dc_extents *e, int64_t a, int64_t b);
int64_t dc_extent_sub(dc_extents *e, int64_t a, int64_t b);
int64_t dc_extent_mul(dc_extents *e, int64_t a, int64_t b);
int64_t dc_extent_div(dc_extents *e, int64_t a, int64_t k); /* floor, k > 0 a number */
/* q with a = q * b for all values; NONE where there is none. b is not 0. */
int64_t dc_extent_quotient(dc_extents *e, int64_t a, int64_t b);
/* Is a - b at least 0, whatever the values? False also where that is not found. */
bool dc_extent_at_least(dc_extents *e, int64_t a, int64_t b);
int64_t dc_extent_product(dc_extents *e, int n, const int64_t *dim);

/* A size of at least 0, or a code of the table? */
bool dc_extent_known(const dc_extents *e, int64_t dim);
/* The least value, or something below it. */
int64_t dc_extent_lo(const dc_extents *e, int64_t dim);

/* The value: var(ctx, code) gives that of each variable. */
typedef int64_t dc_extent_value(void *ctx, int64_t var);
int64_t dc_extent_eval(const dc_extents *e, int64_t dim, dc_extent_value *var, void *ctx);

/* "2*n + 1", "64"; returns what snprintf would. */
int dc_extent_print(const dc_extents *e, int64_t dim, char *out, size_t room);

#endif
