/*
 * The body of a row-wise group (jit/fuse/fuse.h): reductions over the columns of a row and buffered values in
 * the order of their refs, which is one that computes everything before it is read; then the outputs
 * with an element for each point; then those with one for the row. Each part is a loop over the
 * columns with an axis of its own.
 *
 * Row blocks: a loop over blocks, in which a local for each partial sum over rows begins with the neutral
 * element, then a loop over the rows of the block, then the locals are stored. In a row, what is stored for
 * each point and what is added to the sums is one assignment, so that both read the point once.
 */
#include "jit/lower/lower_impl.h"

#include <stdio.h>

typedef struct row {
    lowering *w;
    bool flat;
    int rank, split; /* of the shape; dims from split on are columns */
    const int64_t *dim;
    uint32_t reductions, others; /* loops so far, for their names */
    dc_stmt *first, **last;
} row;

typedef struct columns { /* one loop over them */
    nest loops;
    dc_ix pos[DC_MAX_RANK]; /* row and column */
} columns;

static void append(row *x, dc_stmt *s)
{
    *x->last = s;
    while (*x->last != NULL)
        x->last = &(*x->last)->next;
}

static columns over_columns(row *x, bool reduce)
{
    columns c = {0};
    lowering *w = x->w;
    const uint32_t n = reduce ? x->reductions++ : x->others++;
    const char prefix[3] = {reduce ? 'k' : 'n', n > 0 ? (char)('a' + n) : '\0', '\0'};
    dc_lower_axes(w, x->flat, prefix, x->rank - x->split, x->dim + x->split, reduce, &c.loops,
                  c.pos + x->split);
    dc_lower_set_role(w->k, &c.loops, DC_ROLE_COLUMN);
    w->column = dc_ix_const(w->k, 0);
    for (int i = 0; i < x->rank; i++)
        if (i < x->split)
            c.pos[i] = w->out_pos[i];
        else
            w->column = dc_ix_add(w->k, dc_ix_mul(w->k, w->column, x->dim[i]), c.pos[i]);
    dc_lower_forget(w);
    return c;
}

static dc_vx at_point(row *x, const columns *c, dc_ref r)
{
    dc_ix pos[DC_MAX_RANK];
    dc_lower_at(x->w, dc_node_at(x->w->fn, r), x->rank, x->dim, c->pos, pos);
    return dc_lower_node(x->w, r, pos);
}

static dc_vx at_row(row *x, dc_ref r)
{
    dc_ix pos[DC_MAX_RANK];
    dc_lower_at(x->w, dc_node_at(x->w->fn, r), x->split, x->dim, x->w->out_pos, pos);
    return dc_lower_node(x->w, r, pos);
}

static bool is_point(const row *x, dc_ref r)
{
    int64_t rows = 1;
    for (int i = 0; i < x->split; i++)
        rows *= x->dim[i];
    return dc_node_count(dc_node_at(x->w->fn, r)) != rows;
}

static void reduce(row *x, dc_ref r)
{
    const columns c = over_columns(x, true);
    const dc_vx term = at_point(x, &c, dc_node_at(x->w->fn, r)->in[0]);
    const accumulation a = dc_lower_accumulate(x->w, r, term);
    dc_ix pos[DC_MAX_RANK], of[DC_MAX_RANK];
    dc_lower_at(x->w, dc_node_at(x->w->fn, r), x->split, x->dim, x->w->out_pos, pos);
    dc_lower_limit(x->w, a.init, r, pos);
    dc_lower_limit(x->w, a.add, r, pos);
    const dc_ref operand = dc_node_at(x->w->fn, r)->in[0];
    dc_lower_at(x->w, dc_node_at(x->w->fn, operand), x->rank, x->dim, c.pos, of);
    dc_lower_limit_terms(x->w, a.add, r, (const dc_ix *[]){of, of});
    append(x, a.init);
    append(x, dc_lower_wrap(x->w->k, &c.loops, a.add));
}

