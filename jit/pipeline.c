/*
 * Compilation, stage by stage: dc_pipeline_compile below is the table of contents. Each stage can
 * be looked at (DEEPC_DEBUG) and, with DEEPC_CHECK, is verified before the next one begins.
 */
#include "core/gtext.h"
#include "core/simplify.h"
#include "jit/codegen.h"
#include "jit/guard.h"
#include "jit/layout.h"
#include "jit/layout_conv.h"
#include "jit/limit.h"
#include "jit/lower.h"
#include "jit/plan.h"
#include "jit/recall.h"
#include "jit/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NO_ENTRY UINT32_MAX

typedef struct pipeline {
    const dc_env *env;
    dc_job *j;
    dc_exec *e;
    dc_counts *counts;
    const dc_func *fn; /* simplified */
    dc_groups groups;
    dc_kernel **kernel; /* by group, as lowered; NULL once codegen has taken it */
    uint32_t nkernel;
    uint32_t *entry_of;       /* by group, NO_ENTRY where nothing is launched */
    dc_item_fact *group_fact; /* by group */
    uint64_t *cost_ns;        /* by group: a guess, for one worker */
    dc_plan plan;
    dc_codegen gen;
    dc_text text; /* of logs */
} pipeline;

static void release_pipeline(void *what)
{
    pipeline *p = what;
    for (uint32_t g = 0; g < p->nkernel; g++)
        if (p->kernel[g] != NULL)
            dc_kernel_free(p->kernel[g]);
    dc_codegen_free(&p->gen);
    dc_text_free(&p->text);
}

static void log_text(pipeline *p, dc_channel channel)
{
    if (p->text.n > 0)
        dc_log_text(p->j->log, channel, p->e->desc.name, p->text.s);
    p->text.n = 0;
}

/* ---- graph ----------------------------------------------------------------------------------- */

void dc_pipeline_log_graph(dc_job *j, const char *name, const dc_func *fn)
{
    if (!dc_log_on(j->log, DC_CH_GRAPH))
        return;
    dc_text *text = dc_job_text(j);
    dc_func_print(fn, text);
    dc_log_text(j->log, DC_CH_GRAPH, name, text->s);
    dc_job_text_end(j, text);
}

static uint64_t live_nodes(pipeline *p)
{
    const bool *live = dc_func_live(p->fn, &p->j->scratch);
    uint64_t n = 0;
    for (dc_ref r = 1; r < p->fn->node.n; r++)
        n += live[r];
    return n;
}

static bool skips(const pipeline *p, dc_stage stage)
{
    return dc_skips(p->env->skip, stage);
}

static dc_status simplify(pipeline *p)
{
    p->fn = p->e->desc.fn;
    if (!skips(p, DC_STAGE_simplify))
        p->fn = dc_simplify(p->fn);
    if (p->env->opt.opt >= 2 && !skips(p, DC_STAGE_layout)) {
        if (strcmp(p->env->opt.math, "strict") != 0)
            p->fn = dc_layout_conv(&p->j->scratch, p->fn);
        p->fn = dc_layout(&p->j->scratch, p->fn);
    }
    if (p->env->opt.check >= 1)
        DC_TRY(dc_func_check(p->j, p->fn));
    p->e->info.nodes = live_nodes(p);
    dc_pipeline_log_graph(p->j, p->e->desc.name, p->fn);
    return DC_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void print_refs(const uint32_t *number, const dc_ref *at, uint32_t n, dc_text *out)
{
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, "%s%%%u", i > 0 ? ", " : " ", number[at[i]]);
}

