/*
 * Lazy expressions to values: what a node needs is listed in one order, described as words, looked
 * up in the context's table of programs, else written as a function of core/ and compiled, or left
 * to the interpreter where it is little work. Then it runs.
 *
 *   collect   what is pending, operands before users (core/runtime/lazywalk.c)
 *   parts     what parts are taken of comes before them, and is kept; parts of values are leaves
 *   describe  op, types, attributes and operands by number: equal words, equal program
 *   program   found, or made, and run (core/runtime/realize_program.c)
 *   settle    results become the values of their nodes
 *
 * Results are the node asked for and whatever below it is read from elsewhere, too, so that reading
 * that later does not compute it again.
 */
#include "core/ir/flops.h"
#include "core/runtime/realize_impl.h"

#include <string.h>

/* ---- collecting ------------------------------------------------------------------------------ */

static const uint32_t IS_RESULT = UINT32_MAX;

static void add_result(dc_realize_task *t, dc_lazy *n)
{
    if (n->inside == IS_RESULT)
        return;
    n->inside = IS_RESULT;
    DC_PUSH_IN(&t->j->scratch, t->result, n);
}

/* A pending node that is a result besides: the language has a name for it, and nodes outside of this task read
 * it. A movement is not worth a copy: there the operand that is moved becomes the result. */
static void add_read_elsewhere(dc_realize_task *t, dc_lazy *n)
{
    if (!dc_lazy_walk_pending(&t->walk, n) || !n->counts || n->nin == 0 || n->inside == IS_RESULT ||
        n->uses <= n->inside)
        return;
    if (dc_op_is((dc_op)n->op, DC_CLASS_MOV))
        n = dc_lazy_beneath(n);
    if (n != NULL && dc_lazy_walk_pending(&t->walk, n) && n->nin > 0 &&
        !dc_op_is((dc_op)n->op, DC_CLASS_MOV))
        add_result(t, n);
}

static void walk_from(dc_realize_task *t, dc_lazy *const *root, uint32_t n)
{
    for (uint32_t i = 0; i < n && t->walk.group == NULL; i++)
        if (dc_lazy_real(root[i])->value == NULL)
            dc_lazy_walk_add(&t->walk, root[i]);
}

