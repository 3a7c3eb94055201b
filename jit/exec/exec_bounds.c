#include "jit/exec/exec_bounds.h"

typedef struct judging {
    const dc_exec *e;
    const dc_kernel_needs *const *needs;
    uint32_t at;                    /* the command */
    size_t arena, derived;          /* bytes that are touched so far */
    uint32_t checks;                /* commands that are checks */
    uint32_t last_check, first_set; /* commands; ncommand: none */
    bool *set, *checked;            /* cells that the function sets; checks that had a command */
} judging;

/* Slots ---------------------------------------------------------------------------------------- */

/* Bytes of a parameter of the function or a result, by its slot. */
static size_t slot_bytes(const dc_exec *e, uint32_t slot)
{
    const dc_exec_desc *d = &e->desc;
    const uint32_t n = slot - DC_SLOT_FIRST;
    switch (slot) {
    case DC_SLOT_BLOCK:
        return e->block_bytes + e->constant_bytes;
    case DC_SLOT_ARENA:
        return e->info.arena_bytes;
    case DC_SLOT_DERIVED:
        return e->info.derived_bytes;
    default:
        break;
    }
    if (n < d->nfree + d->ncell)
        return dc_type_bytes(&e->param[n]);
    return dc_type_bytes(&e->result[n - d->nfree - d->ncell]);
}

static bool is_cell(const dc_exec *e, uint32_t slot)
{
    return slot >= dc_slot_cell(e, 0) && slot < dc_slot_cell(e, e->desc.ncell);
}

static bool may_write(const judging *g, uint32_t slot)
{
    const dc_exec *e = g->e;
    const bool prologue = g->at < e->nprologue;
    if (slot == DC_SLOT_ARENA)
        return true;
    if (slot == DC_SLOT_DERIVED)
        return prologue;
    if (is_cell(e, slot))
        return !prologue && g->set[slot - dc_slot_cell(e, 0)];
    return !prologue && slot >= dc_slot_result(e, 0);
}

static void grow(size_t *most, size_t end)
{
    *most = end > *most ? end : *most;
}

/* Are these bytes inside of their slot, and may they be written if they are? */
static bool touches(judging *g, dc_bind b, size_t bytes, size_t align, bool write)
{
    const size_t all = slot_bytes(g->e, b.slot);
    if (bytes == 0)
        return true;
    if (b.offset > all || bytes > all - b.offset || b.offset % align != 0)
        return false;
    if (b.slot == DC_SLOT_ARENA)
        grow(&g->arena, b.offset + bytes);
    if (b.slot == DC_SLOT_DERIVED)
        grow(&g->derived, b.offset + bytes);
    if (write && is_cell(g->e, b.slot) && g->at < g->first_set)
        g->first_set = g->at;
    return !write || may_write(g, b.slot);
}

/* Commands ------------------------------------------------------------------------------------- */

static bool launches(judging *g, const dc_command *x)
{
    const dc_kernel_needs *n = g->needs[g->at];
    if ((uint64_t)x->grid != n->positions || x->threads != n->threads || x->scratch != n->scratch ||
        x->nbind != n->nparam)
        return false;
    for (uint32_t b = 0; b < x->nbind; b++) {
        const dc_need *p = &n->param[b];
        const bool write = p->written != 0;
        if ((write && b >= g->e->fact[g->at].nout) ||
            !touches(g, x->bind[b], p->bytes, p->align, write))
            return false;
    }
    return true;
}

static bool copies(judging *g, const dc_command *x)
{
    return touches(g, x->bind[0], x->bytes, 1, true) && touches(g, x->bind[1], x->bytes, 1, false);
}

static bool checks(judging *g, const dc_command *x)
{
    const dc_exec *e = g->e;
    const dc_command_fact *f = &e->fact[g->at];
    const size_t bytes = dc_type_bytes(dc_exec_check_value(e, f->check));
    if (g->checked[f->check])
        return false;
    g->checked[f->check] = true;
    g->checks++;
    g->last_check = g->at;
    return touches(g, x->bind[0], sizeof(int32_t), sizeof(int32_t), false) && x->bytes == bytes &&
           touches(g, x->bind[1], bytes, bytes, false);
}

