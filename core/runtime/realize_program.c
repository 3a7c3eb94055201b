/*
 * Programs of lazy expressions by structure: one is found by the words that describe it, or made; then it
 * runs.
 *
 *   program   found, or made; the table holds PROGRAMS of them, FEW where half of the context's memory limit is
 *             used. Those of the interpreter, which cost little, go first, the longest unused one before the others
 *   general   one for any size (core/runtime/realize_general.c)
 *   run       leaves are arguments; results become the values of their nodes
 *   check     DEEPC_CHECK=nan: which operation made the first infinity or NaN
 */
#include "core/base/spans.h"
#include "core/eval/eval_find.h"
#include "core/runtime/realize_impl.h"

#include <stdio.h>
#include <string.h>

enum { PROGRAMS = 256, FEW = 16 };

/* ---- programs -------------------------------------------------------------------------------- */

static void free_entry(void *what)
{
    dc_lazy_entry *e = what;
    if (e->program != NULL)
        e->exec->free(e->program);
    dc_module_free(e->module);
    dc_lazy_general_free(e->general);
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
    dc_xfree(l->spent);
    dc_lazy_forms_free(l);
    DC_VEC_FREE(l->operand);
    DC_VEC_FREE(l->fresh);
    dc_module_free(l->module);
    dc_xfree(l);
    rt->lazy = NULL;
}

uint64_t dc_realize_hash(const dc_realize_task *t)
{
    uint64_t h = t->word.n;
    for (uint32_t i = 0; i < t->word.n; i++)
        h = dc_hash_mix(h, t->word.at[i]);
    return h;
}

static dc_lazy_entry *find_entry(const dc_realize_task *t, uint64_t hash)
{
    dc_lazies *l = t->rt->lazy;
    for (uint32_t i = 0; i < l->nentry; i++) {
        dc_lazy_entry *e = l->entry[i];
        if (e->general == NULL && e->hash == hash && e->nword == t->word.n &&
            memcmp(e->word, t->word.at, t->word.n * sizeof *e->word) == 0)
            return e;
    }
    return NULL;
}

bool dc_realize_is_known(const dc_realize_task *t, uint64_t structure)
{
    const dc_lazy_entry *e = find_entry(t, structure);
    return e != NULL && e->program != NULL;
}

/* Does a go before b? */
static bool goes_first(const dc_lazy_entry *a, const dc_lazy_entry *b)
{
    if ((a->program == NULL) != (b->program == NULL))
        return a->program == NULL;
    return a->used < b->used;
}

/* Frees the one that goes first; false where all of them run. */
static bool drop_one(dc_lazies *l)
{
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < l->nentry; i++)
        if (!l->entry[i]->running &&
            (oldest == UINT32_MAX || goes_first(l->entry[i], l->entry[oldest])))
            oldest = i;
    if (oldest == UINT32_MAX)
        return false;
    dc_lazy_entry *e = l->entry[oldest];
    l->entry[oldest] = l->entry[--l->nentry];
    free_entry(e);
    return true;
}

void dc_lazy_trim(dc_rt *rt, uint32_t most)
{
    dc_lazies *l = rt->lazy;
    while (l != NULL && l->nentry > most && drop_one(l))
        ;
}

/* Where the next one goes; NULL where all run that there may be. */
static dc_lazy_entry **free_place(dc_rt *rt)
{
    dc_lazies *l = rt->lazy;
    if (l->entry == NULL)
        l->entry = dc_xalloc(PROGRAMS * sizeof(dc_lazy_entry *));
    dc_lazy_trim(rt, (dc_rt_is_short(rt) ? FEW : PROGRAMS) - 1);
    return l->nentry < PROGRAMS ? &l->entry[l->nentry++] : NULL;
}

/* By leaf: does its memory begin at any element? */
static const bool *find_anywhere(const dc_realize_task *t)
{
    bool *any = DC_NEW_ARRAY(&t->j->scratch, bool, t->walk.leaf.n);
    for (uint32_t i = 0; i < t->walk.leaf.n && t->walk.window != NULL; i++)
        any[i] = t->walk.window[i] && !dc_lazy_window_aligned(&t->walk.view.at[i]);
    return any;
}

