/*
 * Loops are peeled where tests change: which iterations at their ends are written by themselves, since a test fails in
 * them that does not between them.
 */
#include "jit/flat/flatten_impl.h"

enum { MOST_AGAIN = 256 };

static fl_ends both_ends(fl_ends a, fl_ends b)
{
    return (fl_ends){dc_max_i64(a.first, b.first), dc_max_i64(a.last, b.last)};
}

/* How many steps make up for so much, where that is not all of them; else 0. */
static int64_t steps_for(int64_t amount, int64_t step, int64_t all)
{
    const int64_t n = amount > 0 ? (amount + step - 1) / step : 0;
    return n < all ? n : 0;
}

static fl_ends ends_of_test(const flattener *l, dc_pred of, uint32_t axis)
{
    const int64_t all = l->k->axis.at[axis].extent;
    fl_ends e = {0};
    for (uint32_t n = 0; n < of.n; n++) {
        const dc_ix_node *x = fl_ix(l, of.range[n].ix);
        int64_t step = 0;
        for (uint32_t i = 0; i < x->n; i++) {
            const dc_atom_node *t = &l->k->atom.at[x->term[i].atom];
            if (t->kind == DC_ATOM_AXIS && t->axis == axis)
                step = x->term[i].coef;
        }
        if (step > 0)
            e = both_ends(e, (fl_ends){steps_for(-x->lo, step, all),
                                       steps_for(x->hi - of.range[n].n + 1, step, all)});
    }
    return e;
}

/* The same of the tests that a value is made of. */
static fl_ends ends_of_value(const flattener *l, dc_vx v, uint32_t axis)
{
    const dc_mark mark = dc_arena_mark(&l->j->scratch);
    const bool *part = dc_vx_parts(l->k, &l->j->scratch, v);
    fl_ends e = {0};
    for (dc_vx i = 1; i <= v; i++)
        if (part[i])
            e = both_ends(e, ends_of_test(l, l->k->vx.at[i].pred, axis));
    dc_arena_rewind(&l->j->scratch, mark);
    return e;
}

/* Of all tests in a list of statements; how many assignments it is, repeated ones counted, goes to *size. */
static fl_ends ends_of(const flattener *l, const dc_stmt *first, uint32_t axis, int64_t *size)
{
    fl_ends e = {0};
    *size = 0;
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        int64_t inside = MOST_AGAIN + 1;
        if (s->kind == DC_STMT_LOOP) {
            const dc_axis *a = &l->k->axis.at[s->axis];
            e = both_ends(e, ends_of(l, s->body, axis, &inside));
            inside *= a->kind == DC_AXIS_UNROLL ? a->extent : 1;
        } else if (s->kind == DC_STMT_SET) {
            inside = s->nput;
            e = both_ends(e, ends_of_test(l, s->pred, axis));
            for (uint32_t n = 0; n < s->nput; n++)
                e = both_ends(e, ends_of_value(l, s->put[n].value, axis));
        }
        *size += inside;
    }
    return e;
}

/* Which iterations are written once more by themselves, so that those between go without tests. */
fl_ends dc_flatten_own_ends(const flattener *l, const dc_stmt *s)
{
    int64_t size;
    const int64_t all = l->k->axis.at[s->axis].extent;
    if (l->b->f->simt)
        return (fl_ends){0};
    const fl_ends e = ends_of(l, s->body, s->axis, &size);
    return size > MOST_AGAIN || e.first + e.last >= all ? (fl_ends){0} : e;
}
