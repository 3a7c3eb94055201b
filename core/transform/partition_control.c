/*
 * Loops and branches in parts. A body is partitioned as a function is, for parameters that lie as its operands do. The
 * carries of a loop have one sharding throughout: that of their first values, or one with more splits where an iteration
 * leaves it so; this is repeated until nothing changes. The places of the rank are constants of the loop, and operands of a
 * branch.
 *
 * Terms of sums are added up before they go into a loop. They stay terms, to be added up once behind it, where they are made
 * in it: in a carry that begins as 0 and to which each iteration adds some, as gradients of several batches do, and in ys.
 * So they do behind a branch of which each side leaves such terms or 0.
 */
#include "core/transform/partition_impl.h"

#include <string.h>

enum { ROUNDS = 8 }; /* until carries are left as they are */

static dc_sharding without_first(const dc_sharding *s)
{
    dc_sharding to = {0};
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        to.dim[a] = s->dim[a] > 0 ? (uint8_t)(s->dim[a] - 1) : 0;
    to.partial = s->partial;
    return to;
}

static dc_sharding with_first(const dc_sharding *s)
{
    dc_sharding to = {0};
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        to.dim[a] = s->dim[a] > 0 ? (uint8_t)(s->dim[a] + 1) : 0;
    to.partial = s->partial;
    return to;
}

static dc_sharding first_whole(const dc_sharding *s)
{
    dc_sharding to = *s;
    for (uint32_t a = 0; a < DC_MESH_AXES; a++)
        to.dim[a] = to.dim[a] == 1 ? 0 : to.dim[a];
    return to;
}

typedef struct looping {
    dc_partitioner *p;
    dc_ref r;
    const dc_node *n;
    dc_loop l;
    const dc_func *body;
    dc_sharding *operand, *param; /* of the loop; of the body */
    dc_shard_facts facts;
    bool *summed; /* by carry: terms of it do not last */
} looping;

/* Operands of the loop by the parameter of the body that they are; 0 the number of the element, which is none. */
static int operand_of_param(const looping *w, int param)
{
    return param - 1 + dc_loop_const(&w->l);
}

static void start(looping *w)
{
    const dc_loop *l = &w->l;
    for (int i = 0; i < w->n->nin; i++)
        w->operand[i] = dc_shard_summed(w->p, w->n->in[i]);
    for (int i = dc_loop_x(l); i < w->n->nin;
         i++) /* of xs and ys the axis of the elements is whole */
        w->operand[i] = first_whole(&w->operand[i]);
    if (l->flags & DC_LOOP_LIMIT)
        w->operand[0] = (dc_sharding){0};
}

static void set_params(looping *w)
{
    const dc_loop *l = &w->l;
    for (int i = 1; i < (int)w->body->param.n; i++) {
        const int operand = operand_of_param(w, i);
        w->param[i] =
            operand >= dc_loop_x(l) ? without_first(&w->operand[operand]) : w->operand[operand];
    }
}

/* Carries that an iteration leaves in more parts begin so. False: all are left as they began. */
static bool grow_carries(looping *w)
{
    bool changed = false;
    const int first = dc_loop_carry(&w->l);
    for (int i = 0; i < w->l.ncarry; i++) {
        dc_sharding *s = &w->operand[first + i];
        for (uint32_t a = 0; a < w->p->mesh->naxis && s->partial == 0; a++) {
            dc_sharding more = *s;
            more.dim[a] = w->facts.result[i].dim[a];
            if (s->dim[a] != 0 || more.dim[a] == 0 ||
                !dc_shard_fits(w->p, w->n->in[first + i], &more))
                continue;
            *s = more;
            changed = true;
        }
    }
    return changed;
}

/* Carries that begin as 0 are terms where an iteration adds some, and leaves them as they were. */
static bool keep_terms(looping *w)
{
    bool changed = false;
    const int first = dc_loop_carry(&w->l);
    for (int i = 0; i < w->l.ncarry; i++) {
        const dc_sharding *t = &w->facts.terms[i];
        const dc_ref begin = w->n->in[first + i];
        dc_sharding *s = &w->operand[first + i];
        if (s->partial != 0 && !dc_sharding_same(s, t)) {
            s->partial = 0;
            w->summed[i] = changed = true;
        } else if (s->partial == 0 && t->partial != 0 && !w->summed[i] &&
                   dc_shard_is_zero(w->p, begin) && dc_shard_fits(w->p, begin, t)) {
            *s = *t;
            changed = true;
        }
    }
    return changed;
}

static void sum_carries(looping *w)
{
    for (int i = 0; i < w->l.ncarry; i++)
        w->operand[dc_loop_carry(&w->l) + i].partial = 0;
    set_params(w);
}

