#include "jit/codegen.h"

#include "jit/flatten.h"
#include "jit/render.h"
#include "jit/schedule.h"

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
    dc_text_free(&g->text);
}

/* ---- distinct kernels ------------------------------------------------------------------------ */

/* In g->work, until something else is printed. */
static const char *text_without_name(dc_codegen *g, dc_kernel *k)
{
    char name[sizeof k->name];
    memcpy(name, k->name, sizeof name);
    snprintf(k->name, sizeof k->name, "kernel");
    g->work.n = 0;
    dc_nest_print(k, &g->work);
    memcpy(k->name, name, sizeof name);
    return g->work.s;
}

static bool is_taken(const dc_codegen *g, const char *name)
{
    for (uint32_t i = 0; i < g->entry.n; i++)
        if (strcmp(g->entry.at[i].kernel->name, name) == 0)
            return true;
    return false;
}

/* Entries of a program need names of their own: E_64_128, then E_64_128_v2. */
static void name_apart(const dc_codegen *g, dc_kernel *k)
{
    char base[sizeof k->name];
    memcpy(base, k->name, sizeof base);
    for (int n = 2; is_taken(g, k->name); n++)
        snprintf(k->name, sizeof k->name, "%.50s_v%d", base, n);
}

uint32_t dc_codegen_add(dc_codegen *g, dc_kernel *k)
{
    const char *text = text_without_name(g, k);
    for (uint32_t i = 0; i < g->entry.n; i++)
        if (strcmp(g->entry.at[i].text, text) == 0) {
            dc_kernel_free(k);
            return i;
        }
    name_apart(g, k);
    text = dc_arena_strdup(&g->mem, text);
    DC_PUSH(g->entry, ((dc_entry){.kernel = k, .text = text, .grid = 1}));
    return g->entry.n - 1;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void log_nest(dc_codegen *g, dc_job *j, dc_kernel *k, const char *when)
{
    char heading[160];
    if (!dc_log_on(j->log, DC_CH_KERNEL))
        return;
    snprintf(heading, sizeof heading, "%s, %s", k->name, when);
    g->work.n = 0;
    dc_nest_print(k, &g->work);
    dc_log_text(j->log, DC_CH_KERNEL, heading, g->work.s);
}

static void log_moves(dc_job *j, const dc_kernel *k)
{
    for (uint32_t i = 0; i < k->moves.n; i++)
        dc_logf(j->log, DC_CH_KERNEL, "  move %s", k->moves.at[i]);
}

static int64_t grid_of(const dc_kernel *k)
{
    for (const dc_stmt *s = k->root; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP && k->axis.at[s->axis].kind == DC_AXIS_GRID)
            return k->axis.at[s->axis].extent;
    return 1;
}

dc_status dc_codegen_schedule(dc_codegen *g, dc_job *j, const dc_target *t)
{
    for (uint32_t i = 0; i < g->entry.n; i++) {
        dc_entry *e = &g->entry.at[i];
        log_nest(g, j, e->kernel, "as lowered");
        if (j->opt->check >= 1)
            DC_TRY(dc_nest_check(j, e->kernel));
        DC_TRY(dc_schedule(j, e->kernel, t, (int)j->opt->opt));
        log_moves(j, e->kernel);
        log_nest(g, j, e->kernel, "scheduled");
        if (j->opt->check >= 1)
            DC_TRY(dc_nest_check(j, e->kernel));
        e->grid = grid_of(e->kernel);
    }
    return DC_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void log_flat(dc_codegen *g, dc_job *j, const dc_flat *f)
{
    if (!dc_log_on(j->log, DC_CH_FLAT))
        return;
    g->work.n = 0;
    dc_flat_print(f, &g->work);
    dc_log_text(j->log, DC_CH_FLAT, f->name, g->work.s);
}

dc_status dc_codegen_render(dc_codegen *g, dc_job *j, const dc_target *t)
{
    if (g->entry.n == 0)
        return DC_OK;
    const dc_flat **flat = DC_NEW_ARRAY(&g->mem, const dc_flat *, g->entry.n);
    for (uint32_t i = 0; i < g->entry.n; i++) {
        dc_entry *e = &g->entry.at[i];
        DC_TRY(dc_flatten(j, e->kernel, &e->flat)); /* runs the passes, and verifiers if asked */
        flat[i] = e->flat;
        log_flat(g, j, e->flat);
    }
    g->dialect = t->dialect;
    DC_TRY(dc_render(j, flat, g->entry.n, t, &g->text));
    dc_log_text(j->log, DC_CH_SRC, "program", g->text.s);
    return DC_OK;
}
