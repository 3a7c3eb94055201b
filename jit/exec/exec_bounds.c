#include "jit/exec/exec_bounds.h"

#include "core/host/host.h"

typedef struct judging {
    const dc_exec *e;
    const dc_kernel_needs *const *needs;
    uint32_t at;                    /* the command */
    size_t arena, derived;          /* bytes that are touched so far */
    uint32_t checks;                /* commands that are checks */
    uint32_t last_check, first_set; /* commands; ncommand: none */
    bool *set, *checked;            /* cells that the function sets; checks that had a command */
    uint32_t loops; /* around the command, and how many elements each of them has at most */
    int64_t elements[DC_LOOP_DEPTH];
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

/* The bytes that bind i moves by at most; false: they are too many, or not a multiple of the alignment. */
static bool reach(const judging *g, const dc_command *x, uint32_t i, size_t align, size_t *out)
{
    int64_t all = 0, by;
    for (uint32_t m = 0; m < x->nmove; m++) {
        const dc_bind_move *move = &x->move[m];
        if (move->bind != i)
            continue;
        if (move->loop >= g->loops || move->step % align != 0 || move->step > INT64_MAX ||
            !dc_mul_ok((int64_t)move->step, dc_max_i64(g->elements[move->loop] - 1, 0), &by) ||
            !dc_add_ok(all, by, &all))
            return false;
    }
    *out = (size_t)all;
    return true;
}

/* Are the bytes of bind i inside of their slot, wherever it moves, and may they be written if they are? */
static bool touches(judging *g, const dc_command *x, uint32_t i, size_t bytes, size_t align,
                    bool write)
{
    const dc_bind b = x->bind[i];
    const size_t all = slot_bytes(g->e, b.slot);
    size_t more;
    if (bytes == 0)
        return true;
    if (!reach(g, x, i, align, &more) || more > SIZE_MAX - bytes)
        return false;
    bytes += more;
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
        if ((write && b >= g->e->fact[g->at].nout) || !touches(g, x, b, p->bytes, p->align, write))
            return false;
    }
    return true;
}

static bool copies(judging *g, const dc_command *x)
{
    return touches(g, x, 0, x->bytes, 1, true) && touches(g, x, 1, x->bytes, 1, false);
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
    return touches(g, x, 0, sizeof(int32_t), sizeof(int32_t), false) && x->bytes == bytes &&
           touches(g, x, 1, bytes, bytes, false);
}

/* What only some kinds of commands have is 0 in the others. */
static bool has_only_its_own(const dc_command *x)
{
    const bool launch = x->kind == DC_COMMAND_LAUNCH, host = x->kind == DC_COMMAND_HOST,
               loop = x->kind == DC_COMMAND_LOOP,
               branch = x->kind == DC_COMMAND_BRANCH;
    return (launch || host || loop || x->grid == 0) && (launch || x->threads == 0) &&
           (launch || host || x->scratch == 0) && (host || x->nhost == 0) &&
           (loop || !(x->untested || x->reverse)) &&
           (x->bytes == 0 || x->kind == DC_COMMAND_COPY || x->kind == DC_COMMAND_CHECK) &&
           (x->nbody == 0 || x->kind == DC_COMMAND_BUNDLE || loop || branch) &&
           (x->nelse == 0 || branch) && x->cost_ns <= DC_COST_MOST;
}

/* Its numbers say what it reads and writes. */
static bool host_is_sound(judging *g, const dc_command *x)
{
    dc_host_call c;
    if (!dc_host_call_unpack(dc_job_here(), x->host, x->nhost, &c) || x->nbind != 1 + (uint32_t)c.nin ||
        x->grid != dc_host_rows(&c) || x->scratch != dc_host_scratch(&c) ||
        !touches(g, x, 0, dc_type_bytes(&c.out), dc_dtype_size((dc_dtype)c.out.dtype), true))
        return false;
    for (int i = 0; i < c.nin; i++)
        if (!touches(g, x, 1 + (uint32_t)i, dc_type_bytes(&c.in[i]),
                     dc_dtype_size((dc_dtype)c.in[i].dtype), false))
            return false;
    return true;
}

/* Its binds move with the loops around it, not with itself. */
static bool loops(judging *g, const dc_command *x)
{
    return g->loops < DC_LOOP_DEPTH && x->grid >= 0 && touches(g, x, 0, 1, 1, false) &&
           touches(g, x, 1, sizeof(int32_t), 4, true) &&
           (x->nbind < 3 || touches(g, x, 2, sizeof(int32_t), 4, false));
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
        return g->at >= g->e->nprologue && g->loops == 0 && checks(g, x);
    case DC_COMMAND_HOST:
        return host_is_sound(g, x);
    case DC_COMMAND_BUNDLE: /* its launches follow */
        return g->at >= g->e->nprologue || x->nbody < g->e->nprologue - g->at;
    case DC_COMMAND_LOOP:
        return loops(g, x);
    case DC_COMMAND_BRANCH:
        return touches(g, x, 0, 1, 1, false);
    }
    return false;
}

/* Commands [g->at, end), one list; bodies are lists themselves. */
static bool list_is_sound(judging *g, uint32_t end)
{
    while (g->at < end) {
        const dc_command *x = &g->e->command[g->at];
        const bool loop = x->kind == DC_COMMAND_LOOP, branch = x->kind == DC_COMMAND_BRANCH;
        const uint32_t body = g->at + 1;
        if (x->nbody > end - body || x->nelse > end - body - x->nbody || !item_is_sound(g))
            return false;
        g->at = body;
        if (!loop && !branch)
            continue;
        if (loop)
            g->elements[g->loops++] = x->grid;
        if (!list_is_sound(g, body + x->nbody) || !list_is_sound(g, body + x->nbody + x->nelse))
            return false;
        g->loops -= loop;
    }
    return true;
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
 * A command waits for earlier ones of its list, the prologue, the body or that of a loop or a branch, by their places in
 * that list; none of them is inside another body. Launches of a bundle wait for nothing. head: room for a mark by command.
 */
static bool deps_are_sound(const dc_exec *e, uint32_t begin, uint32_t end, bool *head)
{
    for (uint32_t i = begin; i < end;) {
        const dc_command *x = &e->command[i];
        const bool bundle = x->kind == DC_COMMAND_BUNDLE;
        const uint32_t body = i + 1, other = body + x->nbody, next = other + x->nelse;
        for (uint32_t d = 0; d < x->ndep; d++)
            if (x->dep[d] >= i - begin || !head[begin + x->dep[d]])
                return false;
        for (uint32_t k = body; bundle && k < other; k++)
            if (e->command[k].ndep > 0)
                return false;
        if (!bundle &&
            (!deps_are_sound(e, body, other, head) || !deps_are_sound(e, other, next, head)))
            return false;
        for (uint32_t k = body; k < next; k++)
            head[k] = false;
        head[i] = true;
        i = next;
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
    if (!list_is_sound(&g, e->nprologue) || !list_is_sound(&g, e->ncommand))
        return false;
    bool *head = DC_NEW_ARRAY(a, bool, e->ncommand);
    return deps_are_sound(e, 0, e->nprologue, head) &&
           deps_are_sound(e, e->nprologue, e->ncommand, head) && derived_are_sound(&g) &&
           launches_are_counted(e) && e->guard == 0 && g.checks == e->desc.ncheck &&
           (g.checks == 0 || g.last_check < g.first_set) && e->untouched <= g.first_set &&
           e->info.arena_bytes <= dc_align_up(g.arena, ROUNDED) &&
           e->info.derived_bytes <= dc_align_up(g.derived, ROUNDED);
}
