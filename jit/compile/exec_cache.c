#include "jit/compile/exec_cache.h"

#include "jit/cache/build_id.h"
#include "jit/cache/tuned_schedules.h"
#include "jit/compile/program_build.h"
#include "jit/exec/exec_bounds.h"
#include "jit/exec/exec_pack.h"

#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

enum {
    STAGES = 1u << DC_CH_GRAPH | 1u << DC_CH_FUSE | 1u << DC_CH_KERNEL | 1u << DC_CH_FLAT |
             1u << DC_CH_SRC | 1u << DC_CH_PLAN
};

/* Programs of several kernels are another thing in every executable. */
static bool is_wanted(const dc_env *env, const dc_job *j)
{
    return env->cache != NULL && env->device->ops->one_by_one &&
           env->device->ops->toolchain != NULL && env->schedule == NULL &&
           env->opt.dump[0] == '\0' && env->opt.check == 0 &&
           !dc_skips(env->skip, DC_STAGE_share) && (j->log == NULL || (j->log->on & STAGES) == 0);
}

static void put_bytes(dc_text *out, const void *bytes, size_t n)
{
    if (n > 0)
        dc_text_put(out, bytes, n);
}

static void put_number(dc_text *out, int64_t v)
{
    put_bytes(out, &v, sizeof v);
}

static void put_numbers(dc_text *out, const int64_t *v, uint32_t n)
{
    put_bytes(out, v, n * sizeof *v);
}

/* A new field of dc_target has to be added below or, if it is text, to what a program depends on. */
_Static_assert(sizeof(void *) != 8 || sizeof(dc_target) == 736,
               "the key of an executable holds the whole target");

static void put_target(dc_text *out, const dc_target *t)
{
    const int64_t numbers[] = {t->simt,
                               t->no_f64,
                               t->half,
                               t->bfloat,
                               t->warpgroups,
                               t->scales,
                               t->ranges,
                               t->dp4a,
                               t->fused,
                               t->vector_bytes,
                               t->vector_registers,
                               t->bundles,
                               t->buffers,
                               t->group_threads,
                               t->lanes,
                               (int64_t)t->group_bytes,
                               t->units,
                               t->sm,
                               (int64_t)t->l1,
                               (int64_t)t->l2,
                               (int64_t)t->l3};
    put_numbers(out, numbers, DC_COUNTOF(numbers));
}

/* Which origins a node has is part of it, what their lines are is not (dc_exec_put_words). */
static void put_node(dc_text *out, const dc_node *n)
{
    const uint32_t head[] = {n->op, n->dtype, n->rank, n->nin, n->nattr, n->origin};
    put_bytes(out, head, sizeof head);
    put_numbers(out, n->dim, n->rank);
    put_bytes(out, n->in, n->nin * sizeof *n->in);
    put_numbers(out, n->attr, n->nattr);
}

/* A copy has the nodes that matter and no others, numbered in an order of their own. */
static void put_function(dc_text *out, const dc_func *fn)
{
    put_number(out, fn->node.n);
    for (dc_ref r = 1; r < fn->node.n; r++)
        put_node(out, &fn->node.at[r]);
    put_bytes(out, fn->param.at, fn->param.n * sizeof *fn->param.at);
    put_bytes(out, fn->result.at, fn->result.n * sizeof *fn->result.at);
    put_number(out, fn->origins.n);
    for (uint32_t o = 1; o < fn->origins.n; o++)
        put_number(out, fn->origins.at[o].next);
}

/* Bodies are named by their numbers in the module, which has those of this function alone. */
static void put_graph(dc_text *out, const dc_func *fn)
{
    put_function(out, fn);
    put_number(out, fn->module->body.n);
    for (uint32_t i = 0; i < fn->module->body.n; i++)
        put_function(out, fn->module->body.at[i].fn);
}

