/*
 * Search for schedules, executable by executable (jit/tune/tune.h): which kernels, how much time each gets, what becomes
 * of what is found.
 */
#include "jit/cache/tuned_schedules.h"
#include "jit/compile/compile_job.h"
#include "jit/compile/tuned_list.h"
#include "jit/tune/tune_impl.h"

#include <string.h>

/* ---- what there is to search ------------------------------------------------------------------- */

typedef struct tuning {
    dc_exec *e;
    dc_job *j;
    const dc_env *env;
    dc_tune_report *out;
    const dc_tuned *list; /* with what has been found so far */
    uint64_t *weight;     /* by kernel: nanoseconds of a call that it takes, by an estimate */
    dc_tuner *tuner;
} tuning;

static const dc_env *env_of(const dc_exec *e)
{
    return e->task != NULL ? &((const dc_compile_job *)e->task)->env : NULL;
}

static dc_tuned_store *store_of(const dc_exec *e)
{
    return e->rt->jit != NULL ? e->rt->jit->tuned : NULL;
}

/* Do rules decide about its schedules, and may others be compiled? */
static bool is_scheduled(const dc_exec *e, const dc_env *env)
{
    return env != NULL && store_of(e) != NULL && env->opt.opt >= 2 && env->schedule == NULL &&
           strcmp(env->opt.compile, "cache") != 0 && !dc_skips(env->skip, DC_STAGE_schedule) &&
           !dc_skips(env->skip, DC_STAGE_tuned);
}

static const dc_command *launch_of(const dc_exec *e, const char *kernel)
{
    for (uint32_t i = 0; i < e->ncommand; i++)
        if (e->command[i].kind == DC_COMMAND_LAUNCH && strcmp(e->command[i].label, kernel) == 0)
            return &e->command[i];
    return NULL;
}

/* A prologue runs now and then. */
static uint64_t weight_of(const dc_exec *e, const char *kernel)
{
    uint64_t ns = 1;
    for (uint32_t i = 0; i < e->ncommand; i++)
        if (e->command[i].kind == DC_COMMAND_LAUNCH && strcmp(e->command[i].label, kernel) == 0)
            ns += e->command[i].cost_ns / (i < e->nprologue ? 64 : 1);
    return ns;
}

static const char *copied(const tuning *x, const char *text)
{
    return text != NULL ? dc_arena_strdup(x->out->mem, text) : NULL;
}

static const char *schedule_text(const tuning *x, const char *const *move, uint32_t n)
{
    dc_text *text = dc_job_text(x->j);
    for (uint32_t m = 0; m < n; m++)
        dc_text_printf(text, "%s%s", m > 0 ? "\n" : "", move[m]);
    const char *all = copied(x, text->s != NULL ? text->s : "");
    dc_job_text_end(x->j, text);
    return all;
}

static void begin_row(const tuning *x, uint32_t kernel)
{
    dc_exec_kernel facts;
    dc_tune_row *row = &x->out->row[kernel];
    dc_exec_kernel_of(x->e, kernel, &facts);
    *row = (dc_tune_row){.name = copied(x, facts.name), .launches = facts.launches};
    for (size_t i = 0; i < DC_COUNTOF(row->where); i++)
        row->where[i] = copied(x, facts.where[i]);
    row->schedule = schedule_text(x, x->e->kept[kernel].move, x->e->kept[kernel].nmove);
    x->weight[kernel] = weight_of(x->e, facts.name);
}

static void tell_known(const tuning *x, dc_tune_row *row, const dc_tuned *known)
{
    row->known = true;
    row->rules_ns = known->rules_ns;
    row->best_ns = known->best_ns;
    row->tuned = known->kind == DC_TUNED_MOVES;
    if (row->tuned)
        row->schedule = schedule_text(x, known->move, known->nmove);
}

/* ---- one kernel -------------------------------------------------------------------------------- */

static int64_t terms_of(const dc_kernel *k)
{
    int64_t n = 1;
    for (uint32_t a = 0; a < k->axis.n; a++)
        if (k->axis.at[a].reduce && n < INT32_MAX)
            n *= dc_max_i64(k->axis.at[a].extent, 1);
    return n;
}

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

