/*
 * Kernels joined (jit/flat/flat_join.h). Neighbours that are alike (jit/flat/flat_alike.h) are a family: one body, and a
 * table with a row for each of them. The number of the group is compared with where families begin, by halves, so that of
 * n families a group passes log n tests; in a family it finds its row by halves, too, or by division where all rows have as
 * many groups. All that is the same for all threads of a group, so barriers may stand below it.
 *
 * Addresses are made where a row is chosen: no thread holds those of other parts.
 */
#include "jit/flat/flat_join.h"

#include <stdio.h>
#include <string.h>

typedef struct family {
    uint32_t first, n;               /* parts */
    uint32_t *buf;                   /* by buffer of the first one: which it is here */
    DC_VEC(const uint64_t *) column; /* by column: a number of each row */
} family;

typedef struct joining {
    dc_fbuild *b;
    const dc_flat_body *part;
    uint32_t n;
    family *family;
    uint32_t nfamily;
    int64_t *begin;      /* by part, and behind the last: groups */
    dc_fv group, thread; /* of the launch */
    dc_fv row;           /* of the family at hand */
    dc_fv own, member;   /* of the part at hand: its group, the number of the thread in that */
    dc_fv *value;        /* by value of the family's first part: what it is here */
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
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *b = &f->buf.at[n];
        for (uint32_t r = 0; r < dc_flat_rows(f, b); r++)
            if (b->param + b->step * r == param)
                return b->mode != DC_MODE_IN;
    }
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

/* ---- families -------------------------------------------------------------------------------- */

static const dc_flat *flat_at(const joining *g, uint32_t part)
{
    return g->part[part].f;
}

static void find_families(joining *g)
{
    g->family = DC_NEW_ARRAY(&g->scratch, family, g->n);
    for (uint32_t i = 0; i < g->n; i++) {
        family *last = g->nfamily > 0 ? &g->family[g->nfamily - 1] : NULL;
        if (last != NULL && dc_flat_alike(&g->part[last->first], &g->part[i]))
            last->n++;
        else
            g->family[g->nfamily++] = (family){.first = i, .n = 1};
    }
}

static bool is_one_number(const uint64_t *of, uint32_t n)
{
    for (uint32_t r = 1; r < n; r++)
        if (of[r] != of[0])
            return false;
    return true;
}

/* The column of these numbers, a new one if there is none like it. */
static uint32_t column_of(joining *g, family *y, const uint64_t *of)
{
    for (uint32_t c = 0; c < y->column.n; c++)
        if (memcmp(y->column.at[c], of, y->n * sizeof *of) == 0)
            return c;
    DC_PUSH_IN(&g->scratch, y->column, of);
    return y->column.n - 1;
}

/* What the rows have for an operand of the body that is a constant; NULL: the same. */
static const uint64_t *numbers_of(joining *g, family *y, uint32_t at, int k)
{
    const dc_flat *f = flat_at(g, y->first);
    const dc_fv in = dc_finst_at(f, g->part[y->first].at[at])->in[k];
    if (in == 0 || y->n == 1 || dc_finst_at(f, in)->op != DC_K_CONST)
        return NULL;
    uint64_t *of = DC_NEW_ARRAY(&g->scratch, uint64_t, y->n);
    for (uint32_t r = 0; r < y->n; r++) {
        const dc_flat_body *x = &g->part[y->first + r];
        of[r] = dc_finst_at(x->f, dc_finst_at(x->f, x->at[at])->in[k])->imm;
    }
    return is_one_number(of, y->n) ? NULL : of;
}

/* A number of each part of the family. */
static const uint64_t *each(joining *g, family *y, uint64_t of(const joining *, uint32_t))
{
    uint64_t *n = DC_NEW_ARRAY(&g->scratch, uint64_t, y->n);
    for (uint32_t r = 0; r < y->n; r++)
        n[r] = of(g, y->first + r);
    return n;
}

static uint64_t begin_of(const joining *g, uint32_t part)
{
    return (uint64_t)g->begin[part];
}

static uint64_t threads_of(const joining *g, uint32_t part)
{
    return flat_at(g, part)->threads;
}

