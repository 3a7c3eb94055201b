/*
 * What jit/plan/plan.c, which gives values places, jit/plan/plan_order.c, which puts groups in order, and
 * jit/plan/plan_steps.c, which makes steps of them, share.
 */
#ifndef DC_JIT_PLAN_PLAN_IMPL_H
#define DC_JIT_PLAN_PLAN_IMPL_H

#include "core/ir/control.h"
#include "jit/plan/plan.h"
#include "jit/plan/plan_bundle.h"

typedef DC_VEC(uint32_t) dc_plan_list;

typedef struct dc_plan_vertex {
    dc_plan_list after; /* vertices that come after this one */
    uint32_t before;    /* of those that come before, how many are not ordered yet */
    bool urgent;        /* a check waits for it */
    uint32_t seen;      /* the last walk that came here */
} dc_plan_vertex;

/* A cell that wants the memory of its new value to be its own. */
typedef struct dc_plan_wish {
    uint32_t cell, group, out; /* output `out` of the group is the new value */
    dc_ref ref;
    size_t bytes;
} dc_plan_wish;

typedef struct dc_planner {
    dc_arena *a;
    const dc_plan_in *in;
    const dc_groups *g;
    const dc_func *fn;
    const dc_exec_desc *d;
    dc_plan *out;
    dc_plan_vertex *v; /* groups, checks, barrier */
    uint32_t nv, barrier;
    dc_ref *new_value;  /* by cell: 0 when it keeps its value */
    bool *kept;         /* by cell: the old value is read by a copy at the end */
    bool *granted;      /* by cell */
    uint32_t *snapshot; /* by cell: temporary that keeps the old value, or DC_PLAN_NO_TEMP */
    uint32_t *unread;   /* by ref: readers not ordered yet */
    dc_ref *becomes;    /* by ref: what a scatter makes of it in its memory, 0 nothing */
    bool *begun;        /* by ref, of joins: a piece is ordered */
    uint32_t *first_reader, *reader; /* vertices by the ref they read, ascending */
    uint32_t walk;                   /* the number of the last one */
    DC_VEC(dc_plan_wish) wishes;
    dc_plan_list order, todo, readers, writers; /* all but the first are filled again and again */
    const dc_slot *slot;
    uint32_t nslot;
    DC_VEC(dc_step) steps;
    DC_VEC(dc_temp) temps;
} dc_planner;

#define DC_PLAN_NO_TEMP UINT32_MAX

static inline const dc_node *dc_plan_node(const dc_planner *p, dc_ref r)
{
    return dc_node_at(p->fn, r);
}

static inline bool dc_plan_is_param(const dc_planner *p, dc_ref r)
{
    return dc_plan_node(p, r)->op == DC_OP_PARAM;
}

static inline bool dc_plan_is_piece(const dc_planner *p, dc_ref r)
{
    return dc_plan_node(p, r)->op == DC_OP_PIECE;
}

static inline size_t dc_plan_bytes(const dc_planner *p, dc_ref r)
{
    const dc_type t = dc_node_type(p->fn, r);
    return dc_type_bytes(&t);
}

static inline bool dc_plan_has_memory(dc_place at)
{
    return at.kind != DC_PLACE_NONE;
}

static inline dc_ref dc_plan_check_ref(const dc_planner *p, uint32_t check, int which)
{
    const dc_exec_desc *d = p->d;
    return p->fn->result.at[d->nresult + d->nset + 2 * check + (uint32_t)which];
}

static inline dc_ref dc_plan_cell_param(const dc_planner *p, uint32_t cell)
{
    return p->fn->param.at[p->d->nfree + cell];
}

static inline bool dc_plan_is_cell(const dc_planner *p, dc_ref r, uint32_t *cell)
{
    if (!dc_plan_is_param(p, r) || dc_plan_node(p, r)->attr[0] < (int64_t)p->d->nfree)
        return false;
    *cell = (uint32_t)dc_plan_node(p, r)->attr[0] - p->d->nfree;
    return true;
}

static inline uint32_t dc_plan_new_temp(dc_planner *p, dc_ref r)
{
    DC_PUSH_IN(p->a, p->temps,
               ((dc_temp){.ref = r,
                          .bytes = dc_plan_bytes(p, r),
                          .first = UINT32_MAX, /* nothing touches it */
                          .last = UINT32_MAX}));
    return p->temps.n - 1;
}

static inline bool dc_plan_is_empty(const dc_planner *p, uint32_t group)
{
    const dc_group *g = &p->g->at[group];
    return g->is_join ||
           ((g->control == 0 || g->control == g->out[0]) && dc_plan_bytes(p, g->out[0]) == 0);
}

static inline bool dc_plan_in_arena(const dc_planner *p, dc_ref r)
{
    return p->out->home[r].kind == DC_PLACE_TEMP;
}

static inline uint32_t dc_plan_check_vertex(const dc_planner *p, uint32_t check)
{
    return p->g->n + check;
}

/* How many values vertex v reads, and the i-th. */
static inline uint32_t dc_plan_reads(const dc_planner *p, uint32_t v)
{
    return v < p->g->n ? p->g->at[v].nin : v < p->barrier ? 2 : 0;
}

static inline dc_ref dc_plan_read(const dc_planner *p, uint32_t v, uint32_t i)
{
    return v < p->g->n ? p->g->at[v].in[i] : dc_plan_check_ref(p, v - p->g->n, (int)i);
}

/* Does the vertex read what ranks exchange? */
bool dc_plan_awaits(const dc_planner *p, uint32_t v);

/* Fills p->order: all vertices, each behind those it has to come after. */
void dc_plan_make_order(dc_planner *p);

/* The steps, in the order of p->slot, with copies before and after; how long temporaries live. */
void dc_plan_make_steps(dc_planner *p);

/* What each step has to wait for. After packing: memory that temporaries share counts. */
void dc_plan_find_deps(dc_planner *p);

/* Does the vertex stand for what ranks do together? */
static inline bool dc_plan_exchanges(const dc_planner *p, uint32_t v)
{
    return v < p->g->n && p->g->at[v].control != 0 &&
           dc_op_is((dc_op)dc_plan_node(p, p->g->at[v].control)->op, DC_CLASS_COM);
}

#endif
