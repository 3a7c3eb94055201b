/*
 * The end of a compilation: planned steps and compiled kernels become the commands of the executable, those
 * of the prologue before those of the body, and what is told of it later is kept.
 */
#include "jit/compile/pipeline_impl.h"
#include "jit/exec/exec_bounds.h"
#include "jit/flat/flat_join.h"
#include "jit/moves/move.h"
#include "jit/render/render_c.h"

#include <string.h>

/* ---- commands ----------------------------------------------------------------------------------- */

/* Derived values are results of the prologue; in the body they stand behind the cells. */
static dc_bind bind_whole(const dc_part *x, dc_place at)
{
    const dc_exec *e = x->p->e;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE: /* no element of it is ever read */
        return (dc_bind){DC_SLOT_BLOCK, 0};
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return (dc_bind){dc_slot_free(at.index), 0};
    case DC_PLACE_CELL:
        return at.index < e->desc.ncell
                   ? (dc_bind){dc_slot_cell(e, at.index), 0}
                   : (dc_bind){DC_SLOT_DERIVED, e->derived[at.index - e->desc.ncell].offset};
    case DC_PLACE_RESULT:
        return x->is_prologue ? (dc_bind){DC_SLOT_DERIVED, e->derived[at.index].offset}
                              : (dc_bind){dc_slot_result(e, at.index), 0};
    case DC_PLACE_TEMP:
        return (dc_bind){DC_SLOT_ARENA, x->plan.temp[at.index].offset};
    }
    DC_BUG("place of kind %d", at.kind);
}

static dc_bind bind_place(const dc_part *x, dc_place at)
{
    dc_bind b = bind_whole(x, at);
    b.offset += at.at;
    return b;
}

static const dc_lifted *lifted_of(const dc_part *x, uint32_t group)
{
    return x->lifted != NULL && x->lifted[group].n > 0 ? &x->lifted[group] : NULL;
}

static size_t lifted_bytes(const dc_lifted *l)
{
    return l != NULL ? dc_align_up(l->n * dc_dtype_size(l->dtype), DC_PLAN_ALIGN) : 0;
}

/* Behind those that are there already. */
static dc_bind bind_lifted(dc_exec *e, const dc_lifted *l)
{
    const dc_bind b = {DC_SLOT_BLOCK, e->block_bytes + e->constant_bytes};
    char *to = (char *)e->constant + e->constant_bytes;
    for (uint32_t i = 0; i < l->n; i++)
        dc_bits_store(l->dtype, to + i * dc_dtype_size(l->dtype), l->bits[i]);
    e->constant_bytes += lifted_bytes(l);
    return b;
}

static uint32_t outputs_of(const dc_part *x, uint32_t group)
{
    return x->groups.at[group].nout;
}

static uint32_t inputs_of(const dc_part *x, uint32_t group)
{
    return x->groups.at[group].nin + (lifted_of(x, group) != NULL);
}

/* Of one group. */
static void bind_group(dc_part *x, uint32_t group, dc_bind *out, dc_bind *in)
{
    const dc_group *g = &x->groups.at[group];
    const size_t *begin = x->begin[group]; /* of all parameters, or NULL */
    const dc_lifted *lifted = lifted_of(x, group);
    for (uint32_t i = 0; i < g->nout; i++) {
        out[i] = bind_place(x, x->plan.home[g->out[i]]);
        out[i].offset += begin != NULL ? begin[i] : 0;
    }
    for (uint32_t i = 0; i < g->nin; i++) {
        in[i] = bind_place(x, x->plan.home[g->in[i]]);
        in[i].offset += begin != NULL ? begin[g->nout + i] : 0;
    }
    if (lifted != NULL)
        in[g->nin] = bind_lifted(x->p->e, lifted);
}

/* The outputs of all its groups, then the inputs of all. */
static void bind_launch(dc_part *x, const dc_made_launch *l, dc_command *command,
                        dc_command_fact *fact)
{
    uint32_t nout = 0, nbind = 0, out = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        nout += outputs_of(x, l->group[i]);
        nbind += outputs_of(x, l->group[i]) + inputs_of(x, l->group[i]);
    }
    dc_bind *bind = DC_NEW_ARRAY(&x->p->e->mem, dc_bind, nbind);
    for (uint32_t i = 0, in = nout; i < l->n; i++) {
        bind_group(x, l->group[i], bind + out, bind + in);
        out += outputs_of(x, l->group[i]);
        in += inputs_of(x, l->group[i]);
    }
    command->bind = bind;
    command->nbind = nbind;
    fact->nout = nout;
}