static uint64_t members_of(const joining *g, uint32_t part)
{
    return g->b->f->threads / flat_at(g, part)->threads;
}

static uint64_t positions_of(const joining *g, uint32_t part)
{
    return (uint64_t)flat_at(g, part)->positions;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static uint32_t count_column(joining *g, family *y, uint32_t buf)
{
    uint64_t *of = DC_NEW_ARRAY(&g->scratch, uint64_t, y->n);
    for (uint32_t r = 0; r < y->n; r++)
        of[r] = (uint64_t)flat_at(g, y->first + r)->buf.at[buf].count;
    return is_one_number(of, y->n) ? 0 : column_of(g, y, of) + 1;
}

static int64_t most_elements(const joining *g, family *y, uint32_t buf)
{
    int64_t most = 0;
    for (uint32_t r = 0; r < y->n; r++)
        if (flat_at(g, y->first + r)->buf.at[buf].count > most)
            most = flat_at(g, y->first + r)->buf.at[buf].count;
    return most;
}

/* Group memory that another family has is free for this one: a group is in one of them. 0: there is none. */
static uint32_t free_buffer(const joining *g, const dc_buffer *x, const bool *used)
{
    const dc_flat *f = g->b->f;
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].scope == DC_SCOPE_GROUP && f->buf.at[n].dtype == x->dtype && !used[n])
            return n + 1;
    return 0;
}

static uint32_t add_buffer(joining *g, family *y, dc_buffer x, bool *used)
{
    dc_flat *f = g->b->f;
    uint32_t at = x.scope == DC_SCOPE_GROUP ? free_buffer(g, &x, used) : 0;
    if (at == 0) {
        x.name = dc_arena_printf(&f->arena, "p%u_%s", (unsigned)y->first, x.name);
        DC_PUSH_IN(&f->arena, f->buf, x);
        at = f->buf.n;
    }
    dc_buffer *b = &f->buf.at[at - 1];
    b->count = x.count > b->count ? x.count : b->count;
    b->atoms = b->atoms || x.atoms;
    used[at - 1] = true;
    return at - 1;
}

/* Of a family: its outputs from parameter `out` on, its inputs from `in` on, both row by row. */
static void add_buffers(joining *g, uint32_t number, uint32_t out, uint32_t in)
{
    family *y = &g->family[number];
    const dc_flat *from = flat_at(g, y->first);
    const uint32_t nout = dc_flat_outputs(from);
    bool *used = DC_NEW_ARRAY(&g->scratch, bool, g->b->f->buf.n + from->buf.n);
    y->buf = DC_NEW_ARRAY(&g->scratch, uint32_t, from->buf.n);
    for (uint32_t n = 0; n < from->buf.n; n++) {
        dc_buffer x = from->buf.at[n];
        x.count = most_elements(g, y, n);
        if (x.scope == DC_SCOPE_PARAM) {
            x.table = number + 1;
            x.column = count_column(g, y, n);
            x.step = x.param < nout ? nout : from->nparam - nout;
            x.param = x.param < nout ? out + x.param : in + x.param - nout;
        }
        y->buf[n] = add_buffer(g, y, x, used);
    }
    g->b->f->nparam += from->nparam * y->n;
}

static void add_parameters(joining *g)
{
    uint32_t out = 0, in = 0;
    for (uint32_t i = 0; i < g->n; i++)
        in += dc_flat_outputs(flat_at(g, i));
    for (uint32_t i = 0; i < g->nfamily; i++) {
        const dc_flat *f = flat_at(g, g->family[i].first);
        add_buffers(g, i, out, in);
        out += dc_flat_outputs(f) * g->family[i].n;
        in += (f->nparam - dc_flat_outputs(f)) * g->family[i].n;
    }
}

/* ---- a row ----------------------------------------------------------------------------------- */

static dc_fv number(joining *g, int64_t n)
{
    return dc_fb_const(g->b, DC_INDEX, 1, (uint64_t)n);
}

