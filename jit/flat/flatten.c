/*
 * Flattening: walks the nest and writes down what one thread does for a range of work items, or one
 * thread of a group (jit/flat/flatten_simt.c).
 *
 *   GRID                 the loop over the thread's work items
 *   SERIAL, BLOCK, LANE  a loop             UNROLL   the body repeated, the axis a constant
 *   VECTOR               the axis becomes lanes: what depends on it is a vector, the rest stays scalar
 *
 * Tests of an assignment that do not depend on the lane become IF round it, the others masks.
 */
#include "jit/flat/flatten_impl.h"
#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_access.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 16 << 10, SCRATCH_ALIGN = 64 };

enum { MOST_ROWS = 64 }; /* of a block that is transposed in registers */

/* Assignments ------------------------------------------------------------------------------- */

static void store_value(flattener *l, const dc_put *p, dc_fv v)
{
    const dc_ix at = dc_flatten_place(l, p->buf, p->at);
    if (l->row != NULL && l->row[p->buf] == ROW_PRIVATE)
        l->exchanged = NULL;
    bool affine;
    const int64_t step = dc_flatten_lane_stride(l, at, &affine);
    const bool lanes = dc_flatten_uses_lanes(l, at);
    const uint8_t scope = l->b->f->buf.at[p->buf].scope;
    const bool mine = scope == DC_SCOPE_LOCAL || scope == DC_SCOPE_SCRATCH;
    const bool whole = mine && dc_flatten_within(l, at, p->buf);
    dc_finst mem = {.op = DC_K_STORE,
                    .lanes = (uint16_t)(lanes ? l->lanes : 1),
                    .imm = 1,
                    .buf = p->buf,
                    .align = (uint16_t)dc_dtype_size((dc_dtype)l->k->buf.at[p->buf].dtype)};
    if (!lanes && dc_fb_at(l->b, v)->lanes > 1)
        DC_BUG("the lanes of %s store to one place", l->k->buf.at[p->buf].name);
    mem.in[1] = dc_fb_splat(l->b, v, mem.lanes);
    mem.in[2] = lanes ? l->mask : 0;
    if (affine && (step == 1 || whole || mem.in[2] == 0)) {
        mem.imm = (uint64_t)step;
        mem.align = lanes && step == 1 ? dc_flatten_align(l, at, p->buf) : mem.align;
        mem.in[0] = dc_flatten_scalar_index(l, at);
    } else {
        mem.op = DC_K_SCATTER;
        mem.in[0] = dc_flatten_lane_index(l, at);
    }
    if (whole && mem.op == DC_K_STORE && mem.in[2] != 0) { /* not masked: see load_lanes */
        dc_finst old = mem;
        old.op = DC_K_LOAD;
        old.in[1] = old.in[2] = 0;
        mem.in[1] = dc_fb_op3(l->b, DC_K_SELECT, l->mask, mem.in[1], dc_fb_mem(l->b, &old));
        mem.in[2] = 0;
    }
    if (l->filling && mem.op == DC_K_STORE) {
        dc_finst async = mem;
        async.op = DC_K_STORE_ASYNC;
        async.type = l->b->f->buf.at[mem.buf].dtype;
        if (dc_flat_async_bytes(l->b->f, &async) != 0)
            mem.op = DC_K_STORE_ASYNC;
    }
    dc_fb_mem(l->b, &mem);
}

/* Rows of a block that is stored column by column, found by find_block. */
typedef struct block {
    uint32_t row[MOST_ROWS];
    int64_t rows;
    dc_ix at; /* of the first row */
} block;

/* The step between lanes of a store that could be part of a block; 0: there is none. */
static int64_t block_step(flattener *l, const dc_put *p)
{
    bool affine;
    const dc_ix at = dc_flatten_place(l, p->buf, p->at);
    const int64_t step = dc_flatten_lane_stride(l, at, &affine);
    const bool power = step > 1 && step <= MOST_ROWS && (step & (step - 1)) == 0;
    const dc_buffer *b = &l->b->f->buf.at[p->buf];
    const bool memory = b->scope == DC_SCOPE_PARAM || b->count > DC_FLAT_REGISTERS * l->lanes;
    return affine && power && dc_flatten_uses_lanes(l, at) && memory && b->dtype != DC_BOOL ? step
                                                                                            : 0;
}

