#include "jit/exec/exec_commands.h"

#include "jit/exec/profile.h"
#include "jit/plan/command_deps.h"

typedef struct making {
    dc_job *j;
    dc_exec *e;
    const dc_command_list *d;
    dc_visit *visit;  /* by command */
    bool *whole;      /* by cell: a command that always runs writes all of it */
    bool *cell_write; /* by cell */
    bool *set;        /* by cell: it may be written */
} making;

/* ---- what the caller owns -------------------------------------------------------------------- */

static dc_type *copy_types(dc_arena *a, const dc_type *t, uint32_t n)
{
    dc_type *copy = DC_NEW_ARRAY(a, dc_type, n);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = t[i];
    return copy;
}

static void copy_desc(dc_exec *e, const dc_command_list *d)
{
    uint32_t *set = DC_NEW_ARRAY(&e->mem, uint32_t, d->nset);
    for (uint32_t i = 0; i < d->nset; i++)
        set[i] = d->set[i];
    e->desc = (dc_exec_desc){.name = dc_arena_strdup(&e->mem, d->name),
                             .nfree = d->nfree,
                             .ncell = d->ncell,
                             .nresult = d->nresult,
                             .nset = d->nset,
                             .ncheck = d->ncheck,
                             .set = set};
    e->param = copy_types(&e->mem, d->param, d->nfree + d->ncell);
    const uint32_t nresult = d->nresult + d->nset;
    e->result = DC_NEW_ARRAY(&e->mem, dc_type, nresult + 2 * d->ncheck);
    for (uint32_t i = 0; i < nresult + 2 * d->ncheck; i++) /* checks have an i32 and its position */
        e->result[i] = i < nresult ? d->result[i] : dc_type_make(DC_I32, 0, NULL);
    dc_exec_lay_block(e);
}

static void copy_items(dc_exec *e, const dc_command_list *d)
{
    e->ncommand = d->ncommand;
    e->command = DC_NEW_ARRAY(&e->mem, dc_command, d->ncommand);
    e->fact = DC_NEW_ARRAY(&e->mem, dc_command_fact, d->ncommand);
    for (uint32_t i = 0; i < d->ncommand; i++) {
        const dc_command *from = &d->command[i];
        dc_bind *bind = DC_NEW_ARRAY(&e->mem, dc_bind, from->nbind);
        for (uint32_t b = 0; b < from->nbind; b++)
            bind[b] = from->bind[b];
        e->command[i] = *from;
        e->command[i].bind = bind;
        e->command[i].label =
            dc_arena_strdup(&e->mem, from->label != NULL ? from->label : "command");
        if (d->fact != NULL)
            e->fact[i] = d->fact[i];
        e->info.copies += from->kind == DC_COMMAND_COPY;
    }
    dc_exec_count_launches(e);
    dc_exec_find_sets(e);
    e->info.arena_bytes = e->info.arena_lower_bound = d->arena_bytes;
}

/* ---- what commands do --------------------------------------------------------------------------- */

static bool is_cell(const dc_exec *e, uint32_t slot, uint32_t *cell)
{
    *cell = slot - dc_slot_cell(e, 0);
    return slot >= dc_slot_cell(e, 0) && slot < dc_slot_result(e, 0);
}

static size_t room_of(const dc_exec *e, uint32_t slot)
{
    if (slot == DC_SLOT_BLOCK)
        return e->block_bytes;
    if (slot == DC_SLOT_ARENA)
        return e->info.arena_bytes;
    if (slot == DC_SLOT_DERIVED)
        return 0;
    if (slot < dc_slot_result(e, 0))
        return dc_type_bytes(&e->param[slot - DC_SLOT_FIRST]);
    return dc_type_bytes(&e->result[slot - dc_slot_result(e, 0)]);
}

static void check_bind(const making *m, uint32_t command, dc_bind at, const dc_use *use)
{
    const dc_exec *e = m->e;
    uint32_t cell;
    if (at.slot >= dc_slot_count(e) || at.offset > room_of(e, at.slot) ||
        use->bytes > room_of(e, at.slot) - at.offset)
        DC_BUG("command %u of '%s' leaves slot %u", command, e->desc.name, at.slot);
    const bool own = at.slot == DC_SLOT_ARENA || at.slot >= dc_slot_result(e, 0) ||
                     (is_cell(e, at.slot, &cell) && m->set[cell]);
    if (use->writes && !own)
        DC_BUG("command %u of '%s' writes slot %u", command, e->desc.name, at.slot);
}

static dc_use use_of(const dc_command_list *d, uint32_t command, uint32_t bind)
{
    const dc_command *x = &d->command[command];
    switch (x->kind) {
    case DC_COMMAND_LAUNCH:
        return d->use[command][bind];
    case DC_COMMAND_HOST:
        DC_BUG("a list given by hand with a command for the host");
    case DC_COMMAND_COPY:
        return (dc_use){x->bytes, bind == 1, bind == 0};
    case DC_COMMAND_CHECK:
        return (dc_use){bind == 0 ? sizeof(int32_t) : x->bytes, true, false};
    case DC_COMMAND_LOOP:
    case DC_COMMAND_BRANCH:
    case DC_COMMAND_BUNDLE: /* has none */
        return bind == 0 ? (dc_use){1, true, false} : (dc_use){sizeof(int32_t), false, true};
    }
    DC_BUG("a command of kind %d", x->kind);
}