static void log_groups(pipeline *p)
{
    if (!dc_log_on(p->j->log, DC_CH_FUSE))
        return;
    const uint32_t *number = dc_func_numbers(p->fn, &p->j->scratch);
    for (uint32_t g = 0; g < p->groups.n; g++) {
        const dc_group *x = &p->groups.at[g];
        const dc_type t = dc_node_type(p->fn, x->out[0]);
        char type[DC_TYPE_TEXT];
        dc_type_print(&t, type, sizeof type);
        dc_text_printf(&p->text, "group %u %s:", g, type);
        print_refs(number, x->out, x->nout, &p->text);
        dc_text_puts(&p->text, " <-");
        print_refs(number, x->in, x->nin, &p->text);
        for (uint32_t i = 0; i < x->nreduce; i++)
            dc_text_printf(&p->text, "; %s %%%u",
                           dc_op_row_of(dc_node_at(p->fn, x->reduce[i])->op)->name,
                           number[x->reduce[i]]);
        if (x->by_rows)
            dc_text_puts(&p->text, "; by rows");
        if (x->nsum > 0) {
            dc_text_printf(&p->text, ", in %" PRId64 " bands of which are summed", x->bands);
            print_refs(number, x->sum, x->nsum, &p->text);
        }
        if (x->nkept > 0) {
            dc_text_puts(&p->text, ", keeps");
            print_refs(number, x->kept, x->nkept, &p->text);
        }
        dc_text_puts(&p->text, "\n");
    }
    log_text(p, DC_CH_FUSE);
}

/* Some OpenCL devices have no f64. */
static dc_status refuse_f64(pipeline *p)
{
    const bool *live = dc_func_live(p->fn, &p->j->scratch);
    for (dc_ref r = 1; r < p->fn->node.n && p->env->target->no_f64; r++)
        if (live[r] && dc_node_at(p->fn, r)->dtype == DC_F64)
            return dc_fail(p->j, DC_ERR_DTYPE,
                           &(dc_fact){.op = p->e->desc.name,
                                      .type = {dc_node_type(p->fn, r)},
                                      .word = {"f32 (this device has no f64)"}});
    return DC_OK;
}

static dc_status fuse(pipeline *p)
{
    DC_TRY(refuse_f64(p));
    const int level = skips(p, DC_STAGE_fuse) ? 0 : (int)p->env->opt.opt;
    DC_TRY(dc_fuse_for(p->j, &p->j->scratch, p->fn, level, p->env->target, &p->groups));
    log_groups(p);
    return DC_OK;
}

/* Adds the script lines of node r to f, until there are three. */
static void add_lines(const dc_func *fn, dc_ref r, dc_item_fact *f)
{
    for (uint32_t o = dc_node_at(fn, r)->origin; o != 0; o = fn->origins.at[o].next) {
        const char *where = fn->origins.at[o].where;
        for (int i = 0; i < 3 && where != NULL; i++) {
            if (f->where[i] != NULL && strcmp(f->where[i], where) == 0)
                break;
            if (f->where[i] == NULL) {
                f->where[i] = where;
                break;
            }
        }
    }
}

/* Lines of everything computed inside group g: from its outputs down to what it reads. */
static void find_lines(pipeline *p, uint32_t g, uint32_t *seen, dc_item_fact *f)
{
    const dc_group *x = &p->groups.at[g];
    DC_VEC(dc_ref) todo = {0};
    for (uint32_t i = 0; i < x->nout; i++)
        DC_PUSH_IN(&p->j->scratch, todo, x->out[i]);
    while (todo.n > 0) {
        const dc_ref r = todo.at[--todo.n];
        const dc_node *n = dc_node_at(p->fn, r);
        const uint32_t home = p->groups.group_of[r];
        if (seen[r] == g + 1 || n->op == DC_OP_PARAM || (home != DC_NO_GROUP && home != g))
            continue;
        seen[r] = g + 1;
        add_lines(p->fn, r, f);
        for (int i = 0; i < n->nin; i++)
            DC_PUSH_IN(&p->j->scratch, todo, n->in[i]);
    }
}

static bool is_empty(const pipeline *p, uint32_t group)
{
    return dc_node_count(dc_node_at(p->fn, p->groups.at[group].out[0])) == 0;
}

/* On one core, at 8 GFLOP/s and 8 GB/s: vector code is up to thirty times as fast. */
static uint64_t guess_cost(const dc_item_fact *f)
{
    return 1 + ((uint64_t)f->flops + (uint64_t)f->bytes) / 8;
}

