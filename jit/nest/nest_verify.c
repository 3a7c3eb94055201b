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
#include "jit/nest/nest_access.h"
#include "jit/nest/nest_print.h"
#include "jit/nest/nest_roles.h"
#include "jit/nest/nest_traffic.h"
#include "jit/nest/nest_verify_impl.h"

#include <stdio.h>

typedef struct access {
    uint32_t buf;
    dc_ix at;
    int64_t lo, hi; /* elements from at + lo to at + hi */
    bool stores, guarded;
} access;

void dc_nest_complain(dc_nest_checking *c, const char *what, const char *which)
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
static bool is_own_row(const dc_nest_checking *c, const access *a, int64_t n)
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
static bool is_row_of_lane(const dc_nest_checking *c, const access *a, int64_t n)
{
    const dc_kernel *k = c->k;
    const dc_ix_node *x = &k->ix.at[a->at];
    const frame *lane = c->frames;
    while (lane != NULL && k->axis.at[lane->loop->axis].kind != DC_AXIS_LANE)
        lane = lane->outer;
    if (lane == NULL || a->stores)
        return false;
    const bool pair = k->axis.at[lane->loop->axis].extent == 2;
    const int64_t q = dc_floor_div(x->c, n);
    int64_t lo[2] = {q, x->c - n * q}, hi[2] = {q, x->c - n * q}; /* of lane, of place */
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &k->atom.at[x->term[i].atom];
        const bool place = x->term[i].coef % n != 0;
        const int64_t coef = place ? x->term[i].coef : x->term[i].coef / n;
        if (place && !pair && depends_on(k, at, lane->loop->axis))
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

static void check_vx(dc_nest_checking *c, dc_vx v, bool guarded);

static void check_atom(dc_nest_checking *c, const dc_atom_node *a);

static void check_ix(dc_nest_checking *c, dc_ix ix)
{
    const dc_kernel *k = c->k;
    if (ix == 0 || ix >= k->ix.n) {
        dc_nest_complain(c, "no such index expression", "");
        return;
    }
    if (c->ixseen[ix] == c->now)
        return;
    c->ixseen[ix] = c->now;
    const dc_ix_node *x = &k->ix.at[ix];
    for (uint32_t i = 0; i < x->n && !c->failed; i++)
        check_atom(c, &k->atom.at[x->term[i].atom]);
}

static void check_atom(dc_nest_checking *c, const dc_atom_node *a)
{
    const dc_kernel *k = c->k;
    int64_t lo = 0, hi = 0;
    switch ((dc_atom_kind)a->kind) {
    case DC_ATOM_AXIS:
        if (!c->open[a->axis])
            dc_nest_complain(c, "axis used outside its loop", k->axis.at[a->axis].name);
        hi = k->axis.at[a->axis].extent - 1;
        break;
    case DC_ATOM_DIV:
    case DC_ATOM_MOD:
        if (a->k <= 0)
            dc_nest_complain(c, "division by zero or less", "");
        check_ix(c, a->of);
        return;
    case DC_ATOM_VALUE: /* read wherever the index is computed: guarded by nothing */
        check_vx(c, a->value, false);
        if (!c->failed && !dc_vx_range(k, a->value, &lo, &hi))
            dc_nest_complain(c, "a float as index", "");
        break;
    }
    if (a->lo > lo || a->hi < hi)
        dc_nest_complain(c, "the range of an index is wrong",
                         a->kind == DC_ATOM_AXIS ? k->axis.at[a->axis].name : "int()");
}

static void check_pred(dc_nest_checking *c, dc_pred pred)
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

static void check_access(dc_nest_checking *c, const access *a)
{
    if (a->buf >= c->k->buf.n) {
        dc_nest_complain(c, "no such buffer", "");
        return;
    }
    const dc_buffer *b = &c->k->buf.at[a->buf];
    check_ix(c, a->at);
    if (c->failed)
        return;
    const dc_ix_node *x = &c->k->ix.at[a->at];
    if (a->stores && b->scope == DC_SCOPE_PARAM && b->mode == DC_MODE_IN)
        dc_nest_complain(c, "store to an input", b->name);
    if (!a->guarded && !c->dead && (x->lo + a->lo < 0 || x->hi + a->hi >= b->count))
        dc_nest_complain(c, "access outside buffer", b->name);
    if (b->scope == DC_SCOPE_PARAM)
        return;
    const dc_stmt *home = b->scope == DC_SCOPE_LOCAL ? c->parallel : c->grid;
    if (c->used[a->buf] && c->home[a->buf] != home)
        dc_nest_complain(c,
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
        dc_nest_complain(c, "a thread leaves its row", b->name);
}

static void check_op(dc_nest_checking *c, const dc_vx_node *n)
{
    dc_dtype t;
    if (n->op >= DC_OP__COUNT || !dc_op_is(n->op, DC_CLASS_EW) || n->n != dc_op_row_of(n->op)->n) {
        dc_nest_complain(c, "no operation of kernels", "");
        return;
    }
    if (dc_nest_op_converts(n->op)) {
        const dc_dtype from = (dc_dtype)c->k->vx.at[n->in[0]].dtype, to = (dc_dtype)n->dtype;
        if (n->op == DC_OP_BITCAST && dc_bits_width(from) != dc_bits_width(to))
            dc_nest_complain(c, "widths differ", dc_op_row_of(n->op)->name);
        return;
    }
    if (!dc_nest_op_dtype(c->k, n->op, n->in, &t) || t != n->dtype)
        dc_nest_complain(c, "operands or result of a wrong dtype", dc_op_row_of(n->op)->name);
}

static void check_const(dc_nest_checking *c, const dc_vx_node *n)
{
    uint64_t word = 0;
    dc_bits_store((dc_dtype)n->dtype, &word, n->bits);
    if (dc_bits_load((dc_dtype)n->dtype, &word) != n->bits)
        dc_nest_complain(c, "a constant that is no pattern of", dc_dtype_name((dc_dtype)n->dtype));
}

static void check_vx(dc_nest_checking *c, dc_vx v, bool guarded)
{
    const dc_kernel *k = c->k;
    if (v == 0 || v >= k->vx.n) {
        dc_nest_complain(c, "no such value", "");
        return;
    }
    if (c->failed || c->seen[guarded][v] == c->now)
        return;
    c->seen[guarded][v] = c->now;
    const dc_vx_node *n = &k->vx.at[v];
    if (n->dtype >= DC_DTYPE__COUNT || n->n > DC_COUNTOF(n->in)) {
        dc_nest_complain(c, "no legal value", "");
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
            dc_nest_complain(c, "a load of another dtype from", k->buf.at[n->buf].name);
        break;
    case DC_VX_CONST:
        check_const(c, n);
        break;
    case DC_VX_INDEX:
        check_ix(c, n->at);
        if (dc_dtype_is_short((dc_dtype)n->dtype))
            dc_nest_complain(c, "an index as a float of 16 bits",
                             dc_dtype_name((dc_dtype)n->dtype));
        break;
    case DC_VX_TEST:
        break;
    }
}

/* Statements --------------------------------------------------------------------------------- */

static void check_set(dc_nest_checking *c, const dc_stmt *t)
{
    const dc_kernel *k = c->k;
    const bool guarded = guards(k, t->pred);
    for (uint32_t i = 0; i < t->nput && !c->failed; i++) {
        const dc_put *p = &t->put[i];
        check_access(c, &(access){.buf = p->buf, .at = p->at, .stores = true, .guarded = guarded});
        check_vx(c, p->value, guarded);
        if (!c->failed && k->vx.at[p->value].dtype != k->buf.at[p->buf].dtype)
            dc_nest_complain(c, "value of another dtype stored to", k->buf.at[p->buf].name);
    }
    if (!c->failed && t->reduces && !dc_nest_accumulates(k, t))
        dc_nest_complain(c, "a reduction that accumulates nothing", "");
    const char *why = c->failed ? NULL : dc_roles_contradict(k, &c->j->scratch, t, c->open);
    if (why != NULL)
        dc_nest_complain(c, why, "");
}

static void check_operand(dc_nest_checking *c, const dc_stmt *t, const dc_tile_operand *o,
                          int64_t rows, int64_t cols, dc_dtype want)
{
    const int64_t down = o->row * (rows - 1), right = o->col * (cols - 1);
    access a = {.buf = o->buf, .at = o->at, .guarded = guards(c->k, t->pred)};
    a.stores = o == &t->tile->c;
    a.lo = dc_min_i64(down, 0) + dc_min_i64(right, 0);
    a.hi = dc_max_i64(down, 0) + dc_max_i64(right, 0);
    check_access(c, &a);
    if (!c->failed && c->k->buf.at[o->buf].dtype != want)
        dc_nest_complain(c, "a tile of another dtype", c->k->buf.at[o->buf].name);
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

static void check_tile(dc_nest_checking *c, const dc_stmt *t)
{
    const dc_tile *x = t->tile;
    if (x == NULL || x->which >= DC_TILE__COUNT || !steps_legal(&x->c) || !steps_legal(&x->a) ||
        !steps_legal(&x->b)) {
        dc_nest_complain(c, "no legal tile", "");
        return;
    }
    const dc_tile_row *row = dc_tile_row_of(x->which);
    if (dc_tile_rounds(row) && !c->k->tf32)
        dc_nest_complain(c, "factors are rounded to TF32 in a kernel that does not say tf32", "");
    check_operand(c, t, &x->c, row->m, row->n, (dc_dtype)row->c);
    check_operand(c, t, &x->a, row->m, row->k, (dc_dtype)row->ab);
    check_operand(c, t, &x->b, row->k, row->n, (dc_dtype)row->ab);
    if (!c->failed && (x->c.buf == x->a.buf || x->c.buf == x->b.buf))
        dc_nest_complain(c, "a tile reads what it accumulates to", c->k->buf.at[x->c.buf].name);
    if (!c->failed && overlaps_itself(&x->c, row->m, row->n))
        dc_nest_complain(c, "elements of a tile overlap", c->k->buf.at[x->c.buf].name);
}

static void check_list(dc_nest_checking *c, const dc_stmt *first);

static void check_bound(dc_nest_checking *c, dc_ix bound)
{
    if (bound == 0 || c->failed)
        return;
    if (bound >= c->k->ix.n)
        dc_nest_complain(c, "no such index expression", "");
    else if (dc_ix_loads(c->k, bound))
        dc_nest_complain(c, "a bound of a loop of integers that are loaded", "");
}

static void check_body(dc_nest_checking *c, const dc_stmt *loop)
{
    c->line = loop->line;
    check_bound(c, dc_stmt_from(loop));
    check_bound(c, dc_stmt_to(loop));
    if (c->failed)
        return;
    const dc_axis *a = &c->k->axis.at[loop->axis];
    const dc_nest_checking outside = *c;
    const frame here = {
        .loop = loop,
        .inside = dc_axis_is_thread(a->kind) ? dc_nest_check_threads(c, loop->body) : 1,
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

static void check_limits(dc_nest_checking *c, const dc_stmt *t)
{
    for (uint32_t i = 0; i < t->nlimit && !c->failed; i++) {
        const dc_buffer *b = &c->k->buf.at[t->limit[i].buf];
        check_ix(c, t->limit[i].ix);
        if (!c->failed && (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_IN ||
                           b->dtype != DC_I32 || b->count < 1))
            dc_nest_complain(c, "a limit that is no parameter of type i32:", b->name);
        if (!c->failed && dc_ix_loads(c->k, t->limit[i].ix))
            dc_nest_complain(c, "a limit of integers that are loaded, of", b->name);
    }
}

static void check_list(dc_nest_checking *c, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL && !c->failed; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            check_body(c, t);
            continue;
        }
        c->now++;
        c->line = t->line;
        check_pred(c, t->pred);
        check_limits(c, t);
        if (c->failed)
            return;
        if (t->kind == DC_STMT_TILE)
            check_tile(c, t);
        else
            check_set(c, t);
    }
}

static void check_traffic(dc_nest_checking *c)
{
    const dc_traffic_fault f = dc_nest_traffic_fault(c->k, &c->j->scratch);
    c->line = f.loop != NULL ? f.loop->line : 1;
    if (f.what != NULL)
        dc_nest_complain(c, f.what, f.which);
}

/* Nothing orders the loads of such a buffer: moves would place them as if it held something. */
static void check_stored(dc_nest_checking *c)
{
    for (uint32_t i = 0; i < c->k->buf.n && !c->failed; i++)
        if (c->read[i] != 0 && !c->stored[i]) {
            c->line = c->read[i] - 1;
            dc_nest_complain(c, "read, but nothing stores to it", c->k->buf.at[i].name);
        }
}

static dc_status check_kernel(dc_job *j, const dc_kernel *k, bool given)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_nest_checking c = {.j = j, .k = k, .given = given, .line = given};
    c.open = DC_NEW_ARRAY(&j->scratch, bool, k->axis.n);
    c.used = DC_NEW_ARRAY(&j->scratch, bool, k->buf.n);
    c.stored = DC_NEW_ARRAY(&j->scratch, bool, k->buf.n);
    c.read = DC_NEW_ARRAY(&j->scratch, uint32_t, k->buf.n);
    c.home = DC_NEW_ARRAY(&j->scratch, const dc_stmt *, k->buf.n);
    c.seen[0] = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n);
    c.seen[1] = DC_NEW_ARRAY(&j->scratch, uint32_t, k->vx.n);
    c.ixseen = DC_NEW_ARRAY(&j->scratch, uint32_t, k->ix.n);
    dc_nest_check_shape(&c);
    if (!c.failed) {
        dc_nest_check_names(&c);
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