/*
 * Stores whose lanes are `rows` elements apart, and which together fill what lies between, first put n: a block, whose
 * rows are the vectors.
 */
static bool find_block(flattener *l, const dc_stmt *s, uint32_t n, const bool *done, block *out)
{
    const dc_put *first = &s->put[n];
    const dc_ix less = dc_ix_mul(l->k, first->at, -1);
    int64_t found = 1, at;
    *out = (block){.rows = block_step(l, first), .at = dc_flatten_place(l, first->buf, first->at)};
    out->row[0] = n;
    for (uint32_t i = 0; i < s->nput && out->rows > 0; i++) {
        const dc_put *p = &s->put[i];
        if (i == n || done[i] || p->buf != first->buf ||
            !dc_ix_is_const(l->k, dc_ix_add(l->k, p->at, less), &at) || at < 1 || at >= out->rows ||
            block_step(l, p) != out->rows)
            continue;
        out->row[at] = i;
        found++;
    }
    return out->rows > 0 && found == out->rows;
}

/* The block is transposed in registers, log2(rows) times zipping its first half with its second, and stored in vectors. */
static void store_block(flattener *l, const dc_stmt *s, const block *b, const dc_fv *value)
{
    dc_fv row[MOST_ROWS], next[MOST_ROWS];
    const uint32_t buf = s->put[b->row[0]].buf;
    const int64_t n = b->rows;
    const dc_fv index = dc_flatten_scalar_index(l, b->at);
    for (int64_t i = 0; i < n; i++)
        row[i] = dc_fb_splat(l->b, value[b->row[i]], l->lanes);
    for (int64_t part = n; part > 1; part /= 2) {
        for (int64_t i = 0; i < n / 2; i++) {
            next[2 * i] = dc_fb_op2(l->b, DC_K_ZIP_LOW, row[i], row[i + n / 2]);
            next[2 * i + 1] = dc_fb_op2(l->b, DC_K_ZIP_HIGH, row[i], row[i + n / 2]);
        }
        memcpy(row, next, (size_t)n * sizeof *row);
    }
    for (int64_t i = 0; i < n; i++) {
        const dc_fv more = dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)(i * l->lanes));
        const dc_finst mem = {.op = DC_K_STORE,
                              .lanes = (uint16_t)l->lanes,
                              .imm = 1,
                              .buf = buf,
                              .align = (uint16_t)dc_dtype_size((dc_dtype)l->k->buf.at[buf].dtype),
                              .in = {dc_fb_op2(l->b, DC_K_ADD, index, more), row[i]}};
        dc_fb_mem(l->b, &mem);
    }
}

/* Blocks of stores, where lanes are a power of two and all of them store; *done tells which. */
static void store_blocks(flattener *l, const dc_stmt *s, const dc_fv *value, bool *done)
{
    block b;
    if (l->b->f->simt || l->mask != 0 || l->lanes < 2 || (l->lanes & (l->lanes - 1)) != 0)
        return;
    for (uint32_t n = 0; n < s->nput && s->nput > 1; n++) {
        if (done[n] || !find_block(l, s, n, done, &b))
            continue;
        store_block(l, s, &b, value);
        for (int64_t i = 0; i < b.rows; i++)
            done[b.row[i]] = true;
    }
}

/* Lanes that the tests of an assignment let through, if these are the first ones whatever the other axes do; else 0. */
static int first_lanes(const flattener *l, dc_pred p)
{
    int64_t on = l->lanes;
    for (uint32_t i = 0; i < p.n; i++) {
        const dc_ix_node *x = fl_ix(l, p.range[i].ix);
        const dc_atom_node *t = x->n == 1 ? &l->k->atom.at[x->term[0].atom] : NULL;
        if (t == NULL || t->kind != DC_ATOM_AXIS || t->axis != l->vaxis || x->term[0].coef != 1 ||
            x->c < 0)
            return 0;
        on = dc_min_i64(on, p.range[i].n - x->c);
    }
    return (int)dc_max_i64(on, 0);
}

