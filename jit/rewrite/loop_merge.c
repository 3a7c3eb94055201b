/*
 * Two loops to one: both bodies in one function, in which parameters of equal operands are one, and carries that begin
 * alike, as long as they go on alike (dc_loop_unify). They are merged if the carries of one are carries of the other;
 * of loops without carries, if they read an x in common. The new loop stands where the later one stood. What
 * depends on the earlier one comes after it, so the later one must not.
 */
#include "core/autodiff/custom.h"
#include "core/ir/exchange.h"
#include "jit/rewrite/loops_impl.h"

#include <string.h>

typedef struct merging {
    dc_job *j;
    const dc_func *f;
    const bool *live;
    int *alone; /* by loop: its carries when equal ones are one, + 1; 0: not known yet */
} merging;

static dc_loop loop_of(const merging *w, dc_ref r)
{
    return dc_loop_of(dc_node_at(w->f, r));
}

static bool is_among(const dc_ref *list, int n, dc_ref r)
{
    for (int i = 0; i < n; i++)
        if (list[i] == r)
            return true;
    return false;
}

/* Is every operand of the one list in the other? */
static bool is_part(const dc_ref *a, int na, const dc_ref *b, int nb)
{
    for (int i = 0; i < na; i++)
        if (!is_among(b, nb, a[i]))
            return false;
    return true;
}

static bool may_merge(const merging *w, dc_ref a, dc_ref b)
{
    const dc_loop la = loop_of(w, a), lb = loop_of(w, b);
    const dc_ref *ina = dc_node_at(w->f, a)->in, *inb = dc_node_at(w->f, b)->in;
    const dc_ref *ca = ina + dc_loop_carry(&la), *cb = inb + dc_loop_carry(&lb);
    if (la.n != lb.n || ((la.flags ^ lb.flags) & DC_LOOP_MEANING) != 0 ||
        ((la.flags & DC_LOOP_LIMIT) != 0 && ina[0] != inb[0]) ||
        ((la.flags & DC_LOOP_TEST) != 0 && ca[0] != cb[0]))
        return false;
    if (dc_exchange_is_ordered(w->f, dc_node_at(w->f, a)) ||
        dc_exchange_is_ordered(w->f, dc_node_at(w->f, b)))
        return false;
    if (la.ncarry > 0 && lb.ncarry > 0)
        return is_part(ca, la.ncarry, cb, lb.ncarry) || is_part(cb, lb.ncarry, ca, la.ncarry);
    if (la.ncarry > 0 || lb.ncarry > 0)
        return false;
    for (int i = 0; i < la.nx; i++)
        if (is_among(inb + dc_loop_x(&lb), lb.nx, ina[dc_loop_x(&la) + i]))
            return true;
    return false;
}

/* Does b depend on a? */
static bool *dependents(const merging *w, dc_ref a)
{
    bool *does = DC_NEW_ARRAY(&w->j->scratch, bool, w->f->node.n);
    does[a] = true;
    for (dc_ref r = a + 1; r < w->f->node.n; r++)
        for (int i = 0; i < dc_node_at(w->f, r)->nin; i++)
            does[r] = does[r] || does[dc_node_at(w->f, r)->in[i]];
    return does;
}

/* The nodes of an edit are not made; operands are those of w->f, which stays as it is. */
static void open_loop(const merging *w, dc_func *to, dc_ref r, dc_loopedit *out)
{
    const dc_node *n = dc_node_at(w->f, r);
    dc_loop_open(w->j, to, n, dc_body_at(w->f->module, n->attr[0]), n->in, out);
    dc_loop_mark_unused(out, 0, dc_loop_used(w->j, w->f, w->live, r), dc_control_results(w->f, n));
}

static void add_loop(const merging *w, dc_ref r, dc_loopedit *e)
{
    const dc_node *n = dc_node_at(w->f, r);
    const uint32_t first = e->nresult;
    dc_loop_add(e, n, dc_body_at(w->f->module, n->attr[0]), n->in);
    dc_loop_mark_unused(e, first, dc_loop_used(w->j, w->f, w->live, r),
                        dc_control_results(w->f, n));
}

/* dc_loop_unify looks at constants among the operands: the edit belongs to f meanwhile. */
static int carries_alone(merging *w, dc_ref r)
{
    if (w->alone[r] == 0) {
        dc_loopedit e;
        open_loop(w, (dc_func *)w->f, r, &e);
        dc_loop_drop_dead(&e);
        dc_loop_unify(&e);
        w->alone[r] = 1 + (int)e.carry.n;
        dc_loop_close(&e);
    }
    return w->alone[r] - 1;
}