/* What only some kinds of commands have is 0 in the others. */
static bool has_only_its_own(const dc_command *x)
{
    const bool launch = x->kind == DC_COMMAND_LAUNCH;
    return (launch || (x->grid == 0 && x->threads == 0 && x->scratch == 0)) &&
           (x->bytes == 0 || x->kind == DC_COMMAND_COPY || x->kind == DC_COMMAND_CHECK) &&
           (x->nbody == 0 || x->kind == DC_COMMAND_BUNDLE) && x->cost_ns <= DC_COST_MOST;
}

static bool item_is_sound(judging *g)
{
    const dc_command *x = &g->e->command[g->at];
    if (!has_only_its_own(x))
        return false;
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        return launches(g, x);
    case DC_COMMAND_COPY:
        return copies(g, x);
    case DC_COMMAND_CHECK:
        return g->at >= g->e->nprologue && checks(g, x);
    case DC_COMMAND_BUNDLE: /* its launches follow */
        return g->at >= g->e->nprologue || x->nbody < g->e->nprologue - g->at;
    case DC_COMMAND_LOOP:
    case DC_COMMAND_BRANCH:
        break;
    }
    return false;
}

/* The whole ------------------------------------------------------------------------------------ */

static bool derived_are_sound(judging *g)
{
    const dc_exec *e = g->e;
    for (uint32_t i = 0; i < e->nderived; i++) {
        const dc_derived_value *x = &e->derived[i];
        if (x->offset > e->info.derived_bytes || x->bytes > e->info.derived_bytes - x->offset)
            return false;
        grow(&g->derived, x->offset + x->bytes);
    }
    return true;
}

static bool launches_are_counted(const dc_exec *e)
{
    dc_exec counted = {.command = e->command, .ncommand = e->ncommand, .nprologue = e->nprologue};
    dc_exec_count_launches(&counted);
    return counted.info.launches == e->info.launches &&
           counted.info.prologue_launches == e->info.prologue_launches;
}

/*
 * A command waits for earlier ones of its list, the prologue or the body, by their places in that list; none of them is
 * inside a bundle, whose launches wait for nothing.
 */
static bool deps_are_sound(const dc_exec *e, dc_arena *a)
{
    bool *inside = DC_NEW_ARRAY(a, bool, e->ncommand);
    for (uint32_t i = 0; i < e->ncommand; i++) {
        const dc_command *x = &e->command[i];
        const uint32_t first = i < e->nprologue ? 0 : e->nprologue;
        if (x->nbody >= e->ncommand - i || (inside[i] && x->ndep > 0))
            return false;
        for (uint32_t k = 1; k <= x->nbody; k++)
            inside[i + k] = true;
        for (uint32_t d = 0; d < x->ndep; d++)
            if (x->dep[d] >= i - first || inside[first + x->dep[d]])
                return false;
    }
    return true;
}

bool dc_exec_is_sound(const dc_exec *e, const dc_kernel_needs *const *needs, dc_arena *a)
{
    enum { ROUNDED = 4096 };
    judging g = {.e = e, .needs = needs, .first_set = e->ncommand};
    g.set = DC_NEW_ARRAY(a, bool, e->desc.ncell);
    g.checked = DC_NEW_ARRAY(a, bool, e->desc.ncheck);
    for (uint32_t i = 0; i < e->desc.nset; i++)
        g.set[e->desc.set[i]] = true;
    for (; g.at < e->ncommand; g.at++)
        if (!item_is_sound(&g))
            return false;
    return deps_are_sound(e, a) && derived_are_sound(&g) && launches_are_counted(e) &&
           e->guard == 0 && g.checks == e->desc.ncheck &&
           (g.checks == 0 || g.last_check < g.first_set) && e->untouched <= g.first_set &&
           e->info.arena_bytes <= dc_align_up(g.arena, ROUNDED) &&
           e->info.derived_bytes <= dc_align_up(g.derived, ROUNDED);
}
