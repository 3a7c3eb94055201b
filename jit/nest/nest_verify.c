/*
 * Verifier of the nest form. What it proves for every kernel, by ranges and by where things stand
 * (the header comment of jit/nest/nest.h):
 *   - shape: grid loops at the root only, and there alone; vector innermost; thread loops inside each
 *     other as blocks, then lanes; all phases of a block loop by as many threads; no loop inside one
 *     over the same axis; names are unique;
 *   - each axis is used inside a loop over it;
 *   - every load and store that stands under no range test that can fail is inside its buffer;
 *   - loops of a text that was given have at least one iteration and something in them;
 *   - dtypes of operands, stores and tiles fit; inputs are not stored to;
 *   - memory traffic: outputs are stored past the caches, inputs prefetched, and a pipelined loop may be;
 *   - no role of a loop contradicts the loop, or what is multiplied in it;
 *   - memory: a buffer that is no parameter and is read is stored to as well; a local belongs to one
 *     iteration of the parallel loops, group and thread memory to one position of the grid, and
 *     threads keep to their rows of thread memory.
 * Accesses under range tests and the promise of parallel axes are not proved: the interpreter
 * (tests/unit/nest_interp.h) watches them.
 */
#include "jit/nest/matrix_tile.h"
#include "jit/nest/nest_print.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/nest_traffic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_THREADS = 1 << 16, MAX_LANES = 64 };

#define MAX_COUNT ((int64_t)1 << 48) /* elements of a buffer, extent of an axis */
#define MAX_LOCAL ((int64_t)1 << 32) /* bytes of a buffer that is no parameter */

typedef struct frame { /* the loops round the current statement */
    const dc_stmt *loop;
    int64_t inside; /* threads that its body is divided among */
    const struct frame *outer;
} frame;

typedef struct checking {
    dc_job *j;
    const dc_kernel *k;
    int64_t threads;
    const frame *frames;             /* innermost first */
    const dc_stmt *grid, *parallel;  /* innermost loops of these kinds, NULL outside */
    const dc_stmt **home;            /* by buffer: the loop that it belongs to */
    bool *used;                      /* by buffer */
    bool *stored;                    /* by buffer */
    uint32_t *read;                  /* by buffer: line of its first load, from 1; 0: none */
    bool *open;                      /* by axis: is a loop over it round the current point? */
    uint32_t line;                   /* of the statement, where it was read from a text */
    bool dead;                       /* inside a loop of no iterations */
    bool given;                      /* as a text: a mistake is an error, not a bug */
    uint32_t *seen[2], *ixseen, now; /* the assignment it was checked for: [guarded] by value */
    bool failed;
} checking;

typedef struct access {
    uint32_t buf;
    dc_ix at;
    int64_t lo, hi; /* elements from at + lo to at + hi */
    bool stores, guarded;
} access;

static void complain(checking *c, const char *what, const char *which)
{
    if (!c->failed) {
        char text[200];
        snprintf(text, sizeof text, "%s%s%s", what, which[0] != '\0' ? ": " : "", which);
        if (c->given)
            dc_fail(c->j, DC_ERR_PARSE, &(dc_fact){.num = {c->line}, .word = {text}});
        else
            dc_fail(c->j, DC_ERR_BUG, &(dc_fact){.num = {c->line}, .word = {c->k->name, text}});
    }
    c->failed = true;
}

/* Shape -------------------------------------------------------------------------------------- */

typedef struct phases {
    int64_t least,
        most; /* threads of the phases among some statements; 0 and 1 where there are none */
} phases;

static phases check_shape(checking *c, const dc_stmt *first, bool root, bool lanes);

/* A block loop that holds thread loops. */
static void check_block(checking *c, const dc_stmt *loop, phases in)
{
    const char *name = c->k->axis.at[loop->axis].name;
    for (const dc_stmt *t = loop->body; t != NULL; t = t->next)
        if (t->kind != DC_STMT_LOOP)
            complain(c, "an assignment beside the thread loops of block axis", name);
    if (in.least != in.most)
        complain(c, "phases by different numbers of threads inside block axis", name);
}

static void check_vector(checking *c, const dc_stmt *loop)
{
    const dc_axis *a = &c->k->axis.at[loop->axis];
    for (const dc_stmt *t = loop->body; t != NULL; t = t->next)
        if (t->kind != DC_STMT_SET)
            complain(c, "vector axis is not innermost", a->name);
    if (a->extent < 1 || a->extent > MAX_LANES || (a->extent & (a->extent - 1)) != 0)
        complain(c, "vector lanes are a power of two, at most 64", a->name);
}