static dc_fv cell_at(joining *g, family *y, int type, const uint64_t *of, dc_fv row)
{
    if (is_one_number(of, y->n))
        return dc_fb_const(g->b, type, 1, of[0]);
    const uint32_t column = column_of(g, y, of);
    return dc_fb_cell(g->b, type, (uint32_t)(y - g->family), column, row);
}

static bool is_even(const joining *g, family *y)
{
    const int64_t *begin = g->begin + y->first;
    for (uint32_t r = 1; r < y->n; r++)
        if (begin[r + 1] - begin[r] != begin[1] - begin[0])
            return false;
    return true;
}

/* The last row that does not begin behind the group. */
static dc_fv find_row(joining *g, family *y)
{
    dc_fbuild *b = g->b;
    dc_fv row = number(g, 0);
    if (y->n == 1)
        return row;
    if (is_even(g, y)) {
        const int64_t *begin = g->begin + y->first;
        const dc_fv behind = dc_fb_op2(b, DC_K_SUB, g->group, number(g, begin[0]));
        return dc_fb_op2(b, DC_K_DIV, behind, number(g, begin[1] - begin[0]));
    }
    const uint64_t *begin = each(g, y, begin_of);
    for (uint32_t n = y->n; n > 1; n -= n / 2) {
        const dc_fv next = dc_fb_op2(b, DC_K_ADD, row, number(g, n / 2));
        const dc_fv from = cell_at(g, y, DC_INDEX, begin, next);
        row = dc_fb_op3(b, DC_K_SELECT, dc_fb_op2(b, DC_K_LE, from, g->group), next, row);
    }
    return row;
}

static dc_fv own_number(joining *g, family *y, uint64_t of(const joining *, uint32_t))
{
    return cell_at(g, y, DC_INDEX, each(g, y, of), g->row);
}

/* Which group of the part, and which of its threads; true: a condition was opened, as there are others. */
static bool find_own(joining *g, family *y)
{
    dc_fbuild *b = g->b;
    bool whole = true;
    g->own = dc_fb_op2(b, DC_K_SUB, g->group, own_number(g, y, begin_of));
    g->member = g->thread;
    for (uint32_t r = 0; r < y->n; r++)
        whole = whole && threads_of(g, y->first + r) == b->f->threads;
    if (whole)
        return false;
    const dc_fv threads = own_number(g, y, threads_of), members = own_number(g, y, members_of);
    const dc_fv which = dc_fb_op2(b, DC_K_DIV, g->thread, threads);
    g->member = dc_fb_op2(b, DC_K_REM, g->thread, threads);
    g->own = dc_fb_op2(b, DC_K_ADD, dc_fb_op2(b, DC_K_MUL, g->own, members), which);
    const dc_fv there = dc_fb_op2(b, DC_K_LT, g->own, own_number(g, y, positions_of));
    dc_fb_if(b, dc_fb_op2(b, DC_K_AND, there, dc_fb_op2(b, DC_K_LT, which, members)));
    return true;
}

/* ---- a body ---------------------------------------------------------------------------------- */

/* Cells stand in front of the body: inside, a scope would end before the next use. */
static void put_cells(joining *g, family *y)
{
    const dc_flat_body *x = &g->part[y->first];
    for (uint32_t n = 0; n < x->n; n++)
        for (int k = 0; k < 3; k++) {
            const uint64_t *of = numbers_of(g, y, n, k);
            const dc_fv in = dc_finst_at(x->f, x->at[n])->in[k];
            if (of != NULL)
                cell_at(g, y, dc_finst_at(x->f, in)->type, of, g->row);
        }
}

static dc_fv operand(joining *g, family *y, uint32_t n, int k)
{
    const dc_flat_body *x = &g->part[y->first];
    const dc_fv in = dc_finst_at(x->f, x->at[n])->in[k];
    const uint64_t *of = numbers_of(g, y, n, k);
    if (of != NULL)
        return cell_at(g, y, dc_finst_at(x->f, in)->type, of, g->row);
    return in != 0 ? g->value[in] : 0;
}