/* Both loops in one edit; false: they differ. The flag of the second one's test has to be that of the first one's. */
static bool join(merging *w, dc_ref a, dc_ref b, dc_loopedit *e)
{
    const dc_loop la = loop_of(w, a);
    const bool test = (la.flags & DC_LOOP_TEST) != 0;
    open_loop(w, (dc_func *)w->f, a, e);
    add_loop(w, b, e);
    if (test) {
        dc_loop_result *all = DC_NEW_ARRAY(&w->j->scratch, dc_loop_result, e->nresult + 1);
        memcpy(all, e->result, e->nresult * sizeof *all);
        all[e->nresult++] = (dc_loop_result){DC_LOOP_CARRIED, (uint32_t)la.ncarry, 0};
        e->result = all;
    }
    dc_loop_drop_dead(e);
    dc_loop_unify(e);
    const int na = carries_alone(w, a), nb = carries_alone(w, b);
    bool good =
        (int)e->carry.n <= (na > nb ? na : nb) && dc_loop_operand_count(e) <= DC_MAX_OPERANDS;
    if (test) {
        const dc_loop_result *flag = &e->result[--e->nresult];
        good = good && flag->kind == DC_LOOP_CARRIED && flag->at == 0;
    }
    if (!good)
        dc_loop_close(e);
    return good;
}

/* ---- the function with one loop less --------------------------------------------------------- */

static void to_new(dc_loop_slot *slot, uint32_t n, const dc_ref *map)
{
    for (uint32_t i = 0; i < n; i++)
        slot[i].in = map[slot[i].in];
}

static void emit_joined(dc_loopedit *e, dc_func *to, const dc_ref *map, dc_ref *out)
{
    e->f = to;
    e->limit = e->limit != 0 ? map[e->limit] : 0;
    to_new(e->constant.at, e->constant.n, map);
    to_new(e->carry.at, e->carry.n, map);
    to_new(e->x.at, e->x.n, map);
    for (uint32_t i = 0; i < e->y.n; i++)
        e->y.at[i].kept = e->y.at[i].kept != 0 ? map[e->y.at[i].kept] : 0;
    for (uint32_t i = 0; i < e->nresult; i++)
        if (e->result[i].kind == DC_LOOP_VALUE)
            e->result[i].value = map[e->result[i].value];
    dc_loop_emit(e, out);
}

static void copy_node(const merging *w, dc_func *to, dc_ref r, dc_ref *map)
{
    const dc_node *n = dc_node_at(w->f, r);
    dc_ref in[DC_MAX_OPERANDS];
    for (int i = 0; i < n->nin; i++)
        in[i] = map[n->in[i]];
    map[r] = dc_graph_again(to, w->f, r, in);
}

/* First what does not depend on a, up to b, then the loop, then the rest. */
static dc_func *rebuild(const merging *w, dc_ref a, dc_ref b, const bool *depends, dc_loopedit *e)
{
    const dc_func *f = w->f;
    const dc_type nothing = dc_node_type(f, a);
    dc_func *to = dc_func_new(f->module, f->name);
    dc_ref *map = DC_NEW_ARRAY(&w->j->scratch, dc_ref, f->node.n);
    dc_ref *out = DC_NEW_ARRAY(&w->j->scratch, dc_ref, e->nresult);
    const int first = dc_control_results(f, dc_node_at(f, a)); /* of b */
    dc_graph_params(to, f, map);
    for (dc_ref r = 1; r < b; r++)
        if (w->live[r] && !depends[r] && map[r] == 0)
            copy_node(w, to, r, map);
    dc_loop_from(to, f, b);
    emit_joined(e, to, map, out);
    to->where = to->path = NULL;
    map[a] = map[b] = dc_graph_const(to, &nothing, 0);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (!w->live[r] || map[r] != 0)
            continue;
        if (n->op == DC_OP_PICK && (n->in[0] == a || n->in[0] == b)) {
            map[r] = out[n->attr[0] + (n->in[0] == b ? first : 0)];
            dc_func_copy_origin(to, map[r], f, r);
        } else {
            copy_node(w, to, r, map);
        }
    }
    for (uint32_t i = 0; i < f->result.n; i++)
        DC_PUSH(to->result, map[f->result.at[i]]);
    return to;
}

static dc_func *merge_pair(dc_job *j, const dc_func *f)
{
    merging w = {.j = j, .f = f, .live = dc_func_live(f, &j->scratch)};
    w.alone = DC_NEW_ARRAY(&j->scratch, int, f->node.n);
    for (dc_ref a = 1; a < f->node.n; a++) {
        const bool *depends = NULL;
        if (!w.live[a] || dc_node_at(f, a)->op != DC_OP_LOOP)
            continue;
        for (dc_ref b = a + 1; b < f->node.n; b++) {
            dc_loopedit e;
            if (!w.live[b] || dc_node_at(f, b)->op != DC_OP_LOOP || !may_merge(&w, a, b))
                continue;
            depends = depends != NULL ? depends : dependents(&w, a);
            if (depends[b] || !join(&w, a, b, &e))
                continue;
            dc_func *to = rebuild(&w, a, b, depends, &e);
            dc_loop_close(&e);
            return to;
        }
    }
    return NULL;
}

dc_func *dc_loop_merge(dc_job *j, const dc_func *f)
{
    dc_func *made = NULL;
    for (;;) {
        dc_func *next = merge_pair(j, made != NULL ? made : f);
        if (next == NULL)
            return made;
        if (made != NULL)
            dc_func_drop(made);
        made = next;
    }
}
