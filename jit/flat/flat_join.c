/*
 * Kernels joined (jit/flat/flat_join.h). The number of the group is compared with where parts begin, by
 * halves, so that of n parts a group passes log n tests; these are the same for all threads of a group,
 * so barriers may stand below them.
 */
#include "jit/flat/flat_join.h"

#include <stdio.h>
#include <string.h>

typedef struct joining {
    dc_fbuild *b;
    const dc_flat *const *part;
    uint32_t n;
    uint32_t *first_buf; /* by part */
    int64_t *begin;      /* by part, and behind the last: groups */
    dc_fv group, thread; /* of the launch */
    dc_fv own, member;   /* of the part at hand: its group, the number of the thread in that */
    dc_fv *value;        /* by value of the part at hand: what it is here */
    dc_arena scratch;
} joining;

bool dc_flat_threads_meet(const dc_flat *f)
{
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].scope == DC_SCOPE_GROUP)
            return true;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_finst_at(f, f->order.at[n])->op;
        if (op == DC_K_BARRIER || dc_kop_meets(op))
            return true;
    }
    return false;
}

static bool is_output(const dc_flat *f, uint32_t param)
{
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].scope == DC_SCOPE_PARAM && f->buf.at[n].param == param)
            return f->buf.at[n].mode != DC_MODE_IN;
    return false;
}

uint32_t dc_flat_outputs(const dc_flat *f)
{
    uint32_t n = 0;
    while (n < f->nparam && is_output(f, n))
        n++;
    return n;
}

/* Groups of `threads` that do what the kernel's own groups do. */
static int64_t groups_of(const dc_flat *f, uint32_t threads)
{
    const int64_t each = threads / f->threads;
    return (f->positions + each - 1) / each;
}

static bool keeps_its_threads(const dc_flat *f, const dc_flat *other)
{
    return f->threads >= other->threads || !dc_flat_threads_meet(f);
}

bool dc_flat_may_join(const dc_flat *a, const dc_flat *b)
{
    return a->simt && b->simt && a->strict == b->strict && a->index_bits == b->index_bits &&
           (a->lanes == b->lanes || a->lanes == 0 || b->lanes == 0) && a->positions > 0 &&
           b->positions > 0 && a->scratch == 0 && b->scratch == 0 && keeps_its_threads(a, b) &&
           keeps_its_threads(b, a);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void add_buffers(joining *g, uint32_t part, uint32_t outputs, uint32_t inputs)
{
    dc_flat *f = g->b->f;
    const dc_flat *from = g->part[part];
    const uint32_t own = dc_flat_outputs(from);
    g->first_buf[part] = f->buf.n;
    for (uint32_t n = 0; n < from->buf.n; n++) {
        dc_buffer x = from->buf.at[n];
        x.name = dc_arena_printf(&f->arena, "p%u_%s", (unsigned)part, x.name);
        if (x.scope == DC_SCOPE_PARAM)
            x.param = x.param < own ? outputs + x.param : inputs + x.param - own;
        DC_PUSH_IN(&f->arena, f->buf, x);
    }
    f->nparam += from->nparam;
}

static void add_parameters(joining *g)
{
    uint32_t outputs = 0, inputs = 0;
    for (uint32_t i = 0; i < g->n; i++)
        inputs += dc_flat_outputs(g->part[i]);
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t own = dc_flat_outputs(g->part[i]);
        add_buffers(g, i, outputs, inputs);
        outputs += own;
        inputs += g->part[i]->nparam - own;
    }
}

/* ---- a part ---------------------------------------------------------------------------------- */

static dc_fv number(joining *g, int64_t n)
{
    return dc_fb_const(g->b, DC_INDEX, 1, (uint64_t)n);
}

/* Which group of the part, and which of its threads; true: a condition was opened, as there are others. */
static bool find_own(joining *g, uint32_t part)
{
    dc_fbuild *b = g->b;
    const dc_flat *f = g->part[part];
    const int64_t each = b->f->threads / f->threads;
    g->own = dc_fb_op2(b, DC_K_SUB, g->group, number(g, g->begin[part]));
    g->member = g->thread;
    if (f->threads == b->f->threads)
        return false;
    const dc_fv which = dc_fb_op2(b, DC_K_DIV, g->thread, number(g, f->threads));
    g->member = dc_fb_op2(b, DC_K_REM, g->thread, number(g, f->threads));
    g->own = dc_fb_op2(b, DC_K_ADD, dc_fb_op2(b, DC_K_MUL, g->own, number(g, each)), which);
    const dc_fv there = dc_fb_op2(b, DC_K_LT, g->own, number(g, f->positions));
    const dc_fv whole = dc_fb_op2(b, DC_K_LT, which, number(g, each));
    dc_fb_if(b, dc_fb_op2(b, DC_K_AND, there, whole));
    return true;
}

