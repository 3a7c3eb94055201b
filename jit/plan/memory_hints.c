#include "jit/plan/memory_hints.h"

enum { SHORT_ROW = 1 << 10, LONG_ROW = 1 << 17 }; /* bytes; outside of them nothing is fetched */

/* Is the output in the memory of an input? Then its lines are in the cache when it is stored. */
static bool is_in_place(const dc_group *g, const dc_plan *plan, uint32_t out)
{
    const dc_place to = plan->home[g->out[out]];
    for (uint32_t i = 0; i < g->nin; i++) {
        const dc_place from = plan->home[g->in[i]];
        if (from.kind == to.kind && from.index == to.index)
            return true;
    }
    return false;
}

static bool is_loaded(const dc_kernel *k, uint32_t buf)
{
    for (dc_vx v = 1; v < k->vx.n; v++)
        if (k->vx.at[v].kind == DC_VX_LOAD && k->vx.at[v].buf == buf)
            return true;
    return false;
}

static size_t bytes_of(const dc_buffer *b)
{
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

/* Elements from one row of an input to the next, where all loads of it go from row to row alike; 0. */
static int64_t row_of(dc_kernel *k, uint32_t buf, uint32_t rows)
{
    int64_t row = 0;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        bool affine = true;
        if (k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf)
            continue;
        const int64_t step = dc_ix_stride(k, k->vx.at[v].at, rows, &affine);
        if (!affine || (row != 0 && step != row))
            return 0;
        row = step;
    }
    return row;
}

/* The innermost of the loops round all others; one deeper in row blocks. */
static const dc_stmt *loop_over_rows(const dc_kernel *k, const dc_stmt *first)
{
    const dc_stmt *rows = NULL, *s = first;
    for (; s != NULL && s->kind == DC_STMT_LOOP && s->next == NULL && !k->axis.at[s->axis].reduce;
         s = s->body)
        rows = s;
    for (; s != NULL && rows != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP && s->body->next != NULL)
            return s;
    return rows;
}

static void mark_ahead(dc_kernel *k, size_t large)
{
    const dc_stmt *rows = loop_over_rows(k, k->root);
    for (uint32_t b = 0; b < k->buf.n && rows != NULL; b++) {
        dc_buffer *x = &k->buf.at[b];
        if (x->scope != DC_SCOPE_PARAM || x->mode != DC_MODE_IN || bytes_of(x) < large)
            continue;
        const int64_t row = row_of(k, b, rows->axis);
        const int64_t bytes = row * (int64_t)dc_dtype_size((dc_dtype)x->dtype);
        x->ahead = bytes >= SHORT_ROW && bytes <= LONG_ROW ? row : 0;
    }
}

/* Is an input read in rows that lie anywhere, each step of axis `rows` another one? */
static bool jumps(dc_kernel *k, uint32_t buf, uint32_t rows, uint32_t columns)
{
    bool any = false;
    for (dc_vx v = 1; v < k->vx.n; v++) {
        bool along = true, down = true;
        if (k->vx.at[v].kind != DC_VX_LOAD || k->vx.at[v].buf != buf)
            continue;
        dc_ix_stride(k, k->vx.at[v].at, rows, &down);
        if (dc_ix_stride(k, k->vx.at[v].at, columns, &along) != 1 || !along || down)
            return false;
        any = true;
    }
    return any;
}

static void mark_rows(dc_kernel *k, size_t large)
{
    const dc_stmt *s = k->root;
    while (s != NULL && s->kind == DC_STMT_LOOP && s->body->kind == DC_STMT_LOOP && s->next == NULL)
        s = s->body;
    if (s == NULL || s == k->root || s->kind != DC_STMT_LOOP)
        return;
    for (uint32_t b = 0; b < k->buf.n; b++) {
        dc_buffer *x = &k->buf.at[b];
        const int64_t row = k->axis.at[s->axis].extent * (int64_t)dc_dtype_size((dc_dtype)x->dtype);
        if (x->scope == DC_SCOPE_PARAM && x->mode == DC_MODE_IN && bytes_of(x) >= large &&
            row >= SHORT_ROW && row <= LONG_ROW && jumps(k, b, k->root->axis, s->axis))
            x->ahead = DC_AHEAD_ROW;
    }
}

/*
 * A kernel that touches less than the last cache holds leaves its results there. One that touches
 * more leaves their ends, whoever reads them begins at the other one.
 */
void dc_memory_hints_mark(dc_kernel *k, const dc_group *g, const dc_plan *plan, const dc_target *t)
{
    if (t->simt || t->l3 == 0 || (size_t)k->bytes < t->l3)
        return;
    for (uint32_t o = 0; o < g->nout; o++)
        k->buf.at[o].stream =
            bytes_of(&k->buf.at[o]) >= t->l3 / 8 && !is_in_place(g, plan, o) && !is_loaded(k, o);
    if (g->row_wise)
        mark_ahead(k, t->l3 / 8);
    else
        mark_rows(k, t->l3 / 8);
}
