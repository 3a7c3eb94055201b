/*
 * Lazy expressions to values: what a node needs is listed in one order, described as words, looked
 * up in the context's table of programs, else written as a function of core/ and compiled, or left
 * to the interpreter where it is little work. Then it runs.
 *
 *   collect   what is pending, operands before users (core/runtime/lazywalk.c)
 *   parts     what parts are taken of comes before them, and is kept; parts of values are leaves
 *   describe  op, types, attributes and operands by number: equal words, equal program
 *   program   found, or made; the table holds PROGRAMS of them, the longest unused goes first
 *   run       leaves are arguments; results become the values of their nodes
 *
 * Results are the node asked for and whatever below it is read from elsewhere, too, so that reading
 * that later does not compute it again.
 */
#include "core/eval/eval_find.h"
#include "core/graph/conv.h"
#include "core/graph/dot.h"
#include "core/runtime/lazy.h"

#include <string.h>

enum { PROGRAMS = 256 };

struct dc_lazy_entry {
    uint64_t hash, used;
    uint64_t *word;
    uint32_t nword, nresult;
    bool running;
    const dc_lazy_exec *exec;
    void *program;     /* compiled; else ... */
    dc_module *module; /* ... for the interpreter */
    dc_func *fn;
};

/* One realization. Arrays are in the job's scratch memory. */
typedef struct task {
    dc_rt *rt;
    dc_job *j;
    dc_lazy_walk walk;
    DC_VEC(dc_lazy *) result;
    DC_VEC(uint64_t) word;
    int64_t work;
    bool compiled;
    dc_tensor **given; /* by leaf, when compiled; NULL of a number */
} task;

/* ---- collecting ------------------------------------------------------------------------------ */

static const uint32_t IS_RESULT = UINT32_MAX;

static void add_result(task *t, dc_lazy *n)
{
    if (n->inside == IS_RESULT)
        return;
    n->inside = IS_RESULT;
    DC_PUSH_IN(&t->j->scratch, t->result, n);
}

/* A pending node that is a result besides: the language has a name for it, and nodes outside of this task read
 * it. A movement is not worth a copy: there the operand that is moved becomes the result. */
static void add_read_elsewhere(task *t, dc_lazy *n)
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