/*
 * Where threads exchange registers all of them compute the values (loads stand under a guard then)
 * and only the active ones store; else everything stands in the IF.
 */
static void flatten_set(flattener *l, const dc_stmt *s)
{
    if (fl_is_full(l))
        return;
    const dc_mark mark = dc_arena_mark(&l->j->scratch);
    dc_fv *value = DC_NEW_ARRAY(&l->j->scratch, dc_fv, s->nput);
    bool *done = DC_NEW_ARRAY(&l->j->scratch, bool, s->nput);
    const bool shuffles = dc_flatten_has_shuffle(l, s);
    l->now++;
    l->mask = 0;
    l->guard = l->active;
    l->on = first_lanes(l, s->pred);
    const cond c = dc_flatten_cond(l, s->pred);
    const dc_fv when = dc_flatten_both(l, l->active, c.all);
    dc_flatten_wgmma_wait(l, 0);
    l->guard = shuffles ? when : 0;
    if (!c.never) {
        if (when != 0 && !shuffles)
            dc_fb_if(l->b, when);
        l->mask = c.lane;
        for (uint32_t n = 0; n < s->nput; n++)
            value[n] = dc_flatten_value(l, s->put[n].value);
        if (when != 0 && shuffles)
            dc_fb_if(l->b, when);
        store_blocks(l, s, value, done);
        for (uint32_t n = 0; n < s->nput; n++)
            if (!done[n])
                store_value(l, &s->put[n], value[n]);
        if (when != 0)
            dc_fb_end(l->b);
    }
    for (uint32_t n = 0; n < s->nput; n++)
        if (l->b->f->buf.at[s->put[n].buf].scope != DC_SCOPE_PARAM)
            l->block.column = NULL;
    l->mask = l->guard = 0;
    dc_arena_rewind(&l->j->scratch, mark);
}

/* Loops ------------------------------------------------------------------------------------- */

/* Does every store inside go to another place for each step of the axis? Else it cannot be lanes.
 */
static bool moves_every_store(const dc_kernel *k, const dc_stmt *first, uint32_t axis)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP &&
            (k->axis.at[s->axis].kind == DC_AXIS_VECTOR || !moves_every_store(k, s->body, axis)))
            return false;
        if (s->kind == DC_STMT_TILE)
            return false;
        for (uint32_t n = 0; n < s->nput; n++)
            if (!dc_ix_uses(k, s->put[n].at, axis))
                return false;
    }
    return true;
}

static void flatten_lanes(flattener *l, const dc_stmt *s)
{
    l->bind[s->axis] = (bind){.kind = BIND_LANES};
    l->lanes = (int)l->k->axis.at[s->axis].extent;
    l->vaxis = s->axis;
    dc_flatten_list(l, s->body);
    l->lanes = 1;
    l->vaxis = DC_NO_AXIS;
}

static void flatten_iteration(flattener *l, const dc_stmt *s, int64_t i)
{
    l->bind[s->axis] = (bind){.kind = BIND_CONST, .c = i};
    dc_flatten_list(l, s->body);
}

static void flatten_unrolled(flattener *l, const dc_stmt *s)
{
    for (int64_t i = 0; i < l->k->axis.at[s->axis].extent; i++)
        flatten_iteration(l, s, i);
}

/* The body, where this iteration is needed. */
static void flatten_live_body(flattener *l, const dc_stmt *s, const fl_live *live)
{
    const dc_fv test = dc_flatten_live_test(l, live);
    if (test != 0)
        dc_fb_if(l->b, test);
    dc_flatten_list(l, s->body);
    if (test != 0)
        dc_fb_end(l->b);
}

typedef struct span { /* iterations [begin, end), which are among [from, to) */
    int64_t from, to;
    dc_fv begin, end;
} span;