static void add_where(dc_command_fact *to, const char *where)
{
    uint32_t i = 0;
    while (i < DC_COUNTOF(to->where) && to->where[i] != NULL && strcmp(to->where[i], where) != 0)
        i++;
    if (i < DC_COUNTOF(to->where))
        to->where[i] = where;
}

static void add_fact(dc_command_fact *to, const dc_command_fact *from)
{
    to->flops += from->flops;
    to->bytes += from->bytes;
    for (uint32_t i = 0; i < DC_COUNTOF(from->where) && from->where[i] != NULL; i++)
        add_where(to, from->where[i]);
}

static uint64_t add_cost(uint64_t a, uint64_t b)
{
    return a + b < DC_COST_MOST ? a + b : DC_COST_MOST;
}

static void launch_item(dc_part *x, const dc_made_launch *l, dc_command *command,
                        dc_command_fact *fact)
{
    dc_exec *e = x->p->e;
    const dc_entry *entry = &x->p->gen.entry.at[l->entry];
    dc_compiled *const kernel = e->kernel[entry->number];
    *command = (dc_command){.kind = DC_COMMAND_LAUNCH,
                            .program = dc_compiled_program(kernel),
                            .entry = dc_compiled_entry(kernel),
                            .grid = entry->launch.positions,
                            .threads = entry->launch.threads,
                            .shared = dc_render_dynamic(entry->flat, x->p->env->target),
                            .scratch = entry->flat->scratch,
                            .label = dc_arena_strdup(&e->mem, dc_entry_name(entry))};
    *fact = x->group_fact[l->group[0]];
    command->cost_ns = x->cost_ns[l->group[0]];
    for (uint32_t i = 1; i < l->n; i++) {
        add_fact(fact, &x->group_fact[l->group[i]]);
        command->cost_ns = add_cost(command->cost_ns, x->cost_ns[l->group[i]]);
    }
    bind_launch(x, l, command, fact);
    DC_ASSERT(command->nbind == entry->flat->nparam, "%u parameters for the %u of %s",
              command->nbind, entry->flat->nparam, command->label);
}

static void copy_item(dc_part *x, const dc_step *s, dc_command *command)
{
    dc_bind *bind = DC_NEW_ARRAY(&x->p->e->mem, dc_bind, 2);
    bind[0] = bind_place(x, s->to);
    bind[1] = bind_place(x, s->from);
    *command = (dc_command){
        .kind = DC_COMMAND_COPY, .nbind = 2, .bind = bind, .bytes = s->bytes, .label = "copy"};
    x->p->e->info.copies += !x->is_prologue;
}

static void check_item(dc_part *x, const dc_step *s, dc_command *command, dc_command_fact *fact)
{
    dc_exec *e = x->p->e;
    dc_bind *bind = DC_NEW_ARRAY(&e->mem, dc_bind, 2);
    bind[0] = bind_place(x, s->from);
    bind[1] = bind_place(x, s->to);
    *command = (dc_command){.kind = DC_COMMAND_CHECK,
                            .nbind = 2,
                            .bind = bind,
                            .bytes = dc_type_bytes(dc_exec_check_value(e, s->index)),
                            .label = "check"};
    fact->check = s->index;
}

/* The commands of the steps that a step waits for; *n: how many. */
static const uint32_t *deps_of(const dc_part *x, const dc_step *s, uint32_t *n)
{
    uint32_t all = 0;
    *n = 0;
    for (uint32_t d = 0; d < s->ndep; d++)
        all += x->launches[s->dep[d]].ncommand;
    uint32_t *dep = DC_NEW_ARRAY(&x->p->j->scratch, uint32_t, all);
    for (uint32_t d = 0; d < s->ndep; d++)
        for (uint32_t k = 0; k < x->launches[s->dep[d]].ncommand; k++)
            dep[(*n)++] = x->launches[s->dep[d]].first + k;
    return dep;
}

static void step_items(dc_part *x, uint32_t step, dc_command *command, dc_command_fact *fact)
{
    const dc_step *s = &x->plan.step[step];
    const dc_step_launches *l = &x->launches[step];
    switch ((dc_step_kind)s->kind) {
    case DC_STEP_GROUP:
        launch_item(x, l->at, command, fact);
        return;
    case DC_STEP_COPY:
        copy_item(x, s, command);
        return;
    case DC_STEP_BUNDLE:
        if (l->n == 0)
            *command =
                (dc_command){.kind = DC_COMMAND_BUNDLE, .nbody = s->nbody, .label = "bundle"};
        for (uint32_t k = 0; k < l->n; k++)
            launch_item(x, &l->at[k], &command[k], &fact[k]);
        return;
    case DC_STEP_CHECK:
        check_item(x, s, command, fact);
        return;
    }
}