static void put_description(dc_text *out, const dc_exec_desc *d)
{
    const int64_t counts[] = {d->nfree,  d->ncell, d->nresult, d->nset,     d->ncheck,
                              d->nfixed, d->grows, d->once,    d->no_reuse, d->relayout_small};
    put_numbers(out, counts, DC_COUNTOF(counts));
    put_bytes(out, d->set, d->nset * sizeof *d->set);
    put_bytes(out, d->anywhere, d->nfree * sizeof *d->anywhere);
}

/*
 * Settings that no stage reads; all others are in the key, those to come included. The device is there
 * by its target, its compiler by the kernels, the cache is skipped as a whole or not at all.
 */
static bool no_stage_reads(const char *env)
{
    static const char *const other[] = {
        "DEEPC_DEVICE",   "DEEPC_DEBUG",        "DEEPC_COMPARE", "DEEPC_TARGET",
        "DEEPC_THREADS",  "DEEPC_COMPILE",      "DEEPC_LAZY",    "DEEPC_SEED",
        "DEEPC_CACHE",    "DEEPC_CACHE_SIZE",   "DEEPC_HISTORY", "TMPDIR",
        "DEEPC_PROGRESS", "DEEPC_LLVM",         "DEEPC_CC",      "DEEPC_COMPILE_SECONDS",
        "DEEPC_COMPILER", "DEEPC_TUNE_SECONDS",
    };
    for (size_t i = 0; i < DC_COUNTOF(other); i++)
        if (strcmp(env, other[i]) == 0)
            return true;
    return false;
}

static void put_setting(void *ctx, const char *env, const char *dflt, const char *now,
                        const char *help)
{
    DC_UNUSED(dflt);
    DC_UNUSED(help);
    if (strcmp(env, "DEEPC_OPT") == 0 && strcmp(now, "3") == 0)
        now = "2"; /* what is searched makes no other executable */
    if (!no_stage_reads(env))
        dc_text_printf(ctx, "%s=%s\n", env, now);
}

bool dc_exec_cache_key(const dc_env *env, dc_job *j, const dc_exec *e, dc_cache_key *key)
{
    const char *depends = is_wanted(env, j) ? dc_program_depends(env, j) : NULL;
    if (depends == NULL)
        return false;
    dc_text *text = dc_job_text(j);
    dc_text_puts(text, "executable 10\n");
    const bool known = dc_build_id_put(text);
    dc_text_printf(text, "\n%s", depends);
    put_target(text, env->target);
    dc_opts_each(&env->opt, put_setting, text);
    if (dc_tuned_fingerprint(env->tuned) != 0)
        put_number(text, (int64_t)dc_tuned_fingerprint(env->tuned));
    put_description(text, &e->desc);
    put_graph(text, e->desc.fn);
    dc_exec_put_words(j, e->desc.fn, text);
    *key = dc_cache_key_of(text->s, text->n);
    dc_job_text_end(j, text);
    return known;
}

/* ---- finding --------------------------------------------------------------------------------- */

static const dc_cache_maker no_toolchain; /* no compiler is in an executable, only in its kernels */

typedef struct recalling {
    const dc_env *env;
    dc_exec *e;
    const dc_packed_kernel *kernel;
    bool *mine; /* by kernel: claimed, neither published nor abandoned */
    dc_counts found;
} recalling;

static void abandon(void *what)
{
    recalling *r = what;
    for (uint32_t i = 0; i < r->e->nkernel; i++)
        if (r->mine[i]) {
            dc_kernels_abandon(r->env->kernels, r->e->kernel[i]);
            r->e->kernel[i] = NULL;
            r->mine[i] = false;
        }
}

static bool load_mine(recalling *r, dc_job *j)
{
    const dc_env *env = r->env;
    for (uint32_t i = 0; i < r->e->nkernel; i++) {
        dc_compiled **c = &r->e->kernel[i];
        dc_program *program;
        dc_kernel_needs *needs;
        *c = dc_kernels_claim(env->kernels, r->kernel[i].text, &r->mine[i]);
        r->found.shared += !r->mine[i];
        if (!r->mine[i])
            continue;
        if (!dc_program_find(env, j, r->kernel[i].disk, r->kernel[i].text, &program, &needs))
            return false;
        dc_kernels_describe(*c, needs);
        dc_kernels_publish(env->kernels, c, 1, program, &r->kernel[i].disk);
        r->mine[i] = false;
        r->found.cached++;
    }
    return true;
}

