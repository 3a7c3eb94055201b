/*
 * Gradients of factorizations and triangular systems (Giles 2008, "An extended collection of matrix derivative results";
 * Walter and Lehmann 2010 for QR; Townsend 2016 for the singular values). dX is the cotangent of X. Where a factor is not
 * unique (equal eigenvalues, rank below the size) the derivative is not either, and comes out infinite or NaN.
 */
#include "core/autodiff/grad_impl.h"
#include "core/autodiff/grad_matrix.h"

/* ---- Cholesky -------------------------------------------------------------------------------------- */

/* A = L L^T: L^-T phi(L^T dL) L^-1 with phi the lower triangle, its diagonal halved; made symmetric. */
void dc_grad_cholesky(const dc_vjp *v)
{
    dc_func *f = v->f;
    const triangle lower_t = {.transposed = true}, lower_n = {0};
    const dc_ref p = product(f, v->r, lower(f, v->g), LEFT_T);
    const dc_ref half = scaled(f, add(f, lower(f, p), strictly_lower(f, p)), 0.5);
    const dc_ref x = solve_right(f, v->r, solve(f, v->r, half, lower_t), lower_n);
    dc_vjp_give(v, 0, scaled(f, add(f, x, turned(f, x)), 0.5));
}

/* ---- LU -------------------------------------------------------------------------------------------- */

/* P A = L U: P^T L^-T (strictly lower part of L^T dL, and upper part of dU U^T) U^-T. */
void dc_grad_lu(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t n = dim_of(f, v->r, 1);
    const int rank = v->n.rank;
    const triangle l_t = {.transposed = true, .unit = true},
                   u_t = {.upper = true, .transposed = true};
    const bool is_turned = v->n.attr[0] != 0; /* factors of the transpose, transposed */
    dc_ref packed = part(f, v->r, 2, 0, n), g = part(f, v->g, 2, 0, n);
    if (is_turned) {
        packed = turned(f, packed);
        g = turned(f, g);
    }
    dc_ref one = dc_graph_like(f, packed, 1);
    one = minus(f, upper(f, one), strictly_upper(f, one)); /* the identity */
    const dc_ref l = add(f, strictly_lower(f, packed), one);
    const dc_ref of_l = strictly_lower(f, product(f, l, strictly_lower(f, g), LEFT_T));
    const dc_ref of_u = upper(f, product(f, upper(f, g), upper(f, packed), RIGHT_T));
    const dc_ref x = solve(f, packed, add(f, of_l, of_u), l_t);
    const dc_ref rows = solve_right(f, packed, x, u_t);
    const dc_ref at = dc_graph_cast(f, part(f, v->r, 2, n, 1), DC_I32);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < rank - 2; k++)
        dim[k] = v->n.dim[k];
    dim[rank - 2] = n;
    const dc_ref da =
        dc_graph_scatter(f, DC_OP_SCATTER, dc_vjp_zero_like(v, v->n.in[0]),
                         dc_graph_reshape(f, at, rank - 1, dim), rows, rank - 2, rank - 2);
    dc_vjp_give(v, 0, is_turned ? turned(f, da) : da);
}

/* ---- QR -------------------------------------------------------------------------------------------- */

/* Of A = Q R with R square: (dQ + Q copyltu(R dR^T - dQ^T Q)) R^-T, where copyltu mirrors the lower triangle. */
static dc_ref qr_square(dc_func *f, dc_ref q, dc_ref r, dc_ref dq, dc_ref dr)
{
    const triangle u_t = {.upper = true, .transposed = true};
    const dc_ref m = minus(f, product(f, r, upper(f, dr), RIGHT_T), product(f, dq, q, LEFT_T));
    const dc_ref mirrored = add(f, lower(f, m), turned(f, strictly_lower(f, m)));
    return solve_right(f, r, add(f, dq, product(f, q, mirrored, 0)), u_t);
}

/* A wide matrix is [X, Y] with X = Q U, Y = Q V: what dV gives Q goes to dQ. A square Q of a tall one has columns that
   are any which complete it, without a derivative. */