/* Constants that every iteration would exchange are exchanged before the loop. */
static bool ask_constants(looping *w)
{
    bool changed = false;
    for (int i = 1; i <= w->l.nconst; i++) {
        dc_sharding *s = &w->operand[operand_of_param(w, i)];
        if (dc_sharding_same(s, &w->facts.asked[i]))
            continue;
        *s = w->facts.asked[i];
        changed = true;
    }
    return changed;
}

/* The same for a body that was made with them: what it leaves. */
static void want_results(looping *w, dc_sharding *wanted, bool terms)
{
    const dc_loop *l = &w->l;
    for (int i = 0; i < l->ncarry; i++)
        wanted[i] = w->operand[dc_loop_carry(l) + i];
    for (int i = l->ncarry; i < l->ncarry + l->ny; i++) {
        const bool left = dc_loop_may_end(l); /* then some elements stand there already */
        const dc_ref y = left ? w->n->in[dc_loop_y(l) + i - l->ncarry] : 0;
        const bool stay =
            terms && w->facts.terms[i].partial != 0 && (!left || dc_shard_is_zero(w->p, y));
        wanted[i] = stay ? w->facts.terms[i] : w->facts.result[i];
    }
}

static void make_loop(looping *w, const dc_func *body, const dc_sharding *wanted)
{
    dc_partitioner *p = w->p;
    dc_loop l = w->l;
    const uint32_t places = p->mesh->naxis;
    dc_ref *in = DC_NEW_ARRAY(&p->j->scratch, dc_ref, (uint32_t)w->n->nin + places);
    int n = 0;
    for (int i = 0; i < w->n->nin; i++) {
        if (i == dc_loop_carry(&w->l))
            for (uint32_t a = 0; a < places; a++)
                in[n++] = p->index[a];
        dc_sharding s = w->operand[i];
        if (i >= dc_loop_y(&w->l))
            s = with_first(&wanted[w->l.ncarry + i - dc_loop_y(&w->l)]);
        in[n++] = dc_shard_as(p, w->n->in[i], &s);
    }
    if (dc_loop_carry(&w->l) == w->n->nin)
        for (uint32_t a = 0; a < places; a++)
            in[n++] = p->index[a];
    l.nconst += (int)places;
    l.body = dc_body_add(p->to->module, body);
    const dc_ref loop = dc_graph_loop(p->to, &l, in);
    for (int i = 0; i < l.ncarry + l.ny; i++) {
        p->many[w->r][i] = i < l.ncarry ? wanted[i] : with_first(&wanted[i]);
        p->many_at[w->r][i] = dc_graph_pick(p->to, loop, i);
    }
}

static void room_for_results(dc_partitioner *p, dc_ref r, int n)
{
    p->many[r] = DC_NEW_ARRAY(&p->j->scratch, dc_sharding, (uint32_t)n);
    p->many_at[r] = DC_NEW_ARRAY(&p->j->scratch, dc_ref, (uint32_t)n);
}

static dc_shard_facts room_for_facts(dc_arena *a, const dc_func *body)
{
    return (dc_shard_facts){.result = DC_NEW_ARRAY(a, dc_sharding, body->result.n + 1),
                            .asked = DC_NEW_ARRAY(a, dc_sharding, body->param.n + 1),
                            .terms = DC_NEW_ARRAY(a, dc_sharding, body->result.n + 1)};
}

static dc_status partition_loop(dc_partitioner *p, dc_ref r)
{
    dc_arena *a = &p->j->scratch;
    const dc_node *n = dc_shard_node(p, r);
    looping w = {.p = p, .r = r, .n = n, .l = dc_loop_of(n)};
    dc_func *body;
    w.body = dc_body_at(p->from->module, w.l.body);
    w.operand = DC_NEW_ARRAY(a, dc_sharding, (uint32_t)n->nin);
    w.param = DC_NEW_ARRAY(a, dc_sharding, w.body->param.n);
    w.facts = room_for_facts(a, w.body);
    w.summed = DC_NEW_ARRAY(a, bool, (uint32_t)w.l.ncarry + 1);
    dc_sharding *wanted = DC_NEW_ARRAY(a, dc_sharding, w.body->result.n);
    room_for_results(p, r, w.l.ncarry + w.l.ny);
    start(&w);
    bool changed = true;
    for (int round = 0; round < ROUNDS && changed; round++) {
        set_params(&w);
        DC_TRY(dc_shard_body(p, w.body, w.param, &w.facts));
        changed = ask_constants(&w);
        changed |= grow_carries(&w);
        changed |= keep_terms(&w);
    }
    set_params(&w);
    want_results(&w, wanted, !changed);
    DC_TRY(dc_shard_make_body(p, w.body, w.param, wanted, &body));
    if (body == NULL) {
        sum_carries(&w);
        want_results(&w, wanted, false);
        DC_TRY(dc_shard_make_body(p, w.body, w.param, wanted, &body));
    }
    make_loop(&w, body, wanted);
    dc_func_drop(body);
    return DC_OK;
}

