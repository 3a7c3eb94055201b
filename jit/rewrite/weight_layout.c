/*
 * Forward convolutions choose layouts for the cells that are their kernels. Cells whose new values come out
 * of each other element by element form a set with one layout. What lies between such a cell and its new
 * value is made in the order of the memory, everything else as before, from permutes of these cells.
 */
#include "jit/rewrite/weight_layout.h"

#include "core/autodiff/custom.h"
#include "core/ir/conv.h"
#include "jit/base/tuning.h"

#define NO_CELL UINT32_MAX

typedef struct relaying {
    dc_arena *a;
    const dc_exec_desc *d;
    const dc_func *f;
    dc_func *to;
    const bool *live;
    bool *is_set;           /* by cell */
    dc_cell_layout *layout; /* by cell */
    dc_cell_layout *
        *of_set;  /* by ref, of roots: what a kernel among them has chosen; NULL nothing */
    dc_ref *root; /* by ref: union-find, of what is updated together */
    bool *update; /* by ref: between a cell and its new value, element by element */
    const dc_cell_layout **want; /* by ref: the order in which an update is made; NULL none */
    dc_ref *plain, *turned;      /* by ref: in the new function; turned: in the order of `want` */
} relaying;

static const dc_node *at(const relaying *w, dc_ref r)
{
    return dc_node_at(w->f, r);
}

static bool is_ew(const relaying *w, dc_ref r)
{
    return dc_op_row_of((dc_op)at(w, r)->op)->cls == DC_CLASS_EW;
}

/* The cell that node r is the old value of. */
static uint32_t cell_of(const relaying *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    if (n->op != DC_OP_PARAM || n->attr[0] < w->d->nfree)
        return NO_CELL;
    return (uint32_t)n->attr[0] - w->d->nfree;
}

static dc_ref param_of(const relaying *w, uint32_t cell)
{
    return w->f->param.at[w->d->nfree + cell];
}

static dc_ref new_value(const relaying *w, uint32_t set)
{
    return w->f->result.at[w->d->nresult + set];
}

/* ---- sets of cells --------------------------------------------------------------------------- */

static dc_ref root_of(relaying *w, dc_ref r)
{
    while (w->root[r] != r)
        r = w->root[r] = w->root[w->root[r]];
    return r;
}

/* From new values down through what goes element by element. */
static void find_updates(relaying *w)
{
    for (uint32_t s = 0; s < w->d->nset; s++)
        w->update[new_value(w, s)] = at(w, new_value(w, s))->rank >= 3;
    for (dc_ref r = w->f->node.n; r-- > 1;)
        for (int i = 0; w->update[r] && is_ew(w, r) && i < at(w, r)->nin; i++)
            w->update[at(w, r)->in[i]] = true;
}

static void unite(relaying *w, dc_ref a, dc_ref b)
{
    const dc_ref x = root_of(w, a), y = root_of(w, b);
    w->root[x < y ? y : x] = x < y ? x : y;
}

