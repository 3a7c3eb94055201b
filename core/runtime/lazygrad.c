/*
 * Gradients of lazy expressions: the recipe of loss is written as a function, core/autodiff/grad.c adds the
 * gradients to it, and what was added becomes lazy nodes over those that are there.
 */
#include "core/autodiff/grad.h"
#include "core/ir/selected.h"
#include "core/runtime/lazy.h"

#include <string.h>

typedef struct task {
    dc_rt *rt;
    dc_job *j;
    dc_lazy_walk walk;
    dc_func *f;
    dc_ref *ref;    /* by number */
    dc_lazy **node; /* by ref; grows with f */
    dc_lazy_wrt *wrt;
    int n;
    dc_ref *at, *grad;      /* of each wrt, 0 none */
    DC_VEC(dc_ref) message; /* what was sent and received for them, in order */
} task;

/* ---- what is asked for ----------------------------------------------------------------------- */

static const dc_lazy *find_cell(const task *t, const dc_cell *c)
{
    const dc_lazy *last = NULL;
    for (uint32_t i = 0; i < t->walk.leaf.n; i++) {
        const dc_lazy *n = t->walk.leaf.at[i];
        if (n->cell == c->id && (last == NULL || n->serial > last->serial))
            last = n;
    }
    return last;
}

/* The node of loss's recipe that stands for it, or NULL. */
static const dc_lazy *find_start(const task *t, const dc_lazy_wrt *w)
{
    if (w->cell != NULL)
        return find_cell(t, w->cell);
    if (w->node == NULL)
        return NULL;
    const dc_lazy *n = dc_lazy_walk_real(&t->walk, w->node);
    return n->epoch == t->walk.epoch ? n : NULL;
}

static bool holds(const dc_lazy_sources *all, const dc_lazy_sources *some)
{
    return (some->bit[0] & ~all->bit[0]) == 0 && (some->bit[1] & ~all->bit[1]) == 0;
}

/* Was a leaf computed from it, as far as can be told? What reads a parameter is never dropped. */
static bool is_behind(const task *t, const dc_lazy_wrt *w)
{
    if (w->cell != NULL && w->cell->trainable)
        return false;
    if (w->cell == NULL && w->node == NULL)
        return false;
    const dc_lazy *n = w->node != NULL ? dc_lazy_walk_real(&t->walk, w->node) : NULL;
    const dc_lazy_sources from = n != NULL ? n->from : dc_lazy_source(1, w->cell->id);
    const uint64_t serial = n != NULL ? n->serial : 0;
    for (uint32_t i = 0; i < t->walk.leaf.n; i++) {
        const dc_lazy *leaf = t->walk.leaf.at[i];
        if (leaf->dropped && leaf->serial > serial && holds(&leaf->from, &from))
            return true;
    }
    return false;
}

static bool reads_call(const task *t)
{
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        if (t->walk.leaf.at[i]->call)
            return true;
    return false;
}

static dc_status locate(task *t, bool zero)
{
    for (int i = 0; i < t->n; i++) {
        dc_lazy_wrt *w = &t->wrt[i];
        const dc_lazy *n = find_start(t, w);
        const dc_fact fact = {.op = "grad", .word = {w->name}, .operand = i + 1};
        if (is_behind(t, w))
            return dc_fail(t->j, DC_ERR_GRAD_DROPPED, &fact);
        if (n == NULL && reads_call(t))
            return dc_fail(t->j, DC_ERR_GRAD_CALL, &fact);
        if (n == NULL && !zero)
            return dc_fail(t->j, DC_ERR_GRAD_UNUSED, &fact);
        t->at[i] = n != NULL ? t->ref[n->number] : 0;
        if (n != NULL)
            memcpy(w->type.dim, n->type.dim, sizeof w->type.dim); /* of a state that grows: then */
    }
    return DC_OK;
}

/* ---- taking them ----------------------------------------------------------------------------- */

static dc_status differentiate(task *t, dc_ref loss)
{
    dc_ref *wrt = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->n + 1);
    dc_ref *grad = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->n + 1);
    int m = 0;
    for (int i = 0; i < t->n; i++)
        if (t->at[i] != 0)
            wrt[m++] = t->at[i];
    const dc_type f32 = dc_type_scalar(DC_F32);
    const uint32_t before = t->f->node.n;
    bool any = false;
    for (dc_ref r = 1; r < before; r++)
        any = any || dc_op_is_message((dc_op)t->f->node.at[r].op);
    t->f->token = any ? dc_graph_const(t->f, &f32, 0) : 0;
    DC_TRY(dc_grad(t->j, t->f, loss, wrt, m, grad));
    for (dc_ref r = before; r < t->f->node.n; r++)
        if (dc_op_is((dc_op)t->f->node.at[r].op, DC_CLASS_COM) &&
            t->f->node.at[r].op != DC_OP_ARRIVED)
            DC_PUSH_IN(&t->j->scratch, t->message, r);
    m = 0;
    for (int i = 0; i < t->n; i++)
        t->grad[i] = t->at[i] != 0 ? grad[m++] : 0;
    for (int i = 0; i < t->n; i++)
        if (t->grad[i] == 0) {
            const dc_type parts = dc_type_parts(&t->wrt[i].type);
            t->grad[i] = dc_graph_const(t->f, &parts, 0);
        }
    return DC_OK;
}

/* ---- as lazy nodes --------------------------------------------------------------------------- */