static dc_status compile_entry(const dc_realize_task *t, dc_lazy_entry *e)
{
    e->exec = t->rt->lazy_exec;
    DC_TRY(e->exec->build(t->rt, t->j, e->fn, find_anywhere(t), 0, &e->program));
    dc_module_free(e->module);
    e->module = NULL;
    e->fn = NULL;
    return DC_OK;
}

static dc_status fill_entry(const dc_realize_task *t, dc_lazy_entry *e)
{
    e->nresult = t->result.n;
    e->nword = t->word.n;
    e->word = dc_xalloc(t->word.n * sizeof *e->word);
    memcpy(e->word, t->word.at, t->word.n * sizeof *e->word);
    e->module = dc_module_new();
    const dc_ref *ref = dc_lazy_walk_write(&t->walk, e->module, &e->fn);
    for (uint32_t i = 0; i < t->result.n; i++)
        DC_PUSH(e->fn->result, ref[t->result.at[i]->number]);
    return t->compiled ? compile_entry(t, e) : DC_OK;
}

static dc_status fill_general(const dc_realize_task *t, dc_lazy_entry *e, bool *made)
{
    e->nresult = t->result.n;
    e->nword = t->word.n;
    return dc_lazy_general_make(t, e, made);
}

/* *out NULL: there is to be a program for any size, and there is none. */
static dc_status new_entry(const dc_realize_task *t, uint64_t hash, dc_lazy_entry **out)
{
    dc_lazy_entry *e = dc_xalloc(sizeof *e);
    bool made = true;
    e->hash = hash;
    *out = NULL;
    dc_job_defer(t->j, free_entry, e);
    const dc_status status = t->general ? fill_general(t, e, &made) : fill_entry(t, e);
    if (status != DC_OK || !made) {
        dc_job_keep(t->j, e);
        free_entry(e);
        return status;
    }
    dc_lazy_entry **place = free_place(t->rt);
    if (place != NULL) {
        *place = e;
        dc_job_keep(t->j, e);
    } /* else it goes with the entry */
    t->rt->first->stats.lazy_programs++;
    t->rt->first->stats.lazy_general += t->general;
    *out = e;
    return DC_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static dc_status read_leaf(const dc_realize_task *t, uint32_t leaf, const void **out)
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
        return dc_lazy_read_view(t->rt, t->j, &t->walk.view.at[leaf], 0,
                                 dc_view_count(&t->walk.view.at[leaf].at), copy);
    return DC_OK;
}

static dc_status interpret(const dc_realize_task *t, const dc_lazy_entry *e, dc_tensor **made)
{
    dc_job *j = t->j;
    dc_device *dev = t->rt->device;
    const bool strict = dc_opts_math(j->opt, "strict");
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
    t->rt->first->stats.interpreted++;
    return DC_OK;
}

static dc_status run_compiled(const dc_realize_task *t, const dc_lazy_entry *e, dc_tensor **made)
{
    dc_lazy_arg *arg = DC_NEW_ARRAY(&t->j->scratch, dc_lazy_arg, t->walk.leaf.n);
    for (uint32_t i = 0; i < t->walk.leaf.n; i++)
        arg[i] = (dc_lazy_arg){t->given[i], t->walk.leaf.at[i]->bits};
    return e->exec->run(e->program, t->j, arg, made);
}

/* Of operations outside typed functions a trace has the line that made the first result. */
static void tell(const dc_realize_task *t, const dc_lazy_entry *e, uint64_t begun)
{
    char text[64];
    const dc_lazy *n = t->result.n > 0 ? t->result.at[0] : NULL;
    if (begun == 0 || n == NULL)
        return;
    snprintf(text, sizeof text, "%s, %u operations", dc_op_row_of(n->op)->name,
             (unsigned)(t->walk.order.n - t->walk.leaf.n));
    const dc_span_name name = {.kind = e->program != NULL ? DC_SPAN_CALL : DC_SPAN_EVAL,
                               .text = text,
                               .where = n->where,
                               .layer = n->path};
    dc_span_end_of(t->j->log, begun, &name, 0);
}

