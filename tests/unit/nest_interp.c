#include "tests/unit/nest_interp.h"

#include "jit/nest/matrix_tile.h"

#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/nest_race.h"

typedef struct running {
    dc_job *j;
    const dc_kernel *k;
    int64_t *at_axis; /* current iteration by axis */
    void **mem;       /* by buffer */
    uint64_t *known;  /* by value: what it is, if it was computed for this assignment */
    uint64_t *when, now;
    dc_race race;
    dc_status status;
} running;

static uint64_t value(running *r, dc_vx v);

static int64_t index_of(running *r, dc_ix a)
{
    const dc_ix_node *x = &r->k->ix.at[a];
    int64_t sum = x->c;
    for (uint32_t i = 0; i < x->n; i++) {
        const dc_atom_node *at = &r->k->atom.at[x->term[i].atom];
        int64_t v = 0;
        switch ((dc_atom_kind)at->kind) {
        case DC_ATOM_AXIS:
            v = r->at_axis[at->axis];
            break;
        case DC_ATOM_DIV:
            v = dc_floor_div(index_of(r, at->of), at->k);
            break;
        case DC_ATOM_MOD:
            v = index_of(r, at->of);
            v -= dc_floor_div(v, at->k) * at->k;
            break;
        case DC_ATOM_VALUE:
            v = (int64_t)value(r, at->value);
            break;
        }
        sum += v * x->term[i].coef;
    }
    return sum;
}

static bool holds(running *r, dc_pred p)
{
    for (uint32_t i = 0; i < p.n; i++) {
        const int64_t v = index_of(r, p.range[i].ix);
        if (v < 0 || v >= p.range[i].n)
            return false;
    }
    return true;
}

static void complain(running *r, const dc_buffer *b, int64_t at, const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "%s[%" PRId64 "] %s", b->name, at, what);
    if (r->status == DC_OK)
        r->status = dc_fail(r->j, DC_ERR_BUG, &(dc_fact){.word = {r->k->name, text}});
}

/* NULL where the access is not allowed; then the status says so. */
static char *element(running *r, uint32_t buf, int64_t at, bool stores)
{
    const dc_buffer *b = &r->k->buf.at[buf];
    char why[160];
    if (at < 0 || at >= b->count) {
        snprintf(why, sizeof why, "of %" PRId64, b->count);
        complain(r, b, at, why);
        return NULL;
    }
    if (!dc_race_touch(&r->race, buf, at, stores, why, sizeof why)) {
        complain(r, b, at, why);
        return NULL;
    }
    return (char *)r->mem[buf] + (size_t)at * dc_dtype_size(b->dtype);
}

static uint64_t load(running *r, uint32_t buf, int64_t at)
{
    const char *from = element(r, buf, at, false);
    return from != NULL ? dc_bits_load(r->k->buf.at[buf].dtype, from) : 0;
}

static void store(running *r, uint32_t buf, int64_t at, uint64_t bits)
{
    char *to = element(r, buf, at, true);
    if (to != NULL)
        dc_bits_store(r->k->buf.at[buf].dtype, to, bits);
}

/* Values ------------------------------------------------------------------------------------- */

static uint64_t compute(running *r, dc_vx v)
{
    const dc_vx_node *n = &r->k->vx.at[v];
    uint64_t in[4] = {0};
    switch ((dc_vx_kind)n->kind) {
    case DC_VX_OP:
        if (n->op == DC_OP_CAST)
            return dc_bits_cast(r->k->vx.at[n->in[0]].dtype, n->dtype, value(r, n->in[0]));
        for (int i = 0; i < n->n; i++)
            in[i] = value(r, n->in[i]);
        return dc_op_eval(n->op, r->k->vx.at[n->in[n->n - 1]].dtype, n->dtype, in);
    case DC_VX_LOAD:
        return holds(r, n->pred) ? load(r, n->buf, index_of(r, n->at)) : 0;
    case DC_VX_CONST:
        return n->bits;
    case DC_VX_INDEX: /* of an index beyond its dtype, the low bits */
        if (dc_dtype_is_float(n->dtype))
            return dc_bits_cast(DC_I64, n->dtype, (uint64_t)index_of(r, n->at));
        return dc_bits_canonical(n->dtype, (uint64_t)index_of(r, n->at));
    case DC_VX_TEST:
        return holds(r, n->pred);
    }
    return 0;
}

static uint64_t value(running *r, dc_vx v)
{
    if (r->when[v] != r->now) {
        r->known[v] = compute(r, v);
        r->when[v] = r->now;
    }
    return r->known[v];
}

/* Statements --------------------------------------------------------------------------------- */