static void put_leaves(joining *g, const dc_flat *f)
{
    for (uint32_t i = 0; i < f->order.n; i++) {
        const dc_fv v = f->order.at[i];
        const dc_finst *x = dc_finst_at(f, v);
        if (x->op == DC_K_CONST)
            g->value[v] = dc_fb_const(g->b, x->type, x->lanes, x->imm);
        else if (x->op == DC_K_ARG)
            g->value[v] = x->imm == DC_KARG_GROUP ? g->own : g->member;
    }
}

/* As it stands, but for the numbers of values and buffers. */
static void copy_inst(joining *g, family *y, uint32_t n)
{
    dc_fbuild *b = g->b;
    const dc_fv v = g->part[y->first].at[n];
    dc_finst x = *dc_finst_at(flat_at(g, y->first), v);
    for (int k = 0; k < 3; k++)
        x.in[k] = operand(g, y, n, k);
    if (dc_kop_row_of((dc_kop)x.op)->form == DC_KFORM_MEM)
        x.buf = y->buf[x.buf];
    g->value[v] = b->f->inst.n;
    DC_PUSH_IN(&b->f->arena, b->f->inst, x);
    DC_PUSH_IN(&b->f->arena, b->chain, 0);
    DC_PUSH_IN(&b->f->arena, b->f->order, g->value[v]);
}

static void put_family(joining *g, family *y)
{
    const dc_flat_body *x = &g->part[y->first];
    g->row = find_row(g, y);
    dc_fb_rows(g->b, (uint32_t)(y - g->family), g->row);
    const bool guarded = find_own(g, y);
    g->value = DC_NEW_ARRAY(&g->scratch, dc_fv, x->f->inst.n);
    put_leaves(g, x->f);
    put_cells(g, y);
    for (uint32_t n = 0; n < x->n; n++)
        copy_inst(g, y, n);
    if (guarded)
        dc_fb_end(g->b);
    dc_fb_end(g->b);
}

static void put_families(joining *g, uint32_t from, uint32_t to)
{
    const uint32_t middle = from + (to - from) / 2;
    if (to - from == 1) {
        put_family(g, &g->family[from]);
        return;
    }
    const dc_fv bound = number(g, g->begin[g->family[middle].first]);
    const dc_fv below = dc_fb_op2(g->b, DC_K_LT, g->group, bound);
    const dc_fv above = dc_fb_op2(g->b, DC_K_LE, bound, g->group);
    dc_fb_if(g->b, below);
    put_families(g, from, middle);
    dc_fb_end(g->b);
    dc_fb_if(g->b, above);
    put_families(g, middle, to);
    dc_fb_end(g->b);
}

static void keep_table(joining *g, family *y)
{
    dc_flat *f = g->b->f;
    dc_ftable t = {.rows = y->n, .columns = y->column.n};
    t.cell = DC_NEW_ARRAY(&f->arena, uint64_t, t.rows * t.columns);
    for (uint32_t r = 0; r < t.rows; r++)
        for (uint32_t c = 0; c < t.columns; c++)
            t.cell[r * t.columns + c] = y->column.at[c][r];
    f->table.at[y - g->family] = t;
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
        f->positions += groups_of(flat_at(g, i), f->threads);
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
    dc_flat_body *body = DC_NEW_ARRAY(&g->scratch, dc_flat_body, n);
    for (uint32_t i = 0; i < n; i++)
        body[i] = dc_flat_body_of(&g->scratch, part[i]);
    g->part = body;
    g->n = n;
    g->b = dc_fb_new(f);
    g->begin = DC_NEW_ARRAY(&g->scratch, int64_t, n + 1);
    find_families(g);
    lay_groups(g);
    add_parameters(g);
    g->group = dc_fb_arg(g->b, DC_KARG_GROUP);
    g->thread = dc_fb_arg(g->b, DC_KARG_THREAD);
    put_families(g, 0, g->nfamily);
    for (uint32_t i = 0; i < g->nfamily; i++) {
        DC_PUSH_IN(&f->arena, f->table, (dc_ftable){0});
        keep_table(g, &g->family[i]);
    }
    dc_job_keep(j, g);
    free_joining(g);
    dc_job_keep(j, f);
    return f;
}