static phases check_loop(checking *c, const dc_stmt *loop, bool root, bool lanes)
{
    const phases none = {0, 1};
    c->line = loop->line;
    if (loop->axis >= c->k->axis.n) {
        complain(c, "no such axis", "");
        return none;
    }
    const dc_axis *a = &c->k->axis.at[loop->axis];
    const bool thread = dc_axis_is_thread(a->kind);
    if (a->extent < 0 || a->extent > MAX_COUNT || a->kind > DC_AXIS_LANE)
        complain(c, "no legal axis", a->name);
    if (c->given && a->extent == 0)
        complain(c, "a loop of no iterations", a->name);
    if (c->given && loop->body == NULL)
        complain(c, "a loop with nothing in it", a->name);
    if (!dc_role_fits((dc_role)a->role, a->reduce))
        complain(c, a->reduce ? "a role of loops that reduce nothing" : "a role of reductions",
                 a->name);
    if (c->open[loop->axis])
        complain(c, "loop inside a loop over the same axis", a->name);
    if (a->kind == DC_AXIS_GRID && !root)
        complain(c, "grid axis is not outermost", a->name);
    if (thread && lanes)
        complain(c, "a thread axis inside a lane axis", a->name);
    if (thread && (a->extent < 1 || a->extent > MAX_THREADS))
        complain(c, "too many threads, or none", a->name);
    if (a->kind == DC_AXIS_VECTOR)
        check_vector(c, loop);
    if (c->failed)
        return none;
    c->open[loop->axis] = true;
    phases in = check_shape(c, loop->body, false, lanes || a->kind == DC_AXIS_LANE);
    c->open[loop->axis] = false;
    if (a->kind == DC_AXIS_BLOCK && in.least > 0)
        check_block(c, loop, in);
    if (!thread || c->failed)
        return in;
    if (in.most * a->extent > MAX_THREADS)
        complain(c, "too many threads, or none", a->name);
    return (phases){in.most * a->extent, in.most * a->extent};
}

static phases check_shape(checking *c, const dc_stmt *first, bool root, bool lanes)
{
    phases all = {0, 1};
    for (const dc_stmt *t = first; t != NULL && !c->failed; t = t->next) {
        if (t->kind != DC_STMT_LOOP)
            continue;
        const phases p = check_loop(c, t, root, lanes);
        all.most = dc_max_i64(all.most, p.most);
        if (p.least > 0)
            all.least = all.least == 0 ? p.least : dc_min_i64(all.least, p.least);
    }
    return all;
}

static bool is_grid(const dc_kernel *k, const dc_stmt *t)
{
    return t->kind == DC_STMT_LOOP && t->axis < k->axis.n &&
           k->axis.at[t->axis].kind == DC_AXIS_GRID;
}

static void check_root(checking *c)
{
    const dc_stmt *grid = NULL;
    for (const dc_stmt *t = c->k->root; t != NULL; t = t->next)
        if (is_grid(c->k, t))
            grid = t;
    for (const dc_stmt *t = c->k->root; t != NULL && grid != NULL; t = t->next)
        if (!is_grid(c->k, t))
            complain(c, "something beside the loop over grid axis", c->k->axis.at[grid->axis].name);
}

static void check_size(checking *c)
{
    const dc_stmt *loop = NULL;
    const char *what = c->failed ? NULL : dc_nest_too_large(c->k, &loop);
    if (what == NULL)
        return;
    c->line = loop->line;
    complain(c, what, c->k->axis.at[loop->axis].name);
}

/* Names and buffers -------------------------------------------------------------------------- */

static void mark_axes(const dc_kernel *k, const dc_stmt *first, bool *used)
{
    for (const dc_stmt *t = first; t != NULL; t = t->next)
        if (t->kind == DC_STMT_LOOP) {
            used[t->axis] = true;
            mark_axes(k, t->body, used);
        }
}

/* Of axes, only those that some loop is over: moves leave others behind. */
static void check_names(checking *c)
{
    const dc_kernel *k = c->k;
    bool *used = DC_NEW_ARRAY(&c->j->scratch, bool, k->axis.n);
    mark_axes(k, k->root, used);
    for (uint32_t a = 0; a < k->axis.n; a++)
        for (uint32_t b = 0; used[a] && b < a; b++)
            if (used[b] && strcmp(k->axis.at[a].name, k->axis.at[b].name) == 0)
                complain(c, "two axes of one name", k->axis.at[a].name);
    for (uint32_t a = 0; a < k->buf.n; a++)
        for (uint32_t b = 0; b < a; b++)
            if (strcmp(k->buf.at[a].name, k->buf.at[b].name) == 0)
                complain(c, "two buffers of one name", k->buf.at[a].name);
}

