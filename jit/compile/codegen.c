#include "jit/compile/codegen.h"

#include "jit/compile/dump.h"
#include "jit/compile/program_build.h"
#include "jit/compile/tuned_list.h"
#include "jit/flat/flat_join.h"
#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"
#include "jit/schedule/schedule.h"
#include "jit/schedule/schedule_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void dc_codegen_free(dc_codegen *g)
{
    for (uint32_t i = 0; i < g->entry.n; i++) {
        dc_kernel_free(g->entry.at[i].kernel);
        if (g->entry.at[i].flat != NULL)
            dc_flat_free(g->entry.at[i].flat);
    }
    DC_VEC_FREE(g->entry);
    dc_arena_free(&g->mem);
    dc_text_free(&g->work);
}

/* A kernel takes time: each is a good place to stop at. */
static dc_status go_on(dc_job *j)
{
    return dc_job_cancelled(j) ? dc_failf(j, DC_ERR_REENTER, NULL, "no longer wanted") : DC_OK;
}

/* ---- distinct kernels ------------------------------------------------------------------------ */

static void set_name(char *name, const char *to)
{
    snprintf(name, sizeof((dc_kernel *)0)->name, "%s", to);
}

static const char *print_nest(dc_codegen *g, dc_kernel *k)
{
    g->work.n = 0;
    dc_nest_print(k, &g->work);
    return g->work.s;
}

/* In g->work, until something else is printed. */
static const char *text_without_name(dc_codegen *g, dc_kernel *k)
{
    char name[sizeof k->name];
    memcpy(name, k->name, sizeof name);
    set_name(k->name, "kernel");
    print_nest(g, k);
    memcpy(k->name, name, sizeof name);
    return g->work.s;
}

static bool is_taken(const dc_codegen *g, const char *name)
{
    for (uint32_t i = 0; i < g->entry.n; i++)
        if (strcmp(dc_entry_name(&g->entry.at[i]), name) == 0)
            return true;
    return false;
}

/* Entries of a program need names of their own: E_64_128, then E_64_128_v2. */
static void name_apart(const dc_codegen *g, char name[sizeof((dc_kernel *)0)->name])
{
    char base[sizeof((dc_kernel *)0)->name];
    memcpy(base, name, sizeof base);
    for (int n = 2; is_taken(g, name); n++)
        snprintf(name, sizeof base, "%.50s_v%d", base, n);
}

