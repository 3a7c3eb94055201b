/*
 * Programs of the device (jit/compile/program_build.h): text, key, look into the cache, and for what is not there
 * the compiler.
 */
#include "jit/compile/program_build.h"

#include "core/base/spans.h"
#include "core/runtime/split.h"
#include "jit/cache/disk_cache.h"
#include "jit/render/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is made of one unit. */
typedef struct making {
    dc_program_unit *unit;
    const char *text;
    const char **entry;
} making;

typedef struct makings {
    const dc_env *env;
    dc_flat *const *kernel;
    const dc_kernel_needs *const *needs;
    making *at;
    uint32_t n;
    uint32_t *missing; /* those to be compiled, the longest first */
    uint32_t nmissing;
    dc_text work;
} makings;

static void give_up(void *arg)
{
    makings *m = arg;
    dc_device *d = m->env->device;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->at[i].unit->program != NULL)
            d->ops->program_free(d, m->at[i].unit->program);
    dc_text_free(&m->work);
}

static dc_source source_of(const makings *m, const making *k)
{
    return (dc_source){.text = k->text,
                       .dialect = m->env->target->dialect,
                       .entry = k->entry,
                       .nentry = k->unit->n};
}

/* ---- text and key ---------------------------------------------------------------------------- */

static void set_name(char *name, const char *to)
{
    snprintf(name, sizeof((dc_flat *)0)->name, "%s", to);
}

/* In m->work; a key wants names that are the same wherever the kernels occur. */
static dc_status render(makings *m, dc_job *j, making *k)
{
    char name[32];
    dc_flat *const *kernel = m->kernel + k->unit->first;
    const uint32_t n = k->unit->n;
    char **own = DC_NEW_ARRAY(&j->scratch, char *, n);
    k->entry = DC_NEW_ARRAY(&j->scratch, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        own[i] = dc_arena_strdup(&j->scratch, kernel[i]->name);
        snprintf(name, sizeof name, "entry%u", i);
        k->entry[i] = k->unit->keyed ? dc_arena_strdup(&j->scratch, name) : own[i];
        set_name(kernel[i]->name, k->entry[i]);
    }
    m->work.n = 0;
    const dc_status status =
        dc_render(j, (const dc_flat *const *)kernel, n, m->env->target, &m->work);
    for (uint32_t i = 0; i < n; i++)
        set_name(kernel[i]->name, own[i]);
    return status;
}

const char *dc_program_depends(const dc_env *env, dc_job *j)
{
    const dc_target *t = env->target;
    dc_device *d = env->device;
    if (env->cache == NULL || d->ops->toolchain == NULL)
        return NULL;
    dc_text *text = dc_job_text(j);
    dc_text_printf(text, "program 4\n%s\n%s %s\n%s\n%s\n", t->name, t->triple, t->features,
                   t->dialect, env->opt.math);
    d->ops->settings(d, text);
    const char *depends = dc_arena_strdup(&j->scratch, text->s);
    dc_job_text_end(j, text);
    return depends;
}

