/*
 * The stages of a compilation once more, to look at what they decided: a stand-in for the executable, with a copy of its
 * graph, goes through all of them but the compiler. What the commands are is compared with those that there are;
 * where they are others (an executable that was tuned since, a limit of memory that was another one) the graph alone is
 * told.
 */
#include "core/base/extent.h"
#include "core/ir/control.h"
#include "core/ir/flops.h"
#include "jit/compile/compile_job.h"
#include "jit/compile/exec_graph.h"
#include "jit/compile/pipeline_impl.h"

#include <string.h>

typedef struct looking {
    const dc_exec *e; /* the real one */
    dc_exec_graph *out;
    uint32_t *base; /* by part: its first command */
    uint32_t *seen; /* by ref, of the part at hand */
    uint32_t mark;  /* what the nodes of the command at hand have in it */
} looking;

/* ---- nodes of commands ----------------------------------------------------------------------- */

typedef DC_VEC(dc_ref) refs;

/* From the outputs of a group down to what it reads. */
static void add_group(const looking *a, const dc_part *x, uint32_t g, refs *all)
{
    dc_arena *scratch = &x->p->j->scratch;
    const dc_group *group = &x->groups.at[g];
    refs todo = {0};
    for (uint32_t i = 0; i < group->nout; i++)
        DC_PUSH_IN(scratch, todo, group->out[i]);
    while (todo.n > 0) {
        const dc_ref r = todo.at[--todo.n];
        const dc_node *n = dc_node_at(x->fn, r);
        const uint32_t home = x->groups.group_of[r];
        if (a->seen[r] == a->mark || n->op == DC_OP_PARAM || (home != DC_NO_GROUP && home != g))
            continue;
        a->seen[r] = a->mark;
        DC_PUSH_IN(scratch, *all, r);
        for (int i = 0; i < n->nin && group->control == 0; i++)
            DC_PUSH_IN(scratch, todo, n->in[i]);
    }
    if (group->control != 0 && a->seen[group->control] != a->mark) {
        a->seen[group->control] = a->mark;
        DC_PUSH_IN(scratch, *all, group->control);
    }
}

static void keep_command(looking *a, const dc_part *x, uint32_t part, uint32_t command,
                         const uint32_t *group, uint32_t ngroup)
{
    dc_exec_computed *to = &a->out->command[command];
    uint32_t *home = (uint32_t *)(uintptr_t)a->out->part[part].home;
    refs all = {0};
    a->mark++;
    for (uint32_t i = 0; i < ngroup; i++) {
        const dc_group *g = &x->groups.at[group[i]];
        for (uint32_t o = 0; o < g->nout; o++)
            home[g->out[o]] = command;
        add_group(a, x, group[i], &all);
    }
    dc_ref *node = DC_NEW_ARRAY(&a->out->mem, dc_ref, all.n);
    memcpy(node, all.at, all.n * sizeof *node);
    *to = (dc_exec_computed){part, all.n, node};
}

