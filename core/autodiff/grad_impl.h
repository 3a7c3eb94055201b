/*
 * What the files of the gradient share. Private to core/autodiff/grad*.c.
 *
 *   grad.c        the walk, and gradients given by hand
 *   grad_ew.c     rules of element-wise operations and reductions
 *   grad_special.c  of functions of one number
 *   grad_move.c   rules of movement, indexing and contractions
 *   grad_control.c  of branches; of loops, with grad_loop.c, grad_stack.c, grad_cut.c (core/autodiff/grad_loop.h)
 */
#ifndef DC_CORE_AUTODIFF_GRAD_IMPL_H
#define DC_CORE_AUTODIFF_GRAD_IMPL_H

#include "core/autodiff/grad.h"
#include "core/autodiff/gradsum.h"

/* One vector-Jacobian product: a node whose cotangent is turned into parts for its operands. */
typedef struct dc_vjp {
    dc_job *j;
    dc_func *f;
    dc_ref r, g; /* the node, which is also its value; its cotangent */
    dc_node n;   /* a copy, since making nodes moves the array */
    const bool *active;
    dc_ref *cotangent;
    const dc_gradpart **part; /* by ref: the last part of its cotangent so far; of a loop or a
                                 branch, the last pick that has a cotangent */
    dc_status *status;        /* a rule that cannot do it leaves a failure here */
} dc_vjp;

/* A rule runs if an operand wants its part; with one operand it need not ask. */
static inline bool dc_vjp_wants(const dc_vjp *v, int i)
{
    return v->active[v->n.in[i]];
}

/* Adds a part to the cotangent of operand i. */
void dc_vjp_give(const dc_vjp *v, int i, dc_ref part);

static inline dc_node dc_vjp_operand(const dc_vjp *v, int i)
{
    return *dc_node_at(v->f, v->n.in[i]);
}

static inline dc_ref dc_vjp_zero_like(const dc_vjp *v, dc_ref r)
{
    return dc_graph_like(v->f, r, 0);
}

/* The rules, by the column `grad` of core/ir/ops.def: dc_grad_<grad>. */
typedef void dc_grad_rule(const dc_vjp *v);

/* grad_ew.c: element-wise, reductions */
dc_grad_rule dc_grad_neg, dc_grad_abs, dc_grad_exp, dc_grad_log, dc_grad_sqrt, dc_grad_expm1,
    dc_grad_log1p, dc_grad_sin, dc_grad_cos, dc_grad_cast, dc_grad_add, dc_grad_sub,
    dc_grad_mul, dc_grad_div, dc_grad_rem, dc_grad_max, dc_grad_min, dc_grad_where;
dc_grad_rule dc_grad_rsum, dc_grad_rmax, dc_grad_rmin, dc_grad_rprod;
/* grad_special.c: functions of one number, atan2, copysign */
dc_grad_rule dc_grad_tan, dc_grad_asin, dc_grad_acos, dc_grad_atan, dc_grad_atan2, dc_grad_sinh, dc_grad_cosh,
    dc_grad_asinh, dc_grad_acosh, dc_grad_atanh, dc_grad_exp2, dc_grad_log2, dc_grad_log10, dc_grad_cbrt, dc_grad_erf,
    dc_grad_erfc, dc_grad_erf_inv, dc_grad_sigmoid, dc_grad_silu, dc_grad_gelu, dc_grad_gelu_tanh, dc_grad_lgamma, dc_grad_digamma, dc_grad_copysign,
    dc_grad_pow;
/* grad_move.c: movement, indexing, contractions */
dc_grad_rule dc_grad_reshape, dc_grad_permute, dc_grad_expand, dc_grad_slice, dc_grad_pad,
    dc_grad_flip;
dc_grad_rule dc_grad_gather, dc_grad_scatter, dc_grad_scatter_add, dc_grad_scatter_mul,
    dc_grad_scatter_max, dc_grad_scatter_min, dc_grad_dot, dc_grad_conv;
/* grad_running.c */
dc_grad_rule dc_grad_run;
/* grad_host.c, grad_linalg.c: what the host computes */
dc_grad_rule dc_grad_sort, dc_grad_cholesky, dc_grad_lu, dc_grad_qr, dc_grad_eigh,
    dc_grad_eigvalsh, dc_grad_svd, dc_grad_svdvals, dc_grad_trsolve, dc_grad_lusolve, dc_grad_det,
    dc_grad_lstsq, dc_grad_pinv, dc_grad_matrix_exp;
/* grad_eig.c */
dc_grad_rule dc_grad_eig, dc_grad_eigvals;
dc_grad_rule dc_grad_dft; /* grad_dft */
/* grad_exchange.c */
dc_grad_rule dc_grad_all_reduce, dc_grad_reduce_scatter, dc_grad_all_gather, dc_grad_all_to_all,
    dc_grad_broadcast, dc_grad_send, dc_grad_recv;
/* grad.c: given by hand */
dc_grad_rule dc_grad_custom, dc_grad_barrier;
/* grad_control.c, grad_loop.c */
dc_grad_rule dc_grad_pick, dc_grad_branch, dc_grad_loop;

/* By node up to `last`: does wrt reach it through floats and operations with a gradient? */
bool *dc_grad_active(dc_job *j, const dc_func *f, const dc_ref *wrt, int n, dc_ref last);
/* By node: does the walk from y come to it? */
bool *dc_grad_reached(dc_job *j, const dc_func *f, const bool *active, const dc_ref *y, int n);
/* Has every loop that the walk comes to a largest number of iterations? GRAD_UNBOUNDED. */
dc_status dc_grad_bounded(dc_job *j, const dc_func *f, const bool *active, const bool *reached);

/*
 * By parameter of the body of a loop or branch node (`which` of its bodies): does it carry a derivative? Operands do
 * where active says so, and carries that any iteration makes of what does.
 */
bool *dc_grad_varying(dc_job *j, const dc_func *f, const dc_node *n, int which, const bool *active);

/* By result of v's node: its cotangent, 0 for none. */
dc_ref *dc_vjp_results(const dc_vjp *v, int n);

/*
 * What the roots are made of, down to the nodes of `stop` and with those of them that are read; and a copy of it, in
 * `to`: map holds what stands for parameters and stops, and receives the rest.
 */
bool *dc_cone(dc_job *j, const dc_func *f, const dc_ref *root, int n, const bool *stop);
void dc_cone_copy(dc_func *to, const dc_func *from, const bool *cone, dc_ref *map);

#endif