/* Are both constants, and nothing between them? */
static bool is_empty(const flattener *l, const span *of)
{
    const dc_finst *begin = &l->b->f->inst.at[of->begin], *end = &l->b->f->inst.at[of->end];
    return begin->op == DC_K_CONST && end->op == DC_K_CONST &&
           (int64_t)begin->imm >= (int64_t)end->imm;
}

static void flatten_between(flattener *l, const dc_stmt *s, const fl_live *live, span of)
{
    if (is_empty(l, &of))
        return;
    const dc_fv counter = dc_fb_loop(l->b, of.begin, of.end);
    l->bind[s->axis] = (bind){.kind = BIND_VALUE, .v = counter, .from = of.from, .to = of.to};
    flatten_live_body(l, s, live);
    dc_fb_end(l->b);
}

static dc_fv larger(flattener *l, dc_fv a, dc_fv b)
{
    return dc_fb_op3(l->b, DC_K_SELECT, dc_fb_op2(l->b, DC_K_LT, a, b), b, a);
}

/* Iterations [from, to) of a loop. */
static void flatten_part(flattener *l, const dc_stmt *s, const fl_live *live, int64_t from,
                         int64_t to)
{
    if (from >= to)
        return;
    dc_fv begin = dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)from);
    if (to - from == 1) {
        if (live->end != 0)
            dc_fb_if(l->b, dc_fb_op2(l->b, DC_K_LT, begin, live->end));
        l->bind[s->axis] = (bind){.kind = BIND_CONST, .c = from};
        flatten_live_body(l, s, live);
        if (live->end != 0)
            dc_fb_end(l->b);
        return;
    }
    if (live->begin != 0)
        begin = larger(l, begin, live->begin);
    const dc_fv end = dc_flatten_live_end(l, live, dc_fb_const(l->b, DC_INDEX, 1, (uint64_t)to));
    if (live->whole == 0) {
        flatten_between(l, s, live, (span){from, to, begin, end});
        return;
    }
    const dc_fv whole = dc_flatten_live_end(l, &(fl_live){.end = live->whole}, end);
    fl_fact fact = {l->facts, live->known};
    l->facts = &fact;
    flatten_between(l, s, live, (span){from, to, begin, whole});
    l->facts = fact.outer;
    if (whole != end) /* behind them, at most one that is whole in part */
        flatten_between(l, s, live, (span){from, to, larger(l, begin, whole), end});
}

static void flatten_loop(flattener *l, const dc_stmt *s)
{
    const int64_t all = l->k->axis.at[s->axis].extent;
    const fl_ends e = dc_flatten_own_ends(l, s);
    const fl_live live = dc_flatten_live(l, s);
    flatten_part(l, s, &live, 0, e.first);
    flatten_part(l, s, &live, e.first, all - e.last);
    flatten_part(l, s, &live, all - e.last, all);
}

static void flatten_axis(flattener *l, const dc_stmt *s)
{
    const dc_axis *a = &l->k->axis.at[s->axis];
    dc_axis_kind kind = (dc_axis_kind)a->kind;
    if (kind == DC_AXIS_VECTOR && !moves_every_store(l->k, s->body, s->axis))
        kind = DC_AXIS_UNROLL;
    if (a->extent == 1)
        kind = DC_AXIS_UNROLL;
    if (a->extent <= 0 || (l->wgmma && dc_flatten_wgmma(l, s)))
        return;
    switch (kind) {
    case DC_AXIS_GRID:
        DC_BUG("%s: grid axis %s inside a loop", l->k->name, a->name);
    case DC_AXIS_SERIAL:
    case DC_AXIS_BLOCK:
    case DC_AXIS_LANE:
        flatten_loop(l, s);
        break;
    case DC_AXIS_VECTOR:
        flatten_lanes(l, s);
        break;
    case DC_AXIS_UNROLL:
        flatten_unrolled(l, s);
        break;
    }
    l->bind[s->axis] = (bind){0};
}

void dc_flatten_stmt(flattener *l, const dc_stmt *s)
{
    switch ((dc_stmt_kind)s->kind) {
    case DC_STMT_LOOP:
        flatten_axis(l, s);
        break;
    case DC_STMT_SET:
        flatten_set(l, s);
        break;
    case DC_STMT_TILE:
        dc_flatten_tile(l, s);
        break;
    }
}

