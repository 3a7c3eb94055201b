#include "core/autodiff/gradsum.h"

#include "core/base/extent.h"
#include "core/base/vec.h"

#include <stdlib.h>

enum { MANY = 4096 }; /* slices that are compared one by one */

typedef struct slice { /* a padded part: element p of an axis lies at lo + p * step */
    dc_ref ref;
    int rank;
    int64_t lo[DC_MAX_RANK], step[DC_MAX_RANK], last[DC_MAX_RANK];
} slice;

typedef struct layer {
    DC_VEC(uint32_t) slice;
    int64_t end; /* on the first axis on which slices begin at different places */
    dc_ref sum;
} layer;

typedef struct layers {
    dc_arena *a;
    slice *slice;
    uint32_t n;
    int axis;
    DC_VEC(layer) at;
} layers;

static bool read_slice(const dc_func *f, dc_ref r, slice *out)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_PAD || n->attr[2 * n->rank] != 0 ||
        dc_node_count(dc_node_at(f, n->in[0])) == 0)
        return false;
    *out = (slice){.ref = r, .rank = n->rank};
    for (int i = 0; i < n->rank; i++) {
        out->lo[i] = n->attr[i];
        out->step[i] = n->attr[n->rank + i];
        if (dc_extent_is(out->lo[i]) || dc_extent_is(n->dim[i]) ||
            dc_extent_is(dc_node_at(f, n->in[0])->dim[i]))
            return false;
        out->last[i] = out->lo[i] + (dc_node_at(f, n->in[0])->dim[i] - 1) * out->step[i];
    }
    return true;
}

static int by_begin(const void *x, const void *y)
{
    const slice *a = x, *b = y;
    for (int i = 0; i < a->rank; i++)
        if (a->lo[i] != b->lo[i])
            return a->lo[i] < b->lo[i] ? -1 : 1;
    return a->ref < b->ref ? -1 : a->ref > b->ref;
}

static bool slices_apart(const slice *a, const slice *b)
{
    for (int i = 0; i < a->rank; i++)
        if (a->last[i] < b->lo[i] || b->last[i] < a->lo[i] ||
            (a->lo[i] - b->lo[i]) % dc_gcd_i64(a->step[i], b->step[i]) != 0)
            return true;
    return false;
}

static bool has_room(const layers *w, const layer *x, const slice *s)
{
    if (s->lo[w->axis] > x->end)
        return true;
    for (uint32_t i = 0; i < x->slice.n; i++)
        if (w->n > MANY || !slices_apart(&w->slice[x->slice.at[i]], s))
            return false;
    return true;
}

static void place_slice(layers *w, dc_func *f, uint32_t i)
{
    const slice *s = &w->slice[i];
    uint32_t k = 0;
    while (k < w->at.n && !has_room(w, &w->at.at[k], s))
        k++;
    if (k == w->at.n)
        DC_PUSH_IN(w->a, w->at, ((layer){.end = INT64_MIN}));
    layer *x = &w->at.at[k];
    DC_PUSH_IN(w->a, x->slice, i);
    x->end = s->last[w->axis] > x->end ? s->last[w->axis] : x->end;
    x->sum = x->sum == 0 ? s->ref : dc_graph_op2(f, DC_OP_ADD, x->sum, s->ref);
}

/* The first axis on which they do not all begin at one place. */
static int axis_of(const layers *w)
{
    for (int i = 0; i < w->slice[0].rank; i++)
        for (uint32_t k = 1; k < w->n; k++)
            if (w->slice[k].lo[i] != w->slice[0].lo[i])
                return i;
    return 0;
}

static dc_ref add_part(dc_func *f, dc_ref sum, dc_ref part)
{
    return sum == 0 ? part : dc_graph_op2(f, DC_OP_ADD, sum, part);
}

dc_ref dc_gradsum(dc_arena *scratch, dc_func *f, const dc_gradpart *last, dc_ref in_order)
{
    uint32_t n = 0, other = 0;
    dc_ref sum = 0;
    for (const dc_gradpart *p = last; p != NULL; p = p->before)
        n++;
    if (n <= DC_GRADSUM_FEW)
        return in_order;
    layers w = {.a = scratch, .slice = DC_NEW_ARRAY(scratch, slice, n)};
    dc_ref *others = DC_NEW_ARRAY(scratch, dc_ref, n);
    for (const dc_gradpart *p = last; p != NULL; p = p->before)
        if (read_slice(f, p->ref, &w.slice[w.n]))
            w.n++;
        else
            others[other++] = p->ref;
    if (w.n <= DC_GRADSUM_FEW)
        return in_order;
    while (other > 0)
        sum = add_part(f, sum, others[--other]);
    qsort(w.slice, w.n, sizeof *w.slice, by_begin);
    w.axis = axis_of(&w);
    for (uint32_t i = 0; i < w.n; i++)
        place_slice(&w, f, i);
    for (uint32_t k = 0; k < w.at.n; k++)
        sum = add_part(f, sum, w.at.at[k].sum);
    return sum;
}