static void collect_all(task *t, dc_lazy *const *root, uint32_t n)
{
    dc_lazy_walk_begin(&t->walk, t->rt, t->j, false);
    for (uint32_t i = 0; i < n && t->walk.group == NULL; i++)
        if (dc_lazy_real(root[i])->value == NULL)
            dc_lazy_walk_add(&t->walk, root[i]);
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
static dc_status load_parts(task *t)
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

static void push_word(task *t, uint64_t word)
{
    DC_PUSH_IN(&t->j->scratch, t->word, word);
}

static void describe_type(task *t, dc_op op, const dc_type *type, uint64_t more)
{
    push_word(t, op | (uint64_t)type->dtype << 8 | (uint64_t)type->rank << 16 | more << 24);
    for (int i = 0; i < type->rank; i++)
        push_word(t, (uint64_t)type->dim[i]);
}

static void describe_leaf(task *t, const dc_lazy *n, uint32_t leaf)
{
    const bool window = t->walk.window != NULL && t->walk.window[leaf];
    uint64_t word[DC_LAZY_WINDOW];
    const int nword = window ? dc_lazy_window_words(&t->walk.view.at[leaf], word) : 0;
    describe_type(t, DC_OP_PARAM, &n->type, window);
    for (int i = 0; i < nword; i++)
        push_word(t, word[i]);
}

static void describe_node(task *t, const dc_lazy *n)
{
    describe_type(t, (dc_op)n->op, &n->type, n->nin | (uint64_t)n->nattr << 16);
    for (uint32_t i = 0; i < n->nin; i++)
        push_word(t, dc_lazy_walk_real(&t->walk, n->in[i])->number);
    for (int i = 0; i < n->nattr; i++)
        push_word(t, (uint64_t)n->attr[i]);
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t p;
    return dc_mul_ok(a, b, &p) ? p : INT64_MAX;
}

/* In element operations, roughly. To fill memory with one value is none. */
static int64_t work_of(const dc_lazy *n)
{
    if (n->op == DC_OP_CONST)
        return 0;
    const dc_op_row *row = dc_op_row_of((dc_op)n->op);
    const int64_t own = dc_type_count(&n->type);
    const int64_t read = n->nin > 0 ? dc_type_count(&n->in[0]->type) : 0;
    if ((dc_op)n->op == DC_OP_CONV) { /* kernel's elements, but for its channel of the result */
        const int64_t taps = dc_type_count(&n->in[1]->type);
        dc_conv c;
        return dc_conv_read(n->attr, n->nattr, &c) && taps > 0
                   ? product(own, taps / n->in[1]->type.dim[c.kernel[0]])
                   : own;
    }
    if ((dc_op)n->op == DC_OP_DOT) {
        int64_t work = own;
        const dc_type *left = &n->in[0]->type;
        const dc_dot d = dc_dot_read(n->attr, left->rank, n->in[1]->type.rank);
        for (int i = 0; i < d.ncontract; i++)
            work = product(work, left->dim[d.contract[0][i]]);
        return work;
    }
    return product(dc_max_i64(own, read), row->flags & DC_OPF_COSTLY ? 8 : 1);
}

static void choose_how(task *t)
{
    for (uint32_t i = 0; i < t->walk.order.n; i++) {
        const dc_lazy *n = t->walk.order.at[i];
        const bool leaf = dc_lazy_walk_leaf(&t->walk, n);
        if (!dc_add_ok(t->work, leaf ? 0 : work_of(n), &t->work))
            t->work = INT64_MAX;
    }
    for (uint32_t i = 0; i < t->result.n; i++) /* a view that is to be memory of its own */
        if (t->result.at[i]->part &&
            !dc_add_ok(t->work, dc_type_count(&t->result.at[i]->type), &t->work))
            t->work = INT64_MAX;
    t->compiled =
        may_compile(t->rt) && (t->work > DC_LAZY_WORK || strcmp(t->rt->opt.lazy, "compile") == 0);
}

static void describe(task *t)
{
    uint32_t leaf = 0;
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

static uint64_t hash_words(const task *t)
{
    uint64_t h = t->word.n;
    for (uint32_t i = 0; i < t->word.n; i++)
        h = dc_hash_mix(h, t->word.at[i]);
    return h;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void free_entry(void *what)
{
    dc_lazy_entry *e = what;
    if (e->program != NULL)
        e->exec->free(e->program);
    dc_module_free(e->module);
    dc_xfree(e->word);
    dc_xfree(e);
}

void dc_lazy_close(dc_rt *rt)
{
    dc_lazies *l = rt->lazy;
    if (l == NULL)
        return;
    for (uint32_t i = 0; i < l->nentry; i++)
        free_entry(l->entry[i]);
    dc_xfree(l->entry);
    DC_VEC_FREE(l->operand);
    DC_VEC_FREE(l->fresh);
    dc_module_free(l->module);
    dc_xfree(l);
    rt->lazy = NULL;
}

static dc_lazy_entry *find_entry(const task *t, uint64_t hash)
{
    dc_lazies *l = t->rt->lazy;
    for (uint32_t i = 0; i < l->nentry; i++) {
        dc_lazy_entry *e = l->entry[i];
        if (e->hash == hash && e->nword == t->word.n &&
            memcmp(e->word, t->word.at, t->word.n * sizeof *e->word) == 0)
            return e;
    }
    return NULL;
}

/* Makes room for one more and says where it goes. */
static dc_lazy_entry **free_place(dc_lazies *l)
{
    uint32_t oldest = UINT32_MAX;
    if (l->entry == NULL)
        l->entry = dc_xalloc((PROGRAMS + 1) * sizeof(dc_lazy_entry *));
    for (uint32_t i = 0; l->nentry >= PROGRAMS && i < l->nentry; i++)
        if (!l->entry[i]->running &&
            (oldest == UINT32_MAX || l->entry[i]->used < l->entry[oldest]->used))
            oldest = i;
    if (oldest == UINT32_MAX)
        return l->nentry < PROGRAMS ? &l->entry[l->nentry++] : NULL;
    free_entry(l->entry[oldest]);
    return &l->entry[oldest];
}

/* By leaf: does its memory begin at any element? */
static const bool *find_anywhere(const task *t)
{
    bool *any = DC_NEW_ARRAY(&t->j->scratch, bool, t->walk.leaf.n);
    for (uint32_t i = 0; i < t->walk.leaf.n && t->walk.window != NULL; i++)
        any[i] = t->walk.window[i] && !dc_lazy_window_aligned(&t->walk.view.at[i]);
    return any;
}

static dc_status fill_entry(const task *t, dc_lazy_entry *e)
{
    e->nresult = t->result.n;
    e->nword = t->word.n;
    e->word = dc_xalloc(t->word.n * sizeof *e->word);
    memcpy(e->word, t->word.at, t->word.n * sizeof *e->word);
    e->module = dc_module_new();
    const dc_ref *ref = dc_lazy_walk_write(&t->walk, e->module, &e->fn);
    for (uint32_t i = 0; i < t->result.n; i++)
        DC_PUSH(e->fn->result, ref[t->result.at[i]->number]);
    if (!t->compiled)
        return DC_OK;
    e->exec = t->rt->lazy_exec;
    DC_TRY(e->exec->build(t->rt, t->j, e->fn, find_anywhere(t), &e->program));
    dc_module_free(e->module);
    e->module = NULL;
    e->fn = NULL;
    return DC_OK;
}

static dc_status new_entry(const task *t, uint64_t hash, dc_lazy_entry **out)
{
    dc_lazies *l = t->rt->lazy;
    dc_lazy_entry *e = dc_xalloc(sizeof *e);
    e->hash = hash;
    dc_job_defer(t->j, free_entry, e);
    const dc_status status = fill_entry(t, e);
    if (status != DC_OK) {
        dc_job_keep(t->j, e);
        free_entry(e);
        return status;
    }
    dc_lazy_entry **place = free_place(l);
    if (place != NULL) {
        *place = e;
        dc_job_keep(t->j, e);
    } /* else it goes with the entry */
    t->rt->stats.lazy_programs++;
    *out = e;
    return DC_OK;
}

static void free_module(void *m)
{
    dc_module_free(m);
}

/* ---- running --------------------------------------------------------------------------------- */

static dc_status read_leaf(const task *t, uint32_t leaf, const void **out)
{
    const dc_lazy *n = t->walk.leaf.at[leaf];
    dc_device *dev = t->rt->device;
    const size_t bytes = dc_type_bytes(&n->type);
    if (n->value != NULL && dev->ops->host) {
        *out = dc_tensor_mem(n->value);
        return DC_OK;
    }
    void *copy = dc_arena_alloc(&t->j->scratch, bytes);
    *out = copy;
    if (t->walk.view.at[leaf].of == NULL)
        dc_bits_store((dc_dtype)n->type.dtype, copy, n->bits);
    else if (bytes > 0)
        return dc_lazy_read_view(t->rt, t->j, &t->walk.view.at[leaf], 0, dc_type_count(&n->type),
                                 copy);
    return DC_OK;
}

static dc_status interpret(const task *t, const dc_lazy_entry *e, dc_tensor **made)
{
    dc_job *j = t->j;
    dc_device *dev = t->rt->device;
    const bool strict = strcmp(j->opt->math, "strict") == 0;
    const void **param = DC_NEW_ARRAY(&j->scratch, const void *, t->walk.leaf.n);
    void **result = DC_NEW_ARRAY(&j->scratch, void *, t->result.n);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        DC_TRY(read_leaf(t, i, &param[i]));
    for (uint32_t i = 0; i < t->result.n; i++) {
        const dc_type *type = &t->result.at[i]->type;
        DC_TRY(dc_tensor_new(t->rt, j, type, &made[i]));
        dc_tensor_defer(j, made[i]);
        result[i] = dev->ops->host ? dc_tensor_mem(made[i])
                                   : dc_arena_alloc(&j->scratch, dc_type_bytes(type));
    }
    DC_TRY(dc_eval(j, e->fn, strict ? DC_EVAL_STRICT : DC_EVAL_ROUND, param, result));
    for (uint32_t i = 0; i < t->result.n && !dev->ops->host; i++) {
        const size_t bytes = dc_type_bytes(&made[i]->type);
        if (bytes > 0)
            DC_TRY(dev->ops->upload(dev, j, dc_tensor_mem(made[i]), result[i], bytes));
    }
    for (uint32_t i = 0; i < t->result.n; i++)
        dc_job_keep(j, made[i]);
    t->rt->stats.interpreted++;
    return DC_OK;
}

static dc_status run_compiled(const task *t, const dc_lazy_entry *e, dc_tensor **made)
{
    dc_lazy_arg *arg = DC_NEW_ARRAY(&t->j->scratch, dc_lazy_arg, t->walk.leaf.n);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        arg[i] = (dc_lazy_arg){t->given[i], t->walk.leaf.at[i]->bits};
    return e->exec->run(e->program, t->j, arg, made);
}

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

static dc_tensor *give_leaf(const task *t, uint32_t i)
{
    dc_tensor *value = t->walk.leaf.at[i]->value;
    if (t->walk.window != NULL && t->walk.window[i])
        return dc_lazy_window_tensor(&t->walk.view.at[i]);
    return value != NULL ? dc_tensor_retain(value) : NULL;
}

static holding *hold(task *t)
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

static void stop_running(void *e)
{
    ((dc_lazy_entry *)e)->running = false;
}

static dc_status run_entry(const task *t, dc_lazy_entry *e, dc_tensor **made)
{
    const bool nested = e->running;
    e->used = ++t->rt->lazy->used;
    if (!nested) {
        e->running = true;
        dc_job_defer(t->j, stop_running, e);
    }
    const dc_status status = e->program != NULL ? run_compiled(t, e, made) : interpret(t, e, made);
    if (!nested) {
        dc_job_keep(t->j, e);
        e->running = false;
    }
    return status;
}

/*
 * DEEPC_CHECK=nan. The expression is written anew, so that the lines are those of this one, not of the first one
 * with its structure.
 */
static dc_status find_maker(const task *t)
{
    dc_job *j = t->j;
    const bool strict = strcmp(j->opt->math, "strict") == 0;
    const void **param = DC_NEW_ARRAY(&j->scratch, const void *, t->walk.leaf.n);
    dc_module *m = dc_module_new();
    dc_func *f;
    dc_eval_culprit culprit;
    int worst;
    dc_job_defer(j, free_module, m);
    const dc_ref *ref = dc_lazy_walk_write(&t->walk, m, &f);
    for (uint32_t i = 0; i < t->result.n; i++)
        DC_PUSH(f->result, ref[t->result.at[i]->number]);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        DC_TRY(read_leaf(t, i, &param[i]));
    DC_TRY(dc_eval_find(j, f, strict ? DC_EVAL_STRICT : DC_EVAL_ROUND, param, t->result.n, &culprit,
                        &worst));
    if (culprit.ref != 0) {
        t->rt->lazy->where = NULL; /* the record has the place */
        return dc_eval_culprit_fail(j, f, &culprit, "");
    }
    if (worst == 0)
        return dc_failf(
            j, DC_ERR_NOT_FINITE, NULL,
            "a result is not finite, and the interpreter, which rounds in other places, "
            "gives finite values: an operation is at the edge of its range");
    return DC_OK;
}

static dc_status check_numbers(const task *t, dc_tensor *const *made)
{
    dc_device *dev = t->rt->device;
    bool bad = false;
    for (uint32_t i = 0; i < t->result.n && !bad; i++) {
        const dc_type *type = &t->result.at[i]->type;
        const size_t bytes = dc_type_bytes(type);
        const void *at = dc_tensor_mem(made[i]);
        if (!dev->ops->host && bytes > 0) {
            void *copy = dc_arena_alloc(&t->j->scratch, bytes);
            DC_TRY(dev->ops->download(dev, t->j, copy, at, bytes));
            at = copy;
        }
        bad = dc_eval_worst((dc_dtype)type->dtype, at, dc_type_count(type)) > 0;
    }
    return bad ? find_maker(t) : DC_OK;
}

static dc_status compute(task *t)
{
    dc_lazy_entry *e;
    const uint64_t hash = hash_words(t);
    dc_tensor **made = DC_NEW_ARRAY(&t->j->scratch, dc_tensor *, t->result.n);
    if ((e = find_entry(t, hash)) == NULL)
        DC_TRY(new_entry(t, hash, &e));
    DC_TRY(run_entry(t, e, made));
    if (t->rt->opt.numbers && !t->rt->check) {
        for (uint32_t i = 0; i < t->result.n; i++)
            dc_tensor_defer(t->j, made[i]);
        DC_TRY(check_numbers(t, made));
        for (uint32_t i = 0; i < t->result.n; i++)
            dc_job_keep(t->j, made[i]);
    }
    t->rt->stats.realized++;
    for (uint32_t i = 0; i < t->result.n; i++) {
        dc_lazy *n = t->result.at[i];
        made[i]->type = n->type;
        if (n->value == NULL) /* not set meanwhile */
            n->value = made[i];
        else
            dc_tensor_release(made[i]);
    }
    return DC_OK;
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
    task t = {.rt = rt, .j = j};
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
        describe(&t);
        holding *h = hold(&t);
        DC_TRY(compute(&t)); /* when it fails, the entry lets go */
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
    dc_lazies *l = dc_lazy_of(rt);
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
    return realize_all(rt, j, n, true);
}

dc_status dc_lazy_look(dc_rt *rt, dc_job *j, dc_lazy *n, dc_lazy_view *out)
{
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
    *where = rt->lazy != NULL ? rt->lazy->where : NULL;
    *path = rt->lazy != NULL ? rt->lazy->path : NULL;
}