void dc_flatten_list(flattener *l, const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        dc_flatten_stmt(l, s);
}

/* Threads of a CPU -------------------------------------------------------------------------- */

static bool is_grid(const dc_kernel *k, const dc_stmt *s)
{
    return s->kind == DC_STMT_LOOP && k->axis.at[s->axis].kind == DC_AXIS_GRID;
}

/* Is something prefetched of which only the next work item's index tells where it lies? */
static bool needs_next_row(const dc_kernel *k, uint32_t grid)
{
    for (dc_vx v = 1; v < k->vx.n; v++) {
        const dc_vx_node *x = &k->vx.at[v];
        bool affine = true;
        if (x->kind != DC_VX_LOAD || k->buf.at[x->buf].prefetch == 0 ||
            k->buf.at[x->buf].over != grid)
            continue;
        dc_ix_stride(k, x->at, grid, &affine);
        if (!affine)
            return true;
    }
    return false;
}

typedef struct own_positions {
    int64_t first;    /* work item of the nest */
    dc_fv begin, end; /* those that a thread has of it */
    bool cut;         /* not all of them are one part */
    bool next;        /* the next one is asked for */
    fl_live live;
} own_positions;

/* Those of [*begin, *end) that lie in [from, to). */
static void keep_within(dc_fbuild *b, dc_fv *begin, dc_fv *end, int64_t from, int64_t to)
{
    const dc_fv lo = dc_fb_const(b, DC_INDEX, 1, (uint64_t)from);
    const dc_fv hi = dc_fb_const(b, DC_INDEX, 1, (uint64_t)to);
    *begin = dc_fb_op3(b, DC_K_SELECT, dc_fb_op2(b, DC_K_LT, *begin, lo), lo, *begin);
    *end = dc_fb_op3(b, DC_K_SELECT, dc_fb_op2(b, DC_K_LT, hi, *end), hi, *end);
}

/* Iterations [from, to) of the grid axis. */
static void worker_part(flattener *l, const dc_stmt *s, const own_positions *p, int64_t from,
                        int64_t to)
{
    dc_fbuild *b = l->b;
    const dc_fv lo = dc_fb_const(b, DC_INDEX, 1, (uint64_t)p->first);
    dc_fv begin = p->begin, end = p->end;
    if (from >= to)
        return;
    if (p->cut)
        keep_within(b, &begin, &end, p->first + from, p->first + to);
    const dc_fv counter = dc_fb_loop(b, begin, end);
    l->bind[s->axis] = (bind){.kind = BIND_VALUE,
                              .v = dc_fb_op2(b, DC_K_SUB, counter, lo),
                              .from = p->cut ? from : 0,
                              .to = p->cut ? to : 0};
    if (to - from == 1 && p->cut)
        l->bind[s->axis] = (bind){.kind = BIND_CONST, .c = from};
    if (p->next) {
        const dc_fv after = dc_fb_op2(b, DC_K_ADD, counter, dc_fb_const(b, DC_INDEX, 1, 1));
        const dc_fv more = dc_fb_op2(b, DC_K_LT, after, end);
        l->rows = s->axis;
        l->next_row = dc_fb_op2(b, DC_K_SUB, dc_fb_op3(b, DC_K_SELECT, more, after, counter), lo);
    }
    flatten_live_body(l, s, &p->live);
    dc_fb_end(b);
    l->next_row = 0;
}

/*
 * Is anything read in lanes that do not stand beside each other in memory? Behind a mask that is not known such
 * lanes are gathered. Elsewhere a mask costs less than the same text twice.
 */
static bool reads_apart(flattener *l, const dc_stmt *s)
{
    dc_nest_edit v = {.k = l->k, .tmp = &l->j->scratch};
    const dc_accesses all = dc_nest_accesses(&v, s->body, NULL);
    for (uint32_t i = 0; i < all.n; i++)
        for (const dc_path *p = all.at[i].path; p != NULL; p = p->up) {
            bool affine = true;
            const uint32_t axis = p->loop->axis;
            if (all.at[i].store || l->k->axis.at[axis].kind != DC_AXIS_VECTOR)
                continue;
            const int64_t step = dc_ix_stride(l->k, all.at[i].at, axis, &affine);
            if (!affine || (step != 0 && step != 1))
                return true;
        }
    return false;
}