void dc_grad_qr(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t m = dim_of(f, v->n.in[0], 2), n = dim_of(f, v->n.in[0], 1), k = dc_min_i64(m, n);
    if (v->n.attr[0] && m > n) {
        *v->status = dc_failf(
            v->j, DC_ERR_ARG, "qr",
            "with mode \"complete\" there is no gradient where there are more rows than columns");
        return;
    }
    const dc_ref q = unpacked(f, v->r, 0, m, k), r = unpacked(f, v->r, m * k, k, n);
    dc_ref dq = unpacked(f, v->g, 0, m, k);
    const dc_ref dr = unpacked(f, v->g, m * k, k, n);
    if (n <= m) {
        dc_vjp_give(v, 0, qr_square(f, q, r, dq, dr));
        return;
    }
    const dc_ref y = part(f, v->n.in[0], 1, m, n - m), dv = part(f, dr, 1, m, n - m);
    dq = add(f, dq, product(f, y, dv, RIGHT_T));
    const dc_ref dx = qr_square(f, q, part(f, r, 1, 0, m), dq, part(f, dr, 1, 0, m));
    const dc_ref dy = product(f, q, dv, 0);
    dc_vjp_give(v, 0, beside(f, dx, dy));
}

/* ---- eigenvalues, singular values ------------------------------------------------------------------ */

/* A = V diag(w) V^T: V (diag(dw) + V^T dV / (w_j - w_i)) V^T. */
void dc_grad_eigh(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t n = dim_of(f, v->r, 1);
    const dc_ref w = vector(f, part(f, v->r, 2, 0, 1)), x = part(f, v->r, 2, 1, n);
    const dc_ref dw = vector(f, part(f, v->g, 2, 0, 1)), dx = part(f, v->g, 2, 1, n);
    const dc_ref turn = off_diagonal(f, product(f, x, dx, LEFT_T));
    const dc_ref inner = add(f, quotient(f, turn, gaps(f, w, turn)), on_diagonal(f, dw, turn));
    dc_vjp_give(v, 0, product(f, product(f, x, inner, 0), x, RIGHT_T));
}

/* V diag(dw) V^T, with the vectors of a node of its own: values alone are less work. */
void dc_grad_eigvalsh(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t n = dim_of(f, v->r, 1);
    const dc_ref x = part(f, dc_graph_make(f, DC_OP_EIGH, v->n.in, 1, NULL, 0, NULL), 2, 1, n);
    dc_vjp_give(v, 0, product(f, times(f, x, spread(f, v->g, x, COLUMNS)), x, RIGHT_T));
}

static dc_ref skew(dc_func *f, dc_ref a)
{
    return minus(f, a, turned(f, a));
}

/* d less its part in the space of the columns of x, whose columns are orthonormal: (1 - x x^T) d. */
static dc_ref outside(dc_func *f, dc_ref x, dc_ref d)
{
    return minus(f, d, product(f, x, product(f, x, d, LEFT_T), 0));
}

/*
 * A = U S V^T: U (skew(U^T dU) / E S + S skew(V^T dV) / E + diag(dS)) V^T with E_ij = s_j^2 - s_i^2, and the parts of dU and
 * dV outside of the spaces of U and V, where there are some.
 */
void dc_grad_svd(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t m = dim_of(f, v->n.in[0], 2), n = dim_of(f, v->n.in[0], 1), k = dc_min_i64(m, n);
    const dc_ref u = unpacked(f, v->r, 0, m, k), w = turned(f, unpacked(f, v->r, m * k + k, k, n));
    const dc_ref s = part(f, v->r, 1, m * k, k), ds = part(f, v->g, 1, m * k, k);
    const dc_ref du = unpacked(f, v->g, 0, m, k);
    const dc_ref dw = turned(f, unpacked(f, v->g, m * k + k, k, n));
    const dc_ref of_u = skew(f, product(f, u, du, LEFT_T)),
                 of_w = skew(f, product(f, w, dw, LEFT_T));
    const dc_ref e = gaps(f, times(f, s, s), of_u);
    const dc_ref columns = spread(f, s, of_u, COLUMNS), rows = spread(f, s, of_u, ROWS);
    dc_ref inner = times(f, quotient(f, of_u, e), columns);
    inner = add(f, inner, times(f, rows, quotient(f, of_w, e)));
    inner = add(f, inner, on_diagonal(f, ds, of_u));
    dc_ref a = product(f, product(f, u, inner, 0), w, RIGHT_T);
    if (m > k) {
        const dc_ref more = quotient(f, outside(f, u, du), spread(f, s, u, COLUMNS));
        a = add(f, a, product(f, more, w, RIGHT_T));
    }
    if (n > k) {
        const dc_ref more = quotient(f, outside(f, w, dw), spread(f, s, w, COLUMNS));
        a = add(f, a, product(f, u, more, RIGHT_T));
    }
    dc_vjp_give(v, 0, a);
}

/* U diag(ds) V^T */
void dc_grad_svdvals(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t m = dim_of(f, v->n.in[0], 2), n = dim_of(f, v->n.in[0], 1), k = dc_min_i64(m, n);
    const dc_ref all = dc_graph_make(f, DC_OP_SVD, v->n.in, 1, NULL, 0, NULL);
    const dc_ref u = unpacked(f, all, 0, m, k), w_t = unpacked(f, all, m * k + k, k, n);
    dc_vjp_give(v, 0, product(f, times(f, u, spread(f, v->g, u, COLUMNS)), w_t, 0));
}

