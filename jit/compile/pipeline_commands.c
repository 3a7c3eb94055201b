/*
 * The end of a compilation: planned steps and compiled kernels become the commands of the executable, those
 * of the prologue before those of the body, and what is told of it later is kept.
 */
#include "jit/compile/pipeline_impl.h"
#include "jit/moves/move.h"

/* ---- commands ----------------------------------------------------------------------------------- */

/* Derived values are results of the prologue; in the body they stand behind the cells. */
static dc_bind bind_whole(const dc_part *x, dc_place at)
{
    const dc_exec *e = x->p->e;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE: /* no element of it is ever read */
        return (dc_bind){DC_SLOT_BLOCK, 0};
    case DC_PLACE_BLOCK:
        return (dc_bind){DC_SLOT_BLOCK, e->block_at[at.index]};
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

static void launch_item(dc_part *x, uint32_t group, dc_command *command, dc_command_fact *fact)
{
    dc_exec *e = x->p->e;
    const dc_group *g = &x->groups.at[group];
    const uint32_t n = x->entry_of[group];
    const dc_entry *entry = &x->p->gen.entry.at[n];
    const dc_lifted *lifted = lifted_of(x, group);
    const uint32_t nbind = g->nout + g->nin + (lifted != NULL);
    dc_bind *bind = DC_NEW_ARRAY(&e->mem, dc_bind, nbind);
    for (uint32_t i = 0; i < g->nout; i++)
        bind[i] = bind_place(x, x->plan.home[g->out[i]]);
    for (uint32_t i = 0; i < g->nin; i++)
        bind[g->nout + i] = bind_place(x, x->plan.home[g->in[i]]);
    for (uint32_t i = 0; i < g->nout + g->nin && x->begin[group] != NULL; i++)
        bind[i].offset += x->begin[group][i];
    if (lifted != NULL)
        bind[nbind - 1] = bind_lifted(e, lifted);
    *command = (dc_command){.kind = DC_COMMAND_LAUNCH,
                            .program = dc_compiled_program(e->kernel[n]),
                            .entry = dc_compiled_entry(e->kernel[n]),
                            .grid = entry->launch.positions,
                            .threads = entry->launch.threads,
                            .scratch = entry->flat->scratch,
                            .cost_ns = x->cost_ns[group],
                            .nbind = nbind,
                            .bind = bind,
                            .label = dc_arena_strdup(&e->mem, entry->kernel->name)};
    *fact = x->group_fact[group];
    fact->nout = g->nout;
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
    dc_bind *bind = DC_NEW_ARRAY(&x->p->e->mem, dc_bind, 1);
    bind[0] = bind_place(x, s->from);
    *command = (dc_command){.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = bind, .label = "check"};
    fact->check = s->index;
    fact->value = bind_place(x, s->to);
}

static void part_items(dc_part *x, dc_command *command, dc_command_fact *fact)
{
    dc_exec *e = x->p->e;
    for (uint32_t i = 0; i < x->plan.nstep; i++) {
        const dc_step *s = &x->plan.step[i];
        switch ((dc_step_kind)s->kind) {
        case DC_STEP_GROUP:
            launch_item(x, s->index, &command[i], &fact[i]);
            break;
        case DC_STEP_COPY:
            copy_item(x, s, &command[i]);
            break;
        case DC_STEP_BUNDLE:
            command[i] =
                (dc_command){.kind = DC_COMMAND_BUNDLE, .nbody = s->nbody, .label = "bundle"};
            break;
        case DC_STEP_CHECK:
            check_item(x, s, &command[i], &fact[i]);
            break;
        }
        dc_exec_set_deps(e, &command[i], s->ndep, s->dep);
    }
}

/* Lifetimes count commands, those of the prologue included. */
static void part_temps(const dc_part *x, uint32_t first, dc_guarded *out)
{
    for (uint32_t t = 0; t < x->plan.ntemp; t++) {
        const dc_temp *from = &x->plan.temp[t];
        out[t] = (dc_guarded){from->offset, from->bytes, first + from->first, first + from->last};
    }
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
        e->ncommand += p->part[n].plan.nstep;
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
        e->untouched = command + x->plan.first_set;
        command += x->plan.nstep;
        temp += x->plan.ntemp;
        e->nprologue = x->is_prologue ? command : e->nprologue;
    }
    dc_exec_count_launches(e);
    e->info.kernels = p->gen.entry.n;
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

static void keep_kernels(dc_compiling *p)
{
    dc_exec *e = p->e;
    const dc_plan *body = &p->part[p->npart - 1].plan;
    e->kept = DC_NEW_ARRAY(&e->mem, dc_kept, p->gen.entry.n);
    for (uint32_t i = 0; i < p->gen.entry.n; i++) {
        const dc_entry *from = &p->gen.entry.at[i];
        dc_kept *k = &e->kept[i];
        k->name = dc_arena_strdup(&e->mem, from->kernel->name);
        k->nest = dc_arena_strdup(&e->mem, from->text);
        k->nmove = from->kernel->moves.n;
        k->move = DC_NEW_ARRAY(&e->mem, const char *, k->nmove);
        for (uint32_t m = 0; m < k->nmove; m++)
            k->move[m] = dc_move_text(from->kernel, from->kernel->moves.at[m], &e->mem);
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