/* ---- branches ------------------------------------------------------------------------------------ */

typedef struct branching {
    dc_partitioner *p;
    const dc_func *side[2];
    dc_sharding *param, *result; /* of both sides */
    uint32_t nresult;
} branching;

/* How results lie: as the first side makes them; in terms where one side leaves them so, and the other one alike or 0. */
static dc_status want_sides(branching *w)
{
    dc_arena *a = &w->p->j->scratch;
    dc_shard_facts facts[2];
    for (int k = 0; k < 2; k++) {
        facts[k] = room_for_facts(a, w->side[k]);
        DC_TRY(dc_shard_body(w->p, w->side[k], w->param, &facts[k]));
    }
    for (uint32_t i = 0; i < w->nresult; i++) {
        const dc_sharding *x = &facts[0].terms[i], *y = &facts[1].terms[i];
        const dc_func *f = w->side[0], *g = w->side[1];
        const bool zero = dc_is_const(f, f->result.at[i], 0),
                   nought = dc_is_const(g, g->result.at[i], 0);
        w->result[i] = facts[0].result[i];
        if (x->partial != 0 && (dc_sharding_same(x, y) || nought))
            w->result[i] = *x;
        else if (y->partial != 0 && zero)
            w->result[i] = *y;
    }
    return DC_OK;
}

/* False: some terms are not to be had so. */
static dc_status make_sides(branching *w, uint32_t body[2], bool *made)
{
    *made = true;
    for (int k = 0; k < 2 && *made; k++) {
        dc_func *f;
        DC_TRY(dc_shard_make_body(w->p, w->side[k], w->param, w->result, &f));
        *made = f != NULL;
        if (f == NULL)
            continue;
        body[k] = dc_body_add(w->p->to->module, f);
        dc_func_drop(f);
    }
    return DC_OK;
}

static dc_status partition_branch(dc_partitioner *p, dc_ref r)
{
    dc_arena *a = &p->j->scratch;
    const dc_node *n = dc_shard_node(p, r);
    const uint32_t places = p->mesh->naxis;
    branching w = {
        .p = p,
        .side = {dc_body_at(p->from->module, n->attr[0]), dc_body_at(p->from->module, n->attr[1])}};
    w.nresult = w.side[0]->result.n;
    w.param = DC_NEW_ARRAY(a, dc_sharding, (uint32_t)n->nin);
    w.result = DC_NEW_ARRAY(a, dc_sharding, w.nresult);
    dc_ref *in = DC_NEW_ARRAY(a, dc_ref, (uint32_t)n->nin + places);
    uint32_t body[2];
    bool made;
    in[0] = dc_shard_whole(p, n->in[0]);
    for (int i = 1; i < n->nin; i++) {
        w.param[i - 1] = dc_shard_summed(p, n->in[i]);
        in[i] = dc_shard_as(p, n->in[i], &w.param[i - 1]);
    }
    for (uint32_t k = 0; k < places; k++)
        in[(uint32_t)n->nin + k] = p->index[k];
    DC_TRY(want_sides(&w));
    DC_TRY(make_sides(&w, body, &made));
    if (!made) {
        for (uint32_t i = 0; i < w.nresult; i++)
            w.result[i].partial = 0;
        DC_TRY(make_sides(&w, body, &made));
    }
    room_for_results(p, r, (int)w.nresult);
    const dc_ref branch = dc_graph_branch(p->to, body[0], body[1], in, n->nin + (int)places);
    for (uint32_t i = 0; i < w.nresult; i++) {
        p->many[r][i] = w.result[i];
        p->many_at[r][i] = dc_graph_pick(p->to, branch, (int)i);
    }
    return DC_OK;
}

dc_status dc_shard_control(dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    if (n->op == DC_OP_PICK) {
        dc_shard_add(p, r, &p->many[n->in[0]][n->attr[0]], p->many_at[n->in[0]][n->attr[0]]);
        return DC_OK;
    }
    DC_TRY(n->op == DC_OP_LOOP ? partition_loop(p, r) : partition_branch(p, r));
    const dc_sharding whole = {0};
    dc_shard_add(p, r, &whole, 0);
    return DC_OK;
}
