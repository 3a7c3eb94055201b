/*
 * What a loop need not do: results that are known without it, constants that are made in the body instead of read, and
 * values that are the same in each iteration, which are computed before it.
 */
#include "core/autodiff/custom.h"
#include "core/ir/exchange.h"
#include "jit/rewrite/loops_impl.h"

static bool is_movement(const dc_func *f, dc_ref r)
{
    return dc_op_is((dc_op)dc_node_at(f, r)->op, DC_CLASS_MOV);
}

bool dc_loop_is_trivial(const dc_func *f, dc_ref r)
{
    while (is_movement(f, r))
        r = dc_node_at(f, r)->in[0];
    return dc_node_at(f, r)->op == DC_OP_CONST || dc_node_at(f, r)->op == DC_OP_IOTA;
}

dc_ref dc_loop_copy_trivial(dc_func *to, const dc_func *from, dc_ref r)
{
    const dc_node *n = dc_node_at(from, r);
    const dc_ref in = n->nin > 0 ? dc_loop_copy_trivial(to, from, n->in[0]) : 0;
    return dc_graph_again(to, from, r, &in);
}

/* ---- known results --------------------------------------------------------------------------- */

/* r in f, for each of the n elements */
static dc_ref repeated(const dc_loopedit *w, dc_ref r)
{
    const dc_type t = dc_node_type(w->f, r), all = dc_loop_stacked(&t, w->n);
    return dc_graph_unreduce(w->f, r, 1, all.rank, all.dim);
}

static dc_ref numbers(const dc_loopedit *w)
{
    const int64_t along = 0;
    const dc_type t = dc_type_make(DC_I32, 1, &w->n);
    return dc_graph_make(w->f, DC_OP_IOTA, NULL, 0, &along, 1, &t);
}

/* All n values of node r of the body, if they are there without a loop; 0 otherwise. */
static dc_ref stack_known(const dc_loopedit *w, dc_ref r)
{
    if (r == w->i)
        return numbers(w);
    for (uint32_t i = 0; i < w->x.n; i++)
        if (w->x.at[i].param == r)
            return w->x.at[i].in;
    for (uint32_t i = 0; i < w->constant.n; i++)
        if (w->constant.at[i].param == r)
            return repeated(w, w->constant.at[i].in);
    if (dc_loop_is_trivial(w->body, r))
        return repeated(w, dc_loop_copy_trivial(w->f, w->body, r));
    return 0;
}

static void know_results(dc_loopedit *w)
{
    for (uint32_t i = 0; i < w->nresult && (w->flags & DC_LOOP_ROWS) == 0; i++) {
        dc_loop_result *r = &w->result[i];
        if (r->kind != DC_LOOP_STACKED || w->y.at[r->at].kept != 0)
            continue;
        const dc_ref all = stack_known(w, w->y.at[r->at].value);
        if (all != 0)
            *r = (dc_loop_result){DC_LOOP_VALUE, 0, all};
    }
}

/* The value of a scalar constant of f. */
static bool const_value(const dc_func *f, dc_ref r, int64_t *out)
{
    const dc_node *n = dc_node_at(f, r);
    if (n->op != DC_OP_CONST)
        return false;
    *out = (int64_t)dc_value_of((dc_dtype)n->dtype, (uint64_t)n->attr[0]);
    return true;
}

static bool never_runs(const dc_loopedit *w)
{
    int64_t v;
    return w->n == 0 ||
           ((w->flags & DC_LOOP_LIMIT) != 0 && const_value(w->f, w->limit, &v) && v <= 0) ||
           ((w->flags & DC_LOOP_TEST) != 0 && const_value(w->f, w->carry.at[0].in, &v) && v == 0);
}

/* Results are operands. */
static void forget_iterations(dc_loopedit *w)
{
    for (uint32_t i = 0; i < w->nresult; i++) {
        dc_loop_result *r = &w->result[i];
        if (r->kind == DC_LOOP_CARRIED)
            *r = (dc_loop_result){DC_LOOP_VALUE, 0, w->carry.at[r->at].in};
        if (r->kind != DC_LOOP_STACKED)
            continue;
        const dc_loop_stack *y = &w->y.at[r->at];
        const dc_type t = dc_node_type(w->body, y->value), all = dc_loop_stacked(&t, w->n);
        *r = (dc_loop_result){DC_LOOP_VALUE, 0,
                              y->kept != 0 ? y->kept : dc_graph_const(w->f, &all, 0)};
    }
    w->flags &= ~(uint32_t)DC_LOOP_TEST;
}

/* Flags that cannot end the loop. */
static void drop_flags(dc_loopedit *w)
{
    int64_t v, next;
    if ((w->flags & DC_LOOP_LIMIT) != 0 && const_value(w->f, w->limit, &v) && v >= w->n) {
        w->flags &= ~(uint32_t)DC_LOOP_LIMIT;
        w->limit = 0;
    }
    if ((w->flags & DC_LOOP_TEST) != 0 && const_value(w->f, w->carry.at[0].in, &v) && v != 0 &&
        (w->carry.at[0].next == w->carry.at[0].param ||
         (const_value(w->body, w->carry.at[0].next, &next) && next != 0)))
        w->flags &= ~(uint32_t)DC_LOOP_TEST;
    for (uint32_t i = 0; (w->flags & (DC_LOOP_LIMIT | DC_LOOP_TEST)) == 0 && i < w->y.n; i++)
        w->y.at[i].kept = 0;
}

