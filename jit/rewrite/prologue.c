/*
 * One walk down from the results marks what varies from call to call. Where a varying node, or the
 * caller, reads an invariant one, that is derived if it is worth it; otherwise its operands are asked,
 * down to memory.
 */
#include "jit/rewrite/prologue.h"

#include "core/ir/exchange.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/contraction_layout.h"

#include <stdio.h>

typedef struct asking { /* a varying node reads r, invariant, or what is made of it */
    dc_ref r;
    bool plain;  /* as memory that would be written at each call */
    bool of_dot; /* as an operand of a product */
} asking;

typedef struct splitting {
    dc_arena *a;
    const dc_exec_desc *d;
    const dc_func *f;
    bool *invariant, *derived;
    uint32_t *varies; /* by ref: axes along which elements may differ; along others they repeat */
    uint8_t *asked;   /* by ref: the ways in which it was asked for, see `asking` */
    uint32_t *search; /* by ref: the last search that saw it */
    uint32_t nsearch;
    bool groups; /* for a device of thread groups */
    DC_VEC(dc_ref) todo, value;
    DC_VEC(asking) asks;
} splitting;

static const dc_node *at(const splitting *w, dc_ref r)
{
    return dc_node_at(w->f, r);
}

static dc_op_class class_of(const splitting *w, dc_ref r)
{
    return (dc_op_class)dc_op_row_of((dc_op)at(w, r)->op)->cls;
}

static size_t node_bytes(const splitting *w, dc_ref r)
{
    const dc_type t = dc_node_type(w->f, r);
    return dc_type_bytes(&t);
}

/* ---- what is invariant ----------------------------------------------------------------------- */

static void find_invariant(splitting *w)
{
    const dc_exec_desc *d = w->d;
    bool *changes = DC_NEW_ARRAY(w->a, bool, w->f->param.n);
    for (uint32_t i = 0; i < d->nfree - d->nfixed; i++)
        changes[i] = true;
    for (uint32_t s = 0; s < d->nset; s++)
        changes[d->nfree + d->set[s]] = true;
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        const dc_node *n = at(w, r);
        bool invariant = n->op == DC_OP_PARAM ? !changes[n->attr[0]] : n->op != DC_OP_HOLE;
        for (int i = 0; i < n->nin; i++)
            invariant = invariant && w->invariant[n->in[i]];
        /* What ranks do together is done in each call, whatever it is made of on this one. */
        w->invariant[r] = invariant && !dc_exchange_is_ordered(w->f, n);
    }
}

/* ---- what repeats ---------------------------------------------------------------------------- */

/* Axes of more than one element. */
static uint32_t all_axes(const dc_node *n)
{
    uint32_t axes = 0;
    for (int i = 0; i < n->rank; i++)
        axes |= (uint32_t)(n->dim[i] != 1) << i;
    return axes;
}

/* Axes of the operand [*i, a) and of the result [*k, b) that hold the same elements. */
static void next_pieces(const dc_node *from, const dc_node *to, int *a, int *b)
{
    int64_t x = 1, y = 1;
    do {
        if (x <= y && *a < from->rank)
            x *= from->dim[(*a)++];
        else if (*b < to->rank)
            y *= to->dim[(*b)++];
        else
            return;
    } while (x != y || x == 1);
}

static uint32_t between(int a, int b)
{
    return (uint32_t)(((uint64_t)1 << b) - ((uint64_t)1 << a));
}

static uint32_t reshaped(const dc_node *from, const dc_node *to, uint32_t axes)
{
    uint32_t result = 0;
    for (int i = 0, k = 0, a = 0, b = 0; i < from->rank || k < to->rank; i = a, k = b) {
        next_pieces(from, to, &a, &b);
        if ((axes & between(i, a)) != 0)
            result |= between(k, b);
        if (a == i && b == k)
            break;
    }
    return result & all_axes(to);
}

static uint32_t moved(const dc_node *from, const dc_node *n, uint32_t axes)
{
    uint32_t result = 0;
    if (n->op == DC_OP_RESHAPE)
        return reshaped(from, n, axes);
    for (int i = 0; i < n->rank; i++) {
        const int own = n->op == DC_OP_PERMUTE ? (int)n->attr[i] : i;
        const bool padded = n->op == DC_OP_PAD && n->dim[i] != from->dim[i];
        result |= ((axes >> own & 1) | padded) << i;
    }
    return result & all_axes(n);
}

