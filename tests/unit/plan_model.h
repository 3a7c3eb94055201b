/*
 * Plans watched by a model of memory: the steps of a plan run over places that remember which value
 * they hold. A read of anything but the value meant, a cell written too early, an overlap or a result
 * missing at the end is found whatever the graph looks like.
 *
 *   trial t;
 *   begin(&t); t.fn = ...; one_group_each(&t); make_plan(&t); CHECK_STR(watch(&t), "right"); end(&t);
 */
#ifndef DC_TESTS_PLAN_MODEL_H
#define DC_TESTS_PLAN_MODEL_H

#include "jit/plan/plan_memory.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/unit/rng.h"

enum { MANY = 64, LINE = DC_PLAN_ALIGN };

/* ---- a function and what is to be planned ---- */

typedef struct trial {
    dc_job job;
    dc_arena arena;
    dc_module *m;
    const dc_func *fn;
    dc_groups groups;
    dc_exec_desc desc;
    uint32_t set[MANY];
    bool allow;    /* what in_place says ... */
    uint64_t salt; /* ... or, when not 0, a coin by group and operands */
    dc_plan_in in;
    dc_plan plan;
} trial;

static inline bool in_place(void *ctx, uint32_t group, uint32_t out, uint32_t in)
{
    const trial *t = ctx;
    if (t->salt == 0)
        return t->allow;
    return (dc_hash_mix(dc_hash_mix(dc_hash_mix(t->salt, group), out), in) & 1) != 0;
}

/* Every live node but parameters is a group of its own. */
static inline void one_group_each(trial *t)
{
    const dc_func *f = t->fn;
    const bool *live = dc_func_live(f, &t->arena);
    dc_groups *g = &t->groups;
    *g = (dc_groups){.fn = f, .at = DC_NEW_ARRAY(&t->arena, dc_group, f->node.n)};
    g->join_of = DC_NEW_ARRAY(&t->arena, dc_ref, f->node.n);
    g->group_of = DC_NEW_ARRAY(&t->arena, uint32_t, f->node.n);
    for (dc_ref r = 0; r < f->node.n; r++) {
        g->group_of[r] = DC_NO_GROUP;
        if (r == 0 || !live[r] || dc_node_at(f, r)->op == DC_OP_PARAM)
            continue;
        dc_group *x = &g->at[g->n];
        g->group_of[r] = g->n++;
        x->nout = 1;
        x->out = DC_NEW_ARRAY(&t->arena, dc_ref, 1);
        x->out[0] = r;
        x->in = DC_NEW_ARRAY(&t->arena, dc_ref, 4);
        for (int i = 0; i < dc_node_at(f, r)->nin; i++) {
            const dc_ref in = dc_node_at(f, r)->in[i];
            if (x->nin == 0 || x->in[x->nin - 1] != in)
                x->in[x->nin++] = in;
        }
    }
}

/* Joins groups a and b, which must not depend on each other through others. */
static inline void join_groups(trial *t, uint32_t a, uint32_t b)
{
    dc_group *x = &t->groups.at[a], *y = &t->groups.at[b];
    dc_group both = {.out = DC_NEW_ARRAY(&t->arena, dc_ref, x->nout + y->nout),
                     .in = DC_NEW_ARRAY(&t->arena, dc_ref, x->nin + y->nin)};
    for (uint32_t i = 0; i < x->nout + y->nout; i++)
        both.out[both.nout++] = i < x->nout ? x->out[i] : y->out[i - x->nout];
    for (uint32_t i = 0; i < x->nin + y->nin; i++) {
        const dc_ref r = i < x->nin ? x->in[i] : y->in[i - x->nin];
        bool known = t->groups.group_of[r] == a || t->groups.group_of[r] == b;
        for (uint32_t k = 0; k < both.nin; k++)
            known |= both.in[k] == r;
        if (!known)
            both.in[both.nin++] = r;
    }
    *x = both;
    t->groups.n--;
    for (uint32_t g = b; g < t->groups.n; g++)
        t->groups.at[g] = t->groups.at[g + 1];
    for (dc_ref r = 0; r < t->fn->node.n; r++) {
        uint32_t *g = &t->groups.group_of[r];
        if (*g != DC_NO_GROUP)
            *g = *g == b ? a : *g - (*g > b);
    }
}

