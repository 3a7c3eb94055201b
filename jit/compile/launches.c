/*
 * What the steps of a plan are launched by. On thread groups the kernels of a bundle are joined
 * (jit/flat/flat_join.h) where they can be: in the order of the bundle, each to the first launch that has
 * room, there behind those that are alike, which share a body. Elsewhere a bundle stays a command with a body.
 */
#include "jit/base/tuning.h"
#include "jit/compile/pipeline_impl.h"
#include "jit/flat/flat_join.h"

#include <string.h>

enum { MOST_PARAMETERS = 500 }; /* where the target takes any number */

/* Parts of a launch to be. */
typedef struct joint {
    DC_VEC(uint32_t) group; /* of the plan */
    DC_VEC(uint32_t) entry;
    uint32_t params, insts; /* of the latter those of a body once */
    size_t shared;
    int64_t groups;    /* of all parts by themselves */
    bool meets, apart; /* there are parts whose threads meet, and others */
} joint;

typedef struct joints {
    dc_part *x;
    dc_arena *a;
    uint32_t most_params;
    DC_VEC(joint) at;
    dc_flat_body *body; /* by entry; f NULL: not found yet */
} joints;

static const dc_flat *flat_of(const joints *g, uint32_t entry)
{
    return g->x->p->gen.entry.at[entry].flat;
}

static size_t shared_bytes(const dc_flat *f)
{
    size_t bytes = 0;
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].scope == DC_SCOPE_GROUP)
            bytes += (size_t)f->buf.at[n].count * dc_dtype_size((dc_dtype)f->buf.at[n].dtype);
    return bytes;
}

static const dc_flat_body *body_of(joints *g, uint32_t entry)
{
    dc_flat_body *x = &g->body[entry];
    if (x->f == NULL)
        *x = dc_flat_body_of(g->a, flat_of(g, entry));
    return x;
}

/* Behind the parts that are alike; *alone: there are none. */
static uint32_t place_in(joints *g, const joint *x, uint32_t entry, bool *alone)
{
    uint32_t i = x->entry.n;
    while (i > 0 && x->entry.at[i - 1] != entry &&
           !dc_flat_alike(body_of(g, x->entry.at[i - 1]), body_of(g, entry)))
        i--;
    *alone = i == 0;
    return i > 0 ? i : x->entry.n;
}

/*
 * Every group of a joined kernel takes the registers and the memory of the part that needs most, which costs where groups wait
 * for a place. So reductions, which meet, stand beside parts that do not only while all have one.
 */
static bool is_like(const joints *g, const joint *x, const dc_flat *f)
{
    const bool meets = dc_flat_threads_meet(f), both = meets ? x->apart : x->meets;
    const int units = g->x->p->env->target->units;
    return (!both && !(x->apart && x->meets)) || units == 0 ||
           x->groups + f->positions <= (int64_t)units * DC_TUNE_JOIN_UNLIKE;
}

/*
 * Parts of one body are one loop over rows; other parts stand in branches, which all threads of a group take together.
 * PoCL makes code of a barrier there that accesses memory it should not, so on OpenCL there are none.
 */
static bool may_branch(const joints *g, const joint *x, const dc_flat *f)
{
    return x->entry.n == 0 || strcmp(g->x->p->env->target->dialect, "opencl") != 0 ||
           !(x->meets || dc_flat_threads_meet(f));
}

static bool has_room(joints *g, const joint *x, uint32_t entry)
{
    const dc_flat *f = flat_of(g, entry);
    bool alone;
    if (x->params + f->nparam > g->most_params || !is_like(g, x, f))
        return false;
    for (uint32_t i = 0; i < x->entry.n; i++)
        if (!dc_flat_may_join(flat_of(g, x->entry.at[i]), f))
            return false;
    place_in(g, x, entry, &alone);
    return !alone || (may_branch(g, x, f) && x->insts + f->order.n <= DC_TUNE_JOIN_INSTRUCTIONS &&
                      x->shared + shared_bytes(f) <= DC_TUNE_JOIN_SHARED);
}

static void insert(joints *g, joint *x, uint32_t at, uint32_t group, uint32_t entry)
{
    DC_PUSH_IN(g->a, x->group, group);
    DC_PUSH_IN(g->a, x->entry, entry);
    for (uint32_t i = x->entry.n - 1; i > at; i--) {
        x->group.at[i] = x->group.at[i - 1];
        x->entry.at[i] = x->entry.at[i - 1];
    }
    x->group.at[at] = group;
    x->entry.at[at] = entry;
}