/* Elements of a reduction, a product or a gather are taken for different. */
static void find_repetition(splitting *w)
{
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        const dc_node *n = at(w, r);
        uint32_t axes = 0;
        if (n->op == DC_OP_IOTA)
            axes = 1u << n->attr[0];
        else if (class_of(w, r) == DC_CLASS_MOV)
            axes = moved(at(w, n->in[0]), n, w->varies[n->in[0]]);
        else if (class_of(w, r) != DC_CLASS_EW && n->op != DC_OP_CONST)
            axes = all_axes(n);
        for (int i = 0; class_of(w, r) == DC_CLASS_EW && i < n->nin; i++)
            axes |= w->varies[n->in[i]];
        w->varies[r] = axes & all_axes(n);
    }
}

/* ---- what is worth it ------------------------------------------------------------------------ */

typedef struct cost {
    double ops;    /* to compute it from memory */
    size_t bytes;  /* of the parameters that this reads */
    bool turned;   /* the last axis of something was not last before */
    bool combines; /* a reduction, a product or a gather is among it */
    bool unpacks;  /* so is half_float: weights that are kept small on purpose */
} cost;

static bool is_turned(const dc_node *n)
{
    return n->op == DC_OP_PERMUTE && n->rank > 0 && n->attr[n->rank - 1] != n->rank - 1;
}

/* Operations of node r by itself. */
static double ops_of(const splitting *w, dc_ref r)
{
    const dc_node *n = at(w, r);
    const double count = (double)dc_node_count(n);
    switch (class_of(w, r)) {
    case DC_CLASS_EW:
        return count * (dc_op_row_of((dc_op)n->op)->flags & DC_OPF_COSTLY ? DC_TUNE_COSTLY_OPS : 1);
    case DC_CLASS_RED:
        return (double)dc_node_count(at(w, n->in[0]));
    case DC_CLASS_MOV:
        return is_turned(n) ? count * DC_TUNE_STRIDED_OPS : 0;
    case DC_CLASS_CON: /* at least a term for each element of an operand */
        return (double)dc_node_count(at(w, n->in[0])) + (double)dc_node_count(at(w, n->in[1]));
    case DC_CLASS_IDX:
    case DC_CLASS_FFT:
        return count * DC_TUNE_STRIDED_OPS;
    case DC_CLASS_HST: /* far more than it reads and writes */
    case DC_CLASS_COM:
        return count * DC_TUNE_HOST_OPS;
    case DC_CLASS_SRC:
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
    case DC_CLASS_CTL:
        break;
    }
    return 0;
}

static void add_cost(const splitting *w, dc_ref r, cost *c)
{
    const dc_op_class cls = class_of(w, r);
    c->ops += ops_of(w, r);
    c->turned |= is_turned(at(w, r));
    c->unpacks |= at(w, r)->op == DC_OP_HALF;
    c->combines |= cls == DC_CLASS_RED || cls == DC_CLASS_CON || cls == DC_CLASS_IDX ||
                   cls == DC_CLASS_HST || cls == DC_CLASS_COM || cls == DC_CLASS_FFT;
    if (at(w, r)->op == DC_OP_PARAM)
        c->bytes += node_bytes(w, r);
}

/* Of all that r is made of. More nodes than the limit count as costly. */
static cost cost_of(splitting *w, dc_ref r)
{
    cost c = {0};
    uint32_t seen = 0;
    w->nsearch++;
    w->todo.n = 0;
    DC_PUSH_IN(w->a, w->todo, r);
    while (w->todo.n > 0) {
        const dc_ref x = w->todo.at[--w->todo.n];
        const dc_node *n = at(w, x);
        if (w->search[x] == w->nsearch)
            continue;
        if (++seen > DC_TUNE_COST_NODES)
            return (cost){.ops = 1e300, .bytes = SIZE_MAX / 4, .combines = true};
        w->search[x] = w->nsearch;
        add_cost(w, x, &c);
        for (int i = 0; i < n->nin; i++)
            DC_PUSH_IN(w->a, w->todo, n->in[i]);
    }
    return c;
}

