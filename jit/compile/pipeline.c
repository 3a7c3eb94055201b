/*
 * Compilation, stage by stage: dc_pipeline_compile below is the table of contents. Each stage can
 * be looked at (DEEPC_DEBUG) and, with DEEPC_CHECK, is verified before the next one begins.
 */
#include "core/base/spans.h"
#include "core/host/host.h"
#include "core/ir/gtext.h"
#include "jit/compile/exec_cache.h"
#include "jit/compile/graph_passes.h"
#include "jit/compile/pipeline_impl.h"
#include "jit/exec/exec_bounds.h"
#include "jit/exec/exec_task.h"
#include "jit/exec/red_zone.h"
#include "jit/lower/base_offset.h"
#include "jit/lower/lower.h"
#include "jit/plan/memory_limit.h"
#include "jit/plan/residency.h"
#include "jit/rewrite/prologue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BODIES = 4096 }; /* each is compiled as often as it is named */

static void drop_parts(dc_compiling *p)
{
    for (uint32_t n = 0; n < p->part.n; n++) {
        const dc_part *x = p->part.at[n];
        for (uint32_t g = 0; g < x->nkernel; g++)
            if (x->kernel[g] != NULL)
                dc_kernel_free(x->kernel[g]);
    }
    p->part.n = p->nwhole = 0;
}

static void release_pipeline(void *what)
{
    dc_compiling *p = what;
    drop_parts(p);
    dc_codegen_free(&p->gen);
    dc_text_free(&p->text);
}

static void log_text(dc_compiling *p, dc_channel channel)
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

static uint64_t live_nodes(dc_compiling *p)
{
    const bool *live = dc_func_live(p->fn, &p->j->scratch);
    uint64_t n = 0;
    for (dc_ref r = 1; r < p->fn->node.n; r++)
        n += live[r];
    return n;
}

static bool skips(const dc_compiling *p, dc_stage stage)
{
    return dc_skips(p->env->skip, stage);
}

/* Where the compiler may add functions and bodies, while others read the description. */
static const dc_func *own_copy(dc_exec *e)
{
    if (e->work == NULL)
        e->work = dc_module_beside(e->module);
    return dc_func_clone(e->work, e->desc.fn, NULL);
}

static dc_status rewrite(dc_compiling *p)
{
    p->fn = own_copy(p->e);
    DC_TRY(dc_graph_passes_run(&(dc_graph_passes){p->env, p->j}, DC_REWRITE_FUNCTION, &p->fn));
    p->e->info.nodes = live_nodes(p);
    return DC_OK;
}

static dc_status rewrite_part(dc_compiling *p, dc_part *x)
{
    return dc_graph_passes_run(&(dc_graph_passes){p->env, p->j}, DC_REWRITE_PART, &x->fn);
}

/* ---- prologue -------------------------------------------------------------------------------- */

dc_part *dc_pipeline_add_part(dc_compiling *p, const dc_func *fn, const dc_exec_desc *desc)
{
    dc_part *x = DC_NEW(&p->j->scratch, dc_part);
    *x = (dc_part){.p = p, .fn = fn, .desc = *desc};
    DC_PUSH_IN(&p->j->scratch, p->part, x);
    return x;
}

static dc_part *add_whole(dc_compiling *p, const dc_func *fn)
{
    p->nwhole++;
    return dc_pipeline_add_part(p, fn, &p->e->desc);
}

/* Where derived values lie, one behind the other. */
static void lay_derived(dc_compiling *p, const dc_func *prologue, uint32_t n)
{
    dc_exec *e = p->e;
    size_t at = 0;
    e->nderived = n;
    e->derived = DC_NEW_ARRAY(&e->mem, dc_derived_value, n);
    for (uint32_t i = 0; i < n; i++) {
        const dc_type t = dc_node_type(prologue, prologue->result.at[i]);
        e->derived[i].offset = at;
        e->derived[i].bytes = dc_type_bytes(&t);
        at += dc_align_up(e->derived[i].bytes, DC_PLAN_ALIGN);
    }
    p->derived_bytes = at;
}