/* ---- triangular systems ---------------------------------------------------------------------------- */

/* op(A) X = B: dB = op(A)^-T dX; dA is -dB X^T, or its transpose, in the triangle that is read. */
void dc_grad_trsolve(const dc_vjp *v)
{
    dc_func *f = v->f;
    const triangle t = {v->n.attr[0] != 0, v->n.attr[1] == 0, v->n.attr[2] != 0};
    const bool transposed = v->n.attr[1] != 0;
    const dc_ref db = solve(f, v->n.in[0], v->g, t);
    if (dc_vjp_wants(v, 1))
        dc_vjp_give(v, 1, db);
    if (!dc_vjp_wants(v, 0))
        return;
    const dc_ref a = transposed ? product(f, v->r, db, RIGHT_T) : product(f, db, v->r, RIGHT_T);
    const dc_ref negative = dc_graph_op1(f, DC_OP_NEG, a);
    dc_vjp_give(v, 0,
                t.upper  ? t.unit ? strictly_upper(f, negative) : upper(f, negative)
                 : t.unit ? strictly_lower(f, negative)
                         : lower(f, negative));
}

/* ---- systems, determinants ------------------------------------------------------------------------- */

/* Operands are A, its LU, B; the derivative of the LU is none, since A stands beside it. is_turned: factors of A^T. */
static dc_ref lu_solve(dc_func *f, const dc_vjp *v, dc_ref lu, dc_ref b, bool transposed,
                       bool is_turned)
{
    const int64_t attr[2] = {transposed, is_turned};
    return dc_graph_make(f, DC_OP_LUSOLVE, (const dc_ref[]){v->n.in[0], lu, b}, 3, attr, 2, NULL);
}

/* A X = B: dB = A^-T dX, dA = -dB X^T; of A^T X = B the transpose of that. */
void dc_grad_lusolve(const dc_vjp *v)
{
    dc_func *f = v->f;
    const bool transposed = v->n.attr[0] != 0;
    const dc_ref db = lu_solve(f, v, v->n.in[1], v->g, !transposed, v->n.attr[1] != 0);
    if (dc_vjp_wants(v, 2))
        dc_vjp_give(v, 2, db);
    if (!dc_vjp_wants(v, 0))
        return;
    const dc_ref a = transposed ? product(f, v->r, db, RIGHT_T) : product(f, db, v->r, RIGHT_T);
    dc_vjp_give(v, 0, dc_graph_op1(f, DC_OP_NEG, a));
}

/* A number for each matrix, as a matrix like `like`. */
static dc_ref everywhere(dc_func *f, dc_ref a, dc_ref like)
{
    const dc_node n = *dc_node_at(f, like);
    int64_t dim[DC_MAX_RANK];
    for (int k = 0; k < n.rank; k++)
        dim[k] = k < n.rank - 2 ? n.dim[k] : 1;
    return dc_graph_expand(f, dc_graph_reshape(f, a, n.rank, dim), n.dim);
}

/* by A^-T */
static dc_ref inverse_transposed(dc_func *f, const dc_vjp *v, dc_ref lu, dc_ref by)
{
    const dc_ref all = everywhere(f, by, v->n.in[0]);
    const dc_ref diagonal = dc_graph_op2(f, DC_OP_EQ, number(f, all, 2), number(f, all, 1));
    const dc_ref b = dc_graph_op3(f, DC_OP_WHERE, diagonal, all, dc_graph_like(f, all, 0));
    return lu_solve(f, v, lu, b, true, v->n.attr[1] != 0);
}

/*
 * det(A) A^-T. Of a singular matrix that is 0 times infinity, but with something tiny for each 0 on the diagonal of U the
 * tiny factors cancel. Further derivatives do not come of that: they are NaN, by a root of 0 that is added.
 */
