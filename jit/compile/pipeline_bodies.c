/*
 * Bodies of loops and branches. Each is a part by itself, with groups, kernels and a plan of its own; its
 * parameters and results are in memory of the part that it belongs to.
 *
 * A carry of a loop is a cell of its body: it is set in place, or by a copy at the end of an iteration. Carries and ys
 * lie where the picks of the loop do. A body reads element i of an x, and stores element i of a y, where it is: the
 * binds of its commands move with the loop (dc_bind_move).
 */
#include "core/autodiff/custom.h"
#include "jit/compile/graph_passes.h"
#include "jit/compile/pipeline_impl.h"

#include <string.h>

/* ---- parts ----------------------------------------------------------------------------------- */

static const dc_node *control_node(const dc_part *x, uint32_t group)
{
    return dc_node_at(x->fn, x->groups.at[group].control);
}

static size_t type_bytes(const dc_func *fn, dc_ref r)
{
    const dc_type t = dc_node_type(fn, r);
    return dc_align_up(dc_type_bytes(&t), DC_PLAN_ALIGN);
}

static dc_ref copy_param(dc_func *to, const dc_func *body, uint32_t i)
{
    const dc_type t = dc_node_type(body, body->param.at[i]);
    return dc_graph_param(to, &t, body->label.at[i]);
}

/* A y that is a carry, too, is one value stored twice: a node of its own, so that one kernel stores both. */
static dc_ref apart_from_carries(dc_func *to, dc_ref y, const dc_ref *carry, int ncarry)
{
    bool twice = false;
    for (int i = 0; i < ncarry; i++)
        twice = twice || carry[i] == y;
    return twice && dc_node_at(to, y)->op != DC_OP_PARAM ? dc_graph_barrier(to, y, y) : y;
}

/* As control.h orders parameters and results, to as a part has them: free ones first, results before sets. */
static const dc_func *loop_function(dc_arena *a, const dc_func *body, const dc_loop *l)
{
    dc_func *to = dc_func_new(body->module, body->name);
    dc_ref *param = DC_NEW_ARRAY(a, dc_ref, body->param.n);
    dc_ref *result = DC_NEW_ARRAY(a, dc_ref, body->result.n);
    const uint32_t carry = 1 + (uint32_t)l->nconst, x = carry + (uint32_t)l->ncarry;
    for (uint32_t i = 0; i < body->param.n; i++)
        if (i < carry || i >= x)
            param[i] = copy_param(to, body, i);
    for (uint32_t i = carry; i < x; i++)
        param[i] = copy_param(to, body, i);
    dc_graph_inline(to, body, param, result);
    for (int i = 0; i < l->ny; i++)
        DC_PUSH(to->result, apart_from_carries(to, result[l->ncarry + i], result, l->ncarry));
    for (int i = 0; i < l->ncarry; i++)
        DC_PUSH(to->result, result[i]);
    return to;
}

static dc_exec_desc loop_desc(dc_compiling *p, const dc_loop *l)
{
    const uint32_t ncarry = (uint32_t)l->ncarry, nfree = (uint32_t)(1 + l->nconst + l->nx);
    uint32_t *set = DC_NEW_ARRAY(&p->j->scratch, uint32_t, ncarry);
    for (uint32_t i = 0; i < ncarry; i++)
        set[i] = i;
    return (dc_exec_desc){.name = p->e->desc.name,
                          .nfree = nfree,
                          .ncell = ncarry,
                          .nresult = (uint32_t)l->ny,
                          .nset = ncarry,
                          .set = set,
                          .anywhere = DC_NEW_ARRAY(&p->j->scratch, bool, nfree)};
}

static dc_exec_desc side_desc(dc_compiling *p, const dc_func *body)
{
    return (dc_exec_desc){.name = p->e->desc.name,
                          .nfree = body->param.n,
                          .nresult = body->result.n,
                          .anywhere = DC_NEW_ARRAY(&p->j->scratch, bool, body->param.n)};
}

static dc_status add_body(dc_compiling *p, dc_part *x, uint32_t group, const dc_func *fn,
                          const dc_exec_desc *desc, dc_part **out)
{
    DC_TRY(dc_graph_passes_run(&(dc_graph_passes){p->env, p->j}, DC_REWRITE_BODY, &fn));
    dc_part *y = *out = dc_pipeline_add_part(p, fn, desc);
    y->parent = x;
    y->group = group;
    y->loops = x->loops + x->control[group]->is_loop;
    y->is_prologue = x->is_prologue;
    return DC_OK;
}

static void find_picks(dc_part *x, uint32_t group, dc_control *c)
{
    const dc_group *g = &x->groups.at[group];
    for (uint32_t i = 0; i < g->nout; i++)
        c->pick[dc_node_at(x->fn, g->out[i])->attr[0]] = g->out[i];
}