/* Memory for the kernel's launches; *why where there is none. */
static dc_status make_memory(tuning *x, const char **why)
{
    dc_kernel *k;
    dc_tuner *t = x->tuner;
    DC_TRY(dc_nest_parse(x->j, t->nest, &k));
    dc_job_defer(x->j, free_kernel, k);
    t->terms = terms_of(k);
    t->memory.rt = t->rt;
    const dc_status s =
        dc_tune_memory_make(&t->memory, x->j, k, t->target, launch_of(x->e, t->name));
    dc_job_keep(x->j, k);
    dc_kernel_free(k);
    if (s == DC_OK || (x->j->err.id != DC_ERR_MEMORY && s != DC_E_NOMEM))
        return s;
    dc_err_clear(&x->j->err);
    *why = "no memory for its operands";
    return DC_OK;
}

static void keep_result(tuning *x, dc_tune_row *row, const dc_trial *best)
{
    const dc_tuned found = {.kind = row->tuned ? DC_TUNED_MOVES : DC_TUNED_RULES,
                            .kernel = dc_tuned_key(x->tuner->nest),
                            .rules_ns = row->rules_ns,
                            .best_ns = row->best_ns,
                            .move = best->move,
                            .nmove = row->tuned ? best->nmove : 0};
    row->schedule = schedule_text(x, best->move, best->nmove);
    x->list = dc_tuned_add(&store_of(x->e)->mem, x->list, &found);
}

/* A device that refuses the launches of a kernel leaves it as it is. */
static dc_status forgive(tuning *x, dc_tune_row *row, dc_status s)
{
    if (s != DC_E_BUILD && s != DC_E_DEVICE)
        return s;
    dc_err_clear(&x->j->err);
    row->why = "the device refuses it";
    return DC_OK;
}

static dc_status search_kernel(tuning *x, uint32_t kernel, uint64_t deadline)
{
    dc_tuner *t = x->tuner;
    dc_tune_row *row = &x->out->row[kernel];
    const dc_trial *best = NULL;
    const dc_kept *kept = &x->e->kept[kernel];
    const dc_command *launch = launch_of(x->e, kept->name);
    *t = (dc_tuner){.rt = x->e->rt,
                    .j = x->j,
                    .target = x->env->target,
                    .skip_passes = x->env->skip.passes,
                    .name = kept->name,
                    .nest = kept->nest,
                    .cost_ns = launch != NULL ? launch->cost_ns : 0};
    dc_status s = make_memory(x, &row->why);
    if (s == DC_OK && row->why == NULL)
        s = dc_tune_search(t, deadline, row, &best);
    if (s == DC_OK && best != NULL && (row->why == NULL || row->tuned || row->tried > 0))
        keep_result(x, row, best);
    dc_tuner_free(t);
    *t = (dc_tuner){.rt = NULL};
    return forgive(x, row, s);
}

/* ---- all of them ------------------------------------------------------------------------------- */

/* The kernel with most to gain of those that wait; UINT32_MAX: none does. */
static uint32_t next_of(const tuning *x, const bool *waits)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t k = 0; k < x->out->n; k++)
        if (waits[k] && (best == UINT32_MAX || x->weight[k] > x->weight[best]))
            best = k;
    return best;
}

/* Each kernel's share of the time that is left is that of its weight; what it does not need is the others'. */
static dc_status search_all(tuning *x, bool *waits, uint64_t deadline)
{
    uint64_t weights = 0;
    for (uint32_t k = 0; k < x->out->n; k++)
        weights += waits[k] ? x->weight[k] : 0;
    for (uint32_t k = next_of(x, waits); k != UINT32_MAX; k = next_of(x, waits)) {
        const uint64_t now = dc_clock_ns(), left = deadline > now ? deadline - now : 0;
        const double share = (double)x->weight[k] / (double)weights;
        if (left == 0)
            x->out->row[k].why = "no time left";
        else
            DC_TRY(search_kernel(x, k, now + (uint64_t)((double)left * share)));
        waits[k] = false;
        weights -= x->weight[k];
    }
    return DC_OK;
}

