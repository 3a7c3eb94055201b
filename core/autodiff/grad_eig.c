/*
 * Gradients of eigenvalues and eigenvectors of any real square matrix (Boeddeker, Hanebrink, Drude, Heymann and
 * Haeb-Umbach 2017, as PyTorch has them). Complex numbers are pairs of real nodes; the cotangent of a real matrix is the
 * real part of that of a complex one. Vectors have the norm 1 and any phase: what a loss gains by another phase does not
 * count. Equal eigenvalues, and matrices without enough vectors, give infinity or NaN.
 */
#include "core/autodiff/grad_impl.h"
#include "core/autodiff/grad_matrix.h"

typedef struct pair {
    dc_ref re, im;
} pair;

/* Both parts, which lie along a last axis. */
static pair parts_of(dc_func *f, dc_ref a)
{
    const dc_node n = *dc_node_at(f, a);
    const dc_ref re = part(f, a, 1, 0, 1), im = part(f, a, 1, 1, 1);
    return (pair){dc_graph_reshape(f, re, n.rank - 1, n.dim),
                  dc_graph_reshape(f, im, n.rank - 1, n.dim)};
}

static pair rows(dc_func *f, pair a, int64_t first, int64_t n)
{
    return (pair){part(f, a.re, 2, first, n), part(f, a.im, 2, first, n)};
}

/* A^H B */
static pair adjoint_times(dc_func *f, pair a, pair b)
{
    return (pair){add(f, product(f, a.re, b.re, LEFT_T), product(f, a.im, b.im, LEFT_T)),
                  minus(f, product(f, a.re, b.im, LEFT_T), product(f, a.im, b.re, LEFT_T))};
}

/* A B^H */
static pair times_adjoint(dc_func *f, pair a, pair b)
{
    return (pair){add(f, product(f, a.re, b.re, RIGHT_T), product(f, a.im, b.im, RIGHT_T)),
                  minus(f, product(f, a.im, b.re, RIGHT_T), product(f, a.re, b.im, RIGHT_T))};
}

/* Each column times the number on the diagonal of d. */
static pair by_diagonal(dc_func *f, pair a, dc_ref d)
{
    const int rank = dc_node_at(f, d)->rank;
    const dc_ref one = dc_graph_op2(f, DC_OP_EQ, number(f, d, 2), number(f, d, 1));
    const dc_ref on = dc_graph_op3(f, DC_OP_WHERE, one, d, dc_graph_like(f, d, 0));
    const dc_ref numbers = dc_graph_reduce(f, DC_OP_SUM, on, 1u << (rank - 2));
    const dc_ref all = spread(f, numbers, a.re, COLUMNS);
    return (pair){times(f, a.re, all), times(f, a.im, all)};
}

/* a / conj(w_j - w_i) off the diagonal: a times the difference, over the square of its size. */
static pair over_gaps(dc_func *f, pair a, pair w)
{
    const pair e = {gaps(f, w.re, a.re), off_diagonal(f, gaps(f, w.im, a.re))};
    const dc_ref size = add(f, times(f, e.re, e.re), times(f, e.im, e.im));
    const dc_ref re = minus(f, times(f, a.re, e.re), times(f, a.im, e.im)),
                 im = add(f, times(f, a.re, e.im), times(f, a.im, e.re));
    return (pair){quotient(f, re, size), quotient(f, im, size)};
}

/* The real part of V^-H B: of real numbers [re V^T, im V^T; -im V^T, re V^T] X = [re B; im B]. */
static dc_ref solved(dc_func *f, pair v, pair b)
{
    const int64_t n = dim_of(f, v.re, 1), lies[1] = {1}, plain[2] = {0, 1};
    const dc_ref re = turned(f, v.re), im = turned(f, v.im);
    dc_ref a = add(f, placed(f, re, 0, 0, 2 * n, 2 * n), placed(f, re, n, n, 2 * n, 2 * n));
    a = add(f, a, placed(f, im, 0, n, 2 * n, 2 * n));
    a = minus(f, a, placed(f, im, n, 0, 2 * n, 2 * n));
    const dc_ref right = add(f, placed(f, b.re, 0, 0, 2 * n, n), placed(f, b.im, n, 0, 2 * n, n));
    const dc_ref lu = dc_graph_make(f, DC_OP_LU, &a, 1, lies, 1, NULL);
    const dc_ref in[3] = {a, lu, right};
    return part(f, dc_graph_make(f, DC_OP_LUSOLVE, in, 3, plain, 2, NULL), 2, 0, n);
}

/* A = V diag(w) V^-1: V^-H (diag(dw) + (V^H dV - V^H V diag(re V^H dV)) / conj(w_j - w_i)) V^H. */
void dc_grad_eig(const dc_vjp *v)
{
    dc_func *f = v->f;
    const pair all = parts_of(f, v->r), g = parts_of(f, v->g);
    const int64_t n = dim_of(f, all.re, 1);
    const pair x = rows(f, all, 1, n), dx = rows(f, g, 1, n), first = rows(f, all, 0, 1),
               dw = rows(f, g, 0, 1), w = {vector(f, first.re), vector(f, first.im)};
    const pair turn = adjoint_times(f, x, dx),
               along = adjoint_times(f, x, by_diagonal(f, x, turn.re));
    pair s = {minus(f, turn.re, along.re), minus(f, turn.im, along.im)};
    s = over_gaps(f, (pair){off_diagonal(f, s.re), off_diagonal(f, s.im)}, w);
    s.re = add(f, s.re, on_diagonal(f, vector(f, dw.re), s.re));
    s.im = add(f, s.im, on_diagonal(f, vector(f, dw.im), s.im));
    dc_vjp_give(v, 0, solved(f, x, times_adjoint(f, s, x)));
}

/* V^-H diag(dw) V^H, with the vectors of a node of its own. */
void dc_grad_eigvals(const dc_vjp *v)
{
    dc_func *f = v->f;
    const pair dw = parts_of(f, v->g);
    const pair all = parts_of(f, dc_graph_make(f, DC_OP_EIG, v->n.in, 1, NULL, 0, NULL));
    const pair x = rows(f, all, 1, dim_of(f, all.re, 1));
    const dc_ref re = spread(f, dw.re, x.re, ROWS), im = spread(f, dw.im, x.re, ROWS);
    const dc_ref xr = turned(f, x.re), xi = turned(f, x.im);
    const pair b = {add(f, times(f, re, xr), times(f, im, xi)),
                    minus(f, times(f, im, xr), times(f, re, xi))};
    dc_vjp_give(v, 0, solved(f, x, b));
}
