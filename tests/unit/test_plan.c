/*
 * The planner, watched by a model of memory: the steps of a plan run over places that remember
 * which value they hold. A read of anything but the value meant, a cell written too early, an
 * overlap or a result missing at the end is found whatever the graph looks like. Directed cases say
 * in addition which cells are updated in place; the rest are random graphs. The seed is printed;
 * argument 1 sets it.
 */
#include "core/gtext.h"
#include "jit/memplan.h"

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

static bool in_place(void *ctx, uint32_t group, uint32_t out, uint32_t in)
{
    const trial *t = ctx;
    if (t->salt == 0)
        return t->allow;
    return (dc_hash_mix(dc_hash_mix(dc_hash_mix(t->salt, group), out), in) & 1) != 0;
}

/* Every live node but parameters is a group of its own. */
static void one_group_each(trial *t)
{
    const dc_func *f = t->fn;
    const bool *live = dc_func_live(f, &t->arena);
    dc_groups *g = &t->groups;
    *g = (dc_groups){.fn = f, .at = DC_NEW_ARRAY(&t->arena, dc_group, f->node.n)};
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
static void join_groups(trial *t, uint32_t a, uint32_t b)
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

static void begin(trial *t)
{
    static const dc_opts opts;
    *t = (trial){.allow = true};
    dc_job_init(&t->job, &opts, NULL);
}

static void end(trial *t)
{
    dc_module_free(t->m);
    dc_arena_free(&t->arena);
    dc_job_fini(&t->job);
}

static void make_plan(trial *t)
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

static void bad(model *m, const char *why)
{
    if (m->ok)
        m->why = why;
    m->ok = false;
}

static size_t bytes_of(const trial *t, dc_ref r)
{
    const dc_type type = dc_node_type(t->fn, r);
    return dc_type_bytes(&type);
}

static dc_ref read_place(model *m, dc_place at)
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

static void write_place(model *m, dc_place at, dc_ref value)
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

static void run_group(model *m, uint32_t index)
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

static void run_step(model *m, const dc_step *s);

/* In an order by the seed: the groups of a bundle run at the same time. */
static void run_bundle(model *m, const dc_step *s)
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

static void run_step(model *m, const dc_step *s)
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

static void check_end(model *m)
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

static bool overlap(const trial *t)
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
static uint32_t next_unit(const trial *t, uint32_t i)
{
    return i + 1 + t->plan.step[i].nbody;
}

/* Any order that the deps of steps allow, chosen by the seed; 0: theirs. How many units there are. */
static uint32_t shuffle(const trial *t, uint64_t seed, uint32_t *order)
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

static uint32_t first_set(const trial *t)
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
static const char *watch_in(trial *t, uint64_t seed)
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
static const char *watch(trial *t)
{
    const char *why = watch_in(t, 0);
    for (uint64_t seed = 1; seed <= 4 && t->in.guard == 0 && strcmp(why, "right") == 0; seed++)
        why = watch_in(t, seed);
    return why;
}

/* ---- directed cases ---- */

typedef struct expected {
    uint32_t donated, denied, copies;
} expected;

static void load(trial *t, const char *text, uint32_t nfree, uint32_t nresult, uint32_t nset,
                 uint32_t ncheck)
{
    begin(t);
    CHECK_EQ(dc_module_parse(&t->job, text, &t->m), DC_OK);
    if (t->m == NULL)
        exit(1);
    t->fn = t->m->func.at[0];
    t->desc = (dc_exec_desc){.fn = t->fn, .name = "f", .nfree = nfree};
    t->desc.ncell = t->fn->param.n - nfree;
    t->desc.nresult = nresult;
    t->desc.nset = nset;
    t->desc.ncheck = ncheck;
    for (uint32_t i = 0; i < nset; i++)
        t->set[i] = i;
    one_group_each(t);
}

static void expect(trial *t, uint32_t donated, uint32_t denied, uint32_t copies)
{
    uint32_t n = 0;
    make_plan(t);
    CHECK_STR(watch(t), "right");
    CHECK_EQ(t->plan.donated, donated);
    CHECK_EQ(t->plan.denied, denied);
    for (uint32_t i = 0; i < t->plan.nstep; i++)
        n += t->plan.step[i].kind == DC_STEP_COPY;
    CHECK_EQ(n, copies);
    end(t);
}

static void test_update(void)
{
    static const char sgd[] = "func f(%1: f32[8] \"g\", %2: f32[8] \"w\") {\n"
                              "  %3 = sub %2, %1 : f32[8]\n"
                              "  return %3\n}\n";
    trial t;
    load(&t, sgd, 1, 0, 1, 0);
    expect(&t, 1, 0, 0);
    load(&t, sgd, 1, 0, 1, 0);
    t.allow = false; /* the kernel reads it at other positions */
    expect(&t, 0, 1, 1);
    load(&t, sgd, 1, 1, 0, 0); /* a result only: nothing is set */
    expect(&t, 0, 0, 0);
}

/* The other reader of the old value runs first, and the plan says so in whichever order it is met.
 */
static void test_readers_first(void)
{
    trial t;
    load(&t,
         "func f(%1: f32[8], %2: f32[8]) {\n"
         "  %3 = sub %2, %1 : f32[8]\n"
         "  %4 = mul %2, %2 : f32[8]\n"
         "  %5 = neg %4 : f32[8]\n"
         "  return %5, %3\n}\n",
         1, 1, 1, 0);
    expect(&t, 1, 0, 0);
    load(&t, /* the reader needs the new value: a circle */
         "func f(%1: f32[8], %2: f32[8]) {\n"
         "  %3 = sub %2, %1 : f32[8]\n"
         "  %4 = mul %3, %2 : f32[8]\n"
         "  return %4, %3\n}\n",
         1, 1, 1, 0);
    expect(&t, 0, 1, 1);
}

static void test_crossed(void)
{
    static const char crossed[] = "func f(%1: f32[8], %2: f32[8]) {\n"
                                  "  %3 = sub %1, %2 : f32[8]\n"
                                  "  %4 = add %1, %2 : f32[8]\n"
                                  "  return %3, %4\n}\n";
    trial t;
    load(&t, crossed, 0, 0, 2, 0); /* each needs the old value of the other */
    expect(&t, 1, 1, 1);
    load(&t, crossed, 0, 0, 2, 0);
    join_groups(&t, 0, 1); /* one kernel reads both before it stores */
    expect(&t, 2, 0, 0);
}

static void test_swap(void)
{
    trial t;
    load(&t, "func f(%1: f32[8], %2: f32[8]) {\n  return %2, %1\n}\n", 0, 0, 2, 0);
    expect(&t, 0, 2, 4); /* both old values are kept aside */
    load(&t, "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n  return %2, %3, %1\n}\n", 0, 0, 3, 0);
    expect(&t, 0, 3, 6);
    load(&t, /* b = a, a = -a */
         "func f(%1: f32[8], %2: f32[8]) {\n  %3 = neg %1 : f32[8]\n  return %3, %1\n}\n", 0, 0, 2,
         0);
    expect(&t, 0, 2, 3);
    load(&t, "func f(%1: f32[8], %2: f32[8]) {\n  return %2\n}\n", 0, 0, 1, 0); /* a = b */
    expect(&t, 0, 1, 1);
    load(&t, "func f(%1: f32[8]) {\n  return %1\n}\n", 0, 0, 1, 0); /* a = a */
    expect(&t, 0, 0, 0);
}

static void test_shared_values(void)
{
    trial t;
    load(&t, /* one value for two cells and two results */
         "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = neg %1 : f32[8]\n"
         "  return %4, %4, %4, %4\n}\n",
         1, 2, 2, 0);
    expect(&t, 1, 1, 3);
    load(&t, /* results that are parameters: an argument, a scalar, an old value */
         "func f(%1: f32[8], %2: f32[], %3: f32[8]) {\n"
         "  %4 = neg %3 : f32[8]\n"
         "  return %1, %2, %3, %4\n}\n",
         2, 3, 1, 0);
    expect(&t, 1, 0, 3);
    load(&t, /* cells set to an argument and to a constant */
         "func f(%1: f32[8], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = const {0} : f32[8]\n"
         "  return %1, %4\n}\n",
         1, 0, 2, 0);
    expect(&t, 1, 1, 1);
}

static void test_checks(void)
{
    trial t;
    load(&t, /* the kernel that a check waits for may not write a cell */
         "func f(%1: i32[], %2: i32[]) {\n"
         "  %3 = sub %2, %1 : i32[]\n"
         "  return %3, %3, %1\n}\n",
         1, 0, 1, 1);
    expect(&t, 0, 1, 1);
    load(&t, /* one that is independent of it waits */
         "func f(%1: i32[], %2: f32[8]) {\n"
         "  %3 = neg %2 : f32[8]\n"
         "  %4 = neg %1 : i32[]\n"
         "  return %3, %4, %1\n}\n",
         1, 0, 1, 1);
    expect(&t, 1, 0, 0);
    load(&t, /* a check of a cell's old value, which the cell's own update waits for */
         "func f(%1: i32[]) {\n"
         "  %2 = neg %1 : i32[]\n"
         "  return %2, %1, %1\n}\n",
         0, 0, 1, 1);
    expect(&t, 1, 0, 0);
}

static void test_empty(void)
{
    trial t;
    load(&t,
         "func f(%1: f32[0, 4], %2: f32[0, 4]) {\n"
         "  %3 = neg %1 : f32[0, 4]\n"
         "  %4 = sum %3 {3} : f32[]\n"
         "  return %3, %4, %1\n}\n",
         1, 2, 1, 0);
    make_plan(&t);
    CHECK_STR(watch(&t), "right");
    CHECK_EQ(t.plan.nstep, 1); /* the sum of nothing is a value, the rest are none */
    CHECK_EQ(t.plan.bytes, 0);
    end(&t);
}

/* Kernels that do not wait for each other are one launch; what a check or a donor orders is not. */
static void expect_bundles(trial *t, const char *sizes)
{
    char found[200] = "";
    t->in.bundles = true;
    t->in.cache = 1 << 20;
    make_plan(t);
    CHECK_STR(watch(t), "right");
    for (uint32_t i = 0; i < t->plan.nstep; i = next_unit(t, i)) {
        const dc_step *s = &t->plan.step[i];
        const size_t at = strlen(found);
        if (s->kind == DC_STEP_CHECK || s->kind == DC_STEP_COPY)
            snprintf(found + at, sizeof found - at, " %s",
                     s->kind == DC_STEP_COPY ? "copy" : "check");
        else
            snprintf(found + at, sizeof found - at, " %u",
                     s->kind == DC_STEP_BUNDLE ? s->nbody : 1);
    }
    CHECK_STR(found, sizes);
    end(t);
}

static void test_bundles(void)
{
    trial t;
    load(&t, /* two updates, and what both need */
         "func f(%1: f32[8] \"a\", %2: f32[40] \"b\", %3: f32[] \"r\") {\n"
         "  %4 = neg %3 : f32[]\n"
         "  %5 = reshape %4 : f32[1]\n"
         "  %6 = expand %5 : f32[8]\n"
         "  %7 = expand %5 : f32[40]\n"
         "  %8 = mul %1, %6 : f32[8]\n"
         "  %9 = mul %2, %7 : f32[40]\n"
         "  return %8, %9, %4\n}\n",
         0, 0, 3, 0);
    expect_bundles(&t, " 1 1 2 2");
    load(&t, /* the old value is read first, by a kernel of its own */
         "func f(%1: f32[8]) {\n"
         "  %2 = neg %1 : f32[8]\n"
         "  %3 = abs %1 : f32[8]\n"
         "  return %2, %3\n}\n",
         0, 1, 1, 0);
    t.desc.nresult = 1;
    expect_bundles(&t, " 1 1");
    load(&t, /* the update waits for the check, the result does not */
         "func f(%1: i32[], %2: f32[8], %3: f32[8]) {\n"
         "  %4 = neg %3 : f32[8]\n"
         "  %5 = abs %2 : f32[8]\n"
         "  %6 = neg %1 : i32[]\n"
         "  return %5, %4, %6, %1\n}\n",
         2, 1, 1, 1);
    expect_bundles(&t, " 2 check 1");
}

/* ---- random graphs ---- */

static void random_function(trial *t, rng *r)
{
    static const dc_op unary[] = {DC_OP_NEG, DC_OP_ABS},
                       binary[] = {DC_OP_ADD, DC_OP_SUB, DC_OP_MUL};
    dc_type types[3] = {dc_type_make(DC_I32, 1, (int64_t[]){3 + rng_below(r, 200)}),
                        dc_type_make(DC_I32, 2, (int64_t[]){rng_below(r, 9), 16}),
                        dc_type_scalar(DC_I32)};
    dc_module *m = t->m = dc_module_new();
    dc_func *f = dc_func_new(m, "random");
    dc_ref made[3][MANY]; /* values by type */
    int n[3] = {0};
    t->desc.nfree = (uint32_t)rng_below(r, 4);
    t->desc.ncell = (uint32_t)rng_below(r, 7);
    int type_of_cell[MANY];
    for (uint32_t p = 0; p < 3 + t->desc.nfree + t->desc.ncell; p++) {
        /* three constants, so that every type has a value; then the parameters */
        const int k = p < 3 ? (int)p : rng_below(r, 3);
        made[k][n[k]++] = p < 3 ? dc_g_const(f, &types[k], 7.0) : dc_g_param(f, &types[k], NULL);
        if (p >= 3 + t->desc.nfree)
            type_of_cell[p - 3 - t->desc.nfree] = k;
    }
    for (int i = rng_below(r, 40); i > 0; i--) {
        const int k = rng_below(r, 3);
        const dc_ref a = made[k][rng_below(r, n[k])], b = made[k][rng_below(r, n[k])];
        const int what = rng_below(r, 8);
        if (n[k] == MANY || n[2] == MANY)
            break;
        if (what == 0 && k < 2)
            made[2][n[2]++] = dc_g_reduce(f, DC_OP_MAXR, a, (1u << (k + 1)) - 1);
        else if (what < 3)
            made[k][n[k]++] = dc_g1(f, unary[rng_below(r, 2)], a);
        else
            made[k][n[k]++] = dc_g2(f, binary[rng_below(r, 3)], a, b);
    }
    t->desc.nresult = (uint32_t)rng_below(r, 4);
    for (uint32_t i = 0; i < t->desc.nresult; i++) {
        const int k = rng_below(r, 3);
        DC_PUSH(f->result, made[k][rng_below(r, n[k])]);
    }
    for (uint32_t c = 0; c < t->desc.ncell; c++)
        if (rng_below(r, 4) > 0) {
            const int k = type_of_cell[c];
            t->set[t->desc.nset++] = c;
            DC_PUSH(f->result, made[k][rng_below(r, n[k])]);
        }
    t->desc.ncheck = rng_below(r, 3) == 0 ? (uint32_t)rng_below(r, 3) : 0;
    for (uint32_t i = 0; i < 2 * t->desc.ncheck; i++)
        DC_PUSH(f->result, made[2][rng_below(r, n[2])]);
    t->fn = t->desc.fn = f;
}

/* Joins some neighbours of one shape that do not depend on each other. */
static void join_some(trial *t, rng *r)
{
    for (int i = 0; i < 4 && t->groups.n > 1; i++) {
        const uint32_t a = (uint32_t)rng_below(r, (int)t->groups.n - 1), b = a + 1;
        const dc_group *x = &t->groups.at[a], *y = &t->groups.at[b];
        const dc_type tx = dc_node_type(t->fn, x->out[0]), ty = dc_node_type(t->fn, y->out[0]);
        bool depends = x->nout > 1 || y->nout > 1; /* in between there may be others */
        for (uint32_t k = 0; k < y->nin; k++)
            depends |= t->groups.group_of[y->in[k]] == a;
        if (!depends && dc_type_same(&tx, &ty))
            join_groups(t, a, b);
    }
}

static void test_random(uint64_t seed, int rounds)
{
    uint32_t donated = 0, denied = 0, shared = 0;
    uint64_t deps = 0, steps = 0, bundles = 0;
    for (int i = 0; i < rounds; i++) {
        rng r = {seed + (uint64_t)i};
        trial t;
        begin(&t);
        random_function(&t, &r);
        one_group_each(&t);
        join_some(&t, &r);
        t.salt = rng_below(&r, 2) == 0 ? 0 : rng_next(&r) | 1;
        t.in.guard = rng_below(&r, 2) == 0 ? 0 : 64;
        t.in.no_reuse = rng_below(&r, 5) == 0;
        t.in.bundles = rng_below(&r, 3) > 0;
        t.in.cache = rng_below(&r, 2) == 0 ? 1 << 20 : (size_t)rng_below(&r, 4000);
        make_plan(&t);
        const char *said = watch(&t);
        if (!CHECK_STR(said, "right"))
            printf("seed %llu\n", (unsigned long long)(seed + (uint64_t)i));
        size_t sum = 0;
        for (uint32_t k = 0; k < t.plan.ntemp; k++)
            sum += dc_align_up(t.plan.temp[k].bytes, LINE) + 2 * t.in.guard;
        CHECK(t.in.no_reuse ? t.plan.bytes == sum : t.plan.bytes <= sum);
        donated += t.plan.donated;
        denied += t.plan.denied;
        shared += t.plan.bytes < sum;
        for (uint32_t k = 0; k < t.plan.nstep; k++)
            deps += t.plan.step[k].ndep;
        for (uint32_t k = 0; k < t.plan.nstep; k++)
            bundles += t.plan.step[k].kind == DC_STEP_BUNDLE;
        steps += t.plan.nstep;
        end(&t);
    }
    printf("%.2f deps per step\n", (double)deps / (double)steps);
    CHECK(donated > 0 && denied > 0 && shared > 0 && bundles > 0); /* the graphs reach all of it */
}

/* ---- packing alone ---- */

static void test_pack(uint64_t seed)
{
    double worst = 1.0;
    for (int i = 0; i < 200; i++) {
        rng r = {seed + (uint64_t)i};
        trial t;
        begin(&t);
        dc_temp temp[40];
        const uint32_t n = (uint32_t)rng_below(&r, 40);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t first = (uint32_t)rng_below(&r, 60);
            temp[k] = (dc_temp){.bytes = (size_t)rng_below(&r, 4000) + 1,
                                .first = first,
                                .last = first + (uint32_t)rng_below(&r, 12)};
        }
        t.plan.temp = temp;
        t.plan.ntemp = n;
        CHECK_EQ(dc_memplan_pack(&t.job, &t.arena, temp, n, 0, false, &t.plan.bytes,
                                 &t.plan.lower_bound),
                 DC_OK);
        CHECK(!overlap(&t));
        CHECK(t.plan.bytes >= t.plan.lower_bound);
        if (n > 0 && (double)t.plan.bytes / (double)t.plan.lower_bound > worst)
            worst = (double)t.plan.bytes / (double)t.plan.lower_bound;
        end(&t);
    }
    printf("packing: at worst %.2f of the lower bound\n", worst);
    CHECK(worst < 1.3);
}

static void test_too_large(void)
{
    trial t;
    dc_temp temp[3] = {
        {.bytes = INT64_MAX / 2}, {.bytes = INT64_MAX / 2}, {.bytes = INT64_MAX / 2}};
    size_t bytes, lower;
    begin(&t);
    CHECK_EQ(dc_memplan_pack(&t.job, &t.arena, temp, 3, 0, true, &bytes, &lower), DC_E_VALUE);
    CHECK_EQ(t.job.err.id, DC_ERR_TOO_LARGE);
    end(&t);
}

int main(int argc, char **argv)
{
    const uint64_t seed = rng_seed(argc, argv, 20);
    test_update();
    test_readers_first();
    test_crossed();
    test_swap();
    test_shared_values();
    test_checks();
    test_empty();
    test_bundles();
    test_random(seed, 3000);
    test_pack(seed);
    test_too_large();
    return t_done();
}