static inline void begin(trial *t)
{
    static const dc_opts opts;
    *t = (trial){.allow = true};
    dc_job_init(&t->job, &opts, NULL);
}

static inline void end(trial *t)
{
    dc_module_free(t->m);
    dc_arena_free(&t->arena);
    dc_job_fini(&t->job);
}

static inline void make_plan(trial *t)
{
    t->desc.set = t->set;
    t->in.groups = &t->groups;
    t->in.desc = &t->desc;
    t->in.in_place = in_place;
    t->in.ctx = t;
    CHECK_EQ(dc_plan_make(&t->job, &t->arena, &t->in, &t->plan), DC_OK);
}

/* ---- the model ---- */

typedef struct model {
    const trial *t;
    dc_ref cell[MANY], result[MANY], *temp; /* the value that each place holds */
    uint32_t *line;                         /* of the arena: temporary + 1 that wrote it last */
    uint32_t checks, groups, bundles;
    uint32_t at; /* step; of groups in a bundle the bundle */
    rng order;   /* of groups in bundles */
    bool ok;
    const char *why;
} model;

static inline void bad(model *m, const char *why)
{
    if (m->ok)
        m->why = why;
    m->ok = false;
}

static inline size_t bytes_of(const trial *t, dc_ref r)
{
    const dc_type type = dc_node_type(t->fn, r);
    return dc_type_bytes(&type);
}

static inline dc_ref read_place(model *m, dc_place at)
{
    const trial *t = m->t;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
        return t->fn->param.at[at.index];
    case DC_PLACE_CELL:
        return m->cell[at.index];
    case DC_PLACE_RESULT:
        return m->result[at.index];
    case DC_PLACE_TEMP:
        for (size_t b = 0; b < t->plan.temp[at.index].bytes; b += LINE)
            if (m->line[(t->plan.temp[at.index].offset + b) / LINE] != at.index + 1)
                bad(m, "a temporary was overwritten before its last use");
        return m->temp[at.index];
    case DC_PLACE_NONE:
        break;
    }
    bad(m, "a read of no place");
    return 0;
}

static inline void write_place(model *m, dc_place at, dc_ref value)
{
    const trial *t = m->t;
    const dc_temp *x;
    switch ((dc_place_kind)at.kind) {
    case DC_PLACE_CELL:
        if (m->checks < t->desc.ncheck)
            bad(m, "a cell is written before a check");
        m->cell[at.index] = value;
        return;
    case DC_PLACE_RESULT:
        m->result[at.index] = value;
        return;
    case DC_PLACE_TEMP:
        x = &t->plan.temp[at.index];
        if (m->at < x->first || m->at > x->last || x->offset % LINE != 0 ||
            x->offset < t->in.guard || x->offset + x->bytes + t->in.guard > t->plan.bytes)
            bad(m, "a temporary outside its life or the arena");
        for (size_t b = 0; b < x->bytes + 2 * t->in.guard; b += LINE)
            m->line[(x->offset - t->in.guard + b) / LINE] = at.index + 1;
        m->temp[at.index] = value;
        return;
    case DC_PLACE_BLOCK:
    case DC_PLACE_FREE:
    case DC_PLACE_NONE:
        break;
    }
    bad(m, "a write to a place that is not ours");
}