static void note_access(making *m, uint32_t command, dc_bind at, const dc_use *use, bool always,
                        dc_access *room)
{
    dc_exec *e = m->e;
    dc_visit *v = &m->visit[command];
    uint32_t cell;
    check_bind(m, command, at, use);
    if (is_cell(e, at.slot, &cell)) {
        v->sets |= use->writes;
        m->cell_write[cell] |= use->writes;
        m->whole[cell] |= always && use->writes && use->bytes == room_of(e, at.slot);
        e->cell_read[cell] |= use->reads;
    }
    room[v->naccess++] = (dc_access){at.slot, use->writes, at.offset, at.offset + use->bytes, 0};
}

/* `always`: the command is in no body. */
static void visit_item(making *m, uint32_t i, bool always)
{
    const dc_command *x = &m->e->command[i];
    dc_visit *v = &m->visit[i];
    *v = (dc_visit){.check = x->kind == DC_COMMAND_CHECK, .nbody = x->nbody, .nelse = x->nelse};
    dc_access *room = DC_NEW_ARRAY(&m->j->scratch, dc_access, x->nbind + 1);
    v->access = room;
    for (uint32_t b = 0; b < x->nbind; b++) {
        const dc_use use = use_of(m->d, i, b);
        note_access(m, i, x->bind[b], &use, always, room);
    }
}

static void visit_all(making *m)
{
    uint32_t outside = 0; /* where the body that we are in has ended */
    for (uint32_t i = 0; i < m->e->ncommand; i++) {
        const dc_command *x = &m->e->command[i];
        const bool always = i >= outside;
        if (always)
            outside = i + 1 + x->nbody + x->nelse;
        visit_item(m, i, always);
    }
    for (uint32_t c = 0; c < m->e->desc.ncell; c++) /* what is not written stays as it is */
        m->e->cell_read[c] |= m->cell_write[c] && !m->whole[c];
}

/* ---- checks before cells --------------------------------------------------------------------- */

typedef struct effects {
    bool checks, sets;
} effects;

/* Commands [i, end), when `set` says whether a cell may be written already. */
static effects walk(const making *m, uint32_t i, uint32_t end, bool set)
{
    effects all = {false, set};
    for (; i < end;) {
        const dc_command *x = &m->e->command[i];
        const uint32_t body = i + 1, other = body + x->nbody, next = other + x->nelse;
        if (m->visit[i].check && all.sets)
            DC_BUG("check %u of '%s' may run after a cell was written", i, m->e->desc.name);
        effects one = walk(m, body, other, all.sets), two = walk(m, other, next, all.sets);
        if (x->kind == DC_COMMAND_LOOP && one.checks && one.sets)
            DC_BUG("loop %u of '%s' checks and writes a cell", i, m->e->desc.name);
        all.checks |= m->visit[i].check || one.checks || two.checks;
        all.sets |= m->visit[i].sets || one.sets || two.sets;
        i = next;
    }
    return all;
}

/*
 * Where a run that has written no cell may stand. In a loop that writes one, going round leads back
 * to places before the write.
 */
static uint32_t find_untouched(const making *m)
{
    uint32_t loop = 0, end = 0; /* the outermost loop that we are in */
    for (uint32_t i = 0; i < m->e->ncommand; i++) {
        const dc_command *x = &m->e->command[i];
        if (i >= end && x->kind == DC_COMMAND_LOOP) {
            loop = i;
            end = i + 1 + x->nbody;
        }
        if (m->visit[i].sets)
            return i >= end ? i : loop > 0 ? loop - 1 : 0;
    }
    return m->e->ncommand;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void find_deps(making *m)
{
    dc_exec *e = m->e;
    dc_deps *deps = DC_NEW_ARRAY(&m->j->scratch, dc_deps, e->ncommand);
    dc_command_deps_find(&m->j->scratch, m->visit, e->ncommand, deps);
    for (uint32_t i = 0; i < e->ncommand; i++)
        dc_exec_set_deps(e, &e->command[i], deps[i].n, deps[i].at);
}

static void fill(making *m)
{
    dc_exec *e = m->e;
    const dc_command_list *d = m->d;
    dc_arena *a = &m->j->scratch;
    copy_desc(e, d);
    copy_items(e, d);
    e->cell_read = DC_NEW_ARRAY(&e->mem, bool, d->ncell);
    m->whole = DC_NEW_ARRAY(a, bool, d->ncell);
    m->cell_write = DC_NEW_ARRAY(a, bool, d->ncell);
    m->set = DC_NEW_ARRAY(a, bool, d->ncell);
    for (uint32_t i = 0; i < e->desc.nset; i++)
        m->set[e->desc.set[i]] = true;
    m->visit = DC_NEW_ARRAY(a, dc_visit, e->ncommand);
    visit_all(m);
    walk(m, 0, e->ncommand, false);
    e->untouched = find_untouched(m);
    find_deps(m);
    dc_profile_init(e);
    dc_program **program = DC_NEW_ARRAY(&e->mem, dc_program *, d->nprogram);
    for (uint32_t i = 0; i < d->nprogram; i++)
        program[i] = d->program[i];
    e->program = program;
    e->nprogram = d->nprogram;
}

dc_status dc_exec_from_commands(dc_rt *rt, dc_job *j, const dc_command_list *d, dc_exec **out)
{
    DC_TRY(dc_rt_check(rt, j, d->name));
    const dc_mark mark = dc_arena_mark(&j->scratch);
    making m = {.j = j, .e = dc_exec_new(rt), .d = d};
    dc_job_defer(j, dc_exec_free, m.e);
    fill(&m);
    dc_job_keep(j, m.e);
    dc_arena_rewind(&j->scratch, mark);
    *out = m.e;
    return DC_OK;
}
