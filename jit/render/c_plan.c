/*
 * A flat kernel to the plan that jit/render/render_c.c writes by (jit/render/c_plan.h): contraction first, since it
 * changes which instruction reads what; then loops over lanes in one pass; then arrays, which depend on both.
 */
#include "jit/render/c_plan.h"

#include <stdlib.h>

typedef struct planner {
    const dc_flat *f;
    dc_arena *a;
    dc_c_plan p;
    uint32_t *loop;        /* by value: the loop it stands in */
    uint32_t loops;        /* so far */
    DC_VEC(dc_fv) pending; /* the loop being gathered */
} planner;

static const dc_finst *at(const planner *p, dc_fv v)
{
    return dc_finst_at(p->f, v);
}

/* Contraction ------------------------------------------------------------------------------- */

typedef struct usage {
    uint32_t *uses, *block; /* by value */
} usage;

static usage count_uses(planner *p)
{
    const dc_flat *f = p->f;
    usage u = {DC_NEW_ARRAY(p->a, uint32_t, f->inst.n), DC_NEW_ARRAY(p->a, uint32_t, f->inst.n)};
    uint32_t block = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const dc_finst *i = at(p, v);
        for (int k = 0; k < 3; k++)
            u.uses[i->in[k]]++;
        block += dc_kop_opens((dc_kop)i->op) || i->op == DC_K_END;
        u.block[v] = block;
    }
    return u;
}

/* By value: is it written within a sum only? */
static bool *contract(planner *p)
{
    const dc_flat *f = p->f;
    bool *within = DC_NEW_ARRAY(p->a, bool, f->inst.n);
    if (f->strict)
        return within;
    const usage u = count_uses(p);
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const dc_finst *i = at(p, v);
        if ((i->op != DC_K_ADD && i->op != DC_K_SUB) || !dc_ftype_is_float(i->type))
            continue;
        for (int k = 0; k < 2 && p->p.product[v] == 0; k++) {
            const dc_fv m = i->in[k];
            if (at(p, m)->op != DC_K_MUL || u.uses[m] != 1 || u.block[m] != u.block[v])
                continue;
            p->p.product[v] = m;
            within[m] = true;
        }
    }
    return within;
}

/* Loads that async stores alone use are part of these. */
static void load_within(planner *p, bool *within)
{
    const dc_flat *f = p->f;
    bool *apart = DC_NEW_ARRAY(p->a, bool, f->inst.n);
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *i = at(p, f->order.at[n]);
        for (int k = 0; k < 3; k++)
            apart[i->in[k]] |= i->op != DC_K_STORE_ASYNC || k != 1;
    }
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_finst *i = at(p, f->order.at[n]);
        if (i->op == DC_K_STORE_ASYNC && !apart[i->in[1]])
            within[i->in[1]] = true;
    }
}

/* Loops over lanes -------------------------------------------------------------------------- */

static bool is_memory(const dc_finst *i)
{
    return dc_kop_loads((dc_kop)i->op) || dc_kop_stores((dc_kop)i->op);
}

/* May the buffers be the same memory? An input and an output, where an update is in place. */
static bool share(const dc_flat *f, uint32_t x, uint32_t y)
{
    const dc_buffer *a = &f->buf.at[x], *b = &f->buf.at[y];
    if (x == y)
        return true;
    return a->scope == DC_SCOPE_PARAM && b->scope == DC_SCOPE_PARAM &&
           (a->mode == DC_MODE_IN) != (b->mode == DC_MODE_IN) && a->dtype == b->dtype &&
           (a->count == b->count || (a->table != 0 && a->table == b->table));
}

/* An index as another one and a constant. */
static dc_fv base_of(const planner *p, dc_fv v, uint64_t *offset)
{
    *offset = 0;
    for (;;) {
        const dc_finst *i = at(p, v);
        if (i->op == DC_K_CONST) {
            *offset += i->imm;
            return 0;
        }
        if (i->op != DC_K_ADD)
            return v;
        const int constant = at(p, i->in[0])->op == DC_K_CONST ? 0 : 1;
        if (at(p, i->in[constant])->op != DC_K_CONST)
            return v;
        *offset += at(p, i->in[constant])->imm;
        v = i->in[1 - constant];
    }
}

/* May one lane of x meet another lane of y, both in one loop? */
static bool lanes_meet(const planner *p, const dc_finst *x, const dc_finst *y)
{
    uint64_t from, to;
    const int64_t step = (int64_t)x->imm;
    if (x->op == DC_K_GATHER || y->op == DC_K_GATHER || x->imm != y->imm || step == 0)
        return true;
    if (base_of(p, x->in[0], &from) != base_of(p, y->in[0], &to))
        return true;
    const int64_t apart = (int64_t)(to - from), reach = llabs(step) * x->lanes;
    return apart != 0 && apart > -reach && apart < reach;
}

/* Would the order of their accesses matter, were they in one loop? */
static bool conflicts(const planner *p, const dc_finst *x, const dc_finst *y)
{
    if (!is_memory(x) || !is_memory(y) || !share(p->f, x->buf, y->buf))
        return false;
    if (!dc_kop_stores((dc_kop)x->op) && !dc_kop_stores((dc_kop)y->op))
        return false;
    return x->lanes != y->lanes || lanes_meet(p, x, y);
}