static dc_status write_text(makings *m, dc_job *j, making *k, const char *depends)
{
    k->unit->keyed = depends != NULL;
    DC_TRY(render(m, j, k));
    k->text = dc_arena_strdup(&j->scratch, m->work.s);
    if (k->unit->keyed) {
        dc_text_puts(&m->work, depends);
        k->unit->key = dc_cache_key_of(m->work.s, m->work.n);
    }
    return DC_OK;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* What is kept of a program: its code, and behind it what its kernels need. */
typedef struct kept_program {
    const void *entry;
    size_t bytes, code;
} kept_program;

static bool find_kept(const dc_env *env, dc_job *j, dc_cache_key key, kept_program *kept)
{
    const dc_cache_maker toolchain = dc_cache_maker_of(env->cache, j, env->device);
    return dc_cache_find(env->cache, j, key, toolchain, &kept->entry, &kept->bytes) &&
           dc_kernel_entry_code(kept->entry, kept->bytes, &kept->code);
}

/* False: the device refuses what was kept; it is compiled, and replaced. */
static bool load_kept(const dc_env *env, dc_job *j, const dc_source *src, const kept_program *kept,
                      dc_program **out)
{
    if (env->device->ops->load(env->device, j, src, kept->entry, kept->code, out) == DC_OK)
        return true;
    dc_err_clear(&j->err);
    return false;
}

bool dc_program_find(const dc_env *env, dc_job *j, dc_cache_key key, dc_cache_key text,
                     dc_program **out, dc_kernel_needs **needs)
{
    static const char *const entry[] = {"entry0"}; /* as render() calls it */
    const dc_source src = {.dialect = env->target->dialect, .entry = entry, .nentry = 1};
    const dc_mark mark = dc_arena_mark(&j->scratch);
    kept_program kept;
    *needs =
        find_kept(env, j, key, &kept) ? dc_kernel_entry_needs(kept.entry, kept.bytes, text) : NULL;
    if (*needs != NULL) {
        dc_job_defer(j, dc_xfree, *needs);
        const bool loaded = load_kept(env, j, &src, &kept, out);
        dc_job_keep(j, *needs);
        if (!loaded) {
            dc_xfree(*needs);
            *needs = NULL;
        }
    }
    dc_arena_rewind(&j->scratch, mark);
    return *needs != NULL;
}

static void store(const makings *m, dc_job *j, const making *k, const dc_text *entry)
{
    const dc_cache_maker toolchain = dc_cache_maker_of(m->env->cache, j, m->env->device);
    dc_cache_store(m->env->cache, j, k->unit->key, toolchain, entry->s, entry->n);
}

/* The program was stored for a kernel of another size; from now on it is found for this one too. */
static void add_needs(const makings *m, dc_job *j, const making *k, const kept_program *kept)
{
    dc_text *entry = dc_job_text(j);
    if (dc_kernel_entry_add(kept->entry, kept->bytes, m->needs[k->unit->first], entry))
        store(m, j, k, entry);
    dc_job_text_end(j, entry);
}

static bool find_program(const makings *m, dc_job *j, making *k)
{
    dc_program_unit *u = k->unit;
    const dc_source src = source_of(m, k);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    kept_program kept;
    u->cached = u->keyed && find_kept(m->env, j, u->key, &kept) &&
                load_kept(m->env, j, &src, &kept, &u->program);
    if (u->cached)
        add_needs(m, j, k, &kept);
    dc_arena_rewind(&j->scratch, mark);
    return u->cached;
}

static dc_status compile(const makings *m, dc_job *j, making *k)
{
    const void *object;
    size_t bytes;
    dc_device *d = m->env->device;
    const dc_source src = source_of(m, k);
    if (strcmp(m->env->opt.compile, "cache") == 0)
        return dc_failf(
            j, DC_ERR_BUILD, NULL,
            "a kernel is not in the cache, and nothing is compiled (DEEPC_COMPILE=cache)");
    const dc_cache_maker toolchain =
        k->unit->keyed ? dc_cache_maker_of(m->env->cache, j, d) : (dc_cache_maker){{0, 0}};
    k->unit->keyed = dc_cache_maker_known(toolchain); /* without a toolchain id it is not kept */
    if (!k->unit->keyed)
        return d->ops->compile(d, j, &src, &k->unit->program);
    const uint64_t begun = dc_clock_ns();
    DC_TRY(d->ops->translate(d, j, &src, &object, &bytes));
    dc_logf(j->log, DC_CH_CACHE, "%s compiled in %.1f ms: %zu bytes of text, %zu of code",
            m->kernel[k->unit->first]->name, (double)(dc_clock_ns() - begun) / 1e6, strlen(k->text),
            bytes);
    DC_TRY(d->ops->load(d, j, &src, object, bytes, &k->unit->program));
    dc_text *entry = dc_job_text(j);
    dc_kernel_entry_put(object, bytes, m->needs[k->unit->first], entry);
    store(m, j, k, entry);
    dc_job_text_end(j, entry);
    return DC_OK;
}

static dc_status compile_piece(dc_job *j, void *ctx, uint32_t piece)
{
    const makings *m = ctx;
    if (dc_job_cancelled(j))
        return dc_failf(j, DC_ERR_REENTER, NULL, "no longer wanted");
    const making *k = &m->at[m->missing[piece]];
    const uint64_t begun = dc_span_begin(j->log);
    const dc_status status = compile(m, j, &m->at[m->missing[piece]]);
    const dc_span_name name = {.kind = DC_SPAN_COMPILE,
                               .text = m->kernel[k->unit->first]->name,
                               .bytes = (double)strlen(k->text)};
    dc_span_end_of(j->log, begun, &name, 0);
    return status;
}

/* The longest first, so that no thread begins a long one when the others are done. */
static void add_missing(makings *m, uint32_t k)
{
    uint32_t at = m->nmissing++;
    const size_t n = strlen(m->at[k].text);
    for (; at > 0 && strlen(m->at[m->missing[at - 1]].text) < n; at--)
        m->missing[at] = m->missing[at - 1];
    m->missing[at] = k;
}

static bool is_again(const makings *m, uint32_t k)
{
    const dc_program_unit *mine = m->at[k].unit;
    for (uint32_t i = 0; i < k && mine->keyed; i++) {
        const dc_program_unit *u = m->at[i].unit;
        if (u->keyed && memcmp(&u->key, &mine->key, sizeof u->key) == 0)
            return true;
    }
    return false;
}

/*
 * Kernels with one text, which differ in the number of their work items: it is compiled for the first, and on disk
 * when the others look for it.
 */
static dc_status make_all(makings *m, dc_job *j)
{
    const char *depends = dc_program_depends(m->env, j);
    uint32_t *again = DC_NEW_ARRAY(&j->scratch, uint32_t, m->n), nagain = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        DC_TRY(write_text(m, j, &m->at[i], depends));
        if (is_again(m, i))
            again[nagain++] = i;
        else if (!find_program(m, j, &m->at[i]))
            add_missing(m, i);
    }
    DC_TRY(dc_split(j, m->nmissing, compile_piece, m));
    m->nmissing = 0;
    for (uint32_t i = 0; i < nagain; i++) {
        dc_cache_flush(m->env->cache);
        if (!find_program(m, j, &m->at[again[i]]))
            add_missing(m, again[i]);
    }
    return dc_split(j, m->nmissing, compile_piece, m);
}

dc_status dc_program_build(const dc_env *env, dc_job *j, dc_flat *const *kernel,
                           const dc_kernel_needs *const *needs, uint32_t n, dc_program_unit *unit,
                           uint32_t *nunit)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    makings *m = DC_NEW(&j->scratch, makings);
    const uint32_t each = env->device->ops->one_by_one ? 1 : n;
    m->env = env;
    m->kernel = kernel;
    m->needs = needs;
    m->at = DC_NEW_ARRAY(&j->scratch, making, n);
    m->missing = DC_NEW_ARRAY(&j->scratch, uint32_t, n);
    for (uint32_t first = 0; first < n; first += each) {
        unit[m->n] = (dc_program_unit){.first = first, .n = each};
        m->at[m->n].unit = &unit[m->n];
        m->n++;
    }
    dc_job_defer(j, give_up, m);
    const dc_status status = make_all(m, j);
    dc_job_keep(j, m);
    if (status != DC_OK)
        give_up(m);
    else
        dc_text_free(&m->work);
    *nunit = m->n;
    dc_arena_rewind(&j->scratch, mark);
    return status;
}