/* A local of one element, or of one for each column. */
static void keep(row *x, dc_ref r)
{
    lowering *w = x->w;
    dc_kernel *k = w->k;
    const bool point = is_point(x, r);
    columns c = {0};
    char name[16];
    int64_t count = 1;
    if (point)
        c = over_columns(x, false);
    else
        dc_lower_forget(w);
    for (int i = x->split; point && i < x->rank; i++)
        count *= x->dim[i];
    const dc_vx v = point ? at_point(x, &c, r) : at_row(x, r);
    dc_ix pos[DC_MAX_RANK];
    dc_lower_at(w, dc_node_at(w->fn, r), point ? x->rank : x->split, x->dim,
                point ? c.pos : w->out_pos, pos);
    snprintf(name, sizeof name, "kept%u", k->buf.n);
    const uint32_t buf =
        dc_buffer_new(k, name, (dc_dtype)k->vx.at[v].dtype, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
    dc_stmt *set = dc_stmt_set(k, 1);
    set->put[0] = (dc_put){buf, point ? w->column : dc_ix_const(k, 0), v};
    dc_lower_limit(w, set, r, pos);
    append(x, dc_lower_wrap(k, &c.loops, set));
    dc_lower_fact(w, r)->buf = buf;
    dc_lower_fact(w, r)->is_local = true;
}

/* What is added to a sum over rows at a point. */
static dc_put add_up(row *x, const columns *c, dc_ref r)
{
    dc_kernel *k = x->w->k;
    const dc_node *n = dc_node_at(x->w->fn, r);
    const uint32_t acc = dc_lower_fact(x->w, r)->buf;
    const dc_dtype t = dc_lower_computed(n->dtype);
    const dc_vx term = dc_lower_cast(x->w, at_point(x, c, n->in[0]), t);
    const dc_vx in[2] = {dc_vx_load(k, acc, x->w->column, (dc_pred){0}), term};
    return (dc_put){acc, x->w->column, dc_vx_op(k, dc_op_row_of(n->op)->combine, t, in, 2)};
}

/* Outputs of one kind, all in one assignment; with those for points, the sums over rows. */
static void store(row *x, bool points)
{
    lowering *w = x->w;
    const dc_group *g = w->group;
    uint32_t n = 0;
    columns c = {0};
    for (uint32_t i = 0; i < g->nout; i++)
        n += dc_group_is_partial(g, i) ? points : is_point(x, g->out[i]) == points;
    if (n == 0)
        return;
    if (points)
        c = over_columns(x, false);
    else
        dc_lower_forget(w);
    dc_stmt *set = dc_stmt_set(w->k, n);
    n = 0;
    for (uint32_t i = 0; i < g->nout; i++) {
        if (dc_group_is_partial(g, i)) {
            if (points)
                set->put[n++] = add_up(x, &c, g->out[i]);
            continue;
        }
        if (is_point(x, g->out[i]) != points)
            continue;
        const dc_node *node = dc_node_at(w->fn, g->out[i]);
        dc_ix at = dc_ix_const(w->k, 0);
        for (int d = 0; d < (points ? x->rank : x->split); d++)
            at = dc_ix_add(w->k, dc_ix_mul(w->k, at, x->dim[d]), points ? c.pos[d] : w->out_pos[d]);
        const dc_vx v = points ? at_point(x, &c, g->out[i]) : at_row(x, g->out[i]);
        dc_ix pos[DC_MAX_RANK];
        dc_lower_at(w, node, points ? x->rank : x->split, x->dim, points ? c.pos : w->out_pos, pos);
        dc_lower_limit_also(w, set, n == 0, g->out[i], pos);
        set->put[n++] =
            (dc_put){i, dc_lower_place(w, g->out[i], at), dc_lower_as_stored(w, v, node->dtype)};
    }
    if (points && g->npartial > 0)
        set->nlimit = 0; /* all rows are added up */
    append(x, dc_lower_wrap(w->k, &c.loops, set));
}

/* The row at w->out_pos, an index for each of its dims. */
static void lower_row(row *x)
{
    const dc_group *g = x->w->group;
    for (uint32_t r = 0, k = 0; r < g->nreduce || k < g->nbuffered;) {
        if (k == g->nbuffered || (r < g->nreduce && g->reduce[r] < g->buffered[k]))
            reduce(x, g->reduce[r++]);
        else
            keep(x, g->buffered[k++]);
    }
    store(x, true);
    store(x, false);
}

/* Bands ---------------------------------------------------------------------------------------- */

/* Locals of the sums over rows, set to their neutral elements. */
static void begin_sums(row *x)
{
    lowering *w = x->w;
    const dc_group *g = w->group;
    const columns c = over_columns(x, false);
    dc_stmt *set = dc_stmt_set(w->k, g->npartial);
    int64_t count = 1;
    char name[16];
    for (int i = x->split; i < x->rank; i++)
        count *= x->dim[i];
    for (uint32_t i = 0; i < g->npartial; i++) {
        const dc_node *n = dc_node_at(w->fn, g->partial[i]);
        const dc_dtype t = dc_lower_computed(n->dtype);
        snprintf(name, sizeof name, "sum%u", w->k->buf.n);
        const uint32_t acc = dc_buffer_new(w->k, name, t, count, DC_SCOPE_LOCAL, DC_MODE_OUT);
        set->put[i] = (dc_put){acc, w->column,
                               dc_vx_const(w->k, t, dc_lower_identity((dc_op)n->op, n->dtype))};
        dc_lower_fact(w, g->partial[i])->buf = acc;
        dc_lower_fact(w, g->partial[i])->is_local = true;
    }
    append(x, dc_lower_wrap(w->k, &c.loops, set));
}

static void end_sums(row *x, dc_ix block)
{
    lowering *w = x->w;
    const dc_group *g = w->group;
    const columns c = over_columns(x, false);
    dc_stmt *set = dc_stmt_set(w->k, g->npartial);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nout; i++) {
        if (!dc_group_is_partial(g, i))
            continue;
        const int64_t count = w->k->buf.at[dc_lower_fact(w, g->out[i])->buf].count;
        const dc_ix at = dc_ix_add(w->k, dc_ix_mul(w->k, block, count), w->column);
        const dc_vx v = dc_lower_node(w, g->out[i], c.pos);
        set->put[n++] = (dc_put){
            i, at, dc_lower_as_stored(w, v, (dc_dtype)dc_node_at(w->fn, g->out[i])->dtype)};
    }
    append(x, dc_lower_wrap(w->k, &c.loops, set));
}

