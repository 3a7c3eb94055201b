/*
 * Steps of gradients of what the host computes of matrices: these are the last two axes of a node, those in front are a
 * batch. Private to core/autodiff/grad_*.c.
 */
#ifndef DC_CORE_AUTODIFF_GRAD_MATRIX_H
#define DC_CORE_AUTODIFF_GRAD_MATRIX_H

#include "core/base/bits.h"
#include "core/ir/dot.h"
#include "core/ir/graph.h"

static inline int64_t dim_of(const dc_func *f, dc_ref a, int from_the_end)
{
    const dc_node *n = dc_node_at(f, a);
    return n->dim[n->rank - from_the_end];
}

static inline dc_ref turned(dc_func *f, dc_ref a)
{
    const int rank = dc_node_at(f, a)->rank;
    int64_t perm[DC_MAX_RANK];
    for (int k = 0; k < rank; k++)
        perm[k] = k < rank - 2 ? k : 2 * rank - 3 - k;
    return dc_graph_permute(f, a, perm);
}

/* A B; by flag A^T B, A B^T. */
enum { LEFT_T = 1, RIGHT_T = 2 };

static inline dc_ref product(dc_func *f, dc_ref a, dc_ref b, int flags)
{
    const int rank = dc_node_at(f, a)->rank;
    dc_dot d = {.nbatch = rank - 2, .ncontract = 1};
    for (int k = 0; k < rank - 2; k++)
        d.batch[0][k] = d.batch[1][k] = k;
    d.contract[0][0] = flags & LEFT_T ? rank - 2 : rank - 1;
    d.contract[1][0] = flags & RIGHT_T ? rank - 1 : rank - 2;
    return dc_dot_make(f, a, b, &d);
}

static inline dc_ref add(dc_func *f, dc_ref a, dc_ref b)
{
    return a == 0 ? b : b == 0 ? a : dc_graph_op2(f, DC_OP_ADD, a, b);
}

static inline dc_ref minus(dc_func *f, dc_ref a, dc_ref b)
{
    return dc_graph_op2(f, DC_OP_SUB, a, b);
}

static inline dc_ref times(dc_func *f, dc_ref a, dc_ref b)
{
    return dc_graph_op2(f, DC_OP_MUL, a, b);
}

/* The number of the row, or the column, of each element of a matrix like a. */
static inline dc_ref number(dc_func *f, dc_ref a, int from_the_end)
{
    dc_type t = dc_node_type(f, a);
    const int64_t axis = t.rank - from_the_end;
    t.dtype = DC_I32;
    return dc_graph_make(f, DC_OP_IOTA, NULL, 0, &axis, 1, &t);
}

/* The elements whose row and column compare so keep their values, the others are 0. */
static inline dc_ref where_rows(dc_func *f, dc_op op, dc_ref a)
{
    const dc_ref mask = dc_graph_op2(f, op, number(f, a, 2), number(f, a, 1));
    return dc_graph_op3(f, DC_OP_WHERE, mask, a, dc_graph_like(f, a, 0));
}

static inline dc_ref upper(dc_func *f, dc_ref a)
{
    return where_rows(f, DC_OP_LE, a);
}

static inline dc_ref strictly_upper(dc_func *f, dc_ref a)
{
    return where_rows(f, DC_OP_LT, a);
}

/* row >= column is column <= row. */
static inline dc_ref lower(dc_func *f, dc_ref a)
{
    return turned(f, upper(f, turned(f, a)));
}

static inline dc_ref strictly_lower(dc_func *f, dc_ref a)
{
    return turned(f, strictly_upper(f, turned(f, a)));
}

/* A vector [.., n] beside the rows (each row is multiplied by its number) or the columns of a matrix like a. */
static inline dc_ref spread(dc_func *f, dc_ref v, dc_ref like, int axis_from_the_end)
{
    const dc_node n = *dc_node_at(f, like);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < n.rank; k++)
        dim[k] = n.dim[k];
    dim[n.rank - (3 - axis_from_the_end)] = 1;
    return dc_graph_expand(f, dc_graph_reshape(f, v, n.rank, dim), n.dim);
}

enum { ROWS = 2, COLUMNS = 1 };

typedef struct triangle {
    bool upper, transposed, unit;
} triangle;

static inline dc_ref solve(dc_func *f, dc_ref a, dc_ref b, triangle t)
{
    const int64_t attr[3] = {t.upper, t.transposed, t.unit};
    return dc_graph_make(f, DC_OP_TRSOLVE, (const dc_ref[]){a, b}, 2, attr, 3, NULL);
}