static void keep_step(looking *a, const dc_part *x, uint32_t part, uint32_t step)
{
    const dc_step *s = &x->plan.step[step];
    const dc_step_launches *l = &x->launches[step];
    const uint32_t first = a->base[part] + l->first;
    if (l->ncommand == 0)
        return;
    if (s->kind == DC_STEP_BUNDLE)
        for (uint32_t k = 0; k < l->n; k++)
            keep_command(a, x, part, first + k, l->at[k].group, l->at[k].n);
    else if (s->kind == DC_STEP_GROUP)
        keep_command(a, x, part, first + l->nunit - 1, &s->index, 1);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static uint32_t number_of(const dc_compiling *p, const dc_part *x)
{
    uint32_t n = 0;
    while (p->part.at[n] != x)
        n++;
    return n;
}

static void place_part(looking *a, const dc_compiling *p, uint32_t part, uint32_t base);

/* The bodies of a loop or a branch follow its head. */
static void place_bodies(looking *a, const dc_compiling *p, const dc_part *x, uint32_t base,
                         uint32_t step)
{
    const dc_step *s = &x->plan.step[step];
    const dc_control *c = s->kind == DC_STEP_GROUP ? x->control[s->index] : NULL;
    uint32_t at = base + x->launches[step].first + x->launches[step].nunit;
    for (int side = 0; c != NULL && !c->is_host && side < 2 && c->side[side] != NULL; side++) {
        place_part(a, p, number_of(p, c->side[side]), at);
        at += c->side[side]->ncommand;
    }
}

static void place_part(looking *a, const dc_compiling *p, uint32_t part, uint32_t base)
{
    const dc_part *x = p->part.at[part];
    a->base[part] = base;
    for (uint32_t i = 0; i < x->plan.nstep; i++)
        if (x->launches[i].ncommand > 0)
            place_bodies(a, p, x, base, i);
}

static dc_exec_part_kind kind_of(const dc_part *x)
{
    if (x->parent == NULL)
        return x->is_prologue ? DC_PART_PROLOGUE : DC_PART_CALL;
    const dc_control *c = x->parent->control[x->group];
    return c->is_loop ? DC_PART_LOOP : c->side[0] == x ? DC_PART_THEN : DC_PART_ELSE;
}

static void keep_part(looking *a, const dc_compiling *p, uint32_t part)
{
    const dc_part *x = p->part.at[part];
    uint32_t *home = DC_NEW_ARRAY(&a->out->mem, uint32_t, x->fn->node.n);
    for (dc_ref r = 0; r < x->fn->node.n; r++)
        home[r] = DC_EXEC_NONE;
    a->out->part[part] = (dc_exec_part){
        .kind = kind_of(x),
        .fn = x->fn,
        .live = dc_func_live(x->fn, &a->out->mem),
        .home = home,
        .nfree = x->desc.nfree,
        .ncell = x->desc.ncell,
        .nresult = x->desc.nresult,
        .nset = x->desc.nset,
        .parent = x->parent != NULL ? number_of(p, x->parent) : DC_EXEC_NONE,
        .control = x->parent != NULL ? x->parent->groups.at[x->group].control : 0,
    };
}

static void keep_nodes(looking *a, const dc_compiling *p, uint32_t part)
{
    const dc_part *x = p->part.at[part];
    a->seen = DC_NEW_ARRAY(&p->j->scratch, uint32_t, x->fn->node.n);
    a->mark = 0;
    for (uint32_t i = 0; i < x->plan.nstep; i++)
        keep_step(a, x, part, i);
}

static void keep_temps(looking *a, const dc_compiling *p, uint32_t part)
{
    const dc_part *x = p->part.at[part];
    for (uint32_t t = 0; t < x->plan.ntemp; t++) {
        const dc_temp *from = &x->plan.temp[t];
        const dc_where at = dc_pipeline_where(x, (dc_place){.kind = DC_PLACE_TEMP, .index = t});
        if (from->first >= x->plan.nstep)
            continue; /* nobody touches it */
        const dc_step_launches *first = &x->launches[from->first], *last = &x->launches[from->last];
        a->out->temp[a->out->ntemp++] = (dc_exec_held){
            .part = part,
            .ref = from->ref,
            .offset = at.bind.offset,
            .bytes = from->bytes,
            .first = a->base[part] + first->first,
            .last = a->base[part] + last->first + (last->ncommand > 0 ? last->ncommand - 1 : 0),
        };
    }
}

/* ---- is it what there is? ---------------------------------------------------------------------- */

static bool same_launch(const looking *a, const dc_compiling *p, uint32_t command,
                        const dc_made_launch *l)
{
    const dc_command *x = &a->e->command[command];
    return x->kind == DC_COMMAND_LAUNCH &&
           strcmp(x->label, dc_entry_name(&p->gen.entry.at[l->entry])) == 0;
}

static bool same_part(const looking *a, const dc_compiling *p, uint32_t part)
{
    const dc_part *x = p->part.at[part];
    bool same = true;
    for (uint32_t i = 0; i < x->plan.nstep; i++) {
        const dc_step_launches *l = &x->launches[i];
        for (uint32_t k = 0; k < l->n && l->ncommand > 0; k++)
            same = same && same_launch(a, p, a->base[part] + l->first + k, &l->at[k]);
    }
    return same;
}

static bool is_same(const looking *a, const dc_compiling *p)
{
    uint32_t ncommand = 0;
    for (uint32_t n = 0; n < p->nwhole; n++)
        ncommand += p->part.at[n]->ncommand;
    bool same = ncommand == a->e->ncommand;
    for (uint32_t n = 0; same && n < p->part.n; n++)
        same = same_part(a, p, n);
    return same;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static void keep_all(const dc_compiling *p, void *ctx)
{
    looking *a = ctx;
    dc_exec_graph *out = a->out;
    uint32_t ntemp = 0;
    a->base = DC_NEW_ARRAY(&p->j->scratch, uint32_t, p->part.n);
    for (uint32_t n = 0, at = 0; n < p->nwhole; n++) {
        place_part(a, p, n, at);
        at += p->part.at[n]->ncommand;
    }
    out->npart = p->part.n;
    out->part = DC_NEW_ARRAY(&out->mem, dc_exec_part, out->npart);
    for (uint32_t n = 0; n < out->npart; n++) {
        keep_part(a, p, n);
        ntemp += p->part.at[n]->plan.ntemp;
    }
    out->exact = is_same(a, p);
    if (!out->exact)
        return;
    out->ncommand = a->e->ncommand;
    out->command = DC_NEW_ARRAY(&out->mem, dc_exec_computed, out->ncommand);
    for (uint32_t i = 0; i < out->ncommand; i++)
        out->command[i].part = DC_EXEC_NONE;
    out->temp = DC_NEW_ARRAY(&out->mem, dc_exec_held, ntemp);
    for (uint32_t n = 0; n < out->npart; n++) {
        keep_nodes(a, p, n);
        keep_temps(a, p, n);
    }
}

/* What the stages read of an executable, and a place for what they write. */
static dc_exec *stand_in(const dc_exec *e, dc_job *j, dc_exec_graph *out)
{
    dc_exec *x = DC_NEW(&j->scratch, dc_exec);
    x->rt = e->rt;
    x->work = out->module; /* where its graph is copied to */
    x->desc = e->desc;
    x->layout = e->layout;
    x->param = e->param;
    x->result = e->result;
    x->cell_read = e->cell_read;
    x->block_at = e->block_at;
    x->block_bytes = e->block_bytes;
    return x;
}

typedef DC_VEC(dc_exec_part) parts;

static void add_part(dc_exec_graph *out, parts *all, dc_exec_part x)
{
    uint32_t *home = DC_NEW_ARRAY(&out->mem, uint32_t, x.fn->node.n);
    for (dc_ref r = 0; r < x.fn->node.n; r++)
        home[r] = DC_EXEC_NONE;
    x.home = home;
    x.live = dc_func_live(x.fn, &out->mem);
    DC_PUSH_IN(&out->mem, *all, x);
}

/* The bodies of the loops and branches of a part, behind all parts that there are. */
static void add_bodies(dc_exec_graph *out, parts *all, uint32_t parent)
{
    const dc_func *fn = all->at[parent].fn;
    const bool *live = all->at[parent].live;
    for (dc_ref r = 1; r < fn->node.n; r++) {
        const dc_node *n = dc_node_at(fn, r);
        for (int i = 0; live[r] && i < dc_node_bodies(n); i++) {
            const dc_func *body = out->module->body.at[n->attr[i]].fn;
            const dc_exec_part x = {.kind = n->op == DC_OP_LOOP ? DC_PART_LOOP
                                            : i == 0            ? DC_PART_THEN
                                                                : DC_PART_ELSE,
                                    .fn = body,
                                    .nfree = body->param.n,
                                    .nresult = body->result.n,
                                    .parent = parent,
                                    .control = r};
            add_part(out, all, x);
        }
    }
}

/* As it was traced, and what the interpreter runs. */
static void keep_graph(const dc_exec *e, dc_exec_graph *out)
{
    parts all = {0};
    const dc_func *fn = dc_func_clone(out->module, e->desc.fn, NULL);
    add_part(out, &all,
             (dc_exec_part){.kind = DC_PART_CALL,
                            .fn = fn,
                            .nfree = e->desc.nfree,
                            .ncell = e->desc.ncell,
                            .nresult = e->desc.nresult,
                            .nset = e->desc.nset,
                            .parent = DC_EXEC_NONE});
    for (uint32_t p = 0; p < all.n; p++)
        add_bodies(out, &all, p);
    out->npart = all.n;
    out->part = all.at;
}

/* The stages log nothing a second time. */
typedef struct quiet {
    dc_job *j;
    dc_log *log;
    dc_exec *x;
} quiet;

static void leave(void *what)
{
    quiet *q = what;
    q->j->log = q->log;
    dc_arena_free(&q->x->mem);
}

dc_status dc_exec_graph_make(dc_exec *e, dc_job *j, bool traced, dc_exec_graph *out)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    looking *a = DC_NEW(&j->scratch, looking);
    *a = (looking){.e = e, .out = out};
    out->module = dc_module_new();
    if (traced || e->task == NULL || e->info.interpreted || e->command == NULL) {
        keep_graph(e, out);
        return DC_OK;
    }
    quiet *q = DC_NEW(&j->scratch, quiet);
    *q = (quiet){j, j->log, stand_in(e, j, out)};
    dc_job_defer(j, leave, q);
    j->log = NULL;
    const dc_status s =
        dc_pipeline_again(&((const dc_compile_job *)e->task)->env, j, q->x, keep_all, a);
    dc_job_keep(j, q);
    leave(q);
    dc_arena_rewind(&j->scratch, mark);
    return s;
}

void dc_exec_graph_free(dc_exec_graph *l)
{
    dc_module_free(l->module);
    dc_arena_free(&l->mem);
    *l = (dc_exec_graph){0};
}

/* ---- arithmetic -------------------------------------------------------------------------------- */

double dc_exec_node_work(const dc_func *fn, dc_ref r)
{
    const dc_node *n = dc_node_at(fn, r);
    const dc_op_row *row = dc_op_row_of((dc_op)n->op);
    switch ((dc_op_class)row->cls) {
    case DC_CLASS_EW:
        return (double)dc_node_count(n) * (row->flags & DC_OPF_COSTLY ? 8 : 1);
    case DC_CLASS_RED:
        return (double)dc_node_count(dc_node_at(fn, n->in[0]));
    case DC_CLASS_CON:
        return dc_flops_node(fn, r);
    case DC_CLASS_HST:
    case DC_CLASS_FFT:
    case DC_CLASS_IDX:
        return (double)dc_node_count(n);
    case DC_CLASS_MOV:
    case DC_CLASS_SRC:
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
    case DC_CLASS_COM:
    case DC_CLASS_CTL:
        return 0;
    }
    return 0;
}