static inline void run_group(model *m, uint32_t index)
{
    const trial *t = m->t;
    const dc_group *g = &t->groups.at[index];
    m->groups++;
    for (uint32_t i = 0; i < g->nin; i++)
        if (bytes_of(t, g->in[i]) > 0 && read_place(m, t->plan.home[g->in[i]]) != g->in[i])
            bad(m, "a kernel reads another value than it should");
    for (uint32_t o = 0; o < g->nout; o++)
        for (uint32_t i = 0; i < g->nin; i++) {
            const dc_place a = t->plan.home[g->out[o]], b = t->plan.home[g->in[i]];
            const bool same = a.kind == b.kind && a.index == b.index && a.kind != DC_PLACE_NONE;
            if (same && !in_place((void *)(uintptr_t)t, index, o, i))
                bad(m, "a kernel overwrites what it reads at other positions");
        }
    for (uint32_t o = 0; o < g->nout; o++)
        write_place(m, t->plan.home[g->out[o]], g->out[o]);
}

static inline void run_step(model *m, const dc_step *s);

/* In an order by the seed: the groups of a bundle run at the same time. */
static inline void run_bundle(model *m, const dc_step *s)
{
    bool done[MANY + 1] = {false};
    for (uint32_t n = 0; n < s->nbody; n++) {
        uint32_t k = (uint32_t)rng_below(&m->order, (int)s->nbody);
        while (done[k])
            k = (k + 1) % s->nbody;
        done[k] = true;
        if (s[1 + k].kind != DC_STEP_GROUP || s[1 + k].ndep > 0)
            bad(m, "a bundle has what does not belong there");
        run_step(m, &s[1 + k]);
    }
    m->bundles++;
}

static inline void run_step(model *m, const dc_step *s)
{
    const trial *t = m->t;
    const dc_ref *check = t->fn->result.at + t->desc.nresult + t->desc.nset + 2 * s->index;
    dc_ref r;
    switch ((dc_step_kind)s->kind) {
    case DC_STEP_GROUP:
        run_group(m, s->index);
        return;
    case DC_STEP_CHECK:
        if (s->index != m->checks)
            bad(m, "checks run out of order");
        if (read_place(m, s->from) != check[0] || read_place(m, s->to) != check[1])
            bad(m, "a check reads another value than it should");
        m->checks++;
        return;
    case DC_STEP_COPY:
        r = read_place(m, s->from);
        if (s->bytes == 0 || (r != 0 && s->bytes != bytes_of(t, r)))
            bad(m, "a copy of the wrong size");
        write_place(m, s->to, r);
        return;
    case DC_STEP_BUNDLE:
        if (s->nbody < 2 || s->nbody > MANY)
            bad(m, "a bundle of one");
        else
            run_bundle(m, s);
        return;
    }
}

static inline void check_end(model *m)
{
    const trial *t = m->t;
    const dc_ref *result = t->fn->result.at;
    dc_ref want[MANY];
    for (uint32_t c = 0; c < t->desc.ncell; c++)
        want[c] = t->fn->param.at[t->desc.nfree + c];
    for (uint32_t i = 0; i < t->desc.nset; i++)
        if (bytes_of(t, result[t->desc.nresult + i]) > 0)
            want[t->set[i]] = result[t->desc.nresult + i];
    for (uint32_t c = 0; c < t->desc.ncell; c++)
        if (m->cell[c] != want[c])
            bad(m, "a cell ends with another value");
    for (uint32_t i = 0; i < t->desc.nresult; i++)
        if (bytes_of(t, result[i]) > 0 && m->result[i] != result[i])
            bad(m, "a result ends with another value");
    if (m->checks != t->desc.ncheck)
        bad(m, "a check is missing");
    for (uint32_t g = 0; g < t->groups.n; g++)
        m->groups -= bytes_of(t, t->groups.at[g].out[0]) > 0;
    if (m->groups != 0)
        bad(m, "a kernel is missing or runs twice");
}