/*
 * Does user u read operand i as plain memory, which would be written at each call? The same question
 * as fusion asks of a left operand (jit/fuse/fuse_operands.c), here of what is made of memory alone.
 */
static bool reads_plain(const splitting *w, dc_ref u, int i)
{
    dc_ref r = at(w, u)->in[i];
    const bool dot = at(w, u)->op == DC_OP_DOT;
    if (class_of(w, u) == DC_CLASS_CTL ||
        dc_op_for_host((dc_op)at(w, u)->op)) /* what loops and branches read has memory */
        return class_of(w, r) != DC_CLASS_MOV || at(w, r)->op == DC_OP_PERMUTE;
    if (class_of(w, u) != DC_CLASS_CON || (i > 0 && !(w->groups && dot)))
        return class_of(w, u) == DC_CLASS_CON;
    if (dc_layout_is_transposed(w->f, r))
        return true;
    while (dc_layout_folds(w->f, r))
        r = at(w, r)->in[0];
    return class_of(w, r) != DC_CLASS_SRC;
}

/*
 * Worth it is what each call would write to memory, and what costs more to compute than to
 * read; but nothing that repeats itself, and nothing that is much larger than what it is made of, which is
 * read faster. A product reads a matrix that is only cast or scaled in its own type. Packed floats are unpacked where they
 * are read.
 */
static bool is_worth(splitting *w, const asking *x)
{
    const dc_ref r = x->r;
    const dc_node *n = at(w, r);
    const double count = (double)dc_node_count(n);
    if (count == 0 || w->varies[r] != all_axes(n) || class_of(w, r) == DC_CLASS_SRC ||
        class_of(w, r) == DC_CLASS_SAME)
        return false;
    if (!x->plain && class_of(w, r) == DC_CLASS_MOV && !is_turned(n))
        return false;
    const cost c = cost_of(w, r);
    if (c.unpacks && node_bytes(w, r) > c.bytes)
        return false;
    const bool light = !c.turned && !c.combines && c.ops < DC_TUNE_READ_OPS * count;
    const size_t most = x->of_dot && light ? c.bytes : 2 * c.bytes;
    return (x->plain || !light) &&
           (node_bytes(w, r) <= most || node_bytes(w, r) <= DC_TUNE_DERIVED_BYTES);
}

/* Node u reads its operand i. */
static void ask(splitting *w, dc_ref u, int i)
{
    if (at(w, u)->op == DC_OP_HALF)
        return;
    const asking x = {at(w, u)->in[i], reads_plain(w, u, i), at(w, u)->op == DC_OP_DOT};
    const uint8_t bit = (uint8_t)(1u << (2 * x.plain + x.of_dot));
    if (w->derived[x.r] || (w->asked[x.r] & bit) != 0)
        return;
    w->asked[x.r] |= bit;
    DC_PUSH_IN(w->a, w->asks, x);
}

static void answer(splitting *w)
{
    while (w->asks.n > 0) {
        const asking x = w->asks.at[--w->asks.n];
        if (w->derived[x.r])
            continue;
        w->derived[x.r] = is_worth(w, &x);
        for (int i = 0; !w->derived[x.r] && i < at(w, x.r)->nin; i++)
            ask(w, x.r, i);
    }
}

static void find_derived(splitting *w)
{
    const bool *live = dc_func_live(w->f, w->a);
    for (uint32_t i = 0; i < w->f->result.n; i++)
        if (w->invariant[w->f->result.at[i]])
            DC_PUSH_IN(w->a, w->asks, ((asking){.r = w->f->result.at[i]}));
    for (dc_ref r = 1; r < w->f->node.n; r++)
        for (int i = 0; live[r] && !w->invariant[r] && i < at(w, r)->nin; i++)
            if (w->invariant[at(w, r)->in[i]])
                ask(w, r, i);
    answer(w);
}

/* ---- the two functions ----------------------------------------------------------------------- */