static void run_set(running *r, const dc_stmt *t)
{
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    uint64_t *v = DC_NEW_ARRAY(&r->j->scratch, uint64_t, t->nput);
    int64_t *at = DC_NEW_ARRAY(&r->j->scratch, int64_t, t->nput);
    for (uint32_t i = 0; i < t->nput; i++) {
        v[i] = value(r, t->put[i].value);
        at[i] = index_of(r, t->put[i].at);
    }
    for (uint32_t i = 0; i < t->nput && r->status == DC_OK; i++)
        store(r, t->put[i].buf, at[i], v[i]);
    dc_arena_rewind(&r->j->scratch, mark);
}

typedef struct corner { /* an operand of a tile */
    uint32_t buf;
    int64_t at, row, col;
    dc_dtype t;
} corner;

static corner corner_of(running *r, const dc_tile_operand *o)
{
    return (corner){o->buf, index_of(r, o->at), o->row, o->col,
                    (dc_dtype)r->k->buf.at[o->buf].dtype};
}

static int64_t place(const corner *c, int i, int j)
{
    return c->at + i * c->row + j * c->col;
}

/* One element of the accumulator, in the order of l; mul, then add, each rounded. */
static void run_dot(running *r, const dc_tile_row *row, const corner *x, int i, int j)
{
    const dc_dtype t = x[0].t;
    uint64_t sum = load(r, x[0].buf, place(&x[0], i, j));
    for (int l = 0; l < row->k && r->status == DC_OK; l++) {
        uint64_t in[2] = {dc_bits_cast(x[1].t, t, load(r, x[1].buf, place(&x[1], i, l))),
                          dc_bits_cast(x[2].t, t, load(r, x[2].buf, place(&x[2], l, j)))};
        for (int n = 0; dc_tile_rounds(row) && n < 2; n++)
            in[n] = dc_tf32_bits((uint32_t)in[n]);
        const uint64_t add[2] = {sum, dc_op_eval(DC_OP_MUL, t, t, in)};
        sum = dc_op_eval(DC_OP_ADD, t, t, add);
    }
    if (r->status == DC_OK)
        store(r, x[0].buf, place(&x[0], i, j), sum);
}

static void run_tile(running *r, const dc_tile *tile)
{
    const dc_tile_row *row = dc_tile_row_of(tile->which);
    const corner x[3] = {corner_of(r, &tile->c), corner_of(r, &tile->a), corner_of(r, &tile->b)};
    for (int i = 0; i < row->m; i++)
        for (int j = 0; j < row->n && r->status == DC_OK; j++)
            run_dot(r, row, x, i, j);
}

static void run_list(running *r, const dc_stmt *first);

static void run_loop(running *r, const dc_stmt *t)
{
    const dc_axis *a = &r->k->axis.at[t->axis];
    const bool grid = a->kind == DC_AXIS_GRID, thread = dc_axis_is_thread(a->kind);
    const uint32_t number = thread ? dc_race_loop(&r->race) : 0;
    for (int64_t i = 0; i < a->extent && r->status == DC_OK; i++) {
        uint32_t outside = 0;
        if (grid)
            dc_race_position(&r->race, t->axis);
        if (thread)
            outside = dc_race_enter(&r->race, t->axis, number, i);
        r->at_axis[t->axis] = i;
        run_list(r, t->body);
        if (thread)
            dc_race_leave(&r->race, outside);
    }
}

static void run_list(running *r, const dc_stmt *first)
{
    for (const dc_stmt *t = first; t != NULL && r->status == DC_OK; t = t->next) {
        if (t->kind == DC_STMT_LOOP) {
            run_loop(r, t);
            continue;
        }
        r->now++;
        if (!holds(r, t->pred))
            continue;
        if (t->kind == DC_STMT_TILE)
            run_tile(r, t->tile);
        else
            run_set(r, t);
    }
}

dc_status dc_nest_run(dc_job *j, const dc_kernel *k, void *const *mem)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    running r = {.j = j, .k = k};
    r.at_axis = DC_NEW_ARRAY(&j->scratch, int64_t, k->axis.n);
    r.mem = DC_NEW_ARRAY(&j->scratch, void *, k->buf.n);
    r.known = DC_NEW_ARRAY(&j->scratch, uint64_t, k->vx.n);
    r.when = DC_NEW_ARRAY(&j->scratch, uint64_t, k->vx.n);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer *x = &k->buf.at[b];
        r.mem[b] = x->scope == DC_SCOPE_PARAM
                       ? mem[x->param]
                       : dc_arena_alloc(&j->scratch, (size_t)x->count * dc_dtype_size(x->dtype));
    }
    dc_race_init(&r.race, j, k, mem);
    run_list(&r, k->root);
    dc_arena_rewind(&j->scratch, mark);
    return r.status;
}