static void keep_reads(dc_exec *e, const bool *reads)
{
    const uint32_t n = e->desc.nfree + e->desc.ncell;
    e->derived_from = DC_NEW_ARRAY(&e->mem, bool, n);
    for (uint32_t i = 0; i < n; i++)
        e->derived_from[i] = reads[i];
}

/* One part or two. `whole`: it is computed at each call, whatever it depends on. */
static void split(dc_compiling *p, bool whole)
{
    dc_exec *e = p->e;
    dc_split_func s;
    drop_parts(p);
    lay_derived(p, NULL, 0);
    if (whole || e->desc.once || p->env->opt.opt < 2 || skips(p, DC_STAGE_prologue) ||
        !dc_prologue_split(&p->j->scratch, &e->desc, p->fn, p->env->target->simt, &s)) {
        add_whole(p, p->fn);
        return;
    }
    dc_part *first = add_whole(p, s.prologue);
    first->is_prologue = true;
    first->desc.nresult = s.n;
    first->desc.nset = first->desc.ncheck = 0;
    add_whole(p, s.body)->desc.ncell += s.n;
    lay_derived(p, s.prologue, s.n);
    keep_reads(e, s.reads);
}

static void log_graphs(dc_compiling *p)
{
    char name[120];
    if (!dc_log_on(p->j->log, DC_CH_GRAPH))
        return;
    for (uint32_t n = 0; n < p->part.n; n++) {
        const dc_part *x = p->part.at[n];
        snprintf(name, sizeof name, "%s%s", p->e->desc.name, x->is_prologue ? ", prologue" : "");
        dc_pipeline_log_graph(p->j, name, x->fn);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void print_refs(const uint32_t *number, const dc_ref *at, uint32_t n, dc_text *out)
{
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, "%s%%%u", i > 0 ? ", " : " ", number[at[i]]);
}

static void log_groups(dc_compiling *p, const dc_part *part)
{
    if (!dc_log_on(p->j->log, DC_CH_FUSE))
        return;
    const uint32_t *number = dc_func_numbers(part->fn, &p->j->scratch);
    for (uint32_t g = 0; g < part->groups.n; g++) {
        const dc_group *x = &part->groups.at[g];
        const dc_type t = dc_node_type(part->fn, x->out[0]);
        char type[DC_TYPE_TEXT];
        dc_type_print(&t, type, sizeof type);
        dc_text_printf(&p->text, "group %u %s:", g, type);
        print_refs(number, x->out, x->nout, &p->text);
        dc_text_puts(&p->text, " <-");
        print_refs(number, x->in, x->nin, &p->text);
        for (uint32_t i = 0; i < x->nreduce; i++)
            dc_text_printf(&p->text, "; %s %%%u",
                           dc_op_row_of(dc_node_at(part->fn, x->reduce[i])->op)->name,
                           number[x->reduce[i]]);
        if (x->row_wise)
            dc_text_puts(&p->text, "; row-wise");
        if (x->npartial > 0) {
            dc_text_printf(&p->text, ", in %" PRId64 " row blocks with sums", x->blocks);
            print_refs(number, x->partial, x->npartial, &p->text);
        }
        if (x->nbuffered > 0) {
            dc_text_puts(&p->text, ", buffers");
            print_refs(number, x->buffered, x->nbuffered, &p->text);
        }
        dc_text_puts(&p->text, "\n");
    }
    log_text(p, DC_CH_FUSE);
}

/* Some OpenCL devices have no f64. */
static dc_status refuse_f64(dc_compiling *p, const dc_func *fn)
{
    const bool *live = dc_func_live(fn, &p->j->scratch);
    for (dc_ref r = 1; r < fn->node.n && p->env->target->no_f64; r++)
        if (live[r] && dc_node_at(fn, r)->dtype == DC_F64)
            return dc_fail(p->j, DC_ERR_DTYPE,
                           &(dc_fact){.op = p->e->desc.name,
                                      .type = {dc_node_type(fn, r)},
                                      .word = {"f32 (this device has no f64)"}});
    return DC_OK;
}

static dc_status fuse(dc_compiling *p, dc_part *x)
{
    const int level = skips(p, DC_STAGE_fuse) ? 0 : (int)p->env->opt.opt;
    DC_TRY(dc_fuse_for(p->j, &p->j->scratch, x->fn, level, p->env->target, &x->groups));
    dc_lower_prepare(&x->groups, &p->j->scratch, p->env->target->buffers);
    log_groups(p, x);
    return DC_OK;
}

/* Adds the script lines and layers of node r to f, where there is room. */
static void add_lines(const dc_func *fn, dc_ref r, dc_command_fact *f)
{
    for (uint32_t o = dc_node_at(fn, r)->origin; o != 0; o = fn->origins.at[o].next) {
        dc_words_add(f->where, DC_COUNTOF(f->where), fn->origins.at[o].where);
        dc_words_add(f->layer, DC_COUNTOF(f->layer), fn->origins.at[o].path);
    }
}

/* Lines of everything computed inside group g: from its outputs down to what it reads. */
static void find_lines(const dc_part *p, uint32_t g, uint32_t *seen, dc_command_fact *f)
{
    dc_arena *a = &p->p->j->scratch;
    const dc_group *x = &p->groups.at[g];
    DC_VEC(dc_ref) todo = {0};
    for (uint32_t i = 0; i < x->nout; i++)
        DC_PUSH_IN(a, todo, x->out[i]);
    while (todo.n > 0) {
        const dc_ref r = todo.at[--todo.n];
        const dc_node *n = dc_node_at(p->fn, r);
        const uint32_t home = p->groups.group_of[r];
        if (seen[r] == g + 1 || n->op == DC_OP_PARAM || (home != DC_NO_GROUP && home != g))
            continue;
        seen[r] = g + 1;
        add_lines(p->fn, r, f);
        for (int i = 0; i < n->nin; i++)
            DC_PUSH_IN(a, todo, n->in[i]);
    }
}

static bool is_empty(const dc_part *p, uint32_t group)
{
    return dc_node_count(dc_node_at(p->fn, p->groups.at[group].out[0])) == 0;
}

/* On one core, at 8 GFLOP/s and 8 GB/s: vector code is up to thirty times as fast. */
static uint64_t guess_cost(const dc_command_fact *f)
{
    const uint64_t ns = 1 + ((uint64_t)f->flops + (uint64_t)f->bytes) / 8;
    return ns < DC_COST_MOST ? ns : DC_COST_MOST;
}

static dc_status lower(dc_job *j, dc_part *x)
{
    dc_arena *a = &j->scratch;
    uint32_t *seen = DC_NEW_ARRAY(a, uint32_t, x->fn->node.n);
    x->kernel = DC_NEW_ARRAY(a, dc_kernel *, x->groups.n);
    x->entry_of = DC_NEW_ARRAY(a, uint32_t, x->groups.n);
    x->begin = DC_NEW_ARRAY(a, const size_t *, x->groups.n);
    x->group_fact = DC_NEW_ARRAY(a, dc_command_fact, x->groups.n);
    x->cost_ns = DC_NEW_ARRAY(a, uint64_t, x->groups.n);
    x->nkernel = x->groups.n;
    for (uint32_t g = 0; g < x->groups.n; g++) {
        if (x->control[g] != NULL && x->control[g]->is_host) {
            const dc_host_call *c = &x->control[g]->host;
            x->cost_ns[g] = dc_host_cost_ns(c);
            x->group_fact[g].bytes = (int64_t)(dc_type_bytes(&c->in[0]) + dc_type_bytes(&c->out));
            find_lines(x, g, seen, &x->group_fact[g]);
        }
        if (x->control[g] != NULL || is_empty(x, g) || x->groups.at[g].is_join)
            continue;
        DC_TRY(dc_lower(j, &x->groups, g, &x->kernel[g]));
        x->group_fact[g].flops = x->kernel[g]->flops;
        x->group_fact[g].bytes = x->kernel[g]->bytes;
        x->cost_ns[g] = guess_cost(&x->group_fact[g]);
        find_lines(x, g, seen, &x->group_fact[g]);
    }
    return DC_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static bool in_place(void *ctx, uint32_t group, uint32_t out, uint32_t in)
{
    const dc_part *x = ctx;
    if (skips(x->p, DC_STAGE_donate))
        return false;
    if (x->control[group] != NULL)
        return dc_pipeline_control_in_place(x, group, out, in);
    return dc_lower_in_place(x->kernel[group], &x->groups.at[group], out, in);
}

static size_t work(void *ctx, uint32_t group)
{
    return dc_pipeline_work(ctx, group);
}

static dc_status plan(dc_compiling *p, dc_part *x)
{
    const dc_plan_in in = {.groups = &x->groups,
                           .desc = &x->desc,
                           .in_place = in_place,
                           .work = work,
                           .ctx = x,
                           .cost_ns = x->cost_ns,
                           .cache = p->env->target->l2,
                           .bundles = p->env->target->bundles && !skips(p, DC_STAGE_bundle),
                           .simt = p->env->target->simt,
                           .guard = p->env->opt.check >= 2 ? DC_RED_ZONE_BYTES : 0,
                           .no_reuse = p->e->desc.no_reuse || skips(p, DC_STAGE_reuse)};
    p->e->guard = in.guard;
    return dc_plan_make(p->j, &p->j->scratch, &in, &x->plan);
}

/* The bodies of its loops and branches first: how much memory they need is part of its plan. */
static dc_status plan_part(dc_compiling *p, dc_part *x)
{
    const uint32_t first = p->part.n;
    DC_TRY(fuse(p, x)); /* graph to groups */
    DC_TRY(dc_pipeline_add_bodies(p, x));
    for (uint32_t n = first, end = p->part.n; n < end; n++) {
        DC_TRY(refuse_f64(p, p->part.at[n]->fn));
        DC_TRY(plan_part(p, p->part.at[n]));
    }
    DC_TRY(lower(p->j, x)); /* group to naive nest */
    return plan(p, x);      /* groups to steps, values to places */
}

static dc_status plan_parts(dc_compiling *p)
{
    for (uint32_t n = 0; n < p->nwhole; n++)
        DC_TRY(rewrite_part(p, p->part.at[n]));
    log_graphs(p);
    for (uint32_t n = 0; n < p->nwhole; n++)
        DC_TRY(plan_part(p, p->part.at[n]));
    return DC_OK;
}

static size_t arena_of(const dc_compiling *p)
{
    size_t most = 0;
    for (uint32_t n = 0; n < p->nwhole; n++)
        most = p->part.at[n]->plan.bytes > most ? p->part.at[n]->plan.bytes : most;
    return most;
}

/* In what the limit of memory leaves; else nothing is kept. */
static dc_status plan_within_limit(dc_compiling *p)
{
    split(p, false);
    DC_TRY(plan_parts(p));
    if (p->nwhole > 1 &&
        !dc_memory_limit_allows(p->j, &p->e->desc, p->fn, p->derived_bytes + arena_of(p))) {
        split(p, true);
        DC_TRY(plan_parts(p));
    }
    const dc_part *body = p->part.at[p->nwhole - 1];
    if (!p->env->device->ops->host)
        p->e->needs = dc_memory_needs_of(p->j, &p->e->mem, &body->desc, body->fn, &body->plan);
    return dc_memory_limit_plan(p->j, &body->desc, body->fn, &body->plan);
}

static const char *label_of(const void *ctx, uint32_t group)
{
    const dc_part *x = ctx;
    if (x->control[group] != NULL)
        return dc_pipeline_control_label(x->control[group]);
    return x->p->gen.entry.at[x->entry_of[group]].kernel->name;
}

static void log_plan(dc_compiling *p, const dc_part *x)
{
    if (!dc_log_on(p->j->log, DC_CH_PLAN))
        return;
    if (x->parent != NULL)
        dc_text_puts(&p->text, "body of a loop or a branch\n");
    else if (p->nwhole > 1)
        dc_text_puts(&p->text, x->is_prologue ? "prologue\n" : "body\n");
    dc_plan_print(&x->plan, &x->groups, label_of, x, &p->text);
    log_text(p, DC_CH_PLAN);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool same_place(dc_place a, dc_place b)
{
    return a.kind == b.kind && a.index == b.index && a.at == b.at;
}

/* What changes a part of a value in the memory of that value stores the part alone. */
static dc_status lower_in_place(dc_job *j, dc_part *x)
{
    x->in_part = DC_NEW_ARRAY(&j->scratch, bool, x->desc.ncell);
    for (uint32_t g = 0; g < x->nkernel; g++) {
        const dc_ref from = x->kernel[g] != NULL ? dc_lower_changes(&x->groups, g) : 0;
        const dc_place to = x->plan.home[x->groups.at[g].out[0]];
        if (from == 0 || !same_place(to, x->plan.home[from]))
            continue;
        if (to.kind == DC_PLACE_CELL)
            x->in_part[to.index] = true;
        dc_kernel_free(x->kernel[g]);
        x->kernel[g] = NULL;
        DC_TRY(dc_lower_updates(j, &x->groups, g, &x->kernel[g]));
        x->group_fact[g].flops = x->kernel[g]->flops;
        x->group_fact[g].bytes = x->kernel[g]->bytes;
        x->cost_ns[g] = guess_cost(&x->group_fact[g]);
    }
    return DC_OK;
}

/* Arguments that begin at any element, and elements of what a loop reads and writes. */
static void loosen(const dc_part *x, uint32_t group)
{
    const dc_group *g = &x->groups.at[group];
    for (uint32_t i = 0; i < g->nout + g->nin; i++) {
        const dc_ref r = i < g->nout ? g->out[i] : g->in[i - g->nout];
        dc_place at = x->plan.home[r];
        dc_buffer *b = &x->kernel[group]->buf.at[i];
        at.at = 0; /* of a piece; a kernel knows where it lies */
        if (!dc_pipeline_is_aligned(x, at))
            b->align = (uint8_t)dc_dtype_size((dc_dtype)b->dtype);
    }
}

/* Where kernels begin to read, and constants, are taken out of them where that makes them equal. */
static void make_equal(dc_compiling *p, dc_part *x)
{
    for (uint32_t g = 0; g < x->nkernel; g++) {
        if (x->kernel[g] == NULL)
            continue;
        loosen(x, g);
        if (!skips(p, DC_STAGE_offset))
            x->begin[g] = dc_base_offset_inputs(p->j, x->kernel[g]);
        dc_residency_mark(x->kernel[g], &x->groups.at[g], &x->plan, p->env->target);
    }
    if (!skips(p, DC_STAGE_lift))
        x->lifted = dc_lift_constants(p->j, x->kernel, x->nkernel, p->env->target->buffers);
}

static void collect(dc_compiling *p, dc_part *x)
{
    make_equal(p, x);
    for (uint32_t g = 0; g < x->nkernel; g++) {
        x->entry_of[g] = x->kernel[g] != NULL ? dc_codegen_add(&p->gen, x->kernel[g]) : DC_NO_ENTRY;
        x->kernel[g] = NULL;
    }
    log_plan(p, x);
}

static dc_status compile(dc_compiling *p)
{
    dc_exec *e = p->e;
    const uint32_t n = p->gen.nlaunched;
    e->kernel = DC_NEW_ARRAY(&e->mem, dc_compiled *, n);
    e->nkernel = n; /* what is not NULL has to be released */
    return dc_codegen_compile(&p->gen, p->j, e->kernel, p->counts);
}

static dc_status refuse_many_bodies(dc_compiling *p)
{
    const uint32_t n = dc_control_bodies(p->e->desc.fn);
    return n <= MOST_BODIES ? DC_OK
                            : dc_failf(p->j, DC_ERR_BUILD, p->e->desc.name,
                                       "more than %d bodies of loops and branches", MOST_BODIES);
}

/* A stage, of which a trace tells (core/base/spans.h); the next one begins. */
static void ended(const dc_compiling *p, uint64_t *begun, const char *stage)
{
    dc_span_end(p->j->log, *begun, DC_SPAN_COMPILE, stage);
    *begun = dc_span_begin(p->j->log);
}

/* To kernels that could be compiled, and what launches them. */
static dc_status make_kernels(dc_compiling *p)
{
    uint64_t at = dc_span_begin(p->j->log);
    DC_TRY(refuse_many_bodies(p));
    DC_TRY(rewrite(p)); /* graph to smaller graph */
    DC_TRY(refuse_f64(p, p->fn));
    ended(p, &at, "simplify");
    DC_TRY(plan_within_limit(
        p)); /* prologue and body; of each: groups, naive nests, steps and places */
    ended(p, &at, "fuse, lower, plan");
    for (uint32_t n = 0; n < p->part.n; n++)
        DC_TRY(lower_in_place(p->j, p->part.at[n])); /* again, where memory is shared */
    for (uint32_t n = 0; n < p->part.n; n++)
        collect(p, p->part.at[n]);              /* equal nests become one */
    DC_TRY(dc_codegen_schedule(&p->gen, p->j)); /* nest to fast nest */
    ended(p, &at, "schedule");
    DC_TRY(dc_codegen_flatten(&p->gen, p->j)); /* nest to flat form */
    dc_pipeline_launches(p);                   /* bundles to kernels that are joined */
    ended(p, &at, "flatten");
    return DC_OK;
}

static dc_status run_stages(dc_compiling *p)
{
    DC_TRY(make_kernels(p));
    uint64_t at = dc_span_begin(p->j->log);
    DC_TRY(compile(p)); /* flat form to text to machine code */
    ended(p, &at, "kernels");
    dc_pipeline_make_items(p); /* steps to what a device records */
    dc_pipeline_keep(p);
    return DC_OK;
}

static dc_compiling *begin(const dc_env *env, dc_job *j, dc_exec *e)
{
    dc_compiling *p =
        DC_NEW(&j->scratch, dc_compiling); /* not on the stack: released when unwinding */
    p->env = env;
    p->j = j;
    p->e = e;
    p->gen.env = env;
    dc_job_defer(j, release_pipeline, p);
    return p;
}

static void end(dc_compiling *p)
{
    dc_job_keep(p->j, p);
    release_pipeline(p);
}

static dc_status run(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n)
{
    dc_compiling *p = begin(env, j, e);
    p->counts = n;
    const dc_status status = run_stages(p);
    end(p);
    return status;
}

dc_status dc_pipeline_again(const dc_env *env, dc_job *j, dc_exec *e,
                            void (*look)(const dc_compiling *p, void *ctx), void *ctx)
{
    dc_compiling *p = begin(env, j, e);
    const dc_status status = make_kernels(p);
    if (status == DC_OK)
        look(p, ctx);
    end(p);
    return status;
}

static dc_status find_or_compile(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n)
{
    dc_cache_key key;
    const bool kept = dc_exec_cache_key(env, j, e, &key);
    const uint64_t begun = dc_span_begin(j->log);
    const bool found = kept && dc_exec_cache_find(env, j, e, key, n);
    dc_span_end(j->log, begun, DC_SPAN_COMPILE, "look in the cache");
    if (found)
        return DC_OK;
    if (e->task != NULL)
        atomic_store(&e->task->compiles, true);
    DC_TRY(run(env, j, e, n));
    if (kept)
        dc_exec_cache_store(env, j, e, key);
    return DC_OK;
}

/* Of each kernel that leaves threads without work. */
static void tell_of_idle(dc_job *j, const dc_exec *e)
{
    for (uint32_t k = 0; k < e->nkernel; k++) {
        dc_exec_kernel x;
        dc_exec_kernel_of(e, k, &x);
        if (x.idle > 0)
            dc_logf(j->log, DC_CH_NOTE,
                    "jit: %s has %" PRId64
                    " work item%s for %u threads, and %.3g million operations",
                    x.name, x.idle, x.idle == 1 ? "" : "s", (unsigned)e->rt->device->threads,
                    (double)x.flops / 1e6);
    }
}

dc_status dc_pipeline_compile(const dc_env *env, dc_job *j, dc_exec *e, dc_counts *n)
{
    DC_TRY(find_or_compile(env, j, e, n));
    if (env->opt.check >= 1)
        tell_of_idle(j, e);
    dc_pipeline_name_exchanges(e, j);
    return DC_OK;
}