static void place(joints *g, uint32_t group)
{
    const uint32_t entry = g->x->entry_of[group];
    const dc_flat *f = flat_of(g, entry);
    bool alone;
    uint32_t i = 0;
    while (i < g->at.n && !has_room(g, &g->at.at[i], entry))
        i++;
    if (i == g->at.n)
        DC_PUSH_IN(g->a, g->at, (joint){0});
    joint *to = &g->at.at[i];
    const uint32_t at = place_in(g, to, entry, &alone);
    insert(g, to, at, group, entry);
    to->params += f->nparam;
    to->groups += f->positions;
    to->meets |= dc_flat_threads_meet(f);
    to->apart |= !dc_flat_threads_meet(f);
    to->insts += alone ? f->order.n : 0;
    to->shared += alone ? shared_bytes(f) : 0;
}

static void join(dc_compiling *p, dc_part *x, uint32_t head)
{
    const dc_step *s = &x->plan.step[head];
    const uint32_t most = p->env->target->buffers;
    joints g = {.x = x, .a = &p->j->scratch};
    g.body = DC_NEW_ARRAY(g.a, dc_flat_body, p->gen.entry.n);
    g.most_params = most > 0 && most < MOST_PARAMETERS ? most : MOST_PARAMETERS;
    for (uint32_t k = 1; k <= s->nbody; k++)
        place(&g, x->plan.step[head + k].index);
    dc_step_launches *out = &x->launches[head];
    dc_made_launch *at = DC_NEW_ARRAY(g.a, dc_made_launch, g.at.n);
    for (uint32_t i = 0; i < g.at.n; i++) {
        const joint *from = &g.at.at[i];
        at[i] = (dc_made_launch){from->entry.at[0], from->group.n, from->group.at};
        if (from->entry.n > 1)
            at[i].entry = dc_codegen_join(&p->gen, p->j, from->entry.at, from->entry.n);
    }
    out->at = at;
    out->n = g.at.n;
}

static void alone(dc_compiling *p, dc_part *x, uint32_t step)
{
    dc_made_launch *one = DC_NEW(&p->j->scratch, dc_made_launch);
    const uint32_t *group = &x->plan.step[step].index;
    *one = (dc_made_launch){x->entry_of[*group], 1, group};
    x->launches[step] = (dc_step_launches){.n = 1, .at = one};
}

static void find_launches(dc_compiling *p, dc_part *x)
{
    const bool joins = p->env->target->simt;
    x->launches = DC_NEW_ARRAY(&p->j->scratch, dc_step_launches, x->plan.nstep);
    for (uint32_t i = 0; i < x->plan.nstep; i++) {
        const dc_step *s = &x->plan.step[i];
        if (s->kind == DC_STEP_BUNDLE && joins) {
            join(p, x, i);
            i += s->nbody;
        } else if (s->kind == DC_STEP_GROUP && x->control[s->index] == NULL) {
            alone(p, x, i);
        }
    }
}

/* Copies of what a loop begins with, its head, and those of its body, which are numbered already. */
static void number_control(const dc_part *x, uint32_t group, dc_step_launches *l)
{
    const dc_control *c = x->control[group];
    l->nunit = dc_pipeline_starts(x, group, NULL) + 1;
    l->ncommand = l->nunit;
    for (int side = 0; side < 2 && c->side[side] != NULL; side++)
        l->ncommand += c->side[side]->ncommand;
}

/* Where each step's commands are. The groups of a bundle that is joined have none. */
static void number_commands(dc_part *x, bool joins)
{
    uint32_t inside = 0; /* steps to come of such a bundle */
    x->ncommand = 0;
    for (uint32_t i = 0; i < x->plan.nstep; i++) {
        dc_step_launches *l = &x->launches[i];
        const dc_step *s = &x->plan.step[i];
        const bool bundle = s->kind == DC_STEP_BUNDLE && joins;
        l->first = inside > 0 ? x->launches[i - 1].first : x->ncommand;
        l->ncommand = inside > 0 ? 0 : bundle ? l->n : 1;
        l->nunit = l->ncommand;
        if (s->kind == DC_STEP_GROUP && x->control[s->index] != NULL)
            number_control(x, s->index, l);
        x->ncommand += l->ncommand;
        inside = bundle ? s->nbody : inside > 0 ? inside - 1 : 0;
    }
}

void dc_pipeline_launches(dc_compiling *p)
{
    for (uint32_t n = p->part.n; n-- > 0;) { /* bodies before what they belong to */
        dc_part *x = p->part.at[n];
        find_launches(p, x);
        number_commands(x, p->env->target->simt);
        for (uint32_t i = 0; i < x->plan.nstep; i++)
            for (uint32_t l = 0; l < x->launches[i].n; l++)
                dc_codegen_launch(&p->gen, x->launches[i].at[l].entry);
    }
}