static void check_buffers(checking *c)
{
    uint32_t params = 0;
    for (uint32_t i = 0; i < c->k->buf.n; i++) {
        const dc_buffer *b = &c->k->buf.at[i];
        if (b->dtype >= DC_DTYPE__COUNT || b->count < 0 || b->count > MAX_COUNT)
            complain(c, "no legal buffer", b->name);
        else if (b->scope == DC_SCOPE_PARAM)
            params += b->param == params;
        else if (b->scope > DC_SCOPE_GROUP)
            complain(c, "memory that only the flat form has", b->name);
        else if (b->count * (int64_t)dc_dtype_size((dc_dtype)b->dtype) > MAX_LOCAL)
            complain(c, "too large for local memory", b->name);
        else if (b->scope == DC_SCOPE_THREAD && b->count % c->threads != 0)
            complain(c, "rows that are not one for each thread", b->name);
    }
    if (params != c->k->nparam)
        complain(c, "parameters are not numbered in their order", "");
}

/* Rows of thread memory ---------------------------------------------------------------------- */

static int64_t coefficient(const dc_kernel *k, const dc_ix_node *x, uint32_t axis)
{
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *a = &k->atom.at[x->term[i].atom];
        if (a->kind == DC_ATOM_AXIS && a->axis == axis)
            return x->term[i].coef;
    }
    return 0;
}

/* Does the access stay in row (number of the thread), n elements long? */
static bool is_own_row(const checking *c, const access *a, int64_t n)
{
    const dc_ix_node *x = &c->k->ix.at[a->at];
    int64_t lo = x->lo + a->lo, hi = x->hi + a->hi;
    for (const frame *f = c->frames; f != NULL; f = f->outer) {
        const dc_axis *axis = &c->k->axis.at[f->loop->axis];
        if (!dc_axis_is_thread(axis->kind) || axis->extent == 1)
            continue;
        if (coefficient(c->k, x, f->loop->axis) != n * f->inside)
            return false;
        hi -= n * f->inside * (axis->extent - 1);
    }
    return a->guarded || (lo >= 0 && hi < n);
}

static bool depends_on(const dc_kernel *k, const dc_atom_node *a, uint32_t axis)
{
    if (a->kind == DC_ATOM_AXIS)
        return a->axis == axis;
    return a->kind == DC_ATOM_VALUE || dc_ix_uses(k, a->of, axis);
}

/*
 * Is it n * (first lane of the thread's block + some lane) + a place that is the same for all lanes?
 * Terms that n divides say which lane, the others which place.
 */
static bool is_row_of_lane(const checking *c, const access *a, int64_t n)
{
    const dc_kernel *k = c->k;
    const dc_ix_node *x = &k->ix.at[a->at];
    const frame *lane = c->frames;
    while (lane != NULL && k->axis.at[lane->loop->axis].kind != DC_AXIS_LANE)
        lane = lane->outer;
    if (lane == NULL || a->stores)
        return false;
    const int64_t q = dc_floor_div(x->c, n);
    int64_t lo[2] = {q, x->c - n * q}, hi[2] = {q, x->c - n * q}; /* of lane, of place */
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &k->atom.at[x->term[i].atom];
        const bool place = x->term[i].coef % n != 0;
        const int64_t coef = place ? x->term[i].coef : x->term[i].coef / n;
        if (place && depends_on(k, at, lane->loop->axis))
            return false;
        lo[place] += coef * (coef < 0 ? at->hi : at->lo);
        hi[place] += coef * (coef < 0 ? at->lo : at->hi);
    }
    int64_t lanes = 0; /* all that there are, also where a phase is for some of them */
    for (const frame *f = lane->outer; f != NULL; f = f->outer) {
        const dc_axis *axis = &k->axis.at[f->loop->axis];
        if (axis->kind == DC_AXIS_BLOCK && axis->extent > 1 && lanes == 0)
            lanes = f->inside;
        if (axis->kind != DC_AXIS_BLOCK || axis->extent == 1)
            continue;
        if (coefficient(k, x, f->loop->axis) != n * f->inside)
            return false;
        hi[0] -= f->inside * (axis->extent - 1);
    }
    if (lanes == 0)
        lanes = c->threads;
    return a->guarded || (lo[0] >= 0 && hi[0] < lanes && lo[1] >= 0 && hi[1] < n);
}