static dc_status lower(pipeline *p)
{
    dc_arena *a = &p->j->scratch;
    uint32_t *seen = DC_NEW_ARRAY(a, uint32_t, p->fn->node.n);
    p->kernel = DC_NEW_ARRAY(a, dc_kernel *, p->groups.n);
    p->entry_of = DC_NEW_ARRAY(a, uint32_t, p->groups.n);
    p->group_fact = DC_NEW_ARRAY(a, dc_item_fact, p->groups.n);
    p->cost_ns = DC_NEW_ARRAY(a, uint64_t, p->groups.n);
    p->nkernel = p->groups.n;
    for (uint32_t g = 0; g < p->groups.n; g++) {
        if (is_empty(p, g))
            continue;
        DC_TRY(dc_lower(p->j, &p->groups, g, &p->kernel[g]));
        p->group_fact[g].flops = p->kernel[g]->flops;
        p->group_fact[g].bytes = p->kernel[g]->bytes;
        p->cost_ns[g] = guess_cost(&p->group_fact[g]);
        find_lines(p, g, seen, &p->group_fact[g]);
    }
    return DC_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static bool in_place(void *ctx, uint32_t group, uint32_t out, uint32_t in)
{
    const pipeline *p = ctx;
    if (skips(p, DC_STAGE_donate))
        return false;
    return dc_lower_in_place(p->kernel[group], &p->groups.at[group], out, in);
}

static dc_status plan(pipeline *p)
{
    const dc_plan_in in = {.groups = &p->groups,
                           .desc = &p->e->desc,
                           .in_place = in_place,
                           .ctx = p,
                           .cost_ns = p->cost_ns,
                           .cache = p->env->target->l2,
                           .bundles = p->env->target->bundles && !skips(p, DC_STAGE_bundle),
                           .guard = p->env->opt.check >= 2 ? DC_GUARD_BYTES : 0,
                           .no_reuse = p->e->desc.no_reuse || skips(p, DC_STAGE_reuse)};
    p->e->guard = in.guard;
    DC_TRY(dc_plan_make(p->j, &p->j->scratch, &in, &p->plan));
    return dc_limit_plan(p->j, &p->e->desc, p->fn, &p->plan);
}

static const char *label_of(const void *ctx, uint32_t group)
{
    const pipeline *p = ctx;
    return p->gen.entry.at[p->entry_of[group]].kernel->name;
}

static void log_plan(pipeline *p)
{
    if (!dc_log_on(p->j->log, DC_CH_PLAN))
        return;
    dc_plan_print(&p->plan, &p->groups, label_of, p, &p->text);
    log_text(p, DC_CH_PLAN);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static void collect(pipeline *p)
{
    for (uint32_t g = 0; g < p->nkernel; g++) {
        p->entry_of[g] = NO_ENTRY;
        if (p->kernel[g] != NULL)
            dc_stream_mark(p->kernel[g], &p->groups.at[g], &p->plan, p->env->target);
        if (p->kernel[g] != NULL)
            p->entry_of[g] = dc_codegen_add(&p->gen, p->kernel[g]);
        p->kernel[g] = NULL;
    }
    log_plan(p);
}

static dc_status compile(pipeline *p)
{
    dc_exec *e = p->e;
    const uint32_t n = p->gen.entry.n;
    e->kernel = DC_NEW_ARRAY(&e->mem, dc_compiled *, n);
    e->nkernel = n; /* what is not NULL has to be released */
    return dc_codegen_compile(&p->gen, p->j, e->kernel, p->counts);
}

/* ---- items ----------------------------------------------------------------------------------- */

static dc_bind bind_place(const pipeline *p, dc_place at)
{
    const dc_exec *e = p->e;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE: /* no element of it is ever read */
        return (dc_bind){DC_SLOT_BLOCK, 0};
    case DC_PLACE_BLOCK:
        return (dc_bind){DC_SLOT_BLOCK, e->block_at[at.index]};
    case DC_PLACE_FREE:
        return (dc_bind){dc_slot_free(at.index), 0};
    case DC_PLACE_CELL:
        return (dc_bind){dc_slot_cell(e, at.index), 0};
    case DC_PLACE_RESULT:
        return (dc_bind){dc_slot_result(e, at.index), 0};
    case DC_PLACE_TEMP:
        return (dc_bind){DC_SLOT_ARENA, p->plan.temp[at.index].offset};
    }
    DC_BUG("place of kind %d", at.kind);
}

static void launch_item(pipeline *p, uint32_t group, dc_item *item, dc_item_fact *fact)
{
    dc_exec *e = p->e;
    const dc_group *g = &p->groups.at[group];
    const uint32_t n = p->entry_of[group];
    const dc_entry *entry = &p->gen.entry.at[n];
    dc_bind *bind = DC_NEW_ARRAY(&e->mem, dc_bind, g->nout + g->nin);
    for (uint32_t i = 0; i < g->nout; i++)
        bind[i] = bind_place(p, p->plan.home[g->out[i]]);
    for (uint32_t i = 0; i < g->nin; i++)
        bind[g->nout + i] = bind_place(p, p->plan.home[g->in[i]]);
    *item = (dc_item){.kind = DC_ITEM_LAUNCH,
                      .program = dc_compiled_program(e->kernel[n]),
                      .entry = dc_compiled_entry(e->kernel[n]),
                      .grid = entry->launch.positions,
                      .threads = entry->launch.threads,
                      .scratch = entry->flat->scratch,
                      .cost_ns = p->cost_ns[group],
                      .nbind = g->nout + g->nin,
                      .bind = bind,
                      .label = dc_arena_strdup(&e->mem, entry->kernel->name)};
    *fact = p->group_fact[group];
    fact->nout = g->nout;
}

static void copy_item(pipeline *p, const dc_step *s, dc_item *item)
{
    dc_bind *bind = DC_NEW_ARRAY(&p->e->mem, dc_bind, 2);
    bind[0] = bind_place(p, s->to);
    bind[1] = bind_place(p, s->from);
    *item = (dc_item){
        .kind = DC_ITEM_COPY, .nbind = 2, .bind = bind, .bytes = s->bytes, .label = "copy"};
    p->e->info.copies++;
}

static void check_item(pipeline *p, const dc_step *s, dc_item *item, dc_item_fact *fact)
{
    dc_bind *bind = DC_NEW_ARRAY(&p->e->mem, dc_bind, 1);
    bind[0] = bind_place(p, s->from);
    *item = (dc_item){.kind = DC_ITEM_CHECK, .nbind = 1, .bind = bind, .label = "check"};
    fact->check = s->index;
    fact->value = bind_place(p, s->to);
}

/* Of the node, or of what it is made of. */
static const char *line_of(const pipeline *p, dc_ref r)
{
    const dc_node *n = dc_node_at(p->fn, r);
    for (; n->origin == 0 && n->nin > 0; n = dc_node_at(p->fn, r))
        r = n->in[0];
    return n->origin != 0 ? p->fn->origins.at[n->origin].where : NULL;
}

static const char *times_of(dc_choice_way way)
{
    switch (way) {
    case DC_CHOICE_KERNELS:
        return "kernels";
    case DC_CHOICE_PLACES:
        return "positions";
    case DC_CHOICE_BROADCAST:
        return "places of a broadcast";
    case DC_CHOICE_ROW:
        return "steps of its row";
    }
    DC_BUG("a choice of way %d", way);
}

static void keep_choices(pipeline *p)
{
    dc_exec *e = p->e;
    e->nchoice = p->groups.nchoice;
    e->choice = DC_NEW_ARRAY(&e->mem, dc_exec_choice, e->nchoice);
    for (uint32_t i = 0; i < e->nchoice; i++) {
        const dc_choice *c = &p->groups.choice[i];
        const dc_type t = dc_node_type(p->fn, c->ref);
        const char *where = line_of(p, c->ref);
        char type[DC_TYPE_TEXT];
        dc_type_print(&t, type, sizeof type);
        e->choice[i] = (dc_exec_choice){.op = dc_op_row_of(dc_node_at(p->fn, c->ref)->op)->name,
                                        .type = dc_arena_strdup(&e->mem, type),
                                        .times_of = times_of((dc_choice_way)c->way),
                                        .where = where,
                                        .but = c->but,
                                        .stored = c->stored,
                                        .times = c->times,
                                        .again = dc_choice_again(c),
                                        .moved = dc_choice_moved(c)};
    }
}

/* For who looks at it later (jit/look.c). */
static void keep_kernels(pipeline *p)
{
    dc_exec *e = p->e;
    e->kept = DC_NEW_ARRAY(&e->mem, dc_kept, p->gen.entry.n);
    for (uint32_t i = 0; i < p->gen.entry.n; i++) {
        const dc_entry *from = &p->gen.entry.at[i];
        dc_kept *k = &e->kept[i];
        k->name = dc_arena_strdup(&e->mem, from->kernel->name);
        k->nest = dc_arena_strdup(&e->mem, from->text);
        k->nmove = from->kernel->moves.n;
        k->move = DC_NEW_ARRAY(&e->mem, const char *, k->nmove);
        for (uint32_t m = 0; m < k->nmove; m++)
            k->move[m] = dc_arena_strdup(&e->mem, from->kernel->moves.at[m]);
    }
    e->denied_why = DC_NEW_ARRAY(&e->mem, const char *, e->desc.ncell);
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        e->denied_why[c] = p->plan.denied_why[c];
}

static void make_items(pipeline *p)
{
    dc_exec *e = p->e;
    e->nitem = p->plan.nstep;
    e->item = DC_NEW_ARRAY(&e->mem, dc_item, e->nitem);
    e->fact = DC_NEW_ARRAY(&e->mem, dc_item_fact, e->nitem);
    for (uint32_t i = 0; i < e->nitem; i++) {
        const dc_step *s = &p->plan.step[i];
        switch ((dc_step_kind)s->kind) {
        case DC_STEP_GROUP:
            launch_item(p, s->index, &e->item[i], &e->fact[i]);
            break;
        case DC_STEP_COPY:
            copy_item(p, s, &e->item[i]);
            break;
        case DC_STEP_BUNDLE:
            e->item[i] = (dc_item){.kind = DC_ITEM_BUNDLE, .nbody = s->nbody, .label = "bundle"};
            break;
        case DC_STEP_CHECK:
            check_item(p, s, &e->item[i], &e->fact[i]);
            break;
        }
        dc_exec_set_deps(e, i, s->ndep, s->dep);
    }
    dc_exec_count_launches(e);
    e->untouched = p->plan.first_set;
    e->ntemp = p->plan.ntemp;
    e->temp = DC_NEW_ARRAY(&e->mem, dc_guarded, e->ntemp);
    for (uint32_t t = 0; t < e->ntemp; t++) {
        const dc_temp *x = &p->plan.temp[t];
        e->temp[t] = (dc_guarded){x->offset, x->bytes, x->first, x->last};
    }
    e->info.kernels = p->gen.entry.n;
    e->info.arena_bytes = p->plan.bytes;
    e->info.arena_lower_bound = p->plan.lower_bound;
    e->info.donated = p->plan.donated;
    e->info.denied = p->plan.denied;
}

static dc_status run_stages(pipeline *p)
{
    DC_TRY(simplify(p));                        /* graph to smaller graph */
    DC_TRY(fuse(p));                            /* graph to groups */
    DC_TRY(lower(p));                           /* group to naive nest */
    DC_TRY(plan(p));                            /* groups to steps, values to places */
    collect(p);                                 /* equal nests become one */
    DC_TRY(dc_codegen_schedule(&p->gen, p->j)); /* nest to fast nest */
    DC_TRY(dc_codegen_flatten(&p->gen, p->j));  /* nest to flat form */
    DC_TRY(compile(p));                         /* flat form to text to machine code */
    make_items(p);                              /* steps to what a device records */
    keep_kernels(p);
    keep_choices(p);
    return DC_OK;
}

static dc_status run(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n)
{
    pipeline *p = DC_NEW(&j->scratch, pipeline); /* not on the stack: released when unwinding */
    p->env = env;
    p->j = j;
    p->e = e;
    p->counts = n;
    p->gen.env = env;
    dc_job_defer(j, release_pipeline, p);
    const dc_status status = run_stages(p);
    dc_job_keep(j, p);
    release_pipeline(p);
    return status;
}

dc_status dc_pipeline_compile(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n)
{
    dc_cache_key key;
    const bool kept = dc_recall_key(env, j, e, &key);
    if (kept && dc_recall_find(env, j, e, key, n))
        return DC_OK;
    DC_TRY(run(env, j, e, n));
    if (kept)
        dc_recall_store(env, j, e, key);
    return DC_OK;
}
