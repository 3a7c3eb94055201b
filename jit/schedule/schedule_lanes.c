/*
 * The rule for rows that go through several locals (jit/lower/lower_transform.c): under each loop over rows, or blocks of
 * them, stand parts one after the other, whose innermost loop goes along vectors. Those that copy a block in or out transpose
 * it in registers, as many columns at a time as there are lanes.
 */
#include "jit/schedule/schedule_impl.h"

enum { MOST_PARTS = 64 };

typedef struct part {
    uint32_t first, lanes; /* its outermost loop and the innermost one */
    bool stores, copies;   /* the result; one number in each iteration */
} part;

static int read_parts(const dc_sketch *s, part *out)
{
    int n = 0;
    for (const dc_stmt *b = s->k->root; b != NULL; b = b->next)
        for (const dc_stmt *t = b->body; t != NULL && n < MOST_PARTS; t = t->next) {
            part p = {.first = t->axis};
            const dc_stmt *in = t;
            for (; in->kind == DC_STMT_LOOP; in = in->body)
                p.lanes = in->axis;
            p.stores = s->k->buf.at[in->put[0].buf].scope == DC_SCOPE_PARAM;
            p.copies = in->nput == 1;
            out[n++] = p;
        }
    return n;
}

/* An axis in vectors; *v: these and their lanes. */
static bool make_lanes(dc_sketch *s, uint32_t axis, dc_split *v)
{
    return dc_do_split(s, axis, dc_sketch_lanes(s, dc_sketch_extent(s, axis)), v) &&
           dc_do_vectorize(s, v->i);
}

/* Columns in blocks of so many, whole ones and those behind them. */
typedef struct columns {
    dc_split block[2];
    int64_t width[2];
    int n;
} columns;

static bool split_columns(dc_sketch *s, uint32_t axis, columns *c)
{
    const int64_t extent = dc_sketch_extent(s, axis), rest = extent % s->lanes;
    dc_split parts = {.o = axis, .i = axis};
    *c = (columns){.n = 0};
    if (rest > 0 && rest < extent && !dc_do_cut(s, axis, extent - rest, &parts))
        return false;
    if (rest < extent)
        c->width[c->n++] = s->lanes;
    if (rest > 0)
        c->width[c->n++] = rest;
    for (int i = 0; i < c->n; i++)
        if (!dc_do_split(s, i == 0 ? parts.o : parts.i, c->width[i], &c->block[i]))
            return false;
    return true;
}

/* By rows from memory: columns are the rows of a transposed block. */
static bool copy_in(dc_sketch *s, const columns *c, uint32_t rows)
{
    dc_split v;
    if (!make_lanes(s, rows, &v))
        return false;
    for (int i = 0; i < c->n; i++)
        if (!dc_do_reorder(s, v.o, c->block[i].i) || !dc_do_unroll(s, c->block[i].i))
            return false;
    return true;
}

/* The same the other way round. */
static bool copy_out(dc_sketch *s, const columns *c, uint32_t rows)
{
    dc_split group;
    for (int i = 0; i < c->n; i++)
        if (!dc_do_reorder(s, rows, c->block[i].i) ||
            (c->width[i] > 1 && !make_lanes(s, c->block[i].i, &group)))
            return false;
    return dc_do_split(s, rows, s->lanes, &group) && dc_do_unroll(s, group.i);
}

static bool schedule_copy(dc_sketch *s, const part *p)
{
    columns c;
    return split_columns(s, p->first, &c) &&
           (p->stores ? copy_out(s, &c, p->lanes) : copy_in(s, &c, p->lanes));
}

bool dc_schedule_lanes(dc_sketch *s, dc_shape *shape, bool *is)
{
    DC_UNUSED(shape);
    *is = true;
    part p[MOST_PARTS];
    dc_split v;
    const int n = read_parts(s, p);
    for (int i = 0; i < n; i++)
        if (!(p[i].copies ? schedule_copy(s, &p[i]) : make_lanes(s, p[i].lanes, &v)))
            return false;
    return dc_sketch_grid_all(s);
}