static void add_node(task *t, dc_ref r, const char *where, const char *path)
{
    const dc_node *g = dc_node_at(t->f, r);
    const dc_origin *from = g->origin != 0 ? &t->f->origins.at[g->origin] : NULL;
    dc_lazy_room(t->rt);
    dc_lazy *n = t->node[r] = dc_lazy_keep(t->rt, dc_lazy_node(t->rt, t->f, r, t->node));
    n->where = from != NULL ? dc_name_intern_text(t->rt->names, from->where) : where;
    n->path = from != NULL ? dc_name_intern_text(t->rt->names, from->path) : path;
}

/*
 * What gradients compare a value with, as x == max(x): computed with the value once more, by the same program. The one that
 * is there may be known already, by another program, which rounded the value differently.
 */
static bool *find_again(const task *t, uint32_t first)
{
    bool *again = DC_NEW_ARRAY(&t->j->scratch, bool, t->f->node.n);
    bool *leads = DC_NEW_ARRAY(&t->j->scratch, bool, t->f->node.n);
    dc_selected s = dc_selected_in(t->f, &t->j->scratch);
    for (dc_ref r = first; r < t->f->node.n; r++) {
        const dc_ref x = dc_selected_by(&s, r);
        for (dc_ref q = x; x != 0 && q < r; q++) {
            const dc_node *n = dc_node_at(t->f, q);
            leads[q] = q == x;
            for (int i = 0; i < n->nin && !leads[q] && dc_selected_saw(&s, q); i++)
                leads[q] = n->in[i] >= x && leads[n->in[i]];
            again[q] |= leads[q] && q != x;
        }
    }
    return again;
}

static void add_nodes(task *t, uint32_t first, const char *where, const char *path)
{
    bool *live = DC_NEW_ARRAY(&t->j->scratch, bool, t->f->node.n);
    const bool *again = find_again(t, first);
    for (int i = 0; i < t->n; i++)
        live[t->grad[i]] = true;
    for (uint32_t i = 0; i < t->message.n; i++)
        live[t->message.at[i]] = true;
    t->node = DC_NEW_ARRAY(&t->j->scratch, dc_lazy *, t->f->node.n);
    for (uint32_t i = t->walk.order.n; i-- > 0;) { /* of equal nodes the first */
        dc_lazy *n = t->walk.order.at[i];
        if (!again[t->ref[n->number]])
            t->node[t->ref[n->number]] = n;
    }
    for (dc_ref r = t->f->node.n; r-- > 1;)
        for (int i = 0; live[r] && t->node[r] == NULL && i < t->f->node.at[r].nin; i++)
            live[t->f->node.at[r].in[i]] = true;
    for (dc_ref r = 1; r < t->f->node.n; r++)
        if (live[r] && t->node[r] == NULL)
            add_node(t, r, where, path);
}

static dc_status make_gradients(task *t, dc_lazy *loss, bool zero, const char *where,
                                const char *path, dc_lazy **out, dc_lazy **message)
{
    dc_module *m = dc_module_new();
    uint32_t nexchange;
    dc_module_defer(t->j, m); /* freed with the entry */
    m->written = true;
    dc_lazy_walk_begin(&t->walk, t->rt, t->j, true);
    dc_lazy_walk_add(&t->walk, loss);
    dc_lazy **exchange = dc_lazy_walk_exchanges(&t->walk, &nexchange);
    if (nexchange > 0)
        dc_lazy_walk_begin(&t->walk, t->rt, t->j, true);
    for (uint32_t i = 0; i < nexchange; i++)
        dc_lazy_walk_add(&t->walk, exchange[i]);
    dc_lazy_walk_add(&t->walk, loss);
    t->walk.apart = t->wrt;
    t->walk.napart = t->n;
    t->ref = dc_lazy_walk_write(&t->walk, m, &t->f);
    t->at = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->n + 1);
    t->grad = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->n + 1);
    DC_TRY(locate(t, zero));
    const uint32_t first = t->f->node.n;
    DC_TRY(differentiate(t, t->ref[dc_lazy_walk_real(&t->walk, loss)->number]));
    dc_lazy_begin(t->rt, t->j); /* owns what is made from here on */
    add_nodes(t, first, where, path);
    const int nmessage = (int)t->message.n, n = t->n + nmessage;
    dc_lazy **member = DC_NEW_ARRAY(&t->j->scratch, dc_lazy *, n + 1);
    for (int i = 0; i < t->n; i++)
        member[i] = dc_lazy_name(t->rt, t->node[t->grad[i]], &t->wrt[i].type, where, path);
    for (int i = 0; i < nmessage; i++) /* computed with them: once */
        member[t->n + i] = t->node[t->message.at[i]];
    member[n] = loss; /* one without a parameter would lose its recipe */
    dc_lazy_group(t->rt, member, n + loss->param);
    dc_lazy **kept = DC_NEW_ARRAY(&t->j->scratch, dc_lazy *, t->n + 1);
    for (int i = 0; i < t->n; i++)
        kept[i] = member[i];
    if (nmessage > 0)
        kept[t->n] = member[n - 1];
    dc_lazy_finish(t->rt, t->j, kept, t->n + (nmessage > 0));
    for (int i = 0; i < t->n; i++)
        out[i] = kept[i];
    *message = nmessage > 0 ? kept[t->n] : NULL;
    return DC_OK;
}

dc_status dc_lazy_grad(dc_rt *rt, dc_job *j, dc_lazy *loss, dc_lazy_wrt *wrt, int n, bool zero,
                       const char *where, const char *path, dc_lazy **out, dc_lazy **message)
{
    task t = {.rt = rt, .j = j, .wrt = wrt, .n = n};
    return make_gradients(&t, loss, zero, where, path, out, message);
}