static void collect_all(dc_realize_task *t, dc_lazy *const *root, uint32_t n)
{
    uint32_t nexchange;
    dc_lazy_walk_begin(&t->walk, t->rt, t->j, false);
    walk_from(t, root, n);
    dc_lazy **exchange = dc_lazy_walk_exchanges(&t->walk, &nexchange);
    if (nexchange > 0 && t->walk.group == NULL) {
        dc_lazy_walk_begin(&t->walk, t->rt, t->j, false);
        walk_from(t, exchange, nexchange);
        walk_from(t, root, n);
    }
    if (t->walk.group != NULL)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (dc_lazy_real(root[i])->value == NULL)
            add_result(t, dc_lazy_real(root[i]));
    for (uint32_t i = 0; i < t->walk.order.n; i++)
        add_read_elsewhere(t, t->walk.order.at[i]);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool may_compile(const dc_rt *rt)
{
    return !rt->interpret && rt->lazy_exec != NULL && strcmp(rt->opt.lazy, "eval") != 0;
}

/* Parts get values, or are given as windows. */
static dc_status load_parts(dc_realize_task *t)
{
    for (uint32_t i = 0; i < t->walk.leaf.n; i++) {
        dc_lazy *n = t->walk.leaf.at[i];
        const dc_lazy_view *v = &t->walk.view.at[i];
        if (v->of == NULL || n->value != NULL)
            continue;
        DC_TRY(dc_lazy_load(t->rt, t->j, n, v,
                            t->compiled && dc_lazy_has_window(v) ? DC_LAZY_COPY_LITTLE
                                                                 : DC_LAZY_COPY_ALL));
        if (n->value != NULL || !t->compiled)
            continue;
        if (t->walk.window == NULL)
            t->walk.window = DC_NEW_ARRAY(&t->j->scratch, bool, t->walk.leaf.n);
        t->walk.window[i] = true;
    }
    return DC_OK;
}

/* ---- describing ------------------------------------------------------------------------------ */

static void push_size(dc_realize_task *t, uint64_t word, uint8_t size)
{
    DC_PUSH_IN(&t->j->scratch, t->word, word);
    DC_PUSH_IN(&t->j->scratch, t->size, size);
}

static void push_word(dc_realize_task *t, uint64_t word)
{
    push_size(t, word, DC_LAZY_FORM);
}

static void describe_type(dc_realize_task *t, dc_op op, const dc_type *type, uint64_t more)
{
    const dc_type parts = dc_type_parts(type);
    type = &parts;
    push_word(t, op | (uint64_t)type->dtype << 8 | (uint64_t)type->rank << 16 | more << 24);
    for (int i = 0; i < type->rank; i++)
        push_size(t, (uint64_t)type->dim[i], DC_LAZY_DIM);
}

static void describe_leaf(dc_realize_task *t, const dc_lazy *n, uint32_t leaf)
{
    const bool window = t->walk.window != NULL && t->walk.window[leaf];
    uint64_t word[DC_LAZY_WINDOW];
    const int nword = window ? dc_lazy_window_words(&t->walk.view.at[leaf], word) : 0;
    describe_type(t, DC_OP_PARAM, &n->type, window);
    for (int i = 0; i < nword; i++)
        push_word(t, word[i]);
}

static void describe_node(dc_realize_task *t, const dc_lazy *n)
{
    describe_type(t, (dc_op)n->op, &n->type, n->nin | (uint64_t)n->nattr << 16);
    for (uint32_t i = 0; i < n->nin; i++)
        push_word(t, dc_lazy_walk_real(&t->walk, n->in[i])->number);
    const int nbegin = n->op == DC_OP_SLICE || n->op == DC_OP_PAD ? n->nattr / 2 : 0;
    for (int i = 0; i < n->nattr; i++)
        push_size(t, (uint64_t)n->attr[i],
                  n->op == DC_OP_CONST ? (uint8_t)(DC_LAZY_CONST + n->type.dtype)
                  : i < nbegin         ? DC_LAZY_BEGIN
                                       : DC_LAZY_FORM);
}

/* In element operations, roughly. To fill memory with one value is none. */
static double work_of(const dc_lazy *n)
{
    if (n->op == DC_OP_CONST)
        return 0;
    const dc_op_row *row = dc_op_row_of((dc_op)n->op);
    const double own = (double)dc_type_count(&n->type);
    if (row->cls == DC_CLASS_CON)
        return own *
               dc_flops_terms((dc_op)n->op, n->attr, n->nattr, &n->in[0]->type, &n->in[1]->type);
    const double read = n->nin > 0 ? (double)dc_type_count(&n->in[0]->type) : 0;
    return (own > read ? own : read) * (row->flags & DC_OPF_COSTLY ? 8 : 1);
}

static bool is_steady(const dc_realize_task *t)
{
    const dc_rt *rt = t->rt;
    for (uint32_t i = 0; i < t->result.n; i++)
        if (t->result.at[i]->steady)
            return true;
    return rt->first->steady || rt->first->mesh != NULL || !rt->device->ops->host ||
           strcmp(rt->opt.lazy, "steady") == 0;
}

static void count_work(dc_realize_task *t)
{
    for (uint32_t i = 0; i < t->walk.order.n; i++) {
        const dc_lazy *n = t->walk.order.at[i];
        t->work += dc_lazy_walk_leaf(&t->walk, n) ? 0 : work_of(n);
    }
    for (uint32_t i = 0; i < t->result.n; i++) /* a view that is to be memory of its own */
        t->work += t->result.at[i]->part ? (double)dc_type_count(&t->result.at[i]->type) : 0;
}

static void describe(dc_realize_task *t)
{
    uint32_t leaf = 0;
    t->word.n = t->size.n = 0;
    for (uint32_t i = 0; i < t->walk.order.n; i++) {
        const dc_lazy *n = t->walk.order.at[i];
        if (dc_lazy_walk_leaf(&t->walk, n))
            describe_leaf(t, n, leaf++);
        else
            describe_node(t, n);
    }
    push_word(t, t->result.n);
    for (uint32_t i = 0; i < t->result.n; i++)
        push_word(t, t->result.at[i]->number);
}

/* ---- choosing -------------------------------------------------------------------------------- */

/*
 * Much work is compiled at once, little work never. In between the interpreter computes a structure until it has taken as
 * long as a compilation takes; by the estimates the first one takes at most twice the better of both ways
 * (core/runtime/realize_cost.c). Leaves t described, without windows.
 */
static void choose_how(dc_realize_task *t)
{
    count_work(t);
    describe(t);
    if (!may_compile(t->rt))
        return;
    const bool soon = strcmp(t->rt->opt.lazy, "sizes") == 0;
    t->compiled = strcmp(t->rt->opt.lazy, "compile") == 0 ||
                  ((t->work > DC_LAZY_WORK || soon) &&
                   (is_steady(t) || !dc_realize_rents(t, dc_realize_hash(t))));
}

/* ---- holding --------------------------------------------------------------------------------- */

/* While it runs, the log sink may realize the same nodes. */
typedef struct holding {
    dc_lazy **node;
    dc_tensor **tensor;
    uint32_t n, ntensor;
} holding;

static void let_go(void *what)
{
    holding *h = what;
    while (h->n > 0)
        dc_lazy_release(h->node[--h->n]);
    while (h->ntensor > 0)
        dc_tensor_release(h->tensor[--h->ntensor]);
}

static dc_tensor *give_leaf(const dc_realize_task *t, uint32_t i)
{
    dc_tensor *value = t->walk.leaf.at[i]->value;
    if (t->walk.window != NULL && t->walk.window[i])
        return dc_lazy_window_tensor(&t->walk.view.at[i]);
    return value != NULL ? dc_tensor_retain(value) : NULL;
}

static holding *hold(dc_realize_task *t)
{
    holding *h = DC_NEW(&t->j->scratch, holding);
    h->node = DC_NEW_ARRAY(&t->j->scratch, dc_lazy *, t->walk.leaf.n + t->result.n);
    h->tensor = t->given = DC_NEW_ARRAY(&t->j->scratch, dc_tensor *, t->walk.leaf.n);
    dc_job_defer(t->j, let_go, h);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        h->tensor[h->ntensor++] = give_leaf(t, i);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        h->node[h->n++] = dc_lazy_retain(t->walk.leaf.at[i]);
    for (uint32_t i = 0; i < t->result.n; i++)
        h->node[h->n++] = dc_lazy_retain(t->result.at[i]);
    return h;
}

/* ---- realizing ------------------------------------------------------------------------------- */

/* Gives n the value that the node it stands for has, under its own names. */
static dc_status settle(dc_rt *rt, dc_job *j, dc_lazy *n, bool *done)
{
    dc_lazy *r = dc_lazy_real(n);
    dc_lazy_view v;
    if (r->value == NULL && dc_lazy_view_of(r, &v))
        DC_TRY(dc_lazy_load(rt, j, r, &v,
                            v.at.cut && (!may_compile(rt) || !dc_lazy_has_window(&v))
                                ? DC_LAZY_COPY_ALL
                                : DC_LAZY_COPY_PART));
    if (r->value == NULL)
        *done = false;
    else if (n->value == NULL)
        n->value = dc_tensor_part(r->value, &n->type, 0);
    return DC_OK;
}

/* Only what was asked for lets go of its operands, so that no gradient is lost by reading a neighbour. */
static void drop_all(dc_lazy *const *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (n[i]->value != NULL)
            dc_lazy_drop(n[i]);
}

/*
 * What has to be realized before is added to todo; nothing is when it is done. asked: by the user; what is not
 * keeps its operands, unless it is a group.
 */
static dc_status realize(dc_rt *rt, dc_job *j, dc_lazy *n, bool asked, dc_lazy_list *todo)
{
    dc_lazy **root = n->kind == DC_LAZY_GROUP ? n->in : &n;
    const uint32_t nroot = n->kind == DC_LAZY_GROUP ? n->nin : 1, before = todo->n;
    dc_realize_task t = {.rt = rt, .j = j};
    bool done = true;
    for (uint32_t i = 0; i < nroot; i++)
        DC_TRY(settle(rt, j, root[i], &done));
    if (!done) {
        collect_all(&t, root, nroot);
        if (t.walk.group != NULL)
            DC_PUSH_IN(&j->scratch, *todo, t.walk.group);
        else
            dc_lazy_wholes(&t.walk, todo);
        if (todo->n > before)
            return DC_OK;
        choose_how(&t);
        DC_TRY(load_parts(&t));
        if (t.walk.window != NULL)
            describe(&t);
        holding *h = hold(&t);
        DC_TRY(dc_realize_compute(&t)); /* when it fails, the entry lets go */
        done = true;
        for (uint32_t i = 0; i < nroot; i++)
            DC_TRY(settle(rt, j, root[i], &done));
        if (!done)
            DC_BUG("a lazy tensor has no value after it was realized");
        dc_job_keep(j, h);
        let_go(h);
    }
    if (asked || n->kind == DC_LAZY_GROUP)
        drop_all(root, nroot);
    return DC_OK;
}

static dc_status realize_all(dc_rt *rt, dc_job *j, dc_lazy *n, bool asked)
{
    dc_lazy_list todo = {0};
    if (n->value != NULL)
        return DC_OK;
    dc_lazy_of(rt);
    dc_lazies *l = dc_lazy_of(rt->first);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    l->where = n->where;
    l->path = n->path;
    DC_PUSH_IN(&j->scratch, todo, n);
    while (todo.n > 0) {
        const uint32_t last = todo.n - 1;
        DC_TRY(realize(rt, j, todo.at[last], last == 0 && asked, &todo));
        if (todo.n == last + 1)
            todo.n--;
    }
    l->where = l->path = NULL;
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}

dc_status dc_lazy_realize(dc_rt *rt, dc_job *j, dc_lazy *n)
{
    DC_UNUSED(rt);
    return realize_all(n->rt, j, n, true);
}

dc_status dc_lazy_look(dc_rt *rt, dc_job *j, dc_lazy *n, dc_lazy_view *out)
{
    rt = n->rt;
    while (!dc_lazy_view_of(n, out)) {
        dc_lazy *first = dc_lazy_beneath(n);
        DC_TRY(realize_all(rt, j, first != NULL ? first : n, first == NULL));
    }
    if (dc_lazy_is_far(rt, out))
        DC_TRY(realize_all(rt, j, n, true));
    DC_TRY(dc_lazy_settle(rt, j, n));
    if (!dc_lazy_view_of(n, out))
        DC_BUG("a lazy tensor that was realized cannot be read");
    return DC_OK;
}

void dc_lazy_place(const dc_rt *rt, const char **where, const char **path)
{
    const dc_lazies *l = rt->first->lazy;
    *where = l != NULL ? l->where : NULL;
    *path = l != NULL ? l->path : NULL;
}