/* X op(A) = B is op(A)^T X^T = B^T. */
static inline dc_ref solve_right(dc_func *f, dc_ref a, dc_ref b, triangle t)
{
    t.transposed = !t.transposed;
    return turned(f, solve(f, a, turned(f, b), t));
}

/* Elements from `first` on along the last axis but `from_the_end` - 1, n of them. */
static inline dc_ref part(dc_func *f, dc_ref a, int from_the_end, int64_t first, int64_t n)
{
    const dc_node x = *dc_node_at(f, a);
    int64_t start[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int k = 0; k < x.rank; k++) {
        step[k] = 1;
        dim[k] = x.dim[k];
    }
    start[x.rank - from_the_end] = first;
    dim[x.rank - from_the_end] = n;
    return dc_graph_slice(f, a, start, step, dim);
}

/* A matrix of m x n elements, 0 but for a, whose first element is at row, column. */
static inline dc_ref placed(dc_func *f, dc_ref a, int64_t row, int64_t column, int64_t m, int64_t n)
{
    const dc_node x = *dc_node_at(f, a);
    int64_t lo[DC_MAX_RANK] = {0}, step[DC_MAX_RANK], dim[DC_MAX_RANK];
    for (int k = 0; k < x.rank; k++) {
        step[k] = 1;
        dim[k] = x.dim[k];
    }
    lo[x.rank - 2] = row;
    lo[x.rank - 1] = column;
    dim[x.rank - 2] = m;
    dim[x.rank - 1] = n;
    return dc_graph_pad(f, a, lo, step, dim, dc_bits_of((dc_dtype)x.dtype, 0));
}

/* The columns of a, then those of b. */
static inline dc_ref beside(dc_func *f, dc_ref a, dc_ref b)
{
    const int64_t m = dim_of(f, a, 2), n = dim_of(f, a, 1), all = n + dim_of(f, b, 1);
    return add(f, placed(f, a, 0, 0, m, all), placed(f, b, 0, n, m, all));
}

/* One of the matrices packed in the last axis. */
static inline dc_ref unpacked(dc_func *f, dc_ref a, int64_t first, int64_t m, int64_t n)
{
    const dc_ref flat = part(f, a, 1, first, m * n);
    const dc_node x = *dc_node_at(f, flat);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < x.rank - 1; k++)
        dim[k] = x.dim[k];
    dim[x.rank - 1] = m;
    dim[x.rank] = n;
    return dc_graph_reshape(f, flat, x.rank + 1, dim);
}

static inline dc_ref scaled(dc_func *f, dc_ref a, double by)
{
    return times(f, a, dc_graph_like(f, a, by));
}

/* a[j] - a[i] of a vector, as a matrix like `like` with row i and column j; 1 on the diagonal. */
static inline dc_ref gaps(dc_func *f, dc_ref a, dc_ref like)
{
    const dc_ref gap = minus(f, spread(f, a, like, COLUMNS), spread(f, a, like, ROWS));
    const dc_ref diagonal = dc_graph_op2(f, DC_OP_EQ, number(f, like, 2), number(f, like, 1));
    return dc_graph_op3(f, DC_OP_WHERE, diagonal, dc_graph_like(f, gap, 1), gap);
}

static inline dc_ref on_diagonal(dc_func *f, dc_ref a, dc_ref like)
{
    const dc_ref diagonal = dc_graph_op2(f, DC_OP_EQ, number(f, like, 2), number(f, like, 1));
    return dc_graph_op3(f, DC_OP_WHERE, diagonal, spread(f, a, like, COLUMNS),
                        dc_graph_like(f, like, 0));
}

/* 0 where a is: where nothing is asked of a factor that is not unique, nothing comes. */
static inline dc_ref quotient(dc_func *f, dc_ref a, dc_ref b)
{
    const dc_ref none = dc_graph_like(f, a, 0), is_none = dc_graph_op2(f, DC_OP_EQ, a, none);
    return dc_graph_op3(f, DC_OP_WHERE, is_none, none, dc_graph_op2(f, DC_OP_DIV, a, b));
}

static inline dc_ref off_diagonal(dc_func *f, dc_ref a)
{
    return add(f, strictly_lower(f, a), strictly_upper(f, a));
}

static inline dc_ref vector(dc_func *f, dc_ref a) /* [.., 1, n] to [.., n] */
{
    const dc_node n = *dc_node_at(f, a);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < n.rank - 1; k++)
        dim[k] = k < n.rank - 2 ? n.dim[k] : n.dim[n.rank - 1];
    return dc_graph_reshape(f, a, n.rank - 1, dim);
}

#endif