uint32_t dc_codegen_add(dc_codegen *g, dc_kernel *k)
{
    dc_entry e = {.kernel = k};
    memcpy(e.base, k->name, sizeof e.base);
    if (g->env->opt.dump[0] != '\0')
        e.lowered = dc_arena_strdup(&g->mem, print_nest(g, k));
    const char *text = text_without_name(g, k);
    for (uint32_t i = 0; i < g->entry.n && !dc_skips(g->env->skip, DC_STAGE_merge); i++)
        if (strcmp(g->entry.at[i].text, text) == 0) {
            dc_kernel_free(k);
            return i;
        }
    e.text = dc_arena_strdup(&g->mem, text);
    name_apart(g, k->name);
    DC_PUSH(g->entry, e);
    return g->entry.n - 1;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void log_nest(dc_codegen *g, dc_job *j, dc_kernel *k, const char *when)
{
    char heading[160];
    if (!dc_log_on(j->log, DC_CH_KERNEL))
        return;
    snprintf(heading, sizeof heading, "%s, %s", k->name, when);
    dc_log_text(j->log, DC_CH_KERNEL, heading, print_nest(g, k));
}

/* As a file for DEEPC_SCHEDULE has it. */
static void log_moves(dc_codegen *g, dc_job *j, const dc_kernel *k)
{
    if (!dc_log_on(j->log, DC_CH_KERNEL) || k->moves.n == 0)
        return;
    g->work.n = 0;
    dc_schedule_file_print(k, &g->work);
    dc_log_text(j->log, DC_CH_KERNEL, "its schedule", g->work.s);
}

/* *found: the file has a schedule for this kernel. */
static dc_status schedule_from_file(dc_job *j, const dc_env *env, dc_kernel *k, bool *found)
{
    uint32_t n;
    const char *why;
    char text[400];
    const char *const *move = NULL;
    if (env->schedule != NULL)
        move = dc_schedule_file_find(env->schedule, k->name, &n);
    *found = move != NULL;
    for (uint32_t i = 0; *found && i < n; i++)
        if (!dc_move_apply_text(k, move[i], &why)) {
            snprintf(text, sizeof text, "%.200s: kernel %s: '%s' does not apply: %s",
                     env->opt.schedule, k->name, move[i], why);
            return dc_fail(j, DC_ERR_OPTION, &(dc_fact){.word = {"DEEPC_SCHEDULE", text}});
        }
    return DC_OK;
}

static dc_status move_loops(dc_codegen *g, dc_job *j, dc_entry *e)
{
    const dc_env *env = g->env;
    bool found;
    if (dc_skips(env->skip, DC_STAGE_schedule))
        return DC_OK;
    DC_TRY(schedule_from_file(j, env, e->kernel, &found));
    if (!found)
        DC_TRY(dc_tuned_apply(j, env->tuned, e->text, &e->kernel, &found));
    return found ? DC_OK : dc_schedule(j, e->kernel, env->target, (int)env->opt.opt);
}

static dc_status schedule(dc_codegen *g, dc_job *j, dc_entry *e)
{
    const bool check = g->env->opt.check >= 1;
    log_nest(g, j, e->kernel, "as lowered");
    if (check)
        DC_TRY(dc_nest_check(j, e->kernel));
    DC_TRY(move_loops(g, j, e));
    log_moves(g, j, e->kernel);
    log_nest(g, j, e->kernel, "scheduled");
    e->launch = dc_nest_launch(e->kernel);
    return check ? dc_nest_check(j, e->kernel) : DC_OK;
}

dc_status dc_codegen_schedule(dc_codegen *g, dc_job *j)
{
    for (uint32_t i = 0; i < g->entry.n; i++) {
        DC_TRY(go_on(j));
        DC_TRY(schedule(g, j, &g->entry.at[i]));
    }
    return DC_OK;
}

/* ---- flat form ------------------------------------------------------------------------------- */

static const char *print_flat(dc_codegen *g, const dc_flat *f)
{
    g->work.n = 0;
    dc_flat_print(f, &g->work);
    return g->work.s;
}

dc_status dc_codegen_flatten(dc_codegen *g, dc_job *j)
{
    for (uint32_t i = 0; i < g->entry.n; i++) {
        dc_entry *e = &g->entry.at[i];
        DC_TRY(go_on(j));
        DC_TRY(dc_flatten_for(j, e->kernel, g->env->target, g->env->skip.passes, &e->flat));
        if (dc_log_on(j->log, DC_CH_FLAT))
            dc_log_text(j->log, DC_CH_FLAT, e->flat->name, print_flat(g, e->flat));
    }
    return DC_OK;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Of the same parts in the same order. */
static bool is_joined_of(const dc_entry *e, const uint32_t *part, uint32_t n)
{
    return e->npart == n && memcmp(e->part, part, n * sizeof *part) == 0;
}

/* "bundle_12_E_64_128": how many parts, and the first of them. */
static void name_joined(const dc_codegen *g, const uint32_t *part, uint32_t n,
                        char name[sizeof((dc_kernel *)0)->name])
{
    snprintf(name, sizeof((dc_kernel *)0)->name, "bundle_%u_%.40s", (unsigned)n,
             dc_entry_name(&g->entry.at[part[0]]));
    name_apart(g, name);
}

uint32_t dc_codegen_join(dc_codegen *g, dc_job *j, const uint32_t *part, uint32_t n)
{
    char name[sizeof((dc_kernel *)0)->name];
    for (uint32_t i = 0; i < g->entry.n; i++)
        if (is_joined_of(&g->entry.at[i], part, n))
            return i;
    uint32_t *own = DC_NEW_ARRAY(&g->mem, uint32_t, n);
    const dc_flat **flat = DC_NEW_ARRAY(&g->mem, const dc_flat *, n);
    for (uint32_t i = 0; i < n; i++) {
        own[i] = part[i];
        flat[i] = g->entry.at[part[i]].flat;
    }
    name_joined(g, part, n, name);
    DC_ROOM(g->entry); /* before there is something to lose */
    dc_entry e = {.text = "", .lowered = "", .part = own, .npart = n};
    e.flat = dc_flat_join(j, flat, n, name);
    e.launch.positions = e.flat->positions;
    e.launch.threads = e.flat->threads;
    memcpy(e.base, name, sizeof e.base);
    DC_PUSH(g->entry, e);
    return g->entry.n - 1;
}

void dc_codegen_launch(dc_codegen *g, uint32_t entry)
{
    dc_entry *e = &g->entry.at[entry];
    if (e->launched)
        return;
    e->launched = true;
    e->number = g->nlaunched++;
}

/* ---- machine code ---------------------------------------------------------------------------- */

/* Kernels that this job has to compile: they are abandoned if it unwinds. */
typedef struct batch {
    dc_codegen *g;
    dc_compiled **out;
    uint32_t *mine; /* entries */
    uint32_t n;
} batch;

static dc_compiled **kernel_of(const batch *b, uint32_t entry)
{
    return &b->out[b->g->entry.at[entry].number];
}

static void abandon(void *what)
{
    batch *b = what;
    for (uint32_t i = 0; i < b->n; i++) {
        dc_compiled **c = kernel_of(b, b->mine[i]);
        dc_kernels_abandon(b->g->env->kernels, *c);
        *c = NULL;
    }
    b->n = 0;
}

/*
 * What makes two kernels the same: the flat form but for the name, and whatever else their code
 * depends on.
 */
static dc_cache_key key_of(dc_codegen *g, const dc_entry *e)
{
    const dc_env *env = g->env;
    char name[sizeof e->flat->name];
    memcpy(name, e->flat->name, sizeof name);
    set_name(e->flat->name, "kernel");
    g->work.n = 0;
    dc_text_printf(&g->work, "%s %s %s\n", env->target->name, env->target->dialect, env->opt.math);
    if (dc_skips(env->skip, DC_STAGE_share))
        dc_text_printf(&g->work, "entry %p of its own\n", (const void *)e);
    dc_flat_print(e->flat, &g->work);
    memcpy(e->flat->name, name, sizeof name);
    return dc_cache_key_of(g->work.s, g->work.n);
}

static void claim_all(batch *b, dc_counts *n)
{
    dc_codegen *g = b->g;
    for (uint32_t i = 0; i < g->entry.n; i++) {
        bool mine;
        dc_compiled **c = kernel_of(b, i);
        if (!g->entry.at[i].launched || *c != NULL)
            continue;
        *c = dc_kernels_claim(g->env->kernels, key_of(g, &g->entry.at[i]), &mine);
        if (mine)
            b->mine[b->n++] = i;
        else
            n->shared++;
    }
}

/* Under the name that the kernel has wherever it occurs. */
static dc_status dump(const dc_codegen *g, dc_job *j, dc_entry *e)
{
    char name[sizeof e->kernel->name];
    memcpy(name, dc_entry_name(e), sizeof name);
    if (e->kernel != NULL)
        set_name(e->kernel->name, e->base);
    set_name(e->flat->name, e->base);
    const dc_status status = dc_dump_kernel(j, g->env, e);
    if (e->kernel != NULL)
        set_name(e->kernel->name, name);
    set_name(e->flat->name, name);
    return status;
}

/* Files about kernels that are about to be compiled, and their text under the names they have. */
static dc_status show(batch *b, dc_job *j, dc_flat *const *flat)
{
    dc_codegen *g = b->g;
    for (uint32_t i = 0; i < b->n && g->env->opt.dump[0] != '\0'; i++)
        DC_TRY(dump(g, j, &g->entry.at[b->mine[i]]));
    if (!dc_log_on(j->log, DC_CH_SRC))
        return DC_OK;
    g->work.n = 0;
    DC_TRY(dc_render(j, (const dc_flat *const *)flat, b->n, g->env->target, &g->work));
    dc_log_text(j->log, DC_CH_SRC, "program", g->work.s);
    return DC_OK;
}

static dc_status compile_mine(batch *b, dc_job *j, dc_counts *n)
{
    dc_codegen *g = b->g;
    if (b->n == 0)
        return DC_OK;
    dc_compiled **mine = DC_NEW_ARRAY(&g->mem, dc_compiled *, b->n);
    dc_flat **flat = DC_NEW_ARRAY(&g->mem, dc_flat *, b->n);
    const dc_kernel_needs **needs = DC_NEW_ARRAY(&g->mem, const dc_kernel_needs *, b->n);
    dc_program_unit *unit = DC_NEW_ARRAY(&g->mem, dc_program_unit, b->n);
    uint32_t nunit = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        mine[i] = *kernel_of(b, b->mine[i]);
        flat[i] = g->entry.at[b->mine[i]].flat;
        dc_kernels_describe(mine[i], dc_kernel_needs_of(flat[i], dc_compiled_text(mine[i])));
        needs[i] = dc_compiled_needs(mine[i]);
    }
    DC_TRY(show(b, j, flat));
    DC_TRY(go_on(j));
    DC_TRY(dc_program_build(g->env, j, flat, needs, b->n, unit, &nunit));
    for (uint32_t i = 0; i < nunit; i++) {
        dc_kernels_publish(g->env->kernels, mine + unit[i].first, unit[i].n, unit[i].program,
                           unit[i].keyed ? &unit[i].key : NULL);
        *(unit[i].cached ? &n->cached : &n->compiled) += unit[i].n;
    }
    b->n = 0;
    return DC_OK;
}

/* What another job gave up on is claimed again. True: all are there. */
static bool wait_for_others(batch *b, dc_counts *n)
{
    bool all = true;
    for (uint32_t i = 0; i < b->g->nlaunched; i++)
        if (!dc_kernels_wait(b->g->env->kernels, b->out[i])) {
            b->out[i] = NULL;
            n->shared--;
            all = false;
        }
    return all;
}

dc_status dc_codegen_compile(dc_codegen *g, dc_job *j, dc_compiled **out, dc_counts *n)
{
    batch *b = DC_NEW(&g->mem, batch);
    *b = (batch){.g = g, .out = out, .mine = DC_NEW_ARRAY(&g->mem, uint32_t, g->entry.n)};
    dc_job_defer(j, abandon, b);
    dc_status status;
    do {
        claim_all(b, n);
        status = compile_mine(b, j, n);
    } while (status == DC_OK && !wait_for_others(b, n));
    dc_job_keep(j, b);
    abandon(b);
    return status;
}
