#include "jit/compile/graph_passes.h"

#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/attention.h"
#include "jit/rewrite/conv_layout.h"
#include "jit/rewrite/disjoint_sum.h"
#include "jit/rewrite/fft_stages.h"
#include "jit/rewrite/loops.h"
#include "jit/rewrite/rules.h"
#include "jit/rewrite/running.h"

/* Bits by dc_rewrite_of. */
typedef enum scope { FUNCTION = 1, PART = 2 | 4, BODY = 1 | 4 } scope;
typedef enum devices { ANY, CPU, SIMT, FAST } devices; /* FAST is of math */

/* The device, if it runs groups of threads, else NULL. */
static const dc_target *groups_of(const dc_graph_passes *g)
{
    return g->env->target->simt ? g->env->target : NULL;
}

/* ---- the passes ------------------------------------------------------------------------------- */

static const dc_func *simplify(const dc_graph_passes *g, const dc_func *f)
{
    DC_UNUSED(g);
    return dc_simplify(f);
}

/* What has left a body, or been inlined, may be simpler now. */
static const dc_func *loops(const dc_graph_passes *g, const dc_func *f)
{
    const dc_target *t = g->env->target;
    const bool lays_out = g->env->opt.opt >= 2 && !dc_skips(g->env->skip, DC_STAGE_layout);
    const dc_loop_sizes sizes = {.vector_bytes = t->simt || !lays_out ? 0 : t->vector_bytes,
                                 .panel_bytes = DC_TUNE_LOOP_PANEL_BYTES,
                                 .panel_rows = DC_TUNE_LOOP_PANEL_ROWS,
                                 .panel_work = DC_TUNE_LOOP_PANEL_WORK,
                                 .stream_bytes = DC_TUNE_LOOP_STREAM_BYTES,
                                 .stream_work = DC_TUNE_LOOP_STREAM_WORK,
                                 .stack_bytes = t->simt ? 0 : DC_TUNE_LOOP_CACHED_BYTES,
                                 .chunk_bytes = DC_TUNE_LOOP_CHUNK_BYTES,
                                 .chunk_rows = DC_TUNE_LOOP_CHUNK_ROWS};
    const dc_func *made = dc_loops(g->j, f, &sizes);
    return made != f && !dc_skips(g->env->skip, DC_STAGE_simplify) ? dc_simplify(made) : made;
}

static const dc_func *attention(const dc_graph_passes *g, const dc_func *f)
{
    const dc_func *made = dc_attention_rewrite(&g->j->scratch, f);
    const dc_func *split = made != NULL ? dc_attention_split(&g->j->scratch, made) : NULL;
    return split != NULL ? split : made;
}

static const dc_func *conv_layout(const dc_graph_passes *g, const dc_func *f)
{
    return dc_conv_layout(&g->j->scratch, f, groups_of(g));
}

static const dc_func *rules(const dc_graph_passes *g, const dc_func *f)
{
    return dc_rules_apply(&g->j->scratch, f, groups_of(g));
}

static const dc_func *running(const dc_graph_passes *g, const dc_func *f)
{
    return dc_running_rewrite(g->j, f);
}

static const dc_func *fft_stages(const dc_graph_passes *g, const dc_func *f)
{
    return dc_fft_stages(&g->j->scratch, f, groups_of(g) == NULL);
}

static const dc_func *disjoint_sum(const dc_graph_passes *g, const dc_func *f)
{
    return dc_disjoint_sum(&g->j->scratch, f);
}

/* ---- the list --------------------------------------------------------------------------------- */

enum { DC_STAGE_always = DC_STAGE__COUNT };

static const struct pass {
    const dc_func *(*run)(const dc_graph_passes *g, const dc_func *f); /* NULL: f stays */
    scope of;
    devices on, math;
    unsigned level, stage;
} passes[] = {
#define PASS(id, of, on, level, math, stage, help) {id, of, on, math, level, DC_STAGE_##stage},
#include "jit/rewrite/passes.def"
};

static bool applies(const dc_graph_passes *g, const struct pass *p, dc_rewrite_of what)
{
    const dc_env *env = g->env;
    return (p->of >> what & 1) != 0 && env->opt.opt >= p->level &&
           (p->on == ANY || (p->on == SIMT) == env->target->simt) &&
           (p->math == ANY || !dc_opts_math(&env->opt, "strict")) &&
           (p->stage == DC_STAGE_always || !dc_skips(env->skip, (dc_stage)p->stage));
}

dc_status dc_graph_passes_run(const dc_graph_passes *g, dc_rewrite_of what, const dc_func **fn)
{
    for (size_t i = 0; i < DC_COUNTOF(passes); i++) {
        if (!applies(g, &passes[i], what))
            continue;
        const dc_func *made = passes[i].run(g, *fn);
        if (made == NULL || made == *fn)
            continue;
        *fn = made;
        if (g->env->opt.check >= 1)
            DC_TRY(dc_func_check(g->j, made));
    }
    return DC_OK;
}
