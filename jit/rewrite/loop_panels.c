/*
 * Weights of a loop in panels: [k][n] becomes [n / p][k][p], before the loop, with p two vectors wide. A product of some rows
 * by a matrix that no L1 holds reads a panel for all its rows, from one end to the other, which is what the hardware
 * prefetcher follows; k rows of p elements that lie a matrix's width apart are on k pages. A product of a function that is
 * called once packs panels itself (jit/schedule/schedule_contraction.c), where its rows are many; here it pays for few.
 * One row alone gains where the matrix comes from beyond L2 each time.
 * Reference: Goto, van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
 *
 * Terms are added in the same order, so results do not change. On CPUs: groups of threads have tiles of their own.
 */
#include "core/ir/dot.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/loops_impl.h"

typedef struct panels {
    const dc_loopedit *w;
    const dc_loop_sizes *are;
    bool *weights; /* by node of the body: a constant of the loop */
} panels;

/* Elements of a row of a panel; 0: of this type there are none. */
static int64_t width_of(const panels *p, dc_dtype t)
{
    return t == DC_F32 || t == DC_F64 ? 2 * p->are->vector_bytes / (int64_t)dc_dtype_size(t) : 0;
}

/* The product of rows and a constant matrix, as large as panels pay for. */
static bool is_worth(const panels *p, dc_ref r, dc_dot *out)
{
    const dc_func *b = p->w->body;
    const dc_node *n = dc_node_at(b, r);
    int64_t rows = 1, work;
    if (n->op != DC_OP_DOT || !p->weights[n->in[1]])
        return false;
    const dc_node *x = dc_node_at(b, n->in[0]), *weights = dc_node_at(b, n->in[1]);
    const int64_t width = width_of(p, (dc_dtype)n->dtype);
    *out = dc_dot_of(b, n);
    if (width < 2 || out->nbatch != 0 || out->ncontract != 1 || weights->rank != 2 ||
        n->rank == DC_MAX_RANK || weights->dim[out->free[1][0]] % width != 0)
        return false;
    for (int i = 0; i < out->nfree[0]; i++)
        rows *= x->dim[out->free[0][i]];
    const dc_type t = dc_node_type(b, n->in[1]);
    const int64_t bytes = (int64_t)dc_type_bytes(&t);
    if (rows == 1 && bytes >= p->are->stream_bytes)
        return p->w->n >= p->are->stream_work;
    return rows >= p->are->panel_rows && bytes >= p->are->panel_bytes &&
           dc_mul_ok(rows, p->w->n, &work) && work >= p->are->panel_work;
}

static dc_ref panels_of(dc_func *f, dc_ref weights, const dc_dot *d, int64_t width)
{
    const dc_node n = *dc_node_at(f, weights);
    const int along = (int)d->free[1][0];
    const int64_t parts = n.dim[along] / width;
    const int64_t rows[3] = {parts, width, n.dim[1]}, columns[3] = {n.dim[0], parts, width};
    const int64_t from_rows[3] = {0, 2, 1}, from_columns[3] = {1, 0, 2};
    const dc_ref split = dc_graph_reshape(f, weights, 3, along == 0 ? rows : columns);
    return dc_graph_permute(f, split, along == 0 ? from_rows : from_columns);
}

static dc_ref again(void *ctx, dc_func *to, dc_ref r, const dc_ref *in)
{
    const panels *p = ctx;
    const dc_node n = *dc_node_at(p->w->body, r);
    dc_dot d;
    if (!is_worth(p, r, &d))
        return 0;
    const dc_ref right = panels_of(to, in[1], &d, width_of(p, (dc_dtype)n.dtype));
    d.contract[1][0] = 1;
    return dc_graph_reshape(to, dc_dot_make(to, in[0], right, &d), n.rank, n.dim);
}

void dc_loop_lay_panels(dc_loopedit *w, const dc_loop_sizes *are)
{
    panels p = {w, are, DC_NEW_ARRAY(&w->j->scratch, bool, w->body->node.n)};
    bool any = false;
    dc_dot d;
    if (are->vector_bytes == 0)
        return;
    for (uint32_t i = 0; i < w->constant.n; i++)
        p.weights[w->constant.at[i].param] = true;
    for (dc_ref r = 1; r < w->body->node.n; r++)
        any = any || is_worth(&p, r, &d);
    if (!any)
        return;
    dc_loop_remake_nodes(w, again, &p);
    dc_loop_hoist(w);
}