static inline bool overlap(const trial *t)
{
    const dc_plan *p = &t->plan;
    for (uint32_t a = 0; a < p->ntemp; a++)
        for (uint32_t b = 0; b < a; b++) {
            const dc_temp *x = &p->temp[a], *y = &p->temp[b];
            const bool alive = x->first <= y->last && y->first <= x->last;
            const size_t gx = dc_align_up(x->bytes, LINE) + 2 * t->in.guard,
                         gy = dc_align_up(y->bytes, LINE) + 2 * t->in.guard;
            if ((alive || t->in.no_reuse) && x->offset < y->offset + gy &&
                y->offset < x->offset + gx)
                return true;
        }
    return false;
}

/* A bundle and its groups are one. */
static inline uint32_t next_unit(const trial *t, uint32_t i)
{
    return i + 1 + t->plan.step[i].nbody;
}

/* Any order that the deps of steps allow, chosen by the seed; 0: theirs. How many units there are. */
static inline uint32_t shuffle(const trial *t, uint64_t seed, uint32_t *order)
{
    rng r = {seed};
    uint32_t n = 0;
    bool *done = calloc(t->plan.nstep + 1, sizeof *done);
    for (int nready = 1; nready > 0; n += nready > 0) {
        nready = 0;
        for (uint32_t i = 0; i < t->plan.nstep; i = next_unit(t, i)) {
            const dc_step *s = &t->plan.step[i];
            bool ready = !done[i];
            for (uint32_t d = 0; d < s->ndep && ready; d++)
                ready = done[s->dep[d]];
            if (ready && ++nready > 0 && (seed != 0 ? rng_below(&r, nready) == 0 : nready == 1))
                order[n] = i;
        }
        if (nready > 0)
            done[order[n]] = true;
    }
    free(done);
    return n;
}

static inline uint32_t first_set(const trial *t)
{
    for (uint32_t i = 0; i < t->plan.nstep; i++) {
        const dc_step *s = &t->plan.step[i];
        const dc_group *g = s->kind == DC_STEP_GROUP ? &t->groups.at[s->index] : NULL;
        if (s->kind == DC_STEP_COPY && s->to.kind == DC_PLACE_CELL)
            return i;
        for (uint32_t o = 0; g != NULL && o < g->nout; o++)
            if (t->plan.home[g->out[o]].kind == DC_PLACE_CELL)
                return i;
    }
    return t->plan.nstep;
}

/* Runs the plan on the model: in its own order, or (seed not 0) in another one. */
static inline const char *watch_in(trial *t, uint64_t seed)
{
    model m = {.t = t, .ok = true, .why = "right"};
    uint32_t *order = calloc(t->plan.nstep + 1, sizeof *order);
    const uint32_t n = shuffle(t, seed, order);
    m.order = (rng){seed + 7};
    m.temp = calloc(t->plan.ntemp + 1, sizeof *m.temp);
    m.line = calloc(t->plan.bytes / LINE + 1, sizeof *m.line);
    for (uint32_t c = 0; c < t->desc.ncell; c++)
        m.cell[c] = t->fn->param.at[t->desc.nfree + c];
    for (uint32_t i = 0; i < n; i++) {
        m.at = order[i];
        run_step(&m, &t->plan.step[m.at]);
    }
    check_end(&m);
    if (overlap(t))
        bad(&m, "temporaries overlap");
    if (t->plan.bytes < t->plan.lower_bound)
        bad(&m, "less than the lower bound");
    if (t->plan.first_set != first_set(t))
        bad(&m, "another step is the first that writes a cell");
    free(m.temp);
    free(m.line);
    free(order);
    return m.why;
}

/* Guard zones are filled in the plan's order only: what they cover is in no dep. */
static inline const char *watch(trial *t)
{
    const char *why = watch_in(t, 0);
    for (uint64_t seed = 1; seed <= 4 && t->in.guard == 0 && strcmp(why, "right") == 0; seed++)
        why = watch_in(t, seed);
    return why;
}

#endif