/* By ref: what the roots are made of, down to nodes in `stop` (NULL: none), those included. */
static bool *reach(splitting *w, const dc_ref *root, uint32_t n, const bool *stop)
{
    bool *reached = DC_NEW_ARRAY(w->a, bool, w->f->node.n);
    for (uint32_t i = 0; i < n; i++)
        reached[root[i]] = true;
    for (dc_ref r = w->f->node.n; r-- > 1;)
        for (int i = 0; reached[r] && (stop == NULL || !stop[r]) && i < at(w, r)->nin; i++)
            reached[at(w, r)->in[i]] = true;
    return reached;
}

/* A function of the same parameters, and its refs by old ref. */
static dc_func *begin_func(const splitting *w, dc_ref *map)
{
    dc_func *to = dc_func_new(w->f->module, w->f->name);
    dc_graph_params(to, w->f, map);
    return to;
}

static void copy_nodes(const splitting *w, dc_func *to, const bool *wanted, dc_ref *map)
{
    for (dc_ref r = 1; r < w->f->node.n; r++) {
        const dc_node *n = at(w, r);
        if (map[r] != 0 || !wanted[r])
            continue;
        dc_ref in[DC_MAX_OPERANDS];
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const dc_type t = dc_node_type(w->f, r);
        map[r] = dc_graph_make(to, (dc_op)n->op, in, n->nin, n->attr, n->nattr, &t);
        dc_func_copy_origin(to, map[r], w->f, r);
    }
}

/* Those that the body reads: users of others may have become derived values themselves. */
static void list_values(splitting *w)
{
    const bool *read = reach(w, w->f->result.at, w->f->result.n, w->derived);
    for (dc_ref r = 1; r < w->f->node.n; r++)
        if (w->derived[r] && read[r])
            DC_PUSH_IN(w->a, w->value, r);
}

static void make_prologue(splitting *w, dc_split_func *out)
{
    const dc_func *f = w->f;
    dc_ref *map = DC_NEW_ARRAY(w->a, dc_ref, f->node.n);
    const bool *wanted = reach(w, w->value.at, w->value.n, NULL);
    out->prologue = begin_func(w, map);
    copy_nodes(w, out->prologue, wanted, map);
    for (uint32_t i = 0; i < w->value.n; i++)
        DC_PUSH(out->prologue->result, map[w->value.at[i]]);
    out->reads = DC_NEW_ARRAY(w->a, bool, f->param.n);
    for (uint32_t i = 0; i < f->param.n; i++)
        out->reads[i] = wanted[f->param.at[i]];
}

static void make_body(splitting *w, dc_split_func *out)
{
    const dc_func *f = w->f;
    dc_ref *map = DC_NEW_ARRAY(w->a, dc_ref, f->node.n);
    char label[32];
    out->body = begin_func(w, map);
    for (uint32_t i = 0; i < w->value.n; i++) {
        const dc_ref r = w->value.at[i];
        const dc_type t = dc_node_type(f, r);
        snprintf(label, sizeof label, "derived %u", i + 1);
        map[r] = dc_graph_param(out->body, &t, label);
        dc_func_copy_origin(out->body, map[r], f, r);
    }
    copy_nodes(w, out->body, reach(w, f->result.at, f->result.n, w->derived), map);
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(out->body->result, map[f->result.at[i]]);
}

bool dc_prologue_split(dc_arena *a, const dc_exec_desc *d, const dc_func *f, bool groups,
                       dc_split_func *out)
{
    splitting w = {.a = a, .d = d, .f = f, .groups = groups};
    w.invariant = DC_NEW_ARRAY(a, bool, f->node.n);
    w.derived = DC_NEW_ARRAY(a, bool, f->node.n);
    w.asked = DC_NEW_ARRAY(a, uint8_t, f->node.n);
    w.search = DC_NEW_ARRAY(a, uint32_t, f->node.n);
    w.varies = DC_NEW_ARRAY(a, uint32_t, f->node.n);
    find_invariant(&w);
    find_repetition(&w);
    find_derived(&w);
    list_values(&w);
    *out = (dc_split_func){.n = w.value.n};
    if (w.value.n == 0)
        return false;
    make_prologue(&w, out);
    make_body(&w, out);
    return true;
}