static dc_ref adjugate_transposed(dc_func *f, const dc_vjp *v)
{
    const int64_t attr[2] = {0, v->n.attr[1]};
    const dc_ref lu = v->n.in[1], none = dc_graph_like(f, lu, 0);
    const dc_ref tiny = dc_graph_like(f, lu, v->n.dtype == DC_F64 ? 1e-100 : 1e-15);
    const dc_ref diagonal = dc_graph_op2(f, DC_OP_EQ, number(f, lu, 2), number(f, lu, 1));
    const dc_ref filled =
        dc_graph_op3(f, DC_OP_WHERE, dc_graph_op2(f, DC_OP_EQ, lu, none), tiny, lu);
    const dc_ref regular = dc_graph_op3(f, DC_OP_WHERE, diagonal, filled, lu);
    const dc_ref in[2] = {v->n.in[0], regular};
    const dc_ref det = dc_graph_make(f, DC_OP_DET, in, 2, attr, 2, NULL);
    const dc_ref is_0 = dc_graph_op2(f, DC_OP_EQ, v->r, dc_graph_like(f, v->r, 0));
    const dc_ref root = dc_graph_op1(f, DC_OP_SQRT, dc_graph_op1(f, DC_OP_ABS, v->r));
    const dc_ref mark = dc_graph_op3(f, DC_OP_WHERE, is_0, root, dc_graph_like(f, root, 0));
    return add(f, inverse_transposed(f, v, regular, det), everywhere(f, mark, v->n.in[0]));
}

/* Operands are A and its LU. */
void dc_grad_det(const dc_vjp *v)
{
    dc_func *f = v->f;
    if (v->n.attr[0] != 0) { /* sign and logarithm */
        const dc_ref g = part(f, v->g, 1, 1, 1);
        const dc_node n = *dc_node_at(f, g);
        dc_vjp_give(
            v, 0, inverse_transposed(f, v, v->n.in[1], dc_graph_reshape(f, g, n.rank - 1, n.dim)));
        return;
    }
    const dc_ref a = adjugate_transposed(f, v);
    dc_vjp_give(v, 0, times(f, everywhere(f, v->g, a), a));
}

/* ---- least squares, pseudoinverses (Golub and Pereyra 1973) ------------------------------------------ */

static dc_ref least(dc_func *f, const dc_vjp *v, dc_ref a, dc_ref b)
{
    return dc_graph_make(f, DC_OP_LSTSQ, (const dc_ref[]){a, b}, 2, v->n.attr, 1, NULL);
}

/*
 * X = P B with P the pseudoinverse: dB = U = P^T dX; dA = -U X^T + (B - A X) (P U)^T + P^T X (dX - A^T U)^T. Products with P
 * are solutions, too.
 */
void dc_grad_lstsq(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], b = v->n.in[1], x = v->r;
    const int64_t k = dim_of(f, x, 1);
    const bool wants_a = dc_vjp_wants(v, 0);
    const dc_ref both = least(f, v, turned(f, a), wants_a ? beside(f, v->g, x) : v->g);
    const dc_ref u = part(f, both, 1, 0, k);
    if (dc_vjp_wants(v, 1))
        dc_vjp_give(v, 1, u);
    if (!wants_a)
        return;
    const dc_ref rest = minus(f, b, product(f, a, x, 0)), pu = least(f, v, a, u);
    const dc_ref free = minus(f, v->g, product(f, a, u, LEFT_T));
    const dc_ref da = minus(f, product(f, rest, pu, RIGHT_T), product(f, u, x, RIGHT_T));
    dc_vjp_give(v, 0, add(f, da, product(f, part(f, both, 1, k, k), free, RIGHT_T)));
}

/* -P^T dP P^T + (1 - A P) dP^T P P^T + P^T P dP^T (1 - P A) */
void dc_grad_pinv(const dc_vjp *v)
{
    dc_func *f = v->f;
    const dc_ref a = v->n.in[0], p = v->r, g = v->g;
    const dc_ref x = product(f, product(f, g, p, LEFT_T), p, RIGHT_T);
    const dc_ref y = product(f, product(f, p, p, LEFT_T), g, RIGHT_T);
    dc_ref da = minus(f, x, product(f, a, product(f, p, x, 0), 0));
    da = add(f, da, minus(f, y, product(f, product(f, y, p, 0), a, 0)));
    dc_vjp_give(v, 0, minus(f, da, product(f, product(f, p, g, LEFT_T), p, RIGHT_T)));
}

/* ---- the exponential --------------------------------------------------------------------------------- */

/* What is above the diagonal of exp [[A^T, dX], [0, A^T]] (Najfeld and Havel 1995). */
void dc_grad_matrix_exp(const dc_vjp *v)
{
    dc_func *f = v->f;
    const int64_t n = dim_of(f, v->r, 1);
    const dc_ref a = turned(f, v->n.in[0]);
    dc_ref all = add(f, placed(f, a, 0, 0, 2 * n, 2 * n), placed(f, a, n, n, 2 * n, 2 * n));
    all = add(f, all, placed(f, v->g, 0, n, 2 * n, 2 * n));
    all = dc_graph_make(f, DC_OP_MATRIX_EXP, &all, 1, NULL, 0, NULL);
    dc_vjp_give(v, 0, part(f, part(f, all, 2, 0, n), 1, n, n));
}