static void stop_running(void *e)
{
    ((dc_lazy_entry *)e)->running = false;
}

/* What the interpreter has computed so far. While it runs, it stays as it is. */
static dc_status upgrade(const dc_realize_task *t, dc_lazy_entry *e)
{
    if (!t->compiled || e->program != NULL || e->running)
        return DC_OK;
    e->running = true; /* keeps its place */
    dc_job_defer(t->j, stop_running, e);
    const dc_status status = compile_entry(t, e);
    dc_job_keep(t->j, e);
    e->running = false;
    return status;
}

static dc_status run_entry(const dc_realize_task *t, dc_lazy_entry *e, dc_tensor **made)
{
    const bool nested = e->running;
    e->used = ++t->rt->lazy->used;
    if (!nested) {
        e->running = true;
        dc_job_defer(t->j, stop_running, e);
    }
    const uint64_t begun = dc_span_begin(t->j->log);
    const dc_status status = e->general != NULL   ? dc_lazy_general_run(t, e, made)
                             : e->program != NULL ? run_compiled(t, e, made)
                                                  : interpret(t, e, made);
    tell(t, e, begun);
    if (!nested) {
        dc_job_keep(t->j, e);
        e->running = false;
    }
    return status;
}

/* ---- checking -------------------------------------------------------------------------------- */

static void free_module(void *m)
{
    dc_module_free(m);
}

/*
 * DEEPC_CHECK=nan. The expression is written anew, so that the lines are those of this one, not of the first one
 * with its structure.
 */
static dc_status find_maker(const dc_realize_task *t)
{
    dc_job *j = t->j;
    const bool strict = dc_opts_math(j->opt, "strict");
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
        t->rt->first->lazy->where = NULL; /* the record has the place */
        return dc_eval_culprit_fail(j, f, &culprit, "");
    }
    if (worst == 0)
        return dc_failf(
            j, DC_ERR_NOT_FINITE, NULL,
            "a result is not finite, and the interpreter, which rounds in other places, "
            "gives finite values: an operation is at the edge of its range");
    return DC_OK;
}

static dc_status check_numbers(const dc_realize_task *t, dc_tensor *const *made)
{
    dc_device *dev = t->rt->device;
    bool bad = false;
    for (uint32_t i = 0; i < t->result.n && !bad; i++) {
        const dc_type parts = dc_type_parts(&t->result.at[i]->type), *type = &parts;
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

/* ---- the whole ------------------------------------------------------------------------------- */

/* The program for any size, else that of these sizes. */
static dc_status find_or_make(dc_realize_task *t, dc_lazy_entry **out)
{
    const uint64_t hash = dc_realize_hash(t);
    if (t->general && (*out = dc_lazy_general_find(t)) != NULL)
        return DC_OK;
    if (t->general) {
        DC_TRY(new_entry(t, hash, out));
        if (*out != NULL)
            return DC_OK;
        t->general = false;
    }
    if ((*out = find_entry(t, hash)) == NULL)
        return new_entry(t, hash, out);
    return upgrade(t, *out);
}

dc_status dc_realize_compute(dc_realize_task *t)
{
    dc_lazy_entry *e;
    dc_tensor **made = DC_NEW_ARRAY(&t->j->scratch, dc_tensor *, t->result.n);
    DC_TRY(find_or_make(t, &e));
    DC_TRY(run_entry(t, e, made));
    if (t->rt->opt.numbers && !t->rt->first->check) {
        for (uint32_t i = 0; i < t->result.n; i++)
            dc_tensor_defer(t->j, made[i]);
        DC_TRY(check_numbers(t, made));
        for (uint32_t i = 0; i < t->result.n; i++)
            dc_job_keep(t->j, made[i]);
    }
    t->rt->first->stats.realized++;
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
