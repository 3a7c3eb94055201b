/*
 * Walks over lazy expressions: what lies below some nodes, listed with operands before users, and
 * the same as a function of core/.
 *
 * The order depends on the structure alone. Leaves that show one value are one leaf, so which of them
 * are the same is part of the structure.
 */
#include "core/autodiff/custom.h"
#include "core/ir/exchange.h"
#include "core/runtime/lazy.h"

#include <stdlib.h>

/* Does it give what it is made of another name only? Or say that it is complex (core/build/complex.h)? */
static bool is_alias(const dc_lazy *n)
{
    if (n->kind != DC_LAZY_OP || n->op != DC_OP_RESHAPE)
        return false;
    const dc_type a = dc_type_parts(&n->type), b = dc_type_parts(&n->in[0]->type);
    return dc_type_same(&a, &b);
}

dc_lazy *dc_lazy_real(dc_lazy *n)
{
    dc_lazy *first = NULL;
    for (;;) {
        if (n->value != NULL)
            return n;
        if (n->kind == DC_LAZY_PICK) {
            first = first != NULL ? first : n;
            n = n->in[0]->in[n->index];
        } else if (is_alias(n)) {
            n = n->in[0];
        } else {
            return first != NULL ? first : n;
        }
    }
}

/* The same for a walk over recipes, which looks through values. */
static dc_lazy *recipe_of(dc_lazy *n)
{
    for (;;) {
        if (n->kind == DC_LAZY_PICK)
            n = n->in[0]->in[n->index];
        else if (is_alias(n))
            n = n->in[0];
        else
            return n;
    }
}

dc_lazy *dc_lazy_walk_real(const dc_lazy_walk *w, dc_lazy *n)
{
    return w->recipes ? recipe_of(n) : dc_lazy_real(n);
}

bool dc_lazy_walk_leaf(const dc_lazy_walk *w, const dc_lazy *n)
{
    return n->kind != DC_LAZY_OP || ((n->value != NULL || n->part) && !w->recipes);
}

bool dc_lazy_walk_pending(const dc_lazy_walk *w, const dc_lazy *n)
{
    return n->epoch == w->epoch && !dc_lazy_walk_leaf(w, n);
}

/* ---- listing --------------------------------------------------------------------------------- */

static void grow_buckets(dc_lazy_walk *t)
{
    const uint32_t n = t->nbucket ? t->nbucket * 2 : 32;
    t->bucket = DC_NEW_ARRAY(&t->j->scratch, uint32_t, n);
    t->nbucket = n;
    for (uint32_t k = 0; k < t->leaf.n; k++) {
        if (t->view.at[k].of == NULL)
            continue;
        uint32_t i = (uint32_t)dc_hash_mix(0, (uintptr_t)t->view.at[k].of->store);
        while (t->bucket[i & (n - 1)] != 0)
            i++;
        t->bucket[i & (n - 1)] = k + 1;
    }
}

static bool same_memory(const dc_lazy_view *a, const dc_lazy_view *b)
{
    return a->of->store == b->of->store && a->of->offset == b->of->offset &&
           dc_view_same(&a->at, &b->at);
}

/* A value that is a leaf already, or NULL and its place. */
static dc_lazy *find_leaf(dc_lazy_walk *t, const dc_lazy *n, const dc_lazy_view *v, uint32_t *place)
{
    if (t->leaf.n * 2 >= t->nbucket)
        grow_buckets(t);
    uint32_t i = (uint32_t)dc_hash_mix(0, (uintptr_t)v->of->store);
    for (;; i++) {
        *place = i & (t->nbucket - 1);
        const uint32_t k = t->bucket[*place];
        if (k == 0)
            return NULL;
        dc_lazy *other = t->leaf.at[k - 1];
        if (same_memory(&t->view.at[k - 1], v) && other->cell == n->cell &&
            dc_type_same(&other->type, &n->type))
            return other;
    }
}

static void add_leaf(dc_lazy_walk *t, dc_lazy *n, const dc_lazy_view *v)
{
    uint32_t place = 0;
    dc_lazy *same = v->of != NULL ? find_leaf(t, n, v, &place) : NULL;
    if (same != NULL) {
        n->number = same->number;
        return;
    }
    DC_PUSH_IN(&t->j->scratch, t->order, n);
    DC_PUSH_IN(&t->j->scratch, t->leaf, n);
    DC_PUSH_IN(&t->j->scratch, t->view, *v);
    n->number = t->order.n;
    if (v->of != NULL)
        t->bucket[place] = t->leaf.n;
}

/* Leaves are listed at once, operations are left on the stack until their operands are listed. */
static bool visit(dc_lazy_walk *t, dc_lazy *n)
{
    dc_lazy_view v = {0};
    if (n->epoch == t->epoch)
        return false;
    n->epoch = t->epoch;
    n->inside = 0;
    n->number = 0;
    n->part = dc_lazy_view_of(n, &v) && v.at.cut && n->value == NULL &&
              (t->rt->device->ops->host || dc_lazy_has_window(&v));
    if (!dc_lazy_walk_leaf(t, n))
        return true;
    add_leaf(t, n, &v);
    return false;
}

