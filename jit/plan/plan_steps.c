/*
 * Ordered groups to the steps of a plan: kernels, checks and bundles of kernels, between copies of
 * results that are parameters and copies of what could not be stored where it belongs. Then how long
 * temporaries live, and what each step has to wait for.
 */
#include "jit/plan/command_deps.h"
#include "jit/plan/plan_impl.h"

/* ---- steps ----------------------------------------------------------------------------------- */

static dc_step *step(dc_planner *p, dc_step_kind kind, uint32_t index)
{
    DC_PUSH_IN(p->a, p->steps, ((dc_step){.kind = (uint8_t)kind, .index = index}));
    return &p->steps.at[p->steps.n - 1];
}

static void copy(dc_planner *p, dc_place to, dc_place from, size_t bytes)
{
    dc_step *s = step(p, DC_STEP_COPY, 0);
    s->to = to;
    s->from = from;
    s->bytes = bytes;
}

/* Results that are parameters: before any cell changes. */
static void copies_at_start(dc_planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        if (dc_plan_is_param(p, r) && dc_plan_bytes(p, r) > 0)
            copy(p, (dc_place){.kind = DC_PLACE_RESULT, .index = i}, p->out->home[r],
                 dc_plan_bytes(p, r));
    }
}

static void check(dc_planner *p, uint32_t c)
{
    dc_step *s = step(p, DC_STEP_CHECK, c);
    s->from = p->out->home[dc_plan_check_ref(p, c, 0)];
    s->to = p->out->home[dc_plan_check_ref(p, c, 1)];
}

static void kernels_and_checks(dc_planner *p)
{
    for (uint32_t i = 0; i < p->nslot; i++) {
        const dc_slot *x = &p->slot[i];
        if (x->n > 1)
            step(p, DC_STEP_BUNDLE, 0)->nbody = x->n;
        for (uint32_t k = 0; k < x->n; k++) {
            const uint32_t v = x->vertex[k];
            if (v < p->g->n && !dc_plan_is_empty(p, v))
                step(p, DC_STEP_GROUP, v);
            else if (v >= p->g->n && v < p->barrier)
                check(p, v - p->g->n);
        }
    }
}

/* Old values that other cells are set to, and that are overwritten at the end: kept aside. */
static void snapshots(dc_planner *p)
{
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        p->snapshot[c] = DC_PLAN_NO_TEMP;
        if (!p->kept[c] || p->new_value[c] == 0)
            continue;
        const dc_ref r = dc_plan_cell_param(p, c);
        p->snapshot[c] = dc_plan_new_temp(p, r);
        copy(p, (dc_place){.kind = DC_PLACE_TEMP, .index = p->snapshot[c]}, p->out->home[r],
             dc_plan_bytes(p, r));
    }
}

static void copies_at_end(dc_planner *p)
{
    for (uint32_t i = 0; i < p->d->nresult; i++) {
        const dc_ref r = p->fn->result.at[i];
        const dc_place to = {.kind = DC_PLACE_RESULT, .index = i}, from = p->out->home[r];
        if (dc_plan_is_param(p, r) || !dc_plan_has_memory(from) ||
            (from.kind == to.kind && from.index == to.index))
            continue;
        copy(p, to, from, dc_plan_bytes(p, r));
    }
    snapshots(p);
    for (uint32_t c = 0; c < p->d->ncell; c++) {
        const dc_ref r = p->new_value[c];
        uint32_t other;
        if (r == 0 || p->granted[c])
            continue;
        dc_place from = p->out->home[r];
        if (dc_plan_is_cell(p, r, &other) && p->snapshot[other] != DC_PLAN_NO_TEMP)
            from = (dc_place){.kind = DC_PLACE_TEMP, .index = p->snapshot[other]};
        copy(p, (dc_place){.kind = DC_PLACE_CELL, .index = c}, from, dc_plan_bytes(p, r));
    }
}

static dc_place work_of(const dc_planner *p, uint32_t group)
{
    return (dc_place){.kind = DC_PLACE_TEMP, .index = p->out->work[group]};
}

static void extend_life(dc_planner *p, dc_place at, uint32_t s)
{
    if (at.kind != DC_PLACE_TEMP)
        return;
    dc_temp *t = &p->temps.at[at.index];
    if (t->first == UINT32_MAX)
        t->first = s;
    t->last = s;
}

/* A bundle's groups run at the same time: all that they touch is alive at its head. */
static void find_lifetimes(dc_planner *p)
{
    uint32_t head = 0, inside = 0; /* groups to come of the bundle that begins at the head */
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const dc_step *s = &p->steps.at[i];
        head = inside > 0 ? head : i;
        inside = s->kind == DC_STEP_BUNDLE ? s->nbody : inside > 0 ? inside - 1 : 0;
        if (s->kind == DC_STEP_GROUP) {
            const dc_group *g = &p->g->at[s->index];
            for (uint32_t k = 0; k < g->nout; k++)
                extend_life(p, p->out->home[g->out[k]], head);
            for (uint32_t k = 0; k < g->nin; k++)
                extend_life(p, p->out->home[g->in[k]], head);
            if (g->control != 0)
                extend_life(p, work_of(p, s->index), i);
        } else if (s->kind != DC_STEP_BUNDLE) {
            extend_life(p, s->to, i);
            extend_life(p, s->from, i);
        }
    }
}