/* Expressions -------------------------------------------------------------------------------- */

static void check_vx(checking *c, dc_vx v, bool guarded);

static void check_atom(checking *c, const dc_atom_node *a);

static void check_ix(checking *c, dc_ix ix)
{
    const dc_kernel *k = c->k;
    if (ix == 0 || ix >= k->ix.n) {
        complain(c, "no such index expression", "");
        return;
    }
    if (c->ixseen[ix] == c->now)
        return;
    c->ixseen[ix] = c->now;
    const dc_ix_node *x = &k->ix.at[ix];
    for (uint32_t i = 0; i < x->n && !c->failed; i++)
        check_atom(c, &k->atom.at[x->term[i].atom]);
}

static void check_atom(checking *c, const dc_atom_node *a)
{
    const dc_kernel *k = c->k;
    int64_t lo = 0, hi = 0;
    switch ((dc_atom_kind)a->kind) {
    case DC_ATOM_AXIS:
        if (!c->open[a->axis])
            complain(c, "axis used outside its loop", k->axis.at[a->axis].name);
        hi = k->axis.at[a->axis].extent - 1;
        break;
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        if (a->k <= 0)
            complain(c, "division by zero or less", "");
        check_ix(c, a->of);
        return;
    case DC_ATOM_VALUE: /* read wherever the index is computed: guarded by nothing */
        check_vx(c, a->value, false);
        if (!c->failed && !dc_vx_range(k, a->value, &lo, &hi))
            complain(c, "a float as index", "");
        break;
    }
    if (a->lo > lo || a->hi < hi)
        complain(c, "the range of an index is wrong",
                 a->kind == DC_ATOM_AXIS ? k->axis.at[a->axis].name : "int()");
}

static void check_pred(checking *c, dc_pred pred)
{
    for (uint32_t i = 0; i < pred.n; i++)
        check_ix(c, pred.range[i].ix);
}

/* Can it fail? What always holds keeps nothing inside of its buffer, and moves leave it out. */
static bool guards(const dc_kernel *k, dc_pred pred)
{
    for (uint32_t i = 0; i < pred.n; i++) {
        const dc_ix_node *x = &k->ix.at[pred.range[i].ix];
        if (x->lo < 0 || x->hi >= pred.range[i].n)
            return true;
    }
    return false;
}

static void check_access(checking *c, const access *a)
{
    if (a->buf >= c->k->buf.n) {
        complain(c, "no such buffer", "");
        return;
    }
    const dc_buffer *b = &c->k->buf.at[a->buf];
    check_ix(c, a->at);
    if (c->failed)
        return;
    const dc_ix_node *x = &c->k->ix.at[a->at];
    if (a->stores && b->scope == DC_SCOPE_PARAM && b->mode == DC_MODE_IN)
        complain(c, "store to an input", b->name);
    if (!a->guarded && !c->dead && (x->lo + a->lo < 0 || x->hi + a->hi >= b->count))
        complain(c, "access outside buffer", b->name);
    if (b->scope == DC_SCOPE_PARAM)
        return;
    const dc_stmt *home = b->scope == DC_SCOPE_LOCAL ? c->parallel : c->grid;
    if (c->used[a->buf] && c->home[a->buf] != home)
        complain(c,
                 b->scope == DC_SCOPE_LOCAL ? "iterations of a parallel loop share a local"
                                            : "positions of the grid share",
                 b->name);
    c->used[a->buf] = true;
    c->stored[a->buf] |= a->stores;
    if (!a->stores && c->read[a->buf] == 0)
        c->read[a->buf] = c->line + 1;
    c->home[a->buf] = home;
    const int64_t n = b->count / c->threads;
    if (b->scope == DC_SCOPE_THREAD && !c->dead && (n == 0 || !is_own_row(c, a, n)) &&
        (n == 0 || !is_row_of_lane(c, a, n)))
        complain(c, "a thread leaves its row", b->name);
}