void dc_loop_settle(dc_loopedit *w)
{
    if (never_runs(w))
        forget_iterations(w);
    drop_flags(w);
    know_results(w);
    dc_loop_drop_dead(w);
}

/* ---- into the body --------------------------------------------------------------------------- */

void dc_loop_sink(dc_loopedit *w)
{
    dc_ref *sunk = DC_NEW_ARRAY(&w->j->scratch, dc_ref, w->body->node.n);
    uint32_t to = 0;
    for (uint32_t i = 0; i < w->constant.n; i++) {
        const dc_loop_slot s = w->constant.at[i];
        if (dc_loop_is_trivial(w->f, s.in))
            sunk[s.param] = s.in;
        else
            w->constant.at[to++] = s;
    }
    if (to == w->constant.n)
        return;
    w->constant.n = to;
    dc_loop_remake(w, NULL, sunk);
}

/* ---- out of the body ------------------------------------------------------------------------- */

typedef struct hoisting {
    dc_loopedit *w;
    bool *invariant; /* made of constants alone */
    bool *wanted;    /* to be computed before the loop */
    dc_ref *map;     /* what it is there */
} hoisting;

static bool is_invariant(const hoisting *h, dc_ref r)
{
    const dc_node *n = dc_node_at(h->w->body, r);
    if (n->op == DC_OP_PARAM)
        return h->invariant[r];
    if (n->op == DC_OP_BARRIER || n->op == DC_OP_HOLE || dc_exchange_is_ordered(h->w->body, n))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (!h->invariant[n->in[i]])
            return false;
    return true;
}

/* Is it i < e, of positions and a number that is a parameter? */
static bool is_size_test(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    return n->op == DC_OP_LT && dc_loop_is_trivial(f, n->in[0]) &&
           dc_number_param(f, n->in[1]) != 0;
}

/* where(i < e, x, constant): what is behind a size. */
static bool is_size_mask(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    return n->op == DC_OP_WHERE && dc_node_at(f, n->in[2])->op == DC_OP_CONST &&
           is_size_test(f, n->in[0]);
}

/*
 * Values that stand at the border. Movement other than a permute is left in the body: what it moves is no larger, and
 * to read it moved costs nothing. So are tests of sizes, by which loops end (jit/fuse/needs.h), and what they hide.
 */
static void want(hoisting *h, dc_ref r)
{
    const dc_func *b = h->w->body;
    for (;;) {
        const dc_node *n = dc_node_at(b, r);
        if (is_size_mask(b, r))
            r = n->in[1];
        else if (is_movement(b, r) && n->op != DC_OP_PERMUTE)
            r = n->in[0];
        else
            break;
    }
    if (dc_node_at(b, r)->op != DC_OP_PARAM && !dc_loop_is_trivial(b, r) && !is_size_test(b, r))
        h->wanted[r] = true;
}

static void find_border(hoisting *h)
{
    const dc_loopedit *w = h->w;
    const bool *needed = dc_loop_needed(w);
    for (uint32_t i = 0; i < w->constant.n; i++)
        h->invariant[w->constant.at[i].param] = true;
    for (dc_ref r = 1; r < w->body->node.n; r++) {
        const dc_node *n = dc_node_at(w->body, r);
        h->invariant[r] = is_invariant(h, r);
        for (int i = 0; needed[r] && !h->invariant[r] && i < n->nin; i++)
            if (h->invariant[n->in[i]])
                want(h, n->in[i]);
    }
    for (uint32_t i = 0; i < w->carry.n; i++)
        if (h->invariant[w->carry.at[i].next])
            want(h, w->carry.at[i].next);
    for (uint32_t i = 0; i < w->y.n; i++)
        if (h->invariant[w->y.at[i].value])
            want(h, w->y.at[i].value);
}

/* All that wanted values are made of. */
static bool *cone_of_wanted(const hoisting *h)
{
    const dc_func *b = h->w->body;
    bool *cone = DC_NEW_ARRAY(&h->w->j->scratch, bool, b->node.n);
    for (dc_ref r = b->node.n; r-- > 1;) {
        cone[r] = cone[r] || h->wanted[r];
        for (int i = 0; cone[r] && i < dc_node_at(b, r)->nin; i++)
            cone[dc_node_at(b, r)->in[i]] = true;
    }
    return cone;
}

void dc_loop_hoist(dc_loopedit *w)
{
    dc_arena *a = &w->j->scratch;
    const dc_func *b = w->body;
    hoisting h = {w, DC_NEW_ARRAY(a, bool, b->node.n), DC_NEW_ARRAY(a, bool, b->node.n),
                  DC_NEW_ARRAY(a, dc_ref, b->node.n)};
    bool any = false;
    find_border(&h);
    const bool *cone = cone_of_wanted(&h);
    for (uint32_t i = 0; i < w->constant.n; i++)
        h.map[w->constant.at[i].param] = w->constant.at[i].in;
    for (dc_ref r = 1; r < b->node.n; r++) {
        const dc_node *n = dc_node_at(b, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (!cone[r] || h.map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = h.map[n->in[i]];
        h.map[r] = dc_graph_again(w->f, b, r, in);
        if (!h.wanted[r] || dc_loop_operand_count(w) + 1 > DC_MAX_OPERANDS)
            continue;
        DC_PUSH_IN(a, w->constant, ((dc_loop_slot){.in = h.map[r], .param = r}));
        any = true;
    }
    if (!any)
        return;
    dc_loop_remake(w, NULL, NULL);
    dc_loop_drop_dead(w);
}