static void part_items(dc_part *x, dc_command *command, dc_command_fact *fact)
{
    for (uint32_t i = 0; i < x->plan.nstep; i++) {
        const dc_step_launches *l = &x->launches[i];
        const dc_mark mark = dc_arena_mark(&x->p->j->scratch);
        uint32_t n;
        if (l->ncommand == 0)
            continue;
        step_items(x, i, command + l->first, fact + l->first);
        const uint32_t *dep = deps_of(x, &x->plan.step[i], &n);
        for (uint32_t k = 0; k < l->ncommand; k++)
            dc_exec_set_deps(x->p->e, &command[l->first + k], n, dep);
        dc_arena_rewind(&x->p->j->scratch, mark);
    }
}

/* The last command of a step. */
static uint32_t last_of(const dc_part *x, uint32_t step)
{
    const dc_step_launches *l = &x->launches[step];
    return l->first + (l->ncommand > 0 ? l->ncommand - 1 : 0);
}

/* Lifetimes count commands, those of the prologue included. */
static void part_temps(const dc_part *x, uint32_t first, dc_guarded *out)
{
    for (uint32_t t = 0; t < x->plan.ntemp; t++) {
        const dc_temp *from = &x->plan.temp[t];
        out[t] = (dc_guarded){from->offset, from->bytes, UINT32_MAX, 0};
        if (from->first >= x->plan.nstep)
            continue; /* nobody touches it */
        out[t].first = first + x->launches[from->first].first;
        out[t].last = first + last_of(x, from->last);
    }
}

static uint32_t first_set_of(const dc_part *x)
{
    return x->plan.first_set < x->plan.nstep ? x->launches[x->plan.first_set].first : x->ncommand;
}

static void sum_up(dc_exec *e, const dc_part *x)
{
    dc_exec_info *info = &e->info;
    if (x->plan.bytes > info->arena_bytes)
        info->arena_bytes = x->plan.bytes;
    if (x->plan.lower_bound > info->arena_lower_bound)
        info->arena_lower_bound = x->plan.lower_bound;
    info->donated += x->plan.donated;
    info->denied += x->plan.denied;
}

static void make_room_for_constants(dc_compiling *p)
{
    size_t bytes = 0;
    for (uint32_t n = 0; n < p->npart; n++)
        for (uint32_t g = 0; g < p->part[n].nkernel; g++)
            bytes += lifted_bytes(lifted_of(&p->part[n], g));
    p->e->constant = dc_arena_alloc(&p->e->mem, bytes);
    p->e->constant_bytes = 0;
}

void dc_pipeline_make_items(dc_compiling *p)
{
    dc_exec *e = p->e;
    make_room_for_constants(p);
    e->ncommand = e->ntemp = e->nprologue = 0; /* an attempt before may have run out of memory */
    e->info = (dc_exec_info){.nodes = e->info.nodes};
    for (uint32_t n = 0; n < p->npart; n++) {
        e->ncommand += p->part[n].ncommand;
        e->ntemp += p->part[n].plan.ntemp;
    }
    e->command = DC_NEW_ARRAY(&e->mem, dc_command, e->ncommand);
    e->fact = DC_NEW_ARRAY(&e->mem, dc_command_fact, e->ncommand);
    e->temp = DC_NEW_ARRAY(&e->mem, dc_guarded, e->ntemp);
    for (uint32_t n = 0, command = 0, temp = 0; n < p->npart; n++) {
        dc_part *x = &p->part[n];
        part_items(x, e->command + command, e->fact + command);
        part_temps(x, command, e->temp + temp);
        sum_up(e, x);
        e->untouched = command + first_set_of(x);
        command += x->ncommand;
        temp += x->plan.ntemp;
        e->nprologue = x->is_prologue ? command : e->nprologue;
    }
    dc_exec_count_launches(e);
    dc_exec_find_sets(e);
    e->info.kernels = p->gen.nlaunched;
    e->info.derived = e->nderived;
    e->info.derived_bytes = p->derived_bytes;
}

/* ---- what is told later ---------------------------------------------------------------------- */

/* Of the node, or of what it is made of. */
static const char *line_of(const dc_func *fn, dc_ref r)
{
    const dc_node *n = dc_node_at(fn, r);
    for (; n->origin == 0 && n->nin > 0; n = dc_node_at(fn, r))
        r = n->in[0];
    return n->origin != 0 ? fn->origins.at[n->origin].where : NULL;
}