/* Results that nothing reads still go somewhere. */
static void place_spares(dc_control *c, const dc_func *body)
{
    c->temps = DC_PLAN_ALIGN; /* before it: the number of the element */
    for (uint32_t i = 0; i < body->result.n; i++) {
        c->spare[i] = c->temps;
        c->temps += c->pick[i] == 0 ? type_bytes(body, body->result.at[i]) : 0;
    }
}

static dc_control *new_control(dc_compiling *p, dc_part *x, uint32_t group)
{
    dc_arena *a = &p->j->scratch;
    const dc_node *n = control_node(x, group);
    const dc_func *body = dc_body_at(x->fn->module, n->attr[0]);
    dc_control *c = x->control[group] = DC_NEW(a, dc_control);
    c->is_loop = n->op == DC_OP_LOOP;
    c->pick = DC_NEW_ARRAY(a, dc_ref, body->result.n);
    c->spare = DC_NEW_ARRAY(a, size_t, body->result.n);
    find_picks(x, group, c);
    place_spares(c, body);
    if (c->is_loop)
        c->loop = dc_loop_of(n);
    return c;
}

static dc_status add_sides(dc_compiling *p, dc_part *x, uint32_t group)
{
    dc_control *c = new_control(p, x, group);
    const dc_node n = *control_node(x, group);
    for (int side = 0; side < dc_node_bodies(&n); side++) {
        const dc_func *body = dc_body_at(x->fn->module, n.attr[side]);
        const dc_exec_desc desc = c->is_loop ? loop_desc(p, &c->loop) : side_desc(p, body);
        if (c->is_loop)
            body = loop_function(&p->j->scratch, body, &c->loop);
        DC_TRY(add_body(p, x, group, body, &desc, &c->side[side]));
    }
    return DC_OK;
}

dc_status dc_pipeline_add_bodies(dc_compiling *p, dc_part *x)
{
    x->control = DC_NEW_ARRAY(&p->j->scratch, dc_control *, x->groups.n);
    for (uint32_t g = 0; g < x->groups.n; g++) {
        if (x->groups.at[g].control == 0)
            continue;
        if (dc_op_for_host((dc_op)control_node(x, g)->op)) {
            x->control[g] = DC_NEW(&p->j->scratch, dc_control);
            x->control[g]->is_host = true;
            x->control[g]->host = dc_host_call_of(x->fn, x->groups.at[g].control);
            continue;
        }
        if (control_node(x, g)->op == DC_OP_LOOP && x->loops == DC_LOOP_DEPTH)
            return dc_failf(p->j, DC_ERR_BUILD, p->e->desc.name,
                            "more than %d loops inside each other", DC_LOOP_DEPTH);
        DC_TRY(add_sides(p, x, g));
    }
    return DC_OK;
}

const char *dc_pipeline_control_label(const dc_control *c)
{
    if (c->is_host)
        return dc_op_row_of(c->host.op)->name;
    return c->is_loop ? "loop" : "branch";
}

size_t dc_pipeline_work(dc_part *x, uint32_t group)
{
    dc_control *c = x->control[group];
    size_t most = 0;
    for (int side = 0; side < 2 && c->side[side] != NULL; side++)
        most = c->side[side]->plan.bytes > most ? c->side[side]->plan.bytes : most;
    c->bytes = c->temps + most;
    return c->bytes;
}

/* Only of a loop that begins a carry or a y with the operand, and reads it for nothing else; and of a sum over ranks. */
bool dc_pipeline_control_in_place(const dc_part *x, uint32_t group, uint32_t out, uint32_t in)
{
    const dc_group *g = &x->groups.at[group];
    const dc_node *n = control_node(x, group);
    int reads = 0;
    if (x->control[group]->is_host)
        return n->op == DC_OP_ALL_REDUCE;
    for (int i = 0; i < n->nin; i++)
        reads += n->in[i] == g->in[in];
    return reads == 1 && dc_loop_start(x->fn, g->out[out]) == g->in[in];
}

/* ---- places ---------------------------------------------------------------------------------- */

static dc_where operand(const dc_part *x, uint32_t group, int i)
{
    return dc_pipeline_where(x, x->plan.home[control_node(x, group)->in[i]]);
}

static dc_where work_memory(const dc_part *x, uint32_t group, size_t offset)
{
    dc_where w =
        dc_pipeline_where(x, (dc_place){.kind = DC_PLACE_TEMP, .index = x->plan.work[group]});
    w.bind.offset += offset;
    return w;
}

dc_where dc_pipeline_counter(const dc_part *x, uint32_t group)
{
    return work_memory(x, group, 0);
}

dc_where dc_pipeline_result(const dc_part *x, uint32_t group, int i)
{
    const dc_control *c = x->control[group];
    return c->pick[i] != 0 ? dc_pipeline_where(x, x->plan.home[c->pick[i]])
                           : work_memory(x, group, c->spare[i]);
}

/* Grows with the innermost loop around part y by the bytes of a parameter or result. */
static dc_where moving(const dc_part *y, dc_where w, dc_ref element)
{
    const dc_type t = dc_node_type(y->fn, element);
    w.step[y->loops - 1] += dc_type_bytes(&t);
    return w;
}