static dc_stmt *lower_bands(row *x)
{
    lowering *w = x->w;
    int64_t rows = 1;
    for (int i = 0; i < x->split; i++)
        rows *= x->dim[i];
    const int64_t height = rows / w->group->blocks;
    const uint32_t block = dc_axis_new(w->k, "b", w->group->blocks, false);
    const uint32_t row_of = dc_axis_new(w->k, "i", height, false);
    dc_lower_set_role(w->k, &(nest){{block, row_of}, 2}, DC_ROLE_ROW);
    const dc_ix first = dc_ix_mul(w->k, dc_ix_axis(w->k, block), height);
    dc_lower_delinear(w->k, dc_ix_add(w->k, first, dc_ix_axis(w->k, row_of)), x->split, x->dim,
                      w->out_pos);
    begin_sums(x);
    dc_stmt **begin = x->last;
    lower_row(x);
    dc_stmt *loop = dc_stmt_loop(w->k, row_of, *begin);
    *begin = loop;
    x->last = &loop->next;
    end_sums(x, dc_ix_axis(w->k, block));
    return dc_stmt_loop(w->k, block, x->first);
}

dc_stmt *dc_lower_rows(lowering *w, bool flat)
{
    const dc_node *shape = dc_node_at(w->fn, w->group->shape);
    row x = {
        .w = w, .flat = flat, .rank = shape->rank, .split = w->group->split, .dim = shape->dim};
    nest loops = {0};
    x.last = &x.first;
    if (w->group->npartial > 0)
        return lower_bands(&x);
    dc_lower_axes(w, flat, "i", x.split, x.dim, false, &loops, w->out_pos);
    dc_lower_set_role(w->k, &loops, DC_ROLE_ROW);
    lower_row(&x);
    return dc_lower_wrap(w->k, &loops, x.first);
}