/* As it stands, but for the numbers of values and buffers. */
static void copy_inst(joining *g, uint32_t part, dc_fv v)
{
    dc_fbuild *b = g->b;
    dc_finst x = *dc_finst_at(g->part[part], v);
    for (int i = 0; i < 3; i++)
        x.in[i] = x.in[i] != 0 ? g->value[x.in[i]] : 0;
    if (x.op == DC_K_ARG) {
        g->value[v] = x.imm == DC_KARG_GROUP ? g->own : g->member;
        return;
    }
    if (dc_kop_row_of((dc_kop)x.op)->form == DC_KFORM_MEM)
        x.buf += g->first_buf[part];
    g->value[v] = b->f->inst.n;
    DC_PUSH_IN(&b->f->arena, b->f->inst, x);
    DC_PUSH_IN(&b->f->arena, b->chain, 0);
    DC_PUSH_IN(&b->f->arena, b->f->order, g->value[v]);
}

static void put_part(joining *g, uint32_t part)
{
    const dc_flat *f = g->part[part];
    const bool guarded = find_own(g, part);
    const dc_mark mark = dc_arena_mark(&g->scratch);
    g->value = DC_NEW_ARRAY(&g->scratch, dc_fv, f->inst.n);
    for (uint32_t i = 0; i < f->order.n; i++)
        copy_inst(g, part, f->order.at[i]);
    dc_arena_rewind(&g->scratch, mark);
    if (guarded)
        dc_fb_end(g->b);
}

static void put_parts(joining *g, uint32_t from, uint32_t to)
{
    const uint32_t middle = from + (to - from) / 2;
    if (to - from == 1) {
        put_part(g, from);
        return;
    }
    const dc_fv bound = number(g, g->begin[middle]);
    const dc_fv below = dc_fb_op2(g->b, DC_K_LT, g->group, bound);
    const dc_fv above = dc_fb_op2(g->b, DC_K_LE, bound, g->group);
    dc_fb_if(g->b, below);
    put_parts(g, from, middle);
    dc_fb_end(g->b);
    dc_fb_if(g->b, above);
    put_parts(g, middle, to);
    dc_fb_end(g->b);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void free_flat(void *f)
{
    dc_flat_free(f);
}

static void free_joining(void *g)
{
    dc_arena_free(&((joining *)g)->scratch);
    dc_xfree(g);
}

static void set_heading(dc_flat *f, const dc_flat *const *part, uint32_t n, const char *name)
{
    snprintf(f->name, sizeof f->name, "%s", name);
    f->simt = true;
    f->strict = part[0]->strict;
    f->index_bits = part[0]->index_bits;
    for (uint32_t i = 0; i < n; i++) {
        f->threads = part[i]->threads > f->threads ? part[i]->threads : f->threads;
        f->lanes = part[i]->lanes > f->lanes ? part[i]->lanes : f->lanes;
    }
}

static void lay_groups(joining *g)
{
    dc_flat *f = g->b->f;
    for (uint32_t i = 0; i < g->n; i++) {
        g->begin[i] = f->positions;
        f->positions += groups_of(g->part[i], f->threads);
    }
    g->begin[g->n] = f->positions;
}

dc_flat *dc_flat_join(dc_job *j, const dc_flat *const *part, uint32_t n, const char *name)
{
    dc_flat *f = dc_xalloc(sizeof *f);
    dc_job_defer(j, free_flat, f);
    joining *g = dc_xalloc(sizeof *g);
    dc_job_defer(j, free_joining, g);
    set_heading(f, part, n, name);
    g->part = part;
    g->n = n;
    g->b = dc_fb_new(f);
    g->first_buf = DC_NEW_ARRAY(&g->scratch, uint32_t, n);
    g->begin = DC_NEW_ARRAY(&g->scratch, int64_t, n + 1);
    add_parameters(g);
    lay_groups(g);
    g->group = dc_fb_arg(g->b, DC_KARG_GROUP);
    g->thread = dc_fb_arg(g->b, DC_KARG_THREAD);
    put_parts(g, 0, n);
    dc_job_keep(j, g);
    free_joining(g);
    dc_job_keep(j, f);
    return f;
}