static dc_status tune(tuning *x, const dc_tune_options *o, uint64_t begun)
{
    bool *waits = DC_NEW_ARRAY(&x->j->scratch, bool, x->out->n);
    for (uint32_t k = 0; k < x->out->n; k++) {
        begin_row(x, k);
        const dc_tuned *known =
            o->again ? NULL : dc_tuned_find(x->list, dc_tuned_key(x->e->kept[k].nest));
        waits[k] = known == NULL && x->e->kept[k].npart == 0;
        if (x->e->kept[k].npart > 0)
            x->out->row[k].why = "it is joined of other kernels";
        if (known != NULL)
            tell_known(x, &x->out->row[k], known);
    }
    return search_all(x, waits, begun + (uint64_t)(o->seconds * 1e9));
}

static void free_tuner(void *t)
{
    dc_tuner_free(t);
}

dc_status dc_exec_tune(dc_exec *e, dc_job *j, const dc_tune_options *o, dc_tune_report *out)
{
    const uint64_t begun = dc_clock_ns();
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_env *env = env_of(e);
    dc_tuned_store *store = store_of(e);
    out->n = is_scheduled(e, env) ? dc_exec_kernel_count(e) : 0;
    out->row = DC_NEW_ARRAY(out->mem, dc_tune_row, out->n);
    out->changed = false;
    out->seconds = 0;
    if (out->n == 0)
        return DC_OK;
    tuning *x = DC_NEW(&j->scratch, tuning);
    *x = (tuning){.e = e, .j = j, .env = env, .out = out, .list = store->newest};
    x->tuner = DC_NEW(&j->scratch, dc_tuner);
    x->weight = DC_NEW_ARRAY(&j->scratch, uint64_t, out->n);
    dc_job_defer(j, free_tuner, x->tuner);
    dc_status s = tune(x, o, begun);
    dc_job_keep(j, x->tuner);
    if (s == DC_OK) {
        out->changed = dc_tuned_fingerprint(x->list) != dc_tuned_fingerprint(store->newest);
        dc_tuned_store_set(store, env->cache, j, x->list);
    }
    dc_arena_rewind(&j->scratch, mark);
    out->seconds = (double)(dc_clock_ns() - begun) / 1e9;
    return s;
}

dc_status dc_exec_untune(dc_exec *e, dc_job *j, bool *changed)
{
    const dc_env *env = env_of(e);
    dc_tuned_store *store = store_of(e);
    *changed = false;
    if (!is_scheduled(e, env))
        return DC_OK;
    const dc_tuned *list = store->newest;
    for (uint32_t k = 0; k < dc_exec_kernel_count(e); k++) {
        const dc_tuned nothing = {.kernel = dc_tuned_key(e->kept[k].nest)};
        if (dc_tuned_find(list, nothing.kernel) != NULL)
            list = dc_tuned_add(&store->mem, list, &nothing);
    }
    *changed = dc_tuned_fingerprint(list) != dc_tuned_fingerprint(store->newest);
    dc_tuned_store_set(store, env->cache, j, list);
    return DC_OK;
}

dc_status dc_exec_remake(dc_exec *e, dc_job *j, dc_exec **out)
{
    return dc_exec_build(e->rt, j, &e->given, out);
}

bool dc_exec_is_stale(const dc_exec *e)
{
    const dc_env *env = env_of(e);
    return is_scheduled(e, env) && dc_exec_kernel_count(e) > 0 &&
           dc_tuned_fingerprint(env->tuned) != dc_tuned_fingerprint(store_of(e)->newest);
}

static dc_status open_env(dc_rt *rt, dc_job *j, dc_env *env)
{
    DC_TRY(dc_compile_open(rt, j));
    return dc_compile_env(rt, j, env);
}

dc_status dc_tune_fingerprint(dc_rt *rt, dc_job *j, uint64_t *out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_env *env = DC_NEW(&j->scratch, dc_env);
    *out = 0;
    if (rt->interpret || rt->first->broken)
        return DC_OK;
    DC_TRY(open_env(rt, j, env));
    *out = dc_tuned_fingerprint(env->tuned);
    dc_arena_rewind(&j->scratch, mark);
    return DC_OK;
}