void dc_lazy_walk_begin(dc_lazy_walk *t, dc_rt *rt, dc_job *j, bool recipes)
{
    *t = (dc_lazy_walk){.rt = rt, .j = j, .recipes = recipes, .epoch = ++dc_lazy_of(rt)->epoch};
}

static void push(dc_lazy_walk *t, dc_lazy *n)
{
    if (n->kind == DC_LAZY_PICK && n->value == NULL)
        t->group = n->in[0];
    else if (visit(t, n))
        DC_PUSH_IN(&t->j->scratch, t->stack, n);
}

void dc_lazy_walk_add(dc_lazy_walk *t, dc_lazy *root)
{
    push(t, dc_lazy_walk_real(t, root));
    while (t->stack.n > 0 && t->group == NULL) {
        dc_lazy *n = t->stack.at[t->stack.n - 1];
        if (n->number < n->nin) { /* so many operands are listed */
            dc_lazy *in = dc_lazy_walk_real(t, n->in[n->number++]);
            push(t, in);
            in->inside++;
        } else {
            DC_PUSH_IN(&t->j->scratch, t->order, n);
            n->number = t->order.n;
            t->stack.n--;
        }
    }
}

static int by_serial(const void *x, const void *y)
{
    const dc_lazy *a = *(dc_lazy *const *)x, *b = *(dc_lazy *const *)y;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

dc_lazy **dc_lazy_walk_exchanges(const dc_lazy_walk *t, uint32_t *n)
{
    DC_VEC(dc_lazy *) list = {0};
    bool apart = false; /* from the order of making */
    *n = 0;
    if (t->rt->first->mesh == NULL)
        return NULL;
    for (uint32_t i = 0; i < t->order.n; i++) {
        dc_lazy *x = t->order.at[i];
        if (dc_lazy_walk_leaf(t, x) || !dc_op_is((dc_op)x->op, DC_CLASS_COM))
            continue;
        apart = apart || (list.n > 0 && list.at[list.n - 1]->serial > x->serial);
        DC_PUSH_IN(&t->j->scratch, list, x);
    }
    if (!apart)
        return NULL;
    qsort(list.at, list.n, sizeof *list.at, by_serial);
    *n = list.n;
    return list.at;
}

/* ---- as a function --------------------------------------------------------------------------- */

/* Where those of the function have numbers, it gets its own. */
static bool number_exchange(const dc_func *f, const dc_lazy *n, int64_t attr[DC_EXCHANGE_ATTRS])
{
    if (!f->module->written || !dc_op_is((dc_op)n->op, DC_CLASS_COM) || n->nattr == 0)
        return false;
    dc_exchange_attr x = dc_exchange_read(n->attr);
    x.number = dc_exchange_next(f, (dc_op)n->op, x.group.mask);
    return dc_exchange_write(&x, attr) == n->nattr;
}

static void write_node(const dc_lazy_walk *t, dc_func *f, const dc_lazy *n, dc_ref *ref)
{
    const dc_type bare = dc_type_make((dc_dtype)n->type.dtype, n->type.rank, n->type.dim);
    const dc_type type = dc_type_parts(&bare);
    const uint32_t leaf = f->param.n;
    if (dc_lazy_walk_leaf(t, n)) {
        const bool window = t->window != NULL && t->window[leaf];
        ref[n->number] =
            window ? dc_lazy_window_write(f, &t->view.at[leaf]) : dc_graph_param(f, &type, NULL);
        return;
    }
    const dc_mark mark = dc_arena_mark(&t->j->scratch);
    dc_ref *in = DC_NEW_ARRAY(&t->j->scratch, dc_ref, n->nin);
    for (uint32_t i = 0; i < n->nin; i++)
        in[i] = ref[dc_lazy_walk_real(t, n->in[i])->number];
    dc_func_from(f, n->where, n->path);
    int64_t own[DC_EXCHANGE_ATTRS];
    const int64_t *attr = number_exchange(f, n, own) ? own : n->attr;
    ref[n->number] = dc_graph_make(f, (dc_op)n->op, in, (int)n->nin, attr, n->nattr, &type);
    for (int i = 0; n->nin == 0 && i < t->napart; i++)
        if (t->apart[i].node != NULL && dc_lazy_walk_real(t, t->apart[i].node) == n) {
            ref[n->number] = dc_custom_leaf(f, ref[n->number]);
            break;
        }
    dc_arena_rewind(&t->j->scratch, mark);
}

dc_ref *dc_lazy_walk_write(const dc_lazy_walk *t, dc_module *m, dc_func **out)
{
    dc_func *f = dc_func_new(m, "lazy");
    dc_ref *ref = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->order.n + 1);
    for (uint32_t i = 0; i < t->order.n; i++)
        write_node(t, f, t->order.at[i], ref);
    dc_func_from(f, NULL, NULL);
    *out = f;
    return ref;
}