/* Does the step read what the group makes? */
static bool reads_of(const dc_planner *p, const dc_step *s, uint32_t group)
{
    const dc_place at = p->out->home[p->g->at[group].out[0]];
    if (s->kind == DC_STEP_COPY)
        return s->from.kind == at.kind && s->from.index == at.index;
    if (s->kind != DC_STEP_GROUP)
        return s->kind == DC_STEP_CHECK;
    for (uint32_t k = 0; k < p->g->at[s->index].nin; k++)
        if (p->g->group_of[p->g->at[s->index].in[k]] == group)
            return true;
    return false;
}

/* An exchange goes on until something reads its result: until then nothing else is stored where its operand is. */
static void lengthen_exchanges(dc_planner *p)
{
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const dc_step *s = &p->steps.at[i];
        uint32_t last = i;
        if (s->kind != DC_STEP_GROUP || !dc_plan_exchanges(p, s->index))
            continue;
        while (last + 1 < p->steps.n && !reads_of(p, &p->steps.at[last], s->index))
            last++;
        const dc_group *g = &p->g->at[s->index];
        for (uint32_t k = 0; k < g->nin; k++) {
            const dc_place at = p->out->home[g->in[k]];
            dc_temp *t = at.kind == DC_PLACE_TEMP ? &p->temps.at[at.index] : NULL;
            if (t != NULL && t->first != UINT32_MAX && t->last < last)
                t->last = last;
        }
    }
}

void dc_plan_make_steps(dc_planner *p)
{
    copies_at_start(p);
    kernels_and_checks(p);
    copies_at_end(p);
    find_lifetimes(p);
    lengthen_exchanges(p);
}

/* ---- dependencies ---------------------------------------------------------------------------- */

/* Memory numbered: cells, results, the arena. What no step writes is left out. join: of a piece, which
 * counts as all of it. */
static void access(dc_planner *p, dc_visit *v, dc_access *room, dc_place at, bool write,
                   dc_ref join)
{
    dc_access x = {.write = write, .end = SIZE_MAX, .join = join};
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_NONE:
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return;
    case DC_PLACE_CELL:
        x.mem = at.index;
        v->sets |= write;
        break;
    case DC_PLACE_RESULT:
        x.mem = p->d->ncell + at.index;
        break;
    case DC_PLACE_TEMP:
        x.mem = p->d->ncell + p->d->nresult;
        x.begin = p->temps.at[at.index].offset;
        x.end = x.begin + p->temps.at[at.index].bytes;
        break;
    }
    room[v->naccess++] = x;
}

static dc_visit visit(dc_planner *p, const dc_step *s)
{
    dc_visit v = {.check = s->kind == DC_STEP_CHECK, .nbody = s->nbody};
    const dc_group *g = s->kind == DC_STEP_GROUP ? &p->g->at[s->index] : NULL;
    dc_access *room = DC_NEW_ARRAY(p->a, dc_access, g != NULL ? g->nin + g->nout + 1 : 2);
    if (g == NULL && s->kind != DC_STEP_BUNDLE) {
        access(p, &v, room, s->from, false, 0);
        access(p, &v, room, s->to, s->kind == DC_STEP_COPY, 0);
    }
    for (uint32_t i = 0; g != NULL && i < g->nin; i++)
        access(p, &v, room, p->out->home[g->in[i]], false, 0);
    for (uint32_t i = 0; g != NULL && i < g->nout; i++)
        access(p, &v, room, p->out->home[g->out[i]], true, p->g->join_of[g->out[i]]);
    if (g != NULL && g->control != 0)
        access(p, &v, room, work_of(p, s->index), true, 0);
    v.access = room;
    return v;
}

void dc_plan_find_deps(dc_planner *p)
{
    const uint32_t n = p->steps.n;
    dc_visit *v = DC_NEW_ARRAY(p->a, dc_visit, n);
    dc_deps *deps = DC_NEW_ARRAY(p->a, dc_deps, n);
    p->out->first_set = n;
    for (uint32_t i = n; i-- > 0;) {
        v[i] = visit(p, &p->steps.at[i]);
        if (v[i].sets)
            p->out->first_set = i;
    }
    dc_command_deps_find(p->a, v, n, deps);
    for (uint32_t i = 0; i < n; i++) {
        p->steps.at[i].ndep = deps[i].n;
        p->steps.at[i].dep = deps[i].at;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 1; k <= v[i].nbody; k++)
            DC_ASSERT(deps[i + k].n == 0, "groups %u and %u of a bundle depend on each other",
                      p->steps.at[i + k].index, p->steps.at[i + 1 + deps[i + k].at[0]].index);
}