static void check_op(checking *c, const dc_vx_node *n)
{
    dc_dtype t;
    if (n->op >= DC_OP__COUNT || !dc_op_is(n->op, DC_CLASS_EW) || n->n != dc_op_row_of(n->op)->n) {
        complain(c, "no operation of kernels", "");
        return;
    }
    if (n->op != DC_OP_CAST && (!dc_nest_op_dtype(c->k, n->op, n->in, &t) || t != n->dtype))
        complain(c, "operands or result of a wrong dtype", dc_op_row_of(n->op)->name);
}

static void check_const(checking *c, const dc_vx_node *n)
{
    uint64_t word = 0;
    dc_bits_store((dc_dtype)n->dtype, &word, n->bits);
    if (dc_bits_load((dc_dtype)n->dtype, &word) != n->bits)
        complain(c, "a constant that is no pattern of", dc_dtype_name((dc_dtype)n->dtype));
}

static void check_vx(checking *c, dc_vx v, bool guarded)
{
    const dc_kernel *k = c->k;
    if (v == 0 || v >= k->vx.n) {
        complain(c, "no such value", "");
        return;
    }
    if (c->failed || c->seen[guarded][v] == c->now)
        return;
    c->seen[guarded][v] = c->now;
    const dc_vx_node *n = &k->vx.at[v];
    if (n->dtype >= DC_DTYPE__COUNT || n->n > DC_COUNTOF(n->in)) {
        complain(c, "no legal value", "");
        return;
    }
    check_pred(c, n->pred);
    for (int i = 0; i < n->n; i++)
        check_vx(c, n->in[i], guarded);
    if (c->failed)
        return;
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        check_op(c, n);
        break;
    case DC_VX_LOAD:
        check_access(
            c, &(access){.buf = n->buf, .at = n->at, .guarded = guarded || guards(k, n->pred)});
        if (!c->failed && n->dtype != k->buf.at[n->buf].dtype)
            complain(c, "a load of another dtype from", k->buf.at[n->buf].name);
        break;
    case DC_VX_CONST:
        check_const(c, n);
        break;
    case DC_VX_INDEX:
        check_ix(c, n->at);
        if (dc_dtype_is_short((dc_dtype)n->dtype))
            complain(c, "an index as a float of 16 bits", dc_dtype_name((dc_dtype)n->dtype));
        break;
    case DC_VX_TEST:
        break;
    }
}

/* Statements --------------------------------------------------------------------------------- */

static void check_set(checking *c, const dc_stmt *t)
{
    const dc_kernel *k = c->k;
    const bool guarded = guards(k, t->pred);
    for (uint32_t i = 0; i < t->nput && !c->failed; i++) {
        const dc_put *p = &t->put[i];
        check_access(c, &(access){.buf = p->buf, .at = p->at, .stores = true, .guarded = guarded});
        check_vx(c, p->value, guarded);
        if (!c->failed && k->vx.at[p->value].dtype != k->buf.at[p->buf].dtype)
            complain(c, "value of another dtype stored to", k->buf.at[p->buf].name);
    }
    if (!c->failed && t->reduces && !dc_nest_accumulates(k, t))
        complain(c, "a reduction that accumulates nothing", "");
    const char *why = c->failed ? NULL : dc_roles_contradict(k, &c->j->scratch, t, c->open);
    if (why != NULL)
        complain(c, why, "");
}

static void check_operand(checking *c, const dc_stmt *t, const dc_tile_operand *o, int64_t rows,
                          int64_t cols, dc_dtype want)
{
    const int64_t down = o->row * (rows - 1), right = o->col * (cols - 1);
    access a = {.buf = o->buf, .at = o->at, .guarded = guards(c->k, t->pred)};
    a.stores = o == &t->tile->c;
    a.lo = dc_min_i64(down, 0) + dc_min_i64(right, 0);
    a.hi = dc_max_i64(down, 0) + dc_max_i64(right, 0);
    check_access(c, &a);
    if (!c->failed && c->k->buf.at[o->buf].dtype != want)
        complain(c, "a tile of another dtype", c->k->buf.at[o->buf].name);
}

static bool steps_legal(const dc_tile_operand *o)
{
    return o->row >= -MAX_COUNT && o->row <= MAX_COUNT && o->col >= -MAX_COUNT &&
           o->col <= MAX_COUNT;
}

/* Do two elements of the accumulator lie at one place? */
static bool overlaps_itself(const dc_tile_operand *o, int rows, int cols)
{
    for (int i = 0; i < rows; i++)
        for (int j = -cols + 1; j < cols; j++)
            if ((i != 0 || j != 0) && i * o->row + j * o->col == 0)
                return true;
    return false;
}