/* A constant or a gradient may be part of many updates, and unites none. */
static void find_sets(relaying *w)
{
    for (dc_ref r = 1; r < w->f->node.n; r++)
        for (int i = 0; w->update[r] && is_ew(w, r) && i < at(w, r)->nin; i++) {
            const dc_ref x = at(w, r)->in[i];
            const uint32_t cell = cell_of(w, x);
            if (is_ew(w, x) || (cell != NO_CELL && w->is_set[cell]))
                unite(w, r, x);
        }
    for (uint32_t s = 0; s < w->d->nset; s++) /* also where the old value is not read */
        if (w->update[new_value(w, s)] && is_ew(w, new_value(w, s)))
            unite(w, new_value(w, s), param_of(w, w->d->set[s]));
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Memory in which no axis of several elements has changed its place is the same. */
static bool changes(const dc_cell_layout *l, const dc_node *n)
{
    int last = -1;
    for (int i = 0; i < n->rank; i++) {
        if (n->dim[l->axis[i]] == 1)
            continue;
        if (l->axis[i] < last)
            return true;
        last = l->axis[i];
    }
    return false;
}

/* As jit/rewrite/conv_layout.c turns kernels. */
static dc_cell_layout layout_for(const dc_conv *c)
{
    dc_cell_layout l = {.turned = true};
    for (int i = 0; i < c->n; i++)
        l.axis[i] = (uint8_t)c->kernel[2 + i];
    l.axis[c->n] = (uint8_t)c->kernel[1];
    l.axis[c->n + 1] = (uint8_t)c->kernel[0];
    return l;
}

static bool is_forward(const dc_conv *c)
{
    return c->in[0] == 0 && c->in[1] == 1 && c->out[0] == 0 && c->out[1] == 1 &&
           c->kernel[0] == 0 && c->kernel[1] == 1;
}

/* Kernels, cast perhaps, choose for the cells that are updated together with them. */
static bool choose_layouts(relaying *w)
{
    bool any = false;
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        if (!w->live[r] || at(w, r)->op != DC_OP_CONV)
            continue;
        const dc_conv c = dc_conv_of(at(w, r));
        dc_ref k = at(w, r)->in[1];
        while (at(w, k)->op == DC_OP_CAST)
            k = at(w, k)->in[0];
        const uint32_t cell = cell_of(w, k);
        const dc_type t = dc_node_type(w->f, k);
        const dc_cell_layout l = layout_for(&c);
        if (cell == NO_CELL || !w->is_set[cell] || !is_forward(&c) || !changes(&l, at(w, k)) ||
            (dc_type_bytes(&t) < DC_TUNE_RELAYOUT_BYTES && !w->d->relayout_small))
            continue;
        dc_cell_layout **of = &w->of_set[root_of(w, k)];
        if (*of == NULL) {
            *of = DC_NEW(w->a, dc_cell_layout);
            **of = l;
        }
        any = true;
    }
    return any;
}

static void spread_layouts(relaying *w)
{
    for (uint32_t s = 0; s < w->d->nset; s++) {
        const uint32_t cell = w->d->set[s];
        const dc_cell_layout *l = w->of_set[root_of(w, param_of(w, cell))];
        if (l != NULL)
            w->layout[cell] = *l;
    }
    for (uint32_t s = 0; s < w->d->nset; s++)
        if (w->layout[w->d->set[s]].turned)
            w->want[new_value(w, s)] = &w->layout[w->d->set[s]];
    for (dc_ref r = w->f->node.n; r-- > 1;)
        for (int i = 0; w->want[r] != NULL && is_ew(w, r) && i < at(w, r)->nin; i++)
            w->want[at(w, r)->in[i]] = w->want[r];
}

/* ---- the function ---------------------------------------------------------------------------- */

static void make_params(relaying *w)
{
    for (uint32_t i = 0; i < w->f->param.n; i++) {
        const dc_ref r = w->f->param.at[i];
        const uint32_t cell = cell_of(w, r);
        const dc_cell_layout none = {0}, *l = cell == NO_CELL ? &none : &w->layout[cell];
        const dc_type t = dc_node_type(w->f, r), memory = dc_cell_layout_type(l, &t);
        const dc_ref made = dc_graph_param(w->to, &memory, w->f->label.at[i]);
        int64_t perm[DC_MAX_RANK];
        dc_func_copy_origin(w->to, made, w->f, r);
        dc_cell_layout_perm(l, &none, t.rank, perm);
        w->plain[r] = dc_graph_permute(w->to, made, perm);
        w->turned[r] = w->want[r] != NULL && dc_cell_layout_same(w->want[r], l) ? made : 0;
    }
}

static dc_ref permuted(relaying *w, dc_ref plain, const dc_cell_layout *to)
{
    const dc_cell_layout none = {0};
    const dc_node *n = dc_node_at(w->to, plain);
    int64_t perm[DC_MAX_RANK];
    dc_cell_layout_perm(&none, to, n->rank, perm);
    return dc_graph_permute(w->to, plain, perm);
}