/* Kernels that others are compiling just now. */
static bool wait_for_others(const recalling *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->e->nkernel; i++)
        if (!dc_kernels_wait(r->env->kernels, r->e->kernel[i])) {
            r->e->kernel[i] = NULL;
            all = false;
        }
    return all;
}

static bool load_kernels(recalling *r, dc_job *j)
{
    dc_job_defer(j, abandon, r);
    const bool loaded = load_mine(r, j);
    dc_job_keep(j, r);
    abandon(r);
    return loaded && wait_for_others(r);
}

/* Everything is there: the whole is as its kernels and its function want it. */
static bool is_sound(const dc_exec *e, dc_job *j)
{
    const dc_kernel_needs **needs = DC_NEW_ARRAY(&j->scratch, const dc_kernel_needs *, e->ncommand);
    for (uint32_t i = 0; i < e->ncommand; i++)
        if (e->command[i].kind == DC_COMMAND_LAUNCH)
            needs[i] = dc_compiled_needs(e->kernel[dc_exec_packed_kernel(e, i)]);
    return dc_exec_is_sound(e, needs, &j->scratch);
}

static void set_programs(dc_exec *e)
{
    for (uint32_t i = 0; i < e->ncommand; i++) {
        dc_command *x = &e->command[i];
        if (x->kind != DC_COMMAND_LAUNCH)
            continue;
        const dc_compiled *c = e->kernel[dc_exec_packed_kernel(e, i)];
        x->program = dc_compiled_program(c);
        x->entry = dc_compiled_entry(c);
    }
}

static bool find_executable(const dc_env *env, dc_job *j, dc_exec *e, dc_cache_key key,
                            dc_counts *n)
{
    const void *bytes;
    size_t size;
    dc_packed_kernel *kernel;
    if (!dc_cache_find(env->cache, j, key, no_toolchain, &bytes, &size) ||
        !dc_exec_unpack(e, bytes, size, &kernel))
        return false;
    recalling *r = DC_NEW(&j->scratch, recalling);
    r->env = env;
    r->e = e;
    r->kernel = kernel;
    r->mine = DC_NEW_ARRAY(&j->scratch, bool, e->nkernel);
    if (!load_kernels(r, j))
        return false;
    if (!is_sound(e, j)) {
        dc_logf(j->log, DC_CH_CACHE, "%s: what is on disk does not fit, it is compiled",
                e->desc.name);
        return false;
    }
    set_programs(e);
    dc_logf(j->log, DC_CH_CACHE, "%s: found whole, %u launches of %u kernels", e->desc.name,
            e->info.launches, e->nkernel);
    n->cached += r->found.cached;
    n->shared += r->found.shared;
    return true;
}

bool dc_exec_cache_find(const dc_env *env, dc_job *j, dc_exec *e, dc_cache_key key, dc_counts *n)
{
    const dc_mark mark = dc_arena_mark(&j->scratch), before = dc_arena_mark(&e->mem);
    const bool found = find_executable(env, j, e, key, n);
    if (!found) {
        dc_exec_drop_kernels(e);
        dc_exec_unpack_nothing(e);
        dc_arena_rewind(&e->mem, before);
    }
    dc_arena_rewind(&j->scratch, mark);
    return found;
}

/* ---- storing --------------------------------------------------------------------------------- */

void dc_exec_cache_store(const dc_env *env, dc_job *j, const dc_exec *e, dc_cache_key key)
{
    if (!is_sound(e, j)) {
        dc_logf(j->log, DC_CH_CACHE, "%s: not stored, it would not be found again", e->desc.name);
        return;
    }
    dc_text *text = dc_job_text(j);
    if (dc_exec_pack(e, text))
        dc_cache_store(env->cache, j, key, no_toolchain, text->s, text->n);
    dc_job_text_end(j, text);
}