static void check_tile(checking *c, const dc_stmt *t)
{
    const dc_tile *x = t->tile;
    if (x == NULL || x->which >= DC_TILE__COUNT || !steps_legal(&x->c) || !steps_legal(&x->a) ||
        !steps_legal(&x->b)) {
        complain(c, "no legal tile", "");
        return;
    }
    const dc_tile_row *row = dc_tile_row_of(x->which);
    check_operand(c, t, &x->c, row->m, row->n, (dc_dtype)row->c);
    check_operand(c, t, &x->a, row->m, row->k, (dc_dtype)row->ab);
    check_operand(c, t, &x->b, row->k, row->n, (dc_dtype)row->ab);
    if (!c->failed && (x->c.buf == x->a.buf || x->c.buf == x->b.buf))
        complain(c, "a tile reads what it accumulates to", c->k->buf.at[x->c.buf].name);
    if (!c->failed && overlaps_itself(&x->c, row->m, row->n))
        complain(c, "elements of a tile overlap", c->k->buf.at[x->c.buf].name);
}

static void check_list(checking *c, const dc_stmt *first);

static void check_body(checking *c, const dc_stmt *loop)
{
    const dc_axis *a = &c->k->axis.at[loop->axis];
    const checking outside = *c;
    const frame here = {
        .loop = loop,
        .inside = dc_axis_is_thread(a->kind) ? check_shape(c, loop->body, false, false).most : 1,
        .outer = c->frames,
    };
    c->frames = &here;
    c->dead |= a->extent == 0;
    if (a->kind == DC_AXIS_GRID)
        c->grid = loop;
    if (a->kind == DC_AXIS_GRID || dc_axis_is_thread(a->kind))
        c->parallel = loop;
    c->open[loop->axis] = true;
    check_list(c, loop->body);
    c->open[loop->axis] = false;
    c->frames = outside.frames;
    c->dead = outside.dead;
    c->grid = outside.grid;
    c->parallel = outside.parallel;
}

static void check_list(checking *c, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL && !c->failed; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            check_body(c, t);
            continue;
        }
        c->now++;
        c->line = t->line;
        check_pred(c, t->pred);
        if (c->failed)
            return;
        if (t->kind == DC_STMT_TILE)
            check_tile(c, t);
        else
            check_set(c, t);
    }
}

static void check_traffic(checking *c)
{
    const dc_traffic_fault f = dc_nest_traffic_fault(c->k, &c->j->scratch);
    c->line = f.loop != NULL ? f.loop->line : 1;
    if (f.what != NULL)
        complain(c, f.what, f.which);
}

/* Nothing orders the loads of such a buffer: moves would place them as if it held something. */
static void check_stored(checking *c)
{
    for (uint32_t i = 0; i < c->k->buf.n && !c->failed; i++)
        if (c->read[i] != 0 && !c->stored[i]) {
            c->line = c->read[i] - 1;
            complain(c, "read, but nothing stores to it", c->k->buf.at[i].name);
        }
}

static dc_status check_kernel(dc_job *j, const dc_kernel *k, bool given)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    checking c = {.j = j, .k = k, .given = given, .line = given};
    c.open = DC_NEW_ARRAY(&j->scratch, bool, k->axis.n);
    c.used = DC_NEW_ARRAY(&j->scratch, bool, k->buf.n);
    c.stored = DC_NEW_ARRAY(&j->scratch, bool, k->buf.n);
    c.read = DC_NEW_ARRAY(&j->scratch, uint32_t, k->buf.n);
    c.home = DC_NEW_ARRAY(&j->scratch, const dc_stmt *, k->buf.n);
    c.seen[0] = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n);
    c.seen[1] = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n);
    c.ixseen = DC_NEW_ARRAY(&j->scratch, uint32_t, k->ix.n);
    check_root(&c);
    c.threads = check_shape(&c, k->root, true, false).most;
    check_size(&c);
    if (!c.failed) {
        check_names(&c);
        check_buffers(&c);
        check_list(&c, k->root);
        check_stored(&c);
    }
    if (!c.failed)
        check_traffic(&c);
    dc_arena_rewind(&j->scratch, mark);
    return c.failed ? j->err.status : DC_OK;
}

dc_status dc_nest_check(dc_job *j, const dc_kernel *k)
{
    return check_kernel(j, k, false);
}

dc_status dc_nest_check_given(dc_job *j, const dc_kernel *k)
{
    return check_kernel(j, k, true);
}