static dc_where loop_parameter(const dc_part *y, uint32_t i)
{
    const dc_loop *l = &y->parent->control[y->group]->loop;
    if (i == 0)
        return dc_pipeline_counter(y->parent, y->group);
    if (i <= (uint32_t)l->nconst)
        return operand(y->parent, y->group, dc_loop_const(l) + (int)i - 1);
    const dc_where w = operand(y->parent, y->group, dc_loop_x(l) + (int)i - 1 - l->nconst);
    return moving(y, w, y->fn->param.at[i]);
}

static dc_where loop_result(const dc_part *y, uint32_t i)
{
    const dc_control *c = y->parent->control[y->group];
    const int number = c->loop.ncarry + (int)i;
    const dc_where w = dc_pipeline_result(y->parent, y->group, number);
    return c->pick[number] != 0 ? moving(y, w, y->fn->result.at[i]) : w;
}

/* Of a part that is a body. */
static dc_where where_in_body(const dc_part *y, dc_place at)
{
    const dc_part *x = y->parent;
    const dc_control *c = x->control[y->group];
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE:
        return (dc_where){.bind = {DC_SLOT_BLOCK, 0}};
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return c->is_loop ? loop_parameter(y, at.index) : operand(x, y->group, 1 + (int)at.index);
    case DC_PLACE_CELL:
        return dc_pipeline_result(x, y->group, (int)at.index);
    case DC_PLACE_RESULT:
        return c->is_loop ? loop_result(y, at.index)
                          : dc_pipeline_result(x, y->group, (int)at.index);
    case DC_PLACE_TEMP:
        return work_memory(x, y->group, c->temps + y->plan.temp[at.index].offset);
    }
    DC_BUG("place of kind %d", at.kind);
}

/* Derived values are results of the prologue; in the body they stand behind the cells. */
static dc_bind bind_whole(const dc_part *x, dc_place at)
{
    const dc_exec *e = x->p->e;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE: /* no element of it is ever read */
        return (dc_bind){DC_SLOT_BLOCK, 0};
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return (dc_bind){dc_slot_free(at.index), 0};
    case DC_PLACE_CELL:
        return at.index < e->desc.ncell
                   ? (dc_bind){dc_slot_cell(e, at.index), 0}
                   : (dc_bind){DC_SLOT_DERIVED, e->derived[at.index - e->desc.ncell].offset};
    case DC_PLACE_RESULT:
        return x->is_prologue ? (dc_bind){DC_SLOT_DERIVED, e->derived[at.index].offset}
                              : (dc_bind){dc_slot_result(e, at.index), 0};
    case DC_PLACE_TEMP:
        return (dc_bind){DC_SLOT_ARENA, x->plan.temp[at.index].offset};
    }
    DC_BUG("place of kind %d", at.kind);
}

dc_where dc_pipeline_where(const dc_part *x, dc_place at)
{
    dc_where w = x->parent != NULL ? where_in_body(x, at) : (dc_where){.bind = bind_whole(x, at)};
    w.bind.offset += at.at;
    return w;
}

bool dc_pipeline_is_aligned(const dc_part *x, dc_place at)
{
    const dc_where w = dc_pipeline_where(x, at);
    const dc_exec_desc *d = &x->p->e->desc;
    const uint32_t free = w.bind.slot - DC_SLOT_FIRST;
    bool aligned = w.bind.offset % DC_PLAN_ALIGN == 0;
    if (w.bind.slot >= DC_SLOT_FIRST && free < d->nfree)
        aligned = aligned && !d->anywhere[free];
    for (uint32_t k = 0; k < x->loops; k++)
        aligned = aligned && w.step[k] % DC_PLAN_ALIGN == 0;
    return aligned;
}

static bool same_where(const dc_where *a, const dc_where *b)
{
    return a->bind.slot == b->bind.slot && a->bind.offset == b->bind.offset &&
           memcmp(a->step, b->step, sizeof a->step) == 0;
}

uint32_t dc_pipeline_starts(const dc_part *x, uint32_t group, dc_start *out)
{
    const dc_control *c = x->control[group];
    const dc_loop *l = &c->loop;
    const dc_node *n = control_node(x, group);
    uint32_t count = 0;
    if (!c->is_loop)
        return 0;
    for (int i = 0; i < l->ncarry + (dc_loop_may_end(l) ? l->ny : 0); i++) {
        const bool y = i >= l->ncarry;
        const int from = y ? dc_loop_y(l) + i - l->ncarry : dc_loop_carry(l) + i;
        const dc_type t = dc_node_type(x->fn, n->in[from]);
        const dc_start s = {.to = dc_pipeline_result(x, group, i),
                            .from = operand(x, group, from),
                            .bytes = dc_type_bytes(&t)};
        if ((y && c->pick[i] == 0) || s.bytes == 0 || same_where(&s.to, &s.from))
            continue;
        if (out != NULL)
            out[count] = s;
        count++;
    }
    return count;
}