/* Node r, whose plain form there is, in the order of what it updates. */
static dc_ref turned(relaying *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    const dc_cell_layout *l = w->want[r];
    const dc_type t = dc_node_type(w->f, r), memory = dc_cell_layout_type(l, &t);
    dc_ref in[DC_MAX_OPERANDS];
    if (n->op == DC_OP_EXPAND)
        return dc_graph_expand(w->to, permuted(w, w->plain[n->in[0]], l), memory.dim);
    if (n->op == DC_OP_CONST)
        return dc_graph_make(w->to, DC_OP_CONST, NULL, 0, n->attr, n->nattr, &memory);
    if (!is_ew(w, r))
        return permuted(w, w->plain[r], l);
    for (int i = 0; i < n->nin; i++) {
        const dc_ref x = n->in[i];
        in[i] = w->turned[x] != 0 && dc_cell_layout_same(w->want[x], l)
                    ? w->turned[x]
                    : permuted(w, w->plain[x], l);
    }
    return dc_graph_make(w->to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &memory);
}

static void make_node(relaying *w, dc_ref r)
{
    dc_ref in[DC_MAX_OPERANDS];
    for (int i = 0; i < at(w, r)->nin; i++)
        in[i] = w->plain[at(w, r)->in[i]];
    w->plain[r] = dc_graph_again(w->to, w->f, r, in);
}

static const dc_func *relay_function(relaying *w)
{
    w->to = dc_func_new(w->f->module, w->f->name);
    make_params(w);
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        if (!w->live[r])
            continue;
        if (w->plain[r] == 0)
            make_node(w, r);
        if (w->want[r] != NULL && w->turned[r] == 0) {
            w->turned[r] = turned(w, r);
            dc_func_copy_origin(w->to, w->turned[r], w->f, r);
        }
    }
    for (uint32_t i = 0; i < w->f->result.n; i++) {
        const dc_ref r = w->f->result.at[i];
        const bool sets = i >= w->d->nresult && i < w->d->nresult + w->d->nset;
        const dc_cell_layout *l = sets ? &w->layout[w->d->set[i - w->d->nresult]] : NULL;
        dc_ref made = w->plain[r];
        if (sets && l->turned)
            made = dc_cell_layout_same(w->want[r], l) ? w->turned[r] : permuted(w, made, l);
        DC_PUSH(w->to->result, made);
    }
    return w->to;
}

static bool has_conv(const dc_func *f)
{
    for (dc_ref r = 1; r < f->node.n; r++)
        if (dc_node_at(f, r)->op == DC_OP_CONV)
            return true;
    return false;
}

const dc_func *dc_weight_layout(dc_arena *mem, dc_arena *scratch, const dc_exec_desc *d,
                                dc_cell_layout **layout)
{
    const uint32_t n = d->fn->node.n;
    if (d->nset == 0 || d->grows || !has_conv(d->fn))
        return NULL;
    relaying w = {.a = scratch, .d = d, .f = d->fn, .live = dc_func_live(d->fn, scratch)};
    w.layout = DC_NEW_ARRAY(mem, dc_cell_layout, d->ncell);
    w.is_set = DC_NEW_ARRAY(scratch, bool, d->ncell);
    w.root = DC_NEW_ARRAY(scratch, dc_ref, n);
    w.of_set = DC_NEW_ARRAY(scratch, dc_cell_layout *, n);
    w.update = DC_NEW_ARRAY(scratch, bool, n);
    w.want = DC_NEW_ARRAY(scratch, const dc_cell_layout *, n);
    w.plain = DC_NEW_ARRAY(scratch, dc_ref, n);
    w.turned = DC_NEW_ARRAY(scratch, dc_ref, n);
    for (dc_ref r = 0; r < n; r++)
        w.root[r] = r;
    for (uint32_t s = 0; s < d->nset; s++)
        w.is_set[d->set[s]] = true;
    find_updates(&w);
    find_sets(&w);
    if (!choose_layouts(&w))
        return NULL;
    spread_layouts(&w);
    *layout = w.layout;
    return relay_function(&w);
}