static bool conflicts_pending(const planner *p, const dc_finst *i)
{
    for (uint32_t n = 0; n < p->pending.n; n++)
        if (conflicts(p, at(p, p->pending.at[n]), i))
            return true;
    return false;
}

static void write_step(planner *p, dc_fv v, uint32_t loop)
{
    p->p.step[p->p.n++] = (dc_cstep){v, loop};
    p->loop[v] = loop;
}

static void flush(planner *p)
{
    if (p->pending.n == 0)
        return;
    p->loops++;
    for (uint32_t n = 0; n < p->pending.n; n++)
        write_step(p, p->pending.at[n], p->loops);
    p->pending.n = 0;
}

size_t dc_c_plan_wide(const dc_flat *f, const dc_finst *i)
{
    if (!f->simt || (i->op != DC_K_LOAD && i->op != DC_K_STORE) || i->lanes < 2 || i->imm != 1)
        return 0;
    const dc_buffer *b = &f->buf.at[i->buf];
    const dc_fv mask = i->op == DC_K_LOAD ? i->in[1] : i->in[2];
    const bool as_one = mask == 0 || dc_finst_at(f, mask)->op == DC_K_SPLAT;
    const size_t all = i->lanes * dc_dtype_size((dc_dtype)b->dtype), piece = all < 16 ? all : 16;
    const bool memory = b->scope == DC_SCOPE_PARAM || b->scope == DC_SCOPE_GROUP;
    return memory && as_one && (all & (all - 1)) == 0 && i->align % piece == 0 ? piece : 0;
}

/* What is read of an array before it is written goes first; what is stored is computed first. */
static void place_wide(planner *p, dc_fv v)
{
    const dc_finst *i = at(p, v);
    p->p.wide[v] = true;
    if (i->op == DC_K_LOAD)
        p->p.array[v] = true;
    else if (!dc_cplan_inline(at(p, i->in[1])))
        p->p.array[i->in[1]] = p->p.stored[i->in[1]] = true;
    if (i->op == DC_K_STORE || conflicts_pending(p, i))
        flush(p);
    write_step(p, v, 0);
}

static void place_inst(planner *p, dc_fv v, bool wide)
{
    const dc_finst *i = at(p, v);
    const bool control = dc_kop_row_of((dc_kop)i->op)->form == DC_KFORM_CTRL;
    if (i->op == DC_K_STORE_ASYNC || i->op == DC_K_MATRIX || i->op == DC_K_WGMMA ||
        i->op == DC_K_WGMMA_WAIT) {
        flush(p);
        write_step(p, v, 0);
    } else if (i->op == DC_K_LDMATRIX || i->op == DC_K_MMA) {
        flush(p);
        p->p.array[v] = true;
        write_step(p, v, 0);
    } else if (wide && dc_c_plan_wide(p->f, i) != 0) {
        place_wide(p, v);
    } else if (i->op == DC_K_SCATTER || dc_kop_zips((dc_kop)i->op)) {
        flush(p);
        DC_PUSH_IN(p->a, p->pending, v);
        flush(p);
    } else if (i->lanes > 1) {
        if (p->pending.n > 0 &&
            (at(p, p->pending.at[0])->lanes != i->lanes || conflicts_pending(p, i)))
            flush(p);
        DC_PUSH_IN(p->a, p->pending, v);
    } else {
        if (control || i->op == DC_K_ANY || conflicts_pending(p, i))
            flush(p);
        write_step(p, v, 0);
    }
}

/* Arrays ------------------------------------------------------------------------------------ */

static void read_in(planner *p, dc_fv v, uint32_t loop)
{
    if (v != 0 && at(p, v)->lanes > 1 && !dc_cplan_inline(at(p, v)) && p->loop[v] != loop)
        p->p.array[v] = true;
}

static void find_arrays(planner *p)
{
    for (uint32_t n = 0; n < p->p.n; n++) {
        const dc_cstep s = p->p.step[n];
        for (int k = 0; k < 3; k++) {
            const dc_fv in = at(p, s.v)->in[k];
            if (in == 0 || in != p->p.product[s.v]) {
                read_in(p, in, s.loop);
                continue;
            }
            read_in(p, at(p, in)->in[0], s.loop);
            read_in(p, at(p, in)->in[1], s.loop);
        }
    }
}

dc_c_plan dc_c_plan_make(dc_arena *a, const dc_flat *f, bool wide)
{
    planner p = {.f = f, .a = a, .loop = DC_NEW_ARRAY(a, uint32_t, f->inst.n)};
    p.p.step = DC_NEW_ARRAY(a, dc_cstep, f->order.n);
    p.p.array = DC_NEW_ARRAY(a, bool, f->inst.n);
    p.p.wide = DC_NEW_ARRAY(a, bool, f->inst.n);
    p.p.stored = DC_NEW_ARRAY(a, bool, f->inst.n);
    p.p.product = DC_NEW_ARRAY(a, dc_fv, f->inst.n);
    bool *within = contract(&p);
    load_within(&p, within);
    for (uint32_t n = 0; n < f->order.n; n++)
        if (!dc_cplan_inline(at(&p, f->order.at[n])) && !within[f->order.at[n]])
            place_inst(&p, f->order.at[n], wide);
    flush(&p);
    find_arrays(&p);
    return p.p;
}