/* The work items of one nest: those of [begin, end) that lie in [first, first + extent). */
static void worker_nest(flattener *l, const dc_stmt *s, int64_t first, bool alone)
{
    dc_fbuild *b = l->b;
    const int64_t extent = l->k->axis.at[s->axis].extent;
    dc_fv begin = dc_fb_arg(b, DC_KARG_BEGIN), end = dc_fb_arg(b, DC_KARG_END);
    if (!alone)
        keep_within(b, &begin, &end, first, first + extent);
    const fl_live live = dc_flatten_live(l, s);
    if (live.end != 0)
        end = dc_flatten_live_end(
            l,
            &(fl_live){.end = dc_fb_op2(b, DC_K_ADD, live.end,
                                        dc_fb_const(b, DC_INDEX, 1, (uint64_t)first))},
            end);
    if (l->k->axis.at[s->axis].pipeline) {
        dc_flatten_pipelined(l, s, begin, end, dc_fb_const(b, DC_INDEX, 1, (uint64_t)first));
        return;
    }
    const bool next = needs_next_row(l->k, s->axis);
    const bool cut = !next && reads_apart(l, s);
    const fl_ends e = cut ? dc_flatten_own_ends(l, s) : (fl_ends){0};
    const own_positions part = {.first = first,
                                .begin = begin,
                                .end = end,
                                .cut = e.first + e.last > 0,
                                .next = next,
                                .live = live};
    worker_part(l, s, &part, 0, e.first);
    worker_part(l, s, &part, e.first, extent - e.last);
    worker_part(l, s, &part, extent - e.last, extent);
    l->bind[s->axis] = (bind){0};
}

static void flatten_workers(flattener *l)
{
    const dc_stmt *root = l->k->root;
    int64_t first = 0;
    if (root == NULL || !is_grid(l->k, root)) { /* one work item: everything is done for it */
        dc_fb_loop(l->b, dc_fb_arg(l->b, DC_KARG_BEGIN), dc_fb_arg(l->b, DC_KARG_END));
        dc_flatten_list(l, root);
        dc_fb_end(l->b);
        return;
    }
    for (const dc_stmt *s = root; s != NULL; s = s->next) {
        if (!is_grid(l->k, s))
            DC_BUG("%s: a nest without grid beside one with", l->k->name);
        if (l->k->axis.at[s->axis].extent <= 0)
            continue;
        worker_nest(l, s, first, root->next == NULL);
        first += l->k->axis.at[s->axis].extent;
    }
}

/* All belong to one thread; what is large goes to its scratch memory. */
static void worker_buffers(dc_flat *f)
{
    for (uint32_t n = 0; n < f->buf.n; n++) {
        dc_buffer *b = &f->buf.at[n];
        const size_t bytes = (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
        if (b->scope == DC_SCOPE_PARAM)
            continue;
        b->scope = DC_SCOPE_LOCAL;
        if (bytes <= STACK_BYTES)
            continue;
        b->scope = DC_SCOPE_SCRATCH;
        b->at = f->scratch;
        f->scratch += dc_align_up(bytes, SCRATCH_ALIGN);
    }
}

/* Kernels --------------------------------------------------------------------------------------- */

static void free_flat(void *f)
{
    dc_flat_free(f);
}

/* Can everything be counted in 32 bits, also where a test has yet to fail? */
static bool fits_32(const dc_kernel *k)
{
    const int64_t limit = (int64_t)1 << 30;
    for (uint32_t i = 1; i < k->ix.n; i++)
        if (k->ix.at[i].lo < -limit || k->ix.at[i].hi >= limit)
            return false;
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].count >= limit)
            return false;
    return true;
}

