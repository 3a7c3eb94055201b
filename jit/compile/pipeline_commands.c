/*
 * The end of a compilation: planned steps and compiled kernels become the commands of the executable, those
 * of the prologue before those of the body, and what is told of it later is kept.
 */
#include "core/host/host.h"
#include "jit/compile/pipeline_impl.h"
#include "jit/exec/exec_bounds.h"
#include "jit/flat/flat_join.h"
#include "jit/moves/move.h"
#include "jit/render/render_c.h"

#include <stdio.h>
#include <string.h>

/* ---- commands ----------------------------------------------------------------------------------- */

/* Binds of a command that is being made, and how they move. */
typedef struct binding {
    dc_bind *bind;
    DC_VEC(dc_bind_move) move;
} binding;

static void bind_where(const dc_part *x, binding *b, uint32_t i, const dc_where *w)
{
    b->bind[i] = w->bind;
    for (uint32_t k = 0; k < x->loops; k++)
        if (w->step[k] != 0)
            DC_PUSH_IN(&x->p->e->mem, b->move, ((dc_bind_move){i, k, w->step[k]}));
}

static void bind_place(const dc_part *x, binding *b, uint32_t i, dc_place at)
{
    const dc_where w = dc_pipeline_where(x, at);
    bind_where(x, b, i, &w);
}

static binding new_binding(const dc_part *x, uint32_t n)
{
    return (binding){.bind = DC_NEW_ARRAY(&x->p->e->mem, dc_bind, n)};
}

