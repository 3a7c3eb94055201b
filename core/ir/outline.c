#include "core/ir/outline.h"

#include "core/ir/exchange.h"
#include "core/ir/subgraph.h"

/* Of the attribute `which` of a hole: a custom gradient has two kinds. */
enum { STAND_IN = 2 };

dc_ref dc_graph_stand_in(dc_func *f, const dc_type *t)
{
    const int64_t attr[2] = {f->node.n, STAND_IN};
    const dc_type parts = dc_type_parts(t);
    return dc_graph_make(f, DC_OP_HOLE, NULL, 0, attr, 2, &parts);
}

bool dc_is_stand_in(const dc_node *n)
{
    return n->op == DC_OP_HOLE && n->attr[1] == STAND_IN;
}

/* ---- what belongs to a body ------------------------------------------------------------------ */

/* How a node is wanted by those that are wanted. */
enum { WANTED = 1, STRETCHED = 2 };

typedef struct part {
    const dc_func *f;
    bool *inside;  /* may not be captured */
    uint8_t *want; /* of what the roots are made of */
} part;

/* What is made of a stand-in, what has a hole of a gradient that was given in the body, and what ranks do together in it. */
static void find_depending(const dc_outline *o, part *p)
{
    const dc_func *f = o->f;
    for (int i = 0; i < o->nstand_in; i++)
        p->inside[o->stand_in[i]] = true;
    for (dc_ref r = o->mark; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        const int nin = n->op == DC_OP_CUSTOM ? dc_node_inputs(n) : n->nin;
        bool inside = p->inside[r] || (n->op == DC_OP_HOLE && !dc_is_stand_in(n)) ||
                      dc_exchange_is_ordered(f, n);
        for (int i = 0; i < nin && !inside; i++)
            inside = p->inside[n->in[i]];
        p->inside[r] = inside;
    }
}

/* What was made since the mark; of a loop that was made before it also its results. */
static void find_younger(const dc_outline *o, part *p)
{
    for (dc_ref r = o->mark; r < o->f->node.n; r++) {
        const dc_node *n = dc_node_at(o->f, r);
        p->inside[r] = n->op != DC_OP_PARAM && !dc_is_stand_in(n) &&
                       (n->op != DC_OP_PICK || n->in[0] >= o->mark);
    }
}

/* Is it made again in the body, although it could be captured? */
static bool is_copied(const dc_node *n, uint8_t want)
{
    return n->op == DC_OP_CONST || n->op == DC_OP_IOTA || n->op == DC_OP_EXPAND ||
           (n->op == DC_OP_RESHAPE && (want & STRETCHED) != 0);
}

static bool is_made(const part *p, dc_ref r)
{
    return p->want[r] != 0 && (p->inside[r] || is_copied(dc_node_at(p->f, r), p->want[r]));
}

static void find_wanted(part *p, const dc_ref *root, int nroot)
{
    for (int i = 0; i < nroot; i++)
        p->want[root[i]] |= WANTED;
    for (dc_ref r = p->f->node.n; r-- > 1;) {
        const dc_node *n = dc_node_at(p->f, r);
        const bool stretches = n->op == DC_OP_EXPAND && !p->inside[r];
        if (!is_made(p, r))
            continue;
        for (int i = 0; i < n->nin; i++)
            p->want[n->in[i]] |= stretches ? WANTED | STRETCHED : WANTED;
    }
}

static part part_of(dc_job *j, const dc_func *f)
{
    return (part){f, DC_NEW_ARRAY(&j->scratch, bool, f->node.n),
                  DC_NEW_ARRAY(&j->scratch, uint8_t, f->node.n)};
}

/* Adds what is captured to the list, in order. */
static dc_status list_captured(dc_job *j, dc_outline *o, const part *a, const part *b)
{
    for (dc_ref r = 1; r < o->f->node.n; r++) {
        const bool by_a = a->want[r] != 0 && !is_made(a, r);
        const bool by_b = b != NULL && b->want[r] != 0 && !is_made(b, r);
        if (!by_a && !by_b)
            continue;
        if (o->ncaptured == DC_MAX_OPERANDS)
            return dc_failf(j, DC_ERR_ARG, NULL, "the body reads more than %d tensors",
                            DC_MAX_OPERANDS);
        o->captured[o->ncaptured++] = r;
    }
    return DC_OK;
}

/* ---- the function ---------------------------------------------------------------------------- */

static void add_param(dc_func *to, const dc_func *from, dc_ref r, dc_ref *map)
{
    const dc_node *n = dc_node_at(from, r);
    const dc_type t = dc_node_type(from, r);
    map[r] = dc_graph_param(to, &t, n->op == DC_OP_PARAM ? from->label.at[n->attr[0]] : NULL);
    dc_func_copy_origin(to, map[r], from, r);
}

static dc_func *make_function(dc_job *j, const dc_outline *o, const part *p, const dc_ref *root)
{
    const dc_func *from = o->f;
    dc_func *to = dc_func_new(from->module, from->name);
    dc_ref *map = DC_NEW_ARRAY(&j->scratch, dc_ref, from->node.n);
    for (int i = 0; i < o->head; i++)
        add_param(to, from, o->stand_in[i], map);
    for (int i = 0; i < o->ncaptured; i++)
        add_param(to, from, o->captured[i], map);
    for (int i = o->head; i < o->nstand_in; i++)
        add_param(to, from, o->stand_in[i], map);
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = dc_node_at(from, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (map[r] != 0 || !is_made(p, r))
            continue;
        DC_ASSERT(!dc_is_stand_in(n), "stand-in %u outlives its body", r);
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        map[r] = dc_graph_again(to, from, r, in);
    }
    for (int i = 0; i < o->nroot; i++)
        DC_PUSH(to->result, map[root[i]]);
    return to;
}

static uint32_t add_body(dc_func *f)
{
    const uint32_t body = dc_body_add(f->module, f);
    dc_func_drop(f);
    return body;
}

dc_status dc_outline_function(dc_job *j, dc_outline *o, dc_func **out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    part p = part_of(j, o->f);
    find_depending(o, &p);
    find_wanted(&p, o->root, o->nroot);
    o->ncaptured = 0;
    DC_TRY(list_captured(j, o, &p, NULL));
    *out = make_function(j, o, &p, o->root);
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

dc_status dc_outline_loop(dc_job *j, dc_outline *o, uint32_t *body)
{
    dc_func *f;
    DC_TRY(dc_outline_function(j, o, &f));
    *body = add_body(f);
    return DC_OK;
}

dc_status dc_outline_branch(dc_job *j, dc_outline *o, uint32_t body[2])
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    part side[2];
    for (int i = 0; i < 2; i++) {
        side[i] = part_of(j, o->f);
        find_younger(o, &side[i]);
        find_wanted(&side[i], o->root + i * o->nroot, o->nroot);
    }
    o->ncaptured = 0;
    DC_TRY(list_captured(j, o, &side[0], &side[1]));
    for (int i = 0; i < 2; i++)
        body[i] = add_body(make_function(j, o, &side[i], o->root + i * o->nroot));
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}