static const char *times_of(dc_choice_way way)
{
    switch (way) {
    case DC_CHOICE_NONE:
        return "";
    case DC_CHOICE_KERNELS:
        return "kernels";
    case DC_CHOICE_MAPS:
        return "access maps";
    case DC_CHOICE_BROADCAST:
        return "places of a broadcast";
    case DC_CHOICE_ROW:
        return "steps of its row";
    }
    DC_BUG("a choice of way %d", way);
}

static const char *type_text(dc_exec *e, const dc_func *fn, dc_ref r)
{
    const dc_type t = dc_node_type(fn, r);
    char type[DC_TYPE_TEXT];
    dc_type_print(&t, type, sizeof type);
    return dc_arena_strdup(&e->mem, type);
}

static dc_exec_choice choice_of(dc_exec *e, const dc_func *fn, const dc_choice *c)
{
    return (dc_exec_choice){.op = dc_op_row_of((dc_op)dc_node_at(fn, c->ref)->op)->name,
                            .type = type_text(e, fn, c->ref),
                            .times_of = times_of((dc_choice_way)c->way),
                            .where = line_of(fn, c->ref),
                            .but = c->but != NULL ? dc_arena_strdup(&e->mem, c->but) : NULL,
                            .stored = c->stored,
                            .times = c->times,
                            .again = dc_choice_again(c),
                            .moved = dc_choice_moved(c)};
}

static void keep_choices(dc_compiling *p)
{
    dc_exec *e = p->e;
    uint32_t n = 0;
    e->nchoice = 0;
    for (uint32_t i = 0; i < p->npart; i++)
        e->nchoice += p->part[i].groups.nchoice;
    e->choice = DC_NEW_ARRAY(&e->mem, dc_exec_choice, e->nchoice);
    for (uint32_t i = 0; i < p->npart; i++)
        for (uint32_t c = 0; c < p->part[i].groups.nchoice; c++)
            e->choice[n++] = choice_of(e, p->part[i].fn, &p->part[i].groups.choice[c]);
}

static void keep_derived(dc_compiling *p)
{
    dc_exec *e = p->e;
    const dc_func *fn = p->part[0].fn;
    for (uint32_t i = 0; i < e->nderived; i++) {
        const dc_ref r = fn->result.at[i];
        e->derived[i].op = dc_op_row_of((dc_op)dc_node_at(fn, r)->op)->name;
        e->derived[i].type = type_text(e, fn, r);
        e->derived[i].where = line_of(fn, r);
    }
}

static void keep_kernel(dc_exec *e, const dc_entry *from, dc_kept *k)
{
    k->name = dc_arena_strdup(&e->mem, dc_entry_name(from));
    k->nest = dc_arena_strdup(&e->mem, from->text);
    k->nout = dc_flat_outputs(from->flat);
    k->nin = from->flat->nparam - k->nout;
    k->nmove = from->kernel != NULL ? from->kernel->moves.n : 0;
    k->move = DC_NEW_ARRAY(&e->mem, const char *, k->nmove);
    for (uint32_t m = 0; m < k->nmove; m++)
        k->move[m] = dc_move_text(from->kernel, from->kernel->moves.at[m], &e->mem);
}

static void keep_kernels(dc_compiling *p)
{
    dc_exec *e = p->e;
    const dc_plan *body = &p->part[p->npart - 1].plan;
    e->kept = DC_NEW_ARRAY(&e->mem, dc_kept, p->gen.nlaunched);
    for (uint32_t i = 0; i < p->gen.entry.n; i++) {
        const dc_entry *from = &p->gen.entry.at[i];
        dc_kept *k = &e->kept[from->number];
        if (!from->launched)
            continue;
        keep_kernel(e, from, k);
        k->npart = from->npart;
        k->part = DC_NEW_ARRAY(&e->mem, dc_kept, k->npart);
        for (uint32_t n = 0; n < k->npart; n++)
            keep_kernel(e, &p->gen.entry.at[from->part[n]], &k->part[n]);
    }
    e->denied_why = DC_NEW_ARRAY(&e->mem, const char *, e->desc.ncell);
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        e->denied_why[c] = body->denied_why[c];
    e->in_part = DC_NEW_ARRAY(&e->mem, bool, e->desc.ncell);
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        e->in_part[c] = p->part[p->npart - 1].in_part[c];
}

void dc_pipeline_keep(dc_compiling *p)
{
    keep_kernels(p);
    keep_choices(p);
    keep_derived(p);
}