/* On the job's cleanup list. */
static dc_flat *flat_of(dc_job *j, const dc_kernel *k, bool simt)
{
    const dc_launch launch = dc_nest_launch(k);
    dc_flat *f = dc_xalloc(sizeof *f);
    dc_job_defer(j, free_flat, f);
    memcpy(f->name, k->name, sizeof f->name);
    f->strict = k->strict;
    f->simt = simt;
    f->index_bits = simt && fits_32(k) ? 32 : 64;
    f->threads = simt ? launch.threads : 1;
    f->positions = launch.positions;
    f->nparam = k->nparam;
    for (uint32_t n = 0; n < k->buf.n; n++)
        DC_PUSH_IN(&f->arena, f->buf, k->buf.at[n]);
    for (uint32_t n = 0; n < f->buf.n; n++) {
        f->buf.at[n].name = dc_arena_strdup(&f->arena, k->buf.at[n].name);
        f->buf.at[n].over = f->buf.at[n].within = 0; /* each load says what it fetches */
        f->buf.at[n].uncached = false;
        if (simt)
            f->buf.at[n].prefetch = 0;
    }
    return f;
}

static dc_status flatten_body(flattener *l, const dc_target *t)
{
    dc_flat *f = l->b->f;
    if (!f->simt) {
        worker_buffers(f);
        flatten_workers(l);
        return DC_OK;
    }
    DC_TRY(dc_flatten_simt_buffers(l, t));
    dc_flatten_simt(l);
    return DC_OK;
}

static dc_status check_and_optimize(dc_job *j, dc_flat *f, uint32_t skip)
{
    const bool check = j->opt != NULL && j->opt->check > 0;
    if (check)
        DC_TRY(dc_flat_check(j, f));
    return dc_flat_optimize(j, f, skip, check);
}

static bool has_warpgroups(const dc_stmt *first)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind == DC_STMT_TILE ? dc_tile_by_warpgroups(s->tile->which)
                                    : has_warpgroups(s->body))
            return true;
    return false;
}

dc_status dc_flatten_for(dc_job *j, dc_kernel *k, const dc_target *target, uint32_t skip,
                         dc_flat **out)
{
    dc_flat *f = flat_of(j, k, target != NULL && target->simt);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    flattener l = {.j = j,
                   .k = k,
                   .b = dc_fb_new(f),
                   .bind = DC_NEW_ARRAY(&j->scratch, bind, k->axis.n),
                   .ended = DC_NEW_ARRAY(&j->scratch, dc_limits, k->axis.n),
                   .stored = DC_NEW_ARRAY(&j->scratch, uint8_t, k->buf.n),
                   .lanes = 1,
                   .vaxis = DC_NO_AXIS,
                   .value = DC_NEW_ARRAY(&j->scratch, dc_fv, k->vx.n),
                   .epoch = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n),
                   .under = DC_NEW_ARRAY(&j->scratch, struct fl_under *, k->vx.n)};
    l.async = target != NULL && target->sm >= 80;
    l.matrices = target != NULL && target->sm >= 80;
    l.wgmma = target != NULL && target->simt && target->warpgroups && has_warpgroups(k->root);
    l.b->half = target != NULL && target->half;
    l.b->bfloat = target != NULL && target->bfloat;
    l.b->scales = target != NULL && target->scales;
    l.b->fused = target != NULL && target->fused && !f->strict;
    l.b->dp4a = target != NULL && target->dp4a;
    l.b->ranges = target != NULL && target->ranges;
    dc_status s = flatten_body(&l, target);
    if (s == DC_OK && fl_is_full(&l))
        s = dc_failf(j, DC_ERR_BUILD, k->name, "more instructions than a kernel may have");
    dc_arena_rewind(&j->scratch, mark);
    if (s == DC_OK)
        s = check_and_optimize(j, f, skip);
    dc_job_keep(j, f);
    if (s != DC_OK) {
        dc_flat_free(f);
        return s;
    }
    *out = f;
    return DC_OK;
}

dc_status dc_flatten(dc_job *j, dc_kernel *k, dc_flat **out)
{
    return dc_flatten_for(j, k, NULL, 0, out);
}