static void take_binding(dc_command *command, const binding *b, uint32_t n)
{
    command->bind = b->bind;
    command->nbind = n;
    command->move = b->move.at;
    command->nmove = b->move.n;
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
static void bind_group(dc_part *x, uint32_t group, binding *b, uint32_t out, uint32_t in)
{
    const dc_group *g = &x->groups.at[group];
    const size_t *begin = x->begin[group]; /* of all parameters, or NULL */
    const dc_lifted *lifted = lifted_of(x, group);
    for (uint32_t i = 0; i < g->nout; i++) {
        bind_place(x, b, out + i, x->plan.home[g->out[i]]);
        b->bind[out + i].offset += begin != NULL ? begin[i] : 0;
    }
    for (uint32_t i = 0; i < g->nin; i++) {
        bind_place(x, b, in + i, x->plan.home[g->in[i]]);
        b->bind[in + i].offset += begin != NULL ? begin[g->nout + i] : 0;
    }
    if (lifted != NULL)
        b->bind[in + g->nin] = bind_lifted(x->p->e, lifted);
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
    binding b = new_binding(x, nbind);
    for (uint32_t i = 0, in = nout; i < l->n; i++) {
        bind_group(x, l->group[i], &b, out, in);
        out += outputs_of(x, l->group[i]);
        in += inputs_of(x, l->group[i]);
    }
    take_binding(command, &b, nbind);
    fact->nout = nout;
}

static void add_fact(dc_command_fact *to, const dc_command_fact *from)
{
    to->flops += from->flops;
    to->bytes += from->bytes;
    for (uint32_t i = 0; i < DC_COUNTOF(from->where); i++)
        dc_words_add(to->where, DC_COUNTOF(to->where), from->where[i]);
    for (uint32_t i = 0; i < DC_COUNTOF(from->layer); i++)
        dc_words_add(to->layer, DC_COUNTOF(to->layer), from->layer[i]);
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

static void make_copy(dc_part *x, const dc_where *to, const dc_where *from, size_t bytes,
                      dc_command *command)
{
    binding b = new_binding(x, 2);
    bind_where(x, &b, 0, to);
    bind_where(x, &b, 1, from);
    *command = (dc_command){.kind = DC_COMMAND_COPY, .bytes = bytes, .label = "copy"};
    take_binding(command, &b, 2);
    x->p->e->info.copies += !x->is_prologue;
}

static void copy_item(dc_part *x, const dc_step *s, dc_command *command)
{
    const dc_where to = dc_pipeline_where(x, s->to), from = dc_pipeline_where(x, s->from);
    make_copy(x, &to, &from, s->bytes, command);
}

static void check_item(dc_part *x, const dc_step *s, dc_command *command, dc_command_fact *fact)
{
    dc_exec *e = x->p->e;
    binding b = new_binding(x, 2);
    bind_place(x, &b, 0, s->from);
    bind_place(x, &b, 1, s->to);
    *command = (dc_command){.kind = DC_COMMAND_CHECK,
                            .bytes = dc_type_bytes(dc_exec_check_value(e, s->index)),
                            .label = "check"};
    take_binding(command, &b, 2);
    fact->check = s->index;
}

/* ---- loops and branches ---- */

static void part_items(dc_part *x, dc_command *command, dc_command_fact *fact);

static dc_where operand_of(const dc_part *x, uint32_t group, int i)
{
    const dc_node *n = dc_node_at(x->fn, x->groups.at[group].control);
    return dc_pipeline_where(x, x->plan.home[n->in[i]]);
}

static void loop_head(dc_part *x, uint32_t group, dc_command *head)
{
    const dc_loop *l = &x->control[group]->loop;
    const dc_where counter = dc_pipeline_counter(x, group);
    const uint32_t n = l->flags & DC_LOOP_LIMIT ? 3 : 2;
    binding b = new_binding(x, n);
    const dc_where test = l->flags & DC_LOOP_TEST ? dc_pipeline_result(x, group, 0) : counter;
    bind_where(x, &b, 0, &test);
    bind_where(x, &b, 1, &counter);
    if (n > 2) {
        const dc_where limit = operand_of(x, group, 0);
        bind_where(x, &b, 2, &limit);
    }
    *head = (dc_command){.kind = DC_COMMAND_LOOP,
                         .grid = l->n,
                         .untested = (l->flags & DC_LOOP_TEST) == 0,
                         .reverse = (l->flags & DC_LOOP_REVERSE) != 0,
                         .label = "loop"};
    take_binding(head, &b, n);
}

static void branch_head(dc_part *x, uint32_t group, dc_command *head)
{
    binding b = new_binding(x, 1);
    const dc_where test = operand_of(x, group, 0);
    bind_where(x, &b, 0, &test);
    *head = (dc_command){.kind = DC_COMMAND_BRANCH, .label = "branch"};
    take_binding(head, &b, 1);
}

static void host_item(dc_part *x, uint32_t group, dc_command *command, dc_command_fact *fact)
{
    const dc_host_call *c = &x->control[group]->host;
    const dc_group *g = &x->groups.at[group];
    binding b = new_binding(x, 1 + (uint32_t)c->nin);
    bind_place(x, &b, 0, x->plan.home[g->out[0]]);
    for (int i = 0; i < c->nin; i++) {
        const dc_where w = operand_of(x, group, i);
        bind_where(x, &b, 1 + (uint32_t)i, &w);
    }
    *command = (dc_command){.kind = DC_COMMAND_HOST,
                            .grid = dc_host_rows(c),
                            .scratch = dc_host_scratch(c),
                            .cost_ns = x->cost_ns[group],
                            .label = dc_pipeline_control_label(x->control[group])};
    command->host = dc_host_call_pack(c, &x->p->e->mem, &command->nhost);
    take_binding(command, &b, 1 + (uint32_t)c->nin);
    *fact = x->group_fact[group];
    fact->nout = 1;
}

/* Copies, the head, the bodies. */
static void control_items(dc_part *x, uint32_t group, dc_command *command, dc_command_fact *fact)
{
    const dc_control *c = x->control[group];
    const uint32_t n = dc_pipeline_starts(x, group, NULL);
    const dc_mark mark = dc_arena_mark(&x->p->j->scratch);
    dc_start *start = DC_NEW_ARRAY(&x->p->j->scratch, dc_start, n);
    dc_pipeline_starts(x, group, start);
    for (uint32_t i = 0; i < n; i++)
        make_copy(x, &start[i].to, &start[i].from, start[i].bytes, &command[i]);
    dc_arena_rewind(&x->p->j->scratch, mark);
    dc_command *head = &command[n];
    if (c->is_loop)
        loop_head(x, group, head);
    else
        branch_head(x, group, head);
    head->nbody = c->side[0]->ncommand;
    head->nelse = c->side[1] != NULL ? c->side[1]->ncommand : 0;
    part_items(c->side[0], head + 1, fact + n + 1);
    if (c->side[1] != NULL)
        part_items(c->side[1], head + 1 + head->nbody, fact + n + 1 + head->nbody);
}

/* The commands of the steps that a step waits for; *n: how many. */
static const uint32_t *deps_of(const dc_part *x, const dc_step *s, uint32_t *n)
{
    uint32_t all = 0;
    *n = 0;
    for (uint32_t d = 0; d < s->ndep; d++)
        all += x->launches[s->dep[d]].nunit;
    uint32_t *dep = DC_NEW_ARRAY(&x->p->j->scratch, uint32_t, all);
    for (uint32_t d = 0; d < s->ndep; d++)
        for (uint32_t k = 0; k < x->launches[s->dep[d]].nunit; k++)
            dep[(*n)++] = x->launches[s->dep[d]].first + k;
    return dep;
}

static void step_items(dc_part *x, uint32_t step, dc_command *command, dc_command_fact *fact)
{
    const dc_step *s = &x->plan.step[step];
    const dc_step_launches *l = &x->launches[step];
    switch ((dc_step_kind)s->kind) {
    case DC_STEP_GROUP:
        if (x->control[s->index] != NULL && x->control[s->index]->is_host)
            host_item(x, s->index, command, fact);
        else if (x->control[s->index] != NULL)
            control_items(x, s->index, command, fact);
        else
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

/* The head of a loop waits for its copies, too. */
static void wait_for_starts(const dc_part *x, const dc_step_launches *l, dc_command *command,
                            uint32_t n, const uint32_t *dep)
{
    const uint32_t copies = l->nunit - 1;
    uint32_t *all = DC_NEW_ARRAY(&x->p->j->scratch, uint32_t, n + copies);
    for (uint32_t i = 0; i < n + copies; i++)
        all[i] = i < n ? dep[i] : l->first + i - n;
    dc_exec_set_deps(x->p->e, &command[l->first + copies], n + copies, all);
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
        for (uint32_t k = 0; k < l->nunit; k++)
            dc_exec_set_deps(x->p->e, &command[l->first + k], n, dep);
        if (x->plan.step[i].kind == DC_STEP_GROUP && x->control[x->plan.step[i].index] != NULL)
            wait_for_starts(x, l, command, n, dep);
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
    for (uint32_t n = 0; n < p->part.n; n++)
        for (uint32_t g = 0; g < p->part.at[n]->nkernel; g++)
            bytes += lifted_bytes(lifted_of(p->part.at[n], g));
    p->e->constant = dc_arena_alloc(&p->e->mem, bytes);
    p->e->constant_bytes = 0;
}

void dc_pipeline_make_items(dc_compiling *p)
{
    dc_exec *e = p->e;
    make_room_for_constants(p);
    e->ncommand = e->ntemp = e->nprologue = 0; /* an attempt before may have run out of memory */
    e->info = (dc_exec_info){.nodes = e->info.nodes};
    for (uint32_t n = 0; n < p->nwhole; n++) {
        e->ncommand += p->part.at[n]->ncommand;
        e->ntemp += p->part.at[n]->plan.ntemp;
    }
    e->command = DC_NEW_ARRAY(&e->mem, dc_command, e->ncommand);
    e->fact = DC_NEW_ARRAY(&e->mem, dc_command_fact, e->ncommand);
    e->temp = DC_NEW_ARRAY(&e->mem, dc_guarded, e->ntemp);
    for (uint32_t n = 0, command = 0, temp = 0; n < p->nwhole; n++) {
        dc_part *x = p->part.at[n];
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
    for (uint32_t i = 0; i < p->part.n; i++)
        e->nchoice += p->part.at[i]->groups.nchoice;
    e->choice = DC_NEW_ARRAY(&e->mem, dc_exec_choice, e->nchoice);
    for (uint32_t i = 0; i < p->part.n; i++)
        for (uint32_t c = 0; c < p->part.at[i]->groups.nchoice; c++)
            e->choice[n++] = choice_of(e, p->part.at[i]->fn, &p->part.at[i]->groups.choice[c]);
}

static void keep_derived(dc_compiling *p)
{
    dc_exec *e = p->e;
    const dc_func *fn = p->part.at[0]->fn;
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
    const dc_plan *body = &p->part.at[p->nwhole - 1]->plan;
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
        e->in_part[c] = p->part.at[p->nwhole - 1]->in_part[c];
}

void dc_pipeline_keep(dc_compiling *p)
{
    keep_kernels(p);
    keep_choices(p);
    keep_derived(p);
}

void dc_pipeline_name_exchanges(dc_exec *e, dc_job *j)
{
    for (uint32_t i = 0; i < e->ncommand; i++) {
        dc_command *x = &e->command[i];
        const char *where = e->fact[i].where[0];
        dc_host_call c;
        char text[96];
        if (x->kind != DC_COMMAND_HOST || where == NULL ||
            !dc_host_call_unpack(j, x->host, x->nhost, &c) || !dc_op_is(c.op, DC_CLASS_COM))
            continue;
        snprintf(text, sizeof text, "%s, %s", x->label, where);
        x->label = dc_arena_strdup(&e->mem, text);
    }
}
